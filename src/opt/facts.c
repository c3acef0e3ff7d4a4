/* facts.c: what statistics say about every column of a plan, and what follows for expressions.
 *
 * Ranges of integers and dates are carried from scans through projections by interval arithmetic,
 * so that a condition like `a + 1 < b` counts as harmless when no value can overflow, and may then
 * be moved like any other. Every range is one that the scan's guards check again at each execution.
 */
#include "opt/opt_int.h"

#include "codes/func.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"

static bool has_exact_range(struct type t) {
    return type_is_integer(t) || t.id == TYPE_DATE;
}

static i128 const_value(const struct expr *expr) {
    return type_kind(expr->type) == KIND_I64 ? (i128)expr->value.i64 : (i128)expr->value.i32;
}

static struct range product(struct range a, struct range b) {
    i128 corners[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    struct range r = range_of_value(corners[0]);
    for (int i = 1; i < 4; i++) {
        r.lo = MIN_OF(r.lo, corners[i]);
        r.hi = MAX_OF(r.hi, corners[i]);
    }
    return r;
}

/* The range of a call on integers or dates before it is cut to the type; false when not known. All
 * operand ranges lie within 64 bits, so nothing here overflows. */
static bool call_range(const struct expr *expr, const struct range *args, struct range *out) {
    struct range r = range_of_value(0);
    switch (expr->func) {
    case FUNC_ADD:
        r.lo = args[0].lo + args[1].lo;
        r.hi = args[0].hi + args[1].hi;
        break;
    case FUNC_SUB:
        r.lo = args[0].lo - args[1].hi;
        r.hi = args[0].hi - args[1].lo;
        break;
    case FUNC_MUL:
        r = product(args[0], args[1]);
        break;
    case FUNC_NEG:
        r.lo = -args[0].hi;
        r.hi = -args[0].lo;
        break;
    case FUNC_ABS:
        r.lo = 0;
        r.hi = MAX_OF(args[0].hi, -args[0].lo);
        break;
    case FUNC_DIV:
    case FUNC_MOD:
        if (args[1].lo <= 0) {
            return false; /* might be zero, or -1 with the least value */
        }
        r.hi = MAX_OF(args[0].hi, -args[0].lo);
        r.lo = -r.hi;
        break;
    default:
        return false;
    }
    *out = r;
    return true;
}

/* The range of an integer or date expression; *raises is set when something in it might fault. */
static struct range walk(const struct opt *o, const struct expr *expr, bool *raises) {
    struct range args[3] = {{0}};
    bool caught = false; /* what wf_defined makes NULL */
    bool catches = expr->kind == EXPR_CALL && expr->func == FUNC_DEFINED;
    for (i32 i = 0; i < expr->arg_count; i++) {
        args[MIN_OF(i, 2)] = walk(o, expr->args[i], catches ? &caught : raises);
    }
    struct range all = range_of_type(expr->type);
    bool exact = has_exact_range(expr->type);
    bool exact_args = expr->arg_count > 0 && expr->arg_count < 3;
    for (i32 i = 0; i < expr->arg_count; i++) {
        exact_args = exact_args && has_exact_range(expr->args[i]->type);
    }
    struct range r;
    if (expr->kind == EXPR_CONST && exact && !expr->is_null) {
        return range_of_value(const_value(expr));
    }
    if (expr->kind == EXPR_COL && exact && expr->col < o->fact_count &&
        o->facts[expr->col].has_range) {
        return o->facts[expr->col].range;
    }
    if (expr->kind == EXPR_CALL && exact && exact_args && call_range(expr, args, &r)) {
        struct range legal = all;
        if (expr->type.id == TYPE_DATE) { /* neither end is infinity */
            legal.lo = DATE_MIN;
            legal.hi = DATE_MAX;
        }
        *raises = *raises || !range_within(r, legal);
        return range_within(r, legal) ? r : all;
    }
    if (expr->kind == EXPR_CAST && exact && exact_args && range_within(args[0], all)) {
        return args[0];
    }
    *raises = *raises || expr_node_can_raise(expr);
    return all;
}

bool facts_can_raise(const struct opt *o, const struct expr *expr) {
    bool raises = false;
    struct range r = walk(o, expr, &raises);
    UNUSED(r);
    return raises;
}

static void set_range(struct opt *o, u32 col, struct range range) {
    if (has_exact_range(o->plan->cols.items[col].type) && range.lo <= range.hi) {
        o->facts[col].has_range = 1;
        o->facts[col].range = range;
    }
}

static void copy_facts(struct opt *o, const struct rel *rel, const u32 *from) {
    for (i64 i = 0; i < rel->out.count; i++) {
        o->facts[rel->out.items[i]] = o->facts[from[i]];
    }
}

static void union_facts(struct opt *o, const struct rel *rel) {
    for (i64 i = 0; i < rel->out.count; i++) {
        const struct col_fact *a = &o->facts[rel->arms.cols[0].items[i]];
        const struct col_fact *b = &o->facts[rel->arms.cols[1].items[i]];
        struct col_fact *to = &o->facts[rel->out.items[i]];
        if (a->has_range && b->has_range) {
            to->has_range = 1;
            to->range = a->range;
            to->range.lo = MIN_OF(a->range.lo, b->range.lo);
            to->range.hi = MAX_OF(a->range.hi, b->range.hi);
        }
        if (a->has_distinct && b->has_distinct) {
            to->has_distinct = 1;
            to->distinct = a->distinct + b->distinct;
        }
    }
}

/* The numbers a column of a table may have, for guesses alone. */
static void set_values(struct opt *o, u32 col, struct range range) {
    struct type type = o->plan->cols.items[col].type;
    f64 unit = type.id == TYPE_DECIMAL ? (f64)pow10_i128(type.scale) : 1.0;
    if ((type_is_integer(type) || type.id == TYPE_DECIMAL) && range.lo <= range.hi) {
        o->facts[col].has_values = 1;
        o->facts[col].least = (f64)range.lo / unit;
        o->facts[col].most = (f64)range.hi / unit;
    }
}

static void scan_facts(struct opt *o, const struct rel *rel) {
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        const struct scan_col *scan = &rel->scan.cols.items[i];
        o->facts[scan->col].distinct = scan->distinct;
        o->facts[scan->col].has_distinct = scan->distinct > 0;
        set_range(o, scan->col, scan->range);
        set_values(o, scan->col, scan->range);
        if (type_kind(o->plan->cols.items[scan->col].type) == KIND_STR) {
            o->facts[scan->col].source = rel->scan.source;
            o->facts[scan->col].table_col = scan->table_col;
        }
    }
}

static void computed_facts(struct opt *o, const struct rel *rel) {
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; i < exprs->count; i++) {
        const struct expr *expr = exprs->items[i];
        bool raises = false;
        struct range range = walk(o, expr, &raises);
        if (expr->kind == EXPR_COL) {
            o->facts[rel->out.items[i]] = o->facts[expr->col];
        } else if (has_exact_range(expr->type)) {
            set_range(o, rel->out.items[i], range);
        }
    }
}

static void rel_facts(struct rel *rel, void *arg) {
    struct opt *o = arg;
    switch (rel->kind) {
    case REL_SCAN:
        scan_facts(o, rel);
        break;
    case REL_PROJECT:
    case REL_AGG:
        computed_facts(o, rel);
        break;
    case REL_SHARED:
        copy_facts(o, rel, rel->shared.cols->items);
        break;
    case REL_UNION:
        union_facts(o, rel);
        break;
    default:
        break;
    }
}

void facts_collect(struct opt *o, struct rel *rel) {
    rel_each_up(o->plan->arena, rel, rel_facts, o);
}

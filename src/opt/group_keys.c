/* group_keys.c: what unique keys say about groups.
 *
 * Groups by a unique key are single rows: DISTINCT over one disappears, and an aggregate over one
 * becomes a projection when its calls are simple. Of several group keys, those that others decide
 * are marked as implied: lowering keeps them out of the key and reads them again at any row of the
 * group. `select c_custkey, c_name … group by c_custkey, c_name` then never looks at the names.
 *
 * What decides what: a scan's unique column all its columns; an equality of an inner join or a
 * filter its two sides; the keys of a join with a unique right side the right columns; a group's
 * keys its aggregates; a projection's operands its results. On the side of an outer join that is
 * extended by NULLs only what also holds for a row of NULLs counts. Columns of types whose equal
 * values may look different (floats, intervals) decide nothing.
 *
 * A key that may raise stays a key: what is neither compared nor asked for is not computed, and the
 * error would be lost with it.
 *
 * Uniqueness may be a fact of the data. The scans relied on are noted in the plan, so that it stays
 * guarded when the column itself is read no more. */
#include "opt/opt_int.h"

#include "codes/func.h"

enum { KEYS_MAX = 64 };

struct deps {
    struct opt *o;
    u8 *set; /* by column: decided */
    bool changed;
};

static bool is_plain_type(struct type type) {
    return type.id != TYPE_REAL && type.id != TYPE_DOUBLE && type.id != TYPE_INTERVAL;
}

static void add(struct deps *d, u32 col) {
    d->changed = d->changed || !d->set[col];
    d->set[col] = 1;
}

static bool visit_decided(const struct expr *expr, void *arg) {
    const struct deps *d = arg;
    return expr->kind != EXPR_COL || d->set[expr->col];
}

static bool decided(struct deps *d, const struct expr *expr) {
    return !expr_is_volatile(expr) && expr_walk(expr, visit_decided, d);
}

/* Both sides of an equality have the same value, or both are NULL. */
static void spread_equal(struct deps *d, const struct expr *a, const struct expr *b) {
    if (a->kind != EXPR_COL || b->kind != EXPR_COL || !is_plain_type(a->type)) {
        return;
    }
    if (d->set[a->col] || d->set[b->col]) {
        add(d, a->col);
        add(d, b->col);
    }
}

static void spread_conds(struct deps *d, const struct rel *rel, bool extended) {
    const expr_list *conds = rel_conds(rel);
    for (i64 i = 0; i < conds->count; i++) {
        const struct expr *cond = conds->items[i];
        if (cond->kind != EXPR_CALL || cond->func != FUNC_EQ) {
            continue;
        }
        spread_equal(d, cond->args[0], cond->args[1]);
        for (i32 k = 0; k < 2 && !extended; k++) {
            const struct expr *col = cond->args[k];
            bool is_const = cond->args[1 - k]->kind == EXPR_CONST;
            if (is_const && col->kind == EXPR_COL && is_plain_type(col->type)) {
                add(d, col->col);
            }
        }
    }
}

static void spread_all(struct deps *d, const struct rel *rel) {
    for (i64 i = 0; i < rel->out.count; i++) {
        add(d, rel->out.items[i]);
    }
}

static void spread_scan(struct deps *d, const struct rel *rel) {
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        const struct scan_col *col = &rel->scan.cols.items[i];
        bool never_null = col->no_nulls || !d->o->plan->cols.items[col->col].nullable;
        if (col->unique && never_null && d->set[col->col]) {
            for (i64 k = 0; k < rel->scan.cols.count; k++) {
                add(d, rel->scan.cols.items[k].col);
            }
            return;
        }
    }
}

static void spread_project(struct deps *d, const struct rel *rel, bool extended) {
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        const struct expr *expr = rel->project.exprs.items[i];
        bool copy = expr->kind == EXPR_COL;
        if ((copy || !extended) && decided(d, expr)) {
            add(d, rel->out.items[i]);
        } else if (copy && d->set[rel->out.items[i]]) {
            add(d, expr->col);
        }
    }
}

static void spread_agg(struct deps *d, const struct rel *rel) {
    bool all = rel->agg.keys.count > 0;
    for (i64 i = 0; i < rel->agg.keys.count; i++) {
        all = all && d->set[rel->out.items[i]] && is_plain_type(rel->agg.keys.items[i]->type);
    }
    if (all) {
        spread_all(d, rel);
    }
}

static void spread(struct deps *d, const struct rel *rel, bool extended);

/* Its users see different rows, so what is decided below is asked for each anew. */
static void spread_shared(struct deps *d, const struct rel *rel, bool extended) {
    struct deps below = {.o = d->o};
    below.set = NEW_ARRAY(d->o->plan->arena, u8, d->o->plan->cols.count + 1);
    for (i64 i = 0; i < rel->out.count; i++) {
        below.set[rel->shared.cols->items[i]] |= d->set[rel->out.items[i]];
    }
    do {
        below.changed = false;
        spread(&below, rel_input(rel), extended);
    } while (below.changed);
    for (i64 i = 0; i < rel->out.count; i++) {
        if (below.set[rel->shared.cols->items[i]]) {
            add(d, rel->out.items[i]);
        }
    }
}

static void spread_join(struct deps *d, const struct rel *rel, bool extended) {
    bool inner = opt_is_inner(rel);
    bool outer =
        rel->join.kind == JOIN_LEFT || rel->join.kind == JOIN_SINGLE || rel->join.kind == JOIN_FULL;
    bool keyed = rel->join.right_unique && rel->join.left_keys.count > 0 &&
                 (inner || (!extended && rel->join.conds.count == 0 &&
                            rel->join.kind != JOIN_FULL && outer));
    for (i64 i = 0; i < rel->join.left_keys.count; i++) {
        const struct expr *key = rel->join.left_keys.items[i];
        keyed = keyed && decided(d, key) && is_plain_type(key->type);
        bool null_safe = i < rel->join.null_safe.count && rel->join.null_safe.items[i];
        if (inner && (!null_safe || !extended)) {
            spread_equal(d, key, rel->join.right_keys.items[i]);
        }
    }
    if (inner) {
        spread_conds(d, rel, extended);
    }
    if (keyed) {
        spread_all(d, rel_right(rel));
    }
    spread(d, rel_left(rel), extended || rel->join.kind == JOIN_FULL);
    if (inner || outer) {
        spread(d, rel_right(rel), extended || outer);
    }
}

/* One round: adds what follows directly. */
static void spread(struct deps *d, const struct rel *rel, bool extended) {
    switch (rel->kind) {
    case REL_SCAN:
        spread_scan(d, rel);
        return;
    case REL_JOIN:
        spread_join(d, rel, extended);
        return;
    case REL_AGG:
        if (!extended) {
            spread_agg(d, rel);
        }
        return;
    case REL_SHARED:
        spread_shared(d, rel, extended);
        return;
    case REL_PROJECT:
        spread_project(d, rel, extended);
        break;
    case REL_FILTER:
        spread_conds(d, rel, extended);
        break;
    case REL_SORT:
    case REL_LIMIT:
    case REL_WINDOW:
        break;
    default:
        return;
    }
    spread(d, rel_input(rel), extended);
}

/* Whether the keys that are not implied decide key i without its own help. */
static bool follows(struct opt *o, const struct rel *agg, i64 i) {
    struct deps d = {.o = o};
    d.set = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    for (i64 k = 0; k < agg->agg.keys.count; k++) {
        const struct expr *key = agg->agg.keys.items[k];
        if (k != i && !agg->agg.implied.items[k] && key->kind == EXPR_COL &&
            is_plain_type(key->type)) {
            d.set[key->col] = 1;
        }
    }
    do {
        d.changed = false;
        spread(&d, rel_input(agg), false);
    } while (d.changed && !decided(&d, agg->agg.keys.items[i]));
    return decided(&d, agg->agg.keys.items[i]);
}

/* Columns whose values may raise: made by a projection below that is computed only when asked for. */
struct risks {
    struct opt *o;
    u8 *set; /* by column */
    bool changed;
};

static bool visit_safe(const struct expr *expr, void *arg) {
    const struct risks *r = arg;
    return expr->kind != EXPR_COL || !r->set[expr->col];
}

static bool is_risky(struct risks *r, const struct expr *expr) {
    return facts_can_raise(r->o, expr) || !expr_walk(expr, visit_safe, r);
}

static void add_risks(struct rel *rel, void *arg) {
    struct risks *r = arg;
    for (i64 i = 0; i < rel->out.count; i++) {
        bool risky = (rel->kind == REL_PROJECT && is_risky(r, rel->project.exprs.items[i])) ||
                     (rel->kind == REL_SHARED && r->set[rel->shared.cols->items[i]]);
        if (risky && !r->set[rel->out.items[i]]) {
            r->set[rel->out.items[i]] = 1;
            r->changed = true;
        }
    }
}

static struct risks find_risks(struct opt *o, struct rel *input) {
    struct risks r = {.o = o, .changed = true};
    r.set = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    while (r.changed) {
        r.changed = false;
        rel_each(o->plan->arena, input, add_risks, &r);
    }
    return r;
}

/* Texts first, since they are the dearest keys; then from the last, since queries name what
 * decides first. */
static void mark_implied(struct opt *o, struct rel *agg, struct risks *risks) {
    i64 count = agg->agg.keys.count;
    i64 left = count;
    agg->agg.implied.count = 0;
    for (i64 i = 0; i < count; i++) {
        VEC_PUSH(o->plan->arena, &agg->agg.implied, (b8)0);
    }
    for (i32 round = 0; round < 2; round++) {
        for (i64 i = count - 1; i >= 0 && left > 1; i--) {
            bool text = type_kind(agg->agg.keys.items[i]->type) == KIND_STR;
            if (text == (round == 0) && !agg->agg.implied.items[i] &&
                !is_risky(risks, agg->agg.keys.items[i]) && follows(o, agg, i)) {
                agg->agg.implied.items[i] = 1;
                left--;
            }
        }
    }
    if (left == count) {
        agg->agg.implied.count = 0;
    } else {
        opt_rely(o, rel_input(agg));
    }
}

static struct expr *when(struct opt *o, struct expr *cond, struct expr *then, struct expr *other) {
    struct expr *expr = expr_new(o->plan->arena, EXPR_CASE, then->type, then->position);
    expr->arg_count = 3;
    expr->args = NEW_ARRAY(o->plan->arena, struct expr *, 3);
    expr->args[0] = cond;
    expr->args[1] = then;
    expr->args[2] = other;
    return expr;
}

static struct expr *number(struct opt *o, i64 value) {
    struct expr *expr = expr_new(o->plan->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    expr->value.i64 = value;
    return expr;
}

/* The value of a call over one row, or NULL when it is not worth saying. */
static struct expr *call_of_one(struct opt *o, const struct agg_call *call) {
    struct arena *arena = o->plan->arena;
    struct type type = o->plan->cols.items[call->col].type;
    struct expr *one = call->arg;
    struct expr *none = expr_new(arena, EXPR_CONST, type, -1);
    none->is_null = 1;
    switch (call->agg) {
    case AGG_COUNT_STAR:
        one = number(o, 1);
        none = number(o, 0);
        break;
    case AGG_COUNT: {
        struct expr *is_null =
            expr_new(arena, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), call->arg->position);
        is_null->arg_count = 1;
        is_null->args = NEW_ARRAY(arena, struct expr *, 1);
        is_null->args[0] = call->arg;
        none = number(o, 0);
        one = when(o, is_null, none, number(o, 1));
        break;
    }
    case AGG_SUM:
        if (!type_is_integer(call->arg->type) || type.id != TYPE_BIGINT) {
            return NULL;
        }
        one = expr_new(arena, EXPR_CAST, type, call->position);
        one->arg_count = 1;
        one->args = NEW_ARRAY(arena, struct expr *, 1);
        one->args[0] = call->arg;
        break;
    case AGG_MIN:
    case AGG_MAX:
    case AGG_BOOL_AND:
    case AGG_BOOL_OR:
        break;
    default:
        return NULL;
    }
    return call->filter ? when(o, call->filter, one, none) : one;
}

/* An aggregate whose groups are single rows becomes a projection; false when it stays. */
static bool groups_are_rows(struct opt *o, struct rel *agg, struct risks *risks) {
    i64 count = agg->agg.keys.count;
    for (i64 i = 0; i < count; i++) {
        if (is_risky(risks, agg->agg.keys.items[i])) {
            return false;
        }
    }
    b8 *null_safe = NEW_ARRAY(o->plan->arena, b8, count + 1);
    memset(null_safe, 1, (size_t)count);
    if (!estimate_unique(o->plan, rel_input(agg), agg->agg.keys.items, null_safe, count)) {
        return false;
    }
    struct expr **values = NEW_ARRAY(o->plan->arena, struct expr *, agg->agg.calls.count + 1);
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        values[i] = call_of_one(o, &agg->agg.calls.items[i]);
        if (!values[i]) {
            return false;
        }
    }
    expr_list exprs = agg->agg.keys;
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        VEC_PUSH(o->plan->arena, &exprs, values[i]);
    }
    rel_become(o->plan, agg, REL_PROJECT, rel_input(agg));
    agg->agg.keys = exprs;
    opt_rely(o, rel_input(agg));
    return true;
}

static void visit(struct rel *rel, void *arg) {
    struct opt *o = arg;
    i64 count = rel->kind == REL_AGG ? rel->agg.keys.count : 0;
    if (count == 0 || count > KEYS_MAX) {
        return;
    }
    struct risks risks = find_risks(o, rel_input(rel));
    if (!groups_are_rows(o, rel, &risks)) {
        mark_implied(o, rel, &risks);
    }
}

FALLIBLE pass_group_keys(struct opt *o) {
    estimate_rel(o, o->plan->root);
    rel_each(o->plan->arena, o->plan->root, visit, o);
    return ERR_OK;
}

/* in_list.c: x IN (list).
 *
 * A short list is a chain of comparisons, of numbers where the constants are texts of a few bytes.
 * The constants of a long one become a set that exists once per statement: numbers as keys of a set
 * index, which is probed without dropping rows, text as members of an interner. So a list of a
 * hundred thousand items costs a row as much as one of thirty. Items that are not constants, or do
 * not fit a 64-bit key, stay comparisons. */
#include "lower/lower_int.h"

#include "codes/func.h"
#include "codes/loop.h"
#include "host/eval.h"

enum {
    SET_MIN = 32,   /* constants from which a set pays */
    SHORT_MIN = 3,  /* texts of few bytes from which their number pays */
    SHORT_BYTES = 7 /* SHORT_STR's */
};

static bool is_counted(struct type type) {
    enum kind kind = type_kind(type);
    return type.id == TYPE_DECIMAL || kind == KIND_I32 || kind == KIND_I64;
}

static bool is_plain_text(struct type type) {
    return type.id == TYPE_TEXT;
}

/* The key of a constant at the set's scale; false when it has none. */
static bool const_key(const struct expr *item, i32 scale, i64 *out) {
    struct range value = range_exact(const_exact(item), const_exact(item));
    i128 power = pow10_i128(scale - type_scale(item->type));
    struct range scaled = range_mul(value, range_exact(power, power));
    *out = (i64)scaled.lo;
    return range_within(scaled, range_exact(I64_MIN, I64_MAX));
}

static const struct in_set *find_set(const struct lower *l, const struct expr *expr) {
    for (i64 i = 0; i < l->in_sets.count; i++) {
        if (l->in_sets.items[i].expr == expr) {
            return &l->in_sets.items[i];
        }
    }
    return NULL;
}

/* A variable that holds the members from the start. */
static u32 members_var(struct lower *l, enum kind kind, struct type type, const u32 *lits,
                       i64 count) {
    u32 var = lower_rows_var(l, "members", 1);
    struct var *def = &l->vars.items[var];
    def->types[0] = type;
    def->kinds[0] = (u8)kind;
    def->const_rows = count;
    u32 *copy = NEW_ARRAY(l->arena, u32, count + 1);
    memcpy(copy, lits, sizeof *lits * (size_t)count);
    def->const_lits = copy;
    l->var_infos.items[var].ranges[0] =
        kind == KIND_I64 ? range_exact(I64_MIN, I64_MAX) : range_none();
    l->var_infos.items[var].max_rows = count;
    return var;
}

static void index_members(struct lower *l, u32 rows, struct in_set *set) {
    set->index = lower_var(l, VAR_INDEX, "set");
    l->vars.items[set->index].rows_var = rows;
    l->vars.items[set->index].set = 1;
    struct step *step = lower_step(l, STEP_BUILD, "Members of IN");
    step->src = rows;
    step->dst = set->index;
    step->key_range = range_exact(I64_MIN, I64_MAX);
}

static void intern_members(struct lower *l, u32 rows, struct in_set *set) {
    set->index = NO_VAR;
    set->interner = lower_var(l, VAR_INTERN, "strings");
    struct builder *b = lower_over(l, rows, l->vars.items[rows].const_rows);
    struct value v = lower_source_value(b, 0);
    struct out_col col = {.value = {string_intern(b, v.reg, set->interner, false), NO_REG},
                          .type = type_of(TYPE_INTEGER)};
    build_label(b, "Members of IN");
    lower_rows(b, "numbers", &col, 1, false, -1);
}

static struct in_set make_set(struct lower *l, const struct expr *expr) {
    struct in_set set = {.expr = expr};
    bool text = is_plain_text(expr->args[0]->type);
    VEC(u32) lits = {0};
    set.member = NEW_ARRAY(l->arena, b8, expr->arg_count);
    set.scale = type_scale(expr->args[0]->type);
    for (i32 i = 1; i < expr->arg_count; i++) {
        set.scale = MAX_OF(set.scale, type_scale(expr->args[i]->type));
    }
    for (i32 i = 1; i < expr->arg_count; i++) {
        const struct expr *item = expr->args[i];
        union lit lit = item->value;
        if (item->kind != EXPR_CONST || (!item->is_null && !text && !is_counted(item->type))) {
            continue;
        }
        if (item->is_null) {
            set.has_null = 1;
        } else if (text || const_key(item, set.scale, &lit.i64)) {
            union lit key;
            memset(&key, 0, sizeof key);
            if (text) {
                key.str = lit.str;
            } else {
                key.i64 = lit.i64;
            }
            u32 number = lower_lit(l, text ? KIND_STR : KIND_I64, key);
            VEC_PUSH(l->arena, &lits, number);
        } else {
            continue;
        }
        set.member[i] = 1;
    }
    u32 rows = members_var(l, text ? KIND_STR : KIND_I64, type_of(text ? TYPE_TEXT : TYPE_BIGINT),
                           lits.items, lits.count);
    if (text) {
        intern_members(l, rows, &set);
    } else {
        index_members(l, rows, &set);
    }
    VEC_PUSH(l->arena, &l->in_sets, set);
    return set;
}

/* Whether x, at the scale of the set, is a 64-bit key. */
static bool key_of(struct builder *b, const struct expr *expr, const struct in_set *set,
                   struct value x, u16 *out) {
    i32 from = type_scale(expr->args[0]->type);
    i128 power = pow10_i128(set->scale - from);
    struct range r = range_mul(reg_range(b, x.reg), range_exact(power, power));
    if (!range_within(r, range_exact(I64_MIN, I64_MAX))) {
        return false;
    }
    *out = build_kind(b, lower_scale(b, x.reg, from, set->scale), KIND_I64);
    return true;
}

/* Found in the set, or NULL when the set holds a NULL or x is one. */
static bool ask_set(struct builder *b, const struct expr *expr, const struct in_set *set,
                    struct value x, struct value *out) {
    u16 found;
    if (set->index == NO_VAR) {
        u16 number = string_intern(b, string_view(b, x.reg), set->interner, true);
        found = build_op(b, OP_GE_I32, number, build_i32(b, 0), NO_REG, range_bool());
    } else {
        u16 key;
        if (!key_of(b, expr, set, x, &key)) {
            return false;
        }
        struct op op = {
            .code = OP_PROBE, .a = key, .b = NO_REG, .c = PROBE_OUTER, .imm = set->index};
        u16 row = build_ctl(b, op, KIND_I64, range_exact(-1, 0), 0);
        found = build_op(b, OP_GE_I64, row, build_int(b, KIND_I64, 0), NO_REG, range_bool());
    }
    *out = lower_bool(b, found, x.null);
    if (set->has_null) {
        out->null = build_null_or(b, out->null, build_not(b, found));
    }
    return true;
}

static bool is_short(const struct expr *item) {
    return item->kind == EXPR_CONST && !item->is_null && item->value.str.len <= SHORT_BYTES;
}

/* x among the constants that are texts of few bytes; which these are. */
static const b8 *ask_short(struct builder *b, const struct expr *expr, struct value x,
                           struct value *out) {
    b8 *member = NEW_ARRAY(b->l->arena, b8, expr->arg_count);
    i32 count = 0;
    for (i32 i = 1; i < expr->arg_count; i++) {
        member[i] = is_short(expr->args[i]);
        count += member[i];
    }
    if (count < SHORT_MIN || value_is_null(b, x)) {
        return NULL;
    }
    u16 number = build_op(b, OP_SHORT_STR, string_view(b, x.reg), NO_REG, NO_REG,
                          range_exact(-1, (i128)(SHORT_BYTES + 1) << 56));
    u16 found = NO_REG;
    for (i32 i = 1; i < expr->arg_count && !b->l->status; i++) {
        if (member[i]) {
            union lit none, word;
            memset(&none, 0, sizeof none);
            op_eval(OP_SHORT_STR, &word, expr->args[i]->value, none, none, b->l->arena);
            u16 item = build_int(b, KIND_I64, word.i64);
            u16 equal = build_op(b, OP_EQ_I64, number, item, NO_REG, range_bool());
            found =
                found == NO_REG ? equal : build_op(b, OP_OR_B8, found, equal, NO_REG, range_bool());
        }
    }
    *out = lower_bool(b, found, x.null);
    return member;
}

static i64 const_count(const struct expr *expr) {
    i64 count = 0;
    for (i32 i = 1; i < expr->arg_count; i++) {
        count += expr->args[i]->kind == EXPR_CONST;
    }
    return count;
}

struct value lower_in(struct builder *b, const struct expr *expr) {
    struct lower *l = b->l;
    struct type type = expr->args[0]->type;
    struct value x = lower_expr(b, expr->args[0]);
    struct value acc = {build_bool(b, false), NO_REG};
    const b8 *member = NULL;
    bool fits = is_counted(type) || is_plain_text(type);
    if (!l->status && fits && const_count(expr) >= SET_MIN) {
        const struct in_set *known = find_set(l, expr);
        struct in_set set = known ? *known : make_set(l, expr);
        member = !l->status && ask_set(b, expr, &set, x, &acc) ? set.member : NULL;
    }
    if (!l->status && !member && is_plain_text(type)) {
        member = ask_short(b, expr, x, &acc);
    }
    bool first = member == NULL;
    for (i32 i = 1; i < expr->arg_count && !l->status; i++) {
        const struct expr *item = expr->args[i];
        if (member && member[i]) {
            continue;
        }
        bool apart = !first && item->kind != EXPR_CONST; /* might raise: as the right side of OR */
        if (build_is_bool(b, acc.reg, true)) {
            break;
        }
        struct scope scope;
        if (apart) {
            scope = build_when(b, build_not(b, acc.reg));
        }
        struct value y = lower_expr(b, item);
        struct value eq = lower_compare(b, FUNC_EQ, x, y, type, item->type);
        if (apart) {
            build_end(b, scope);
        }
        acc = first ? eq : lower_or_values(b, acc, eq);
        first = false;
    }
    return acc;
}

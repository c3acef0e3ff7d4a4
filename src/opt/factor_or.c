/* factor_or.c: what all arms of an OR have in common, before the OR.
 *
 * (a AND b) OR (a AND c) becomes a AND (b OR c): then a can be a join key or sink to its table.
 * Where every arm restricts the same column, the column satisfies one of the restrictions: that
 * follows, and is added. So (x = 1 AND y = 2) OR (x = 3 AND y = 4) implies x = 1 OR x = 3, which
 * can sink although the whole cannot. Conditions that can raise stay where they are. */
#include "opt/opt_int.h"

enum { ARMS_MAX = 64 };


static bool has_equal(const expr_list *list, const struct expr *expr) {
    for (i64 i = 0; i < list->count; i++) {
        if (expr_equal(list->items[i], expr)) {
            return true;
        }
    }
    return false;
}

static struct expr *join_list(struct arena *arena, enum expr_kind kind, const expr_list *list) {
    if (list->count == 1) {
        return list->items[0];
    }
    struct expr *expr = expr_new(arena, kind, type_of(TYPE_BOOLEAN), list->items[0]->position);
    expr->arg_count = (i32)list->count;
    expr->args = NEW_ARRAY(arena, struct expr *, list->count);
    memcpy(expr->args, list->items, sizeof(struct expr *) * (size_t)list->count);
    return expr;
}

/* OR over the arms of what each says about `col`; NULL when one says nothing. */
static struct expr *implied(struct opt *o, const expr_list *arms, i64 count, u32 col) {
    struct arena *arena = o->plan->arena;
    expr_list tests = {0};
    for (i64 i = 0; i < count; i++) {
        expr_list own = {0};
        u32 of = 0;
        for (i64 k = 0; k < arms[i].count; k++) {
            struct expr *cond = arms[i].items[k];
            if (expr_only_col(cond, &of) && of == col && !facts_can_raise(o, cond)) {
                VEC_PUSH(arena, &own, cond);
            }
        }
        if (own.count == 0) {
            return NULL;
        }
        struct expr *test = join_list(arena, EXPR_AND, &own);
        if (!has_equal(&tests, test)) {
            VEC_PUSH(arena, &tests, test);
        }
    }
    return join_list(arena, EXPR_OR, &tests);
}

static void add_implied(struct opt *o, const expr_list *arms, i64 count, expr_list *out) {
    for (i64 k = 0; k < arms[0].count; k++) {
        u32 col = 0;
        if (expr_only_col(arms[0].items[k], &col)) {
            struct expr *test = implied(o, arms, count, col);
            if (test && !has_equal(out, test)) {
                VEC_PUSH(o->plan->arena, out, test);
            }
        }
    }
}

/* Takes conditions that all arms have out of them. */
static void take_common(struct opt *o, expr_list *arms, i64 count, expr_list *out) {
    for (i64 k = 0; k < arms[0].count;) {
        struct expr *cond = arms[0].items[k];
        bool common = !facts_can_raise(o, cond);
        for (i64 i = 1; common && i < count; i++) {
            common = has_equal(&arms[i], cond);
        }
        if (!common) {
            k++;
            continue;
        }
        VEC_PUSH(o->plan->arena, out, cond);
        for (i64 i = 0; i < count; i++) {
            i64 kept = 0;
            for (i64 n = 0; n < arms[i].count; n++) {
                if (!expr_equal(arms[i].items[n], cond)) {
                    arms[i].items[kept++] = arms[i].items[n];
                }
            }
            arms[i].count = kept;
        }
    }
}

static void factor(struct opt *o, struct expr *cond, expr_list *out) {
    struct arena *arena = o->plan->arena;
    if (cond->kind == EXPR_AND) {
        for (i32 i = 0; i < cond->arg_count; i++) {
            factor(o, cond->args[i], out);
        }
        return;
    }
    if (cond->kind != EXPR_OR || cond->arg_count > ARMS_MAX) {
        VEC_PUSH(arena, out, cond);
        return;
    }
    i64 count = cond->arg_count;
    expr_list *arms = NEW_ARRAY(arena, expr_list, count);
    for (i64 i = 0; i < count; i++) {
        expr_split_and(arena, &arms[i], cond->args[i]);
    }
    i64 before = out->count;
    take_common(o, arms, count, out);
    bool changed = out->count > before;
    expr_list rest = {0};
    for (i64 i = 0; i < count; i++) {
        if (arms[i].count == 0) { /* the common part alone is enough */
            return;
        }
        VEC_PUSH(arena, &rest, join_list(arena, EXPR_AND, &arms[i]));
    }
    i64 extra = out->count;
    add_implied(o, arms, count, out);
    struct expr *whole = changed ? join_list(arena, EXPR_OR, &rest) : cond;
    if (out->count == extra + 1 && expr_equal(out->items[extra], whole)) {
        return;
    }
    VEC_PUSH(arena, out, whole);
}

static void factor_rel(struct rel *rel, void *arg) {
    struct opt *o = arg;
    expr_list *conds = rel_conds(rel);
    expr_list out = {0};
    for (i64 i = 0; conds && i < conds->count; i++) {
        factor(o, conds->items[i], &out);
    }
    if (conds) {
        *conds = out;
    }
}

FALLIBLE pass_factor_or(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, factor_rel, o);
    return ERR_OK;
}

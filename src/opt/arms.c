/* arms.c: arms of a UNION that part the rows of one relation among them.
 *
 *     union                              project x, CASE WHEN c THEN 1 ELSE 0 END
 *       project x, 1                       filter …
 *         filter c, …                        r
 *           r
 *       project x, 0
 *         filter NOT c, …
 *           r
 *
 * Where no row can meet the conditions of both arms, one pass over the rows makes both: nobody keeps r for a second
 * reader, and nothing is united. Alternatives of a LogiQL rule that exclude each other are CASE in other words.
 * See decision 0042. */
#include "opt/opt_int.h"

#include "codes/func.h"

struct arm {
    struct rel *use;     /* the SHARED it reads */
    expr_list conds;     /* over columns of what is shared, as is `outs` */
    struct expr **outs;  /* by column of the union */
};

static bool may_raise(const struct opt *o, const struct expr *expr) {
    return facts_can_raise(o, expr) || expr_is_volatile(expr);
}

static void add_cond(struct arena *arena, expr_list *to, struct expr *cond) {
    for (i64 i = 0; i < to->count; i++) {
        if (expr_equal(to->items[i], cond)) {
            return;
        }
    }
    VEC_PUSH(arena, to, cond);
}

/* What an arm with conditions shares with others; NULL = nothing. */
static const struct rel *shared_by(const struct rel *rel) {
    bool filtered = false;
    for (; rel->kind == REL_PROJECT || rel->kind == REL_FILTER; rel = rel_input(rel)) {
        filtered = filtered || rel->kind == REL_FILTER;
    }
    return filtered && rel->kind == REL_SHARED ? rel_input(rel) : NULL;
}

/* Projections and filters over a SHARED, said in its input's columns. */
static bool take_arm(struct opt *o, struct rel *rel, const col_list *cols, struct arm *out) {
    struct arena *arena = o->plan->arena;
    struct expr **map = NEW_ARRAY(arena, struct expr *, o->plan->cols.count + 1);
    VEC(struct rel *) chain = {0};
    for (; rel->kind == REL_PROJECT || rel->kind == REL_FILTER; rel = rel_input(rel)) {
        VEC_PUSH(arena, &chain, rel);
    }
    *out = (struct arm){.use = rel};
    for (i64 i = 0; i < rel->out.count; i++) {
        map[rel->out.items[i]] = expr_col(o->plan, rel->shared.cols->items[i], -1);
    }
    for (i64 k = chain.count; k-- > 0;) {
        const struct rel *at = chain.items[k];
        for (i64 i = 0; at->kind == REL_FILTER && i < at->filter.conds.count; i++) {
            struct expr *cond = at->filter.conds.items[i];
            if (may_raise(o, cond)) {
                return false;
            }
            add_cond(arena, &out->conds, expr_map(arena, cond, map));
        }
        for (i64 i = 0; at->kind == REL_PROJECT && i < at->out.count; i++) {
            if (may_raise(o, at->project.exprs.items[i])) {
                return false;
            }
            map[at->out.items[i]] = expr_map(arena, at->project.exprs.items[i], map);
        }
    }
    out->outs = NEW_ARRAY(arena, struct expr *, cols->count + 1);
    for (i64 i = 0; i < cols->count; i++) {
        out->outs[i] = map[cols->items[i]];
    }
    return out->conds.count > 0;
}

/* --- conditions that exclude each other --- */

static bool is_compare(const struct expr *expr) {
    return expr->kind == EXPR_CALL &&
           (expr->func == FUNC_EQ || expr->func == FUNC_NE || expr->func == FUNC_LT ||
            expr->func == FUNC_LE || expr->func == FUNC_GT || expr->func == FUNC_GE);
}

/* Which of less, equal and greater a comparison accepts, as bits. */
static u8 accepts(u16 func) {
    return func == FUNC_EQ   ? 2
           : func == FUNC_NE ? 5
           : func == FUNC_LT ? 1
           : func == FUNC_LE ? 3
           : func == FUNC_GT ? 4
                             : 6;
}

/* 0: some rows may meet both; 1: none does; 2: every row meets one of them, or both are NULL. */
static i32 excludes(const struct expr *a, const struct expr *b) {
    if (a->kind == EXPR_NOT && expr_equal(a->args[0], b)) {
        return 2;
    }
    if (b->kind == EXPR_NOT && expr_equal(b->args[0], a)) {
        return 2;
    }
    if (!is_compare(a) || !is_compare(b) || !expr_equal(a->args[0], b->args[0])) {
        return 0;
    }
    if (expr_equal(a->args[1], b->args[1])) {
        u8 x = accepts(a->func), y = accepts(b->func);
        return (x & y) != 0 ? 0 : (x | y) == 7 ? 2 : 1;
    }
    const struct expr *x = a->args[1], *y = b->args[1];
    bool differ = x->kind == EXPR_CONST && y->kind == EXPR_CONST && !x->is_null && !y->is_null &&
                  type_eq(x->type, y->type) && opt_equal_is_same(x->type);
    return differ && a->func == FUNC_EQ && b->func == FUNC_EQ ? 1 : 0;
}

static bool has_cond(const expr_list *list, const struct expr *cond) {
    for (i64 i = 0; i < list->count; i++) {
        if (expr_equal(list->items[i], cond)) {
            return true;
        }
    }
    return false;
}

static struct expr *all_of(struct arena *arena, const expr_list *conds) {
    if (conds->count == 1) {
        return conds->items[0];
    }
    struct expr *and = expr_new(arena, EXPR_AND, type_of(TYPE_BOOLEAN), -1);
    and->arg_count = (i32)conds->count;
    and->args = conds->items;
    return and;
}

struct parting {
    expr_list common, first, second; /* conditions of both; of one alone */
    b8 whole;                        /* every row that meets `common` meets one of the others */
};

static bool are_apart(struct opt *o, const struct arm *a, const struct arm *b,
                      struct parting *out) {
    struct arena *arena = o->plan->arena;
    i32 most = 0;
    *out = (struct parting){0};
    for (i64 i = 0; i < a->conds.count; i++) {
        struct expr *cond = a->conds.items[i];
        bool both = has_cond(&b->conds, cond);
        VEC_PUSH(arena, both ? &out->common : &out->first, cond);
    }
    for (i64 i = 0; i < b->conds.count; i++) {
        if (!has_cond(&a->conds, b->conds.items[i])) {
            VEC_PUSH(arena, &out->second, b->conds.items[i]);
        }
    }
    for (i64 i = 0; i < out->first.count; i++) {
        for (i64 k = 0; k < out->second.count; k++) {
            most = MAX_OF(most, excludes(out->first.items[i], out->second.items[k]));
        }
    }
    out->whole = most == 2 && out->first.count == 1 && out->second.count == 1 &&
                 !expr_nullable(o->plan, out->first.items[0]);
    return most > 0;
}

/* --- one pass --- */

/* Columns of the shared relation as this use of it calls them; those that it did not read are added. */
static struct expr **names_of(struct opt *o, struct rel *use, const struct rel *other) {
    struct plan *plan = o->plan;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < use->out.count; i++) {
        map[use->shared.cols->items[i]] = expr_col(plan, use->out.items[i], -1);
    }
    for (i64 i = 0; i < other->out.count; i++) {
        u32 col = other->shared.cols->items[i];
        if (!map[col]) {
            u32 made = plan_col_like(plan, col);
            VEC_PUSH(plan->arena, use->shared.cols, col);
            VEC_PUSH(plan->arena, &use->out, made);
            map[col] = expr_col(plan, made, -1);
        }
    }
    return map;
}

static struct expr *one_of(struct arena *arena, struct expr *cond, struct expr *then,
                           struct expr *other) {
    if (expr_equal(then, other)) {
        return then;
    }
    struct expr *expr = expr_new(arena, EXPR_CASE, then->type, then->position);
    expr->arg_count = 3;
    expr->args = NEW_ARRAY(arena, struct expr *, 3);
    expr->args[0] = cond;
    expr->args[1] = then;
    expr->args[2] = other;
    return expr;
}

struct users {
    const struct rel *input;
    struct rel *last;
    i64 count;
};

static void count_user(struct rel *rel, void *arg) {
    struct users *u = arg;
    if (rel->kind == REL_SHARED && rel_input(rel) == u->input) {
        u->last = rel;
        u->count++;
    }
}

static void unite(struct opt *o, struct rel *rel, struct arm *a, const struct arm *b,
                  const struct parting *p) {
    struct plan *plan = o->plan;
    struct arena *arena = plan->arena;
    struct expr **map = names_of(o, a->use, b->use);
    struct rel *filter = rel_new(plan, REL_FILTER, a->use, NULL);
    struct expr *first = all_of(arena, &p->first);
    for (i64 i = 0; i < p->common.count; i++) {
        VEC_PUSH(arena, &filter->filter.conds, expr_map(arena, p->common.items[i], map));
    }
    if (!p->whole) {
        struct expr *or = expr_new(arena, EXPR_OR, type_of(TYPE_BOOLEAN), -1);
        or->arg_count = 2;
        or->args = NEW_ARRAY(arena, struct expr *, 2);
        or->args[0] = first;
        or->args[1] = all_of(arena, &p->second);
        VEC_PUSH(arena, &filter->filter.conds, expr_map(arena, or, map));
    }
    filter->rows = rel->rows;
    rel_become(plan, rel, REL_PROJECT, filter->filter.conds.count > 0 ? filter : a->use);
    for (i64 i = 0; i < rel->out.count; i++) {
        VEC_PUSH(arena, &rel->project.exprs,
                 expr_map(arena, one_of(arena, first, a->outs[i], b->outs[i]), map));
    }
    struct users users = {.input = rel_input(a->use)};
    rel_each(arena, plan->root, count_user, &users);
    if (users.count == 1) {
        rel_unshare(plan, users.last);
    }
}

static bool alike(const struct rel *rel, const struct arm *a, const struct arm *b) {
    bool same = true;
    for (i64 i = 0; i < rel->out.count; i++) {
        same = same && type_eq(a->outs[i]->type, b->outs[i]->type);
    }
    return same;
}

FALLIBLE pass_arms(struct opt *o) {
    rel_all list = opt_all_of(o, REL_UNION);
    for (i64 i = list.count; i-- > 0;) { /* from below: of three arms the first two come first */
        struct rel *rel = list.items[i];
        struct arm a, b;
        struct parting parting;
        const struct rel *shared = shared_by(rel->inputs[0]);
        if (shared && shared->kind != REL_FIX && shared == shared_by(rel->inputs[1]) &&
            take_arm(o, rel->inputs[0], &rel->arms.cols[0], &a) &&
            take_arm(o, rel->inputs[1], &rel->arms.cols[1], &b) && alike(rel, &a, &b) &&
            are_apart(o, &a, &b, &parting)) {
            unite(o, rel, &a, &b, &parting);
            opt_look_again(o);
        }
    }
    return arena_check(o->plan->arena, o->err);
}

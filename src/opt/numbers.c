/* numbers.c: rows that are asked for in the order of their numbers.
 *
 * Numbers of rows (row_number over all of them) serve mostly to order an answer, and to end it:
 *
 *     project a, b                    project a, b
 *       sort by i                       limit 10
 *         project number - 1 as i, …      sort by x desc, b
 *           filter number - 1 < 10          project …
 *             number by x desc, b             …
 *               …
 *
 * Where nothing else reads them nobody counts: rows are sorted by what numbered them, and a condition
 * that only the first numbers meet becomes a LIMIT. LogiQL says ORDER BY and LIMIT that way (seq).
 *
 * Where numbers are read besides, as when rows are joined to their numbers, or where nobody sorts by them, only the
 * first rows are numbered: those that a sort with a LIMIT gives.
 *
 * What lies between the two may drop rows by other conditions, but not both ways, and must not raise where
 * rows behind the limit are concerned. */
#include "opt/opt_int.h"

#include "codes/func.h"

struct numbering {
    struct opt *o;
    struct rel *reader, *sort, *window;
    VEC(struct rel *) between; /* projections and filters, from the sort down */
    u32 number;                /* the column */
    b8 *tainted;               /* by column: computed of it */
    struct expr **map;         /* by column: what it is of the window's columns */
    b8 bounded, drops;         /* conditions on numbers; on others */
    b8 stays;                  /* numbers stay: rows behind a bound need not be numbered */
    b8 found;                  /* a column of the expression at hand is tainted */
    i128 most;                 /* the greatest number that passes */
};

/* number + offset */
static bool is_shifted(const struct numbering *n, const struct expr *expr, i128 *out_offset) {
    if (expr->kind == EXPR_COL) {
        *out_offset = 0;
        return expr->col == n->number;
    }
    bool moves = expr->kind == EXPR_CALL && (expr->func == FUNC_ADD || expr->func == FUNC_SUB) &&
                 type_is_integer(expr->type) && expr->args[0]->kind == EXPR_COL &&
                 expr->args[0]->col == n->number && expr->args[1]->kind == EXPR_CONST &&
                 !expr->args[1]->is_null && type_is_integer(expr->args[1]->type);
    if (moves) {
        i128 by = const_exact(expr->args[1]);
        *out_offset = expr->func == FUNC_ADD ? by : -by;
    }
    return moves;
}

/* A condition that the numbers up to some one meet, and no others. */
static bool take_bound(struct numbering *n, const struct expr *cond) {
    bool less = cond->kind == EXPR_CALL && (cond->func == FUNC_LT || cond->func == FUNC_LE);
    bool more = cond->kind == EXPR_CALL && (cond->func == FUNC_GT || cond->func == FUNC_GE);
    i128 offset = 0;
    if (!less && !more) {
        return false;
    }
    const struct expr *what = cond->args[less ? 0 : 1];
    const struct expr *bound = cond->args[less ? 1 : 0];
    if (bound->kind != EXPR_CONST || bound->is_null || !type_is_integer(bound->type) ||
        !is_shifted(n, what, &offset)) {
        return false;
    }
    bool open = cond->func == FUNC_LT || cond->func == FUNC_GT;
    i128 most = const_exact(bound) - offset - open;
    n->most = n->bounded ? MIN_OF(n->most, most) : most;
    n->bounded = 1;
    return true;
}

static void note_use(u32 col, void *arg) {
    struct numbering *n = arg;
    n->found |= n->tainted[col];
}

/* Whether it is computed of numbers. */
static bool is_tainted(struct numbering *n, const struct expr *expr) {
    n->found = 0;
    expr_each_col(expr, note_use, n);
    return n->found;
}

static bool find_window(struct numbering *n, struct rel *at) {
    while (at->kind == REL_PROJECT || at->kind == REL_FILTER) {
        VEC_PUSH(n->o->plan->arena, &n->between, at);
        at = rel_input(at);
    }
    n->window = at;
    if (at->kind != REL_WINDOW || at->window.calls.count != 1 || at->window.keys.count > 0 ||
        at->window.order.count == 0 || at->window.calls.items[0].is_agg || rel_is_serial(at) ||
        at->window.calls.items[0].func != WINDOW_ROW_NUMBER) {
        return false;
    }
    n->number = at->window.calls.items[0].col;
    n->tainted[n->number] = 1;
    return true;
}

/* Looks at what lies between, from below; false: numbers are needed there. */
static bool look_between(struct numbering *n) {
    struct arena *arena = n->o->plan->arena;
    bool fine = true;
    for (i64 k = n->between.count; k-- > 0 && fine;) {
        struct rel *rel = n->between.items[k];
        for (i64 i = 0; rel->kind == REL_PROJECT && i < rel->project.exprs.count && fine; i++) {
            struct expr *expr = rel->project.exprs.items[i];
            u32 col = rel->out.items[i];
            n->tainted[col] = is_tainted(n, expr);
            n->map[col] = expr_map(arena, expr, n->map);
            bool raises = facts_can_raise(n->o, expr) || expr_is_volatile(expr);
            i128 offset = 0;
            bool moves = is_shifted(n, n->map[col], &offset);
            fine = (n->tainted[col] && (!n->stays || moves)) || !raises;
        }
        for (i64 i = 0; rel->kind == REL_FILTER && i < rel->filter.conds.count && fine; i++) {
            struct expr *cond = rel->filter.conds.items[i];
            bool tainted = is_tainted(n, cond);
            n->drops = n->drops || !tainted;
            bool bounds = tainted && take_bound(n, expr_map(arena, cond, n->map));
            bool harmless = !facts_can_raise(n->o, cond) && !expr_is_volatile(cond);
            fine = bounds || (harmless && (!tainted || n->stays));
        }
    }
    return fine && (n->stays || !(n->bounded && n->drops));
}

/* Whether the sort is by numbers, and who reads it by nothing that is computed of them. */
static bool fits(struct numbering *n) {
    i128 offset = 0;
    if (!find_window(n, rel_input(n->sort)) || !look_between(n)) {
        return false;
    }
    const struct order_key *key = &n->sort->sort.order.items[0];
    const struct expr *by = expr_map(n->o->plan->arena, key->expr, n->map);
    bool unread = true;
    for (i64 i = 0; i < n->reader->project.exprs.count; i++) {
        unread = unread && !is_tainted(n, n->reader->project.exprs.items[i]);
    }
    return unread && !key->descending && is_shifted(n, by, &offset);
}

struct carried { /* the columns that numbered the rows, as they are called above some operator */
    struct plan *plan;
    struct expr **map; /* by the window's columns */
    VEC(u32) cols;
};

static void note_col(u32 col, void *arg) {
    struct carried *c = arg;
    if (!c->map[col]) {
        c->map[col] = expr_col(c->plan, col, -1);
        VEC_PUSH(c->plan->arena, &c->cols, col);
    }
}

static u32 add_output(struct plan *plan, struct rel *project, u32 col) {
    for (i64 i = 0; i < project->project.exprs.count; i++) {
        const struct expr *expr = project->project.exprs.items[i];
        if (expr->kind == EXPR_COL && expr->col == col) {
            return project->out.items[i];
        }
    }
    u32 made = plan_col_like(plan, col);
    VEC_PUSH(plan->arena, &project->out, made);
    VEC_PUSH(plan->arena, &project->project.exprs, expr_col(plan, col, -1));
    return made;
}

/* Without numbers, and with what is carried. */
static void change_project(const struct numbering *n, struct rel *rel, struct carried *c) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->out.count; i++) {
        if (!n->tainted[rel->out.items[i]]) {
            rel->out.items[kept] = rel->out.items[i];
            rel->project.exprs.items[kept++] = rel->project.exprs.items[i];
        }
    }
    rel->out.count = rel->project.exprs.count = kept;
    for (i64 i = 0; i < c->cols.count; i++) {
        u32 col = c->cols.items[i];
        c->map[col] = expr_col(c->plan, add_output(c->plan, rel, c->map[col]->col), -1);
    }
}

static void pass_all(struct plan *plan, struct rel *rel) {
    const struct rel *input = rel_input(rel);
    rel->out.count = 0;
    for (i64 i = 0; i < input->out.count; i++) {
        VEC_PUSH(plan->arena, &rel->out, input->out.items[i]);
    }
}

static void change_filter(struct numbering *n, struct rel *rel) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->filter.conds.count; i++) {
        if (!is_tainted(n, rel->filter.conds.items[i])) {
            rel->filter.conds.items[kept++] = rel->filter.conds.items[i];
        }
    }
    rel->filter.conds.count = kept;
    pass_all(n->o->plan, rel);
}

static void change(struct numbering *n) {
    struct plan *plan = n->o->plan;
    struct carried c = {.plan = plan};
    order_list order = {0};
    c.map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < n->window->window.order.count; i++) {
        expr_each_col(n->window->window.order.items[i].expr, note_col, &c);
    }
    struct rel *above = n->between.count ? n->between.items[n->between.count - 1] : n->sort;
    above->inputs[0] = rel_input(n->window);
    for (i64 k = n->between.count; k-- > 0;) {
        struct rel *rel = n->between.items[k];
        above = k > 0 ? n->between.items[k - 1] : n->sort;
        if (rel->kind == REL_PROJECT) {
            change_project(n, rel, &c);
        } else {
            change_filter(n, rel);
            above->inputs[0] = rel->filter.conds.count > 0 ? rel : rel_input(rel);
        }
    }
    for (i64 i = 0; i < n->window->window.order.count; i++) {
        struct order_key key = n->window->window.order.items[i];
        key.expr = expr_map(plan->arena, key.expr, c.map);
        VEC_PUSH(plan->arena, &order, key);
    }
    n->sort->sort.order.items = order.items;
    n->sort->sort.order.count = n->sort->sort.order.cap = order.count;
    pass_all(plan, n->sort);
    if (n->bounded) {
        struct rel *limit = rel_new(plan, REL_LIMIT, n->sort, NULL);
        limit->limit.count = expr_new(plan->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
        const_set_exact(limit->limit.count, MAX_OF(n->most, 0));
        limit->rows = (i64)MAX_OF(MIN_OF(n->most, n->sort->rows), 0);
        n->reader->inputs[0] = limit;
    }
}

static FALLIBLE begin(struct opt *o, struct numbering *n) {
    n->tainted = NEW_ARRAY(o->plan->arena, b8, o->plan->cols.count + 1);
    n->map = NEW_ARRAY(o->plan->arena, struct expr *, o->plan->cols.count + 1);
    return arena_check(o->plan->arena, o->err);
}

/* Numbers that are read, but none behind a bound: only so many rows are numbered. */
static FALLIBLE bound_numbers(struct opt *o, struct rel *filter) {
    struct plan *plan = o->plan;
    struct numbering n = {.o = o, .stays = 1};
    TRY(begin(o, &n));
    bool fine = find_window(&n, filter) && rel_input(n.window)->kind != REL_LIMIT && look_between(&n);
    if (!fine || !n.bounded || n.most > I64_MAX) {
        return ERR_OK;
    }
    struct rel *sort = rel_new(plan, REL_SORT, rel_input(n.window), NULL);
    for (i64 i = 0; i < n.window->window.order.count; i++) {
        VEC_PUSH(plan->arena, &sort->sort.order, n.window->window.order.items[i]);
    }
    sort->rows = rel_input(n.window)->rows;
    struct rel *limit = rel_new(plan, REL_LIMIT, sort, NULL);
    limit->limit.count = expr_new(plan->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    const_set_exact(limit->limit.count, MAX_OF(n.most, 0));
    limit->rows = (i64)MAX_OF(MIN_OF(n.most, sort->rows), 0);
    rel_set_input(n.window, limit);
    return ERR_OK;
}

FALLIBLE pass_numbers(struct opt *o) {
    rel_all list = opt_all_of(o, REL_PROJECT);
    for (i64 i = 0; i < list.count; i++) {
        struct rel *sort = rel_input(list.items[i]);
        struct numbering n = {.o = o, .reader = list.items[i], .sort = sort};
        if (sort->kind == REL_SORT && sort->sort.order.count > 0) {
            TRY(begin(o, &n));
            if (fits(&n) && n.most <= I64_MAX) {
                change(&n);
            }
        }
    }
    list = opt_all_of(o, REL_FILTER);
    for (i64 i = 0; i < list.count; i++) {
        TRY(bound_numbers(o, list.items[i]));
    }
    return ERR_OK;
}

/* join_order.c: the order in which a group of inner joins is carried out.
 *
 * A group is a tree of joins with nothing between them. Its largest input drives the pipeline; the
 * others become build sides, each time the one that leaves the fewest rows among those an equality
 * connects to what is already joined. A cross product is taken only when nothing connects. The
 * result is left-deep, so the whole group is one pipeline of probes. Groups in which a condition
 * can raise keep the order they were written in, because that order decides which rows are
 * evaluated. */
#include "opt/opt_int.h"

struct edge {
    struct expr *a, *b;
    u64 a_mask, b_mask; /* leaves they need */
    bool placed;
};
struct residual {
    struct expr *expr;
    u64 mask;
    bool placed;
};
struct group {
    struct opt *o;
    VEC(struct rel *) leaves;
    VEC(struct edge) edges;
    VEC(struct residual) conds;
    u8 *leaf_of; /* column -> leaf + 1 */
    bool raises;
};

enum { MAX_LEAVES = 60 };

static bool is_inner(const struct rel *rel) {
    return rel->kind == REL_JOIN;
}

static void gather(struct group *g, struct rel *rel) {
    struct arena *arena = g->o->plan->arena;
    if (!is_inner(rel)) {
        VEC_PUSH(arena, &g->leaves, rel);
        return;
    }
    gather(g, rel->inputs[0]);
    gather(g, rel->inputs[1]);
    for (i64 i = 0; i < rel->left_keys.count; i++) {
        struct edge edge = {.a = rel->left_keys.items[i], .b = rel->right_keys.items[i]};
        g->raises = g->raises || facts_can_raise(g->o, edge.a) || facts_can_raise(g->o, edge.b);
        VEC_PUSH(arena, &g->edges, edge);
    }
    for (i64 i = 0; i < rel->conds.count; i++) {
        struct residual cond = {.expr = rel->conds.items[i]};
        g->raises = g->raises || facts_can_raise(g->o, cond.expr);
        VEC_PUSH(arena, &g->conds, cond);
    }
}

struct mask_walk {
    const u8 *leaf_of;
    u64 mask;
};

static void note_leaf(u32 col, void *arg) {
    struct mask_walk *w = arg;
    if (w->leaf_of[col]) {
        w->mask |= 1ULL << (w->leaf_of[col] - 1);
    }
}

static u64 expr_mask(const struct group *g, const struct expr *expr) {
    struct mask_walk w = {g->leaf_of, 0};
    expr_each_col(expr, note_leaf, &w);
    return w.mask;
}

static void find_masks(struct group *g) {
    g->leaf_of = NEW_ARRAY(g->o->plan->arena, u8, g->o->plan->cols.count + 1);
    for (i64 i = 0; i < g->leaves.count; i++) {
        for (i64 k = 0; k < g->leaves.items[i]->out.count; k++) {
            g->leaf_of[g->leaves.items[i]->out.items[k]] = (u8)(i + 1);
        }
    }
    for (i64 i = 0; i < g->edges.count; i++) {
        g->edges.items[i].a_mask = expr_mask(g, g->edges.items[i].a);
        g->edges.items[i].b_mask = expr_mask(g, g->edges.items[i].b);
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        g->conds.items[i].mask = expr_mask(g, g->conds.items[i].expr);
    }
}

typedef VEC(struct expr *) expr_list;

/* The keys that would join `leaf` to the set of leaves `done`. */
static void keys_between(const struct group *g, u64 done, u64 leaf, expr_list *left,
                         expr_list *right) {
    struct arena *arena = g->o->plan->arena;
    left->count = 0;
    right->count = 0;
    for (i64 i = 0; i < g->edges.count; i++) {
        const struct edge *e = &g->edges.items[i];
        bool forth = (e->a_mask & ~done) == 0 && e->b_mask == leaf;
        bool back = (e->b_mask & ~done) == 0 && e->a_mask == leaf;
        if (!e->placed && (forth || back)) {
            VEC_PUSH(arena, left, forth ? e->a : e->b);
            VEC_PUSH(arena, right, forth ? e->b : e->a);
        }
    }
}

static i64 choose_next(struct group *g, const struct rel *cur, u64 done) {
    i64 best = -1;
    bool best_connected = false;
    i64 best_rows = 0;
    expr_list left = {0};
    expr_list right = {0};
    for (i64 i = 0; i < g->leaves.count; i++) {
        const struct rel *leaf = g->leaves.items[i];
        if (done >> i & 1) {
            continue;
        }
        keys_between(g, done, 1ULL << i, &left, &right);
        bool connected = left.count > 0;
        i64 rows = estimate_join(g->o, cur->rows, leaf->rows, left.items, right.items, left.count);
        bool fewer = rows < best_rows ||
                     (rows == best_rows && leaf->rows < g->leaves.items[MAX_OF(best, 0)]->rows);
        if (best < 0 || (connected && !best_connected) || (connected == best_connected && fewer)) {
            best = i;
            best_connected = connected;
            best_rows = rows;
        }
    }
    return best;
}

/* Conditions whose columns are all there now. */
static void place_conds(struct group *g, struct rel *join, u64 done) {
    struct arena *arena = g->o->plan->arena;
    for (i64 i = 0; i < g->edges.count; i++) {
        struct edge *e = &g->edges.items[i];
        if (!e->placed && ((e->a_mask | e->b_mask) & ~done) == 0) {
            e->placed = true;
            VEC_PUSH(
                arena, &join->conds,
                expr_call(arena, FUNC_EQ, type_of(TYPE_BOOLEAN), e->a->position, 2, e->a, e->b));
        }
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        if (!g->conds.items[i].placed && (g->conds.items[i].mask & ~done) == 0) {
            g->conds.items[i].placed = true;
            VEC_PUSH(arena, &join->conds, g->conds.items[i].expr);
        }
    }
}

static struct rel *join_next(struct group *g, struct rel *cur, u64 done, i64 next) {
    struct arena *arena = g->o->plan->arena;
    struct rel *join = rel_new(g->o->plan, REL_JOIN, cur, g->leaves.items[next]);
    expr_list left = {0};
    expr_list right = {0};
    keys_between(g, done, 1ULL << next, &left, &right);
    for (i64 i = 0; i < left.count; i++) {
        VEC_PUSH(arena, &join->left_keys, left.items[i]);
        VEC_PUSH(arena, &join->right_keys, right.items[i]);
        for (i64 k = 0; k < g->edges.count; k++) {
            struct edge *e = &g->edges.items[k];
            bool same = (e->a == left.items[i] && e->b == right.items[i]) ||
                        (e->b == left.items[i] && e->a == right.items[i]);
            e->placed = e->placed || same;
        }
    }
    place_conds(g, join, done | 1ULL << next);
    join->join = join->left_keys.count + join->conds.count > 0 ? JOIN_INNER : JOIN_CROSS;
    join->rows = estimate_join(g->o, cur->rows, g->leaves.items[next]->rows, left.items,
                               right.items, left.count);
    return join;
}

static struct rel *order(struct opt *o, struct rel *rel);

static struct rel *order_group(struct opt *o, struct rel *rel) {
    struct group g = {.o = o};
    gather(&g, rel);
    if (g.raises || g.leaves.count > MAX_LEAVES) {
        rel->inputs[0] = order(o, rel->inputs[0]);
        rel->inputs[1] = order(o, rel->inputs[1]);
        return rel;
    }
    i64 driver = 0;
    for (i64 i = 0; i < g.leaves.count; i++) {
        g.leaves.items[i] = order(o, g.leaves.items[i]);
        estimate_rel(o, g.leaves.items[i]);
        driver = g.leaves.items[i]->rows > g.leaves.items[driver]->rows ? i : driver;
    }
    find_masks(&g);
    struct rel *cur = g.leaves.items[driver];
    u64 done = 1ULL << driver;
    for (i64 i = 1; i < g.leaves.count; i++) {
        i64 next = choose_next(&g, cur, done);
        cur = join_next(&g, cur, done, next);
        done |= 1ULL << next;
    }
    return cur;
}

static struct rel *order(struct opt *o, struct rel *rel) {
    if (is_inner(rel)) {
        return order_group(o, rel);
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        rel->inputs[i] = order(o, rel->inputs[i]);
    }
    return rel;
}

FALLIBLE pass_join_order(struct opt *o) {
    struct rel *old = o->plan->root;
    o->plan->root = rel_with_out(o->plan, order(o, old), old);
    return ERR_OK;
}

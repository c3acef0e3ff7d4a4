/* join_order.c: the order in which a group of inner joins is carried out.
 *
 * A group is a tree of inner joins with nothing between them; its leaves are whatever else there
 * is. Up to DP_LEAVES leaves every split of every connected set is tried (dynamic programming over
 * subsets) and the cheapest kept. Beyond that the pair that leaves the fewest rows is joined, again
 * and again (greedy). A join costs the rows it reads, builds and makes; the right side is built, which on
 * a GPU costs less where its keys are known to be unique: others become lists of rows. Products are
 * taken only where nothing connects.
 *
 * Rows of a set are the product of its leaves and of the shares its conditions keep. Several
 * equalities between the same two leaves count as a key of the smaller at most. Columns that are
 * equal form a class: any two of them can be a join's keys, whether the query compares them or not.
 * Each join compares one pair of those it brings together. Of the values of a class the most
 * frequent, those of its member with the fewest, are counted once. A class has at most one column
 * of a leaf, since nothing compares two within.
 *
 * Joins that form a cycle, and of which pairs outgrow the inputs in the best order, are ordered by
 * columns instead.
 *
 * In a recursion a leaf that reads the rows of the last round is joined anew every round; what is
 * built without such a leaf is built once for all rounds, and what is built of all rows so far gets
 * those of the last round.
 *
 * A condition that can raise takes no part: it is tested above the group, where only rows are left
 * that meet all the others. */
#include "opt/opt_int.h"

#include "codes/func.h"

enum { MAX_LEAVES = 64, DP_LEAVES = 11 };
static const f64 ROUNDS = 10.0; /* of a recursion; nobody knows */
/* What a row that is built costs, where one that is looked up costs 1: with keys known to be unique,
 * and with others. On a GPU 0.017 ns against 0.014, and 0.06 for others, of which lists are made
 * (EXPLAIN ANALYZE of TPC-H 9, SF 100). */
static const f64 BUILD_COSTS[2][2] = {{2.0, 2.0}, {1.25, 4.0}};

struct edge { /* an equality between two sets of leaves */
    struct expr *a, *b;
    u64 a_mask, b_mask;
    b8 null_safe;
    b8 placed;
    b8 in_class;
};
struct member { /* of a class of equal columns */
    struct expr *expr;
    i64 leaf;
    f64 distinct;
    b8 unique; /* among the rows of its leaf */
};
struct class {
    u64 mask; /* its members' leaves */
    b8 closed;
    VEC(struct member) members;
};
struct residual {
    struct expr *expr;
    u64 mask;
    f64 share;
    b8 placed;
};
struct group {
    struct opt *o;
    VEC(struct rel *) leaves;
    VEC(struct edge) edges;
    VEC(struct class) classes;
    VEC(struct residual) conds;
    VEC(struct expr *) late; /* conditions that can raise, as written */
    u8 *leaf_of;             /* column -> leaf + 1 */
    u64 near[MAX_LEAVES];    /* leaves each is connected to */
    u64 works;               /* leaves that read rows of a recursion around the group */
    u64 grows;               /* ... of which an index is kept, and gets what is new */
    f64 *share; /* leaves × leaves: of the product, what equalities between the two keep */
};

static void gather(struct group *g, struct rel *rel) {
    struct arena *arena = g->o->plan->arena;
    if (!opt_is_inner(rel)) {
        VEC_PUSH(arena, &g->leaves, rel);
        return;
    }
    gather(g, rel_left(rel));
    gather(g, rel_right(rel));
    for (i64 i = 0; i < rel->join.left_keys.count; i++) {
        struct edge edge = {.a = rel->join.left_keys.items[i], .b = rel->join.right_keys.items[i]};
        edge.null_safe = i < rel->join.null_safe.count && rel->join.null_safe.items[i];
        VEC_PUSH(arena, &g->edges, edge);
    }
    for (i64 i = 0; i < rel->join.conds.count; i++) {
        struct residual cond = {.expr = rel->join.conds.items[i]};
        if (facts_can_raise(g->o, cond.expr)) {
            VEC_PUSH(arena, &g->late, cond.expr);
        } else {
            VEC_PUSH(arena, &g->conds, cond);
        }
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

static i64 leaf_number(u64 mask) {
    return __builtin_ctzll(mask);
}

static bool is_single(u64 mask) {
    return mask != 0 && (mask & (mask - 1)) == 0;
}

static f64 *share_of(const struct group *g, i64 i, i64 k) {
    return &g->share[i * g->leaves.count + k];
}

static void connect(struct group *g, u64 all) {
    for (i64 i = 0; i < g->leaves.count; i++) {
        if (all >> i & 1) {
            g->near[i] |= all & ~(1ULL << i);
        }
    }
}

/* classes */

static struct class *class_of(struct group *g, const struct expr *col) {
    for (i64 i = 0; i < g->classes.count; i++) {
        struct class *class = &g->classes.items[i];
        for (i64 k = 0; !class->closed && k < class->members.count; k++) {
            if (class->members.items[k].expr->col == col->col) {
                return class;
            }
        }
    }
    return NULL;
}

static void join_class(struct group *g, struct class *class, struct expr *col) {
    i64 leaf = leaf_number(expr_mask(g, col));
    struct rel *rel = g->leaves.items[leaf];
    struct member member = {col, leaf, (f64)estimate_distinct(g->o, col, rel->rows),
                            estimate_unique(g->o->plan, rel, &col, NULL, 1)};
    VEC_PUSH(g->o->plan->arena, &class->members, member);
    class->mask |= 1ULL << leaf;
}

static struct class *class_new(struct group *g, struct edge *e) {
    struct class fresh = {0};
    VEC_PUSH(g->o->plan->arena, &g->classes, fresh);
    struct class *class = &g->classes.items[g->classes.count - 1];
    join_class(g, class, e->a);
    join_class(g, class, e->b);
    return class;
}

static void classify(struct group *g, struct edge *e) {
    bool plain = is_single(e->a_mask) && is_single(e->b_mask) && e->a_mask != e->b_mask &&
                 e->a->kind == EXPR_COL && e->b->kind == EXPR_COL && !e->null_safe;
    if (!plain) {
        return;
    }
    e->in_class = 1;
    struct class *a = class_of(g, e->a);
    struct class *b = class_of(g, e->b);
    u64 a_mask = a ? a->mask : e->a_mask;
    u64 b_mask = b ? b->mask : e->b_mask;
    if (a && a == b) {
        return;
    }
    if ((a_mask & b_mask) != 0 || !type_eq(e->a->type, e->b->type)) {
        class_new(g, e)->closed = 1; /* two columns of one leaf: an equality of its own */
    } else if (!a && !b) {
        class_new(g, e);
    } else if (!a || !b) {
        join_class(g, a ? a : b, a ? e->b : e->a);
    } else {
        for (i64 i = 0; i < b->members.count; i++) {
            VEC_PUSH(g->o->plan->arena, &a->members, b->members.items[i]);
        }
        a->mask |= b->mask;
        b->mask = 0;
        b->members.count = 0;
    }
}

/* Of the members in a set, the fewest distinct values. */
static f64 fewest(const struct class *class, u64 set) {
    f64 least = 0.0;
    for (i64 i = 0; i < class->members.count; i++) {
        const struct member *m = &class->members.items[i];
        if (set >> m->leaf & 1) {
            least = least > 0.0 ? MIN_OF(least, m->distinct) : m->distinct;
        }
    }
    return MAX_OF(least, 1.0);
}

static bool crosses(const struct class *class, u64 left, u64 right) {
    return (class->mask & left) && (class->mask & right);
}

/* The leaf of a side that most of the classes between two sides have a column of. */
static i64 partner(const struct group *g, u64 side, u64 left, u64 right, u64 within) {
    i64 best = -1;
    i64 most = 0;
    for (u64 rest = side & within; rest; rest &= rest - 1) {
        i64 leaf = leaf_number(rest);
        i64 count = 0;
        for (i64 i = 0; i < g->classes.count; i++) {
            const struct class *class = &g->classes.items[i];
            count += crosses(class, left, right) && (class->mask >> leaf & 1);
        }
        if (count > most) {
            most = count;
            best = leaf;
        }
    }
    return best;
}

/* What the classes keep of the product of two sets. */
static f64 class_share(const struct group *g, u64 left, u64 right) {
    f64 share = 1.0;
    f64 product[MAX_LEAVES];
    u64 seen = 0;
    for (i64 i = 0; i < g->classes.count; i++) {
        const struct class *class = &g->classes.items[i];
        if (!crosses(class, left, right)) {
            continue;
        }
        f64 one = 1.0 / MAX_OF(fewest(class, left), fewest(class, right));
        i64 x = partner(g, left, left, right, class->mask);
        i64 y = partner(g, right, left, right, class->mask);
        i64 at = estimate_base(g->leaves.items[x]) < estimate_base(g->leaves.items[y]) ? x : y;
        if (seen >> at & 1) { /* several columns: no more values than rows */
            f64 key = 1.0 / (f64)estimate_base(g->leaves.items[at]);
            f64 both = MAX_OF(product[at] * one, MIN_OF(key, product[at]));
            share *= both / product[at];
            product[at] = both;
        } else {
            share *= one;
            product[at] = one;
        }
        seen |= 1ULL << at;
    }
    return share;
}

static void note_edge(struct group *g, const struct edge *e) {
    connect(g, e->a_mask | e->b_mask);
    if (!is_single(e->a_mask) || !is_single(e->b_mask) || e->a_mask == e->b_mask) {
        return;
    }
    i64 x = leaf_number(e->a_mask);
    i64 y = leaf_number(e->b_mask);
    const struct rel *a = g->leaves.items[x];
    const struct rel *b = g->leaves.items[y];
    i64 values =
        MAX_OF(estimate_distinct(g->o, e->a, a->rows), estimate_distinct(g->o, e->b, b->rows));
    f64 most = 1.0 / (f64)MIN_OF(estimate_base(a), estimate_base(b));
    f64 share = *share_of(g, x, y) / (f64)values;
    if (*share_of(g, x, y) < 1.0) { /* several columns: no more values than rows */
        share = MAX_OF(share, MIN_OF(most, *share_of(g, x, y)));
    }
    *share_of(g, x, y) = share;
    *share_of(g, y, x) = share;
}

/* Leaves that nothing connects to the others get a neighbour, so that every set has a plan. */
static void connect_all(struct group *g) {
    u64 all = g->leaves.count == 64 ? ~0ULL : (1ULL << g->leaves.count) - 1;
    u64 seen = 1;
    for (;;) {
        u64 grown = seen;
        for (i64 i = 0; i < g->leaves.count; i++) {
            grown |= seen >> i & 1 ? g->near[i] : 0;
        }
        if (grown != seen) {
            seen = grown;
            continue;
        }
        if (seen == all) {
            return;
        }
        i64 in = -1;
        i64 out = -1;
        for (i64 i = 0; i < g->leaves.count; i++) {
            i64 *best = seen >> i & 1 ? &in : &out;
            if (*best < 0 || g->leaves.items[i]->rows < g->leaves.items[*best]->rows) {
                *best = i;
            }
        }
        g->near[in] |= 1ULL << out;
        g->near[out] |= 1ULL << in;
    }
}

static void prepare(struct group *g) {
    i64 n = g->leaves.count;
    g->leaf_of = NEW_ARRAY(g->o->plan->arena, u8, g->o->plan->cols.count + 1);
    g->share = NEW_ARRAY(g->o->plan->arena, f64, n * n);
    for (i64 i = 0; i < n; i++) {
        for (i64 k = 0; k < g->leaves.items[i]->out.count; k++) {
            g->leaf_of[g->leaves.items[i]->out.items[k]] = (u8)(i + 1);
        }
        for (i64 k = 0; k < n; k++) {
            *share_of(g, i, k) = 1.0;
        }
    }
    for (i64 i = 0; i < g->edges.count; i++) {
        struct edge *e = &g->edges.items[i];
        e->a_mask = expr_mask(g, e->a);
        e->b_mask = expr_mask(g, e->b);
        classify(g, e);
        if (!e->in_class) {
            note_edge(g, e);
        }
    }
    for (i64 i = 0; i < g->classes.count; i++) {
        connect(g, g->classes.items[i].mask);
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        struct residual *cond = &g->conds.items[i];
        cond->mask = expr_mask(g, cond->expr);
        cond->share = estimate_residual(g->o, cond->expr);
        struct edge as_edge = {.a_mask = cond->mask, .b_mask = cond->mask};
        note_edge(g, &as_edge);
    }
    connect_all(g);
}

/* building what was chosen */

static struct expr *make(struct arena *arena, enum expr_kind kind, i32 count, struct expr **args) {
    struct expr *expr = expr_new(arena, kind, type_of(TYPE_BOOLEAN), -1);
    expr->arg_count = count;
    expr->args = NEW_ARRAY(arena, struct expr *, count);
    memcpy(expr->args, args, sizeof(struct expr *) * (size_t)count);
    return expr;
}

/* An equality that is no key here. */
static struct expr *edge_cond(struct arena *arena, const struct edge *e) {
    struct expr *equal =
        expr_call(arena, FUNC_EQ, type_of(TYPE_BOOLEAN), e->a->position, 2, e->a, e->b);
    if (!e->null_safe) {
        return equal;
    }
    struct expr *sides[2] = {e->a, e->b};
    struct expr *a_null = make(arena, EXPR_IS_NULL, 1, &sides[0]);
    struct expr *b_null = make(arena, EXPR_IS_NULL, 1, &sides[1]);
    struct expr *no = expr_new(arena, EXPR_CONST, type_of(TYPE_BOOLEAN), -1);
    return make(arena, EXPR_CASE, 5, (struct expr *[]){a_null, b_null, b_null, no, equal});
}

/* The member with the most values, which is a key if one of them is. */
static struct expr *member_in(const struct class *class, u64 set) {
    const struct member *best = NULL;
    for (i64 i = 0; i < class->members.count; i++) {
        const struct member *m = &class->members.items[i];
        if ((set >> m->leaf & 1) && (!best || m->distinct > best->distinct)) {
            best = m;
        }
    }
    return best->expr;
}

static bool has_member(const struct class *class, const struct expr *col) {
    for (i64 i = 0; i < class->members.count; i++) {
        if (class->members.items[i].expr->col == col->col) {
            return true;
        }
    }
    return false;
}

static struct expr *member_of(const struct class *class, i64 leaf) {
    for (i64 i = 0; i < class->members.count; i++) {
        if (class->members.items[i].leaf == leaf) {
            return class->members.items[i].expr;
        }
    }
    return NULL;
}

/* The leaf whose rows the others are joined to: what it has is there before anything is looked up. */
static i64 first_leaf(const struct group *g, const struct rel *rel) {
    for (;; rel = rel_left(rel)) {
        for (i64 i = 0; i < g->leaves.count; i++) {
            if (g->leaves.items[i] == rel) {
                return i;
            }
        }
    }
}

/* One equality of a class's columns on both sides: between the leaves that have columns of most of
 * the classes that meet here, whose keys may be of several columns; of a single class the one that
 * is written, with the first leaf's column in place of another one that is looked up. */
static void place_class(struct group *g, const struct class *class, struct rel *join, u64 left,
                        u64 right) {
    struct expr *a = member_in(class, left);
    struct expr *b = member_in(class, right);
    i64 meeting = 0;
    for (i64 i = 0; i < g->classes.count; i++) {
        meeting += crosses(&g->classes.items[i], left, right);
    }
    if (meeting > 1) {
        a = member_of(class, partner(g, left, left, right, class->mask));
        b = member_of(class, partner(g, right, left, right, class->mask));
    }
    for (i64 i = meeting > 1 ? 0 : g->edges.count; i-- > 0;) {
        const struct edge *e = &g->edges.items[i];
        if (!e->in_class || !has_member(class, e->a) || !has_member(class, e->b)) {
            continue;
        }
        bool forth = !(e->a_mask & ~left) && !(e->b_mask & ~right);
        bool back = !(e->b_mask & ~left) && !(e->a_mask & ~right);
        a = forth ? e->a : back ? e->b : a;
        b = forth ? e->b : back ? e->a : b;
    }
    struct expr *first = meeting > 1 ? NULL : member_of(class, first_leaf(g, rel_left(join)));
    a = first ? first : a;
    VEC_PUSH(g->o->plan->arena, &join->join.left_keys, a);
    VEC_PUSH(g->o->plan->arena, &join->join.right_keys, b);
    VEC_PUSH(g->o->plan->arena, &join->join.null_safe, (b8)0);
}

static void place(struct group *g, struct rel *join, u64 left, u64 right) {
    struct arena *arena = g->o->plan->arena;
    u64 both = left | right;
    bool safe = false;
    for (i64 i = 0; i < g->classes.count; i++) {
        if (crosses(&g->classes.items[i], left, right)) {
            place_class(g, &g->classes.items[i], join, left, right);
        }
    }
    for (i64 i = 0; i < g->edges.count; i++) {
        struct edge *e = &g->edges.items[i];
        if (e->placed || e->in_class || ((e->a_mask | e->b_mask) & ~both) != 0) {
            continue;
        }
        bool forth = e->a_mask && e->b_mask && !(e->a_mask & ~left) && !(e->b_mask & ~right);
        bool back = e->a_mask && e->b_mask && !(e->b_mask & ~left) && !(e->a_mask & ~right);
        e->placed = 1;
        if (!forth && !back) {
            VEC_PUSH(arena, &join->join.conds, edge_cond(arena, e));
            continue;
        }
        VEC_PUSH(arena, &join->join.left_keys, forth ? e->a : e->b);
        VEC_PUSH(arena, &join->join.right_keys, forth ? e->b : e->a);
        VEC_PUSH(arena, &join->join.null_safe, e->null_safe);
        safe = safe || e->null_safe;
    }
    if (!safe) {
        join->join.null_safe.count = 0;
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        struct residual *cond = &g->conds.items[i];
        if (!cond->placed && (cond->mask & ~both) == 0) {
            cond->placed = 1;
            VEC_PUSH(arena, &join->join.conds, cond->expr);
        }
    }
}

static struct rel *make_join(struct group *g, struct rel *left, struct rel *right, u64 left_mask,
                             u64 right_mask, f64 rows) {
    struct rel *join = rel_new(g->o->plan, REL_JOIN, left, right);
    place(g, join, left_mask, right_mask);
    join->join.kind =
        join->join.left_keys.count + join->join.conds.count > 0 ? JOIN_INNER : JOIN_CROSS;
    join->rows = rows < 1.0 ? 1 : rows > 1e18 ? (i64)1e18 : (i64)rows;
    return join;
}

/* Whether the keys of a set that is built are unique: those of one leaf are, and the others give its
 * rows no more matches than one. */
static bool builds_unique(const struct group *g, u64 left, u64 right, f64 rows) {
    for (i64 i = 0; i < g->classes.count; i++) {
        const struct class *class = &g->classes.items[i];
        for (i64 k = 0; k < class->members.count && crosses(class, left, right); k++) {
            const struct member *m = &class->members.items[k];
            if (m->unique && (right >> m->leaf & 1) &&
                rows <= 1.01 * (f64)MAX_OF(g->leaves.items[m->leaf]->rows, 1)) {
                return true;
            }
        }
    }
    return false;
}

/* What it costs to join, building the right side. */
static f64 join_cost(const struct group *g, f64 left, f64 right, f64 out, bool connected,
                     bool unique) {
    f64 cost = left + BUILD_COSTS[g->o->plan->for_gpu][!unique] * right + out;
    return connected ? cost : cost + left * right;
}

struct search { /* for rows of a recursion that is not part of what is searched */
    b8 *within; /* by its number */
    bool works;
};

static void note_fix(struct rel *rel, void *arg) {
    struct search *s = arg;
    if (rel->kind == REL_FIX) {
        s->within[rel->fix.number] = 1;
    }
}

static void note_work(struct rel *rel, void *arg) {
    struct search *s = arg;
    s->works = s->works || (rel->kind == REL_WORK && !s->within[rel->work.fix]);
}

/* Rows of a recursion so far, each as it is. */
static bool is_growing(const struct rel *rel) {
    while (rel->kind == REL_FILTER || rel->kind == REL_PROJECT) {
        rel = rel_input(rel);
    }
    return rel->kind == REL_WORK && rel->work.part != WORK_DELTA;
}

bool opt_reads_rounds(struct opt *o, struct rel *rel) {
    struct plan *plan = o->plan;
    if (plan->fix_count == 0) {
        return false;
    }
    struct search s = {NEW_ARRAY(plan->arena, b8, plan->fix_count + 1), false};
    rel_each(plan->arena, rel, note_fix, &s);
    rel_each(plan->arena, rel, note_work, &s);
    return s.works;
}

static void note_works(struct group *g) {
    for (i64 i = 0; i < g->leaves.count; i++) {
        bool works = opt_reads_rounds(g->o, g->leaves.items[i]);
        g->works |= works ? 1ULL << i : 0;
        g->grows |= works && is_growing(g->leaves.items[i]) ? 1ULL << i : 0;
    }
}

/* How often a side is built, as a share of the rounds; of one that grows, which part of it is. */
static f64 build_share(const struct group *g, u64 right) {
    bool grows = is_single(right) && (g->grows & right);
    return g->works && (grows || !(g->works & right)) ? 1.0 / ROUNDS : 1.0;
}

/* dynamic programming */

struct state {
    f64 cost; /* below 0: none yet */
    f64 rows;
    u32 left; /* leaves of the left input; 0 for a leaf */
};

static u64 neighbours(const struct group *g, u64 set) {
    u64 near = 0;
    for (u64 rest = set; rest; rest &= rest - 1) {
        near |= g->near[leaf_number(rest)];
    }
    return near & ~set;
}

/* Rows of a set, from those of the set without its highest leaf. */
static f64 set_rows(const struct group *g, const struct state *states, u64 set) {
    i64 top = 63 - __builtin_clzll(set);
    u64 rest = set & ~(1ULL << top);
    f64 rows = (f64)MAX_OF(g->leaves.items[top]->rows, 1);
    if (rest) {
        rows *= states[rest].rows;
    }
    for (u64 at = rest; at; at &= at - 1) {
        rows *= *share_of(g, top, leaf_number(at));
    }
    rows *= class_share(g, rest, 1ULL << top);
    for (i64 i = 0; i < g->conds.count; i++) {
        u64 mask = g->conds.items[i].mask;
        if ((mask & ~set) == 0 && (mask >> top & 1)) {
            rows *= g->conds.items[i].share;
        }
    }
    return rows;
}

static bool has_edge(const struct group *g, u64 left, u64 right) {
    for (i64 i = 0; i < g->classes.count; i++) {
        if (crosses(&g->classes.items[i], left, right)) {
            return true;
        }
    }
    for (u64 rest = left; rest; rest &= rest - 1) {
        i64 i = leaf_number(rest);
        for (u64 other = right & g->near[i]; other; other &= other - 1) {
            if (*share_of(g, i, leaf_number(other)) < 1.0) {
                return true;
            }
        }
    }
    return false;
}

static void try_splits(const struct group *g, struct state *states, u64 set) {
    struct state *best = &states[set];
    for (u64 left = (set - 1) & set; left; left = (left - 1) & set) {
        u64 right = set & ~left;
        const struct state *a = &states[left];
        const struct state *b = &states[right];
        if (a->cost < 0 || b->cost < 0 || !(neighbours(g, left) & right)) {
            continue;
        }
        f64 share = build_share(g, right);
        f64 cost = a->cost + b->cost * share +
                   join_cost(g, a->rows, b->rows * share, best->rows, has_edge(g, left, right),
                             builds_unique(g, left, right, b->rows));
        if (best->cost < 0 || cost < best->cost) {
            best->cost = cost;
            best->left = (u32)left;
        }
    }
}

static struct rel *build_set(struct group *g, const struct state *states, u64 set) {
    u64 left = states[set].left;
    if (left == 0) {
        return g->leaves.items[leaf_number(set)];
    }
    u64 right = set & ~left;
    struct rel *a = build_set(g, states, left);
    struct rel *b = build_set(g, states, right);
    return make_join(g, a, b, left, right, states[set].rows);
}

/* greedy */

struct part {
    struct rel *rel; /* NULL: joined into another */
    u64 mask;
    u64 near;
    f64 rows;
};

/* Of building one part and looking up the rows of another in it. */
static f64 build_cost(const struct group *g, const struct part *built, const struct part *other) {
    return join_cost(g, other->rows, built->rows * build_share(g, built->mask), 0.0, true,
                     builds_unique(g, other->mask, built->mask, built->rows));
}

/* Part y goes into x. */
static void merge_parts(struct group *g, struct part *parts, i64 x, i64 y, f64 rows) {
    parts[x].mask |= parts[y].mask;
    parts[x].near = (parts[x].near | parts[y].near) & ~parts[x].mask;
    parts[x].rows = rows;
    parts[y].rel = NULL;
    for (i64 i = 0; i < g->leaves.count; i++) {
        *share_of(g, x, i) *= *share_of(g, y, i);
        *share_of(g, i, x) = *share_of(g, x, i);
    }
}

static struct rel *join_parts(struct group *g, const struct part *a, const struct part *b, f64 rows) {
    bool swap = build_cost(g, b, a) > build_cost(g, a, b);
    const struct part *left = swap ? b : a, *right = swap ? a : b;
    return make_join(g, left->rel, right->rel, left->mask, right->mask, rows);
}

static struct part *parts_new(const struct group *g) {
    struct part *parts = NEW_ARRAY(g->o->plan->arena, struct part, g->leaves.count);
    for (i64 i = 0; i < g->leaves.count; i++) {
        struct rel *leaf = g->leaves.items[i];
        parts[i] = (struct part){leaf, 1ULL << i, g->near[i], (f64)MAX_OF(leaf->rows, 1)};
    }
    return parts;
}

/* The two parts whose join leaves the fewest rows. */
static f64 least_pair(struct group *g, const struct part *parts, i64 *out_x, i64 *out_y) {
    i64 n = g->leaves.count;
    f64 best = 0;
    *out_x = -1;
    for (i64 x = 0; x < n; x++) {
        for (i64 y = x + 1; y < n; y++) {
            if (!parts[x].rel || !parts[y].rel || !(parts[x].near & parts[y].mask)) {
                continue;
            }
            f64 rows = parts[x].rows * parts[y].rows * *share_of(g, x, y) *
                       class_share(g, parts[x].mask, parts[y].mask);
            if (*out_x < 0 || rows < best) {
                *out_x = x;
                *out_y = y;
                best = rows;
            }
        }
    }
    return best;
}

static struct rel *order_greedy(struct group *g) {
    struct part *parts = parts_new(g);
    i64 x = 0, y = 0;
    for (i64 step = 1; step < g->leaves.count; step++) {
        f64 rows = least_pair(g, parts, &x, &y);
        parts[x].rel = join_parts(g, &parts[x], &parts[y], rows);
        merge_parts(g, parts, x, y, rows);
    }
    return parts[x].rel;
}

/* The most rows that a join below the last one gives in that order. */
static f64 greedy_most(struct group *g) {
    i64 n = g->leaves.count, x = 0, y = 0;
    struct part *parts = parts_new(g);
    f64 *shares = NEW_ARRAY(g->o->plan->arena, f64, n * n);
    memcpy(shares, g->share, (size_t)(n * n) * sizeof(f64));
    f64 most = 0;
    for (i64 step = 1; step + 1 < n; step++) {
        f64 rows = least_pair(g, parts, &x, &y);
        most = MAX_OF(most, rows);
        merge_parts(g, parts, x, y, rows);
    }
    memcpy(g->share, shares, (size_t)(n * n) * sizeof(f64));
    return most;
}

/* cycles */

/* Leaves that are left when those are taken away, again and again, whose columns that others have,
 * too, are all in one of the others: none where the joins form a tree. */
static u64 cyclic_leaves(const struct group *g) {
    u64 left = g->leaves.count == 64 ? ~0ULL : (1ULL << g->leaves.count) - 1;
    for (u64 before = 0; before != left;) {
        before = left;
        for (u64 rest = left; rest; rest &= rest - 1) {
            u64 own = rest & -rest;
            u64 holders = left & ~own; /* leaves that have all it shares */
            for (i64 i = 0; i < g->classes.count; i++) {
                u64 mask = g->classes.items[i].mask;
                bool shared = (mask & own) && (mask & left & ~own);
                holders &= shared ? mask : ~0ULL;
            }
            left &= holders || left == own ? ~own : ~0ULL;
        }
    }
    return left;
}

/* Columns that are bound when these leaves are joined, as classes. */
static u64 classes_of(const struct group *g, u64 leaves) {
    u64 bound = 0;
    for (i64 i = 0; i < g->classes.count; i++) {
        bound |= g->classes.items[i].mask & leaves ? 1ULL << i : 0;
    }
    return bound;
}

/* Of the leaves that are not joined yet, those that bind nothing, or only this class besides. */
static u64 closed_leaves(const struct group *g, u64 joined, u64 bound) {
    u64 closed = 0;
    for (i64 i = 0; i < g->leaves.count; i++) {
        u64 own = classes_of(g, 1ULL << i);
        closed |= !(joined >> i & 1) && own && !(own & ~bound) ? 1ULL << i : 0;
    }
    return closed;
}

/* The class whose values most leaves decide together; the leaves. */
static u64 next_leaves(const struct group *g, u64 joined) {
    u64 bound = classes_of(g, joined);
    u64 best = closed_leaves(g, joined, bound);
    for (i64 i = 0; i < g->classes.count && !best; i++) {
        if (bound >> i & 1) {
            continue;
        }
        u64 leaves = closed_leaves(g, joined, bound | 1ULL << i);
        best = __builtin_popcountll(leaves) > 1 ? leaves : best;
    }
    for (i64 i = 0; i < g->leaves.count && !best; i++) { /* a neighbour, or any */
        bool near = (g->near[i] & joined) != 0;
        best = near && !(joined >> i & 1) ? 1ULL << i : best;
    }
    return best;
}

static f64 grown_rows(const struct group *g, f64 rows, u64 joined, i64 leaf) {
    u64 set = joined | 1ULL << leaf;
    rows *= (f64)MAX_OF(g->leaves.items[leaf]->rows, 1) * class_share(g, joined, 1ULL << leaf);
    for (u64 at = joined; at; at &= at - 1) {
        rows *= *share_of(g, leaf, leaf_number(at));
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        u64 mask = g->conds.items[i].mask;
        rows *= !(mask & ~set) && (mask & ~joined) ? g->conds.items[i].share : 1.0;
    }
    return rows;
}

/* How many rows of a leaf a row of the others is expected to meet by its bound columns alone. */
static f64 run_length(const struct group *g, i64 leaf, u64 bound) {
    f64 rows = (f64)MAX_OF(g->leaves.items[leaf]->rows, 1);
    for (i64 i = 0; i < g->classes.count; i++) {
        const struct class *class = &g->classes.items[i];
        bool keys = (bound >> i & 1) && (class->mask >> leaf & 1);
        rows /= keys ? fewest(class, 1ULL << leaf) : 1.0;
    }
    return MAX_OF(rows, 1.0);
}

/* What is made before the first row is joined: sorted rows, each once for all leaves that want the same. */
struct tries {
    u64 tables[MAX_LEAVES]; /* 0: not one that is known */
    u32 cols[MAX_LEAVES];
    i64 count;
    i64 work; /* of those that come in their order, and of those that have to be sorted */
};
enum { WORK_BUILD = 1, WORK_SORT = 4 };

static const struct scan_col *scanned(const struct rel *rel, u32 col) {
    for (i64 i = 0; rel->kind == REL_SCAN && i < rel->scan.cols.count; i++) {
        if (rel->scan.cols.items[i].col == col) {
            return &rel->scan.cols.items[i];
        }
    }
    return NULL;
}

/* A leaf that is looked up by those of its columns that are bound. */
static void add_trie(const struct group *g, i64 leaf, u64 bound, struct tries *io) {
    struct rel *rel = g->leaves.items[leaf];
    bool sorted = false;
    u64 table = 0;
    u32 at = 0;
    for (i64 i = 0; i < g->classes.count; i++) {
        const struct class *class = &g->classes.items[i];
        for (i64 k = 0; (bound >> i & 1) && k < class->members.count; k++) {
            const struct member *m = &class->members.items[k];
            const struct scan_col *col =
                m->leaf == leaf && m->expr->kind == EXPR_COL ? scanned(rel, m->expr->col) : NULL;
            sorted = sorted || (m->leaf == leaf && opt_is_sorted(rel, m->expr));
            table = col ? rel->scan.table_id : table;
            at = col ? col->table_col : at;
        }
    }
    for (i64 i = 0; i < io->count && table; i++) {
        if (io->tables[i] == table && io->cols[i] == at) {
            return;
        }
    }
    io->tables[io->count] = table;
    io->cols[io->count++] = at;
    io->work += sorted ? WORK_BUILD : WORK_SORT;
}

/* What it costs to begin with a leaf: for every column that is bound, the rows so far times the
 * shortest list of its values. *out_work: before that. */
static f64 around_cost(const struct group *g, i64 first, i64 *out_work) {
    struct tries tries = {.count = 0};
    u64 joined = 1ULL << first;
    f64 rows = (f64)MAX_OF(g->leaves.items[first]->rows, 1);
    f64 cost = rows;
    for (u64 next = next_leaves(g, joined); next; next = next_leaves(g, joined)) {
        u64 bound = classes_of(g, joined);
        f64 shortest = run_length(g, leaf_number(next), bound);
        f64 before = rows;
        for (; next; next &= next - 1) {
            i64 leaf = leaf_number(next);
            shortest = MIN_OF(shortest, run_length(g, leaf, bound));
            add_trie(g, leaf, bound, &tries);
            rows = grown_rows(g, rows, joined, leaf);
            joined |= 1ULL << leaf;
        }
        cost += before * shortest;
    }
    *out_work = tries.work;
    return cost;
}

/* Joins that form a cycle, a column at a time: all leaves that decide its values follow each other,
 * so that they can meet (meet.c). In a recursion rows of the last round come first: what meets is then
 * built once. Of orders that cost the same the one is taken whose inputs are made with the least
 * work. */
static struct rel *order_around(struct group *g) {
    const f64 alike = 1.01; /* estimates that differ by less say nothing */
    i64 first = g->works ? leaf_number(g->works) : 0, least_work = 0;
    f64 least = around_cost(g, first, &least_work);
    for (i64 i = 0; i < g->leaves.count && !g->works; i++) {
        i64 work = 0;
        f64 cost = around_cost(g, i, &work);
        if (cost * alike < least || (cost < least * alike && work < least_work)) {
            first = i;
            least_work = work;
            least = cost;
        }
    }
    struct rel *all = g->leaves.items[first];
    f64 rows = (f64)MAX_OF(all->rows, 1);
    u64 joined = 1ULL << first;
    for (u64 next = next_leaves(g, joined); next; next = next_leaves(g, joined)) {
        for (; next; next &= next - 1) {
            i64 leaf = leaf_number(next);
            rows = grown_rows(g, rows, joined, leaf);
            all = make_join(g, all, g->leaves.items[leaf], joined, 1ULL << leaf, rows);
            joined |= 1ULL << leaf;
        }
    }
    return all;
}

/* The most rows that any input has. */
static f64 most_rows(const struct group *g) {
    f64 most = 1.0;
    for (i64 i = 0; i < g->leaves.count; i++) {
        most = MAX_OF(most, (f64)g->leaves.items[i]->rows);
    }
    return most;
}

/* Whether a join below the last gives more rows than that, in the best order by pairs. */
static bool outgrows(const struct state *states, u64 set, f64 most, bool last) {
    u64 left = states[set].left;
    return left && ((!last && states[set].rows > most) || outgrows(states, left, most, false) ||
                    outgrows(states, set & ~left, most, false));
}

/* Whether the joins form a cycle, and may be ordered by columns. */
static bool goes_around(const struct group *g) {
    const struct settings *s = g->o->settings;
    bool every = true;
    for (i64 i = 0; i < g->leaves.count; i++) {
        every = every && classes_of(g, 1ULL << i) != 0;
    }
    return (s->multiway == 1 || (s->multiway == 0 && !g->o->plan->for_gpu)) && every &&
           g->classes.count <= 64 && (!g->works || is_single(g->works)) && cyclic_leaves(g) != 0;
}

static struct rel *order_all(struct group *g) {
    u64 end = 1ULL << g->leaves.count;
    struct state *states = NEW_ARRAY(g->o->plan->arena, struct state, end);
    for (u64 set = 1; set < end; set++) {
        states[set].rows = set_rows(g, states, set);
        states[set].cost = is_single(set) ? 0.0 : -1.0;
        if (!is_single(set)) {
            try_splits(g, states, set);
        }
    }
    bool around = goes_around(g) &&
                  (g->o->settings->multiway == 1 || outgrows(states, end - 1, most_rows(g), true));
    return around ? order_around(g) : build_set(g, states, end - 1);
}

/* Too many for every split to be tried. */
static struct rel *order_many(struct group *g) {
    bool around = goes_around(g) &&
                  (g->o->settings->multiway == 1 || greedy_most(g) > most_rows(g));
    return around ? order_around(g) : order_greedy(g);
}

/* the plan */

static struct rel *order(struct rel *rel, void *arg);

/* At most MAX_LEAVES of them. */
static struct rel *order_leaves(struct group *g) {
    prepare(g);
    note_works(g);
    return g->leaves.count <= DP_LEAVES ? order_all(g) : order_many(g);
}

/* More leaves than a set of bits has: some that hang together become one. See decision 0048. */
struct crowd {
    struct group *all;
    i32 *leaf_of; /* column -> leaf + 1 */
    b8 *in;       /* leaves of the part at hand */
    i64 in_count;
    i64 some, others; /* of an expression at hand: columns of the part, and of other leaves */
    i64 outside;      /* one of those leaves */
};

static void note_side(u32 col, void *arg) {
    struct crowd *c = arg;
    i32 leaf = c->leaf_of[col];
    bool in = leaf && c->in[leaf - 1];
    c->some += leaf && in;
    c->others += leaf && !in;
    c->outside = leaf && !in ? leaf - 1 : c->outside;
}

static void note_sides(struct crowd *c, const struct expr *a, const struct expr *b) {
    c->some = c->others = 0;
    expr_each_col(a, note_side, c);
    if (b) {
        expr_each_col(b, note_side, c);
    }
}

static void take_leaf(struct crowd *c, i64 leaf) {
    c->in_count += !c->in[leaf];
    c->in[leaf] = 1;
}

/* From one leaf on, what conditions lead to. A part that nothing leads out of gets any leaf. */
static void choose_part(struct crowd *c) {
    struct group *g = c->all;
    i64 next = 0;
    for (bool grown = true; grown && c->in_count < MAX_LEAVES;) {
        grown = false;
        for (i64 i = 0; i < g->edges.count + g->conds.count && c->in_count < MAX_LEAVES; i++) {
            bool edge = i < g->edges.count;
            const struct expr *a =
                edge ? g->edges.items[i].a : g->conds.items[i - g->edges.count].expr;
            note_sides(c, a, edge ? g->edges.items[i].b : NULL);
            if (c->some && c->others) {
                take_leaf(c, c->outside);
                grown = true;
            }
        }
        while (!grown && c->in_count < 2 && next < g->leaves.count) {
            grown = !c->in[next];
            take_leaf(c, next++);
        }
    }
}

/* What lies within the part goes there, the rest stays. */
static void part_group(struct crowd *c, struct group *part, struct group *rest) {
    struct group *g = c->all;
    struct arena *arena = g->o->plan->arena;
    for (i64 i = 0; i < g->leaves.count; i++) {
        VEC_PUSH(arena, c->in[i] ? &part->leaves : &rest->leaves, g->leaves.items[i]);
    }
    for (i64 i = 0; i < g->edges.count; i++) {
        note_sides(c, g->edges.items[i].a, g->edges.items[i].b);
        VEC_PUSH(arena, c->others ? &rest->edges : &part->edges, g->edges.items[i]);
    }
    for (i64 i = 0; i < g->conds.count; i++) {
        note_sides(c, g->conds.items[i].expr, NULL);
        VEC_PUSH(arena, c->others ? &rest->conds : &part->conds, g->conds.items[i]);
    }
}

static struct rel *order_crowd(struct group *g) {
    struct opt *o = g->o;
    struct arena *arena = o->plan->arena;
    struct group at = *g;
    while (at.leaves.count > MAX_LEAVES) {
        struct crowd c = {.all = &at};
        struct group part = {.o = o}, rest = {.o = o};
        c.in = NEW_ARRAY(arena, b8, at.leaves.count);
        c.leaf_of = NEW_ARRAY(arena, i32, o->plan->cols.count + 1);
        for (i64 i = 0; i < at.leaves.count; i++) {
            for (i64 k = 0; k < at.leaves.items[i]->out.count; k++) {
                c.leaf_of[at.leaves.items[i]->out.items[k]] = (i32)i + 1;
            }
        }
        take_leaf(&c, 0);
        choose_part(&c);
        part_group(&c, &part, &rest);
        struct rel *one = order_leaves(&part);
        estimate_rel(o, one);
        VEC_PUSH(arena, &rest.leaves, one); /* and begin where it ends */
        rest.leaves.items[rest.leaves.count - 1] = rest.leaves.items[0];
        rest.leaves.items[0] = one;
        at = rest;
    }
    return order_leaves(&at);
}

static struct rel *order_group(struct opt *o, struct rel *rel) {
    struct group g = {.o = o};
    gather(&g, rel);
    if (g.leaves.count > MAX_LEAVES && g.edges.count == 0) { /* nothing leads from one to another */
        opt_change_inputs(o, rel, order, o);
        return rel;
    }
    for (i64 i = 0; i < g.leaves.count; i++) {
        g.leaves.items[i] = order(g.leaves.items[i], o);
        estimate_rel(o, g.leaves.items[i]);
    }
    struct rel *all = g.leaves.count > MAX_LEAVES ? order_crowd(&g) : order_leaves(&g);
    if (g.late.count > 0) {
        all = rel_new(o->plan, REL_FILTER, all, NULL);
        for (i64 i = 0; i < g.late.count; i++) {
            VEC_PUSH(o->plan->arena, &all->filter.conds, g.late.items[i]);
        }
    }
    return all;
}

static struct rel *order(struct rel *rel, void *arg) {
    struct opt *o = arg;
    if (opt_is_inner(rel)) {
        return order_group(o, rel);
    }
    opt_change_inputs(o, rel, order, o);
    return rel;
}

FALLIBLE pass_join_order(struct opt *o) {
    struct rel *old = o->plan->root;
    o->visited.count = 0;
    o->plan->root = rel_with_out(o->plan, order(old, o), old);
    return ERR_OK;
}

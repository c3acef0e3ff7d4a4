/* cliques.c: counting cliques is counting, whatever the order of their nodes.
 *
 * In  count(*) of e(x, y), e(y, z), e(x, z)  the three columns are the nodes of a graph, and every pair
 * of them is an edge of the same table, always from the earlier to the later: a clique. Only how many
 * there are is asked for. So the aggregate and all its joins become one operator over one scan, which
 * may take the nodes in an order of its own (see cpu/cliques.c). Comparisons of nodes are allowed where
 * they put all of them in one order: then they say the same of every edge.
 *
 * Done where joins by pairs are expected to give more rows than the table has, or always under
 * `multiway = on`. See decision 0035. */
#include "opt/opt_int.h"

#include "codes/func.h"

enum { CLIQUE_LEAST = 3, CLIQUE_MOST = 16, EDGES_MOST = CLIQUE_MOST * (CLIQUE_MOST - 1) / 2 };
#define NODES_LEAST (1 << 20)
#define NODES_PER_EDGE 16

struct pair {
    u32 from, to; /* plan columns, then nodes */
};

struct clique {
    struct opt *o;
    u32 *same; /* by plan column: another one that is equal to it, or itself */
    struct rel *scans[EDGES_MOST + 1];
    i64 scan_count;
    VEC(struct pair) less;
    b8 explodes; /* a join is expected to give more rows than the table has */
    b8 ok;
    u32 nodes[CLIQUE_MOST]; /* plan columns that stand for them */
    u32 outs[CLIQUE_MOST];  /* edges that begin there */
    u32 node_count;
    u32 pairs[CLIQUE_MOST]; /* bits: with whom it has an edge */
};

static u32 root_of(const struct clique *c, u32 col) {
    while (c->same[col] != col) {
        col = c->same[col];
    }
    return col;
}

static bool is_node(const struct clique *c, const struct expr *expr) {
    if (expr->kind != EXPR_COL) {
        return false;
    }
    enum kind kind = type_kind(expr->type);
    bool known = expr->col < c->o->fact_count && c->o->facts[expr->col].has_range;
    return known && (kind == KIND_I32 || kind == KIND_I64) && opt_equal_is_same(expr->type);
}

static void add_cond(struct clique *c, const struct expr *cond) {
    bool compares = cond->kind == EXPR_CALL && cond->arg_count == 2 && is_node(c, cond->args[0]) &&
                    is_node(c, cond->args[1]) &&
                    type_eq(cond->args[0]->type, cond->args[1]->type);
    bool is_less = compares && cond->func == FUNC_LT;
    if (!is_less && !(compares && cond->func == FUNC_GT)) {
        c->ok = 0;
        return;
    }
    struct pair less = {cond->args[!is_less]->col, cond->args[is_less]->col};
    VEC_PUSH(c->o->plan->arena, &c->less, less);
}

static void add_join(struct clique *c, const struct rel *rel) {
    const struct rel_JOIN *join = &rel->join;
    bool safe = false;
    for (i64 i = 0; i < join->null_safe.count; i++) {
        safe = safe || join->null_safe.items[i];
    }
    c->ok = c->ok && opt_is_inner(rel) && !safe && !join->lazy;
    for (i64 i = 0; c->ok && i < join->left_keys.count; i++) {
        const struct expr *a = join->left_keys.items[i], *b = join->right_keys.items[i];
        c->ok = is_node(c, a) && is_node(c, b) && type_eq(a->type, b->type);
        if (c->ok) {
            c->same[root_of(c, a->col)] = root_of(c, b->col);
        }
    }
    for (i64 i = 0; c->ok && i < join->conds.count; i++) {
        add_cond(c, join->conds.items[i]);
    }
}

/* Everything below the aggregate: inner joins and comparisons over scans. */
static void gather(struct clique *c, struct rel *rel) {
    switch (c->ok ? rel->kind : (u8)REL_COUNT) {
    case REL_JOIN:
        add_join(c, rel);
        gather(c, rel_left(rel));
        gather(c, rel_right(rel));
        break;
    case REL_FILTER:
        for (i64 i = 0; c->ok && i < rel->filter.conds.count; i++) {
            add_cond(c, rel->filter.conds.items[i]);
        }
        gather(c, rel_input(rel));
        break;
    case REL_SCAN:
        c->ok = c->scan_count < EDGES_MOST;
        c->scans[c->scan_count++] = rel;
        break;
    default:
        c->ok = 0;
        break;
    }
}

/* The same two columns of the same table, as many as a clique has edges. */
static bool are_edges(struct clique *c) {
    if (!c->ok || c->scan_count < CLIQUE_LEAST) {
        return false;
    }
    const struct rel_SCAN *first = &c->scans[0]->scan;
    bool ok = first->rows_most == 0;
    for (i64 i = 0; ok && i < c->scan_count; i++) {
        const struct rel_SCAN *scan = &c->scans[i]->scan;
        ok = scan->table_id == first->table_id && scan->cols.count == 2;
        for (i64 k = 0; ok && k < 2; k++) {
            ok = scan->cols.items[k].table_col != ROWID_COL &&
                 scan->cols.items[k].table_col == first->cols.items[k].table_col;
        }
    }
    return ok;
}

static u32 node_of(struct clique *c, u32 col) {
    u32 root = root_of(c, col);
    u32 node = 0;
    while (node < c->node_count && c->nodes[node] != root) {
        node++;
    }
    if (node == c->node_count && node < CLIQUE_MOST) {
        c->nodes[c->node_count++] = root;
    }
    return node;
}

/* Whether every pair of nodes is an edge once, and edges go from earlier nodes to later ones. */
static bool is_clique(struct clique *c) {
    for (i64 i = 0; i < c->scan_count; i++) {
        u32 a = node_of(c, c->scans[i]->scan.cols.items[0].col);
        u32 b = node_of(c, c->scans[i]->scan.cols.items[1].col);
        if (a >= CLIQUE_MOST || b >= CLIQUE_MOST || a == b || (c->pairs[a] >> b & 1)) {
            return false;
        }
        c->pairs[a] |= 1u << b;
        c->pairs[b] |= 1u << a;
        c->outs[a]++;
    }
    u32 seen = 0;
    for (u32 i = 0; i < c->node_count; i++) {
        seen |= 1u << c->outs[i];
    }
    return c->node_count >= CLIQUE_LEAST &&
           c->scan_count == c->node_count * (c->node_count - 1) / 2 &&
           seen == (1u << c->node_count) - 1;
}

/* What comparisons say of an edge: 0 nothing, 1 that it goes up, 2 down; -1 something else. */
static i32 direction(struct clique *c) {
    u32 steps[2] = {0, 0}; /* bits: a node and the next one are compared, upwards or downwards */
    bool up = true;
    bool down = true;
    for (i64 i = 0; i < c->less.count; i++) {
        u32 a = node_of(c, c->less.items[i].from), b = node_of(c, c->less.items[i].to);
        if (a >= c->node_count || b >= c->node_count || a == b) {
            return -1;
        }
        u32 from = c->node_count - 1 - c->outs[a], to = c->node_count - 1 - c->outs[b];
        up = up && from < to;
        down = down && to < from;
        steps[0] |= to == from + 1 ? 1u << from : 0;
        steps[1] |= from == to + 1 ? 1u << to : 0;
    }
    u32 all = (1u << (c->node_count - 1)) - 1;
    return c->less.count == 0                   ? 0
           : up && steps[0] == all              ? 1
           : down && steps[1] == all            ? 2
                                                : -1;
}

/* Nodes are counted from the least on, and have a place each. */
static bool are_dense(const struct clique *c) {
    const scan_list *cols = &c->scans[0]->scan.cols;
    struct range a = cols->items[0].range, b = cols->items[1].range;
    i128 lo = MIN_OF(a.lo, b.lo), hi = MAX_OF(a.hi, b.hi);
    i64 rows = c->scans[0]->scan.table_rows;
    i64 most = MAX_OF(rows < I32_MAX / NODES_PER_EDGE ? rows * NODES_PER_EDGE : I32_MAX, NODES_LEAST);
    return lo <= hi && lo >= I64_MIN && hi - lo < MIN_OF(most, I32_MAX);
}

static void find_growth(struct clique *c, struct rel *rel) {
    if (rel->kind == REL_JOIN) {
        c->explodes = c->explodes || rel->rows > c->scans[0]->scan.live_rows;
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        find_growth(c, rel->inputs[i]);
    }
}

static void count_cliques(struct clique *c, struct rel *agg, i32 way) {
    struct plan *plan = c->o->plan;
    struct rel *scan = c->scans[0];
    struct expr *ends[2] = {expr_col(plan, scan->scan.cols.items[0].col, -1),
                            expr_col(plan, scan->scan.cols.items[1].col, -1)};
    struct rel *input = scan;
    scan->out.count = 0;
    for (i32 i = 0; i < 2; i++) {
        VEC_PUSH(plan->arena, &scan->out, ends[i]->col);
    }
    if (way) {
        struct expr *cond =
            expr_call(plan->arena, FUNC_LT, type_of(TYPE_BOOLEAN), -1, 2, ends[way - 1], ends[2 - way]);
        input = rel_new(plan, REL_FILTER, scan, NULL);
        VEC_PUSH(plan->arena, &input->filter.conds, cond);
        estimate_rel(c->o, input);
    }
    rel_become(plan, agg, REL_CLIQUES, input);
    agg->cliques.nodes = c->node_count;
    VEC_PUSH(plan->arena, &agg->cliques.ends, ends[0]);
    VEC_PUSH(plan->arena, &agg->cliques.ends, ends[1]);
}

static void consider(struct opt *o, struct rel *agg) {
    const struct agg_call *call = agg->agg.calls.items;
    if (agg->agg.keys.count || agg->agg.calls.count != 1 || call->agg != AGG_COUNT_STAR ||
        call->filter || call->distinct || rel_input(agg)->kind != REL_JOIN) {
        return;
    }
    struct clique *c = NEW(o->plan->arena, struct clique);
    c->o = o;
    c->ok = 1;
    c->same = NEW_ARRAY(o->plan->arena, u32, o->plan->cols.count + 1);
    for (u32 i = 0; i < o->plan->cols.count; i++) {
        c->same[i] = i;
    }
    gather(c, rel_input(agg));
    i32 way = are_edges(c) && is_clique(c) ? direction(c) : -1;
    if (way < 0 || !are_dense(c)) {
        return;
    }
    find_growth(c, rel_input(agg));
    if (o->settings->multiway == 1 || c->explodes) {
        count_cliques(c, agg, way);
    }
}

FALLIBLE pass_cliques(struct opt *o) {
    if (o->settings->multiway == 2) {
        return ERR_OK;
    }
    rel_all aggs = opt_all_of(o, REL_AGG);
    for (i64 i = 0; i < aggs.count; i++) {
        consider(o, aggs.items[i]);
    }
    return ERR_OK;
}

/* cliques.c: counting cliques is counting, whatever the order of their nodes.
 *
 * In  count(*) of e(x, y), e(y, z), e(x, z)  the three columns are the nodes of a graph, and every pair
 * of them is an edge of the same table, always from the earlier to the later: a clique. Only how many
 * there are is asked for. So the aggregate and all its joins become one operator over one scan, which
 * may take the nodes in an order of its own (see cpu/cliques.c). Comparisons of nodes are allowed where
 * they put all of them in one order: then they say the same of every edge. Edges may also be the
 * different pairs of values of a table, as the rules of LogiQL read it.
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

struct edges { /* a table, or its different rows */
    struct rel *rel;
    u32 ends[2]; /* its columns */
    b8 distinct;
    const struct rel *scan;
    u32 table_cols[2];
};

struct clique {
    struct opt *o;
    u32 *same; /* by plan column: another one that is equal to it, or itself */
    struct edges edges[EDGES_MOST + 1];
    i64 edge_count;
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

/* What an operator makes of its input: an expression a column; NULL: something else. */
static const expr_list *made_of(const struct rel *rel) {
    const expr_list *list = rel->kind == REL_PROJECT                        ? &rel->project.exprs
                            : rel->kind == REL_AGG && !rel->agg.calls.count ? &rel->agg.keys
                                                                            : NULL;
    return list && list->count == rel->out.count ? list : NULL;
}

/* A column back to that of a table; false: it is computed. */
static bool to_table(const struct rel *rel, u32 col, struct edges *edges, i32 end) {
    while (rel->kind != REL_SCAN) {
        const expr_list *list = made_of(rel);
        i64 i = 0;
        while (list && i < list->count && rel->out.items[i] != col) {
            i++;
        }
        if (!list || i == list->count || list->items[i]->kind != EXPR_COL) {
            return false;
        }
        col = list->items[i]->col;
        rel = rel_input(rel);
    }
    edges->scan = rel;
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        if (rel->scan.cols.items[i].col == col) {
            edges->table_cols[end] = rel->scan.cols.items[i].table_col;
            return edges->table_cols[end] != ROWID_COL;
        }
    }
    return false;
}

/* Two columns of a table, as they are or each pair of values once. */
static bool find_edges(struct rel *rel, struct edges *out) {
    bool ok = rel->kind == REL_SCAN ? rel->scan.cols.count == 2 : rel->out.count == 2;
    out->rel = rel;
    out->distinct = rel->kind == REL_AGG;
    for (i32 i = 0; ok && i < 2; i++) {
        out->ends[i] = rel->kind == REL_SCAN ? rel->scan.cols.items[i].col : rel->out.items[i];
        ok = to_table(rel, out->ends[i], out, i);
    }
    if (ok && out->table_cols[0] > out->table_cols[1]) { /* the same for all */
        u32 end = out->ends[0], col = out->table_cols[0];
        out->ends[0] = out->ends[1];
        out->table_cols[0] = out->table_cols[1];
        out->ends[1] = end;
        out->table_cols[1] = col;
    }
    i64 most = ok ? out->scan->scan.rows_most : 0; /* of a provider */
    return ok && (most == 0 || most == out->scan->scan.table_rows);
}

/* Everything below the aggregate: inner joins and comparisons over edges. */
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
    case REL_AGG:
        c->ok = c->edge_count < EDGES_MOST && find_edges(rel, &c->edges[c->edge_count]);
        c->edge_count++;
        break;
    default:
        c->ok = 0;
        break;
    }
}

/* The same two columns of the same table, in the same order. */
static bool are_edges(struct clique *c) {
    if (!c->ok || c->edge_count < CLIQUE_LEAST) {
        return false;
    }
    const struct edges *first = &c->edges[0];
    bool ok = true;
    for (i64 i = 1; ok && i < c->edge_count; i++) {
        const struct edges *e = &c->edges[i];
        ok = e->scan->scan.table_id == first->scan->scan.table_id && e->distinct == first->distinct &&
             first->table_cols[0] == e->table_cols[0] && first->table_cols[1] == e->table_cols[1];
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
    for (i64 i = 0; i < c->edge_count; i++) {
        u32 a = node_of(c, c->edges[i].ends[0]);
        u32 b = node_of(c, c->edges[i].ends[1]);
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
           c->edge_count == c->node_count * (c->node_count - 1) / 2 &&
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

static struct range range_of(const struct clique *c, i32 end) {
    const struct edges *e = &c->edges[0];
    struct range range = {0};
    for (i64 i = 0; i < e->scan->scan.cols.count; i++) {
        const struct scan_col *col = &e->scan->scan.cols.items[i];
        range = col->table_col == e->table_cols[end] ? col->range : range;
    }
    return range;
}

/* Nodes are counted from the least on, and have a place each. */
static bool are_dense(const struct clique *c) {
    struct range a = range_of(c, 0), b = range_of(c, 1);
    i128 lo = MIN_OF(a.lo, b.lo), hi = MAX_OF(a.hi, b.hi);
    i64 rows = c->edges[0].scan->scan.table_rows;
    i64 most = MAX_OF(rows < I32_MAX / NODES_PER_EDGE ? rows * NODES_PER_EDGE : I32_MAX, NODES_LEAST);
    return lo <= hi && lo >= I64_MIN && hi - lo < MIN_OF(most, I32_MAX);
}

static void find_growth(struct clique *c, struct rel *rel) {
    if (rel->kind == REL_JOIN) {
        c->explodes = c->explodes || rel->rows > c->edges[0].scan->scan.live_rows;
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        find_growth(c, rel->inputs[i]);
    }
}

static void count_cliques(struct clique *c, struct rel *agg, i32 way) {
    struct plan *plan = c->o->plan;
    struct rel *input = c->edges[0].rel;
    struct expr *ends[2] = {expr_col(plan, c->edges[0].ends[0], -1),
                            expr_col(plan, c->edges[0].ends[1], -1)};
    input->out.count = 0;
    for (i32 i = 0; i < 2; i++) {
        VEC_PUSH(plan->arena, &input->out, ends[i]->col);
    }
    if (way) {
        struct expr *cond =
            expr_call(plan->arena, FUNC_LT, type_of(TYPE_BOOLEAN), -1, 2, ends[way - 1], ends[2 - way]);
        input = rel_new(plan, REL_FILTER, input, NULL);
        VEC_PUSH(plan->arena, &input->filter.conds, cond);
        estimate_rel(c->o, input);
    }
    struct rel *count = rel_new(plan, REL_CLIQUES, input, NULL);
    u32 col = plan_col_new(plan, "cliques", type_of(TYPE_BIGINT), false);
    count->cliques.nodes = c->node_count;
    count->rows = 1;
    VEC_PUSH(plan->arena, &count->cliques.ends, ends[0]);
    VEC_PUSH(plan->arena, &count->cliques.ends, ends[1]);
    VEC_PUSH(plan->arena, &count->out, col);
    rel_become(plan, agg, REL_PROJECT, count);
    for (i64 i = 0; i < agg->out.count; i++) {
        VEC_PUSH(plan->arena, &agg->project.exprs, expr_col(plan, col, -1));
    }
}

/* Nothing is asked for but how many rows there are. */
static bool only_counts(const struct rel *agg) {
    bool ok = agg->agg.keys.count == 0 && agg->agg.calls.count > 0 &&
              agg->agg.calls.count == agg->out.count && rel_input(agg)->kind == REL_JOIN;
    for (i64 i = 0; ok && i < agg->agg.calls.count; i++) {
        const struct agg_call *call = &agg->agg.calls.items[i];
        ok = call->agg == AGG_COUNT_STAR && !call->filter && !call->distinct;
    }
    return ok;
}

static void consider(struct opt *o, struct rel *agg) {
    if (!only_counts(agg)) {
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

/* cliques_lists.c: cliques of any graph, loops, repeated edges and all.
 *
 * Nodes are taken in the order that the edges' directions give. For every first node its neighbours are
 * the candidates; whoever takes one of them meets the candidates with its neighbours, weights multiplied,
 * until one node is missing: then the weights of the candidates are the answer. */
#include "cpu/cliques.h"

#include <stdatomic.h>

#define TASK_NODES STOP_EVERY(4096)

struct hunter { /* a worker's candidates, by depth */
    u32 *to[CLIQUE_NODES];
    u64 *weights[CLIQUE_NODES];
    u64 total;
    u64 steps;
};

struct hunt {
    struct exec *x;
    const struct clique_graph *g;
    u32 nodes;
    struct hunter *hunters;
    _Atomic i32 over; /* the sum is too large */
};

static void *take(struct exec *x, i64 bytes, wf_status *status) {
    void *data = *status ? NULL : mem_alloc(x->mem, MAX_OF(bytes, 1));
    if (!data && !*status) {
        *status = memory_refused(x->mem, x->err, bytes);
    }
    return data;
}

static u64 weight_of(const struct clique_graph *g, i64 edge) {
    return g->weights ? g->weights[edge] : 1;
}

/* What candidates and the neighbours of a node have in common: their number, or, where out is NULL,
 * nothing but the sum of their weights. */
static i64 meet(struct hunt *h, struct hunter *w, u32 depth, i64 count, u32 node, u64 *out_sum) {
    const struct clique_graph *g = h->g;
    const u32 *to = w->to[depth];
    i64 i = 0, at = g->starts[node], end = g->starts[node + 1], found = 0;
    u64 sum = 0;
    while (i < count && at < end) {
        if (to[i] == g->to[at]) {
            u64 weight = 0;
            bool over = __builtin_mul_overflow(w->weights[depth][i], weight_of(g, at), &weight) ||
                        __builtin_add_overflow(sum, weight, &sum);
            if (over) {
                atomic_store(&h->over, 1);
            }
            if (!out_sum) {
                w->to[depth + 1][found] = to[i];
                w->weights[depth + 1][found++] = weight;
            }
            i++;
            at++;
        } else if (to[i] < g->to[at]) {
            i = clique_seek(to, i + 1, count, g->to[at]);
        } else {
            at = clique_seek(g->to, at + 1, end, to[i]);
        }
        w->steps++;
    }
    w->steps++;
    if (out_sum) {
        *out_sum = sum;
    }
    return found;
}

/* Cliques that end with `missing` of the candidates. */
static u64 count_from(struct hunt *h, struct hunter *w, u32 depth, i64 count, u32 missing) {
    u64 total = 0;
    for (i64 i = 0; i < count; i++) {
        u64 below = missing == 1 ? 1 : 0;
        u64 before = w->steps;
        u32 node = w->to[depth][i];
        if (missing == 2) {
            meet(h, w, depth, count, node, &below);
        } else if (missing > 2) {
            i64 found = meet(h, w, depth, count, node, NULL);
            below = count_from(h, w, depth + 1, found, missing - 1);
        }
        u64 all = 0;
        if (__builtin_mul_overflow(below, w->weights[depth][i], &all) ||
            __builtin_add_overflow(total, all, &total)) {
            atomic_store(&h->over, 1);
        }
        if (stop_due(before, w->steps)) {
            break;
        }
    }
    return total;
}

static void hunt_task(void *arg, i64 task, i32 worker) {
    struct hunt *h = arg;
    struct hunter *w = &h->hunters[worker];
    const struct clique_graph *g = h->g;
    i64 end = MIN_OF((task + 1) * TASK_NODES, g->nodes);
    for (i64 n = task * TASK_NODES; n < end && !stop_asked(); n++) {
        i64 count = g->starts[n + 1] - g->starts[n];
        for (i64 i = 0; i < count; i++) {
            w->to[0][i] = g->to[g->starts[n] + i];
            w->weights[0][i] = weight_of(g, g->starts[n] + i);
        }
        u64 found = count_from(h, w, 0, count, h->nodes - 1);
        if (__builtin_add_overflow(w->total, found, &w->total)) {
            atomic_store(&h->over, 1);
        }
    }
}

wf_status cliques_by_lists(struct exec *x, const struct clique_graph *g, u32 size, u64 *out) {
    struct hunt all = {.x = x, .g = g, .nodes = size}, *h = &all;
    i32 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 room = MAX_OF(g->longest, 1);
    wf_status status = ERR_OK;
    h->hunters = NEW_ARRAY(x->arena, struct hunter, workers);
    for (i32 i = 0; i < workers; i++) {
        for (u32 d = 0; d + 1 < h->nodes; d++) {
            h->hunters[i].to[d] = take(x, room * 4, &status);
            h->hunters[i].weights[d] = take(x, room * 8, &status);
        }
    }
    if (!status) {
        tasks_run(x, (g->nodes + TASK_NODES - 1) / TASK_NODES, hunt_task, h);
        status = exec_check(x);
    }
    for (i32 i = 0; i < workers; i++) {
        for (u32 d = 0; d + 1 < h->nodes; d++) {
            mem_free(x->mem, h->hunters[i].to[d], room * 4);
            mem_free(x->mem, h->hunters[i].weights[d], room * 8);
        }
        if (__builtin_add_overflow(*out, h->hunters[i].total, out)) {
            atomic_store(&h->over, 1);
        }
    }
    if (!status && atomic_load(&h->over)) {
        FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return status;
}


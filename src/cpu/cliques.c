/* cliques.c: STEP_CLIQUES: how many cliques of a number of nodes a graph has.
 *
 * Edges are sorted by their ends, equal ones become one with a weight. For every first node its
 * neighbours are the candidates; whoever takes one of them meets the candidates with its neighbours,
 * weights multiplied, until one node is missing: then the weights of the candidates are the answer. Any
 * graph will do, loops and all; nodes are taken in the order of the edges' direction. */
#include "cpu/cpu_int.h"

#include <stdatomic.h>

#define TASK_NODES STOP_EVERY(4096)

struct graph {
    i64 nodes;
    i64 *starts; /* of every node's neighbours, one more */
    u32 *to;
    u32 *weights;
    i64 rows; /* room, until equal edges have met */
    i64 longest;
};

struct hunter { /* a worker's candidates, by depth */
    u32 *to[CLIQUE_NODES];
    u64 *weights[CLIQUE_NODES];
    u64 total;
    u64 steps;
};

struct hunt {
    struct exec *x;
    const struct graph *g;
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

static void graph_fini(struct exec *x, struct graph *g) {
    mem_free(x->mem, g->starts, (g->nodes + 2) * 8);
    mem_free(x->mem, g->to, MAX_OF(g->rows * 4, 1));
    mem_free(x->mem, g->weights, MAX_OF(g->rows * 4, 1));
}

/* A stable pass: edges in the order of `key`, their other ends `value` moved along. */
static void order_by(i64 *starts, i64 nodes, i64 rows, const u32 *key, const u32 *value,
                     u32 *out_key, u32 *out_value) {
    memset(starts, 0, (size_t)(nodes + 2) * 8);
    for (i64 i = 0; i < rows; i++) {
        starts[key[i] + 2]++;
    }
    for (i64 n = 0; n < nodes; n++) {
        starts[n + 2] += starts[n + 1];
    }
    for (i64 i = 0; i < rows; i++) {
        i64 at = starts[key[i] + 1]++;
        out_value[at] = value[i];
        if (out_key) {
            out_key[at] = key[i];
        }
    }
}

/* Equal edges, which are neighbours now, become one. */
static void weigh(struct graph *g) {
    i64 at = 0;
    for (i64 n = 0; n < g->nodes; n++) {
        i64 from = g->starts[n], end = g->starts[n + 1];
        g->starts[n] = at;
        for (i64 i = from; i < end; i++) {
            bool again = at > g->starts[n] && g->to[at - 1] == g->to[i];
            at -= again;
            g->weights[at] = again ? g->weights[at] + 1 : 1;
            g->to[at++] = g->to[i];
        }
        g->longest = MAX_OF(g->longest, at - g->starts[n]);
    }
    g->starts[g->nodes] = at;
}

static FALLIBLE graph_init(struct exec *x, const struct step *step, struct graph *g) {
    const struct chunk *chunk = x->vars[step->src].chunks.items[0];
    const u32 *from = chunk->cols[0].data, *to = chunk->cols[1].data;
    wf_status status = ERR_OK;
    g->nodes = (i64)step->key_range.hi + 1;
    g->rows = chunk->rows;
    g->starts = take(x, (g->nodes + 2) * 8, &status);
    g->to = take(x, g->rows * 4, &status);
    g->weights = take(x, g->rows * 4, &status);
    u32 *ends[2] = {take(x, g->rows * 4, &status), take(x, g->rows * 4, &status)};
    if (!status) {
        order_by(g->starts, g->nodes, g->rows, to, from, ends[1], ends[0]);
        status = exec_check(x);
    }
    if (!status) {
        order_by(g->starts, g->nodes, g->rows, ends[0], ends[1], NULL, g->to);
        weigh(g);
    }
    for (i32 i = 0; i < 2; i++) {
        mem_free(x->mem, ends[i], MAX_OF(g->rows * 4, 1));
    }
    return status ? status : exec_check(x);
}

/* What candidates and the neighbours of a node have in common: their number, or, where out is NULL,
 * nothing but the sum of their weights. */
static i64 meet(struct hunt *h, struct hunter *w, u32 depth, i64 count, u32 node, u64 *out_sum) {
    const struct graph *g = h->g;
    const u32 *to = w->to[depth];
    i64 i = 0, at = g->starts[node], end = g->starts[node + 1], found = 0;
    u64 sum = 0;
    while (i < count && at < end) {
        if (to[i] == g->to[at]) {
            u64 weight = 0;
            bool over = __builtin_mul_overflow(w->weights[depth][i], (u64)g->weights[at], &weight) ||
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
        } else {
            i += to[i] < g->to[at];
            at += i < count && g->to[at] < to[i];
        }
    }
    w->steps += (u64)(count + 1);
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
    const struct graph *g = h->g;
    i64 end = MIN_OF((task + 1) * TASK_NODES, g->nodes);
    for (i64 n = task * TASK_NODES; n < end && !stop_asked(); n++) {
        i64 count = g->starts[n + 1] - g->starts[n];
        for (i64 i = 0; i < count; i++) {
            w->to[0][i] = g->to[g->starts[n] + i];
            w->weights[0][i] = g->weights[g->starts[n] + i];
        }
        u64 found = count_from(h, w, 0, count, h->nodes - 1);
        if (__builtin_add_overflow(w->total, found, &w->total)) {
            atomic_store(&h->over, 1);
        }
    }
}

static FALLIBLE hunt_all(struct hunt *h, u64 *out) {
    struct exec *x = h->x;
    const struct graph *g = h->g;
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
    if (!status && (atomic_load(&h->over) || *out > I64_MAX)) {
        FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return status;
}

wf_status cliques_run(struct exec *x, const struct step *step) {
    TRY(variable_flatten(x, step->src));
    struct graph g = {0};
    struct hunt h = {.x = x, .g = &g, .nodes = step->col_count};
    u64 found = 0;
    bool any = x->vars[step->src].rows > 0;
    wf_status status = any ? graph_init(x, step, &g) : ERR_OK;
    if (any && !status) {
        status = hunt_all(&h, &found);
    }
    if (any) {
        graph_fini(x, &g);
    }
    TRY(status);
    variable_reset(&x->vars[step->dst]);
    struct chunk *out = chunk_new(x, &x->program->vars[step->dst], 1, false);
    if (!out) {
        return memory_refused(x->mem, x->err, 16);
    }
    ((i64 *)out->cols[0].data)[0] = (i64)found;
    variable_append(x, step->dst, out);
    return ERR_OK;
}

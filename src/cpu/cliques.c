/* cliques.c: STEP_CLIQUES: how many cliques of a number of nodes a graph has.
 *
 * Edges become lists of neighbours (cliques_build.c), of nodes in the order of their degrees where that
 * does not change the answer; then cliques are counted (cliques_bits.c, cliques_lists.c). */
#include "cpu/cliques.h"
#include "run/tries.h"
#include "store/scan.h"

/* In a graph that has every edge in both directions each clique counts in every order of its nodes. */
static FALLIBLE in_any_order(struct exec *x, u32 size, u64 *found) {
    for (u64 i = 2; i <= size; i++) {
        if (__builtin_mul_overflow(*found, i, found)) {
            FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
        }
    }
    return ERR_OK;
}

static FALLIBLE count_all(struct exec *x, const struct step *step, const struct clique_graph *g,
                          u64 *out) {
    if (cliques_fit_bits(x, g, step->col_count)) {
        TRY(cliques_by_bits(x, g, step->col_count, out));
    } else {
        TRY(cliques_by_lists(x, g, step->col_count, out));
    }
    if (g->form == CLIQUE_BOTH) {
        TRY(in_any_order(x, step->col_count, out));
    }
    if (*out > I64_MAX) {
        FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return ERR_OK;
}

/* --- graphs that are kept for later statements --- */

struct kept_cliques {
    struct kept_graph base;
    struct clique_graph graph;
};

static void free_kept(struct memory *mem, struct kept_graph *base) {
    struct kept_cliques *kept = (struct kept_cliques *)base;
    clique_graph_fini(mem, &kept->graph);
    mem_free(mem, kept, (i64)sizeof *kept);
}

static struct kept_graph *make_kept(struct exec *x, void *arg) {
    const struct clique_graph *g = arg;
    struct kept_cliques *kept = mem_alloc(x->mem, (i64)sizeof *kept);
    if (!kept) {
        return NULL;
    }
    *kept = (struct kept_cliques){.base = {.free = free_kept}, .graph = *g};
    kept_trie_own(x, (i64)sizeof *kept);
    kept_trie_own(x, clique_starts_bytes(g));
    kept_trie_own(x, g->block_bytes);
    if (g->weights) {
        kept_trie_own(x, g->block_bytes);
    }
    return &kept->base;
}

/* False: it is still the statement's. */
static bool keep_graph(struct exec *x, u32 var, struct clique_graph *g) {
    const struct memory *mem = x->mem;
    bool here = !mem_in_temp(mem, g->starts) && !mem_in_temp(mem, g->to) && !mem_in_temp(mem, g->weights);
    i64 bytes = mem_size((i64)sizeof(struct kept_cliques)) + mem_size(clique_starts_bytes(g)) +
                mem_size(g->block_bytes) * (g->weights ? 2 : 1);
    return here && tries_keep_graph(x, var, bytes, make_kept, g);
}

static FALLIBLE count_anew(struct exec *x, const struct step *step, u64 *out) {
    struct clique_graph g = {.nodes = 0};
    work_expect(x, (CLIQUE_BUILD_READS + CLIQUE_COUNT_READS) * x->vars[step->src].rows);
    wf_status status = clique_graph_init(x, step, &g);
    status = status ? status : count_all(x, step, &g, out);
    if (status || !keep_graph(x, step->src, &g)) {
        clique_graph_fini(x->mem, &g);
    }
    return status;
}

static FALLIBLE count_kept(struct exec *x, const struct step *step, const struct kept_graph *base,
                           u64 *out) {
    const struct kept_cliques *kept = (const struct kept_cliques *)base;
    work_expect(x, CLIQUE_COUNT_READS * x->vars[step->src].rows);
    return count_all(x, step, &kept->graph, out);
}

/* --- graphs that a provider has sorted --- */

/* Where lists begin, by node; whether all is as it should be: lists ascend, and so do edges. */
static bool lists_of(const struct scan_levels *l, struct clique_graph *g) {
    const u32 *nodes = l->levels[0].values, *starts = l->levels[0].starts;
    i64 node = 0;
    for (i64 i = 0; i < l->levels[0].count; i++) {
        i64 from = starts[i], end = starts[i + 1];
        bool fine = (i64)nodes[i] >= node && (i64)nodes[i] < g->nodes && from < end && end <= l->rows && (i || !from);
        if (!fine) {
            return false;
        }
        while (node <= (i64)nodes[i]) {
            g->starts[node++] = from;
        }
        for (i64 k = from; k < end; k++) {
            fine = fine && g->to[k] < g->nodes && g->to[k] > (k > from ? g->to[k - 1] : nodes[i]);
        }
        g->longest = MAX_OF(g->longest, end - from);
        if (!fine) {
            return false;
        }
    }
    while (node <= g->nodes) {
        g->starts[node++] = l->rows;
    }
    return starts[l->levels[0].count] == l->rows;
}

static FALLIBLE count_levels(struct exec *x, const struct step *step, struct scan_provider *provider, u64 *out) {
    const struct scan_levels *l = provider->levels;
    struct clique_graph g = {.form = CLIQUE_TURNED,
                             .nodes = (i64)step->key_range.hi + 1,
                             .edges = l->rows,
                             .to = (u32 *)(size_t)l->levels[1].values};
    work_expect(x, CLIQUE_COUNT_READS * l->rows);
    TRY(provider->levels->check(provider, x->err));
    g.starts = mem_alloc(x->mem, clique_starts_bytes(&g));
    if (!g.starts) {
        return memory_refused(x->mem, x->err, clique_starts_bytes(&g));
    }
    wf_status status = lists_of(l, &g) ? ERR_OK
                                       : error_set(x->err, ERR_DAMAGED, -1, "a trie file holds edges in no order");
    status = status ? status : count_all(x, step, &g, out);
    mem_free(x->mem, g.starts, clique_starts_bytes(&g));
    return status;
}

wf_status cliques_run(struct exec *x, const struct step *step) {
    const struct kept_graph *kept = variable_graph(&x->vars[step->src]);
    u64 found = 0;
    if (x->vars[step->src].levels) {
        TRY(count_levels(x, step, x->vars[step->src].levels, &found));
    } else if (kept) {
        TRY(count_kept(x, step, kept, &found));
    } else if (x->vars[step->src].rows > 0) {
        TRY(count_anew(x, step, &found));
    }
    variable_reset(&x->vars[step->dst]);
    struct chunk *out = chunk_new(x, &x->program->vars[step->dst], 1, false);
    if (!out) {
        return memory_refused(x->mem, x->err, 16);
    }
    ((i64 *)out->cols[0].data)[0] = (i64)found;
    variable_append(x, step->dst, out);
    return ERR_OK;
}

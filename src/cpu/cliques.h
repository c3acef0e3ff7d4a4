/* cliques.h: a graph whose cliques are counted: lists of neighbours, sorted.
 *
 * Where all edges go one way, or every edge has its opposite, nodes are renamed by ascending degree and
 * edges turned to the later node, so that lists are short; elsewhere both are as they come. */
#ifndef WF_CPU_CLIQUES_H
#define WF_CPU_CLIQUES_H

#include "cpu/cpu_int.h"
#include "defs/kcliques.h"

/* Work of a step, as readings of all edges. */
enum { CLIQUE_BUILD_READS = 5, CLIQUE_COUNT_READS = 10 };

struct clique_graph {
    enum clique_form form;
    i64 nodes;
    i64 edges;
    i64 *starts; /* of every node's neighbours, one more */
    u32 *to;     /* in a block of block_bytes */
    i64 block_bytes;
    u32 *weights; /* how often an edge is there; NULL: once each. Only in form PLAIN */
    i64 longest;  /* list */
    i64 heavy;    /* nodes that have many edges; the last ones */
};

/* cliques_build.c: the graph whose edges are the rows of the step's source. */
FALLIBLE clique_graph_init(struct exec *x, const struct step *step, struct clique_graph *g);
void clique_graph_fini(struct memory *mem, struct clique_graph *g);
static inline i64 clique_starts_bytes(const struct clique_graph *g) {
    return (g->nodes + 1) * 8;
}

/* How many cliques of `size` nodes: of edges that are there once (cliques_bits.c), where the lists of
 * neighbours have room for a matrix; of any graph (cliques_lists.c). */
bool cliques_fit_bits(const struct exec *x, const struct clique_graph *g, u32 size);
FALLIBLE cliques_by_bits(struct exec *x, const struct clique_graph *g, u32 size, u64 *out);
FALLIBLE cliques_by_lists(struct exec *x, const struct clique_graph *g, u32 size, u64 *out);

/* The first place from `at` on that is not below `node`, by steps that double. */
static inline i64 clique_seek(const u32 *to, i64 at, i64 end, u32 node) {
    i64 step = 1, below = at;
    while (at < end && to[at] < node) {
        below = at + 1;
        at = end - at > step ? at + step : end;
        step *= 2;
    }
    while (below < at) {
        i64 middle = below + (at - below) / 2;
        bool less = to[middle] < node;
        below = less ? middle + 1 : below;
        at = less ? at : middle;
    }
    return below;
}

#endif

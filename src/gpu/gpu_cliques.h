/* gpu_cliques.h: what counting cliques in one piece and in boxes share. */
#ifndef WF_GPU_GPU_CLIQUES_H
#define WF_GPU_GPU_CLIQUES_H

#include "defs/kcliques.h"
#include "gpu/gpu_order.h"
#include "prim/order.h"
#include "run/trie.h"

struct cliques {
    struct order_step o;
    const struct step *step;
    struct kcliques args;
    u64 report[CLIQUE_WORDS];
    u64 words[2]; /* blocks: unsorted, sorted */
    i64 heavy;    /* nodes of the matrix, at most */
    u64 found;
    i64 first_edge; /* of the offsets: 0, or a slab's */
};

/* Edges as they were sorted, for cliques of any size. */
struct card_graph {
    struct gpu_block *to, *offsets;
    u32 form;
    i64 heavy; /* of struct cliques */
};
/* gpu_tries.c: the graph that is kept of a variable's rows; NULL: none is on this card. */
/* A graph for which the card has no room stays in the memory of the host, sorted, and is counted in boxes again. */
void gpu_keep_boxes(struct gpu *g, struct exec *x, u32 var, const struct trie *trie);
const struct trie *gpu_kept_boxes(const struct variable *v); /* NULL: that is not what is kept */
const struct card_graph *gpu_kept_graph(const struct gpu *g, const struct variable *v);
/* Keeps it for later statements, and for this one; false: its blocks are still the caller's. */
bool gpu_keep_graph(struct gpu *g, struct exec *x, u32 var, const struct card_graph *graph);
/* All graphs are counted by a thread an edge, for comparison. */
bool cliques_naive(void);

FALLIBLE cliques_start(struct cliques *c, enum kernel_no kernel, i64 rows);
/* As many blocks as there is room for, but no more than `most`. */
FALLIBLE cliques_start_resident(struct cliques *c, enum kernel_no kernel, i64 most, i64 shared);
FALLIBLE cliques_zeros(struct cliques *c, i64 bytes, u64 *out); /* a block of them */
FALLIBLE cliques_look(struct cliques *c); /* waits; the report is in c->report */
/* By a thread an edge: of any graph, or of triangles with a set that shared memory has no room for. */
FALLIBLE cliques_count_plain(struct cliques *c);
/* Nodes are listed, and the report says how many. */
FALLIBLE cliques_count_triangles(struct cliques *c);
/* Of the nodes behind the light ones, among each other, by the matrix. */
FALLIBLE cliques_count_heavy(struct cliques *c);
/* Nodes of a matrix of bits that so many edges are worth, of at most so many nodes and bytes; 0 = none. */
i64 cliques_heavy_nodes(i64 edges, i64 most, i64 bytes);
/* Bytes of a set of so many neighbours; of what a block holds of them beside a matrix. */
i64 cliques_set_bytes(i64 count, bool places);
i64 cliques_block_bytes(i64 count);
bool cliques_has_shared(const struct cliques *c, i64 bytes);
/* Of the step's edges: how many, nodes, bits; a report, degrees and their classes, zeros. */
FALLIBLE cliques_open(struct cliques *c);
/* By the report on all edges. */
u32 cliques_form(const struct cliques *c);
/* Nodes get their places by degree, in c->args.rank if that is set (it may be the degrees'), else in a block;
 * or c->args.rank is NULL: they keep their order. */
FALLIBLE cliques_rank(struct cliques *c);
FALLIBLE cliques_sort(struct cliques *c, const struct prim_sort *how, u64 to, u64 from, i64 count);
/* The step's edges, which the host has, sorted on the card part by part; out_has: false = that has no room. */
FALLIBLE cliques_make_trie(struct cliques *c, struct trie *out, bool *out_has);
/* In boxes: the runtime has the answer. */
FALLIBLE boxes_count(struct cliques *c, u32 step_no);

#endif

/* gpu_cliques.h: what counting cliques in one piece and in boxes share. */
#ifndef WF_GPU_GPU_CLIQUES_H
#define WF_GPU_GPU_CLIQUES_H

#include "defs/kcliques.h"
#include "gpu/gpu_order.h"

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

FALLIBLE cliques_start(struct cliques *c, enum kernel_no kernel, i64 rows);
/* As many blocks as there is room for, but no more than `most`. */
FALLIBLE cliques_start_resident(struct cliques *c, enum kernel_no kernel, i64 most, i64 shared);
FALLIBLE cliques_zeros(struct cliques *c, i64 bytes, u64 *out); /* a block of them */
FALLIBLE cliques_look(struct cliques *c); /* waits; the report is in c->report */
/* By a thread an edge: of any graph, or of triangles with a set that shared memory has no room for. */
FALLIBLE cliques_count_plain(struct cliques *c);
/* Nodes are listed, and the report says how many. */
FALLIBLE cliques_count_triangles(struct cliques *c);
/* Bytes of a set of so many neighbours. */
i64 cliques_set_bytes(i64 count, bool places);
bool cliques_has_shared(const struct cliques *c, i64 bytes);
/* In boxes, of edges that are sorted on the host: the runtime has the answer. */
FALLIBLE boxes_count(struct cliques *c, u32 step_no);

#endif

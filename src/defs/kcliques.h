/* kcliques.h: arguments of the kernels that count cliques; compiles as C11 and as CUDA C.
 *
 * Nodes are renamed by ascending degree and edges turned to the later node, so that every node has few
 * neighbours behind it: CSR of `offsets` and `to`, in order. */
#ifndef WF_DEFS_KCLIQUES_H
#define WF_DEFS_KCLIQUES_H

#include "base/word.h"

enum {
    CLIQUE_THREADS = 256,
    CLIQUE_WARPS = CLIQUE_THREADS / 32,
    CLIQUE_CLASSES = 1024, /* of degrees */
    CLIQUE_RANKS = 16,     /* nodes of a thread that get their place at once */
    CLIQUE_GROUP = 1024,   /* neighbouring edges that a sample of degrees takes together */
    CLIQUE_TINY = 24,      /* neighbours: a thread an edge */
    CLIQUE_WARP = 80,      /* a warp a node; a block for more */
    CLIQUE_WARP_SLOTS = 256,
    CLIQUE_UNIT = 4,       /* neighbours of a block's node that a warp takes at once */
    CLIQUE_LONG = 24,      /* so much to look at for a neighbour is not laid end to end with others' */
    CLIQUE_DEPTH = 16
};
/* What edges are; then how they are packed to be sorted. */
enum clique_form {
    CLIQUE_PLAIN, /* as they come: any graph */
    CLIQUE_TURNED, /* each once, all up or all down: turned */
    CLIQUE_BOTH    /* each in both directions: turned, with a bit for the direction */
};
/* Of counts by matrices among neighbours. */
enum clique_stage { CLIQUE_AT_ONCE, CLIQUE_FILL, CLIQUE_DESCEND };
enum {
    CLIQUE_UP,
    CLIQUE_DOWN,
    CLIQUE_LOOPS,
    CLIQUE_ODD,     /* edges that are not as the form says */
    CLIQUE_FOUND,   /* the answer, */
    CLIQUE_OVER,    /* if it fits */
    CLIQUE_LISTED,  /* nodes for a warp, */
    CLIQUE_LISTED_BLOCK, /* and for a block */
    CLIQUE_LONGEST, /* neighbours of a node that is listed */
    CLIQUE_TICKETS, /* three */
    CLIQUE_WORDS = CLIQUE_TICKETS + 4
};

struct kcliques {
    const u32 *from, *ends; /* edges as they come */
    i64 rows;
    i64 edges; /* of the sorted ones, half of the rows in form BOTH */
    u32 nodes;
    u32 bits; /* of a node's number */
    u32 form;
    u32 every;    /* of so many groups of edges one is sampled */
    u32 *degrees;
    u32 *classes; /* CLIQUE_CLASSES: nodes of each, then where the next one goes */
    u32 *rank;
    u64 *words;
    /* Words that are to be put one behind the other, in memory of the host: of each of `range_count` ranges the
     * first one, then how many come before it. */
    const u64 *source, *ranges;
    u32 range_count;
    u32 *blocks; /* or 0: edges that begin in each block of 1 << shift nodes */
    u32 shift;
    u32 *offsets; /* nodes + 1 */
    u32 base;     /* the number of the first of them */
    u32 *to;
    /* Neighbours of second nodes: of all, the same as above; of a box's, those from `second` on. Offsets
     * count from the beginning of all edges, and so do both `to`. */
    const u32 *second_offsets, *second_to;
    u32 second, second_count;
    u32 light; /* nodes of `offsets` that are listed, or looked at by a thread an edge */
    /* Edges among the nodes from `heavy` on: a bit each, rows of row_words words of 32 bits. */
    u32 heavy;
    u32 row_words;
    u32 *matrix;
    u32 *listed, *listed_block;
    u32 size;  /* of a clique */
    u32 least; /* neighbours that a node of one has */
    u32 *scratch;      /* or 0; of deep counts, for every block: */
    u64 scratch_words;
    const u64 *places; /* or 0; of a box, for every listed node: where in `scratch` its matrix is */
    u32 *masks;        /* of a box, for every block: mask_words */
    u64 mask_words;
    u32 stage;         /* enum clique_stage */
    i64 first, last; /* edges of a launch, of any graph; of offsets that are made: edges before */
    u64 *report; /* CLIQUE_WORDS */
};

#endif

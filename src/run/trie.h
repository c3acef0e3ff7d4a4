/* trie.h: sorted edges of a graph as a TrieArray of two levels: where every node's neighbours are, and these.
 *
 * It is two arrays of words that mean the same wherever they lie: in memory, or, where the budget has no
 * room for them, in temporary space, mapped. Nothing in it is an address, so a slice, the neighbours of nodes
 * that follow each other, is a piece of either array as it is: it is copied to a card or to memory without
 * being looked at. Boxes are pairs of slices, for the first two nodes of a pattern; whoever counts takes the
 * next range of first nodes from a queue. See decision 0037. */
#ifndef WF_RUN_TRIE_H
#define WF_RUN_TRIE_H

#include "defs/kcliques.h"
#include "run/device.h"

struct trie {
    u32 form;  /* enum clique_form */
    i64 nodes;
    i64 first; /* nodes before have no neighbours */
    i64 edges;
    i64 longest; /* neighbours of a node */
    u32 *starts; /* nodes + 1 */
    u32 *to;
    struct buffer *starts_buffer, *to_buffer;
    i64 rows; /* that it was made of */
    b8 kept;    /* an earlier statement made it */
    b8 by_card; /* sorted by one, the words of both arrays in memory that cards copy from */
};

/* Of the rows of a variable, on the host: two columns of 32 bits, nodes below `nodes`. */
FALLIBLE trie_build(struct exec *x, u32 var, i64 nodes, struct trie *out);
void trie_fini(struct trie *t);

static inline i64 trie_degree(const struct trie *t, i64 node) {
    return (i64)(t->starts[node + 1] - t->starts[node]);
}
/* Bytes of a slice: its part of both arrays. */
static inline i64 trie_slice_bytes(const struct trie *t, i64 first, i64 end) {
    return 4 * ((i64)(t->starts[end] - t->starts[first]) + end - first + 1);
}
/* Where the largest slice from `first` on ends that has room; at least one node is in it. By search. */
i64 trie_slice_end(const struct trie *t, i64 first, i64 bytes);

enum { BOX_TAKERS = 8 }; /* as many devices as there may be */
/* One of them: what it did, and how fast it was. */
struct box_taker {
    const struct exec *x; /* its execution */
    i64 slabs, edges;     /* finished, in all */
    i64 since_ns;         /* when it finished the last one, or came */
    f64 lately_edges, lately_ns; /* of those it finished, half as much of each as of the next; 0 = none yet */
};

/* First nodes of boxes, that several devices take from. */
struct boxes {
    struct trie trie;
    u32 size; /* nodes of a clique */
    struct mutex lock;
    i64 next;    /* the first node that nobody has taken */
    i64 takers;  /* devices that take, or are about to */
    struct box_taker list[BOX_TAKERS];
    u32 list_count; /* that have come */
    i64 slabs;   /* taken */
    i64 boxes, counted; /* counted; edges of slabs that were */
    u64 found;
    b8 over; /* what was found is too large for a word */
};

/* What a device has room for. */
struct box_room {
    i64 bytes;      /* of a slab: edges, and what goes with its nodes */
    i64 node_bytes; /* that every node takes besides its slice */
    i64 bits_bytes; /* of matrices among neighbours, in words of 32 bits; 0 = there are none */
};
struct slab {
    i64 first, end;
};

/* What somebody counted. */
struct box_sum {
    u64 found;
    b8 over;   /* it was too large for a word */
    i64 boxes; /* so many of them, */
    i64 edges; /* of slabs with so many edges */
};

/* Those of an execution: opened by the device that has no room for the step's graph; other devices of the
 * session are then asked to take from them, too. The runtime waits for them when the device has left
 * (boxes_settle), and has the answer. made: NULL = the host sorts; else it belongs to the boxes. */
FALLIBLE boxes_open(struct exec *x, u32 step_no, const struct step *step, const struct trie *made,
                    struct boxes **out);
/* Whether the session wants devices to share what they can, room or no room. */
static inline bool boxes_forced(const struct exec *x) {
    return x->settings->device == DEVICE_HYBRID && x->settings->hybrid_share > 0;
}
/* Those that an execution helps with: a share of another one; NULL = it does not. */
struct boxes *exec_boxes(const struct exec *x);
bool boxes_are_open(const struct exec *x); /* its own */
FALLIBLE boxes_init(struct boxes *b, struct exec *x, const struct step *step, const struct trie *made);
void boxes_fini(struct boxes *b);
/* Another one takes from now on, or the same once more: its number. */
u32 boxes_enter(struct boxes *b, const struct exec *x, i64 now_ns);
/* The next first nodes; false when there are none. One node is taken even where it has no room. Where several take, the
 * first slab is small, and later ones are as large as what is left is divided by how fast each was. */
bool boxes_take(struct boxes *b, u32 taker, const struct box_room *room, struct slab *out);
/* It has finished one, which a device knows that did not wait for it when it took the next. */
void boxes_finished(struct boxes *b, u32 taker, const struct slab *slab, i64 now_ns);
/* Of a device's execution; 0 = it took none. */
i64 boxes_slabs_of(const struct boxes *b, const struct exec *x);
void boxes_add(struct boxes *b, const struct box_sum *sum);
/* Of all of them: an error where it is too large. */
FALLIBLE boxes_total(struct boxes *b, struct error *err, u64 *out);
/* Words of 32 bits of a matrix among so many neighbours. */
static inline i64 box_matrix_words(i64 degree) {
    return degree * ((degree + 31) / 32);
}

#endif

/* boxes.c: cliques counted box by box: a queue of first nodes over one TrieArray.
 *
 * A box is two ranges of nodes, for the first two nodes of a clique. Whoever counts takes a slab, a range of
 * first nodes whose slice it has room for, and then goes through the second nodes by slices of its own. Slabs
 * are taken in order; a device that is fast comes more often. Where several take, slabs get smaller towards
 * the end, so that none waits long for the others. */
#include "run/trie.h"

/* For every device, where there are several: of what is left, and in all. */
enum { SLABS_LEFT = 3, SLABS_MOST = 16 };

wf_status boxes_init(struct boxes *b, struct exec *x, u32 var, i64 nodes, u32 size) {
    *b = (struct boxes){.size = size, .takers = 1};
    TRY(trie_build(x, var, nodes, &b->trie));
    mutex_init(&b->lock);
    b->next = b->trie.first;
    return ERR_OK;
}

void boxes_fini(struct boxes *b) {
    mutex_fini(&b->lock);
    trie_fini(&b->trie);
}

bool boxes_take(struct boxes *b, const struct box_room *room, struct slab *out) {
    const struct trie *t = &b->trie;
    i64 bytes = 0, bits = 0;
    mutex_lock(&b->lock);
    i64 node = b->next;
    i64 left = t->edges - (i64)t->starts[node];
    i64 share = MAX_OF(left / (SLABS_LEFT * b->takers), t->edges / (SLABS_MOST * b->takers)) + 1;
    i64 most = b->takers > 1 ? share : left;
    most = MAX_OF(most / MAX_OF(room->part, 1), 1);
    while (node < t->nodes) {
        i64 degree = trie_degree(t, node);
        bool counts = room->bits_bytes && degree + 1 >= b->size;
        bytes += 4 * degree + room->node_bytes;
        bits += counts ? 4 * box_matrix_words(degree) : 0;
        bool fits = bytes <= room->bytes && bits <= room->bits_bytes &&
                    (i64)(t->starts[node + 1] - t->starts[b->next]) <= most;
        if (!fits && node > b->next) {
            break;
        }
        node++;
    }
    *out = (struct slab){b->next, node};
    b->next = node;
    b->slabs += out->first < out->end;
    mutex_unlock(&b->lock);
    return out->first < out->end;
}

void boxes_add(struct boxes *b, const struct box_sum *sum) {
    mutex_lock(&b->lock);
    b->over = b->over || sum->over || __builtin_add_overflow(b->found, sum->found, &b->found);
    b->boxes += sum->boxes;
    b->counted += sum->edges;
    mutex_unlock(&b->lock);
}

wf_status boxes_total(struct boxes *b, struct error *err, u64 *out) {
    bool over = b->over;
    *out = b->found;
    for (u64 i = 2; b->trie.form == CLIQUE_BOTH && i <= b->size; i++) { /* in any order */
        over = over || __builtin_mul_overflow(*out, i, out);
    }
    if (over || *out > I64_MAX) {
        FAIL(err, OUT_OF_RANGE, "bigint out of range");
    }
    return ERR_OK;
}

/* boxes.c: cliques counted box by box: a queue of first nodes over one TrieArray.
 *
 * A box is two ranges of nodes, for the first two nodes of a clique. Whoever counts takes a slab, a range of
 * first nodes whose slice it has room for, and then goes through the second nodes by slices of its own. Slabs
 * are taken in order. Where several take, the first one of each is small; from then on it is known how fast each is,
 * lately more than before, and a slab is a part of what is left in that proportion: all need about as long for
 * theirs. Slabs get smaller towards the end, so that none waits long for the others. What is found does not depend
 * on who takes what. */
#include "run/trie.h"

/* For every device, where there are several: of what is left, and in all; and the first one of all edges. */
enum { SLABS_LEFT = 3, SLABS_MOST = 16, SLAB_FIRST = 64 };

wf_status boxes_init(struct boxes *b, struct exec *x, const struct step *step, const struct trie *made) {
    *b = (struct boxes){.size = step->col_count, .takers = 1};
    if (made) {
        b->trie = *made;
    } else {
        TRY(trie_build(x, step->src, (i64)step->key_range.hi + 1, &b->trie));
    }
    mutex_init(&b->lock);
    b->next = b->trie.first;
    return ERR_OK;
}

void boxes_fini(struct boxes *b) {
    mutex_fini(&b->lock);
    trie_fini(&b->trie);
}

/* Where a slab ends that has room, with as many edges as `most`; its first node is in it in any case. */
static i64 end_by_search(const struct boxes *b, const struct box_room *room, i64 most) {
    const struct trie *t = &b->trie;
    i64 lo = b->next + 1, hi = t->nodes;
    while (lo < hi) {
        i64 middle = lo + (hi - lo + 1) / 2;
        i64 edges = (i64)(t->starts[middle] - t->starts[b->next]);
        bool fits = edges <= most && 4 * edges + room->node_bytes * (middle - b->next) <= room->bytes;
        lo = fits ? middle : lo;
        hi = fits ? hi : middle - 1;
    }
    return lo;
}

/* And so have matrices among neighbours. */
static i64 end_by_bits(const struct boxes *b, const struct box_room *room, i64 end) {
    i64 bits = 0;
    for (i64 node = b->next; node < end; node++) {
        i64 degree = trie_degree(&b->trie, node);
        bits += degree + 1 >= b->size ? 4 * box_matrix_words(degree) : 0;
        if (bits > room->bits_bytes && node > b->next) {
            return node;
        }
    }
    return end;
}

u32 boxes_enter(struct boxes *b, const struct exec *x, i64 now_ns) {
    u32 number = 0;
    mutex_lock(&b->lock);
    while (number < b->list_count && b->list[number].x != x) {
        number++;
    }
    ASSERT(number < BOX_TAKERS);
    b->list_count = MAX_OF(b->list_count, number + 1);
    b->list[number].x = x;
    b->list[number].since_ns = now_ns;
    mutex_unlock(&b->lock);
    return number;
}

/* Edges a nanosecond; 0 = nobody knows. */
static f64 rate_of(const struct box_taker *taker) {
    return taker->lately_edges / MAX_OF(taker->lately_ns, 1.0);
}

/* What is left, divided by how fast all are; those of whom nothing is known are as fast as this one. */
static i64 share_of(const struct boxes *b, u32 taker, i64 left) {
    f64 own = rate_of(&b->list[taker]), all = 0.0;
    i64 others = b->takers;
    if (own <= 0.0) {
        return b->trie.edges / (SLAB_FIRST * b->takers) + 1;
    }
    for (u32 i = 0; i < b->list_count; i++) {
        f64 rate = rate_of(&b->list[i]);
        all += rate;
        others -= rate > 0.0;
    }
    all += own * (f64)MAX_OF(others, 0);
    f64 edges = MAX_OF((f64)left / SLABS_LEFT, (f64)b->trie.edges / SLABS_MOST);
    return (i64)(edges * own / all) + 1;
}

void boxes_finished(struct boxes *b, u32 taker, const struct slab *slab, i64 now_ns) {
    struct box_taker *who = &b->list[taker];
    i64 edges = (i64)(b->trie.starts[slab->end] - b->trie.starts[slab->first]);
    mutex_lock(&b->lock);
    who->slabs++;
    who->edges += edges;
    who->lately_edges = who->lately_edges / 2 + (f64)edges;
    who->lately_ns = who->lately_ns / 2 + (f64)MAX_OF(now_ns - who->since_ns, 1);
    who->since_ns = now_ns;
    mutex_unlock(&b->lock);
}

i64 boxes_slabs_of(const struct boxes *b, const struct exec *x) {
    i64 slabs = 0;
    for (u32 i = 0; i < b->list_count; i++) {
        slabs += b->list[i].x == x ? b->list[i].slabs : 0;
    }
    return slabs;
}

bool boxes_take(struct boxes *b, u32 taker, const struct box_room *room, struct slab *out) {
    const struct trie *t = &b->trie;
    mutex_lock(&b->lock);
    i64 left = t->edges - (i64)t->starts[b->next];
    i64 most = MAX_OF(b->takers > 1 ? share_of(b, taker, left) : left, 1);
    i64 end = b->next < t->nodes ? end_by_search(b, room, most) : t->nodes;
    end = room->bits_bytes ? end_by_bits(b, room, end) : end;
    *out = (struct slab){b->next, end};
    b->next = end;
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

/* merge_words.h: merges of ascending integers in registers.
 *
 * Equal integers cannot be told apart, so a merge of nothing else need not be stable, and minima
 * and maxima do it: a thread puts its part of the tile on wires (wires.h: elements of a ascending,
 * of b descending, and one word below all others, which falls out), and five rows of comparisons
 * later they are in order. Tiles come and go in vectors; the output's are aligned, as tiles are
 * multiples of them. Where arrays are not, merge.h does the work.
 *
 * The text defines MERGE_THREADS, WIRE_ITEMS (15 or 31; 8 bytes: 15) and WF_MIN_BLOCKS. */
#include "path.h"

#define MERGE_TILE (MERGE_THREADS * WIRE_ITEMS)
#include "merge_cuts.h"

#define RAW K
#define RAW_BYTES KEY_BYTES
#define WIRE_THREADS MERGE_THREADS
#define WIRE_A_LAST 0
#define WIRE_WHOLE 1
#define WIRE_BARE 1
#include "wires.h"

#if KEY_BYTES == 4
#define OF_WORDS(name) name##_narrow
#else
#define OF_WORDS(name) name##_wide
#endif
#define VEC_KEYS (16 / KEY_BYTES)

FN void tile_of(struct wire_tile *t, const struct kmerge *m, const struct merge_place *p) {
    t->a = (const K *)m->a;
    t->b = (const K *)(m->run ? m->a : m->b);
    t->a_count = m->a_count;
    t->b_count = m->run ? m->a_count : m->b_count;
    t->a_first = p->pair.first + p->i;
    t->b_first = (m->run ? p->pair.first + p->pair.a_n : 0) + p->j;
    t->a_rows = p->a_rows;
    t->b_rows = p->rows - p->a_rows;
    t->low = t->down = t->b_before = 0;
    t->base = (K)m->order.flip_low;
}

/* Words to keys, in vectors. */
FN void t_write(K *out, const K *s_words, u32 rows, K flip) {
    for (u32 at = t_id() * VEC_KEYS; at < rows; at += MERGE_THREADS * VEC_KEYS) {
        if (at + VEC_KEYS <= rows) {
            vec16 v = load16(s_words + at);
            UNROLL for (u32 w = 0; w < 4; w++) {
                v.w[w] ^= (u32)(flip >> (w * 32 % (KEY_BYTES * 8)));
            }
            store_once16(out + at, v);
        } else {
            for (u32 i = at; i < rows; i++) {
                out[i] = s_words[i] ^ flip;
            }
        }
    }
}

KERNEL(k_merge_words, struct kmerge, MERGE_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_cuts, MERGE_THREADS + 1);
    struct merge_place place = merge_place_of(&args, (i64)t_block());
    struct wire_tile t;
    tile_of(&t, &args, &place);
    OF_WORDS(t_bring)(&t, s_bytes);
    b_sync();
    struct wire_part p = OF_WORDS(b_part)(s_bytes, &t, s_cuts);
    K r[WIRES];
    OF_WORDS(load)(r, s_bytes, &t, &p, (K)0);
    OF_WORDS(merge)(r);
    b_sync();
    K *s_words = (K *)(void *)s_bytes;
    u32 none = WIRES - (p.i_end - p.i + p.j_end - p.j);
    u32 to = p.i + p.j - none; /* wraps where it is not used */
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        if (k >= none) {
            s_words[to + k] = r[k];
        }
    }
    b_sync();
    t_write((K *)args.out + place.row, s_words, place.rows, t.base);
}

/* merge_words.h: merges of ascending integers in registers.
 *
 * Equal integers cannot be told apart, so a merge of nothing else need not be stable, and minima
 * and maxima do it: a thread puts its part of the tile on wires (wires.h: elements of a ascending,
 * of b descending, and one word below all others, which falls out), and four or five rows of
 * comparisons later they are in order. Tiles come and go in vectors; the output's are aligned, as
 * tiles are multiples of them. Where arrays are not, merge.h does the work.
 *
 * Payload of 4-byte keys is brought to shared memory along with them; its place there is the lower
 * half of words of 64 bits, which makes them differ, and the merge stable.
 *
 * The text defines MERGE_THREADS, WIRE_ITEMS (15 or 31; words of 8 bytes: 15), WF_MIN_BLOCKS and
 * PAYLOAD (bytes: 0, or with keys of 4: 4 or 8). */
#include "path.h"

#define MERGE_TILE (MERGE_THREADS * WIRE_ITEMS)
#include "merge_cuts.h"

#define RAW K
#define RAW_BYTES KEY_BYTES
#define WIRE_THREADS MERGE_THREADS
#define WIRE_A_LAST 0
#define WIRE_WHOLE 1
#define WIRE_BARE 1
#if PAYLOAD
#define WIRE_PLACED 1
#endif
#include "wires.h"

#if KEY_BYTES == 4
#define OF_WORDS(name) name##_narrow
#else
#define OF_WORDS(name) name##_wide
#endif
#define VEC_KEYS (16 / KEY_BYTES)
#define WORDS_BYTES (MERGE_TILE * KEY_BYTES + 96) /* gpu_merge_words */

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

#if PAYLOAD
typedef WORD_OF(PAYLOAD) P;
#define VEC_P (16 / PAYLOAD)
#define HELD_BYTES (MERGE_TILE * PAYLOAD + 96)
#define HELD_LOADS (((MERGE_TILE + 4 * (VEC_P - 1)) / VEC_P + MERGE_THREADS - 1) / MERGE_THREADS)

struct held { /* the tile's payload, on its way */
    const P *a;
    const P *b;           /* as if it followed a's vectors */
    u32 a_at, b_at;       /* where its elements will be in shared memory */
    u32 a_vecs, vecs, in; /* in: all vectors lie within their arrays */
    vec16 v[HELD_LOADS];
};

FN void t_fetch(struct held *h, const struct kmerge *m, const struct wire_tile *t) {
    u32 b_skew = (u32)t->b_first & (VEC_P - 1u);
    h->a_at = (u32)t->a_first & (VEC_P - 1u);
    h->a_vecs = (h->a_at + t->a_rows + VEC_P - 1u) / VEC_P;
    h->vecs = h->a_vecs + (b_skew + t->b_rows + VEC_P - 1u) / VEC_P;
    h->b_at = h->a_vecs * VEC_P + b_skew;
    i64 a_from = t->a_first - (i64)h->a_at;
    i64 b_from = t->b_first - (i64)h->b_at;
    h->in = a_from + (i64)(h->a_vecs * VEC_P) <= t->a_count &&
            b_from + (i64)(h->vecs * VEC_P) <= t->b_count;
    h->a = (const P *)m->a_payload + a_from;
    h->b = (const P *)(m->run ? m->a_payload : m->b_payload) + b_from;
    UNROLL for (u32 k = 0; k < HELD_LOADS; k++) {
        u32 i = k * MERGE_THREADS + t_id();
        if (h->in && i < h->vecs) {
            h->v[k] = load16((i < h->a_vecs ? h->a : h->b) + i * VEC_P);
        }
    }
}

FN void t_keep(const struct held *h, const struct wire_tile *t, P *s_held) {
    UNROLL for (u32 k = 0; k < HELD_LOADS; k++) {
        u32 i = k * MERGE_THREADS + t_id();
        if (h->in && i < h->vecs) {
            store16(s_held + i * VEC_P, h->v[k]);
        }
    }
    for (u32 i = t_id(); !h->in && i < t->a_rows + t->b_rows; i += MERGE_THREADS) {
        u32 at = i < t->a_rows ? h->a_at + i : h->b_at + (i - t->a_rows);
        s_held[at] = (i < t->a_rows ? h->a : h->b)[at];
    }
}

/* A thread's part: words above, below them where their payload is. */
FN void load_placed(u64 *r, const u8 *s, const struct wire_tile *t, const struct wire_part *p,
                    const struct held *h) {
    u32 a_n = p->i_end - p->i;
    u32 n = a_n + p->j_end - p->j;
    u32 b_last = p->j + n - 1u;
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        r[k] = 0;
        if (k < n) {
            u32 word = word_narrow(s, 4u * (k < a_n ? t->a_at + p->i + k : t->b_at + b_last - k));
            r[k] = (u64)word << 32 | (k < a_n ? h->a_at + p->i + k : h->b_at + b_last - k);
        }
    }
}

FN void t_write_held(P *out, const P *s_held, const u16 *s_places, u32 rows) {
    for (u32 at = t_id() * VEC_P; at < rows; at += MERGE_THREADS * VEC_P) {
        if (at + VEC_P <= rows) {
            vec16 v;
            UNROLL for (u32 w = 0; w < 4; w++) {
                P held = s_held[s_places[at + w * 4 / PAYLOAD]];
                v.w[w] = (u32)(held >> (w * 32 % (PAYLOAD * 8)));
            }
            store_once16(out + at, v);
        } else {
            for (u32 i = at; i < rows; i++) {
                out[i] = s_held[s_places[i]];
            }
        }
    }
}
#endif

KERNEL(k_merge_words, struct kmerge, MERGE_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_cuts, MERGE_THREADS + 1);
    struct merge_place place = merge_place_of(&args, (i64)t_block());
    struct wire_tile t;
    tile_of(&t, &args, &place);
    K *s_words = (K *)(void *)s_bytes;
#if PAYLOAD
    P *s_held = (P *)(void *)(s_bytes + WORDS_BYTES);
    u16 *s_places = (u16 *)(void *)(s_bytes + WORDS_BYTES + HELD_BYTES);
    struct held h;
    t_fetch(&h, &args, &t);
    OF_WORDS(t_bring)(&t, s_bytes);
    t_keep(&h, &t, s_held);
#else
    OF_WORDS(t_bring)(&t, s_bytes);
#endif
    b_sync();
    struct wire_part p = OF_WORDS(b_part)(s_bytes, &t, s_cuts);
    u32 none = WIRES - (p.i_end - p.i + p.j_end - p.j);
    u32 to = p.i + p.j - none; /* wraps where it is not used */
#if PAYLOAD
    u64 r[WIRES];
    load_placed(r, s_bytes, &t, &p, &h);
    merge_wide(r);
    b_sync();
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        if (k >= none) {
            s_words[to + k] = (u32)(r[k] >> 32);
            s_places[to + k] = (u16)r[k];
        }
    }
#else
    K r[WIRES];
    OF_WORDS(load)(r, s_bytes, &t, &p, (K)0);
    OF_WORDS(merge)(r);
    b_sync();
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        if (k >= none) {
            s_words[to + k] = r[k];
        }
    }
#endif
    b_sync();
    t_write((K *)args.out + place.row, s_words, place.rows, t.base);
#if PAYLOAD
    t_write_held((P *)args.out_payload + place.row, s_held, s_places, place.rows);
#endif
}

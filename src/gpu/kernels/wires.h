/* wires.h: two ascending arrays whose keys do not repeat, merged tile by tile in registers.
 *
 * Elements become words: the key, less the tile's least, then a bit that tells the array, then
 * `low` bits that come along. So no two words are equal, minima and maxima alone sort them, and the
 * pair of an element is the word before it with the other bit. Keys of a tile lie close together,
 * which is why words of 32 bits ("narrow") nearly always do, whatever an element's width: wires_fit
 * says so from the least and the greatest element; otherwise words have 64 ("wide").
 *
 * A block brings its tile in vectors, all on their way at once, and keeps words in shared memory. A
 * thread finds its part of the merge by halving, puts it on wires (elements of a ascending, of b
 * descending, and the word before them are a bitonic sequence), merges, and compares neighbours:
 * some thirty instructions an element of a 32-wire part, half of what a step-by-step merge takes.
 *
 * The text before defines
 *   RAW, RAW_BYTES   elements as they lie in memory: 4, 8 or 16 bytes
 *   WIRE_THREADS     of a block
 *   WIRE_ITEMS       of a thread's part: 7, 15 or 31
 *   WIRE_A_LAST      of equal keys that of b comes first
 *   WIRE_WHOLE       optional: all of an element is its key
 *   WIRE_BARE        optional: a word is the element, with the bits of `base` turned over; words
 * may be equal, so that nothing can be learnt of them See decision 0017. */
#ifndef WF_WIRES_H
#define WF_WIRES_H

#include "prelude.h"

#define WIRES (WIRE_ITEMS + 1)
#define WIRE_TILE (WIRE_THREADS * WIRE_ITEMS)
#define RAW_VEC (16 / RAW_BYTES)
/* Most vectors of a tile: one element more than a tile has, and one before, each array as it is
 * aligned. */
#define WIRE_VECS ((WIRE_TILE + 2 + 4 * (RAW_VEC - 1)) / RAW_VEC)
#define WIRE_LOADS ((WIRE_VECS + WIRE_THREADS - 1) / WIRE_THREADS)
#define WIRE_TOP \
    (WIRE_TILE >= 4096 ? 4096u : WIRE_TILE >= 2048 ? 2048u : WIRE_TILE >= 1024 ? 1024u : 512u)

struct wire_tile {
    const RAW *a;
    const RAW *b;
    i64 a_count, b_count; /* of the arrays */
    i64 a_first, b_first; /* the tile's part of each, */
    u32 a_rows, b_rows;
    u32 a_at, b_at; /* where its words are in shared memory */
    u32 b_before;   /* 1: the element of b before the tile comes along */
    u32 low;        /* bits of a word below the array's */
    u32 down;       /* bits of an element that no word has */
    RAW base;       /* what words count from */
};

struct wire_part { /* of a thread: elements of a and of b */
    u32 i, i_end;
    u32 j, j_end;
};

struct wire_bits {
    u32 pair;     /* wire k and the one before have the same key */
    u32 last;     /* wire k is of the array that comes last */
    u32 here;     /* wire k is of the thread's part */
    u32 repeated; /* a key of one array is there twice: the rest means nothing */
};

#ifdef WIRE_WHOLE
#define WIRE_LOW(t) 0u
#define WIRE_DOWN(t) 0u
#else
#define WIRE_LOW(t) ((t)->low)
#define WIRE_DOWN(t) ((t)->down)
#endif

/* Says from its least and greatest element whether words of so many bits do for the tile, and where
 * they count from. */
FN u32 wires_fit(struct wire_tile *t, RAW least, RAW greatest, u32 bits) {
    RAW one = (RAW)1 << WIRE_LOW(t);
    RAW first = (least >> WIRE_DOWN(t)) & ~(one - 1u);
    RAW span = (greatest >> WIRE_DOWN(t)) - first;
    t->base = first - one; /* nothing comes before a tile as the word 0, which pairs with none */
    return WIRE_LOW(t) + 2u < bits && span < ((RAW)1 << (bits - 1u)) - 2u * one;
}

FN RAW raw_of_vec(vec16 v, u32 j) {
#if RAW_BYTES == 4
    return v.w[j];
#elif RAW_BYTES == 8
    return (u64)v.w[2 * j + 1] << 32 | v.w[2 * j];
#else
    return ((u128)v.w[3] << 96 | (u128)v.w[2] << 64 | (u128)v.w[1] << 32 | v.w[0]) >> j;
#endif
}

/* The words of vector number i, in order. */
FN void put_narrow(u8 *s, u32 i, const u32 *word) {
#if RAW_VEC == 4
    vec16 v;
    UNROLL for (u32 q = 0; q < 4; q++) {
        v.w[q] = word[q];
    }
    store16(s + i * 16, v);
#elif RAW_VEC == 2
    ((u64 *)(void *)s)[i] = (u64)word[1] << 32 | word[0];
#else
    ((u32 *)(void *)s)[i] = word[0];
#endif
}
FN void put_wide(u8 *s, u32 i, const u64 *word) {
    UNROLL for (u32 q = 0; q < RAW_VEC; q++) {
        ((u64 *)(void *)s)[i * RAW_VEC + q] = word[q];
    }
}

/* Whether x of a comes before y of b, which WIRE_BEHIND does not before 0. */
#ifdef WIRE_BARE
#define WIRE_BEFORE(x, y) ((x) <= (y))
#define WIRE_BEHIND 1
#define WIRE_OF_RAW(X, t, raw, is_a) \
    UNUSED_WORD(is_a);               \
    return (X)((raw) ^ (t)->base);
#define RAW_OF_WIRE(X, t, word) return (RAW)(word) ^ (t)->base;
#else
#define WIRE_BEFORE(x, y) ((x) < (y))
#define WIRE_BEHIND 0
#define WIRE_OF_RAW(X, t, raw, is_a)                                    \
    X one = (X)1 << WIRE_LOW(t);                                        \
    X add = ((is_a) == WIRE_A_LAST ? one : (X)0) - (X)2 * (X)(t)->base; \
    X x = (X)((raw) >> WIRE_DOWN(t));                                   \
    return x + (x & ~(one - 1u)) + add;
#define RAW_OF_WIRE(X, t, word)                  \
    X lows = ((X)1 << WIRE_LOW(t)) - 1u;         \
    X x = ((word) >> 1 & ~lows) | ((word)&lows); \
    return ((RAW)x + (t)->base) << WIRE_DOWN(t);
#endif

/* wire: an element as a word; raw: the element again, less the bits that no word has.
 * t_bring: the tile's words to s; a barrier is the caller's. Says whether a key is there twice, as
 * far as the first two words of vectors tell: where many are, nobody begins to merge.
 * split: how many of the first `d` words are a's.
 * b_part: the thread's part; s_cuts: a word per thread and one more; one barrier.
 * before: the word before the part; 0: none. after: the word behind it; all ones: none.
 * load, merge: the part and the word before it on wires, then ascending on the last ones.
 * learn: what neighbours tell.
 * Long because they are one set of words for two widths. */
#define WIRE_WORDS(w, X)                                                                       \
    FN X wire_##w(const struct wire_tile *t, RAW raw, u32 is_a){                               \
        WIRE_OF_RAW(X, t, raw, is_a)} FN RAW raw_##w(const struct wire_tile *t, X word){       \
        RAW_OF_WIRE(X, t, word)} FN void t_bring_edge_##w(struct wire_tile *t, u8 *s) {        \
        X *words = (X *)(void *)s;                                                             \
        for (u32 i = t_id(); i < t->a_rows; i += WIRE_THREADS) {                               \
            words[t->a_at + i] = wire_##w(t, t->a[t->a_first + (i64)i], 1);                    \
        }                                                                                      \
        for (u32 i = t_id(); i < t->b_rows + t->b_before; i += WIRE_THREADS) {                 \
            i64 from = t->b_first - (i64)t->b_before;                                          \
            words[t->b_at - t->b_before + i] = wire_##w(t, t->b[from + (i64)i], 0);            \
        }                                                                                      \
    }                                                                                          \
    FN u32 t_bring_##w(struct wire_tile *t, u8 *s) {                                           \
        u32 a_skew = (u32)t->a_first & (RAW_VEC - 1u);                                         \
        u32 b_skew = ((u32)t->b_first - t->b_before) & (RAW_VEC - 1u);                         \
        b_skew += t->b_before;                                                                 \
        u32 a_vecs = (a_skew + t->a_rows + RAW_VEC - 1u) / RAW_VEC;                            \
        u32 vecs = a_vecs + (b_skew + t->b_rows + RAW_VEC - 1u) / RAW_VEC;                     \
        i64 a_from = t->a_first - (i64)a_skew;                                                 \
        i64 b_from = t->b_first - (i64)b_skew - (i64)(a_vecs * RAW_VEC);                       \
        t->a_at = a_skew;                                                                      \
        t->b_at = a_vecs * RAW_VEC + b_skew;                                                   \
        if (a_from + (i64)(a_vecs * RAW_VEC) > t->a_count ||                                   \
            b_from + (i64)(vecs * RAW_VEC) > t->b_count) {                                     \
            t_bring_edge_##w(t, s);                                                            \
            return 0;                                                                          \
        }                                                                                      \
        const RAW *a = t->a + (a_from + (i64)(t_id() * RAW_VEC));                              \
        const RAW *b = t->b + (b_from + (i64)(t_id() * RAW_VEC));                              \
        vec16 v[WIRE_LOADS];                                                                   \
        u32 repeated = 0;                                                                      \
        UNROLL for (u32 k = 0; k < WIRE_LOADS; k++) {                                          \
            u32 i = k * WIRE_THREADS + t_id();                                                 \
            if (i < vecs) {                                                                    \
                v[k] = load16((i < a_vecs ? a : b) + k * (WIRE_THREADS * RAW_VEC));            \
            }                                                                                  \
        }                                                                                      \
        UNROLL for (u32 k = 0; k < WIRE_LOADS; k++) {                                          \
            u32 i = k * WIRE_THREADS + t_id();                                                 \
            if (i < vecs) {                                                                    \
                X word[RAW_VEC];                                                               \
                UNROLL for (u32 q = 0; q < RAW_VEC; q++) {                                     \
                    word[q] = wire_##w(t, raw_of_vec(v[k], q), i < a_vecs);                    \
                }                                                                              \
                put_##w(s, i, word);                                                           \
                if (RAW_VEC > 1) {                                                             \
                    repeated |= (word[0] ^ word[RAW_VEC > 1]) >> WIRE_LOW(t) == 0;             \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
        return repeated;                                                                       \
    }                                                                                          \
    FN X word_##w(const u8 *s, u32 byte) {                                                     \
        return *(const X *)(const void *)(s + byte);                                           \
    }                                                                                          \
    FN u32 split_##w(const u8 *s, const struct wire_tile *t, u32 d) {                          \
        u32 from = d > t->b_rows ? d - t->b_rows : 0u;                                         \
        u32 left = (d < t->a_rows ? d : t->a_rows) - from;                                     \
        u32 a = (t->a_at + from) * (u32)sizeof(X);                                             \
        u32 b = (t->b_at + d - from) * (u32)sizeof(X);                                         \
        UNROLL for (u32 by = WIRE_TOP; by; by >>= 1) {                                         \
            u32 by_bytes = by * (u32)sizeof(X);                                                \
            X x = (X)WIRE_BEHIND;                                                              \
            X y = 0;                                                                           \
            if (left >= by) {                                                                  \
                x = word_##w(s, a + by_bytes - (u32)sizeof(X));                                \
                y = word_##w(s, b - by_bytes);                                                 \
            }                                                                                  \
            if (WIRE_BEFORE(x, y)) {                                                           \
                a += by_bytes;                                                                 \
                b -= by_bytes;                                                                 \
                left -= by;                                                                    \
            }                                                                                  \
        }                                                                                      \
        return a / (u32)sizeof(X) - t->a_at;                                                   \
    }                                                                                          \
    FN struct wire_part b_part_##w(const u8 *s, const struct wire_tile *t, u32 *s_cuts) {      \
        struct wire_part p;                                                                    \
        u32 rows = t->a_rows + t->b_rows;                                                      \
        u32 d = t_id() * WIRE_ITEMS < rows ? t_id() * WIRE_ITEMS : rows;                       \
        u32 end = d + WIRE_ITEMS < rows && t_id() + 1u < WIRE_THREADS ? d + WIRE_ITEMS : rows; \
        p.i = split_##w(s, t, d);                                                              \
        p.j = d - p.i;                                                                         \
        s_cuts[t_id()] = p.i;                                                                  \
        if (t_id() == 0) {                                                                     \
            s_cuts[WIRE_THREADS] = t->a_rows;                                                  \
        }                                                                                      \
        b_sync();                                                                              \
        p.i_end = s_cuts[t_id() + 1u];                                                         \
        p.j_end = end - p.i_end;                                                               \
        return p;                                                                              \
    }                                                                                          \
    FN X before_##w(const u8 *s, const struct wire_tile *t, const struct wire_part *p) {       \
        const X *words = (const X *)(const void *)s;                                           \
        X x = 0;                                                                               \
        X y = 0;                                                                               \
        if (p->i) {                                                                            \
            x = words[t->a_at + p->i - 1u];                                                    \
        }                                                                                      \
        if (p->j + t->b_before) {                                                              \
            y = words[t->b_at + p->j - 1u];                                                    \
        }                                                                                      \
        return x > y ? x : y;                                                                  \
    }                                                                                          \
    FN X after_##w(const u8 *s, const struct wire_tile *t, const struct wire_part *p) {        \
        const X *words = (const X *)(const void *)s;                                           \
        X x = (X) ~(X)0;                                                                       \
        X y = x;                                                                               \
        if (p->i_end < t->a_rows) {                                                            \
            x = words[t->a_at + p->i_end];                                                     \
        }                                                                                      \
        if (p->j_end < t->b_rows) {                                                            \
            y = words[t->b_at + p->j_end];                                                     \
        }                                                                                      \
        return x < y ? x : y;                                                                  \
    }                                                                                          \
    FN void load_##w(X *r, const u8 *s, const struct wire_tile *t, const struct wire_part *p,  \
                     X before) {                                                               \
        u32 a_n = p->i_end - p->i;                                                             \
        u32 n = a_n + p->j_end - p->j;                                                         \
        u32 a = (t->a_at + p->i) * (u32)sizeof(X);                                             \
        u32 b = (t->b_at + p->j + n - 1u) * (u32)sizeof(X);                                    \
        if (n == WIRE_ITEMS) {                                                                 \
            UNROLL for (u32 k = 0; k < WIRE_ITEMS; k++) {                                      \
                u32 by = k * (u32)sizeof(X);                                                   \
                r[k] = word_##w(s, k < a_n ? a + by : b - by);                                 \
            }                                                                                  \
            r[WIRE_ITEMS] = before;                                                            \
        } else {                                                                               \
            UNROLL for (u32 k = 0; k < WIRES; k++) {                                           \
                u32 by = k * (u32)sizeof(X);                                                   \
                r[k] = before;                                                                 \
                if (k < n) {                                                                   \
                    r[k] = word_##w(s, k < a_n ? a + by : b - by);                             \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    FN void merge_##w(X *r) {                                                                  \
        UNROLL for (u32 by = WIRES / 2; by; by /= 2) {                                         \
            UNROLL for (u32 k = 0; k < WIRES; k++) {                                           \
                if (!(k & by)) {                                                               \
                    X x = r[k];                                                                \
                    X y = r[k + by];                                                           \
                    r[k] = x < y ? x : y;                                                      \
                    r[k + by] = x < y ? y : x;                                                 \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    FN struct wire_bits learn_##w(const X *r, const struct wire_tile *t,                       \
                                  const struct wire_part *p, X before) {                       \
        struct wire_bits bits;                                                                 \
        u32 low = WIRE_LOW(t);                                                                 \
        u32 n = p->i_end - p->i + p->j_end - p->j;                                             \
        bits.pair = bits.last = bits.repeated = 0;                                             \
        bits.here = n ? ~0u >> (32 - WIRES) & ~0u << (WIRES - n) : 0u;                         \
        if (n == WIRE_ITEMS) {                                                                 \
            X least = (X) ~(X)0;                                                               \
            UNROLL for (u32 k = 1; k < WIRES; k++) {                                           \
                X x = r[k] ^ r[k - 1];                                                         \
                bits.pair |= (u32)(x >> low == 1u) << k;                                       \
                bits.last |= ((u32)(r[k] >> low) & 1u) << k;                                   \
                least = x < least ? x : least;                                                 \
            }                                                                                  \
            bits.repeated = least >> low == 0;                                                 \
        } else {                                                                               \
            UNROLL for (u32 k = 0; k < WIRES; k++) {                                           \
                X x = (r[k] ^ (k ? r[k - 1] : before)) >> low;                                 \
                bits.pair |= (u32)(x == 1u) << k;                                              \
                bits.last |= ((u32)(r[k] >> low) & 1u) << k;                                   \
                bits.repeated |= (u32)(x == 0) << k;                                           \
            }                                                                                  \
            bits.repeated = (bits.repeated & bits.here) != 0;                                  \
        }                                                                                      \
        return bits;                                                                           \
    }
WIRE_WORDS(narrow, u32)
#if RAW_BYTES > 4 || defined WIRE_PLACED
WIRE_WORDS(wide, u64)
#endif

#endif

/* vec_rows.c: loops that move, decode, find and sum up rows; the table of all loops of a level.
 *
 * Compiled once per processor level (WF_LEVEL names it); the CPU device picks a table at start. The
 * loops are plain C that compilers vectorise. Only those that turn a mask into positions use
 * intrinsics, because no compiler finds `compress`, and probes, which gather. */
#include "cpu/vec.h"

#include "defs/host_words.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef WF_LEVEL
#error "WF_LEVEL names the processor level: baseline, avx2 or avx512"
#endif

/* Decoding: integers `from` over a base to kind `to`; unsigned arithmetic, so a base may wrap.
 * Signed sources are extended by the conversion. */
#define DECODE_TO(X, s, from, w) \
    X(s, from, w, b8, u8, B8)    \
    X(s, from, w, i32, u32, I32) X(s, from, w, i64, u64, I64) X(s, from, w, i128, u128, I128)
#define DECODERS(X)          \
    DECODE_TO(X, 0, u8, 0)   \
    DECODE_TO(X, 0, u16, 1)  \
    DECODE_TO(X, 0, u32, 2)  \
    DECODE_TO(X, 0, u64, 3)  \
    DECODE_TO(X, 0, u128, 4) \
    DECODE_TO(X, 1, i8, 0)   \
    DECODE_TO(X, 1, i16, 1)  \
    DECODE_TO(X, 1, i32, 2) DECODE_TO(X, 1, i64, 3) DECODE_TO(X, 1, i128, 4)
#define X(s, from, w, to, acc, K)                                                                \
    static void decode_##from##_##to(void *restrict dst, const void *restrict src, i128 base,    \
                                     i64 n) {                                                    \
        to *restrict out = dst;                                                                  \
        const from *restrict in = src;                                                           \
        const acc add = (acc)base;                                                               \
        for (i64 i = 0; i < n; i++) {                                                            \
            out[i] = (to)(acc)((acc)in[i] + add);                                                \
        }                                                                                        \
    }                                                                                            \
    static void decode_at_##from##_##to(void *restrict dst, const void *restrict src, i128 base, \
                                        const u32 *restrict pos, i64 n) {                        \
        to *restrict out = dst;                                                                  \
        const from *restrict in = src;                                                           \
        const acc add = (acc)base;                                                               \
        for (i64 i = 0; i < n; i++) {                                                            \
            out[i] = (to)(acc)((acc)in[pos[i]] + add);                                           \
        }                                                                                        \
    }
DECODERS(X)
#undef X

typedef struct wide16 {
    u64 w[2];
} wide16;

#define MOVERS(X) X(u8, 0) X(u16, 1) X(u32, 2) X(u64, 3) X(wide16, 4)
#define X(type, w)                                                            \
    static void gather_##type(void *restrict dst, const void *restrict src,   \
                              const u32 *restrict sel, i64 m) {               \
        type *restrict out = dst;                                             \
        const type *restrict in = src;                                        \
        for (i64 i = 0; i < m; i++) {                                         \
            out[i] = in[sel[i]];                                              \
        }                                                                     \
    }                                                                         \
    static void gather64_##type(void *restrict dst, const void *restrict src, \
                                const i64 *restrict row, i64 n) {             \
        type *restrict out = dst;                                             \
        const type *restrict in = src;                                        \
        for (i64 i = 0; i < n; i++) {                                         \
            out[i] = in[row[i]];                                              \
        }                                                                     \
    }                                                                         \
    static void blend_##type(void *restrict dst, const void *restrict src,    \
                             const u32 *restrict sel, i64 m) {                \
        type *restrict out = dst;                                             \
        const type *restrict in = src;                                        \
        for (i64 i = 0; i < m; i++) {                                         \
            out[sel[i]] = in[sel[i]];                                         \
        }                                                                     \
    }
MOVERS(X)
#undef X

/* Aggregation words. Sums wrap: the lowerer splits a sum that could overflow into parts. Four
 * replicas of a tiny state keep one row's store out of the next row's load. */
#define WORD_CASE_ADD(w, x) (i64)((u64)(w) + (u64)(x))
#define WORD_CASE_MIN(w, x) ((x) < (w) ? (x) : (w))
#define WORD_CASE_MAX(w, x) ((x) > (w) ? (x) : (w))
#define WORD_CASE_AND(w, x) ((w) & (x))
#define WORD_CASE_OR(w, x) ((w) | (x))
#define WORD_CASE_XOR(w, x) ((w) ^ (x))
#define WORD_CASE_FADD(w, x) (i64) f64_bits(bits_f64((u64)(w)) + bits_f64((u64)(x)))
#define APPLY(name, word, value)                      \
    do {                                              \
        i64 *apply_ = (word);                         \
        *apply_ = WORD_CASE_##name(*apply_, (value)); \
    } while (0)
#define X(A, name, identity, expr)                                                              \
    static i64 reduce_##name(i64 word, const i64 *restrict x, const u32 *restrict sel, i64 m) { \
        i64 w = word;                                                                           \
        for (i64 j = 0; sel && j < m; j++) {                                                    \
            w = WORD_CASE_##name(w, x[sel[j]]);                                                 \
        }                                                                                       \
        for (i64 j = 0; !sel && j < m; j++) {                                                   \
            w = WORD_CASE_##name(w, x[j]);                                                      \
        }                                                                                       \
        return w;                                                                               \
    }                                                                                           \
    static void tiny_##name(i64 *restrict state, i64 replica, const i64 *restrict key,          \
                            const i64 *restrict x, const u32 *restrict sel, i64 m) {            \
        i64 *s1 = state + replica, *s2 = state + 2 * replica, *s3 = state + 3 * replica;        \
        i64 j = 0;                                                                              \
        for (; sel && j + 4 <= m; j += 4) {                                                     \
            APPLY(name, state + key[sel[j]], x[sel[j]]);                                        \
            APPLY(name, s1 + key[sel[j + 1]], x[sel[j + 1]]);                                   \
            APPLY(name, s2 + key[sel[j + 2]], x[sel[j + 2]]);                                   \
            APPLY(name, s3 + key[sel[j + 3]], x[sel[j + 3]]);                                   \
        }                                                                                       \
        for (; !sel && j + 4 <= m; j += 4) {                                                    \
            APPLY(name, state + key[j], x[j]);                                                  \
            APPLY(name, s1 + key[j + 1], x[j + 1]);                                             \
            APPLY(name, s2 + key[j + 2], x[j + 2]);                                             \
            APPLY(name, s3 + key[j + 3], x[j + 3]);                                             \
        }                                                                                       \
        for (; j < m; j++) {                                                                    \
            i64 i = sel ? (i64)sel[j] : j;                                                      \
            APPLY(name, state + key[i], x[i]);                                                  \
        }                                                                                       \
    }                                                                                           \
    static void group_##name(i64 *restrict state, i64 stride, const u32 *restrict group,        \
                             const i64 *restrict x, const u32 *restrict sel, i64 m) {           \
        for (i64 j = 0; sel && j < m; j++) {                                                    \
            APPLY(name, state + (i64)group[j] * stride, x[sel[j]]);                             \
        }                                                                                       \
        for (i64 j = 0; !sel && j < m; j++) {                                                   \
            APPLY(name, state + (i64)group[j] * stride, x[j]);                                  \
        }                                                                                       \
    }
WF_WORDS(X, )
#undef X

static i64 sel_tail(u32 *restrict sel, const b8 *restrict mask, i64 i, i64 n, i64 m) {
    for (; i < n; i++) {
        sel[m] = (u32)i;
        m += mask[i];
    }
    return m;
}

/* The vector forms store whole vectors; there is room because m <= i and the array is padded. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
static i64 sel_build(u32 *restrict sel, const b8 *restrict mask, i64 n) {
    i64 m = 0;
    i64 i = 0;
    __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i step = _mm512_set1_epi32(16);
    for (; i + 64 <= n; i += 64) {
        __m512i bytes = _mm512_loadu_si512((const void *)(mask + i));
        u64 bits = (u64)_mm512_test_epi8_mask(bytes, bytes);
        for (int k = 0; k < 4; k++) {
            __mmask16 part = (__mmask16)(bits >> (16 * k));
            _mm512_storeu_si512((void *)(sel + m), _mm512_maskz_compress_epi32(part, index));
            m += __builtin_popcount((unsigned)part);
            index = _mm512_add_epi32(index, step);
        }
    }
    return sel_tail(sel, mask, i, n, m);
}
#elif defined(__AVX2__)
/* compress8[bits]: the positions of the set bits, one a byte, lowest first. */
#define BIT(b, i) ((u64)(((b) >> (i)) & 1))
#define ONES(b) (BIT(b, 0) + BIT(b, 1) + BIT(b, 2) + BIT(b, 3) + BIT(b, 4) + BIT(b, 5) + BIT(b, 6))
#define AT(b, i) (BIT(b, i) * (i) << 8 * ONES((b) & ((1 << (i)) - 1)))
#define PACK(b) (AT(b, 1) | AT(b, 2) | AT(b, 3) | AT(b, 4) | AT(b, 5) | AT(b, 6) | AT(b, 7))
#define PACK4(b) PACK(b), PACK((b) + 1), PACK((b) + 2), PACK((b) + 3)
#define PACK16(b) PACK4(b), PACK4((b) + 4), PACK4((b) + 8), PACK4((b) + 12)
#define PACK64(b) PACK16(b), PACK16((b) + 16), PACK16((b) + 32), PACK16((b) + 48)
static const u64 compress8[256] = {PACK64(0), PACK64(64), PACK64(128), PACK64(192)};

static i64 sel_build(u32 *restrict sel, const b8 *restrict mask, i64 n) {
    i64 m = 0;
    i64 i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(mask + i));
        __m256i zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        u32 bits = ~(u32)_mm256_movemask_epi8(zero);
        for (int k = 0; k < 4; k++) {
            u32 part = bits >> (8 * k) & 0xffu;
            __m256i at = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((i64)compress8[part]));
            at = _mm256_add_epi32(at, _mm256_set1_epi32((i32)i + 8 * k));
            _mm256_storeu_si256((__m256i *)(void *)(sel + m), at);
            m += __builtin_popcount(part);
        }
    }
    return sel_tail(sel, mask, i, n, m);
}
#else
static i64 sel_build(u32 *restrict sel, const b8 *restrict mask, i64 n) {
    return sel_tail(sel, mask, 0, n, 0);
}
#endif

static i64 sel_refine(u32 *restrict out, const u32 *restrict sel, i64 m, const b8 *restrict mask) {
    i64 k = 0;
    for (i64 j = 0; j < m; j++) {
        out[k] = sel[j];
        k += mask[sel[j]];
    }
    return k;
}

static void mask_and(b8 *restrict mask, const b8 *restrict with, i64 n) {
    for (i64 i = 0; i < n; i++) {
        mask[i] = (b8)(mask[i] & with[i]);
    }
}

static void nulls(b8 *restrict dst, const u64 *restrict valid, i64 first, i64 n) {
    for (i64 i = 0; i < n; i++) {
        i64 at = first + i;
        dst[i] = (b8)(~(valid[at >> 6] >> (at & 63)) & 1);
    }
}

static void nulls_at(b8 *restrict dst, const u64 *restrict valid, i64 first,
                     const u32 *restrict pos, i64 n) {
    for (i64 i = 0; i < n; i++) {
        i64 at = first + pos[i];
        dst[i] = (b8)(~(valid[at >> 6] >> (at & 63)) & 1);
    }
}

static inline str string_at(const u32 *restrict end, const u8 *restrict bytes, i64 i) {
    u32 start = i ? end[i - 1] : 0;
    const u8 *ptr = bytes + start;
    str out = {end[i] - start, 0, (u64)(size_t)ptr};
    if (out.len >= 4) {
        out.prefix = (u32)ptr[0] << 24 | (u32)ptr[1] << 16 | (u32)ptr[2] << 8 | ptr[3];
    } else {
        for (u32 k = 0; k < out.len; k++) {
            out.prefix |= (u32)ptr[k] << (24 - 8 * k);
        }
    }
    return out;
}

/* A stream of addresses the processor does not foresee across pages: it is told. */
enum { AHEAD_BYTES = 1024 };

static void strings(str *restrict dst, const u32 *restrict end, const u8 *restrict bytes, i64 first,
                    i64 n) {
    for (i64 i = 0; i < n; i++) {
        str s = string_at(end, bytes, first + i);
        __builtin_prefetch((const void *)(size_t)(s.addr + AHEAD_BYTES));
        dst[i] = s;
    }
}

static void strings_at(str *restrict dst, const u32 *restrict end, const u8 *restrict bytes,
                       i64 first, const u32 *restrict pos, i64 n) {
    for (i64 i = 0; i < n; i++) {
        dst[i] = string_at(end, bytes, first + pos[i]);
    }
}

static void hash(u64 *restrict out, const i64 *restrict key, i64 n) {
    for (i64 i = 0; i < n; i++) {
        out[i] = hash_u64((u64)key[i]);
    }
}

static void probe_direct(i64 *restrict dst, b8 *restrict found, const i64 *restrict key, i64 key_lo,
                         i64 slot_count, const u32 *restrict heads, i64 n) {
    for (i64 i = 0; i < n; i++) {
        u64 slot = (u64)key[i] - (u64)key_lo;
        u64 inside = slot < (u64)slot_count;
        u32 head = heads[inside ? slot : 0] & (u32) - (i32)inside;
        found[i] = head != 0;
        dst[i] = head ? (i64)head - 1 : 0;
    }
}

/* The rows of a vector that are left: from `at` to `end`, after `kept` were kept. */
struct rest {
    i64 at, end, kept;
};

static void probe_rank_from(i64 *restrict dst, b8 *restrict found, const i64 *restrict key,
                            i64 key_lo, i64 slot_count, const struct rank_block *restrict blocks,
                            struct rest rest) {
    for (i64 i = rest.at; i < rest.end; i++) {
        u64 slot = (u64)key[i] - (u64)key_lo;
        u64 inside = slot < (u64)slot_count;
        slot = inside ? slot : 0;
        const struct rank_block *block = &blocks[slot >> 6];
        u64 there = inside & block->bits >> (slot & 63);
        u64 below = block->bits & ((1ULL << (slot & 63)) - 1);
        u64 rank = block->before + (u64)__builtin_popcountll(below);
        found[i] = (b8)(there & 1);
        dst[i] = (i64)(rank & (0 - (there & 1)));
    }
}

/* The keys that are there: their numbers stay at their places, which follow the places noted before. */
static i64 select_rank_from(i64 *restrict dst, u32 *restrict at, const i64 *restrict key,
                            i64 key_lo, i64 slot_count, const struct rank_block *restrict blocks,
                            struct rest rest) {
    i64 m = rest.kept;
    for (i64 i = rest.at; i < rest.end; i++) {
        u64 slot = (u64)key[i] - (u64)key_lo;
        u64 inside = slot < (u64)slot_count;
        slot = inside ? slot : 0;
        const struct rank_block *block = &blocks[slot >> 6];
        u64 below = block->bits & ((1ULL << (slot & 63)) - 1);
        dst[i] = (i64)(block->before + (u64)__builtin_popcountll(below));
        at[m] = (u32)i;
        m += (i64)(inside & block->bits >> (slot & 63) & 1);
    }
    return m;
}

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
/* Bits set in each word: by nibbles, added up by bytes. */
static inline __m512i count_bits(__m512i x) {
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble));
    __m512i high = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi64(x, 4), nibble));
    return _mm512_sad_epu8(_mm512_add_epi8(low, high), _mm512_setzero_si512());
}

/* Eight keys: which are there, and their numbers, 0 for the others. */
static inline __mmask8 rank_eight(const i64 *key, __m512i lo, __m512i limit,
                                  const struct rank_block *blocks, __m512i *out) {
    const __m512i one = _mm512_set1_epi64(1);
    __m512i slot = _mm512_sub_epi64(_mm512_loadu_si512((const void *)key), lo);
    __mmask8 inside = _mm512_cmplt_epu64_mask(slot, limit);
    __m512i word = _mm512_slli_epi64(_mm512_srli_epi64(slot, 6), 1);
    __m512i bits = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), inside, word, blocks, 8);
    __m512i bit = _mm512_sllv_epi64(one, _mm512_and_si512(slot, _mm512_set1_epi64(63)));
    __mmask8 there = _mm512_test_epi64_mask(bits, bit);
    if (!there) {
        *out = _mm512_setzero_si512();
        return there;
    }
    __m512i before = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), there, word,
                                                 (const u8 *)blocks + sizeof(u64), 8);
    __m512i below = _mm512_and_si512(bits, _mm512_sub_epi64(bit, one));
    *out = _mm512_maskz_add_epi64(there, before, count_bits(below));
    return there;
}

static void probe_rank(i64 *restrict dst, b8 *restrict found, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n) {
    const __m512i lo = _mm512_set1_epi64(key_lo);
    const __m512i limit = _mm512_set1_epi64(slot_count);
    i64 i = 0;
    for (; i + 8 <= n; i += 8) {
        __m512i rank;
        __mmask8 there = rank_eight(key + i, lo, limit, blocks, &rank);
        _mm512_storeu_si512((void *)(dst + i), rank);
        _mm_storel_epi64((__m128i *)(void *)(found + i),
                         _mm_maskz_mov_epi8(there, _mm_set1_epi8(1)));
    }
    probe_rank_from(dst, found, key, key_lo, slot_count, blocks, (struct rest){i, n, 0});
}

static i64 select_rank(i64 *restrict dst, u32 *restrict at, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n) {
    const __m512i lo = _mm512_set1_epi64(key_lo);
    const __m512i limit = _mm512_set1_epi64(slot_count);
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    i64 i = 0;
    i64 m = 0;
    for (; i + 8 <= n; i += 8) {
        __m512i rank;
        __mmask8 there = rank_eight(key + i, lo, limit, blocks, &rank);
        if (there) {
            _mm512_storeu_si512((void *)(dst + i), rank);
            _mm256_storeu_si256((__m256i *)(void *)(at + m),
                                _mm256_maskz_compress_epi32(there, index));
            m += __builtin_popcount((unsigned)there);
        }
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    return select_rank_from(dst, at, key, key_lo, slot_count, blocks, (struct rest){i, n, m});
}
#else
static void probe_rank(i64 *restrict dst, b8 *restrict found, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n) {
    probe_rank_from(dst, found, key, key_lo, slot_count, blocks, (struct rest){0, n, 0});
}

static i64 select_rank(i64 *restrict dst, u32 *restrict at, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n) {
    return select_rank_from(dst, at, key, key_lo, slot_count, blocks, (struct rest){0, n, 0});
}
#endif

static i64 filter_tail(i64 *restrict out, u32 *restrict at, const i64 *restrict key, i64 lo,
                       u64 span, const u32 *restrict bits, struct rest rest) {
    i64 m = rest.kept;
    for (i64 i = rest.at; i < rest.end; i++) {
        u64 slot = (u64)key[i] - (u64)lo;
        u32 inside = slot < span;
        slot = inside ? slot : 0;
        out[m] = key[i];
        at[m] = (u32)i;
        m += (i64)(inside & (bits[slot >> 5] >> (slot & 31)));
    }
    return m;
}

#if defined(__AVX512F__) && defined(__AVX512VL__)
static i64 filter_keys(i64 *restrict out, u32 *restrict at, const i64 *restrict key, i64 lo,
                       u64 span, const u32 *restrict bits, i64 n) {
    i64 m = 0;
    i64 i = 0;
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i base = _mm512_set1_epi64(lo);
    const __m512i limit = _mm512_set1_epi64((long long)span);
    for (; i + 8 <= n; i += 8) {
        __m512i k = _mm512_loadu_si512((const void *)(key + i));
        __m512i slot = _mm512_sub_epi64(k, base);
        __mmask8 inside = _mm512_cmplt_epu64_mask(slot, limit);
        __m256i word = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), inside,
                                                   _mm512_srli_epi64(slot, 5), bits, 4);
        __m256i low = _mm512_cvtepi64_epi32(_mm512_and_si512(slot, _mm512_set1_epi64(31)));
        __m256i bit = _mm256_sllv_epi32(_mm256_set1_epi32(1), low);
        __mmask8 hit = _mm256_test_epi32_mask(word, bit);
        _mm512_storeu_si512((void *)(out + m), _mm512_maskz_compress_epi64(hit, k));
        _mm256_storeu_si256((__m256i *)(void *)(at + m), _mm256_maskz_compress_epi32(hit, index));
        m += __builtin_popcount((unsigned)hit);
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    return filter_tail(out, at, key, lo, span, bits, (struct rest){i, n, m});
}
#else
static i64 filter_keys(i64 *restrict out, u32 *restrict at, const i64 *restrict key, i64 lo,
                       u64 span, const u32 *restrict bits, i64 n) {
    return filter_tail(out, at, key, lo, span, bits, (struct rest){0, n, 0});
}
#endif

static inline i32 hash_shift(i64 size) {
    return size > 1 ? 64 - __builtin_ctzll((u64)size) : 63;
}

static i64 filter_hashes_from(i64 *restrict out, u32 *restrict at, u64 *restrict hash,
                              const i64 *restrict key, i32 shift, const u32 *restrict bits,
                              struct rest rest) {
    i64 m = rest.kept;
    for (i64 i = rest.at; i < rest.end; i++) {
        u64 h = hash[i];
        u64 slot = h >> shift;
        out[m] = key[i];
        at[m] = (u32)i;
        hash[m] = h;
        m += (i64)(bits[slot >> 5] >> (slot & 31) & 1);
    }
    return m;
}

#if defined(__AVX512F__) && defined(__AVX512VL__)
static i64 filter_hashes(i64 *restrict out, u32 *restrict at, u64 *restrict hash,
                         const i64 *restrict key, i64 size, const u32 *restrict bits, i64 n) {
    i64 m = 0;
    i64 i = 0;
    i32 shift = hash_shift(size);
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m128i by = _mm_cvtsi32_si128(shift);
    for (; i + 8 <= n; i += 8) {
        __m512i h = _mm512_loadu_si512((const void *)(hash + i));
        __m512i k = _mm512_loadu_si512((const void *)(key + i));
        __m512i slot = _mm512_srl_epi64(h, by);
        __m256i word = _mm512_i64gather_epi32(_mm512_srli_epi64(slot, 5), bits, 4);
        __m256i low = _mm512_cvtepi64_epi32(_mm512_and_si512(slot, _mm512_set1_epi64(31)));
        __mmask8 hit = _mm256_test_epi32_mask(word, _mm256_sllv_epi32(_mm256_set1_epi32(1), low));
        _mm512_storeu_si512((void *)(out + m), _mm512_maskz_compress_epi64(hit, k));
        _mm512_storeu_si512((void *)(hash + m), _mm512_maskz_compress_epi64(hit, h));
        _mm256_storeu_si256((__m256i *)(void *)(at + m), _mm256_maskz_compress_epi32(hit, index));
        m += __builtin_popcount((unsigned)hit);
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    return filter_hashes_from(out, at, hash, key, shift, bits, (struct rest){i, n, m});
}
#else
static i64 filter_hashes(i64 *restrict out, u32 *restrict at, u64 *restrict hash,
                         const i64 *restrict key, i64 size, const u32 *restrict bits, i64 n) {
    return filter_hashes_from(out, at, hash, key, hash_shift(size), bits, (struct rest){0, n, 0});
}
#endif

/* Rows from `at` on; the run of the row before them is `kept`. */
static i64 number_runs_from(u32 *restrict run, i64 *restrict keys, const i64 *restrict key,
                            struct rest rest) {
    i64 last = rest.kept;
    for (i64 i = rest.at; i < rest.end; i++) {
        last += key[i] != key[i - 1];
        run[i] = (u32)last;
        keys[last] = key[i];
    }
    return last;
}

static i64 first_run(u32 *restrict run, i64 *restrict keys, i64 key, i64 last) {
    last += last < 0 || keys[last] != key;
    run[0] = (u32)last;
    keys[last] = key;
    return last;
}

/* Running totals minus the one where the run began: no row waits for the store of the one before. */
static void add_runs_from(i64 *restrict word, const u32 *restrict run, const i64 *restrict x,
                          struct rest rest, u64 total, u64 before) {
    for (i64 i = rest.at; i < rest.end; i++) {
        before = i > 0 && run[i] != run[i - 1] ? total : before;
        total += (u64)x[i];
        word[run[i]] = (i64)(total - before);
    }
}

#if defined(__AVX512F__) && defined(__AVX512VL__)
/* Of eight rows those that begin a run; how many of these there are up to each row are the bytes of
 * one product. */
static i64 number_runs(u32 *restrict run, i64 *restrict keys, const i64 *restrict key, i64 n,
                       i64 last) {
    const u64 ones = 0x0101010101010101ULL;
    unsigned down = last >= 0 && key[0] < keys[last];
    i64 i = 1;
    last = first_run(run, keys, key[0], last);
    for (; i + 8 <= n; i += 8) {
        __m512i before = _mm512_loadu_si512((const void *)(key + i - 1));
        __m512i k = _mm512_loadu_si512((const void *)(key + i));
        __mmask8 begins = _mm512_cmpneq_epi64_mask(k, before);
        down |= _mm512_cmplt_epi64_mask(k, before);
        __m128i counts = _mm_cvtsi64_si128((long long)(_pdep_u64(begins, ones) * ones));
        _mm256_storeu_si256(
            (__m256i *)(void *)(run + i),
            _mm256_add_epi32(_mm256_cvtepu8_epi32(counts), _mm256_set1_epi32((int)last)));
        _mm512_storeu_si512((void *)(keys + last + 1), _mm512_maskz_compress_epi64(begins, k));
        last += __builtin_popcount((unsigned)begins);
    }
    for (i64 j = i; j < n; j++) {
        down |= key[j] < key[j - 1];
    }
    last = number_runs_from(run, keys, key, (struct rest){i, n, last});
    return down ? -1 : last;
}

/* Eight totals at a time, of which those at the ends of runs are kept; each then gives away the
 * total of the end before it. */
static void add_runs(i64 *restrict word, const u32 *restrict run, const i64 *restrict x, i64 n,
                     u64 total) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i carry = _mm512_set1_epi64((long long)total); /* the total so far */
    __m512i before = zero; /* that of the last end, in the last lane */
    i64 i = 0;
    i64 at = run[0];
    for (; i + 8 < n; i += 8) {
        __m512i sum = _mm512_loadu_si512((const void *)(x + i));
        __mmask8 ends = _mm256_cmpneq_epi32_mask(
            _mm256_loadu_si256((const __m256i *)(const void *)(run + i)),
            _mm256_loadu_si256((const __m256i *)(const void *)(run + i + 1)));
        sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 7));
        sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 6));
        sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 4));
        sum = _mm512_add_epi64(sum, carry);
        carry = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), sum);
        __m512i kept = _mm512_maskz_compress_epi64(ends, sum);
        i64 count = __builtin_popcount((unsigned)ends);
        _mm512_storeu_si512((void *)(word + at),
                            _mm512_sub_epi64(kept, _mm512_alignr_epi64(kept, before, 7)));
        at += count;
        before = count ? _mm512_permutexvar_epi64(_mm512_set1_epi64(count - 1), kept) : before;
    }
    u64 left[2] = {(u64)_mm_cvtsi128_si64(_mm512_castsi512_si128(carry)),
                   (u64)_mm_cvtsi128_si64(_mm512_castsi512_si128(before))};
    add_runs_from(word, run, x, (struct rest){i, n, 0}, left[0], left[1]);
}
#else
static i64 number_runs(u32 *restrict run, i64 *restrict keys, const i64 *restrict key, i64 n,
                       i64 last) {
    u64 down = last >= 0 && key[0] < keys[last];
    for (i64 i = 1; i < n; i++) {
        down |= (u64)(key[i] < key[i - 1]);
    }
    last = first_run(run, keys, key[0], last);
    return down ? -1 : number_runs_from(run, keys, key, (struct rest){1, n, last});
}

static void add_runs(i64 *restrict word, const u32 *restrict run, const i64 *restrict x, i64 n,
                     u64 total) {
    add_runs_from(word, run, x, (struct rest){0, n, 0}, total, 0);
}
#endif

static i64 marked(const i64 *restrict values, i64 n, i64 base, const u32 *restrict bits) {
    i64 count = 0;
    for (i64 i = 0; i < n; i++) {
        u64 bit = (u64)values[i] - (u64)base;
        count += bits[bit >> 5] >> (bit & 31) & 1;
    }
    return count;
}

static i64 marked_nodes(const u32 *restrict nodes, i64 n, i64 base, const u64 *restrict bits) {
    i64 count = 0;
    for (i64 i = 0; i < n; i++) {
        u64 bit = (u64)nodes[i] - (u64)base;
        count += (i64)(bits[bit >> 6] >> (bit & 63) & 1);
    }
    return count;
}

static i64 common_bits(const u64 *restrict a, const u64 *restrict b, i64 words) {
    i64 count = 0;
    for (i64 i = 0; i < words; i++) {
        count += __builtin_popcountll(a[i] & b[i]);
    }
    return count;
}

enum {
    AHEAD_ROWS = 6,   /* nodes whose rows are fetched before they are needed */
    WORDS_A_PLACE = 2 /* that are ANDed in a row in the time of one that is not */
};

static i64 edges_among(const struct bit_rows *rows, const u32 *restrict nodes, i64 n,
                       const u64 *restrict marks, u32 *restrict places, u64 *restrict words) {
    const u32 base = (u32)rows->first;
    i64 some = 0, first = 0, found = 0;
    marks += base / 64;
    for (i64 i = 0; i < n; i++) {
        u32 place = (nodes[i] - base) / 64;
        places[some] = place;
        words[some] = marks[place];
        some += i + 1 == n || (nodes[i + 1] - base) / 64 != place;
    }
    for (i64 i = 0; i + 1 < n; i++) {
        i64 own = (nodes[i] - base) / 64;
        /* Word k is that of nodes first + 64 * k; those before the node's own are others'. */
        const u64 *row = rows->bits + bit_row_place(rows, nodes[i] - base) - own;
        if (i + AHEAD_ROWS < n) {
            __builtin_prefetch(rows->bits + bit_row_place(rows, nodes[i + AHEAD_ROWS] - base));
        }
        first += places[first] < own;
        if (WORDS_A_PLACE * (some - first) < rows->words - own) {
            for (i64 k = first; k < some; k++) {
                found += __builtin_popcountll(words[k] & row[places[k]]);
            }
        } else {
            found += common_bits(row + own, marks + own, rows->words - own);
        }
    }
    return found;
}

const struct vec_table LEVEL_NAME(vec_table) = {
#define X(A, part) [LOOPS_##part] = LEVEL_NAME(vec_ops_##part),
    .ops = {WF_LOOP_PARTS(X, )},
#undef X
    .reals = LEVEL_NAME(vec_reals),
#define X(s, from, w, to, acc, K) [s][w][KIND_##K] = decode_##from##_##to,
    .decode = {DECODERS(X)},
#undef X
#define X(s, from, w, to, acc, K) [s][w][KIND_##K] = decode_at_##from##_##to,
    .decode_at = {DECODERS(X)},
#undef X
#define X(type, w) [w] = gather_##type,
    .gather = {MOVERS(X)},
#undef X
#define X(type, w) [w] = gather64_##type,
    .gather64 = {MOVERS(X)},
#undef X
#define X(type, w) [w] = blend_##type,
    .blend = {MOVERS(X)},
#undef X
#define X(A, name, identity, expr) [WORD_##name] = reduce_##name,
    .reduce = {WF_WORDS(X, )},
#undef X
#define X(A, name, identity, expr) [WORD_##name] = tiny_##name,
    .tiny = {WF_WORDS(X, )},
#undef X
#define X(A, name, identity, expr) [WORD_##name] = group_##name,
    .group = {WF_WORDS(X, )},
#undef X
    .like = LEVEL_NAME(vec_like),
    .like_sel = LEVEL_NAME(vec_like_sel),
    .sel_build = sel_build,
    .sel_refine = sel_refine,
    .mask_and = mask_and,
    .nulls = nulls,
    .nulls_at = nulls_at,
    .strings = strings,
    .strings_at = strings_at,
    .hash = hash,
    .probe_rank = probe_rank,
    .select_rank = select_rank,
    .filter_keys = filter_keys,
    .filter_hashes = filter_hashes,
    .probe_direct = probe_direct,
    .marked = marked,
    .marked_nodes = marked_nodes,
    .common_bits = common_bits,
    .edges_among = edges_among,
    .number_runs = number_runs,
    .add_runs = add_runs,
};

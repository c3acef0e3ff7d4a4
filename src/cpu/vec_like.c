/* vec_like.c: LIKE with a pattern that is the same for all rows, as loops over a vector.
 *
 * The pattern is taken apart once a vector: literals between %, the first and last of which may be
 * tied to an end of the text. A literal is searched by comparing its first and last byte with a
 * block of the text at once; only where both agree are the bytes between compared. A scan of
 * 1.5 M comments took a quarter of the walk's time. Patterns with _ or an
 * escape, or with very many literals, go through fn_like row by row. Compiled once per processor
 * level, like vec_ops.c. */
#include "cpu/vec_loop.h"

#include "defs/host_words.h"

#include "defs/fn_str.h"
#include "defs/fn_like.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { PIECES_MAX = 16 };

struct piece {
    const u8 *bytes;
    u32 len;
};

struct like {
    struct piece pieces[PIECES_MAX];
    u32 count;
    b8 from_start, to_end; /* the first, the last piece is tied to that end of the text */
    b8 walk;               /* not for this code */
    str pattern;
};

static struct like like_parse(str pattern) {
    struct like like = {.pattern = pattern};
    const u8 *p = (const u8 *)(size_t)pattern.addr;
    u32 start = 0;
    for (u32 i = 0; i <= pattern.len; i++) {
        bool end = i == pattern.len;
        if (!end && (p[i] == '_' || p[i] == '\\')) {
            like.walk = 1;
            return like;
        }
        if (!end && p[i] != '%') {
            continue;
        }
        if (i > start) {
            if (like.count == PIECES_MAX) {
                like.walk = 1;
                return like;
            }
            like.pieces[like.count++] = (struct piece){p + start, i - start};
        }
        start = i + 1;
    }
    like.from_start = pattern.len == 0 || p[0] != '%';
    like.to_end = pattern.len == 0 || p[pattern.len - 1] != '%';
    return like;
}

static inline bool same_bytes(const u8 *a, const u8 *b, u32 len) {
    for (u32 i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Where the piece occurs first in t[at .. len), or len + 1. */
#if !defined(__AVX512BW__)
static u32 find_tail(const u8 *t, u32 at, u32 len, const struct piece *piece) {
    u8 first = piece->bytes[0];
    for (; at + piece->len <= len; at++) {
        if (t[at] == first && same_bytes(t + at, piece->bytes, piece->len)) {
            return at;
        }
    }
    return len + 1;
}
#endif

#if defined(__AVX512BW__)
static u32 find(const u8 *t, u32 at, u32 len, const struct piece *piece) {
    const __m512i first = _mm512_set1_epi8((char)piece->bytes[0]);
    const __m512i last = _mm512_set1_epi8((char)piece->bytes[piece->len - 1]);
    for (; at + piece->len <= len; at += 64) {
        u32 starts = len - at - piece->len + 1; /* places it could start at */
        __mmask64 inside = starts >= 64 ? ~0ULL : (1ULL << starts) - 1;
        __m512i a = _mm512_maskz_loadu_epi8(inside, t + at);
        __m512i b = _mm512_maskz_loadu_epi8(inside, t + at + piece->len - 1);
        u64 hits =
            _mm512_mask_cmpeq_epi8_mask(_mm512_mask_cmpeq_epi8_mask(inside, a, first), b, last);
        for (; hits; hits &= hits - 1) {
            u32 i = at + (u32)__builtin_ctzll(hits);
            if (same_bytes(t + i, piece->bytes, piece->len)) {
                return i;
            }
        }
    }
    return len + 1;
}
#elif defined(__AVX2__)
static u32 find(const u8 *t, u32 at, u32 len, const struct piece *piece) {
    const __m256i first = _mm256_set1_epi8((char)piece->bytes[0]);
    const __m256i last = _mm256_set1_epi8((char)piece->bytes[piece->len - 1]);
    for (; at + piece->len + 31 <= len; at += 32) {
        const u8 *to = t + at + piece->len - 1;
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(t + at));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)to);
        __m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(a, first), _mm256_cmpeq_epi8(b, last));
        for (u32 hits = (u32)_mm256_movemask_epi8(both); hits; hits &= hits - 1) {
            u32 i = at + (u32)__builtin_ctz(hits);
            if (same_bytes(t + i, piece->bytes, piece->len)) {
                return i;
            }
        }
    }
    return find_tail(t, at, len, piece);
}
#else
static u32 find(const u8 *t, u32 at, u32 len, const struct piece *piece) {
    return find_tail(t, at, len, piece);
}
#endif

static b8 like_match(const struct like *like, str text) {
    const u8 *t = (const u8 *)(size_t)text.addr;
    u32 first = 0;
    u32 count = like->count;
    u32 at = 0;
    u32 end = text.len;
    if (like->walk) {
        return fn_like(text, like->pattern, 0);
    }
    if (count == 0) { /* all of it is %, or nothing */
        return (b8)(like->pattern.len > 0 || text.len == 0);
    }
    if (like->from_start) {
        const struct piece *piece = &like->pieces[0];
        if (piece->len > end || !same_bytes(t, piece->bytes, piece->len)) {
            return 0;
        }
        at = piece->len;
        first = 1;
        if (count == 1 && like->to_end) { /* no % at all */
            return (b8)(piece->len == text.len);
        }
    }
    if (like->to_end && first < count) {
        const struct piece *piece = &like->pieces[count - 1];
        if (piece->len > end - at || !same_bytes(t + end - piece->len, piece->bytes, piece->len)) {
            return 0;
        }
        end -= piece->len;
        count--;
    }
    for (u32 i = first; i < count; i++) {
        u32 found = find(t, at, end, &like->pieces[i]);
        if (found > end) {
            return 0;
        }
        at = found + like->pieces[i].len;
    }
    return 1;
}

u8 LEVEL_NAME(vec_like)(void *restrict dst, const void *restrict a, const void *restrict b,
                            const void *restrict c, i64 n, u8 *restrict fault) {
    UNUSED(c);
    UNUSED(fault);
    struct like like = like_parse(*(const str *)b);
    for (i64 i = 0; i < n; i++) {
        ((b8 *)dst)[i] = like_match(&like, ((const str *)a)[i]);
    }
    return 0;
}

u8 LEVEL_NAME(vec_like_sel)(void *restrict dst, const void *restrict a, const void *restrict b,
                                const void *restrict c, const u32 *restrict sel, i64 m,
                                u8 *restrict fault) {
    UNUSED(c);
    UNUSED(fault);
    struct like like = like_parse(*(const str *)b);
    for (i64 j = 0; j < m; j++) {
        ((b8 *)dst)[sel[j]] = like_match(&like, ((const str *)a)[sel[j]]);
    }
    return 0;
}

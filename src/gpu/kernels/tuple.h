/* tuple.h: packed tuples in kernel text: words of the input and of the output, their moves, tiles
 * of pages.
 *
 * The text before defines IN_BYTES and OUT_BYTES (4, 8 or 16). A vector is 16 bytes, whatever the
 * word. Fields are shifts and masks that arrive as arguments, so one text serves every layout. */
#ifndef WF_TUPLE_H
#define WF_TUPLE_H

#include "sums.h"

#include "defs/kalgebra.h"

#if IN_BYTES == 4
typedef u32 IN_W;
#elif IN_BYTES == 8
typedef u64 IN_W;
#else
typedef u128 IN_W;
#endif
#if OUT_BYTES == 4
typedef u32 OUT_W;
#elif OUT_BYTES == 8
typedef u64 OUT_W;
#else
typedef u128 OUT_W;
#endif
#if IN_BYTES > OUT_BYTES /* bits are moved in the wider of both */
typedef IN_W WIDE;
#define WIDE_BYTES IN_BYTES
#else
typedef OUT_W WIDE;
#define WIDE_BYTES OUT_BYTES
#endif
#define IN_VEC (16 / IN_BYTES)
#define OUT_VEC (16 / OUT_BYTES)

#if WIDE_BYTES == 16
#define WIDE_OF(low, high) ((u128)(high) << 64 | (low))
#else
#define WIDE_OF(low, high) ((WIDE)(low))
#endif

FN IN_W vec_in(vec16 v, u32 j) {
#if IN_BYTES == 4
    return v.w[j];
#elif IN_BYTES == 8
    return (u64)v.w[2 * j + 1] << 32 | v.w[2 * j];
#else
    return ((u128)v.w[3] << 96 | (u128)v.w[2] << 64 | (u128)v.w[1] << 32 | v.w[0]) >> j;
#endif
}
FN void vec_out(vec16 *v, u32 j, OUT_W x) {
#if OUT_BYTES == 4
    v->w[j] = x;
#else
    UNROLL for (u32 k = 0; k < OUT_BYTES / 4; k++) {
        v->w[OUT_BYTES / 4 * j + k] = (u32)(x >> (32 * k));
    }
#endif
}

/* The vector of words i and following, of which `rows` exist; the rest is zero. */
FN vec16 vec_words(const IN_W *p, i64 i, i64 rows) {
    vec16 v;
    if (i + IN_VEC <= rows) {
        return load16(p + i);
    }
    UNROLL for (u32 k = 0; k < 4; k++) {
        i64 at = i + (i64)(k * 4 / IN_BYTES);
        v.w[k] = at < rows ? ((const u32 *)(p + i))[k] : 0u;
    }
    return v;
}

FN OUT_W word_move(IN_W x, const struct rel_move *m) {
    WIDE mask = WIDE_OF(m->mask_low, m->mask_high);
    return (OUT_W)(((WIDE)(x >> m->from) & mask) << m->to);
}

/* Rows [base, base + rows) of an output are written as vectors at the output's own alignment: row r
 * of them is what ROW(r) says. */
#define PUT_ROWS(T, VEC, out, base, rows, ROW)                                       \
    {                                                                                \
        u32 skip = (u32)((base) & (VEC - 1));                                        \
        u32 put_end = skip + (rows);                                                 \
        T *put_at = (T *)(out) + ((base) - (i64)skip);                               \
        for (u32 r = t_id() * VEC; r < put_end; r += t_count() * VEC) {              \
            if (VEC > 1 && r >= skip && r + VEC <= put_end) {                        \
                T row[VEC];                                                          \
                UNROLL for (u32 q = 0; q < VEC; q++) {                               \
                    row[q] = ROW(r + q - skip);                                      \
                }                                                                    \
                store_once16(put_at + r, vec_of_words(row, sizeof(T)));              \
            } else {                                                                 \
                for (u32 q = r < skip ? skip : r; q < r + VEC && q < put_end; q++) { \
                    put_at[q] = ROW(q - skip);                                       \
                }                                                                    \
            }                                                                        \
        }                                                                            \
    }
FN vec16 vec_of_words(const void *words, u32 bytes) {
    vec16 v;
    if (bytes == 4) {
        UNROLL for (u32 k = 0; k < 4; k++) {
            v.w[k] = ((const u32 *)words)[k];
        }
    } else {
        UNROLL for (u32 k = 0; k < 2; k++) {
            v.w[2 * k] = (u32)((const u64 *)words)[k];
            v.w[2 * k + 1] = (u32)(((const u64 *)words)[k] >> 32);
        }
    }
    return v;
}

/* Part of a page. */
struct tile {
    i64 page;
    i64 at;   /* of its first word */
    i64 rows; /* 0 .. tile_rows */
};
FN struct tile tile_of(const struct krel_rows *r, i64 number, i64 tile_rows) {
    struct tile t;
    i64 first = number * tile_rows;
    t.page = 0;
    if (r->page_count > 1) {
        t.page = number / r->page_tiles;
        first = (number - t.page * r->page_tiles) * tile_rows;
    }
    i64 fill = r->fills ? (i64)r->fills[t.page] : r->count - t.page * r->page_rows;
    fill = fill < r->page_rows ? fill : r->page_rows;
    i64 rows = fill - first;
    t.at = t.page * r->page_rows + first;
    t.rows = rows < 0 ? 0 : rows < tile_rows ? rows : tile_rows;
    return t;
}

/* Words that a thread holds where it works on neighbours: odd, so that threads that step through
 * shared memory side by side meet different banks. */
#if defined TUPLE_VT
#elif IN_BYTES == 4
#define TUPLE_VT 15
#elif IN_BYTES == 8
#define TUPLE_VT 11
#else
#define TUPLE_VT 5
#endif

#endif

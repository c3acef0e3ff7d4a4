/* rows4.h: four neighbouring rows of an array, whatever its elements' width.
 *
 * A group starts at a multiple of four, so that its elements are whole vectors of 16 bytes (or one
 * word of booleans); the last group of an array is read and written element by element. Raw words
 * of a group: element j of w bytes is words j * w / 4 and following. */
#ifndef WF_ROWS4_H
#define WF_ROWS4_H

#include "prelude.h"

FN void rows4_read1(u32 raw[1], const void *in, i64 row, i64 count) {
    const u8 *p = (const u8 *)in + row;
    if (row + 4 <= count) {
        raw[0] = *(const u32 *)p;
    } else {
        raw[0] = 0;
        UNROLL for (u32 j = 0; j < 4; j++) {
            raw[0] |= row + (i64)j < count ? (u32)p[j] << (8 * j) : 0u;
        }
    }
}
FN void rows4_write1(const u32 raw[1], void *out, i64 row, i64 count) {
    u8 *p = (u8 *)out + row;
    if (row + 4 <= count) {
        *(u32 *)p = raw[0];
    } else {
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (row + (i64)j < count) {
                p[j] = (u8)(raw[0] >> (8 * j));
            }
        }
    }
}

/* Elements of `words` words: 1, 2 or 4. */
#define ROWS4(bytes, words)                                                               \
    FN void rows4_read##bytes(u32 raw[4 * words], const void *in, i64 row, i64 count) {   \
        const u32 *p = (const u32 *)in + row * (words);                                   \
        if (row + 4 <= count) {                                                           \
            UNROLL for (u32 k = 0; k < (words); k++) {                                    \
                vec16 v = load16(p + 4 * k);                                              \
                UNROLL for (u32 j = 0; j < 4; j++) {                                      \
                    raw[4 * k + j] = v.w[j];                                              \
                }                                                                         \
            }                                                                             \
        } else {                                                                          \
            UNROLL for (u32 j = 0; j < 4 * (words); j++) {                                \
                raw[j] = row + (i64)(j / (words)) < count ? p[j] : 0u;                    \
            }                                                                             \
        }                                                                                 \
    }                                                                                     \
    FN void rows4_write##bytes(const u32 raw[4 * words], void *out, i64 row, i64 count) { \
        u32 *p = (u32 *)out + row * (words);                                              \
        if (row + 4 <= count) {                                                           \
            UNROLL for (u32 k = 0; k < (words); k++) {                                    \
                vec16 v;                                                                  \
                UNROLL for (u32 j = 0; j < 4; j++) {                                      \
                    v.w[j] = raw[4 * k + j];                                              \
                }                                                                         \
                store_once16(p + 4 * k, v);                                               \
            }                                                                             \
        } else {                                                                          \
            UNROLL for (u32 j = 0; j < 4 * (words); j++) {                                \
                if (row + (i64)(j / (words)) < count) {                                   \
                    p[j] = raw[j];                                                        \
                }                                                                         \
            }                                                                             \
        }                                                                                 \
    }
ROWS4(4, 1)
ROWS4(8, 2)
ROWS4(16, 4)
#undef ROWS4

FN u64 raw_u64(const u32 *raw, u32 j) {
    return (u64)raw[2 * j + 1] << 32 | raw[2 * j];
}

#endif

/* column_encode.c: the second pass: values, codes and NULL flags into the bytes of a segment.
 *
 * column_narrow subtracts the base and keeps the low bytes, in one loop per pair of source kind and
 * width, chosen once per chunk of 1,024 rows; NULL rows become 0, so that a segment's bytes depend
 * on its values only. text_codes turns text into dictionary codes and gives up as soon as the
 * dictionary has grown past its use. */
#include "store/store_int.h"

u8 width_for(u128 span) {
    if (span >> 32) {
        return span >> 64 ? 16 : 8;
    }
    return span >> 16 ? 4 : span >> 8 ? 2 : 1;
}

/* (source type, unsigned type of its width, destination type) */
#define NARROW_PAIRS(X) \
    X(b8, u8, u8)       \
    X(i32, u32, u8)     \
    X(i32, u32, u16)    \
    X(i32, u32, u32)    \
    X(i64, u64, u8)     \
    X(i64, u64, u16)    \
    X(i64, u64, u32)    \
    X(i64, u64, u64)    \
    X(i128, u128, u8)   \
    X(i128, u128, u16)  \
    X(i128, u128, u32)  \
    X(i128, u128, u64)  \
    X(i128, u128, u128)

#define X(T, U, D)                                                                               \
    static void narrow_##T##_##D(D *restrict dst, const T *restrict v, const b8 *restrict nulls, \
                                 U base, i64 n) {                                                \
        if (!nulls) {                                                                            \
            for (i64 i = 0; i < n; i++) {                                                        \
                dst[i] = (D)((U)v[i] - base);                                                    \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        for (i64 i = 0; i < n; i++) {                                                            \
            D value = (D)((U)v[i] - base);                                                       \
            dst[i] = nulls[i] ? 0 : value;                                                       \
        }                                                                                        \
    }
NARROW_PAIRS(X)
#undef X

/* What distinguishes a pair: bytes of the source, bytes of the destination. */
#define PAIR(from, to) ((from)*32 + (to))

static void narrow_chunk(u8 *dst, u8 width, const u8 *v, u8 from_bytes, const b8 *nulls, i128 base,
                         i64 n) {
    switch (PAIR(from_bytes, width)) {
#define X(T, U, D)                                                                         \
    case PAIR(sizeof(T), sizeof(D)):                                                       \
        narrow_##T##_##D((D *)(void *)dst, (const T *)(const void *)v, nulls, (U)base, n); \
        break;
        NARROW_PAIRS(X)
#undef X
    default:
        check_failed(__FILE__, __LINE__, "a width no kind is narrowed to");
    }
}

static void copy_f32(f32 *restrict dst, const f32 *restrict v, const b8 *restrict nulls, i64 n) {
    for (i64 i = 0; i < n; i++) {
        dst[i] = nulls && nulls[i] ? 0 : v[i];
    }
}

static void copy_f64(f64 *restrict dst, const f64 *restrict v, const b8 *restrict nulls, i64 n) {
    for (i64 i = 0; i < n; i++) {
        dst[i] = nulls && nulls[i] ? 0 : v[i];
    }
}

void column_narrow(void *dst, u8 width, const struct column_source *src, i128 base) {
    b8 scratch[CHUNK_ROWS];
    u8 from_bytes = src->form == FORM_CODES ? 4 : kind_bytes[src->kind];
    for (i64 first = 0; first < src->rows; first += CHUNK_ROWS) {
        i64 n = MIN_OF(CHUNK_ROWS, src->rows - first);
        const b8 *nulls = source_nulls(src, first, n, scratch);
        u8 *to = (u8 *)dst + first * width;
        const u8 *from = (const u8 *)src->data + first * from_bytes;
        if (src->kind == KIND_F32) {
            copy_f32((f32 *)(void *)to, (const f32 *)(const void *)from, nulls, n);
        } else if (src->kind == KIND_F64) {
            copy_f64((f64 *)(void *)to, (const f64 *)(const void *)from, nulls, n);
        } else {
            narrow_chunk(to, width, from, from_bytes, nulls, base, n);
        }
    }
}

/* 64 NULL flags to a word of validity bits: eight flags at a time, gathered by a multiplication. */
static u64 pack_word(const b8 *nulls) {
    u64 word = 0;
    for (i32 i = 0; i < 8; i++) {
        u64 flags;
        memcpy(&flags, nulls + i * 8, sizeof flags);
        word |= (flags * 0x0102040810204080ULL >> 56) << (i * 8);
    }
    return ~word;
}

void valid_write(u64 *words, i64 first, const struct column_source *src) {
    i64 i = 0;
    if (!(first & 63) && src->valid) {
        i = src->rows & ~63LL;
        memcpy(words + (first >> 6), src->valid, (size_t)(i / 8));
    } else if (!(first & 63) && src->nulls) {
        for (; i + 64 <= src->rows; i += 64) {
            words[(first + i) >> 6] = pack_word(src->nulls + i);
        }
    }
    for (; i < src->rows; i++) {
        i64 row = first + i;
        u64 bit = 1ULL << (row & 63);
        bool null =
            src->nulls ? src->nulls[i] : src->valid && !(src->valid[i >> 6] >> (i & 63) & 1);
        words[row >> 6] = null ? words[row >> 6] & ~bit : words[row >> 6] | bit;
    }
}

bool text_codes(const struct column_source *src, struct dict *dict, i64 column_rows, u32 *codes,
                bool *out_full) {
    b8 scratch[CHUNK_ROWS];
    struct sv last = {"", -1}; /* runs of one value are common, and cheaper than a look-up */
    u32 last_code = 0;
    for (i64 first = 0; first < src->rows; first += CHUNK_ROWS) {
        i64 n = MIN_OF(CHUNK_ROWS, src->rows - first);
        const b8 *nulls = source_nulls(src, first, n, scratch);
        for (i64 i = 0; i < n; i++) {
            if (nulls && nulls[i]) {
                codes[first + i] = 0;
                continue;
            }
            struct sv s = source_text(src, first + i);
            if (s.len != last.len || !bytes_equal(s.ptr, last.ptr, s.len)) {
                i32 code = dict_add(dict, s);
                if (code < 0) {
                    return false;
                }
                last = s;
                last_code = (u32)code;
            }
            codes[first + i] = last_code;
        }
        if (dict_overfull(dict, column_rows)) {
            *out_full = true;
            return true;
        }
    }
    *out_full = false;
    return true;
}

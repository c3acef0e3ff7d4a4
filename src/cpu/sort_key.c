/* sort_key.c: sort keys as 64-bit words that order like the columns.
 *
 * A number becomes its distance from the least one (or to the greatest, when descending), so that
 * it takes as few bits as the data need; NULL is one more number at either end. Text takes pieces
 * of seven bytes with the count of bytes that are the string's: equal pieces are equal strings
 * unless the count says that the string goes on, and zero bytes inside a string order as they
 * should. Both the sort, which measures its input, and the top-n filter of a sink, which goes by
 * what the program proves, pack their keys with these parts. */
#include "cpu/sort_key.h"

#define SIGN64 (1ULL << 63)

/* Without branches, so that loops over it vectorise. */
static inline u64 order_f64(f64 x) {
    i64 bits = 0;
    f64 plain = x + 0.0; /* one zero */
    memcpy(&bits, &plain, sizeof bits);
    u64 order = (u64)bits ^ ((u64)(bits >> 63) | SIGN64);
    return x != x ? ~0ULL : order; /* NaN is greatest */
}

static inline u64 order_f32(f32 x) {
    i32 bits = 0;
    f32 plain = x + 0.0f;
    memcpy(&bits, &plain, sizeof bits);
    u32 order = (u32)bits ^ ((u32)(bits >> 31) | 1u << 31);
    return x != x ? ~0u : order;
}

static inline u64 order_i32(i32 x) {
    return (u64)(i64)x ^ SIGN64;
}

static inline u64 order_i64(i64 x) {
    return (u64)x ^ SIGN64;
}

u128 order_number(u8 kind, const i32 *rank, const void *data, i64 i) {
    switch (kind) {
    case KIND_B8:
        return ((const b8 *)data)[i];
    case KIND_I32: {
        i32 v = ((const i32 *)data)[i];
        return order_i32(rank ? rank[v] : v);
    }
    case KIND_I64:
        return order_i64(((const i64 *)data)[i]);
    case KIND_I128:
        return (u128)((const i128 *)data)[i] ^ (u128)1 << 127;
    case KIND_F32:
        return order_f32(((const f32 *)data)[i]);
    default:
        return order_f64(((const f64 *)data)[i]);
    }
}

#define BOUNDS(type, word, number)            \
    do {                                      \
        const type *in = data;                \
        word lo = (word)*io_lo;               \
        word hi = (word)*io_hi;               \
        bool any = *io_lo <= *io_hi;          \
        for (i64 i = 0; i < n; i++) {         \
            if (!nulls || !nulls[i]) {        \
                word v = number(in[i]);       \
                lo = !any || v < lo ? v : lo; \
                hi = !any || v > hi ? v : hi; \
                any = true;                   \
            }                                 \
        }                                     \
        if (any) {                            \
            *io_lo = lo;                      \
            *io_hi = hi;                      \
        }                                     \
    } while (0)
#define AS_IS(x) (x)
#define BY_RANK(x) order_i32(rank[x])
#define WIDE(x) ((u128)(x) ^ (u128)1 << 127)

void order_bounds(u8 kind, const i32 *rank, const void *data, const b8 *nulls, i64 n, u128 *io_lo,
                  u128 *io_hi) {
    switch (kind) {
    case KIND_B8:
        BOUNDS(b8, u64, AS_IS);
        break;
    case KIND_I32:
        if (rank) {
            BOUNDS(i32, u64, BY_RANK);
        } else {
            BOUNDS(i32, u64, order_i32);
        }
        break;
    case KIND_I64:
        BOUNDS(i64, u64, order_i64);
        break;
    case KIND_I128:
        BOUNDS(i128, u128, WIDE);
        break;
    case KIND_F32:
        BOUNDS(f32, u64, order_f32);
        break;
    case KIND_F64:
        BOUNDS(f64, u64, order_f64);
        break;
    default:
        break;
    }
}
#undef BOUNDS

static u8 bits_of(u128 range) {
    u64 high = (u64)(range >> 64);
    u64 low = (u64)range;
    return (u8)(high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0);
}

void part_measure(struct sort_part *part) {
    switch (part->form) {
    case PART_NULLS:
        part->bits = 1;
        break;
    case PART_HIGH:
    case PART_LOW:
        part->bits = 64;
        break;
    case PART_TEXT:
        part->bits = (u8)(8 * part->text_bytes + TEXT_LEN_BITS);
        break;
    default: {
        u128 range = part->lo <= part->hi ? part->hi - part->lo : 0;
        bool wraps = part->nulls && range == ~(u128)0;
        part->bits = wraps ? 129 : bits_of(range + part->nulls);
        break;
    }
    }
}

u64 text_piece(str s, u32 skip, u32 bytes, b8 descending) {
    const u8 *from = (const u8 *)(size_t)s.addr + skip;
    u32 left = s.len > skip ? s.len - skip : 0;
    u32 take = MIN_OF(left, bytes);
    u64 piece = 0;
    if (left >= 8) {
        memcpy(&piece, from, sizeof piece);
        piece = __builtin_bswap64(piece) >> (64 - 8 * bytes);
    } else {
        for (u32 i = 0; i < take; i++) {
            piece |= (u64)from[i] << (8 * (bytes - 1 - i));
        }
    }
    piece = piece << TEXT_LEN_BITS | (left > bytes ? TEXT_MORE : left);
    u64 all = ~0ULL >> (64 - 8 * bytes - TEXT_LEN_BITS);
    return descending ? ~piece & all : piece;
}

/* The part's number of a value whose order number is v. */
static inline u64 number_of(const struct sort_part *part, u64 v, u64 lo, u64 hi) {
    return (part->descending ? hi - v : v - lo) + (part->nulls && part->nulls_first);
}

static u64 null_number(const struct sort_part *part) {
    u64 range = part->lo <= part->hi ? (u64)(part->hi - part->lo) : 0;
    return part->nulls_first ? 0 : range + 1;
}

u64 part_value(const struct sort_part *part, const void *data, const b8 *nulls, i64 i) {
    bool is_null = nulls && nulls[i];
    switch (part->form) {
    case PART_NULLS:
        return is_null ? !part->nulls_first : part->nulls_first;
    case PART_TEXT:
        return is_null ? 0
                       : text_piece(((const str *)data)[i], part->skip, part->text_bytes,
                                    part->descending);
    case PART_HIGH:
    case PART_LOW: {
        u128 v = order_number(part->kind, part->rank, data, i);
        u64 half = part->form == PART_HIGH ? (u64)(v >> 64) : (u64)v;
        return is_null ? 0 : part->descending ? ~half : half;
    }
    default:
        if (is_null) {
            return part->nulls ? null_number(part) : 0;
        }
        u128 v = order_number(part->kind, part->rank, data, i);
        return (u64)(part->descending ? part->hi - v : v - part->lo) +
               (part->nulls && part->nulls_first);
    }
}

#define FILL(type, number)                                                           \
    do {                                                                             \
        const type *in = data;                                                       \
        u64 lo = (u64)part->lo;                                                      \
        u64 hi = (u64)part->hi;                                                      \
        if (part->nulls && nulls) {                                                  \
            for (i64 i = 0; i < n; i++) {                                            \
                u64 v = null_value; /* codes under a NULL are not to be looked up */ \
                if (!nulls[i]) {                                                     \
                    v = number_of(part, number(in[i]), lo, hi);                      \
                }                                                                    \
                out[i] = out[i] << half << rest | v;                                 \
            }                                                                        \
        } else if (part->descending) {                                               \
            for (i64 i = 0; i < n; i++) {                                            \
                out[i] = out[i] << half << rest | (hi - number(in[i]) + first);      \
            }                                                                        \
        } else {                                                                     \
            for (i64 i = 0; i < n; i++) {                                            \
                out[i] = out[i] << half << rest | (number(in[i]) - lo + first);      \
            }                                                                        \
        }                                                                            \
    } while (0)

static void fill_numbers(const struct sort_part *part, const void *data, const b8 *nulls, i64 n,
                         u64 *restrict out) {
    u32 half = part->bits / 2; /* 64 bits at once would be undefined */
    u32 rest = part->bits - half;
    u64 first = part->nulls && part->nulls_first;
    u64 null_value = null_number(part);
    switch (part->kind) {
    case KIND_B8:
        FILL(b8, AS_IS);
        break;
    case KIND_I32:
        if (part->rank) {
            const i32 *rank = part->rank;
            FILL(i32, BY_RANK);
        } else {
            FILL(i32, order_i32);
        }
        break;
    case KIND_I64:
        FILL(i64, order_i64);
        break;
    case KIND_F32:
        FILL(f32, order_f32);
        break;
    default:
        FILL(f64, order_f64);
        break;
    }
}
#undef FILL
#undef AS_IS
#undef BY_RANK
#undef WIDE

void part_fill(const struct sort_part *part, const void *data, const b8 *nulls, i64 n, u64 *out) {
    if (part->bits == 0) {
        return;
    }
    bool plain = part->form == PART_WHOLE && part->kind != KIND_I128 && (!nulls || part->nulls);
    if (plain) {
        fill_numbers(part, data, nulls, n, out);
        return;
    }
    for (i64 i = 0; i < n; i++) {
        u64 before = part->bits == 64 ? 0 : out[i] << part->bits;
        out[i] = before | part_value(part, data, nulls, i);
    }
}

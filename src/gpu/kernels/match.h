/* match.h: the words joins share: keys, and writing rows of the result.
 *
 * The text that includes this defines KEY_BYTES (4, 8). A word is a key whose sign bit is turned
 * over where it has one, so that words ascend as unsigned numbers. */
#ifndef WF_MATCH_H
#define WF_MATCH_H

#include "prelude.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/kmatch.h"

#if KEY_BYTES == 8
typedef u64 K;
#define K_MAX 0xffffffffffffffffULL
FN u64 key_hash(K key) {
    return hash_64(key);
}
#else
typedef u32 K;
#define K_MAX 0xffffffffu
FN u32 key_hash(K key) {
    return hash_32(key);
}
#endif

#define MATCH_NONE 0xffffffffu

#define GRID_ROWS(i, count) \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < (count); i += (i64)t_blocks() * t_count())

/* Kinds, in the order of enum join_keep. */
#define KIND_LEFT 1u
#define KIND_SEMI 2u
#define KIND_ANTI 3u
FN u32 kind_keeps(u32 kind, u32 found) {
    return kind == KIND_LEFT ? 1u : kind == KIND_ANTI ? !found : found;
}
FN u64 kind_rows(u32 kind, u64 count) {
    return kind == KIND_LEFT   ? (count ? count : 1u)
           : kind == KIND_SEMI ? count > 0
           : kind == KIND_ANTI ? count == 0
                               : count;
}

/* One value of one row. */
FN u64 emit_value(const struct kmatch_col *col, u32 at, u64 value) {
    if (col->from == MATCH_VALUE) {
        return value;
    }
    if (at == MATCH_NONE) {
        return col->from == MATCH_ROW ? ~0ULL : 0ULL;
    }
    if (col->from == MATCH_ROW) {
        return col->in ? ((const u32 *)col->in)[at] : at;
    }
    return col->bytes == 8 ? ((const u64 *)col->in)[at] : ((const u32 *)col->in)[at];
}

/* Up to four rows of a thread: row k goes to `to + at[k]`, if it is one of `live`. All loads of a
 * column before its stores, so that they overlap. */
#define EMIT 4
FN void emit(const struct kmatch_out *o, i64 to, const u32 *at, u32 live, u32 *p, u32 *b,
             const u64 *value) {
    UNROLL for (u32 k = 0; k < EMIT; k++) {
        if (live >> k & 1u) {
            p[k] = o->list[0] ? o->list[0][p[k]] : p[k];
            b[k] = o->list[1] && b[k] != MATCH_NONE ? o->list[1][b[k]] : b[k];
        }
    }
    NO_UNROLL for (u32 c = 0; c < o->count; c++) {
        const struct kmatch_col *col = &o->col[c];
        u64 x[EMIT];
        UNROLL for (u32 k = 0; k < EMIT; k++) {
            x[k] = live >> k & 1u ? emit_value(col, col->built ? b[k] : p[k], value[k]) : 0u;
        }
        UNROLL for (u32 k = 0; k < EMIT; k++) {
            if (live >> k & 1u) {
                if (col->bytes == 8) {
                    ((u64 *)col->out)[to + (i64)at[k]] = x[k];
                } else {
                    ((u32 *)col->out)[to + (i64)at[k]] = (u32)x[k];
                }
            }
        }
    }
}

#endif

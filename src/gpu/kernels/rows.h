/* rows.h: row numbers as payload: written, followed to the elements they stand for; floats as words
 * that are equal where they are. The text defines ELEM_BYTES. */
#include "prelude.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/korder.h"

#if ELEM_BYTES == 4
typedef u32 E;
#elif ELEM_BYTES == 8
typedef u64 E;
#else
typedef u128 E;
#endif
#define ROWS_LOOP(i)                                                  \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count; \
         i += (i64)t_blocks() * t_count())

KERNEL(k_rows, struct krows, PATH_THREADS) {
    ROWS_LOOP(i) {
        ((u64 *)args.out)[i] = (u64)i;
    }
}

KERNEL(k_rows_fetch, struct krows, PATH_THREADS) {
    ROWS_LOOP(i) {
        ((E *)args.out)[i] = ((const E *)args.in)[args.rows[i]];
    }
}

#if ELEM_BYTES < 16
/* Bits that are the same for equal floats. */
KERNEL(k_rows_same, struct krows, PATH_THREADS) {
    ROWS_LOOP(i) {
#if ELEM_BYTES == 4
        ((u32 *)args.out)[i] = same_f32(((const u32 *)args.in)[i]);
#else
        ((u64 *)args.out)[i] = same_f64(((const u64 *)args.in)[i]);
#endif
    }
}
#endif

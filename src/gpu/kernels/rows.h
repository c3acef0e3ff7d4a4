/* rows.h: row numbers as payload: written, followed to the elements they stand for, drawn at
 * random. The text defines ELEM_BYTES. */
#include "prelude.h"

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

/* Some of the elements, the same ones every time. */
KERNEL(k_rows_draw, struct krows, PATH_THREADS) {
    ROWS_LOOP(i) {
        ((E *)args.out)[i] = ((const E *)args.in)[hash_64((u64)i) % (u64)args.from_count];
    }
}

/* Every stride-th, the last of each group. */
KERNEL(k_rows_pick, struct krows, PATH_THREADS) {
    ROWS_LOOP(i) {
        ((E *)args.out)[i] = ((const E *)args.in)[(i + 1) * args.stride];
    }
}

/* prim_algebra_stages.c: the CTA-joins of the paper on the CPU: a tile of both inputs, small enough
 * for the first-level cache, joined by one worker in the way that was asked for (rel_stage.h). They
 * are here to be compared; joins that are not asked for a stage merge. */
#include "cpu/rel_int.h"

#define W u32
#define WORD(name) name##_u32
#include "cpu/rel_stage.h"
#define W u64
#define WORD(name) name##_u64
#include "cpu/rel_stage.h"
#define W w128
#define WORD(name) name##_u128
#include "cpu/rel_stage.h"

void rel_stage_join(struct rel_range *r, u8 stage, i32 bytes, const void *x, const void *y) {
    if (bytes == 4) {
        stage_join_u32(r, stage, x, y);
    } else if (bytes == 8) {
        stage_join_u64(r, stage, x, y);
    } else {
        stage_join_u128(r, stage, x, y);
    }
}

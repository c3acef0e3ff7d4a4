/* gpu_prim_move.c: the card's primitives that compute or move elements. */
#include "gpu/gpu_prim.h"

#include "defs/kprim.h"
#include "prim/fold.h"
#include "prim/move.h"

static FALLIBLE scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                           struct prim_array out, struct prim_array in) {
    i64 width = elem_bytes[in.type];
    i64 tile_rows = SCAN_THREADS * SCAN_VECS * 16 / width;
    i64 tiles = (in.count + tile_rows - 1) / tile_rows;
    i64 state_bytes = tiles * (width == 8 ? 32 : 8);
    u8 *state = prim_take(job, state_bytes + 16);
    if (!in.count) {
        return ERR_OK;
    }
    char defines[400];
    fold_text(fold, in.type, defines, sizeof defines);
    struct gpu_template code = {"scan", "k_scan", defines};
    TRY(gpu_prim_fill(job, state, 0, state_bytes + 16));
    struct kscan_array args = {.in = in.data,
                               .out = out.data,
                               .count = in.count,
                               .state = (u64 *)(void *)state,
                               .ticket = (u32 *)(void *)(state + state_bytes),
                               .inclusive = inclusive};
    return gpu_prim_launch(job, &code, tiles, SCAN_THREADS, 0, &args);
}

const struct prim_move gpu_prim_move_class = {.scan = scan_array};

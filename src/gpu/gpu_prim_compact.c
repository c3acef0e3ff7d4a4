/* gpu_prim_compact.c: the card's compaction: one launch of kernels/compact.h, compiled for the
 * widths of its columns. */
#include "gpu/gpu_prim.h"

#include <stdio.h>

#include "defs/kprim.h"
#include "gpu/gpu_cub.h"
#include "gpu/gpu_prim_move.h"

_Static_assert((i32)COMPACT_MOST == (i32)COMPACT_COLUMNS, "columns of a compaction");

struct shape {
    i32 groups; /* of four rows, per thread: with 128 bytes of each on the way, few blocks fill the
                   bus, and few wait less for each other */
    i32 widest;
    i32 threads;
    b8 key_first; /* column 0 is what rows are kept by */
    char defines[1000];
};

static void shape_of(const struct prim_compact *c, struct shape *s) {
    const struct prim_array *by = &c->keep.by;
    i32 key_bytes = elem_bytes[by->type];
    s->widest = key_bytes;
    for (i32 i = 0; i < c->column_count; i++) {
        s->widest = MAX_OF(s->widest, elem_bytes[c->out[i].type]);
    }
    s->groups = s->widest == 1 ? 4 : 32 / s->widest;
    s->key_first = c->in[0].data && c->in[0].data == by->data && c->keep.kind != KEEP_FLAGS;
    i32 kind = c->keep.kind == KEEP_FLAGS ? 1 : c->keep.kind == KEEP_COMPARE ? 2 : 3;
    s->threads = c->ordered ? 256 : 512;
    i32 resident =
        s->key_first && c->column_count == 1 && c->ordered && s->widest > 4 ? 1280 : 1024;
    i32 used = snprintf(
        s->defines, sizeof s->defines,
        "#define KEEP %d\n#define KEY_BYTES %d\n#define KEY_FLOAT %d\n#define KEPT_GROUPS %d\n"
        "#define ORDERED %d\n#define COLUMN_0_KEY %d\n#define KEPT_THREADS %d\n"
        "#define WF_MIN_BLOCKS %d\n#define COLUMNS",
        kind, key_bytes, elem_kinds[by->type] == 'F', s->groups, c->ordered, s->key_first,
        s->threads, resident / s->threads);
    for (i32 i = s->key_first; i < c->column_count; i++) {
        used += snprintf(s->defines + used, sizeof s->defines - (size_t)used, " %s_AT(%d, %d)",
                         c->in[i].data ? "COLUMN" : "NUMBERS", i, elem_bytes[c->out[i].type]);
    }
    used += snprintf(s->defines + used, sizeof s->defines - (size_t)used, "\n");
    CHECK(used < (i32)sizeof s->defines);
}

/* Whatever column rows are kept by comes first: it has been read then, and is not read again. */
static struct prim_compact key_to_front(const struct prim_compact *c) {
    struct prim_compact out = *c;
    for (i32 i = 1; i < c->column_count && c->keep.kind != KEEP_FLAGS; i++) {
        if (c->in[i].data && c->in[i].data == c->keep.by.data) {
            out.in[0] = c->in[i];
            out.in[i] = c->in[0];
            out.out[0] = c->out[i];
            out.out[i] = c->out[0];
            break;
        }
    }
    return out;
}

wf_status gpu_compact(struct prim_job *job, const struct prim_compact *as_given) {
    struct prim_compact columns = key_to_front(as_given);
    const struct prim_compact *c = &columns;
    const struct prim_keep *keep = &c->keep;
    struct shape shape;
    if (gpu_cub_compacts(c) && gpu_cub_picks(job, c->ordered ? CUB_COMPACT : CUB_COMPACT_UNORDERED,
                                             elem_bytes[c->in[0].type], keep->by.count)) {
        return gpu_cub_compact(job, c);
    }
    shape_of(c, &shape);
    i64 tile_rows = (i64)shape.threads * 4 * shape.groups;
    i64 tiles = (keep->by.count + tile_rows - 1) / tile_rows;
    u64 *state = prim_take(job, 16 + (c->ordered ? tiles * 8 : 0));
    *c->out_count = 0;
    if (!keep->by.count) {
        return ERR_OK;
    }
    struct kcompact args = {.by = keep->by.data,
                            .count = keep->by.count,
                            .lo = {keep->lo[0], keep->lo[1]},
                            .hi = {keep->hi[0], keep->hi[1]},
                            .flip = prim_order_flip(keep->by.type),
                            .room = c->room,
                            .negate = keep->negate};
    if (!job->measuring) {
        args.total = state;
        args.ticket = (u32 *)(void *)(state + 1);
        args.state = state + 2;
    }
    for (i32 i = 0; i < c->column_count; i++) {
        args.in[i] = c->in[i].data;
        args.out[i] = c->out[i].data;
    }
    struct gpu_template code = {"compact", "k_compact", shape.defines};
    TRY(gpu_prim_fill(job, state, 0, 16 + (c->ordered ? tiles * 8 : 0)));
    TRY(gpu_prim_launch_all(job, &code, tiles, (u32)shape.threads, tile_rows * shape.widest,
                            &args));
    TRY(gpu_prim_fetch(job, c->out_count, args.total, 8));
    return *c->out_count > c->room ? prim_no_room(job, c->what, *c->out_count, c->room)
                                   : ERR_OK;
}

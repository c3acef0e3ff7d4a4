/* gpu_bring.c: columns on their way over the bus.
 *
 * A column that lies in memory crosses as it lies there. One of the database file that nobody has in
 * memory is read as it is packed, crosses so, and a kernel on the card unpacks it (store/frames.h,
 * kernels/unpack.h): the disk and the bus carry fewer bytes, and the host unpacks nothing. Text is
 * the host's to unpack. While a column crosses, those that follow are read: see decision 0050.
 *
 * Packed bytes lie on the card in a block for each stream, one column after the other, so that the
 * stream's order keeps them apart; it goes when the step ends. Where there is no room for it the
 * column is unpacked on the host. */
#include "gpu/gpu_int.h"

#include "base/moment.h"
#include "defs/kpack.h"

#define ROOM_SHARE 32 /* of the budget, for a stream's packed bytes */
#define ROOM_LEAST (1LL << 20)

/* Where memory is short, what was asked for before has to go: what is queued is waited for then. */
static bool held_again(struct gpu *g, wf_status status, struct error *err) {
    bool again = status == ERR_OUT_OF_MEMORY && g->pins.count;
    if (again) {
        gpu_wait(g);
        pins_fini(&g->pins);
        error_reset(err);
    }
    return again;
}

static FALLIBLE hold(struct gpu *g, const struct tablet *tablet, u32 col, struct error *err) {
    if (!tablet->framed) {
        return ERR_OK;
    }
    g->pins.mem = g->card->mem;
    wf_status status = pins_hold(&g->pins, tablet, col, err);
    return held_again(g, status, err) ? pins_hold(&g->pins, tablet, col, err) : status;
}

/* None, where memory is short: then the column is asked for unpacked. */
static FALLIBLE hold_packed(struct gpu *g, const struct gpu_bring *b, struct column_packed *out,
                            struct error *err) {
    *out = (struct column_packed){0};
    if (!b->tablet->framed || g->tight >= TIGHT_SPILL) {
        return ERR_OK;
    }
    g->pins.mem = g->card->mem;
    wf_status status = pins_hold_packed(&g->pins, b->tablet, b->col, out, err);
    if (held_again(g, status, err)) {
        status = pins_hold_packed(&g->pins, b->tablet, b->col, out, err);
    }
    if (status == ERR_OUT_OF_MEMORY) {
        error_reset(err);
        *out = (struct column_packed){0};
        status = ERR_OK;
    }
    return status;
}

static bool has_room(struct gpu *g, i32 stream, i64 bytes) {
    struct gpu_block **room = &g->packed[stream];
    i64 most = g->card->heap.budget_bytes / ROOM_SHARE;
    if (*room && (*room)->bytes >= bytes) {
        return true;
    }
    if (bytes > most) {
        return false;
    }
    if (*room) {
        (void)g->api->stream_synchronize(g->streams[stream]);
        gpu_heap_free(g->card, *room);
    }
    *room = gpu_alloc_try(g, MAX_OF(bytes, MIN_OF(most, ROOM_LEAST)));
    return *room != NULL;
}

void gpu_bring_end(struct gpu *g) {
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        gpu_heap_free(g->card, g->packed[s]);
        g->packed[s] = NULL;
    }
    if (g->bad.host) {
        memset(g->bad.host, 0, sizeof(u32));
    }
}

static FALLIBLE unpack(struct gpu *g, const struct gpu_bring *b, const struct column_packed *packed,
                       struct error *err) {
    u64 at = g->packed[b->stream]->addr;
    void *function = NULL, *widest = g->widest;
    struct gpu_grid grid = g->widest_grid;
    TRY(gpu_kernel(g->card, KERNEL_UNPACK, NULL, &function, err));
    if (!g->bad.host) {
        TRY(gpu_pinned_reserve(g, &g->bad, 64, err));
        memset(g->bad.host, 0, sizeof(u32));
    }
    struct kunpack args = {.packed = DEV(const u8 *, at),
                           .starts = DEV(const u32 *, at + (u64)packed->starts_at),
                           .valid_from = DEV(const u64 *, at + (u64)packed->valid_at),
                           .data = DEV(u8 *, b->data),
                           .valid = DEV(u64 *, b->nulls),
                           .bad = DEV(u32 *, g->bad.addr),
                           .below = (u64)packed->code_count,
                           .rows = packed->rows,
                           .blocks = packed->block_count,
                           .valid_words = packed->valid_words,
                           .width = packed->width};
    TRY(gpu_upload(g, at, packed->buf->data, packed->bytes, packed->buf, g->streams[b->stream], err));
    i64 blocks = MIN_OF(packed->block_count, (i64)g->card->sm_count * 8);
    TRY(gpu_launch(g, function, (struct gpu_grid){blocks, UNPACK_THREADS, 0}, g->streams[b->stream],
                   &args, err));
    g->widest = widest; /* of the step's own */
    g->widest_grid = grid;
    g->packed_bytes += packed->bytes;
    return ERR_OK;
}

static FALLIBLE bring(struct gpu *g, const struct gpu_bring *b, i64 *moved, struct error *err) {
    struct seg_bytes seg = gpu_segment_bytes(b->tablet, b->col, b->rows);
    struct column_packed packed;
    void *stream = g->streams[b->stream];
    TRY(hold_packed(g, b, &packed, err));
    if (packed.buf && packed.rows == b->rows && has_room(g, b->stream, packed.bytes)) {
        *moved += packed.bytes;
        return unpack(g, b, &packed, err);
    }
    TRY(hold(g, b->tablet, b->col, err));
    TRY(gpu_upload(g, b->data, seg.data, seg.data_bytes, seg.data_buffer, stream, err));
    TRY(gpu_upload(g, b->nulls, seg.valid, seg.valid_bytes, seg.valid_buffer, stream, err));
    TRY(gpu_upload(g, b->text, seg.text, seg.text_bytes, seg.text_buffer, stream, err));
    *moved += seg.total_bytes;
    return ERR_OK;
}

wf_status gpu_bring(struct gpu *g, const struct gpu_bring *b, i64 *moved, struct error *err) {
    i64 start = moments_on() ? clock_ns() : 0;
    i64 before = *moved;
    wf_status status = bring(g, b, moved, err);
    if (start) {
        moment("brought column %u, %lld bytes, in %.2f ms", b->col, (long long)(*moved - before),
               (f64)(clock_ns() - start) / 1e6);
    }
    return status;
}

wf_status gpu_bring_check(struct gpu *g, struct error *err) {
    u32 bad = 0;
    if (g->bad.host) {
        memcpy(&bad, g->bad.host, sizeof bad);
    }
    if (!bad) {
        return ERR_OK;
    }
    gpu_cache_forget(g);
    error_set(err, ERR_DAMAGED, -1, "a column of the database file is damaged: its text cannot be");
    error_hint(err, "Nothing was changed. CALL check_database() lists all damage.");
    return err->code;
}

/* gpu_prim_quick.c: quick sort on the card (kernels/quick.h): parts are split by splitters of their
 * own, level by level, until they fit a block's shared memory, where the bitonic network sorts
 * them.
 *
 * Elements go from the input to `temp`, then between `out` and `temp`; whatever is done is written
 * to `out`, where nobody else's elements lie. The host only learns how many parts are left. Parts
 * that the last level leaves, which takes splitters drawn badly again and again, are sorted by the
 * network in memory. */
#include "gpu/gpu_prim_order.h"

#include <stdio.h>

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

enum { QUICK_LEVELS = 16 };
#ifdef WF_HARD
enum { QUICK_FAN = 5 }; /* so that small arrays have several levels */
#else
enum { QUICK_FAN = 512 };
#endif

struct quick {
    struct sorting *s;
    char defines[ORDER_DEFINES + 40];
    struct kquick args;
    struct kquick_part *lists[2];
    struct prim_array temp, temp_payload;
    i64 buckets; /* room for so many between splitters, of all parts of a level */
    i64 pieces;  /* and for so many that are done */
};

static void take_rooms(struct quick *q) {
    struct sorting *s = q->s;
    struct prim_job *job = s->job;
    i64 parts = s->n / BITONIC_TILE + 1; /* larger than a tile, each */
    q->buckets = s->n / QUICK_PART_ROWS + 3 * parts + QUICK_FAN;
    q->pieces = 2 * q->buckets + parts;
    q->temp = order_take(job, s->keys.type, s->n);
    q->temp_payload = (struct prim_array){.type = s->payload.type};
    if (s->payload.count) {
        q->temp_payload = order_take(job, s->payload.type, s->n);
    }
    for (i32 i = 0; i < 2; i++) {
        q->lists[i] = prim_take(job, parts * (i64)sizeof(struct kquick_part));
    }
    q->args.done = prim_take(job, q->pieces * (i64)sizeof(struct kquick_done));
    q->args.splitters = prim_take(job, q->buckets * s->order.bytes);
    q->args.cursors = prim_take(job, 2 * q->buckets * 8);
    q->args.counters = prim_take(job, QUICK_COUNTERS * 8);
}

static FALLIBLE go(struct quick *q, const char *kernel, i64 blocks) {
    struct gpu_template code = {"quick", kernel, q->defines};
    return gpu_prim_launch(q->s->job, &code, blocks, BITONIC_THREADS, 0, &q->args);
}

/* One level; counters: what the next one has. */
static FALLIBLE run_level(struct quick *q, u64 counters[QUICK_COUNTERS]) {
    struct prim_job *job = q->s->job;
    struct kquick *a = &q->args;
    TRY(gpu_prim_fill(job, a->counters, 0, QUICK_COUNTERS * 8));
    TRY(gpu_prim_fill(job, a->cursors, 0, 2 * q->buckets * 8));
    TRY(go(q, "k_quick_draw", a->part_count));
    TRY(go(q, "k_quick_count", (i64)a->tile_count));
    TRY(go(q, "k_quick_list", a->part_count));
    TRY(go(q, "k_quick_move", (i64)a->tile_count));
    TRY(go(q, "k_quick_done", q->pieces));
    return gpu_prim_fetch(job, counters, a->counters, QUICK_COUNTERS * 8);
}

/* What the last level left. */
static FALLIBLE sort_rest(struct quick *q) {
    struct sorting *s = q->s;
    struct kquick *a = &q->args;
    for (u32 p = 0; p < a->part_count; p++) {
        struct kquick_part part;
        TRY(gpu_prim_fetch(s->job, &part, a->parts + p, sizeof part));
        i64 first = (i64)part.first;
        i64 n = (i64)part.count;
        if (a->in != s->out.data) {
            i32 width = sorting_payload_bytes(s);
            TRY(gpu_prim_move(s->job, (u8 *)s->out.data + first * s->order.bytes,
                              (const u8 *)a->in + first * s->order.bytes, n * s->order.bytes));
            TRY(gpu_prim_move(s->job, width ? (u8 *)s->out_payload.data + first * width : NULL,
                              width ? (const u8 *)a->payload + first * width : NULL, n * width));
        }
        TRY(gpu_bitonic_sort(s, first, n));
    }
    return ERR_OK;
}

static void open_quick(struct quick *q, struct sorting *s) {
    struct kquick *a = &q->args;
    q->s = s;
    take_rooms(q);
    snprintf(q->defines, sizeof q->defines, "%s#define QUICK_FAN %d\n", s->defines, QUICK_FAN);
    a->order = s->korder;
    a->in = s->keys.data;
    a->payload = s->payload.data;
    a->out = s->out.data;
    a->out_payload = s->out_payload.data;
}

static void take_counters(struct kquick *a, const u64 counters[QUICK_COUNTERS]) {
    a->part_count = (u32)(counters[QUICK_NEXT] & 0xffffff);
    a->tile_count = counters[QUICK_NEXT] >> 24;
}

/* All levels, of the parts in the first list. */
static FALLIBLE run_levels(struct quick *q) {
    struct sorting *s = q->s;
    struct kquick *a = &q->args;
    for (i32 level = 0; level < QUICK_LEVELS && a->part_count; level++) {
        u64 counters[QUICK_COUNTERS];
        bool to_out = level % 2;
        a->parts = q->lists[level % 2];
        a->next = q->lists[1 - level % 2];
        a->to = to_out ? s->out.data : q->temp.data;
        a->to_payload = to_out ? s->out_payload.data : q->temp_payload.data;
        TRY(run_level(q, counters));
        TRY(exec_check(s->job->x));
        a->parts = a->next;
        a->in = a->to;
        a->payload = a->to_payload;
        take_counters(a, counters);
    }
    return sort_rest(q);
}

wf_status gpu_quick_sort(struct sorting *s) {
    struct quick q = {.s = s};
    open_quick(&q, s);
    struct kquick_part all = {.count = (u64)s->n,
                              .fan = quick_fan((u64)s->n, QUICK_PART_ROWS, QUICK_FAN)};
    TRY(gpu_prim_send(s->job, q.lists[0], &all, sizeof all));
    q.args.part_count = 1;
    q.args.tile_count = (u64)(s->n + QUICK_TILE - 1) / QUICK_TILE;
    return run_levels(&q);
}

wf_status gpu_quick_parts(struct sorting *s, const u64 *starts, i64 parts, i64 least) {
    struct prim_job *job = s->job;
    struct quick q = {.s = s};
    u64 counters[QUICK_COUNTERS];
    open_quick(&q, s);
    struct kquick *a = &q.args;
    a->next = q.lists[0];
    a->starts = starts;
    a->start_count = parts;
    a->least = (u32)MAX_OF(least, BITONIC_TILE);
    TRY(gpu_prim_fill(job, a->counters, 0, QUICK_COUNTERS * 8));
    TRY(go(&q, "k_quick_open", parts / BITONIC_THREADS + 1));
    TRY(gpu_prim_fetch(job, counters, a->counters, sizeof counters));
    take_counters(a, counters);
    if (job->measuring) {
        a->part_count = 1; /* so that what follows is measured */
    }
    return run_levels(&q);
}

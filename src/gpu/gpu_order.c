/* gpu_order.c: what sorts, windows and ordered aggregates on the card share; how those that are no sorts are queued
 * (docs/decisions/0082). */
#include "gpu/gpu_order.h"

#include <stdlib.h>

wf_status order_block(struct order_step *s, i64 bytes, u64 *out) {
    struct gpu_block *block = NULL;
    TRY(gpu_alloc(s->g, MAX_OF(bytes, 1), &block, s->x->err));
    VEC_PUSH(s->x->arena, &s->temps, block);
    *out = block->addr;
    return ERR_OK;
}

wf_status order_send(struct order_step *s, u64 to, const void *from, i64 bytes) {
    struct error *err = s->x->err;
    struct gpu *g = s->g;
    if (bytes <= 0) {
        return ERR_OK;
    }
    if (s->sent + bytes <= ORDER_SEND_BYTES) { /* each has a place of its own until the step ends */
        TRY(gpu_pinned_reserve(g, &g->args, ORDER_SEND_BYTES, err));
        memcpy(g->args.host + s->sent, from, (size_t)bytes);
        CU(g->api->copy_to_device(to, g->args.host + s->sent, (size_t)bytes, g->streams[0]));
        s->sent += ALIGN_UP(bytes, 64);
        return ERR_OK;
    }
    if (s->queued) {
        FAIL(err, NOT_SUPPORTED, "more than is sent without waiting");
    }
    CU(g->api->copy_to_device(to, from, (size_t)bytes, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    return ERR_OK;
}

wf_status order_receive(struct order_step *s, void *to, u64 from, i64 bytes) {
    struct error *err = s->x->err;
    struct gpu *g = s->g;
    TRY(gpu_pinned_reserve(g, &g->reports, bytes, err));
    CU(g->api->copy_to_host(g->reports.host, from, (size_t)bytes, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    memcpy(to, g->reports.host, (size_t)bytes);
    return ERR_OK;
}

wf_status order_start(struct order_step *s, enum kernel_no kernel, i64 blocks, u32 threads,
                      const void *args) {
    void *function = NULL;
    TRY(exec_check(s->x));
    TRY(gpu_kernel(s->g->card, kernel, s->x, &function, s->x->err));
    s->launches++;
    return gpu_launch(s->g, function, (struct gpu_grid){blocks, threads, 0}, s->g->streams[0], args,
                      s->x->err);
}

i64 order_blocks(const struct order_step *s, i64 rows) {
    i64 all = (rows + SORT_THREADS - 1) / SORT_THREADS;
    return MAX_OF(MIN_OF(all, s->g->card->sm_count * 8LL), 1);
}

void order_drop(struct order_step *s, i64 from) {
    while (s->temps.count > from) {
        gpu_heap_free(s->g->card, s->temps.items[--s->temps.count]);
    }
}

static int by_from(const void *a, const void *b) {
    u64 x = ((const struct ktext *)a)->from;
    u64 y = ((const struct ktext *)b)->from;
    return x < y ? -1 : x > y;
}

wf_status order_texts(struct order_step *s, struct gpu_var *gv) {
    struct gpu_str_list *texts = &gv->texts;
    struct ktext *table = NEW_ARRAY(s->x->arena, struct ktext, texts->count + 1);
    u32 count = 0;
    for (i64 i = 0; i < texts->count; i++) {
        struct gpu_str *text = &texts->items[i];
        u64 addr = 0;
        TRY(gpu_str_addr(s->g, s->x, text, &addr, &s->metric->bytes_moved));
        if (text->bytes > 0) {
            table[count++] = (struct ktext){(u64)(size_t)text->host, addr, (u64)text->bytes};
        }
    }
    if (!count) {
        return ERR_OK;
    }
    qsort(table, count, sizeof *table, by_from);
    u64 addr = 0;
    TRY(order_block(s, count * (i64)sizeof *table, &addr));
    TRY(order_send(s, addr, table, count * (i64)sizeof *table));
    s->texts = (struct ktexts){.items = DEV(const struct ktext *, addr), .count = count};
    return ERR_OK;
}

wf_status order_work(struct order_step *s, i64 bytes) {
    if (bytes > s->work_bytes) {
        TRY(order_block(s, bytes, &s->work));
        s->work_bytes = bytes;
    }
    return ERR_OK;
}

wf_status order_column(struct order_step *s, u32 var, u32 col, struct ksort_part *out) {
    static const u8 values[KIND_COUNT] = {
        [KIND_B8] = SORT_B8,   [KIND_I32] = SORT_I32, [KIND_I64] = SORT_I64, [KIND_I128] = SORT_I128,
        [KIND_F32] = SORT_F32, [KIND_F64] = SORT_F64, [KIND_STR] = SORT_STR};
    struct kcol from;
    TRY(gpu_var_col(s->g, s->x, var, col, &from, &s->metric->bytes_moved));
    *out = (struct ksort_part){.data = from.data,
                               .nulls = from.nulls,
                               .value = values[s->x->program->vars[var].kinds[col]],
                               .with_nulls = from.nulls != NULL};
    return ERR_OK;
}

wf_status order_scan(struct order_step *s, enum elem type, i64 n, void *out, const void *in) {
    struct prim_array from = {.type = (u8)type, .data = (void *)(size_t)in, .count = n};
    struct prim_array to = {.type = (u8)type, .data = out, .count = n};
    struct prim_job job = prim_job_inside(s->x, &s->g->device);
    TRY(prim_scan_array(&job, FOLD_ADD, true, to, from));
    TRY(order_work(s, job.work_peak));
    prim_job_go(&job, DEV(void *, s->work));
    TRY(prim_scan_array(&job, FOLD_ADD, true, to, from));
    s->launches += job.launches;
    return ERR_OK;
}

wf_status order_runs(struct order_step *s, u32 var, const u32 *cols, struct kwindow_rows *rows) {
    i64 n = rows->rows;
    i64 key_bytes = rows->key_count * (i64)sizeof(struct ksort_part);
    u64 addr[5];
    struct ksort_part *keys = NEW_ARRAY(s->x->arena, struct ksort_part, rows->key_count + 1);
    bool text = false;
    for (u32 k = 0; k < rows->key_count; k++) {
        TRY(order_column(s, var, cols[k], &keys[k]));
        text = text || keys[k].value == SORT_STR;
    }
    if (text) {
        TRY(order_texts(s, s->x->vars[var].copy));
    }
    for (i32 i = 0; i < 4; i++) {
        TRY(order_block(s, (n + 1) * 4, &addr[i]));
    }
    TRY(order_block(s, key_bytes, &addr[4]));
    TRY(order_send(s, addr[4], keys, key_bytes));
    rows->keys = DEV(const struct ksort_part *, addr[4]);
    rows->part_no = DEV(u32 *, addr[0]);
    rows->peer_no = DEV(u32 *, addr[1]);
    rows->part_starts = DEV(u32 *, addr[2]);
    rows->peer_starts = DEV(u32 *, addr[3]);
    rows->texts = s->texts;
    rows->rows_at = DEV(const i64 *, s->count_at);
    i64 blocks = order_blocks(s, n);
    TRY(order_start(s, KERNEL_WINDOW_MARKS, blocks, SORT_THREADS, rows));
    TRY(order_scan(s, ELEM_U32, n, rows->part_no, rows->part_no));
    TRY(order_scan(s, ELEM_U32, n, rows->peer_no, rows->peer_no));
    return order_start(s, KERNEL_WINDOW_STARTS, blocks, SORT_THREADS, rows);
}

void order_pass_texts(struct exec *x, const struct step *step, const struct gpu_var *from,
                      struct gpu_var *out) {
    u32 src = step->src;
    u32 dst = step->dst;
    bool shares = step->kind == STEP_LIMIT && step->shares;
    for (i64 i = 0; i < from->texts.count; i++) {
        struct gpu_str text = from->texts.items[i];
        gpu_str_share(x->arena, &out->texts, text);
        if (text.heap && !shares) {
            variable_keep_heap(x, dst, buffer_retain(text.heap));
        }
    }
    if (shares) {
        x->vars[dst].view_of = src + 1;
    } else {
        variable_keep_heaps(x, dst, src);
    }
}

wf_status order_timed(struct order_step *o, FALLIBLE (*run)(void *arg), void *arg) {
    struct gpu *g = o->g;
    struct error *err = o->x->err;
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    TRY(gpu_event(g, 0, &first, err));
    TRY(gpu_event(g, 1, &last, err));
    CU(g->api->event_record(first, g->streams[0]));
    TRY(run(arg));
    CU(g->api->event_record(last, g->streams[0]));
    CU(gpu_sync_event(g, last));
    CU(g->api->event_elapsed(&ms, first, last));
    o->metric->device_ns += (i64)((f64)ms * 1e6);
    return ERR_OK;
}

bool order_may_queue(const struct order_step *o, const struct step *step) {
    const struct variable *v = &o->x->vars[step->src];
    const struct gpu_var *from = v->copy;
    const struct gpu_card *card = o->g->card;
    return from && !v->on_host && from->card == card && from->epoch == card->epoch && !from->parts.count;
}

wf_status order_queue(struct order_step *o, FALLIBLE (*run)(void *arg), void *arg) {
    struct gpu *g = o->g;
    struct error *err = o->x->err;
    void *first = NULL;
    void *last = NULL;
    TRY(gpu_event(g, o->event_base, &first, err));
    TRY(gpu_event(g, o->event_base + 1, &last, err));
    TRY(order_block(o, REPORT_WORDS * 8, &o->report));
    CU(g->api->set_bytes(o->report, 0, REPORT_WORDS * 8, g->streams[0]));
    CU(g->api->set_bytes(o->report + 8 * REPORT_FAULT, 0xff, 8, g->streams[0]));
    CU(g->api->event_record(first, g->streams[0]));
    TRY(run(arg));
    CU(g->api->event_record(last, g->streams[0]));
    return ERR_OK;
}

wf_status gpu_order_settle(struct order_step *o, i64 rows) {
    struct gpu *g = o->g;
    struct error *err = o->x->err;
    float ms = 0;
    CU(g->api->event_elapsed(&ms, g->events[o->event_base], g->events[o->event_base + 1]));
    o->metric->device_ns += (i64)((f64)ms * 1e6);
    o->settle(o, rows);
    return ERR_OK;
}

void gpu_order_close(struct order_step *o, wf_status status) {
    order_end(o, status);
    if (status) {
        o->undo(o);
    }
}

wf_status gpu_order_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                          struct order_step **out) {
    switch (step->kind) {
    case STEP_WINDOW:
        return gpu_window_queue(g, x, step_no, step, out);
    case STEP_FOLD:
        return gpu_fold_queue(g, x, step_no, step, out);
    default:
        return gpu_limit_queue(g, x, step_no, step, out);
    }
}

void order_end(struct order_step *o, wf_status status) {
    if (status) {
        gpu_wait(o->g);
    }
    order_drop(o, 0);
    o->metric->device = "gpu";
    o->metric->launches += o->launches;
}

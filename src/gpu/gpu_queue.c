/* gpu_queue.c: steps that are queued one behind the other before the host waits for any of them
 * (docs/decisions/0033).
 *
 * The program ran before: a variable is expected to have as many rows as it had then, an index to have
 * keys that are repeated, or not, as before. So each step is prepared as it was when its inputs were
 * known, and finds how many rows there are in the card's memory (struct kqueue). Behind each of them one
 * thread compares what it gave with what was expected (k_relay). Where that is less, or as much, those
 * behind it read it; where it is more, where a key is repeated, where a row met a fault or had no room,
 * they find no rows, and the runtime runs all of them again, one by one. So no step writes where it has
 * no room, whatever came before it.
 *
 * Each step has an argument block and reports of its own, and nothing is freed before all is settled. */
#include "gpu/gpu_job.h"
#include "gpu/gpu_order.h"

/* Rows of sources that are under way before the host waits, so that a statement can be cancelled. */
#define QUEUE_ROWS (1LL << 31)

/* What a step uses for itself, in place of what the worker has. */
static void swap_seat(struct gpu *g, i32 n) {
    struct gpu_seat *seat = &g->queue.seats[n];
    struct gpu_seat mine = {g->args, g->reports, g->args_block};
    g->args = seat->args;
    g->reports = seat->reports;
    g->args_block = seat->args_block;
    *seat = mine;
}

void gpu_queue_fini(struct gpu *g) {
    for (i32 n = 0; n < QUEUE_STEPS; n++) {
        struct gpu_seat *seat = &g->queue.seats[n];
        gpu_pinned_free(g, &seat->args);
        gpu_pinned_free(g, &seat->reports);
        gpu_heap_free(g->card, seat->args_block);
        seat->args_block = NULL;
    }
    gpu_pinned_free(g, &g->queue.seen);
    gpu_pinned_free(g, &g->queue.fetched);
    gpu_heap_free(g->card, g->queue.block);
    g->queue.block = NULL;
}

wf_status gpu_queue_open(struct gpu *g, struct exec *x) {
    struct gpu_queue *q = &g->queue;
    struct error *err = x->err;
    q->count = 0;
    q->slot_count = 0;
    q->event_count = 0;
    q->rows = 0;
    q->wanted_count = 0;
    q->wanted_bytes = 0;
    g->waits = 0;
    g->known = (struct gpu_known){0};
    g->may_spill = 0;
    g->pool = x->pool;
    TRY(gpu_pinned_reserve(g, &q->seen, (i64)sizeof(struct kqueue), err));
    if (!q->block) {
        TRY(gpu_alloc_here(g, (i64)sizeof(struct kqueue), &q->block, err));
    }
    CU(g->api->set_bytes(q->block->addr, 0, sizeof(struct kqueue), g->streams[0]));
    return ERR_OK;
}

static u64 slot_addr(const struct gpu_queue *q, u32 slot) {
    return q->block->addr + offsetof(struct kqueue, slots) + slot * sizeof(struct kqueue_slot);
}

static FALLIBLE relay(struct gpu *g, struct exec *x, struct krelay args, u32 slot) {
    void *function = NULL;
    TRY(gpu_kernel(g->card, KERNEL_RELAY, x, &function, x->err));
    args.queue = DEV(struct kqueue *, g->queue.block->addr);
    args.slot = slot;
    return gpu_launch(g, function, (struct gpu_grid){1, 32, 0}, g->streams[0], &args, x->err);
}

/* --- pipelines --- */

/* What the pipeline gave, to those behind it; variables are as expected from now on. */
static FALLIBLE relay_rows(struct job *j, u32 slot) {
    struct gpu *g = j->g;
    u64 reports = g->args_block->addr + (u64)j->reports_at;
    for (u32 k = 0; k < gpu_job_made_count(j); k++) {
        u32 var = gpu_job_maker(j, k)->var;
        i64 expected = exec_expects(j->x, var);
        bool rows = !j->plan.agg_count;
        bool full = rows || j->aggs[0].shape.run_rows;
        u64 report = reports + 8 * (u64)k * REPORT_WORDS;
        u64 counted = rows ? report + 8 * REPORT_ROWS : gpu_agg_rows_at(j, k);
        i64 most = full ? MIN_OF(expected, gpu_job_room(j, rows ? k : 0)) : expected;
        i64 limit = rows ? j->plan.sink->limit : -1;
        struct krelay args = {.report = DEV(const u64 *, report),
                              .rows = DEV(const u64 *, counted),
                              .most = (u64)most,
                              .limit = limit < 0 ? ~0ULL : (u64)limit,
                              .made = DEV(const u64 *, j->made ? j->made->addr : 0),
                              .retry = ~0ULL,
                              .faults = k == 0};
        TRY(relay(g, j->x, args, slot + k));
        struct gpu_var *out = j->x->vars[var].copy;
        out->count_at = slot_addr(&g->queue, slot + k);
        out->rows = j->x->vars[var].rows = expected;
    }
    return ERR_OK;
}

static FALLIBLE queue_pipeline(struct gpu *g, struct exec *x, struct gpu_queued *item, bool *out_done) {
    struct gpu_queue *q = &g->queue;
    struct job *j = NEW(x->arena, struct job);
    TRY(arena_check(x->arena, x->err));
    gpu_job_init(g, x, item->step_no, item->step, j);
    j->event_base = q->event_count;
    wf_status status = gpu_job_queue(j, out_done);
    item->slot_count = gpu_job_made_count(j);
    if (!status && *out_done && q->slot_count + item->slot_count > QUEUE_SLOTS) {
        *out_done = false;
    }
    status = status || !*out_done ? status : relay_rows(j, q->slot_count);
    if (status || !*out_done) {
        gpu_job_close(j, ERR_NOT_SUPPORTED);
        return status;
    }
    item->job = j;
    q->event_count += j->event_count + 2;
    q->rows += j->source_rows;
    return ERR_OK;
}

/* --- indexes --- */

static FALLIBLE queue_build(struct gpu *g, struct exec *x, struct gpu_queued *item, bool *out_done) {
    struct gpu_queue *q = &g->queue;
    struct build *b = NULL;
    if (q->slot_count == QUEUE_SLOTS) {
        return ERR_OK;
    }
    TRY(gpu_build_queue(g, x, item->step_no, item->step, &b));
    if (!b) {
        return ERR_OK;
    }
    struct krelay args = gpu_build_relay(b);
    args.limit = ~0ULL;
    wf_status status = args.report ? relay(g, x, args, q->slot_count) : ERR_OK;
    if (status) {
        gpu_build_close(b, status);
        return status;
    }
    item->build = b;
    item->slot_count = 1;
    q->event_count += 2;
    *out_done = true;
    return ERR_OK;
}

/* --- rows in order, and what needs them so --- */

/* Of a step that makes one variable: how many rows it has. */
static FALLIBLE relay_one(struct gpu *g, struct exec *x, struct gpu_queued *item, struct krelay args, u32 var) {
    struct gpu_queue *q = &g->queue;
    if (args.report) {
        struct gpu_var *gv = x->vars[var].copy;
        TRY(relay(g, x, args, q->slot_count));
        gv->count_at = slot_addr(q, q->slot_count);
        item->slot_count = 1;
    }
    q->event_count += 2;
    return ERR_OK;
}

static FALLIBLE queue_sort(struct gpu *g, struct exec *x, struct gpu_queued *item, bool *out_done) {
    if (g->queue.slot_count == QUEUE_SLOTS) {
        return ERR_OK;
    }
    TRY(gpu_sort_queue(g, x, item->step_no, item->step, &item->sort));
    if (!item->sort) {
        return ERR_OK;
    }
    wf_status status = relay_one(g, x, item, gpu_sort_relay(item->sort), item->step->src);
    if (status) {
        gpu_sort_close(item->sort, status);
    }
    *out_done = !status;
    return status;
}

static FALLIBLE queue_order(struct gpu *g, struct exec *x, struct gpu_queued *item, bool *out_done) {
    if (g->queue.slot_count == QUEUE_SLOTS) {
        return ERR_OK;
    }
    TRY(gpu_order_queue(g, x, item->step_no, item->step, &item->order));
    if (!item->order) {
        return ERR_OK;
    }
    wf_status status = relay_one(g, x, item, item->order->relay, item->step->dst);
    if (status) {
        gpu_order_close(item->order, status);
    }
    *out_done = !status;
    return status;
}

/* --- all --- */

static FALLIBLE queue_kind(struct gpu *g, struct exec *x, struct gpu_queued *item, bool *out_done) {
    switch (item->step->kind) {
    case STEP_PIPELINE:
        return queue_pipeline(g, x, item, out_done);
    case STEP_SORT:
        return queue_sort(g, x, item, out_done);
    case STEP_LIMIT:
    case STEP_WINDOW:
    case STEP_FOLD:
        return queue_order(g, x, item, out_done);
    default:
        return queue_build(g, x, item, out_done);
    }
}

static void close_item(struct gpu *g, i32 n, wf_status status) {
    const struct gpu_queued *item = &g->queue.items[n];
    swap_seat(g, n);
    if (item->job) {
        gpu_job_close(item->job, status);
    } else if (item->build) {
        gpu_build_close(item->build, status);
    } else if (item->sort) {
        gpu_sort_close(item->sort, status);
    } else {
        gpu_order_close(item->order, status);
    }
    swap_seat(g, n);
}

wf_status gpu_queue_step(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         bool *out_done) {
    struct gpu_queue *q = &g->queue;
    struct gpu_queued item = {.step_no = step_no, .step = step, .slot = q->slot_count};
    *out_done = false;
    if (q->count == QUEUE_STEPS || q->rows >= QUEUE_ROWS) {
        return ERR_OK;
    }
    swap_seat(g, q->count);
    wf_status status = queue_kind(g, x, &item, out_done);
    swap_seat(g, q->count);
    if (!status && *out_done) {
        q->items[q->count++] = item;
        q->slot_count += item.slot_count;
    }
    return status;
}

/* Whether the rows are on their way, or are groups that come with the reports of the step that makes them. */
static bool comes_anyway(const struct gpu_queue *q, u32 var) {
    bool comes = false;
    for (i32 n = 0; n < q->wanted_count; n++) {
        comes = comes || q->wanted[n].var == var;
    }
    for (i32 n = 0; n < q->count; n++) {
        const struct job *j = q->items[n].job;
        for (u32 k = 0; j && k < j->plan.agg_count; k++) {
            comes = comes || (gpu_job_maker(j, k)->var == var && gpu_agg_comes_early(j, k));
        }
    }
    return comes;
}

wf_status gpu_queue_want(struct gpu *g, struct exec *x, u32 var) {
    struct gpu_queue *q = &g->queue;
    bool sent = false;
    if (q->wanted_count == QUEUE_WANTED || comes_anyway(q, var)) {
        return ERR_OK;
    }
    if (gpu_pinned_reserve(g, &q->fetched, QUEUE_WANTED_BYTES, x->err)) { /* they come later, then */
        error_reset(x->err);
        return ERR_OK;
    }
    struct gpu_wanted *w = &q->wanted[q->wanted_count];
    *w = (struct gpu_wanted){.var = var, .at = q->wanted_bytes};
    if (x->vars[var].kind == VAR_INTERN) {
        i64 bytes = 0;
        TRY(gpu_intern_send_all(g, x->vars[var].copy, QUEUE_WANTED_BYTES - w->at, q->fetched.host + w->at, w, &bytes,
                                x->err));
        q->wanted_bytes += ALIGN_UP(bytes, 64);
        q->wanted_count += bytes > 0;
        return ERR_OK;
    }
    TRY(gpu_var_send_few(g, x, var, QUEUE_WANTED_BYTES - w->at, q->fetched.addr + (u64)w->at, &w->fetch,
                         &sent));
    if (sent) {
        const struct kfetch_part *last = &w->fetch.parts[w->fetch.count - 1];
        q->wanted_bytes += ALIGN_UP((i64)(last->at + last->bytes), 64);
        q->wanted_count++;
    }
    return ERR_OK;
}

/* Rows that came with the wait. */
static FALLIBLE take_wanted(struct gpu *g, struct exec *x) {
    struct gpu_queue *q = &g->queue;
    for (i32 n = 0; n < q->wanted_count; n++) {
        const struct gpu_wanted *w = &q->wanted[n];
        const struct variable *v = &x->vars[w->var];
        if (v->copy && !v->on_host && v->kind == VAR_INTERN) {
            TRY(gpu_intern_take_all(x, w->var, q->fetched.host + w->at, w));
        } else if (v->copy && !v->on_host) {
            TRY(gpu_var_take_sent(g, x, w->var, v->rows, &w->fetch, q->fetched.host + w->at));
        }
    }
    return ERR_OK;
}

/* What the card found: the rows of every variable. */
static FALLIBLE look(struct gpu *g, struct exec *x, bool *out_good) {
    struct gpu_queue *q = &g->queue;
    struct error *err = x->err;
    CU(g->api->copy_to_host(q->seen.host, q->block->addr, sizeof(struct kqueue), g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    const struct kqueue *seen = (const struct kqueue *)(const void *)q->seen.host;
    *out_good = !seen->stopped;
    return ERR_OK;
}

static FALLIBLE settle_one(struct gpu *g, const struct gpu_queued *item) {
    const struct kqueue *seen = (const struct kqueue *)(const void *)g->queue.seen.host;
    i64 rows[PIPE_AGGS] = {0};
    for (u32 k = 0; k < item->slot_count; k++) {
        rows[k] = seen->slots[item->slot + k].rows;
    }
    if (item->build) {
        return gpu_build_settle(item->build);
    }
    if (item->sort) {
        return gpu_sort_settle(item->sort, rows[0]);
    }
    if (item->order) {
        return gpu_order_settle(item->order, rows[0]);
    }
    for (u32 k = 0; k < gpu_job_made_count(item->job); k++) {
        struct gpu_var *out = item->job->x->vars[gpu_job_maker(item->job, k)->var].copy;
        out->count_at = 0;
    }
    return gpu_job_settle(item->job, rows, (i64)seen->slots[item->slot].made);
}

wf_status gpu_queue_settle(struct gpu *g, struct exec *x, bool keep, bool *out_good) {
    struct gpu_queue *q = &g->queue;
    *out_good = false;
    wf_status status = ERR_OK;
    if (keep) {
        status = look(g, x, out_good);
    } else {
        gpu_wait(g);
    }
    for (i32 n = 0; n < q->count && !status && *out_good; n++) {
        swap_seat(g, n);
        status = settle_one(g, &q->items[n]);
        swap_seat(g, n);
    }
    wf_status left = status ? status : *out_good ? ERR_OK : ERR_CANCELLED;
    for (i32 n = q->count; n-- > 0;) { /* what is undone comes to be as it was before it */
        close_item(g, n, left);
    }
    if (q->count) {
        x->metrics[q->items[q->count - 1].step_no].waits += g->waits;
    }
    if (!status && *out_good) {
        status = take_wanted(g, x);
    }
    q->count = 0;
    q->wanted_count = 0;
    g->pool = NULL;
    *out_good = *out_good && !status;
    return status;
}

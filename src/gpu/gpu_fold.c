/* gpu_fold.c: STEP_FOLD on the card: aggregates that need the rows of their group in order.
 *
 * Rows come sorted by group and value. Groups are numbered as windows number partitions, equal
 * values as peers; then a thread makes the row of a group (kernels/window.h). string_agg makes text
 * and is the host's. A step that is queued makes as many groups as it made the time before, at most; what it cannot
 * make stops the queue. */
#include "gpu/gpu_order.h"

struct folder {
    struct order_step o;
    const struct step *step;
    struct gpu_var *from, *out;
    struct kfold args; /* as many groups as there are, or may be */
};

static struct kwindow_col column_of(const struct folder *f, u32 arg) {
    const struct gpu_col *col = &f->from->cols[f->step->args[arg]];
    return (struct kwindow_col){DEV(const u8 *, col->addr), DEV(const b8 *, col->nulls_addr)};
}

/* A word of the card that starts as `value` in every byte. */
static FALLIBLE words_of(struct folder *f, i64 count, u8 value, u64 *out) {
    struct gpu *g = f->o.g;
    struct error *err = f->o.x->err;
    TRY(order_block(&f->o, count * 8, out));
    CU(g->api->set_bytes(*out, value, (size_t)count * 8, g->streams[0]));
    return ERR_OK;
}

static FALLIBLE find_groups(struct folder *f) {
    struct kwindow_rows *rows = &f->args.rows;
    u32 cols[2] = {f->step->col, f->step->args[0]};
    u32 last = 0;
    rows->part_count = 1;
    rows->key_count = f->step->fold == AGG_MODE ? 2 : 1;
    TRY(order_runs(&f->o, f->step->src, cols, rows));
    if (!f->o.queued) {
        TRY(order_receive(&f->o, &last, (u64)(size_t)(rows->part_no + rows->rows - 1), 4));
        f->args.groups = last;
    }
    return ERR_OK;
}

static FALLIBLE make_room(struct folder *f) {
    struct gpu *g = f->o.g;
    struct error *err = f->o.x->err;
    struct gpu_col *key = &f->out->cols[0];
    struct gpu_col *value = &f->out->cols[1];
    i64 groups = f->args.groups;
    TRY(gpu_alloc(g, MAX_OF(groups, 1) * 8, &key->data, err));
    TRY(gpu_alloc(g, MAX_OF(groups, 1) * (i64)f->args.width, &value->data, err));
    TRY(gpu_alloc(g, MAX_OF(groups, 1), &value->nulls, err));
    key->addr = key->data->addr;
    value->addr = value->data->addr;
    value->nulls_addr = value->nulls->addr;
    f->args.out_keys = DEV(i64 *, key->addr);
    f->args.out = DEV(u8 *, value->addr);
    f->args.out_nulls = DEV(b8 *, value->nulls_addr);
    return ERR_OK;
}

/* The first group that could not be made, as the host would have found it. */
static FALLIBLE check_report(struct folder *f) {
    struct exec *x = f->o.x;
    u64 report = 0;
    TRY(order_receive(&f->o, &report, (u64)(size_t)&f->args.report[REPORT_FAULT], 8));
    if (report == ~0ULL) {
        return ERR_OK;
    }
    u32 first = 0;
    f64 share = 0;
    if (!(report & 0xff)) {
        TRY(order_receive(&f->o, &first, (u64)(size_t)(f->args.rows.part_starts + (report >> 8)), 4));
        TRY(order_receive(&f->o, &share, (u64)(size_t)f->args.share.data + 8 * (u64)first, 8));
    }
    return exec_fold_fault(x, f->step, (u8)report, share);
}

static FALLIBLE make_groups(struct folder *f) {
    u64 addr = f->o.report;
    i64 rows = f->args.rows.rows;
    if (!f->o.queued) {
        TRY(words_of(f, REPORT_WORDS, 0xff, &addr));
    }
    f->args.report = DEV(u64 *, addr);
    if (f->step->fold == AGG_MODE) {
        TRY(words_of(f, f->args.groups, 0, &addr));
        f->args.best = DEV(u64 *, addr);
        TRY(order_start(&f->o, KERNEL_FOLD_RUNS, order_blocks(&f->o, rows), SORT_THREADS, &f->args));
    }
    TRY(order_start(&f->o, KERNEL_FOLD, order_blocks(&f->o, f->args.groups), SORT_THREADS, &f->args));
    return f->o.queued ? ERR_OK : check_report(f); /* waits for all */
}

static FALLIBLE fold_all(void *arg) {
    struct folder *f = arg;
    struct gpu *g = f->o.g;
    struct exec *x = f->o.x;
    const struct step *step = f->step;
    const struct var *def = &x->program->vars[step->src];
    for (u32 c = 0; c < def->col_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(g, x, step->src, c, &col, &f->o.metric->bytes_moved));
    }
    TRY(gpu_var_get(g, x, step->src, &f->from));
    TRY(gpu_var_new(g, x, step->dst, 2, &f->out));
    f->args.fold = step->fold;
    f->args.width = (u32)kind_bytes[def->kinds[step->args[0]]];
    f->args.keys = DEV(const i64 *, f->from->cols[step->col].addr);
    f->args.value = column_of(f, 0);
    f->args.share = step->args[1] == NO_VAR ? (struct kwindow_col){0} : column_of(f, 1);
    if (f->args.rows.rows > 0) {
        TRY(find_groups(f));
    }
    TRY(make_room(f));
    f->o.metric->bytes_read += f->args.rows.rows * (8 + (i64)f->args.width);
    f->o.metric->bytes_written += f->args.groups * (8 + (i64)f->args.width);
    return f->args.groups > 0 ? make_groups(f) : ERR_OK;
}

static void fold_ended(struct folder *f, i64 groups) {
    f->out->rows = f->o.x->vars[f->step->dst].rows = groups;
    f->o.metric->rows_in += f->args.rows.rows;
    f->o.metric->rows_out += groups;
}

wf_status gpu_run_fold(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct folder f = {.o = {.g = g, .x = x, .metric = &x->metrics[step_no]}, .step = step};
    f.args.rows.rows = x->vars[step->src].rows;
    variable_reset(&x->vars[step->dst]);
    wf_status status = order_timed(&f.o, fold_all, &f);
    order_end(&f.o, status);
    if (status) {
        variable_reset(&x->vars[step->dst]);
        return status;
    }
    order_pass_texts(x, step, f.from, f.out);
    fold_ended(&f, f.args.groups);
    return ERR_OK;
}

static void settle_fold(struct order_step *o, i64 rows) {
    struct folder *f = (struct folder *)(void *)o;
    f->args.rows.rows = o->x->vars[f->step->src].rows;
    f->out->count_at = 0;
    fold_ended(f, rows);
}

static void undo_fold(struct order_step *o) {
    const struct folder *f = (const struct folder *)(const void *)o;
    variable_reset(&o->x->vars[f->step->dst]);
}

wf_status gpu_fold_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                           struct order_step **out) {
    struct folder *f = NEW(x->arena, struct folder);
    *out = NULL;
    TRY(arena_check(x->arena, x->err));
    *f = (struct folder){.o = {.g = g, .x = x, .metric = &x->metrics[step_no]}, .step = step};
    if (!order_may_queue(&f->o, step)) {
        return ERR_OK;
    }
    const struct gpu_var *from = x->vars[step->src].copy;
    i64 rows = x->vars[step->src].rows;
    f->args.rows.rows = rows;
    f->args.groups = MIN_OF(exec_expects(x, step->dst), rows);
    f->o.queued = 1;
    f->o.event_base = g->queue.event_count;
    f->o.count_at = from->count_at;
    f->o.settle = settle_fold;
    f->o.undo = undo_fold;
    variable_reset(&x->vars[step->dst]);
    wf_status status = order_queue(&f->o, fold_all, f);
    if (status) {
        gpu_order_close(&f->o, status);
        return status;
    }
    order_pass_texts(x, step, f->from, f->out);
    f->out->rows = x->vars[step->dst].rows = f->args.groups;
    u64 counted = f->args.groups ? f->o.report + 8 * REPORT_ROWS : f->o.count_at;
    f->o.relay = (struct krelay){.report = DEV(const u64 *, f->o.report),
                                 .rows = DEV(const u64 *, counted),
                                 .known = (u64)rows,
                                 .most = (u64)f->args.groups,
                                 .limit = ~0ULL,
                                 .faults = 1};
    *out = &f->o;
    return ERR_OK;
}

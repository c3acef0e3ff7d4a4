/* gpu_window.c: STEP_WINDOW and STEP_LIMIT on the card.
 *
 * Rows come sorted by partition and order. They are marked where a partition or a group of peers
 * starts, marks are summed by the library's scan, and every function is one launch in which every
 * row finds its frame by itself (kernels/window.h). What the host keeps to itself: string_agg,
 * which makes text, and calls of sequences, which follow each other. The result takes over the
 * columns of the source where nobody else reads them, else has copies. A step that is queued knows how many rows it
 * will have at most; where an argument is refused it stops the queue, and finds out which when it runs again. */
#include "gpu/gpu_order.h"

struct windower {
    struct order_step o;
    struct exec *x;
    const struct step *step;
    u32 step_no;
    struct gpu_var *from, *out;
    u32 old_count; /* columns of the source */
    struct kwindow_rows rows;
    u64 report; /* a word per function; of a queue one for all */
    b8 taken;   /* the columns of the source are the result's */
};

/* --- partitions and peers --- */

static FALLIBLE find_rows(struct windower *w) {
    const struct step *step = w->step;
    u32 *cols = NEW_ARRAY(w->x->arena, u32, step->key_count + 1);
    TRY(arena_check(w->x->arena, w->x->err));
    for (u32 k = 0; k < step->key_count; k++) {
        cols[k] = step->keys[k].col;
    }
    w->rows.key_count = step->key_count;
    w->rows.part_count = step->part_count;
    return order_runs(&w->o, step->src, cols, &w->rows);
}

/* --- functions --- */

static FALLIBLE make_tree(struct windower *w, const struct window_fn *fn, const u8 *leaves,
                          u64 *out) {
    i64 n = w->rows.rows;
    TRY(order_block(&w->o, 2 * n * 8, out));
    struct kwindow_tree args = {.tree = DEV(i64 *, *out),
                                .leaves = (const i64 *)(const void *)leaves,
                                .first = n,
                                .end = 2 * n,
                                .rows = n,
                                .op = fn->func};
    TRY(order_start(&w->o, KERNEL_WINDOW_TREE, order_blocks(&w->o, n), SORT_THREADS, &args));
    args.leaves = NULL;
    for (i64 end = n; end > 1;) { /* children lie beyond half of the end */
        args.end = end;
        args.first = MAX_OF((end + 1) / 2, 1);
        TRY(order_start(&w->o, KERNEL_WINDOW_TREE, order_blocks(&w->o, args.end - args.first),
                        SORT_THREADS, &args));
        end = args.first;
    }
    return ERR_OK;
}

static FALLIBLE set_frame(struct windower *w, const struct window_fn *fn, struct kwindow *args) {
    struct exec *x = w->x;
    const struct step *step = w->step;
    args->mode = fn->mode;
    args->from = fn->from;
    args->to = fn->to;
    args->exclude = fn->exclude;
    TRY(exec_frame_offset(x, fn->from_lit, fn->from, &args->from_off, x->err));
    TRY(exec_frame_offset(x, fn->to_lit, fn->to, &args->to_off, x->err));
    bool from = fn->from == BOUND_BEFORE || fn->from == BOUND_AFTER;
    bool to = fn->to == BOUND_BEFORE || fn->to == BOUND_AFTER;
    if (fn->mode != FRAME_RANGE || (!from && !to)) {
        return ERR_OK;
    }
    const struct sort_key *order = &step->keys[step->part_count];
    TRY(order_column(&w->o, step->src, fn->key, &args->key));
    args->key.descending = order->descending;
    args->key.nulls_first = order->nulls_first;
    if (from) {
        TRY(order_column(&w->o, step->src, fn->from_col, &args->from_bound));
    }
    return to ? order_column(&w->o, step->src, fn->to_col, &args->to_bound) : ERR_OK;
}

static FALLIBLE make_column(struct windower *w, u32 number) {
    struct exec *x = w->x;
    const struct window_fn *fn = &w->step->windows[number];
    u32 col = w->old_count + number;
    i64 n = w->rows.rows;
    i64 width = kind_bytes[x->program->vars[w->step->dst].kinds[col]];
    struct gpu_col *to = &w->out->cols[col];
    bool word = fn->form == WINDOW_WORD;
    struct kwindow args = {.rows = w->rows, .is_word = word, .func = fn->func, .width = (u32)width};
    TRY(gpu_alloc(w->o.g, MAX_OF(n * width, 1), &to->data, x->err));
    to->addr = to->data->addr;
    if (!word && fn->func >= WINDOW_NTILE) {
        TRY(gpu_alloc(w->o.g, MAX_OF(n, 1), &to->nulls, x->err));
        to->nulls_addr = to->nulls->addr;
    }
    TRY(set_frame(w, fn, &args));
    for (u32 a = 0; a < 3; a++) {
        if (fn->args[a] != NO_VAR) {
            const struct gpu_col *from = &w->from->cols[fn->args[a]];
            args.args[a] = (struct kwindow_col){DEV(const u8 *, from->addr),
                                                DEV(const b8 *, from->nulls_addr)};
            args.arg_count |= 1u << a;
        }
    }
    u64 addr = 0;
    if (word && fn->func == WORD_ADD) {
        TRY(order_block(&w->o, n * 8, &addr));
        TRY(order_scan(&w->o, ELEM_U64, n, DEV(void *, addr), args.args[0].data));
        args.sums = DEV(const u64 *, addr);
    } else if (word) {
        TRY(make_tree(w, fn, args.args[0].data, &addr));
        args.tree = DEV(const i64 *, addr);
    }
    args.out = DEV(u8 *, to->addr);
    args.out_nulls = DEV(b8 *, to->nulls_addr);
    args.report = DEV(u64 *, w->report) + (w->o.queued ? 0 : number);
    TRY(order_start(&w->o, KERNEL_WINDOW, order_blocks(&w->o, n), SORT_THREADS, &args));
    w->o.metric->bytes_written += n * width;
    return ERR_OK;
}

/* The smallest function whose argument was refused. */
static FALLIBLE fetch_reports(struct windower *w) {
    struct gpu *g = w->o.g;
    struct error *err = w->x->err;
    i64 bytes = w->step->window_count * 8;
    TRY(gpu_pinned_reserve(g, &g->reports, bytes, err));
    CU(g->api->copy_to_host(g->reports.host, w->report, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

/* Once they are there. */
static FALLIBLE check_reports(struct windower *w) {
    struct exec *x = w->x;
    for (u32 i = 0; i < w->step->window_count; i++) {
        const struct window_fn *fn = &w->step->windows[i];
        u64 found;
        memcpy(&found, w->o.g->reports.host + 8 * i, sizeof found);
        if (found) {
            bool tile = fn->func == WINDOW_NTILE;
            return error_set(x->err, tile ? ERR_NTILE : ERR_NTH_VALUE, fn->position,
                             "argument of %s must be greater than zero",
                             tile ? "ntile" : "nth_value");
        }
    }
    return ERR_OK;
}

/* --- the result --- */

/* Whether this step is the last that reads the variable. */
static bool read_last(const struct windower *w) {
    const struct program *program = w->x->program;
    for (u32 b = 0; b < program->block_count; b++) {
        if (program->blocks[b].loop_count) {
            return false;
        }
    }
    return program->vars[w->step->src].last_use == w->step_no;
}

static FALLIBLE copy_array(struct gpu *g, struct error *err, const struct gpu_block *from, u64 at,
                           i64 bytes, struct gpu_block **out, u64 *out_addr) {
    if (!from) {
        return ERR_OK;
    }
    TRY(gpu_alloc(g, MAX_OF(bytes, 1), out, err));
    *out_addr = (*out)->addr;
    if (bytes > 0) {
        CU(g->api->copy_device((*out)->addr, at, (size_t)bytes, g->streams[0]));
    }
    return ERR_OK;
}

/* Rows [first, first + n) of the columns of one variable, to another. */
static FALLIBLE copy_rows(struct order_step *o, const struct gpu_var *from, const struct var *def,
                          i64 first, i64 n, struct gpu_var *out) {
    for (u32 c = 0; c < from->col_count; c++) {
        const struct gpu_col *col = &from->cols[c];
        i64 width = kind_bytes[def->kinds[c]];
        TRY(copy_array(o->g, o->x->err, col->data, col->addr + (u64)(first * width), n * width,
                       &out->cols[c].data, &out->cols[c].addr));
        TRY(copy_array(o->g, o->x->err, col->nulls, col->nulls_addr + (u64)first, n,
                       &out->cols[c].nulls, &out->cols[c].nulls_addr));
        o->metric->bytes_read += n * width;
        o->metric->bytes_written += n * width;
    }
    return ERR_OK;
}

static void take_over(struct windower *w) {
    for (u32 c = 0; c < w->old_count; c++) {
        w->out->cols[c] = w->from->cols[c];
        w->from->cols[c] = (struct gpu_col){0};
    }
}

static FALLIBLE window_all(void *arg) {
    struct windower *w = arg;
    struct gpu *g = w->o.g;
    struct exec *x = w->x;
    struct error *err = x->err;
    const struct step *step = w->step;
    const struct var *def = &x->program->vars[step->src];
    for (u32 c = 0; c < w->old_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(g, x, step->src, c, &col, &w->o.metric->bytes_moved));
    }
    TRY(gpu_var_get(g, x, step->src, &w->from));
    TRY(gpu_var_new(g, x, step->dst, x->program->vars[step->dst].col_count, &w->out));
    if (w->o.queued) {
        w->report = w->o.report + 8 * REPORT_RETRY;
    } else {
        TRY(order_block(&w->o, step->window_count * 8, &w->report));
        CU(g->api->set_bytes(w->report, 0, step->window_count * 8, g->streams[0]));
    }
    if (w->rows.rows > 0) {
        TRY(find_rows(w));
    }
    for (u32 i = 0; i < step->window_count && w->rows.rows > 0; i++) {
        TRY(make_column(w, i));
    }
    if (!read_last(w)) {
        TRY(copy_rows(&w->o, w->from, def, 0, w->rows.rows, w->out));
    }
    return w->o.queued ? ERR_OK : fetch_reports(w);
}

/* Before somebody waits for what it is made of, or after. */
static void hand_out(struct windower *w) {
    order_pass_texts(w->x, w->step, w->from, w->out);
    if (read_last(w)) {
        take_over(w);
        w->taken = 1;
    }
    w->out->rows = w->x->vars[w->step->dst].rows = w->rows.rows;
}

static void window_ended(struct windower *w, i64 rows) {
    w->out->rows = w->x->vars[w->step->dst].rows = rows;
    w->o.metric->rows_in += rows;
    w->o.metric->rows_out += rows;
}

static void window_open(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct windower *out) {
    *out = (struct windower){.o = {.g = g, .x = x, .metric = &x->metrics[step_no]},
                             .x = x,
                             .step = step,
                             .step_no = step_no,
                             .old_count = x->program->vars[step->src].col_count};
    out->rows.rows = x->vars[step->src].rows;
}

wf_status gpu_run_window(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct windower w;
    window_open(g, x, step_no, step, &w);
    variable_reset(&x->vars[step->dst]);
    wf_status status = order_timed(&w.o, window_all, &w); /* waits for all */
    status = status ? status : check_reports(&w);
    order_end(&w.o, status);
    if (status) {
        variable_reset(&x->vars[step->dst]);
        return status;
    }
    hand_out(&w);
    window_ended(&w, w.rows.rows);
    return ERR_OK;
}

static void settle_window(struct order_step *o, i64 rows) {
    struct windower *w = (struct windower *)(void *)o;
    w->out->count_at = 0;
    window_ended(w, rows);
}

static void undo_window(struct order_step *o) {
    struct windower *w = (struct windower *)(void *)o;
    for (u32 c = 0; w->taken && c < w->old_count; c++) {
        w->from->cols[c] = w->out->cols[c];
        w->out->cols[c] = (struct gpu_col){0};
    }
    variable_reset(&w->x->vars[w->step->dst]);
}

wf_status gpu_window_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                           struct order_step **out) {
    struct windower *w = NEW(x->arena, struct windower);
    *out = NULL;
    TRY(arena_check(x->arena, x->err));
    window_open(g, x, step_no, step, w);
    if (!order_may_queue(&w->o, step)) {
        return ERR_OK;
    }
    const struct gpu_var *from = x->vars[step->src].copy;
    w->o.queued = 1;
    w->o.event_base = g->queue.event_count;
    w->o.count_at = from->count_at;
    w->o.settle = settle_window;
    w->o.undo = undo_window;
    variable_reset(&x->vars[step->dst]);
    wf_status status = order_queue(&w->o, window_all, w);
    if (status) {
        gpu_order_close(&w->o, status);
        return status;
    }
    hand_out(w);
    w->o.relay = (struct krelay){.report = DEV(const u64 *, w->o.report),
                                 .rows = DEV(const u64 *, w->o.count_at),
                                 .known = (u64)w->rows.rows,
                                 .most = (u64)w->rows.rows,
                                 .limit = ~0ULL,
                                 .retry = ~0ULL};
    *out = &w->o;
    return ERR_OK;
}

/* --- limits --- */

struct limiting {
    struct order_step o;
    const struct step *step;
    i64 first, rows;
    i64 had; /* rows of the source */
    struct gpu_var *from, *out;
};

static FALLIBLE limit_all(void *arg) {
    struct limiting *l = arg;
    struct exec *x = l->o.x;
    const struct var *def = &x->program->vars[l->step->src];
    for (u32 c = 0; c < def->col_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(l->o.g, x, l->step->src, c, &col, &l->o.metric->bytes_moved));
    }
    TRY(gpu_var_get(l->o.g, x, l->step->src, &l->from));
    TRY(gpu_var_new(l->o.g, x, l->step->dst, def->col_count, &l->out));
    return copy_rows(&l->o, l->from, def, l->first, l->rows, l->out);
}

/* As many rows as the source has, or is expected to have. */
static FALLIBLE limit_open(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct limiting *out) {
    i64 limit = -1;
    i64 rows = x->vars[step->src].rows;
    *out = (struct limiting){.o = {.g = g, .x = x, .metric = &x->metrics[step_no]}, .step = step, .had = rows};
    TRY(step_bounds(x, step, &out->first, &limit));
    out->first = MIN_OF(out->first, rows);
    out->rows = limit < 0 ? rows - out->first : MIN_OF(limit, rows - out->first);
    variable_reset(&x->vars[step->dst]);
    return ERR_OK;
}

static void limit_ended(struct limiting *l, i64 had, i64 rows) {
    l->out->rows = l->o.x->vars[l->step->dst].rows = rows;
    l->o.metric->rows_in += had;
    l->o.metric->rows_out += rows;
}

wf_status gpu_run_limit(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct limiting l;
    TRY(limit_open(g, x, step_no, step, &l));
    wf_status status = order_timed(&l.o, limit_all, &l);
    order_end(&l.o, status);
    if (status) {
        variable_reset(&x->vars[step->dst]);
        return status;
    }
    order_pass_texts(x, step, l.from, l.out);
    limit_ended(&l, l.had, l.rows);
    return ERR_OK;
}

static void settle_limit(struct order_step *o, i64 rows) {
    struct limiting *l = (struct limiting *)(void *)o;
    l->out->count_at = 0;
    limit_ended(l, o->x->vars[l->step->src].rows, rows);
}

static void undo_limit(struct order_step *o) {
    const struct limiting *l = (const struct limiting *)(const void *)o;
    variable_reset(&o->x->vars[l->step->dst]);
}

wf_status gpu_limit_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                           struct order_step **out) {
    struct limiting *l = NEW(x->arena, struct limiting);
    *out = NULL;
    TRY(arena_check(x->arena, x->err));
    l->o = (struct order_step){.g = g, .x = x};
    if (!order_may_queue(&l->o, step) || step->mark_lit || step->shares) {
        return ERR_OK;
    }
    const struct gpu_var *from = x->vars[step->src].copy;
    TRY(limit_open(g, x, step_no, step, l));
    l->o.queued = 1;
    l->o.event_base = g->queue.event_count;
    l->o.count_at = from->count_at;
    l->o.settle = settle_limit;
    l->o.undo = undo_limit;
    wf_status status = order_queue(&l->o, limit_all, l);
    if (status) {
        gpu_order_close(&l->o, status);
        return status;
    }
    order_pass_texts(x, step, l->from, l->out);
    l->out->rows = x->vars[step->dst].rows = l->rows;
    l->o.relay = (struct krelay){.report = DEV(const u64 *, l->o.report),
                                 .rows = DEV(const u64 *, l->o.count_at),
                                 .known = (u64)l->had,
                                 .most = (u64)l->rows,
                                 .skip = (u64)l->first,
                                 .limit = (u64)l->rows};
    *out = &l->o;
    return ERR_OK;
}

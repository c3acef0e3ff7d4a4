/* queue.c: steps that run one behind the other on a device before anybody waits for them.
 *
 * A program that ran before is expected to make as many rows as it did then. So steps are handed to a
 * device without waiting for those before them: how many rows there really are is known to the device
 * alone, and until it is asked variables have as many as expected. Whatever turns out otherwise, be it
 * a fault, more rows or a key that is repeated, makes all queued steps run again, each waited for; so
 * errors are met in the order of steps, and nobody sees anything that was not looked at. Steps of the
 * host that have nothing to do with what is queued go on meanwhile. Variables are released when all is
 * settled: a step that runs again finds what it reads. */
#include "run/run_int.h"

struct queued {
    u32 step_no;
    const struct step *step;
    i64 ns;         /* of the host, to queue it */
    f64 running_ns; /* as auto estimated */
    b8 kept_away;   /* it was meant for the host */
};

struct queue {
    b8 asked, may;     /* whether this execution queues steps at all */
    b8 open;
    u32 number;        /* of the device, taken */
    u32 first, last;   /* steps since it was opened */
    u32 held;          /* steps before this one are waited for */
    u32 count;
    struct queued *items;
    b8 *unsettled; /* by variable */
    b8 knows_last;
    u32 last_away; /* the last step that others than the host are expected to run; NO_STEP = none */
};

bool queue_is_open(const struct exec *x) {
    return x->queue && x->queue->open;
}

static struct queue *queue_of(struct exec *x) {
    if (!x->queue) {
        struct queue *q = NEW(exec_arena(x), struct queue);
        q->items = NEW_ARRAY(exec_arena(x), struct queued, step_total(x->program) + 1);
        q->unsettled = NEW_ARRAY(exec_arena(x), b8, x->program->var_count + 1);
        q->last_away = NO_STEP;
        x->queue = q;
    }
    return x->queue;
}

/* Loops have their own way. */
static bool has_loops(const struct program *program) {
    bool loops = false;
    for (u32 b = 0; b < program->block_count; b++) {
        loops = loops || program->blocks[b].loop_count;
    }
    return loops;
}

static bool is_queued_kind(const struct step *step) {
    return step->kind == STEP_PIPELINE || step->kind == STEP_BUILD || step->kind == STEP_SORT ||
           step->kind == STEP_LIMIT || step->kind == STEP_WINDOW || step->kind == STEP_FOLD;
}

bool queue_may(const struct exec *x, const struct step *step) {
    return x->past && x->settings->gpu_queue > 0 && is_queued_kind(step) && !has_loops(x->program);
}

/* EXPLAIN ANALYZE tells of every step how long it took; shares and records of launches are of single
 * steps. */
static bool may_queue(struct exec *x) {
    struct queue *q = queue_of(x);
    if (!q->asked) {
        q->asked = 1;
        q->may = !has_loops(x->program) && x->settings->gpu_queue > 0 && !x->counts_rows && !x->profiles &&
                 !x->capture && !x->whole && past_may_queue(x->past);
    }
    return q->may;
}

/* What a step has to do with variables. */
struct touching {
    const struct exec *x;
    u32 space;
    bool away;      /* one lies in memory of another device, or of any where space is 0 */
    bool unsettled;
    bool unknown;   /* how many rows one had */
};

static void touch_input(void *arg, u32 var) {
    struct touching *t = arg;
    const struct variable *v = &t->x->vars[var];
    bool elsewhere = v->copy && v->copy_space != t->space;
    t->away = t->away || (elsewhere && (t->space || !v->on_host));
    t->unsettled = t->unsettled || t->x->queue->unsettled[var];
}

static void touch_output(void *arg, u32 var) {
    struct touching *t = arg;
    touch_input(arg, var);
    t->unknown = t->unknown || exec_expects(t->x, var) < 0;
}

static bool in_place(const struct step *step) {
    return step->kind == STEP_SORT;
}

static void note_unsettled(void *arg, u32 var) {
    struct queue *q = arg;
    q->unsettled[var] = 1;
}

/* Of its variables, and of interners that it may add to: how many they hold is not known. */
static void note_queued(struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->pipeline;
    step_outputs(step, note_unsettled, x->queue);
    for (u32 i = 0; step->kind == STEP_PIPELINE && i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        if (var != NO_VAR && x->vars[var].kind == VAR_INTERN) {
            note_unsettled(x->queue, var);
        }
    }
}

static bool is_unsettled_dict(const struct exec *x, u32 dict) {
    u32 var = dict ? program_interner(x->program, dict - 1) : NO_VAR;
    return var != NO_VAR && x->queue->unsettled[var];
}

/* Whether the step names an interner whose texts or pairs are still to be counted, or has numbers of its. */
static bool numbers_unsettled(const struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->pipeline;
    bool found = false;
    if (step->kind != STEP_PIPELINE) {
        const u32 *dicts = x->program->vars[step->src].dicts;
        for (u32 c = 0; dicts && c < x->program->vars[step->src].col_count; c++) {
            found = found || is_unsettled_dict(x, dicts[c]);
        }
        return found;
    }
    for (u32 r = 0; r < pipe->reg_count; r++) {
        found = found || is_unsettled_dict(x, pipe->regs[r].dict);
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        found = found || (var != NO_VAR && x->vars[var].kind == VAR_INTERN && x->queue->unsettled[var]);
    }
    return found;
}

/* Whether the step reads what is queued. */
static bool reads_queued(const struct exec *x, const struct step *step) {
    struct touching t = {.x = x};
    step_inputs(x->program, step, touch_input, &t);
    return t.unsettled;
}

/* Of the rows that its source is expected to have as many as make it worth a device. */
static bool reads_many(const struct exec *x, const struct step *step) {
    const struct source *source = step->kind == STEP_PIPELINE ? &step->pipeline->source : NULL;
    i64 rows = !source                       ? 0
               : source->kind == SOURCE_TABLE ? x->versions[source->ref]->rows
               : source->kind == SOURCE_VAR   ? past_rows(x->past, source->ref)
                                              : 0;
    return rows >= x->settings->host_rows;
}

/* Whether others than the host run steps behind this one, so that the answer has to be waited for anyway. */
static bool goes_on(struct exec *x, u32 step_no) {
    struct queue *q = x->queue;
    u32 no = 0;
    for (u32 b = 0; !q->knows_last && b < x->program->block_count; b++) {
        const struct block *block = &x->program->blocks[b];
        for (u32 s = 0; s < block->step_count; s++, no++) {
            const struct step *step = &block->steps[s];
            bool away = reads_many(x, step) && !choose_host_always(x, step) && auto_places_away(x, no);
            q->last_away = away ? no : q->last_away;
        }
    }
    q->knows_last = 1;
    return q->last_away != NO_STEP && step_no < q->last_away;
}

/* A step over few rows is the calling thread's; but where these are still to be waited for, and others
 * come behind it that are not, the device makes it sooner than the host would know that it may. */
static bool keeps_away(struct exec *x, const struct run_devices *devices, u32 step_no, const struct step *step,
                       struct chosen *chosen) {
    struct device *device = devices->list[x->queue->number];
    bool keeps = chosen->alone && x->queue->open && reads_queued(x, step) && goes_on(x, step_no) &&
                 !(device->refuses && device->refuses(device, x, step));
    if (keeps) {
        *chosen = (struct chosen){.number = x->queue->number, .why = "what it reads is queued"};
    }
    return keeps;
}

/* Whether the device may take it as it is: all that it reads is there, or on the host. */
static bool fits(struct exec *x, const struct run_devices *devices, const struct step *step,
                 const struct chosen *chosen) {
    const struct queue *q = x->queue;
    const struct device *device = devices->list[chosen->number];
    if (!chosen->number || chosen->shares || !device->queue ||
        (q->open && device->space != devices->list[q->number]->space)) {
        return false;
    }
    struct touching t = {.x = x, .space = device->space};
    step_inputs(x->program, step, touch_input, &t);
    t.unsettled = false; /* that is what it is about */
    step_outputs(step, touch_output, &t);
    return !t.away && (!t.unsettled || in_place(step)) && !t.unknown && !numbers_unsettled(x, step);
}

wf_status queue_step(struct exec *x, const struct run_devices *devices, u32 step_no,
                     const struct step *step, bool *out_done) {
    *out_done = false;
    if (!is_queued_kind(step) || devices->count < 2 || !may_queue(x) || step_no < x->queue->held ||
        !defer_may_queue(x, step)) {
        return ERR_OK;
    }
    struct queue *q = x->queue;
    struct chosen chosen;
    TRY(exec_check(x));
    i64 start = clock_ns();
    TRY(choose_device(x, devices, step_no, step, &chosen));
    bool kept_away = keeps_away(x, devices, step_no, step, &chosen);
    if ((i64)q->count >= x->settings->gpu_queue || !fits(x, devices, step, &chosen)) {
        (void)auto_pause(x);
        return ERR_OK;
    }
    u32 number = q->open ? q->number : device_take(devices, chosen.number);
    struct device *device = devices->list[number];
    struct step_metric *metric = &x->metrics[step_no];
    struct step_metric untouched = *metric;
    metric->device_no = number;
    metric->device = device->name;
    metric->why = chosen.why;
    work_begin(x, step_no, step, false);
    wf_status status = device->queue(device, x, step_no, step, !q->open, out_done);
    if (status || !*out_done) {
        bool over = status == ERR_GPU || status == ERR_CANCELLED;
        *metric = untouched;
        *out_done = false;
        if (!q->open) {
            device_give(devices, number);
        }
        if (!over) { /* whoever runs it meets it again */
            error_reset(x->err);
        }
        (void)auto_pause(x);
        return over ? status : ERR_OK;
    }
    work_end(x);
    if (!q->open) {
        q->open = 1;
        q->number = number;
        q->first = step_no;
    }
    q->last = step_no;
    note_queued(x, step);
    q->items[q->count++] = (struct queued){step_no, step, clock_ns() - start, auto_pause(x), kept_away};
    return arena_check(x->arena, x->err);
}

wf_status queue_leaves(struct exec *x, const struct run_devices *devices, u32 step_no,
                       const struct step *step, bool *out) {
    struct chosen chosen;
    *out = false;
    if (step->kind != STEP_PIPELINE && step->kind != STEP_BUILD) {
        return ERR_OK;
    }
    TRY(choose_device(x, devices, step_no, step, &chosen));
    (void)auto_pause(x);
    struct touching t = {.x = x};
    step_inputs(x->program, step, touch_input, &t);
    step_outputs(step, touch_input, &t);
    *out = !chosen.number && !chosen.shares && !t.away && !t.unsettled;
    if (*out) {
        x->queue->last = step_no;
    }
    return ERR_OK;
}

static void close_queue(struct exec *x, const struct run_devices *devices) {
    struct queue *q = x->queue;
    device_give(devices, q->number);
    q->open = 0;
    q->count = 0;
    memset(q->unsettled, 0, x->program->var_count);
}

u32 queue_drop(struct exec *x, const struct run_devices *devices) {
    struct queue *q = x->queue;
    struct device *device = devices->list[q->number];
    struct error kept = *x->err;
    bool good = false;
    error_reset(x->err);
    wf_status status = device->settle(device, x, false, &good);
    UNUSED(status); /* what is dropped may have failed */
    *x->err = kept;
    q->held = q->last + 1;
    close_queue(x, devices);
    return q->first;
}

/* What the host reads next comes with what is waited for. */
struct wanting {
    struct exec *x;
    struct device *device;
    wf_status status;
};

static void want_input(void *arg, u32 var) {
    struct wanting *w = arg;
    const struct variable *v = &w->x->vars[var];
    bool away = v->copy && v->copy_space == w->device->space && !v->on_host;
    bool interned = v->kind == VAR_INTERN && w->x->queue->unsettled[var];
    if (!w->status && away && (v->kind == VAR_ROWS || v->kind == VAR_AGG || interned)) {
        w->status = w->device->want(w->device, w->x, var);
    }
}

/* Whether the rows of the answer stay where they are. */
static bool stays(const struct exec *x, const struct step *step) {
    return step->kind == STEP_RESULT && setting_keeps_result(x->settings);
}

/* Of the step that is next, and, where all behind it is the host's, of those, too. */
static FALLIBLE want_inputs(struct exec *x, const struct run_devices *devices, u32 step_no,
                            const struct step *step) {
    struct device *device = devices->list[x->queue->number];
    struct wanting w = {x, device, ERR_OK};
    struct chosen chosen = {.number = 1};
    if (!step || !device->want) {
        return ERR_OK;
    }
    if (!stays(x, step)) {
        wf_status status = choose_device(x, devices, step_no, step, &chosen);
        (void)auto_pause(x);
        if (status) { /* whoever runs it meets it again */
            error_reset(x->err);
        } else if (!chosen.number && !chosen.shares) {
            step_inputs(x->program, step, want_input, &w);
        }
    }
    u32 no = 0;
    bool all = !chosen.number && !chosen.shares && !goes_on(x, step_no);
    for (u32 b = 0; all && b < x->program->block_count; b++) {
        const struct block *block = &x->program->blocks[b];
        for (u32 s = 0; s < block->step_count; s++, no++) {
            if (no > step_no && !stays(x, &block->steps[s])) {
                step_inputs(x->program, &block->steps[s], want_input, &w);
            }
        }
    }
    return w.status;
}

wf_status queue_settle(struct exec *x, const struct run_devices *devices, u32 step_no,
                       const struct step *step, u32 *out_again) {
    struct queue *q = x->queue;
    bool good = false;
    *out_again = NO_STEP;
    if (!queue_is_open(x)) {
        return ERR_OK;
    }
    struct device *device = devices->list[q->number];
    wf_status wanted = want_inputs(x, devices, step_no, step);
    wf_status status = device->settle(device, x, !wanted, &good);
    status = wanted ? wanted : status;
    u32 count = q->count;
    u32 number = q->number;
    close_queue(x, devices);
    TRY(status);
    past_queued(x->past, good);
    if (!good) {
        q->held = q->last + 1;
        *out_again = q->first;
        return ERR_OK;
    }
    for (u32 i = 0; i < count; i++) {
        struct step_metric *metric = &x->metrics[q->items[i].step_no];
        i64 ns = q->items[i].ns + metric->device_ns;
        metric->ns += ns;
        auto_resume(x, q->items[i].running_ns);
        if (q->items[i].kept_away) {
            auto_left(x, q->items[i].step_no);
        } else {
            auto_ran(x, devices, number, q->items[i].step_no, ns);
        }
    }
    for (u32 i = count; i-- > 0;) { /* what a variable had before it was sorted */
        const struct queued *item = &q->items[i];
        if (in_place(item->step)) {
            past_made(x->past, item->step->src, x->metrics[item->step_no].rows_in);
        }
    }
    refresh_dicts(x);
    for (u32 s = q->first; s <= q->last; s++) {
        release_after(x, s);
    }
    return arena_check(x->arena, x->err);
}

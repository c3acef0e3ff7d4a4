/* run.c: one execution of a program: opened, run block by block, closed.
 *
 * The runtime owns what outlives a step: variables, dictionaries, metrics, the smallest fault. A
 * step is one call of a device; before it, inputs that exist only on the card are fetched when a
 * host step needs them; after it, a fault becomes the statement's error, interned dictionaries
 * become known, and variables whose last use has passed are released. */
#include "run/run.h"

#include "base/temp.h"
#include "run/levels.h"
#include "run/run_int.h"
#include "run/tries.h"

void exec_fault(struct exec *x, u64 key) {
    x = x->whole ? x->whole : x;
    u64 seen = atomic_load_explicit(&x->fault, memory_order_relaxed);
    while (key < seen && !atomic_compare_exchange_weak_explicit(
                             &x->fault, &seen, key, memory_order_relaxed, memory_order_relaxed)) {
    }
}

wf_status exec_check(struct exec *x) {
    if (x->mem->temp) {
        temp_cool(x->mem->temp);
    }
    struct stop stop = exec_stop(x);
    bool asked = stop_asked_of(&stop);
    bool halted = x->halted && atomic_load_explicit(x->halted, memory_order_relaxed);
    if (!asked && !halted) {
        return ERR_OK;
    }
    mutex_lock(&x->lock);
    wf_status status = asked ? stop_check_of(&stop, x->err)
                             : error_set(x->err, ERR_CANCELLED, -1, "another share failed");
    mutex_unlock(&x->lock);
    return status;
}

i64 exec_temp_bytes(const struct exec *x) {
    return x->mem->temp ? atomic_load(&x->mem->temp->taken_bytes) : 0;
}

static bool guard_holds(const struct exec *x, const struct guard *guard) {
    const struct table_version *version = x->versions[guard->table];
    const struct scan_provider *provider = x->providers ? x->providers[guard->table] : NULL;
    const struct column_stats *stats =
        provider && provider->stats ? &provider->stats[guard->col] : &version->stats[guard->col];
    if ((guard->no_nulls && stats->null_count > 0) || (guard->unique && !stats->unique) ||
        (guard->max_rows && version->rows > guard->max_rows)) {
        return false;
    }
    if (guard->all_dict) {
        return stats->all_dict && stats->dict_len - 1 <= guard->range.hi;
    }
    bool is_text = type_kind(x->tables[guard->table]->cols[guard->col].type) == KIND_STR;
    return is_text || range_within(stats->range, guard->range);
}

static void open_dicts(struct exec *x) {
    const struct program *program = x->program;
    x->dicts = NEW_ARRAY(x->arena, struct dict *, program->dict_count);
    x->dict_lens = NEW_ARRAY(x->arena, i32, program->dict_count);
    for (u32 i = 0; i < program->dict_count; i++) {
        const struct dict_ref *ref = &program->dicts[i];
        if (ref->table != NO_VAR) {
            x->dicts[i] = x->tables[ref->table]->dicts[ref->col];
            x->dict_lens[i] = x->versions[ref->table]->stats[ref->col].dict_len;
        }
    }
}

/* Dictionaries that interners made so far; they grow with every step that interns. */
void refresh_dicts(struct exec *x) {
    for (u32 i = 0; i < x->program->dict_count; i++) {
        const struct dict_ref *ref = &x->program->dicts[i];
        struct dict *dict = ref->table == NO_VAR ? x->vars[ref->values].dict : NULL;
        if (dict) { /* a device may hold more of it */
            const struct variable *v = &x->vars[ref->values];
            bool away = v->copy && !v->on_host;
            x->dicts[i] = dict;
            x->dict_lens[i] = MAX_OF(dict_len(dict), away ? (i32)v->rows : 0);
        }
    }
}

u32 step_total(const struct program *program) {
    u32 count = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        count += program->blocks[b].step_count;
    }
    return count;
}

/* A variable that holds literals: the rows of VALUES. */
static FALLIBLE open_values(struct exec *x, u32 v) {
    const struct var *var = &x->program->vars[v];
    struct chunk *chunk = chunk_new(x, var, var->const_rows, true);
    if (!chunk) {
        return memory_refused(x->mem, x->err, var->const_rows * 16 * var->col_count);
    }
    for (u32 c = 0; c < var->col_count; c++) {
        i64 bytes = kind_bytes[var->kinds[c]];
        for (i64 i = 0; i < var->const_rows; i++) {
            u32 lit = var->const_lits[i * var->col_count + c];
            u8 *to = (u8 *)chunk->cols[c].data + i * bytes;
            chunk->cols[c].nulls[i] = lit == NO_LIT;
            if (lit == NO_LIT) {
                memset(to, 0, (size_t)bytes);
            } else {
                memcpy(to, &x->lits[lit], (size_t)bytes);
            }
        }
    }
    variable_append(x, v, chunk);
    return ERR_OK;
}

static void open_metrics(struct exec *x) {
    const struct program *program = x->program;
    struct step_metric *metric = NEW_ARRAY(x->arena, struct step_metric, step_total(program));
    x->metrics = metric;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, metric++) {
            const struct pipeline *pipe = program->blocks[b].steps[s].pipeline;
            metric->marks = NEW_ARRAY(x->arena, i64, pipe ? pipe->mark_count + 1 : 1);
            for (u32 m = 0; pipe && m < pipe->mark_count; m++) {
                metric->marks[m] = -1;
            }
        }
    }
}

wf_status exec_open(struct exec *x, bool *out_stale) {
    const struct program *program = x->program;
    *out_stale = false;
    mutex_init(&x->lock);
    pins_init(&x->pins, x->mem);
    atomic_init(&x->fault, ~0ULL);
    x->work = (struct work){0};
    if (!x->lits) {
        x->lits = NEW_ARRAY(x->arena, union lit, program->lit_count);
        if (program->lit_count) {
            memcpy(x->lits, program->lits, sizeof(union lit) * program->lit_count);
        }
    }
    for (i32 time = 0; time < TIME_COUNT; time++) {
        if (program->time_lits[time]) {
            x->lits[program->time_lits[time] - 1].i64 =
                x->times_us[time] ? x->times_us[time] : clock_real_us();
        }
    }
    if (program->seed_lit) {
        x->lits[program->seed_lit - 1].i64 = clock_ns() ^ (i64)((u64)clock_real_us() << 20);
    }
    defer_open(x);
    open_metrics(x);
    x->vars = NEW_ARRAY(x->arena, struct variable, program->var_count);
    for (u32 v = 0; v < program->var_count; v++) {
        x->vars[v].kind = program->vars[v].kind;
        x->vars[v].mem = x->mem;
    }
    open_dicts(x);
    for (u32 v = 0; v < program->var_count; v++) {
        if (program->vars[v].const_rows > 0) {
            TRY(open_values(x, v));
        }
    }
    for (u32 i = 0; i < program->guard_count; i++) {
        *out_stale = *out_stale || !guard_holds(x, &program->guards[i]);
    }
    return arena_check(x->arena, x->err);
}

void exec_close(struct exec *x) {
    stream_close(x);
    for (u32 v = 0; x->vars && v < x->program->var_count; v++) {
        variable_release(&x->vars[v]);
    }
    x->vars = NULL;
    shares_close(x); /* copies of variables may lie in their arenas */
    pins_fini(&x->pins);
    mutex_fini(&x->lock);
}

wf_status exec_hold(struct exec *x, const struct tablet *tablet, u32 col, bool aside, struct error *err) {
    x = x->whole ? x->whole : x;
    if (!tablet->framed) {
        return ERR_OK;
    }
    TRY(column_hold(tablet, col, aside ? HOLD_LONG : HOLD_IN_MEMORY, err));
    mutex_lock(&x->lock);
    wf_status status = pins_keep(&x->pins, tablet, col, err);
    mutex_unlock(&x->lock);
    return status;
}

i32 fault_position(const struct exec *x, const struct step *step) {
    u64 key = atomic_load_explicit(&x->fault, memory_order_relaxed);
    u16 rank = (u16)(key >> 48);
    i32 position = -1;
    const struct pipeline *pipe = step->pipeline;
    for (u32 i = 0; pipe && i < pipe->op_count && position < 0; i++) {
        bool may_fail = op_may_fault(&pipe->ops[i]);
        if (pipe->ops[i].rank == rank && may_fail) {
            position = defer_position(x, pipe, &pipe->ops[i]);
        }
    }
    return position;
}

wf_status raise_fault(struct exec *x, const struct step *step) {
    u64 key = atomic_load_explicit(&x->fault, memory_order_relaxed);
    if (key == ~0ULL) {
        return ERR_OK;
    }
    u8 fault = (u8)key;
    return error_set(x->err, fault_error(fault), fault_position(x, step), "%s",
                     fault_message(fault));
}

/* Bringing what a step uses to where it runs. */
struct bring {
    struct exec *x;
    const struct run_devices *devices;
    u32 space;
    wf_status status;
    const struct step *answer; /* the step hands this out; NULL: it is another */
};

static FALLIBLE fetch(const struct bring *b, u32 var) {
    for (u32 i = 1; i < b->devices->count; i++) {
        struct device *device = b->devices->list[i];
        if (device->space == b->x->vars[var].copy_space) {
            bool done = false;
            u32 number = device_take(b->devices, i);
            device = b->devices->list[number];
            wf_status status = ERR_OK;
            if (b->answer && b->x->vars[var].kind == VAR_INTERN) {
                status = shown_texts(b->x, device, b->answer, var, &done);
            }
            status = status || done ? status : device->fetch(device, b->x, var);
            device_give(b->devices, number);
            return status;
        }
    }
    FAIL(b->x->err, INTERNAL, "variable %u lies nowhere", var);
}

/* An index that was built elsewhere is built again from its rows: copying it would cost as much.
 */
static FALLIBLE rebuild_index(const struct bring *b, u32 var) {
    struct device *host = b->devices->list[0];
    u32 step_no = 0;
    const struct step *step = program_build(b->x->program, var, &step_no);
    if (!step) {
        FAIL(b->x->err, INTERNAL, "variable %u has no index", var);
    }
    const struct variable *rows = &b->x->vars[step->src];
    if (rows->copy && !rows->on_host) {
        TRY(fetch(b, step->src));
    }
    return host->run(host, b->x, step_no, step);
}

/* The host may read what is there and elsewhere; a device with memory of its own takes all from the
 * host. */
static void bring_one(void *arg, u32 var) {
    struct bring *b = arg;
    struct variable *v = &b->x->vars[var];
    if (b->status || !v->copy || v->copy_space == b->space) {
        return;
    }
    if (!v->on_host && v->kind == VAR_INDEX) {
        b->status = v->index ? ERR_OK : rebuild_index(b, var);
    } else if (!v->on_host) {
        b->status = fetch(b, var);
    }
    if (!b->status && b->space) {
        variable_drop_copy(v);
    }
}

/* What the step makes anew is no longer what another device holds of it. */
static void forget_outputs(const struct bring *b, const struct step *step) {
    u32 sinks = step->kind == STEP_PIPELINE ? step->pipeline->sink_count : 0;
    for (u32 i = 0; i <= sinks; i++) {
        u32 var = i < sinks                  ? step->pipeline->sinks[i].var
                  : step->kind == STEP_BUILD ? step->dst
                                             : NO_VAR;
        if (var != NO_VAR && b->space && b->x->vars[var].copy_space != b->space) {
            variable_drop_copy(&b->x->vars[var]);
        }
    }
}

static FALLIBLE run_limit(struct exec *x, struct device *device, u32 step_no,
                          const struct step *step) {
    struct step_metric *metric = &x->metrics[step_no];
    if (device->space) {
        TRY(device->run(device, x, step_no, step));
    } else {
        TRY(limit_run(x, step));
        metric->rows_in += x->vars[step->src].rows;
        metric->rows_out += x->vars[step->dst].rows;
    }
    if (step->mark_lit) {
        x->lits[step->mark_lit - 1].i64 = x->vars[step->src].rows;
    }
    return ERR_OK;
}

static FALLIBLE run_on(struct exec *x, struct device *device, u32 step_no, const struct step *step,
                       bool streams) {
    struct step_metric *metric = &x->metrics[step_no];
    switch (step->kind) {
    case STEP_RESULT:
        metric->rows_in = metric->rows_out = x->vars[step->src].rows;
        return ERR_OK;
    case STEP_LIMIT:
        return run_limit(x, device, step_no, step);
    case STEP_FETCH:
        return streams ? stream_open(x, device, step_no, step) : fetch_run(x, step, step_no);
    default:
        if (streams) {
            return stream_open(x, device, step_no, step);
        }
        return device->run(device, x, step_no, step);
    }
}

/* All that the step reads to the host, where every share finds it. */
static FALLIBLE run_shared(struct exec *x, const struct run_devices *devices, u32 step_no,
                           const struct step *step, const struct share_plan *shares) {
    struct bring bring = {x, devices, 0, ERR_OK, NULL};
    step_inputs(x->program, step, bring_one, &bring);
    TRY(bring.status);
    return hybrid_run(x, devices, step_no, step, shares);
}

static FALLIBLE run_here(struct exec *x, const struct run_devices *devices, u32 number, u32 step_no,
                         const struct step *step, bool streams) {
    struct device *device = devices->list[number];
    bool stays =
        step->kind == STEP_RESULT && setting_keeps_result(x->settings) && devices->count > 1;
    if (devices->count > 1 && !stays) {
        struct bring bring = {x, devices, device->space, ERR_OK,
                              step->kind == STEP_RESULT ? step : NULL};
        step_inputs(x->program, step, bring_one, &bring);
        TRY(bring.status);
        forget_outputs(&bring, step);
        if (step->kind == STEP_SORT && !device->space) { /* in place: a copy would be as before */
            variable_drop_copy(&x->vars[step->src]);
        }
    }
    return run_on(x, device, step_no, step, streams);
}

/* On one device, or, where that has no room and the session does not insist, on the host. */
static FALLIBLE run_whole(struct exec *x, const struct run_devices *devices, u32 step_no,
                          const struct step *step, const struct chosen *chosen, bool streams) {
    struct step_metric *metric = &x->metrics[step_no];
    u32 number = device_take(devices, chosen->number);
    metric->device_no = number;
    metric->device = devices->list[number]->name;
    if (metric->shares) { /* of an earlier round */
        metric->shares = NULL;
        metric->share_count = 0;
        metric->how = NULL;
    }
    struct step_metric untouched = *metric;
    struct pool *pool = x->pool;
    x->pool = chosen->alone && !streams ? NULL : pool;
    bool boxes = step->kind == STEP_CLIQUES;
    if (boxes) {
        boxes_allow(x, devices);
    }
    struct kept_far *far = boxes ? kept_trie_far(x->vars[step->src].kept) : NULL;
    bool there = !far || far->in_host || far->space == devices->list[number]->space;
    wf_status status = there ? run_here(x, devices, number, step_no, step, streams)
                             : error_set(x->err, ERR_DEVICE_MEMORY, -1, "out of GPU memory");
    status = boxes ? boxes_settle(x, step_no, step, status) : status;
    x->pool = pool;
    device_give(devices, number);
    if (status == ERR_DEVICE_MEMORY && far) {
        return status; /* nobody has the rows */
    }
    bool named = setting_device(x->settings) != NULL;
    const char *roomy = named ? choose_without_room(x, step) : NULL;
    bool refused = status == ERR_NOT_SUPPORTED && number > 0 && !named;
    if (refused || (status == ERR_DEVICE_MEMORY && (!named || roomy))) {
        *metric = untouched; /* the host has more, or reads more */
        metric->why = named ? roomy : arena_printf(x->arena, "%s", x->err->message);
        metric->device_no = 0;
        metric->device = devices->list[0]->name;
        error_reset(x->err);
        status = run_here(x, devices, 0, step_no, step, streams);
        status = boxes ? boxes_settle(x, step_no, step, status) : status;
    }
    return status;
}

/* What lay aside was given back as it was written. */
static FALLIBLE check_aside(struct exec *x) {
    for (u32 t = 0; t < x->program->table_count; t++) {
        TRY(x->versions[t] ? columns_check(x->versions[t], x->err) : ERR_OK);
    }
    return x->mem->temp ? temp_check(x->mem->temp, x->err) : ERR_OK;
}

static FALLIBLE run_step(struct exec *x, const struct run_devices *devices, u32 step_no,
                         const struct step *step, bool streams) {
    TRY(exec_check(x));
    if (defer_skips(x, step)) {
        return ERR_OK;
    }
    struct chosen chosen;
    TRY(choose_device(x, devices, step_no, step, &chosen));
    struct step_metric *metric = &x->metrics[step_no];
    metric->why = chosen.why;
    bool shared = chosen.shares && !streams;
    i64 taken = exec_temp_bytes(x);
    i64 start = clock_ns();
    work_begin(x, step_no, step, streams);
    TRY(shared ? run_shared(x, devices, step_no, step, chosen.shares)
               : run_whole(x, devices, step_no, step, &chosen, streams));
    if (!streams && step->kind != STEP_RESULT) { /* whoever takes the answer has yet to do so */
        work_end(x);
    }
    i64 ns = clock_ns() - start;
    metric->ns += ns;
    metric->temp_bytes += exec_temp_bytes(x) - taken;
    if (!streams) { /* shares have been learnt from, and left on the host what they made */
        auto_ran(x, devices, shared ? 0 : metric->device_no, step_no, shared ? 0 : ns);
    }
    if (!defer_fault(x, step)) {
        TRY(raise_fault(x, step));
    }
    refresh_dicts(x);
    TRY(check_aside(x));
    return arena_check(x->arena, x->err);
}

/* Hands a step to a device that need not be waited for, or runs it. *out_next: the one to go on with, which
 * is an earlier one where steps that were queued have to be run. */
static FALLIBLE run_or_queue(struct exec *x, const struct run_devices *devices, u32 step_no,
                             const struct step *step, bool streams, bool waits, u32 *out_next) {
    bool done = false;
    bool leaves = false;
    u32 again = NO_STEP;
    *out_next = step_no + 1;
    if (!streams && !waits) {
        TRY(queue_step(x, devices, step_no, step, &done));
    }
    if (!done && !streams && queue_is_open(x)) {
        TRY(queue_leaves(x, devices, step_no, step, &leaves));
    }
    if (!done && !leaves) {
        TRY(queue_settle(x, devices, step_no, step, &again));
    }
    if (done || again != NO_STEP) {
        *out_next = done ? step_no + 1 : again;
        return ERR_OK;
    }
    wf_status status = run_step(x, devices, step_no, step, streams);
    if (status && status != ERR_CANCELLED && queue_is_open(x)) { /* what is queued comes before it */
        *out_next = queue_drop(x, devices);
        error_reset(x->err);
        atomic_store_explicit(&x->fault, ~0ULL, memory_order_relaxed);
        return ERR_OK;
    }
    return status;
}

/* Interners live on: their strings may be referred to from anywhere. */
void release_after(struct exec *x, u32 step_no) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        if (x->program->vars[v].last_use == step_no && x->program->vars[v].kind != VAR_INTERN) {
            variable_reset(&x->vars[v]);
        }
    }
}

/* A variable and its indexes. */
static void empty_var(struct exec *x, u32 var) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        bool index = x->program->vars[v].kind == VAR_INDEX && x->program->vars[v].rows_var == var;
        if (index || v == var) {
            variable_reset(&x->vars[v]);
        }
    }
}

/* A loop that begins here has had no rounds. */
static void enter_block(struct exec *x, const struct block *block) {
    for (u32 i = 0; i < block->enter_count; i++) {
        const struct loop_var *v = &block->enter_vars[i];
        x->lits[v->lit].i64 = 0;
        for (u32 k = 0; k < v->fresh_count; k++) {
            empty_var(x, v->fresh[k]);
        }
    }
}

/* Whether the last round gave rows. */
static bool goes_round(const struct exec *x, const struct block *block) {
    bool any = false;
    for (u32 i = 0; i < block->loop_count; i++) {
        const struct loop_var *v = &block->loop_vars[i];
        any = any || x->vars[v->var].rows > x->lits[v->lit].i64;
    }
    return any;
}

/* A limit that is NULL is none. */
static bool has_enough(const struct exec *x, const struct block *block) {
    return block->stop_var && !lit_is_null(x, block->stop_lit) &&
           x->vars[block->stop_var - 1].rows >= lit_i64(x, block->stop_lit);
}

/* By block: the one + 1 that ends the innermost loop it is in; 0 = none. */
static u32 *loop_ends(struct exec *x) {
    const struct program *program = x->program;
    u32 *ends = NEW_ARRAY(x->arena, u32, program->block_count + 1);
    for (u32 end = 0; end < program->block_count; end++) {
        const struct block *block = &program->blocks[end];
        for (u32 b = block->loop; block->loop_count && b <= end; b++) {
            ends[b] = ends[b] ? ends[b] : end + 1;
        }
    }
    return ends;
}

/* The device that all pipelines of a loop would run on, all they read being brought there; 0: they
 * have none in common, or it runs only steps. */
static FALLIBLE rounds_device(struct exec *x, const struct run_devices *devices,
                              const struct rounds *r, u32 *out) {
    u32 number = 0;
    *out = 0;
    for (u32 s = 0; s < r->block->step_count; s++) {
        const struct step *step = &r->block->steps[s];
        struct chosen chosen;
        if (step->kind != STEP_PIPELINE) {
            continue;
        }
        TRY(choose_device(x, devices, r->first_step + s, step, &chosen));
        bool other = number && chosen.number != number;
        if (!chosen.number || chosen.shares || other || !devices->list[chosen.number]->rounds) {
            return ERR_OK;
        }
        number = chosen.number;
        x->metrics[r->first_step + s].why = chosen.why;
    }
    *out = number;
    return ERR_OK;
}

static FALLIBLE run_rounds_on(struct exec *x, const struct run_devices *devices, u32 number,
                              struct rounds *r) {
    struct device *device = devices->list[number];
    struct bring bring = {x, devices, device->space, ERR_OK, NULL};
    for (u32 s = 0; s < r->block->step_count; s++) {
        step_inputs(x->program, &r->block->steps[s], bring_one, &bring);
        TRY(bring.status);
        forget_outputs(&bring, &r->block->steps[s]);
    }
    i64 start = clock_ns();
    TRY(device->rounds(device, x, r));
    i64 ns = clock_ns() - start;
    u32 pipes = 0;
    auto_queued_rounds(x, devices, number, r, ns);
    for (u32 s = 0; s < r->block->step_count; s++) {
        pipes += r->block->steps[s].kind == STEP_PIPELINE;
    }
    for (u32 s = 0; r->count && s < r->block->step_count; s++) {
        struct step_metric *metric = &x->metrics[r->first_step + s];
        metric->device_no = number;
        metric->ns += r->block->steps[s].kind == STEP_PIPELINE ? ns / pipes : 0;
    }
    return ERR_OK;
}

/* Rounds that a device runs by itself. r->cannot: it need not be asked again. */
static FALLIBLE run_rounds(struct exec *x, const struct run_devices *devices, struct rounds *r) {
    const struct block *block = r->block;
    u32 number = 0;
    bool stops = block->stop_var && !lit_is_null(x, block->stop_lit);
    r->stop_rows = stops ? MAX_OF(lit_i64(x, block->stop_lit), 0) : -1;
    r->count = 0;
    r->fault = NULL;
    TRY(exec_check(x));
    TRY(rounds_device(x, devices, r, &number));
    if (!number) {
        return ERR_OK;
    }
    number = device_take(devices, number);
    wf_status status = run_rounds_on(x, devices, number, r);
    device_give(devices, number);
    TRY(status);
    if (r->count) {
        auto_went_round(x, block);
    }
    if (r->fault) {
        TRY(raise_fault(x, r->fault));
    }
    return arena_check(x->arena, x->err);
}

/* Rounds that a device ran by itself are one. */
static struct round_metric *rounds_begin(struct exec *x, const struct rounds *r) {
    struct round_metric *began = NEW_ARRAY(x->arena, struct round_metric, r->block->step_count + 1);
    for (u32 s = 0; began && s < r->block->step_count; s++) {
        round_begin(x, r->first_step + s, &r->block->steps[s], &began[s]);
    }
    return began;
}

static void rounds_end(struct exec *x, const struct rounds *r, i64 round,
                       struct round_metric *began) {
    for (u32 s = 0; r->count && began && s < r->block->step_count; s++) {
        round_end(x, &r->block->steps[s], round, &began[s]);
    }
}

/* What the interpreter keeps of a program's blocks. */
struct blocks {
    u32 *first_step; /* by block, and one behind the last */
    u32 *loop_end;   /* see loop_ends */
    i64 *rounds;
    u32 flows_from;
    bool loops, streams;
    struct trie_chain chain; /* what runs now, and is to be kept; none: it ends before any step */
    b8 waits;                /* it is run step by step, since a device is to keep it */
    struct trie_chain lent;  /* whose graph a device has, for the step behind it; none: as above */
    b8 not_lent;             /* one had no room for that */
};

static void blocks_open(struct exec *x, bool streams, struct blocks *out) {
    const struct program *program = x->program;
    *out = (struct blocks){.streams = streams, .flows_from = streams ? stream_first(program) : 0};
    out->first_step = NEW_ARRAY(x->arena, u32, program->block_count + 1);
    out->rounds = NEW_ARRAY(x->arena, i64, program->block_count + 1);
    out->loop_end = loop_ends(x);
    for (u32 b = 0; b < program->block_count; b++) {
        out->first_step[b + 1] = out->first_step[b] + program->blocks[b].step_count;
        out->loops = out->loops || program->blocks[b].loop_count;
    }
}

/* A step that need not run. */
static void note_not_run(struct exec *x, const struct run_devices *devices, u32 step_no, u32 number,
                         const char *why, const char *how) {
    x->metrics[step_no].why = why;
    x->metrics[step_no].device_no = number;
    x->metrics[step_no].device = devices->list[number]->name;
    x->metrics[step_no].how = how;
}

static void note_kept(struct exec *x, const struct run_devices *devices, const struct trie_chain *chain,
                      const struct chosen *chosen) {
    for (u32 s = chain->first; s < chain->end; s++) {
        note_not_run(x, devices, s, chosen->number, chosen->why, "not run: it was made before, and kept");
    }
}

/* Whether a device with memory of its own has it, and runs what needs it. */
static FALLIBLE find_far(struct exec *x, const struct run_devices *devices, struct blocks *r, const struct step *behind,
                         struct device *device, bool *out) {
    struct chosen next = {0};
    *out = device->take_kept(device, x, &r->chain);
    r->waits = !*out;
    if (!*out || r->chain.index != NO_VAR) {
        return ERR_OK;
    }
    TRY(choose_device(x, devices, r->chain.end, behind, &next));
    *out = !next.shares && devices->list[next.number]->space == device->space;
    if (*out) {
        r->lent = r->chain;
    } else {
        variable_reset(&x->vars[r->chain.rows]);
    }
    return ERR_OK;
}

/* Whether what this step and some behind it make is kept from an earlier statement: then they need not run. Else
 * r->chain says what is to be kept when they have. */
static FALLIBLE find_kept(struct exec *x, const struct run_devices *devices, struct blocks *r, u32 b,
                          u32 step_no, bool *out) {
    const struct block *block = &x->program->blocks[b];
    const struct step *step = &block->steps[step_no - r->first_step[b]];
    struct chosen chosen = {0};
    *out = false;
    if (!x->tries || x->whole || r->loop_end[b] || queue_is_open(x) || step_no < r->chain.end ||
        !trie_chain_at(x, block, r->first_step[b], step_no - r->first_step[b], &r->chain)) {
        return ERR_OK;
    }
    r->waits = 0;
    TRY(choose_device(x, devices, step_no, step, &chosen));
    struct device *device = devices->list[chosen.number];
    if (chosen.shares || (chosen.number && (!device->take_kept || r->not_lent))) {
        r->chain.end = 0;
    } else if (chosen.number) {
        TRY(find_far(x, devices, r, &block->steps[r->chain.end - r->first_step[b]], device, out));
    } else {
        *out = tries_take(x, &r->chain);
    }
    if (*out) {
        note_kept(x, devices, &r->chain, &chosen);
    }
    return ERR_OK;
}

/* Whether a provider has what this step would make for the next one, which runs on the host. */
static FALLIBLE find_levels(struct exec *x, const struct run_devices *devices, const struct blocks *r, u32 b,
                            u32 step_no, bool *out) {
    const struct block *block = &x->program->blocks[b];
    u32 step = step_no - r->first_step[b];
    struct chosen chosen = {0};
    *out = false;
    if (x->whole || r->loop_end[b] || queue_is_open(x) || !levels_fit(x, block, step)) {
        return ERR_OK;
    }
    TRY(choose_device(x, devices, step_no, &block->steps[step], &chosen));
    const char *why = chosen.why;
    levels_take(x, block, step);
    TRY(choose_device(x, devices, step_no + 1, &block->steps[step + 1], &chosen));
    *out = !chosen.number && !chosen.shares;
    if (*out) {
        note_not_run(x, devices, step_no, 0, why, "not run: the file has these rows in order");
    } else {
        variable_reset(&x->vars[block->steps[step + 1].src]);
    }
    return ERR_OK;
}

/* The last step of the chain has run. */
static void keep_made(struct exec *x, const struct run_devices *devices, const struct trie_chain *chain) {
    struct device *device = devices->list[x->metrics[chain->first].device_no];
    bool whole = true;
    for (u32 s = chain->first; s < chain->end; s++) {
        whole = whole && devices->list[x->metrics[s].device_no]->space == device->space &&
                !x->metrics[s].share_count;
    }
    if (whole && !device->space) {
        tries_keep(x, chain);
    } else if (whole && device->keep) {
        device->keep(device, x, chain);
    }
}

/* A device had no room for counting in a graph that it keeps: its edges are made anew. */
static void take_back(struct exec *x, struct blocks *r) {
    error_reset(x->err);
    variable_reset(&x->vars[r->lent.rows]);
    for (u32 s = r->lent.first; s < r->lent.end; s++) {
        x->metrics[s].how = NULL;
    }
    r->lent.end = 0;
    r->not_lent = 1;
}

/* Whether the answer is handed out while it is made. Rows of queued steps are waited for first: which
 * device runs a step depends on how many there are. *again: a step that has to run once more. */
static FALLIBLE may_flow(struct exec *x, const struct run_devices *devices, u32 step_no,
                         const struct step *step, bool *out, u32 *again) {
    TRY(stream_possible(x, devices, step_no, out));
    if (!*out || !queue_is_open(x)) {
        return ERR_OK;
    }
    TRY(queue_settle(x, devices, step_no, step, again));
    return *again == NO_STEP ? stream_possible(x, devices, step_no, out) : ERR_OK;
}

/* The steps of a block, once. */
static FALLIBLE run_steps(struct exec *x, const struct run_devices *devices, struct blocks *r, u32 b) {
    const struct block *block = &x->program->blocks[b];
    u32 end = r->first_step[b + 1];
    u32 next = r->first_step[b];
    while (next < end || queue_is_open(x)) {
        if (next == end) {
            u32 again = NO_STEP;
            TRY(queue_settle(x, devices, end, NULL, &again));
            next = again == NO_STEP ? end : again;
            continue;
        }
        u32 step_no = next;
        const struct step *step = &block->steps[step_no - r->first_step[b]];
        bool flows = r->streams && step_no >= r->flows_from;
        if (flows && !x->stream) {
            u32 again = NO_STEP;
            TRY(may_flow(x, devices, step_no, step, &flows, &again));
            if (again != NO_STEP) {
                next = again;
                continue;
            }
            r->streams = flows;
        }
        bool kept = false;
        TRY(find_kept(x, devices, r, b, step_no, &kept));
        if (kept) {
            next = r->chain.end;
            continue;
        }
        TRY(find_levels(x, devices, r, b, step_no, &kept));
        if (kept) {
            next = step_no + 1;
            continue;
        }
        struct round_metric began;
        round_begin(x, step_no, step, &began);
        bool waits = r->waits && step_no >= r->chain.first && step_no < r->chain.end;
        bool lent = r->lent.end && step_no == r->lent.end;
        wf_status status = run_or_queue(x, devices, step_no, step, flows, waits, &next);
        if (status == ERR_DEVICE_MEMORY && lent) {
            next = r->lent.first;
            r->chain.end = 0;
            take_back(x, r);
            continue;
        }
        TRY(status);
        if (r->loop_end[b]) {
            round_end(x, step, r->rounds[r->loop_end[b] - 1] + 1, &began);
        }
        if (r->chain.end == step_no + 1 && next == step_no + 1 && !queue_is_open(x)) {
            keep_made(x, devices, &r->chain);
        }
        /* A step of a loop may run again and need what it read before, and so do one that is still
         * running and those that were queued; the answer stays until exec_close. */
        if (!r->loops && !x->stream && !queue_is_open(x) && next == step_no + 1 &&
            step->kind != STEP_RESULT) {
            release_after(x, step_no);
        }
    }
    return ERR_OK;
}

static FALLIBLE run_blocks(struct exec *x, const struct run_devices *devices, bool streams) {
    const struct program *program = x->program;
    struct blocks r;
    work_plan(x);
    blocks_open(x, streams, &r);
    u32 b = program->block_count ? 0 : NO_VAR;
    bool again = false;
    struct rounds loop = {0};
    while (b != NO_VAR) {
        const struct block *block = &program->blocks[b];
        if (!again) {
            enter_block(x, block);
        }
        if (!again || loop.block != block) {
            loop = (struct rounds){.block = block, .first_step = r.first_step[b]};
            loop.cannot = !block->loop_count || block->loop != b || devices->count < 2;
        }
        if (!loop.cannot) {
            struct round_metric *began = rounds_begin(x, &loop);
            TRY(run_rounds(x, devices, &loop));
            r.rounds[b] += loop.count;
            x->rounds += loop.count;
            rounds_end(x, &loop, r.rounds[b], began);
        }
        if (loop.count && (!goes_round(x, block) || has_enough(x, block))) {
            auto_loop_ended(x, block, r.first_step[b], r.rounds[b]);
            past_went_round(x->past, b, r.rounds[b]);
            again = false;
            b = block->next;
            continue;
        }
        TRY(run_steps(x, devices, &r, b));
        again = goes_round(x, block) && !has_enough(x, block);
        r.rounds[b]++;
        x->rounds += block->loop_count > 0;
        if (!again && block->loop_count) {
            auto_loop_ended(x, block, r.first_step[b], r.rounds[b]);
            past_went_round(x->past, b, r.rounds[b]);
        }
        b = again ? block->loop : block->next;
    }
    return ERR_OK;
}

/* Nothing stays queued. */
static FALLIBLE run_all(struct exec *x, const struct run_devices *devices, bool streams) {
    i64 start = clock_ns();
    wf_status status = run_blocks(x, devices, streams);
    if (queue_is_open(x)) {
        (void)queue_drop(x, devices);
    }
    x->run_ns += clock_ns() - start;
    if (!status && !x->stream) {
        auto_ended(x);
    }
    return status;
}

wf_status exec_run(struct exec *x, const struct run_devices *devices) {
    return run_all(x, devices, false);
}

wf_status exec_start(struct exec *x, const struct run_devices *devices, struct answer *out,
                     bool *out_end) {
    *out_end = true;
    TRY(run_all(x, devices, true));
    return x->stream ? exec_next(x, out, out_end) : exec_answer(x, out);
}

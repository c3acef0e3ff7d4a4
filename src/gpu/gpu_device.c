/* gpu_device.c: the CUDA device as the runtime sees it: what it refuses, what a step would cost,
 * running and fetching; CALL gpu_cache, EXPLAIN (CUDA). */
#include "gpu/gpu_int.h"
#include "codes/control.h"
#include "gpu/gpu_prim.h"

#include <stdio.h>
/* --- what the runtime calls --- */

#define ROWS_NUMBERED 0xffffffffLL /* row numbers have 32 bits */

static const char *refuses_plan(const struct gpu *g, struct exec *x, const struct gpu_step *step) {
    const struct gpu_plan *plan = &step->plan;
    if (step->refusal) {
        return arena_printf(x->arena, "%s", step->refusal);
    }
    if (atomic_load(&step->elsewhere)) {
        return gpu_refusal(x->arena, REFUSE_FORM, "");
    }
    for (i64 i = 0; i < plan->patterns.count; i++) {
        bool zone = x->program->lit_kinds[plan->patterns.items[i].lit] == KIND_I32;
        if (gpu_ahead_table(x, &plan->patterns.items[i]).len == 0) {
            return gpu_refusal(x->arena, zone ? REFUSE_ZONE : REFUSE_PATTERN, "");
        }
    }
    if (plan->woven_op && x->settings->gpu_code == CODE_VM) {
        return gpu_refusal(x->arena, REFUSE_CODE_VM, plan->woven_op);
    }
    if (plan->woven_op && !g->api->has_rtc) {
        return gpu_refusal(x->arena, REFUSE_COMPILER, plan->woven_op);
    }
    return NULL;
}

static const char *gpu_refuses(struct device *dev, struct exec *x, const struct step *step) {
    struct gpu *g = dev->self;
    if (step->kind == STEP_BUILD) {
        const struct var *rows = &x->program->vars[step->src];
        return rows->kinds[step->col] == KIND_I64 ? NULL : gpu_refusal(x->arena, REFUSE_KEY, "");
    }
    if (step_orders(step)) {
        return x->vars[step->src].rows < ROWS_NUMBERED ? NULL
                                                       : gpu_refusal(x->arena, REFUSE_ORDER, "");
    }
    if (step->kind == STEP_RANK && program_interner(x->program, step->dict) != NO_VAR) {
        return NULL;
    }
    if (step->kind != STEP_PIPELINE) {
        return gpu_refusal(x->arena, REFUSE_STEP, "");
    }
    struct gpu_step *kept = NULL;
    if (gpu_step_take(g->card, x, step->pipeline, &kept)) { /* whoever runs it finds out */
        error_reset(x->err);
        return NULL;
    }
    const char *refusal = refuses_plan(g, x, kept);
    gpu_step_give(g->card, kept);
    return refusal;
}

/* Whether this card holds it already. */
static bool is_here(const struct gpu *g, const struct variable *v) {
    return v->copy && v->copy_space == g->device.space;
}

/* Of the rows of a table, those that the execution reads. */
static i64 span_rows(const struct exec *x, i64 rows) {
    struct row_span span = exec_span(x, rows);
    return span.end - span.first;
}

/* Bytes of the source that a pipeline reads. */
static f64 source_bytes(struct gpu *g, const struct exec *x, const struct pipeline *pipe,
                        const struct gpu_plan *plan, const struct expected *vars) {
    f64 read = 0;
    const struct source *source = &pipe->source;
    i64 all = source->kind == SOURCE_TABLE ? x->versions[source->ref]->rows : 0;
    f64 share = all > 0 ? (f64)span_rows(x, all) / (f64)all : 1;
    for (u32 c = 0; c < source->col_count; c++) {
        if (plan->col_used[c] && source->kind == SOURCE_VAR) {
            const struct var *var = &x->program->vars[source->ref];
            read += (f64)vars[source->ref].rows * kind_bytes[var->kinds[source->cols[c]]];
        } else if (plan->col_used[c] && source->kind == SOURCE_TABLE) {
            read += share *
                    (f64)gpu_column_of(g->card, x->versions[source->ref], source->cols[c]).bytes;
        }
    }
    return read;
}

static i64 source_rows(const struct exec *x, const struct pipeline *pipe,
                       const struct expected *vars) {
    const struct source *source = &pipe->source;
    return source->kind == SOURCE_VAR     ? vars[source->ref].rows
           : source->kind == SOURCE_TABLE ? span_rows(x, x->versions[source->ref]->rows)
                                          : 0;
}

#define COMPILE_NS 3e8 /* in a hurry */

/* What a step that needs a woven kernel waits for: worth it for many rows only. A program is expected
 * to come as often again as it came so far, so its first runs may do without the card. */
static f64 compile_ns(const struct gpu *g, struct gpu_step *kept, f64 rows) {
    bool waits = kept->plan.woven_op || !g->card->codes.has_machine;
    i64 asked = 1 + atomic_fetch_add(&kept->asked, 1);
    if (!waits || atomic_load(&kept->has_code)) {
        return 0;
    }
    return rows < WEAVE_LEAST_ROWS ? 1e9 : COMPILE_NS / (f64)asked;
}

/* Lookups that the second-level cache does not serve. */
static f64 places_of(const struct gpu *g, const struct exec *x, const struct pipeline *pipe,
                     const struct expected *vars, f64 rows) {
    f64 places = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = gpu_op_looks_up(pipe, i) ? pipe->ops[i].imm : NO_VAR;
        i64 bytes = var == NO_VAR               ? 0
                    : is_here(g, &x->vars[var]) ? gpu_index_bytes(x->vars[var].copy)
                                                : vars[var].index_bytes;
        places += bytes > g->card->l2_bytes ? rows : 0;
    }
    return places;
}

/* What a step is expected to reach of the card's rates, and to need beside its kernels. */
#define KERNELS_REACH 0.8
#define STEP_LAUNCHES 4 /* and copies that are waited for like them */
#define STEP_HOST_NS 5000
#define QUEUED_LAUNCH_NS 2000 /* that nobody waits for */

/* A step of a program that ran before and has no loops is queued behind those before it, most likely. */
static bool expects_queue(const struct exec *x, const struct step *step) {
    bool pipe = step->kind == STEP_PIPELINE;
    bool sorts = step->kind == STEP_SORT;
    bool may = x->settings->gpu_queue > 0 &&
               (pipe || sorts || step->kind == STEP_BUILD || step->kind == STEP_LIMIT);
    for (u32 b = 0; may && b < x->program->block_count; b++) {
        may = !x->program->blocks[b].loop_count;
    }
    u32 made = pipe ? step->pipeline->sinks[0].var : sorts ? step->src : step->dst;
    return may && exec_expects(x, made) >= 0;
}

/* Where one could not be measured: those of a card of today. */
static struct device_rates usable_rates(struct device *dev, struct exec *x) {
    struct device_rates rates;
    gpu_rates(dev, x, &rates);
    rates.bytes_per_ns = rates.bytes_per_ns > 0 ? rates.bytes_per_ns : 1000;
    rates.probes_per_ns = rates.probes_per_ns > 0 ? rates.probes_per_ns : 10;
    rates.bus_bytes_per_ns = rates.bus_bytes_per_ns > 0 ? rates.bus_bytes_per_ns : 20;
    rates.launch_ns = rates.launch_ns > 0 ? rates.launch_ns : 7000;
    return rates;
}

/* A sort reads and writes a word and a row number per digit, then gathers all columns. */
#define SORT_DIGITS 8
#define SORT_ROW_BYTES 24

#define TEXT_WORDS 3 /* of a text */

#define WINDOW_ROW_BYTES 64 /* per function: sums, frames, the result */
#define FOLD_ROW_BYTES 48   /* keys, marks, numbers */
#define CLIQUE_ROW_BYTES 800 /* sorted, then looked at as often as a node has neighbours */

static f64 order_bytes(const struct exec *x, const struct step *step, f64 rows) {
    const struct var *def = &x->program->vars[step->src];
    f64 width = 0;
    for (u32 c = 0; c < def->col_count; c++) {
        width += kind_bytes[def->kinds[c]];
    }
    bool top = step->limit >= 0 && (f64)step->limit < rows / 4;
    f64 row = step->kind == STEP_FOLD    ? FOLD_ROW_BYTES
              : step->kind == STEP_CLIQUES ? CLIQUE_ROW_BYTES
              : step->kind == STEP_WINDOW ? width + WINDOW_ROW_BYTES * (1.0 + step->window_count)
              : step->kind == STEP_LIMIT ? 0
              : step->kind == STEP_SPLIT ? 2 * width + (f64)sizeof(i64)
              : top                      ? SORT_ROW_BYTES
                                         : 2 * width + SORT_DIGITS * SORT_ROW_BYTES;
    return rows * row;
}

/* An index is filled at places all over it, each read, exchanged and written. */
#define BUILD_ROW_PLACES 3

/* What its kernels take, and a compiler before them (NULL: nobody asks). */
static f64 kernels_ns(struct gpu *g, struct exec *x, const struct step *step, const struct expected *vars,
                      const struct device_rates *rates, f64 *out_compile_ns) {
    f64 read = 0;
    f64 places = 0;
    if (step->kind == STEP_BUILD) {
        f64 rows = (f64)vars[step->src].rows;
        read = rows * (f64)sizeof(i64);
        places = rows * BUILD_ROW_PLACES;
    } else if (step_orders(step)) {
        read = order_bytes(x, step, (f64)vars[step->src].rows);
    } else if (step->kind == STEP_RANK) {
        f64 rows = (f64)vars[program_interner(x->program, step->dict)].rows;
        read = rows * TEXT_WORDS * SORT_DIGITS * SORT_ROW_BYTES;
    } else {
        ASSERT(step->kind == STEP_PIPELINE);
        struct gpu_step *kept = NULL;
        if (gpu_step_take(g->card, x, step->pipeline, &kept)) { /* whoever runs it finds out */
            error_reset(x->err);
            return 0;
        }
        ASSERT(!kept->refusal); /* it was asked before whether it can run here */
        f64 rows = (f64)source_rows(x, step->pipeline, vars);
        if (out_compile_ns) {
            *out_compile_ns = compile_ns(g, kept, rows);
        }
        read = source_bytes(g, x, step->pipeline, &kept->plan, vars);
        places = places_of(g, x, step->pipeline, vars, rows);
        gpu_step_give(g->card, kept);
    }
    return read / (rates->bytes_per_ns * KERNELS_REACH) + places / (rates->probes_per_ns * KERNELS_REACH);
}

static f64 gpu_estimate(struct device *dev, struct exec *x, const struct step *step,
                        const struct expected *vars) {
    struct gpu *g = dev->self;
    struct device_rates rates = usable_rates(dev, x);
    bool queued = expects_queue(x, step);
    f64 compile = 0;
    f64 ns = STEP_HOST_NS +
             STEP_LAUNCHES * (queued ? MIN_OF(QUEUED_LAUNCH_NS, rates.launch_ns) : rates.launch_ns);
    ns += kernels_ns(g, x, step, vars, &rates, &compile);
    return ns + compile;
}

static bool gpu_queues(struct device *dev, struct exec *x, const struct block *block, u32 first_step) {
    return gpu_queues_loop(dev->self, x, block, first_step);
}

/* Its kernels, and the turn before them. */
static f64 gpu_round_ns(struct device *dev, struct exec *x, const struct step *step,
                        const struct expected *vars) {
    struct device_rates rates = usable_rates(dev, x);
    i32 launches = 1 + (step->kind == STEP_BUILD ? GROW_KERNELS : 1);
    return launches * MIN_OF(QUEUED_LAUNCH_NS, rates.launch_ns) +
           kernels_ns(dev->self, x, step, vars, &rates, NULL);
}

/* Registering memory with the driver, which the first copy from it does, costs about as much. */
#define PIN_NS_PER_BYTE 0.06

static void gpu_column(struct device *dev, const struct table_version *version, u32 col,
                       struct column_place *out) {
    struct gpu *g = dev->self;
    struct device_rates rates = usable_rates(dev, NULL);
    f64 ns = 1 / (rates.bus_bytes_per_ns * KERNELS_REACH) + PIN_NS_PER_BYTE;
    struct gpu_column column = gpu_column_of(g->card, version, col);
    *out =
        (struct column_place){column.bytes, column.missing_bytes, (f64)column.missing_bytes * ns};
}

static void gpu_lacks(struct device *dev, struct table_version *version, u32 col, f64 lost_ns) {
    struct gpu *g = dev->self;
    struct column_place place;
    gpu_column(dev, version, col, &place);
    gpu_column_lost(g->card, version, col, lost_ns, place.ns);
}

/* --- the text of a step before it runs --- */

#define EXPLAIN_SHARED_BYTES (227LL << 10) /* a block's most, of a card that is not asked */

/* The layout of the first tablet, or of the variable, stands for all. */
static void explain_cols(const struct exec *x, const struct gpu_plan *plan,
                         struct weave_col *cols) {
    const struct source *source = &plan->pipe->source;
    for (u32 c = 0; c < source->col_count; c++) {
        cols[c] = (struct weave_col){SEG_I64, NULLS_NONE};
        if (source->kind == SOURCE_TABLE && x->versions[source->ref]->tablet_count > 0) {
            const struct tablet *tablet = x->versions[source->ref]->tablets[0];
            cols[c] = gpu_segment_form(&tablet->cols[source->cols[c]], 1);
        } else if (source->kind == SOURCE_SERIES) {
            cols[c].form = SEG_SERIES;
        } else if (source->kind == SOURCE_VAR) {
            cols[c] = gpu_kind_form(x->program->vars[source->ref].kinds[source->cols[c]], false);
        }
    }
}

/* Right where no index is looked into. */
static void likely_text(struct exec *x, const struct gpu_plan *plan, struct text *out) {
    const struct pipeline *pipe = plan->pipe;
    struct weave_col *cols = NEW_ARRAY(x->arena, struct weave_col, pipe->source.col_count + 1);
    struct weave_index *indexes = NEW_ARRAY(x->arena, struct weave_index, plan->indexes.count + 1);
    explain_cols(x, plan, cols);
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (op_infos[op->code].roles[OPERAND_IMM] == ROLE_index) {
            indexes[plan->op_imm[i]] =
                (struct weave_index){KINDEX_RANK, op->code == OP_PROBE, 0, 1, {0}, 0, 0, 0, 1};
        }
    }
    struct weave weave = {.plan = plan,
                          .cols = cols,
                          .indexes = indexes,
                          .lists = 1,
                          .roomy = 1,
                          .pieces = gpu_weave_pieces(x, pipe)};
    const struct agg_room room = {.rows = pipe->source.rows,
                                  .memory_bytes = I64_MAX,
                                  .shared_max = EXPLAIN_SHARED_BYTES,
                                  .sharers = plan->agg_count,
                                  .in_runs = plan->agg_count == 1};
    for (u32 k = 0; k < plan->agg_count; k++) {
        struct agg_shape *shape = NEW(x->arena, struct agg_shape);
        gpu_agg_shape(x, plan, plan->aggs[k], &room, shape);
        gpu_agg_weave(shape, k, &weave);
    }
    gpu_weave_text(&weave, out);
}

/* A program's first step on a chip without a virtual machine: whatever of its texts can be known is
 * compiled side by side. What looks into an index has to wait for it. */
static FALLIBLE foresee(struct gpu *g, struct exec *x) {
    bool needs = !g->card->codes.has_machine && x->settings->gpu_code == CODE_AUTO;
    if (!needs || g->foreseen == x->program) {
        return ERR_OK;
    }
    g->foreseen = x->program;
    for (u32 b = 0; b < x->program->block_count; b++) {
        for (u32 s = 0; s < x->program->blocks[b].step_count; s++) {
            const struct step *step = &x->program->blocks[b].steps[s];
            struct gpu_plan plan;
            if (step->kind != STEP_PIPELINE || step->pipeline->source.kind != SOURCE_TABLE ||
                exec_provider(x, step->pipeline) ||
                gpu_plan_make(x->arena, x->program, step->pipeline, x->counts_rows, &plan) ||
                plan.indexes.count) {
                continue;
            }
            struct text text;
            text_init(&text, x->arena);
            likely_text(x, &plan, &text);
            TRY(arena_check(x->arena, x->err));
            gpu_woven_begin(g->card, &text);
        }
    }
    return ERR_OK;
}

/* --- running --- */

static FALLIBLE run_kind(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    TRY(foresee(g, x));
    if (step->kind == STEP_PIPELINE) {
        return gpu_run_pipeline(g, x, step_no, step);
    }
    if (step->kind == STEP_BUILD) {
        return gpu_run_build(g, x, step_no, step);
    }
    if (step->kind == STEP_SORT) {
        return gpu_run_sort(g, x, step_no, step);
    }
    if (step->kind == STEP_RANK) {
        return gpu_run_rank(g, x, step_no, step);
    }
    if (step->kind == STEP_WINDOW) {
        return gpu_run_window(g, x, step_no, step);
    }
    if (step->kind == STEP_LIMIT) {
        return gpu_run_limit(g, x, step_no, step);
    }
    if (step->kind == STEP_SPLIT) {
        return gpu_run_split(g, x, step_no, step);
    }
    if (step->kind == STEP_FOLD) {
        return gpu_run_fold(g, x, step_no, step);
    }
    if (step->kind == STEP_CLIQUES) {
        return gpu_run_cliques(g, x, step_no, step);
    }
    FAIL(x->err, NOT_SUPPORTED, "this step does not run on the GPU");
}

static FALLIBLE run_inside(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    (void)gpu_heap_mark(g->card);
    g->waits = 0;
    wf_status status = run_kind(g, x, step_no, step);
    x->metrics[step_no].waits += g->waits;
    x->metrics[step_no].device_peak = gpu_heap_mark(g->card);
    if (x->profiles) {
        x->metrics[step_no].kernel = gpu_widest_use(g);
    }
    return status;
}

/* Whether there is another way to run a step that the card has no room for. Where the device is
 * free to choose, the host is better than memory over the bus. */
static bool has_level(const struct exec *x, const struct step *step, enum gpu_tight tight) {
    bool table = step->kind == STEP_PIPELINE && step->pipeline->source.kind == SOURCE_TABLE;
    bool spills = step->kind == STEP_PIPELINE || step->kind == STEP_BUILD ||
                  step->kind == STEP_SORT || step->kind == STEP_SPLIT;
    bool named = setting_device(x->settings) != NULL;
    bool groups = false;
    for (u32 s = 0; step->kind == STEP_PIPELINE && s < step->pipeline->sink_count; s++) {
        groups = groups || step->pipeline->sinks[s].kind == SINK_AGG;
    }
    return tight == TIGHT_STREAM  ? table || step->kind == STEP_CLIQUES
           : tight == TIGHT_PART  ? named && groups
           : tight == TIGHT_SPILL ? named && spills
                                  : named && table;
}

/* What outlives the step lies on the card, or nowhere. */
static void drop_spilled(struct gpu *g) {
    struct gpu_block **kept[] = {&g->args_block, &g->slots[0], &g->rows[0]};
    for (i32 i = 0; i < COUNT_OF(kept); i++) {
        if (*kept[i] && (*kept[i])->host) {
            gpu_heap_free(g->card, *kept[i]);
            *kept[i] = NULL;
        }
    }
}

static FALLIBLE run_level(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                          enum gpu_tight tight) {
    g->tight = tight;
    g->pool = x->pool;
    g->spilled_bytes = g->packed_bytes = 0;
    wf_status status = run_inside(g, x, step_no, step);
    status = status ? status : gpu_bring_check(g, x->err);
    x->metrics[step_no].bytes_spilled = g->spilled_bytes;
    x->metrics[step_no].bytes_packed += g->packed_bytes;
    drop_spilled(g);
    g->tight = TIGHT_NOT;
    g->pool = NULL;
    return status;
}

/* What crossed the bus for nothing counts, too. */
static void begin_again(struct step_metric *metric, const struct step_metric *untouched) {
    struct step_metric spent = *metric;
    *metric = *untouched;
    metric->bytes_moved = spent.bytes_moved;
    metric->bytes_packed = spent.bytes_packed;
    metric->bytes_fetched = spent.bytes_fetched;
    metric->launches = spent.launches;
    metric->waits = spent.waits;
    metric->device_ns = spent.device_ns;
}

/* Memory that other workers' steps held may be all that was missing; else what the step needs has to
 * be less, or elsewhere. */
static FALLIBLE gpu_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step) {
    struct gpu *g = dev->self;
    struct step_metric untouched = x->metrics[step_no];
    TRY(gpu_enter(g, x->err));
    g->known = (struct gpu_known){0};
    g->may_spill = has_level(x, step, TIGHT_SPILL);
    wf_status status = run_level(g, x, step_no, step, TIGHT_NOT);
    bool company = gpu_leave(g);
    for (u32 tight = company ? TIGHT_NOT : TIGHT_STREAM;
         status == ERR_DEVICE_MEMORY && tight < TIGHT_COUNT; tight++) {
        if (tight == TIGHT_NOT || has_level(x, step, tight)) {
            begin_again(&x->metrics[step_no], &untouched);
            error_reset(x->err);
            TRY(company ? gpu_enter_alone(g, x->err) : gpu_enter(g, x->err));
            status = run_level(g, x, step_no, step, tight);
            company = gpu_leave(g) || company;
        }
    }
    return status;
}

static FALLIBLE gpu_rounds(struct device *dev, struct exec *x, struct rounds *r) {
    struct gpu *g = dev->self;
    wf_status entered = gpu_enter(g, x->err);
    if (entered == ERR_DEVICE_MEMORY) { /* a step at a time there may be another way */
        error_reset(x->err);
        r->cannot = 1;
        return ERR_OK;
    }
    TRY(entered);
    g->known = (struct gpu_known){0};
    g->may_spill = 0;
    g->pool = x->pool;
    wf_status status = gpu_run_loop(g, x, r);
    status = status ? status : gpu_bring_check(g, x->err);
    g->pool = NULL;
    gpu_leave(g);
    return status;
}

static FALLIBLE gpu_queue(struct device *dev, struct exec *x, u32 step_no, const struct step *step,
                          bool first, bool *out_done) {
    struct gpu *g = dev->self;
    *out_done = false;
    if (first) {
        TRY(gpu_enter(g, x->err));
    }
    wf_status status = first ? gpu_queue_open(g, x) : ERR_OK;
    status = status ? status : foresee(g, x);
    status = status ? status : gpu_queue_step(g, x, step_no, step, out_done);
    if (first && (status || !*out_done)) {
        gpu_wait(g);
        g->pool = NULL;
        gpu_leave(g);
    }
    return status;
}

static FALLIBLE gpu_want(struct device *dev, struct exec *x, u32 var) {
    return gpu_queue_want(dev->self, x, var);
}

static FALLIBLE gpu_settle(struct device *dev, struct exec *x, bool keep, bool *out_good) {
    struct gpu *g = dev->self;
    wf_status status = gpu_queue_settle(g, x, keep, out_good);
    gpu_leave(g);
    return status;
}

static FALLIBLE gpu_fetch(struct device *dev, struct exec *x, u32 var) {
    struct gpu *g = dev->self;
    TRY(gpu_enter(g, x->err));
    g->waits = 0;
    wf_status status = gpu_var_fetch(g, x, var);
    if (status == ERR_DEVICE_MEMORY) { /* nobody else has these rows */
        gpu_wait(g);
        error_reset(x->err);
        status = gpu_var_fetch(g, x, var);
    }
    x->fetch_waits += g->waits;
    if (status) {
        gpu_wait(g);
    }
    gpu_leave(g);
    return status;
}

static FALLIBLE gpu_fetch_texts(struct device *dev, struct exec *x, u32 var, const i32 *codes,
                                i64 count, bool *out_done) {
    struct gpu *g = dev->self;
    *out_done = gpu_has_fetch(g->card);
    if (!*out_done) {
        return ERR_OK;
    }
    TRY(gpu_enter(g, x->err));
    g->waits = 0;
    wf_status status = gpu_intern_show(g, x, var, codes, count);
    x->fetch_waits += g->waits;
    if (status) {
        gpu_wait(g);
    }
    gpu_leave(g);
    if (status == ERR_DEVICE_MEMORY) {
        error_reset(x->err);
        *out_done = false;
        return ERR_OK;
    }
    return status;
}

static void gpu_close(struct device *dev) {
    gpu_worker_close(dev->self);
}

/* --- opening --- */

i32 gpu_count(char why[300]) {
    const struct cu_api *api = cu_api_load(why);
    if (!api) {
        return 0;
    }
    int count = 0;
    int code = api->init(0);
    code = code ? code : api->device_count(&count);
    if (code != CU_OK) {
        const char *name = NULL;
        bool named = api->error_name(code, &name) == CU_OK && name;
        snprintf(why, 300, "the CUDA driver does not start: error %d (%.100s)", code,
                 named ? name : "unknown error");
    } else if (count < 1) {
        snprintf(why, 300, "the driver finds no GPU");
    }
    return code == CU_OK ? count : 0;
}

static struct device *device_of(struct gpu *g) {
    if (!g) {
        return NULL;
    }
    g->device = (struct device){.name = "gpu",
                                .title = "GPU",
                                .space = g->card->space,
                                .near_bytes = g->card->l2_bytes,
                                .room_bytes = g->card->heap.budget_bytes,
                                .self = g,
                                .prims = &gpu_prims,
                                .refuses = gpu_refuses,
                                .estimate_ns = gpu_estimate,
                                .column = gpu_column,
                                .lacks = gpu_lacks,
                                .run = gpu_run,
                                .rounds = gpu_rounds,
                                .queues = gpu_queues,
                                .round_ns = gpu_round_ns,
                                .queue = gpu_queue,
                                .want = gpu_want,
                                .settle = gpu_settle,
                                .take_kept = gpu_take_kept,
                                .keep = gpu_keep,
                                .fetch = gpu_fetch,
                                .fetch_texts = gpu_fetch_texts,
                                .rates = gpu_rates,
                                .close = gpu_close};
    return &g->device;
}

struct device *gpu_device_open(struct memory *host_mem, i64 budget_bytes, i32 number,
                               char why[300]) {
    return device_of(gpu_card_open(host_mem, budget_bytes, number, why));
}

struct device *gpu_device_share(const struct device *gpu, char why[300]) {
    const struct gpu *g = gpu->self;
    return device_of(gpu_worker_open(g->card, false, why));
}

/* --- CALL gpu_cache, EXPLAIN (CUDA) --- */

wf_status gpu_cache_table(struct device *dev, struct table *table, struct table_version *version,
                          struct error *err) {
    struct gpu *g = dev->self;
    i64 moved = 0;
    TRY(gpu_enter(g, err));
    wf_status status = ERR_OK;
    for (i64 t = 0; !status && t < version->tablet_count; t++) {
        for (u32 c = 0; !status && c < table->col_count; c++) {
            struct cached *cached = NULL;
            status = gpu_cache_load(g, version->tablets[t], c, version->tablet_rows[t], &cached,
                                    &moved, err);
        }
    }
    int code = gpu_sync(g, g->streams[0]);
    status = status ? status : gpu_check(g->card, code, "stream_synchronize", err);
    gpu_leave(g);
    return status;
}

static void explain_step(struct exec *x, const struct step *step, struct text *out) {
    struct gpu_plan plan;
    const char *refusal =
        gpu_plan_make(x->arena, x->program, step->pipeline, x->counts_rows, &plan);
    if (refusal) {
        text_print(out, "/* not on the GPU: %s */\n", refusal);
    } else {
        likely_text(x, &plan, out);
    }
}

wf_status gpu_explain_cuda(struct device *dev, struct exec *x, struct text *out,
                           struct error *err) {
    UNUSED(dev);
    u32 step_no = 0;
    for (u32 b = 0; b < x->program->block_count; b++) {
        for (u32 s = 0; s < x->program->blocks[b].step_count; s++, step_no++) {
            const struct step *step = &x->program->blocks[b].steps[s];
            if (step->kind == STEP_PIPELINE) {
                text_print(out, "/* step %u: %s */\n", step_no, step->label ? step->label : "");
                explain_step(x, step, out);
                text_print(out, "\n");
            }
        }
    }
    return arena_check(x->arena, err);
}

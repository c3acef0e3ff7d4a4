/* device.c: the CPU as a device: which loops it uses, what it would cost, how it runs a step.
 *
 * It refuses nothing: whatever a program can say runs here. Estimates are rough on purpose; they
 * only have to tell a step worth a transfer from one that is not. */
#include "cpu/boxes.h"
#include "cpu/cpu_int.h"
#include "cpu/cut.h"

#include "codes/control.h"

#include <stdlib.h>

static const char *cpu_refuses(struct device *dev, struct exec *x, const struct step *step) {
    UNUSED(dev);
    UNUSED(x);
    UNUSED(step);
    return NULL;
}

static i64 source_rows(const struct exec *x, const struct pipeline *pipe,
                       const struct expected *vars) {
    const struct source *source = &pipe->source;
    i64 first;
    i64 end;
    switch (source->kind) {
    case SOURCE_TABLE:
        if (exec_provider(x, pipe)) {
            return source->rows;
        }
        exec_row_range(x, pipe, &first, &end);
        return end - first;
    case SOURCE_VAR:
        return vars[source->ref].rows;
    case SOURCE_DICT:
        return x->dict_lens[source->ref];
    case SOURCE_SERIES:
        return source->rows;
    default:
        return 1;
    }
}

/* What one row costs, all rows active: units of op.def, and places looked up in memory. */
struct row_cost {
    f64 units, probes;
};

/* An index that stays in a cache costs less than a look into memory. */
static void add_index(struct row_cost *cost, i64 bytes) {
    if (bytes <= 1 << 20) {
        cost->units += 20;
    } else {
        cost->probes += bytes <= 32 << 20 ? 0.25 : 1;
    }
}

static struct row_cost row_cost(const struct pipeline *pipe, const struct expected *vars) {
    struct row_cost cost = {2, 0};
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        switch (op->code) {
        case OP_PROBE:
        case OP_EACH:
        case OP_MATCH:
        case OP_RUN:
            add_index(&cost, vars[op->imm].index_bytes);
            break;
        case OP_LUT:
        case OP_LOADV:
            cost.units += 10;
            break;
        case OP_INTERN:
        case OP_INTERN2:
            cost.probes += 2;
            break;
        default:
            cost.units += op_infos[op->code].cost;
            break;
        }
    }
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        bool hashed =
            sink->kind == SINK_AGG && sink->key != NO_REG && sink->key_bits > 12 && !sink->in_runs;
        cost.probes += hashed;
        cost.units += hashed                   ? 0
                      : sink->kind == SINK_AGG ? 5.0 * sink->word_count
                                               : 5.0 * sink->col_count;
    }
    return cost;
}

/* A step reaches about half of what loops that do nothing else reach. */
#define STEPS_REACH 0.5
#define PIPE_NS 15e3 /* to prepare a pipeline and a worker's vectors */
#define STEP_NS 3e3  /* any other step */

/* Bytes that an index sets aside for the span of its keys: about as index_build.c and index_hash.c do,
 * ranks, or a bitmap before a hash table. */
static f64 span_bytes(const struct step *step, f64 rows) {
    f64 span = (f64)step->key_range.hi - (f64)step->key_range.lo + 1;
    f64 most = rows < 4096 ? 1 << 24 : 1 << 26;
    return span < MAX_OF(64 * rows, 1 << 20) ? span / 4 : span < most ? span / 8 : 0;
}
#define CLEARED_PER_NS 4.0 /* bytes: their pages are new */

/* Of all workers, those that have a morsel to do. */
static f64 busy_part(const struct exec *x, f64 rows, f64 workers) {
    f64 morsels = rows / (f64)MAX_OF(x->settings->morsel_rows, 1) + 1;
    return MIN_OF(morsels, workers) / workers;
}

static f64 expected_rows(const struct exec *x, const struct step *step,
                         const struct expected *vars) {
    return step->kind == STEP_PIPELINE ? (f64)source_rows(x, step->pipeline, vars)
           : step->kind == STEP_RANK   ? (f64)x->dict_lens[step->dict]
                                       : (f64)vars[step->src].rows;
}

static f64 cpu_estimate_ns(struct device *dev, struct exec *x, const struct step *step,
                           const struct expected *vars) {
    struct device_rates rates;
    f64 workers = x->pool ? (f64)pool_worker_count(x->pool) : 1;
    f64 rows = expected_rows(x, step, vars);
    f64 reach = STEPS_REACH * busy_part(x, rows, workers);
    cpu_rates(dev, x, &rates);
    f64 units_per_ns = reach * (rates.cost_per_ns > 0 ? rates.cost_per_ns : 20 * workers);
    f64 probes_per_ns = reach * (rates.probes_per_ns > 0 ? rates.probes_per_ns : 0.1 * workers);
    if (step->kind == STEP_PIPELINE) {
        struct row_cost cost = row_cost(step->pipeline, vars);
        return PIPE_NS + rows * (cost.units / units_per_ns + cost.probes / probes_per_ns);
    }
    if (step->kind == STEP_SPLIT) {
        return 0;
    }
    f64 cleared = step->kind == STEP_BUILD ? span_bytes(step, rows) : 0;
    return STEP_NS + cleared / CLEARED_PER_NS +
           rows * (step->kind == STEP_SORT ? 4 : 1) / probes_per_ns;
}

static i64 row_bytes(const struct exec *x, u32 var) {
    i64 bytes = 0;
    for (u32 c = 0; c < x->program->vars[var].col_count; c++) {
        bytes += kind_bytes[x->program->vars[var].kinds[c]];
    }
    return bytes;
}

static FALLIBLE step_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step) {
    struct step_metric *metric = &x->metrics[step_no];
    i64 rows = 0;
    switch (step->kind) {
    case STEP_PIPELINE:
        return stages_run(dev, x, step_no, step);
    case STEP_BUILD:
        rows = x->vars[step->src].rows;
        if (step->grow && x->vars[step->dst].index) {
            rows -= x->vars[step->dst].rows;
        }
        metric->rows_in += rows;
        TRY(x->program->vars[step->dst].set ? set_build(x, step)
            : step->grow                    ? index_grow(x, step)
                                            : index_build(x, step));
        metric->rows_out += step->grow ? rows : x->vars[step->dst].index->row_count;
        metric->bytes_read += rows * (i64)sizeof(i64);
        metric->probes += rows;
        return ERR_OK;
    case STEP_SORT:
        metric->rows_in += x->vars[step->src].rows;
        metric->bytes_read += x->vars[step->src].rows * row_bytes(x, step->src);
        TRY(sort_run(x, step_no, step));
        metric->rows_out += x->vars[step->src].rows;
        metric->bytes_written += x->vars[step->src].rows * row_bytes(x, step->src);
        return ERR_OK;
    case STEP_SPLIT: /* builds and aggregations of the CPU partition by themselves */
        metric->rows_in += x->vars[step->src].rows;
        metric->rows_out += x->vars[step->src].rows;
        return ERR_OK;
    case STEP_WINDOW:
        metric->rows_in += x->vars[step->src].rows;
        TRY(window_run(x, step));
        metric->rows_out += x->vars[step->dst].rows;
        return ERR_OK;
    case STEP_FOLD:
        metric->rows_in += x->vars[step->src].rows;
        TRY(fold_run(x, step));
        metric->rows_out += x->vars[step->dst].rows;
        return ERR_OK;
    case STEP_CLIQUES:
        metric->rows_in += x->vars[step->src].rows;
        TRY(boxes_wanted(x, step) ? boxes_run(x, step_no, step) : cliques_run(x, step));
        metric->rows_out += 1;
        return ERR_OK;
    case STEP_RANK:
        TRY(rank_run(x, step));
        metric->rows_in = metric->rows_out = x->vars[step->dst].rows;
        return ERR_OK;
    default:
        FAIL(x->err, INTERNAL, "step kind %d is not a device's", step->kind);
    }
}

/* A step of a loop may run a million times: what it needs to run is given back. */
static FALLIBLE cpu_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step) {
    struct arena *arena = x->arena;
    struct arena *keep = x->keep;
    struct arena own;
    arena_init(&own, x->mem);
    x->keep = exec_arena(x);
    x->arena = &own;
    wf_status status = step_run(dev, x, step_no, step);
    status = status ? status : arena_check(&own, x->err);
    x->arena = arena;
    x->keep = keep;
    arena_fini(&own);
    return status ? status : arena_check(exec_arena(x), x->err);
}

static FALLIBLE cpu_fetch(struct device *dev, struct exec *x, u32 var) {
    UNUSED(dev);
    UNUSED(x);
    UNUSED(var);
    return ERR_OK; /* everything the CPU makes is on the host */
}

static void cpu_close(struct device *dev) {
    struct cpu_device *cpu = dev->self;
    mutex_fini(&cpu->lock);
    free(cpu);
}

struct device *cpu_device_open(void) {
    struct cpu_device *cpu = calloc(1, sizeof *cpu);
    CHECK(cpu != NULL);
    cpu->dev = (struct device){.name = "cpu",
                               .title = "CPU",
                               .self = cpu,
                               .prims = &cpu_prims,
                               .refuses = cpu_refuses,
                               .estimate_ns = cpu_estimate_ns,
                               .run = cpu_run,
                               .slices_open = cpu_slices_open,
                               .slices_next = cpu_slices_next,
                               .slices_close = cpu_slices_close,
                               .fetch = cpu_fetch,
                               .rates = cpu_rates,
                               .close = cpu_close};
    mutex_init(&cpu->lock);
    cpu->vec = vec_table_best();
    return &cpu->dev;
}

/* work.c: how far a program is, for progress reports.
 *
 * Steps cost about so much a row; how many rows later steps get is the lowerer's estimate, until
 * they begin and it is known. So the share done may jump when an estimate was wrong, but it moves
 * within every step: devices count rows as they go (work_rows), and steps that read their rows
 * several times say how often (work_expect). */
#include "run/run_int.h"

#include "codes/control.h"

static i64 unit_cost(const struct exec *x, const struct step *step) {
    switch (step->kind) {
    case STEP_PIPELINE:
        return 4 + step->pipeline->op_count;
    case STEP_SORT:
        return 60;
    case STEP_BUILD:
        return 20;
    case STEP_WINDOW:
        return 40;
    case STEP_CLIQUES:
        return 400;
    case STEP_RESULT:
        return x->work.answer_cost;
    case STEP_LIMIT:
        return 0;
    default:
        return 8;
    }
}

i64 step_reads_rows(const struct exec *x, const struct step *step, const i64 *rows) {
    if (step->kind != STEP_PIPELINE) {
        bool known = step->src < x->program->var_count;
        return !known ? 0 : rows ? rows[step->src] : x->vars[step->src].rows;
    }
    const struct source *source = &step->pipeline->source;
    switch (source->kind) {
    case SOURCE_TABLE:
        return exec_provider(x, step->pipeline) ? MAX_OF(source->rows, 1)
                                                : x->versions[source->ref]->rows;
    case SOURCE_VAR:
        return rows ? rows[source->ref] : x->vars[source->ref].rows;
    default:
        return MAX_OF(source->rows, 1);
    }
}

static i64 cost_of(const struct exec *x, const struct step *step, i64 rows) {
    i64 cost = 0;
    return __builtin_mul_overflow(rows, unit_cost(x, step), &cost) || cost > I64_MAX >> 20
               ? I64_MAX >> 20
               : cost;
}

/* As many as an earlier run left, or as lowering estimated; else those of `read`. */
static i64 rows_made(const struct exec *x, u32 var, i64 read, bool multiplies) {
    i64 before = past_rows_uncut(x->past, var);
    i64 estimate = x->program->vars[var].rows;
    return before >= 0                       ? before
           : estimate > 0 && estimate < read ? estimate
           : estimate > 0 && multiplies      ? estimate
                                             : read;
}

void step_makes_rows(const struct exec *x, const struct step *step, i64 read, i64 *rows) {
    const struct pipeline *pipe = step->pipeline;
    bool joins = false;
    for (u32 i = 0; pipe && i < pipe->op_count; i++) {
        joins = joins || pipe->ops[i].code == OP_MATCH || pipe->ops[i].code == OP_EACH ||
                pipe->ops[i].code == OP_MEET;
    }
    for (u32 s = 0; pipe && s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        bool groups = sink->kind == SINK_AGG && sink->groups > 0;
        bool few = sink->kind == SINK_ROWS && sink->limit >= 0;
        i64 most = groups ? MIN_OF(read, sink->groups) : few ? MIN_OF(read, sink->limit) : read;
        if (sink->var < x->program->var_count) {
            rows[sink->var] = rows_made(x, sink->var, most, joins && !groups && !few);
        }
    }
    if (step->kind == STEP_SORT && step->limit >= 0) {
        i64 before = past_rows(x->past, step->src);
        rows[step->src] = MIN_OF(read, before >= 0 ? before : step->limit);
    } else if (!pipe && step->dst < x->program->var_count) {
        i64 most = step->kind == STEP_LIMIT && step->limit >= 0 ? MIN_OF(read, step->limit) : read;
        rows[step->dst] = rows_made(x, step->dst, most, false);
    }
}

void work_plan(struct exec *x) {
    const struct program *program = x->program;
    i64 *rows = NEW_ARRAY(x->arena, i64, program->var_count + 1);
    u32 count = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        count += program->blocks[b].step_count;
    }
    x->work.later = NEW_ARRAY(x->arena, i64, count + 1);
    for (u32 b = 0, no = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            const struct step *step = &program->blocks[b].steps[s];
            i64 read = step_reads_rows(x, step, rows);
            x->work.later[no] = cost_of(x, step, read);
            step_makes_rows(x, step, read, rows);
        }
    }
    for (u32 no = count; no-- > 0;) { /* what comes behind each step */
        x->work.later[no] += no + 1 < count ? x->work.later[no + 1] : 0;
    }
    atomic_store(&x->work.after, x->work.later[0]);
}

void work_begin(struct exec *x, u32 step_no, const struct step *step, bool streams) {
    struct work *w = &x->work;
    i64 rows = step_reads_rows(x, step, NULL);
    if (streams && x->stream) { /* another branch of the same answer */
        atomic_fetch_add(&w->rows_total, rows);
        return;
    }
    i64 after = w->later[step_no + 1];
    bool known = step->kind == STEP_PIPELINE || step->kind == STEP_RESULT || streams;
    atomic_store(&w->rows, 0);
    atomic_store(&w->rows_total, known ? rows : 0);
    atomic_store(&w->step, cost_of(x, step, rows) + (streams ? after : 0));
    atomic_store(&w->after, streams ? 0 : after);
}

void work_end(struct exec *x) {
    struct work *w = &x->work;
    atomic_fetch_add(&w->before, atomic_exchange(&w->step, 0));
    atomic_store(&w->rows_total, 0);
}

f64 work_share(const struct work *w) {
    f64 before = (f64)atomic_load_explicit(&w->before, memory_order_relaxed);
    f64 step = (f64)atomic_load_explicit(&w->step, memory_order_relaxed);
    f64 after = (f64)atomic_load_explicit(&w->after, memory_order_relaxed);
    f64 rows = (f64)atomic_load_explicit(&w->rows, memory_order_relaxed);
    f64 of = (f64)atomic_load_explicit(&w->rows_total, memory_order_relaxed);
    f64 part = of > 0 ? MIN_OF(rows / of, 1) : 0;
    f64 all = before + step + after;
    ASSERT(before >= 0 && step >= 0 && after >= 0 && part >= 0);
    return all > 0 ? (before + step * part) / all : -1;
}

/* sink_mark.c: one byte a row of another variable: whether some row of this pipeline named it.
 *
 * Full joins use it to find the rows of the build side that nobody matched. All workers store the
 * same 1 into the same bytes, so relaxed stores suffice; whoever reads comes after the pipeline. */
#include "cpu/cpu_int.h"

static FALLIBLE mark_begin(struct pipe_run *run, struct sink_run *sink) {
    struct exec *x = run->x;
    const struct sink *def = sink->sink;
    i64 rows = x->vars[def->rows_var].rows;
    variable_reset(&x->vars[def->var]);
    struct chunk *chunk = chunk_new(x, &x->program->vars[def->var], rows, false);
    if (!chunk) {
        return memory_refused(x->mem, x->err, rows);
    }
    memset(chunk->cols[0].data, 0, (size_t)rows);
    variable_append(x, def->var, chunk);
    sink->state = chunk->cols[0].data;
    return ERR_OK;
}

static FALLIBLE mark_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    const struct sink_run *sink = &w->run->sinks[sink_no];
    const i64 *row = frame_read(w, fr, sink->sink->key);
    _Atomic u8 *marks = sink->state;
    for (i64 j = 0; j < fr->m; j++) {
        i64 at = row[ACTIVE(fr, j)];
        if (at >= 0) {
            atomic_store_explicit(&marks[at], 1, memory_order_relaxed);
        }
    }
    return ERR_OK;
}

const struct sink_class sink_mark = {.begin = mark_begin, .consume = mark_consume};

/* sink_mark.c: one byte a row of another variable: whether some row of this pipeline named it.
 *
 * Full joins use it to find the rows of the build side that nobody matched. All workers store the
 * same 1 into the same bytes, so relaxed stores suffice; whoever reads comes after the pipeline. Where
 * memory holds a class of the rows at a time, their numbers are those of the class; marks lie as all
 * rows do, so those of a class lie side by side. */
#include "cpu/cpu_int.h"

struct marks {
    _Atomic u8 *at;
    const struct index *index; /* that has classes of the rows; NULL = there is none */
};

static const struct index *classes_of(const struct exec *x, u32 rows_var) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        const struct var *var = &x->program->vars[v];
        const struct index *index =
            var->kind == VAR_INDEX && var->rows_var == rows_var ? x->vars[v].index : NULL;
        if (index && index->class_bits) {
            return index;
        }
    }
    return NULL;
}

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
    struct marks *marks = NEW(x->arena, struct marks);
    *marks = (struct marks){chunk->cols[0].data, classes_of(x, def->rows_var)};
    sink->state = marks;
    return ERR_OK;
}

static FALLIBLE mark_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    const struct sink_run *sink = &w->run->sinks[sink_no];
    const i64 *row = frame_read(w, fr, sink->sink->key);
    const struct marks *marks = sink->state;
    const struct index *index = marks->index;
    i64 first = index ? index->class_starts[index->class_no] : 0;
    for (i64 j = 0; j < fr->m; j++) {
        i64 at = row[ACTIVE(fr, j)];
        if (at >= 0) {
            atomic_store_explicit(&marks->at[first + at], 1, memory_order_relaxed);
        }
    }
    return ERR_OK;
}

const struct sink_class sink_mark = {.begin = mark_begin, .consume = mark_consume};

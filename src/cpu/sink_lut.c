/* sink_lut.c: fills a lookup table by dictionary code.
 *
 * The source is a dictionary, so the row number is the code. A row's fault is stored beside its
 * value and raised by whoever looks the code up, as an entry that no row uses must not fail the
 * statement. */
#include "cpu/cpu_int.h"

static FALLIBLE open_table(struct pipe_run *run, u32 var, u8 kind, i64 len) {
    struct exec *x = run->x;
    struct variable *v = &x->vars[var];
    variable_reset(v);
    v->lut_bytes = MAX_OF(len, 1) * kind_bytes[kind];
    v->lut = mem_alloc(x->mem, v->lut_bytes);
    if (!v->lut) {
        return memory_refused(x->mem, x->err, v->lut_bytes);
    }
    memset(v->lut, 0, (size_t)v->lut_bytes);
    v->lut_len = len;
    v->rows = len;
    v->on_host = 1;
    return ERR_OK;
}

static FALLIBLE lut_begin(struct pipe_run *run, struct sink_run *sink) {
    const struct sink *def = sink->sink;
    const struct source *source = &run->pipe.pipe->source;
    ASSERT(source->kind == SOURCE_DICT);
    i64 len = run->x->dict_lens[source->ref];
    TRY(open_table(run, def->var, run->pipe.pipe->regs[def->cols[0].reg].kind, len));
    if (def->null_var != NO_VAR) {
        TRY(open_table(run, def->null_var, KIND_B8, len));
    }
    if (def->fault_var != NO_VAR) {
        TRY(open_table(run, def->fault_var, KIND_B8, len));
    }
    return ERR_OK;
}

/* Made strings move to memory that lives as long as the execution. */
static void keep_string(struct worker *w, str *s) {
    struct exec *x = w->run->x;
    mutex_lock(&x->lock);
    struct sv copy = arena_sv(exec_arena(x), sv_of(*s));
    mutex_unlock(&x->lock);
    *s = str_from(copy);
}

static FALLIBLE lut_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    const struct sink_col *col = &sink->cols[0];
    struct variable *vars = w->run->x->vars;
    i64 bytes = 1LL << w->run->pipe.width[col->reg];
    const u8 *values = frame_read(w, fr, col->reg);
    const b8 *nulls = col->null_reg != NO_REG ? frame_read(w, fr, col->null_reg) : NULL;
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        i64 code = ROW_AT(fr, i);
        u8 fault = w->run->pipe.keeps_faults ? fr->kept[i] : 0;
        b8 is_null = nulls ? nulls[i] : 0;
        if (sink->fault_var != NO_VAR) {
            ((b8 *)vars[sink->fault_var].lut)[code] = fault;
        }
        if (sink->null_var != NO_VAR) {
            ((b8 *)vars[sink->null_var].lut)[code] = is_null;
        }
        u8 *to = (u8 *)vars[sink->var].lut + code * bytes;
        if (fault == 0 && !is_null) {
            memcpy(to, values + (i64)i * bytes, (size_t)bytes);
            if (w->run->pipe.made[col->reg]) {
                keep_string(w, (str *)(void *)to);
            }
        }
    }
    return ERR_OK;
}

const struct sink_class sink_lut = {.begin = lut_begin, .consume = lut_consume};

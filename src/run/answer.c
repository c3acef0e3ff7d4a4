/* answer.c: what a run leaves behind: the rows of the result.
 *
 * OFFSET and LIMIT never copy rows: the answer is a list of slices of chunks, and a limited
 * variable shares the buffers of the one it was cut from. */
#include "run/run_int.h"

const struct step *result_step(const struct program *program) {
    const struct step *found = NULL;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            const struct step *step = &program->blocks[b].steps[s];
            found = step->kind == STEP_RESULT ? step : found;
        }
    }
    return found;
}

i64 lit_i64(const struct exec *x, u32 lit) {
    switch (x->program->lit_kinds[lit]) {
    case KIND_I32:
        return x->lits[lit].i32;
    case KIND_I128:
        return (i64)MIN_OF(MAX_OF(x->lits[lit].i128, I64_MIN), I64_MAX);
    default:
        return x->lits[lit].i64;
    }
}

/* LIMIT NULL and OFFSET NULL, given as parameters, mean neither. */
bool lit_is_null(const struct exec *x, u32 lit) {
    const struct program *program = x->program;
    for (u32 i = 0; program->param_null_lits && i < program->param_count; i++) {
        u32 flag = program->param_null_lits[i];
        if (program->param_lits[i] == lit && flag != NO_LIT) {
            return x->lits[flag].b8 != 0;
        }
    }
    return false;
}

wf_status step_bounds(struct exec *x, const struct step *step, i64 *offset, i64 *limit) {
    *offset = MAX_OF(step->offset, 0);
    *limit = step->limit;
    if (step->offset_lit != NO_LIT && !lit_is_null(x, step->offset_lit)) {
        *offset = lit_i64(x, step->offset_lit);
        if (*offset < 0) {
            FAIL(x->err, INVALID_OFFSET, "OFFSET must not be negative");
        }
    }
    if (step->limit_lit != NO_LIT && !lit_is_null(x, step->limit_lit)) {
        *limit = lit_i64(x, step->limit_lit);
        if (*limit < 0) {
            FAIL(x->err, INVALID_LIMIT, "LIMIT must not be negative");
        }
    }
    return ERR_OK;
}

wf_status exec_frame_offset(const struct exec *x, u32 lit, u8 bound, i64 *out, struct error *err) {
    *out = 0;
    if (lit == NO_LIT || (bound != BOUND_BEFORE && bound != BOUND_AFTER)) {
        return ERR_OK;
    }
    if (lit_is_null(x, lit)) {
        return error_set(err, ERR_NULL_NOT_ALLOWED, -1, "frame offset must not be null");
    }
    *out = x->program->lit_kinds[lit] == KIND_I32 ? x->lits[lit].i32 : x->lits[lit].i64;
    if (*out < 0) {
        return error_set(err, ERR_FRAME_OFFSET, -1, "frame offset must not be negative");
    }
    return ERR_OK;
}

wf_status exec_fold_fault(struct exec *x, const struct step *step, u8 fault, f64 share) {
    if (!fault) {
        return error_set(x->err, ERR_OUT_OF_RANGE, step->position,
                         "percentile value %g is not between 0 and 1", share);
    }
    return error_set(x->err, fault_error(fault), step->position, "%s", fault_message(fault));
}

static FALLIBLE cut(struct exec *x, const struct step *step, struct answer *out) {
    memset(out, 0, sizeof *out);
    i64 skip = 0;
    i64 left = -1;
    TRY(step_bounds(x, step, &skip, &left));
    const struct variable *var = &x->vars[step->src];
    i64 after_skip = MAX_OF(var->rows - skip, 0);
    left = left < 0 ? after_skip : MIN_OF(left, after_skip);
    out->rows = left;
    if (!var->on_host) {
        return ERR_OK;
    }
    out->slices = NEW_ARRAY(x->arena, struct slice, MAX_OF(var->chunks.count, 1));
    for (i64 i = 0; i < var->chunks.count && left > 0; i++) {
        const struct chunk *chunk = var->chunks.items[i];
        i64 first = MIN_OF(skip, chunk->rows);
        i64 rows = MIN_OF(chunk->rows - first, left);
        skip -= first;
        if (rows > 0) {
            out->slices[out->slice_count++] = (struct slice){chunk, first, rows};
            left -= rows;
        }
    }
    ASSERT(left == 0); /* the chunks of a variable hold its rows */
    return arena_check(x->arena, x->err);
}

wf_status exec_answer(struct exec *x, struct answer *out) {
    memset(out, 0, sizeof *out);
    const struct step *step = result_step(x->program);
    return step ? cut(x, step, out) : ERR_OK;
}

static struct chunk *slice_chunk(struct exec *x, const struct slice *slice) {
    const struct chunk *from = slice->chunk;
    struct chunk *to = chunk_view_new(x, from->col_count);
    for (u32 c = 0; to && c < from->col_count; c++) {
        const struct column *col = &from->cols[c];
        to->cols[c].kind = col->kind;
        to->cols[c].data = (u8 *)col->data + slice->first * kind_bytes[col->kind];
        to->cols[c].nulls = col->nulls ? col->nulls + slice->first : NULL;
        to->buffers[2 * c] = buffer_retain(from->buffers[2 * c]);
        struct buffer *nulls = from->buffers[2 * c + 1];
        to->buffers[2 * c + 1] = nulls ? buffer_retain(nulls) : NULL;
    }
    return to;
}

static FALLIBLE add_slice(struct exec *x, u32 var, struct slice slice) {
    struct chunk *chunk = slice_chunk(x, &slice);
    if (!chunk) {
        return memory_refused(x->mem, x->err, 256);
    }
    chunk->rows = slice.rows;
    chunk->order = x->vars[var].chunks.count;
    variable_append(x, var, chunk);
    return ERR_OK;
}

static FALLIBLE share_rows(struct exec *x, const struct step *step) {
    const struct variable *src = &x->vars[step->src];
    i64 skip = 0;
    i64 limit = -1;
    TRY(step_bounds(x, step, &skip, &limit));
    i64 end = limit < 0 ? src->rows : MIN_OF(skip + limit, src->rows);
    i64 row = 0;
    for (i64 at = variable_chunk(src, skip, &row); at < src->chunks.count && row < end; at++) {
        const struct chunk *chunk = src->chunks.items[at];
        i64 first = MAX_OF(skip - row, 0);
        i64 rows = MIN_OF(chunk->rows, end - row) - first;
        if (rows > 0) {
            TRY(add_slice(x, step->dst, (struct slice){chunk, first, rows}));
        }
        row += chunk->rows;
    }
    x->vars[step->dst].view_of = step->src + 1;
    return ERR_OK;
}

wf_status limit_run(struct exec *x, const struct step *step) {
    struct answer kept;
    variable_reset(&x->vars[step->dst]);
    x->vars[step->dst].on_host = 1;
    if (step->shares) {
        return share_rows(x, step);
    }
    TRY(cut(x, step, &kept));
    for (i64 i = 0; i < kept.slice_count; i++) {
        TRY(add_slice(x, step->dst, kept.slices[i]));
    }
    variable_keep_heaps(x, step->dst, step->src);
    return ERR_OK;
}

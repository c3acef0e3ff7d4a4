/* stream.c: answers that are computed as they are read.
 *
 * When the last pipeline of a program feeds nothing but the answer, it need not run before somebody
 * asks for rows. The steps before it run, the pipeline is opened, and each exec_next runs a slice
 * of its source. So an answer of any size takes the memory of one slice. The same goes for the last
 * pipelines, when each appends to the answer, as the branches of a union do: they are read one
 * after the other. A device that cannot cut a pipeline into slices runs it whole; then there is no
 * stream and the answer is all there.
 *
 * Errors stay what they were: a fault is only the statement's error when no other fault of the
 * pipeline is smaller, so the first one met makes the rest of the source run without output. Rows
 * handed out before that stay handed out. With a LIMIT only the slice at hand counts: rows behind
 * the limit must not raise. */
#include "run/run_int.h"

struct stream_part { /* one pipeline */
    struct device *device;
    struct slices *slices; /* NULL once the source is used up */
    struct fetcher *fetch; /* the step is no pipeline but STEP_FETCH */
    const struct step *step;
    u32 step_no;
};

struct stream {
    VEC(struct stream_part) parts;
    i64 at;               /* the part that is read now */
    i64 skip;             /* rows of OFFSET still to come */
    i64 left;             /* rows of LIMIT still to come; -1 = no limit */
    struct slice *pieces; /* of the current answer; from mem_alloc */
    i64 piece_cap;
};

enum { SLICE_BYTES = 8 << 20, WORKER_BYTES = 2 << 20, BUDGET_SHARE = 32 };

static bool writes(const struct step *step, u32 var) {
    for (u32 s = 0; step->pipeline && s < step->pipeline->sink_count; s++) {
        if (step->pipeline->sinks[s].var == var) {
            return true;
        }
    }
    return (step->kind == STEP_LIMIT || step->kind == STEP_FETCH) && step->dst == var;
}

struct uses {
    u32 var;
    u32 count;
};

static void count_use(void *arg, u32 var) {
    struct uses *uses = arg;
    uses->count += var == uses->var;
}

static bool feeds(const struct step *step, u32 var) {
    if (step->kind == STEP_FETCH) {
        return step->dst == var;
    }
    return step->kind == STEP_PIPELINE && step->pipeline->sink_count == 1 &&
           step->pipeline->sinks[0].kind == SINK_ROWS && step->pipeline->sinks[0].var == var;
}

u32 stream_first(const struct program *program) {
    const struct step *result = result_step(program);
    u32 no = 0;
    struct uses uses = {result ? result->src : NO_VAR, 0};
    u32 writers = 0;
    u32 last = 0; /* feeders since the last other step */
    const struct step *step = NULL;
    for (u32 b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        if (block->loop_count) {
            return NO_STEP;
        }
        for (u32 s = 0; s < block->step_count; s++, no++) {
            step = &block->steps[s];
            writers += writes(step, uses.var);
            step_inputs(program, step, count_use, &uses);
            last = feeds(step, uses.var) ? last + 1 : step == result ? last : 0;
        }
    }
    /* read by the answer, and by the feeders that append to it */
    bool fits = last > 0 && step == result && writers == last && uses.count == last;
    return fits ? no - 1 - last : NO_STEP;
}

wf_status stream_possible(struct exec *x, const struct run_devices *devices, u32 step_no,
                          bool *out) {
    u32 no = 0;
    *out = true;
    for (u32 b = 0; b < x->program->block_count; b++) {
        const struct block *block = &x->program->blocks[b];
        for (u32 s = 0; s < block->step_count && *out; s++, no++) {
            struct chosen chosen = {0};
            if (no >= step_no && block->steps[s].kind == STEP_PIPELINE) {
                TRY(choose_device(x, devices, no, &block->steps[s], &chosen));
                *out = devices->list[chosen.number]->slices_open != NULL && !chosen.shares &&
                       !exec_passes(x, block->steps[s].pipeline);
            }
        }
    }
    return ERR_OK;
}

wf_status stream_open(struct exec *x, struct device *device, u32 step_no, const struct step *step) {
    struct stream *stream = x->stream;
    if (!stream) {
        stream = NEW(x->arena, struct stream);
        TRY(step_bounds(x, result_step(x->program), &stream->skip, &stream->left));
        x->stream = stream;
    }
    struct stream_part part = {.device = device, .step = step, .step_no = step_no};
    ASSERT(feeds(step, result_step(x->program)->src)); /* nobody else waits for these rows */
    if (step->kind == STEP_FETCH) {
        TRY(fetch_open(x, step, step_no, &part.fetch));
    } else {
        ASSERT(device->slices_open); /* stream_possible */
        TRY(device->slices_open(device, x, step_no, step, &part.slices));
    }
    VEC_PUSH(x->arena, &stream->parts, part);
    return ERR_OK;
}

static void part_end(struct stream_part *part) {
    if (part->slices) {
        part->device->slices_close(part->slices);
        part->slices = NULL;
    }
}

static void stream_end(struct stream *stream) {
    for (i64 i = 0; i < stream->parts.count; i++) {
        part_end(&stream->parts.items[i]);
    }
    stream->at = stream->parts.count;
}

void stream_close(struct exec *x) {
    if (x->stream) {
        stream_end(x->stream);
        mem_free(x->mem, x->stream->pieces, x->stream->piece_cap * (i64)sizeof *x->stream->pieces);
        x->stream = NULL;
    }
}

/* Large enough that waking the workers for it costs nothing, small against the budget. */
static i64 slice_bytes(const struct exec *x) {
    if (x->settings->result_bytes > 0) {
        return x->settings->result_bytes;
    }
    i64 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 bytes = MAX_OF(SLICE_BYTES, MIN_OF(workers, 32) * WORKER_BYTES);
    for (const struct memory *mem = x->mem; mem; mem = mem->parent) {
        if (mem->limit_bytes > 0) {
            bytes = MIN_OF(bytes, mem->limit_bytes / BUDGET_SHARE);
        }
    }
    return MAX_OF(bytes, 4096);
}

/* A fault was met: finds the smallest one there is. */
static FALLIBLE drain(struct exec *x, struct stream *stream) {
    struct stream_part *part = &stream->parts.items[stream->at];
    bool end = stream->left >= 0;
    while (!end) {
        TRY(exec_check(x));
        TRY(part->device->slices_next(part->slices, slice_bytes(x), -1, true, &end));
    }
    return raise_fault(x, part->step);
}

static FALLIBLE run_slice(struct exec *x, struct stream *stream, bool *out_end) {
    struct stream_part *part = &stream->parts.items[stream->at];
    bool end = false;
    TRY(exec_check(x));
    bool all = stream->left < 0 || stream->left > I64_MAX - stream->skip;
    i64 want = all ? -1 : stream->left + stream->skip;
    i64 taken = exec_temp_bytes(x);
    i64 start = clock_ns();
    wf_status status =
        part->fetch ? fetch_next(part->fetch, slice_bytes(x), want, &end)
                    : part->device->slices_next(part->slices, slice_bytes(x), want, false, &end);
    x->metrics[part->step_no].ns += clock_ns() - start;
    x->metrics[part->step_no].temp_bytes += exec_temp_bytes(x) - taken;
    TRY(status);
    if (atomic_load_explicit(&x->fault, memory_order_relaxed) != ~0ULL) {
        return drain(x, stream);
    }
    refresh_dicts(x);
    if (end) {
        part_end(part);
        stream->at++;
    }
    *out_end = stream->at == stream->parts.count;
    return arena_check(x->arena, x->err);
}

static u32 answer_var(const struct stream *stream) {
    const struct step *step = stream->parts.items[0].step;
    return step->kind == STEP_FETCH ? step->dst : step->pipeline->sinks[0].var;
}

/* The rows of the slice that OFFSET and LIMIT leave. */
static FALLIBLE cut_slice(struct exec *x, struct stream *stream, struct answer *out) {
    const struct variable *var = &x->vars[answer_var(stream)];
    if (var->chunks.count > stream->piece_cap) {
        i64 cap = var->chunks.count + 16;
        struct slice *pieces = mem_alloc(x->mem, cap * (i64)sizeof *pieces);
        if (!pieces) {
            return memory_refused(x->mem, x->err, cap * (i64)sizeof *pieces);
        }
        mem_free(x->mem, stream->pieces, stream->piece_cap * (i64)sizeof *pieces);
        stream->pieces = pieces;
        stream->piece_cap = cap;
    }
    *out = (struct answer){.slices = stream->pieces};
    for (i64 i = 0; i < var->chunks.count && stream->left != 0; i++) {
        const struct chunk *chunk = var->chunks.items[i];
        i64 first = MIN_OF(stream->skip, chunk->rows);
        i64 rows = chunk->rows - first;
        rows = stream->left < 0 ? rows : MIN_OF(rows, stream->left);
        stream->skip -= first;
        if (rows > 0) {
            stream->left -= stream->left < 0 ? 0 : rows;
            out->slices[out->slice_count++] = (struct slice){chunk, first, rows};
            out->rows += rows;
        }
    }
    return ERR_OK;
}

/* What only the pipeline needed; the answer's last rows stay, and strings they show. */
static void release_inputs(struct exec *x, u32 answer) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        if (v != answer && x->program->vars[v].kind != VAR_INTERN) {
            variable_reset(&x->vars[v]);
        }
    }
}

wf_status exec_next(struct exec *x, struct answer *out, bool *out_end) {
    struct stream *stream = x->stream;
    *out = (struct answer){0, 0, NULL};
    bool open = stream && stream->at < stream->parts.count;
    bool end = !open;
    wf_status status = ERR_OK;
    i64 start = clock_ns();
    while (!end && !status && out->rows == 0) {
        status = stream->left == 0 ? ERR_OK : run_slice(x, stream, &end);
        status = status ? status : cut_slice(x, stream, out);
        end = end || stream->left == 0;
    }
    *out_end = end;
    x->run_ns += clock_ns() - start;
    if (open && end && !status) {
        auto_ended(x);
    }
    if (open && (end || status)) {
        i64 rows = 0;
        stream_end(stream);
        release_inputs(x, answer_var(stream));
        for (i64 i = 0; i < stream->parts.count; i++) {
            rows += x->metrics[stream->parts.items[i].step_no].rows_out;
        }
        const struct stream_part *last = &stream->parts.items[stream->parts.count - 1];
        struct step_metric *metric = &x->metrics[last->step_no + 1];
        metric->rows_in = metric->rows_out = rows;
    }
    return status;
}

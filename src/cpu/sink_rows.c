/* sink_rows.c: materialises rows.
 *
 * Every worker appends to blocks of its own, one buffer per column, and notes which run of rows
 * came from which morsel. At the end the runs, sorted by morsel, become chunks that share the
 * blocks' buffers: nothing is copied, and the order of the source is kept on any number of threads.
 * Very short runs are copied together, since a chunk has its cost for whoever reads it. Strings
 * that opcodes made are copied into heaps of the variable; all other strings live longer than the
 * variable anyway, or in heaps it inherits. */
#include "cpu/cpu_int.h"

#include "codes/control.h"

#include <stdlib.h>

enum {
    BLOCK_ROWS_MIN = 2048,
    BLOCK_ROWS_MAX = 256 << 10,
    BLOCK_SHARE = 32, /* of the memory that is left, what a block may take */
    SHORT_RUN = 2048,   /* rows */
    JOINED_RUN = 16384, /* rows to copy together */
    HEAP_BYTES_MIN = 64 << 10,
    HEAP_BYTES_MAX = 64 << 20,
    TAIL_ROWS_MIN = 64 /* room of a chunk that rounds add to */
};

struct rows_block {
    struct rows_block *next;
    i64 cap, used;
    struct buffer **buffers; /* 2 per column */
};

struct rows_run {
    i64 morsel;
    i64 sequence; /* within the worker */
    i64 first, rows;
    struct rows_block *block;
};

struct rows_worker {
    struct rows_block *block; /* current one first */
    struct rows_block *spare; /* structs of earlier slices, without buffers */
    i64 last_rows;            /* how many the slice before gave */
    i64 row_bytes;
    i64 taken; /* rows, by all blocks of all slices */
    VEC(struct rows_run) runs;
    VEC(struct buffer *) heaps;
    i64 heap_used; /* of the last heap */
    b8 heap_lent;  /* the first one is the variable's: a round before made it */
};

/* A set of the rows' keys, in its best form. */
static FALLIBLE set_begin(struct exec *x, const struct sink *sink) {
    struct variable *v = &x->vars[sink->set_var - 1];
    if (!sink->append) {
        variable_reset(v);
    }
    variable_drop_copy(v); /* the host has it, and adds to it */
    v->on_host = 1;
    v->keys = v->keys ? v->keys : key_set_open(x->mem, sink->key_bits, sink_best(sink));
    bool fine = v->keys && key_set_settle(v->keys);
    return fine ? ERR_OK : memory_refused(x->mem, x->err, 1LL << MIN_OF(sink->key_bits, 40) >> 3);
}

static FALLIBLE rows_begin(struct pipe_run *run, struct sink_run *sink) {
    if (!sink->sink->append || run->sliced) {
        variable_reset(&run->x->vars[sink->sink->var]);
    }
    run->x->vars[sink->sink->var].on_host = 1;
    if (sink->sink->set_var) {
        TRY(set_begin(run->x, sink->sink));
    }
    if (run->pipe.top_at != NO_VAR) {
        run->top = top_begin(run, sink->sink);
    }
    return ERR_OK;
}

static FALLIBLE add_block(struct worker *w, u32 sink_no, struct rows_worker *rows) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    i64 cap = MAX_OF(rows->block ? rows->block->cap * 2 : rows->last_rows, BLOCK_ROWS_MIN);
    cap = MIN_OF(cap, BLOCK_ROWS_MAX);
    i64 room = memory_left(w->run->x->mem) / BLOCK_SHARE / rows->row_bytes;
    room = MAX_OF(room, rows->taken / 4); /* or there are so many blocks that their structs matter */
    cap = MAX_OF(MIN_OF(cap, room), BLOCK_ROWS_MIN);
    struct rows_block *block = rows->spare;
    if (block) {
        rows->spare = block->next;
    } else {
        block = NEW(&w->arena, struct rows_block);
        block->buffers = NEW_ARRAY(&w->arena, struct buffer *, 2 * sink->col_count + 1);
    }
    block->cap = cap;
    block->used = 0;
    block->next = rows->block;
    rows->block = block;
    for (u32 c = 0; c < sink->col_count; c++) {
        i64 bytes = cap << w->run->pipe.width[sink->cols[c].reg];
        block->buffers[2 * c] = buffer_new_at(w->run->x->mem, bytes, BUFFER_WORK);
        if (!block->buffers[2 * c]) {
            return sink_refused(w, bytes);
        }
        if (sink->cols[c].null_reg != NO_REG) {
            block->buffers[2 * c + 1] = buffer_new_at(w->run->x->mem, cap, BUFFER_WORK);
            if (!block->buffers[2 * c + 1]) {
                return sink_refused(w, cap);
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE heap_room(struct worker *w, const struct sink *sink, struct rows_worker *rows, i64 bytes) {
    i64 count = rows->heaps.count;
    struct buffer *last = count ? rows->heaps.items[count - 1] : NULL;
    if (last && last->bytes - rows->heap_used >= bytes) {
        return ERR_OK;
    }
    if (!last && sink->append) {
        struct heap_room room = variable_take_heap(w->run->x, sink->var);
        if (room.heap) {
            VEC_PUSH(&w->arena, &rows->heaps, buffer_retain(room.heap));
            rows->heap_used = room.used;
            rows->heap_lent = 1;
            return heap_room(w, sink, rows, bytes);
        }
    }
    i64 size = MAX_OF(last ? MIN_OF(last->bytes * 2, (i64)HEAP_BYTES_MAX) : HEAP_BYTES_MIN, bytes);
    struct buffer *heap = buffer_new(w->run->x->mem, size);
    if (!heap) {
        return sink_refused(w, size);
    }
    VEC_PUSH(&w->arena, &rows->heaps, heap);
    rows->heap_used = 0;
    return ERR_OK;
}

/* Moves the bytes of made strings from the worker's heap, which the next vector reuses, to the
 * sink's. */
static FALLIBLE keep_strings(struct worker *w, const struct sink *sink, struct rows_worker *rows,
                             str *s, i64 n, const b8 *nulls) {
    i64 bytes = 0;
    for (i64 i = 0; i < n; i++) {
        bytes += nulls && nulls[i] ? 0 : s[i].len;
    }
    TRY(heap_room(w, sink, rows, bytes));
    u8 *to = rows->heaps.items[rows->heaps.count - 1]->data + rows->heap_used;
    rows->heap_used += bytes;
    for (i64 i = 0; i < n; i++) {
        if (nulls && nulls[i]) {
            s[i] = (str){0, 0, (u64)(size_t)to};
            continue;
        }
        if (s[i].len) {
            memcpy(to, (const void *)(size_t)s[i].addr, s[i].len);
        }
        s[i].addr = (u64)(size_t)to;
        to += s[i].len;
    }
    return ERR_OK;
}

static void copy_register(struct worker *w, struct frame *fr, u16 reg, i64 from, i64 n, void *dst) {
    u8 width = w->run->pipe.width[reg];
    const u8 *data = fr->sel ? frame_read(w, fr, reg) : fr->data[reg];
    if (fr->sel) {
        w->run->pipe.vec->gather[width](dst, data, fr->sel + from, n);
    } else if (fr->lag[reg]) {
        w->run->pipe.vec->gather[width](dst, data, fr->pos + from, n);
    } else {
        memcpy(dst, data + (from << width), (size_t)(n << width));
    }
}

static FALLIBLE copy_rows(struct worker *w, u32 sink_no, struct rows_worker *rows, struct frame *fr,
                          i64 from, i64 n) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    struct rows_block *block = rows->block;
    for (u32 c = 0; c < sink->col_count; c++) {
        const struct sink_col *col = &sink->cols[c];
        u8 *dst = block->buffers[2 * c]->data + (block->used << w->run->pipe.width[col->reg]);
        b8 *nulls = NULL;
        copy_register(w, fr, col->reg, from, n, dst);
        w->bytes_written += n << w->run->pipe.width[col->reg];
        if (col->null_reg != NO_REG) {
            nulls = block->buffers[2 * c + 1]->data + block->used;
            copy_register(w, fr, col->null_reg, from, n, nulls);
        }
        if (w->run->pipe.made[col->reg]) {
            TRY(keep_strings(w, sink, rows, (str *)(void *)dst, n, nulls));
        }
    }
    struct rows_run *last = rows->runs.count ? &rows->runs.items[rows->runs.count - 1] : NULL;
    if (last && last->morsel == w->morsel && last->block == block) {
        last->rows += n;
    } else {
        struct rows_run added = {w->morsel, rows->runs.count, block->used, n, block};
        VEC_PUSH(&w->arena, &rows->runs, added);
    }
    block->used += n;
    return ERR_OK;
}

static struct rows_worker *rows_worker_new(struct worker *w, u32 sink_no) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    struct rows_worker *rows = NEW(&w->arena, struct rows_worker);
    rows->row_bytes = 1;
    for (u32 c = 0; c < sink->col_count; c++) {
        rows->row_bytes += 1LL << w->run->pipe.width[sink->cols[c].reg];
    }
    return rows;
}

/* A block that is full waits for the end. */
static void rest_block(const struct worker *w, u32 sink_no, struct rows_block *block) {
    for (u32 b = 0; block && b < 2 * w->run->sinks[sink_no].sink->col_count; b++) {
        buffer_rest(block->buffers[b]);
    }
}

static FALLIBLE take_rows(struct worker *w, u32 sink_no, struct frame *fr) {
    if (!w->sinks[sink_no]) {
        w->sinks[sink_no] = rows_worker_new(w, sink_no);
    }
    struct rows_worker *rows = w->sinks[sink_no];
    i64 want = fr->m;
    if (w->run->limit >= 0) {
        want = MIN_OF(want, w->run->limit - w->morsel_out);
        w->morsel_out += want;
        w->enough = w->morsel_out >= w->run->limit;
    }
    for (i64 done = 0; done < want;) {
        if (!rows->block || rows->block->used == rows->block->cap) {
            rest_block(w, sink_no, rows->block);
            rows->taken += rows->block ? rows->block->cap : 0;
            TRY(add_block(w, sink_no, rows));
        }
        i64 n = MIN_OF(want - done, rows->block->cap - rows->block->used);
        TRY(copy_rows(w, sink_no, rows, fr, done, n));
        done += n;
    }
    return ERR_OK;
}

static FALLIBLE rows_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    if (w->run->discard) {
        return ERR_OK;
    }
    if (!sink->set_var) {
        return take_rows(w, sink_no, fr);
    }
    const u32 *sel = fr->sel;
    i64 active = fr->m;
    struct key_rows keyed = {.keys = frame_read(w, fr, sink->key)};
    if (sink->word_count > 0) {
        keyed.values = frame_read(w, fr, sink->word_regs[0]);
    }
    i64 m = key_set_add(w->run->x->vars[sink->set_var - 1].keys, &keyed, sel, active, fr->sel_alt);
    w->probes += active;
    if (m < 0) {
        return sink_refused(w, active * (i64)sizeof(i64));
    }
    fr->sel = fr->sel_alt;
    fr->m = m;
    wf_status status = m ? take_rows(w, sink_no, fr) : ERR_OK;
    fr->sel = sel;
    fr->m = active;
    return status;
}

/* One worker does all of a morsel, so its own sequence settles the rest. */
static int by_morsel(const void *a, const void *b) {
    const struct rows_run *ra = a;
    const struct rows_run *rb = b;
    if (ra->morsel != rb->morsel) {
        return ra->morsel < rb->morsel ? -1 : 1;
    }
    return ra->sequence < rb->sequence ? -1 : ra->sequence > rb->sequence;
}

/* A chunk that shares the run's buffers. */
static FALLIBLE add_view(struct pipe_run *run, const struct sink *sink,
                         const struct rows_run *from) {
    struct exec *x = run->x;
    struct chunk *chunk = chunk_view_new(x, sink->col_count);
    if (!chunk) {
        return memory_refused(x->mem, x->err, 256);
    }
    chunk->rows = from->rows;
    chunk->order = x->vars[sink->var].chunks.count;
    for (u32 c = 0; c < sink->col_count; c++) {
        struct buffer *data = from->block->buffers[2 * c];
        struct buffer *nulls = from->block->buffers[2 * c + 1];
        u16 reg = sink->cols[c].reg;
        chunk->cols[c].kind = run->pipe.pipe->regs[reg].kind;
        chunk->cols[c].data = data->data + (from->first << run->pipe.width[reg]);
        chunk->buffers[2 * c] = buffer_retain(data);
        if (nulls) {
            chunk->cols[c].nulls = nulls->data + from->first;
            chunk->buffers[2 * c + 1] = buffer_retain(nulls);
        }
    }
    variable_append(x, sink->var, chunk);
    return ERR_OK;
}

/* A column's rows of the runs one after the other; `b` counts data and NULLs. Where a run has none: zeros. */
static void join_column(const struct exec *x, const struct rows_run *runs, i64 count, u32 b, u8 width,
                        u8 *to) {
    for (i64 i = 0; i < count; i++) {
        const struct buffer *from = runs[i].block->buffers[b];
        if (from) {
            mem_copy(x->mem, to, from->data + (runs[i].first << width), runs[i].rows << width);
        } else {
            memset(to, 0, (size_t)(runs[i].rows << width));
        }
        to += runs[i].rows << width;
    }
}

/* The chunk behind whose rows there is room for some that come, NULLs like theirs; NULL: there is none. */
static struct chunk *tail_of(const struct variable *v, const struct sink *sink,
                             const struct rows_run *runs, i64 count, i64 rows) {
    struct chunk *tail = v->chunks.count ? v->chunks.items[v->chunks.count - 1] : NULL;
    bool fits = tail && tail->rows + rows <= tail->room;
    for (u32 c = 0; c < sink->col_count && fits; c++) {
        for (i64 i = 0; i < count && !tail->cols[c].nulls; i++) {
            fits = fits && !runs[i].block->buffers[2 * c + 1];
        }
    }
    return fits ? tail : NULL;
}

/* A new one, as large as the variable already is. */
static struct chunk *tail_new(struct pipe_run *run, const struct sink *sink, const struct rows_run *runs,
                              i64 count, i64 rows) {
    struct exec *x = run->x;
    struct chunk *chunk = chunk_view_new(x, sink->col_count);
    i64 room = MIN_OF(MAX_OF(x->vars[sink->var].rows, (i64)TAIL_ROWS_MIN), (i64)JOINED_RUN);
    bool fine = chunk != NULL;
    room = MAX_OF(room, rows);
    for (u32 c = 0; c < sink->col_count && fine; c++) {
        u16 reg = sink->cols[c].reg;
        bool nulls = false;
        for (i64 i = 0; i < count; i++) {
            nulls = nulls || runs[i].block->buffers[2 * c + 1];
        }
        struct buffer *data = buffer_new(x->mem, room << run->pipe.width[reg]);
        struct buffer *marks = nulls ? buffer_new(x->mem, room) : NULL;
        chunk->buffers[2 * c] = data;
        chunk->buffers[2 * c + 1] = marks;
        chunk->cols[c] = (struct column){run->pipe.pipe->regs[reg].kind, data ? data->data : NULL,
                                         marks ? marks->data : NULL};
        fine = data && (marks || !nulls);
    }
    if (!fine) {
        chunk_release(chunk);
        return NULL;
    }
    chunk->room = room;
    chunk->order = x->vars[sink->var].chunks.count;
    return chunk;
}

/* Short runs that a round adds: a chunk for each of a million rounds would be most of the memory. Rows that are
 * there already do not change, whoever reads them. */
static FALLIBLE add_behind(struct pipe_run *run, const struct sink *sink, const struct rows_run *runs,
                           i64 count, i64 rows) {
    struct exec *x = run->x;
    struct variable *v = &x->vars[sink->var];
    struct chunk *tail = tail_of(v, sink, runs, count, rows);
    struct chunk *made = tail ? NULL : tail_new(run, sink, runs, count, rows);
    struct chunk *chunk = tail ? tail : made;
    if (!chunk) {
        return memory_refused(x->mem, x->err, rows * (i64)sizeof(i64));
    }
    for (u32 c = 0; c < sink->col_count; c++) {
        u8 width = run->pipe.width[sink->cols[c].reg];
        join_column(x, runs, count, 2 * c, width, (u8 *)chunk->cols[c].data + (chunk->rows << width));
        if (chunk->cols[c].nulls) {
            join_column(x, runs, count, 2 * c + 1, 0, chunk->cols[c].nulls + chunk->rows);
        }
    }
    chunk->rows += rows;
    if (made) {
        variable_append(x, sink->var, made);
    } else {
        v->rows += rows;
    }
    return ERR_OK;
}

/* Copies short runs into one block and adds that. */
static FALLIBLE add_joined(struct pipe_run *run, const struct sink *sink,
                           const struct rows_run *from, i64 count, i64 rows) {
    struct exec *x = run->x;
    struct rows_block block = {.cap = rows, .used = rows};
    struct rows_run joined = {.rows = rows, .block = &block};
    wf_status status = ERR_OK;
    i64 array_bytes = (i64)sizeof(struct buffer *) * (2 * sink->col_count + 1);
    block.buffers = mem_alloc(x->mem, array_bytes);
    if (!block.buffers) {
        return memory_refused(x->mem, x->err, array_bytes);
    }
    memset(block.buffers, 0, (size_t)array_bytes);
    for (u32 b = 0; b < 2 * sink->col_count && !status; b++) {
        if (!from[0].block->buffers[b]) {
            continue;
        }
        u8 width = b % 2 ? 0 : run->pipe.width[sink->cols[b / 2].reg];
        block.buffers[b] = buffer_new(x->mem, rows << width);
        if (!block.buffers[b]) {
            status = memory_refused(x->mem, x->err, rows << width);
            break;
        }
        join_column(x, from, count, b, width, block.buffers[b]->data);
    }
    status = status ? status : add_view(run, sink, &joined);
    for (u32 b = 0; b < 2 * sink->col_count; b++) {
        buffer_release(block.buffers[b]);
    }
    mem_free(x->mem, block.buffers, array_bytes);
    return status;
}

static FALLIBLE add_runs(struct pipe_run *run, const struct sink *sink, const struct rows_run *runs,
                         i64 count) {
    for (i64 i = 0; i < count;) {
        i64 end = i;
        i64 rows = 0;
        while (end < count && runs[end].rows < SHORT_RUN && rows < JOINED_RUN) {
            rows += runs[end++].rows;
        }
        if (end > i && sink->append && !run->sliced) {
            TRY(add_behind(run, sink, &runs[i], end - i, rows));
            i = end;
        } else if (end - i > 1) {
            TRY(add_joined(run, sink, &runs[i], end - i, rows));
            i = end;
        } else {
            TRY(add_view(run, sink, &runs[i]));
            i++;
        }
    }
    return ERR_OK;
}

static i64 collect_runs(struct pipe_run *run, u32 sink_no, struct rows_run *out) {
    i64 count = 0;
    for (i32 i = 0; i < run->worker_count; i++) {
        const struct rows_worker *rows = run->workers[i] ? run->workers[i]->sinks[sink_no] : NULL;
        if (rows && out && rows->runs.count) {
            memcpy(out + count, rows->runs.items, sizeof *out * (size_t)rows->runs.count);
        }
        count += rows ? rows->runs.count : 0;
    }
    return count;
}

/* The result's strings may lie in heaps of what the pipeline read. */
static void keep_heaps(struct pipe_run *run, u32 sink_no, const struct sink *sink) {
    const struct pipeline *pipe = run->pipe.pipe;
    for (i32 i = 0; i < run->worker_count; i++) {
        struct rows_worker *rows = run->workers[i] ? run->workers[i]->sinks[sink_no] : NULL;
        i64 count = rows ? rows->heaps.count : 0;
        for (i64 h = count && rows->heap_lent ? 1 : 0; h < count; h++) {
            run->made_bytes += rows->heaps.items[h]->bytes;
            variable_keep_heap(run->x, sink->var, buffer_retain(rows->heaps.items[h]));
        }
        if (count && sink->append) {
            variable_give_heap(run->x, sink->var,
                               (struct heap_room){rows->heaps.items[count - 1], rows->heap_used});
        }
    }
    if (pipe->source.kind == SOURCE_VAR && pipe->source.ref != NO_VAR) {
        variable_keep_heaps(run->x, sink->var, pipe->source.ref);
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (pipe->ops[i].code == OP_LOADV && pipe->regs[pipe->ops[i].dst].kind == KIND_STR) {
            variable_keep_heaps(run->x, sink->var, pipe->ops[i].b);
        }
    }
}

/* Blocks that are not full wait, too: they may be as large as a fourth of what there is. */
static void rest_blocks(struct pipe_run *run, u32 sink_no) {
    for (i32 i = 0; i < run->worker_count && !run->sliced; i++) {
        const struct rows_worker *rows = run->workers[i] ? run->workers[i]->sinks[sink_no] : NULL;
        if (rows) {
            rest_block(run->workers[i], sink_no, rows->block);
        }
    }
}

static FALLIBLE rows_combine(struct pipe_run *run, u32 sink_no) {
    const struct sink *sink = run->sinks[sink_no].sink;
    struct exec *x = run->x;
    rest_blocks(run, sink_no);
    i64 count = collect_runs(run, sink_no, NULL);
    i64 bytes = MAX_OF(count, 1) * (i64)sizeof(struct rows_run);
    struct rows_run *runs = mem_alloc(x->mem, bytes);
    if (!runs) {
        return memory_refused(x->mem, x->err, bytes);
    }
    collect_runs(run, sink_no, runs);
    qsort(runs, (size_t)count, sizeof *runs, by_morsel);
    if (run->limit >= 0) {
        i64 left = run->limit;
        for (i64 i = 0; i < count; i++) {
            runs[i].rows = MIN_OF(runs[i].rows, left);
            left -= runs[i].rows;
        }
        while (count > 0 && runs[count - 1].rows == 0) {
            count--;
        }
    }
    wf_status status = add_runs(run, sink, runs, count);
    mem_free(x->mem, runs, bytes);
    keep_heaps(run, sink_no, sink);
    return status;
}

static FALLIBLE rows_finish(struct worker *w, u32 sink_no, i64 partition) {
    UNUSED(w);
    UNUSED(sink_no);
    UNUSED(partition);
    return ERR_OK;
}

/* Keeps the structs, so that a pipeline of many slices needs no more memory than one. */
static void close_worker(struct rows_worker *rows, u32 col_count) {
    rows->last_rows = 0;
    while (rows->block) {
        struct rows_block *block = rows->block;
        rows->block = block->next;
        rows->last_rows += block->used;
        for (u32 b = 0; b < 2 * col_count; b++) {
            buffer_release(block->buffers[b]);
            block->buffers[b] = NULL;
        }
        block->next = rows->spare;
        rows->spare = block;
    }
    for (i64 h = 0; h < rows->heaps.count; h++) {
        buffer_release(rows->heaps.items[h]);
    }
    rows->heaps.count = 0;
    rows->heap_lent = 0;
    rows->runs.count = 0;
}

static void rows_close(struct pipe_run *run, u32 sink_no) {
    for (i32 i = 0; i < run->worker_count; i++) {
        if (run->workers[i] && run->workers[i]->sinks[sink_no]) {
            close_worker(run->workers[i]->sinks[sink_no], run->sinks[sink_no].sink->col_count);
        }
    }
}

const struct sink_class sink_rows = {rows_begin,  rows_consume, rows_combine,
                                     rows_finish, rows_close};

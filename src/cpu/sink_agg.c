/* sink_agg.c: aggregation into rows of 64-bit words.
 *
 * By the domain of the key. No key: one row of words per worker. Few possible keys: arrays per
 * word, indexed by the key, in four replicas while small so that equal neighbouring keys do not
 * wait for each other's store. Keys that are expected in order: runs (agg_runs.h), as long as they
 * do come in order. Otherwise a table of groups per worker, as long as it reduces its
 * input or fits the cache. A table that does neither is emptied into partitions by hash bits
 * (agg_parts.h) and a small one takes its place, which still catches keys that come in runs; when
 * that reduces nothing either, rows go straight to the partitions. Partitions are then merged one
 * by one, in tables that fit the cache, by all workers. Where the keys are slots in every worker's
 * table nothing is partitioned: a task takes a range of keys and looks at the tables. Partial
 * states have one layout (key, words) and merge by each word's operation, in any order. */
#include "base/temp.h"
#include "cpu/agg_parts.h"
#include "defs/host_words.h"
#include "cpu/agg_runs.h"
#include "cpu/cpu_int.h"

enum {
    TINY_BITS = 12,
    TINY_BITS_MAX = 17, /* when there are many rows for each key, and the arrays fit the cache */
    TINY_BYTES_MAX = 1 << 20,
    TINY_ROWS_PER_KEY = 4,
    REPLICA_BITS = 8,
    DIRECT_BITS = 20,
    SLOT_PARTS = 64, /* tasks that merge tables whose keys are slots */
    SHARE_BITS = 2, /* a share of a partition becomes so many more */
    SHARE_BITS_MOST = 16,
    EMIT_BATCH = 1024,
    TAIL_ROWS_MIN = 1 << 10, /* of a chunk to which partitions of a cut add, one after the other */
    TAIL_ROWS_MAX = 16 << 10,
    SHARE_LEAST = 4 << 10, /* states of a share that is divided no more */
    GROWN_SHARE = 8, /* rows per group from which a large table is worth its misses */
#ifdef WF_HARD
    DIRECT_SPARE = 1 << DIRECT_BITS,
    GROWN_GROUPS = 64,
    SMALL_GROUPS = 32,
    MERGE_STATES = 1 << 10,
    MERGE_STATES_FED = 1 << 11,
    MERGE_ROWS = 16
#else
    DIRECT_SPARE = 64, /* slots a row of the source */
    GROWN_GROUPS = 128 << 10, /* groups beyond which a table leaves the cache */
    SMALL_GROUPS = 16 << 10,  /* of the table before the partitions */
    MERGE_STATES = 4 << 10,   /* partial states of a task: a small chunk has its cost */
    MERGE_STATES_FED = 32 << 10, /* ... where that is done for every partition of a cut */
    MERGE_ROWS = 16 << 10     /* groups of all workers from which merging in parallel pays */
#endif
};

enum agg_form { AGG_ONE, AGG_TINY, AGG_GROUPS };
enum agg_mode { AGG_RUNS, AGG_GROWS, AGG_FLUSHES, AGG_SCATTERS };

struct agg_worker {
    struct worker *owner;
    i64 *words; /* ONE: word_count; TINY: [word][replica][key] */
    i64 words_bytes;
    b8 *seen; /* TINY: per key */
    i64 seen_bytes;
    struct groups groups;
    struct agg_runs runs;
    u8 mode;   /* enum agg_mode */
    i64 rows;  /* since the table was empty */
    i64 bound; /* GROWS: groups at which to look again */
    struct agg_parts *parts;
    struct agg_parts *spare_parts; /* the struct of those that there were */
};

struct agg_state {
    u8 form;
    i64 keys;     /* TINY */
    i64 replicas; /* TINY */
    b8 in_runs;   /* GROUPS: workers start with runs */
    /* GROUPS: whoever consumed rows, as finishing may open workers that did not */
    struct agg_worker **active;
    i32 active_count;
    i64 slot_keys; /* the keys of all tables are slots below; 0 = not so */
    i64 parts_together; /* partitions that one task merges; 0 = there are none */
    struct chunk *tail; /* has room for tail_room rows: what the next partition of a cut gives; under the lock */
    i64 tail_room;
    i64 rested; /* chunks of the answer that wait where rows at rest do */
    struct agg_worker **spare; /* by worker: structs that the partition before used; NULL = none did */
};

static u8 choose_form(const struct pipe_run *run, const struct sink *def) {
    if (def->key == NO_REG) {
        return AGG_ONE;
    }
    if (def->key_bits <= TINY_BITS) {
        return AGG_TINY;
    }
    i64 rows = pipe_rows(run);
    i64 words = MAX_OF((i64)def->word_count, 1);
    bool wide = def->key_bits <= TINY_BITS_MAX && rows >> def->key_bits >= TINY_ROWS_PER_KEY &&
                words << def->key_bits <= TINY_BYTES_MAX / (i64)sizeof(i64);
    return wide ? AGG_TINY : AGG_GROUPS;
}

static FALLIBLE agg_begin(struct pipe_run *run, struct sink_run *sink) {
    struct agg_state *state = NEW(run->x->arena, struct agg_state);
    const struct sink *def = sink->sink;
    variable_reset(&run->x->vars[def->var]);
    run->x->vars[def->var].on_host = 1;
    state->form = choose_form(run, def);
    state->keys = state->form == AGG_TINY ? 1LL << def->key_bits : 1;
    state->replicas = state->form == AGG_TINY && def->key_bits <= REPLICA_BITS ? VEC_REPLICAS : 1;
#ifdef WF_HARD
    state->in_runs = def->in_runs || def->word_count % 2; /* and mostly in vain */
#else
    state->in_runs = def->in_runs;
#endif
    state->in_runs = state->in_runs && run->pass_count == 1 && !run->feeds; /* or keys begin anew with each pass */
    sink->state = state;
    return ERR_OK;
}

static i64 tiny_bytes(const struct agg_state *state, const struct sink *sink) {
    return MAX_OF((i64)sink->word_count, 1) * state->replicas * state->keys * (i64)sizeof(i64);
}

/* Whether keys are slots. Slots are cleared before the first row: few rows do not pay for many. */
static bool is_direct(const struct pipe_run *run, const struct sink *sink) {
    i64 rows = pipe_rows(run);
    return sink->key_bits <= DIRECT_BITS && (1LL << sink->key_bits) / DIRECT_SPARE <= rows;
}

static FALLIBLE part_groups(struct worker *w, u32 sink_no, struct agg_worker *agg, bool refused);

static FALLIBLE open_groups(struct worker *w, u32 sink_no, struct agg_worker *agg) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    u32 direct = is_direct(w->run, sink) ? sink->key_bits : 0;
    agg->mode = AGG_GROWS;
    if (!groups_init(&agg->groups, w->run->x->mem, sink->word_count, sink->words, direct, 0)) {
        return part_groups(w, sink_no, agg, true);
    }
    groups_try_dense(&agg->groups);
    /* A key that is its own slot costs one miss less: measured, such tables are best left to
     * grow. */
    agg->bound = direct ? I64_MAX : GROWN_GROUPS;
    return ERR_OK;
}

static FALLIBLE open_worker(struct worker *w, u32 sink_no, struct agg_worker *agg) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    const struct agg_state *state = w->run->sinks[sink_no].state;
    struct memory *mem = w->run->x->mem;
    if (state->form == AGG_GROUPS && !state->in_runs) {
        return open_groups(w, sink_no, agg);
    }
    if (state->form == AGG_GROUPS) {
        agg->mode = AGG_RUNS;
        return runs_init(&agg->runs, mem, sink, w->run->vector_rows)
                   ? ERR_OK
                   : sink_refused(w, agg->runs.bytes);
    }
    agg->words_bytes = tiny_bytes(state, sink);
    agg->words = mem_alloc(mem, agg->words_bytes);
    agg->seen_bytes = state->keys;
    agg->seen = mem_alloc(mem, agg->seen_bytes);
    if (!agg->words || !agg->seen) {
        return sink_refused(w, agg->words_bytes + agg->seen_bytes);
    }
    memset(agg->seen, 0, (size_t)agg->seen_bytes);
    i64 per_word = state->replicas * state->keys;
    for (u32 i = 0; i < sink->word_count; i++) {
        for (i64 k = 0; k < per_word; k++) {
            agg->words[i * per_word + k] = word_identity(sink->words[i]);
        }
    }
    return ERR_OK;
}

static void consume_one(struct worker *w, const struct sink *sink, struct agg_worker *agg,
                        struct frame *fr) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    for (u32 i = 0; i < sink->word_count; i++) {
        u16 reg = sink->word_regs[i];
        if (pipe->is_const[reg]) {
            i64 x = pipe->const_value[reg]->i64;
            x = sink->words[i] == WORD_ADD ? (i64)((u64)x * (u64)fr->m) : x;
            x = sink->words[i] == WORD_XOR && fr->m % 2 == 0 ? 0 : x;
            x = sink->words[i] == WORD_FADD ? (i64)f64_bits(bits_f64((u64)x) * (f64)fr->m) : x;
            agg->words[i] = word_apply(sink->words[i], agg->words[i], x);
            continue;
        }
        agg->words[i] = pipe->vec->reduce[sink->words[i]](agg->words[i], frame_read(w, fr, reg),
                                                          fr->sel, fr->m);
    }
}

static void consume_tiny(struct worker *w, const struct sink *sink, const struct agg_state *state,
                         struct agg_worker *agg, struct frame *fr) {
    const i64 *key = frame_read(w, fr, sink->key);
    if (fr->sel) {
        w->run->pipe.vec->gather[3](w->keys, key, fr->sel, fr->m);
        key = w->keys;
    }
    for (i64 j = 0; j < fr->m; j++) {
        ASSERT(key[j] >= 0 && key[j] < state->keys);
        agg->seen[key[j]] = 1;
    }
    i64 per_word = state->replicas * state->keys;
    i64 replica = state->replicas > 1 ? state->keys : 0;
    for (u32 i = 0; i < sink->word_count; i++) {
        const i64 *x = frame_read(w, fr, sink->word_regs[i]);
        if (fr->sel && !w->run->pipe.is_const[sink->word_regs[i]]) {
            w->run->pipe.vec->gather[3](w->rows, x, fr->sel, fr->m);
            x = w->rows;
        }
        w->run->pipe.vec->tiny[sink->words[i]](agg->words + i * per_word, replica, key, x, NULL,
                                               fr->m);
    }
}

/* Rows straight to their partitions. */
static FALLIBLE scatter(struct worker *w, const struct sink *sink, struct agg_worker *agg,
                        struct frame *fr, const i64 *key) {
    i64 **to = (i64 **)(void *)w->rows; /* a pointer a row */
    _Static_assert(sizeof(i64 *) <= sizeof(i64), "room for a pointer a row");
    w->run->pipe.vec->hash(w->hash, key, fr->m);
    for (i64 j = 0; j < fr->m; j++) {
        to[j] = parts_row(agg->parts, w->hash[j]);
        if (!to[j]) {
            return sink_refused(w, agg->parts->row_count * agg->parts->stride * 8);
        }
        to[j][0] = key[j];
    }
    for (u32 i = 0; i < sink->word_count; i++) {
        const i64 *x = frame_read(w, fr, sink->word_regs[i]);
        for (i64 j = 0; j < fr->m; j++) {
            to[j][1 + i] = x[ACTIVE(fr, j)];
        }
    }
    parts_settle(agg->parts);
    return ERR_OK;
}

/* The table's groups to the partitions; a table that caught few repeats is not filled again. */
static FALLIBLE flush_groups(struct worker *w, struct agg_worker *agg) {
    struct groups *g = &agg->groups;
    if (!parts_add_groups(agg->parts, g)) {
        return sink_refused(w, g->count * g->stride * (i64)sizeof(i64));
    }
    if (agg->mode == AGG_FLUSHES) {
        agg->mode = agg->rows * 2 < g->count * 3 ? AGG_SCATTERS : AGG_FLUSHES;
        groups_reset(g);
    }
    agg->rows = 0;
    return ERR_OK;
}

/* A table about to leave the cache stays when most rows find their group in it, or when keys are
 * slots: numbers of an interner ascend where they are new, and rows are written one behind the
 * other. */
static FALLIBLE look_again(struct worker *w, u32 sink_no, struct agg_worker *agg) {
    struct groups *g = &agg->groups;
    if (g->dense || agg->rows >= GROWN_SHARE * g->count) {
        agg->bound = 2 * g->count;
        return ERR_OK;
    }
    return part_groups(w, sink_no, agg, false);
}

static void open_parts(struct worker *w, u32 sink_no, struct agg_worker *agg, bool refused) {
    if (!agg->parts) {
        agg->parts = agg->spare_parts ? agg->spare_parts : NEW(&w->arena, struct agg_parts);
        parts_init(agg->parts, w->run->x->mem, 1 + (i64)w->run->sinks[sink_no].sink->word_count,
                   w->run->worker_count);
    }
    if (refused) {
        parts_spill(agg->parts);
        atomic_store_explicit(&w->run->groups_parted, 1, memory_order_relaxed);
    }
}

/* From now on groups go to partitions, by way of a small table. refused: since there is no memory for
 * a larger one. */
static FALLIBLE part_groups(struct worker *w, u32 sink_no, struct agg_worker *agg, bool refused) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    struct memory *mem = w->run->x->mem;
    struct groups *g = &agg->groups;
    open_parts(w, sink_no, agg, refused);
    TRY(flush_groups(w, agg));
    groups_fini(g);
    agg->mode = AGG_FLUSHES;
    if (!groups_init(g, mem, sink->word_count, sink->words, 0,
                     SMALL_GROUPS + w->run->vector_rows)) {
        groups_fini(g);
        if (!groups_init_least(g, mem, sink->word_count, sink->words)) {
            return sink_refused(w, SMALL_GROUPS * g->stride * (i64)sizeof(i64));
        }
    }
    return ERR_OK;
}

/* There is no memory for another piece: all there are go to the partitions, then the last. */
static FALLIBLE part_runs(struct worker *w, u32 sink_no, struct agg_worker *agg) {
    struct agg_runs *runs = &agg->runs;
    bool fine = true;
    open_parts(w, sink_no, agg, true);
    while (runs->pieces.count > 0 && fine) {
        struct chunk *piece = runs->pieces.items[runs->pieces.count - 1];
        fine = runs_to_parts(agg->parts, piece);
        runs->pieces.count -= fine;
        if (fine) {
            chunk_release(piece);
        }
    }
    fine = fine && runs_flush(w, w->run->sinks[sink_no].sink, runs);
    return fine ? ERR_OK : sink_refused(w, runs->bytes);
}

static FALLIBLE consume_groups(struct worker *w, u32 sink_no, const struct sink *sink,
                               struct agg_worker *agg, struct frame *fr) {
    const struct vec_table *vec = w->run->pipe.vec;
    struct groups *g = &agg->groups;
    const i64 *key = frame_read(w, fr, sink->key);
    if (fr->sel) {
        vec->gather[3](w->keys, key, fr->sel, fr->m);
        key = w->keys;
    }
    if (agg->mode == AGG_RUNS) {
        enum runs_end end = runs_consume(w, sink, &agg->runs, fr, key);
        if (end == RUNS_TAKEN) {
            return ERR_OK;
        }
        if (end == RUNS_REFUSED || !runs_flush(w, sink, &agg->runs)) {
            TRY(part_runs(w, sink_no, agg));
        }
        TRY(open_groups(w, sink_no, agg));
    }
    if (agg->mode == AGG_GROWS && g->count >= agg->bound) {
        TRY(look_again(w, sink_no, agg));
    } else if (agg->mode == AGG_FLUSHES && g->count >= SMALL_GROUPS) {
        TRY(flush_groups(w, agg));
    }
    if (agg->mode == AGG_SCATTERS) {
        return scatter(w, sink, agg, fr, key);
    }
    agg->rows += fr->m;
    if (!groups_find(g, vec, key, fr->m, w->hash, w->group)) {
        TRY(part_groups(w, sink_no, agg, true));
        agg->rows = fr->m;
        if (!groups_find(g, vec, key, fr->m, w->hash, w->group)) {
            return sink_refused(w, g->cap * g->stride * 16);
        }
    }
    for (u32 i = 0; i < sink->word_count; i++) {
        vec->group[sink->words[i]](g->rows + 1 + i, g->stride, w->group,
                                   frame_read(w, fr, sink->word_regs[i]), fr->sel, fr->m);
    }
    return ERR_OK;
}

static FALLIBLE agg_consume(struct worker *w, u32 sink_no, struct frame *fr) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    const struct agg_state *state = w->run->sinks[sink_no].state;
    struct agg_worker *agg = w->sinks[sink_no];
    if (!agg) {
        agg = state->spare ? state->spare[w->number] : NULL;
        agg = agg ? agg : NEW(&w->arena, struct agg_worker);
        w->sinks[sink_no] = agg;
        agg->owner = w;
        TRY(open_worker(w, sink_no, agg));
    }
    switch (state->form) {
    case AGG_ONE:
        consume_one(w, sink, agg, fr);
        return ERR_OK;
    case AGG_TINY:
        consume_tiny(w, sink, state, agg, fr);
        return ERR_OK;
    default:
        return consume_groups(w, sink_no, sink, agg, fr);
    }
}

static struct agg_worker *agg_of(const struct pipe_run *run, i32 worker, u32 sink_no) {
    return run->workers[worker] ? run->workers[worker]->sinks[sink_no] : NULL;
}

/* Rows of the answer that are to be written: from `first` on. */
struct agg_rows {
    struct chunk *chunk; /* NULL: memory is refused */
    i64 first;
};

static i64 *rows_of(const struct agg_rows *rows, u32 col) {
    return (i64 *)rows->chunk->cols[col].data + rows->first;
}

/* A chunk that is filled where it can be written to. */
static struct chunk *tail_new(struct exec *x, u32 var, i64 room) {
    const struct var *def = &x->program->vars[var];
    struct chunk *chunk = chunk_view_new(x, def->col_count);
    for (u32 c = 0; c < def->col_count && chunk; c++) {
        struct buffer *data = buffer_new_at(x->mem, room * kind_bytes[def->kinds[c]], BUFFER_WORK);
        chunk->buffers[2 * c] = data;
        chunk->cols[c] = (struct column){def->kinds[c], data ? data->data : NULL, NULL};
        if (!data) {
            chunk_release(chunk);
            chunk = NULL;
        }
    }
    return chunk;
}

/* Chunks that get no more rows wait with others. */
static void rest_chunks(struct pipe_run *run, u32 sink_no) {
    const struct variable *v = &run->x->vars[run->sinks[sink_no].sink->var];
    struct agg_state *state = run->sinks[sink_no].state;
    for (; state->rested < v->chunks.count; state->rested++) {
        struct chunk *chunk = v->chunks.items[state->rested];
        if (chunk == state->tail) {
            break;
        }
        for (u32 c = 0; c < chunk->col_count; c++) {
            buffer_rest(chunk->buffers[2 * c]);
            chunk->cols[c].data = chunk->buffers[2 * c]->data;
        }
    }
}

/* Many partitions of a cut give few rows each: they share chunks, or those would be most of the memory. */
static struct agg_rows result_rows(struct pipe_run *run, u32 sink_no, i64 rows) {
    struct exec *x = run->x;
    struct agg_state *state = run->sinks[sink_no].state;
    u32 var = run->sinks[sink_no].sink->var;
    struct agg_rows out = {NULL, 0};
    mutex_lock(&x->lock);
    if (rows <= state->tail_room) {
        out = (struct agg_rows){state->tail, state->tail->rows};
        state->tail_room -= rows;
        state->tail->rows += rows;
        x->vars[var].rows += rows;
    }
    i64 room = MIN_OF(MAX_OF(x->vars[var].rows, (i64)TAIL_ROWS_MIN), (i64)TAIL_ROWS_MAX);
    mutex_unlock(&x->lock);
    if (out.chunk) {
        return out;
    }
    out.chunk = run->feeds ? tail_new(x, var, MAX_OF(room, rows)) : chunk_new(x, &x->program->vars[var], rows, false);
    if (!out.chunk) {
        return out;
    }
    room = run->feeds ? MAX_OF(room, rows) : rows;
    out.chunk->rows = rows;
    variable_append(x, var, out.chunk);
    mutex_lock(&x->lock);
    if (room - rows > state->tail_room) {
        state->tail = out.chunk;
        state->tail_room = room - rows;
    }
    mutex_unlock(&x->lock);
    return out;
}

static FALLIBLE combine_one(struct pipe_run *run, u32 sink_no) {
    const struct sink *sink = run->sinks[sink_no].sink;
    struct agg_rows out = result_rows(run, sink_no, 1);
    if (!out.chunk) {
        return memory_refused(run->x->mem, run->x->err, 64);
    }
    *rows_of(&out, 0) = 0;
    for (u32 i = 0; i < sink->word_count; i++) {
        i64 word = word_identity(sink->words[i]);
        for (i32 k = 0; k < run->worker_count; k++) {
            const struct agg_worker *agg = agg_of(run, k, sink_no);
            word = agg ? word_apply(sink->words[i], word, agg->words[i]) : word;
        }
        *rows_of(&out, 1 + i) = word;
    }
    return ERR_OK;
}

static i64 tiny_word(const struct pipe_run *run, u32 sink_no, u32 word, i64 key) {
    const struct sink *sink = run->sinks[sink_no].sink;
    const struct agg_state *state = run->sinks[sink_no].state;
    i64 value = word_identity(sink->words[word]);
    for (i32 k = 0; k < run->worker_count; k++) {
        const struct agg_worker *agg = agg_of(run, k, sink_no);
        for (i64 r = 0; agg && r < state->replicas; r++) {
            i64 at = ((i64)word * state->replicas + r) * state->keys + key;
            value = word_apply(sink->words[word], value, agg->words[at]);
        }
    }
    return value;
}

static bool tiny_seen(const struct pipe_run *run, u32 sink_no, i64 key) {
    for (i32 k = 0; k < run->worker_count; k++) {
        const struct agg_worker *agg = agg_of(run, k, sink_no);
        if (agg && agg->seen[key]) {
            return true;
        }
    }
    return false;
}

static FALLIBLE combine_tiny(struct pipe_run *run, u32 sink_no) {
    const struct sink *sink = run->sinks[sink_no].sink;
    const struct agg_state *state = run->sinks[sink_no].state;
    i64 rows = 0;
    for (i64 key = 0; key < state->keys; key++) {
        rows += tiny_seen(run, sink_no, key);
    }
    if (rows == 0) {
        return ERR_OK;
    }
    struct agg_rows out = result_rows(run, sink_no, rows);
    if (!out.chunk) {
        return memory_refused(run->x->mem, run->x->err, rows * 8);
    }
    i64 at = 0;
    for (i64 key = 0; key < state->keys; key++) {
        if (!tiny_seen(run, sink_no, key)) {
            continue;
        }
        rows_of(&out, 0)[at] = key;
        for (u32 i = 0; i < sink->word_count; i++) {
            rows_of(&out, 1 + i)[at] = tiny_word(run, sink_no, i, key);
        }
        at++;
    }
    return ERR_OK;
}

struct split_task {
    struct pipe_run *run;
    u32 sink_no;
    _Atomic i32 refused;
};

/* What is left in a worker's table and its runs to its partitions. */
static void split_worker(void *arg, i64 i, i32 number) {
    UNUSED(number);
    struct split_task *task = arg;
    struct pipe_run *run = task->run;
    struct agg_worker *agg = agg_of(run, (i32)i, task->sink_no);
    if (!agg || (agg->groups.count == 0 && agg->runs.pieces.count == 0)) {
        return;
    }
    open_parts(agg->owner, task->sink_no, agg, false);
    bool fine = parts_add_groups(agg->parts, &agg->groups);
    for (i64 p = 0; p < agg->runs.pieces.count && fine; p++) {
        fine = runs_to_parts(agg->parts, agg->runs.pieces.items[p]);
    }
    if (!fine) {
        atomic_store(&task->refused, 1);
        return;
    }
    groups_fini(&agg->groups);
    runs_fini(&agg->runs, run->x->mem);
}

/* The pieces of all workers are the answer if nobody met a key that descends and they do not
 * overlap. *out_done: they are in the variable. */
static FALLIBLE combine_runs(struct pipe_run *run, u32 sink_no, bool *out_done) {
    const struct sink *sink = run->sinks[sink_no].sink;
    struct agg_state *state = run->sinks[sink_no].state;
    bool sorted = true;
    i64 count = 0;
    for (i32 k = 0; k < state->active_count; k++) {
        struct agg_worker *agg = state->active[k];
        if (!runs_flush(agg->owner, sink, &agg->runs)) {
            agg->mode = AGG_GROWS; /* not all of its groups are pieces */
            wf_status status = part_runs(agg->owner, sink_no, agg);
            if (status) {
                return memory_refused(run->x->mem, run->x->err, agg->runs.bytes);
            }
        }
        sorted = sorted && agg->mode == AGG_RUNS;
        count += agg->runs.pieces.count;
    }
    struct chunk **pieces = NEW_ARRAY(run->x->arena, struct chunk *, count + 1);
    i64 at = 0;
    for (i32 k = 0; k < state->active_count && sorted; k++) {
        const struct agg_runs *runs = &state->active[k]->runs;
        for (i64 p = 0; p < runs->pieces.count; p++) {
            pieces[at++] = runs->pieces.items[p];
        }
    }
    *out_done = sorted && runs_join(pieces, &count, sink);
    for (i32 k = 0; k < state->active_count && *out_done; k++) {
        state->active[k]->runs.pieces.count = 0; /* they have a new owner */
    }
    for (i64 p = 0; p < count && *out_done; p++) {
        variable_append(run->x, sink->var, pieces[p]);
    }
    return ERR_OK;
}

/* The keys are below the result where they are slots in every table; else 0. */
static i64 slot_keys(const struct agg_state *state) {
    i64 keys = 0;
    for (i32 k = 0; k < state->active_count; k++) {
        const struct groups *g = &state->active[k]->groups;
        if (!g->dense && !g->direct) {
            return 0;
        }
        keys = MAX_OF(keys, g->slot_count);
    }
    return keys;
}

static i64 part_rows(const struct agg_state *state, i64 partition, i64 end) {
    i64 rows = 0;
    for (i32 k = 0; k < state->active_count; k++) {
        const struct agg_parts *parts = state->active[k]->parts;
        for (i64 p = partition; p < end && parts; p++) {
            rows += parts->counts[p];
        }
    }
    return rows;
}

static FALLIBLE combine_groups(struct pipe_run *run, u32 sink_no) {
    struct agg_state *state = run->sinks[sink_no].state;
    i64 total = 0;
    bool parted = false;
    if (!state->active) {
        state->active = NEW_ARRAY(run->x->arena, struct agg_worker *, run->worker_count + 1);
    }
    state->active_count = 0;
    for (i32 k = 0; k < run->worker_count; k++) {
        struct agg_worker *agg = agg_of(run, k, sink_no);
        if (agg) {
            state->active[state->active_count++] = agg;
            total += agg->groups.count;
            parted = parted || agg->parts;
        }
    }
    if (state->in_runs) {
        bool done;
        TRY(combine_runs(run, sink_no, &done));
        if (done) {
            run->sinks[sink_no].partitions = 0;
            return ERR_OK;
        }
        parted = true;
    }
    run->sinks[sink_no].partitions = 1;
    state->parts_together = 0;
    if (!parted && (state->active_count <= 1 || total < MERGE_ROWS)) {
        return ERR_OK;
    }
    state->slot_keys = parted ? 0 : slot_keys(state);
    if (state->slot_keys) {
        run->sinks[sink_no].partitions = SLOT_PARTS;
        return ERR_OK;
    }
    struct split_task task = {.run = run, .sink_no = sink_no};
    tasks_run(run->x, run->worker_count, split_worker, &task);
    if (atomic_load(&task.refused)) {
        return memory_refused(run->x->mem, run->x->err, total * (i64)sizeof(u32));
    }
    i64 states = part_rows(state, 0, AGG_PARTS);
    /* Many partitions give many chunks: columns of whole pages leave none between others. */
    i64 least = run->feeds ? MERGE_STATES_FED : MERGE_STATES;
    state->parts_together = 1;
    while (state->parts_together < AGG_PARTS &&
           states / (AGG_PARTS / state->parts_together) < least) {
        state->parts_together *= 2;
    }
    run->sinks[sink_no].partitions = AGG_PARTS / state->parts_together;
    return ERR_OK;
}

static FALLIBLE agg_combine(struct pipe_run *run, u32 sink_no) {
    const struct agg_state *state = run->sinks[sink_no].state;
    switch (state->form) {
    case AGG_ONE:
        return combine_one(run, sink_no);
    case AGG_TINY:
        return combine_tiny(run, sink_no);
    default:
        return combine_groups(run, sink_no);
    }
}

/* Rows of a table become columns. */
static FALLIBLE emit_groups(struct worker *w, u32 sink_no, const struct groups *g) {
    struct exec *x = w->run->x;
    const struct sink *sink = w->run->sinks[sink_no].sink;
    if (g->count == 0) {
        return ERR_OK;
    }
    struct agg_rows rows = result_rows(w->run, sink_no, g->count);
    if (!rows.chunk) {
        return memory_refused(x->mem, &w->err, g->count * g->stride * (i64)sizeof(i64));
    }
    for (u32 c = 0; c < 1 + sink->word_count; c++) {
        i64 *out = rows_of(&rows, c);
        i64 batch[EMIT_BATCH]; /* what goes to temporary space is put together first */
        for (i64 r = 0; r < g->count; r += EMIT_BATCH) {
            i64 n = MIN_OF(g->count - r, (i64)EMIT_BATCH);
            for (i64 i = 0; i < n; i++) {
                batch[i] = g->rows[(r + i) * g->stride + c];
            }
            mem_copy(x->mem, out + r, batch, n * (i64)sizeof(i64));
        }
    }
    return ERR_OK;
}

/* A share of neighbouring partitions: the keys whose next `bits` bits of the hash are `value`. */
struct agg_share {
    i64 partition, end;
    i32 bits;
    u64 value;
};

static bool in_share(const struct agg_share *share, i64 key) {
    u64 next = hash_u64((u64)key) >> (64 - AGG_PART_BITS - share->bits);
    return (next & ((1ULL << share->bits) - 1)) == share->value;
}

/* Those of n partial states that belong to the share. */
static bool merge_share(struct groups *into, const i64 *rows, i64 n, const struct agg_share *share) {
    if (share->bits == 0) {
        return groups_merge(into, rows, n);
    }
    bool fine = true;
    for (i64 i = 0; i < n && fine;) {
        i64 end = i;
        while (end < n && in_share(share, rows[end * into->stride])) {
            end++;
        }
        fine = groups_merge(into, rows + i * into->stride, end - i);
        i = end + 1;
    }
    return fine;
}

static bool merge_worker(struct groups *into, const struct agg_worker *agg,
                         const struct agg_share *share) {
    bool fine = merge_share(into, agg->groups.rows, agg->groups.count, share);
    i64 bytes = agg->parts ? parts_block_bytes(agg->parts) : 0;
    struct part_block *scratch = agg->parts ? mem_alloc(into->mem, bytes) : NULL;
    for (i64 p = share->partition; p < share->end && scratch; p++) {
        const struct part_block *block = agg->parts->heads[p];
        for (; block && fine; block = parts_next(agg->parts, block, scratch)) {
            fine = merge_share(into, block->rows, block->count, share);
            if (into->mem->temp) {
                temp_cool(into->mem->temp);
            }
        }
    }
    mem_free(into->mem, scratch, bytes);
    return fine && (scratch || !agg->parts);
}

static const i64 *row_of_key(const struct groups *g, i64 key) {
    u32 head = key < g->slot_count ? g->slots[key] : 0;
    return head ? g->rows + (i64)(head - 1) * g->stride : NULL;
}

/* The states of a key in all tables, put together; false when no table has it. */
static bool merge_key(const struct agg_state *state, const struct sink *sink, i64 key, i64 *out) {
    bool any = false;
    for (i32 k = 0; k < state->active_count; k++) {
        const i64 *row = row_of_key(&state->active[k]->groups, key);
        for (u32 i = 0; row && i < sink->word_count; i++) {
            out[i] = any ? word_apply(sink->words[i], out[i], row[1 + i]) : row[1 + i];
        }
        any = any || row;
    }
    return any;
}

/* A range of the keys, out of the tables as they are. */
static FALLIBLE finish_slots(struct worker *w, u32 sink_no, i64 partition) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    const struct agg_state *state = w->run->sinks[sink_no].state;
    i64 first = state->slot_keys * partition / SLOT_PARTS;
    i64 end = state->slot_keys * (partition + 1) / SLOT_PARTS;
    i64 rows = 0;
    for (i64 key = first; key < end; key++) {
        bool any = false;
        for (i32 k = 0; k < state->active_count && !any; k++) {
            any = row_of_key(&state->active[k]->groups, key) != NULL;
        }
        rows += any;
    }
    if (rows == 0) {
        return ERR_OK;
    }
    struct agg_rows out = result_rows(w->run, sink_no, rows);
    if (!out.chunk) {
        return memory_refused(w->run->x->mem, &w->err, rows * (1 + (i64)sink->word_count) * 8);
    }
    i64 *words = NEW_ARRAY(&w->arena, i64, sink->word_count + 1);
    i64 at = 0;
    for (i64 key = first; key < end; key++) {
        if (!merge_key(state, sink, key, words)) {
            continue;
        }
        rows_of(&out, 0)[at] = key;
        for (u32 i = 0; i < sink->word_count; i++) {
            rows_of(&out, 1 + i)[at] = words[i];
        }
        at++;
    }
    return ERR_OK;
}

static bool merge_all(struct groups *into, const struct agg_state *state,
                      const struct agg_share *share) {
    bool fine = true;
    for (i32 k = 0; k < state->active_count && fine; k++) {
        fine = merge_worker(into, state->active[k], share);
    }
    return fine;
}

/* The groups of a share in one table. Where memory refuses that, of shares of it, one after the
 * other: what was set aside is read as often. */
static FALLIBLE finish_share(struct worker *w, u32 sink_no, struct agg_share share) {
    struct pipe_run *run = w->run;
    struct memory *mem = run->x->mem;
    const struct sink *sink = run->sinks[sink_no].sink;
    const struct agg_state *state = run->sinks[sink_no].state;
    struct groups merged;
    i64 expected = part_rows(state, share.partition, share.end) / 2 >> share.bits;
    TRY(exec_check(run->x));
    bool fine = groups_init(&merged, mem, sink->word_count, sink->words, 0, expected) &&
                merge_all(&merged, state, &share);
    if (!fine && mem->temp && share.bits < SHARE_BITS_MOST && expected >= SHARE_LEAST) {
        groups_fini(&merged);
        share.bits += SHARE_BITS;
        share.value <<= SHARE_BITS;
        for (u64 i = 0; i < 1 << SHARE_BITS; i++, share.value++) {
            TRY(finish_share(w, sink_no, share));
        }
        atomic_fetch_add_explicit(&run->groups_shared, 1, memory_order_relaxed);
        return ERR_OK;
    }
    if (!fine && mem->temp) {
        groups_fini(&merged);
        fine = groups_init_least(&merged, mem, sink->word_count, sink->words) &&
               merge_all(&merged, state, &share);
    }
    wf_status status = fine ? emit_groups(w, sink_no, &merged)
                            : sink_refused(w, merged.cap * merged.stride * 16);
    groups_fini(&merged);
    return status;
}

static FALLIBLE agg_finish(struct worker *w, u32 sink_no, i64 partition) {
    struct pipe_run *run = w->run;
    const struct agg_state *state = run->sinks[sink_no].state;
    if (state->slot_keys) {
        return finish_slots(w, sink_no, partition);
    }
    if (state->active_count <= 1 && !state->parts_together) {
        return state->active_count ? emit_groups(w, sink_no, &state->active[0]->groups) : ERR_OK;
    }
    i64 first = partition * state->parts_together;
    return finish_share(w, sink_no,
                        (struct agg_share){.partition = first, .end = first + state->parts_together});
}

static void agg_close(struct pipe_run *run, u32 sink_no) {
    struct memory *mem = run->x->mem;
    for (i32 k = 0; k < run->worker_count; k++) {
        struct agg_worker *agg = agg_of(run, k, sink_no);
        if (agg) {
            mem_free(mem, agg->words, agg->words_bytes);
            mem_free(mem, agg->seen, agg->seen_bytes);
            if (agg->parts) {
                parts_fini(agg->parts);
            }
            groups_fini(&agg->groups);
            runs_fini(&agg->runs, mem);
        }
    }
}

void agg_turn(struct pipe_run *run, u32 sink_no) {
    struct agg_state *state = run->sinks[sink_no].state;
    agg_close(run, sink_no);
    rest_chunks(run, sink_no);
    if (!state->spare) {
        state->spare = NEW_ARRAY(run->x->arena, struct agg_worker *, run->worker_count + 1);
    }
    for (i32 k = 0; k < run->worker_count; k++) {
        struct agg_worker *agg = agg_of(run, k, sink_no);
        if (agg) {
            struct agg_parts *parts = agg->parts ? agg->parts : agg->spare_parts;
            *agg = (struct agg_worker){.spare_parts = parts};
            state->spare[k] = agg;
            run->workers[k]->sinks[sink_no] = NULL;
        }
    }
    state->active_count = 0;
    state->slot_keys = state->parts_together = 0;
}

static void agg_end(struct pipe_run *run, u32 sink_no) {
    struct agg_state *state = run->sinks[sink_no].state;
    agg_close(run, sink_no);
    if (state && run->feeds) {
        state->tail = NULL;
        state->tail_room = 0;
        rest_chunks(run, sink_no);
    }
}

const struct sink_class sink_agg = {agg_begin,  agg_consume, agg_combine,
                                    agg_finish, agg_end};

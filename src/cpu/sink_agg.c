/* sink_agg.c: aggregation into rows of 64-bit words.
 *
 * Three forms, chosen by what is known of the key. No key: one row of words per worker. Keys below
 * 2^12: arrays per word, indexed by the key, in four replicas while small so that equal
 * neighbouring keys do not wait for each other's store. Otherwise a table of groups per worker;
 * when several workers have many groups, the tables are split by hash bits and the parts merged in
 * parallel. Partial states have one layout (key, words) and merge by each word's operation, in any
 * order. */
#include "cpu/cpu_int.h"
#include "cpu/groups.h"

enum {
    TINY_BITS = 12,
    REPLICA_BITS = 8,
    DIRECT_BITS = 20,
    PARTITION_BITS = 6,
    MERGE_ROWS = 16 << 10 /* groups of all workers from which merging in parallel pays */
};

enum agg_form { AGG_ONE, AGG_TINY, AGG_GROUPS };

struct agg_worker {
    i64 *words; /* ONE: word_count; TINY: [word][replica][key] */
    i64 words_bytes;
    b8 *seen; /* TINY: per key */
    i64 seen_bytes;
    struct groups groups;
    u32 *order; /* GROUPS: rows sorted by partition */
    i64 order_bytes;
    i64 starts[(1 << PARTITION_BITS) + 1];
};

struct agg_state {
    u8 form;
    i64 keys;     /* TINY */
    i64 replicas; /* TINY */
};

static FALLIBLE agg_begin(struct pipe_run *run, struct sink_run *sink) {
    struct agg_state *state = NEW(run->x->arena, struct agg_state);
    const struct sink *def = sink->sink;
    variable_reset(&run->x->vars[def->var]);
    run->x->vars[def->var].on_host = 1;
    state->form = def->key == NO_REG ? AGG_ONE : def->key_bits <= TINY_BITS ? AGG_TINY : AGG_GROUPS;
    state->keys = state->form == AGG_TINY ? 1LL << def->key_bits : 1;
    state->replicas = state->form == AGG_TINY && def->key_bits <= REPLICA_BITS ? VEC_REPLICAS : 1;
    sink->state = state;
    return ERR_OK;
}

static FALLIBLE agg_evict(struct worker *w, u32 sink_no, i64 partition, i64 bytes) {
    UNUSED(sink_no);
    UNUSED(partition);
    return memory_refused(w->run->x->mem, &w->err, bytes);
}

static i64 tiny_bytes(const struct agg_state *state, const struct sink *sink) {
    return MAX_OF((i64)sink->word_count, 1) * state->replicas * state->keys * (i64)sizeof(i64);
}

static FALLIBLE open_worker(struct worker *w, u32 sink_no, struct agg_worker *agg) {
    const struct sink *sink = w->run->sinks[sink_no].sink;
    const struct agg_state *state = w->run->sinks[sink_no].state;
    struct memory *mem = w->run->x->mem;
    if (state->form == AGG_GROUPS) {
        u32 direct = sink->key_bits <= DIRECT_BITS ? sink->key_bits : 0;
        if (!groups_init(&agg->groups, mem, sink->word_count, sink->words, direct, 0)) {
            return agg_evict(w, sink_no, 0, 1 << 16);
        }
        return ERR_OK;
    }
    agg->words_bytes = tiny_bytes(state, sink);
    agg->words = mem_alloc(mem, agg->words_bytes);
    agg->seen_bytes = state->keys;
    agg->seen = mem_alloc(mem, agg->seen_bytes);
    if (!agg->words || !agg->seen) {
        return agg_evict(w, sink_no, 0, agg->words_bytes + agg->seen_bytes);
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

static FALLIBLE consume_groups(struct worker *w, u32 sink_no, const struct sink *sink,
                               struct agg_worker *agg, struct frame *fr) {
    const struct vec_table *vec = w->run->pipe.vec;
    struct groups *g = &agg->groups;
    const i64 *key = frame_read(w, fr, sink->key);
    if (fr->sel) {
        vec->gather[3](w->keys, key, fr->sel, fr->m);
        key = w->keys;
    }
    if (!groups_find(g, vec, key, fr->m, w->hash, w->group)) {
        return agg_evict(w, sink_no, 0, g->cap * g->stride * 16);
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
        agg = NEW(&w->arena, struct agg_worker);
        w->sinks[sink_no] = agg;
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

static struct chunk *result_chunk(struct exec *x, const struct sink *sink, i64 rows) {
    return chunk_new(x, &x->program->vars[sink->var], rows, false);
}

static FALLIBLE combine_one(struct pipe_run *run, u32 sink_no) {
    const struct sink *sink = run->sinks[sink_no].sink;
    struct chunk *chunk = result_chunk(run->x, sink, 1);
    if (!chunk) {
        return memory_refused(run->x->mem, run->x->err, 64);
    }
    *(i64 *)chunk->cols[0].data = 0;
    for (u32 i = 0; i < sink->word_count; i++) {
        i64 word = word_identity(sink->words[i]);
        for (i32 k = 0; k < run->worker_count; k++) {
            const struct agg_worker *agg = agg_of(run, k, sink_no);
            word = agg ? word_apply(sink->words[i], word, agg->words[i]) : word;
        }
        *(i64 *)chunk->cols[1 + i].data = word;
    }
    variable_append(run->x, sink->var, chunk);
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
    struct chunk *chunk = rows ? result_chunk(run->x, sink, rows) : NULL;
    if (!chunk) {
        return rows ? memory_refused(run->x->mem, run->x->err, rows * 8) : ERR_OK;
    }
    i64 at = 0;
    for (i64 key = 0; key < state->keys; key++) {
        if (!tiny_seen(run, sink_no, key)) {
            continue;
        }
        ((i64 *)chunk->cols[0].data)[at] = key;
        for (u32 i = 0; i < sink->word_count; i++) {
            ((i64 *)chunk->cols[1 + i].data)[at] = tiny_word(run, sink_no, i, key);
        }
        at++;
    }
    variable_append(run->x, sink->var, chunk);
    return ERR_OK;
}

static i64 partition_of(i64 key) {
    return (i64)(hash_u64((u64)key) >> (64 - PARTITION_BITS));
}

struct split_task {
    struct pipe_run *run;
    u32 sink_no;
    _Atomic i32 refused;
};

/* Sorts one worker's rows by partition. */
static void split_worker(void *arg, i64 i, i32 number) {
    UNUSED(number);
    struct split_task *task = arg;
    struct agg_worker *agg = agg_of(task->run, (i32)i, task->sink_no);
    if (!agg) {
        return;
    }
    const struct groups *g = &agg->groups;
    agg->order_bytes = MAX_OF(g->count, 1) * (i64)sizeof(u32);
    agg->order = mem_alloc(task->run->x->mem, agg->order_bytes);
    if (!agg->order) {
        atomic_store(&task->refused, 1);
        return;
    }
    for (i64 r = 0; r < g->count; r++) {
        agg->starts[partition_of(g->rows[r * g->stride]) + 1]++;
    }
    i64 next[1 << PARTITION_BITS];
    for (i64 p = 0; p < 1 << PARTITION_BITS; p++) {
        agg->starts[p + 1] += agg->starts[p];
        next[p] = agg->starts[p];
    }
    for (i64 r = 0; r < g->count; r++) {
        agg->order[next[partition_of(g->rows[r * g->stride])]++] = (u32)r;
    }
}

static FALLIBLE combine_groups(struct pipe_run *run, u32 sink_no) {
    i64 total = 0;
    i32 active = 0;
    for (i32 k = 0; k < run->worker_count; k++) {
        const struct agg_worker *agg = agg_of(run, k, sink_no);
        total += agg ? agg->groups.count : 0;
        active += agg != NULL;
    }
    run->sinks[sink_no].partitions = 1;
    if (active <= 1 || total < MERGE_ROWS) {
        return ERR_OK;
    }
    struct split_task task = {.run = run, .sink_no = sink_no};
    tasks_run(run->x, run->worker_count, split_worker, &task);
    if (atomic_load(&task.refused)) {
        return memory_refused(run->x->mem, run->x->err, total * (i64)sizeof(u32));
    }
    run->sinks[sink_no].partitions = 1 << PARTITION_BITS;
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
static FALLIBLE emit_groups(struct worker *w, const struct sink *sink, const struct groups *g) {
    struct exec *x = w->run->x;
    if (g->count == 0) {
        return ERR_OK;
    }
    struct chunk *chunk = result_chunk(x, sink, g->count);
    if (!chunk) {
        return memory_refused(x->mem, &w->err, g->count * g->stride * (i64)sizeof(i64));
    }
    for (u32 c = 0; c < 1 + sink->word_count; c++) {
        i64 *out = chunk->cols[c].data;
        for (i64 r = 0; r < g->count; r++) {
            out[r] = g->rows[r * g->stride + c];
        }
    }
    variable_append(x, sink->var, chunk);
    return ERR_OK;
}

static bool merge_worker(struct groups *into, const struct agg_worker *agg, i64 partition) {
    const struct groups *g = &agg->groups;
    bool fine = true;
    if (!agg->order) {
        for (i64 r = 0; r < g->count && fine; r++) {
            fine = groups_merge(into, g->rows + r * g->stride);
        }
        return fine;
    }
    for (i64 i = agg->starts[partition]; i < agg->starts[partition + 1] && fine; i++) {
        fine = groups_merge(into, g->rows + (i64)agg->order[i] * g->stride);
    }
    return fine;
}

static FALLIBLE agg_finish(struct worker *w, u32 sink_no, i64 partition) {
    struct pipe_run *run = w->run;
    const struct sink *sink = run->sinks[sink_no].sink;
    struct agg_worker *only = NULL;
    i32 active = 0;
    for (i32 k = 0; k < run->worker_count; k++) {
        struct agg_worker *agg = agg_of(run, k, sink_no);
        only = agg ? agg : only;
        active += agg != NULL;
    }
    if (active <= 1) {
        return only ? emit_groups(w, sink, &only->groups) : ERR_OK;
    }
    struct groups merged;
    if (!groups_init(&merged, run->x->mem, sink->word_count, sink->words, 0, 0)) {
        groups_fini(&merged);
        return agg_evict(w, sink_no, partition, 1 << 16);
    }
    bool fine = true;
    for (i32 k = 0; k < run->worker_count && fine; k++) {
        const struct agg_worker *agg = agg_of(run, k, sink_no);
        fine = !agg || merge_worker(&merged, agg, partition);
    }
    wf_status status = fine ? emit_groups(w, sink, &merged)
                            : agg_evict(w, sink_no, partition, merged.cap * merged.stride * 16);
    groups_fini(&merged);
    return status;
}

static void agg_close(struct pipe_run *run, u32 sink_no) {
    struct memory *mem = run->x->mem;
    for (i32 k = 0; k < run->worker_count; k++) {
        struct agg_worker *agg = agg_of(run, k, sink_no);
        if (agg) {
            mem_free(mem, agg->words, agg->words_bytes);
            mem_free(mem, agg->seen, agg->seen_bytes);
            mem_free(mem, agg->order, agg->order_bytes);
            groups_fini(&agg->groups);
        }
    }
}

const struct sink_class sink_agg = {agg_begin,  agg_consume, agg_combine,
                                    agg_finish, agg_evict,   agg_close};

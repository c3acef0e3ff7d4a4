/* agg_runs.c: aggregation of rows that come in the order of their key.
 *
 * Where the source is sorted by the group key, equal keys are neighbours and a group ends where the
 * next one begins: no table, no hash, and memory is written once, in order. A worker sees the rows
 * of a morsel in order, so it numbers the runs of each vector, adds up every word by run, and
 * leaves a piece of finished groups per morsel. Only the first and the last group of a piece can go
 * on in its neighbours; runs_join merges those.
 *
 * That the rows come sorted is what the plan expects; it is not taken for granted. A key that
 * descends within a morsel ends this way of working for the worker, pieces that overlap end it for
 * all: what is there then are partial states, which are merged by partition as those of tables
 * are. Six million rows in runs of four take a sixth of the time that hashing one key a run took.
 */
#include "cpu/agg_runs.h"

#include <stdlib.h>

#ifdef WF_HARD
enum { PIECE_ROWS = 64 };
#else
enum { PIECE_ROWS = 16 << 10 }; /* key and two words of so many runs stay in the cache */
#endif

bool runs_init(struct agg_runs *runs, struct memory *mem, const struct sink *sink,
               i64 vector_rows) {
    *runs = (struct agg_runs){.cap = MAX_OF((i64)PIECE_ROWS, 2 * vector_rows), .morsel = -1};
    runs->bytes = runs->cap * (1 + (i64)sink->word_count) * (i64)sizeof(i64);
    runs->memory = mem_alloc(mem, runs->bytes);
    return runs->memory != NULL;
}

void runs_fini(struct agg_runs *runs, struct memory *mem) {
    for (i64 i = 0; i < runs->pieces.count; i++) {
        chunk_release(runs->pieces.items[i]);
    }
    runs->pieces.count = 0;
    mem_free(mem, runs->memory, runs->bytes);
    runs->memory = NULL;
}

bool runs_flush(struct worker *w, const struct sink *sink, struct agg_runs *runs) {
    struct exec *x = w->run->x;
    if (runs->count == 0) {
        return true;
    }
    struct chunk *chunk = chunk_new(x, &x->program->vars[sink->var], runs->count, false);
    if (!chunk) {
        return false;
    }
    chunk->order = runs->morsel << 24 | runs->piece++;
    for (u32 c = 0; c < 1 + sink->word_count; c++) {
        memcpy(chunk->cols[c].data, runs->memory + c * runs->cap,
               (size_t)runs->count * sizeof(i64));
    }
    runs->count = 0;
    VEC_PUSH(&w->arena, &runs->pieces, chunk);
    return true;
}

/* One word of the runs of a vector, of which those from `fresh` to `last` begin in it. A sum needs
 * no identity in its place: it is written, not added to. */
static void add_word(struct worker *w, const struct sink *sink, u32 number, i64 *word,
                     struct frame *fr, i64 fresh, i64 last) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    u8 op = sink->words[number];
    const i64 *x = frame_read(w, fr, sink->word_regs[number]);
    if (fr->sel && !pipe->is_const[sink->word_regs[number]]) {
        pipe->vec->gather[3](w->rows, x, fr->sel, fr->m);
        x = w->rows;
    }
    if (op == WORD_ADD) {
        i64 first = w->group[0];
        pipe->vec->add_runs(word, w->group, x, fr->m, first < fresh ? (u64)word[first] : 0);
    } else {
        i64 identity = word_identity(op);
        for (i64 r = fresh; r <= last; r++) {
            word[r] = identity;
        }
        pipe->vec->group[op](word, 1, w->group, x, NULL, fr->m);
    }
}

enum runs_end runs_consume(struct worker *w, const struct sink *sink, struct agg_runs *runs,
                           struct frame *fr, const i64 *key) {
    if (w->morsel != runs->morsel || runs->count + fr->m > runs->cap) {
        if (!runs_flush(w, sink, runs)) {
            return RUNS_REFUSED;
        }
        runs->piece = w->morsel != runs->morsel ? 0 : runs->piece;
        runs->morsel = w->morsel;
    }
    i64 *keys = runs->memory;
    i64 fresh = runs->count;
    if (fr->m == 0) {
        return RUNS_TAKEN;
    }
    i64 last = w->run->pipe.vec->number_runs(w->group, keys, key, fr->m, fresh - 1);
    if (last < 0) {
        return RUNS_DESCEND;
    }
    for (u32 i = 0; i < sink->word_count; i++) {
        add_word(w, sink, i, runs->memory + (1 + i) * runs->cap, fr, fresh, last);
    }
    runs->count = last + 1;
    return RUNS_TAKEN;
}

static int by_order(const void *a, const void *b) {
    const struct chunk *ca = *(struct chunk *const *)a;
    const struct chunk *cb = *(struct chunk *const *)b;
    return ca->order < cb->order ? -1 : ca->order > cb->order;
}

static const i64 *keys_of(const struct chunk *piece) {
    return piece->cols[0].data;
}

/* The last group of one piece goes on as the first of the next. */
static void carry_group(struct chunk *from, struct chunk *to, const struct sink *sink) {
    from->rows--;
    for (u32 i = 0; i < sink->word_count; i++) {
        i64 *word = to->cols[1 + i].data;
        word[0] =
            word_apply(sink->words[i], ((const i64 *)from->cols[1 + i].data)[from->rows], word[0]);
    }
}

bool runs_join(struct chunk **pieces, i64 *count, const struct sink *sink) {
    if (*count > 1) {
        qsort(pieces, (size_t)*count, sizeof *pieces, by_order);
    }
    for (i64 i = 1; i < *count; i++) {
        if (keys_of(pieces[i - 1])[pieces[i - 1]->rows - 1] > keys_of(pieces[i])[0]) {
            return false;
        }
    }
    i64 kept = 0;
    for (i64 i = 0; i < *count; i++) {
        struct chunk *before = kept ? pieces[kept - 1] : NULL;
        if (before && keys_of(before)[before->rows - 1] == keys_of(pieces[i])[0]) {
            carry_group(before, pieces[i], sink);
        }
        if (before && before->rows == 0) {
            chunk_release(before);
            kept--;
        }
        pieces[kept++] = pieces[i];
    }
    *count = kept;
    return true;
}

bool runs_to_parts(struct agg_parts *parts, const struct chunk *piece) {
    for (i64 r = 0; r < piece->rows; r++) {
        i64 *to = parts_row(parts, hash_u64((u64)keys_of(piece)[r]));
        if (!to) {
            return false;
        }
        for (u32 c = 0; c < piece->col_count; c++) {
            to[c] = ((const i64 *)piece->cols[c].data)[r];
        }
        if (parts->full) {
            parts_settle(parts);
        }
    }
    return true;
}

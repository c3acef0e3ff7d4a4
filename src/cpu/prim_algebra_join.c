/* prim_algebra_join.c: the CPU's joins and set operations of sorted relations.
 *
 * The merge of both inputs is cut into ranges of equal length by the merge path, so that work is
 * even whatever the keys; of equal keys those of y come first, so that an x knows all its partners
 * when it is met. A range that starts within a run of equal y searches the run's start once. Ranges
 * are joined twice, to count and to write; pairs go through a small buffer, so that the loop that
 * makes tuples of them is the same for all. */
#include "cpu/rel_int.h"
#include "cpu/rel_words.h"

enum { RANGE_ROWS = 1 << 13 }; /* where nothing but the merge runs over them */

struct join {
    const struct rel_join *j;
    i64 *splits, *backs, *counts;
    i64 total; /* of words in the merge */
    i64 range_rows;
    bool write;
};

/* Pairs of positions to tuples. */
#define COMBINE(IN, OUT, T)                                                                     \
    static inline T bits_##IN##_##OUT(IN word, const struct rel_move *m) {                      \
        return (T)((T)((T)(word >> m->from) & (T)((u128)m->mask_high << 64 | m->mask_low))      \
                   << m->to);                                                                   \
    }                                                                                           \
    static void combine_##IN##_##OUT(const struct rel_join *j, OUT *out, const i64 *x,          \
                                     const i64 *y, i64 n) {                                     \
        const struct rel_combine *c = &j->combine;                                              \
        const IN *xs = j->x.data;                                                               \
        const IN *ys = j->y.data;                                                               \
        const T no_x = (T)((u128)c->no_x_high << 64 | c->no_x_low);                             \
        const T no_y = (T)((u128)c->no_y_high << 64 | c->no_y_low);                             \
        for (i64 i = 0; i < n && j->kind == REL_PAIRS; i++) {                                   \
            out[i] =                                                                            \
                (OUT)(bits_##IN##_##OUT(xs[x[i]], &c->x) | bits_##IN##_##OUT(ys[y[i]], &c->y)); \
        }                                                                                       \
        for (i64 i = 0; i < n && j->kind != REL_PAIRS; i++) {                                   \
            T word = x[i] >= 0 ? bits_##IN##_##OUT(xs[x[i]], &c->x)                             \
                               : (T)(bits_##IN##_##OUT(ys[y[i]], &c->key) | no_x);              \
            out[i] = (OUT)(word | (y[i] >= 0 ? bits_##IN##_##OUT(ys[y[i]], &c->y) : no_y));     \
        }                                                                                       \
    }
REL_WORD_PAIRS(COMBINE)
#undef COMBINE

static void flush_tuples(const struct rel_join *j, i64 at, i64 n, const i64 *x, const i64 *y) {
    i32 in_bytes = elem_bytes[j->x.type];
    i32 out_bytes = elem_bytes[j->out.type];
#define CASE(IN, OUT, T)                                                \
    if (in_bytes == (i32)sizeof(IN) && out_bytes == (i32)sizeof(OUT)) { \
        combine_##IN##_##OUT(j, (OUT *)j->out.data + at, x, y, n);      \
    }
    REL_WORD_PAIRS(CASE)
#undef CASE
}

static void flush_positions(const struct rel_join *j, i64 at, i64 n, const i64 *x, const i64 *y) {
    if (elem_bytes[j->out_x.type] == 4) {
        for (i64 i = 0; i < n; i++) {
            ((u32 *)j->out_x.data)[at + i] = (u32)x[i];
            ((u32 *)j->out_y.data)[at + i] = (u32)y[i];
        }
    } else {
        memcpy((i64 *)j->out_x.data + at, x, (size_t)n * 8);
        memcpy((i64 *)j->out_y.data + at, y, (size_t)n * 8);
    }
}

void range_flush(struct rel_range *r) {
    const struct rel_join *j = r->target;
    if (j) {
        i64 n = MAX_OF(0, MIN_OF(r->held, j->out.count - r->at));
        (j->indexes ? flush_positions : flush_tuples)(j, r->at, n, r->x, r->y);
    }
    r->at += r->held;
    r->count += r->held;
    r->held = 0;
}

static void split_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct join *s = arg;
    const struct rel_rows *x = &s->j->x;
    const struct rel_rows *y = &s->j->y;
    u32 shift = s->j->combine.key_shift;
    i64 d = MIN_OF(t * s->range_rows, s->total);
    i32 bytes = elem_bytes[x->type];
    i64 a = bytes == 4   ? split_u32(x->data, x->count, y->data, y->count, d, shift)
            : bytes == 8 ? split_u64(x->data, x->count, y->data, y->count, d, shift)
                         : split_u128(x->data, x->count, y->data, y->count, d, shift);
    i64 b = d - a;
    s->splits[t] = a;
    s->backs[t] = 0;
    if (a < x->count && b > 0 && rel_word_at(x, a) >> shift == rel_word_at(y, b - 1) >> shift) {
        s->backs[t] = b - (bytes == 4   ? run_start_u32(y->data, b, shift)
                           : bytes == 8 ? run_start_u64(y->data, b, shift)
                                        : run_start_u128(y->data, b, shift));
    }
}

static void join_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct join *s = arg;
    const struct rel_join *j = s->j;
    struct rel_range r;
    r.x_first = s->splits[t];
    r.x_end = s->splits[t + 1];
    r.y_first = MIN_OF(t * s->range_rows, s->total) - r.x_first;
    r.y_end = MIN_OF((t + 1) * s->range_rows, s->total) - r.x_end;
    r.x_count = j->x.count;
    r.back = s->backs[t];
    r.shift = j->combine.key_shift;
    r.kind = j->kind;
    r.count = 0;
    r.target = s->write ? j : NULL;
    r.at = s->write ? s->counts[t] : 0;
    r.held = 0;
    i32 bytes = elem_bytes[j->x.type];
    if (j->stage != REL_STAGE_MERGE) {
        rel_stage_join(&r, j->stage, bytes, (const u8 *)j->x.data + r.x_first * bytes,
                       (const u8 *)j->y.data + r.y_first * bytes);
    } else if (bytes == 4) {
        join_u32(&r, j->x.data, j->y.data);
    } else if (bytes == 8) {
        join_u64(&r, j->x.data, j->y.data);
    } else {
        join_u128(&r, j->x.data, j->y.data);
    }
    range_flush(&r);
    if (!s->write) {
        s->counts[t] = r.count;
    }
}

wf_status cpu_rel_join(struct prim_job *job, const struct rel_join *join, i64 *out_count) {
    struct join s = {.j = join, .total = join->x.count + join->y.count};
    s.range_rows = join->stage == REL_STAGE_MERGE ? RANGE_ROWS : STAGE_ROWS;
    i64 ranges = (s.total + s.range_rows - 1) / s.range_rows;
    s.splits = prim_take(job, (ranges + 1) * 8);
    s.backs = prim_take(job, (ranges + 1) * 8);
    s.counts = prim_take(job, (ranges + 1) * 8);
    if (job->measuring) {
        return ERR_OK;
    }
    tasks_run(job->x, ranges + 1, split_task, &s);
    TRY(exec_check(job->x));
    tasks_run(job->x, ranges, join_task, &s);
    TRY(exec_check(job->x));
    i64 total = 0;
    for (i64 t = 0; t < ranges; t++) {
        i64 count = s.counts[t];
        s.counts[t] = total;
        total += count;
    }
    *out_count = total;
    if (total > join->out.count) {
        return ERR_OK; /* the entry point says so */
    }
    s.write = true;
    tasks_run(job->x, ranges, join_task, &s);
    return exec_check(job->x);
}

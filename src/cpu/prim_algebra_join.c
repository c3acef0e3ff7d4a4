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
    u8 *words; /* of paged inputs: room for a range of both and one more word, per worker */
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

/* Rows of pages to the places where they lie; neighbours mostly share a page. */
static void to_places(const struct rel_rows *rows, i64 *at, i64 n) {
    i64 first = 0;
    i64 end = 0; /* of the rows whose places are `by` further on */
    i64 by = 0;
    for (i64 i = 0; i < n && rows->starts; i++) {
        if (at[i] >= 0 && (at[i] < first || at[i] >= end)) {
            i64 place;
            first = at[i];
            end = first + rel_stretch(rows, first, &place);
            by = place - first;
        }
        at[i] += at[i] >= 0 ? by : 0;
    }
}

void range_flush(struct rel_range *r) {
    const struct rel_join *j = r->target;
    if (j) {
        i64 n = MAX_OF(0, MIN_OF(r->held, j->out.count - r->at));
        to_places(&j->x, r->x, n);
        to_places(&j->y, r->y, n);
        (j->indexes ? flush_positions : flush_tuples)(j, r->at, n, r->x, r->y);
    }
    r->at += r->held;
    r->count += r->held;
    r->held = 0;
}

/* How many of the first d rows of the merge are of x; of equal keys those of y come first. */
static i64 split_paged(const struct rel_join *j, i64 d, u32 shift) {
    i64 lo = MAX_OF(0, d - j->y.count);
    i64 hi = MIN_OF(d, j->x.count);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (rel_word_at(&j->x, mid) >> shift < rel_word_at(&j->y, d - 1 - mid) >> shift) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The first row of y with the key of row end - 1. */
static i64 run_start_paged(const struct rel_join *j, i64 end, u32 shift) {
    u128 key = rel_word_at(&j->y, end - 1) >> shift;
    i64 lo = 0;
    i64 hi = end - 1;
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (rel_word_at(&j->y, mid) >> shift < key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void split_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct join *s = arg;
    const struct rel_rows *x = &s->j->x;
    const struct rel_rows *y = &s->j->y;
    u32 shift = s->j->combine.key_shift;
    i64 d = MIN_OF(t * s->range_rows, s->total);
    i32 bytes = elem_bytes[x->type];
    bool paged = x->starts || y->starts;
    i64 a = paged        ? split_paged(s->j, d, shift)
            : bytes == 4 ? split_u32(x->data, x->count, y->data, y->count, d, shift)
            : bytes == 8 ? split_u64(x->data, x->count, y->data, y->count, d, shift)
                         : split_u128(x->data, x->count, y->data, y->count, d, shift);
    i64 b = d - a;
    s->splits[t] = a;
    s->backs[t] = 0;
    if (a < x->count && b > 0 && rel_word_at(x, a) >> shift == rel_word_at(y, b - 1) >> shift) {
        s->backs[t] = b - (paged        ? run_start_paged(s->j, b, shift)
                           : bytes == 4 ? run_start_u32(y->data, b, shift)
                           : bytes == 8 ? run_start_u64(y->data, b, shift)
                                        : run_start_u128(y->data, b, shift));
    }
}

static void join_task(void *arg, i64 t, i32 worker) {
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
    i64 x_end = MIN_OF(r.x_end + 1, r.x_count); /* the merge looks ahead */
    u8 *room = s->words ? s->words + worker * (s->range_rows + 1) * bytes : NULL;
    const void *x = rel_words(&j->x, r.x_first, x_end, room);
    const void *y =
        rel_words(&j->y, r.y_first, r.y_end, room ? room + (x_end - r.x_first) * bytes : NULL);
    r.x_base = r.x_first;
    r.y_base = r.y_first;
    if (j->stage != REL_STAGE_MERGE) {
        rel_stage_join(&r, j->stage, bytes, x, y);
    } else if (bytes == 4) {
        join_u32(&r, x, y);
    } else if (bytes == 8) {
        join_u64(&r, x, y);
    } else {
        join_u128(&r, x, y);
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
    if (join->x.paged || join->y.paged) {
        i64 workers = job->x->pool ? pool_worker_count(job->x->pool) : 1;
        s.words = prim_take(job, workers * (s.range_rows + 1) * elem_bytes[join->x.type]);
    }
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

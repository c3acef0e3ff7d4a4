/* prim_sort_loops.h: sorts by comparison of one type of element: merge, bitonic, quick.
 *
 * Included once per type by prim_sort_items.c, which defines SORT_ELEM, SORT_LESS(a, b, o) and
 * SORT_NAME(name) before; alone it is the loops of 64-bit words. Merge sort sorts runs that fit the
 * cache as tasks and then merges pairs of runs, each merge cut into ranges of its output (merge
 * path), so that the last one still keeps all workers busy. Bitonic and quick sort are here because
 * the GPU has them: the same networks and splits, spread over tasks. A bitonic network whose first
 * comparisons of every stage mirror their distances needs no padding: partners behind the end count
 * as greatest and stay. */
#include "cpu/prim_order.h"

#ifndef SORT_ELEM
#define SORT_ELEM u64
#define SORT_LESS(a, b, o) (*(a) < *(b))
#define SORT_NAME(name) words_##name
#endif

#ifndef SORT_SIZES
#define SORT_SIZES
enum {
    SORT_SMALL = 16, /* insertion sort */
#ifdef WF_HARD
    SORT_RUN = 1 << 8,
#else
    SORT_RUN = 1 << 13, /* a power of two */
#endif
    QUICK_PARTS = 64,
    QUICK_SAMPLE = 16, /* per part */
    QUICK_DEPTH = 60,
    QUICK_BLOCKS = 64
};
static inline i64 run_count(i64 n) {
    return (n + SORT_RUN - 1) / SORT_RUN;
}
#endif

struct SORT_NAME(job) {
    const struct item_order *o;
    SORT_ELEM *from, *to;
    i64 n;
    i64 run, step;
    const i64 *bounds;
    SORT_ELEM splitters[QUICK_PARTS];
    i64 *counts; /* [block][part] */
    i64 block_rows;
};

static void SORT_NAME(insertion)(const struct item_order *o, SORT_ELEM *at, i64 n) {
    UNUSED(o);
    for (i64 i = 1; i < n; i++) {
        SORT_ELEM item = at[i];
        i64 k = i;
        for (; k > 0 && SORT_LESS(&item, &at[k - 1], o); k--) {
            at[k] = at[k - 1];
        }
        at[k] = item;
    }
}

/* --- merge --- */

static void SORT_NAME(merge)(const struct item_order *o, SORT_ELEM *to, const SORT_ELEM *a, i64 a_n,
                             const SORT_ELEM *b, i64 b_n, i64 n) {
    UNUSED(o);
    i64 i = 0;
    i64 j = 0;
    i64 k = 0;
    while (k < n && i < a_n && j < b_n) {
        bool take_b = SORT_LESS(&b[j], &a[i], o);
        to[k++] = take_b ? b[j] : a[i];
        j += take_b;
        i += !take_b;
    }
    memcpy(to + k, i < a_n ? a + i : b + j, (size_t)(n - k) * sizeof *to);
}

/* Stable, on one thread; the result is in `at`. */
static void SORT_NAME(sort_run)(const struct item_order *o, SORT_ELEM *at, SORT_ELEM *temp, i64 n) {
    for (i64 i = 0; i < n; i += SORT_SMALL) {
        SORT_NAME(insertion)(o, at + i, MIN_OF(n - i, SORT_SMALL));
    }
    SORT_ELEM *from = at;
    SORT_ELEM *to = temp;
    for (i64 run = SORT_SMALL; run < n; run *= 2) {
        for (i64 i = 0; i < n; i += 2 * run) {
            i64 a_n = MIN_OF(run, n - i);
            i64 b_n = MIN_OF(run, n - i - a_n);
            SORT_NAME(merge)(o, to + i, from + i, a_n, from + i + a_n, b_n, a_n + b_n);
        }
        SORT_ELEM *last = from;
        from = to;
        to = last;
    }
    if (from != at) {
        memcpy(at, from, (size_t)n * sizeof *at);
    }
}

static void SORT_NAME(run_task)(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 first = t * SORT_RUN;
    SORT_NAME(sort_run)(s->o, s->from + first, s->to + first, MIN_OF(s->n - first, SORT_RUN));
}

/* How many of the first `diagonal` elements of the merge come from a. */
static i64 SORT_NAME(path)(const struct item_order *o, const SORT_ELEM *a, i64 a_n,
                           const SORT_ELEM *b, i64 b_n, i64 diagonal) {
    UNUSED(o);
    i64 low = MAX_OF(0, diagonal - b_n);
    i64 high = MIN_OF(diagonal, a_n);
    while (low < high) {
        i64 mid = low + (high - low) / 2;
        bool b_first = SORT_LESS(&b[diagonal - 1 - mid], &a[mid], o);
        low = b_first ? low : mid + 1;
        high = b_first ? mid : high;
    }
    return low;
}

/* SORT_RUN elements of the output of one level of merges; runs are multiples of that. */
static void SORT_NAME(merge_task)(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 first = t * SORT_RUN;
    i64 rows = MIN_OF(s->n - first, SORT_RUN);
    i64 pair = first / (2 * s->run) * (2 * s->run);
    i64 a_n = MIN_OF(s->run, s->n - pair);
    i64 b_n = MIN_OF(s->run, s->n - pair - a_n);
    const SORT_ELEM *a = s->from + pair;
    const SORT_ELEM *b = a + a_n;
    i64 i = SORT_NAME(path)(s->o, a, a_n, b, b_n, first - pair);
    i64 j = first - pair - i;
    SORT_NAME(merge)(s->o, s->to + first, a + i, a_n - i, b + j, b_n - j, rows);
}

static void SORT_NAME(copy_task)(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 first = t * SORT_RUN;
    memcpy(s->to + first, s->from + first, (size_t)MIN_OF(s->n - first, SORT_RUN) * sizeof *s->to);
}

static FALLIBLE SORT_NAME(merge_sort)(struct exec *x, const struct item_order *o, void *data,
                                      void *temp, i64 n) {
    struct SORT_NAME(job) s = {.o = o, .from = data, .to = temp, .n = n};
    tasks_run(x, run_count(n), SORT_NAME(run_task), &s);
    for (s.run = SORT_RUN; s.run < n; s.run *= 2) {
        TRY(exec_check(x));
        tasks_run(x, run_count(n), SORT_NAME(merge_task), &s);
        SORT_ELEM *last = s.from;
        s.from = s.to;
        s.to = last;
    }
    if (s.from != data) {
        tasks_run(x, run_count(n), SORT_NAME(copy_task), &s);
    }
    return exec_check(x);
}

/* --- bitonic --- */

static inline void SORT_NAME(exchange)(const struct item_order *o, SORT_ELEM *a, SORT_ELEM *b) {
    UNUSED(o);
    SORT_ELEM x = *a;
    SORT_ELEM y = *b;
    bool swap = SORT_LESS(&y, &x, o);
    *a = swap ? y : x;
    *b = swap ? x : y;
}

/* Everything `step` apart within at[0..n). */
static void SORT_NAME(compare)(const struct item_order *o, SORT_ELEM *at, i64 n, i64 step) {
    for (i64 base = 0; base + step < n; base += 2 * step) {
        i64 pairs = MIN_OF(step, n - base - step);
        for (i64 i = 0; i < pairs; i++) {
            SORT_NAME(exchange)(o, at + base + i, at + base + step + i);
        }
    }
}

/* The first comparisons of a stage: mirrored within runs. */
static void SORT_NAME(mirror)(const struct item_order *o, SORT_ELEM *at, i64 n, i64 run) {
    for (i64 middle = run / 2; middle < n; middle += run) {
        i64 pairs = MIN_OF(run / 2, n - middle);
        for (i64 i = 0; i < pairs; i++) {
            SORT_NAME(exchange)(o, at + middle - 1 - i, at + middle + i);
        }
    }
}

/* A tile from scratch, or with `run` the last distances of a stage. */
static void SORT_NAME(tile_task)(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    SORT_ELEM *at = s->from + t * SORT_RUN;
    i64 n = MIN_OF(s->n - t * SORT_RUN, SORT_RUN);
    for (i64 run = 2; s->run == 0 && run / 2 < n; run *= 2) {
        SORT_NAME(mirror)(s->o, at, n, run);
        for (i64 step = run / 4; step > 0; step /= 2) {
            SORT_NAME(compare)(s->o, at, n, step);
        }
    }
    for (i64 step = SORT_RUN / 2; s->run && step > 0; step /= 2) {
        SORT_NAME(compare)(s->o, at, n, step);
    }
}

/* A tile's elements with partners in other tiles; tiles that are the partners do nothing. */
static void SORT_NAME(far_task)(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 first = t * SORT_RUN;
    i64 half = s->step ? s->step : s->run / 2;
    if (first & half) {
        return;
    }
    i64 middle = first / (2 * half) * (2 * half) + half;
    for (i64 i = first; i < first + SORT_RUN; i++) {
        i64 other = s->step ? i + s->step : 2 * middle - 1 - i;
        if (other < s->n) {
            SORT_NAME(exchange)(s->o, s->from + i, s->from + other);
        }
    }
}

static FALLIBLE SORT_NAME(bitonic_sort)(struct exec *x, const struct item_order *o, void *data,
                                        i64 n) {
    struct SORT_NAME(job) s = {.o = o, .from = data, .n = n};
    tasks_run(x, run_count(n), SORT_NAME(tile_task), &s);
    for (s.run = 2 * SORT_RUN; s.run / 2 < n; s.run *= 2) {
        TRY(exec_check(x));
        s.step = 0;
        tasks_run(x, run_count(n), SORT_NAME(far_task), &s);
        for (s.step = s.run / 4; s.step >= SORT_RUN; s.step /= 2) {
            tasks_run(x, run_count(n), SORT_NAME(far_task), &s);
        }
        tasks_run(x, run_count(n), SORT_NAME(tile_task), &s);
    }
    return exec_check(x);
}

/* --- quick --- */

static const SORT_ELEM *SORT_NAME(median)(const struct item_order *o, const SORT_ELEM *a,
                                          const SORT_ELEM *b, const SORT_ELEM *c) {
    UNUSED(o);
    const SORT_ELEM *low = SORT_LESS(b, a, o) ? b : a;
    const SORT_ELEM *high = low == a ? b : a;
    return SORT_LESS(c, low, o) ? low : SORT_LESS(high, c, o) ? high : c;
}

/* Three parts: less than the pivot, equal, greater. Too deep means a bad run of pivots: merge. */
static void SORT_NAME(quick)(const struct item_order *o, SORT_ELEM *at, SORT_ELEM *temp, i64 n,
                             i32 depth) {
    while (n > SORT_SMALL) {
        if (depth-- == 0) {
            SORT_NAME(sort_run)(o, at, temp, n);
            return;
        }
        SORT_ELEM pivot = *SORT_NAME(median)(o, &at[0], &at[n / 2], &at[n - 1]);
        i64 less = 0;
        i64 next = 0;
        i64 greater = n;
        while (next < greater) {
            SORT_ELEM item = at[next];
            if (SORT_LESS(&item, &pivot, o)) {
                at[next++] = at[less];
                at[less++] = item;
            } else if (SORT_LESS(&pivot, &item, o)) {
                at[next] = at[--greater];
                at[greater] = item;
            } else {
                next++;
            }
        }
        bool left_small = less < n - greater;
        SORT_NAME(quick)
        (o, left_small ? at : at + greater, left_small ? temp : temp + greater,
         left_small ? less : n - greater, depth);
        at = left_small ? at + greater : at;
        temp = left_small ? temp + greater : temp;
        n = left_small ? n - greater : less;
    }
    SORT_NAME(insertion)(o, at, n);
}

static void SORT_NAME(quick_task)(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 first = s->bounds[p];
    SORT_NAME(quick)(s->o, s->to + first, s->from + first, s->bounds[p + 1] - first, QUICK_DEPTH);
}

/* The part of an element: how many splitters are not greater. */
static i64 SORT_NAME(part_of)(const struct SORT_NAME(job) * s, const SORT_ELEM *item) {
    i64 low = 0;
    for (i64 half = QUICK_PARTS / 2; half > 0; half /= 2) {
        low += SORT_LESS(item, &s->splitters[low + half - 1], s->o) ? 0 : half;
    }
    return low;
}

static void SORT_NAME(count_task)(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 *count = s->counts + b * QUICK_PARTS;
    i64 end = MIN_OF((b + 1) * s->block_rows, s->n);
    for (i64 i = b * s->block_rows; i < end; i++) {
        count[SORT_NAME(part_of)(s, &s->from[i])]++;
    }
}

static void SORT_NAME(scatter_task)(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct SORT_NAME(job) *s = arg;
    i64 *at = s->counts + b * QUICK_PARTS;
    i64 end = MIN_OF((b + 1) * s->block_rows, s->n);
    for (i64 i = b * s->block_rows; i < end; i++) {
        s->to[at[SORT_NAME(part_of)(s, &s->from[i])]++] = s->from[i];
    }
}

static void SORT_NAME(draw)(struct SORT_NAME(job) * s) {
    SORT_ELEM sample[2 * QUICK_PARTS * QUICK_SAMPLE];
    i64 count = QUICK_PARTS * QUICK_SAMPLE;
    for (i64 i = 0; i < count; i++) {
        sample[i] = s->from[(i64)(hash_u64((u64)i) % (u64)s->n)];
    }
    SORT_NAME(sort_run)(s->o, sample, sample + count, count);
    for (i64 p = 0; p + 1 < QUICK_PARTS; p++) {
        s->splitters[p] = sample[(p + 1) * QUICK_SAMPLE];
    }
}

/* The first split is by sampled splitters; the parts are sorted as tasks and copied back. */
static FALLIBLE SORT_NAME(quick_sort)(struct exec *x, const struct item_order *o, void *data,
                                      void *temp, i64 n) {
    struct SORT_NAME(job) s = {.o = o, .from = data, .to = temp, .n = n};
    i64 bounds[QUICK_PARTS + 1] = {0};
    i64 counts[QUICK_BLOCKS * QUICK_PARTS] = {0};
    if (n <= SORT_RUN) {
        SORT_NAME(quick)(o, data, temp, n, QUICK_DEPTH);
        return exec_check(x);
    }
    SORT_NAME(draw)(&s);
    s.counts = counts;
    s.bounds = bounds;
    s.block_rows = n / QUICK_BLOCKS + 1;
    tasks_run(x, QUICK_BLOCKS, SORT_NAME(count_task), &s);
    i64 at = 0;
    for (i64 p = 0; p < QUICK_PARTS; p++) {
        bounds[p] = at;
        for (i64 b = 0; b < QUICK_BLOCKS; b++) {
            i64 count = counts[b * QUICK_PARTS + p];
            counts[b * QUICK_PARTS + p] = at;
            at += count;
        }
    }
    bounds[QUICK_PARTS] = at;
    tasks_run(x, QUICK_BLOCKS, SORT_NAME(scatter_task), &s);
    TRY(exec_check(x));
    tasks_run(x, QUICK_PARTS, SORT_NAME(quick_task), &s);
    s.from = temp;
    s.to = data;
    tasks_run(x, run_count(n), SORT_NAME(copy_task), &s);
    return exec_check(x);
}

#undef SORT_ELEM
#undef SORT_LESS
#undef SORT_NAME

/* prim_sort_items.c: sorts by comparison: merge, bitonic, and quick sort, over items.
 *
 * Merge sort sorts runs that fit the cache as tasks and then merges pairs of runs, each merge cut
 * into ranges of its output (merge path), so that the last one still keeps all workers busy.
 * Bitonic and quick sort are here because the GPU has them: the same networks and splits, spread
 * over tasks. A bitonic network whose first comparisons of every stage mirror their distances needs
 * no padding: partners behind the end count as greatest and stay. */
#include "cpu/prim_order.h"

enum {
    SMALL = 16, /* insertion sort */
#ifdef WF_HARD
    RUN_ROWS = 1 << 8,
#else
    RUN_ROWS = 1 << 13,
#endif
    QUICK_PARTS = 64,
    QUICK_SAMPLE = 16, /* per part */
    QUICK_DEPTH = 60
};

struct items {
    struct exec *x;
    const struct item_order *o;
    struct radix_item *from, *to;
    i64 n;
    i64 run, step;
    i64 *bounds;
    i64 parts;
};

static void insertion(const struct item_order *o, struct radix_item *at, i64 n) {
    for (i64 i = 1; i < n; i++) {
        struct radix_item item = at[i];
        i64 k = i;
        for (; k > 0 && item_less(&item, &at[k - 1], o); k--) {
            at[k] = at[k - 1];
        }
        at[k] = item;
    }
}

static void merge(const struct item_order *o, struct radix_item *to, const struct radix_item *a,
                  i64 a_n, const struct radix_item *b, i64 b_n, i64 n) {
    i64 i = 0;
    i64 j = 0;
    for (i64 k = 0; k < n; k++) {
        bool take_b = j < b_n && (i >= a_n || item_less(&b[j], &a[i], o));
        to[k] = take_b ? b[j] : a[i];
        j += take_b;
        i += !take_b;
    }
}

/* Stable, on one thread; the result is in `at`. */
static void sort_one_run(const struct item_order *o, struct radix_item *at, struct radix_item *temp,
                         i64 n) {
    for (i64 i = 0; i < n; i += SMALL) {
        insertion(o, at + i, MIN_OF(n - i, SMALL));
    }
    struct radix_item *from = at;
    struct radix_item *to = temp;
    for (i64 run = SMALL; run < n; run *= 2) {
        for (i64 i = 0; i < n; i += 2 * run) {
            i64 a_n = MIN_OF(run, n - i);
            i64 b_n = MIN_OF(run, n - i - a_n);
            merge(o, to + i, from + i, a_n, from + i + a_n, b_n, a_n + b_n);
        }
        struct radix_item *last = from;
        from = to;
        to = last;
    }
    if (from != at) {
        memcpy(at, from, (size_t)n * sizeof *at);
    }
}

static void run_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct items *s = arg;
    i64 first = t * RUN_ROWS;
    sort_one_run(s->o, s->from + first, s->to + first, MIN_OF(s->n - first, RUN_ROWS));
}

/* How many of the first `diagonal` elements of the merge come from a. */
static i64 merge_path(const struct item_order *o, const struct radix_item *a, i64 a_n,
                      const struct radix_item *b, i64 b_n, i64 diagonal) {
    i64 low = MAX_OF(0, diagonal - b_n);
    i64 high = MIN_OF(diagonal, a_n);
    while (low < high) {
        i64 mid = low + (high - low) / 2;
        if (!item_less(&b[diagonal - 1 - mid], &a[mid], o)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* RUN_ROWS of the output of one level of merges; runs are multiples of that. */
static void merge_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct items *s = arg;
    i64 first = t * RUN_ROWS;
    i64 rows = MIN_OF(s->n - first, RUN_ROWS);
    i64 pair = first / (2 * s->run) * (2 * s->run);
    i64 a_n = MIN_OF(s->run, s->n - pair);
    i64 b_n = MIN_OF(s->run, s->n - pair - a_n);
    const struct radix_item *a = s->from + pair;
    const struct radix_item *b = a + a_n;
    i64 i = merge_path(s->o, a, a_n, b, b_n, first - pair);
    i64 j = first - pair - i;
    merge(s->o, s->to + first, a + i, a_n - i, b + j, b_n - j, rows);
}

static void copy_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct items *s = arg;
    i64 first = t * RUN_ROWS;
    memcpy(s->to + first, s->from + first, (size_t)MIN_OF(s->n - first, RUN_ROWS) * sizeof *s->to);
}

static i64 run_count(i64 n) {
    return (n + RUN_ROWS - 1) / RUN_ROWS;
}

wf_status items_merge_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                           struct radix_item *temp, i64 n) {
    struct items s = {.x = x, .o = o, .from = items, .to = temp, .n = n};
    tasks_run(x, run_count(n), run_task, &s);
    for (s.run = RUN_ROWS; s.run < n; s.run *= 2) {
        TRY(exec_check(x));
        tasks_run(x, run_count(n), merge_task, &s);
        struct radix_item *last = s.from;
        s.from = s.to;
        s.to = last;
    }
    if (s.from != items) {
        tasks_run(x, run_count(n), copy_task, &s);
    }
    return exec_check(x);
}

/* --- bitonic --- */

static void exchange(const struct item_order *o, struct radix_item *a, struct radix_item *b) {
    if (item_less(b, a, o)) {
        struct radix_item last = *a;
        *a = *b;
        *b = last;
    }
}

/* Comparisons of elements [first, end) with partners further up: mirrored within `run` when step is
 * 0, else `step` away. */
static void compare_range(const struct items *s, i64 first, i64 end) {
    for (i64 i = first; i < end; i++) {
        i64 other = s->step ? i ^ s->step : i ^ (s->run - 1);
        if (other > i && other < s->n) {
            exchange(s->o, &s->from[i], &s->from[other]);
        }
    }
}

static void compare_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct items *s = arg;
    compare_range(s, t * RUN_ROWS, MIN_OF((t + 1) * RUN_ROWS, s->n));
}

wf_status items_bitonic_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                             i64 n) {
    struct items s = {.x = x, .o = o, .from = items, .n = n};
    for (s.run = 2; s.run / 2 < n; s.run *= 2) {
        s.step = 0;
        tasks_run(x, run_count(n), compare_task, &s);
        for (s.step = s.run / 4; s.step > 0; s.step /= 2) {
            tasks_run(x, run_count(n), compare_task, &s);
        }
        TRY(exec_check(x));
    }
    return ERR_OK;
}

/* --- quick --- */

static const struct radix_item *median(const struct item_order *o, const struct radix_item *a,
                                       const struct radix_item *b, const struct radix_item *c) {
    const struct radix_item *low = item_less(b, a, o) ? b : a;
    const struct radix_item *high = low == a ? b : a;
    return item_less(c, low, o) ? low : item_less(high, c, o) ? high : c;
}

/* Three parts: less than the pivot, equal, greater. Too deep means a bad run of pivots: merge. */
static void quick(const struct item_order *o, struct radix_item *at, struct radix_item *temp, i64 n,
                  i32 depth) {
    while (n > SMALL) {
        if (depth-- == 0) {
            sort_one_run(o, at, temp, n);
            return;
        }
        struct radix_item pivot = *median(o, &at[0], &at[n / 2], &at[n - 1]);
        i64 less = 0;
        i64 next = 0;
        i64 greater = n;
        while (next < greater) {
            struct radix_item item = at[next];
            if (item_less(&item, &pivot, o)) {
                at[next++] = at[less];
                at[less++] = item;
            } else if (item_less(&pivot, &item, o)) {
                at[next] = at[--greater];
                at[greater] = item;
            } else {
                next++;
            }
        }
        bool left_small = less < n - greater;
        quick(o, left_small ? at : at + greater, left_small ? temp : temp + greater,
              left_small ? less : n - greater, depth);
        at = left_small ? at + greater : at;
        temp = left_small ? temp + greater : temp;
        n = left_small ? n - greater : less;
    }
    insertion(o, at, n);
}

static void quick_task(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    const struct items *s = arg;
    i64 first = s->bounds[p];
    quick(s->o, s->from + first, s->to + first, s->bounds[p + 1] - first, QUICK_DEPTH);
}

/* The part of an item: how many splitters are not greater. */
static i64 part_of(const struct items *s, const struct radix_item *splitters,
                   const struct radix_item *item) {
    i64 low = 0;
    i64 high = s->parts - 1;
    while (low < high) {
        i64 mid = (low + high) / 2;
        bool below = !item_less(item, &splitters[mid], s->o);
        low = below ? mid + 1 : low;
        high = below ? high : mid;
    }
    return low;
}

/* The first split is by sampled splitters into as many parts as keep all workers busy. */
wf_status items_quick_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                           struct radix_item *temp, i64 n) {
    struct items s = {.x = x, .o = o, .from = items, .to = temp, .n = n, .parts = 1};
    i64 bounds[QUICK_PARTS + 1] = {0};
    struct radix_item sample[2 * QUICK_PARTS * QUICK_SAMPLE];
    struct radix_item splitters[QUICK_PARTS];
    if (n > 2 * RUN_ROWS) {
        i64 count = QUICK_PARTS * QUICK_SAMPLE;
        for (i64 i = 0; i < count; i++) {
            sample[i] = items[(i64)(hash_u64((u64)i) % (u64)n)];
        }
        sort_one_run(o, sample, sample + count, count);
        s.parts = QUICK_PARTS;
        for (i64 p = 0; p + 1 < s.parts; p++) {
            splitters[p] = sample[(p + 1) * QUICK_SAMPLE];
        }
        i64 at[QUICK_PARTS + 1] = {0};
        for (i64 i = 0; i < n; i++) {
            at[part_of(&s, splitters, &items[i]) + 1]++;
        }
        for (i64 p = 0; p < s.parts; p++) {
            at[p + 1] += at[p];
        }
        memcpy(bounds, at, sizeof bounds);
        for (i64 i = 0; i < n; i++) {
            temp[at[part_of(&s, splitters, &items[i])]++] = items[i];
        }
        s.from = temp;
        s.to = items;
        TRY(exec_check(x));
    }
    bounds[s.parts] = n;
    s.bounds = bounds;
    tasks_run(x, s.parts, quick_task, &s);
    if (s.from != items) {
        tasks_run(x, run_count(n), copy_task, &s);
    }
    return exec_check(x);
}

/* prim_ops.c: the experiments of `bench prim`: Table 3 of "Relational joins on graphics processors"
 * (map, scatter, gather, prefix scan, split, sort), compaction, reductions, histograms.
 *
 * Every experiment runs on arrays that lie on its device, and once, small, on arrays of the host,
 * where its answer is compared with a plain loop. */
#include "bench_prim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static wf_array of(wf_elem type, const void *data, int64_t count) {
    return (wf_array){.type = type, .data = (void *)(uintptr_t)data, .count = count};
}
static wf_array u32s(const void *data, int64_t count) {
    return of(WF_ELEM_U32, data, count);
}

/* --- map --- */

static wf_status run_map(struct prim_case *c, int arg) {
    (void)arg;
    int64_t n = c->d->rows;
    wf_array in[2] = {u32s(c->d->keys, n), u32s(c->d->order, n)};
    return wf_prim_map(c->prim, c->place, "ADD_I32", u32s(c->d->out, n), in, 2, NULL);
}
static bool check_map(const struct prim_case *c, int arg) {
    (void)arg;
    int64_t i = 0;
    while (i < c->d->rows && c->d->out[i] == c->d->keys[i] + c->d->order[i]) {
        i++;
    }
    return i == c->d->rows;
}

/* Table 3's: one column in, one out. */
static wf_status run_negate(struct prim_case *c, int arg) {
    (void)arg;
    int64_t n = c->d->rows;
    wf_array in = u32s(c->d->keys, n);
    return wf_prim_map(c->prim, c->place, "NEG_I32", u32s(c->d->out, n), &in, 1, NULL);
}
static bool check_negate(const struct prim_case *c, int arg) {
    (void)arg;
    int64_t i = 0;
    while (i < c->d->rows && c->d->out[i] == 0 - c->d->keys[i]) {
        i++;
    }
    return i == c->d->rows;
}

/* --- scatter and gather; arg: passes --- */

static wf_status run_scatter(struct prim_case *c, int passes) {
    int64_t n = c->d->rows;
    return wf_prim_scatter(c->prim, c->place, u32s(c->d->out, n), u32s(c->d->keys, n),
                           u32s(c->d->order, n), passes, NULL);
}
static bool check_scatter(const struct prim_case *c, int passes) {
    (void)passes;
    int64_t i = 0;
    while (i < c->d->rows && c->d->out[c->d->order[i]] == c->d->keys[i]) {
        i++;
    }
    return i == c->d->rows;
}
static wf_status run_gather(struct prim_case *c, int passes) {
    int64_t n = c->d->rows;
    return wf_prim_gather(c->prim, c->place, u32s(c->d->out, n), u32s(c->d->keys, n),
                          u32s(c->d->order, n), passes, NULL);
}
static bool check_gather(const struct prim_case *c, int passes) {
    (void)passes;
    int64_t i = 0;
    while (i < c->d->rows && c->d->out[i] == c->d->keys[c->d->order[i]]) {
        i++;
    }
    return i == c->d->rows;
}

/* --- scan; arg: bytes of an element --- */

static wf_status run_scan(struct prim_case *c, int bytes) {
    wf_elem type = bytes == 8 ? WF_ELEM_U64 : WF_ELEM_U32;
    int64_t n = c->d->rows * 4 / bytes;
    return wf_prim_scan(c->prim, c->place, WF_FOLD_ADD, 0, of(type, c->d->out, n),
                        of(type, c->d->keys, n), NULL);
}
static bool check_scan(const struct prim_case *c, int bytes) {
    uint64_t sum = 0;
    bool same = true;
    for (int64_t i = 0; i < c->d->rows * 4 / bytes && same; i++) {
        uint64_t in = 0;
        uint64_t out = 0;
        memcpy(&in, (char *)c->d->keys + i * bytes, (size_t)bytes);
        memcpy(&out, (char *)c->d->out + i * bytes, (size_t)bytes);
        same = out == (bytes == 4 ? (uint32_t)sum : sum);
        sum += in;
    }
    return same;
}

/* --- reduce --- */

static wf_status run_reduce(struct prim_case *c, int arg) {
    (void)arg;
    return wf_prim_reduce(c->prim, c->place, WF_FOLD_ADD, u32s(c->d->out, 1),
                          u32s(c->d->keys, c->d->rows), NULL);
}
static bool check_reduce(const struct prim_case *c, int arg) {
    (void)arg;
    uint32_t sum = 0;
    for (int64_t i = 0; i < c->d->rows; i++) {
        sum += c->d->keys[i];
    }
    return c->d->out[0] == sum;
}

/* Keys read as reals: any bits, so that sums meet all exponents; the constant column: few. */
static wf_status run_sum(struct prim_case *c, int constant) {
    return wf_prim_reduce(c->prim, c->place, WF_FOLD_ADD, of(WF_ELEM_F64, c->d->out, 1),
                          of(WF_ELEM_F64, constant ? c->d->same : c->d->keys, c->d->rows / 2),
                          NULL);
}
static bool check_sum(const struct prim_case *c, int constant) {
    double want;
    double got;
    memcpy(&got, c->d->out, 8);
    memcpy(&want, c->d->same, 8);
    int64_t special[3] = {0, 0, 0}; /* NaN, both infinities */
    for (int64_t i = 0; i < c->d->rows / 2 && !constant; i++) {
        double x;
        memcpy(&x, c->d->keys + 2 * i, 8);
        special[0] += isnan(x);
        special[1] += isinf(x) && x > 0;
        special[2] += isinf(x) && x < 0;
    }
    if (constant) {
        return got == want * (double)(c->d->rows / 2);
    }
    return special[0] || (special[1] && special[2]) ? isnan(got)
           : special[1] || special[2]               ? isinf(got)
                                                    : isfinite(got);
}

static wf_status run_segments(struct prim_case *c, int skewed) {
    const struct prim_data *d = c->d;
    return wf_prim_reduce_segments(
        c->prim, c->place, WF_FOLD_MAX, u32s(d->out, d->segments), u32s(d->keys, d->rows),
        of(WF_ELEM_U64, skewed ? d->skewed : d->even, d->segments + 1), NULL);
}
/* Half as many elements of twice the width. */
static wf_status run_double_segments(struct prim_case *c, int constant) {
    const struct prim_data *d = c->d;
    int64_t count = (d->segments - 1) / 2;
    return wf_prim_reduce_segments(
        c->prim, c->place, WF_FOLD_ADD, of(WF_ELEM_F64, d->out, count),
        of(WF_ELEM_F64, constant ? d->same : d->keys, count * SEGMENT_ROWS),
        of(WF_ELEM_U64, d->even, count + 1), NULL);
}
static bool check_double_segments(const struct prim_case *c, int constant) {
    double one;
    bool right = true;
    memcpy(&one, c->d->same, 8);
    for (int64_t s = 0; s < (c->d->segments - 1) / 2 && constant; s++) {
        double got;
        memcpy(&got, c->d->out + 2 * s, 8);
        right = right && got == one * SEGMENT_ROWS;
    }
    return right;
}
static bool check_segments(const struct prim_case *c, int skewed) {
    const uint64_t *offsets = skewed ? c->d->skewed : c->d->even;
    bool same = true;
    for (int64_t s = 0; s < c->d->segments && same; s++) {
        uint32_t most = 0;
        for (uint64_t i = offsets[s]; i < offsets[s + 1]; i++) {
            most = c->d->keys[i] > most ? c->d->keys[i] : most;
        }
        same = c->d->out[s] == most;
    }
    return same;
}

/* --- compaction; arg: percent, negative: unordered --- */

static uint32_t bound_of(int percent) {
    return (uint32_t)(4294967296.0 / 100 * abs(percent));
}
static wf_status run_compact(struct prim_case *c, int percent) {
    wf_array in = u32s(c->d->keys, c->d->rows);
    wf_array out = u32s(c->d->out, c->d->rows);
    uint32_t bound = bound_of(percent);
    return wf_prim_compact_compare(c->prim, c->place, percent > 0, &out, &in, 1, in, WF_COMPARE_LT,
                                   &bound, &c->count, NULL);
}
static bool check_compact(const struct prim_case *c, int percent) {
    uint32_t bound = bound_of(percent);
    int64_t at = 0;
    uint64_t sum = 0;
    bool same = true;
    for (int64_t i = 0; i < c->d->rows && same; i++) {
        if (c->d->keys[i] < bound) {
            same = at < c->count && (percent < 0 || c->d->out[at] == c->d->keys[i]);
            sum += c->d->keys[i];
            at++;
        }
    }
    for (int64_t i = 0; i < c->count; i++) {
        sum -= c->d->out[i];
    }
    return same && at == c->count && sum == 0;
}

/* --- histogram; arg: bins, negative: of the constant column --- */

static wf_status run_histogram(struct prim_case *c, int bins) {
    int64_t count = abs(bins);
    return wf_prim_histogram(c->prim, c->place, of(WF_ELEM_U64, c->d->bins, count),
                             u32s(bins < 0 ? c->d->same : c->d->keys, c->d->rows), 0,
                             (1LL << 32) / count, NULL);
}
static bool check_histogram(const struct prim_case *c, int bins) {
    int64_t count = abs(bins);
    uint64_t *want = calloc((size_t)count, 8);
    for (int64_t i = 0; want && i < c->d->rows; i++) {
        uint32_t x = bins < 0 ? c->d->same[i] : c->d->keys[i];
        want[x / ((1LL << 32) / count)]++;
    }
    bool same = want && memcmp(want, c->d->bins, (size_t)count * 8) == 0;
    free(want);
    return same;
}

/* --- split, sort; arg: bits, negative for unstable, or whether with payload --- */

static wf_status run_split(struct prim_case *c, int bits) {
    int64_t n = c->d->rows;
    wf_split how = {.by = WF_SPLIT_RADIX, .bits = abs(bits), .unstable = bits < 0};
    wf_array payload = u32s(c->d->order, n);
    wf_array out_payload = u32s(c->d->out2, n);
    return wf_prim_split(c->prim, c->place, &how, u32s(c->d->out, n), of(WF_ELEM_U64, NULL, 0),
                         u32s(c->d->keys, n), &out_payload, &payload, 1, NULL);
}
bool prim_pairs_follow(const struct prim_data *d, uint32_t mask, bool stable) {
    uint32_t *row = malloc((size_t)d->rows * 4);
    unsigned char *seen = calloc((size_t)d->rows, 1);
    bool right = row && seen;
    for (int64_t i = 0; right && i < d->rows; i++) {
        row[d->order[i]] = (uint32_t)i;
    }
    for (int64_t i = 0; right && i < d->rows; i++) {
        right = d->out2[i] < d->rows && d->out[i] == d->keys[row[d->out2[i]]] && !seen[d->out2[i]];
        if (right && stable && i && (d->out[i] & mask) == (d->out[i - 1] & mask)) {
            right = row[d->out2[i - 1]] < row[d->out2[i]];
        }
        seen[right ? d->out2[i] : 0] = 1;
    }
    free(row);
    free(seen);
    return right;
}

static bool check_split(const struct prim_case *c, int bits) {
    uint32_t mask = (1u << abs(bits)) - 1;
    int64_t i = 1;
    while (i < c->d->rows && (c->d->out[i - 1] & mask) <= (c->d->out[i] & mask)) {
        i++;
    }
    return i == c->d->rows && prim_pairs_follow(c->d, bits > 0 ? mask : 0, bits > 0);
}
static wf_status run_sort(struct prim_case *c, int payload) {
    int64_t n = c->d->rows;
    wf_array in = u32s(c->d->order, n);
    wf_array out = u32s(c->d->out2, n);
    return wf_prim_sort(c->prim, c->place, NULL, u32s(c->d->out, n), u32s(c->d->keys, n), &out, &in,
                        payload, NULL);
}
static bool check_sort(const struct prim_case *c, int payload) {
    int64_t i = 1;
    uint64_t sum = (uint64_t)c->d->out[0] - c->d->keys[0];
    while (i < c->d->rows && c->d->out[i - 1] <= c->d->out[i]) {
        sum += (uint64_t)c->d->out[i] - c->d->keys[i];
        i++;
    }
    return i == c->d->rows && sum == 0 && (!payload || prim_pairs_follow(c->d, ~0u, true));
}

#define SEGMENT_BYTES (4 + 12.0 / SEGMENT_ROWS)
const struct prim_experiment prim_experiments[] = {
    {"map", 8, 0, run_negate, check_negate, true, "table3"},
    {"map of two", 12, 0, run_map, check_map, false, NULL},
    {"scatter", 12, 0, run_scatter, check_scatter, true, "table3"},
    {"scatter, 1 pass", 12, 1, run_scatter, check_scatter, false, NULL},
    {"scatter, 2 passes", 12, 2, run_scatter, check_scatter, false, NULL},
    {"scatter, 3 passes", 12, 3, run_scatter, check_scatter, false, NULL},
    {"scatter, 4 passes", 12, 4, run_scatter, check_scatter, false, NULL},
    {"scatter, 8 passes", 12, 8, run_scatter, check_scatter, false, NULL},
    {"scatter, 16 passes", 12, 16, run_scatter, check_scatter, false, NULL},
    {"gather", 12, 0, run_gather, check_gather, true, "table3"},
    {"gather, 1 pass", 12, 1, run_gather, check_gather, false, NULL},
    {"gather, 2 passes", 12, 2, run_gather, check_gather, false, NULL},
    {"gather, 3 passes", 12, 3, run_gather, check_gather, false, NULL},
    {"gather, 4 passes", 12, 4, run_gather, check_gather, false, NULL},
    {"gather, 8 passes", 12, 8, run_gather, check_gather, false, NULL},
    {"gather, 16 passes", 12, 16, run_gather, check_gather, false, NULL},
    {"scan", 8, 4, run_scan, check_scan, true, "table3"},
    {"scan u64", 8, 8, run_scan, check_scan, false, NULL},
    {"split 64", 16, 6, run_split, check_split, true, "table3"},
    {"split 64, unstable", 16, -6, run_split, check_split, true, NULL},
    {"split 2048", 16, 11, run_split, check_split, true, NULL},
    {"split 2048, unstable", 16, -11, run_split, check_split, true, NULL},
    {"sort", 8, 0, run_sort, check_sort, true, "table3 fig14"},
    {"sort pairs", 16, 1, run_sort, check_sort, true, "table3"},
    {"compact 10 %", 4.4, 10, run_compact, check_compact, true, NULL},
    {"compact 50 %", 6, 50, run_compact, check_compact, false, NULL},
    {"compact 90 %", 7.6, 90, run_compact, check_compact, false, NULL},
    {"compact unordered 10 %", 4.4, -10, run_compact, check_compact, true, NULL},
    {"compact unordered 50 %", 6, -50, run_compact, check_compact, false, NULL},
    {"compact unordered 90 %", 7.6, -90, run_compact, check_compact, false, NULL},
    {"reduce", 4, 0, run_reduce, check_reduce, true, NULL},
    {"reduce double, any bits", 4, 0, run_sum, check_sum, false, NULL},
    {"reduce double", 4, 1, run_sum, check_sum, false, NULL},
    {"segments of 16", SEGMENT_BYTES, 0, run_segments, check_segments, true, NULL},
    {"segments, skewed", SEGMENT_BYTES, 1, run_segments, check_segments, false, NULL},
    {"segments of 16, double", 4.5, 1, run_double_segments, check_double_segments, false, NULL},
    {"histogram 256", 4, 256, run_histogram, check_histogram, true, NULL},
    {"histogram 256, constant", 4, -256, run_histogram, check_histogram, false, NULL},
    {"histogram 1 M", 4, 1 << 20, run_histogram, check_histogram, false, NULL},
};
const int prim_experiment_count = sizeof prim_experiments / sizeof *prim_experiments;

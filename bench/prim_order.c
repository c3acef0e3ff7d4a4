/* prim_order.c: experiments of `bench prim` on order: sorts by every algorithm, splits by hash,
 * and what is done with ascending arrays: merge, searches, runs, set operations.
 *
 * The ascending arrays are 4 i + a random number below 4, twice, so that a quarter of the elements
 * of one is in the other. Elements of 64 bits are half as many: bytes per row stay the same. */
#include "bench_prim.h"

#include <stdlib.h>

static wf_array of(wf_elem type, const void *data, int64_t count) {
    return (wf_array){.type = type, .data = (void *)(uintptr_t)data, .count = count};
}

/* --- sorts; arg: wf_sort_by --- */

static wf_status run_sort(struct prim_case *c, int by) {
    int64_t n = c->d->rows;
    wf_sort how = {.by = (wf_sort_by)by};
    return wf_prim_sort(c->prim, c->place, &how, of(WF_ELEM_U32, c->d->out, n),
                        of(WF_ELEM_U32, c->d->keys, n), NULL, NULL, 0, NULL);
}
static bool check_sort(const struct prim_case *c, int by) {
    (void)by;
    uint64_t sum = (uint64_t)c->d->out[0] - c->d->keys[0];
    int64_t i = 1;
    while (i < c->d->rows && c->d->out[i - 1] <= c->d->out[i]) {
        sum += (uint64_t)c->d->out[i] - c->d->keys[i];
        i++;
    }
    return i == c->d->rows && sum == 0;
}

static wf_status run_sort_wide(struct prim_case *c, int arg) {
    (void)arg;
    int64_t n = c->d->rows / 2;
    return wf_prim_sort(c->prim, c->place, NULL, of(WF_ELEM_U64, c->d->out, n),
                        of(WF_ELEM_U64, c->d->keys, n), NULL, NULL, 0, NULL);
}
static bool check_sort_wide(const struct prim_case *c, int arg) {
    (void)arg;
    const uint64_t *out = (const uint64_t *)(const void *)c->d->out;
    const uint64_t *keys = (const uint64_t *)(const void *)c->d->keys;
    int64_t i = 1;
    uint64_t sum = out[0] * out[0] - keys[0] * keys[0];
    while (i < c->d->rows / 2 && out[i - 1] <= out[i]) {
        sum += out[i] * out[i] - keys[i] * keys[i];
        i++;
    }
    return i == c->d->rows / 2 && sum == 0;
}

/* arg: bits */
static wf_status run_split_hash(struct prim_case *c, int bits) {
    int64_t n = c->d->rows;
    wf_split how = {.by = WF_SPLIT_HASH, .bits = bits};
    wf_array payload = of(WF_ELEM_U32, c->d->order, n);
    wf_array out_payload = of(WF_ELEM_U32, c->d->out2, n);
    return wf_prim_split(c->prim, c->place, &how, of(WF_ELEM_U32, c->d->out, n),
                         of(WF_ELEM_U64, c->d->bins, ((int64_t)1 << bits) + 1),
                         of(WF_ELEM_U32, c->d->keys, n), &out_payload, &payload, 1, NULL);
}
static uint32_t hash_of(uint32_t x) { /* the library's, of keys of four bytes */
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}
static bool check_split_hash(const struct prim_case *c, int bits) {
    bool right = c->d->bins[0] == 0 && prim_pairs_follow(c->d, 0, false);
    for (int64_t p = 0; right && p < (int64_t)1 << bits; p++) {
        for (uint64_t i = c->d->bins[p]; right && i < c->d->bins[p + 1]; i++) {
            right = (int64_t)(hash_of(c->d->out[i]) & ((1u << bits) - 1)) == p;
        }
    }
    return right && c->d->bins[(int64_t)1 << bits] == (uint64_t)c->d->rows;
}

/* --- ascending arrays --- */

static int64_t half_of(const struct prim_data *d, int wide) {
    return d->rows / (wide ? 4 : 2) / 64 * 64;
}
/* Number `no` of the two. */
static wf_array rising(const struct prim_data *d, int wide, int no) {
    int64_t half = half_of(d, wide);
    return wide ? of(WF_ELEM_U64, d->up_wide + no * half, half)
                : of(WF_ELEM_U32, d->up + no * half, half);
}
static uint64_t rising_at(wf_array a, int64_t i) {
    return a.type == WF_ELEM_U64 ? ((const uint64_t *)a.data)[i] : ((const uint32_t *)a.data)[i];
}

/* arg: payload */
static wf_status run_merge(struct prim_case *c, int payload) {
    int64_t half = half_of(c->d, 0);
    wf_array none = {.type = WF_ELEM_U32};
    return wf_prim_merge(c->prim, c->place, of(WF_ELEM_U32, c->d->out, 2 * half),
                         rising(c->d, 0, 0), rising(c->d, 0, 1),
                         payload ? of(WF_ELEM_U32, c->d->out2, 2 * half) : none,
                         payload ? of(WF_ELEM_U32, c->d->keys, half) : none,
                         payload ? of(WF_ELEM_U32, c->d->order, half) : none, NULL);
}
static bool check_merge(const struct prim_case *c, int payload) {
    wf_array a = rising(c->d, 0, 0);
    wf_array b = rising(c->d, 0, 1);
    int64_t i = 0;
    int64_t j = 0;
    while (i + j < a.count + b.count) {
        bool from_b = i == a.count || (j < b.count && rising_at(b, j) < rising_at(a, i));
        uint64_t key = from_b ? rising_at(b, j) : rising_at(a, i);
        uint32_t row = from_b ? c->d->order[j] : c->d->keys[i];
        if (c->d->out[i + j] != key || (payload && c->d->out2[i + j] != row)) {
            return false;
        }
        i += !from_b;
        j += from_b;
    }
    return true;
}

/* arg: sorted; else the needles are the permutation */
static wf_status run_search(struct prim_case *c, int sorted) {
    wf_array needles = sorted ? rising(c->d, 0, 0) : of(WF_ELEM_U32, c->d->order, half_of(c->d, 0));
    return wf_prim_search(c->prim, c->place, 0, sorted, of(WF_ELEM_U32, c->d->out, needles.count),
                          needles, rising(c->d, 0, 1), NULL);
}
static bool check_search(const struct prim_case *c, int sorted) {
    wf_array needles = sorted ? rising(c->d, 0, 0) : of(WF_ELEM_U32, c->d->order, half_of(c->d, 0));
    wf_array among = rising(c->d, 0, 1);
    for (int64_t i = 0; i < needles.count; i++) {
        int64_t at = c->d->out[i];
        uint64_t key = rising_at(needles, i);
        if (at > among.count || (at > 0 && rising_at(among, at - 1) >= key) ||
            (at < among.count && rising_at(among, at) < key)) {
            return false;
        }
    }
    return true;
}

/* arg: skewed */
static wf_status run_balance(struct prim_case *c, int skewed) {
    const uint64_t *starts = skewed ? c->d->skewed : c->d->even;
    return wf_prim_balance(c->prim, c->place, of(WF_ELEM_U32, c->d->out, c->d->rows), c->d->rows,
                           of(WF_ELEM_U64, starts, c->d->segments), NULL);
}
static bool check_balance(const struct prim_case *c, int skewed) {
    const uint64_t *starts = skewed ? c->d->skewed : c->d->even;
    for (int64_t s = 0; s < c->d->segments; s++) {
        uint64_t end = s + 1 < c->d->segments ? starts[s + 1] : (uint64_t)c->d->rows;
        for (uint64_t i = starts[s]; i < end; i++) {
            if (c->d->out[i] != s) {
                return false;
            }
        }
    }
    return true;
}

/* arg: of an array that is constant */
static wf_status run_runs(struct prim_case *c, int same) {
    int64_t n = c->d->rows;
    wf_array none = {.type = WF_ELEM_U32};
    return wf_prim_runs(c->prim, c->place, of(WF_ELEM_U32, c->d->out, n), none, none,
                        of(WF_ELEM_U32, same ? c->d->same : c->d->keys, n), &c->count, NULL);
}
static bool check_runs(const struct prim_case *c, int same) {
    const uint32_t *keys = same ? c->d->same : c->d->keys;
    int64_t runs = 0;
    for (int64_t i = 0; i < c->d->rows; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            if (runs >= c->count || c->d->out[runs++] != keys[i]) {
                return false;
            }
        }
    }
    return runs == c->count;
}

/* arg: operation, + 4 for elements of 64 bits */
static wf_status run_set(struct prim_case *c, int arg) {
    int wide = arg >= 4;
    wf_set_how how = {.op = (wf_set_op)(arg % 4)};
    wf_array a = rising(c->d, wide, 0);
    return wf_prim_set(c->prim, c->place, &how, of(a.type, c->d->out, 2 * a.count), a,
                       rising(c->d, wide, 1), &c->count, NULL);
}
static bool check_set(const struct prim_case *c, int arg) {
    int wide = arg >= 4;
    wf_array a = rising(c->d, wide, 0);
    wf_array b = rising(c->d, wide, 1);
    wf_array out = of(a.type, c->d->out, c->count);
    bool keep_a = arg % 4 != WF_SET_INTERSECTION;
    bool keep_b = arg % 4 == WF_SET_UNION || arg % 4 == WF_SET_SYMMETRIC;
    bool keep_both = arg % 4 == WF_SET_UNION || arg % 4 == WF_SET_INTERSECTION;
    int64_t n = 0;
    for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
        uint64_t x = i < a.count ? rising_at(a, i) : UINT64_MAX;
        uint64_t y = j < b.count ? rising_at(b, j) : UINT64_MAX;
        bool keep = x < y ? keep_a : y < x ? keep_b : keep_both;
        if (keep && (n >= c->count || rising_at(out, n++) != (x < y ? x : y))) {
            return false;
        }
        i += x <= y;
        j += y <= x;
    }
    return n == c->count;
}

const struct prim_experiment prim_order_experiments[] = {
    {"sort u64", 8, 0, run_sort_wide, check_sort_wide, false, NULL},
    {"sort, merge", 8, WF_SORT_MERGE, run_sort, check_sort, false, "fig14"},
    {"sort, bitonic", 8, WF_SORT_BITONIC, run_sort, check_sort, false, NULL},
    {"sort, quick", 8, WF_SORT_QUICK, run_sort, check_sort, false, "table3 fig14"},
    {"split hash 256", 16, 8, run_split_hash, check_split_hash, false, NULL},
    {"split hash 32 K", 16, 15, run_split_hash, check_split_hash, false, NULL},
    {"merge", 8, 0, run_merge, check_merge, true, NULL},
    {"merge pairs", 16, 1, run_merge, check_merge, false, NULL},
    {"search, sorted", 6, 1, run_search, check_search, true, NULL},
    {"search, any", 6, 0, run_search, check_search, false, NULL},
    {"balance", 4.5, 0, run_balance, check_balance, true, NULL},
    {"balance, skewed", 4.5, 1, run_balance, check_balance, false, NULL},
    {"runs, all different", 8, 0, run_runs, check_runs, false, NULL},
    {"runs, all equal", 4, 1, run_runs, check_runs, false, NULL},
    {"set union", 7.5, 0, run_set, check_set, true, NULL},
    {"set intersection", 4.5, 1, run_set, check_set, false, NULL},
    {"set difference", 5.5, 2, run_set, check_set, false, NULL},
    {"set symmetric", 7, 3, run_set, check_set, false, NULL},
    {"set union u64", 7.5, 4, run_set, check_set, true, NULL},
    {"set intersection u64", 4.5, 5, run_set, check_set, false, NULL},
    {"set difference u64", 5.5, 6, run_set, check_set, false, NULL},
    {"set symmetric u64", 7, 7, run_set, check_set, false, NULL},
};
const int prim_order_experiment_count =
    sizeof prim_order_experiments / sizeof *prim_order_experiments;

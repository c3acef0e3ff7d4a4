/* test_prim_merge.c: sorts by comparison, text, merge, search, runs and sets, on both devices,
 * against plain loops. */
#include "test_prim_fixture.h"

enum { TEXTS = 4000, TEXT_BYTES = 200000 };
static const wf_array none = {.type = WF_ELEM_U32};

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* n keys of a shape below `range`, ascending when asked for. */
static uint64_t *keys_new(enum prim_shape shape, int64_t n, uint64_t range, uint64_t seed,
                          bool sorted) {
    uint64_t *keys = malloc((size_t)n * 8 + 8);
    for (int64_t i = 0; i < n; i++) {
        keys[i] = prim_key(shape, i, n, &seed) % range;
    }
    if (sorted) {
        qsort(keys, (size_t)n, 8, compare_u64);
    }
    return keys;
}

/* The same numbers as elements of a type; numbers are small and not negative. */
static void *as_type(wf_elem type, const uint64_t *keys, int64_t n) {
    uint64_t *out = calloc((size_t)n + 1, 16);
    for (int64_t i = 0; i < n; i++) {
        switch (type) {
        case WF_ELEM_U32:
        case WF_ELEM_I32:
            ((uint32_t *)out)[i] = (uint32_t)keys[i];
            break;
        case WF_ELEM_F32:
            ((float *)out)[i] = (float)keys[i];
            break;
        case WF_ELEM_F64:
            ((double *)out)[i] = (double)keys[i];
            break;
        case WF_ELEM_U128:
            out[2 * i + 1] = keys[i];
            break;
        default:
            out[i] = keys[i];
        }
    }
    return out;
}

static uint64_t number_at(wf_elem type, const void *data, int64_t i) {
    switch (type) {
    case WF_ELEM_U32:
    case WF_ELEM_I32:
        return ((const uint32_t *)data)[i];
    case WF_ELEM_F32:
        return (uint64_t)((const float *)data)[i];
    case WF_ELEM_F64:
        return (uint64_t)((const double *)data)[i];
    case WF_ELEM_U128:
        return ((const uint64_t *)data)[2 * i + 1];
    default:
        return ((const uint64_t *)data)[i];
    }
}

/* --- sorts by comparison --- */

static void check_sort(wf_place place, wf_sort how, wf_elem type, enum prim_shape shape, int64_t n,
                       int payloads) {
    uint64_t *numbers = keys_new(shape, n, 1 << 20, (uint64_t)n, false);
    void *keys = as_type(type, numbers, n);
    void *out = calloc((size_t)n + 1, 16);
    uint32_t *rows = malloc((size_t)n * 4 + 4);
    uint32_t *to = malloc((size_t)n * 4 + 4);
    uint64_t *wide = malloc((size_t)n * 16 + 16);
    uint64_t *wide_to = malloc((size_t)n * 16 + 16);
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)i;
        wide[2 * i] = (uint64_t)i;
        wide[2 * i + 1] = ~(uint64_t)i;
    }
    wf_array from[] = {prim_array(WF_ELEM_U32, rows, n), prim_array(WF_ELEM_U128, wide, n)};
    wf_array into[] = {prim_array(WF_ELEM_U32, to, n), prim_array(WF_ELEM_U128, wide_to, n)};
    assert_prim_ok(wf_prim_sort(prim, place, &how, prim_array(type, out, n),
                                prim_array(type, keys, n), into, from, payloads, NULL));
    bool stable = how.by == WF_SORT_MERGE;
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = number_at(type, out, i);
        uint64_t last = i ? number_at(type, out, i - 1) : x;
        sum += x - numbers[i];
        bool bad = how.descending ? x > last : x < last;
        if (payloads && !bad) {
            bad = to[i] >= n || numbers[to[i]] != x ||
                  (stable && i && x == last && to[i] < to[i - 1]) ||
                  (payloads > 1 &&
                   (wide_to[2 * i] != to[i] || wide_to[2 * i + 1] != ~wide_to[2 * i]));
        }
        if (bad) {
            fail_msg("sort %d on %d: type %d, shape %d, %lld rows: element %lld", how.by, place,
                     type, shape, (long long)n, (long long)i);
        }
    }
    assert_true(sum == 0);
    free(numbers);
    free(keys);
    free(out);
    free(rows);
    free(to);
    free(wide);
    free(wide_to);
}

static void test_sorts(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 33, 2047, 2049, 3840, 3841, 5001, 17001};
    for (int place = 0; place < prim_places(); place++) {
        for (int by = WF_SORT_MERGE; by <= WF_SORT_QUICK; by++) {
            for (int s = 0; s < 9; s++) {
                wf_sort how = {(wf_sort_by)by, s & 1, 0, 0};
                wf_elem type = s % 3 == 0 ? WF_ELEM_I32 : s % 3 == 1 ? WF_ELEM_F64 : WF_ELEM_U128;
                check_sort((wf_place)place, how, type, (enum prim_shape)((s + by) % SHAPE_COUNT),
                           sizes[s], s % 3);
            }
        }
        check_sort((wf_place)place, (wf_sort){.by = WF_SORT_QUICK}, WF_ELEM_I32, SHAPE_CONSTANT,
                   30000, 0);
        for (int shape = 0; shape < SHAPE_COUNT; shape++) { /* several levels, where fans are few */
            wf_elem type = shape % 3 == 0   ? WF_ELEM_I32
                           : shape % 3 == 1 ? WF_ELEM_F64
                                            : WF_ELEM_U128;
            check_sort((wf_place)place, (wf_sort){WF_SORT_QUICK, shape & 1, 0, 0}, type,
                       (enum prim_shape)shape, 70001, shape % 3);
        }
    }
}

/* --- text --- */

static char text_bytes[TEXT_BYTES];
static wf_span texts[TEXTS];

/* Words that share beginnings of many lengths, some equal, some empty, some with zero bytes. */
static void make_texts(void) {
    uint64_t seed = 11;
    uint64_t at = 0;
    for (int i = 0; i < TEXTS; i++) {
        uint64_t same = prim_random(&seed) % 30;
        uint64_t more = prim_random(&seed) % 4;
        texts[i] = (wf_span){at, same + more};
        for (uint64_t k = 0; k < same; k++) {
            text_bytes[at++] = "abcabdabcabcabcabcabcabcabcabc"[k];
        }
        for (uint64_t k = 0; k < more; k++) {
            text_bytes[at++] = "ab\0\xff"[prim_random(&seed) % 4];
        }
    }
    assert_true(at < TEXT_BYTES);
}

static int text_compare(wf_span a, wf_span b) {
    uint64_t n = a.length < b.length ? a.length : b.length;
    int order = memcmp(text_bytes + a.offset, text_bytes + b.offset, n);
    return order ? order : a.length < b.length ? -1 : a.length > b.length;
}
static int text_order(const void *a, const void *b) {
    return text_compare(*(const wf_span *)a, *(const wf_span *)b);
}

static wf_array text_array(wf_span *spans, int64_t n) {
    return (wf_array){WF_ELEM_TEXT, spans, n, text_bytes, TEXT_BYTES};
}

static void check_text_sort(wf_place place, wf_sort how, int64_t n) {
    static wf_span out[TEXTS];
    static uint32_t rows[TEXTS], to[TEXTS];
    for (int i = 0; i < n; i++) {
        rows[i] = (uint32_t)i;
    }
    wf_array from = prim_array(WF_ELEM_U32, rows, n);
    wf_array into = prim_array(WF_ELEM_U32, to, n);
    assert_prim_ok(wf_prim_sort(prim, place, &how, text_array(out, n), text_array(texts, n), &into,
                                &from, 1, NULL));
    for (int64_t i = 0; i < n; i++) {
        assert_true(to[i] < n && out[i].offset == texts[to[i]].offset &&
                    out[i].length == texts[to[i]].length);
        int order = i ? text_compare(out[i - 1], out[i]) : -1;
        order = i && how.descending ? -order : order;
        bool stable = how.by != WF_SORT_BITONIC && how.by != WF_SORT_QUICK;
        if (order > 0 || (order == 0 && stable && to[i] < to[i - 1])) {
            fail_msg("text sort %d on %d of %lld: element %lld", how.by, place, (long long)n,
                     (long long)i);
        }
    }
}

static uint64_t text_start(wf_span span) { /* the first eight bytes */
    uint64_t word = 0;
    for (uint64_t k = 0; k < 8; k++) {
        word = word << 8 | (k < span.length ? (unsigned char)text_bytes[span.offset + k] : 0u);
    }
    return word;
}

/* The part of a text, and of a hash any: what is checked is that equal texts share it. */
static int64_t text_part(const wf_split *how, wf_span span, int64_t told) {
    int64_t part = 0;
    if (how->by == WF_SPLIT_RADIX) {
        return (int64_t)(text_start(span) >> how->shift & ((1ULL << how->bits) - 1));
    }
    for (int64_t k = 0; how->by == WF_SPLIT_RANGE && k < how->splitters.count; k++) {
        part += text_compare(((const wf_span *)how->splitters.data)[k], span) <= 0;
    }
    return how->by == WF_SPLIT_RANGE ? part : told;
}

static wf_span split_by_cpu[TEXTS]; /* by hash: the GPU must agree */

static void check_text_split(wf_place place, wf_split how, int64_t n, int payloads) {
    static wf_span out[TEXTS];
    static uint64_t starts[4100];
    static uint32_t rows[TEXTS], to[TEXTS];
    static uint64_t wide[TEXTS], wide_to[TEXTS];
    int64_t parts = how.by == WF_SPLIT_RANGE ? how.splitters.count + 1 : (int64_t)1 << how.bits;
    for (int i = 0; i < n; i++) {
        rows[i] = (uint32_t)i;
        wide[i] = (uint64_t)i * 5;
    }
    wf_array from[] = {prim_array(WF_ELEM_U32, rows, n), prim_array(WF_ELEM_U64, wide, n)};
    wf_array into[] = {prim_array(WF_ELEM_U32, to, n), prim_array(WF_ELEM_U64, wide_to, n)};
    assert_prim_ok(wf_prim_split(prim, place, &how, text_array(out, n),
                                 prim_array(WF_ELEM_U64, starts, parts + 1), text_array(texts, n),
                                 into, from, payloads, NULL));
    assert_true(starts[0] == 0 && starts[parts] == (uint64_t)n);
    for (int64_t p = 0; p < parts; p++) {
        assert_true(starts[p] <= starts[p + 1]);
        for (int64_t i = (int64_t)starts[p]; i < (int64_t)starts[p + 1]; i++) {
            assert_int_equal(text_part(&how, out[i], p), p);
            if (payloads) {
                assert_true(to[i] < n && out[i].offset == texts[to[i]].offset);
                assert_true(how.unstable || i == (int64_t)starts[p] || to[i - 1] < to[i]);
            }
            assert_true(payloads < 2 || wide_to[i] == 5 * (uint64_t)to[i]);
        }
    }
    if (how.by == WF_SPLIT_HASH && n == TEXTS && place == WF_ON_CPU) {
        memcpy(split_by_cpu, out, (size_t)n * sizeof *out);
        for (int64_t p = 1; p < parts; p++) { /* equal texts are nowhere else */
            for (int64_t i = (int64_t)starts[p]; i < (int64_t)starts[p + 1] && i < 200; i++) {
                for (uint64_t k = 0; k < starts[p]; k++) {
                    assert_true(text_compare(out[i], out[k]) != 0);
                }
            }
        }
    } else if (how.by == WF_SPLIT_HASH && n == TEXTS) {
        assert_memory_equal(split_by_cpu, out, (size_t)n * sizeof *out);
    }
}

static void test_text_split(void **state) {
    (void)state;
    static wf_span splitters[40];
    make_texts();
    memcpy(splitters, texts + 100, sizeof splitters);
    qsort(splitters, 40, sizeof(wf_span), text_order);
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_split range = {.by = WF_SPLIT_RANGE, .splitters = text_array(splitters, 40)};
        check_text_split(at, (wf_split){.by = WF_SPLIT_HASH, .bits = 6, .shift = 40}, TEXTS, 2);
        check_text_split(at, (wf_split){.by = WF_SPLIT_RADIX, .bits = 9, .shift = 47}, 2500, 1);
        check_text_split(at, range, TEXTS, 2);
        range.splitters.count = 0;
        check_text_split(at, range, 33, 0);
        check_text_split(at, (wf_split){.by = WF_SPLIT_RADIX, .bits = 12, .unstable = 1}, 999, 0);
        check_text_split(at, (wf_split){.by = WF_SPLIT_HASH, .bits = 3}, 0, 0);
        check_text_split(at, (wf_split){.by = WF_SPLIT_HASH, .bits = 0}, 1, 2);
        static wf_span out[10];
        wf_array in = text_array(texts, 10);
        wf_split how = {.by = WF_SPLIT_HASH, .bits = 4};
        in.byte_count = 20; /* spans reach beyond */
        assert_prim_error(
            wf_prim_split(prim, at, &how, text_array(out, 10), none, in, NULL, NULL, 0, NULL),
            "22023");
        how = (wf_split){.by = WF_SPLIT_RADIX, .bits = 4, .shift = 61};
        in.byte_count = TEXT_BYTES;
        assert_prim_error(
            wf_prim_split(prim, at, &how, text_array(out, 10), none, in, NULL, NULL, 0, NULL),
            "22023");
        how = (wf_split){.by = WF_SPLIT_RANGE, .splitters = text_array(splitters, 3)};
        how.splitters.bytes = text_bytes + 1;
        how.splitters.byte_count = TEXT_BYTES - 1;
        assert_prim_error(
            wf_prim_split(prim, at, &how, text_array(out, 10), none, in, NULL, NULL, 0, NULL),
            "22023");
    }
}

static void test_text(void **state) {
    (void)state;
    make_texts();
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        check_text_sort(at, (wf_sort){.by = WF_SORT_AUTO}, TEXTS);
        check_text_sort(at, (wf_sort){.by = WF_SORT_AUTO, .descending = 1}, 1000);
        check_text_sort(at, (wf_sort){.by = WF_SORT_AUTO}, 1); /* no ties */
        check_text_sort(at, (wf_sort){.by = WF_SORT_MERGE, .descending = 1}, 2000);
        check_text_sort(at, (wf_sort){.by = WF_SORT_BITONIC}, 2500);
        check_text_sort(at, (wf_sort){.by = WF_SORT_QUICK}, TEXTS);
        check_text_sort(at, (wf_sort){.by = WF_SORT_QUICK, .descending = 1}, 2049);
        check_text_sort(at, (wf_sort){.by = WF_SORT_QUICK}, 1);
        static wf_span out[TEXTS];
        wf_array in = text_array(texts, 10);
        in.byte_count = 20; /* spans reach beyond */
        assert_prim_error(
            wf_prim_sort(prim, at, NULL, text_array(out, 10), in, NULL, NULL, 0, NULL), "22023");
        wf_sort how = {.by = WF_SORT_RADIX};
        in.byte_count = TEXT_BYTES;
        assert_prim_error(
            wf_prim_sort(prim, at, &how, text_array(out, 10), in, NULL, NULL, 0, NULL), "0A000");
        static wf_span sorted[2][1500];
        memcpy(sorted, texts, sizeof sorted);
        qsort(sorted[0], 1500, sizeof(wf_span), text_order);
        qsort(sorted[1], 1500, sizeof(wf_span), text_order);
        assert_prim_ok(wf_prim_merge(prim, at, text_array(out, 3000), text_array(sorted[0], 1500),
                                     text_array(sorted[1], 1500), none, none, none, NULL));
        for (int i = 1; i < 3000; i++) {
            assert_true(text_compare(out[i - 1], out[i]) <= 0);
        }
        int64_t both = 0;
        wf_set_how set = {WF_SET_INTERSECTION, 1, 0};
        assert_prim_ok(wf_prim_set(prim, at, &set, text_array(out, TEXTS),
                                   text_array(sorted[0], 1500), text_array(sorted[1], 1500), &both,
                                   NULL));
        int64_t expected = 0;
        for (int i = 0; i < 1500; i++) {
            expected += (i == 0 || text_compare(sorted[0][i - 1], sorted[0][i])) &&
                        bsearch(&sorted[0][i], sorted[1], 1500, sizeof(wf_span), text_order);
        }
        assert_int_equal(both, expected);
    }
}

/* --- merge --- */

/* Payload BOOL: none. */
static void check_merge(wf_place place, wf_elem type, enum prim_shape shape, int64_t a_n,
                        int64_t b_n, wf_elem payload) {
    uint64_t *an = keys_new(shape, a_n, 5000, 1, true);
    uint64_t *bn = keys_new(shape, b_n, 5000, 2, true);
    void *a = as_type(type, an, a_n);
    void *b = as_type(type, bn, b_n);
    void *out = calloc((size_t)(a_n + b_n) + 1, 16);
    uint64_t *rows = malloc((size_t)(a_n + b_n) * 8 + 8);
    for (int64_t i = 0; i < a_n + b_n; i++) {
        rows[i] = (uint64_t)i;
    }
    void *pa = as_type(payload, rows, a_n);
    void *pb = as_type(payload, rows + a_n, b_n);
    void *po = calloc((size_t)(a_n + b_n) + 1, 16);
    bool bare = payload == WF_ELEM_BOOL;
    assert_prim_ok(wf_prim_merge(prim, place, prim_array(type, out, a_n + b_n),
                                 prim_array(type, a, a_n), prim_array(type, b, b_n),
                                 bare ? none : prim_array(payload, po, a_n + b_n),
                                 bare ? none : prim_array(payload, pa, a_n),
                                 bare ? none : prim_array(payload, pb, b_n), NULL));
    int64_t i = 0;
    int64_t j = 0;
    for (int64_t k = 0; k < a_n + b_n; k++) {
        bool from_b = j < b_n && (i >= a_n || bn[j] < an[i]);
        uint64_t key = from_b ? bn[j] : an[i];
        uint64_t row = (uint64_t)(from_b ? a_n + j : i);
        if (number_at(type, out, k) != key || (!bare && number_at(payload, po, k) != row)) {
            fail_msg("merge on %d of %lld and %lld: element %lld", place, (long long)a_n,
                     (long long)b_n, (long long)k);
        }
        j += from_b;
        i += !from_b;
    }
    free(an);
    free(bn);
    free(a);
    free(b);
    free(out);
    free(rows);
    free(pa);
    free(pb);
    free(po);
}

static const int64_t pairs[][2] = {
    {0, 0},    {0, 7},       {1, 0},       {1, 1},     {31, 33},    {255, 257},    {3839, 1},
    {3840, 0}, {1920, 1920}, {1921, 1920}, {5000, 90}, {90, 10000}, {13000, 20000}};
enum { PAIRS = sizeof pairs / sizeof *pairs };
static const wf_elem types[] = {WF_ELEM_U32, WF_ELEM_U64,  WF_ELEM_F32, WF_ELEM_I64,
                                WF_ELEM_F64, WF_ELEM_U128, WF_ELEM_I32};

static void test_merge(void **state) {
    (void)state;
    static const wf_elem payloads[] = {WF_ELEM_U32, WF_ELEM_U64, WF_ELEM_U128};
    static const wf_elem integers[] = {WF_ELEM_U32, WF_ELEM_I64, WF_ELEM_I32, WF_ELEM_U64};
    for (int place = 0; place < prim_places(); place++) {
        for (int p = 0; p < PAIRS; p++) {
            check_merge((wf_place)place, types[p % 3], (enum prim_shape)(p % SHAPE_COUNT),
                        pairs[p][0], pairs[p][1], payloads[p % 3]);
            check_merge((wf_place)place, integers[p % 4], (enum prim_shape)((p + 3) % SHAPE_COUNT),
                        pairs[p][0], pairs[p][1], WF_ELEM_BOOL);
        }
        for (int p = 0; p < 6; p++) { /* tiles of 3,968 without payload, of 3,840 with it */
            int64_t a = p < 3 ? 3967 + p : 1 + p * 4001;
            int64_t b = p < 3 ? 0 : 3967 * 2 + p;
            check_merge((wf_place)place, p & 1 ? WF_ELEM_I32 : WF_ELEM_U32, SHAPE_RANDOM, a, b,
                        WF_ELEM_BOOL);
            check_merge((wf_place)place, WF_ELEM_I32, SHAPE_DUPLICATES, a, b, payloads[p % 2]);
        }
    }
}

/* --- search --- */

static void check_search(wf_place place, wf_elem type, int upper, int sorted, int64_t needles,
                         int64_t among, enum prim_shape shape) {
    uint64_t *nn = keys_new(shape, needles, 3000, 3, sorted != 0);
    uint64_t *mn = keys_new(shape, among, 3000, 4, true);
    void *n = as_type(type, nn, needles);
    void *m = as_type(type, mn, among);
    uint32_t *out = malloc((size_t)needles * 4 + 4);
    assert_prim_ok(wf_prim_search(prim, place, upper, sorted, prim_array(WF_ELEM_U32, out, needles),
                                  prim_array(type, n, needles), prim_array(type, m, among), NULL));
    for (int64_t i = 0; i < needles; i++) {
        int64_t low = 0;
        int64_t high = among;
        while (low < high) {
            int64_t mid = (low + high) / 2;
            if (upper ? mn[mid] <= nn[i] : mn[mid] < nn[i]) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        if (out[i] != low) {
            fail_msg("search on %d: %lld in %lld: needle %lld", place, (long long)needles,
                     (long long)among, (long long)i);
        }
    }
    free(nn);
    free(mn);
    free(n);
    free(m);
    free(out);
}

static void test_search(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int p = 0; p < PAIRS; p++) {
            check_search((wf_place)place, p & 1 ? WF_ELEM_I64 : WF_ELEM_U32, p >> 1 & 1, p % 3 != 0,
                         pairs[p][0], pairs[p][1], (enum prim_shape)(p % SHAPE_COUNT));
        }
    }
}

static void test_balance(void **state) {
    (void)state;
    enum { SEGMENTS = 3000 };
    static uint64_t starts[SEGMENTS];
    uint64_t seed = 9;
    for (int place = 0; place < prim_places(); place++) {
        for (int kind = 0; kind < 3; kind++) {
            uint64_t all = 0;
            for (int s = 0; s < SEGMENTS; s++) {
                starts[s] = all;
                uint64_t r = prim_random(&seed);
                all += kind == 0 ? r % 5 : kind == 1 ? (r % 700 == 0 ? 3000 : 0) : 1;
            }
            uint64_t *out = malloc(all * 8 + 8);
            assert_prim_ok(wf_prim_balance(
                prim, (wf_place)place, prim_array(WF_ELEM_U64, out, (int64_t)all), (int64_t)all,
                prim_array(kind == 2 ? WF_ELEM_I64 : WF_ELEM_U64, starts, SEGMENTS), NULL));
            for (int s = 0; s < SEGMENTS; s++) {
                uint64_t end = s + 1 < SEGMENTS ? starts[s + 1] : all;
                for (uint64_t i = starts[s]; i < end; i++) {
                    assert_int_equal(out[i], s);
                }
            }
            free(out);
        }
    }
}

/* --- runs --- */

static void check_runs(wf_place place, wf_elem type, enum prim_shape shape, int64_t n) {
    uint64_t *numbers = keys_new(shape, n, 400, 6, shape != SHAPE_RANDOM);
    void *keys = as_type(type, numbers, n);
    void *out = calloc((size_t)n + 1, 16);
    uint32_t *starts = malloc((size_t)n * 4 + 4);
    uint64_t *counts = malloc((size_t)n * 8 + 8);
    int64_t runs = -1;
    int64_t expected = 0;
    assert_prim_ok(wf_prim_runs(
        prim, place, prim_array(type, out, n), n % 2 ? prim_array(WF_ELEM_U32, starts, n) : none,
        prim_array(WF_ELEM_U64, counts, n), prim_array(type, keys, n), &runs, NULL));
    for (int64_t i = 0; i < n;) {
        int64_t end = i + 1;
        while (end < n && numbers[end] == numbers[i]) {
            end++;
        }
        if (expected >= runs || number_at(type, out, expected) != numbers[i] ||
            counts[expected] != (uint64_t)(end - i) || (n % 2 && starts[expected] != i)) {
            fail_msg("runs on %d of %lld: run %lld", place, (long long)n, (long long)expected);
        }
        expected++;
        i = end;
    }
    assert_int_equal(runs, expected);
    if (expected > 1) {
        assert_prim_error(wf_prim_runs(prim, place, prim_array(type, out, expected - 1), none, none,
                                       prim_array(type, keys, n), &runs, NULL),
                          "54000");
        assert_int_equal(runs, expected);
    }
    free(numbers);
    free(keys);
    free(out);
    free(starts);
    free(counts);
}

static void test_runs(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_runs((wf_place)place, types[s % 3], (enum prim_shape)(s % SHAPE_COUNT),
                       prim_sizes[s]);
        }
    }
}

/* --- sets --- */

/* As std::set_union and its kin do it. */
static int64_t plain_set(const wf_set_how *how, uint64_t *out, const uint64_t *a, int64_t a_n,
                         const uint64_t *b, int64_t b_n) {
    int64_t n = 0;
    int64_t i = 0;
    int64_t j = 0;
    uint64_t shift = (uint64_t)how->ignore_bits;
    while (i < a_n || j < b_n) {
        uint64_t x = i < a_n ? a[i] >> shift : ~0ULL;
        uint64_t y = j < b_n ? b[j] >> shift : ~0ULL;
        uint64_t key = x < y ? x : y;
        int64_t m = 0;
        int64_t k = 0;
        while (i + m < a_n && a[i + m] >> shift == key) {
            m++;
        }
        while (j + k < b_n && b[j + k] >> shift == key) {
            k++;
        }
        int64_t in_a = how->distinct && m > 1 ? 1 : m;
        int64_t in_b = how->distinct && k > 1 ? 1 : k;
        int64_t low = in_a < in_b ? in_a : in_b;
        int64_t from_a = how->op == WF_SET_UNION          ? in_a
                         : how->op == WF_SET_INTERSECTION ? low
                                                          : in_a - low;
        int64_t a_skip = how->op == WF_SET_DIFFERENCE || how->op == WF_SET_SYMMETRIC ? low : 0;
        int64_t from_b = how->op == WF_SET_UNION || how->op == WF_SET_SYMMETRIC ? in_b - low : 0;
        for (int64_t t = 0; t < from_a; t++) {
            out[n++] = a[i + a_skip + t];
        }
        for (int64_t t = 0; t < from_b; t++) {
            out[n++] = b[j + low + t];
        }
        i += m;
        j += k;
    }
    return n;
}

/* The numbers are freed here. */
static void check_set_of(wf_place place, wf_set_how how, wf_elem type, uint64_t *an, int64_t a_n,
                         uint64_t *bn, int64_t b_n) {
    void *a = as_type(type, an, a_n);
    void *b = as_type(type, bn, b_n);
    void *out = calloc((size_t)(a_n + b_n) + 1, 16);
    uint64_t *expected = malloc((size_t)(a_n + b_n) * 8 + 8);
    int64_t n = plain_set(&how, expected, an, a_n, bn, b_n);
    int64_t got = -1;
    assert_prim_ok(wf_prim_set(prim, place, &how, prim_array(type, out, a_n + b_n),
                               prim_array(type, a, a_n), prim_array(type, b, b_n), &got, NULL));
    if (got != n) {
        fail_msg("set %d%s on %d: %lld and %lld of type %d: %lld instead of %lld", how.op,
                 how.distinct ? " distinct" : "", place, (long long)a_n, (long long)b_n, type,
                 (long long)got, (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        if (number_at(type, out, i) != expected[i]) {
            fail_msg("set %d%s on %d: %lld and %lld: element %lld", how.op,
                     how.distinct ? " distinct" : "", place, (long long)a_n, (long long)b_n,
                     (long long)i);
        }
    }
    if (n > 0) {
        assert_prim_error(wf_prim_set(prim, place, &how, prim_array(type, out, n - 1),
                                      prim_array(type, a, a_n), prim_array(type, b, b_n), &got,
                                      NULL),
                          "54000");
        assert_int_equal(got, n);
    }
    free(an);
    free(bn);
    free(a);
    free(b);
    free(out);
    free(expected);
}

static void check_set(wf_place place, wf_set_how how, wf_elem type, enum prim_shape shape,
                      int64_t a_n, int64_t b_n, uint64_t range) {
    check_set_of(place, how, type, keys_new(shape, a_n, range, 7, true), a_n,
                 keys_new(shape, b_n, range, 8, true), b_n);
}

/* Ascending without repeats up to `last`, about every step-th number; repeated: 0 or how far apart
 * elements are that repeat the one before. */
static uint64_t *unique_new(int64_t n, uint64_t last, uint64_t step, uint64_t seed,
                            int64_t repeated) {
    uint64_t *keys = malloc((size_t)n * 8 + 8);
    for (int64_t i = n - 1; i >= 0; i--) {
        keys[i] = last;
        bool repeats = repeated && i % repeated == repeated - 1;
        last -= repeats ? 0 : step == 1 ? 1 : 1 + prim_random(&seed) % (2 * step - 2);
    }
    return keys;
}

/* Multiples of `gap`; every so many is left out. */
static uint64_t *spread_new(int64_t n, uint64_t gap, uint64_t left_out) {
    uint64_t *keys = malloc((size_t)n * 8 + 8);
    uint64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        at += (uint64_t)i % left_out == left_out - 1;
        keys[i] = at++ * gap;
    }
    return keys;
}

/* Elements that do not repeat, which the card merges otherwise than those that do; both arrays the
 * same, so that pairs lie on the borders of tiles and threads; up to the greatest key. */
static void test_unique_sets(void **state) {
    (void)state;
    static const struct {
        wf_set_op op;
        int distinct;
        wf_elem type;
    } cells[] = {{WF_SET_UNION, 0, WF_ELEM_U32},       {WF_SET_INTERSECTION, 0, WF_ELEM_U32},
                 {WF_SET_DIFFERENCE, 1, WF_ELEM_U32},  {WF_SET_INTERSECTION, 0, WF_ELEM_U64},
                 {WF_SET_DIFFERENCE, 0, WF_ELEM_U64},  {WF_SET_SYMMETRIC, 0, WF_ELEM_U64},
                 {WF_SET_INTERSECTION, 1, WF_ELEM_I32}};
    static const int64_t sizes[][2] = {{1, 1},       {16, 15},     {31, 32},     {1984, 1984},
                                       {1983, 1984}, {1984, 1985}, {3969, 0},    {0, 3969},
                                       {1920, 1921}, {9000, 700},  {7001, 12000}};
    for (int at = 0; at < prim_places() * 7 * 11; at++) {
        int p = at % 11;
        int c = at / 11 % 7;
        wf_place place = (wf_place)(at / 77);
        wf_elem type = cells[c].type;
        wf_set_how how = {cells[c].op, cells[c].distinct, 0};
        uint64_t greatest = type == WF_ELEM_U32   ? UINT32_MAX
                            : type == WF_ELEM_I32 ? INT32_MAX
                                                  : UINT64_MAX;
        uint64_t last = (p + c) % 2 ? greatest : 100000;
        uint64_t step = (uint64_t)((p + c) % 3 + 1);
        check_set_of(place, how, type,
                     unique_new(sizes[p][0], last, step, 21, (p + c) % 4 == 3 ? 1000 : 0),
                     sizes[p][0], unique_new(sizes[p][1], last, step, 22, p % 4 == 1 ? 3968 : 0),
                     sizes[p][1]);
        if (p < 2) { /* even and odd: no pairs; the same: nothing but pairs; from the least key */
            uint64_t *a = malloc(9000 * 8);
            uint64_t *b = malloc(9000 * 8);
            for (uint64_t i = 0; i < 9000; i++) {
                a[i] = 2 * i;
                b[i] = 2 * i + (uint64_t)p;
            }
            check_set_of(place, how, type, a, 9000, b, 9000 - c);
        } else if (p < 4) { /* over the whole type: tiles span too much for 32 bits, or for 64 */
            int64_t n = p == 2 ? 9000 : 1900;
            uint64_t gap = greatest / (uint64_t)(n + n / 2 + 9);
            check_set_of(place, how, type, spread_new(n, gap, 2), n, spread_new(n - c, gap, 3),
                         n - c);
        }
    }
    for (int at = 0; at < prim_places() * 2; at++) { /* low bits that only come along */
        uint64_t *a = spread_new(9000, 16, 2);
        uint64_t *b = spread_new(8000, 16, 3);
        for (int i = 0; i < 8000; i++) {
            a[i] += (uint64_t)i % 13;
            b[i] += (uint64_t)i % 11;
        }
        wf_set_how how = {at % 2 ? WF_SET_DIFFERENCE : WF_SET_UNION, at % 2 == 0, 4};
        check_set_of((wf_place)(at / 2), how, at % 2 ? WF_ELEM_U64 : WF_ELEM_U32, a, 9000, b, 8000);
    }
}

static void test_sets(void **state) {
    (void)state;
    static const uint64_t ranges[] = {5, 300, 100000};
    int64_t most = prim_test_max(50000);
    most = most < 1 << 25 ? most : 1 << 25; /* the expected answer is sorted by qsort */
    for (int place = 0; place < prim_places(); place++) {
        for (int op = 0; op < 4; op++) {
            for (int p = 0; p < PAIRS; p++) {
                wf_set_how how = {(wf_set_op)op, op == WF_SET_DIFFERENCE, 0};
                check_set((wf_place)place, how, op & 1 ? WF_ELEM_U64 : WF_ELEM_U32,
                          (enum prim_shape)((p + op) % SHAPE_COUNT), pairs[p][0], pairs[p][1],
                          ranges[(p + op) % 3]);
            }
        }
        check_set((wf_place)place, (wf_set_how){WF_SET_UNION, 1, 4}, WF_ELEM_U32, SHAPE_RANDOM,
                  5000, 6000, 1000);
        check_set((wf_place)place, (wf_set_how){WF_SET_INTERSECTION, 0, 0}, WF_ELEM_U32,
                  SHAPE_RANDOM, most, most, 1 << 30);
    }
}

/* --- errors --- */

/* --- what lies behind an output --- */

enum { BEHIND = 4096 }; /* bytes, more than a tile's vectors */

/* An output of `room` elements in memory of its device, and something behind them. */
static void *fenced(wf_place place, int64_t bytes) {
    void *data = NULL;
    char *fill = malloc((size_t)(bytes + BEHIND));
    memset(fill, 0x5c, (size_t)(bytes + BEHIND));
    assert_prim_ok(wf_prim_alloc(prim, place, bytes + BEHIND, &data));
    assert_prim_ok(wf_prim_copy(prim, data, fill, bytes + BEHIND));
    free(fill);
    return data;
}

static void check_fence(void *data, int64_t bytes) {
    unsigned char *seen = malloc((size_t)(bytes + BEHIND));
    assert_prim_ok(wf_prim_copy(prim, seen, data, bytes + BEHIND));
    for (int64_t i = bytes; i < bytes + BEHIND; i++) {
        assert_int_equal(seen[i], 0x5c);
    }
    free(seen);
    wf_prim_free(prim, data);
}

/* Results that are larger than their room: told, and nothing is written behind it, wherever the
 * room ends in a tile; of every operation, of keys that repeat and of keys that do not. */
static void test_room(void **state) {
    (void)state;
    static const int64_t rooms[] = {0, 1, 63, 1000, 4095, 4097, 7001};
    enum { N = 6000 };
    for (int t = 0; t < 2 * 4 * 7 * prim_places(); t++) {
        wf_place place = (wf_place)(t / 56);
        wf_elem type = t & 1 ? WF_ELEM_U64 : WF_ELEM_U32;
        int64_t bytes = t & 1 ? 8 : 4;
        wf_set_how how = {(wf_set_op)(t / 2 % 4), 0, 0};
        int64_t room = rooms[t / 8 % 7];
        uint64_t *an = malloc(N * 8);
        uint64_t *bn = malloc(N * 8);
        for (int64_t i = 0; i < N; i++) { /* half of each is in the other, all kinds are large */
            an[i] = (uint64_t)(t / 8 % 2 ? i / 3 : i) * 4;
            bn[i] = (uint64_t)(t / 8 % 2 ? i / 3 : i) * 4 + (i < N / 2 ? 0u : 1u);
        }
        void *a = as_type(type, an, N);
        void *b = as_type(type, bn, N);
        int64_t count = 0;
        int64_t most = 2 * N;
        void *whole = malloc((size_t)(most * bytes));
        assert_prim_ok(wf_prim_set(prim, place, &how, prim_array(type, whole, most),
                                   prim_array(type, a, N), prim_array(type, b, N), &most, NULL));
        room = room < most ? room : most - 1;
        void *out = fenced(place, room * bytes);
        assert_prim_error(wf_prim_set(prim, place, &how, prim_array(type, out, room),
                                      prim_array(type, a, N), prim_array(type, b, N), &count, NULL),
                          "54000");
        assert_int_equal(count, most);
        check_fence(out, room * bytes);
        wf_array no = {.type = WF_ELEM_U64};
        out = fenced(place, room / 8 * bytes);
        void *starts = fenced(place, room / 8 * 8);
        wf_array runs = prim_array(type, out, room / 8);
        assert_prim_error(wf_prim_runs(prim, place, runs, prim_array(WF_ELEM_U64, starts, room / 8),
                                       no, prim_array(type, a, N), &count, NULL),
                          "54000");
        check_fence(out, room / 8 * bytes);
        check_fence(starts, room / 8 * 8);
        free(an);
        free(bn);
        free(a);
        free(b);
        free(whole);
    }
}

/* Runs are of neighbours, in any order: texts that descend, that share their first bytes, that are
 * equal in different places. */
static void test_text_runs(void **state) {
    (void)state;
    static wf_span in[TEXTS], keys[TEXTS];
    static uint64_t starts[TEXTS], lengths[TEXTS];
    make_texts();
    int64_t n = 0;
    for (int i = 0; n < TEXTS - 4; i++) { /* one to three times each; falling and rising */
        for (int k = 0; k <= i % 3; k++) {
            in[n++] = texts[i % 5 < 2 ? TEXTS - 1 - i : i];
        }
    }
    for (int place = 0; place < prim_places(); place++) {
        int64_t count = 0;
        assert_prim_ok(wf_prim_runs(
            prim, (wf_place)place, text_array(keys, TEXTS), prim_array(WF_ELEM_U64, starts, TEXTS),
            prim_array(WF_ELEM_U64, lengths, TEXTS), text_array(in, n), &count, NULL));
        int64_t run = 0;
        for (int64_t i = 0; i < n; run++) {
            int64_t end = i + 1;
            while (end < n && text_compare(in[i], in[end]) == 0) {
                end++;
            }
            assert_true(run < count && starts[run] == (uint64_t)i);
            assert_int_equal(lengths[run], end - i);
            assert_int_equal(text_compare(keys[run], in[i]), 0);
            i = end;
        }
        assert_int_equal(run, count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorts),       cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_split),  cmocka_unit_test(test_room),
        cmocka_unit_test(test_text_runs),   cmocka_unit_test(test_merge),
        cmocka_unit_test(test_search),      cmocka_unit_test(test_balance),
        cmocka_unit_test(test_runs),        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_unique_sets),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

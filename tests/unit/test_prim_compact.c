/* test_prim_compact.c: compaction, gather, scatter and histogram on both devices against plain
 * loops. */
#include "test_prim_fixture.h"

#include "base/word.h"

struct rows {
    int64_t n;
    uint8_t *flags;
    uint32_t *a;
    uint64_t *b;
    uint64_t (*c)[2];
};

static struct rows make_rows(int64_t n, enum prim_shape shape, int percent) {
    struct rows r = {n, malloc((size_t)n + 1), malloc((size_t)n * 4 + 4), malloc((size_t)n * 8 + 8),
                     malloc((size_t)n * 16 + 16)};
    uint64_t seed = (uint64_t)n + shape;
    for (int64_t i = 0; i < n; i++) {
        r.flags[i] = (uint8_t)((int)(prim_random(&seed) % 100) < percent ? i % 250 + 1 : 0);
        r.a[i] = (uint32_t)prim_key(shape, i, n, &seed);
        r.b[i] = prim_random(&seed);
        r.c[i][0] = prim_random(&seed);
        r.c[i][1] = (uint64_t)i;
    }
    return r;
}

static void free_rows(struct rows *r) {
    free(r->flags);
    free(r->a);
    free(r->b);
    free(r->c);
}

static int by_number(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x;
    uint64_t b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* The numbers say which rows were kept; unordered ones are sorted first. */
static void check_kept(const struct rows *r, const struct rows *o, uint64_t *numbers, int64_t count,
                       int ordered) {
    for (int64_t i = 0; i < count; i++) {
        uint64_t row = numbers[i];
        assert_true(row < (uint64_t)r->n);
        assert_true(o->a[i] == r->a[row] && o->b[i] == r->b[row]);
        assert_true(o->c[i][0] == r->c[row][0] && o->c[i][1] == row);
    }
    if (!ordered) {
        qsort(numbers, (size_t)count, 8, by_number);
    }
    int64_t at = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (r->flags[i]) {
            assert_true(at < count && numbers[at] == (uint64_t)i);
            at++;
        }
    }
    assert_int_equal(at, count);
}

static void check_flags(wf_place place, int ordered, int64_t n, int percent) {
    struct rows r = make_rows(n, SHAPE_RANDOM, percent);
    struct rows o = make_rows(n, SHAPE_CONSTANT, 0);
    uint64_t *numbers = malloc((size_t)n * 8 + 8);
    int64_t count = -1;
    wf_array in[4] = {prim_array(WF_ELEM_U32, r.a, n), prim_array(WF_ELEM_F64, r.b, n),
                      prim_array(WF_ELEM_U128, r.c, n), prim_array(WF_ELEM_U64, NULL, 0)};
    wf_array out[4] = {prim_array(WF_ELEM_U32, o.a, n), prim_array(WF_ELEM_F64, o.b, n),
                       prim_array(WF_ELEM_U128, o.c, n), prim_array(WF_ELEM_U64, numbers, n)};
    wf_array flags = prim_array(WF_ELEM_BOOL, r.flags, n);
    if (n) {
        assert_prim_ok(wf_prim_compact(prim, place, ordered, out, in, 4, flags, &count, NULL));
        check_kept(&r, &o, numbers, count, ordered);
    }
    if (count > 0) {
        int64_t told = 0;
        uint32_t after = o.a[count - 1];
        out[0].count = count - 1;
        assert_prim_error(wf_prim_compact(prim, place, ordered, out, in, 4, flags, &told, NULL),
                          "54000");
        assert_int_equal(told, count);
        assert_true(o.a[count - 1] == after);
    }
    free_rows(&r);
    free_rows(&o);
    free(numbers);
}

static void test_flags(void **state) {
    (void)state;
    static const int percents[] = {50, 0, 100, 10, 90};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_flags((wf_place)place, s & 1, prim_sizes[s], percents[s % 5]);
        }
        for (int p = 0; p < 5; p++) {
            check_flags((wf_place)place, 1, 30011, percents[p]);
            check_flags((wf_place)place, 0, 30011, percents[p]);
        }
    }
}

static double as_double(wf_elem type, const void *x) {
    return type == WF_ELEM_F32 ? *(const float *)x : type == WF_ELEM_F64 ? *(const double *)x : 0;
}

static int compare_as(wf_elem type, const void *x, const void *y) {
    double fx = as_double(type, x);
    double fy = as_double(type, y);
    uint64_t wide_x[2], wide_y[2];
    switch (type) {
    case WF_ELEM_U32:
        return (*(const uint32_t *)x > *(const uint32_t *)y) -
               (*(const uint32_t *)x < *(const uint32_t *)y);
    case WF_ELEM_I32:
        return (*(const int32_t *)x > *(const int32_t *)y) -
               (*(const int32_t *)x < *(const int32_t *)y);
    case WF_ELEM_U64:
        return (*(const uint64_t *)x > *(const uint64_t *)y) -
               (*(const uint64_t *)x < *(const uint64_t *)y);
    case WF_ELEM_I64:
        return (*(const int64_t *)x > *(const int64_t *)y) -
               (*(const int64_t *)x < *(const int64_t *)y);
    case WF_ELEM_U128:
        memcpy(wide_x, x, 16);
        memcpy(wide_y, y, 16);
        return wide_x[1] != wide_y[1] ? (wide_x[1] > wide_y[1] ? 1 : -1)
                                      : (wide_x[0] > wide_y[0]) - (wide_x[0] < wide_y[0]);
    default:
        if (isnan(fx) || isnan(fy)) {
            return (isnan(fx) != 0) - (isnan(fy) != 0);
        }
        return (fx > fy) - (fx < fy);
    }
}

static int holds(wf_compare compare, int c) {
    switch (compare) {
    case WF_COMPARE_EQ:
        return c == 0;
    case WF_COMPARE_NE:
        return c != 0;
    case WF_COMPARE_LT:
        return c < 0;
    case WF_COMPARE_LE:
        return c <= 0;
    case WF_COMPARE_GT:
        return c > 0;
    default:
        return c >= 0;
    }
}

/* The key itself is the column; every type, comparison, and awkward constants. */
static void check_compare(wf_place place, wf_elem type, wf_compare compare, int64_t n, int which) {
    int width = type == WF_ELEM_U128                                                ? 16
                : type == WF_ELEM_U32 || type == WF_ELEM_I32 || type == WF_ELEM_F32 ? 4
                                                                                    : 8;
    char *in = calloc((size_t)n + 1, (size_t)width);
    char *out = calloc((size_t)n + 1, (size_t)width);
    uint64_t seed = (uint64_t)n + type;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r[2] = {prim_random(&seed), prim_random(&seed) & 1};
        float f = r[0] % 11 == 0   ? NAN
                  : r[0] % 11 == 1 ? -0.0f
                  : r[0] % 11 == 2 ? 0.0f
                                   : (float)(int)(r[0] >> 40) - 8e6f;
        double d = f;
        const void *from = type == WF_ELEM_F32 ? (void *)&f : type == WF_ELEM_F64 ? (void *)&d : r;
        memcpy(in + i * width, from, (size_t)width);
    }
    char value[16] = {0};
    float zero = which ? NAN : 0.0f;
    double wide_zero = zero;
    if (type == WF_ELEM_F32) {
        memcpy(value, &zero, 4);
    } else if (type == WF_ELEM_F64) {
        memcpy(value, &wide_zero, 8);
    } else if (n && which) {
        memcpy(value, in + n / 2 * width, (size_t)width);
    }
    int64_t count = 0;
    wf_array from = prim_array(type, in, n);
    wf_array to = prim_array(type, out, n);
    assert_prim_ok(
        wf_prim_compact_compare(prim, place, 1, &to, &from, 1, from, compare, value, &count, NULL));
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (holds(compare, compare_as(type, in + i * width, value))) {
            if (at >= count || memcmp(out + at * width, in + i * width, (size_t)width) != 0) {
                fail_msg("compaction by comparison %d of type %d: row %lld", (int)compare,
                         (int)type, (long long)i);
            }
            at++;
        }
    }
    assert_int_equal(at, count);
    free(in);
    free(out);
}

static void test_compare(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int type = WF_ELEM_U32; type <= WF_ELEM_U128; type++) {
            for (int compare = 0; compare < 6; compare++) {
                check_compare((wf_place)place, (wf_elem)type, (wf_compare)compare, 3001,
                              compare & 1);
                check_compare((wf_place)place, (wf_elem)type, (wf_compare)compare, 33,
                              !(compare & 1));
            }
        }
        check_compare((wf_place)place, WF_ELEM_U32, WF_COMPARE_LT, prim_test_max(1000000), 1);
    }
}

static void check_gather(wf_place place, int width, int index_bytes, int64_t n, int passes) {
    wf_elem type = width == 4 ? WF_ELEM_F32 : width == 8 ? WF_ELEM_I64 : WF_ELEM_U128;
    wf_elem index_type = index_bytes == 4 ? WF_ELEM_U32 : WF_ELEM_U64;
    int64_t m = n / 2 + 1;
    char *in = calloc((size_t)(n + 1), (size_t)width);
    char *out = calloc((size_t)(n + 1), (size_t)width);
    char *index = calloc((size_t)(n + 1), (size_t)index_bytes);
    uint64_t *order = malloc((size_t)n * 8 + 8);
    uint64_t seed = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = prim_random(&seed);
        memcpy(in + i * width, &r, (size_t)(width < 8 ? width : 8));
        order[i] = (uint64_t)i;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = prim_random(&seed) % (uint64_t)m;
        memcpy(index + i * index_bytes, &at, (size_t)index_bytes);
    }
    wf_array to = prim_array(type, out, n);
    wf_array by = prim_array(index_type, index, n);
    assert_prim_ok(wf_prim_gather(prim, place, to, prim_array(type, in, m), by, passes, NULL));
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = 0;
        memcpy(&at, index + i * index_bytes, (size_t)index_bytes);
        assert_memory_equal(out + i * width, in + at * (uint64_t)width, (size_t)width);
    }
    for (int64_t i = n - 1; i > 0; i--) { /* a permutation */
        uint64_t k = prim_random(&seed) % (uint64_t)(i + 1);
        uint64_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(index + i * index_bytes, &order[i], (size_t)index_bytes);
    }
    to.count = n + 1;
    memset(out, 7, (size_t)(n + 1) * (size_t)width);
    assert_prim_ok(wf_prim_scatter(prim, place, to, prim_array(type, in, n), by, passes, NULL));
    for (int64_t i = 0; i < n; i++) {
        assert_memory_equal(out + order[i] * (uint64_t)width, in + i * width, (size_t)width);
    }
    assert_int_equal(out[n * width], 7);
    if (n > 5) {
        uint64_t far = (uint64_t)n + 1;
        memcpy(index + 3 * index_bytes, &far, (size_t)index_bytes);
        memcpy(index + 5 * index_bytes, &far, (size_t)index_bytes);
        assert_prim_error(
            wf_prim_scatter(prim, place, to, prim_array(type, in, n), by, passes, NULL), "22023");
        assert_non_null(strstr(wf_prim_error(prim)->message, "index[3]"));
        assert_prim_error(
            wf_prim_gather(prim, place, to, prim_array(type, in, n), by, passes, NULL), "22023");
    }
    free(in);
    free(out);
    free(index);
    free(order);
}

static void test_gather(void **state) {
    (void)state;
    static const int widths[] = {4, 8, 16};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_gather((wf_place)place, widths[s % 3], s % 2 ? 4 : 8, prim_sizes[s],
                         s % 4 == 3   ? 3
                         : s % 4 == 2 ? 1
                                      : 0);
        }
        uint32_t a[8] = {0};
        uint32_t b[8] = {0};
        wf_array x = prim_array(WF_ELEM_U32, a, 4);
        wf_array y = prim_array(WF_ELEM_U32, b, 4);
        wf_array i = prim_array(WF_ELEM_U32, a + 4, 4);
        wf_place at = (wf_place)place;
        assert_prim_error(wf_prim_gather(prim, at, y, x, i, -1, NULL), "22023");
        i.type = WF_ELEM_I32;
        assert_prim_error(wf_prim_gather(prim, at, y, x, i, 0, NULL), "42804");
        i.type = WF_ELEM_U32;
        y.count = 3;
        assert_prim_error(wf_prim_gather(prim, at, y, x, i, 0, NULL), "22023");
        x.count = 3;
        assert_prim_error(wf_prim_scatter(prim, at, y, x, i, 0, NULL), "22023");
        x.type = WF_ELEM_I32;
        assert_prim_error(wf_prim_gather(prim, at, y, x, i, 0, NULL), "42804");
    }
}

/* What just exceeds the cache, of which simt says that it has one megabyte, is visited in passes
 * that do not, if it is visited often; everything else in one. */
static void test_passes(void **state) {
    (void)state;
    static const struct {
        int64_t source, visits;
        int passes[2]; /* least, of gather and scatter */
    } cases[] = {{1000, 1000, {1, 1}},
                 {300000, 200000, {4, 4}},
                 {300000, 1000, {1, 1}},
                 {700000, 350000, {1, 8}}};
    if (!prim_has_gpu || getenv("WARPFOX_TEST_GPU")) {
        return;
    }
    for (int c = 0; c < 4 * 2; c++) {
        int64_t n = cases[c / 2].source;
        int64_t m = cases[c / 2].visits;
        uint32_t *large = malloc((size_t)n * 4);
        uint32_t *small = malloc((size_t)m * 4);
        uint32_t *index = malloc((size_t)m * 4);
        for (int64_t i = 0; i < n; i++) {
            large[i] = (uint32_t)(i * 7);
        }
        for (int64_t i = 0; i < m; i++) {
            index[i] = (uint32_t)(i * 7919 % n);
            small[i] = (uint32_t)i;
        }
        wf_array a = prim_array(WF_ELEM_U32, large, n);
        wf_array b = prim_array(WF_ELEM_U32, small, m);
        wf_array by = prim_array(WF_ELEM_U32, index, m);
        assert_prim_ok(c & 1 ? wf_prim_scatter(prim, WF_ON_GPU, a, b, by, 0, NULL)
                             : wf_prim_gather(prim, WF_ON_GPU, b, a, by, 0, NULL));
        int64_t launches = wf_prim_metric(prim, "launches");
        int least = cases[c / 2].passes[c & 1];
        assert_true(least > 1 ? launches >= least : launches == 1);
        for (int64_t i = 0; i < m; i++) {
            assert_int_equal(large[index[i]], c & 1 ? small[i] : index[i] * 7);
            assert_int_equal(small[i], c & 1 ? i : large[index[i]]);
        }
        free(large);
        free(small);
        free(index);
    }
}

static void check_histogram(wf_place place, wf_elem type, enum prim_shape shape, int64_t n,
                            int64_t bins, int64_t first, int64_t width) {
    int bytes = type == WF_ELEM_U32 || type == WF_ELEM_I32 ? 4 : 8;
    char *in = malloc((size_t)(n * bytes) + 8);
    uint64_t *out = malloc((size_t)bins * 8 + 16);
    uint64_t *want = calloc((size_t)bins + 1, 8);
    uint64_t seed = (uint64_t)n;
    out[bins] = 5;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = prim_key(shape, i, n, &seed);
        memcpy(in + i * bytes, &x, (size_t)bytes);
        i128 value = type == WF_ELEM_U32   ? (i128)(uint32_t)x
                     : type == WF_ELEM_I32 ? (i128)(int32_t)x
                     : type == WF_ELEM_U64 ? (i128)x
                                           : (i128)(int64_t)x;
        i128 far = value - first;
        if (far >= 0 && far / width < bins) {
            want[(int64_t)(far / width)]++;
        }
    }
    assert_prim_ok(wf_prim_histogram(prim, place, prim_array(WF_ELEM_U64, out, bins),
                                     prim_array(type, in, n), first, width, NULL));
    for (int64_t b = 0; b < bins; b++) {
        if (out[b] != want[b]) {
            fail_msg("histogram of %lld: bin %lld of %lld", (long long)n, (long long)b,
                     (long long)bins);
        }
    }
    assert_int_equal(out[bins], 5);
    free(in);
    free(out);
    free(want);
}

static void test_histogram(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_histogram(at, (wf_elem)(s % 2), (enum prim_shape)(s % SHAPE_COUNT), prim_sizes[s],
                            s % 3 ? 256 : 7, s % 2 ? -40 : 3, s % 3 ? 1 : 1000);
        }
        check_histogram(at, WF_ELEM_U32, SHAPE_ZIPF, 20000, 70000, 0, 1); /* beyond shared memory */
        check_histogram(at, WF_ELEM_U64, SHAPE_CONSTANT, 20000, 70000, 0, 1);
        check_histogram(at, WF_ELEM_U64, SHAPE_RANDOM, 5000, 100, INT64_MIN, INT64_MAX / 25);
        check_histogram(at, WF_ELEM_I64, SHAPE_RANDOM, 5000, 100, INT64_MIN, INT64_MAX / 25);
        check_histogram(at, WF_ELEM_I64, SHAPE_RANDOM, 5000, 64, INT64_MIN, 1LL << 58);
        check_histogram(at, WF_ELEM_U64, SHAPE_RANDOM, 1000, 10, INT64_MIN, 1);
        check_histogram(at, WF_ELEM_U32, SHAPE_RANDOM, 1000, 10, INT64_MAX, 1);
        check_histogram(at, WF_ELEM_I32, SHAPE_RANDOM, 5000, 3, -10000000000LL, 10000000000LL);
        check_histogram(at, WF_ELEM_U32, SHAPE_SMALL, prim_test_max(300000), 256, 0, 1);
        uint64_t out[4];
        uint32_t in[4] = {0};
        wf_array to = prim_array(WF_ELEM_U64, out, 4);
        wf_array from = prim_array(WF_ELEM_U32, in, 4);
        assert_prim_error(wf_prim_histogram(prim, at, to, from, 0, 0, NULL), "22023");
        to.count = 0;
        assert_prim_ok(wf_prim_histogram(prim, at, to, from, 0, 1, NULL));
        to.type = WF_ELEM_U32;
        assert_prim_error(wf_prim_histogram(prim, at, to, from, 0, 1, NULL), "42804");
        to.type = WF_ELEM_U64;
        from.type = WF_ELEM_F32;
        assert_prim_error(wf_prim_histogram(prim, at, to, from, 0, 1, NULL), "42804");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_histogram),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

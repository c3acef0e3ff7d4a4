/* test_prim_move.c: primitives that compute or move elements, on both devices, against plain loops.
 */
#include "test_prim_fixture.h"

static uint64_t word_fold(wf_fold fold, uint64_t a, uint64_t b) {
    switch (fold) {
    case WF_FOLD_ADD:
        return a + b;
    case WF_FOLD_MUL:
        return a * b;
    case WF_FOLD_AND:
        return a & b;
    case WF_FOLD_OR:
        return a | b;
    case WF_FOLD_XOR:
        return a ^ b;
    case WF_FOLD_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static void check_scan(wf_place place, wf_fold fold, int inclusive, enum prim_shape shape,
                       int64_t n) {
    uint64_t seed = (uint64_t)n + fold;
    uint64_t *in = malloc((size_t)n * 8 + 8);
    uint64_t *out = malloc((size_t)n * 8 + 8);
    for (int64_t i = 0; i < n; i++) {
        in[i] = prim_key(shape, i, n, &seed);
    }
    assert_prim_ok(wf_prim_scan(prim, place, fold, inclusive, prim_array(WF_ELEM_U64, out, n),
                                prim_array(WF_ELEM_U64, in, n), NULL));
    static const uint64_t identity[] = {0, 1, ~0ULL, 0, 0, ~0ULL, 0};
    uint64_t upto = identity[fold];
    for (int64_t i = 0; i < n; i++) {
        uint64_t next = word_fold(fold, upto, in[i]);
        if (out[i] != (inclusive ? next : upto)) {
            fail_msg("scan of %lld: element %lld", (long long)n, (long long)i);
        }
        upto = next;
    }
    free(in);
    free(out);
}

static void test_scan(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_scan((wf_place)place, (wf_fold)(s % 7), s & 1, (enum prim_shape)(s % SHAPE_COUNT),
                       prim_sizes[s]);
        }
        check_scan((wf_place)place, WF_FOLD_ADD, 0, SHAPE_RANDOM, prim_test_max(1000000));
    }
}

static void test_scan_types(void **state) {
    (void)state;
    enum { N = 5003 };
    static float f[N], fo[N];
    static int32_t s[N], so[N];
    static uint32_t u[N];
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        f[i] = i % 97 == 96 ? NAN : (float)(int64_t)prim_random(&seed);
        s[i] = (int32_t)prim_random(&seed);
        u[i] = (uint32_t)s[i];
    }
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_MIN, 1, prim_array(WF_ELEM_F32, fo, N),
                                    prim_array(WF_ELEM_F32, f, N), NULL));
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_MAX, 1, prim_array(WF_ELEM_I32, so, N),
                                    prim_array(WF_ELEM_I32, s, N), NULL));
        float least = f[0];
        int32_t most = s[0];
        for (int i = 0; i < N; i++) {
            least = f[i] < least ? f[i] : least;
            most = s[i] > most ? s[i] : most;
            assert_true(fo[i] == least && so[i] == most);
        }
        uint32_t sum = 0; /* in place */
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, prim_array(WF_ELEM_U32, u, N),
                                    prim_array(WF_ELEM_U32, u, N), NULL));
        for (int i = 0; i < N; i++) {
            assert_int_equal(u[i], sum);
            sum += (uint32_t)s[i];
            u[i] = (uint32_t)s[i];
        }
    }
}

static void test_series(void **state) {
    (void)state;
    static uint64_t out[5000];
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        for (int s = 0; s < PRIM_SIZES && prim_sizes[s] <= 5000; s++) {
            int64_t n = prim_sizes[s];
            memset(out, 0x55, sizeof out);
            assert_prim_ok(
                wf_prim_sequence(prim, at, prim_array(WF_ELEM_I64, out, n), -7, 3, NULL));
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal((int64_t)out[i], -7 + 3 * i);
            }
            assert_prim_ok(
                wf_prim_sequence(prim, at, prim_array(WF_ELEM_U32, out, n), 5, -1, NULL));
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(((uint32_t *)out)[i], (uint32_t)(5 - i));
            }
            double pi = 3.25;
            assert_prim_ok(wf_prim_fill(prim, at, prim_array(WF_ELEM_F64, out, n), &pi, NULL));
            for (int64_t i = 0; i < n; i++) {
                assert_true(((double *)out)[i] == 3.25);
            }
            uint64_t wide[2] = {1, 2};
            assert_prim_ok(
                wf_prim_fill(prim, at, prim_array(WF_ELEM_U128, out, n / 2), wide, NULL));
            for (int64_t i = 0; i < n / 2; i++) {
                assert_true(out[2 * i] == 1 && out[2 * i + 1] == 2);
            }
            uint8_t yes = 1;
            assert_prim_ok(wf_prim_fill(prim, at, prim_array(WF_ELEM_BOOL, out, n), &yes, NULL));
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(((uint8_t *)out)[i], 1);
            }
        }
        wf_array f = prim_array(WF_ELEM_F32, out, 5);
        assert_prim_error(wf_prim_sequence(prim, at, f, 0, 1, NULL), "42804");
        assert_prim_error(wf_prim_fill(prim, at, f, NULL, NULL), "22023");
        f.type = WF_ELEM_TEXT;
        assert_prim_error(wf_prim_fill(prim, at, f, out, NULL), "42804");
    }
}

static void check_reduce(wf_place place, wf_fold fold, enum prim_shape shape, int64_t n) {
    static const uint64_t identity[] = {0, 1, ~0ULL, 0, 0, ~0ULL, 0};
    uint64_t seed = (uint64_t)n + fold;
    uint64_t *in = malloc((size_t)n * 8 + 8);
    uint64_t wide = identity[fold];
    uint64_t out[2] = {1, 99};
    for (int64_t i = 0; i < n; i++) {
        in[i] = prim_key(shape, i, n, &seed);
        wide = word_fold(fold, wide, in[i]);
    }
    assert_prim_ok(wf_prim_reduce(prim, place, fold, prim_array(WF_ELEM_U64, out, 2),
                                  prim_array(WF_ELEM_U64, in, n), NULL));
    assert_true(out[0] == wide && out[1] == 99);
    uint32_t narrow = (uint32_t)identity[fold];
    uint32_t *in32 = (uint32_t *)in;
    for (int64_t i = 0; i < n; i++) {
        narrow = (uint32_t)word_fold(fold, narrow, in32[i]);
    }
    assert_prim_ok(wf_prim_reduce(prim, place, fold, prim_array(WF_ELEM_U32, out, 1),
                                  prim_array(WF_ELEM_U32, in, n), NULL));
    memcpy(&seed, out, 4);
    assert_int_equal((uint32_t)seed, narrow);
    free(in);
}

static void test_reduce(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_reduce((wf_place)place, (wf_fold)(s % 7), (enum prim_shape)(s % SHAPE_COUNT),
                         prim_sizes[s]);
        }
        check_reduce((wf_place)place, WF_FOLD_ADD, SHAPE_RANDOM, prim_test_max(1000000));
    }
}

/* Sums of floats are exact: cancelling values of all sizes leave what is left, in any order. */
static void test_float_sums(void **state) {
    (void)state;
    enum { N = 20000 };
    static double f[2 * N + 2];
    static float g[2 * N + 2];
    double sum;
    float narrow;
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        uint64_t seed = 5;
        for (int i = 0; i < N; i++) {
            uint64_t bits = prim_random(&seed) & 0xffefffffffffffffULL;
            bits = (bits >> 52 & 2047) == 2047 ? 0 : bits;
            memcpy(&f[2 * i], &bits, 8);
            f[2 * i + 1] = -f[(2 * i + 7000) % (2 * N) & ~1];
            g[2 * i] = (float)(i * 0.37);
            g[2 * i + 1] = -g[2 * i];
        }
        for (int i = 0; i < N; i++) {
            f[2 * i + 1] = -f[2 * ((i + 3500) % N)];
        }
        f[2 * N] = 1e-300;
        g[2 * N] = 0.1f;
        wf_array out = prim_array(WF_ELEM_F64, &sum, 1);
        wf_array in = prim_array(WF_ELEM_F64, f, 2 * N + 1);
        assert_prim_ok(wf_prim_reduce(prim, at, WF_FOLD_ADD, out, in, NULL));
        assert_true(sum == 1e-300);
        assert_prim_ok(wf_prim_reduce(prim, at, WF_FOLD_ADD, prim_array(WF_ELEM_F32, &narrow, 1),
                                      prim_array(WF_ELEM_F32, g, 2 * N + 1), NULL));
        assert_true(narrow == 0.1f);
        in.count = 0;
        assert_prim_ok(wf_prim_reduce(prim, at, WF_FOLD_ADD, out, in, NULL));
        assert_true(sum == 0);
        in.count = 3;
        f[0] = f[1] = 1.7e308;
        f[2] = -1e308;
        assert_prim_error(wf_prim_reduce(prim, at, WF_FOLD_ADD, out, in, NULL), "22003");
        f[1] = INFINITY;
        assert_prim_ok(wf_prim_reduce(prim, at, WF_FOLD_ADD, out, in, NULL));
        assert_true(sum == INFINITY);
        f[2] = -INFINITY;
        assert_prim_ok(wf_prim_reduce(prim, at, WF_FOLD_ADD, out, in, NULL));
        assert_true(isnan(sum));
    }
}

/* Segments: lengths by shape, empty ones among them. */
static void check_segments(wf_place place, wf_fold fold, int lengths, wf_elem type, int64_t n) {
    static const uint64_t identity[] = {0, 1, ~0ULL, 0, 0, ~0ULL, 0};
    uint64_t seed = (uint64_t)n + 3;
    uint64_t *in = malloc((size_t)n * 8 + 8);
    int64_t *offsets = malloc((size_t)(n + 4000) * 8);
    int64_t segments = 0;
    int64_t first = n > 10 ? 3 : 0;
    int64_t last = n > 10 ? n - 2 : n;
    offsets[0] = first;
    while ((offsets[segments] < last || lengths == 4) && segments < n + 3900) {
        uint64_t r = prim_random(&seed);
        int64_t length = lengths == 0   ? (int64_t)(r % 3) /* short, often empty */
                         : lengths == 1 ? last             /* one takes all */
                         : lengths == 2 ? (r % 50 ? (int64_t)(r % 5) : (int64_t)(r % 20000))
                         : lengths == 3 ? 1000
                                        : 0; /* all empty */
        int64_t end = offsets[segments] + length;
        offsets[++segments] = end < last ? end : last;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = prim_random(&seed);
        if (type == WF_ELEM_U64) {
            in[i] = x;
        } else {
            ((uint32_t *)in)[i] = (uint32_t)x;
        }
    }
    uint64_t *out = malloc((size_t)segments * 8 + 8);
    assert_prim_ok(wf_prim_reduce_segments(prim, place, fold, prim_array(type, out, segments),
                                           prim_array(type, in, n),
                                           prim_array(WF_ELEM_I64, offsets, segments + 1), NULL));
    for (int64_t s = 0; s < segments; s++) {
        uint64_t want = identity[fold];
        for (int64_t i = offsets[s]; i < offsets[s + 1]; i++) {
            want = type == WF_ELEM_U64
                       ? word_fold(fold, want, in[i])
                       : (uint32_t)word_fold(fold, (uint32_t)want, ((uint32_t *)in)[i]);
        }
        uint64_t got = type == WF_ELEM_U64 ? out[s] : ((uint32_t *)out)[s];
        want = type == WF_ELEM_U64 ? want : (uint32_t)want;
        if (got != want) {
            fail_msg("segments of %lld, lengths %d: segment %lld of %lld", (long long)n, lengths,
                     (long long)s, (long long)segments);
        }
    }
    free(in);
    free(offsets);
    free(out);
}

static void test_segments(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_segments(at, (wf_fold)(s % 7), s % 5, s & 1 ? WF_ELEM_U64 : WF_ELEM_U32,
                           prim_sizes[s]);
        }
        for (int lengths = 0; lengths < 5; lengths++) {
            check_segments(at, WF_FOLD_MAX, lengths, WF_ELEM_U32, 30011);
        }
        check_segments(at, WF_FOLD_ADD, 2, WF_ELEM_U64, prim_test_max(300007));
        uint32_t in[4] = {1, 2, 3, 4};
        uint32_t out[4];
        wf_array to = prim_array(WF_ELEM_U32, out, 3);
        wf_array from = prim_array(WF_ELEM_U32, in, 4);
        int64_t good[4] = {0, 1, 2, 4};
        int64_t bad[][4] = {{0, 2, 1, 4}, {-1, 1, 2, 4}, {0, 1, 2, 5}, {5, 5, 5, 5}, {0, 9, 2, 4}};
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from,
                                                      prim_array(WF_ELEM_I64, bad[b], 4), NULL),
                              "22023");
        }
        wf_array ends = prim_array(WF_ELEM_I64, good, 4);
        assert_prim_ok(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, ends, NULL));
        assert_true(out[0] == 1 && out[1] == 2 && out[2] == 7);
        to.count = 2;
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, ends, NULL),
                          "22023");
        to.count = 3;
        ends.count = 0;
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, ends, NULL),
                          "22023");
        ends.type = WF_ELEM_I32;
        ends.count = 4;
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, ends, NULL),
                          "42804");
        from.type = to.type = WF_ELEM_F32;
        ends.type = WF_ELEM_I64;
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_MUL, to, from, ends, NULL),
                          "0A000");
    }
}

/* Floats of many shapes: 0 alike, 1 of all sizes, 2 some of which are no numbers. */
static double float_of(uint64_t r, int shape) {
    double x = (double)(int64_t)(r >> 20) / 1024.0 - 1e10;
    if (shape > 0) {
        uint64_t bits = r & 0xffefffffffffffffULL;
        bits = (bits >> 52 & 2047) > 2000 ? r & 0xffff : bits;
        memcpy(&x, &bits, 8);
    }
    return shape < 2 || r % 101 ? x : r % 3 == 0 ? NAN : r % 3 == 1 ? INFINITY : -INFINITY;
}

/* A segment's sum is that of its elements alone, which test_float_sums knows to be exact. */
static void check_float_segments(wf_place place, wf_elem type, int64_t n, int shape) {
    uint64_t seed = (uint64_t)n * 3 + (uint64_t)shape;
    int64_t width = type == WF_ELEM_F64 ? 8 : 4;
    int64_t segments = 0;
    char *in = malloc((size_t)(n * width) + 8);
    char *out = malloc((size_t)((n + 8) * width));
    int64_t *offsets = malloc((size_t)(n + 9) * 8);
    for (int64_t i = 0; i < n; i++) {
        double x = float_of(prim_random(&seed), shape);
        if (type == WF_ELEM_F64) {
            memcpy(in + i * 8, &x, 8);
        } else {
            float narrow = fabs(x) < 1e30 || !isfinite(x) ? (float)x : (float)(i % 7);
            memcpy(in + i * 4, &narrow, 4);
        }
    }
    for (offsets[0] = 0; offsets[segments] < n && segments < n + 7; segments++) {
        uint64_t r = prim_random(&seed);
        int64_t end = offsets[segments] + (int64_t)(r % 40 ? r % 30 : r % 9000);
        offsets[segments + 1] = end < n ? end : n;
    }
    assert_prim_ok(wf_prim_reduce_segments(prim, place, WF_FOLD_ADD,
                                           prim_array(type, out, segments), prim_array(type, in, n),
                                           prim_array(WF_ELEM_I64, offsets, segments + 1), NULL));
    for (int64_t s = 0; s < segments; s++) {
        _Alignas(8) char want[8];
        int64_t first = offsets[s];
        assert_prim_ok(wf_prim_reduce(prim, WF_ON_CPU, WF_FOLD_ADD, prim_array(type, want, 1),
                                      prim_array(type, in + first * width, offsets[s + 1] - first),
                                      NULL));
        if (memcmp(want, out + s * width, (size_t)width) != 0) {
            fail_msg("sums of %lld floats, shape %d, place %d: segment %lld of %lld", (long long)n,
                     shape, (int)place, (long long)s, (long long)segments);
        }
    }
    free(in);
    free(out);
    free(offsets);
}

static void test_float_segments(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 33, 2047, 2049, 4096, 30011};
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        for (int s = 0; s < 7; s++) {
            check_float_segments(at, s & 1 ? WF_ELEM_F32 : WF_ELEM_F64, sizes[s], 0);
            check_float_segments(at, s & 1 ? WF_ELEM_F64 : WF_ELEM_F32, sizes[s], 2);
        }
        check_float_segments(at, WF_ELEM_F64, 9000, 1);
        check_float_segments(at, WF_ELEM_F32, prim_test_max(70007), 0);
        check_float_segments(WF_ON_CPU, WF_ELEM_F64, 300007, 0);
        double big[3] = {1.7e308, 1.7e308, 1};
        double out[2];
        int64_t ends[3] = {0, 2, 3};
        wf_array to = prim_array(WF_ELEM_F64, out, 2);
        wf_array from = prim_array(WF_ELEM_F64, big, 3);
        wf_array offsets = prim_array(WF_ELEM_I64, ends, 3);
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, offsets, NULL),
                          "22003");
        big[1] = -1.7e308;
        assert_prim_ok(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, offsets, NULL));
        assert_true(out[0] == 0 && out[1] == 1);
        ends[1] = 4;
        assert_prim_error(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, to, from, offsets, NULL),
                          "22023");
        uint32_t keys[3] = {7, 7, 8};
        uint32_t out_keys[3];
        int64_t count = 0;
        assert_prim_ok(wf_prim_reduce_runs(prim, at, WF_FOLD_ADD,
                                           prim_array(WF_ELEM_U32, out_keys, 2), to,
                                           prim_array(WF_ELEM_U32, keys, 3), from, &count, NULL));
        assert_true(count == 2 && out[0] == 0 && out[1] == 1);
    }
}

static void check_runs(wf_place place, int64_t n, uint64_t variety) {
    uint64_t seed = (uint64_t)n;
    uint32_t *keys = malloc((size_t)n * 4 + 4);
    int64_t *in = malloc((size_t)n * 8 + 8);
    uint32_t *out_keys = malloc((size_t)n * 4 + 4);
    int64_t *out = malloc((size_t)n * 8 + 8);
    int64_t count = -1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = prim_random(&seed);
        keys[i] = i && r % variety ? keys[i - 1] : (uint32_t)(r >> 40);
        in[i] = (int64_t)prim_random(&seed);
    }
    assert_prim_ok(
        wf_prim_reduce_runs(prim, place, WF_FOLD_MIN, prim_array(WF_ELEM_U32, out_keys, n),
                            prim_array(WF_ELEM_I64, out, n), prim_array(WF_ELEM_U32, keys, n),
                            prim_array(WF_ELEM_I64, in, n), &count, NULL));
    int64_t run = -1;
    int64_t least = 0;
    for (int64_t i = 0; i <= n; i++) {
        if (i == n || i == 0 || keys[i] != keys[i - 1]) {
            assert_true(run < 0 || (out[run] == least && out_keys[run] == keys[i - 1]));
            run++;
            least = INT64_MAX;
        }
        least = i < n && in[i] < least ? in[i] : least;
    }
    assert_int_equal(count, n ? run : 0);
    if (count > 1) {
        int64_t told = 0;
        assert_prim_error(wf_prim_reduce_runs(prim, place, WF_FOLD_MIN,
                                              prim_array(WF_ELEM_U32, out_keys, n),
                                              prim_array(WF_ELEM_I64, out, count - 1),
                                              prim_array(WF_ELEM_U32, keys, n),
                                              prim_array(WF_ELEM_I64, in, n), &told, NULL),
                          "54000");
        assert_int_equal(told, count);
    }
    free(keys);
    free(in);
    free(out_keys);
    free(out);
}

static void test_runs(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s += 2) {
            check_runs((wf_place)place, prim_sizes[s], s % 3 == 0 ? 2 : s % 3 == 1 ? 100 : 1000000);
        }
    }
}

/* Device memory and workspace of the caller. */
static void test_places(void **state) {
    (void)state;
    enum { N = 3000 };
    static uint32_t host[N];
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        void *in = NULL;
        void *room = NULL;
        wf_work work = {NULL, 0, 0};
        for (int i = 0; i < N; i++) {
            host[i] = 2;
        }
        assert_prim_ok(wf_prim_alloc(prim, at, sizeof host, &in));
        assert_prim_ok(wf_prim_copy(prim, in, host, sizeof host));
        wf_array data = prim_array(WF_ELEM_U32, in, N);
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_ADD, 1, data, data, &work));
        assert_true(work.needed > 0);
        assert_prim_ok(wf_prim_alloc(prim, at, work.needed, &room));
        work.data = room;
        work.bytes = work.needed - 1;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 1, data, data, &work), "22023");
        work.bytes = work.needed;
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_ADD, 1, data, data, &work));
        assert_prim_ok(wf_prim_copy(prim, host, in, sizeof host));
        assert_int_equal(host[N - 1], 2 * N);
        assert_int_equal(wf_prim_metric(prim, "bytes_moved"), 0);
        data.count = N + 1; /* more than the block has */
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 1, data, data, NULL), "22023");
        if (place == WF_ON_GPU) {
            data.count = N;
            assert_prim_error(wf_prim_scan(prim, WF_ON_CPU, WF_FOLD_ADD, 1, data, data, NULL),
                              "22023");
        }
        wf_prim_free(prim, in);
        wf_prim_free(prim, room);
    }
}

static void test_settings(void **state) {
    (void)state;
    assert_prim_ok(wf_prim_setting(prim, "gpu_cub", "off"));
    assert_prim_ok(wf_prim_setting(prim, "gpu_cub", "auto"));
    assert_prim_error(wf_prim_setting(prim, "gpu_cub", "perhaps"), "22023");
    assert_prim_error(wf_prim_setting(prim, "no_such_setting", "1"), "42704");
    assert_prim_error(wf_prim_setting(prim, "threads", "2"), "22023");
    assert_int_equal(wf_prim_setting(prim, NULL, "1"), WF_MISUSE);
    assert_int_equal(wf_prim_setting(prim, "gpu_cub", NULL), WF_MISUSE);
    assert_int_equal(wf_prim_metric(prim, "cub"), 0);
    assert_int_equal(wf_prim_metric(prim, "no_such_metric"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan),           cmocka_unit_test(test_scan_types),
        cmocka_unit_test(test_series),         cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_float_sums),     cmocka_unit_test(test_segments),
        cmocka_unit_test(test_float_segments), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_places),        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

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

static void test_refusals(void **state) {
    (void)state;
    static uint32_t a[64];
    wf_array in = prim_array(WF_ELEM_U32, a, 10);
    wf_array out = prim_array(WF_ELEM_U32, a + 32, 10);
    wf_array f = prim_array(WF_ELEM_F32, a + 32, 10);
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        assert_prim_error(wf_prim_scan(prim, at, (wf_fold)99, 0, out, in, NULL), "22023");
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, f, in, NULL), "42804");
        in.type = WF_ELEM_F32;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, f, in, NULL), "0A000");
        in.type = WF_ELEM_TEXT;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "42804");
        in.type = WF_ELEM_U32;
        in.count = -1;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        in.count = 11;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        in.count = 10;
        out.data = a + 1;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        out.data = NULL;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        out.data = a + 32;
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL));
        assert_int_equal(wf_prim_error(prim)->status, WF_OK);
    }
    assert_prim_error(wf_prim_scan(prim, (wf_place)7, WF_FOLD_ADD, 0, out, in, NULL), "22023");
    assert_int_equal(wf_prim_scan(NULL, WF_ON_CPU, WF_FOLD_ADD, 0, out, in, NULL), WF_MISUSE);
}

int main(int argc, char **argv) {
    prim_self = argc > 0 ? argv[0] : "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_types),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

/* test_fault_prim.c: the n-th call of the driver fails, with and without the loss of the context,
 * in the middle of work on memory of the GPU: calls fail with an error that says so, memory that
 * was lost is refused until it is allocated again, and then answers are right. */
#include "../unit/test_prim_fixture.h"

enum { ROWS = 5000 };

static wf_status try_all(uint32_t *host, void **out_block) {
    wf_array data = prim_array(WF_ELEM_U32, NULL, ROWS);
    wf_status status = wf_prim_alloc(prim, WF_ON_GPU, ROWS * 4, out_block);
    data.data = *out_block;
    for (int i = 0; i < ROWS; i++) {
        host[i] = 3;
    }
    status = status ? status : wf_prim_copy(prim, data.data, host, ROWS * 4);
    status = status ? status : wf_prim_scan(prim, WF_ON_GPU, WF_FOLD_ADD, 1, data, data, NULL);
    return status ? status : wf_prim_copy(prim, host, data.data, ROWS * 4);
}

static void check(const uint32_t *host) {
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(host[i], 3 * (i + 1));
    }
}

static void fail_call(int n, const char *code) {
    static uint32_t host[ROWS];
    char number[16];
    snprintf(number, sizeof number, "%d", n);
    setenv("SIMT_FAIL_AT", number, 1);
    setenv("SIMT_FAIL_CODE", code, 1);
    prim_start("2");
    void *block = NULL;
    for (int round = 0; round < 4; round++) { /* the failing call comes once */
        wf_status status = try_all(host, &block);
        if (status) {
            assert_true(wf_prim_error(prim)->message[0] != 0);
        } else {
            check(host);
        }
        if (block && round == 0 && status) { /* its memory may be gone */
            wf_array data = prim_array(WF_ELEM_U32, block, ROWS);
            wf_status again = wf_prim_scan(prim, WF_ON_GPU, WF_FOLD_ADD, 1, data, data, NULL);
            assert_true(again == WF_OK || wf_prim_error(prim)->message[0] != 0);
        }
        wf_prim_free(prim, block);
        block = NULL;
    }
    bool none = try_all(host, &block) && !strcmp(wf_prim_error(prim)->sqlstate, "58000");
    if (!none && wf_prim_error(prim)->status) { /* the call came only now */
        wf_prim_free(prim, block);
        assert_prim_ok(try_all(host, &block));
    }
    if (!none) { /* the GPU could be opened */
        check(host);
    }
    wf_prim_close(prim);
    wf_close(prim_db);
}

static void test_calls(void **state) {
    (void)state;
    static const char *const codes[] = {"999", "700"};
    for (int c = 0; c < 2; c++) {
        for (int n = 1; n < 120; n += 1 + n / 16) {
            fail_call(n, codes[c]);
        }
    }
    unsetenv("SIMT_FAIL_AT");
    unsetenv("SIMT_FAIL_CODE");
}

/* A join of ROWS with ROWS different keys in passes, so that it is open between calls. */
static wf_status try_join(uint32_t *keys, uint32_t *out, int64_t *out_rows) {
    wf_join_spec spec = {.algorithm = WF_JOIN_PARTITIONED_HASH};
    spec.r.keys = spec.s.keys = prim_array(WF_ELEM_U32, keys, ROWS);
    wf_join_out to = {.keys = prim_array(WF_ELEM_U32, out, ROWS / 2 + 1)};
    wf_join *join = NULL;
    int64_t rows = 1;
    *out_rows = 0;
    wf_status status = wf_prim_join_open(prim, WF_ON_GPU, &spec, &join);
    while (!status && rows > 0) {
        status = wf_prim_join_next(join, &to, &rows);
        *out_rows += rows;
    }
    if (join && status) { /* still refuses or answers, whatever was lost */
        wf_status again = wf_prim_join_count(join, &rows);
        assert_true(again == WF_OK || wf_prim_error(prim)->message[0] != 0);
    }
    wf_prim_join_close(join);
    return status;
}

static void fail_join(int n, const char *code) {
    static uint32_t keys[ROWS], out[ROWS];
    char number[16];
    int64_t rows = 0;
    snprintf(number, sizeof number, "%d", n);
    setenv("SIMT_FAIL_AT", number, 1);
    setenv("SIMT_FAIL_CODE", code, 1);
    prim_start("2");
    for (int i = 0; i < ROWS; i++) {
        keys[i] = (uint32_t)i * 7u;
    }
    bool right = false;
    for (int round = 0; round < 4 && !right; round++) {
        right = try_join(keys, out, &rows) == WF_OK;
        assert_true(!right || rows == ROWS);
    }
    assert_true(right || !strcmp(wf_prim_error(prim)->sqlstate, "58000"));
    wf_prim_close(prim);
    wf_close(prim_db);
}

static void test_join_calls(void **state) {
    (void)state;
    for (int n = 30; n < 260; n += 17) {
        fail_join(n, n & 1 ? "999" : "700");
    }
    unsetenv("SIMT_FAIL_AT");
    unsetenv("SIMT_FAIL_CODE");
}

int main(void) {
    (void)gpu_name_driver();
    if (getenv("WARPFOX_TEST_GPU")) {
        return 0; /* a real driver does not fail on request */
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_join_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

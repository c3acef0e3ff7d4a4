/* test_fault_csv.c: CSV files whose bytes are changed at random: all rows appear, or none.
 *
 * FUZZ_SECONDS (1) sets how long, FUZZ_SEED where to begin. Statements that are changed at random
 * are in tests/fuzz. */
#include "fault.h"

static uint64_t rng;

static uint64_t next_random(void) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static size_t below(size_t n) {
    return (size_t)(next_random() % n);
}

static int64_t seconds(void) {
    const char *text = getenv("FUZZ_SECONDS");
    return text ? atoll(text) : 1;
}

static void fuzz_file(struct fault_db f, const char *path, bool text_format) {
    static char bytes[4000];
    size_t len = 0;
    int64_t lines = (int64_t)below(40);
    char mark = text_format ? '|' : ',';
    for (int64_t i = 0; i < lines; i++) {
        len += (size_t)snprintf(bytes + len, sizeof bytes - len,
                                "%lld%c%s%lld%s%c%lld.%02lld%c200%lld-01-0%lld\n", (long long)i,
                                mark, i % 3 || text_format ? "" : "\"", (long long)i,
                                i % 3 || text_format ? "" : "\"", mark, (long long)i * 7,
                                (long long)i, mark, (long long)(i % 10), (long long)(i % 9 + 1));
    }
    static const char marks[] = ",|\"\n\r\\'\t .-+e0159\xc3\xa9\xff";
    for (size_t edits = below(5); edits > 0 && len > 0; edits--) {
        bytes[below(len)] = below(4) ? marks[below(sizeof marks - 1)] : (char)next_random();
    }
    len -= len && below(4) == 0 ? below(len) : 0;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
    char sql[500];
    snprintf(sql, sizeof sql, "copy f from '%s' with (%s%s)", path,
             text_format ? "delimiter '|'" : "format csv", below(4) ? "" : ", header");
    wf_result *result = NULL;
    wf_status status = wf_query(f.conn, sql, &result);
    int64_t loaded = status ? 0 : wf_result_rows_affected(result);
    wf_result_close(result);
    assert_true(status || loaded <= 4000);
    assert_string_not_equal(wf_connection_error(f.conn)->sqlstate, "XX000");
    char want[40];
    snprintf(want, sizeof want, "%lld;", (long long)loaded);
    expect(f.conn, "select count(*) from f", want);
    run(f.conn, "select a, b, c, d from f order by b, a");
    run(f.conn, "drop table f; create table f (a int, b text, c decimal(12,2), d date)");
}

static void test_files(void **state) {
    (void)state;
    char path[300];
    const char *seed = getenv("FUZZ_SEED");
    rng = seed ? strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 88172645463325252ULL;
    scratch_path(path, "fuzz.csv");
    struct fault_db f = open_with("2", NULL);
    make_control(f.conn);
    run(f.conn, "create table f (a int, b text, c decimal(12,2), d date)");
    int64_t end = clock_ns() + seconds() * 1000000000;
    while (clock_ns() < end) {
        fuzz_file(f, path, below(2) == 0);
    }
    check_control(f.conn);
    close_both(f);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

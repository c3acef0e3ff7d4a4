/* test_ssb.c: the generator of the Star Schema Benchmark: rows made whole and in pieces are the same,
 * columns left out change nothing in the others, dates are the calendar's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/ssb_int.h"
#include "test_tpch_print.h"

static struct memory mem;
static struct error err;
static struct generator *gen; /* at scale factor 0.001 */

static wf_status open_at(struct generator **out, i64 millionths, struct load_progress *progress) {
    struct gen_request request = {.millionths = millionths, .mem = &mem, .progress = progress};
    return ssb_suite.open(out, &request, &err);
}

static int set_up(void **state) {
    (void)state;
    memory_init(&mem, NULL, 0, "memory");
    error_reset(&err);
    return open_at(&gen, 1000, NULL) == ERR_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    gen->close(gen);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

static void add_line(void *arg, const char *text, i64 len) {
    u64 *hash = arg;
    for (i64 i = 0; i < len; i++) {
        *hash = (*hash ^ (u8)text[i]) * 1099511628211ULL;
    }
}

static u64 hash_of(i32 table, i64 piece) {
    u64 hash = 1469598103934665603ULL;
    i64 rows = gen->rows(gen, table);
    for (i64 first = 0; first < rows; first += piece) {
        print_rows(gen, table, first, MIN_OF(piece, rows - first), add_line, &hash);
    }
    return hash;
}

static void test_any_rows_alone(void **state) {
    (void)state;
    static const i64 pieces[] = {1, 3, 7, 1000};
    for (i32 t = 0; t < SSB_TABLES; t++) {
        u64 whole = hash_of(t, I32_MAX);
        for (i64 p = 0; p < COUNT_OF(pieces); p++) {
            assert_int_equal(hash_of(t, pieces[p]), whole);
        }
    }
}

/* One column of a table, alone or with all others, as text. */
static u64 column_hash(i32 table, u32 wanted, bool alone) {
    const struct gen_table *plan = &gen->tables[table];
    struct gen_target cols[PRINT_COLS];
    i64 rows = gen->rows(gen, table);
    u64 hash = 1469598103934665603ULL;
    memset(cols, 0, sizeof cols);
    for (u32 c = 0; c < plan->col_count; c++) {
        if (c == wanted || !alone) {
            cols[c].data = malloc((size_t)((rows + 1) * column_bytes(&plan->cols[c])));
            cols[c].text = malloc((size_t)((rows + 1) * plan->cols[c].text_bytes + 1));
        }
    }
    struct gen_chunk chunk = {0, rows, cols};
    gen->fill(gen, table, &chunk);
    for (i64 i = 0; i < rows; i++) {
        char text[200];
        add_line(&hash, text, print_value(text, &plan->cols[wanted], cols[wanted].data, i));
    }
    for (u32 c = 0; c < plan->col_count; c++) {
        free(cols[c].data);
        free(cols[c].text);
    }
    return hash;
}

static void test_any_column_alone(void **state) {
    (void)state;
    for (i32 t = 0; t < SSB_TABLES; t++) {
        for (u32 c = 0; c < gen->tables[t].col_count; c++) {
            assert_int_equal(column_hash(t, c, true), column_hash(t, c, false));
        }
    }
}

static void check_parts(i64 millionths, i64 parts) {
    struct generator *other;
    assert_int_equal(open_at(&other, millionths, NULL), ERR_OK);
    assert_int_equal(other->rows(other, SSB_PART), parts);
    other->close(other);
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(gen->rows(gen, SSB_LINEORDER), 6005);
    assert_int_equal(gen->rows(gen, SSB_CUSTOMER), 30);
    assert_int_equal(gen->rows(gen, SSB_SUPPLIER), 2);
    assert_int_equal(gen->rows(gen, SSB_DATE), 2556);
    check_parts(1000, 200);
    check_parts(999999, 199999);
    check_parts(1000000, 200000);
    check_parts(1999999, 200000);
    check_parts(2000000, 400000);
    check_parts(20000000, 1000000);
}

static void test_days(void **state) {
    (void)state;
    struct ssb_day first = ssb_day_of(0), leap = ssb_day_of(31 + 28),
                   last = ssb_day_of(SSB_DAYS - 1);
    assert_int_equal(first.in_week, 4); /* a Wednesday */
    assert_int_equal(leap.month * 100 + leap.day, 229);
    assert_true(leap.ends_month);
    assert_int_equal(last.year * 10000 + last.month * 100 + last.day, 19981230);
    assert_int_equal(last.in_year, 364);
    assert_int_equal(last.in_week, 4);
}

static void test_refused_and_cancelled(void **state) {
    (void)state;
    struct generator *other = NULL;
    _Atomic i32 cancel = 1;
    struct stop stop = {.cancel = &cancel};
    struct load_progress progress = {.stop = &stop};
    i64 used = atomic_load(&mem.used_bytes);
    for (i64 nth = 1; nth <= 2; nth++) {
        memory_fail_at(nth);
        assert_int_equal(open_at(&other, 1000, NULL), ERR_OUT_OF_MEMORY);
        memory_fail_at(0);
        assert_int_equal(atomic_load(&mem.used_bytes), used);
    }
    error_reset(&err);
    assert_int_equal(open_at(&other, 1000, &progress), ERR_CANCELLED);
    assert_int_equal(atomic_load(&mem.used_bytes), used);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_rows_alone),
        cmocka_unit_test(test_any_column_alone),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_refused_and_cancelled),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

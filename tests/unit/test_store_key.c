/* test_store_key.c: keys by order, by runs and by index agree with a plain comparison of all rows.
 *
 * Rows are pairs that mostly ascend; how often they do not decides which of the three ways a table
 * ends up with. They come in by loads of several tablets and by appends, in turns. */
#include "test_store_rows.h"

enum { MAX_ROWS = 400, TRIALS = 300 };

struct pairs {
    i64 count;
    i32 a[MAX_ROWS], b[MAX_ROWS];
};

static u64 seed;
static i64 draw(i64 below) {
    seed = hash_u64(seed + 1);
    return (i64)(seed % (u64)below);
}

/* A row behind the others: the next of its run, or the first of the next run. */
static void next_pair(struct pairs *rows, i64 run_rows, i64 disorder, i64 twins) {
    i64 n = rows->count++;
    i32 a = n ? rows->a[n - 1] : 0;
    a += draw(run_rows) == 0;
    a -= disorder && draw(disorder) == 0;
    rows->a[n] = a;
    rows->b[n] = (i32)(hash_u64((u64)n) >> 34);
    if (n && twins && draw(twins) == 0) {
        i64 like = n - 1 - draw(MIN_OF(n, 20));
        rows->a[n] = rows->a[like];
        rows->b[n] = rows->b[like];
    }
}

static bool has_twin(const struct pairs *rows, i64 from) {
    for (i64 i = from; i < rows->count; i++) {
        for (i64 j = 0; j < i; j++) {
            if (rows->a[i] == rows->a[j] && rows->b[i] == rows->b[j]) {
                return true;
            }
        }
    }
    return false;
}

static struct table *pair_table(void) {
    static u32 key_cols[] = {0, 1};
    struct column_def cols[] = {{.name = "a", .type = type_of(TYPE_INTEGER), .not_null = 1},
                                {.name = "b", .type = type_of(TYPE_INTEGER), .not_null = 1}};
    struct table_key key = {.name = "pk", .col_count = 2, .cols = key_cols};
    struct table_def def = {
        .name = "t", .col_count = 2, .cols = cols, .key_count = 1, .keys = &key};
    struct table *table = table_open_def(&mem, 1, &def, NULL, 6, false);
    assert_non_null(table);
    return table;
}

static wf_status add_rows(struct table *table, const struct pairs *rows, i64 from, bool loads) {
    struct error err;
    error_reset(&err);
    struct input_col cols[] = {{.data = rows->a + from}, {.data = rows->b + from}};
    if (!loads) {
        return table_append(table, rows->count - from, cols, &err);
    }
    struct load *load;
    assert_int_equal(load_open(&load, table, &err), ERR_OK);
    for (i64 at = from, n, part = 0; at < rows->count; at += n, part++) {
        n = 1 + draw(64);
        n = MIN_OF(n, rows->count - at);
        struct input_col piece[] = {{.data = rows->a + at}, {.data = rows->b + at}};
        assert_int_equal(load_tablet(load, part, n, piece, &err), ERR_OK);
    }
    return load_commit(load, &err);
}

static void check_lookups(struct table *table, const struct pairs *rows) {
    struct table_version *version = table_snapshot(table);
    struct error err;
    error_reset(&err);
    struct key_finder finder;
    key_finder_open(&finder, table, version, 0);
    for (i64 i = 0; i < rows->count; i++) {
        i32 other = rows->b[i] + 1;
        const void *own[] = {&rows->a[i], &rows->b[i]}, *none[] = {&rows->a[i], &other};
        i64 row;
        assert_int_equal(version_key_row(table, version, 0, own, &row, &err), ERR_OK);
        assert_int_equal(row, i);
        assert_int_equal(key_finder_row(&finder, own, &row, &err), ERR_OK);
        assert_int_equal(row, i);
        assert_int_equal(key_finder_row(&finder, none, &row, &err), ERR_OK);
        assert_int_equal(row, -1);
    }
    key_finder_close(&finder);
    version_release(version);
}

/* Whether the key was proven by order up to the end; *out_refused: a twin was found. */
static u8 one_trial(i64 run_rows, i64 disorder, i64 twins, bool *out_refused) {
    static struct pairs rows;
    struct table *table = pair_table();
    rows.count = 0;
    *out_refused = false;
    while (rows.count < MAX_ROWS && !*out_refused) {
        i64 from = rows.count;
        i64 more = 1 + draw(150);
        for (i64 i = MIN_OF(more, MAX_ROWS - from); i > 0; i--) {
            next_pair(&rows, run_rows, disorder, twins);
        }
        *out_refused = has_twin(&rows, from);
        assert_int_equal(add_rows(table, &rows, from, draw(2)), *out_refused ? ERR_UNIQUE : ERR_OK);
        rows.count = *out_refused ? from : rows.count;
    }
    check_lookups(table, &rows);
    struct table_version *version = table_snapshot(table);
    u8 order = version->keys[0].order;
    version_release(version);
    table_close(table);
    return order;
}

static void test_orders(void **state) {
    (void)state;
    i64 refused = 0, in_runs = 0, in_no_order = 0;
    seed = 42;
    for (i64 trial = 0; trial < TRIALS; trial++) {
        bool twin;
        i64 run_rows = 1 + draw(6), disorder = draw(3) ? 0 : 100, twins = draw(3) ? 0 : 200;
        u8 order = one_trial(run_rows, disorder, twins, &twin);
        refused += twin;
        in_runs += order == KEY_RUNS;
        in_no_order += order == 0;
    }
    assert_true(refused > 10 && in_runs > 10 && in_no_order > 10);
}

/* Runs that begin in one tablet and end in another, of every length up to one too long. */
static void test_runs_over_edges(void **state) {
    (void)state;
    for (i64 run = 2; run <= KEY_RUN_MAX + 1; run++) {
        static struct pairs rows;
        struct table *table = pair_table();
        for (rows.count = 0; rows.count < 200; rows.count++) {
            rows.a[rows.count] = (i32)(rows.count / run);
            rows.b[rows.count] = (i32)(-3 * rows.count);
        }
        assert_int_equal(add_rows(table, &rows, 0, true), ERR_OK);
        struct table_version *version = table_snapshot(table);
        assert_int_equal(version->keys[0].order, run <= KEY_RUN_MAX ? KEY_RUNS : 0);
        assert_int_equal(version->keys[0].index == NULL, run <= KEY_RUN_MAX);
        version_release(version);
        check_lookups(table, &rows);
        table_close(table);
    }
}

/* What stays with the database is counted as long as it is. */
static void test_stored_bytes(void **state) {
    (void)state;
    for (i64 bytes = 1000; bytes < 10000000; bytes = bytes * 3 + 64) {
        i64 before = atomic_load(&mem.used_bytes);
        struct buffer *buf = buffer_new_at(&mem, bytes, BUFFER_STORED);
        assert_non_null(buf);
        memset(buf->data, 1, (size_t)bytes);
        assert_true(atomic_load(&mem.used_bytes) - before <= bytes + 128);
        buffer_release(buf);
        assert_int_equal(atomic_load(&mem.used_bytes), before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_runs_over_edges),
        cmocka_unit_test(test_stored_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, nothing_left);
}

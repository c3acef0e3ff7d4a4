/* test_store_dict.c: dictionaries: codes, ranks, many threads, and columns that leave theirs. */
#include "test_store_rows.h"

static struct sv numbered(char buf[32], i64 n) {
    return (struct sv){buf, snprintf(buf, 32, "entry %lld", n * 7919 % 100003)};
}

static void test_codes(void **state) {
    (void)state;
    char buf[32];
    struct dict *dict = dict_open(&mem);
    assert_int_equal(dict_find(dict, SV("x"), dict_len(dict)), -1);
    assert_int_equal(dict_add(dict, (struct sv){NULL, 0}), 0); /* the empty string */
    assert_int_equal(dict_add(dict, SV("")), 0);
    for (i64 i = 0; i < 5000; i++) {
        assert_int_equal(dict_add(dict, numbered(buf, i)), i + 1);
    }
    for (i64 i = 0; i < 5000; i++) {
        assert_int_equal(dict_add(dict, numbered(buf, i)), i + 1);
        assert_int_equal(dict_find(dict, numbered(buf, i), 5001), i + 1);
        assert_int_equal(dict_find(dict, numbered(buf, i), (i32)i), -1);
        assert_true(sv_eq(dict_get(dict, (i32)i + 1), numbered(buf, i)));
    }
    assert_int_equal(dict_len(dict), 5001);
    dict_release(dict);
}

static void test_ranks(void **state) {
    (void)state;
    char buf[32];
    struct dict *dict = dict_open(&mem);
    for (i64 i = 0; i < 1000; i++) {
        assert_int_equal(dict_add(dict, numbered(buf, i)), i);
    }
    dict_add(dict, SV("\xff high"));
    dict_add(dict, SV("entry"));
    dict_add(dict, (struct sv){"entry\0", 6});
    dict_add(dict, SV(""));
    const i32 *rank, *code_at, *again, *shorter;
    assert_true(dict_ranks(dict, 1004, &rank, &code_at));
    for (i32 i = 0; i < 1004; i++) {
        assert_int_equal(rank[code_at[i]], i);
        assert_true(i == 0 ||
                    sv_cmp(dict_get(dict, code_at[i - 1]), dict_get(dict, code_at[i])) < 0);
    }
    assert_true(dict_ranks(dict, 10, &shorter, &code_at));
    assert_true(dict_ranks(dict, 1004, &again, &code_at));
    assert_ptr_equal(rank, again);
    for (i32 i = 0; i < 10; i++) {
        assert_in_range(shorter[i], 0, 9);
    }
    assert_true(dict_ranks(dict, 0, &rank, &code_at));
    dict_release(dict);
}

struct crowd {
    struct dict *dict;
    _Atomic i32 wrong;
};

static void crowd_task(void *arg, i64 i, i32 worker) {
    (void)worker;
    struct crowd *crowd = arg;
    char buf[32];
    for (i64 k = 0; k < 3000; k++) {
        struct sv s = numbered(buf, (k * (i + 3)) % 2000);
        i32 code = dict_add(crowd->dict, s);
        if (code < 0 || code >= dict_len(crowd->dict) || !sv_eq(dict_get(crowd->dict, code), s)) {
            atomic_store(&crowd->wrong, 1);
        }
    }
}

static void test_many_threads(void **state) {
    (void)state;
    struct pool *pool = pool_open(4);
    struct crowd crowd = {.dict = dict_open(&mem)};
    pool_run(pool, 8, crowd_task, &crowd);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_in_range(dict_len(crowd.dict), 1000, 2000);
    char buf[32];
    for (i32 i = 0; i < dict_len(crowd.dict); i++) { /* nothing was added twice */
        struct sv s = dict_get(crowd.dict, i);
        assert_int_equal(dict_find(crowd.dict, s, dict_len(crowd.dict)), i);
    }
    (void)buf;
    dict_release(crowd.dict);
    pool_close(pool);
}

static void test_refused(void **state) {
    (void)state;
    char buf[32];
    for (i64 nth = 1, refused = 1; refused; nth++) {
        struct dict *dict = dict_open(&mem);
        refused = 0;
        memory_fail_at(nth);
        for (i64 i = 0; i < 3000; i++) {
            if (dict_add(dict, numbered(buf, i)) < 0) {
                refused = 1;
                assert_int_equal(dict_add(dict, numbered(buf, i)), i);
            }
        }
        memory_fail_at(0);
        assert_int_equal(dict_len(dict), 3000);
        for (i64 i = 0; i < 3000; i++) {
            assert_int_equal(dict_find(dict, numbered(buf, i), 3000), i);
        }
        dict_release(dict);
    }
}

/* Entries that no version refers to go with the last writer, and leave nothing behind. */
static void test_given_up(void **state) {
    (void)state;
    static const i32 kept[] = {0, 1, 200, 256, 257, 1000, 4000};
    char buf[32];
    static char large[3000];
    memset(large, 'l', sizeof large);
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        struct dict *dict = dict_open(&mem);
        dict_writer_begin(dict);
        for (i64 i = 0; i < kept[k]; i++) {
            assert_int_equal(dict_add(dict, i == 1 ? SV("") : numbered(buf, i)), i);
        }
        assert_int_equal(dict_publish(dict), kept[k]);
        dict_writer_end(dict);
        assert_int_equal(dict_len(dict), kept[k]);
        i64 used = atomic_load(&mem.used_bytes), bytes = dict_bytes(dict);
        for (i32 round = 0; round < 3; round++) {
            dict_writer_begin(dict);
            dict_writer_begin(dict);
            for (i64 i = 0; i < 6000; i++) {
                assert_true(dict_add(dict, numbered(buf, 10000 * (round + 1) + i)) >= kept[k]);
            }
            assert_true(dict_add(dict, (struct sv){large, sizeof large}) >= kept[k]);
            dict_writer_end(dict);
            assert_int_equal(dict_len(dict), kept[k] + 6001); /* the other one is at work */
            dict_writer_end(dict);
            assert_int_equal(dict_len(dict), kept[k]);
            assert_int_equal(dict_bytes(dict), bytes);
            assert_true(atomic_load(&mem.used_bytes) <= used);
            for (i64 i = 0; i < kept[k]; i++) {
                struct sv s = i == 1 ? SV("") : numbered(buf, i);
                assert_int_equal(dict_find(dict, s, kept[k]), i);
                assert_true(sv_eq(dict_get(dict, (i32)i), s));
            }
            assert_int_equal(dict_find(dict, numbered(buf, 10000), I32_MAX), -1);
        }
        assert_int_equal(dict_add(dict, SV("next")), kept[k]);
        assert_true(sv_eq(dict_get(dict, kept[k]), SV("next")));
        dict_release(dict);
    }
}

/* Half the rows different: new tablets stop using the dictionary, old ones keep it. */
static void test_column_leaves(void **state) {
    (void)state;
    struct column_spec specs[] = {{type_of(TYPE_TEXT), SMALL, NULLS_SOME, 600},
                                  {type_of(TYPE_TEXT), SMALL, NULLS_NONE, 0},
                                  {type_of(TYPE_INTEGER), SMALL, NULLS_NONE, 0}};
    struct table *table = specs_table(specs, 3, 12, false);
    i64 at = 0;
    for (i64 piece = 90; at < 12000; piece += 40) {
        append_rows(table, specs, at, piece);
        at += piece;
    }
    assert_rows(table, specs, at);
    struct table_version *version = table_snapshot(table);
    assert_true(version->stats[0].all_dict);
    assert_false(version->stats[1].all_dict);
    assert_int_equal(version->tablets[0]->cols[1].encoding, ENC_DICT);
    assert_true(version->tablets[0]->rows < 4096); /* sealed short */
    i64 last = version->tablet_count - 1;
    assert_int_equal(version->tablets[last]->cols[1].encoding, ENC_STR);
    assert_int_equal(version->tablets[last]->cols[0].encoding, ENC_DICT);
    assert_in_range(version->stats[1].distinct, at * 85 / 100, at);
    version_release(version);
    table_close(table);
}

static void test_past_the_limit(void **state) {
    (void)state;
    struct column_spec spec = {type_of(TYPE_TEXT), SMALL, NULLS_NONE, 70000};
    struct table *table = specs_table(&spec, 1, 17, false);
    append_rows(table, &spec, 0, 1 << 17); /* sealed straight from the input */
    append_rows(table, &spec, 1 << 17, 10000);
    append_rows(table, &spec, (1 << 17) + 10000, 200000);
    assert_rows(table, &spec, (1 << 17) + 210000);
    struct table_version *version = table_snapshot(table);
    assert_in_range(version->stats[0].dict_len, 50000, 66600 + PIECE_ROWS);
    version_release(version);
    table_close(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_codes, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_ranks, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_many_threads, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_refused, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_given_up, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_column_leaves, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_past_the_limit, set_up, nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

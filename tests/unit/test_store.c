/* test_store.c: every type through every encoding and back, and what a table knows of its values.
 */
#include "test_store_rows.h"

static const enum type_id fixed_types[] = {TYPE_BOOLEAN, TYPE_SMALLINT, TYPE_INTEGER, TYPE_BIGINT,
                                           TYPE_REAL,    TYPE_DOUBLE,   TYPE_DATE};

static u32 all_types(struct column_spec *specs, u8 pattern, u8 nulls) {
    u32 n = 0;
    for (i64 i = 0; i < COUNT_OF(fixed_types); i++) {
        specs[n++] = (struct column_spec){type_of(fixed_types[i]), pattern, nulls, 0};
    }
    specs[n++] = (struct column_spec){type_decimal(12, 2), pattern, nulls, 0};
    specs[n++] = (struct column_spec){type_decimal(38, 6), pattern, nulls, 0};
    specs[n++] = (struct column_spec){type_of(TYPE_TEXT), pattern, nulls, 20};
    specs[n++] = (struct column_spec){type_of(TYPE_TEXT), pattern, nulls, 300};
    specs[n++] = (struct column_spec){type_of(TYPE_TEXT), pattern, nulls, 0};
    return n;
}

static void check_zones(const struct segment *seg, struct type type, const struct tablet *tablet) {
    bool is_float = type_is_float(type);
    if (!seg->zones) {
        return;
    }
    for (i64 i = 0; i < tablet->rows; i++) {
        union lit cell;
        memset(&cell, 0, sizeof cell);
        if (!segment_get(seg, NULL, type, i, &cell)) {
            continue;
        }
        const struct zone *zone = &seg->zones[i / ZONE_ROWS];
        if (is_float) {
            f64 v = type_kind(type) == KIND_F32 ? (f64)cell.f32 : cell.f64;
            assert_true(v >= zone->flo && v <= zone->fhi);
            assert_true(seg->range.may_special ||
                        (v <= seg->range.abs_max && -v <= seg->range.abs_max));
            continue;
        }
        enum kind kind = type_kind(type);
        i128 v = kind == KIND_B8    ? cell.b8
                 : kind == KIND_I32 ? cell.i32
                 : kind == KIND_I64 ? cell.i64
                                    : cell.i128;
        assert_true(v >= zone->lo && v <= zone->hi);
        assert_true(v >= seg->range.lo && v <= seg->range.hi);
    }
}

static void check_table(struct table *table, const struct column_spec *specs, i64 count) {
    assert_rows(table, specs, count);
    struct table_version *version = table_snapshot(table);
    for (u32 c = 0; c < table->col_count; c++) {
        i64 nulls = 0;
        for (i64 row = 0; row < count; row++) {
            nulls += row_is_null(&specs[c], row);
        }
        assert_int_equal(version->stats[c].null_count, nulls);
        for (i64 t = 0; t < version->tablet_count; t++) {
            check_zones(&version->tablets[t]->cols[c], specs[c].type, version->tablets[t]);
        }
    }
    version_release(version);
}

static void test_round_trips(void **state) {
    (void)state;
    struct column_spec specs[16];
    for (u8 pattern = 0; pattern < PATTERN_COUNT; pattern++) {
        for (u8 nulls = 0; nulls < NULLS_COUNT; nulls++) {
            for (i32 plain = 0; plain < 2; plain++) {
                u32 n = all_types(specs, pattern, nulls);
                struct table *table = specs_table(specs, n, 11, plain);
                i64 at = 0;
                for (i64 piece = 1; at < 7000; piece = piece * 3 + 1) {
                    append_rows(table, specs, at, piece);
                    at += piece;
                }
                check_table(table, specs, at);
                table_close(table);
            }
        }
    }
}

static void test_large_tablet(void **state) {
    (void)state;
    struct column_spec specs[16];
    u32 n = all_types(specs, WIDE, NULLS_LATE);
    struct table *table = specs_table(specs, n, 16, false);
    append_rows(table, specs, 0, 70000); /* one sealed directly, several zones; the rest a tail */
    check_table(table, specs, 70000);
    struct table_version *version = table_snapshot(table);
    assert_int_equal(version->tablet_count, 2);
    assert_false(version->tablets[0]->tail);
    assert_true(version->tablets[1]->tail);
    version_release(version);
    table_close(table);
}

static struct segment sealed(struct table *table, const struct column_spec *spec,
                             struct table_version **out) {
    append_rows(table, spec, 0, 1LL << table->tablet_shift);
    *out = table_snapshot(table);
    assert_int_equal((*out)->tablet_count, 1);
    return (*out)->tablets[0]->cols[0];
}

static void test_encodings(void **state) {
    (void)state;
    static const struct {
        enum type_id type;
        u8 pattern, nulls;
        b8 plain;
        u8 encoding, width;
    } cases[] = {
        {TYPE_INTEGER, CONSTANT, NULLS_SOME, 0, ENC_CONST, 0},
        {TYPE_INTEGER, CONSTANT, NULLS_SOME, 1, ENC_INT, 4},
        {TYPE_INTEGER, SMALL, NULLS_NONE, 0, ENC_INT, 1},
        {TYPE_BIGINT, ASCENDING, NULLS_NONE, 0, ENC_INT, 2},
        {TYPE_BIGINT, WIDE, NULLS_SOME, 0, ENC_INT, 4},
        {TYPE_BIGINT, EXTREME, NULLS_NONE, 0, ENC_INT, 8},
        {TYPE_BIGINT, SMALL, NULLS_NONE, 1, ENC_INT, 8},
        {TYPE_DECIMAL, EXTREME, NULLS_NONE, 0, ENC_INT, 16},
        {TYPE_BOOLEAN, SMALL, NULLS_ALL, 0, ENC_CONST, 0},
        {TYPE_BOOLEAN, EXTREME, NULLS_NONE, 1, ENC_INT, 1},
        {TYPE_REAL, CONSTANT, NULLS_NONE, 0, ENC_CONST, 0},
        {TYPE_REAL, SMALL, NULLS_NONE, 0, ENC_FLOAT, 4},
        {TYPE_DOUBLE, EXTREME, NULLS_NONE, 0, ENC_FLOAT, 8},
        {TYPE_TEXT, SMALL, NULLS_NONE, 0, ENC_DICT, 1},
        {TYPE_TEXT, SMALL, NULLS_NONE, 1, ENC_DICT, 4},
    };
    for (i64 i = 0; i < COUNT_OF(cases); i++) {
        struct type type =
            cases[i].type == TYPE_DECIMAL ? type_decimal(38, 0) : type_of(cases[i].type);
        struct column_spec spec = {type, cases[i].pattern, cases[i].nulls, 20};
        struct table *table = specs_table(&spec, 1, 12, cases[i].plain);
        struct table_version *version;
        struct segment seg = sealed(table, &spec, &version);
        assert_int_equal(seg.encoding, cases[i].encoding);
        assert_int_equal(seg.width, cases[i].width);
        bool whole = (cases[i].type == TYPE_BIGINT && seg.width == 8) ||
                     (cases[i].type == TYPE_INTEGER && seg.width == 4); /* a base saves nothing */
        assert_int_equal(seg.is_signed, seg.encoding == ENC_INT && (cases[i].plain || whole));
        assert_true(((uintptr_t)seg.data & 63) == 0 && ((uintptr_t)seg.valid & 63) == 0);
        version_release(version);
        table_close(table);
    }
}

static void test_float_facts(void **state) {
    (void)state;
    struct column_def def = {.name = "x", .type = type_of(TYPE_DOUBLE)};
    struct table *table = table_open(&mem, 1, "t", 1, &def, 4, false);
    const f64 values[] = {0.0, 3.0, -12.5, 0.375, 1024.0};
    struct input_col col = {.data = values};
    struct error err;
    error_reset(&err);
    assert_int_equal(table_append(table, 5, &col, &err), ERR_OK);
    struct table_version *version = table_snapshot(table);
    assert_true(version->stats[0].range.abs_max == 1024.0);
    assert_int_equal(version->stats[0].range.lsb, -3);
    assert_false(version->stats[0].range.may_special);
    version_release(version);
    const f64 special[] = {5e-324, -1.0 / 0.0};
    col.data = special;
    assert_int_equal(table_append(table, 2, &col, &err), ERR_OK);
    version = table_snapshot(table);
    assert_int_equal(version->stats[0].range.lsb, -1074);
    assert_true(version->stats[0].range.may_special);
    version_release(version);
    table_close(table);
}

static void test_order_and_distinct(void **state) {
    (void)state;
    struct column_spec specs[] = {{type_of(TYPE_INTEGER), ASCENDING, NULLS_NONE, 0},
                                  {type_of(TYPE_INTEGER), SMALL, NULLS_NONE, 0},
                                  {type_of(TYPE_BIGINT), WIDE, NULLS_NONE, 0},
                                  {type_of(TYPE_TEXT), SMALL, NULLS_NONE, 50},
                                  {type_of(TYPE_TEXT), SMALL, NULLS_NONE, 0},
                                  {type_of(TYPE_DATE), CONSTANT, NULLS_NONE, 0},
                                  {type_of(TYPE_INTEGER), ASCENDING, NULLS_LATE, 0}};
    struct table *table = specs_table(specs, 7, 12, false);
    append_rows(table, specs, 0, 3000);
    append_rows(table, specs, 3000, 17000);
    struct table_version *version = table_snapshot(table);
    struct column_stats *stats = version->stats;
    assert_true(stats[0].unique && stats[0].distinct == 20000);
    assert_true(version->tablets[0]->cols[0].sorted && version->tablets[0]->cols[0].strict);
    assert_false(stats[1].unique);
    assert_in_range(stats[1].distinct, 180, 200);
    assert_in_range(stats[2].distinct, 17000, 20000);
    assert_true(stats[3].all_dict && stats[3].distinct <= 50 && stats[3].dict_len <= 50);
    assert_false(stats[4].all_dict);
    assert_in_range(stats[4].distinct, 17000, 20000);
    assert_true(stats[5].distinct == 1 && !stats[5].unique);
    assert_false(stats[6].unique);
    version_release(version);
    append_rows(table, specs, 5, 1); /* an older value again: no longer ascending */
    version = table_snapshot(table);
    assert_false(version->stats[0].unique);
    version_release(version);
    table_close(table);
}

static void test_not_null(void **state) {
    (void)state;
    struct column_def defs[] = {{.name = "k", .type = type_of(TYPE_INTEGER), .not_null = 1}};
    struct table *table = table_open(&mem, 1, "t", 1, defs, 4, false);
    const i32 values[] = {1, 2, 3};
    const b8 nulls[] = {0, 0, 1};
    struct input_col col = {.data = values, .nulls = nulls};
    struct error err;
    error_reset(&err);
    assert_int_equal(table_append(table, 3, &col, &err), ERR_NOT_NULL);
    assert_non_null(strstr(err.message, "\"k\""));
    struct table_version *version = table_snapshot(table);
    assert_int_equal(version->rows, 0);
    assert_true(version->stats[0].range.lo > version->stats[0].range.hi);
    version_release(version);
    table_close(table);
}

/* Text too long for one tablet's 32-bit offsets: the limit is lowered to make that common. */
static void test_text_limit(void **state) {
    (void)state;
    struct column_spec specs[] = {{type_of(TYPE_TEXT), SMALL, NULLS_SOME, 0},
                                  {type_of(TYPE_INTEGER), SMALL, NULLS_NONE, 0}};
    struct table *table = specs_table(specs, 2, 12, false);
    table->state->str_limit = 20000;
    i64 at = 0;
    for (i64 piece = 500; at < 30000; piece += 1900) {
        append_rows(table, specs, at, piece);
        at += piece;
    }
    struct load *load;
    struct error err;
    error_reset(&err);
    assert_int_equal(load_open(&load, table, &err), ERR_OK);
    struct rows rows;
    rows_make(&rows, specs, 2, at, 4096);
    assert_int_equal(load_tablet(load, 0, 4096, rows.cols, &err), ERR_OK);
    assert_int_equal(load_commit(load, &err), ERR_OK);
    rows_free(&rows);
    assert_rows(table, specs, at + 4096);
    struct table_version *version = table_snapshot(table);
    for (i64 i = 0; i < version->tablet_count; i++) {
        assert_true(version->tablets[i]->cols[0].bytes_len <= 20000);
    }
    version_release(version);
    table_close(table);
}

/* Two texts that are too long together, and one that is so alone. */
static void test_texts_apart(void **state) {
    (void)state;
    struct column_spec spec = {type_of(TYPE_TEXT), SMALL, NULLS_NONE, 0};
    struct table *table = specs_table(&spec, 1, 4, false);
    table->state->str_limit = 40;
    const str texts[] = {str_from(SV("some thirty bytes, that is most")),
                         str_from(SV("and some thirty bytes once again")),
                         str_from(SV("forty bytes are not enough for this long text"))};
    struct input_col col = {.data = texts};
    struct load *load;
    struct error err;
    error_reset(&err);
    assert_int_equal(load_open(&load, table, &err), ERR_OK);
    assert_int_equal(load_tablet(load, 0, 2, &col, &err), ERR_OK);
    col.data = texts + 2;
    assert_int_equal(load_tablet(load, 1, 1, &col, &err), ERR_OK);
    assert_int_equal(load_commit(load, &err), ERR_OK);
    struct table_version *version = table_snapshot(table);
    assert_int_equal(version->tablet_count, 3);
    for (i64 i = 0; i < 3; i++) {
        str got;
        assert_int_equal(version->tablet_rows[i], 1);
        const struct segment *seg = &version->tablets[i]->cols[0];
        assert_true(segment_get(seg, table->dicts[0], spec.type, 0, &got));
        assert_int_equal(got.len, texts[i].len);
        assert_memory_equal(sv_of(got).ptr, sv_of(texts[i]).ptr, got.len);
    }
    version_release(version);
    table_close(table);
}

static void test_closed_table_readable(void **state) {
    (void)state;
    struct column_spec spec = {type_of(TYPE_INTEGER), WIDE, NULLS_SOME, 0};
    struct table *table = specs_table(&spec, 1, 6, false);
    append_rows(table, &spec, 0, 100);
    struct table_version *version = table_snapshot(table);
    table_close(table);
    union lit cell;
    char buf[128];
    assert_true(row_cell(&spec, 70, &cell, buf));
    i32 got;
    assert_true(segment_get(&version->tablets[1]->cols[0], NULL, spec.type, 6, &got));
    assert_int_equal(got, cell.i32);
    version_release(version);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trips, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_large_tablet, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_encodings, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_float_facts, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_order_and_distinct, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_not_null, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_text_limit, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_texts_apart, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_closed_table_readable, set_up, nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

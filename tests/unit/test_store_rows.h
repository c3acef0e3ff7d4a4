/* test_store_rows.h: made-up rows for the tests of store/, and comparing them with a table.
 *
 * The value of row r in a column is a function of the column's pattern and r alone, so a reader can
 * check any snapshot without knowing how its rows came in. */
#ifndef WF_TEST_STORE_ROWS_H
#define WF_TEST_STORE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/store_int.h"

enum pattern { ASCENDING, CONSTANT, SMALL, WIDE, EXTREME, PATTERN_COUNT };
enum null_pattern { NULLS_NONE, NULLS_SOME, NULLS_ALL, NULLS_LATE, NULLS_COUNT };

static struct memory mem;

static inline int set_up(void **state) {
    (void)state;
    memory_init(&mem, NULL, 0, "memory");
    return 0;
}

static inline int nothing_left(void **state) {
    (void)state;
    memory_fail_at(0);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

struct column_spec {
    struct type type;
    u8 pattern, nulls;
    i64 text_variants; /* text: how many different ones; 0 = all */
};

static inline bool row_is_null(const struct column_spec *spec, i64 row) {
    switch (spec->nulls) {
    case NULLS_SOME:
        return hash_u64((u64)row * 7 + 3) % 5 == 0;
    case NULLS_ALL:
        return true;
    case NULLS_LATE:
        return row > 700 && row % 97 == 0;
    default:
        return false;
    }
}

static inline i128 row_number(const struct column_spec *spec, i64 row, i128 lo, i128 hi) {
    u64 h = hash_u64((u64)row + 1);
    i128 value = 0;
    switch (spec->pattern) {
    case ASCENDING:
        value = row * 3 - 50;
        break;
    case CONSTANT:
        return lo < -7 ? -7 : 1;
    case SMALL:
        value = (i128)(h % 200) - 100;
        break;
    case WIDE:
        value = (i128)(h >> 40) - (1 << 22);
        break;
    default:
        return h % 3 == 0 ? lo : h % 3 == 1 ? hi : (i128)(h % 1000);
    }
    return value < lo ? lo : value > hi ? hi : value;
}

static inline f64 row_float(const struct column_spec *spec, i64 row) {
    u64 h = hash_u64((u64)row + 99);
    switch (spec->pattern) {
    case CONSTANT:
        return -2.5;
    case EXTREME: {
        static const f64 odd[] = {0.0, -0.0, 1e30, -3.5e-30, 0.25, 1e300 * 1e300};
        return odd[h % 6];
    }
    default:
        return (f64)(i64)(h % 4096) / 8 - 100;
    }
}

/* Text of row r: "" once in a while, some short, some long, some not ASCII. */
static inline i64 row_text(const struct column_spec *spec, i64 row, char buf[128]) {
    i64 n = spec->text_variants ? (i64)(hash_u64((u64)row) % (u64)spec->text_variants) : row;
    if (n % 11 == 5 && spec->text_variants) {
        return 0;
    }
    i32 len = snprintf(buf, 128, "%s%lld%s", n % 3 ? "k" : "\xc3\xa9t\xc3\xa9 ", n,
                       n % 4 ? "" : " and a good deal more of text than fits sixteen bytes");
    return len;
}

/* The cell as it must come out; text is written to buf. False: NULL. */
static inline bool row_cell(const struct column_spec *spec, i64 row, union lit *out,
                            char buf[128]) {
    struct range all = range_of_type(spec->type);
    memset(out, 0, sizeof *out);
    if (row_is_null(spec, row)) {
        return false;
    }
    switch (type_kind(spec->type)) {
    case KIND_B8:
        out->b8 = row_number(spec, row, 0, 1) != 0;
        break;
    case KIND_I32:
        out->i32 = (i32)row_number(spec, row, all.lo, all.hi);
        break;
    case KIND_I64:
        out->i64 = (i64)row_number(spec, row, all.lo, all.hi);
        break;
    case KIND_I128:
        out->i128 = row_number(spec, row, all.lo, all.hi);
        break;
    case KIND_F32:
        out->f32 = (f32)row_float(spec, row);
        break;
    case KIND_F64:
        out->f64 = row_float(spec, row);
        break;
    default:
        out->str = str_from((struct sv){buf, row_text(spec, row, buf)});
    }
    return true;
}

struct rows { /* rows [first, first + count) as input */
    i64 count;
    u32 col_count;
    struct input_col cols[32];
    char *text;
};

static inline void rows_make(struct rows *rows, const struct column_spec *specs, u32 col_count,
                             i64 first, i64 count) {
    memset(rows, 0, sizeof *rows);
    rows->count = count;
    rows->col_count = col_count;
    rows->text = malloc((size_t)(count * col_count) * 128 + 1);
    for (u32 c = 0; c < col_count; c++) {
        i64 bytes = kind_bytes[type_kind(specs[c].type)];
        u8 *data = aligned_alloc(16, (size_t)(count * 16 + 16));
        b8 *nulls = malloc((size_t)count + 1);
        memset(data, 0xa5, (size_t)(count * 16)); /* what stands in NULL rows must not matter */
        for (i64 i = 0; i < count; i++) {
            union lit cell;
            char *buf = rows->text + (i * col_count + c) * 128;
            nulls[i] = !row_cell(&specs[c], first + i, &cell, buf);
            if (!nulls[i]) {
                memcpy(data + i * bytes, &cell, (size_t)bytes);
            }
        }
        rows->cols[c].data = data;
        rows->cols[c].nulls = specs[c].nulls == NULLS_NONE && c % 2 ? NULL : nulls;
        if (!rows->cols[c].nulls) {
            free(nulls);
        }
    }
}

static inline void rows_free(struct rows *rows) {
    for (u32 c = 0; c < rows->col_count; c++) {
        free((void *)(uintptr_t)rows->cols[c].data);
        free((void *)(uintptr_t)rows->cols[c].nulls);
    }
    free(rows->text);
}

static inline bool cell_equal(struct type type, const union lit *a, const union lit *b) {
    if (type_kind(type) == KIND_STR) {
        return sv_eq(sv_of(a->str), sv_of(b->str)) && a->str.prefix == b->str.prefix;
    }
    return memcmp(a, b, kind_bytes[type_kind(type)]) == 0;
}

static inline bool row_matches(const struct table *table, const struct segment *segs,
                               const struct column_spec *specs, i64 i, i64 row) {
    for (u32 c = 0; c < table->col_count; c++) {
        union lit want, got;
        char buf[128];
        memset(&got, 0, sizeof got);
        bool present = row_cell(&specs[c], row, &want, buf);
        if (segment_get(&segs[c], table->dicts[c], specs[c].type, i, &got) != present ||
            (present && !cell_equal(specs[c].type, &want, &got))) {
            return false;
        }
    }
    return true;
}

/* The first row that is not as made, or -1; every `step`-th row is looked at. */
static inline i64 version_wrong_row(const struct table *table, const struct table_version *version,
                                    const struct column_spec *specs, i64 step) {
    i64 row = 0;
    for (i64 t = 0; t < version->tablet_count; t++) {
        if (version->row_starts[t] != row || version->tablet_rows[t] != version->tablets[t]->rows) {
            return row;
        }
        for (i64 i = 0; i < version->tablet_rows[t]; i += step) {
            if (!row_matches(table, version->tablets[t]->cols, specs, i, row + i)) {
                return row + i;
            }
        }
        row += version->tablet_rows[t];
    }
    return row == version->rows ? -1 : row;
}

static inline struct table *specs_table(const struct column_spec *specs, u32 col_count,
                                        u32 tablet_shift, bool plain) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k",
                                        "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v"};
    struct column_def defs[32];
    memset(defs, 0, sizeof defs);
    for (u32 i = 0; i < col_count; i++) {
        defs[i] = (struct column_def){.name = names[i], .type = specs[i].type};
    }
    struct table *table = table_open(&mem, 1, "t", col_count, defs, tablet_shift, plain);
    assert_non_null(table);
    return table;
}

static inline void append_rows(struct table *table, const struct column_spec *specs, i64 first,
                               i64 count) {
    struct rows rows;
    struct error err;
    error_reset(&err);
    rows_make(&rows, specs, table->col_count, first, count);
    assert_int_equal(table_append(table, count, rows.cols, &err), ERR_OK);
    rows_free(&rows);
}

static inline void assert_rows(struct table *table, const struct column_spec *specs, i64 count) {
    struct table_version *version = table_snapshot(table);
    assert_int_equal(version->rows, count);
    assert_int_equal(version_wrong_row(table, version, specs, 1), -1);
    version_release(version);
}

#endif

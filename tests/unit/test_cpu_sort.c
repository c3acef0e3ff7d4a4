/* test_cpu_sort.c: the sort of a variable against what an order requires: every row once, no row
 * before a smaller one, ties as they came.
 *
 * Columns of every kind, with NULLs, NaN, both zeros, strings that share long prefixes or contain
 * zero bytes; one key and several, so that keys fit one word, need several, or are asked for more
 * text; one chunk, many, and empty ones; with and without a limit; one thread and four. */
#include "test_cpu_fixture.h"

#include <math.h>

enum { C_ID, C_I32, C_I64, C_WIDE, C_F32, C_F64, C_TEXT, C_LONG, C_BOOL, C_COUNT };
enum { ROWS_MAX = 150000 };

static const u8 kinds[C_COUNT] = {KIND_I32, KIND_I32, KIND_I64, KIND_I128, KIND_F32,
                                  KIND_F64, KIND_STR, KIND_STR, KIND_B8};

static struct {
    i32 id[ROWS_MAX];
    i32 a[ROWS_MAX];
    i64 b[ROWS_MAX];
    i128 wide[ROWS_MAX];
    f32 f[ROWS_MAX];
    f64 g[ROWS_MAX];
    str text[ROWS_MAX];
    str path[ROWS_MAX];
    b8 flag[ROWS_MAX];
    b8 nulls[ROWS_MAX];
    char text_bytes[ROWS_MAX][24];
    char path_bytes[ROWS_MAX][48];
} d;

static void *const columns[C_COUNT] = {d.id, d.a, d.b, d.wide, d.f, d.g, d.text, d.path, d.flag};

static u64 next(u64 *seed) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return hash_u64(*seed);
}

static int make_data(void **state) {
    UNUSED(state);
    u64 seed = 5;
    for (i64 i = 0; i < ROWS_MAX; i++) {
        u64 r = next(&seed);
        d.id[i] = (i32)i;
        d.a[i] = (i32)(r % 1000) - 500;
        d.b[i] = (i64)next(&seed);
        d.wide[i] = (i128)((u128)next(&seed) << 64 | next(&seed)) >> (r >> 40) % 100;
        d.f[i] = r % 11 == 0 ? (f32)NAN : r % 13 == 0 ? -0.0f : (f32)((i32)(r >> 16) % 50) / 4;
        d.g[i] = r % 97 == 0 ? INFINITY : r % 89 == 0 ? -INFINITY : (f64)(i64)r / 1e10;
        d.flag[i] = (b8)(r >> 50 & 1);
        d.nulls[i] = (r >> 33) % 9 == 0;
        i64 len = (i64)(r >> 20) % 20;
        for (i64 k = 0; k < len; k++) {
            d.text_bytes[i][k] = (char)(next(&seed) % 3 ? 'a' : (r >> k) & 1 ? 0 : 200);
        }
        d.text[i] = str_from((struct sv){d.text_bytes[i], len});
        int n = snprintf(d.path_bytes[i], sizeof d.path_bytes[i], "/a/long/prefix/%llu/%llu",
                         (r >> 5) % 3, r % 7 ? (r >> 7) % 4000 : 12345678901ULL + (r >> 40) % 50);
        d.path[i] = str_from((struct sv){d.path_bytes[i], n});
    }
    return 0;
}

static i64 chunk_rows(i64 shape, i64 c, i64 left) {
    i64 rows = shape == 0 ? left : shape == 1 ? 700 + c % 3 * 500 : c % 4 == 1 ? 0 : 20000;
    return MIN_OF(rows, left);
}

static void fill_variable(struct fix *f, u32 var, i64 rows, i64 shape, bool with_nulls) {
    i64 at = 0;
    for (i64 c = 0; at < rows; c++) {
        i64 n = chunk_rows(shape, c, rows - at);
        bool nulls = with_nulls && c % 3 != 2;
        struct chunk *chunk = chunk_new(&f->x, &f->program.vars[var], n, nulls);
        for (u32 k = 0; k < C_COUNT; k++) {
            i64 bytes = kind_bytes[kinds[k]];
            memcpy(chunk->cols[k].data, (u8 *)columns[k] + at * bytes, (size_t)(n * bytes));
            for (i64 i = 0; nulls && i < n; i++) {
                chunk->cols[k].nulls[i] = k != C_ID && d.nulls[(at + i + k) % ROWS_MAX];
            }
        }
        chunk->order = c;
        variable_append(&f->x, var, chunk);
        at += n;
    }
}

/* Chunks become one: values and NULLs of all columns, where only some chunks have any. */
static void test_flatten(void **state) {
    UNUSED(state);
    for (i64 with_nulls = 0; with_nulls < 2; with_nulls++) {
        struct fix f;
        fix_init(&f, 2);
        u32 var = fix_var(&f, VAR_ROWS, C_COUNT, kinds);
        fix_open(&f);
        fill_variable(&f, var, 5000, 1, with_nulls);
        assert_true(f.x.vars[var].chunks.count > 3);
        assert_int_equal(variable_flatten(&f.x, var), ERR_OK);
        assert_int_equal(f.x.vars[var].chunks.count, 1);
        const struct chunk *all = f.x.vars[var].chunks.items[0];
        assert_int_equal(all->rows, 5000);
        for (u32 k = 0; k < C_COUNT; k++) {
            i64 bytes = kind_bytes[kinds[k]];
            assert_memory_equal(all->cols[k].data, columns[k], (size_t)(5000 * bytes));
            assert_int_equal(all->cols[k].nulls != NULL, with_nulls);
        }
        fix_fini(&f);
    }
}

/* Every third chunk has no NULLs: what a row's column is must be asked of the output. */
static bool null_at(const struct fix *f, u32 var, u32 col, i64 i) {
    bool is_null = false;
    fix_at(f, var, col, i, &is_null);
    return is_null;
}

#define CMP(a, b) ((a) < (b) ? -1 : (a) > (b))

static int cmp_values(u32 col, i64 a, i64 b) {
    switch (col) {
    case C_ID:
        return CMP(d.id[a], d.id[b]);
    case C_I32:
        return CMP(d.a[a], d.a[b]);
    case C_I64:
        return CMP(d.b[a], d.b[b]);
    case C_WIDE:
        return CMP(d.wide[a], d.wide[b]);
    case C_F32:
        return isnan(d.f[a]) || isnan(d.f[b]) ? !!isnan(d.f[a]) - !!isnan(d.f[b])
                                              : CMP(d.f[a], d.f[b]);
    case C_F64:
        return CMP(d.g[a], d.g[b]);
    case C_TEXT:
        return sv_cmp(sv_of(d.text[a]), sv_of(d.text[b]));
    case C_LONG:
        return sv_cmp(sv_of(d.path[a]), sv_of(d.path[b]));
    default:
        return CMP(d.flag[a], d.flag[b]);
    }
}

/* Rows i - 1 and i of the output by one key. */
static int cmp_rows(const struct fix *f, u32 var, const struct sort_key *k, i64 i) {
    bool na = null_at(f, var, k->col, i - 1);
    bool nb = null_at(f, var, k->col, i);
    if (na || nb) {
        return na && nb ? 0 : na == (k->nulls_first != 0) ? -1 : 1;
    }
    i64 a = *(const i32 *)fix_at(f, var, C_ID, i - 1, NULL);
    i64 b = *(const i32 *)fix_at(f, var, C_ID, i, NULL);
    int c = cmp_values(k->col, a, b);
    return k->descending ? -c : c;
}

static void sort_and_check(i64 rows, i64 shape, bool nulls, const struct sort_key *keys, u32 count,
                           i64 limit, i32 threads) {
    struct fix f;
    fix_init(&f, threads);
    u32 var = fix_var(&f, VAR_ROWS, C_COUNT, kinds);
    struct step *step = fix_step(&f, STEP_SORT);
    step->src = var;
    step->key_count = count;
    step->keys = NEW_ARRAY(&f.arena, struct sort_key, count);
    memcpy(step->keys, keys, sizeof *keys * count);
    step->limit = limit;
    fix_open(&f);
    fill_variable(&f, var, rows, shape, nulls);
    struct run_devices devices = {.count = 1, .list = {f.cpu}};
    assert_int_equal(exec_run(&f.x, &devices), ERR_OK);
    i64 want = limit < 0 ? rows : MIN_OF(limit, rows);
    assert_int_equal(f.x.vars[var].rows, rows > 1 ? want : rows);
    static b8 seen[ROWS_MAX];
    memset(seen, 0, sizeof seen);
    for (i64 i = 0; i < f.x.vars[var].rows; i++) {
        i32 id = *(const i32 *)fix_at(&f, var, C_ID, i, NULL);
        assert_in_range(id, 0, rows - 1);
        assert_false(seen[id]);
        seen[id] = 1;
        for (u32 c = 0; c < C_COUNT; c++) { /* the whole row moved */
            assert_memory_equal(fix_at(&f, var, c, i, NULL),
                                (u8 *)columns[c] + id * (i64)kind_bytes[kinds[c]],
                                kind_bytes[kinds[c]]);
        }
        int cmp = 0;
        for (u32 k = 0; i > 0 && k < count && cmp == 0; k++) {
            cmp = cmp_rows(&f, var, &keys[k], i);
        }
        assert_true(i == 0 || cmp < 0 ||
                    (cmp == 0 && *(const i32 *)fix_at(&f, var, C_ID, i - 1, NULL) < id));
    }
    fix_fini(&f);
}

static void test_one_key(void **state) {
    UNUSED(state);
    static const i64 sizes[] = {0, 1, 2, 30, 5000};
    for (u32 col = 0; col < C_COUNT; col++) {
        for (i64 s = 0; s < COUNT_OF(sizes); s++) {
            for (b8 v = 0; v < 8; v++) {
                struct sort_key key = {col, v & 1, v >> 1 & 1};
                sort_and_check(sizes[s], s % 3, v >> 2, &key, 1, -1, 1 + 3 * (v & 1));
            }
        }
        struct sort_key key = {col, 0, 0};
        sort_and_check(20000, 2, true, &key, 1, 17, 4);
    }
}

static void test_many_rows(void **state) {
    UNUSED(state);
    for (u32 col = 0; col < C_COUNT; col++) {
        struct sort_key keys[2] = {{col, col & 1, 1}, {C_ID, 1, 0}};
        sort_and_check(60000, 2, col % 3 == 0, keys, 1, -1, 4);
        sort_and_check(60000, 2, col % 3 == 1, keys, 2, 3000, 4);
    }
}

static void test_several_keys(void **state) {
    UNUSED(state);
    u64 seed = 3;
    for (i32 round = 0; round < 60; round++) {
        struct sort_key keys[4];
        u32 count = 2 + (u32)(next(&seed) % 3);
        for (u32 k = 0; k < count; k++) {
            u64 r = next(&seed);
            keys[k] = (struct sort_key){(u32)(1 + r % (C_COUNT - 1)), r >> 20 & 1, r >> 21 & 1};
        }
        i64 rows = round % 10 == 0 ? 100000 : 3000;
        sort_and_check(rows, round % 3, round % 4 != 0, keys, count, round % 5 ? -1 : 200,
                       1 + 3 * (round & 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_one_key),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_several_keys),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}

/* test_cpu_pipeline.c: pipelines on the CPU device against plain loops over the same arrays.
 *
 * Every shape runs over vector sizes 1, 3 and 1024, small and large morsels and tablets, one thread
 * and four; the answers must not depend on any of these. */
#include "test_cpu_fixture.h"

#include "codes/op.h"

enum { ROWS = 5000 };

struct data {
    i32 id[ROWS];
    i32 small[ROWS]; /* -20 .. 20 */
    i64 wide[ROWS];  /* any */
    b8 nulls[ROWS];  /* of wide */
    f64 real[ROWS];
    str text[ROWS]; /* few distinct */
    str name[ROWS]; /* many distinct */
    char bytes[ROWS][24];
};

static struct data d;

static const char *const colours[] = {"red", "green", "blue", "", "a longer colour name", "cyan"};

static int make_data(void **state) {
    UNUSED(state);
    u64 seed = 77;
    for (i64 i = 0; i < ROWS; i++) {
        u64 r = fix_random(&seed);
        d.id[i] = (i32)i;
        d.small[i] = (i32)(r % 41) - 20;
        d.wide[i] = (i64)fix_random(&seed) >> (r >> 20) % 50;
        d.nulls[i] = (r >> 40) % 7 == 0;
        d.real[i] = (f64)((i64)(r >> 8) % 100000) / 16;
        d.text[i] = str_from(sv_from(colours[(r >> 12) % (u64)COUNT_OF(colours)]));
        snprintf(d.bytes[i], sizeof d.bytes[i], "name %llu", (r >> 10) % 100000);
        d.name[i] = str_from(sv_from(d.bytes[i]));
    }
    return 0;
}

enum { C_ID, C_SMALL, C_WIDE, C_REAL, C_TEXT, C_NAME, C_COUNT };

static u32 data_table(struct fix *f, u32 tablet_shift, bool plain) {
    const struct fix_col cols[C_COUNT] = {{"id", type_of(TYPE_INTEGER), d.id, NULL},
                                          {"small", type_of(TYPE_INTEGER), d.small, NULL},
                                          {"wide", type_of(TYPE_BIGINT), d.wide, d.nulls},
                                          {"real", type_of(TYPE_DOUBLE), d.real, NULL},
                                          {"text", type_of(TYPE_TEXT), d.text, NULL},
                                          {"name", type_of(TYPE_TEXT), d.name, NULL}};
    return fix_make_table(f, tablet_shift, plain, ROWS, C_COUNT, cols);
}

struct cell {
    i64 vector_rows, morsel_rows;
    i32 threads;
    u32 tablet_shift;
    bool plain;
};

static const struct cell cells[] = {{1024, 65536, 1, 20, false}, {1024, 1000, 4, 12, false},
                                    {3, 100, 4, 7, false},       {1, 64, 2, 6, true},
                                    {1024, 777, 2, 10, true},    {4096, 1, 3, 12, false}};

static void cell_begin(struct fix *f, const struct cell *cell) {
    fix_init(f, cell->threads);
    f->settings.vector_rows = cell->vector_rows;
    f->settings.morsel_rows = cell->morsel_rows;
}

#define EACH_CELL(cell) \
    for (const struct cell *cell = cells; cell < cells + COUNT_OF(cells); cell++)

static void test_filters(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        for (i32 bound = -21; bound <= 21; bound += 7) {
            struct fix f;
            cell_begin(&f, cell);
            u32 t = data_table(&f, cell->tablet_shift, cell->plain);
            fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
            u16 small = fix_load(&f, C_SMALL, KIND_I32);
            fix_filter(&f, fix_scalar(&f, OP_GT_I32, small, fix_i32(&f, bound), NO_REG));
            u16 wide = fix_load(&f, C_WIDE, KIND_I64);
            u16 null = fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, C_WIDE);
            fix_filter(&f, fix_scalar(&f, OP_LE_I32, small, fix_i32(&f, 15), NO_REG));
            u16 sum = fix_scalar(&f, OP_ADD_I64, wide,
                                 fix_scalar(&f, OP_I64_I32, small, NO_REG, NO_REG), NO_REG);
            u16 id = fix_load(&f, C_ID, KIND_I32);
            u16 row = fix_op(&f, OP_ROWNO, KIND_I64, NO_REG, NO_REG, NO_REG, 0);
            u16 real = fix_load(&f, C_REAL, KIND_F64);
            u16 name = fix_load(&f, C_NAME, KIND_STR);
            u16 regs[6] = {id, sum, row, real, name, small};
            u16 nulls[6] = {NO_REG, null, NO_REG, NO_REG, NO_REG, NO_REG};
            u32 var = fix_emit_rows(&f, 6, regs, nulls);
            fix_run(&f);
            i64 at = 0;
            for (i64 i = 0; i < ROWS; i++) {
                if (d.small[i] <= bound || d.small[i] > 15) {
                    continue;
                }
                bool is_null = false;
                i64 got = *(const i64 *)fix_at(&f, var, 1, at, &is_null);
                assert_int_equal(fix_i32_at(&f, var, 0, at), i);
                assert_int_equal(is_null, d.nulls[i]);
                if (!is_null) {
                    assert_int_equal(got, (i64)((u64)d.wide[i] + (u64)d.small[i]));
                }
                assert_int_equal(fix_i64_at(&f, var, 2, at), i);
                assert_true(*(const f64 *)fix_at(&f, var, 3, at, NULL) == d.real[i]);
                assert_true(
                    sv_eq(sv_of(*(const str *)fix_at(&f, var, 4, at, NULL)), sv_of(d.name[i])));
                assert_int_equal(fix_i32_at(&f, var, 5, at), d.small[i]);
                at++;
            }
            assert_int_equal(f.x.vars[var].rows, at);
            fix_fini(&f);
        }
    }
}

/* out = id; where small <> 0 and, inside, small > 0: out = id / small + 1000000, then reloaded
 * where small = 7. With a bound, a filter first leaves the registers behind. */
static void when_keeps_values(const struct cell *cell, i32 bound) {
    struct fix f;
    cell_begin(&f, cell);
    u32 t = data_table(&f, cell->tablet_shift, cell->plain);
    fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
    u16 small = fix_load(&f, C_SMALL, KIND_I32);
    u16 id = fix_load(&f, C_ID, KIND_I32);
    u16 zero = fix_i32(&f, 0);
    u16 out = fix_scalar(&f, OP_ADD_I32, id, zero, NO_REG);
    u16 loaded = fix_load(&f, C_ID, KIND_I32);
    fix_filter(&f, fix_scalar(&f, OP_GT_I32, small, fix_i32(&f, bound), NO_REG));
    u16 nonzero = fix_scalar(&f, OP_NE_I32, small, zero, NO_REG);
    fix_op(&f, OP_WHEN, KIND_NONE, nonzero, NO_REG, NO_REG, 0);
    u16 quotient = fix_scalar(&f, OP_DIV_I32, id, small, NO_REG);
    u16 positive = fix_scalar(&f, OP_GT_I32, small, zero, NO_REG);
    fix_op(&f, OP_WHEN, KIND_NONE, positive, NO_REG, NO_REG, 0);
    fix_op_to(&f, OP_ADD_I32, out, quotient, fix_i32(&f, 1000000), NO_REG, 0);
    fix_op(&f, OP_END, KIND_NONE, NO_REG, NO_REG, NO_REG, 0);
    fix_op(&f, OP_END, KIND_NONE, NO_REG, NO_REG, NO_REG, 0);
    u16 seven = fix_scalar(&f, OP_EQ_I32, small, fix_i32(&f, 7), NO_REG);
    fix_op(&f, OP_WHEN, KIND_NONE, seven, NO_REG, NO_REG, 0);
    fix_op_to(&f, OP_LOAD, loaded, NO_REG, NO_REG, NO_REG, C_SMALL);
    fix_op(&f, OP_END, KIND_NONE, NO_REG, NO_REG, NO_REG, 0);
    u16 regs[2] = {out, loaded};
    u32 var = fix_emit_rows(&f, 2, regs, NULL);
    fix_run(&f);
    i64 at = 0;
    for (i64 i = 0; i < ROWS; i++) {
        if (d.small[i] > bound) {
            i32 want = d.small[i] > 0 ? d.id[i] / d.small[i] + 1000000 : d.id[i];
            assert_int_equal(fix_i32_at(&f, var, 0, at), want);
            assert_int_equal(fix_i32_at(&f, var, 1, at++), d.small[i] == 7 ? 7 : d.id[i]);
        }
    }
    assert_int_equal(f.x.vars[var].rows, at);
    fix_fini(&f);
}

static void test_when_keeps_values(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        when_keeps_values(cell, -100);
        when_keeps_values(cell, -15);
        when_keeps_values(cell, -3);
        when_keeps_values(cell, 5);
        when_keeps_values(cell, 19);
    }
}

static void test_smallest_fault_wins(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        struct fix f;
        cell_begin(&f, cell);
        u32 t = data_table(&f, cell->tablet_shift, cell->plain);
        fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
        u16 id = fix_load(&f, C_ID, KIND_I32);
        u16 from = fix_scalar(&f, OP_SUB_I32, id, fix_i32(&f, 4000), NO_REG);
        u16 late = fix_scalar(&f, OP_SUB_I32, id, fix_i32(&f, 100), NO_REG);
        u16 q1 = fix_scalar(&f, OP_DIV_I32, id, from, NO_REG); /* row 4000, smaller rank */
        u16 first = (u16)(f.pipe->op_count - 1);
        u16 q2 = fix_scalar(&f, OP_DIV_I32, id, late, NO_REG); /* row 100 */
        u16 regs[2] = {q1, q2};
        fix_emit_rows(&f, 2, regs, NULL);
        assert_int_equal(fix_try(&f), ERR_DIVISION_BY_ZERO);
        assert_int_equal(f.err.position, 100 + first);
        u64 key = atomic_load(&f.x.fault);
        assert_int_equal(key, fault_key((u16)(first + 1), 4000, FAULT_DIV0));
        fix_fini(&f);
    }
}

/* Faults of rows that a filter dropped, or outside WHEN's condition, never count. */
static void test_inactive_rows_do_not_raise(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        struct fix f;
        cell_begin(&f, cell);
        u32 t = data_table(&f, cell->tablet_shift, cell->plain);
        fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
        u16 small = fix_load(&f, C_SMALL, KIND_I32);
        u16 id = fix_load(&f, C_ID, KIND_I32);
        fix_filter(&f, fix_scalar(&f, OP_NE_I32, small, fix_i32(&f, 0), NO_REG));
        u16 q = fix_scalar(&f, OP_DIV_I32, id, small, NO_REG);
        u16 c = fix_scalar(&f, OP_ADDX_I32, q, fix_i32(&f, 1), NO_REG);
        u32 var = fix_emit_rows(&f, 1, &c, NULL);
        fix_run(&f);
        i64 at = 0;
        for (i64 i = 0; i < ROWS; i++) {
            if (d.small[i]) {
                assert_int_equal(fix_i32_at(&f, var, 0, at++), d.id[i] / d.small[i] + 1);
            }
        }
        fix_fini(&f);
    }
}

static void test_strings(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        struct fix f;
        cell_begin(&f, cell);
        u32 t = data_table(&f, cell->tablet_shift, cell->plain);
        fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
        u16 name = fix_load(&f, C_NAME, KIND_STR);
        u16 text = fix_load(&f, C_TEXT, KIND_STR);
        u16 small = fix_load(&f, C_SMALL, KIND_I32);
        fix_filter(&f, fix_scalar(&f, OP_GT_I32, small, fix_i32(&f, 5), NO_REG));
        u16 joined = fix_scalar(&f, OP_CONCAT_STR, name, text, NO_REG);
        u16 upper = fix_scalar(&f, OP_UPPER_STR, joined, NO_REG, NO_REG);
        u16 cut = fix_scalar(&f, OP_SUBSTR_STR, upper, fix_i64(&f, 2), fix_i64(&f, 4));
        u16 number = fix_scalar(&f, OP_FORMAT_I64,
                                fix_scalar(&f, OP_I64_I32, small, NO_REG, NO_REG), NO_REG, NO_REG);
        u16 back = fix_scalar(&f, OP_PARSE_INT, number, NO_REG, NO_REG);
        u16 regs[3] = {joined, cut, back};
        u32 rows = fix_emit_rows(&f, 3, regs, NULL);
        f.program.vars[rows].last_use = 1;
        /* A second pipeline copies the views; the first variable is released before they are read.
         */
        fix_pipe(&f, SOURCE_VAR, rows, 3);
        u16 again[3] = {fix_load(&f, 0, KIND_STR), fix_load(&f, 1, KIND_STR),
                        fix_load(&f, 2, KIND_I64)};
        u32 var = fix_emit_rows(&f, 3, again, NULL);
        fix_run(&f);
        assert_int_equal(f.x.vars[rows].chunks.count, 0);
        i64 at = 0;
        for (i64 i = 0; i < ROWS; i++) {
            if (d.small[i] <= 5) {
                continue;
            }
            char want[64];
            struct sv a = sv_of(d.name[i]);
            struct sv b = sv_of(d.text[i]);
            snprintf(want, sizeof want, "%.*s%.*s", (int)a.len, a.ptr, (int)b.len, b.ptr);
            struct sv got = sv_of(*(const str *)fix_at(&f, var, 0, at, NULL));
            assert_true(sv_eq(got, sv_from(want)));
            got = sv_of(*(const str *)fix_at(&f, var, 1, at, NULL));
            assert_true(sv_eq(got, SV("AME ")));
            assert_int_equal(fix_i64_at(&f, var, 2, at), d.small[i]);
            at++;
        }
        assert_int_equal(f.x.vars[var].rows, at);
        fix_fini(&f);
    }
}

static void test_no_key_aggregation(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        for (i32 bound = -30; bound <= 30; bound += 30) {
            struct fix f;
            cell_begin(&f, cell);
            u32 t = data_table(&f, cell->tablet_shift, cell->plain);
            fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
            u16 small = fix_load(&f, C_SMALL, KIND_I64);
            fix_filter(&f, fix_scalar(&f, OP_GT_I64, small, fix_i64(&f, bound), NO_REG));
            u16 regs[4] = {fix_i64(&f, 1), small, small, small};
            u8 words[4] = {WORD_ADD, WORD_ADD, WORD_MIN, WORD_MAX};
            u32 var = fix_emit_agg(&f, NO_REG, 0, 4, words, regs);
            fix_run(&f);
            i64 want[4] = {0, 0, I64_MAX, I64_MIN};
            for (i64 i = 0; i < ROWS; i++) {
                if (d.small[i] > bound) {
                    want[0]++;
                    want[1] += d.small[i];
                    want[2] = MIN_OF(want[2], d.small[i]);
                    want[3] = MAX_OF(want[3], d.small[i]);
                }
            }
            assert_int_equal(f.x.vars[var].rows, 1);
            for (u32 w = 0; w < 4; w++) {
                assert_int_equal(fix_i64_at(&f, var, 1 + w, 0), want[w]);
            }
            fix_fini(&f);
        }
    }
}

static int by_i64(const void *a, const void *b) {
    i64 x = *(const i64 *)a;
    i64 y = *(const i64 *)b;
    return x < y ? -1 : x > y;
}

/* Groups come in any order: look each up. */
static void check_groups(struct fix *f, u32 var, const i64 *keys, const i64 *value, const b8 *use) {
    static i64 sorted[ROWS];
    i64 n = 0;
    for (i64 i = 0; i < ROWS; i++) {
        if (use[i]) {
            sorted[n++] = keys[i];
        }
    }
    qsort(sorted, (size_t)n, sizeof(i64), by_i64);
    i64 distinct = 0;
    for (i64 i = 0; i < n; i++) {
        distinct += i == 0 || sorted[i] != sorted[i - 1];
    }
    assert_int_equal(f->x.vars[var].rows, distinct);
    for (i64 g = 0; g < distinct; g++) {
        i64 key = fix_i64_at(f, var, 0, g);
        i64 want[4] = {0, 0, I64_MAX, I64_MIN};
        for (i64 i = 0; i < ROWS; i++) {
            if (use[i] && keys[i] == key) {
                want[0]++;
                want[1] = (i64)((u64)want[1] + (u64)value[i]);
                want[2] = MIN_OF(want[2], value[i]);
                want[3] = MAX_OF(want[3], value[i]);
            }
        }
        for (u32 w = 0; w < 4; w++) {
            assert_int_equal(fix_i64_at(f, var, 1 + w, g), want[w]);
        }
    }
}

static void group_by(const struct cell *cell, i64 modulus, u8 key_bits, i32 bound) {
    static i64 keys[ROWS];
    static i64 value[ROWS];
    static b8 use[ROWS];
    struct fix f;
    cell_begin(&f, cell);
    u32 t = data_table(&f, cell->tablet_shift, cell->plain);
    fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
    u16 small = fix_load(&f, C_SMALL, KIND_I32);
    fix_filter(&f, fix_scalar(&f, OP_GT_I32, small, fix_i32(&f, bound), NO_REG));
    u16 id = fix_load(&f, C_ID, KIND_I64);
    u16 key = modulus ? fix_scalar(&f, OP_MOD_I64, id, fix_i64(&f, modulus), NO_REG)
                      : fix_load(&f, C_WIDE, KIND_I64);
    u16 wide = fix_load(&f, C_WIDE, KIND_I64);
    u16 regs[4] = {fix_i64(&f, 1), wide, wide, wide};
    u8 words[4] = {WORD_ADD, WORD_ADD, WORD_MIN, WORD_MAX};
    u32 var = fix_emit_agg(&f, key, key_bits, 4, words, regs);
    fix_run(&f);
    for (i64 i = 0; i < ROWS; i++) {
        value[i] = d.nulls[i] ? 0 : d.wide[i];
        keys[i] = modulus ? i % modulus : value[i];
        use[i] = d.small[i] > bound;
    }
    /* A NULL's value is whatever the tablet decodes: compare where there is none. */
    bool any_null = false;
    for (i64 i = 0; i < ROWS; i++) {
        any_null = any_null || (use[i] && d.nulls[i]);
    }
    if (!any_null) {
        check_groups(&f, var, keys, value, use);
    }
    fix_fini(&f);
}

static void test_grouping(void **state) {
    UNUSED(state);
    b8 saved[ROWS];
    memcpy(saved, d.nulls, sizeof saved);
    memset(d.nulls, 0, sizeof d.nulls);
    EACH_CELL(cell) {
        group_by(cell, 4, 2, 0);
        group_by(cell, 100, 7, -100);
        group_by(cell, 3000, 12, -15);
        group_by(cell, 3000, 13, 3);
        group_by(cell, 3000, 64, -100);
        group_by(cell, 7, 64, 10);
    }
    group_by(&cells[1], 0, 64, 0);
    group_by(&cells[2], 0, 64, 100); /* no rows */
    memcpy(d.nulls, saved, sizeof saved);
}

/* Many groups on several threads: partitions merge in parallel. */
static void test_large_grouping(void **state) {
    UNUSED(state);
    enum { MANY = 200000 };
    static i64 key[MANY];
    for (i64 i = 0; i < MANY; i++) {
        key[i] = (i64)hash_u64((u64)(i % 70001));
    }
    struct fix f;
    fix_init(&f, 4);
    f.settings.morsel_rows = 4096;
    const struct fix_col cols[1] = {{"k", type_of(TYPE_BIGINT), key, NULL}};
    u32 t = fix_make_table(&f, 15, false, MANY, 1, cols);
    fix_pipe(&f, SOURCE_TABLE, t, 1);
    u16 k = fix_load(&f, 0, KIND_I64);
    u16 one = fix_i64(&f, 1);
    u8 word = WORD_ADD;
    u32 var = fix_emit_agg(&f, k, 64, 1, &word, &one);
    fix_run(&f);
    assert_int_equal(f.x.vars[var].rows, 70001);
    i64 total = 0;
    for (i64 c = 0; c < f.x.vars[var].chunks.count; c++) {
        const struct chunk *chunk = f.x.vars[var].chunks.items[c];
        for (i64 i = 0; i < chunk->rows; i++) {
            i64 count = ((const i64 *)chunk->cols[1].data)[i];
            assert_in_range(count, 2, 3);
            total += count;
        }
    }
    assert_int_equal(total, MANY);
    fix_fini(&f);
}

/* Builds an index over (id % modulus scaled) of the first `build` rows, then joins small + 20. */
static void join(const struct cell *cell, i64 build, i64 modulus, i64 scale, bool probe) {
    struct fix f;
    cell_begin(&f, cell);
    u32 t = data_table(&f, cell->tablet_shift, cell->plain);
    fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
    u16 id = fix_load(&f, C_ID, KIND_I64);
    fix_filter(&f, fix_scalar(&f, OP_LT_I64, id, fix_i64(&f, build), NO_REG));
    u16 mod = fix_scalar(&f, OP_MOD_I64, id, fix_i64(&f, modulus), NO_REG);
    u16 key = fix_scalar(&f, OP_MUL_I64, mod, fix_i64(&f, scale), NO_REG);
    u16 name = fix_load(&f, C_NAME, KIND_STR);
    u16 regs[3] = {key, id, name};
    u32 rows = fix_emit_rows(&f, 3, regs, NULL);
    u32 index = fix_var(&f, VAR_INDEX, 0, NULL);
    f.program.vars[index].rows_var = rows;
    struct step *step = fix_step(&f, STEP_BUILD);
    step->src = rows;
    step->dst = index;
    fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
    u16 small = fix_load(&f, C_SMALL, KIND_I64);
    u16 me = fix_load(&f, C_ID, KIND_I64);
    u16 shifted = fix_scalar(&f, OP_ADD_I64, small, fix_i64(&f, 20), NO_REG);
    u16 want = fix_scalar(&f, OP_MUL_I64, shifted, fix_i64(&f, scale), NO_REG);
    u16 row = fix_op(&f, probe ? OP_PROBE : OP_MATCH, KIND_I64, want, NO_REG, NO_REG, index);
    u16 other = fix_op(&f, OP_LOADV, KIND_I64, row, (u16)rows, NO_REG, 1);
    u16 text = fix_op(&f, OP_LOADV, KIND_STR, row, (u16)rows, NO_REG, 2);
    fix_filter(&f, fix_scalar(&f, OP_NE_I64, me, other, NO_REG));
    u16 late = fix_load(&f, C_SMALL, KIND_I32);
    u16 out[4] = {me, other, text, late};
    u32 var = fix_emit_rows(&f, 4, out, NULL);
    fix_run(&f);
    i64 at = 0;
    for (i64 i = 0; i < ROWS; i++) {
        i64 k = d.small[i] + 20;
        for (i64 j = k; k < modulus && j < build; j += modulus) {
            if (j == i) {
                if (probe) {
                    break;
                }
                continue;
            }
            assert_int_equal(fix_i64_at(&f, var, 0, at), i);
            assert_int_equal(fix_i64_at(&f, var, 1, at), j);
            assert_true(sv_eq(sv_of(*(const str *)fix_at(&f, var, 2, at, NULL)), sv_of(d.name[j])));
            assert_int_equal(fix_i32_at(&f, var, 3, at), d.small[i]);
            at++;
            if (probe) {
                break;
            }
        }
    }
    assert_int_equal(f.x.vars[var].rows, at);
    fix_fini(&f);
}

static void test_joins(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        join(cell, 30, 30, 1, true);           /* unique, direct */
        join(cell, 30, 30, 1LL << 50, true);   /* unique, hashed */
        join(cell, 30, 30, 1, false);          /* MATCH over unique */
        join(cell, 300, 30, 1, false);         /* N:M, direct */
        join(cell, 300, 30, 1LL << 50, false); /* N:M, hashed */
        join(cell, 300, 30, 1, true);          /* PROBE takes the first of a run */
        join(cell, 0, 30, 1, false);           /* empty build */
    }
    join(&cells[0], ROWS, 1, 1, false); /* one key: skew */
    join(&cells[1], ROWS, 2, 1LL << 50, false);
}

static void test_nested_matches(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        struct fix f;
        cell_begin(&f, cell);
        u32 t = data_table(&f, cell->tablet_shift, cell->plain);
        fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
        u16 id = fix_load(&f, C_ID, KIND_I64);
        fix_filter(&f, fix_scalar(&f, OP_LT_I64, id, fix_i64(&f, 20), NO_REG));
        u16 key = fix_scalar(&f, OP_MOD_I64, id, fix_i64(&f, 5), NO_REG);
        u16 regs[2] = {key, id};
        u32 rows = fix_emit_rows(&f, 2, regs, NULL);
        u32 index = fix_var(&f, VAR_INDEX, 0, NULL);
        struct step *step = fix_step(&f, STEP_BUILD);
        step->src = rows;
        step->dst = index;
        fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
        u16 me = fix_load(&f, C_ID, KIND_I64);
        fix_filter(&f, fix_scalar(&f, OP_LT_I64, me, fix_i64(&f, 8), NO_REG));
        u16 r1 = fix_op(&f, OP_MATCH, KIND_I64, me, NO_REG, NO_REG, index);
        u16 o1 = fix_op(&f, OP_LOADV, KIND_I64, r1, (u16)rows, NO_REG, 1);
        u16 k2 = fix_scalar(&f, OP_MOD_I64, o1, fix_i64(&f, 5), NO_REG);
        u16 r2 = fix_op(&f, OP_MATCH, KIND_I64, k2, NO_REG, NO_REG, index);
        u16 o2 = fix_op(&f, OP_LOADV, KIND_I64, r2, (u16)rows, NO_REG, 1);
        u16 out[3] = {me, o1, o2};
        u32 var = fix_emit_rows(&f, 3, out, NULL);
        fix_run(&f);
        i64 at = 0;
        for (i64 i = 0; i < 5; i++) {
            for (i64 j = i; j < 20; j += 5) {
                for (i64 k = j % 5; k < 20; k += 5) {
                    assert_int_equal(fix_i64_at(&f, var, 0, at), i);
                    assert_int_equal(fix_i64_at(&f, var, 1, at), j);
                    assert_int_equal(fix_i64_at(&f, var, 2, at), k);
                    at++;
                }
            }
        }
        assert_int_equal(f.x.vars[var].rows, at);
        fix_fini(&f);
    }
}

static void test_limit(void **state) {
    UNUSED(state);
    EACH_CELL(cell) {
        for (i64 limit = 0; limit < 2000; limit = limit * 3 + 1) {
            struct fix f;
            cell_begin(&f, cell);
            u32 t = data_table(&f, cell->tablet_shift, cell->plain);
            fix_pipe(&f, SOURCE_TABLE, t, C_COUNT);
            u16 small = fix_load(&f, C_SMALL, KIND_I32);
            fix_filter(&f, fix_scalar(&f, OP_GT_I32, small, fix_i32(&f, 3), NO_REG));
            u16 id = fix_load(&f, C_ID, KIND_I32);
            u32 var = fix_emit_rows(&f, 1, &id, NULL);
            f.pipe->sinks[0].limit = limit;
            fix_run(&f);
            assert_int_equal(f.x.vars[var].rows, limit);
            i64 at = 0;
            for (i64 i = 0; i < ROWS && at < limit; i++) {
                if (d.small[i] > 3) {
                    assert_int_equal(fix_i32_at(&f, var, 0, at++), i);
                }
            }
            fix_fini(&f);
        }
    }
}

static void test_pruning(void **state) {
    UNUSED(state);
    enum { MANY = 100000 };
    static i32 id[MANY];
    for (i32 i = 0; i < MANY; i++) {
        id[i] = i;
    }
    struct fix f;
    fix_init(&f, 2);
    f.settings.morsel_rows = 50000;
    const struct fix_col cols[1] = {{"id", type_of(TYPE_INTEGER), id, NULL}};
    u32 t = fix_make_table(&f, 16, false, MANY, 1, cols);
    fix_pipe(&f, SOURCE_TABLE, t, 1);
    u16 reg = fix_load(&f, 0, KIND_I32);
    fix_filter(&f, fix_scalar(&f, OP_GE_I32, reg, fix_i32(&f, 20000), NO_REG));
    fix_filter(&f, fix_scalar(&f, OP_LT_I32, reg, fix_i32(&f, 20100), NO_REG));
    u32 lo = fix_lit(&f, KIND_I128, (union lit){.i128 = 20000});
    u32 hi = fix_lit(&f, KIND_I128, (union lit){.i128 = 20099});
    f.pipe->prunes[f.pipe->prune_count++] =
        (struct prune){.col = 0, .lo_lit = lo, .hi_lit = hi, .kind = KIND_I128};
    u32 var = fix_emit_rows(&f, 1, &reg, NULL);
    fix_run(&f);
    assert_int_equal(f.x.vars[var].rows, 100);
    assert_int_equal(fix_i32_at(&f, var, 0, 0), 20000);
    /* One zone of the first tablet is read, and the second tablet where it has no zone maps. */
    assert_true(f.x.metrics[0].tablets_pruned_rows >= 65536 - ZONE_ROWS);
    assert_int_equal(f.x.metrics[0].rows_in + f.x.metrics[0].tablets_pruned_rows, MANY);
    fix_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_filters),
                                       cmocka_unit_test(test_when_keeps_values),
                                       cmocka_unit_test(test_smallest_fault_wins),
                                       cmocka_unit_test(test_inactive_rows_do_not_raise),
                                       cmocka_unit_test(test_strings),
                                       cmocka_unit_test(test_no_key_aggregation),
                                       cmocka_unit_test(test_grouping),
                                       cmocka_unit_test(test_large_grouping),
                                       cmocka_unit_test(test_joins),
                                       cmocka_unit_test(test_nested_matches),
                                       cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_pruning)};
    return cmocka_run_group_tests(tests, make_data, NULL);
}

/* test_cpu_agg.c: aggregation by domain of the key, against a sorted list.
 *
 * Keys in runs, shuffled, all distinct, few and many per row, direct and hashed; ADD, MIN and MAX
 * words; with and without a filter in front; one worker and four; with the expectation that keys
 * come in order, where they do and where they do not. Test builds use tiny bounds, so
 * that tables flush to partitions and rows go there directly with these few thousand rows too. */
#include "test_cpu_fixture.h"

#include "codes/loop.h"
#include "cpu/vec.h"

enum { ROWS = 30000 };

static i64 key[ROWS];
static i64 value[ROWS];

enum shape { RUNS, SHUFFLED, DISTINCT, FEW, HALF_RUNS, LONG_RUNS, ASCENDING, SHAPES };

static bool expect_runs; /* the sink is told that keys come in order */

static i64 key_of(i32 shape, i64 i, u64 r) {
    switch (shape) {
    case RUNS:
        return i / 5;
    case SHUFFLED:
        return (i64)(r % 4000);
    case DISTINCT:
        return i * 7919 % 30011;
    case FEW:
        return (i64)(r % 100);
    case LONG_RUNS: /* longer than a morsel */
        return i / 4000;
    case ASCENDING:
        return i;
    default:
        return i < ROWS / 2 ? i / 9 : (i64)(r % 16000);
    }
}

struct entry {
    i64 key;
    i64 count, sum, least, most;
};

static int by_key(const void *a, const void *b) {
    i64 ka = ((const struct entry *)a)->key;
    i64 kb = ((const struct entry *)b)->key;
    return ka < kb ? -1 : ka > kb;
}

static i64 expect(struct entry *out, i64 filter) {
    static struct entry all[ROWS];
    i64 n = 0;
    for (i64 i = 0; i < ROWS; i++) {
        if (value[i] >= filter) {
            all[n++] = (struct entry){key[i], 1, value[i], value[i], value[i]};
        }
    }
    qsort(all, (size_t)n, sizeof *all, by_key);
    i64 groups = 0;
    for (i64 i = 0; i < n; i++) {
        if (groups == 0 || out[groups - 1].key != all[i].key) {
            out[groups++] = all[i];
            continue;
        }
        struct entry *e = &out[groups - 1];
        e->count++;
        e->sum += all[i].sum;
        e->least = MIN_OF(e->least, all[i].least);
        e->most = MAX_OF(e->most, all[i].most);
    }
    return groups;
}

static void run_and_check(i32 shape, u8 key_bits, i64 filter, i32 threads, i64 vector_rows) {
    static struct entry want[ROWS];
    static struct entry got[ROWS];
    i64 spread = key_bits == 64 && !expect_runs ? (i64)0x9e3779b97f4a7c1 : 1;
    u64 seed = 9;
    for (i64 i = 0; i < ROWS; i++) {
        u64 r = fix_random(&seed);
        key[i] = (i64)((u64)key_of(shape, i, r >> 3) * (u64)spread);
        value[i] = (i64)(r >> 40) - (1 << 22);
    }
    struct fix f;
    fix_init(&f, threads);
    f.settings.vector_rows = vector_rows;
    f.settings.morsel_rows = 1500;
    const struct fix_col cols[2] = {{"k", type_of(TYPE_BIGINT), key, NULL},
                                    {"v", type_of(TYPE_BIGINT), value, NULL}};
    u32 t = fix_make_table(&f, 12, false, ROWS, 2, cols);
    fix_pipe(&f, SOURCE_TABLE, t, 2);
    u16 v = fix_load(&f, 1, KIND_I64);
    if (filter > I64_MIN) {
        fix_filter(&f, fix_scalar(&f, OP_GE_I64, v, fix_i64(&f, filter), NO_REG));
    }
    u16 k = fix_load(&f, 0, KIND_I64);
    const u8 words[4] = {WORD_ADD, WORD_ADD, WORD_MIN, WORD_MAX};
    const u16 regs[4] = {fix_i64(&f, 1), v, v, v};
    u32 var = fix_emit_agg(&f, k, key_bits, 4, words, regs);
    f.pipe->sinks[0].in_runs = expect_runs;
    fix_run(&f);
    i64 groups = expect(want, filter);
    assert_int_equal(f.x.vars[var].rows, groups);
    for (i64 g = 0; g < groups; g++) {
        i64 *word = (i64 *)&got[g];
        for (u32 c = 0; c < 5; c++) {
            word[c] = *(const i64 *)fix_at(&f, var, c, g, NULL);
        }
    }
    qsort(got, (size_t)groups, sizeof *got, by_key);
    assert_memory_equal(got, want, (size_t)groups * sizeof *got);
    fix_fini(&f);
}

static void test_domains(void **state) {
    UNUSED(state);
    static const u8 bits[] = {15, 18, 40, 64};
    for (i32 shape = 0; shape < SHAPES; shape++) {
        for (i64 b = 0; b < COUNT_OF(bits); b++) {
            run_and_check(shape, bits[b], I64_MIN, 1, 1024);
            run_and_check(shape, bits[b], I64_MIN, 4, 1024);
            run_and_check(shape, bits[b], 1000, 4, 97);
        }
    }
    run_and_check(FEW, 7, I64_MIN, 4, 1024);
    run_and_check(FEW, 12, -50000, 2, 3);
}

static void test_expected_runs(void **state) {
    UNUSED(state);
    expect_runs = true;
    for (i32 shape = 0; shape < SHAPES; shape++) {
        run_and_check(shape, 18, I64_MIN, 1, 1024);
        run_and_check(shape, 64, I64_MIN, 4, 97);
        run_and_check(shape, 40, 1000, 4, 1);
    }
    expect_runs = false;
}

enum { VECTOR = 100, GUARD = -77 };

/* Vectors of every length, after nothing or after a run that may go on, with keys that repeat as
 * `bits` has them; what lies behind the runs there can be stays as it is. */
static void check_runs(const struct vec_table *vec, i64 n, bool after, u64 bits) {
    i64 keys[VECTOR + 2];
    i64 word[VECTOR + 2];
    u32 run[VECTOR];
    for (i64 i = 0; i < VECTOR + 2; i++) {
        keys[i] = word[i] = GUARD;
    }
    keys[0] = after ? I64_MIN + (i64)(bits & 1) : GUARD;
    word[0] = after ? I64_MAX : GUARD; /* sums wrap */
    i64 in[VECTOR];
    i64 x[VECTOR];
    for (i64 i = 0; i < n; i++) {
        in[i] = i ? in[i - 1] + (i64)(bits >> i % 64 & 1) : I64_MIN + 1;
        x[i] = (i64)((u64)(i + 1) * 0x9e3779b97f4a7c15);
    }
    i64 last = after ? 0 : -1;
    i64 end = vec->number_runs(run, keys, in, n, last);
    u64 total = after && run[0] == 0 ? (u64)word[0] : 0;
    vec->add_runs(word, run, x, n, total);
    u64 sum = total;
    for (i64 i = 0; i < n; i++) {
        bool begins = i ? in[i] != in[i - 1] : !after || !(bits & 1);
        last += begins;
        sum = (begins ? 0 : sum) + (u64)x[i];
        assert_int_equal(run[i], last);
        assert_int_equal(keys[last], in[i]);
        if (i + 1 == n || in[i + 1] != in[i]) {
            assert_true(word[last] == (i64)sum);
        }
    }
    assert_int_equal(end, last);
    assert_int_equal(keys[n + after], GUARD);
    assert_int_equal(word[n + after], GUARD);
    for (i64 i = 0; i < n; i++) { /* one key that descends, wherever it is */
        i64 kept = in[i];
        in[i] = i ? in[i - 1] - 1 : I64_MIN;
        i64 before = after ? I64_MIN + 1 : 0;
        keys[0] = before;
        bool down = i > 0 || after;
        assert_int_equal(vec->number_runs(run, keys, in, n, after ? 0 : -1) < 0, down);
        in[i] = kept;
    }
}

static void check_level(const struct vec_table *vec) {
    for (i64 n = 1; n <= VECTOR; n++) {
        for (i32 after = 0; after < 2; after++) {
            check_runs(vec, n, after, 0);
            check_runs(vec, n, after, 1);
            check_runs(vec, n, after, ~0ULL);
            check_runs(vec, n, after, 0x8421f00700ff1235);
        }
    }
}

static void test_run_loops(void **state) {
    UNUSED(state);
    check_level(&vec_table_baseline);
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2) {
        check_level(&vec_table_avx2);
    }
    if (cpu_level() >= CPU_AVX512) {
        check_level(&vec_table_avx512);
    }
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_domains),
                                       cmocka_unit_test(test_expected_runs),
                                       cmocka_unit_test(test_run_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

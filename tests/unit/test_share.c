/* test_share.c: shares of a scan: how large they are, where they part, and that what several devices
 * made of their parts is what one would have made of the whole. The other devices are the host's
 * processor under another name, so that nothing depends on a card; some refuse memory, or fail. */
#include "test_cpu_fixture.h"

#include "codes/op.h"
#include "run/run_int.h"
#include "run/share.h"

#include <math.h>

/* --- how large --- */

static void test_sizes(void **state) {
    UNUSED(state);
    f64 shares[3];
    const struct share_cost even[2] = {{0, 100, 0, 1}, {0, 300, 0, 1}};
    assert_true(fabs(share_out(2, even, shares) - 75) < 1e-6);
    assert_true(fabs(shares[0] - 0.75) < 1e-6 && fabs(shares[1] - 0.25) < 1e-6);
    /* A start that takes longer than all of it elsewhere. */
    const struct share_cost slow[2] = {{1000, 1, 0, 1}, {0, 300, 0, 1}};
    assert_true(fabs(share_out(2, slow, shares) - 300) < 1e-6 && shares[0] < 1e-9);
    /* Columns of the first half are there, those of the second have to be brought. */
    const struct share_cost half[2] = {{0, 10, 1000, 0.5}, {0, 300, 0, 1}};
    f64 ns = share_out(2, half, shares);
    assert_true(shares[0] > 0.5 && shares[0] < 0.65);
    for (u32 i = 0; i < 2; i++) {
        assert_true(fabs(share_ns(&half[i], shares[i]) - ns) < 1e-3);
    }
    const struct share_cost three[3] = {{5, 100, 50, 0}, {10, 40, 0, 1}, {1, 700, 0, 1}};
    ns = share_out(3, three, shares);
    assert_true(fabs(shares[0] + shares[1] + shares[2] - 1) < 1e-9);
    for (u32 i = 0; i < 3; i++) {
        assert_true(fabs(share_ns(&three[i], shares[i]) - ns) < 1e-3);
        assert_true(ns < share_ns(&three[i], 1));
    }
    assert_true(share_ns(&three[0], 0) == 0);
}

/* --- where they part --- */

enum { ROWS = 40000, TABLET_SHIFT = 15 };
static i64 number[ROWS];
static i64 key[ROWS];
static b8 key_null[ROWS];

static int make_data(void **state) {
    UNUSED(state);
    u64 seed = 11;
    for (i64 i = 0; i < ROWS; i++) {
        u64 r = fix_random(&seed);
        number[i] = i;
        key[i] = (i64)(r % 1000) * 1000003;
        key_null[i] = (r >> 40) % 10 == 0;
    }
    return 0;
}

static u32 make_table(struct fix *f, u32 shift) {
    const struct fix_col cols[2] = {{"number", type_of(TYPE_BIGINT), number, NULL},
                                    {"key", type_of(TYPE_BIGINT), key, key_null}};
    return fix_make_table(f, shift, false, ROWS, 2, cols);
}

static void test_borders(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    u32 t = make_table(&f, TABLET_SHIFT);
    const struct table_version *v = f.versions[t];
    assert_int_equal(share_row(v, -5), 0);
    assert_int_equal(share_row(v, ROWS), ROWS);
    assert_int_equal(share_row(v, ROWS + 7), ROWS);
    for (i64 row = 0; row < ROWS; row += 777) {
        i64 at = share_row(v, row);
        bool border = at == ROWS || at % ZONE_ROWS == 0; /* tablets have two zones */
        assert_true(border && llabs(at - row) <= ZONE_ROWS / 2);
    }
    /* Zones that a condition rules out are nobody's work: halves of what is left. */
    fix_pipe(&f, SOURCE_TABLE, t, 2);
    u32 lo = fix_lit(&f, KIND_I64, (union lit){.i64 = ROWS - 2 * ZONE_ROWS});
    f.pipe->prunes[f.pipe->prune_count++] = (struct prune){0, lo, NO_LIT, KIND_I64};
    f.x = (struct exec){.versions = f.versions, .lits = f.program.lits};
    const f64 half[2] = {0.5, 0.5};
    i64 ends[2];
    share_ends(&f.x, f.pipe, 2, half, ends);
    assert_true(ends[0] > ROWS - 2 * ZONE_ROWS && ends[0] < ROWS && ends[1] == ROWS);
    f.pipe->prune_count = 0;
    share_ends(&f.x, f.pipe, 2, half, ends);
    assert_int_equal(ends[0], share_row(v, ROWS / 2));
    fix_fini(&f);
}

static void test_possible(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    u32 t = make_table(&f, 10);
    fix_pipe(&f, SOURCE_TABLE, t, 2);
    u16 n = fix_load(&f, 0, KIND_I64);
    (void)fix_emit_rows(&f, 1, &n, NULL);
    const struct step *step = &f.block.steps[0];
    struct sink *sink = &f.pipe->sinks[0];
    struct variable *vars = NEW_ARRAY(&f.arena, struct variable, FIX_MAX);
    f.x = (struct exec){.program = &f.program, .versions = f.versions, .vars = vars};
    assert_true(share_possible(&f.x, step));
    sink->limit = 5; /* stops early */
    assert_false(share_possible(&f.x, step));
    sink->limit = -1;
    sink->set_var = 1; /* equal rows count once */
    assert_false(share_possible(&f.x, step));
    sink->set_var = 0;
    u32 pairs = fix_var(&f, VAR_INTERN, 0, NULL);
    (void)fix_op(&f, OP_INTERN2, KIND_I32, n, n, NO_REG, pairs); /* numbers pairs as it goes */
    assert_false(share_possible(&f.x, step));
    f.pipe->op_count--;
    (void)fix_op(&f, OP_LOADV, KIND_I64, n, (u16)sink->var, NO_REG, 0); /* reads what it makes */
    assert_false(share_possible(&f.x, step));
    f.pipe->op_count--;
    f.pipe->source.kind = SOURCE_VAR;
    assert_false(share_possible(&f.x, step));
    fix_fini(&f);
}

/* --- together --- */

struct other {
    struct device *cpu; /* that it is */
    struct device device;
    wf_status fails; /* instead of running */
    _Atomic i32 runs;
};

static wf_status other_run(struct device *dev, struct exec *x, u32 step_no,
                           const struct step *step) {
    struct other *o = (struct other *)(void *)((u8 *)dev - offsetof(struct other, device));
    atomic_fetch_add(&o->runs, 1);
    return o->fails ? error_set(x->err, o->fails, -1, "as told")
                    : o->cpu->run(o->cpu, x, step_no, step);
}

static struct run_devices open_devices(struct fix *f, struct other *others, u32 count) {
    struct run_devices devices = {.count = 1 + count, .list = {f->cpu}};
    for (u32 i = 0; i < count; i++) {
        others[i] = (struct other){.cpu = cpu_device_open()};
        others[i].device = *others[i].cpu;
        others[i].device.name = "other";
        others[i].device.title = "other";
        others[i].device.space = 1 + i;
        others[i].device.run = other_run;
        devices.list[1 + i] = &others[i].device;
    }
    return devices;
}

static void close_devices(struct other *others, u32 count) {
    for (u32 i = 0; i < count; i++) {
        others[i].cpu->close(others[i].cpu);
    }
}

/* Sums by key over a table: words of every kind. `bits` 0: all rows are one group. */
static u32 sums(struct fix *f, u32 shift, u8 bits) {
    u32 t = make_table(f, shift);
    fix_pipe(f, SOURCE_TABLE, t, 2);
    u16 n = fix_load(f, 0, KIND_I64);
    u16 k = fix_load(f, 1, KIND_I64);
    u16 few = fix_scalar(f, OP_MOD_I64, n, fix_i64(f, 8), NO_REG);
    u16 one = fix_i64(f, 1);
    static const u8 words[6] = {WORD_ADD, WORD_MIN, WORD_MAX, WORD_AND, WORD_OR, WORD_XOR};
    const u16 regs[6] = {one, n, n, n, n, n};
    u16 by = bits == 0 ? (u16)NO_REG : bits < 10 ? few : k;
    return fix_emit_agg(f, by, bits, 6, words, regs);
}

/* Rows of a variable, in no order. */
static u64 digest(const struct fix *f, u32 var) {
    u64 sum = 0;
    for (i64 i = 0; i < f->x.vars[var].rows; i++) {
        u64 row = 0;
        for (u32 c = 0; c < f->program.vars[var].col_count; c++) {
            row = hash_u64(row + (u64)fix_i64_at(f, var, c, i));
        }
        sum += row;
    }
    return sum;
}

static void check_shared(struct fix *f, const struct run_devices *devices, u32 parts) {
    const struct step_metric *m = &f->x.metrics[0];
    assert_int_equal(m->share_count, parts);
    i64 rows = 0;
    for (u32 i = 0; i < parts; i++) {
        rows += m->shares[i].rows_in;
        assert_true(m->shares[i].device_no < devices->count);
    }
    assert_int_equal(rows, ROWS);
    assert_int_equal(m->rows_in, ROWS);
}

static void test_groups(void **state) {
    UNUSED(state);
    static const u8 bits[] = {0, 3, 64};
    static const i64 percents[] = {1, 40, 99};
    for (u32 b = 0; b < 3; b++) {
        struct fix f;
        struct other others[2];
        fix_init(&f, 3);
        u32 var = sums(&f, 10, bits[b]);
        fix_run(&f);
        u64 expected = digest(&f, var);
        i64 groups = f.x.vars[var].rows;
        for (u32 count = 1; count <= 2; count++) {
            struct run_devices devices = open_devices(&f, others, count);
            f.settings.device = DEVICE_HYBRID;
            f.settings.host_rows = 0;
            for (u32 p = 0; p < 3; p++) {
                f.settings.hybrid_share = percents[p];
                assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
                assert_int_equal(f.x.vars[var].rows, groups);
                assert_true(digest(&f, var) == expected);
                if (percents[p] == 40) { /* else some may get none: rows part where tablets do */
                    check_shared(&f, &devices, 1 + count);
                }
            }
            fix_end(&f);
            close_devices(others, count);
        }
        fix_fini(&f);
    }
}

/* Rows stay in the order of shares, and of rows within each; a fault is that of the first row. */
static void test_rows(void **state) {
    UNUSED(state);
    struct fix f;
    struct other others[2];
    fix_init(&f, 2);
    u32 t = make_table(&f, 10);
    fix_pipe(&f, SOURCE_TABLE, t, 2);
    u16 n = fix_load(&f, 0, KIND_I64);
    u16 regs[1] = {n};
    fix_filter(&f, fix_scalar(&f, OP_GT_I64, n, fix_i64(&f, 1000), NO_REG));
    u32 var = fix_emit_rows(&f, 1, regs, NULL);
    struct run_devices devices = open_devices(&f, others, 2);
    f.settings.device = DEVICE_HYBRID;
    f.settings.hybrid_share = 30;
    assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
    check_shared(&f, &devices, 3);
    assert_int_equal(f.x.vars[var].rows, ROWS - 1001);
    for (i64 i = 0; i < ROWS - 1001; i += 997) {
        assert_int_equal(fix_i64_at(&f, var, 0, i), 1001 + i);
    }
    assert_int_equal(f.x.metrics[0].rows_out, ROWS - 1001);
    fix_fini(&f);
    close_devices(others, 2);
}

static void test_faults(void **state) {
    UNUSED(state);
    struct fix f;
    struct other others[1];
    fix_init(&f, 2);
    u32 t = make_table(&f, 10);
    fix_pipe(&f, SOURCE_TABLE, t, 2);
    u16 n = fix_load(&f, 0, KIND_I64);
    u16 by = fix_scalar(&f, OP_SUB_I64, n, fix_i64(&f, 30000), NO_REG);
    u16 regs[1] = {fix_scalar(&f, OP_DIV_I64, n, by, NO_REG)};
    (void)fix_emit_rows(&f, 1, regs, NULL);
    assert_int_equal(fix_try(&f), ERR_DIVISION_BY_ZERO);
    i32 position = f.err.position;
    struct run_devices devices = open_devices(&f, others, 1);
    f.settings.device = DEVICE_HYBRID;
    for (i64 percent = 10; percent < 100; percent += 40) {
        f.settings.hybrid_share = percent;
        assert_int_equal(fix_try_on(&f, &devices), ERR_DIVISION_BY_ZERO);
        assert_int_equal(f.err.position, position);
    }
    fix_fini(&f);
    close_devices(others, 1);
}

/* Who has no memory leaves its share to another; any other failure is the statement's. */
static void test_failures(void **state) {
    UNUSED(state);
    struct fix f;
    struct other others[2];
    fix_init(&f, 2);
    u32 var = sums(&f, 10, 64);
    fix_run(&f);
    u64 expected = digest(&f, var);
    struct run_devices devices = open_devices(&f, others, 2);
    f.settings.device = DEVICE_HYBRID;
    f.settings.hybrid_share = 30;
    for (u32 i = 0; i < 2; i++) {
        others[i].fails = ERR_DEVICE_MEMORY;
        assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
        assert_true(digest(&f, var) == expected);
        assert_int_equal(f.x.metrics[0].shares[i].device_no, 0);
        assert_non_null(strstr(f.x.metrics[0].how, "had no memory"));
    }
    others[0].fails = ERR_GPU;
    assert_int_equal(fix_try_on(&f, &devices), ERR_GPU);
    assert_string_equal(f.err.message, "as told");
    others[0].fails = others[1].fails = ERR_OK;
    atomic_store(&f.cancel, 1);
    assert_int_equal(fix_try_on(&f, &devices), ERR_CANCELLED);
    atomic_store(&f.cancel, 0);
    assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
    assert_true(digest(&f, var) == expected);
    fix_fini(&f);
    close_devices(others, 2);
}

/* The n-th reservation fails: an error that says so, or the right groups; nothing is left behind. */
static void test_memory(void **state) {
    UNUSED(state);
    struct fix f;
    struct other others[1];
    fix_init(&f, 2);
    u32 var = sums(&f, TABLET_SHIFT, 64);
    fix_run(&f);
    u64 expected = digest(&f, var);
    struct run_devices devices = open_devices(&f, others, 1);
    f.settings.device = DEVICE_HYBRID;
    f.settings.hybrid_share = 50;
    bool reached = true;
    for (i64 n = 1; reached; n += 1 + n / 16) {
        fix_end(&f);
        f.arena.refused_bytes = 0;
        memory_fail_at(n);
        wf_status status = fix_try_on(&f, &devices);
        reached = memory_fail_at(0) >= n;
        assert_true(status == ERR_OK || (reached && status == ERR_OUT_OF_MEMORY));
        assert_true(status || digest(&f, var) == expected);
    }
    fix_fini(&f);
    close_devices(others, 1);
}

/* --- by throughput --- */

static f64 host_ns = 1e8, other_ns = 1e8;

static f64 estimate(f64 ns, const struct exec *x) {
    struct row_span span = exec_span(x, ROWS);
    return 1000 + ns * (f64)(span.end - span.first) / ROWS;
}

static f64 host_estimate(struct device *dev, struct exec *x, const struct step *step,
                         const struct expected *vars) {
    UNUSED(dev);
    UNUSED(vars);
    return step->kind == STEP_PIPELINE && step->pipeline->source.kind == SOURCE_TABLE
               ? estimate(host_ns, x)
               : 1;
}

static f64 other_estimate(struct device *dev, struct exec *x, const struct step *step,
                          const struct expected *vars) {
    UNUSED(dev);
    UNUSED(step);
    UNUSED(vars);
    return estimate(other_ns, x);
}

static void test_throughput(void **state) {
    UNUSED(state);
    struct fix f;
    struct other others[1];
    fix_init(&f, 2);
    u32 var = sums(&f, 10, 3);
    fix_run(&f);
    u64 expected = digest(&f, var);
    struct run_devices devices = open_devices(&f, others, 1);
    f.cpu->estimate_ns = host_estimate;
    f.cpu->rates = others[0].device.rates = NULL; /* this machine's do not matter */
    others[0].device.estimate_ns = other_estimate;
    f.settings.device = DEVICE_HYBRID;
    static const f64 cases[][2] = {{1e8, 1e8}, {3e8, 1e8}, {1e8, 4e8}};
    for (u32 i = 0; i < 3; i++) {
        host_ns = cases[i][0];
        other_ns = cases[i][1];
        assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
        assert_true(digest(&f, var) == expected);
        check_shared(&f, &devices, 2);
        f64 own = (f64)f.x.metrics[0].shares[1].rows_in / ROWS;
        assert_true(fabs(own - other_ns / (host_ns + other_ns)) < 0.02);
    }
    /* Where one is so much faster that the other hardly helps, and where all is quick. */
    host_ns = 1e8;
    other_ns = 1e6;
    assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
    assert_int_equal(f.x.metrics[0].share_count, 0);
    assert_int_equal(f.x.metrics[0].device_no, 1);
    host_ns = other_ns = 5e4;
    assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
    assert_int_equal(f.x.metrics[0].share_count, 0);
    f.settings.device = DEVICE_AUTO;
    host_ns = other_ns = 1e8;
    assert_int_equal(fix_try_on(&f, &devices), ERR_OK);
    assert_int_equal(f.x.metrics[0].share_count, 0);
    fix_fini(&f);
    close_devices(others, 1);
}

/* Shares of the last run are kept while they do, so that what cards prepared stays right. */
static void test_kept(void **state) {
    UNUSED(state);
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    struct step steps[2] = {0};
    struct block block = {.step_count = 2, .steps = steps};
    const struct program program = {.block_count = 1, .blocks = &block};
    struct past *past = past_new(&arena, &program);
    assert_true(past_share(past, 1, 0) == 0 && past_share(NULL, 1, 0) == 0);
    past_shared(past, 1, 0, 0.25);
    past_shared(past, 1, 1, 0.75);
    past_shared(NULL, 1, 1, 0.75);
    assert_true(past_share(past, 1, 0) == 0.25 && past_share(past, 1, 1) == 0.75);
    assert_true(past_share(past, 0, 0) == 0);
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_borders),
        cmocka_unit_test(test_groups), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_throughput),
        cmocka_unit_test(test_kept),   cmocka_unit_test(test_possible)};
    return cmocka_run_group_tests(tests, make_data, NULL);
}

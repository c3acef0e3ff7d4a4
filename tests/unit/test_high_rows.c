/* test_high_rows.c: relations of more than 2^32 rows, of which few are there: a chunk whose pages
 * nobody touches stands before them. Parts of it, its row numbers and what is appended count in 64
 * bits; an index and a set, which number rows by 32 bits, say so. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "test_cpu_fixture.h"

#define FAR ((i64)1 << 32) /* rows that nobody reads */
enum { NEAR = 70000 };     /* behind them */

static i64 *pages;

static i64 value_at(i64 row) {
    return row * 3 + 1;
}

/* The program's execution, with the relation's rows in `var`. */
static wf_status run_high(struct fix *f, u32 var) {
    struct run_devices devices = {.count = 1, .list = {f->cpu}, .alone = "none in this test"};
    bool stale = false;
    fix_end(f);
    memset(&f->x, 0, sizeof f->x);
    f->x = (struct exec){.program = &f->program, .arena = &f->arena, .mem = &f->mem, .err = &f->err};
    f->x.pool = f->pool;
    f->x.settings = &f->settings;
    f->x.cancel = &f->cancel;
    f->open = true;
    assert_int_equal(exec_open(&f->x, &stale), ERR_OK);
    struct chunk *chunk = chunk_new(&f->x, &f->program.vars[var], 1, false);
    assert_non_null(chunk);
    chunk->rows = FAR + NEAR;
    chunk->cols[0].data = pages;
    variable_append(&f->x, var, chunk);
    return exec_run(&f->x, &devices);
}

static struct step *cut_from(struct fix *f, u32 from, u32 to, i64 offset) {
    struct step *step = fix_step(f, STEP_LIMIT);
    step->src = from;
    step->dst = to;
    step->shares = 1;
    step->offset_lit = fix_lit(f, KIND_I64, (union lit){.i64 = offset});
    return step;
}

/* A round of a recursion: what is new of the relation, a row number and a value, goes behind what there is; the next
 * one begins there. */
static void test_rounds(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    f.settings.morsel_rows = 1000;
    u32 all = fix_var(&f, VAR_ROWS, 1, NULL);
    u32 delta = fix_var(&f, VAR_ROWS, 1, NULL);
    u32 next = fix_var(&f, VAR_ROWS, 1, NULL);
    i64 from = FAR - 5;
    u32 mark = fix_lit(&f, KIND_I64, (union lit){.i64 = 0});
    cut_from(&f, all, delta, from)->mark_lit = mark + 1;
    fix_pipe(&f, SOURCE_VAR, delta, 1);
    u16 row = fix_op(&f, OP_ROWNO, KIND_I64, NO_REG, NO_REG, NO_REG, 0);
    u16 value = fix_load(&f, 0, KIND_I64);
    u16 both[2] = {row, value};
    u32 seen = fix_emit_rows(&f, 2, both, NULL);
    fix_pipe(&f, SOURCE_VAR, delta, 1);
    u16 again[1] = {fix_load(&f, 0, KIND_I64)};
    (void)fix_emit_rows(&f, 1, again, NULL);
    struct sink *sink = &f.pipe->sinks[0];
    sink->var = all;
    sink->append = 1;
    struct step *last = cut_from(&f, all, next, 0);
    last->offset_lit = mark;
    assert_int_equal(run_high(&f, all), ERR_OK);
    assert_int_equal(f.x.lits[mark].i64, FAR + NEAR);
    assert_int_equal(f.x.vars[delta].rows, NEAR + 5);
    assert_int_equal(f.x.vars[all].rows, FAR + NEAR + NEAR + 5);
    assert_int_equal(f.x.vars[next].rows, NEAR + 5);
    i64 sum = 0, rows = 0;
    for (i64 i = 0; i < NEAR + 5; i++) {
        i64 number = fix_i64_at(&f, seen, 0, i);
        assert_true(number >= 0 && number < NEAR + 5);
        assert_int_equal(fix_i64_at(&f, seen, 1, i), value_at(from + number));
        sum += fix_i64_at(&f, next, 0, i);
        rows += value_at(from + i);
    }
    assert_int_equal(sum, rows);
    fix_fini(&f);
}

/* Whole, the rows behind 2^32 are found by their numbers. */
static void test_numbers(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    u32 all = fix_var(&f, VAR_ROWS, 1, NULL);
    u32 cut = fix_var(&f, VAR_ROWS, 1, NULL);
    struct step *step = fix_step(&f, STEP_LIMIT); /* copies, as OFFSET and LIMIT of a query do */
    step->src = all;
    step->dst = cut;
    step->offset_lit = fix_lit(&f, KIND_I64, (union lit){.i64 = FAR + 7});
    step->limit = 9;
    assert_int_equal(run_high(&f, all), ERR_OK);
    assert_int_equal(f.x.vars[cut].rows, 9);
    for (i64 i = 0; i < 9; i++) {
        assert_int_equal(fix_i64_at(&f, cut, 0, i), value_at(FAR + 7 + i));
    }
    fix_fini(&f);
}

/* What numbers rows by 32 bits refuses them by name, before it reads one. */
static void test_limits(void **state) {
    UNUSED(state);
    static const char *const says[] = {"an index over 2^32 rows or more", "an index over 2^32 rows or more",
                                       "a set of 2^32 rows or more"};
    for (i32 form = 0; form < 3; form++) {
        struct fix f;
        fix_init(&f, 2);
        u32 all = fix_var(&f, VAR_ROWS, 1, NULL);
        u32 index = fix_var(&f, VAR_INDEX, 0, NULL);
        f.program.vars[index].rows_var = all;
        f.program.vars[index].set = form == 2;
        struct step *step = fix_step(&f, STEP_BUILD);
        step->src = all;
        step->dst = index;
        step->grow = form == 1;
        step->key_range = (struct range){.lo = 0, .hi = (i128)4 * (FAR + NEAR)};
        assert_int_equal(run_high(&f, all), ERR_PROGRAM_LIMIT);
        assert_string_equal(error_sqlstate(f.err.code), "54000");
        assert_string_equal(f.err.message, says[form]);
        fix_fini(&f);
    }
}

int main(void) {
    i64 bytes = (FAR + NEAR) * (i64)sizeof *pages + BUFFER_PAD;
    void *got = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
        printf("no address space for %lld bytes: nothing was tested\n", (long long)bytes);
        return 0;
    }
    pages = got;
    for (i64 i = FAR - 5; i < FAR + NEAR; i++) {
        pages[i] = value_at(i);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_limits)};
    i32 failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)munmap(got, (size_t)bytes);
    return failed;
}

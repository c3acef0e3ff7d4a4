/* test_high_rows.c: relations of more than 2^32 rows, of which few are there: a chunk whose pages
 * nobody touches stands before them. Parts of it, its row numbers and what is appended count in 64
 * bits; an index, which numbers rows by 32 bits, becomes a chain, and a set has no numbers. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

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

/* --- indexes --- */

enum { ASKED = 4 };
static const i64 asked_rows[ASKED] = {FAR - 5, FAR, FAR + 1, FAR + NEAR - 1};

/* A program whose first step builds an index over `all`, of two columns that are the same. */
struct indexed {
    struct fix f;
    u32 all, index, asked;
};

static struct step *open_indexed(struct indexed *t) {
    struct fix *f = &t->f;
    fix_init(f, 2);
    t->all = fix_var(f, VAR_ROWS, 2, NULL);
    t->index = fix_var(f, VAR_INDEX, 0, NULL);
    t->asked = fix_var(f, VAR_ROWS, 1, NULL);
    f->program.vars[t->index].rows_var = t->all;
    struct step *step = fix_step(f, STEP_BUILD);
    step->src = t->all;
    step->dst = t->index;
    step->key_range = (struct range){.lo = 0, .hi = (i128)4 * (FAR + NEAR)};
    return step;
}

static void put_rows(struct indexed *t, b8 *nulls) {
    struct fix *f = &t->f;
    struct chunk *chunk = chunk_new(&f->x, &f->program.vars[t->all], 1, false);
    assert_non_null(chunk);
    chunk->rows = FAR + NEAR;
    chunk->cols[0].data = chunk->cols[1].data = pages;
    chunk->cols[0].nulls = nulls;
    variable_append(&f->x, t->all, chunk);
    chunk = chunk_new(&f->x, &f->program.vars[t->asked], ASKED + 1, false);
    assert_non_null(chunk);
    for (i64 i = 0; i < ASKED; i++) {
        ((i64 *)chunk->cols[0].data)[i] = value_at(asked_rows[i]);
    }
    ((i64 *)chunk->cols[0].data)[ASKED] = value_at(FAR) + 1; /* nobody has it */
    variable_append(&f->x, t->asked, chunk);
}

static void run_steps(struct fix *f, u32 from) {
    for (u32 s = from; s < f->block.step_count; s++) {
        wf_status status = f->cpu->run(f->cpu, &f->x, s, &f->block.steps[s]);
        if (status) {
            fail_msg("%s: %s", error_sqlstate(status), f->err.message);
        }
    }
}

/* A pipeline that looks the keys up: rows of what it finds, and what is there. */
static u32 look_up(struct indexed *t, u16 code) {
    struct fix *f = &t->f;
    fix_pipe(f, SOURCE_VAR, t->asked, 1);
    u16 key = fix_load(f, 0, KIND_I64);
    u16 row;
    if (code == OP_MEET) {
        u16 run = fix_op(f, OP_RUN, KIND_I64, key, NO_REG, NO_REG, t->index);
        u16 same = fix_op(f, OP_RUN, KIND_I64, key, NO_REG, NO_REG, t->index);
        row = fix_op(f, OP_MEET, KIND_I64, run, same, NO_REG, 0);
    } else {
        row = fix_op(f, code, KIND_I64, key, NO_REG, NO_REG, t->index);
    }
    u16 value = code == OP_PROBE && f->program.vars[t->index].set
                    ? key
                    : fix_op(f, OP_LOADV, KIND_I64, row, (u16)t->all, NO_REG, 0);
    const u16 both[2] = {row, value};
    return fix_emit_rows(f, 2, both, NULL);
}

static void check_found(struct indexed *t, u32 seen, bool rows) {
    assert_int_equal(t->f.x.vars[seen].rows, ASKED);
    for (i64 i = 0; i < ASKED; i++) {
        assert_int_equal(fix_i64_at(&t->f, seen, 0, i), rows ? asked_rows[i] : 0);
        assert_int_equal(fix_i64_at(&t->f, seen, 1, i), value_at(asked_rows[i]));
    }
}

/* An index that grew over rows without a key gets those behind 2^32: a part of their own. */
static void test_grown(void **state) {
    UNUSED(state);
    struct indexed t;
    struct step *build = open_indexed(&t);
    build->grow = 1;
    u32 matched = look_up(&t, OP_MATCH), probed = look_up(&t, OP_PROBE), met = look_up(&t, OP_MEET);
    index_rows_limit(FAR - 5);
    fix_open(&t.f);
    assert_int_equal(t.f.cpu->run(t.f.cpu, &t.f.x, 0, build), ERR_OK);
    variable_reset(&t.f.x.vars[t.all]);
    put_rows(&t, NULL);
    struct index *index = t.f.x.vars[t.index].index;
    index->grown_rows = FAR - 5;
    assert_int_equal(t.f.cpu->run(t.f.cpu, &t.f.x, 0, build), ERR_OK);
    assert_int_equal(index->form, INDEX_CHAIN);
    assert_int_equal(index->part_count, 2);
    assert_int_equal(index->parts[1].base, FAR - 5);
    index->apart = APART_YES; /* or all rows would be looked at */
    run_steps(&t.f, 1);
    check_found(&t, matched, true);
    check_found(&t, probed, true);
    check_found(&t, met, true);
    index_rows_limit(0);
    fix_fini(&t.f);
}

/* 2^32 flags that are all 1, of which a few pages are there. */
static b8 *flags_new(i64 bytes) {
    enum { PIECE = 1 << 21 };
    u8 *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int ones = memfd_create("ones", 0);
    assert_true(at != MAP_FAILED && ones >= 0 && ftruncate(ones, PIECE) == 0);
    for (i64 i = 0; i < FAR; i += PIECE) {
        assert_true(mmap(at + i, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ones, 0) !=
                    MAP_FAILED);
    }
    memset(at, 1, PIECE);
    close(ones);
    return at;
}

/* All rows are looked at: HIGH_ROWS=1, three minutes. */
static void test_all_rows(void **state) {
    UNUSED(state);
    if (!getenv("HIGH_ROWS")) {
        return;
    }
    b8 *nulls = flags_new(FAR + NEAR);
    memset(nulls + FAR - 5, 0, 5); /* ... in every piece: rows of another key */
    i64 repeats = FAR >> 21;
    for (i32 form = 0; form < 3; form++) {
        struct indexed t;
        struct step *build = open_indexed(&t);
        build->grow = form == 1;
        t.f.program.vars[t.index].set = form == 2;
        u32 seen = look_up(&t, form == 2 ? OP_PROBE : OP_MATCH);
        index_rows_limit(INDEX_ROWS_MOST);
        fix_open(&t.f);
        put_rows(&t, nulls);
        run_steps(&t.f, 0);
        const struct index *index = t.f.x.vars[t.index].index;
        assert_int_equal(index->form, form == 2 ? INDEX_HASH : INDEX_CHAIN);
        assert_true(form == 2 || index->parts[1].base == INDEX_ROWS_MOST);
        assert_true(form || index->row_count == 5 * repeats + NEAR);
        check_found(&t, seen, form < 2);
        index_rows_limit(0);
        fix_fini(&t.f);
    }
    (void)munmap(nulls, (size_t)(FAR + NEAR));
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
                                       cmocka_unit_test(test_grown), cmocka_unit_test(test_all_rows)};
    i32 failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)munmap(got, (size_t)bytes);
    return failed;
}

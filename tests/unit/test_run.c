/* test_run.c: the runtime: guards, values, sorting, limits, tables by code, interners, errors,
 * devices.
 *
 * Programs are built by hand; what a step leaves behind is compared with plain loops. */
#include "test_cpu_fixture.h"

#include "codes/op.h"
#include "run/run_int.h"

#include <math.h>

enum { ROWS = 3000 };

static i32 id[ROWS];
static i64 key[ROWS];
static b8 key_null[ROWS];
static f64 real[ROWS];
static str text[ROWS];
static char text_bytes[ROWS][16];

static int make_data(void **state) {
    UNUSED(state);
    u64 seed = 3;
    for (i64 i = 0; i < ROWS; i++) {
        u64 r = fix_random(&seed);
        id[i] = (i32)i;
        key[i] = (i64)(r % 97) - 40;
        key_null[i] = (r >> 30) % 9 == 0;
        real[i] = (r >> 8) % 50 == 0 ? (f64)NAN : (f64)((i64)(r >> 8) % 4000 - 2000) / 4;
        snprintf(text_bytes[i], sizeof text_bytes[i], "%s%llu", (r >> 50) % 2 ? "long prefix" : "x",
                 (r >> 20) % 300);
        text[i] = str_from(sv_from(text_bytes[i]));
    }
    return 0;
}

static u32 run_table(struct fix *f) {
    const struct fix_col cols[4] = {{"id", type_of(TYPE_INTEGER), id, NULL},
                                    {"key", type_of(TYPE_BIGINT), key, key_null},
                                    {"real", type_of(TYPE_DOUBLE), real, NULL},
                                    {"text", type_of(TYPE_TEXT), text, NULL}};
    return fix_make_table(f, 10, false, ROWS, 4, cols);
}

/* All four columns as rows. */
static u32 all_rows(struct fix *f) {
    u32 t = run_table(f);
    fix_pipe(f, SOURCE_TABLE, t, 4);
    u16 regs[4] = {fix_load(f, 0, KIND_I32), fix_load(f, 1, KIND_I64), fix_load(f, 2, KIND_F64),
                   fix_load(f, 3, KIND_STR)};
    u16 nulls[4] = {NO_REG, fix_op(f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, 1), NO_REG,
                    NO_REG};
    return fix_emit_rows(f, 4, regs, nulls);
}

static int cmp_value(const struct sort_key *k, i64 a, i64 b) {
    if (k->col == 1 && (key_null[a] || key_null[b])) {
        if (key_null[a] && key_null[b]) {
            return 0;
        }
        return key_null[a] == k->nulls_first ? -1 : 1;
    }
    int c = 0;
    if (k->col == 0) {
        c = id[a] < id[b] ? -1 : id[a] > id[b];
    } else if (k->col == 1) {
        c = key[a] < key[b] ? -1 : key[a] > key[b];
    } else if (k->col == 2) {
        bool na = isnan(real[a]);
        bool nb = isnan(real[b]);
        c = na || nb ? na - nb : real[a] < real[b] ? -1 : real[a] > real[b];
    } else {
        c = sv_cmp(sv_of(text[a]), sv_of(text[b]));
        c = c < 0 ? -1 : c > 0;
    }
    return k->descending ? -c : c;
}

static void check_sorted(struct fix *f, u32 var, const struct sort_key *keys, u32 count, i64 rows) {
    assert_int_equal(f->x.vars[var].rows, rows);
    static b8 seen[ROWS];
    memset(seen, 0, sizeof seen);
    for (i64 i = 0; i < rows; i++) {
        i64 now = fix_i32_at(f, var, 0, i);
        assert_false(seen[now]);
        seen[now] = 1;
        if (i == 0) {
            continue;
        }
        i64 before = fix_i32_at(f, var, 0, i - 1);
        int c = 0;
        for (u32 k = 0; k < count && c == 0; k++) {
            c = cmp_value(&keys[k], before, now);
        }
        assert_true(c < 0 || (c == 0 && before < now));
    }
    for (i64 i = 0; i < ROWS && rows < ROWS; i++) { /* nobody left out precedes the last */
        int c = 0;
        i64 last = fix_i32_at(f, var, 0, rows - 1);
        for (u32 k = 0; k < count && c == 0 && !seen[i]; k++) {
            c = cmp_value(&keys[k], last, i);
        }
        assert_true(seen[i] || c <= 0);
    }
}

static void sort_by(u32 count, const struct sort_key *keys, i64 limit) {
    struct fix f;
    fix_init(&f, 2);
    f.settings.morsel_rows = 500;
    u32 var = all_rows(&f);
    struct step *step = fix_step(&f, STEP_SORT);
    step->src = var;
    step->key_count = count;
    step->keys = NEW_ARRAY(&f.arena, struct sort_key, count);
    memcpy(step->keys, keys, sizeof(struct sort_key) * count);
    step->limit = limit;
    fix_run(&f);
    check_sorted(&f, var, keys, count, limit < 0 ? ROWS : limit);
    fix_fini(&f);
}

static void test_sort(void **state) {
    UNUSED(state);
    for (u32 col = 0; col < 4; col++) {
        for (b8 variant = 0; variant < 4; variant++) {
            struct sort_key one = {col, variant & 1, variant >> 1};
            sort_by(1, &one, -1);
            sort_by(1, &one, 10);
            sort_by(1, &one, 2000);
            struct sort_key two[2] = {{1, variant & 1, variant >> 1}, {col, variant >> 1, 0}};
            sort_by(2, two, -1);
            struct sort_key three[3] = {{1, 0, 0}, {3, variant & 1, 0}, {2, 0, variant >> 1}};
            sort_by(3, three, variant ? 50 : -1);
        }
    }
}

static void test_answer_and_limit(void **state) {
    UNUSED(state);
    static const i64 bounds[][2] = {{0, -1}, {0, 0}, {5, 10}, {2990, 100}, {5000, 3}, {700, 1500}};
    for (i64 b = 0; b < COUNT_OF(bounds); b++) {
        struct fix f;
        fix_init(&f, 2);
        f.settings.morsel_rows = 300;
        u32 rows = all_rows(&f);
        f.program.vars[rows].last_use = 1;
        u32 cut = f.program.var_count++;
        f.program.vars[cut] = f.program.vars[rows];
        f.program.vars[cut].last_use = NO_VAR;
        struct step *step = fix_step(&f, STEP_LIMIT);
        step->src = rows;
        step->dst = cut;
        step->offset_lit = fix_lit(&f, KIND_I64, (union lit){.i64 = bounds[b][0]});
        step->limit = bounds[b][1];
        fix_result(&f, cut);
        f.block.steps[f.block.step_count - 1].offset = 2;
        fix_run(&f);
        struct answer answer;
        assert_int_equal(exec_answer(&f.x, &answer), ERR_OK);
        i64 want = MAX_OF(ROWS - bounds[b][0], 0);
        want = bounds[b][1] < 0 ? want : MIN_OF(want, bounds[b][1]);
        want = MAX_OF(want - 2, 0);
        assert_int_equal(answer.rows, want);
        i64 at = bounds[b][0] + 2;
        for (i64 s = 0; s < answer.slice_count; s++) {
            const struct slice *slice = &answer.slices[s];
            for (i64 i = slice->first; i < slice->first + slice->rows; i++) {
                assert_int_equal(((const i32 *)slice->chunk->cols[0].data)[i], at++);
            }
        }
        assert_int_equal(at, bounds[b][0] + 2 + want);
        fix_fini(&f);
    }
}

static void test_negative_bounds(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    u32 rows = all_rows(&f);
    fix_result(&f, rows);
    struct step *step = &f.block.steps[f.block.step_count - 1];
    step->limit_lit = fix_lit(&f, KIND_I64, (union lit){.i64 = -1});
    fix_run(&f);
    struct answer answer;
    assert_int_equal(exec_answer(&f.x, &answer), ERR_INVALID_LIMIT);
    error_reset(&f.err);
    step->limit_lit = NO_LIT;
    step->offset_lit = fix_lit(&f, KIND_I32, (union lit){.i32 = -5});
    fix_run(&f);
    assert_int_equal(exec_answer(&f.x, &answer), ERR_INVALID_OFFSET);
    fix_fini(&f);
}

static void test_values(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    const u8 kinds[2] = {KIND_I64, KIND_STR};
    u32 var = fix_var(&f, VAR_ROWS, 2, kinds);
    u32 lits[6] = {fix_lit(&f, KIND_I64, (union lit){.i64 = 7}),
                   fix_lit(&f, KIND_STR, (union lit){.str = str_from(SV("seven"))}),
                   NO_LIT,
                   fix_lit(&f, KIND_STR, (union lit){.str = str_from(SV("none"))}),
                   fix_lit(&f, KIND_I64, (union lit){.i64 = -1}),
                   NO_LIT};
    f.program.vars[var].const_rows = 3;
    f.program.vars[var].const_lits = lits;
    fix_pipe(&f, SOURCE_VAR, var, 2);
    u16 regs[2] = {fix_load(&f, 0, KIND_I64), fix_load(&f, 1, KIND_STR)};
    u16 nulls[2] = {fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, 0),
                    fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, 1)};
    u32 out = fix_emit_rows(&f, 2, regs, nulls);
    fix_run(&f);
    bool is_null = true;
    assert_int_equal(*(const i64 *)fix_at(&f, out, 0, 0, &is_null), 7);
    assert_false(is_null);
    fix_at(&f, out, 0, 1, &is_null);
    assert_true(is_null);
    assert_true(sv_eq(sv_of(*(const str *)fix_at(&f, out, 1, 1, &is_null)), SV("none")));
    fix_at(&f, out, 1, 2, &is_null);
    assert_true(is_null);
    fix_fini(&f);
}

static void test_one_row(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    fix_pipe(&f, SOURCE_ONE, 0, 0);
    u16 sum = fix_scalar(&f, OP_ADDX_I64, fix_i64(&f, 40), fix_i64(&f, 2), NO_REG);
    u32 var = fix_emit_rows(&f, 1, &sum, NULL);
    fix_run(&f);
    assert_int_equal(f.x.vars[var].rows, 1);
    assert_int_equal(fix_i64_at(&f, var, 0, 0), 42);
    fix_fini(&f);
}

/* length and parse of every dictionary entry, then looked up by code; faults raise only where used.
 */
static void lookup(bool use_bad, wf_status want) {
    enum { MANY = 2000 };
    static str words[MANY];
    static const char *const all[] = {"12", "7", "345", "oops"};
    for (i64 i = 0; i < MANY; i++) {
        words[i] = str_from(sv_from(all[i % 4]));
    }
    struct fix f;
    fix_init(&f, 2);
    f.settings.vector_rows = 3;
    f.settings.morsel_rows = 100;
    const struct fix_col cols[1] = {{"w", type_of(TYPE_TEXT), words, NULL}};
    u32 t = fix_make_table(&f, 9, false, MANY, 1, cols);
    f.program.dicts[f.program.dict_count++] = (struct dict_ref){.table = t, .col = 0};
    assert_true(f.versions[t]->stats[0].all_dict);
    u32 value = fix_var(&f, VAR_LUT, 0, NULL);
    u32 fault = fix_var(&f, VAR_LUT, 0, NULL);
    u32 upper = fix_var(&f, VAR_LUT, 0, NULL);
    f.program.vars[value].lut_kind = KIND_I64;
    f.program.vars[fault].lut_kind = KIND_B8;
    f.program.vars[upper].lut_kind = KIND_STR;
    fix_pipe(&f, SOURCE_DICT, 0, 1);
    u16 s = fix_load(&f, 0, KIND_STR);
    u16 parsed = fix_scalar(&f, OP_PARSE_INT, s, NO_REG, NO_REG);
    u16 twice = fix_scalar(&f, OP_CONCAT_STR, s, s, NO_REG);
    const u16 regs[2] = {parsed, twice};
    const u32 vars[2] = {value, upper};
    for (u32 i = 0; i < 2; i++) {
        struct sink *sink = &f.pipe->sinks[f.pipe->sink_count];
        *sink = (struct sink){.kind = SINK_LUT, .var = vars[i], .limit = -1, .key = NO_REG};
        sink->col_count = 1;
        sink->cols = NEW(&f.arena, struct sink_col);
        sink->cols[0].reg = regs[i];
        sink->cols[0].null_reg = NO_REG;
        sink->null_var = NO_VAR;
        sink->fault_var = i == 0 ? fault : NO_VAR;
        fix_op(&f, OP_EMIT, KIND_NONE, NO_REG, NO_REG, NO_REG, f.pipe->sink_count++);
    }
    fix_pipe(&f, SOURCE_TABLE, t, 1);
    u16 code = fix_load(&f, 0, KIND_I32);
    f.pipe->regs[code].dict = 1;
    u16 row = fix_op(&f, OP_ROWNO, KIND_I64, NO_REG, NO_REG, NO_REG, 0);
    u16 four = fix_scalar(&f, OP_MOD_I64, row, fix_i64(&f, 4), NO_REG);
    fix_filter(&f, fix_scalar(&f, OP_LT_I64, four, fix_i64(&f, use_bad ? 4 : 3), NO_REG));
    u16 number = fix_op(&f, OP_LUT, KIND_I64, code, NO_REG, NO_REG, value);
    u16 bad = fix_op(&f, OP_LUT, KIND_B8, code, NO_REG, NO_REG, fault);
    u16 doubled = fix_op(&f, OP_LUT, KIND_STR, code, NO_REG, NO_REG, upper);
    fix_scalar(&f, OP_RAISE_B8, bad, NO_REG, NO_REG);
    u16 out[2] = {number, doubled};
    u32 var = fix_emit_rows(&f, 2, out, NULL);
    for (i64 n = 1; want == ERR_OUT_OF_MEMORY; n++) { /* each reservation refused once */
        fix_end(&f);
        memory_fail_at(n);
        wf_status status = fix_try(&f);
        if (memory_fail_at(0) < n) {
            want = status;
        } else {
            assert_true(!status || status == want);
        }
        f.arena.refused_bytes = 0;
    }
    fix_end(&f);
    assert_int_equal(fix_try(&f), want);
    if (!want) {
        assert_int_equal(f.x.vars[var].rows, MANY / 4 * 3);
        assert_int_equal(fix_i64_at(&f, var, 0, 0), 12);
        assert_int_equal(fix_i64_at(&f, var, 0, 4), 7);
        assert_true(sv_eq(sv_of(*(const str *)fix_at(&f, var, 1, 5, NULL)), SV("345345")));
    }
    fix_fini(&f);
}

static void test_tables_by_code(void **state) {
    UNUSED(state);
    lookup(false, ERR_OK);
    lookup(true, ERR_INVALID_TEXT);
    lookup(false, ERR_OUT_OF_MEMORY);
}

/* Text to numbers, pairs of numbers to numbers, and back; the interned dictionary then sorts the
 * rows. */
static void test_interners(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 4);
    f.settings.morsel_rows = 50;
    u32 t = run_table(&f);
    u32 strings = fix_var(&f, VAR_INTERN, 0, NULL);
    u32 pairs = fix_var(&f, VAR_INTERN, 0, NULL);
    f.program.dicts[f.program.dict_count++] = (struct dict_ref){.table = NO_VAR, .values = strings};
    fix_pipe(&f, SOURCE_TABLE, t, 4);
    u16 i = fix_load(&f, 0, KIND_I32);
    u16 s = fix_load(&f, 3, KIND_STR);
    u16 number = fix_op(&f, OP_INTERN, KIND_I32, s, 0, NO_REG, strings);
    u16 found = fix_op(&f, OP_INTERN, KIND_I32, s, 1, NO_REG, strings);
    u16 wide = fix_scalar(&f, OP_I64_I32, number, NO_REG, NO_REG);
    u16 k = fix_load(&f, 1, KIND_I64);
    u16 pair = fix_op(&f, OP_INTERN2, KIND_I32, wide, k, NO_REG, pairs);
    u16 a = fix_op(&f, OP_UNPAIR, KIND_I64, pair, 0, NO_REG, pairs);
    u16 b = fix_op(&f, OP_UNPAIR, KIND_I64, pair, 1, NO_REG, pairs);
    u16 regs[7] = {i, number, found, a, b, k, pair};
    u32 var = fix_emit_rows(&f, 7, regs, NULL);
    f.program.vars[var].dicts = NEW_ARRAY(&f.arena, u32, 7);
    f.program.vars[var].dicts[1] = 1;
    struct step *sort = fix_step(&f, STEP_SORT);
    struct sort_key by_text = {.col = 1};
    sort->src = var;
    sort->key_count = 1;
    sort->keys = &by_text;
    u32 rank = fix_var(&f, VAR_LUT, 0, NULL);
    u32 code_at = fix_var(&f, VAR_LUT, 0, NULL);
    struct step *ranks = fix_step(&f, STEP_RANK);
    ranks->dict = 0;
    ranks->dst = rank;
    ranks->dst2 = code_at;
    fix_run(&f);
    struct sv before = SV("");
    for (i64 r = 0; r < ROWS; r++) {
        i32 code = fix_i32_at(&f, var, 1, r);
        struct sv now = dict_get(f.x.vars[strings].dict, code);
        assert_true(sv_eq(now, sv_of(text[fix_i32_at(&f, var, 0, r)])));
        assert_true(sv_cmp(before, now) <= 0);
        assert_int_equal(fix_i32_at(&f, var, 2, r), code);
        assert_int_equal(fix_i64_at(&f, var, 3, r), code);
        assert_int_equal(fix_i64_at(&f, var, 4, r), fix_i64_at(&f, var, 5, r));
        before = now;
    }
    i32 len = dict_len(f.x.vars[strings].dict);
    assert_int_equal(f.x.vars[rank].lut_len, len);
    for (i32 c = 0; c < len; c++) {
        i32 at = ((const i32 *)f.x.vars[rank].lut)[c];
        assert_int_equal(((const i32 *)f.x.vars[code_at].lut)[at], c);
    }
    fix_fini(&f);
}

static void test_rounding_sums(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    fix_pipe(&f, SOURCE_ONE, 0, 0);
    u32 lit = fix_lit(&f, KIND_I32, (union lit){.i32 = -4});
    u16 low = fix_reg(&f, KIND_I64);
    u16 high = fix_reg(&f, KIND_I64);
    u16 one = fix_i64(&f, 24);
    u16 zero = fix_i64(&f, 0);
    fix_op_to(&f, OP_ADD_I64, low, one, zero, NO_REG, 0);
    fix_op_to(&f, OP_ADD_I64, high, zero, fix_i64(&f, 3), NO_REG, 0);
    u16 sum = fix_op(&f, OP_FROUND, KIND_F64, low, 2, 32, lit);
    u32 var = fix_emit_rows(&f, 1, &sum, NULL);
    fix_run(&f);
    assert_true(*(const f64 *)fix_at(&f, var, 0, 0, NULL) == 1.5 + 3.0 * 268435456.0);
    fix_fini(&f);
}

static void test_guards(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    u32 t = run_table(&f);
    struct range ids = range_union(range_of_value(0), range_of_value(ROWS - 1));
    struct guard cases[] = {
        {.table = t, .col = 0, .range = ids, .no_nulls = 1},
        {.table = t, .col = 0, .range = range_of_value(5)},
        {.table = t, .col = 1, .range = range_of_type(type_of(TYPE_BIGINT)), .no_nulls = 1},
        {.table = t, .col = 0, .range = ids, .max_rows = ROWS},
        {.table = t, .col = 0, .range = ids, .max_rows = ROWS - 1},
        {.table = t, .col = 1, .range = range_of_type(type_of(TYPE_BIGINT)), .unique = 1}};
    const bool stale[] = {false, true, true, false, true, true};
    for (i64 i = 0; i < COUNT_OF(cases); i++) {
        f.program.guards[0] = cases[i];
        f.program.guard_count = 1;
        memset(&f.x, 0, sizeof f.x);
        f.x.program = &f.program;
        f.x.arena = &f.arena;
        f.x.mem = &f.mem;
        f.x.err = &f.err;
        f.x.tables = f.tables;
        f.x.versions = f.versions;
        f.x.settings = &f.settings;
        bool got = false;
        assert_int_equal(exec_open(&f.x, &got), ERR_OK);
        assert_int_equal(got, stale[i]);
        exec_close(&f.x);
    }
    fix_fini(&f);
}

static void test_cancel(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    u32 rows = all_rows(&f);
    /* Every row matches every row: nine million pairs, counted by nobody. */
    u32 index = fix_var(&f, VAR_INDEX, 0, NULL);
    fix_pipe(&f, SOURCE_VAR, rows, 4);
    u16 zero = fix_scalar(&f, OP_MUL_I64, fix_load(&f, 1, KIND_I64), fix_i64(&f, 0), NO_REG);
    u32 flat = fix_emit_rows(&f, 1, &zero, NULL);
    struct step *build = fix_step(&f, STEP_BUILD);
    build->src = flat;
    build->dst = index;
    fix_pipe(&f, SOURCE_VAR, flat, 1);
    u16 k = fix_load(&f, 0, KIND_I64);
    u16 r1 = fix_op(&f, OP_MATCH, KIND_I64, k, NO_REG, NO_REG, index);
    fix_op(&f, OP_MATCH, KIND_I64, k, NO_REG, NO_REG, index);
    u8 word = WORD_ADD;
    fix_emit_agg(&f, NO_REG, 0, 1, &word, &r1);
    f.x.deadline_ns = 0;
    atomic_store(&f.cancel, 1);
    assert_int_equal(fix_try(&f), ERR_CANCELLED);
    atomic_store(&f.cancel, 0);
    /* A deadline in the middle of an expansion: fix_try resets x, so set it through the first step.
     */
    fix_end(&f);
    memset(&f.x, 0, sizeof f.x);
    f.x.program = &f.program;
    f.x.arena = &f.arena;
    f.x.mem = &f.mem;
    f.x.err = &f.err;
    f.x.pool = f.pool;
    f.x.settings = &f.settings;
    f.x.tables = f.tables;
    f.x.versions = f.versions;
    f.x.cancel = &f.cancel;
    f.x.deadline_ns = clock_ns() + 50 * 1000000LL;
    bool stale = false;
    f.open = true;
    assert_int_equal(exec_open(&f.x, &stale), ERR_OK);
    struct run_devices devices = {.count = 1, .list = {f.cpu}};
    assert_int_equal(exec_run(&f.x, &devices), ERR_CANCELLED);
    fix_fini(&f);
}

/* Rows, an index, a join, groups, a sort: each reservation refused once, always 53200, nothing
 * leaks. */
static void build_everything(struct fix *f) {
    u32 rows = all_rows(f);
    fix_pipe(f, SOURCE_VAR, rows, 4);
    u16 k = fix_load(f, 1, KIND_I64);
    u16 s = fix_load(f, 3, KIND_STR);
    u16 up = fix_scalar(f, OP_UPPER_STR, s, NO_REG, NO_REG);
    u16 regs[2] = {k, up};
    u32 build_rows = fix_emit_rows(f, 2, regs, NULL);
    f->pipe->sinks[0].limit = 200;
    u32 index = fix_var(f, VAR_INDEX, 0, NULL);
    struct step *build = fix_step(f, STEP_BUILD);
    build->src = build_rows;
    build->dst = index;
    u32 strings = fix_var(f, VAR_INTERN, 0, NULL);
    fix_pipe(f, SOURCE_VAR, rows, 4);
    u16 me = fix_load(f, 1, KIND_I64);
    u16 row = fix_op(f, OP_MATCH, KIND_I64, me, NO_REG, NO_REG, index);
    u16 name = fix_op(f, OP_LOADV, KIND_STR, row, (u16)build_rows, NO_REG, 1);
    u16 code = fix_op(f, OP_INTERN, KIND_I32, name, 0, NO_REG, strings);
    u16 group = fix_scalar(f, OP_I64_I32, code, NO_REG, NO_REG);
    u16 one = fix_i64(f, 1);
    u8 word = WORD_ADD;
    u32 groups = fix_emit_agg(f, group, 64, 1, &word, &one);
    struct step *sort = fix_step(f, STEP_SORT);
    sort->src = groups;
    sort->key_count = 1;
    sort->keys = NEW(&f->arena, struct sort_key);
    sort->keys[0].col = 1;
    fix_result(f, groups);
}

static void test_memory_refusals(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    f.settings.morsel_rows = 512;
    build_everything(&f);
    fix_run(&f);
    i64 groups = f.x.vars[f.block.steps[f.block.step_count - 1].src].rows;
    assert_true(groups > 10);
    bool done = false;
    for (i64 n = 1; !done && n < 2000; n++) {
        fix_end(&f);
        memory_fail_at(n);
        wf_status status = fix_try(&f);
        i64 made = memory_fail_at(0);
        if (status) {
            assert_int_equal(status, ERR_OUT_OF_MEMORY);
        } else if (made < n) {
            done = true;
        }
        f.arena.refused_bytes = 0;
    }
    assert_true(done);
    fix_run(&f);
    assert_int_equal(f.x.vars[f.block.steps[f.block.step_count - 1].src].rows, groups);
    fix_fini(&f);
}

static void test_memory_budget(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    build_everything(&f);
    fix_run(&f);
    fix_end(&f);
    i64 base = atomic_load(&f.mem.used_bytes);
    for (i64 more = 0; more < 4 << 20; more += 150000) {
        f.mem.limit_bytes = base + more;
        wf_status status = fix_try(&f);
        assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
        fix_end(&f);
        f.arena.refused_bytes = 0;
        f.mem.limit_bytes = 0;
        base = MAX_OF(base, atomic_load(&f.mem.used_bytes));
    }
    fix_fini(&f);
}

/* A GPU that refuses what it is told to, and runs on the CPU otherwise. */
struct fake_gpu {
    struct device dev;
    struct device *cpu;
    const char *refusal;
    f64 ns;      /* estimate of a step */
    f64 sort_ns; /* of one that sorts; 0 = as others */
    i64 takes_ns;
    struct past *past;
    i32 runs;
};

static const char *fake_refuses(struct device *dev, struct exec *x, const struct step *step) {
    UNUSED(x);
    UNUSED(step);
    return ((struct fake_gpu *)dev->self)->refusal;
}

static f64 fake_estimate(struct device *dev, struct exec *x, const struct step *step,
                         const struct expected *vars) {
    UNUSED(x);
    UNUSED(vars);
    const struct fake_gpu *gpu = dev->self;
    return step->kind == STEP_SORT && gpu->sort_ns > 0 ? gpu->sort_ns : gpu->ns;
}

static wf_status fake_run(struct device *dev, struct exec *x, u32 step_no,
                          const struct step *step) {
    struct fake_gpu *gpu = dev->self;
    gpu->runs++;
    for (i64 end = clock_ns() + gpu->takes_ns; clock_ns() < end;) {
    }
    return gpu->cpu->run(gpu->cpu, x, step_no, step);
}

static wf_status fake_fetch(struct device *dev, struct exec *x, u32 var) {
    UNUSED(dev);
    UNUSED(x);
    UNUSED(var);
    return ERR_OK;
}

static wf_status run_costing(struct fix *f, struct device *gpu, i64 answer_cost) {
    fix_end(f);
    memset(&f->x, 0, sizeof f->x);
    f->x.program = &f->program;
    f->x.arena = &f->arena;
    f->x.mem = &f->mem;
    f->x.err = &f->err;
    f->x.pool = f->pool;
    f->x.settings = &f->settings;
    f->x.tables = f->tables;
    f->x.versions = f->versions;
    f->x.profiles = 1;
    f->x.past = gpu ? ((struct fake_gpu *)gpu->self)->past : NULL;
    bool stale = false;
    f->open = true;
    assert_int_equal(exec_open(&f->x, &stale), ERR_OK);
    f->x.work.answer_cost = answer_cost;
    struct run_devices devices = {
        .count = gpu ? 2 : 1, .list = {f->cpu, gpu}, .alone = "no card in this machine"};
    return exec_run(&f->x, &devices);
}

static wf_status run_on(struct fix *f, struct device *gpu) {
    return run_costing(f, gpu, 0);
}

/* An answer that is there has yet to be written or stored, where that costs something. */
static void test_share_of_answer(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 2);
    u32 rows = all_rows(&f);
    fix_result(&f, rows);
    assert_int_equal(run_on(&f, NULL), ERR_OK);
    assert_true(work_share(&f.x.work) == 1);
    assert_int_equal(run_costing(&f, NULL, 1000), ERR_OK);
    assert_true(work_share(&f.x.work) > 0 && work_share(&f.x.work) < 0.1);
    work_rows(&f.x, ROWS / 2);
    assert_true(work_share(&f.x.work) > 0.4 && work_share(&f.x.work) < 0.6);
    work_rows(&f.x, ROWS / 2);
    assert_true(work_share(&f.x.work) == 1);
    fix_fini(&f);
}

/* All rows of the table, sorted, and a device that could do both. */
static u32 open_choice(struct fix *f, struct fake_gpu *gpu) {
    static struct sort_key by_key = {.col = 1};
    fix_init(f, 1);
    u32 rows = all_rows(f);
    struct step *sort = fix_step(f, STEP_SORT);
    sort->src = rows;
    sort->key_count = 1;
    sort->keys = &by_key;
    fix_result(f, rows);
    *gpu = (struct fake_gpu){.cpu = f->cpu};
    gpu->dev = (struct device){
        .name = "gpu", .title = "GPU", .space = 1, .self = gpu, .refuses = fake_refuses};
    gpu->dev.estimate_ns = fake_estimate;
    gpu->dev.run = fake_run;
    gpu->dev.fetch = fake_fetch;
    return rows;
}

static void test_device_choice(void **state) {
    UNUSED(state);
    struct fix f;
    struct fake_gpu gpu;
    (void)open_choice(&f, &gpu);
    f.settings.device = DEVICE_GPU;
    assert_int_equal(run_on(&f, NULL), ERR_NO_DEVICE);
    assert_non_null(strstr(f.err.message, "no card in this machine"));
    gpu.refusal = "it is tired";
    assert_int_equal(run_on(&f, &gpu.dev), ERR_NOT_SUPPORTED);
    assert_non_null(strstr(f.err.message, "test cannot run on the GPU: it is tired"));
    gpu.refusal = NULL;
    assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
    assert_int_equal(gpu.runs, 2); /* the sort, too */
    assert_string_equal(f.x.metrics[0].device, "gpu");
    assert_string_equal(f.x.metrics[1].device, "gpu");
    assert_string_equal(f.x.metrics[2].device, "cpu");
    assert_string_equal(f.x.metrics[2].why, "the answer is handed out by the host");
    f.settings.device = DEVICE_AUTO;
    gpu.ns = 1e12;
    assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
    assert_string_equal(f.x.metrics[0].device, "cpu");
    gpu.ns = 1;
    assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
    assert_string_equal(f.x.metrics[0].device, "gpu");
    struct text out;
    text_init(&out, &f.arena);
    exec_print(&out, &f.x, &(struct run_devices){.count = 2, .list = {f.cpu, &gpu.dev}});
    assert_non_null(strstr(out.ptr, "estimated: cpu"));
    assert_int_equal(run_on(&f, NULL), ERR_OK);
    assert_string_equal(f.x.metrics[0].why, "no card in this machine");
    fix_fini(&f);
}

/* The sort was to follow 10^8 rows; when there are 3,000, the host is better for it. */
static void test_placed_again(void **state) {
    UNUSED(state);
    struct fix f;
    struct fake_gpu gpu;
    u32 rows = open_choice(&f, &gpu);
    f.settings.device = DEVICE_AUTO;
    gpu.ns = 1;
    gpu.sort_ns = 1e7;
    f.program.vars[rows].rows = 2500; /* lowering knows better */
    assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
    assert_string_equal(f.x.metrics[0].device, "gpu");
    assert_string_equal(f.x.metrics[1].device, "cpu");
    gpu.past = past_new(&f.arena, &f.program); /* an earlier run had them */
    past_had(gpu.past, rows, 100000000);
    assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
    assert_string_equal(f.x.metrics[1].device, "cpu");
    assert_int_equal(past_rows(gpu.past, rows), ROWS);
    fix_fini(&f);
}

/* What is estimated to be fast, and is not, is left alone after some runs. */
static void test_corrected(void **state) {
    UNUSED(state);
    struct fix f;
    struct fake_gpu gpu;
    (void)open_choice(&f, &gpu);
    f.settings.device = DEVICE_AUTO;
    gpu.past = past_new(&f.arena, &f.program);
    cpu_rates_tell(
        f.cpu, &(struct device_rates){.bytes_per_ns = 1, .probes_per_ns = 0.1, .cost_per_ns = 1});
    gpu.ns = 50000;
    gpu.sort_ns = 1e12;
    gpu.takes_ns = 3000000;
    i32 runs = 0;
    for (; runs < 40; runs++) {
        assert_int_equal(run_on(&f, &gpu.dev), ERR_OK);
        if (strcmp(f.x.metrics[0].device, "cpu") == 0) {
            break;
        }
    }
    assert_true(runs > 0 && runs < 40);
    assert_non_null(strstr(f.x.metrics[0].why, "corrected by earlier runs"));
    fix_fini(&f);
}

/* Few rows are one worker's, however many there are; the span of an index's keys costs, too. */
static void test_estimates(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 8);
    (void)fix_var(&f, VAR_ROWS, 1, NULL);
    fix_open(&f);
    cpu_rates_tell(f.cpu,
                   &(struct device_rates){.bytes_per_ns = 1, .probes_per_ns = 1, .cost_per_ns = 1});
    struct step step = {.kind = STEP_SORT};
    struct expected vars[1] = {{.rows = 2000}};
    f64 none = f.cpu->estimate_ns(f.cpu, &f.x, &step, (struct expected[1]){{0}});
    f64 few = f.cpu->estimate_ns(f.cpu, &f.x, &step, vars) - none;
    vars[0].rows = 2000000;
    f64 many = f.cpu->estimate_ns(f.cpu, &f.x, &step, vars) - none;
    assert_true(few * 1000 > many * 7 && few * 1000 < many * 9);
    step.kind = STEP_BUILD;
    vars[0].rows = 2000;
    f64 narrow = f.cpu->estimate_ns(f.cpu, &f.x, &step, vars);
    step.key_range.hi = 2000000;
    f64 wide = f.cpu->estimate_ns(f.cpu, &f.x, &step, vars);
    assert_true(wide > narrow + 20000 && wide < narrow + 200000);
    step.key_range.hi = (i128)1 << 60; /* no bitmap then */
    assert_true(fabs(f.cpu->estimate_ns(f.cpu, &f.x, &step, vars) - narrow) < 1);
    fix_fini(&f);
}

struct pair_test {
    struct pair_map *map;
    _Atomic i32 wrong;
};

static void add_pairs(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct pair_test *t = arg;
    for (i64 k = 0; k < 5000; k++) {
        i64 a = k * 7 % 1999;
        i64 b = (k + i) % 3;
        i64 number = pair_map_add(t->map, a, b);
        i64 ga = 0;
        i64 gb = 0;
        pair_map_get(t->map, number, &ga, &gb);
        if (ga != a || gb != b || pair_map_find(t->map, a, b) != number) {
            atomic_store(&t->wrong, 1);
        }
    }
}

static void test_pair_map(void **state) {
    UNUSED(state);
    struct memory mem;
    memory_init(&mem, NULL, 0, "memory");
    struct pool *pool = pool_open(4);
    struct pair_test t = {.map = pair_map_open(&mem)};
    assert_int_equal(pair_map_find(t.map, 1, 1), -1);
    pool_run(pool, 12, add_pairs, &t);
    assert_int_equal(atomic_load(&t.wrong), 0);
    assert_int_equal(pair_map_len(t.map), 1999 * 3);
    pair_map_close(t.map);
    pool_close(pool);
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

enum { SET_KEYS = 5000 };

struct set_test {
    struct key_set *set;
    i64 span;
    _Atomic i64 added;
};

/* Every task adds the same keys, some of them twice, in an order of its own. */
static void set_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct set_test *t = arg;
    static _Thread_local i64 keys[SET_KEYS];
    static _Thread_local u32 sel[SET_KEYS], out[SET_KEYS];
    for (i64 k = 0; k < SET_KEYS; k++) {
        i64 number = (k * 7 + i * 13) % (SET_KEYS / 2);
        keys[k] = number * 6700417 % t->span;
        sel[k] = (u32)(SET_KEYS - 1 - k);
    }
    const struct key_rows rows = {.keys = keys};
    i64 n = key_set_add(t->set, &rows, i % 2 ? sel : NULL, SET_KEYS, out);
    for (i64 k = 1; k < n; k++) {
        if (i % 2 ? out[k] >= out[k - 1] : out[k] <= out[k - 1]) {
            n = -1; /* in the order of what was asked */
        }
    }
    atomic_fetch_add(&t->added, n);
}

/* Bitmaps, hash tables, and what becomes a bitmap when it is time. */
static void test_key_set(void **state) {
    UNUSED(state);
    static const struct {
        i32 bits;
        i64 span;
    } cases[] = {{13, 8191}, {20, 1 << 20}, {25, 1 << 25}, {64, I64_MAX}};
    struct memory mem;
    memory_init(&mem, NULL, 0, "memory");
    struct pool *pool = pool_open(4);
    for (i64 c = 0; c < COUNT_OF(cases); c++) {
        struct set_test t = {.set = key_set_open(&mem, cases[c].bits, KEY_ONLY),
                             .span = cases[c].span};
        assert_non_null(t.set);
        pool_run(pool, 8, set_task, &t);
        assert_int_equal(t.added, SET_KEYS / 2);
        static i64 many[70000];
        static u32 out[70000];
        const struct key_rows rows = {.keys = many};
        for (i64 i = 0; cases[c].bits == 25 && i < 70000; i++) {
            many[i] = i * 100 + 33;
        }
        if (cases[c].bits == 25) {
            i64 more = key_set_add(t.set, &rows, NULL, 70000, out);
            assert_true(more > 60000 && key_set_settle(t.set));
            assert_int_equal(key_set_add(t.set, &rows, NULL, 70000, out), 0);
        }
        t.added = 0;
        pool_run(pool, 8, set_task, &t);
        assert_int_equal(t.added, 0);
        key_set_close(t.set);
    }
    pool_close(pool);
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

/* A key counts again where its value is better than before, and only then. */
static void test_best_values(void **state) {
    UNUSED(state);
    static const i32 bits[] = {10, 25, 64};
    struct memory mem;
    memory_init(&mem, NULL, 0, "memory");
    for (i64 c = 0; c < 2 * COUNT_OF(bits); c++) {
        i64 sign = c % 2 ? -1 : 1;
        struct key_set *set = key_set_open(&mem, bits[c / 2], c % 2 ? KEY_GREATEST : KEY_LEAST);
        assert_non_null(set);
        i64 keys[] = {3, 900, 3, 3, 900};
        i64 values[] = {5 * sign, -7 * sign, 6 * sign, 4 * sign, -7 * sign};
        u32 out[5];
        const struct key_rows rows = {keys, values};
        i64 n = key_set_add(set, &rows, NULL, 5, out);
        assert_true(n >= 2 && n <= 3); /* 4 is better than 5 */
        values[0] = 5 * sign;
        assert_int_equal(key_set_add(set, &rows, NULL, 5, out), 0);
        values[4] = -8 * sign;
        assert_int_equal(key_set_add(set, &rows, NULL, 5, out), 1);
        assert_int_equal(out[0], 4);
        assert_true(key_set_settle(set));
        assert_int_equal(key_set_add(set, &rows, NULL, 5, out), 0);
        key_set_close(set);
    }
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_set),          cmocka_unit_test(test_best_values),
        cmocka_unit_test(test_share_of_answer),  cmocka_unit_test(test_sort),
        cmocka_unit_test(test_answer_and_limit), cmocka_unit_test(test_negative_bounds),
        cmocka_unit_test(test_values),           cmocka_unit_test(test_one_row),
        cmocka_unit_test(test_tables_by_code),   cmocka_unit_test(test_interners),
        cmocka_unit_test(test_rounding_sums),    cmocka_unit_test(test_guards),
        cmocka_unit_test(test_cancel),           cmocka_unit_test(test_memory_refusals),
        cmocka_unit_test(test_memory_budget),    cmocka_unit_test(test_device_choice),
        cmocka_unit_test(test_placed_again),     cmocka_unit_test(test_corrected),
        cmocka_unit_test(test_estimates),        cmocka_unit_test(test_pair_map)};
    return cmocka_run_group_tests(tests, make_data, NULL);
}

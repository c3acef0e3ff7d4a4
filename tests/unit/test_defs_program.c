/* test_defs_program.c: printing and verifying a program made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>

#include "defs/program.h"

#include "codes/op.h"

/* select id, price * 2 from t where price > $1 order by 1 limit 10 */
struct sample {
    struct program program;
    struct var vars[1];
    struct type types[2];
    u8 kinds[2];
    u64 tables[1];
    union lit lits[3];
    u8 lit_kinds[3];
    u32 param_lits[1];
    struct type param_types[1];
    struct block blocks[1];
    struct step steps[3];
    struct pipeline pipe;
    u32 cols[2];
    struct op ops[9];
    struct reg regs[6];
    struct sink sinks[1];
    struct sink_col sink_cols[2];
    struct prune prunes[1];
    struct sort_key keys[1];
    struct program_col result_cols[2];
};

static struct op op(u16 code, u16 dst, u16 a, u16 b, u32 imm) {
    return (struct op){
        .code = (u16)code, .dst = dst, .a = a, .b = b, .c = NO_REG, .imm = imm, .position = -1};
}

static void sample_body(struct sample *s) {
    s->regs[1].is_const = s->regs[3].is_const = 1;
    s->regs[0].range = (struct range){.lo = -100, .hi = 100};
    s->regs[3].range = range_of_value(2);
    s->ops[0] = op(OP_LOAD, 0, NO_REG, NO_REG, 1);
    s->ops[1] = op(OP_CONST, 1, NO_REG, NO_REG, 0);
    s->ops[2] = op(OP_GT_I64, 2, 0, 1, 0);
    s->ops[3] = op(OP_FILTER, NO_REG, 2, NO_REG, 0);
    s->ops[4] = op(OP_CONST, 3, NO_REG, NO_REG, 1);
    s->ops[5] = op(OP_MULX_I64, 4, 0, 3, 0);
    s->ops[6] = op(OP_LOAD, 5, NO_REG, NO_REG, 0);
    s->ops[7] = op(OP_EMIT, NO_REG, NO_REG, NO_REG, 0);
}

static void sample_types(struct sample *s) {
    s->types[0] = type_of(TYPE_INTEGER);
    s->types[1] = type_of(TYPE_BIGINT);
    s->kinds[0] = KIND_I32;
    s->kinds[1] = KIND_I64;
}

static void sample_init(struct sample *s) {
    memset(s, 0, sizeof *s);
    sample_types(s);
    s->vars[0] = (struct var){.kind = VAR_ROWS,
                              .name = "sorted",
                              .col_count = 2,
                              .types = s->types,
                              .kinds = s->kinds,
                              .last_use = 2};
    s->lits[0].i64 = 60;
    s->lits[1].i64 = 2;
    s->lits[2].i128 = 61;
    s->lit_kinds[0] = s->lit_kinds[1] = KIND_I64;
    s->lit_kinds[2] = KIND_I128;
    s->param_types[0] = type_of(TYPE_BIGINT);
    s->cols[1] = 3;
    static const u8 kinds[6] = {KIND_I64, KIND_I64, KIND_B8, KIND_I64, KIND_I64, KIND_I32};
    for (i32 i = 0; i < 6; i++) {
        s->regs[i] = (struct reg){.kind = kinds[i], .range = range_of_type(type_of(TYPE_BIGINT))};
    }
    sample_body(s);
    s->sink_cols[0] = (struct sink_col){.reg = 5, .null_reg = NO_REG, .type = s->types[0]};
    s->sink_cols[1] = (struct sink_col){.reg = 4, .null_reg = NO_REG, .type = s->types[1]};
    s->sinks[0] = (struct sink){.kind = SINK_ROWS,
                                .limit = -1,
                                .col_count = 2,
                                .cols = s->sink_cols,
                                .key = NO_REG,
                                .null_var = NO_VAR,
                                .fault_var = NO_VAR};
    s->prunes[0] = (struct prune){.col = 1, .lo_lit = 2, .hi_lit = NO_LIT, .kind = KIND_I128};
    s->pipe = (struct pipeline){.source = {SOURCE_TABLE, 0, 8000000, 2, s->cols},
                                .op_count = 8,
                                .ops = s->ops,
                                .reg_count = 6,
                                .regs = s->regs,
                                .sink_count = 1,
                                .sinks = s->sinks,
                                .prune_count = 1,
                                .prunes = s->prunes};
    s->steps[0] =
        (struct step){.kind = STEP_PIPELINE, .label = "Filter, Project", .pipeline = &s->pipe};
    s->steps[1] = (struct step){.kind = STEP_SORT,
                                .label = "Sort",
                                .key_count = 1,
                                .keys = s->keys,
                                .limit = 10,
                                .offset_lit = NO_LIT,
                                .limit_lit = NO_LIT};
    s->steps[2] = (struct step){.kind = STEP_RESULT,
                                .label = "Limit",
                                .limit = 10,
                                .col_count = 2,
                                .offset_lit = NO_LIT,
                                .limit_lit = NO_LIT};
    s->blocks[0] =
        (struct block){.step_count = 3, .steps = s->steps, .next = NO_VAR};
    s->program = (struct program){.table_count = 1,
                                  .tables = s->tables,
                                  .var_count = 1,
                                  .vars = s->vars,
                                  .lit_count = 3,
                                  .lits = s->lits,
                                  .lit_kinds = s->lit_kinds,
                                  .param_count = 1,
                                  .param_lits = s->param_lits,
                                  .param_types = s->param_types,
                                  .block_count = 1,
                                  .blocks = s->blocks,
                                  .col_count = 2,
                                  .cols = s->result_cols};
}

static void test_print(void **state) {
    UNUSED(state);
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    struct sample s;
    sample_init(&s);
    struct text out;
    text_init(&out, &arena);
    program_print(&out, &s.program, true);
    assert_string_equal(
        out.ptr,
        "step 0  Filter, Project\n"
        "    source    table t0, columns 0, 3 (about 8000000 rows)\n"
        "    prune     column 3 >= 61\n"
        "        0  LOAD              r0:i64     =  column 3                        -100 .. 100\n"
        "        1  CONST             r1:i64     =  $1\n"
        "        2  GT_I64            r2:b8      =  r0, r1\n"
        "        3  FILTER                          r2\n"
        "        4  CONST             r3:i64     =  2\n"
        "        5  MULX_I64          r4:i64     =  r0, r3\n"
        "        6  LOAD              r5:i32     =  column 0\n"
        "        7  EMIT                            sink 0\n"
        "    sink 0    rows into v0 sorted\n"
        "              r5:i32 integer, r4:i64 bigint\n"
        "step 1  Sort\n"
        "    sort      v0 sorted by column 0, first 10\n"
        "step 2  Limit\n"
        "    result    v0 sorted, 2 columns, limit 10\n"
        "variables\n"
        "  v0    rows      sorted           integer, bigint\n");
    text_init(&out, &arena);
    program_print(&out, &s.program, false);
    assert_non_null(strstr(out.ptr, "8 opcodes, 6 registers"));
    arena_fini(&arena);
}

/* Every field an opcode or sink has, set to rubbish: the printer must survive and the verifier say
 * no. */
static void test_print_rubbish(void **state) {
    UNUSED(state);
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    struct sample s;
    sample_init(&s);
    struct text out;
    text_init(&out, &arena);
    for (i32 code = 0; code <= OP_COUNT; code++) {
        s.ops[0] = (struct op){(u16)code, 999, 998, 997, 996, 0, 995, -1};
        program_print(&out, &s.program, true);
    }
    assert_true(out.len > 0);
    arena_fini(&arena);
}

static struct error err;

static void expect_bad(struct sample *s, const char *what) {
    error_reset(&err);
    assert_int_equal(program_verify(&s->program, &err), ERR_INTERNAL);
    if (!strstr(err.message, what)) {
        fail_msg("said: %s", err.message);
    }
    sample_init(s);
}

static void test_verify(void **state) {
    UNUSED(state);
    struct sample s;
    sample_init(&s);
    error_reset(&err);
    if (program_verify(&s.program, &err)) {
        fail_msg("%s", err.message);
    }
    s.ops[2].b = 4;
    expect_bad(&s, "opcode 2 (GT_I64): a register is read before it is set");
    s.ops[2].b = 77;
    expect_bad(&s, "does not exist is read");
    s.ops[2].code = OP_GT_I32;
    expect_bad(&s, "an operand has the wrong kind");
    s.ops[2].dst = 4;
    expect_bad(&s, "the result has the wrong kind");
    s.ops[5].dst = 3;
    expect_bad(&s, "a constant register is written");
    s.ops[1].imm = 3;
    expect_bad(&s, "a literal that does not exist");
    s.ops[1].imm = 2;
    expect_bad(&s, "the result has the wrong kind");
    s.ops[0].imm = 2;
    expect_bad(&s, "a column that the source does not have");
    s.ops[7].imm = 1;
    expect_bad(&s, "a sink that does not exist");
    s.pipe.op_count = 7;
    expect_bad(&s, "a sink that receives nothing");
    s.ops[3].code = OP_WHEN; /* a sink of all rows may take those of a branch, one with a limit not */
    expect_bad(&s, "WHEN without END");
    s.ops[3].code = OP_WHEN;
    s.sinks[0].limit = 2;
    expect_bad(&s, "rows change between WHEN and END");
    s.ops[3].code = OP_END;
    expect_bad(&s, "END without WHEN");
    s.ops[3].a = 0;
    expect_bad(&s, "an operand has the wrong kind");
    s.sink_cols[0].reg = 4;
    expect_bad(&s, "an operand has the wrong kind");
    s.sinks[0].col_count = 1;
    expect_bad(&s, "columns differ");
    s.sinks[0].kind = SINK_AGG;
    expect_bad(&s, "a variable has the wrong kind");
    s.sinks[0].var = 5;
    expect_bad(&s, "a variable that does not exist");
    s.prunes[0].lo_lit = 0;
    expect_bad(&s, "a literal that prunes has the wrong kind");
    s.pipe.source.ref = 1;
    expect_bad(&s, "a table that does not exist");
    s.vars[0].last_use = 1;
    expect_bad(&s, "after its last use");
    s.keys[0].col = 2;
    expect_bad(&s, "a sort key that does not exist");
    s.steps[2].col_count = 3;
    expect_bad(&s, "too many columns");
    s.blocks[0].step_count = 2;
    expect_bad(&s, "one result");
    s.ops[4].code = OP_PROBE;
    expect_bad(&s, "PROBE");
    s.ops[4].code = 9999;
    expect_bad(&s, "unknown code");
    s.ops[6] = (struct op){.code = OP_INTERN2, .dst = 5, .a = 0, .b = 3, .imm = 0};
    expect_bad(&s, "opcode 6 (INTERN2): a variable has the wrong kind");
    s.ops[6] = (struct op){.code = OP_INTERN2, .dst = 5, .a = 0, .b = 3, .imm = 5};
    expect_bad(&s, "a variable that does not exist");
}

/* An aggregation: the state's words are i64, and so is the key. */
static void test_verify_groups(void **state) {
    UNUSED(state);
    struct sample s;
    sample_init(&s);
    u8 words[1] = {WORD_ADD};
    u16 word_regs[1] = {4};
    s.kinds[0] = KIND_I64;
    s.vars[0].kind = VAR_AGG;
    s.sinks[0] = (struct sink){.kind = SINK_AGG,
                               .key = 0,
                               .key_bits = 64,
                               .word_count = 1,
                               .words = words,
                               .word_regs = word_regs,
                               .null_var = NO_VAR,
                               .fault_var = NO_VAR};
    error_reset(&err);
    if (program_verify(&s.program, &err)) {
        fail_msg("%s", err.message);
    }
    s.sinks[0].key = 5;
    assert_int_equal(program_verify(&s.program, &err), ERR_INTERNAL);
}

/* One step of another kind in the place of SORT, with variables for what it makes. */
struct steps_sample {
    struct sample s;
    struct var vars[5];
    struct type types[3];
    u8 kinds[3];
    struct window_fn fn;
    struct fetched_col fetches[2];
    struct dict_ref dicts[1];
    struct step *step;
};

static void steps_init(struct steps_sample *t) {
    memset(t, 0, sizeof *t);
    sample_init(&t->s);
    t->types[0] = type_of(TYPE_INTEGER);
    t->types[1] = t->types[2] = type_of(TYPE_BIGINT);
    t->kinds[0] = KIND_I32;
    t->kinds[1] = t->kinds[2] = KIND_I64;
    t->vars[0] = t->s.vars[0];
    struct var rows = {
        .kind = VAR_ROWS, .col_count = 2, .types = t->types, .kinds = t->kinds, .last_use = 2};
    t->vars[1] = (struct var){.kind = VAR_INDEX, .rows_var = 0, .last_use = 2};
    t->vars[2] = rows;
    t->vars[3] = rows;
    t->vars[3].col_count = 3;
    t->vars[4] = (struct var){.kind = VAR_LUT, .lut_kind = KIND_I32, .last_use = 2};
    t->s.program.vars = t->vars;
    t->s.program.var_count = 5;
    t->s.program.dicts = t->dicts;
    t->s.program.dict_count = 1;
    t->fn = (struct window_fn){.form = WINDOW_FUNC,
                               .func = WINDOW_ROW_NUMBER,
                               .from_lit = NO_LIT,
                               .to_lit = NO_LIT,
                               .from_col = NO_VAR,
                               .to_col = NO_VAR,
                               .key = NO_VAR,
                               .args = {NO_VAR, NO_VAR, NO_VAR}};
    t->fetches[1] = (struct fetched_col){.col = 1};
    t->step = &t->s.steps[1];
}

static void steps_make(struct steps_sample *t, enum step_kind kind) {
    steps_init(t);
    *t->step = (struct step){.kind = (u8)kind,
                             .label = "step",
                             .dst = 2,
                             .dst2 = NO_VAR,
                             .limit = -1,
                             .offset_lit = NO_LIT,
                             .limit_lit = NO_LIT,
                             .key_count = 1,
                             .keys = t->s.keys,
                             .window_count = 1,
                             .windows = &t->fn,
                             .fetches = t->fetches,
                             .args = {NO_VAR, NO_VAR}};
    t->step->dst = kind == STEP_BUILD ? 1 : kind == STEP_WINDOW ? 3 : kind == STEP_RANK ? 4 : 2;
    t->step->col = kind == STEP_BUILD || kind == STEP_FOLD || kind == STEP_FETCH || kind == STEP_SPLIT;
}

static void step_is(struct steps_sample *t, bool good, const char *what) {
    error_reset(&err);
    wf_status status = program_verify(&t->s.program, &err);
    if (status != (good ? ERR_OK : ERR_INTERNAL)) {
        fail_msg("%s: %s", what, err.message);
    }
}

/* Makes the step, changes one thing and expects that it is refused. */
#define BAD_STEP(kind, change)       \
    do {                             \
        steps_make(&t, (kind));      \
        step_is(&t, true, #kind);    \
        change;                      \
        step_is(&t, false, #change); \
    } while (0)

static void test_verify_steps(void **state) {
    UNUSED(state);
    static struct steps_sample t;
    BAD_STEP(STEP_BUILD, t.step->col = 2);
    BAD_STEP(STEP_BUILD, t.step->col = 0);
    BAD_STEP(STEP_BUILD, t.step->dst = 2);
    BAD_STEP(STEP_BUILD, t.step->src = 2);
    BAD_STEP(STEP_BUILD, t.vars[1].rows_var = 2);
    BAD_STEP(STEP_BUILD, t.vars[1].rows_var = 5);
    BAD_STEP(STEP_SORT, t.step->col_count = 3);
    BAD_STEP(STEP_SORT, t.s.keys[0].col = 2);
    BAD_STEP(STEP_SPLIT, t.step->col = 0);
    BAD_STEP(STEP_SPLIT, t.step->col = 2);
    BAD_STEP(STEP_SPLIT, t.step->src = 1);
    BAD_STEP(STEP_SPLIT, t.step->dst2 = 2);
    BAD_STEP(STEP_RANK, t.step->dict = 1);
    BAD_STEP(STEP_RANK, t.step->dst = 2);
    BAD_STEP(STEP_RANK, t.vars[4].lut_kind = KIND_I64);
    BAD_STEP(STEP_RANK, t.step->dst2 = 2);
    BAD_STEP(STEP_LIMIT, t.step->dst = 3);
    BAD_STEP(STEP_LIMIT, t.step->src = 1);
    BAD_STEP(STEP_LIMIT, t.step->limit_lit = 3);
    BAD_STEP(STEP_LIMIT, t.step->offset_lit = 2);
    BAD_STEP(STEP_WINDOW, t.step->dst = 2);
    BAD_STEP(STEP_WINDOW, t.step->part_count = 2);
    BAD_STEP(STEP_WINDOW, t.s.keys[0].col = 2);
    BAD_STEP(STEP_WINDOW, t.fn.from_col = 2);
    BAD_STEP(STEP_WINDOW, t.fn.to_col = 2);
    BAD_STEP(STEP_WINDOW, t.fn.key = 2);
    BAD_STEP(STEP_WINDOW, t.fn.args[0] = 2);
    BAD_STEP(STEP_WINDOW, t.fn.args[1] = 2);
    BAD_STEP(STEP_WINDOW, t.fn.args[2] = 2);
    BAD_STEP(STEP_WINDOW, t.fn.from_lit = 3);
    BAD_STEP(STEP_WINDOW, t.fn.to_lit = 2);
    BAD_STEP(STEP_WINDOW, t.fn.func = WINDOW_END);
    BAD_STEP(STEP_WINDOW, t.fn.form = WINDOW_SERIAL + 1);
    BAD_STEP(STEP_FOLD, t.step->col = 0);
    BAD_STEP(STEP_FOLD, t.step->col = 2);
    BAD_STEP(STEP_FOLD, t.step->dst = 3);
    BAD_STEP(STEP_FOLD, t.step->args[0] = 2);
    BAD_STEP(STEP_FOLD, t.step->args[1] = 2);
    BAD_STEP(STEP_FETCH, t.step->table = 1);
    BAD_STEP(STEP_FETCH, t.step->col = 0);
    BAD_STEP(STEP_FETCH, t.step->col = 2);
    BAD_STEP(STEP_FETCH, t.fetches[0].col = 2);
    BAD_STEP(STEP_FETCH, t.fetches[0].col = 1);
    BAD_STEP(STEP_SORT, t.vars[2].kinds[0] = KIND_COUNT);
    BAD_STEP(STEP_SORT, t.vars[4].lut_kind = KIND_COUNT);
    BAD_STEP(STEP_SORT, t.vars[1].kind = VAR_SET + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),        cmocka_unit_test(test_print_rubbish),
        cmocka_unit_test(test_verify),       cmocka_unit_test(test_verify_groups),
        cmocka_unit_test(test_verify_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

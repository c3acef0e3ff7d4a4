/* test_gpu_weave.c: kernel text through the real NVRTC, where one is installed: no GPU is needed to
 * compile.
 *
 * The simt driver runs kernels; this test makes sure that the same text is also CUDA C++: the fixed
 * modules and woven kernels of the shapes that the weaver can write. Skipped when no NVRTC can be
 * found. */
#define _GNU_SOURCE
#include "test_cpu_fixture.h"

#include "base/file.h"
#include "codes/op.h"
#include "gpu/cu_api.h"
#include "gpu/gpu_int.h"

static struct cu_api api;

static int open_rtc(void **state) {
    UNUSED(state);
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    void *library = NULL;
    for (i64 i = 0; i < COUNT_OF(names) && !library; i++) {
        library = library_open(names[i]);
    }
    if (!library) {
        return 0;
    }
    api.has_rtc = 1;
#define X(A, field, symbol, params)                   \
    do {                                              \
        void *found = library_find(library, #symbol); \
        memcpy(&api.field, &found, sizeof found);     \
        api.has_rtc = api.has_rtc && found;           \
    } while (0);
    WF_CU_NVRTC(X, )
#undef X
    return 0;
}

static const char *const options[] = {"--gpu-architecture=sm_90", "--std=c++17", "--fmad=false",
                                      "--device-int128", "--fdevice-syntax-only"};

static void compile_with(const char *text, const char *what, i32 option_count) {
    char log[400];
    char *image = NULL;
    i64 bytes = 0;
    struct compile_job job = {.text = text, .options = options, .sure_count = option_count};
    if (!gpu_compile(&api, &job, &image, &bytes, log)) {
        fail_msg("%s: %s\n%s", what, log, text);
    }
    assert_true(bytes > 0);
    free(image);
}

static void compile(const char *text, const char *what) {
    compile_with(text, what, COUNT_OF(options) - 1);
}

/* Whether the text is CUDA C++ is for the front end to say; what optimises and assembles it takes a
 * hundred times longer. An NVRTC that cannot stop there goes all the way. */
static void compile_syntax(const char *text, const char *what) {
    char log[400];
    char *image = NULL;
    i64 bytes = 0;
    struct compile_job job = {.text = "\n", .options = options, .sure_count = COUNT_OF(options)};
    const bool can_stop = gpu_compile(&api, &job, &image, &bytes, log);
    free(image);
    compile_with(text, what, COUNT_OF(options) - !can_stop);
}

static void test_fixed(void **state) {
    UNUSED(state);
    if (!api.has_rtc) {
        skip();
    }
    static const char *const whole[] = {"build",     "build_runs", "build_bits", "grow",
                                        "agg_state", "agg_rows",   "fetch",      "turn"};
    static const char *const modules[] = {"vm_rows", "vm_rows_small", "vm_agg", "probe"};
    for (i64 i = 0; i < COUNT_OF(whole); i++) {
        char text[80];
        snprintf(text, sizeof text, "#include \"%s.h\"\n", whole[i]);
        compile(text, whole[i]);
    }
    for (i64 i = 0; i < COUNT_OF(modules); i++) {
        char text[80];
        snprintf(text, sizeof text, "#include \"%s.h\"\n", modules[i]);
        compile_syntax(text, modules[i]);
    }
}

/* All scalar opcodes the card can run over registers of constants, in one pipeline each sixteen. */
static void test_opcodes(void **state) {
    UNUSED(state);
    if (!api.has_rtc) {
        skip();
    }
    struct fix f;
    fix_init(&f, 1);
    fix_pipe(&f, SOURCE_ONE, 0, 0);
    u16 inputs[KIND_COUNT];
    for (u8 kind = 0; kind < KIND_COUNT; kind++) {
        inputs[kind] = fix_reg(&f, kind);
        f.pipe->regs[inputs[kind]].is_const = 1;
        if (kind != KIND_STR) {
            fix_op_to(&f, OP_CONST, inputs[kind], NO_REG, NO_REG, NO_REG,
                      fix_lit(&f, kind, (union lit){.i64 = 0}));
        }
    }
    u16 last = NO_REG;
    for (u16 code = 0; code < OP_COUNT; code++) {
        const struct op_info *info = &op_infos[code];
        bool usable =
            !(info->flags & (OP_CONTROL | OP_HOST | OP_MAKES)) && info->result != KIND_STR;
        u16 regs[3] = {NO_REG, NO_REG, NO_REG};
        for (u32 k = 0; usable && k < info->arity; k++) {
            usable = info->operands[k] != KIND_STR;
            regs[k] = inputs[usable ? info->operands[k] : 0];
        }
        if (usable) {
            last = fix_scalar(&f, code, regs[0], regs[1], regs[2]);
        }
    }
    fix_emit_rows(&f, 1, &last, NULL);
    struct gpu_plan plan;
    assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, true, &plan));
    struct weave weave = {.plan = &plan};
    struct text text;
    text_init(&text, &f.arena);
    gpu_weave_text(&weave, &text);
    compile(text.ptr, "opcodes");
    fix_fini(&f);
}

/* Loads of every form into every kind, NULLs of every form, before and after a filter. */
static void test_loads(void **state) {
    UNUSED(state);
    if (!api.has_rtc) {
        skip();
    }
    static const struct {
        u8 form, kind;
    } loads[] = {{SEG_CONST, KIND_I32}, {SEG_U8, KIND_I32},  {SEG_U16, KIND_I64},
                 {SEG_U32, KIND_I32},   {SEG_U64, KIND_I64}, {SEG_U128, KIND_I128},
                 {SEG_I32, KIND_I128},  {SEG_I64, KIND_I32}, {SEG_F32, KIND_F32},
                 {SEG_F64, KIND_F64},   {SEG_U8, KIND_B8},   {SEG_CONST, KIND_F64},
                 {SEG_U8, KIND_I128},   {SEG_I32, KIND_I64}};
    struct fix f;
    fix_init(&f, 1);
    struct weave_col cols[COUNT_OF(loads)];
    for (u32 i = 0; i < COUNT_OF(loads); i++) {
        cols[i] = (struct weave_col){loads[i].form, (u8)(i % 3)};
    }
    for (u32 i = 0; i < COUNT_OF(loads); i++) {
        f.block.step_count = 0;
        fix_pipe(&f, SOURCE_VAR, 0, COUNT_OF(loads));
        u16 before = fix_load(&f, i, loads[i].kind);
        u16 null = fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, i);
        fix_filter(&f, fix_scalar(&f, OP_NOT_B8, null, NO_REG, NO_REG));
        u16 after = fix_load(&f, i, loads[i].kind);
        u16 null_after = fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, i);
        const u16 regs[] = {before, after};
        const u16 nulls[] = {null, null_after};
        fix_emit_rows(&f, 2, regs, nulls);
        struct gpu_plan plan;
        assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, true, &plan));
        struct weave weave = {.plan = &plan, .cols = cols};
        struct text text;
        text_init(&text, &f.arena);
        gpu_weave_text(&weave, &text);
        compile_syntax(text.ptr, "load");
    }
    fix_fini(&f);
}

struct list_case {
    struct weave_index index;
    u16 code;
    b8 lists, listed, spread;
};

/* A key, its lookup, and columns of every form behind it. */
static void weave_lookup(const struct list_case *c) {
    static const u8 forms[] = {SEG_U32, SEG_U8,  SEG_U16, SEG_U64,    SEG_U128, SEG_I32,
                               SEG_I64, SEG_F32, SEG_F64, SEG_SERIES, SEG_CONST};
    static const u8 kinds[] = {KIND_I64, KIND_I32, KIND_I64, KIND_I64, KIND_I128, KIND_I32,
                               KIND_I64, KIND_F32, KIND_F64, KIND_I64, KIND_I32};
    struct fix f;
    fix_init(&f, 1);
    struct weave_col cols[COUNT_OF(forms)];
    for (u32 i = 0; i < COUNT_OF(forms); i++) {
        cols[i] = (struct weave_col){forms[i], (u8)(i % 3)};
    }
    u32 index = fix_var(&f, VAR_INDEX, 0, NULL);
    fix_pipe(&f, SOURCE_VAR, 0, COUNT_OF(forms));
    u16 key = fix_load(&f, 0, KIND_I64);
    u16 regs[COUNT_OF(forms)];
    u16 nulls[COUNT_OF(forms)];
    regs[0] = fix_op(&f, c->code, KIND_I64, key, NO_REG, NO_REG, index);
    nulls[0] = fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, 0);
    for (u32 i = 1; i < COUNT_OF(forms); i++) {
        regs[i] = fix_load(&f, i, kinds[i]);
        nulls[i] = fix_op(&f, OP_LOADN, KIND_B8, NO_REG, NO_REG, NO_REG, i);
    }
    fix_emit_rows(&f, COUNT_OF(forms), regs, nulls);
    struct gpu_plan plan;
    assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, false, &plan));
    struct weave weave = {.plan = &plan, .cols = cols, .indexes = &c->index, .lists = c->lists};
    struct text text;
    text_init(&text, &f.arena);
    gpu_weave_text(&weave, &text);
    assert_int_equal(strstr(text.ptr, "b_list_add") != NULL, c->listed);
    assert_int_equal(strstr(text.ptr, "owner_of") != NULL, c->spread);
    bool near = c->listed && c->index.near; /* its bits are in shared memory */
    assert_int_equal(strstr(text.ptr, "near_has") != NULL, near);
    assert_true(!near || weave.shared_bytes == NEAR_BITS / 8);
    if (api.has_rtc) {
        compile_syntax(text.ptr, "lookup");
    }
    fix_fini(&f);
}

/* Few rows, and rows that may have several matches, go on as a list where there is room for one. */
static void test_lists(void **state) {
    UNUSED(state);
    static const struct list_case cases[] = {
        {{KINDEX_RANK, 1, 0, 1, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RANK, 1, 0, 0, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 0, 0},
        {{KINDEX_RANK, 1, 0, 1, {0}, 0, 0, 0, 0}, OP_PROBE, 0, 0, 0},
        {{KINDEX_BITS, 1, 0, 1, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_PAIRS, 1, 1, 1, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_PAIRS, 1, 0, 0, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 0, 0},
        {{KINDEX_RUNS, 1, 1, 1, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RUNS, 1, 1, 1, {2, 0, 0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0}, /* no opcodes that pack a key */
        {{KINDEX_RUNS, 1, 1, 1, {2, 1, 9}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RUNS, 1, 1, 1, {1, 0, 0}, 0, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_DIRECT, 1, 0, 0, {0}, 0, 0, 0, 0}, OP_PROBE, 1, 0, 0},
        {{KINDEX_RANK, 0, 0, 0, {0}, 0, 0, 0, 0}, OP_MATCH, 1, 1, 1},
        {{KINDEX_PAIRS, 0, 1, 0, {0}, 0, 0, 0, 0}, OP_MATCH, 1, 1, 1},
        {{KINDEX_RUNS, 0, 0, 0, {0}, 0, 0, 0, 0}, OP_MATCH, 1, 1, 1},
        {{KINDEX_DIRECT, 0, 0, 0, {0}, 0, 0, 0, 0}, OP_MATCH, 0, 0, 0},
        {{KINDEX_RANK, 1, 0, 0, {0}, 0, 0, 0, 0}, OP_MATCH, 1, 0, 0},
        {{KINDEX_RANK, 1, 0, 1, {0}, 1, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RUNS, 1, 1, 1, {0}, 1, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RUNS, 1, 1, 1, {1, 0, 0}, 1, 0, 0, 0}, OP_PROBE, 1, 1, 0},
        {{KINDEX_RANK, 1, 0, 0, {0}, 1, 0, 0, 0}, OP_PROBE, 1, 0, 0}};
    for (i64 i = 0; i < COUNT_OF(cases); i++) {
        weave_lookup(&cases[i]);
    }
}

/* Rows that filters leave go on as a list where few are expected, though nothing is looked up. */
static void test_filtered(void **state) {
    UNUSED(state);
    static const struct weave_col cols[] = {{SEG_U8, NULLS_NONE}, {SEG_U32, NULLS_NONE}};
    for (i64 filtered = 0; filtered <= 200; filtered = filtered ? 20 * filtered : 10) {
        struct fix f;
        fix_init(&f, 1);
        fix_pipe(&f, SOURCE_VAR, 0, COUNT_OF(cols));
        fix_filter(&f, fix_load(&f, 0, KIND_B8));
        u16 reg = fix_load(&f, 1, KIND_I64);
        fix_emit_rows(&f, 1, &reg, NULL);
        f.pipe->source.rows = 100;
        f.pipe->filtered = filtered;
        struct gpu_plan plan;
        assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, false, &plan));
        struct weave weave = {.plan = &plan, .cols = cols, .lists = 1};
        struct text text;
        text_init(&text, &f.arena);
        gpu_weave_text(&weave, &text);
        assert_int_equal(strstr(text.ptr, "b_list_add") != NULL, filtered == 10);
        fix_fini(&f);
    }
}

/* The bitmap that leaves fewest rows is asked first, and only then is the next one's key read. */
static void test_order(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    static const struct weave_col cols[] = {{SEG_U32, NULLS_NONE}, {SEG_U32, NULLS_NONE}};
    static const struct weave_index indexes[] = {{KINDEX_RANK, 1, 0, 1, {0}, 0, 0, 0, 0},
                                                 {KINDEX_RANK, 1, 0, 3, {0}, 0, 0, 0, 0}};
    u32 first = fix_var(&f, VAR_INDEX, 0, NULL);
    u32 second = fix_var(&f, VAR_INDEX, 0, NULL);
    fix_pipe(&f, SOURCE_VAR, 0, COUNT_OF(cols));
    u16 regs[2];
    u16 key = fix_load(&f, 0, KIND_I64);
    regs[0] = fix_op(&f, OP_PROBE, KIND_I64, key, NO_REG, NO_REG, first);
    key = fix_load(&f, 1, KIND_I64);
    regs[1] = fix_op(&f, OP_PROBE, KIND_I64, key, NO_REG, NO_REG, second);
    u16 nulls[2] = {NO_REG, NO_REG};
    fix_emit_rows(&f, 2, regs, nulls);
    struct gpu_plan plan;
    assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, false, &plan));
    struct weave weave = {.plan = &plan, .cols = cols, .indexes = indexes, .lists = 1};
    struct text text;
    text_init(&text, &f.arena);
    gpu_weave_text(&weave, &text);
    const char *asked_first = strstr(text.ptr, "rank_test(&x1");
    const char *asked_then = strstr(text.ptr, "rank_test(&x0");
    const char *read_then = strstr(text.ptr, "const struct kseg s0");
    assert_true(asked_first && read_then && asked_then);
    assert_true(asked_first < read_then && read_then < asked_then);
    fix_fini(&f);
}

/* Rows are counted for EXPLAIN ANALYZE; otherwise neither code knows of it. */
static void test_counts(void **state) {
    UNUSED(state);
    struct fix f;
    fix_init(&f, 1);
    fix_pipe(&f, SOURCE_VAR, 0, 1);
    u16 reg = fix_load(&f, 0, KIND_B8);
    fix_filter(&f, reg);
    struct row_mark mark = {.op = f.pipe->op_count};
    fix_emit_rows(&f, 1, &reg, NULL);
    f.pipe->marks = &mark;
    f.pipe->mark_count = 1;
    const struct weave_col col = {SEG_U8, NULLS_NONE};
    for (i32 counts = 0; counts < 2; counts++) {
        struct gpu_plan plan;
        assert_null(gpu_plan_make(&f.arena, &f.program, f.pipe, counts, &plan));
        i32 ops = 0;
        for (i64 i = 0; i < plan.ops.count; i++) {
            ops += plan.ops.items[i].code == KOP_COUNT;
        }
        assert_int_equal(ops, counts);
        struct weave weave = {.plan = &plan, .cols = &col};
        struct text text;
        text_init(&text, &f.arena);
        gpu_weave_text(&weave, &text);
        assert_int_equal(strstr(text.ptr, "w_count_rows") != NULL, counts);
    }
    fix_fini(&f);
}

/* Without a driver, opening is refused with a reason, and `warpfox devices` says so. */
static void test_no_driver(void **state) {
    UNUSED(state);
    setenv("WARPFOX_CUDA", "/nowhere/libcuda.so", 1);
    struct memory mem;
    struct arena arena;
    struct text out;
    char why[300] = "";
    memory_init(&mem, NULL, 0, "memory");
    assert_null(gpu_device_open(&mem, 0, 0, why));
    assert_non_null(strstr(why, "WARPFOX_CUDA"));
    arena_init(&arena, &mem);
    text_init(&out, &arena);
    gpu_describe(&out);
    assert_non_null(strstr(out.ptr, "none"));
    arena_fini(&arena);
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_opcodes),   cmocka_unit_test(test_loads),
        cmocka_unit_test(test_lists),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_filtered)};
    return cmocka_run_group_tests(tests, open_rtc, NULL);
}

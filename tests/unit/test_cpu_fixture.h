/* test_cpu_fixture.h: programs built by hand, for tests of the runtime and the CPU device. */
#ifndef WF_TEST_CPU_FIXTURE_H
#define WF_TEST_CPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codes/control.h"
#include "cpu/cpu.h"
#include "run/run.h"

#define UNUSED_FN __attribute__((unused))

enum { FIX_MAX = 512 };

/* The memory of the database whose devices run what fixtures build: these are part of it, so that tablets of two of
 * them are never the same to a device. NULL: every fixture is a database. */
static UNUSED_FN struct memory *fix_database;

/* One program with one block, built step by step. */
struct fix {
    struct memory mem;
    struct arena arena;
    struct error err;
    struct settings settings;
    struct pool *pool;
    struct device *cpu;
    struct program program;
    struct block block;
    struct table *tables[4];
    struct table_version *versions[4];
    struct exec x;
    _Atomic i32 cancel;
    struct pipeline *pipe; /* under construction */
    bool open;
};

static UNUSED_FN void fix_init(struct fix *f, i32 threads) {
    memset(f, 0, sizeof *f);
    memory_init(&f->mem, fix_database, 0, "memory");
    arena_init(&f->arena, &f->mem);
    error_reset(&f->err);
    settings_init(&f->settings);
    f->settings.device = DEVICE_CPU;
    f->pool = pool_open(threads);
    f->cpu = cpu_device_open();
    struct program *p = &f->program;
    p->arena = &f->arena;
    p->vars = NEW_ARRAY(&f->arena, struct var, FIX_MAX);
    p->lits = NEW_ARRAY(&f->arena, union lit, FIX_MAX);
    p->lit_kinds = NEW_ARRAY(&f->arena, u8, FIX_MAX);
    p->dicts = NEW_ARRAY(&f->arena, struct dict_ref, FIX_MAX);
    p->guards = NEW_ARRAY(&f->arena, struct guard, FIX_MAX);
    p->blocks = &f->block;
    p->block_count = 1;
    f->block.next = NO_VAR;
    f->block.steps = NEW_ARRAY(&f->arena, struct step, FIX_MAX);
}

/* Ends the execution, keeps the program. */
static UNUSED_FN void fix_end(struct fix *f) {
    if (f->open) {
        exec_close(&f->x);
        f->open = false;
    }
    error_reset(&f->err);
}

static UNUSED_FN void fix_fini(struct fix *f) {
    fix_end(f);
    for (i32 i = 0; i < 4; i++) {
        if (f->tables[i]) {
            version_release(f->versions[i]);
            table_close(f->tables[i]);
        }
    }
    pool_close(f->pool);
    f->cpu->close(f->cpu);
    arena_fini(&f->arena);
    assert_int_equal(atomic_load(&f->mem.used_bytes), 0);
}

static UNUSED_FN u32 fix_table(struct fix *f, struct table *table) {
    u32 no = f->program.table_count++;
    f->tables[no] = table;
    f->versions[no] = table_snapshot(table);
    return no;
}

static UNUSED_FN u32 fix_lit(struct fix *f, u8 kind, union lit value) {
    u32 no = f->program.lit_count++;
    f->program.lits[no] = value;
    f->program.lit_kinds[no] = kind;
    return no;
}

static UNUSED_FN u32 fix_var(struct fix *f, u8 kind, u32 col_count, const u8 *kinds) {
    struct program *p = &f->program;
    struct var *var = &p->vars[p->var_count];
    *var = (struct var){.kind = kind, .name = "v", .col_count = col_count, .last_use = NO_VAR};
    var->types = NEW_ARRAY(&f->arena, struct type, col_count + 1);
    var->kinds = NEW_ARRAY(&f->arena, u8, col_count + 1);
    for (u32 c = 0; c < col_count; c++) {
        var->kinds[c] = kinds ? kinds[c] : KIND_I64;
    }
    return p->var_count++;
}

static UNUSED_FN struct step *fix_step(struct fix *f, u8 kind) {
    struct step *step = &f->block.steps[f->block.step_count++];
    *step = (struct step){.kind = kind, .label = "test", .limit = -1};
    step->offset_lit = step->limit_lit = NO_LIT;
    step->dst2 = NO_VAR;
    return step;
}

static UNUSED_FN void fix_pipe(struct fix *f, u8 source, u32 ref, u32 col_count) {
    struct step *step = fix_step(f, STEP_PIPELINE);
    struct pipeline *pipe = NEW(&f->arena, struct pipeline);
    pipe->source.kind = source;
    pipe->source.ref = ref;
    pipe->source.col_count = col_count;
    pipe->source.cols = NEW_ARRAY(&f->arena, u32, col_count + 1);
    for (u32 c = 0; c < col_count; c++) {
        pipe->source.cols[c] = c;
    }
    pipe->ops = NEW_ARRAY(&f->arena, struct op, FIX_MAX);
    pipe->regs = NEW_ARRAY(&f->arena, struct reg, FIX_MAX);
    pipe->sinks = NEW_ARRAY(&f->arena, struct sink, 8);
    pipe->prunes = NEW_ARRAY(&f->arena, struct prune, 8);
    step->pipeline = pipe;
    f->pipe = pipe;
}

static UNUSED_FN u16 fix_reg(struct fix *f, u8 kind) {
    f->pipe->regs[f->pipe->reg_count].kind = kind;
    f->pipe->regs[f->pipe->reg_count].range = (struct range){.lo = I64_MIN, .hi = I64_MAX};
    return (u16)f->pipe->reg_count++;
}

static UNUSED_FN void fix_op_to(struct fix *f, u16 code, u16 dst, u16 a, u16 b, u16 c, u32 imm) {
    u16 no = (u16)f->pipe->op_count++;
    f->pipe->ops[no] = (struct op){code, dst, a, b, c, (u16)(no + 1), imm, 100 + no};
}

/* Appends an opcode with a new result register of `kind` (KIND_NONE: none). */
static UNUSED_FN u16 fix_op(struct fix *f, u16 code, u8 kind, u16 a, u16 b, u16 c, u32 imm) {
    u16 dst = kind == KIND_NONE ? (u16)NO_REG : fix_reg(f, kind);
    fix_op_to(f, code, dst, a, b, c, imm);
    return dst;
}

static UNUSED_FN u16 fix_scalar(struct fix *f, u16 code, u16 a, u16 b, u16 c) {
    return fix_op(f, code, op_infos[code].result, a, b, c, 0);
}

static UNUSED_FN u16 fix_load(struct fix *f, u32 col, u8 kind) {
    return fix_op(f, OP_LOAD, kind, NO_REG, NO_REG, NO_REG, col);
}

static UNUSED_FN u16 fix_const(struct fix *f, u8 kind, union lit value) {
    u32 lit = fix_lit(f, kind, value);
    u16 reg = fix_op(f, OP_CONST, kind, NO_REG, NO_REG, NO_REG, lit);
    f->pipe->regs[reg].is_const = 1;
    return reg;
}

static UNUSED_FN u16 fix_i32(struct fix *f, i32 value) {
    return fix_const(f, KIND_I32, (union lit){.i32 = value});
}

static UNUSED_FN u16 fix_i64(struct fix *f, i64 value) {
    return fix_const(f, KIND_I64, (union lit){.i64 = value});
}

static UNUSED_FN void fix_filter(struct fix *f, u16 reg) {
    fix_op(f, OP_FILTER, KIND_NONE, reg, NO_REG, NO_REG, 0);
}

/* A ROWS sink of the registers given, and its EMIT. Returns the variable. */
static UNUSED_FN u32 fix_emit_rows(struct fix *f, u32 count, const u16 *regs,
                                   const u16 *null_regs) {
    u8 kinds[64];
    struct sink *sink = &f->pipe->sinks[f->pipe->sink_count];
    *sink = (struct sink){.kind = SINK_ROWS, .limit = -1, .col_count = count, .key = NO_REG};
    sink->null_var = sink->fault_var = NO_VAR;
    sink->cols = NEW_ARRAY(&f->arena, struct sink_col, count + 1);
    for (u32 c = 0; c < count; c++) {
        kinds[c] = f->pipe->regs[regs[c]].kind;
        sink->cols[c].reg = regs[c];
        sink->cols[c].null_reg = null_regs ? null_regs[c] : (u16)NO_REG;
    }
    sink->var = fix_var(f, VAR_ROWS, count, kinds);
    fix_op(f, OP_EMIT, KIND_NONE, NO_REG, NO_REG, NO_REG, f->pipe->sink_count++);
    return sink->var;
}

static UNUSED_FN u32 fix_emit_agg(struct fix *f, u16 key, u8 key_bits, u32 count, const u8 *words,
                                  const u16 *regs) {
    struct sink *sink = &f->pipe->sinks[f->pipe->sink_count];
    *sink = (struct sink){.kind = SINK_AGG, .limit = -1, .key = key, .key_bits = key_bits};
    sink->null_var = sink->fault_var = NO_VAR;
    sink->word_count = count;
    sink->words = NEW_ARRAY(&f->arena, u8, count + 1);
    sink->word_regs = NEW_ARRAY(&f->arena, u16, count + 1);
    memcpy(sink->words, words, count);
    memcpy(sink->word_regs, regs, count * sizeof(u16));
    sink->var = fix_var(f, VAR_AGG, 1 + count, NULL);
    fix_op(f, OP_EMIT, KIND_NONE, NO_REG, NO_REG, NO_REG, f->pipe->sink_count++);
    return sink->var;
}

static UNUSED_FN void fix_result(struct fix *f, u32 var) {
    struct step *step = fix_step(f, STEP_RESULT);
    step->src = var;
    step->col_count = f->program.vars[var].col_count;
}

/* An execution of the program that runs nothing yet: for tests that call parts of a device. */
static UNUSED_FN void fix_open(struct fix *f) {
    f->x =
        (struct exec){.program = &f->program, .arena = &f->arena, .mem = &f->mem, .err = &f->err};
    f->x.pool = f->pool;
    f->x.settings = &f->settings;
    f->x.cancel = &f->cancel;
    bool stale;
    f->open = true;
    assert_int_equal(exec_open(&f->x, &stale), ERR_OK);
}

/* Runs the program anew, on what there is of devices. */
static UNUSED_FN wf_status fix_try_on(struct fix *f, const struct run_devices *devices) {
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
    f->x.cancel = &f->cancel;
    bool stale = false;
    f->open = true;
    wf_status status = exec_open(&f->x, &stale);
    assert_false(stale);
    return status ? status : exec_run(&f->x, devices);
}

static UNUSED_FN wf_status fix_try(struct fix *f) {
    struct run_devices devices = {.count = 1, .list = {f->cpu}, .alone = "none in this test"};
    return fix_try_on(f, &devices);
}

static UNUSED_FN void fix_run(struct fix *f) {
    wf_status status = fix_try(f);
    if (status) {
        fail_msg("%s: %s", error_sqlstate(status), f->err.message);
    }
}

/* Element i of a column over all chunks. */
static UNUSED_FN const void *fix_at(const struct fix *f, u32 var, u32 col, i64 i, bool *is_null) {
    const struct variable *v = &f->x.vars[var];
    for (i64 c = 0; c < v->chunks.count; c++) {
        const struct chunk *chunk = v->chunks.items[c];
        if (i < chunk->rows) {
            if (is_null) {
                *is_null = chunk->cols[col].nulls && chunk->cols[col].nulls[i];
            }
            return (const u8 *)chunk->cols[col].data + i * kind_bytes[chunk->cols[col].kind];
        }
        i -= chunk->rows;
    }
    fail_msg("row out of range");
    return NULL;
}

static UNUSED_FN i64 fix_i64_at(const struct fix *f, u32 var, u32 col, i64 i) {
    return *(const i64 *)fix_at(f, var, col, i, NULL);
}

static UNUSED_FN i32 fix_i32_at(const struct fix *f, u32 var, u32 col, i64 i) {
    return *(const i32 *)fix_at(f, var, col, i, NULL);
}

/* A small deterministic generator. */
static UNUSED_FN u64 fix_random(u64 *state) {
    *state += 0x9e3779b97f4a7c15ULL;
    return hash_u64(*state);
}

struct fix_col {
    const char *name;
    struct type type;
    const void *data;
    const b8 *nulls;
};

static UNUSED_FN u32 fix_make_table(struct fix *f, u32 tablet_shift, bool plain, i64 rows,
                                    u32 col_count, const struct fix_col *cols) {
    static u64 next_id = 1;
    struct column_def defs[16];
    struct input_col input[16];
    for (u32 c = 0; c < col_count; c++) {
        defs[c] = (struct column_def){.name = cols[c].name, .type = cols[c].type};
        input[c] = (struct input_col){.data = cols[c].data, .nulls = cols[c].nulls};
    }
    struct table *table = table_open(&f->mem, next_id++, "t", col_count, defs, tablet_shift, plain);
    assert_non_null(table);
    if (rows) {
        assert_int_equal(table_append(table, rows, input, &f->err), ERR_OK);
    }
    return fix_table(f, table);
}

#endif

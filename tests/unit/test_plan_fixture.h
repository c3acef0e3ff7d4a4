/* test_plan_fixture.h: plans made by hand, with made-up statistics, for tests of plan, opt and
 * lower. */
#ifndef WF_TEST_PLAN_FIXTURE_H
#define WF_TEST_PLAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "defs/settings.h"
#include "lower/lower.h"
#include "opt/opt.h"

struct fixture {
    struct memory mem;
    struct arena arena;
    struct error err;
    struct plan plan;
    struct program *program;
    i32 partition; /* limits of lowering */
    i64 near_bytes;
};

static inline struct fixture *fx_open(void) {
    struct fixture *fx = calloc(1, sizeof *fx);
    memory_init(&fx->mem, NULL, 0, "memory");
    arena_init(&fx->arena, &fx->mem);
    error_reset(&fx->err);
    fx->plan.arena = &fx->arena;
    return fx;
}

static inline void fx_close(struct fixture *fx) {
    arena_fini(&fx->arena);
    free(fx);
}

/* A column of a made-up table. */
struct fx_col {
    const char *name;
    struct type type;
    i64 lo, hi; /* exact types; codes of text */
    b8 nullable;
    b8 dict;
    b8 unique;
    b8 special; /* floats: NaN, infinities or -0 */
    i64 distinct;
};

static inline struct rel *fx_scan(struct fixture *fx, u64 id, const char *name, i64 rows,
                                  const struct fx_col *cols, i32 count) {
    struct rel *rel = rel_new(&fx->plan, REL_SCAN, NULL, NULL);
    rel->scan.table_id = id;
    rel->scan.table_name = name;
    rel->scan.alias = name;
    rel->scan.table_rows = rows;
    rel->scan.live_rows = rows;
    for (i32 i = 0; i < count; i++) {
        u32 col = plan_col_new(&fx->plan, cols[i].name, cols[i].type, cols[i].nullable);
        struct scan_col scan = {.col = col,
                                .table_col = (u32)i,
                                .no_nulls = !cols[i].nullable,
                                .all_dict = cols[i].dict,
                                .unique = cols[i].unique,
                                .distinct = cols[i].distinct};
        scan.range = range_of_type(cols[i].type);
        scan.range.lo = cols[i].lo;
        scan.range.hi = cols[i].hi;
        if (type_is_float(cols[i].type)) { /* hi bounds the magnitude, lo is the lowest bit */
            scan.range.abs_max = (f64)cols[i].hi;
            scan.range.lsb = (i32)cols[i].lo;
            scan.range.may_special = cols[i].special;
        }
        VEC_PUSH(&fx->arena, &rel->scan.cols, scan);
        VEC_PUSH(&fx->arena, &rel->out, col);
    }
    return rel;
}

static inline struct expr *fx_col(struct fixture *fx, const char *name) {
    for (u32 i = 0; i < fx->plan.cols.count; i++) {
        if (strcmp(fx->plan.cols.items[i].name, name) == 0) {
            return expr_col(&fx->plan, i, -1);
        }
    }
    fail_msg("no column %s", name);
    return NULL;
}

static inline struct expr *fx_int(struct fixture *fx, i64 value) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type_of(TYPE_INTEGER), -1);
    expr->value.i32 = (i32)value;
    return expr;
}

static inline struct expr *fx_date(struct fixture *fx, i32 days) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type_of(TYPE_DATE), -1);
    expr->value.i32 = days;
    return expr;
}

static inline struct expr *fx_dec(struct fixture *fx, i64 value, i32 precision, i32 scale) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type_decimal(precision, scale), -1);
    expr->value.i64 = value;
    return expr;
}

static inline struct expr *fx_double(struct fixture *fx, f64 value) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type_of(TYPE_DOUBLE), -1);
    expr->value.f64 = value;
    return expr;
}

static inline struct expr *fx_text(struct fixture *fx, const char *value) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type_of(TYPE_TEXT), -1);
    expr->value.str = str_from(sv_from(value));
    return expr;
}

static inline struct expr *fx_null(struct fixture *fx, struct type type) {
    struct expr *expr = expr_new(&fx->arena, EXPR_CONST, type, -1);
    expr->is_null = 1;
    return expr;
}

/* A call whose type is boolean for comparisons, else given. */
static inline struct expr *fx_call(struct fixture *fx, u16 func, struct type type,
                                   struct expr *a, struct expr *b) {
    return b ? expr_call(&fx->arena, func, type, -1, 2, a, b)
             : expr_call(&fx->arena, func, type, -1, 1, a);
}

static inline struct expr *fx_cmp(struct fixture *fx, u16 func, struct expr *a,
                                  struct expr *b) {
    return fx_call(fx, func, type_of(TYPE_BOOLEAN), a, b);
}

static inline struct expr *fx_list(struct fixture *fx, enum expr_kind kind, struct type type,
                                   i32 count, ...) {
    struct expr *expr = expr_new(&fx->arena, kind, type, -1);
    expr->arg_count = count;
    expr->args = NEW_ARRAY(&fx->arena, struct expr *, count);
    va_list list;
    va_start(list, count);
    for (i32 i = 0; i < count; i++) {
        expr->args[i] = va_arg(list, struct expr *);
    }
    va_end(list);
    return expr;
}

#define FX_BOOL type_of(TYPE_BOOLEAN)

static inline struct expr *fx_cast(struct fixture *fx, struct expr *arg, struct type type) {
    return fx_list(fx, EXPR_CAST, type, 1, arg);
}

static inline struct rel *fx_filter(struct fixture *fx, struct rel *input, struct expr *cond) {
    struct rel *rel = rel_new(&fx->plan, REL_FILTER, input, NULL);
    VEC_PUSH(&fx->arena, &rel->filter.conds, cond);
    return rel;
}

static inline struct rel *fx_join(struct fixture *fx, struct rel *left, struct rel *right,
                                  struct expr *cond) {
    struct rel *rel = rel_new(&fx->plan, REL_JOIN, left, right);
    rel->join.kind = cond ? JOIN_INNER : JOIN_CROSS;
    if (cond) {
        VEC_PUSH(&fx->arena, &rel->join.conds, cond);
    }
    return rel;
}

/* Projects, naming the columns. */
static inline struct rel *fx_project(struct fixture *fx, struct rel *input, i32 count, ...) {
    struct rel *rel = rel_new(&fx->plan, REL_PROJECT, input, NULL);
    va_list list;
    va_start(list, count);
    for (i32 i = 0; i < count; i++) {
        struct expr *expr = va_arg(list, struct expr *);
        const char *name = arena_printf(&fx->arena, "p%d_%lld", (int)i, fx->plan.cols.count);
        u32 col = plan_col_new(&fx->plan, name, expr->type, expr_nullable(&fx->plan, expr));
        VEC_PUSH(&fx->arena, &rel->project.exprs, expr);
        VEC_PUSH(&fx->arena, &rel->out, col);
    }
    va_end(list);
    return rel;
}

static inline struct rel *fx_agg(struct fixture *fx, struct rel *input, i32 keys, ...) {
    struct rel *rel = rel_new(&fx->plan, REL_AGG, input, NULL);
    va_list list;
    va_start(list, keys);
    for (i32 i = 0; i < keys; i++) {
        struct expr *expr = va_arg(list, struct expr *);
        const char *name = arena_printf(&fx->arena, "k%d", (int)i);
        u32 col = plan_col_new(&fx->plan, name, expr->type, expr_nullable(&fx->plan, expr));
        VEC_PUSH(&fx->arena, &rel->agg.keys, expr);
        VEC_PUSH(&fx->arena, &rel->out, col);
    }
    va_end(list);
    return rel;
}

static inline void fx_agg_call(struct fixture *fx, struct rel *rel, const char *name, enum agg agg,
                               struct expr *arg, struct type type) {
    struct agg_call call = {.col = plan_col_new(&fx->plan, name, type, true),
                            .agg = (u8)agg,
                            .arg = arg,
                            .position = -1};
    VEC_PUSH(&fx->arena, &rel->agg.calls, call);
    VEC_PUSH(&fx->arena, &rel->out, call.col);
}

static inline struct rel *fx_sort(struct fixture *fx, struct rel *input, struct expr *expr,
                                  bool descending) {
    struct rel *rel = rel_new(&fx->plan, REL_SORT, input, NULL);
    struct order_key key = {expr, descending, descending};
    VEC_PUSH(&fx->arena, &rel->sort.order, key);
    return rel;
}

static inline struct rel *fx_limit(struct fixture *fx, struct rel *input, i64 limit) {
    struct rel *rel = rel_new(&fx->plan, REL_LIMIT, input, NULL);
    rel->limit.count = expr_new(&fx->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    rel->limit.count->value.i64 = limit;
    return rel;
}

static inline void fx_root(struct fixture *fx, struct rel *root) {
    fx->plan.root = root;
    fx->plan.names.count = 0;
    for (i64 i = 0; i < root->out.count; i++) {
        VEC_PUSH(&fx->arena, &fx->plan.names, fx->plan.cols.items[root->out.items[i]].name);
    }
}

static inline void fx_check(struct fixture *fx, wf_status status) {
    if (status) {
        fail_msg("%s: %s", error_sqlstate(status), fx->err.message);
    }
}

static inline void fx_opt(struct fixture *fx, bool optimizer) {
    struct settings settings;
    settings_init(&settings);
    settings.optimizer = optimizer;
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
    fx_check(fx, opt_run(&fx->plan, &settings, &fx->err));
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
}

/* Optimises and lowers; the program has passed its verifier. */
static inline wf_status fx_try_lower(struct fixture *fx, bool fusion) {
    struct lower_limits limits = {.fusion = fusion,
                                  .partition = fx->partition,
                                  .near_bytes = fx->near_bytes,
                                  .max_live = 32};
    wf_status status = lower_plan(&fx->plan, &limits, &fx->arena, &fx->program, &fx->err);
    if (!status) {
        fx_check(fx, program_verify(fx->program, &fx->err));
    }
    return status;
}

static inline void fx_lower(struct fixture *fx, struct rel *root, bool fusion) {
    fx_root(fx, root);
    fx_opt(fx, true);
    fx_check(fx, fx_try_lower(fx, fusion));
    if (getenv("FX_PRINT")) {
        struct text text;
        text_init(&text, &fx->arena);
        plan_print(&text, &fx->plan);
        program_print(&text, fx->program, true);
        fprintf(stderr, "%s\n", text.ptr);
    }
}

/* The opcodes of pipeline `number` (counting pipelines only), separated by blanks. */
static inline const char *fx_ops(struct fixture *fx, i32 number) {
    struct text text;
    text_init(&text, &fx->arena);
    const struct block *block = &fx->program->blocks[0];
    for (u32 i = 0; i < block->step_count; i++) {
        const struct pipeline *pipe = block->steps[i].pipeline;
        if (!pipe || number-- != 0) {
            continue;
        }
        for (u32 k = 0; k < pipe->op_count; k++) {
            text_print(&text, "%s%s", k > 0 ? " " : "", op_infos[pipe->ops[k].code].name);
        }
        return text.ptr;
    }
    return "none";
}

static inline const struct pipeline *fx_pipe(struct fixture *fx, i32 number) {
    const struct block *block = &fx->program->blocks[0];
    for (u32 i = 0; i < block->step_count; i++) {
        if (block->steps[i].pipeline && number-- == 0) {
            return block->steps[i].pipeline;
        }
    }
    fail_msg("no such pipeline");
    return NULL;
}

/* The kinds of steps: P pipeline, B build, S sort, K rank, R result, L limit, X split. */
static inline const char *fx_steps(struct fixture *fx) {
    static const char letters[] = {[STEP_PIPELINE] = 'P', [STEP_BUILD] = 'B',  [STEP_SORT] = 'S',
                                   [STEP_RANK] = 'K',     [STEP_RESULT] = 'R', [STEP_LIMIT] = 'L',
                                   [STEP_SPLIT] = 'X'};
    struct text text;
    text_init(&text, &fx->arena);
    for (u32 i = 0; i < fx->program->blocks[0].step_count; i++) {
        text_print(&text, "%c", letters[fx->program->blocks[0].steps[i].kind]);
    }
    return text.ptr;
}

static inline i32 fx_count_op(struct fixture *fx, u16 code) {
    i32 count = 0;
    const struct block *block = &fx->program->blocks[0];
    for (u32 i = 0; i < block->step_count; i++) {
        const struct pipeline *pipe = block->steps[i].pipeline;
        for (u32 k = 0; pipe && k < pipe->op_count; k++) {
            count += pipe->ops[k].code == code;
        }
    }
    return count;
}

#endif

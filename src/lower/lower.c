/* lower.c: plan -> program: the driver, and the program's lists: literals, variables, dictionaries,
 * steps.
 *
 * lower_root walks the plan and appends steps; afterwards the lists become the program's arrays and
 * the last use of every variable is found. When a pipeline came out with more live registers than
 * the limits allow and could be cut at an operator, the whole plan is lowered again with that cut:
 * plans are small and the second attempt costs microseconds. */

#include "lower/lower.h"

#include <stdarg.h>
#include <stdio.h>

#include "lower/lower_int.h"

void lower_fail(struct lower *l, wf_status code, i32 position, const char *format, ...) {
    if (l->status) {
        return;
    }
    char message[300];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    l->status = error_set(l->err, code, position, "%s", message);
}

enum { EXPRS_PER_CHECK = STOP_EVERY(256) };

void lower_poll(struct lower *l) {
    if (++l->polls % EXPRS_PER_CHECK == 0 && !l->status) {
        l->status = stop_check(l->err);
    }
}

/* literals */

static u64 lit_hash(enum kind kind, union lit value) {
    if (kind == KIND_STR) {
        return sv_hash(sv_of(value.str));
    }
    u64 words[2] = {0, 0};
    memcpy(words, &value, (size_t)kind_bytes[kind]);
    return hash_u64(words[0] ^ hash_u64(words[1] + (u64)kind));
}

static bool lit_same(enum kind kind, union lit a, union lit b) {
    if (kind == KIND_STR) {
        return sv_eq(sv_of(a.str), sv_of(b.str));
    }
    return memcmp(&a, &b, (size_t)kind_bytes[kind]) == 0;
}

u32 lower_lit_new(struct lower *l, enum kind kind, union lit value) {
    u8 kind_byte = (u8)kind;
    VEC_PUSH(l->arena, &l->lits, value);
    VEC_PUSH(l->arena, &l->lit_kinds, kind_byte);
    return (u32)(l->lits.count - 1);
}

static void grow_lit_slots(struct lower *l) {
    u32 *old = l->lit_slots;
    i64 old_count = l->lit_slot_count;
    l->lit_slot_count = MAX_OF(old_count * 4, 64);
    l->lit_slots = NEW_ARRAY(l->arena, u32, l->lit_slot_count);
    for (i64 i = 0; i < old_count; i++) {
        if (old[i]) {
            u64 h = lit_hash((enum kind)l->lit_kinds.items[old[i] - 1], l->lits.items[old[i] - 1]);
            while (l->lit_slots[h & (u64)(l->lit_slot_count - 1)]) {
                h++;
            }
            l->lit_slots[h & (u64)(l->lit_slot_count - 1)] = old[i];
        }
    }
}

u32 lower_lit(struct lower *l, enum kind kind, union lit value) {
    if (l->lits.count * 2 >= l->lit_slot_count) {
        grow_lit_slots(l);
    }
    u64 mask = (u64)(l->lit_slot_count - 1);
    u64 h = lit_hash(kind, value);
    for (; l->lit_slots[h & mask]; h++) {
        u32 at = l->lit_slots[h & mask] - 1;
        if (l->lit_kinds.items[at] == (u8)kind && lit_same(kind, l->lits.items[at], value)) {
            return at;
        }
    }
    u32 lit = lower_lit_new(l, kind, value);
    l->lit_slots[h & mask] = lit + 1;
    return lit;
}

u32 lower_param_lit(struct lower *l, u32 param) {
    u32 *slot = &l->program->param_lits[param];
    if (*slot == NO_LIT) {
        union lit none;
        memset(&none, 0, sizeof none);
        *slot = lower_lit_new(l, type_kind(l->plan->param_types[param]), none);
    }
    return *slot;
}

u32 lower_param_null_lit(struct lower *l, u32 param) {
    u32 *slot = &l->program->param_null_lits[param];
    if (*slot == NO_LIT) {
        union lit none;
        memset(&none, 0, sizeof none);
        *slot = lower_lit_new(l, KIND_B8, none);
    }
    return *slot;
}

/* variables, dictionaries, tables, steps */

u32 lower_var(struct lower *l, enum var_kind kind, const char *name) {
    u32 number = (u32)l->vars.count;
    struct var var = {.kind = (u8)kind, .rows_var = NO_VAR};
    var.name = arena_printf(l->arena, "%s%u", name, number);
    struct var_info info = {0};
    VEC_PUSH(l->arena, &l->vars, var);
    VEC_PUSH(l->arena, &l->var_infos, info);
    if (number >= NO_REG - 1) {
        lower_fail(l, ERR_TOO_COMPLEX, -1, "a statement needs more than %d variables", (int)NO_REG - 1);
    }
    return number;
}

u32 lower_dict(struct lower *l, struct dict_ref ref) {
    for (i64 i = 0; i < l->dicts.count; i++) {
        struct dict_ref *d = &l->dicts.items[i];
        if (d->table == ref.table && d->col == ref.col && d->values == ref.values) {
            return (u32)i + 1;
        }
    }
    VEC_PUSH(l->arena, &l->dicts, ref);
    return (u32)l->dicts.count;
}

u32 lower_table(struct lower *l, u64 table_id) {
    for (i64 i = 0; i < l->tables.count; i++) {
        if (l->tables.items[i] == table_id) {
            return (u32)i;
        }
    }
    VEC_PUSH(l->arena, &l->tables, table_id);
    return (u32)(l->tables.count - 1);
}

struct step *lower_step(struct lower *l, enum step_kind kind, const char *label) {
    struct step step = {.kind = (u8)kind,
                        .defer = l->defer,
                        .label = label,
                        .src = NO_VAR,
                        .dst = NO_VAR,
                        .dst2 = NO_VAR,
                        .limit = -1,
                        .offset_lit = NO_LIT,
                        .limit_lit = NO_LIT};
    VEC_PUSH(l->arena, &l->steps, step);
    return &l->steps.items[l->steps.count - 1];
}

/* liveness */

typedef void (*var_fn)(void *arg, u32 var);

static void each_var(const struct lower *l, u32 var, var_fn fn, void *arg) {
    if (var == NO_VAR) {
        return;
    }
    fn(arg, var);
    if (l->vars.items[var].kind == VAR_INDEX) {
        each_var(l, l->vars.items[var].rows_var, fn, arg);
    }
}

static void each_pipeline_var(const struct lower *l, const struct pipeline *pipe, var_fn fn,
                              void *arg) {
    if (pipe->source.kind == SOURCE_VAR || pipe->source.kind == SOURCE_SERIES) {
        each_var(l, pipe->source.ref, fn, arg);
    } else if (pipe->source.kind == SOURCE_DICT) {
        each_var(l, l->dicts.items[pipe->source.ref].values, fn, arg);
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        each_var(l, op_variable(&pipe->ops[i]), fn, arg);
    }
    for (u32 i = 0; i < pipe->sink_count; i++) {
        const struct sink *sink = &pipe->sinks[i];
        each_var(l, sink->var, fn, arg);
        if (sink->kind == SINK_MARK) {
            each_var(l, sink->rows_var, fn, arg);
        }
        if (sink->set_var) {
            each_var(l, sink->set_var - 1, fn, arg);
        }
        if (sink->kind == SINK_LUT) {
            each_var(l, sink->null_var, fn, arg);
            each_var(l, sink->fault_var, fn, arg);
        }
    }
}

void lower_each_var(const struct lower *l, const struct step *step, var_fn fn, void *arg) {
    if (step->kind == STEP_PIPELINE) {
        each_pipeline_var(l, step->pipeline, fn, arg);
    }
    if (step->kind == STEP_RANK) {
        each_var(l, l->dicts.items[step->dict].values, fn, arg);
    }
    each_var(l, step->src, fn, arg);
    each_var(l, step->dst, fn, arg);
    each_var(l, step->dst2, fn, arg);
}

struct use {
    struct lower *l;
    u32 step;
};

static void touch(void *arg, u32 var) {
    struct use *use = arg;
    struct var *v = &use->l->vars.items[var];
    v->last_use = MAX_OF(v->last_use, use->step);
}

/* Strings are views: whoever holds their bytes stays until the end. */
static bool holds_strings(const struct var *var) {
    if (var->kind == VAR_INTERN) {
        return true;
    }
    for (u32 i = 0; var->kind == VAR_ROWS && i < var->col_count; i++) {
        if (var->kinds[i] == KIND_STR) {
            return true;
        }
    }
    return false;
}

static void find_last_uses(struct lower *l) {
    u32 last = (u32)l->steps.count - 1;
    struct use at_end = {l, last};
    for (u32 i = 0; i <= last; i++) {
        const struct step *step = &l->steps.items[i];
        struct use use = {l, i};
        lower_each_var(l, step, touch, &use);
        if (step->kind == STEP_RESULT) {
            touch(&at_end, step->src);
        }
    }
    for (i64 i = 0; i < l->vars.count; i++) {
        if (holds_strings(&l->vars.items[i])) {
            touch(&at_end, (u32)i);
        }
    }
}

static void fill_program(struct lower *l) {
    struct program *p = l->program;
    const struct plan *plan = l->plan;
    p->table_count = (u32)l->tables.count;
    p->tables = l->tables.items;
    p->var_count = (u32)l->vars.count;
    p->vars = l->vars.items;
    p->dict_count = (u32)l->dicts.count;
    p->dicts = l->dicts.items;
    p->lit_count = (u32)l->lits.count;
    p->lits = l->lits.items;
    p->lit_kinds = l->lit_kinds.items;
    fix_blocks(l, p);
    p->deferral_count = (u32)l->deferrals.count;
    p->deferrals = l->deferrals.items;
    p->guard_count = (u32)l->guards.count;
    p->guards = l->guards.items;
    p->col_count = (u32)plan->root->out.count;
    p->cols = NEW_ARRAY(l->arena, struct program_col, p->col_count);
    for (u32 i = 0; i < p->col_count; i++) {
        p->cols[i].name = plan->names.items[i];
        p->cols[i].type = plan->cols.items[plan->root->out.items[i]].type;
    }
}

static void init_program(struct lower *l) {
    struct program *p = NEW(l->arena, struct program);
    p->arena = l->arena;
    p->param_count = l->plan->param_count;
    p->param_types = NEW_ARRAY(l->arena, struct type, p->param_count);
    p->param_lits = NEW_ARRAY(l->arena, u32, p->param_count);
    p->param_null_lits = NEW_ARRAY(l->arena, u32, p->param_count);
    for (u32 i = 0; i < p->param_count; i++) {
        p->param_types[i] = l->plan->param_types[i];
        p->param_lits[i] = NO_LIT;
        p->param_null_lits[i] = NO_LIT;
    }
    l->program = p;
}

static _Atomic u64 last_program_id;

FALLIBLE lower_plan(const struct plan *plan, const struct lower_limits *limits, struct arena *arena,
                    struct program **out, struct error *err) {
    /* Each cuts one place of every pipeline that is too large, or widens what is taken for granted
     * of recursions, which ends by itself. */
    enum { MOST_TRIES = 32 };
    struct lower l = {.plan = plan, .limits = limits, .arena = arena, .err = err};
    for (i64 tries = 0;; tries++) {
        struct lower fresh = {.plan = plan, .limits = limits, .arena = arena, .err = err};
        memcpy(&fresh.cuts, &l.cuts, sizeof l.cuts);
        memcpy(&fresh.guesses, &l.guesses, sizeof l.guesses);
        memcpy(&fresh.apart, &l.apart, sizeof l.apart);
        l = fresh;
        init_program(&l);
        lower_root(&l);
        if (l.status) {
            return l.status;
        }
        bool whole = l.wishes.count == 0 && !l.again;
        if (!l.guessed_wrong && (whole || tries >= MOST_TRIES)) {
            break;
        }
        for (i64 i = 0; i < l.wishes.count; i++) {
            VEC_PUSH(arena, &l.cuts, l.wishes.items[i]);
        }
    }
    scans_share(&l);
    find_last_uses(&l);
    fill_program(&l);
    TRY(arena_check(arena, err));
#ifdef WF_HARD
    TRY(program_verify(l.program, err));
#endif
    l.program->id = atomic_fetch_add(&last_program_id, 1) + 1;
    *out = l.program;
    return ERR_OK;
}

/* choose.c: where a step runs, and why.
 *
 * There is no silent fallback: when the session names a device, a step that it refuses is an error
 * with operator and reason (docs/decisions/0005). Under auto the program is placed as a whole
 * (auto.c). Some steps
 * only ever run on the host and say why, with a text of WF_HOST_STEPS in defs/refusal.def; there is
 * no other way to the host but a refusal. */
#include "run/run_int.h"
#include "run/tries.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "defs/refusal.def"
#include "store/scan.h"

const char *step_label(const struct step *step) {
    return step->label ? step->label : "step";
}

#define X(A, name, kind, text, why) HOST_##name,
enum host_step { WF_HOST_STEPS(X, ) HOST_COUNT };
#undef X
enum { STEP_ANY = 255 }; /* of the table: whatever the kind */
static const struct {
    u8 kind; /* enum step_kind */
    const char *text;
} host_steps[HOST_COUNT] = {
#define X(A, name, kind, text, why) {STEP_##kind, text},
    WF_HOST_STEPS(X, )
#undef X
};

/* HOST_COUNT: others may run it. */
static enum host_step host_pipeline(const struct exec *x, const struct pipeline *pipe) {
    const struct source *source = &pipe->source;
    if (exec_provider(x, pipe)) {
        return HOST_FILE;
    }
    if (exec_passes(x, pipe)) {
        return HOST_PASSES;
    }
    if (exec_chains(x, pipe)) {
        return HOST_CHAIN;
    }
    if (source->kind == SOURCE_VAR) {
        const struct var *var = &x->program->vars[source->ref];
        return var->const_rows > 0 ? HOST_LITERALS : var->in_order ? HOST_IN_ORDER : HOST_COUNT;
    }
    return source->kind == SOURCE_DICT  ? HOST_DICTIONARY
           : source->kind == SOURCE_ONE ? HOST_ONE
                                        : HOST_COUNT;
}

/* Whether a step's inputs are few, or on the host already. */
struct few {
    const struct exec *x;
    bool few;
};
static void is_few(void *arg, u32 var) {
    struct few *f = arg;
    const struct variable *v = &f->x->vars[var];
    bool here = !v->copy || v->on_host || v->index;
    f->few = f->few && (here || v->rows < f->x->settings->host_rows);
}

/* Rows that a step reads one by one; -1 where it stays where they are, or nobody knows. An index of
 * rows that are on a device is built there. */
static i64 step_rows(const struct exec *x, const struct step *step) {
    if (step->kind == STEP_PIPELINE) {
        const struct source *source = &step->pipeline->source;
        return source->kind == SOURCE_VAR     ? x->vars[source->ref].rows
               : source->kind == SOURCE_TABLE ? x->versions[source->ref]->rows
                                              : -1;
    }
    if (step->kind == STEP_RANK) {
        return x->dict_lens[step->dict];
    }
    const struct variable *v = &x->vars[step->src];
    bool away = v->copy && !v->on_host;
    return step->kind == STEP_BUILD && away ? -1 : v->rows;
}

static bool has_few(const struct exec *x, const struct step *step) {
    i64 rows = step_rows(x, step);
    struct few few = {x, rows >= 0 && rows < x->settings->host_rows};
    const struct pipeline *pipe = step->pipeline;
    for (u32 i = 0; step->kind == STEP_PIPELINE && i < pipe->sink_count; i++) {
        if (pipe->sinks[i].kind == SINK_MARK) { /* a byte for every row of another variable */
            few.few = few.few && x->vars[pipe->sinks[i].rows_var].rows < x->settings->host_rows;
        }
    }
    if (few.few) {
        step_inputs(x->program, step, is_few, &few);
    }
    return few.few;
}

/* The same before the step's inputs are there, by the rows they had when the program ran last. */
struct few_expected {
    const struct exec *x;
    const i64 *rows;
    const b8 *on_host;
    bool few;
};
static bool is_expected_few(const struct few_expected *f, u32 var) {
    return past_rows(f->x->past, var) >= 0 && f->rows[var] < f->x->settings->host_rows;
}

static void expects_few(void *arg, u32 var) {
    struct few_expected *f = arg;
    f->few = f->few && (f->on_host[var] || is_expected_few(f, var));
}

static bool reads_few(const struct few_expected *f, const struct step *step) {
    const struct source *source = step->kind == STEP_PIPELINE ? &step->pipeline->source : NULL;
    if (source && source->kind == SOURCE_TABLE) {
        return f->x->versions[source->ref]->rows < f->x->settings->host_rows;
    }
    bool rows = source ? source->kind == SOURCE_VAR : step->kind != STEP_RANK;
    return rows && is_expected_few(f, source ? source->ref : step->src);
}

bool choose_expects_host(const struct exec *x, const struct step *step, const i64 *rows, const b8 *on_host) {
    struct few_expected few = {x, rows, on_host, false};
    const struct pipeline *pipe = step->pipeline;
    bool stays = step->kind == STEP_LIMIT && on_host[step->src];
    if (stays || choose_host_always(x, step)) {
        return true;
    }
    few.few = reads_few(&few, step) && (step->kind != STEP_BUILD || on_host[step->src]);
    for (u32 i = 0; few.few && step->kind == STEP_PIPELINE && i < pipe->sink_count; i++) {
        if (pipe->sinks[i].kind == SINK_MARK) {
            few.few = is_expected_few(&few, pipe->sinks[i].rows_var);
        }
    }
    if (few.few) {
        step_inputs(x->program, step, expects_few, &few);
    }
    return few.few;
}

/* Windows that make text, or call what remembers the call before. */
static bool host_window(const struct step *step) {
    bool host = false;
    for (u32 i = 0; i < step->window_count; i++) {
        u8 form = step->windows[i].form;
        host = host || form == WINDOW_TEXT || form == WINDOW_SERIAL;
    }
    return host;
}

/* Groups, which a device may be unable to finish. */
static bool reads_groups(const struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
    return pipe && pipe->source.kind == SOURCE_VAR &&
           x->program->vars[pipe->source.ref].kind == VAR_AGG;
}

/* HOST_COUNT: others may run it, where its rows are not better left alone. */
static u32 host_always(const struct exec *x, const struct step *step) {
    u32 at = 0;
    if (step->kind == STEP_PIPELINE) {
        at = host_pipeline(x, step->pipeline);
        ASSERT(at == HOST_COUNT || host_steps[at].kind == STEP_PIPELINE);
        return at;
    }
    while (at < HOST_COUNT && host_steps[at].kind != step->kind) {
        at++;
    }
    bool may = at == HOST_LIMIT || (at == HOST_WINDOW && !host_window(step)) ||
               (at == HOST_ROWS && x->vars[step->src].rows <= DEVICE_INDEX_ROWS_MOST) ||
               (at == HOST_RANK && program_interner(x->program, step->dict) != NO_VAR) ||
               (at == HOST_FOLD && step->fold != AGG_STRING_AGG) ||
               (at == HOST_KEPT && !variable_graph(&x->vars[step->src]) && !x->vars[step->src].levels);
    return may ? HOST_COUNT : at;
}

bool choose_host_always(const struct exec *x, const struct step *step) {
    return host_always(x, step) != HOST_COUNT;
}

/* Why only the host runs it; NULL when others may. */
static const char *host_only(const struct exec *x, const struct step *step) {
    u32 at = host_always(x, step);
    if (at == HOST_COUNT && step->kind == STEP_LIMIT) {
        const struct variable *v = &x->vars[step->src];
        at = v->copy && !v->on_host ? HOST_COUNT : HOST_LIMIT;
    }
    if (at == HOST_COUNT && step->kind == STEP_RANK) {
        const struct variable *v = &x->vars[program_interner(x->program, step->dict)];
        at = v->copy && !v->on_host ? HOST_COUNT : HOST_RANK;
    }
    at = at == HOST_COUNT && has_few(x, step) ? HOST_FEW : at;
    return at < HOST_COUNT ? host_steps[at].text : NULL;
}

/* Which of `count` devices mix_devices deals a step to. The rows it reads count too: a step of a
 * loop meets all. */
static u32 dealt_to(const struct exec *x, const struct step *step, u32 count) {
    const struct pipeline *pipe = step->pipeline;
    u64 made = pipe ? pipe->sink_count ? pipe->sinks[0].var : 0 : step->dst;
    u64 rows = pipe && pipe->source.kind == SOURCE_VAR ? (u64)x->vars[pipe->source.ref].rows : 0;
    u64 hash = hash_u64(hash_u64((u64)x->settings->mix_devices + made) + rows);
    return (u32)((hash >> 32) * count >> 32);
}

/* Those of a list that can run a step. */
struct able {
    u32 count;
    u32 numbers[DEVICES_MOST];
    const struct device *refused; /* the last that cannot */
    const char *refusal;
};

/* `name` NULL: whatever it is called. Of workers that share a memory the first stands for all, unless
 * steps are dealt out. */
static void find_able(struct exec *x, const struct run_devices *devices, const struct step *step,
                      const char *name, struct able *out) {
    *out = (struct able){0};
    for (u32 i = 0; i < devices->count; i++) {
        struct device *device = devices->list[i];
        bool alike = i > 0 && device->space == devices->list[i - 1]->space;
        if ((name && strcmp(device->name, name) != 0) || (alike && !x->settings->mix_devices)) {
            continue;
        }
        const char *refusal = device->refuses ? device->refuses(device, x, step) : NULL;
        if (refusal) {
            out->refused = device;
            out->refusal = refusal;
        } else {
            out->numbers[out->count++] = i;
        }
    }
}

static u32 cheapest(struct exec *x, const struct run_devices *devices, const struct step *step,
                    const struct able *able) {
    u32 best = 0;
    f64 least = INFINITY;
    for (u32 i = 0; i < able->count; i++) {
        struct step_cost cost = auto_cost(x, devices->list[able->numbers[i]], step);
        best = cost.ns + cost.move_ns < least ? i : best;
        least = MIN_OF(least, cost.ns + cost.move_ns);
    }
    return able->numbers[best];
}

const char *why_printed(struct exec *x, u32 step_no, const char *format, ...) {
    char text[1024];
    const char *had = x->metrics[step_no].why;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(len >= 0);
    return had && strcmp(had, text) == 0 ? had : arena_sv(exec_arena(x), sv_from(text)).ptr;
}

/* The session asks for a kind of device other than the host's. */
static FALLIBLE choose_named(struct exec *x, const struct run_devices *devices, u32 step_no,
                             const struct step *step, const char *name, struct chosen *out) {
    struct able able;
    const char *host = host_only(x, step);
    if (devices->count < 2) {
        FAIL(x->err, NO_DEVICE, "no usable %s: %s", setting_device_title(x->settings),
             devices->alone ? devices->alone : "none found");
    }
    *out = (struct chosen){.why = host};
    if (host) {
        return ERR_OK;
    }
    find_able(x, devices, step, name, &able);
    if (!able.count && reads_groups(x, step)) {
        out->why = host_steps[HOST_GROUPS].text;
        return ERR_OK;
    }
    if (!able.count) {
        error_set(x->err, ERR_NOT_SUPPORTED, -1, "%s cannot run on the %s: %s", step_label(step),
                  able.refused ? able.refused->title : name,
                  able.refusal ? able.refusal : "there is none");
        error_hint(x->err, "SET device = auto runs such steps on the CPU.");
        return ERR_NOT_SUPPORTED;
    }
    out->number = able.count > 1 ? cheapest(x, devices, step, &able) : able.numbers[0];
    out->why = why_printed(x, step_no, "device = %s", name);
    return ERR_OK;
}

static void choose_auto(struct exec *x, const struct run_devices *devices, u32 step_no,
                        const struct step *step, struct chosen *out) {
    struct able able;
    *out = (struct chosen){.why = devices->alone ? devices->alone : "there is no other device"};
    if (devices->count < 2) {
        return;
    }
    out->why = host_only(x, step);
    if (out->why) {
        return;
    }
    if (!x->settings->mix_devices) {
        auto_choose(x, devices, step_no, step, out);
        return;
    }
    find_able(x, devices, step, NULL, &able);
    if (able.count < 2) {
        out->why = why_printed(x, step_no, "the %s cannot: %s", able.refused->title, able.refusal);
        return;
    }
    *out = (struct chosen){.number = able.numbers[dealt_to(x, step, able.count)],
                           .why = "mix_devices"};
}

const char *choose_without_room(const struct exec *x, const struct step *step) {
    bool insists = step->kind == STEP_PIPELINE && setting_needs_cache(x->settings);
    return insists ? NULL : host_steps[HOST_ROOM].text;
}

wf_status choose_device(struct exec *x, const struct run_devices *devices, u32 step_no,
                        const struct step *step, struct chosen *out) {
    const char *name = setting_device(x->settings);
    if (!name) {
        choose_auto(x, devices, step_no, step, out);
        out->alone = out->why == host_steps[HOST_FEW].text;
        if (setting_shares(x->settings)) {
            hybrid_choose(x, devices, step_no, step, out);
        }
        return ERR_OK;
    }
    if (strcmp(name, devices->list[0]->name) != 0) {
        TRY(choose_named(x, devices, step_no, step, name, out));
        out->alone = out->why == host_steps[HOST_FEW].text;
        return ERR_OK;
    }
    *out = (struct chosen){.why = why_printed(x, step_no, "device = %s", name)};
    return ERR_OK;
}

u32 device_take(const struct run_devices *devices, u32 number) {
    bool taken = false;
    u32 best = number;
    while (!taken) {
        i32 least = atomic_load(&devices->list[best]->busy);
        for (u32 i = 1; i < devices->count && number > 0; i++) {
            const struct device *device = devices->list[i];
            i32 busy = atomic_load(&device->busy);
            if (device->space == devices->list[number]->space && busy < least) {
                least = busy;
                best = i;
            }
        }
        /* Another statement may have taken it meanwhile. */
        taken = atomic_compare_exchange_strong(&devices->list[best]->busy, &least, least + 1);
    }
    return best;
}

void device_give(const struct run_devices *devices, u32 number) {
    atomic_fetch_sub(&devices->list[number]->busy, 1);
}

/* Dictionary - 1 of a column or register: where interned texts are. */
static void dict_input(const struct program *program, u32 dict, void (*visit)(void *arg, u32 var),
                       void *arg) {
    u32 var = dict ? program_interner(program, dict - 1) : NO_VAR;
    if (var != NO_VAR) {
        visit(arg, var);
    }
}

static void pipeline_inputs(const struct program *program, const struct pipeline *pipe,
                            void (*visit)(void *arg, u32 var), void *arg) {
    if (pipe->source.kind == SOURCE_VAR || pipe->source.kind == SOURCE_SERIES) {
        visit(arg, pipe->source.ref);
    } else if (pipe->source.kind == SOURCE_DICT) {
        dict_input(program, pipe->source.ref + 1, visit, arg);
    }
    for (u32 i = 0; i < pipe->sink_count; i++) {
        for (u32 k = 0; k < pipe->sinks[i].top_key_count; k++) {
            dict_input(program, pipe->sinks[i].cols[pipe->sinks[i].top_keys[k].col].dict, visit, arg);
        }
        if (pipe->sinks[i].append) {
            visit(arg, pipe->sinks[i].var);
        }
        if (pipe->sinks[i].append && pipe->sinks[i].set_var) {
            visit(arg, pipe->sinks[i].set_var - 1);
        }
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        if (var != NO_VAR) {
            visit(arg, var);
        }
    }
}

void step_inputs(const struct program *program, const struct step *step,
                 void (*visit)(void *arg, u32 var), void *arg) {
    if (step->kind == STEP_PIPELINE) {
        pipeline_inputs(program, step->pipeline, visit, arg);
        return;
    }
    if (step->kind == STEP_RANK) {
        dict_input(program, step->dict + 1, visit, arg);
        return;
    }
    const u32 *dicts = program->vars[step->src].dicts;
    visit(arg, step->src);
    for (u32 k = 0; dicts && step->kind == STEP_SORT && k < step->key_count; k++) {
        dict_input(program, dicts[step->keys[k].col], visit, arg);
    }
    for (u32 c = 0; dicts && step->kind == STEP_RESULT && c < program->col_count; c++) {
        dict_input(program, dicts[c], visit, arg);
    }
}

void step_outputs(const struct step *step, void (*visit)(void *arg, u32 var), void *arg) {
    const struct pipeline *pipe = step->pipeline;
    for (u32 i = 0; step->kind == STEP_PIPELINE && i < pipe->sink_count; i++) {
        const struct sink *sink = &pipe->sinks[i];
        visit(arg, sink->var);
        if (sink->set_var) {
            visit(arg, sink->set_var - 1);
        }
        if (sink->kind == SINK_LUT && sink->null_var != NO_VAR) {
            visit(arg, sink->null_var);
        }
        if (sink->kind == SINK_LUT && sink->fault_var != NO_VAR) {
            visit(arg, sink->fault_var);
        }
    }
    if (step->kind == STEP_SORT || step->kind == STEP_SPLIT) {
        visit(arg, step->src);
    } else if (step->kind != STEP_PIPELINE && step->kind != STEP_RESULT) {
        visit(arg, step->dst);
        if (step->kind == STEP_RANK && step->dst2 != NO_VAR) {
            visit(arg, step->dst2);
        }
    }
}

/* choose.c: where a step runs, and why.
 *
 * There is no silent fallback: under `device = gpu` a step the card refuses is an error that names
 * operator and reason. What only ever runs on the host (sorting, ranking, handing over the result,
 * pipelines over dictionaries, aggregation states or literal rows, which are small by nature, those
 * that must keep the order of their rows, and those that read a file, where parsing is most of the
 * work) is recorded as a host step. Under auto the cheaper estimate wins. See decision 0005. */
#include "run/run_int.h"
#include "store/scan.h"

const char *step_label(const struct step *step) {
    return step->label ? step->label : "step";
}

/* Why a step only ever runs on the host; NULL when it does not. */
static const char *host_reason(const struct exec *x, const struct step *step) {
    static const char *const host = "host step";
    if (step->kind != STEP_PIPELINE) {
        return step->kind != STEP_BUILD ? host : NULL;
    }
    const struct scan_provider *provider = exec_provider(x, step->pipeline);
    if (provider) {
        return provider->what;
    }
    const struct source *source = &step->pipeline->source;
    if (source->kind == SOURCE_VAR) {
        const struct var *var = &x->program->vars[source->ref];
        return var->kind == VAR_AGG || var->const_rows > 0 || var->in_order ? host : NULL;
    }
    return source->kind == SOURCE_DICT || source->kind == SOURCE_ONE ? host : NULL;
}

static FALLIBLE choose_gpu(struct exec *x, const struct run_devices *devices,
                           const struct step *step, struct device **out, const char **out_why) {
    if (!devices->gpu) {
        FAIL(x->err, NO_GPU, "no usable GPU: %s", devices->no_gpu ? devices->no_gpu : "none found");
    }
    const char *host = host_reason(x, step);
    if (host) {
        *out = devices->cpu;
        *out_why = host;
        return ERR_OK;
    }
    const char *refusal = devices->gpu->refuses(devices->gpu, x, step);
    if (refusal) {
        error_set(x->err, ERR_NOT_SUPPORTED, -1, "%s cannot run on the GPU: %s", step_label(step),
                  refusal);
        error_hint(x->err, "SET device = auto runs such steps on the CPU.");
        return ERR_NOT_SUPPORTED;
    }
    *out = devices->gpu;
    *out_why = "device = gpu";
    return ERR_OK;
}

static struct duration estimate_text(f64 ns) {
    return duration_of(ns < 9e18 ? (i64)ns : I64_MAX);
}

/* Which device mix_devices deals a step to. The rows it reads count too: a step of a loop meets
 * both. */
static bool dealt_to_gpu(const struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->pipeline;
    u64 made = pipe ? pipe->sink_count ? pipe->sinks[0].var : 0 : step->dst;
    u64 rows = pipe && pipe->source.kind == SOURCE_VAR ? (u64)x->vars[pipe->source.ref].rows : 0;
    u64 hash = hash_u64(hash_u64((u64)x->settings->mix_devices + made) + rows);
    return hash >> 63;
}

static void choose_auto(struct exec *x, const struct run_devices *devices, const struct step *step,
                        struct device **out, const char **out_why) {
    *out = devices->cpu;
    if (!devices->gpu) {
        *out_why = devices->no_gpu ? devices->no_gpu : "no GPU";
        return;
    }
    const char *host = host_reason(x, step);
    if (host) {
        *out_why = host;
        return;
    }
    const char *refusal = devices->gpu->refuses(devices->gpu, x, step);
    if (refusal) {
        *out_why = arena_printf(x->arena, "the GPU cannot: %s", refusal);
        return;
    }
    if (x->settings->mix_devices) {
        *out = dealt_to_gpu(x, step) ? devices->gpu : devices->cpu;
        *out_why = "mix_devices";
        return;
    }
    f64 cpu_ns = devices->cpu->estimate_ns(devices->cpu, x, step);
    f64 gpu_ns = devices->gpu->estimate_ns(devices->gpu, x, step);
    *out = gpu_ns < cpu_ns ? devices->gpu : devices->cpu;
    *out_why = arena_printf(x->arena, "estimated: cpu %s, gpu %s", estimate_text(cpu_ns).text,
                            estimate_text(gpu_ns).text);
}

wf_status choose_device(struct exec *x, const struct run_devices *devices, const struct step *step,
                        struct device **out, const char **out_why) {
    switch (x->settings->device) {
    case DEVICE_CPU:
        *out = devices->cpu;
        *out_why = "device = cpu";
        return ERR_OK;
    case DEVICE_GPU:
        return choose_gpu(x, devices, step, out, out_why);
    default:
        choose_auto(x, devices, step, out, out_why);
        return ERR_OK;
    }
}

static void pipeline_inputs(const struct pipeline *pipe, void (*visit)(void *arg, u32 var),
                            void *arg) {
    if (pipe->source.kind == SOURCE_VAR || pipe->source.kind == SOURCE_SERIES) {
        visit(arg, pipe->source.ref);
    }
    for (u32 i = 0; i < pipe->sink_count; i++) {
        if (pipe->sinks[i].append) {
            visit(arg, pipe->sinks[i].var);
        }
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        if (var != NO_VAR) {
            visit(arg, var);
        }
    }
}

void step_inputs(const struct step *step, void (*visit)(void *arg, u32 var), void *arg) {
    if (step->kind == STEP_PIPELINE) {
        pipeline_inputs(step->pipeline, visit, arg);
    } else if (step->kind != STEP_RANK) {
        visit(arg, step->src);
    }
}

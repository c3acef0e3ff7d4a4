/* gpu_device.c: the CUDA device as the runtime sees it: opening, resetting, entering, launching,
 * describing.
 *
 * The device is opened on first use only, so a session that never touches the GPU never initialises
 * CUDA. Every entry takes the lock and makes the context current. An error that poisons the context
 * marks the device broken: the statement fails with the driver's words, and the next entry throws
 * everything away, resets the primary context and starts afresh, with compiled code kept. The
 * process and the database live on. See decision 0008. */
#include "gpu/gpu_int.h"
#include "codes/control.h"
#include "gpu/gpu_prim.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu_text.h"

#define SLAB_BYTES (256LL << 20)
#define SHARED_UNASKED (40LL << 10) /* 48 KB, and a margin for what the driver takes itself */

wf_status gpu_check(struct gpu *g, int code, const char *what, struct error *err) {
    if (code == CU_OK) {
        return ERR_OK;
    }
    const char *name = NULL;
    if (g->api->error_name(code, &name) || !name) {
        name = "unknown error";
    }
    if (code == CU_OUT_OF_MEMORY) {
        FAIL(err, DEVICE_MEMORY, "the CUDA driver is out of memory (%s)", name);
    }
    g->broken = 1;
    const char *call = strstr(what, "->api->");
    call = call ? call + 7 : what;
    FAIL(err, GPU, "CUDA error %d (%s) in %.*s", code, name, (int)strcspn(call, "("), call);
}

/* --- opening and closing --- */

static FALLIBLE open_context(struct gpu *g, struct error *err) {
    const struct cu_api *api = g->api;
    CU(api->ctx_retain(&g->ctx, g->ordinal));
    CU(api->ctx_set(g->ctx));
    /* Columns read after a filter touch scattered 32-byte sectors; by default the card fetches them
     * in pairs. */
    (void)api->ctx_set_limit(CU_LIMIT_FETCH_BYTES, 32);
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        CU(api->stream_create(&g->streams[s], CU_STREAM_NON_BLOCKING));
        CU(api->event_create(&g->slot_done[s], CU_EVENT_NO_TIMING));
        CU(api->event_create(&g->slot_down[s], CU_EVENT_NO_TIMING));
    }
    CU(api->stream_create(&g->down, CU_STREAM_NON_BLOCKING));
    gpu_host_attach(g->host, g->ctx);
    size_t free_bytes = 0;
    size_t total = 0;
    CU(api->mem_info(&free_bytes, &total));
    g->total_bytes = (i64)total;
    i64 most = (i64)(free_bytes / 10 * 9);
    g->heap.budget_bytes = g->budget_asked > 0 ? MIN_OF(g->budget_asked, most) : most;
    g->heap.unit_bytes = MIN_OF(SLAB_BYTES, ALIGN_UP(g->heap.budget_bytes / 16 + 1, 2 << 20));
    return ERR_OK;
}

static void drop_event(struct gpu *g, void **event) {
    if (*event) {
        (void)g->api->event_destroy(*event);
    }
    *event = NULL;
}

static void drop_stream(struct gpu *g, void **stream) {
    if (*stream) {
        (void)g->api->stream_destroy(*stream);
    }
    *stream = NULL;
}

static void close_context(struct gpu *g) {
    const struct cu_api *api = g->api;
    if (!g->ctx) {
        return;
    }
    (void)api->ctx_set(g->ctx);
    (void)api->ctx_synchronize();
    gpu_codes_unload(g);
    gpu_unpin_all(g);
    gpu_cache_fini(g);
    gpu_host_detach(g->host);
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        gpu_heap_free(g, g->slots[s]);
        gpu_heap_free(g, g->rows[s]);
        g->slots[s] = g->rows[s] = NULL;
        drop_event(g, &g->slot_done[s]);
        drop_event(g, &g->slot_down[s]);
        drop_stream(g, &g->streams[s]);
    }
    drop_stream(g, &g->down);
    gpu_heap_free(g, g->args_block);
    g->args_block = NULL;
    memset(g->fits, 0, sizeof g->fits);
    gpu_pinned_free(g, &g->args);
    gpu_pinned_free(g, &g->reports);
    for (i64 e = 0; e < g->event_count; e++) {
        (void)api->event_destroy(g->events[e]);
    }
    g->event_count = 0;
    gpu_heap_fini(g, true);
    (void)api->ctx_release(g->ordinal);
    g->ctx = NULL;
}

static FALLIBLE revive(struct gpu *g, struct error *err) {
    close_context(g);
    (void)g->api->ctx_reset(g->ordinal);
    wf_status status = open_context(g, err);
    g->broken = status != ERR_OK;
    return status;
}

wf_status gpu_enter(struct gpu *g, struct error *err) {
    mutex_lock(&g->lock);
    wf_status status =
        g->broken ? revive(g, err) : gpu_check(g, g->api->ctx_set(g->ctx), "ctx_set", err);
    g->run_no++;
    if (status) {
        mutex_unlock(&g->lock);
    }
    return status;
}

void gpu_leave(struct gpu *g) {
    mutex_unlock(&g->lock);
}

wf_status gpu_event(struct gpu *g, i64 n, void **out, struct error *err) {
    while (g->event_count <= n) {
        if (g->event_count == g->event_cap) {
            i64 cap = MAX_OF(g->event_cap * 2, 16);
            void **grown = realloc(g->events, (size_t)cap * sizeof *grown);
            if (!grown) {
                return memory_refused(g->mem, err, cap * 8);
            }
            g->events = grown;
            g->event_cap = cap;
        }
        CU(g->api->event_create(&g->events[g->event_count], 0));
        g->event_count++;
    }
    *out = g->events[n];
    return ERR_OK;
}

wf_status gpu_launch(struct gpu *g, void *function, i64 blocks, u32 threads, i64 shared_bytes,
                     void *stream, const void *args, struct error *err) {
    void *params[1] = {(void *)(size_t)args};
    CU(g->api->launch(function, (unsigned)MAX_OF(blocks, 1), 1, 1, threads, 1, 1,
                      (unsigned)shared_bytes, stream, params, NULL));
    return ERR_OK;
}

wf_status gpu_blocks_per_sm(struct gpu *g, void *function, u32 threads, i64 shared, i32 *out,
                            struct error *err) {
    u64 slot = hash_u64((u64)(size_t)function + (u64)shared * 2 + threads) % GPU_FITS;
    struct gpu_fit *fit = &g->fits[slot];
    if (fit->function != function || fit->threads != threads || fit->shared_bytes != shared) {
        int per_sm = 1;
        int arrays = 0;
        CU(g->api->func_attribute(&arrays, CU_FUNC_SHARED_BYTES, function));
        if (shared + arrays > SHARED_UNASKED) {
            CU(g->api->func_set_attribute(function, CU_FUNC_MAX_DYNAMIC_SHARED,
                                          g->shared_max - arrays));
        }
        CU(g->api->occupancy(&per_sm, function, (int)threads, (size_t)shared));
        *fit = (struct gpu_fit){function, threads, MAX_OF(per_sm, 1), shared};
    }
    *out = fit->per_sm;
    return ERR_OK;
}

/* --- what the runtime calls --- */

static const char *gpu_refuses(struct device *dev, struct exec *x, const struct step *step) {
    struct gpu *g = dev->self;
    if (step->kind == STEP_BUILD) {
        const struct var *rows = &x->program->vars[step->src];
        return rows->kinds[step->col] == KIND_I64 ? NULL : gpu_refusal(x->arena, REFUSE_KEY, "");
    }
    if (step->kind != STEP_PIPELINE) {
        return gpu_refusal(x->arena, step->kind == STEP_SORT ? REFUSE_SORT : REFUSE_STEP, "");
    }
    struct gpu_plan plan;
    const char *refusal =
        gpu_plan_make(x->arena, x->program, step->pipeline, x->counts_rows, &plan);
    i64 beside = 4096 + 2 * plan.tile_rows; /* a kernel's own arrays, and where rows go */
    if (!refusal && plan.slot_bytes + beside > g->shared_max) {
        return gpu_refusal(x->arena, REFUSE_SHARED,
                           arena_printf(x->arena, "%lld", plan.slot_bytes));
    }
    if (!refusal && plan.woven_op && x->settings->gpu_code == CODE_VM) {
        return gpu_refusal(x->arena, REFUSE_CODE_VM, plan.woven_op);
    }
    if (!refusal && plan.woven_op && !g->api->has_rtc) {
        return gpu_refusal(x->arena, REFUSE_COMPILER, plan.woven_op);
    }
    return refusal;
}

/* Whether this card holds it already. */
static bool is_here(const struct gpu *g, const struct variable *v) {
    return v->copy && v->copy_space == g->device.space;
}

static f64 source_ns(struct gpu *g, struct exec *x, const struct pipeline *pipe,
                     const struct gpu_plan *plan) {
    f64 moved = 0;
    f64 read = 0;
    const struct source *source = &pipe->source;
    if (source->kind == SOURCE_VAR) {
        const struct variable *v = &x->vars[source->ref];
        for (u32 c = 0; c < source->col_count; c++) {
            f64 bytes =
                (f64)v->rows * kind_bytes[x->program->vars[source->ref].kinds[source->cols[c]]];
            read += plan->col_used[c] ? bytes : 0;
        }
        moved = is_here(g, v) ? 0 : read;
    } else if (source->kind == SOURCE_TABLE) {
        const struct table_version *version = x->versions[source->ref];
        for (i64 t = 0; t < version->tablet_count; t++) {
            for (u32 c = 0; c < source->col_count; c++) {
                struct seg_bytes seg = gpu_segment_bytes(version->tablets[t], source->cols[c],
                                                         version->tablet_rows[t]);
                f64 bytes = plan->col_used[c] ? (f64)seg.total_bytes : 0;
                bool here = gpu_cache_find(g, version->tablets[t]->id, source->cols[c]) != NULL;
                read += bytes;
                moved += here ? 0 : bytes;
            }
        }
    }
    return moved / 50.0 + read / 3500.0; /* GB/s is bytes per ns */
}

/* What a step that needs a woven kernel waits for: worth it for many rows only. */
static f64 compile_ns(struct exec *x, const struct pipeline *pipe, const struct gpu_plan *plan) {
    const struct source *source = &pipe->source;
    i64 rows = source->kind == SOURCE_VAR ? x->vars[source->ref].rows : 0;
    if (source->kind == SOURCE_TABLE) {
        const struct table_version *version = x->versions[source->ref];
        for (i64 t = 0; t < version->tablet_count; t++) {
            rows += version->tablet_rows[t];
        }
    }
    return plan->woven_op && rows < WEAVE_LEAST_ROWS ? 1e9 : 0;
}

static f64 gpu_estimate(struct device *dev, struct exec *x, const struct step *step) {
    struct gpu *g = dev->self;
    f64 ns = 30000;
    if (step->kind == STEP_BUILD) {
        const struct variable *v = &x->vars[step->src];
        return ns + (f64)v->rows * (is_here(g, v) ? 0.1 : 0.3);
    }
    struct gpu_plan plan; /* it was asked before whether it can run here */
    ASSERT(step->kind == STEP_PIPELINE);
    const char *refusal = gpu_plan_make(x->arena, x->program, step->pipeline, false, &plan);
    ASSERT(!refusal);
    UNUSED(refusal);
    ns += compile_ns(x, step->pipeline, &plan);
    mutex_lock(&g->lock);
    ns += source_ns(g, x, step->pipeline, &plan);
    mutex_unlock(&g->lock);
    for (i64 i = 0; i < plan.indexes.count; i++) {
        const struct variable *v = &x->vars[plan.indexes.items[i]];
        ns += is_here(g, v) || !v->index ? 0 : (f64)v->index->slot_count * 12 / 7.0;
    }
    return ns;
}

static FALLIBLE gpu_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step) {
    struct gpu *g = dev->self;
    TRY(gpu_enter(g, x->err));
    wf_status status;
    if (step->kind == STEP_PIPELINE) {
        status = gpu_run_pipeline(g, x, step_no, step);
    } else if (step->kind == STEP_BUILD) {
        status = gpu_run_build(g, x, step_no, step);
    } else {
        status = error_set(x->err, ERR_NOT_SUPPORTED, -1, "this step does not run on the GPU");
    }
    gpu_leave(g);
    return status;
}

static FALLIBLE gpu_fetch(struct device *dev, struct exec *x, u32 var) {
    struct gpu *g = dev->self;
    TRY(gpu_enter(g, x->err));
    wf_status status = gpu_var_fetch(g, x, var);
    if (status) {
        (void)g->api->ctx_synchronize();
    }
    gpu_leave(g);
    return status;
}

static void gpu_close(struct device *dev) {
    struct gpu *g = dev->self;
    close_context(g);
    gpu_codes_fini(g, false);
    mutex_fini(&g->heap.lock);
    mutex_fini(&g->lock);
    free(g->events);
    gpu_host_close(g->host);
    mem_free(g->mem, g, (i64)sizeof *g);
}

/* --- opening --- */

i32 gpu_count(char why[300]) {
    const struct cu_api *api = cu_api_load(why);
    if (!api) {
        return 0;
    }
    int count = 0;
    int code = api->init(0);
    code = code ? code : api->device_count(&count);
    if (code != CU_OK) {
        const char *name = NULL;
        bool named = api->error_name(code, &name) == CU_OK && name;
        snprintf(why, 300, "the CUDA driver does not start: error %d (%.100s)", code,
                 named ? name : "unknown error");
    } else if (count < 1) {
        snprintf(why, 300, "the driver finds no GPU");
    }
    return code == CU_OK ? count : 0;
}

static FALLIBLE find_chip(struct gpu *g, i32 number, struct error *err) {
    const struct cu_api *api = g->api;
    int count = 0;
    CU(api->init(0));
    CU(api->device_count(&count));
    if (count < 1) {
        FAIL(err, NO_DEVICE, "the driver finds no GPU");
    }
    CU(api->device_get(&g->ordinal, number));
    CU(api->device_name(g->chip_name, (int)sizeof g->chip_name, g->ordinal));
    int major = 0;
    int minor = 0;
    CU(api->device_attribute(&g->sm_count, CU_ATTR_SM_COUNT, g->ordinal));
    CU(api->device_attribute(&major, CU_ATTR_MAJOR, g->ordinal));
    CU(api->device_attribute(&minor, CU_ATTR_MINOR, g->ordinal));
    CU(api->device_attribute(&g->shared_max, CU_ATTR_SHARED_OPTIN, g->ordinal));
    CU(api->device_attribute(&g->l2_bytes, CU_ATTR_L2_BYTES, g->ordinal));
    g->chip = major * 10 + minor;
    if (g->chip < 70) {
        FAIL(err, NO_DEVICE, "%s is too old: compute capability %d.%d, 7.0 is needed", g->chip_name,
             major, minor);
    }
    return ERR_OK;
}

static bool has_code(const struct gpu *g) {
    return g->api->has_rtc || gpu_image_find(g, "vm_rows");
}

struct device *gpu_device_open(struct memory *host_mem, i64 budget_bytes, i32 number,
                               char why[300]) {
    const struct cu_api *api = cu_api_load(why);
    if (!api) {
        return NULL;
    }
    struct gpu *g = mem_alloc(host_mem, (i64)sizeof *g);
    if (!g) {
        snprintf(why, 300, "out of host memory");
        return NULL;
    }
    memset(g, 0, sizeof *g);
    g->api = api;
    g->mem = host_mem;
    g->budget_asked = budget_bytes;
    mutex_init(&g->lock);
    mutex_init(&g->heap.lock);
    struct error err;
    error_reset(&err);
    g->host = gpu_host_open(api, host_mem);
    wf_status status = g->host ? find_chip(g, number, &err) : memory_refused(host_mem, &err, 256);
    if (!status && !has_code(g)) {
        status = error_set(&err, ERR_NO_DEVICE, -1,
                           "NVRTC (libnvrtc.so) was not found and no kernels were built for sm_%d",
                           g->chip);
    }
    status = status ? status : open_context(g, &err);
    if (status) {
        snprintf(why, 300, "%.290s", err.message);
        close_context(g);
        gpu_host_close(g->host);
        mutex_fini(&g->heap.lock);
        mutex_fini(&g->lock);
        mem_free(host_mem, g, (i64)sizeof *g);
        return NULL;
    }
    gpu_codes_init(g);
    g->device = (struct device){.name = "gpu",
                                .title = "GPU",
                                .space = (u32)number + 1,
                                .self = g,
                                .prims = &gpu_prims,
                                .refuses = gpu_refuses,
                                .estimate_ns = gpu_estimate,
                                .run = gpu_run,
                                .fetch = gpu_fetch,
                                .close = gpu_close};
    return &g->device;
}

/* --- CALL gpu_cache, EXPLAIN (CUDA) --- */

wf_status gpu_cache_table(struct device *dev, struct table *table, struct table_version *version,
                          struct error *err) {
    struct gpu *g = dev->self;
    i64 moved = 0;
    TRY(gpu_enter(g, err));
    wf_status status = ERR_OK;
    for (i64 t = 0; !status && t < version->tablet_count; t++) {
        for (u32 c = 0; !status && c < table->col_count; c++) {
            struct cached *cached = NULL;
            status = gpu_cache_load(g, version->tablets[t], c, version->tablet_rows[t],
                                    g->streams[0], &cached, &moved, err);
        }
    }
    int code = g->api->stream_synchronize(g->streams[0]);
    status = status ? status : gpu_check(g, code, "stream_synchronize", err);
    gpu_leave(g);
    return status;
}

/* The layout of the first tablet, or of the variable, stands for all. */
static void explain_cols(const struct exec *x, const struct gpu_plan *plan,
                         struct weave_col *cols) {
    const struct source *source = &plan->pipe->source;
    for (u32 c = 0; c < source->col_count; c++) {
        cols[c] = (struct weave_col){SEG_I64, NULLS_NONE};
        if (source->kind == SOURCE_TABLE && x->versions[source->ref]->tablet_count > 0) {
            const struct tablet *tablet = x->versions[source->ref]->tablets[0];
            cols[c] = gpu_segment_form(&tablet->cols[source->cols[c]], 1);
        } else if (source->kind == SOURCE_SERIES) {
            cols[c].form = SEG_SERIES;
        } else if (source->kind == SOURCE_VAR) {
            cols[c] = gpu_kind_form(x->program->vars[source->ref].kinds[source->cols[c]], false);
        }
    }
}

static void explain_step(struct exec *x, const struct step *step, struct text *out) {
    struct gpu_plan plan;
    const char *refusal =
        gpu_plan_make(x->arena, x->program, step->pipeline, x->counts_rows, &plan);
    if (refusal) {
        text_print(out, "/* not on the GPU: %s */\n", refusal);
        return;
    }
    u32 col_count = step->pipeline->source.col_count;
    struct weave_col *cols = NEW_ARRAY(x->arena, struct weave_col, col_count + 1);
    struct weave_index *indexes = NEW_ARRAY(x->arena, struct weave_index, plan.indexes.count + 1);
    explain_cols(x, &plan, cols);
    for (u32 i = 0; i < step->pipeline->op_count; i++) {
        const struct op *op = &step->pipeline->ops[i];
        if (op_infos[op->code].roles[OPERAND_IMM] == ROLE_index) {
            indexes[plan.op_imm[i]] = (struct weave_index){1, op->code == OP_PROBE, 0};
        }
    }
    struct weave weave = {.plan = &plan, .cols = cols, .indexes = indexes};
    const struct sink *sink = plan.sink;
    weave.agg_form =
        sink->kind == SINK_AGG && sink->key != NO_REG && sink->key_bits > 16 ? AGG_HASH : AGG_DENSE;
    weave.agg_copies = weave.agg_form == AGG_DENSE && (sink->key == NO_REG || sink->key_bits <= 8);
    gpu_weave_text(&weave, out);
}

wf_status gpu_explain_cuda(struct device *dev, struct exec *x, struct text *out,
                           struct error *err) {
    UNUSED(dev);
    u32 step_no = 0;
    for (u32 b = 0; b < x->program->block_count; b++) {
        for (u32 s = 0; s < x->program->blocks[b].step_count; s++, step_no++) {
            const struct step *step = &x->program->blocks[b].steps[s];
            if (step->kind == STEP_PIPELINE) {
                text_print(out, "/* step %u: %s */\n", step_no, step->label ? step->label : "");
                explain_step(x, step, out);
                text_print(out, "\n");
            }
        }
    }
    return arena_check(x->arena, err);
}

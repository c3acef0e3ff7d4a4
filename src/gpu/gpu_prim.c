/* gpu_prim.c: primitives on the card: memory, the frame of a job, launches of templates.
 *
 * A job is inside its worker from begin to end. Time on the device is taken by two events: before the first
 * thing that is queued, and after the last; a number that the host fetches at the end, and waits
 * for, does not count. */
#include "gpu/gpu_prim.h"

#include <stdio.h>
#include <stdlib.h>

#include "prim/algebra.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/order.h"

enum { EVENT_FIRST, EVENT_LAST };

static FALLIBLE prim_alloc(const struct device *dev, struct exec *x, i64 bytes,
                           struct prim_block *out) {
    struct gpu *g = dev->self;
    struct gpu_block *block = NULL;
    TRY(gpu_enter(g, x->err));
    wf_status status = gpu_alloc(g, bytes, &block, x->err);
    if (gpu_leave(g) && status == ERR_DEVICE_MEMORY) { /* other workers' steps may hold it */
        error_reset(x->err);
        TRY(gpu_enter_alone(g, x->err));
        status = gpu_alloc(g, bytes, &block, x->err);
        gpu_leave(g);
    }
    if (!status) {
        *out = (struct prim_block){DEV(void *, block->addr), bytes, block};
    }
    return status;
}

static void prim_free(const struct device *dev, struct exec *x, struct prim_block *block) {
    struct gpu *g = dev->self;
    UNUSED(x);
    gpu_heap_free(g->card, block->handle);
    block->handle = NULL;
}

static bool prim_lost(const struct device *dev, const struct prim_block *block) {
    struct gpu *g = dev->self;
    const struct gpu_block *held = block->handle;
    mutex_lock(&g->card->lock);
    bool lost = g->card->broken || held->epoch != g->card->epoch;
    mutex_unlock(&g->card->lock);
    return lost;
}

static FALLIBLE copy(struct gpu *g, void *dst, bool dst_there, const void *src, bool src_there,
                     i64 bytes, struct error *err) {
    void *stream = g->streams[0];
    if (dst_there && src_there) {
        CU(g->api->copy_device((u64)(size_t)dst, (u64)(size_t)src, (size_t)bytes, stream));
    } else if (dst_there) {
        CU(g->api->copy_to_device((u64)(size_t)dst, src, (size_t)bytes, stream));
    } else {
        CU(g->api->copy_to_host(dst, (u64)(size_t)src, (size_t)bytes, stream));
    }
    CU(gpu_sync(g, stream));
    return ERR_OK;
}

static FALLIBLE prim_copy(const struct device *dev, struct exec *x, void *dst, bool dst_there,
                          const void *src, bool src_there, i64 bytes) {
    struct gpu *g = dev->self;
    TRY(gpu_enter(g, x->err));
    wf_status status = copy(g, dst, dst_there, src, src_there, bytes, x->err);
    gpu_leave(g);
    return status;
}

static FALLIBLE job_begin(struct prim_job *job) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    TRY(gpu_enter(g, err));
    job->begun = job->timed = 0;
    return ERR_OK;
}

wf_status gpu_prim_work(struct prim_job *job) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    void *first = NULL;
    job->timed = 0;
    if (!job->begun && !job->inside) {
        TRY(gpu_event(g, EVENT_FIRST, &first, err));
        CU(g->api->event_record(first, g->streams[0]));
        job->begun = 1;
    }
    return ERR_OK;
}

static FALLIBLE take_time(struct prim_job *job) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    if (!job->begun) {
        return ERR_OK;
    }
    TRY(gpu_event(g, EVENT_FIRST, &first, err));
    TRY(gpu_event(g, EVENT_LAST, &last, err));
    if (!job->timed) {
        CU(g->api->event_record(last, g->streams[0]));
    }
    CU(gpu_sync(g, g->streams[0]));
    CU(g->api->event_elapsed(&ms, first, last));
    job->device_ns = (i64)((f64)ms * 1e6);
    return ERR_OK;
}

static wf_status job_end(struct prim_job *job, wf_status status) {
    struct gpu *g = gpu_of(job);
    if (!job->measuring) {
        status = status ? status : take_time(job);
        job->kernel = gpu_widest_use(g);
        if (status) { /* whatever is queued still reads the arrays */
            (void)gpu_sync(g, g->streams[0]);
        }
    }
    gpu_leave(g);
    return status;
}

static FALLIBLE launch(struct prim_job *job, void *function, i64 blocks, u32 threads,
                       i64 shared_bytes, const void *args) {
    struct gpu *g = gpu_of(job);
    TRY(exec_check(job->x));
    TRY(gpu_prim_work(job));
    job->launches++;
    return gpu_launch(g, function, (struct gpu_grid){blocks, threads, shared_bytes}, g->streams[0],
                      args, job->x->err);
}

/* Templates that kernel.def lists, too: as steps of the engine call them. */
static const struct {
    const char *module, *kernel, *defines;
    enum kernel_no no;
} ahead[] = {{"split", "k_split_count", gpu_split_ahead, KERNEL_SPLIT_COUNT},
             {"split", "k_split_bins", gpu_split_ahead, KERNEL_SPLIT_BINS},
             {"split", "k_split", gpu_split_ahead, KERNEL_SPLIT}};

/* Lines before a template's own, for measuring variants of it: WARPFOX_PRIM_DEFINES is a list such
 * as "WF_MIN_BLOCKS=3". */
static FALLIBLE find_function(struct prim_job *job, const struct gpu_template *code, void **out) {
    const char *given = getenv("WARPFOX_PRIM_DEFINES");
    for (i32 i = 0; !given && i < COUNT_OF(ahead); i++) {
        if (!strcmp(code->kernel, ahead[i].kernel) && !strcmp(code->module, ahead[i].module) &&
            !strcmp(code->defines, ahead[i].defines)) {
            return gpu_kernel(gpu_of(job)->card, ahead[i].no, job->x, out, job->x->err);
        }
    }
    char lines[1900];
    size_t used = 0;
    while (given && *given && used < sizeof lines / 2) {
        size_t word = strcspn(given, ",");
        size_t name = strcspn(given, "=,");
        used += (size_t)snprintf(lines + used, sizeof lines - used, "#define %.*s %.*s\n",
                                 (int)name, given, name < word ? (int)(word - name - 1) : 0,
                                 given + name + (name < word));
        given += word + (given[word] == ',');
    }
    const char *defines = code->defines;
    if (used && used + strlen(defines) < sizeof lines) {
        snprintf(lines + used, sizeof lines - used, "%s", defines);
        defines = lines;
    }
    return gpu_template_function(gpu_of(job)->card, job->x, code->module, defines, code->kernel,
                                 out);
}

/* `resident`: no more blocks than the device holds at once. */
static FALLIBLE launch_code(struct prim_job *job, const struct gpu_template *code, i64 blocks,
                            bool resident, u32 threads, i64 shared_bytes, const void *args) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct gpu *g = gpu_of(job);
    void *function = NULL;
    i32 fit = 0;
    TRY(find_function(job, code, &function));
    TRY(gpu_blocks_per_sm(g, function, threads, shared_bytes, &fit, job->x->err));
    i64 most = resident ? (i64)fit * g->card->sm_count : blocks;
    return launch(job, function, MIN_OF(blocks, most), threads, shared_bytes, args);
}

wf_status gpu_prim_launch(struct prim_job *job, const struct gpu_template *code, i64 most,
                          u32 threads, i64 shared_bytes, const void *args) {
    return launch_code(job, code, most, true, threads, shared_bytes, args);
}

wf_status gpu_prim_launch_all(struct prim_job *job, const struct gpu_template *code, i64 blocks,
                              u32 threads, i64 shared_bytes, const void *args) {
    return launch_code(job, code, blocks, false, threads, shared_bytes, args);
}

wf_status gpu_prim_launch_fixed(struct prim_job *job, enum kernel_no kernel,
                                const struct gpu_template *code, i64 blocks, u32 threads,
                                const void *args) {
    void *function = NULL;
    if (job->measuring || getenv("WARPFOX_PRIM_DEFINES")) {
        return launch_code(job, code, blocks, false, threads, 0, args);
    }
    TRY(gpu_kernel(gpu_of(job)->card, kernel, job->x, &function, job->x->err));
    return launch(job, function, blocks, threads, 0, args);
}

wf_status gpu_prim_fill(struct prim_job *job, void *dst, u8 value, i64 bytes) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    if (!job->measuring && bytes > 0) {
        TRY(gpu_prim_work(job));
        CU(g->api->set_bytes((u64)(size_t)dst, value, (size_t)bytes, g->streams[0]));
    }
    return ERR_OK;
}

wf_status gpu_prim_move(struct prim_job *job, void *dst, const void *src, i64 bytes) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    if (!job->measuring && bytes > 0) {
        TRY(gpu_prim_work(job));
        CU(g->api->copy_device((u64)(size_t)dst, (u64)(size_t)src, (size_t)bytes, g->streams[0]));
    }
    return ERR_OK;
}

wf_status gpu_prim_fetch(struct prim_job *job, void *host, const void *src, i64 bytes) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    memset(host, 0, (size_t)bytes);
    if (!job->measuring && bytes > 0) {
        void *last = NULL;
        TRY(gpu_pinned_reserve(g, &g->reports, bytes, err));
        if (!job->inside) {
            TRY(gpu_event(g, EVENT_LAST, &last, err));
            CU(g->api->event_record(last, g->streams[0])); /* should nothing come after */
            job->timed = 1;
        }
        CU(g->api->copy_to_host(g->reports.host, (u64)(size_t)src, (size_t)bytes, g->streams[0]));
        CU(gpu_sync(g, g->streams[0]));
        memcpy(host, g->reports.host, (size_t)bytes);
    }
    return ERR_OK;
}

wf_status gpu_prim_send(struct prim_job *job, void *dst, const void *host, i64 bytes) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    if (!job->measuring && bytes > 0) {
        TRY(gpu_prim_work(job));
        CU(g->api->copy_to_device((u64)(size_t)dst, host, (size_t)bytes, g->streams[0]));
        CU(gpu_sync(g, g->streams[0]));
    }
    return ERR_OK;
}

const struct prim_class gpu_prims = {.alloc = prim_alloc,
                                     .free = prim_free,
                                     .lost = prim_lost,
                                     .copy = prim_copy,
                                     .begin = job_begin,
                                     .end = job_end,
                                     .match = &gpu_prim_match_class,
                                     .move = &gpu_prim_move_class,
                                     .order = &gpu_prim_order_class,
                                     .algebra = &gpu_prim_algebra_class};

/* gpu_cub.c: loading the optional module of NVIDIA's primitives, and calling it.
 *
 * The module is WARPFOX_CUB, or libwarpfox-cub.so beside the library or program this text is part
 * of; it is looked for once, when a primitive first asks. Which operations it takes under gpu_cub
 * = auto is a table of what `bench prim` measured. The module's calls only queue work on the job's
 * stream, so everything else about a job stays as it is. */
#include "gpu/gpu_cub.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "gpu/cub/wf_cub.h"

struct cub_api {
#define X(name, params) int(*name) params;
    WF_CUB_FUNCTIONS(X)
#undef X
};

enum { CUB_NOT_TRIED, CUB_BUSY, CUB_LOADED, CUB_ABSENT };
static _Atomic i32 load_state;
static struct cub_api api;

static bool load(void) {
    char beside[2048];
    const char *given = getenv("WARPFOX_CUB");
    const char *path = given && given[0] ? given : beside;
    if (path == beside && !library_beside("libwarpfox-cub.so", beside, sizeof beside)) {
        return false;
    }
    void *library = library_open(path);
    bool complete = library != NULL;
    void *found;
#define X(name, params)                                               \
    found = complete ? library_find(library, "wf_cub_" #name) : NULL; \
    memcpy(&api.name, &found, sizeof found);                          \
    complete = complete && found != NULL;
    WF_CUB_FUNCTIONS(X)
#undef X
    return complete && api.version() == WF_CUB_VERSION;
}

static bool module_there(void) {
    i32 expected = CUB_NOT_TRIED;
    if (atomic_compare_exchange_strong(&load_state, &expected, CUB_BUSY)) {
        atomic_store(&load_state, load() ? CUB_LOADED : CUB_ABSENT);
    }
    while (atomic_load(&load_state) == CUB_BUSY) {
    }
    return atomic_load(&load_state) == CUB_LOADED;
}

/* From how many elements on CUB was faster than our own, per width of 4 and 8 bytes; I64_MAX:
 * never.
 */
static const i64 faster_from[CUB_OP_COUNT][2] = {
    [CUB_SORT_KEYS] = {I64_MAX, I64_MAX}, [CUB_SORT_PAIRS] = {I64_MAX, I64_MAX},
    [CUB_SCAN] = {I64_MAX, I64_MAX},      [CUB_REDUCE] = {I64_MAX, I64_MAX},
    [CUB_COMPACT] = {I64_MAX, I64_MAX},   [CUB_COMPACT_UNORDERED] = {I64_MAX, I64_MAX},
    [CUB_HISTOGRAM] = {I64_MAX, I64_MAX}, [CUB_SET] = {I64_MAX, I64_MAX},
    [CUB_MERGE] = {I64_MAX, I64_MAX},
};

bool gpu_cub_picks(const struct prim_job *job, enum cub_op op, i32 width, i64 n) {
    i64 how = job->x->settings->gpu_cub;
    bool wanted = how == CUB_ON || (how == CUB_AUTO && n >= faster_from[op][width == 8]);
    return wanted && n > 0 && !gpu_of(job)->api->is_simt && module_there();
}

/* --- calls --- */

static FALLIBLE called(struct prim_job *job, int status, const char *what) {
    if (status) {
        FAIL(job->x->err, GPU, "CUDA error %d in CUB's %s", status, what);
    }
    return ERR_OK;
}

/* `expression` calls the module with `call`: once to measure, once to run. */
#define CUB_CALL(job, what, expression)                               \
    do {                                                              \
        struct wf_cub_call call = {NULL, 0, gpu_of(job)->streams[0]}; \
        TRY(called(job, (expression), what));                         \
        call.temp = prim_take(job, (i64)call.temp_bytes);             \
        if (!(job)->measuring) {                                      \
            TRY(exec_check((job)->x));                                \
            TRY(gpu_prim_work(job));                                  \
            TRY(called(job, (expression), what));                     \
            (job)->launches++;                                        \
            (job)->cub = 1;                                           \
        }                                                             \
    } while (0)

wf_status gpu_cub_sort(struct prim_job *job, struct prim_array out_keys, struct prim_array keys,
                       struct prim_array out_values, struct prim_array values, i32 low, i32 high) {
    i32 width = elem_bytes[keys.type];
    if (values.data || values.count) {
        i32 value_width = elem_bytes[values.type];
        CUB_CALL(job, "sort",
                 api.sort_pairs(&call, width, value_width, out_keys.data, keys.data,
                                out_values.data, values.data, keys.count, low, high));
    } else {
        CUB_CALL(job, "sort",
                 api.sort_keys(&call, width, out_keys.data, keys.data, keys.count, low, high));
    }
    return ERR_OK;
}

wf_status gpu_cub_scan(struct prim_job *job, bool inclusive, struct prim_array out,
                       struct prim_array in) {
    CUB_CALL(job, "scan",
             api.scan(&call, elem_bytes[in.type], inclusive, out.data, in.data, in.count));
    return ERR_OK;
}

static i32 cub_fold(enum fold fold) {
    return fold == FOLD_ADD ? WF_CUB_ADD : fold == FOLD_MIN ? WF_CUB_MIN : WF_CUB_MAX;
}

bool gpu_cub_folds(enum fold fold, enum elem type) {
    char kind = elem_kinds[type];
    bool order = kind == 'U' && (fold == FOLD_MIN || fold == FOLD_MAX);
    return order || (kind != 'F' && fold == FOLD_ADD);
}

wf_status gpu_cub_reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                         struct prim_array in) {
    CUB_CALL(job, "reduce",
             api.reduce(&call, elem_bytes[in.type], cub_fold(fold), out.data, in.data, in.count));
    return ERR_OK;
}

bool gpu_cub_compacts(const struct prim_compact *c) {
    const struct prim_array *by = &c->keep.by;
    i32 width = elem_bytes[c->in[0].type];
    bool same =
        c->keep.kind == KEEP_FLAGS ||
        (c->keep.kind == KEEP_COMPARE && by->data == c->in[0].data && elem_kinds[by->type] != 'F');
    return same && c->column_count == 1 && c->in[0].data && (width == 4 || width == 8) &&
           c->room >= by->count;
}

wf_status gpu_cub_compact(struct prim_job *job, const struct prim_compact *c) {
    const struct prim_keep *k = &c->keep;
    i32 width = elem_bytes[c->in[0].type];
    u64 *count = prim_take(job, 8);
    if (k->kind == KEEP_FLAGS) {
        CUB_CALL(job, "select",
                 api.select_flags(&call, width, c->out[0].data, c->in[0].data, k->by.data,
                                  k->by.count, count));
    } else {
        CUB_CALL(job, "select",
                 api.select_range(&call, width, c->out[0].data, c->in[0].data, k->by.count,
                                  prim_order_flip(k->by.type), k->lo[0], k->hi[0], k->negate,
                                  count));
    }
    return gpu_prim_fetch(job, c->out_count, count, 8);
}

/* CUB's bins are even ones of unsigned elements, from zero or above. */
bool gpu_cub_bins(const struct prim_bins *bins) {
    i128 end = (i128)bins->first + (i128)bins->width * bins->out.count;
    return elem_kinds[bins->in.type] == 'U' && bins->first >= 0 && end <= I64_MAX &&
           bins->out.count > 0 && bins->out.count < 1 << 20;
}

wf_status gpu_cub_histogram(struct prim_job *job, const struct prim_bins *bins) {
    CUB_CALL(job, "histogram",
             api.histogram(&call, elem_bytes[bins->in.type], bins->out.data, (int)bins->out.count,
                           bins->in.data, bins->in.count, (u64)bins->first, (u64)bins->width));
    return ERR_OK;
}

/* --- Thrust's --- */

_Static_assert((i32)WF_CUB_UNION == (i32)SET_UNION &&
                   (i32)WF_CUB_INTERSECTION == (i32)SET_INTERSECTION &&
                   (i32)WF_CUB_DIFFERENCE == (i32)SET_DIFFERENCE,
               "set operations in one order");

bool gpu_cub_sets(struct prim_set how, struct prim_array out, struct prim_array a,
                  struct prim_array b) {
    i64 most = how.op == SET_UNION          ? a.count + b.count
               : how.op == SET_INTERSECTION ? MIN_OF(a.count, b.count)
                                            : a.count;
    return elem_kinds[a.type] == 'U' && !how.distinct && !how.ignore_bits &&
           how.op != SET_SYMMETRIC && out.count >= most;
}

wf_status gpu_cub_set(struct prim_job *job, struct prim_set how, struct prim_array out,
                      struct prim_array a, struct prim_array b, i64 *out_count) {
    struct wf_cub_call call = {NULL, 0, gpu_of(job)->streams[0]};
    if (!job->measuring) {
        TRY(gpu_prim_work(job));
        TRY(called(job,
                   api.set(&call, elem_bytes[a.type], how.op, out.data, a.data, a.count, b.data,
                           b.count, out_count),
                   "set operation"));
        job->launches++;
        job->cub = 1;
    }
    return ERR_OK;
}

wf_status gpu_cub_merge(struct prim_job *job, struct prim_array out, struct prim_array a,
                        struct prim_array b) {
    struct wf_cub_call call = {NULL, 0, gpu_of(job)->streams[0]};
    if (!job->measuring) {
        TRY(gpu_prim_work(job));
        TRY(called(job,
                   api.merge(&call, elem_bytes[a.type], out.data, a.data, a.count, b.data, b.count),
                   "merge"));
        job->launches++;
        job->cub = 1;
    }
    return ERR_OK;
}

/* prim_move.c: the CPU's primitives that compute or move elements: series, reductions, gather and
 * scatter, histograms. Maps, scans, compactions and segments have files of their own.
 *
 * Everything is cut into blocks of rows that are the pool's tasks. Reductions keep one word per
 * block, so that their result does not depend on who ran what. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"
#include "prim/fold.h"

enum { BLOCK_ROWS = 1 << 16 };

static i64 blocks_of(i64 rows) {
    return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

/* --- series --- */

struct wide {
    u64 w[2];
};

static void series_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct prim_series *s = arg;
    i64 first = b * BLOCK_ROWS;
    i64 end = MIN_OF(first + BLOCK_ROWS, s->out.count);
    switch (elem_bytes[s->out.type]) {
    case 1:
        memset((u8 *)s->out.data + first, s->first != 0, (size_t)(end - first));
        break;
    case 4:
        for (i64 i = first; i < end; i++) {
            ((u32 *)s->out.data)[i] = (u32)(s->first + (u64)i * s->step);
        }
        break;
    case 8:
        for (i64 i = first; i < end; i++) {
            ((u64 *)s->out.data)[i] = s->first + (u64)i * s->step;
        }
        break;
    default:
        for (i64 i = first; i < end; i++) {
            ((struct wide *)s->out.data)[i] = (struct wide){{s->first, s->wide}};
        }
    }
}

static FALLIBLE series(struct prim_job *job, const struct prim_series *s) {
    if (job->measuring) {
        return ERR_OK;
    }
    tasks_run(job->x, blocks_of(s->out.count), series_task, (void *)(size_t)s);
    return exec_check(job->x);
}

/* --- reduction --- */

struct reduce {
    const struct fold_loops *loops; /* NULL: a sum of floats */
    struct prim_array in;
    u8 *sums; /* per block: 8 bytes, or FSUM_WORDS words */
};

static void reduce_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct reduce *r = arg;
    i64 first = b * BLOCK_ROWS;
    i64 rows = MIN_OF(BLOCK_ROWS, r->in.count - first);
    const u8 *in = (const u8 *)r->in.data + first * elem_bytes[r->in.type];
    if (r->loops) {
        r->loops->reduce(r->sums + b * 8, in, rows);
        return;
    }
    fsum_values((i64 *)(void *)r->sums + b * FSUM_WORDS, r->in.type, in, rows);
}

static FALLIBLE join_fsums(struct prim_job *job, const struct reduce *r, i64 blocks, void *out) {
    i64 all[FSUM_WORDS] = {0};
    const i64 *words = (const i64 *)(const void *)r->sums;
    for (i64 b = 0; b < blocks; b++, words += FSUM_WORDS) {
        fsum_join(all, words);
    }
    return prim_fsum_fault(job, prim_fsum_round(all, r->in.type, out));
}

static FALLIBLE reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                       struct prim_array in) {
    i64 blocks = blocks_of(in.count);
    struct reduce r = {.loops = fold_loops(fold, in.type), .in = in};
    r.sums = prim_take(job, blocks * 8 * (r.loops ? 1 : FSUM_WORDS));
    if (job->measuring) {
        return ERR_OK;
    }
    tasks_run(job->x, blocks, reduce_task, &r);
    TRY(exec_check(job->x));
    if (!r.loops) {
        return join_fsums(job, &r, blocks, out.data);
    }
    r.loops->identity(out.data);
    for (i64 b = 0; b < blocks; b++) {
        r.loops->join(out.data, r.sums + b * 8);
    }
    return ERR_OK;
}

/* --- gather and scatter --- */

struct indexed {
    struct prim_array out, in, index;
    u64 limit;        /* indexes are below */
    u64 lo, hi;       /* those of this pass */
    _Atomic i64 *bad; /* the first index that is not below the limit */
};

static u64 index_at(const struct indexed *g, i64 i) {
    return elem_bytes[g->index.type] == 4 ? ((const u32 *)g->index.data)[i]
                                          : ((const u64 *)g->index.data)[i];
}

/* Elements `type` of rows i at `to` from `from`, one of which is the index; INDEX is its type. */
#define MOVE_LOOP(INDEX, type, to, from)                                                \
    for (i64 i = first; i < end; i++) {                                                 \
        u64 at = ((const INDEX *)g->index.data)[i];                                     \
        if (at - g->lo < g->hi - g->lo) {                                               \
            ((type *)g->out.data)[to] = ((const type *)(const void *)g->in.data)[from]; \
        }                                                                               \
    }
#define MOVE_WIDTHS(INDEX, to, from)            \
    switch (elem_bytes[g->in.type]) {           \
    case 4:                                     \
        MOVE_LOOP(INDEX, u32, to, from) break;  \
    case 8:                                     \
        MOVE_LOOP(INDEX, u64, to, from) break;  \
    default:                                    \
        MOVE_LOOP(INDEX, struct wide, to, from) \
    }
#define MOVE_TASK(name, to, from)                             \
    static void name(void *arg, i64 b, i32 worker) {          \
        UNUSED(worker);                                       \
        const struct indexed *g = arg;                        \
        i64 first = b * BLOCK_ROWS;                           \
        i64 end = MIN_OF(first + BLOCK_ROWS, g->index.count); \
        if (elem_bytes[g->index.type] == 4) {                 \
            MOVE_WIDTHS(u32, to, from)                        \
        } else {                                              \
            MOVE_WIDTHS(u64, to, from)                        \
        }                                                     \
    }
MOVE_TASK(gather_task, i, at)
MOVE_TASK(scatter_task, at, i)

static void check_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct indexed *g = arg;
    i64 end = MIN_OF((b + 1) * BLOCK_ROWS, g->index.count);
    i64 i = b * BLOCK_ROWS;
    while (i < end && index_at(g, i) < g->limit) {
        i++;
    }
    i64 least = atomic_load_explicit(g->bad, memory_order_relaxed);
    while (i < end && i < least && !atomic_compare_exchange_weak(g->bad, &least, i)) {
    }
}

/* One pass unless more are asked for: the processor keeps enough misses in flight that reading the
 * index again costs more than it saves. */
static FALLIBLE run_indexed(struct prim_job *job, struct indexed *g, i32 passes,
                            void (*task)(void *arg, i64 b, i32 worker)) {
    if (job->measuring) {
        return ERR_OK;
    }
    _Atomic i64 bad;
    atomic_init(&bad, I64_MAX);
    g->bad = &bad;
    i64 blocks = blocks_of(g->index.count);
    tasks_run(job->x, blocks, check_task, g);
    if (atomic_load(&bad) < I64_MAX) {
        return prim_bad_index(job, atomic_load(&bad), (i64)g->limit);
    }
    u64 step = g->limit / (u64)MAX_OF(passes, 1) + 1;
    for (g->lo = 0; g->lo < g->limit; g->lo += step) {
        g->hi = MIN_OF(g->lo + step, g->limit);
        tasks_run(job->x, blocks, task, g);
    }
    return exec_check(job->x);
}

static FALLIBLE gather(struct prim_job *job, struct prim_array out, struct prim_array in,
                       struct prim_array index, i32 passes) {
    struct indexed g = {.out = out, .in = in, .index = index, .limit = (u64)in.count};
    return run_indexed(job, &g, passes, gather_task);
}

static FALLIBLE scatter(struct prim_job *job, struct prim_array out, struct prim_array in,
                        struct prim_array index, i32 passes) {
    struct indexed g = {.out = out, .in = in, .index = index, .limit = (u64)out.count};
    return run_indexed(job, &g, passes, scatter_task);
}

/* --- histogram --- */

/* Bins are counted by every worker on its own while that is less work than counting; in four tables
 * while they are small, so that one row's addition does not wait for the one before. More bins are
 * counted by atomic addition. */
enum { PRIVATE_BINS = 1 << 16, SMALL_BINS = 1 << 11, SMALL_TABLES = 4, VECTOR = 1024 };
struct histogram {
    struct prim_array in;
    struct prim_binning by;
    u64 flip;
    u64 bins;
    u64 *counts;
    i64 tables; /* of a worker; 0: shared by all */
    i32 shift;  /* of the width, -1 when it is no power of two */
};

/* Numbers of bins of rows first .. first + n; `bins` stands for none. */
#define BIN_LOOP(type, quotient)                                          \
    for (i64 i = 0; i < n; i++) {                                         \
        u64 word = ((const type *)h->in.data)[first + i] ^ (type)h->flip; \
        u64 far = word - by.start;                                        \
        far = quotient;                                                   \
        far = far < bins ? far + by.base : bins;                          \
        far = word < by.start ? by.low : far;                             \
        out[i] = far < bins ? far : bins;                                 \
    }
static void bins_of(const struct histogram *h, i64 first, i64 n, u64 *out) {
    const struct prim_binning by = h->by;
    const u64 bins = h->bins;
    const i32 shift = h->shift;
    bool narrow = elem_bytes[h->in.type] == 4;
    if (narrow && shift >= 0) {
        BIN_LOOP(u32, far >> shift)
    } else if (narrow) {
        BIN_LOOP(u32, far / by.width)
    } else if (shift >= 0) {
        BIN_LOOP(u64, far >> shift)
    } else {
        BIN_LOOP(u64, far / by.width)
    }
}

static void histogram_task(void *arg, i64 b, i32 worker) {
    const struct histogram *h = arg;
    i64 end = MIN_OF((b + 1) * BLOCK_ROWS, h->in.count);
    i64 stride = (i64)h->bins + 1; /* the last one takes what no bin holds */
    u64 *counts = h->counts + worker * h->tables * stride;
    u64 bins[VECTOR];
    for (i64 first = b * BLOCK_ROWS; first < end; first += VECTOR) {
        i64 n = MIN_OF(VECTOR, end - first);
        i64 i = 0;
        bins_of(h, first, n, bins);
        for (; h->tables == SMALL_TABLES && i + 4 <= n; i += 4) {
            counts[bins[i]]++;
            counts[bins[i + 1] + (u64)stride]++;
            counts[bins[i + 2] + 2 * (u64)stride]++;
            counts[bins[i + 3] + 3 * (u64)stride]++;
        }
        for (; h->tables && i < n; i++) {
            counts[bins[i]]++;
        }
        for (; !h->tables && i < n; i++) {
            if (bins[i] < h->bins) {
                __atomic_fetch_add(&counts[bins[i]], 1, __ATOMIC_RELAXED);
            }
        }
    }
}

static FALLIBLE histogram(struct prim_job *job, const struct prim_bins *bins) {
    i64 count = bins->out.count;
    i64 workers = pool_worker_count(job->x->pool);
    struct histogram h = {.in = bins->in,
                          .by = prim_binning(bins),
                          .flip = prim_order_flip(bins->in.type),
                          .bins = (u64)count,
                          .counts = bins->out.data,
                          .shift = -1};
    if ((h.by.width & (h.by.width - 1)) == 0) {
        h.shift = __builtin_ctzll(h.by.width);
    }
    bool is_private = count <= PRIVATE_BINS || count < bins->in.count / workers / 4;
    h.tables = count <= SMALL_BINS ? SMALL_TABLES : is_private;
    i64 tables = h.tables * workers;
    u64 *own = prim_take(job, tables * (count + 1) * 8);
    if (job->measuring || !count) {
        return ERR_OK;
    }
    memset(h.counts, 0, (size_t)count * 8);
    if (tables) {
        memset(own, 0, (size_t)(tables * (count + 1)) * 8);
        h.counts = own;
    }
    tasks_run(job->x, blocks_of(bins->in.count), histogram_task, &h);
    u64 *out = bins->out.data;
    for (i64 t = 0; t < tables; t++) {
        for (i64 b = 0; b < count; b++) {
            out[b] += own[t * (count + 1) + b];
        }
    }
    return exec_check(job->x);
}

const struct prim_move cpu_prim_move = {.map = prim_cpu_map,
                                        .series = series,
                                        .reduce = reduce,
                                        .segments = prim_cpu_segments,
                                        .scan = prim_cpu_scan,
                                        .compact = prim_cpu_compact,
                                        .gather = gather,
                                        .scatter = scatter,
                                        .histogram = histogram};

/* gpu_agg.c: groups: which form an aggregation's table takes, how it is set up and read out.
 *
 * A key whose values are few, or not much fewer than the groups, is its own slot (DENSE); otherwise
 * a hash table starts at twice the estimated groups and grows when it gets too full: the step runs
 * again. Where the card has no room for it, the step makes the groups of one part of the keys after
 * the other, and each part goes to the host. Small dense tables live in shared memory while a kernel
 * runs: in cells of every thread's own (gpu_cells.c) or in as many copies per block as fit. */
#include "gpu/gpu_job.h"

#include <stdlib.h>
#include <string.h>

#define AGG_DENSE_SLOTS (1LL << 16) /* dense whatever the groups */
#define AGG_DENSE_TIMES 4           /* slots for every group expected */
#define AGG_LEAST_SLOTS 1024
/* A table that runs out of slots costs the step a second time, a larger one next to nothing as long
 * as the cache holds it: up to so many slots for every group expected, in so many bytes. */
#define AGG_SPARE_TIMES 16
#define AGG_SPARE_BYTES (4LL << 20)
#define AGG_SHARED_BYTES (64LL << 10)
#define AGG_TABLE_BYTES (110LL << 10) /* of a single copy, where rows are many */
#define AGG_TABLE_ROWS 256            /* for every slot of it */
#define AGG_FRONT_SLOTS 1024
#define AGG_FRONT_GROUPS (1LL << 16) /* expected at most, or else it is smaller, or there is none */
#define AGG_FRONT_GROUPS_SIMT 2000
#define AGG_FEW_BYTES (24LL << 10) /* of cells, or copies: four blocks a multiprocessor beside lists of rows */
#define AGG_OWN_BYTES (100LL << 10) /* two blocks a multiprocessor at least */
#define AGG_OWN_ROWS 4096           /* of a thread, before its cells are added up */
#define AGG_OWN_ROWS_SIMT 32
static const f64 AGG_FEW_SHARE = 0.125; /* of the rows, where all lookups have been asked */
#define AGG_RUN_WORDS 6   /* of a group, at most: a tile's runs lie in shared memory */
#define AGG_RUN_BLOCKS 64 /* that check the order of tiles; at most BLOCK_THREADS */

_Static_assert(PIPE_AGGS == KAGGS, "kernels take as many aggregations as a pipeline may have");

/* --- forms --- */

static u32 stride_of(const struct kagg *agg) {
    return agg->head + agg->word_count;
}

/* Whether equal keys are expected to be neighbours. Rows that match several others come in rounds.
 */
static bool comes_in_runs(const struct agg_room *room, const struct gpu_plan *plan,
                          const struct sink *sink) {
    return room->in_runs && sink->in_runs && !plan->has_match && !plan->limbs.count &&
           sink->word_count <= AGG_RUN_WORDS && plan->pipe->source.kind == SOURCE_TABLE &&
           !plan->pipe->regs[sink->key].is_const;
}

static void shape_hash(struct kagg *agg, i64 groups, i64 spare_bytes) {
    agg->form = AGG_HASH;
    agg->head = 1;
    agg->touch = 0;
    agg->slot_count = AGG_LEAST_SLOTS;
    u64 spare = (u64)spare_bytes / 8 / stride_of(agg);
    while (agg->slot_count < 2 * (u64)groups ||
           (agg->slot_count < AGG_SPARE_TIMES * (u64)groups && 2 * agg->slot_count <= spare)) {
        agg->slot_count *= 2;
    }
    agg->group_limit = agg->slot_count / 4 * 3;
}

/* Shared memory that tables may take beside a kernel's own arrays: lists of rows take most. What
 * there is of it is shared by all aggregations. */
static i64 table_room(const struct gpu_plan *plan, i64 shared_max) {
    return shared_max - (plan->indexes.count ? 42 << 10 : 2048);
}

/* Small tables, in shared memory. */
static void shape_shared(const struct gpu_plan *plan, const struct sink *sink,
                         const struct agg_room *room, struct agg_shape *out) {
    const struct kagg *agg = &out->agg;
    i64 least = table_room(plan, room->shared_max);
    i64 most = MIN_OF(room->few ? AGG_FEW_BYTES : AGG_OWN_BYTES, least) / room->sharers;
    i64 rows = room->is_simt ? AGG_OWN_ROWS_SIMT : AGG_OWN_ROWS;
    if (gpu_agg_cells(plan, sink, agg->head, rows, &out->cells)) {
        i64 bytes = gpu_agg_cell_bytes(&out->cells);
        out->own_bytes = (i64)agg->slot_count <= most / bytes ? (i64)agg->slot_count * bytes : 0;
    }
    i64 table = (i64)(agg->slot_count * stride_of(agg)) * 8;
    bool many = room->rows / AGG_TABLE_ROWS >= (i64)agg->slot_count;
    i64 most_table = room->few ? AGG_FEW_BYTES : many ? AGG_TABLE_BYTES : AGG_SHARED_BYTES;
    out->copies = !out->own_bytes && table <= MIN_OF(most_table, least) / room->sharers;
}

/* Groups that are few, or of which few are met often, meet in a table of the block's own first.
 * What is expected of a hash table, or of an interner's numbers, may be wrong: it has a smaller one
 * in any case, which a warp leaves when few of its rows are found there. */
static void shape_front(const struct gpu_plan *plan, const struct sink *sink,
                        const struct agg_room *room, struct agg_shape *out) {
    i64 most = room->is_simt ? AGG_FRONT_GROUPS_SIMT : AGG_FRONT_GROUPS;
    bool apart = out->own_bytes || out->copies || out->run_rows;
    u32 slots = sink->word_count <= 3 ? AGG_FRONT_SLOTS : AGG_FRONT_SLOTS / 2;
    bool unsure = out->agg.form == AGG_HASH || out->numbered;
    slots = sink->groups <= most ? slots : unsure ? slots / 2 : 0;
    slots /= room->sharers > 4 || room->few ? 4 : room->sharers > 1 ? 2 : 1;
    out->front = !apart && !plan->limbs.count && sink->word_count <= AGG_RUN_WORDS ? slots : 0;
}

/* Whether keys are slots, and how many there are: with room for the table, and for as many rows. */
static bool is_dense(const struct agg_room *room, const struct sink *sink, struct range key) {
    i128 span = key.hi - key.lo + 1;
    i128 bytes = span * (i128)(sink->word_count + 1) * 8;
    i64 groups = MIN_OF(sink->groups, room->rows);
    return span <= AGG_DENSE_SLOTS || (span <= (i128)AGG_DENSE_TIMES * groups &&
                                       bytes <= room->memory_bytes / 5 * 2 / room->sharers);
}

void gpu_agg_shape(const struct exec *x, const struct gpu_plan *plan, const struct sink *sink,
                   const struct agg_room *room, struct agg_shape *out) {
    struct kagg *agg = &out->agg;
    *out =
        (struct agg_shape){.agg = {.word_count = sink->word_count, .has_key = sink->key != NO_REG},
                           .copy_bytes = room->few ? AGG_FEW_BYTES : AGG_SHARED_BYTES};
    if (sink->key == NO_REG) {
        agg->slot_count = 1;
        return;
    }
    struct range key = gpu_key_range(x, plan, sink);
    agg->key = plan->places[sink->key];
    if (!is_dense(room, sink, key)) {
        shape_hash(agg, MAX_OF(room->groups, MIN_OF(sink->groups, room->rows)),
                   room->is_simt ? 0 : AGG_SPARE_BYTES);
        out->run_rows = comes_in_runs(room, plan, sink) ? gpu_weave_run_rows(plan, sink) : 0;
        shape_front(plan, sink, room, out);
        return;
    }
    out->numbered = key.hi < plan->pipe->regs[sink->key].range.hi;
    i32 touch = gpu_touch_word(plan, sink);
    agg->head = touch < 0;
    agg->touch = touch < 0 ? 0 : (u32)touch;
    agg->key_lo = (i64)key.lo;
    agg->slot_count = (u64)(key.hi - key.lo + 1);
    shape_shared(plan, sink, room, out);
    if (!out->own_bytes && !out->copies && comes_in_runs(room, plan, sink)) {
        shape_hash(agg, 0, 0);
        out->run_rows = gpu_weave_run_rows(plan, sink);
    }
    shape_front(plan, sink, room, out);
    agg->narrow = agg->form == AGG_DENSE && !out->own_bytes && !out->copies && !agg->head &&
                  !plan->has_match && gpu_words_narrow(plan, sink, room->rows);
}

/* Of one aggregation, where `room` bytes are left for it. */
static i64 shared_of(const struct agg_shape *shape, u32 threads, i64 room, u32 *out_copies) {
    const struct kagg *agg = &shape->agg;
    i64 table = (i64)(agg->slot_count * stride_of(agg)) * 8;
    *out_copies = 0;
    if (shape->front && threads == WOVEN_BLOCK) {
        return 8LL * shape->front * (1 + agg->word_count);
    }
    if (agg->form != AGG_DENSE || agg->narrow) {
        return 0;
    }
    if (shape->own_bytes && threads == WOVEN_BLOCK) {
        return shape->own_bytes;
    }
    if (agg->has_key && !shape->copies && threads == WOVEN_BLOCK) {
        return 0; /* its text has no tables of the block */
    }
    for (u32 copies = threads; copies > 0; copies /= 2) {
        i64 most = copies == 1 && shape->copies ? AGG_TABLE_BYTES : shape->copy_bytes;
        if (table * copies <= MIN_OF(most, room)) {
            *out_copies = copies;
            return table * copies;
        }
    }
    return 0;
}

i64 gpu_agg_shared(const struct job *j, u32 threads, i64 other_bytes, struct kargs *args) {
    i64 room = table_room(&j->plan, j->g->card->shared_max) - other_bytes;
    i64 bytes = 0;
    if (threads != WOVEN_BLOCK) {
        const struct agg_shape *shape = &j->aggs[args->emit].shape;
        return j->plan.agg_count ? shared_of(shape, threads, room, &args->aggs[0].copies) : 0;
    }
    room = j->plan.agg_count > 1 ? MIN_OF(room, AGG_TABLE_BYTES) : room;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        i64 share = room / j->plan.agg_count;
        struct kagg *agg = &args->aggs[k];
        agg->shared_at = (u32)(other_bytes + bytes);
        bytes += ALIGN_UP(shared_of(&j->aggs[k].shape, threads, share, &agg->copies), 16);
    }
    return bytes;
}

void gpu_agg_weave(const struct agg_shape *shape, u32 number, struct weave *out) {
    out->aggs[number].form = shape->agg.form;
    out->aggs[number].head = shape->agg.head;
    out->aggs[number].narrow = shape->agg.narrow;
    out->aggs[number].copies = shape->copies || !shape->agg.has_key;
    out->aggs[number].front = shape->front;
    out->cells[number] = shape->own_bytes ? &shape->cells : NULL;
    out->run_rows = shape->run_rows;
}

struct kagg gpu_agg_args(const struct job *j, u32 number) {
    struct kagg agg = j->aggs[number].shape.agg;
    agg.word_ops = DEV(const u8 *, j->fixed_addr + (u64)j->layout.words_at[number]);
    agg.word_regs = DEV(const u16 *, j->fixed_addr + (u64)j->layout.word_regs_at[number]);
    agg.limbs = DEV(const struct klimbs *, j->fixed_addr + (u64)j->layout.limbs_at);
    agg.limb_count = (u32)j->plan.limbs.count;
    agg.keeps = DEV(const struct kkeep *, j->g->args_block->addr + (u64)j->aggs[number].keeps_at);
    agg.keep_count = j->plan.keeps[number].count;
    return agg;
}

/* A literal among whole numbers. */
static i128 bound_of(const struct exec *x, const struct prune *p, u32 lit) {
    union lit value = x->lits[lit];
    return p->kind == KIND_I128 ? value.i128 : p->kind == KIND_I64 ? value.i64 : value.i32;
}

void gpu_agg_keeps(const struct job *j, u32 number, struct kkeep *out) {
    const struct plan_keeps *keeps = &j->plan.keeps[number];
    for (u32 i = 0; i < keeps->count; i++) {
        const struct prune *p = keeps->items[i];
        bool open = j->x->whole != NULL; /* states of a share are not whole yet */
        i128 lo = open || p->lo_lit == NO_LIT ? I64_MIN : bound_of(j->x, p, p->lo_lit);
        i128 hi = open || p->hi_lit == NO_LIT ? I64_MAX : bound_of(j->x, p, p->hi_lit);
        bool some = lo <= I64_MAX && hi >= I64_MIN;
        out[i].lo = some ? (i64)MAX_OF(lo, I64_MIN) : I64_MAX;
        out[i].hi = some ? (i64)MIN_OF(hi, I64_MAX) : I64_MIN;
        out[i].col = p->col;
    }
}

static const char *form_name(const struct agg_shape *shape, bool woven) {
    const struct kagg *agg = &shape->agg;
    return !agg->has_key                       ? NULL
           : shape->run_rows                   ? "groups as runs of the sorted key"
           : agg->form == AGG_HASH             ? "groups in a hash table"
           : woven && shape->own_bytes         ? "groups in each thread's cells"
           : shape->own_bytes || shape->copies ? "groups in each block's tables"
                                               : "groups in a table by key";
}

/* --- the life of a table --- */

static FALLIBLE agg_start(struct job *j, enum kernel_no kernel, const struct kagg_step *args) {
    struct gpu *g = j->g;
    void *function = NULL;
    TRY(gpu_kernel(g->card, kernel, j->x, &function, j->x->err));
    i64 blocks = (i64)((args->agg.slot_count + 256) / 256 * (kernel == KERNEL_AGG_INIT ? 4 : 1));
    blocks = MAX_OF(MIN_OF(blocks, g->card->sm_count * 8LL), 1);
    j->metric->launches++;
    return gpu_launch(g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, g->streams[0], args,
                      j->x->err);
}

/* --- runs --- */

struct part_place {
    i64 row_start, part;
};

static int by_row(const void *a, const void *b) {
    i64 x = ((const struct part_place *)a)->row_start;
    i64 y = ((const struct part_place *)b)->row_start;
    return x < y ? -1 : x > y;
}

/* Rows of a tile, the same in the texts of all layouts: their columns do not matter to it. */
static i64 run_tile(const struct job *j) {
    i64 rows = j->sig_count ? j->sigs[0].weave.rows_per_thread : j->aggs[0].shape.run_rows;
    for (u32 s = 1; s < j->sig_count; s++) {
        ASSERT(j->sigs[s].weave.rows_per_thread == rows);
    }
    return WOVEN_BLOCK * rows;
}

/* Numbers of the parts' first tiles: parts are grouped by layout, tiles go by rows. */
static void number_tiles(struct job *j) {
    i64 tile = run_tile(j);
    struct part_place *places = NEW_ARRAY(j->x->arena, struct part_place, j->part_count + 1);
    j->tile_starts = NEW_ARRAY(j->x->arena, u64, j->part_count + 1);
    j->tile_total = 0;
    for (i64 p = 0; p < j->part_count; p++) {
        places[p] = (struct part_place){j->parts[p].row_start, p};
    }
    if (j->sig_count > 1) {
        qsort(places, (size_t)j->part_count, sizeof *places, by_row);
    }
    for (i64 p = 0; p < j->part_count; p++) {
        j->tile_starts[places[p].part] = j->tile_total;
        j->tile_total += (u64)((j->parts[places[p].part].rows + tile - 1) / tile);
    }
}

/* Room for the groups that tiles hold whole: as many as are expected, within the memory there is.
 */
static i64 run_capacity(const struct job *j) {
    const struct sink *sink = j->plan.sink;
    i64 width = 8 * (1 + (i64)sink->word_count);
    i64 groups = sink->groups > 0 ? sink->groups : j->source_rows / 2;
    i64 room = gpu_heap_available(j->g->card) / 2 / width;
    i64 rows = MIN_OF(groups + groups / 4 + 1024, j->source_rows);
    if (j->place != PLACE_CACHED && j->plan.keeps[0].count) { /* few are left; else there will be room */
        rows = MIN_OF(rows, 2 * gpu_room_ahead(j));
    }
    return MAX_OF(MIN_OF(rows, room), 1) + 2 * (i64)j->tile_total;
}

/* The output that runs are written to, and the bounds of tiles. */
static FALLIBLE runs_begin(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_agg *a = &j->aggs[0];
    const struct sink *sink = j->plan.sink;
    number_tiles(j);
    shape_hash(&a->shape.agg, MAX_OF(2 * (i64)j->tile_total, a->groups_wanted), 0);
    j->capacity = MAX_OF(j->capacity, run_capacity(j));
    TRY(gpu_var_new(g, j->x, sink->var, 1 + sink->word_count, &a->out));
    for (u32 c = 0; c < 1 + sink->word_count; c++) {
        TRY(gpu_alloc(g, j->capacity * 8, &a->out->cols[c].data, err));
        a->out->cols[c].addr = a->out->cols[c].data->addr;
    }
    i64 bounds = AGG_BOUNDS(sink->word_count) * (i64)j->tile_total;
    i64 bytes = 8 * (bounds + 3 * AGG_RUN_BLOCKS + 1);
    TRY(gpu_alloc(g, bytes, &j->bounds, err));
    CU(g->api->set_bytes(j->bounds->addr, 0, (size_t)bytes, g->streams[0]));
    a->shape.agg.bounds = DEV(u64 *, j->bounds->addr);
    return ERR_OK;
}

/* Whether woven code for runs is there for every layout; if it has to be compiled first, that goes
 * on while the virtual machine hashes. */
static FALLIBLE runs_are_woven(struct job *j, bool *out) {
    *out = true;
    for (u32 s = 0; s < j->sig_count; s++) {
        void *function = NULL;
        TRY(gpu_job_woven(j, &j->sigs[s], &function));
        *out = *out && function;
    }
    return ERR_OK;
}

static FALLIBLE edges_start(struct job *j, enum kernel_no kernel, i64 blocks,
                            const struct kagg_edges *args) {
    void *function = NULL;
    TRY(gpu_kernel(j->g->card, kernel, j->x, &function, j->x->err));
    j->metric->launches++;
    return gpu_launch(j->g, function, (struct gpu_grid){MAX_OF(blocks, 1), BLOCK_THREADS, 0},
                      j->g->streams[0], args, j->x->err);
}

/* Checks the order of tiles, and puts their edges into the table. */
static FALLIBLE runs_end(struct job *j) {
    struct gpu *g = j->g;
    i64 tiles = (i64)j->tile_total;
    struct kagg_edges args = {.agg = gpu_agg_args(j, 0),
                              .count = j->tile_total,
                              .report = DEV(u64 *, g->args_block->addr + (u64)j->reports_at)};
    args.parts = args.agg.bounds + AGG_BOUNDS(args.agg.word_count) * j->tile_total;
    TRY(edges_start(j, KERNEL_AGG_ORDER, MIN_OF(tiles / BLOCK_THREADS + 1, AGG_RUN_BLOCKS), &args));
    i64 blocks = MIN_OF(2 * tiles / BLOCK_THREADS + 1, g->card->sm_count * 8LL);
    return edges_start(j, KERNEL_AGG_EDGES, blocks, &args);
}

/* --- all --- */

/* Small tables have their columns beforehand, as long as they are: they are read out, and the few go
 * on to the host, before anybody waits. The first column has the block of all. */
#define EARLY_MOST_BYTES (1LL << 20)
#define EARLY_FETCH_BYTES (16LL << 10)
#define EARLY_QUEUED_BYTES (256LL << 20) /* where nobody waits at all */

/* Of a column that is as long as the table; 0: it is no small one. */
static i64 early_stride(const struct job *j, const struct job_agg *a) {
    i64 slots = (i64)a->shape.agg.slot_count + 1;
    i64 stride = ALIGN_UP(slots * 8, GPU_ALIGN);
    i64 most = j->queued ? EARLY_QUEUED_BYTES : EARLY_MOST_BYTES;
    bool large = a->shape.run_rows || a->shape.agg.part_mask || j->place != PLACE_CACHED || j->slot_count > 1 ||
                 slots > most || stride * (1 + a->sink->word_count) > most;
    return large ? 0 : stride;
}

static FALLIBLE early_begin(struct job *j) {
    bool all = true;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        all = all && early_stride(j, &j->aggs[k]);
    }
    j->early_bytes = 0;
    for (u32 k = 0; all && k < j->plan.agg_count; k++) {
        struct job_agg *a = &j->aggs[k];
        u32 col_count = 1 + a->sink->word_count;
        i64 stride = early_stride(j, a);
        TRY(gpu_var_new(j->g, j->x, a->sink->var, col_count, &a->out));
        TRY(gpu_alloc(j->g, stride * col_count, &a->out->cols[0].data, j->x->err));
        for (u32 c = 0; c < col_count; c++) {
            a->out->cols[c].addr = a->out->cols[0].data->addr + (u64)(stride * c);
        }
        a->early_bytes = stride * col_count;
        a->early_at = j->early_bytes;
        j->early_bytes += a->early_bytes;
    }
    return ERR_OK;
}

i64 gpu_agg_col_count(const struct job *j, u32 number) {
    i64 count = 0;
    for (u32 k = 0; k < number; k++) {
        count += 1 + (i64)j->plan.aggs[k]->word_count;
    }
    return count;
}

void gpu_agg_early_cols(const struct job *j, u64 *cols) {
    bool known = j->early_bytes || (j->queued && j->aggs[0].shape.run_rows);
    for (u32 k = 0; known && k < j->plan.agg_count; k++) {
        for (u32 c = 0; c <= j->aggs[k].sink->word_count; c++) {
            *cols++ = j->aggs[k].out->cols[c].addr;
        }
    }
}

/* Whether the indexes that are looked into tell of most rows that they are not there: what is left goes
 * on as a list (weave_list.c). */
static bool meets_few(const struct job *j) {
    f64 share = 1;
    for (i64 i = 0; i < j->plan.indexes.count; i++) {
        const struct gpu_var *index = j->x->vars[j->plan.indexes.items[i]].copy;
        share *= index ? index->share : 1;
    }
    return share <= AGG_FEW_SHARE;
}

/* Texts of another form of the table are of no use. */
static void drop_texts(struct job *j) {
    for (u32 s = 0; s < j->sig_count; s++) {
        j->sigs[s].text = (struct text){0};
        j->sigs[s].function = NULL;
    }
}

/* A table that came out larger than it was at the last try may have another form. */
static void agg_shapes(struct job *j, bool in_runs) {
    bool changed = false;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        struct job_agg *a = &j->aggs[k];
        struct agg_room room = {
            .rows = j->source_rows,
            .groups = a->groups_wanted,
            .memory_bytes = j->g->tight < TIGHT_SPILL ? gpu_heap_available(j->g->card) : I64_MAX,
            .shared_max = j->g->card->shared_max,
            .sharers = j->plan.agg_count,
            .is_simt = j->g->api->is_simt != 0,
            .in_runs = in_runs && j->plan.agg_count == 1,
            .few = meets_few(j)};
        u64 before = a->shape.agg.slot_count;
        a->sink = j->plan.aggs[k];
        gpu_agg_shape(j->x, &j->plan, a->sink, &room, &a->shape);
        changed = changed || (before && before != a->shape.agg.slot_count);
    }
    if (changed) {
        drop_texts(j);
    }
}

/* --- parts --- */

i64 gpu_agg_table_bytes(const struct kagg *agg) {
    return (i64)((agg->slot_count + 1) * MAX_OF(stride_of(agg), 1u)) * (agg->narrow ? 4 : 8);
}

/* As many parts as it takes until table and output of one have room; chosen by the first. */
static void choose_parts(struct job *j) {
    struct kagg *agg = &j->aggs[0].shape.agg;
    if (j->g->tight != TIGHT_PART || agg->form != AGG_HASH || j->aggs[0].shape.run_rows ||
        j->plan.agg_count > 1) {
        return;
    }
    if (j->pass == 0) {
        i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
        j->passes = 1;
        j->aggs[0].part_rows = j->aggs[0].part_count = 0;
        while (gpu_agg_table_bytes(agg) > room / 2 && j->passes < AGG_PARTS_MOST &&
               agg->slot_count > AGG_LEAST_SLOTS) {
            agg->slot_count /= 2;
            j->passes *= 2;
        }
        j->pass_slots = agg->slot_count;
    }
    agg->slot_count = j->pass_slots;
    agg->group_limit = agg->slot_count / 4 * 3;
    agg->part = j->pass;
    agg->part_mask = j->passes - 1;
}

/* The groups of a part, to a chunk of the host. */
static FALLIBLE part_end(struct job *j, struct job_agg *a) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    u32 var = a->sink->var;
    struct variable *v = &j->x->vars[var];
    i64 rows = a->out->rows;
    struct fetch_col *cols = NEW_ARRAY(j->x->arena, struct fetch_col, a->out->col_count + 1);
    for (u32 c = 0; c < a->out->col_count; c++) {
        cols[c].data = a->out->cols[c].addr;
    }
    v->rows = a->part_rows; /* the new ones are counted when they are appended */
    if (rows > 0) {
        i64 fetched = 0;
        struct row_fetch fetch = {var, rows, a->part_count, cols, g->streams[0]};
        TRY(gpu_rows_to_chunk(g, j->x, &fetch, &fetched));
        CU(gpu_sync(g, g->streams[0]));
        gpu_job_fetched(j, fetched);
    }
    v->on_host = 1;
    variable_drop_copy(v);
    a->out = NULL;
    a->part_rows = v->rows;
    a->part_count++;
    return ERR_OK;
}

/* A table of a scan over the bus is no larger than leaves room for its groups as rows: where groups
 * can be put aside, or as long as nobody knows but by estimate that there are more. */
static void cap_table(struct job *j, struct kagg *agg, bool unknown) {
    struct kagg capped = *agg;
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    i64 most = room / 2 / j->plan.agg_count;
    while (gpu_agg_table_bytes(&capped) > most && capped.slot_count > AGG_LEAST_SLOTS) {
        capped.slot_count /= 2;
        capped.group_limit = capped.slot_count / 4 * 3;
    }
    if (gpu_agg_table_bytes(&capped) <= most && (unknown || gpu_room_is_safe(j, &capped))) {
        *agg = capped;
    }
}

/* Whether to read the source again for every part of the keys is sooner done than to put all groups
 * aside and read them back. */
static bool passes_are_cheaper(struct job *j, const struct job_agg *a) {
    i64 room = MAX_OF(gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g), 2);
    i64 passes = 1 + gpu_agg_table_bytes(&a->shape.agg) / (room / 2);
    i64 groups = MAX_OF(a->groups_wanted, MIN_OF(a->sink->groups, j->source_rows));
    f64 aside = 2.0 * 8 * (f64)groups * (f64)(1 + a->sink->word_count);
    return j->plan.agg_count == 1 && (f64)(passes - 1) * (f64)j->source_bytes < aside;
}

/* Over the bus, and not in parts of the keys: more room is made when it is needed. */
static void cap_tables(struct job *j) {
    bool slots = j->place != PLACE_CACHED && j->batch_count > 1;
    for (u32 k = 0; slots && j->g->may_spill && k < j->plan.agg_count; k++) {
        struct agg_shape *shape = &j->aggs[k].shape;
        bool unknown = !j->aggs[k].groups_wanted;
        if (shape->agg.form == AGG_HASH && !shape->run_rows &&
            (unknown || !passes_are_cheaper(j, &j->aggs[k]))) {
            cap_table(j, &shape->agg, unknown);
        }
    }
}

wf_status gpu_agg_begin(struct job *j) {
    bool woven = true;
    agg_shapes(j, !j->out_of_order && !j->vm_only);
    if (j->aggs[0].shape.run_rows) {
        TRY(runs_are_woven(j, &woven));
    }
    if (!woven) {
        drop_texts(j);
        j->vm_only = 1;
        agg_shapes(j, false);
    }
    if (j->aggs[0].shape.run_rows) {
        TRY(runs_begin(j));
    }
    cap_tables(j);
    choose_parts(j);
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        struct job_agg *a = &j->aggs[k];
        struct kagg *agg = &a->shape.agg;
        TRY(gpu_alloc(j->g, gpu_agg_table_bytes(agg), &a->state, j->x->err));
        agg->state = DEV(u64 *, a->state->addr);
    }
    return early_begin(j);
}

void gpu_agg_drop(struct job *j) {
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        gpu_heap_free(j->g->card, j->aggs[k].state);
        j->aggs[k].state = NULL;
        gpu_room_drop_asides(j, k);
    }
    gpu_heap_free(j->g->card, j->bounds);
    j->bounds = NULL;
}

wf_status gpu_agg_init(struct job *j) {
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        struct kagg_step args = {.agg = gpu_agg_args(j, k)};
        TRY(agg_start(j, KERNEL_AGG_INIT, &args));
    }
    return ERR_OK;
}

/* Queues the kernel that reads a table out; it counts in the report of this number. */
static FALLIBLE extract_start(struct job *j, u32 number, u32 report) {
    u64 block = j->g->args_block->addr;
    u64 at = (u64)j->reports_at + (u64)report * REPORT_WORDS * 8;
    struct kagg_step args = {.agg = gpu_agg_args(j, number),
                             .cols = DEV(u64 *const *, block) + gpu_agg_col_count(j, number),
                             .report = DEV(u64 *, block + at),
                             .capacity = j->aggs[number].shape.run_rows ? (u64)j->capacity : 0,
                             .one = j->aggs[number].sink->key == NO_REG};
    return agg_start(j, KERNEL_AGG_EXTRACT, &args);
}

bool gpu_agg_can_queue(const struct job *j) {
    return j->early_bytes || j->aggs[0].shape.run_rows;
}

bool gpu_agg_comes_early(const struct job *j, u32 number) {
    i64 bytes = j->aggs[number].early_bytes;
    return bytes && bytes <= EARLY_FETCH_BYTES;
}

wf_status gpu_agg_queue(struct job *j) {
    if (j->early_bytes) {
        return gpu_agg_early(j);
    }
    TRY(runs_end(j));
    return extract_start(j, 0, 0);
}

u64 gpu_agg_rows_at(const struct job *j, u32 number) {
    u32 report = number + (j->early_bytes ? j->plan.agg_count : 0);
    return j->g->args_block->addr + (u64)j->reports_at + 8 * ((u64)report * REPORT_WORDS + REPORT_ROWS);
}

/* Those that read the tables out come right behind those that fill them. */
wf_status gpu_agg_early(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        const struct job_agg *a = &j->aggs[k];
        TRY(extract_start(j, k, j->plan.agg_count + k));
        if (a->early_bytes <= EARLY_FETCH_BYTES) {
            CU(g->api->copy_to_host(g->reports.host + j->early_at + a->early_at,
                                    a->out->cols[0].addr, (size_t)a->early_bytes, g->streams[0]));
            gpu_job_fetched(j, a->early_bytes);
        }
    }
    return ERR_OK;
}

static void report_of(const struct job *j, u32 report, u64 *out) {
    memcpy(out, j->g->reports.host + (i64)report * REPORT_WORDS * 8, REPORT_WORDS * 8);
}

/* What was read out of one, which may be on the host already. */
static FALLIBLE early_rows(struct job *j, const struct job_agg *a, i64 rows) {
    a->out->rows = j->x->vars[a->sink->var].rows = rows;
    if (!rows || !a->early_bytes || a->early_bytes > EARLY_FETCH_BYTES) {
        return ERR_OK;
    }
    i64 stride = a->early_bytes / (1 + a->sink->word_count);
    return gpu_var_take_few(j->g, j->x, a->sink->var, rows,
                            j->g->reports.host + j->early_at + a->early_at, stride);
}

/* By the reports behind the first. */
static FALLIBLE early_end(struct job *j) {
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        u64 words[REPORT_WORDS];
        report_of(j, j->plan.agg_count + k, words);
        TRY(early_rows(j, &j->aggs[k], (i64)words[REPORT_ROWS]));
    }
    return ERR_OK;
}

/* Columns for the groups of a table that was filled. */
static FALLIBLE extract_room(struct job *j, struct job_agg *a, const u64 *report, u64 *cols) {
    const struct kagg *agg = &a->shape.agg;
    i64 groups = agg->form == AGG_HASH ? (i64)report[REPORT_GROUPS] : (i64)agg->slot_count;
    u32 col_count = 1 + a->sink->word_count;
    if (!a->shape.run_rows) {
        TRY(gpu_var_new(j->g, j->x, a->sink->var, col_count, &a->out));
    }
    for (u32 c = 0; c < col_count; c++) {
        struct gpu_col *col = &a->out->cols[c];
        if (!a->shape.run_rows) {
            TRY(gpu_alloc_rows(j->g, MAX_OF(groups, 1) * 8, &col->data, j->x->err));
            col->addr = col->data->addr;
        }
        cols[c] = col->addr;
    }
    return ERR_OK;
}

/* Used slots of some tables to rows of the output, behind those that runs have there. */
static FALLIBLE extract_tables(struct job *j, u32 first, u32 end) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    /* The argument block's first page is free again: it carries the columns' addresses. */
    i64 before = gpu_agg_col_count(j, first);
    u64 *cols = (u64 *)(void *)g->args.host;
    size_t col_bytes = (size_t)(gpu_agg_col_count(j, end) - before) * 8;
    size_t report_bytes = (size_t)(end - first) * REPORT_WORDS * 8;
    u64 reports = g->args_block->addr + (u64)j->reports_at + (u64)first * REPORT_WORDS * 8;
    for (u32 k = first; k < end; k++) {
        u64 report[REPORT_WORDS];
        report_of(j, k, report);
        TRY(extract_room(j, &j->aggs[k], report, cols + gpu_agg_col_count(j, k)));
    }
    CU(g->api->copy_to_device(g->args_block->addr + 8 * (u64)before, cols + before, col_bytes,
                              g->streams[0]));
    if (!j->aggs[0].shape.run_rows) {
        CU(g->api->set_bytes(reports, 0, report_bytes, g->streams[0]));
    }
    for (u32 k = first; k < end; k++) {
        TRY(extract_start(j, k, k));
    }
    CU(g->api->copy_to_host(g->reports.host + first * REPORT_WORDS * 8, reports, report_bytes,
                            g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    for (u32 k = first; k < end; k++) {
        u64 last[REPORT_WORDS];
        report_of(j, k, last);
        j->aggs[k].out->rows = j->x->vars[j->aggs[k].sink->var].rows = (i64)last[REPORT_ROWS];
    }
    return ERR_OK;
}

wf_status gpu_agg_part_rows(struct job *j, u32 number, const u64 *report) {
    memcpy(j->g->reports.host + (i64)number * REPORT_WORDS * 8, report, REPORT_WORDS * 8);
    TRY(extract_tables(j, number, number + 1));
    return part_end(j, &j->aggs[number]);
}

/* All groups to rows: those of tables that gave none away at once. */
static FALLIBLE agg_extract(struct job *j) {
    bool whole = true;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        u64 report[REPORT_WORDS];
        report_of(j, k, report);
        if (j->aggs[k].asides) { /* and the rest */
            TRY(gpu_room_put_aside(j, k, (i64)report[REPORT_GROUPS], j->batch_count));
        }
        whole = whole && !j->aggs[k].asides;
    }
    if (whole) {
        return extract_tables(j, 0, j->plan.agg_count);
    }
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        TRY(j->aggs[k].asides ? gpu_room_join_asides(j, k) : extract_tables(j, k, k + 1));
    }
    return ERR_OK;
}

/* Whether the step has to run again: in another form, or with more room. */
static bool runs_again(struct job *j, struct job_agg *a, const u64 *report) {
    i64 rows = (i64)report[REPORT_ROWS] + 2 * (i64)j->tile_total;
    if (report[REPORT_RETRY] & RETRY_ORDER) {
        j->out_of_order = j->g->known.out_of_order = 1;
        drop_texts(j);
    } else if (report[REPORT_RETRY] & RETRY_TABLE) {
        i64 groups = (i64)report[REPORT_GROUPS];
        i64 twice = MAX_OF(groups, (i64)a->shape.agg.slot_count) * 2 * MAX_OF(j->passes, 1u);
        a->groups_wanted = MAX_OF(twice, 2 * a->groups_wanted);
        if (j->watches) { /* so that it does not happen again */
            a->groups_wanted = MAX_OF(a->groups_wanted, 2 * gpu_room_ahead(j));
        }
        j->g->known.groups[a - j->aggs] = a->groups_wanted;
        j->pass = 0;
    } else if (a->shape.run_rows && rows > j->capacity) {
        j->capacity = j->g->known.capacity = rows;
    } else {
        return false;
    }
    return true;
}

/* The forms of all tables, each named once. */
static const char *form_names(const struct job *j) {
    const char *names = NULL;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        const char *name = form_name(&j->aggs[k].shape, j->used_woven);
        bool named = !name || (names && strstr(names, name));
        names = named ? names : names ? arena_printf(j->x->arena, "%s, %s", names, name) : name;
    }
    u32 asides = 0;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        asides += j->aggs[k].aside_count;
    }
    if (j->aggs[0].shape.agg.part_mask) {
        return arena_printf(j->x->arena, "%s, in %u passes", names, j->passes);
    }
    return asides ? arena_printf(j->x->arena, "%s, put aside %u times", names, asides) : names;
}

wf_status gpu_agg_settle(struct job *j, const i64 *rows) {
    j->metric->how = form_names(j);
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        TRY(early_rows(j, &j->aggs[k], rows[k]));
    }
    return ERR_OK;
}

wf_status gpu_agg_end(struct job *j, bool *out_again) {
    bool in_runs = j->aggs[0].shape.run_rows != 0;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        u64 report[REPORT_WORDS];
        report_of(j, k, report);
        *out_again = runs_again(j, &j->aggs[k], report) || *out_again;
    }
    if (*out_again) {
        return ERR_OK;
    }
    if (in_runs) {
        TRY(runs_end(j));
    }
    if (j->early_bytes) {
        j->metric->how = form_names(j);
        return early_end(j);
    }
    wf_status status = agg_extract(j);
    j->metric->how = form_names(j);
    TRY(status);
    u64 last[REPORT_WORDS];
    report_of(j, 0, last);
    if (in_runs && (last[REPORT_RETRY] & (RETRY_ORDER | RETRY_TABLE))) {
        last[REPORT_ROWS] = 0;
        *out_again = runs_again(j, &j->aggs[0], last);
    } else if (j->aggs[0].shape.agg.part_mask) {
        TRY(part_end(j, &j->aggs[0]));
        *out_again = ++j->pass < j->passes;
    }
    return ERR_OK;
}

/* gpu_room.c: room that a scan over the bus makes while it goes on.
 *
 * Columns that cross the bus are to cross it once, so such a scan does not begin again when rows or
 * groups turn out to be more than expected. Every batch leaves a copy of the reports; with it the
 * host knows how many there are, and how many those under way may add: one for every row of theirs.
 * Before that could be too many it waits for them, and then
 *
 *   rows       move to larger columns, in memory of the host where the card has no more, once;
 *   a table    moves to one that is four times as large;
 *   groups     are put aside where the card has no room for that: by parts of their keys, in memory
 *              of the host, which kernels write and read in order. The table is empty again. In the
 *              end the groups of one part after the other meet in it.
 *
 * A table too small for the groups of a few batches takes its chance: it moves when it is half full,
 * and where even that is too late the scan stops at once and begins again with a larger one. */
#include "gpu/gpu_job.h"

#define ROOM_GROWTH 4
#define ASIDE_PARTS_LEAST 2u
#define PART_MASK_MOST ((1u << 20) - 1u) /* bits of a key's hash that tell parts apart */

static i64 report_bytes(const struct job *j) {
    return (i64)gpu_job_made_count(j) * REPORT_WORDS * 8;
}

static u64 seen(const struct job *j, u32 number, u32 word) {
    return j->seen[number * REPORT_WORDS + word];
}

/* Rows and groups that batches may give, at most. */
static i64 most_of(const struct job *j, i64 first, i64 end) {
    i64 rows = 0;
    for (i64 b = first; b < MIN_OF(end, j->batch_count); b++) {
        rows += j->batches[b].rows;
    }
    return rows <= I64_MAX / 4 / j->each_gives ? rows * j->each_gives : I64_MAX / 4;
}

/* Of as many batches as are under way at once. */
static i64 ahead_of(const struct job *j, i64 first) {
    return most_of(j, first, first + j->slot_count);
}

bool gpu_room_is_safe(const struct job *j, const struct kagg *agg) {
    i64 most = 0;
    for (i64 b = 0; b < j->batch_count; b++) {
        most = MAX_OF(most, j->batches[b].rows);
    }
    return j->each_gives < I64_MAX / 8 / MAX_OF(most, 1) / j->slot_count &&
           (i64)agg->group_limit / 2 >= most * j->each_gives * j->slot_count;
}

i64 gpu_room_ahead(const struct job *j) {
    return ahead_of(j, 0);
}

/* Whether rows are written one behind the other, as many as there is room for, by every batch. */
static struct gpu_var *written(const struct job *j) {
    const struct sink *sink = j->plan.sink;
    bool rows = sink->kind == SINK_ROWS && sink->limit < 0;
    return rows ? j->out : j->aggs[0].shape.run_rows ? j->aggs[0].out : NULL;
}

/* Behind the last batch the edges of tiles are written, too. */
static i64 rows_behind(const struct job *j) {
    return j->aggs[0].shape.run_rows ? 2 * (i64)j->tile_total : 0;
}

/* Whether rows may have no room beside those there are. Where each gives any number of them, columns
 * take their chance, as small tables do. */
static bool rows_are_short(const struct job *j, i64 more) {
    i64 rows = (i64)seen(j, 0, REPORT_ROWS);
    return j->each_gives > 1 ? rows > j->capacity / 2 : rows + more + rows_behind(j) > j->capacity;
}

void gpu_room_begin(struct job *j) {
    bool slots = j->place != PLACE_CACHED && j->batch_count > 1;
    j->watches = slots && !j->to_host;
    j->gives_up = 0;
    memset(j->seen, 0, sizeof j->seen);
    j->seen[REPORT_ROWS] = (u64)j->old_rows;
    for (u32 k = 0; k < PIPE_AGGS; k++) {
        j->aggs[k].stuck = 0;
    }
}

i64 gpu_room_bytes(const struct job *j) {
    return j->watches ? j->slot_count * report_bytes(j) : 0;
}

wf_status gpu_room_note(struct job *j, i32 slot, void *stream) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (j->watches) {
        CU(g->api->copy_to_host(g->reports.host + j->early_at + slot * report_bytes(j),
                                g->args_block->addr + (u64)j->reports_at, (size_t)report_bytes(j),
                                stream));
    }
    return ERR_OK;
}

void gpu_room_look(struct job *j, i32 slot) {
    if (j->watches) {
        memcpy(j->seen, j->g->reports.host + j->early_at + slot * report_bytes(j),
               (size_t)report_bytes(j));
        for (u32 k = 0; k < gpu_job_made_count(j); k++) {
            u64 hopeless = RETRY_TABLE | RETRY_INTERN | RETRY_ORDER;
            j->gives_up |= (seen(j, k, REPORT_RETRY) & hopeless) != 0;
        }
    }
}

/* --- rows --- */

/* One column, of so many rows, with those that it has. */
static FALLIBLE column_grow(struct job *j, struct gpu_block **block, u64 *addr, i64 width, i64 rows,
                            i64 capacity) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct gpu_block *larger = NULL;
    TRY(gpu_alloc_rows(g, capacity * width, &larger, err));
    int code = g->api->copy_device(larger->addr, *addr, (size_t)(rows * width), g->streams[0]);
    code = code ? code : gpu_sync(g, g->streams[0]);
    wf_status status = gpu_check(g->card, code, "copy_device", err);
    gpu_heap_free(g->card, status ? larger : *block);
    if (!status) {
        *block = larger;
        *addr = larger->addr;
    }
    return status;
}

/* Kernels find columns in the argument block. */
static FALLIBLE send_outs(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct kout *outs = (struct kout *)(void *)(j->blob + j->outs_at);
    i64 count = gpu_job_out_places(j);
    for (i32 s = 0; s < j->slot_count; s++) {
        gpu_job_sink_outs(j, s, outs + s * count);
    }
    CU(g->api->copy_to_device(g->args_block->addr + (u64)j->outs_at, outs,
                              sizeof *outs * (size_t)(count * j->slot_count), g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    return ERR_OK;
}

/* As many rows as there will be if batches go on to give as many as those before `next`, and a bit more. */
static i64 expected_rows(const struct job *j, i64 rows, i64 next) {
    i64 read = 0;
    for (i64 b = 0; b < next; b++) {
        read += j->batches[b].rows;
    }
    f64 all = (f64)rows / (f64)MAX_OF(read, 1) * (f64)j->source_rows;
    return all < (f64)(I64_MAX / 4) ? (i64)all + (i64)all / 8 : I64_MAX / 4;
}

static FALLIBLE rows_grow(struct job *j, struct gpu_var *out, i64 next) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 rows = (i64)seen(j, 0, REPORT_ROWS);
    i64 least = j->each_gives > 1 ? 2 * MAX_OF(rows, j->capacity)
                                  : rows + ahead_of(j, next) + rows_behind(j);
    i64 most = rows + most_of(j, next, j->batch_count) + rows_behind(j);
    bool is_rows = j->plan.sink->kind == SINK_ROWS;
    i64 width = is_rows ? gpu_job_row_bytes(j) : 8LL * out->col_count;
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    i64 capacity = MAX_OF(MIN_OF(most, 2 * j->capacity), least);
    if (capacity * width > room / 2) {
        capacity = least;
    }
    if (least * width > room && j->g->may_spill) { /* to the host, and at once: there every move crosses the bus */
        capacity = MAX_OF(MIN_OF(most, expected_rows(j, rows, next)), least);
    }
    j->g->known.capacity = capacity;
    for (u32 c = 0; c < out->col_count; c++) {
        struct gpu_col *col = &out->cols[c];
        i64 bytes = is_rows ? gpu_job_col_bytes(j, c) : 8;
        TRY(column_grow(j, &col->data, &col->addr, bytes, rows, capacity));
        if (col->nulls) {
            TRY(column_grow(j, &col->nulls, &col->nulls_addr, 1, rows, capacity));
            CU(g->api->set_bytes(col->nulls_addr + (u64)rows, 0, (size_t)(capacity - rows), g->streams[0]));
        }
    }
    j->capacity = capacity;
    TRY(gpu_job_set_room(j));
    return send_outs(j);
}

/* --- tables --- */

static FALLIBLE wait_first(struct job *j) {
    int code = gpu_sync(j->g, j->g->streams[0]);
    return gpu_check(j->g->card, code, "stream_synchronize", j->x->err);
}

static FALLIBLE start(struct job *j, enum kernel_no kernel, u64 rows, const void *args) {
    void *function = NULL;
    TRY(gpu_kernel(j->g->card, kernel, j->x, &function, j->x->err));
    i64 blocks = MIN_OF((i64)(rows / BLOCK_THREADS) + 1, j->g->card->sm_count * 8LL);
    j->metric->launches++;
    return gpu_launch(j->g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, j->g->streams[0],
                      args, j->x->err);
}

static u64 report_addr(const struct job *j, u32 number, u32 word) {
    u64 at = (u64)j->reports_at + ((u64)number * REPORT_WORDS + word) * 8;
    return j->g->args_block->addr + at;
}

/* An empty table, and no groups in the report. */
static FALLIBLE table_clear(struct job *j, u32 number) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct kagg_step init = {.agg = gpu_agg_args(j, number)};
    TRY(start(j, KERNEL_AGG_INIT, init.agg.slot_count, &init));
    CU(g->api->set_bytes(report_addr(j, number, REPORT_GROUPS), 0, 8, g->streams[0]));
    return ERR_OK;
}

/* Memory must be left for the groups as rows. */
static bool fits_twice(const struct job *j, const struct kagg *agg) {
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    return gpu_agg_table_bytes(agg) <= room / 2;
}

static FALLIBLE table_grow(struct job *j, u32 number, bool *out_done) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_agg *a = &j->aggs[number];
    struct kagg_move args = {.from = gpu_agg_args(j, number),
                             .report = DEV(u64 *, report_addr(j, number, 0))};
    struct kagg larger = a->shape.agg;
    struct gpu_block *block = NULL;
    for (u32 times = ROOM_GROWTH; !block && times > 1; times /= 2) {
        larger.slot_count = a->shape.agg.slot_count * times;
        block = fits_twice(j, &larger) ? gpu_alloc_try(g, gpu_agg_table_bytes(&larger)) : NULL;
    }
    *out_done = block != NULL;
    if (!block) {
        return ERR_OK;
    }
    struct gpu_block *old = a->state;
    a->state = block;
    a->shape.agg.slot_count = larger.slot_count;
    a->shape.agg.group_limit = larger.slot_count / 4 * 3;
    a->shape.agg.state = DEV(u64 *, block->addr);
    args.agg = gpu_agg_args(j, number);
    wf_status status = table_clear(j, number);
    status = status ? status : start(j, KERNEL_AGG_MOVE, args.from.slot_count, &args);
    int code = gpu_sync(g, g->streams[0]);
    gpu_heap_free(g->card, old);
    TRY(status);
    return gpu_check(g->card, code, "stream_synchronize", err);
}

/* --- aside --- */

/* As many parts as make each fit the table, if groups go on as they came. */
static u32 choose_parts(const struct job *j, i64 next) {
    i64 done = 0;
    u32 parts = ASIDE_PARTS_LEAST;
    for (i64 b = 0; b < next; b++) {
        done += j->batches[b].rows;
    }
    while (parts < ASIDE_PARTS && (i64)parts * done < 2 * j->source_rows) {
        parts *= 2;
    }
    return parts;
}

/* Queues the kernels that write the parts, and where each begins behind the counter. */
static FALLIBLE pack_parts(struct job *j, u32 number, const struct aside *aside, u64 counter) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct kagg_rows args = {.agg = gpu_agg_args(j, number),
                             .rows = DEV(u64 *, aside->rows->addr),
                             .stride = (u64)aside->stride,
                             .counter = DEV(u64 *, counter)};
    args.agg.part_mask = j->aggs[number].aside_parts - 1;
    CU(g->api->set_bytes(counter, 0, 8, g->streams[0]));
    for (u32 p = 0; p < j->aggs[number].aside_parts; p++) {
        args.agg.part = p;
        TRY(start(j, KERNEL_AGG_PACK, args.agg.slot_count, &args));
        CU(g->api->copy_device(counter + 8 * (p + 1), counter, 8, g->streams[0]));
    }
    return ERR_OK;
}

wf_status gpu_room_put_aside(struct job *j, u32 number, i64 groups, i64 next) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_agg *a = &j->aggs[number];
    struct gpu_block *counter = NULL;
    a->aside_parts = a->aside_parts ? a->aside_parts : choose_parts(j, next);
    size_t bytes = 8 * (size_t)(a->aside_parts + 1);
    struct aside *aside = NEW(j->x->arena, struct aside);
    TRY(arena_check(j->x->arena, err));
    aside->stride = MAX_OF(groups, 1);
    TRY(gpu_alloc_away(g, aside->stride * 8 * (1 + a->sink->word_count), &aside->rows, err));
    aside->before = a->asides;
    a->asides = aside;
    a->aside_count++;
    TRY(gpu_alloc_rows(g, (i64)bytes, &counter, err));
    wf_status status = pack_parts(j, number, aside, counter->addr);
    int code = status ? 0 : g->api->copy_to_host(aside->starts, counter->addr, bytes, g->streams[0]);
    int waited = gpu_sync(g, g->streams[0]);
    gpu_heap_free(g->card, counter);
    TRY(status);
    TRY(gpu_check(g->card, code ? code : waited, "copy_to_host", err));
    ASSERT(aside->starts[a->aside_parts] == (u64)groups);
    gpu_job_fetched(j, groups * 8 * (1 + a->sink->word_count));
    aside->starts[0] = 0;
    TRY(table_clear(j, number));
    return wait_first(j); /* batches go on on other streams */
}

/* The groups of a part of the keys, whose rows are those of the lowest bits of `part`. */
static FALLIBLE join_part(struct job *j, u32 number, u32 part, u32 mask) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_agg *a = &j->aggs[number];
    u32 stored = part & (a->aside_parts - 1);
    u64 report[REPORT_WORDS];
    TRY(table_clear(j, number));
    CU(g->api->set_bytes(report_addr(j, number, 0), 0, sizeof report, g->streams[0]));
    for (const struct aside *aside = a->asides; aside; aside = aside->before) {
        struct kagg_rows args = {.agg = gpu_agg_args(j, number),
                                 .rows = DEV(u64 *, aside->rows->addr) + aside->starts[stored],
                                 .stride = (u64)aside->stride,
                                 .count = aside->starts[stored + 1] - aside->starts[stored],
                                 .report = DEV(u64 *, report_addr(j, number, 0))};
        args.agg.part = part;
        args.agg.part_mask = mask;
        TRY(start(j, KERNEL_AGG_MERGE, args.count, &args));
        j->metric->bytes_moved += (i64)args.count * 8 * (1 + a->sink->word_count);
    }
    CU(g->api->copy_to_host(report, report_addr(j, number, 0), sizeof report, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    if (!(report[REPORT_RETRY] & RETRY_TABLE)) {
        return gpu_agg_part_rows(j, number, report);
    }
    if (mask >= PART_MASK_MOST) {
        FAIL(err, DEVICE_MEMORY, "out of GPU memory: groups cannot be parted any further");
    }
    TRY(join_part(j, number, part, 2 * mask + 1));
    return join_part(j, number, part + mask + 1, 2 * mask + 1);
}

wf_status gpu_room_join_asides(struct job *j, u32 number) {
    struct job_agg *a = &j->aggs[number];
    a->part_rows = 0;
    a->part_count = 0;
    for (u32 p = 0; p < a->aside_parts; p++) {
        TRY(exec_check(j->x));
        TRY(join_part(j, number, p, a->aside_parts - 1));
    }
    return ERR_OK;
}

void gpu_room_drop_asides(struct job *j, u32 number) {
    struct job_agg *a = &j->aggs[number];
    for (struct aside *aside = a->asides; aside; aside = aside->before) {
        gpu_heap_free(j->g->card, aside->rows);
    }
    a->asides = NULL;
    a->aside_count = 0;
    a->aside_parts = 0;
}

/* --- before a batch --- */

static bool is_hashed(const struct job *j, u32 number) {
    const struct agg_shape *shape = &j->aggs[number].shape;
    return shape->agg.form == AGG_HASH && !shape->run_rows && !shape->agg.part_mask;
}

/* Whether batches up to `next`, of which some are under way, may give more than there is room for. What
 * is seen was copied when the last of those done was, perhaps before some that began before it. */
static bool is_short(const struct job *j, i64 done, i64 next) {
    i64 more = most_of(j, MAX_OF(done - j->slot_count, 0), next + 1);
    bool lost = (seen(j, 0, REPORT_RETRY) & RETRY_OUTPUT) != 0;
    bool is = written(j) && !lost && rows_are_short(j, more);
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        const struct job_agg *a = &j->aggs[k];
        i64 groups = (i64)seen(j, k, REPORT_GROUPS);
        i64 limit = (i64)a->shape.agg.group_limit;
        bool safe = gpu_room_is_safe(j, &a->shape.agg);
        is = is || (is_hashed(j, k) && !a->stuck &&
                    (safe ? groups + more > limit : groups > limit / 2));
    }
    return is;
}

static FALLIBLE table_room(struct job *j, u32 number, i64 next) {
    struct job_agg *a = &j->aggs[number];
    i64 groups = (i64)seen(j, number, REPORT_GROUPS);
    i64 limit = (i64)a->shape.agg.group_limit;
    bool safe = gpu_room_is_safe(j, &a->shape.agg);
    bool done = safe ? groups + ahead_of(j, next) <= limit : groups <= limit / 2;
    if (!done) {
        TRY(table_grow(j, number, &done));
    }
    if (!done && safe && j->g->may_spill) {
        done = true;
        TRY(gpu_room_put_aside(j, number, groups, next));
        j->seen[number * REPORT_WORDS + REPORT_GROUPS] = 0;
    }
    a->stuck = !done;
    return ERR_OK;
}

wf_status gpu_room_before(struct job *j, i64 next, i64 *done) {
    if (!j->watches || j->gives_up || !is_short(j, *done, next)) {
        return ERR_OK;
    }
    for (; *done < next; ++*done) {
        TRY(gpu_job_harvest(j, *done));
    }
    TRY(gpu_room_note(j, 0, j->g->streams[0])); /* all there is */
    TRY(wait_first(j));
    gpu_room_look(j, 0);
    struct gpu_var *out = written(j);
    bool lost = (seen(j, 0, REPORT_RETRY) & RETRY_OUTPUT) != 0; /* it will be known how many there are */
    if (out && !lost && rows_are_short(j, ahead_of(j, next))) {
        TRY(rows_grow(j, out, next));
    }
    for (u32 k = 0; !j->gives_up && k < j->plan.agg_count; k++) {
        if (is_hashed(j, k) && !j->aggs[k].stuck) {
            TRY(table_room(j, k, next));
        }
    }
    return ERR_OK;
}

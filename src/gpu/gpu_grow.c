/* gpu_grow.c: STEP_BUILD of an index to which rows are added: a recursion's rows so far, by a key.
 *
 * It is a hash table whose keys have runs of row numbers, as gpu_build.c makes it, but runs have room to
 * spare, as those of cpu/index_grow.c: one of n rows has room for the next power of two, and one that is
 * full moves (kernels/grow.h, k_grow_count). So a round costs what its own rows cost. Pipelines look keys
 * up as in any other index.
 *
 * Room is the table's slots and the places of all runs. An index that lacks it is made anew, with more. With
 * four places a row it lacks none, whatever the keys: a run of n rows has left at most as many places as
 * it has, and has at most twice as many as rows. */
#include "gpu/gpu_int.h"

#define LEAST_KEYS (1LL << 16)
#define LEAST_KEYS_SIMT 8LL
#define KEYS_IN_FLIGHT (1LL << 20) /* rows that a card is adding at a time */
#define KEYS_IN_FLIGHT_SIMT (1LL << 10)
#define GROWTH 4
#define PLACES_A_ROW 4
#define PLACES_AT_ONCE 2 /* that are added to an empty index */
#define SLOT_PARTS 3     /* numbers aside of every slot */
#define PLACES_MOST 0xffffffffLL /* they are numbered by 32 bits */

struct growing {
    struct gpu *g;
    struct exec *x;
    const struct step *step;
    struct gpu_var *gv;
    struct gpu_block *report; /* and the range behind it */
    struct gpu_growth with;
    i64 rows;         /* to be indexed */
    i64 capacity;     /* rows to have room for; 0 = those */
    i64 keys, places; /* a new one has room for */
    i64 moved, launches;
};

/* Different keys that there can be. */
static i64 most_keys(const struct growing *w) {
    i128 span = w->step->key_range.hi - w->step->key_range.lo + 1;
    bool known = span > 0 && w->step->key_range.lo >= I64_MIN;
    return known && span < PLACES_MOST ? (i64)span : PLACES_MOST;
}

/* Slots for `keys`, and for those that are being added when it is known that they are too many. */
static i64 slots_for(const struct growing *w, i64 keys) {
    i64 flight = w->g->api->is_simt ? KEYS_IN_FLIGHT_SIMT : KEYS_IN_FLIGHT;
    i64 least = 2 * keys + (keys < most_keys(w) ? flight : 0);
    i64 slots = 64;
    while (slots < least) {
        slots *= 2;
    }
    return slots;
}

/* An empty index with the room that is asked for. */
static FALLIBLE make_index(struct growing *w) {
    struct gpu *g = w->g;
    struct error *err = w->x->err;
    i64 least = g->api->is_simt ? LEAST_KEYS_SIMT : LEAST_KEYS;
    i64 keys = MIN_OF(MAX_OF(w->keys, least), most_keys(w));
    i64 slots = slots_for(w, keys);
    i64 aside = GROW_WORDS * 8 + SLOT_PARTS * slots * (i64)sizeof(u32);
    if (slots > 1LL << 32 || w->places > PLACES_MOST) { /* they are numbered by 32 bits */
        FAIL(err, DEVICE_MEMORY, "no GPU has an index with %lld places for rows", w->places);
    }
    variable_reset(&w->x->vars[w->step->dst]);
    TRY(gpu_var_new(g, w->x, w->step->dst, 0, &w->gv));
    struct gpu_var *gv = w->gv;
    TRY(gpu_alloc(g, 2 * slots * 8, &gv->slots, err));
    TRY(gpu_alloc(g, w->places * 4, &gv->index_rows, err));
    TRY(gpu_alloc(g, aside, &gv->grow, err));
    CU(g->api->set_bytes(gv->slots->addr, 0, (size_t)slots * 16, g->streams[0]));
    CU(g->api->set_bytes(gv->grow->addr, 0, (size_t)aside, g->streams[0]));
    gv->grown_keys = keys;
    gv->capacity = w->places;
    gv->most_matches = 1;
    gv->index = (struct kindex){.form = KINDEX_RUNS,
                                .slot_count = (u64)slots,
                                .slots = DEV(const u64 *, gv->slots->addr),
                                .rows = DEV(const u32 *, gv->index_rows->addr)};
    return ERR_OK;
}

static FALLIBLE set_args(struct growing *w) {
    struct kcol key = {0};
    const struct gpu_var *gv = w->gv;
    if (w->x->vars[w->step->src].copy || w->rows > 0) {
        TRY(gpu_var_col(w->g, w->x, w->step->src, w->step->col, &key, &w->moved));
    }
    u64 aside = gv->grow->addr + GROW_WORDS * 8;
    u64 part = gv->index.slot_count * sizeof(u32);
    w->with.args =
        (struct kgrow){.key = (const i64 *)(const void *)key.data,
                       .nulls = key.nulls,
                       .slot_count = gv->index.slot_count,
                       .key_limit = gv->grown_keys < most_keys(w) ? (u64)gv->grown_keys : ~0ULL,
                       .slots = DEV(u64 *, gv->slots->addr),
                       .owners = DEV(u32 *, aside),
                       .more = DEV(u32 *, aside + part),
                       .touched = DEV(u32 *, aside + 2 * part),
                       .rows = DEV(u32 *, gv->index_rows->addr),
                       .row_room = (u64)gv->capacity,
                       .words = DEV(u64 *, gv->grow->addr)};
    return ERR_OK;
}

static FALLIBLE find_kernels(struct growing *w) {
    static const enum kernel_no numbers[GROW_KERNELS] = {KERNEL_GROW_COUNT, KERNEL_GROW_PLACE,
                                                         KERNEL_GROW_ROWS};
    for (i32 k = 0; k < GROW_KERNELS; k++) {
        TRY(gpu_kernel(w->g->card, numbers[k], w->x, &w->with.kernels[k], w->x->err));
    }
    w->with.grid = (struct gpu_grid){w->g->card->sm_count * 8LL, BLOCK_THREADS, 0};
    return ERR_OK;
}

/* Adds the rows that it lacks; what the card says of them. */
static FALLIBLE add_rows(struct growing *w, u64 report[REPORT_WORDS]) {
    struct gpu *g = w->g;
    struct error *err = w->x->err;
    struct kgrow *args = &w->with.args;
    struct start {
        u64 report[REPORT_WORDS];
        struct krange range;
    } start = {.report = {[REPORT_COUNTS] = (u64)w->gv->most_matches},
               .range = {.first = w->gv->grown_rows, .end = w->rows}};
    TRY(set_args(w));
    args->report = DEV(u64 *, w->report->addr);
    args->range = DEV(const struct krange *, w->report->addr + offsetof(struct start, range));
    TRY(gpu_pinned_reserve(g, &g->reports, sizeof start, err));
    memcpy(g->reports.host, &start, sizeof start);
    CU(g->api->copy_to_device(w->report->addr, g->reports.host, sizeof start, g->streams[0]));
    struct gpu_grid grid = w->with.grid;
    i64 blocks = (w->rows - w->gv->grown_rows) / BLOCK_THREADS + 1;
    grid.blocks = MIN_OF(grid.blocks, blocks);
    for (i32 k = 0; k < GROW_KERNELS; k++) {
        TRY(gpu_launch(g, w->with.kernels[k], grid, g->streams[0], args, err));
        w->launches++;
    }
    CU(g->api->copy_to_host(g->reports.host, w->report->addr, REPORT_WORDS * 8, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    memcpy(report, g->reports.host, REPORT_WORDS * 8);
    return ERR_OK;
}

/* Places for the rows there are and, where memory allows it, for those that may come. */
static void want_places(struct growing *w) {
    i64 room = MAX_OF(gpu_heap_available(w->g->card), 0) / 4 / (i64)sizeof(u32);
    i64 most = MIN_OF(PLACES_A_ROW * MAX_OF(w->capacity, 2 * w->rows), PLACES_MOST);
    w->places = MAX_OF(MAX_OF(MIN_OF(most, room), PLACES_AT_ONCE * w->rows), 64);
}

/* The index as it is, if it can stay. */
static struct gpu_var *find_index(struct growing *w) {
    const struct variable *to = &w->x->vars[w->step->dst];
    struct gpu_var *gv = to->index ? NULL : to->copy;
    bool there = gv && gv->grow && gv->epoch == w->g->card->epoch && gv->grown_rows <= w->rows;
    return there && gv->capacity >= MIN_OF(w->places, PLACES_A_ROW * w->capacity) ? gv : NULL;
}

static FALLIBLE add_all(struct growing *w) {
    u64 report[REPORT_WORDS];
    want_places(w);
    w->gv = find_index(w);
    if (!w->gv) {
        TRY(make_index(w));
    }
    TRY(find_kernels(w));
    while (w->gv->grown_rows < w->rows) {
        TRY(exec_check(w->x));
        TRY(add_rows(w, report));
        if (report[REPORT_RETRY]) {
            w->keys = w->gv->grown_keys * (report[REPORT_RETRY] & RETRY_TABLE ? GROWTH : 1);
            TRY(make_index(w));
            continue;
        }
        w->gv->grown_rows = w->rows;
        w->gv->most_matches = MAX_OF((i64)report[REPORT_COUNTS], 1);
    }
    w->gv->rows = w->rows;
    w->gv->share = gpu_var_share(w->x, w->step->dst, w->rows, 1.0);
    w->x->vars[w->step->dst].rows = w->rows;
    w->x->vars[w->step->dst].on_host = 0;
    return set_args(w);
}

static FALLIBLE grow(struct growing *w) {
    struct error *err = w->x->err;
    if (w->rows > DEVICE_INDEX_ROWS_MOST) {
        FAIL(err, DEVICE_MEMORY, "no GPU has an index over %lld rows", w->rows);
    }
    TRY(gpu_alloc(w->g, REPORT_WORDS * 8 + sizeof(struct krange), &w->report, err));
    wf_status status = add_all(w);
    if (status) { /* nothing may still be writing what is freed, and nobody knows what it has */
        gpu_wait(w->g);
        variable_reset(&w->x->vars[w->step->dst]);
    }
    gpu_heap_free(w->g->card, w->report);
    return status;
}

wf_status gpu_run_grow(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct growing w = {.g = g, .x = x, .step = step, .rows = x->vars[step->src].rows};
    const struct gpu_var *had = x->vars[step->dst].copy;
    i64 before = had && had->grown_rows <= w.rows ? had->grown_rows : 0;
    struct step_metric *metric = &x->metrics[step_no];
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    struct error *err = x->err;
    TRY(gpu_event(g, 0, &first, err));
    TRY(gpu_event(g, 1, &last, err));
    CU(g->api->event_record(first, g->streams[0]));
    wf_status status = grow(&w);
    metric->device = "gpu grown hash";
    metric->launches += w.launches;
    metric->bytes_moved += w.moved;
    TRY(status);
    CU(g->api->event_record(last, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    CU(g->api->event_elapsed(&ms, first, last));
    metric->device_ns += (i64)((f64)ms * 1e6);
    metric->rows_in += w.rows - before;
    metric->rows_out += w.rows - before;
    metric->bytes_read += (w.rows - before) * 8;
    return ERR_OK;
}

wf_status gpu_grow_ready(struct gpu *g, struct exec *x, const struct step *step, i64 capacity,
                         struct gpu_growth *out) {
    struct growing w = {
        .g = g, .x = x, .step = step, .rows = x->vars[step->src].rows, .capacity = capacity};
    TRY(grow(&w));
    *out = w.with;
    return ERR_OK;
}

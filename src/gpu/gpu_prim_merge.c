/* gpu_prim_merge.c: merge, sorted search, runs and set operations on the card.
 *
 * Where two ascending arrays meet, a small launch first finds where every tile begins in both: one
 * thread per tile, all at once, because a tile that searched for itself would wait for some sixty
 * dependent reads. */
#include "gpu/gpu_prim_order.h"

#include <stdio.h>

#include "prim/move.h"

#include "gpu/gpu_cub.h"

enum { FAR = 8 }; /* so many elements per needle: rather search than read all */

/* --- merge --- */

/* Threads, items of each, blocks a multiprocessor. Tiles of a merge sort are those its blocks
 * sort. */
struct merge_shape {
    i32 threads, items, blocks;
};
static struct merge_shape merge_shape_of(const struct order *o, const struct kmerge *args,
                                         i32 payload_bytes) {
    return o->bytes == 4 && !args->run && !payload_bytes ? (struct merge_shape){128, 31, 10}
           : o->bytes == 4 && !payload_bytes             ? (struct merge_shape){PATH_THREADS, 15, 6}
           : payload_bytes < 8                           ? (struct merge_shape){PATH_THREADS, 15, 5}
                               : (struct merge_shape){PATH_THREADS, 15, 4};
}

bool gpu_merges_words(const struct order *o, const struct kmerge *args, i32 payload_bytes) {
    size_t places = (size_t)args->a | (size_t)args->b | (size_t)args->out;
    places |= (size_t)args->a_payload | (size_t)args->b_payload | (size_t)args->out_payload;
    struct merge_shape shape = merge_shape_of(o, args, payload_bytes);
    bool tiles = !args->run || shape.threads * shape.items == PATH_THREADS * path_items(o->bytes);
    bool words = payload_bytes ? o->bytes == 4 && payload_bytes <= 8 : o->bytes <= 8;
    return !o->is_float && !o->is_text && words && places % 16 == 0 && tiles;
}

wf_status gpu_merge_words(struct prim_job *job, const struct order *o, const struct kmerge *args,
                          i64 total, i32 payload_bytes) {
    struct merge_shape shape = merge_shape_of(o, args, payload_bytes);
    i64 tile = (i64)shape.threads * shape.items;
    i64 tiles = (total + tile - 1) / tile;
    i64 shared = tile * o->bytes + 96; /* both arrays' parts as they are aligned */
    if (payload_bytes) {
        shared += tile * payload_bytes + 96 + tile * 2; /* and places */
    }
    char defines[ORDER_DEFINES];
    i32 used = order_text(o, defines, ORDER_DEFINES);
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used),
             "#define KEY_WHOLE 1\n#define MERGE_THREADS %d\n#define WIRE_ITEMS %d\n"
             "#define WF_MIN_BLOCKS %d\n#define PAYLOAD %d\n",
             shape.threads, shape.items, shape.blocks, payload_bytes);
    struct gpu_template cut = {"merge_words", "k_merge_cuts", defines};
    struct gpu_template merge = {"merge_words", "k_merge_words", defines};
    TRY(gpu_prim_launch_all(job, &cut, tiles / shape.threads + 1, (u32)shape.threads, 0, args));
    return gpu_prim_launch_all(job, &merge, tiles, (u32)shape.threads, shared, args);
}

static FALLIBLE merge_walked(struct prim_job *job, const struct order *o, const struct kmerge *args,
                             i64 tiles, i32 payload_bytes) {
    char defines[ORDER_DEFINES];
    i32 used = order_text(o, defines, ORDER_DEFINES);
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used),
             "#define PATH_ITEMS %d\n#define PAYLOAD %d\n", path_items(o->bytes), payload_bytes);
    struct gpu_template cut = {"merge", "k_merge_cuts", defines};
    struct gpu_template merge = {"merge", "k_merge", defines};
    TRY(gpu_prim_launch_all(job, &cut, tiles / PATH_THREADS + 1, PATH_THREADS, 0, args));
    return gpu_prim_launch_all(job, &merge, tiles, PATH_THREADS, 0, args);
}

static FALLIBLE gpu_merge(struct prim_job *job, struct prim_array out, struct prim_array a,
                          struct prim_array b, struct prim_array out_payload,
                          struct prim_array a_payload, struct prim_array b_payload) {
    struct order o = order_of(a.type, false);
    bool has_payload = out_payload.data != NULL;
    if (elem_kinds[a.type] == 'U' && !has_payload && !out_payload.count &&
        gpu_cub_picks(job, CUB_MERGE, o.bytes, a.count + b.count)) {
        return gpu_cub_merge(job, out, a, b);
    }
    i64 total = a.count + b.count;
    i64 tile = PATH_THREADS * path_items(o.bytes); /* the smallest there is */
    i64 tiles = (total + tile - 1) / tile;
    i64 mark = prim_mark(job);
    struct kmerge args = {.order = korder_of(&o, &a),
                          .a = a.data,
                          .b = b.data,
                          .a_payload = a_payload.data,
                          .b_payload = b_payload.data,
                          .out = out.data,
                          .out_payload = out_payload.data,
                          .a_count = a.count,
                          .b_count = b.count,
                          .cuts = prim_take(job, (tiles + 1) * 8)};
    TRY(order_check_text(job, a));
    TRY(order_check_text(job, b));
    i32 payload_bytes = has_payload ? elem_bytes[out_payload.type] : 0;
    if (tiles && gpu_merges_words(&o, &args, payload_bytes)) {
        TRY(gpu_merge_words(job, &o, &args, total, payload_bytes));
    } else if (tiles) {
        TRY(merge_walked(job, &o, &args, tiles, payload_bytes));
    }
    prim_back(job, mark);
    return ERR_OK;
}

/* --- search --- */

static FALLIBLE gpu_search(struct prim_job *job, struct prim_search how, struct prim_array out,
                           struct prim_array needles, struct prim_array among) {
    struct order o = order_of(among.type, false);
    i64 tile = PATH_THREADS * path_items(o.bytes);
    i64 tiles = (needles.count + among.count + tile - 1) / tile;
    i64 mark = prim_mark(job);
    struct ksearch args = {.order = korder_of(&o, &among),
                           .needles = needles.data,
                           .among = among.data,
                           .out = out.data,
                           .needle_count = needles.count,
                           .among_count = among.count,
                           .cuts = prim_take(job, (tiles + 2) * 8),
                           .add = how.minus_one ? -1 : 0};
    char defines[ORDER_DEFINES];
    i32 used = order_text(&o, defines, ORDER_DEFINES);
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used),
             "#define PATH_ITEMS %d\n#define UPPER %d\n#define COUNTING %d\n#define OUT_BYTES %d\n",
             path_items(o.bytes), how.upper, how.counting, elem_bytes[out.type]);
    TRY(how.counting ? ERR_OK : order_check_text(job, needles));
    TRY(order_check_text(job, among));
    if (needles.count && (!how.sorted || among.count / FAR > needles.count)) {
        struct gpu_template any = {"search", "k_search_any", defines};
        TRY(gpu_prim_launch(job, &any, needles.count / PATH_THREADS + 1, PATH_THREADS, 0, &args));
    } else if (needles.count) {
        struct gpu_template cut = {"search", "k_search_cuts", defines};
        struct gpu_template search = {"search", "k_search", defines};
        TRY(gpu_prim_launch_all(job, &cut, (tiles + 1) / PATH_THREADS + 1, PATH_THREADS, 0, &args));
        TRY(gpu_prim_launch_all(job, &search, tiles, PATH_THREADS, 0, &args));
    }
    prim_back(job, mark);
    return ERR_OK;
}

/* --- one-pass outputs --- */

struct tile_states { /* of look-back, with ticket and total behind them */
    u64 *state;
    u32 *ticket;
    u64 *total;
};

static FALLIBLE take_states(struct prim_job *job, i64 tiles, struct tile_states *out) {
    out->state = prim_take(job, tiles * 8 + 16);
    out->total = out->state + tiles;
    out->ticket = (u32 *)(void *)(out->state + tiles + 1);
    return gpu_prim_fill(job, out->state, 0, tiles * 8 + 16);
}

/* First elements of runs of text, which only their bytes tell apart, and where they are. */
static FALLIBLE text_runs(struct prim_job *job, const struct prim_array *keys, struct kruns *args,
                          const char *defines, i64 *out_count) {
    i64 tile = PATH_THREADS * path_items(16);
    i64 tiles = (keys->count + tile - 1) / tile;
    struct tile_states states;
    struct gpu_template runs = {"runs", "k_runs", defines};
    u64 total = 0;
    TRY(order_check_text(job, *keys));
    TRY(take_states(job, tiles, &states));
    args->state = states.state;
    args->ticket = states.ticket;
    args->total = states.total;
    TRY(gpu_prim_launch_all(job, &runs, tiles, PATH_THREADS, 0, args));
    TRY(gpu_prim_fetch(job, &total, states.total, 8));
    *out_count = (i64)total;
    return prim_room(job, "runs", *out_count, args->room);
}

/* The same of words: a compaction. */
static FALLIBLE word_runs(struct prim_job *job, const struct prim_array *keys,
                          struct prim_array out_keys, struct prim_array out_starts, i64 room,
                          i64 *out_count) {
    struct prim_compact heads = {.what = "runs",
                                 .keep = {.kind = KEEP_HEADS, .by = *keys},
                                 .ordered = 1,
                                 .room = room,
                                 .out_count = out_count};
    if (out_keys.data) {
        heads.in[heads.column_count] = *keys;
        heads.out[heads.column_count++] = out_keys;
    }
    if (out_starts.data) {
        heads.in[heads.column_count] = (struct prim_array){.type = out_starts.type};
        heads.out[heads.column_count++] = out_starts;
    }
    return prim_compact(job, &heads);
}

static FALLIBLE gpu_runs(struct prim_job *job, struct prim_array out_keys,
                         struct prim_array out_starts, struct prim_array out_counts,
                         struct prim_array keys, i64 *out_count) {
    struct order o = order_of(keys.type, false);
    i64 mark = prim_mark(job);
    i64 room = keys.count;
    room = out_keys.data ? MIN_OF(room, out_keys.count) : room;
    room = out_starts.data ? MIN_OF(room, out_starts.count) : room;
    room = out_counts.data ? MIN_OF(room, out_counts.count) : room;
    if (!out_starts.data && (out_counts.data || job->measuring)) {
        out_starts = order_take(job, ELEM_U64, room);
    }
    struct kruns args = {.order = korder_of(&o, &keys),
                         .keys = keys.data,
                         .count = keys.count,
                         .out_keys = out_keys.data,
                         .out_starts = out_starts.data,
                         .out_counts = out_counts.data,
                         .room = room,
                         .starts_wide = elem_bytes[out_starts.type] == 8,
                         .counts_wide = elem_bytes[out_counts.type] == 8};
    char defines[ORDER_DEFINES];
    i32 used = order_text(&o, defines, ORDER_DEFINES);
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used), "#define PATH_ITEMS %d\n",
             path_items(16));
    *out_count = 0;
    if (keys.count) {
        TRY(o.is_text ? text_runs(job, &keys, &args, defines, out_count)
                      : word_runs(job, &keys, out_keys, out_starts, room, out_count));
        args.runs = *out_count;
        struct gpu_template counts = {"runs", "k_run_counts", defines};
        if (out_counts.data) {
            TRY(gpu_prim_launch(job, &counts, *out_count / PATH_THREADS + 1, PATH_THREADS, 0,
                                &args));
        }
    }
    prim_back(job, mark);
    return ERR_OK;
}

struct set_shape {
    i32 threads, items, blocks;
    bool wires;
};

/* As measured on an H200, shares of a copy of 128 M + 128 M: 4 bytes 48 to 66 %, where 256 threads
 * of 15 items reach 42 to 59 % and 64 of 31 reach 41 %. */
static struct set_shape set_shape_of(const struct order *o, bool paged) {
    if (paged || o->is_float || o->is_text || o->bytes > 8) {
        return (struct set_shape){PATH_THREADS, path_items(o->bytes), 1, false};
    }
    return o->bytes == 4 ? (struct set_shape){128, 31, 10, true}
                         : (struct set_shape){256, 15, 5, true};
}

static void set_text(const struct order *o, struct prim_set how, const struct set_shape *shape,
                     bool paged, char *defines) {
    i32 used = order_text(o, defines, ORDER_DEFINES);
    bool whole = shape->wires && !how.ignore_bits;
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used),
             "#define WF_MIN_BLOCKS %d\n#define SET_THREADS %d\n#define PATH_ITEMS %d\n"
             "#define SET_WIRES %d\n#define SET_PAGES %d\n#define SET_OP %d\n"
             "#define SET_DISTINCT %d\n%s%s",
             shape->blocks, shape->threads, shape->items, shape->wires, paged, how.op, how.distinct,
             whole ? "#define KEY_WHOLE 1\n" : "",
             whole && !o->flip_low ? "#define KEY_PLAIN 1\n" : "");
}

/* A tile in shared memory: what a star adds, room before each array's part, both kept aligned. */
static i64 set_shared(const struct order *o, const struct set_shape *shape) {
    return (i64)(shape->threads * shape->items + 1) * o->bytes + 6 * 16;
}

static FALLIBLE run_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                         const struct prim_pages *a, const struct prim_pages *b, i64 *out_count) {
    struct order o = order_of(a->rows.type, false);
    bool paged = a->paged || b->paged;
    struct set_shape shape = set_shape_of(&o, paged);
    i64 tile = (i64)shape.threads * shape.items;
    i64 tiles = (a->rows.count + b->rows.count + tile - 1) / tile;
    i64 mark = prim_mark(job);
    struct tile_states states;
    TRY(take_states(job, tiles, &states));
    struct kset args = {.order = korder_of(&o, &a->rows),
                        .a = a->rows.data,
                        .b = b->rows.data,
                        .out = out.data,
                        .a_pages = a->pages,
                        .b_pages = b->pages,
                        .a_count = a->rows.count,
                        .b_count = b->rows.count,
                        .room = out.count,
                        .cuts = prim_take(job, (tiles + 2) * 8),
                        .bounds = prim_take(job, shape.wires ? (tiles + 2) * 2 * o.bytes : 0),
                        .state = states.state,
                        .ticket = states.ticket,
                        .total = states.total};
    args.order.ignore_bits = (u32)how.ignore_bits;
    char defines[ORDER_DEFINES];
    set_text(&o, how, &shape, paged, defines);
    if (tiles) {
        struct gpu_template cut = {"sets", "k_set_cuts", defines};
        struct gpu_template set = {"sets", "k_set", defines};
        u64 total = 0;
        TRY(gpu_prim_launch_all(job, &cut, (tiles + shape.threads) / shape.threads,
                                (u32)shape.threads, 0, &args));
        TRY(gpu_prim_launch_all(job, &set, tiles, (u32)shape.threads, set_shared(&o, &shape),
                                &args));
        TRY(gpu_prim_fetch(job, &total, states.total, 8));
        *out_count = (i64)total;
    }
    prim_back(job, mark);
    return prim_room(job, "set operation", *out_count, out.count);
}

static FALLIBLE gpu_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                         struct prim_array a, struct prim_array b, i64 *out_count) {
    if (gpu_cub_sets(how, out, a, b) &&
        gpu_cub_picks(job, CUB_SET, elem_bytes[a.type], a.count + b.count)) {
        return gpu_cub_set(job, how, out, a, b, out_count);
    }
    TRY(order_check_text(job, a));
    TRY(order_check_text(job, b));
    struct prim_pages in[2] = {{.rows = a}, {.rows = b}};
    return run_sets(job, how, out, &in[0], &in[1], out_count);
}

wf_status gpu_paged_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                         const struct prim_pages *a, const struct prim_pages *b, i64 *out_count) {
    ASSERT(!how.distinct);
    return run_sets(job, how, out, a, b, out_count);
}

const struct prim_order gpu_prim_order_class = {.split = gpu_split,
                                                .sort = gpu_sort,
                                                .merge = gpu_merge,
                                                .search = gpu_search,
                                                .runs = gpu_runs,
                                                .sets = gpu_sets,
                                                .words = gpu_words,
                                                .number = gpu_number};

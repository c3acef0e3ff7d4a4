/* gpu_prim_algebra.c: the card's operators on packed tuples.
 *
 * What varies by word, kind and stage is text; layouts are arguments. Every operation has a few
 * counters in workspace, cleared first; its total is fetched once, at the end, which is the only
 * wait. */
#include "gpu/gpu_prim_order.h"

#include "prim/algebra.h"
#include "prim/move.h"

#include <stdio.h>

static i64 blocks_of(i64 count, i64 each) {
    return (count + each - 1) / each;
}

/* Rows in tiles: pages as they are, or of page_rows; an array is one page when page_rows is 0. */
static struct krel_rows tiled(struct rel_rows rows, i64 page_rows, i64 tile_rows) {
    struct krel_rows k = {.data = rows.data, .fills = rows.paged ? rows.fills : NULL};
    k.count = rows.count;
    k.page_rows = rows.paged ? rows.page_rows : page_rows ? page_rows : rows.count;
    k.page_count = rows.paged ? rows.page_count : page_rows ? blocks_of(rows.count, page_rows) : 1;
    k.page_tiles = blocks_of(k.page_rows, tile_rows);
    return k;
}

static struct krel_pages pages_of(struct rel_rows rows) {
    return (struct krel_pages){rows.starts, rows.page_rows, rows.page_count};
}

static FALLIBLE starts(struct prim_job *job, u64 *out, struct rel_rows rows, i64 *out_count) {
    struct krel_starts args = {rows.fills, out, rows.page_rows, rows.page_count};
    struct gpu_template code = {"relmap", "k_page_counts",
                                "#define IN_BYTES 4\n#define OUT_BYTES 4\n#define MOVES 1\n"};
    struct prim_array sums = {.type = ELEM_U64, .data = out, .count = rows.page_count + 1};
    TRY(gpu_prim_launch(job, &code, blocks_of(sums.count, MAP_THREADS), MAP_THREADS, 0, &args));
    TRY(prim_scan_array(job, FOLD_ADD, false, sums, sums));
    return gpu_prim_fetch(job, out_count, out ? out + rows.page_count : NULL, 8);
}

static u64 *take_counters(struct prim_job *job) {
    return prim_take(job, REL_COUNTERS * 8);
}

/* --- project, product, fills --- */

static FALLIBLE project(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                        const struct rel_moves *moves) {
    i32 from = elem_bytes[in.type];
    i32 to = elem_bytes[out.type];
    i64 unit = 16 / MIN_OF(from, to);
    struct krel_project args = {
        .in = tiled(in, out.paged ? out.page_rows : 0, MAP_THREADS * MAP_VECS * unit),
        .out = out.data,
        .out_fills = out.paged ? out.fills : NULL,
        .moves = *moves};
    i64 tiles = args.in.page_tiles * args.in.page_count;
    char defines[200];
    snprintf(defines, sizeof defines,
             "#define IN_BYTES %d\n#define OUT_BYTES %d\n#define MOVES %u\n", from, to,
             moves->count);
    struct gpu_template code = {"relmap", "k_project", defines};
    return tiles ? gpu_prim_launch_all(job, &code, MIN_OF(tiles, I32_MAX), MAP_THREADS, 0, &args)
                 : ERR_OK;
}

static FALLIBLE product(struct prim_job *job, struct rel_rows out, struct rel_rows x,
                        struct rel_rows y, const struct rel_combine *combine) {
    i32 to = elem_bytes[out.type];
    i64 tiles = blocks_of(out.count, MAP_THREADS * MAP_VECS * 16 / to);
    struct krel_product args = {.x = x.data,
                                .y = y.data,
                                .out = out.data,
                                .x_count = x.count,
                                .y_count = y.count,
                                .out_count = out.count,
                                .combine = *combine,
                                .x_pages = pages_of(x),
                                .y_pages = pages_of(y)};
    char defines[200];
    snprintf(defines, sizeof defines,
             "#define IN_BYTES %d\n#define OUT_BYTES %d\n#define MOVES 1\n#define PRODUCT 1\n%s",
             elem_bytes[x.type], to, x.starts || y.starts ? "#define PAGED 1\n" : "");
    struct gpu_template code = {"relmap", "k_product", defines};
    return out.count
               ? gpu_prim_launch_all(job, &code, MIN_OF(tiles, I32_MAX), MAP_THREADS, 0, &args)
               : ERR_OK;
}

static FALLIBLE fill(struct prim_job *job, u32 *fills, i64 page_rows, i64 pages, i64 count) {
    struct krel_fill args = {fills, page_rows, pages, count};
    struct gpu_template code = {"relmap", "k_fill",
                                "#define IN_BYTES 4\n#define OUT_BYTES 4\n#define MOVES 1\n"};
    return pages ? gpu_prim_launch(job, &code, blocks_of(pages, MAP_THREADS), MAP_THREADS, 0, &args)
                 : ERR_OK;
}

/* --- select --- */

static FALLIBLE select_rows(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                            const struct rel_terms *terms, bool unordered, i64 *out_count) {
    i32 bytes = elem_bytes[in.type];
    i64 tile_rows = (i64)SELECT_THREADS * 4 * SELECT_GROUPS(bytes);
    struct krel_select args = {.in = tiled(in, out.paged ? out.page_rows : 0, tile_rows),
                               .out = out.data,
                               .out_fills = out.paged ? out.fills : NULL,
                               .room = out.count,
                               .terms = *terms};
    i64 tiles = args.in.page_tiles * args.in.page_count;
    bool look = !out.paged && !unordered;
    i64 words = REL_COUNTERS + (look ? tiles : 0); /* counters and states are cleared in one */
    args.counters = prim_take(job, words * 8);
    args.state = args.counters ? args.counters + REL_COUNTERS : NULL;
    TRY(gpu_prim_fill(job, args.counters, 0, words * 8));
    char defines[200];
    snprintf(defines, sizeof defines,
             "#define IN_BYTES %d\n#define OUT_BYTES %d\n#define TERMS %u\n%s", bytes, bytes,
             terms->count,
             out.paged   ? "#define PAGES 1\n"
             : unordered ? "#define UNORDERED 1\n"
                         : "");
    struct gpu_template code = {"relselect", "k_select", defines};
    if (tiles) {
        TRY(gpu_prim_launch_all(job, &code, out.paged ? args.in.page_count : tiles, SELECT_THREADS,
                                tile_rows * bytes, &args));
    }
    return gpu_prim_fetch(job, out_count, &args.counters[REL_TOTAL], 8);
}

/* --- joins --- */

static i64 words_of_thread(i32 bytes) { /* TUPLE_VT of kernels/tuple.h */
    return bytes == 4 ? 15 : bytes == 8 ? 11 : 5;
}

struct join_shape {
    i32 threads, words, blocks; /* of a block, of a thread, per multiprocessor */
};

/* The merge's parts are as wires.h wants them: 32-bit words in 31 items and 128 threads reach 44
 * and 58 % of a copy on an H200 where 15 items and 256 threads reach 38 and 49 %. */
static struct join_shape join_shape_of(i32 bytes, u32 stage) {
    i32 blocks = bytes == 4 ? 6 : bytes == 8 ? 5 : 4;
    if (stage == REL_STAGE_BRUTE) {
        blocks = 4; /* a thread's keys and counts are registers: at six they are spilled */
    }
    if (stage != REL_STAGE_MERGE) {
        return (struct join_shape){256, (i32)words_of_thread(bytes), blocks};
    }
    return bytes == 4   ? (struct join_shape){128, 31, 10}
           : bytes == 8 ? (struct join_shape){256, 15, 5}
                        : (struct join_shape){256, 7, 4};
}

enum { EVENT_PARTITION = 2, EVENT_PARTED, HASH_BYTES = 8192 * 4 };

/* Shared memory of a tile: TILE_VECS of kernels/reljoin.h; with outer joins of 4-byte words, two
 * lists of as many words as it has rows; with the hash table, that too. */
static i64 join_shared(const struct rel_join *join, i32 bytes, const struct join_shape *shape) {
    i64 words = (i64)shape->threads * shape->words;
    i64 tile = words * bytes + 4 * 16;
    bool outer = (join->kind & REL_PAIRS) && (join->kind & (REL_X_ALONE | REL_Y_ALONE));
    if (outer && join->stage == REL_STAGE_MERGE && bytes == 4) {
        tile = 2 * (words + 1) * 4;
    }
    return tile + (join->stage == REL_STAGE_HASH ? HASH_BYTES : 0);
}

/* Notes the time between two stages; only where a profile is taken. */
static FALLIBLE note_time(struct prim_job *job, i32 number) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    void *event = NULL;
    if (!job->measuring) {
        TRY(gpu_event(g, number, &event, err));
        CU(g->api->event_record(event, g->streams[0]));
    }
    return ERR_OK;
}

static FALLIBLE take_profile(struct prim_job *job, const u64 *cycles) {
    struct gpu *g = gpu_of(job);
    struct error *err = job->x->err;
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    if (!job->measuring) {
        TRY(gpu_event(g, EVENT_PARTITION, &first, err));
        TRY(gpu_event(g, EVENT_PARTED, &last, err));
        CU(g->api->event_elapsed(&ms, first, last));
        job->stages[0] = (i64)((f64)ms * 1e6);
        for (i32 s = 0; s < PRIM_STAGES - 1; s++) {
            job->stages[s + 1] = (i64)cycles[s];
        }
    }
    return ERR_OK;
}

static void join_text(const struct rel_join *join, const struct join_shape *shape, char *text,
                      size_t cap) {
    i32 bytes = elem_bytes[join->x.type];
    i32 out_bytes = join->indexes ? bytes : elem_bytes[join->out.type];
    i32 used = snprintf(text, cap,
                        "#define IN_BYTES %d\n#define OUT_BYTES %d\n#define KIND %u\n"
                        "#define STAGE %u\n#define JOIN_THREADS %d\n#define TUPLE_VT %d\n"
                        "#define WF_MIN_BLOCKS %d\n#define PROFILE %d\n#define PAGED %d\n",
                        bytes, out_bytes, join->kind, join->stage, shape->threads, shape->words,
                        shape->blocks, join->profile, join->x.starts || join->y.starts);
    if (join->indexes) {
        snprintf(text + used, cap - (size_t)used, "#define INDEX u%d\n",
                 8 * elem_bytes[join->out_x.type]);
    }
}

/* The launches: partition; join; what tiles with much output left. */
static FALLIBLE join_launches(struct prim_job *job, const struct rel_join *join,
                              const struct join_shape *shape, const struct krel_join *args) {
    char defines[400];
    u32 threads = (u32)shape->threads;
    i64 shared = join_shared(join, elem_bytes[join->x.type], shape);
    join_text(join, shape, defines, sizeof defines);
    struct gpu_template code = {"reljoin", "k_partition_coarse", defines};
    if (join->profile) {
        TRY(note_time(job, EVENT_PARTITION));
    }
    i64 coarse = blocks_of(args->tiles, COARSE_TILES) + 1;
    TRY(gpu_prim_launch_all(job, &code, blocks_of(coarse, threads), threads, 0, args));
    code.kernel = "k_partition";
    TRY(gpu_prim_launch_all(job, &code, blocks_of(args->tiles + 1, threads), threads, 0, args));
    if (join->profile) {
        TRY(note_time(job, EVENT_PARTED));
    }
    code.kernel = "k_join";
    TRY(gpu_prim_launch_all(job, &code, args->tiles, threads, shared, args));
    if (!(join->kind & REL_PAIRS)) {
        return ERR_OK; /* no element gives more than one row */
    }
    code.kernel = "k_expand";
    return gpu_prim_launch(job, &code, I32_MAX, threads, shared, args);
}

/* Which bits of its inputs' words a row is made of: those from `down` on. */
static void join_bits(const struct rel_join *join, struct krel_join *args) {
    const struct rel_combine *c = &join->combine;
    u32 down = c->key_shift;
    if (!join->indexes) {
        down = MIN_OF(down, c->x.from);
        down = join->kind & (REL_PAIRS | REL_Y_ALONE) ? MIN_OF(down, c->y.from) : down;
    }
    args->down = down;
    args->low = c->key_shift - down;
}

static FALLIBLE join_rows(struct prim_job *job, const struct rel_join *join, i64 *out_count) {
    i32 bytes = elem_bytes[join->x.type];
    struct join_shape shape = join_shape_of(bytes, join->stage);
    i64 total = join->x.count + join->y.count;
    i64 tiles = blocks_of(total, (i64)shape.threads * shape.words);
    struct krel_join args = {.x = join->x.data,
                             .y = join->y.data,
                             .x_count = join->x.count,
                             .y_count = join->y.count,
                             .tiles = tiles,
                             .out = join->indexes ? join->out_x.data : join->out.data,
                             .out_y = join->out_y.data,
                             .room = join->out.count,
                             .combine = join->combine,
                             .x_pages = pages_of(join->x),
                             .y_pages = pages_of(join->y)};
    if (tiles >= 1 << 24) {
        FAIL(job->x->err, PROGRAM_LIMIT, "%lld rows are too many for one join", total);
    }
    args.counters = take_counters(job);
    args.splits = prim_take(job, (tiles + 1) * 8);
    args.backs = prim_take(job, (tiles + 1) * 8);
    args.bounds = prim_take(job, (tiles + 1) * 2 * bytes);
    join_bits(join, &args);
    args.state = prim_take(job, tiles * 8);
    args.heavy = prim_take(job, tiles * (i64)sizeof(struct krel_heavy));
    u64 counters[REL_COUNTERS];
    TRY(gpu_prim_fill(job, args.counters, 0, sizeof counters));
    TRY(gpu_prim_fill(job, args.state, 0, tiles * 8));
    if (tiles) {
        TRY(join_launches(job, join, &shape, &args));
    }
    TRY(gpu_prim_fetch(job, counters, args.counters, sizeof counters));
    *out_count = (i64)counters[REL_TOTAL];
    return join->profile && tiles ? take_profile(job, &counters[REL_CYCLES]) : ERR_OK;
}

/* --- reduction --- */

static FALLIBLE reduce(struct prim_job *job, const struct rel_reduce *r, i64 *out_count) {
    i32 bytes = elem_bytes[r->in.type];
    i64 tile_bytes = REDUCE_THREADS * (bytes == 4 ? 2 : 4) * 16; /* THREAD_VECS of relreduce.h */
    i64 tiles = blocks_of(r->in.count, tile_bytes / bytes);
    struct krel_reduce args = {.in = r->in.data,
                               .count = r->in.count,
                               .out = r->out.data,
                               .values = r->values,
                               .room = MIN_OF(r->out.count, r->value_room),
                               .field_mask = r->field_mask,
                               .field_shift = r->field_shift,
                               .key_shift = r->key_shift,
                               .pages = pages_of(r->in)};
    args.counters = take_counters(job);
    args.state = prim_take(job, tiles * 8);
    args.open = prim_take(job, tiles * 16);
    TRY(gpu_prim_fill(job, args.counters, 0, REL_COUNTERS * 8));
    TRY(gpu_prim_fill(job, args.state, 0, tiles * 8));
    TRY(gpu_prim_fill(job, args.open, 0, tiles * 16));
    char defines[200];
    snprintf(defines, sizeof defines,
             "#define IN_BYTES %d\n#define OUT_BYTES %d\n#define REDUCE %u\n%s", bytes, bytes,
             r->reduce, r->in.starts ? "#define PAGED 1\n" : "");
    struct gpu_template code = {"relreduce", "k_reduce", defines};
    if (tiles) {
        TRY(gpu_prim_launch_all(job, &code, tiles, REDUCE_THREADS, tile_bytes, &args));
    }
    return gpu_prim_fetch(job, out_count, &args.counters[REL_TOTAL], 8);
}

static struct prim_pages rows_of(struct rel_rows rows) {
    struct prim_array words = {.type = rows.type, .data = rows.data, .count = rows.count};
    return (struct prim_pages){words, pages_of(rows), rows.paged};
}

static FALLIBLE sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                     struct rel_rows x, struct rel_rows y, i64 *out_count) {
    struct prim_pages a = rows_of(x);
    struct prim_pages b = rows_of(y);
    return gpu_paged_sets(job, how, out, &a, &b, out_count);
}

const struct prim_algebra gpu_prim_algebra_class = {.project = project,
                                                    .select = select_rows,
                                                    .product = product,
                                                    .join = join_rows,
                                                    .sets = sets,
                                                    .reduce = reduce,
                                                    .starts = starts,
                                                    .fill = fill};

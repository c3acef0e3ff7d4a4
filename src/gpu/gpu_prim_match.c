/* gpu_prim_match.c: the card's joins: one argument block for all their kernels, and the launches.
 *
 * What a kernel needs of a join is copied into struct kmatch as it is; kernels are compiled per
 * width of the key, those over a table per kind of table. */
#include "gpu/gpu_prim.h"

#include <stdio.h>

#include "defs/kmatch.h"
#include "gpu/gpu_prim_order.h"
#include "prim/match.h"
#include "prim/move.h"

_Static_assert(JOIN_OUT_COLS == 19, "columns of struct kmatch_out");
_Static_assert((int)JOIN_SAMPLE == (int)SAMPLE_ROWS && TREE_LEVELS == 8, "in step with kmatch.h");
_Static_assert((int)MATCH_REPORT <= (int)JOIN_REPORT, "words of the report");

struct match_code {
    char defines[120];
    struct gpu_template code;
};

/* Of a part's table: as many as shared memory has room for. */
static i64 part_slots(const struct prim_job *job, const struct prim_join *join) {
    i64 room = gpu_of(job)->card->shared_max - 1024; /* beside the kernel's own arrays */
    return room >= PART_SLOTS_MOST * (join->key_bytes + 4) ? PART_SLOTS_MOST : PART_SLOTS_MOST / 2;
}

static i64 part_rows(const struct prim_job *job, const struct prim_join *join) {
    return join->algorithm == JOIN_PARTITIONED ? part_slots(job, join) / 2 : PART_SORT_MAX / 2;
}

static void code_init(struct match_code *c, const struct prim_job *job,
                      const struct prim_join *join, const char *module, const char *kernel) {
    const struct join_table *t = &join->table;
    bool table = !strcmp(module, "match_table");
    i32 len = snprintf(c->defines, sizeof c->defines, "#define KEY_BYTES %d\n", join->key_bytes);
    if (table) {
        snprintf(c->defines + len, sizeof c->defines - (size_t)len, "#define VALUE_BYTES %d\n%s",
                 t->value_bytes, t->bits ? "#define DIRECT\n" : "");
    } else if (!strcmp(module, "match_parts")) {
        snprintf(c->defines + len, sizeof c->defines - (size_t)len, "#define PART_SLOTS %lld\n",
                 part_slots(job, join));
    }
    c->code = (struct gpu_template){module, kernel, c->defines};
}

struct grid { /* a launch: of what, and how much of it */
    const char *module, *kernel;
    i64 blocks;
    u32 threads;
    i64 shared;
};
static FALLIBLE go(struct prim_job *job, const struct prim_join *join, struct grid grid,
                   const void *args) {
    if (grid.blocks <= 0) {
        return ERR_OK;
    }
    struct match_code c;
    code_init(&c, job, join, grid.module, grid.kernel);
    return gpu_prim_launch(job, &c.code, grid.blocks, grid.threads, grid.shared, args);
}

static i64 blocks_for(i64 n, i64 rows) {
    return (n + rows - 1) / rows;
}

static struct kmatch args_of(const struct prim_join *join) {
    i32 probe = join->probe;
    i32 built = JOIN_BUILT(join);
    const struct join_table *t = &join->table;
    struct kmatch a = {.probe = join->side[probe].keys,
                       .built = join->side[built].keys,
                       .probe_count = join->keys[probe].count,
                       .built_count = join->keys[built].count,
                       .flip = join->flip,
                       .width = join->band ? join->width : 0,
                       .kind = join->kind,
                       .sequential = join->sequential,
                       .report = join->report,
                       .slots = t->slots,
                       .bits = t->bits,
                       .slot_count = (u64)t->slot_count,
                       .lo = t->lo,
                       .empty = t->empty,
                       .dense = t->dense,
                       .sorted = join->sorted ? join->sorted : join->side[built].keys,
                       .length = join->length,
                       .start = join->start,
                       .offset = join->offset,
                       .parts = {join->parts[probe], join->parts[built]},
                       .units = join->units,
                       .out_sorted = join->sorted,
                       .out_list = join->list,
                       .part_bits = (u32)join->part_bits,
                       .levels = (u32)join->tree.levels};
    for (i32 l = 0; l < join->tree.levels; l++) {
        a.level[l] = join->tree.keys[l];
        a.level_count[l] = join->tree.count[l];
    }
    return a;
}

/* `listed`: positions of runs, which go through the sides' lists; else those of a rush. */
static void set_out(struct kmatch *a, const struct prim_join *join, const struct join_out *out,
                    bool listed) {
    a->room = out->room;
    a->out.count = (u32)out->count;
    for (i32 i = 0; i < out->count; i++) {
        const struct join_want *w = &out->want[i];
        const struct join_arrays *side = &join->side[w->side];
        bool built = w->side != join->probe;
        struct kmatch_col col = {.out = w->out, .bytes = w->bytes, .built = built};
        col.from = w->from == FROM_ROW ? MATCH_ROW : MATCH_COL;
        col.in = w->from == FROM_ROW   ? (const void *)side->rows
                 : w->from == FROM_COL ? side->cols[w->col]
                 : side->list          ? join->keys[w->side].data
                                       : side->keys;
        if (!listed && built && w->from == FROM_COL && join->table.col == w->col &&
            join->table.slots) {
            col.from = MATCH_VALUE;
        }
        a->out.col[i] = col;
    }
    a->out.list[0] = listed ? join->side[join->probe].list : NULL;
    a->out.list[1] = listed ? join->side[JOIN_BUILT(join)].list : NULL;
}

/* --- what is known before --- */

static FALLIBLE survey(struct prim_job *job, struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    i64 bytes = (MATCH_REPORT + 2 * JOIN_SAMPLE) * 8;
    u64 *words = prim_take(job, bytes);
    struct kmatch a = args_of(join);
    a.report = words;
    a.built = join->keys[built].data;
    TRY(gpu_prim_fill(job, words, 0xff, bytes));
    TRY(go(job, join,
           (struct grid){"match_loop", "k_bounds", blocks_for(a.built_count, 4 * LOOP_THREADS),
                         LOOP_THREADS, 0},
           &a));
    for (i32 side = 0; side < 2; side++) {
        struct kmatch_sample s = {.keys = join->keys[side].data,
                                  .out = words ? words + MATCH_REPORT + side * JOIN_SAMPLE : NULL,
                                  .count = join->keys[side].count,
                                  .flip = join->flip};
        TRY(go(job, join, (struct grid){"match_loop", "k_sample", s.count ? 1 : 0, LOOP_THREADS, 0},
               &s));
    }
    u64 host[MATCH_REPORT + 2 * JOIN_SAMPLE];
    TRY(gpu_prim_fetch(job, host, words, bytes));
    struct join_facts *f = &join->facts;
    f->lo = host[MATCH_LOW];
    f->hi = ~host[MATCH_HIGH_NOT];
    for (i32 side = 0; side < 2; side++) {
        f->sampled[side] = (i32)MIN_OF(join->keys[side].count, JOIN_SAMPLE);
        memcpy(f->sample[side], host + MATCH_REPORT + side * JOIN_SAMPLE,
               (size_t)f->sampled[side] * 8);
    }
    return ERR_OK;
}

static FALLIBLE clear_report(struct prim_job *job, const struct prim_join *join) {
    return gpu_prim_fill(job, join->report, 0, JOIN_REPORT * 8);
}

/* --- tables --- */

static FALLIBLE clear_table(struct prim_job *job, const struct prim_join *join) {
    const struct join_table *t = &join->table;
    return t->bits ? gpu_prim_fill(job, t->bits, 0, (t->slot_count + 31) / 32 * 4)
                   : gpu_prim_fill(job, t->slots, t->empty ? 0xff : 0,
                                   t->slot_count * 2 * join->key_bytes);
}

static FALLIBLE build(struct prim_job *job, struct prim_join *join, bool *out_duplicates) {
    i32 built = JOIN_BUILT(join);
    struct join_table *t = &join->table;
    struct kmatch a = args_of(join);
    if (t->col >= 0) {
        a.values = join->side[built].cols[t->col];
        a.values_wide = elem_bytes[join->cols[built][t->col].type] == 8;
    }
    TRY(clear_report(job, join));
    TRY(clear_table(job, join));
    TRY(go(job, join,
           (struct grid){"match_table", "k_build", blocks_for(a.built_count, MATCH_THREADS),
                         MATCH_THREADS, 0},
           &a));
    u64 duplicate = 0;
    TRY(gpu_prim_fetch(job, &duplicate, join->report + MATCH_DUPLICATE, 8));
    *out_duplicates = duplicate != 0;
    t->dense = t->bits && !duplicate && a.built_count == t->slot_count;
    return ERR_OK;
}

static FALLIBLE group(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    TRY(clear_table(job, join));
    return go(job, join,
              (struct grid){"match_table", "k_group", blocks_for(a.built_count, MATCH_THREADS),
                            MATCH_THREADS, 0},
              &a);
}

static FALLIBLE end_offsets(struct prim_job *job, const struct prim_join *join) {
    i64 n = join->keys[join->probe].count;
    return gpu_prim_fill(job, join->offset ? join->offset + n : NULL, 0, 8);
}

static FALLIBLE runs_grouped(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    TRY(end_offsets(job, join));
    return go(job, join,
              (struct grid){"match_table", "k_runs", blocks_for(a.probe_count, MATCH_TILE),
                            MATCH_THREADS, 0},
              &a);
}

/* --- parts --- */

static FALLIBLE share_out(struct prim_job *job, struct prim_join *join) {
    i64 parts = 1LL << join->part_bits;
    i64 units = parts + join->keys[join->probe].count / UNIT_ROWS + 1;
    join->units = prim_take(job, units * (i64)sizeof(struct kmatch_unit));
    struct kmatch a = args_of(join);
    TRY(clear_report(job, join));
    return go(
        job, join,
        (struct grid){"match_parts", "k_units", blocks_for(parts, MATCH_THREADS), MATCH_THREADS, 0},
        &a);
}

static i64 most_units(const struct prim_join *join) {
    return (1LL << join->part_bits) + join->keys[join->probe].count / UNIT_ROWS + 1;
}

/* Parts too large for a block are split further, by quick sort, which brings equal keys together in
 * one level however many they are. */
static FALLIBLE sort_large(struct prim_job *job, struct prim_join *join) {
    i32 built = JOIN_BUILT(join);
    i64 n = join->keys[built].count;
    i64 mark = prim_mark(job);
    struct prim_array rows = {.type = ELEM_U32, .data = prim_take(job, n * 4), .count = n};
    struct prim_series series = {.out = rows, .step = 1};
    struct prim_array keys = {
        .type = join->key_type, .data = (void *)(size_t)join->side[built].keys, .count = n};
    struct prim_array sorted = {.type = join->key_type, .data = join->sorted, .count = n};
    struct sorting s = {.job = job,
                        .order = order_of(join->key_type, false),
                        .n = n,
                        .keys = keys,
                        .out = sorted,
                        .payload = rows,
                        .out_payload = {.type = ELEM_U32, .data = join->list, .count = n}};
    s.korder = korder_of(&s.order, &keys);
    sorting_defines(&s);
    TRY(prim_series(job, &series));
    TRY(gpu_quick_parts(&s, join->parts[built], 1LL << join->part_bits, PART_SORT_MAX));
    prim_back(job, mark);
    return ERR_OK;
}

static FALLIBLE sort_parts(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    u64 over = 0;
    TRY(gpu_prim_fill(job, join->report + MATCH_OVER, 0, 8));
    TRY(go(job, join,
           (struct grid){"match_parts", "k_part_sort", 1LL << join->part_bits, PART_THREADS,
                         PART_SORT_MAX * (join->key_bytes + 4)},
           &a));
    TRY(gpu_prim_fetch(job, &over, join->report + MATCH_OVER, 8));
    return over || job->measuring ? sort_large(job, join) : ERR_OK;
}

static FALLIBLE clear_offsets(struct prim_job *job, const struct prim_join *join) {
    return gpu_prim_fill(job, join->offset, 0, (join->keys[join->probe].count + 1) * 8);
}

static FALLIBLE runs_parts(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    TRY(clear_offsets(job, join));
    return go(job, join,
              (struct grid){"match_runs", "k_part_runs", most_units(join), SEARCH_THREADS,
                            PART_SORT_MAX * join->key_bytes},
              &a);
}

/* Where all that is wanted of the built side is one column of 4 bytes, tables hold that. */
static void inline_column(struct kmatch *a) {
    struct kmatch_col *only = NULL;
    i32 wanted = 0;
    for (u32 i = 0; i < a->out.count; i++) {
        if (a->out.col[i].built) {
            only = &a->out.col[i];
            wanted++;
        }
    }
    if (wanted == 1 && only->from == MATCH_COL && only->bytes == 4) {
        a->values = only->in;
        only->from = MATCH_VALUE;
    }
}

static FALLIBLE rush_parts(struct prim_job *job, struct prim_join *join, struct kmatch *a) {
    struct match_code c;
    code_init(&c, job, join, "match_parts", "k_part_rush");
    inline_column(a);
    return gpu_prim_launch_all(job, &c.code, most_units(join), PART_THREADS,
                               part_slots(job, join) * (join->key_bytes + 4), a);
}

/* Every row of the probing side gives exactly one. */
static FALLIBLE look(struct prim_job *job, struct prim_join *join, const struct kmatch *a,
                     bool *out_done) {
    struct match_code c;
    code_init(&c, job, join, "match_table", "k_look");
    join->total = a->probe_count;
    *out_done = true;
    return a->probe_count
               ? gpu_prim_launch_all(job, &c.code, blocks_for(a->probe_count, MATCH_TILE),
                                     MATCH_THREADS, 0, a)
               : ERR_OK;
}

static FALLIBLE rush(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                     bool *out_done) {
    struct kmatch a = args_of(join);
    set_out(&a, join, out, false);
    bool parts = join->algorithm == JOIN_PARTITIONED;
    if (!parts && join->kind == KEEP_LEFT && a.probe_count <= out->room) {
        return look(job, join, &a, out_done);
    }
    TRY(gpu_prim_fill(job, join->report + MATCH_TOTAL, 0, 8));
    TRY(parts ? rush_parts(job, join, &a)
              : go(job, join,
                   (struct grid){"match_table", "k_rush", blocks_for(a.probe_count, MATCH_TILE),
                                 MATCH_THREADS, 0},
                   &a));
    u64 report[JOIN_REPORT];
    TRY(gpu_prim_fetch(job, report, join->report, sizeof report));
    bool wrong =
        parts && (report[MATCH_OVER] || (report[MATCH_DUPLICATE] && join->kind < KEEP_SEMI));
    if (!wrong) {
        join->total = (i64)report[MATCH_TOTAL];
        *out_done = join->total <= out->room;
    }
    return ERR_OK;
}

/* --- sorted --- */

static FALLIBLE runs_merge(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    i64 tiles = blocks_for(a.probe_count, SEARCH_TILE);
    a.tile_rows = prim_take(job, 2 * tiles * 4);
    TRY(end_offsets(job, join));
    TRY(go(job, join,
           (struct grid){"match_runs", "k_merge_tiles", blocks_for(2 * tiles, SEARCH_THREADS),
                         SEARCH_THREADS, 0},
           &a));
    return go(job, join,
              (struct grid){"match_runs", "k_merge_runs", tiles, SEARCH_THREADS,
                            PART_SORT_MAX * join->key_bytes},
              &a);
}

static FALLIBLE tree_level(struct prim_job *job, struct prim_join *join, i32 level) {
    const struct join_tree *t = &join->tree;
    struct kmatch_level a = {.in = t->keys[level - 1],
                             .out = (void *)(size_t)t->keys[level],
                             .in_count = t->count[level - 1],
                             .out_count = t->count[level]};
    return go(job, join,
              (struct grid){"match_runs", "k_tree_level", blocks_for(a.out_count, SEARCH_THREADS),
                            SEARCH_THREADS, 0},
              &a);
}

static FALLIBLE runs_tree(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    TRY(end_offsets(job, join));
    return go(job, join,
              (struct grid){"match_runs", "k_tree_runs", blocks_for(a.probe_count, SEARCH_THREADS),
                            SEARCH_THREADS, 0},
              &a);
}

/* --- loops and results --- */

static i64 loop_units(const struct prim_join *join) {
    return join->units ? most_units(join)
                       : blocks_for(join->keys[join->probe].count, LOOP_THREADS * LOOP_ITEMS);
}

static FALLIBLE loop_count(struct prim_job *job, struct prim_join *join) {
    struct kmatch a = args_of(join);
    TRY(clear_offsets(job, join));
    return go(job, join,
              (struct grid){"match_loop", "k_loop_count", loop_units(join), LOOP_THREADS,
                            LOOP_CHUNK * join->key_bytes},
              &a);
}

static FALLIBLE loop_write(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                           i64 first, i64 n) {
    struct kmatch a = args_of(join);
    set_out(&a, join, out, true);
    a.first = first;
    a.rows = n;
    return go(job, join,
              (struct grid){"match_loop", "k_loop_write", loop_units(join), LOOP_THREADS, 0}, &a);
}

static FALLIBLE expand(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                       i64 first, i64 n) {
    struct kmatch a = args_of(join);
    i64 tiles = blocks_for(n, MATCH_TILE);
    set_out(&a, join, out, true);
    a.first = first;
    a.rows = n;
    a.tile_rows = prim_take(job, (tiles + 1) * 4);
    TRY(go(job, join,
           (struct grid){"match_runs", "k_expand_tiles", blocks_for(tiles + 1, SEARCH_THREADS),
                         SEARCH_THREADS, 0},
           &a));
    return go(job, join, (struct grid){"match_runs", "k_expand", tiles, MATCH_THREADS, 0}, &a);
}

const struct prim_match gpu_prim_match_class = {.survey = survey,
                                                .build = build,
                                                .group = group,
                                                .runs_grouped = runs_grouped,
                                                .sort_parts = sort_parts,
                                                .runs_parts = runs_parts,
                                                .runs_merge = runs_merge,
                                                .tree_level = tree_level,
                                                .runs_tree = runs_tree,
                                                .loop_count = loop_count,
                                                .loop_write = loop_write,
                                                .share_out = share_out,
                                                .rush = rush,
                                                .expand = expand,
                                                .fetch = gpu_prim_fetch,
                                                .cache_bytes = gpu_prim_cache,
                                                .costs = {.part_row = 25,
                                                          .part_column = 6,
                                                          .near_build = 12,
                                                          .near_probe = 8,
                                                          .far_build = 60,
                                                          .far_probe = 22},
                                                .part_rows = part_rows};

/* reljoin.h: joins and set operations of sorted relations: partition, then compute and gather in
 * one pass.
 *
 * k_partition (join_cuts.h) cuts the merge of both inputs into tiles of equal length; of equal keys
 * those of y come first. k_join loads a tile into shared memory, finds the partners, learns from
 * earlier tiles where its output goes, and writes it in whole lines. STAGE 0 merges tiles in which
 * no key repeats in registers (join_wires.h) and stages what rows are made of; otherwise, and in
 * the other stages, partners are ranges (ctajoin.h), and pairs of places are staged over the tile.
 * A tile with more than JOIN_ROUNDS stagings is left to k_expand (join_expand.h), which cuts its
 * output into chunks and computes the tile again for each, so that a key with many partners
 * occupies as many blocks as it has output.
 *
 * The text before defines KIND, bits of enum rel_kind_bits, STAGE, JOIN_THREADS, TUPLE_VT,
 * WF_MIN_BLOCKS, OUT_BYTES, PAGED, PROFILE, and, where the result is positions, INDEX. With PAGED
 * inputs may be lists of pages: places are numbers of rows, and words are found through the pages'
 * starts; no tile is merged by wires then, whose vectors want rows side by side. */
#include "ctajoin.h"
#include "lookback.h"
#include "pages.h"

#define TILE_ROWS (JOIN_THREADS * TUPLE_VT)
#define JOIN_WARPS (JOIN_THREADS / 32)
#define TILE_VECS (TILE_ROWS / IN_VEC + 4) /* of both inputs as they are aligned, and one more */
#define LOAD_VECS ((TILE_VECS + JOIN_THREADS - 1) / JOIN_THREADS)
#define NO_X 0xffffu
#define NO_Y 0xffffu
#define Y_BIAS 32768u /* staged places of y count from so far before the tile */
#define KIND_UNION (KIND == (REL_X_ONCE | REL_X_ALONE | REL_Y_ALONE))
#define KIND_OUTER ((KIND & REL_PAIRS) && (KIND & (REL_X_ALONE | REL_Y_ALONE)))

/* The word of row i. */
FN IN_W x_word(const struct krel_join *a, i64 i) {
    return ((const IN_W *)a->x)[PAGED ? row_place(&a->x_pages, i) : i];
}
FN IN_W y_word(const struct krel_join *a, i64 i) {
    return ((const IN_W *)a->y)[PAGED ? row_place(&a->y_pages, i) : i];
}

/* Adds the cycles since *clock to those of a stage of the profile. */
FN void profile(const struct krel_join *a, u32 stage, u64 *clock) {
    if (PROFILE && t_id() == 0) {
        u64 now = clock_cycles();
        atom_add_u64(&a->counters[REL_CYCLES + stage], now - *clock);
        *clock = now;
    }
}

struct place { /* of a tile in both inputs */
    i64 x, y;
};

#include "join_cuts.h"

#ifdef INDEX
#include "join_places.h"
#else
#include "join_tuples.h"
#endif

/* --- tiles ----------------------------------------------------------------------------------- */

/* Where the tile is, and all of it but its words. */
FN struct place tile_open(const struct krel_join *a, i64 tile, struct tiles *t) {
    i64 total = a->x_count + a->y_count;
    i64 first = tile * TILE_ROWS;
    i64 end = first + TILE_ROWS < total ? first + TILE_ROWS : total;
    i64 x_end = a->splits[tile + 1];
    struct place p;
    p.x = a->splits[tile];
    p.y = first - p.x;
    t->nx = (u32)(x_end - p.x);
    t->ny = (u32)(end - x_end - p.y);
    t->shift = a->combine.key_shift;
    t->back = a->backs[tile] >> 1;
    t->has_next = (KIND & REL_Y_ALONE) && x_end < a->x_count;
    t->next = t->has_next ? x_word(a, x_end) >> t->shift : (IN_W)0;
    return p;
}

/* Its words into shared memory: x, then y, and one more, row by row. Ends with a barrier. */
FN void b_load_pages(const struct krel_join *a, struct place p, IN_W *s_words, struct tiles *t) {
    struct page_span x_span = page_span(&a->x_pages, p.x, (i64)t->nx);
    struct page_span y_span = page_span(&a->y_pages, p.y, (i64)t->ny);
    t->x = s_words;
    t->y = s_words + t->nx;
    for (u32 i = t_id(); i <= t->nx + t->ny; i += JOIN_THREADS) {
        IN_W word = 0;
        if (i < t->nx) {
            word = ((const IN_W *)a->x)[row_near(&a->x_pages, x_span, p.x + (i64)i)];
        } else if (i < t->nx + t->ny) {
            word = ((const IN_W *)a->y)[row_near(&a->y_pages, y_span, p.y + (i64)(i - t->nx))];
        }
        s_words[i] = word;
    }
    b_sync();
}
/* The same where rows lie side by side: each input keeps its alignment. */
FN void b_load_vecs(const struct krel_join *a, struct place p, IN_W *s_words, struct tiles *t) {
    const IN_W *x = (const IN_W *)a->x;
    const IN_W *y = (const IN_W *)a->y;
    u32 x_skip = (u32)(p.x & (IN_VEC - 1));
    u32 y_skip = (u32)(p.y & (IN_VEC - 1));
    u32 x_vecs = (x_skip + t->nx + IN_VEC - 1) / IN_VEC;
    u32 vecs = x_vecs + (y_skip + t->ny + IN_VEC - 1) / IN_VEC;
    t->x = s_words + x_skip;
    t->y = s_words + x_vecs * IN_VEC + y_skip;
    vec16 v[LOAD_VECS];
    UNROLL for (u32 k = 0; k < LOAD_VECS; k++) {
        u32 i = k * JOIN_THREADS + t_id();
        if (i < x_vecs) {
            v[k] = vec_words(x, p.x - (i64)x_skip + (i64)(i * IN_VEC), a->x_count);
        } else if (i < vecs) {
            v[k] = vec_words(y, p.y - (i64)y_skip + (i64)((i - x_vecs) * IN_VEC), a->y_count);
        } else {
            v[k].w[0] = v[k].w[1] = v[k].w[2] = v[k].w[3] = 0u;
        }
    }
    UNROLL for (u32 k = 0; k < LOAD_VECS; k++) {
        u32 i = k * JOIN_THREADS + t_id();
        if (i <= vecs) { /* one more, because the merge looks ahead */
            store16(s_words + i * IN_VEC, v[k]);
        }
    }
    b_sync();
}

FN void b_load(const struct krel_join *a, struct place p, IN_W *s_words, struct tiles *t) {
    if (PAGED) {
        b_load_pages(a, p, s_words, t);
    } else {
        b_load_vecs(a, p, s_words, t);
    }
}

/* Rows that element k gives out. */
FN u64 rows_of(u32 range, u32 is_x, u32 is_y, i64 back) {
    if (!is_x) {
        return is_y;
    }
    u64 partners = range_count(range, back);
    return partners == 0        ? (u64)((KIND & REL_X_ALONE) != 0)
           : (KIND & REL_PAIRS) ? partners
                                : (u64)((KIND & REL_X_ONCE) != 0);
}

FN u64 rows_of_thread(const struct matches *m, i64 back, u32 merged) {
    u64 rows = 0;
    struct cursor c = cursor_of(m);
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        rows += rows_of(next_range(m, k, &c, merged), m->is_x >> k & 1u, m->is_y >> k & 1u, back);
    }
    return rows;
}

#if STAGE == 0
#define STAGE_UNROLL NO_UNROLL /* few registers are left by wires */
#define FN_RANGES FN_SLOW      /* out of the way of what most tiles do: it wants other registers */
#else
#define STAGE_UNROLL UNROLL /* ranges are registers */
#define FN_RANGES FN
#endif

/* --- compute and gather ---------------------------------------------------------------------- */

/* Stages the thread's rows that fall into [from, from + TILE_ROWS) of the tile's; `row` is the
 * first. */
FN void t_stage_many(const struct matches *m, i64 back, u32 row, u32 from, u32 *s_rows) {
    u32 xi = m->x_first;
    struct cursor c = cursor_of(m);
    NO_UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 is_x = m->is_x >> k & 1u;
        u32 range = next_range(m, k, &c, STAGE == 0);
        u32 count = (u32)rows_of(range, is_x, m->is_y >> k & 1u, back);
        u32 lo = range >> 16;
        u32 y = lo == RANGE_BEFORE ? Y_BIAS - (u32)back : Y_BIAS + lo;
        u32 alone = !(KIND & REL_PAIRS) || range_count(range, back) == 0;
        for (u32 r = row < from ? from - row : 0u; r < count && row + r < from + TILE_ROWS; r++) {
            u32 pair = is_x ? (alone ? NO_Y : y + r) : Y_BIAS + (range & 0xffffu);
            s_rows[row + r - from] = (is_x ? xi : NO_X) | pair << 16;
        }
        row += count;
        xi += is_x;
    }
}

/* The same where no element of the thread gives more than one row, and all rows of the tile fit. */
FN void t_stage_one(const struct matches *m, i64 back, u32 row, u32 *s_rows) {
    u32 xi = m->x_first;
    struct cursor c = cursor_of(m);
    STAGE_UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 is_x = m->is_x >> k & 1u;
        u32 range = next_range(m, k, &c, STAGE == 0);
        if (m->given >> k & 1u) {
            u32 lo = range >> 16;
            u32 hi = range & 0xffffu;
            u32 pair = NO_Y;
            if ((KIND & REL_PAIRS) && lo != hi) {
                pair = lo == RANGE_BEFORE ? Y_BIAS - (u32)back : Y_BIAS + lo;
            }
            if ((KIND & REL_Y_ALONE) && !is_x) {
                pair = Y_BIAS + hi;
            }
            s_rows[row++] = ((KIND & REL_Y_ALONE) && !is_x ? NO_X : xi) | pair << 16;
        }
        xi += is_x;
    }
}

/* How many of the rows at `base` there is room for. */
FN u32 rows_that_fit(const struct krel_join *a, i64 base, u32 rows) {
    i64 room = a->room - base;
    return room >= (i64)rows ? rows : room > 0 ? (u32)room : 0u;
}

/* By one thread: leaves the tile to k_expand, as far as there is room. */
FN void tile_is_heavy(const struct krel_join *a, i64 tile, i64 base, u64 total) {
    if (base >= a->room) {
        return;
    }
    u64 room = (u64)(a->room - base);
    u64 rows = total < room ? total : room;
    u64 chunks = (rows + EXPAND_ROWS - 1) / EXPAND_ROWS;
    u64 old = atom_add_u64(&a->counters[REL_HEAVY], chunks << 24 | 1u);
    struct krel_heavy *heavy = &a->heavy[old & 0xffffffu];
    heavy->tile = (u64)tile;
    heavy->chunk = old >> 24;
    heavy->base = (u64)base;
    heavy->total = rows;
}

struct join_shared { /* words of shared memory */
    u8 *tile;        /* join_shared in gpu_prim_algebra.c */
    u32 *cuts;       /* one per thread and one more */
    u32 *counts;     /* one per warp */
    u64 *sums;       /* one per warp */
    u64 *before;
};

/* The compute stage. */
FN void b_match(const struct tiles *t, struct matches *m, u8 *s_tile) {
    switch (STAGE) {
    case 0:
        t_merge(t, m);
        return;
    case 1:
        t_binary(t, m);
        break;
    case 2:
        t_blocked(t, m);
        break;
    case 3:
        t_brute(t, m);
        break;
    case 4:
        b_hash(t, m, (u32 *)(void *)(s_tile + TILE_VECS * 16));
        break;
    default:
        t_network(t, m);
    }
    matches_end(t, m);
}

/* Stages the thread's rows, as many as fit the first round. */
FN void t_stage(const struct tiles *t, const struct matches *m, u32 row, u32 tile_rows,
                u32 *s_rows) {
    if (m->many || tile_rows > TILE_ROWS) {
        t_stage_many(m, t->back, row, 0, s_rows);
    } else {
        t_stage_one(m, t->back, row, s_rows);
    }
}

/* A tile by ranges. */
FN_RANGES void b_join_ranges(struct krel_join args, i64 tile, struct join_shared s, u64 clock) {
    struct tiles t;
    struct matches m;
    struct place p = tile_open(&args, tile, &t);
    u32 *s_rows = (u32 *)(void *)s.tile;
    b_load(&args, p, (IN_W *)(void *)s.tile, &t);
    profile(&args, 0, &clock);
    b_match(&t, &m, s.tile);
    u32 tile_rows;
    u32 row = b_sum_before_u32(m.rows, JOIN_THREADS, s.counts, &tile_rows);
    u32 heavy = tile_rows > TILE_ROWS * JOIN_ROUNDS;
    u64 total = tile_rows;
    if (heavy) { /* there may be more than 32 bits tell */
        b_sum_before_u64(rows_of_thread(&m, t.back, STAGE == 0), JOIN_THREADS, s.sums, &total);
    }
    if (t_id() == 0) {
        look_tell(args.state, tile, total);
    }
    if (!heavy) {
        t_stage(&t, &m, row, tile_rows, s_rows);
    }
    profile(&args, 1, &clock);
    i64 base = (i64)b_look_up(args.state, tile, total, s.before);
    profile(&args, 2, &clock);
    if (t_id() == 0 && tile == args.tiles - 1) {
        args.counters[REL_TOTAL] = (u64)base + total;
    }
    if (t_id() == 0 && heavy) {
        tile_is_heavy(&args, tile, base, total);
    }
    u32 rows = heavy ? 0u : (u32)total;
    for (u32 from = 0; from < rows; from += TILE_ROWS) {
        if (from) {
            b_sync();
            t_stage_many(&m, t.back, row, from, s_rows);
            b_sync();
        }
        u32 left = rows - from < TILE_ROWS ? rows - from : (u32)TILE_ROWS;
        b_gather(&args, p, base + (i64)from, rows_that_fit(&args, base + (i64)from, left), s_rows);
    }
    profile(&args, 3, &clock);
}

/* By wires: 0 when nothing was done. */
#if STAGE == 0 && !PAGED
#include "join_wires.h"
#else
#define b_join_wires(args, tile, s, clock) 0 /* a function's arguments would cost instructions */
#endif

KERNEL(k_join, struct krel_join, JOIN_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u64, s_sums, JOIN_WARPS);
    SHARED(u32, s_counts, JOIN_WARPS);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_cuts, JOIN_THREADS + 1);
    u64 clock = PROFILE ? clock_cycles() : 0u;
    i64 tile = b_ticket((u32 *)&args.counters[REL_TICKET], s_ticket);
    struct join_shared s;
    s.tile = s_bytes;
    s.cuts = s_cuts;
    s.counts = s_counts;
    s.sums = s_sums;
    s.before = s_before;
    if (!b_join_wires(&args, tile, &s, &clock)) {
        b_join_ranges(args, tile, s, clock);
    }
}

#include "join_expand.h"

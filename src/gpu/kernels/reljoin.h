/* reljoin.h: joins and set operations of sorted relations: partition, then compute and gather in
 * one pass.
 *
 * k_partition cuts the merge of both inputs into tiles of equal length; of equal keys those of y
 * come first. k_join loads a tile into shared memory, finds the partners, learns from earlier tiles
 * where its output goes, and writes it in whole lines. STAGE 0 merges tiles in which no key repeats
 * in registers (wires.h) and stages what rows are made of; otherwise, and in the other stages,
 * partners are ranges (ctajoin.h), and pairs of places are staged over the tile. A tile with more
 * than JOIN_ROUNDS stagings is left to k_expand, which cuts its output into chunks and computes the
 * tile again for each, so that a key with many partners occupies as many blocks as it has output.
 *
 * The text before defines KIND, bits of enum rel_kind_bits, STAGE, JOIN_THREADS, TUPLE_VT,
 * WF_MIN_BLOCKS, and either OUT_BYTES or, for positions, INDEX_BYTES as well. With PAGED inputs may
 * be lists of pages: places are numbers of rows, and words are found through the pages' starts; no
 * tile is merged by wires then, whose vectors want rows side by side. */
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

#ifdef INDEX_BYTES
#if INDEX_BYTES == 4
typedef u32 INDEX;
#else
typedef u64 INDEX;
#endif
#define NO_INDEX ((INDEX) ~(INDEX)0)
#endif

/* The word of row i. */
FN IN_W x_word(const struct krel_join *a, i64 i) {
#ifdef PAGED
    i = row_place(&a->x_pages, i);
#endif
    return ((const IN_W *)a->x)[i];
}
FN IN_W y_word(const struct krel_join *a, i64 i) {
#ifdef PAGED
    i = row_place(&a->y_pages, i);
#endif
    return ((const IN_W *)a->y)[i];
}

/* Adds the cycles since *clock to those of a stage of the profile. */
FN void profile(const struct krel_join *a, u32 stage, u64 *clock) {
#ifdef PROFILE
    if (t_id() == 0) {
        u64 now = clock_cycles();
        atom_add_u64(&a->counters[REL_CYCLES + stage], now - *clock);
        *clock = now;
    }
#else
    UNUSED_WORD(a);
    UNUSED_WORD(stage);
    UNUSED_WORD(clock);
#endif
}

/* --- partition ------------------------------------------------------------------------------- */

/* The cut of the merge at diagonal d, known to be in lo .. hi. */
FN i64 cut_between(const struct krel_join *a, i64 d, i64 lo, i64 hi) {
    u32 shift = a->combine.key_shift;
    lo = d - a->y_count > lo ? d - a->y_count : lo;
    hi = d < hi ? d : hi;
    while (hi - lo >= 4) { /* what it waits for is memory: three places at once */
        i64 step = (hi - lo) / 4;
        i64 more = 0;
        UNROLL for (i64 k = 1; k < 4; k++) {
            i64 mid = lo + k * step;
            more += x_word(a, mid) >> shift < y_word(a, d - 1 - mid) >> shift;
        }
        hi = more < 3 ? lo + (more + 1) * step : hi;
        lo += more ? more * step + 1 : 0;
    }
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (x_word(a, mid) >> shift < y_word(a, d - 1 - mid) >> shift) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

FN i64 diagonal_of(const struct krel_join *a, i64 tile) {
    i64 total = a->x_count + a->y_count;
    return tile * TILE_ROWS < total ? tile * TILE_ROWS : total;
}

/* How many y before y[end] have the key of x[at]. */
FN i64 run_before(const struct krel_join *a, i64 at, i64 end) {
    u32 shift = a->combine.key_shift;
    if (at >= a->x_count || end == 0 || x_word(a, at) >> shift != y_word(a, end - 1) >> shift) {
        return 0;
    }
    IN_W key = x_word(a, at) >> shift;
    i64 step = 1;
    i64 start = end - 1;
    while (start >= step && y_word(a, start - step) >> shift == key) {
        start -= step;
        step *= 2;
    }
    i64 below = start >= step ? start - step : -1; /* not of the run */
    while (start - below > 1) {
        i64 mid = (start + below) / 2;
        if (y_word(a, mid) >> shift == key) {
            start = mid;
        } else {
            below = mid;
        }
    }
    return end - start;
}

/* Whether keys repeat right behind a cut: then the tile is not even tried by wires. */
FN i64 repeats_near(const struct krel_join *a, i64 i, i64 j) {
    u32 shift = a->combine.key_shift;
    i64 repeats = 0;
    UNROLL for (i64 k = 0; k < 8; k++) {
        if (i + k + 1 < a->x_count) {
            repeats |= x_word(a, i + k) >> shift == x_word(a, i + k + 1) >> shift;
        }
        if (j + k + 1 < a->y_count) {
            repeats |= y_word(a, j + k) >> shift == y_word(a, j + k + 1) >> shift;
        }
    }
    return repeats;
}

/* What lies on both sides of a cut. */
FN void note_bounds(const struct krel_join *a, i64 cut, i64 i, i64 j) {
    IN_W least = i < a->x_count ? x_word(a, i) : (IN_W) ~(IN_W)0;
    IN_W greatest = i > 0 ? x_word(a, i - 1) : (IN_W)0;
    if (j < a->y_count && y_word(a, j) < least) {
        least = y_word(a, j);
    }
    if (j > 0 && y_word(a, j - 1) > greatest) {
        greatest = y_word(a, j - 1);
    }
    ((IN_W *)a->bounds)[2 * cut] = least;
    ((IN_W *)a->bounds)[2 * cut + 1] = greatest;
}

/* Every COARSE_TILES-th cut first: the others are then searched for among words that few lines of
 * the cache hold. */
KERNEL(k_partition_coarse, struct krel_join, JOIN_THREADS) {
    i64 t = ((i64)t_block() * JOIN_THREADS + t_id()) * COARSE_TILES;
    if (t < args.tiles + COARSE_TILES) {
        t = t < args.tiles ? t : args.tiles;
        args.splits[t] = cut_between(&args, diagonal_of(&args, t), 0, args.x_count);
    }
}

KERNEL(k_partition, struct krel_join, JOIN_THREADS) {
    i64 t = (i64)t_block() * JOIN_THREADS + t_id();
    if (t <= args.tiles) {
        i64 before = t / COARSE_TILES * COARSE_TILES;
        i64 after = before + COARSE_TILES < args.tiles ? before + COARSE_TILES : args.tiles;
        i64 d = diagonal_of(&args, t);
        i64 cut = args.splits[t];
        if (t != before && t != args.tiles) {
            cut = cut_between(&args, d, args.splits[before], args.splits[after]);
            args.splits[t] = cut;
        }
        args.backs[t] = run_before(&args, cut, d - cut) * 2 + repeats_near(&args, cut, d - cut);
        note_bounds(&args, t, cut, d - cut);
    }
}

/* --- tiles ----------------------------------------------------------------------------------- */

struct place { /* of a tile in both inputs */
    i64 x, y;
};

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

#ifdef PAGED
/* Its words into shared memory: x, then y, and one more. Ends with a barrier. */
FN void b_load(const struct krel_join *a, struct place p, IN_W *s_words, struct tiles *t) {
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
#else
/* Its words into shared memory: x, then y. Ends with a barrier. */
FN void b_load(const struct krel_join *a, struct place p, IN_W *s_words, struct tiles *t) {
    const IN_W *x = (const IN_W *)a->x;
    const IN_W *y = (const IN_W *)a->y;
    u32 x_skip = (u32)(p.x & (IN_VEC - 1)); /* each keeps its own alignment */
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

#endif

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

#ifndef INDEX_BYTES
/* The tuple of a pair, of an x alone, of a y alone. */
FN OUT_W row_word(const struct krel_join *a, u32 has_x, u32 has_y, IN_W x, IN_W y) {
    const struct rel_combine *c = &a->combine;
    OUT_W word = 0;
    if (has_x) {
        word = word_move(x, &c->x);
        if ((KIND & REL_X_ALONE) && !has_y) {
            word |= (OUT_W)WIDE_OF(c->no_y_low, c->no_y_high);
        }
    } else {
        word = word_move(y, &c->key) | (OUT_W)WIDE_OF(c->no_x_low, c->no_x_high);
    }
    if (has_y) {
        word |= word_move(y, &c->y);
    }
    return word;
}
#endif

/* One row of output: places in the inputs, -1 for none. */
FN void put_row(const struct krel_join *a, i64 at, i64 x, i64 y) {
#ifdef INDEX_BYTES
    ((INDEX *)a->out)[at] = (INDEX)x;
    ((INDEX *)a->out_y)[at] = (INDEX)y;
#else
    IN_W of_x = x < 0 ? (IN_W)0 : x_word(a, x);
    IN_W of_y = y < 0 ? (IN_W)0 : y_word(a, y);
    ((OUT_W *)a->out)[at] = row_word(a, x >= 0, y >= 0, of_x, of_y);
#endif
}

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

#if STAGE == 0
#define STAGE_UNROLL NO_UNROLL /* few registers are left by wires */
#else
#define STAGE_UNROLL UNROLL /* ranges are registers */
#endif
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

#ifdef INDEX_BYTES
FN void b_gather(const struct krel_join *a, struct place p, i64 base, u32 rows, const u32 *s_rows) {
    i64 y_first = p.y - (i64)Y_BIAS;
#define ROW_X(r) ((s_rows[r] & 0xffffu) == NO_X ? NO_INDEX : (INDEX)(p.x + (s_rows[r] & 0xffffu)))
#define ROW_Y(r) (s_rows[r] >> 16 == NO_Y ? NO_INDEX : (INDEX)(y_first + (s_rows[r] >> 16)))
    PUT_ROWS(INDEX, (16 / INDEX_BYTES), a->out, base, rows, ROW_X)
    PUT_ROWS(INDEX, (16 / INDEX_BYTES), a->out_y, base, rows, ROW_Y)
}
#else
/* Words come from the inputs once more: pairs are staged where they were. */
FN OUT_W staged_row(const struct krel_join *a, struct place p, u32 pair) {
    u32 xi = pair & 0xffffu;
    u32 yi = pair >> 16;
    u32 has_x = !(KIND & REL_Y_ALONE) || xi != NO_X;
    u32 has_y = (KIND & (REL_PAIRS | REL_Y_ALONE)) && yi != NO_Y;
    IN_W of_x = has_x ? x_word(a, p.x + (i64)xi) : (IN_W)0;
    IN_W of_y = has_y ? y_word(a, p.y + (i64)yi - (i64)Y_BIAS) : (IN_W)0;
    return row_word(a, has_x, has_y, of_x, of_y);
}

FN void b_gather(const struct krel_join *a, struct place p, i64 base, u32 rows, const u32 *s_rows) {
#define ROW_WORD(r) staged_row(a, p, s_rows[r])
    PUT_ROWS(OUT_W, OUT_VEC, a->out, base, rows, ROW_WORD)
}
#endif

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
    (void)s_tile;
#if STAGE == 0
    t_merge(t, m);
#elif STAGE == 1
    t_binary(t, m);
#elif STAGE == 2
    t_blocked(t, m);
#elif STAGE == 3
    t_brute(t, m);
#elif STAGE == 4
    b_hash(t, m, (u32 *)(void *)(s_tile + TILE_VECS * 16));
#else
    t_network(t, m);
#endif
#if STAGE != 0
    matches_end(t, m);
#endif
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

#if STAGE == 0 /* out of the way of what most tiles do: it wants other registers */
#define FN_RANGES FN_SLOW
#else
#define FN_RANGES FN
#endif

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

#if STAGE == 0 && !defined PAGED
/* --- by wires -------------------------------------------------------------------------------- */

#define RAW IN_W
#define RAW_BYTES IN_BYTES
#define WIRE_THREADS JOIN_THREADS
#define WIRE_ITEMS TUPLE_VT
#define WIRE_A_LAST (!KIND_UNION) /* then an x meets the y before it; a union keeps every x */
#include "wires.h"

#define LIST_ROWS (KIND_OUTER ? TILE_ROWS + 1 : TILE_ROWS / 2 + 1) /* most rows of pairs */

/* Which wires give a row; `met`: what is behind the part is the partner of its last y. */
FN u32 join_kept(const struct wire_bits *bits, u32 met) {
    u32 kept = 0;
    if (KIND_UNION) {
        kept = ~bits->pair & ~(met << (WIRES - 1));
    } else {
        if (KIND & (REL_PAIRS | REL_X_ONCE)) {
            kept |= bits->pair;
        }
        if (KIND & REL_X_ALONE) {
            kept |= bits->last & ~bits->pair;
        }
        if (KIND & REL_Y_ALONE) {
            kept |= ~bits->last & ~(bits->pair >> 1 | met << (WIRES - 1));
        }
    }
    return kept & bits->here;
}

/* Whether the tile's last y meets the x behind the tile. */
FN u32 last_y_meets(const struct krel_join *a, const struct tiles *t, struct place p) {
    return t->has_next && t->ny &&
           ((const IN_W *)a->y)[p.y + (i64)t->ny - 1] >> t->shift == t->next;
}

#ifdef INDEX_BYTES
/* Places, as t_stage_one has them. */
FN void t_stage_places(const struct wire_bits *bits, const struct wire_part *part, u32 kept,
                       u32 row, u32 *s_rows) {
    u32 skip = WIRES - (part->i_end - part->i + part->j_end - part->j);
    u32 is_x = bits->last & bits->here;
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        if (kept >> k & 1u) {
            u32 xs = bits_set_u32(is_x & ((1u << k) - 1u)); /* before it */
            u32 xi = part->i + xs;
            u32 y = Y_BIAS + part->j + k - skip - xs;
            u32 pair = bits->pair >> k & 1u ? y - 1u : NO_Y;
            if ((KIND & REL_Y_ALONE) && !(is_x >> k & 1u)) {
                pair = y;
                xi = NO_X;
            }
            s_rows[row++] = xi | pair << 16;
        }
    }
}
#endif

/* t_stage_words: what rows are made of: the word of each; of pairs that of x and in a second list
 * that of y, 0 where there is none.
 * b_join: the whole tile; 0: keys repeat, nothing was done. */
#define JOIN_BY_WIRES(w, X)                                                                    \
    FN void t_stage_##w(const X *r, const struct wire_bits *bits, X before, u32 kept, u32 row, \
                        X *list) {                                                             \
        UNROLL for (u32 k = 0; k < WIRES; k++) {                                               \
            if (kept >> k & 1u) {                                                              \
                u32 is_x = !(KIND & REL_Y_ALONE) || bits->last >> k & 1u;                      \
                u32 pair = !KIND_OUTER || bits->pair >> k & 1u;                                \
                X y = k ? r[k - 1] : before;                                                   \
                list[row] = (KIND & REL_PAIRS) && !is_x ? (X)0 : r[k];                         \
                if (KIND & REL_PAIRS) {                                                        \
                    list[LIST_ROWS + row] = !is_x ? r[k] : pair ? y : (X)0;                    \
                }                                                                              \
                row++;                                                                         \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    FN u32 b_join_##w(const struct krel_join *args, i64 tile, const struct tiles *t,           \
                      struct place p, struct wire_tile *wt, const struct join_shared *s,       \
                      u64 *clock) {                                                            \
        if (b_any((i32)t_bring_##w(wt, s->tile))) {                                            \
            return 0;                                                                          \
        }                                                                                      \
        profile(args, 0, clock);                                                               \
        struct wire_part part = b_part_##w(s->tile, wt, s->cuts);                              \
        X r[WIRES];                                                                            \
        X before = before_##w(s->tile, wt, &part);                                             \
        load_##w(r, s->tile, wt, &part, before);                                               \
        merge_##w(r);                                                                          \
        struct wire_bits bits = learn_##w(r, wt, &part, before);                               \
        u32 met = 0;                                                                           \
        if (KIND & REL_Y_ALONE) {                                                              \
            if (part.i_end == t->nx && part.j_end == t->ny) {                                  \
                met = last_y_meets(args, t, p);                                                \
            } else if (!KIND_UNION) {                                                          \
                met = (r[WIRES - 1] ^ after_##w(s->tile, wt, &part)) >> WIRE_LOW(wt) == 1u;    \
            }                                                                                  \
        }                                                                                      \
        u32 kept = join_kept(&bits, met);                                                      \
        if (b_any((i32)bits.repeated)) {                                                       \
            return 0;                                                                          \
        }                                                                                      \
        u32 all;                                                                               \
        u32 row = b_sum_before_u32(bits_set_u32(kept), JOIN_THREADS, s->counts, &all);         \
        if (t_id() == 0) {                                                                     \
            look_tell(args->state, tile, all);                                                 \
        }                                                                                      \
        X *list = (X *)(void *)s->tile;                                                        \
        JOIN_STAGE_##w;                                                                        \
        profile(args, 1, clock);                                                               \
        i64 base = (i64)b_look_up(args->state, tile, all, s->before);                          \
        profile(args, 2, clock);                                                               \
        if (t_id() == 0 && tile == args->tiles - 1) {                                          \
            args->counters[REL_TOTAL] = (u64)base + all;                                       \
        }                                                                                      \
        u32 rows = rows_that_fit(args, base, all);                                             \
        JOIN_WRITE_##w profile(args, 3, clock);                                                \
        return 1;                                                                              \
    }

#ifdef INDEX_BYTES
#define JOIN_STAGE(w) t_stage_places(&bits, &part, kept, row, (u32 *)(void *)list)
#define JOIN_WRITE(w) b_gather(args, p, base, rows, (const u32 *)(void *)list);
#else
#define JOIN_STAGE(w) t_stage_##w(r, &bits, before, kept, row, list)
#define JOIN_WRITE(w) PUT_ROWS(OUT_W, OUT_VEC, args->out, base, rows, ROW_##w)
#define ROW_OF(w, r)                                                                         \
    ((KIND & REL_PAIRS) ? row_word(args, !(KIND & REL_Y_ALONE) || list[r] != 0,              \
                                   !(KIND & REL_X_ALONE) || list[LIST_ROWS + (r)] != 0,      \
                                   raw_##w(wt, list[r]), raw_##w(wt, list[LIST_ROWS + (r)])) \
                        : row_word(args, KIND_UNION ? !(list[r] >> WIRE_LOW(wt) & 1u) : 1u,  \
                                   KIND_UNION && (list[r] >> WIRE_LOW(wt) & 1u),             \
                                   raw_##w(wt, list[r]), raw_##w(wt, list[r])))
#define ROW_narrow(r) ROW_OF(narrow, r)
#define ROW_wide(r) ROW_OF(wide, r)
#endif
#define JOIN_STAGE_narrow JOIN_STAGE(narrow)
#define JOIN_WRITE_narrow JOIN_WRITE(narrow)
#define JOIN_STAGE_wide JOIN_STAGE(wide)
#define JOIN_WRITE_wide JOIN_WRITE(wide)
#define JOIN_WIDE (!KIND_OUTER || IN_BYTES != 8) /* whose lists fit the tile */

JOIN_BY_WIRES(narrow, u32)
#if IN_BYTES > 4
JOIN_BY_WIRES(wide, u64)
#endif

FN u32 b_join_wires(const struct krel_join *args, i64 tile, const struct join_shared *s,
                    u64 *clock) {
    struct tiles t;
    struct place p = tile_open(args, tile, &t);
    struct wire_tile wt;
    IN_W least = ((const IN_W *)args->bounds)[2 * tile];
    IN_W greatest = ((const IN_W *)args->bounds)[2 * tile + 3];
    wt.a = (const IN_W *)args->x;
    wt.b = (const IN_W *)args->y;
    wt.a_count = args->x_count;
    wt.b_count = args->y_count;
    wt.a_first = p.x;
    wt.b_first = p.y;
    wt.a_rows = t.nx;
    wt.b_rows = t.ny;
    wt.b_before = !KIND_UNION && t.back == 1;
    wt.low = args->low;
    wt.down = args->down;
    if ((!KIND_UNION && t.back > 1) || (args->backs[tile] & 1)) {
        return 0;
    }
    if (wires_fit(&wt, least, greatest, 32)) {
        return b_join_narrow(args, tile, &t, p, &wt, s, clock);
    }
#if IN_BYTES > 4
    if (JOIN_WIDE && wires_fit(&wt, least, greatest, 64)) {
        return b_join_wide(args, tile, &t, p, &wt, s, clock);
    }
#endif
    return 0;
}
#endif

KERNEL(k_join, struct krel_join, JOIN_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u64, s_sums, JOIN_WARPS);
    SHARED(u32, s_counts, JOIN_WARPS);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_cuts, JOIN_THREADS + 1);
    u64 clock = 0;
#ifdef PROFILE
    clock = clock_cycles();
#endif
    i64 tile = b_ticket((u32 *)&args.counters[REL_TICKET], s_ticket);
    struct join_shared s;
    s.tile = s_bytes;
    s.cuts = s_cuts;
    s.counts = s_counts;
    s.sums = s_sums;
    s.before = s_before;
#if STAGE == 0 && !defined PAGED
    if (b_join_wires(&args, tile, &s, &clock)) {
        return;
    }
#endif
    b_join_ranges(args, tile, s, clock);
}

/* --- tiles with much output ------------------------------------------------------------------ */

struct element { /* of a tile's output */
    u64 first, end;
    i64 x, y; /* y of its first row; -1: none */
};

/* What k_expand knows of a tile, in shared memory: each thread's first row, and its matches. */
struct expanded {
    u64 *first;
    u32 *is_x, *is_y, *same, *x, *y, *start;
};

/* The element of an output row. */
FN struct element element_at(const struct expanded *s, const struct place p, u64 row, i64 back) {
    u32 lo = 0; /* the last thread that starts at or before the row */
    u32 hi = JOIN_THREADS;
    while (hi - lo > 1) {
        u32 mid = (lo + hi) / 2;
        if (s->first[mid] <= row) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    struct element e;
    struct cursor c;
    u32 xi = s->x[lo];
    c.y = s->y[lo];
    c.start = s->start[lo];
    e.first = e.end = s->first[lo];
    e.x = e.y = -1;
    for (u32 k = 0; k < TUPLE_VT && e.end <= row; k++) {
        u32 is_x = s->is_x[lo] >> k & 1u;
        u32 range = merged_range(&c, is_x, s->same[lo] >> k & 1u);
        e.first = e.end;
        e.end += rows_of(range, is_x, s->is_y[lo] >> k & 1u, back);
        if (is_x) {
            u32 start = range >> 16;
            u32 pairs = (KIND & REL_PAIRS) && range_count(range, back);
            e.x = p.x + (i64)xi;
            e.y = !pairs ? -1 : start == RANGE_BEFORE ? p.y - back : p.y + (i64)start;
        } else {
            e.x = -1;
            e.y = p.y + (i64)(range & 0xffffu);
        }
        xi += is_x;
    }
    return e;
}

/* The heavy tile that a chunk belongs to. */
FN u64 heavy_of(const struct krel_heavy *heavy, u64 count, u64 chunk) {
    u64 lo = 0;
    u64 hi = count;
    while (hi - lo > 1) {
        u64 mid = (lo + hi) / 2;
        if (heavy[mid].chunk <= chunk) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

FN void t_expand(const struct krel_join *a, const struct krel_heavy *h, u64 first, u64 end,
                 struct place p, i64 back, const struct expanded *s) {
    struct element e;
    e.first = e.end = 0;
    e.x = e.y = -1;
    for (u64 row = first + t_id(); row < end; row += JOIN_THREADS) {
        if (row >= e.end) {
            e = element_at(s, p, row, back);
        }
        i64 y = e.y < 0 ? -1 : e.y + (i64)(row - e.first);
        put_row(a, (i64)(h->base + row), e.x, y);
    }
}

KERNEL(k_expand, struct krel_join, JOIN_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u64, s_first, JOIN_THREADS);
    SHARED(u32, s_is_x, JOIN_THREADS);
    SHARED(u32, s_is_y, JOIN_THREADS);
    SHARED(u32, s_same, JOIN_THREADS);
    SHARED(u32, s_x, JOIN_THREADS);
    SHARED(u32, s_y, JOIN_THREADS);
    SHARED(u32, s_start, JOIN_THREADS);
    SHARED(u64, s_sums, JOIN_WARPS);
    SHARED(u32, s_ticket, 1);
    u32 *ticket = (u32 *)&args.counters[REL_EXPAND];
    u64 heavy = args.counters[REL_HEAVY];
    u64 chunks = heavy >> 24;
    struct expanded s;
    s.first = s_first;
    s.is_x = s_is_x;
    s.is_y = s_is_y;
    s.same = s_same;
    s.x = s_x;
    s.y = s_y;
    s.start = s_start;
    for (u64 chunk = b_ticket(ticket, s_ticket); chunk < chunks;
         chunk = b_ticket(ticket, s_ticket)) {
        struct krel_heavy h = args.heavy[heavy_of(args.heavy, heavy & 0xffffffu, chunk)];
        struct tiles t;
        struct matches m;
        u64 total;
        struct place p = tile_open(&args, (i64)h.tile, &t);
        b_load(&args, p, (IN_W *)(void *)s_bytes, &t);
        t_merge(&t, &m);
        s_first[t_id()] =
            b_sum_before_u64(rows_of_thread(&m, t.back, 1), JOIN_THREADS, s_sums, &total);
        s_is_x[t_id()] = m.is_x;
        s_is_y[t_id()] = m.is_y;
        s_same[t_id()] = m.same;
        s_x[t_id()] = m.x_first;
        s_y[t_id()] = m.y_first;
        s_start[t_id()] = m.start;
        b_sync();
        u64 first = (chunk - h.chunk) * EXPAND_ROWS;
        u64 end = first + EXPAND_ROWS < h.total ? first + EXPAND_ROWS : h.total;
        t_expand(&args, &h, first, end, p, t.back, &s);
    }
}

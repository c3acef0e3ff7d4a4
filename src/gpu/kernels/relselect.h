/* relselect.h: the tuples that satisfy a predicate, in one pass.
 *
 * A thread holds four vectors, a block's width apart; how many of each it keeps are four 16-bit
 * counts in one word, so that one scan gives the places of all. Kept words are staged in shared
 * memory and leave in one piece. ORDERED: where the piece goes is found by looking back at earlier
 * tiles; UNORDERED: one atomic; PAGES: at the page's start, one block a page, and nothing needs to
 * be known about others. But for pages a block takes one tile. */
#ifndef WF_MIN_BLOCKS /* whoever waits for others is many */
#ifdef UNORDERED
#define WF_MIN_BLOCKS (IN_BYTES == 4 ? 6 : IN_BYTES == 8 ? 5 : 3)
#else
#define WF_MIN_BLOCKS (IN_BYTES == 4 ? 8 : IN_BYTES == 8 ? 5 : 3)
#endif
#endif
#include "tuple.h"
#include "lookback.h"

#define TILE_ROWS (SELECT_THREADS * SELECT_VECS * IN_VEC)
#define SELECT_WARPS (SELECT_THREADS / 32)

/* Fields of a word of 32 bits are compared as such. */
#if IN_BYTES == 4
typedef u32 FIELD;
#else
typedef u64 FIELD;
#endif

FN u32 word_kept(const struct rel_terms *terms, IN_W x) {
#if TERMS == 0
    return 1u;
#elif TERMS == 1
    const struct rel_term *only = &terms->term[0];
    FIELD value = (FIELD)(x >> only->shift) & (FIELD)only->mask;
    return (u32)((FIELD)(value - (FIELD)only->low) <= (FIELD)only->span) ^ only->inverted;
#else
    u32 any = 0;
    u32 all = 1;
    UNROLL for (u32 t = 0; t < TERMS; t++) {
        const struct rel_term *term = &terms->term[t];
        FIELD field = (FIELD)(x >> term->shift) & (FIELD)term->mask;
        u32 in_range = (FIELD)(field - (FIELD)term->low) <= (FIELD)term->span;
        all &= in_range ^ term->inverted;
        any |= term->last ? all : 0u;
        all = term->last ? 1u : all;
    }
    return any;
#endif
}

/* Per vector, which of its words are kept. */
FN u32 vec_kept(const struct rel_terms *terms, vec16 v, i64 i, i64 rows) {
    u32 kept = 0;
    UNROLL for (u32 j = 0; j < IN_VEC; j++) {
        kept |= word_kept(terms, vec_in(v, j)) << j;
    }
    if (rows < TILE_ROWS) { /* the last tile, or the last of a page */
        i64 left = rows - i;
        kept &= left >= IN_VEC ? 15u : left > 0 ? (1u << left) - 1u : 0u;
    }
    return kept;
}

/* By one thread, as soon as the number is known: where the tile's rows go, or what helps others to
 * find where theirs do. */
FN void tell_kept(const struct krel_select *a, i64 number, u32 kept, u64 *s_before) {
#ifdef PAGES
    (void)a;
    (void)number;
    (void)kept;
    (void)s_before;
#elif defined UNORDERED
    (void)number;
    *s_before = kept ? atom_add_u64(&a->counters[REL_TOTAL], kept) : 0u;
#else
    (void)s_before;
    look_tell(a->state, number, kept);
#endif
}

/* Reads a tile and stages what is kept; all threads get the number. s_sums: a word per warp. */
FN u32 b_stage_kept(const struct krel_select *a, i64 number, const IN_W *in, i64 rows, IN_W *s_kept,
                    u64 *s_sums, u64 *s_before) {
    vec16 v[SELECT_VECS];
    u32 kept[SELECT_VECS];
    u64 counts = 0;
    u64 all;
    UNROLL for (u32 k = 0; k < SELECT_VECS; k++) {
        v[k] = vec_words(in, ((i64)k * SELECT_THREADS + t_id()) * IN_VEC, rows);
    }
    UNROLL for (u32 k = 0; k < SELECT_VECS; k++) {
        kept[k] = vec_kept(&a->terms, v[k], ((i64)k * SELECT_THREADS + t_id()) * IN_VEC, rows);
        counts |= (u64)bits_set_u32(kept[k]) << (16 * k);
    }
    u64 before = b_sum_before(counts, s_sums, &all);
    u32 row_first = 0;
    if (t_id() == 0) {
        tell_kept(a, number,
                  (u32)(all & 0xffffu) + (u32)(all >> 16 & 0xffffu) + (u32)(all >> 32 & 0xffffu) +
                      (u32)(all >> 48),
                  s_before);
    }
    UNROLL for (u32 k = 0; k < SELECT_VECS; k++) {
        u32 at = row_first + ((u32)(before >> (16 * k)) & 0xffffu);
        UNROLL for (u32 j = 0; j < IN_VEC; j++) {
            if (kept[k] >> j & 1u) {
                s_kept[at++] = vec_in(v[k], j);
            }
        }
        row_first += (u32)(all >> (16 * k)) & 0xffffu;
    }
    return row_first;
}

/* The staged words to `out`, as far as there is room; a barrier is needed before. */
FN void b_put_kept(OUT_W *out, i64 base, i64 room, const IN_W *s_kept, u32 count) {
    u32 rows = room - base >= (i64)count ? count : room > base ? (u32)(room - base) : 0u;
#define KEPT(r) s_kept[r]
    PUT_ROWS(OUT_W, OUT_VEC, out, base, rows, KEPT)
#undef KEPT
}

#ifdef PAGES
KERNEL(k_select, struct krel_select, SELECT_THREADS) {
    SHARED(IN_W, s_kept, TILE_ROWS);
    SHARED(u64, s_sums, SELECT_WARPS);
    for (i64 page = t_block(); page < args.in.page_count; page += t_blocks()) {
        i64 count = 0;
        i64 start = page * args.in.page_rows;
        for (i64 part = 0; part < args.in.page_tiles; part++) {
            struct tile t = tile_of(&args.in, page * args.in.page_tiles + part, TILE_ROWS);
            u32 kept = b_stage_kept(&args, 0, (const IN_W *)args.in.data + t.at, t.rows, s_kept,
                                    s_sums, (u64 *)0);
            b_sync();
            b_put_kept((OUT_W *)args.out, start + count, start + args.in.page_rows, s_kept, kept);
            b_sync();
            count += kept;
        }
        if (t_id() == 0) {
            args.out_fills[page] = (u32)count;
            atom_add_u64(&args.counters[REL_TOTAL], (u64)count);
        }
    }
}
#else
KERNEL(k_select, struct krel_select, SELECT_THREADS) {
    SHARED(IN_W, s_kept, TILE_ROWS);
    SHARED(u64, s_sums, SELECT_WARPS);
    SHARED(u64, s_before, 1);
#ifdef UNORDERED
    i64 number = t_block();
#else
    SHARED(u32, s_ticket, 1);
    i64 number = b_ticket((u32 *)&args.counters[REL_TICKET], s_ticket);
#endif
    struct tile t = tile_of(&args.in, number, TILE_ROWS);
    u32 kept = b_stage_kept(&args, number, (const IN_W *)args.in.data + t.at, t.rows, s_kept,
                            s_sums, s_before);
#ifdef UNORDERED
    b_sync();
    i64 before = (i64)*s_before;
#else
    i64 before = (i64)b_look_up(args.state, number, kept, s_before);
    if (t_id() == 0 && number == args.in.page_tiles * args.in.page_count - 1) {
        args.counters[REL_TOTAL] = (u64)before + kept;
    }
#endif
    b_put_kept((OUT_W *)args.out, before, args.room, s_kept, kept);
}
#endif

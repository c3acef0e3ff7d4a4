/* relselect.h: the tuples that satisfy a predicate, in one pass.
 *
 * A tile's tuples that are kept are put together in shared memory and leave in one piece (kept.h).
 * ORDERED: where the piece goes is found by looking back at earlier tiles; UNORDERED: one atomic;
 * PAGES: at the page's start, one block a page, and nothing needs to be known about others. But for
 * pages a block takes one tile. */
#define KEPT_THREADS SELECT_THREADS
#define KEPT_GROUPS SELECT_GROUPS(IN_BYTES)
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS (IN_BYTES == 4 ? 4 : 5)
#endif
#include "tuple.h"
#include "kept.h"
#include "lookback.h"

#define PASTE(x, y) x##y
#define READ_WORDS(bytes) PASTE(kept_read, bytes)
#define LIST_WORDS(bytes) PASTE(kept_list, bytes)
typedef u32 words_raw[KEPT_WORDS(IN_BYTES)];

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

FN IN_W raw_in(const u32 *raw, u32 j) {
#if IN_BYTES == 4
    return raw[j];
#elif IN_BYTES == 8
    return raw_u64(raw, j);
#else
    return (u128)raw_u64(raw, 2 * j + 1) << 64 | raw_u64(raw, 2 * j);
#endif
}

/* Reads a tile and finds what is kept of it and where it goes. One barrier. */
FN void b_select(const struct krel_select *a, const IN_W *in, i64 rows, struct kept *k,
                 words_raw *raw, u32 *s_counts) {
    u32 whole = rows == KEPT_ROWS;
    k->first = kept_first(0);
    k->bits = 0;
    READ_WORDS(IN_BYTES)(raw, in, k->first, rows, whole);
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            k->bits |= word_kept(&a->terms, raw_in(raw[g], j)) << (4 * g + j);
        }
        if (!whole) { /* the last tile, or the last of a page */
            i64 left = rows - KEPT_GROUP_ROW(k->first, g);
            u32 there = left >= 4 ? 15u : left > 0 ? (1u << left) - 1u : 0u;
            k->bits &= ~((15u & ~there) << (4 * g));
        }
    }
    b_kept_places(k, s_counts);
}

#ifdef PAGES
KERNEL(k_select, struct krel_select, SELECT_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_counts, KEPT_WARPS);
    u32 *s_list = (u32 *)s_bytes;
    for (i64 page = t_block(); page < args.in.page_count; page += t_blocks()) {
        i64 count = 0;
        i64 start = page * args.in.page_rows;
        for (i64 part = 0; part < args.in.page_tiles; part++) {
            struct tile t = tile_of(&args.in, page * args.in.page_tiles + part, KEPT_ROWS);
            words_raw raw[KEPT_GROUPS];
            struct kept k;
            b_select(&args, (const IN_W *)args.in.data + t.at, t.rows, &k, raw, s_counts);
            LIST_WORDS(IN_BYTES)(s_list, &k, (const words_raw *)raw);
            b_sync();
            b_kept_write(s_list, args.out, (u64)(start + count), k.total, start + args.in.page_rows,
                         IN_BYTES);
            b_sync();
            count += k.total;
        }
        if (t_id() == 0) {
            args.out_fills[page] = (u32)count;
            atom_add_u64(&args.counters[REL_TOTAL], (u64)count);
        }
    }
}
#else
KERNEL(k_select, struct krel_select, SELECT_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_counts, KEPT_WARPS);
    SHARED(u64, s_before, 1);
    u32 *s_list = (u32 *)s_bytes;
    words_raw raw[KEPT_GROUPS];
    struct kept k;
#ifdef UNORDERED
    i64 number = t_block();
#else
    SHARED(u32, s_ticket, 1);
    i64 number = b_ticket((u32 *)&args.counters[REL_TICKET], s_ticket);
#endif
    struct tile t = tile_of(&args.in, number, KEPT_ROWS);
    b_select(&args, (const IN_W *)args.in.data + t.at, t.rows, &k, raw, s_counts);
    if (t_id() == 0) {
#ifdef UNORDERED
        *s_before = k.total ? atom_add_u64(&args.counters[REL_TOTAL], k.total) : 0u;
#else
        look_tell(args.state, number, k.total);
#endif
    }
    LIST_WORDS(IN_BYTES)(s_list, &k, (const words_raw *)raw);
#ifdef UNORDERED
    b_sync();
    u64 before = *s_before;
#else
    u64 before = b_look_up(args.state, number, k.total, s_before);
    if (t_id() == 0 && number == args.in.page_tiles * args.in.page_count - 1) {
        args.counters[REL_TOTAL] = before + k.total;
    }
#endif
    b_kept_write(s_list, args.out, before, k.total, args.room, IN_BYTES);
}
#endif

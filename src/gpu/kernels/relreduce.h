/* relreduce.h: reduction of a field over groups of equal keys of sorted tuples, in one pass.
 *
 * A tile passes through shared memory once, so that a thread has neighbours. A group is known by
 * its last row, where the next key differs: the number of such rows before it is its place, and its
 * value is the reduction since the one before. Both are found by one scan over the block. Its
 * groups are then lined up in shared memory, where the rows were. Two looks back tell what earlier
 * tiles have of the first group and, when the groups are lined up, how many groups those tiles
 * have. The text before defines REDUCE, one of enum rel_reduce_op. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS (IN_BYTES == 4 ? 6 : IN_BYTES == 8 ? 5 : 4)
#endif
#include "pages.h"
#include "tuple.h"

#define T u64
#define T_BYTES 8
#define T_WORDS 1
#if REDUCE == 2
#define FOLD_IDENTITY 0xffffffffffffffffULL
#define FOLD(a, b) ((b) < (a) ? (b) : (a))
#elif REDUCE == 3
#define FOLD_IDENTITY 0ULL
#define FOLD(a, b) ((a) < (b) ? (b) : (a))
#else
#define FOLD_IDENTITY 0ULL
#define FOLD(a, b) ((a) + (b))
#endif
#include "foldback.h"

#define THREAD_VECS (IN_BYTES == 4 ? 2 : 4)
#define THREAD_ROWS (THREAD_VECS * IN_VEC)
#define TILE_ROWS (REDUCE_THREADS * THREAD_ROWS)
#define REDUCE_WARPS (REDUCE_THREADS / 32)

FN u64 word_value(const struct krel_reduce *a, IN_W x) {
#if REDUCE == 0
    return 1u;
#else
    return (u64)(x >> a->field_shift) & a->field_mask;
#endif
}

/* Rows of a thread or more: groups that end there, the reduction behind the last end. */
struct stretch {
    u64 value;
    u32 ends;
};
FN struct stretch stretch_join(struct stretch left, struct stretch right) {
    right.value = right.ends ? right.value : FOLD(left.value, right.value);
    right.ends += left.ends;
    return right;
}

/* What lower threads have; *out_all: what the block does. A word per warp of either shared array.
 * One barrier; another before they are used again is the caller's. */
FN struct stretch b_stretch_scan(struct stretch mine, u64 *s_values, u32 *s_ends,
                                 struct stretch *out_all) {
    struct stretch upto = mine;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        struct stretch other;
        other.value = w_up_u64(upto.value, by);
        other.ends = w_up_u32(upto.ends, by);
        if (t_lane() >= by) {
            upto = stretch_join(other, upto);
        }
    }
    u32 warp = t_id() >> 5;
    if (t_lane() == 31u) {
        s_values[warp] = upto.value;
        s_ends[warp] = upto.ends;
    }
    struct stretch before;
    before.value = w_up_u64(upto.value, 1);
    before.ends = w_up_u32(upto.ends, 1);
    if (t_lane() == 0) {
        before.value = FOLD_IDENTITY;
        before.ends = 0;
    }
    b_sync();
    struct stretch all;
    all.value = FOLD_IDENTITY;
    all.ends = 0;
    for (u32 w = 0; w < REDUCE_WARPS; w++) {
        if (w == warp) {
            before = stretch_join(all, before);
        }
        struct stretch one;
        one.value = s_values[w];
        one.ends = s_ends[w];
        all = stretch_join(all, one);
    }
    *out_all = all;
    return before;
}

#ifdef PAGED
/* The vector of rows i and following of a list of pages, of which `count` exist. */
FN vec16 page_words(const struct krel_reduce *a, struct page_span span, i64 i, i64 count) {
    const u32 *in = (const u32 *)a->in;
    vec16 v;
    UNROLL for (u32 k = 0; k < 4; k++) {
        i64 at = i + (i64)(k * 4 / IN_BYTES);
        v.w[k] = 0;
        if (at < count) {
            v.w[k] = in[row_near(&a->pages, span, at) * (IN_BYTES / 4) + k % (IN_BYTES / 4)];
        }
    }
    return v;
}
#endif

/* The tile to shared memory, and the word behind it. Ends with a barrier. */
FN void b_load_tile(const struct krel_reduce *a, i64 first, u32 rows, u8 *s_in, IN_W *s_next) {
    const IN_W *in = (const IN_W *)a->in;
    i64 count = a->count;
    vec16 v[THREAD_VECS];
#ifdef PAGED
    struct page_span span = page_span(&a->pages, first, (i64)rows);
#endif
    UNROLL for (u32 k = 0; k < THREAD_VECS; k++) {
        i64 i = (i64)((k * REDUCE_THREADS + t_id()) * IN_VEC);
#ifdef PAGED
        v[k] = page_words(a, span, first + i, first + (i64)rows);
#else
        v[k] = vec_words(in, first + i, count);
#endif
    }
    UNROLL for (u32 k = 0; k < THREAD_VECS; k++) {
        store16(s_in + vec_place(k * REDUCE_THREADS + t_id()), v[k]);
    }
    if (t_id() == 0) {
        i64 next = first + (i64)rows;
#ifdef PAGED
        next = next < count ? row_place(&a->pages, next) : 0;
#endif
        *s_next = first + (i64)rows < count ? in[next] : (IN_W)0;
    }
    b_sync();
}

/* The thread's rows and the one behind them. */
FN void thread_words(const u8 *s_in, IN_W next, IN_W *word) {
    UNROLL for (u32 k = 0; k < THREAD_VECS; k++) {
        vec16 v = load16(s_in + vec_place(t_id() * THREAD_VECS + k));
        UNROLL for (u32 j = 0; j < IN_VEC; j++) {
            word[k * IN_VEC + j] = vec_in(v, j);
        }
    }
    if (t_id() + 1u < REDUCE_THREADS) {
        next = vec_in(load16(s_in + vec_place((t_id() + 1u) * THREAD_VECS)), 0);
    }
    word[THREAD_ROWS] = next;
}

KERNEL(k_reduce, struct krel_reduce, REDUCE_THREADS) {
    SHARED_BYTES(s_in); /* vectors of the tile, then the keys of its groups */
    SHARED(u64, s_out, TILE_ROWS);
    SHARED(u64, s_values, REDUCE_WARPS);
    SHARED(u32, s_ends, REDUCE_WARPS);
    SHARED(IN_W, s_next, 1);
    SHARED(u64, s_before, 2); /* groups; what there is of the first one */
    SHARED(u32, s_ticket, 1);
    IN_W *s_keys = (IN_W *)s_in;
    i64 tile = b_ticket((u32 *)&args.counters[REL_TICKET], s_ticket);
    i64 first = tile * TILE_ROWS;
    i64 left = args.count - first;
    u32 rows = left < TILE_ROWS ? (u32)left : (u32)TILE_ROWS;
    b_load_tile(&args, first, rows, s_in, s_next);
    IN_W word[THREAD_ROWS + 1];
    thread_words(s_in, *s_next, word);
    u32 here = rows > t_id() * THREAD_ROWS ? rows - t_id() * THREAD_ROWS : 0u;
    u32 last = left <= TILE_ROWS ? here : THREAD_ROWS + 1u; /* of all rows: ends one anyway */
    u32 tails = 0;
    struct stretch mine;
    mine.value = FOLD_IDENTITY;
    mine.ends = 0;
    UNROLL for (u32 k = 0; k < THREAD_ROWS; k++) {
        u32 tail = k < here && (k + 1u == last || (word[k] ^ word[k + 1]) >> args.key_shift != 0);
        u64 value = k < here ? word_value(&args, word[k]) : FOLD_IDENTITY;
        mine.value = tail ? FOLD_IDENTITY : FOLD(mine.value, value);
        mine.ends += tail;
        tails |= tail << k;
    }
    struct stretch all;
    struct stretch before = b_stretch_scan(mine, s_values, s_ends, &all);
    if (t_id() == 0) {
        look_tell(args.state, tile, all.ends);
    }
    if (t_id() < 32u) {
        u64 earlier = w_fold_back(args.open, tile, all.value, all.ends != 0);
        if (t_lane() == 0) {
            s_before[1] = earlier;
        }
    }
    u32 group = before.ends;
    u64 value = before.value;
    UNROLL for (u32 k = 0; k < THREAD_ROWS; k++) {
        u64 own = k < here ? word_value(&args, word[k]) : FOLD_IDENTITY;
        value = FOLD(value, own);
        if (tails >> k & 1u) {
            s_keys[group] = (IN_W)(word[k] >> args.key_shift << args.key_shift);
            s_out[group] = value;
            group++;
            value = FOLD_IDENTITY;
        }
    }
    if (t_id() < 32u) {
        u64 groups = w_look_up(args.state, tile, all.ends);
        if (t_id() == 0) {
            s_before[0] = groups;
            if (left <= TILE_ROWS) {
                args.counters[REL_TOTAL] = groups + all.ends;
            }
        }
    }
    b_sync();
    i64 base = (i64)s_before[0];
    u64 begun = s_before[1];
    i64 room = args.room - base;
    u32 count = room < (i64)all.ends ? (room < 0 ? 0u : (u32)room) : all.ends;
#define KEY_AT(r) s_keys[r]
#define VALUE_AT(r) ((r) ? s_out[r] : FOLD(begun, s_out[0]))
    PUT_ROWS(IN_W, IN_VEC, args.out, base, count, KEY_AT)
    PUT_ROWS(u64, 2, args.values, base, count, VALUE_AT)
}

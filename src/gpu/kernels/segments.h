/* segments.h: segmented reduction, balanced over elements and segments alike.
 *
 * Elements and ends of segments are one merged list, an end before the element it excludes; a tile
 * is SEGMENT_TILE items of it, a thread SEGMENT_ITEMS of those, both found by binary search. A
 * thread folds what it meets and writes a segment at its end, except the first one it ends: that
 * lacks what threads before it, and tiles before this, have of the segment. Both are found by scans
 * that stop at whoever has ended a segment. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS (T_BYTES == 8 ? 3 : 4)
#endif
#include "foldback.h"

#include "defs/kprim.h"

#define SEGMENT_WARPS (SEGMENT_THREADS / 32)

/* --- where tiles begin --- */

/* Ends among the first `item` items: an end goes first when it is at or below the element. */
FN i64 ends_before(const i64 *ends, i64 end_count, i64 base, i64 elements, i64 item) {
    i64 lo = item > elements ? item - elements : 0;
    i64 hi = item < end_count ? item : end_count;
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (ends[mid] - base <= item - 1 - mid) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* A thread per segment checks it. */
KERNEL(k_segment_check, struct ksegments, SEGMENT_THREADS) {
    i64 stride = (i64)t_blocks() * SEGMENT_THREADS;
    for (i64 s = (i64)t_block() * SEGMENT_THREADS + t_id(); s < args.segment_count; s += stride) {
        i64 from = args.offsets[s];
        i64 to = args.offsets[s + 1];
        if (from > to || from < 0 || to > args.count) {
            atom_or_u32(args.bad, 1u);
        }
    }
}

/* A thread per tile, and one more, finds where it begins. */
KERNEL(k_segment_split, struct ksegments, SEGMENT_THREADS) {
    if (!read_u32(args.bad)) {
        i64 base = args.offsets[0];
        i64 elements = args.offsets[args.segment_count] - base;
        i64 items = elements + args.segment_count;
        i64 tiles = (items + SEGMENT_TILE - 1) / SEGMENT_TILE;
        i64 stride = (i64)t_blocks() * SEGMENT_THREADS;
        for (i64 t = (i64)t_block() * SEGMENT_THREADS + t_id(); t <= tiles; t += stride) {
            i64 item = t * SEGMENT_TILE < items ? t * SEGMENT_TILE : items;
            args.splits[t] =
                ends_before(args.offsets + 1, args.segment_count, base, elements, item);
        }
    }
}

/* --- tiles --- */

struct open { /* the segment left open: its fold; `ended` = one ended before it */
    T value;
    u32 ended;
};
FN struct open open_join(struct open left, struct open right) {
    right.value = right.ended ? right.value : FOLD(left.value, right.value);
    right.ended |= left.ended;
    return right;
}

/* What threads before this one left open; *out_all: what the block does. s_value, s_ended: a word
 * per warp. One barrier; another before they are used again is the caller's. */
FN struct open b_open_scan(struct open mine, T *s_value, u32 *s_ended, struct open *out_all) {
    struct open upto = mine;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        struct open other;
        other.value = t_of(W_UP(t_bits(upto.value), by));
        other.ended = w_up_u32(upto.ended, by);
        if (t_lane() >= by) {
            upto = open_join(other, upto);
        }
    }
    if (t_lane() == 31u) {
        s_value[t_id() >> 5] = upto.value;
        s_ended[t_id() >> 5] = upto.ended;
    }
    struct open before;
    before.value = t_of(W_UP(t_bits(upto.value), 1));
    before.ended = w_up_u32(upto.ended, 1);
    if (t_lane() == 0) {
        before.value = FOLD_IDENTITY;
        before.ended = 0;
    }
    b_sync();
    struct open all;
    all.value = FOLD_IDENTITY;
    all.ended = 0;
    for (u32 w = 0; w < SEGMENT_WARPS; w++) {
        if (w == t_id() >> 5) {
            before = open_join(all, before);
        }
        struct open warp;
        warp.value = s_value[w];
        warp.ended = s_ended[w];
        all = open_join(all, warp);
    }
    *out_all = all;
    return before;
}

/* Ends among the first `item` items of the tile; s_ends relative to the tile's first element. */
FN u32 tile_ends_before(const u32 *s_ends, u32 end_count, u32 elements, u32 item) {
    u32 lo = item > elements ? item - elements : 0u;
    u32 hi = item < end_count ? item : end_count;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2u;
        if (s_ends[mid] + mid < item) {
            lo = mid + 1u;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Elements and ends of a tile to shared memory, all elements of a thread on their way at once. */
FN void tile_load(const struct ksegments *args, T *s_in, u32 *s_ends, i64 at, u32 elements,
                  i64 segment, u32 ends) {
    const T *in = (const T *)args->in + at;
    T loaded[SEGMENT_ITEMS];
    UNROLL for (u32 k = 0; k < SEGMENT_ITEMS; k++) {
        u32 i = k * SEGMENT_THREADS + t_id();
        if (i < elements) {
            loaded[k] = in[i];
        }
    }
    for (u32 i = t_id(); i < ends; i += SEGMENT_THREADS) {
        s_ends[i] = (u32)(args->offsets[segment + i + 1] - at);
    }
    UNROLL for (u32 k = 0; k < SEGMENT_ITEMS; k++) {
        u32 i = k * SEGMENT_THREADS + t_id();
        if (i < elements) {
            s_in[i] = loaded[k];
        }
    }
}

KERNEL(k_segments, struct ksegments, SEGMENT_THREADS) {
    SHARED(T, s_in, SEGMENT_TILE);
    SHARED(u32, s_ends, SEGMENT_TILE);
    SHARED(T, s_value, SEGMENT_WARPS);
    SHARED(u32, s_ended, SEGMENT_WARPS);
    SHARED(T, s_before, 1);
    SHARED(u32, s_ticket, 1);
    T *out = (T *)args.out;
    u32 bad = read_u32(args.bad);
    i64 base = args.offsets[0];
    i64 items = bad ? 0 : args.offsets[args.segment_count] - base + args.segment_count;
    i64 tiles = (items + SEGMENT_TILE - 1) / SEGMENT_TILE;
    i64 tile = b_ticket(args.ticket, s_ticket);
    while (tile < tiles) {
        i64 first = tile * SEGMENT_TILE;
        u32 here = items - first < SEGMENT_TILE ? (u32)(items - first) : (u32)SEGMENT_TILE;
        i64 segment = args.splits[tile];
        u32 ends = (u32)(args.splits[tile + 1] - segment);
        i64 at = first - segment + base;
        u32 elements = here - ends;
        tile_load(&args, s_in, s_ends, at, elements, segment, ends);
        b_sync();
        if (t_id() == 0) {
            *s_ticket = atom_add_u32(args.ticket, 1);
        }
        u32 item = t_id() * SEGMENT_ITEMS < here ? t_id() * SEGMENT_ITEMS : here;
        u32 stop = item + SEGMENT_ITEMS < here ? item + SEGMENT_ITEMS : here;
        u32 end = tile_ends_before(s_ends, ends, elements, item);
        u32 elem = item - end;
        struct open mine;
        mine.value = FOLD_IDENTITY;
        mine.ended = 0;
        T head = FOLD_IDENTITY;
        u32 head_end = end;
        for (; item < stop; item++) {
            if (end < ends && s_ends[end] <= elem) {
                if (mine.ended) {
                    out[segment + end] = mine.value;
                } else {
                    head = mine.value;
                }
                mine.value = FOLD_IDENTITY;
                mine.ended = 1;
                end++;
            } else {
                mine.value = FOLD(mine.value, s_in[elem]);
                elem++;
            }
        }
        struct open all;
        struct open before = b_open_scan(mine, s_value, s_ended, &all);
        if (t_id() < 32u) {
            T earlier = w_fold_back(args.state, tile, all.value, all.ended);
            if (t_id() == 0) {
                *s_before = earlier;
            }
        }
        b_sync();
        if (mine.ended) {
            T value = FOLD(before.value, head);
            out[segment + head_end] = before.ended ? value : FOLD(*s_before, value);
        }
        tile = *s_ticket;
        b_sync();
    }
}

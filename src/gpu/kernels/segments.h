/* segments.h: segmented reduction, balanced over elements and segments alike.
 *
 * Elements and ends of segments are one merged list, an end before the element it excludes; a tile
 * is so many items of it, found by binary search. Within a tile, a segment is known by its last
 * element: whoever reads its end sets a bit there and notes its number; empty segments get their
 * value at once. A thread then folds SEGMENT_VECS vectors of neighbours, straight through, and
 * writes a segment where it meets a bit, except its first one: that lacks what threads before it,
 * and tiles before this, have of the segment. Both are found by scans that stop at whoever has
 * ended a segment. Vectors begin where the array's do, so some slots of a tile belong to others.
 *
 * Walking both lists item by item, a search per thread, took three times as many instructions.
 *
 * The text before defines T and FOLD (fold.h); where elements are not T but something T is made
 * from, their width IN_BYTES, and IN_VALUE(args, v, j), the value of element j of a vector. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS (T_BYTES == 8 ? 5 : 6)
#endif
#include "foldback.h"

#include "defs/kprim.h"

#ifndef IN_BYTES
#define IN_BYTES T_BYTES
#define IN_VALUE(args, v, j) vec_elem(v, j)
#endif
#define SEGMENT_WARPS (SEGMENT_THREADS / 32)
#define IN_VEC (16 / IN_BYTES)
#define THREAD_SLOTS (SEGMENT_VECS * IN_VEC)
#define TILE_SLOTS (SEGMENT_THREADS * THREAD_SLOTS)
#define TILE_ITEMS (TILE_SLOTS - IN_VEC) /* room for what alignment adds */

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

/* Items of all tiles; 0 when the outer offsets are wrong. */
FN i64 item_count(const struct ksegments *args) {
    i64 from = args->offsets[0];
    i64 to = args->offsets[args->segment_count];
    return from < 0 || from > to || to > args->count ? 0 : to - from + args->segment_count;
}

/* A thread per tile, and one more, finds where it begins. */
KERNEL(k_segment_split, struct ksegments, SEGMENT_THREADS) {
    i64 items = item_count(&args);
    i64 base = args.offsets[0];
    i64 tiles = (items + TILE_ITEMS - 1) / TILE_ITEMS;
    i64 stride = (i64)t_blocks() * SEGMENT_THREADS;
    if (items == 0 && t_block() == 0 && t_id() == 0) { /* there are segments, so it must not be */
        atom_or_u32(args.bad, 1u);
    }
    for (i64 t = (i64)t_block() * SEGMENT_THREADS + t_id(); t <= tiles; t += stride) {
        i64 item = t * TILE_ITEMS < items ? t * TILE_ITEMS : items;
        args.splits[t] = ends_before(args.offsets + 1, args.segment_count, base,
                                     items - args.segment_count, item);
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

/* A tile: elements [at, at + elements) and ends [segment, segment + ends); `start` is the element
 * of slot 0. */
struct part {
    i64 at, start, segment;
    u32 elements, ends;
};

/* Wrong offsets may give anything: then the tile is empty. */
FN struct part tile_part(const struct ksegments *args, i64 items, i64 tile) {
    struct part p;
    i64 first = tile * TILE_ITEMS;
    i64 here = items - first < TILE_ITEMS ? items - first : TILE_ITEMS;
    p.segment = args->splits[tile];
    i64 ends = args->splits[tile + 1] - p.segment;
    p.at = first - p.segment + args->offsets[0];
    i64 elements = here - ends;
    if (ends < 0 || elements < 0 || p.at < 0 || p.at + elements > args->count) {
        atom_or_u32(args->bad, 1u);
        p.at = 0;
        ends = 0;
        elements = 0;
    }
    p.start = p.at & ~(i64)(IN_VEC - 1);
    p.elements = (u32)elements;
    p.ends = (u32)ends;
    return p;
}

/* The vector of elements i and following, of which those below n exist. */
FN vec16 in_vec(const u8 *in, i64 i, i64 n) {
    if (i + IN_VEC <= n) {
        return load_once16(in + i * IN_BYTES);
    }
    vec16 v;
    UNROLL for (u32 k = 0; k < 4; k++) {
        v.w[k] = i + (i64)(k * 4 / IN_BYTES) < n ? ((const u32 *)(in + i * IN_BYTES))[k] : 0u;
    }
    return v;
}

FN void b_stage(const struct ksegments *args, const struct part *p, u8 *s_in) {
    vec16 v[SEGMENT_VECS];
    i64 end = p->at + p->elements;
    UNROLL for (u32 k = 0; k < SEGMENT_VECS; k++) {
        i64 i = p->start + (i64)((k * SEGMENT_THREADS + t_id()) * IN_VEC);
        if (i < end) {
            v[k] = in_vec((const u8 *)args->in, i, end);
        }
    }
    UNROLL for (u32 k = 0; k < SEGMENT_VECS; k++) {
        u32 slot = k * SEGMENT_THREADS + t_id();
        if (p->start + (i64)(slot * IN_VEC) < end) {
            store16(s_in + vec_place(slot), v[k]);
        }
    }
}

/* Whether the tile's offsets ascend; says so if not. */
FN u32 ends_ascend(const struct ksegments *args, const struct part *p) {
    u32 fine = 1;
    for (u32 i = t_id(); i < p->ends; i += SEGMENT_THREADS) {
        i64 from = args->offsets[p->segment + i];
        i64 to = args->offsets[p->segment + i + 1];
        fine &= (u32)(from <= to && from >= 0 && to <= args->count);
        fine &= (u32)(to >= p->at && to <= p->at + p->elements);
    }
    if (!fine) {
        atom_or_u32(args->bad, 1u);
    }
    return fine;
}

/* Where segments end: a bit of s_tails and a number in s_which for their last element; *s_first = 1
 * + the number of one that ended with the tile before. */
FN void mark_tails(const struct ksegments *args, const struct part *p, u32 *s_tails, u16 *s_which,
                   u32 *s_first) {
    for (u32 i = t_id(); i < p->ends; i += SEGMENT_THREADS) {
        i64 from = args->offsets[p->segment + i];
        i64 to = args->offsets[p->segment + i + 1];
        if (from == to) {
            ((T *)args->out)[p->segment + i] = FOLD_IDENTITY;
        } else if (to == p->at) {
            *s_first = i + 1u;
        } else {
            u32 slot = (u32)(to - 1 - p->start);
            s_which[slot] = (u16)i;
            atom_or_u32(&s_tails[slot / THREAD_SLOTS], 1u << slot % THREAD_SLOTS);
        }
    }
}

/* The slots of this thread that are the tile's own, as bits. */
FN u32 own_slots(const struct part *p) {
    u32 first = t_id() * THREAD_SLOTS;
    u32 from = (u32)(p->at - p->start);
    u32 to = from + p->elements;
    u32 lo = from > first ? from - first : 0u;
    u32 hi = to > first ? to - first : 0u;
    u32 below = hi < THREAD_SLOTS ? (1u << hi) - 1u : (1u << THREAD_SLOTS) - 1u;
    return lo < THREAD_SLOTS ? below & ~((1u << lo) - 1u) : 0u;
}

struct folded { /* by one thread */
    struct open open;
    T head; /* the first segment it ended, as far as it has it */
    u32 head_which;
};

FN struct folded fold_slots(const struct ksegments *args, const struct part *p, const u8 *s_in,
                            u32 tails, const u16 *s_which) {
    T *out = (T *)args->out + p->segment;
    struct folded f;
    u32 own = own_slots(p);
    f.open.value = FOLD_IDENTITY;
    f.open.ended = 0;
    f.head = FOLD_IDENTITY;
    f.head_which = 0;
    UNROLL for (u32 k = 0; k < SEGMENT_VECS; k++) {
        vec16 v;
        if (own >> (k * IN_VEC) & ((1u << IN_VEC) - 1u)) {
            v = load16(s_in + vec_place(t_id() * SEGMENT_VECS + k));
        } else {
            v.w[0] = v.w[1] = v.w[2] = v.w[3] = 0;
        }
        UNROLL for (u32 j = 0; j < IN_VEC; j++) {
            u32 slot = k * IN_VEC + j;
            T x = IN_VALUE(args, v, j);
            x = own >> slot & 1u ? x : (T)FOLD_IDENTITY;
            f.open.value = FOLD(f.open.value, x);
            if (tails >> slot & 1u) {
                u32 which = s_which[t_id() * THREAD_SLOTS + slot];
                if (f.open.ended) {
                    out[which] = f.open.value;
                } else {
                    f.head = f.open.value;
                    f.head_which = which;
                }
                f.open.value = FOLD_IDENTITY;
                f.open.ended = 1;
            }
        }
    }
    return f;
}

KERNEL(k_segments, struct ksegments, SEGMENT_THREADS) {
    SHARED_BYTES(s_in); /* vectors */
    SHARED(u16, s_which, TILE_SLOTS);
    SHARED(u32, s_tails, SEGMENT_THREADS);
    SHARED(T, s_value, SEGMENT_WARPS);
    SHARED(u32, s_ended, SEGMENT_WARPS);
    SHARED(T, s_before, 1);
    SHARED(u32, s_first, 1);
    SHARED(u32, s_ticket, 1);
    i64 items = item_count(&args); /* not asking `bad`, which others may set meanwhile */
    i64 tiles = (items + TILE_ITEMS - 1) / TILE_ITEMS;
    if (t_id() == 0) {
        *s_first = 0;
    }
    i64 tile = b_ticket(args.ticket, s_ticket);
    while (tile < tiles) {
        struct part p = tile_part(&args, items, tile);
        b_stage(&args, &p, s_in);
        s_tails[t_id()] = 0;
        if (b_any(!ends_ascend(&args, &p))) {
            p.ends = 0;
        }
        if (t_id() == 0) {
            *s_ticket = atom_add_u32(args.ticket, 1);
        }
        mark_tails(&args, &p, s_tails, s_which, s_first);
        b_sync();
        u32 cut = *s_first; /* what came before is none of this tile's */
        struct folded mine = fold_slots(&args, &p, s_in, s_tails[t_id()], s_which);
        struct open all;
        struct open before = b_open_scan(mine.open, s_value, s_ended, &all);
        if (t_id() < 32u) {
            T earlier = w_fold_back(args.state, tile, all.value, all.ended | (cut != 0));
            if (t_id() == 0) {
                *s_before = earlier;
                *s_first = 0;
            }
        }
        b_sync();
        T *out = (T *)args.out + p.segment;
        if (mine.open.ended) {
            T value = FOLD(before.value, mine.head);
            out[mine.head_which] = before.ended || cut ? value : FOLD(*s_before, value);
        }
        if (cut && t_id() == 0) {
            out[cut - 1u] = *s_before;
        }
        tile = *s_ticket;
    }
}

/* quick.h: one level of quick sort: parts are split by splitters of their own, until they fit a
 * tile, which the bitonic network sorts.
 *
 * A level is five launches over a list of parts:
 *   k_quick_draw    sorts a sample of every part and takes its splitters
 *   k_quick_count   counts the buckets of every part
 *   k_quick_list    says where they begin, and which are split by the next level and which are done
 *   k_quick_move    brings elements to their buckets, in no order
 *   k_quick_done    sorts what fits a tile
 *
 * An element equal to a splitter has a bucket of its own, odd ones, which needs no sort: so many
 * equal keys cost one level, and every other bucket is smaller than its part. The text defines
 * PAYLOAD, and QUICK_FAN, the most buckets between splitters. */
#include "bitonic.h"

#define QUICK_BUCKETS (2 * QUICK_FAN - 1)
#define QUICK_ITEMS (QUICK_TILE / BITONIC_THREADS)
#define LIST_ITEMS ((QUICK_BUCKETS + BITONIC_THREADS - 1) / BITONIC_THREADS)

/* The part that a tile belongs to. */
FN u32 quick_part_of(const struct kquick *a, u64 tile) {
    u32 lo = 0;
    u32 hi = a->part_count;
    while (hi - lo > 1u) {
        u32 mid = (lo + hi) / 2u;
        if (a->parts[mid].tile <= tile) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

KERNEL(k_quick_draw, struct kquick, BITONIC_THREADS) {
    SHARED(K, s_keys, BITONIC_TILE);
    SHARED(u32, s_from, BITONIC_FROM);
    for (u32 p = t_block(); p < args.part_count; p += t_blocks()) {
        struct kquick_part part = args.parts[p];
        const K *keys = (const K *)args.in + part.first;
        u32 stride = BITONIC_TILE / part.fan < 16u ? BITONIC_TILE / part.fan : 16u;
        u32 draws = stride * part.fan;
        for (u32 k = t_id(); k < draws; k += BITONIC_THREADS) {
            s_keys[k] = keys[hash_64(part.first + k * 0x9e3779b9ULL) % part.count];
#if PAYLOAD
            s_from[k] = k;
#endif
        }
        b_sync();
        b_sort_tile(s_keys, s_from, draws, &args.order);
        for (u32 k = t_id(); k + 1u < part.fan; k += BITONIC_THREADS) {
            ((K *)args.splitters)[part.bucket + k] = s_keys[(k + 1u) * stride];
        }
        b_sync();
    }
}

/* The bucket of a key: twice the splitters that are less, and one where the next is equal. */
FN u32 quick_bucket(K key, const K *s_split, u32 count, const struct korder *o) {
    u32 lo = 0;
    u32 hi = count;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2u;
        if (key_less(s_split[mid], key, o)) {
            lo = mid + 1u;
        } else {
            hi = mid;
        }
    }
    return 2u * lo + (lo < count && key_same(s_split[lo], key, o));
}

/* Splitters of a part into shared memory, counts cleared. Ends with a barrier. */
FN void b_open_part(const struct kquick *a, const struct kquick_part *part, K *s_split,
                    u32 *s_count) {
    for (u32 k = t_id(); k + 1u < part->fan; k += BITONIC_THREADS) {
        s_split[k] = ((const K *)a->splitters)[part->bucket + k];
    }
    for (u32 k = t_id(); k < QUICK_BUCKETS; k += BITONIC_THREADS) {
        s_count[k] = 0;
    }
    b_sync();
}

struct quick_tile { /* elements of one part */
    u64 first;
    u32 rows;
};
FN struct quick_tile quick_tile_of(const struct kquick_part *part, u64 tile) {
    struct quick_tile t;
    u64 skip = (tile - part->tile) * QUICK_TILE;
    t.first = part->first + skip;
    t.rows = part->count - skip < QUICK_TILE ? (u32)(part->count - skip) : (u32)QUICK_TILE;
    return t;
}

KERNEL(k_quick_count, struct kquick, BITONIC_THREADS) {
    SHARED(K, s_split, QUICK_FAN);
    SHARED(u32, s_count, QUICK_BUCKETS);
    for (u64 tile = t_block(); tile < args.tile_count; tile += t_blocks()) {
        struct kquick_part part = args.parts[quick_part_of(&args, tile)];
        struct quick_tile t = quick_tile_of(&part, tile);
        const K *keys = (const K *)args.in + t.first;
        b_open_part(&args, &part, s_split, s_count);
        UNROLL for (u32 k = 0; k < QUICK_ITEMS; k++) {
            u32 i = k * BITONIC_THREADS + t_id();
            if (i < t.rows) {
                atom_add_u32(&s_count[quick_bucket(keys[i], s_split, part.fan - 1u, &args.order)],
                             1);
            }
        }
        b_sync();
        for (u32 k = t_id(); k < 2u * part.fan - 1u; k += BITONIC_THREADS) {
            u32 count = s_count[k];
            if (count) {
                atom_add_u64(&args.cursors[2u * part.bucket + k], count);
            }
        }
        b_sync();
    }
}

/* By one thread: a bucket of more than a tile goes to the next level, others are done. Those of
 * equal keys are done in pieces of a tile. */
FN void quick_list(const struct kquick *a, u64 first, u64 count, u32 is_equal) {
    if (count > BITONIC_TILE && !is_equal) {
        u32 fan = quick_fan(count, QUICK_PART_ROWS, QUICK_FAN);
        u64 tiles = (count + QUICK_TILE - 1u) / QUICK_TILE;
        u64 old = atom_add_u64(&a->counters[QUICK_NEXT], tiles << 24 | 1u);
        struct kquick_part *part = &a->next[old & 0xffffffu];
        part->first = first;
        part->count = count;
        part->tile = old >> 24;
        part->bucket = (u32)atom_add_u64(&a->counters[QUICK_BUCKET], fan);
        part->fan = fan;
        return;
    }
    u64 pieces = (count + BITONIC_TILE - 1u) / BITONIC_TILE;
    u64 at = pieces ? atom_add_u64(&a->counters[QUICK_DONE], pieces) : 0u;
    for (u64 k = 0; k < pieces; k++) {
        u64 left = count - k * BITONIC_TILE;
        a->done[at + k].first = first + k * BITONIC_TILE;
        a->done[at + k].count = left < BITONIC_TILE ? (u32)left : BITONIC_TILE;
        a->done[at + k].is_equal = is_equal;
    }
}

/* The first list: of parts that somebody else made, those that are large. */
KERNEL(k_quick_open, struct kquick, BITONIC_THREADS) {
    for (i64 p = (i64)t_block() * BITONIC_THREADS + t_id(); p < args.start_count;
         p += (i64)t_blocks() * BITONIC_THREADS) {
        u64 count = args.starts[p + 1] - args.starts[p];
        if (count > args.least) {
            quick_list(&args, args.starts[p], count, 0);
        }
    }
}

/* Counts of a part's buckets become their places. */
KERNEL(k_quick_list, struct kquick, BITONIC_THREADS) {
    SHARED(u64, s_sums, BITONIC_THREADS / 32);
    for (u32 p = t_block(); p < args.part_count; p += t_blocks()) {
        struct kquick_part part = args.parts[p];
        u64 *cursors = args.cursors + 2u * part.bucket;
        u32 buckets = 2u * part.fan - 1u;
        u64 counts[LIST_ITEMS];
        u64 mine = 0;
        u64 all;
        UNROLL for (u32 k = 0; k < LIST_ITEMS; k++) {
            u32 b = t_id() * LIST_ITEMS + k;
            counts[k] = b < buckets ? cursors[b] : 0u;
            mine += counts[k];
        }
        u64 at = part.first + b_sum_before_u64(mine, BITONIC_THREADS, s_sums, &all);
        UNROLL for (u32 k = 0; k < LIST_ITEMS; k++) {
            u32 b = t_id() * LIST_ITEMS + k;
            if (b < buckets) {
                cursors[b] = at;
                quick_list(&args, at, counts[k], b & 1u);
            }
            at += counts[k];
        }
        b_sync();
    }
}

KERNEL(k_quick_move, struct kquick, BITONIC_THREADS) {
    SHARED(K, s_split, QUICK_FAN);
    SHARED(u32, s_count, QUICK_BUCKETS);
    SHARED(u64, s_base, QUICK_BUCKETS);
    for (u64 tile = t_block(); tile < args.tile_count; tile += t_blocks()) {
        struct kquick_part part = args.parts[quick_part_of(&args, tile)];
        struct quick_tile t = quick_tile_of(&part, tile);
        const K *keys = (const K *)args.in + t.first;
        K key[QUICK_ITEMS];
        u32 place[QUICK_ITEMS]; /* bucket, and rank in it << 12 */
        b_open_part(&args, &part, s_split, s_count);
        UNROLL for (u32 k = 0; k < QUICK_ITEMS; k++) {
            u32 i = k * BITONIC_THREADS + t_id();
            place[k] = 0;
            key[k] = keys[i < t.rows ? i : 0u];
            if (i < t.rows) {
                u32 bucket = quick_bucket(key[k], s_split, part.fan - 1u, &args.order);
                place[k] = atom_add_u32(&s_count[bucket], 1) << 12 | bucket;
            }
        }
        b_sync();
        for (u32 k = t_id(); k < 2u * part.fan - 1u; k += BITONIC_THREADS) {
            u32 count = s_count[k];
            s_base[k] = count ? atom_add_u64(&args.cursors[2u * part.bucket + k], count) : 0u;
        }
        b_sync();
        UNROLL for (u32 k = 0; k < QUICK_ITEMS; k++) {
            u32 i = k * BITONIC_THREADS + t_id();
            if (i < t.rows) {
                u64 to = s_base[place[k] & 0xfffu] + (place[k] >> 12);
                ((K *)args.to)[to] = key[k];
#if PAYLOAD
                ((P *)args.to_payload)[to] = ((const P *)args.payload)[t.first + i];
#endif
            }
        }
        b_sync();
    }
}

KERNEL(k_quick_done, struct kquick, BITONIC_THREADS) {
    SHARED(K, s_keys, BITONIC_TILE);
    SHARED(u32, s_from, BITONIC_FROM);
    u64 count = args.counters[QUICK_DONE];
    for (u64 d = t_block(); d < count; d += t_blocks()) {
        struct kquick_done done = args.done[d];
        if (done.is_equal && args.to == args.out) {
            continue;
        }
        b_load_tile(s_keys, s_from, (const K *)args.to + done.first, done.count);
        if (!done.is_equal) {
            b_sort_tile(s_keys, s_from, done.count, &args.order);
        }
#if PAYLOAD
        b_move_payload((P *)args.out_payload + done.first, (const P *)args.to_payload + done.first,
                       s_from, done.count);
#endif
        b_store_tile((K *)args.out + done.first, s_keys, done.count);
    }
}

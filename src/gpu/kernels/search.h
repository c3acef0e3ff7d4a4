/* search.h: how many elements of an ascending array are less than each needle, or not greater.
 *
 * Ascending needles are merged with the array: a tile is so many elements of both together, each
 * thread walks its part, and every needle it passes gets the number of elements passed before it.
 * Needles that are 0, 1, 2, … need not be stored: that is the load-balancing search. Needles in any
 * order search each on their own. The text defines PATH_ITEMS, UPPER (0, 1), COUNTING (0, 1) and
 * OUT_BYTES. */
#include "path.h"

typedef WORD_OF(OUT_BYTES) OUT;

/* Does the needle come before element x? */
FN u32 needle_first(K needle, K x, const struct korder *o) {
    return UPPER ? key_less(needle, x, o) : !key_less(x, needle, o);
}
FN K needle_at(const struct ksearch *s, i64 i) {
    return COUNTING ? (K)i : ((const K *)s->needles)[i];
}

KERNEL(k_search_cuts, struct ksearch, PATH_THREADS) {
    i64 total = args.needle_count + args.among_count;
    i64 tile = (i64)t_block() * t_count() + t_id();
    i64 diagonal = tile * PATH_TILE < total ? tile * PATH_TILE : total;
    if (tile * PATH_TILE < total + PATH_TILE) {
        const K *among = (const K *)args.among;
        i64 low = diagonal > args.among_count ? diagonal - args.among_count : 0;
        i64 high = diagonal < args.needle_count ? diagonal : args.needle_count;
        while (low < high) {
            i64 mid = (low + high) >> 1;
            if (needle_first(needle_at(&args, mid), among[diagonal - 1 - mid], &args.order)) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        args.cuts[tile] = low;
    }
}

/* Needles lie in s_keys[0, needles), elements behind them. */
FN u32 search_near(const K *s_keys, u32 needles, u32 rows, u32 diagonal, const struct korder *o) {
    u32 among = rows - needles;
    u32 low = diagonal > among ? diagonal - among : 0u;
    u32 high = diagonal < needles ? diagonal : needles;
    while (low < high) {
        u32 mid = (low + high) >> 1;
        if (needle_first(s_keys[mid], s_keys[needles + diagonal - 1u - mid], o)) {
            low = mid + 1u;
        } else {
            high = mid;
        }
    }
    return low;
}

KERNEL(k_search, struct ksearch, PATH_THREADS) {
    SHARED(K, s_keys, PATH_TILE);
    SHARED(u32, s_found, PATH_TILE);
    i64 total = args.needle_count + args.among_count;
    i64 diagonal = (i64)t_block() * PATH_TILE;
    u32 rows = total - diagonal < PATH_TILE ? (u32)(total - diagonal) : PATH_TILE;
    i64 i = args.cuts[t_block()];
    i64 j = diagonal - i;
    u32 needles = (u32)(args.cuts[t_block() + 1] - i);
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        s_keys[k] =
            k < needles ? needle_at(&args, i + k) : ((const K *)args.among)[j + (k - needles)];
    }
    b_sync();
    u32 mine = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
    u32 at = search_near(s_keys, needles, rows, mine, &args.order);
    u32 passed = mine - at;
    K x = 0; /* the needle, and the element, that come next */
    K y = 0;
    if (at < needles) {
        x = s_keys[at];
    }
    if (needles + passed < rows) {
        y = s_keys[needles + passed];
    }
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        if (mine + k < rows) {
            u32 done = needles + passed >= rows;
            if (at < needles && (done || needle_first(x, y, &args.order))) {
                s_found[at] = passed;
                at++;
                if (at < needles) {
                    x = s_keys[at];
                }
            } else {
                passed++;
                if (needles + passed < rows) {
                    y = s_keys[needles + passed];
                }
            }
        }
    }
    b_sync();
    for (u32 k = t_id(); k < needles; k += PATH_THREADS) {
        ((OUT *)args.out)[i + k] = (OUT)(j + (i64)s_found[k] + args.add);
    }
}

KERNEL(k_search_any, struct ksearch, PATH_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.needle_count;
         i += (i64)t_blocks() * t_count()) {
        i64 found = bound_far((const K *)args.among, 0, args.among_count, needle_at(&args, i), UPPER,
                              &args.order);
        ((OUT *)args.out)[i] = (OUT)(found + args.add);
    }
}

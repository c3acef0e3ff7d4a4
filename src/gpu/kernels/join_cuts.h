/* join_cuts.h: part of reljoin.h: the merge of both inputs cut into tiles of equal length. */
#ifndef WF_JOIN_CUTS_H
#define WF_JOIN_CUTS_H

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

#endif

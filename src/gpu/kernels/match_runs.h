/* match_runs.h: runs found by searching sorted keys, and the result written from runs.
 *
 * The run of a probing word w is the sorted words in [w, w + width]. SMJ: probing rows ascend too,
 * so a tile of them meets one range of the others, found at its ends and mostly small enough for
 * shared memory. Radix join: the range is the part. INLJ: a tree whose nodes are 32 keys, a level
 * holding the last key of every node below; its upper levels lie in shared memory.
 *
 * k_expand writes a window of the result a tile of rows at a time: which probing rows a tile begins
 * and ends with was found before, every row finds its own by halving. */
#include "match.h"

FN K word_end(const struct kmatch *a, K word) {
    K end = word + (K)a->width;
    return end < word || a->width > K_MAX ? K_MAX : end;
}

/* How many of n ascending keys are below the word, with `upper` not above it. */
FN i64 search_halving(const struct kmatch *a, const K *keys, i64 n, K word, u32 upper) {
    i64 low = 0;
    i64 high = n;
    while (low < high) {
        i64 mid = (low + high) >> 1;
        K at = keys[mid] ^ (K)a->flip;
        if (upper ? at <= word : at < word) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}
/* The same, by halving or one by one, as the join was told. */
FN i64 search(const struct kmatch *a, const K *keys, i64 n, K word, u32 upper) {
    i64 low = 0;
    if (a->sequential) {
        while (low < n &&
               (upper ? (keys[low] ^ (K)a->flip) <= word : (keys[low] ^ (K)a->flip) < word)) {
            low++;
        }
        return low;
    }
    return search_halving(a, keys, n, word, upper);
}

FN void run_put(const struct kmatch *a, i64 row, i64 first, i64 end) {
    a->start[row] = end > first ? (u32)first : MATCH_NONE;
    a->offset[row] = kind_rows(a->kind, end > first ? (u64)(end - first) : 0u);
}

/* The runs of probing rows [row, row_end) among the keys at [first, end), through shared memory
 * where they fit. Barriers. */
FN void b_runs(const struct kmatch *a, i64 row, i64 row_end, i64 first, i64 end, K *s_keys) {
    const K *keys = (const K *)a->sorted + first;
    const K *probe = (const K *)a->probe;
    i64 n = end - first;
    i32 fits = n <= PART_SORT_MAX;
    b_sync();
    if (fits) {
        for (i64 i = t_id(); i < n; i += t_count()) {
            s_keys[i] = keys[i];
        }
    }
    b_sync();
    for (i64 i = row + t_id(); i < row_end; i += t_count()) {
        K word = probe[i] ^ (K)a->flip;
        i64 low = fits ? search(a, s_keys, n, word, 0) : search_halving(a, keys, n, word, 0);
        i64 rest = n - low;
        K last = word_end(a, word);
        i64 high = low + (fits ? search(a, s_keys + low, rest, last, 1)
                               : search_halving(a, keys + low, rest, last, 1));
        run_put(a, i, first + low, first + high);
    }
}

KERNEL(k_part_runs, struct kmatch, SEARCH_THREADS) {
    SHARED_BYTES(room);
    i64 units = (i64)args.report[MATCH_UNITS];
    for (i64 n = t_block(); n < units; n += t_blocks()) {
        struct kmatch_unit at = args.units[n];
        i64 row = (i64)args.parts[0][at.part] + (i64)at.chunk * UNIT_ROWS;
        i64 part_end = (i64)args.parts[0][at.part + 1];
        i64 row_end = row + UNIT_ROWS < part_end ? row + UNIT_ROWS : part_end;
        b_runs(&args, row, row_end, (i64)args.parts[1][at.part], (i64)args.parts[1][at.part + 1],
               (K *)room);
    }
}

/* Where tiles of the ascending probing rows begin and end among the built ones: tile_rows has two
 * places a tile. */
KERNEL(k_merge_tiles, struct kmatch, SEARCH_THREADS) {
    const K *probe = (const K *)args.probe;
    const K *keys = (const K *)args.sorted;
    i64 tiles = (args.probe_count + SEARCH_TILE - 1) / SEARCH_TILE;
    GRID_ROWS(i, 2 * tiles) {
        i64 row = (i >> 1) * SEARCH_TILE;
        i64 row_end = row + SEARCH_TILE < args.probe_count ? row + SEARCH_TILE : args.probe_count;
        u32 upper = (u32)(i & 1);
        K word = probe[upper ? row_end - 1 : row] ^ (K)args.flip;
        args.tile_rows[i] = (u32)search_halving(&args, keys, args.built_count,
                                                upper ? word_end(&args, word) : word, upper);
    }
}

KERNEL(k_merge_runs, struct kmatch, SEARCH_THREADS) {
    SHARED_BYTES(room);
    for (i64 row = (i64)t_block() * SEARCH_TILE; row < args.probe_count;
         row += (i64)t_blocks() * SEARCH_TILE) {
        i64 row_end = row + SEARCH_TILE < args.probe_count ? row + SEARCH_TILE : args.probe_count;
        i64 tile = row / SEARCH_TILE;
        b_runs(&args, row, row_end, args.tile_rows[2 * tile], args.tile_rows[2 * tile + 1],
               (K *)room);
    }
}

/* --- the tree --------------------------------------------------------------------------------- */

KERNEL(k_tree_level, struct kmatch_level, SEARCH_THREADS) {
    GRID_ROWS(i, args.out_count) {
        i64 last = (i + 1) * 32 < args.in_count ? (i + 1) * 32 : args.in_count;
        ((K *)args.out)[i] = ((const K *)args.in)[last - 1];
    }
}

/* The first place whose word is not below (with `upper`: is above) the word. */
FN i64 tree_find(const struct kmatch *a, const K *s_top, const u32 *s_level_at, u32 shared_from,
                 K word, u32 upper) {
    i64 node = 0;
    NO_UNROLL for (u32 down = a->levels; down > 0; down--) {
        u32 l = down - 1;
        i64 left = a->level_count[l] - node * 32;
        i64 n = left < 32 ? left : 32;
        if (n <= 0) {
            return a->level_count[0];
        }
        const K *keys = l >= shared_from ? s_top + s_level_at[l] : (const K *)a->level[l];
        node = node * 32 + search(a, keys + node * 32, n, word, upper);
    }
    return node < a->level_count[0] ? node : a->level_count[0];
}

KERNEL(k_tree_runs, struct kmatch, SEARCH_THREADS) {
    SHARED(K, s_top, TREE_SHARED);
    SHARED(u32, s_level_at, 8);
    u32 shared_from = args.levels;
    u32 used = 0;
    while (shared_from > 0 && used + args.level_count[shared_from - 1] <= TREE_SHARED) {
        shared_from--;
        if (t_id() == 0) {
            s_level_at[shared_from] = used;
        }
        const K *keys = (const K *)args.level[shared_from];
        for (i64 i = t_id(); i < args.level_count[shared_from]; i += t_count()) {
            s_top[used + i] = keys[i];
        }
        used += (u32)args.level_count[shared_from];
    }
    b_sync();
    const K *probe = (const K *)args.probe;
    GRID_ROWS(i, args.probe_count) {
        K word = probe[i] ^ (K)args.flip;
        i64 first = tree_find(&args, s_top, s_level_at, shared_from, word, 0);
        i64 end = first;
        /* mostly the next key is another one already */
        const K *keys = (const K *)args.level[0];
        K last = word_end(&args, word);
        if (first < args.level_count[0] && (keys[first] ^ (K)args.flip) <= last) {
            end = first + 1;
            if (end < args.level_count[0] && (keys[end] ^ (K)args.flip) <= last) {
                end = tree_find(&args, s_top, s_level_at, shared_from, last, 1);
            }
        }
        run_put(&args, i, first, end);
    }
}

/* --- the result ------------------------------------------------------------------------------- */

/* The probing row of a row of the result: the last that begins at or before it. */
FN i64 row_of(const u64 *offset, i64 low, i64 high, u64 at) {
    while (low < high) {
        i64 mid = (low + high + 1) >> 1;
        if (offset[mid] <= at) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    return low;
}

KERNEL(k_expand_tiles, struct kmatch, SEARCH_THREADS) {
    i64 tiles = (args.rows + MATCH_TILE - 1) / MATCH_TILE;
    GRID_ROWS(i, tiles + 1) {
        i64 at = i < tiles ? i * MATCH_TILE : args.rows - 1;
        args.tile_rows[i] =
            (u32)row_of(args.offset, 0, args.probe_count - 1, (u64)(args.first + at));
    }
}

KERNEL(k_expand, struct kmatch, MATCH_THREADS) {
    SHARED(u64, s_offset, MATCH_TILE + 1);
    i64 tiles = (args.rows + MATCH_TILE - 1) / MATCH_TILE;
    for (i64 tile = t_block(); tile < tiles; tile += t_blocks()) {
        i64 low = args.tile_rows[tile];
        i64 span = (i64)args.tile_rows[tile + 1] - low;
        i32 fits = span <= MATCH_TILE;
        b_sync();
        if (fits) {
            for (i64 i = t_id(); i <= span; i += MATCH_THREADS) {
                s_offset[i] = args.offset[low + i];
            }
        }
        b_sync();
        for (u32 j = t_id(); j < MATCH_TILE; j += EMIT * MATCH_THREADS) {
            u32 p[EMIT];
            u32 b[EMIT];
            u64 v[EMIT];
            u32 to[EMIT];
            u32 here = 0;
            UNROLL for (u32 k = 0; k < EMIT; k++) {
                i64 at = tile * MATCH_TILE + (i64)(j + k * MATCH_THREADS);
                u32 in = at < args.rows;
                u64 place = (u64)(args.first + at);
                i64 row = !in    ? 0
                          : fits ? row_of(s_offset, 0, span, place)
                                 : row_of(args.offset, low, low + span, place);
                u64 begin = !in ? 0u : fits ? s_offset[row] : args.offset[row];
                row += fits ? low : 0;
                u32 start = in && args.kind < KIND_SEMI ? args.start[row] : MATCH_NONE;
                p[k] = (u32)row;
                b[k] = start == MATCH_NONE ? start : start + (u32)(place - begin);
                v[k] = 0;
                to[k] = j + k * MATCH_THREADS;
                here |= in << k;
            }
            emit(&args.out, tile * MATCH_TILE, to, here, p, b, v);
        }
    }
}

/* match_loop.h: joins that compare every pair: nested loops in blocks, over everything or over the
 * parts of a split.
 *
 * A thread keeps LOOP_ITEMS probing rows in registers; chunks of the built side go by in shared
 * memory, read four at a time by all threads alike. The count is taken first; k_loop_write goes
 * through the same pairs again and writes those that fall into the window. */
#include "match.h"

#if KEY_BYTES == 8
#define LOOP_VEC 2u
FN K vec_key(vec16 v, u32 j) {
    return (u64)v.w[2 * j + 1] << 32 | v.w[2 * j];
}
#else
#define LOOP_VEC 4u
FN K vec_key(vec16 v, u32 j) {
    return v.w[j];
}
#endif
#define LOOP_ROWS (LOOP_THREADS * LOOP_ITEMS)

struct loop {
    i64 row, row_end, first, end;
};

/* The n-th unit's rows and the keys they meet; a part's probing rows from `row` on. */
FN struct loop loop_at(const struct kmatch *a, i64 n) {
    struct loop l;
    if (a->units) {
        struct kmatch_unit at = a->units[n];
        i64 part_end = (i64)a->parts[0][at.part + 1];
        l.row = (i64)a->parts[0][at.part] + (i64)at.chunk * UNIT_ROWS;
        l.row_end = l.row + UNIT_ROWS < part_end ? l.row + UNIT_ROWS : part_end;
        l.first = (i64)a->parts[1][at.part];
        l.end = (i64)a->parts[1][at.part + 1];
    } else {
        l.row = n * LOOP_ROWS;
        l.row_end = l.row + LOOP_ROWS < a->probe_count ? l.row + LOOP_ROWS : a->probe_count;
        l.first = 0;
        l.end = a->built_count;
    }
    return l;
}

/* A chunk's words into shared memory; barriers before and after. Returns how many. */
FN u32 b_loop_chunk(const struct kmatch *a, i64 first, i64 end, K *s_words) {
    const K *keys = (const K *)a->built;
    u32 n = end - first < LOOP_CHUNK ? (u32)(end - first) : LOOP_CHUNK;
    b_sync();
    for (u32 i = t_id(); i < n; i += LOOP_THREADS) {
        s_words[i] = keys[first + i] ^ (K)a->flip;
    }
    b_sync();
    return n;
}

FN void loop_words(const struct kmatch *a, i64 row, i64 row_end, K *word, K *width) {
    const K *keys = (const K *)a->probe;
    K most = a->width > K_MAX ? K_MAX : (K)a->width;
    UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
        i64 i = row + (i64)(k * LOOP_THREADS + t_id());
        word[k] = i < row_end ? keys[i] ^ (K)a->flip : 0u;
        width[k] = most < K_MAX - word[k] ? most : K_MAX - word[k];
    }
}

/* The distance from the word, unsigned, is at most the width, which ends where keys do. */
#define LOOP_MEETS(other, word, width) ((K)((other) - (word)) <= (width))

KERNEL(k_loop_count, struct kmatch, LOOP_THREADS) {
    SHARED_BYTES(room);
    K *s_words = (K *)room;
    i64 units =
        args.units ? (i64)args.report[MATCH_UNITS] : (args.probe_count + LOOP_ROWS - 1) / LOOP_ROWS;
    for (i64 n = t_block(); n < units; n += t_blocks()) {
        struct loop l = loop_at(&args, n);
        for (i64 row = l.row; row < l.row_end; row += LOOP_ROWS) {
            K word[LOOP_ITEMS];
            K width[LOOP_ITEMS];
            u32 count[LOOP_ITEMS];
            loop_words(&args, row, l.row_end, word, width);
            UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                count[k] = 0;
            }
            for (i64 first = l.first; first < l.end; first += LOOP_CHUNK) {
                u32 m = b_loop_chunk(&args, first, l.end, s_words);
                u32 whole = m / LOOP_VEC * LOOP_VEC;
                for (u32 i = 0; i < whole; i += LOOP_VEC) {
                    vec16 v = load16(s_words + i);
                    UNROLL for (u32 j = 0; j < LOOP_VEC; j++) {
                        UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                            count[k] += LOOP_MEETS(vec_key(v, j), word[k], width[k]);
                        }
                    }
                }
                for (u32 i = whole; i < m; i++) {
                    UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                        count[k] += LOOP_MEETS(s_words[i], word[k], width[k]);
                    }
                }
            }
            UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                i64 i = row + (i64)(k * LOOP_THREADS + t_id());
                if (i < l.row_end) {
                    args.start[i] = MATCH_NONE;
                    args.offset[i] = kind_rows(args.kind, count[k]);
                }
            }
        }
    }
}

/* One pair, if it lies in the window. */
FN void loop_emit(const struct kmatch *a, u64 at, i64 row, u32 built) {
    i64 to = (i64)at - a->first;
    if (to >= 0 && to < a->rows) {
        u32 p[EMIT];
        u32 b[EMIT];
        u64 v[EMIT];
        u32 none[EMIT];
        UNROLL for (u32 k = 0; k < EMIT; k++) {
            none[k] = 0;
            p[k] = (u32)row;
            b[k] = built;
            v[k] = 0;
        }
        emit(&a->out, to, none, 1u, p, b, v);
    }
}

KERNEL(k_loop_write, struct kmatch, LOOP_THREADS) {
    SHARED(K, s_words, LOOP_CHUNK);
    u64 last = (u64)(args.first + args.rows);
    i64 units =
        args.units ? (i64)args.report[MATCH_UNITS] : (args.probe_count + LOOP_ROWS - 1) / LOOP_ROWS;
    for (i64 n = t_block(); n < units; n += t_blocks()) {
        struct loop l = loop_at(&args, n);
        for (i64 row = l.row; row < l.row_end; row += LOOP_ROWS) {
            i64 rows_end = row + LOOP_ROWS < l.row_end ? row + LOOP_ROWS : l.row_end;
            u32 any = args.offset[row] < last && args.offset[rows_end] > (u64)args.first;
            K word[LOOP_ITEMS];
            K width[LOOP_ITEMS];
            u64 at[LOOP_ITEMS];
            loop_words(&args, row, l.row_end, word, width);
            UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                i64 i = row + (i64)(k * LOOP_THREADS + t_id());
                at[k] = i < l.row_end ? args.offset[i] : 0u;
            }
            for (i64 first = l.first; any && first < l.end; first += LOOP_CHUNK) {
                u32 m = b_loop_chunk(&args, first, l.end, s_words);
                for (u32 i = 0; i < m; i++) {
                    UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                        i64 r = row + (i64)(k * LOOP_THREADS + t_id());
                        if (r < l.row_end && LOOP_MEETS(s_words[i], word[k], width[k])) {
                            loop_emit(&args, at[k]++, r, (u32)(first + i));
                        }
                    }
                }
            }
            UNROLL for (u32 k = 0; k < LOOP_ITEMS; k++) {
                i64 r = row + (i64)(k * LOOP_THREADS + t_id());
                if (args.kind == KIND_LEFT && r < l.row_end && at[k] == args.offset[r]) {
                    loop_emit(&args, at[k], r, MATCH_NONE);
                }
            }
        }
    }
}

/* --- what is known of the keys ---------------------------------------------------------------- */

KERNEL(k_bounds, struct kmatch, LOOP_THREADS) {
    const K *keys = (const K *)args.built;
    K low = K_MAX;
    K high = 0;
    GRID_ROWS(i, args.built_count) {
        K word = keys[i] ^ (K)args.flip;
        low = word < low ? word : low;
        high = word > high ? word : high;
    }
    UNROLL for (u32 mask = 16; mask; mask >>= 1) {
        K other = (K)w_xor_u64(low, mask);
        low = other < low ? other : low;
        other = (K)w_xor_u64(high, mask);
        high = other > high ? other : high;
    }
    if (t_lane() == 0 && low <= high) {
        atom_min_u64(&args.report[MATCH_LOW], low);
        atom_min_u64(&args.report[MATCH_HIGH_NOT], ~(u64)high);
    }
}

/* Evenly spread rows; one block. */
KERNEL(k_sample, struct kmatch_sample, LOOP_THREADS) {
    i64 n = args.count < SAMPLE_ROWS ? args.count : SAMPLE_ROWS;
    for (i64 i = t_id(); i < n; i += LOOP_THREADS) {
        args.out[i] = ((const K *)args.keys)[args.count / n * i] ^ (K)args.flip;
    }
}

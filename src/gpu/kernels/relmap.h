/* relmap.h: operators that know where every output lies: project and product, and the fill counts
 * of pages.
 *
 * A thread writes whole vectors, a block one tile: 96 % of a copy on an H200, where persistent
 * blocks whose threads read four vectors before they write any had 85 % and 70 %. In a projection
 * between words of different widths a thread reads and writes several neighbouring ones, so that
 * both sides move whole sectors. A product cuts the output into tiles; the position of a tile's
 * first pair is found by one division, those within it need a short one at most, and y comes out of
 * the caches. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 8
#endif
#include "pages.h"
#include "tuple.h"

#if IN_BYTES < OUT_BYTES
#define UNIT IN_VEC
#else
#define UNIT OUT_VEC
#endif

FN void project_unit(const struct krel_project *a, const IN_W *in, OUT_W *out) {
    IN_W x[UNIT];
    UNROLL for (u32 v = 0; v < UNIT / IN_VEC; v++) {
        vec16 from = load16(in + v * IN_VEC);
        UNROLL for (u32 j = 0; j < IN_VEC; j++) {
            x[v * IN_VEC + j] = vec_in(from, j);
        }
    }
    UNROLL for (u32 v = 0; v < UNIT / OUT_VEC; v++) {
        vec16 to;
        UNROLL for (u32 j = 0; j < OUT_VEC; j++) {
            OUT_W y = 0;
            UNROLL for (u32 m = 0; m < MOVES; m++) {
                y |= word_move(x[v * OUT_VEC + j], &a->moves.move[m]);
            }
            vec_out(&to, j, y);
        }
        store_once16(out + v * OUT_VEC, to);
    }
}

KERNEL(k_project, struct krel_project, MAP_THREADS) {
    const i64 tile_rows = (i64)MAP_THREADS * MAP_VECS * UNIT;
    i64 tiles = args.in.page_tiles * args.in.page_count;
    for (i64 number = t_block(); number < tiles; number += t_blocks()) {
        struct tile t = tile_of(&args.in, number, tile_rows);
        const IN_W *in = (const IN_W *)args.in.data + t.at;
        OUT_W *out = (OUT_W *)args.out + t.at;
        if (args.out_fills && t_id() == 0 && t.at == t.page * args.in.page_rows) {
            i64 fill = args.in.fills ? (i64)args.in.fills[t.page] : args.in.count - t.at;
            args.out_fills[t.page] = (u32)(fill < args.in.page_rows ? fill : args.in.page_rows);
        }
        UNROLL for (u32 k = 0; k < MAP_VECS; k++) {
            i64 i = ((i64)k * MAP_THREADS + t_id()) * UNIT;
            if (i + UNIT <= t.rows) {
                project_unit(&args, in + i, out + i);
            } else {
                for (i64 r = i; r < t.rows; r++) {
                    OUT_W y = 0;
                    UNROLL for (u32 m = 0; m < MOVES; m++) {
                        y |= word_move(in[r], &args.moves.move[m]);
                    }
                    out[r] = y;
                }
            }
        }
    }
}

#ifdef PRODUCT
#ifdef PAGED
#define X_ROW(i) x[row_place(&args.x_pages, i)]
#define Y_ROW(i) y[row_place(&args.y_pages, i)]
#else
#define X_ROW(i) x[i]
#define Y_ROW(i) y[i]
#endif
KERNEL(k_product, struct krel_product, MAP_THREADS) {
    const i64 tile_rows = (i64)MAP_THREADS * MAP_VECS * OUT_VEC;
    const IN_W *x = (const IN_W *)args.x;
    const IN_W *y = (const IN_W *)args.y;
    OUT_W *out = (OUT_W *)args.out;
    i64 tiles = (args.out_count + tile_rows - 1) / tile_rows;
    u32 width = args.y_count < tile_rows ? (u32)args.y_count : (u32)tile_rows; /* 0: never */
    for (i64 number = t_block(); number < tiles; number += t_blocks()) {
        i64 x_first = number * tile_rows / args.y_count;
        i64 y_first = number * tile_rows - x_first * args.y_count;
        UNROLL for (u32 k = 0; k < MAP_VECS; k++) {
            u32 local = (k * MAP_THREADS + t_id()) * OUT_VEC;
            i64 at = number * tile_rows + local;
            i64 xi = x_first;
            i64 yi = y_first + local;
            if (args.y_count < tile_rows) { /* several rounds of y in a tile */
                xi += (u32)yi / width;
                yi = (u32)yi % width;
            } else if (yi >= args.y_count) {
                xi++;
                yi -= args.y_count;
            }
            vec16 v;
            if (yi + OUT_VEC <= args.y_count && at < args.out_count) { /* of one x */
                OUT_W high = word_move(X_ROW(xi), &args.combine.x);
                UNROLL for (u32 j = 0; j < OUT_VEC; j++) {
                    vec_out(&v, j, high | word_move(Y_ROW(yi + (i64)j), &args.combine.y));
                }
            } else {
                UNROLL for (u32 j = 0; j < OUT_VEC; j++) {
                    OUT_W word = 0;
                    if (at + (i64)j < args.out_count) {
                        word = word_move(X_ROW(xi), &args.combine.x) |
                               word_move(Y_ROW(yi), &args.combine.y);
                    }
                    vec_out(&v, j, word);
                    yi++;
                    xi += yi == args.y_count;
                    yi = yi == args.y_count ? 0 : yi;
                }
            }
            if (at + OUT_VEC <= args.out_count) {
                store16(out + at, v);
            } else {
                UNROLL for (u32 w = 0; w < 4; w++) {
                    if (at + (i64)(w * 4 / OUT_BYTES) < args.out_count) {
                        ((u32 *)(out + at))[w] = v.w[w];
                    }
                }
            }
        }
    }
}
#endif

/* How many rows each page has; one more, of none, for the end of their sums. */
KERNEL(k_page_counts, struct krel_starts, MAP_THREADS) {
    i64 step = (i64)t_blocks() * MAP_THREADS;
    for (i64 p = (i64)t_block() * MAP_THREADS + t_id(); p <= args.page_count; p += step) {
        i64 fill = p < args.page_count ? (i64)args.fills[p] : 0;
        args.out[p] = (u64)(fill < args.page_rows ? fill : args.page_rows);
    }
}

KERNEL(k_fill, struct krel_fill, MAP_THREADS) {
    i64 step = (i64)t_blocks() * MAP_THREADS;
    for (i64 p = (i64)t_block() * MAP_THREADS + t_id(); p < args.pages; p += step) {
        i64 left = args.count - p * args.page_rows;
        args.fills[p] = (u32)(left < args.page_rows ? left : args.page_rows);
    }
}

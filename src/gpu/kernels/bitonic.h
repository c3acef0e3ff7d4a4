/* bitonic.h: the bitonic sorting network, in place; not stable.
 *
 * Stages whose distances fit a tile run in shared memory, the others one launch per distance. The
 * first comparisons of a stage mirror their distances, so that every other one puts the lesser
 * element first, and partners behind the end may be left out: they would be greatest. The text
 * defines PAYLOAD (bytes, 0 = none); which payload an element has is kept as its place in the tile.
 */
#ifndef WF_BITONIC_H
#define WF_BITONIC_H

#include "order.h"

#define BITONIC_ITEMS (BITONIC_TILE / BITONIC_THREADS)

#if PAYLOAD
typedef WORD_OF(PAYLOAD) P;
#define BITONIC_FROM BITONIC_TILE
#else
#define BITONIC_FROM 1
#endif

/* Partners: `step` apart, or with step 0 mirrored within `run`. */
FN i64 partner_low(i64 pair, i64 run, i64 step) {
    i64 half = step ? step : run >> 1;
    return (pair / half) * (2 * half) + pair % half;
}
FN i64 partner_high(i64 low, i64 run, i64 step) {
    return step ? low + step : low ^ (run - 1);
}

/* The same where `half`, the distance, is a power of two and all fits 32 bits. */
FN u32 tile_low(u32 pair, u32 half) {
    return 2u * pair - (pair & (half - 1u));
}

/* One distance of a stage, over a tile of `rows`. Ends with a barrier. */
FN void b_compare(K *s_keys, u32 *s_from, u32 rows, u32 run, u32 step, const struct korder *o) {
    u32 half = step ? step : run >> 1;
    for (u32 p = t_id();; p += BITONIC_THREADS) {
        u32 low = tile_low(p, half);
        if (low + 1u >= rows) { /* it ascends with p */
            break;
        }
        u32 high = step ? low + step : low ^ (run - 1u);
        if (high < rows && key_less(s_keys[high], s_keys[low], o)) {
            K key = s_keys[low];
            s_keys[low] = s_keys[high];
            s_keys[high] = key;
#if PAYLOAD
            u32 from = s_from[low];
            s_from[low] = s_from[high];
            s_from[high] = from;
#else
            UNUSED_WORD(s_from);
#endif
        }
    }
    b_sync();
}

/* A tile from scratch. Ends with a barrier. */
FN void b_sort_tile(K *s_keys, u32 *s_from, u32 rows, const struct korder *o) {
    for (u32 run = 2; run / 2u < rows; run *= 2u) {
        b_compare(s_keys, s_from, rows, run, 0, o);
        for (u32 step = run >> 2; step; step >>= 1) {
            b_compare(s_keys, s_from, rows, run, step, o);
        }
    }
}

/* A tile into shared memory, and back in order. Each ends with a barrier. */
FN void b_load_tile(K *s_keys, u32 *s_from, const K *keys, u32 rows) {
    for (u32 k = t_id(); k < rows; k += BITONIC_THREADS) {
        s_keys[k] = keys[k];
#if PAYLOAD
        s_from[k] = k;
#else
        UNUSED_WORD(s_from);
#endif
    }
    b_sync();
}
FN void b_store_tile(K *keys, const K *s_keys, u32 rows) {
    for (u32 k = t_id(); k < rows; k += BITONIC_THREADS) {
        keys[k] = s_keys[k];
    }
    b_sync();
}
#if PAYLOAD
/* `to` may be `in`. Ends with a barrier. */
FN void b_move_payload(P *to, const P *in, const u32 *s_from, u32 rows) {
    P held[BITONIC_ITEMS];
    UNROLL for (u32 k = 0; k < BITONIC_ITEMS; k++) {
        u32 at = k * BITONIC_THREADS + t_id();
        held[k] = at < rows ? in[s_from[at]] : (P)0;
    }
    b_sync();
    UNROLL for (u32 k = 0; k < BITONIC_ITEMS; k++) {
        u32 at = k * BITONIC_THREADS + t_id();
        if (at < rows) {
            to[at] = held[k];
        }
    }
    b_sync();
}
#endif

/* Sorts a tile; with `run`, only the last distances of a stage that long. */
KERNEL(k_bitonic_tile, struct kbitonic, BITONIC_THREADS) {
    SHARED(K, s_keys, BITONIC_TILE);
    SHARED(u32, s_from, BITONIC_FROM);
    i64 row = (i64)t_block() * BITONIC_TILE;
    u32 rows = args.count - row < BITONIC_TILE ? (u32)(args.count - row) : BITONIC_TILE;
    K *keys = (K *)args.keys + row;
    b_load_tile(s_keys, s_from, keys, rows);
    if (args.run == 0) {
        b_sort_tile(s_keys, s_from, rows, &args.order);
    } else {
        for (u32 step = BITONIC_TILE / 2; step; step >>= 1) {
            b_compare(s_keys, s_from, rows, BITONIC_TILE, step, &args.order);
        }
    }
#if PAYLOAD
    P *payload = (P *)args.payload + row;
    b_move_payload(payload, payload, s_from, rows);
#endif
    b_store_tile(keys, s_keys, rows);
}

KERNEL(k_bitonic_step, struct kbitonic, BITONIC_THREADS) {
    K *keys = (K *)args.keys;
    i64 pair = (i64)t_block() * BITONIC_THREADS + t_id();
    i64 low = partner_low(pair, args.run, args.step);
    i64 high = partner_high(low, args.run, args.step);
    if (high < args.count) {
        K x = keys[low];
        K y = keys[high];
        if (key_less(y, x, &args.order)) {
            keys[low] = y;
            keys[high] = x;
#if PAYLOAD
            P *payload = (P *)args.payload;
            P held = payload[low];
            payload[low] = payload[high];
            payload[high] = held;
#endif
        }
    }
}

#endif

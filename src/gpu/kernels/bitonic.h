/* bitonic.h: the bitonic sorting network, in place; not stable.
 *
 * Stages whose distances fit a tile run in shared memory, the others one launch per distance. The
 * first comparisons of a stage mirror their distances, so that every other one puts the lesser
 * element first, and partners behind the end may be left out: they would be greatest. With `starts`
 * a block sorts one part, which must fit a tile; quick sort ends that way. The text defines PAYLOAD
 * (bytes, 0 = none). */
#include "order.h"

#define BITONIC_ITEMS (BITONIC_TILE / BITONIC_THREADS)

#if PAYLOAD
typedef WORD_OF(PAYLOAD) P;
#endif

/* Partners: `step` apart, or with step 0 mirrored within `run`. */
FN i64 partner_low(i64 pair, i64 run, i64 step) {
    i64 half = step ? step : run >> 1;
    return (pair / half) * (2 * half) + pair % half;
}
FN i64 partner_high(i64 low, i64 run, i64 step) {
    return step ? low + step : low ^ (run - 1);
}

FN void b_compare(K *s_keys, u32 *s_from, u32 rows, u32 run, u32 step, const struct korder *o) {
    for (u32 p = t_id(); p < BITONIC_TILE / 2; p += BITONIC_THREADS) {
        u32 low = (u32)partner_low(p, run, step);
        u32 high = (u32)partner_high(low, run, step);
        if (high < rows && key_less(s_keys[high], s_keys[low], o)) {
            K key = s_keys[low];
            u32 from = s_from[low];
            s_keys[low] = s_keys[high];
            s_from[low] = s_from[high];
            s_keys[high] = key;
            s_from[high] = from;
        }
    }
    b_sync();
}

/* Sorts a tile or part; with `run`, only the last distances of a stage that long. */
KERNEL(k_bitonic_tile, struct kbitonic, BITONIC_THREADS) {
    SHARED(K, s_keys, BITONIC_TILE);
    SHARED(u32, s_from, BITONIC_TILE);
    i64 row = args.starts ? (i64)args.starts[t_block()] : (i64)t_block() * BITONIC_TILE;
    i64 end = args.starts ? (i64)args.starts[t_block() + 1] : args.count;
    u32 fits = !args.starts || end - row <= BITONIC_TILE; /* larger parts are sorted otherwise */
    u32 rows = !fits ? 0u : end - row < BITONIC_TILE ? (u32)(end - row) : BITONIC_TILE;
    K *keys = (K *)args.keys + row;
    for (u32 k = t_id(); k < rows; k += BITONIC_THREADS) {
        s_keys[k] = keys[k];
        s_from[k] = k;
    }
    b_sync();
    if (args.run == 0) {
        for (u32 run = 2; run / 2u < rows; run *= 2u) {
            b_compare(s_keys, s_from, rows, run, 0, &args.order);
            for (u32 step = run >> 2; step; step >>= 1) {
                b_compare(s_keys, s_from, rows, run, step, &args.order);
            }
        }
    } else {
        for (u32 step = BITONIC_TILE / 2; step; step >>= 1) {
            b_compare(s_keys, s_from, rows, BITONIC_TILE, step, &args.order);
        }
    }
#if PAYLOAD
    P *payload = (P *)args.payload + row;
    P held[BITONIC_ITEMS];
    UNROLL for (u32 k = 0; k < BITONIC_ITEMS; k++) {
        u32 at = k * BITONIC_THREADS + t_id();
        held[k] = at < rows ? payload[s_from[at]] : (P)0;
    }
    b_sync();
    UNROLL for (u32 k = 0; k < BITONIC_ITEMS; k++) {
        u32 at = k * BITONIC_THREADS + t_id();
        if (at < rows) {
            payload[at] = held[k];
        }
    }
#endif
    for (u32 k = t_id(); k < rows; k += BITONIC_THREADS) {
        keys[k] = s_keys[k];
    }
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

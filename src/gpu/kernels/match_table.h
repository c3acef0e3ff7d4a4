/* match_table.h: joins through one table over all of the built side.
 *
 * DIRECT: a bit a key says whether it is there, its value lies at its place. Else slots of key and
 * value side by side, one sector a look, emptiness marked by a key that does not occur. Keys of a
 * table are all different: k_build notices when they are not, and the host then sorts the rows and
 * puts the first place of every run of equal keys into the table (k_group). Values are VALUE_BYTES
 * wide: positions, or the one column there is. */
#include "match.h"
#include "reserve.h"
#include "rows4.h"

#if VALUE_BYTES == 8
typedef u64 V;
#else
typedef u32 V;
#endif

#ifdef DIRECT

FN u64 direct_slot(const struct kmatch *a, K key) {
    return (u64)(K)(key ^ (K)a->flip) - a->lo;
}

/* 1: the key was there already. */
FN u32 table_put(const struct kmatch *a, K key, V value) {
    u64 slot = direct_slot(a, key);
    u32 bit = 1u << (slot & 31u);
    if (a->kind >= KIND_SEMI && read_u32(&a->bits[slot >> 5]) & bit) {
        return 1; /* a set: heavy keys need not meet in the atomic */
    }
    u32 held = atom_or_u32(&a->bits[slot >> 5], bit) & bit;
    if (!held) {
        ((V *)a->slots)[slot] = value;
    }
    return held != 0;
}

/* The values of several keys; bit k of the answer: found. The first looks of all overlap. */
FN u32 table_find(const struct kmatch *a, const K *key, u32 live, V *out) {
    u32 found = 0;
    u32 bits[MATCH_ITEMS];
    UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
        u64 slot = direct_slot(a, key[k]);
        u32 in = (live >> k & 1u) && slot < a->slot_count;
        bits[k] = in ? (a->dense ? 1u : a->bits[slot >> 5] >> (slot & 31u) & 1u) : 0u;
    }
    UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
        out[k] = bits[k] ? ((const V *)a->slots)[direct_slot(a, key[k])] : 0u;
        found |= bits[k] << k;
    }
    return found;
}

#else

/* What a slot holds, by one load. As macros: as functions they cost the loops below registers. */
#if KEY_BYTES == 8
typedef vec16 pair;
#define PAIR_AT(slots, at) load16((const u64 *)(slots) + 2 * (at))
#define PAIR_KEY(p) ((u64)(p).w[1] << 32 | (p).w[0])
#define PAIR_VALUE(p) ((u64)(p).w[3] << 32 | (p).w[2])
#define pair_put pair_put_8
#else
typedef u64 pair;
#define PAIR_AT(slots, at) ((const u64 *)(slots))[at]
#define PAIR_KEY(p) ((u32)(p))
#define PAIR_VALUE(p) ((u32)((p) >> 32))
#define pair_put pair_put_4
#endif

/* 1: the key was there already. */
FN u32 table_put(const struct kmatch *a, K key, V value) {
    u64 mask = a->slot_count - 1;
    return pair_put((u64 *)a->slots, mask, (K)a->empty, key ^ (K)a->flip, value,
                    a->kind >= KIND_SEMI, key_hash(key) & mask);
}

/* The values of several keys; bit k of the answer: found. The first looks of all overlap. */
FN u32 table_find(const struct kmatch *a, const K *key, u32 live, V *out) {
    u32 found = 0;
    u64 mask = a->slot_count - 1;
    pair first[MATCH_ITEMS];
    UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
        first[k] = PAIR_AT(a->slots, key_hash(key[k]) & mask);
    }
    UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
        K word = key[k] ^ (K)a->flip;
        u64 slot = key_hash(key[k]) & mask;
        pair held = first[k];
        TABLE_WALK(slot, mask, held, PAIR_AT(a->slots, slot),
                   (live >> k & 1u) && PAIR_KEY(held) != (K)a->empty && PAIR_KEY(held) != word)
        out[k] = (V)PAIR_VALUE(held);
        found |= (u32)((live >> k & 1u) && PAIR_KEY(held) != (K)a->empty) << k;
    }
    return found;
}

#endif

KERNEL(k_build, struct kmatch, MATCH_THREADS) {
    const K *keys = (const K *)args.built;
    u32 twice = 0;
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.built_count && !twice;
         i += (i64)t_blocks() * t_count()) {
        V value = (V)i;
        if (args.values) {
            value = args.values_wide ? (V)((const u64 *)args.values)[i]
                                     : (V)((const u32 *)args.values)[i];
        }
        /* a set keeps any; else one pair of equal keys says enough */
        twice = table_put(&args, keys[i], value) && args.kind < KIND_SEMI;
    }
    if (twice && !read_u32((const u32 *)&args.report[MATCH_DUPLICATE])) {
        atom_or_u32((u32 *)&args.report[MATCH_DUPLICATE], 1);
    }
}

/* The last row of every run of sorted keys finds the first by steps that double, then by halving.
 */
KERNEL(k_group, struct kmatch, MATCH_THREADS) {
    const K *keys = (const K *)args.sorted;
    GRID_ROWS(i, args.built_count) {
        K key = keys[i];
        if (i + 1 == args.built_count || keys[i + 1] != key) {
            i64 same = i; /* has the key */
            i64 step = 1;
            while (same - step >= 0 && keys[same - step] == key) {
                same -= step;
                step *= 2;
            }
            i64 other = same - step < -1 ? -1 : same - step; /* has not */
            while (same - other > 1) {
                i64 mid = (same + other) >> 1;
                if (keys[mid] == key) {
                    same = mid;
                } else {
                    other = mid;
                }
            }
            args.length[same] = (u32)(i - same) + 1u;
            table_put(&args, key, (V)same);
        }
    }
}

FN u32 probe_keys(const struct kmatch *a, i64 base, K *key) {
    const K *keys = (const K *)a->probe;
    u32 live = 0;
    UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
        i64 i = base + (i64)(k * MATCH_THREADS + t_id());
        key[k] = i < a->probe_count ? keys[i] : 0u;
        live |= (u32)(i < a->probe_count) << k;
    }
    return live;
}

KERNEL(k_rush, struct kmatch, MATCH_THREADS) {
    SHARED(u32, s_at, MATCH_TILE); /* which row of the tile; the highest bit: it has a match */
    SHARED(V, s_value, MATCH_TILE);
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    for (i64 base = (i64)t_block() * MATCH_TILE; base < args.probe_count;
         base += (i64)t_blocks() * MATCH_TILE) {
        K key[MATCH_ITEMS];
        V value[MATCH_ITEMS];
        u32 live = probe_keys(&args, base, key);
        u32 found = table_find(&args, key, live, value);
        u32 kept = args.kind == KIND_LEFT ? live : args.kind == KIND_ANTI ? live & ~found : found;
        struct b_place place =
            b_reserve(bits_set_u32(kept), s_sums, s_base, &args.report[MATCH_TOTAL]);
        u32 at = place.first;
        UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
            if (kept >> k & 1u) {
                s_at[at] = (k * MATCH_THREADS + t_id()) | (found >> k & 1u) << 31;
                s_value[at] = value[k];
                at++;
            }
        }
        b_sync();
        for (u32 j = t_id(); j < place.total; j += EMIT * MATCH_THREADS) {
            u32 p[EMIT];
            u32 b[EMIT];
            u64 v[EMIT];
            u32 to[EMIT];
            u32 here = 0;
            UNROLL for (u32 k = 0; k < EMIT; k++) {
                u32 from = to[k] = j + k * MATCH_THREADS;
                u32 in = from < place.total && (i64)place.base + from < args.room;
                u32 packed = in ? s_at[from] : 0u;
                v[k] = packed >> 31 ? s_value[from] : 0u;
                b[k] = packed >> 31 ? (u32)v[k] : MATCH_NONE;
                p[k] = (u32)(base + (i64)(packed & 0x7fffffffu));
                here |= in << k;
            }
            emit(&args.out, (i64)place.base, to, here, p, b, v);
        }
        b_sync();
    }
}

/* One value of four neighbouring rows, as raw words of rows4.h. */
FN void look_values(const struct kmatch_col *col, const i64 row, const i64 count, const V *value,
                    u32 found, u32 *raw) {
    u32 wide = col->bytes == 8u;
    if (!col->built && col->from == MATCH_COL && !wide) {
        rows4_read4(raw, col->in, row, count);
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        u32 there = row + (i64)j < count;
        u32 at = !col->built ? (u32)(row + (i64)j) : found >> j & 1u ? (u32)value[j] : MATCH_NONE;
        u64 x = there ? emit_value(col, at, found >> j & 1u ? (u64)value[j] : 0u) : 0u;
        if (wide) {
            raw[2 * j] = (u32)x;
            raw[2 * j + 1] = (u32)(x >> 32);
        } else {
            raw[j] = (u32)x;
        }
    }
}

/* Every probing row gives one row, at its own place: keys looked up as elements are gathered. */
KERNEL(k_look, struct kmatch, MATCH_THREADS) {
    i64 first = (i64)t_block() * MATCH_TILE + (i64)t_id() * 4;
    K key[MATCH_ITEMS];
    V value[MATCH_ITEMS];
    u32 live = 0;
    UNROLL for (u32 g = 0; g < MATCH_ITEMS / 4; g++) {
        i64 row = first + (i64)(g * MATCH_THREADS * 4);
        u32 raw[KEY_BYTES];
#if KEY_BYTES == 8
        rows4_read8(raw, args.probe, row, args.probe_count);
#else
        rows4_read4(raw, args.probe, row, args.probe_count);
#endif
        UNROLL for (u32 j = 0; j < 4; j++) {
#if KEY_BYTES == 8
            key[4 * g + j] = raw_u64(raw, j);
#else
            key[4 * g + j] = raw[j];
#endif
            live |= (u32)(row + (i64)j < args.probe_count) << (4 * g + j);
        }
    }
    u32 found = table_find(&args, key, live, value);
    NO_UNROLL for (u32 c = 0; c < args.out.count; c++) {
        const struct kmatch_col *col = &args.out.col[c];
        UNROLL for (u32 g = 0; g < MATCH_ITEMS / 4; g++) {
            i64 row = first + (i64)(g * MATCH_THREADS * 4);
            u32 raw[8];
            if (row < args.probe_count) {
                look_values(col, row, args.probe_count, value + 4 * g, found >> (4 * g), raw);
                if (col->bytes == 8u) {
                    rows4_write8(raw, col->out, row, args.probe_count);
                } else {
                    rows4_write4(raw, col->out, row, args.probe_count);
                }
            }
        }
    }
}

/* Runs of the probing rows: their first place and what they come to. */
KERNEL(k_runs, struct kmatch, MATCH_THREADS) {
    for (i64 base = (i64)t_block() * MATCH_TILE; base < args.probe_count;
         base += (i64)t_blocks() * MATCH_TILE) {
        K key[MATCH_ITEMS];
        V value[MATCH_ITEMS];
        u32 live = probe_keys(&args, base, key);
        u32 found = table_find(&args, key, live, value);
        UNROLL for (u32 k = 0; k < MATCH_ITEMS; k++) {
            i64 i = base + (i64)(k * MATCH_THREADS + t_id());
            if (live >> k & 1u) {
                u32 first = found >> k & 1u ? (u32)value[k] : MATCH_NONE;
                args.start[i] = first;
                args.offset[i] =
                    kind_rows(args.kind, first == MATCH_NONE ? 0u : args.length[first]);
            }
        }
    }
}

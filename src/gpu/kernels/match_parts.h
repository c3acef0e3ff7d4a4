/* match_parts.h: joins of sides that were split by hash: a part of the built side at a time lies in
 * shared memory.
 *
 * A unit is a part, or of a part with many probing rows a chunk of those, so that heavy keys are
 * shared out among blocks. k_part_rush has a table of the built keys and of places, or of the one
 * column there is, by bits of the hash that the split did not use. Two equal built keys, or a part
 * too large, are reported, and the host takes the way of sorted runs. k_part_sort and k_part_runs
 * are the radix join of the paper: built parts are sorted, probing rows search them. The text
 * before this defines PART_SLOTS, those of a table. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS (KEY_BYTES == 8 ? 2 : 3)
#endif
#include "match.h"
#include "reserve.h"

#define PART_ROWS_MOST (PART_SLOTS * 3 / 4) /* of the built side */

KERNEL(k_units, struct kmatch, MATCH_THREADS) {
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    i64 parts = 1LL << args.part_bits;
    u32 keeps = args.kind == KIND_LEFT || args.kind == KIND_ANTI;
    for (i64 first = (i64)t_block() * MATCH_THREADS; first < parts;
         first += (i64)t_blocks() * MATCH_THREADS) {
        i64 part = first + t_id();
        u64 rows = 0;
        if (part < parts) {
            u64 built = args.parts[1][part + 1] - args.parts[1][part];
            rows = args.parts[0][part + 1] - args.parts[0][part];
            rows = built || keeps ? rows : 0u;
            if (built > PART_ROWS_MOST) {
                atom_or_u32((u32 *)&args.report[MATCH_OVER], 1);
            }
        }
        u32 units = (u32)((rows + UNIT_ROWS - 1) / UNIT_ROWS);
        struct b_place place = b_reserve(units, s_sums, s_base, &args.report[MATCH_UNITS]);
        for (u32 u = 0; u < units; u++) {
            args.units[place.base + place.first + u].part = (u32)part;
            args.units[place.base + place.first + u].chunk = u;
        }
        b_sync();
    }
}

struct unit {
    i64 probe, probe_end, built;
    u32 rows; /* of the built side */
    u32 part;
};
FN struct unit unit_at(const struct kmatch *a, u32 number) {
    struct kmatch_unit at = a->units[number];
    struct unit u;
    u.part = at.part;
    i64 end = (i64)a->parts[0][at.part + 1];
    u.probe = (i64)a->parts[0][at.part] + (i64)at.chunk * UNIT_ROWS;
    u.probe_end = u.probe + UNIT_ROWS < end ? u.probe + UNIT_ROWS : end;
    u.built = (i64)a->parts[1][at.part];
    u.rows = (u32)((i64)a->parts[1][at.part + 1] - u.built);
    return u;
}

/* A key that no row of the part has: all of them hash to it, and this one does not. */
FN K part_none(const struct kmatch *a, u32 part) {
    K mask = (K)((1ULL << a->part_bits) - 1u);
    K none = 0; /* hashes to 0 */
    if (part == 0) {
        do {
            none++;
        } while ((key_hash(none) & mask) == 0);
    }
    return none;
}

/* The next slot of a key, from the bits of its hash that the split did not use on. */
FN u32 part_slot(const struct kmatch *a, K key) {
    return (u32)(key_hash(key) >> a->part_bits) & (PART_SLOTS - 1);
}

FN K slot_claim(K *slot, K none, K key) {
#if KEY_BYTES == 8
    return atom_cas_u64(slot, none, key);
#else
    return atom_cas_u32(slot, none, key);
#endif
}

struct part_table { /* shared memory */
    K *keys;
    u32 *values;
    K none;    /* of free slots */
    u32 *sums; /* a word a warp, */
    u64 *base; /* and one: where rows go */
};

/* A part's keys and their values, by hash; 1: two keys are equal. Ends with a barrier. */
FN u32 b_part_table(const struct kmatch *a, struct unit u, const struct part_table *s) {
    K *s_keys = s->keys;
    K none = s->none;
    const K *keys = (const K *)a->built + u.built;
    const u32 *values = (const u32 *)a->values + (a->values ? u.built : 0);
    for (u32 i = t_id(); i < PART_SLOTS; i += PART_THREADS) {
        s_keys[i] = none;
    }
    b_sync();
    u32 twice = 0;
    for (u32 first = t_id(); first < u.rows; first += PART_ITEMS * PART_THREADS) {
        K key[PART_ITEMS];
        u32 value[PART_ITEMS];
        UNROLL for (u32 k = 0; k < PART_ITEMS; k++) { /* all loads at once */
            u32 i = first + k * PART_THREADS;
            key[k] = i < u.rows ? keys[i] : none;
            value[k] = i < u.rows && a->values ? values[i] : i;
        }
        UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
            if (key[k] != none) {
                u32 slot = part_slot(a, key[k]);
                K held = slot_claim(&s_keys[slot], none, key[k]);
                TABLE_WALK(slot, PART_SLOTS - 1, held, slot_claim(&s_keys[slot], none, key[k]),
                           held != none && held != key[k])
                twice |= held == key[k];
                if (held == none) {
                    s->values[slot] = value[k];
                }
            }
        }
    }
    b_sync();
    return twice;
}

/* One tile of a unit's probing rows; every warp writes its rows side by side. Two barriers. */
FN void b_part_tile(const struct kmatch *a, struct unit u, i64 base, const struct part_table *s) {
    const K *keys = (const K *)a->probe;
    const K *s_keys = s->keys;
    K none = s->none;
    K key[PART_ITEMS];
    u32 p[PART_ITEMS];
    u32 b[PART_ITEMS];
    u32 at[PART_ITEMS];
    u64 value[PART_ITEMS];
    u32 live = 0;
    u32 rows = 0;
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        i64 i = base + (i64)(k * PART_THREADS + t_id());
        key[k] = i < u.probe_end ? keys[i] : none;
        p[k] = (u32)i;
    }
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        u32 slot = part_slot(a, key[k]);
        K held = s_keys[slot];
        TABLE_WALK(slot, PART_SLOTS - 1, held, s_keys[slot], held != key[k] && held != none)
        u32 found = held == key[k] && key[k] != none;
        value[k] = found ? s->values[slot] : 0u;
        b[k] = found ? (u32)(u.built + (i64)value[k]) : MATCH_NONE;
        u32 keeps = w_ballot((i32)(key[k] != none && kind_keeps(a->kind, found)));
        at[k] = rows + bits_set_u32(keeps & ((1u << t_lane()) - 1u));
        rows += bits_set_u32(keeps);
        live |= (keeps >> t_lane() & 1u) << k;
    }
    u64 to = b_reserve_warps(rows, s->sums, s->base, &a->report[MATCH_TOTAL]);
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        live &= (i64)(to + at[k]) < a->room ? ~0u : ~(1u << k);
    }
    emit(&a->out, (i64)to, at, live, p, b, value);
}

/* A unit a block. */
KERNEL(k_part_rush, struct kmatch, PART_THREADS) {
    SHARED_BYTES(room);
    SHARED(u32, s_sums, PART_THREADS / 32);
    SHARED(u64, s_base, 1);
    struct part_table s;
    s.keys = (K *)room;
    s.values = (u32 *)(s.keys + PART_SLOTS);
    s.sums = s_sums;
    s.base = s_base;
    if (t_block() < args.report[MATCH_UNITS]) {
        struct unit u = unit_at(&args, t_block());
        s.none = part_none(&args, u.part);
        u.rows = u.rows <= PART_ROWS_MOST ? u.rows : 0u;
        u32 twice = b_part_table(&args, u, &s);
        for (i64 base = u.probe; base < u.probe_end; base += PART_TILE) {
            b_part_tile(&args, u, base, &s);
        }
        if (twice && !read_u32((const u32 *)&args.report[MATCH_DUPLICATE])) {
            atom_or_u32((u32 *)&args.report[MATCH_DUPLICATE], 1);
        }
    }
}

/* --- the radix join --------------------------------------------------------------------------- */

/* Sorts n pairs, a power of two, by word, then by number. Ends with a barrier. */
FN void b_sort_pairs(K *s_word, u32 *s_number, u32 n) {
    for (u32 size = 2; size <= n; size *= 2) {
        for (u32 step = size / 2; step; step /= 2) {
            for (u32 i = t_id(); i < n / 2; i += PART_THREADS) {
                u32 low = 2 * i - (i & (step - 1u));
                u32 high = low + step;
                K x = s_word[low];
                K y = s_word[high];
                u32 after = x > y || (x == y && s_number[low] > s_number[high]);
                if (after == ((low & size) == 0)) {
                    u32 number = s_number[low];
                    s_word[low] = y;
                    s_word[high] = x;
                    s_number[low] = s_number[high];
                    s_number[high] = number;
                }
            }
            b_sync();
        }
    }
}

KERNEL(k_part_sort, struct kmatch, PART_THREADS) {
    SHARED_BYTES(room);
    K *s_word = (K *)room;
    u32 *s_number = (u32 *)(s_word + PART_SORT_MAX);
    const K *keys = (const K *)args.built;
    i64 parts = 1LL << args.part_bits;
    for (i64 part = t_block(); part < parts; part += t_blocks()) {
        i64 first = (i64)args.parts[1][part];
        i64 rows = (i64)args.parts[1][part + 1] - first;
        if (rows > PART_SORT_MAX) {
            if (t_id() == 0) {
                atom_or_u32((u32 *)&args.report[MATCH_OVER], 1);
            }
            rows = 0;
        }
        u32 n = 1;
        while (n < rows) {
            n *= 2;
        }
        for (u32 i = t_id(); i < n; i += PART_THREADS) {
            s_word[i] = i < rows ? keys[first + i] ^ (K)args.flip : K_MAX;
            s_number[i] = i;
        }
        b_sync();
        b_sort_pairs(s_word, s_number, n);
        for (u32 i = t_id(); i < rows; i += PART_THREADS) {
            ((K *)args.out_sorted)[first + i] = s_word[i] ^ (K)args.flip;
            args.out_list[first + i] = (u32)first + s_number[i];
        }
        b_sync();
    }
}

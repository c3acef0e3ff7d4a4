/* match_parts.h: joins of sides that were split by hash: a part of the built side at a time lies in
 * shared memory.
 *
 * A unit is a part, or of a part with many probing rows a chunk of those, so that heavy keys are
 * shared out among blocks; blocks take units by ticket. k_part_rush has a table of the built keys'
 * places, keyed by bits of the hash that the split did not use; two equal built keys, or a part too
 * large, are reported, and the host takes the way of sorted runs. k_part_sort and k_part_runs are
 * the radix join of the paper: built parts are sorted, probing rows search them. */
#include "lookback.h"
#include "match.h"
#include "reserve.h"

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
            if (built > PART_ROWS_MAX) {
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
};
FN struct unit unit_at(const struct kmatch *a, u32 number) {
    struct kmatch_unit at = a->units[number];
    struct unit u;
    i64 end = (i64)a->parts[0][at.part + 1];
    u.probe = (i64)a->parts[0][at.part] + (i64)at.chunk * UNIT_ROWS;
    u.probe_end = u.probe + UNIT_ROWS < end ? u.probe + UNIT_ROWS : end;
    u.built = (i64)a->parts[1][at.part];
    u.rows = (u32)((i64)a->parts[1][at.part + 1] - u.built);
    return u;
}

/* The places of a part's keys, by hash; 1: two are equal. Ends with a barrier. */
FN u32 b_part_table(const struct kmatch *a, struct unit u, K *s_keys, u32 *s_slots) {
    const K *keys = (const K *)a->built + u.built;
    for (u32 i = t_id(); i < PART_SLOTS; i += PART_THREADS) {
        s_slots[i] = 0;
    }
    K key_of[PART_ROWS_MAX / PART_THREADS]; /* all loads at once */
    UNROLL for (u32 k = 0; k < PART_ROWS_MAX / PART_THREADS; k++) {
        u32 i = k * PART_THREADS + t_id();
        key_of[k] = i < u.rows ? keys[i] : 0u;
    }
    UNROLL for (u32 k = 0; k < PART_ROWS_MAX / PART_THREADS; k++) {
        u32 i = k * PART_THREADS + t_id();
        if (i < u.rows) {
            s_keys[i] = key_of[k];
        }
    }
    b_sync();
    u32 twice = 0;
    for (u32 i = t_id(); i < u.rows; i += PART_THREADS) {
        K key = s_keys[i];
        u32 slot = (u32)(key_hash(key) >> a->part_bits) & (PART_SLOTS - 1);
        u32 held = atom_cas_u32(&s_slots[slot], 0, i + 1u);
        while (held && s_keys[held - 1u] != key) {
            slot = (slot + 1) & (PART_SLOTS - 1);
            held = atom_cas_u32(&s_slots[slot], 0, i + 1u);
        }
        twice |= held;
    }
    b_sync();
    return twice != 0;
}

/* One tile of a unit's probing rows. */
FN void b_part_tile(const struct kmatch *a, struct unit u, i64 base, const K *s_keys,
                    const u32 *s_slots, u32 *s_at, u32 *s_found, u32 *s_sums, u64 *s_base) {
    const K *keys = (const K *)a->probe;
    K key[PART_ITEMS];
    u32 at[PART_ITEMS];
    u32 live = 0;
    u32 kept = 0;
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        i64 i = base + (i64)(k * PART_THREADS + t_id());
        live |= (u32)(i < u.probe_end) << k;
        key[k] = i < u.probe_end ? keys[i] : 0u;
    }
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        u32 slot = (u32)(key_hash(key[k]) >> a->part_bits) & (PART_SLOTS - 1);
        u32 held = s_slots[slot];
        while (held && s_keys[held - 1u] != key[k]) {
            slot = (slot + 1) & (PART_SLOTS - 1);
            held = s_slots[slot];
        }
        at[k] = held;
        kept |= ((live >> k & 1u) & kind_keeps(a->kind, held != 0)) << k;
    }
    struct b_place place = b_reserve(bits_set_u32(kept), s_sums, s_base, &a->report[MATCH_TOTAL]);
    u32 to = place.first;
    UNROLL for (u32 k = 0; k < PART_ITEMS; k++) {
        if (kept >> k & 1u) {
            s_at[to] = k * PART_THREADS + t_id();
            s_found[to] = at[k];
            to++;
        }
    }
    b_sync();
    for (u32 j = t_id(); j < place.total; j += EMIT * PART_THREADS) {
        u32 p[EMIT];
        u32 b[EMIT];
        u64 v[EMIT];
        u32 here = 0;
        UNROLL for (u32 k = 0; k < EMIT; k++) {
            u32 from = j + k * PART_THREADS;
            u32 in = from < place.total && (i64)place.base + from < a->room;
            u32 found = in ? s_found[from] : 0u;
            p[k] = in ? (u32)(base + s_at[from]) : 0u;
            b[k] = found ? (u32)u.built + found - 1u : MATCH_NONE;
            v[k] = 0;
            here |= in << k;
        }
        emit(&a->out, (i64)place.base + j, PART_THREADS, here, p, b, v);
    }
    b_sync();
}

KERNEL(k_part_rush, struct kmatch, PART_THREADS) {
    SHARED_BYTES(room);
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    SHARED(u32, s_ticket, 1);
    K *s_keys = (K *)room;
    u32 *s_slots = (u32 *)(s_keys + PART_ROWS_MAX);
    u32 *s_at = s_slots + PART_SLOTS;
    u32 *s_found = s_at + PART_TILE;
    u32 units = (u32)args.report[MATCH_UNITS];
    u32 *ticket = (u32 *)&args.report[MATCH_TICKET];
    u32 twice = 0;
    for (u32 n = b_ticket(ticket, s_ticket); n < units; n = b_ticket(ticket, s_ticket)) {
        struct unit u = unit_at(&args, n);
        u.rows = u.rows <= PART_ROWS_MAX ? u.rows : 0u;
        twice |= b_part_table(&args, u, s_keys, s_slots);
        for (i64 base = u.probe; base < u.probe_end; base += PART_TILE) {
            b_part_tile(&args, u, base, s_keys, s_slots, s_at, s_found, s_sums, s_base);
        }
    }
    if (twice && !read_u32((const u32 *)&args.report[MATCH_DUPLICATE])) {
        atom_or_u32((u32 *)&args.report[MATCH_DUPLICATE], 1);
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

/* block.h: the words that the virtual machine and woven kernels share: reading groups of four rows,
 * reserving output, searching an index, keeping an aggregation.
 *
 * A thread works on groups of four consecutive rows, so that one vector access serves a group
 * whatever the width of its column, and a group of up to eight-byte elements touches one 32-byte
 * sector: asking "is any row of the group active" decides per sector. Functions that start with b_
 * contain barriers. */
#ifndef WF_BLOCK_H
#define WF_BLOCK_H

#include "prelude.h"
#include "reserve.h"

#include "defs/agg.def"
#include "defs/fn_table.h"
#include "defs/kargs.h"

/* --- groups of four ------------------------------------------------------------------------- */

FN void group_u8(const u8 *p, u32 x[4]) {
    u32 w = *(const u32 *)p;
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = w >> (8 * j) & 255u;
    }
}
FN void group_u16(const u8 *p, u32 x[4]) {
    u64 w = *(const u64 *)p;
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = (u32)(w >> (16 * j)) & 65535u;
    }
}
FN void group_u32(const u8 *p, u32 x[4]) {
    vec16 v = load_once16(p);
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = v.w[j];
    }
}
FN void group_u64(const u8 *p, u64 x[4]) {
    UNROLL for (u32 h = 0; h < 2; h++) {
        vec16 v = load_once16(p + 16 * h);
        x[2 * h] = (u64)v.w[1] << 32 | v.w[0];
        x[2 * h + 1] = (u64)v.w[3] << 32 | v.w[2];
    }
}
FN u64 vec_low(vec16 v) {
    return (u64)v.w[1] << 32 | v.w[0];
}
FN u64 vec_high(vec16 v) {
    return (u64)v.w[3] << 32 | v.w[2];
}
FN vec16 vec_of(u64 low, u64 high) {
    vec16 v;
    v.w[0] = (u32)low;
    v.w[1] = (u32)(low >> 32);
    v.w[2] = (u32)high;
    v.w[3] = (u32)(high >> 32);
    return v;
}
FN i128 i128_of(u64 low, u64 high) {
    return (i128)((u128)high << 64 | low);
}
FN i128 vec_i128(vec16 v) {
    return i128_of(vec_low(v), vec_high(v));
}
FN vec16 i128_vec(i128 x) {
    return vec_of((u64)x, (u64)((u128)x >> 64));
}
FN f64 f64_of(u64 bits) {
    return bits_f64(bits);
}

/* NULL flags of the group that starts at `row` (a multiple of four): bit j = row + j is NULL. */
FN u32 group_nulls(const u8 *nulls, u32 null_form, i64 row) {
    if (null_form == NULLS_BITS) {
        return ~(u32)(((const u64 *)nulls)[row >> 6] >> (row & 63)) & 15u;
    }
    if (null_form == NULLS_BYTES) {
        u32 w = *(const u32 *)(nulls + row);
        return (w & 1u) | (w >> 7 & 2u) | (w >> 14 & 4u) | (w >> 21 & 8u);
    }
    return 0;
}

FN b8 row_null(const u8 *nulls, u32 null_form, i64 row) {
    if (null_form == NULLS_BITS) {
        return (b8)(~(((const u64 *)nulls)[row >> 6] >> (row & 63)) & 1u);
    }
    return null_form == NULLS_BYTES ? (b8)(nulls[row] & 1u) : (b8)0;
}

/* Rows of a group that lie below `rows`, as four bits. */
FN u32 group_rows(i64 row, i64 rows) {
    i64 left = rows - row;
    return left >= 4 ? 15u : left <= 0 ? 0u : (1u << left) - 1u;
}

/* The same of a tile: the group begins at row `begin` of it, and `here` rows are there. */
FN u32 group_here(u32 begin, u32 here) {
    u32 left = begin < here ? here - begin : 0u;
    return left >= 4u ? 15u : (1u << left) - 1u;
}

/* Rows of a group from `first` on. */
FN u32 group_from(i64 row, i64 first) {
    i64 before = first - row;
    return before <= 0 ? 15u : before >= 4 ? 0u : 15u << before & 15u;
}

/* The same without those that are deleted: bit r of `gone` is row r. */
FN u32 group_live(i64 row, i64 rows, const u64 *gone) {
    u32 live = group_rows(row, rows);
    return live && gone ? live & ~(u32)(gone[row >> 6] >> (row & 63)) : live;
}

/* --- lists of rows -------------------------------------------------------------------------- */

/* Rows of a launch that wait until there is one for every thread. `counts` holds three words of shared
 * memory, all zero at first, of which `turn` is the one for now: it is read after the barrier of a
 * call, and set to zero before that of the next but one. */
struct b_list {
    u32 *rows; /* in shared memory */
    u32 *counts;
    u32 held; /* how many wait: the same for all threads, as is turn */
    u32 turn;
};

/* Adds the block's active rows, each as its distance from the tile's first, and that one's. One
 * barrier. */
FN void b_list_add(struct b_list *list, u32 act, u32 rows, u32 span, u32 first) {
    u32 *count = &list->counts[list->turn];
    list->turn = list->turn == 2u ? 0u : list->turn + 1u;
    if (w_ballot(act != 0)) {
        u32 mine = bits_set_u32(act);
        u32 upto = w_sum_upto_u32(mine);
        u32 base = t_lane() == 31u ? atom_add_u32(count, upto) : 0u;
        u32 at = list->held + w_from_u32(base, 31) + upto - mine;
        UNROLL for (u32 i = 0; i < rows; i++) {
            if (act >> i & 1u) {
                list->rows[at] = first + t_id() * 4u + i / 4u * span + i % 4u;
            }
            at += act >> i & 1u;
        }
    }
    if (t_id() == 0) {
        list->counts[list->turn] = 0;
    }
    b_sync();
    list->held += read_u32(count);
}

/* Whose the `no`th is, when thread t's begin at s_first[t]: the last that does not begin behind
 * it. */
FN u32 owner_of(const u32 *s_first, u32 count, u32 no) {
    u32 at = 0;
    UNROLL for (u32 by = count / 2u; by > 0; by /= 2u) {
        at += s_first[at + by] <= no ? by : 0u;
    }
    return at;
}

/* How many matches of a run are taken at once, so that those of a block are counted in 32 bits. */
FN u32 run_part(u32 at, u32 end) {
    return end - at < 65536u ? end - at : 65536u;
}

/* Of a row's matches those that this block takes, from the low half up to the high one: all, none
 * where they are so many that they are left to the next launch, and in that launch a share. */
FN u64 heavy_share(u32 *heavy, u32 least, u32 turn, u32 at, u32 end, u32 row) {
    u64 count = end - at;
    u32 first = at;
    if (turn) {
        at = first + (u32)(count * t_block() / t_blocks());
        end = first + (u32)(count * (t_block() + 1u) / t_blocks());
    } else if (heavy && count >= least) {
        u32 slot = atom_add_u32(heavy, 1);
        if (slot < HEAVY_ROWS) {
            heavy[1u + slot] = row;
            end = at;
        }
    }
    return (u64)end << 32 | at;
}

/* --- faults -------------------------------------------------------------------------------- */

/* EXPLAIN ANALYZE: the warp's active rows at one of the pipeline's places. */
FN_SLOW void w_count_rows(const u64 *report, u32 place, u32 act) {
    u64 *counts = (u64 *)report[REPORT_COUNTS];
    u32 rows = bits_set_u32(act);
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        rows += w_xor_u32(rows, mask);
    }
    if (t_lane() == 0 && rows) {
        atom_add_u64(&counts[t_block() % COUNT_COPIES * COUNT_PLACES + place], rows);
    }
}

FN u64 fault_word(u32 rank, i64 row, u32 fault) {
    return (u64)rank << 48 | ((u64)row & 0xffffffffffULL) << 8 | fault;
}

/* --- output -------------------------------------------------------------------------------- */

/* Adds a key to a bitmap; 0 when it was there. A look costs less than an exchange. */
FN u32 set_add(u32 *bits, i64 key) {
    u32 *word = bits + (key >> 5);
    u32 bit = 1u << (key & 31);
    return !(*word & bit) && !(atom_or_u32(word, bit) & bit);
}

/* Takes it out again: its row had no room. Whoever met it meanwhile dropped its own row, and comes
 * again as this one does. */
FN void set_remove(u32 *bits, i64 key) {
    (void)atom_and_u64((u64 *)bits + (key >> 6), ~((u64)1 << (key & 63)));
}

/* Adds a key to a table of them, of mask + 1 places and KEYS_APART more; 0 when it was there. A place
 * holds the key and one, 0 where it is free; keys of which that would be 0, or KEYS_GONE, have places
 * of their own behind. Where rows have no room any more, or the table has none, the row is dropped and
 * the step asks for more. */
FN u32 keys_add(u64 *places, u64 mask, i64 key, i64 capacity, u64 *report) {
    u64 word = (u64)key + 1u;
    if (word + 1u <= 1u) {
        return atom_cas_u64(&places[mask + 1u + (word & 1u)], 0, 1) == 0;
    }
    u64 at = hash_64((u64)key) & mask;
    for (u64 n = 0; n <= mask; n++) {
        u64 held = places[at];
        if (!held) {
            if ((i64)read_u64(&report[REPORT_ROWS]) >= capacity) {
                break;
            }
            held = atom_cas_u64(&places[at], 0, word);
            if (!held) {
                return 1;
            }
        }
        if (held == word) {
            return 0;
        }
        at = (at + 1u) & mask;
    }
    atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_OUTPUT);
    return 0;
}

/* As set_remove: the place stays taken, so that keys behind it are found. */
FN void keys_remove(u64 *places, u64 mask, i64 key) {
    u64 word = (u64)key + 1u;
    if (word + 1u <= 1u) {
        (void)atom_exch_u64(&places[mask + 1u + (word & 1u)], 0);
        return;
    }
    u64 at = hash_64((u64)key) & mask;
    while (read_u64(&places[at]) != word) {
        at = (at + 1u) & mask;
    }
    (void)atom_exch_u64(&places[at], KEYS_GONE);
}

/* The same of a key with a value, whose best word so far stands behind the bitmap: whether the key is new or the value
 * better. `turn` is ~0 where the greatest is the best. */
FN u32 set_better(u32 *bits, u64 *bests, i64 key, i64 value, u64 turn) {
    u64 word = ((u64)value ^ 1ULL << 63) ^ turn;
    u64 *best = bests + key;
    u32 added = set_add(bits, key);
    return (word < *best && word < atom_min_u64(best, word)) || added;
}

/* As set_remove: what the key had before is lost, so that worse rows may come again, which do no harm. */
FN void set_forget(u32 *bits, u64 *bests, i64 key) {
    set_remove(bits, key);
    bests[key] = ~(u64)0;
}

/* How many of the block's rows fit; asks for more room when they do not and no limit says to stop.
 */
FN u32 out_fits(struct b_place place, i64 capacity, i64 limit, u64 *report) {
    i64 room = capacity - (i64)place.base;
    u32 fits = room >= (i64)place.total ? place.total : room > 0 ? (u32)room : 0u;
    if (fits < place.total && limit < 0 && t_id() == 0) {
        atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_OUTPUT);
    }
    return fits;
}

/* --- indexes ------------------------------------------------------------------------------- */

/* Row + 1 of a unique key, 0 when absent. */
/* Whether a column of a variable is NULL in a row that was found. */
FN u32 col_null(const struct kcol *col, i64 row) {
    return col->null_bit ? (u32)((u64)row >> (col->null_bit - 1u)) & 1u
           : col->nulls  ? col->nulls[row]
                         : 0u;
}
FN u32 find_direct_unique(const struct kindex *ix, i64 key) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    return slot < ix->slot_count ? ix->heads[slot] : 0u;
}
/* Whether a key may be there: a bitmap's sectors, unlike the table's, mostly lie in a cache. */
FN u32 filter_has(const struct kindex *ix, i64 key) {
    u64 bit = ((u64)key >> ix->filter.shift & ix->filter.mask) - (u64)ix->filter.lo;
    return bit < ix->filter.count ? ix->filter.bits[bit >> 5] >> (bit & 31u) & 1u : 0u;
}
/* The same without a branch, so that those of many rows are on their way at once: rows that do not ask
 * (`on` is 0), or ask for what no bit stands for, read `spare`. */
FN u32 bits_test(const u32 *bits, u64 count, u64 bit, u32 on, const u32 *spare) {
    on &= bit < count;
    const u32 *at = on ? bits + (bit >> 5) : spare;
    return *at >> (bit & 31u) & on;
}
FN u32 filter_test(const struct kindex *ix, i64 key, u32 on, const u32 *spare) {
    return bits_test(ix->filter.bits, ix->filter.count,
                     ((u64)key >> ix->filter.shift & ix->filter.mask) - (u64)ix->filter.lo, on,
                     spare);
}
FN u32 filter_test_field(const struct kindex *ix, u64 field, u32 on, const u32 *spare) {
    return bits_test(ix->filter.bits, ix->filter.count,
                     (field & ix->filter.mask) - (u64)ix->filter.lo, on, spare);
}
/* The same in 32 bits, where that is exact: see is_narrow in gpu_run.c. The first word is there. */
FN u32 bits_test_32(const u32 *bits, u32 stride, u32 count, u32 bit, u32 on) {
    on &= (u32)(bit < count);
    return bits[(on ? bit >> 5 : 0u) * (u64)stride] >> (bit & 31u) & on;
}
FN u32 filter_test_32(const struct kindex *ix, u32 key, u32 on) {
    return bits_test_32(ix->filter.bits, 1, (u32)ix->filter.count,
                        (key & (u32)ix->filter.mask) - (u32)ix->filter.lo, on);
}
/* A block's copy of the lowest bits of keys. */
FN u32 near_has(const u32 *s_near, u64 key) {
    u32 bit = (u32)key & (NEAR_BITS - 1u);
    return s_near[bit >> 5] >> (bit & 31u) & 1u;
}
/* The slots where searches begin. Those that go on `_from` one have loaded it already, so that the
 * first loads of many rows can overlap. A number past 32 bits is nowhere: what was seen is 0. */
FN u64 pair_number(const struct kindex *ix, i64 key) {
    return (u64)key - (u64)ix->key_lo;
}
FN u64 pair_first(const struct kindex *ix, u64 number) {
    return hash_32((u32)number) & (ix->slot_count - 1);
}
FN u32 find_pair_from(const struct kindex *ix, u64 number, u64 slot, u64 pair) {
    TABLE_WALK_SHORT(slot, ix->slot_count - 1, pair, ix->slots[slot],
                     pair >> 32 && (u32)pair != (u32)number)
    return (u32)(pair >> 32);
}
FN u32 find_pair_unique(const struct kindex *ix, i64 key) {
    u64 number = pair_number(ix, key);
    u64 slot = pair_first(ix, number);
    return find_pair_from(ix, number, slot, number >> 32 ? 0u : ix->slots[slot]);
}
FN u64 slot_first(const struct kindex *ix, i64 key) {
    return hash_64((u64)key) & (ix->slot_count - 1);
}
FN u64 find_slot_from(const struct kindex *ix, i64 key, u64 slot, vec16 held) {
    TABLE_WALK_SHORT(slot, ix->slot_count - 1, held, load16(ix->slots + 2 * slot),
                     vec_high(held) && (i64)vec_low(held) != key)
    return vec_high(held);
}
/* A set: members are row 0. */
FN u32 find_bits(const struct kindex *ix, i64 key) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    return slot < ix->slot_count ? ix->heads[slot >> 5] >> (slot & 31u) & 1u : 0u;
}
FN u32 bits_test_set(const struct kindex *ix, i64 key, u32 on, const u32 *spare) {
    return bits_test(ix->heads, ix->slot_count, (u64)key - (u64)ix->key_lo, on, spare);
}
FN u32 bits_test_set_32(const struct kindex *ix, u32 key, u32 on) {
    return bits_test_32(ix->heads, 1, (u32)ix->slot_count, key - (u32)ix->key_lo, on);
}
/* Keys that are there are numbered: bits of a word, and how many there are before it. */
FN u64 rank_word(const struct kindex *ix, u64 slot) {
    return slot < ix->slot_count ? ix->slots[slot >> 5] : 0u;
}
FN u32 rank_test(const struct kindex *ix, i64 key, u32 on, const u32 *spare) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    on &= slot < ix->slot_count;
    const u32 *at = on ? (const u32 *)&ix->slots[slot >> 5] : spare; /* the lower half */
    return *at >> (slot & 31u) & on;
}
FN u32 rank_test_32(const struct kindex *ix, u32 key, u32 on) {
    return bits_test_32((const u32 *)ix->slots, 2, (u32)ix->slot_count, key - (u32)ix->key_lo, on);
}
FN u32 rank_of(u64 word, u64 slot) {
    return (u32)(word >> 32) + bits_set_u32((u32)word & ((1u << (slot & 31u)) - 1u));
}
FN u32 find_rank_from(const struct kindex *ix, i64 key, u64 word) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    return (u32)word >> (slot & 31u) & 1u ? ix->heads[rank_of(word, slot)] + 1u : 0u;
}
FN u32 find_rank_unique(const struct kindex *ix, i64 key) {
    return find_rank_from(ix, key, rank_word(ix, (u64)key - (u64)ix->key_lo));
}
/* The run of a key: first in the low half, end in the high half. */
FN u64 find_direct_run(const struct kindex *ix, i64 key) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    return slot < ix->slot_count ? (u64)ix->heads[slot + 1] << 32 | ix->heads[slot] : 0u;
}
FN u64 find_rank_run(const struct kindex *ix, i64 key) {
    u64 slot = (u64)key - (u64)ix->key_lo;
    u64 word = rank_word(ix, slot);
    if (!((u32)word >> (slot & 31u) & 1u)) {
        return 0;
    }
    u32 rank = rank_of(word, slot);
    return (u64)ix->heads[rank + 1u] << 32 | ix->heads[rank];
}
FN u64 find_pair_run(const struct kindex *ix, i64 key) {
    u64 number = pair_number(ix, key);
    if (number >> 32) {
        return 0;
    }
    u64 slot = pair_first(ix, number);
    u64 pair = ix->slots[slot];
    TABLE_WALK_SHORT(slot, ix->slot_count - 1, pair, ix->slots[slot],
                     (u32)pair != (u32)number && pair >> 32 != ix->slots[slot + 1] >> 32)
    return ix->slots[slot + 1] >> 32 << 32 | pair >> 32;
}
FN u64 find_slot_run(const struct kindex *ix, i64 key) {
    u64 slot = slot_first(ix, key);
    return find_slot_from(ix, key, slot, load16(ix->slots + 2 * slot));
}
/* A run whatever the form. Unique keys give the run [row, row + 1) of row numbers themselves. */
FN u64 find_run(const struct kindex *ix, i64 key) {
    if (ix->filter.bits && !filter_has(ix, key)) {
        return 0;
    }
    if (ix->form == KINDEX_RUNS) {
        return find_slot_run(ix, key);
    }
    if (ix->unique) {
        u32 head = ix->form == KINDEX_BITS    ? find_bits(ix, key)
                   : ix->form == KINDEX_RANK  ? find_rank_unique(ix, key)
                   : ix->form == KINDEX_PAIRS ? find_pair_unique(ix, key)
                                              : find_direct_unique(ix, key);
        return head ? (u64)head << 32 | (head - 1u) : 0u;
    }
    return ix->form == KINDEX_PAIRS  ? find_pair_run(ix, key)
           : ix->form == KINDEX_RANK ? find_rank_run(ix, key)
                                     : find_direct_run(ix, key);
}
/* The run of a row that has no match and stays nonetheless: one row, number -1. */
#define RUN_NONE 0xfffffffeu
FN u64 run_outer(u64 run) {
    return (u32)run == (u32)(run >> 32) ? 0xfffffffffffffffeULL : run;
}
FN i64 run_row(const struct kindex *ix, u32 at) {
    return at == RUN_NONE ? -1 : (i64)(ix->unique ? at : ix->rows[at]);
}

/* --- aggregation --------------------------------------------------------------------------- */

#define X(A, name, identity, expr) WORD_##name,
enum word_op { WF_WORDS(X, ) WORD_COUNT };
#undef X

#define AGG_ATOM_ADD(p, x) ((x) ? (void)atom_add_u64((p), (u64)(x)) : (void)0)
#define AGG_ATOM_MIN(p, x) ((x) != I64_MAX ? (void)atom_min_i64((i64 *)(p), (x)) : (void)0)
#define AGG_ATOM_MAX(p, x) ((x) != I64_MIN ? (void)atom_max_i64((i64 *)(p), (x)) : (void)0)
#define AGG_ATOM_AND(p, x) ((x) != -1 ? (void)atom_and_u64((p), (u64)(x)) : (void)0)
#define AGG_ATOM_OR(p, x) ((x) ? (void)atom_or_u64((p), (u64)(x)) : (void)0)
#define AGG_ATOM_XOR(p, x) ((x) ? (void)atom_xor_u64((p), (u64)(x)) : (void)0)

#define AGG_ATOM_FADD(p, x) agg_atom_fadd((p), (x))
FN void agg_atom_fadd(u64 *p, i64 x) {
    u64 old = read_u64(p);
    u64 seen = old + 1u;
    while (seen != old) {
        seen = old;
        old = atom_cas_u64(p, seen, f64_bits(bits_f64(seen) + bits_f64((u64)x)));
    }
}

FN i64 word_identity(u32 op) {
    switch (op) {
#define X(A, name, identity, expr) \
    case WORD_##name:              \
        return identity;
        WF_WORDS(X, )
#undef X
    default:
        return 0;
    }
}
FN i64 word_merge(u32 op, i64 w, i64 x) {
    switch (op) {
#define X(A, name, identity, expr) \
    case WORD_##name:              \
        return (i64)(expr);
        WF_WORDS(X, )
#undef X
    default:
        return 0;
    }
}
FN void word_atom(u32 op, u64 *p, i64 x) {
    switch (op) {
#define X(A, name, identity, expr) \
    case WORD_##name:              \
        AGG_ATOM_##name(p, x);     \
        break;
        WF_WORDS(X, )
#undef X
    default:
        break;
    }
}

/* Whether a key is of the part that the table is for. */
FN i32 agg_is_of_part(const struct kagg *agg, u64 key) {
    return !agg->part_mask ||
           ((u32)(hash_64(key) >> AGG_PART_SHIFT) & agg->part_mask) == agg->part;
}

/* Word `at` of a table that all share, when nobody adds to it. */
FN u64 agg_held(const struct kagg *agg, u64 at) {
    return agg->narrow ? (u64)((const u32 *)agg->state)[at] : agg->state[at];
}
/* Adds to a word of a narrow one. */
FN void narrow_add(u32 *p, i64 x) {
    if (x) {
        (void)atom_add_u32(p, (u32)x);
    }
}

/* Goes on where the slot that a key's hash names was seen to hold `found`, another key or none; adds
 * new groups to *fresh. In line, since what is called saves registers and a table of many groups is
 * searched by most rows (Q18 took 1.4 times as long); but not unrolled, in each of a thread's rows.
 */
FN u64 *agg_search(const struct kagg *agg, u64 stride, i64 key, u64 found, u64 *report,
                   u32 *fresh) {
    u64 *state = agg->state;
    u64 slot_count = agg->slot_count;
    if (!agg_is_of_part(agg, (u64)key)) {
        return (u64 *)0;
    }
    if ((u64)key == AGG_EMPTY) {
        u64 *last = state + slot_count * stride;
        if (read_u64(last) != AGG_EMPTY && atom_cas_u64(last, 0, AGG_EMPTY) == 0) {
            ++*fresh;
        }
        return last;
    }
    u64 slot = hash_64((u64)key) & (slot_count - 1);
    NO_UNROLL for (u32 tries = 0; tries < AGG_TRIES; tries++) {
        u64 *at = state + slot * stride;
        found = tries ? read_u64(at) : found;
        if (found == AGG_EMPTY) {
            found = atom_cas_u64(at, AGG_EMPTY, (u64)key);
            if (found == AGG_EMPTY) {
                ++*fresh;
                return at;
            }
        }
        if (found == (u64)key) {
            return at;
        }
        slot = (slot + 1) & (slot_count - 1);
    }
    atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_TABLE);
    return (u64 *)0;
}
/* Where a key is looked for first. */
FN u64 *agg_first(const struct kagg *agg, u32 word_count, i64 key) {
    return agg->state + (hash_64((u64)key) & (agg->slot_count - 1)) * (1u + word_count);
}
/* The state of a key, inserted when new; 0 when the table is full, which asks for a larger one, or
 * when the key is of another part.
 * `found` was seen at its first place, so that the first loads of many rows can overlap. */
FN u64 *agg_find_from(const struct kagg *agg, u32 word_count, i64 key, u64 *at, u64 found,
                      u64 *report, u32 *fresh) {
    return found == (u64)key && found != AGG_EMPTY
               ? at
               : agg_search(agg, 1u + word_count, key, found, report, fresh);
}
FN u64 *agg_find(const struct kagg *agg, u32 word_count, i64 key, u64 *report, u32 *fresh) {
    u64 *at = agg_first(agg, word_count, key);
    return agg_find_from(agg, word_count, key, at, read_u64(at), report, fresh);
}
/* Counts new groups, many at once: every one would wait for all others at the same word. */
FN void agg_count(const struct kagg *agg, u32 fresh, u64 *report) {
    if (fresh && atom_add_u64(&report[REPORT_GROUPS], fresh) + fresh > agg->group_limit) {
        atom_or_u32((u32 *)&report[REPORT_RETRY], RETRY_TABLE);
    }
}
FN void w_agg_count(const struct kagg *agg, u32 fresh, u64 *report) {
    if (w_ballot(fresh != 0)) {
        NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
            fresh += w_xor_u32(fresh, mask);
        }
        agg_count(agg, t_lane() == 0 ? fresh : 0u, report);
    }
}

/* Adds in shared memory, which has atomics of 32 bits only: those of 64 are loops. The upper half
 * rarely changes: small negative numbers carry into it what their own upper half takes away. */
FN void atom_add_halves(u64 *p, u64 x) {
    u32 low = (u32)x;
    u32 before = low ? atom_add_u32((u32 *)p, low) : 0u;
    u32 high = (u32)(x >> 32) + (u32)(before + low < low);
    if (high) {
        atom_add_u32((u32 *)p + 1, high);
    }
}

/* A word in shared memory that threads share. */
FN void near_add(u32 op, u64 *p, i64 x) {
    if (op == WORD_ADD) {
        atom_add_halves(p, (u64)x);
    } else {
        word_atom(op, p, x);
    }
}

/* A small hash table of the block's own in front of the one that all share: groups that come first
 * or often meet there. A key has few places; the slot, or FRONT_NONE where others have them. */
#define FRONT_TRIES 4u
#define FRONT_NONE 0xffffffffu
FN u32 front_find(u64 *keys, u32 slot_count, i64 key) {
    u32 slot = (u32)(hash_64((u64)key) >> 32) & (slot_count - 1u);
    if ((u64)key == AGG_EMPTY) {
        return FRONT_NONE;
    }
    NO_UNROLL for (u32 tries = 0; tries < FRONT_TRIES; tries++) {
        u64 held = read_u64(&keys[slot]);
        held = held == AGG_EMPTY ? atom_cas_u64(&keys[slot], AGG_EMPTY, (u64)key) : held;
        if (held == AGG_EMPTY || held == (u64)key) {
            return slot;
        }
        slot = (slot + 1u) & (slot_count - 1u);
    }
    return FRONT_NONE;
}

/* Whether a warp goes on looking there: as long as most of its threads have credit, which rows that
 * were found give and rows that were not take. Where groups are many it is soon used up. */
#define FRONT_CREDIT_FIRST 8
#define FRONT_CREDIT_MOST 64
FN i32 front_credit(i32 credit, u32 rows, u32 left) {
    credit += (i32)bits_set_u32(rows) - 2 * (i32)bits_set_u32(left);
    return credit < FRONT_CREDIT_MOST ? credit : FRONT_CREDIT_MOST;
}
FN u32 w_front_pays(i32 credit) {
    return bits_set_u32(w_ballot(credit > 0)) >= 16u;
}

/* One row into a table of this block in shared memory: word w of slot s of copy c is at
 * (s * stride + w) * copies + c. Threads that share a copy use atomics. */
FN void agg_shared_word(u64 *table, u32 copies, u64 at, u32 op, i64 x) {
    u64 *p = table + at * copies + (t_id() & (copies - 1u));
    if (copies == t_count()) {
        *p = (u64)word_merge(op, (i64)*p, x);
    } else {
        near_add(op, p, x);
    }
}

/* The lowest bits of x, as a number without or with a sign. */
FN i64 bits_below(u64 x, u32 bits) {
    return (i64)(x & (((u64)1 << bits) - 1u));
}
FN i64 bits_signed(u64 x, u32 bits) {
    return (i64)(x << (64u - bits)) >> (64u - bits);
}

/* One word of all lanes; every lane has it then. */
FN i64 w_word_merge(u32 op, i64 x) {
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        x = word_merge(op, x, (i64)w_xor_u64((u64)x, mask));
    }
    return x;
}

/* Limbs of an exact sum that a value or its square touches: the first, and how many at most (53 or
 * 106 bits of 32 each). */
#define LIMB_COUNT(square) ((square) ? 5u : 3u)
FN i32 limb_first(f64 x, i32 lsb, u32 square) {
    i32 biased = (i32)(f64_bits(x) >> 52 & 2047u);
    i32 low = (biased ? biased : 1) - 1075;
    return ((square ? 2 * low : low) - lsb) >> 5;
}

/* Sets the block's tables up; ends with a barrier. */
FN void b_agg_begin(u64 *table, const struct kagg *agg, u32 head, u32 word_count) {
    u32 copies = agg->copies;
    u32 stride = head + word_count;
    u32 end = (u32)agg->slot_count * stride * copies; /* shared memory is small */
    NO_UNROLL for (u32 at = t_id(); at < end; at += t_count()) {
        u32 word = at / copies % stride;
        table[at] = word >= head ? (u64)word_identity(agg->word_ops[word - head]) : 0u;
    }
    b_sync();
}

/* Merges the block's tables into the state; starts with a barrier. */
FN void b_agg_end(u64 *table, const struct kagg *agg, u32 head, u32 word_count) {
    u32 copies = agg->copies;
    u32 stride = head + word_count;
    u32 end = (u32)agg->slot_count * stride;
    b_sync();
    NO_UNROLL for (u32 at = t_id(); at < end; at += t_count()) {
        u32 word = at % stride;
        u32 op = word >= head ? agg->word_ops[word - head] : (u32)WORD_ADD;
        i64 x = (i64)table[at * copies + (t_id() & (copies - 1u))];
        NO_UNROLL for (u32 c = 1; c < copies; c++) {
            u32 turn = (c + t_id()) & (copies - 1u); /* so that threads meet different banks */
            x = word_merge(op, x, (i64)table[at * copies + turn]);
        }
        word_atom(op, &agg->state[at], x);
    }
}

#endif

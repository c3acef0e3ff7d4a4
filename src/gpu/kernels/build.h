/* build.h: kernels that are not pipelines: building an index over rows, setting up and reading out
 * an aggregation, the turns between pipelines of a loop.
 *
 * A build first assumes unique keys and one launch; the first duplicate asks for the general form,
 * runs of row numbers: count per slot, exclusive sums (scan.h), scatter. A slot of two words is
 * claimed through its row number, and the claimant's key is read from the rows themselves, so nobody
 * waits for a key to be written. */
#include "block.h"
#include "intern.h"

#define BUILD_ROWS(i, count) \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < (count); i += (i64)t_blocks() * t_count())

/* The same in rounds that all lanes of a warp come to; `i` may be past the end. */
#define BUILD_ROUNDS(i, from, count)                                                                    \
    for (i64 i = (from) + (i64)t_block() * t_count() + t_id(); i - (i64)t_lane() < (count);             \
         i += (i64)t_blocks() * t_count())

/* Adds `by` to a counter for every lane that is `there`, and says what it was before, as if they came one after
 * the other. Lanes that mean the same counter go there once: the card performs what is done to one address one by
 * one, so that a key with very many rows would keep everybody waiting (decision 0055). All lanes come. */
FN u32 w_count_at(u32 *counters, u64 at, u32 there, u32 by) {
    const u64 place = there ? at : ~0ULL;
    u32 mates = w_match((u32)place);
    if (w_ballot((i32)(place >> 32 != 0))) {
        mates &= w_match((u32)(place >> 32));
    }
    const u32 below = bits_set_u32(mates & ((1u << t_lane()) - 1u));
    u32 before = 0;
    if (there && !below) {
        before = atom_add_u32(&counters[at], bits_set_u32(mates) * by);
    }
    return w_from_u32(before, bits_set_u32((mates & (0u - mates)) - 1u)) + below * by;
}

/* Whether a lane before this one has its key. All lanes come. */
FN_SLOW u32 w_key_mates(u64 key, u32 there) {
    const u32 mates = w_match(there ? (u32)key ^ (u32)(key >> 32) : ~t_lane());
    const u32 first = bits_set_u32((mates & (0u - mates)) - 1u);
    const u64 theirs = w_from_u64(key, first);
    const u32 they = w_from_u32(there, first);
    return there && they && first < t_lane() && theirs == key;
}

/* The same; not all that do are found where keys are mixed. Most keys have one row, so that neighbours are looked
 * at first. */
FN u32 w_key_repeats(u64 key, u32 there) {
    const u32 mix = there ? (u32)key ^ (u32)(key >> 32) : t_lane();
    const u32 before = w_up_u32(mix, 1);
    const u32 near = there && t_lane() && before == mix;
    return w_ballot((i32)near) ? w_key_mates(key, there) : 0u;
}

/* The rows that are indexed: as many as the host knows of, or as a step before this one gave. */
#define BUILD_COUNT(args) ((args).rows_at ? *(args).rows_at : (args).row_count)

/* Claims a slot of two words for row i's key; whether the key was there. */
FN u32 build_claim(const struct kbuild *b, i64 i) {
    i64 key = b->key[i];
    u64 run = (u64)(i + 1) << 32 | (u64)i;
    u64 mask = b->slot_count - 1;
    u64 slot = hash_64((u64)key) & mask;
    u64 held = atom_cas_u64(&b->slots[2 * slot + 1], 0, run);
    TABLE_WALK(slot, mask, held, atom_cas_u64(&b->slots[2 * slot + 1], 0, run),
               held && b->key[(held >> 32) - 1] != key)
    if (!held) {
        b->slots[2 * slot] = (u64)key;
    }
    return held != 0;
}

/* The slot of a key that has one: those before it are taken, so that all keys met were written. */
FN u64 build_slot(const struct kbuild *b, i64 key) {
    u64 mask = b->slot_count - 1;
    u64 number = (u64)key - (u64)b->key_lo;
    if (b->form == KINDEX_DIRECT) {
        return number;
    }
    if (b->form == KINDEX_RANK) {
        return rank_of(b->slots[number >> 5], number);
    }
    if (b->form == KINDEX_PAIRS) {
        u64 slot = hash_32((u32)number) & mask;
        u64 held = b->slots[slot];
        TABLE_WALK(slot, mask, held, b->slots[slot], (u32)held != (u32)number)
        return slot;
    }
    u64 slot = hash_64((u64)key) & mask;
    u64 held = b->slots[2 * slot];
    TABLE_WALK(slot, mask, held, b->slots[2 * slot], held != (u64)key)
    return slot;
}

FN u64 pack_field(const struct kpack_field *f, i64 i, u32 *bad) {
    const i64 value = f->bytes == 8   ? ((const i64 *)f->data)[i]
                      : f->bytes == 4 ? ((const i32 *)f->data)[i]
                      : f->bytes      ? f->data[i]
                                      : f->lo;
    const u64 above = (u64)value - (u64)f->lo;
    const u64 null = f->null_bit && f->nulls && f->nulls[i];
    *bad |= above >> f->bits != 0 && !null;
    return (above & ((1ULL << f->bits) - 1u)) << f->shift | (f->null_bit ? null << (f->null_bit - 1u) : 0u);
}

KERNEL(k_build_pack, struct kbuild_pack, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 bad = 0;
    BUILD_ROWS(i, row_count) {
        u64 packed = 0;
        for (u32 k = 0; k < args.count; k++) {
            packed |= pack_field(&args.fields[k], i, &bad);
        }
        args.out[i] = (u32)packed;
    }
    if (bad) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_TABLE);
    }
}

/* What the index says of row i. */
FN u32 build_value(const struct kbuild *b, i64 i) {
    return b->packed ? b->packed[i] : (u32)i;
}

/* Direct addressing, four rows a thread: all their keys, then all their places are on the way at once.
 * Whether a key was there. */
FN u32 build_direct(const struct kbuild *b, i64 row_count) {
    u32 duplicate = 0;
    const i64 step = (i64)t_count();
    for (i64 first = (i64)t_block() * step * 4 + t_id(); first - (i64)t_lane() < row_count;
         first += (i64)t_blocks() * step * 4) {
        u64 number[4];
        u32 there = 0;
        UNROLL for (u32 k = 0; k < 4; k++) {
            i64 i = first + (i64)k * step;
            u32 has = i < row_count && (!b->nulls || !b->nulls[i]);
            number[k] = has ? (u64)b->key[i] - (u64)b->key_lo : 0u;
            there |= has << k;
        }
        UNROLL for (u32 k = 0; k < 4; k++) {
            const u32 repeats = w_key_repeats(number[k], there >> k & 1u);
            duplicate |= repeats;
            if (there >> k & 1u && !repeats) {
                const u32 value = build_value(b, first + (i64)k * step);
                duplicate |= atom_cas_u32(&b->heads[number[k]], 0, value + 1u);
            }
        }
    }
    return duplicate;
}

/* Lookups of memory by as many threads as there may be. */
#undef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 8
KERNEL(k_build_unique, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 duplicate = 0;
    const u32 direct = args.form == KINDEX_DIRECT;
    if (direct) {
        duplicate = build_direct(&args, row_count);
    }
    BUILD_ROUNDS(i, 0, direct ? 0 : row_count) {
        const u32 there = i < row_count && (!args.nulls || !args.nulls[i]);
        const u32 repeats = w_key_repeats(there ? (u64)args.key[i] : 0u, there);
        duplicate |= repeats;
        if (there && !repeats) {
            u64 number = (u64)args.key[i] - (u64)args.key_lo;
            if (args.form == KINDEX_PAIRS) {
                u64 slot = hash_32((u32)number) & (args.slot_count - 1);
                duplicate |= pair_put_4(args.slots, args.slot_count - 1, 0, (u32)number,
                                        args.set ? 1u : build_value(&args, i) + 1u, args.set, slot);
            } else if (args.form == KINDEX_RUNS) {
                duplicate |= build_claim(&args, i);
            } else { /* RANK: that keys are unique is known */
                args.heads[rank_of(args.slots[number >> 5], number)] = build_value(&args, i);
            }
        }
    }
    if (duplicate && !args.set) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_DUPLICATE);
    }
}

#undef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 1

/* Slots of two words, whose rows have told keys apart, get what the index says of these. */
KERNEL(k_build_swap, struct kbuild, 256) {
    BUILD_ROWS(slot, (i64)args.slot_count) {
        const u64 run = args.slots[2 * slot + 1];
        if (run) {
            const u32 value = args.packed[(u32)run];
            args.slots[2 * slot + 1] = (u64)(value + 1u) << 32 | value;
        }
    }
}

/* Adds what the lanes of a warp counted. */
FN void w_report(u64 *report, u32 word, u32 count) {
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        count += w_xor_u32(count, mask);
    }
    if (t_lane() == 0 && count) {
        atom_add_u64(&report[word], count);
    }
}

/* Neighbours mostly share a word: they are put together first. Lanes hand on what those before them
 * have of the same word, and the last one of a word sets it. */
KERNEL(k_build_bits, struct kbits, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 rows = 0;
    for (i64 first = (i64)t_block() * t_count(); first < row_count;
         first += (i64)t_blocks() * t_count()) {
        i64 i = first + t_id();
        u64 bit = ~0ULL;
        if (i < row_count && (!args.nulls || !args.nulls[i])) {
            bit = ((u64)args.key[i] >> args.to.shift & args.to.mask) - (u64)args.to.lo;
        }
        u32 there = bit < args.to.count;
        rows += there;
        u32 bits = there ? 1u << (bit & 31u) : 0u;
        u32 word = there ? (u32)(bit >> 5) : ~0u; /* no card has 2^32 of them */
        UNROLL for (u32 by = 1; by < 32; by *= 2) {
            u32 their_word = w_up_u32(word, by);
            u32 their_bits = w_up_u32(bits, by);
            bits |= t_lane() >= by && their_word == word ? their_bits : 0u;
        }
        u32 next = w_from_u32(word, (t_lane() + 1u) & 31u);
        if (bits && (t_lane() == 31u || next != word) &&
            (read_u32(&args.to.bits[word]) & bits) != bits) {
            atom_or_u32(&args.to.bits[word], bits);
        }
    }
    if (args.report) {
        w_report(args.report, REPORT_COUNTS, rows);
    }
}

KERNEL(k_bits_count, struct kbits, 256) {
    u32 count = 0;
    BUILD_ROWS(i, (i64)(args.to.count >> 5) + 1) {
        count += bits_set_u32(args.to.bits[i]);
    }
    w_report(args.report, REPORT_ROWS, count);
}

/* The same, and for every RANK_WORDS words: exclusive sums of those begin the keys' numbers. */
KERNEL(k_rank_count, struct kbits, 256) {
    SHARED(u32, s_sums, 32);
    u64 words = (args.to.count >> 5) + 1u;
    u32 count = 0;
    for (u64 part = t_block(); part * RANK_WORDS < words; part += t_blocks()) {
        u32 set = 0;
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            u64 at = part * RANK_WORDS + k * 256u + t_id();
            set += at < words ? bits_set_u32(args.to.bits[at]) : 0u;
        }
        u32 all = 0;
        b_sum_before_u32(set, 256, s_sums, &all);
        b_sync();
        if (t_id() == 0) {
            args.before[part] = all;
        }
        count += set;
    }
    w_report(args.report, REPORT_ROWS, count);
}

KERNEL(k_rank_words, struct kbits, 256) {
    SHARED(u32, s_sums, 32);
    u64 words = (args.to.count >> 5) + 1u;
    for (u64 part = t_block(); part * RANK_WORDS < words; part += t_blocks()) {
        u64 first = part * RANK_WORDS + t_id() * (RANK_WORDS / 256u);
        u32 bits[RANK_WORDS / 256u];
        u32 set = 0;
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            bits[k] = first + k < words ? args.to.bits[first + k] : 0u;
            set += bits_set_u32(bits[k]);
        }
        u32 all = 0;
        u32 before = args.before[part] + b_sum_before_u32(set, 256, s_sums, &all);
        b_sync();
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            if (first + k < words) {
                args.words[first + k] = (u64)before << 32 | bits[k];
            }
            before += bits_set_u32(bits[k]);
        }
    }
}

/* Slots that a key's number names: what is counted in them become the heads. */
FN u32 build_is_plain(const struct kbuild *b) {
    return b->form == KINDEX_DIRECT || b->form == KINDEX_RANK;
}

/* Of rows in the order of their key: whether the one before has the same. */
FN u32 build_follows(const struct kbuild *b, i64 i) {
    return i > 0 && b->key[i] == b->key[i - 1];
}

/* cursor[slot] counts the rows of a slot; all keys have one since k_build_unique. A row keeps its slot,
 * or, where that is found at once, how many came before it. */
KERNEL(k_build_count, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 longest = 0;
    u32 twins = 0;
    BUILD_ROUNDS(i, 0, row_count) {
        const u32 here = i < row_count;
        const u32 there = here && (!args.nulls || !args.nulls[i]);
        const u64 slot = there ? build_slot(&args, args.key[i]) : 0u;
        const u32 before = w_count_at(args.cursor, slot, there, 1);
        if (there) {
            longest = before >= longest ? before + 1u : longest;
        }
        if (here) {
            args.slot_of[i] = !there ? 0xffffffffu : build_is_plain(&args) ? before : (u32)slot;
            twins += args.values && build_follows(&args, i) && args.values[i] == args.values[i - 1];
        }
    }
    if (twins) {
        atom_add_u64(&args.report[REPORT_GROUPS], twins);
    }
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        u32 other = w_xor_u32(longest, mask);
        longest = other > longest ? other : longest;
    }
    if (t_lane() == 0 && longest > 1) {
        atom_max_u64(&args.report[REPORT_ROWS], longest);
    }
}

/* cursor holds exclusive sums, slot_count + 1 of them: writes the starts, or starts and ends, to the
 * slots of a hash table. */
KERNEL(k_build_starts, struct kbuild, 256) {
    i64 slots = (i64)args.slot_count;
    BUILD_ROWS(i, slots + 1) {
        u32 from = args.cursor[i];
        u32 to = i < slots ? args.cursor[i + 1] : from;
        if (args.form == KINDEX_PAIRS) {
            args.slots[i] = (u64)from << 32 | (i < slots ? (u32)args.slots[i] : 0u);
        } else if (i < slots) {
            args.slots[2 * i + 1] = from != to ? (u64)to << 32 | from : 0u;
        }
    }
}

/* Rows in the order of their key stay in it: what a slot's cursor holds is from here on the distance of
 * its rows' places from their numbers. */
KERNEL(k_build_firsts, struct kbuild, 256) {
    BUILD_ROWS(i, args.row_count) {
        if (!build_follows(&args, i)) {
            args.cursor[args.slot_of[i]] -= (u32)i;
        }
    }
}

KERNEL(k_build_scatter, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    const u32 counts = !args.values && !build_is_plain(&args);
    BUILD_ROUNDS(i, 0, row_count) {
        const u32 slot_of = i < row_count ? args.slot_of[i] : 0xffffffffu;
        const u32 there = slot_of != 0xffffffffu;
        const u32 place = counts ? w_count_at(args.cursor, slot_of, there, 1) : 0u;
        if (!there) {
            continue;
        }
        if (args.values) {
            args.rows[build_is_plain(&args) ? (u32)i : args.cursor[slot_of] + (u32)i] = (u32)i;
        } else {
            args.rows[counts ? place : args.cursor[build_slot(&args, args.key[i])] + slot_of] = (u32)i;
        }
    }
}

/* --- indexes that grow ----------------------------------------------------------------------- */

/* Rows are added by three kernels: their keys get slots and are counted there, runs without room for what
 * is counted move to where they have it, the rows' numbers are put behind those of their runs. A run of n
 * rows has room for the next power of two, so that all additions together copy each row number about
 * once. Without room the report says so, and what the index then is nobody knows. */

#define GROW_FULL(args) (read_u64(&(args).report[REPORT_RETRY]) != 0)

/* The slot of row i's key, which it may make. ~0: there is none left. */
FN u64 grow_slot(const struct kgrow *g, i64 i) {
    const i64 key = g->key[i];
    const u64 mask = g->slot_count - 1;
    u64 slot = hash_64((u64)key) & mask;
    for (;;) {
        u32 owner = read_u32(&g->owners[slot]);
        if (!owner) {
            if (read_u64(&g->words[GROW_KEYS]) >= g->key_limit) {
                return ~0ULL;
            }
            owner = atom_cas_u32(&g->owners[slot], 0, (u32)i + 1u);
            if (!owner) {
                g->slots[2 * slot] = (u64)key;
                atom_take_u64(&g->words[GROW_KEYS], 1);
                return slot;
            }
        }
        if (g->key[owner - 1u] == key) {
            return slot;
        }
        slot = (slot + 1) & mask;
    }
}

KERNEL(k_grow_count, struct kgrow, 256) {
    const i64 end = args.range->end;
    u32 full = 0;
    BUILD_ROUNDS(i, args.range->first, end) {
        const u32 asks = !full && i < end && !(args.nulls && args.nulls[i]);
        const u64 slot = asks ? grow_slot(&args, i) : 0u;
        full |= slot == ~0ULL;
        const u32 there = asks && !full;
        const u32 before = w_count_at(args.more, slot, there, 1);
        if (there && !before) {
            args.touched[atom_take_u64(&args.report[REPORT_GROUPS], 1)] = (u32)slot;
        }
    }
    if (full) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_TABLE);
    }
}

/* The least power of two that is no less. */
FN u64 grow_room(u64 rows) {
    u64 room = rows ? 1u : 0u;
    while (room < rows) {
        room *= 2;
    }
    return room;
}

/* A warp a run. */
KERNEL(k_grow_place, struct kgrow, 256) {
    if (GROW_FULL(args)) {
        return;
    }
    const u64 count = args.report[REPORT_GROUPS];
    const u64 warps = (u64)t_blocks() * (t_count() / 32u);
    for (u64 n = (u64)t_block() * (t_count() / 32u) + t_id() / 32u; n < count; n += warps) {
        const u32 slot = args.touched[n];
        const u64 run = args.slots[2u * (u64)slot + 1u];
        const u64 from = (u32)run;
        const u64 had = (run >> 32) - from;
        const u64 has = had + args.more[slot];
        const u64 room = grow_room(has);
        const u32 moves = has > grow_room(had);
        u64 to = moves && t_lane() == 0 ? atom_add_u64(&args.words[GROW_USED], room) : 0u;
        to = moves ? w_from_u64(to, 0) : from;
        const u32 fits = !moves || to + room <= args.row_room;
        for (u64 k = t_lane(); moves && fits && k < had; k += 32u) {
            args.rows[to + k] = args.rows[from + k];
        }
        w_sync();
        if (t_lane() == 0 && fits) {
            args.slots[2u * (u64)slot + 1u] = (to + has) << 32 | to;
            atom_max_u64(&args.report[REPORT_COUNTS], has);
        }
        if (t_lane() == 0 && !fits) {
            atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_OUTPUT);
        }
    }
}

KERNEL(k_grow_rows, struct kgrow, 256) {
    const u64 mask = args.slot_count - 1;
    if (GROW_FULL(args)) {
        return;
    }
    const i64 end = args.range->end;
    BUILD_ROUNDS(i, args.range->first, end) {
        const u32 there = i < end && !(args.nulls && args.nulls[i]);
        const i64 key = there ? args.key[i] : 0;
        u64 slot = hash_64((u64)key) & mask;
        if (there) {
            u64 held = args.slots[2 * slot];
            TABLE_WALK(slot, mask, held, args.slots[2 * slot], held != (u64)key)
        }
        const u32 left = w_count_at(args.more, slot, there, ~0u);
        if (there) {
            args.rows[(args.slots[2 * slot + 1] >> 32) - left] = (u32)i;
        }
    }
    if (t_block() == 0 && t_id() == 0 && args.range->end > args.range->first) {
        args.report[REPORT_ROWS] = (u64)args.range->end;
    }
}

/* --- aggregation state ----------------------------------------------------------------------- */

KERNEL(k_agg_init, struct kagg_step, 256) {
    u64 stride = args.agg.head + args.agg.word_count;
    i64 words = (i64)((args.agg.slot_count + 1) * stride);
    BUILD_ROWS(i, words) {
        u32 word = (u32)((u64)i % stride);
        u64 slot = (u64)i / stride;
        if (args.agg.narrow) {
            ((u32 *)args.agg.state)[i] = 0;
        } else if (word >= args.agg.head) {
            args.agg.state[i] = (u64)word_identity(args.agg.word_ops[word - args.agg.head]);
        } else {
            args.agg.state[i] =
                args.agg.form == AGG_HASH && slot < args.agg.slot_count ? AGG_EMPTY : 0u;
        }
    }
}

FN i32 agg_in_use(const struct kagg *agg, u32 one, u64 slot) {
    u64 mark = agg_held(agg, slot * (agg->head + agg->word_count) + agg->touch);
    if (one) {
        return slot == 0;
    }
    if (agg->form == AGG_HASH) {
        return slot < agg->slot_count ? mark != AGG_EMPTY : mark == AGG_EMPTY;
    }
    return slot < agg->slot_count && mark != 0;
}

/* Of a group whose words begin at `at`. */
FN i32 agg_is_kept(const struct kagg *agg, u64 key, u64 at) {
    i32 kept = 1;
    for (u32 k = 0; k < agg->keep_count; k++) {
        struct kkeep keep = agg->keeps[k];
        i64 x = (i64)(keep.col ? agg_held(agg, at + keep.col - 1u) : key);
        kept = kept && x >= keep.lo && x <= keep.hi;
    }
    return kept;
}

/* Occupied slots to columns; REPORT_ROWS counts them from zero. */
KERNEL(k_agg_extract, struct kagg_step, 256) {
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    u64 stride = args.agg.head + args.agg.word_count;
    u64 slots = args.agg.slot_count + 1;
    for (u64 first = (u64)t_block() * t_count(); first < slots;
         first += (u64)t_blocks() * t_count()) {
        u64 slot = first + t_id();
        u32 used = slot < slots && agg_in_use(&args.agg, args.one, slot);
        u64 words = slot * stride + args.agg.head;
        u64 key = 0;
        if (used) {
            key = args.one                     ? 0u
                  : args.agg.form == AGG_HASH ? args.agg.state[slot * stride]
                                              : (u64)args.agg.key_lo + slot;
            used = (u32)agg_is_kept(&args.agg, key, words);
        }
        struct b_place place = b_reserve(used, s_sums, s_base, &args.report[REPORT_ROWS]);
        u64 to = place.base + place.first;
        if (used && (!args.capacity || to < args.capacity)) {
            args.cols[0][to] = key;
            for (u32 w = 0; w < args.agg.word_count; w++) {
                args.cols[1u + w][to] = agg_held(&args.agg, words + w);
            }
        }
    }
}

/* Bounds of a stretch of tiles: some, first, last. The next ones behind those before. */
FN u32 bounds_join(u64 *all, const u64 *next) {
    u32 descends = next[0] && all[0] && (i64)next[1] < (i64)all[2];
    if (next[0]) {
        all[1] = all[0] ? all[1] : next[1];
        all[2] = next[2];
        all[0] = 1;
    }
    return descends;
}

/* The bounds that the threads of a block have, in their order: each compares its own with those before
 * that are some. The first thread gets all of them together. */
FN u32 bounds_join_all(const u64 *s_bounds, u32 count, u64 *all) {
    const u64 *mine = s_bounds + 3u * t_id();
    u32 before = t_id();
    while (t_id() < count && before > 0 && !s_bounds[3u * (before - 1u)]) {
        before--;
    }
    u32 compares = t_id() < count && mine[0] && before > 0;
    u32 descends = compares && (i64)mine[1] < (i64)s_bounds[3u * (before - 1u) + 2u];
    if (t_id() == 0) {
        u32 first = 0;
        u32 end = count;
        while (first < count && !s_bounds[3u * first]) {
            first++;
        }
        while (end > 0 && !s_bounds[3u * (end - 1u)]) {
            end--;
        }
        all[0] = end > 0;
        all[1] = end > 0 ? s_bounds[3u * first + 1u] : 0u;
        all[2] = end > 0 ? s_bounds[3u * (end - 1u) + 2u] : 0u;
    }
    return descends;
}

KERNEL(k_agg_order, struct kagg_edges, 256) {
    SHARED(u64, s_bounds, 768);
    SHARED(u32, s_last, 1);
    u64 each = (args.count + (u64)t_blocks() * t_count() - 1) / ((u64)t_blocks() * t_count());
    u64 first = ((u64)t_block() * t_count() + t_id()) * each;
    u64 *mine = s_bounds + 3u * t_id();
    u64 all[3];
    u32 descends = 0;
    mine[0] = 0;
    for (u64 t = first; t < first + each && t < args.count; t++) {
        const u64 *edges = args.agg.bounds + AGG_BOUNDS(args.agg.word_count) * t;
        const u64 bounds[3] = {edges[0], edges[1], edges[2u + args.agg.word_count]};
        descends |= bounds_join(mine, bounds);
    }
    b_sync();
    descends |= bounds_join_all(s_bounds, t_count(), all);
    if (t_id() == 0) {
        for (u32 k = 0; k < 3u; k++) {
            args.parts[3u * t_block() + k] = all[k];
        }
        mem_fence();
        *s_last = atom_add_u64(&args.parts[3u * t_blocks()], 1) + 1u == t_blocks();
        mem_fence();
    }
    b_sync();
    if (*s_last) { /* at most as many blocks as threads */
        for (u32 k = 0; k < 3u; k++) {
            mine[k] = t_id() < t_blocks() ? read_u64(&args.parts[3u * t_id() + k]) : 0u;
        }
        b_sync();
        descends |= bounds_join_all(s_bounds, t_blocks(), all);
    }
    if (descends) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_ORDER);
    }
}

/* The first and the last run of every tile, to the table. */
KERNEL(k_agg_edges, struct kagg_edges, 256) {
    u32 fresh = 0;
    BUILD_ROWS(i, 2 * (i64)args.count) {
        const u64 *edges = args.agg.bounds + AGG_BOUNDS(args.agg.word_count) * (u64)(i / 2);
        const u64 *run = edges + 1u + (u64)(i % 2) * (1u + args.agg.word_count);
        if (edges[0] > (u64)(i % 2)) {
            u64 *at = agg_find(&args.agg, args.agg.word_count, (i64)run[0], args.report, &fresh);
            for (u32 w = 0; at && w < args.agg.word_count; w++) {
                word_atom(args.agg.word_ops[w], at + 1u + w, (i64)run[1u + w]);
            }
        }
    }
    w_agg_count(&args.agg, fresh, args.report);
}

/* Groups of a hash table, of one part of the keys, to rows. */
KERNEL(k_agg_pack, struct kagg_rows, 256) {
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    u64 words = 1u + args.agg.word_count;
    u64 slots = args.agg.slot_count + 1;
    for (u64 first = (u64)t_block() * t_count(); first < slots;
         first += (u64)t_blocks() * t_count()) {
        u64 slot = first + t_id();
        const u64 *row = args.agg.state + slot * words;
        u32 used = slot < slots && agg_in_use(&args.agg, 0, slot) && agg_is_of_part(&args.agg, row[0]);
        struct b_place place = b_reserve(used, s_sums, s_base, args.counter);
        for (u64 w = 0; used && w < words; w++) {
            args.rows[w * args.stride + place.base + place.first] = row[w];
        }
    }
}

/* Adds a group to a table: what its words hold is at[w * stride]. */
FN void agg_merge(const struct kagg *agg, u64 key, const u64 *words, u64 stride, u64 *report,
                  u32 *fresh) {
    u64 *at = agg_find(agg, agg->word_count, (i64)key, report, fresh);
    for (u32 w = 0; at && w < agg->word_count; w++) {
        word_atom(agg->word_ops[w], at + 1u + w, (i64)words[w * stride]);
    }
}

KERNEL(k_agg_merge, struct kagg_rows, 256) {
    u32 fresh = 0;
    BUILD_ROWS(i, (i64)args.count) {
        agg_merge(&args.agg, args.rows[i], args.rows + args.stride + i, args.stride, args.report,
                  &fresh);
    }
    agg_count(&args.agg, fresh, args.report);
}

KERNEL(k_agg_move, struct kagg_move, 256) {
    u64 words = 1u + args.from.word_count;
    u32 fresh = 0;
    BUILD_ROWS(i, (i64)args.from.slot_count + 1) {
        const u64 *row = args.from.state + (u64)i * words;
        if (agg_in_use(&args.from, 0, (u64)i)) {
            agg_merge(&args.agg, row[0], row + 1, 1, args.report, &fresh);
        }
    }
    agg_count(&args.agg, fresh, args.report);
}

/* --- few rows to the host --------------------------------------------------------------------- */

KERNEL(k_fetch, struct kfetch, 256) {
    for (u32 p = t_block(); p < args.count; p += t_blocks()) {
        const u8 *from = args.parts[p].from;
        u8 *to = args.to + args.parts[p].at;
        u64 bytes = args.parts[p].bytes;
        u64 words = bytes / 8u;
        for (u64 i = t_id(); i < words; i += t_count()) {
            ((u64 *)to)[i] = ((const u64 *)from)[i];
        }
        for (u64 i = words * 8u + t_id(); i < bytes; i += t_count()) {
            to[i] = from[i];
        }
    }
}

/* --- interners ------------------------------------------------------------------------------- */

/* Entries are distinct, so that nothing is compared. Text from the host has no hash yet. */
KERNEL(k_intern_fill, struct kintern_fill, 256) {
    u64 mask = args.intern.slot_count - 1;
    BUILD_ROWS(i, args.count) {
        u64 *entry = args.intern.entries + (u64)i * INTERN_WORDS;
        u64 hash = 0;
        if (args.is_text) {
            const u64 *words = (const u64 *)(args.intern.heap + entry[2]);
            hash = entry[1];
            for (u32 w = 0; w < ((u32)entry[1] + 7u) >> 3; w++) {
                hash = (hash ^ words[w]) * 0x9e3779b97f4a7c15ULL;
                hash ^= hash >> 29;
            }
            hash = hash_64(hash);
        } else {
            hash = intern_hash_pair((i64)entry[1], (i64)entry[2]);
        }
        entry[0] = hash;
        u64 slot = hash & mask;
        u32 held = atom_cas_u32(&args.intern.slots[slot], 0, (u32)i + 1u);
        TABLE_WALK(slot, mask, held, atom_cas_u32(&args.intern.slots[slot], 0, (u32)i + 1u), held)
    }
}

KERNEL(k_intern_show, struct kintern_show, 256) {
    BUILD_ROWS(i, args.count) {
        const u64 *entry = args.intern.entries + (u64)args.codes[i] * INTERN_WORDS;
        const u64 room = (entry[1] + 7u) & ~7ULL;
        const u64 at = atom_add_u64(args.used, room);
        args.out[2 * i] = entry[1];
        args.out[2 * i + 1] = at;
        if (at + room <= args.heap_bytes) {
            const u64 *from = (const u64 *)(args.intern.heap + entry[2]);
            u64 *to = (u64 *)(args.heap + at);
            NO_UNROLL for (u64 w = 0; w < room >> 3; w++) {
                to[w] = from[w];
            }
        }
    }
}

/* --- loops ----------------------------------------------------------------------------------- */

/* What a lane of the warp knows of the loop: a relation, and a part of one. */
struct turn {
    u64 rows, taken; /* of the relation */
    u64 first, end;  /* the part */
    u64 stopped, over;
};

/* What the pipeline before made. */
FN void w_turn_take(const struct kturn *args, struct turn *t) {
    struct kloop *loop = args->loop;
    u64 had = w_from_u64(t->rows, args->took_rel);
    u64 made = args->took[REPORT_ROWS];
    u64 failed = ~args->took[REPORT_FAULT] | args->took[REPORT_RETRY];
    made = made < (u64)args->capacity ? made : (u64)args->capacity;
    t->rows = t_lane() == args->took_rel ? made : t->rows;
    t->stopped = failed ? args->took_step + 1u : 0u;
    if (t_lane() == 0) {
        loop->steps[args->took_step].made += made - had;
        loop->steps[args->took_step].longest = args->took[REPORT_COUNTS];
        loop->stopped = t->stopped;
    }
    if (t_lane() == args->took_rel) {
        loop->rels[args->took_rel].rows = made;
    }
    w_sync();
}

/* A round begins, where something is new and not enough is there; whether it does. */
FN u32 w_turn_begin(const struct kturn *args, struct turn *t) {
    struct kloop *loop = args->loop;
    u32 lane = t_lane();
    u32 is_rel = lane < args->rel_count;
    u32 is_part = lane < args->part_count;
    u32 fresh = w_ballot((i32)(lane < args->loop_count && t->rows > t->taken));
    u64 most = w_from_u64(t->rows, args->stop_rel ? args->stop_rel - 1u : 0u);
    u32 begins = fresh && !(args->stop_rel && (i64)most >= args->stop_rows);
    u32 of = is_part ? args->part_rels[lane] : 0u;
    u32 form = is_part ? args->part_forms[lane] : 0u;
    u64 of_rows = w_from_u64(t->rows, of);
    u64 of_taken = w_from_u64(t->taken, of);
    t->first = form == LOOP_DELTA ? of_taken : 0u;
    t->end = form == LOOP_OLD ? of_taken : of_rows;
    t->over = !begins;
    if (lane == 0) {
        loop->over = !begins;
        loop->rounds += begins;
    }
    if (is_part && begins) {
        struct kloop_part *part = &loop->parts[lane];
        part->rows.first = (i64)t->first;
        part->rows.end = (i64)t->end;
        part->rows.start = -(i64)t->first;
        part->cut_before = part->cut;
        part->of_before = part->of;
        part->cut += t->end - t->first;
        part->of += of_rows;
    }
    if (is_rel && begins) {
        struct kloop_rel *rel = &loop->rels[lane];
        rel->rows_before = t->rows;
        rel->taken_before = t->taken;
        rel->taken = t->rows;
    }
    if (lane < LOOP_STEPS && begins) {
        loop->steps[lane].read_before = loop->steps[lane].read;
        loop->steps[lane].made_before = loop->steps[lane].made;
    }
    w_sync();
    return begins;
}

/* What the pipeline behind reads, and behind which rows it adds its own. */
FN void w_turn_next(const struct kturn *args, const struct turn *t) {
    struct kloop *loop = args->loop;
    u64 goes = !t->stopped && !t->over;
    u64 first = w_from_u64(t->first, args->next_part);
    u64 end = w_from_u64(t->end, args->next_part);
    u64 rows = w_from_u64(t->rows, args->next_rel);
    u64 of = w_from_u64(t->rows, args->next_source ? args->next_source - 1u : 0u);
    first = args->next_all ? 0u : args->next_source ? rows : first;
    end = args->next_source ? of : end;
    rows = args->next_begins ? 0u : rows;
    first = goes ? first : 0u;
    end = goes ? end : 0u;
    if (t_lane() == 0) {
        loop->now.first = (i64)first;
        loop->now.end = (i64)end;
        loop->now.start = -(i64)first;
        loop->steps[args->next_step].read += end - first;
        args->next[REPORT_ROWS] = rows;
        if (args->next_source) {
            args->next[REPORT_GROUPS] = 0;
        }
        if (args->next_begins) {
            loop->rels[args->next_rel].rows = 0;
        }
    }
}

/* One warp; whether a round began. All loads are on their way at once. */
FN u32 w_turn(const struct kturn *args) {
    const struct kloop *loop = args->loop;
    u32 lane = t_lane();
    u32 began = 0;
    struct turn t;
    t.stopped = loop->stopped;
    t.over = loop->over;
    t.rows = lane < args->rel_count ? loop->rels[lane].rows : 0u;
    t.taken = lane < args->rel_count ? loop->rels[lane].taken : 0u;
    t.first = lane < args->part_count ? (u64)loop->parts[lane].rows.first : 0u;
    t.end = lane < args->part_count ? (u64)loop->parts[lane].rows.end : 0u;
    if (args->took && !t.stopped) {
        w_turn_take(args, &t);
    }
    if (args->begins && !t.stopped && !t.over) {
        began = w_turn_begin(args, &t);
    }
    if (args->next) {
        w_turn_next(args, &t);
    }
    return began;
}

KERNEL(k_keys_move, struct kkeys, 256) {
    BUILD_ROWS(i, (i64)(args.from_count + KEYS_APART)) {
        u64 word = args.from[i];
        if ((u64)i >= args.from_count) {
            args.to[args.to_mask + 1u + ((u64)i - args.from_count)] = word;
        } else if (word && word != KEYS_GONE) {
            u64 at = hash_64(word - 1u) & args.to_mask;
            while (atom_cas_u64(&args.to[at], 0, word)) {
                at = (at + 1u) & args.to_mask;
            }
        }
    }
}

KERNEL(k_turn, struct kturn, 256) {
    SHARED(u32, s_began, 1);
    if (t_id() < 32u) {
        u32 began = w_turn(&args);
        if (t_id() == 0) {
            *s_began = began;
        }
    }
    if (!args.step_count) {
        return;
    }
    b_sync();
    for (u32 i = 0; *s_began && i < args.step_count; i++) {
        const struct kloop_step *step = &args.loop->steps[i];
        for (u32 at = t_id(); step->counts && at < LOOP_COUNTS; at += t_count()) {
            step->counts_before[at] = step->counts[at];
        }
    }
}

/* --- queues ---------------------------------------------------------------------------------- */

/* What a step made of a variable, to whoever reads it: all of it, or, where something is not as the
 * host expected, nothing. */
KERNEL(k_relay, struct krelay, 32) {
    if (t_id() == 0) {
        struct kqueue *queue = args.queue;
        struct kqueue_slot *slot = &queue->slots[args.slot];
        const u64 *report = args.report;
        u64 rows = args.rows ? *args.rows : args.known;
        rows = rows > args.skip ? rows - args.skip : 0u;
        rows = rows < args.limit ? rows : args.limit;
        u32 fails = (args.faults && ~report[REPORT_FAULT]) || (report[REPORT_RETRY] & args.retry) ||
                    (args.distinct && report[REPORT_ROWS] != report[REPORT_COUNTS]) || rows > args.most;
        u64 stopped = queue->stopped || fails;
        for (u32 w = 0; w < REPORT_WORDS; w++) {
            slot->report[w] = report[w];
        }
        slot->report[REPORT_ROWS] = rows;
        slot->made = args.made ? *args.made : 0u;
        slot->rows = stopped ? 0 : (i64)rows;
        queue->stopped = stopped;
    }
}

/* spans.h: arrays of text: are all spans inside their bytes, the numbers their first bytes make,
 * hashes, and numbers that equal texts share. */
#include "prelude.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/korder.h"

FN u128 span_at(const struct kspans *a, i64 i) {
    return ((const u128 *)a->spans)[i];
}

/* Flags spans that lie outside the bytes. */
KERNEL(k_text_check, struct kspans, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u128 span = span_at(&args, i);
        u64 offset = (u64)span;
        if (offset > args.byte_count || (u64)(span >> 64) > args.byte_count - offset) {
            atom_or_u32(args.flag, 1);
        }
    }
}

/* The first eight bytes as a number that orders them. */
KERNEL(k_text_prefix, struct kspans, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u128 span = span_at(&args, i);
        args.prefixes[i] = text_prefix(args.bytes + (u64)span, (u64)(span >> 64));
    }
}

KERNEL(k_text_hash, struct kspans, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u128 span = span_at(&args, i);
        args.prefixes[i] = hash_text(args.bytes + (u64)span, (u64)(span >> 64));
    }
}

/* --- numbers for texts ------------------------------------------------------------------------ */

#define SLOT_EMPTY 0xffffffffffffffffULL

/* Whether a text is that of a row of r. */
FN u32 text_held(const struct knumber *a, u128 span, u32 row) {
    u128 other = ((const u128 *)a->held)[row];
    u64 n = (u64)(span >> 64);
    const u8 *p = a->bytes + (u64)span;
    const u8 *q = a->held_bytes + (u64)other;
    u64 i = 0;
    if (n != (u64)(other >> 64)) {
        return 0;
    }
    while (i < n && p[i] == q[i]) {
        i++;
    }
    return i == n;
}

/* A slot goes from empty to a row, and from a row to a smaller one with an equal text. */
KERNEL(k_text_insert, struct knumber, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u128 span = ((const u128 *)args.spans)[i];
        u64 hash = hash_text(args.bytes + (u64)span, (u64)(span >> 64));
        u64 mine = hash >> 32 << 32 | (u64)i;
        u64 at = hash & args.mask;
        u64 held = read_u64(&args.slots[at]);
        u32 open = 1;
        while (open) {
            if (held == SLOT_EMPTY) {
                held = atom_cas_u64(&args.slots[at], SLOT_EMPTY, mine);
                open = held != SLOT_EMPTY;
            }
            if (open && held >> 32 == mine >> 32 && text_held(&args, span, (u32)held)) {
                if (mine < held) {
                    atom_min_u64(&args.slots[at], mine);
                }
                open = 0;
            }
            if (open) {
                at = (at + 1u) & args.mask;
                held = read_u64(&args.slots[at]);
            }
        }
    }
}

KERNEL(k_text_find, struct knumber, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u128 span = ((const u128 *)args.spans)[i];
        u64 hash = hash_text(args.bytes + (u64)span, (u64)(span >> 64));
        u64 at = hash & args.mask;
        u64 held = args.slots[at];
        TABLE_WALK(at, args.mask, held, args.slots[at],
                   held != SLOT_EMPTY &&
                       !(held >> 32 == hash >> 32 && text_held(&args, span, (u32)held)))
        args.out[i] = held == SLOT_EMPTY ? 0xffffffffu : (u32)held;
    }
}

/* Flags neighbours with one prefix that may yet differ. */
KERNEL(k_text_ties, struct kspans, TEXT_PREFIX_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id() + 1; i < args.count;
         i += (i64)t_blocks() * t_count()) {
        u64 length = (u64)(span_at(&args, i) >> 64);
        u64 other = (u64)(span_at(&args, i - 1) >> 64);
        if (args.prefixes[i] == args.prefixes[i - 1] && (length != other || length > 8)) {
            atom_or_u32(args.flag, 1);
        }
    }
}

/* spans.h: arrays of text: are all spans inside their bytes, the numbers their first bytes make. */
#include "prelude.h"

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
        u64 length = (u64)(span >> 64);
        const u8 *at = args.bytes + (u64)span;
        u64 prefix = 0;
        for (u32 j = 0; j < 8; j++) {
            prefix = prefix << 8 | (j < length ? at[j] : 0u);
        }
        args.prefixes[i] = prefix;
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

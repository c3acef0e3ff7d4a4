/* fn_table.h: open addressing: the hash table of joins and indexes, on every device.
 *
 * Kernel text: compiles as C11 and as CUDA C and is written in the words of the prelude
 * (host_words.h on the CPU). A table has a power of two of slots. A key is looked for in the slot
 * its hash names and in those behind it, until one has the key or is free; a key that is put in
 * goes the same way. TABLE_WALK is that way: who finds looks with a load, who puts in with an
 * exchange, and pipelines as well as the kernels and loops of the library are made of it. A slot
 * is a key and a value side by side, 4 + 4 or 8 + 8 bytes, so that an answer is one sector, or one
 * cache line. What the value is follows from who asks:
 *
 *   joins of arrays   whatever is joined; a key that does not occur marks free slots.
 *   indexes           a row, or where the key's rows begin and end; no rows: free. The CPU's
 *                     (cpu/slots.h) are 8 + 8, the card's too, or 4 + 4 where the keys, counted
 *                     from the least, fit. Most keys that pipelines ask for are not there: a
 *                     bitmap stands before the table.
 * See decision 0024. */
#ifndef WF_DEFS_FN_TABLE_H
#define WF_DEFS_FN_TABLE_H

FN u32 hash_32(u32 x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}
FN u64 hash_64(u64 x) { /* hash_u64 of base.h */
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    return x ^ x >> 32;
}

/* From slot `at` on, in which `held` was seen: `look` sees what slot `at` holds, `other` says of
 * `held` that it belongs to another key. */
#define TABLE_WALK(at, mask, held, look, other) \
    while (other) {                             \
        (at) = ((at) + 1) & (mask);             \
        (held) = (look);                        \
    }

/* The same where a thread has many rows, each with a walk that mostly ends where it begins: code that
 * goes round is as fast as code that is long, and sooner compiled. */
#define TABLE_WALK_SHORT(at, mask, held, look, other) \
    NO_UNROLL while (other) {                         \
        (at) = ((at) + 1) & (mask);                   \
        (held) = (look);                              \
    }

/* --- pairs ----------------------------------------------------------------------------------- */

/* Puts a key in while others do the same. 1: it was there already. With `heavy` slots are looked at
 * first: equal keys then need not all meet in the exchange. */
FN u64 pair_claim_8(u64 *slot, u64 none, u64 key, u32 heavy) {
    return heavy && read_u64(slot) == key ? key : atom_cas_u64(slot, none, key);
}
FN u32 pair_put_8(u64 *slots, u64 mask, u64 none, u64 key, u64 value, u32 heavy, u64 at) {
    u64 held = pair_claim_8(&slots[2 * at], none, key, heavy);
    TABLE_WALK(at, mask, held, pair_claim_8(&slots[2 * at], none, key, heavy),
               held != none && held != key)
    if (held == none) {
        slots[2 * at + 1] = value;
    }
    return held != none;
}

/* Key and value in one exchange, the key in the low half. */
FN u64 pair_claim_4(u64 *slot, u64 vacant, u64 pair, u32 heavy) {
    if (heavy) {
        u64 seen = read_u64(slot);
        if (seen != vacant && (u32)seen == (u32)pair) {
            return seen;
        }
    }
    return atom_cas_u64(slot, vacant, pair);
}
FN u32 pair_put_4(u64 *slots, u64 mask, u32 none, u32 key, u32 value, u32 heavy, u64 at) {
    u64 vacant = none ? ~0ULL : 0ULL;
    u64 pair = (u64)value << 32 | key;
    u64 held = pair_claim_4(&slots[at], vacant, pair, heavy);
    TABLE_WALK(at, mask, held, pair_claim_4(&slots[at], vacant, pair, heavy),
               held != vacant && (u32)held != key)
    return held != vacant;
}

#endif

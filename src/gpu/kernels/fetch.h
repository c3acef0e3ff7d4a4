/* fetch.h: few rows to the host, and the texts of interners both ways. */
#include "build_rows.h"
#include "intern.h"

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

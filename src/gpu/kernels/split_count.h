/* split_count.h: how many elements have each digit of their partition's number.
 *
 * One read counts the digits of all passes of a split, in shared memory, 16 bytes of keys at a
 * time; a block adds its counts to those of the launch when it is done. Beside what order.h wants
 * the text defines RADIX_BITS and, where counters fill shared memory, how many threads share them
 * in COUNT_THREADS. */
#include "order.h"

#define RADIX (1u << RADIX_BITS)
#ifndef COUNT_THREADS
#define COUNT_THREADS SPLIT_COUNT_THREADS
#endif
#define KEYS_VEC (16 / KEY_BYTES)

FN K vec_key(vec16 v, u32 j) {
#if KEY_BYTES == 4
    return v.w[j];
#elif KEY_BYTES == 8
    return (u64)v.w[2 * j + 1] << 32 | v.w[2 * j];
#else
    return (K)((u64)v.w[3] << 32 | v.w[2]) << 64 | ((u64)v.w[1] << 32 | v.w[0]);
#endif
}

/* Neighbours with one digit are added together: few values would else meet in few words. */
FN void count_vecs(const struct ksplit_count *a, u32 *s_counts, const vec16 *v) {
    NO_UNROLL for (u32 p = 0; p < a->passes; p++) {
        u32 *counts = s_counts + p * RADIX;
        u32 digit = key_part(vec_key(v[0], 0), &a->parts, a->shifts[p]) & a->masks[p];
        u32 n = 0;
        UNROLL for (u32 i = 0; i < SPLIT_COUNT_VECS * KEYS_VEC; i++) {
            K key = vec_key(v[i / KEYS_VEC], i % KEYS_VEC);
            u32 next = key_part(key, &a->parts, a->shifts[p]) & a->masks[p];
            if (next != digit) {
                atom_add_u32(&counts[digit], n);
                digit = next;
                n = 0;
            }
            n++;
        }
        atom_add_u32(&counts[digit], n);
    }
}

KERNEL(k_split_count, struct ksplit_count, COUNT_THREADS) {
    SHARED_BYTES(s_room); /* counts [pass][digit] */
    u32 *s_counts = (u32 *)(void *)s_room;
    for (u32 i = t_id(); i < args.passes * RADIX; i += t_count()) {
        s_counts[i] = 0;
    }
    b_sync();
    const K *keys = (const K *)args.keys;
    i64 round = (i64)COUNT_THREADS * SPLIT_COUNT_VECS * KEYS_VEC;
    i64 rounds = args.count / round;
    for (i64 r = t_block(); r < rounds; r += t_blocks()) {
        vec16 v[SPLIT_COUNT_VECS];
        UNROLL for (u32 k = 0; k < SPLIT_COUNT_VECS; k++) {
            v[k] = load16(keys + r * round + (i64)(k * COUNT_THREADS + t_id()) * KEYS_VEC);
        }
        count_vecs(&args, s_counts, v);
    }
    if (t_block() == 0) {
        for (i64 i = rounds * round + t_id(); i < args.count; i += t_count()) {
            for (u32 p = 0; p < args.passes; p++) {
                u32 digit = key_part(keys[i], &args.parts, args.shifts[p]) & args.masks[p];
                atom_add_u32(&s_counts[p * RADIX + digit], 1);
            }
        }
    }
    b_sync();
    for (u32 i = t_id(); i < args.passes * RADIX; i += t_count()) {
        u32 n = s_counts[i];
        if (n) {
            atom_add_u64(&args.counts[i], n);
        }
    }
}

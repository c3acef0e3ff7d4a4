/* order.h: keys in kernel text: what is compared, what partitions come from.
 *
 * The text that includes this defines KEY_BYTES (4, 8, 16), and KEY_FLOAT or KEY_TEXT where the key
 * is one; it may define KEY_WHOLE, no bits are ignored, and KEY_PLAIN, keys order as the unsigned
 * words they are. Keys keep their bits; they compare by key_order, which one xor and for floats a
 * few more instructions make. Text is a span of 16 bytes whose bytes lie anywhere. */
#ifndef WF_ORDER_H
#define WF_ORDER_H

#include "sums.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/korder.h"

typedef u32 word_4;
typedef u64 word_8;
typedef u128 word_16;
#define ORDER_PASTE_(a, b) a##b
#define ORDER_PASTE(a, b) ORDER_PASTE_(a, b)
#define WORD_OF(bytes) ORDER_PASTE(word_, bytes)
typedef WORD_OF(KEY_BYTES) K;

#ifdef KEY_TEXT

/* Below 0, 0 or above 0. */
FN_SLOW i32 text_compare(K x, K y, const u8 *bytes) {
    const u8 *p = bytes + (u64)x;
    const u8 *q = bytes + (u64)y;
    u64 x_bytes = (u64)(x >> 64);
    u64 y_bytes = (u64)(y >> 64);
    u64 n = x_bytes < y_bytes ? x_bytes : y_bytes;
    for (u64 i = 0; i < n; i++) {
        if (p[i] != q[i]) {
            return (i32)p[i] - (i32)q[i];
        }
    }
    return x_bytes < y_bytes ? -1 : x_bytes > y_bytes ? 1 : 0;
}
FN u32 key_less(K a, K b, const struct korder *o) {
    return o->descending ? text_compare(b, a, o->bytes) < 0 : text_compare(a, b, o->bytes) < 0;
}
FN u32 key_same(K a, K b, const struct korder *o) {
    return text_compare(a, b, o->bytes) == 0;
}

#else

FN K key_order(K key, const struct korder *o) {
#ifdef KEY_FLOAT
#if KEY_BYTES == 4
    key = order_f32(key);
#else
    key = order_f64(key);
#endif
#endif
#if defined KEY_PLAIN
    UNUSED_WORD(o);
    return key;
#elif KEY_BYTES == 16
    return key ^ ((K)o->flip_high << 64 | o->flip_low);
#else
    return key ^ (K)o->flip_low;
#endif
}
FN K key_rank(K key, const struct korder *o) { /* key_order of the bits that count */
#ifdef KEY_WHOLE
    return key_order(key, o);
#else
    return key_order(key, o) >> o->ignore_bits;
#endif
}
FN u32 key_less(K a, K b, const struct korder *o) {
    return key_rank(a, o) < key_rank(b, o);
}
FN u32 key_same(K a, K b, const struct korder *o) {
    return key_rank(a, o) == key_rank(b, o);
}
FN u64 key_hash(K key) {
#if KEY_BYTES == 4
    return hash_32(key);
#elif KEY_BYTES == 8
    return hash_64(key);
#else
    return hash_128((u64)key, (u64)(key >> 64));
#endif
}

/* Bits `shift` and on of the partition's number; the text says which: PART_HASH, PART_RANGE, or
 * neither for the key's own bits. */
FN u32 key_part(K key, const struct kparts *p, u32 shift) {
#if defined PART_HASH
    return (u32)(key_hash(key) >> shift);
#elif defined PART_RANGE
    const K *at = (const K *)p->splitters;
    K rank = key_order(key, &p->order);
    i64 low = 0;
    i64 high = p->splitter_count;
    while (low < high) {
        i64 mid = (low + high) >> 1;
        if (key_order(at[mid], &p->order) <= rank) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return (u32)((u64)low >> shift);
#else
    return (u32)(key_order(key, &p->order) >> shift);
#endif
}

#endif

#endif

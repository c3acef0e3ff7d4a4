/* watch.h: the part of every kernel object that does not depend on its text.
 *
 * The calls of the compiler's instrumentation end here: every load and store is passed to the
 * library with its return address, every undefined operation with its source position. All
 * definitions are hidden, so that a sanitizer in the same process is never reached by mistake.
 * Compiled once, as C, and linked to each text. */
#ifndef SIMT_WATCH_H
#define SIMT_WATCH_H

#include "hooks.h"

const struct simt_bridge *simt_table;

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

SIMT_EXPORT void simt_bind(const struct simt_bridge *table, struct simt_extent *out);
__attribute__((no_sanitize("thread", "undefined"))) void simt_bind(const struct simt_bridge *table,
                                                                   struct simt_extent *out) {
    simt_table = table;
    out->low = __ehdr_start;
    out->high = _end;
}

#if SIMT_STRICT

#define SIMT_HOOK(name)                                                                        \
    void name(const void *addr);                                                               \
    __attribute__((visibility("hidden"), used, no_sanitize("thread", "undefined"))) void name( \
        const void *addr)
#define SIMT_ACCESS(name, bytes, kind)                                           \
    SIMT_HOOK(name) {                                                            \
        simt_table->access((u64)addr, bytes, kind, __builtin_return_address(0)); \
    }
#define SIMT_ACCESSES(bytes)                                                   \
    SIMT_ACCESS(__tsan_read##bytes, bytes, SIMT_READ | SIMT_SCALAR)            \
    SIMT_ACCESS(__tsan_write##bytes, bytes, SIMT_WRITE | SIMT_SCALAR)          \
    SIMT_ACCESS(__tsan_volatile_read##bytes, bytes, SIMT_READ | SIMT_SCALAR)   \
    SIMT_ACCESS(__tsan_volatile_write##bytes, bytes, SIMT_WRITE | SIMT_SCALAR) \
    SIMT_ACCESS(__tsan_read_write##bytes, bytes, SIMT_WRITE | SIMT_SCALAR)     \
    SIMT_ACCESS(__tsan_unaligned_read##bytes, bytes, SIMT_READ)                \
    SIMT_ACCESS(__tsan_unaligned_write##bytes, bytes, SIMT_WRITE)              \
    SIMT_ACCESS(__tsan_unaligned_read_write##bytes, bytes, SIMT_WRITE)
SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)
#undef SIMT_ACCESSES
#undef SIMT_ACCESS

#define SIMT_RANGE(name, kind)                                                                 \
    void name(const void *addr, unsigned long bytes);                                          \
    __attribute__((visibility("hidden"), used, no_sanitize("thread", "undefined"))) void name( \
        const void *addr, unsigned long bytes) {                                               \
        simt_table->access((u64)addr, bytes, kind, __builtin_return_address(0));               \
    }
SIMT_RANGE(__tsan_read_range, SIMT_READ)
SIMT_RANGE(__tsan_write_range, SIMT_WRITE)
#undef SIMT_RANGE

SIMT_HOOK(__tsan_func_entry) {
    (void)addr;
}
SIMT_HOOK(__tsan_func_exit) {
    (void)addr;
}
SIMT_HOOK(__tsan_init) {
    (void)addr;
}

/* Calls the compiler makes for the copies and fills it does not expand. */
#define SIMT_LIBC __attribute__((visibility("hidden"), used, no_sanitize("thread", "undefined")))
SIMT_LIBC void *memcpy(void *to, const void *from, unsigned long bytes) {
    const u8 *s = (const u8 *)from;
    u8 *d = (u8 *)to;
    unsigned long i = 0;
    simt_table->access((u64)from, bytes, SIMT_READ, __builtin_return_address(0));
    simt_table->access((u64)to, bytes, SIMT_WRITE, __builtin_return_address(0));
    for (; bytes - i >= 8; i += 8) { /* volatile, or the loop becomes a call of itself */
        *(volatile u64 *)(void *)(d + i) = *(const volatile u64 *)(const void *)(s + i);
    }
    for (; i < bytes; i++) {
        *(volatile u8 *)(d + i) = *(const volatile u8 *)(s + i);
    }
    return to;
}
SIMT_LIBC void *memset(void *to, int value, unsigned long bytes) {
    u8 *d = (u8 *)to;
    unsigned long i = 0;
    simt_table->access((u64)to, bytes, SIMT_WRITE, __builtin_return_address(0));
    for (; bytes - i >= 8; i += 8) {
        *(volatile u64 *)(void *)(d + i) = 0x0101010101010101u * (u8)value;
    }
    for (; i < bytes; i++) {
        *(volatile u8 *)(d + i) = (u8)value;
    }
    return to;
}
#undef SIMT_LIBC

/* Every record the compiler passes begins with its source position. */
struct simt_place {
    const char *file;
    u32 line;
    u32 column;
};
#define SIMT_UNDEFINED(name, what)                                    \
    SIMT_HOOK(__ubsan_handle_##name) {                                \
        const struct simt_place *p = (const struct simt_place *)addr; \
        simt_table->undefined(what, p->file, p->line);                \
    }
SIMT_UNDEFINED(add_overflow, "signed overflow in +")
SIMT_UNDEFINED(sub_overflow, "signed overflow in -")
SIMT_UNDEFINED(mul_overflow, "signed overflow in *")
SIMT_UNDEFINED(negate_overflow, "signed overflow in negation")
SIMT_UNDEFINED(divrem_overflow, "division by zero or overflow in division")
SIMT_UNDEFINED(shift_out_of_bounds, "shift out of range")
SIMT_UNDEFINED(out_of_bounds, "array index out of bounds")
SIMT_UNDEFINED(float_cast_overflow, "float does not fit the integer")
SIMT_UNDEFINED(builtin_unreachable, "unreachable code reached")
#undef SIMT_UNDEFINED
#undef SIMT_HOOK

#endif

#endif

/* prelude.h: the words kernels are written in, their CPU bodies.
 *
 * The same words as src/gpu/kernels/prelude.h; the simt NVRTC puts this file in its place. A kernel
 * becomes an exported C function that takes a pointer to the argument struct and is run once per
 * thread, each thread a fiber. Collectives are macros, so that the launcher learns the line they
 * are called from; memory words tell the checker that the access is meant to be shared. The file
 * must also pass as C++17, because the text is checked in both languages. */
#ifndef WF_PRELUDE_H
#define WF_PRELUDE_H

#include "base/word.h"
#include "hooks.h"

#define FN static inline __attribute__((unused))
#ifdef __OPTIMIZE__
#define FN_SLOW static __attribute__((unused, noinline))
#else /* see SIMT_RAW */
#define FN_SLOW FN
#endif
#define FN_TAIL FN_SLOW
#define CONST_TABLE static __attribute__((unused)) const
#define KERNEL(name, type, max_threads)                                                          \
    static void name##_body(const type args);                                                    \
    SIMT_EXPORT_DATA(struct simt_kernel, name##_info) = {(u32)sizeof(type), (u32)(max_threads)}; \
    SIMT_EXPORT void name(const void *args);                                                     \
    SIMT_ENTRY void name(const void *args) {                                                     \
        name##_body(*(const type *)args);                                                        \
    }                                                                                            \
    static void name##_body(const type args)
/* The word is a pointer here and an array on a GPU: text never takes its size. */
#define SHARED(type, name, count)                                                                  \
    static struct simt_site name##_site;                                                           \
    type *const name = (type *)simt_shared(&name##_site, sizeof(type) * (count), SIMT_ALIGN(type), \
                                           __FILE__, __LINE__)
#define SHARED_BYTES(name) u8 *const name = (u8 *)simt_shared_bytes()
#define RESTRICT __restrict__
#ifdef __clang__
#ifndef WF_MIN_BLOCKS /* blocks per multiprocessor to aim at; fibers have no register limit */
#define WF_MIN_BLOCKS 1
#endif
#define UNROLL _Pragma("nounroll")
#else
#define UNROLL _Pragma("GCC unroll 1")
#endif
#define NO_UNROLL /* not at -O1; gcc takes no such pragma before a while with && */

SIMT_RAW void *simt_shared(struct simt_site *site, u64 bytes, u64 align, const char *file,
                           int line) {
    return simt_table->shared(site, bytes, align, file, line);
}
SIMT_RAW void *simt_shared_bytes(void) {
    return simt_table->shared_bytes();
}

/* A thread's own numbers never change while it runs, whoever else ran in between. */
#define SIMT_SELF __attribute__((const)) SIMT_RAW
SIMT_SELF u32 t_id(void) {
    return (*simt_table->self)->thread_idx;
}
SIMT_SELF u32 t_count(void) {
    return (*simt_table->self)->thread_count;
}
SIMT_SELF u32 t_lane(void) {
    return (*simt_table->self)->thread_idx & 31u;
}
SIMT_SELF u32 t_block(void) {
    return (*simt_table->self)->block_idx;
}
SIMT_SELF u32 t_blocks(void) {
    return (*simt_table->self)->block_count;
}
#undef SIMT_SELF

SIMT_RAW u32 simt_b(u32 kind, u32 x, const char *file, int line) {
    return simt_table->meet_block(kind, x, file, line);
}
SIMT_RAW u64 simt_w(u32 kind, u64 x, u32 arg, const char *file, int line) {
    return simt_table->meet_warp(kind, x, arg, file, line);
}
SIMT_RAW void simt_spin(const char *file, int line) {
    simt_table->spin(file, line);
}

#define b_sync() ((void)simt_b(SIMT_B_SYNC, 0, __FILE__, __LINE__))
#define b_any(x) ((i32)simt_b(SIMT_B_ANY, (x) != 0, __FILE__, __LINE__))
#define b_count(x) simt_b(SIMT_B_COUNT, (x) != 0, __FILE__, __LINE__)
#define w_sync() ((void)simt_w(SIMT_W_SYNC, 0, 0, __FILE__, __LINE__))
#define w_ballot(x) ((u32)simt_w(SIMT_W_BALLOT, (x) != 0, 0, __FILE__, __LINE__))
#define w_from_u32(x, lane) ((u32)simt_w(SIMT_W_FROM, (u32)(x), lane, __FILE__, __LINE__))
#define w_from_u64(x, lane) simt_w(SIMT_W_FROM, (u64)(x), lane, __FILE__, __LINE__)
#define w_up_u32(x, by) ((u32)simt_w(SIMT_W_UP, (u32)(x), by, __FILE__, __LINE__))
#define w_up_u64(x, by) simt_w(SIMT_W_UP, (u64)(x), by, __FILE__, __LINE__)
#define w_xor_u32(x, mask) ((u32)simt_w(SIMT_W_XOR, (u32)(x), mask, __FILE__, __LINE__))
#define w_xor_u64(x, mask) simt_w(SIMT_W_XOR, (u64)(x), mask, __FILE__, __LINE__)
#define w_match(x) ((u32)simt_w(SIMT_W_MATCH, (u32)(x), 0, __FILE__, __LINE__))
#define w_match_bits(x, s_bits) ((void)(s_bits), w_match(x))
#define spin_wait() simt_spin(__FILE__, __LINE__)

/* Checks an access that is meant to meet others; the caller's caller is the line of kernel text. */
#if SIMT_STRICT
#define SIMT_TOUCH(p, kind)                                               \
    simt_table->access((u64)(p), sizeof(*(p)), (u32)(kind) | SIMT_SCALAR, \
                       __builtin_return_address(0))
#else
#define SIMT_TOUCH(p, kind) simt_table->access((u64)(p), 0, (u32)(kind), 0)
#endif

/* Threads of a launch never run at the same time; host threads may look at mapped memory, though,
 * so the final store is a whole one. */
#define SIMT_ATOM(word, type, next)       \
    SIMT_RAW type word(type *p, type x) { \
        type old;                         \
        SIMT_TOUCH(p, SIMT_ATOMIC);       \
        old = *(volatile type *)p;        \
        *(volatile type *)p = (next);     \
        return old;                       \
    }
#define SIMT_CAS(word, type)                           \
    SIMT_RAW type word(type *p, type expect, type x) { \
        type old;                                      \
        SIMT_TOUCH(p, SIMT_ATOMIC);                    \
        old = *(volatile type *)p;                     \
        if (old == expect) {                           \
            *(volatile type *)p = x;                   \
        }                                              \
        return old;                                    \
    }
SIMT_ATOM(atom_add_u32, u32, old + x)
SIMT_ATOM(atom_add_u64, u64, old + x)
SIMT_ATOM(atom_take_u64, u64, old + x)
SIMT_ATOM(atom_min_u64, u64, x < old ? x : old)
SIMT_ATOM(atom_min_i64, i64, x < old ? x : old)
SIMT_ATOM(atom_max_i64, i64, x > old ? x : old)
SIMT_ATOM(atom_max_u32, u32, x > old ? x : old)
SIMT_ATOM(atom_max_u64, u64, x > old ? x : old)
SIMT_ATOM(atom_and_u64, u64, old & x)
SIMT_ATOM(atom_or_u64, u64, old | x)
SIMT_ATOM(atom_xor_u64, u64, old ^ x)
SIMT_ATOM(atom_or_u32, u32, old | x)
SIMT_ATOM(atom_exch_u32, u32, x)
SIMT_ATOM(atom_exch_u64, u64, x)
SIMT_CAS(atom_cas_u32, u32)
SIMT_CAS(atom_cas_u64, u64)

FN void mem_fence(void) {
    __asm__ volatile("" ::: "memory");
}
SIMT_RAW u32 read_u32(const u32 *p) {
    SIMT_TOUCH(p, SIMT_ATOMIC_READ);
    return *(const volatile u32 *)p;
}
SIMT_RAW void write_u32(u32 *p, u32 x) {
    SIMT_TOUCH(p, SIMT_ATOMIC);
    *(volatile u32 *)p = x;
}
SIMT_RAW u64 read_u64(const u64 *p) {
    SIMT_TOUCH(p, SIMT_ATOMIC_READ);
    return *(const volatile u64 *)p;
}

FN u64 clock_cycles(void) {
    return 0;
}
SIMT_RAW void write_u64(u64 *p, u64 x) {
    SIMT_TOUCH(p, SIMT_ATOMIC);
    *(volatile u64 *)p = x;
}
SIMT_RAW void read_pair(const u64 *p, u64 *first, u64 *second) {
    SIMT_TOUCH(p, SIMT_ATOMIC_READ);
    SIMT_TOUCH(p + 1, SIMT_ATOMIC_READ);
    *first = ((const volatile u64 *)p)[0];
    *second = ((const volatile u64 *)p)[1];
}
/* Whether to give up, asked now and then: here a launch always ends by itself. */
FN b8 stop_due(u64 before, u64 now) {
    (void)before;
    (void)now;
    return 0;
}

FN u64 word8_at(const u8 *p) {
    return *(const u64 *)(const void *)p;
}
FN void word8_to(u8 *p, u64 x) {
    *(u64 *)(void *)p = x;
}
FN u32 word8_lead(const u8 *p) {
    return (u32)(u64)p & 7u;
}

FN u32 bits_set_u32(u32 x) {
    return (u32)__builtin_popcount(x);
}
FN u32 bits_set_u64(u64 x) {
    return (u32)__builtin_popcountll(x);
}
FN u32 first_set_u32(u32 x) {
    return (u32)__builtin_ffs((int)x) - 1u;
}
/* The same word, of which the compiler knows nothing: what it found out before is not held. */
FN u32 anew_u32(u32 x) {
    return x;
}
FN u32 zeros_above_u64(u64 x) {
    return x == 0 ? 64u : (u32)__builtin_clzll(x);
}
FN u64 mul_high_u64(u64 a, u64 b) {
    return (u64)(((u128)a * b) >> 64);
}
FN f64 sqrt_f64(f64 x) {
    return __builtin_sqrt(x);
}
#define UNUSED_WORD(x) ((void)(x))
#define SIMT_PUN(word, to, from)             \
    FN to word(from x) {                     \
        to r;                                \
        __builtin_memcpy(&r, &x, sizeof(r)); \
        return r;                            \
    }
SIMT_PUN(f32_bits, u32, f32)
SIMT_PUN(bits_f32, f32, u32)
SIMT_PUN(f64_bits, u64, f64)
SIMT_PUN(bits_f64, f64, u64)

typedef struct vec16 {
    u32 w[4];
} vec16;
SIMT_RAW vec16 load16(const void *p) {
    vec16 r;
    simt_table->access((u64)p, 16, SIMT_READ | SIMT_SCALAR, __builtin_return_address(0));
    __builtin_memcpy(&r, p, 16);
    return r;
}
SIMT_RAW vec16 load_once16(const void *p) {
    vec16 r;
    simt_table->access((u64)p, 16, SIMT_READ | SIMT_SCALAR, __builtin_return_address(0));
    __builtin_memcpy(&r, p, 16);
    return r;
}
SIMT_RAW void store_once16(void *p, vec16 x) {
    simt_table->access((u64)p, 16, SIMT_WRITE | SIMT_SCALAR, __builtin_return_address(0));
    __builtin_memcpy(p, &x, 16);
}
SIMT_RAW void store16(void *p, vec16 x) {
    simt_table->access((u64)p, 16, SIMT_WRITE | SIMT_SCALAR, __builtin_return_address(0));
    __builtin_memcpy(p, &x, 16);
}

#endif

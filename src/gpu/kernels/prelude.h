/* prelude.h: the words kernels are written in, their CUDA bodies.
 *
 * Kernel text compiles as C11 and as C++17 and says everything that differs between a GPU and the
 * simt driver through these words; tests/simt/prelude.h has the same words with CPU bodies.
 * Lower-case words that start with b_ must be reached by every thread of the block, w_ by every
 * thread of the warp. */
#ifndef WF_PRELUDE_H
#define WF_PRELUDE_H

#include "base/word.h"

#define FN static __device__ __forceinline__
#define FN_SLOW static __device__ __noinline__ /* heavy, out of line */
#define FN_TAIL FN_SLOW /* what few rows reach: out of line, where compiling takes time by size */
#define CONST_TABLE static __device__ const
/* One struct by value. `max_threads` bounds the block for the register allocator; a text that wants
 * more than one block per multiprocessor defines WF_MIN_BLOCKS before it includes anything. */
#ifndef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 1
#endif
#define KERNEL(name, type, max_threads) \
    extern "C" __global__ void __launch_bounds__(max_threads, WF_MIN_BLOCKS) name(const type args)
#define SHARED(type, name, count) __shared__ type name[count]
/* The launch's dynamic shared memory, 16-byte aligned, as bytes. */
#define SHARED_BYTES(name) extern __shared__ __align__(16) u8 name[]
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define RESTRICT __restrict__

FN u32 t_id(void) {
    return threadIdx.x;
}
FN u32 t_count(void) {
    return blockDim.x;
}
FN u32 t_lane(void) {
    return threadIdx.x & 31u;
}
FN u32 t_block(void) {
    return blockIdx.x;
}
FN u32 t_blocks(void) {
    return gridDim.x;
}

FN void b_sync(void) {
    __syncthreads();
}
FN i32 b_any(i32 x) {
    return __syncthreads_or(x);
}
FN u32 b_count(i32 x) {
    return (u32)__syncthreads_count(x);
}
FN void w_sync(void) {
    __syncwarp();
}
FN u32 w_ballot(i32 x) {
    return __ballot_sync(0xffffffffu, x);
}
FN u32 w_from_u32(u32 x, u32 lane) {
    return __shfl_sync(0xffffffffu, x, (int)lane);
}
FN u64 w_from_u64(u64 x, u32 lane) {
    return __shfl_sync(0xffffffffu, x, (int)lane);
}
FN u32 w_up_u32(u32 x, u32 by) {
    return __shfl_up_sync(0xffffffffu, x, by);
}
FN u64 w_up_u64(u64 x, u32 by) {
    return __shfl_up_sync(0xffffffffu, x, by);
}
FN u32 w_xor_u32(u32 x, u32 mask) {
    return __shfl_xor_sync(0xffffffffu, x, (int)mask);
}
FN u64 w_xor_u64(u64 x, u32 mask) {
    return __shfl_xor_sync(0xffffffffu, x, (int)mask);
}

/* Lanes that have the same value. */
FN u32 w_match(u32 x) {
    return __match_any_sync(0xffffffffu, x);
}

/* The same for small values: s_bits are zero words of shared memory, the warp's own, one for each
 * value; lanes meet by bits they set there, which is half the work of a match. */
FN u32 w_match_bits(u32 x, u32 *s_bits) {
    atomicOr(&s_bits[x], 1u << t_lane());
    __syncwarp();
    u32 same = *(volatile u32 *)&s_bits[x];
    __syncwarp();
    if (same >> t_lane() == 1u) { /* the last of them */
        *(volatile u32 *)&s_bits[x] = 0;
    }
    __syncwarp();
    return same;
}

/* Atomics return the old value. Global or shared memory. */
FN u32 atom_add_u32(u32 *p, u32 x) {
    return atomicAdd(p, x);
}
FN u64 atom_add_u64(u64 *p, u64 x) {
    return atomicAdd(p, x);
}
FN u64 atom_min_u64(u64 *p, u64 x) {
    return atomicMin(p, x);
}
FN i64 atom_min_i64(i64 *p, i64 x) {
    return atomicMin(p, x);
}
FN i64 atom_max_i64(i64 *p, i64 x) {
    return atomicMax(p, x);
}
FN u32 atom_max_u32(u32 *p, u32 x) {
    return atomicMax(p, x);
}
FN u64 atom_max_u64(u64 *p, u64 x) {
    return atomicMax(p, x);
}
FN u64 atom_and_u64(u64 *p, u64 x) {
    return atomicAnd(p, x);
}
FN u64 atom_or_u64(u64 *p, u64 x) {
    return atomicOr(p, x);
}
FN u64 atom_xor_u64(u64 *p, u64 x) {
    return atomicXor(p, x);
}
FN u32 atom_or_u32(u32 *p, u32 x) {
    return atomicOr(p, x);
}
FN u32 atom_exch_u32(u32 *p, u32 x) {
    return atomicExch(p, x);
}
FN u64 atom_exch_u64(u64 *p, u64 x) {
    return atomicExch(p, x);
}
FN u32 atom_cas_u32(u32 *p, u32 expect, u32 x) {
    return atomicCAS(p, expect, x);
}
FN u64 atom_cas_u64(u64 *p, u64 expect, u64 x) {
    return atomicCAS(p, expect, x);
}
/* atom_add_u64, once for all threads of the warp that come together: a counter that all rows share
 * serves one atomic after the other. */
FN u64 atom_take_u64(u64 *p, u64 x) {
    const u32 mates = __match_any_sync(__activemask(), (unsigned long long)p);
    const u32 lane = t_lane();
    const u32 first = (u32)__ffs((int)mates) - 1u;
    u64 before = 0;
    u64 all = 0;
    NO_UNROLL for (u32 rest = mates; rest; rest &= rest - 1u) {
        const u32 mate = (u32)__ffs((int)rest) - 1u;
        const u64 theirs = __shfl_sync(mates, (unsigned long long)x, (int)mate);
        before += mate < lane ? theirs : 0u;
        all += theirs;
    }
    u64 start = lane == first ? atom_add_u64(p, all) : 0u;
    return __shfl_sync(mates, (unsigned long long)start, (int)first) + before;
}
FN void mem_fence(void) {
    __threadfence();
}
/* Reads that must see other blocks' writes. */
FN u32 read_u32(const u32 *p) {
    return *(const volatile u32 *)p;
}
FN u64 read_u64(const u64 *p) {
    return *(const volatile u64 *)p;
}
/* A word that other blocks read with read_u32. */
/* Writes that other blocks wait for. An exchange is performed where they look, in the second-level
 * cache, at once: a volatile store leaves half a microsecond later, which made scans 1.4 times as
 * slow. */
FN void write_u32(u32 *p, u32 x) {
    (void)atomicExch(p, x);
}
FN void write_u64(u64 *p, u64 x) {
    (void)atomicExch(p, x);
}
/* Two words by one access, as others wrote each of them; p is aligned to 16 bytes. */
FN void read_pair(const u64 *p, u64 *first, u64 *second) {
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(*first), "=l"(*second)
                 : "l"(p)
                 : "memory");
}
/* Call inside a loop that waits for a lower ticket; yields in simt. */
FN void spin_wait(void) {
    __nanosleep(40);
}

/* Cycles of this multiprocessor, for measurements; no time passes in simt. */
FN u64 clock_cycles(void) {
    return (u64)clock64();
}

/* Whether to give up, asked now and then: here a launch always ends by itself. */
FN b8 stop_due(u64 before, u64 now) {
    (void)before;
    (void)now;
    return 0;
}

/* Eight bytes at an address that is a multiple of eight, the first lowest. */
FN u64 word8_at(const u8 *p) {
    return *(const u64 *)p;
}
FN void word8_to(u8 *p, u64 x) {
    *(u64 *)p = x;
}
/* Bytes before p in the word that it lies in. */
FN u32 word8_lead(const u8 *p) {
    return (u32)(u64)p & 7u;
}

FN u32 bits_set_u32(u32 x) {
    return (u32)__popc((int)x);
}
FN u32 bits_set_u64(u64 x) {
    return (u32)__popcll((i64)x);
}
FN u32 zeros_above_u64(u64 x) {
    return (u32)__clzll((i64)x);
} /* 64 for 0 */
FN u32 first_set_u32(u32 x) {
    return (u32)__ffs((int)x) - 1u;
} /* ~0 for 0 */
FN u64 mul_high_u64(u64 a, u64 b) {
    return __umul64hi(a, b);
}
/* The same word, of which the compiler knows nothing: what it found out before is not held. */
FN u32 anew_u32(u32 x) {
    asm volatile("" : "+r"(x));
    return x;
}
FN f64 sqrt_f64(f64 x) {
    return __dsqrt_rn(x);
} /* x >= 0; IEEE 754's, rounded to nearest */
#define UNUSED_WORD(x) ((void)(x))
FN u32 f32_bits(f32 x) {
    return __float_as_uint(x);
}
FN f32 bits_f32(u32 x) {
    return __uint_as_float(x);
}
FN u64 f64_bits(f64 x) {
    return (u64)__double_as_longlong(x);
}
FN f64 bits_f64(u64 x) {
    return __longlong_as_double((i64)x);
}

/* Sixteen bytes at once, aligned; `once` hints that the line is not needed again. */
typedef struct vec16 {
    u32 w[4];
} vec16;
FN vec16 load_once16(const void *p) {
    uint4 x = __ldcs((const uint4 *)p);
    vec16 r;
    r.w[0] = x.x;
    r.w[1] = x.y;
    r.w[2] = x.z;
    r.w[3] = x.w;
    return r;
}
FN vec16 load16(const void *p) {
    uint4 x = *(const uint4 *)p;
    vec16 r;
    r.w[0] = x.x;
    r.w[1] = x.y;
    r.w[2] = x.z;
    r.w[3] = x.w;
    return r;
}
FN void store16(void *p, vec16 x) {
    *(uint4 *)p = make_uint4(x.w[0], x.w[1], x.w[2], x.w[3]);
}
FN void store_once16(void *p, vec16 x) {
    __stcs((uint4 *)p, make_uint4(x.w[0], x.w[1], x.w[2], x.w[3]));
}

#endif

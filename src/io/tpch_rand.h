/* tpch_rand.h: the random numbers of TPC-H.
 *
 * Every column draws from a stream of its own: seed' = 16807 * seed mod 2^31 - 1. A row may use a
 * fixed number of draws of a stream, its share, whether it needs them or not; so the seed with
 * which row n begins is the first one times 16807^(n * share), and rows can be made from any one
 * on. Values are scaled in double precision, division first: the rounding is part of the data. */
#ifndef WF_IO_TPCH_RAND_H
#define WF_IO_TPCH_RAND_H

#include "base/base.h"

#define TPCH_MODULUS 2147483647u
#define TPCH_MULTIPLIER 16807u

/* a * b mod 2^31 - 1, for a and b below it: the high part counts once per 2^31. */
static inline u32 rand_mul(u32 a, u32 b) {
    u64 product = (u64)a * b;
    u64 folded = (product & TPCH_MODULUS) + (product >> 31);
    return (u32)(folded >= TPCH_MODULUS ? folded - TPCH_MODULUS : folded);
}

static inline u32 rand_power(i64 n) {
    u32 base = TPCH_MULTIPLIER, power = 1;
    for (; n > 0; n >>= 1) {
        power = n & 1 ? rand_mul(power, base) : power;
        base = rand_mul(base, base);
    }
    return power;
}

/* The seed after n draws. */
static inline u32 rand_skip(u32 seed, i64 n) {
    return rand_mul(seed, rand_power(n));
}

/* One draw: a number in [0, range). */
static inline i32 rand_draw(u32 *seed, i32 range) {
    *seed = rand_mul(*seed, TPCH_MULTIPLIER);
    return (i32)((f64)*seed / (f64)TPCH_MODULUS * range);
}

/* A stream as rows use it: `at` is the seed with which the next row begins. */
struct stream {
    u32 at;
    u32 step; /* 16807^share */
};

static inline struct stream stream_at(u32 first_seed, i32 share, i64 row) {
    return (struct stream){rand_skip(first_seed, row * share), rand_power(share)};
}

/* The seed the row draws from; the stream moves on to the next row. */
static inline u32 stream_row(struct stream *stream) {
    u32 seed = stream->at;
    stream->at = rand_mul(seed, stream->step);
    return seed;
}

/* The row's only draw. */
static inline i32 stream_draw(struct stream *stream, i32 range) {
    u32 seed = stream_row(stream);
    return rand_draw(&seed, range);
}

#endif

/* kprim.h: arguments of the kernels of primitives; compiles as C11 and as CUDA C. Pointers are
 * addresses on the device. */
#ifndef WF_DEFS_KPRIM_H
#define WF_DEFS_KPRIM_H

#include "base/word.h"

enum { SCAN_THREADS = 256, SCAN_VECS = 8 }; /* a tile is so many vectors of 16 bytes a thread */

struct kscan_array {
    const void *in;
    void *out;
    i64 count;
    u64 *state; /* of tiles: see kernels/lookback.h and scan.h */
    u32 *ticket;
    u32 inclusive;
    u32 pad;
};

/* Maps: a thread computes groups of four rows. */
enum { MAP_THREADS = 256 };

struct kmap {
    const void *in[3];
    const u8 *bytes[3]; /* of operands of type TEXT */
    i64 byte_count[3];
    void *out;
    i64 count;
    u64 *fault;    /* the smallest index << 8 | fault; ~0 = none */
    u32 single[3]; /* the operand has one element */
    u32 pad;
};

enum { SERIES_THREADS = 256, SERIES_VECS = 4 };

struct kseries {
    void *out;
    i64 count;
    u64 first, wide, step;
};

enum { REDUCE_THREADS = 512, REDUCE_VECS = 4 };

struct kreduce {
    const void *in;
    void *out;
    i64 count;
    u64 *parts;    /* a word per block, or the limbs of an exact sum */
    u32 *finished; /* blocks */
};

/* A thread folds so many vectors of 16 bytes. Elements and ends of segments of a tile together are
 * as many as its threads have elements, less one vector. */
enum { SEGMENT_THREADS = 256, SEGMENT_VECS = 4 };

struct ksegments {
    const void *in;
    void *out;
    const i64 *offsets;
    i64 count; /* elements of in */
    i64 segment_count;
    i64 *splits; /* per tile: ends before it */
    u64 *state;
    u32 *ticket;
    u32 *bad;
    i32 low, bits; /* sums of floats: of a limb, see kernels/fsegments.h */
};

/* Sums of floats by segments. */
enum { FLIMBS_MOST = 100, FLIMBS_ROOM = 8, FRANGE_LOWEST = 2200 };
enum { FRANGE_TOP, FRANGE_LOW, FRANGE_SPECIAL, FRANGE_WORDS };

struct kfrange {
    const void *in;
    i64 count;
    u64 *range; /* one past the highest bit, FRANGE_LOWEST - the lowest, FSPECIAL bits */
};

struct kfsums {
    const u64 *words; /* [limb][segment], then, if there are some, FSPECIAL bits of segments */
    void *out;
    i64 count; /* segments */
    u32 *fault;
    i32 low, bits; /* of the first limb, of each */
    u32 limbs, special;
};

enum { COMPACT_MOST = 8 };

struct kcompact {
    const void *by;
    i64 count;
    u64 lo[2], hi[2];
    u64 flip;
    i64 room;
    u64 *state; /* ordered: of tiles */
    u64 *total; /* rows kept */
    u32 *ticket;
    u32 negate;
    u32 pad;
    const void *in[COMPACT_MOST];
    void *out[COMPACT_MOST];
};

enum { GATHER_THREADS = 256, GATHER_GROUPS = 2 };

struct kgather {
    const void *in;
    void *out;
    const void *index;
    i64 count;
    u64 limit;  /* indexes are below */
    u64 lo, hi; /* those of this pass */
    u64 *bad;   /* the first index that is not; ~0 = none */
};

enum { HISTOGRAM_THREADS = 512, HISTOGRAM_VECS = 4 };

struct khistogram {
    const void *in;
    i64 count;
    u64 flip, start, width, low, base;
    u64 bins;
    u64 *out;
    u32 copies; /* of the table in shared memory, a power of two; 0: there is none */
    u32 shift;  /* of the width, when it is a power of two; else 64 */
};

#endif

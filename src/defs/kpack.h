/* kpack.h: blocks of packed numbers, as they lie on the disk and cross the bus; compiles as C11 and as
 * CUDA C.
 *
 * A column's numbers are blocks of PACK_ROWS: two words, then the numbers in as many bits as the
 * greatest needs, from the lowest bit on, up to a whole word. See store/packed.c. */
#ifndef WF_DEFS_KPACK_H
#define WF_DEFS_KPACK_H

#include "base/word.h"

enum {
    PACK_ROWS = 1024,
    PACK_LEAST_BITS = 56, /* of a block's first word: the least number; above it the bits of each, */
    PACK_DIFFERS_BIT = 63 /* and whether they are differences, the first from the second word */
};
/* What differences are more than. */
#define PACK_BIAS (1ULL << 55)

enum { UNPACK_THREADS = 256 };

struct kunpack {
    const u8 *packed;
    const u32 *starts; /* of blocks, in bytes */
    const u64 *valid_from;
    u8 *data;
    u64 *valid;
    u32 *bad; /* set where a number is not below `below` */
    u64 below; /* 0: any number may be there */
    i64 rows;
    i64 blocks;
    i64 valid_words;
    u32 width; /* bytes of a number: 1, 2, 4 or 8 */
    u32 pad;
};

#endif

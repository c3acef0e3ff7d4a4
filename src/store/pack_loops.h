/* pack_loops.h: the loops of packed.c, one set per processor level. */
#ifndef WF_STORE_PACK_LOOPS_H
#define WF_STORE_PACK_LOOPS_H

#include "store/packed.h"

enum {
    BLOCK_HEAD = 16, /* bytes of a block of numbers before its bits */
    WORD_BYTES = 16,
    WORDS_MOST = 1 << 16, /* different ones that can be read */
    WORDS_MADE = WORDS_MOST - 1,
    WORD_SLOT_BITS = 17,
    PIECE_BYTES = 1 << 12, /* of text that is cut at once */
};

struct block_head {
    u64 form;   /* the least number; from bit 56 the bits of each; bit 63: they are differences */
    u64 before; /* the number before the block's first */
};
_Static_assert(sizeof(struct block_head) == BLOCK_HEAD, "block");

static inline i64 block_bytes(i64 rows, u32 bits) {
    return (rows * bits + 63) / 64 * 8;
}

struct words { /* of a block: numbers, pieces, or bits */
    u64 at[PACK_ROWS + 8];
};

/* One block on its way. */
struct packing {
    u8 *at, *end; /* where it goes; at = NULL: there is no room */
    u64 before;   /* the number before the block */
    struct words numbers, changes, bits;
};

/* What text is put in words with. */
struct word {
    u64 low, high; /* its bytes, none of which is 0; the rest 0 */
};

struct wording {
    struct packing p;
    u32 codes[PACK_ROWS];
    i64 waiting; /* of codes */
    u64 cuts[PIECE_BYTES / 64];
    u16 starts[PIECE_BYTES + 64], lens[PIECE_BYTES]; /* of the words of a piece; where the last ends */
    u32 shift;   /* of a hash, to a slot */
    u32 count;
    i64 total, word_bytes;
    u8 word_lens[WORDS_MADE];
    u16 slots[1 << WORD_SLOT_BITS]; /* 2^(32 - shift) of them: a code, or NOBODY */
    struct word words[WORDS_MADE + 1]; /* by code; NOBODY is none */
};

/* What it is read with. */
struct dictionary {
    u8 words[WORDS_MOST][WORD_BYTES];
    u8 lens[WORDS_MOST];
};

struct pack_loops {
    /* Where the numbers end; NULL when they do not fit. */
    u8 *(*numbers)(const struct segment *seg, const struct packed_form *form, u8 *to, u8 *end);
    /* False: it cannot be so; here as below. */
    bool (*numbers_back)(const u8 *at, const u8 *end, const struct packed_form *form, u8 *to);
    /* The text of the column in words, in at most `room` bytes; how many, or 0. */
    i64 (*words)(const struct segment *seg, const struct packed_form *form, struct wording *w,
                 u8 *to, i64 room);
    bool (*words_back)(const u8 *from, i64 bytes, struct dictionary *dict, u8 *to, i64 text_bytes);
};
#define X(level) extern const struct pack_loops pack_loops_##level;
X(baseline) X(avx2) X(avx512)
#undef X

#endif

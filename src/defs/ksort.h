/* ksort.h: arguments of the kernels that sort a variable; compiles as C11 and as CUDA C.
 *
 * The keys of a row are a list of parts, each a number of up to 64 bits; parts side by side make
 * words, the first of which decides before the second. */
#ifndef WF_DEFS_KSORT_H
#define WF_DEFS_KSORT_H

#include "base/word.h"

#include "defs/kargs.h"

enum sort_value { SORT_B8, SORT_I32, SORT_I64, SORT_I128, SORT_F32, SORT_F64, SORT_STR };
/* WHOLE: the distance from lo, or, descending, to hi; NULL one number more at either end. NULLS:
 * whether it is NULL. HIGH, LOW: halves of 128 bits. PIECE: bytes of text, and how many there were.
 * ROW: the number of the row itself. */
enum sort_form { SORT_WHOLE, SORT_NULLS, SORT_HIGH, SORT_LOW, SORT_PIECE, SORT_ROW };
enum {
    SORT_PIECE_BYTES = 7,
    SORT_LEN_BITS = 4, /* of a piece: how many bytes are the text's, */
    SORT_MORE = 8,     /* or that it goes on */
    SORT_THREADS = 256,
    SORT_BOUND_WORDS = 4,    /* the least and the greatest, low word first */
    SORT_DIGIT_BITS = 11,    /* of a selection */
    SORT_CUTS = 4,           /* words that tell the first rows from others */
    SORT_FEW = 2048,         /* rows that one block sorts */
    SORT_FEW_THREADS = 1024
};

struct ksort_part {
    const u8 *data;
    const b8 *nulls; /* or 0 */
    const i32 *rank; /* of codes; or 0 */
    const u64 *entries; /* STR: codes of an interner's entries, whose words are in `heap`; or 0 */
    const u8 *heap;
    u64 lo[2], hi[2];
    u64 null_number; /* WHOLE */
    u32 value;       /* enum sort_value */
    u32 form;        /* enum sort_form */
    u32 bits;
    u32 bytes, skip; /* PIECE */
    u32 descending, nulls_first, with_nulls;
    u32 cut; /* PIECE: the last one of a text that may go on */
    u32 pad;
};

struct ksort_level { /* parts of a word */
    u32 first, count;
};

struct ksort {
    const struct ksort_part *parts;
    const struct ksort_level *levels;
    u32 part_count, level_count;
    i64 rows;         /* of the variable, or those in `order` */
    const u32 *order; /* row numbers; 0 = as they lie */
    u64 *words;
    u32 *out_rows; /* or 0 */
    u64 *report;
    struct ktexts texts;
    /* Of a sort that nobody waits for: where the card knows how many there are, `rows` at most; 0 = they are so
     * many. Keys that are not within these bounds are reported. */
    const i64 *rows_at;
    const struct ksort_part *keys;
    u32 key_count;
    u32 cut_shift; /* the first rows: up to which words, of the last one without its lowest bits; how many there */
    u64 cuts[SORT_CUTS]; /* is room for, and how many there have to be */
    u32 cut_count;
    u32 pad;
    i64 room, want;
    u64 *count;
};

struct ksort_select { /* by words: counts of a digit, or the rows up to a bound */
    const u64 *words;
    i64 rows;
    u64 bound; /* counting: the bits above the digit */
    u64 least; /* taking: words below it are left out */
    u32 shift, digit_bits;
    u64 *counts;      /* of digits; taking: of rows, and of those in `less` */
    const u32 *order; /* row numbers; 0 = as they lie */
    u32 *out_rows;
    u32 *less; /* those below the bound go here; 0 = to the others */
};

struct ksort_col { /* one array of a variable: data, or NULL flags */
    const u8 *in;
    u8 *out;
    u64 bytes; /* of an element */
};
struct ksort_gather {
    const struct ksort_col *cols;
    u32 col_count;
    u32 pad;
    i64 rows;
    const u32 *order;
    const i64 *rows_at; /* as of struct ksort */
};

/* Where rows come to be: out[order[i]] = i; without an order out[i] = i. */
struct ksort_number {
    const u32 *order;
    u32 *out;
    i64 rows;
};

/* Rows of a variable brought together by the place that their key has in a table (split_rows.h). */
enum split_place { SPLIT_BY_KEY, SPLIT_BY_PAIR, SPLIT_BY_HASH }; /* as the forms of indexes and groups have it */
enum {
    SPLIT_PARTS_MOST = 512,
    SPLIT_ROWS_THREADS = 512,
    SPLIT_ROWS_ITEMS = 8,
    SPLIT_ROWS_TILE = SPLIT_ROWS_THREADS * SPLIT_ROWS_ITEMS
};

struct ksplit_col {
    const u8 *from;
    u8 *to;
    u64 width;
};

struct ksplit_rows {
    const i64 *key;
    i64 rows;
    i64 key_lo;
    u32 by; /* enum split_place */
    u32 shift, mask;
    u32 col_count;
    const struct ksplit_col *cols;
    u64 *cursors; /* SPLIT_PARTS_MOST of them, zeroed */
};

#endif

/* sort_int.h: insiders of STEP_SORT: keys as words, places of rows, sorted runs. */
#ifndef WF_CPU_SORT_INT_H
#define WF_CPU_SORT_INT_H

#include "cpu/cpu_int.h"
#include "cpu/radix.h"
#include "cpu/sort_key.h"

struct level {        /* one word */
    u32 first, count; /* parts */
    i32 bits;
    const struct sort_part *text; /* its last part, when that is text */
};

struct large_run {
    i64 first, rows;
};

struct sort {
    struct exec *x;
    struct chunk **chunks;
    i64 chunk_count;
    i64 *starts; /* number of the first row of each chunk */
    i64 n, want;
    i32 idx_bits; /* a place is chunk << idx_bits | row of the chunk */
    i32 row_bits;
    u32 part_count, level_count;
    struct sort_part *parts;
    struct level *levels;
    /* one of the two */
    u64 *words;
    struct prim_pair *pairs;
    void *temp;
    i64 bytes;
    _Atomic b8 moves; /* rows are not all in order as they come */
    u64 *edges;       /* 2 per chunk: the first word of its first row, and of its last */
    /* runs of equal words: which level they share */
    u32 level;
    VEC(struct large_run) large;
    struct chunk *out;
    u32 col_count; /* columns to put in order; the others have done their duty */
    u128 *bounds;  /* 2 per chunk */
    u32 *common;   /* per chunk: bytes that all strings start with */
    u32 measured;  /* column */
    const i32 *rank;
    struct sv sample;
    b8 *nulls; /* of runs: per column, whether there are any */
};

static inline const struct column *sort_column(const struct sort *s, u32 col, u64 row, i64 *out_i) {
    *out_i = (i64)(row & ((1ULL << s->idx_bits) - 1));
    return &s->chunks[row >> s->idx_bits]->cols[col];
}

/* The word of a level for a row, by its place. */
u64 sort_word(const struct sort *s, const struct level *level, u64 row);
/* Sets the list of chunks that s sorts, with the places of their rows. */
void sort_list(struct sort *s, struct chunk **chunks, i64 count);
/* Whether a column of the chunks may have NULLs. */
bool sort_has_nulls(const struct sort *s, u32 col);
/* Puts the rows in order: the first `want` of them, columns 0 to col_count - 1, as s->out, which the
 * caller takes. *out_refused: there was no memory for their words, and nothing was done; only where
 * may_refuse. */
FALLIBLE sort_chunks(struct sort *s, enum buffer_place place, bool may_refuse, bool *out_refused);

/* sort_runs.c: the same for more rows than memory has room for. The variable's rows are sorted in
 * runs, which are merged; *out_runs: how many there were. */
FALLIBLE sort_in_runs(struct sort *s, u32 var, i64 *out_runs);

#endif

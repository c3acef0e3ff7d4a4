/* sort_int.h: insiders of STEP_SORT: keys as words, places of rows, sorted runs, texts beside them. */
#ifndef WF_CPU_SORT_INT_H
#define WF_CPU_SORT_INT_H

#include "cpu/cpu_int.h"
#include "cpu/radix.h"
#include "cpu/sort_key.h"
#include "cpu/texts.h"

enum { GATHER_ROWS = 1 << 15 }; /* of a task that puts rows in their place */

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
    /* Per column: its texts lie behind its rows, in their order; NULL = views are all there is. */
    const b8 *beside;
    i64 *text_starts; /* of such columns, per task of rows: where its texts begin */
    /* Per column: codes of it are texts while they are sorted, in runs, and get new numbers; NULL = none are. */
    struct dict **decoded;
};

/* The place of row i of the order. */
static inline u64 sort_place(const struct sort *s, i64 i) {
    return s->words ? s->words[i] & ((1ULL << s->row_bits) - 1) : s->pairs[i].row;
}

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
FALLIBLE sort_in_runs(struct sort *s, struct variable *v, i64 *out_runs);

/* sort.c: rows of which the first column is text, by that alone, in runs. */
FALLIBLE sort_by_text(struct exec *x, struct variable *v, u32 col_count);

/* Of `most` bytes, how many n texts begin with that `with` begins with. */
u32 texts_common(const str *text, const b8 *nulls, i64 n, struct sv with, u32 most);

/* sort_texts.c: which columns have texts in temporary space, by column; NULL = none. */
const b8 *texts_aside(const struct sort *s);
/* Of `most` bytes, how many all texts of a column begin with that s->sample begins with. */
u32 texts_common_aside(const struct sort *s, const struct chunk *chunk, u32 c, u32 most);
/* The order is known: where the texts of every task of rows will begin. */
FALLIBLE texts_measure(struct sort *s);
i64 texts_total(const struct sort *s, u32 col);
void texts_measured(struct sort *s); /* frees what the two made */
/* Where texts of a column begin, behind its rows in one buffer. */
static inline i64 texts_offset(i64 rows) {
    return ALIGN_UP(MAX_OF(rows, 1) * (i64)sizeof(str), 64);
}
/* Texts of n rows that a task puts next, which lead there then. */
void texts_put(const struct sort *s, u32 col, i64 task, str *text, i64 n);

/* recode.c: sets s->decoded: columns of codes of an interner in temporary space, where nobody who comes later knows
 * them by other numbers. */
void recode_open(struct sort *s, u32 step_no, const struct step *step);
/* n rows of a column from row `from` on: views of their texts. */
void recode_views(const struct sort *s, const struct chunk *chunk, u32 c, i64 from, i64 n, str *out);
/* Bytes that all texts of the column's dictionary begin with, `most` at most. */
u32 recode_common(const struct sort *s, u32 c, u32 most);
/* The rows are sorted: their texts are the entries of new dictionaries, in the order of the rows. */
FALLIBLE recode_rows(const struct sort *s, u32 var);

/* ranks.c: the rank of each of the first len texts of a dictionary, and back, as dict_ranks has them; in little memory
 * where it has no room for all. */
FALLIBLE ranks_find(struct exec *x, struct dict *dict, i32 len, const i32 **out_rank,
                    const i32 **out_code_at);

#endif

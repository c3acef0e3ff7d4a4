/* index_int.h: insiders of STEP_BUILD: the keys of a variable, and the forms an index can take. */
#ifndef WF_CPU_INDEX_INT_H
#define WF_CPU_INDEX_INT_H

#include "cpu/cpu_int.h"
#include "cpu/slots.h"

enum { CLASS_BITS_MOST = 8 };

/* The key column as it lies in the variable's chunks; rows count through all of them. */
struct build {
    struct exec *x;
    struct index *index;
    struct chunk **chunks;
    i64 chunk_count;
    i64 *starts; /* number of the first row of each chunk; chunk_count + 1 */
    u32 col;
    i64 rows;
    i64 keys; /* rows whose key is not NULL */
    i64 lo, hi;
    b8 ascending; /* keys never fall, and none is NULL */
    b8 strict;    /* ... and never repeat */
    _Atomic i32 duplicate;
    _Atomic i32 stopped; /* a task was told to stop */
};

static inline const i64 *build_keys(const struct build *b, i64 chunk, const b8 **out_nulls) {
    const struct column *col = &b->chunks[chunk]->cols[b->col];
    *out_nulls = col->nulls;
    return col->data;
}

/* index_build.c: lists chunks, finds bounds, NULLs and order of the keys. */
FALLIBLE build_scan(struct build *b, struct exec *x, struct chunk **chunks, i64 count, u32 col);
/* index_hash.c: with `set` one row a key is kept and duplicates are no matter. */
FALLIBLE hash_build(struct build *b, bool set);
/* Of an index that grows: at least twice as many slots as there may be keys, those it has among them. */
FALLIBLE index_slots(struct exec *x, struct index *index, i64 keys);

/* The index of what build_scan saw, in its best form: index_build.c, index_set.c. */
FALLIBLE index_form(struct build *b);
FALLIBLE set_form(struct build *b);

/* index_classes.c: how many bits of their hash divide the keys, so that a class has room in memory;
 * 0 where all have, or the pipelines that look them up could not run in passes. */
i32 class_bits(const struct build *b, const struct step *step, bool hashed);
/* The rows by class; the index has no keys before class_open. */
FALLIBLE classes_build(const struct build *b, const struct step *step, i32 bits);

/* class_texts.c: texts that go with the rows of their class. The bytes of a row's, on the average. */
i64 class_texts_width(const struct exec *x, u32 rows_var);
bool class_texts_aside(const struct exec *x, u32 rows_var, u32 col);
/* A column of rows to `out`, and its texts to a heap that the variable keeps; rows_place: per chunk and class, where
 * its rows go. */
FALLIBLE class_texts_put(const struct build *b, u32 rows_var, u32 col, const i64 *rows_place,
                         struct chunk *out);
/* Texts of a column of the class that was opened come to memory. */
FALLIBLE class_texts_open(struct exec *x, struct index *index, struct chunk *mine, u32 col);
void class_texts_close(struct index *index, u32 col_count);

/* Sets the bit key - lo of every key. */
FALLIBLE build_bits(const struct build *b, u32 *bits, i64 lo);

#endif

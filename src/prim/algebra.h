/* algebra.h: operators of relational algebra on packed tuples, in the form devices work on.
 *
 * The public library has turned fields into shifts and masks: a device knows words only. Words are
 * of type U32, U64 or U128. Rows lie in an array, or in pages with fill counts; where a body needs
 * to search them it finds rows by number through the pages' starts. Everything that searches
 * assumes words sorted by key = word >> key_shift. */
#ifndef WF_PRIM_ALGEBRA_H
#define WF_PRIM_ALGEBRA_H

#include "defs/kalgebra.h"
#include "prim/order.h"

/* `count` rows, or pages. Of an output: room for so many rows or pages. */
struct rel_rows {
    u8 type; /* enum elem */
    b8 paged;
    void *data;
    i64 count;
    u32 *fills; /* of pages */
    i64 page_rows, page_count;
    const u64 *starts; /* of an input: rows before each page, and of all; NULL: an array */
};

struct rel_join {
    struct rel_combine combine;
    u8 kind;  /* bits of enum rel_kind_bits */
    u8 stage; /* enum rel_stage */
    b8 profile;
    b8 indexes; /* out_x and out_y take positions; else `out` takes tuples */
    b8 whole;   /* a set operation whose key is all of the tuple, which is `set` of prim/order.h */
    struct prim_set set;
    struct rel_rows x, y, out;
    struct prim_array out_x, out_y;
};

struct rel_reduce {
    u8 reduce; /* enum rel_reduce_op */
    u8 key_shift;
    u8 field_shift;
    u64 field_mask;
    struct rel_rows in, out;
    u64 *values;
    i64 value_room;
};

/* Counts are told in full where the room was too small; nothing is written behind it. */
struct prim_algebra {
    /* Page by page when the output has pages: then a dense input is cut into them. */
    FALLIBLE(*project)
    (struct prim_job *job, struct rel_rows out, struct rel_rows in, const struct rel_moves *moves);
    FALLIBLE(*select)
    (struct prim_job *job, struct rel_rows out, struct rel_rows in, const struct rel_terms *terms,
     bool unordered, i64 *out_count);
    /* Outputs are arrays from here on, inputs have `starts` where they are paged. */
    FALLIBLE(*product)
    (struct prim_job *job, struct rel_rows out, struct rel_rows x, struct rel_rows y,
     const struct rel_combine *combine);
    FALLIBLE (*join)(struct prim_job *job, const struct rel_join *join, i64 *out_count);
    /* As prim_set_array; x, y or both are paged. */
    FALLIBLE(*sets)
    (struct prim_job *job, struct prim_set how, struct prim_array out, struct rel_rows x,
     struct rel_rows y, i64 *out_count);
    FALLIBLE (*reduce)(struct prim_job *job, const struct rel_reduce *reduce, i64 *out_count);
    /* Rows before each page and of all of them, to out[0 .. page_count]; *out_count is the last. */
    FALLIBLE (*starts)(struct prim_job *job, u64 *out, struct rel_rows rows, i64 *out_count);
    /* fills of pages that `count` rows fill one after the other. */
    FALLIBLE (*fill)(struct prim_job *job, u32 *fills, i64 page_rows, i64 pages, i64 count);
};
extern const struct prim_algebra cpu_prim_algebra, gpu_prim_algebra_class;

/* Entry points: paged inputs and outputs everywhere. out_count: rows. Room is checked: 54000. */
FALLIBLE prim_rel_project(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                          const struct rel_moves *moves,
                          i64 *out_count); /* pages to pages: as is */
FALLIBLE prim_rel_select(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                         const struct rel_terms *terms, bool unordered, i64 *out_count);
FALLIBLE prim_rel_convert(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                          i64 *out_count);
FALLIBLE prim_rel_product(struct prim_job *job, struct rel_rows out, struct rel_rows x,
                          struct rel_rows y, const struct rel_combine *combine, i64 *out_count);
FALLIBLE prim_rel_join(struct prim_job *job, const struct rel_join *join, i64 *out_count);
FALLIBLE prim_rel_reduce(struct prim_job *job, const struct rel_reduce *reduce, i64 *out_count);

#endif

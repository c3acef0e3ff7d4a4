/* rel_int.h: what the CPU's operators on packed tuples share. */
#ifndef WF_CPU_REL_INT_H
#define WF_CPU_REL_INT_H

#include "cpu/cpu_int.h"
#include "prim/algebra.h"

/* The public interface promises eight bytes of alignment. */
typedef u128 w128 __attribute__((aligned(8)));

enum { REL_BLOCK = 1024 }; /* rows that loops work on at a time */

/* Of rel_stage.h: words of a tile (both inputs), slots of its hash table, x that are held in
 * registers, and for how many y at most they do not search. */
enum { STAGE_ROWS = 2048, STAGE_SLOTS = 2 * STAGE_ROWS, STAGE_BLOCK = 8, STAGE_EXIT = 64 };
struct stage_wire { /* of the join network: a part of x, and the part of y that may match it */
    i32 x_from, x_end, from, end;
};

/* X(word of the input, word of the output, type to move bits in), for every pair. */
#define REL_WORD_PAIRS(X) \
    X(u32, u32, u32)      \
    X(u32, u64, u64)      \
    X(u32, w128, u128)    \
    X(u64, u32, u32)      \
    X(u64, u64, u64)      \
    X(u64, w128, u128)    \
    X(w128, u32, u32)     \
    X(w128, u64, u64)     \
    X(w128, w128, u128)

/* Where row i lies: in an array, or in its page. */
static inline i64 rel_place(const struct rel_rows *rows, i64 i) {
    i64 lo = 0;
    i64 hi = rows->page_count;
    while (rows->starts && hi - lo > 1) {
        i64 mid = (lo + hi) / 2;
        if ((i64)rows->starts[mid] <= i) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return rows->starts ? lo * rows->page_rows + (i - (i64)rows->starts[lo]) : i;
}

/* Rows side by side from row i on, and where they lie: all of an array's, or the rest of a page. */
static inline i64 rel_stretch(const struct rel_rows *rows, i64 i, i64 *out_place) {
    *out_place = rel_place(rows, i);
    return rows->starts ? (i64)rows->starts[*out_place / rows->page_rows + 1] - i : rows->count - i;
}

/* Words of rows first .. end as an array: where they are, or copied to `room`. */
static inline const void *rel_words(const struct rel_rows *rows, i64 first, i64 end, void *room) {
    i32 bytes = elem_bytes[rows->type];
    for (i64 i = first; rows->starts && i < end;) {
        i64 place;
        i64 n = MIN_OF(rel_stretch(rows, i, &place), end - i);
        memcpy((u8 *)room + (i - first) * bytes, (const u8 *)rows->data + place * bytes,
               (size_t)(n * bytes));
        i += n;
    }
    return rows->starts ? room : (const u8 *)rows->data + first * bytes;
}

static inline u128 rel_word_at(const struct rel_rows *rows, i64 i) {
    i32 bytes = elem_bytes[rows->type];
    i = rel_place(rows, i);
    return bytes == 4   ? ((const u32 *)rows->data)[i]
           : bytes == 8 ? ((const u64 *)rows->data)[i]
                        : ((const w128 *)rows->data)[i];
}

/* prim_merge.c */
FALLIBLE cpu_rel_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                      struct rel_rows x, struct rel_rows y, i64 *out_count);

/* A range of the merge of two relations, and the pairs found in it. */
struct rel_range {
    i64 x_first, x_end, y_first, y_end, x_count;
    i64 x_base, y_base; /* rows that the first words given are */
    i64 back;           /* how far before y_first the run starts that the first x matches */
    u32 shift;
    u8 kind;
    i64 count;                     /* so far, without what is held */
    const struct rel_join *target; /* NULL: only count */
    i64 at;                        /* where the pairs held go */
    i32 held;
    i64 x[REL_BLOCK], y[REL_BLOCK]; /* -1: alone */
};
void range_flush(struct rel_range *r); /* what is held goes out, if it is wanted */

/* The pair at the end of what is held is given out `count` times: 0 or 1. */
static inline void range_hold(struct rel_range *r, i64 count) {
    r->held += (i32)count;
    if (r->held == REL_BLOCK) {
        range_flush(r);
    }
}
static inline void range_pair(struct rel_range *r, i64 x, i64 y) {
    r->x[r->held] = x;
    r->y[r->held] = y;
    range_hold(r, 1);
}

static inline void range_match(struct rel_range *r, i64 x, i64 lo, i64 hi) {
    bool matched = hi > lo;
    if (matched && r->kind & REL_PAIRS) {
        if (!r->target) {
            r->count += hi - lo;
            return;
        }
        for (i64 y = lo; y < hi; y++) {
            range_pair(r, x, y);
        }
    } else if (matched ? r->kind & REL_X_ONCE : r->kind & REL_X_ALONE) {
        range_pair(r, x, -1);
    }
}

static inline void range_lone_y(struct rel_range *r, i64 first, i64 end, bool wanted) {
    for (i64 y = first; wanted && y < end; y++) {
        range_pair(r, -1, y);
    }
}

static inline u64 reduce_identity(u8 reduce) {
    return reduce == REDUCE_MIN ? ~0ULL : 0;
}
static inline u64 reduce_join(u8 reduce, u64 a, u64 b) {
    return reduce == REDUCE_MIN ? MIN_OF(a, b) : reduce == REDUCE_MAX ? MAX_OF(a, b) : a + b;
}

/* Bits of a word moved to another. */
static inline u128 word_move(u128 x, const struct rel_move *m) {
    return ((x >> m->from) & ((u128)m->mask_high << 64 | m->mask_low)) << m->to;
}

/* A range of at most STAGE_ROWS words by another stage than the merge (enum rel_stage), of an inner
 * or left join; x and y are the words at x_first and y_first. */
void rel_stage_join(struct rel_range *r, u8 stage, i32 bytes, const void *x, const void *y);
FALLIBLE cpu_rel_join(struct prim_job *job, const struct rel_join *join, i64 *out_count);

#endif

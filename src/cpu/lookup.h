/* lookup.h: keys looked up in an index, a vector at a time: the one probe loop of this device. */
#ifndef WF_CPU_LOOKUP_H
#define WF_CPU_LOOKUP_H

#include "cpu/vec.h"
#include "run/device.h"

enum { LOOKUP_SLACK = 64 }; /* elements that vector loops may write beyond the last */

/* Temporaries of one call, with room for its keys and LOOKUP_SLACK more. */
struct lookup {
    const struct vec_table *vec;
    u64 *hash;
    i64 *passed; /* keys that passed an index's filter */
    u32 *at;     /* ... and which ones they are */
};

/* What the filter of one index did so far for one reader; starts as zero. */
struct lookup_count {
    i64 asked, passed;
};

/* Of a unique index or a set: the row of key i in rows[i], whether there is one in found[i]. */
void lookup_rows(const struct lookup *l, struct lookup_count *count, const struct index *index,
                 const i64 *key, i64 n, i64 *restrict rows, b8 *restrict found);
/* The same for who wants nothing but the keys that are there: their places, ascending, in l->at,
 * their rows at those places of rows[], which holds anything elsewhere; returns how many. */
i64 lookup_select(const struct lookup *l, struct lookup_count *count, const struct index *index,
                  const i64 *key, i64 n, i64 *restrict rows);
/* Of any other: the run of key i, lo[i] .. hi[i], empty when there is none; elements of
 * index->rows, or rows themselves where the index has none. */
void lookup_runs(const struct lookup *l, struct lookup_count *count, const struct index *index,
                 const i64 *key, i64 n, u32 *restrict lo, u32 *restrict hi);

/* The first row of a run that is not empty. */
static inline i64 lookup_first(const struct index *index, u32 lo) {
    return index->rows ? (i64)index->rows[lo] : (i64)lo;
}

#endif

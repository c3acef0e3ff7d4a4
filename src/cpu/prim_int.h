/* prim_int.h: the CPU's primitives on arrays that have files of their own. */
#ifndef WF_CPU_PRIM_INT_H
#define WF_CPU_PRIM_INT_H

#include "prim/move.h"

FALLIBLE prim_cpu_map(struct prim_job *job, const struct prim_map *map);
FALLIBLE prim_cpu_segments(struct prim_job *job, const struct prim_segments *segments);
/* prim_fsum.c: exact sums of floats, and those of segments, whose offsets are fine. fsum_values
 * writes FSUM_WORDS words, fsum_join adds them to others. */
void fsum_values(i64 *out, enum elem type, const void *in, i64 n);
void fsum_join(i64 *all, const i64 *words);
/* The sum of n values, rounded to out; a fault, or 0. */
u8 fsum_rounded(enum elem type, const void *in, i64 n, void *out);
FALLIBLE prim_cpu_scan(struct prim_job *job, enum fold fold, bool inclusive, struct prim_array out,
                       struct prim_array in);
FALLIBLE prim_cpu_compact(struct prim_job *job, const struct prim_compact *compact);

#endif

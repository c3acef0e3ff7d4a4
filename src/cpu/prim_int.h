/* prim_int.h: the CPU's primitives on arrays that have files of their own. */
#ifndef WF_CPU_PRIM_INT_H
#define WF_CPU_PRIM_INT_H

#include "prim/move.h"

FALLIBLE prim_cpu_map(struct prim_job *job, const struct prim_map *map);
FALLIBLE prim_cpu_segments(struct prim_job *job, const struct prim_segments *segments);
FALLIBLE prim_cpu_scan(struct prim_job *job, enum fold fold, bool inclusive, struct prim_array out,
                       struct prim_array in);
FALLIBLE prim_cpu_compact(struct prim_job *job, const struct prim_compact *compact);

#endif

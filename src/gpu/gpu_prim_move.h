/* gpu_prim_move.h: the card's primitives of prim/move.h that have files of their own. */
#ifndef WF_GPU_GPU_PRIM_MOVE_H
#define WF_GPU_GPU_PRIM_MOVE_H

#include "prim/move.h"

FALLIBLE gpu_map(struct prim_job *job, const struct prim_map *map);
FALLIBLE gpu_segments(struct prim_job *job, const struct prim_segments *segments);
FALLIBLE gpu_compact(struct prim_job *job, const struct prim_compact *compact);

#endif

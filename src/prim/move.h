/* move.h: primitives that compute or move elements without ordering them. */
#ifndef WF_PRIM_MOVE_H
#define WF_PRIM_MOVE_H

#include "prim/prim.h"

struct prim_move {
    FALLIBLE(*scan)
    (struct prim_job *job, enum fold fold, bool inclusive, struct prim_array out,
     struct prim_array in);
};
extern const struct prim_move cpu_prim_move, gpu_prim_move_class;

/* out[i] = fold of in[0 .. i), with `inclusive` of in[0 .. i]. Both of one type that the fold has;
 * they may be the same. */
FALLIBLE prim_scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                         struct prim_array out, struct prim_array in);

#endif

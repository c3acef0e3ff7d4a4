/* move.c: entry points of the primitives that compute or move elements: each goes to the device's
 * own body. */
#include "prim/move.h"

wf_status prim_scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                          struct prim_array out, struct prim_array in) {
    const struct prim_move *move = job->dev->prims->move;
    return move && move->scan ? move->scan(job, fold, inclusive, out, in)
                              : prim_refuse(job, "scan");
}

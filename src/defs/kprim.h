/* kprim.h: arguments of the kernels of primitives; compiles as C11 and as CUDA C. Pointers are
 * addresses on the device. */
#ifndef WF_DEFS_KPRIM_H
#define WF_DEFS_KPRIM_H

#include "base/word.h"

enum { SCAN_THREADS = 256, SCAN_VECS = 4 }; /* a tile is so many vectors of 16 bytes a thread */

struct kscan_array {
    const void *in;
    void *out;
    i64 count;
    u64 *state; /* of tiles: see kernels/lookback.h and scan.h */
    u32 *ticket;
    u32 inclusive;
    u32 pad;
};

#endif

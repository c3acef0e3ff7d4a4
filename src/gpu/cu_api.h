/* cu_api.h: the CUDA driver and NVRTC, found at run time. Nothing of CUDA is linked or included. */
#ifndef WF_GPU_CU_API_H
#define WF_GPU_CU_API_H

#include <stddef.h>

#include "base/word.h"
#include "defs/cu_api.def"

struct cu_api {
#define X(A, field, symbol, params) int(*field) params;
    WF_CU_DRIVER(X, )
    WF_CU_NVRTC(X, )
    WF_CU_NVRTC_LATER(X, ) /* any of them may be NULL */
#undef X
    i32 has_rtc;      /* NVRTC was found; its entry points are NULL otherwise */
    i32 is_simt;      /* the driver's library has NVRTC, too: the simt driver */
    const char *from; /* what was loaded, for `warpfox devices` */
    const char *rtc_from;
};

enum { /* attribute numbers of the driver's interface */
       CU_ATTR_SHARED_OPTIN = 97,
       CU_ATTR_L2_BYTES = 38,
       CU_ATTR_SM_THREADS = 39,
       CU_ATTR_SM_COUNT = 16,
       CU_ATTR_MAJOR = 75,
       CU_ATTR_MINOR = 76,
       CU_FUNC_REGS = 4,
       CU_FUNC_LOCAL_BYTES = 3,
       CU_FUNC_SHARED_BYTES = 1,
       CU_FUNC_MAX_DYNAMIC_SHARED = 8,
       CU_OK = 0,
       CU_OUT_OF_MEMORY = 2,
       CU_NOT_READY = 600,
       CU_STREAM_NON_BLOCKING = 1,
       CU_LIMIT_FETCH_BYTES = 5, /* CU_LIMIT_MAX_L2_FETCH_GRANULARITY */
       CU_HOST_PORTABLE_MAPPED = 3,
       CU_EVENT_NO_TIMING = 2,
};

/* Loads the libraries once per process; NULL with a reason in `why` when there is no driver. */
const struct cu_api *cu_api_load(char why[300]);

#endif

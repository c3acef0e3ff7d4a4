/* cu_check.c: compares cu_api.def with cuda.h and nvrtc.h; compiled only where those exist.
 *
 * The table below repeats each prototype in CUDA's own types, with H() around handles and E()
 * around enums. Expanded once with CUDA's names it must equal the header's prototype; expanded once
 * more with void * and int it must equal ours. Changing one argument type anywhere fails the build.
 */
#include <cuda.h>
#include <nvrtc.h>

#include "base/word.h"
#include "defs/cu_api.def"

#undef cuEventElapsedTime
#undef cuDeviceGetUuid

#define OURS(A, field, symbol, params) typedef int ours_##symbol params;
WF_CU_DRIVER(OURS, )
WF_CU_NVRTC(OURS, )

#define THEIRS(X)                                                                                 \
    X(cuInit, (unsigned))                                                                         \
    X(cuDriverGetVersion, (int *))                                                                \
    X(cuDeviceGetCount, (int *))                                                                  \
    X(cuDeviceGet, (CUdevice *, int))                                                             \
    X(cuDeviceGetName, (char *, int, CUdevice))                                                   \
    X(cuDeviceGetAttribute, (int *, E(CUdevice_attribute), CUdevice))                             \
    X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                                  \
    X(cuDevicePrimaryCtxRetain, (H(CUcontext) *, CUdevice))                                       \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                   \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice))                                                     \
    X(cuCtxSetCurrent, (H(CUcontext)))                                                            \
    X(cuCtxSetLimit, (E(CUlimit), size_t))                                                        \
    X(cuCtxSynchronize, (void))                                                                   \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                      \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                     \
    X(cuMemFree_v2, (CUdeviceptr))                                                                \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                                                \
    X(cuMemFreeHost, (void *))                                                                    \
    X(cuMemHostRegister_v2, (void *, size_t, unsigned))                                           \
    X(cuMemHostUnregister, (void *))                                                              \
    X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))                            \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, H(CUstream)))                     \
    X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, H(CUstream)))                           \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, H(CUstream)))                      \
    X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, H(CUstream)))                         \
    X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, H(CUstream)))                             \
    X(cuStreamCreate, (H(CUstream) *, unsigned))                                                  \
    X(cuStreamDestroy_v2, (H(CUstream)))                                                          \
    X(cuStreamSynchronize, (H(CUstream)))                                                         \
    X(cuStreamWaitEvent, (H(CUstream), H(CUevent), unsigned))                                     \
    X(cuEventCreate, (H(CUevent) *, unsigned))                                                    \
    X(cuEventDestroy_v2, (H(CUevent)))                                                            \
    X(cuEventRecord, (H(CUevent), H(CUstream)))                                                   \
    X(cuEventSynchronize, (H(CUevent)))                                                           \
    X(cuEventQuery, (H(CUevent)))                                                                 \
    X(cuModuleLoadData, (H(CUmodule) *, const void *))                                            \
    X(cuModuleUnload, (H(CUmodule)))                                                              \
    X(cuModuleGetFunction, (H(CUfunction) *, H(CUmodule), const char *))                          \
    X(cuFuncGetAttribute, (int *, E(CUfunction_attribute), H(CUfunction)))                        \
    X(cuFuncSetAttribute, (H(CUfunction), E(CUfunction_attribute), int))                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, H(CUfunction), int, size_t))           \
    X(cuLaunchKernel, (H(CUfunction), unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, H(CUstream), void **, void **))                                  \
    X(cuGetErrorName, (E(CUresult), const char **))                                               \
    X(cuGetErrorString, (E(CUresult), const char **))                                             \
    X(nvrtcVersion, (int *, int *))                                                               \
    X(nvrtcCreateProgram, (H(nvrtcProgram) *, const char *, const char *, int,                    \
                           const char *const *, const char *const *))                             \
    X(nvrtcDestroyProgram, (H(nvrtcProgram) *))                                                   \
    X(nvrtcCompileProgram, (H(nvrtcProgram), int, const char *const *))                           \
    X(nvrtcGetCUBINSize, (H(nvrtcProgram), size_t *))                                             \
    X(nvrtcGetCUBIN, (H(nvrtcProgram), char *))                                                   \
    X(nvrtcGetProgramLogSize, (H(nvrtcProgram), size_t *))                                        \
    X(nvrtcGetProgramLog, (H(nvrtcProgram), char *))

/* A pointer to the enum types CUresult and nvrtcResult differs; the size of what they return does
 * not. */
#define RESULT(symbol) __typeof__(*(&symbol))
#define H(type) type
#define E(type) type
#define X(symbol, params)                                                                  \
    typedef CUresult theirs_driver_##symbol params;                                        \
    typedef nvrtcResult theirs_rtc_##symbol params;                                        \
    _Static_assert(__builtin_types_compatible_p(RESULT(symbol), theirs_driver_##symbol) || \
                       __builtin_types_compatible_p(RESULT(symbol), theirs_rtc_##symbol),  \
                   "cuda.h: " #symbol);
THEIRS(X)
#if CUDA_VERSION >= 12080
typedef nvrtcResult theirs_flow(nvrtcProgram, int (*)(void *, void *), void *);
_Static_assert(__builtin_types_compatible_p(RESULT(nvrtcSetFlowCallback), theirs_flow),
               "nvrtc.h: nvrtcSetFlowCallback");
#endif
#undef X
#undef H
#undef E
#define H(type) void *
#define E(type) int
#define X(symbol, params)                                                       \
    typedef int plain_##symbol params;                                          \
    _Static_assert(__builtin_types_compatible_p(ours_##symbol, plain_##symbol), \
                   "cu_api.def: " #symbol);
THEIRS(X)

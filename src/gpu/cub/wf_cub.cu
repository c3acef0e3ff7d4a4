/* wf_cub.cu: the optional module of NVIDIA's own primitives, behind the interface of wf_cub.h.
 *
 * Compiled by nvcc into a library of its own (target `cub`), which the gpu module loads when it is
 * there; nothing needs it. Works in whatever context is current, with the caller's workspace: only
 * Thrust's operations, which are there for comparison, allocate. */
#include "wf_cub.h"

#include <cub/cub.cuh>
#include <thrust/execution_policy.h>
#include <thrust/merge.h>
#include <thrust/set_operations.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define EXPORT extern "C" __attribute__((visibility("default")))
#define STREAM(call) ((cudaStream_t)(call)->stream)
/* The body sees T and U, the types of the widths. */
#define WITH_WIDTH(width, ...)        \
    do {                              \
        if ((width) == 8) {           \
            using T = u64;            \
            return (int)(__VA_ARGS__); \
        }                             \
        using T = u32;                \
        return (int)(__VA_ARGS__);    \
    } while (0)

namespace {

template <typename T> struct in_range {
    T flip, lo, span;
    bool negate;
    __host__ __device__ bool operator()(T x) const {
        return ((T)((x ^ flip) - lo) <= span) != negate;
    }
};

/* Many because the call behind it names as many. */
template <typename T, typename V>
cudaError_t sort_pairs(wf_cub_call *call, void *out, const void *in, void *out_values,
                       const void *values, i64 n, int low, int high) {
    return cub::DeviceRadixSort::SortPairs(call->temp, call->temp_bytes, (const T *)in, (T *)out,
                                           (const V *)values, (V *)out_values, n, low, high,
                                           STREAM(call));
}

template <typename T>
cudaError_t reduce(wf_cub_call *call, int fold, void *out, const void *in, i64 n) {
    const T *from = (const T *)in;
    T *to = (T *)out;
    if (fold == WF_CUB_ADD) {
        return cub::DeviceReduce::Sum(call->temp, call->temp_bytes, from, to, n, STREAM(call));
    }
    if (fold == WF_CUB_MIN) {
        return cub::DeviceReduce::Min(call->temp, call->temp_bytes, from, to, n, STREAM(call));
    }
    return cub::DeviceReduce::Max(call->temp, call->temp_bytes, from, to, n, STREAM(call));
}

template <typename T>
i64 set_operation(cudaStream_t stream, int which, T *out, const T *a, i64 n, const T *b, i64 m) {
    auto on = thrust::cuda::par.on(stream);
    T *end = which == WF_CUB_UNION ? thrust::set_union(on, a, a + n, b, b + m, out)
             : which == WF_CUB_INTERSECTION
                 ? thrust::set_intersection(on, a, a + n, b, b + m, out)
                 : thrust::set_difference(on, a, a + n, b, b + m, out);
    return end - out;
}

} // namespace

EXPORT int wf_cub_version(void) {
    return WF_CUB_VERSION;
}

EXPORT int wf_cub_sort_keys(wf_cub_call *call, int width, void *out, const void *in, i64 n,
                            int low_bit, int high_bit) {
    WITH_WIDTH(width, cub::DeviceRadixSort::SortKeys(call->temp, call->temp_bytes, (const T *)in,
                                                     (T *)out, n, low_bit, high_bit, STREAM(call)));
}

/* Many because the call behind it names as many. */
EXPORT int wf_cub_sort_pairs(wf_cub_call *call, int width, int value_width, void *out,
                             const void *in, void *out_values, const void *values, i64 n,
                             int low_bit, int high_bit) {
    if (value_width == 8) {
        WITH_WIDTH(width, sort_pairs<T, u64>(call, out, in, out_values, values, n, low_bit,
                                             high_bit));
    }
    WITH_WIDTH(width, sort_pairs<T, u32>(call, out, in, out_values, values, n, low_bit, high_bit));
}

EXPORT int wf_cub_scan(wf_cub_call *call, int width, int inclusive, void *out, const void *in,
                       i64 n) {
    if (inclusive) {
        WITH_WIDTH(width, cub::DeviceScan::InclusiveSum(call->temp, call->temp_bytes,
                                                        (const T *)in, (T *)out, n, STREAM(call)));
    }
    WITH_WIDTH(width, cub::DeviceScan::ExclusiveSum(call->temp, call->temp_bytes, (const T *)in,
                                                    (T *)out, n, STREAM(call)));
}

EXPORT int wf_cub_reduce(wf_cub_call *call, int width, int fold, void *out, const void *in, i64 n) {
    WITH_WIDTH(width, reduce<T>(call, fold, out, in, n));
}

EXPORT int wf_cub_select_flags(wf_cub_call *call, int width, void *out, const void *in,
                               const unsigned char *flags, i64 n, void *out_count) {
    WITH_WIDTH(width, cub::DeviceSelect::Flagged(call->temp, call->temp_bytes, (const T *)in, flags,
                                                 (T *)out, (i64 *)out_count, n, STREAM(call)));
}

/* Many because the call behind it names as many. */
EXPORT int wf_cub_select_range(wf_cub_call *call, int width, void *out, const void *in, i64 n,
                               u64 flip, u64 lo, u64 hi, int negate, void *out_count) {
    WITH_WIDTH(width,
               cub::DeviceSelect::If(call->temp, call->temp_bytes, (const T *)in, (T *)out,
                                     (i64 *)out_count, n,
                                     in_range<T>{(T)flip, (T)lo, (T)(hi - lo), negate != 0},
                                     STREAM(call)));
}

/* Many because the call behind it names as many. */
EXPORT int wf_cub_histogram(wf_cub_call *call, int width, void *out, int bins, const void *in,
                            i64 n, u64 first, u64 bin_width) {
    u64 last = first + (u64)bins * bin_width;
    if (width == 8) {
        return (int)cub::DeviceHistogram::HistogramEven(call->temp, call->temp_bytes,
                                                        (const u64 *)in, (u64 *)out, bins + 1,
                                                        first, last, n, STREAM(call));
    }
    /* levels of 64 bits: the last bound may lie just above the elements' type */
    return (int)cub::DeviceHistogram::HistogramEven(call->temp, call->temp_bytes, (const u32 *)in,
                                                    (u64 *)out, bins + 1, first, last, n,
                                                    STREAM(call));
}

EXPORT int wf_cub_unique(wf_cub_call *call, int width, void *out, const void *in, i64 n,
                         void *out_count) {
    WITH_WIDTH(width, cub::DeviceSelect::Unique(call->temp, call->temp_bytes, (const T *)in,
                                                (T *)out, (i64 *)out_count, n, STREAM(call)));
}

EXPORT int wf_cub_runs(wf_cub_call *call, int width, void *out, void *out_lengths, const void *in,
                       i64 n, void *out_count) {
    WITH_WIDTH(width, cub::DeviceRunLengthEncode::Encode(
                          call->temp, call->temp_bytes, (const T *)in, (T *)out, (i64 *)out_lengths,
                          (i64 *)out_count, n, STREAM(call)));
}

/* Many because the call behind it names as many. */
EXPORT int wf_cub_set(wf_cub_call *call, int width, int which, void *out, const void *a,
                      i64 a_count, const void *b, i64 b_count, i64 *out_count) {
    try {
        *out_count = width == 8 ? set_operation(STREAM(call), which, (u64 *)out, (const u64 *)a,
                                                a_count, (const u64 *)b, b_count)
                                : set_operation(STREAM(call), which, (u32 *)out, (const u32 *)a,
                                                a_count, (const u32 *)b, b_count);
    } catch (...) {
        return (int)cudaErrorUnknown;
    }
    return 0;
}

EXPORT int wf_cub_merge(wf_cub_call *call, int width, void *out, const void *a, i64 a_count,
                        const void *b, i64 b_count) {
    try {
        auto on = thrust::cuda::par.on(STREAM(call));
        if (width == 8) {
            thrust::merge(on, (const u64 *)a, (const u64 *)a + a_count, (const u64 *)b,
                          (const u64 *)b + b_count, (u64 *)out);
        } else {
            thrust::merge(on, (const u32 *)a, (const u32 *)a + a_count, (const u32 *)b,
                          (const u32 *)b + b_count, (u32 *)out);
        }
    } catch (...) {
        return (int)cudaErrorUnknown;
    }
    return 0;
}

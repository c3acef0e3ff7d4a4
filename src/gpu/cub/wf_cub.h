/* wf_cub.h: the C interface of the optional module libwarpfox-cub.so: primitives of NVIDIA's CUB
 * and Thrust on arrays of the current context.
 *
 * Elements are unsigned integers of `width` bytes, 4 or 8. Functions return a CUDA error number, 0
 * is success, and only queue their work on the stream, except where a count is returned by value.
 * With `temp` NULL nothing runs and *temp_bytes says how much workspace the same call takes. */
#ifndef WF_CUB_H
#define WF_CUB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_CUB_VERSION = 1 };
enum wf_cub_set { WF_CUB_UNION, WF_CUB_INTERSECTION, WF_CUB_DIFFERENCE };
enum wf_cub_fold { WF_CUB_ADD, WF_CUB_MIN, WF_CUB_MAX };

struct wf_cub_call {
    void *temp;
    size_t temp_bytes;
    void *stream; /* CUstream */
};

/* name, parameters: declares the functions and the struct they are found in. */
#define WF_CUB_FUNCTIONS(X)                                                                        \
    X(version, (void))                                                                             \
    X(sort_keys, (struct wf_cub_call * call, int width, void *out, const void *in, long long n,    \
                  int low_bit, int high_bit))                                                      \
    X(sort_pairs,                                                                                  \
      (struct wf_cub_call * call, int width, int value_width, void *out, const void *in,           \
       void *out_values, const void *values, long long n, int low_bit, int high_bit))              \
    X(scan, (struct wf_cub_call * call, int width, int inclusive, void *out, const void *in,       \
             long long n))                                                                         \
    X(reduce,                                                                                      \
      (struct wf_cub_call * call, int width, int fold, void *out, const void *in, long long n))    \
    X(select_flags, (struct wf_cub_call * call, int width, void *out, const void *in,              \
                     const unsigned char *flags, long long n, void *out_count))                    \
    /* those with lo <= (x ^ flip) <= hi, or, negated, not */                                      \
    X(select_range, (struct wf_cub_call * call, int width, void *out, const void *in, long long n, \
                     unsigned long long flip, unsigned long long lo, unsigned long long hi,        \
                     int negate, void *out_count))                                                 \
    /* bins of `bin_width` from `first` on; counts of 8 bytes */                                   \
    X(histogram, (struct wf_cub_call * call, int width, void *out, int bins, const void *in,       \
                  long long n, unsigned long long first, unsigned long long bin_width))            \
    X(unique, (struct wf_cub_call * call, int width, void *out, const void *in, long long n,       \
               void *out_count))                                                                   \
    /* lengths of 8 bytes */                                                                       \
    X(runs, (struct wf_cub_call * call, int width, void *out, void *out_lengths, const void *in,   \
             long long n, void *out_count))                                                        \
    /* Thrust: its own workspace; *out_count on the host, waits */                                 \
    X(set, (struct wf_cub_call * call, int width, int which, void *out, const void *a,             \
            long long a_count, const void *b, long long b_count, long long *out_count))            \
    X(merge, (struct wf_cub_call * call, int width, void *out, const void *a, long long a_count,   \
              const void *b, long long b_count))

#define X(name, params) int wf_cub_##name params;
WF_CUB_FUNCTIONS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif

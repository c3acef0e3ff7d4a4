/* cu_api.c: finds the driver's and NVRTC's entry points.
 *
 * WARPFOX_CUDA names the driver's library, which may provide both (the simt driver of the tests); what is
 * not given is looked for under the names NVIDIA ships. A missing driver is a normal state
 * with a reason; a missing NVRTC leaves the kernels that were compiled ahead of time. The table is
 * filled once per process and never unloaded: unpinning a buffer may need it at any time. */
#include "gpu/cu_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/thread.h"

static struct cu_api api;
static _Atomic i32 state; /* 0 = not tried, 1 = being tried, 2 = loaded, 3 = no driver */
static char failure[300];
static char given_name[4096];

static void *open_first(const char *const *names, const char **out_name) {
    for (i32 i = 0; names[i]; i++) {
        void *library = library_open(names[i]);
        if (library) {
            *out_name = names[i];
            return library;
        }
    }
    return NULL;
}

static i32 find(void *library, const char *symbol, void *out_field) {
    void *found = library_find(library, symbol);
    memcpy(out_field, &found, sizeof found);
    return found != NULL;
}

static i32 load_driver(void *library) {
    i32 complete = 1;
#define X(A, field, symbol, params)                                                        \
    if (complete && !find(library, #symbol, &api.field)) {                                 \
        snprintf(failure, sizeof failure, "%s has no %s: the driver is too old", api.from, \
                 #symbol);                                                                 \
        complete = 0;                                                                      \
    }
    WF_CU_DRIVER(X, )
#undef X
    return complete;
}

static i32 load_rtc(void *library) {
    i32 complete = library != NULL;
#define X(A, field, symbol, params) complete = complete && find(library, #symbol, &api.field);
    WF_CU_NVRTC(X, )
#undef X
#define X(A, field, symbol, params) (void)(complete && find(library, #symbol, &api.field));
    WF_CU_NVRTC_LATER(X, )
#undef X
    return complete;
}

static i32 load(void) {
    static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const char *const rtc_names[] = {"libnvrtc.so.13",
                                            "libnvrtc.so.12",
                                            "libnvrtc.so",
                                            "/usr/local/cuda/lib64/libnvrtc.so.13",
                                            "/usr/local/cuda/lib64/libnvrtc.so.12",
                                            "/usr/local/cuda/lib64/libnvrtc.so",
                                            NULL};
    const char *given = getenv("WARPFOX_CUDA");
    void *library;
    if (given && given[0]) {
        library = library_open(given);
        snprintf(given_name, sizeof given_name, "%s", given);
        api.from = given_name;
        if (!library) {
            snprintf(failure, sizeof failure, "WARPFOX_CUDA=%.200s cannot be loaded", given);
            return 0;
        }
    } else {
        library = open_first(driver_names, &api.from);
        if (!library) {
            snprintf(failure, sizeof failure, "no CUDA driver: libcuda.so.1 was not found");
            return 0;
        }
    }
    if (!load_driver(library)) {
        return 0;
    }
    api.rtc_from = api.from;
    api.has_rtc = api.is_simt = load_rtc(library);
    if (!api.has_rtc) {
        api.has_rtc = load_rtc(open_first(rtc_names, &api.rtc_from));
    }
    return 1;
}

const struct cu_api *cu_api_load(char why[300]) {
    i32 expected = 0;
    if (atomic_compare_exchange_strong(&state, &expected, 1)) {
        atomic_store(&state, load() ? 2 : 3);
    }
    while (atomic_load(&state) == 1) {
    }
    if (atomic_load(&state) == 3) {
        snprintf(why, 300, "%s", failure);
        return NULL;
    }
    return &api;
}

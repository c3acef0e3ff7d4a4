/* driver.c: the device, the context, and what every entry point does first and last.
 *
 * simt_enter counts the call, makes the SIMT_FAIL_AT-th one fail, and checks what a real driver
 * would: that cuInit was called, that the calling thread has a current context, that the context
 * was not lost by a failed kernel. A lost context answers every call with the error that lost it
 * until it is reset or released; after that, threads have to make it current again. */
#define _GNU_SOURCE
#include "simt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct simt_settings simt_settings;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u64 call_count;
static b8 settings_read;
static char fail_text[32];

static struct {
    u64 generation; /* counts resets */
    u32 retained;
    int lost;
    b8 started;
} context = {1, 0, 0, 0};

static _Thread_local b8 current;
static _Thread_local u64 current_generation;
static int pending_code; /* of the running call, which holds the lock */

/* A missing body is an error when the library is loaded. */
typedef void (*any_function)(void);
extern const any_function simt_entry_points[];
const any_function simt_entry_points[] = {
#define SIMT_ENTRY_POINT(A, field, symbol, params) (any_function) symbol,
    WF_CU_DRIVER(SIMT_ENTRY_POINT, _) WF_CU_NVRTC(SIMT_ENTRY_POINT, _)
        WF_CU_NVRTC_LATER(SIMT_ENTRY_POINT, _)
#undef SIMT_ENTRY_POINT
};

u64 simt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

u64 simt_generation(void) {
    return context.generation;
}

int simt_lost(void) {
    return context.lost;
}

u64 simtCallCount(void) {
    return call_count;
}

void simtFailAt(u64 n, int code) {
    pthread_mutex_lock(&lock);
    simt_settings.fail_at = n ? call_count + n : 0;
    simt_settings.fail_code = code;
    pthread_mutex_unlock(&lock);
}

static u64 number(const char *name, u64 fallback) {
    const char *text = getenv(name);
    if (text == NULL || text[0] == 0) {
        return fallback;
    }
    char *end;
    u64 value = strtoull(text, &end, 10);
    u32 shift = *end == 'K' || *end == 'k'   ? 10
                : *end == 'M' || *end == 'm' ? 20
                : *end == 'G' || *end == 'g' ? 30
                                             : 0;
    return value << shift;
}

static void read_settings(void) {
    const char *text = getenv("SIMT_FAIL_AT");
    simt_settings.memory_bytes = number("SIMT_MEMORY", (u64)256 << 20);
    simt_settings.fill_bytes = number("SIMT_FILL", (u64)32 << 20);
    simt_settings.seed = number("SIMT_SEED", 0);
    simt_settings.devices = number("SIMT_DEVICES", 1);
    simt_settings.fail_at = number("SIMT_FAIL_AT", 0);
    simt_settings.fail_code = (int)number("SIMT_FAIL_CODE", 0);
    simt_settings.chip = number("SIMT_CHIP", 90);
    simt_settings.slow_ms = number("SIMT_SLOW", 0);
    simt_settings.start_ms = number("SIMT_START", 0);
    simt_settings.rtc = number("SIMT_RTC", 130);
    simt_settings.strict = number("SIMT_STRICT", 1) != 0;
    simt_settings.trace = number("SIMT_TRACE", 0) != 0;
    if (!settings_read || strcmp(text == NULL ? "" : text, fail_text) != 0) {
        snprintf(fail_text, sizeof(fail_text), "%s", text == NULL ? "" : text);
        call_count = 0;
    }
    settings_read = 1;
}

/* What the call answers when it is made to fail: something its callers must expect. */
static int fail_code(const char *name) {
    if (strncmp(name, "nvrtc", 5) == 0) {
        return 11; /* NVRTC_ERROR_INTERNAL_ERROR */
    }
    if (simt_settings.fail_code != 0) {
        return simt_settings.fail_code;
    }
    /* a launch takes memory, too: for stacks of threads */
    return strstr(name, "Alloc") || strstr(name, "Launch") ? SIMT_OUT_OF_MEMORY : SIMT_UNKNOWN;
}

static int count_call(const char *name) {
    if (!settings_read || strcmp(name, "cuInit") == 0) {
        read_settings();
    }
    call_count++;
    simt_trace("call %llu: %s", call_count, name);
    if (call_count != simt_settings.fail_at) {
        return 0;
    }
    int code = fail_code(name);
    simt_trace("call %llu is made to fail with %d", call_count, code);
    if (code >= SIMT_ILLEGAL_ADDRESS && code < SIMT_UNKNOWN && strncmp(name, "cu", 2) == 0) {
        context.lost = code;
    }
    return code;
}

static int check_state(unsigned needs) {
    if ((needs & (SIMT_INIT | SIMT_CTX)) != 0 && !context.started) {
        return SIMT_NOT_INITIALIZED;
    }
    if ((needs & SIMT_CTX) == 0) {
        return 0;
    }
    if (!current) {
        return SIMT_INVALID_CONTEXT;
    }
    if (current_generation != context.generation || context.retained == 0) {
        return SIMT_CONTEXT_DESTROYED;
    }
    return context.lost;
}

int simt_enter(const char *name, unsigned needs) {
    pthread_mutex_lock(&lock);
    pending_code = count_call(name);
    if (pending_code == 0) {
        pending_code = check_state(needs);
    }
    if (pending_code != 0 && (needs & SIMT_ALWAYS) == 0) {
        int code = pending_code;
        pthread_mutex_unlock(&lock);
        return code;
    }
    return 0;
}

int simt_leave(int code) {
    code = pending_code != 0 ? pending_code : code;
    pending_code = 0;
    if (code != 0) {
        simt_trace("call %llu answers %d", call_count, code);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

void simt_lose(int code) {
    if (context.lost == 0) {
        context.lost = code;
    }
}

static void reset(void) {
    simt_queue_reset();
    simt_module_reset();
    simt_memory_reset();
    context.generation++;
    context.lost = 0;
}

static b8 is_device(int device) {
    return device >= 0 && (u64)device < simt_settings.devices;
}

int cuInit(unsigned flags) {
    int code = simt_enter("cuInit", SIMT_ANY);
    if (code != 0) {
        return code;
    }
    if (flags != 0) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    simtClearReport();
    const struct timespec start = {(time_t)(simt_settings.start_ms / 1000),
                                   (long)(simt_settings.start_ms % 1000) * 1000000};
    (void)nanosleep(&start, NULL);
    if (!context.started) {
        /* Signal handlers and kernels point into this library: it stays. */
        Dl_info info;
        if (dladdr(&context, &info) != 0) {
            (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
        }
        code = simt_memory_start();
        context.started = code == 0;
    }
    simt_memory_watch();
    return simt_leave(code);
}

int cuDriverGetVersion(int *out) {
    int code = simt_enter("cuDriverGetVersion", SIMT_ANY);
    if (code != 0) {
        return code;
    }
    *out = 13000;
    return simt_leave(0);
}

int cuDeviceGetCount(int *out) {
    int code = simt_enter("cuDeviceGetCount", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    *out = (int)simt_settings.devices;
    return simt_leave(0);
}

int cuDeviceGet(int *out, int ordinal) {
    int code = simt_enter("cuDeviceGet", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    *out = ordinal;
    return simt_leave(is_device(ordinal) ? 0 : SIMT_INVALID_DEVICE);
}

int cuDeviceGetName(char *name, int len, int device) {
    int code = simt_enter("cuDeviceGetName", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    /* Its images differ, so whoever keeps them by the name of the chip tells them apart. */
    snprintf(name, len > 0 ? (size_t)len : 0, "%s",
             simt_settings.strict ? "simt"
             : SIMT_ASAN          ? "simt with address checks"
                                  : "simt without checks");
    return simt_leave(is_device(device) ? 0 : SIMT_INVALID_DEVICE);
}

int cuDeviceGetAttribute(int *out, int attribute, int device) {
    static const struct {
        int attribute;
        int value;
    } known[] = {
        {1, SIMT_MAX_THREADS},         /* threads per block */
        {2, SIMT_MAX_THREADS},         /* block width */
        {5, INT32_MAX},                /* grid width */
        {8, SIMT_STATIC_SHARED_BYTES}, /* shared memory per block */
        {9, 65536},                    /* constant memory */
        {10, SIMT_WARP},               /* warp */
        {12, 65536},                   /* registers per block */
        {13, 1000000},                 /* clock, kHz */
        {16, SIMT_SM_COUNT},           /* multiprocessors */
        {18, 0},                       /* integrated */
        {19, 1},                       /* maps host memory */
        {20, 0},                       /* compute mode */
        {31, 1},                       /* concurrent kernels */
        {36, 1000000},                 /* memory clock, kHz */
        {37, 64},                      /* bus width, bits */
        {38, 1 << 20},                 /* L2 bytes */
        {39, 2 * SIMT_MAX_THREADS},    /* threads per multiprocessor */
        {40, 2},                       /* copy engines */
        {41, 1},                       /* unified addressing */
        {81, 228 * 1024},              /* shared memory per multiprocessor */
        {82, 65536},                   /* registers per multiprocessor */
        {91, 1},                       /* host pointers of registered memory are device pointers */
        {97, SIMT_SHARED_BYTES},       /* shared memory per block, opt-in */
        {99, 1},                       /* can register host memory */
        {106, SIMT_BLOCKS_PER_SM},     /* blocks per multiprocessor */
    };
    int code = simt_enter("cuDeviceGetAttribute", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    *out = attribute == 75   ? (int)simt_settings.chip / 10 /* major */
           : attribute == 76 ? (int)simt_settings.chip % 10 /* minor */
                             : 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].attribute == attribute) {
            *out = known[i].value;
        }
    }
    return simt_leave(!is_device(device) ? SIMT_INVALID_DEVICE
                      : attribute < 1    ? SIMT_INVALID_VALUE
                                         : 0);
}

int cuDeviceTotalMem_v2(size_t *out, int device) {
    int code = simt_enter("cuDeviceTotalMem_v2", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    *out = simt_settings.memory_bytes;
    return simt_leave(is_device(device) ? 0 : SIMT_INVALID_DEVICE);
}

int cuDevicePrimaryCtxRetain(void **out, int device) {
    int code = simt_enter("cuDevicePrimaryCtxRetain", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    if (!is_device(device)) {
        return simt_leave(SIMT_INVALID_DEVICE);
    }
    context.retained++;
    *out = &context;
    return simt_leave(0);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    int code = simt_enter("cuDevicePrimaryCtxRelease_v2", SIMT_INIT | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    if (!is_device(device) || context.retained == 0) {
        return simt_leave(SIMT_INVALID_CONTEXT);
    }
    if (--context.retained == 0) {
        reset();
    }
    return simt_leave(0);
}

int cuDevicePrimaryCtxReset_v2(int device) {
    int code = simt_enter("cuDevicePrimaryCtxReset_v2", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    if (!is_device(device)) {
        return simt_leave(SIMT_INVALID_DEVICE);
    }
    reset();
    return simt_leave(0);
}

int cuCtxSetCurrent(void *ctx) {
    int code = simt_enter("cuCtxSetCurrent", SIMT_INIT);
    if (code != 0) {
        return code;
    }
    if (ctx != NULL && ctx != (void *)&context) {
        return simt_leave(SIMT_INVALID_CONTEXT);
    }
    current = ctx != NULL;
    current_generation = context.generation;
    return simt_leave(0);
}

/* Limits are hints of the real driver's memory system; nothing here depends on them. */
int cuCtxSetLimit(int limit, size_t value) {
    int code = simt_enter("cuCtxSetLimit", SIMT_CTX);
    (void)limit;
    (void)value;
    return code != 0 ? code : simt_leave(0);
}

int cuCtxSynchronize(void) {
    int code = simt_enter("cuCtxSynchronize", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    return simt_leave(simt_force_all());
}

#define SIMT_ERRORS(X)                                                                            \
    X(SIMT_OK, "CUDA_SUCCESS", "no error")                                                        \
    X(SIMT_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                         \
    X(SIMT_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                            \
    X(SIMT_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                 \
    X(SIMT_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")                 \
    X(SIMT_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid")           \
    X(SIMT_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")               \
    X(SIMT_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device")          \
    X(SIMT_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                \
    X(SIMT_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found")                           \
    X(SIMT_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready")                                 \
    X(SIMT_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was made")    \
    X(SIMT_CONTEXT_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed")          \
    X(SIMT_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "already registered") \
    X(SIMT_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "not registered")             \
    X(SIMT_MISALIGNED, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address")                     \
    X(SIMT_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")               \
    X(SIMT_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error")

/* The two that explain errors are not counted: a caller in trouble has to rely on them. */
int cuGetErrorName(int code, const char **out) {
#define SIMT_NAME(id, name, text) \
    if (code == id) {             \
        *out = name;              \
        return 0;                 \
    }
    SIMT_ERRORS(SIMT_NAME)
#undef SIMT_NAME
    *out = NULL;
    return SIMT_INVALID_VALUE;
}

int cuGetErrorString(int code, const char **out) {
#define SIMT_TEXT(id, name, text) \
    if (code == id) {             \
        *out = text;              \
        return 0;                 \
    }
    SIMT_ERRORS(SIMT_TEXT)
#undef SIMT_TEXT
    *out = NULL;
    return SIMT_INVALID_VALUE;
}

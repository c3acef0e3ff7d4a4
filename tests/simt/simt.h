/* simt.h: what the files of the simt driver know of each other.
 *
 * One process has one context, which all its devices (SIMT_DEVICES) share. Every entry point
 * runs under one lock, taken by
 * simt_enter and dropped by simt_leave; kernels run on the thread whose call forced them, inside
 * that lock, so nothing below needs a second one. Device addresses are real addresses of this
 * process: kernels use them directly, and the pages are inaccessible while no queued work is being
 * executed. */
#ifndef SIMT_SIMT_H
#define SIMT_SIMT_H

#include <stddef.h>
#include <stdint.h>

#include "bridge.h"
#include "defs/cu_api.def"

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#ifndef SIMT_ASAN
#define SIMT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMT_TSAN 1
#endif
#endif
#ifndef SIMT_TSAN
#define SIMT_TSAN 0
#endif

#define SIMT_EXPORTED __attribute__((visibility("default")))
#define SIMT_DECLARE(A, field, symbol, params) SIMT_EXPORTED int symbol params;
WF_CU_DRIVER(SIMT_DECLARE, _)
WF_CU_NVRTC(SIMT_DECLARE, _)
WF_CU_NVRTC_LATER(SIMT_DECLARE, _)
#undef SIMT_DECLARE

/* For tests: the reports since the last call of cuInit or simtClearReport, and the calls counted.
 */
SIMT_EXPORTED const char *simtReport(void);
SIMT_EXPORTED void simtClearReport(void);
SIMT_EXPORTED u64 simtCallCount(void);
/* The n-th call from now on fails, as SIMT_FAIL_AT and SIMT_FAIL_CODE would have it; 0: none. */
SIMT_EXPORTED void simtFailAt(u64 n, int code);

#pragma GCC visibility push(hidden)

enum simt_code {
    SIMT_OK = 0,
    SIMT_INVALID_VALUE = 1,
    SIMT_OUT_OF_MEMORY = 2,
    SIMT_NOT_INITIALIZED = 3,
    SIMT_INVALID_DEVICE = 101,
    SIMT_INVALID_IMAGE = 200,
    SIMT_INVALID_CONTEXT = 201,
    SIMT_NO_BINARY = 209,
    SIMT_INVALID_HANDLE = 400,
    SIMT_NOT_FOUND = 500,
    SIMT_NOT_READY = 600,
    SIMT_ILLEGAL_ADDRESS = 700,
    SIMT_ALREADY_REGISTERED = 712,
    SIMT_NOT_REGISTERED = 713,
    SIMT_CONTEXT_DESTROYED = 709,
    SIMT_MISALIGNED = 716,
    SIMT_LAUNCH_FAILED = 719,
    SIMT_UNKNOWN = 999
};

enum {
    SIMT_SM_COUNT = 2,
    SIMT_BLOCKS_PER_SM = 2,
    SIMT_SLOT_COUNT = SIMT_SM_COUNT * SIMT_BLOCKS_PER_SM,
    SIMT_WARP = 32,
    SIMT_MAX_THREADS = 1024,
    SIMT_PAGE_BYTES = 4096,
    SIMT_STATIC_SHARED_BYTES = 48 * 1024,
    SIMT_SHARED_BYTES = 227 * 1024,
    SIMT_ARENA_BYTES = 512 * 1024, /* of one block: its shared memory and the gaps between arrays */
    SIMT_STACK_BYTES = 256 * 1024
};

/* Settings, read from the environment by cuInit. */
struct simt_settings {
    u64 memory_bytes;
    u64 fill_bytes;
    u64 devices; /* that the driver finds; they share the one context */
    u64 seed;
    u64 fail_at;
    int fail_code;
    u64 chip;    /* 10 * major + minor */
    u64 slow_ms; /* that a compilation takes at least */
    u64 start_ms; /* that cuInit takes */
    u64 rtc;     /* NVRTC's version, 10 * major + minor */
    b8 strict;
    b8 trace;
};
extern struct simt_settings simt_settings;

/* driver.c */
enum simt_need { SIMT_ANY = 0, SIMT_INIT = 1, SIMT_CTX = 2, SIMT_ALWAYS = 4 };
/* Counts, traces and checks a call; 0 with the lock held, or the error to return without it. A call
 * with SIMT_ALWAYS (those that free) does its work even when it is made to fail or the context is
 * lost; simt_leave then returns that error. */
int simt_enter(const char *name, unsigned needs);
int simt_leave(int code);
/* The context is lost until it is reset. */
void simt_lose(int code);
u64 simt_generation(void);
int simt_lost(void); /* the error that lost the context; 0 = it is there */
u64 simt_now_ns(void);

/* report.c */
#define SIMT_BUILD_FOLDER "/simt-text-"
void simt_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
void simt_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The source line of an address inside a kernel object, as `file:line`. */
/* Cuts the folder a text was compiled in from a name the compiler put into the object. */
const char *simt_short_name(const char *file);
const char *simt_line_of(char *out, size_t out_bytes, const char *object, u64 offset);

/* memory.c */
struct simt_allocation {
    u64 low;
    u64 high; /* end of the bytes asked for, not of the pages */
    u64 page_high;
    b8 live;
};
struct simt_memory {
    u64 base;
    u64 reserved_bytes;
    u64 used_bytes;
    u64 top;    /* first address never handed out */
    u32 *pages; /* allocation index + 1 of every page */
    struct simt_allocation *allocations;
    u32 allocation_count;
    u32 allocation_cap;
};
extern struct simt_memory simt_memory;
int simt_memory_start(void);
void simt_memory_watch(void); /* installs the fault handlers */
void simt_memory_reset(void);
void simt_memory_unlock(void); /* makes device memory accessible; calls nest */
void simt_memory_lock(void);
/* Is the range inside one live allocation or mapped host range? */
b8 simt_device_range(u64 addr, u64 bytes);
b8 simt_host_range(u64 addr, u64 bytes);
static inline b8 simt_in_device(u64 addr) {
    return addr - simt_memory.base < simt_memory.reserved_bytes;
}

/* queue.c */
struct simt_launch;
void simt_queue_reset(void);
int simt_force_all(void);
/* Queues a launch, which the queue then owns. */
int simt_queue_launch(void *stream, struct simt_launch *launch);

/* module.c */
typedef void simt_kernel_fn(const void *args);
struct simt_module {
    struct simt_module *next;
    void *object;
    char *path;
    struct simt_extent extent;
    struct simt_function *functions;
};
struct simt_function {
    struct simt_function *next;
    struct simt_module *module;
    simt_kernel_fn *run;
    const struct simt_kernel *info;
    char *name;
    u32 shared_max_bytes;
    u32 shared_static_bytes; /* of the launches so far */
};
struct simt_launch {
    struct simt_function *function;
    u32 blocks;
    u32 threads;
    u32 shared_bytes;
    _Alignas(16) u8 args[];
};
void simt_module_reset(void);

/* compile.c */
/* Makes sure that the object inside an image is a file; fills its path. */
int simt_image_file(const void *image, char *path, size_t path_bytes);

/* fiber.c */
struct simt_fiber {
    struct simt_self self; /* first: the kernel's view */
    void *sp;
    u8 *stack; /* lowest usable byte */
    size_t stack_bytes;
    void *fake_stack;
    struct simt_slot *slot;
    const char *file; /* where it waits */
    int line;
    u32 kind;
    u32 polls; /* shared reads and atomics since it last met anybody */
    b8 waits;
    b8 exited;
};
b8 simt_fiber_init(struct simt_fiber *fiber);
/* Prepares the fiber to run `simt_fiber_main` from the top of its stack. */
void simt_fiber_start(struct simt_fiber *fiber);
void simt_fiber_switch(struct simt_fiber *from, struct simt_fiber *to);
/* The first act of a fiber that was started. */
void simt_fiber_entered(struct simt_fiber *fiber);
/* Describes the host thread's own stack, to switch back to. */
void simt_fiber_host(struct simt_fiber *fiber);
_Noreturn void simt_fiber_main(void); /* launch.c */

/* launch.c */
struct simt_warp {
    u32 lanes;
    u32 arrived;
    u32 first;
    u32 sync_time;
    u64 value[SIMT_WARP];
    u32 arg[SIMT_WARP];
    u64 result[SIMT_WARP];
};
/* One resident block. Times count its collectives and grow over all blocks the slot ever runs. */
struct simt_slot {
    struct simt_fiber *fibers[SIMT_MAX_THREADS];
    struct simt_warp warps[SIMT_MAX_THREADS / SIMT_WARP];
    u16 queue[SIMT_MAX_THREADS];
    u32 queue_head;
    u32 queue_count;
    u32 threads;
    u32 exited;
    u32 arrived;
    u32 first;
    u32 any;
    u32 count;
    u32 result;
    u32 spins;
    u32 clock;
    u32 start_time;
    u32 barrier_time;
    u8 *shared;
    struct simt_record *words; /* per 4 bytes of shared memory */
    struct simt_record *bytes; /* per byte, where threads share a word */
    u32 block;
    b8 busy;
};
struct simt_run {
    struct simt_launch *launch;
    struct simt_fiber *now; /* running, or null outside kernels */
    struct simt_slot slots[SIMT_SLOT_COUNT];
    u64 generation; /* of shared memory layouts: counts launches */
    u64 random;
    u8 *shared_base; /* all slots' shared memory, SIMT_ARENA_BYTES each */
    u8 *shape;       /* per 4 bytes of the layout: a bit for each that belongs to an array */
    u32 layout_bytes;
    u32 static_bytes;
    b8 progress;
    int failed;
};
extern struct simt_run simt_run;
const struct simt_bridge *simt_bridge_get(void);
int simt_run_launch(struct simt_launch *launch);
/* Reports, fails the launch and leaves the running thread for good. */
_Noreturn void simt_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lets other threads run now and then, and notices those that wait without saying so. */
void simt_pause(b8 read_only);
/* Names the source line of a fault in the running kernel and prepares to leave it. */
void simt_fault(int code, u64 addr, u64 pc);
_Noreturn void simt_abandon(void);

/* check.c */
struct simt_record {
    u32 write_time;
    u32 read_time[2];
    u32 write_pc;
    u32 read_pc[2];
    u16 write_thread;
    u16 read_thread[2];
    u8 write_atomic;
    u8 read_atomic; /* one bit per reader */
    u32 split;      /* start time of the block whose accesses are kept per byte */
};
void simt_access_strict(u64 addr, u64 bytes, u32 kind, const void *pc);
void simt_access_light(u64 addr, u64 bytes, u32 kind, const void *pc);
b8 simt_check_start(struct simt_slot *slot);

#pragma GCC visibility pop

#endif

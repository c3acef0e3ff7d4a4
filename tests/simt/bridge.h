/* bridge.h: what kernel objects and the simt library know of each other.
 *
 * Kernel text is compiled into a shared object that links to nothing; loading it hands the object
 * this table (simt_bind in hooks.h), and everything the words of prelude.h need from the launcher
 * goes through it. The header is included by the library and by kernel text, so it is plain C11 and
 * C++17 and needs base/word.h only. Changing it changes the key of every cached object, because the
 * key covers the text of this file. */
#ifndef SIMT_BRIDGE_H
#define SIMT_BRIDGE_H

#include "base/word.h"

enum simt_access { SIMT_READ = 0, SIMT_WRITE = 1, SIMT_ATOMIC = 2, SIMT_ATOMIC_READ = 3 };
/* Added to an access: the address must be a multiple of the size, and the value is one scalar. */
#define SIMT_SCALAR 8u

enum simt_meet {
    SIMT_B_SYNC,
    SIMT_B_ANY,
    SIMT_B_COUNT,
    SIMT_W_SYNC,
    SIMT_W_BALLOT,
    SIMT_W_FROM,
    SIMT_W_UP,
    SIMT_W_DOWN,
    SIMT_W_XOR,
    SIMT_W_MATCH
};

/* Who the running thread is; the head of the library's fiber. */
struct simt_self {
    u32 thread_idx;
    u32 thread_count;
    u32 block_idx;
    u32 block_count;
};

/* One SHARED declaration: its place in the block's shared memory, valid for one launch. */
struct simt_site {
    u64 launch;
    u64 offset;
};

struct simt_kernel {
    u32 arg_bytes;
    u32 max_threads;
};

struct simt_bridge {
    struct simt_self *const *self;
    void (*access)(u64 addr, u64 bytes, u32 kind, const void *pc);
    u32 (*meet_block)(u32 kind, u32 x, const char *file, int line);
    u64 (*meet_warp)(u32 kind, u64 x, u32 arg, const char *file, int line);
    void (*spin)(const char *file, int line);
    void *(*shared)(struct simt_site *site, u64 bytes, u64 align, const char *file, int line);
    void *(*shared_bytes)(void);
    void (*undefined)(const char *what, const char *file, u32 line);
};

struct simt_extent {
    const void *low;
    const void *high;
};

#endif

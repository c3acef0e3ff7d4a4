/* check.c: is a kernel's access to memory allowed?
 *
 * Called for every load and store of instrumented kernel text. An address may lie on the thread's
 * own stack, in a live device allocation, in an array of the block's shared memory, in mapped host
 * memory, or (reads only) in the kernel's constants. For shared memory the last write and the last
 * two readers of every word are kept with the time, counted in collectives, at which they happened;
 * two accesses by different threads, one of them a write, must have a b_sync, or within a warp a
 * w_sync, between them, unless both are atomic. Where threads use parts of one word the word is
 * split into bytes for the rest of the block, so that byte arrays are judged exactly.
 *
 * Not seen: races in global memory, and order established through flags instead of barriers. */
#define _GNU_SOURCE
#include "simt.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Several threads, all of them by atomics; and where they are of one warp. */
#define MANY 0xffffu
#define MANY_OF(warp) (0x8000u | (warp))

static void *zeroed(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

b8 simt_check_start(struct simt_slot *slot) {
    slot->words = zeroed(sizeof(struct simt_record) * (SIMT_ARENA_BYTES / 4));
    slot->bytes = zeroed(sizeof(struct simt_record) * SIMT_ARENA_BYTES);
    return slot->words != NULL && slot->bytes != NULL;
}

struct access {
    struct simt_fiber *fiber;
    struct simt_slot *slot;
    u32 kind;
    u32 pc; /* offset in the kernel object */
    b8 scalar;
};

static u32 offset_of(const void *pc) {
    return (u32)((u64)pc - (u64)simt_run.launch->function->module->extent.low);
}

static const char *line_of(char *out, size_t out_bytes, u32 pc) {
    return simt_line_of(out, out_bytes, simt_run.launch->function->module->path, pc);
}

static const char *kind_name(u32 kind) {
    return kind == SIMT_READ ? "read" : kind == SIMT_WRITE ? "write" : "atomic access";
}

_Noreturn static void refuse(int code, u64 addr, u64 bytes, u32 kind, const void *pc,
                             const char *why) {
    char line[512];
    const struct simt_fiber *fiber = simt_run.now;
    simt_fail(code, "block %u thread %u: %s: %s of %llu bytes at 0x%llx, at %s",
              fiber->self.block_idx, fiber->self.thread_idx, why, kind_name(kind), bytes, addr,
              line_of(line, sizeof(line), offset_of(pc)));
}

_Noreturn static void race(const struct access *access, u32 thread, const char *did, u32 pc) {
    char here[512];
    char there[512];
    char who[32] = "others";
    if (thread < MANY_OF(0)) {
        snprintf(who, sizeof(who), "thread %u", thread);
    }
    line_of(here, sizeof(here), access->pc);
    line_of(there, sizeof(there), pc);
    simt_fail(
        SIMT_LAUNCH_FAILED,
        "shared memory race: %s by thread %u at %s, %s by %s at %s, no barrier between, block %u",
        kind_name(access->kind), access->fiber->self.thread_idx, here, did, who, there,
        access->slot->block);
}

/* The warp of a thread, or of several; no warp where they are of different ones. */
static inline u32 warp_of(u32 thread) {
    return thread == MANY ? MANY : thread >= MANY_OF(0) ? thread - MANY_OF(0) : thread / SIMT_WARP;
}

/* Did an access by `thread` at `time` come before this one on every GPU? */
static inline b8 ordered(const struct access *access, u32 thread, u32 time) {
    u32 self = access->fiber->self.thread_idx;
    return time < access->slot->barrier_time || thread == self ||
           (warp_of(thread) == self / SIMT_WARP &&
            time < access->slot->warps[self / SIMT_WARP].sync_time);
}

static inline void note_read(const struct access *access, struct simt_record *record) {
    u32 self = access->fiber->self.thread_idx;
    u32 at = record->read_thread[0] == self ||
                     ordered(access, record->read_thread[0], record->read_time[0])
                 ? 0
                 : 1;
    record->read_thread[at] = (u16)self;
    record->read_time[at] = access->slot->clock;
    record->read_pc[at] = access->pc;
    u32 bit = 1u << at;
    u32 atomic = access->kind == SIMT_ATOMIC_READ ? bit : 0;
    record->read_atomic = (u8)((record->read_atomic & ~bit) | atomic);
}

static inline void note_write(const struct access *access, struct simt_record *record) {
    b8 atomic = access->kind == SIMT_ATOMIC;
    b8 shared = atomic && record->write_atomic &&
                !ordered(access, record->write_thread, record->write_time);
    u32 self = access->fiber->self.thread_idx;
    u32 many = warp_of(record->write_thread) == self / SIMT_WARP ? MANY_OF(self / SIMT_WARP) : MANY;
    record->write_thread = (u16)(shared ? many : self);
    record->write_time = access->slot->clock;
    record->write_pc = access->pc;
    record->write_atomic = atomic;
}

static inline void check_record(const struct access *access, struct simt_record *record) {
    u32 kind = access->kind;
    b8 atomic = kind >= SIMT_ATOMIC;
    if (record->write_time < access->slot->start_time) {
        if (kind != SIMT_WRITE && access->scalar) {
            char line[512];
            simt_fail(SIMT_LAUNCH_FAILED,
                      "block %u thread %u: %s of shared memory nobody has written, at %s",
                      access->slot->block, access->fiber->self.thread_idx, kind_name(kind),
                      line_of(line, sizeof(line), access->pc));
        }
    } else if (!(atomic && record->write_atomic) &&
               !ordered(access, record->write_thread, record->write_time)) {
        race(access, record->write_thread, record->write_atomic ? "atomic access" : "write",
             record->write_pc);
    }
    if (kind == SIMT_READ || kind == SIMT_ATOMIC_READ) {
        note_read(access, record);
        return;
    }
    for (u32 i = 0; i < 2; i++) {
        if (!(atomic && (record->read_atomic >> i & 1) != 0) &&
            !ordered(access, record->read_thread[i], record->read_time[i])) {
            race(access, record->read_thread[i], "read", record->read_pc[i]);
        }
    }
    note_write(access, record);
}

static void split_word(const struct access *access, u64 word) {
    struct simt_record *record = &access->slot->words[word];
    if (record->split != access->slot->start_time) {
        record->split = access->slot->start_time;
        for (u32 i = 0; i < 4; i++) {
            access->slot->bytes[word * 4 + i] = *record;
        }
    }
}

static void check_shared(u64 addr, u64 bytes, u32 kind, const void *pc) {
    struct simt_fiber *fiber = simt_run.now;
    u64 offset = addr - (u64)fiber->slot->shared;
    if (offset >= SIMT_ARENA_BYTES || bytes > SIMT_ARENA_BYTES - offset) {
        refuse(SIMT_ILLEGAL_ADDRESS, addr, bytes, kind & 7, pc, "another block's shared memory");
    }
    struct access access = {fiber, fiber->slot, kind & 7, offset_of(pc), (kind & SIMT_SCALAR) != 0};
    u64 end = offset + bytes;
    while (offset < end) {
        u64 word = offset / 4;
        u64 stop = word * 4 + 4 < end ? word * 4 + 4 : end;
        u32 mask = (0xfu << offset % 4 & 0xfu) & (0xfu >> (word * 4 + 4 - stop));
        if ((simt_run.shape[word] & mask) != mask) {
            refuse(SIMT_ILLEGAL_ADDRESS, addr, bytes, kind & 7, pc,
                   "out of bounds of every shared array");
        }
        if (mask == 0xf && fiber->slot->words[word].split != fiber->slot->start_time) {
            check_record(&access, &fiber->slot->words[word]);
        } else {
            split_word(&access, word);
            for (u64 i = offset; i < stop; i++) {
                check_record(&access, &fiber->slot->bytes[i]);
            }
        }
        offset = stop;
    }
}

static void check_device(u64 addr, u64 bytes, u32 kind, const void *pc) {
    u32 at = simt_memory.pages[(addr - simt_memory.base) / SIMT_PAGE_BYTES];
    if (at != 0) {
        const struct simt_allocation *a = &simt_memory.allocations[at - 1];
        if (addr < a->high && bytes <= a->high - addr && a->live) {
            return;
        }
        char why[128];
        snprintf(why, sizeof(why), "%s (byte %llu of an allocation of %llu)",
                 a->live ? "out of bounds" : "freed memory", addr - a->low, a->high - a->low);
        refuse(SIMT_ILLEGAL_ADDRESS, addr, bytes, kind, pc, why);
    }
    refuse(SIMT_ILLEGAL_ADDRESS, addr, bytes, kind, pc, "no allocation here");
}

static void check_other(u64 addr, u64 bytes, u32 kind, const void *pc) {
    const struct simt_launch *launch = simt_run.launch;
    const struct simt_extent *extent = &launch->function->module->extent;
    if (simt_host_range(addr, bytes)) {
        return;
    }
    b8 constant = (addr >= (u64)extent->low && addr + bytes <= (u64)extent->high) ||
                  (addr >= (u64)launch->args &&
                   addr + bytes <= (u64)launch->args + launch->function->info->arg_bytes);
    if (constant && kind == SIMT_READ) {
        return;
    }
    refuse(SIMT_ILLEGAL_ADDRESS, addr, bytes, kind, pc,
           constant ? "constants of the kernel" : "neither device nor mapped host memory");
}

void simt_access_strict(u64 addr, u64 bytes, u32 kind, const void *pc) {
    struct simt_fiber *fiber = simt_run.now;
    u32 plain = kind & 7;
    if (plain >= SIMT_ATOMIC) {
        simt_pause(plain == SIMT_ATOMIC_READ);
    } else if (addr - (u64)fiber->stack < fiber->stack_bytes || bytes == 0) {
        return;
    }
    if ((kind & SIMT_SCALAR) != 0 && (addr & (bytes - 1)) != 0) {
        refuse(SIMT_MISALIGNED, addr, bytes, plain, pc, "misaligned");
    }
    if (simt_in_device(addr)) {
        check_device(addr, bytes, plain, pc);
    } else if (addr - (u64)simt_run.shared_base < (u64)SIMT_SLOT_COUNT * SIMT_ARENA_BYTES) {
        check_shared(addr, bytes, kind, pc);
    } else {
        check_other(addr, bytes, plain, pc);
    }
}

void simt_access_light(u64 addr, u64 bytes, u32 kind, const void *pc) {
    (void)addr;
    (void)bytes;
    (void)pc;
    if ((kind & 7) >= SIMT_ATOMIC) {
        simt_pause((kind & 7) == SIMT_ATOMIC_READ);
    }
}

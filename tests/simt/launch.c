/* launch.c: runs a grid, its threads as fibers that meet at collectives.
 *
 * A few blocks are resident at a time, one per slot. Within a slot a fiber runs until it has to
 * wait, then switches straight to the next one that can run; only when there is none, or when it is
 * another block's turn, does control return to the scheduler at the bottom of simt_run_launch. A
 * collective completes when its last thread arrives, which puts the others back into the queue.
 * Everything that could go either way on a GPU (order of blocks, of threads, of release, who runs
 * next after an atomic) follows SIMT_SEED; seed 0 is the natural order. A launch is deterministic
 * for a seed.
 *
 * The first broken rule is reported, the launch fails, and its fibers are abandoned as they stand:
 * kernels own nothing but their stack. */
#define _GNU_SOURCE
#include "simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    REDZONE_BYTES = 32,
    IDLE_ROUNDS = 20000, /* turns in which every thread only spins, before that is a deadlock */
    POLL_LIMIT = 1 << 24
};

struct simt_run simt_run;
static struct simt_fiber host;

static const char *const meet_names[] = {"b_sync",    "b_any",      "b_count",  "w_sync",
                                         "w_ballot",  "w_from_...", "w_up_...", "w_down_...",
                                         "w_xor_...", "w_match"};

static u32 roll(void) {
    u64 x = simt_run.random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    simt_run.random = x;
    return (u32)(x >> 32);
}

static void push(struct simt_slot *slot, u32 thread) {
    u32 at = (slot->queue_head + slot->queue_count++) % SIMT_MAX_THREADS;
    slot->queue[at] = (u16)thread;
}

static struct simt_fiber *pop(struct simt_slot *slot) {
    u32 thread = slot->queue[slot->queue_head];
    slot->queue_head = (slot->queue_head + 1) % SIMT_MAX_THREADS;
    slot->queue_count--;
    return slot->fibers[thread];
}

static void to_host(struct simt_fiber *fiber) {
    simt_run.now = NULL;
    simt_fiber_switch(fiber, &host);
}

/* Runs somebody else of the block, or the scheduler if nobody can run. */
static void step_aside(struct simt_fiber *fiber) {
    struct simt_slot *slot = fiber->slot;
    if (slot->queue_count == 0) {
        to_host(fiber);
        return;
    }
    struct simt_fiber *next = pop(slot);
    if (next == fiber) {
        return;
    }
    simt_run.now = next;
    simt_fiber_switch(fiber, next);
}

void simt_abandon(void) {
    struct simt_fiber *fiber = simt_run.now;
    fiber->exited = 1;
    for (;;) {
        to_host(fiber);
    }
}

/* Reports come from the host stack or from a fiber; both only note them. */
static void note(int code, const char *format, va_list list) {
    char text[1024];
    vsnprintf(text, sizeof(text), format, list);
    simt_run.failed = code;
    simt_report("%s: %s", simt_run.launch->function->name, text);
}

void simt_fail(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    note(code, format, list);
    va_end(list);
    simt_abandon();
}

__attribute__((format(printf, 1, 2))) static void fail_host(const char *format, ...) {
    va_list list;
    va_start(list, format);
    note(SIMT_LAUNCH_FAILED, format, list);
    va_end(list);
}

void simt_fault(int code, u64 addr, u64 pc) {
    const struct simt_fiber *fiber = simt_run.now;
    const struct simt_module *module = simt_run.launch->function->module;
    char line[512];
    b8 overflow = addr + SIMT_PAGE_BYTES - (u64)fiber->stack < SIMT_PAGE_BYTES;
    simt_run.failed = code;
    simt_line_of(line, sizeof(line), module->path, pc - (u64)module->extent.low + 1);
    simt_report("%s: block %u thread %u: %s at 0x%llx, at %s", simt_run.launch->function->name,
                fiber->self.block_idx, fiber->self.thread_idx,
                overflow ? "stack overflow" : "fault", addr, line);
}

static b8 same_place(const struct simt_fiber *a, const struct simt_fiber *b) {
    return a->kind == b->kind && a->line == b->line &&
           (a->file == b->file || strcmp(a->file, b->file) == 0);
}

static void diverged(const struct simt_fiber *a, const struct simt_fiber *b) {
    simt_fail(SIMT_LAUNCH_FAILED,
              "divergent collective: thread %u is at %s:%d (%s), thread %u at %s:%d (%s), block %u",
              a->self.thread_idx, a->file, a->line, meet_names[a->kind], b->self.thread_idx,
              b->file, b->line, meet_names[b->kind], a->self.block_idx);
}

#define MISSING \
    "missing barrier: thread %u left the kernel while thread %u waits at %s:%d (%s), block %u"

/* Notes where the fiber waits and that it did not find the others elsewhere or gone. */
static void arrive(struct simt_fiber *fiber, u32 kind, const char *file, int line) {
    struct simt_slot *slot = fiber->slot;
    fiber->kind = kind;
    fiber->file = file;
    fiber->line = line;
    fiber->polls = 0;
    slot->spins = 0;
    simt_run.progress = 1;
    if (slot->exited == 0) {
        return;
    }
    u32 first = 0;
    u32 last = slot->threads;
    if (kind >= SIMT_W_SYNC) {
        first = fiber->self.thread_idx & ~(u32)(SIMT_WARP - 1);
        last = first + slot->warps[first / SIMT_WARP].lanes;
    }
    for (u32 i = first; i < last; i++) {
        if (slot->fibers[i]->exited) {
            simt_fail(SIMT_LAUNCH_FAILED, MISSING, i, fiber->self.thread_idx, file, line,
                      meet_names[kind], slot->block);
        }
    }
}

/* Puts everybody of [first, first + count) but the caller back into the queue. */
static void release(struct simt_fiber *fiber, u32 first, u32 count) {
    struct simt_slot *slot = fiber->slot;
    u32 by = simt_settings.seed == 0 ? 0 : roll() % count;
    b8 reverse = simt_settings.seed != 0 && (roll() & 1) != 0;
    for (u32 i = 0; i < count; i++) {
        u32 at = i + by < count ? i + by : i + by - count;
        at = reverse ? count - 1 - at : at;
        struct simt_fiber *other = slot->fibers[first + at];
        if (other != fiber) {
            other->waits = 0;
            push(slot, first + at);
        }
    }
}

static b8 others_resident(const struct simt_slot *slot) {
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
        if (&simt_run.slots[i] != slot && simt_run.slots[i].busy) {
            return 1;
        }
    }
    return 0;
}

static u32 meet_block(u32 kind, u32 x, const char *file, int line) {
    struct simt_fiber *fiber = simt_run.now;
    struct simt_slot *slot = fiber->slot;
    arrive(fiber, kind, file, line);
    if (slot->arrived == 0) {
        slot->first = fiber->self.thread_idx;
        slot->any = 0;
        slot->count = 0;
    } else if (!same_place(fiber, slot->fibers[slot->first])) {
        diverged(fiber, slot->fibers[slot->first]);
    }
    slot->any |= x;
    slot->count += x;
    if (++slot->arrived < slot->threads) {
        fiber->waits = 1;
        step_aside(fiber);
        return slot->result;
    }
    slot->arrived = 0;
    slot->result = kind == SIMT_B_COUNT ? slot->count : slot->any;
    slot->barrier_time = ++slot->clock;
    release(fiber, 0, slot->threads);
    if ((roll() & 1) != 0 && others_resident(slot)) {
        push(slot, fiber->self.thread_idx);
        to_host(fiber);
    } else if (simt_settings.seed != 0 && (roll() & 1) != 0) {
        push(slot, fiber->self.thread_idx);
        step_aside(fiber);
    }
    return slot->result;
}

static u64 pick(const struct simt_warp *warp, u32 kind, u32 lane, u32 *out_from) {
    u32 arg = warp->arg[lane];
    *out_from = kind == SIMT_W_FROM   ? arg % SIMT_WARP
                : kind == SIMT_W_UP   ? (lane >= arg ? lane - arg : lane)
                : kind == SIMT_W_DOWN ? (lane + arg < SIMT_WARP ? lane + arg : lane)
                : kind == SIMT_W_XOR  ? (lane ^ arg) % SIMT_WARP
                                      : lane;
    return *out_from < warp->lanes ? warp->value[*out_from] : 0;
}

static void exchange(struct simt_warp *warp, u32 kind) {
    u32 ballot = 0;
    for (u32 i = 0; i < warp->lanes; i++) {
        ballot |= (u32)(warp->value[i] != 0) << i;
    }
    for (u32 i = 0; i < warp->lanes; i++) {
        u32 from;
        u32 match = 0;
        if (kind == SIMT_W_BALLOT) {
            warp->result[i] = ballot;
        } else if (kind == SIMT_W_MATCH) {
            for (u32 j = 0; j < warp->lanes; j++) {
                match |= (u32)(warp->value[j] == warp->value[i]) << j;
            }
            warp->result[i] = match;
        } else {
            warp->result[i] = pick(warp, kind, i, &from);
            if (from >= warp->lanes) {
                simt_fail(
                    SIMT_LAUNCH_FAILED,
                    "thread with lane %u asks for the value of lane %u, which does not exist, "
                    "at %s:%d",
                    i, from, simt_run.now->file, simt_run.now->line);
            }
        }
    }
}

/* Of the warp's collectives only w_sync orders memory, as on a GPU. */
static u64 meet_warp(u32 kind, u64 x, u32 arg, const char *file, int line) {
    struct simt_fiber *fiber = simt_run.now;
    struct simt_slot *slot = fiber->slot;
    u32 lane = fiber->self.thread_idx % SIMT_WARP;
    u32 base = fiber->self.thread_idx - lane;
    struct simt_warp *warp = &slot->warps[base / SIMT_WARP];
    arrive(fiber, kind, file, line);
    if (warp->arrived == 0) {
        warp->first = fiber->self.thread_idx;
    } else if (!same_place(fiber, slot->fibers[warp->first])) {
        diverged(fiber, slot->fibers[warp->first]);
    }
    warp->value[lane] = x;
    warp->arg[lane] = arg;
    if (++warp->arrived < warp->lanes) {
        fiber->waits = 1;
        step_aside(fiber);
        return warp->result[lane];
    }
    warp->arrived = 0;
    exchange(warp, kind);
    if (kind == SIMT_W_SYNC) {
        warp->sync_time = ++slot->clock;
    }
    release(fiber, base, warp->lanes);
    return warp->result[lane];
}

static void spin(const char *file, int line) {
    struct simt_fiber *fiber = simt_run.now;
    struct simt_slot *slot = fiber->slot;
    fiber->file = file;
    fiber->line = line;
    fiber->polls = 0;
    push(slot, fiber->self.thread_idx);
    if (++slot->spins >= slot->queue_count) {
        slot->spins = 0;
        to_host(fiber);
    } else {
        step_aside(fiber);
    }
}

void simt_pause(b8 read_only) {
    struct simt_fiber *fiber = simt_run.now;
    if (++fiber->polls > POLL_LIMIT) {
        simt_fail(SIMT_LAUNCH_FAILED, "block %u thread %u waits without spin_wait (%s)",
                  fiber->self.block_idx, fiber->self.thread_idx,
                  read_only ? "reads over and over" : "atomics over and over");
    }
    if (simt_settings.seed != 0 && (roll() & 15) == 0) {
        push(fiber->slot, fiber->self.thread_idx);
        step_aside(fiber);
    }
}

/* These bytes of the layout belong to an array. */
static void mark_array(u64 at, u64 bytes) {
    for (u64 end = at + bytes; at < end;) {
        u64 stop = at / 4 * 4 + 4 < end ? at / 4 * 4 + 4 : end;
        u32 bits = (0xfu << at % 4 & 0xfu) & (0xfu >> (at / 4 * 4 + 4 - stop));
        simt_run.shape[at / 4] = (u8)(simt_run.shape[at / 4] | bits);
        at = stop;
    }
}

/* What nobody has written holds 0xA5: the arrays, and the gaps between them, which the sanitizer
 * would not have touched. */
#if SIMT_ASAN
__attribute__((no_sanitize("address")))
#endif
static void
fill_shared(const struct simt_slot *slot) {
#if SIMT_ASAN
    volatile u64 *words = (volatile u64 *)(void *)slot->shared; /* or it becomes a memset */
    volatile u8 *bytes = slot->shared;
    u32 whole = simt_run.layout_bytes / 8;
    for (u32 i = 0; i < whole; i++) {
        words[i] = 0xA5A5A5A5A5A5A5A5u;
    }
    for (u32 i = whole * 8; i < simt_run.layout_bytes; i++) {
        bytes[i] = 0xA5;
    }
#else
    memset(slot->shared, 0xA5, simt_run.layout_bytes);
#endif
}

/* Reserves an array for the launch. It gets exactly the alignment of its type and no more, and a
 * gap before it, so that a wrong assumption about either shows. */
static u64 place(u64 bytes, u64 align, const char *file, int line) {
    struct simt_run *run = &simt_run;
    u64 at = run->layout_bytes + REDZONE_BYTES;
    u64 step = 2 * align;
    at = (at + step - 1) / step * step + align;
    run->static_bytes += (u32)bytes;
    if (bytes > SIMT_SHARED_BYTES || run->static_bytes > SIMT_STATIC_SHARED_BYTES ||
        run->static_bytes + run->launch->shared_bytes > SIMT_SHARED_BYTES ||
        at + bytes > SIMT_ARENA_BYTES) {
        simt_fail(SIMT_LAUNCH_FAILED,
                  "too much shared memory: %u bytes of arrays + %u dynamic, at %s:%d",
                  run->static_bytes, run->launch->shared_bytes, file, line);
    }
    mark_array(at, bytes);
    run->layout_bytes = (u32)(at + bytes);
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
#if SIMT_ASAN
        __asan_unpoison_memory_region(run->slots[i].shared + at, bytes);
#endif
        memset(run->slots[i].shared + at, 0xA5, bytes);
    }
    return at;
}

static void *shared(struct simt_site *site, u64 bytes, u64 align, const char *file, int line) {
    if (site->launch != simt_run.generation) {
        site->offset = place(bytes, align, file, line);
        site->launch = simt_run.generation;
    }
    return simt_run.now->slot->shared + site->offset;
}

static void *shared_bytes(void) {
    return simt_run.now->slot->shared + 16;
}

static void undefined(const char *what, const char *file, u32 line) {
    simt_fail(SIMT_LAUNCH_FAILED, "block %u thread %u: undefined behaviour: %s, at %s:%u",
              simt_run.now->self.block_idx, simt_run.now->self.thread_idx, what,
              simt_short_name(file), line);
}

static void access_any(u64 addr, u64 bytes, u32 kind, const void *pc) {
    if (simt_settings.strict) {
        simt_access_strict(addr, bytes, kind, pc);
    } else {
        simt_access_light(addr, bytes, kind, pc);
    }
}

static struct simt_self *const *self_place(void) {
    /* The fiber starts with its self: the two pointers are the same address. */
    return (struct simt_self *const *)(void *)&simt_run.now;
}

const struct simt_bridge *simt_bridge_get(void) {
    static struct simt_bridge bridge;
    bridge.self = self_place();
    bridge.access = simt_settings.strict ? simt_access_strict : access_any;
    bridge.meet_block = meet_block;
    bridge.meet_warp = meet_warp;
    bridge.spin = spin;
    bridge.shared = shared;
    bridge.shared_bytes = shared_bytes;
    bridge.undefined = undefined;
    return &bridge;
}

static void exit_thread(struct simt_fiber *fiber) {
    struct simt_slot *slot = fiber->slot;
    const struct simt_warp *warp = &slot->warps[fiber->self.thread_idx / SIMT_WARP];
    simt_run.progress = 1;
    slot->spins = 0;
    if (slot->arrived != 0 || warp->arrived != 0) {
        const struct simt_fiber *other =
            slot->fibers[slot->arrived != 0 ? slot->first : warp->first];
        simt_fail(SIMT_LAUNCH_FAILED, MISSING, fiber->self.thread_idx, other->self.thread_idx,
                  other->file, other->line, meet_names[other->kind], slot->block);
    }
    fiber->exited = 1;
    slot->exited++;
    step_aside(fiber);
}

void simt_fiber_main(void) {
    struct simt_fiber *fiber = simt_run.now;
    simt_fiber_entered(fiber);
    simt_run.launch->function->run(simt_run.launch->args);
    exit_thread(fiber);
    abort();
}

/* The i-th block to start: a bijection of the grid. */
static u32 block_at(u32 i) {
    u64 count = simt_run.launch->blocks;
    if (simt_settings.seed == 0) {
        return i;
    }
    u64 stride = simt_settings.seed * 2654435761u % count;
    for (;; stride++) {
        u64 a = stride;
        u64 b = count;
        while (b != 0) {
            u64 r = a % b;
            a = b;
            b = r;
        }
        if (a == 1) {
            break;
        }
    }
    return (u32)((i * (stride % count) + simt_settings.seed) % count);
}

static b8 start_block(struct simt_slot *slot, u32 block) {
    const struct simt_launch *launch = simt_run.launch;
    slot->block = block;
    slot->threads = launch->threads;
    slot->exited = slot->arrived = slot->spins = 0;
    slot->queue_head = slot->queue_count = 0;
    slot->start_time = slot->barrier_time = ++slot->clock;
    for (u32 i = 0; i < launch->threads; i++) {
        struct simt_fiber *fiber = slot->fibers[i];
        if (fiber == NULL) {
            fiber = slot->fibers[i] = calloc(1, sizeof(*fiber));
            if (fiber == NULL || !simt_fiber_init(fiber)) {
                return 0;
            }
            fiber->slot = slot;
        }
        fiber->self.thread_idx = i;
        fiber->self.thread_count = launch->threads;
        fiber->self.block_idx = block;
        fiber->self.block_count = launch->blocks;
        fiber->waits = fiber->exited = 0;
        fiber->polls = 0;
        simt_fiber_start(fiber);
        push(slot, i);
    }
    for (u32 i = 0; simt_settings.seed != 0 && i + 1 < launch->threads; i++) {
        u32 j = i + roll() % (launch->threads - i);
        u16 swap = slot->queue[i];
        slot->queue[i] = slot->queue[j];
        slot->queue[j] = swap;
    }
    for (u32 i = 0; i * SIMT_WARP < launch->threads; i++) {
        u32 left = launch->threads - i * SIMT_WARP;
        slot->warps[i].lanes = left < SIMT_WARP ? left : SIMT_WARP;
        slot->warps[i].arrived = 0;
        slot->warps[i].sync_time = slot->start_time;
    }
    fill_shared(slot);
    slot->busy = 1;
    return 1;
}

/* Nobody of the block can run and not everybody is done: says who waits where for whom. */
static void report_stuck(const struct simt_slot *slot) {
    const struct simt_fiber *a = NULL;
    const struct simt_fiber *b = NULL;
    for (u32 i = 0; i < slot->threads && b == NULL; i++) {
        const struct simt_warp *warp = &slot->warps[i / SIMT_WARP];
        if (warp->arrived != 0 && a == NULL) {
            a = slot->fibers[warp->first];
            u32 base = i - i % SIMT_WARP;
            for (u32 j = base; j < base + warp->lanes && b == NULL; j++) {
                b = same_place(slot->fibers[j], a) ? NULL : slot->fibers[j];
            }
        }
    }
    if (a != NULL && b != NULL) {
        fail_host(
            "divergent collective: thread %u is at %s:%d (%s), thread %u at %s:%d (%s), block %u",
            b->self.thread_idx, b->file, b->line, meet_names[b->kind], a->self.thread_idx, a->file,
            a->line, meet_names[a->kind], slot->block);
        return;
    }
    a = slot->fibers[slot->first];
    fail_host("missing barrier: thread %u waits for others at %s:%d (%s), block %u",
              a->self.thread_idx, a->file, a->line, meet_names[a->kind], slot->block);
}

static void report_deadlock(void) {
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
        const struct simt_slot *slot = &simt_run.slots[i];
        if (slot->busy && slot->queue_count != 0) {
            const struct simt_fiber *fiber = slot->fibers[slot->queue[slot->queue_head]];
            fail_host("deadlock: nobody makes progress; block %u thread %u spins at %s:%d",
                      slot->block, fiber->self.thread_idx, fiber->file, fiber->line);
        }
    }
}

static struct simt_slot *choose(u32 *at) {
    *at = simt_settings.seed == 0 ? *at + 1 : roll();
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
        struct simt_slot *slot = &simt_run.slots[(*at + i) % SIMT_SLOT_COUNT];
        if (slot->busy) {
            return slot;
        }
    }
    return NULL;
}

static b8 fill_slots(u32 *started) {
    for (u32 i = 0; i < SIMT_SLOT_COUNT && *started < simt_run.launch->blocks; i++) {
        struct simt_slot *slot = &simt_run.slots[i];
        if (!slot->busy) {
            if (!start_block(slot, block_at(*started))) {
                fail_host("no memory for the threads of a block");
                return 0;
            }
            ++*started;
        }
    }
    return 1;
}

static b8 reserve(void) {
    struct simt_run *run = &simt_run;
    if (run->shared_base != NULL) {
        return 1;
    }
    u8 *p = mmap(NULL, (size_t)SIMT_SLOT_COUNT * SIMT_ARENA_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    run->shape = calloc(1, SIMT_ARENA_BYTES / 4);
    if (p == MAP_FAILED || run->shape == NULL) {
        return 0;
    }
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
        run->slots[i].shared = p + (size_t)i * SIMT_ARENA_BYTES;
#if SIMT_ASAN
        __asan_poison_memory_region(run->slots[i].shared, SIMT_ARENA_BYTES);
#endif
        if (!simt_check_start(&run->slots[i])) {
            return 0;
        }
    }
    run->shared_base = p;
    return 1;
}

/* A fresh layout: the dynamic bytes first, aligned to 16 and no more. */
static void begin(struct simt_launch *launch) {
    struct simt_run *run = &simt_run;
    run->launch = launch;
    run->generation++;
    run->random = (simt_settings.seed + 1) * 0x9E3779B97F4A7C15u + run->generation;
    run->failed = 0;
    run->progress = 0;
    run->static_bytes = 0;
    memset(run->shape, 0, (run->layout_bytes + 3) / 4); /* of the launch before */
    mark_array(16, launch->shared_bytes);
    for (u32 i = 0; i < SIMT_SLOT_COUNT; i++) {
        run->slots[i].busy = 0;
#if SIMT_ASAN
        __asan_poison_memory_region(run->slots[i].shared, run->layout_bytes);
        __asan_unpoison_memory_region(run->slots[i].shared + 16, launch->shared_bytes);
#endif
    }
    run->layout_bytes = 16 + launch->shared_bytes;
    simt_fiber_host(&host);
}

int simt_run_launch(struct simt_launch *launch) {
    if (!reserve()) {
        return SIMT_OUT_OF_MEMORY;
    }
    u64 start_ns = simt_now_ns();
    u32 started = 0;
    u32 at = UINT32_MAX;
    u32 idle = 0;
    struct simt_slot *slot;
    begin(launch);
    while (fill_slots(&started) && (slot = choose(&at)) != NULL) {
        if (slot->queue_count == 0) {
            report_stuck(slot);
            break;
        }
        struct simt_fiber *next = pop(slot);
        simt_run.now = next;
        simt_fiber_switch(&host, next);
        simt_run.now = NULL;
        if (simt_run.failed != 0) {
            break;
        }
        slot->busy = slot->exited < slot->threads;
        idle = simt_run.progress ? 0 : idle + 1;
        simt_run.progress = 0;
        if (idle > IDLE_ROUNDS * SIMT_SLOT_COUNT) {
            report_deadlock();
            break;
        }
    }
    if (launch->function->shared_static_bytes < simt_run.static_bytes) {
        launch->function->shared_static_bytes = simt_run.static_bytes;
    }
    simt_trace("ran %s: %u blocks of %u threads in %.3f ms", launch->function->name, launch->blocks,
               launch->threads, (double)(simt_now_ns() - start_ns) / 1e6);
    simt_run.now = NULL;
    return simt_run.failed;
}

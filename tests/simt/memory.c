/* memory.c: device memory, pinned and mapped host memory, and faults.
 *
 * Device memory is a range of addresses reserved once. An allocation takes whole pages of it and an
 * unused page behind; addresses are not used again until the range is used up, so that a stale
 * pointer meets freed memory. All of it is inaccessible except while queued work runs, so a host
 * that follows a device pointer faults; the handler says so and lets the fault take its course. A
 * fault inside a kernel (text that is not instrumented) fails the launch instead of the process.
 * Fresh allocations hold 0xA5. Mapped host memory has the same address on both sides, as unified
 * addressing has it. Large allocations begin at a multiple of a huge page, and ask for such: what
 * is made accessible and inaccessible around every piece of work are then a few entries of the
 * page table instead of thousands. */
#define _GNU_SOURCE
#include "simt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define RESERVED_BYTES ((u64)64 << 30)
#define LIMIT_BYTES ((u64)32 << 30)
#define HUGE_BYTES ((u64)2 << 20)

struct simt_memory simt_memory;

struct host_range {
    u64 low;
    u64 high;
    b8 owned; /* by cuMemHostAlloc */
};
static struct host_range *hosts;
static u32 host_count;
static u32 host_cap;
static u32 host_last;
static u32 unlocked;
static struct sigaction old_segv;
static struct sigaction old_bus;
static struct sigaction old_fpe;

static void *address(u64 addr) {
    void *p;
    memcpy(&p, &addr, sizeof(p));
    return p;
}

static void protect(u64 addr, u64 bytes, int how) {
    if (bytes != 0 && mprotect(address(addr), bytes, how) != 0) {
        simt_report("cannot change the protection of device memory: %s", strerror(errno));
    }
}

#if defined(__x86_64__)
static u64 fault_addr;
static u64 fault_pc;
static int fault_code;

static void report_fault(void) {
#if SIMT_ASAN /* what the thread was doing is left as it stands: see simt_fiber_start */
    __asan_unpoison_memory_region(simt_run.now->stack, simt_run.now->stack_bytes);
#endif
    simt_fault(fault_code, fault_addr, fault_pc);
    simt_abandon();
}

/* Continues after the handler in report_fault, at the top of the fiber's stack, which is free to
 * use: the thread never runs again. */
static b8 leave_kernel(ucontext_t *context, u64 addr, int signal_number) {
    struct simt_fiber *fiber = simt_run.now;
    if (fiber == NULL) {
        return 0;
    }
    void (*next)(void) = report_fault;
    fault_addr = addr;
    fault_pc = (u64)context->uc_mcontext.gregs[REG_RIP];
    fault_code = signal_number == SIGFPE ? SIMT_LAUNCH_FAILED : SIMT_ILLEGAL_ADDRESS;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)next;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)(fiber->stack + fiber->stack_bytes - 40);
    return 1;
}
#else
static b8 leave_kernel(ucontext_t *context, u64 addr, int signal_number) {
    (void)context;
    (void)signal_number;
    if (simt_run.now != NULL) {
        simt_report("fault in a kernel at 0x%llx", addr);
    }
    return 0;
}
#endif

static void on_fault(int signal_number, siginfo_t *info, void *context) {
    u64 addr = (u64)info->si_addr;
    if (leave_kernel(context, addr, signal_number)) {
        return;
    }
    if (signal_number != SIGFPE && simt_in_device(addr)) {
        simt_report("host dereference of device memory at 0x%llx", addr);
    }
    /* The instruction runs again and meets whatever was there before us. */
    sigaction(signal_number,
              signal_number == SIGSEGV  ? &old_segv
              : signal_number == SIGBUS ? &old_bus
                                        : &old_fpe,
              NULL);
}

/* Handlers run on a stack of their own: the fiber's may be what overflowed. Called again by cuInit,
 * because others (test frameworks) install theirs too. */
static void watch(int signal_number, struct sigaction *old) {
    struct sigaction action;
    struct sigaction now;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, NULL, &now) == 0 &&
        ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_fault)) {
        *old = now;
        sigaction(signal_number, &action, NULL);
    }
}

void simt_memory_watch(void) {
    watch(SIGSEGV, &old_segv);
    watch(SIGBUS, &old_bus);
    watch(SIGFPE, &old_fpe);
}

static void ensure_signal_stack(void) {
    static _Thread_local b8 done;
    stack_t have;
    if (done || sigaltstack(NULL, &have) != 0 || (have.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    done = 1;
    size_t bytes = 256 * 1024;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) {
        stack_t mine;
        memset(&mine, 0, sizeof(mine));
        mine.ss_sp = p;
        mine.ss_size = bytes;
        sigaltstack(&mine, NULL);
    }
}

static u64 up_to_huge(u64 addr) {
    return (addr + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

int simt_memory_start(void) {
    struct simt_memory *m = &simt_memory;
    void *p = mmap(NULL, RESERVED_BYTES + HUGE_BYTES, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return SIMT_OUT_OF_MEMORY;
    }
    void *pages = mmap(NULL, RESERVED_BYTES / SIMT_PAGE_BYTES * sizeof(u32), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        munmap(p, RESERVED_BYTES + HUGE_BYTES);
        return SIMT_OUT_OF_MEMORY;
    }
    m->base = up_to_huge((u64)p);
    madvise(address(m->base), RESERVED_BYTES, MADV_HUGEPAGE); /* where there are any */
    m->top = m->base + SIMT_PAGE_BYTES; /* so that even the first allocation has a gap before it */
    m->reserved_bytes = RESERVED_BYTES;
    m->pages = pages;
    return 0;
}

void simt_memory_unlock(void) {
    struct simt_memory *m = &simt_memory;
    if (unlocked++ != 0) {
        return;
    }
    ensure_signal_stack();
    if (simt_settings.strict) {
        protect(m->base, up_to_huge(m->top) - m->base, PROT_READ | PROT_WRITE);
        return;
    }
    simt_memory_watch();
    for (u32 i = 0; i < m->allocation_count; i++) {
        const struct simt_allocation *a = &m->allocations[i];
        if (a->live) {
            protect(a->low, a->page_high - a->low, PROT_READ | PROT_WRITE);
        }
    }
}

void simt_memory_lock(void) {
    if (--unlocked == 0) {
        protect(simt_memory.base, up_to_huge(simt_memory.top) - simt_memory.base, PROT_NONE);
    }
}

/* The first run of `pages` pages nobody uses, once fresh addresses have run out. */
static u64 find_hole(u64 pages) {
    const struct simt_memory *m = &simt_memory;
    u64 run = 0;
    for (u64 i = 1; i < m->reserved_bytes / SIMT_PAGE_BYTES; i++) {
        u32 at = m->pages[i];
        run = at == 0 || !m->allocations[at - 1].live ? run + 1 : 0;
        if (run == pages + 1) {
            return m->base + (i - pages + 1) * SIMT_PAGE_BYTES;
        }
    }
    return 0;
}

static struct simt_allocation *new_allocation(void) {
    struct simt_memory *m = &simt_memory;
    if (m->allocation_count == m->allocation_cap) {
        u32 cap = m->allocation_cap == 0 ? 64 : m->allocation_cap * 2;
        struct simt_allocation *p = realloc(m->allocations, cap * sizeof(*p));
        if (p == NULL) {
            return NULL;
        }
        m->allocations = p;
        m->allocation_cap = cap;
    }
    return &m->allocations[m->allocation_count];
}

static int allocate(u64 bytes, u64 *out) {
    struct simt_memory *m = &simt_memory;
    u64 limit = simt_settings.memory_bytes < LIMIT_BYTES ? simt_settings.memory_bytes : LIMIT_BYTES;
    if (bytes > limit || m->used_bytes + bytes > limit) {
        return SIMT_OUT_OF_MEMORY;
    }
    u64 pages = (bytes + SIMT_PAGE_BYTES - 1) / SIMT_PAGE_BYTES;
    u64 low = bytes < HUGE_BYTES ? m->top : up_to_huge(m->top);
    struct simt_allocation *a = new_allocation();
    if (a == NULL) {
        return SIMT_OUT_OF_MEMORY;
    }
    if (m->base + m->reserved_bytes < low + (pages + 1) * SIMT_PAGE_BYTES) {
        low = find_hole(pages);
        if (low == 0) {
            return SIMT_OUT_OF_MEMORY;
        }
    } else {
        m->top = low + (pages + 1) * SIMT_PAGE_BYTES;
    }
    *a = (struct simt_allocation){low, low + bytes, low + pages * SIMT_PAGE_BYTES, 1};
    m->allocation_count++;
    for (u64 i = 0; i < pages; i++) {
        m->pages[(low - m->base) / SIMT_PAGE_BYTES + i] = m->allocation_count;
    }
    m->used_bytes += bytes;
    u64 fill = bytes < simt_settings.fill_bytes ? bytes : simt_settings.fill_bytes;
    protect(low, pages * SIMT_PAGE_BYTES, PROT_READ | PROT_WRITE);
    memset(address(low), 0xA5, fill);
    protect(low, pages * SIMT_PAGE_BYTES, PROT_NONE);
#if SIMT_ASAN
    __asan_unpoison_memory_region(address(low), bytes);
    __asan_poison_memory_region(address(low + bytes), pages * SIMT_PAGE_BYTES - bytes);
#endif
    *out = low;
    return 0;
}

static void release_allocation(struct simt_allocation *a) {
    a->live = 0;
    simt_memory.used_bytes -= a->high - a->low;
    madvise(address(a->low), a->page_high - a->low, MADV_DONTNEED);
}

static struct simt_allocation *find(u64 addr) {
    if (!simt_in_device(addr)) {
        return NULL;
    }
    u32 at = simt_memory.pages[(addr - simt_memory.base) / SIMT_PAGE_BYTES];
    return at == 0 ? NULL : &simt_memory.allocations[at - 1];
}

b8 simt_device_range(u64 addr, u64 bytes) {
    const struct simt_allocation *a = find(addr);
    return a != NULL && a->live && addr <= a->high && bytes <= a->high - addr;
}

b8 simt_host_range(u64 addr, u64 bytes) {
    for (u32 i = 0; i < host_count; i++) {
        const struct host_range *h = &hosts[(host_last + i) % host_count];
        if (addr >= h->low && addr < h->high && bytes <= h->high - addr) {
            host_last = (host_last + i) % host_count;
            return 1;
        }
    }
    return 0;
}

static int add_host(u64 low, u64 bytes, b8 owned) {
    for (u32 i = 0; i < host_count; i++) {
        if (low < hosts[i].high && hosts[i].low < low + bytes) {
            return SIMT_ALREADY_REGISTERED;
        }
    }
    if (host_count == host_cap) {
        u32 cap = host_cap == 0 ? 16 : host_cap * 2;
        struct host_range *p = realloc(hosts, cap * sizeof(*p));
        if (p == NULL) {
            return SIMT_OUT_OF_MEMORY;
        }
        hosts = p;
        host_cap = cap;
    }
    hosts[host_count++] = (struct host_range){low, low + bytes, owned};
    return 0;
}

static b8 remove_host(u64 low, b8 owned) {
    for (u32 i = 0; i < host_count; i++) {
        if (hosts[i].low == low && hosts[i].owned == owned) {
            hosts[i] = hosts[--host_count];
            host_last = 0;
            return 1;
        }
    }
    return 0;
}

/* A context takes its pinned memory with it. */
void simt_memory_reset(void) {
    struct simt_memory *m = &simt_memory;
    for (u32 i = 0; i < m->allocation_count; i++) {
        if (m->allocations[i].live) {
            release_allocation(&m->allocations[i]);
        }
    }
    for (u32 i = 0; i < host_count; i++) {
        if (hosts[i].owned) {
            free(address(hosts[i].low));
        }
    }
    free(hosts);
    hosts = NULL;
    host_count = host_cap = host_last = 0;
}

int cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
    int code = simt_enter("cuMemGetInfo_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    u64 total = simt_settings.memory_bytes;
    *out_free = total > simt_memory.used_bytes ? total - simt_memory.used_bytes : 0;
    *out_total = total;
    return simt_leave(0);
}

int cuMemAlloc_v2(u64 *out, size_t bytes) {
    int code = simt_enter("cuMemAlloc_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    code = bytes == 0 ? SIMT_INVALID_VALUE : allocate(bytes, out);
    if (code == 0) {
        simt_trace("%zu bytes at 0x%llx", bytes, *out);
    }
    return simt_leave(code);
}

/* Waits for the device, as the real one does. */
int cuMemFree_v2(u64 ptr) {
    int code = simt_enter("cuMemFree_v2", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    if (ptr == 0) {
        return simt_leave(0);
    }
    struct simt_allocation *a = find(ptr);
    if (a == NULL || !a->live || a->low != ptr) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    code = simt_force_all();
    release_allocation(a);
    return simt_leave(code);
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    int code = simt_enter("cuMemHostAlloc", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    if (bytes == 0) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    void *p = NULL;
    if (bytes > LIMIT_BYTES || posix_memalign(&p, SIMT_PAGE_BYTES, bytes) != 0) {
        return simt_leave(SIMT_OUT_OF_MEMORY);
    }
    code = add_host((u64)p, bytes, 1);
    if (code != 0) {
        free(p);
        return simt_leave(code);
    }
    memset(p, 0xA5, bytes < simt_settings.fill_bytes ? bytes : simt_settings.fill_bytes);
    *out = p;
    return simt_leave(0);
}

int cuMemFreeHost(void *ptr) {
    int code = simt_enter("cuMemFreeHost", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    code = simt_force_all();
    if (!remove_host((u64)ptr, 1)) {
        return simt_leave(SIMT_INVALID_VALUE);
    }
    free(ptr);
    return simt_leave(code);
}

int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags) {
    (void)flags;
    int code = simt_enter("cuMemHostRegister_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    b8 bad = ptr == NULL || bytes == 0 || simt_in_device((u64)ptr);
    return simt_leave(bad ? SIMT_INVALID_VALUE : add_host((u64)ptr, bytes, 0));
}

int cuMemHostUnregister(void *ptr) {
    int code = simt_enter("cuMemHostUnregister", SIMT_CTX | SIMT_ALWAYS);
    if (code != 0) {
        return code;
    }
    code = simt_force_all();
    return simt_leave(remove_host((u64)ptr, 0) ? code : SIMT_NOT_REGISTERED);
}

int cuMemHostGetDevicePointer_v2(u64 *out, void *ptr, unsigned flags) {
    int code = simt_enter("cuMemHostGetDevicePointer_v2", SIMT_CTX);
    if (code != 0) {
        return code;
    }
    *out = (u64)ptr;
    return simt_leave(flags == 0 && simt_host_range((u64)ptr, 1) ? 0 : SIMT_INVALID_VALUE);
}

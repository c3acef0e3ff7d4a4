/* fiber.c: the threads of a block as fibers.
 *
 * A fiber is a stack and a saved stack pointer. On x86-64 a switch saves the six callee-saved
 * registers and swaps stacks, which costs a few nanoseconds; elsewhere ucontext does the same more
 * slowly. Kernels change no floating-point control state, so none is saved. Stacks are kept for the
 * life of the process and have an inaccessible page below them. Sanitizers are told of every
 * switch, and under AddressSanitizer a stack is unpoisoned before it is used again: from where it
 * was left, since functions that returned have done so themselves. */
#define _GNU_SOURCE
#include "simt.h"

#include <pthread.h>
#include <sys/mman.h>
#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if SIMT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

b8 simt_fiber_init(struct simt_fiber *fiber) {
    size_t bytes = SIMT_STACK_BYTES + SIMT_PAGE_BYTES;
    u8 *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (p == MAP_FAILED) {
        return 0;
    }
    if (mprotect(p, SIMT_PAGE_BYTES, PROT_NONE) != 0) {
        munmap(p, bytes);
        return 0;
    }
    fiber->stack = p + SIMT_PAGE_BYTES;
    fiber->stack_bytes = SIMT_STACK_BYTES;
    return 1;
}

void simt_fiber_host(struct simt_fiber *fiber) {
    static _Thread_local u8 *low;
    static _Thread_local size_t bytes;
    if (low == NULL) {
        pthread_attr_t attributes;
        void *start;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &start, &bytes);
            pthread_attr_destroy(&attributes);
            low = start;
        }
    }
    fiber->stack = low;
    fiber->stack_bytes = bytes;
    fiber->exited = 0;
    fiber->fake_stack = NULL;
}

#if SIMT_TSAN
/* A name for the stack each fiber runs on; the host's is whatever runs when a launch begins. */
static void announce_start(struct simt_fiber *from, struct simt_fiber *to) {
    if (from->fake_stack == NULL) {
        from->fake_stack = __tsan_get_current_fiber();
    }
    if (to->fake_stack == NULL) {
        to->fake_stack = __tsan_create_fiber(0);
    }
    __tsan_switch_to_fiber(to->fake_stack, 0);
}
static void announce_arrival(struct simt_fiber *self) {
    (void)self;
}
void simt_fiber_entered(struct simt_fiber *fiber) {
    (void)fiber;
}
#elif SIMT_ASAN
static void announce_start(struct simt_fiber *from, const struct simt_fiber *to) {
    __sanitizer_start_switch_fiber(from->exited ? NULL : &from->fake_stack, to->stack,
                                   to->stack_bytes);
}
static void announce_arrival(struct simt_fiber *self) {
    __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
}
void simt_fiber_entered(struct simt_fiber *fiber) {
    (void)fiber;
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
}
#else
static void announce_start(const struct simt_fiber *from, const struct simt_fiber *to) {
    (void)from;
    (void)to;
}
static void announce_arrival(const struct simt_fiber *self) {
    (void)self;
}
void simt_fiber_entered(struct simt_fiber *fiber) {
    (void)fiber;
}
#endif

#if defined(__x86_64__)

void simt_stack_swap(void **save, void *load);
__asm__(".text\n"
        ".hidden simt_stack_swap\n"
        ".globl simt_stack_swap\n"
        ".type simt_stack_swap, @function\n"
        "simt_stack_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size simt_stack_swap, .-simt_stack_swap\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");

void simt_fiber_start(struct simt_fiber *fiber) {
#if SIMT_ASAN
    if (fiber->sp != NULL) {
        u8 *left = fiber->sp;
        __asan_unpoison_memory_region(left, (size_t)(fiber->stack + fiber->stack_bytes - left));
    }
    fiber->fake_stack = NULL;
#endif
    /* Six registers, the address `ret` takes, and the return address main never uses; a function is
     * entered with its stack pointer 8 past a multiple of 16. */
    u64 *top = (u64 *)(void *)(fiber->stack + fiber->stack_bytes - 32);
    void (*entry)(void) = simt_fiber_main;
    top[0] = (u64)entry;
    top[1] = 0;
    for (int i = 1; i <= 6; i++) {
        top[-i] = 0;
    }
    fiber->sp = top - 6;
}

void simt_fiber_switch(struct simt_fiber *from, struct simt_fiber *to) {
    announce_start(from, to);
    simt_stack_swap(&from->sp, to->sp);
    announce_arrival(from);
}

#else

#include <stdlib.h>
#include <ucontext.h>

void simt_fiber_start(struct simt_fiber *fiber) {
#if SIMT_ASAN
    __asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
    fiber->fake_stack = NULL;
#endif
    ucontext_t *context = fiber->sp != NULL ? fiber->sp : calloc(1, sizeof(*context));
    if (context == NULL) {
        abort();
    }
    getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = fiber->stack_bytes;
    context->uc_link = NULL;
    makecontext(context, simt_fiber_main, 0);
    fiber->sp = context;
}

void simt_fiber_switch(struct simt_fiber *from, struct simt_fiber *to) {
    if (from->sp == NULL) {
        from->sp = calloc(1, sizeof(ucontext_t));
        if (from->sp == NULL) {
            abort();
        }
    }
    announce_start(from, to);
    swapcontext(from->sp, to->sp);
    announce_arrival(from);
}

#endif

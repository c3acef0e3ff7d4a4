/* room.c: addresses without memory, for what comes and goes but must not move.
 *
 * Large rooms begin at huge pages and ask for them: a fault per 2 MiB instead of 4 KiB, and tables of
 * hundreds of megabytes that the address cache still covers. Over 512 MB, first touch fell from 640 to
 * 220 ms and a random read from 45 to 30 ns (two busy cores of a virtual machine). What is left behind
 * the last whole page takes small ones: a column of 4 MiB and its padding must not take 6. Advice only: a
 * kernel without huge pages ignores it. */
#define _GNU_SOURCE
#include "base/mem.h"

#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

void *room_open(i64 bytes) {
    i64 spare = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    u8 *at = mmap(NULL, (size_t)(bytes + spare), PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    u8 *start = spare ? (u8 *)ALIGN_UP((size_t)at, (size_t)HUGE_PAGE) : at;
    if (start > at) {
        (void)munmap(at, (size_t)(start - at));
    }
    if (at + spare > start) {
        (void)munmap(start + bytes, (size_t)(at + spare - start));
    }
    return start;
}

bool room_fill(void *at, i64 bytes) {
    if (mprotect(at, (size_t)bytes, PROT_READ | PROT_WRITE)) {
        return false;
    }
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) {
        (void)madvise(at, (size_t)(bytes / HUGE_PAGE * HUGE_PAGE), MADV_HUGEPAGE);
    }
#endif
#ifdef MADV_POPULATE_WRITE /* all of it is written next: one call instead of a fault a page */
    (void)madvise(at, (size_t)bytes, MADV_POPULATE_WRITE);
#endif
    return true;
}

void room_empty(void *at, i64 bytes) {
    (void)madvise(at, (size_t)bytes, MADV_DONTNEED);
    (void)mprotect(at, (size_t)bytes, PROT_NONE);
}

bool room_renew(void *at, i64 bytes) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(at, (size_t)bytes, PROT_NONE, how, -1, 0) != MAP_FAILED;
}

void room_close(void *at, i64 bytes) {
    (void)munmap(at, (size_t)bytes);
}

/* temp.h: temporary space of one statement: blocks of an unnamed file that is mapped.
 *
 * What a budget (mem.h) has no room for lies here, at an address like any other, so nobody who reads
 * it needs to know. Room on the disk is reserved before a block is handed out; the system writes and
 * reads pages as it sees fit, and pages that are in memory leave it when they are many. Nothing is
 * opened before the first block. Thread-safe. See decision 0032. */
#ifndef WF_BASE_TEMP_H
#define WF_BASE_TEMP_H

#include "base/disk.h"
#include "base/thread.h"

enum {
    TEMP_LEAST = 4096,
    TEMP_CLASSES = 192,
    WARM_SHARE = 16 /* of a budget: pages of temporary space that may be in memory */
};

struct temp_free;
/* A block that is also to be seen elsewhere. */
struct temp_shown {
    u8 *at;
    i64 bytes;
    i32 guard;
};
struct temp {
    const char *folder; /* lives at least as long */
    i64 limit_bytes;    /* of the file; 0 = half of what is free on the disk */
    i64 warm_bytes;     /* pages in memory that are no harm */
    struct mutex lock;
    _Atomic(u8 *) base; /* NULL until the first block */
    i64 span;           /* addresses from there on */
    i64 file;
    i64 reserved; /* bytes of the file that are sure */
    i64 end;      /* blocks lie before */
    i64 used_bytes, peak_bytes;
    _Atomic i64 taken_bytes;          /* of all blocks there ever were */
    struct temp_free *free_lists[TEMP_CLASSES]; /* by size */
    struct temp_free *unused;                   /* of such lists */
    i32 guard;                        /* of file.h */
    b8 torn;                          /* a block that was shown elsewhere met a page that was not given back */
    struct temp_shown *shown;
    i64 shown_count, shown_cap;
    _Atomic i64 looked_ns;            /* when somebody last looked how many pages are in memory */
    _Atomic i32 cooled;               /* how many looks in a row found too many */
    _Atomic i64 cooled_ns;            /* when pages last left */
    i64 own_most;                     /* bytes of other pages beyond which the allocator is asked for what it keeps */
    i64 trim_again_ns;                /* ... not before */
    struct thread *cooler;            /* looks, too, since whoever works may be long at it */
    struct cond ended;
    b8 ends;
    i64 shared_before;                /* pages of other mappings, in bytes */
    _Atomic i32 failure;              /* the system's number; 0 = none; -1 = limit_bytes */
    i64 failure_bytes;                /* that were asked for */
};

/* Files of temporary space on their way out: for all that was written and never needed again the system takes a second
 * for several GB to let go of it, and no statement waits for that. One at a time: the next one does wait. */
struct temp_exit {
    struct mutex lock;
    struct thread *thread;
};
void temp_exit_init(struct temp_exit *out);
void temp_exit_fini(struct temp_exit *out);

void temp_init(struct temp *temp, const char *folder, i64 limit_bytes, i64 warm_bytes);
void temp_fini(struct temp *temp, struct temp_exit *out); /* NULL: it is gone when this returns */
/* At least TEMP_LEAST bytes, aligned to pages, not cleared; NULL when there is no room or no file:
 * temp_refused says which. Freed with the same size. */
void *temp_alloc(struct temp *temp, i64 bytes);
void temp_free(struct temp *temp, void *ptr, i64 bytes);
/* The first bytes of a block at other addresses too, whole pages of a room (mem.h), until temp_hide,
 * after which the room is empty. False: it cannot be, and nothing was changed. */
bool temp_show(struct temp *temp, void *block, void *at, i64 bytes);
void temp_hide(struct temp *temp, void *at, i64 bytes);
static inline bool temp_owns(const struct temp *temp, const void *ptr) {
    const u8 *base = atomic_load_explicit(&temp->base, memory_order_acquire);
    return base && (const u8 *)ptr >= base && (const u8 *)ptr < base + temp->span;
}
/* Bytes to or from a block, without a page of it in memory. */
void temp_write(struct temp *temp, void *to, const void *from, i64 bytes);
void temp_read(struct temp *temp, void *to, const void *from, i64 bytes);
/* From one block to another; NULL: zeros. */
void temp_fill(struct temp *temp, void *to, const void *from, i64 bytes);
/* Pages of a range that nobody looks at soon leave memory. */
void temp_pass(struct temp *temp, const void *at, i64 bytes);
/* Many pages in memory leave it. Asked as often as one likes. */
void temp_cool(struct temp *temp);
/* Whether a block was refused, and the error for it. One that outlives statements forgets it before the next. */
bool temp_failed(const struct temp *temp);
static inline void temp_forget(struct temp *temp) {
    atomic_store(&temp->failure, 0);
}
wf_status temp_refused(const struct temp *temp, struct error *err);
/* ERR_IO when the disk did not give back what was written. */
FALLIBLE temp_check(struct temp *temp, struct error *err);

#endif

/* temp.c: temporary space: one file, mapped as a whole, handed out in blocks.
 *
 * The file has no name and is gone with its last page. Its address range is mapped once, as long as
 * the file may ever be, and the file grows under it: a block's room is reserved on the disk first,
 * so that writing to it cannot fail for want of room. Blocks are as many pages as were asked for, and are used
 * again. Pages between them that nobody writes would cut what the file system keeps together into many pieces, which it
 * gives back one by one when the statement ends: 26 seconds for 3 GB, where it tells the disk of each (decision 0086).
 *
 * Pages are the system's to write and to drop. But pages that a process looked at count as its
 * memory until it lets go of them, so whoever works asks now and then how many there are and lets
 * all go: what is still needed comes back from the system's cache with a fault. A thread asks, too: one that
 * reads in no order takes in pages faster than it comes to ask. It also looks at the other pages: what the
 * allocator keeps of blocks that were given back is counted by nobody (decision 0093). */
#include "base/temp.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

enum {
    GROW_BYTES = 16 << 20,
    LOOK_NS = 500000, /* between looks while there are new pages */
    IDLE_LOOK_NS = 64000000, /* ... while there are none */
    RANDOM_COOL_NS = 16000000, /* pages that are read in no order stay so long, */
    RANDOM_MOST = 16,  /* ... or until they are so many times those that are no harm */
    COOLED_OFTEN = 64,
    TRIM_MORE = 8, /* of a budget, how much the allocator has to keep anew before it is asked again */
    TRIM_PAUSE = 32, /* times what asking took */
    ZERO_BYTES = 64 << 10, /* that are written at once */
    COPY_BYTES = 16 << 10,
    FREE_SHARE = 2,
    AROUND = 2 << 20,
    WRITE_LEAST = 512, /* fewer bytes are not worth a call */
    LEAST_SHIFT = 14,
    SHORT = 64 << 20, /* bytes of a file that need no thread */
    CLASSES_ABOVE = 4, /* whose blocks are taken, too */
    LOOKS = 8,         /* at blocks of a list, which may be too short */
};

/* A free block. Its page is not touched. */
struct temp_free {
    struct temp_free *next;
    u8 *block;
    i64 bytes;
};

static void free_items(struct temp_free *item) {
    while (item) {
        struct temp_free *next = item->next;
        free(item);
        item = next;
    }
}

void temp_init(struct temp *temp, const char *folder, i64 limit_bytes, i64 warm_bytes) {
    memset(temp, 0, sizeof *temp);
    mutex_init(&temp->lock);
    cond_init(&temp->ended);
    temp->folder = folder;
    temp->limit_bytes = limit_bytes;
    temp->warm_bytes = warm_bytes;
    temp->guard = -1;
}

void temp_exit_init(struct temp_exit *out) {
    mutex_init(&out->lock);
    out->thread = NULL;
}

void temp_exit_fini(struct temp_exit *out) {
    thread_join(out->thread);
    mutex_fini(&out->lock);
}

/* A file that nobody uses any more. */
struct leaving {
    const struct disk *disk;
    u8 *base;
    i64 span, file;
};

static void leave(void *arg) {
    struct leaving *leaving = arg;
    leaving->disk->unmap(leaving->base, leaving->span);
    leaving->disk->close(leaving->file);
    free(leaving);
}

/* A short one is gone at once. */
static void let_go(const struct temp *temp, struct temp_exit *out) {
    struct leaving now = {disk_now, atomic_load(&temp->base), temp->span, temp->file};
    struct leaving *later = out && temp->reserved > SHORT ? malloc(sizeof *later) : NULL;
    struct thread *thread = NULL;
    if (later) {
        *later = now;
        mutex_lock(&out->lock);
        thread_join(out->thread);
        thread = out->thread = thread_start(leave, later);
        mutex_unlock(&out->lock);
    }
    if (!thread) {
        free(later);
        now.disk->unmap(now.base, now.span);
        now.disk->close(now.file);
    }
}

void temp_fini(struct temp *temp, struct temp_exit *out) {
    u8 *base = atomic_load(&temp->base);
    if (temp->cooler) {
        mutex_lock(&temp->lock);
        temp->ends = 1;
        cond_broadcast(&temp->ended);
        mutex_unlock(&temp->lock);
        thread_join(temp->cooler);
    }
    if (base) {
        ASSERT(temp->used_bytes == 0);
        file_guard_close(temp->guard);
        let_go(temp, out);
    }
    for (i32 c = 0; c < TEMP_CLASSES; c++) {
        free_items(temp->free_lists[c]);
    }
    free_items(temp->unused);
    ASSERT(temp->shown_count == 0);
    free(temp->shown);
    cond_fini(&temp->ended);
    mutex_fini(&temp->lock);
}

static i64 block_bytes(i64 bytes) {
    return ALIGN_UP(MAX_OF(bytes, 1), TEMP_LEAST);
}

/* The list of free blocks of so many bytes: four for each power of two. A block of a list above is larger. */
static i32 class_of(i64 bytes) {
    if (bytes <= 4 * TEMP_LEAST) {
        return (i32)(bytes / TEMP_LEAST) - 1;
    }
    i32 shift = 63 - __builtin_clzll((u64)(bytes - 1)); /* 2^shift < bytes <= 2^(shift + 1) */
    i64 quarter = (1LL << shift) / 4;
    i64 quarters = (bytes - (1LL << shift) + quarter - 1) / quarter;
    return (shift - LEAST_SHIFT) * 4 + (i32)quarters + 3;
}

static void *fail(struct temp *temp, i64 number, i64 bytes) {
    temp->failure_bytes = bytes;
    atomic_store(&temp->failure, (i32)number);
    return NULL;
}

static void cool_shown(struct temp *temp) {
    mutex_lock(&temp->lock);
    for (i64 i = 0; i < temp->shown_count; i++) {
        disk_cool(temp->shown[i].at, temp->shown[i].bytes);
    }
    mutex_unlock(&temp->lock);
}

/* Pages that always come back at once are read in no order: letting them go as often would be all that
 * is done. Too many go all the same. */
static bool stay_warm(const struct temp *temp, i64 bytes) {
    i32 cooled = atomic_load_explicit(&temp->cooled, memory_order_relaxed);
    i64 since = clock_ns() - atomic_load_explicit(&temp->cooled_ns, memory_order_relaxed);
    return cooled >= COOLED_OFTEN && since < RANDOM_COOL_NS && bytes <= RANDOM_MOST * temp->warm_bytes;
}

/* How many bytes of pages there are, or were: many leave. */
static i64 cool(struct temp *temp, i64 shared) {
    i64 bytes = shared - temp->shared_before;
    if (bytes <= temp->warm_bytes) {
        atomic_store_explicit(&temp->cooled, 0, memory_order_relaxed);
    } else if (!stay_warm(temp, bytes)) {
        disk_cool(atomic_load(&temp->base), temp->span);
        cool_shown(temp);
        atomic_fetch_add_explicit(&temp->cooled, 1, memory_order_relaxed);
        atomic_store_explicit(&temp->cooled_ns, clock_ns(), memory_order_relaxed);
    }
    return bytes;
}

/* What the allocator keeps between blocks of others, once it would be more than the budget and grows. */
static void trim(struct temp *temp, i64 own) {
    i64 began = clock_ns();
    if (own <= temp->own_most || began < temp->trim_again_ns) {
        return;
    }
    mem_trim();
    i64 budget = temp->warm_bytes * WARM_SHARE;
    i64 ended = clock_ns();
    temp->own_most = MAX_OF(budget, process_pages().own_bytes + budget / TRIM_MORE);
    temp->trim_again_ns = ended + TRIM_PAUSE * (ended - began);
}

/* Looks less often while nobody looks at pages: rows of an answer may wait long for their reader. */
static void cooler_run(void *arg) {
    struct temp *temp = arg;
    i64 pause = LOOK_NS, before = 0;
    mutex_lock(&temp->lock);
    while (!temp->ends) {
        cond_wait_ns(&temp->ended, &temp->lock, pause);
        mutex_unlock(&temp->lock);
        struct process_pages pages = process_pages();
        i64 now = cool(temp, pages.shared_bytes) + pages.own_bytes;
        trim(temp, pages.own_bytes);
        pause = now != before ? (i64)LOOK_NS : MIN_OF(2 * pause, (i64)IDLE_LOOK_NS);
        before = now;
        mutex_lock(&temp->lock);
    }
    mutex_unlock(&temp->lock);
}

/* Under the lock. */
static bool open_file(struct temp *temp, i64 bytes) {
    i64 room = disk_now->free_bytes(temp->folder);
    if (room < 0) {
        fail(temp, -room, bytes);
        return false;
    }
    i64 span = temp->limit_bytes ? temp->limit_bytes : room / FREE_SHARE;
    span = ALIGN_UP(MAX_OF(span, bytes), 2 << 20);
    temp->file = disk_now->open_unnamed(temp->folder);
    if (temp->file < 0) {
        fail(temp, -temp->file, bytes);
        return false;
    }
    void *base = NULL;
    i64 failed = disk_now->map(temp->file, span, &base);
    if (failed) {
        disk_now->close(temp->file);
        fail(temp, -failed, bytes);
        return false;
    }
    temp->span = span;
    temp->limit_bytes = temp->limit_bytes ? temp->limit_bytes : span;
    temp->guard = file_guard_open(base, span);
    temp->shared_before = process_pages().shared_bytes;
    temp->own_most = temp->warm_bytes * WARM_SHARE;
    atomic_store_explicit(&temp->base, base, memory_order_release);
    temp->cooler = thread_start(cooler_run, temp); /* NULL: then those who work ask alone */
    return true;
}

/* Under the lock: the block is not used again where there is no memory to list it. */
static void list_free(struct temp *temp, u8 *block, i64 bytes) {
    i32 class = class_of(bytes);
    struct temp_free *item = temp->unused ? temp->unused : malloc(sizeof *item);
    if (item) {
        temp->unused = item == temp->unused ? item->next : temp->unused;
        *item = (struct temp_free){temp->free_lists[class], block, bytes};
        temp->free_lists[class] = item;
    }
}

/* A free block of so many bytes, or a part of a larger one; NULL when none is at hand. */
static void *take_free(struct temp *temp, i64 size) {
    i32 class = class_of(size);
    for (i32 c = class; c < TEMP_CLASSES && c < class + CLASSES_ABOVE; c++) {
        struct temp_free **at = &temp->free_lists[c];
        for (i32 n = 0; *at && n < LOOKS && (*at)->bytes < size; n++) {
            at = &(*at)->next;
        }
        struct temp_free *item = *at;
        if (item && item->bytes >= size) {
            *at = item->next;
            item->next = temp->unused;
            temp->unused = item;
            u8 *block = item->block;
            if (item->bytes > size) {
                list_free(temp, block + size, item->bytes - size);
            }
            return block;
        }
    }
    return NULL;
}

static void *take_new(struct temp *temp, i64 size) {
    if (temp->end + size > temp->limit_bytes) {
        return fail(temp, -1, size);
    }
    if (temp->end + size > temp->reserved) {
        i64 more = MAX_OF(temp->end + size - temp->reserved, (i64)GROW_BYTES);
        more = MIN_OF(more, MAX_OF(temp->limit_bytes, temp->end + size) - temp->reserved);
        i64 failed = disk_now->reserve(temp->file, temp->reserved, more);
        if (failed) {
            return fail(temp, -failed, size);
        }
        temp->reserved += more;
    }
    u8 *block = atomic_load(&temp->base) + temp->end;
    temp->end += size;
    return block;
}

void *temp_alloc(struct temp *temp, i64 bytes) {
    i64 size = block_bytes(bytes);
    if (class_of(size) >= TEMP_CLASSES) {
        return fail(temp, -1, bytes);
    }
    mutex_lock(&temp->lock);
    bool open = atomic_load(&temp->base) || open_file(temp, size);
    void *block = open ? take_free(temp, size) : NULL;
    block = open && !block ? take_new(temp, size) : block;
    if (block) {
        temp->used_bytes += size;
        temp->peak_bytes = MAX_OF(temp->peak_bytes, temp->used_bytes);
        atomic_fetch_add(&temp->taken_bytes, size);
    }
    mutex_unlock(&temp->lock);
    temp_cool(temp);
    return block;
}

bool temp_show(struct temp *temp, void *block, void *at, i64 bytes) {
    ASSERT(temp_owns(temp, block) && (size_t)at % TEMP_LEAST == 0 && bytes % TEMP_LEAST == 0);
    mutex_lock(&temp->lock);
    if (temp->shown_count == temp->shown_cap) {
        i64 cap = MAX_OF(2 * temp->shown_cap, 8);
        struct temp_shown *grown = realloc(temp->shown, (size_t)cap * sizeof *grown);
        temp->shown = grown ? grown : temp->shown;
        temp->shown_cap = grown ? cap : temp->shown_cap;
    }
    i64 from = (u8 *)block - atomic_load(&temp->base);
    bool room = temp->shown_count < temp->shown_cap;
    i64 failed = room ? disk_now->map_at(temp->file, from, bytes, at) : -ENOMEM;
    if (failed) {
        fail(temp, -failed, bytes);
    } else {
        temp->shown[temp->shown_count++] = (struct temp_shown){at, bytes, file_guard_open(at, bytes)};
    }
    mutex_unlock(&temp->lock);
    return !failed;
}

void temp_hide(struct temp *temp, void *at, i64 bytes) {
    mutex_lock(&temp->lock);
    i64 i = 0;
    while (i < temp->shown_count && temp->shown[i].at != at) {
        i++;
    }
    CHECK(i < temp->shown_count && temp->shown[i].bytes == bytes);
    temp->torn |= file_guard_torn(temp->shown[i].guard);
    file_guard_close(temp->shown[i].guard);
    temp->shown[i] = temp->shown[--temp->shown_count];
    CHECK(room_renew(at, bytes)); /* or readers would find what is another block's next */
    mutex_unlock(&temp->lock);
}

void temp_free(struct temp *temp, void *ptr, i64 bytes) {
    i64 size = block_bytes(bytes);
    mutex_lock(&temp->lock);
    ASSERT(temp->used_bytes >= size && temp_owns(temp, ptr));
    temp->used_bytes -= size;
    list_free(temp, ptr, size);
    mutex_unlock(&temp->lock);
}

/* Where the disk refuses, the page does it, whose guard knows what to do then. */
void temp_write(struct temp *temp, void *to, const void *from, i64 bytes) {
    i64 at = (u8 *)to - atomic_load_explicit(&temp->base, memory_order_acquire);
    if (bytes < WRITE_LEAST || disk_write_all(temp->file, from, bytes, at)) {
        memcpy(to, from, (size_t)bytes);
    }
}

void temp_read(struct temp *temp, void *to, const void *from, i64 bytes) {
    i64 at = (const u8 *)from - atomic_load_explicit(&temp->base, memory_order_acquire);
    if (bytes < WRITE_LEAST || disk_read_all(temp->file, to, bytes, at)) {
        memcpy(to, from, (size_t)bytes);
    }
}

/* From one block to another, or zeros where `from` is NULL: by way of memory that is there already. */
void temp_fill(struct temp *temp, void *to, const void *from, i64 bytes) {
    static const u8 zeros[ZERO_BYTES];
    u8 between[COPY_BYTES];
    for (i64 at = 0; at < bytes;) {
        i64 n = MIN_OF(bytes - at, from ? (i64)COPY_BYTES : (i64)ZERO_BYTES);
        if (from) {
            temp_read(temp, between, (const u8 *)from + at, n);
        }
        temp_write(temp, (u8 *)to + at, from ? between : zeros, n);
        at += n;
    }
}

/* The system takes in what it keeps together with a page that is looked at: that goes, too. */
void temp_pass(struct temp *temp, const void *at, i64 bytes) {
    u8 *base = atomic_load_explicit(&temp->base, memory_order_acquire);
    u8 *first = (u8 *)((size_t)at / AROUND * AROUND);
    u8 *end = (u8 *)ALIGN_UP((size_t)at + (size_t)bytes, (size_t)AROUND);
    first = MAX_OF(first, base);
    disk_cool(first, MIN_OF(end, base + temp->span) - first);
}

void temp_cool(struct temp *temp) {
    u8 *base = atomic_load_explicit(&temp->base, memory_order_acquire);
    i64 now = base ? clock_ns() : 0;
    i64 looked = atomic_load_explicit(&temp->looked_ns, memory_order_relaxed);
    if (!base || now - looked < LOOK_NS ||
        !atomic_compare_exchange_strong(&temp->looked_ns, &looked, now)) {
        return;
    }
    (void)cool(temp, process_pages().shared_bytes);
}

bool temp_failed(const struct temp *temp) {
    return atomic_load(&temp->failure) != 0;
}

wf_status temp_refused(const struct temp *temp, struct error *err) {
    i32 failure = atomic_load(&temp->failure);
    bool first = err->code == ERR_OK;
    if (failure == -1) {
        wf_status code = error_set(err, ERR_TEMP_LIMIT, -1,
                                   "temporary space is used up: %lld bytes asked, %lld in use of %lld",
                                   temp->failure_bytes, temp->end, temp->limit_bytes);
        if (first) {
            error_hint(err, "Raise temp_size, or memory, so that less of the statement's data has "
                            "to go there.");
        }
        return code;
    }
    bool full = failure == ENOSPC || failure == EDQUOT || failure == EFBIG;
    bool missing = failure == ENOENT || failure == ENOTDIR;
    wf_status code = error_set(
        err, full ? ERR_DISK_FULL : missing ? ERR_NO_DATA_FILE : ERR_IO, -1,
        full ? "no room for temporary data in \"%s\": %s" : "cannot keep temporary data in \"%s\": %s",
        temp->folder, strerror(failure));
    if (first) {
        error_hint(err, "The statement needs more than its budget of memory. SET temp_directory "
                        "names a folder for what does not fit; raise memory to need none.");
    }
    return code;
}

wf_status temp_check(struct temp *temp, struct error *err) {
    if (!atomic_load(&temp->base)) {
        return ERR_OK;
    }
    mutex_lock(&temp->lock);
    bool torn = temp->torn || file_guard_torn(temp->guard);
    for (i64 i = 0; i < temp->shown_count; i++) {
        torn = torn || file_guard_torn(temp->shown[i].guard);
    }
    mutex_unlock(&temp->lock);
    if (torn) {
        return error_set(err, ERR_IO, -1, "the disk did not give back temporary data from \"%s\"",
                         temp->folder);
    }
    return ERR_OK;
}

/* recorder.h: a disk (base/disk.h) in memory that remembers every call, and what a crash leaves of it.
 *
 * Files live in memory. Every change is also a line of a journal: a write with its bytes, a sync, a
 * new size, a name that came or went. `crash_at` makes of the first n lines what a disk may hold
 * when the power goes then: what was synced is there; of the rest every write is there, lost, or
 * torn at a sector, each by itself, so later ones may be there without earlier ones; names are as
 * durable as their folder. The next call of the disk finds that state. */
#ifndef WF_TESTS_RECORDER_H
#define WF_TESTS_RECORDER_H

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"

enum { FILES = 8, SECTOR = 512, FILE_NUMBERS = 1 << 20 };
enum line_kind { LINE_WRITE, LINE_SYNC, LINE_SIZE, LINE_MAKE, LINE_REMOVE, LINE_FOLDER };

struct line {
    enum line_kind kind;
    int file;
    i64 at, bytes;
    u8 *data;
};
struct paper {
    char path[64];
    u8 *data;
    i64 size, cap;
    bool exists;
};
static struct {
    struct paper files[FILES];
    struct line *lines;
    i64 count, cap;
    i64 calls, fail_at; /* the n-th call that writes or syncs fails; 0 = none */
    int error;
    bool fails_on; /* and all that follow */
    i64 room;      /* bytes that fit; 0 = any number */
} disk;

static u64 dice = 1;
static u32 roll(u32 sides) {
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (u32)(dice >> 33) % sides;
}

static struct paper *paper_find(const char *path) {
    struct paper *unused = NULL;
    for (int i = 0; i < FILES; i++) {
        if (strcmp(disk.files[i].path, path) == 0) {
            return &disk.files[i];
        }
        unused = !unused && !disk.files[i].path[0] ? &disk.files[i] : unused;
    }
    CHECK(unused != NULL);
    (void)snprintf(unused->path, sizeof unused->path, "%s", path);
    return unused;
}

static void paper_size(struct paper *p, i64 size) {
    if (size > p->cap) {
        p->cap = MAX_OF(size, 2 * p->cap);
        p->data = realloc(p->data, (size_t)p->cap);
    }
    if (size > p->size) {
        memset(p->data + p->size, 0, (size_t)(size - p->size));
    }
    p->size = size;
}

static void paper_write(struct paper *p, const u8 *from, i64 bytes, i64 at) {
    paper_size(p, MAX_OF(p->size, at + bytes));
    if (bytes) {
        memcpy(p->data + at, from, (size_t)bytes);
    }
}

static void note(enum line_kind kind, const struct paper *p, i64 at, i64 bytes, const void *data) {
    if (disk.count == disk.cap) {
        disk.cap = MAX_OF(disk.cap * 2, 1024);
        disk.lines = realloc(disk.lines, sizeof *disk.lines * (size_t)disk.cap);
    }
    struct line *line = &disk.lines[disk.count++];
    *line = (struct line){kind, (int)(p - disk.files), at, bytes, NULL};
    if (data && bytes) {
        line->data = malloc((size_t)bytes);
        memcpy(line->data, data, (size_t)bytes);
    }
}

static bool call_fails(void) {
    disk.calls++;
    return disk.fail_at && (disk.fails_on ? disk.calls >= disk.fail_at
                                          : disk.calls == disk.fail_at);
}

static struct paper *paper_of(i64 file) {
    return &disk.files[file - FILE_NUMBERS];
}

static i64 paper_open(const char *path, enum disk_mode mode) {
    struct paper *p = paper_find(path);
    if (mode == DISK_CREATE ? p->exists : !p->exists) {
        return mode == DISK_CREATE ? -EEXIST : -ENOENT;
    }
    if (mode == DISK_CREATE) {
        if (call_fails()) {
            return -disk.error;
        }
        p->exists = true;
        p->size = 0;
        note(LINE_MAKE, p, 0, 0, NULL);
    }
    return FILE_NUMBERS + (p - disk.files);
}

static i64 paper_direct(i64 file) {
    return file;
}

static i64 paper_read(i64 file, void *to, i64 bytes, i64 at) {
    const struct paper *p = paper_of(file);
    i64 n = MAX_OF(MIN_OF(bytes, p->size - at), 0);
    if (n) {
        memcpy(to, p->data + at, (size_t)n);
    }
    return n;
}

static i64 all_bytes(void) {
    i64 sum = 0;
    for (int i = 0; i < FILES; i++) {
        sum += disk.files[i].exists ? disk.files[i].size : 0;
    }
    return sum;
}

static i64 paper_put(i64 file, const void *from, i64 bytes, i64 at) {
    struct paper *p = paper_of(file);
    i64 grows = MAX_OF(at + bytes - p->size, 0);
    if (call_fails()) {
        return -disk.error;
    }
    if (disk.room && grows && all_bytes() + grows > disk.room) {
        return -ENOSPC;
    }
    note(LINE_WRITE, p, at, bytes, from);
    paper_write(p, from, bytes, at);
    return bytes;
}

static i64 paper_sync(i64 file) {
    if (call_fails()) {
        return -disk.error;
    }
    note(LINE_SYNC, paper_of(file), 0, 0, NULL);
    return 0;
}

static i64 paper_size_of(i64 file) {
    return paper_of(file)->size;
}

static i64 paper_resize(i64 file, i64 bytes) {
    if (call_fails()) {
        return -disk.error;
    }
    note(LINE_SIZE, paper_of(file), bytes, 0, NULL);
    paper_size(paper_of(file), bytes);
    return 0;
}

static i64 paper_cached(i64 file, i64 at, i64 bytes) {
    UNUSED(file);
    UNUSED(at);
    UNUSED(bytes);
    return 0;
}

static i64 paper_lock(i64 file, bool exclusive) {
    UNUSED(file);
    UNUSED(exclusive);
    return 0;
}

static i64 paper_reader(i64 file) {
    UNUSED(file);
    return 0;
}

static i64 paper_remove(const char *path) {
    struct paper *p = paper_find(path);
    if (call_fails()) {
        return -disk.error;
    }
    note(LINE_REMOVE, p, 0, 0, NULL);
    p->exists = false;
    return 0;
}

static i64 paper_sync_folder(const char *path) {
    if (call_fails()) {
        return -disk.error;
    }
    note(LINE_FOLDER, paper_find(path), 0, 0, NULL);
    return 0;
}

static void paper_close(i64 file) {
    UNUSED(file);
}

/* Several threads may call. */
static atomic_flag disk_busy = ATOMIC_FLAG_INIT;
static void disk_enter(void) {
    while (atomic_flag_test_and_set(&disk_busy)) {
    }
}
static void disk_leave(void) {
    atomic_flag_clear(&disk_busy);
}
__attribute__((unused)) static i64 disk_lines(void) {
    disk_enter();
    i64 count = disk.count;
    disk_leave();
    return count;
}

#define ONE_AT_A_TIME(name, params, args)                                                          \
    static i64 name##_alone params {                                                               \
        disk_enter();                                                                              \
        i64 result = name args;                                                                    \
        disk_leave();                                                                              \
        return result;                                                                             \
    }
ONE_AT_A_TIME(paper_open, (const char *path, enum disk_mode mode), (path, mode))
ONE_AT_A_TIME(paper_read, (i64 file, void *to, i64 bytes, i64 at), (file, to, bytes, at))
ONE_AT_A_TIME(paper_put, (i64 file, const void *from, i64 bytes, i64 at), (file, from, bytes, at))
ONE_AT_A_TIME(paper_sync, (i64 file), (file))
ONE_AT_A_TIME(paper_size_of, (i64 file), (file))
ONE_AT_A_TIME(paper_resize, (i64 file, i64 bytes), (file, bytes))
ONE_AT_A_TIME(paper_remove, (const char *path), (path))
ONE_AT_A_TIME(paper_sync_folder, (const char *path), (path))

static void paper_advice(i64 file, i64 at, i64 bytes) {
    UNUSED(file);
    UNUSED(at);
    UNUSED(bytes);
}

static const struct disk disk_paper = {.open = paper_open_alone,
                                       .direct = paper_direct,
                                       .read = paper_read_alone,
                                       .write = paper_put_alone,
                                       .expect = paper_advice,
                                       .cached = paper_cached,
                                       .hurry = paper_advice,
                                       .sync = paper_sync_alone,
                                       .size = paper_size_of_alone,
                                       .resize = paper_resize_alone,
                                       .lock = paper_lock,
                                       .reader = paper_reader,
                                       .remove = paper_remove_alone,
                                       .sync_folder = paper_sync_folder_alone,
                                       .close = paper_close};

static void journal_drop(i64 from) {
    for (i64 i = from; i < disk.count; i++) {
        free(disk.lines[i].data);
    }
    disk.count = from;
}

static void papers_clear(void) {
    for (int i = 0; i < FILES; i++) {
        disk.files[i].size = 0;
        disk.files[i].exists = false;
    }
}

__attribute__((unused)) static void disk_forget(void) {
    for (int i = 0; i < FILES; i++) {
        free(disk.files[i].data);
    }
    journal_drop(0);
    free(disk.lines);
    memset(&disk, 0, sizeof disk);
}

/* Whether a line is durable when the first `n` have happened. */
static bool is_durable(const struct line *lines, i64 i, i64 n) {
    bool named = lines[i].kind == LINE_MAKE || lines[i].kind == LINE_REMOVE;
    for (i64 j = i + 1; j < n; j++) {
        if (named ? lines[j].kind == LINE_FOLDER
                  : lines[j].kind == LINE_SYNC && lines[j].file == lines[i].file) {
            return true;
        }
    }
    return false;
}

static void write_torn(struct paper *p, const struct line *line) {
    for (i64 at = line->at; at < line->at + line->bytes;) {
        i64 next = MIN_OF((at / SECTOR + 1) * SECTOR, line->at + line->bytes);
        if (roll(2)) {
            paper_write(p, line->data + (at - line->at), next - at, at);
        }
        at = next;
    }
}

/* The disk after a crash behind line n. `mild`: nothing is lost but what did not happen. */
__attribute__((unused)) static void crash_at(i64 n, bool mild) {
    papers_clear();
    for (i64 i = 0; i < n; i++) {
        const struct line *line = &disk.lines[i];
        struct paper *p = &disk.files[line->file];
        u32 fate = mild || is_durable(disk.lines, i, n) ? 0 : roll(3);
        if (fate == 1) {
            continue;
        }
        switch (line->kind) {
        case LINE_WRITE:
            if (fate == 0) {
                paper_write(p, line->data, line->bytes, line->at);
            } else {
                write_torn(p, line);
            }
            break;
        case LINE_SIZE:
            paper_size(p, line->at);
            break;
        case LINE_MAKE:
            p->exists = true;
            p->size = 0;
            break;
        case LINE_REMOVE:
            p->exists = false;
            break;
        default:
            break;
        }
    }
}

#endif

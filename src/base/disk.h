/* disk.h: files that the engine keeps for itself, as a struct of functions.
 *
 * Everybody goes through `disk_now`, so that a test can put in its place one that writes short,
 * has no room left, or fails at its n-th call. A function returns what it got, or the system's
 * error number, negated. Positions and sizes are 64-bit; reading and writing are safe from several
 * threads. */
#ifndef WF_BASE_DISK_H
#define WF_BASE_DISK_H

#include "base/error.h"

enum disk_mode { DISK_READ, DISK_WRITE, DISK_CREATE };

struct disk {
    /* A file, by number; -EISDIR, or -EMEDIUMTYPE of what else is no file. */
    i64 (*open)(const char *path, enum disk_mode mode);
    i64 (*open_unnamed)(const char *folder);            /* gone when it is closed */
    /* The same file past the system's cache, where memory, places and bytes are whole pages; negative where
     * that cannot be. */
    i64 (*direct)(i64 file);
    i64 (*read)(i64 file, void *to, i64 bytes, i64 at); /* fewer at the end, or any time */
    i64 (*write)(i64 file, const void *from, i64 bytes, i64 at);
    /* Bytes will be read soon: the disk may begin. Advice. */
    void (*expect)(i64 file, i64 at, i64 bytes);
    /* Of so many bytes, how many lie in the system's cache; 0 where nobody knows. */
    i64 (*cached)(i64 file, i64 at, i64 bytes);
    /* Bytes that were written will be synced soon: the disk may begin. Advice. */
    void (*hurry)(i64 file, i64 at, i64 bytes);
    i64 (*sync)(i64 file);
    i64 (*size)(i64 file);
    i64 (*reserve)(i64 file, i64 at, i64 bytes); /* room on the disk, so that no write lacks it */
    i64 (*free_bytes)(const char *folder);
    i64 (*map)(i64 file, i64 bytes, void **out); /* shared and writable; may exceed the size */
    /* A part of it at addresses that the caller has, in place of what is there; whole pages. */
    i64 (*map_at)(i64 file, i64 from, i64 bytes, void *at);
    void (*unmap)(void *at, i64 bytes);
    void (*close)(i64 file);
    i64 (*resize)(i64 file, i64 bytes);
    /* Until the file is closed; of several processes, or of one that opened it twice. Nobody waits:
     * -EAGAIN where somebody else has it. */
    i64 (*lock)(i64 file, bool exclusive);
    i64 (*reader)(i64 file); /* a process that has it, not exclusively; 0: none is known */
    i64 (*remove)(const char *path);
    i64 (*sync_folder)(const char *path); /* the folder a path lies in: its names are durable */
};

extern const struct disk disk_system;
extern const struct disk *disk_now;

/* All bytes, in as many calls as it takes: 0, or the error; a file that ends before is an EIO. */
i64 disk_read_all(i64 file, void *to, i64 bytes, i64 at);
i64 disk_write_all(i64 file, const void *from, i64 bytes, i64 at);
/* Who a process of this machine is (0: this one): "process 12 on host". */
void disk_holder(char *out, i64 cap, i64 process);
/* Where a link leads in the end, into `out` of DISK_PATH_MOST bytes; false: it is none, or leads nowhere. */
enum { DISK_PATH_MOST = 4096 };
bool disk_link_end(const char *path, char *out);
/* The pages of a mapping that are in memory leave it; what was written to them stays. */
void disk_cool(void *at, i64 bytes);

#endif

/* disk.c: the system's files behind the functions of disk.h. */
#define _GNU_SOURCE
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static i64 result_of(i64 result) {
    return result < 0 ? -(i64)errno : result;
}

static i64 system_open(const char *path, enum disk_mode mode) {
    static const int flags[] = {[DISK_READ] = O_RDONLY,
                                [DISK_WRITE] = O_RDWR,
                                [DISK_CREATE] = O_RDWR | O_CREAT | O_EXCL};
    /* Nobody waits for the other end of a pipe. */
    i64 file = result_of(open(path, flags[mode] | O_CLOEXEC | O_NONBLOCK, 0600));
    struct stat info;
    if (file >= 0 && (fstat((int)file, &info) || !S_ISREG(info.st_mode))) {
        (void)close((int)file);
        return S_ISDIR(info.st_mode) ? -EISDIR : -EMEDIUMTYPE;
    }
    return file == -ENXIO ? -EMEDIUMTYPE : file; /* a pipe or a socket without another end */
}

/* Where the file system knows no files without a name, one with a name that is taken away. */
static i64 system_open_unnamed(const char *folder) {
#ifdef O_TMPFILE
    i64 file = result_of(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file >= 0 || (file != -EOPNOTSUPP && file != -EISDIR && file != -EINVAL)) {
        return file;
    }
#endif
    char path[2048];
    int len = snprintf(path, sizeof path, "%s/warpfox-XXXXXX", folder);
    if (len >= (int)sizeof path) {
        return -ENAMETOOLONG;
    }
    i64 named = result_of(mkostemp(path, O_CLOEXEC));
    if (named >= 0) {
        (void)unlink(path);
    }
    return named;
}

static i64 system_direct(i64 file) {
#ifdef O_DIRECT
    char name[64]; /* the path may lead to another file by now */
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", (int)file);
    int mode = fcntl((int)file, F_GETFL) & O_ACCMODE;
    return result_of(open(name, mode | O_DIRECT | O_CLOEXEC));
#else
    UNUSED(file);
    return -EINVAL;
#endif
}

static i64 system_read(i64 file, void *to, i64 bytes, i64 at) {
    return result_of(pread((int)file, to, (size_t)bytes, (off_t)at));
}

static i64 system_write(i64 file, const void *from, i64 bytes, i64 at) {
    return result_of(pwrite((int)file, from, (size_t)bytes, (off_t)at));
}

static void system_expect(i64 file, i64 at, i64 bytes) {
    (void)posix_fadvise((int)file, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
}

/* The call has a number on every machine since Linux 6.5, and in few headers a name. */
static i64 system_cached(i64 file, i64 at, i64 bytes) {
#if defined(__linux__) && !defined(__alpha__)
    enum { CACHESTAT = 451, CACHED = 0, COUNTS = 5 };
    u64 range[2] = {(u64)at, (u64)bytes}, pages[COUNTS] = {0};
    i64 known = syscall(CACHESTAT, (unsigned)file, range, pages, 0);
    return known == 0 ? MIN_OF((i64)pages[CACHED] * sysconf(_SC_PAGESIZE), bytes) : 0;
#else
    UNUSED(file);
    UNUSED(at);
    UNUSED(bytes);
    return 0;
#endif
}

static void system_hurry(i64 file, i64 at, i64 bytes) {
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range((int)file, (off_t)at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
#else
    UNUSED(file);
    UNUSED(at);
    UNUSED(bytes);
#endif
}

static i64 system_sync(i64 file) {
    return result_of(fdatasync((int)file));
}

static i64 system_size(i64 file) {
    struct stat info;
    i64 result = result_of(fstat((int)file, &info));
    return result < 0 ? result : (i64)info.st_size;
}

static i64 system_reserve(i64 file, i64 at, i64 bytes) {
    int failed = EINTR;
    while (failed == EINTR) {
        failed = posix_fallocate((int)file, (off_t)at, (off_t)bytes);
    }
    return -(i64)failed;
}

static i64 system_free_bytes(const char *folder) {
    struct statvfs info;
    i64 result = result_of(statvfs(folder, &info));
    return result < 0 ? result : (i64)info.f_bavail * (i64)info.f_frsize;
}

static i64 system_map(i64 file, i64 bytes, void **out) {
    void *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    (int)file, 0);
    *out = at == MAP_FAILED ? NULL : at;
    return at == MAP_FAILED ? -(i64)errno : 0;
}

static i64 system_map_at(i64 file, i64 from, i64 bytes, void *at) {
    void *got = mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                     (int)file, (off_t)from);
    return got == MAP_FAILED ? -(i64)errno : 0;
}

static void system_unmap(void *at, i64 bytes) {
    (void)munmap(at, (size_t)bytes);
}

static void system_close(i64 file) {
    (void)close((int)file);
}

static i64 system_resize(i64 file, i64 bytes) {
    return result_of(ftruncate((int)file, (off_t)bytes));
}

/* Locks of open files do not say whose they are. So who reads has one more, of the process, behind the
 * others, where no file reaches. */
static const off_t lock_end = (off_t)1 << 62;

static struct flock reader_mark(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = lock_end, .l_len = 1};
}

static i64 system_lock(i64 file, bool exclusive) {
    struct flock lock = {
        .l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_len = lock_end};
    i64 result = result_of(fcntl((int)file, F_OFD_SETLK, &lock));
    if (!result && !exclusive) {
        struct flock mark = reader_mark(F_RDLCK);
        (void)fcntl((int)file, F_SETLK, &mark);
    }
    return result == -EACCES ? -EAGAIN : result;
}

static i64 system_reader(i64 file) {
    struct flock mark = reader_mark(F_WRLCK);
    i64 result = result_of(fcntl((int)file, F_GETLK, &mark));
    return result < 0 || mark.l_type != F_RDLCK ? 0 : MAX_OF((i64)mark.l_pid, 0);
}

static i64 system_remove(const char *path) {
    return result_of(unlink(path));
}

static i64 system_sync_folder(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    i64 len = slash ? MAX_OF(slash - path, 1) : 0;
    if (len >= (i64)sizeof folder) {
        return -ENAMETOOLONG;
    }
    memcpy(folder, slash ? path : ".", (size_t)MAX_OF(len, 1));
    folder[MAX_OF(len, 1)] = 0;
    i64 file = result_of(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file < 0) {
        return file;
    }
    i64 result = result_of(fsync((int)file));
    system_close(file);
    return result == -EINVAL ? 0 : result; /* some file systems know no such thing */
}

const struct disk disk_system = {.open = system_open,
                                 .open_unnamed = system_open_unnamed,
                                 .direct = system_direct,
                                 .read = system_read,
                                 .write = system_write,
                                 .expect = system_expect,
                                 .cached = system_cached,
                                 .hurry = system_hurry,
                                 .sync = system_sync,
                                 .size = system_size,
                                 .reserve = system_reserve,
                                 .free_bytes = system_free_bytes,
                                 .map = system_map,
                                 .map_at = system_map_at,
                                 .unmap = system_unmap,
                                 .close = system_close,
                                 .resize = system_resize,
                                 .lock = system_lock,
                                 .reader = system_reader,
                                 .remove = system_remove,
                                 .sync_folder = system_sync_folder};
const struct disk *disk_now = &disk_system;

i64 disk_read_all(i64 file, void *to, i64 bytes, i64 at) {
    for (i64 done = 0; done < bytes;) {
        i64 got = disk_now->read(file, (u8 *)to + done, bytes - done, at + done);
        if (got <= 0 && got != -EINTR) {
            return got < 0 ? got : -EIO;
        }
        done += MAX_OF(got, 0);
    }
    return 0;
}

i64 disk_write_all(i64 file, const void *from, i64 bytes, i64 at) {
    for (i64 done = 0; done < bytes;) {
        i64 got = disk_now->write(file, (const u8 *)from + done, bytes - done, at + done);
        if (got <= 0 && got != -EINTR) {
            return got < 0 ? got : -ENOSPC;
        }
        done += MAX_OF(got, 0);
    }
    return 0;
}

void disk_holder(char *out, i64 cap, i64 process) {
    char host[128] = "";
    (void)gethostname(host, sizeof host - 1);
    i64 number = process ? process : (i64)getpid();
    (void)snprintf(out, (size_t)cap, "process %lld on %s", (long long)number, host);
}

bool disk_link_end(const char *path, char *out) {
    struct stat info;
    bool is_link = !lstat(path, &info) && S_ISLNK(info.st_mode);
    char *end = is_link ? realpath(path, NULL) : NULL;
    bool fits = end && strlen(end) < DISK_PATH_MOST;
    if (fits) {
        memcpy(out, end, strlen(end) + 1);
    }
    free(end);
    return fits;
}

void disk_cool(void *at, i64 bytes) {
    (void)madvise(at, (size_t)bytes, MADV_DONTNEED);
}

/* file.c: files, folders and shared libraries: the one file that includes fcntl.h and dlfcn.h.
 *
 * Files are read through mappings: nothing is copied and the system decides what stays in memory.
 * The price is that a file which somebody else cuts short answers a read behind its new end with
 * SIGBUS. So while mappings are open a handler is installed that puts a page of zeros in the place
 * of the missing one and marks the mapping as torn; its reader finds out and reports an error.
 * Faults elsewhere go to whoever handled the signal before. Reading in blocks instead would copy
 * every byte and need memory for all texts of a tablet under construction; only small files are
 * copied. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/thread.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static wf_status system_error(struct error *err, const char *verb, const char *path) {
    wf_status code = errno == ENOENT || errno == ENOTDIR ? ERR_NO_DATA_FILE : ERR_IO;
    return error_set(err, code, -1, "cannot %s \"%s\": %s", verb, path, strerror(errno));
}

enum { GUARDS = 64, SMALL_BYTES = 16 << 20 };
static struct guarded {
    _Atomic u64 begin, end; /* addresses; 0 = free */
    _Atomic i32 torn;
} guards[GUARDS];
static _Atomic i32 guard_count; /* mappings open; the handler is installed while there are any */
static _Atomic i32 guard_lock;  /* spins: held for two system calls at most */
static struct sigaction previous_handler;

static void on_bus_error(int number, siginfo_t *info, void *context) {
    u64 address = (u64)(size_t)info->si_addr;
    for (i32 i = 0; i < GUARDS; i++) {
        if (address >= atomic_load(&guards[i].begin) && address < atomic_load(&guards[i].end)) {
            size_t page = (size_t)sysconf(_SC_PAGESIZE);
            void *at = (void *)(size_t)(address & ~(u64)(page - 1));
            atomic_store(&guards[i].torn, 1);
            /* Not mmap(): the thread sanitizer takes that for a write that other readers race with. */
            if (syscall(SYS_mmap, at, page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)(size_t)at) {
                return;
            }
        }
    }
    if (previous_handler.sa_flags & SA_SIGINFO) {
        previous_handler.sa_sigaction(number, info, context);
    } else if (previous_handler.sa_handler != SIG_DFL && previous_handler.sa_handler != SIG_IGN) {
        previous_handler.sa_handler(number);
    } else {
        signal(number, SIG_DFL); /* the instruction faults again and ends the program */
    }
}

static void lock_guards(void) {
    i32 expected = 0;
    while (!atomic_compare_exchange_weak(&guard_lock, &expected, 1)) {
        expected = 0;
    }
}

/* Takes a place in the list; without one the mapping is as fragile as any. */
i32 file_guard_open(const void *begin, i64 bytes) {
    i32 guard = -1;
    lock_guards();
    if (atomic_fetch_add(&guard_count, 1) == 0) {
        struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &previous_handler);
    }
    for (i32 i = 0; i < GUARDS && guard < 0; i++) {
        if (!atomic_load(&guards[i].begin)) {
            guard = i;
            atomic_store(&guards[i].torn, 0);
            atomic_store(&guards[i].begin, (u64)(size_t)begin);
            atomic_store(&guards[i].end, (u64)(size_t)begin + (u64)bytes);
        }
    }
    atomic_store(&guard_lock, 0);
    return guard;
}

void file_guard_close(i32 guard) {
    lock_guards();
    if (guard >= 0) {
        atomic_store(&guards[guard].end, 0);
        atomic_store(&guards[guard].begin, 0);
    }
    if (atomic_fetch_sub(&guard_count, 1) == 1) {
        sigaction(SIGBUS, &previous_handler, NULL);
    }
    atomic_store(&guard_lock, 0);
}

bool file_guard_torn(i32 guard) {
    return guard >= 0 && atomic_load(&guards[guard].torn) != 0;
}

bool file_view_torn(const struct file_view *view) {
    return view->bytes > 0 && file_guard_torn(view->guard);
}

static FALLIBLE view_map(struct file_view *out, int fd, i64 bytes, const char *path,
                         struct error *err) {
    void *data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return system_error(err, "map", path);
    }
    madvise(data, (size_t)bytes, MADV_SEQUENTIAL);
    out->data = data;
    out->bytes = bytes;
    out->guard = file_guard_open(out->data, out->bytes);
    return ERR_OK;
}

static FALLIBLE read_at(int fd, char *to, i64 bytes, i64 position, const char *path,
                        struct error *err) {
    for (i64 at = 0; at < bytes;) {
        ssize_t n = pread(fd, to + at, (size_t)(bytes - at), (off_t)(position + at));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? system_error(err, "read", path)
                         : error_set(err, ERR_IO, -1, "cannot read \"%s\": it was cut short", path);
        }
        at += n;
    }
    return ERR_OK;
}

/* A copy of a small file, which nobody can change. */
static FALLIBLE view_read(struct file_view *out, int fd, i64 bytes, const char *path,
                          struct error *err) {
    char *data =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return system_error(err, "read", path);
    }
    out->data = data;
    out->bytes = bytes;
    wf_status status = read_at(fd, data, bytes, 0, path, err);
    if (status) {
        file_view_close(out);
    }
    return status;
}

wf_status file_view_open(struct file_view *out, const char *path, struct error *err) {
    out->data = "";
    out->bytes = 0;
    out->guard = -1;
    out->own = 0;
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not wait */
    if (fd < 0) {
        return system_error(err, "open", path);
    }
    char first;
    struct stat info;
    wf_status status = ERR_OK;
    if (fstat(fd, &info) != 0) {
        status = system_error(err, "examine", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": not a regular file", path);
    } else if (info.st_size > SMALL_BYTES) {
        status = view_map(out, fd, (i64)info.st_size, path, err);
    } else if (info.st_size > 0) {
        status = view_read(out, fd, (i64)info.st_size, path, err);
    } else if (read(fd, &first, 1) != 0) { /* files of /proc have bytes, but no size */
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": its size is unknown", path);
    }
    out->own = !status && info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH));
    close(fd);
    return status;
}

void file_view_close(struct file_view *view) {
    if (view->bytes) {
        if (view->bytes > SMALL_BYTES) {
            file_guard_close(view->guard);
        }
        munmap((void *)(size_t)view->data, (size_t)view->bytes);
    }
    view->data = "";
    view->bytes = 0;
}

void file_view_pass(const struct file_view *view, i64 at, i64 bytes) {
    enum { PAGE = 4096 };
    i64 first = ALIGN_UP(at, PAGE), end = (at + bytes) / PAGE * PAGE;
    if (view->bytes > SMALL_BYTES && first < end) { /* a smaller one is a copy */
        (void)madvise((void *)(size_t)(view->data + first), (size_t)(end - first), MADV_DONTNEED);
    }
}

/* --- files read once ---------------------------------------------------------------------- */

enum { WAIT_MS = 50 };

/* N of /dev/fd/N and its kin; -1 for other paths. */
static int held_open(const char *path) {
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < (int)COUNT_OF(names); i++) {
        if (strcmp(path, names[i]) == 0) {
            return i;
        }
    }
    for (int i = 0; i < (int)COUNT_OF(folders); i++) {
        size_t len = strlen(folders[i]);
        char *end = NULL;
        if (strncmp(path, folders[i], len) == 0 && path[len] >= '0' && path[len] <= '9') {
            long number = strtol(path + len, &end, 10);
            return *end || number > 1 << 20 ? -1 : (int)number;
        }
    }
    return -1;
}

static FALLIBLE wait_check(const struct file_wait *wait, struct error *err) {
    return wait->check ? wait->check(wait->arg, err) : ERR_OK;
}

wf_status file_in_open(struct file_in *out, const char *path, struct file_wait wait,
                       struct error *err) {
    struct stat info;
    int held = held_open(path);
    *out = (struct file_in){.bytes = -1, .wait = wait};
    if (strlen(path) >= sizeof out->path) {
        FAIL(err, IO, "cannot read \"%.300s\": the path is too long", path);
    }
    snprintf(out->path, sizeof out->path, "%s", path);
    /* a pipe without a writer must not wait in open */
    out->fd =
        held >= 0 ? fcntl(held, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (out->fd < 0) {
        return system_error(err, "open", path);
    }
    wf_status status = ERR_OK;
    if (fstat(out->fd, &info) != 0) {
        status = system_error(err, "examine", path);
    } else if (S_ISDIR(info.st_mode)) {
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": it is a folder", path);
    } else if (S_ISREG(info.st_mode) && info.st_size > 0) {
        /* files of /proc have bytes, but no size */
        out->bytes = (i64)info.st_size;
        out->plain = held < 0 || lseek(out->fd, 0, SEEK_CUR) == 0;
        out->again = held < 0;
        out->stamp = (struct file_stamp){.bytes = out->bytes,
                                         .changed_ns = (i64)info.st_mtim.tv_sec * 1000000000 +
                                                       (i64)info.st_mtim.tv_nsec,
                                         .device = (u64)info.st_dev,
                                         .number = (u64)info.st_ino};
    }
    if (status) {
        close(out->fd);
    }
    return status;
}

wf_status file_in_read(struct file_in *in, void *to, i64 cap, i64 *out_bytes, struct error *err) {
    for (;;) {
        struct pollfd ask = {.fd = in->fd, .events = POLLIN};
        int ready = poll(&ask, 1, WAIT_MS);
        if (ready <= 0) {
            TRY(wait_check(&in->wait, err));
            continue;
        }
        ssize_t n = read(in->fd, to, (size_t)cap);
        if (n >= 0) {
            *out_bytes = n;
            return wait_check(&in->wait, err);
        }
        if (errno != EINTR && errno != EAGAIN) {
            return system_error(err, "read", in->path);
        }
    }
}

wf_status file_in_read_at(const struct file_in *in, void *to, i64 bytes, i64 position,
                          struct error *err) {
    return read_at(in->fd, to, bytes, position, in->path, err);
}

bool file_stamp_eq(const struct file_stamp *a, const struct file_stamp *b) {
    return a->bytes == b->bytes && a->changed_ns == b->changed_ns && a->device == b->device &&
           a->number == b->number;
}

wf_status file_in_view(struct file_in *in, struct file_view *out, struct error *err) {
    *out = (struct file_view){.data = "", .guard = -1};
    TRY(in->bytes > SMALL_BYTES ? view_map(out, in->fd, in->bytes, in->path, err)
                                : view_read(out, in->fd, in->bytes, in->path, err));
    file_in_seek(in, in->bytes);
    return ERR_OK;
}

void file_in_seek(struct file_in *in, i64 position) {
    (void)!lseek(in->fd, (off_t)position, SEEK_SET); /* of a pipe there is no way back */
}

void file_in_close(struct file_in *in) {
    close(in->fd);
}

wf_status file_bytes_reserve(struct file_bytes *bytes, i64 more, struct error *err) {
    i64 step = MAX_OF(1 << 16, MAX_OF(more, bytes->cap / 4));
    i64 cap = ALIGN_UP(bytes->cap + step, 1 << 16);
    if (bytes->cap - bytes->len >= more) {
        return ERR_OK;
    }
    if (!memory_reserve(bytes->mem, cap - bytes->cap)) {
        return memory_refused(bytes->mem, err, cap - bytes->cap);
    }
    void *data = bytes->data ? mremap(bytes->data, (size_t)bytes->cap, (size_t)cap, MREMAP_MAYMOVE)
                             : mmap(NULL, (size_t)cap, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        memory_release(bytes->mem, cap - bytes->cap);
        return memory_refused(bytes->mem, err, cap - bytes->cap);
    }
    bytes->data = data;
    bytes->cap = cap;
    return ERR_OK;
}

void file_bytes_free(struct file_bytes *bytes) {
    if (bytes->data) {
        munmap(bytes->data, (size_t)bytes->cap);
        memory_release(bytes->mem, bytes->cap);
    }
    bytes->data = NULL;
    bytes->len = bytes->cap = 0;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool write_fully(int fd, const char *data, i64 bytes) {
    while (bytes > 0) {
        ssize_t n = write(fd, data, (size_t)bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        data += n;
        bytes -= n;
    }
    return true;
}

wf_status file_write_all(const char *path, const void *data, i64 bytes, struct error *err) {
    char temp[4096];
    int len = snprintf(temp, sizeof temp, "%s.%d.XXXXXX", path, (int)getpid());
    if (len < 0 || (size_t)len >= sizeof temp) {
        FAIL(err, IO, "cannot write \"%s\": the path is too long", path);
    }
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) {
        return system_error(err, "write", path);
    }
    bool ok = write_fully(fd, data, bytes);
    ok = close(fd) == 0 && ok;
    ok = ok && rename(temp, path) == 0;
    if (!ok) {
        wf_status status = system_error(err, "write", path);
        unlink(temp);
        return status;
    }
    return ERR_OK;
}

/* Only what is nothing yet or a plain file of ours may be replaced by renaming; links, devices and
 * pipes stay what they are. */
static bool is_replaceable(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        return true;
    }
    return S_ISREG(info.st_mode) && access(path, W_OK) == 0;
}

/* A pipe that nobody reads yet is waited for. */
static int open_direct(const struct file_out *out, const char *path, struct error *err) {
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
        if (fd >= 0 || errno != ENXIO) {
            return fd;
        }
        if (wait_check(&out->wait, err)) {
            return -1;
        }
        poll(NULL, 0, WAIT_MS);
    }
}

wf_status file_out_open(struct file_out *out, const char *path, struct file_wait wait,
                        struct error *err) {
    int held = path ? held_open(path) : STDOUT_FILENO;
    out->direct = held >= 0 || !is_replaceable(path);
    out->wait = wait;
    if (path && strlen(path) >= sizeof out->path) {
        FAIL(err, IO, "cannot write \"%.300s\": the path is too long", path);
    }
    snprintf(out->path, sizeof out->path, "%s", path ? path : "standard output");
    if (held >= 0) {
        out->fd = fcntl(held, F_DUPFD_CLOEXEC, 3);
    } else if (out->direct) {
        out->fd = open_direct(out, path, err);
    } else {
        snprintf(out->temp, sizeof out->temp, "%s.%d.XXXXXX", path, (int)getpid());
        out->fd = mkostemp(out->temp, O_CLOEXEC);
    }
    if (out->fd < 0) {
        return err->code ? err->code : system_error(err, "write", out->path);
    }
    struct stat info;
    out->waits = out->direct && fstat(out->fd, &info) == 0 && !S_ISREG(info.st_mode);
    if (!out->direct) {
        mode_t mask = umask(0);
        umask(mask);
        (void)!fchmod(out->fd, 0666 & ~mask); /* as any new file, not as a secret one */
    }
    return ERR_OK;
}

wf_status file_out_write(struct file_out *out, const void *data, i64 bytes, struct error *err) {
    enum { PIPE_BYTES = 1 << 12 }; /* what a pipe that is ready takes at once */
    const char *at = data;
    while (out->waits && bytes > 0) { /* a pipe may be full, and its reader gone to sleep */
        struct pollfd ask = {.fd = out->fd, .events = POLLOUT};
        int ready = poll(&ask, 1, WAIT_MS);
        ssize_t n = ready > 0 ? write(out->fd, at, (size_t)MIN_OF(bytes, PIPE_BYTES)) : 0;
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return system_error(err, "write", out->path);
        }
        at += MAX_OF(n, 0);
        bytes -= MAX_OF(n, 0);
        TRY(ready > 0 ? ERR_OK : wait_check(&out->wait, err));
    }
    return write_fully(out->fd, at, bytes) ? ERR_OK : system_error(err, "write", out->path);
}

wf_status file_out_close(struct file_out *out, bool keep, struct error *err) {
    bool fine = close(out->fd) == 0;
    if (out->direct) {
        return fine || !keep ? ERR_OK : system_error(err, "write", out->path);
    }
    fine = fine && keep && rename(out->temp, out->path) == 0;
    wf_status status = fine || !keep ? ERR_OK : system_error(err, "write", out->path);
    if (!fine) {
        unlink(out->temp);
    }
    return status;
}

wf_status file_make_dirs(const char *path, struct error *err) {
    char part[4096];
    size_t len = strlen(path);
    if (len >= sizeof part) {
        FAIL(err, IO, "cannot make the folder \"%s\": the path is too long", path);
    }
    memcpy(part, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (part[i] == '/' || part[i] == 0) {
            part[i] = 0;
            if (mkdir(part, 0755) != 0 && errno != EEXIST) {
                return system_error(err, "make the folder", part);
            }
            part[i] = i < len ? '/' : 0;
        }
    }
    return ERR_OK;
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool file_find_name(const char *folder, struct sv name, char *out, i64 cap) {
    char path[4096];
    if (name.len >= cap || memchr(name.ptr, 0, (size_t)name.len) ||
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)name.len, name.ptr) >=
            (int)sizeof path) {
        return false;
    }
    memcpy(out, name.ptr, (size_t)name.len);
    out[name.len] = 0;
    if (file_exists(path)) {
        return true;
    }
    DIR *listing = opendir(folder);
    bool found = false;
    for (struct dirent *entry; listing && !found && (entry = readdir(listing)) != NULL;) {
        found = sv_eq_nocase(name, sv_from(entry->d_name));
        memcpy(out, entry->d_name, found ? (size_t)name.len : 0);
    }
    if (listing) {
        closedir(listing);
    }
    return found;
}

void *library_open(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *library_find(void *library, const char *symbol) {
    return dlsym(library, symbol);
}

bool library_beside(const char *name, char *out, i64 cap) {
    char self[2048];
    Dl_info info;
    void *here = NULL;
    bool (*own)(const char *, char *, i64) = library_beside;
    memcpy(&here, &own, sizeof here);
    bool found = dladdr(here, &info) && info.dli_fname && strchr(info.dli_fname, '/');
    if (found) {
        snprintf(self, sizeof self, "%s", info.dli_fname);
    } else { /* a program found by its name alone */
        ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
        found = bytes > 0;
        self[found ? bytes : 0] = 0;
    }
    char *slash = strrchr(self, '/');
    i32 dir = slash ? (i32)(slash - self) : 0;
    return found && slash && snprintf(out, (size_t)cap, "%.*s/%s", dir, self, name) < cap;
}

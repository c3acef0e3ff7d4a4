/* file.c: files, folders and shared libraries: the one file that includes fcntl.h and dlfcn.h. */
#define _GNU_SOURCE
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static wf_status system_error(struct error *err, const char *verb, const char *path) {
    wf_status code = errno == ENOENT || errno == ENOTDIR ? ERR_NO_DATA_FILE : ERR_IO;
    return error_set(err, code, -1, "cannot %s \"%s\": %s", verb, path, strerror(errno));
}

wf_status file_view_open(struct file_view *out, const char *path, struct error *err) {
    out->data = "";
    out->bytes = 0;
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
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = system_error(err, "map", path);
        } else {
            madvise(data, (size_t)info.st_size, MADV_SEQUENTIAL);
            out->data = data;
            out->bytes = (i64)info.st_size;
        }
    } else if (read(fd, &first, 1) != 0) { /* files of /proc have bytes, but no size */
        status = error_set(err, ERR_IO, -1, "cannot read \"%s\": its size is unknown", path);
    }
    close(fd);
    return status;
}

void file_view_close(struct file_view *view) {
    if (view->bytes) {
        munmap((void *)(size_t)view->data, (size_t)view->bytes);
    }
    view->data = "";
    view->bytes = 0;
}

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

void *library_open(const char *path) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *library_find(void *library, const char *symbol) {
    return dlsym(library, symbol);
}

/* file.h: the one place that knows files: mapped reading, writing, directories. */
#ifndef WF_BASE_FILE_H
#define WF_BASE_FILE_H

#include "base/mem.h"

struct file_view { /* a whole file, mapped read-only */
    const char *data;
    i64 bytes;
    i32 guard; /* its place in the list of guarded mappings */
    b8 own;    /* it belongs to this user, and nobody else may write to it */
};
/* ERR_NO_DATA_FILE or ERR_IO, naming the path and the system's reason. An empty file has bytes 0.
 */
FALLIBLE file_view_open(struct file_view *out, const char *path, struct error *err);
void file_view_close(struct file_view *view);
/* Another process cut the file short while it was mapped, and bytes behind its new end were read:
 * as zeros, instead of the signal that would end the program. */
bool file_view_torn(const struct file_view *view);
/* Writes to a temporary name in the same folder and renames: a reader sees all or nothing. */
FALLIBLE file_write_all(const char *path, const void *data, i64 bytes, struct error *err);
/* A file written piece by piece; kept, it appears under its name all at once, where it can (links,
 * devices and pipes are written directly). A NULL path is standard output. */
struct file_out {
    i32 fd;
    b8 direct;
    char path[2000];
    char temp[2048];
};
FALLIBLE file_out_open(struct file_out *out, const char *path, struct error *err);
FALLIBLE file_out_write(struct file_out *out, const void *data, i64 bytes, struct error *err);
/* Not kept: as if it had never been there. */
FALLIBLE file_out_close(struct file_out *out, bool keep, struct error *err);
FALLIBLE file_make_dirs(const char *path, struct error *err);
bool file_exists(const char *path);

/* Shared libraries (used by the gpu module only). */
void *library_open(const char *path); /* NULL when it cannot be loaded */
void *library_find(void *library, const char *symbol);
/* The path of a file beside the library or program this is part of; false when that is unknown. */
bool library_beside(const char *name, char *out, i64 cap);

#endif

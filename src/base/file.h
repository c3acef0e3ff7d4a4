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
/* Pages that lie in these bytes as a whole leave memory; read again, they are back. */
void file_view_pass(const struct file_view *view, i64 at, i64 bytes);
/* Another process cut the file short while it was mapped, and bytes behind its new end were read:
 * as zeros, instead of the signal that would end the program. */
bool file_view_torn(const struct file_view *view);
/* The same for a mapping of one's own: its place in the list, or -1 when that is full. */
i32 file_guard_open(const void *begin, i64 bytes);
bool file_guard_torn(i32 guard);
void file_guard_close(i32 guard);
/* Asked a few times a second while a file that may never answer (a pipe, a terminal) is waited for;
 * its error ends the wait. A NULL check waits for ever. */
struct file_wait {
    wf_status (*check)(void *arg, struct error *err);
    void *arg;
};
/* Anything but a folder, read once from where it stands: files, pipes, terminals. /dev/stdin and
 * /dev/fd/N are what the process holds open, not the same opened anew. */
struct file_stamp { /* tells whether a file is still the same */
    i64 bytes, changed_ns;
    u64 device, number;
};
struct file_in {
    i32 fd;
    b8 plain;  /* a regular file at its beginning, of so many bytes */
    b8 again;  /* opened anew it would give the same */
    i64 bytes; /* -1: unknown */
    struct file_stamp stamp;
    char path[2000];
    struct file_wait wait;
};
FALLIBLE file_in_open(struct file_in *out, const char *path, struct file_wait wait,
                      struct error *err);
/* Some bytes; none at the end. */
FALLIBLE file_in_read(struct file_in *in, void *to, i64 cap, i64 *out_bytes, struct error *err);
/* So many bytes from that place of a plain one on; ERR_IO when it ends before. Safe from several
 * threads. */
FALLIBLE file_in_read_at(const struct file_in *in, void *to, i64 bytes, i64 position,
                         struct error *err);
bool file_stamp_eq(const struct file_stamp *a, const struct file_stamp *b);
/* The whole of a plain one, without a copy where it is large; the next reader finds its end. */
FALLIBLE file_in_view(struct file_in *in, struct file_view *out, struct error *err);
/* The next to read what is held open under this name begins at that byte, where it can. */
void file_in_seek(struct file_in *in, i64 position);
void file_in_close(struct file_in *in);

/* Memory that grows in place, to any size, page by page: a file that cannot be mapped. */
struct file_bytes {
    struct memory *mem;
    char *data;
    i64 len, cap;
};
FALLIBLE file_bytes_reserve(struct file_bytes *bytes, i64 more, struct error *err);
void file_bytes_free(struct file_bytes *bytes);

/* Writes to a temporary name in the same folder and renames: a reader sees all or nothing. */
FALLIBLE file_write_all(const char *path, const void *data, i64 bytes, struct error *err);
/* A file written piece by piece; kept, it appears under its name all at once, where it can (links,
 * devices and pipes are written directly). A NULL path is standard output. */
struct file_out {
    i32 fd;
    b8 direct;
    b8 waits; /* for whoever reads it */
    char path[2000];
    char temp[2048];
    struct file_wait wait;
};
FALLIBLE file_out_open(struct file_out *out, const char *path, struct file_wait wait,
                       struct error *err);
FALLIBLE file_out_write(struct file_out *out, const void *data, i64 bytes, struct error *err);
/* Not kept: as if it had never been there. */
FALLIBLE file_out_close(struct file_out *out, bool keep, struct error *err);
FALLIBLE file_make_dirs(const char *path, struct error *err);
bool file_exists(const char *path);
/* The entry of a folder that `name` is, in any case of letters; one spelled as given comes first.
 */
bool file_find_name(const char *folder, struct sv name, char *out, i64 cap);

/* Shared libraries (used by the gpu module only). */
void *library_open(const char *path); /* NULL when it cannot be loaded */
void *library_find(void *library, const char *symbol);
/* The path of a file beside the library or program this is part of; false when that is unknown. */
bool library_beside(const char *name, char *out, i64 cap);

#endif

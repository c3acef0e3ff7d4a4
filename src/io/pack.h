/* pack.h: compressed files: gzip and zstd, in and out. */
#ifndef WF_IO_PACK_H
#define WF_IO_PACK_H

#include "base/file.h"
#include "io/io.h"

/* By the file's name: .gz, .zst. */
enum packing packing_of(const char *path);
/* By its own: none, gzip, zstd. */
enum packing packing_named(const char *name);

/* Unpacks piece by piece. */
struct unpack;
FALLIBLE unpack_open(struct unpack **out, enum packing packing, const char *path,
                     struct memory *mem, struct error *err);
/* Appends what the bytes hold. ERR_BAD_COPY_FORMAT when they are no such archive. */
FALLIBLE unpack_push(struct unpack *unpack, const char *bytes, i64 len, struct file_bytes *to,
                     const struct load_progress *progress, struct error *err);
/* All bytes have been pushed: an archive that was cut short is an error. */
FALLIBLE unpack_end(struct unpack *unpack, struct error *err);
void unpack_close(struct unpack *unpack); /* NULL is fine */

/* A file written piece by piece, packed or not. */
struct pack {
    struct file_out *file;
    struct memory *mem;
    void *stream; /* NULL: not packed */
    u8 packing;
    char *buf;
};
FALLIBLE pack_open(struct pack *out, enum packing packing, struct file_out *file,
                   struct memory *mem, struct error *err);
FALLIBLE pack_write(struct pack *pack, const char *bytes, i64 len, struct error *err);
FALLIBLE pack_end(struct pack *pack, struct error *err); /* writes what is left */
void pack_close(struct pack *pack);

#endif

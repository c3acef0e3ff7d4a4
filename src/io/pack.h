/* pack.h: compressed files: gzip and zstd, in and out. */
#ifndef WF_IO_PACK_H
#define WF_IO_PACK_H

#include "base/file.h"
#include "io/io.h"

/* By the file's name: .gz, .zst. */
enum packing packing_of(const char *path);
/* By its own: none, gzip, zstd. */
enum packing packing_named(const char *name);

/* Unpacks an open file piece by piece; the file must stay where it is, and open, as long. */
struct unpack;
FALLIBLE unpack_open(struct unpack **out, enum packing packing, struct file_in *file,
                     struct memory *mem, struct error *err);
/* Appends until `to` has so many bytes, or hardly more, or the archive ends, which *out_end tells.
 * ERR_BAD_COPY_FORMAT when the file is no such archive, or was cut short. */
FALLIBLE unpack_fill(struct unpack *unpack, struct file_bytes *to, i64 bytes,
                     const struct load_progress *progress, bool *out_end, struct error *err);
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

/* blob.h: bytes as files have them: numbers little end first, texts with their length before them.
 *
 * A blob grows in accounted memory; what is refused is noted in it, and found out at the end. A
 * reader never goes beyond its bytes: what is not there reads as zero and sets `bad`. */
#ifndef WF_STORE_BLOB_H
#define WF_STORE_BLOB_H

#include "base/mem.h"

struct blob {
    struct memory *mem;
    u8 *data;
    i64 len, cap;
    i64 refused_bytes;
};
void blob_init(struct blob *blob, struct memory *mem);
void blob_fini(struct blob *blob);
/* Room for `bytes` more, to be filled; NULL when refused. */
u8 *blob_room(struct blob *blob, i64 bytes);
void blob_bytes(struct blob *blob, const void *from, i64 bytes);
void blob_u8(struct blob *blob, u8 value);
void blob_u32(struct blob *blob, u32 value);
void blob_u64(struct blob *blob, u64 value);
void blob_i128(struct blob *blob, i128 value);
void blob_f64(struct blob *blob, f64 value);
void blob_text(struct blob *blob, const char *text); /* NULL is another text than "" */
FALLIBLE blob_check(const struct blob *blob, struct error *err);

struct blob_reader {
    const u8 *at, *end;
    b8 bad;
};
const u8 *read_bytes(struct blob_reader *from, i64 bytes); /* NULL: they are not there */
u8 read_u8(struct blob_reader *from);
u32 read_u32(struct blob_reader *from);
u64 read_u64(struct blob_reader *from);
i128 read_i128(struct blob_reader *from);
f64 read_f64(struct blob_reader *from);
const char *read_text(struct blob_reader *from, struct arena *arena);
/* A number of things of at least `least` bytes each: more than there are bytes for is bad, and 0. */
u32 read_count(struct blob_reader *from, i64 least);

#endif

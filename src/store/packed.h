/* packed.h: columns as they lie on the disk: numbers in as many bits as they need, text in words
 * or zstd. */
#ifndef WF_STORE_PACKED_H
#define WF_STORE_PACKED_H

#include "store/saved_int.h"

/* What a packed column is unpacked to. */
struct packed_form {
    u32 rows;
    u8 width;
    struct segment_layout lay;
    i64 text_bytes;
};
/* Writes the column to `to`, which has room for form->lay.total bytes; how many it takes, or 0: it would
 * not be smaller, and is written as it lies. */
i64 column_pack(const struct segment *seg, const struct packed_form *form, struct memory *mem,
                u8 *to);
/* All of form->lay.total bytes, behind which 64 more may be written; `scratch` has packed_scratch_bytes. False
 * when `from` is no such column. */
i64 packed_scratch_bytes(const struct packed_form *form);
bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, void *scratch,
                   u8 *to);

#endif

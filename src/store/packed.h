/* packed.h: columns as they lie on the disk: numbers in as many bits as they need, text in zstd. */
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
/* Appends the column to `out`, empty before; false when it would not be smaller, or memory is short:
 * it is written as it lies. */
bool column_pack(const struct segment *seg, const struct packed_form *form, struct blob *out);
/* All of form->lay.total bytes; false when `from` is no such column. */
bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, u8 *to);

#endif

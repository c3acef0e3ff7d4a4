/* packed.h: columns as they lie on the disk: numbers in as many bits as they need, text in words
 * or zstd. */
#ifndef WF_STORE_PACKED_H
#define WF_STORE_PACKED_H

#include "defs/kpack.h"
#include "store/saved_int.h"

/* What a packed column is unpacked to. */
struct packed_form {
    u32 rows;
    u8 width;
    struct segment_layout lay;
    i64 text_bytes;
};
/* Where columns are packed, one after the other. {mem} is an empty one. */
struct desk {
    struct memory *mem;
    u8 *at;    /* at a page; the last one can be filled, too */
    i64 bytes;
    u8 *block; /* it lies in */
    struct wording *words; /* what text is put in words with (pack_loops.h), once it was */
};
/* Room for so many bytes, of which the first `kept` stay as they are; false when memory is short. */
bool desk_reserve(struct desk *desk, i64 bytes, i64 kept);
void desk_fini(struct desk *desk);
void desk_lose(struct desk *desk); /* somebody else frees what is on it */

/* How much a column that packs well needs there. */
i64 packed_room(const struct packed_form *form);
/* Writes the column to desk->at; how many bytes it takes, or 0: it would not be smaller or memory is short, and is
 * written as it lies. */
i64 column_pack(const struct segment *seg, const struct packed_form *form, struct desk *desk);
/* All of form->lay.total bytes, behind which 64 more may be written; `scratch` has packed_scratch_bytes. False
 * when `from` is no such column. */
i64 packed_scratch_bytes(const struct packed_form *form);
bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, void *scratch,
                   u8 *to);
/* For who unpacks a column without text elsewhere: where each of its blocks of numbers begins, in bytes
 * from `from`; behind the last lie the validity bits. False as above. */
i64 packed_block_count(i64 rows);
bool packed_starts(const u8 *from, i64 bytes, const struct packed_form *form, u32 *out_starts);

#endif

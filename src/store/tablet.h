/* tablet.h: a tablet as devices see it: up to 2^20 rows, column-major, one segment per column.
 *
 * A sealed tablet never changes. The open tail of a table is a tablet too: its rows up to the
 * length published in a table version never change either. Addresses inside a tablet are offsets
 * from its own buffers, so a copy on another device is valid as it is. */
#ifndef WF_STORE_TABLET_H
#define WF_STORE_TABLET_H

#include "base/mem.h"
#include "defs/ops.h"

#define ZONE_SHIFT 14
#define ZONE_ROWS (1 << ZONE_SHIFT)

struct zone {     /* over the non-NULL values of ZONE_ROWS rows; lo > hi when there are none */
    i128 lo, hi;  /* exact types and dates; booleans 0 and 1 */
    f64 flo, fhi; /* floats; -inf, +inf where a NaN occurs */
};

/* One column of one tablet.
 *   CONST  every non-NULL value equals base (ints), or fbase (floats); no data
 *   INT    data holds unsigned integers of `width` bytes (1, 2, 4, 8, 16); value = base + data[i].
 *          With is_signed (tails, and tables made with narrow = off) data holds signed integers of
 *          `width` bytes, the width of the type's kind, and base is 0
 *   FLOAT  data holds f32 or f64 (width 4 or 8)
 *   DICT   data holds unsigned codes of `width` bytes (1, 2, 4) of the column's dictionary
 *   STR    data holds u32 end offsets into bytes; row i is bytes[end[i-1] .. end[i]) (end[-1] = 0)
 * Where a row is NULL its data are 0 (STR: an empty string). */
struct segment {
    u8 encoding; /* enum encoding */
    u8 width;
    b8 is_signed; /* INT: see above */
    i128 base;
    f64 fbase;
    const void *data; /* 64-byte aligned, padded */
    const u8 *bytes;
    i64 bytes_len;
    /* Bit i is 1 where row i is not NULL; NULL pointer = no NULLs in the tablet. Bits from `rows`
     * on have no meaning, and words wholly beyond `rows` must not be read. */
    const u64 *valid;
    struct range range; /* of non-NULL values */
    i64 null_count;
    const struct zone *zones; /* one per ZONE_ROWS rows; NULL in the tail and for text */
    b8 sorted;                /* non-descending and no NULLs; always 0 for floats and text */
    b8 strict;                /* sorted without duplicates */
};

struct tablet {
    _Atomic i32 refs;
    u64 id; /* unique in the process: with a column number, the key of GPU copies */
    u32 rows;
    u32 col_count;
    /* Every append publishes a new tablet, with a new id, for the tail's rows so far; it shares the
     * column data with its predecessors and never changes either. */
    b8 tail;
    b8 filed;  /* insiders: it was read from the database file, or came with very many rows */
    b8 framed; /* some column lies in the database file, and may not be in memory: frames.h */
    struct segment *cols;
    /* What cols point into. Sealed: all of column i lies in buffers[i] (NULL when it has no data).
     * Tail: data in buffers[i], validity in buffers[col_count + i], bytes in buffers[2 * col_count
     * + i], and a writer may be adding rows behind those of this tablet. */
    struct buffer **buffers;
    u32 buffer_count;
    i64 meta_bytes; /* of this block: header, segments, zones */
    struct memory *mem;
    i64 bytes; /* of column data and meta */
    struct tablet_place *place; /* insiders: where it lies in the database file; NULL = nowhere */
    struct tablet_key *_Atomic keys; /* insiders: what finds its rows by keys (key_int.h) */
};
struct tablet *tablet_retain(struct tablet *tablet);
void tablet_release(struct tablet *tablet);

/* A column's dictionary: append-only, chunks never move, codes are unordered. Readers use the
 * length in their snapshot. Thread-safe. */
struct dict;
struct dict *dict_open(struct memory *mem); /* NULL when refused */
struct dict *dict_retain(struct dict *dict);
void dict_release(struct dict *dict);
/* The code of s, added when new; -1 when memory is refused or the dictionary is full (2^31
 * entries). */
i32 dict_add(struct dict *dict, struct sv s);
/* The same for n strings, s[sel[j]] or s[j], to the same places of out; false when one was refused.
 */
bool dict_add_many(struct dict *dict, const str *s, const u32 *sel, i64 n, i32 *out);
/* dict_find of all entries there are, for many. */
void dict_find_many(const struct dict *dict, const str *s, const u32 *sel, i64 n, i32 *out);
i32 dict_find(const struct dict *dict, struct sv s, i32 len); /* -1 when not among the first len */
i32 dict_len(const struct dict *dict);
/* The length, for a version to refer to: entries below it stay. Whoever adds to a table's
 * dictionary is a writer from before the first until its codes are published, or given up: when the
 * last of them ends, entries that nobody published go. */
i32 dict_publish(struct dict *dict);
void dict_writer_begin(struct dict *dict);
void dict_writer_end(struct dict *dict);
struct sv dict_get(const struct dict *dict, i32 code);
i64 dict_bytes(const struct dict *dict);
/* Of dictionaries that an execution numbers texts with. What memory they may take from now on: */
void dict_place(struct dict *dict, enum mem_place place);
/* All entries of `from`, which has none of into's, behind those there are, in temporary space; into then has no
 * hash table before a text is looked for. False when refused. */
bool dict_absorb(struct dict *into, const struct dict *from);
/* n texts behind the entries there are, in temporary space, whether it has them or not: only where nobody looks for
 * texts, or compares codes. The first has code *out_first. False when refused. */
bool dict_put_aside(struct dict *dict, const str *text, i64 n, i32 *out_first);
/* `before`, which it takes, lives as long as it: there are views of its texts. */
void dict_outlives(struct dict *dict, struct dict *before);
/* The entries [first, end) in a dictionary of their own, numbered from 0 on; NULL when refused. */
struct dict *dict_recall(const struct dict *dict, i32 first, i32 end);
u64 dict_hash(struct sv s); /* the same for equal texts */
/* rank[code] = position in byte order, for the first len codes; cached until the dictionary grows.
 * The arrays stay valid while the dictionary is retained. False when memory is refused. */
bool dict_ranks(struct dict *dict, i32 len, const i32 **out_rank, const i32 **out_code_at);
/* The same where they are there already. */
bool dict_ranks_known(struct dict *dict, i32 len, const i32 **out_rank, const i32 **out_code_at);
/* Somebody else finds them: room for len ranks, and the codes in their order behind them, which goes with the
 * dictionary; NULL when refused. They are known when it is told. */
i32 *dict_ranks_room(struct dict *dict, i32 len);
void dict_ranks_set(struct dict *dict, const i32 *room);
/* Bytes that dict_ranks needs to find them. */
i64 dict_ranks_bytes(i32 len);
/* Whether its newest entries lie in temporary space. */
bool dict_is_aside(const struct dict *dict);
/* Views of entries first..first + n, without a page of temporary space in memory; nobody may compare them by their
 * prefixes. */
void dict_views(const struct dict *dict, i32 first, i64 n, str *out);

/* segment.c: decoding. Integers are data + base, extended as `signed` says; codes have no base. */
static inline bool segment_is_null(const struct segment *seg, i64 i) {
    return seg->valid && !(seg->valid[i >> 6] >> (i & 63) & 1);
}
static inline i128 segment_base(const struct segment *seg) {
    return seg->encoding == ENC_DICT ? 0 : seg->base;
}
static inline bool segment_is_signed(const struct segment *seg) {
    return seg->encoding == ENC_INT && seg->is_signed;
}
/* The one value of a CONST segment, as a register of that kind holds it. */
union lit segment_const(const struct segment *seg, u8 kind);
/* The code in row i of a DICT segment. */
static inline i32 segment_code(const struct segment *seg, i64 i) {
    ASSERT(seg->encoding == ENC_DICT);
    return seg->width == 1   ? ((const u8 *)seg->data)[i]
           : seg->width == 2 ? ((const u16 *)seg->data)[i]
                             : (i32)((const u32 *)seg->data)[i];
}
/* Rows pos[0..n) as values of `kind`, to places `to` of out; anything where a row is NULL. Texts are
 * views, and have no prefix unless they have codes: for answers, of which nobody compares the texts. */
void segment_take(const struct segment *seg, const struct dict *dict, u8 kind, const u32 *pos,
                  const u32 *to, i64 n, void *out);
/* What is said above of the encodings holds; for assertions. */
bool segment_is_sound(const struct segment *seg, struct type type);
/* Row i, decoded to the kind of its type; false: NULL. For tests, results and single look-ups. */
bool segment_get(const struct segment *seg, const struct dict *dict, struct type type, i64 i,
                 void *out);

#endif

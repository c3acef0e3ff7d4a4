/* key_int.h: what the files share that know keys: values, hashes, and the parts of tablets.
 *
 * A part is what finds the rows of one sealed tablet by one key: nothing but the order of its rows,
 * where they are in one; else hashes with places. It belongs to the tablet and never changes. Those of
 * tablets that lie in the database file lie there, too, and are read through frames. */
#ifndef WF_STORE_KEY_INT_H
#define WF_STORE_KEY_INT_H

#include "defs/value.h"
#include "store/store_int.h"

enum { KEY_COLS_MAX = 32 };

/* One key's values in a row, as they are compared. */
struct key_values {
    union lit v[KEY_COLS_MAX];
};
/* False: one of them is NULL, or cannot be read, which `pins` then knows. */
bool key_read(struct pins *pins, const struct table *table, const struct table_key *key,
              const struct tablet *tablet, i64 pos, struct key_values *out);
u64 key_hash(const struct table *table, const struct table_key *key,
             const struct key_values *values);
/* The hashes of `rows` rows from `first`, at most KEY_BATCH, and whether each has a key at all. False:
 * cannot be read. */
enum { KEY_BATCH = 256 };
bool key_hashes(struct pins *pins, const struct table *table, const struct table_key *key,
                const struct tablet *tablet, i64 first, i64 rows, u64 *out, b8 *out_has);
/* The first row of tablet t of mine that base has not. */
i64 version_first_new(const struct table_version *base, const struct table_version *mine, i64 t);
/* key_twins.c: the first row that base has not (NULL: of all) and whose key another row has;
 * I64_MAX: there is none. */
FALLIBLE version_find_twin(struct table *table, const struct table_key *key,
                           const struct table_version *base, const struct table_version *mine,
                           i64 *out_row, struct error *err);
/* What the column's segment says of a key of one column: bits of enum key_order. */
u8 segment_key_order(const struct table *table, const struct table_key *key,
                     const struct tablet *tablet);

/* Rows whose hashes begin with the same bits. The next bits of a hash say which bucket it is in, the
 * 16 behind them are kept. */
struct key_half {
    struct extent home;         /* where it was read from: never changes */
    struct extent place;        /* where it is in the newest state of the file */
    struct buffer *_Atomic buf; /* NULL: nobody has asked for it yet, and it lies where it was */
};
struct key_chunk {
    u32 count;
    struct key_half hashes; /* u32 where each bucket begins, and the end; u16 of every row */
    struct key_half places; /* the rows' positions: u16 lower bits; u8 the upper 4 of two rows */
};
struct key_part {
    _Atomic i32 refs;
    struct memory *mem;
    u8 order;      /* bits of enum key_order: rows are found by search, there are no chunks */
    u8 chunk_bits; /* of a hash, that say which chunk it is in */
    u32 rows;      /* of the tablet */
    struct frames *frames; /* that chunks are read through; counted; NULL: they are in memory, or
                            * only in the file */
    struct key_chunk chunks[];
};
struct tablet_key {
    struct tablet_key *next;
    struct key_part *part; /* counted: ALTER TABLE shares it */
    u32 col_count;
    u32 cols[];
};

static inline i64 part_chunks(const struct key_part *part) {
    return part->order ? 0 : 1LL << part->chunk_bits;
}
u32 chunk_dir_bits(u32 count);
i64 chunk_hash_bytes(u32 count);
i64 chunk_place_bytes(u32 count);

struct key_part *part_new(struct memory *mem, u8 order, u8 chunk_bits,
                          u32 rows); /* NULL: refused */
void part_release(struct key_part *part);
/* Of the tablet's rows, in memory: their order, or hashes. */
FALLIBLE part_build(const struct table *table, const struct table_key *key,
                    const struct tablet *tablet, struct key_part **out, struct error *err);
/* key_save.c: chunks of a part that was just made go to the file, where the table has one, so that
 * they leave memory like columns do. */
void part_write_early(const struct table *table, const struct table_key *key,
                      struct key_part *part);
/* Half a chunk of a part: a frame, made now if there is none yet, or plain memory; NULL: refused. */
struct buffer *half_buffer(const struct key_part *part, struct key_half *half, const char *table,
                           const char *key);
/* The name of a table's key of these columns, for messages. */
const char *key_name_of(const struct table *table, const u32 *cols, u32 col_count);
/* Whether every row with a key is found by it; XX001. */
FALLIBLE part_check(const struct table *table, const struct tablet_key *at,
                    const struct tablet *tablet, struct error *err);

/* The tablet's part of a key, or NULL. */
struct key_part *tablet_find_part(const struct tablet *tablet, const u32 *cols, u32 col_count);
/* Gives the tablet a part, which it takes, unless it has one of these columns. False: refused. */
bool tablet_add_part(struct tablet *tablet, const u32 *cols, u32 col_count, struct key_part *part);
void tablet_keys_free(struct tablet *tablet);
/* ALTER TABLE: those whose columns `to` has, too; cols as of version_reshape. */
bool tablet_share_parts(struct tablet *to, const struct tablet *from, const i32 *cols);

/* Rows of a tablet that may have a hash: positions, one after the other. */
struct part_cursor {
    struct pins *pins;
    const struct table *table;
    const struct table_key *key;
    struct key_part *part;
    struct key_chunk *chunk;
    const u16 *rests;
    u32 at, end;
    u16 rest;
};
/* Whether there is any; damage and memory are told by the pins. */
bool part_seek(struct part_cursor *cursor, u64 hash);
bool part_next(struct part_cursor *cursor, u32 *out_pos);

#endif

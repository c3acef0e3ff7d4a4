/* store_int.h: what the files of store/ share.
 *
 * Rows come in as `column_source`s, whatever their form (plain input, or the parts of a tail).
 * column_scan learns the facts that encodings and statistics need, segment_seal writes a segment.
 * A `draft` is everything of a version that an append goes on from, tail included: a writer works
 * on a copy of its base's, which becomes the new version's. */
#ifndef WF_STORE_STORE_INT_H
#define WF_STORE_STORE_INT_H

#include "store/frames.h"
#include "store/store.h"

enum {
    CHUNK_ROWS = 1024,    /* unit of scanning and encoding; divides ZONE_ROWS */
    PIECE_ROWS = 4096,    /* unit of filling a tail */
    DICT_MAX_LEN = 65536, /* past this, new tablets hold plain text */
    DICT_FREE_LEN = 1024, /* up to this, a dictionary may outnumber half the rows */
    SKETCH_BITS = 8,
};
#define STR_LIMIT 0xffffffffLL /* bytes of a STR segment: its end offsets are 32-bit */

/* What is known of a run of rows of one column; mergeable in row order. */
struct facts {
    struct range range;
    i64 rows;
    i64 null_count;
    b8 sorted, strict; /* exact types only; NULLs clear both */
    u64 and_bits;      /* floats: all values have the same bits when and_bits == or_bits */
    u64 or_bits;
};
void facts_init(struct facts *facts, struct type type);
void facts_merge(struct facts *into, const struct facts *next, struct type type);
struct facts segment_facts(const struct segment *seg, struct type type, i64 rows);
struct range range_empty(struct type type);
struct range facts_range(const struct facts *facts); /* as readers may see it */

/* Distinct values, estimated from the leading zeros of their hashes. */
struct sketch {
    u8 longest[1 << SKETCH_BITS];
};
static inline void sketch_add(struct sketch *sketch, u64 hash) {
    u64 rest = hash << SKETCH_BITS | 1u << (SKETCH_BITS - 1);
    u8 zeros = (u8)(__builtin_clzll(rest) + 1);
    u8 *cell = &sketch->longest[hash >> (64 - SKETCH_BITS)];
    if (zeros > *cell) { /* soon rare: a branch is cheaper than a store for every value */
        *cell = zeros;
    }
}
bool sketch_merge(struct sketch *into, const struct sketch *from); /* whether it has changed */
f64 sketch_estimate(const struct sketch *sketch);
u64 text_hash(struct sv s); /* what text contributes to a sketch */

enum source_form {
    FORM_PLAIN, /* data: elements of `kind`; text as str */
    FORM_CODES, /* data: u32 codes of the column's dictionary */
    FORM_ENDS,  /* data: u32 end offsets into bytes; `start` is where the first row begins */
};
struct column_source {
    struct type type;
    u8 kind;
    u8 form;
    const void *data;
    const u8 *bytes;
    u32 start;
    const b8 *nulls; /* one or the other, or neither */
    const u64 *valid;
    i64 rows;
};
struct column_source source_of_input(struct type type, const struct input_col *col, i64 first,
                                     i64 rows);
/* NULL flags of rows [first, first + count), count <= CHUNK_ROWS; NULL when none is set. */
const b8 *source_nulls(const struct column_source *src, i64 first, i64 count, b8 *scratch);
struct sv source_text(const struct column_source *src, i64 i); /* PLAIN, ENDS; row i is not NULL */

/* Facts of all rows; sketch (not for codes) and zones may be NULL. */
void column_scan(const struct column_source *src, struct facts *out, struct sketch *sketch,
                 struct zone *zones);

/* dst[i] = (data[i] - base) in `width` bytes, 0 where NULL, for PLAIN fixed-width kinds and CODES.
 */
void column_narrow(void *dst, u8 width, const struct column_source *src, i128 base);
/* Sets the bits of `rows` rows from `first` in words; other bits stay. */
void valid_write(u64 *words, i64 first, const struct column_source *src);

/* The width that holds 0..span: 1, 2, 4, 8 or 16 bytes. */
u8 width_for(u128 span);

/* Equality of short strings, most of all strings here, without a call. */
static inline bool bytes_equal(const char *a, const char *b, i64 len) {
    if (len > 16) {
        return memcmp(a, b, (size_t)len) == 0;
    }
    if (len >= 8) { /* two loads that may overlap */
        u64 a0, b0, a1, b1;
        memcpy(&a0, a, 8);
        memcpy(&b0, b, 8);
        memcpy(&a1, a + len - 8, 8);
        memcpy(&b1, b + len - 8, 8);
        return a0 == b0 && a1 == b1;
    }
    if (len >= 4) {
        u32 a0, b0, a1, b1;
        memcpy(&a0, a, 4);
        memcpy(&b0, b, 4);
        memcpy(&a1, a + len - 4, 4);
        memcpy(&b1, b + len - 4, 4);
        return a0 == b0 && a1 == b1;
    }
    for (i64 i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Text of a source to dictionary codes. False when memory is refused. *out_full is set when the
 * dictionary, for a column of `column_rows` rows, has grown too large; the codes are then unusable.
 */
bool text_codes(const struct column_source *src, struct dict *dict, i64 column_rows, u32 *codes,
                bool *out_full);
bool dict_overfull(const struct dict *dict, i64 column_rows);
void dict_sketch(const struct dict *dict, struct sketch *sketch);

/* A tablet's block with its segments and `zone_count` zones per column, all zeroed, refs 1. */
struct tablet *tablet_new(struct memory *mem, u32 col_count, u32 buffer_count, i64 zone_count);

/* Where a tablet lies in a database file (saved_int.h); a column that another one shares. */
void tablet_place_free(struct memory *mem, u32 col_count, struct tablet_place *place);
void tablet_place_share(struct tablet *to, u32 c, const struct tablet *from, u32 old);

/* Rows to one sealed tablet. `dict_on` says per column whether text may use the dictionary; a
 * column found too varied is switched off there. `sketches` may be NULL. */
struct seal {
    struct table *table;
    i64 rows;        /* to seal: those of every source */
    i64 column_rows; /* rows of the table when these are counted */
    _Atomic i32 *dict_on;
    struct sketch *sketches;
    b8 is_passing; /* nobody keeps the tablet: its columns are no frames */
};
FALLIBLE tablet_seal(const struct seal *seal, const struct column_source *sources,
                     struct tablet **out, struct error *err);
/* The first seal->rows rows, or fewer where memory is short, as seal->rows says then: what is sealed
 * can go to the file. */
FALLIBLE tablet_seal_some(struct seal *seal, struct column_source *sources, struct tablet **out,
                          struct error *err);
/* The rows of `sources`, from the first, that may share a tablet: text bytes limit them. */
i64 seal_rows(const struct table *table, const struct column_source *sources, i64 rows);

/* moves.c: what a compaction moved. */
enum { MOVES_MAX = 64 }; /* compactions that are kept for transactions which began before them */
struct moved_from {
    u32 slot, rows;
    struct buffer *deleted; /* at that time; NULL = no row was */
    i32 run;
    i64 before; /* live rows of the run's tablets before this one */
    const u32 *ranks;
};
struct moved_to { /* rows `first` .. of a run */
    u32 slot;
    i32 run;
    i64 first, rows;
};
/* Copies both lists and retains bitmaps and older moves; NULL when memory is refused. */
struct moves *moves_new(struct memory *mem, const struct moved_from *from, i64 from_count,
                        const struct moved_to *to, i64 to_count, struct moves *older);
struct moves *moves_retain(struct moves *moves);
void moves_release(struct moves *moves);
i64 moves_depth(const struct moves *moves);
/* A row's present place; false when it did not move, or was deleted by then. */
bool moves_find(const struct moves *moves, u32 *io_slot, u32 *io_pos);

struct tablet_list {
    struct memory *mem;
    struct tablet **items;
    i64 count, cap;
};
bool tablet_list_push(struct tablet_list *list, struct tablet *tablet); /* takes on success */
void tablet_list_fini(struct tablet_list *list); /* releases what is still in it */

struct col_draft {
    struct facts all; /* of every row of the table */
    struct sketch sketch;
    i64 distinct;
    b8 sketch_changed;
    b8 dict_on; /* text: new rows are codes */
    b8 has_str; /* text: some tablet holds plain strings */
    /* The tail. */
    struct facts tail;
    struct buffer *data, *valid, *bytes;
    i64 bytes_used;
    b8 valid_private; /* not in any published version: may be written anywhere */
};
/* The buffers of a tail as a place to write: versions that share them share this. Rows from
 * `claimed` on are nobody's. Who wants to add behind its own tail_rows moves claimed on from there;
 * when somebody else has done so before, it copies the tail. */
struct tail_room {
    _Atomic i32 refs;
    _Atomic u32 claimed;
    struct memory *mem;
};
struct tail_room *room_new(struct memory *mem, u32 claimed); /* NULL when refused */
void room_release(struct tail_room *room);

struct draft {
    i64 sealed_count; /* tablets before the tail */
    u32 tail_rows, tail_cap;
    u32 tail_slot;
    u32 claim_from; /* tail_rows before this version's own claims of room */
    b8 is_private;  /* the tail is a transaction's own: its commit appends the rows once more */
    struct tail_room *room;
    struct col_draft cols[];
};

struct table_state {
    struct mutex write_lock; /* one table_append or load_commit at a time */
    struct mutex lock;       /* current; indexes of keys in versions */
    struct table_version *current;
    _Atomic u64 *epoch; /* counted at every publishing; may be NULL */
    struct db_file *file; /* where its columns will lie; NULL = only in memory */
    i64 str_limit;      /* STR_LIMIT; tests lower it */
    _Atomic i32 rivals; /* > 0: several transactions append, lately */
    struct arena arena; /* names and constraints */
};

/* A writer between begin and end: its draft, the tablets it has sealed, the bitmaps it has changed.
 */
struct writer {
    struct table *table;
    struct table_version *base;
    struct draft *draft;
    struct tablet_list sealed;
    u32 *sealed_slots;              /* of the sealed list's capacity */
    struct buffer **sealed_deleted; /* likewise; NULL entries = none */
    u32 next_slot;
    _Atomic i32 *dict_on;          /* per column, for tablet_seal */
    struct column_source *sources; /* per column, for tablet_seal */
    struct buffer *
        *deleted; /* by tablet of base: what replaces its bitmap; NULL array = none does */
    u32 *deleted_counts;
    b8 *deleted_own; /* made by this writer: may be written */
    b8 is_merging;               /* part of a commit: rows go to the table's own tail */
    b8 is_restoring;             /* tablets and slots are given: the tail is not sealed early */
    struct buffer *tail_deleted; /* borrowed: of a tail that the base has not; NULL = none */
};
/* Whoever adds to a table's dictionaries: see dict_publish. */
void table_writer_begin(struct table *table);
void table_writer_end(struct table *table);
FALLIBLE writer_begin(struct writer *writer, struct table *table, struct table_version *base,
                      struct error *err);
/* The new version. */
FALLIBLE writer_finish(struct writer *writer, struct table_version **out, struct error *err);
void writer_end(struct writer *writer); /* after finish, or to give up */
/* Marks row `pos` of the base's tablet t deleted; *out_fresh = it was live. */
FALLIBLE writer_delete(struct writer *writer, i64 t, u32 pos, bool *out_fresh, struct error *err);
/* Puts a sealed tablet behind the others; takes it and the bitmap (may be NULL). */
FALLIBLE writer_add(struct writer *writer, struct tablet *tablet, u32 slot, struct buffer *deleted,
                    struct error *err);
/* The facts of a tablet that comes as a whole. */
void writer_count(struct writer *writer, const struct tablet *tablet);
FALLIBLE writer_rows(struct writer *writer, i64 rows, const struct input_col *cols,
                     struct error *err);
/* From here on new text of column col is plain. */
void writer_stop_dict(struct writer *writer, u32 col);

/* Appends some of the `rows` input rows from `first`, at least one; room for the rest is foreseen.
 */
FALLIBLE tail_append(struct writer *writer, const struct input_col *cols, i64 first, i64 rows,
                     i64 *out_done, struct error *err);
FALLIBLE tail_seal(struct writer *writer, struct error *err); /* does nothing when it is empty */
/* The tail's rows as an immutable tablet. */
FALLIBLE tail_view(struct writer *writer, struct tablet **out, struct error *err);
void tail_reset(struct writer *writer); /* without rows */
i64 draft_bytes(const struct table *table);
struct draft *draft_new(const struct table *table);
struct draft *draft_copy(const struct table *table, const struct draft *from);
void draft_free(struct memory *mem, u32 col_count, struct draft *draft);
void draft_unclaim(struct draft *draft); /* gives back the room it claimed, when it was the last */

/* A version of the writer's table: the base's tablets, the new ones, the tail (may be NULL); takes
 * the tail and, on success, the draft. */
struct table_version *version_new(struct writer *writer, struct tablet *tail);
struct table_version *version_empty(struct table *table, u32 next_slot); /* NULL when refused */
/* A block for `tablet_count` tablets with no tablet in it yet. */
struct table_version *version_alloc(const struct table *table, i64 tablet_count);
/* Takes the tablet and the bitmap. */
void version_push(struct table_version *version, struct tablet *tablet, u32 slot,
                  struct buffer *deleted, u32 deleted_count);
i64 version_find_slot(const struct table_version *version, u32 slot); /* tablet number or -1 */
void version_stats(struct table_version *version, const struct table *table);
i64 bits_count(const u64 *words, i64 rows);
struct buffer *bits_new(struct memory *mem, i64 rows, const struct buffer *from);

/* change.c: rows of tablets as plain columns, in one block that the caller frees. */
struct plain_rows {
    i64 rows, bytes;
    u8 *block;
    struct input_col *cols;
    struct pins pins; /* texts are views */
};
FALLIBLE plain_open(struct plain_rows *out, const struct table *table, i64 rows, struct error *err);
void plain_close(struct plain_rows *plain, const struct table *table);
void plain_clear(struct plain_rows *plain, const struct table *table); /* empty again */
/* Adds the live rows of [from, to) of tablet t. */
FALLIBLE plain_fill(struct plain_rows *out, const struct table *table,
                    const struct table_version *version, i64 t, i64 from, i64 to,
                    struct error *err); /* Many because a range of a tablet is four. */
/* key.c: what is known of the keys of base goes for mine, which has the same rows, some of them
 * elsewhere. */
FALLIBLE version_keep_keys(struct table *table, struct table_version *base,
                           struct table_version *mine, struct error *err);
/* The order of a sealed tablet's rows by key k: bits of enum key_order. */
u8 tablet_key_order(const struct table *table, u32 k, const struct tablet *tablet);
FALLIBLE tablet_find_order(const struct table *table, const struct table_key *key,
                           const struct tablet *tablet, u8 *out, struct error *err);

struct table *load_table(struct load *load); /* retained */

struct key_index *key_index_retain(struct key_index *index);
void key_index_release(struct key_index *index);

static inline bool type_is_text(struct type t) {
    return type_kind(t) == KIND_STR;
}

#endif

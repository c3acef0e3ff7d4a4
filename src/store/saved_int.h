/* saved_int.h: what the files share that turn tables into extents and back. */
#ifndef WF_STORE_SAVED_INT_H
#define WF_STORE_SAVED_INT_H

#include "store/saved.h"
#include "store/store_int.h"

enum { OPEN_TAIL_ROWS = 1 << 14 }; /* a longer one comes back as a tablet, and the next rows begin
                                    * another */

/* Where the parts of a segment lie in its extent. */
struct segment_layout {
    i64 data_bytes, valid_at, valid_bytes, bytes_at, total;
};
struct segment_layout segment_layout(const struct segment *seg, i64 rows, bool has_valid);

/* Where a tablet lies in the file. */
struct tablet_place {
    struct extent meta;
    u32 meta_keys; /* parts of keys that it names */
    struct extent cols[];
};
struct tablet_place *tablet_place_new(struct memory *mem, u32 col_count); /* NULL: refused */

/* The columns of a tablet that a load has made go to the file, before anything refers to them, so that
 * its commit finds them there. What cannot be written is left to the commit. Some are on their way when it
 * returns: *left counts them, and the tablet stays until tablet_write_wait has returned. */
void tablet_write_early(struct table *table, struct tablet *tablet, i32 *left);
void tablet_write_wait(struct table *table, const i32 *left);
/* key_save.c: the parts of a tablet's keys, behind its columns. */
struct tablet_key;
/* Whether all of them, from `first` on, are in the file, and stay there. */
bool keys_keep(struct save *save, const struct tablet_key *first);
u32 keys_count(const struct tablet_key *first);
/* Makes those that a tablet which is written for the first time needs: of keys whose rows are in no
 * order. `form` has its rows. */
FALLIBLE keys_make(const struct table *table, const struct table_version *version,
                   struct tablet *tablet, const struct tablet *form, struct error *err);
FALLIBLE keys_write(struct save *save, struct blob *out, const struct table *table,
                    const struct tablet_key *first, const struct tablet *form, struct error *err);
/* Those of a tablet that is being read; `from` goes bad where they cannot be. */
FALLIBLE keys_load(struct db_file *file, struct blob_reader *from, struct tablet *tablet,
                   struct error *err);
/* Each extent of them: the first (after NULL), the next; NULL = no more. */
const struct extent *keys_next_extent(const struct tablet *tablet, const struct extent *extent);

/* dict.c: puts the dictionary on the list, with what it has gained; its number in the file. */
FALLIBLE dict_save(struct save *save, struct dict_list *list, struct dict *dict, u64 *out_id,
                   struct error *err);
/* Its extents in the file: the first (after NULL), the next; NULL = no more. */
const struct extent *dict_saved_next(const struct dict *dict, const struct extent *extent);
/* Its parts in a file that is being read, which dict_fetch reads when a column has codes. Those that
 * nobody has asked for when all is read (NULL) are of texts that have left the dictionary for good. */
struct dict_parts {
    struct db_file *file;
    u32 count;
    struct extent *extents;
    i32 *entries;
};
void dict_set_parts(struct dict *dict, const struct dict_parts *parts);
FALLIBLE dict_fetch(struct dict *dict, struct error *err);
void dict_set_saved(struct dict *dict, u64 id); /* its number there, though it may have no entries */

void bits_save(struct blob *out, const u64 *bits, i64 rows, i64 count);
/* Sets the bits that bits_save wrote; how many there are, whether set before or not. */
u32 bits_load(struct blob_reader *from, u64 *bits, i64 rows);

/* What a version is made of when it does not come from another one. */
struct version_part {
    u32 slot;
    struct tablet *tablet;    /* borrowed */
    struct plain_rows *plain; /* an open tail of these rows, instead of the tablet; or NULL */
    struct buffer *deleted;   /* borrowed; NULL = none */
};
struct col_state { /* of a draft */
    struct facts all;
    struct sketch sketch;
    i64 distinct;
    b8 dict_on, has_str, sketch_changed;
};
/* A tail must be the last part. Dictionaries that `cols` has switched off stay off. */
FALLIBLE version_restore(struct table *table, u32 next_slot, const struct version_part *parts,
                         i64 count, const struct col_state *cols, struct table_version **out,
                         struct error *err);
/* change.c: rows [from, to) of a tablet, deleted or not, behind those that are there. */
FALLIBLE plain_fill_all(struct plain_rows *out, const struct table *table,
                        const struct tablet *tablet, i64 from, i64 to, struct error *err);

#endif

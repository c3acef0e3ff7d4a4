/* constraint_int.h: what constraint.c and reference.c share: keys of rows, and rows by their keys.
 */
#ifndef WF_SESSION_CONSTRAINT_INT_H
#define WF_SESSION_CONSTRAINT_INT_H

#include "session/session_int.h"

/* The values of some columns of one row. */
struct values {
    union lit v[32];
    const void *at[32];
};
/* Some columns of some rows of a table. */
struct row_reader {
    const struct table *table;
    u32 count;
    const u32 *cols;
    struct pins pins; /* values may be views; what could not be read is known at the end */
};
/* false: one of them is NULL, or cannot be read. */
bool read_values(struct row_reader *reader, const struct tablet *tablet, i64 pos,
                 struct values *out);
static inline bool is_live(const struct table_version *version, i64 t, i64 pos) {
    const u64 *gone = version_deleted(version, t);
    return !(gone && gone[pos >> 6] >> (pos & 63) & 1);
}
/* The key of `parent` that a reference names, with its columns in the key's order. */
FALLIBLE reference_key(const struct table *parent, const struct table_foreign *fk, u32 *out_key,
                       u32 order[32], struct error *err);
static inline const struct edition_entry *parent_of(const struct edition *edition, u32 own_oid,
                                                    const struct table_foreign *fk) {
    return edition_find_oid(edition, fk->ref_oid ? fk->ref_oid : own_oid);
}

/* reference.c */
/* A value of a column as one of a column it refers to, or the other way round; false: there is no
 * such value. */
bool reference_convert(struct type to, struct type from, union lit *io);
/* The bytes of the key that a reference means, from the values of its columns: those of `child`, or
 * of the parent itself (child NULL). Equal keys have equal bytes. false: no row can have it. */
bool reference_bytes(struct text *out, const struct table *parent, const struct table_foreign *fk,
                     const struct table *child, const union lit *values);
/* Keys that `fk` refers to of rows that `removed` shows and the parent has no more: bytes to
 * something that is not NULL. */
FALLIBLE gone_keys(struct arena *arena, struct table *parent, const struct table_foreign *fk,
                   const struct table_version *removed, struct table_version *now, struct map *out,
                   struct error *err);
/* Whether a live row refers to one of these keys. */
FALLIBLE find_referring(struct arena *arena, const struct table *parent, const struct table *child,
                        const struct table_foreign *fk, const struct table_version *rows,
                        const struct map *keys, struct error *err);
FALLIBLE still_referred(const struct table *parent, const struct table *child,
                        const struct table_foreign *fk, const struct shown_key *key,
                        struct error *err);
/* orphans.c: whether a join finds rows whose reference has no parent, as looking up each of them does. */
bool orphans_by_join(const struct table *child, const struct table_foreign *fk,
                     const struct table_version *rows, const struct table *parent);
FALLIBLE orphans_find(struct wf_connection *conn, const struct object *child,
                      const struct table_foreign *fk, struct table_version *rows,
                      const struct edition_entry *parent, bool *out_any,
                      struct shown_key *out_key); /* of one of them */
/* Binds the statement whose text `arg` is. */
wf_status bind_sql(void *arg, struct arena *arena, struct snapshot *snap, struct type *param_types,
                   struct statement *out, struct error *err);
/* cascade.c: what becomes of those who refer to rows that the table has no more, which it had in
 * `base`. */
FALLIBLE referrers_after(struct wf_connection *conn, u32 oid, struct table_version *base,
                         const struct row_pairs *pairs);

#endif

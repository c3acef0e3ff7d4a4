/* io.h: data in and out of files. */
#ifndef WF_IO_IO_H
#define WF_IO_IO_H

#include "base/stop.h"
#include "store/store.h"

struct csv_options {
    char delimiter;
    char quote; /* 0 = none */
    char escape;
    char comment; /* outside of quotes it begins what is no data, up to the line's end; 0 = none */
    b8 header;
    b8 trailing_delimiter;
    b8 null_padding;  /* columns that a line lacks are NULL */
    b8 ignore_errors; /* lines with errors are left out */
    /* As a file in FROM is read: blank lines of several columns are no rows, blanks around quotes
     * no part of a field, and a delimiter may end the line. */
    b8 lenient;
    i64 skip; /* lines before the header or the first record */
    const char *null_text;
    const char *const *null_more; /* further texts that mean NULL, up to a NULL; or NULL */
    i32 col_count;                /* 0 = all table columns in order */
    const u32 *cols;
    const b8 *force_not_null; /* by table column: the NULL text is a text; NULL = nowhere */
    const b8 *force_null;     /* in quotes, too, the NULL text is NULL */
    const b8 *guessed;        /* the type was found out: a value that it would change is an error */
    /* Columns the file does not fill, by table column: a value of the column's kind, or NULL. */
    const void *const *defaults;
    /* Likewise the values of a sequence: *out_first for the first row of `rows`, then steps. The
     * array may be NULL; entries that are 0 mean none. */
    const u32 *sequences;
    wf_status (*reserve)(void *arg, u32 col, i64 rows, i64 *out_first, i64 *out_step,
                         struct error *err);
    void *reserve_arg;
    /* Where the rows go: behind those of `base`, as a new version; NULL = the table's current
     * version, and published. Keys are not looked at when base is given. */
    struct table_version *base;
    struct table_version **out_version;
    i64 *out_ignored; /* lines left out because of errors; may be NULL */
    struct when when; /* the zone of timestamps that name none, and what "now" is */
};
struct load_progress { /* what a long load tells, and is told */
    _Atomic i64 bytes_done;
    i64 bytes_total;
    const struct stop *stop; /* whom it works for; NULL = nobody can stop it */
};
/* Whether the load is to end, and that as an error. NULL: never. */
bool load_progress_over(const struct load_progress *progress);
FALLIBLE load_progress_check(const struct load_progress *progress, struct error *err);

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD, PACKING_BY_NAME };

/* What a load works with. */
struct load_means {
    struct pool *pool;
    struct memory *mem;
    struct load_progress *progress; /* NULL = nobody asks */
};

struct input; /* input.h */
/* Loads delimited text into a table, all rows or none, in parallel. A bad line is an error
 * that names file, line (from 1) and column: ERR_BAD_COPY_FORMAT for shape, the value's own error
 * (22P02, 22003, 22007, 22021, 23502) for content. *out_rows = rows loaded. */
FALLIBLE csv_load(struct table *table, const struct input *in, const struct csv_options *options,
                  const struct load_means *means, i64 *out_rows, struct error *err);

/* --- looking at a file ----------------------------------------------------------------------- */

struct csv_given { /* what the user said; the rest is found out */
    struct csv_options options;
    b8 has_delimiter, has_quote, has_escape, has_header, has_comment, has_skip;
    b8 all_text;     /* every column is text */
    b8 all_cols;     /* `cols` are all columns there are */
    i64 sample_rows; /* to be looked at: 0 = as many as usual, -1 = all */
    /* Types of columns: of the name, or, where that is NULL, of the place. */
    const struct column_def *cols;
    i32 col_count;
    const char *const *names; /* of the first columns */
    i32 name_count;
};
struct csv_sniffed {
    struct csv_options options;
    char newline; /* what ends a line: '\n' or '\r' */
    u32 col_count;
    struct column_def *cols; /* in the arena, names too */
};
/* Finds out how the file is written and what columns it has, from its first megabyte or, where
 * sample_rows says so, from more: of an archive `in` holds other bytes then. The options found are
 * lenient, and guessed types are marked. */
FALLIBLE csv_sniff(struct arena *arena, struct input *in, const struct csv_given *given,
                   const struct load_progress *progress, struct csv_sniffed *out,
                   struct error *err);

/* --- a file as a provider of rows (store/scan.h) ------------------------------------------------
 */

/* Looks at the file; it is read when it is scanned. What can be read only once (a pipe, what is
 * held open) is read now and kept. */
struct csv_file;
FALLIBLE csv_file_open(struct memory *mem, const char *path, enum packing packing,
                       const struct csv_given *given, struct load_progress *progress,
                       struct csv_file **out, struct error *err);
void csv_file_close(struct csv_file *file);
const struct csv_sniffed *csv_file_sniffed(const struct csv_file *file);
/* Becomes the provider of a table with the columns found, which closes it. */
void csv_file_attach(struct csv_file *file, struct table *table);
/* All of its rows as a version of that table, whose tablets a new table can take over. */
FALLIBLE csv_file_load(struct table *table, struct pool *pool, struct load_progress *progress,
                       struct table_version **out, struct error *err);
/* Whether its rows come from a delimited file. */
bool csv_file_is(const struct table *table);
/* Lines that the last scan left out because of errors; the file's path in *out_path. */
i64 csv_file_ignored(const struct table *table, const char **out_path);

/* --- writing ---------------------------------------------------------------------------------- */

/* Appends one value and, unless it is the line's first, the delimiter before it; csv_put_end ends
 * the line. `quoted`: in quotes whatever it holds. ERR_BAD_COPY_FORMAT for what a format without
 * quotes cannot say. The text must be emptied now and then by whoever writes it out. */
struct csv_out {
    char *buf; /* room for more is the caller's care: csv_put_most of a value */
    i64 len;
};
i64 csv_put_most(i64 value_bytes); /* the most bytes a value of that length takes */
FALLIBLE csv_put(struct csv_out *out, const struct csv_options *options, bool first, bool is_null,
                 struct sv value, bool quoted, struct error *err);
void csv_put_end(struct csv_out *out, const struct csv_options *options);

#endif

/* io.h: data in and out of files. */
#ifndef WF_IO_IO_H
#define WF_IO_IO_H

#include "store/store.h"

struct csv_options {
    char delimiter;
    char quote; /* 0 = none */
    char escape;
    b8 header;
    b8 trailing_delimiter;
    const char *null_text;
    i32 col_count; /* 0 = all table columns in order */
    const u32 *cols;
};
struct load_progress { /* what a long load tells, and is told */
    _Atomic i64 bytes_done;
    i64 bytes_total;
    _Atomic i32 *cancel;
    i64 deadline_ns;
};
/* Whether the load has been cancelled or is past its deadline, and that as an error. NULL: never.
 */
bool load_progress_over(const struct load_progress *progress);
FALLIBLE load_progress_check(const struct load_progress *progress, struct error *err);

/* Loads a delimited text file into a table, all rows or none, in parallel. A bad line is an error
 * that names file, line (from 1) and column: ERR_BAD_COPY_FORMAT for shape, the value's own error
 * (22P02, 22003, 22007, 22021, 23502) for content. *out_rows = rows loaded. */
FALLIBLE csv_load(struct table *table, const char *path, const struct csv_options *options,
                  struct pool *pool, struct memory *mem, struct load_progress *progress,
                  i64 *out_rows, struct error *err);

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

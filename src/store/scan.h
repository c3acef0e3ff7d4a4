/* scan.h: what a FROM item reads when its rows are no tablets: a provider, and one scan of it.
 *
 * A table's rows lie in tablets, which a version lists. Everything else that FROM can name (a
 * delimited file; later other formats, database files, other processes) is a table with a provider
 * and without rows of its own: the binder takes its columns and its estimates, an execution opens
 * it with the columns wanted and takes its rows part by part. A part is plain columns; it lives
 * until its worker asks for the next, so that a source of any length takes the memory of a few
 * parts. Of the values nothing is known but their types and what the provider says. See decision 0023. */
#ifndef WF_STORE_SCAN_H
#define WF_STORE_SCAN_H

#include "store/store.h"

struct scan; /* the provider's own */
struct scan_provider;

struct scan_request {
    const b8 *cols; /* by column of the table: wanted */
    struct memory *mem;
    i32 worker_count; /* who asks for parts is one of these */
    i64 part_bytes;   /* of the source, about: 0 = as the provider likes */
};

struct scan_part {
    i64 number;    /* in the order of the rows, from 0 */
    i64 row_start; /* of its first row; they ascend, and may leave some out */
    i64 rows;
    i64 bytes;                    /* of the source */
    const struct input_col *cols; /* by column; those not wanted are not to be read. Text has its
                                   * prefix, NULL rows hold 0 or the empty text */
    b8 end;                       /* there are no more: this is none */
    b8 bad; /* what stands behind these rows cannot be read: why is in `err` */
    struct error err;
};

/* Rows in the order of all columns, none twice, none with a NULL, as a TrieArray whose arrays are all in reach. */
struct scan_level {
    i64 base, count; /* values are distances from base */
    const void *values, *starts;
    u8 value_bytes, start_bytes; /* 4 or 8 */
};
struct scan_levels {
    i64 rows;
    u32 count; /* of columns */
    const struct scan_level *levels;
    b8 up;     /* of two columns: the first is less in every row */
    u64 pairs; /* of two columns: rows that agree in the first, by twos */
    /* Whether all of it is as it was written; whoever uses the arrays asks first. */
    FALLIBLE (*check)(struct scan_provider *provider, struct error *err);
};

struct scan_provider {
    i64 rows;      /* estimate */
    i64 rows_most; /* proven: there are no more */
    const struct column_stats *stats; /* by column: proven, as of a version; NULL = types are all that is known */
    const struct scan_levels *levels; /* NULL = there are none to be had */
    FALLIBLE(*open)
    (struct scan_provider *provider, const struct scan_request *request, struct scan **out,
     struct error *err);
    /* The next part nobody has taken, for a worker that is done with its last one. Safe from as
     * many threads as there are workers. Of several bad parts the one of the least number counts;
     * rows before it are all there. An error is one of the scan: memory, cancellation, the file. */
    FALLIBLE (*next)(struct scan *scan, i32 worker, struct scan_part *out, struct error *err);
    void (*close)(struct scan *scan);
    void (*release)(struct scan_provider *provider); /* with its table */
};

#endif

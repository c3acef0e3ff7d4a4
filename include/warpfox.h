/* warpfox.h: the public interface of libwarpfox, and its contract.
 *
 * Objects. A database holds tables and worker threads. A connection runs one statement at a time
 * and carries settings and the last error. A statement is prepared once and executed often. A
 * result holds the rows of one statement, read batch by batch, column by column.
 *
 * Ownership. Every handle made by a call is closed by the call named beside it; closing NULL does
 * nothing. A database lives until it and everything made from it is closed, in any order: a result
 * may be read after its connection and its database are closed. Text and pointers handed out belong
 * to the handle they came from and live as long as it does, unless said otherwise.
 *
 * Errors. Calls that can fail return a wf_status; 0 is success. On failure out parameters are set
 * to NULL or left alone, the reason is in wf_connection_error(), and the connection can be used at
 * once. A failed statement changes nothing.
 *
 * Rows come as they are read. A statement whose rows need no sorting or grouping at the end is
 * computed a slice at a time, while its result is read: wf_query returns with the first rows, and
 * an open result holds a snapshot of its tables and the rows of one slice, but no thread. It does
 * not mind what its connection does meanwhile: other statements, the end of its transaction,
 * wf_disconnect. An error that comes up while rows are read is the result's, not the connection's
 * (wf_result_error); rows read before it are then void. Closing a result early costs nothing.
 *
 * Threads. A wf_database may be used by any number of threads. A connection, with its statements,
 * belongs to one thread at a time; a second one that enters meanwhile is told WF_MISUSE. wf_cancel
 * may be called from any thread and from a signal handler. A result belongs to one thread at a
 * time; different results of one connection are independent. */
#ifndef WARPFOX_H
#define WARPFOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WF_API __attribute__((visibility("default")))
#else
#define WF_API
#endif

#define WF_VERSION_TEXT "0.1.0"

typedef struct wf_database wf_database;
typedef struct wf_connection wf_connection;
typedef struct wf_statement wf_statement;
typedef struct wf_result wf_result;
typedef struct wf_batch wf_batch;

/* What happened, in one of few kinds; the SQLSTATE in wf_error says it exactly. */
typedef int wf_status;
enum {
    WF_OK = 0,
    WF_ERROR = 1,  /* the statement or its data is wrong, or a file or device failed */
    WF_MISUSE = 2, /* a NULL handle, a call in the wrong order, a connection used by two threads */
    WF_NO_MEMORY = 3, /* the memory budget refused; SQLSTATE 53200 */
    WF_CANCELLED = 4  /* wf_cancel, or statement_timeout; SQLSTATE 57014 */
};

/* An error, by value. */
typedef struct wf_error {
    wf_status status;
    char sqlstate[6]; /* "00000" when there is none */
    char message[600];
    char hint[300];   /* what to do about it; may be empty */
    int64_t position; /* byte offset in the text that was run, -1 when unknown */
    int64_t line;     /* of the position, from 1; 0 when unknown */
    int64_t column;   /* in characters, from 1; 0 when unknown */
} wf_error;

/* Writes the error as a person wants to read it:
 *     ERROR 42703: column "foo" does not exist
 *     LINE 1: select foo from t
 *                    ^
 *     HINT:  Perhaps you meant "food".
 * `sql` is the text that was run; NULL leaves the LINE out. Ends without a newline. Writes at most
 * `cap` bytes, NUL included, and returns the length of the whole text. */
WF_API size_t wf_error_text(const wf_error *error, const char *sql, char *buf, size_t cap);

WF_API const char *wf_version(void); /* static text */

/* --------------------------------------------------------------------------------------------- */
/* Databases and connections */

/* A setting by name, as in SET and docs/settings.md; arrays end with a NULL name. */
typedef struct wf_option {
    const char *name;
    const char *value;
} wf_option;

/* Opens a database: in memory when `path` is NULL, else the one in that file, made when it is not there
 * (docs/file-format.md; a log lies beside it while it is in use). A commit that has returned survives a
 * crash. One process may change a file (55006 otherwise); with the option readonly = on any number may
 * read it. XX001: the file is damaged; 42809: it is another kind of file; nothing is written then.
 * `options` may be NULL. `out_error` may be NULL. No GPU is touched until a statement needs one.
 * Closed by wf_close, which saves what is in the log, or by wf_leave. */
WF_API wf_status wf_open(const char *path, const wf_option *options, wf_database **out_db,
                         wf_error *out_error);
WF_API void wf_close(wf_database *db);

/* For a process that is about to end: saves what wf_close saves and lets go of the file, but leaves memory, threads,
 * and the card to the operating system, which takes less time than giving them back. Background work is not waited
 * for. Nothing of the library may be called afterwards; end the process by _Exit, so that no library's own
 * cleaning up meets threads that still run. Connections and results have to be closed before. */
WF_API void wf_leave(wf_database *db);
/* Bytes reserved against the memory budget now. */
WF_API int64_t wf_memory_used(const wf_database *db);

/* Closed by wf_disconnect. */
WF_API wf_status wf_connect(wf_database *db, wf_connection **out_conn);
WF_API void wf_disconnect(wf_connection *conn);

/* The error of the last failed call on this connection or one of its statements; its status is
 * WF_OK when the last call succeeded. Never NULL for a valid connection; overwritten by the next
 * call. */
WF_API const wf_error *wf_connection_error(const wf_connection *conn);

/* A text in LogiQL may have several mistakes: number 0, 1, … of those behind the one above, in the
 * order of the text; NULL when there are no more. They live until the next call. */
WF_API const wf_error *wf_connection_further_error(const wf_connection *conn, int32_t number);

/* Whether the connection is in a transaction that BEGIN opened, and whether an error has ended it but
 * for its ROLLBACK. To be called by the thread the connection belongs to, between statements. */
typedef enum wf_transaction {
    WF_TRANSACTION_NONE,
    WF_TRANSACTION_OPEN,
    WF_TRANSACTION_FAILED
} wf_transaction;
WF_API wf_transaction wf_transaction_state(const wf_connection *conn);

/* SET name = value, for this connection. */
WF_API wf_status wf_set(wf_connection *conn, const char *name, const char *value);

/* Asks the running statement to stop: within 100 ms it fails with 57014. So do results of the
 * connection that are open and not computed to their end, as soon as more of their rows are asked
 * for. Otherwise it does nothing. Callable from any thread and from signal handlers, as long as the
 * connection is open. */
WF_API void wf_cancel(wf_connection *conn);

/* Progress of a running statement: the share done in [0, 1], or -1 when it is not known, and the
 * time since it started. Called about every interval_ms on a thread of the library, never after the
 * running call has returned; it must not call the library except wf_cancel. A NULL callback ends
 * the reports. */
typedef void (*wf_progress)(void *arg, double fraction, int64_t elapsed_ns);
WF_API wf_status wf_set_progress(wf_connection *conn, wf_progress report, void *arg,
                                 int32_t interval_ms);

/* Messages that are no errors: "NOTICE" or "WARNING" and a text, which lives only during the call.
 * Called by the thread that runs the statement; it must not call the library. A NULL callback, the
 * default, drops them. */
typedef void (*wf_notice)(void *arg, const char *severity, const char *text);
WF_API wf_status wf_set_notice(wf_connection *conn, wf_notice report, void *arg);

/* --------------------------------------------------------------------------------------------- */
/* Running statements */

/* Runs every statement of `sql` in order, stopping at the first error, and returns the result of
 * the last one (NULL for an empty text). A syntax error anywhere runs nothing. Rows nobody receives
 * (of earlier statements, or all when `out_result` is NULL) are computed to their end and dropped.
 * statement_timeout counts the time spent computing, in this call and while rows are read. Closed
 * by wf_result_close. */
WF_API wf_status wf_query(wf_connection *conn, const char *sql, wf_result **out_result);

/* The same, handing over the result of each statement as it comes; the callee owns it. A return
 * value other than 0 stops the script, which then returns WF_OK. The callback must not use the
 * connection. */
typedef int (*wf_each_result)(void *arg, wf_result *result);
WF_API wf_status wf_query_each(wf_connection *conn, const char *sql, wf_each_result each,
                               void *arg);

/* Types of columns and parameters. The C type of the values is named beside each. */
typedef enum wf_type {
    WF_TYPE_UNKNOWN,
    WF_TYPE_BOOLEAN,  /* uint8_t, 0 or 1 */
    WF_TYPE_SMALLINT, /* int32_t */
    WF_TYPE_INTEGER,  /* int32_t */
    WF_TYPE_BIGINT,   /* int64_t */
    WF_TYPE_DECIMAL,  /* value times 10^scale: int64_t up to precision 18, wf_int128 above */
    WF_TYPE_REAL,     /* float */
    WF_TYPE_DOUBLE,   /* double */
    WF_TYPE_DATE,     /* int32_t: days since 1970-01-01 */
    WF_TYPE_TEXT,     /* wf_text: UTF-8 */
    WF_TYPE_CHAR,     /* wf_text: UTF-8, filled up with blanks */
    WF_TYPE_TIMESTAMP,   /* int64_t: microseconds since 1970-01-01 00:00; least and greatest are infinities */
    WF_TYPE_TIMESTAMPTZ, /* the same, UTC */
    WF_TYPE_TIME,        /* int64_t: microseconds since midnight */
    WF_TYPE_INTERVAL,    /* wf_int128, opaque: read it as text or through Arrow */
    WF_TYPE_BLOB,        /* wf_text: bytes */
    WF_TYPE_UUID         /* wf_int128: its bits as a big-endian number, the highest one inverted */
} wf_type;

typedef struct wf_type_info {
    wf_type type;
    int32_t precision; /* decimal, else 0 */
    int32_t scale;     /* decimal, else 0 */
    int32_t oid;       /* PostgreSQL's number for the type */
    char text[32];     /* "decimal(12,2)" */
} wf_type_info;

typedef struct wf_int128 { /* two's complement, as the machine's 128-bit integer lies in memory */
    uint64_t low;
    int64_t high;
} wf_int128;

typedef struct wf_text { /* not NUL-terminated */
    const char *ptr;
    int64_t len;
} wf_text;

/* Prepares one statement with parameters $1, $2, …, whose types follow from their use. Compiled for
 * the data it finds; when the data outgrows what was assumed, or a definition or setting changes,
 * the next execution compiles again by itself. Closed by wf_statement_close, before or after its
 * connection. */
WF_API wf_status wf_prepare(wf_connection *conn, const char *sql, wf_statement **out_statement);
WF_API void wf_statement_close(wf_statement *statement);
WF_API int32_t wf_statement_param_count(const wf_statement *statement);
/* WF_MISUSE when there is no such parameter. `param` counts from 1. */
WF_API wf_status wf_statement_param_type(const wf_statement *statement, int32_t param,
                                         wf_type_info *out);
/* How often the statement was compiled so far. */
WF_API int64_t wf_statement_compile_count(const wf_statement *statement);

/* Gives parameter `param` (from 1) a value, converted to the parameter's type when the statement is
 * executed (22003 or 22P02 then if it does not fit). Values stay until they are replaced;
 * parameters never bound are NULL. Text is copied; a negative length means NUL-terminated. */
WF_API wf_status wf_bind_null(wf_statement *statement, int32_t param);
WF_API wf_status wf_bind_bool(wf_statement *statement, int32_t param, int value);
WF_API wf_status wf_bind_int64(wf_statement *statement, int32_t param, int64_t value);
WF_API wf_status wf_bind_double(wf_statement *statement, int32_t param, double value);
WF_API wf_status wf_bind_decimal(wf_statement *statement, int32_t param, wf_int128 value,
                                 int32_t scale);
WF_API wf_status wf_bind_date(wf_statement *statement, int32_t param, int32_t days_since_1970);
WF_API wf_status wf_bind_text(wf_statement *statement, int32_t param, const char *text,
                              int64_t len);
/* Back to all NULL. */
WF_API wf_status wf_bind_reset(wf_statement *statement);

/* Executes with the current values. Any number of results of one statement may be open. */
WF_API wf_status wf_execute(wf_statement *statement, wf_result **out_result);

/* Appends rows from arrays to a table, all or none: the fastest way in. Columns are given in the
 * table's order, values as listed at wf_type; `nulls` may be NULL. Nothing is kept of the arrays.
 */
typedef struct wf_input {
    const void *values;   /* uint8_t, int32_t, int64_t, wf_int128, float, double or wf_text */
    const uint8_t *nulls; /* 1 = NULL; NULL = none */
} wf_input;
WF_API wf_status wf_append(wf_connection *conn, const char *table, int64_t rows,
                           int32_t column_count, const wf_input *columns);

/* --------------------------------------------------------------------------------------------- */
/* Results */

WF_API void wf_result_close(wf_result *result);
/* 0: the statement returns no rows, or rows without columns (SELECT FROM t), which
 * wf_result_row_count counts. */
WF_API int32_t wf_result_column_count(const wf_result *result);
WF_API const char *wf_result_name(const wf_result *result, int32_t column);
/* WF_MISUSE when there is no such column. */
WF_API wf_status wf_result_type(const wf_result *result, int32_t column, wf_type_info *out);
/* -1 until the last row has been computed; small results know it at once. */
WF_API int64_t wf_result_row_count(const wf_result *result);
WF_API int64_t wf_result_rows_affected(const wf_result *result); /* INSERT, COPY; else 0 */
WF_API const char *
wf_result_tag(const wf_result *result); /* "SELECT 3" ("SELECT" until the number is known), … */
WF_API const char *
wf_result_devices(const wf_result *result); /* where it ran: "cpu", "cpu, gpu woven" */
WF_API int64_t
wf_result_time_ns(const wf_result *result); /* from text to rows, as far as they are computed */
/* A number about the execution, summed over its steps: "device_ns", "bytes_read", "bytes_moved",
 * "launches", … (src/defs/metric.def); -1 for an unknown name. */
WF_API int64_t wf_result_metric(const wf_result *result, const char *name);

/* The next rows, or *out_batch = NULL at the end. The batch and every pointer taken from it stay
 * valid until the result is closed or moves on. Computes rows when those at hand are read: it may
 * take time and fail like a statement; the reason is in wf_result_error. */
WF_API wf_status wf_result_next_batch(wf_result *result, const wf_batch **out_batch);
/* Why reading ended early; its status is WF_OK when it did not. Lives as long as the result. */
WF_API const wf_error *wf_result_error(const wf_result *result);
/* The next batch starts at this row (0 = the first). Forwards to any row; backwards only to rows at
 * hand, which is all of them when the row count was known before anything was read. WF_MISUSE when
 * the row is gone or beyond the end. */
WF_API wf_status wf_result_seek(wf_result *result, int64_t row);

WF_API int64_t wf_batch_rows(const wf_batch *batch);
/* One flag a row, 1 = NULL; NULL when the column holds none in this batch. */
WF_API const uint8_t *wf_batch_nulls(const wf_batch *batch, int32_t column);
WF_API int wf_batch_is_null(const wf_batch *batch, int32_t column, int64_t row);
/* The column's values, wf_batch_rows of them; NULL when it is of another C type (see wf_type).
 * Values of NULL rows are unspecified. */
WF_API const uint8_t *wf_batch_bool(const wf_batch *batch, int32_t column);
WF_API const int32_t *wf_batch_int32(const wf_batch *batch, int32_t column);
WF_API const int64_t *wf_batch_int64(const wf_batch *batch, int32_t column);
WF_API const wf_int128 *wf_batch_int128(const wf_batch *batch, int32_t column);
WF_API const float *wf_batch_float(const wf_batch *batch, int32_t column);
WF_API const double *wf_batch_double(const wf_batch *batch, int32_t column);
/* One text value; ptr is NULL for NULL and for columns of other types. */
WF_API wf_text wf_batch_text(const wf_batch *batch, int32_t column, int64_t row);
/* Any value as the shell prints it, NUL-terminated within `cap`; nothing for NULL. Returns the
 * length of the whole text, which may exceed what was written. */
WF_API size_t wf_value_text(const wf_batch *batch, int32_t column, int64_t row, char *buf,
                            size_t cap);

/* The Arrow C data interface, as Apache Arrow publishes it. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* The rows of the result not read yet, as an Arrow stream of struct arrays. Result and stream read
 * the same rows: each goes to whoever asks first, and both belong to one thread at a time. integer,
 * bigint, real, double precision and date are shared without copying; the others are converted
 * batch by batch (smallint to int16, decimal to decimal128, boolean to bits, text to utf8). The
 * stream and each array keep their rows alive by themselves: the result may be closed first.
 * Released by its release callback. */
WF_API wf_status wf_result_arrow_stream(wf_result *result, struct ArrowArrayStream *out);

/* --------------------------------------------------------------------------------------------- */
/* For shells and tools */

/* Finds the end of the first statement in `text`: returns the number of bytes up to and including
 * its `;`, or 0 when no `;` ends it (quotes, dollar quotes and comments are understood). *out_blank
 * tells whether those bytes (all of them when 0 is returned) hold nothing but blanks, comments and
 * the `;`. */
WF_API size_t wf_scan_statement(const char *text, size_t len, int *out_blank);
/* The same of LogiQL, whose clauses end with a point. */
WF_API size_t wf_scan_clause(const char *text, size_t len, int *out_blank);

/* Calls `each` for every table, or every column of a table, in order; stops when it returns
 * nonzero. The texts live only during the call. Tables that the search path does not lead to have
 * their schema before them: "other.t". An open transaction's own tables are among them. */
typedef int (*wf_each_table)(void *arg, const char *name);
typedef int (*wf_each_column)(void *arg, const char *name, const char *type_text, int not_null);
WF_API wf_status wf_tables(wf_connection *conn, wf_each_table each, void *arg);
WF_API wf_status wf_columns(wf_connection *conn, const char *table, wf_each_column each, void *arg);
/* The statement that would make a table, view, sequence or index. `name` may have a schema before a
 * dot; one that is not there as it is written is looked for in lower case. Freed by wf_free. */
WF_API wf_status wf_describe(wf_connection *conn, const char *name, char **out_text);
/* SQL keyword number i, or NULL at the end. Static text. */
WF_API const char *wf_keyword(int32_t i);

/* How a text can go on at the cursor: tables where one is expected, columns of the tables in scope,
 * functions, keywords in the case of what is typed, settings and their values, types. Calls `each` for
 * every way, until it returns nonzero; the text lives only during the call, and replaces what stands
 * between *out_start and the cursor. Of WF_COMPLETION_FILE the text is what stands there of a file's
 * name, which the caller may look for. `text` may hold several statements, and need not end with the
 * cursor. In a comment or a literal there is no way. */
typedef enum wf_completion {
    WF_COMPLETION_KEYWORD,
    WF_COMPLETION_TABLE,
    WF_COMPLETION_COLUMN,
    WF_COMPLETION_FUNCTION,
    WF_COMPLETION_TYPE,
    WF_COMPLETION_SCHEMA,
    WF_COMPLETION_SETTING,
    WF_COMPLETION_VALUE,
    WF_COMPLETION_FILE
} wf_completion;
typedef int (*wf_each_completion)(void *arg, const char *text, wf_completion kind);
WF_API wf_status wf_complete(wf_connection *conn, const char *text, size_t len, size_t cursor,
                             wf_each_completion each, void *arg, size_t *out_start);

/* A function of SQL, in static texts; a name comes once for each of its forms. */
typedef struct wf_function_info {
    const char *name;
    const char *kind; /* "function", "aggregate", "window function", "table function" */
    const char *synopsis; /* may be empty */
} wf_function_info;
/* Function number i; WF_MISUSE at the end. */
WF_API wf_status wf_function(int32_t i, wf_function_info *out);

/* A report on the processors and GPUs found, their measured bandwidth, and what cannot be used and
 * why. Freed by wf_free; NULL when memory is short. */
WF_API char *wf_devices(wf_database *db);
WF_API void wf_free(void *text);

/* A time as people read it, in its largest unit: "1.234 ms", "41.351 s", "2 min 03.4 s",
 * "1 h 02 min". Writes at most `cap` bytes, NUL included, and returns the length of the text. */
WF_API size_t wf_duration_text(int64_t ns, char *buf, size_t cap);

/* Columns a terminal needs for the text: 2 for East Asian wide characters, 0 for combining ones. */
WF_API int64_t wf_display_width(const char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif

/* api_int.h: what the files behind include/warpfox.h share.
 *
 * Lifetimes. A database is counted: its handle, every connection, statement and rowset hold it. A
 * script (text and syntax trees) and a compiled statement (plan and program) are immutable and
 * counted; a rowset (one execution with its snapshot and its rows) is counted by the result handle,
 * Arrow streams and arrays. So everything may be closed in any order. */
#ifndef WF_API_API_INT_H
#define WF_API_API_INT_H

#include "warpfox.h"

#include "base/stop.h"
#include "base/thread.h"
#include "catalog/catalog.h"
#include "defs/metric.def"
#include "defs/settings.h"
#include "defs/value.h"
#include "plan/plan.h"
#include "run/run.h"
#include "sql/sql.h"

struct wf_database {
    _Atomic i32 refs;
    struct memory mem;
    struct settings defaults; /* what a new connection starts with */
    struct pool *pool;
    struct catalog *catalog;
    struct device *cpu;
    _Atomic i32 tx_count; /* connections whose transaction has taken its snapshot */
    struct mutex lock;    /* guards what follows */
    struct device *gpus[DEVICES_MOST - 1];
    u32 gpu_count;
    b8 gpu_tried;
    char no_gpu[300];
};
struct wf_database *database_retain(struct wf_database *db);
void database_release(struct wf_database *db);
/* The devices a statement over `rows` source rows may use. Opens the GPUs on first need: when the
 * session asks for it, or when auto meets a statement large enough to pay for the start. Never
 * fails: a missing GPU is a reason in no_gpu, and the runtime decides what that means. `explains`:
 * the reason will be read, and is worth a look for a card. */
void database_devices(struct wf_database *db, const struct settings *settings, i64 rows,
                      bool explains, struct run_devices *out);
/* Those that are open already. */
void database_open_devices(struct wf_database *db, struct run_devices *out);
/* The first GPU, whatever the settings; NULL with the reason in db->no_gpu. */
struct device *database_gpu(struct wf_database *db);

/* Reports progress of the connection's running statement from a thread of its own. */
struct watch {
    struct mutex lock;
    struct cond wake;
    struct thread *thread;
    wf_progress report;
    void *arg;
    i64 interval_ns;
    i64 started_ns; /* 0: nothing runs */
    f64 most;       /* reported of the statement so far */
    struct exec *exec;
    struct load_progress *load;
    b8 quit;
};
void watch_init(struct watch *watch);
void watch_fini(struct watch *watch);
void watch_begin(struct watch *watch);
void watch_exec(struct watch *watch, struct exec *exec); /* NULL before the execution ends */
/* Rows of the answer have been taken, while watch_exec names the execution that made them. */
void watch_rows(struct watch *watch, i64 rows);
void watch_load(struct watch *watch, struct load_progress *load);
void watch_end(struct watch *watch);
/* For rows computed while they are read, outside of any statement: does nothing while one runs. */
void watch_read_begin(struct watch *watch, struct exec *exec, i64 started_ns);
void watch_read_end(struct watch *watch, struct exec *exec);

/* A transaction: the one BEGIN opened, or the one of the statement at hand. */
struct savepoint;
struct rowset;
/* SET CONSTRAINTS, the latest first: of one reference, or of all (oid 0). */
struct set_constraints {
    struct set_constraints *next;
    u32 oid;
    b8 deferred;
};
/* What SET changes. */
struct session_state {
    struct settings settings;
    char search_path[400];
};
struct tx {
    b8 open;   /* by BEGIN */
    b8 failed; /* until ROLLBACK */
    b8 read_only;
    i32 depth;                    /* statements that run: a CALL may run others */
    i64 start_us;                 /* what now() says */
    struct edition *base, *mine;  /* NULL until something is read */
    struct savepoint *savepoints; /* newest first */
    struct set_constraints *deferrals;
    /* Since BEGIN: what ROLLBACK goes back to, and what COMMIT leaves: without SET LOCAL. */
    struct session_state before, after;
};
/* Where a statement began. */
struct tx_mark {
    struct edition *edition;
};

enum { PREPARED_LISTS = 256, NOTED_LISTS = 64 };
struct noted_value {
    struct noted_value *next;
    u32 oid; /* of the sequence */
    i64 value;
};
struct wf_connection {
    struct wf_database *db;
    struct settings settings;
    struct tx tx;
    char search_path[400];
    u32 temp_schema; /* OID of the schema of temporary objects; 0 = none yet */
    wf_notice notice;
    void *notice_arg;
    struct named_statement *prepared[PREPARED_LISTS]; /* by PREPARE; lists by the hash of a name */
    struct texts *texts;                              /* statements met again; NULL = none yet */
    struct noted_value *values[NOTED_LISTS]; /* what currval says; lists by the sequence's OID */
    struct noted_value *last_value;          /* lastval's: of the latest nextval */
    struct error err;
    wf_error last;
    _Atomic i32 cancel;       /* the running statement is to stop */
    i64 deadline_ns;          /* when it must have ended; 0 = never */
    i64 statement_us;         /* when it came */
    struct stop stop;         /* both, for whoever works for the statement */
    const struct stop *outer; /* whom the calling thread worked for before */
    _Atomic i32 cancel_count; /* how often wf_cancel was called: open results compare */
    _Atomic i32 busy;
    _Atomic i32 refs; /* the handle, its statements, and results not computed to their end */
    struct watch watch;
};
void connection_release(struct wf_connection *conn);
/* Every public call on a connection lies between these. enter: WF_MISUSE when another thread is
 * inside. leave: turns the error slot into the public error (`text`, for its line and column, may
 * be NULL) and returns the public status. */
wf_status connection_enter(struct wf_connection *conn);
wf_status connection_leave(struct wf_connection *conn, wf_status internal, struct sv text);
/* Tells the client something that is no error. */
void notice(struct wf_connection *conn, const char *severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* transaction.c. A statement lies between enter and leave, which commits unless BEGIN was there
 * before, or undoes what a failed one did. */
FALLIBLE tx_enter(struct wf_connection *conn, struct tx_mark *mark);
FALLIBLE tx_leave(struct wf_connection *conn, struct tx_mark *mark, wf_status status);
void tx_undo(struct wf_connection *conn, const struct tx_mark *mark);
void tx_close(struct wf_connection *conn); /* rolls back */
/* Makes the edits part of the transaction. */
FALLIBLE tx_apply(struct wf_connection *conn, const struct edit *edits, i64 count);
FALLIBLE tx_set_version(struct wf_connection *conn, const struct table *table,
                        struct table_version *version);
bool tx_allows(const struct wf_connection *conn, const struct statement *st);
FALLIBLE tx_refuse(struct wf_connection *conn); /* 25P02 */
/* An error ends an open transaction, also one that comes before a statement runs: of syntax. */
void tx_fail(struct wf_connection *conn, wf_status status);
/* What the connection's next statement reads. */
void connection_snapshot(struct wf_connection *conn, struct snapshot *snap);

/* What an UPDATE did: the i-th row that is new was row old_rows[i] of the base. Rows that are new
 * behind those are inserted ones. */
struct row_pairs {
    i64 count;
    const i64 *old_rows;
};
/* compact.c: tables with much that is deleted, found at a commit and written anew after it. */
struct to_compact {
    i32 count;
    u32 oids[8];
};
void compact_note(const struct edition *base, const struct edition *mine, struct to_compact *out);
void compact_tables(struct wf_connection *conn, const struct to_compact *what);

/* constraint.c: the table's rows are no more those of base in the connection's transaction: looks
 * at CHECK and REFERENCES, both ways, and does what ON DELETE says, or ON UPDATE when there are
 * pairs. */
FALLIBLE constraints_after(struct wf_connection *conn, struct table *table,
                           struct table_version *base, const struct row_pairs *pairs);
/* Only CHECK and REFERENCES of rows that the table has and `base` had not. */
FALLIBLE constraints_of_new(struct wf_connection *conn, u32 oid, struct table *table,
                            struct table_version *base);
/* DEFERRABLE references from where the transaction began to what it is; `only` one, or all (0). */
FALLIBLE constraints_deferred(struct wf_connection *conn, u32 only);
FALLIBLE run_set_constraints(struct wf_connection *conn, struct rowset *rows);
/* reference.c: a column's DEFAULT, computed now; text is the arena's. */
FALLIBLE default_value(struct wf_connection *conn, struct arena *arena, const struct table *child,
                       u32 col, union lit *out, b8 *out_null);
bool reference_is_deferred(const struct wf_connection *conn, const struct table_foreign *fk);
bool key_is_deferred(const struct wf_connection *conn, const struct table_key *key);
/* commit_check: the same for what others have committed meanwhile. */
wf_status constraints_recheck(void *conn, const struct edition *base, const struct edition *mine,
                              const struct edition *merged, struct error *err);

/* A statement starts: its time counts from here. */
void connection_start(struct wf_connection *conn);
/* ERR_CANCELLED when wf_cancel was called or the statement's time is over. */
FALLIBLE connection_check(struct wf_connection *conn);
wf_status public_status(wf_status internal);
void public_error(wf_error *out, const struct error *err, struct sv text);

/* The text of a script and its statements. */
struct script {
    _Atomic i32 refs;
    struct wf_database *db;
    struct arena arena;
    struct sv text;
    struct parsed_list list;
    i64 parse_ns;
};
FALLIBLE script_new(struct wf_connection *conn, const char *text, struct script **out);
struct script *script_retain(struct script *script);
void script_release(struct script *script);

/* A statement bound to names, optimised and lowered; immutable. */
struct compiled {
    _Atomic i32 refs;
    struct wf_database *db;
    struct script *script;
    struct arena arena;
    struct settings settings;
    u64 catalog_version; /* definitions it was bound to */
    const char *path;    /* likewise the search path */
    i32 param_count;
    struct type *param_types;
    b8 *param_nulls; /* compiled for NULL there */
    struct statement stmt;
    struct plan *plan;       /* of stmt, or of the statement it explains; NULL when there is none */
    struct program *program; /* NULL when there is no plan */
};
/* `nulls` may be NULL (none), `types` too (unknown). The snapshot gains the tables the statement
 * names. */
FALLIBLE compile(struct wf_connection *conn, struct script *script, const struct parsed *parsed,
                 struct snapshot *snap, i32 param_count, const struct type *types, const b8 *nulls,
                 struct compiled **out);
/* Statements that the system makes by itself: binds by `bind`, which gets `arg`. */
typedef wf_status (*bind_fn)(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err);
FALLIBLE compile_with(struct wf_connection *conn, struct script *script, struct sv text,
                      bind_fn bind, void *arg, struct snapshot *snap, i32 param_count,
                      const struct type *types, const b8 *nulls, struct compiled **out);
/* Whether it still holds: same definitions, same settings, same parameters NULL. */
bool compiled_fits(const struct compiled *compiled, const struct wf_connection *conn,
                   const struct snapshot *snap, const b8 *nulls);
/* Runs what recurses over the plan of a statement of this text, on a stack as deep as that takes.
 */
FALLIBLE run_deep(struct wf_connection *conn, struct sv text, wf_status (*run)(void *arg),
                  void *arg);
struct compiled *compiled_retain(struct compiled *compiled);
void compiled_release(struct compiled *compiled);

/* A parameter's value, as bound: one of few forms. */
enum param_form { PARAM_NULL, PARAM_BOOL, PARAM_EXACT, PARAM_DOUBLE, PARAM_DATE, PARAM_TEXT };
struct param {
    u8 form;         /* enum param_form */
    i32 scale;       /* EXACT: value times 10^scale */
    union lit value; /* b8, i128, f64, i32 or str */
    char *text_copy; /* TEXT: owned by the statement, text_cap bytes */
    i64 text_cap;
};
/* Converts to `type`, as held in `kind`. Strings it makes live in `arena`. */
FALLIBLE param_convert(struct arena *arena, const struct param *param, i32 number, struct type type,
                       enum kind kind, struct when when, union lit *out, struct error *err);

#define X(A, name, how, text) METRIC_##name,
enum metric { WF_METRICS(X, ) METRIC_COUNT };
#undef X

/* One execution and its rows. */
struct rowset_col {
    const char *name;
    struct type type;
    struct dict *dict; /* text held as codes of this dictionary; NULL when views */
};
struct rowset {
    _Atomic i32 refs;
    struct wf_database *db;
    struct wf_connection *conn; /* while there are rows to compute; else NULL */
    struct memory mem;
    struct arena arena;
    struct snapshot snap;
    struct settings settings;
    struct compiled *compiled;
    struct exec exec;
    b8 exec_is_open;
    b8 explains;              /* what it did is shown, not what it gave */
    b8 took_effect;           /* tables or settings changed: from here on nothing may fail */
    struct wf_result *result; /* made beforehand, until it is handed out */
    struct rowset *instead;   /* INSERT … RETURNING: the rows to hand out */
    struct error err;         /* exec.err once the statement has ended */
    u32 col_count;
    struct rowset_col *cols;
    struct answer answer; /* the rows at hand: all, or a slice */
    i64 answer_first;     /* rows before them, gone */
    b8 more;              /* there may be rows after them */
    i64 next_row;         /* where reading goes on, counted from the first row of all */
    i64 slice;            /* hints where next_row lies within the answer */
    i64 slice_start;
    wf_error failure; /* why reading ended early; WF_OK while it has not */
    const char *tag;
    char tag_text[40];
    i64 rows_affected;
    i64 ns;
    const char *devices;
    i64 metrics[METRIC_COUNT]; /* all steps together */
    i64 compile_count;         /* how often the statement was compiled for this execution */
};
FALLIBLE rowset_new(struct wf_connection *conn, struct rowset **out);
struct rowset *rowset_retain(struct rowset *rows);
void rowset_release(struct rowset *rows);
/* Makes the rows `count` × `col_count` texts (row-major; a NULL pointer is NULL) under these names.
 */
void rowset_set_texts(struct rowset *rows, i32 col_count, const char *const *names, i64 count,
                      const struct sv *values);

/* Runs one statement from start to rows; `params` has the statement's parameter count or is NULL.
 * `cache` may point to a compiled statement to use and renew, or be NULL. */
struct run_request {
    struct script *script;
    const struct parsed *parsed;
    i32 param_count;
    const struct param *params;
    const struct type *types; /* that PREPARE gave them; NULL = none */
    struct compiled **cache;
    i64 *compile_count;
    u32 explain; /* EXPLAIN EXECUTE: what is shown; 0 = the statement runs */
};
FALLIBLE statement_run(struct wf_connection *conn, const struct run_request *request,
                       struct rowset **out);

/* texts.c: what wf_query keeps of statements it meets again. */
struct kept_text;
/* What is kept of this text, or NULL. */
struct kept_text *texts_find(struct wf_connection *conn, const char *sql);
/* A place for a script that was met before; NULL when there is none for it. */
struct kept_text *texts_keep(struct wf_connection *conn, struct script *script);
struct script *texts_script(struct kept_text *kept); /* one reference more */
/* The program is taken from the place while it fits, and left there. */
void texts_request(struct kept_text *kept, struct run_request *request);
/* After the statement has run: the place is given up where keeping makes no sense. */
void texts_settle(struct wf_connection *conn, struct kept_text *kept);
void texts_close(struct wf_connection *conn);

/* Stages of it that EXPLAIN and INSERT share: opens the execution of rows->compiled, compiling
 * again when a guard fails, then runs it and collects the answer. */
FALLIBLE rowset_open_exec(struct wf_connection *conn, const struct run_request *request,
                          struct rowset *rows);
FALLIBLE rowset_run_exec(struct wf_connection *conn, struct rowset *rows);
/* The same, but only until the first rows are there; rowset_more computes further ones. */
FALLIBLE rowset_start_exec(struct wf_connection *conn, struct rowset *rows);
/* Replaces the rows at hand by the next ones; rows->more says whether there can be any after them.
 * The public status; the reason is in rows->failure. */
wf_status rowset_more(struct rowset *rows);
/* The same within a call on the connection, whose error slot then has the reason. */
FALLIBLE rowset_step(struct wf_connection *conn, struct rowset *rows);
/* Computes what is left and drops it, for statements whose rows nobody wants. */
FALLIBLE rowset_finish(struct wf_connection *conn, struct rowset *rows);

/* The kinds of statement. Each fills tag, columns and rows. */
FALLIBLE run_create_table(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_create_as(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows);
FALLIBLE run_create_schema(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_create_view(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_create_sequence(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_alter_sequence(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_create_index(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_comment(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_alter(struct wf_connection *conn, const struct run_request *request,
                   struct rowset *rows);
FALLIBLE run_rename(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_drop(struct wf_connection *conn, struct rowset *rows);
/* session.c: PREPARE and its kin; what nextval and its kin give now. */
FALLIBLE run_prepare(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows);
FALLIBLE run_vacuum(struct wf_connection *conn, struct rowset *rows);
/* The text of a setting as SHOW has it; NULL, and an error unless missing_ok: there is none. */
FALLIBLE setting_shown(struct wf_connection *conn, struct arena *arena, struct sv name,
                       bool missing_ok, const char **out);
FALLIBLE setting_change(struct wf_connection *conn, const char *name, const char *value,
                        bool local);
FALLIBLE run_execute(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows);
FALLIBLE run_deallocate(struct wf_connection *conn, struct rowset *rows);
FALLIBLE late_value(struct wf_connection *conn, struct rowset *rows, const struct late *late,
                    struct param *out);
/* For currval, and where the value was taken (not set) for lastval. */
FALLIBLE session_note_value(struct wf_connection *conn, u32 sequence, i64 value, bool taken);
/* exec.serial; arg is the connection. */
wf_status session_serial(void *arg, const struct window_fn *call, i64 value, bool called, i64 *out,
                         struct error *err);
void session_close(struct wf_connection *conn);
/* ddl.c, alter.c: a definition that may be changed; sequences of new columns; an object's table
 * under another definition: column i is from[i] (NULL: i) or the constant values[i]. */
struct table_def ddl_copy_def(struct arena *arena, const struct table_def *def);
/* Numbers for constraints that have none, and for the keys that new references rest on. */
void ddl_give_oids(struct catalog *catalog, struct table_def *def);
FALLIBLE ddl_put_sequences(struct wf_connection *conn, struct rowset *rows,
                           const struct statement *st, struct table_def *def, u32 schema, u32 oid);
/* An object and what depends on it go. */
FALLIBLE ddl_drop(struct wf_connection *conn, struct arena *arena, u32 oid);
FALLIBLE ddl_change_sequence(struct wf_connection *conn, u32 oid, const struct ddl_seq *def);
FALLIBLE ddl_redefine(struct wf_connection *conn, u32 oid, const struct table_def *def,
                      const i32 *from, const void *const *values);
FALLIBLE run_copy(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_copy_to(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows);
FALLIBLE run_set(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_show(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_call(struct wf_connection *conn, struct rowset *rows);
FALLIBLE call_tpch(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_insert(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
/* The statement that runs: with EXPLAIN the one inside. */
static inline const struct statement *rowset_statement(const struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    return st->kind == STATEMENT_EXPLAIN ? st->inner : st;
}
FALLIBLE update_answer(struct wf_connection *conn, struct rowset *rows);
FALLIBLE delete_answer(struct wf_connection *conn, struct rowset *rows);
FALLIBLE insert_answer(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows);
FALLIBLE run_update(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
FALLIBLE run_delete(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
FALLIBLE run_truncate(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_transaction(struct wf_connection *conn, struct rowset *rows);
/* A SELECT of the system's own over the transaction's state, where `table` shows `version`. */
struct inner_select {
    struct script *script;
    struct sv text;
    bind_fn bind;
    void *arg;
    struct table *table;
    struct table_version *version;
    struct table *old; /* another one, and the version it is read in; NULL = none */
    struct table_version *old_version;
    const struct run_request *request; /* parameters; NULL = none */
    b8 in_order;                       /* rows keep the table's order: on the CPU */
};
FALLIBLE inner_run(struct wf_connection *conn, const struct inner_select *select,
                   struct rowset **out);
FALLIBLE run_explain(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows);
/* Answer columns from `first` on as one array a column of the table; where `keep` is given, only
 * the rows it marks. */
struct gathered {
    struct buffer **buffers; /* 2 per column; some NULL */
    struct input_col *cols;
    i64 rows;
};
/* A version with these rows; in parallel when there are enough. Keys are not looked at. */
FALLIBLE append_rows(struct wf_connection *conn, struct table *table, struct table_version *base,
                     i64 row_count, const struct input_col *cols, struct table_version **out);
/* A version with the rows of an answer, which may still have to be computed; *out stays NULL when
 * there are none. */
FALLIBLE append_answer(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       struct table_version *base, i64 *out_count, struct table_version **out);
/* Before the execution starts: storing its answer is a part of the work. */
void change_expect_answer(struct rowset *rows);
/* The same as a change of the transaction's table, constraints and all. */
FALLIBLE change_answer(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       i64 *out_count);
FALLIBLE change_append(struct wf_connection *conn, struct table *table, i64 row_count,
                       const struct input_col *cols);
/* The same under ON CONFLICT; *out_count = rows inserted or updated. */
FALLIBLE change_conflict(struct wf_connection *conn, const struct run_request *request,
                         struct rowset *rows, struct table *table, const struct gathered *all,
                         i64 *out_count);
/* The first column of an answer: numbers of rows; in the rowset's arena. */
FALLIBLE change_row_numbers(struct rowset *rows, i64 **out, struct error *err);
/* The version the transaction has of a table; borrowed. */
FALLIBLE change_base(struct wf_connection *conn, const struct table *table,
                     struct table_version **out);
/* Checks keys and makes `mine` the transaction's version. */
FALLIBLE change_keep(struct wf_connection *conn, struct table *table, struct table_version *base,
                     struct table_version *mine);
/* The same, then looks at the other constraints. */
FALLIBLE change_install(struct wf_connection *conn, struct table *table, struct table_version *base,
                        struct table_version *mine, const struct row_pairs *pairs);
/* Fills it. */
FALLIBLE gather(struct rowset *rows, const struct table *table, u32 first, const b8 *keep, i64 kept,
                struct gathered *out, struct error *err);
/* The next values of a sequence where a column is NULL. */
FALLIBLE fill_from_sequence(struct wf_connection *conn, struct rowset *rows,
                            const struct table *table, const struct fill *fill,
                            struct gathered *all);
void gather_free(const struct table *table, struct gathered *all);

struct wf_batch {
    const struct rowset *rows;
    const struct chunk *chunk;
    i64 first;
    i64 row_count;
};
/* The next rows that lie in one chunk, at most `most`; row_count 0 at the end. Public status. */
wf_status rowset_read(struct rowset *rows, i64 most, struct wf_batch *out);
struct sv batch_text(const struct wf_batch *batch, i32 col, i64 row);
enum { BATCH_ROWS = 1 << 16 };
void type_info(struct type type, wf_type_info *out);

struct wf_result {
    struct rowset *rows;
    struct wf_batch batch;
};
struct wf_result *result_take(struct rowset *rows); /* the rowset's handle, which owns it now */

struct wf_statement {
    struct wf_connection *conn;
    struct script *script;
    struct compiled *compiled;
    i32 param_count;
    struct type *param_types; /* in the script's arena */
    struct param *params;     /* likewise */
    i64 compile_count;
};

#endif

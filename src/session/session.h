/* session.h: databases, connections and the life of a statement: what include/warpfox.h is made of.
 *
 * Lifetimes. A database is counted: its handle, every connection, statement and rowset hold it. A
 * script (text and syntax trees) and a compiled statement (plan and program) are immutable and
 * counted; a rowset (one execution with its snapshot and its rows) is counted by the result handle,
 * Arrow streams and arrays. So everything may be closed in any order. */
#ifndef WF_SESSION_SESSION_H
#define WF_SESSION_SESSION_H

#include "warpfox.h"

#include "base/stop.h"
#include "base/temp.h"
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
    struct tries *tries; /* sorted rows that statements keep (run/tries.h) */
    struct device *cpu;
    _Atomic i32 tx_count; /* connections whose transaction has taken its snapshot */
    struct temp_exit temp_exit;
    struct mutex lock;    /* guards what follows */
    struct device *gpus[DEVICES_MOST - 1];
    u32 gpu_count;
    b8 gpu_tried;
    b8 gpu_opening;        /* somebody is at it, without the lock */
    struct cond gpu_opened;
    struct thread *opener; /* does so in the background; NULL = nobody did */
    i64 spent_ns;          /* on the CPU by statements that a card might have run */
    char no_gpu[300];
    struct kept_shape *kept; /* derived predicates whose rows are kept (kept.h) */
};
/* `options` ends with a NULL name and may be NULL. */
FALLIBLE database_open(const char *path, const wf_option *options, struct wf_database **out,
                       struct error *err);
struct wf_database *database_retain(struct wf_database *db);
void database_release(struct wf_database *db);
/* The process is about to end: only what has to be written is. Nobody else may use the database. */
void database_leave(struct wf_database *db);
/* The devices a statement over `rows` source rows may use. Opens the GPUs on first need: when the
 * session asks for it, or when auto meets a statement large enough to pay for the start. Never
 * fails: a missing GPU is a reason in no_gpu, and the runtime decides what that means. `explains`:
 * the reason will be read, and is worth a look for a card. */
void database_devices(struct wf_database *db, const struct settings *settings, i64 rows,
                      bool explains, struct run_devices *out);
/* A session that asks for the GPU is about to compile a query: the card is opened meanwhile. */
void database_begin_gpu(struct wf_database *db, const struct settings *settings);
/* Whether that is about to start a card's driver, which takes a while. */
bool database_starts_gpu(struct wf_database *db, const struct settings *settings, i64 rows);
/* A statement that had no card to choose took so long. */
void database_spent(struct wf_database *db, const struct settings *settings, i64 rows, i64 ns);
/* Those that are open already. */
void database_open_devices(struct wf_database *db, struct run_devices *out);
/* Whether there is none, as far as anybody has looked. */
bool database_without_gpu(struct wf_database *db);
/* Whether one is open. */
bool database_has_gpu(struct wf_database *db);
/* What the cache of the first GPU holds, or that of most. */
i64 database_near_bytes(struct wf_database *db);
/* What the memory of the first GPU holds; 0 = not known. */
i64 database_room_bytes(struct wf_database *db);
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
/* From now on to `report`, every so many milliseconds; NULL: no more. */
FALLIBLE watch_set(struct watch *watch, wf_progress report, void *arg, i32 interval_ms,
                   struct error *err);
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
    b8 read_only, asked; /* asked: a statement ran that is not SET */
    b8 deferrable;       /* only shown */
    i32 depth;                    /* statements that run: a CALL may run others */
    i64 start_us;                 /* what now() says */
    struct edition *base, *mine;  /* NULL until something is read */
    struct savepoint *savepoints; /* newest first */
    struct set_constraints *deferrals;
    struct kept_own *kept; /* derived rows that follow from its own changes (kept.h) */
    /* Since BEGIN: what ROLLBACK goes back to, and what COMMIT leaves: without SET LOCAL. */
    struct session_state before, after;
};
/* Where a statement began. */
struct tx_mark {
    struct edition *edition;
};

/* One more mistake of a text, and how the public sees it. */
struct further {
    struct error err;
    wf_error shown;
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
    b8 checking;     /* the statement at hand looks whether rules hold, and needs no others to */
    b8 one_thread;   /* the statement at hand has none of the other workers: with them it found no memory */
    wf_notice notice;
    void *notice_arg;
    struct named_statement *prepared[PREPARED_LISTS]; /* by PREPARE; lists by the hash of a name */
    struct texts *texts;                              /* statements met again; NULL = none yet */
    struct noted_value *values[NOTED_LISTS]; /* what currval says; lists by the sequence's OID */
    struct noted_value *last_value;          /* lastval's: of the latest nextval */
    struct error err;
    wf_error last;
    struct further *further; /* mistakes of the text behind the first one */
    i32 further_count;
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
struct wf_connection *connection_open(struct wf_database *db); /* NULL: no memory */
/* Its transaction, its prepared statements and its temporary objects go. */
void session_close(struct wf_connection *conn);
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
FALLIBLE tx_refuse(struct wf_connection *conn); /* 25P02 */
/* An error ends an open transaction, also one that comes before a statement runs: of syntax. */
void tx_fail(struct wf_connection *conn, wf_status status);
/* ROLLBACK of what BEGIN opened, which cannot fail; nothing where nothing is open. */
void tx_abandon(struct wf_connection *conn);
/* What the connection's next statement reads. */
void connection_snapshot(struct wf_connection *conn, struct snapshot *snap);

/* A statement starts: its time counts from here. */
void connection_start(struct wf_connection *conn);
/* ERR_CANCELLED when wf_cancel was called or the statement's time is over. */
FALLIBLE connection_check(struct wf_connection *conn);
wf_status public_status(wf_status internal);
void public_error(wf_error *out, const struct error *err, struct sv text);
/* Mistakes behind the first one, at most so many; fewer where memory is refused. */
void further_open(struct wf_connection *conn, i64 count);
void further_drop(struct wf_connection *conn);

/* A statement made of clauses: where they are. */
/* define.c: statements that would make an object; a name with quotes where it needs them, with its
 * schema unless the search path leads to it. Not `whole`: without what has to wait for rows or for
 * other tables (define_later). */
void define_object(struct text *out, struct snapshot *snap, const struct object *object);
void define_table(struct text *out, struct snapshot *snap, const struct object *object, bool whole);
void define_later(struct text *out, struct snapshot *snap, const struct object *object);
void define_name(struct text *out, const char *name);
void define_literal(struct text *out, const char *text); /* NULL as NULL */
/* nextval('schema.name'::regclass); without a schema where it is NULL. */
const char *define_nextval(struct arena *arena, const char *schema, const char *name);
void define_place(struct text *out, struct snapshot *snap, const struct object *object);

struct script_part {
    i64 sql_start; /* of the statement in the SQL */
    i64 literal, literal_end; /* of the clauses there */
    i32 position; /* of the clauses in the text */
};
/* The text of a script and its statements. */
struct script {
    _Atomic i32 refs;
    struct wf_database *db;
    struct arena arena;
    struct sv text;
    struct sv sql; /* what the statements were parsed from */
    struct parsed_list list;
    i64 parse_ns;
    b8 logical;  /* the text is LogiQL, and `list` of SQL made from it; then: */
    b8 is_whole; /* the first and the last statement begin and end a transaction */
    VEC(struct script_part) parts;
};
FALLIBLE script_new(struct wf_connection *conn, const char *text, struct script **out);
/* logiql.c: the same of a text in LogiQL; and where an error is in such a text. */
FALLIBLE script_new_logiql(struct wf_connection *conn, const char *text, struct script **out);
void script_place(const struct script *script, struct error *err);
void script_place_all(const struct script *script, struct wf_connection *conn);
/* In the connection's language. */
FALLIBLE script_new_for(struct wf_connection *conn, const char *text, struct script **out);
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
    struct past *past;       /* what its runs took and gave; NULL where nobody goes by that */
    VEC(struct kept_shape *) kept; /* derived predicates whose kept rows it reads; counted */
    struct check_run *check_runs; /* by plan->checks: what looks at them; NULL = nobody has (violation.c) */
};
/* What is known of parameters before binding. */
struct param_facts {
    i32 count;
    const struct type *types; /* NULL: unknown */
    const b8 *nulls;          /* NULL: none */
};
/* The snapshot gains the tables the statement names. `computes`: derived predicates are computed, even
 * those whose rows are kept. */
FALLIBLE compile(struct wf_connection *conn, struct script *script, const struct parsed *parsed,
                 struct snapshot *snap, const struct param_facts *params, bool computes,
                 struct compiled **out);
/* Whether it still holds: same definitions, same settings, same parameters NULL. */
bool compiled_fits(const struct compiled *compiled, const struct wf_connection *conn,
                   const struct snapshot *snap, const b8 *nulls);
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
    struct temp temp; /* for what mem has no room for */
    struct arena arena;
    struct snapshot snap;
    struct settings settings;
    struct compiled *compiled;
    struct exec exec;
    b8 exec_is_open;
    b8 explains;              /* what it did is shown, not what it gave */
    b8 computes;              /* kept rows could not be had: rules are compiled in */
    struct text kept_log;     /* what was done to those it reads; a line each */
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

/* Replaces the rows at hand by the next ones; rows->more says whether there can be any after them.
 * The public status; the reason is in rows->failure. */
wf_status rowset_more(struct rowset *rows);
/* Computes what is left and drops it, for statements whose rows nobody wants. */
FALLIBLE rowset_finish(struct wf_connection *conn, struct rowset *rows);

struct wf_batch {
    const struct rowset *rows;
    const struct chunk *chunk;
    i64 first;
    i64 row_count;
};
/* The next rows that lie in one chunk, at most `most`; row_count 0 at the end. Public status. */
wf_status rowset_read(struct rowset *rows, i64 most, struct wf_batch *out);
struct sv batch_text(const struct wf_batch *batch, i32 col, i64 row);
bool batch_is_null(const struct wf_batch *batch, i32 col, i64 row);
enum { BATCH_ROWS = 1 << 16 };
/* A handle, made before the statement runs, since what took effect may not fail any more. */
struct wf_result {
    struct rowset *rows;
    struct wf_batch batch;
};

/* Rows to the transaction's version of a table, constraints and all; text is valid UTF-8. */
FALLIBLE change_append(struct wf_connection *conn, struct table *table, i64 row_count,
                       const struct input_col *cols);

#endif

/* session_int.h: what the files of the executor share: stages of a statement, its kinds, changes of
 * tables and what must hold after them. */
#ifndef WF_SESSION_SESSION_INT_H
#define WF_SESSION_SESSION_INT_H

#include "session/session.h"

/* transaction.c */
void tx_undo(struct wf_connection *conn, const struct tx_mark *mark);
void tx_close(struct wf_connection *conn); /* rolls back */
/* Makes the edits part of the transaction. */
FALLIBLE tx_apply(struct wf_connection *conn, const struct edit *edits, i64 count);
FALLIBLE tx_set_version(struct wf_connection *conn, const struct table *table,
                        struct table_version *version);
bool tx_allows(const struct wf_connection *conn, const struct statement *st);
/* The statement is about to run: what may be said only before all others no longer may. */
void tx_note(struct wf_connection *conn, const struct statement *st);

/* kept.c, keep.c: rows of derived predicates. A transaction's own are given up, become everybody's as
 * far as they follow from what is current now; those that definitions lead to no more (or all) go; rows
 * go that can be computed again: false when there were none. */
void keep_forget(struct wf_connection *conn);
void keep_commit(struct wf_connection *conn);
void keep_sweep(struct wf_database *db, bool all);
bool keep_give_back(struct wf_database *db);
/* kept_file.c: what of them goes to the file with an edition (a rows_collect_fn; the database); those of the file that
 * nobody has taken are of no use. */
struct rows_list;
struct rows_list *kept_collect(void *arg, struct edition *edition);
void kept_forget_file(struct wf_database *db);
void kept_release(struct compiled *c);
/* Whoever compiles a statement asks by this; it notes in `c` what is read, unless that is NULL. */
struct keeping {
    struct rule_keeper keeper;
    struct wf_connection *conn;
    struct compiled *c;
};
void keeping_init(struct keeping *keeping, struct wf_connection *conn, struct compiled *c);
/* Before an execution: brings the kept rows it reads up to date. *out_gone: they cannot be had. */
FALLIBLE keep_fill(struct wf_connection *conn, struct rowset *rows, bool *out_gone);
/* Of EXPLAIN: what keep_fill did, or would do. */
FALLIBLE keep_explain(struct wf_connection *conn, struct rowset *rows, bool ran, struct text *out);

/* Whether the rows of a derived predicate are kept: "no", "later" (not computed yet), "stale" or
 * "fresh". */
FALLIBLE keep_word(struct wf_connection *conn, struct snapshot *snap, const char *predicate,
                   const char **out);

/* What an UPDATE did: the i-th row that is new was row old_rows[i] of the base; -1: it is an
 * inserted one, as those behind are. */
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
/* Only CHECK of rows that `now` has and `base` had not. */
FALLIBLE checks_between(struct wf_connection *conn, struct table *table, struct table_version *base,
                        struct table_version *now);
/* Only CHECK and REFERENCES of rows that the table has and `base` had not. `old`: they are new to a
 * table that was redefined, and NOT VALID constraints do not look at them. */
FALLIBLE constraints_of_new(struct wf_connection *conn, u32 oid, struct table *table,
                            struct table_version *base, bool old);
/* DEFERRABLE references from where the transaction began to what it is; `only` one, or all (0). */
FALLIBLE constraints_deferred(struct wf_connection *conn, u32 only);
FALLIBLE run_set_constraints(struct wf_connection *conn, struct rowset *rows);
/* reference.c: a column's DEFAULT, computed now; text is the arena's. */
FALLIBLE default_value(struct wf_connection *conn, struct arena *arena, const struct table *child,
                       u32 col, union lit *out, b8 *out_null);
bool reference_is_deferred(const struct wf_connection *conn, const struct table_foreign *fk);
bool key_is_deferred(const struct wf_connection *conn, const struct table_key *key);
/* commit_check: the same for what others have committed meanwhile. */
wf_status constraints_recheck(void *conn, const struct meeting *meeting, struct error *err);

/* Kept rows of derived predicates: read, and brought up to date before; read where the snapshot has
 * them; not read. */
enum keep_mode { KEEP_READ, KEEP_NOT };

typedef wf_status (*bind_fn)(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err);
/* Statements that the system makes by itself: bound by `bind`, which gets `arg`. */
struct binding {
    struct script *script; /* NULL: none */
    struct sv text;
    bind_fn bind;
    void *arg;
    u8 keeps; /* enum keep_mode */
};
FALLIBLE compile_with(struct wf_connection *conn, const struct binding *binding,
                      struct snapshot *snap, const struct param_facts *params,
                      struct compiled **out);
/* Runs what recurses over the plan of a statement of this text, on a stack as deep as that takes.
 */
FALLIBLE run_deep(struct wf_connection *conn, struct sv text, wf_status (*run)(void *arg),
                  void *arg);
/* Where a bound value goes. */
struct param_target {
    i32 number; /* of the parameter, from 1 */
    struct type type;
    enum kind kind; /* as it is held */
    struct when when;
};
/* Strings it makes live in `arena`. */
FALLIBLE param_convert(struct arena *arena, const struct param *param,
                       const struct param_target *target, union lit *out, struct error *err);

/* Makes the rows `count` × `col_count` texts (row-major; a NULL pointer is NULL) under these names.
 */
void rowset_set_texts(struct rowset *rows, i32 col_count, const char *const *names, i64 count,
                      const struct sv *values);
/* Stages of it that EXPLAIN and INSERT share: opens the execution of rows->compiled, compiling
 * again when a guard fails, then runs it and collects the answer. */
FALLIBLE rowset_open_exec(struct wf_connection *conn, const struct run_request *request,
                          struct rowset *rows);
FALLIBLE rowset_run_exec(struct wf_connection *conn, struct rowset *rows);
/* The same, but only until the first rows are there; rowset_more computes further ones. */
FALLIBLE rowset_start_exec(struct wf_connection *conn, struct rowset *rows);
/* The same within a call on the connection, whose error slot then has the reason. */
FALLIBLE rowset_step(struct wf_connection *conn, struct rowset *rows);

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
/* prepared.c: PREPARE and its kin; what nextval and its kin give now. */
FALLIBLE run_prepare(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows);
/* Rows that are deleted go, tablets that fit into one become one; of all tables when none is named. */
FALLIBLE vacuum_tables(struct wf_connection *conn, const u32 *oids, i32 count);
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
/* ddl.c, alter.c: a definition that may be changed; sequences of new columns; an object's table
 * under another definition: column i is from[i] (NULL: i) or the constant values[i]. */
struct table_def ddl_copy_def(struct arena *arena, const struct table_def *def);
/* Numbers for constraints that have none, and for the keys that new references rest on. */
void ddl_give_oids(struct catalog *catalog, struct table_def *def);
FALLIBLE ddl_put_sequences(struct wf_connection *conn, struct rowset *rows,
                           const struct new_table *table, bool temp, struct table_def *def,
                           u32 schema, u32 oid);
/* 42P07 when a key of the table `oid` has the name of a relation, or of another table's key. */
FALLIBLE ddl_check_keys(struct wf_connection *conn, const struct table_def *def, u32 schema,
                        u32 oid, i32 position);
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
/* logiql.c: runs statements of the system's own within the one at hand; a name with its quotes. */
FALLIBLE session_run_text(struct wf_connection *conn, const char *text);
void print_sql_name(struct text *out, const char *name);
/* A text between dollar quotes whose tag it does not contain; returns where it begins. */
i64 print_quoted(struct text *out, struct sv text);
FALLIBLE call_logiql(struct wf_connection *conn, struct rowset *rows);
/* violation.c: constraints that read what the statement has changed since `before`: 23514. */
FALLIBLE logiql_constraints(struct wf_connection *conn, const struct edition *before);
/* Those that read what both sides of a commit changed, over the outcome. */
FALLIBLE logiql_recheck(struct wf_connection *conn, const struct meeting *meeting);
bool logiql_is_constraint(const struct object *object);
/* What has to hold of rules that the statement has of its own, before it runs: 23514. */
FALLIBLE checks_hold(struct wf_connection *conn, struct compiled *c);
void checks_release(struct compiled *c);
/* Of EXPLAIN: what that looks at. */
void checks_explain(const struct compiled *c, struct text *out);
/* One of them: 23514 with its first tuple, which is in `arena`. */
FALLIBLE logiql_holds(struct wf_connection *conn, struct arena *arena,
                      const struct object *constraint);
/* An object is LogiQL's, with these clauses: what IMPORT DATABASE makes of a table, or of a view that has
 * only its columns. */
FALLIBLE call_logiql_restore(struct wf_connection *conn, struct rowset *rows);
/* export.c: to a folder, and out of one. */
FALLIBLE export_database(struct wf_connection *conn, struct arena *arena, const char *folder);
FALLIBLE import_database(struct wf_connection *conn, struct arena *arena, const char *folder);
FALLIBLE call_logiql_rules(struct wf_connection *conn, struct rowset *rows);
/* script.c: a script whose statements `fill` makes of its text. */
FALLIBLE script_make(struct wf_connection *conn, const char *text,
                     wf_status (*fill)(struct wf_connection *conn, struct script *script),
                     struct script **out);
/* ddl.c: an object, new or another than before, becomes part of the transaction. */
FALLIBLE ddl_put(struct wf_connection *conn, struct object *object, struct table_version *version);
/* The benchmark whose tables the procedure makes; NULL when there is none of that name. */
const struct gen_suite *generate_find(const char *procedure);
FALLIBLE call_generate(struct wf_connection *conn, struct rowset *rows,
                       const struct gen_suite *suite);
FALLIBLE run_insert(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
/* The statement that runs: with EXPLAIN the one inside. */
static inline const struct statement *rowset_statement(const struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    return st->kind == STATEMENT_EXPLAIN ? st->explain.inner : st;
}
FALLIBLE update_answer(struct wf_connection *conn, struct rowset *rows);
FALLIBLE delete_answer(struct wf_connection *conn, struct rowset *rows);
FALLIBLE insert_answer(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows);
FALLIBLE create_answer(struct wf_connection *conn, struct rowset *rows); /* CREATE TABLE AS */
/* 42P07 when its name is taken; *out_skip: it is, and the statement does not mind. */
FALLIBLE create_check(struct wf_connection *conn, struct rowset *rows, bool *out_skip);
FALLIBLE run_update(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
FALLIBLE run_delete(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows);
FALLIBLE run_truncate(struct wf_connection *conn, struct rowset *rows);
FALLIBLE run_transaction(struct wf_connection *conn, struct rowset *rows);
/* Tables and versions that are read, over an edition, and how names are looked up. */
struct inner_scene {
    struct edition *edition;
    const char *path;
    u32 temp_schema;
    i64 count;
    const struct snapshot_table *tables;
};
/* A SELECT of the system's own over the transaction's state, where `table` shows `version`. */
struct inner_select {
    struct binding binding;
    struct table *table;
    struct table_version *version;
    struct table *old; /* another one, and the version it is read in; NULL = none */
    struct table_version *old_version;
    const struct run_request *request; /* parameters; NULL = none */
    b8 in_order;                       /* rows keep the table's order: on the CPU */
    const struct inner_scene *scene;   /* instead of the transaction's state; NULL = that */
    b8 starts;                         /* only until the first rows are there */
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
/* A version with those rows of an answer that is all there. */
struct chosen {
    u32 first;      /* column of the answer that is the table's first */
    const b8 *keep; /* by answer row; NULL = all */
    i64 count;      /* that it marks */
};
FALLIBLE append_chosen(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       struct table_version *base, const struct chosen *chosen,
                       struct table_version **out);
/* Rows of an answer that is still being computed in the place of those of `base` that its first column names; who
 * comes first counts. */
struct replaced {
    struct buffer *buffer; /* of ids */
    i64 *ids;              /* rows of `base`, in the order of those in their place */
    i64 count;
    struct table_version *less, *mine; /* without them, and with what replaces them, the caller's */
};
FALLIBLE append_replacing(struct wf_connection *conn, struct rowset *rows, struct table *table,
                          struct table_version *base, struct replaced *out);
void replaced_fini(struct replaced *replaced);
/* Before the execution starts: storing its answer is a part of the work. */
void change_expect_answer(struct rowset *rows);
/* The same as a change of the transaction's table, constraints and all. */
FALLIBLE change_answer(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       i64 *out_count);
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

#endif

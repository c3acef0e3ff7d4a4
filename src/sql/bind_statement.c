/* bind_statement.c: entry to the binder: one statement's tree to a `struct statement`.
 *
 * Second step in the life of a query. The statement kinds we know are in one table; everything else
 * that PostgreSQL parses is error 0A000 naming it. Nothing is ignored in silence: each handler
 * lists the fields of the nodes it understands (bind_only), and a field outside that list, which is
 * only ever present with a value that is not the default, stops the statement with the name of the
 * construct.
 *
 * The binder recurses over the tree. It counts its depth, stops at EXPR_DEPTH_MAX with 54001, and
 * runs on a thread of its own when the tree is deeper than an ordinary stack should hold. */
#include <stdarg.h>
#include <stdio.h>

#include "base/thread.h"
#include "sql/ddl_int.h"

/* Fields that change a node's meaning, and what to call them. */
static const struct {
    const char *field;
    const char *construct;
} constructs[] = {
    {"windowClause", "the WINDOW clause"},
    {"lockingClause", "FOR UPDATE and FOR SHARE"},
    {"over", "window functions"},
    {"agg_filter", "FILTER"},
    {"agg_order", "ORDER BY in an aggregate"},
    {"agg_within_group", "WITHIN GROUP"},
    {"func_variadic", "VARIADIC"},
    {"agg_distinct", "DISTINCT in a function call"},
    {"agg_star", "(*) in a function call"},
    {"onConflictClause", "ON CONFLICT"},
    {"returningList", "RETURNING"},
    {"lateral", "LATERAL"},
    {"collClause", "COLLATE"},
    {"partspec", "PARTITION BY"},
    {"partbound", "partitions"},
    {"inhRelations", "inheritance"},
    {"options", "storage options"},
    {"tablespacename", "TABLESPACE"},
    {"accessMethod", "USING access method"},
    {"ofTypename", "OF type"},
    {"catalogname", "a database name before a table"},
    {"whereClause", "WHERE in this statement"},
    {"arrayBounds", "array types"},
    {"setof", "SETOF"},
    {"pct_type", "%TYPE"},
    {"indirection", "array subscripts and fields of a value"},
    {"useOp", "ORDER BY ... USING"},
    {"argisrow", "IS NULL of a row"},
    {"fdwoptions", "foreign data options"},
    {"identity", "identity columns"},
    {"generated", "generated columns"},
    {"compression", "column compression"},
    {"concurrent", "CONCURRENTLY"},
    {"bsval", "bit-string literals"},
    {"nulls_not_distinct", "NULLS NOT DISTINCT"},
    {"alias", "an alias of a join"},
};

wf_status unsupported(struct bind *b, i32 position, const char *format, ...) {
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return error_set(b->err, ERR_NOT_SUPPORTED, position, "not supported yet: %s", what);
}

const char *keep(struct bind *b, const char *text) {
    return text ? arena_sv(b->arena, sv_from(text)).ptr : NULL;
}

static bool in_words(const char *words, const char *word) {
    size_t len = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word)) {
        bool starts = at == words || at[-1] == ' ';
        if (starts && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

FALLIBLE bind_only(struct bind *b, const struct json *body, const char *known, i32 position) {
    JSON_EACH(field, body) {
        if (in_words(known, field->key)) {
            continue;
        }
        i32 inside = node_position(field);
        i32 at = inside >= 0 ? inside : position;
        for (i64 i = 0; i < COUNT_OF(constructs); i++) {
            if (strcmp(constructs[i].field, field->key) == 0) {
                return unsupported(b, at, "%s", constructs[i].construct);
            }
        }
        return unsupported(b, at, "%s of %s", field->key, body->key);
    }
    return ERR_OK;
}

static const struct {
    const char *name;
    i32 levels; /* what it counts itself */
    i32 with;   /* and together with what it always holds: a view's query is one more level */
} nestings[NEST_COUNT] = {
    [NEST_EXPR] = {"expressions", 1, 1},
    [NEST_JOIN] = {"joins", 10, 10},
    [NEST_SELECT] = {"subqueries", 20, 20},
    [NEST_VIEW] = {"views", 20, 40},
};

enum { ENTERED_PER_CHECK = STOP_EVERY(256) };

FALLIBLE bind_enter(struct bind *b, enum nesting what, i32 position) {
    i32 with = nestings[what].with;
    if (b->depth + with > EXPR_DEPTH_MAX) {
        error_set(b->err, ERR_TOO_COMPLEX, position,
                  "statement too complex: %s may nest at most %d levels deep", nestings[what].name,
                  (int)((EXPR_DEPTH_MAX - nestings[NEST_SELECT].levels) / with));
        error_hint(b->err,
                   "What nests in each other counts together: a view as much as %d expressions, a "
                   "subquery %d, a join %d.",
                   (int)nestings[NEST_VIEW].with, (int)nestings[NEST_SELECT].with,
                   (int)nestings[NEST_JOIN].with);
        return ERR_TOO_COMPLEX;
    }
    b->depth += nestings[what].levels;
    b->entered++;
    return b->entered % ENTERED_PER_CHECK == 0 ? stop_check(b->err) : ERR_OK;
}

void bind_leave(struct bind *b, enum nesting what) {
    b->depth -= nestings[what].levels;
}

/* Depth first and leftmost, a few levels only: good enough for a caret. */
static i32 position_within(const struct json *node, i32 levels) {
    if (!node || node->kind < JSON_ARRAY || levels == 0) {
        return -1;
    }
    const struct json *own = node->kind == JSON_OBJECT ? json_get(node, "location") : NULL;
    if (own && own->kind == JSON_NUMBER && own->number >= 0) {
        return (i32)own->number;
    }
    JSON_EACH(child, node) {
        i32 found = position_within(child, levels - 1);
        if (found >= 0) {
            return found;
        }
    }
    return -1;
}

i32 node_position(const struct json *node) {
    return position_within(node, 8);
}

FALLIBLE bind_table_name(struct bind *b, const struct json *range_var, const char **out) {
    i32 position = json_position(range_var);
    TRY(bind_only(b, range_var, "schemaname relname inh relpersistence alias location", position));
    const char *name = json_text(range_var, "relname");
    *out = keep(b, name ? name : "");
    return ERR_OK; /* relpersistence is for who makes one (ddl_target). ONLY changes nothing: no table inherits from another */
}

const struct json *bind_into(const struct json *body) {
    while (json_get(body, "larg")) {
        body = json_get(body, "larg");
    }
    return json_get(body, "intoClause");
}

/* The same query without its INTO. */
static const struct json *without_into(struct bind *b, const struct json *body) {
    struct json *top = NEW(b->arena, struct json);
    *top = *body;
    for (struct json *at = top; at;) {
        struct json *left = NULL, *fields = at->first, **tail = &at->first;
        for (const struct json *field = fields; field; field = field->next) {
            if (strcmp(field->key, "intoClause") == 0) {
                continue;
            }
            struct json *copy = NEW(b->arena, struct json);
            *copy = *field;
            left = strcmp(field->key, "larg") == 0 ? copy : left;
            *tail = copy;
            tail = &copy->next;
        }
        *tail = NULL;
        at = left;
    }
    return top;
}

static FALLIBLE bind_query(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *into = bind_into(body);
    if (into) {
        return ddl_create_as(b, into, without_into(b, body), false, out);
    }
    struct select_out select = {0};
    TRY(bind_select(b, body, NULL, NULL, 0, &select));
    out->kind = STATEMENT_SELECT;
    out->plan = b->plan;
    b->plan->shown = 1;
    b->plan->root = select.rel;
    for (i64 i = 0; i < select.rel->out.count; i++) {
        VEC_PUSH(b->arena, &b->plan->names, select.names[i]);
    }
    return ERR_OK;
}

/* Definitions are kept as text and outlive the statement, so they can have no parameters. */
enum { NONE, PARAMS };

static const struct {
    const char *node;
    FALLIBLE (*bind)(struct bind *b, const struct json *body, struct statement *out);
    u8 params;
} handlers[] = {
    {"SelectStmt", bind_query, PARAMS},
    {"InsertStmt", bind_insert, PARAMS},
    {"CreateStmt", bind_create, NONE},
    {"DropStmt", bind_drop, NONE},
    {"CopyStmt", bind_copy, NONE},
    {"VariableSetStmt", bind_set, PARAMS},
    {"VariableShowStmt", bind_show, PARAMS},
    {"ExplainStmt", bind_explain, PARAMS},
    {"CallStmt", bind_procedure, PARAMS},
    {"TransactionStmt", bind_transaction, NONE},
    {"UpdateStmt", bind_update, PARAMS},
    {"DeleteStmt", bind_delete, PARAMS},
    {"TruncateStmt", bind_truncate, NONE},
    {"CreateSchemaStmt", bind_create_schema, NONE},
    {"ViewStmt", bind_create_view, NONE},
    {"CreateSeqStmt", bind_create_sequence, NONE},
    {"AlterSeqStmt", bind_alter_sequence, NONE},
    {"CreateTableAsStmt", bind_create_as, PARAMS},
    {"IndexStmt", bind_create_index, NONE},
    {"CommentStmt", bind_comment, NONE},
    {"PrepareStmt", bind_prepare, PARAMS},
    {"ExecuteStmt", bind_execute, PARAMS},
    {"DeallocateStmt", bind_deallocate, NONE},
    {"AlterTableStmt", bind_alter, NONE},
    {"RenameStmt", bind_rename, NONE},
    {"AlterObjectSchemaStmt", bind_set_schema, NONE},
    {"ConstraintsSetStmt", bind_set_constraints, NONE},
    {"VacuumStmt", bind_vacuum, NONE},
    {"CheckPointStmt", bind_checkpoint, NONE},
};

FALLIBLE bind_statement(struct bind *b, const struct json *node, struct statement *out) {
    const char *type = node_type(node);
    for (i64 i = 0; i < COUNT_OF(handlers); i++) {
        if (strcmp(handlers[i].node, type) == 0) {
            struct type *param_types = b->t->param_types;
            b->t->param_types = handlers[i].params ? param_types : NULL;
            TRY(handlers[i].bind(b, node_body(node), out));
            b->t->param_types = param_types;
            return ERR_OK;
        }
    }
    return unsupported(b, (i32)(b->parsed->text.ptr - b->parsed->script.ptr), "%s",
                       command_tag(b->arena, type, node_body(node)));
}

static FALLIBLE check_params(struct bind *b) {
    for (i32 i = 0; i < b->parsed->param_count; i++) {
        if (b->t->param_types[i].id == TYPE_UNKNOWN) {
            FAIL(b->err, INDETERMINATE_TYPE, "could not determine data type of parameter $%d",
                 (int)(i + 1));
        }
    }
    return ERR_OK;
}

struct bind_job {
    struct bind bind;
    struct typing typing;
    FALLIBLE (*run)(struct bind_job *job);
    struct statement *out;
    const struct table *table;     /* violations, rows in conflict, a file's rows */
    const struct statement *first; /* COPY */
    const struct type *types;      /* EXECUTE */
    wf_status status;
};

static FALLIBLE bind_all(struct bind_job *job) {
    return bind_statement(&job->bind, job->bind.parsed->node, job->out);
}

/* The statement's tree; with EXPLAIN that of the one inside. */
static const struct json *own_body(const struct parsed *parsed) {
    const struct json *node = parsed->node;
    return node_body(node_is(node, "ExplainStmt") ? json_get(node_body(node), "query") : node);
}

static FALLIBLE bind_its_returning(struct bind_job *job) {
    struct snapshot_table rows;
    if (!snapshot_find_id(job->bind.snap, job->table->id, &rows)) {
        FAIL(job->bind.err, INTERNAL, "the new rows are gone");
    }
    return bind_insert_returning(&job->bind, node_body(job->bind.parsed->node), &rows, job->out);
}

static FALLIBLE bind_its_arguments(struct bind_job *job) {
    return bind_arguments(&job->bind, own_body(job->bind.parsed), job->types, job->out);
}

static FALLIBLE bind_its_conflict(struct bind_job *job) {
    struct snapshot_table excluded;
    if (!snapshot_find_id(job->bind.snap, job->table->id, &excluded)) {
        FAIL(job->bind.err, INTERNAL, "the rows in conflict are gone");
    }
    return bind_conflict_update(&job->bind, own_body(job->bind.parsed), &excluded, job->out);
}

/* The script is SELECT (condition). */
static FALLIBLE bind_its_violations(struct bind_job *job) {
    struct bind *b = &job->bind;
    struct snapshot_table found;
    if (!snapshot_find_id(b->snap, job->table->id, &found)) {
        FAIL(b->err, INTERNAL, "the table of a CHECK is gone");
    }
    struct scope scope = {0};
    TRY(bind_table_scope(b, &found, keep(b, found.table->name), -1, &scope));
    struct query q = {.scope = &scope, .clause = "CHECK"};
    const struct json *targets = json_get(node_body(b->parsed->node), "targetList");
    struct expr *cond = NULL;
    TRY(bind_condition(b, &q, json_get(node_body(json_first(targets)), "val"), "CHECK", &cond));
    struct rel *filter = bind_filter(b, scope.rel, expr_one(b->t, EXPR_NOT, cond, -1));
    struct expr *one = expr_int(b->t, 1, -1);
    const char *name = "violation";
    b->plan->root = bind_project(b, filter, &one, &name, 1);
    VEC_PUSH(b->arena, &b->plan->names, name);
    job->out->kind = STATEMENT_SELECT;
    job->out->plan = b->plan;
    return ERR_OK;
}

static FALLIBLE bind_its_rows(struct bind_job *job) {
    return bind_copied_rows(&job->bind, job->first, job->table, job->out);
}

static void bind_on_stack(void *arg) {
    struct bind_job *job = arg;
    struct bind *b = &job->bind;
    job->status = job->run(job);
    if (job->status == ERR_OK) {
        job->status = check_params(b);
    }
    if (job->status == ERR_OK && b->plan->root) {
        job->status = bind_check_serials(b, b->plan->root);
        bind_inline_shared(b, b->plan->root);
    }
}

#ifdef WF_HARD
enum { STACK_PER_LEVEL = 8192 };
#else
enum { STACK_PER_LEVEL = 2048 };
#endif
enum { LEVELS_ON_CALLER = 96, LEVELS_MAX = 8 * EXPR_DEPTH_MAX };

static FALLIBLE bind_job_run(struct bind_job *job, struct arena *arena, const struct parsed *parsed,
                             struct snapshot *snap, struct type *param_types, struct error *err) {
    memset(job->out, 0, sizeof *job->out);
    job->out->position = -1;
    job->bind = (struct bind){
        .t = &job->typing, .arena = arena, .parsed = parsed, .snap = snap, .err = err};
    job->bind.param_base = parsed->param_count;
    struct plan *plan = NEW(arena, struct plan);
    plan->arena = arena;
    plan->sample = sample_texts;
    plan->evaluator = snap->evaluator;
    plan->param_count = (u32)parsed->param_count;
    plan->param_types = param_types;
    job->bind.plan = plan;
    job->typing = (struct typing){.arena = arena,
                                  .plan = plan,
                                  .err = err,
                                  .param_types = param_types,
                                  .moment = bind_note_moment,
                                  .moment_arg = &job->bind};
    if (parsed->depth <= LEVELS_ON_CALLER) {
        bind_on_stack(job);
    } else {
        i64 stack_bytes = (i64)MIN_OF(parsed->depth, LEVELS_MAX) * STACK_PER_LEVEL + (1 << 20);
        if (!thread_run_deep(stack_bytes, bind_on_stack, job)) {
            FAIL(err, OUT_OF_MEMORY, "out of memory: no thread with %lld bytes of stack",
                 stack_bytes);
        }
    }
    TRY(job->status);
    i32 own = parsed->param_count, lates = (i32)job->bind.lates.count;
    plan->param_types = NEW_ARRAY(arena, struct type, own + lates + 1);
    if (own > 0) {
        memcpy(plan->param_types, param_types, sizeof(struct type) * (size_t)own);
    }
    for (i32 i = 0; i < lates; i++) {
        bool number = job->bind.lates.items[i].kind <= LATE_SLEEP;
        plan->param_types[own + i] = type_of(number ? TYPE_BIGINT : TYPE_TEXT);
    }
    plan->param_count = (u32)(own + lates);
    job->out->late_count = lates;
    job->out->lates = job->bind.lates.items;
    return arena_check(arena, err);
}

FALLIBLE sql_bind(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                  struct type *param_types, struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_all, .out = out};
    return bind_job_run(&job, arena, parsed, snap, param_types, err);
}

FALLIBLE sql_bind_returning(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                            const struct table *rows, struct type *param_types,
                            struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_its_returning, .out = out, .table = rows};
    return bind_job_run(&job, arena, parsed, snap, param_types, err);
}

FALLIBLE sql_bind_arguments(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                            const struct type *types, struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_its_arguments, .out = out, .types = types};
    return bind_job_run(&job, arena, parsed, snap, NULL, err);
}

FALLIBLE sql_bind_conflict(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                           const struct table *excluded, struct type *param_types,
                           struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_its_conflict, .out = out, .table = excluded};
    return bind_job_run(&job, arena, parsed, snap, param_types, err);
}

FALLIBLE sql_bind_violations(struct arena *arena, const struct table *table, const char *condition,
                             struct snapshot *snap, struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_its_violations, .out = out, .table = table};
    struct parsed_list list;
    const char *text = arena_printf(arena, "SELECT (%s)", condition);
    TRY(sql_parse(arena, sv_from(text), &list, err));
    TRY(bind_job_run(&job, arena, list.items.items[0], snap, NULL, err));
    rel_place(arena, out->plan->root, -1);
    return ERR_OK;
}

FALLIBLE sql_bind_copied(struct arena *arena, const struct statement *st, const struct table *file,
                         struct snapshot *snap, struct statement *out, struct error *err) {
    struct bind_job job = {.run = bind_its_rows, .out = out, .table = file, .first = st};
    struct parsed_list list;
    TRY(sql_parse(arena, SV("SELECT 1"), &list, err));
    return bind_job_run(&job, arena, list.items.items[0], snap, NULL, err);
}

static bool no_position(const struct expr *expr, void *arg) {
    UNUSED(arg);
    ((struct expr *)(size_t)expr)->position = -1;
    return true;
}

FALLIBLE bind_text_expr(struct bind *b, struct query *q, const char *text, struct expr **out) {
    const struct parsed *outer = b->parsed;
    struct parsed_list list;
    const char *script = arena_printf(b->arena, "SELECT %s", text);
    TRY(sql_parse(b->arena, sv_from(script), &list, b->err));
    b->parsed = list.items.items[0];
    const struct json *targets = json_get(node_body(b->parsed->node), "targetList");
    wf_status status = bind_expr(b, q, json_get(node_body(json_first(targets)), "val"), out);
    b->parsed = outer;
    if (status) { /* a position there means nothing here */
        b->err->position = -1;
        return status;
    }
    expr_walk(*out, no_position, NULL);
    return ERR_OK;
}

FALLIBLE bind_default_value(struct bind *b, pending_list *pending, const struct column_def *col,
                            struct expr **out, bool *out_fills) {
    *out_fills = col->sequence != 0;
    if (col->sequence || !col->default_text) {
        *out = expr_null(b->t, col->type, -1);
        return ERR_OK;
    }
    struct query q = {.clause = "DEFAULT", .subqueries_allowed = 1};
    struct expr *expr = NULL;
    TRY(bind_text_expr(b, &q, col->default_text, &expr));
    for (i64 i = 0; i < q.pending.count; i++) {
        if (!pending) {
            return unsupported(b, -1, "%s in this DEFAULT",
                               serial_names[q.pending.items[i].call.func]);
        }
        VEC_PUSH(b->arena, pending, q.pending.items[i]);
    }
    return bind_assign(b, expr, col, out);
}

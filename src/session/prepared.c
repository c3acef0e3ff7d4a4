/* prepared.c: what belongs to a connection: prepared statements by name, the last values of
 * sequences.
 *
 * PREPARE keeps the script and the tree of the statement, and the compiled statement once it has
 * run; EXECUTE runs it like a statement of the API, so a plan is used again as long as definitions,
 * settings and the facts it was compiled from hold. */
#include "session/session_int.h"

#include <stdio.h>

struct named_statement {
    struct named_statement *next;
    struct script *script; /* of the PREPARE */
    struct arena arena;
    struct parsed *parsed;
    struct compiled *compiled;
    i64 compile_count;
    i32 param_count; /* used by the statement */
    i32 arg_count;   /* and declared */
    struct type *types;
    const char *name;
};

static void statement_free(struct wf_connection *conn, struct named_statement *st) {
    compiled_release(st->compiled);
    script_release(st->script);
    arena_fini(&st->arena);
    mem_free(&conn->db->mem, st, (i64)sizeof *st);
}

static void drop_temp_schema(struct wf_connection *conn) {
    if (!conn->temp_schema) {
        return;
    }
    struct tx_mark mark;
    wf_status status = tx_enter(conn, &mark);
    struct arena arena;
    VEC(struct edit) edits = {0};
    arena_init(&arena, &conn->db->mem);
    if (!status) {
        struct edition_walk at = edition_walk_schema(conn->tx.mine, conn->temp_schema);
        while (edition_step(&at)) {
            VEC_PUSH(&arena, &edits, ((struct edit){.oid = at.entry->object->oid}));
        }
        VEC_PUSH(&arena, &edits, ((struct edit){.oid = conn->temp_schema}));
        status = tx_apply(conn, edits.items, edits.count);
    }
    arena_fini(&arena);
    if (mark.edition) {
        status = tx_leave(conn, &mark, status);
    }
    conn->temp_schema = 0;
}

static void forget_statements(struct wf_connection *conn) {
    for (i32 i = 0; i < PREPARED_LISTS; i++) {
        while (conn->prepared[i]) {
            struct named_statement *gone = conn->prepared[i];
            conn->prepared[i] = gone->next;
            statement_free(conn, gone);
        }
    }
}

static struct named_statement **find_statement(struct wf_connection *conn, const char *name) {
    struct named_statement **at = &conn->prepared[sv_hash(sv_from(name)) % PREPARED_LISTS];
    while (*at && strcmp((*at)->name, name) != 0) {
        at = &(*at)->next;
    }
    return at;
}

FALLIBLE run_prepare(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "PREPARE";
    struct named_statement **at = find_statement(conn, st->name);
    if (*at) {
        FAIL_AT(&conn->err, DUPLICATE_STATEMENT, st->position,
                "prepared statement \"%.100s\" already exists", st->name);
    }
    struct named_statement *made = mem_alloc(&conn->db->mem, (i64)sizeof *made);
    if (!made) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *made);
    }
    memset(made, 0, sizeof *made);
    arena_init(&made->arena, &conn->db->mem);
    made->script = script_retain(request->script);
    struct when when = {(i32)conn->settings.timezone, conn->tx.start_us};
    made->parsed = parsed_inner(&made->arena, request->parsed, when);
    made->param_count = parsed_param_count(request->parsed);
    made->name = arena_printf(&made->arena, "%s", st->name);
    made->arg_count = st->prepared.arg_count;
    made->types = NEW_ARRAY(&made->arena, struct type, st->prepared.arg_count + 1);
    memcpy(made->types, st->prepared.arg_types,
           (size_t)st->prepared.arg_count * sizeof *made->types);
    wf_status status = arena_check(&made->arena, &conn->err);
    if (status) {
        statement_free(conn, made);
        return status;
    }
    *at = made;
    rows->took_effect = 1;
    return ERR_OK;
}

/* A value of a row as a bound one. */
static struct param param_of(struct arena *arena, struct type type, const struct column *col,
                             i64 row) {
    struct param param = {.form = PARAM_NULL};
    if (col->nulls && col->nulls[row]) {
        return param;
    }
    const u8 *at = (const u8 *)col->data + row * kind_bytes[col->kind];
    memcpy(&param.value, at, (size_t)kind_bytes[col->kind]);
    if (col->kind == KIND_STR) {
        param.form = PARAM_TEXT;
        param.value.str = str_from(arena_sv(arena, sv_of(param.value.str)));
    } else if (type.id == TYPE_BOOLEAN) {
        param.form = PARAM_BOOL;
    } else if (type.id == TYPE_DATE) {
        param.form = PARAM_DATE;
    } else if (type_is_float(type)) {
        param.form = PARAM_DOUBLE;
        param.value.f64 = col->kind == KIND_F32 ? (f64)param.value.f32 : param.value.f64;
    } else {
        param.form = PARAM_EXACT;
        param.scale = type.id == TYPE_DECIMAL ? type.scale : 0;
        param.value.i128 = col->kind == KIND_I32   ? param.value.i32
                           : col->kind == KIND_I64 ? param.value.i64
                                                   : param.value.i128;
    }
    return param;
}

struct arguments {
    const struct parsed *parsed;
    const struct type *types;
};

static wf_status bind_values(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err) {
    const struct arguments *own = arg;
    UNUSED(param_types);
    return sql_bind_arguments(arena, own->parsed, snap, own->types, out, err);
}

/* What EXECUTE gives, computed as a row. */
static FALLIBLE execute_values(struct wf_connection *conn, const struct run_request *request,
                               struct rowset *rows, const struct named_statement *found,
                               struct param **out) {
    *out = NEW_ARRAY(&rows->arena, struct param, found->arg_count + 1);
    if (found->arg_count == 0) {
        return arena_check(&rows->arena, &conn->err);
    }
    struct arguments arg = {request->parsed, found->types};
    struct inner_select select = {.binding.script = request->script,
                                  .binding.text = parsed_text(request->parsed),
                                  .binding.bind = bind_values,
                                  .binding.arg = &arg};
    struct rowset *values = NULL;
    TRY(inner_run(conn, &select, &values));
    const struct slice *slice = values->answer.rows == 1 ? &values->answer.slices[0] : NULL;
    for (i32 i = 0; slice && i < found->arg_count; i++) {
        (*out)[i] = param_of(&rows->arena, found->types[i], &slice->chunk->cols[i], slice->first);
    }
    rowset_release(values);
    return arena_check(&rows->arena, &conn->err);
}

FALLIBLE run_execute(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    struct named_statement *found = *find_statement(conn, st->name);
    if (!found) {
        FAIL_AT(&conn->err, UNDEFINED_STATEMENT, st->position,
                "prepared statement \"%.100s\" does not exist", st->name);
    }
    if (st->prepared.arg_count != found->arg_count &&
        found->arg_count > 0) { /* PostgreSQL takes any then */
        FAIL_AT(&conn->err, SYNTAX, st->position,
                "wrong number of parameters for prepared statement \"%.100s\": %d, it has %d",
                st->name, st->prepared.arg_count, found->arg_count);
    }
    struct param *params = NULL;
    TRY(execute_values(conn, request, rows, found, &params));
    struct run_request own = {.script = found->script,
                              .parsed = found->parsed,
                              .param_count = found->param_count,
                              .params = params,
                              .types = found->types,
                              .cache = &found->compiled,
                              .compile_count = &found->compile_count,
                              .explain = st->prepared.explain};
    wf_status status = statement_run(conn, &own, &rows->instead);
    if (status && found->script != request->script) {
        conn->err.position = -1; /* of another text */
    }
    TRY(status);
    rows->tag = rows->instead->tag;
    rows->rows_affected = rows->instead->rows_affected;
    return ERR_OK;
}

FALLIBLE run_deallocate(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = st->name ? "DEALLOCATE" : "DEALLOCATE ALL";
    rows->took_effect = 1;
    if (!st->name) {
        forget_statements(conn);
        return ERR_OK;
    }
    struct named_statement **at = find_statement(conn, st->name), *gone = *at;
    if (!gone) {
        FAIL_AT(&conn->err, UNDEFINED_STATEMENT, st->position,
                "prepared statement \"%.100s\" does not exist", st->name);
    }
    *at = gone->next;
    statement_free(conn, gone);
    return ERR_OK;
}

/* Sequences */

static struct noted_value **find_noted(struct wf_connection *conn, u32 sequence) {
    struct noted_value **at = &conn->values[sequence % NOTED_LISTS];
    while (*at && (*at)->oid != sequence) {
        at = &(*at)->next;
    }
    return at;
}

FALLIBLE session_note_value(struct wf_connection *conn, u32 sequence, i64 value, bool taken) {
    struct noted_value **at = find_noted(conn, sequence);
    if (!*at) {
        struct noted_value *made = mem_alloc(&conn->db->mem, (i64)sizeof *made);
        if (!made) {
            return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *made);
        }
        *made = (struct noted_value){.oid = sequence};
        *at = made;
    }
    (*at)->value = value;
    conn->last_value = taken ? *at : conn->last_value;
    return ERR_OK;
}

static void forget_values(struct wf_connection *conn) {
    for (i32 i = 0; i < NOTED_LISTS; i++) {
        while (conn->values[i]) {
            struct noted_value *gone = conn->values[i];
            conn->values[i] = gone->next;
            mem_free(&conn->db->mem, gone, (i64)sizeof *gone);
        }
    }
    conn->last_value = NULL;
}

void session_close(struct wf_connection *conn) {
    tx_close(conn);
    texts_close(conn);
    forget_statements(conn);
    forget_values(conn);
    drop_temp_schema(conn);
}

static FALLIBLE set_value(struct wf_connection *conn, struct sequence *seq, const struct late *late,
                          i64 *out) {
    if (late->value < seq->min || late->value > seq->max) {
        FAIL(&conn->err, OUT_OF_RANGE,
             "setval: value %lld is out of bounds for sequence \"%s\" (%lld..%lld)", late->value,
             late->name, seq->min, seq->max);
    }
    sequence_set(seq, late->value, late->called);
    *out = late->value;
    return late->called ? session_note_value(conn, late->sequence, late->value, false) : ERR_OK;
}

/* Until the time is over, or the statement is told to end. */
static FALLIBLE sleep_seconds(struct wf_connection *conn, f64 seconds) {
    const i64 look_ns = 10000000, most_ns = I64_MAX / 2;
    i64 left = seconds > 9e9 ? most_ns : seconds > 0 ? (i64)(seconds * 1e9) : 0;
    i64 until = clock_ns() + left;
    struct mutex lock;
    struct cond never;
    wf_status status = ERR_OK;
    mutex_init(&lock);
    cond_init(&never);
    mutex_lock(&lock);
    while (left > 0 && !(status = connection_check(conn))) {
        (void)cond_wait_ns(&never, &lock, MIN_OF(left, look_ns));
        left = until - clock_ns();
    }
    mutex_unlock(&lock);
    cond_fini(&never);
    mutex_fini(&lock);
    return status;
}

/* A call of the sequence, whose kinds are those of serial_kind and late_kind. */
static FALLIBLE sequence_value(struct wf_connection *conn, const struct late *late, i64 *out) {
    if (late->kind == LATE_LASTVAL) {
        const struct noted_value *last = conn->last_value;
        if (!last || !edition_find_oid(conn->tx.mine, last->oid)) {
            FAIL(&conn->err, WRONG_STATE, "lastval is not yet defined in this session");
        }
        *out = last->value;
        return ERR_OK;
    }
    if (late->kind == LATE_SLEEP) {
        f64 seconds;
        memcpy(&seconds, &late->value, sizeof seconds);
        *out = 0;
        return sleep_seconds(conn, seconds);
    }
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, late->sequence);
    struct sequence *seq = entry ? entry->object->sequence : NULL;
    if (!seq) {
        FAIL(&conn->err, UNDEFINED_TABLE, "sequence \"%s\" is gone", late->name);
    }
    bool changes = late->kind == LATE_NEXTVAL || late->kind == LATE_SETVAL;
    if (changes && conn->tx.read_only && !entry->object->temp) {
        FAIL(&conn->err, READ_ONLY, "cannot execute %s() in a read-only transaction",
             late->kind == LATE_NEXTVAL ? "nextval" : "setval");
    }
    if (late->kind == LATE_NEXTVAL) {
        TRY(sequence_next(seq, late->name, 1, out, &conn->err));
        return session_note_value(conn, late->sequence, *out, true);
    }
    if (late->kind == LATE_SETVAL) {
        return set_value(conn, seq, late, out);
    }
    if (late->kind == LATE_LAST_VALUE || late->kind == LATE_IS_CALLED) {
        mutex_lock(&seq->lock);
        *out = late->kind == LATE_LAST_VALUE ? seq->last : seq->called;
        mutex_unlock(&seq->lock);
        return ERR_OK;
    }
    const struct noted_value *noted = *find_noted(conn, late->sequence);
    if (noted) {
        *out = noted->value;
        return ERR_OK;
    }
    FAIL(&conn->err, WRONG_STATE, "currval of sequence \"%s\" is not yet defined in this session",
         late->name);
}

wf_status session_serial(void *arg, const struct window_fn *call, i64 value, bool called, i64 *out,
                         struct error *err) {
    struct wf_connection *conn = arg;
    struct late late = {.kind = call->func,
                        .called = called,
                        .sequence = call->sequence,
                        .value = value,
                        .name = call->name};
    UNUSED(err); /* the connection's */
    return sequence_value(conn, &late, out);
}

static FALLIBLE text_value(struct wf_connection *conn, struct rowset *rows, const struct late *late,
                           struct param *out) {
    u32 schema = 0;
    u8 kind = late->kind;
    const char *text = kind == LATE_VERSION ? "Warpfox " WF_VERSION_TEXT ", as PostgreSQL 15.0"
                       : kind == LATE_USER  ? "warpfox"
                                            : "memory";
    out->form = PARAM_TEXT;
    if (kind == LATE_CONFIG) {
        TRY(setting_change(conn, late->name, late->text, late->called));
    }
    if (kind == LATE_SETTING || kind == LATE_CONFIG) {
        TRY(setting_shown(conn, &rows->arena, sv_from(late->name), false, &text));
        text = kind == LATE_CONFIG ? late->text : text;
    }
    if (kind == LATE_SCHEMA) {
        TRY(snapshot_target(&rows->snap, (struct sv){NULL, 0}, -1, &schema, &conn->err));
        const struct edition_entry *entry = edition_find_oid(rows->snap.edition, schema);
        text = entry->object->name;
    }
    out->value.str = str_from(arena_sv(&rows->arena, sv_from(text)));
    return ERR_OK;
}

FALLIBLE late_value(struct wf_connection *conn, struct rowset *rows, const struct late *late,
                    struct param *out) {
    i64 value = 0;
    *out = (struct param){.form = PARAM_EXACT};
    if (late->kind > LATE_IS_CALLED) {
        return text_value(conn, rows, late, out);
    }
    TRY(sequence_value(conn, late, &value));
    out->value.i128 = value;
    return ERR_OK;
}

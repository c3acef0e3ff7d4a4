/* logiql.c: scripts of LogiQL: CALL logiql('…'), and texts of a connection whose language it is.
 *
 * What clauses do to the database is checked as a whole (logiql/script.c) and then done by
 * statements of SQL within the same transaction: tables for predicates that are stated, views for
 * those that rules derive, INSERT and DELETE for facts and changes. A text of a connection whose
 * language is LogiQL becomes a script of SQL: every query a SELECT from logiql('…'), what stands
 * between them a CALL; positions in that script are turned into those of the text. */
#include "session/session_int.h"

#include <stdio.h>

#include "logiql/logiql.h"

FALLIBLE session_run_text(struct wf_connection *conn, const char *text) {
    struct script *script;
    TRY(script_new(conn, text, &script));
    wf_status status = ERR_OK;
    for (i64 i = 0; !status && i < script->list.items.count; i++) {
        struct run_request request = {.script = script, .parsed = script->list.items.items[i]};
        struct rowset *rows = NULL;
        status = statement_run(conn, &request, &rows);
        rowset_release(rows);
    }
    script_release(script);
    return status;
}

void print_sql_name(struct text *out, const char *name) {
    text_print(out, "\"");
    for (; *name; name++) {
        text_print(out, *name == '"' ? "\"\"" : "%c", *name);
    }
    text_print(out, "\"");
}

i64 print_quoted(struct text *out, struct sv text) {
    char tag[24] = "$lq$";
    for (i32 n = 1; n < 1000; n++) {
        bool found = false;
        i64 len = (i64)strlen(tag) - 1;
        for (i64 i = 0; i + len <= text.len && !found; i++) {
            found = memcmp(text.ptr + i, tag, (size_t)len) == 0;
        }
        if (!found) {
            break;
        }
        snprintf(tag, sizeof tag, "$lq%d$", n);
    }
    text_append(out, sv_from(tag));
    i64 start = out->len;
    text_append(out, text);
    text_append(out, sv_from(tag));
    return start;
}

/* --- actions --- */

struct doing {
    struct wf_connection *conn;
    struct rowset *rows;
    const struct lq_script *script;
    i32 staged; /* tables of rows that were computed before anything changed */
};

static void text_open(struct doing *d, struct text *out) {
    text_init(out, &d->rows->arena);
}

static FALLIBLE do_create(struct doing *d, const struct lq_action *action) {
    struct wf_connection *conn = d->conn;
    struct text sql;
    char type[32];
    text_open(d, &sql);
    text_print(&sql, "create table ");
    print_sql_name(&sql, action->name);
    text_print(&sql, " (");
    for (i32 i = 0; i < action->col_count; i++) {
        text_print(&sql, i ? ", " : "");
        print_sql_name(&sql, action->names[i]);
        text_print(&sql, " %s not null%s", type_print(action->types[i], type),
                   action->is_unique && i == action->col_count - 1 ? " unique" : "");
        if (action->refers && action->refers[i]) {
            text_print(&sql, " references ");
            print_sql_name(&sql, action->refers[i]);
        }
    }
    for (i32 i = 0; i < action->key_count; i++) {
        text_print(&sql, i ? ", " : ", primary key (");
        print_sql_name(&sql, action->names[i]);
    }
    text_print(&sql, action->key_count ? "))" : ")");
    TRY(session_run_text(conn, sql.ptr));
    struct snapshot now;
    snapshot_init(&now, conn->db->catalog, &d->rows->arena);
    connection_snapshot(conn, &now);
    const struct edition_entry *entry =
        snapshot_lookup(&now, (struct sv){NULL, 0}, sv_from(action->name));
    struct object like = object_view(entry->object);
    like.logical = 1;
    like.text = action->text;
    wf_status status = ddl_put(conn, object_new(&conn->db->mem, &like), entry->version);
    snapshot_fini(&now);
    return status;
}

static void print_text(struct text *out, const char *text) {
    text_print(out, "'");
    for (; *text; text++) {
        text_print(out, *text == '\'' ? "''" : "%c", *text);
    }
    text_print(out, "'");
}

static bool ends_in_trie(const char *path) {
    struct sv name = sv_from(path), end = SV(".trie");
    return name.len > end.len && sv_eq_nocase((struct sv){name.ptr + name.len - end.len, end.len}, end);
}

/* The columns go by the predicate's names, and are of its types. */
static FALLIBLE do_trie_file(struct doing *d, const struct lq_action *action, struct text *sql) {
    char type[32];
    bool numbered = action->key_count == 1 && action->col_count > 1;
    for (i32 i = numbered; i < action->col_count; i++) {
        text_print(sql, i > numbered ? ", cast(" : "cast(");
        print_sql_name(sql, action->names[i]);
        text_print(sql, " as %s) as ", type_print(action->types[i], type));
        print_sql_name(sql, action->names[i]);
    }
    text_print(sql, " from read_trie(");
    print_text(sql, action->text);
    text_print(sql, ") as file(");
    for (i32 i = numbered; i < action->col_count; i++) {
        text_print(sql, i > numbered ? ", " : "");
        print_sql_name(sql, action->names[i]);
    }
    text_print(sql, ")");
    return session_run_text(d->conn, sql->ptr);
}

/* The key is the number of the row, from 0; a predicate whose columns are all the file's has none. */
static FALLIBLE do_file(struct doing *d, const struct lq_action *action) {
    struct text sql;
    char type[32];
    bool numbered = action->key_count == 1 && action->col_count > 1;
    text_open(d, &sql);
    text_print(&sql, "create view ");
    print_sql_name(&sql, action->name);
    text_print(&sql, " as select ");
    if (numbered) {
        text_print(&sql, "row_number() over () - 1 as ");
        print_sql_name(&sql, action->names[0]);
        text_print(&sql, ", ");
    }
    if (ends_in_trie(action->text)) {
        return do_trie_file(d, action, &sql);
    }
    text_print(&sql, "* from read_csv(");
    print_text(&sql, action->text);
    text_print(&sql, ", header => %s", action->has_body ? "true" : "false");
    if (action->comment) {
        text_print(&sql, ", delim => ");
        print_text(&sql, action->comment);
    }
    for (i32 i = numbered; i < action->col_count; i++) {
        text_print(&sql, i > numbered ? ", " : ", columns => {");
        print_text(&sql, action->names[i]);
        text_print(&sql, ": '%s'", type_print(action->types[i], type));
    }
    text_print(&sql, "})");
    return session_run_text(d->conn, sql.ptr);
}

/* What is there of what a predicate reads. */
static u32 find_reads(struct snapshot *now, const struct lq_action *action, u32 *out) {
    u32 count = 0;
    for (i64 i = 0; i < action->reads.count; i++) {
        const struct edition_entry *entry =
            snapshot_lookup(now, (struct sv){NULL, 0}, sv_from(action->reads.items[i]));
        bool seen = !entry;
        for (u32 k = 0; k < count && !seen; k++) {
            seen = out[k] == entry->object->oid;
        }
        if (!seen) {
            out[count++] = entry->object->oid;
        }
    }
    return count;
}

/* Clauses outlive the session, so they read nothing that does not. */
static FALLIBLE check_lasting(struct wf_connection *conn, const struct snapshot *now,
                              const struct object *rules) {
    for (u32 i = 0; i < rules->dep_count; i++) {
        const struct edition_entry *read = edition_find_oid(now->edition, rules->deps[i]);
        if (read && read->object->temp) {
            FAIL(&conn->err, INVALID_DEFINITION,
                 "clauses of \"%.100s\" may not read \"%.100s\", which is temporary", rules->name,
                 read->object->name);
        }
    }
    return ERR_OK;
}

static FALLIBLE do_install(struct doing *d, const struct lq_action *action) {
    struct wf_connection *conn = d->conn;
    if (action->replaces) {
        struct text sql;
        text_open(d, &sql);
        text_print(&sql, "drop table ");
        print_sql_name(&sql, action->name);
        TRY(session_run_text(conn, sql.ptr));
    }
    struct snapshot now;
    u32 schema = 0;
    snapshot_init(&now, conn->db->catalog, &d->rows->arena);
    connection_snapshot(conn, &now);
    const struct edition_entry *old =
        snapshot_lookup(&now, (struct sv){NULL, 0}, sv_from(action->name));
    wf_status status = snapshot_target(&now, (struct sv){NULL, 0}, -1, &schema, &conn->err);
    struct object like = {.kind = OBJECT_VIEW,
                          .logical = 1,
                          .oid = old ? old->object->oid : catalog_new_oid(conn->db->catalog),
                          .schema = old ? old->object->schema : schema,
                          .name = action->name,
                          .comment = action->comment ? action->comment
                                     : old           ? old->object->comment
                                                     : NULL,
                          .text = action->text,
                          .path = conn->search_path,
                          .col_count = (u32)action->col_count,
                          .col_names = action->names,
                          .col_types = action->types};
    like.deps = NEW_ARRAY(&d->rows->arena, u32, action->reads.count + 1);
    like.dep_count = find_reads(&now, action, like.deps);
    like.dep_cols = NEW_ARRAY(&d->rows->arena, struct column_names, like.dep_count + 1);
    status = status ? status : check_lasting(conn, &now, &like);
    if (!status) {
        status = ddl_put(conn, object_new(&conn->db->mem, &like), NULL);
    }
    snapshot_fini(&now);
    return status;
}

/* --- where the rows of a change come from --- */

static i32 slot_tables(const struct lq_slot *slot) {
    i32 count = slot->table != NULL;
    for (i32 i = 0; slot->table && i < slot->key_count; i++) {
        count += slot_tables(&slot->keys[i]);
    }
    return count;
}

/* A slot as a column of what print_slots joins; its tables are numbered from `first`. */
static void print_value(struct text *out, const struct lq_slot *slot, i32 first) {
    if (!slot->table) {
        text_print(out, "s.y%d", slot->col);
        return;
    }
    text_print(out, "m%d.", first + slot_tables(slot) - 1);
    print_sql_name(out, slot->id);
}

/* The tables that know the numbers, those of keys before what they are keys of. */
static void print_join(struct text *out, const struct lq_slot *slot, i32 first) {
    i32 own = first + slot_tables(slot) - 1;
    i32 at = first;
    for (i32 i = 0; slot->table && i < slot->key_count; i++) {
        print_join(out, &slot->keys[i], at);
        at += slot_tables(&slot->keys[i]);
    }
    if (!slot->table) {
        return;
    }
    text_print(out, " %s ", slot->key_count ? "join" : "cross join");
    print_sql_name(out, slot->table);
    text_print(out, " m%d", own);
    at = first;
    for (i32 i = 0; i < slot->key_count; i++) {
        text_print(out, i ? " and m%d." : " on m%d.", own);
        print_sql_name(out, slot->key_names[i]);
        text_print(out, " = ");
        print_value(out, &slot->keys[i], at);
        at += slot_tables(&slot->keys[i]);
    }
}

/* The clauses, or the table they were put aside in. */
static void print_rows(struct text *sql, const struct lq_action *action, i64 number) {
    if (action->has_body) {
        text_print(sql, "pg_temp.\"logiql %lld\"", (long long)number);
    } else {
        text_print(sql, "logiql(");
        print_quoted(sql, sv_from(action->text));
        text_print(sql, ")");
    }
}

/* The rows with `count` slots worked out. */
static void print_slots(struct text *sql, const struct lq_action *action,
                        const struct lq_slot *slots, i32 count, i64 number) {
    i32 at = 0;
    text_print(sql, count ? "(select " : "(select 1");
    for (i32 i = 0; i < count; i++) {
        text_print(sql, i ? ", " : "");
        print_value(sql, &slots[i], at);
        at += slot_tables(&slots[i]);
    }
    text_print(sql, " from ");
    print_rows(sql, action, number);
    text_print(sql, " s");
    for (i32 i = 0; i < action->source_count; i++) {
        text_print(sql, "%sy%d", i ? ", " : " (", i);
    }
    text_print(sql, action->source_count ? ")" : "");
    at = 0;
    for (i32 i = 0; i < count; i++) {
        print_join(sql, &slots[i], at);
        at += slot_tables(&slots[i]);
    }
    text_print(sql, ")");
}

static void print_source(struct text *sql, const struct lq_action *action, i64 number) {
    if (action->slots) {
        print_slots(sql, action, action->slots, action->col_count, number);
    } else {
        print_rows(sql, action, number);
    }
}

/* Keys that are new get numbers in their order, behind those there are. */
static FALLIBLE do_make(struct doing *d, const struct lq_action *action, i64 number) {
    const struct lq_slot *slot = &action->slots[0];
    const char *entity = action->entity ? action->entity : action->name;
    struct text sql, keys;
    text_open(d, &sql);
    text_open(d, &keys);
    for (i32 i = 0; i < slot->key_count; i++) {
        text_print(&keys, i ? ", " : "");
        print_sql_name(&keys, slot->key_names[i]);
    }
    bool keyed = slot->key_count > 0;
    text_print(&sql, "insert into ");
    print_sql_name(&sql, slot->table);
    text_print(&sql, " (");
    print_sql_name(&sql, slot->id);
    text_print(&sql, "%s%s) select coalesce((select max(e.", keyed ? ", " : "",
               keyed ? keys.ptr : "");
    print_sql_name(&sql, action->entity ? "id" : slot->id);
    text_print(&sql, ") from ");
    print_sql_name(&sql, entity);
    text_print(&sql, " e), -1) + row_number() over (%s%s)%s%s from (select * from ",
               keyed ? "order by " : "", keyed ? keys.ptr : "", keyed ? ", " : "",
               keyed ? keys.ptr : "");
    print_slots(&sql, action, slot->keys, slot->key_count, number);
    text_print(&sql, " q except select %s from ", keyed ? keys.ptr : "1");
    print_sql_name(&sql, slot->table);
    text_print(&sql, ") n (%s)", keyed ? keys.ptr : "one");
    TRY(session_run_text(d->conn, sql.ptr));
    if (!action->entity) {
        return ERR_OK;
    }
    struct text all;
    text_open(d, &all);
    text_print(&all, "insert into ");
    print_sql_name(&all, entity);
    text_print(&all, " select ");
    print_sql_name(&all, slot->id);
    text_print(&all, " from ");
    print_sql_name(&all, slot->table);
    text_print(&all, " except select * from ");
    print_sql_name(&all, entity);
    return session_run_text(d->conn, all.ptr);
}

/* Rules read what there was before: their rows are computed first. */
static FALLIBLE stage(struct doing *d, const struct lq_action *action, i64 number) {
    struct text sql;
    text_open(d, &sql);
    text_print(&sql, "create temporary table \"logiql %lld\" as select * from logiql(",
               (long long)number);
    print_quoted(&sql, sv_from(action->text));
    text_print(&sql, ")");
    return session_run_text(d->conn, sql.ptr);
}

static FALLIBLE unstage(struct doing *d, i64 number) {
    struct text sql;
    text_open(d, &sql);
    text_print(&sql, "drop table pg_temp.\"logiql %lld\"", (long long)number);
    return session_run_text(d->conn, sql.ptr);
}

static FALLIBLE do_take(struct doing *d, const struct lq_action *action, i32 count, i64 number) {
    struct text sql;
    text_open(d, &sql);
    text_print(&sql, "delete from ");
    print_sql_name(&sql, action->name);
    text_print(&sql, " t where exists (select 1 from ");
    print_source(&sql, action, number);
    text_print(&sql, " s");
    for (i32 i = 0; i < action->col_count; i++) {
        text_print(&sql, "%sy%d", i ? ", " : " (", i);
    }
    text_print(&sql, action->col_count ? ")" : "");
    for (i32 i = 0; i < count; i++) {
        text_print(&sql, "%s s.y%d = t.", i ? " and" : " where", i);
        print_sql_name(&sql, action->names[i]);
    }
    text_print(&sql, ")");
    return session_run_text(d->conn, sql.ptr);
}

/* A scalar has one value. */
static FALLIBLE check_scalar(struct doing *d, const struct lq_action *action) {
    struct snapshot now;
    snapshot_init(&now, d->conn->db->catalog, &d->rows->arena);
    connection_snapshot(d->conn, &now);
    const struct edition_entry *entry =
        snapshot_lookup(&now, (struct sv){NULL, 0}, sv_from(action->name));
    bool several = entry && entry->version && entry->version->live_rows > 1;
    snapshot_fini(&now);
    if (several) {
        FAIL(&d->conn->err, UNIQUE, "\"%.100s[]\" has one value: it cannot get another",
             action->name);
    }
    return ERR_OK;
}

static FALLIBLE do_add(struct doing *d, const struct lq_action *action, i64 number) {
    struct text sql;
    text_open(d, &sql);
    text_print(&sql, "insert into ");
    print_sql_name(&sql, action->name);
    text_print(&sql, " select * from ");
    print_source(&sql, action, number);
    text_print(&sql, " q except select * from ");
    print_sql_name(&sql, action->name);
    TRY(session_run_text(d->conn, sql.ptr));
    return action->key_count == 0 && action->col_count > 0 ? check_scalar(d, action) : ERR_OK;
}

/* Rows of all clauses for one file, together. */
static void print_exported(struct doing *d, struct text *sql, const char *file) {
    bool some = false;
    for (i64 i = 0; i < d->script->actions.count; i++) {
        const struct lq_action *action = &d->script->actions.items[i];
        if (action->kind == LQ_EXPORT && strcmp(action->name, file) == 0) {
            text_print(sql, some ? " union select * from " : "select * from ");
            print_source(sql, action, i);
            text_print(sql, " r");
            some = true;
        }
    }
}

/* Rows in the order of their number, or of all columns. The first of several for a file does it. */
static FALLIBLE do_export(struct doing *d, const struct lq_action *action, i64 number) {
    struct text sql;
    for (i64 i = 0; i < number; i++) {
        const struct lq_action *other = &d->script->actions.items[i];
        if (other->kind == LQ_EXPORT && strcmp(other->name, action->name) == 0) {
            return ERR_OK;
        }
    }
    text_open(d, &sql);
    text_print(&sql, "copy (select ");
    for (i32 i = action->is_numbered; i < action->col_count; i++) {
        text_print(&sql, i > action->is_numbered ? ", q." : "q.");
        print_sql_name(&sql, action->names[i]);
    }
    text_print(&sql, " from (");
    print_exported(d, &sql, action->name);
    text_print(&sql, ") q (");
    for (i32 i = 0; i < action->col_count; i++) {
        text_print(&sql, i ? ", " : "");
        print_sql_name(&sql, action->names[i]);
    }
    text_print(&sql, ") order by ");
    for (i32 i = 0; i < action->col_count; i++) {
        text_print(&sql, i ? ", q." : "q.");
        print_sql_name(&sql, action->names[i]);
    }
    text_print(&sql, ") to ");
    print_text(&sql, action->name);
    text_print(&sql, " (format csv, header %s", action->has_names ? "true" : "false");
    if (action->comment) {
        text_print(&sql, ", delimiter ");
        print_text(&sql, action->comment);
    }
    text_print(&sql, ")");
    return session_run_text(d->conn, sql.ptr);
}

/* A state of before the changes, or the end of it. */
static FALLIBLE do_keep(struct doing *d, const struct lq_action *action, bool ends) {
    struct text sql;
    text_open(d, &sql);
    text_print(&sql, ends ? "drop table pg_temp." : "create temporary table ");
    print_sql_name(&sql, action->name);
    if (!ends) {
        text_print(&sql, " as select * from logiql(");
        print_quoted(&sql, sv_from(action->text));
        text_print(&sql, ")");
    }
    return session_run_text(d->conn, sql.ptr);
}

static FALLIBLE do_action(struct doing *d, i64 number) {
    const struct lq_action *action = &d->script->actions.items[number];
    switch ((enum lq_action_kind)action->kind) {
    case LQ_CREATE:
        return do_create(d, action);
    case LQ_INSTALL:
        return do_install(d, action);
    case LQ_FILE:
        return do_file(d, action);
    case LQ_MAKE:
        return do_make(d, action, number);
    case LQ_EXPORT:
        return do_export(d, action, number);
    case LQ_ADD:
        return do_add(d, action, number);
    case LQ_TAKE:
        return do_take(d, action, action->col_count, number);
    case LQ_PUT:
        TRY(do_take(d, action, action->key_count, number));
        return do_add(d, action, number);
    default:
        return setting_change(d->conn, action->name, action->text, false);
    }
}

/* What is done when. Files are written last, when the constraints hold. */
enum pass {
    PASS_DEFINE,
    PASS_STAGE, /* what changes read is computed before anything changes */
    PASS_CHANGE,
    PASS_STAGE_FINAL, /* the same of changes that read the final state */
    PASS_CHANGE_FINAL,
    PASS_EXPORT,
    PASS_END,
    PASS_COUNT
};

static bool is_change(const struct lq_action *action) {
    return action->kind == LQ_ADD || action->kind == LQ_TAKE || action->kind == LQ_PUT ||
           action->kind == LQ_MAKE || action->kind == LQ_EXPORT;
}

static FALLIBLE do_pass(struct doing *d, i64 i, enum pass pass) {
    const struct lq_action *action = &d->script->actions.items[i];
    bool kept = action->kind == LQ_KEEP;
    bool change = is_change(action);
    bool final = action->is_final;
    bool exports = action->kind == LQ_EXPORT;
    switch (pass) {
    case PASS_DEFINE:
        return change || kept ? ERR_OK : do_action(d, i);
    case PASS_STAGE:
        return kept                                   ? do_keep(d, action, false)
               : change && action->has_body && !final ? stage(d, action, i)
                                                      : ERR_OK;
    case PASS_CHANGE:
        return change && !final && !exports ? do_action(d, i) : ERR_OK;
    case PASS_STAGE_FINAL:
        return change && action->has_body && final ? stage(d, action, i) : ERR_OK;
    case PASS_CHANGE_FINAL:
        return change && final && !exports ? do_action(d, i) : ERR_OK;
    case PASS_EXPORT:
        return exports ? do_action(d, i) : ERR_OK;
    default:
        return kept                         ? do_keep(d, action, true)
               : change && action->has_body ? unstage(d, i)
                                            : ERR_OK;
    }
}

static FALLIBLE do_all(struct doing *d) {
    i64 count = d->script->actions.count;
    for (enum pass pass = 0; pass < PASS_COUNT; pass++) {
        bool exports = false;
        for (i64 i = 0; pass == PASS_EXPORT && i < count; i++) {
            exports = exports || d->script->actions.items[i].kind == LQ_EXPORT;
        }
        if (exports) {
            TRY(logiql_constraints(d->conn, d->rows->snap.edition));
        }
        for (i64 i = 0; i < count; i++) {
            wf_status status = do_pass(d, i, pass);
            if (status) {
                d->conn->err.position = d->script->actions.items[i].position;
                return status;
            }
        }
    }
    return ERR_OK;
}

/* The first mistake is the error; the others stand behind it (wf_connection_further_error). */
static FALLIBLE report(struct wf_connection *conn, const lq_mistakes *mistakes) {
    further_open(conn, mistakes->count - 1);
    for (i64 i = mistakes->count - 1; i >= 0; i--) {
        const struct lq_mistake *m = &mistakes->items[i];
        if (i > conn->further_count) { /* no memory for it */
            continue;
        }
        struct error *err = i == 0 ? &conn->err : &conn->further[i - 1].err;
        error_set(err, m->code, m->position, "%s", m->message);
        if (m->hint) {
            error_hint(err, "%s", m->hint);
        }
    }
    return conn->err.code;
}

/* Constraints that the text itself makes are looked at here, so that a violation has its place. */
static FALLIBLE check_new(struct doing *d) {
    wf_status status = ERR_OK;
    for (i64 i = 0; i < d->script->actions.count && !status; i++) {
        const struct lq_action *action = &d->script->actions.items[i];
        struct snapshot now;
        if (action->kind != LQ_INSTALL || !action->comment) {
            continue;
        }
        snapshot_init(&now, d->conn->db->catalog, &d->rows->arena);
        connection_snapshot(d->conn, &now);
        const struct edition_entry *entry =
            snapshot_lookup(&now, (struct sv){NULL, 0}, sv_from(action->name));
        status = entry ? logiql_holds(d->conn, &d->rows->arena, entry->object) : ERR_OK;
        d->conn->err.position = status ? action->position : d->conn->err.position;
        snapshot_fini(&now);
    }
    return status;
}

static FALLIBLE run_clauses(struct wf_connection *conn, struct rowset *rows, struct sv text) {
    struct lq_script script;
    TRY(logiql_script(&rows->arena, &rows->snap, text, &script, &conn->err));
    if (script.mistakes.count > 0) {
        return report(conn, &script.mistakes);
    }
    for (i64 i = 0; i < script.notices.count; i++) {
        notice(conn, "NOTICE", "%s", script.notices.items[i]);
    }
    struct doing d = {.conn = conn, .rows = rows, .script = &script};
    TRY(do_all(&d));
    return check_new(&d);
}

FALLIBLE call_logiql(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct expr *arg = st->call.count == 1 ? st->call.args[0] : NULL;
    if (!arg || arg->kind != EXPR_CONST || arg->is_null ||
        (arg->type.id != TYPE_TEXT && arg->type.id != TYPE_UNKNOWN)) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position,
                "logiql takes clauses as one text, as in CALL logiql('edge(1, 2).')");
    }
    struct sv text = arena_sv(&rows->arena, sv_of(arg->value.str));
    wf_status status = run_clauses(conn, rows, text);
    for (i32 i = -1; status && i < conn->further_count; i++) {
        struct error *err = i < 0 ? &conn->err : &conn->further[i].err;
        if (err->position >= 0) {
            err->position =
                sql_literal_place(rows->compiled->script->sql, arg->position, err->position);
        }
    }
    return status;
}

/* One row for every clause: its stratum, whether that is recursive, its predicate, whether the rows
 * of that are kept. */
FALLIBLE call_logiql_rules(struct wf_connection *conn, struct rowset *rows) {
    static const char *const names[] = {"stratum", "recursive", "predicate", "clause", "kept"};
    struct arena *arena = &rows->arena;
    struct lq_list list;
    VEC(struct sv) values = {0};
    TRY(logiql_list(arena, &rows->snap, &list, &conn->err));
    for (i64 i = 0; i < list.items.count; i++) {
        const struct lq_listed *listed = &list.items.items[i];
        const char *stratum = arena_printf(arena, "%d", listed->stratum);
        const char *kept = "no";
        if (listed->stratum > 0) {
            TRY(keep_word(conn, &rows->snap, listed->predicate, &kept));
        }
        for (const char *at = listed->text; *at;) {
            i64 len = (i64)strcspn(at, "\n");
            VEC_PUSH(arena, &values, sv_from(stratum));
            VEC_PUSH(arena, &values, listed->recursive ? SV("yes") : SV("no"));
            VEC_PUSH(arena, &values, sv_from(listed->predicate));
            VEC_PUSH(arena, &values, ((struct sv){at, len}));
            VEC_PUSH(arena, &values, sv_from(kept));
            at += len + (at[len] != 0);
        }
    }
    TRY(arena_check(arena, &conn->err));
    rowset_set_texts(rows, COUNT_OF(names), names, values.count / COUNT_OF(names), values.items);
    return ERR_OK;
}

/* An argument as text; NULL where it is that, or is missing. */
static const char *text_argument(struct rowset *rows, i32 i) {
    const struct statement *st = &rows->compiled->stmt;
    const struct expr *arg = i < st->call.count ? st->call.args[i] : NULL;
    bool is_text = arg && arg->kind == EXPR_CONST && !arg->is_null &&
                   (arg->type.id == TYPE_TEXT || arg->type.id == TYPE_UNKNOWN);
    return is_text ? arena_sv(&rows->arena, sv_of(arg->value.str)).ptr : NULL;
}

/* logiql_restore(schema, name, text, comment, search path, then schema and name of what it reads) */
FALLIBLE call_logiql_restore(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const char *schema = text_argument(rows, 0), *name = text_argument(rows, 1);
    if (!schema || !name || st->call.count < 5) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position,
                "logiql_restore takes what EXPORT DATABASE writes");
    }
    struct snapshot now;
    snapshot_init(&now, conn->db->catalog, &rows->arena);
    connection_snapshot(conn, &now);
    const struct edition_entry *entry = snapshot_lookup(&now, sv_from(schema), sv_from(name));
    bool fits = entry && (entry->object->kind == OBJECT_TABLE || entry->object->kind == OBJECT_VIEW);
    wf_status status = ERR_OK;
    if (fits) {
        struct object like = object_view(entry->object);
        like.logical = 1;
        like.text = text_argument(rows, 2);
        like.comment = text_argument(rows, 3);
        like.path = like.kind == OBJECT_VIEW ? text_argument(rows, 4) : like.path;
        like.deps = NEW_ARRAY(&rows->arena, u32, st->call.count);
        like.dep_cols = NEW_ARRAY(&rows->arena, struct column_names, st->call.count);
        like.dep_count = 0;
        for (i32 i = 5; i + 1 < st->call.count; i += 2) {
            const char *of = text_argument(rows, i), *what = text_argument(rows, i + 1);
            const struct edition_entry *read =
                of && what ? snapshot_lookup(&now, sv_from(of), sv_from(what)) : NULL;
            if (read) {
                like.deps[like.dep_count++] = read->object->oid;
            }
        }
        status = ddl_put(conn, object_new(&conn->db->mem, &like), entry->version);
    } else {
        status = error_set(&conn->err, ERR_UNDEFINED_TABLE, st->position,
                           "relation \"%.100s.%.100s\" does not exist", schema, name);
    }
    snapshot_fini(&now);
    return status;
}

/* --- texts in LogiQL --- */

static FALLIBLE to_sql(struct script *script, const struct lq_parts *parts, struct text *sql) {
    script->is_whole = parts->items.count > 1;
    text_print(sql, "%s", script->is_whole ? "begin;" : "");
    for (i64 i = 0; i < parts->items.count; i++) {
        const struct lq_part *part = &parts->items.items[i];
        struct script_part at = {.sql_start = sql->len, .position = part->position};
        text_append(sql, part->explain);
        text_print(sql, part->is_query ? " select * from logiql(" : "call logiql(");
        at.literal = print_quoted(sql, part->text);
        at.literal_end = at.literal + part->text.len;
        text_print(sql, part->is_query ? ") order by all;" : ");");
        VEC_PUSH(&script->arena, &script->parts, at);
    }
    text_print(sql, "%s", script->is_whole ? "commit;" : "");
    return ERR_OK;
}

static wf_status script_fill(struct wf_connection *conn, struct script *script) {
    struct lq_parts parts;
    script->logical = 1;
    struct text sql;
    TRY(logiql_split(&script->arena, script->text, &parts, &conn->err));
    if (parts.mistakes.count > 0) {
        return report(conn, &parts.mistakes);
    }
    text_init(&sql, &script->arena);
    TRY(to_sql(script, &parts, &sql));
    TRY(arena_check(&script->arena, &conn->err));
    script->sql = (struct sv){sql.ptr, sql.len};
    return sql_parse(&script->arena, script->sql, &script->list, &conn->err);
}

FALLIBLE script_new_logiql(struct wf_connection *conn, const char *text, struct script **out) {
    return script_make(conn, text, script_fill, out);
}

void script_place(const struct script *script, struct error *err) {
    const struct script_part *part = NULL;
    if (!script || !script->logical || err->position < 0 || script->parts.count == 0) {
        return;
    }
    for (i64 i = 0; i < script->parts.count; i++) {
        if (script->parts.items[i].sql_start <= err->position || !part) {
            part = &script->parts.items[i];
        }
    }
    bool inside = err->position >= part->literal && err->position <= part->literal_end;
    err->position = part->position + (inside ? err->position - (i32)part->literal : 0);
}

void script_place_all(const struct script *script, struct wf_connection *conn) {
    script_place(script, &conn->err);
    for (i32 i = 0; i < conn->further_count; i++) {
        script_place(script, &conn->further[i].err);
    }
}

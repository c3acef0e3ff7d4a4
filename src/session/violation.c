/* violation.c: constraints of LogiQL, which are derived predicates that have to be empty.
 *
 * They are looked at when a statement ends, of SQL or LogiQL: those that read what it changed. And once more
 * when a transaction commits: those that read what it changed and what others have changed meanwhile, over
 * what comes of both (decision 0070). What has to hold of rules that a statement has of its own is looked at
 * before it runs (decision 0096). */
#include "session/session_int.h"

#include <stdio.h>

struct reached {
    struct arena *arena;
    VEC(u32) oids;
};

static void reach(struct reached *r, u32 oid) {
    for (i64 i = 0; i < r->oids.count; i++) {
        if (r->oids.items[i] == oid) {
            return;
        }
    }
    VEC_PUSH(r->arena, &r->oids, oid);
}

/* A compaction puts the same rows elsewhere. */
static bool same_content(const struct edition_entry *a, const struct edition_entry *b) {
    return a && a->object == b->object && a->version && b->version &&
           a->version->content_no == b->version->content_no;
}

/* What is different now, and all views of `users` that read it, directly or not. */
static void reach_all(struct reached *r, const struct edition *before, const struct edition *now,
                      const struct edition *users) {
    for (struct edition_diff at = edition_diff(before, now); edition_diff_step(&at);) {
        if (at.after && !same_content(at.before, at.after)) {
            reach(r, at.after->object->oid);
        }
    }
    for (i64 i = 0; i < r->oids.count; i++) {
        for (struct edition_walk at = edition_walk_users(users, r->oids.items[i]);
             edition_step(&at);) {
            if (at.entry->object->kind == OBJECT_VIEW) {
                reach(r, at.entry->object->oid);
            }
        }
    }
}

bool logiql_is_constraint(const struct object *object) {
    return object->kind == OBJECT_VIEW && object->logical &&
           strncmp(object->name, "constraint:", 11) == 0;
}

/* Whether a query has a row; its first column as text, in `arena`. */
static FALLIBLE first_row(struct wf_connection *conn, struct arena *arena,
                          const struct run_request *request, bool *out_found, struct sv *out) {
    struct rowset *rows = NULL;
    struct wf_batch batch;
    wf_status status = statement_run(conn, request, &rows);
    *out_found = !status && rowset_read(rows, 1, &batch) == WF_OK && batch.row_count > 0;
    if (*out_found && out) {
        *out = arena_sv(arena, batch_text(&batch, 0, 0));
    }
    rowset_release(rows);
    return status;
}

/* The same of a text. */
static FALLIBLE first_text(struct wf_connection *conn, struct arena *arena, const char *sql,
                           bool *out_found, struct sv *out) {
    struct script *script = NULL;
    TRY(script_new(conn, sql, &script));
    struct run_request request = {.script = script, .parsed = script->list.items.items[0]};
    wf_status status = first_row(conn, arena, &request, out_found, out);
    script_release(script);
    return status;
}

/* Printing is for the CPU. */
static FALLIBLE tuple_text(struct wf_connection *conn, struct arena *arena, const char *sql,
                           bool *out_found, struct sv *out) {
    i64 device = conn->settings.device;
    conn->settings.device = DEVICE_CPU;
    wf_status status = first_text(conn, arena, sql, out_found, out);
    conn->settings.device = device;
    return status;
}

/* All tuples of a derived predicate as LogiQL shows them. */
static void print_shown(struct text *sql, const struct object *derived) {
    text_print(sql, "logiql($$ _(");
    for (u32 i = 0; i < derived->col_count; i++) {
        text_print(sql, "%s%s", i ? ", " : "", derived->col_names[i]);
    }
    text_print(sql, ") <- %s(", derived->name);
    for (u32 i = 0; i < derived->col_count; i++) {
        text_print(sql, "%s%s", i ? ", " : "", derived->col_names[i]);
    }
    text_print(sql, "). $$)");
}

/* The first tuple of what must be empty, as text, with names of entities. That there is one shows on
 * any device; printing it is for the CPU. */
FALLIBLE logiql_holds(struct wf_connection *conn, struct arena *arena,
                      const struct object *constraint) {
    struct text name, sql;
    struct sv tuple = {"", 0};
    bool found = false;
    text_init(&name, arena);
    text_init(&sql, arena);
    print_sql_name(&name, constraint->name);
    text_print(&sql, "select concat_ws(', '");
    for (u32 i = 0; i < constraint->col_count; i++) {
        text_print(&sql, ", coalesce(cast(");
        print_sql_name(&sql, constraint->col_names[i]);
        text_print(&sql, " as text), 'NULL')");
    }
    text_print(&sql, "%s) from ", constraint->col_count ? "" : ", ''");
    if (constraint->col_count) {
        print_shown(&sql, constraint);
    } else {
        text_append(&sql, (struct sv){name.ptr, name.len});
    }
    text_print(&sql, " limit 1");
    const char *any = arena_printf(arena, "select 1 from %s limit 1", name.ptr);
    TRY(arena_check(arena, &conn->err));
    TRY(first_text(conn, arena, any, &found, NULL));
    if (!found) {
        return ERR_OK;
    }
    TRY(tuple_text(conn, arena, sql.ptr, &found, &tuple));
    FAIL(&conn->err, CHECK, "%.300s is violated by (%.*s)",
         constraint->comment ? constraint->comment : constraint->name, (int)MIN_OF(tuple.len, 200),
         tuple.ptr);
}

/* --- rules of one statement --- */

/* The statement that looks whether a check's claims hold, and its program. */
struct check_run {
    struct script *script;
    struct compiled *compiled;
    i64 compile_count;
};

static void print_violations(struct text *sql, struct sv clauses) {
    text_print(sql, "logiql(");
    print_quoted(sql, clauses);
    text_print(sql, ")");
}

static FALLIBLE claim_fails(struct wf_connection *conn, struct arena *arena, struct sv text,
                            const struct rule_claim *claim, bool *out_fails) {
    struct sv tuple = {"", 0};
    struct text sql, clauses;
    text_init(&sql, arena);
    text_init(&clauses, arena);
    text_append(&clauses, text);
    text_append(&clauses, sv_from(claim->query));
    TRY(arena_check(arena, &conn->err));
    text_print(&sql, "select concat_ws(', '");
    for (i32 i = 0; i < claim->col_count; i++) {
        text_print(&sql, ", coalesce(cast(c%d as text), 'NULL')", i);
    }
    text_print(&sql, ") from ");
    print_violations(&sql, (struct sv){clauses.ptr, clauses.len});
    for (i32 i = 0; i < claim->col_count; i++) {
        text_print(&sql, i ? ", c%d" : " v(c%d", i);
    }
    text_print(&sql, ") limit 1");
    TRY(arena_check(arena, &conn->err));
    TRY(tuple_text(conn, arena, sql.ptr, out_fails, &tuple));
    if (*out_fails) {
        FAIL_AT(&conn->err, CHECK, claim->position, "%.300s is violated by (%.*s)", claim->what,
                (int)MIN_OF(tuple.len, 200), tuple.ptr);
    }
    return ERR_OK;
}

/* The first claim that does not hold. */
static FALLIBLE claims_fail(struct wf_connection *conn, struct arena *arena,
                            const struct rule_check *check) {
    bool fails = false;
    for (i64 i = 0; i < check->count; i++) {
        TRY(claim_fails(conn, arena, check->text, &check->claims[i], &fails));
    }
    FAIL_AT(&conn->err, CHECK, check->claims[0].position, "%.300s is violated",
            check->claims[0].what); /* by rows of a file that has changed meanwhile */
}

static FALLIBLE check_holds(struct wf_connection *conn, struct arena *arena,
                            const struct rule_check *check, struct check_run *run) {
    bool found = false;
    if (!run->script) {
        struct text sql;
        text_init(&sql, arena);
        text_print(&sql, "select 1 from ");
        print_violations(&sql, sv_from(check->clauses));
        text_print(&sql, " limit 1");
        TRY(arena_check(arena, &conn->err));
        TRY(script_new(conn, sql.ptr, &run->script));
    }
    struct run_request request = {.script = run->script,
                                  .parsed = run->script->list.items.items[0],
                                  .cache = &run->compiled,
                                  .compile_count = &run->compile_count};
    TRY(first_row(conn, arena, &request, &found, NULL));
    return found ? claims_fail(conn, arena, check) : ERR_OK;
}

FALLIBLE checks_hold(struct wf_connection *conn, struct compiled *c) {
    i64 count = c->plan->checks.count;
    if (count == 0 || conn->checking) {
        return ERR_OK;
    }
    struct arena arena;
    char path[sizeof conn->search_path];
    wf_status status = ERR_OK;
    if (!c->check_runs) {
        struct check_run *runs = NEW_ARRAY(&c->arena, struct check_run, count);
        TRY(arena_check(&c->arena, &conn->err));
        c->check_runs = runs;
    }
    arena_init(&arena, &conn->db->mem);
    memcpy(path, conn->search_path, sizeof path);
    conn->checking = 1;
    for (i64 i = 0; i < count && !status; i++) {
        const struct rule_check *check = c->plan->checks.items[i];
        snprintf(conn->search_path, sizeof conn->search_path, "%s", check->path);
        status = check_holds(conn, &arena, check, &c->check_runs[i]);
    }
    if (status && status != ERR_CHECK) {
        conn->err.position = -1; /* of the check's own text */
    }
    conn->checking = 0;
    memcpy(conn->search_path, path, sizeof path);
    arena_fini(&arena);
    return status;
}

void checks_release(struct compiled *c) {
    for (i64 i = 0; c->check_runs && i < c->plan->checks.count; i++) {
        compiled_release(c->check_runs[i].compiled);
        script_release(c->check_runs[i].script);
    }
}

void checks_explain(const struct compiled *c, struct text *out) {
    for (i64 i = 0; i < c->plan->checks.count; i++) {
        const struct rule_check *check = c->plan->checks.items[i];
        for (i64 k = 0; k < check->count; k++) {
            text_print(out, "looked at before: %s\n", check->claims[k].what);
        }
    }
}

/* --- constraints of the database --- */

FALLIBLE logiql_constraints(struct wf_connection *conn, const struct edition *before) {
    struct arena arena;
    struct edition *now = edition_retain(conn->tx.mine);
    wf_status status = ERR_OK;
    arena_init(&arena, &conn->db->mem);
    struct reached reached = {.arena = &arena};
    reach_all(&reached, before, now, now);
    status = arena_check(&arena, &conn->err);
    for (i64 i = 0; i < reached.oids.count && !status; i++) {
        const struct edition_entry *entry = edition_find_oid(now, reached.oids.items[i]);
        if (entry && logiql_is_constraint(entry->object)) {
            status = logiql_holds(conn, &arena, entry->object);
        }
    }
    arena_fini(&arena);
    edition_release(now);
    return status;
}

static bool has_reached(const struct reached *r, u32 oid) {
    bool found = false;
    for (i64 i = 0; i < r->oids.count && !found; i++) {
        found = r->oids.items[i] == oid;
    }
    return found;
}

/* Constraints of the list over the outcome, which nobody has seen: as if the transaction had begun with what
 * others made. Kept rows are brought up to date as ever; a failure leaves none of them. */
static FALLIBLE hold_in(struct wf_connection *conn, const struct meeting *m,
                        const struct reached *reached) {
    struct tx *tx = &conn->tx;
    struct edition *mine = tx->mine, *base = tx->base;
    wf_status status = ERR_OK;
    keep_forget(conn);
    tx->mine = edition_retain(m->merged);
    tx->base = edition_retain(m->now);
    tx->depth++; /* what reads them ends no transaction */
    for (i64 i = 0; i < reached->oids.count && !status; i++) {
        const struct edition_entry *entry = edition_find_oid(m->merged, reached->oids.items[i]);
        if (entry && logiql_is_constraint(entry->object)) {
            status = logiql_holds(conn, reached->arena, entry->object);
        }
    }
    tx->depth--;
    if (status) {
        keep_forget(conn);
    }
    edition_release(tx->mine);
    edition_release(tx->base);
    tx->mine = mine;
    tx->base = base;
    return status;
}

FALLIBLE logiql_recheck(struct wf_connection *conn, const struct meeting *m) {
    struct arena arena;
    arena_init(&arena, &conn->db->mem);
    struct reached mine = {.arena = &arena}, theirs = {.arena = &arena}, both = {.arena = &arena};
    bool any = false;
    reach_all(&mine, m->base, m->mine, m->merged);
    for (i64 i = 0; i < mine.oids.count && !any; i++) {
        const struct edition_entry *entry = edition_find_oid(m->merged, mine.oids.items[i]);
        any = entry && logiql_is_constraint(entry->object);
    }
    if (any) {
        reach_all(&theirs, m->base, m->now, m->merged);
    }
    for (i64 i = 0; i < mine.oids.count; i++) {
        if (has_reached(&theirs, mine.oids.items[i])) {
            reach(&both, mine.oids.items[i]);
        }
    }
    wf_status status = arena_check(&arena, &conn->err);
    if (!status && both.oids.count) {
        status = hold_in(conn, m, &both);
    }
    arena_fini(&arena);
    return status;
}

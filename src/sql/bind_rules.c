/* bind_rules.c: rules of LogiQL as relations: the function logiql('…') in FROM, and views whose text
 * is clauses.
 *
 * Part of binding. The snapshot names who knows the language (struct rule_binder); the other way
 * round rules may read views of SQL, which are bound here for them. A mistake in clauses that the
 * statement spells out is reported where it stands in the statement. */
#include "sql/sql_int.h"

struct own_views {
    struct view_binder binder;
    struct bind *b;
    i32 position;
};

static wf_status bind_own_view(struct view_binder *binder, const struct object *view,
                               struct bound_relation *out) {
    struct own_views *own = (struct own_views *)binder;
    struct select_out result;
    TRY(bind_view_query(own->b, view, own->position, &result));
    *out = (struct bound_relation){result.rel, result.names, NULL};
    return ERR_OK;
}

/* Once, however often a view is named. */
static void add_check(struct bind *b, const struct rule_check *check) {
    for (i64 i = 0; i < b->plan->checks.count; i++) {
        const struct rule_check *other = b->plan->checks.items[i];
        if (strcmp(other->clauses, check->clauses) == 0 && strcmp(other->path, check->path) == 0) {
            return;
        }
    }
    VEC_PUSH(b->arena, &b->plan->checks, check);
}

void bind_checks_place(struct bind *b, i64 first, i32 position) {
    for (i64 i = first; i < b->plan->checks.count; i++) {
        const struct rule_check *check = b->plan->checks.items[i];
        for (i64 k = 0; k < check->count; k++) {
            check->claims[k].position = position;
        }
    }
}

FALLIBLE bind_rules(struct bind *b, const struct rule_request *request, i32 literal, i32 position,
                    struct select_out *out) {
    struct own_views own = {{bind_own_view}, b, position};
    struct rule_request asked = *request;
    struct bound_relation bound = {NULL, NULL, NULL};
    if (!b->snap->rules) {
        return unsupported(b, position, "rules in a definition");
    }
    asked.views = &own.binder;
    TRY(b->snap->rules->bind(b->snap->rules, b->plan, b->snap, &asked, &bound, b->err));
    for (i64 i = 0; bound.check && i < bound.check->count; i++) {
        struct rule_claim *claim = &bound.check->claims[i];
        claim->position = sql_literal_place(b->parsed->script, literal, claim->position);
    }
    if (bound.check) {
        add_check(b, bound.check);
    }
    bind_origins(b);
    rel_place(b->arena, bound.rel, position);
    out->rel = bound.rel;
    out->names = NEW_ARRAY(b->arena, const char *, bound.rel->out.count + 1);
    for (i64 i = 0; i < bound.rel->out.count; i++) {
        out->names[i] = keep(b, bound.names[i]);
    }
    return ERR_OK;
}

i32 sql_literal_place(struct sv script, i32 literal, i32 at) {
    i64 i = literal;
    if (literal < 0 || literal >= script.len || at < 0) {
        return literal;
    }
    if (script.ptr[i] == '$') {
        i64 tag = i + 1;
        while (tag < script.len && script.ptr[tag] != '$') {
            tag++;
        }
        return (i32)MIN_OF(tag + 1 + at, script.len);
    }
    for (i++; at > 0 && i < script.len; at--, i++) {
        i += script.ptr[i] == '\'';
    }
    return (i32)MIN_OF(i, script.len);
}

FALLIBLE bind_rules_call(struct bind *b, const struct json *call, struct select_out *out) {
    const struct json *args = json_get(call, "args");
    const struct json *arg = json_first(args);
    i32 position = json_position(call);
    struct query q = {.clause = "functions in FROM"};
    struct expr *text = NULL;
    struct sv clauses = {NULL, 0};
    if (json_count(args) == 1) {
        TRY(bind_expr(b, &q, arg, &text));
    }
    if (!text || text->is_null || !literal_text(text, &clauses)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position,
                "logiql takes clauses as one text, as in logiql('_(x) <- t(x).')");
    }
    TRY(bind_call_plain(b, call, "logiql"));
    struct rule_request request = {.text = clauses};
    wf_status status = bind_rules(b, &request, text->position, position, out);
    if (status) {
        b->err->position =
            b->err->position >= 0
                ? sql_literal_place(b->parsed->script, text->position, b->err->position)
                : position;
    }
    return status;
}

/* bind_with.c: WITH queries and the subplans that several places share.
 *
 * Part of binding. A WITH query is bound at its first use; every use is a SHARED operator over that
 * one plan, with columns of its own. When the statement is complete, a plan with a single user is
 * not shared after all (unless MATERIALIZED says so) and its SHARED becomes a projection, through
 * which the optimiser can see. A WITH query that uses columns of an outer query cannot be computed
 * once; it is bound anew at each use. */
#include "sql/sql_int.h"

static FALLIBLE check_name(struct bind *b, const struct cte *ctes, const struct cte *until,
                           const char *name, i32 position) {
    for (; ctes != until; ctes = ctes->outer) {
        if (strcmp(ctes->name, name) == 0) {
            FAIL_AT(b->err, DUPLICATE_ALIAS, position,
                    "WITH query name \"%.100s\" specified more than once", name);
        }
    }
    return ERR_OK;
}

FALLIBLE bind_with(struct bind *b, const struct json *with, struct query *outer,
                   const struct cte **io_ctes) {
    if (!with) {
        return ERR_OK;
    }
    const struct cte *outside = *io_ctes;
    bool recursive = json_flag(with, "recursive");
    VEC(struct cte *) made = {0};
    TRY(bind_only(b, with, "ctes location recursive", json_position(with)));
    JSON_EACH(node, json_get(with, "ctes")) {
        const struct json *body = node_body(node);
        i32 position = json_position(body);
        TRY(bind_only(b, body,
                      "ctename aliascolnames ctematerialized ctequery location cterecursive "
                      "search_clause cycle_clause",
                      position));
        const struct json *query = json_get(body, "ctequery");
        if (!node_is(query, "SelectStmt")) {
            return unsupported(b, position, "WITH of anything but SELECT");
        }
        const char *name = json_text(body, "ctename");
        name = name ? name : "";
        TRY(check_name(b, *io_ctes, outside, name, position));
        struct cte *cte = NEW(b->arena, struct cte);
        *cte = (struct cte){.name = name,
                            .body = body,
                            .outer = *io_ctes,
                            .outer_query = outer,
                            .recursive = recursive,
                            .scope = *io_ctes,
                            .result = NEW(b->arena, struct cte_result)};
        *io_ctes = cte;
        VEC_PUSH(b->arena, &made, cte);
    }
    for (i64 i = 0; recursive && i < made.count; i++) {
        made.items[i]->scope = *io_ctes;
    }
    if (recursive) {
        bind_find_groups(b, made.items, made.count);
    }
    return ERR_OK;
}

static FALLIBLE bind_body(struct bind *b, const struct cte *cte, struct select_out *out) {
    const struct json *query = node_body(json_get(cte->body, "ctequery"));
    if (cte->group) {
        return bind_mutual(b, cte, out);
    }
    if (bind_names_itself(cte)) {
        return bind_recursion(b, cte, out);
    }
    if (json_get(cte->body, "search_clause") || json_get(cte->body, "cycle_clause")) {
        FAIL_AT(b->err, SYNTAX, json_position(cte->body), "WITH query is not recursive");
    }
    TRY(bind_subselect(b, query, cte->scope, cte->outer_query, false, out));
    return bind_cte_names(b, cte, out);
}

FALLIBLE bind_cte_names(struct bind *b, const struct cte *cte, struct select_out *out) {
    const struct json *names = json_get(cte->body, "aliascolnames");
    i64 count = out->rel->out.count;
    if (json_count(names) > count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, json_position(cte->body),
                "WITH query \"%.100s\" has %lld columns available but %d columns specified",
                cte->name, count, (int)json_count(names));
    }
    const char **given = NEW_ARRAY(b->arena, const char *, count + 1);
    for (i64 k = 0; k < count; k++) {
        given[k] = out->names[k];
    }
    i64 i = 0;
    JSON_EACH(name, names) {
        given[i++] = keep(b, node_string(name));
    }
    out->names = given;
    return ERR_OK;
}

/* A WITH query that nobody uses is still checked. */
FALLIBLE bind_with_unused(struct bind *b, const struct cte *ctes, const struct cte *until) {
    for (; ctes != until; ctes = ctes->outer) {
        struct select_out ignored;
        if (!ctes->result->used && !ctes->result->rel) {
            TRY(bind_body(b, ctes, &ignored));
        }
    }
    return ERR_OK;
}

struct rel *bind_shared(struct bind *b, struct rel *input) {
    struct rel *shared =
        rel_shared(b->plan, input, input->out.items, NULL, input->out.count);
    bind_origins(b);
    for (i64 i = 0; i < shared->out.count; i++) {
        u32 col = shared->out.items[i];
        b->origins.items[col].name = b->plan->cols.items[col].name;
    }
    return shared;
}

static void note_draws(struct rel *rel, void *arg) {
    *(bool *)arg = *(bool *)arg || rel_is_serial(rel);
}

FALLIBLE bind_cte_use(struct bind *b, const struct cte *cte, struct select_out *out) {
    struct cte_result *result = cte->result;
    result->used = 1;
    if (result->draft) {
        out->rel = bind_fix_atom(b, result->draft, result->relation);
        out->names = result->names;
        return ERR_OK;
    }
    if (!result->rel && cte->group) {
        TRY(bind_body(b, cte, out));
    } else if (!result->rel) {
        TRY(bind_body(b, cte, out));
        if (rel_free_cols(b->plan, out->rel, NULL) > 0) {
            return ERR_OK;
        }
        result->rel = out->rel;
        result->names = out->names;
        bool draws = false; /* then a subquery that is asked often asks for its rows once */
        rel_each(b->arena, out->rel, note_draws, &draws);
        if (draws || json_is(cte->body, "ctematerialized", "CTEMaterializeAlways")) {
            VEC_PUSH(b->arena, &b->materialized, (const struct rel *)out->rel);
        }
    }
    out->names = result->names;
    out->rel = cte->group ? bind_mutual_rows(b, result) : bind_shared(b, result->rel);
    return ERR_OK;
}

struct shared_use {
    const struct rel *input;
    struct rel *user;
    i64 users;
};
struct use_list {
    struct bind *b;
    VEC(struct shared_use) items;
};

static void count_use(struct rel *rel, void *arg) {
    struct use_list *list = arg;
    if (!rel_shares(rel)) {
        return;
    }
    for (i64 i = 0; i < list->items.count; i++) {
        if (list->items.items[i].input == rel_input(rel)) {
            list->items.items[i].users++;
            return;
        }
    }
    struct shared_use use = {rel_input(rel), rel, 1};
    VEC_PUSH(list->b->arena, &list->items, use);
}

static bool stays_shared(const struct bind *b, const struct shared_use *use) {
    bool stays = use->users > 1;
    for (i64 i = 0; i < b->materialized.count; i++) {
        stays = stays || b->materialized.items[i] == use->input;
    }
    return stays;
}

void bind_inline_shared(struct bind *b, struct rel *root) {
    struct use_list list = {.b = b};
    rel_each(b->arena, root, count_use, &list);
    for (i64 i = 0; i < list.items.count; i++) {
        struct rel *rel = list.items.items[i].user;
        if (stays_shared(b, &list.items.items[i])) {
            continue;
        }
        rel_unshare(b->plan, rel);
    }
}

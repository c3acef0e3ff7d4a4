/* constraint.c: constraints as rules.
 *
 * `f -> g.` says that there is no f without g. What violates it is a predicate: its tuples are the
 * values of f's variables, its name is `constraint:` and a number made of the clause, so that the
 * same clause is the same constraint. It is kept as any rules are, and must stay empty; `session/`
 * looks after every change. What has to hold of rules that one query has of its own is looked at before
 * its statement runs (decision 0096). */
#include "logiql/bind_int.h"

#include <stdio.h>

static void note_variable(struct lq_bind *b, lq_exprs *list, struct lq_expr *e) {
    if (e->kind == LQ_VARIABLE) {
        for (i64 i = 0; i < list->count; i++) {
            if (sv_eq(list->items[i]->text, e->text)) {
                return;
            }
        }
        VEC_PUSH(b->arena, list, e);
    }
    for (i64 i = 0; i < e->args.count; i++) {
        note_variable(b, list, e->args.items[i]);
    }
}

/* Variables of a conjunction, but those of what it negates. */
static void note_variables(struct lq_bind *b, lq_exprs *list, const lq_conj *conj) {
    for (i64 i = 0; i < conj->count; i++) {
        const struct lq_lit *lit = conj->items[i];
        for (i32 k = 0; lit->kind == LQ_ATOM && k < atom_arity(lit->atom); k++) {
            note_variable(b, list, (struct lq_expr *)(size_t)atom_arg(lit->atom, k));
        }
        for (i64 k = 0; lit->kind == LQ_COMPARE && k < lit->terms.count; k++) {
            note_variable(b, list, lit->terms.items[k]);
        }
    }
}

/* Those that all alternatives have. */
static lq_exprs common_variables(struct lq_bind *b, const lq_conjs *bodies) {
    lq_exprs common = {0};
    lq_exprs first = {0};
    note_variables(b, &first, bodies->items[0]);
    for (i64 i = 0; i < first.count; i++) {
        bool all = true;
        for (i64 k = 1; k < bodies->count; k++) {
            lq_exprs other = {0};
            note_variables(b, &other, bodies->items[k]);
            i64 before = other.count;
            note_variable(b, &other, first.items[i]);
            all = all && other.count == before;
        }
        if (all) {
            VEC_PUSH(b->arena, &common, first.items[i]);
        }
    }
    return common;
}

static struct lq_clause *violations(struct lq_bind *b, struct sv text, const lq_exprs *variables,
                                    const lq_conjs *bodies, i32 position) {
    struct lq_clause *rule = NEW(b->arena, struct lq_clause);
    struct lq_atom *head = NEW(b->arena, struct lq_atom);
    struct lq_formula *body = NEW(b->arena, struct lq_formula);
    u64 hash = sv_hash(text);
    head->name = sv_from(arena_printf(b->arena, "constraint:c%08x", (unsigned)(hash ^ hash >> 32)));
    head->position = rule->position = position;
    head->keys = *variables;
    for (i64 i = 0; i < bodies->count; i++) {
        VEC_PUSH(b->arena, &body->any, (lq_conj *)(size_t)bodies->items[i]);
    }
    rule->kind = LQ_RULE;
    rule->body = body;
    VEC_PUSH(b->arena, &rule->heads, head);
    return rule;
}

FALLIBLE constraint_rule(struct lq_bind *b, const struct lq_clause *clause,
                         struct lq_clause **out) {
    lq_conjs bodies = {0};
    struct text text;
    text_init(&text, b->arena);
    lq_print_clause(clause, &text);
    if (clause->body) {
        TRY(lq_expand(b, clause->body, &bodies));
    } else {
        VEC_PUSH(b->arena, &bodies, NEW(b->arena, lq_conj));
    }
    if (clause->claim) {
        struct lq_lit *not = NEW(b->arena, struct lq_lit);
        struct lq_lit *group = NEW(b->arena, struct lq_lit);
        *group = (struct lq_lit){
            .kind = LQ_GROUP, .position = clause->position, .formula = clause->claim};
        *not = (struct lq_lit){.kind = LQ_NOT, .position = clause->position, .inner = group};
        struct lq_formula *all = NEW(b->arena, struct lq_formula);
        for (i64 i = 0; i < bodies.count; i++) {
            VEC_PUSH(b->arena, (lq_conj *)(size_t)bodies.items[i], not );
            VEC_PUSH(b->arena, &all->any, (lq_conj *)(size_t)bodies.items[i]);
        }
        bodies = (lq_conjs){0};
        TRY(lq_expand(b, all, &bodies));
    }
    lq_exprs variables = common_variables(b, &bodies);
    *out = violations(b, (struct sv){text.ptr, text.len}, &variables, &bodies, clause->position);
    return arena_check(b->arena, b->err);
}

struct lq_expr *variable_new(struct lq_bind *b, const char *name) {
    struct lq_expr *e = NEW(b->arena, struct lq_expr);
    *e = (struct lq_expr){.kind = LQ_VARIABLE, .position = -1, .text = sv_from(name)};
    return e;
}

/* One tuple of the predicate: keys, and the named value in its column. */
static struct lq_lit *tuple_of(struct lq_bind *b, const struct lq_pred *pred, const lq_exprs *keys,
                               i32 col, struct lq_expr *value) {
    struct lq_lit *lit = NEW(b->arena, struct lq_lit);
    struct lq_atom *atom = NEW(b->arena, struct lq_atom);
    *atom = (struct lq_atom){.position = -1, .name = pred->name};
    *lit = (struct lq_lit){.kind = LQ_ATOM, .position = -1, .atom = atom};
    for (i32 i = 0; i < pred->arity; i++) {
        struct lq_expr *any = NEW(b->arena, struct lq_expr);
        *any = (struct lq_expr){.kind = LQ_ANY, .position = -1, .text = SV("_")};
        VEC_PUSH(b->arena, &atom->keys,
                 i < pred->key_count ? keys->items[i]
                 : i == col          ? value
                                     : any);
    }
    return lit;
}

struct lq_clause *dependency_rule(struct lq_bind *b, const struct lq_pred *pred, i32 col) {
    lq_exprs variables = {0};
    for (i32 i = 0; i < pred->key_count; i++) {
        VEC_PUSH(b->arena, &variables, variable_new(b, arena_printf(b->arena, "k%d", i + 1)));
    }
    lq_exprs keys = variables;
    struct lq_expr *first = variable_new(b, "a");
    struct lq_expr *second = variable_new(b, "b");
    struct lq_lit *differ = NEW(b->arena, struct lq_lit);
    *differ = (struct lq_lit){.kind = LQ_COMPARE, .position = -1};
    VEC_PUSH(b->arena, &differ->terms, first);
    VEC_PUSH(b->arena, &differ->terms, second);
    bool entities = kind_of(pred, col).len > 0; /* those have no order */
    VEC_PUSH(b->arena, &differ->compares, (u8)(entities ? LQ_NE : LQ_LT));
    VEC_PUSH(b->arena, &differ->compare_positions, -1);
    lq_conj *conj = NEW(b->arena, lq_conj);
    VEC_PUSH(b->arena, conj, tuple_of(b, pred, &keys, col, first));
    VEC_PUSH(b->arena, conj, tuple_of(b, pred, &keys, col, second));
    VEC_PUSH(b->arena, conj, differ);
    lq_conjs bodies = {0};
    VEC_PUSH(b->arena, &bodies, conj);
    VEC_PUSH(b->arena, &variables, first);
    VEC_PUSH(b->arena, &variables, second);
    const char *text = arena_printf(b->arena, "%s[] %d", pred->name.ptr, col);
    return violations(b, sv_from(text), &variables, &bodies, pred->position);
}

bool is_dependent(const struct lq_pred *pred) {
    return pred->key_count >= 0 && pred->key_count < pred->arity && !pred->one_value;
}

const char *dependency_text(struct lq_bind *b, const struct lq_pred *pred) {
    return arena_printf(b->arena, "that %s[…] has one value", pred->name.ptr);
}

/* --- rules of one query --- */

static bool is_local(const struct lq_pred *pred) {
    return pred->origin == ORIGIN_RULES && pred->rules.count > 0 && pred->rules.items[0]->own;
}

/* The rule as a query behind the text; not `whole`: for whether there is a row. */
static void print_query(struct lq_clause *rule, bool whole, struct text *out) {
    struct lq_atom *head = rule->heads.items[0];
    head->name = SV(LQ_VIOLATIONS);
    head->keys.count = whole ? head->keys.count : 0;
    text_append(out, SV("\n"));
    lq_print_clause(rule, out);
}

void local_claims(struct lq_bind *b, struct sv text, struct rule_check **out) {
    const char *path = b->snap->path ? b->snap->path : "";
    struct rule_check check = {.text = arena_sv(b->arena, text),
                               .path = arena_printf(b->arena, "%s", path)};
    VEC(struct rule_claim) claims = {0};
    struct text any;
    text_init(&any, b->arena);
    text_append(&any, text);
    for (i64 i = 0; i < b->order.count; i++) {
        const struct lq_pred *pred = b->order.items[i];
        for (i32 c = pred->key_count; is_local(pred) && is_dependent(pred) && c < pred->arity;
             c++) {
            struct rule_claim claim = {dependency_text(b, pred), NULL, pred->key_count + 2,
                                       pred->rules.items[0]->head->position};
            struct text one;
            text_init(&one, b->arena);
            struct lq_clause *rule = dependency_rule(b, pred, c);
            print_query(rule, true, &one);
            print_query(rule, false, &any);
            claim.query = one.ptr;
            VEC_PUSH(b->arena, &claims, claim);
        }
    }
    if (claims.count > 0) {
        check.clauses = any.ptr;
        check.claims = claims.items;
        check.count = claims.count;
        *out = NEW(b->arena, struct rule_check);
        **out = check;
    }
}

/* rule.c: clauses to rules: one head over one conjunction each.
 *
 * `a ; b` becomes two rules, and so do several heads. Below a negation alternatives become several
 * negations, so that what is negated is a conjunction everywhere. */
#include "logiql/bind_int.h"

enum { ALTERNATIVES_MOST = 256 };

static struct lq_lit *lit_new(struct lq_bind *b, u8 kind, i32 position) {
    struct lq_lit *lit = NEW(b->arena, struct lq_lit);
    lit->kind = kind;
    lit->position = position;
    return lit;
}

static void append_all(struct lq_bind *b, lq_conj *to, const lq_conj *from) {
    for (i64 i = 0; i < from->count; i++) {
        VEC_PUSH(b->arena, to, from->items[i]);
    }
}

/* Every conjunction so far with every one of `with`. */
static FALLIBLE multiply(struct lq_bind *b, lq_conjs *io, const lq_conjs *with, i32 position) {
    lq_conjs all = {0};
    if (io->count * with->count > ALTERNATIVES_MOST) {
        FAIL_AT(b->err, TOO_COMPLEX, position, "more than %d alternatives in a rule",
                ALTERNATIVES_MOST);
    }
    for (i64 i = 0; i < io->count; i++) {
        for (i64 k = 0; k < with->count; k++) {
            lq_conj *conj = NEW(b->arena, lq_conj);
            append_all(b, conj, io->items[i]);
            append_all(b, conj, with->items[k]);
            VEC_PUSH(b->arena, &all, conj);
        }
    }
    *io = all;
    return ERR_OK;
}

/* What is not: one negation for each alternative; !!f is f. */
static FALLIBLE expand_not(struct lq_bind *b, const struct lq_lit *lit, lq_conjs *io) {
    const struct lq_lit *inner = lit->inner;
    lq_conjs parts = {0};
    while (inner->kind == LQ_GROUP && inner->formula->any.count == 1 &&
           inner->formula->any.items[0]->count == 1) {
        inner = inner->formula->any.items[0]->items[0];
    }
    if (inner->kind == LQ_NOT) {
        struct lq_formula *formula = NEW(b->arena, struct lq_formula);
        lq_conj *conj = NEW(b->arena, lq_conj);
        VEC_PUSH(b->arena, conj, inner->inner);
        VEC_PUSH(b->arena, &formula->any, conj);
        TRY(lq_expand(b, formula, &parts));
        return multiply(b, io, &parts, lit->position);
    }
    if (inner->kind == LQ_GROUP) {
        TRY(lq_expand(b, inner->formula, &parts));
    } else {
        lq_conj *conj = NEW(b->arena, lq_conj);
        VEC_PUSH(b->arena, conj, (struct lq_lit *)(size_t)inner);
        VEC_PUSH(b->arena, &parts, conj);
    }
    lq_conj *nots = NEW(b->arena, lq_conj);
    for (i64 i = 0; i < parts.count; i++) {
        struct lq_lit *not = lit_new(b, LQ_NOT, lit->position);
        not ->inner = lit_new(b, LQ_GROUP, lit->position);
        not ->inner->formula = NEW(b->arena, struct lq_formula);
        VEC_PUSH(b->arena, &not ->inner->formula->any, (lq_conj *)(size_t)parts.items[i]);
        VEC_PUSH(b->arena, nots, not );
    }
    lq_conjs one = {0};
    VEC_PUSH(b->arena, &one, nots);
    return multiply(b, io, &one, lit->position);
}

static FALLIBLE expand_conj(struct lq_bind *b, const lq_conj *conj, lq_conjs *out) {
    lq_conjs all = {0};
    VEC_PUSH(b->arena, &all, NEW(b->arena, lq_conj));
    for (i64 i = 0; i < conj->count; i++) {
        struct lq_lit *lit = conj->items[i];
        if (lit->kind == LQ_NOT) {
            TRY(expand_not(b, lit, &all));
        } else if (lit->kind == LQ_GROUP) {
            lq_conjs parts = {0};
            TRY(lq_expand(b, lit->formula, &parts));
            TRY(multiply(b, &all, &parts, lit->position));
        } else {
            for (i64 k = 0; k < all.count; k++) {
                VEC_PUSH(b->arena, (lq_conj *)(size_t)all.items[k], lit);
            }
        }
    }
    for (i64 i = 0; i < all.count; i++) {
        VEC_PUSH(b->arena, out, all.items[i]);
    }
    return ERR_OK;
}

FALLIBLE lq_expand(struct lq_bind *b, const struct lq_formula *formula, lq_conjs *out) {
    for (i64 i = 0; i < formula->any.count; i++) {
        TRY(expand_conj(b, formula->any.items[i], out));
    }
    if (formula->any.count == 0) {
        VEC_PUSH(b->arena, out, NEW(b->arena, lq_conj));
    }
    return ERR_OK;
}

/* What a head says of its predicate must agree with what others say. */
FALLIBLE pred_check_form(struct lq_bind *b, struct lq_pred *pred, const struct lq_atom *head,
                         i32 position) {
    i32 arity = atom_arity(head);
    bool functional = head->form != LQ_PLAIN;
    if (pred->arity >= 0 && pred->arity != arity) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "predicate \"%.100s\" has %d arguments, not %d", pred->name.ptr, pred->arity,
                arity);
    }
    if (pred->arity < 0) {
        pred->arity = arity;
        pred->names = head_names(b->arena, head);
    }
    if (functional && pred->key_count < 0) {
        pred->key_count = (i32)head->keys.count;
    }
    if (functional && pred->key_count != head->keys.count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "predicate \"%.100s\" has %d keys, not %d", pred->name.ptr, pred->key_count,
                (int)head->keys.count);
    }
    return ERR_OK;
}

/* Columns are called after variables: those of the first head that has one there. */
static void name_columns(struct lq_bind *b, struct lq_pred *pred, const struct lq_atom *head) {
    const char **names = head_names(b->arena, head);
    for (i32 i = 0; i < pred->arity; i++) {
        bool made = strcmp(pred->names[i], arena_printf(b->arena, "x%d", i + 1)) == 0;
        bool free = true;
        for (i32 k = 0; k < pred->arity; k++) {
            free = free && strcmp(pred->names[k], names[i]) != 0;
        }
        if (made && free && atom_arg(head, i)->kind == LQ_VARIABLE) {
            pred->names[i] = names[i];
        }
    }
}

static FALLIBLE add_rule(struct lq_bind *b, const struct lq_clause *clause,
                         const struct lq_atom *head, const lq_conj *body, bool own) {
    struct lq_pred *pred = pred_known(b, head->name);
    i32 position = own ? head->position : -1;
    if (!pred || pred->origin == ORIGIN_TABLE) {
        pred = pred_new(b, head->name, ORIGIN_RULES);
    }
    pred->origin = ORIGIN_RULES;
    TRY(pred_check_form(b, pred, head, position));
    if (!pred->declared) {
        name_columns(b, pred, head);
    }
    pred->position = pred->position < 0 ? position : pred->position;
    struct lq_rule *rule = NEW(b->arena, struct lq_rule);
    *rule =
        (struct lq_rule){.pred = pred, .clause = clause, .head = head, .body = body, .own = own};
    VEC_PUSH(b->arena, &pred->rules, rule);
    return ERR_OK;
}

FALLIBLE clause_rules(struct lq_bind *b, const struct lq_clause *clause, bool own) {
    lq_conjs bodies = {0};
    if (clause->body) {
        TRY(lq_expand(b, clause->body, &bodies));
    } else {
        VEC_PUSH(b->arena, &bodies, NULL);
    }
    if (clause->fold && bodies.count > 1) {
        FAIL_AT(b->err, NOT_SUPPORTED, own ? clause->position : -1,
                "alternatives cannot be aggregated: derive them by rules of their own first");
    }
    for (i64 h = 0; h < clause->heads.count; h++) {
        for (i64 i = 0; i < bodies.count; i++) {
            TRY(add_rule(b, clause, clause->heads.items[h], bodies.items[i], own));
        }
    }
    return ERR_OK;
}

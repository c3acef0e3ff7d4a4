/* rule.c: clauses to rules: one head over one conjunction each; declarations.
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
static FALLIBLE check_form(struct lq_bind *b, struct lq_pred *pred, const struct lq_atom *head,
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
    TRY(check_form(b, pred, head, position));
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

/* --- declarations: p(x, y) -> int(x), string(y). --- */

/* The atom on the left of the arrow, where there is nothing else; f[k] = v is read as an equation. */
static const struct lq_atom *declared_atom(struct arena *arena, const struct lq_clause *clause) {
    const struct lq_formula *formula = clause->body;
    bool one = formula && formula->any.count == 1 && formula->any.items[0]->count == 1;
    const struct lq_lit *lit = one ? formula->any.items[0]->items[0] : NULL;
    if (!lit || lit->kind == LQ_ATOM) {
        return lit ? lit->atom : NULL;
    }
    if (lit->kind != LQ_COMPARE || lit->compares.count != 1 || lit->compares.items[0] != LQ_EQ ||
        lit->terms.items[0]->kind != LQ_APPLY) {
        return NULL;
    }
    const struct lq_expr *left = lit->terms.items[0];
    struct lq_atom *atom = NEW(arena, struct lq_atom);
    *atom = (struct lq_atom){.form = LQ_KEYED, .position = left->position, .name = left->text};
    atom->keys = left->args;
    VEC_PUSH(arena, &atom->values, lit->terms.items[1]);
    return atom;
}

static bool is_type_atom(const struct lq_lit *lit, struct type *out) {
    if (lit->kind != LQ_ATOM || atom_arity(lit->atom) != 1 ||
        atom_arg(lit->atom, 0)->kind != LQ_VARIABLE) {
        return false;
    }
    return lq_type_named(lit->atom->name, out);
}

static bool all_variables(const struct lq_atom *atom) {
    for (i32 i = 0; i < atom_arity(atom); i++) {
        if (atom_arg(atom, i)->kind != LQ_VARIABLE) {
            return false;
        }
    }
    return true;
}

bool is_declaration(struct arena *arena, const struct lq_clause *clause) {
    struct type type;
    const struct lq_atom *atom = declared_atom(arena, clause);
    if (clause->kind != LQ_CONSTRAINT || !atom || atom->delta || !all_variables(atom) ||
        !clause->claim || clause->claim->any.count != 1) {
        return false;
    }
    const lq_conj *claims = clause->claim->any.items[0];
    for (i64 i = 0; i < claims->count; i++) {
        if (!is_type_atom(claims->items[i], &type)) {
            return false;
        }
    }
    return claims->count > 0;
}

static FALLIBLE declared_type(struct lq_bind *b, const struct lq_clause *clause, struct sv name,
                              i32 position, struct type *out) {
    const lq_conj *claims = clause->claim->any.items[0];
    for (i64 i = 0; i < claims->count; i++) {
        if (sv_eq(atom_arg(claims->items[i]->atom, 0)->text, name)) {
            (void)is_type_atom(claims->items[i], out);
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, INDETERMINATE_TYPE, position, "the declaration says no type of %.*s",
            (int)MIN_OF(name.len, 100), name.ptr);
}

FALLIBLE declared_name(struct lq_bind *b, const struct lq_clause *clause, struct sv *out) {
    *out = declared_atom(b->arena, clause)->name;
    return arena_check(b->arena, b->err);
}

FALLIBLE declaration_fits(struct lq_bind *b, const struct lq_clause *clause,
                          const struct lq_pred *pred) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred copy = *pred;
    TRY(check_form(b, &copy, atom, atom->position));
    for (i32 i = 0; i < pred->arity; i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        struct type type;
        TRY(declared_type(b, clause, arg->text, arg->position, &type));
        TRY(classes_meet(b, expr_null(b->t, pred->types[i], -1), expr_null(b->t, type, -1),
                         arg->position));
    }
    return ERR_OK;
}

FALLIBLE declare(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred **out) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred *pred = pred_known(b, atom->name);
    pred = *out = pred ? pred : pred_new(b, atom->name, ORIGIN_LATER);
    TRY(check_form(b, pred, atom, atom->position));
    VEC_PUSH(b->arena, &pred->declarations, clause);
    struct type *types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
    for (i32 i = 0; i < pred->arity; i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        TRY(declared_type(b, clause, arg->text, arg->position, &types[i]));
    }
    for (i32 i = 0; pred->declared && i < pred->arity; i++) {
        if (!type_eq(types[i], pred->types[i])) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, atom->position,
                    "predicate \"%.100s\" is declared with other types before", pred->name.ptr);
        }
    }
    pred->types = types;
    pred->declared = 1;
    pred->position = pred->position < 0 ? atom->position : pred->position;
    pred->names = head_names(b->arena, atom);
    return ERR_OK;
}

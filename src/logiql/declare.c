/* declare.c: what clauses say of predicates before any rule is looked at: types, entities, refmodes,
 * constructors.
 *
 * p(x, y) -> int(x), q(y). declares p where int is a type and q an entity or a predicate of one: a
 * value of that kind. Kinds are told apart by the name of the entity, and are numbers to the plan.
 * Entities come first, then all declarations that name known kinds, until no more do: the order in
 * the text does not matter. What is left says something of the tuples: a constraint. */
#include "logiql/bind_int.h"

/* The atom on the left of the arrow, where there is nothing else; f[k] = v is read as an equation. */
static const struct lq_atom *atom_of(struct arena *arena, const struct lq_lit *lit) {
    if (lit->kind == LQ_ATOM) {
        return lit->atom;
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

static const struct lq_atom *declared_atom(struct arena *arena, const struct lq_clause *clause) {
    const struct lq_formula *formula = clause->body;
    bool one = formula && formula->any.count == 1 && formula->any.items[0]->count == 1;
    return one ? atom_of(arena, formula->any.items[0]->items[0]) : NULL;
}

static bool all_variables(const struct lq_atom *atom) {
    for (i32 i = 0; i < atom_arity(atom); i++) {
        if (atom_arg(atom, i)->kind != LQ_VARIABLE) {
            return false;
        }
    }
    return true;
}

/* --- kinds --- */

struct sv kind_of(const struct lq_pred *pred, i32 col) {
    return pred->kinds ? pred->kinds[col] : (struct sv){NULL, 0};
}

/* A predicate that may not be there. */
struct lq_pred *pred_look(struct lq_bind *b, struct sv name) {
    struct lq_pred *pred = pred_known(b, name);
    if (!pred && (pred_exists(b, name) || lq_is_qualified(name))) {
        if (pred_get(b, name, -1, &pred)) {
            error_reset(b->err);
            return NULL;
        }
    }
    return pred;
}

bool kind_named(struct lq_bind *b, struct sv name, struct sv *out) {
    struct lq_pred *pred = pred_look(b, name);
    bool known = pred && pred->arity == 1 && pred->types && kind_of(pred, 0).len > 0;
    *out = known ? kind_of(pred, 0) : (struct sv){NULL, 0};
    return known;
}

struct typed { /* what a declaration says of a variable */
    struct type type;
    struct sv kind;
    struct sv member; /* the predicate it named */
};

static bool is_type_atom(struct lq_bind *b, const struct lq_lit *lit, struct typed *out) {
    *out = (struct typed){.type = type_of(TYPE_BIGINT)};
    if (lit->kind != LQ_ATOM || lit->atom->delta || atom_arity(lit->atom) != 1 ||
        atom_arg(lit->atom, 0)->kind != LQ_VARIABLE) {
        return false;
    }
    if (lq_type_named(lit->atom->name, &out->type)) {
        return true;
    }
    out->member = lit->atom->name;
    return kind_named(b, lit->atom->name, &out->kind);
}

static FALLIBLE declared_type(struct lq_bind *b, const struct lq_clause *clause, struct sv name,
                              i32 position, struct typed *out) {
    const lq_conj *claims = clause->claim ? clause->claim->any.items[0] : NULL;
    for (i64 i = 0; claims && i < claims->count; i++) {
        const struct lq_lit *lit = claims->items[i];
        if (lit->kind == LQ_ATOM && atom_arity(lit->atom) == 1 &&
            sv_eq(atom_arg(lit->atom, 0)->text, name) && is_type_atom(b, lit, out)) {
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, INDETERMINATE_TYPE, position, "the declaration says no type of %.*s",
            (int)MIN_OF(name.len, 100), name.ptr);
}

/* --- declarations of types --- */

bool is_declaration(struct lq_bind *b, const struct lq_clause *clause) {
    struct typed typed;
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    if (clause->kind != LQ_CONSTRAINT || !atom || atom->delta || !all_variables(atom) ||
        !clause->claim || clause->claim->any.count != 1) {
        return false;
    }
    const lq_conj *claims = clause->claim->any.items[0];
    for (i64 i = 0; i < claims->count; i++) {
        if (!is_type_atom(b, claims->items[i], &typed)) {
            return false;
        }
    }
    return claims->count > 0;
}

static FALLIBLE declaration_fits(struct lq_bind *b, const struct lq_clause *clause,
                                 const struct lq_pred *pred) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred copy = *pred;
    TRY(pred_check_form(b, &copy, atom, atom->position));
    for (i32 i = 0; i < pred->arity; i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        struct typed typed;
        TRY(declared_type(b, clause, arg->text, arg->position, &typed));
        struct lq_value mine = {expr_null(b->t, pred->types[i], -1), kind_of(pred, i)};
        struct lq_value said = {expr_null(b->t, typed.type, -1), typed.kind};
        TRY(values_meet(b, mine, said, arg->position));
    }
    return ERR_OK;
}

FALLIBLE declare(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred **out) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred *pred = pred_known(b, atom->name);
    pred = *out = pred ? pred : pred_new(b, atom->name, ORIGIN_LATER);
    TRY(pred_check_form(b, pred, atom, atom->position));
    VEC_PUSH(b->arena, &pred->declarations, clause);
    struct type *types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
    struct sv *kinds = NEW_ARRAY(b->arena, struct sv, pred->arity + 1);
    struct sv *members = NEW_ARRAY(b->arena, struct sv, pred->arity + 1);
    for (i32 i = 0; i < pred->arity; i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        struct typed typed;
        TRY(declared_type(b, clause, arg->text, arg->position, &typed));
        types[i] = typed.type;
        kinds[i] = typed.kind;
        members[i] = typed.member;
    }
    for (i32 i = 0; pred->declared && i < pred->arity; i++) {
        if (!type_eq(types[i], pred->types[i]) || !sv_eq(kinds[i], kind_of(pred, i))) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, atom->position,
                    "predicate \"%.100s\" is declared with other types before", pred->name.ptr);
        }
    }
    pred->types = types;
    pred->kinds = kinds;
    pred->members = members;
    pred->declared = 1;
    pred->position = pred->position < 0 ? atom->position : pred->position;
    pred->names = head_names(b->arena, atom);
    return ERR_OK;
}

/* Types of columns that are there already; what a table was declared with. */
static FALLIBLE declare_kinds(struct lq_bind *b, const struct lq_clause *clause,
                              struct lq_pred *pred) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    for (i32 i = 0; i < pred->arity && pred->arity == atom_arity(atom); i++) {
        struct typed typed;
        TRY(declared_type(b, clause, atom_arg(atom, i)->text, -1, &typed));
        pred->kinds[i] = typed.kind;
    }
    return ERR_OK;
}

/* --- entities --- */

static bool is_unary(const struct lq_atom *atom) {
    return atom && !atom->delta && atom_arity(atom) == 1 && all_variables(atom);
}

static bool is_refmode(const struct lq_atom *atom) {
    return atom && !atom->delta && atom->form == LQ_REFMODE && all_variables(atom);
}

/* Whether the clause says that there is an entity: p(x) -> .  or  p(x), r(x : n) -> string(n).  or
 * r(x : n) -> p(x), string(n). */
static bool entity_clause(struct lq_bind *b, const struct lq_clause *clause,
                          const struct lq_atom **entity, const struct lq_atom **refmode) {
    const struct lq_formula *body = clause->body;
    const struct lq_formula *claim = clause->claim;
    struct type type;
    *entity = *refmode = NULL;
    if (clause->kind != LQ_CONSTRAINT || !body || body->any.count != 1 ||
        (claim && claim->any.count != 1)) {
        return false;
    }
    const lq_conj *conj = body->any.items[0];
    for (i64 i = 0; i < conj->count; i++) {
        const struct lq_atom *atom = atom_of(b->arena, conj->items[i]);
        *entity = is_unary(atom) ? atom : *entity;
        *refmode = is_refmode(atom) ? atom : *refmode;
    }
    if (conj->count == 1 && *entity) {
        return !claim;
    }
    for (i64 i = 0; claim && *refmode && !*entity && i < claim->any.items[0]->count; i++) {
        const struct lq_atom *atom = atom_of(b->arena, claim->any.items[0]->items[i]);
        if (is_unary(atom) && !lq_type_named(atom->name, &type) &&
            sv_eq(atom_arg(atom, 0)->text, atom_arg(*refmode, 0)->text)) {
            *entity = atom;
            return conj->count == 1;
        }
    }
    return conj->count == 2 && *entity && *refmode && claim &&
           sv_eq(atom_arg(*entity, 0)->text, atom_arg(*refmode, 0)->text);
}

static struct lq_lit *atom_lit(struct lq_bind *b, struct lq_atom like, const char *x,
                               const char *n) {
    struct lq_lit *lit = NEW(b->arena, struct lq_lit);
    *lit = (struct lq_lit){.kind = LQ_ATOM, .position = -1};
    lit->atom = NEW(b->arena, struct lq_atom);
    *lit->atom = like;
    lit->atom->position = -1;
    VEC_PUSH(b->arena, &lit->atom->keys, variable_new(b, x));
    if (n) {
        VEC_PUSH(b->arena, &lit->atom->values, variable_new(b, n));
    }
    return lit;
}

/* What the database keeps of an entity (refmode first: what it keeps of that), so that it is known
 * again. */
static struct lq_clause *entity_text(struct lq_bind *b, struct sv entity, struct sv refmode,
                                     struct type type, bool of_refmode) {
    struct lq_clause *clause = NEW(b->arena, struct lq_clause);
    struct lq_atom unary = {.form = LQ_PLAIN, .name = entity};
    struct lq_atom pair = {.form = LQ_REFMODE, .name = refmode};
    char class[32];
    struct lq_atom typed = {.form = LQ_PLAIN,
                            .name = sv_from(arena_printf(b->arena, "%s", class_name(type, class)))};
    *clause = (struct lq_clause){.kind = LQ_CONSTRAINT, .position = -1};
    lq_conj *left = NEW(b->arena, lq_conj);
    lq_conj *right = NEW(b->arena, lq_conj);
    VEC_PUSH(b->arena, of_refmode ? right : left, atom_lit(b, unary, "x", NULL));
    if (refmode.len > 0) {
        VEC_PUSH(b->arena, left, atom_lit(b, pair, "x", "n"));
        VEC_PUSH(b->arena, right, atom_lit(b, typed, "n", NULL));
        clause->claim = NEW(b->arena, struct lq_formula);
        VEC_PUSH(b->arena, &clause->claim->any, right);
    }
    clause->body = NEW(b->arena, struct lq_formula);
    VEC_PUSH(b->arena, &clause->body->any, left);
    return clause;
}

static void entity_columns(struct lq_bind *b, struct lq_pred *pred, i32 count, struct type second) {
    pred->arity = count;
    pred->names = NEW_ARRAY(b->arena, const char *, count + 1);
    pred->types = NEW_ARRAY(b->arena, struct type, count + 1);
    pred->kinds = NEW_ARRAY(b->arena, struct sv, count + 1);
    pred->names[0] = "id";
    pred->types[0] = type_of(TYPE_BIGINT);
    if (count > 1) {
        pred->names[1] = "name";
        pred->types[1] = second;
    }
    pred->declared = 1;
}

static FALLIBLE refuse_entity(struct lq_bind *b, const struct lq_pred *pred, i32 position) {
    FAIL_AT(b->err, WRONG_OBJECT, position, "\"%.100s\" is something else already: not this entity",
            pred->name.ptr);
}

static void refmode_columns(struct lq_bind *b, struct lq_pred *refmode, struct sv entity,
                            struct type type) {
    entity_columns(b, refmode, 2, type);
    refmode->kinds[0] = entity;
    refmode->key_count = 1;
    refmode->identifies = entity;
    refmode->declarations.count = 0;
    VEC_PUSH(b->arena, &refmode->declarations, entity_text(b, entity, refmode->name, type, true));
}

/* Of a text, or of what the database keeps; the second of them for one name refines the first. */
static FALLIBLE declare_entity(struct lq_bind *b, const struct lq_clause *clause,
                               const struct lq_atom *entity, const struct lq_atom *refmode,
                               struct lq_pred **out) {
    struct typed typed = {.type = type_of(TYPE_TEXT)};
    struct sv name = refmode ? refmode->name : (struct sv){NULL, 0};
    struct lq_pred *pred = *out = pred_look(b, entity->name);
    if (pred && (!pred->is_entity ||
                 (pred->refmode.len > 0 && name.len > 0 && !sv_eq(pred->refmode, name)) ||
                 (pred->entry && pred->refmode.len == 0 && name.len > 0))) {
        return refuse_entity(b, pred, entity->position);
    }
    if (refmode) {
        const struct lq_expr *value = atom_arg(refmode, 1);
        TRY(declared_type(b, clause, value->text, value->position, &typed));
        if (typed.kind.len > 0) {
            FAIL_AT(b->err, NOT_SUPPORTED, value->position, "a refmode is a value, no entity");
        }
    }
    if (pred && pred->entry) { /* known */
        return ERR_OK;
    }
    pred = *out = pred ? pred : pred_new(b, entity->name, ORIGIN_LATER);
    entity_columns(b, pred, 1, typed.type);
    pred->kinds[0] = pred->name;
    pred->is_entity = 1;
    pred->position = pred->position < 0 ? entity->position : pred->position;
    pred->refmode = name.len ? name : pred->refmode;
    pred->declarations.count = 0;
    VEC_PUSH(b->arena, &pred->declarations,
             entity_text(b, pred->name, pred->refmode, typed.type, false));
    if (refmode) {
        struct lq_pred *other = pred_known(b, name);
        if (other && !sv_eq(other->identifies, pred->name)) {
            return refuse_entity(b, other, refmode->position);
        }
        other = other ? other : pred_new(b, name, ORIGIN_LATER);
        refmode_columns(b, other, pred->name, typed.type);
        other->position = refmode->position;
    }
    return ERR_OK;
}

/* --- constructors --- */

/* lang:constructor(`f). and lang:entity(`p).: the predicate; false when the clause is none. */
static bool marks(const struct lq_clause *clause, const char *word, const struct lq_atom **head,
                  struct sv *out) {
    *head = clause->kind == LQ_FACT && clause->heads.count == 1 ? clause->heads.items[0] : NULL;
    if (!*head || !sv_eq((*head)->name, sv_from(word)) || atom_arity(*head) < 1 ||
        atom_arg(*head, 0)->kind != LQ_PREDICATE) {
        return false;
    }
    *out = atom_arg(*head, 0)->text;
    return true;
}

static FALLIBLE mark_constructor(struct lq_bind *b, const struct lq_clause *clause,
                                 const struct lq_atom *head, struct sv name) {
    struct lq_pred *pred = pred_look(b, name);
    i32 last = pred ? pred->arity - 1 : -1;
    bool fits = pred && pred->types && pred->key_count == last && last >= 0;
    if (!fits || kind_of(pred, last).len == 0) {
        error_set(b->err, ERR_WRONG_OBJECT, head->position,
                  "\"%.*s\" is no constructor: its value is no entity", (int)MIN_OF(name.len, 100),
                  name.ptr);
        error_hint(b->err, "Declare it, as in f[a, b] = x -> int(a), int(b), p(x). with p(x) -> .");
        return b->err->code;
    }
    const struct lq_pred *entity = pred_look(b, kind_of(pred, last));
    if (entity && entity->refmode.len > 0) {
        FAIL_AT(b->err, WRONG_OBJECT, head->position,
                "\"%.100s\" has a refmode, which determines its entities: it has no constructors",
                entity->name.ptr);
    }
    if (!pred->makes && !pred->entry) {
        VEC_PUSH(b->arena, &pred->declarations, clause);
    }
    pred->makes = 1;
    return ERR_OK;
}

/* --- values of keys that have none --- */

/* lang:defaultValue[`f] = 0. */
static bool says_default(const struct lq_clause *clause, const struct lq_atom **head) {
    *head = clause->kind == LQ_FACT && clause->heads.count == 1 ? clause->heads.items[0] : NULL;
    return *head && sv_eq((*head)->name, SV("lang:defaultValue"));
}

static FALLIBLE mark_default(struct lq_bind *b, const struct lq_clause *clause,
                             const struct lq_atom *head) {
    const struct lq_expr *key = head->keys.count == 1 ? head->keys.items[0] : NULL;
    const struct lq_expr *value = head->values.count == 1 ? head->values.items[0] : NULL;
    if (!key || key->kind != LQ_PREDICATE || !value || !is_literal(value)) {
        FAIL_AT(b->err, SYNTAX, head->position,
                "a default is a literal, as in lang:defaultValue[`f] = 0.");
    }
    struct lq_pred *pred = pred_look(b, key->text);
    if (!pred || !pred->types || pred->key_count < 0 || pred->key_count != pred->arity - 1) {
        error_set(b->err, ERR_WRONG_OBJECT, key->position, "\"%.*s\" is no function",
                  (int)MIN_OF(key->text.len, 100), key->text.ptr);
        error_hint(b->err, "Declare it, as in f[k] = v -> int(k), int(v).");
        return b->err->code;
    }
    if (pred->entry && !pred->fallback) {
        FAIL_AT(b->err, NOT_SUPPORTED, head->position,
                "\"%.100s\" is there already: a default is said where it is declared",
                pred->name.ptr);
    }
    struct lq_value mine = {expr_null(b->t, pred->types[pred->key_count], -1),
                            kind_of(pred, pred->key_count)};
    struct lq_value said = {NULL, {NULL, 0}};
    TRY(expr_bind(b, NULL, value, &said.expr));
    TRY(values_meet(b, said, mine, value->position));
    if (!pred->fallback) {
        VEC_PUSH(b->arena, &pred->declarations, clause);
    }
    pred->fallback = value;
    return ERR_OK;
}

/* --- all of a text --- */

static FALLIBLE take_entity(struct lq_bind *b, struct lq_clause *clause, lq_preds *out) {
    const struct lq_atom *entity, *refmode, *head;
    struct lq_pred *pred = NULL;
    struct sv name;
    if (marks(clause, "lang:entity", &head, &name)) {
        struct lq_atom unary = {.position = head->position, .name = name};
        clause->taken = 1;
        TRY(declare_entity(b, clause, &unary, NULL, &pred));
    } else if (entity_clause(b, clause, &entity, &refmode)) {
        clause->taken = 1;
        TRY(declare_entity(b, clause, entity, refmode, &pred));
    }
    if (pred && !pred->entry) {
        VEC_PUSH(b->arena, out, pred);
    }
    return ERR_OK;
}

static FALLIBLE take_declaration(struct lq_bind *b, struct lq_clause *clause, lq_preds *out) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred *pred = pred_look(b, atom->name);
    clause->taken = 1;
    if (pred && pred->entry && pred->origin != ORIGIN_RULES) {
        return declaration_fits(b, clause, pred);
    }
    TRY(declare(b, clause, &pred));
    VEC_PUSH(b->arena, out, pred);
    return ERR_OK;
}

/* a(x) -> b(x). of predicates that are both known: a constraint. */
static bool is_membership(struct lq_bind *b, const struct lq_clause *clause) {
    const struct lq_atom *atom = declared_atom(b->arena, clause);
    struct lq_pred *pred = pred_look(b, atom->name);
    const lq_conj *claims = clause->claim->any.items[0];
    bool some = false;
    for (i64 i = 0; i < claims->count; i++) {
        struct typed typed;
        some = some || (is_type_atom(b, claims->items[i], &typed) && typed.kind.len > 0 &&
                        !sv_eq(typed.kind, typed.member));
    }
    return some && pred && pred->types;
}

FALLIBLE declarations_add(struct lq_bind *b, const struct lq_program *program, lq_preds *out) {
    struct lq_pred nobody = {0};
    i64 count = program->clauses.count;
    for (i64 i = 0; i < count; i++) {
        TRY(lq_noted(b, take_entity(b, program->clauses.items[i], out), &nobody));
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (i64 i = 0; i < count; i++) {
            struct lq_clause *clause = program->clauses.items[i];
            if (!clause->taken && is_declaration(b, clause) && !is_membership(b, clause)) {
                TRY(lq_noted(b, take_declaration(b, clause, out), &nobody));
                moved = true;
            }
        }
    }
    for (i64 i = 0; i < count; i++) {
        struct lq_clause *clause = program->clauses.items[i];
        const struct lq_atom *head;
        struct sv name;
        if (marks(clause, "lang:constructor", &head, &name)) {
            clause->taken = 1;
            TRY(lq_noted(b, mark_constructor(b, clause, head, name), &nobody));
        }
        if (says_default(clause, &head)) {
            clause->taken = 1;
            TRY(lq_noted(b, mark_default(b, clause, head), &nobody));
        }
    }
    return ERR_OK;
}

FALLIBLE declaration_kept(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred *pred,
                          bool *out_done) {
    const struct lq_atom *entity, *refmode, *head;
    struct sv name;
    *out_done = true;
    if (marks(clause, "lang:constructor", &head, &name)) {
        pred->makes = 1;
        VEC_PUSH(b->arena, &pred->declarations, clause);
        return ERR_OK;
    }
    if (says_default(clause, &head)) {
        pred->fallback = head->values.items[0];
        VEC_PUSH(b->arena, &pred->declarations, clause);
        return ERR_OK;
    }
    if (entity_clause(b, clause, &entity, &refmode)) {
        bool own = sv_eq(entity->name, pred->name);
        struct typed typed = {.type = type_of(TYPE_TEXT)};
        if (refmode) {
            TRY(declared_type(b, clause, atom_arg(refmode, 1)->text, -1, &typed));
        }
        if (!own) {
            refmode_columns(b, pred, entity->name, typed.type);
            return ERR_OK;
        }
        bool table = pred->origin == ORIGIN_TABLE;
        pred->is_entity = 1;
        pred->refmode = refmode ? refmode->name : (struct sv){NULL, 0};
        pred->kinds = NEW_ARRAY(b->arena, struct sv, MAX_OF(pred->arity, 1) + 1);
        if (!table) {
            entity_columns(b, pred, 1, typed.type);
        }
        pred->arity = 1;
        pred->key_count = -1;
        pred->kinds[0] = pred->name;
        VEC_PUSH(b->arena, &pred->declarations, clause);
        return ERR_OK;
    }
    if (!is_declaration(b, clause)) {
        *out_done = false;
        return ERR_OK;
    }
    if (pred->origin == ORIGIN_TABLE) {
        return declare_kinds(b, clause, pred);
    }
    return declare(b, clause, &pred);
}

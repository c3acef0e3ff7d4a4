/* entity.c: entities: numbers that stand for what refmodes and constructors determine.
 *
 * A head's variable that nothing binds but a refmode or a constructor is created by its clause.
 * Where rules derive it, its number is a function of the maker and the keys (lang:new, 64 bits), so
 * that it is the same wherever it is computed, in any round, on any device. Where it is a row of a
 * table, changes number it when they are made (make.c). People see names: entities_shown. */
#include "logiql/bind_int.h"

enum { NEW_ARGS = 2 }; /* the maker and the entity come before the keys */

bool is_literal(const struct lq_expr *e) {
    return e->kind < LQ_PREDICATE;
}

bool kind_is_stored(struct lq_bind *b, struct sv kind) {
    const struct lq_pred *pred = pred_look(b, kind);
    return pred && (pred->origin == ORIGIN_TABLE || pred->origin == ORIGIN_LATER);
}

struct sv expr_kind(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e) {
    struct sv kind = {NULL, 0};
    if (e->kind == LQ_VARIABLE) {
        return variable_kind(scope, e->text);
    }
    if (e->kind == LQ_APPLY && sv_eq(e->text, SV("lang:new")) && e->args.count >= NEW_ARGS) {
        (void)kind_named(b, e->args.items[1]->text, &kind);
    }
    return kind;
}

/* --- numbers --- */

/* One more key: whole numbers as they are, anything else as text. */
static FALLIBLE mix_key(struct lq_bind *b, struct expr *key, i32 position, struct expr **io) {
    struct type to = type_is_integer(key->type) ? type_of(TYPE_BIGINT) : type_of(TYPE_TEXT);
    TRY(coerce_to(b->t, key, to, &key));
    struct expr *args[2] = {*io, key};
    struct call call = {.name = "wf_mix", .args = args, .count = 2, .position = position};
    return call_named(b->t, &call, io);
}

/* A key in the type that the maker was declared with. */
static FALLIBLE bind_key(struct lq_bind *b, const struct lq_scope *scope,
                         const struct lq_pred *maker, i32 col, const struct lq_expr *arg,
                         struct expr **out) {
    bool known = maker && maker->types && col < maker->arity;
    struct sv kind = known ? kind_of(maker, col) : (struct sv){NULL, 0};
    if (kind.len > 0 && is_literal(arg)) {
        return entity_literal(b, kind, arg, out);
    }
    struct lq_value value = {NULL, expr_kind(b, scope, arg)};
    TRY(expr_bind(b, scope, arg, &value.expr));
    *out = value.expr;
    if (!known) {
        return ERR_OK;
    }
    struct lq_value like = {expr_null(b->t, maker->types[col], -1), kind};
    like.expr->kind = EXPR_COL; /* of that type: only literals adapt */
    TRY(values_meet(b, value, like, lq_at(b, arg->position)));
    return coerce_to(b->t, *out, maker->types[col], out);
}

FALLIBLE entity_call(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e,
                     struct expr **out) {
    i32 position = lq_at(b, e->position);
    if (e->args.count < NEW_ARGS || e->args.items[0]->kind != LQ_STRING ||
        e->args.items[1]->kind != LQ_STRING) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position,
                "lang:new takes the names of a maker and of an entity before the keys");
    }
    const struct lq_pred *maker = pred_look(b, e->args.items[0]->text);
    i32 first = maker && maker->identifies.len > 0 ? 1 : 0;
    struct expr *number = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), position);
    const_set_exact(number, (i64)(sv_hash(e->args.items[0]->text) >> 1));
    for (i64 i = NEW_ARGS; i < e->args.count; i++) {
        struct expr *key = NULL;
        TRY(bind_key(b, scope, maker, first + (i32)i - NEW_ARGS, e->args.items[i], &key));
        TRY(mix_key(b, key, position, &number));
    }
    *out = number;
    return arena_check(b->arena, b->err);
}

static struct lq_expr *text_new(struct lq_bind *b, struct sv text) {
    struct lq_expr *e = NEW(b->arena, struct lq_expr);
    *e = (struct lq_expr){.kind = LQ_STRING, .position = -1, .text = arena_sv(b->arena, text)};
    return e;
}

static struct lq_expr *new_call(struct lq_bind *b, struct sv maker, struct sv entity,
                                const lq_exprs *keys, i32 position) {
    struct lq_expr *e = NEW(b->arena, struct lq_expr);
    *e = (struct lq_expr){.kind = LQ_APPLY, .position = position, .text = SV("lang:new")};
    VEC_PUSH(b->arena, &e->args, text_new(b, maker));
    VEC_PUSH(b->arena, &e->args, text_new(b, entity));
    for (i64 i = 0; i < keys->count; i++) {
        VEC_PUSH(b->arena, &e->args, keys->items[i]);
    }
    return e;
}

/* --- literals --- */

FALLIBLE entity_refmode(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                        struct sv *out) {
    const struct lq_pred *entity = pred_look(b, kind);
    *out = entity ? entity->refmode : (struct sv){NULL, 0};
    if (out->len == 0) {
        error_set(b->err, ERR_DATATYPE_MISMATCH, lq_at(b, literal->position),
                  "type clash: a literal and %.*s", (int)MIN_OF(kind.len, 100), kind.ptr);
        error_hint(b->err, "A literal stands for an entity that has a refmode.");
        return b->err->code;
    }
    return ERR_OK;
}

FALLIBLE entity_literal(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                        struct expr **out) {
    struct sv refmode;
    lq_exprs keys = {0};
    TRY(entity_refmode(b, kind, literal, &refmode));
    VEC_PUSH(b->arena, &keys, (struct lq_expr *)(size_t)literal);
    return entity_call(b, NULL, new_call(b, refmode, kind, &keys, literal->position), out);
}

const char *entity_column(const struct lq_pred *entity, i32 col) {
    const struct table *table = entity->entry ? entity->entry->object->table : NULL;
    const char *last = entity->refmode.len > 0 ? entity->refmode.ptr : ""; /* a name's last part */
    for (const char *at = last; *at; at++) {
        last = *at == ':' ? at + 1 : last;
    }
    return table                     ? table->cols[col].name
           : col == 1                ? last
           : strcmp(last, "id") == 0 ? "entity"
                                     : "id";
}

FALLIBLE entity_atom(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                     struct lq_expr *variable, struct lq_atom **out) {
    struct sv refmode;
    TRY(entity_refmode(b, kind, literal, &refmode));
    struct lq_atom *atom = *out = NEW(b->arena, struct lq_atom);
    *atom = (struct lq_atom){.form = LQ_KEYED, .position = literal->position};
    atom->name =
        sv_from(arena_printf(b->arena, "%s:%s", kind.ptr, entity_column(pred_look(b, kind), 1)));
    VEC_PUSH(b->arena, &atom->keys, variable);
    VEC_PUSH(b->arena, &atom->values, (struct lq_expr *)(size_t)literal);
    return arena_check(b->arena, b->err);
}

/* --- what heads create --- */

static bool expr_names(const struct lq_expr *e, struct sv variable) {
    bool found = e->kind == LQ_VARIABLE && sv_eq(e->text, variable);
    for (i64 i = 0; i < e->args.count && !found; i++) {
        found = expr_names(e->args.items[i], variable);
    }
    return found;
}

bool formula_names(const struct lq_formula *formula, struct sv variable) {
    bool found = false;
    for (i64 i = 0; formula && i < formula->any.count && !found; i++) {
        const lq_conj *conj = formula->any.items[i];
        for (i64 k = 0; k < conj->count && !found; k++) {
            const struct lq_lit *lit = conj->items[k];
            for (i32 n = 0; lit->kind == LQ_ATOM && n < atom_arity(lit->atom); n++) {
                found = found || expr_names(atom_arg(lit->atom, n), variable);
            }
            for (i64 n = 0; lit->kind == LQ_COMPARE && n < lit->terms.count; n++) {
                found = found || expr_names(lit->terms.items[n], variable);
            }
            found = found || (lit->kind == LQ_GROUP && formula_names(lit->formula, variable));
        }
    }
    return found;
}

static bool is_made(const struct lq_clause *clause, struct sv variable) {
    for (i64 i = 0; i < clause->makes.count; i++) {
        if (sv_eq(clause->makes.items[i].variable, variable)) {
            return true;
        }
    }
    for (i64 i = 0; i < clause->calls.count; i++) {
        if (sv_eq(clause->calls.items[i].variable, variable)) {
            return true;
        }
    }
    return false;
}

/* What the atom would make, were its variable free. */
static bool maker_of(struct lq_bind *b, const struct lq_atom *atom, struct lq_make *out,
                     const struct lq_expr **variable) {
    const struct lq_pred *pred = pred_look(b, atom->name);
    i32 count = atom_arity(atom);
    if (!pred || count != pred->arity || (!pred->makes && pred->identifies.len == 0)) {
        return false;
    }
    bool names = pred->identifies.len > 0;
    i32 at = names ? 0 : count - 1;
    *variable = atom_arg(atom, at);
    *out = (struct lq_make){.maker = pred->name, .position = atom->position};
    out->variable = (*variable)->text;
    out->entity = names ? pred->identifies : pred->members ? pred->members[at] : kind_of(pred, at);
    for (i32 i = 0; i < count; i++) {
        if (i != at) {
            VEC_PUSH(b->arena, &out->keys, (struct lq_expr *)(size_t)atom_arg(atom, i));
        }
    }
    return (*variable)->kind == LQ_VARIABLE;
}

static void add_entity_head(struct lq_bind *b, struct lq_clause *clause, const struct lq_make *make,
                            u8 delta) {
    for (i64 i = 0; i < clause->heads.count; i++) {
        const struct lq_atom *head = clause->heads.items[i];
        if (sv_eq(head->name, make->entity) && atom_arity(head) == 1 &&
            expr_names(atom_arg(head, 0), make->variable)) {
            return;
        }
    }
    struct lq_atom *head = NEW(b->arena, struct lq_atom);
    *head = (struct lq_atom){
        .form = LQ_PLAIN, .delta = delta, .position = make->position, .name = make->entity};
    struct lq_expr *variable = variable_new(b, arena_sv(b->arena, make->variable).ptr);
    variable->position = make->position;
    VEC_PUSH(b->arena, &head->keys, variable);
    VEC_PUSH(b->arena, &clause->heads, head);
}

static bool make_names(const struct lq_make *make, struct sv variable) {
    bool found = false;
    for (i64 i = 0; i < make->keys.count && !found; i++) {
        found = expr_names(make->keys.items[i], variable);
    }
    return found;
}

/* Keys are determined before what is made of them: what is left when those are taken away that wait
 * for no other makes itself. */
static FALLIBLE check_makes(struct lq_bind *b, const struct lq_clause *clause) {
    i64 count = clause->makes.count;
    b8 *known = NEW_ARRAY(b->arena, b8, count + 1);
    for (bool moved = true; moved;) {
        moved = false;
        for (i64 i = 0; i < count; i++) {
            bool waits = known[i];
            for (i64 k = 0; k < count && !waits; k++) {
                waits = !known[k] &&
                        make_names(&clause->makes.items[i], clause->makes.items[k].variable);
            }
            known[i] = known[i] || !waits;
            moved = moved || !waits;
        }
    }
    for (i64 i = 0; i < count; i++) {
        const struct lq_make *make = &clause->makes.items[i];
        if (!known[i]) {
            FAIL_AT(b->err, UNDEFINED_COLUMN, make->position,
                    "nothing determines the entity %.*s: it is made of itself",
                    (int)MIN_OF(make->variable.len, 100), make->variable.ptr);
        }
    }
    return arena_check(b->arena, b->err);
}

FALLIBLE clause_makes(struct lq_bind *b, struct lq_clause *clause) {
    i64 count = clause->kind == LQ_CONSTRAINT ? 0 : clause->heads.count;
    for (i64 i = 0; i < count; i++) {
        const struct lq_atom *head = clause->heads.items[i];
        const struct lq_expr *variable = NULL;
        struct lq_make make;
        if (head->delta == LQ_REMOVE || !maker_of(b, head, &make, &variable) ||
            is_made(clause, make.variable) || formula_names(clause->body, make.variable)) {
            continue;
        }
        if (head->delta == LQ_UPSERT) {
            FAIL_AT(b->err, NOT_SUPPORTED, head->position,
                    "^ gives another value, and creates no entity: write +");
        }
        VEC_PUSH(b->arena, &clause->makes, make);
        add_entity_head(b, clause, &make, head->delta);
    }
    wf_status status = check_makes(b, clause);
    if (status) { /* nothing else is said of it */
        clause->makes.count = 0;
        clause->taken = 1;
    }
    return status;
}

void clause_solve_makes(struct lq_bind *b, struct lq_clause *clause) {
    if (clause->makes.count == 0) {
        return;
    }
    struct lq_formula *body = NEW(b->arena, struct lq_formula);
    i64 count = clause->body ? clause->body->any.count : 1;
    for (i64 i = 0; i < count; i++) { /* what other clauses hold stays as it is */
        lq_conj *conj = NEW(b->arena, lq_conj);
        for (i64 k = 0; clause->body && k < clause->body->any.items[i]->count; k++) {
            VEC_PUSH(b->arena, conj, clause->body->any.items[i]->items[k]);
        }
        for (i64 k = 0; k < clause->makes.count; k++) {
            const struct lq_make *make = &clause->makes.items[k];
            struct lq_lit *lit = NEW(b->arena, struct lq_lit);
            *lit = (struct lq_lit){.kind = LQ_COMPARE, .position = make->position};
            struct lq_expr *left = variable_new(b, arena_sv(b->arena, make->variable).ptr);
            VEC_PUSH(b->arena, &lit->terms, left);
            VEC_PUSH(b->arena, &lit->terms,
                     new_call(b, make->maker, make->entity, &make->keys, make->position));
            VEC_PUSH(b->arena, &lit->compares, (u8)LQ_EQ);
            VEC_PUSH(b->arena, &lit->compare_positions, make->position);
            VEC_PUSH(b->arena, conj, lit);
        }
        VEC_PUSH(b->arena, &body->any, conj);
    }
    clause->body = body;
    clause->kind = LQ_RULE;
    clause->makes.count = 0;
}

/* --- for people --- */

static FALLIBLE shown_pred(struct lq_bind *b, struct sv kind, struct lq_pred **out);

/* What makes a text of a key: `a = …` for a body. */
static FALLIBLE shown_key(struct lq_bind *b, const struct lq_pred *maker, i32 col,
                          struct text *body) {
    struct sv kind = kind_of(maker, col);
    struct lq_pred *shown = NULL;
    char class[32];
    if (kind.len > 0) {
        TRY(shown_pred(b, kind, &shown));
    }
    struct type type = shown ? shown->types[1] : maker->types[col];
    const char *name = class_name(type, class);
    const char *key =
        shown ? arena_printf(b->arena, "v%d", col) : arena_printf(b->arena, "k%d", col);
    if (shown) {
        text_print(body, ", %s[k%d] = v%d", shown->name.ptr, col, col);
    }
    text_print(body, type_is_string(type) ? ", a%d = %s%s" : ", a%d = %s:string:convert[%s]", col,
               type_is_string(type) ? "" : name, key);
    return ERR_OK;
}

static FALLIBLE shown_rule(struct lq_bind *b, struct lq_pred *shown, const struct lq_pred *maker) {
    struct text text, body;
    struct lq_program program;
    text_init(&text, b->arena);
    text_init(&body, b->arena);
    text_print(&text, "%s[x] = \"%s[\"", shown->name.ptr, maker->name.ptr);
    for (i32 i = 0; i + 1 < maker->arity; i++) {
        text_print(&text, i ? " + \", \" + a%d" : " + a%d", i);
        TRY(shown_key(b, maker, i, &body));
    }
    text_print(&text, " + \"]\" <- %s[", maker->name.ptr);
    for (i32 i = 0; i + 1 < maker->arity; i++) {
        text_print(&text, i ? ", k%d" : "k%d", i);
    }
    text_print(&text, "] = x%s.", body.len ? body.ptr : "");
    TRY(lq_parse(b->arena, (struct sv){text.ptr, text.len}, &program, b->err));
    ASSERT(program.clauses.count == 1);
    return clause_rules(b, program.clauses.items[0], false);
}

static bool makes_kind(const struct lq_pred *pred, struct sv kind) {
    return pred->makes && pred->types && sv_eq(kind_of(pred, pred->arity - 1), kind);
}

/* Everything that makes entities of the kind: of the text, and of the database. */
static void makers_of(struct lq_bind *b, struct sv kind, lq_preds *out) {
    for (struct edition_walk at = edition_walk(b->snap->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        if (object->logical && object->text && strstr(object->text, "lang:constructor")) {
            (void)pred_look(b, sv_from(object->name));
        }
    }
    for (i64 i = 0; i < b->preds.entries.count; i++) {
        struct lq_pred *pred =
            b->preds.entries.items[i].key.ptr ? b->preds.entries.items[i].value : NULL;
        if (pred && makes_kind(pred, kind)) {
            VEC_PUSH(b->arena, out, pred);
        }
    }
}

static FALLIBLE shown_pred(struct lq_bind *b, struct sv kind, struct lq_pred **out) {
    const struct lq_pred *entity = pred_look(b, kind);
    struct sv name = sv_from(arena_printf(b->arena, "lang:shown:%s", kind.ptr));
    *out = NULL;
    if (entity && entity->refmode.len > 0) {
        return pred_get(b, entity->refmode, -1, out);
    }
    *out = pred_known(b, name);
    if (*out) {
        return ERR_OK;
    }
    lq_preds makers = {0};
    makers_of(b, kind, &makers);
    if (makers.count == 0) { /* nothing is known of it but its number */
        return ERR_OK;
    }
    struct lq_pred *pred = *out = pred_new(b, name, ORIGIN_RULES);
    pred->arity = 2;
    pred->key_count = 1;
    pred->names = NEW_ARRAY(b->arena, const char *, 3);
    pred->types = NEW_ARRAY(b->arena, struct type, 3);
    pred->kinds = NEW_ARRAY(b->arena, struct sv, 3);
    pred->names[0] = "id";
    pred->names[1] = "shown";
    pred->types[0] = type_of(TYPE_BIGINT);
    pred->types[1] = type_of(TYPE_TEXT);
    pred->kinds[0] = kind;
    pred->declared = 1;
    for (i64 i = 0; i < makers.count; i++) {
        TRY(shown_rule(b, pred, makers.items[i]));
    }
    return ERR_OK;
}

static FALLIBLE show_column(struct lq_bind *b, struct lq_pred *shown, struct rel **io,
                            struct expr **io_expr) {
    TRY(strata_add(b, shown));
    TRY(relations_bind(b));
    struct lq_scope scope = {0};
    struct lq_atom atom = {.position = -1, .name = shown->name};
    struct rel *rel = NULL;
    u32 *cols = NULL;
    VEC_PUSH(b->arena, &atom.keys, variable_new(b, "x"));
    VEC_PUSH(b->arena, &atom.keys, variable_new(b, "n"));
    TRY(atom_rel(b, &scope, &atom, &rel, &cols));
    struct rel *join = rel_join(b->plan, JOIN_LEFT, *io, rel);
    struct expr *same = NULL;
    TRY(expr_compare(b, LQ_EQ, *io_expr, expr_col(b->plan, cols[0], -1), -1, &same));
    VEC_PUSH(b->arena, &join->join.conds, same);
    join->rows = (*io)->rows;
    for (i64 i = 0; i < rel->out.count; i++) {
        b->plan->cols.items[rel->out.items[i]].nullable = 1;
    }
    *io = join;
    *io_expr = expr_col(b->plan, cols[1], -1);
    return ERR_OK;
}

FALLIBLE entities_shown(struct lq_bind *b, const struct lq_pred *pred, struct rel **io) {
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, pred->arity + 1);
    bool some = false;
    for (i32 i = 0; i < pred->arity; i++) {
        exprs[i] = expr_col(b->plan, (*io)->out.items[i], -1);
    }
    for (i32 i = 0; i < pred->arity; i++) {
        struct lq_pred *shown = NULL;
        if (kind_of(pred, i).len > 0) {
            TRY(shown_pred(b, kind_of(pred, i), &shown));
        }
        if (shown) {
            TRY(show_column(b, shown, io, &exprs[i]));
            some = true;
        }
    }
    if (some) {
        *io = lq_project(b, *io, exprs, pred->names, pred->arity);
    }
    return arena_check(b->arena, b->err);
}

/* stage.c: what bodies of changes read: the state before the script, what it changes, the state
 * after it.
 *
 * A plain atom reads what there was before. +p(x), -p(x) and ^f[k] = v in a body read what the
 * clauses of the script say is to change so: those clauses are rules of a predicate lang:plus:p (or
 * minus, put), which stand beside the change that reads them. A change that reads p@final waits for
 * all others; what else it reads was put aside before (lang:start:p). */
#include "logiql/script_int.h"

struct staging {
    struct script *s;
    bool final; /* the clause reads a final state */
    bool start;
    bool deltas;
};

static const char *const delta_words[] = {"", "plus", "minus", "put"};

static struct sv staged_name(struct lq_bind *b, const char *word, struct sv name) {
    return sv_from(arena_printf(b->arena, "lang:%s:%.*s", word, (int)name.len, name.ptr));
}

/* --- what a body has --- */

static void look_expr(struct staging *g, const struct lq_expr *e) {
    g->final = g->final || (e->kind == LQ_APPLY && e->stage == LQ_FINAL);
    g->start = g->start || (e->kind == LQ_APPLY && e->stage == LQ_START);
    for (i64 i = 0; i < e->args.count; i++) {
        look_expr(g, e->args.items[i]);
    }
}

static void look_formula(struct staging *g, const struct lq_formula *formula);

static void look_lit(struct staging *g, const struct lq_lit *lit) {
    if (lit->kind == LQ_ATOM) {
        g->final = g->final || lit->atom->stage == LQ_FINAL;
        g->start = g->start || lit->atom->stage == LQ_START;
        g->deltas = g->deltas || lit->atom->delta;
        for (i32 i = 0; i < atom_arity(lit->atom); i++) {
            look_expr(g, atom_arg(lit->atom, i));
        }
    }
    for (i64 i = 0; lit->kind == LQ_COMPARE && i < lit->terms.count; i++) {
        look_expr(g, lit->terms.items[i]);
    }
    if (lit->kind == LQ_NOT) {
        look_lit(g, lit->inner);
    }
    if (lit->kind == LQ_GROUP) {
        look_formula(g, lit->formula);
    }
}

static void look_formula(struct staging *g, const struct lq_formula *formula) {
    for (i64 i = 0; formula && i < formula->any.count; i++) {
        for (i64 k = 0; k < formula->any.items[i]->count; k++) {
            look_lit(g, formula->any.items[i]->items[k]);
        }
    }
}

/* --- names instead of stages --- */

/* A rule lang:start:p(x1, x2) <- p(x1, x2). and what puts its rows aside. */
static FALLIBLE keep_start(struct staging *g, struct sv name, i32 count, i32 position) {
    struct script *s = g->s;
    struct lq_bind *b = &s->b;
    struct sv kept = staged_name(b, "start", name);
    if (pred_known(b, kept)) {
        return ERR_OK;
    }
    struct text args, rule;
    struct lq_program program;
    text_init(&args, b->arena);
    text_init(&rule, b->arena);
    for (i32 i = 0; i < count; i++) {
        text_print(&args, i ? ", x%d" : "x%d", i);
    }
    text_print(&rule, "%s(%s) <- %.*s(%s).", kept.ptr, count ? args.ptr : "", (int)name.len,
               name.ptr, count ? args.ptr : "");
    TRY(lq_parse(b->arena, (struct sv){rule.ptr, rule.len}, &program, b->err));
    TRY(clause_rules(b, program.clauses.items[0], false));
    struct lq_action action = {.kind = LQ_KEEP, .name = kept.ptr, .position = position};
    action.text = arena_printf(b->arena, LQ_ROWS "%s", rule.ptr + kept.len);
    VEC_PUSH(b->arena, &s->kept, action);
    return ERR_OK;
}

static bool is_word(struct lq_bind *b, struct sv name) {
    struct type type;
    return builtin_is_atom(name) || (lq_type_named(name, &type) && !pred_exists(b, name));
}

/* Within expressions values are those of the final state, or else the clause reads none. */
static FALLIBLE stage_expr(struct staging *g, const struct lq_expr *e, struct lq_expr **out) {
    struct lq_bind *b = &g->s->b;
    struct lq_expr *copy = *out = NEW(b->arena, struct lq_expr);
    *copy = *e;
    copy->stage = LQ_NOW;
    copy->args = (lq_exprs){0};
    if (e->kind == LQ_APPLY && g->final && e->stage != LQ_FINAL && !builtin_is_function(e->text)) {
        FAIL_AT(b->err, NOT_SUPPORTED, e->position,
                "beside @final a value of before is read by an atom: %.*s[…] = v",
                (int)MIN_OF(e->text.len, 60), e->text.ptr);
    }
    for (i64 i = 0; i < e->args.count; i++) {
        struct lq_expr *arg = NULL;
        TRY(stage_expr(g, e->args.items[i], &arg));
        VEC_PUSH(b->arena, &copy->args, arg);
    }
    return ERR_OK;
}

static FALLIBLE stage_exprs(struct staging *g, const lq_exprs *list, lq_exprs *out) {
    for (i64 i = 0; i < list->count; i++) {
        struct lq_expr *e = NULL;
        TRY(stage_expr(g, list->items[i], &e));
        VEC_PUSH(g->s->b.arena, out, e);
    }
    return ERR_OK;
}

static u8 delta_of(const struct lq_atom *head) {
    return head->delta == LQ_STATE ? LQ_INSERT : head->delta;
}

/* Whether a clause of the script says that it changes so. */
static bool is_changed(const struct script *s, const struct lq_atom *atom) {
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        const struct lq_clause *clause = s->program.clauses.items[i];
        for (i64 h = 0; clause->kind != LQ_CONSTRAINT && h < clause->heads.count; h++) {
            const struct lq_atom *head = clause->heads.items[h];
            if (sv_eq(head->name, atom->name) && delta_of(head) == atom->delta) {
                return true;
            }
        }
    }
    return false;
}

static FALLIBLE stage_atom(struct staging *g, const struct lq_atom *atom, struct lq_atom **out) {
    static const char marks[] = " +-^";
    struct lq_bind *b = &g->s->b;
    struct lq_atom *copy = *out = NEW(b->arena, struct lq_atom);
    *copy = *atom;
    copy->stage = LQ_NOW;
    copy->keys = (lq_exprs){0};
    copy->values = (lq_exprs){0};
    bool start = g->final && atom->stage != LQ_FINAL && !atom->delta && !is_word(b, atom->name);
    bool plain = atom->delta || start;
    TRY(stage_exprs(g, &atom->keys, &copy->keys));
    TRY(stage_exprs(g, &atom->values, plain ? &copy->keys : &copy->values));
    if (!plain) {
        return arena_check(b->arena, b->err);
    }
    if (atom->delta && !is_changed(g->s, atom)) {
        FAIL_AT(b->err, UNDEFINED_TABLE, atom->position, "nothing in this text says %c%.*s",
                marks[atom->delta], (int)MIN_OF(atom->name.len, 100), atom->name.ptr);
    }
    copy->name = staged_name(b, start ? "start" : delta_words[atom->delta], atom->name);
    copy->form = LQ_PLAIN;
    copy->delta = LQ_STATE;
    if (!start) {
        map_set(&g->s->wanted, copy->name, copy);
    }
    return start ? keep_start(g, atom->name, atom_arity(atom), atom->position) : ERR_OK;
}

/* f[k] = v, which is read as a comparison. */
static bool is_equation(const struct lq_lit *lit) {
    return lit->kind == LQ_COMPARE && lit->compares.count == 1 && lit->compares.items[0] == LQ_EQ &&
           lit->terms.items[0]->kind == LQ_APPLY && !builtin_is_function(lit->terms.items[0]->text);
}

static FALLIBLE stage_formula(struct staging *g, const struct lq_formula *formula,
                              struct lq_formula **out);

static FALLIBLE stage_lit(struct staging *g, const struct lq_lit *lit, struct lq_lit **out) {
    struct lq_bind *b = &g->s->b;
    struct lq_lit *copy = *out = NEW(b->arena, struct lq_lit);
    *copy = *lit;
    if (is_equation(lit) && g->final && lit->terms.items[0]->stage != LQ_FINAL) {
        const struct lq_expr *left = lit->terms.items[0];
        struct lq_atom atom = {.form = LQ_KEYED, .position = left->position, .name = left->text};
        atom.keys = left->args;
        VEC_PUSH(b->arena, &atom.values, lit->terms.items[1]);
        copy->kind = LQ_ATOM;
        return stage_atom(g, &atom, &copy->atom);
    }
    switch ((enum lq_lit_kind)lit->kind) {
    case LQ_ATOM:
        return stage_atom(g, lit->atom, &copy->atom);
    case LQ_NOT:
        return stage_lit(g, lit->inner, &copy->inner);
    case LQ_GROUP:
        return stage_formula(g, lit->formula, &copy->formula);
    default:
        copy->terms = (lq_exprs){0};
        return stage_exprs(g, &lit->terms, &copy->terms);
    }
}

static FALLIBLE stage_formula(struct staging *g, const struct lq_formula *formula,
                              struct lq_formula **out) {
    struct lq_bind *b = &g->s->b;
    struct lq_formula *copy = *out = NEW(b->arena, struct lq_formula);
    for (i64 i = 0; i < formula->any.count; i++) {
        lq_conj *conj = NEW(b->arena, lq_conj);
        for (i64 k = 0; k < formula->any.items[i]->count; k++) {
            struct lq_lit *lit = NULL;
            TRY(stage_lit(g, formula->any.items[i]->items[k], &lit));
            VEC_PUSH(b->arena, conj, lit);
        }
        VEC_PUSH(b->arena, &copy->any, conj);
    }
    return arena_check(b->arena, b->err);
}

FALLIBLE clause_check_stages(struct script *s, const struct lq_clause *clause) {
    struct staging g = {.s = s};
    look_formula(&g, clause->body);
    if (g.start || g.deltas) {
        FAIL_AT(s->b.err, NOT_SUPPORTED, clause->position,
                "%s in a clause of changes: +p(x) <- …, -p(x) <- … or ^f[k] = v <- …",
                g.start ? "@start has a meaning" : "changes can be read");
    }
    return ERR_OK;
}

FALLIBLE clause_stage(struct script *s, struct lq_clause *clause) {
    struct staging g = {.s = s};
    if (!clause->body) {
        return ERR_OK;
    }
    look_formula(&g, clause->body);
    clause->is_final = g.final;
    clause->reads_deltas = g.deltas;
    return stage_formula(&g, clause->body, &clause->body);
}

/* --- changes that bodies read --- */

static FALLIBLE state_delta(struct script *s, const struct lq_clause *clause,
                            const struct lq_atom *head) {
    struct lq_bind *b = &s->b;
    struct lq_atom plain = {.form = LQ_PLAIN, .position = head->position};
    struct sv name = staged_name(b, delta_words[delta_of(head)], head->name);
    if (!map_find(&s->wanted, name)) {
        return ERR_OK;
    }
    for (i32 i = 0; i < atom_arity(head); i++) {
        const struct lq_expr *arg = atom_arg(head, i);
        if (arg->kind == LQ_ANY) {
            FAIL_AT(b->err, NOT_SUPPORTED, arg->position,
                    "what is removed by _ cannot be read by another clause");
        }
        VEC_PUSH(b->arena, &plain.keys, (struct lq_expr *)(size_t)arg);
    }
    if (clause->makes.count > 0 || clause->is_final) {
        FAIL_AT(b->err, NOT_SUPPORTED, head->position,
                "what another clause reads as a change neither creates entities nor waits for a "
                "final state");
    }
    struct lq_clause *rule = script_with_head(s, clause, &plain, name);
    TRY(clause_rules(b, rule, true));
    lq_print_clause(rule, &s->delta_text);
    text_append(&s->delta_text, SV("\n"));
    return ERR_OK;
}

FALLIBLE deltas_add(struct script *s) {
    for (i64 i = 0; i < s->program.clauses.count; i++) {
        const struct lq_clause *clause = s->program.clauses.items[i];
        for (i64 h = 0; clause->kind != LQ_CONSTRAINT && h < clause->heads.count; h++) {
            const struct lq_atom *head = clause->heads.items[h];
            bool changes =
                head->delta || (clause->kind == LQ_FACT && !script_has_rules(s, head->name));
            if (changes) {
                TRY(state_delta(s, clause, head));
            }
        }
    }
    return arena_check(s->b.arena, s->b.err);
}

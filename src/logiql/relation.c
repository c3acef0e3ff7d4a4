/* relation.c: what rules derive, as operators.
 *
 * A rule is a projection of its body; the rules of a predicate are united. Predicates are sets:
 * repeats are dropped, unless the head decides which rows of the body there are (head_decides). Who
 * reads a predicate shares its rows with others who do. */
#include "logiql/bind_int.h"

struct rel *lq_project(struct lq_bind *b, struct rel *rel, struct expr **exprs, const char **names,
                       i64 count) {
    struct rel *project = rel_new(b->plan, REL_PROJECT, rel, NULL);
    for (i64 i = 0; i < count; i++) {
        u32 col = plan_col_new(b->plan, names[i], exprs[i]->type, expr_nullable(b->plan, exprs[i]));
        VEC_PUSH(b->arena, &project->project.exprs, exprs[i]);
        VEC_PUSH(b->arena, &project->out, col);
    }
    project->rows = rel->rows;
    return project;
}

struct rel *lq_distinct(struct lq_bind *b, struct rel *rel) {
    if (rel->out.count == 0) { /* all rows without columns are equal */
        struct rel *first = rel_new(b->plan, REL_LIMIT, rel, NULL);
        first->limit.count = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
        const_set_exact(first->limit.count, 1);
        first->rows = 1;
        return first;
    }
    struct rel *agg = rel_new(b->plan, REL_AGG, rel, NULL);
    for (i64 i = 0; i < rel->out.count; i++) {
        VEC_PUSH(b->arena, &agg->agg.keys, expr_col(b->plan, rel->out.items[i], -1));
        u32 col = plan_col_like(b->plan, rel->out.items[i]);
        VEC_PUSH(b->arena, &agg->out, col);
    }
    agg->rows = MAX_OF(rel->rows / 10, 1);
    return agg;
}

struct rel *rel_unite(struct lq_bind *b, struct rel *left, struct rel *right) {
    struct rel *rel = rel_new(b->plan, REL_UNION, left, right);
    for (i64 i = 0; i < left->out.count; i++) {
        u32 col = plan_col_like(b->plan, left->out.items[i]);
        VEC_PUSH(b->arena, &rel->arms.cols[0], left->out.items[i]);
        VEC_PUSH(b->arena, &rel->arms.cols[1], right->out.items[i]);
        VEC_PUSH(b->arena, &rel->out, col);
        b->plan->cols.items[col].nullable |= b->plan->cols.items[right->out.items[i]].nullable;
    }
    rel->rows = left->rows + right->rows;
    return rel;
}

/* --- one rule --- */

bool is_known(const lq_exprs *known, const struct lq_expr *e) {
    if (e->kind == LQ_ANY) {
        return false;
    }
    bool found = e->kind != LQ_VARIABLE;
    for (i64 i = 0; i < known->count && !found; i++) {
        found = sv_eq(known->items[i]->text, e->text);
    }
    for (i64 i = 0; i < e->args.count && found; i++) {
        found = is_known(known, e->args.items[i]);
    }
    return found;
}

/* How many atoms are left whose row variables of `args` do not decide; *known gets the variables that they do. */
static i64 decide(struct lq_bind *b, const struct lq_scope *scope, const lq_exprs *args,
                  lq_exprs *known) {
    b8 *decided = NEW_ARRAY(b->arena, b8, scope->facts.count + 1);
    i64 left = scope->facts.count;
    for (i64 i = 0; i < args->count; i++) {
        if (args->items[i]->kind == LQ_VARIABLE) {
            VEC_PUSH(b->arena, known, args->items[i]);
        }
    }
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (i64 i = 0; i < scope->facts.count; i++) {
            const struct lq_fact *fact = &scope->facts.items[i];
            bool all = !decided[i] && !fact->is_bag;
            for (i32 k = 0; k < fact->key_count && all; k++) {
                all = is_known(known, fact->args[k]);
            }
            if (!all) {
                continue;
            }
            decided[i] = 1;
            moved = true;
            left--;
            for (i32 k = 0; k < fact->arg_count; k++) {
                if (fact->args[k]->kind == LQ_VARIABLE) {
                    VEC_PUSH(b->arena, known, (struct lq_expr *)(size_t)fact->args[k]);
                }
            }
        }
    }
    return left;
}

bool head_decides(struct lq_bind *b, const struct lq_scope *scope, const lq_exprs *args) {
    lq_exprs known = {0};
    return decide(b, scope, args, &known) == 0;
}

/* Whether the conjunction says that the variable equals something of known ones. */
static bool is_equated(const lq_conj *conj, const lq_exprs *known, const struct lq_expr *variable) {
    bool found = false;
    for (i64 i = 0; conj && variable->kind == LQ_VARIABLE && i < conj->count && !found; i++) {
        const struct lq_lit *lit = conj->items[i];
        bool one =
            lit->kind == LQ_COMPARE && lit->terms.count == 2 && lit->compares.items[0] == LQ_EQ;
        for (i32 side = 0; one && side < 2 && !found; side++) {
            const struct lq_expr *term = lit->terms.items[side];
            found = term->kind == LQ_VARIABLE && sv_eq(term->text, variable->text) &&
                    is_known(known, lit->terms.items[1 - side]);
        }
    }
    return found;
}

/* Whether a key has one value: all atoms are decided by it, or at least what the values are made of. */
static bool key_decides(struct lq_bind *b, const struct lq_scope *scope, const struct lq_rule *rule,
                        const lq_exprs *args) {
    lq_exprs known = {0}, keys = *args;
    keys.count = rule->pred->key_count >= 0 ? rule->pred->key_count : args->count;
    bool decides = true;
    if (decide(b, scope, &keys, &known) == 0) {
        return true;
    }
    for (i64 i = keys.count; i < args->count && decides; i++) {
        decides =
            is_known(&known, args->items[i]) || is_equated(rule->body, &known, args->items[i]);
    }
    return decides;
}

FALLIBLE head_argument(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *arg,
                       i32 i, struct lq_bound *out) {
    const struct lq_pred *pred = b->rule->pred;
    struct sv kind = pred->declared ? kind_of(pred, i) : (struct sv){NULL, 0};
    if (kind.len > 0 && is_literal(arg)) {
        out->kinds[i] = kind;
        TRY(entity_literal(b, kind, arg, &out->exprs[i]));
    } else {
        out->kinds[i] = expr_kind(b, scope, arg);
        TRY(expr_bind(b, scope, arg, &out->exprs[i]));
    }
    if (out->exprs[i]->kind == EXPR_CONST && type_is_integer(out->exprs[i]->type)) {
        TRY(coerce_to(b->t, out->exprs[i], type_of(TYPE_BIGINT), &out->exprs[i]));
    }
    return ERR_OK;
}

static FALLIBLE bind_plain(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    struct lq_scope scope = {0};
    lq_exprs args = {0};
    i32 count = atom_arity(rule->head);
    for (i32 i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &args, (struct lq_expr *)(size_t)atom_arg(rule->head, i));
    }
    TRY(body_bind(b, &scope, rule->body, &args));
    out->exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    out->kinds = NEW_ARRAY(b->arena, struct sv, count + 1);
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *open = first_unbound(&scope, args.items[i]);
        if (open && open->kind == LQ_VARIABLE) {
            error_set(b->err, ERR_UNDEFINED_COLUMN, lq_at(b, open->position),
                      "variable %.*s of the head is not bound by the body",
                      (int)MIN_OF(open->text.len, 100), open->text.ptr);
            error_hint(b->err,
                       "An atom that is not negated, or an equation, must give its values.");
            return b->err->code;
        }
        TRY(head_argument(b, &scope, args.items[i], i, out));
        out->exprs[i] = expr_defined(b, out->exprs[i]);
        if (args.items[i]->kind != LQ_VARIABLE && expr_nullable(b->plan, out->exprs[i])) {
            VEC_PUSH(b->arena, &scope.conds, expr_not_null(b, out->exprs[i]));
        }
    }
    out->one_value = key_decides(b, &scope, rule, &args);
    out->is_set = head_decides(b, &scope, &args);
    out->rel = scope_rel(b, &scope);
    out->facts = scope.facts.items;
    out->fact_count = scope.facts.count;
    return ERR_OK;
}

FALLIBLE rule_bind(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    b->rule = rule;
    wf_status status = ERR_OK;
    switch ((enum lq_fold_kind)rule->clause->fold) {
    case LQ_AGG:
        status = rule->best ? fold_best(b, rule, out) : fold_agg(b, rule, out);
        break;
    case LQ_SEQ:
        status = fold_seq(b, rule, out);
        break;
    case LQ_SERIES:
        status = fold_series(b, rule, out);
        break;
    default:
        status = bind_plain(b, rule, out);
    }
    b->rule = NULL;
    return status;
}

/* --- the rules of a predicate --- */

/* Column i of all rules in one type: the declared one, or what holds the values of all. */
static FALLIBLE unify_column(struct lq_bind *b, const struct lq_pred *pred, i32 i,
                             const struct lq_bound *bounds) {
    i64 count = pred->rules.count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    for (i64 r = 0; r < count; r++) {
        const struct lq_rule *rule = pred->rules.items[r];
        struct expr *with =
            pred->declared ? expr_null(b->t, pred->types[i], -1) : bounds[0].exprs[i];
        exprs[r] = bounds[r].exprs[i];
        i32 position = rule->own ? atom_arg(rule->head, i)->position : -1;
        bool literal = exprs[r]->kind == EXPR_CONST || with->kind == EXPR_CONST;
        struct lq_value mine = {exprs[r], bounds[r].kinds[i]};
        struct lq_value other = {with, pred->declared ? kind_of(pred, i) : bounds[0].kinds[i]};
        if (!pred->declared || !literal || mine.kind.len > 0 || other.kind.len > 0 ||
            class_of(exprs[r]->type) != class_of(with->type)) {
            TRY(values_meet(b, mine, other, position));
        }
        if (pred->declared) {
            TRY(coerce_to(b->t, exprs[r], pred->types[i], &exprs[r]));
            exprs[r] = expr_defined(b, exprs[r]);
        }
    }
    struct type type;
    if (!pred->declared) {
        TRY(coerce_common(b->t, exprs, (i32)count, "rules", &type));
    }
    for (i64 r = 0; r < count; r++) {
        bounds[r].exprs[i] = exprs[r];
    }
    return ERR_OK;
}

static FALLIBLE take_columns(struct lq_bind *b, struct lq_pred *pred, const struct rel *rel,
                             const struct lq_bound *bound) {
    if (!pred->declared) {
        pred->types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
        pred->kinds = bound->kinds;
        for (i32 i = 0; i < pred->arity; i++) {
            pred->types[i] = b->plan->cols.items[rel->out.items[i]].type;
        }
    }
    return arena_check(b->arena, b->err);
}

static bool is_constant(const struct lq_rule *rule) {
    bool constant = !rule->body || rule->body->count == 0;
    for (i32 i = 0; i < atom_arity(rule->head) && constant; i++) {
        constant = atom_arg(rule->head, i)->kind < LQ_PREDICATE;
    }
    return constant;
}

/* Texts and whole numbers that are written differently are different, but as floats. */
static bool is_plain_literal(const struct lq_expr *e) {
    bool number = e->kind == LQ_INT && (e->text.len == 1 || e->text.ptr[0] != '0');
    return e->kind == LQ_STRING || number;
}

/* In the first columns. */
static bool all_differ(struct lq_bind *b, const struct lq_pred *pred, const struct lq_bound *bounds,
                       i32 col_count) {
    struct map seen;
    map_init(&seen, b->arena);
    for (i64 r = 0; r < pred->rules.count; r++) {
        struct text row;
        text_init(&row, b->arena);
        for (i32 i = 0; i < col_count; i++) {
            const struct lq_expr *arg = atom_arg(pred->rules.items[r]->head, i);
            if (!is_plain_literal(arg) || type_is_float(bounds[r].exprs[i]->type)) {
                return false;
            }
            text_print(&row, "%lld ", (long long)arg->text.len);
            text_append(&row, arg->text);
        }
        if (map_find(&seen, (struct sv){row.ptr, row.len})) {
            return false;
        }
        map_set(&seen, (struct sv){row.ptr, row.len}, (void *)(size_t)pred);
    }
    return true;
}

/* Facts alone are one table of values. */
static struct rel *values_of(struct lq_bind *b, const struct lq_pred *pred,
                             const struct lq_bound *bounds) {
    struct rel *rel = one_row(b);
    for (i64 r = 0; r < pred->rules.count; r++) {
        for (i32 i = 0; i < pred->arity; i++) {
            VEC_PUSH(b->arena, &rel->values.exprs, bounds[r].exprs[i]);
        }
    }
    for (i32 i = 0; i < pred->arity; i++) {
        u32 col = plan_col_new(b->plan, pred->names[i], bounds[0].exprs[i]->type, false);
        VEC_PUSH(b->arena, &rel->out, col);
    }
    rel->rows = pred->rules.count;
    return rel;
}

static FALLIBLE pred_bind(struct lq_bind *b, struct lq_pred *pred) {
    i64 count = pred->rules.count;
    struct lq_bound *bounds = NEW_ARRAY(b->arena, struct lq_bound, count + 1);
    bool constant = pred->arity > 0;
    for (i64 r = 0; r < count; r++) {
        TRY(rule_bind(b, pred->rules.items[r], &bounds[r]));
        constant = constant && is_constant(pred->rules.items[r]);
    }
    for (i32 i = 0; i < pred->arity; i++) {
        TRY(unify_column(b, pred, i, bounds));
    }
    struct rel *all = constant ? values_of(b, pred, bounds) : NULL;
    for (i64 r = 0; r < count && !constant; r++) {
        struct rel *rel = lq_project(b, bounds[r].rel, bounds[r].exprs, pred->names, pred->arity);
        all = all ? rel_unite(b, all, rel) : rel;
    }
    bool is_set =
        constant ? all_differ(b, pred, bounds, pred->arity) : rules_apart(b, pred, bounds);
    pred->rel = is_set ? all : lq_distinct(b, all);
    pred->one_value =
        count == 1 ? bounds[0].one_value : constant && all_differ(b, pred, bounds, pred->key_count);
    return take_columns(b, pred, pred->rel, &bounds[0]);
}

struct rel *pred_read(struct lq_bind *b, struct lq_pred *pred) {
    if (pred->origin == ORIGIN_KEPT) {
        return scan_new(b->plan, &pred->kept, pred->name.ptr, -1);
    }
    if (pred->draft) {
        return fix_atom(pred->draft, pred->relation);
    }
    if (pred->fix && !pred->best) {
        return fix_read(b->plan, pred->fix, pred->relation);
    }
    return rel_shared(b->plan, pred->rel, pred->rel->out.items, NULL, pred->rel->out.count);
}

/* --- all of them --- */

/* A mistake in one of predicates that derive each other is told once. */
static bool has_failed(const struct lq_bind *b, const struct lq_pred *pred) {
    bool failed = pred->failed;
    for (i64 i = 0; i < b->order.count && pred->recursive && !failed; i++) {
        const struct lq_pred *other = b->order.items[i];
        failed = other->component == pred->component && other->failed;
    }
    return failed;
}

FALLIBLE relations_bind(struct lq_bind *b) {
    for (i64 i = 0; i < b->order.count; i++) {
        struct lq_pred *pred = b->order.items[i];
        if (pred->origin == ORIGIN_RULES && !pred->rel && !pred->fix && !has_failed(b, pred)) {
            wf_status status = pred->recursive ? recursion_bind(b, pred) : pred_bind(b, pred);
            TRY(lq_noted(b, status, pred));
        }
    }
    return ERR_OK;
}

/* --- for others --- */

static FALLIBLE add_clause(struct lq_bind *b, struct lq_clause *clause) {
    if (clause->taken) {
        return ERR_OK;
    }
    if (clause->kind == LQ_CONSTRAINT) {
        error_set(b->err, ERR_NOT_SUPPORTED, clause->position,
                  "a constraint holds for a database, not within a query");
        error_hint(b->err, "State it by CALL logiql('…'), or ask for what violates it.");
        return b->err->code;
    }
    for (i64 i = 0; i < clause->heads.count; i++) {
        const struct lq_atom *head = clause->heads.items[i];
        if (head->delta) {
            FAIL_AT(b->err, SYNTAX, head->position, "a query changes nothing");
        }
    }
    TRY(clause_makes(b, clause));
    clause_solve_makes(b, clause);
    return clause_rules(b, clause, true);
}

static FALLIBLE bind_text(struct lq_bind *b, struct sv text, struct lq_pred **out) {
    struct lq_program program;
    TRY(lq_parse(b->arena, arena_sv(b->arena, text), &program, b->err));
    if (program.mistakes.count > 0) {
        const struct lq_mistake *first = &program.mistakes.items[0];
        error_set(b->err, first->code, first->position, "%s", first->message);
        if (first->hint) {
            error_hint(b->err, "%s", first->hint);
        }
        return b->err->code;
    }
    lq_preds declared = {0};
    TRY(declarations_add(b, &program, &declared));
    for (i64 i = 0; i < program.clauses.count; i++) {
        TRY(add_clause(b, program.clauses.items[i]));
    }
    *out = pred_known(b, SV(LQ_VIOLATIONS));
    *out = *out ? *out : pred_known(b, SV("_"));
    *out = *out ? *out : pred_known(b, SV(LQ_ROWS));
    if (!*out || (*out)->rules.count == 0) {
        error_set(b->err, ERR_SYNTAX, -1, "there is no query");
        error_hint(b->err, "A query is a clause for _, as in _(x, y) <- edge(x, y).");
        return b->err->code;
    }
    return ERR_OK;
}

FALLIBLE logiql_bind(struct plan *plan, struct snapshot *snap, const struct rule_request *request,
                     struct bound_relation *out, struct error *err) {
    struct lq_bind *b = NEW(plan->arena, struct lq_bind);
    struct lq_pred *pred = NULL;
    TRY(arena_check(plan->arena, err));
    TRY(snapshot_open(snap, err));
    lq_bind_init(b, plan, snap, err);
    b->views = request->views;
    if (request->view) {
        TRY(pred_of_view(b, request->view, &pred));
    } else {
        TRY(bind_text(b, request->text, &pred));
    }
    TRY(strata_add(b, pred));
    TRY(relations_bind(b));
    out->rel = pred_read(b, pred);
    out->names = pred->names;
    if (!request->view && !sv_eq(pred->name, SV(LQ_ROWS))) {
        TRY(entities_shown(b, pred, &out->rel));
    }
    if (!request->view && sv_eq(pred->name, SV("_"))) {
        local_claims(b, request->text, &out->check);
    }
    return arena_check(plan->arena, err);
}

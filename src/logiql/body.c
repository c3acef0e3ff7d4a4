/* body.c: a conjunction to operators: atoms joined, comparisons, negations.
 *
 * Literals stand in any order. Atoms come first: they bind variables to columns. Comparisons follow
 * as soon as their variables are bound; an equation also binds a variable that it can be solved for.
 * Negations come last: an anti join with a conjunction of its own, whose variables are those of the
 * conjunction around it where that binds them. Joins are left as products with conditions; the
 * optimiser finds keys and orders. */
#include "logiql/bind_int.h"

/* left compare right; `col` stands for the left where that is a column of an atom. */
struct test {
    u8 compare;
    b8 done;
    const struct lq_expr *left, *right;
    struct lq_value col;
    const struct lq_atom *atom; /* one that is built in */
    i32 position;
};

struct goal {
    lq_atoms atoms;
    lq_atoms total; /* of functions that have a default */
    VEC(struct test) tests;
    lq_conj nots;
};

/* --- variables --- */

static const struct lq_variable *find(const struct lq_scope *scope, struct sv name) {
    for (; scope; scope = scope->outer) {
        for (i64 i = 0; i < scope->vars.count; i++) {
            if (sv_eq(scope->vars.items[i].name, name)) {
                return &scope->vars.items[i];
            }
        }
    }
    return NULL;
}

struct expr *variable_find(const struct lq_scope *scope, struct sv name) {
    const struct lq_variable *variable = find(scope, name);
    return variable ? variable->value.expr : NULL;
}

struct sv variable_kind(const struct lq_scope *scope, struct sv name) {
    const struct lq_variable *variable = find(scope, name);
    return variable ? variable->value.kind : (struct sv){NULL, 0};
}

void variable_set(struct lq_bind *b, struct lq_scope *scope, struct sv name,
                  struct lq_value value) {
    struct lq_variable variable = {name, value};
    struct expr *expr = value.expr;
    VEC_PUSH(b->arena, &scope->vars, variable);
    if (expr_can_raise(expr) || expr_nullable(b->plan, expr)) {
        VEC_PUSH(b->arena, &scope->conds, expr_not_null(b, expr_defined(b, expr)));
    }
}

struct rel *one_row(struct lq_bind *b) {
    struct rel *rel = rel_new(b->plan, REL_VALUES, NULL, NULL);
    rel->rows = 1;
    return rel;
}

struct rel *scope_rel(struct lq_bind *b, struct lq_scope *scope) {
    struct rel *rel = scope->rel ? scope->rel : one_row(b);
    if (scope->conds.count > 0) {
        struct rel *filter = rel_new(b->plan, REL_FILTER, rel, NULL);
        for (i64 i = 0; i < scope->conds.count; i++) {
            expr_split_and(b->arena, &filter->filter.conds, scope->conds.items[i]);
        }
        filter->rows = MAX_OF(rel->rows / 3, 1);
        rel = filter;
        scope->conds.count = 0;
    }
    scope->rel = rel;
    return rel;
}

/* --- literals to a goal: functions that are predicates become atoms --- */

static bool is_lifted(const struct lq_expr *e) {
    return e->kind == LQ_APPLY && !builtin_is_function(e->text);
}

static const struct lq_pred *total_pred(struct lq_bind *b, const struct lq_atom *atom) {
    const struct lq_pred *pred = pred_look(b, atom->name);
    return pred && pred->fallback && pred->arity == atom_arity(atom) ? pred : NULL;
}

static void push_reading(struct lq_bind *b, struct goal *goal, struct lq_atom *atom) {
    VEC_PUSH(b->arena, total_pred(b, atom) ? &goal->total : &goal->atoms, atom);
}

static void push_atom(struct lq_bind *b, struct goal *goal, const struct lq_expr *e, lq_exprs keys,
                      struct lq_expr *value) {
    struct lq_atom *atom = NEW(b->arena, struct lq_atom);
    *atom = (struct lq_atom){.form = LQ_KEYED,
                             .stage = e->stage,
                             .position = e->position,
                             .name = e->text,
                             .keys = keys};
    VEC_PUSH(b->arena, &atom->values, value);
    push_reading(b, goal, atom);
}

static struct lq_expr *lift(struct lq_bind *b, struct goal *goal, struct lq_expr *e) {
    struct lq_expr *copy = e;
    for (i64 i = 0; i < e->args.count; i++) {
        struct lq_expr *arg = lift(b, goal, e->args.items[i]);
        if (arg != e->args.items[i] && copy == e) {
            copy = NEW(b->arena, struct lq_expr);
            *copy = *e;
            copy->args = (lq_exprs){0};
            for (i64 k = 0; k < e->args.count; k++) {
                VEC_PUSH(b->arena, &copy->args, e->args.items[k]);
            }
        }
        copy->args.items[i] = arg;
    }
    if (!is_lifted(e)) {
        return copy;
    }
    struct lq_expr *value = variable_new(b, arena_printf(b->arena, "$%d", ++b->fresh));
    value->position = e->position;
    push_atom(b, goal, e, copy->args, value);
    return value;
}

static void lift_all(struct lq_bind *b, struct goal *goal, lq_exprs *list) {
    lq_exprs lifted = {0};
    for (i64 i = 0; i < list->count; i++) {
        VEC_PUSH(b->arena, &lifted, lift(b, goal, list->items[i]));
    }
    *list = lifted;
}

static FALLIBLE take_atom(struct lq_bind *b, struct goal *goal, const struct lq_atom *atom) {
    struct lq_atom *copy = NEW(b->arena, struct lq_atom);
    struct type type;
    *copy = *atom;
    if (atom->delta) {
        FAIL_AT(b->err, NOT_SUPPORTED, lq_at(b, atom->position),
                "only clauses of changes read changes");
    }
    lift_all(b, goal, &copy->keys);
    lift_all(b, goal, &copy->values);
    bool type_word = lq_type_named(atom->name, &type) && !pred_exists(b, atom->name);
    if (type_word || builtin_is_atom(atom->name)) {
        struct test test = {.atom = copy, .position = lq_at(b, atom->position)};
        VEC_PUSH(b->arena, &goal->tests, test);
        return ERR_OK;
    }
    push_reading(b, goal, copy);
    return ERR_OK;
}

/* f[k] = v with v a variable, a literal or _: an atom, which says what decides v. */
static bool take_equation(struct lq_bind *b, struct goal *goal, const struct lq_lit *lit) {
    if (lit->compares.count != 1 || lit->compares.items[0] != LQ_EQ) {
        return false;
    }
    bool left = is_lifted(lit->terms.items[0]);
    const struct lq_expr *e = lit->terms.items[left ? 0 : 1];
    struct lq_expr *value = lit->terms.items[left ? 1 : 0];
    bool plain = value->kind == LQ_VARIABLE || value->kind == LQ_ANY || is_literal(value);
    if (!is_lifted(e) || !plain) {
        return false;
    }
    lq_exprs keys = e->args;
    lift_all(b, goal, &keys);
    push_atom(b, goal, e, keys, value);
    return true;
}

static void take_compares(struct lq_bind *b, struct goal *goal, const struct lq_lit *lit) {
    lq_exprs terms = lit->terms;
    if (take_equation(b, goal, lit)) {
        return;
    }
    lift_all(b, goal, &terms);
    for (i64 i = 0; i < lit->compares.count; i++) {
        struct test test = {.compare = lit->compares.items[i],
                            .left = terms.items[i],
                            .right = terms.items[i + 1],
                            .position = lq_at(b, lit->compare_positions.items[i])};
        VEC_PUSH(b->arena, &goal->tests, test);
    }
}

static FALLIBLE take_literals(struct lq_bind *b, struct goal *goal, const lq_conj *conj) {
    for (i64 i = 0; conj && i < conj->count; i++) {
        struct lq_lit *lit = conj->items[i];
        if (lit->kind == LQ_ATOM) {
            TRY(take_atom(b, goal, lit->atom));
        } else if (lit->kind == LQ_COMPARE) {
            take_compares(b, goal, lit);
        } else {
            VEC_PUSH(b->arena, &goal->nots, lit);
        }
    }
    return ERR_OK;
}

/* --- atoms --- */

static void join_atom(struct lq_bind *b, struct lq_scope *scope, struct rel *rel) {
    if (!scope->rel) {
        scope->rel = rel;
        return;
    }
    i128 rows = (i128)scope->rel->rows * rel->rows;
    scope->rel = rel_join(b->plan, JOIN_CROSS, scope->rel, rel);
    scope->rel->rows = rows > I64_MAX ? I64_MAX : (i64)rows;
}

/* A literal that stands for an entity of a table: its refmode is one more atom. */
static FALLIBLE name_entity(struct lq_bind *b, struct goal *goal, struct sv kind,
                            const struct lq_expr **io) {
    struct lq_atom *atom = NULL;
    struct lq_expr *variable = variable_new(b, arena_printf(b->arena, "$%d", ++b->fresh));
    variable->position = (*io)->position;
    TRY(entity_atom(b, kind, *io, variable, &atom));
    VEC_PUSH(b->arena, &goal->atoms, atom);
    if (b->rule) {
        VEC_PUSH(b->arena, &b->rule->pred->also, pred_look(b, kind));
    }
    *io = variable;
    return ERR_OK;
}

static FALLIBLE bind_atom(struct lq_bind *b, struct lq_scope *scope, struct goal *goal,
                          const struct lq_atom *atom) {
    struct rel *rel = NULL;
    u32 *cols = NULL;
    i64 reads = scope->reads.count;
    bool keyed = false;
    TRY(atom_rel(b, scope, atom, &rel, &cols));
    const struct lq_pred *pred = pred_known(b, atom->name);
    for (i64 i = 0; i < reads; i++) {
        keyed = keyed || scope->reads.items[i].scan == rel;
    }
    if (!keyed) {
        join_atom(b, scope, rel);
    }
    for (i32 i = 0; i < atom_arity(atom); i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        if (arg->kind == LQ_ANY && pred->origin == ORIGIN_COLUMN && i == pred->key_count &&
            b->plan->cols.items[cols[i]].nullable) { /* t:a[k] = _: it has a value, whichever */
            VEC_PUSH(b->arena, &scope->conds, expr_not_null(b, expr_col(b->plan, cols[i], -1)));
        }
        if (arg->kind == LQ_ANY || (keyed && i < atom->keys.count)) {
            continue;
        }
        struct lq_value col = {expr_col(b->plan, cols[i], lq_at(b, arg->position)),
                               kind_of(pred, i)};
        if (col.kind.len > 0 && is_literal(arg) && kind_is_stored(b, col.kind)) {
            TRY(name_entity(b, goal, col.kind, &arg));
        }
        if (arg->kind == LQ_VARIABLE && !variable_find(scope, arg->text)) {
            variable_set(b, scope, arg->text, col);
            continue;
        }
        struct test test = {
            .compare = LQ_EQ, .col = col, .right = arg, .position = lq_at(b, arg->position)};
        VEC_PUSH(b->arena, &goal->tests, test);
    }
    return ERR_OK;
}

/* --- comparisons and equations --- */

/* The variable of `e` gets the value that makes it `value`; false when that cannot be said. */
static FALLIBLE solve(struct lq_bind *b, struct lq_scope *scope, const struct lq_expr *e,
                      struct lq_value of, bool *out_done) {
    struct expr *value = of.expr;
    *out_done = false;
    if (e->kind == LQ_VARIABLE) {
        variable_set(b, scope, e->text, of);
        *out_done = true;
        return ERR_OK;
    }
    bool exact = type_is_exact(value->type) && of.kind.len == 0;
    if (e->kind == LQ_NEGATE && exact) {
        TRY(operator_unary(b->t, "-", value, value->position, &value));
        return solve(b, scope, e->args.items[0], (struct lq_value){.expr = value}, out_done);
    }
    if (e->kind != LQ_BINARY || !exact || (e->op != '+' && e->op != '-')) {
        return ERR_OK;
    }
    bool left_open = !is_bound(scope, e->args.items[0]);
    if (left_open && !is_bound(scope, e->args.items[1])) {
        return ERR_OK;
    }
    struct expr *known = NULL;
    TRY(expr_bind(b, scope, e->args.items[left_open ? 1 : 0], &known));
    TRY(classes_meet(b, value, known, lq_at(b, e->position)));
    bool adds = e->op == '-' && left_open;
    bool swaps = e->op == '-' && !left_open; /* known - x = value */
    struct expr *left = swaps ? known : value;
    struct expr *right = swaps ? value : known;
    if (type_is_integer(left->type)) {
        TRY(coerce_to(b->t, left, type_of(TYPE_BIGINT), &left));
    }
    TRY(operator_binary(b->t, adds ? "+" : "-", left, right, lq_at(b, e->position), &value));
    return solve(b, scope, e->args.items[left_open ? 0 : 1], (struct lq_value){.expr = value},
                 out_done);
}

/* int(x): says what x is. */
static FALLIBLE check_type(struct lq_bind *b, const struct test *test, struct expr *arg) {
    struct type type;
    (void)lq_type_named(test->atom->name, &type);
    return classes_meet(b, arg, expr_null(b->t, type, -1), test->position);
}

static FALLIBLE try_atom(struct lq_bind *b, struct lq_scope *scope, struct test *test) {
    struct expr *args[8] = {NULL};
    struct expr *cond = NULL;
    i32 count = atom_arity(test->atom);
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(test->atom, i);
        struct sv kind = expr_kind(b, scope, arg);
        if (kind.len > 0) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, lq_at(b, arg->position),
                    "%.*s takes values, no entity of %.*s", (int)MIN_OF(test->atom->name.len, 100),
                    test->atom->name.ptr, (int)MIN_OF(kind.len, 100), kind.ptr);
        }
    }
    for (i32 i = 0; i < count; i++) {
        if (!is_bound(scope, atom_arg(test->atom, i))) {
            return ERR_OK;
        }
    }
    test->done = 1;
    for (i32 i = 0; i < count && i < COUNT_OF(args); i++) {
        TRY(expr_bind(b, scope, atom_arg(test->atom, i), &args[i]));
    }
    if (!builtin_is_atom(test->atom->name)) {
        return count == 1 ? check_type(b, test, args[0]) : ERR_OK;
    }
    TRY(builtin_atom(b, test->atom, args, &cond));
    VEC_PUSH(b->arena, &scope->conds, cond);
    return ERR_OK;
}

/* One side of a comparison: a literal may stand for an entity, which the other side is. */
static FALLIBLE bind_side(struct lq_bind *b, struct lq_scope *scope, struct goal *goal,
                          const struct lq_expr *e, struct sv other, struct lq_value *out) {
    if (other.len == 0 || !is_literal(e)) {
        out->kind = expr_kind(b, scope, e);
        return expr_bind(b, scope, e, &out->expr);
    }
    out->kind = other;
    if (!kind_is_stored(b, other)) {
        return entity_literal(b, other, e, &out->expr);
    }
    i64 first = goal->atoms.count;
    TRY(name_entity(b, goal, other, &e));
    TRY(bind_atom(b, scope, goal, goal->atoms.items[first]));
    return expr_bind(b, scope, e, &out->expr);
}

static FALLIBLE compare_sides(struct lq_bind *b, struct lq_scope *scope, const struct test *test,
                              struct lq_value l, struct lq_value r) {
    struct expr *cond = NULL;
    TRY(values_meet(b, l, r, test->position));
    if (l.kind.len > 0 && test->compare != LQ_EQ && test->compare != LQ_NE) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, test->position, "entities of %.*s have no order",
                (int)MIN_OF(l.kind.len, 100), l.kind.ptr);
    }
    TRY(expr_compare(b, test->compare, l.expr, r.expr, test->position, &cond));
    VEC_PUSH(b->arena, &scope->conds, cond);
    return ERR_OK;
}

/* Binding a side may add atoms, and tests with them: the one at hand is a copy. */
static FALLIBLE try_test(struct lq_bind *b, struct lq_scope *scope, struct goal *goal, i64 at) {
    struct test test = goal->tests.items[at];
    if (test.atom) {
        return try_atom(b, scope, &goal->tests.items[at]);
    }
    bool left = test.col.expr || is_bound(scope, test.left);
    bool right = is_bound(scope, test.right);
    struct lq_value l = test.col;
    struct lq_value r = {NULL, {NULL, 0}};
    struct sv kind = left && !l.expr ? expr_kind(b, scope, test.left) : l.kind;
    if (right) {
        TRY(bind_side(b, scope, goal, test.right, kind, &r));
    }
    if (left && !l.expr) {
        TRY(bind_side(b, scope, goal, test.left, r.kind, &l));
    }
    bool done = left && right;
    if (done) {
        TRY(compare_sides(b, scope, &test, l, r));
    } else if (test.compare == LQ_EQ && (left || right)) {
        TRY(solve(b, scope, left ? test.right : test.left, left ? l : r, &done));
    }
    goal->tests.items[at].done = done;
    return ERR_OK;
}

static FALLIBLE settle_tests(struct lq_bind *b, struct lq_scope *scope, struct goal *goal) {
    bool moved = true;
    while (moved) {
        moved = false;
        for (i64 i = 0; i < goal->tests.count; i++) {
            if (!goal->tests.items[i].done) {
                TRY(try_test(b, scope, goal, i));
                moved = moved || goal->tests.items[i].done;
            }
        }
    }
    return ERR_OK;
}

/* --- functions that have a value for every key --- */

static bool keys_bound(const struct lq_scope *scope, const struct lq_atom *atom, i32 count) {
    for (i32 i = 0; i < count; i++) {
        if (!is_bound(scope, atom_arg(atom, i))) {
            return false;
        }
    }
    return true;
}

/* Keys that others bind get the value, or the default where there is none. */
static FALLIBLE bind_total(struct lq_bind *b, struct lq_scope *scope, struct goal *goal,
                           const struct lq_atom *atom, const struct lq_pred *pred) {
    struct lq_scope own = {.counts = scope->counts};
    struct rel *left = scope_rel(b, scope);
    struct rel *right = NULL;
    u32 *cols = NULL;
    TRY(atom_rel(b, &own, atom, &right, &cols));
    struct rel *join = rel_join(b->plan, JOIN_LEFT, left, right);
    join->rows = left->rows;
    for (i32 i = 0; i < pred->key_count; i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        struct lq_value key = {NULL, {NULL, 0}};
        struct lq_value col = {expr_col(b->plan, cols[i], -1), kind_of(pred, i)};
        struct expr *cond = NULL;
        TRY(bind_side(b, scope, goal, arg, col.kind, &key));
        TRY(values_meet(b, key, col, lq_at(b, arg->position)));
        TRY(expr_compare(b, LQ_EQ, key.expr, col.expr, lq_at(b, arg->position), &cond));
        VEC_PUSH(b->arena, &join->join.conds, cond);
    }
    struct type type = b->plan->cols.items[cols[pred->key_count]].type;
    for (i64 i = 0; i < right->out.count; i++) {
        b->plan->cols.items[right->out.items[i]].nullable = 1;
    }
    struct expr *fallback = NULL;
    TRY(expr_bind(b, NULL, pred->fallback, &fallback));
    TRY(coerce_to(b->t, fallback, type, &fallback));
    struct expr *value = expr_call(b->arena, FUNC_COALESCE, type, -1, 2,
                                   expr_col(b->plan, cols[pred->key_count], -1), fallback);
    scope->rel = join;
    if (b->rule) {
        VEC_PUSH(b->arena, &b->rule->pred->also, (struct lq_pred *)(size_t)pred);
    }
    struct test test = {.compare = LQ_EQ,
                        .col = {value, {NULL, 0}},
                        .right = atom_arg(atom, pred->key_count),
                        .position = lq_at(b, atom->position)};
    if (test.right->kind != LQ_ANY) {
        VEC_PUSH(b->arena, &goal->tests, test);
    }
    return settle_tests(b, scope, goal);
}

static FALLIBLE bind_totals(struct lq_bind *b, struct lq_scope *scope, struct goal *goal) {
    for (i64 done = 0; done < goal->total.count; done++) {
        i64 at = done; /* the next whose keys are bound; else one that binds some */
        while (at < goal->total.count &&
               !keys_bound(scope, goal->total.items[at],
                           total_pred(b, goal->total.items[at])->key_count)) {
            at++;
        }
        bool total = at < goal->total.count;
        at = total ? at : done;
        struct lq_atom *atom = goal->total.items[at];
        goal->total.items[at] = goal->total.items[done];
        goal->total.items[done] = atom;
        if (total) {
            TRY(bind_total(b, scope, goal, atom, total_pred(b, atom)));
            continue;
        }
        TRY(bind_atom(b, scope, goal, atom));
        TRY(settle_tests(b, scope, goal));
    }
    return ERR_OK;
}

/* --- parts of a text, all of them --- */

/* A part of a text whose number nothing else binds. */
static const struct lq_expr *open_split(const struct lq_scope *scope, const struct lq_expr *e) {
    bool split = e && e->kind == LQ_APPLY && e->args.count == 3 && sv_eq(e->text, SV("string:split"));
    if (split && e->args.items[2]->kind == LQ_VARIABLE && !is_bound(scope, e->args.items[2]) &&
        is_bound(scope, e->args.items[0]) && is_bound(scope, e->args.items[1])) {
        return e;
    }
    const struct lq_expr *found = NULL;
    for (i64 i = 0; e && i < e->args.count && !found; i++) {
        found = open_split(scope, e->args.items[i]);
    }
    return found;
}

/* The numbers from 0 to `last`: a recursion that counts, since `last` is the row's. */
static FALLIBLE numbers_to(struct lq_bind *b, struct expr *last, struct rel **out) {
    static const char *const names[2] = {"last", "number"};
    enum { NUMBERS_GUESS = 10 };
    struct plan_col cols[2] = {{names[0], type_of(TYPE_BIGINT), 0}, {names[1], type_of(TYPE_BIGINT), 0}};
    struct expr *zero = NULL, *one = NULL, *next = NULL, *goes_on = NULL;
    TRY(coerce_to(b->t, last, type_of(TYPE_BIGINT), &last));
    TRY(coerce_to(b->t, expr_int(b->t, 0, -1), type_of(TYPE_BIGINT), &zero));
    TRY(coerce_to(b->t, expr_int(b->t, 1, -1), type_of(TYPE_BIGINT), &one));
    struct lq_scope first = {.rel = one_row(b)};
    last = expr_defined(b, last);
    VEC_PUSH(b->arena, &first.conds, expr_not_null(b, last));
    struct expr *begin[2] = {last, zero};
    struct fix_draft *draft = fix_open(b->plan, 1);
    fix_relation(draft, 0, cols, 2, false);
    fix_base(draft, 0, lq_project(b, scope_rel(b, &first), begin, (const char **)(size_t)names, 2));
    struct lq_scope round = {.rel = fix_atom(draft, 0)};
    struct expr *at[2] = {expr_col(b->plan, round.rel->out.items[0], -1),
                          expr_col(b->plan, round.rel->out.items[1], -1)};
    TRY(expr_compare(b, LQ_LT, at[1], at[0], -1, &goes_on));
    VEC_PUSH(b->arena, &round.conds, goes_on);
    TRY(operator_binary(b->t, "+", at[1], one, -1, &next));
    at[1] = next;
    fix_rule(draft, 0, lq_project(b, scope_rel(b, &round), at, (const char **)(size_t)names, 2));
    *out = fix_read(b->plan, fix_close(draft), 0);
    (*out)->rows = NUMBERS_GUESS;
    return arena_check(b->arena, b->err);
}

/* The variable gets the numbers of all parts. */
static FALLIBLE bind_split(struct lq_bind *b, struct lq_scope *scope, const struct lq_expr *e) {
    struct expr *args[2] = {NULL, NULL};
    struct expr *last = NULL;
    struct rel *numbers = NULL;
    for (i32 i = 0; i < 2; i++) {
        TRY(expr_bind(b, scope, e->args.items[i], &args[i]));
    }
    TRY(builtin_last_part(b, args, lq_at(b, e->position), &last));
    TRY(numbers_to(b, last, &numbers));
    struct rel *left = scope_rel(b, scope);
    scope->rel = rel_join(b->plan, JOIN_CROSS, left, numbers);
    scope->rel->rows = left->rows;
    scope->rel->join.dependent = rel_free_cols(b->plan, numbers, NULL) > 0;
    struct lq_value number = {expr_col(b->plan, numbers->out.items[1], -1), {NULL, 0}};
    variable_set(b, scope, e->args.items[2]->text, number);
    return ERR_OK;
}

static FALLIBLE bind_splits(struct lq_bind *b, struct lq_scope *scope, struct goal *goal) {
    for (i64 i = 0; i < goal->tests.count; i++) {
        const struct test *test = &goal->tests.items[i];
        const struct lq_expr *open = test->done ? NULL : open_split(scope, test->left);
        open = open || test->done ? open : open_split(scope, test->right);
        if (open) {
            TRY(bind_split(b, scope, open));
            TRY(settle_tests(b, scope, goal));
            i = -1;
        }
    }
    return ERR_OK;
}

static FALLIBLE refuse_unbound(struct lq_bind *b, const struct lq_expr *e) {
    if (e->kind == LQ_ANY) {
        FAIL_AT(b->err, SYNTAX, lq_at(b, e->position), "_ stands only for arguments of atoms");
    }
    error_set(b->err, ERR_UNDEFINED_COLUMN, lq_at(b, e->position), "variable %.*s is not bound",
              (int)MIN_OF(e->text.len, 100), e->text.ptr);
    error_hint(b->err, "An atom that is not negated, or an equation, must give its values.");
    return b->err->code;
}

static FALLIBLE check_settled(struct lq_bind *b, const struct lq_scope *scope,
                              const struct goal *goal) {
    for (i64 i = 0; i < goal->tests.count; i++) {
        const struct test *test = &goal->tests.items[i];
        if (test->done) {
            continue;
        }
        const struct lq_expr *open = test->left ? first_unbound(scope, test->left) : NULL;
        open = open || !test->right ? open : first_unbound(scope, test->right);
        for (i32 k = 0; test->atom && !open && k < atom_arity(test->atom); k++) {
            open = first_unbound(scope, atom_arg(test->atom, k));
        }
        if (open) {
            return refuse_unbound(b, open);
        }
    }
    return ERR_OK;
}

/* --- negation --- */

struct within {
    const struct rel *rel;
    bool all;
};

static void check_col(u32 col, void *arg) {
    struct within *w = arg;
    bool found = false;
    for (i64 i = 0; i < w->rel->out.count && !found; i++) {
        found = w->rel->out.items[i] == col;
    }
    w->all = w->all && found;
}

/* No row makes the conditions true: they need no rows. */
static struct expr *none_hold(struct lq_bind *b, const expr_list *conds, i32 position) {
    if (conds->count == 0) {
        return expr_bool(b->t, false, position);
    }
    struct expr *all = conds->count == 1 ? conds->items[0]
                                         : expr_many(b->t, EXPR_AND, type_of(TYPE_BOOLEAN),
                                                     position, (i32)conds->count, conds->items);
    if (expr_nullable(b->plan, all)) {
        all = expr_call(b->arena, FUNC_COALESCE, type_of(TYPE_BOOLEAN), position, 2, all,
                        expr_bool(b->t, false, position));
    }
    return expr_one(b->t, EXPR_NOT, all, position);
}

/* !p(x, y): a variable that nothing else binds is a slip; _ means any. */
static FALLIBLE check_negated(struct lq_bind *b, const struct lq_scope *scope,
                              const lq_conj *conj) {
    const struct lq_atom *atom =
        conj->count == 1 && conj->items[0]->kind == LQ_ATOM ? conj->items[0]->atom : NULL;
    for (i32 i = 0; atom && i < atom_arity(atom); i++) {
        const struct lq_expr *arg = atom_arg(atom, i);
        if (arg->kind == LQ_VARIABLE && !variable_find(scope, arg->text)) {
            error_set(b->err, ERR_UNDEFINED_COLUMN, lq_at(b, arg->position),
                      "variable %.*s is not bound", (int)MIN_OF(arg->text.len, 100), arg->text.ptr);
            error_hint(b->err, "A negated atom binds no variable; write _ for any value.");
            return b->err->code;
        }
    }
    return ERR_OK;
}

/* The atom f[k] = v of a literal. */
static const struct lq_atom *equation_atom(struct lq_bind *b, const struct lq_lit *lit) {
    if (lit->kind == LQ_ATOM) {
        return lit->atom;
    }
    struct goal goal = {0};
    bool one = lit->kind == LQ_COMPARE && take_equation(b, &goal, lit);
    return one && goal.total.count == 1 && goal.atoms.count == 0 ? goal.total.items[0] : NULL;
}

/* What is negated of a function with a default is asked of its value, which there always is. */
static FALLIBLE negate_totals(struct lq_bind *b, struct lq_scope *scope, const lq_conj **io) {
    lq_conj *conj = NEW(b->arena, lq_conj);
    for (i64 i = 0; i < (*io)->count; i++) {
        struct lq_lit *lit = (*io)->items[i];
        const struct lq_atom *atom = equation_atom(b, lit);
        const struct lq_pred *pred = atom ? total_pred(b, atom) : NULL;
        if (!pred || !keys_bound(scope, atom, pred->key_count)) {
            VEC_PUSH(b->arena, conj, lit);
            continue;
        }
        struct goal goal = {0};
        struct lq_atom asked = {.position = atom->position, .name = atom->name};
        for (i32 k = 0; k < pred->key_count; k++) {
            VEC_PUSH(b->arena, &asked.keys, (struct lq_expr *)(size_t)atom_arg(atom, k));
        }
        struct lq_expr *value = variable_new(b, arena_printf(b->arena, "$%d", ++b->fresh));
        VEC_PUSH(b->arena, &asked.keys, value);
        TRY(bind_total(b, scope, &goal, &asked, pred));
        struct lq_expr *said = (struct lq_expr *)(size_t)atom_arg(atom, pred->key_count);
        if (said->kind != LQ_ANY) {
            struct lq_lit *same = NEW(b->arena, struct lq_lit);
            *same = (struct lq_lit){.kind = LQ_COMPARE, .position = lit->position};
            VEC_PUSH(b->arena, &same->terms, value);
            VEC_PUSH(b->arena, &same->terms, said);
            VEC_PUSH(b->arena, &same->compares, (u8)LQ_EQ);
            VEC_PUSH(b->arena, &same->compare_positions, lit->position);
            VEC_PUSH(b->arena, conj, same);
        }
    }
    *io = conj;
    return arena_check(b->arena, b->err);
}

static FALLIBLE bind_not(struct lq_bind *b, struct lq_scope *scope, const struct lq_lit *lit) {
    struct lq_scope inner = {.outer = scope};
    const lq_conj *conj = lit->inner->formula->any.items[0];
    i32 position = lq_at(b, lit->position);
    TRY(check_negated(b, scope, conj));
    TRY(negate_totals(b, scope, &conj));
    TRY(body_bind(b, &inner, conj, NULL));
    if (!inner.rel) {
        VEC_PUSH(b->arena, &scope->conds, none_hold(b, &inner.conds, position));
        return ERR_OK;
    }
    expr_list both = {0};
    expr_list own = {0};
    for (i64 i = 0; i < inner.conds.count; i++) {
        struct within w = {inner.rel, true};
        expr_each_col(inner.conds.items[i], check_col, &w);
        VEC_PUSH(b->arena, w.all ? &own : &both, inner.conds.items[i]);
    }
    inner.conds = own;
    struct rel *right = scope_rel(b, &inner);
    struct rel *left = scope_rel(b, scope);
    struct rel *join = rel_join(b->plan, JOIN_ANTI, left, right);
    join->position = position;
    join->join.conds = both;
    join->rows = left->rows;
    join->join.dependent = rel_free_cols(b->plan, right, NULL) > 0;
    scope->rel = join;
    return ERR_OK;
}

FALLIBLE body_bind(struct lq_bind *b, struct lq_scope *scope, const lq_conj *conj,
                   lq_exprs *extra) {
    struct goal goal = {0};
    TRY(take_literals(b, &goal, conj));
    if (extra) {
        lift_all(b, &goal, extra);
    }
    for (i64 i = 0; i < goal.atoms.count; i++) {
        scope->atom = i;
        TRY(bind_atom(b, scope, &goal, goal.atoms.items[i]));
    }
    TRY(settle_tests(b, scope, &goal));
    TRY(bind_totals(b, scope, &goal));
    TRY(bind_splits(b, scope, &goal));
    TRY(check_settled(b, scope, &goal));
    for (i64 i = 0; i < goal.nots.count; i++) {
        TRY(bind_not(b, scope, goal.nots.items[i]));
    }
    return arena_check(b->arena, b->err);
}

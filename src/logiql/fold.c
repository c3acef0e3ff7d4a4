/* fold.c: agg<< … >>, seq<< … >> and series<< … >>: groups of a body's bindings.
 *
 * The bindings are not projected first: equal values of different bindings all count. A group exists
 * where there is a binding, so that nothing is derived from none. */
#include "logiql/bind_int.h"

static const struct lq_call *call_of(const struct lq_clause *clause, const struct lq_expr *arg) {
    for (i64 i = 0; arg->kind == LQ_VARIABLE && i < clause->calls.count; i++) {
        if (sv_eq(clause->calls.items[i].variable, arg->text)) {
            return &clause->calls.items[i];
        }
    }
    return NULL;
}

static FALLIBLE function_of(struct lq_bind *b, const struct lq_call *call, struct agg_call *out) {
    static const struct {
        const char *name;
        i32 count;
        u8 agg;
        b8 distinct;
    } known[] = {{"count", 0, AGG_COUNT_STAR, 0}, {"total", 1, AGG_SUM, 0},
                 {"min", 1, AGG_MIN, 0},          {"max", 1, AGG_MAX, 0},
                 {"avg", 1, AGG_AVG, 0},          {"count_distinct", 1, AGG_COUNT, 1}};
    for (i64 i = 0; i < COUNT_OF(known); i++) {
        if (sv_eq(call->name, sv_from(known[i].name))) {
            if (call->args.count != known[i].count || call->keys.count > 0) {
                FAIL_AT(b->err, UNDEFINED_FUNCTION, lq_at(b, call->position),
                        "%s takes %d arguments", known[i].name, known[i].count);
            }
            out->agg = known[i].agg;
            out->distinct = known[i].distinct;
            return ERR_OK;
        }
    }
    error_set(b->err, ERR_UNDEFINED_FUNCTION, lq_at(b, call->position),
              "there is no aggregate %.*s", (int)MIN_OF(call->name.len, 100), call->name.ptr);
    error_hint(b->err, "There are count(), total, min, max, avg and count_distinct of x.");
    return b->err->code;
}

/* What calls are of, for the body to bind: functions that are predicates become atoms of it. */
static lq_exprs call_args(struct lq_bind *b, const struct lq_clause *clause) {
    lq_exprs args = {0};
    for (i64 i = 0; i < clause->calls.count; i++) {
        for (i64 k = 0; k < clause->calls.items[i].args.count; k++) {
            VEC_PUSH(b->arena, &args, clause->calls.items[i].args.items[k]);
        }
    }
    return args;
}

/* The clause with what the body made of them. */
static const struct lq_clause *with_args(struct lq_bind *b, const struct lq_clause *clause,
                                         const lq_exprs *args) {
    struct lq_clause *copy = NEW(b->arena, struct lq_clause);
    i64 at = 0;
    *copy = *clause;
    memset(&copy->calls, 0, sizeof copy->calls);
    for (i64 i = 0; i < clause->calls.count; i++) {
        struct lq_call call = clause->calls.items[i];
        i64 count = call.args.count;
        call.args = (lq_exprs){0};
        for (i64 k = 0; k < count; k++) {
            VEC_PUSH(b->arena, &call.args, args->items[at++]);
        }
        VEC_PUSH(b->arena, &copy->calls, call);
    }
    return copy;
}

static struct sv *head_kinds(struct lq_bind *b, const struct lq_scope *scope,
                             const struct lq_atom *head) {
    struct sv *kinds = NEW_ARRAY(b->arena, struct sv, atom_arity(head) + 1);
    for (i32 i = 0; i < atom_arity(head); i++) {
        kinds[i] = expr_kind(b, scope, atom_arg(head, i));
    }
    return kinds;
}

/* Entities can be counted, and there is nothing else to be done with them. */
static FALLIBLE check_argument(struct lq_bind *b, const struct lq_scope *scope,
                               const struct lq_call *call) {
    struct sv kind =
        call->args.count == 1 ? expr_kind(b, scope, call->args.items[0]) : (struct sv){NULL, 0};
    if (kind.len > 0 && !sv_eq(call->name, SV("count_distinct"))) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, lq_at(b, call->position),
                "%.*s takes values, no entity of %.*s", (int)MIN_OF(call->name.len, 100),
                call->name.ptr, (int)MIN_OF(kind.len, 100), kind.ptr);
    }
    return ERR_OK;
}

static bool is_constant(const struct lq_expr *arg) {
    return arg->kind < LQ_PREDICATE || (arg->kind == LQ_NEGATE && is_constant(arg->args.items[0]));
}

/* A head's argument that is a variable of the body. */
static FALLIBLE head_variable(struct lq_bind *b, const struct lq_scope *scope,
                              const struct lq_expr *arg, struct expr **out) {
    i32 position = lq_at(b, arg->position);
    if (arg->kind != LQ_VARIABLE) {
        FAIL_AT(b->err, SYNTAX, position,
                "the head of an aggregation has variables and constants only");
    }
    *out = variable_find(scope, arg->text);
    if (!*out) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, position, "variable %.*s is not bound",
                (int)MIN_OF(arg->text.len, 100), arg->text.ptr);
    }
    *out = expr_defined(b, *out);
    return ERR_OK;
}

/* Adds the call and gives its value: int totals are int, and undefined where they do not fit. */
static FALLIBLE add_call(struct lq_bind *b, const struct lq_scope *scope, struct rel *agg,
                         const struct lq_call *call, struct expr **out) {
    bool grouped = agg->agg.keys.count > 0; /* then there is a row in each */
    i32 position = lq_at(b, call->position);
    struct agg_call made = {.position = position};
    struct expr *args[1] = {NULL};
    struct type type;
    TRY(function_of(b, call, &made));
    TRY(check_argument(b, scope, call));
    if (call->args.count == 1) {
        TRY(expr_bind(b, scope, call->args.items[0], &args[0]));
        args[0] = expr_defined(b, args[0]);
    }
    struct call of = {.name = agg_names[made.agg],
                      .args = args,
                      .count = (i32)call->args.count,
                      .position = position};
    type = type_of(TYPE_BIGINT);
    if (made.agg != AGG_COUNT_STAR) {
        TRY(agg_args(b->t, &of, &made, &type));
    }
    bool none = !grouped || (args[0] && expr_nullable(b->plan, args[0]));
    bool counts = made.agg == AGG_COUNT_STAR || made.agg == AGG_COUNT;
    made.col = plan_col_new(b->plan, arena_sv(b->arena, call->variable).ptr, type, none && !counts);
    VEC_PUSH(b->arena, &agg->agg.calls, made);
    *out = expr_col(b->plan, made.col, position);
    bool whole = made.agg == AGG_SUM && args[0] && type_is_integer(args[0]->type);
    return whole ? coerce_to(b->t, *out, type_of(TYPE_BIGINT), out) : ERR_OK;
}

/* Without keys there is one group, which must have a binding. */
static struct rel *not_empty(struct lq_bind *b, struct rel *agg, u32 count) {
    struct rel *filter = rel_new(b->plan, REL_FILTER, agg, NULL);
    struct expr *zero = expr_int(b->t, 0, -1);
    zero->type = type_of(TYPE_BIGINT);
    const_set_exact(zero, 0);
    VEC_PUSH(b->arena, &filter->filter.conds,
             expr_call(b->arena, FUNC_GT, type_of(TYPE_BOOLEAN), -1, 2,
                       expr_col(b->plan, count, -1), zero));
    filter->rows = 1;
    return filter;
}

static FALLIBLE check_calls(struct lq_bind *b, const struct lq_scope *scope,
                            const struct lq_clause *clause) {
    for (i64 i = 0; i < clause->calls.count; i++) {
        const struct lq_call *call = &clause->calls.items[i];
        if (variable_find(scope, call->variable)) {
            FAIL_AT(b->err, SYNTAX, lq_at(b, call->position),
                    "%.*s is both a result and a variable of the body",
                    (int)MIN_OF(call->variable.len, 100), call->variable.ptr);
        }
    }
    return ERR_OK;
}

static struct rel *close_groups(struct lq_bind *b, struct rel *agg) {
    struct agg_call count = {.agg = AGG_COUNT_STAR, .position = -1};
    bool whole = agg->agg.keys.count == 0;
    if (whole) {
        count.col = plan_col_new(b->plan, "count", type_of(TYPE_BIGINT), false);
        VEC_PUSH(b->arena, &agg->agg.calls, count);
    }
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        VEC_PUSH(b->arena, &agg->out, agg->agg.calls.items[i].col);
    }
    agg->rows = whole ? 1 : MAX_OF(rel_input(agg)->rows / 10, 1);
    return whole ? not_empty(b, agg, count.col) : agg;
}

FALLIBLE fold_agg(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    struct lq_scope scope = {.counts = 1};
    lq_exprs args = call_args(b, rule->clause);
    TRY(body_bind(b, &scope, rule->body, &args));
    const struct lq_clause *clause = with_args(b, rule->clause, &args);
    TRY(check_calls(b, &scope, clause));
    struct rel *agg = rel_new(b->plan, REL_AGG, scope_rel(b, &scope), NULL);
    i32 count = atom_arity(rule->head);
    out->exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    out->kinds = head_kinds(b, &scope, rule->head);
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(rule->head, i);
        if (call_of(clause, arg)) {
            continue;
        }
        if (is_constant(arg)) { /* the same in all groups */
            TRY(head_argument(b, &scope, arg, i, out));
            continue;
        }
        struct expr *key = NULL;
        TRY(head_variable(b, &scope, arg, &key));
        u32 col = plan_col_new(b->plan, arena_sv(b->arena, arg->text).ptr, key->type,
                               expr_nullable(b->plan, key));
        VEC_PUSH(b->arena, &agg->agg.keys, key);
        VEC_PUSH(b->arena, &agg->out, col);
        out->exprs[i] = expr_col(b->plan, col, lq_at(b, arg->position));
    }
    expr_list conds = {0};
    for (i32 i = 0; i < count; i++) {
        const struct lq_call *call = call_of(clause, atom_arg(rule->head, i));
        if (call) {
            TRY(add_call(b, &scope, agg, call, &out->exprs[i]));
        }
        if (expr_can_raise(out->exprs[i])) {
            out->exprs[i] = expr_defined(b, out->exprs[i]);
            VEC_PUSH(b->arena, &conds, expr_not_null(b, out->exprs[i]));
        }
    }
    struct lq_scope done = {.rel = close_groups(b, agg), .conds = conds};
    out->rel = scope_rel(b, &done);
    out->is_set = 1;
    out->one_value = 1;
    for (i32 i = MAX_OF(rule->pred->key_count, 0); i < count; i++) { /* a group's key as a value */
        const struct lq_expr *arg = atom_arg(rule->head, i);
        out->one_value = out->one_value && (call_of(clause, arg) || is_constant(arg));
    }
    return ERR_OK;
}

static bool reads_predicates(const struct lq_expr *e) {
    bool reads = e->kind == LQ_APPLY && !builtin_is_function(e->text);
    for (i64 i = 0; i < e->args.count && !reads; i++) {
        reads = reads_predicates(e->args.items[i]);
    }
    return reads;
}

/* What the body alone does not tell: atoms that come of what is aggregated. */
static bool calls_read(const struct lq_clause *clause) {
    bool read = false;
    for (i64 i = 0; i < clause->calls.count; i++) {
        for (i64 k = 0; k < clause->calls.items[i].args.count && !read; k++) {
            read = reads_predicates(clause->calls.items[i].args.items[k]);
        }
    }
    return read;
}

/* The first arguments of a head that say which group a number, or a running total, belongs to. */
static i32 leading_keys(const struct lq_rule *rule) {
    const struct lq_clause *clause = rule->clause;
    i32 keys = 0;
    for (bool more = true; more && keys < atom_arity(rule->head); keys += more) {
        const struct lq_expr *arg = atom_arg(rule->head, keys);
        more = clause->fold == LQ_SEQ ? arg->kind != LQ_VARIABLE || formula_names(clause->body, arg->text)
                                      : !call_of(clause, arg);
        for (i64 i = 0; i < clause->calls.count && more; i++) { /* what the total goes along */
            const lq_exprs *along = &clause->calls.items[i].keys;
            more = along->count != 1 || arg->kind != LQ_VARIABLE || !sv_eq(along->items[0]->text, arg->text);
        }
    }
    return keys;
}

bool fold_is_grouped(const struct lq_pred *pred, i32 *out_keys) {
    const struct lq_rule *rule = pred->rules.count == 1 ? pred->rules.items[0] : NULL;
    i32 keys = 0;
    if (!rule || !rule->clause->fold || rule->best || pred->recursive || pred->makes ||
        calls_read(rule->clause)) {
        return false;
    }
    if (rule->clause->fold != LQ_AGG) {
        *out_keys = leading_keys(rule);
        return *out_keys > 0;
    }
    i32 count = atom_arity(rule->head);
    while (keys < count && !call_of(rule->clause, atom_arg(rule->head, keys))) {
        keys++;
    }
    for (i32 i = keys; i < count; i++) {
        if (!call_of(rule->clause, atom_arg(rule->head, i))) {
            return false;
        }
    }
    *out_keys = keys;
    return keys > 0 && (pred->key_count < 0 || pred->key_count == keys);
}

/* --- the best value of a key --- */

bool fold_can_be_best(const struct lq_rule *rule, i32 *out_value, bool *out_greatest) {
    i32 found = 0;
    for (i32 i = 0; rule->clause->fold == LQ_AGG && i < atom_arity(rule->head); i++) {
        const struct lq_call *call = call_of(rule->clause, atom_arg(rule->head, i));
        if (!call) {
            continue;
        }
        *out_greatest = sv_eq(call->name, SV("max"));
        bool extreme = *out_greatest || sv_eq(call->name, SV("min"));
        if (!extreme || call->args.count != 1 || call->keys.count > 0) {
            return false;
        }
        *out_value = i;
        found++;
    }
    return found == 1;
}

FALLIBLE fold_best(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    struct lq_scope scope = {0};
    lq_exprs args = call_args(b, rule->clause);
    i32 count = atom_arity(rule->head);
    TRY(body_bind(b, &scope, rule->body, &args));
    const struct lq_clause *clause = with_args(b, rule->clause, &args);
    TRY(check_calls(b, &scope, clause));
    out->exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    out->kinds = head_kinds(b, &scope, rule->head);
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(rule->head, i);
        const struct lq_call *call = call_of(clause, arg);
        if (!call) {
            TRY(head_variable(b, &scope, arg, &out->exprs[i]));
            continue;
        }
        TRY(check_argument(b, &scope, call));
        TRY(expr_bind(b, &scope, call->args.items[0], &out->exprs[i]));
        out->exprs[i] = expr_defined(b, out->exprs[i]);
        if (expr_nullable(b->plan, out->exprs[i])) {
            VEC_PUSH(b->arena, &scope.conds, expr_not_null(b, out->exprs[i]));
        }
    }
    out->rel = scope_rel(b, &scope);
    out->one_value = out->is_set = 0;
    return ERR_OK;
}

/* --- seq --- */

struct sequence_head {
    i32 index;  /* the argument that gets the number */
    i32 groups; /* arguments before it */
};

static FALLIBLE sequence_head_of(struct lq_bind *b, const struct lq_scope *scope,
                                 const struct lq_atom *head, struct sequence_head *out) {
    out->index = -1;
    for (i32 i = 0; i < atom_arity(head); i++) {
        const struct lq_expr *arg = atom_arg(head, i);
        if (arg->kind == LQ_VARIABLE && !variable_find(scope, arg->text)) {
            if (out->index >= 0) {
                FAIL_AT(b->err, UNDEFINED_COLUMN, lq_at(b, arg->position),
                        "variable %.*s is not bound", (int)MIN_OF(arg->text.len, 100),
                        arg->text.ptr);
            }
            out->index = i;
        }
    }
    if (out->index < 0) {
        FAIL_AT(b->err, SYNTAX, lq_at(b, head->position),
                "the head of seq has a variable for the number, which the body does not bind");
    }
    out->groups = out->index;
    return ERR_OK;
}

/* The bindings of the head's variables and of those to order by, each once. */
struct sequence_input {
    struct expr **exprs;
    const char **names;
    i64 *orders; /* which of them each order is by */
    i64 count, own_count;
};

static void input_add(struct sequence_input *in, struct expr *expr, const char *name) {
    in->exprs[in->count] = expr;
    in->names[in->count++] = name;
}

static FALLIBLE order_input(struct lq_bind *b, const struct lq_scope *scope,
                            const struct lq_clause *clause, struct sequence_input *in) {
    for (i64 i = 0; i < clause->orders.count; i++) {
        const struct lq_order *order = &clause->orders.items[i];
        struct expr *expr = variable_find(scope, order->variable);
        if (!expr) {
            FAIL_AT(b->err, UNDEFINED_COLUMN, lq_at(b, order->position),
                    "variable %.*s is not bound", (int)MIN_OF(order->variable.len, 100),
                    order->variable.ptr);
        }
        in->orders[i] = 0;
        while (in->orders[i] < in->count &&
               !sv_eq(sv_from(in->names[in->orders[i]]), order->variable)) {
            in->orders[i]++;
        }
        if (in->orders[i] == in->count) {
            input_add(in, expr_defined(b, expr), arena_sv(b->arena, order->variable).ptr);
        }
    }
    return ERR_OK;
}

static struct rel *number_rows(struct lq_bind *b, struct rel *rel, const struct lq_clause *clause,
                               const struct sequence_head *head, const struct sequence_input *in) {
    u32 number = plan_col_new(b->plan, "number", type_of(TYPE_BIGINT), false);
    struct rel *window = rel_numbered(b->plan, rel, number);
    b8 *ordered = NEW_ARRAY(b->arena, b8, in->count + 1);
    for (i64 i = 0; i < head->groups; i++) {
        VEC_PUSH(b->arena, &window->window.keys, expr_col(b->plan, rel->out.items[i], -1));
    }
    for (i64 i = 0; i < clause->orders.count; i++) {
        i64 col = in->orders[i];
        struct order_key key = {expr_col(b->plan, rel->out.items[col], -1),
                                clause->orders.items[i].descends, 0};
        if (!ordered[col]) {
            VEC_PUSH(b->arena, &window->window.order, key);
        }
        ordered[col] = 1;
    }
    for (i64 i = head->groups; i < in->own_count; i++) {
        struct order_key key = {expr_col(b->plan, rel->out.items[i], -1), 0, 0};
        if (!ordered[i]) {
            VEC_PUSH(b->arena, &window->window.order, key);
        }
    }
    return window;
}

/* Whether what is numbered decides the rows it comes from. */
static bool sequence_is_set(struct lq_bind *b, const struct lq_scope *scope,
                            const struct lq_atom *head, i32 index) {
    lq_exprs args = {0};
    for (i32 i = 0; i < atom_arity(head); i++) {
        if (i != index) {
            VEC_PUSH(b->arena, &args, (struct lq_expr *)(size_t)atom_arg(head, i));
        }
    }
    return args.count > 0 && head_decides(b, scope, &args);
}

FALLIBLE fold_seq(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    struct lq_scope scope = {.counts = 0};
    struct sequence_head head = {-1, 0};
    i32 count = atom_arity(rule->head);
    TRY(body_bind(b, &scope, rule->body, NULL));
    TRY(sequence_head_of(b, &scope, rule->head, &head));
    i64 most = count + rule->clause->orders.count;
    struct sequence_input in = {NEW_ARRAY(b->arena, struct expr *, most + 1),
                                NEW_ARRAY(b->arena, const char *, most + 1),
                                NEW_ARRAY(b->arena, i64, rule->clause->orders.count + 1), 0, 0};
    for (i32 i = 0; i < count; i++) {
        struct expr *value = NULL;
        if (i != head.index) {
            TRY(head_variable(b, &scope, atom_arg(rule->head, i), &value));
            input_add(&in, value, arena_sv(b->arena, atom_arg(rule->head, i)->text).ptr);
        }
    }
    in.own_count = in.count;
    TRY(order_input(b, &scope, rule->clause, &in));
    struct rel *rel = lq_project(b, scope_rel(b, &scope), in.exprs, in.names, in.count);
    rel = sequence_is_set(b, &scope, rule->head, head.index) ? rel : lq_distinct(b, rel);
    struct rel *window = number_rows(b, rel, rule->clause, &head, &in);
    u32 number = window->out.items[window->out.count - 1];
    out->exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    out->kinds = head_kinds(b, &scope, rule->head);
    i64 at = 0;
    for (i32 i = 0; i < count; i++) {
        if (i != head.index) {
            out->exprs[i] = expr_col(b->plan, rel->out.items[at++], -1);
            continue;
        }
        struct expr *one = NULL;
        TRY(coerce_to(b->t, expr_int(b->t, 1, -1), type_of(TYPE_BIGINT), &one));
        TRY(operator_binary(b->t, "-", expr_col(b->plan, number, -1), one, -1, &out->exprs[i]));
    }
    out->rel = window;
    out->is_set = 1;
    out->one_value = head.index < rule->pred->key_count;
    return ERR_OK;
}

/* --- series --- */

/* The variable that a running total follows: runtotal[i](x). */
static FALLIBLE series_order(struct lq_bind *b, const struct lq_scope *scope,
                             const struct lq_call *call, struct expr **out) {
    i32 position = lq_at(b, call->position);
    if (!sv_eq(call->name, SV("runtotal"))) {
        error_set(b->err, ERR_UNDEFINED_FUNCTION, position, "there is no series %.*s",
                  (int)MIN_OF(call->name.len, 100), call->name.ptr);
        error_hint(b->err, "There is runtotal[i](x), the total of x up to i.");
        return b->err->code;
    }
    if (call->keys.count != 1 || call->args.count != 1 ||
        call->keys.items[0]->kind != LQ_VARIABLE) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position,
                "runtotal takes a variable to go along and a value, as in runtotal[i](x)");
    }
    return head_variable(b, scope, call->keys.items[0], out);
}

/* One call: a sum over the bindings of its group up to the one at hand and its equals. */
static FALLIBLE run_total(struct lq_bind *b, const struct lq_rule *rule,
                          const struct lq_scope *scope, const struct lq_call *call,
                          struct rel **io_rel, struct expr **out) {
    struct expr *along = NULL;
    struct expr *args[1] = {NULL};
    struct agg_call sum = {.agg = AGG_SUM, .position = lq_at(b, call->position)};
    struct type type;
    TRY(series_order(b, scope, call, &along));
    TRY(check_argument(b, scope, call));
    TRY(expr_bind(b, scope, call->args.items[0], &args[0]));
    args[0] = expr_defined(b, args[0]);
    bool whole = type_is_integer(args[0]->type);
    struct call of = {.name = "sum", .args = args, .count = 1, .position = sum.position};
    TRY(agg_args(b->t, &of, &sum, &type));
    struct rel *window = rel_new(b->plan, REL_WINDOW, *io_rel, NULL);
    struct window_call made = {.is_agg = 1, .func = AGG_SUM, .position = sum.position};
    made.frame =
        (struct frame){.mode = FRAME_RANGE, .from = BOUND_UNBOUNDED_BEFORE, .to = BOUND_CURRENT};
    made.args[0] = sum.arg;
    made.arg_count = 1;
    made.col = plan_col_new(b->plan, arena_sv(b->arena, call->variable).ptr, type, true);
    for (i32 i = 0; i < atom_arity(rule->head); i++) {
        const struct lq_expr *arg = atom_arg(rule->head, i);
        struct expr *key = NULL;
        if (!call_of(rule->clause, arg) && !sv_eq(arg->text, call->keys.items[0]->text)) {
            TRY(head_variable(b, scope, arg, &key));
            VEC_PUSH(b->arena, &window->window.keys, key);
        }
    }
    VEC_PUSH(b->arena, &window->window.order, ((struct order_key){along, 0, 0}));
    VEC_PUSH(b->arena, &window->window.calls, made);
    VEC_PUSH(b->arena, &window->out, made.col);
    window->rows = (*io_rel)->rows;
    *io_rel = window;
    *out = expr_col(b->plan, made.col, sum.position);
    return whole ? coerce_to(b->t, *out, type_of(TYPE_BIGINT), out) : ERR_OK;
}

FALLIBLE fold_series(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out) {
    struct lq_scope scope = {.counts = 1};
    i32 count = atom_arity(rule->head);
    TRY(body_bind(b, &scope, rule->body, NULL));
    TRY(check_calls(b, &scope, rule->clause));
    struct rel *rel = scope_rel(b, &scope);
    out->exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    out->kinds = head_kinds(b, &scope, rule->head);
    struct lq_scope done = {0};
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(rule->head, i);
        const struct lq_call *call = call_of(rule->clause, arg);
        if (call) {
            TRY(run_total(b, rule, &scope, call, &rel, &out->exprs[i]));
        } else {
            TRY(head_variable(b, &scope, arg, &out->exprs[i]));
        }
        out->exprs[i] = expr_defined(b, out->exprs[i]);
        if (call && expr_nullable(b->plan, out->exprs[i])) {
            VEC_PUSH(b->arena, &done.conds, expr_not_null(b, out->exprs[i]));
        }
    }
    done.rel = rel;
    out->rel = scope_rel(b, &done);
    out->is_set = 0;
    out->one_value = 1;
    for (i32 i = MAX_OF(rule->pred->key_count, 0); i < count; i++) {
        out->one_value = out->one_value && call_of(rule->clause, atom_arg(rule->head, i)) != NULL;
    }
    return ERR_OK;
}

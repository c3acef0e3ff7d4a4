/* print.c: EXPLAIN: a plan as an indented tree, one operator a line, and expressions as SQL.
 *
 * Parentheses are written where precedence needs them, so that an expression reads like the query
 * it came from. A column prints under its name; when the same name belongs to several columns of
 * one plan the number tells them apart. */
#include "plan/plan_int.h"

#include "codes/func.h"

enum {
    PREC_OR = 1,
    PREC_AND,
    PREC_NOT,
    PREC_IS,
    PREC_CMP,
    PREC_LIKE,
    PREC_OTHER,
    PREC_ADD,
    PREC_MUL,
    PREC_ATOM
};

static i32 func_prec(u16 func) {
    switch (func) {
    case FUNC_ADD:
    case FUNC_SUB:
        return PREC_ADD;
    case FUNC_MUL:
    case FUNC_DIV:
    case FUNC_MOD:
        return PREC_MUL;
    case FUNC_EQ:
    case FUNC_NE:
    case FUNC_LT:
    case FUNC_LE:
    case FUNC_GT:
    case FUNC_GE:
        return PREC_CMP;
    case FUNC_LIKE:
    case FUNC_ILIKE:
        return PREC_LIKE;
    case FUNC_CONCAT:
        return PREC_OTHER;
    default:
        return PREC_ATOM;
    }
}

static i32 expr_prec(const struct expr *expr) {
    switch (expr->kind) {
    case EXPR_OR:
        return PREC_OR;
    case EXPR_AND:
        return PREC_AND;
    case EXPR_NOT: /* NOT (x IS NULL) prints as x IS NOT NULL */
        return expr->args[0]->kind == EXPR_IS_NULL ? PREC_IS : PREC_NOT;
    case EXPR_IS_NULL:
        return PREC_IS;
    case EXPR_IN:
        return PREC_LIKE;
    case EXPR_CALL:
        return func_prec(expr->func);
    default:
        return PREC_ATOM;
    }
}

static void print_text_literal(struct text *out, struct sv s) {
    text_append(out, SV("'"));
    i64 start = 0;
    for (i64 i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\'') {
            text_append(out, (struct sv){s.ptr + start, i + 1 - start});
            start = i;
        } else if ((u8)s.ptr[i] >= 0xfe) { /* between parts of a text; no character */
            text_append(out, (struct sv){s.ptr + start, i - start});
            text_print(out, "\\x%02x", (u32)(u8)s.ptr[i]);
            start = i + 1;
        }
    }
    text_append(out, (struct sv){s.ptr + start, s.len - start});
    text_append(out, SV("'"));
}

static void print_const(struct text *out, const struct expr *expr) {
    if (expr->is_null) {
        text_append(out, SV("NULL"));
        return;
    }
    if (type_kind(expr->type) == KIND_STR) {
        print_text_literal(out, sv_of(expr->value.str));
        return;
    }
    char buf[128];
    i32 len = value_print(expr->type, type_kind(expr->type), &expr->value, buf);
    char name[32];
    if (type_is_whole(expr->type) && !type_is_exact(expr->type)) {
        text_print(out, "%s '%.*s'", type_print(expr->type, name), (int)len, buf);
    } else {
        text_append(out, (struct sv){buf, len});
    }
}

static void print_in(struct text *out, const struct plan *plan, const struct expr *expr, i32 prec);

static void print_args(struct text *out, const struct plan *plan, const struct expr *expr,
                       i32 first) {
    enum { SHOWN = 20 }; /* an IN list of thousands stays readable */
    for (i32 i = first; i < expr->arg_count; i++) {
        text_print(out, "%s", i > first ? ", " : "");
        if (i - first >= SHOWN) {
            text_print(out, "... %d more", (int)(expr->arg_count - i));
            return;
        }
        print_in(out, plan, expr->args[i], 0);
    }
}

static void print_call(struct text *out, const struct plan *plan, const struct expr *expr) {
    i32 prec = func_prec(expr->func);
    if (expr->func == FUNC_NEG) {
        text_append(out, SV("-"));
        print_in(out, plan, expr->args[0], PREC_ATOM);
    } else if (prec == PREC_ATOM) {
        text_print(out, "%s(", func_names[expr->func]);
        print_args(out, plan, expr, 0);
        text_append(out, SV(")"));
    } else {
        print_in(out, plan, expr->args[0], prec == PREC_CMP ? prec + 1 : prec);
        text_print(out, " %s ", func_names[expr->func]);
        print_in(out, plan, expr->args[1], prec + 1);
    }
}

static void print_list(struct text *out, const struct plan *plan, const struct expr *expr,
                       const char *word, i32 prec) {
    for (i32 i = 0; i < expr->arg_count; i++) {
        text_print(out, "%s", i > 0 ? word : "");
        print_in(out, plan, expr->args[i], prec + 1);
    }
}

static void print_case(struct text *out, const struct plan *plan, const struct expr *expr) {
    text_append(out, SV("CASE"));
    for (i32 i = 0; i + 1 < expr->arg_count; i += 2) {
        text_append(out, SV(" WHEN "));
        print_in(out, plan, expr->args[i], 0);
        text_append(out, SV(" THEN "));
        print_in(out, plan, expr->args[i + 1], 0);
    }
    text_append(out, SV(" ELSE "));
    print_in(out, plan, expr->args[expr->arg_count - 1], 0);
    text_append(out, SV(" END"));
}

static void print_not(struct text *out, const struct plan *plan, const struct expr *expr) {
    const struct expr *inner = expr->args[0];
    if (inner->kind == EXPR_IS_NULL) {
        print_in(out, plan, inner->args[0], PREC_IS + 1);
        text_append(out, SV(" IS NOT NULL"));
    } else {
        text_append(out, SV("NOT "));
        print_in(out, plan, inner, PREC_NOT);
    }
}

static void print_node(struct text *out, const struct plan *plan, const struct expr *expr) {
    char buf[32];
    switch (expr->kind) {
    case EXPR_COL:
        text_print(out, "%s", plan->cols.items[expr->col].name);
        break;
    case EXPR_CONST:
        print_const(out, expr);
        break;
    case EXPR_PARAM:
        text_print(out, "$%u", expr->param + 1);
        break;
    case EXPR_CALL:
        print_call(out, plan, expr);
        break;
    case EXPR_CAST:
        text_append(out, SV("CAST("));
        print_in(out, plan, expr->args[0], 0);
        text_print(out, " AS %s)", type_print(expr->type, buf));
        break;
    case EXPR_AND:
        print_list(out, plan, expr, " AND ", PREC_AND);
        break;
    case EXPR_OR:
        print_list(out, plan, expr, " OR ", PREC_OR);
        break;
    case EXPR_NOT:
        print_not(out, plan, expr);
        break;
    case EXPR_IS_NULL:
        print_in(out, plan, expr->args[0], PREC_IS + 1);
        text_append(out, SV(" IS NULL"));
        break;
    case EXPR_CASE:
        print_case(out, plan, expr);
        break;
    default:
        print_in(out, plan, expr->args[0], PREC_LIKE + 1);
        text_append(out, SV(" IN ("));
        print_args(out, plan, expr, 1);
        text_append(out, SV(")"));
        break;
    }
}

static void print_in(struct text *out, const struct plan *plan, const struct expr *expr, i32 prec) {
    bool wrap = expr_prec(expr) < prec;
    text_print(out, "%s", wrap ? "(" : "");
    print_node(out, plan, expr);
    text_print(out, "%s", wrap ? ")" : "");
}

void expr_print(struct text *out, const struct plan *plan, const struct expr *expr) {
    print_in(out, plan, expr, 0);
}

static void print_conds(struct text *out, const struct plan *plan, const expr_list *conds,
                        const char *before) {
    text_print(out, "%s", before);
    for (i64 i = 0; i < conds->count; i++) {
        text_print(out, "%s", i > 0 ? " AND " : "");
        print_in(out, plan, conds->items[i], PREC_AND + 1);
    }
}

static void print_exprs(struct text *out, const struct plan *plan, const expr_list *exprs,
                        const char *before) {
    for (i64 i = 0; i < exprs->count; i++) {
        text_print(out, "%s", i > 0 ? ", " : before);
        print_in(out, plan, exprs->items[i], 0);
    }
}

static const char *col_name(const struct plan *plan, u32 col) {
    return plan->cols.items[col].name;
}

static void print_scan(struct text *out, const struct plan *plan, const struct rel *rel) {
    text_print(out, " %s", rel->scan.table_name);
    if (rel->scan.alias && strcmp(rel->scan.alias, rel->scan.table_name) != 0) {
        text_print(out, " as %s", rel->scan.alias);
    }
    text_append(out, SV(" ("));
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        text_print(out, "%s%s", i > 0 ? ", " : "", col_name(plan, rel->scan.cols.items[i].col));
    }
    text_append(out, SV(")"));
}

static const char *const join_names[] = {
    [JOIN_INNER] = "",     [JOIN_CROSS] = "",     [JOIN_LEFT] = " left", [JOIN_FULL] = " full",
    [JOIN_SEMI] = " semi", [JOIN_ANTI] = " anti", [JOIN_MARK] = " mark", [JOIN_SINGLE] = " single",
};

static void print_join(struct text *out, const struct plan *plan, const struct rel_JOIN *join) {
    text_print(out, "%s%s%s", join_names[join->kind], join->dependent ? " dependent" : "",
               join->lazy    ? " lazy"
               : join->meets ? " meeting"
                             : "");
    bool inner = join->kind == JOIN_INNER || join->kind == JOIN_CROSS;
    if (inner && join->left_keys.count == 0 && join->conds.count == 0) {
        text_append(out, SV(" cross"));
    }
    for (i64 i = 0; i < join->left_keys.count; i++) {
        text_print(out, "%s", i > 0 ? " AND " : " on ");
        print_in(out, plan, join->left_keys.items[i], PREC_CMP + 1);
        bool null_safe = i < join->null_safe.count && join->null_safe.items[i];
        text_append(out, null_safe ? SV(" is not distinct from ") : SV(" = "));
        print_in(out, plan, join->right_keys.items[i], PREC_CMP + 1);
    }
    if (join->conds.count > 0) {
        print_conds(out, plan, &join->conds, join->left_keys.count > 0 ? " where " : " on ");
    }
    if (join->right_unique) {
        text_append(out, SV(" (right side unique)"));
    }
}

/* Expressions with the names of the columns they make. */
static void print_made(struct text *out, const struct plan *plan, const struct rel *rel,
                       const expr_list *exprs, const char *before) {
    for (i64 i = 0; i < exprs->count; i++) {
        const struct expr *expr = exprs->items[i];
        text_print(out, "%s", i > 0 ? ", " : before);
        print_in(out, plan, expr, 0);
        const char *name = col_name(plan, rel->out.items[i]);
        bool same = expr->kind == EXPR_COL && strcmp(col_name(plan, expr->col), name) == 0;
        if (!same) {
            text_print(out, " as %s", name);
        }
    }
}

static void print_order(struct text *out, const struct plan *plan, const order_list *order,
                        const char *before) {
    for (i64 i = 0; i < order->count; i++) {
        const struct order_key *key = &order->items[i];
        text_print(out, "%s", i > 0 ? ", " : before);
        print_in(out, plan, key->expr, 0);
        text_print(out, "%s", key->descending ? " desc" : "");
        if (key->nulls_first !=
            key->descending) { /* the default puts NULLs last, or first in DESC */
            text_print(out, "%s", key->nulls_first ? " nulls first" : " nulls last");
        }
    }
}

static void print_filter(struct text *out, const struct plan *plan, const struct expr *filter) {
    if (filter) {
        text_append(out, SV(" filter ("));
        print_in(out, plan, filter, 0);
        text_append(out, SV(")"));
    }
}

static void print_agg_call(struct text *out, const struct plan *plan, const struct agg_call *call) {
    text_print(out, "%s(%s", agg_names[call->agg], call->distinct ? "distinct " : "");
    if (call->arg) {
        print_in(out, plan, call->arg, 0);
    } else {
        text_append(out, SV("*"));
    }
    if (call->arg2) {
        text_append(out, SV(", "));
        print_in(out, plan, call->arg2, 0);
    }
    print_order(out, plan, &call->order, " order by ");
    text_append(out, SV(")"));
    print_filter(out, plan, call->filter);
}

static void print_calls(struct text *out, const struct plan *plan, const agg_list *calls,
                        const char *before) {
    for (i64 i = 0; i < calls->count; i++) {
        text_print(out, "%s", i > 0 ? ", " : before);
        print_agg_call(out, plan, &calls->items[i]);
    }
}

static void print_agg(struct text *out, const struct plan *plan, const struct rel_AGG *agg) {
    print_calls(out, plan, &agg->calls, " ");
    for (i32 implied = 0; implied < 2; implied++) {
        const char *before = implied ? ", which implies " : " by ";
        for (i64 i = 0; i < agg->keys.count; i++) {
            if (implied == (agg->implied.count > 0 && agg->implied.items[i])) {
                text_print(out, "%s", before);
                print_in(out, plan, agg->keys.items[i], 0);
                before = ", ";
            }
        }
    }
    text_print(out, "%s", agg->in_runs ? ", in runs" : "");
}

static void print_bound(struct text *out, const struct plan *plan, u8 bound,
                        const struct expr *offset) {
    static const char *const words[] = {" unbounded preceding", " preceding", " current row",
                                        " following", " unbounded following"};
    if (offset) {
        text_append(out, SV(" "));
        print_in(out, plan, offset, PREC_ATOM);
    }
    text_append(out, sv_from(words[bound]));
}

/* The frame, unless it is what SQL takes when none is written. */
static void print_frame(struct text *out, const struct plan *plan, const struct frame *frame) {
    static const char *const modes[] = {" rows", " range", " groups"};
    static const char *const excludes[] = {"", " exclude current row", " exclude group",
                                           " exclude ties"};
    if (frame->mode == FRAME_RANGE && frame->from == BOUND_UNBOUNDED_BEFORE &&
        frame->to == BOUND_CURRENT && frame->exclude == EXCLUDE_NONE) {
        return;
    }
    text_print(out, "%s between", modes[frame->mode]);
    print_bound(out, plan, frame->from, frame->from_offset);
    text_append(out, SV(" and"));
    print_bound(out, plan, frame->to, frame->to_offset);
    text_append(out, sv_from(excludes[frame->exclude]));
}

static void print_windows(struct text *out, const struct plan *plan, const window_list *calls,
                          const char *before) {
    for (i64 i = 0; i < calls->count; i++) {
        const struct window_call *call = &calls->items[i];
        text_print(out, "%s%s(", i > 0 ? ", " : before,
                   call->is_agg      ? agg_names[call->func]
                   : call->is_serial ? serial_names[call->func]
                                     : window_names[call->func]);
        if (call->is_serial && call->sequence_name) {
            text_print(out, "'%s'%s", call->sequence_name, call->arg_count > 0 ? ", " : "");
        }
        for (i32 k = 0; k < call->arg_count; k++) {
            text_print(out, "%s", k > 0 ? ", " : "");
            print_in(out, plan, call->args[k], 0);
        }
        text_append(out, call->is_agg && call->func == AGG_COUNT_STAR ? SV("*)") : SV(")"));
        print_filter(out, plan, call->filter);
        if (!call->is_serial) {
            print_frame(out, plan, &call->frame);
        }
    }
}

static void print_func(struct text *out, const struct plan *plan, const struct rel *rel) {
    text_print(out, " %s(", table_func_names[rel->func.func]);
    print_exprs(out, plan, &rel->func.args, "");
    text_append(out, SV(")"));
}

/* A field that the table of operators says the words for. */
static void print_field(struct text *out, const struct plan *plan, const struct rel *rel,
                        const struct rel_field *field) {
    const void *at = field_in(rel, field);
    struct expr *const *bound = at;
    switch (field->class) {
    case FIELD_CONDS:
        print_conds(out, plan, at, field->before);
        return;
    case FIELD_EXPRS:
        print_exprs(out, plan, at, field->before);
        return;
    case FIELD_MAKES:
        print_made(out, plan, rel, at, field->before);
        return;
    case FIELD_ORDER:
        print_order(out, plan, at, field->before);
        return;
    case FIELD_WINDOWS:
        print_windows(out, plan, at, field->before);
        return;
    case FIELD_CALLS:
        print_calls(out, plan, at, field->before);
        return;
    case FIELD_BOUND:
        if (*bound) {
            text_print(out, "%s", field->before);
            print_in(out, plan, *bound, 0);
        }
        return;
    default:
        return;
    }
}

/* Inputs of SHARED, in the order they are first met: the number is their name. */
struct shared_list {
    struct arena *arena;
    const i64 *actual; /* rows of operators, by number; NULL = not known */
    b8 bare;           /* no estimates */
    VEC(const struct rel *) items;
};

static i64 shared_number(struct shared_list *list, const struct rel *input, bool *out_first) {
    *out_first = false;
    for (i64 i = 0; i < list->items.count; i++) {
        if (list->items.items[i] == input) {
            return i + 1;
        }
    }
    *out_first = true;
    VEC_PUSH(list->arena, &list->items, input);
    return list->items.count;
}

/* Operators whose fields are not simply printed one after the other. */
static void print_work(struct text *out, const struct rel_WORK *work) {
    static const char *const parts[] = {"", ", old", ", all"};
    if (work->relation > 0) {
        text_print(out, " of relation %u", work->relation + 1);
    }
    text_print(out, "%s", parts[work->part]);
}

static void print_detail(struct text *out, const struct plan *plan, const struct rel *rel) {
    switch (rel->kind) {
    case REL_SCAN:
        print_scan(out, plan, rel);
        break;
    case REL_JOIN:
        print_join(out, plan, &rel->join);
        break;
    case REL_AGG:
        print_agg(out, plan, &rel->agg);
        break;
    case REL_FUNC:
        print_func(out, plan, rel);
        break;
    case REL_WORK:
        print_work(out, &rel->work);
        break;
    case REL_CLIQUES:
        text_print(out, " of %u nodes", rel->cliques.nodes);
        print_exprs(out, plan, &rel->cliques.ends, ", edges ");
        break;
    case REL_SHARED:
        if (rel_input(rel)->kind == REL_FIX && rel_input(rel)->input_count > 2) {
            text_print(out, ", relation %u", rel->shared.relation + 1);
        }
        break;
    default:
        EACH_FIELD(field, rel) {
            if (field->before) {
                print_field(out, plan, rel, field);
            }
        }
        break;
    }
}

static void print_rel(struct text *out, const struct plan *plan, const struct rel *rel, i32 depth,
                      struct shared_list *list) {
    bool first = true;
    text_print(out, "%*s%s", (int)(2 * depth), "", rel_names[rel->kind]);
    if (rel_shares(rel)) {
        text_print(out, " #%lld", shared_number(list, rel_input(rel), &first));
    }
    print_detail(out, plan, rel);
    bool known = list->actual && list->actual[rel->number] >= 0;
    if (!list->bare) {
        text_print(out, "  [~%lld rows", rel->rows);
    }
    if (known) {
        text_print(out, "%sactual %lld", list->bare ? "  [" : ", ", list->actual[rel->number]);
    }
    text_print(out, known || !list->bare ? "]\n" : "\n");
    for (i32 i = 0; first && i < rel->input_count; i++) {
        print_rel(out, plan, rel->inputs[i], depth + 1, list);
    }
}

void plan_print(struct text *out, const struct plan *plan) {
    struct shared_list list = {.arena = plan->arena};
    print_rel(out, plan, plan->root, 0, &list);
}

void plan_print_actual(struct text *out, const struct plan *plan, const i64 *actual,
                       bool estimates) {
    struct shared_list list = {.arena = plan->arena, .actual = actual, .bare = !estimates};
    print_rel(out, plan, plan->root, 0, &list);
}

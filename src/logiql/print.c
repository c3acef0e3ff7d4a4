/* print.c: clauses as text. */
#include "logiql/tree.h"

static const char *const compare_marks[] = {"=", "!=", "<", "<=", ">", ">="};
static const char *const delta_marks[] = {"", "+", "-", "^"};
static const char *const stage_marks[] = {"", "@start", "@final"};

static void print_string(struct sv s, struct text *out) {
    text_append(out, SV("\""));
    for (i64 i = 0; i < s.len; i++) {
        static const char from[] = "\n\t\r\"\\";
        static const char to[] = "ntr\"\\";
        const char *hit = s.ptr[i] ? strchr(from, s.ptr[i]) : NULL;
        if (hit) {
            text_print(out, "\\%c", to[hit - from]);
        } else {
            text_append(out, (struct sv){s.ptr + i, 1});
        }
    }
    text_append(out, SV("\""));
}

static void print_exprs(const lq_exprs *list, struct text *out) {
    for (i64 i = 0; i < list->count; i++) {
        text_append(out, i ? SV(", ") : SV(""));
        lq_print_expr(list->items[i], out);
    }
}

static bool is_sum(const struct lq_expr *e) {
    return e->kind == LQ_BINARY && (e->op == '+' || e->op == '-');
}

static void print_operand(const struct lq_expr *e, bool wrapped, struct text *out) {
    text_append(out, wrapped ? SV("(") : SV(""));
    lq_print_expr(e, out);
    text_append(out, wrapped ? SV(")") : SV(""));
}

static void print_binary(const struct lq_expr *e, struct text *out) {
    const struct lq_expr *left = e->args.items[0];
    const struct lq_expr *right = e->args.items[1];
    bool product = !is_sum(e);
    print_operand(left, product && is_sum(left), out);
    text_print(out, " %c ", e->op);
    print_operand(right, right->kind == LQ_BINARY && (product || is_sum(right)), out);
}

void lq_print_expr(const struct lq_expr *e, struct text *out) {
    switch (e->kind) {
    case LQ_STRING:
        print_string(e->text, out);
        break;
    case LQ_FLOAT:
        text_append(out, e->text);
        text_append(out, SV("f"));
        break;
    case LQ_DATETIME:
        text_print(out, "#%.*s#", (int)e->text.len, e->text.ptr);
        break;
    case LQ_PREDICATE:
        text_append(out, SV("`"));
        text_append(out, e->text);
        break;
    case LQ_ANY:
        text_append(out, SV("_"));
        break;
    case LQ_NEGATE:
        text_append(out, SV("-"));
        print_operand(e->args.items[0], e->args.items[0]->kind == LQ_BINARY, out);
        break;
    case LQ_BINARY:
        print_binary(e, out);
        break;
    case LQ_APPLY:
        text_append(out, e->text);
        text_append(out, sv_from(stage_marks[e->stage]));
        text_append(out, SV("["));
        print_exprs(&e->args, out);
        text_append(out, SV("]"));
        break;
    default:
        text_append(out, e->text);
    }
}

void lq_print_atom(const struct lq_atom *atom, struct text *out) {
    static const char *const between[] = {"", "", "; ", " : "};
    text_append(out, sv_from(delta_marks[atom->delta]));
    text_append(out, atom->name);
    text_append(out, sv_from(stage_marks[atom->stage]));
    text_append(out, atom->form == LQ_KEYED ? SV("[") : SV("("));
    print_exprs(&atom->keys, out);
    text_append(out, atom->form == LQ_KEYED ? SV("] = ") : sv_from(between[atom->form]));
    print_exprs(&atom->values, out);
    text_append(out, atom->form == LQ_KEYED ? SV("") : SV(")"));
}

static void print_formula(const struct lq_formula *formula, struct text *out);

static void print_lit(const struct lq_lit *lit, struct text *out) {
    switch (lit->kind) {
    case LQ_ATOM:
        lq_print_atom(lit->atom, out);
        break;
    case LQ_COMPARE:
        for (i64 i = 0; i < lit->terms.count; i++) {
            if (i > 0) {
                text_print(out, " %s ", compare_marks[lit->compares.items[i - 1]]);
            }
            lq_print_expr(lit->terms.items[i], out);
        }
        break;
    case LQ_NOT:
        text_append(out, SV("!"));
        print_lit(lit->inner, out);
        break;
    default:
        text_append(out, SV("("));
        print_formula(lit->formula, out);
        text_append(out, SV(")"));
    }
}

static void print_formula(const struct lq_formula *formula, struct text *out) {
    for (i64 i = 0; i < formula->any.count; i++) {
        text_append(out, i ? SV(" ; ") : SV(""));
        for (i64 j = 0; j < formula->any.items[i]->count; j++) {
            text_append(out, j ? SV(", ") : SV(""));
            print_lit(formula->any.items[i]->items[j], out);
        }
    }
}

static void print_fold(const struct lq_clause *clause, struct text *out) {
    static const char *const names[] = {"", "agg", "seq", "series"};
    text_print(out, "%s<<", names[clause->fold]);
    for (i64 i = 0; i < clause->calls.count; i++) {
        const struct lq_call *call = &clause->calls.items[i];
        text_append(out, i ? SV(", ") : SV(" "));
        text_append(out, call->variable);
        text_append(out, SV(" = "));
        text_append(out, call->name);
        if (call->keys.count) {
            text_append(out, SV("["));
            print_exprs(&call->keys, out);
            text_append(out, SV("]"));
        }
        text_append(out, SV("("));
        print_exprs(&call->args, out);
        text_append(out, SV(")"));
    }
    for (i64 i = 0; i < clause->orders.count; i++) {
        text_append(out, i ? SV(", ") : SV(" "));
        text_append(out, clause->orders.items[i].descends ? SV("desc ") : SV(""));
        text_append(out, clause->orders.items[i].variable);
    }
    text_append(out, clause->calls.count + clause->orders.count ? SV(" >>") : SV(">>"));
}

void lq_print_clause(const struct lq_clause *clause, struct text *out) {
    for (i64 i = 0; i < clause->heads.count; i++) {
        text_append(out, i ? SV(", ") : SV(""));
        lq_print_atom(clause->heads.items[i], out);
    }
    if (clause->kind == LQ_RULE) {
        text_append(out, SV(" <-"));
        if (clause->fold) {
            text_append(out, SV(" "));
            print_fold(clause, out);
        }
    }
    if (clause->body) {
        text_append(out, clause->kind == LQ_RULE ? SV(" ") : SV(""));
        print_formula(clause->body, out);
    }
    if (clause->kind == LQ_CONSTRAINT) {
        text_append(out, clause->body ? SV(" -> ") : SV("-> "));
        if (clause->claim) {
            print_formula(clause->claim, out);
        }
    }
    text_append(out, SV("."));
}

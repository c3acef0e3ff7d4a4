/* apart.c: alternatives of a clause that exclude each other.
 *
 *     weight(o; h) <- line(o; p), (urgent(p), h = 1 ; !urgent(p), h = 0).
 *
 * Two alternatives give the same tuple only where their conditions meet. Where every alternative by itself gives no
 * tuple twice, and for every two the tuple decides the variables of a literal of one that contradicts one of the other,
 * all of them together give none twice, and nothing has to be made distinct. What the tuple decides is what atoms say
 * that both have in common: they give the same values in both.
 * See decision 0042. */
#include "logiql/bind_int.h"

enum { RULES_MOST = 16 };

static bool same_exprs(const lq_exprs *a, const lq_exprs *b);

static bool same_expr(const struct lq_expr *a, const struct lq_expr *b) {
    return a->kind == b->kind && a->stage == b->stage && a->op == b->op && a->truth == b->truth &&
           sv_eq(a->text, b->text) && same_exprs(&a->args, &b->args);
}

static bool same_exprs(const lq_exprs *a, const lq_exprs *b) {
    bool same = a->count == b->count;
    for (i64 i = 0; i < a->count && same; i++) {
        same = same_expr(a->items[i], b->items[i]);
    }
    return same;
}

static bool same_atom(const struct lq_atom *a, const struct lq_atom *b) {
    return a->delta == b->delta && a->form == b->form && a->stage == b->stage &&
           sv_eq(a->name, b->name) && same_exprs(&a->keys, &b->keys) &&
           same_exprs(&a->values, &b->values);
}

static bool same_lit(const struct lq_lit *a, const struct lq_lit *b) {
    if (a->kind != b->kind || (a->kind != LQ_ATOM && a->kind != LQ_COMPARE)) {
        return false;
    }
    bool same = a->kind == LQ_ATOM ? same_atom(a->atom, b->atom)
                                   : a->compares.count == b->compares.count &&
                                         same_exprs(&a->terms, &b->terms);
    for (i64 i = 0; a->kind == LQ_COMPARE && i < a->compares.count && same; i++) {
        same = a->compares.items[i] == b->compares.items[i];
    }
    return same;
}

/* Only `_` and variables that are known: others would be looked for. */
static bool all_known(const lq_exprs *known, const lq_exprs *list) {
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i]->kind != LQ_ANY && !is_known(known, list->items[i])) {
            return false;
        }
    }
    return true;
}

static bool lit_known(const lq_exprs *known, const struct lq_lit *lit) {
    return lit->kind == LQ_ATOM
               ? all_known(known, &lit->atom->keys) && all_known(known, &lit->atom->values)
               : all_known(known, &lit->terms);
}

/* The one literal that is negated. */
static const struct lq_lit *negated(const struct lq_lit *lit) {
    const struct lq_lit *inner = lit->kind == LQ_NOT ? lit->inner : NULL;
    while (inner && inner->kind == LQ_GROUP) {
        const struct lq_formula *formula = inner->formula;
        bool one = formula->any.count == 1 && formula->any.items[0]->count == 1;
        inner = one ? formula->any.items[0]->items[0] : NULL;
    }
    return inner;
}

/* Which of less, equal and greater a comparison accepts, as bits. */
static u8 accepts(u8 compare) {
    static const u8 bits[] = {
        [LQ_EQ] = 2, [LQ_NE] = 5, [LQ_LT] = 1, [LQ_LE] = 3, [LQ_GT] = 4, [LQ_GE] = 6};
    return bits[compare];
}

static bool is_string(const struct lq_expr *e) {
    return e->kind == LQ_STRING;
}

static bool compares_exclude(const struct lq_lit *a, const struct lq_lit *b) {
    if (a->compares.count != 1 || b->compares.count != 1 ||
        !same_expr(a->terms.items[0], b->terms.items[0])) {
        return false;
    }
    u8 x = a->compares.items[0], y = b->compares.items[0];
    const struct lq_expr *p = a->terms.items[1], *q = b->terms.items[1];
    if (same_expr(p, q)) {
        return (accepts(x) & accepts(y)) == 0;
    }
    return x == LQ_EQ && y == LQ_EQ && is_string(p) && is_string(q) && !sv_eq(p->text, q->text);
}

static bool excludes(const lq_exprs *known, const struct lq_lit *a, const struct lq_lit *b) {
    const struct lq_lit *no = negated(a);
    if (no) {
        return same_lit(no, b) && lit_known(known, b);
    }
    if (negated(b)) {
        return same_lit(a, negated(b)) && lit_known(known, a);
    }
    return a->kind == LQ_COMPARE && b->kind == LQ_COMPARE && lit_known(known, a) &&
           lit_known(known, b) && compares_exclude(a, b);
}

/* The same atom of the clause, in both alternatives. */
static bool is_common(const struct lq_fact *fact, const struct lq_bound *other) {
    for (i64 i = 0; i < other->fact_count; i++) {
        const struct lq_fact *with = &other->facts[i];
        bool same = with->arg_count == fact->arg_count && with->key_count == fact->key_count;
        for (i32 k = 0; k < fact->arg_count && same; k++) {
            same = with->args[k] == fact->args[k];
        }
        if (same && fact->arg_count > 0) {
            return true;
        }
    }
    return false;
}

/* The head's variables, and what common atoms give for them. */
static lq_exprs known_of(struct lq_bind *b, const struct lq_rule *rule, const struct lq_bound *one,
                         const struct lq_bound *other) {
    lq_exprs known = {0};
    b8 *done = NEW_ARRAY(b->arena, b8, one->fact_count + 1);
    for (i32 i = 0; i < atom_arity(rule->head); i++) {
        const struct lq_expr *arg = atom_arg(rule->head, i);
        if (arg->kind == LQ_VARIABLE) {
            VEC_PUSH(b->arena, &known, (struct lq_expr *)(size_t)arg);
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (i64 i = 0; i < one->fact_count; i++) {
            const struct lq_fact *fact = &one->facts[i];
            bool all = !done[i] && !fact->is_bag && is_common(fact, other);
            for (i32 k = 0; k < fact->key_count && all; k++) {
                all = is_known(&known, fact->args[k]);
            }
            for (i32 k = 0; k < fact->arg_count && all; k++) {
                if (fact->args[k]->kind == LQ_VARIABLE) {
                    VEC_PUSH(b->arena, &known, (struct lq_expr *)(size_t)fact->args[k]);
                }
            }
            done[i] = done[i] || all;
            moved = moved || all;
        }
    }
    return known;
}

static bool are_apart(struct lq_bind *b, const struct lq_pred *pred, const struct lq_bound *bounds,
                      i64 x, i64 y) {
    const struct lq_rule *one = pred->rules.items[x], *other = pred->rules.items[y];
    if (one->clause != other->clause || one->head != other->head || !one->body || !other->body) {
        return false;
    }
    lq_exprs known = known_of(b, one, &bounds[x], &bounds[y]);
    for (i64 i = 0; i < one->body->count; i++) {
        for (i64 k = 0; k < other->body->count; k++) {
            if (excludes(&known, one->body->items[i], other->body->items[k])) {
                return true;
            }
        }
    }
    return false;
}

bool rules_apart(struct lq_bind *b, const struct lq_pred *pred, const struct lq_bound *bounds) {
    i64 count = pred->rules.count;
    bool apart = count <= RULES_MOST;
    for (i64 i = 0; i < count && apart; i++) {
        apart = bounds[i].is_set;
        for (i64 k = 0; k < i && apart; k++) {
            apart = are_apart(b, pred, bounds, k, i);
        }
    }
    return apart;
}

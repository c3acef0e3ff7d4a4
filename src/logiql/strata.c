/* strata.c: which predicates read which, in components, those that are read first.
 *
 * A component is a set of predicates that all read each other: one recursion, or a single predicate.
 * Within one nothing may be negated or aggregated; else the program is refused with the cycle. */
#include "logiql/bind_int.h"

enum { DEPTH_MOST = 2000 };

/* A name in a body, and what stands between it and the head. */
struct use {
    struct sv name;
    i32 position;
    u8 negation; /* enum lq_negation */
    b8 is_folded; /* an aggregate of the rule ranges over it */
};
typedef VEC(struct use) use_list;

static void uses_of_expr(struct arena *arena, const struct lq_expr *e, u8 negation,
                         use_list *out) {
    if (e->kind == LQ_APPLY && !builtin_is_function(e->text)) {
        struct use use = {.name = e->text, .position = e->position, .negation = negation};
        VEC_PUSH(arena, out, use);
    }
    for (i64 i = 0; i < e->args.count; i++) {
        uses_of_expr(arena, e->args.items[i], negation, out);
    }
}

static void uses_of_conj(struct arena *arena, const lq_conj *conj, u8 negation, use_list *out) {
    for (i64 i = 0; conj && i < conj->count; i++) {
        const struct lq_lit *lit = conj->items[i];
        const struct lq_atom *atom = lit->kind == LQ_ATOM ? lit->atom : NULL;
        if (atom && !builtin_is_atom(atom->name)) {
            struct use use = {
                .name = atom->name, .position = atom->position, .negation = negation};
            VEC_PUSH(arena, out, use);
        }
        for (i32 k = 0; atom && k < atom_arity(atom); k++) {
            uses_of_expr(arena, atom_arg(atom, k), negation, out);
        }
        for (i64 k = 0; lit->kind == LQ_COMPARE && k < lit->terms.count; k++) {
            uses_of_expr(arena, lit->terms.items[k], negation, out);
        }
        if (lit->kind == LQ_NOT) {
            u8 inner = negation == LQ_POSITIVE ? LQ_NEGATED : LQ_ABOUT_ALL;
            uses_of_conj(arena, lit->inner->formula->any.items[0], inner, out);
        }
    }
}

static void uses_of_rule(struct arena *arena, const struct lq_rule *rule, use_list *out) {
    i64 first = out->count;
    uses_of_conj(arena, rule->body, LQ_POSITIVE, out);
    for (i64 i = 0; i < rule->clause->calls.count; i++) {
        const struct lq_call *call = &rule->clause->calls.items[i];
        for (i64 k = 0; k < call->args.count; k++) {
            uses_of_expr(arena, call->args.items[k], LQ_POSITIVE, out);
        }
    }
    for (i64 i = first; i < out->count; i++) {
        out->items[i].is_folded = rule->clause->fold != LQ_NO_FOLD;
    }
    for (i32 i = 0; i < atom_arity(rule->head); i++) {
        uses_of_expr(arena, atom_arg(rule->head, i), LQ_POSITIVE, out);
    }
}

/* int(x) as a literal says something of a type, unless there is such a predicate. */
static bool is_type_word(struct lq_bind *b, struct sv name) {
    struct type type;
    return lq_type_named(name, &type) && !pred_exists(b, name);
}

/* --- Tarjan's algorithm --- */

struct walk {
    struct lq_bind *b;
    lq_preds stack;
    i32 next;
    i32 depth;
};

static FALLIBLE visit(struct walk *w, struct lq_pred *pred);

static FALLIBLE visit_use(struct walk *w, struct lq_pred *pred, const struct lq_rule *rule,
                          const struct use *use) {
    struct lq_bind *b = w->b;
    struct lq_pred *other;
    if (is_type_word(b, use->name)) {
        return ERR_OK;
    }
    TRY(pred_get(b, use->name, rule->own ? use->position : -1, &other));
    if (other->index == 0) {
        TRY(visit(w, other));
    }
    if (other->on_stack) {
        pred->low = MIN_OF(pred->low, MIN_OF(other->low, other->index));
    }
    return ERR_OK;
}

static void close_component(struct walk *w, struct lq_pred *pred) {
    struct lq_bind *b = w->b;
    b->component_count++;
    struct lq_pred *member;
    do {
        member = w->stack.items[--w->stack.count];
        member->on_stack = 0;
        member->component = b->component_count;
        VEC_PUSH(b->arena, &b->order, member);
    } while (member != pred);
}

static FALLIBLE visit(struct walk *w, struct lq_pred *pred) {
    if (++w->depth > DEPTH_MOST) {
        FAIL(w->b->err, TOO_COMPLEX, "predicates read each other more than %d deep", DEPTH_MOST);
    }
    pred->index = pred->low = ++w->next;
    pred->on_stack = 1;
    VEC_PUSH(w->b->arena, &w->stack, pred);
    for (i64 i = 0; i < pred->rules.count; i++) {
        use_list uses = {0};
        uses_of_rule(w->b->arena, pred->rules.items[i], &uses);
        for (i64 k = 0; k < uses.count; k++) {
            wf_status status = visit_use(w, pred, pred->rules.items[i], &uses.items[k]);
            TRY(lq_noted(w->b, status, pred));
        }
    }
    w->depth--;
    if (pred->low == pred->index) {
        close_component(w, pred);
    }
    return ERR_OK;
}

/* --- what is recursive, and whether it may be --- */

/* The shortest way from one predicate to another within a component, for messages. */
static struct lq_pred *next_on_way(struct lq_bind *b, struct lq_pred *from, struct lq_pred *to,
                                   i64 limit) {
    for (i64 i = 0; i < from->rules.count; i++) {
        use_list uses = {0};
        uses_of_rule(b->arena, from->rules.items[i], &uses);
        for (i64 k = 0; k < uses.count; k++) {
            struct lq_pred *other = pred_known(b, uses.items[k].name);
            if (!other || other->component != from->component) {
                continue;
            }
            if (other == to || (limit > 0 && next_on_way(b, other, to, limit - 1))) {
                return other;
            }
        }
    }
    return NULL;
}

static FALLIBLE refuse_cycle(struct lq_bind *b, const struct lq_rule *rule, const struct use *use,
                             struct lq_pred *other) {
    struct text way;
    text_init(&way, b->arena);
    text_print(&way, "%s <- %s%s", rule->pred->name.ptr, rule->clause->fold ? "agg " : "!",
               other->name.ptr);
    struct lq_pred *at = other;
    for (i64 limit = 0; at && at != rule->pred && limit < 8; limit++) {
        struct lq_pred *next = NULL;
        for (i64 depth = 0; !next && depth < 6; depth++) {
            next = next_on_way(b, at, rule->pred, depth);
        }
        at = next;
        if (at) {
            text_print(&way, " <- %s", at->name.ptr);
        }
    }
    error_set(b->err, ERR_INVALID_RECURSION, rule->own ? use->position : -1,
              "\"%.100s\" depends on what it %s: %.300s", rule->pred->name.ptr,
              rule->clause->fold ? "aggregates" : "negates", way.ptr);
    error_hint(b->err, rule->clause->fold == LQ_AGG && !use->negation
                           ? "Aggregation must read what is complete before; one min or max of a head may "
                             "read that head."
                           : "Negation and aggregation must read what is complete before.");
    return b->err->code;
}

/* A rule that takes min or max of what its head derives: the best value of a key is kept. All such
 * rules of a predicate mean the same value. */
static bool take_best(struct lq_rule *rule) {
    struct lq_pred *pred = rule->pred;
    i32 value = 0;
    bool greatest = false;
    if (!fold_can_be_best(rule, &value, &greatest) ||
        (pred->best && (pred->value != value || pred->greatest != greatest))) {
        return false;
    }
    pred->best = rule->best = 1;
    pred->value = value;
    pred->greatest = greatest;
    return true;
}

static FALLIBLE check_rule(struct lq_bind *b, struct lq_rule *rule) {
    use_list uses = {0};
    uses_of_rule(b->arena, rule, &uses);
    for (i64 k = 0; k < uses.count; k++) {
        struct lq_pred *other = pred_known(b, uses.items[k].name);
        if (!other || other->component != rule->pred->component || other->rules.count == 0) {
            continue;
        }
        if (uses.items[k].negation || other->fallback ||
            (uses.items[k].is_folded && !take_best(rule))) {
            return refuse_cycle(b, rule, &uses.items[k], other);
        }
        rule->recursive = 1;
        rule->pred->recursive = 1;
    }
    return ERR_OK;
}

FALLIBLE strata_add(struct lq_bind *b, struct lq_pred *root) {
    struct walk w = {.b = b, .next = b->component_count ? (i32)b->order.count : 0};
    i64 first = b->order.count;
    if (root->index) {
        return ERR_OK;
    }
    TRY(visit(&w, root));
    for (i64 i = first; i < b->order.count; i++) {
        struct lq_pred *pred = b->order.items[i];
        for (i64 k = 0; k < pred->rules.count; k++) {
            TRY(lq_noted(b, check_rule(b, pred->rules.items[k]), pred));
        }
    }
    for (i64 i = first; i < b->order.count; i++) { /* one recursive member makes all of them so */
        struct lq_pred *pred = b->order.items[i];
        for (i64 k = first; k < b->order.count && !pred->recursive; k++) {
            const struct lq_pred *other = b->order.items[k];
            pred->recursive = other->component == pred->component && other->recursive;
        }
    }
    return ERR_OK;
}

void strata_reads(struct lq_bind *b, const struct lq_pred *pred, lq_preds *out) {
    for (i64 i = 0; i < pred->also.count; i++) {
        VEC_PUSH(b->arena, out, pred->also.items[i]);
    }
    for (i64 i = 0; i < pred->rules.count; i++) {
        use_list uses = {0};
        uses_of_rule(b->arena, pred->rules.items[i], &uses);
        for (i64 k = 0; k < uses.count; k++) {
            struct lq_pred *other = pred_known(b, uses.items[k].name);
            bool seen = !other;
            for (i64 j = 0; j < out->count && !seen; j++) {
                seen = out->items[j] == other;
            }
            if (!seen) {
                VEC_PUSH(b->arena, out, other);
            }
        }
    }
}

u8 strata_negates(struct lq_bind *b, const struct lq_pred *pred, const struct lq_pred *other) {
    u8 most = LQ_POSITIVE;
    i32 keys = 0;
    bool grouped = fold_is_grouped(pred, &keys);
    for (i64 i = 0; i < pred->rules.count; i++) {
        use_list uses = {0};
        uses_of_rule(b->arena, pred->rules.items[i], &uses);
        for (i64 k = 0; k < uses.count; k++) {
            u8 negation = uses.items[k].negation;
            if (uses.items[k].is_folded) {
                negation = grouped && negation == LQ_POSITIVE ? LQ_GROUPED : LQ_ABOUT_ALL;
            }
            if (pred_known(b, uses.items[k].name) == other) {
                most = MAX_OF(most, negation);
            }
        }
    }
    return most;
}

/* recursion.c: predicates that derive each other, as one FIX of several relations.
 *
 * The columns of its relations have types before any rule is bound: those of declarations, or those
 * that rules give which read nothing of unknown type. Such rules are tried again and again, until no
 * more types come to light. Then every rule becomes a term of the FIX, in the types of its
 * relation: what does not fit there is undefined. */
#include "logiql/bind_int.h"

typedef VEC(struct lq_pred *) members;

static members members_of(struct lq_bind *b, const struct lq_pred *pred) {
    members all = {0};
    for (i64 i = 0; i < b->order.count; i++) {
        if (b->order.items[i]->component == pred->component) {
            VEC_PUSH(b->arena, &all, b->order.items[i]);
        }
    }
    return all;
}

/* Values that rounds compute grow: whole numbers have 64 bits, decimals all digits there are. */
static struct type wide_type(struct type type) {
    return type_is_integer(type)     ? type_of(TYPE_BIGINT)
           : type.id == TYPE_DECIMAL ? type_decimal(DECIMAL_DIGITS_MAX, type.scale)
                                     : type_handed_on(type);
}

/* Columns that a rule only hands on keep their types; `computed` are those that others are for. */
static void note_types(struct lq_bind *b, struct lq_pred *pred, const struct lq_bound *bound) {
    pred->types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
    pred->kinds = bound->kinds;
    for (i32 i = 0; i < pred->arity; i++) {
        pred->types[i] = wide_type(bound->exprs[i]->type);
    }
}

/* Whether all predicates of the component that the rule reads have types. */
static bool is_ready(struct lq_bind *b, const struct lq_rule *rule) {
    struct lq_pred alone = *rule->pred;
    lq_preds reads = {0};
    struct lq_rule *one[1] = {(struct lq_rule *)(size_t)rule};
    alone.rules.items = one;
    alone.rules.count = 1;
    strata_reads(b, &alone, &reads);
    for (i64 i = 0; i < reads.count; i++) {
        if (reads.items[i]->component == rule->pred->component && !reads.items[i]->types) {
            return false;
        }
    }
    return true;
}

static void open_draft(struct lq_bind *b, members *all) {
    struct fix_draft *draft = fix_open(b->plan, (u32)all->count);
    for (i64 i = 0; i < all->count; i++) {
        struct lq_pred *pred = all->items[i];
        struct plan_col *cols = NEW_ARRAY(b->arena, struct plan_col, pred->arity + 1);
        for (i32 c = 0; pred->types && c < pred->arity; c++) {
            cols[c] = (struct plan_col){pred->names[c], pred->types[c], 0};
        }
        pred->draft = draft;
        pred->relation = (u32)i;
        fix_relation(draft, (u32)i, cols, pred->types ? pred->arity : 0, true);
        fix_call(draft, (u32)i, pred->name.ptr);
        if (pred->best && pred->types) {
            fix_best(draft, (u32)i, (u32)pred->value, pred->greatest);
        }
    }
}

/* The digits behind the point that a rule gives columns of decimals; whether they are more than so far. */
static bool take_scales(struct lq_pred *pred, const struct lq_bound *bound, bool settled) {
    enum { SCALE_GROWS = 10 }; /* of values that rounds compute, as of those that are stored */
    bool more = false;
    for (i32 i = 0; i < pred->arity; i++) {
        struct type type = bound->exprs[i]->type;
        i32 had = pred->types[i].scale;
        if (type.id == TYPE_DECIMAL && pred->types[i].id == TYPE_DECIMAL && type.scale > had) {
            i32 scale = settled ? MAX_OF(had, (i32)SCALE_GROWS) : type.scale;
            more = more || scale > had;
            pred->types[i] = type_decimal(DECIMAL_DIGITS_MAX, scale);
        }
    }
    return more;
}

/* A column of decimals that nobody declared has room for what every rule gives it. Values that are computed
 * of each other have more digits every time: some are enough. */
static FALLIBLE widen_scales(struct lq_bind *b, members *all, const b8 *declared) {
    enum { TRIES = 3 };
    bool more = false;
    for (i64 i = 0; i < all->count; i++) {
        for (i32 c = 0; c < all->items[i]->arity && !declared[i]; c++) {
            more = more || all->items[i]->types[c].id == TYPE_DECIMAL;
        }
    }
    for (i32 try = 0; more; try++) {
        more = false;
        open_draft(b, all);
        for (i64 i = 0; i < all->count; i++) {
            struct lq_pred *pred = all->items[i];
            for (i64 r = 0; r < pred->rules.count && !declared[i]; r++) {
                struct lq_bound bound;
                TRY(rule_bind(b, pred->rules.items[r], &bound));
                more = take_scales(pred, &bound, try >= TRIES) || more;
            }
        }
    }
    return ERR_OK;
}

/* Binds rules for their types alone, in a recursion that nobody reads. */
static FALLIBLE find_types(struct lq_bind *b, members *all) {
    b8 *declared = NEW_ARRAY(b->arena, b8, all->count + 1);
    for (i64 i = 0; i < all->count; i++) {
        declared[i] = all->items[i]->types != NULL;
    }
    for (bool moved = true; moved;) {
        moved = false;
        open_draft(b, all);
        for (i64 i = 0; i < all->count; i++) {
            struct lq_pred *pred = all->items[i];
            for (i64 r = 0; r < pred->rules.count && !pred->types; r++) {
                struct lq_bound bound;
                if (is_ready(b, pred->rules.items[r])) {
                    TRY(rule_bind(b, pred->rules.items[r], &bound));
                    note_types(b, pred, &bound);
                    open_draft(b, all); /* with its columns */
                    moved = true;
                }
            }
        }
    }
    for (i64 i = 0; i < all->count; i++) {
        const struct lq_pred *pred = all->items[i];
        if (!pred->types) {
            error_set(b->err, ERR_INDETERMINATE_TYPE, pred->position,
                      "nothing says what types \"%.100s\" has", pred->name.ptr);
            error_hint(b->err,
                       "Every rule of it reads itself: declare it, as in %.60s(x) -> int(x).",
                       pred->name.ptr);
            return b->err->code;
        }
    }
    return widen_scales(b, all, declared);
}

/* A value of the head in the type of its column; where it has none there is no tuple. */
static FALLIBLE head_value(struct lq_bind *b, const struct lq_rule *rule, i32 i,
                           struct lq_bound *bound, struct lq_scope *scope) {
    struct lq_pred *pred = rule->pred;
    struct expr *like = expr_null(b->t, pred->types[i], -1);
    like->kind = EXPR_COL; /* of that type: only literals adapt */
    i32 position = rule->own ? atom_arg(rule->head, i)->position : -1;
    struct lq_value mine = {bound->exprs[i], bound->kinds[i]};
    TRY(values_meet(b, mine, (struct lq_value){like, kind_of(pred, i)}, position));
    struct expr *cast = bound->exprs[i];
    if (cast->kind == EXPR_CALL && cast->func == FUNC_DEFINED) {
        cast = cast->args[0]; /* one wrapping is enough */
    }
    TRY(coerce_to(b->t, cast, pred->types[i], &cast));
    cast = bound->exprs[i] = expr_defined(b, cast);
    if (expr_can_raise(cast)) {
        VEC_PUSH(b->arena, &scope->conds, expr_not_null(b, cast));
    }
    return ERR_OK;
}

FALLIBLE rule_term(struct lq_bind *b, const struct lq_rule *rule, struct rel *among,
                   struct rel **out) {
    struct lq_pred *pred = rule->pred;
    struct lq_bound bound;
    struct lq_scope scope = {0};
    i32 count = atom_arity(rule->head);
    TRY(rule_bind(b, rule, &bound));
    pred->one_value = pred->rules.count == 1 && bound.one_value;
    for (i32 i = 0; i < count; i++) {
        TRY(head_value(b, rule, i, &bound, &scope));
    }
    scope.rel = bound.rel;
    if (among) {
        i128 rows = (i128)bound.rel->rows * among->rows;
        scope.rel = rel_join(b->plan, JOIN_CROSS, bound.rel, among);
        scope.rel->rows = rows > I64_MAX ? I64_MAX : (i64)rows;
    }
    for (i32 i = 0; among && i < among->out.count; i++) {
        struct expr *same = NULL;
        TRY(expr_compare(b, LQ_EQ, bound.exprs[i], expr_col(b->plan, among->out.items[i], -1), -1,
                         &same));
        VEC_PUSH(b->arena, &scope.conds, same);
    }
    *out = lq_project(b, scope_rel(b, &scope), bound.exprs, pred->names, count);
    return ERR_OK;
}

/* Where a component keeps best values, what its rules make of better ones must be better. */
static FALLIBLE check_order(struct lq_bind *b, const members *all, const struct lq_rule *rule,
                            struct rel *term) {
    const struct lq_pred *best = NULL;
    for (i64 i = 0; i < all->count && !best; i++) {
        best = all->items[i]->best ? all->items[i] : NULL;
    }
    i32 position = -1;
    if (!best || order_kept(b->plan, rule->pred->draft, rule->pred->relation, term, &position)) {
        return ERR_OK;
    }
    position = rule->own ? MAX_OF(position, rule->head->position) : -1;
    error_set(b->err, ERR_INVALID_RECURSION, position,
              "a rule of \"%.100s\" does not keep the order of the values that \"%.100s\" takes the "
              "%s of",
              rule->pred->name.ptr, best->name.ptr, best->greatest ? "max" : "min");
    error_hint(b->err, "They may be copied, added to, multiplied by a positive constant, and compared so "
                       "that better ones pass, too; they are no keys.");
    return b->err->code;
}

/* The best row of every key of what the recursion gave. */
static void close_pred(struct lq_bind *b, struct lq_pred *pred, struct rel *fix) {
    pred->fix = fix;
    pred->draft = NULL;
    if (pred->best) {
        pred->rel =
            fix_read_best(b->plan, fix, pred->relation, (u32)pred->value, pred->greatest);
        pred->one_value = pred->key_count == pred->arity - 1 && pred->value == pred->key_count;
    }
}

FALLIBLE recursion_bind(struct lq_bind *b, struct lq_pred *first) {
    members all = members_of(b, first);
    TRY(find_types(b, &all));
    open_draft(b, &all);
    struct fix_draft *draft = first->draft;
    for (i64 i = 0; i < all.count; i++) {
        struct lq_pred *pred = all.items[i];
        for (i64 r = 0; r < pred->rules.count; r++) {
            struct lq_rule *rule = pred->rules.items[r];
            struct rel *term = NULL;
            TRY(rule_term(b, rule, NULL, &term));
            TRY(check_order(b, &all, rule, term));
            if (rule->recursive) {
                fix_rule(draft, pred->relation, term);
            } else {
                fix_base(draft, pred->relation, term);
            }
        }
    }
    struct rel *fix = fix_close(draft);
    for (i64 i = 0; i < all.count; i++) {
        close_pred(b, all.items[i], fix);
    }
    return arena_check(b->arena, b->err);
}

/* order.c: whether rules keep the order of values that get better from round to round.
 *
 * A relation may keep the best value of every key (fix_best): of min the least. While rounds go on the
 * value of a key moves in one direction. What a rule makes of it must move in the direction of the
 * head's value, and conditions on it must stay true: then the best row of a key makes the best rows of
 * a rule, and others can be forgotten. So values may be copied, added to, multiplied by a constant,
 * rounded, and compared so that a better one passes too; they may not be joined by, or become keys. */
#include "plan/plan.h"

#include "codes/func.h"
#include "codes/scalar.h"

enum move { DOWN = -1, STILL = 0, UP = 1, ANYWHERE = 2 };

struct order_walk {
    struct plan *plan;
    const struct fix_draft *f;
    i8 *moves; /* by column: enum move */
    bool broken;
    i32 position;
};

static i8 both_ways(i8 a, i8 b) {
    return (i8)(a == STILL || a == b ? b : b == STILL ? a : ANYWHERE);
}

static i8 turned(i8 move) {
    return (i8)(move == ANYWHERE ? ANYWHERE : -move);
}

/* Digits, of which one before an exponent is not 0. */
static bool is_positive_text(str text, bool above) {
    const char *at = (const char *)(size_t)text.addr;
    bool digits = text.len > 0 && at[0] >= '0' && at[0] <= '9';
    bool more = false;
    for (u32 i = 0; digits && i < text.len && at[i] != 'e' && at[i] != 'E'; i++) {
        more = more || (at[i] >= '1' && at[i] <= '9');
    }
    return digits && (more || !above);
}

/* Whether it is a constant that is not negative; `above`: not 0 either. */
static bool is_positive(const struct expr *e, bool above) {
    while (e->kind == EXPR_CAST && type_is_numeric(e->type)) {
        e = e->args[0];
    }
    if (e->kind == EXPR_CONST && !e->is_null && type_kind(e->type) == KIND_STR) {
        return is_positive_text(e->value.str, above); /* a literal that is not read yet */
    }
    if (e->kind != EXPR_CONST || e->is_null || !type_is_numeric(e->type)) {
        return false;
    }
    enum kind kind = type_kind(e->type);
    f64 value = kind == KIND_F64   ? e->value.f64
                : kind == KIND_F32 ? (f64)e->value.f32
                                   : (f64)const_exact(e);
    return above ? value > 0 : value >= 0;
}

static i8 move_of(const struct order_walk *w, const struct expr *e);

static i8 move_of_all(const struct order_walk *w, const struct expr *e, i32 first, i32 step) {
    i8 move = STILL;
    for (i32 i = first; i < e->arg_count; i += step) {
        move = both_ways(move, move_of(w, e->args[i]));
    }
    return move;
}

static i8 move_of_call(const struct order_walk *w, const struct expr *e) {
    i8 first = e->arg_count > 0 ? move_of(w, e->args[0]) : STILL;
    i8 second = e->arg_count > 1 ? move_of(w, e->args[1]) : STILL;
    switch (e->func) {
    case FUNC_ADD:
        return both_ways(first, second);
    case FUNC_SUB:
        return both_ways(first, turned(second));
    case FUNC_NEG:
        return turned(first);
    case FUNC_MUL:
        return is_positive(e->args[1], false)   ? first
               : is_positive(e->args[0], false) ? second
                                                : ANYWHERE;
    case FUNC_DIV:
        return is_positive(e->args[1], true) ? first : ANYWHERE;
    case FUNC_LEAST:
    case FUNC_GREATEST:
        return move_of_all(w, e, 0, 1);
    case FUNC_DEFINED:
    case FUNC_FLOOR:
    case FUNC_CEIL_F:
    case FUNC_CEILING_F:
    case FUNC_FLOOR_F:
    case FUNC_TRUNC_F:
    case FUNC_ROUND_F:
        return first;
    case FUNC_ROUND:
    case FUNC_TRUNC:
        return second == STILL ? first : (i8)ANYWHERE;
    default:
        return ANYWHERE;
    }
}

static i8 move_of(const struct order_walk *w, const struct expr *e) {
    if (e->kind == EXPR_COL) {
        return w->moves[e->col];
    }
    if (move_of_all(w, e, 0, 1) == STILL) {
        return STILL;
    }
    if (e->kind == EXPR_CAST) {
        bool numbers = type_is_numeric(e->type) && type_is_numeric(e->args[0]->type);
        return numbers ? move_of(w, e->args[0]) : (i8)ANYWHERE;
    }
    return e->kind == EXPR_CALL ? move_of_call(w, e) : (i8)ANYWHERE;
}

/* Whether a condition that is true stays so. */
static bool stays_true(const struct order_walk *w, const struct expr *e) {
    bool all = true;
    if (move_of(w, e) == STILL) {
        return true;
    }
    if (e->kind == EXPR_AND || e->kind == EXPR_OR) {
        for (i32 i = 0; i < e->arg_count; i++) {
            all = all && stays_true(w, e->args[i]);
        }
        return all;
    }
    if (e->kind == EXPR_NOT && e->args[0]->kind == EXPR_IS_NULL) { /* it can be computed */
        return move_of(w, e->args[0]->args[0]) != ANYWHERE;
    }
    if (e->kind == EXPR_CALL && e->func == FUNC_DEFINED) {
        return stays_true(w, e->args[0]);
    }
    bool less = e->kind == EXPR_CALL && (e->func == FUNC_LT || e->func == FUNC_LE);
    bool more = e->kind == EXPR_CALL && (e->func == FUNC_GT || e->func == FUNC_GE);
    if (!less && !more) {
        return false;
    }
    i8 small = move_of(w, e->args[less ? 0 : 1]);
    i8 great = move_of(w, e->args[less ? 1 : 0]);
    return (small == STILL || small == DOWN) && (great == STILL || great == UP);
}

static void break_at(struct order_walk *w, i32 position) {
    if (!w->broken) {
        w->broken = true;
        w->position = position;
    }
}

static void need_still(struct expr **slot, void *arg) {
    struct order_walk *w = arg;
    if (*slot && move_of(w, *slot) != STILL) {
        break_at(w, (*slot)->position);
    }
}

static void need_true(struct order_walk *w, const expr_list *conds) {
    for (i64 i = 0; i < conds->count; i++) {
        if (!stays_true(w, conds->items[i])) {
            break_at(w, conds->items[i]->position);
        }
    }
}

static void check_join(struct order_walk *w, struct rel *join) {
    enum join_kind kind = (enum join_kind)join->join.kind;
    bool passes = kind == JOIN_INNER || kind == JOIN_CROSS || kind == JOIN_SEMI;
    if (!passes) {
        rel_each_expr(join, need_still, w);
        return;
    }
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        need_still(&join->join.left_keys.items[i], w);
        need_still(&join->join.right_keys.items[i], w);
    }
    need_true(w, &join->join.conds);
}

/* Columns that stand for those of an input, or for expressions. */
static void take_moves(struct order_walk *w, const struct rel *rel) {
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; exprs && i < exprs->count; i++) {
        w->moves[rel->out.items[i]] = move_of(w, exprs->items[i]);
    }
    for (i32 k = 0; !exprs && k < rel->input_count; k++) {
        const col_list *cols = rel_cols(rel, k);
        for (i64 i = 0; cols && i < cols->count; i++) {
            i8 *move = &w->moves[rel_copied(rel, k)[i]];
            *move = both_ways(*move, w->moves[cols->items[i]]);
        }
    }
}

static void check_rel(struct rel *rel, void *arg) {
    struct order_walk *w = arg;
    u32 value;
    switch (rel->kind) {
    case REL_WORK:
        if (rel->work.fix == fix_number(w->f)) {
            i8 move = fix_moves(w->f, rel->work.relation, &value);
            w->moves[rel->out.items[value]] = move;
        }
        break;
    case REL_FILTER:
        need_true(w, &rel->filter.conds);
        break;
    case REL_JOIN:
        check_join(w, rel);
        break;
    case REL_PROJECT:
    case REL_UNION:
    case REL_SHARED:
        take_moves(w, rel);
        break;
    case REL_AGG:
        if (rel->agg.calls.count == 0) { /* of equal rows one */
            take_moves(w, rel);
            break;
        }
        rel_each_expr(rel, need_still, w);
        break;
    default:
        rel_each_expr(rel, need_still, w);
    }
}

bool order_kept(struct plan *plan, const struct fix_draft *f, u32 relation, struct rel *term,
                i32 *out_position) {
    struct order_walk w = {.plan = plan, .f = f, .position = -1};
    u32 value;
    i8 head = fix_moves(f, relation, &value);
    w.moves = NEW_ARRAY(plan->arena, i8, plan->cols.count + 1);
    rel_each_up(plan->arena, term, check_rel, &w);
    for (i64 i = 0; i < term->out.count; i++) {
        i8 move = w.moves[term->out.items[i]];
        bool fits = move == STILL || (head != 0 && i == (i64)value && move == head);
        if (!fits) {
            break_at(&w, term->position);
        }
    }
    *out_position = w.position;
    return !w.broken;
}

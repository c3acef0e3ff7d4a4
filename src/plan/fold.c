/* fold.c: expressions of constants computed ahead of time.
 *
 * Logic, CASE and its kin, comparisons and integer arithmetic are done here; any other immutable
 * call or cast is computed by the opcodes it lowers to (plan.evaluator), so that no function has a
 * second body. Whatever would fault is left to run time, where a branch that is not taken raises
 * nothing; branches that are never taken are not even looked at. What depends on the session or the
 * time stays as it is: it decides no errors in PostgreSQL either. Nodes are rebuilt, never changed.
 */
#include "plan/plan.h"

#include "codes/func.h"

static bool is_const(const struct expr *expr) {
    return expr->kind == EXPR_CONST;
}

static bool is_bool_const(const struct expr *expr, bool value) {
    return is_const(expr) && !expr->is_null && expr->type.id == TYPE_BOOLEAN &&
           (expr->value.b8 != 0) == value;
}

static struct expr *make_bool(struct arena *arena, bool value, i32 position) {
    struct expr *expr = expr_new(arena, EXPR_CONST, type_of(TYPE_BOOLEAN), position);
    expr->value.b8 = value;
    return expr;
}

static struct expr *make_null(struct arena *arena, struct type type, i32 position) {
    struct expr *expr = expr_new(arena, EXPR_CONST, type, position);
    expr->is_null = 1;
    return expr;
}

/* Whether constants of the type are whole numbers that compare as such. */
static bool is_whole(struct type type) {
    return type_is_exact(type) || type.id == TYPE_DATE || type.id == TYPE_BOOLEAN;
}

i128 const_exact(const struct expr *expr) {
    switch (type_kind(expr->type)) {
    case KIND_B8:
        return expr->value.b8;
    case KIND_I32:
        return expr->value.i32;
    case KIND_I64:
        return expr->value.i64;
    default:
        return expr->value.i128;
    }
}

void const_set_exact(struct expr *expr, i128 value) {
    switch (type_kind(expr->type)) {
    case KIND_B8:
        expr->value.b8 = value != 0;
        break;
    case KIND_I32:
        expr->value.i32 = (i32)value;
        break;
    case KIND_I64:
        expr->value.i64 = (i64)value;
        break;
    default:
        expr->value.i128 = value;
        break;
    }
}

/* The constant of a whole number; NULL when it does not fit the type. */
static struct expr *make_whole(struct arena *arena, struct type type, i128 value, i32 position) {
    struct range all = range_of_type(type);
    if (value < all.lo || value > all.hi) {
        return NULL;
    }
    struct expr *expr = expr_new(arena, EXPR_CONST, type, position);
    const_set_exact(expr, value);
    return expr;
}

static bool compared(const struct expr *a, const struct expr *b, i32 *out) {
    if (is_whole(a->type) && a->type.id == b->type.id && a->type.scale == b->type.scale) {
        i128 x = const_exact(a);
        i128 y = const_exact(b);
        *out = x < y ? -1 : x > y;
        return true;
    }
    if (a->type.id == TYPE_TEXT && b->type.id == TYPE_TEXT) {
        struct sv x = sv_of(a->value.str);
        struct sv y = sv_of(b->value.str);
        i64 least = MIN_OF(x.len, y.len);
        i32 c = least > 0 ? memcmp(x.ptr, y.ptr, (size_t)least) : 0;
        *out = c != 0 ? c : x.len < y.len ? -1 : x.len > y.len;
        return true;
    }
    return false;
}

static struct expr *fold_compare(struct arena *arena, struct expr *expr) {
    i32 c = 0;
    if (!compared(expr->args[0], expr->args[1], &c)) {
        return expr;
    }
    bool holds = false;
    switch (expr->func) {
    case FUNC_EQ:
        holds = c == 0;
        break;
    case FUNC_NE:
        holds = c != 0;
        break;
    case FUNC_LT:
        holds = c < 0;
        break;
    case FUNC_LE:
        holds = c <= 0;
        break;
    case FUNC_GT:
        holds = c > 0;
        break;
    default:
        holds = c >= 0;
        break;
    }
    return make_bool(arena, holds, expr->position);
}

static struct expr *fold_arithmetic(struct arena *arena, struct expr *expr) {
    i128 x = const_exact(expr->args[0]);
    i128 y = expr->arg_count > 1 ? const_exact(expr->args[1]) : 0;
    i128 value = 0;
    switch (expr->func) {
    case FUNC_ADD:
        value = x + y;
        break;
    case FUNC_SUB:
        value = x - y;
        break;
    case FUNC_MUL:
        value = x * y;
        break;
    case FUNC_NEG:
        value = -x;
        break;
    case FUNC_ABS:
        value = x < 0 ? -x : x;
        break;
    default:
        if (y == 0) {
            return expr;
        }
        value = expr->func == FUNC_DIV ? x / y : x % y;
        break;
    }
    struct expr *folded = make_whole(arena, expr->type, value, expr->position);
    return folded ? folded : expr;
}

static bool is_arithmetic(u16 func) {
    return func == FUNC_ADD || func == FUNC_SUB || func == FUNC_MUL || func == FUNC_DIV ||
           func == FUNC_MOD || func == FUNC_NEG || func == FUNC_ABS;
}

static bool is_null_const(const struct expr *expr) {
    return is_const(expr) && expr->is_null;
}

static struct expr *with_args(struct arena *arena, const struct expr *expr, struct expr **args,
                              i32 count) {
    struct expr *copy = NEW(arena, struct expr);
    *copy = *expr;
    copy->args = args;
    copy->arg_count = count;
    return copy;
}

/* A call or cast of constants; expr itself when it must wait. */
static struct expr *evaluate(const struct plan *plan, struct expr *expr) {
    if (!plan->evaluator || !expr_node_is_immutable(expr)) {
        return expr;
    }
    struct expr *value = plan->evaluator->run(plan->evaluator, expr);
    return value ? value : expr;
}

/* COALESCE without its NULLs, and without what follows a constant. */
static struct expr *fold_coalesce(const struct plan *plan, struct expr *expr) {
    i32 kept = 0;
    bool same = true;
    struct expr **args = NEW_ARRAY(plan->arena, struct expr *, expr->arg_count);
    for (i32 i = 0; i < expr->arg_count; i++) {
        struct expr *arg = expr_fold(plan, expr->args[i]);
        same = same && arg == expr->args[i];
        if (!is_null_const(arg)) {
            args[kept++] = arg;
            if (is_const(arg)) {
                break;
            }
        }
    }
    if (kept == 0) {
        return make_null(plan->arena, expr->type, expr->position);
    }
    if (kept == 1 && type_eq(args[0]->type, expr->type)) {
        return args[0];
    }
    return same && kept == expr->arg_count ? expr : with_args(plan->arena, expr, args, kept);
}

/* GREATEST, LEAST and NULLIF of two. */
static struct expr *fold_pair(const struct plan *plan, struct expr *expr) {
    struct expr *x = expr->args[0];
    struct expr *y = expr->args[1];
    bool nullif = expr->func == FUNC_NULLIF;
    bool alike = type_eq(x->type, expr->type) && (nullif || type_eq(y->type, expr->type));
    if (alike && (is_null_const(y) || (nullif && is_null_const(x)))) {
        return x;
    }
    if (alike && is_null_const(x)) {
        return y;
    }
    if (!is_const(x) || !is_const(y)) {
        return expr;
    }
    i32 c = 0;
    if (!alike || !compared(x, y, &c)) {
        return evaluate(plan, expr);
    }
    if (nullif) {
        return c == 0 ? make_null(plan->arena, expr->type, expr->position) : x;
    }
    return (expr->func == FUNC_GREATEST ? c >= 0 : c <= 0) ? x : y;
}

static struct expr *fold_call(const struct plan *plan, struct expr *expr) {
    if (!func_is_strict(expr->func)) { /* the others fold their own arguments */
        return fold_pair(plan, expr);
    }
    bool compares = expr->func >= FUNC_EQ && expr->func <= FUNC_GE;
    bool integers = type_is_integer(expr->type);
    bool all = true;
    for (i32 i = 0; i < expr->arg_count; i++) {
        if (is_null_const(expr->args[i])) {
            return make_null(plan->arena, expr->type, expr->position);
        }
        all = all && is_const(expr->args[i]);
        integers = integers && type_is_integer(expr->args[i]->type);
    }
    if (!all) {
        return expr;
    }
    struct expr *folded = compares ? fold_compare(plan->arena, expr)
                          : integers && is_arithmetic(expr->func)
                              ? fold_arithmetic(plan->arena, expr)
                              : expr;
    return folded == expr ? evaluate(plan, expr) : folded;
}

static struct expr *fold_cast(const struct plan *plan, struct expr *expr) {
    const struct expr *arg = expr->args[0];
    if (!is_const(arg)) {
        return expr;
    }
    if (arg->is_null) {
        return make_null(plan->arena, expr->type, expr->position);
    }
    struct expr *folded = NULL;
    if (type_is_integer(arg->type) && type_is_integer(expr->type)) {
        folded = make_whole(plan->arena, expr->type, const_exact(arg), expr->position);
    }
    return folded ? folded : evaluate(plan, expr);
}

/* TRY reads its argument as a cast: that goes together with it, or not at all. */
static struct expr *fold_try(const struct plan *plan, struct expr *expr) {
    struct expr *cast = expr->args[0];
    struct expr *arg = expr_fold(plan, cast->args[0]);
    if (arg != cast->args[0]) {
        struct expr **args = NEW_ARRAY(plan->arena, struct expr *, 1);
        args[0] = arg;
        cast = with_args(plan->arena, cast, args, 1);
    }
    struct expr *folded = fold_cast(plan, cast);
    if (is_const(folded)) {
        return folded;
    }
    if (cast == expr->args[0]) {
        return expr;
    }
    struct expr **args = NEW_ARRAY(plan->arena, struct expr *, 1);
    args[0] = cast;
    return with_args(plan->arena, expr, args, 1);
}

/* AND without its TRUEs, FALSE when one is; OR the other way round. */
static struct expr *fold_logic(const struct plan *plan, struct expr *expr) {
    bool neutral = expr->kind == EXPR_AND;
    bool same = true;
    i32 kept = 0;
    struct expr **args = NEW_ARRAY(plan->arena, struct expr *, expr->arg_count);
    for (i32 i = 0; i < expr->arg_count; i++) {
        struct expr *arg = expr_fold(plan, expr->args[i]);
        same = same && arg == expr->args[i];
        if (is_bool_const(arg, !neutral)) {
            return arg;
        }
        if (!is_bool_const(arg, neutral)) {
            args[kept++] = arg;
        }
    }
    if (kept == 0) {
        return make_bool(plan->arena, neutral, expr->position);
    }
    if (kept == 1) {
        return args[0];
    }
    return same && kept == expr->arg_count ? expr : with_args(plan->arena, expr, args, kept);
}

/* Branches that are never taken go; what follows one that always is, too. */
/* The only branch that is left, of the type of all: its length or precision was its own. */
static struct expr *cast_like(const struct plan *plan, struct expr *branch,
                              const struct expr *expr) {
    struct expr *cast = expr_new(plan->arena, EXPR_CAST, expr->type, expr->position);
    struct expr **args = NEW_ARRAY(plan->arena, struct expr *, 1);
    args[0] = branch;
    return fold_cast(plan, with_args(plan->arena, cast, args, 1));
}

static struct expr *fold_case(const struct plan *plan, struct expr *expr) {
    i32 kept = 0;
    bool same = true;
    struct expr **args = NEW_ARRAY(plan->arena, struct expr *, expr->arg_count);
    struct expr *otherwise = expr->args[expr->arg_count - 1];
    for (i32 i = 0; i + 1 < expr->arg_count; i += 2) {
        struct expr *when = expr_fold(plan, expr->args[i]);
        if (is_bool_const(when, true)) {
            otherwise = expr->args[i + 1];
            break;
        }
        if (!is_const(when)) {
            args[kept++] = when;
            args[kept++] = expr_fold(plan, expr->args[i + 1]);
            same = same && when == expr->args[i] && args[kept - 1] == expr->args[i + 1];
        }
    }
    otherwise = expr_fold(plan, otherwise);
    if (kept == 0) {
        return type_eq(otherwise->type, expr->type) ? otherwise : cast_like(plan, otherwise, expr);
    }
    args[kept++] = otherwise;
    same = same && kept == expr->arg_count && otherwise == expr->args[kept - 1];
    return same ? expr : with_args(plan->arena, expr, args, kept);
}

static struct expr *fold_not(struct arena *arena, struct expr *expr) {
    const struct expr *arg = expr->args[0];
    if (arg->kind == EXPR_NOT) {
        return arg->args[0];
    }
    if (!is_const(arg)) {
        return expr;
    }
    return arg->is_null ? make_null(arena, expr->type, expr->position)
                        : make_bool(arena, !arg->value.b8, expr->position);
}

/* A constant among constants. */
static struct expr *fold_in(const struct plan *plan, struct expr *expr) {
    struct type type = type_of(TYPE_BOOLEAN);
    bool unknown = false;
    if (!is_const(expr->args[0])) {
        return expr;
    }
    for (i32 i = 1; i < expr->arg_count; i++) {
        struct expr *same =
            expr_call(plan->arena, FUNC_EQ, type, expr->position, 2, expr->args[0], expr->args[i]);
        same = fold_call(plan, same);
        if (!is_const(same) || is_bool_const(same, true)) {
            return is_const(same) ? same : expr;
        }
        unknown = unknown || same->is_null;
    }
    return unknown ? make_null(plan->arena, type, expr->position)
                   : make_bool(plan->arena, false, expr->position);
}

static struct expr *fold_node(const struct plan *plan, struct expr *expr) {
    switch (expr->kind) {
    case EXPR_CALL:
        return fold_call(plan, expr);
    case EXPR_CAST:
        return fold_cast(plan, expr);
    case EXPR_NOT:
        return fold_not(plan->arena, expr);
    case EXPR_IS_NULL:
        return is_const(expr->args[0])
                   ? make_bool(plan->arena, expr->args[0]->is_null, expr->position)
                   : expr;
    case EXPR_IN:
        return fold_in(plan, expr);
    default:
        return expr;
    }
}

enum { CHAIN_MIN = 16 };

static bool is_concat(const struct expr *expr) {
    return expr->kind == EXPR_CALL && expr->func == FUNC_CONCAT;
}

static struct expr *halves(struct arena *arena, const struct expr *like, struct expr **leaves,
                           i64 count) {
    if (count == 1) {
        return leaves[0];
    }
    struct expr *left = halves(arena, like, leaves, count / 2);
    struct expr *right = halves(arena, like, leaves + count / 2, count - count / 2);
    return expr_call(arena, FUNC_CONCAT, like->type, like->position, 2, left, right);
}

/* a || b || c || …: a long chain copies every byte as often as there are operators behind it; as
 * halves of halves only so often as they are deep. */
static struct expr *balance(struct arena *arena, struct expr *expr) {
    i64 count = 1;
    for (const struct expr *e = expr; is_concat(e); e = e->args[0]) {
        count++;
    }
    if (count < CHAIN_MIN) {
        return expr;
    }
    struct expr **leaves = NEW_ARRAY(arena, struct expr *, count);
    struct expr *e = expr;
    for (i64 i = count - 1; i > 0; i--, e = e->args[0]) {
        leaves[i] = e->args[1];
    }
    leaves[0] = e;
    return halves(arena, expr, leaves, count);
}

struct expr *expr_fold(const struct plan *plan, struct expr *expr) {
    bool call = expr->kind == EXPR_CALL;
    expr = is_concat(expr) ? balance(plan->arena, expr) : expr;
    if (call && (expr->func == FUNC_COALESCE || expr->func == FUNC_TRY)) {
        return expr->func == FUNC_TRY ? fold_try(plan, expr) : fold_coalesce(plan, expr);
    }
    if (expr->kind == EXPR_AND || expr->kind == EXPR_OR) {
        return fold_logic(plan, expr);
    }
    if (expr->kind == EXPR_CASE) {
        return fold_case(plan, expr);
    }
    struct expr **args = NULL;
    for (i32 i = 0; i < expr->arg_count; i++) {
        struct expr *arg = expr_fold(plan, expr->args[i]);
        if (arg != expr->args[i] && !args) {
            args = NEW_ARRAY(plan->arena, struct expr *, expr->arg_count);
            memcpy(args, expr->args, sizeof(struct expr *) * (size_t)expr->arg_count);
        }
        if (args) {
            args[i] = arg;
        }
    }
    if (call && expr->func == FUNC_DEFINED) { /* what cannot fail is what it is */
        struct expr *inner = args ? args[0] : expr->args[0];
        return !expr_can_raise(inner) ? inner : args ? with_args(plan->arena, expr, args, 1) : expr;
    }
    return fold_node(plan, args ? with_args(plan->arena, expr, args, expr->arg_count) : expr);
}

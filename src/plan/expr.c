/* expr.c: typed expressions: making, walking, comparing, and what may be assumed of them.
 *
 * An expression is a tree in the plan's arena, shared freely between operators because nobody
 * changes a node after it was built. Depth is limited by the front end, so walking may recurse. */
#include <stdarg.h>

#include "plan/plan.h"

#include "codes/scalar.h"

struct expr *expr_new(struct arena *arena, enum expr_kind kind, struct type type, i32 position) {
    struct expr *expr = NEW(arena, struct expr);
    expr->kind = (u8)kind;
    expr->type = type;
    expr->position = position;
    return expr;
}

struct expr *expr_col(struct plan *plan, u32 col, i32 position) {
    ASSERT(col < plan->cols.count);
    struct expr *expr = expr_new(plan->arena, EXPR_COL, plan->cols.items[col].type, position);
    expr->col = col;
    return expr;
}

struct expr *expr_call(struct arena *arena, u16 func, struct type type, i32 position, i32 arg_count,
                       ...) {
    struct expr *expr = expr_new(arena, EXPR_CALL, type, position);
    expr->func = (u16)func;
    expr->arg_count = arg_count;
    expr->args = NEW_ARRAY(arena, struct expr *, arg_count);
    va_list list;
    va_start(list, arg_count);
    for (i32 i = 0; i < arg_count; i++) {
        expr->args[i] = va_arg(list, struct expr *);
    }
    va_end(list);
    return expr;
}

/* Of a function that may be NULL otherwise than by an argument, or be none in spite of one. */
static bool call_nullable(const struct plan *plan, const struct expr *expr) {
    if (expr->func == FUNC_TRY || expr->func == FUNC_DEFINED || expr->func == FUNC_NULLIF) {
        return true;
    }
    for (i32 i = 0; i < expr->arg_count; i++) {
        if (!expr_nullable(plan, expr->args[i])) {
            return false;
        }
    }
    return true;
}

bool expr_nullable(const struct plan *plan, const struct expr *expr) {
    if (expr->kind == EXPR_CALL && !func_is_strict(expr->func)) {
        return call_nullable(plan, expr);
    }
    if (expr->kind == EXPR_CAST && expr->type.id == TYPE_TIME &&
        (expr->args[0]->type.id == TYPE_TIMESTAMP || expr->args[0]->type.id == TYPE_TIMESTAMPTZ)) {
        return true; /* of an infinity */
    }
    switch (expr->kind) {
    case EXPR_COL:
        return plan->cols.items[expr->col].nullable;
    case EXPR_CONST:
        return expr->is_null;
    case EXPR_PARAM:
        return true;
    case EXPR_IS_NULL:
        return false;
    case EXPR_CASE:
        for (i32 i = 1; i < expr->arg_count; i += 2) {
            if (expr_nullable(plan, expr->args[i])) {
                return true;
            }
        }
        return expr_nullable(plan, expr->args[expr->arg_count - 1]);
    default:
        for (i32 i = 0; i < expr->arg_count; i++) {
            if (expr_nullable(plan, expr->args[i])) {
                return true;
            }
        }
        return false;
    }
}

static bool const_equal(const struct expr *a, const struct expr *b) {
    if (a->is_null || b->is_null) {
        return a->is_null == b->is_null;
    }
    switch (type_kind(a->type)) {
    case KIND_B8:
        return a->value.b8 == b->value.b8;
    case KIND_I32:
        return a->value.i32 == b->value.i32;
    case KIND_I64:
        return a->value.i64 == b->value.i64;
    case KIND_I128:
        return a->value.i128 == b->value.i128;
    case KIND_F32: /* by bits: -0 and NaN are values of their own here */
        return memcmp(&a->value.f32, &b->value.f32, sizeof(f32)) == 0;
    case KIND_F64:
        return memcmp(&a->value.f64, &b->value.f64, sizeof(f64)) == 0;
    default:
        return sv_eq(sv_of(a->value.str), sv_of(b->value.str));
    }
}

bool expr_equal(const struct expr *a, const struct expr *b) {
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind || !type_eq(a->type, b->type) || a->arg_count != b->arg_count) {
        return false;
    }
    bool same = true;
    switch (a->kind) {
    case EXPR_COL:
        same = a->col == b->col;
        break;
    case EXPR_CONST:
        same = const_equal(a, b);
        break;
    case EXPR_PARAM:
        same = a->param == b->param;
        break;
    case EXPR_CALL:
        same = a->func == b->func;
        break;
    default:
        break;
    }
    for (i32 i = 0; same && i < a->arg_count; i++) {
        same = expr_equal(a->args[i], b->args[i]);
    }
    return same;
}

static u64 const_hash(const struct expr *expr) {
    u64 words[2] = {0, 0};
    enum kind kind = type_kind(expr->type);
    if (expr->is_null) {
        return 1;
    }
    if (kind == KIND_STR) {
        return sv_hash(sv_of(expr->value.str));
    }
    memcpy(words, &expr->value, (size_t)kind_bytes[kind]);
    return hash_u64(words[0] ^ hash_u64(words[1]));
}

u64 expr_hash(const struct expr *expr) {
    u64 own = expr->kind == EXPR_COL     ? expr->col
              : expr->kind == EXPR_CONST ? const_hash(expr)
              : expr->kind == EXPR_PARAM ? (u64)expr->param
              : expr->kind == EXPR_CALL  ? expr->func
                                         : 0;
    u64 hash = hash_u64(own + hash_u64((u64)expr->kind << 32 | (u64)expr->type.id));
    for (i32 i = 0; i < expr->arg_count; i++) {
        hash = hash_u64(hash ^ expr_hash(expr->args[i]));
    }
    return hash;
}

i64 expr_find(struct arena *arena, expr_hashes *hashes, struct expr *const *items, i64 count,
              const struct expr *expr) {
    while (hashes->count < count) {
        u64 hash = expr_hash(items[hashes->count]);
        VEC_PUSH(arena, hashes, hash);
    }
    u64 wanted = expr_hash(expr);
    for (i64 i = 0; i < count; i++) {
        if (hashes->items[i] == wanted && expr_equal(items[i], expr)) {
            return i;
        }
    }
    return -1;
}

bool expr_walk(const struct expr *expr, bool (*visit)(const struct expr *, void *arg), void *arg) {
    if (!visit(expr, arg)) {
        return false;
    }
    for (i32 i = 0; i < expr->arg_count; i++) {
        if (!expr_walk(expr->args[i], visit, arg)) {
            return false;
        }
    }
    return true;
}

void expr_each_col(const struct expr *expr, void (*fn)(u32 col, void *arg), void *arg) {
    if (expr->kind == EXPR_COL) {
        fn(expr->col, arg);
    }
    for (i32 i = 0; i < expr->arg_count; i++) {
        expr_each_col(expr->args[i], fn, arg);
    }
}

struct expr *expr_rebuild(struct arena *arena, struct expr *expr, expr_fn fn, void *arg) {
    struct expr *made = fn(expr, arg);
    if (made) {
        return made;
    }
    struct expr *copy = NULL;
    for (i32 i = 0; i < expr->arg_count; i++) {
        struct expr *to = expr_rebuild(arena, expr->args[i], fn, arg);
        if (to != expr->args[i] && !copy) {
            copy = NEW(arena, struct expr);
            *copy = *expr;
            copy->args = NEW_ARRAY(arena, struct expr *, expr->arg_count);
            memcpy(copy->args, expr->args, sizeof(struct expr *) * (size_t)expr->arg_count);
        }
        if (copy) {
            copy->args[i] = to;
        }
    }
    return copy ? copy : expr;
}

static struct expr *mapped(struct expr *expr, void *arg) {
    struct expr *const *map = arg;
    return expr->kind == EXPR_COL ? map[expr->col] : NULL;
}

struct expr *expr_map(struct arena *arena, struct expr *expr, struct expr *const *map) {
    return expr_rebuild(arena, expr, mapped, (void *)(size_t)map);
}

/* A cast that fits every value of its source. */
static bool cast_can_raise(struct type from, struct type to) {
    if (from.id == to.id && from.id != TYPE_DECIMAL) {
        return false;
    }
    if (type_is_string(to) || from.id == TYPE_UNKNOWN) {
        return false;
    }
    bool infallible = (type_category(from) == 'D' && to.id == TYPE_DATE) ||
                      (from.id == TYPE_TIME && to.id == TYPE_INTERVAL) ||
                      (from.id == TYPE_INTERVAL && to.id == TYPE_TIME);
    if (infallible) {
        return false;
    }
    if (from.id == TYPE_BOOLEAN || to.id == TYPE_BOOLEAN) {
        return type_is_string(from);
    }
    if (type_is_exact(from) && to.id == TYPE_DOUBLE) {
        return false;
    }
    if (from.id == TYPE_REAL && to.id == TYPE_DOUBLE) {
        return false;
    }
    if (type_is_integer(from) && to.id == TYPE_REAL) {
        return false;
    }
    if (type_is_integer(from) && type_is_integer(to)) {
        return !range_within(range_of_type(from), range_of_type(to));
    }
    if (type_is_exact(from) && to.id == TYPE_DECIMAL) {
        i32 whole = from.id == TYPE_DECIMAL ? from.precision - from.scale
                                            : (from.id == TYPE_SMALLINT  ? 5
                                               : from.id == TYPE_INTEGER ? 10
                                                                         : 19);
        bool rounds = from.id == TYPE_DECIMAL && from.scale > to.scale;
        return whole + (rounds ? 1 : 0) > to.precision - to.scale;
    }
    return true;
}

/* Sums and products of decimals have result types that hold them, up to the limit of 38 digits. */
static bool decimal_call_can_raise(const struct expr *expr) {
    struct type a = expr->args[0]->type;
    struct type b = expr->args[expr->arg_count - 1]->type;
    if (a.id != TYPE_DECIMAL || b.id != TYPE_DECIMAL) {
        return true;
    }
    i32 whole_a = a.precision - a.scale;
    i32 whole_b = b.precision - b.scale;
    i32 whole = expr->type.precision - expr->type.scale;
    if (expr->func == FUNC_MUL) {
        return whole < whole_a + whole_b;
    }
    return whole < MAX_OF(whole_a, whole_b) + 1;
}

bool pattern_is_whole(struct sv pattern) {
    i64 slashes = 0;
    while (slashes < pattern.len && pattern.ptr[pattern.len - 1 - slashes] == '\\') {
        slashes++;
    }
    return slashes % 2 == 0;
}

static bool like_can_raise(const struct expr *pattern) {
    return pattern->kind != EXPR_CONST ||
           (!pattern->is_null && !pattern_is_whole(sv_of(pattern->value.str)));
}

void expr_split_and(struct arena *arena, expr_list *out, struct expr *expr) {
    if (expr->kind != EXPR_AND) {
        VEC_PUSH(arena, out, expr);
        return;
    }
    for (i32 i = 0; i < expr->arg_count; i++) {
        expr_split_and(arena, out, expr->args[i]);
    }
}

static bool is_length(const struct expr *expr) {
    return expr->kind == EXPR_CONST && !expr->is_null && type_is_integer(expr->type) &&
           const_exact(expr) >= 0;
}

bool expr_node_can_raise(const struct expr *expr) {
    if (expr->kind == EXPR_CAST) {
        return cast_can_raise(expr->args[0]->type, expr->type);
    }
    if (expr->kind != EXPR_CALL) {
        return false;
    }
    switch (expr->func) {
    case FUNC_ADD:
    case FUNC_SUB:
    case FUNC_MUL:
        return expr->type.id == TYPE_DECIMAL ? decimal_call_can_raise(expr) : true;
    case FUNC_NEG:
    case FUNC_ABS:
        return type_is_integer(expr->type);
    case FUNC_DIV:
    case FUNC_MOD:
    case FUNC_ROUND:
        return true;
    case FUNC_SUBSTRING: /* of a length below zero */
        return expr->arg_count > 2 && !is_length(expr->args[2]);
    case FUNC_LIKE:
    case FUNC_ILIKE:
        return like_can_raise(expr->args[1]);
    default:
        return scalar_infos[expr->func].args &&
               (op_infos[scalar_infos[expr->func].op].flags & OP_FAULTS) != 0;
    }
}

/* Dates and times as text depend on settings, and what text stands for a date on the day; interval
 * is among those whose text does. */
static bool cast_is_immutable(struct type from, struct type to) {
    bool moment_from = type_category(from) == 'D' || from.id == TYPE_INTERVAL;
    bool moment_to = type_category(to) == 'D' || to.id == TYPE_INTERVAL;
    if (type_is_string(to)) {
        return !moment_from || from.id == TYPE_TIME;
    }
    if (type_is_string(from) || from.id == TYPE_UNKNOWN) {
        return !moment_to;
    }
    return from.id == to.id || (from.id != TYPE_TIMESTAMPTZ && to.id != TYPE_TIMESTAMPTZ);
}

bool expr_node_is_immutable(const struct expr *expr) {
    if (expr->kind == EXPR_CAST) {
        return cast_is_immutable(expr->args[0]->type, expr->type);
    }
    switch (expr->func) {
    case FUNC_NOW:
    case FUNC_STATEMENT_TIME:
    case FUNC_CLOCK_TIME:
    case FUNC_RANDOM:
    case FUNC_RANDOM_UUID:
    case FUNC_TO_NUMBER:
    case FUNC_TO_TIMESTAMP:
    case FUNC_TO_DATE:
    case FUNC_TO_CHAR_TS:
    case FUNC_TO_CHAR_TZ:
    case FUNC_TO_CHAR_IV:
    case FUNC_TO_CHAR_F:
    case FUNC_TO_CHAR_R:
    case FUNC_TO_CHAR_I:
    case FUNC_TO_CHAR_N:
    case FUNC_SAMPLE_NOW:
    case FUNC_IV_ADD_TSTZ:
        return false;
    default: {
        const char *args = scalar_infos[expr->func].args;
        const char *zone = args ? strchr(args, '@') : NULL; /* the session's, unless 0 */
        return !zone || zone[1] == '0' || expr->func == FUNC_AGE_TSTZ;
    }
    }
}

static bool visit_stable(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_CALL || (expr->func != FUNC_RANDOM && expr->func != FUNC_RANDOM_UUID);
}

bool expr_is_volatile(const struct expr *expr) {
    return !expr_walk(expr, visit_stable, NULL);
}

static bool visit_safe(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return !expr_node_can_raise(expr);
}

bool expr_can_raise(const struct expr *expr) {
    return !expr_walk(expr, visit_safe, NULL);
}

struct one_col {
    u32 col;
    bool any;
    bool several;
};

static void note_col(u32 col, void *arg) {
    struct one_col *c = arg;
    c->several = c->several || (c->any && c->col != col);
    c->any = true;
    c->col = col;
}

bool expr_only_col(const struct expr *expr, u32 *out) {
    struct one_col c = {0};
    expr_each_col(expr, note_col, &c);
    *out = c.col;
    return c.any && !c.several;
}

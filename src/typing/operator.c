/* operator.c: operators: which types they take, what they return, LIKE.
 *
 * Numbers meet as in PostgreSQL: smallint < integer < bigint < decimal < double. A real stays
 * real only beside another real. Arguments of + - % and comparisons leave here with one common
 * type. Those of * and / on decimals keep their own scales, which lowering aligns: they add, as far
 * as 38 digits allow. A quotient always has 16 digits after the point. It has 16 significant ones,
 * where there is room, even if it is the smallest that the types of its operands allow. */
#include "defs/host_words.h"
/* after the words they are written in */
#include "codes/scalar.h"
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "typing/typing_int.h"

#include <stdio.h>

static const struct {
    const char *op;
    u8 func;
} arithmetic_ops[] = {
    {"+", FUNC_ADD}, {"-", FUNC_SUB}, {"*", FUNC_MUL}, {"/", FUNC_DIV}, {"%", FUNC_MOD},
};
static const struct {
    const char *op;
    u8 func;
} compare_ops[] = {
    {"=", FUNC_EQ},  {"<>", FUNC_NE}, {"<", FUNC_LT},
    {"<=", FUNC_LE}, {">", FUNC_GT},  {">=", FUNC_GE},
};
/* PostgreSQL has them; we do not. */
static const char *const known_ops[] = {
    "->", "->>", "#>",  "#>>", "@>",   "<@",  "?",    "?|",  "?&",
    "&&", "@@",  "-|-", "~<~", "~<=~", "~>~", "~>=~", "<->", "!!",
};

enum { USE_BYTES = 120 };

/* The operator between the types of its operands. */
static const char *print_use(char *buf, const char *op, const struct expr *left,
                             const struct expr *right) {
    char left_name[32] = "";
    char right_name[32] = "";
    if (left) {
        type_print(left->type, left_name);
    }
    type_print(right->type, right_name);
    snprintf(buf, USE_BYTES, "%s%s%.40s %s", left_name, left ? " " : "", op, right_name);
    return buf;
}

wf_status operator_missing(struct typing *t, const char *op, struct expr *left, struct expr *right,
                           i32 position) {
    char use[USE_BYTES];
    for (i64 i = 0; i < COUNT_OF(known_ops); i++) {
        if (strcmp(known_ops[i], op) == 0) {
            FAIL_AT(t->err, NOT_SUPPORTED, position, "not supported yet: operator %s", op);
        }
    }
    error_set(t->err, ERR_UNDEFINED_FUNCTION, position, "operator does not exist: %s",
              print_use(use, op, left, right));
    error_hint(t->err, "No operator matches the given name and argument types. You might need to "
                       "add explicit type casts.");
    return ERR_UNDEFINED_FUNCTION;
}

static wf_status not_unique(struct typing *t, const char *op, struct expr *left, struct expr *right,
                            i32 position) {
    char use[USE_BYTES];
    error_set(t->err, ERR_AMBIGUOUS_FUNCTION, position, "operator is not unique: %s",
              print_use(use, op, left, right));
    error_hint(t->err, "Could not choose a best candidate operator. You might need to add explicit "
                       "type casts.");
    return ERR_AMBIGUOUS_FUNCTION;
}

/* An operand without a type takes that of the other. */
static FALLIBLE settle_pair(struct typing *t, struct expr **left, struct expr **right) {
    struct type left_type = (*left)->type;
    TRY(coerce_unknown(t, *left, (*right)->type, left));
    return coerce_unknown(t, *right, left_type, right);
}

static FALLIBLE to_pair(struct typing *t, struct expr **left, struct expr **right,
                        struct type type) {
    TRY(coerce_to(t, *left, type, left));
    return coerce_to(t, *right, type, right);
}

/* A date beside a constant midnight is compared as a date: both stay what they are, and a scan can
 * use the constant. */
static bool midnight_as_date(struct typing *t, struct expr *date, struct expr **io_other) {
    const struct expr *other = *io_other;
    bool constant = date->type.id == TYPE_DATE && other->type.id == TYPE_TIMESTAMP &&
                    other->kind == EXPR_CONST && !other->is_null;
    if (!constant || fn_ts_infinite(other->value.i64) || other->value.i64 % DAY_US != 0) {
        return false;
    }
    *io_other = expr_new(t->arena, EXPR_CONST, type_of(TYPE_DATE), other->position);
    (*io_other)->value.i32 = (i32)(other->value.i64 / DAY_US);
    return true;
}

/* A date that may lie beyond all timestamps is compared with one nevertheless. */
static struct expr *as_moment(struct typing *t, struct expr *date, struct type type) {
    u8 fault = 0;
    bool known = date->kind == EXPR_CONST && !date->is_null;
    bool wide = date->type.id == TYPE_DATE && date->kind != EXPR_PARAM &&
                (type.id == TYPE_TIMESTAMP || type.id == TYPE_TIMESTAMPTZ);
    if (known && wide) {
        (void)fn_ts_of_date(date->value.i32, 0, &fault);
    }
    if (!wide || date->is_null || (known && !fault)) {
        return date;
    }
    return scalar_call(t, type.id == TYPE_TIMESTAMP ? FUNC_MOMENT : FUNC_MOMENT_TZ, date->position,
                       1, date);
}

/* An operand of decimals whose common type 38 digits do not hold: the one with fewer digits after
 * the point gets as many as the other, or becomes a number beyond all decimals, so that they
 * compare exactly. */
static FALLIBLE scale_compared(struct typing *t, struct expr **io_expr, i32 scale) {
    struct type type = decimal_of((*io_expr)->type);
    struct type wide = type_decimal(DECIMAL_DIGITS_MAX, scale);
    TRY(coerce_to(t, *io_expr, type, io_expr));
    if (type.precision - type.scale + scale <= DECIMAL_DIGITS_MAX) {
        return coerce_to(t, *io_expr, wide, io_expr);
    }
    i32 position = (*io_expr)->position;
    struct expr *digits = expr_int(t, scale - type.scale, position);
    *io_expr = scalar_call(t, FUNC_SCALED, position, 2, *io_expr, digits);
    (*io_expr)->type = wide;
    return ERR_OK;
}

bool operator_is_wide(const struct expr *left, const struct expr *right) {
    if (!type_is_exact(left->type) || !type_is_exact(right->type)) {
        return false;
    }
    struct type l = decimal_of(left->type);
    struct type r = decimal_of(right->type);
    i32 whole = MAX_OF(l.precision - l.scale, r.precision - r.scale);
    return whole + MAX_OF(l.scale, r.scale) > DECIMAL_DIGITS_MAX;
}

/* Whether a time of day meets an interval: it is compared as one, though no list holds both. */
static bool is_time_beside_interval(const struct expr *left, const struct expr *right) {
    return (left->type.id == TYPE_TIME && right->type.id == TYPE_INTERVAL) ||
           (left->type.id == TYPE_INTERVAL && right->type.id == TYPE_TIME);
}

FALLIBLE operator_compare(struct typing *t, u16 func, struct expr *left, struct expr *right,
                          i32 position, struct expr **out) {
    struct type type;
    TRY(settle_pair(t, &left, &right));
    bool dates = midnight_as_date(t, left, &right) || midnight_as_date(t, right, &left);
    UNUSED(dates);
    if (is_time_beside_interval(left, right)) {
        type = type_of(TYPE_INTERVAL);
    } else if (!coerce_compared(left->type, right->type, &type)) {
        return operator_missing(t, func_names[func], left, right, position);
    }
    left = as_moment(t, left, type);
    right = as_moment(t, right, type);
    if (operator_is_wide(left, right)) {
        i32 scale = MAX_OF(decimal_of(left->type).scale, decimal_of(right->type).scale);
        TRY(scale_compared(t, &left, scale));
        TRY(scale_compared(t, &right, scale));
    } else {
        TRY(to_pair(t, &left, &right, type));
    }
    *out = expr_call(t->arena, func, type_of(TYPE_BOOLEAN), position, 2, left, right);
    return ERR_OK;
}

/* An operator that is a row of WF_SCALARS. */
static FALLIBLE bind_by_name(struct typing *t, const char *op, struct expr *left,
                             struct expr *right, i32 position, struct expr **out) {
    struct expr *args[2] = {left ? left : right, right};
    struct call call = {op, args, left ? 2 : 1, position, 0};
    bool found;
    TRY(call_overload(t, &call, &found, out));
    return found ? ERR_OK : operator_missing(t, op, left, right, position);
}

static bool is_date(const struct expr *expr) {
    return expr->type.id == TYPE_DATE;
}

static bool is_days(const struct expr *expr) {
    return expr->type.id == TYPE_INTEGER || expr->type.id == TYPE_SMALLINT;
}

/* date ± integer, integer + date, date - date. */
static FALLIBLE date_arithmetic(struct typing *t, u16 func, struct expr *left, struct expr *right,
                                i32 position, struct expr **out) {
    struct type integer = type_of(TYPE_INTEGER);
    struct type date = type_of(TYPE_DATE);
    if (func == FUNC_SUB && is_date(left) && is_date(right)) {
        *out = expr_call(t->arena, func, integer, position, 2, left, right);
        return ERR_OK;
    }
    if (func == FUNC_ADD && is_days(left) && is_date(right)) {
        struct expr *swap = left;
        left = right;
        right = swap;
    }
    if ((func == FUNC_ADD || func == FUNC_SUB) && is_date(left) && is_days(right)) {
        TRY(coerce_to(t, right, integer, &right));
        *out = expr_call(t->arena, func, date, position, 2, left, right);
        return ERR_OK;
    }
    return operator_missing(t, func_names[func], left, right, position);
}

/* An integer constant needs only its own digits: c * 2 stays narrow. */
static struct type operand_decimal(const struct expr *expr) {
    struct type type = decimal_of(expr->type);
    if (expr->kind != EXPR_CONST || expr->is_null || expr->type.id == TYPE_DECIMAL) {
        return type;
    }
    i128 value = const_exact(expr);
    i32 digits = 1;
    while (digits < type.precision &&
           (value >= pow10_i128(digits) || value <= -pow10_i128(digits))) {
        digits++;
    }
    return type_decimal(digits, 0);
}

/* A product keeps all digits after the point where it has room for them, or where they are few: it
 * has 38 digits, and those before the point come first. */
static struct type product_type(struct type l, struct type r) {
    i32 most = DECIMAL_DIGITS_MAX;
    i32 whole = l.precision - l.scale + r.precision - r.scale;
    i32 kept = MAX_OF(MIN_OF(MAX_OF(l.scale, r.scale), COMMON_SCALE), QUOTIENT_DIGITS);
    i32 scale = MIN_OF(l.scale + r.scale, MAX_OF(most - whole, kept));
    return type_decimal(MIN_OF(whole + scale, most), scale);
}

/* `whole` digits before the point, and `zeros` behind it in the smallest value; `least` digits
 * behind it stay whatever the type allows before it, since most values are smaller than that. */
static struct type rounded_type(i32 whole, i32 zeros, i32 least) {
    i32 most = DECIMAL_DIGITS_MAX;
    i32 scale = MAX_OF(MIN_OF(QUOTIENT_DIGITS + zeros, most - whole), least);
    return type_decimal(MIN_OF(whole + scale, most), scale);
}

static struct type quotient_type(struct type l, struct type r, bool constant) {
    i32 least = constant ? 0 : QUOTIENT_DIGITS;
    return rounded_type(l.precision - l.scale + r.scale, l.scale + r.precision - r.scale, least);
}

/* A remainder is no larger than either operand, so it always fits. */
static struct type remainder_type(struct type l, struct type r) {
    i32 scale = MAX_OF(l.scale, r.scale);
    i32 whole = MIN_OF(l.precision - l.scale, r.precision - r.scale);
    return type_decimal(MAX_OF(whole + scale, 1), scale);
}

struct type mean_type(struct type exact) {
    struct type type = decimal_of(exact);
    return rounded_type(type.precision - type.scale, type.scale, QUOTIENT_DIGITS);
}

static FALLIBLE decimal_arithmetic(struct typing *t, u16 func, struct expr *left,
                                   struct expr *right, i32 position, struct expr **out) {
    struct type l = operand_decimal(left);
    struct type r = operand_decimal(right);
    struct type common = decimal_common(l, r);
    struct type type = common;
    i32 most = DECIMAL_DIGITS_MAX;
    if (func == FUNC_MUL) {
        type = product_type(l, r);
    } else if (func == FUNC_DIV) {
        type = quotient_type(l, r, left->kind == EXPR_CONST);
    } else if (func == FUNC_MOD) {
        type = remainder_type(l, r);
    } else {
        l = r = common;
        type = type_decimal(MIN_OF(common.precision + 1, most), common.scale);
    }
    TRY(coerce_to(t, left, l, &left));
    TRY(coerce_to(t, right, r, &right));
    left = func == FUNC_DIV ? decimal_constant(t, left) : left;
    right = func == FUNC_DIV ? decimal_constant(t, right) : right;
    i32 scale;
    if (func == FUNC_DIV && decimal_quotient(left, right, &scale)) {
        type = type_decimal(most, scale);
    }
    *out = expr_call(t->arena, func, type, position, 2, left, right);
    return ERR_OK;
}

FALLIBLE operator_arithmetic(struct typing *t, u16 func, struct expr *left, struct expr *right,
                             i32 position, struct expr **out) {
    const char *op = func_names[func];
    struct type type;
    bool days = (is_date(left) && (is_days(right) || is_date(right) || is_unknown(right))) ||
                (is_date(right) && (is_days(left) || is_unknown(left)));
    bool timed =
        strchr("DT", type_category(left->type)) || strchr("DT", type_category(right->type));
    if (func == FUNC_ADD && left->type.id == TYPE_TIME) { /* of an interval and a date the former */
        TRY(coerce_unknown(t, right, type_of(TYPE_INTERVAL), &right));
    } else if (func == FUNC_ADD && right->type.id == TYPE_TIME) {
        TRY(coerce_unknown(t, left, type_of(TYPE_INTERVAL), &left));
    }
    if (timed && !days) {
        return bind_by_name(t, op, left, right, position, out);
    }
    bool date_plus = func == FUNC_ADD && (is_date(left) || is_date(right));
    bool both_unknown = is_unknown(left) && is_unknown(right);
    if (both_unknown || (date_plus && (is_unknown(left) || is_unknown(right)))) {
        return not_unique(t, op, left, right, position);
    }
    bool typed = type_is_numeric(left->type) || type_is_numeric(right->type) || is_date(left) ||
                 is_date(right);
    if (!typed) {
        return operator_missing(t, op, left, right, position);
    }
    TRY(settle_pair(t, &left, &right));
    if (is_date(left) || is_date(right)) {
        return date_arithmetic(t, func, left, right, position, out);
    }
    if (!type_is_numeric(left->type) || !type_is_numeric(right->type) ||
        !coerce_compared(left->type, right->type, &type)) {
        return operator_missing(t, op, left, right, position);
    }
    if (type.id == TYPE_DECIMAL) {
        return decimal_arithmetic(t, func, left, right, position, out);
    }
    if (func == FUNC_MOD && type_is_float(type)) {
        return operator_missing(t, op, left, right, position);
    }
    TRY(to_pair(t, &left, &right, type));
    *out = expr_call(t->arena, func, type, position, 2, left, right);
    return ERR_OK;
}

static FALLIBLE bind_concat(struct typing *t, struct expr *left, struct expr *right, i32 position,
                            struct expr **out) {
    struct type text = type_of(TYPE_TEXT);
    bool textual = type_is_string(left->type) || type_is_string(right->type) || is_unknown(left) ||
                   is_unknown(right);
    bool bytes = left->type.id == TYPE_BLOB || right->type.id == TYPE_BLOB;
    bool text_beside = type_is_string(left->type) || type_is_string(right->type);
    if ((bytes && !text_beside) || !textual) {
        return bind_by_name(t, "||", left, right, position, out);
    }
    TRY(to_pair(t, &left, &right, text));
    *out = expr_call(t->arena, FUNC_CONCAT, text, position, 2, left, right);
    return ERR_OK;
}

/* ~* and the negations of ~: the option travels in front of the pattern. */
static bool is_textual(const struct expr *expr) {
    return is_unknown(expr) || type_is_string(expr->type);
}

/* ~, and with * for letters of either case, with ! in front for what does not match. */
static FALLIBLE bind_regex(struct typing *t, const char *op, struct expr *left, struct expr *right,
                           i32 position, struct expr **out) {
    if (!is_textual(left) || !is_textual(right)) {
        return operator_missing(t, op, left, right, position);
    }
    if (op[strlen(op) - 1] == '*') {
        struct expr *option = expr_text(t, SV("\001i\001"), position);
        TRY(bind_concat(t, option, right, position, &right));
    }
    TRY(coerce_padded(t, left, &left));
    TRY(bind_by_name(t, "~", left, right, position, out));
    *out = op[0] == '!' ? expr_one(t, EXPR_NOT, *out, position) : *out;
    return ERR_OK;
}

/* A regular expression without anything special but ^ in front and $ behind, as a pattern of LIKE,
 * which every device runs, and faster. NULL when it is not one. */
static struct expr *regex_as_like(struct typing *t, const struct expr *left,
                                  const struct expr *right) {
    struct sv s;
    if (left->type.id != TYPE_TEXT || !literal_text(right, &s) || s.len == 0) {
        return NULL;
    }
    bool begin = s.ptr[0] == '^', end = s.len > begin && s.ptr[s.len - 1] == '$';
    char *text = arena_alloc(t->arena, 2 * s.len + 3);
    i64 len = 0;
    if (!begin) {
        text[len++] = '%';
    }
    for (i64 i = begin; i < s.len - end; i++) {
        char c = s.ptr[i];
        if (c <= 1 && c >= 0) { /* options are marked so */
            return NULL;
        }
        if (strchr("\\.[](){}*+?^$|", c)) {
            return NULL;
        }
        if (c == '%' || c == '_') {
            text[len++] = '\\';
        }
        text[len++] = c;
    }
    if (!end) {
        text[len++] = '%';
    }
    struct expr *out = expr_new(t->arena, EXPR_CONST, type_of(TYPE_TEXT), right->position);
    out->value.str = str_from((struct sv){text, len});
    return out;
}

FALLIBLE operator_binary(struct typing *t, const char *op, struct expr *left, struct expr *right,
                         i32 position, struct expr **out) {
    for (i64 i = 0; i < COUNT_OF(arithmetic_ops); i++) {
        if (strcmp(arithmetic_ops[i].op, op) == 0) {
            return operator_arithmetic(t, arithmetic_ops[i].func, left, right, position, out);
        }
    }
    for (i64 i = 0; i < COUNT_OF(compare_ops); i++) {
        if (strcmp(compare_ops[i].op, op) == 0) {
            return operator_compare(t, compare_ops[i].func, left, right, position, out);
        }
    }
    if (strcmp(op, "||") == 0) {
        return bind_concat(t, left, right, position, out);
    }
    bool negated = strcmp(op, "!~") == 0;
    struct expr *like = negated || strcmp(op, "~") == 0 ? regex_as_like(t, left, right) : NULL;
    if (like) {
        return operator_like(t, negated ? "!~~" : "~~", left, like, position, out);
    }
    bool nocase = strcmp(op, "~*") == 0 || strcmp(op, "!~*") == 0;
    bool padded = strcmp(op, "~") == 0 && left->type.id == TYPE_CHAR;
    if (nocase || negated || padded) {
        return bind_regex(t, op, left, right, position, out);
    }
    struct expr *args[2] = {left, right};
    if (strcmp(op, "^") == 0 && decimal_takes(args, 2, false)) {
        return decimal_call(t, FUNC_POWER_N, args, 2, position, out);
    }
    static const char *const likes[] = {"~~", "~~*", "!~~", "!~~*"};
    for (i64 i = 0; i < COUNT_OF(likes); i++) {
        if (strcmp(likes[i], op) == 0) {
            return operator_like(t, op, left, right, position, out);
        }
    }
    return bind_by_name(t, op, left, right, position, out);
}

FALLIBLE operator_unary(struct typing *t, const char *op, struct expr *arg, i32 position,
                        struct expr **out) {
    bool minus = strcmp(op, "-") == 0;
    bool plus = strcmp(op, "+") == 0;
    if (minus && is_unknown(arg)) {
        return not_unique(t, op, NULL, arg, position);
    }
    if (is_unknown(arg) && (plus || strcmp(op, "@") == 0)) {
        TRY(coerce_unknown(t, arg, type_of(TYPE_DOUBLE), &arg));
    }
    if (strcmp(op, "@") == 0) {
        struct call call = {"abs", &arg, 1, position, FUNC_ABS};
        return type_is_numeric(arg->type)
                   ? (*out = expr_call(t->arena, FUNC_ABS, arg->type, position, 1, arg), ERR_OK)
                   : call_mismatch(t, &call);
    }
    if (plus && arg->type.id == TYPE_INTERVAL) {
        return operator_missing(t, op, NULL, arg, position);
    }
    if ((!minus && !plus) || !type_is_numeric(arg->type)) {
        return bind_by_name(t, op, NULL, arg, position, out);
    }
    *out = plus ? arg : expr_call(t->arena, FUNC_NEG, arg->type, position, 1, arg);
    return ERR_OK;
}

/* Rewrites a pattern with another escape character, or none, into one with a backslash. */
static struct expr *escape_pattern(struct typing *t, struct sv pattern, struct sv escape,
                                   i32 position) {
    char *text = arena_alloc(t->arena, 2 * pattern.len + 1);
    i64 len = 0;
    for (i64 i = 0; i < pattern.len;) {
        bool escaped = escape.len > 0 && i + escape.len <= pattern.len &&
                       memcmp(pattern.ptr + i, escape.ptr, (size_t)escape.len) == 0;
        if (escaped) {
            i += escape.len;
            text[len++] = '\\';
            if (i == pattern.len) { /* an error where matching comes to it */
                break;
            }
        } else if (pattern.ptr[i] == '\\') {
            text[len++] = '\\';
        }
        text[len++] = pattern.ptr[i++];
    }
    struct expr *out = expr_new(t->arena, EXPR_CONST, type_of(TYPE_TEXT), position);
    out->value.str = str_from((struct sv){text, len});
    return out;
}

static bool is_ascii(const struct expr *pattern) {
    struct sv text;
    bool ascii = literal_text(pattern, &text);
    for (i64 i = 0; ascii && i < text.len; i++) {
        ascii = (u8)text.ptr[i] < 0x80;
    }
    return ascii;
}

/* Case beyond ASCII is ignored by comparing in lower case. */
static struct expr *like(struct typing *t, struct expr *left, struct expr *right, bool nocase,
                         bool negated, i32 position) {
    struct type text = type_of(TYPE_TEXT);
    if (nocase && !is_ascii(right)) {
        left = expr_call(t->arena, FUNC_LOWER, text, position, 1, left);
        right = expr_call(t->arena, FUNC_LOWER, text, position, 1, right);
        nocase = false;
    }
    struct expr *out = expr_call(t->arena, nocase ? FUNC_ILIKE : FUNC_LIKE, type_of(TYPE_BOOLEAN),
                                 position, 2, left, right);
    return negated ? expr_one(t, EXPR_NOT, out, position) : out;
}

/* ~~, ~~*, !~~, !~~*: LIKE and ILIKE by another name; without the star also of bytes. */
FALLIBLE operator_like(struct typing *t, const char *op, struct expr *left, struct expr *right,
                       i32 position, struct expr **out) {
    bool nocase = op[strlen(op) - 1] == '*';
    bool any = is_unknown(left) || is_unknown(right);
    bool textual = is_textual(left) && is_textual(right);
    bool left_bytes = !is_unknown(left) && left->type.id == TYPE_BLOB;
    bool right_bytes = !is_unknown(right) && right->type.id == TYPE_BLOB;
    if (!nocase && ((left_bytes && right_bytes) || (any && (left_bytes || right_bytes)))) {
        TRY(coerce_to(t, left, type_of(TYPE_BLOB), &left));
        TRY(coerce_to(t, right, type_of(TYPE_BLOB), &right));
        *out = scalar_call(t, FUNC_LIKE_X, position, 2, left, right);
        *out = op[0] == '!' ? expr_one(t, EXPR_NOT, *out, position) : *out;
        return ERR_OK;
    }
    if (!textual) {
        return operator_missing(t, op, left, right, position);
    }
    TRY(coerce_padded(t, left, &left));
    TRY(coerce_to(t, right, type_of(TYPE_TEXT), &right));
    *out = like(t, left, right, nocase, op[0] == '!', position);
    return ERR_OK;
}

FALLIBLE operator_escape(struct typing *t, struct expr **args, i32 count, i32 position,
                         struct expr **out) {
    struct sv pattern = {"", 0};
    struct sv escape = {"", 0};
    if (count == 2 && !(literal_text(args[0], &pattern) && literal_text(args[1], &escape))) {
        struct call call = {"like_escape", args, 2, position, 0};
        bool found;
        TRY(call_overload(t, &call, &found, out));
        return found ? ERR_OK : call_mismatch(t, &call);
    }
    if (char_count(escape) > 1) {
        error_set(t->err, ERR_INVALID_ESCAPE, args[1]->position, "invalid escape string");
        error_hint(t->err, "Escape string must be empty or one character.");
        return ERR_INVALID_ESCAPE;
    }
    *out = escape_pattern(t, pattern, escape, args[0]->position);
    return ERR_OK;
}

FALLIBLE operator_similar(struct typing *t, const char *op, struct expr *left, struct expr **args,
                          i32 count, i32 position, struct expr **out) {
    struct type text = type_of(TYPE_TEXT);
    struct expr *pattern = NULL;
    struct expr *escape = expr_text(t, SV("\\"), position);
    for (i32 i = 0; i < count; i++) {
        if (!is_textual(args[i])) {
            return operator_missing(t, "similar to", left, args[i], position);
        }
    }
    TRY(coerce_to(t, args[0], text, &pattern));
    if (count > 1) {
        TRY(coerce_to(t, args[1], text, &escape));
    }
    pattern = scalar_call(t, FUNC_SIMILAR_REGEX, position, 2, pattern, escape);
    return bind_regex(t, op[0] == '!' ? "!~" : "~", left, pattern, position, out);
}

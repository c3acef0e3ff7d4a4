/* coerce.c: types meeting types: literals of unknown type, casts, common types.
 *
 * A quoted literal, NULL or parameter has no type until its context gives it one; then its text
 * is read here, once, and a malformed one is an error at its position whether or not a row would
 * evaluate it, as in PostgreSQL. Typed constants are converted here only when that cannot fail:
 * what would raise stays a cast, so that it raises only for rows that reach it.
 *
 * Decimals: a literal keeps its own digits. Types that meet in a comparison or list are cast to
 * the decimal with enough digits on both sides of the point, at most 38 in all. */
#include "defs/value.h"
#include "codes/scalar.h"
#include "typing/typing_int.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"

struct type decimal_of(struct type exact) {
    switch (exact.id) {
    case TYPE_SMALLINT:
        return type_decimal(5, 0);
    case TYPE_INTEGER:
        return type_decimal(10, 0);
    case TYPE_BIGINT:
        return type_decimal(19, 0);
    default:
        return exact;
    }
}

/* Digits before the point come first: the many behind the point that quotients have give way to
 * them, but 18 stay. */
struct type decimal_common(struct type a, struct type b) {
    i32 whole = MAX_OF(a.precision - a.scale, b.precision - b.scale);
    i32 scale = MAX_OF(a.scale, b.scale);
    scale = MIN_OF(scale, MAX_OF(DECIMAL_DIGITS_MAX - whole, COMMON_SCALE));
    return type_decimal(MIN_OF(MAX_OF(whole + scale, 1), DECIMAL_DIGITS_MAX), scale);
}

/* A number as written. */
struct digits {
    i128 value;
    i32 scale;
    b8 is_integer; /* neither point nor exponent */
    b8 too_long;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool push_digit(struct digits *d, char c) {
    if (d->value > (I128_MAX - 9) / 10 || d->value < (I128_MIN + 9) / 10) {
        d->too_long = 1;
        return false;
    }
    d->value = d->value * 10 + (c - '0');
    return true;
}

/* Digits and one point; leaves *io_at behind them. False when there is no digit at all. */
static bool read_mantissa(struct sv s, i64 *io_at, struct digits *out) {
    i64 at = *io_at;
    bool any = false;
    bool point = false;
    for (; at < s.len; at++) {
        char c = s.ptr[at];
        if (c == '.' && !point) {
            point = true;
            out->is_integer = 0;
        } else if (is_digit(c)) {
            any = true;
            if (push_digit(out, c) && point) {
                out->scale++;
            }
        } else {
            break;
        }
    }
    *io_at = at;
    return any;
}

static bool read_exponent(struct sv s, i64 *io_at, i32 *out) {
    i64 at = *io_at + 1;
    bool minus = at < s.len && s.ptr[at] == '-';
    at += at < s.len && (s.ptr[at] == '-' || s.ptr[at] == '+');
    if (at >= s.len || !is_digit(s.ptr[at])) {
        return false;
    }
    i32 value = 0;
    for (; at < s.len && is_digit(s.ptr[at]); at++) {
        value = MIN_OF(value * 10 + (s.ptr[at] - '0'), 100000);
    }
    *out = minus ? -value : value;
    *io_at = at;
    return true;
}

static struct sv trimmed(struct sv s) {
    while (s.len > 0 && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r'))) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 &&
           (s.ptr[s.len - 1] == ' ' || (s.ptr[s.len - 1] >= '\t' && s.ptr[s.len - 1] <= '\r'))) {
        s.len--;
    }
    return s;
}

/* Moves the point; a number of more than 38 digits is too long. */
static void apply_exponent(struct digits *d, i32 exponent) {
    d->scale -= exponent;
    while (d->scale < 0 && !d->too_long) {
        if (d->value == 0) {
            d->scale = 0;
        } else if (push_digit(d, '0')) {
            d->scale++;
        }
    }
    i128 most = pow10_i128(DECIMAL_DIGITS_MAX);
    if (d->scale > DECIMAL_DIGITS_MAX || d->value >= most || d->value <= -most) {
        d->too_long = 1;
    }
}

/* False: not a number. */
static bool read_digits(struct sv text, struct digits *out) {
    struct sv s = trimmed(text);
    *out = (struct digits){.is_integer = 1};
    bool minus = s.len > 0 && s.ptr[0] == '-';
    i64 at = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+');
    i32 exponent = 0;
    if (!read_mantissa(s, &at, out)) {
        return false;
    }
    if (at < s.len && (s.ptr[at] == 'e' || s.ptr[at] == 'E')) {
        out->is_integer = 0;
        if (!read_exponent(s, &at, &exponent)) {
            return false;
        }
    }
    if (at != s.len) {
        return false;
    }
    if (!out->too_long) {
        apply_exponent(out, exponent);
    }
    if (minus) {
        out->value = -out->value;
    }
    return true;
}

static i32 digit_count(i128 value) {
    i32 count = 1;
    while (count < DECIMAL_DIGITS_MAX &&
           (value >= pow10_i128(count) || value <= -pow10_i128(count))) {
        count++;
    }
    return count;
}

static struct expr *decimal_literal(struct typing *t, const struct digits *d, i32 position) {
    i32 precision = MAX_OF(digit_count(d->value), MAX_OF(d->scale, 1));
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_decimal(precision, d->scale), position);
    const_set_exact(expr, d->value);
    return expr;
}

static wf_status too_long(struct typing *t, i32 position) {
    FAIL_AT(t->err, OUT_OF_RANGE, position, "a number can have at most %d digits",
            (int)DECIMAL_DIGITS_MAX);
}

/* 1e300 is no decimal of ours; written with an exponent it is clearly meant as a double. */
static wf_status wide_number(struct typing *t, const char *text, i32 position, struct expr **out) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_DOUBLE), position);
    if (!strpbrk(text, "eE") || value_parse_f64(sv_from(text), &expr->value.f64) != FAULT_NONE) {
        return too_long(t, position);
    }
    *out = expr;
    return ERR_OK;
}

FALLIBLE literal_number(struct typing *t, const char *text, i32 position, struct expr **out) {
    struct digits d;
    if (!read_digits(sv_from(text), &d)) {
        FAIL_AT(t->err, SYNTAX, position, "invalid number \"%.100s\"", text);
    }
    if (d.too_long) {
        return wide_number(t, text, position, out);
    }
    if (!d.is_integer || d.value > I64_MAX || d.value < I64_MIN) {
        *out = decimal_literal(t, &d, position);
        return ERR_OK;
    }
    bool small = d.value <= I32_MAX && d.value >= I32_MIN;
    struct type type = type_of(small ? TYPE_INTEGER : TYPE_BIGINT);
    *out = expr_new(t->arena, EXPR_CONST, type, position);
    const_set_exact(*out, d.value);
    return ERR_OK;
}

static wf_status bad_literal(struct typing *t, struct sv text, struct type type, wf_status code,
                             i32 position) {
    char name[32];
    type_print(type_of((enum type_id)type.id), name);
    int shown = (int)MIN_OF(text.len, 100);
    if (code == ERR_OUT_OF_RANGE) {
        return error_set(t->err, code, position, "value \"%.*s\" is out of range for type %s",
                         shown, text.ptr, name);
    }
    if (code == ERR_INTERVAL_OVERFLOW) {
        return error_set(t->err, code, position, "interval field value out of range: \"%.*s\"",
                         shown, text.ptr);
    }
    if (code == ERR_DATETIME_OVERFLOW) {
        return error_set(t->err, code, position, "date/time field value out of range: \"%.*s\"",
                         shown, text.ptr);
    }
    return error_set(t->err, code, position, "invalid input syntax for type %s: \"%.*s\"", name,
                     shown, text.ptr);
}

static FALLIBLE read_decimal(struct typing *t, const struct expr *literal, struct expr **out) {
    struct digits d;
    if (!read_digits(sv_of(literal->value.str), &d)) {
        return bad_literal(t, sv_of(literal->value.str), type_of(TYPE_DECIMAL), ERR_INVALID_TEXT,
                           literal->position);
    }
    if (d.too_long) {
        return too_long(t, literal->position);
    }
    *out = decimal_literal(t, &d, literal->position);
    return ERR_OK;
}

/* Text as bytes, in the arena. */
static u8 read_bytes(struct typing *t, struct sv text, struct expr *out) {
    u8 *bytes = arena_alloc(t->arena, text.len + 1);
    i64 len = 0;
    u8 fault = value_parse_bytes(text, bytes, &len);
    out->value.str = str_from((struct sv){(const char *)bytes, fault ? 0 : len});
    return fault;
}

static struct sv without_blanks(struct sv s) {
    while (s.len > 0 && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    return s;
}

/* An unknown literal's text as a value of `type`, whose length, if any, is for the caller to see
 * to.
 */
static FALLIBLE read_literal(struct typing *t, const struct expr *literal, struct type type,
                             struct expr **out) {
    if (type.id == TYPE_DECIMAL) {
        return read_decimal(t, literal, out);
    }
    struct sv text = sv_of(literal->value.str);
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type, literal->position);
    expr->type.length = type.id == TYPE_INTERVAL ? type.length : 0;
    *out = expr;
    if (type_is_string(type)) {
        expr->value.str = str_from(type.id == TYPE_CHAR ? without_blanks(text) : text);
        return ERR_OK;
    }
    u8 fault = type.id == TYPE_BLOB ? read_bytes(t, text, expr)
                                    : value_parse(type, text, (struct when){0}, &expr->value);
    if (fault != FAULT_NONE) {
        return bad_literal(t, text, type, fault_error(fault), literal->position);
    }
    bool clock = type_category(type) == 'D' && value_names_clock(text);
    if (type.id == TYPE_TIMESTAMPTZ || clock) { /* which moment is known when the plan runs */
        struct expr *string = expr_new(t->arena, EXPR_CONST, type_of(TYPE_TEXT), literal->position);
        string->value = literal->value;
        *out = expr_many(t, EXPR_CAST, type, literal->position, 1, &string);
        const struct when *now = t->moment ? t->moment(t->moment_arg, literal, type) : NULL;
        if (now && !value_parse(type, text, *now, &expr->value)) {
            *out = expr;
        }
    }
    return ERR_OK;
}

/* A parameter compared with a decimal may well have more digits than the column. It is an interval
 * of all fields, whatever those of its place are. */
static struct type param_type(struct type like) {
    if (like.id == TYPE_INTERVAL) {
        return type_of(TYPE_INTERVAL);
    }
    if (like.id != TYPE_DECIMAL) {
        return like;
    }
    enum { PARAM_SCALE = 6 };
    i32 scale = MAX_OF(like.scale, PARAM_SCALE);
    bool fits = like.precision - like.scale + scale <= PARAM_DIGITS;
    return type_decimal(fits ? PARAM_DIGITS : DECIMAL_DIGITS_MAX, scale);
}

/* A literal, NULL or parameter without a type as a value of `like`, its digits and fields included.
 */
static FALLIBLE read_as(struct typing *t, struct expr *expr, struct type like, struct expr **out) {
    struct type type = like.id == TYPE_UNKNOWN ? type_of(TYPE_TEXT) : like;
    *out = expr;
    if (!is_unknown(expr)) {
        return ERR_OK;
    }
    if (expr->kind == EXPR_PARAM) {
        struct type *known = &t->param_types[expr->param];
        if (known->id == TYPE_UNKNOWN) {
            *known = param_type(type);
        }
        *out = expr_new(t->arena, EXPR_PARAM, *known, expr->position);
        (*out)->param = expr->param;
        return ERR_OK;
    }
    if (expr->kind != EXPR_CONST) {
        FAIL_AT(t->err, INDETERMINATE_TYPE, expr->position, "the type cannot be determined");
    }
    if (expr->is_null) {
        *out = expr_null(t, type, expr->position);
        return ERR_OK;
    }
    return read_literal(t, expr, type, out);
}

struct type type_handed_on(struct type type) {
    bool kept = type.id == TYPE_DECIMAL || type.id == TYPE_CHAR;
    return kept ? type : type_of((enum type_id)type.id);
}

i64 char_count(struct sv s) {
    i64 count = 0;
    for (i64 i = 0; i < s.len; i++) {
        count += ((u8)s.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

static bool fits_in(const struct expr *literal, struct type type) {
    return char_count(without_blanks(sv_of(literal->value.str))) <= type.length;
}

/* What stands beside a varchar(3) or a timestamp(0) is no shorter for that. A char(n) keeps its
 * length, and so its blanks, beside literals that have room in it. */
FALLIBLE coerce_unknown(struct typing *t, struct expr *expr, struct type like, struct expr **out) {
    bool literal = is_unknown(expr) && expr->kind == EXPR_CONST;
    if (literal && like.id == TYPE_CHAR && (expr->is_null || fits_in(expr, like))) {
        TRY(read_as(t, expr, like, out));
        (*out)->type = like;
        return ERR_OK;
    }
    return read_as(t, expr, like.id == TYPE_DECIMAL ? like : type_of((enum type_id)like.id), out);
}

/* Rounds half away from zero; false when the result has too many digits. */
static bool rescale(i128 *io_value, i32 from, i32 to) {
    if (to >= from) {
        i128 factor = pow10_i128(to - from);
        if (*io_value > I128_MAX / factor || *io_value < I128_MIN / factor) {
            return false;
        }
        *io_value *= factor;
        return true;
    }
    i128 factor = pow10_i128(from - to);
    i128 rest = *io_value % factor;
    *io_value /= factor;
    if (rest >= factor - rest && rest > 0) {
        ++*io_value;
    }
    if (-rest >= factor + rest && rest < 0) {
        --*io_value;
    }
    return true;
}

static bool exact_to_exact(const struct expr *from, struct expr *to) {
    i128 value = const_exact(from);
    i32 from_scale = from->type.id == TYPE_DECIMAL ? from->type.scale : 0;
    i32 to_scale = to->type.id == TYPE_DECIMAL ? to->type.scale : 0;
    if (!rescale(&value, from_scale, to_scale) ||
        !range_within(range_of_value(value), range_of_type(to->type))) {
        return false;
    }
    const_set_exact(to, value);
    return true;
}

/* Through its text, so that the nearest float is found whatever the scale. */
static bool exact_to_float(const struct expr *from, struct expr *to) {
    char buf[128];
    i32 len = value_print(from->type, type_kind(from->type), &from->value, buf);
    return value_parse(to->type, (struct sv){buf, len}, (struct when){0}, &to->value) == FAULT_NONE;
}

/* A constant as another type; false when that could fail or is left to run time. */
static bool const_convert(const struct expr *from, struct expr *to) {
    if (type_is_exact(from->type) && type_is_exact(to->type)) {
        return exact_to_exact(from, to);
    }
    if (type_is_exact(from->type) && type_is_float(to->type)) {
        return exact_to_float(from, to);
    }
    if (type_eq(to->type, type_of(TYPE_INTERVAL)) && from->type.id == TYPE_INTERVAL) {
        to->value = from->value; /* all fields it has */
        return true;
    }
    if (from->type.id == TYPE_REAL && to->type.id == TYPE_DOUBLE) {
        to->value.f64 = (f64)from->value.f32;
        return true;
    }
    return false;
}

FALLIBLE coerce_to(struct typing *t, struct expr *expr, struct type to, struct expr **out) {
    TRY(read_as(t, expr, to, &expr));
    *out = expr;
    bool no_shorter = type_is_string(to) && expr->type.id == to.id && to.length == 0;
    if (type_eq(expr->type, to) || no_shorter) {
        return ERR_OK;
    }
    if (expr->kind == EXPR_CONST) {
        *out = expr_null(t, to, expr->position);
        (*out)->is_null = expr->is_null;
        if (expr->is_null || const_convert(expr, *out)) {
            return ERR_OK;
        }
    }
    *out = expr_new(t->arena, EXPR_CAST, to, expr->position);
    (*out)->arg_count = 1;
    (*out)->args = NEW_ARRAY(t->arena, struct expr *, 1);
    (*out)->args[0] = expr;
    return ERR_OK;
}

/* A literal written for a type of its own: what does not fit is an error at once. */
static FALLIBLE coerce_literal(struct typing *t, struct expr *expr, struct type to,
                               struct expr **out) {
    bool literal = is_unknown(expr) && expr->kind == EXPR_CONST && !expr->is_null;
    TRY(coerce_to(t, expr, to, out));
    if (literal && (*out)->kind == EXPR_CAST && to.id == TYPE_DECIMAL) {
        char name[32];
        FAIL_AT(t->err, OUT_OF_RANGE, expr->position, "value \"%.*s\" does not fit %s",
                (int)MIN_OF(expr->value.str.len, 100), sv_of(expr->value.str).ptr,
                type_print(to, name));
    }
    return ERR_OK;
}

static i32 numeric_rank(struct type t) {
    switch (t.id) {
    case TYPE_SMALLINT:
        return 1;
    case TYPE_INTEGER:
        return 2;
    case TYPE_BIGINT:
        return 3;
    case TYPE_DECIMAL:
        return 4;
    case TYPE_REAL:
        return 5;
    case TYPE_DOUBLE:
        return 6;
    default:
        return 0;
    }
}

/* How one type comes to another: i by itself, a in assignments, e by a written cast, - not at all.
 * Rows are from, columns to, in the order of type.def. */
static const char *const casts[TYPE_COUNT] = {
    /*               ?B24LNRFDtcTZMIxu */
    [TYPE_UNKNOWN] = "iiiiiiiiiiiiiiiii",     [TYPE_BOOLEAN] = "-i-e-----aa------",
    [TYPE_SMALLINT] = "--iiiiii-aa------",    [TYPE_INTEGER] = "-eaiiiii-aa------",
    [TYPE_BIGINT] = "--aaiiii-aa------",      [TYPE_DECIMAL] = "--aaaiii-aa------",
    [TYPE_REAL] = "--aaaaii-aa------",        [TYPE_DOUBLE] = "--aaaaai-aa------",
    [TYPE_DATE] = "--------iaaii----",        [TYPE_TEXT] = "-eeeeeeeeiieeeeee",
    [TYPE_CHAR] = "-eeeeeeeeiieeeeee",        [TYPE_TIMESTAMP] = "--------aaaiia---",
    [TYPE_TIMESTAMPTZ] = "--------aaaaia---", [TYPE_TIME] = "---------aa--ii--",
    [TYPE_INTERVAL] = "---------aa--ai--",    [TYPE_BLOB] = "---------aa----i-",
    [TYPE_UUID] = "---------aa-----i",
};

bool coerce_allowed(struct type from, struct type to, enum coercion how) {
    char cast = casts[from.id][to.id];
    return cast == 'i' || (cast == 'a' && how != COERCE_IMPLICIT) ||
           (cast == 'e' && how == COERCE_EXPLICIT);
}

/* decimal without (p,s): the source decides, where it can. */
static FALLIBLE open_decimal(struct typing *t, struct expr *expr, i32 position, struct type *out) {
    if (expr->kind == EXPR_PARAM && is_unknown(expr)) {
        *out = type_decimal(DECIMAL_DIGITS_MAX, 10);
        return ERR_OK;
    }
    if (is_unknown(expr) && !expr->is_null) {
        struct expr *read = NULL;
        TRY(read_decimal(t, expr, &read));
        *out = read->type;
        return ERR_OK;
    }
    *out = is_unknown(expr) ? type_decimal(1, 0) : decimal_of(expr->type);
    if (out->id == TYPE_DECIMAL) {
        return ERR_OK;
    }
    if (type_is_string(expr->type) || type_is_numeric(expr->type)) { /* as a quotient has */
        *out = type_decimal(DECIMAL_DIGITS_MAX, DECIMAL_OPEN_SCALE);
        return ERR_OK;
    }
    char name[32];
    wf_status status = error_set(t->err, ERR_NOT_SUPPORTED, position,
                                 "not supported yet: a cast from %s to decimal without (p,s)",
                                 type_print(expr->type, name));
    error_hint(t->err, "Say how many digits: decimal(18,3).");
    return status;
}

FALLIBLE coerce_cast(struct typing *t, struct expr *expr, const struct type_name *to, i32 position,
                     struct expr **out) {
    struct type type = to->type;
    bool literal = is_unknown(expr) && expr->kind == EXPR_CONST;
    char from_name[32];
    char to_name[32];
    if (!coerce_allowed(expr->type, type, COERCE_EXPLICIT)) {
        FAIL_AT(t->err, CANNOT_COERCE, position, "cannot cast type %s to %s",
                type_print(expr->type, from_name), type_print(type, to_name));
    }
    if (to->open_decimal) {
        TRY(open_decimal(t, expr, position, &type));
    }
    if (type.id == TYPE_INTERVAL && literal) {
        return read_as(t, expr, type, out);
    }
    if (type.id == TYPE_BLOB) { /* the blanks of char(n) are bytes */
        TRY(coerce_padded(t, expr, &expr));
    }
    TRY(coerce_literal(t, expr, type, out));
    if ((*out)->kind == EXPR_CAST && position >= 0) {
        (*out)->position = position;
    }
    return ERR_OK;
}

/* To varchar(n) or char(n) of a column: longer text is an error, not cut. */
static FALLIBLE coerce_fitted(struct typing *t, struct expr *expr, struct type to,
                              struct expr **out) {
    struct type base = type_of((enum type_id)to.id);
    TRY(coerce_to(t, expr, base, out));
    if (expr->type.id == to.id && expr->type.length && expr->type.length <= to.length) {
        return ERR_OK;
    }
    *out = scalar_call(t, FUNC_FIT, expr->position, 2, *out,
                       expr_int(t, (i32)to.length, expr->position));
    (*out)->type = to;
    return ERR_OK;
}

FALLIBLE coerce_assign(struct typing *t, struct expr *expr, const char *column, struct type to,
                       struct expr **out) {
    if (!coerce_allowed(expr->type, to, COERCE_ASSIGN)) {
        char from_name[32];
        char to_name[32];
        error_set(t->err, ERR_DATATYPE_MISMATCH, expr->position,
                  "column \"%.100s\" is of type %s but expression is of type %s", column,
                  type_print(to, to_name), type_print(expr->type, from_name));
        error_hint(t->err, "You will need to rewrite or cast the expression.");
        return ERR_DATATYPE_MISMATCH;
    }
    if (type_is_string(to) && to.length) {
        return coerce_fitted(t, expr, to, out);
    }
    return coerce_literal(t, expr, to, out);
}

FALLIBLE coerce_condition(struct typing *t, struct expr *expr, const char *clause,
                          struct expr **out) {
    TRY(coerce_unknown(t, expr, type_of(TYPE_BOOLEAN), out));
    if ((*out)->type.id != TYPE_BOOLEAN) {
        char name[32];
        FAIL_AT(t->err, DATATYPE_MISMATCH, expr->position,
                "argument of %s must be type boolean, not type %s", clause,
                type_print((*out)->type, name));
    }
    return ERR_OK;
}

/* Types that are not numbers: the same, or the one the other comes to by itself. */
static bool compared_others(struct type a, struct type b, struct type *out) {
    if (type_eq(a, b)) {
        return true;
    }
    *out = type_of((enum type_id)a.id);
    if (a.id == b.id) {
        return true;
    }
    if (type_is_string(a) && type_is_string(b)) { /* blanks at the end of varchar(n) do not count */
        struct type other = a.id == TYPE_CHAR ? b : a;
        *out = type_of(other.length ? TYPE_CHAR : TYPE_TEXT);
        return true;
    }
    bool times = type_category(a) == 'D' && type_category(b) == 'D';
    if (times && coerce_allowed(a, b, COERCE_IMPLICIT)) {
        *out = type_of((enum type_id)b.id);
        return true;
    }
    return times && coerce_allowed(b, a, COERCE_IMPLICIT);
}

bool coerce_compared(struct type a, struct type b, struct type *out) {
    *out = a;
    if (!type_is_numeric(a) || !type_is_numeric(b)) {
        return compared_others(a, b, out);
    }
    if (type_is_float(a) || type_is_float(b)) {
        *out = type_of(a.id == TYPE_REAL && b.id == TYPE_REAL ? TYPE_REAL : TYPE_DOUBLE);
    } else if (a.id == TYPE_DECIMAL || b.id == TYPE_DECIMAL) {
        *out = decimal_common(decimal_of(a), decimal_of(b));
    } else {
        *out = numeric_rank(a) >= numeric_rank(b) ? a : b;
    }
    return true;
}

/* As in PostgreSQL's UNION: integers and decimals beside a real become real. */
static bool listed_together(struct type a, struct type b, struct type *out) {
    bool one_real = (a.id == TYPE_REAL || b.id == TYPE_REAL) && a.id != TYPE_DOUBLE &&
                    b.id != TYPE_DOUBLE && type_is_numeric(a) && type_is_numeric(b);
    bool texts = type_is_string(a) && type_is_string(b) && a.id != b.id;
    if (one_real || texts) {
        *out = type_of(one_real ? TYPE_REAL : TYPE_TEXT);
        return true;
    }
    return coerce_compared(a, b, out);
}

/* The common type of those that have one; TYPE_UNKNOWN when none has. */
static FALLIBLE common_known(struct typing *t, struct expr **exprs, i32 count, const char *what,
                             struct type *out) {
    *out = type_of(TYPE_UNKNOWN);
    for (i32 i = 0; i < count; i++) {
        struct type type = exprs[i]->type;
        if (type.id == TYPE_UNKNOWN) {
            continue;
        }
        struct type both = type;
        if (out->id != TYPE_UNKNOWN && !listed_together(*out, type, &both)) {
            char left[32];
            char right[32];
            FAIL_AT(t->err, DATATYPE_MISMATCH, exprs[i]->position,
                    "%s types %s and %s cannot be matched", what, type_print(*out, left),
                    type_print(type, right));
        }
        *out = both;
    }
    return ERR_OK;
}

FALLIBLE coerce_common(struct typing *t, struct expr **exprs, i32 count, const char *what,
                       struct type *out) {
    TRY(common_known(t, exprs, count, what, out));
    bool known = out->id != TYPE_UNKNOWN;
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_unknown(t, exprs[i], *out, &exprs[i]));
    }
    if (!known) {
        *out = type_of(TYPE_TEXT);
    } else { /* literals bring lengths and digits of their own */
        TRY(common_known(t, exprs, count, what, out));
    }
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_to(t, exprs[i], *out, &exprs[i]));
    }
    return ERR_OK;
}

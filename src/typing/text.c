/* text.c: functions on text whose arguments may be left out, are of any type, or choose among
 * several meanings.
 *
 * Options of regular expressions travel in front of the pattern (see host/bodies.h); concat,
 * concat_ws and format become chains of ||. A char(n) shows its blanks where PostgreSQL passes it
 * on as it is stored (LIKE, octet_length, concat), and loses them elsewhere. */
#include "defs/value.h"
#include "codes/scalar.h"
#include "host/regex.h"
#include "typing/typing_int.h"

static struct expr *join(struct typing *t, struct expr *left, struct expr *right, i32 position) {
    return !left ? right
                 : expr_call(t->arena, FUNC_CONCAT, type_of(TYPE_TEXT), position, 2, left, right);
}

FALLIBLE coerce_padded(struct typing *t, struct expr *expr, struct expr **out) {
    struct type type = expr->type;
    i32 position = expr->position;
    TRY(coerce_to(t, expr, type_of(TYPE_TEXT), out));
    if (type.id == TYPE_CHAR && type.length) {
        *out = scalar_call(t, FUNC_PAD, position, 2, *out, expr_int(t, (i32)type.length, position));
    }
    return ERR_OK;
}

/* length and its kin */

static FALLIBLE text_argument(struct typing *t, const struct call *call, i32 i, struct expr **out) {
    return call_argument(t, call, i, type_of(TYPE_TEXT), out);
}

static FALLIBLE as_scalar(struct typing *t, const struct call *call, struct expr **out) {
    bool found;
    TRY(call_overload(t, call, &found, out));
    return found ? ERR_OK : call_mismatch(t, call);
}

static FALLIBLE call_length(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *arg = call->args[0];
    if (arg->type.id == TYPE_BLOB) {
        struct call bytes = {"octet_length", call->args, 1, call->position, 0};
        return as_scalar(t, &bytes, out);
    }
    TRY(text_argument(t, call, 0, &arg));
    if (call->func == FUNC_OCTET_LENGTH) {
        TRY(coerce_padded(t, call->args[0], &arg));
    }
    *out = expr_call(t->arena, call->func, type_of(TYPE_INTEGER), call->position, 1, arg);
    return ERR_OK;
}

static FALLIBLE call_bit_length(struct typing *t, const struct call *call, struct expr **out) {
    struct call bytes = {"octet_length", call->args, 1, call->position, FUNC_OCTET_LENGTH};
    TRY(call_length(t, &bytes, out));
    return operator_arithmetic(t, FUNC_MUL, *out, expr_int(t, 8, call->position), call->position,
                               out);
}

static FALLIBLE call_case(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *arg = NULL;
    TRY(text_argument(t, call, 0, &arg));
    *out = expr_call(t->arena, call->func, type_of(TYPE_TEXT), call->position, 1, arg);
    return ERR_OK;
}

/* An argument that may be left out: the blank of trims and pads. */
static FALLIBLE call_with_blank(struct typing *t, const struct call *call, struct expr **out) {
    i32 count = (i32)strlen(scalar_infos[call->func].args);
    struct expr *args[3] = {NULL, NULL, expr_text(t, SV(" "), call->position)};
    for (i32 i = 0; i < call->count; i++) {
        args[i] = call->args[i];
    }
    if (call->count < count) {
        args[count - 1] = expr_text(t, SV(" "), call->position);
    }
    struct call whole = {call->name, args, count, call->position, call->func};
    return as_scalar(t, &whole, out);
}

/* regular expressions */

/* The pattern with options before it; `parts` may hold NULLs for those left out. */
static FALLIBLE with_options(struct typing *t, struct expr *pattern, struct expr **parts, i32 count,
                             i32 position, struct expr **out) {
    struct expr *options = expr_text(t, SV("\001"), position);
    bool any = false;
    for (i32 i = 0; i < count; i++) {
        if (i > 0) {
            options = join(t, options, expr_text(t, SV(";"), position), position);
        }
        if (parts[i]) {
            struct expr *text = NULL;
            any = true;
            TRY(coerce_to(t, parts[i], type_of(TYPE_TEXT), &text));
            options = join(t, options, text, position);
        }
    }
    options = join(t, options, expr_text(t, SV("\001"), position), position);
    TRY(coerce_to(t, pattern, type_of(TYPE_TEXT), out));
    *out = any ? join(t, options, *out, position) : *out;
    return ERR_OK;
}

static struct expr *argument_or_null(const struct call *call, i32 i) {
    return i >= 0 && i < call->count ? call->args[i] : NULL;
}

enum { OPTION_FLAGS, OPTION_START, OPTION_NUMBER, OPTION_PART, OPTION_END, OPTION_COUNT };

/* Where each function has its options among its arguments; -1 = it has none. */
static FALLIBLE regex_call(struct typing *t, const struct call *call, const i8 *places,
                           struct expr **out_text, struct expr **out_pattern) {
    struct expr *parts[OPTION_COUNT];
    for (i32 i = 0; i < OPTION_COUNT; i++) {
        parts[i] = argument_or_null(call, places[i]);
        if (parts[i]) {
            struct type type = type_of(i == OPTION_FLAGS ? TYPE_TEXT : TYPE_INTEGER);
            TRY(call_argument(t, call, places[i], type, &parts[i]));
        }
    }
    struct sv flags;
    if (parts[OPTION_FLAGS] && literal_text(parts[OPTION_FLAGS], &flags) &&
        memchr(flags.ptr, 'g', (size_t)flags.len) && strcmp(call->name, "regexp_replace") != 0) {
        FAIL_AT(t->err, INVALID_PARAMETER, parts[OPTION_FLAGS]->position,
                "%s() does not support the \"global\" option", call->name);
    }
    TRY(text_argument(t, call, 0, out_text));
    struct expr *pattern = NULL;
    TRY(text_argument(t, call, 1, &pattern));
    return with_options(t, pattern, parts, OPTION_COUNT, call->position, out_pattern);
}

static FALLIBLE call_regexp_like(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 places[OPTION_COUNT] = {2, -1, -1, -1, -1};
    struct expr *text, *pattern;
    TRY(regex_call(t, call, places, &text, &pattern));
    *out = scalar_call(t, FUNC_REGEX, call->position, 2, text, pattern);
    return ERR_OK;
}

static FALLIBLE call_regexp_count(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 places[OPTION_COUNT] = {3, 2, -1, -1, -1};
    struct expr *text, *pattern;
    TRY(regex_call(t, call, places, &text, &pattern));
    *out = scalar_call(t, FUNC_REGEX_COUNT, call->position, 2, text, pattern);
    return ERR_OK;
}

static FALLIBLE call_regexp_instr(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 places[OPTION_COUNT] = {5, 2, 3, 6, 4};
    struct expr *text, *pattern;
    TRY(regex_call(t, call, places, &text, &pattern));
    *out = scalar_call(t, FUNC_REGEX_INSTR, call->position, 2, text, pattern);
    return ERR_OK;
}

FALLIBLE call_regex_split(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 places[OPTION_COUNT] = {2, -1, -1, -1, -1};
    struct expr *text, *pattern;
    TRY(regex_call(t, call, places, &text, &pattern));
    *out = scalar_call(t, FUNC_REGEX_SPLIT, call->position, 2, text, pattern);
    return ERR_OK;
}

/* What matched, or NULL when nothing did. */
static FALLIBLE matched_part(struct typing *t, struct expr *text, struct expr *pattern,
                             i32 position, struct expr **out) {
    TRY(typing_sharable(t, text));
    TRY(typing_sharable(t, pattern));
    struct expr *where = scalar_call(t, FUNC_REGEX_INSTR, position, 2, text, pattern);
    struct expr *args[3] = {NULL, scalar_call(t, FUNC_REGEX_SUBSTR, position, 2, text, pattern),
                            expr_null(t, type_of(TYPE_TEXT), position)};
    TRY(operator_compare(t, FUNC_GT, where, expr_int(t, 0, position), position, &args[0]));
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_TEXT), position, 3, args);
    return ERR_OK;
}

static FALLIBLE call_regexp_substr(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 places[OPTION_COUNT] = {4, 2, 3, 5, -1};
    struct expr *text, *pattern;
    TRY(regex_call(t, call, places, &text, &pattern));
    return matched_part(t, text, pattern, call->position, out);
}

static FALLIBLE call_regexp_replace(struct typing *t, const struct call *call, struct expr **out) {
    static const i8 by_number[OPTION_COUNT] = {5, 3, 4, -1, -1};
    static const i8 by_flags[OPTION_COUNT] = {3, -1, -1, -1, -1};
    struct expr *text, *pattern, *with;
    bool flags = call->count == 4 && !type_is_integer(call->args[3]->type);
    TRY(regex_call(t, call, flags ? by_flags : by_number, &text, &pattern));
    TRY(text_argument(t, call, 2, &with));
    *out = scalar_call(t, FUNC_REGEX_REPLACE, call->position, 3, text, pattern, with);
    return ERR_OK;
}

/* substring(x from pattern): the first parenthesised part, else the whole match. */
static FALLIBLE regex_substring(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *text, *pattern;
    struct expr *parts[OPTION_COUNT] = {NULL};
    TRY(text_argument(t, call, 0, &text));
    TRY(text_argument(t, call, 1, &pattern));
    if (call->count == 3) { /* SIMILAR pattern ESCAPE escape */
        struct expr *escape;
        TRY(text_argument(t, call, 2, &escape));
        pattern = scalar_call(t, FUNC_SIMILAR_REGEX, call->position, 2, pattern, escape);
    }
    parts[OPTION_PART] = expr_int(t, REGEX_FIRST_PART, call->position);
    TRY(with_options(t, pattern, parts, OPTION_COUNT, call->position, &pattern));
    return matched_part(t, text, pattern, call->position, out);
}

/* More characters than any text has from any position on. */
static struct expr *to_the_end(struct typing *t, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_BIGINT), position);
    expr->value.i64 = (i64)1 << 40;
    return expr;
}

static FALLIBLE call_substring(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[3] = {NULL};
    struct sv literal;
    bool quoted = literal_text(call->args[1], &literal) && strcmp(call->name, "substring") == 0;
    bool bytes = call->args[0]->type.id == TYPE_BLOB;
    if (bytes && call->count == 3) {
        struct call whole = {"substring", call->args, 3, call->position, 0};
        return as_scalar(t, &whole, out);
    }
    bool escaped = call->count == 3 && strcmp(call->name, "substring") == 0 &&
                   is_unknown(call->args[1]) &&
                   literal_text(call->args[2], &literal); /* SIMILAR NULL ESCAPE '#' */
    bool numbered = call->count == 3 && type_is_integer(call->args[2]->type); /* FROM '1' FOR 2 */
    if (!bytes && ((quoted && !numbered) || escaped || type_is_string(call->args[1]->type))) {
        return regex_substring(t, call, out);
    }
    TRY(bytes ? coerce_to(t, call->args[0], type_of(TYPE_BLOB), &args[0])
              : text_argument(t, call, 0, &args[0]));
    args[2] = to_the_end(t, call->position);
    for (i32 i = 1; i < call->count; i++) {
        TRY(call_argument(t, call, i, type_of(TYPE_INTEGER), &args[i]));
    }
    struct type text = type_of(TYPE_TEXT);
    *out = bytes ? scalar_call(t, FUNC_SUBSTR_X, call->position, 3, args[0], args[1], args[2])
                 : expr_call(t->arena, FUNC_SUBSTRING, text, call->position, 3, args[0], args[1],
                             args[2]);
    return ERR_OK;
}

static FALLIBLE of_bytes(struct typing *t, const char *name, i32 count, struct expr **args,
                         i32 position, struct expr **out) {
    struct call call = {name, args, count, position, 0};
    return as_scalar(t, &call, out);
}

static FALLIBLE overlay_bytes(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[4] = {NULL};
    i32 position = call->position;
    for (i32 i = 0; i < call->count; i++) {
        TRY(call_argument(t, call, i, type_of(i < 2 ? TYPE_BLOB : TYPE_INTEGER), &args[i]));
        TRY(typing_sharable(t, args[i]));
    }
    if (!args[3]) {
        TRY(of_bytes(t, "length", 1, &args[1], position, &args[3]));
    }
    struct expr *one = expr_int(t, 1, position), *before = NULL, *behind = NULL;
    TRY(operator_arithmetic(t, FUNC_SUB, args[2], one, position, &before));
    TRY(operator_arithmetic(t, FUNC_ADD, args[2], args[3], position, &behind));
    struct expr *head[3] = {args[0], one, before};
    struct expr *tail[3] = {args[0], behind, expr_int(t, I32_MAX, position)};
    struct expr *all[2] = {NULL, args[1]};
    TRY(of_bytes(t, "substring", 3, head, position, &all[0]));
    TRY(of_bytes(t, "||", 2, all, position, &all[0]));
    TRY(of_bytes(t, "substring", 3, tail, position, &all[1]));
    return of_bytes(t, "||", 2, all, position, out);
}

/* overlay(a placing b from n for m): what is before n, b, what is behind the m characters. */
static FALLIBLE call_overlay(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[4] = {NULL};
    i32 position = call->position;
    if (call->args[0]->type.id == TYPE_BLOB) {
        return overlay_bytes(t, call, out);
    }
    for (i32 i = 0; i < call->count; i++) {
        TRY(call_argument(t, call, i, type_of(i < 2 ? TYPE_TEXT : TYPE_INTEGER), &args[i]));
        TRY(typing_sharable(t, args[i]));
    }
    if (!args[3]) {
        args[3] = expr_call(t->arena, FUNC_LENGTH, type_of(TYPE_INTEGER), position, 1, args[1]);
    }
    struct expr *one = expr_int(t, 1, position), *before = NULL, *behind = NULL;
    TRY(coerce_to(t, args[2], type_of(TYPE_BIGINT), &before));
    TRY(operator_arithmetic(t, FUNC_SUB, before, one, position, &before));
    TRY(operator_arithmetic(t, FUNC_ADD, args[2], args[3], position, &behind));
    struct type text = type_of(TYPE_TEXT);
    struct expr *head =
        expr_call(t->arena, FUNC_SUBSTRING, text, position, 3, args[0], one, before);
    struct expr *tail = expr_call(t->arena, FUNC_SUBSTRING, text, position, 3, args[0], behind,
                                  to_the_end(t, position));
    *out = join(t, join(t, head, args[1], position), tail, position);
    return ERR_OK;
}

/* A value as PostgreSQL's output shows it, which is its cast to text except for booleans. */
static FALLIBLE output_text(struct typing *t, struct expr *arg, struct expr **out) {
    if (arg->type.id != TYPE_BOOLEAN) {
        return coerce_padded(t, arg, out);
    }
    i32 position = arg->position;
    TRY(typing_sharable(t, arg));
    struct expr *args[5] = {arg, expr_text(t, SV("t"), position),
                            expr_one(t, EXPR_NOT, arg, position), expr_text(t, SV("f"), position),
                            expr_null(t, type_of(TYPE_TEXT), position)};
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_TEXT), position, 5, args);
    return ERR_OK;
}

/* Text of any argument, with NULL as `none`. */
static FALLIBLE text_or(struct typing *t, struct expr *arg, struct expr *none, i32 position,
                        struct expr **out) {
    TRY(output_text(t, arg, out));
    if (typing_nullable(t, *out)) {
        *out = expr_call(t->arena, FUNC_COALESCE, type_of(TYPE_TEXT), position, 2, *out, none);
    }
    return ERR_OK;
}

/* concat(a, …) takes NULL for empty text. */
static FALLIBLE call_concat(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *all = NULL;
    for (i32 i = 0; i < call->count; i++) {
        struct expr *arg = NULL;
        TRY(text_or(t, call->args[i], expr_text(t, SV(""), call->position), call->position, &arg));
        all = join(t, all, arg, call->position);
    }
    *out = all;
    return ERR_OK;
}

/* Every argument that is not NULL after the separator; then the first separator is cut off. */
static FALLIBLE call_concat_ws(struct typing *t, const struct call *call, struct expr **out) {
    i32 position = call->position;
    struct expr *separator = NULL, *all = NULL, *start = NULL;
    struct expr *empty = expr_text(t, SV(""), position);
    struct type text = type_of(TYPE_TEXT);
    TRY(text_argument(t, call, 0, &separator));
    TRY(typing_sharable(t, separator));
    for (i32 i = 1; i < call->count; i++) {
        struct expr *arg = NULL;
        TRY(output_text(t, call->args[i], &arg));
        TRY(typing_sharable(t, arg));
        struct expr *args[3] = {expr_one(t, EXPR_IS_NULL, arg, position), empty,
                                join(t, separator, arg, position)};
        all = join(t, all, expr_many(t, EXPR_CASE, text, position, 3, args), position);
    }
    struct expr *length =
        expr_call(t->arena, FUNC_LENGTH, type_of(TYPE_INTEGER), position, 1, separator);
    TRY(operator_arithmetic(t, FUNC_ADD, length, expr_int(t, 1, position), position, &start));
    *out = all ? expr_call(t->arena, FUNC_SUBSTRING, text, position, 3, all, start,
                           to_the_end(t, position))
               : empty;
    return ERR_OK;
}

static FALLIBLE call_quote_nullable(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *arg = NULL;
    TRY(coerce_to(t, call->args[0], type_of(TYPE_TEXT), &arg));
    TRY(typing_sharable(t, arg));
    struct expr *args[3] = {expr_one(t, EXPR_IS_NULL, arg, call->position),
                            expr_text(t, SV("NULL"), call->position),
                            scalar_call(t, FUNC_QUOTE_LITERAL, call->position, 1, arg)};
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_TEXT), call->position, 3, args);
    return ERR_OK;
}

static FALLIBLE call_quote_literal(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *arg = NULL;
    TRY(coerce_to(t, call->args[0], type_of(TYPE_TEXT), &arg));
    *out = scalar_call(t, FUNC_QUOTE_LITERAL, call->position, 1, arg);
    return ERR_OK;
}

/* One %… of format(); at is behind the percent sign. */
static i64 read_count(struct sv s, i64 at, i64 *out) {
    *out = 0;
    while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9') {
        *out = MIN_OF(*out * 10 + (s.ptr[at] - '0'), (i64)I32_MAX + 1);
        at++;
    }
    return at;
}

/* With blanks to a width, on the right when `left` is where the text goes. */
static struct expr *padded(struct typing *t, struct expr *text, i64 width, bool left,
                           i32 position) {
    if (width == 0) {
        return text;
    }
    struct type integer = type_of(TYPE_INTEGER);
    struct expr *length = expr_call(t->arena, FUNC_LENGTH, integer, position, 1, text);
    struct expr *most = expr_call(t->arena, FUNC_GREATEST, integer, position, 2, length,
                                  expr_int(t, (i32)width, position));
    return scalar_call(t, left ? FUNC_RPAD : FUNC_LPAD, position, 3, text, most,
                       expr_text(t, SV(" "), position));
}

static FALLIBLE format_part(struct typing *t, const struct call *call, struct sv s, i64 *io_at,
                            i32 *io_next, struct expr **out) {
    i64 at = *io_at, number = 0, start = at;
    at = read_count(s, at, &number);
    bool place = at > start && at < s.len && s.ptr[at] == '$';
    at = place ? at + 1 : start;
    bool left = at < s.len && s.ptr[at] == '-';
    i64 width = 0;
    at = read_count(s, at + left, &width);
    char kind = at < s.len ? s.ptr[at] : 0;
    i32 index = place ? (i32)number : (*io_next)++;
    *io_next = place ? (i32)number + 1 : *io_next;
    *io_at = at + 1;
    if (width > I32_MAX || number > I32_MAX) {
        FAIL_AT(t->err, OUT_OF_RANGE, call->position, "number in a format() template out of range");
    }
    if (!kind || !strchr("sIL", kind)) {
        FAIL_AT(t->err, INVALID_PARAMETER, call->position,
                "unrecognized or unterminated format() type specifier");
    }
    if (index < 1 || index >= call->count) {
        FAIL_AT(t->err, INVALID_PARAMETER, call->position, "too few arguments for format()");
    }
    struct call one = {"format", &call->args[index], 1, call->position, 0};
    if (kind == 'L') {
        TRY(call_quote_nullable(t, &one, out));
        *out = padded(t, *out, width, left, call->position);
        return ERR_OK;
    }
    const char *none = kind == 'I' ? NO_NAME : "";
    TRY(text_or(t, call->args[index], expr_text(t, sv_from(none), call->position), call->position,
                out));
    if (kind == 'I') {
        *out = scalar_call(t, FUNC_QUOTE_NAME, call->position, 1, *out);
    }
    *out = padded(t, *out, width, left, call->position);
    return ERR_OK;
}

/* A template known when rows are: the arguments are handed over as one text in parts. */
static FALLIBLE format_late(struct typing *t, const struct call *call, struct expr **out) {
    i32 position = call->position;
    struct expr *template = NULL, *all = expr_text(t, SV(""), position);
    TRY(text_argument(t, call, 0, &template));
    for (i32 i = 1; i < call->count; i++) {
        struct expr *part = NULL;
        TRY(text_or(t, call->args[i], expr_text(t, SV("\xfe"), position), position, &part));
        all = i > 1 ? join(t, all, expr_text(t, SV("\xff"), position), position) : all;
        all = i > 1 ? join(t, all, part, position) : part;
    }
    *out = scalar_call(t, FUNC_PRINT, position, 3, template, all,
                       expr_int(t, call->count - 1, position));
    return ERR_OK;
}

static FALLIBLE call_format(struct typing *t, const struct call *call, struct expr **out) {
    struct sv s;
    if (!literal_text(call->args[0], &s) || memchr(s.ptr, '*', (size_t)s.len)) {
        return format_late(t, call, out);
    }
    struct expr *all = NULL;
    i32 next = 1;
    for (i64 at = 0; at < s.len;) {
        const char *percent = memchr(s.ptr + at, '%', (size_t)(s.len - at));
        i64 end = percent ? percent - s.ptr : s.len;
        if (end > at) {
            struct sv piece = {s.ptr + at, end - at};
            all = join(t, all, expr_text(t, piece, call->position), call->position);
        }
        at = end + 1;
        if (percent && at < s.len && s.ptr[at] == '%') {
            all = join(t, all, expr_text(t, SV("%"), call->position), call->position);
            at++;
        } else if (percent) {
            struct expr *part = NULL;
            TRY(format_part(t, call, s, &at, &next, &part));
            all = join(t, all, part, call->position);
        }
    }
    *out = all ? all : expr_text(t, SV(""), call->position);
    return ERR_OK;
}

/* The digits of a constant template are those of the result's type. */
static FALLIBLE call_to_number(struct typing *t, const struct call *call, struct expr **out) {
    struct sv s;
    i32 whole = 0, scale = 0;
    bool point = false, multiplies = false, quoted = false;
    bool known = literal_text(call->args[1], &s);
    for (i64 i = 0; known && i < s.len; i++) {
        quoted = quoted != (s.ptr[i] == '"');
        bool digit = (s.ptr[i] == '9' || s.ptr[i] == '0') && !quoted;
        bool decimal = point || (multiplies && s.ptr[i] == '9');
        point = point || (!quoted && (s.ptr[i] == '.' || (s.ptr[i] | 32) == 'd'));
        multiplies = multiplies || (!quoted && (s.ptr[i] | 32) == 'v');
        whole += digit && !decimal;
        scale += digit && decimal;
    }
    struct expr *text, *template;
    TRY(text_argument(t, call, 0, &text));
    TRY(text_argument(t, call, 1, &template));
    struct type type = type_decimal(MIN_OF(MAX_OF(whole + scale, 1), DECIMAL_DIGITS_MAX),
                                    MIN_OF(scale, DECIMAL_DIGITS_MAX));
    type = known ? type : type_decimal(DECIMAL_DIGITS_MAX, DECIMAL_OPEN_SCALE);
    *out = expr_call(t->arena, FUNC_TO_NUMBER, type, call->position, 2, text, template);
    return ERR_OK;
}

static bool is_utf8(const struct expr *expr) {
    struct sv name;
    return literal_text(expr, &name) &&
           (sv_eq_nocase(name, SV("utf8")) || sv_eq_nocase(name, SV("utf-8")));
}

/* normalize(a[, form]) and a IS [form] NORMALIZED: a is then its own normal form. */
static FALLIBLE call_normalize(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *text = NULL;
    struct expr *form = expr_text(t, SV("NFC"), call->position);
    TRY(text_argument(t, call, 0, &text));
    if (call->count > 1) {
        TRY(text_argument(t, call, 1, &form));
    }
    *out = scalar_call(t, FUNC_NORMALIZE, call->position, 2, text, form);
    return strcmp(call->name, "is_normalized") == 0
               ? operator_compare(t, FUNC_EQ, *out, text, call->position, out)
               : ERR_OK;
}

static FALLIBLE call_convert(struct typing *t, const struct call *call, struct expr **out) {
    if (!is_utf8(call->args[1])) {
        FAIL_AT(t->err, NOT_SUPPORTED, call->position,
                "not supported yet: an encoding other than UTF8");
    }
    bool from = strcmp(call->name, "convert_from") == 0;
    struct expr *arg = NULL;
    TRY(call_argument(t, call, 0, type_of(from ? TYPE_BLOB : TYPE_TEXT), &arg));
    *out = from ? scalar_call(t, FUNC_CONVERT_FROM, call->position, 1, arg)
                : scalar_call(t, FUNC_SUBSTR_X, call->position, 3, arg,
                              expr_int(t, 1, call->position), expr_int(t, I32_MAX, call->position));
    return ERR_OK;
}

/* num_nulls(a, …), num_nonnulls(a, …). */
static FALLIBLE call_num_nulls(struct typing *t, const struct call *call, struct expr **out) {
    bool nulls = strcmp(call->name, "num_nulls") == 0;
    *out = expr_int(t, 0, call->position);
    for (i32 i = 0; i < call->count; i++) {
        struct expr *is_null = expr_one(t, EXPR_IS_NULL, call->args[i], call->position);
        struct expr *args[3] = {is_null, expr_int(t, nulls, call->position),
                                expr_int(t, !nulls, call->position)};
        struct expr *one = expr_many(t, EXPR_CASE, type_of(TYPE_INTEGER), call->position, 3, args);
        TRY(operator_arithmetic(t, FUNC_ADD, *out, one, call->position, out));
    }
    return ERR_OK;
}

static FALLIBLE call_encoding(struct typing *t, const struct call *call, struct expr **out) {
    *out = expr_text(t, SV("UTF8"), call->position);
    return ERR_OK;
}

static FALLIBLE call_typeof(struct typing *t, const struct call *call, struct expr **out) {
    static const struct {
        u8 type;
        const char *name;
    } others[] = {{TYPE_DECIMAL, "numeric"},
                  {TYPE_CHAR, "character"},
                  {TYPE_TIMESTAMP, "timestamp without time zone"},
                  {TYPE_TIME, "time without time zone"},
                  {TYPE_BLOB, "bytea"}};
    struct type type = call->args[0]->type;
    char word[32];
    const char *name = type_print(type_of((enum type_id)type.id), word);
    for (i64 i = 0; i < COUNT_OF(others); i++) {
        name = others[i].type == type.id ? others[i].name : name;
    }
    name = type.id == TYPE_TEXT && type.length ? "character varying" : name;
    *out = expr_text(t, sv_from(name), call->position);
    return ERR_OK;
}

/* date(x) and its kin are casts. */
static FALLIBLE call_cast(struct typing *t, const struct call *call, struct expr **out) {
    static const struct {
        const char *name;
        u8 type;
    } kinds[] = {{"date", TYPE_DATE},
                 {"text", TYPE_TEXT},
                 {"int2", TYPE_SMALLINT},
                 {"int4", TYPE_INTEGER},
                 {"int8", TYPE_BIGINT},
                 {"float4", TYPE_REAL},
                 {"float8", TYPE_DOUBLE},
                 {"bool", TYPE_BOOLEAN},
                 {"time", TYPE_TIME},
                 {"timestamp", TYPE_TIMESTAMP},
                 {"timestamptz", TYPE_TIMESTAMPTZ},
                 {"interval", TYPE_INTERVAL}};
    struct type type = type_of(TYPE_TEXT);
    for (i64 i = 0; i < COUNT_OF(kinds); i++) {
        type = strcmp(kinds[i].name, call->name) == 0 ? type_of((enum type_id)kinds[i].type) : type;
    }
    struct expr *arg = call->args[0];
    if (call->count == 2) { /* timestamp(date, time) */
        bool fit = arg->type.id == TYPE_DATE && call->args[1]->type.id == TYPE_TIME;
        if (!fit) {
            return call_mismatch(t, call);
        }
        TRY(operator_arithmetic(t, FUNC_ADD, arg, call->args[1], call->position, &arg));
    }
    if (!is_unknown(arg) && !coerce_allowed(arg->type, type, COERCE_EXPLICIT)) {
        return call_mismatch(t, call);
    }
    return coerce_to(t, arg, type, out);
}

static const struct func_entry entries[] = {
    {"num_nulls", 1, 1000, call_num_nulls, FUNC_COALESCE},
    {"num_nonnulls", 1, 1000, call_num_nulls, FUNC_COALESCE},
    {"pg_client_encoding", 0, 0, call_encoding, FUNC_COALESCE},
    {"pg_typeof", 1, 1, call_typeof, FUNC_COALESCE},
    {"date", 1, 1, call_cast, FUNC_COALESCE},
    {"text", 1, 1, call_cast, FUNC_COALESCE},
    {"int2", 1, 1, call_cast, FUNC_COALESCE},
    {"int4", 1, 1, call_cast, FUNC_COALESCE},
    {"int8", 1, 1, call_cast, FUNC_COALESCE},
    {"float4", 1, 1, call_cast, FUNC_COALESCE},
    {"float8", 1, 1, call_cast, FUNC_COALESCE},
    {"bool", 1, 1, call_cast, FUNC_COALESCE},
    {"time", 1, 1, call_cast, FUNC_COALESCE},
    {"timestamp", 1, 2, call_cast, FUNC_COALESCE},
    {"timestamptz", 1, 2, call_cast, FUNC_COALESCE},
    {"interval", 1, 1, call_cast, FUNC_COALESCE},
    {"length", 1, 1, call_length, FUNC_LENGTH},
    {"char_length", 1, 1, call_length, FUNC_LENGTH},
    {"character_length", 1, 1, call_length, FUNC_LENGTH},
    {"octet_length", 1, 1, call_length, FUNC_OCTET_LENGTH},
    {"bit_length", 1, 1, call_bit_length, FUNC_OCTET_LENGTH},
    {"upper", 1, 1, call_case, FUNC_UPPER},
    {"lower", 1, 1, call_case, FUNC_LOWER},
    {"substring", 2, 3, call_substring, FUNC_SUBSTRING},
    {"substr", 2, 3, call_substring, FUNC_SUBSTRING},
    {"concat", 1, 1000, call_concat, FUNC_CONCAT},
    {"concat_ws", 2, 1000, call_concat_ws, FUNC_CONCAT},
    {"ltrim", 1, 2, call_with_blank, FUNC_LTRIM},
    {"rtrim", 1, 2, call_with_blank, FUNC_RTRIM},
    {"btrim", 1, 2, call_with_blank, FUNC_BTRIM},
    {"lpad", 2, 3, call_with_blank, FUNC_LPAD},
    {"rpad", 2, 3, call_with_blank, FUNC_RPAD},
    {"overlay", 3, 4, call_overlay, FUNC_CONCAT},
    {"quote_nullable", 1, 1, call_quote_nullable, FUNC_QUOTE_LITERAL},
    {"quote_literal", 1, 1, call_quote_literal, FUNC_QUOTE_LITERAL},
    {"format", 1, 1000, call_format, FUNC_CONCAT},
    {"to_number", 2, 2, call_to_number, FUNC_TO_NUMBER},
    {"regexp_like", 2, 3, call_regexp_like, FUNC_REGEX},
    {"regexp_count", 2, 4, call_regexp_count, FUNC_REGEX_COUNT},
    {"regexp_instr", 2, 7, call_regexp_instr, FUNC_REGEX_INSTR},
    {"regexp_substr", 2, 6, call_regexp_substr, FUNC_REGEX_SUBSTR},
    {"regexp_replace", 3, 6, call_regexp_replace, FUNC_REGEX_REPLACE},
    {"normalize", 1, 2, call_normalize, FUNC_NORMALIZE},
    {"is_normalized", 1, 2, call_normalize, FUNC_NORMALIZE},
    {"convert_from", 2, 2, call_convert, FUNC_CONVERT_FROM},
    {"convert_to", 2, 2, call_convert, FUNC_SUBSTR_X},
};

const struct func_entry *text_functions(i64 *out_count) {
    *out_count = COUNT_OF(entries);
    return entries;
}

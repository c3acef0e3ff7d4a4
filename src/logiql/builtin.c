/* builtin.c: functions and atoms that are built in: each is an expression of the shared functions.
 *
 * One line of a table each: the name, how many arguments, and what makes an expression of them. */
#include "logiql/bind_int.h"

struct builtin {
    const char *name;
    i32 count;
    FALLIBLE(*make)
    (struct lq_bind *b, struct expr **args, const struct builtin *own, i32 position,
     struct expr **out);
    const char *other; /* the shared function, where that is all */
};

static FALLIBLE shared(struct lq_bind *b, const char *name, struct expr **args, i32 count,
                       i32 position, struct expr **out) {
    struct call call = {.name = name, .args = args, .count = count, .position = position};
    return call_named(b->t, &call, out);
}

static FALLIBLE make_shared(struct lq_bind *b, struct expr **args, const struct builtin *own,
                            i32 position, struct expr **out) {
    return shared(b, own->other, args, own->count, position, out);
}

/* The arguments of mathematics are floats. */
static FALLIBLE make_float(struct lq_bind *b, struct expr **args, const struct builtin *own,
                           i32 position, struct expr **out) {
    for (i32 i = 0; i < own->count; i++) {
        if (!type_is_numeric(args[i]->type) ||
            (class_of(args[i]->type) != CLASS_FLOAT && args[i]->kind != EXPR_CONST)) {
            char name[32];
            FAIL_AT(b->err, DATATYPE_MISMATCH, position, "%s takes float, not %s", own->name,
                    class_name(args[i]->type, name));
        }
        TRY(coerce_to(b->t, args[i], type_of(TYPE_DOUBLE), &args[i]));
    }
    return shared(b, own->other, args, own->count, position, out);
}

static FALLIBLE make_concat(struct lq_bind *b, struct expr **args, const struct builtin *own,
                            i32 position, struct expr **out) {
    UNUSED(own);
    return operator_binary(b->t, "||", args[0], args[1], position, out);
}

/* Counts from 0. */
static FALLIBLE make_substring(struct lq_bind *b, struct expr **args, const struct builtin *own,
                               i32 position, struct expr **out) {
    if (args[1]->kind == EXPR_CONST && type_is_integer(args[1]->type)) {
        struct expr *first = expr_int(b->t, 0, position);
        first->type = type_of(TYPE_BIGINT);
        const_set_exact(first, const_exact(args[1]) + 1);
        args[1] = first;
    } else {
        TRY(operator_binary(b->t, "+", args[1], expr_int(b->t, 1, position), position, &args[1]));
    }
    for (i32 i = 1; i < 3; i++) {
        TRY(coerce_to(b->t, args[i], type_of(TYPE_INTEGER), &args[i]));
    }
    return shared(b, "substr", args, own->count, position, out);
}

FALLIBLE builtin_last_part(struct lq_bind *b, struct expr **args, i32 position, struct expr **out) {
    struct expr *nothing = NULL;
    struct expr *all = NULL, *rest = NULL, *width = NULL, *parts = NULL;
    TRY(coerce_unknown(b->t, expr_text(b->t, SV(""), position), type_of(TYPE_TEXT), &nothing));
    struct expr *without[3] = {args[0], args[1], nothing};
    TRY(shared(b, "replace", without, 3, position, &rest));
    TRY(shared(b, "length", &args[0], 1, position, &all));
    TRY(shared(b, "length", &rest, 1, position, &rest));
    TRY(shared(b, "length", &args[1], 1, position, &width));
    TRY(operator_binary(b->t, "-", all, rest, position, &parts));
    return operator_binary(b->t, "/", parts, width, position, out);
}

/* s, separator, i: part i of the text, from 0; undefined where there are not so many. */
static FALLIBLE make_split(struct lq_bind *b, struct expr **args, const struct builtin *own,
                           i32 position, struct expr **out) {
    struct expr *below = NULL, *beyond = NULL, *parts = NULL, *part = NULL;
    UNUSED(own);
    TRY(builtin_last_part(b, args, position, &parts));
    TRY(operator_compare(b->t, FUNC_LT, args[2], expr_int(b->t, 0, position), position, &below));
    TRY(operator_compare(b->t, FUNC_GT, args[2], parts, position, &beyond));
    TRY(coerce_to(b->t, args[2], type_of(TYPE_INTEGER), &part));
    TRY(operator_binary(b->t, "+", part, expr_int(b->t, 1, position), position, &part));
    struct expr *three[3] = {args[0], args[1], part};
    struct expr *found = NULL;
    TRY(shared(b, "split_part", three, 3, position, &found));
    struct expr *none = expr_null(b->t, type_of(TYPE_TEXT), position);
    struct expr *branches[5] = {below, none, beyond, none, found};
    *out = expr_many(b->t, EXPR_CASE, type_of(TYPE_TEXT), position, 5, branches);
    return ERR_OK;
}

static FALLIBLE make_field(struct lq_bind *b, struct expr **args, const struct builtin *own,
                           i32 position, struct expr **out) {
    struct expr *both[2] = {expr_text(b->t, sv_from(own->other), position), args[0]};
    TRY(shared(b, "extract", both, 2, position, out));
    if ((*out)->kind == EXPR_CAST && type_is_integer((*out)->args[0]->type)) {
        *out = (*out)->args[0]; /* of a date: a whole number before it is made a decimal */
    }
    return coerce_to(b->t, *out, type_of(TYPE_BIGINT), out);
}

static FALLIBLE make_date(struct lq_bind *b, struct expr **args, const struct builtin *own,
                          i32 position, struct expr **out) {
    UNUSED(own);
    UNUSED(position);
    return coerce_to(b->t, args[0], type_of(TYPE_DATE), out);
}

static FALLIBLE make_parse(struct lq_bind *b, struct expr **args, const struct builtin *own,
                           i32 position, struct expr **out) {
    UNUSED(own);
    UNUSED(position);
    return coerce_to(b->t, args[0], type_of(TYPE_TIMESTAMP), out);
}

/* d, n, "days" | "months" | "years": a date stays one. */
static FALLIBLE make_offset(struct lq_bind *b, struct expr **args, const struct builtin *own,
                            i32 position, struct expr **out) {
    static const struct {
        const char *name;
        i32 arg; /* of make_interval */
    } units[] = {{"years", 0}, {"months", 1},  {"weeks", 2},  {"days", 3},
                 {"hours", 4}, {"minutes", 5}, {"seconds", 6}};
    struct sv unit = {NULL, 0};
    struct expr *parts[INTERVAL_ARGS] = {NULL};
    i32 at = -1;
    UNUSED(own);
    bool literal = literal_text(args[2], &unit);
    for (i32 i = 0; literal && i < COUNT_OF(units); i++) {
        at = sv_eq(unit, sv_from(units[i].name)) ? units[i].arg : at;
    }
    if (at < 0) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "the unit of datetime:offset is \"years\", \"months\", \"weeks\", \"days\", "
                "\"hours\", \"minutes\" or \"seconds\"");
    }
    struct type type = args[0]->type;
    if (type.id == TYPE_DATE && at == 3) {
        TRY(coerce_to(b->t, args[1], type_of(TYPE_INTEGER), &args[1]));
        return operator_binary(b->t, "+", args[0], args[1], position, out);
    }
    TRY(coerce_to(b->t, args[1], type_of(at == 6 ? TYPE_DOUBLE : TYPE_INTEGER), &parts[at]));
    struct expr *interval = NULL;
    TRY(call_make_interval(b->t, parts, position, &interval));
    TRY(operator_binary(b->t, "+", args[0], interval, position, out));
    bool stays = type.id == TYPE_DATE && at < 3;
    return stays ? coerce_to(b->t, *out, type, out) : ERR_OK;
}

static FALLIBLE make_like(struct lq_bind *b, struct expr **args, const struct builtin *own,
                          i32 position, struct expr **out) {
    for (i32 i = 0; i < 2; i++) {
        TRY(classes_meet(b, args[i], expr_null(b->t, type_of(TYPE_TEXT), position), position));
    }
    return operator_like(b->t, own->other, args[0], args[1], position, out);
}

static const struct builtin functions[] = {
    {"string:length", 1, make_shared, "length"},
    {"string:upper", 1, make_shared, "upper"},
    {"string:lower", 1, make_shared, "lower"},
    {"string:trim", 1, make_shared, "btrim"},
    {"string:replace", 3, make_shared, "replace"},
    {"string:substring", 3, make_substring, NULL},
    {"string:add", 2, make_concat, NULL},
    {"string:split", 3, make_split, NULL},
    {"abs", 1, make_shared, "abs"},
    {"int:abs", 1, make_shared, "abs"},
    {"int:mod", 2, make_shared, "mod"},
    {"decimal:abs", 1, make_shared, "abs"},
    {"float:abs", 1, make_shared, "abs"},
    {"float:sqrt", 1, make_float, "sqrt"},
    {"float:exp", 1, make_float, "exp"},
    {"float:log", 1, make_float, "ln"},
    {"float:log10", 1, make_float, "log10"},
    {"float:pow", 2, make_float, "power"},
    {"float:sin", 1, make_float, "sin"},
    {"float:cos", 1, make_float, "cos"},
    {"float:tan", 1, make_float, "tan"},
    {"float:floor", 1, make_float, "floor"},
    {"float:ceil", 1, make_float, "ceil"},
    {"datetime:year", 1, make_field, "year"},
    {"datetime:month", 1, make_field, "month"},
    {"datetime:day", 1, make_field, "day"},
    {"datetime:hour", 1, make_field, "hour"},
    {"datetime:minute", 1, make_field, "minute"},
    {"datetime:date", 1, make_date, NULL},
    {"datetime:parse", 1, make_parse, NULL},
    {"datetime:offset", 3, make_offset, NULL},
};

static const struct builtin atoms[] = {
    {"string:like", 2, make_like, "~~"},
    {"string:notlike", 2, make_like, "!~~"},
};

static const struct builtin *find(const struct builtin *list, i64 count, struct sv name) {
    for (i64 i = 0; i < count; i++) {
        if (sv_eq(name, sv_from(list[i].name))) {
            return &list[i];
        }
    }
    return NULL;
}

/* from:to:convert: both types; false when it is none. */
static bool conversion(struct sv name, struct type *from, struct type *to) {
    const char *first = memchr(name.ptr, ':', (size_t)name.len);
    if (!first) {
        return false;
    }
    i64 rest = name.ptr + name.len - first - 1;
    const char *second = memchr(first + 1, ':', (size_t)rest);
    if (!second ||
        !sv_eq((struct sv){second + 1, name.ptr + name.len - second - 1}, SV("convert"))) {
        return false;
    }
    return lq_type_named((struct sv){name.ptr, first - name.ptr}, from) &&
           lq_type_named((struct sv){first + 1, second - first - 1}, to);
}

bool builtin_is_function(struct sv name) {
    struct type from, to;
    return find(functions, COUNT_OF(functions), name) || conversion(name, &from, &to) ||
           sv_eq(name, SV("lang:new"));
}

bool builtin_is_atom(struct sv name) {
    return find(atoms, COUNT_OF(atoms), name) != NULL;
}

static FALLIBLE convert(struct lq_bind *b, const struct lq_expr *e, struct expr **args,
                        struct type from, struct type to, struct expr **out) {
    i32 position = lq_at(b, e->position);
    struct expr *like = expr_null(b->t, from, position);
    if (e->args.count != 1) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "a conversion takes one argument");
    }
    TRY(classes_meet(b, args[0], like, position));
    if (to.id == TYPE_DECIMAL && args[0]->type.id == TYPE_DECIMAL) {
        *out = args[0];
        return ERR_OK;
    }
    to = to.id == TYPE_DECIMAL && type_is_integer(args[0]->type) ? decimal_of(args[0]->type) : to;
    return coerce_to(b->t, args[0], to, out);
}

static FALLIBLE check_count(struct lq_bind *b, const struct builtin *own, i64 count, i32 position) {
    if (count != own->count) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "%s takes %d arguments, not %d", own->name,
                own->count, (int)count);
    }
    return ERR_OK;
}

FALLIBLE builtin_call(struct lq_bind *b, const struct lq_expr *e, struct expr **args,
                      struct expr **out) {
    const struct builtin *own = find(functions, COUNT_OF(functions), e->text);
    struct type from, to;
    if (!own && conversion(e->text, &from, &to)) {
        return convert(b, e, args, from, to, out);
    }
    i32 position = lq_at(b, e->position);
    if (!own) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "there is no function %.*s",
                (int)MIN_OF(e->text.len, 100), e->text.ptr);
    }
    TRY(check_count(b, own, e->args.count, position));
    return own->make(b, args, own, position, out);
}

FALLIBLE builtin_atom(struct lq_bind *b, const struct lq_atom *atom, struct expr **args,
                      struct expr **out) {
    const struct builtin *own = find(atoms, COUNT_OF(atoms), atom->name);
    i32 position = lq_at(b, atom->position);
    TRY(check_count(b, own, atom_arity(atom), position));
    TRY(own->make(b, args, own, position, out));
    *out = expr_defined(b, *out);
    return ERR_OK;
}

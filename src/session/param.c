/* param.c: values bound to parameters, converted to the types the statement gave the parameters.
 *
 * A bound value has one of few forms (bool, exact number with a scale, double, date, text); a
 * parameter has a SQL type and a place among the program's literals whose kind may be narrower or
 * wider than the type's. Text is read with the same opcodes casts use, so a bound text and a cast
 * text mean the same.
 *
 * A value is never rounded to a decimal's scale in silence: a comparison with the rounded value
 * would be a wrong answer. It is 22003, and the hint says to write a cast. */
#include "session/session_int.h"

#include "host/eval.h"

#include "codes/op.h"

struct conversion {
    struct arena *arena;
    const struct param *param;
    i32 number;
    struct type type;
    struct error *err;
    struct when when;
};

static FALLIBLE cannot(const struct conversion *v) {
    static const char *const form_names[] = {"NULL",     "a boolean", "a number",
                                             "a double", "a date",    "a text"};
    char type[32];
    FAIL(v->err, DATATYPE_MISMATCH, "parameter $%d is of type %s but was given %s", v->number,
         type_print(v->type, type), form_names[v->param->form]);
}

static FALLIBLE out_of_range(const struct conversion *v) {
    char type[32];
    FAIL(v->err, OUT_OF_RANGE, "the value of parameter $%d is out of range for type %s", v->number,
         type_print(v->type, type));
}

static FALLIBLE parse_text(const struct conversion *v, u16 code, union lit scale,
                           union lit *out) {
    union lit none = {0};
    u8 fault = op_eval(code, out, v->param->value, scale, none, v->arena);
    if (fault) {
        struct sv text = sv_of(v->param->value.str);
        FAIL(v->err, INVALID_TEXT, "parameter $%d: %s: \"%.*s\"", v->number, fault_message(fault),
             (int)MIN_OF(text.len, 100), text.ptr);
    }
    return ERR_OK;
}

/* value / 10^from as an integer times 10^-to; false when digits would be lost. */
static bool rescale(i128 value, i32 from, i32 to, i128 *out) {
    if (to - from > 38 || from - to > 38) {
        *out = 0;
        return value == 0;
    }
    if (to < from) {
        i128 unit = pow10_i128(from - to);
        *out = value / unit;
        return value % unit == 0;
    }
    return !__builtin_mul_overflow(value, pow10_i128(to - from), out);
}

/* How many digits a decimal text has after the point, trailing zeros not counted. */
static i32 text_scale(struct sv text) {
    i32 scale = 0;
    i32 kept = 0;
    bool point = false;
    for (i64 i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == 'e' || c == 'E') {
            return 0;
        }
        if (c == '.') {
            point = true;
        } else if (point && c >= '0' && c <= '9') {
            scale++;
            kept = c == '0' ? kept : scale;
        }
    }
    return kept;
}

static FALLIBLE too_fine(const struct conversion *v) {
    char type[32];
    error_set(v->err, ERR_OUT_OF_RANGE, -1,
              "the value of parameter $%d has more decimal places than type %s", v->number,
              type_print(v->type, type));
    error_hint(v->err, "Write a cast to the type you need, as in $%d::decimal(18,6).", v->number);
    return v->err->code;
}

static FALLIBLE to_decimal(const struct conversion *v, i128 *out) {
    i32 to = v->type.scale;
    union lit scale = {.i32 = to};
    union lit none = {0};
    union lit got = {0};
    switch (v->param->form) {
    case PARAM_EXACT:
        if (!rescale(v->param->value.i128, v->param->scale, to, out)) {
            return v->param->scale > to ? too_fine(v) : out_of_range(v);
        }
        break;
    case PARAM_DOUBLE:
        if (op_eval(OP_DEC_F64, &got, v->param->value, scale, none, v->arena)) {
            return out_of_range(v);
        }
        *out = got.i128;
        if ((f64)got.i128 / (f64)pow10_i128(to) != v->param->value.f64) {
            return too_fine(v);
        }
        break;
    case PARAM_TEXT:
        TRY(parse_text(v, OP_PARSE_DEC, scale, &got));
        *out = got.i128;
        if (text_scale(sv_of(v->param->value.str)) > to) {
            return too_fine(v);
        }
        break;
    default:
        return cannot(v);
    }
    i128 limit = pow10_i128(v->type.precision);
    return *out <= -limit || *out >= limit ? out_of_range(v) : ERR_OK;
}

static FALLIBLE to_integer(const struct conversion *v, i128 *out) {
    union lit none = {0};
    union lit got = {0};
    switch (v->param->form) {
    case PARAM_EXACT:
        if (!rescale(v->param->value.i128, v->param->scale, 0, out)) {
            return too_fine(v);
        }
        break;
    case PARAM_DOUBLE:
        if (op_eval(OP_I64_F64, &got, v->param->value, none, none, v->arena)) {
            return out_of_range(v);
        }
        if ((f64)got.i64 != v->param->value.f64) {
            return too_fine(v);
        }
        *out = got.i64;
        break;
    case PARAM_TEXT:
        TRY(parse_text(v, OP_PARSE_INT, none, &got));
        *out = got.i64;
        break;
    default:
        return cannot(v);
    }
    struct range range = range_of_type(v->type);
    return *out < range.lo || *out > range.hi ? out_of_range(v) : ERR_OK;
}

static FALLIBLE to_float(const struct conversion *v, union lit *out) {
    union lit none = {0};
    union lit got = {0};
    bool narrow = v->type.id == TYPE_REAL;
    switch (v->param->form) {
    case PARAM_EXACT:
        got.f64 = (f64)v->param->value.i128 / (f64)pow10_i128(v->param->scale);
        break;
    case PARAM_DOUBLE:
        got.f64 = v->param->value.f64;
        break;
    case PARAM_TEXT:
        return parse_text(v, narrow ? OP_PARSE_F32 : OP_PARSE_F64, none, out);
    default:
        return cannot(v);
    }
    if (!narrow) {
        *out = got;
        return ERR_OK;
    }
    return op_eval(OP_F32_F64, out, got, none, none, v->arena) ? out_of_range(v) : ERR_OK;
}

static FALLIBLE to_text(const struct conversion *v, union lit *out) {
    const struct param *p = v->param;
    char buf[96];
    i32 len;
    switch (p->form) {
    case PARAM_TEXT:
        out->str = str_from(arena_sv(v->arena, sv_of(p->value.str))); /* rows may outlive it */
        return ERR_OK;
    case PARAM_BOOL:
        len = value_print(type_of(TYPE_BOOLEAN), KIND_B8, &p->value.b8, buf);
        break;
    case PARAM_EXACT:
        len = value_print(type_decimal(38, p->scale), KIND_I128, &p->value.i128, buf);
        break;
    case PARAM_DOUBLE:
        len = value_print(type_of(TYPE_DOUBLE), KIND_F64, &p->value.f64, buf);
        break;
    case PARAM_DATE:
        len = value_print(type_of(TYPE_DATE), KIND_I32, &p->value.i32, buf);
        break;
    default:
        return cannot(v);
    }
    out->str = str_from(arena_sv(v->arena, (struct sv){buf, len}));
    return ERR_OK;
}

static FALLIBLE to_bool(const struct conversion *v, union lit *out) {
    union lit none = {0};
    if (v->param->form == PARAM_TEXT) {
        return parse_text(v, OP_PARSE_BOOL, none, out);
    }
    if (v->param->form != PARAM_BOOL) {
        return cannot(v);
    }
    *out = v->param->value;
    return ERR_OK;
}

/* A time, interval, UUID or byte string comes as text; a date may come as a number of days. */
static FALLIBLE from_text(const struct conversion *v, union lit *out) {
    if (v->param->form != PARAM_TEXT) {
        return cannot(v);
    }
    union lit none = {0};
    if (v->type.id == TYPE_BLOB) {
        return parse_text(v, OP_PARSE_BYTES, none, out);
    }
    struct sv text = sv_of(v->param->value.str);
    u8 fault = value_parse(v->type, text, v->when, out);
    if (fault) {
        FAIL(v->err, INVALID_TEXT, "parameter $%d: %s: \"%.*s\"", v->number, fault_message(fault),
             (int)MIN_OF(text.len, 100), text.ptr);
    }
    return ERR_OK;
}

static FALLIBLE to_date(const struct conversion *v, i128 *out) {
    union lit got = v->param->value;
    if (v->param->form == PARAM_TEXT) {
        TRY(from_text(v, &got));
    } else if (v->param->form != PARAM_DATE) {
        return cannot(v);
    }
    struct range range = range_of_type(v->type);
    *out = got.i32;
    return *out < range.lo || *out > range.hi ? out_of_range(v) : ERR_OK;
}

static void store_exact(i128 value, enum kind kind, union lit *out) {
    switch (kind) {
    case KIND_I32:
        out->i32 = (i32)value;
        break;
    case KIND_I64:
        out->i64 = (i64)value;
        break;
    default:
        out->i128 = value;
        break;
    }
}

FALLIBLE param_convert(struct arena *arena, const struct param *param,
                       const struct param_target *target, union lit *out, struct error *err) {
    struct type type = target->type;
    enum kind kind = target->kind;
    struct conversion v = {arena, param, target->number, type, err, target->when};
    i128 exact = 0;
    memset(out, 0, sizeof *out);
    switch ((enum type_id)type.id) {
    case TYPE_BOOLEAN:
        return to_bool(&v, out);
    case TYPE_SMALLINT:
    case TYPE_INTEGER:
    case TYPE_BIGINT:
        TRY(to_integer(&v, &exact));
        break;
    case TYPE_DECIMAL:
        TRY(to_decimal(&v, &exact));
        break;
    case TYPE_REAL:
    case TYPE_DOUBLE:
        return to_float(&v, out);
    case TYPE_DATE:
        TRY(to_date(&v, &exact));
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIME:
    case TYPE_INTERVAL:
    case TYPE_UUID:
    case TYPE_BLOB:
        return from_text(&v, out);
    default:
        return to_text(&v, out);
    }
    store_exact(exact, kind, out);
    return ERR_OK;
}

/* value_any.c: a value of any type to text and back: the tables that say which function of value.h
 * does it.
 *
 * Literals, parameters, COPY and results come here, so that a new type needs a line in each table.
 * Text, char and blob are not here: their bytes need memory, which the callers have. */
#include "defs/value.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "defs/ops.h"

typedef u8 (*parser)(struct type t, struct sv s, struct when when, union lit *out);

/* The digits a type with a precision keeps: timestamp(3). */
static i64 unit_us(struct type t) {
    i64 unit = 1;
    for (i32 digits = t.precision ? t.precision - 1 : 6; digits < 6; digits++) {
        unit *= 10;
    }
    return unit;
}

#define PARSER(name, field, call)                                                            \
    static u8 parse_##name(struct type t, struct sv s, struct when when, union lit *out) { \
        UNUSED(t);                                                                           \
        UNUSED(when);                                                                        \
        return value_parse_##name call;                                                      \
    }
PARSER(bool, b8, (s, &out->b8))
PARSER(f32, f32, (s, &out->f32))
PARSER(f64, f64, (s, &out->f64))
PARSER(date, i32, (s, when, &out->i32))
PARSER(uuid, i128, (s, &out->i128))
#undef PARSER

static u8 parse_whole(struct type t, struct sv s, struct when when, union lit *out) {
    UNUSED(when);
    i64 value = 0;
    u8 fault = value_parse_int(s, &value);
    struct range r = range_of_type(t);
    if (!fault && (value < r.lo || value > r.hi)) {
        fault = t.id == TYPE_SMALLINT ? FAULT_SMALLINT : FAULT_INTEGER;
    }
    if (type_kind(t) == KIND_I64) {
        out->i64 = value;
    } else {
        out->i32 = (i32)value;
    }
    return fault;
}

static u8 parse_decimal(struct type t, struct sv s, struct when when, union lit *out) {
    UNUSED(when);
    i128 value = 0;
    u8 fault = value_parse_dec(s, t.scale, &value);
    if (!fault && !range_within(range_of_value(value), range_of_type(t))) {
        fault = FAULT_DECIMAL;
    }
    if (type_kind(t) == KIND_I64) {
        out->i64 = (i64)value;
    } else {
        out->i128 = value;
    }
    return fault;
}

static u8 parse_timestamp(struct type t, struct sv s, struct when when, union lit *out) {
    bool zoned = t.id == TYPE_TIMESTAMPTZ;
    u8 fault = zoned ? value_parse_timestamptz(s, when, &out->i64)
                     : value_parse_timestamp(s, when, &out->i64);
    out->i64 = fault || !t.precision ? out->i64 : fn_round_us(out->i64, unit_us(t));
    return fault;
}

static u8 parse_time(struct type t, struct sv s, struct when when, union lit *out) {
    UNUSED(when);
    u8 fault = value_parse_time(s, when, &out->i64);
    out->i64 = fault || !t.precision ? out->i64 : fn_round_us(out->i64, unit_us(t));
    return fault;
}

static u8 parse_interval(struct type t, struct sv s, struct when when, union lit *out) {
    UNUSED(when);
    u8 fault = value_parse_interval(s, (i32)t.length, &out->i128);
    out->i128 = fault || !t.precision ? out->i128 : fn_round_iv(out->i128, unit_us(t), &fault);
    return fault;
}

static const parser parsers[TYPE_COUNT] = {
    [TYPE_BOOLEAN] = parse_bool,        [TYPE_SMALLINT] = parse_whole,
    [TYPE_INTEGER] = parse_whole,       [TYPE_BIGINT] = parse_whole,
    [TYPE_DECIMAL] = parse_decimal,     [TYPE_REAL] = parse_f32,
    [TYPE_DOUBLE] = parse_f64,          [TYPE_DATE] = parse_date,
    [TYPE_TIMESTAMP] = parse_timestamp, [TYPE_TIMESTAMPTZ] = parse_timestamp,
    [TYPE_TIME] = parse_time,           [TYPE_INTERVAL] = parse_interval,
    [TYPE_UUID] = parse_uuid,
};

u8 value_parse(struct type t, struct sv s, struct when when, void *out) {
    CHECK(t.id < TYPE_COUNT && parsers[t.id]);
    union lit value;
    memset(&value, 0, sizeof value);
    u8 fault = parsers[t.id](t, s, when, &value);
    memcpy(out, &value, kind_bytes[type_kind(t)]);
    return fault;
}

/* An integer register of any width. */
static i128 read_exact(enum kind kind, const void *value) {
    switch (kind) {
    case KIND_B8:
        return *(const b8 *)value;
    case KIND_I32:
        return *(const i32 *)value;
    case KIND_I64:
        return *(const i64 *)value;
    case KIND_I128: {
        i128 wide;
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    default:
        return 0;
    }
}

i32 value_print_zone(struct type t, enum kind kind, const void *value, i32 zone, char *buf) {
    if (kind == KIND_F32) {
        return value_format_f32(*(const f32 *)value, buf);
    }
    if (kind == KIND_F64) {
        return value_format_f64(*(const f64 *)value, buf);
    }
    i128 exact = read_exact(kind, value);
    switch (t.id) {
    case TYPE_BOOLEAN:
        return value_format_bool(exact != 0, buf);
    case TYPE_DATE:
        return value_format_date((i32)exact, buf);
    case TYPE_TIMESTAMP:
        return value_format_timestamp((i64)exact, buf);
    case TYPE_TIMESTAMPTZ:
        return value_format_timestamptz((i64)exact, zone, buf);
    case TYPE_TIME:
        return value_format_time((i64)exact, buf);
    case TYPE_INTERVAL:
        return value_format_interval(exact, buf);
    case TYPE_UUID:
        return value_format_uuid(exact, buf);
    default:
        return value_format_dec(exact, t.id == TYPE_DECIMAL ? t.scale : 0, buf);
    }
}

i32 value_print(struct type t, enum kind kind, const void *value, char *buf) {
    return value_print_zone(t, kind, value, 0, buf);
}

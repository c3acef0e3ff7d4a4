/* types.c: SQL types, register kinds, value ranges and faults: the functions of types.h.
 *
 * Everything is read from type.def and fault.def; only the rules that follow from a type (its kind,
 * its range, its text) are written out here. No state, no allocation. */
#include "defs/types.h"

#include <float.h>
#include <stdio.h>

#include "defs/host_words.h"
#include "defs/fn_date.h"
#include "defs/fn_int.h"
#include "defs/fn_time.h"
#include "defs/value.h"

#define X(A, c_name, name, bytes) [KIND_##name] = bytes,
const u8 kind_bytes[KIND_COUNT] = {WF_KINDS(X, )};
#undef X
#define X(A, c_name, name, bytes) [KIND_##name] = #c_name,
const char *const kind_names[KIND_COUNT] = {WF_KINDS(X, )};
#undef X
#define X(A, name, text) [ENC_##name] = text,
const char *const encoding_names[ENC_COUNT] = {WF_ENCS(X, )};
#undef X

#define X(A, c_name, name, bytes) _Static_assert(sizeof(c_name) == bytes, #c_name);
WF_KINDS(X, )
#undef X
_Static_assert(FAULT_NONE == 0 && FAULT_COUNT < 256, "faults travel in one byte");

struct type_row {
    const char *text;
    i32 oid;
    u8 kind;
    char category;
};
#define X(A, name, text, oid, kind, arrow, category) \
    [TYPE_##name] = {text, oid, KIND_##kind, category},
static const struct type_row type_rows[TYPE_COUNT] = {WF_TYPES(X, )};
#undef X

struct fault_row {
    wf_status error;
    const char *message;
};
#define X(A, name, error, message) [FAULT_##name] = {ERR_##error, message},
static const struct fault_row fault_rows[FAULT_COUNT] = {WF_FAULTS(X, )};
#undef X

wf_status fault_error(u8 fault) {
    return fault < FAULT_COUNT ? fault_rows[fault].error : ERR_INTERNAL;
}

const char *fault_message(u8 fault) {
    return fault < FAULT_COUNT ? fault_rows[fault].message : "unknown fault";
}

struct type type_of(enum type_id id) {
    struct type t = {0};
    t.id = (u8)id;
    return t;
}

struct type type_decimal(i32 precision, i32 scale) {
    CHECK(precision >= 0 && precision <= 38 && scale >= 0 && scale <= 38);
    struct type t = type_of(TYPE_DECIMAL);
    t.precision = (u8)precision;
    t.scale = (u8)scale;
    return t;
}

bool type_eq(struct type a, struct type b) {
    return a.id == b.id && a.precision == b.precision && a.scale == b.scale &&
           a.element == b.element && a.length == b.length;
}

bool type_is_integer(struct type t) {
    return t.id == TYPE_SMALLINT || t.id == TYPE_INTEGER || t.id == TYPE_BIGINT;
}

bool type_is_exact(struct type t) {
    return type_is_integer(t) || t.id == TYPE_DECIMAL;
}

bool type_is_float(struct type t) {
    return t.id == TYPE_REAL || t.id == TYPE_DOUBLE;
}

bool type_is_numeric(struct type t) {
    return type_is_exact(t) || type_is_float(t);
}

bool type_is_string(struct type t) {
    return t.id == TYPE_TEXT || t.id == TYPE_CHAR;
}

bool type_is_whole(struct type t) {
    enum kind kind = type_kind(t);
    return kind == KIND_I32 || kind == KIND_I64 || kind == KIND_I128;
}

bool type_refers(struct type own, struct type key) {
    if (type_is_integer(own) || type_is_integer(key)) {
        return type_is_integer(own) && (type_is_exact(key) || type_is_float(key));
    }
    if (type_is_numeric(own) && type_is_numeric(key)) {
        return type_is_float(key) || !type_is_float(own);
    }
    return own.id == key.id || (type_is_string(own) && type_is_string(key));
}

char type_category(struct type t) {
    ASSERT(t.id < TYPE_COUNT);
    return type_rows[t.id].category;
}

enum kind type_kind(struct type t) {
    ASSERT(t.id < TYPE_COUNT);
    if (t.id == TYPE_DECIMAL && t.precision >= 1 && t.precision <= 18) {
        return KIND_I64;
    }
    return (enum kind)type_rows[t.id].kind;
}

i32 type_oid(struct type t) {
    return type_rows[t.id].oid;
}

/* The fields an interval keeps, as bits of PostgreSQL's grammar. */
static const struct {
    u32 fields;
    i32 last; /* what lies below it is cut */
    const char *words;
} interval_kinds[] = {
    {0x4, FIELD_YEAR, "year"},
    {0x2, FIELD_MONTH, "month"},
    {0x6, FIELD_MONTH, "year to month"},
    {0x8, FIELD_DAY, "day"},
    {0x400, FIELD_HOUR, "hour"},
    {0x800, FIELD_MINUTE, "minute"},
    {0x1000, FIELD_SECOND, "second"},
    {0x408, FIELD_HOUR, "day to hour"},
    {0xc08, FIELD_MINUTE, "day to minute"},
    {0x1c08, FIELD_SECOND, "day to second"},
    {0xc00, FIELD_MINUTE, "hour to minute"},
    {0x1c00, FIELD_SECOND, "hour to second"},
    {0x1800, FIELD_SECOND, "minute to second"},
};

const char *interval_words(struct type t) {
    for (i64 i = 0; i < COUNT_OF(interval_kinds); i++) {
        if (interval_kinds[i].fields == t.length) {
            return interval_kinds[i].words;
        }
    }
    return "";
}

i32 interval_last(struct type t) {
    for (i64 i = 0; i < COUNT_OF(interval_kinds); i++) {
        if (interval_kinds[i].fields == t.length && interval_kinds[i].last != FIELD_SECOND) {
            return interval_kinds[i].last;
        }
    }
    return -1;
}

static u32 fields_named(struct sv words) {
    for (i64 i = 0; i < COUNT_OF(interval_kinds); i++) {
        if (sv_eq_nocase(words, sv_from(interval_kinds[i].words))) {
            return interval_kinds[i].fields;
        }
    }
    return 0;
}

const char *type_print(struct type t, char buf[32]) {
    const char *text = t.id < TYPE_COUNT ? type_rows[t.id].text : "?";
    bool timed = t.id < TYPE_COUNT && (type_category(t) == 'D' || type_category(t) == 'T');
    if (t.id == TYPE_DECIMAL && t.precision) {
        snprintf(buf, 32, "%s(%d,%d)", text, t.precision, t.scale);
    } else if (t.id == TYPE_INTERVAL && t.length) {
        i32 len = snprintf(buf, 32, "%s %s", text, interval_words(t));
        if (t.precision) {
            snprintf(buf + len, (size_t)(32 - len), "(%d)", t.precision - 1);
        }
    } else if (t.length) {
        snprintf(buf, 32, "%s(%u)", t.id == TYPE_TEXT ? "varchar" : text, t.length);
    } else if (timed && t.precision) {
        i32 words = t.id == TYPE_TIMESTAMPTZ ? 9 : (i32)strlen(text); /* timestamp(3) with … */
        snprintf(buf, 32, "%.*s(%d)%s", (int)words, text, t.precision - 1, text + words);
    } else {
        snprintf(buf, 32, "%s", text);
    }
    return buf;
}

static const struct {
    const char *name;
    u8 id;
    u8 length;
} type_aliases[] = {
#define X(A, name, type, length) {name, TYPE_##type, length},
    WF_TYPE_NAMES(X, )
#undef X
};

static struct sv trim(struct sv s) {
    while (s.len && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    return s;
}

/* "(12, 2)" without the parentheses: one or two numbers into the type. */
static bool parse_modifiers(struct sv text, struct type *out) {
    i64 numbers[2] = {0, 0};
    i32 count = 0;
    while (count < 2) {
        i64 end = 0;
        while (end < text.len && text.ptr[end] != ',') {
            end++;
        }
        if (value_parse_int((struct sv){text.ptr, end}, &numbers[count++])) {
            return false;
        }
        if (end == text.len) {
            break;
        }
        text = (struct sv){text.ptr + end + 1, text.len - end - 1};
        if (count == 2) {
            return false;
        }
    }
    if (out->id == TYPE_DECIMAL) {
        if (numbers[0] < 1 || numbers[0] > 38 || numbers[1] < 0 || numbers[1] > numbers[0]) {
            return false;
        }
        *out = type_decimal((i32)numbers[0], (i32)numbers[1]);
        return true;
    }
    bool timed = type_category(*out) == 'D' || type_category(*out) == 'T';
    if (count == 1 && timed && out->id != TYPE_DATE) {
        out->precision = (u8)(numbers[0] < 6 ? numbers[0] + 1 : 0);
        return numbers[0] >= 0 && numbers[0] <= 6;
    }
    if (count != 1 || numbers[0] < 1) {
        return false;
    }
    if (out->id == TYPE_DOUBLE) { /* float(p) counts bits */
        out->id = numbers[0] <= 24 ? TYPE_REAL : TYPE_DOUBLE;
        return numbers[0] <= 53;
    }
    out->length = (u32)MIN_OF(numbers[0], 10485760);
    return type_is_string(*out) && numbers[0] <= 10485760;
}

bool type_parse(struct sv name, struct type *out) {
    name = trim(name);
    struct sv modifiers = {NULL, 0};
    for (i64 i = 0; i < name.len; i++) {
        if (name.ptr[i] == '(') {
            if (name.ptr[name.len - 1] != ')') {
                return false;
            }
            modifiers = (struct sv){name.ptr + i + 1, name.len - i - 2};
            name = trim((struct sv){name.ptr, i});
        }
    }
    static const char interval[] = "interval ";
    i64 word = (i64)sizeof interval - 1;
    u32 fields = 0;
    if (name.len > word && sv_eq_nocase((struct sv){name.ptr, word}, sv_from(interval))) {
        fields = fields_named((struct sv){name.ptr + word, name.len - word});
        name.len = fields ? word - 1 : name.len;
    }
    for (i64 i = 0; i < COUNT_OF(type_aliases); i++) {
        if (sv_eq_nocase(name, sv_from(type_aliases[i].name))) {
            struct type t = type_of((enum type_id)type_aliases[i].id);
            t.length = fields ? fields : type_aliases[i].length;
            if (modifiers.ptr && !parse_modifiers(modifiers, &t)) {
                return false;
            }
            *out = t;
            return true;
        }
    }
    return false;
}

i128 pow10_i128(i32 exponent) {
    CHECK(exponent >= 0 && exponent <= 38);
    return (i128)fn_pow10(exponent);
}

static struct range range_exact(i128 lo, i128 hi) {
    struct range r = {.lo = lo, .hi = hi};
    return r;
}

#define ALL_I64 \
    { .lo = I64_MIN, .hi = I64_MAX }
#define ALL_I128 \
    { .lo = I128_MIN, .hi = I128_MAX }
static const struct range type_ranges[TYPE_COUNT] = {
    [TYPE_BOOLEAN] = {.lo = 0, .hi = 1},
    [TYPE_SMALLINT] = {.lo = -32768, .hi = 32767},
    [TYPE_INTEGER] = {.lo = I32_MIN, .hi = I32_MAX},
    [TYPE_BIGINT] = ALL_I64,
    [TYPE_REAL] = {.abs_max = FLT_MAX, .lsb = -149, .may_special = 1},
    [TYPE_DOUBLE] = {.abs_max = DBL_MAX, .lsb = -1074, .may_special = 1},
    [TYPE_DATE] = {.lo = DATE_NEG_INF, .hi = DATE_INF},
    [TYPE_TIMESTAMP] = ALL_I64,
    [TYPE_TIMESTAMPTZ] = ALL_I64,
    [TYPE_TIME] = {.lo = 0, .hi = DAY_US},
    [TYPE_INTERVAL] = ALL_I128,
    [TYPE_UUID] = ALL_I128,
};

struct range range_of_type(struct type t) {
    if (t.id == TYPE_DECIMAL) {
        i128 most = pow10_i128(t.precision ? t.precision : 38) - 1;
        return range_exact(-most, most);
    }
    return type_ranges[t.id];
}

struct range range_of_value(i128 value) {
    return range_exact(value, value);
}

struct range range_union(struct range a, struct range b) {
    if (a.lo > a.hi || b.lo > b.hi) {
        return a.lo > a.hi ? b : a;
    }
    struct range r;
    r.lo = MIN_OF(a.lo, b.lo);
    r.hi = MAX_OF(a.hi, b.hi);
    r.abs_max = MAX_OF(a.abs_max, b.abs_max);
    r.lsb = MIN_OF(a.lsb, b.lsb);
    r.may_special = a.may_special | b.may_special;
    return r;
}

bool range_within(struct range inner, struct range outer) {
    if (inner.lo > inner.hi) {
        return true;
    }
    return inner.lo >= outer.lo && inner.hi <= outer.hi && inner.abs_max <= outer.abs_max &&
           inner.lsb >= outer.lsb && inner.may_special <= outer.may_special;
}

enum kind range_kind(struct range r) {
    if (r.lo > r.hi || (r.lo >= I32_MIN && r.hi <= I32_MAX)) {
        return KIND_I32;
    }
    return r.lo >= I64_MIN && r.hi <= I64_MAX ? KIND_I64 : KIND_I128;
}

/* types.h: SQL types, register kinds, value ranges; expands type.def and fault.def. Host only. */
#ifndef WF_DEFS_TYPES_H
#define WF_DEFS_TYPES_H

#include "base/base.h"
#include "base/error.h"
#include "defs/fault.h"
#include "defs/type.def"

#define X(A, c_name, name, bytes) KIND_##name,
enum kind { WF_KINDS(X, ) KIND_COUNT };
#undef X
#define X(A, name, text, oid, kind, arrow, category) TYPE_##name,
enum type_id { WF_TYPES(X, ) TYPE_COUNT };
#undef X
#define X(A, name, text) ENC_##name,
enum encoding { WF_ENCS(X, ) ENC_COUNT };
#undef X

struct type {
    u8 id;        /* enum type_id */
    u8 precision; /* decimal: 1 to 38; timestamp(p), time(p), interval(p): p + 1, 0 = all digits */
    u8 scale;     /* decimal: 0 to precision */
    u8 element;   /* reserved for arrays; 0 */
    u32 length;   /* varchar(n), char(n): n; interval: its fields, as bits; 0 = no limit */
};

extern const u8 kind_bytes[KIND_COUNT];
extern const char *const kind_names[KIND_COUNT]; /* "i32" */
extern const char *const encoding_names[ENC_COUNT];

struct type type_of(enum type_id id); /* decimal: use type_decimal */
struct type type_decimal(i32 precision, i32 scale);
bool type_eq(struct type a, struct type b);
bool type_is_integer(struct type t); /* smallint, integer, bigint */
bool type_is_exact(struct type t);   /* integers and decimal */
bool type_is_float(struct type t);
bool type_is_numeric(struct type t); /* exact or float */
bool type_is_string(struct type t);  /* text, varchar(n), char(n) */
bool type_is_whole(
    struct type t); /* held as integers: exact types, dates, times, intervals, uuid */
/* Whether a column may refer to a key of the other type: their values can be compared as such. */
bool type_refers(struct type own, struct type key);
char type_category(struct type t); /* the letter of type.def */
/* The kind in which values of this type leave the engine: type.def's, but decimal I64 up to
 * precision 18. char(n) holds no blanks at its end: they are put back where it leaves (see
 * sql/README.md). */
enum kind type_kind(struct type t);
i32 type_oid(struct type t);
/* "decimal(12,2)"; returns buf. */
const char *type_print(struct type t, char buf[32]);
const char *interval_words(struct type t); /* "hour to minute", "" for all fields */
i32 interval_last(struct type t); /* the field below which its values hold nothing; -1 = none */
/* Reads a type's SQL name (any alias PostgreSQL knows: int4, numeric, varchar, …); false if
 * unknown. */
bool type_parse(struct sv name, struct type *out);

wf_status fault_error(u8 fault);
const char *fault_message(u8 fault);

/* What is known of a register's or column's values. For exact types and dates (b8 too): lo..hi. For
 * floats: |value| <= abs_max and every value is a multiple of 2^lsb, unless may_special (NaN,
 * infinities; in a table's column -0, too). A range of an empty column has lo > hi. Text has no range. */
struct range {
    i128 lo;
    i128 hi;
    f64 abs_max;
    i32 lsb; /* -1074 when nothing is known */
    b8 may_special;
};
static inline i32 type_scale(struct type t) { /* digits after the point that it always has */
    return t.id == TYPE_DECIMAL ? t.scale : 0;
}
struct range range_of_type(struct type t); /* everything the type can hold */
struct range range_of_value(i128 value);
struct range range_union(struct range a, struct range b);
bool range_within(struct range inner, struct range outer);
/* The narrowest of I32, I64, I128 that holds lo..hi. */
enum kind range_kind(struct range r);

i128 pow10_i128(i32 exponent); /* 0 to 38 */

/* Text of one value, as the shell, casts and EXPLAIN print it; returns the length written (buf
 * holds at least VALUE_TEXT_MAX bytes). `kind` says how `value` is held. Not for text and blob. */
enum { VALUE_TEXT_MAX = 96 };
i32 value_print(struct type t, enum kind kind, const void *value, char *buf);
/* The same with timestamptz shown `zone` seconds east of Greenwich. */
i32 value_print_zone(struct type t, enum kind kind, const void *value, i32 zone, char *buf);
/* What a time in a text means that names no zone, or that is "now" or "tomorrow". */
struct when {
    i32 zone;
    i64 now; /* microseconds since 1970 UTC */
};
/* The opposite: text to a value in type_kind(t), within the type's bounds; returns the fault. An
 * interval's fields are in t.length. */
u8 value_parse(struct type t, struct sv s, struct when when, void *out);

#endif

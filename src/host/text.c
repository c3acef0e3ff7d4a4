/* text.c: functions that make text, for WF_OPS_TEXT of op.def: quoting, encoding.
 *
 * Every body asks once for as much room as it can need and reports what it used. Characters are
 * UTF-8; positions and lengths count characters. */
#include "host/bodies.h"
#include "host/chars.h"

#include "defs/types.h"
#include "defs/value.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_like.h"

static const u8 *bytes_of(str a) {
    return (const u8 *)(size_t)a.addr;
}

static void copy(u8 *out, i64 *n, const void *from, i64 len) {
    if (len > 0) {
        memcpy(out + *n, from, (size_t)len);
        *n += len;
    }
}

/* The code after a backslash: \XXXX, \+XXXXXX, \uXXXX, \UXXXXXXXX. Returns how many bytes it takes;
 * 0 = it is none. */
static u32 unicode_escape(const u8 *p, u32 left, u32 *out) {
    u32 skip = left > 0 && (p[0] == '+' || p[0] == 'u' || p[0] == 'U');
    u32 digits = !skip || p[0] == 'u' ? 4 : p[0] == '+' ? 6 : 8;
    *out = 0;
    if (left < skip + digits) {
        return 0;
    }
    for (u32 i = skip; i < skip + digits; i++) {
        u8 c = p[i], low = c | 32;
        bool letter = low >= 'a' && low <= 'f';
        if (!letter && (c < '0' || c > '9')) {
            return 0;
        }
        *out = *out << 4 | (u32)(letter ? low - 'a' + 10 : c - '0');
    }
    return skip + digits;
}

void mt_unistr(struct made *made, str a, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    const u8 *p = bytes_of(a);
    u32 first = 0; /* of a surrogate pair */
    i64 n = 0;
    for (u32 at = 0; out && at < a.len;) {
        u32 code = 0, taken = 0;
        bool plain = p[at] != '\\' || (at + 1 < a.len && p[at + 1] == '\\');
        if (!plain) {
            taken = unicode_escape(p + at + 1, a.len - at - 1, &code);
        }
        bool second = code >= 0xdc00 && code < 0xe000;
        if ((!plain && !taken) || (first != 0) != second) {
            *f = FAULT_UNISTR;
            return;
        }
        if (plain) {
            out[n++] = p[at];
            at += p[at] == '\\' ? 2 : 1;
            continue;
        }
        at += 1 + taken;
        code = second ? 0x10000 + ((first - 0xd800) << 10) + code - 0xdc00 : code;
        first = !second && code >= 0xd800 && code < 0xdc00 ? code : 0;
        if (code == 0 || code > 0x10ffff) {
            *f = FAULT_UNISTR_POINT;
            return;
        }
        n += first ? 0 : fn_char_encode(out + n, code);
    }
    *f = first ? FAULT_UNISTR : *f;
    made->len = n;
}

/* Words that cannot stand as names without quotes. */
static bool is_reserved(str a) {
    static const char *const words[] = {
        "all",        "analyse",   "analyze", "and",       "any",       "array",     "as",
        "asc",        "both",      "case",    "cast",      "check",     "collate",   "column",
        "constraint", "create",    "default", "desc",      "distinct",  "do",        "else",
        "end",        "except",    "false",   "fetch",     "for",       "foreign",   "from",
        "grant",      "group",     "having",  "in",        "initially", "intersect", "into",
        "lateral",    "leading",   "limit",   "localtime", "not",       "null",      "offset",
        "on",         "only",      "or",      "order",     "placing",   "primary",   "references",
        "returning",  "select",    "some",    "symmetric", "table",     "then",      "to",
        "trailing",   "true",      "union",   "unique",    "user",      "using",     "variadic",
        "when",       "where",     "window",  "with",      "between",   "bigint",    "boolean",
        "char",       "coalesce",  "decimal", "exists",    "extract",   "float",     "int",
        "integer",    "interval",  "left",    "like",      "natural",   "numeric",   "inner",
        "join",       "outer",     "right",   "full",      "cross",     "smallint",  "substring",
        "time",       "timestamp", "trim",    "values",    "varchar",   "is",        "ilike",
    };
    for (i64 i = 0; i < COUNT_OF(words); i++) {
        if (sv_eq(sv_of(a), sv_from(words[i]))) {
            return true;
        }
    }
    return false;
}

bool text_is_name(str a) {
    const u8 *p = bytes_of(a);
    bool plain = a.len > 0 && (u8)(p[0] - '0') >= 10 && !is_reserved(a);
    for (u32 i = 0; i < a.len; i++) {
        plain &= (u8)(p[i] - 'a') < 26 || (u8)(p[i] - '0') < 10 || p[i] == '_';
    }
    return plain;
}

void mt_quote_ident(struct made *made, str a, u8 *f) {
    const u8 *p = bytes_of(a);
    bool plain = text_is_name(a);
    u8 *out = made_room(made, 2 * (i64)a.len + 2, f);
    i64 n = 0;
    if (!out) {
        return;
    }
    if (plain) {
        copy(out, &n, p, a.len);
        made->len = n;
        return;
    }
    out[n++] = '"';
    for (u32 i = 0; i < a.len; i++) {
        if (p[i] == '"') {
            out[n++] = '"';
        }
        out[n++] = p[i];
    }
    out[n++] = '"';
    made->len = n;
}

void mt_quote_name(struct made *made, str a, u8 *f) {
    if (a.len == 1 && bytes_of(a)[0] == (u8)NO_NAME[0]) {
        *f = FAULT_NULL_NAME;
        return;
    }
    mt_quote_ident(made, a, f);
}

void mt_utf8(struct made *made, str a, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    i64 n = 0;
    if (out) {
        copy(out, &n, bytes_of(a), a.len);
        *f = utf8_valid((const char *)out, n, NULL) ? *f : FAULT_UTF8;
    }
}

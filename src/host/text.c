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

void mt_quote_literal(struct made *made, str a, u8 *f) {
    const u8 *p = bytes_of(a);
    bool slash = a.len && memchr(p, '\\', a.len);
    u8 *out = made_room(made, 2 * (i64)a.len + 3, f);
    i64 n = 0;
    if (!out) {
        return;
    }
    if (slash) {
        out[n++] = 'E';
    }
    out[n++] = '\'';
    for (u32 i = 0; i < a.len; i++) {
        if (p[i] == '\'' || p[i] == '\\') {
            out[n++] = p[i];
        }
        out[n++] = p[i];
    }
    out[n++] = '\'';
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

/* A copy of the bytes, of which byte `at` is to change; NULL when there is none. */
static u8 *copy_to_change(struct made *made, str a, i64 at, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    if (!out || at < 0 || at >= (i64)a.len) {
        *f = out ? FAULT_SUBSCRIPT : *f;
        return NULL;
    }
    memcpy(out, bytes_of(a), a.len);
    made->len = a.len;
    return out;
}

void mt_set_byte(struct made *made, str a, i32 at, i32 value, u8 *f) {
    u8 *out = copy_to_change(made, a, at, f);
    if (out) {
        out[at] = (u8)value;
    }
}

void mt_set_bit(struct made *made, str a, i64 at, i32 value, u8 *f) {
    u8 *out = copy_to_change(made, a, at < 0 ? -1 : at >> 3, f);
    if (out && (value == 0 || value == 1)) {
        u8 bit = (u8)(1 << (at & 7));
        out[at >> 3] = (u8)(value ? out[at >> 3] | bit : out[at >> 3] & ~bit);
    } else if (out) {
        *f = FAULT_BIT_VALUE;
    }
}

/* hex, base64, escape */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static i64 write_base64(u8 *out, const u8 *p, i64 len) {
    i64 n = 0, line = 0;
    for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 3); i += 3) {
        u32 bits = (u32)p[i] << 16 | (i + 1 < len ? (u32)p[i + 1] << 8 : 0u) |
                   (i + 2 < len ? (u32)p[i + 2] : 0u);
        if (line == 76) {
            out[n++] = '\n';
            line = 0;
        }
        for (i32 k = 0; k < 4; k++) {
            bool there = i + k <= len;
            out[n++] = there ? (u8)base64_digits[bits >> (18 - 6 * k) & 63] : '=';
        }
        line += 4;
    }
    return n;
}

static i64 write_escape(u8 *out, const u8 *p, i64 len) {
    i64 n = 0;
    for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 1); i++) {
        if (p[i] == '\\') {
            out[n++] = '\\';
            out[n++] = '\\';
        } else if (p[i] == 0 || p[i] >= 128) {
            out[n++] = '\\';
            out[n++] = (u8)('0' + (p[i] >> 6));
            out[n++] = (u8)('0' + (p[i] >> 3 & 7));
            out[n++] = (u8)('0' + (p[i] & 7));
        } else {
            out[n++] = p[i];
        }
    }
    return n;
}

void mt_encode(struct made *made, str a, str b, u8 *f) {
    struct sv how = sv_of(b);
    bool hex = sv_eq_nocase(how, SV("hex")), base64 = sv_eq_nocase(how, SV("base64"));
    i64 len = a.len;
    u8 *out = made_room(made, hex ? 2 * len : base64 ? (len + 2) / 3 * 4 + len / 57 : 4 * len, f);
    if (!out) {
        return;
    }
    if (hex) {
        static const char digits[] = "0123456789abcdef";
        for (u32 i = 0; i < a.len; i++) {
            out[2 * i] = (u8)digits[bytes_of(a)[i] >> 4];
            out[2 * i + 1] = (u8)digits[bytes_of(a)[i] & 15];
        }
        made->len = 2 * (i64)a.len;
    } else if (base64) {
        made->len = write_base64(out, bytes_of(a), a.len);
    } else if (sv_eq_nocase(how, SV("escape"))) {
        made->len = write_escape(out, bytes_of(a), a.len);
    } else {
        made->len = 0;
        *f = FAULT_ENCODING;
    }
}

static bool read_base64(u8 *out, struct sv s, i64 *out_len) {
    u32 bits = 0;
    i32 have = 0, pads = 0;
    i64 n = 0;
    for (i64 i = 0; i < s.len && !stop_due((u64)i, (u64)i + 1); i++) {
        char c = s.ptr[i];
        const char *digit = c ? strchr(base64_digits, c) : NULL;
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            continue;
        }
        if (c == '=' && have >= 2) {
            pads++;
            bits <<= 6;
        } else if (digit && !pads) {
            bits = bits << 6 | (u32)(digit - base64_digits);
        } else {
            return false;
        }
        if (++have == 4) {
            for (i32 k = 0; k < 3 - pads; k++) {
                out[n++] = (u8)(bits >> (16 - 8 * k));
            }
            have = 0;
            bits = 0;
        }
    }
    *out_len = n;
    return have == 0;
}

void mt_decode(struct made *made, str a, str b, u8 *f) {
    struct sv how = sv_of(b), s = sv_of(a);
    u8 *out = made_room(made, (i64)a.len + 4, f);
    if (!out) {
        return;
    }
    made->len = 0;
    if (sv_eq_nocase(how, SV("hex"))) {
        char *text = (char *)out; /* behind \x, in place */
        i64 n = 0;
        u8 fault = FAULT_NONE;
        for (i64 i = 0; i + 1 < s.len && !fault && !stop_due((u64)i, (u64)i + 2); i += 2) {
            char pair[4] = {'\\', 'x', s.ptr[i], s.ptr[i + 1]};
            u8 byte[4];
            i64 len = 0;
            fault = value_parse_bytes((struct sv){pair, 4}, byte, &len);
            text[n++] = (char)byte[0];
        }
        fault = !fault && (s.len & 1) ? FAULT_HEX : fault;
        made->len = fault ? 0 : n;
        *f = fault ? fault : *f;
    } else if (sv_eq_nocase(how, SV("base64"))) {
        *f = read_base64(out, s, &made->len) ? *f : FAULT_BASE64;
    } else if (sv_eq_nocase(how, SV("escape"))) {
        u8 fault = s.len >= 2 && s.ptr[0] == '\\' && s.ptr[1] == 'x'
                       ? FAULT_TEXT_BYTES
                       : value_parse_bytes(s, out, &made->len);
        *f = fault ? fault : *f;
    } else {
        *f = FAULT_ENCODING;
    }
}

void mt_utf8(struct made *made, str a, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    i64 n = 0;
    if (out) {
        copy(out, &n, bytes_of(a), a.len);
        *f = utf8_valid((const char *)out, n, NULL) ? *f : FAULT_UTF8;
    }
}

/* LIKE */

static void like_escape(struct made *made, str a, str b, bool bytes, u8 *f) {
    const u8 *p = bytes_of(a);
    u8 *out = made_room(made, 2 * (i64)a.len + 1, f);
    i64 n = 0;
    if (!out) {
        return;
    }
    if ((bytes ? (i32)b.len : fn_length(b)) > 1) {
        *f = FAULT_ESCAPE;
        made->len = 0;
        return;
    }
    for (u32 i = 0; i < a.len;) {
        bool escaped = b.len > 0 && i + b.len <= a.len && memcmp(p + i, bytes_of(b), b.len) == 0;
        if (escaped) {
            i += b.len;
            if (i >= a.len) {
                *f = FAULT_LIKE_ESCAPE;
                break;
            }
            out[n++] = '\\';
        } else if (p[i] == '\\') {
            out[n++] = '\\';
        }
        out[n++] = p[i++];
    }
    made->len = n;
}

void mt_like_escape(struct made *made, str a, str b, u8 *f) {
    like_escape(made, a, b, false, f);
}

void mt_like_escape_bytes(struct made *made, str a, str b, u8 *f) {
    like_escape(made, a, b, true, f);
}

/* text.c: functions that make text, for WF_OPS_TEXT of op.def: padding, replacing, quoting,
 * encoding.
 *
 * Every body asks once for as much room as it can need and reports what it used. Characters are
 * UTF-8; positions and lengths count characters. */
#define _GNU_SOURCE
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

/* A text again and again: what is there already is copied, up to a megabyte at a time. */
static void refill(u8 *out, str unit, i64 bytes) {
    enum { STRETCH = 1 << 20 };
    i64 have = MIN_OF((i64)unit.len, bytes), step = have;
    if (have > 0) {
        memcpy(out, bytes_of(unit), (size_t)have);
    }
    while (have < bytes && !stop_asked()) {
        i64 more = MIN_OF(step, bytes - have);
        memcpy(out + have, out, (size_t)more);
        have += more;
        step = step < STRETCH ? have : step;
    }
}

static u32 char_count(str s) {
    return (u32)fn_length(s);
}

void mt_concat(struct made *made, str a, str b, u8 *f) {
    u8 *out = made_room(made, (i64)a.len + b.len, f);
    i64 n = 0;
    if (out) {
        copy(out, &n, bytes_of(a), a.len);
        copy(out, &n, bytes_of(b), b.len);
    }
}

void mt_pad(struct made *made, str a, i32 b, u8 *f) {
    i64 blanks = MAX_OF((i64)b - char_count(a), 0);
    u8 *out = made_room(made, (i64)a.len + blanks, f);
    i64 n = 0;
    if (out) {
        copy(out, &n, bytes_of(a), a.len);
        memset(out + n, ' ', (size_t)blanks);
    }
}

/* a cut to b characters, or filled up with c again and again on one side. */
static void pad(struct made *made, str a, i32 b, str c, bool left, u8 *f) {
    i64 have = char_count(a), fill = char_count(c);
    i64 want = MAX_OF(b, 0);
    i64 missing = fill ? MAX_OF(want - have, 0) : 0;
    u32 kept = want < have ? fn_skip(bytes_of(a), 0, a.len, want) : a.len;
    i64 rounds = fill ? missing / fill : 0;
    u32 rest = fill ? fn_skip(bytes_of(c), 0, c.len, missing % fill) : 0;
    rest = missing % MAX_OF(fill, 1) ? rest : 0;
    u8 *out = made_room(made, (i64)kept + rounds * c.len + rest, f);
    i64 n = 0;
    if (!out) {
        return;
    }
    if (!left) {
        copy(out, &n, bytes_of(a), kept);
    }
    refill(out + n, c, rounds * c.len + rest);
    n += rounds * c.len + rest;
    if (left) {
        copy(out, &n, bytes_of(a), kept);
    }
}

void mt_lpad(struct made *made, str a, i32 b, str c, u8 *f) {
    pad(made, a, b, c, true, f);
}

void mt_rpad(struct made *made, str a, i32 b, str c, u8 *f) {
    pad(made, a, b, c, false, f);
}

void mt_repeat(struct made *made, str a, i32 b, u8 *f) {
    i64 times = a.len ? MAX_OF(b, 0) : 0;
    u8 *out = made_room(made, times * (i64)a.len, f);
    if (out) {
        refill(out, a, times * (i64)a.len);
    }
}

/* fn_find for long texts: in time that grows with the distance to the hit, whatever b is. */
static u32 find(str a, str b, u32 from) {
    enum { STRETCH_MIN = 64, STRETCH_MAX = 1 << 20 };
    const u8 *p = bytes_of(a);
    i64 at = from, stretch = STRETCH_MIN;
    while (at + b.len <= a.len) {
        i64 bytes = MIN_OF(a.len - at, stretch + b.len - 1);
        const u8 *hit = memmem(p + at, (size_t)bytes, bytes_of(b), b.len);
        if (hit) {
            return (u32)(hit - p);
        }
        at += stretch;
        stretch = MIN_OF(stretch * 2, STRETCH_MAX);
        if (stretch == STRETCH_MAX && stop_asked()) {
            break;
        }
    }
    return a.len + 1;
}

void mt_replace(struct made *made, str a, str b, str c, u8 *f) {
    i64 hits = 0, n = 0;
    u32 from = 0;
    for (u32 at; b.len && (at = find(a, b, from)) <= a.len; hits++) {
        if (stop_due(from, at + b.len)) {
            return;
        }
        from = at + b.len;
    }
    u8 *out = made_room(made, (i64)a.len + hits * ((i64)c.len - b.len), f);
    from = 0;
    for (i64 i = 0; out && i < hits; i++) {
        u32 at = find(a, b, from);
        if (at > a.len) { /* told to stop */
            return;
        }
        copy(out, &n, bytes_of(a) + from, at - from);
        copy(out, &n, bytes_of(c), c.len);
        from = at + b.len;
    }
    if (out) {
        copy(out, &n, bytes_of(a) + from, a.len - from);
    }
}

void mt_split_parts(struct made *made, str a, str b, u8 *f) {
    static const char mark[] = "\xff";
    mt_replace(made, a, b, (str){.addr = (u64)(size_t)mark, .len = 1}, f);
}

void mt_reverse(struct made *made, str a, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    const u8 *p = bytes_of(a);
    for (u32 at = 0, end; out && at < a.len; at = end) {
        end = fn_char_end(p, at, a.len);
        memcpy(out + (a.len - end), p + at, end - at);
        if (stop_due(at, end)) {
            return;
        }
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

static i64 put_code_point(u8 *out, u32 c) {
    if (c < 0x80) {
        out[0] = (u8)c;
        return 1;
    }
    i32 more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const u8 lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (u8)(lead[more] | c >> (6 * more));
    for (i32 i = 1; i <= more; i++) {
        out[i] = (u8)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    }
    return more + 1;
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
        n += first ? 0 : put_code_point(out + n, code);
    }
    *f = first ? FAULT_UNISTR : *f;
    made->len = n;
}

/* Bytes that a character of the text can take; 1 for an empty one. */
static i64 longest_char(str s) {
    const u8 *p = bytes_of(s);
    u32 most = 1;
    for (u32 at = 0, end; at < s.len && most < 4; at = end) {
        end = fn_char_end(p, at, s.len);
        most = MAX_OF(most, end - at);
    }
    return most;
}

void mt_translate(struct made *made, str a, str b, str c, u8 *f) {
    const u8 *p = bytes_of(a), *from = bytes_of(b), *to = bytes_of(c);
    u8 *out = made_room(made, (i64)a.len * longest_char(c), f);
    i64 n = 0;
    u64 work = 0;
    for (u32 at = 0; out && at < a.len;) {
        u32 end = fn_char_end(p, at, a.len), i = 0, k = 0;
        bool hit = false;
        while (i < b.len && !hit) { /* i and k step through b and c together */
            u32 next = fn_char_end(from, i, b.len);
            hit = next - i == end - at && memcmp(from + i, p + at, end - at) == 0;
            if (!hit) {
                i = next;
                k = k < c.len ? fn_char_end(to, k, c.len) : k;
            }
        }
        if (!hit) {
            copy(out, &n, p + at, end - at);
        } else if (k < c.len) {
            copy(out, &n, to + k, fn_char_end(to, k, c.len) - k);
        }
        at = end;
        if (stop_due(work, work + i + 1)) {
            return;
        }
        work += i + 1;
    }
    made->len = n;
}

static i64 put_char(u8 *out, u32 c) {
    if (c < 0x80) {
        out[0] = (u8)c;
        return 1;
    }
    i64 more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const u8 leads[4] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (u8)(leads[more] | c >> (6 * more));
    for (i64 i = 1; i <= more; i++) {
        out[i] = (u8)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    }
    return more + 1;
}

void mt_initcap(struct made *made, str a, u8 *f) {
    const u8 *p = bytes_of(a);
    i64 chars = char_count(a);
    u8 *out = made_room(made, chars == a.len ? chars : chars * 4, f);
    i64 n = 0;
    bool inside = false;
    for (u32 at = 0; out && at < a.len;) {
        u32 end = fn_char_end(p, at, a.len);
        u32 c = (u32)fn_ascii(fn_part(a, at, end));
        bool word = char_in_class(CLASS_ALNUM, c);
        n += put_char(out + n, inside ? case_lower(c) : case_upper(c));
        inside = word;
        if (stop_due(at, end)) {
            return;
        }
        at = end;
    }
    made->len = n;
}

void mt_chr(struct made *made, i32 a, u8 *f) {
    u8 *out = made_room(made, 4, f);
    bool surrogate = a >= 0xd800 && a <= 0xdfff;
    if (!out || a <= 0 || a > 0x10ffff || surrogate) {
        *f = a == 0 ? FAULT_CHR_NULL : a < 0 ? FAULT_CHR_NEGATIVE : out ? FAULT_CHR_RANGE : *f;
        made->len = 0;
        return;
    }
    made->len = put_char(out, (u32)a);
}

void mt_to_hex(struct made *made, i64 a, u8 *f) {
    static const char digits[] = "0123456789abcdef";
    char buf[16];
    i32 at = 16;
    u64 left = (u64)a;
    do {
        buf[--at] = digits[left & 15];
        left >>= 4;
    } while (left);
    u8 *out = made_room(made, 16 - at, f);
    if (out) {
        memcpy(out, buf + at, (size_t)(16 - at));
    }
}

/* RFC 1321. */
static void md5_block(u32 state[4], const u8 *block) {
    static const u8 shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const u32 sines[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
        0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
        0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
        0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
        0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
        0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
        0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
        0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
        0xeb86d391};
    u32 word[16], a = state[0], b = state[1], c = state[2], d = state[3];
    memcpy(word, block, 64);
    for (u32 i = 0; i < 64; i++) {
        u32 mix = i < 16   ? (b & c) | (~b & d)
                  : i < 32 ? (d & b) | (~d & c)
                  : i < 48 ? b ^ c ^ d
                           : c ^ (b | ~d);
        u32 k = i < 16 ? i : i < 32 ? (5 * i + 1) & 15 : i < 48 ? (3 * i + 5) & 15 : 7 * i & 15;
        u32 turn = shifts[i / 16][i & 3], sum = a + mix + sines[i] + word[k];
        a = d;
        d = c;
        c = b;
        b += sum << turn | sum >> (32 - turn);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void mt_md5(struct made *made, str a, u8 *f) {
    static const char digits[] = "0123456789abcdef";
    u32 state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    u8 tail[128] = {0};
    const u8 *p = bytes_of(a);
    u32 whole = a.len / 64 * 64, rest = a.len - whole;
    for (u32 at = 0; at < whole && !stop_due(at, at + 64); at += 64) {
        md5_block(state, p + at);
    }
    if (rest) {
        memcpy(tail, p + whole, rest);
    }
    tail[rest] = 0x80;
    u32 blocks = rest < 56 ? 1 : 2;
    u64 bits = (u64)a.len * 8;
    memcpy(tail + blocks * 64 - 8, &bits, 8);
    for (u32 i = 0; i < blocks; i++) {
        md5_block(state, tail + 64 * i);
    }
    u8 *out = made_room(made, 32, f);
    for (i32 i = 0; out && i < 16; i++) {
        u8 byte = (u8)(state[i / 4] >> (8 * (i % 4)));
        out[2 * i] = (u8)digits[byte >> 4];
        out[2 * i + 1] = (u8)digits[byte & 15];
    }
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

/* As in PostgreSQL a lone escape at the pattern's end is an error where matching comes to it. */
static b8 like_checked(str a, str b, i32 mode, u8 *f) {
    b8 r = fn_like(a, b, mode);
    *f = r == 2 ? FAULT_LIKE_ESCAPE : *f;
    return r == 1;
}

b8 fn_like_checked(str a, str b, u8 *f) {
    return like_checked(a, b, LIKE_CHARS, f);
}

b8 fn_ilike_checked(str a, str b, u8 *f) {
    return like_checked(a, b, LIKE_NOCASE, f);
}

b8 fn_like_bytes(str a, str b, u8 *f) {
    return like_checked(a, b, LIKE_BYTES, f);
}

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

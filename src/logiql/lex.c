/* lex.c: LogiQL text to tokens. */
#include <stdarg.h>
#include <stdio.h>

#include "logiql/logiql_int.h"

void lq_mistake(struct arena *arena, lq_mistakes *mistakes, wf_status code, i32 position,
                const char *hint, const char *format, ...) {
    if (mistakes->count >= MISTAKES_MOST) {
        return;
    }
    char message[400];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    struct lq_mistake mistake = {code, position, arena_printf(arena, "%s", message),
                                 hint ? arena_printf(arena, "%s", hint) : NULL};
    VEC_PUSH(arena, mistakes, mistake);
}

bool lq_is_qualified(struct sv name) {
    return memchr(name.ptr, ':', (size_t)name.len) != NULL;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool is_first(int c) { /* bytes of other alphabets are letters */
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_inner(int c) { /* programs that others generate have $ within names */
    return is_first(c) || is_digit(c) || c == '$';
}

/* The byte `ahead` of the next one; -1 behind the end. */
static int peek(const struct lq_lexer *l, i64 ahead) {
    return l->at + ahead < l->text.len ? (u8)l->text.ptr[l->at + ahead] : -1;
}

static bool sees(const struct lq_lexer *l, const char *what) {
    i64 len = (i64)strlen(what);
    return l->at + len <= l->text.len && memcmp(l->text.ptr + l->at, what, (size_t)len) == 0;
}

static void skip_line(struct lq_lexer *l) {
    while (peek(l, 0) >= 0 && peek(l, 0) != '\n') {
        l->at++;
    }
}

static void skip_comment(struct lq_lexer *l) {
    i64 start = l->at;
    l->at += 2;
    while (peek(l, 0) >= 0 && !sees(l, "*/")) {
        l->at++;
    }
    if (peek(l, 0) < 0) {
        lq_mistake(l->arena, l->mistakes, ERR_SYNTAX, (i32)start, "End it with */.",
                   "unterminated comment");
    } else {
        l->at += 2;
    }
}

/* A preprocessor's mark: # and a blank, a number or `line`, where a line begins. */
static bool is_line_mark(const struct lq_lexer *l) {
    i64 before = l->at;
    while (before > 0 && (l->text.ptr[before - 1] == ' ' || l->text.ptr[before - 1] == '\t')) {
        before--;
    }
    bool begins = before == 0 || l->text.ptr[before - 1] == '\n';
    return begins && (peek(l, 1) == ' ' || sees(l, "#line"));
}

static void skip_blank(struct lq_lexer *l) {
    for (;;) {
        int c = peek(l, 0);
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            l->at++;
        } else if (sees(l, "//") || (c == '#' && is_line_mark(l))) {
            skip_line(l);
        } else if (sees(l, "/*")) {
            skip_comment(l);
        } else {
            return;
        }
    }
}

static struct lq_token token(const struct lq_lexer *l, u8 kind, i64 start, struct sv text) {
    return (struct lq_token){kind, (i32)start, (i32)l->at, text};
}

static struct sv taken(const struct lq_lexer *l, i64 start) {
    return (struct sv){l->text.ptr + start, l->at - start};
}

static void take_word(struct lq_lexer *l) {
    while (is_inner(peek(l, 0))) {
        l->at++;
    }
}

/* Parts with single colons between them. */
static void take_name(struct lq_lexer *l) {
    take_word(l);
    while (peek(l, 0) == ':' && is_first(peek(l, 1))) {
        l->at++;
        take_word(l);
    }
}

static struct lq_token number(struct lq_lexer *l) {
    i64 start = l->at;
    u8 kind = TOKEN_INT;
    while (is_digit(peek(l, 0))) {
        l->at++;
    }
    if (peek(l, 0) == '.' && is_digit(peek(l, 1))) {
        kind = TOKEN_DECIMAL;
        l->at++;
        while (is_digit(peek(l, 0))) {
            l->at++;
        }
    }
    i64 sign = peek(l, 1) == '+' || peek(l, 1) == '-' ? 1 : 0;
    if ((peek(l, 0) == 'e' || peek(l, 0) == 'E') && is_digit(peek(l, 1 + sign))) {
        kind = TOKEN_FLOAT;
        l->at += 1 + sign;
        while (is_digit(peek(l, 0))) {
            l->at++;
        }
    }
    struct sv text = taken(l, start);
    if ((peek(l, 0) == 'f' || peek(l, 0) == 'd') && !is_inner(peek(l, 1))) {
        kind = peek(l, 0) == 'f' ? TOKEN_FLOAT : TOKEN_DECIMAL;
        l->at++;
    } else if (is_first(peek(l, 0))) {
        i64 bad = l->at;
        take_word(l);
        lq_mistake(l->arena, l->mistakes, ERR_SYNTAX, (i32)bad, "separate a number from a name",
                   "trailing junk after a number: \"%.*s\"", (int)MIN_OF(l->at - start, 60),
                   l->text.ptr + start);
    }
    return token(l, kind, start, text);
}

static i32 hex_digit(int c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static void append_char(struct text *out, u32 code) {
    char bytes[4];
    i64 len = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    for (i64 i = len - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (char)(len == 1 ? code : len == 2 ? 0xc0 | code : 0xe0 | code);
    text_append(out, (struct sv){bytes, len});
}

/* What a backslash and the next characters stand for. */
static void take_escape(struct lq_lexer *l, struct text *out) {
    static const char plain[] = "n\nt\tr\rb\bf\f\"\"\'\'\\\\/";
    i64 start = l->at++;
    int c = peek(l, 0);
    for (i64 i = 0; i + 1 < (i64)sizeof plain - 1; i += 2) {
        if (c == plain[i]) {
            text_append(out, (struct sv){plain + i + 1, 1});
            l->at++;
            return;
        }
    }
    u32 code = 0;
    bool good = c == 'u';
    for (i64 i = 1; i <= 4 && good; i++) {
        i32 digit = hex_digit(peek(l, i));
        good = digit >= 0;
        code = code * 16 + (u32)MAX_OF(digit, 0);
    }
    if (!good || code == 0 || (code >= 0xd800 && code < 0xe000)) {
        lq_mistake(
            l->arena, l->mistakes, ERR_SYNTAX, (i32)start,
            "known are \\n \\t \\r \\b \\f \\\" \\' \\\\ and \\u with four hexadecimal digits",
            "unknown escape in a string");
        return;
    }
    append_char(out, code);
    l->at += 5;
}

/* One string; adjacent ones are joined by the caller. */
static void take_string(struct lq_lexer *l, struct text *out) {
    i64 start = l->at;
    bool raw = sees(l, "\"\"\"");
    l->at += raw ? 3 : 1;
    while (peek(l, 0) >= 0 && (raw ? !sees(l, "\"\"\"") : peek(l, 0) != '"')) {
        if (!raw && peek(l, 0) == '\n') {
            break;
        }
        if (!raw && peek(l, 0) == '\\') {
            take_escape(l, out);
        } else {
            text_append(out, (struct sv){l->text.ptr + l->at++, 1});
        }
    }
    if (peek(l, 0) != '"') {
        lq_mistake(l->arena, l->mistakes, ERR_SYNTAX, (i32)start,
                   raw ? "End it with \"\"\"."
                       : "End it with \" on the same line, or write it as \"\"\"...\"\"\".",
                   "unterminated string");
        return;
    }
    l->at += raw ? 3 : 1;
}

static struct lq_token string(struct lq_lexer *l) {
    i64 start = l->at;
    i64 end = l->at;
    struct text out;
    text_init(&out, l->arena);
    while (peek(l, 0) == '"') {
        take_string(l, &out);
        end = l->at;
        skip_blank(l);
    }
    l->at = end;
    return token(l, TOKEN_STRING, start, (struct sv){out.ptr, out.len});
}

static struct lq_token datetime(struct lq_lexer *l) {
    i64 start = l->at++;
    while (peek(l, 0) >= 0 && peek(l, 0) != '#' && peek(l, 0) != '\n') {
        l->at++;
    }
    struct sv text = {l->text.ptr + start + 1, l->at - start - 1};
    if (peek(l, 0) != '#') {
        lq_mistake(l->arena, l->mistakes, ERR_SYNTAX, (i32)start,
                   "datetimes are written as #2012-03-04# or #2012-03-04 10:11:12#",
                   "unterminated datetime");
    } else {
        l->at++;
    }
    return token(l, TOKEN_DATETIME, start, text);
}

/* Longer marks stand before those they begin with. */
static bool take_mark(struct lq_lexer *l) {
    static const char *const marks[] = {"<--", "<<", ">>", "<-", "->", "<=", ">=", "!=", "(",
                                        ")",   "[",  "]",  "{",  "}",  ",",  ";",  ":",  "=",
                                        "<",   ">",  "!",  "+",  "-",  "*",  "/",  "^",  "@"};
    for (i64 i = 0; i < COUNT_OF(marks); i++) {
        if (sees(l, marks[i])) {
            l->at += (i64)strlen(marks[i]);
            return true;
        }
    }
    return false;
}

/* Passes over what begins no token; the same again and again is one mistake. */
static void skip_strange(struct lq_lexer *l) {
    i64 start = l->at;
    do {
        l->at++;
    } while (peek(l, 0) == (u8)l->text.ptr[start]);
    lq_mistake(l->arena, l->mistakes, ERR_SYNTAX, (i32)start, NULL,
               (u8)l->text.ptr[start] > ' ' && (u8)l->text.ptr[start] < 127
                   ? "unexpected character \"%c\""
                   : "unexpected character with code %d",
               l->text.ptr[start]);
}

/* What begins at a character that is neither blank nor the end; false = nothing does. */
static bool take_token(struct lq_lexer *l, struct lq_token *out) {
    i64 start = l->at;
    int c = peek(l, 0);
    if (is_first(c)) {
        take_name(l);
        *out = token(l, TOKEN_NAME, start, taken(l, start));
    } else if (is_digit(c)) {
        *out = number(l);
    } else if (c == '"') {
        *out = string(l);
    } else if (c == '#') {
        *out = datetime(l);
    } else if (c == '?' && is_first(peek(l, 1))) {
        l->at++;
        take_word(l);
        *out = token(l, TOKEN_VARIABLE, start, taken(l, start + 1));
    } else if (c == '`' && is_first(peek(l, 1))) {
        l->at++;
        take_name(l);
        *out = token(l, TOKEN_PREDICATE, start, taken(l, start + 1));
    } else if (c == '.') {
        l->at++;
        *out = token(l, TOKEN_POINT, start, taken(l, start));
    } else if (take_mark(l)) {
        *out = token(l, TOKEN_MARK, start, taken(l, start));
    } else {
        return false;
    }
    return true;
}

struct lq_token lq_next(struct lq_lexer *l) {
    for (;;) {
        struct lq_token out;
        skip_blank(l);
        if (peek(l, 0) < 0) {
            return token(l, TOKEN_END, l->at, SV(""));
        }
        if (take_token(l, &out)) {
            return out;
        }
        skip_strange(l);
    }
}

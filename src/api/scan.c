/* scan.c: where one statement ends and the next begins, without parsing.
 *
 * Shells and script readers cut text at `;` so that a syntax error spares the statements before it,
 * and ask for another line while a statement is open. The scanner knows what can hide a semicolon:
 * quoted text and names, E'' escapes, dollar quotes, line comments and nested block comments. */
#include "api/api_int.h"

#include "logiql/logiql.h"

struct scan {
    const char *text;
    size_t len;
    size_t at;
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           ((u8)c & 0x80);
}

static char peek(const struct scan *s, size_t ahead) {
    return s->at + ahead < s->len ? s->text[s->at + ahead] : 0;
}

/* All skip functions stand on the opening character; false when the text ends inside. */
static bool skip_quoted(struct scan *s, char quote, bool escapes) {
    for (s->at++; s->at < s->len; s->at++) {
        char c = s->text[s->at];
        if (escapes && c == '\\') {
            s->at++;
        } else if (c == quote) {
            if (peek(s, 1) != quote) {
                s->at++;
                return true;
            }
            s->at++;
        }
    }
    s->at = s->len;
    return false;
}

static bool skip_block_comment(struct scan *s) {
    int depth = 0;
    while (s->at < s->len) {
        if (peek(s, 0) == '/' && peek(s, 1) == '*') {
            depth++;
            s->at += 2;
        } else if (peek(s, 0) == '*' && peek(s, 1) == '/') {
            depth--;
            s->at += 2;
            if (depth == 0) {
                return true;
            }
        } else {
            s->at++;
        }
    }
    return false;
}

static void skip_line_comment(struct scan *s) {
    while (s->at < s->len && s->text[s->at] != '\n') {
        s->at++;
    }
}

/* $tag$ … $tag$; a lone $ (as in $1) is skipped as an ordinary character. */
static bool skip_dollar(struct scan *s) {
    size_t tag = 1;
    while (is_word(peek(s, tag)) && !(tag == 1 && peek(s, 1) >= '0' && peek(s, 1) <= '9')) {
        tag++;
    }
    if (peek(s, tag) != '$') {
        s->at++;
        return true;
    }
    tag++;
    const char *mark = s->text + s->at;
    for (s->at += tag; s->at + tag <= s->len; s->at++) {
        if (memcmp(s->text + s->at, mark, tag) == 0) {
            s->at += tag;
            return true;
        }
    }
    s->at = s->len;
    return false;
}

static bool skip_token(struct scan *s) {
    char c = s->text[s->at];
    if (c == '\'' || c == '"') {
        return skip_quoted(s, c, false);
    }
    if (c == '$') {
        return skip_dollar(s);
    }
    if ((c == 'e' || c == 'E') && peek(s, 1) == '\'') {
        s->at++;
        return skip_quoted(s, '\'', true);
    }
    if (is_word(c)) {
        while (is_word(peek(s, 0)) || peek(s, 0) == '$') {
            s->at++;
        }
        return true;
    }
    s->at++;
    return true;
}

size_t wf_scan_statement(const char *text, size_t len, int *out_blank) {
    struct scan s = {text, len, 0};
    int blank = 1;
    size_t end = 0;
    while (s.at < s.len && end == 0) {
        char c = s.text[s.at];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
            s.at++;
        } else if (c == '-' && peek(&s, 1) == '-') {
            skip_line_comment(&s);
        } else if (c == '/' && peek(&s, 1) == '*') {
            if (!skip_block_comment(&s)) {
                blank = 0; /* an open comment: let the parser complain */
            }
        } else if (c == ';') {
            end = s.at + 1;
        } else {
            blank = 0;
            if (!skip_token(&s)) {
                break;
            }
        }
    }
    if (out_blank) {
        *out_blank = blank;
    }
    return end;
}

size_t wf_scan_clause(const char *text, size_t len, int *out_blank) {
    struct memory mem;
    struct arena arena;
    bool blank = true;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    size_t end = logiql_scan(&arena, (struct sv){text, (i64)len}, &blank);
    arena_fini(&arena);
    if (out_blank) {
        *out_blank = blank;
    }
    return end;
}

/* lex.c: a light scanner over SQL text, for the few questions the parse tree cannot answer.
 *
 * It knows what separates tokens (strings of all forms, quoted names, dollar quotes, nested comments),
 * not what they mean. It serves three purposes:
 *   - a bound on how deep the parser will nest, so that its thread gets enough stack before it starts
 *   - the value of integer literals that the tree's writer drops: it omits every number not above zero
 *   - positions of names the tree keeps no location for
 *
 * The bound: an expression cannot nest deeper than it has tokens. Commas separate siblings and
 * parentheses hold children, so a list is as deep as its deepest item. That keeps an INSERT of a
 * million short rows cheap. Set operations nest across commas and are counted apart. */
#include "sql/sql_int.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (c & 0x80);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Past a nested comment whose opening is at `at`. */
static i64 skip_comment(struct sv s, i64 at) {
    i64 level = 0;
    while (at < s.len) {
        if (at + 1 < s.len && s.ptr[at] == '/' && s.ptr[at + 1] == '*') {
            level++;
            at += 2;
        } else if (at + 1 < s.len && s.ptr[at] == '*' && s.ptr[at + 1] == '/') {
            at += 2;
            if (--level == 0) {
                return at;
            }
        } else {
            at++;
        }
    }
    return at;
}

static i64 skip_blank(struct sv s, i64 at) {
    while (at < s.len) {
        if (is_space(s.ptr[at])) {
            at++;
        } else if (at + 1 < s.len && s.ptr[at] == '-' && s.ptr[at + 1] == '-') {
            while (at < s.len && s.ptr[at] != '\n' && s.ptr[at] != '\r') {
                at++;
            }
        } else if (at + 1 < s.len && s.ptr[at] == '/' && s.ptr[at + 1] == '*') {
            at = skip_comment(s, at);
        } else {
            break;
        }
    }
    return at;
}

/* Past a quoted run that starts at `at`; a doubled quote stands for itself, and with `escapes` a
 * backslash protects the next byte. */
static i64 skip_quoted(struct sv s, i64 at, bool escapes) {
    char quote = s.ptr[at++];
    while (at < s.len) {
        if (escapes && s.ptr[at] == '\\') {
            at += 2;
        } else if (s.ptr[at] != quote) {
            at++;
        } else if (at + 1 < s.len && s.ptr[at + 1] == quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    return s.len;
}

/* Past $tag$ … $tag$ when one starts at `at`, else `at`. */
static i64 skip_dollar(struct sv s, i64 at) {
    i64 close = at + 1;
    while (close < s.len && s.ptr[close] != '$' && is_word(s.ptr[close])) {
        close++;
    }
    bool digit = close > at + 1 && s.ptr[at + 1] >= '0' && s.ptr[at + 1] <= '9';
    if (close >= s.len || s.ptr[close] != '$' || digit) {
        return at;
    }
    i64 tag_len = close + 1 - at;
    for (i64 i = close + 1; i + tag_len <= s.len; i++) {
        if (s.ptr[i] == '$' && memcmp(s.ptr + i, s.ptr + at, (size_t)tag_len) == 0) {
            return i + tag_len;
        }
    }
    return s.len;
}

bool lex_next(struct sv script, i64 *io_at, struct sv *out) {
    i64 at = skip_blank(script, *io_at);
    if (at >= script.len) {
        *io_at = script.len;
        return false;
    }
    i64 start = at;
    char c = script.ptr[at];
    bool escapes = (c == 'e' || c == 'E') && at + 1 < script.len && script.ptr[at + 1] == '\'';
    if (escapes) {
        at = skip_quoted(script, at + 1, true);
    } else if (c == '\'' || c == '"') {
        at = skip_quoted(script, at, false);
    } else if (c == '$' && skip_dollar(script, at) > at) {
        at = skip_dollar(script, at);
    } else if (is_word(c)) {
        while (at < script.len && is_word(script.ptr[at])) {
            at++;
        }
    } else {
        at++;
    }
    *io_at = at;
    *out = (struct sv){script.ptr + start, at - start};
    return true;
}

/* Names */

bool lex_is_name(struct sv token, const char *name) {
    char bare[NAME_BYTES];
    struct sv want = sv_from(name);
    bool quoted = token.len > 2 && token.ptr[0] == '"';
    i64 len = 0;
    for (i64 i = quoted; i < token.len - quoted; i++, len++) {
        if (len < NAME_BYTES) {
            bare[len] = token.ptr[i];
        }
        i += quoted && token.ptr[i] == '"'; /* a doubled one */
    }
    if (len > NAME_BYTES) { /* not within a character, of at most four bytes */
        len = want.len > NAME_BYTES - 4 ? MIN_OF(want.len, NAME_BYTES) : NAME_BYTES;
    }
    struct sv have = {bare, len};
    return quoted ? sv_eq(have, want) : sv_eq_nocase(have, want);
}

bool lex_names(struct sv text, const char *name) {
    struct sv token;
    for (i64 at = 0; lex_next(text, &at, &token);) {
        if (lex_is_name(token, name)) {
            return true;
        }
    }
    return false;
}

/* Whether a word stands where an expression has a column: it is not called, no type, no field. */
static bool stands_for_column(struct sv script, i64 at, const struct sv before[2]) {
    struct sv next = {"", 0};
    (void)lex_next(script, &at, &next);
    bool called = next.len > 0 && next.ptr[0] == '(';
    bool typed = next.len > 0 && next.ptr[0] == '\''; /* date '2024-01-01' */
    bool type = sv_eq(before[1], SV(":")) || sv_eq_nocase(before[1], SV("as"));
    bool field = sv_eq(before[1], SV("(")) && sv_eq_nocase(before[0], SV("extract"));
    return !called && !typed && !type && !field;
}

bool lex_column(struct sv script, const char *name, i64 *io_at, struct sv *out) {
    struct sv before[2] = {{"", 0}, {"", 0}};
    for (i64 at = 0; lex_next(script, &at, out); before[0] = before[1], before[1] = *out) {
        if (at > *io_at && lex_is_name(*out, name) &&
            (out->ptr[0] == '"' || stands_for_column(script, at, before))) {
            *io_at = at;
            return true;
        }
    }
    return false;
}

/* What is known of one list between parentheses. */
struct level {
    i32 own;   /* tokens of the current item */
    i32 child; /* deepest list inside it */
    i32 item;  /* deepest item so far */
    i32 sets;  /* set operations */
};

static void end_item(struct level *level) {
    level->item = MAX_OF(level->item, level->own + level->child);
    level->own = 0;
    level->child = 0;
}

i32 lex_depth(struct arena *arena, struct sv script) {
    VEC(struct level) levels = {0};
    struct level top = {0};
    i64 at = 0;
    struct sv token;
    while (lex_next(script, &at, &token)) {
        char c = token.ptr[0];
        top.own++;
        if (c == '(' || c == '[') {
            VEC_PUSH(arena, &levels, top);
            top = (struct level){0};
        } else if ((c == ')' || c == ']') && levels.count > 0) {
            end_item(&top);
            i32 depth = top.item + 2 * top.sets;
            top = levels.items[--levels.count];
            top.child = MAX_OF(top.child, depth);
        } else if (c == ',' || c == ';') {
            end_item(&top);
        } else if (sv_eq_nocase(token, SV("union")) || sv_eq_nocase(token, SV("except")) ||
                   sv_eq_nocase(token, SV("intersect"))) {
            top.sets++;
        }
    }
    i32 depth = 0;
    for (;;) {
        end_item(&top);
        depth += top.item + 2 * top.sets; /* an open list may be the deepest part of its parent */
        if (levels.count == 0) {
            return depth;
        }
        top = levels.items[--levels.count];
    }
}

i64 lex_integer(struct sv script, i64 at) {
    struct sv token;
    while (at >= 0 && lex_next(script, &at, &token)) {
        char c = token.ptr[0];
        if (c >= '0' && c <= '9') {
            i64 value = 0;
            for (i64 i = 0; i < token.len && token.ptr[i] >= '0' && token.ptr[i] <= '9'; i++) {
                value = MIN_OF(value * 10 + (token.ptr[i] - '0'), (i64)1 << 40);
            }
            return -value;
        }
        if (c != '-' && c != '(') {
            return 0;
        }
    }
    return 0;
}

/* complete.c: how a statement can go on at the cursor, for shells.
 *
 * The text is seldom a whole statement, so nothing is parsed. Tokens around the cursor tell what is
 * expected there: a table, a column, a setting, a type, a file. The FROM lists of the query the
 * cursor is in, and of those around it, tell which columns there are. What stands behind the cursor
 * counts, too: `select | from t` knows t. Columns of subqueries and WITH queries are the names
 * their select lists give, as far as those can be seen from the text. */
#include "sql/complete_int.h"

/* --- tokens --- */

static bool is_quoted(struct sv token) {
    return token.len > 0 && token.ptr[0] == '"';
}

bool complete_is_name(struct sv token) {
    char c = token.len > 0 ? token.ptr[0] : 0;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) || c == '"';
}

bool complete_is(const struct completion *c, i64 i, const char *word) {
    return i >= 0 && i < c->tokens.count && sv_eq_nocase(c->tokens.items[i], sv_from(word));
}

bool complete_among(const struct completion *c, i64 i, const char *words) {
    struct sv list = sv_from(words);
    i64 at = 0;
    struct sv word;
    while (i >= 0 && i < c->tokens.count && lex_next(list, &at, &word)) {
        if (sv_eq_nocase(c->tokens.items[i], word)) {
            return true;
        }
    }
    return false;
}

/* A name as the catalog has it. */
const char *complete_name(struct completion *c, i64 i) {
    struct sv token = c->tokens.items[i];
    char *out = arena_alloc(c->arena, token.len + 1);
    i64 len = 0;
    for (i64 k = is_quoted(token); k < token.len; k++) {
        char ch = token.ptr[k];
        if (is_quoted(token) && ch == '"') {
            k++; /* the end, or a doubled one */
            if (k >= token.len) {
                break;
            }
        }
        out[len++] = !is_quoted(token) && ch >= 'A' && ch <= 'Z' ? (char)(ch + 32) : ch;
    }
    out[len] = 0;
    return out;
}

i64 complete_close(const struct completion *c, i64 i, i64 hi) {
    i64 depth = 0;
    for (; i < hi; i++) {
        depth += complete_is(c, i, "(") - complete_is(c, i, ")");
        if (depth == 0) {
            return i;
        }
    }
    return hi;
}

/* Tokens of the statement the cursor is in; the word at the cursor is apart. False inside comments
 * and texts that are no names of files. */
static bool read_tokens(struct completion *c, struct sv text, i64 cursor) {
    char *front = arena_alloc(c->arena, cursor + 2);
    memcpy(front, text.ptr, (size_t)cursor);
    front[cursor] = 'x'; /* is it part of a word, of a quoted text, or of nothing? */
    struct sv before = {front, cursor + 1}, token = {NULL, 0};
    i64 at = 0;
    while (lex_next(before, &at, &token)) {
        if (token.len == 1 && token.ptr[0] == ';') {
            c->tokens.count = 0;
        } else if (token.ptr + token.len <= front + cursor) {
            VEC_PUSH(c->arena, &c->tokens, token);
        }
    }
    if (!token.ptr || token.ptr + token.len != front + cursor + 1) {
        return false;
    }
    c->start = token.ptr - front;
    c->prefix = (struct sv){token.ptr, token.len - 1};
    c->here = c->tokens.count;
    at = cursor;
    while (at < text.len && complete_is_name(c->prefix) && !is_quoted(c->prefix) &&
           (complete_is_name((struct sv){text.ptr + at, 1}) ||
            (text.ptr[at] >= '0' && text.ptr[at] <= '9'))) {
        at++;
    }
    while (lex_next(text, &at, &token) && !(token.len == 1 && token.ptr[0] == ';')) {
        VEC_PUSH(c->arena, &c->tokens, token);
    }
    return true;
}

/* --- what is offered --- */

static bool starts_with(struct sv prefix, const char *text, bool any_case) {
    i64 len = (i64)strlen(text);
    struct sv front = {text, MIN_OF(prefix.len, len)};
    return prefix.len <= len && (any_case ? sv_eq_nocase(front, prefix) : sv_eq(front, prefix));
}

static void offer(struct completion *c, const char *text, enum completion_kind kind) {
    c->stopped = c->stopped || c->each(c->arg, text, kind);
}

void complete_offer_name(struct completion *c, const char *name, enum completion_kind kind) {
    bool plain = *name && !(*name >= '0' && *name <= '9');
    for (const char *at = name; *at && plain; at++) {
        plain =
            (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '_' || (*at & 0x80);
    }
    if (is_quoted(c->prefix)) {
        struct sv inner = {c->prefix.ptr + 1, c->prefix.len - 1};
        if (!starts_with(inner, name, false)) {
            return;
        }
        plain = false;
    } else if (!starts_with(c->prefix, name, true)) {
        return;
    }
    offer(c, plain ? name : arena_printf(c->arena, "\"%s\"", name), kind);
}

/* In the case that the person types. */
void complete_offer_word(struct completion *c, const char *word, enum completion_kind kind) {
    bool upper = c->prefix.len > 0 && c->prefix.ptr[0] >= 'A' && c->prefix.ptr[0] <= 'Z';
    if (!starts_with(c->prefix, word, true)) {
        return;
    }
    char *out = arena_printf(c->arena, "%s", word);
    for (char *at = out; *at && upper; at++) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 32) : *at;
    }
    offer(c, out, kind);
}

static void offer_list(struct completion *c, const char *words, enum completion_kind kind) {
    struct sv list = sv_from(words), word;
    i64 at = 0;
    while (lex_next(list, &at, &word)) {
        if (word.len > 1 || word.ptr[0] != ',') {
            complete_offer_word(c, arena_sv(c->arena, word).ptr, kind);
        }
    }
}

static void offer_keywords(struct completion *c) {
    for (i64 i = 0; c->prefix.len > 0 && !is_quoted(c->prefix) && sql_keywords[i]; i++) {
        complete_offer_word(c, sql_keywords[i], COMPLETE_KEYWORD);
    }
}

static void offer_functions(struct completion *c) {
    struct sql_function f;
    for (i32 i = 0; c->prefix.len > 0 && !is_quoted(c->prefix) && sql_function(i, &f); i++) {
        if (strcmp(f.kind, "table function") != 0) {
            complete_offer_word(c, f.name, COMPLETE_FUNCTION);
        }
    }
}

static void offer_types(struct completion *c) {
#define X(A, name, type, length) complete_offer_word(c, name, COMPLETE_TYPE);
    WF_TYPE_NAMES(X, )
#undef X
}

static void offer_settings(struct completion *c) {
    for (i32 i = 0; i < setting_count(); i++) {
        complete_offer_word(c, setting_name(i), COMPLETE_SETTING);
    }
    complete_offer_word(c, "search_path", COMPLETE_SETTING);
}

static void offer_values(struct completion *c, const char *name) {
#define X(A, id, kind, value, least, most, scope, text) \
    {#id, #kind[0] == 'B' ? "on,off" : #kind[0] == 'E' ? most : ""},
    static const struct {
        const char *name;
        const char *choices;
    } settings[] = {WF_SETTINGS(X, )};
#undef X
    for (i64 i = 0; i < COUNT_OF(settings); i++) {
        if (strcmp(settings[i].name, name) == 0) {
            offer_list(c, settings[i].choices, COMPLETE_VALUE);
        }
    }
    if (strcmp(name, "search_path") == 0) {
        complete_offer_schemas(c);
    }
    complete_offer_word(c, "default", COMPLETE_KEYWORD);
}

/* --- what is expected --- */

/* Where the list between parentheses begins that token i is in. */
static i64 level_start(const struct completion *c, i64 i) {
    i64 depth = 0;
    while (i > 0 && depth >= 0) {
        i--;
        depth += complete_is(c, i, ")") - complete_is(c, i, "(");
    }
    return depth < 0 ? i + 1 : 0;
}

/* FROM that names no table: extract(year from d), a IS DISTINCT FROM b. */
static bool is_other_from(const struct completion *c, i64 i, i64 lo) {
    bool call = complete_among(c, lo - 2, "extract substring trim overlay position") &&
                complete_is(c, lo - 1, "(");
    return call || (complete_is(c, i - 1, "distinct") && complete_among(c, i - 2, "is not"));
}

/* The clause of the query that begins at lo which position `here` is in: its first word; -1 = none.
 */
static i64 clause_of(const struct completion *c, i64 lo, i64 here) {
    i64 clause = -1;
    for (i64 i = lo; i < here; i++) {
        if (complete_is(c, i, "(")) {
            i = complete_close(c, i, here);
        } else if (complete_among(c, i,
                                  "select where group having order limit offset on using set "
                                  "values returning window fetch") ||
                   (complete_is(c, i, "from") && !is_other_from(c, i, lo)) ||
                   complete_among(c, i, "join into")) {
            clause = i;
        }
    }
    return clause;
}

static bool wants_table(const struct completion *c, i64 lo) {
    i64 last = c->here - 1;
    while (complete_is(c, last, "(") && complete_among(c, last - 1, "( from join")) {
        last--;
        lo = level_start(c, last);
    }
    if (complete_is(c, last, "from")) {
        return !is_other_from(c, last, lo);
    }
    if (complete_is(c, last, "update")) {
        return !complete_among(c, last - 1, "do for on");
    }
    if (complete_is(c, last, "table")) {
        return !complete_is(c, 0, "create");
    }
    if (complete_is(c, last, "exists")) {
        return complete_is(c, last - 1, "if") && complete_among(c, 0, "drop alter");
    }
    if (complete_is(c, last, "view")) {
        return complete_among(c, 0, "drop alter");
    }
    if (complete_is(c, last, ",")) {
        i64 clause = clause_of(c, lo, c->here);
        return complete_is(c, clause, "from") ||
               (complete_among(c, 0, "drop truncate") && clause < 0);
    }
    return complete_among(c, last, "join into references summarize describe desc only lateral") ||
           (last == 0 && complete_among(c, last, "copy truncate analyze vacuum"));
}

static bool wants_file(const struct completion *c, i64 lo) {
    i64 last = c->here - 1;
    return wants_table(c, lo) || complete_among(c, last, "from to join") ||
           (complete_is(c, last, "(") && complete_among(c, last - 1, "read_csv read_trie"));
}

/* insert into t (…, copy t (…, create index on t (…: the columns of t and nothing else. */
static bool is_column_list(const struct completion *c, i64 lo) {
    i64 name = lo - 2;
    if (lo == 0 || !complete_is(c, lo - 1, "(") || name < 1) {
        return false;
    }
    name -= complete_is(c, name - 1, ".") ? 2 : 0;
    return complete_among(c, name - 1, "into copy references") ||
           (complete_is(c, 0, "create") && complete_is(c, name - 1, "on"));
}

static bool wants_type(const struct completion *c, i64 lo) {
    i64 last = c->here - 1;
    return (complete_is(c, last, ":") && complete_is(c, last - 1, ":")) ||
           (complete_is(c, last, "as") && complete_among(c, lo - 2, "cast try_cast"));
}

static void offer_setting_part(struct completion *c) {
    i64 name = complete_among(c, 1, "session local") ? 2 : 1;
    if (c->here <= name) {
        offer_settings(c);
        offer_list(c, complete_is(c, 0, "set") ? "session local" : "all", COMPLETE_KEYWORD);
    } else if (complete_is(c, 0, "set") && complete_among(c, c->here - 1, "to = ,")) {
        offer_values(c, complete_name(c, name));
    } else if (complete_is(c, 0, "set")) {
        complete_offer_word(c, "to", COMPLETE_KEYWORD);
    }
}

static void offer_expression(struct completion *c, i64 lo) {
    i64 clause = clause_of(c, lo, c->here);
    bool behind_name = complete_among(c, clause, "from join into") && c->here > clause + 1 &&
                       complete_is_name(c->tokens.items[c->here - 1]);
    bool starts = c->here == 0;
    if (!starts && !behind_name) {
        complete_offer_columns(c);
        offer_functions(c);
    }
    if (complete_is(c, 0, "explain") && complete_is(c, 1, "(") && lo == 2) {
        offer_list(c, "analyze plan program opcodes cuda", COMPLETE_KEYWORD);
    }
    offer_keywords(c);
}

FALLIBLE sql_complete(struct snapshot *snap, struct sv text, i64 cursor, complete_each each,
                      void *arg, i64 *out_start, struct error *err) {
    struct completion c = {.snap = snap, .arena = snap->arena, .each = each, .arg = arg};
    *out_start = cursor;
    if (!read_tokens(&c, text, cursor)) {
        return ERR_OK;
    }
    TRY(snapshot_open(snap, err));
    *out_start = c.start;
    i64 lo = level_start(&c, c.here), last = c.here - 1;
    if (c.prefix.len > 0 && c.prefix.ptr[0] == '\'') {
        if (wants_file(&c, lo)) {
            *out_start = c.start + 1;
            struct sv name = {c.prefix.ptr + 1, c.prefix.len - 1};
            offer(&c, arena_sv(c.arena, name).ptr, COMPLETE_FILE);
        }
    } else if (c.prefix.len > 0 && !complete_is_name(c.prefix)) {
        return ERR_OK; /* a number, a dollar quote */
    } else if (complete_is(&c, 0, "create") &&
               complete_among(&c, last, "table view schema sequence index exists")) {
        return ERR_OK; /* a name that is to be new */
    } else if (complete_is(&c, last, ".") && last > 0) {
        complete_offer_qualified(&c, last - 1);
    } else if (complete_among(&c, 0, "set reset show") && !complete_is(&c, 1, "constraints")) {
        offer_setting_part(&c);
    } else if (wants_table(&c, lo)) {
        complete_offer_tables(&c);
    } else if (is_column_list(&c, lo)) {
        complete_offer_columns_of(&c, lo - 2);
    } else if (complete_is(&c, last, "column") && complete_is(&c, 0, "alter") && last > 1) {
        complete_offer_columns_of(&c, complete_is(&c, 3, "exists") ? 4 : 2);
    } else if (wants_type(&c, lo)) {
        offer_types(&c);
    } else {
        offer_expression(&c, lo);
    }
    return arena_check(c.arena, err);
}

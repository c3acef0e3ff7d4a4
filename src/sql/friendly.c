/* friendly.c: error-directed rewriting: what the grammar refuses, brought into a form it takes.
 *
 * The parser comes first, so whatever PostgreSQL accepts keeps its meaning. When it stops, the
 * token it stopped at and the one before it choose a rule from the table at the end; the rule looks
 * around, writes a new text, and the parser tries again. Constructs that need the binder (a star
 * with exceptions, GROUP BY ALL) become calls of functions with names nobody else uses. A new text
 * is made of spans of the old one and of a few words in between, so every position can be traced
 * back (draft_position), also when a clause was moved. */
#include "sql/friendly_int.h"

#include "sql/sql_int.h"

enum { TOKEN_NONE = -1 };

struct token {
    i64 at, len;
};

struct fix {
    struct draft *draft;
    VEC(struct token) tokens;
    i64 bad; /* the token the parser stopped at; count when it was the end */
    const char *message;
    struct text text; /* the new one */
    VEC(struct piece) pieces;
};

void draft_init(struct draft *draft, struct arena *arena, struct sv text) {
    *draft = (struct draft){.arena = arena, .text = text};
    struct piece whole = {text.len, 0, 1};
    VEC_PUSH(arena, &draft->pieces, whole);
}

i64 draft_position(const struct draft *draft, i64 at) {
    i64 start = 0;
    i64 last = 0;
    for (i64 i = 0; i < draft->pieces.count; i++) {
        const struct piece *piece = &draft->pieces.items[i];
        if (at < start + piece->len) {
            return piece->from + (piece->copied ? at - start : 0);
        }
        start += piece->len;
        last = piece->copied ? piece->from + piece->len : last;
    }
    return last;
}

bool draft_is_ours(const struct draft *draft, i64 at) {
    i64 start = 0;
    for (i64 i = 0; i < draft->pieces.count; i++) {
        const struct piece *piece = &draft->pieces.items[i];
        if (at < start + piece->len) {
            return !piece->copied;
        }
        start += piece->len;
    }
    return false;
}

/* --- writing ------------------------------------------------------------------------------ */

/* The old text from one position to another. */
static void copy(struct fix *fix, i64 first, i64 end) {
    const struct draft *draft = fix->draft;
    i64 start = 0;
    for (i64 i = 0; i < draft->pieces.count; i++) {
        const struct piece *piece = &draft->pieces.items[i];
        i64 lo = MAX_OF(first, start);
        i64 hi = MIN_OF(end, start + piece->len);
        if (lo < hi) {
            struct piece part = {hi - lo, piece->from + (piece->copied ? lo - start : 0),
                                 piece->copied};
            VEC_PUSH(draft->arena, &fix->pieces, part);
            text_append(&fix->text, (struct sv){draft->text.ptr + lo, hi - lo});
        }
        start += piece->len;
    }
}

/* Words of our own, which stand for what is at `at`. */
static void put(struct fix *fix, i64 at, const char *words) {
    struct piece piece = {(i64)strlen(words), draft_position(fix->draft, at), 0};
    VEC_PUSH(fix->draft->arena, &fix->pieces, piece);
    text_append(&fix->text, sv_from(words));
}

/* --- looking around ----------------------------------------------------------------------- */

static struct sv word(const struct fix *fix, i64 i) {
    if (i < 0 || i >= fix->tokens.count) {
        return (struct sv){"", 0};
    }
    return (struct sv){fix->draft->text.ptr + fix->tokens.items[i].at, fix->tokens.items[i].len};
}

static i64 start_of(const struct fix *fix, i64 i) {
    return i < fix->tokens.count ? fix->tokens.items[i].at : fix->draft->text.len;
}

static i64 end_of(const struct fix *fix, i64 i) {
    return i < fix->tokens.count ? fix->tokens.items[i].at + fix->tokens.items[i].len
                                 : fix->draft->text.len;
}

/* Whether the token is one of the words in `list`, which are separated by blanks. The word $ is the
 * start or end of the text. */
static bool is(const struct fix *fix, i64 i, const char *list) {
    struct sv token = word(fix, i);
    token = token.len ? token : SV("$");
    while (*list) {
        i64 len = (i64)strcspn(list, " ");
        if (sv_eq_nocase(token, (struct sv){list, len})) {
            return true;
        }
        list += len;
        list += *list == ' ';
    }
    return false;
}

static bool is_name(const struct fix *fix, i64 i) {
    struct sv token = word(fix, i);
    char c = token.len ? token.ptr[0] : 0;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '"' || (c & 0x80);
}

static bool is_string(const struct fix *fix, i64 i) {
    struct sv token = word(fix, i);
    return token.len > 1 && token.ptr[0] == '\'';
}

/* The parenthesis that closes the one at `i`; the number of tokens when it is missing. */
static i64 closing(const struct fix *fix, i64 i) {
    i64 depth = 0;
    for (; i < fix->tokens.count; i++) {
        depth += is(fix, i, "(") - is(fix, i, ")");
        if (depth == 0) {
            return i;
        }
    }
    return fix->tokens.count;
}

/* The parenthesis that is open at `i`; TOKEN_NONE when none is. */
static i64 opening(const struct fix *fix, i64 i) {
    i64 depth = 0;
    for (i--; i >= 0; i--) {
        if (is(fix, i, ";")) {
            return TOKEN_NONE;
        }
        depth += is(fix, i, ")") - is(fix, i, "(");
        if (depth < 0) {
            return i;
        }
    }
    return TOKEN_NONE;
}

/* The first of the words at or after `i` on its own level, or where the level ends. */
static i64 find_level(const struct fix *fix, i64 i, const char *words) {
    i64 depth = 0;
    for (; i < fix->tokens.count; i++) {
        bool closes = is(fix, i, ")");
        if (depth == 0 && (closes || is(fix, i, ";") || is(fix, i, words))) {
            return i;
        }
        depth += is(fix, i, "(") - closes;
    }
    return i;
}

/* The nearest of the words before `i` on its own level; TOKEN_NONE when there is none. */
static i64 find_before(const struct fix *fix, i64 i, const char *words) {
    i64 depth = 0;
    for (i--; i >= 0; i--) {
        if (depth == 0 && is(fix, i, words)) {
            return i;
        }
        depth += is(fix, i, ")") - is(fix, i, "(");
        if (depth < 0 || is(fix, i, ";")) {
            return TOKEN_NONE;
        }
    }
    return TOKEN_NONE;
}

/* --- the rules ---------------------------------------------------------------------------- */

#define SETS "union except intersect"
#define CLAUSES "where group having window order limit offset fetch for " SETS

/* The statement from token `first` to the string at `i` becomes a call of a procedure. */
static bool call_with(struct fix *fix, i64 first, i64 i, const char *call) {
    if (!is_string(fix, i) || !is(fix, i + 1, "; $")) {
        return false;
    }
    copy(fix, 0, start_of(fix, first));
    put(fix, start_of(fix, first), call);
    copy(fix, start_of(fix, i), end_of(fix, i));
    put(fix, start_of(fix, i), ")");
    copy(fix, end_of(fix, i), fix->draft->text.len);
    return true;
}

/* VACUUM INTO 'file' */
static bool vacuum_into(struct fix *fix) {
    return call_with(fix, fix->bad - 1, fix->bad + 1, "CALL vacuum_into(");
}

/* EXPORT DATABASE 'folder', IMPORT DATABASE 'folder' */
static bool database_text(struct fix *fix) {
    i64 first = fix->bad - is(fix, fix->bad, "database"); /* IMPORT is a word of the grammar */
    bool exports = is(fix, first, "export");
    return is(fix, first - 1, "$ ;") && is(fix, first + 1, "database") &&
           call_with(fix, first, first + 2,
                     exports ? "CALL export_database(" : "CALL import_database(");
}

static bool token_ends(struct sv token, struct sv end) {
    return token.len > end.len && sv_eq_nocase((struct sv){token.ptr + token.len - end.len, end.len}, end);
}

/* FROM 'file' */
static bool file_name(struct fix *fix) {
    i64 i = fix->bad;
    struct sv token = word(fix, i);
    if (!is_string(fix, i) || token_ends(token, SV(".parquet'"))) {
        return false;
    }
    copy(fix, 0, start_of(fix, i));
    put(fix, start_of(fix, i), token_ends(token, SV(".trie'")) ? "read_trie(" : "read_csv(");
    copy(fix, start_of(fix, i), end_of(fix, i));
    put(fix, start_of(fix, i), ")");
    copy(fix, end_of(fix, i), fix->draft->text.len);
    return true;
}

/* Whether the token stands between the parentheses of a call of the function. */
static bool is_argument_of(const struct fix *fix, i64 i, const char *names) {
    i64 depth = 0;
    while (--i >= 0) {
        depth += is(fix, i, ")");
        if (is(fix, i, "(") && depth-- == 0) {
            return is(fix, i - 1, names);
        }
    }
    return false;
}

/* types => {'a': 'integer'}, names => ['a', 'b'] of read_csv: the text between the brackets, which
 * the binder takes apart. */
static bool list_literal(struct fix *fix) {
    i64 first = fix->bad, last = first + 1;
    const char *close = is(fix, first, "{") ? "}" : "]";
    while (last < fix->tokens.count && !is(fix, last, close) && !is(fix, last, "; { [")) {
        last++;
    }
    if (!is(fix, last, close) || !is_argument_of(fix, first, "read_csv read_csv_auto")) {
        return false;
    }
    copy(fix, 0, start_of(fix, first));
    put(fix, start_of(fix, first), "$list$");
    copy(fix, start_of(fix, first), end_of(fix, last));
    put(fix, start_of(fix, first), "$list$");
    copy(fix, end_of(fix, last), fix->draft->text.len);
    return true;
}

/* FROM t [SELECT list] … */
static bool leading_from(struct fix *fix) {
    i64 from = fix->bad;
    i64 select = find_level(fix, from, "select " SETS);
    copy(fix, 0, start_of(fix, from));
    if (!is(fix, select, "select")) {
        put(fix, start_of(fix, from), "SELECT * ");
        copy(fix, start_of(fix, from), fix->draft->text.len);
        return true;
    }
    i64 end = find_level(fix, select + 1, CLAUSES);
    copy(fix, start_of(fix, select), end_of(fix, end - 1));
    put(fix, start_of(fix, from), " ");
    copy(fix, start_of(fix, from), start_of(fix, select));
    copy(fix, end_of(fix, end - 1), fix->draft->text.len);
    return true;
}

/* The end of a list in parentheses or of a single name after token `i`; `i` when there is none. */
static i64 list_end(const struct fix *fix, i64 i) {
    if (is(fix, i + 1, "(")) {
        i64 close = closing(fix, i + 1);
        return close < fix->tokens.count ? close : i;
    }
    return is_name(fix, i + 1) ? i + 1 : i;
}

/* Writes a list between the brackets of xmlforest, which takes `expression AS name`. */
static void put_list(struct fix *fix, i64 keyword, i64 end, const char *name) {
    put(fix, start_of(fix, keyword), name);
    bool bracketed = is(fix, keyword + 1, "(");
    copy(fix, bracketed ? end_of(fix, keyword + 1) : start_of(fix, keyword + 1),
         bracketed ? start_of(fix, end) : end_of(fix, end));
    put(fix, start_of(fix, keyword), ")");
}

/* [t.]* EXCLUDE (a, b) REPLACE (e AS c) */
static bool star_but(struct fix *fix) {
    i64 at = is(fix, fix->bad, "exclude replace") ? fix->bad : fix->bad - 1;
    i64 star = at - 1;
    if (!is(fix, star, "*")) {
        return false;
    }
    i64 first = star;
    while (is(fix, first - 1, ".") && is_name(fix, first - 2)) {
        first -= 2;
    }
    copy(fix, 0, start_of(fix, first));
    put(fix, start_of(fix, first), "\"" FRIENDLY_STAR "\"(");
    if (first < star) {
        copy(fix, start_of(fix, first), end_of(fix, star));
    } else {
        put(fix, start_of(fix, star), "NULL");
    }
    i64 end = star;
    for (i32 k = 0; k < 2 && is(fix, at, "exclude replace"); k++) {
        end = list_end(fix, at);
        if (end == at) {
            return false;
        }
        put_list(fix, at, end,
                 is(fix, at, "exclude") ? ", exclude => xmlforest(" : ", replace => xmlforest(");
        at = end + 1;
    }
    put(fix, start_of(fix, star), ")");
    copy(fix, end_of(fix, end), fix->draft->text.len);
    return true;
}

static bool replace_all(struct fix *fix, i64 all) {
    copy(fix, 0, start_of(fix, all));
    put(fix, start_of(fix, all), "\"" FRIENDLY_ALL "\"()");
    copy(fix, end_of(fix, all), fix->draft->text.len);
    return true;
}

/* GROUP BY ALL: the grammar takes ALL and then wants a list. */
static bool group_by_all(struct fix *fix) {
    i64 all = fix->bad - 1;
    return is(fix, all - 1, "by") && is(fix, all - 2, "group") && replace_all(fix, all);
}

static bool order_by_all(struct fix *fix) {
    return is(fix, fix->bad - 2, "order") && replace_all(fix, fix->bad);
}

/* SUMMARIZE and DESCRIBE a table or a query. */
static bool about_query(struct fix *fix, i64 verb) {
    bool summarizes = is(fix, verb, "summarize");
    i64 end = find_level(fix, verb + 1, ";");
    if (end == verb + 1) {
        return false;
    }
    bool is_query = is(fix, verb + 1, "select from with values ( table");
    copy(fix, 0, start_of(fix, verb));
    put(fix, start_of(fix, verb), "SELECT * FROM ");
    put(fix, start_of(fix, verb),
        summarizes ? "\"" FRIENDLY_SUMMARIZE "\"" : "\"" FRIENDLY_DESCRIBE "\"");
    put(fix, start_of(fix, verb), is_query ? "((" : "((SELECT * FROM ");
    copy(fix, start_of(fix, verb + 1), end_of(fix, end - 1));
    put(fix, start_of(fix, verb), "))");
    copy(fix, end_of(fix, end - 1), fix->draft->text.len);
    return true;
}

static bool about(struct fix *fix) {
    return about_query(fix, fix->bad);
}

/* FROM (DESCRIBE t): there the grammar takes the verb for a table and stops later. */
static bool about_in_from(struct fix *fix) {
    i64 open = opening(fix, fix->bad);
    return open >= 0 && is(fix, open + 1, "summarize describe") && about_query(fix, open + 1);
}

/* CREATE OR REPLACE [TEMP] TABLE: left out here, and known to the statement by its position. */
static bool create_or_replace(struct fix *fix) {
    i64 replace = fix->bad - 1;
    if (!is(fix, replace - 1, "or") || !is(fix, replace - 2, "create")) {
        return false;
    }
    copy(fix, 0, start_of(fix, replace - 1));
    copy(fix, start_of(fix, fix->bad), fix->draft->text.len);
    VEC_PUSH(fix->draft->arena, &fix->draft->replaced,
             draft_position(fix->draft, start_of(fix, replace)));
    return true;
}

/* TRY_CAST(x AS type) */
static bool try_cast(struct fix *fix) {
    i64 open = opening(fix, fix->bad);
    i64 close = open >= 0 ? closing(fix, open) : fix->tokens.count;
    if (open < 1 || close == fix->tokens.count || !is(fix, open - 1, "try_cast")) {
        return false;
    }
    copy(fix, 0, start_of(fix, open - 1));
    put(fix, start_of(fix, open - 1), "wf_try(CAST");
    copy(fix, start_of(fix, open), end_of(fix, close));
    put(fix, start_of(fix, close), ")");
    copy(fix, end_of(fix, close), fix->draft->text.len);
    return true;
}

/* SELECT a, b, FROM t */
static bool trailing_comma(struct fix *fix) {
    i64 comma = fix->bad - 1;
    if (!is(fix, find_before(fix, comma, "select from values returning with set " CLAUSES),
            "select")) {
        return false;
    }
    copy(fix, 0, start_of(fix, comma));
    copy(fix, end_of(fix, comma), fix->draft->text.len);
    return true;
}

/* FROM (SELECT …): the grammar names the place itself. */
static bool missing_alias(struct fix *fix) {
    i64 close = closing(fix, fix->bad);
    if (!strstr(fix->message, "must have an alias") || close == fix->tokens.count) {
        return false;
    }
    copy(fix, 0, end_of(fix, close));
    put(fix, start_of(fix, fix->bad),
        arena_printf(fix->draft->arena, " AS \"?subquery %lld\"", start_of(fix, fix->bad)));
    copy(fix, end_of(fix, close), fix->draft->text.len);
    return true;
}

/* Which rule, by the token the parser stopped at and the one before it; "" is any, $ start or end.
 */
static const struct rule {
    const char *at;
    const char *before;
    bool (*apply)(struct fix *fix);
} rules[] = {
    {"(", "", missing_alias},
    {"{ [", "", list_literal},
    {"", "from join ,", file_name},
    {"from", "$ ; ( ) as all explain analyze verbose " SETS, leading_from},
    {"exclude replace", "*", star_but},
    {"", "exclude replace", star_but},
    {"", "all", group_by_all},
    {"all", "by", order_by_all},
    {"summarize describe", "$ ; ( explain analyze", about},
    {"table temp temporary unlogged", "replace", create_or_replace},
    {"as", "", try_cast},
    {"into", "vacuum", vacuum_into},
    {"export", "$ ;", database_text},
    {"database", "import", database_text},
    {"$ ; ) from into " CLAUSES, ",", trailing_comma},
    {"", "", about_in_from},
};

static bool key_fits(const struct fix *fix, i64 i, const char *list) {
    return !*list || is(fix, i, list);
}

bool friendly_rewrite(struct draft *draft, i64 at, const char *message) {
    struct fix fix = {.draft = draft, .message = message};
    i64 next = 0;
    struct sv token;
    while (lex_next(draft->text, &next, &token)) {
        struct token found = {token.ptr - draft->text.ptr, token.len};
        fix.bad += found.at < at;
        VEC_PUSH(draft->arena, &fix.tokens, found);
    }
    text_init(&fix.text, draft->arena);
    for (i64 i = 0; i < COUNT_OF(rules); i++) {
        if (key_fits(&fix, fix.bad, rules[i].at) && key_fits(&fix, fix.bad - 1, rules[i].before) &&
            rules[i].apply(&fix)) {
            draft->text = (struct sv){fix.text.ptr, fix.text.len};
            draft->pieces.items = fix.pieces.items;
            draft->pieces.count = fix.pieces.count;
            draft->pieces.cap = fix.pieces.cap;
            return true;
        }
        fix.pieces.count = 0; /* a rule may have begun to write */
        text_init(&fix.text, draft->arena);
    }
    return false;
}

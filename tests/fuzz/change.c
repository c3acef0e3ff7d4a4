/* change.c: a statement changed at random.
 *
 * The text is cut into words and written again with a few changes: words dropped, doubled, moved,
 * taken from other statements, numbers made extreme, types exchanged, clauses taken over, parts
 * nested. Most results parse, since a word is mostly replaced by one that can stand there. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <strings.h>

#include "fuzz.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

void words_cut(const char *text, struct words *out) {
    out->count = 0;
    for (const char *at = text; *at && out->count < WORDS_MAX;) {
        const char *start = at;
        if (*at == '\'' || *at == '"') {
            at = strchr(at + 1, *at);
            at = at ? at + 1 : start + strlen(start);
        } else if (is_word(*at)) {
            while (is_word(*at)) {
                at++;
            }
        } else {
            at++;
        }
        if (*start != ' ' && *start != '\n') {
            out->at[out->count] = start;
            out->len[out->count++] = (int)(at - start);
        }
    }
}

enum word_class word_class(const char *word) {
    if (*word >= '0' && *word <= '9') {
        return WORD_NUMBER;
    }
    return *word == '\'' ? WORD_STRING : is_word(*word) ? WORD_NAME : WORD_MARK;
}

void words_put(struct sentence *out, const char *text, int count) {
    if (out->len + count + 2 < TEXT_MAX) {
        memcpy(out->text + out->len, text, (size_t)count);
        out->len += count;
        out->text[out->len++] = ' ';
        out->text[out->len] = 0;
    }
}

static void put(struct sentence *out, const char *text) {
    words_put(out, text, (int)strlen(text));
}

static void put_run(struct sentence *out, const struct words *words, int from, int count) {
    for (int k = from; k < words->count && k < from + count; k++) {
        words_put(out, words->at[k], words->len[k]);
    }
}

static const char *const numbers[] = {
    "0",
    "-1",
    "1",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1e308",
    "-1e-308",
    "1e-38",
    "0.1",
    "99999999999999999999999999999999999999",
    "null",
    "$1",
};

static const char *const strings[] = {
    "''",
    "'%_%'",
    "'\\'",
    "'NaN'",
    "'infinity'",
    "'2000-02-29'",
    "date '5874897-12-31'",
    "timestamp '294276-12-31 23:59:59.999999'",
    "timestamptz '-infinity'",
    "interval '1' month",
    "interval '178000000 years'",
    "time '24:00:00'",
    "'\xc3\xa9\xe2\x82\xac'",
    "repeat('x', 1000000)",
    "null",
};

static const char *const types[] = {
    "int",           "bigint",  "smallint",   "text",    "date",      "decimal(18,9)",
    "numeric(38,0)", "numeric", "real",       "time",    "timestamp", "timestamptz",
    "interval",      "bytea",   "varchar(3)", "char(2)", "boolean",   "double precision",
};

static const char *const parts[] = {
    "true",
    "false",
    "distinct",
    "not",
    "and",
    "or",
    "case when",
    "then",
    "else",
    "end",
    "(",
    ")",
    ",",
    "*",
    "/",
    "%",
    "||",
    "+",
    "-",
    "=",
    "<>",
    "is null",
    "in (1, 2, null)",
    "between",
    "like",
    "similar to",
    "group by 1",
    "group by rollup (1, 2)",
    "order by 1 desc",
    "order by 1 nulls first",
    "limit 3",
    "limit 0",
    "offset 2",
    "having",
    "where",
    "coalesce(",
    "nullif(",
    "count(*)",
    "count(distinct",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "string_agg(",
    "upper(",
    "length(",
    "substring(",
    "abs(",
    "cast(",
    "greatest(",
    "concat(",
    "trim(",
    "round(",
    "lpad(",
    "generate_series(1, 3)",
    "over (order by 1)",
    "over (partition by 1 rows between 1 preceding and 1 following)",
    "filter (where true)",
    "as",
    "from",
    "join",
    "left join",
    "cross join",
    "lateral",
    "on",
    "using",
    "explain",
    "explain analyze",
    "explain (program, opcodes)",
    "with q as (select 1 as a)",
    "q",
    "default",
    "values",
    "returning *",
    "1 = 1",
    "extract(year from",
    "is distinct from",
    "union all select 1",
    "intersect",
    "at time zone 'Europe/Berlin'",
    "collate \"C\"",
};

#define ANY(g, table) ((table)[below(g, (int)(sizeof(table) / sizeof *(table)))])

static const char *spice(struct gen *g) {
    switch (below(g, 6)) {
    case 0:
        return ANY(g, numbers);
    case 1:
        return ANY(g, strings);
    default:
        return ANY(g, parts);
    }
}

bool word_in(const char *word, int len, const char *list) {
    for (const char *at = strchr(list, ' '); at && at[1]; at = strchr(at + 1, ' ')) {
        if (strncasecmp(at + 1, word, (size_t)len) == 0 && at[1 + len] == ' ') {
            return true;
        }
    }
    return false;
}

static bool is_type(const char *word, int len) {
    return word_in(
        word, len,
        " int integer bigint smallint text date decimal numeric real double time timestamp "
        "timestamptz interval bytea varchar char boolean float ");
}

static bool is_clause(const char *word, int len) {
    return word_in(
        word, len,
        " select from where group having order limit offset window union intersect except "
        "returning on set values with over filter join left using when case ");
}

/* A word that can stand where `word` stands, more often than not. */
static int similar_word(struct gen *g, const struct words *words, const char *word) {
    int found = below(g, words->count);
    for (int i = 0; i < 12 && word_class(words->at[found]) != word_class(word); i++) {
        found = below(g, words->count);
    }
    return found;
}

/* A clause of another statement, up to the next one. */
static void put_clause(struct gen *g, const struct corpus *corpus, struct sentence *out) {
    static struct words other;
    words_cut(corpus_piece(corpus, g), &other);
    int from = below(g, other.count);
    while (from < other.count && !is_clause(other.at[from], other.len[from])) {
        from++;
    }
    int end = from + 1;
    while (end < other.count && !is_clause(other.at[end], other.len[end])) {
        end++;
    }
    put_run(out, &other, from, end - from);
}

/* What `word` becomes when its kind is known: an extreme, another type. */
static void put_extreme(struct gen *g, const struct words *mine, int i, struct sentence *out) {
    enum word_class class = word_class(mine->at[i]);
    if (class == WORD_NUMBER) {
        put(out, ANY(g, numbers));
    } else if (class == WORD_STRING) {
        put(out, ANY(g, strings));
    } else if (is_type(mine->at[i], mine->len[i])) {
        put(out, ANY(g, types));
    } else {
        words_put(out, mine->at[i], mine->len[i]);
        put(out, spice(g));
    }
}

/* An operand within something: a cast, a call, a subquery, brackets. */
static void put_nested(struct gen *g, const struct words *mine, int i, struct sentence *out) {
    static const char *const wraps[][2] = {
        {"(select", ")"},
        {"coalesce(", ", null)"},
        {"(case when true then", "end)"},
        {"nullif(", ", 1)"},
        {"(-", ")"},
        {"(", "::text)"},
        {"exists (select", ")"},
        {"max(", ")"},
        {"(", "is null)"},
        {"greatest(", ", 0)"},
        {"cast(", "as bigint)"},
        {"any (values (", "))"},
    };
    int depth = one_in(g, 20) ? 1 + below(g, 200) : 1 + below(g, 2);
    int wrap = below(g, (int)(sizeof wraps / sizeof *wraps));
    for (int k = 0; k < depth; k++) {
        put(out, wraps[wrap][0]);
    }
    words_put(out, mine->at[i], mine->len[i]);
    for (int k = 0; k < depth; k++) {
        put(out, wraps[wrap][1]);
    }
}

static void change_word(struct gen *g, const struct corpus *corpus, const struct words *mine, int i,
                        struct sentence *out) {
    static struct words other;
    int from = below(g, mine->count);
    switch (below(g, 20)) {
    case 0: /* dropped */
        break;
    case 1: /* doubled */
        put_run(out, mine, i, 1);
        put_run(out, mine, i, 1);
        break;
    case 2: /* another word of the statement instead */
        put_run(out, mine, from, 1);
        break;
    case 3: /* something known to be hard instead */
        put(out, spice(g));
        break;
    case 4: /* the same, beside it */
        put_run(out, mine, i, 1);
        put(out, spice(g));
        break;
    case 5: /* a run of the statement again */
        put_run(out, mine, from, below(g, 12));
        put_run(out, mine, i, 1);
        break;
    case 6: /* a similar word of another statement */
    case 7:
        words_cut(corpus_piece(corpus, g), &other);
        if (other.count) {
            put_run(out, &other, similar_word(g, &other, mine->at[i]), 1);
        }
        break;
    case 8:
    case 9:
    case 10:
        put_extreme(g, mine, i, out);
        break;
    case 11:
        put_clause(g, corpus, out);
        put_run(out, mine, i, 1);
        break;
    case 12:
        put_nested(g, mine, i, out);
        break;
    case 13: /* a run of another statement */
        words_cut(corpus_piece(corpus, g), &other);
        put_run(out, &other, below(g, other.count), 1 + below(g, 8));
        break;
    default: /* a similar word of this one */
        put_run(out, mine, similar_word(g, mine, mine->at[i]), 1);
    }
}

static void change_bytes(struct gen *g, struct sentence *s) {
    for (int edits = below(g, 3) + 1; edits > 0 && s->len > 0; edits--) {
        char byte = (char)below(g, 256);
        s->text[below(g, s->len)] = byte ? byte : ' ';
    }
}

/* The whole statement as a part of another. */
static void nest_statement(struct gen *g, const char *text, struct sentence *out) {
    static const char *const wraps[][2] = {
        {"select * from (", ") nested"},
        {"with nested as (", ") select count(*) from nested"},
        {"with nested as materialized (", ") select * from nested union all select * from nested"},
        {"explain analyze", ""},
        {"create table nested as", ""},
        {"select exists (", ")"},
        {"copy (", ") to 'nested.csv' (format csv)"},
        {"create or replace view nested as", ""},
        {"prepare nested as", ""},
    };
    int wrap = below(g, (int)(sizeof wraps / sizeof *wraps));
    put(out, wraps[wrap][0]);
    put(out, text);
    put(out, wraps[wrap][1]);
}

void sentence_change(struct gen *g, const struct corpus *corpus, const char *text,
                     struct sentence *out) {
    static struct words mine;
    out->len = 0;
    out->text[0] = 0;
    if (one_in(g, 16)) {
        nest_statement(g, text, out);
        return;
    }
    words_cut(text, &mine);
    int edits = below(g, 3) ? 1 : 1 + below(g, 4);
    int odds = mine.count / edits + 1;
    for (int i = 0; i < mine.count; i++) {
        if (one_in(g, odds)) {
            change_word(g, corpus, &mine, i, out);
        } else {
            put_run(out, &mine, i, 1);
        }
    }
    if (one_in(g, 12)) {
        change_bytes(g, out);
    }
}

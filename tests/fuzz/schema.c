/* schema.c: tables for random queries.
 *
 * Six tables of 0, 1, 5, 12, 50 and about 3,000 rows. Columns come from one pool, a name having the
 * same type everywhere, so that natural joins have something to join; each table leaves some out.
 * Values are few and NULLs many: joins match, groups have members. Every other table declares its
 * identifier a primary key. x and z hold the extremes of
 * their types; their bound keeps them out of arithmetic that must not raise. Doubles are multiples
 * of a quarter: their sums are exact in any order. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static const struct column pool[] = {
    {"k", "integer", INT, 10},
    {"i", "integer", INT, 30},
    {"s", "smallint", INT, 15},
    {"x", "integer", INT, 2147483648.0},
    {"b", "bigint", BIG, 50},
    {"z", "bigint", BIG, 9.3e18},
    {"d", "decimal(9,2)", DEC, 20},
    {"e", "decimal(18,4)", DEC, 1000},
    {"f", "double precision", DBL, 8},
    {"t", "text", TXT, 30},
    {"u", "text", TXT, 30},
    {"y", "date", DAY, 40000},
    {"o", "boolean", BOOL, 1},
    {"m", "timestamp", MOM, 40000},
};
enum { POOL = sizeof pool / sizeof *pool };

void gen_seed(struct gen *g, uint64_t seed, uint64_t number) {
    g->rng = (seed + 1) * 0x9e3779b97f4a7c15ULL + (number + 1) * 0xbf58476d1ce4e5b9ULL;
    for (int i = 0; i < 4; i++) {
        below(g, 2);
    }
}

int below(struct gen *g, int bound) { /* splitmix64 */
    g->rng += 0x9e3779b97f4a7c15ULL;
    uint64_t z = g->rng;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return bound > 0 ? (int)((z >> 33) % (uint64_t)bound) : 0;
}

bool one_in(struct gen *g, int n) {
    return below(g, n) == 0;
}

enum sort any_sort(struct gen *g) {
    return (enum sort)below(g, SORTS);
}

double sort_max(enum sort sort) {
    static const double most[SORTS] = {
        [INT] = 2147483648.0, [BIG] = 9.3e18, [DEC] = 1e12, [DBL] = 1e9,
        [TXT] = 2000,         [DAY] = 300000, [BOOL] = 1,   [MOM] = 300000};
    return most[sort];
}

void schema_make(struct gen *g) {
    static const int rows[TABLES] = {0, 1, 5, 12, ROWS_SMALL, 3000};
    for (int n = 0; n < TABLES; n++) {
        struct table *t = &g->tables[n];
        memset(t, 0, sizeof *t);
        snprintf(t->name, sizeof t->name, "t%d", n);
        snprintf(t->id, sizeof t->id, "id%d", n);
        t->rows = rows[n];
        t->cols[t->col_count++] = (struct column){t->id, "integer", INT, 2.5e7};
        for (int c = 0; c < POOL; c++) {
            if (c < 2 || !one_in(g, 5)) {
                t->cols[t->col_count++] = pool[c];
            }
        }
    }
}

static void make_value(struct gen *g, const struct table *t, const struct column *c, int row) {
    static const char *const words[] = {"'alpha'", "'beta'", "'Zürich'", "''",
                                        "'a'",     "'b'",    "'x%y_z'",  "'12'",
                                        "'ALPHA'", "'été'",  "' pad '",  "'aab'"};
    static const char *const ints[] = {"2147483647", "-2147483648", "0", "1", "-1"};
    static const char *const bigs[] = {"9223372036854775807", "-9223372036854775808", "0", "7",
                                       "-3"};
    static const char *const days[] = {"'2000-02-29'", "'1999-12-31'", "'2024-01-01'",
                                       "'1970-01-01'", "'2000-03-01'"};
    static const char *const moments[] = {"'2000-02-29 00:00:00'", "'1999-12-31 23:59:59.999999'",
                                          "'2024-01-01 12:30:00'", "'1970-01-01 00:00:00.5'",
                                          "'2000-02-29 13:14:15'"};
    struct text *out = &g->text;
    int wide = t->rows > ROWS_SMALL ? 4 : 1; /* large tables have more values */
    if (strcmp(c->name, t->id) == 0) {
        text_say(out, "%d", row);
    } else if (one_in(g, 6)) {
        text_say(out, "null");
    } else if (c->max > 1e6) {
        text_say(out, "%s", (c->sort == INT ? ints : bigs)[below(g, 5)]);
    } else if (c->sort == INT || c->sort == BIG) {
        int span = c->name[0] == 'k' ? 5 : 4 * wide;
        text_say(out, "%d", below(g, span) - (c->name[0] == 'k' ? 0 : 2));
    } else if (c->sort == DEC) {
        text_say(out, "%d.%0*d", below(g, 4) - 1, c->name[0] == 'd' ? 2 : 4,
                 one_in(g, 3) ? 50 : below(g, 3));
    } else if (c->sort == DBL) {
        text_say(out, "%g", (below(g, 9 * wide) - 4) / 4.0);
    } else if (c->sort == TXT) {
        text_say(out, "%s", words[below(g, c->name[0] == 't' ? 12 : 4)]);
    } else if (c->sort == DAY) {
        text_say(out, "%s", days[below(g, 5)]);
    } else if (c->sort == MOM) {
        text_say(out, "%s", moments[below(g, 5)]);
    } else {
        text_say(out, one_in(g, 2) ? "true" : "false");
    }
}

static bool fill(struct gen *g, const struct table *t, bool (*run)(void *, const char *),
                 void *arg) {
    for (int row = 0; row < t->rows;) {
        text_reset(&g->text);
        text_say(&g->text, "insert into %s values ", t->name);
        for (int n = 0; n < 200 && row < t->rows; n++, row++) {
            text_say(&g->text, n ? ", (" : "(");
            for (int c = 0; c < t->col_count; c++) {
                text_say(&g->text, c ? ", " : "");
                make_value(g, t, &t->cols[c], row);
            }
            text_say(&g->text, ")");
        }
        if (!run(arg, g->text.buf)) {
            return false;
        }
    }
    return true;
}

bool schema_statements(struct gen *g, bool (*run)(void *arg, const char *sql), void *arg) {
    for (int n = 0; n < TABLES; n++) {
        const struct table *t = &g->tables[n];
        text_reset(&g->text);
        text_say(&g->text, "create table %s (", t->name);
        for (int c = 0; c < t->col_count; c++) {
            text_say(&g->text, "%s%s %s%s", c ? ", " : "", t->cols[c].name, t->cols[c].type,
                     c       ? ""
                     : n % 2 ? " not null"
                             : " primary key");
        }
        text_say(&g->text, ")");
        if (!run(arg, g->text.buf) || !fill(g, t, run, arg)) {
            return false;
        }
    }
    return true;
}

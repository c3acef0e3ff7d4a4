/* function.c: the functions random expressions use, one line each.
 *
 * In a form a letter between # is an argument of a sort: #i integer, #b bigint, #d decimal, #f
 * double, #t text, #y date, #o boolean; #n is a small literal count. A form the engine does not
 * have is found out by one query at the start and left out, so that the table may run ahead. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static const struct function table[] = {
    {INT, "abs(#i)", 0},
    {INT, "length(#t)", 2000},
    {INT, "octet_length(#t)", 4000},
    {INT, "(#y - #y)", 200000},
    {INT, "cast(extract(year from #y) as integer)", 9999},
    {INT, "cast(extract(month from #y) as integer)", 12},
    {INT, "cast(extract(dow from #y) as integer)", 12},
    {INT, "cast(#o as integer)", 1},
    {INT, "cast(#d as integer)", 0},
    {INT, "position('a' in #t)", 2000},
    {INT, "ascii(#t)", 2000000},
    {INT, "cast(sign(#i) as integer)", 1},
    {INT, "mod(#i, 7)", 0},
    {INT, "greatest(#i, #i)", 0},
    {INT, "least(#i, #i)", 0},
    {INT, "cast(floor(#d) as integer)", 0},
    {INT, "cast(ceil(#f) as integer)", 0},
    {BIG, "cast(#i as bigint)", 0},
    {BIG, "abs(#b)", 0},
    {BIG, "cast(#d as bigint)", 0},
    {BIG, "greatest(#b, #i)", 0},
    {DEC, "abs(#d)", 0},
    {DEC, "cast(#i as decimal(12,2))", 0},
    {DEC, "round(#d, 1)", 0},
    {DEC, "round(#d)", 0},
    {DEC, "trunc(#d, 1)", 0},
    {DEC, "floor(#d)", 0},
    {DEC, "ceil(#d)", 0},
    {DEC, "greatest(#d, #d)", 0},
    {DEC, "least(#d, #d, #d)", 0},
    {DEC, "round(#d / 4, 3)", 0},
    {DEC, "mod(#d, 1.5)", 0},
    {DBL, "abs(#f)", 0},
    {DBL, "cast(#i as double precision)", 0},
    {BOOL, "(cast(#d as double precision) < #f)", 0},
    {DBL, "floor(#f)", 0},
    {DBL, "round(#f)", 0},
    {DBL, "greatest(#f, #f)", 0},
    {DBL, "sign(#f)", 1},
    {TXT, "upper(#t)", 0},
    {TXT, "lower(#t)", 0},
    {TXT, "substring(#t from 2 for 2)", 0},
    {TXT, "substring(#t from 3)", 0},
    {TXT, "substr(#t, 1, 3)", 0},
    {TXT, "cast(#i as text)", 2000},
    {TXT, "cast(#b as text)", 2000},
    {TXT, "cast(#y as text)", 2000},
    {TXT, "cast(#o as text)", 2000},
    {TXT, "cast(#f + 0 as text)", 2000},
    {TXT, "trim(#t)", 0},
    {TXT, "ltrim(#t, 'a')", 0},
    {TXT, "replace(#t, 'a', 'ö')", 0},
    {TXT, "left(#t, 2)", 0},
    {TXT, "left(#t, -1)", 0},
    {TXT, "right(#t, 2)", 0},
    {TXT, "reverse(#t)", 0},
    {TXT, "lpad(#t, 4, '*')", 0},
    {TXT, "rpad(#t, 3)", 0},
    {TXT, "repeat(#t, 2)", 2000},
    {TXT, "initcap(#t)", 0},
    {TXT, "split_part(#t, 'a', 2)", 0},
    {TXT, "concat(#t, #i, #o)", 2000},
    {TXT, "concat_ws('-', #t, #t)", 2000},
    {TXT, "translate(#t, 'ab', 'x')", 0},
    {TXT, "greatest(#t, #t)", 0},
    {TXT, "to_char(#y, 'YYYY-MM-DD')", 2000},
    {DAY, "cast(date_trunc('month', #y) as date)", 0},
    {DAY, "cast(#y + interval '1 month' as date)", 0},
    {DAY, "greatest(#y, #y)", 0},
    {BOOL, "(#t like 'a%%')", 0},
    {BOOL, "(#t like '%%a_')", 0},
    {BOOL, "(#t not like '%%b%%')", 0},
    {BOOL, "(#t ilike '%%A')", 0},
    {BOOL, "(#t like #t)", 0},
    {BOOL, "(#t ~ '^a.*[ab]$')", 0},
    {BOOL, "(#t ~* 'Z')", 0},
    {BOOL, "starts_with(#t, 'a')", 0},
    {BOOL, "(#o is true)", 0},
    {BOOL, "(#o is not false)", 0},
    {BOOL, "(#o is unknown)", 0},
    {BOOL, "(#o = #o)", 0},
    {BOOL, "(#o <> #o)", 0},
    {BOOL, "((#i, #t) = (#i, #t))", 0},
    {BOOL, "((#i, #y) < (#i, #y))", 0},
    {BOOL, "(#i is distinct from #i)", 0},
    {BOOL, "(#t is not distinct from #t)", 0},
    {BOOL, "(#d is distinct from #b)", 0},
};
enum { FUNCTIONS = sizeof table / sizeof *table };
static bool missing[FUNCTIONS];

static const char *sample(char letter) {
    switch (letter) {
    case 'i':
        return "1";
    case 'b':
        return "1::bigint";
    case 'd':
        return "1.5";
    case 'f':
        return "0.5::double precision";
    case 't':
        return "'a'::text";
    case 'y':
        return "date '2000-01-01'";
    default:
        return "true";
    }
}

int functions_probe(bool (*works)(void *arg, const char *sql), void *arg, bool say) {
    int count = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        char sql[500] = "select ";
        size_t len = strlen(sql);
        for (const char *at = table[i].form; *at; at++) {
            const char *piece = (char[2]){*at, 0};
            if (*at == '#') {
                piece = sample(*++at);
            } else if (*at == '%') {
                at++;
            }
            len += (size_t)snprintf(sql + len, sizeof sql - len, "%s", piece);
        }
        missing[i] = !works(arg, sql);
        count += missing[i];
        if (missing[i] && say) {
            printf("left out: %s\n", table[i].form);
        }
    }
    return count;
}

const struct function *function_pick(struct gen *g, enum sort sort, double max) {
    const struct function *found = NULL;
    int seen = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        if (table[i].sort == sort && !missing[i] && table[i].max <= max && below(g, ++seen) == 0) {
            found = &table[i];
        }
    }
    return found;
}

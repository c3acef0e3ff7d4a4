/* function.c: the functions random expressions use, one line each.
 *
 * In a form a letter between # is an argument of a sort: #i integer, #b bigint, #d decimal, #f
 * double, #t text, #y date, #o boolean, #m timestamp. A form the engine does not
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
    {DAY, "cast(#m as date)", 0},
    {INT, "cast(extract(hour from #m) as integer)", 24},
    {INT, "cast(extract(week from #m) as integer)", 60},
    {INT, "cast(extract(doy from #m) as integer)", 400},
    {INT, "cast(extract(epoch from #m) / 86400 as integer)", 400000},
    {DEC, "extract(second from #m)", 60},
    {TXT, "cast(#m as text)", 2000},
    {TXT, "cast(#m - #m as text)", 2000},
    {TXT, "to_char(#m, 'YYYY-MM-DD HH24:MI:SS')", 2000},
    {MOM, "cast(#y as timestamp)", 0},
    {MOM, "date_trunc('month', #m)", 0},
    {MOM, "date_trunc('hour', #m)", 0},
    {MOM, "date_trunc('week', #m)", 0},
    {MOM, "greatest(#m, #m)", 0},
    {BOOL, "(#m < #y)", 0},
    {BOOL, "(#m - #m > interval '1 day')", 0},
    {BOOL, "(#m + #i * interval '1 hour' <= #m)", 0},
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
    {BOOL, "((#i, #t) in ((#i, #t), (#i, #t), (1, 'a')))", 0},
    {BOOL, "((#i, #y) not in ((#i, #y), (2, #y)))", 0},
    {BOOL, "((#i, #t, #d) >= (#i, #t, #d))", 0},
    {BOOL, "((#i, #t) <> (#i, #t))", 0},
    {BOOL, "((#i, #t) is distinct from (#i, #t))", 0},
    {BOOL, "((#i, #t) is null)", 0},
    {BOOL, "(#i between symmetric #i and #i)", 0},
    {BOOL, "(#i = any (array[#i, #i]))", 0},
    {BOOL, "(#t similar to '(a|b)%%')", 0},
    {BOOL, "(#t not similar to '%%[a-c]_?')", 0},
    {BOOL, "(#t like 'x#%%y%%' escape '#')", 0},
    {BOOL, "(#t not ilike '_L%%')", 0},
    {BOOL, "(#t !~ '(a|é)+')", 0},
    {BOOL, "(#t ~ '^[[:alpha:]]{2,}$')", 0},
    {BOOL, "(#t !~* '[^a-z]')", 0},
    {BOOL, "((#y, #y) overlaps (#y, interval '10 days'))", 0},
    {BOOL, "(#m between #y and #m)", 0},
    {BOOL, "(#m - interval '1 month' < #m)", 0},
    {BOOL, "(age(#m, #m) >= interval '1 mon -1 days')", 0},
    {INT, "strpos(#t, #t)", 2000},
    {INT, "bit_length(#t)", 20000},
    {INT, "(#i & #i)", 0},
    {INT, "(#i # 5)", 2147483647},
    {INT, "gcd(#i, 6)", 0},
    {INT, "cast(extract(quarter from #m) as integer)", 4},
    {INT, "cast(extract(isodow from #y) as integer)", 7},
    {INT, "cast(extract(day from #m - #m) as integer)", 400000},
    {INT, "cast(date_part('minute', #m) as integer)", 60},
    {INT, "length(regexp_replace(#t, 'a', 'bb', 'g'))", 4000},
    {BIG, "cast(factorial(abs(mod(#i, 5))) as bigint)", 200},
    {BIG, "width_bucket(#d, 0.0, 10.0, 4)", 6},
    {DEC, "div(#d, 1.5)", 0},
    {DEC, "sign(#d)", 1},
    {DEC, "coalesce(#d, #i)", 0},
    {DEC, "trunc(#d)", 0},
    {DBL, "trunc(#f)", 0},
    {DBL, "ceil(#f)", 0},
    {DBL, "cast(#d as integer) * 0.5::double precision", 0},
    {TXT, "btrim(#t, 'ab')", 0},
    {TXT, "rtrim(#t)", 0},
    {TXT, "overlay(#t placing 'Q' from 2 for 1)", 2000},
    {TXT, "regexp_replace(#t, '[aeiou]', '#')", 2000},
    {TXT, "regexp_replace(#t, '(.)(.)', '\\2\\1', 'g')", 2000},
    {TXT, "substring(#t from '[a-z]+')", 0},
    {TXT, "lpad(cast(#i as text), 5, '0')", 2000},

    {TXT, "quote_literal(#t)", 2000},
    {TXT, "md5(#t)", 2000},
    {TXT, "to_hex(abs(mod(#i, 4096)))", 2000},
    {TXT, "chr(65 + abs(mod(#i, 26)))", 2000},
    {TXT, "left(#t, #i)", 0},
    {TXT, "substr(#t, #i)", 0},
    {TXT, "cast(age(#m, #m) as text)", 2000},
    {TXT, "cast(justify_interval(#m - #m) as text)", 2000},
    {TXT, "cast(mod(#i, 5000) * interval '1 day 02:03' as text)", 2000},
    {TXT, "cast((#m - #m) / 2 as text)", 2000},
    {TXT, "cast(make_interval(days => mod(#i, 1000)) as text)", 2000},
    {TXT, "cast(cast(#m as time) as text)", 2000},
    {TXT, "to_char(#m, 'Dy DD Mon YYYY, HH12:MI AM')", 2000},
    {TXT, "to_char(#i, 'FM999G999')", 2000},
    {TXT, "to_char(#d, '9990.00')", 2000},
    {TXT, "least(#t, #t, 'm')", 0},
    {TXT, "nullif(#t, '')", 0},
    {DAY, "(date '2000-01-31' + mod(#i, 1000))", 0},
    {DAY, "make_date(2000 + abs(mod(#i, 30)), 2, 28)", 0},
    {DAY, "least(#y, #y, date '2001-01-01')", 0},
    {DAY, "cast(date_trunc('quarter', #m) as date)", 0},
    {MOM, "(#y + time '01:02:03')", 0},
    {MOM, "(#m - make_interval(months => mod(#i, 20)))", 0},
    {MOM, "date_trunc('year', #m)", 0},
    {MOM, "least(#m, #m)", 0},
    {MOM, "(#m + (#m - #m) / 7)", 0},
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
    case 'm':
        return "timestamp '2000-01-01 12:00:00'";
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
            if (*at == '#' && strchr("ibdftyom", at[1])) {
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

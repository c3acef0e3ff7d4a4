/* everyday_data.c: the tables of `bench everyday`.
 *
 * Numbers without pattern, and permutations, are made here and appended as a table of integers; SQL
 * makes the columns of them, on the CPU.
 *   g                    group-bys of the db-benchmark (G1, 100 groups): texts and numbers of 100 and rows / 100
 *                        values, small integers, a double of six digits
 *   x, small, medium, big   its joins (J1): keys of rows / 10^6, rows / 10^3 and rows values, nine of ten of which
 *                        both sides have; the tables on the right have each key once
 *   e                    events: a moment, an amount, a measurement, texts of up to 90 bytes */
#include "bench_everyday.h"

#include <stdlib.h>

enum { DRAWS = 8, CHUNK = 1 << 20, GROUPS = 100 };

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* Columns of the table of numbers: two permutations of 0 .. rows - 1, and draws below 2^31. */
static void append_numbers(struct bench_db *db, int64_t rows) {
    enum { COLUMNS = 2 + DRAWS };
    int32_t *values = malloc(sizeof *values * CHUNK * COLUMNS);
    wf_input inputs[COLUMNS];
    int bits = 1;
    if (!values) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    while (1LL << bits < rows) {
        bits++;
    }
    for (int64_t first = 0; first < rows; first += CHUNK) {
        int64_t count = rows - first < CHUNK ? rows - first : CHUNK;
        for (int c = 0; c < COLUMNS; c++) {
            int32_t *column = values + (int64_t)c * CHUNK;
            inputs[c] = (wf_input){.values = column};
            for (int64_t i = 0; i < count; i++) {
                uint32_t row = (uint32_t)(first + i), n = (uint32_t)rows;
                column[i] = c >= 2   ? (int32_t)(mix((uint64_t)row * DRAWS + (uint64_t)c) >> 33)
                            : c == 1 ? (int32_t)bench_shuffled(n - 1 - row, n, bits)
                                     : (int32_t)bench_shuffled(row, n, bits);
            }
        }
        if (wf_append(db->conn, "numbers", count, COLUMNS, inputs) != WF_OK) {
            fprintf(stderr, "bench: %s\n", wf_connection_error(db->conn)->message);
            exit(1);
        }
    }
    free(values);
}

/* {1}: 100 groups; {2}: rows / 100; {3}, {4}, {5}: keys of the three tables on the right. */
static const char *const tables[] = {
    "create table g as select 'id' || lpad((1 + a % {1})::text, 3, '0') as id1, "
    "'id' || lpad((1 + b % {1})::text, 3, '0') as id2, "
    "'id' || lpad((1 + c % {2})::text, 10, '0') as id3, 1 + d % {1} as id4, 1 + e % {1} as "
    "id5, "
    "1 + f % {2} as id6, 1 + g % 5 as v1, 1 + h % 15 as v2, "
    "((a # h) % 100000000)::double precision / 1000000 as v3 from numbers",

    "create table x as select 1 + a % {3} as id1, 1 + b % {4} as id2, 1 + p as id3, "
    "'id' || (1 + a % {3})::text as id4, 'id' || (1 + b % {4})::text as id5, 'id' || (1 + "
    "p)::text as id6, "
    "(c % 100000000)::double precision / 1000000 as v1 from numbers",

    "create table small as select 1 + {3} / 10 + p % {3} as id1, 'id' || (1 + {3} / 10 + p % "
    "{3})::text as id4, "
    "(d % 100000000)::double precision / 1000000 as v2 from numbers where p < {3}",

    "create table medium as select 1 + a % {3} as id1, 1 + {4} / 10 + p as id2, 'id' || (1 + a "
    "% {3})::text as id4, "
    "'id' || (1 + {4} / 10 + p)::text as id5, (d % 100000000)::double precision / 1000000 as v2 "
    "from numbers where p < {4}",

    "create table big as select 1 + d % {3} as id1, 1 + e % {4} as id2, 1 + {5} / 10 + q as "
    "id3, "
    "'id' || (1 + d % {3})::text as id4, 'id' || (1 + e % {4})::text as id5, "
    "'id' || (1 + {5} / 10 + q)::text as id6, (f % 100000000)::double precision / 1000000 as v2 "
    "from numbers",

    "create table e as select q as id, 1 + a % 1000 as k, 1 + b % {2} as u, "
    "timestamp '2020-01-01' + (c % 94608000) * interval '1 second' as t, "
    "split_part('view,buy,cart,search,home', ',', 1 + d % 5) as w, "
    "((e % 1000000)::numeric(12, 2) / 100)::numeric(12, 2) as amount, "
    "(f - 1073741824)::double precision / 1048576 as x, "
    "'https://' || split_part('www,shop,m,api', ',', 1 + a % 4) || '.example.' || "
    "split_part('com,org,net', ',', 1 + b % 3) || '/' || "
    "split_part('view,buy,cart,search,home,account,help', ',', 1 + c % 7) || '/' || "
    "split_part('view,buy,cart,search,home', ',', 1 + d % 5) || '-' || (g % 100000)::text || "
    "case when h % 3 = 0 then '?ref=' || substr(md5(h::text), 1, 8 + h % 20) else '' end as url, "
    "substr(md5(e::text), 1, 5 + f % 6) || '@' || split_part('mail,post,corp,uni', ',', 1 + g % "
    "4) || "
    "(h % 25)::text || '.' || split_part('com,org,net', ',', 1 + a % 3) as mail, "
    "((c % 10000000)::numeric(12, 2) / 100)::numeric(12, 2)::text as cost, "
    "(date '2020-01-01' + d % 1096)::text as day from numbers",
};

static int64_t at_least(int64_t count, int64_t least) {
    return count > least ? count : least;
}

void everyday_tables(struct bench_db *db, int64_t rows) {
    const int64_t sizes[] = {GROUPS, at_least(rows / GROUPS, 1), at_least(rows / 1000000, 3),
                             at_least(rows / 1000, 10), rows};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char sql[4000], digits[SIZES][24];
    const char *values[SIZES];
    for (int i = 0; i < SIZES; i++) {
        snprintf(digits[i], sizeof digits[i], "%lld", (long long)sizes[i]);
        values[i] = digits[i];
    }
    bench_run(db, "set device = cpu");
    bench_run(db, "create table numbers (p int, q int, a int, b int, c int, d int, e int, f int, g "
                  "int, h int)");
    append_numbers(db, rows);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        bench_fill(tables[i], values, sql, sizeof sql);
        bench_run(db, sql);
    }
    bench_run(db, "drop table numbers");
}

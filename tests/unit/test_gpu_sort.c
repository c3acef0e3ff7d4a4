/* test_gpu_sort.c: sorts on the card give the CPU's order: every kind of key, NULLs at either end,
 * zeros and NaN, ties, text that differs late, few rows and many, only the first of them; after
 * deletions; with little memory. Needs the simt driver, as test_gpu.c does. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_CAP = 1 << 22 };

/* All rows, in order, as text. */
static char *answer(const char *sql) {
    char *out = malloc(TEXT_CAP);
    size_t len = 0;
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    out[0] = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            for (int32_t c = 0; c < wf_result_column_count(result); c++) {
                char value[300] = "NULL";
                if (!wf_batch_is_null(batch, c, i)) {
                    wf_value_text(batch, c, i, value, sizeof value);
                }
                len += (size_t)snprintf(out + len, TEXT_CAP - len, "%s|", value);
            }
            len += (size_t)snprintf(out + len, TEXT_CAP - len, "\n");
        }
    }
    assert_int_equal(wf_result_error(result)->status, WF_OK);
    wf_result_close(result);
    return out;
}

static void same_order(const char *sql) {
    run("set device = cpu");
    char *cpu = answer(sql);
    run("set device = gpu");
    char *gpu = answer(sql);
    if (strcmp(cpu, gpu) != 0) {
        size_t at = 0;
        while (cpu[at] == gpu[at]) {
            at++;
        }
        at = at > 60 ? at - 60 : 0;
        fail_msg("%s:\n%.300s\nnot\n%.300s", sql, gpu + at, cpu + at);
    }
    free(cpu);
    free(gpu);
}

/* Each column by itself and before others, up and down, NULLs first and last, all and the first. */
static void check_table(const char *table) {
    static const char *const keys[] = {"b", "i", "j", "d", "w", "f", "r", "s", "l", "c", "day", "n"};
    static const char *const ends[] = {"", " desc", " nulls first", " desc nulls last"};
    static const char *const limits[] = {"", " limit 7", " limit 30 offset 5", " limit 0"};
    char sql[400];
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        for (size_t e = 0; e < 4; e++) {
            const char *limit = limits[(k + e) % 4];
            snprintf(sql, sizeof sql, "select %s, id from %s order by %s%s, id%s", keys[k], table,
                     keys[k], ends[e], limit);
            same_order(sql);
            snprintf(sql, sizeof sql, "select id, %s from %s order by b, %s%s, i desc, id desc%s",
                     keys[k], table, keys[k], ends[e], limits[(k + e + 1) % 4]);
            same_order(sql);
        }
    }
}

static void make_table(const char *table, int rows) {
    char sql[1500];
    snprintf(sql, sizeof sql,
             "create table %s as select i as id, i %% 3 = 0 as b, (i * 7919 %% 100)::int as i, "
             "case when i %% 11 = 0 then null else i * 7919 %% 1000003 - 500000 end as j, "
             "case when i %% 5 = 0 then null else (i * 7919 %% 1000 - 300) / 4.00 end as d, "
             "((i * 7919 %% 100000) * 100000000000000000000.0)::decimal(38, 2) - "
             "case when i %% 2 = 0 then 0 else 5000000000000000000000000.0 end as w, "
             "case i %% 13 when 0 then 'NaN'::float8 when 1 then '-0'::float8 when 2 then 0.0 "
             "when 3 then 'Infinity'::float8 when 4 then '-Infinity'::float8 when 5 then null "
             "else (i * 7919 %% 777 - 300) / 7.0 end as f, "
             "case when i %% 17 = 0 then 'NaN'::real when i %% 17 = 1 then '-0'::real "
             "else ((i * 31 %% 50 - 25) / 3.0)::real end as r, "
             "case when i %% 19 = 0 then null when i %% 19 = 1 then '' "
             "else repeat('x', i %% 4) || (i * 7919 %% 9973)::text end as s, "
             "'the same start of all ' || case when i %% 7 = 0 then '' else "
             "repeat('y', (i %% 60)) || (i * 31 %% 101)::text end as l, "
             "'c' || i %% 23 as c, date '2020-01-01' + (i * 7919 %% 400)::int as day, "
             "null::int as n from generate_series(1, %d) v(i)",
             table, rows);
    run(sql);
}

static void test_orders(void **state) {
    (void)state;
    open_db("64MB", "vm");
    run("set device = cpu");
    make_table("few", 25);
    make_table("many", 3000);
    check_table("few");
    check_table("many");
    run("set device = cpu");
    run("delete from many where i % 4 = 1");
    check_table("many");
    close_db();
}

/* Rows that tie in all keys keep the order they had, which an inner sort gave them. */
static void test_ties(void **state) {
    (void)state;
    open_db("64MB", "vm");
    run("set device = cpu");
    make_table("t", 2500);
    same_order("select b, id from (select b, id from t order by id desc limit 2000) v order by b");
    same_order("select i, id from (select i, id from t order by j, id limit 2000) v order by i limit 9");
    same_order("select id from (select id, n from t order by id limit 1500) v order by n");
    same_order("select s, rank() over (order by s), row_number() over (order by s, id), id from t "
               "order by s, id");
    close_db();
}

/* Groups, whose finishing and sorting stay on the card. */
static void test_groups(void **state) {
    (void)state;
    open_db("64MB", "vm");
    run("set device = cpu");
    make_table("t", 3000);
    same_order("select i, count(*), sum(j), avg(d), min(w), max(f) from t group by i "
               "having count(*) > 3 order by 2 desc, 1");
    same_order("select s, count(*) from t group by s order by count(*) desc, s limit 20");
    same_order("select j % 700 k, sum(w) from t group by 1 order by 2 desc nulls last, 1 limit 50");
    same_order("select l, min(s), min(f) from t where f < 100 group by l order by l desc");
    same_order("select c, sum(r) from t where r < 100 group by c order by 2, 1");
    close_db();
}

/* Window functions, over frames of every kind, with and without exclusions. */
static void test_windows(void **state) {
    (void)state;
    static const char *const frames[] = {
        "", "rows between unbounded preceding and current row",
        "rows between 3 preceding and 2 following", "rows between 2 following and 9 following",
        "rows between unbounded preceding and unbounded following",
        "rows between 5 preceding and 3 preceding exclude current row",
        "groups between 2 preceding and 1 following", "groups between 1 following and 3 following",
        "groups between unbounded preceding and 1 preceding exclude ties",
        "range between unbounded preceding and unbounded following exclude group",
        "range between current row and unbounded following exclude ties"};
    static const char *const orders[] = {"i", "f desc, i", "s nulls first", "l, c desc", "j desc nulls last"};
    char sql[1500];
    open_db("64MB", "vm");
    run("set device = cpu");
    make_table("t", 700);
    run("delete from t where i % 9 = 2");
    for (size_t k = 0; k < sizeof frames / sizeof *frames; k++) {
        const char *last = strncmp(frames[k], "rows", 4) == 0 ? ", id" : ""; /* peers tie */
        const char *part = k % 3 == 0 ? "" : k % 3 == 1 ? "partition by c" : "partition by b, n, i";
        snprintf(sql, sizeof sql,
                 "select id, sum(j) over w, count(d) over w, min(j) over w, max(id) over w, "
                 "first_value(s) over w, last_value(f) over w, nth_value(l, 3) over w, "
                 "bool_or(b) over w, bit_and(i) over w, avg(d) over w from t "
                 "window w as (%s order by %s, id %s) order by id",
                 part, orders[k % 5], k % 3 == 2 || k % 5 ? frames[k] : "");
        same_order(sql);
        snprintf(sql, sizeof sql,
                 "select id, sum(i) over (%s order by i%s %s), count(*) over (%s order by d%s %s) "
                 "from t order by id",
                 part, last, frames[k], part, last, frames[k]);
        same_order(sql);
        snprintf(sql, sizeof sql,
                 "select id, rank() over w, dense_rank() over w, percent_rank() over w, "
                 "cume_dist() over w, ntile(7) over v, lag(j) over v, "
                 "lag(s, 3, 'none') over v, lead(w, i) over v, row_number() over v from t "
                 "window w as (%s order by %s), v as (%s order by %s, id) order by id",
                 part, orders[k % 5], part, orders[k % 5]);
        same_order(sql);
    }
    run("set gpu_code = woven"); /* distances are made by rare opcodes */
    same_order("select id, sum(j) over (partition by c order by i desc range between 20 "
               "preceding and 3 following) from t order by id");
    same_order("select id, count(*) over (order by f desc range between 3.5 preceding and 1 following), "
               "min(i) over (order by j nulls first range 1000 preceding exclude current row) from t "
               "order by id");
    same_order("select sum(x) from (select row_number() over (order by id) x from t where id < 0) v");
    same_order("select count(*), min(x) from (select id x from t order by id limit 40 offset 7) v");
    wf_result *result = NULL;
    assert_int_not_equal(wf_query(conn, "select ntile(i - 50) over (order by id) from t", &result), WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22014");
    wf_result_close(result);
    result = NULL;
    assert_int_not_equal(wf_query(conn, "select nth_value(i, 0) over (order by id) from t", &result), WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22016");
    wf_result_close(result);
    close_db();
}

/* Sorted by one device, windowed or limited by the other: no copy keeps the old order. */
static void test_mixed(void **state) {
    (void)state;
    static const char *const sqls[] = {
        "select id, lag(j) over (order by i, id), sum(j) over (partition by c order by id) from t "
        "order by id",
        "select count(*), min(id), max(id) from (select id from t order by j, id limit 100) v",
        "select l, sum(i) over (order by l, id rows 2 preceding) from t order by l, id limit 50"};
    open_db("64MB", "vm");
    run("set device = cpu");
    make_table("t", 600);
    for (int i = 0; i < 3; i++) {
        run("set device = cpu");
        char *cpu = answer(sqls[i]);
        run("set device = auto");
        for (int seed = 1; seed <= 8; seed++) {
            char text[60];
            snprintf(text, sizeof text, "set mix_devices = %d", seed);
            run(text);
            char *mixed = answer(sqls[i]);
            assert_string_equal(mixed, cpu);
            free(mixed);
        }
        free(cpu);
    }
    close_db();
}

/* What the card has no room to sort is sorted by the host. */
static void test_room(void **state) {
    (void)state;
    open_db("1500kB", "vm");
    run("set device = cpu");
    run("set tablet_rows = 1024");
    make_table("t", 2000);
    run("create table u as select i x, -i y, i z from generate_series(1::bigint, 40000) v(i)");
    same_order("select i, w, s, l, id from t order by l, id");
    same_order("select x, y, z from u where x <> 7 order by y");
    same_order("select x, y, z from u where x <> 7 order by y limit 9");
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_ties),
                                       cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_windows), cmocka_unit_test(test_mixed),
                                       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}

/* test_gpu_host.c: which steps stay on the host when the session asks for the GPU: those that
 * WF_HOST_STEPS of defs/refusal.def names, for the reason given there, and no others. Every row of
 * that table is met. Needs the simt driver, as test_gpu.c does. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defs/refusal.def"

static struct {
    const char *name, *text;
    int met;
} reasons[] = {
#define X(A, name, kind, text, why) {#name, text, 0},
    WF_HOST_STEPS(X, )
#undef X
};
enum { REASONS = sizeof reasons / sizeof *reasons };

/* The steps of each in their order: what keeps it on the host, or GPU. */
static const struct {
    const char *sql, *steps;
} statements[] = {
    {"select x + 1 from t where x > 10", "GPU RESULT"},
    {"select count(*), sum(x) from t", "GPU GPU RESULT"},
    {"select g, count(*) from t group by g order by 2 desc, 1", "GPU GPU GPU RESULT"},
    {"select a.x, b.g from t a join t b on a.x = b.x", "GPU GPU GPU RESULT"},
    {"select x, s from t order by x limit 3", "GPU GPU RESULT"},
    {"select x from t order by x limit 5 offset 3", "GPU GPU RESULT"},
    {"select x from t where x < 20 union all select g from t", "GPU GPU RESULT"},
    {"select * from (select x from t order by x limit 10) v where x > 3", "GPU GPU GPU IN_ORDER RESULT"},
    {"select row_number() over (order by x) from t", "GPU GPU GPU GPU RESULT"},
    {"select upper(s), count(*) from t group by 1", "DICTIONARY GPU GPU RESULT"},
    {"select min(s), max(s) from t", "RANK GPU GPU RESULT"},
    {"select s, x from t order by s, x", "GPU GPU RESULT"},
    {"select percentile_cont(0.5) within group (order by x) from t", "GPU GPU GPU GPU GPU GPU GPU RESULT"},
    {"select string_agg(s, ',' order by x) from t", "DICTIONARY GPU GPU GPU FOLD GPU GPU GPU RESULT"},
    {"select v.x + t.x from (values (1), (2)) v(x), t where t.x < 3", "LITERALS GPU GPU RESULT"},
    {"select string_agg(s, ',') over (order by x) from t", "DICTIONARY GPU GPU WINDOW GPU RESULT"},
    {"select count(*) from (values (1), (2), (3) limit 2) v", "LITERALS LIMIT GPU GPU RESULT"},
    {"select 1 + 1", "ONE RESULT"},
    {"values (1), (2)", "LITERALS RESULT"},
    {"select i from generate_series(1, 100) v(i)", "ONE GPU RESULT"},
    {"select column0 + 1 from 'FILE'", "FILE RESULT"},
    {"select g::text || '!', count(*) from t group by g", "GPU GROUPS RESULT"},
    {"select * from wide order by a", "GPU GPU FETCH RESULT"},
};

/* "cpu: Sort; sorts run on the host" as SORT, "gpu vm: Scan; …" as GPU; fails on another. */
static const char *step_of(const char *line) {
    const char *at = line + strspn(line, " ");
    if (strncmp(at, "gpu", 3) == 0) {
        return "GPU";
    }
    if (strncmp(at, "cpu: ", 5) != 0) {
        return NULL;
    }
    const char *why = strstr(at, "; ");
    for (int i = 0; why && i < REASONS; i++) {
        size_t len = strlen(reasons[i].text);
        if (strncmp(why + 2, reasons[i].text, len) == 0 && (!why[2 + len] || why[2 + len] == ';')) {
            reasons[i].met++;
            return reasons[i].name;
        }
    }
    fail_msg("stays on the host for no reason of refusal.def: %s", line);
    return NULL;
}

enum { STEPS_CAP = 1000 };

static void add_step(const char *line, void *arg) {
    char *got = arg;
    const char *step = strncmp(line, "      ", 6) == 0 ? step_of(line) : NULL;
    if (step) {
        size_t len = strlen(got);
        snprintf(got + len, STEPS_CAP - len, "%s%s", len ? " " : "", step);
    }
}

static void check_steps(const char *sql, const char *want) {
    char text[1000], got[STEPS_CAP] = "";
    snprintf(text, sizeof text, "explain analyze %s", sql);
    each_line(text, add_step, got);
    if (strcmp(got, want) != 0) {
        fail_msg("%s: %s, not %s", sql, got, want);
    }
}

static void test_host_steps(void **state) {
    (void)state;
    char path[] = "/tmp/warpfox-host-XXXXXX", sql[600];
    open_db("64MB", "vm");
    int file = mkstemp(path);
    FILE *out = fdopen(file, "w");
    fputs("1,2\n3,4\n", out);
    fclose(out);
    run("set device = cpu");
    run("create table t as select i x, i % 5 g, 'a' || i % 7 s from generate_series(1, 1000) v(i)");
    run("create table wide as select i * 7919 % 1000 a, i b, i c, i d, 'text ' || i e, i f, i h "
        "from generate_series(1, 1000) v(i)");
    run("set device = gpu");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        const char *name = strstr(statements[i].sql, "FILE");
        int head = name ? (int)(name - statements[i].sql) : (int)strlen(statements[i].sql);
        snprintf(sql, sizeof sql, "%.*s%s%s", head, statements[i].sql, name ? path : "",
                 name ? name + 4 : "");
        check_steps(sql, statements[i].steps);
    }
    remove(path);
    run("set host_rows = 1000");
    check_steps("select g, count(*) from t group by g order by 2", "GPU FEW FEW RESULT");
    check_steps("select g, count(*) from t where x > 990 group by g", "GPU FEW RESULT");
    check_steps("select t.x, s.y from t join (values (1, 2), (3, 4)) s(x, y) on t.g = s.x",
                "LITERALS FEW GPU RESULT");
    run("create table small as select x from t where x < 10");
    check_steps("select count(*) from t join small on t.g = small.x", "FEW FEW GPU FEW RESULT");
    run("set device = cpu");
    run("create table edges as select a.x a, b.x b from small a, small b where a.x < b.x");
    run("set multiway = on");
    const char *triangles =
        "select count(*) from edges x, edges y, edges z where x.b = y.a and x.a = z.a and y.b = z.b";
    run(triangles);
    run("set device = gpu");
    check_steps(triangles, "FEW KEPT FEW RESULT");
    run("set device = cpu");
    run("create table keys as select i x, i * 7919 % 50021 k from generate_series(1, 40000) v(i)");
    run("set device = gpu");
    run("set host_rows = 5000");
    check_steps("select count(*), sum(t.g) from keys a join t on t.x = a.k", "FEW FEW CHAIN FEW RESULT");
    run("set device = cpu");
    run("create table many as select i * 7919 % 100003 k from generate_series(1, 70000) v(i)");
    run("set device = gpu");
    run("set host_rows = 0");
    run("set optimizer = off");
    check_steps("select count(*), sum(many.k) from t join many on many.k = t.x", "GPU ROWS CHAIN GPU RESULT");
    run("reset optimizer");
    run("set host_rows = 1000000");
    run("set statement_memory = '500kB'");
    check_steps("select count(*), sum(b.x) from keys a join keys b on a.x = b.k", "FEW FEW PASSES FEW RESULT");
    close_db();
    open_db("40kB", "vm"); /* too little to sort even in parts */
    run("set device = cpu");
    run("set tablet_rows = 1024");
    run("create table t as select i x, i y, i z from generate_series(1::bigint, 40000) v(i)");
    run("set device = gpu");
    check_steps("select x, y, z from t where x <> 7 order by y desc", "GPU ROOM RESULT");
    close_db();
    for (int i = 0; i < REASONS; i++) {
        if (!reasons[i].met) {
            fail_msg("no statement here has a step that stays on the host because %s", reasons[i].text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host_steps)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}

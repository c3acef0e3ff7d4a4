/* test_gpu_waits.c: how often the host waits for the card when a statement runs again: once for all steps that
 * can be queued, with their rows, and for each step where it is told to; keys that a build met twice are
 * expected twice. Whatever is otherwise than the time before, the answer is right. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_int.h"
#include "cpu/cpu.h"
#include "gpu/gpu_int.h"
#include "run/run_int.h"
#include "session/session.h"

static const struct {
    const char *sql;
    int64_t waits; /* of a run whose steps are queued */
} queries[] = {
    {"select count(*), sum(a)::bigint from t where a > 700 and g < 9", 1},
    {"select g, count(*), max(a) from t where a > 20 group by g order by 2 desc", 1},
    {"select a from t order by k, a desc limit 7", 1},
    {"select a from l order by s desc limit 9", 1}, /* most agree in their first words */
    {"select a from l order by g, s limit 30", 1},
    {"select k, sum(a)::bigint from t group by k order by 2 desc, k limit 5 offset 2", 1},
    {"select a from t where k in (select k from u order by v desc limit 30) order by s, a", 1},
    {"select t.a, u.v from t join u on t.k = u.k order by s desc nulls last, t.a, u.v limit 12", 1},
    {"select k, sum(a)::bigint from t group by k having sum(a) > 900", 1},
    {"select t.a, u.v from t join u on t.k = u.k where u.v < 400", 1},
    {"select count(*), sum(t.a + w.a)::bigint from t join t w on t.g = w.k where w.a < 60", 1},
    {"select count(*) from t where k in (select k from u where v % 5 = 1)", 1},
    {"select count(*) from t where not exists (select 1 from u where u.k = t.a and u.v > 60)", 1},
    {"select max(a), substr(s, 3, 9) from t group by 2", 1},
    {"select max(a), count(*) from t group by a % 7 * 9000000000007, k * 9000000000011", 1},
    {"select a, rank() over (partition by g order by k) from t where a < 90", 1},
    {"select a, sum(a) over (partition by g order by k, a)::bigint from t where a > 9 order by 2 desc, a limit 9", 1},
    {"select a, n from (select a, lag(a) over (partition by s order by a) n from t) x where n < 400", 1},
    {"select max(a), sum(r)::bigint from (select a, rank() over (order by k) r, max(a) over (partition by g) m from "
     "t) x "
     "group by m", 1},
    {"select g, (percentile_disc(0.3) within group (order by k))::bigint from t group by g", 1},
    {"select count(*), sum(m)::bigint from (select g, mode() within group (order by k % 5) m from t group by g) x "
     "where m > 0", 1},
};

/* Steps that run on the card. */
static int64_t card_steps(const char *sql) {
    char text[400];
    int64_t steps = 0;
    snprintf(text, sizeof text, "explain (steps) %s", sql);
    wf_result *result = query(text);
    const wf_batch *batch = NULL;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char device[100];
            wf_value_text(batch, 1, i, device, sizeof device);
            steps += !strncmp(device, "gpu", 3);
        }
    }
    wf_result_close(result);
    return steps;
}

static int64_t waits_of(const char *sql) {
    wf_result *result = query(sql);
    int64_t waits = wf_result_metric(result, "waits");
    wf_result_close(result);
    return waits;
}

/* The tables that queries read. */
static void make_tables(void) {
    run("set device = cpu");
    run("create table t as select i a, i * 7 % 101 k, i % 13 g, case when i % 9 > 0 then 'a text of ' || i % 17 end s "
        "from generate_series(0::bigint, 999) s(i)");
    run("create table u as select i k, i * 3 v from generate_series(0::bigint, 100) s(i)");
    run("create table l as select i a, i % 2 g, 'https://www.example.org/' || repeat('x', (i % 3)::int * 10) || "
        "lpad((i * 37 % 1000)::text, 8, '0') s from generate_series(0::bigint, 999) s(i)");
}

static void test_steps(void **state) {
    (void)state;
    open_db("0", "vm");
    make_tables();
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        const char *sql = queries[i].sql;
        int64_t rows, expected_rows;
        run("set device = cpu");
        uint64_t expected = digest(sql, 1, &expected_rows);
        run("set device = gpu");
        for (int k = 0; k < 4; k++) {
            assert_true(digest(sql, 1, &rows) == expected);
            assert_int_equal(rows, expected_rows);
        }
        int64_t waits = waits_of(sql);
        run("set gpu_queue = 0");
        assert_true(digest(sql, 1, &rows) == expected);
        int64_t each = waits_of(sql);
        run("set gpu_queue = 32");
        /* Once for the rows; a sort also looks at bounds, at digits of the first rows, and at texts that are cut. */
        int64_t looks = 1 + (strstr(sql, "order by") ? 8 : 0);
        if (waits > queries[i].waits || each > card_steps(sql) + looks) {
            fail_msg("%s: %lld waits, %lld of single steps", sql, (long long)waits, (long long)each);
        }
    }
    close_db();
}

/* Keys that were repeated are not any more, and are again. */
static void test_repeats(void **state) {
    (void)state;
    static const char sql[] = "select count(*), sum(t.a * w.v)::bigint from t join u w on t.g = w.k";
    static const char *const changes[] = {"delete from u where v % 2 = 1",
                                          "insert into u select i / 3, i from "
                                          "generate_series(0::bigint, 40) s(i)",
                                          "delete from u where v % 3 > 0", "delete from u"};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g from generate_series(0::bigint, 499) s(i)");
    run("create table u as select i / 2 k, i v from generate_series(0::bigint, 30) s(i)");
    run("create table one as select i k, i v from generate_series(0::bigint, 30) s(i)");
    for (int c = 0; c <= 4; c++) {
        int64_t rows;
        run("set device = cpu");
        uint64_t expected = digest(sql, 2, &rows);
        run("set device = gpu");
        for (int k = 0; k < 3; k++) {
            assert_true(digest(sql, 2, &rows) == expected);
        }
        if (c == 0) { /* as many waits as for keys of which each is there once */
            static const char once[] =
                "select count(*), sum(t.a * w.v)::bigint from t join one w on t.g = w.k";
            for (int k = 0; k < 3; k++) {
                run(once);
            }
            assert_int_equal(waits_of(sql), waits_of(once));
        }
        run(c < 4 ? changes[c] : "select 1");
    }
    close_db();
}

/* Of texts behind the first column, in any order. */
static uint64_t text_sum(const wf_result *result, const wf_batch *batch) {
    uint64_t sum = 0;
    for (int32_t c = 1; c < wf_result_column_count(result); c++) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char text[500];
            uint64_t hash = 14695981039346656037ULL;
            size_t len = wf_value_text(batch, c, i, text, sizeof text);
            assert_true(len < sizeof text);
            for (size_t k = 0; k < len; k++) {
                hash = (hash ^ (unsigned char)text[k]) * 1099511628211ULL;
            }
            sum += hash >> 9;
        }
    }
    return sum;
}

/* A query with a parameter: the rows of its answer's first column, in their order if they have one, and texts behind
 * it, or -1 where it fails. */
static int64_t ask(wf_statement *statement, int64_t value, bool ordered, int64_t *out_rows) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    int64_t sum = 0;
    *out_rows = 0;
    assert_int_equal(wf_bind_int64(statement, 1, value), WF_OK);
    if (wf_execute(statement, &result) != WF_OK) {
        return -1;
    }
    wf_status status;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        *out_rows += wf_batch_rows(batch);
        for (int64_t i = 0; ordered && i < wf_batch_rows(batch); i++) {
            uint64_t number = wf_batch_is_null(batch, 0, i) ? 77 : (uint64_t)wf_batch_int64(batch, 0)[i];
            sum = (int64_t)((((uint64_t)sum ^ number) * 0x9e3779b97f4a7c15ULL) >> 2);
        }
        sum += ordered ? 0 : (int64_t)(batch_digest(batch, 1) >> 8);
        sum = (int64_t)((uint64_t)sum + text_sum(result, batch)) & INT64_MAX;
    }
    wf_result_close(result);
    return status == WF_OK ? sum : -1;
}

/* Whether the answer itself has an order. */
static bool has_order(const char *sql) {
    int depth = 0;
    for (const char *at = sql; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth && !strncmp(at, "order by", 8)) {
            return true;
        }
    }
    return false;
}

/* Of each text with each value in turn the answers of the card are those of the CPU. */
static void same_with(const char *const *texts, int text_count, const int64_t *values, int value_count) {
    int64_t *sums = calloc((size_t)(text_count * value_count), sizeof *sums);
    int64_t *counts = calloc((size_t)(text_count * value_count), sizeof *counts);
    assert_true(sums && counts);
    for (int gpu = 0; gpu < 3; gpu++) {
        run(gpu ? "set device = gpu" : "set device = cpu");
        run(gpu == 2 ? "set host_rows = 90" : "set host_rows = 0"); /* those of u are few */
        for (int q = 0; q < text_count; q++) {
            wf_statement *statement = NULL;
            assert_int_equal(wf_prepare(conn, texts[q], &statement), WF_OK);
            bool ordered = has_order(texts[q]);
            for (int i = 0; i < value_count; i++) {
                int64_t rows;
                int at = q * value_count + i;
                int64_t sum = ask(statement, values[i], ordered, &rows);
                if (!gpu) {
                    sums[at] = sum;
                    counts[at] = rows;
                } else if (sum != sums[at] || (sum != -1 && rows != counts[at])) {
                    fail_msg("%s with %lld: %lld rows", texts[q], (long long)values[i], (long long)rows);
                }
            }
            wf_statement_close(statement);
        }
    }
    free(sums);
    free(counts);
}

/* More rows and fewer than the time before, keys that are repeated and not, none at all, and errors. */
static void test_surprises(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select count(*) from t join (select k from u where v % 7 < $1) w on t.g = w.k",
        "select t.a from t join (select v % $1 k from u) w on t.a = w.k where t.a < 60",
        "select g, count(*) from (select g, a from t where a % 50 < $1) x group by g",
        "select t.a / (w.k - $1) from t join (select k from u where v < 40) w on t.g = w.k",
        "select sum(s)::bigint from (select a / 3 q, sum(100 / (a + 50 - $1))::bigint s from t group by 1) x",
        "select a from t where a > (select avg(k) from u where k < $1 * 5)",
        "select a from t where case when g = 1 then a > (select 900 / (count(*) - $1) from u where k < 60) "
        "else a < 9 end",
        "select count(*) from t where a > (select k from u where k = 60 or v between 64 and $1 + 62)",
        "select a from t where g in (select h from (select g h, count(*) c from t where a < $1 * 4 group by g) x "
        "where c > 2)"};
    static const int64_t values[] = {3, 3, 3, 3, 7, 1, 60, 60, 3, 2, 5, 5, 5, 100};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g from generate_series(0::bigint, 299) s(i)");
    run("create table u as select i k, i v from generate_series(0::bigint, 80) s(i)");
    same_with(texts, sizeof texts / sizeof *texts, values, sizeof values / sizeof *values);
    close_db();
}

/* Sorts and the first rows of them: other bounds and places than the time before, other texts, more ties than there is
 * room for, no rows, and errors before and behind. */
static void test_orders(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select a from t where a % 50 < $1 order by g desc, a limit 20",
        "select a from t order by (a * 7919 % 301 - 150) * $1, a limit 9",
        "select b from (select a * $1 - 500 b, g from t where g < $1) x order by b desc",
        "select a from t where a % 60 < $1 order by s, a",
        "select a from t where a % 60 >= $1 order by s desc nulls last, n, a limit 30",
        "select a from t where a >= $1 * 4 order by n desc nulls last, a limit 5",
        "select a from t order by g, a limit $1 offset 2",
        "select a from t where a % 60 >= $1 order by case when g < 3 then s end, 's' || s desc limit 11",
        "select a from t where a >= $1 * 3 order by s limit 7",
        "select 900 / ($1 - 60) + a from t order by g, 1 limit 3",
        "select t.a from t join (select k, v from u order by v * (50 - $1) desc, k limit 6) w on t.g = w.k "
        "order by t.a",
        "select 600 / (w.c - $1) from (select g, count(*) c from t group by g order by 2, 1 limit 10) w order by 1",
        "select a from t order by a / $1 % 2, g, n, a limit 40",
        "select max(a) from t where a % 60 < $1 group by substr(s, 12) order by 1",
        "select min(a) from t where a % 50 < $1 group by a % 7 * 9000000000007, n order by 1",
        "select 500 / (count(*) - $1) + min(a) from t group by substr(s, 1, 12), n % 3 order by 1 limit 5",
        "select max(a), substr(s, 1, (40 - $1 % 37)::int) from t where a >= $1 group by 2 order by 1 limit 30",
        "select max(a) from (select a, substr(s, 2, 5) x from t where a >= $1 union all select v, 'yyyy' from u) w "
        "group by x order by 1 desc"};
    static const int64_t values[] = {3, 3, 3, 3, 7, 1, 60, 60, 3, 2, 5, 5, 5, 100, 23, 3, 3, 3};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g, case when i % 4 > 0 then i * 9000000001 % 977 - 400 end n, "
        "case when i % 7 = 0 then null when i % 60 < 20 then 'a very long beginning that all have ' || i % 31 "
        "else repeat('y', (i % 45)::int) end s from generate_series(0::bigint, 399) s(i)");
    run("create table u as select i k, i * 37 % 81 v from generate_series(0::bigint, 80) s(i)");
    same_with(texts, sizeof texts / sizeof *texts, values, sizeof values / sizeof *values);
    close_db();
}

/* Windows and ordered aggregates: fewer rows than the time before, more, none; more groups and fewer; arguments that
 * are refused; rows that go on from there. */
static void test_windows(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select sum(a) over (partition by g order by a)::bigint from t where a % 50 < $1",
        "select rank() over (order by n) + a from t where a >= $1 * 4",
        "select a + coalesce(lag(a, $1::int) over (partition by g order by a), 7) from t",
        "select max(a) over (partition by s order by a rows between $1 preceding and 2 following) from t",
        "select ntile(($1 - 60)::int) over (partition by g order by a)::bigint from t where a % 50 < 60 - $1 % 60",
        "select nth_value(a, ($1 - 3)::int) over (partition by n order by a) from t",
        "select sum(r)::bigint from (select s, dense_rank() over (partition by g order by s) r from t where a % 60 "
        "< $1) x "
        "group by s",
        "select a from (select a, row_number() over (partition by g order by n, a) r from t) x where r <= $1 order "
        "by a",
        "select t.a from t join (select a, count(*) over (partition by g) c from t where a % 60 < $1) w on t.a = w.a "
        "where w.c > 9 order by 1 limit 20",
        "select 900 / (max(r) - $1) from (select g, row_number() over (partition by g order by a) r from t) x group "
        "by g",
        "select percentile_disc(0.5) within group (order by a) from t where a % 50 < $1 group by g % $1",
        "select mode() within group (order by a % 7 - $1) from t where a >= $1 * 4 group by g",
        "select percentile_cont(0.3) within group (order by a % $1)::bigint from t where a > $1 group by g",
        "select (x.m - $1)::bigint from (select g, mode() within group (order by n) m, count(*) c from t where g < $1 "
        "group by g) x where c > 2"};
    static const int64_t values[] = {3, 3, 3, 3, 7, 1, 60, 60, 3, 2, 5, 5, 5, 100, 65, 65, 65, 3};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g, case when i % 4 > 0 then i * 9000000001 % 977 - 400 end n, "
        "case when i % 7 = 0 then null else repeat('y', (i % 45)::int) end s from generate_series(0::bigint, 399) "
        "s(i)");
    run("create table u as select i k from generate_series(0::bigint, 80) s(i)");
    same_with(texts, sizeof texts / sizeof *texts, values, sizeof values / sizeof *values);
    close_db();
}

/* Strings that a step makes: longer than the time before, so that they have no room, shorter, none; those that go on
 * to sorts, windows and groups, and those of the answer, which come with the wait where they are few. */
static void test_texts(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select a, repeat(upper(s), $1::int % 9) x from t where a % 50 < $1",
        "select a, s || '-' || (a * $1)::text from t order by 2, 1",
        "select max(a), replace(s, 'y', repeat('ab', $1::int % 5)) x from t group by 2",
        "select min(a + 100 / ($1 - 60)), left(s, 3) || g from t group by 2",
        "select a, lag(x) over (partition by g order by a) from (select a, g, s || $1 x from t) y",
        "select a, mode() within group (order by x) from (select a, reverse(s) || g x from t where a < $1) y group "
        "by a"};
    static const int64_t values[] = {3, 3, 3, 8, 8, 1, 60, 60, 3, 2, 5, 107, 107, 3};
    open_db("0", "woven");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g, case when i % 7 = 0 then null else repeat('y', (i % 45)::int) || i "
        "end s "
        "from generate_series(0::bigint, 199) s(i)");
    same_with(texts, sizeof texts / sizeof *texts, values, sizeof values / sizeof *values);
    run("set device = gpu");
    run("set host_rows = 0");
    for (int i = 0; i < 4; i++) {
        assert_true(waits_of("select a, upper(s) from t where a < 90") == 1 || i < 3);
    }
    close_db();
}

/* Few rows that the card makes, and that the card reads again, stay there: nobody waits for them. */
static void test_few(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select count(*) from t where a > (select avg(a) from t where g < 5)",
        "select count(*) from t where k in (select h from (select k h, sum(a) c from t group by k) x where c > 5100)",
        "select a from t where a < (select min(s) from (select g, max(a) - 90 s from t group by g) x) and g = 2",
        "select t.a, y.s from t join (select k h, sum(a)::bigint s from t group by k having sum(a) > 5400) y "
        "on t.k = y.h"};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i * 7 % 101 k, i % 13 g from generate_series(0::bigint, 999) s(i)");
    run("set host_rows = 300");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int columns = strncmp(texts[i], "select t.a, ", 12) ? 1 : 2;
        int64_t rows, expected_rows;
        run("set device = cpu");
        uint64_t expected = digest(texts[i], columns, &expected_rows);
        run("set device = gpu");
        for (int k = 0; k < 6; k++) {
            assert_true(digest(texts[i], columns, &rows) == expected);
            assert_int_equal(rows, expected_rows);
        }
        int64_t waits = waits_of(texts[i]);
        if (waits != 1) {
            fail_msg("%s: %lld waits", texts[i], (long long)waits);
        }
    }
    close_db();
}

/* A chip for which no kernels were made ahead: once there are some, nobody waits for single steps there either, and
 * the virtual machine is not compiled. */
static void test_chip(void **state) {
    (void)state;
    char folder[] = "/tmp/warpfox-waits-XXXXXX";
    char *before = getenv("WARPFOX_CACHE");
    before = before ? strdup(before) : NULL;
    assert_non_null(mkdtemp(folder));
    setenv("WARPFOX_CACHE", folder, 1);
    setenv("SIMT_CHIP", "80", 1);
    open_db("0", "auto");
    run("set device = cpu");
    run("create table t as select i a, i * 7 % 101 k, i % 13 g from generate_series(0::bigint, 999) s(i)");
    for (size_t i = 1; i < 3; i++) {
        int64_t rows;
        run("set device = cpu");
        uint64_t expected = digest(queries[i].sql, 1, &rows);
        run("set device = gpu");
        for (int k = 0; k < 3; k++) {
            assert_true(digest(queries[i].sql, 1, &rows) == expected);
        }
        assert_int_equal(waits_of(queries[i].sql), 1);
    }
    const struct gpu_card *card = ((struct gpu *)db->gpus[0]->self)->card;
    assert_false(card->codes.has_machine);
    assert_null(card->codes.modules[MODULE_VM_ROWS]);
    assert_null(card->codes.modules[MODULE_VM_AGG]);
    close_db();
    unsetenv("SIMT_CHIP");
    if (before) {
        setenv("WARPFOX_CACHE", before, 1);
    } else {
        unsetenv("WARPFOX_CACHE");
    }
    free(before);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* Steps over few rows are the host's, and known to be so when the others are placed: where the card is
 * faster with all of those, auto waits no more often than gpu, in the first runs and in later ones. */
static void test_auto(void **state) {
    (void)state;
    static const char sql[] = "select w.v, count(*), sum(t.a)::bigint from t join (select k, v from u where v < 40) w "
                              "on t.k = w.k where t.a > 5 group by w.v order by 1";
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i * 7 % 101 k from generate_series(0::bigint, 2999) s(i)");
    run("create table u as select i k, i * 3 v from generate_series(0::bigint, 100) s(i)");
    run("set device = gpu");
    run("call gpu_cache('t')");
    run("call gpu_cache('u')");
    run("set host_rows = 50");
    cpu_rates_tell(db->cpu, &(struct device_rates){
                                .bytes_per_ns = 1e-6, .probes_per_ns = 1e-6, .cost_per_ns = 1e-6});
    gpu_rates_tell(0, &(struct device_rates){.bytes_per_ns = 1000,
                                             .probes_per_ns = 10,
                                             .bus_bytes_per_ns = 10,
                                             .bus_down_bytes_per_ns = 10,
                                             .launch_ns = 1000});
    int64_t waits[2][6];
    for (int k = 0; k < 2; k++) {
        run(k ? "set device = auto" : "set device = gpu");
        for (int i = 0; i < 6; i++) {
            waits[k][i] = waits_of(sql);
        }
    }
    for (int i = 3; i < 6; i++) {
        assert_true(waits[1][i] <= waits[0][i]);
    }
    close_db();
}

struct counts {
    int64_t waits, launches;
};

static struct counts counts_of(wf_statement *statement) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    assert_int_equal(wf_execute(statement, &result), WF_OK);
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
    }
    assert_int_equal(wf_result_error(result)->status, WF_OK);
    struct counts counts = {wf_result_metric(result, "waits"), wf_result_metric(result, "launches")};
    wf_result_close(result);
    return counts;
}

/* Whatever its runs took, all on the card was fastest. */
static void tell_card(wf_statement *statement) {
    struct ways *ways = past_ways(statement->compiled->past);
    memset(ways, 0, sizeof *ways);
    for (int k = 0; k < WAY_LOOKS; k++) {
        for (enum way way = 0; way < WAYS; way++) {
            ways_took(ways, way, way == WAY_CARD ? 1 : 1000000000000);
        }
    }
}

/* A statement that has run several times. */
static struct counts counts_settled(const char *sql, bool tells) {
    wf_statement *statement = NULL;
    struct counts counts = {0, 0};
    assert_int_equal(wf_prepare(conn, sql, &statement), WF_OK);
    for (int i = 0; i < 8; i++) {
        counts = counts_of(statement);
        if (tells) {
            tell_card(statement);
        }
    }
    wf_statement_close(statement);
    return counts;
}

static void tell_bus(f64 bytes_per_ns) {
    gpu_rates_tell(0, &(struct device_rates){.bytes_per_ns = 1000,
                                             .probes_per_ns = 10,
                                             .bus_bytes_per_ns = bytes_per_ns,
                                             .bus_down_bytes_per_ns = 10,
                                             .launch_ns = 1000});
}

/* Where auto has found that a statement is fastest on the card, it goes the way that it goes there when the session
 * asks for the card: as many launches, and no more waits. What is sorted has many rows before the first of them are
 * all that is left; columns of tables with few rows, which the host reads, need not be on the card, and others come
 * there where that takes little. */
static void test_settled(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select t.k, sum(t.a)::bigint from t join few on t.g = few.k group by t.k order by 2 desc limit 3",
        "select few.v, count(*) from t join few on t.g = few.k where t.a > 50 group by few.v order by 1",
        "select count(*) from t where k in (select k from t group by k order by max(a) desc, k limit 20) and g < 9",
        "select t.a, few.v from t join few on t.g = few.k order by t.k desc, t.a limit 7",
        "select few.v, count(*) from t join (select k, max(a) m from t group by k) w on t.a = w.m "
        "join few on t.g = few.k where few.v <> 2 group by few.v",
        "select x.v, count(*) from t join (select k, v from few where v <> 6) x on t.g = x.k group by x.v"};
    enum { OWN = sizeof texts / sizeof *texts, ALL = OWN + sizeof queries / sizeof *queries };
    open_db("0", "vm");
    make_tables();
    run("create table few as select i * 7 % 11 k, i * i % 7 v from generate_series(0::bigint, 9) s(i)");
    run("set host_rows = 50");
    run("set device = gpu"); /* which auto would not start for so few rows */
    run("select 1 from few where k > 0");
    for (int i = 0; i < ALL; i++) {
        const char *sql = i < OWN ? texts[i] : queries[i - OWN].sql;
        struct counts settled[2];
        run("set device = auto");
        tell_bus(10); /* columns that are not there yet come soon */
        settled[0] = counts_settled(sql, true);
        run("set device = gpu");
        struct counts gpu = counts_settled(sql, false);
        run("set device = auto");
        tell_bus(1e-6); /* or not at all */
        settled[1] = counts_settled(sql, true);
        for (int k = 0; k < 2; k++) {
            if (settled[k].launches != gpu.launches || settled[k].waits > gpu.waits) {
                fail_msg("%s: %lld launches for %lld, %lld waits for %lld", sql, (long long)settled[k].launches,
                         (long long)gpu.launches, (long long)settled[k].waits, (long long)gpu.waits);
            }
        }
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_repeats),
                                       cmocka_unit_test(test_surprises), cmocka_unit_test(test_orders),
                                       cmocka_unit_test(test_windows), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_few), cmocka_unit_test(test_chip),
                                       cmocka_unit_test(test_auto), cmocka_unit_test(test_settled)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}

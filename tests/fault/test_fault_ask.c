/* test_fault_ask.c: every question whether a statement is to end is answered by yes, one after the
 * other.
 *
 * Whoever is told to stop stops: the statement ends with 57014, nobody below it goes on for more
 * than a few questions, tables are as they were, and the memory comes back. One thread works, so a
 * statement asks the same questions every time; in test builds loops ask much more often. */
#include "base/stop.h"
#include "fault_big.h"

/* Of a statement that asks often the first and the last questions are tried, and some between. */
enum { TRIED_ENDS = 28, TRIED_BETWEEN = 24 };
/* Questions on the way out: who is told looks again to report it, and so may the next level. */
enum { MORE_MOST = 3 };

enum { CSV_LINES = 3000 };

static int setup(void **state) {
    (void)state;
    int status = big_open(&(struct big){"1", "ask.csv", 1024, 3000, 1, 50, 900, CSV_LINES});
    char sql[700];
    snprintf(sql, sizeof sql, "copy (select column0, column1, column2 from '%s') to '%s.gz'",
             csv_path, csv_path);
    run(f.conn, sql);
    return status;
}

static int teardown(void **state) {
    char archive[310];
    snprintf(archive, sizeof archive, "%s.gz", csv_path);
    remove(archive);
    return big_close(state);
}

#define KEYED                                                                                    \
    "drop table if exists child; drop table if exists keyed; create table keyed (k int primary " \
    "key, "                                                                                      \
    "v text); insert into keyed select i, 's' || i from generate_series(1, 600) v(i); "          \
    "create table child (k int references keyed on delete cascade); insert into child "          \
    "select i from generate_series(1, 600) v(i)"
#define LOOK_KEYED "select count(*), sum(keyed.k), max(v) from keyed join child using (k)"
#define EMPTY "drop table target; create table target (i bigint, g int, s text)"
#define LOOK_TARGET "select count(*) from target"

#define PLUS_20 "+i+g+i+g+i+g+i+g+i+g+i+g+i+g+i+g+i+g+i+g"
#define PLUS_200 \
    PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20 PLUS_20

struct piece {
    const char *sql;
    int64_t more;       /* questions of tasks that are handed out before anybody looks; 0 = none */
    const char *before; /* what makes things as they were, or NULL */
    const char *look;   /* says the same after the statement was stopped */
};

static const struct piece pieces[] = {
    {"select sum(x), count(*) from big where s like '%1%2%'", 0, NULL, NULL},
    {"select i, g, s || i from big where x > 10", 0, NULL, NULL},
    {"select count(*) from big a join big b on a.g = b.g where a.i < b.i", 0, NULL, NULL},
    {"select count(*) from big a join big b on a.i > b.i and a.i < b.i + 3", 0, NULL, NULL},
    {"select a.s, b.x from big a full join big b on a.i = b.i + 100 and a.x < b.x", 0, NULL, NULL},
    {"select count(*) from big a join big b on a.s = b.s and a.i = b.i", 2100, NULL, NULL},
    {"select count(*) from big a where exists (select 1 from big b where b.i = a.i + 1 and b.s <> "
     "a.s)",
     0, NULL, NULL},
    {"select count(*) from big a where s not in (select s from big where g = 3)", 0, NULL, NULL},
    {"select * from big order by s, x desc, i", 60, NULL, NULL},
    {"select x, s from big order by 2, 1 limit 100", 0, NULL, NULL},
    {"select i, s, count(*), sum(x) from big group by i, s", 0, NULL, NULL},
    {"select g, count(*) from big group by grouping sets ((g), (s), (g, s), ()) order by 1, 2", 60,
     NULL, NULL},
    {"select distinct s, i, x from big", 0, NULL, NULL},
    {"select i from big union select g from big except select 3 intersect select i from big", 0,
     NULL, NULL},
    {"select g, string_agg(s, ',' order by i), median(x), count(distinct s) from big group by g",
     60, NULL, NULL},
    {"select mode() within group (order by s), percentile_cont(0.3) within group (order by x), "
     "percentile_disc(0.5) within group (order by s), stddev(x) from big",
     60, NULL, NULL},
    {"select string_agg(s, ',') over (order by i rows 3 preceding) from big", 0, NULL, NULL},
    {"select row_number() over (partition by g order by s), lag(s) over (order by x) from big", 60,
     NULL, NULL},
    {"select first_value(s) over w, last_value(x) over w, nth_value(s, 2) over w, ntile(4) over w, "
     "percent_rank() over w, max(s) over w from big window w as (partition by g order by i)",
     60, NULL, NULL},
    {"select min(x) over (order by i rows between 5 preceding and 3 following exclude current "
     "row), sum(x) over (order by i range between 100 preceding and 10 following), count(*) over "
     "(order by g groups 2 preceding) from big",
     60, NULL, NULL},
    {"with recursive r(n) as (select 1 union all select n + 1 from r where n < 60) select sum(n) "
     "from r",
     0, NULL, NULL},
    {"select * from generate_series(1, 3000) a(i) left join big on big.i = a.i order by 1 desc", 60,
     NULL, NULL},
    {"explain analyze select count(*) from big where s like '%1%'", 0, NULL, NULL},
    {"select pg_sleep(0.1)", 0, NULL, NULL},
    {"select upper(t), lower(t), initcap(t), reverse(t), replace(t, 'e', 'xx'), md5(t), "
     "translate(t, 'te', 'x'), lpad(t, 9000), repeat(t, 3) from (select repeat('text' || i, 300) t "
     "from big where i < 1) v",
     20, NULL, NULL},
    {"select regexp_replace(t, '[a-z]+(x)?', 'y', 'g'), t ~ '(t|e)+x.*9z', t similar to "
     "'%(1|2)%z', "
     "t like '%1%2%_z', position('zz' in t) from (select repeat('text' || i, 300) t from big where "
     "i < 1) v",
     20, NULL, NULL},
    {"insert into target select i, g, s from big where upper(s) like '%7%'", 0, EMPTY, LOOK_TARGET},
    {"insert into target select i, g, s from big order by s", 60, EMPTY, LOOK_TARGET},
    {"create table made as select i, s || 'x' as t from big", 0, "drop table if exists made",
     "select count(*) from information_schema.tables where table_name = 'made'"},
    {"copy target from 'FILE'", 0, EMPTY, LOOK_TARGET},
    {"select count(*), max(column2) from 'FILE'", 0, NULL, NULL},
    {"select count(*) from read_csv('FILE', quote => '''', escape => '!', comment => '#')", 0, NULL,
     NULL},
    {"insert into target select column0, column1, column2 || 'x' from 'FILE'", 0, EMPTY,
     LOOK_TARGET},
    {"select count(*), max(column2) from 'FILE.gz'", 0, NULL, NULL},
    {"copy target from 'FILE.gz'", 0, EMPTY, LOOK_TARGET},
    {"select sum(i" PLUS_200 "), max(x" PLUS_200 ") from big where i < 3 and x" PLUS_200 " > 0", 0,
     NULL, NULL},
    {"copy (select * from big order by s) to '/dev/null'", 60, NULL, NULL},
    {"copy big to '/dev/null' (header)", 0, NULL, NULL},
    {"update keyed set v = v || 'x' where k % 2 = 0", 0, KEYED, LOOK_KEYED},
    {"delete from keyed where k > 10", 0, KEYED, LOOK_KEYED},
    {"insert into keyed select i, s from big where i > 300 on conflict (k) do update set v = "
     "excluded.v",
     0, KEYED, LOOK_KEYED},
    {"insert into child select k from keyed", 0, KEYED, LOOK_KEYED},
    {"alter table keyed add column w int default 5", 0, KEYED, LOOK_KEYED},
    {"alter table keyed alter column v type varchar(10)", 0, KEYED, LOOK_KEYED},
    {"create unique index made_index on big (i)", 0, "drop index if exists made_index", NULL},
};

/* The statement and all its rows. */
static wf_status run_all(const char *sql) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    wf_status status = wf_query(f.conn, sql, &result);
    do {
        status = status ? status : wf_result_next_batch(result, &batch);
    } while (!status && batch);
    wf_result_close(result);
    return status;
}

static void say(const struct piece *p, char *out, size_t cap) {
    out[0] = 0;
    if (p->look) {
        wf_result *result = must(f.conn, p->look);
        flatten(result, out, cap);
        wf_result_close(result);
    }
}

static void try_at(const struct piece *p, const char *sql, int64_t nth, int64_t *io_worst) {
    char before[500], after[500];
    say(p, before, sizeof before);
    if (sql != p->sql) {
        write_csv(csv_path, CSV_LINES); /* a new file: what was found out about the old is kept */
    }
    (void)stop_from(nth);
    wf_status status = run_all(sql);
    int64_t asked = stop_from(0);
    if (asked >= nth && status != WF_CANCELLED) {
        fail_msg("%s: told to stop at question %lld of %lld, ended with %d", sql, (long long)nth,
                 (long long)asked, (int)status);
    }
    int64_t more = asked - nth;
    *io_worst = more > *io_worst ? more : *io_worst;
    if (more > (p->more ? p->more : MORE_MOST)) {
        fail_msg("%s: %lld questions after it was told to stop at question %lld", sql,
                 (long long)more, (long long)nth);
    }
    if (status) {
        say(p, after, sizeof after);
        assert_string_equal(after, before);
    } else if (p->before) {
        run(f.conn, p->before);
    }
}

static void try_piece(const struct piece *p) {
    char buf[700];
    const char *sql = with_file(p->sql, csv_path, buf);
    if (p->before) {
        run(f.conn, p->before);
    }
    (void)stop_from(INT64_MAX);
    wf_status status = run_all(sql);
    int64_t count = stop_from(0);
    if (status) {
        show_error(f.conn, sql);
    }
    assert_int_equal(status, WF_OK);
    if (p->before) {
        run(f.conn, p->before);
    }
    int64_t between = (count - 2 * TRIED_ENDS) / TRIED_BETWEEN + 1;
    int64_t used = wf_memory_used(f.db);
    int64_t worst = 0;
    for (int64_t nth = 1; nth <= count;) {
        try_at(p, sql, nth, &worst);
        nth += nth < TRIED_ENDS || nth > count - TRIED_ENDS ? 1 : between;
    }
    if (getenv("FAULT_VERBOSE")) {
        fprintf(stderr, "%lld questions, %lld more: %s\n", (long long)count, (long long)worst, sql);
    }
    if (p->before) {
        run(f.conn, p->before);
    }
    if (wf_memory_used(f.db) > used + (64 << 10)) {
        fail_msg("%s: %lld bytes stay", sql, (long long)(wf_memory_used(f.db) - used));
    }
    check_control(f.conn);
}

static void test_pieces(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        try_piece(&pieces[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* test_fault_stop.c: statements that are stopped, and sessions that get in each other's way.
 *
 * Every kind of long work (scan, join expansion, sort, group-by, load, insert) is cancelled from
 * another thread at many moments and cut off by statement_timeout: it ends soon, with its answer or
 * with 57014, and changes all or nothing. Then several connections insert, select, drop and create
 * under the same names at once. */
#include <stdatomic.h>
#include <time.h>

#include "fault_big.h"

enum { ROWS = 300000, CSV_LINES = 200000 };
/* What a test may take of a processor after it was told to stop: time on the clock says more of
 * what else the machine does. */
enum { SECONDS_MOST = 2 };

static int setup(void **state) {
    (void)state;
    return big_open(&(struct big){"3", "stop.csv", 65536, ROWS, 7919, 300, 100000, CSV_LINES});
}

/* Not by SET: that is a statement, too, and on a busy machine it may not end in time itself. */
static void set_timeout(int ms) {
    char text[20];
    snprintf(text, sizeof text, "%d", ms);
    assert_int_equal(wf_set(f.conn, "statement_timeout", text), WF_OK);
}

static const char *const long_ones[] = {
    "select i from big where upper(s) || lower(s) like '%9%9%9%' and x * 3 > i",
    "select sum(x), count(*) from big where s like '%1%2%' or s like '%3%4%'",
    "select count(*) from big a join big b on a.g = b.g where a.i < b.i",
    "select a.i, b.i from big a, big b where a.i + b.i = 77",
    "select count(*) from big a, big b, big c",
    "select * from big order by s, x desc, i",
    "select x, s from big order by 2, 1 limit 100000",
    "select i, s, count(*), sum(x) from big group by i, s",
    "select s || i, count(*) from big group by 1",
    "select distinct s, i, x from big",
    "insert into target select i, g, s from big where upper(s) like '%7%'",
    "copy target from 'FILE'",
    "select count(*), max(column2) from 'FILE'",
    "select count(*) from read_csv('FILE', quote => '''', escape => '!', comment => '#')",
    "insert into target select column0, column1, column2 || 'x' from 'FILE'",
};

static const char *statement_of(size_t i, char *buf) {
    return with_file(long_ones[i], csv_path, buf);
}

/* All or nothing: `target` is empty, or holds what the statement brings. */
static void check_target(wf_status status) {
    char got[1000];
    wf_result *result = must(f.conn, "select count(*) from target");
    flatten(result, got, sizeof got);
    wf_result_close(result);
    long long count = atoll(got);
    assert_true(status ? count == 0 : count >= 0);
    if (count) {
        run(f.conn, "drop table target; create table target (i bigint, g int, s text)");
    }
}

struct canceller {
    wf_connection *conn;
    int64_t delay_ns;
    bool told;
    clock_t at; /* what the process had taken of its processors when it was told */
    struct mutex lock;
    struct cond wake;
    bool over;
};

static void cancel_later(void *arg) {
    struct canceller *c = arg;
    mutex_lock(&c->lock);
    int64_t until = clock_ns() + c->delay_ns;
    while (!c->over && clock_ns() < until) {
        cond_wait_ns(&c->wake, &c->lock, until - clock_ns());
    }
    while (!c->over) { /* again and again: one that comes before the statement is forgotten */
        c->at = c->told ? c->at : clock();
        c->told = true;
        wf_cancel(c->conn);
        cond_wait_ns(&c->wake, &c->lock, 5000000);
    }
    mutex_unlock(&c->lock);
}

/* Runs a statement that is cancelled after `delay_ns`; what it took of the processors after that,
 * in milliseconds, or -1 when it ended by itself. */
static int64_t cancelled_after(const char *sql, int64_t delay_ns) {
    struct canceller c = {.conn = f.conn, .delay_ns = delay_ns};
    mutex_init(&c.lock);
    cond_init(&c.wake);
    struct thread *thread = thread_start(cancel_later, &c);
    assert_non_null(thread);
    wf_status status = wf_query(f.conn, sql, NULL);
    clock_t end = clock();
    mutex_lock(&c.lock);
    c.over = true;
    cond_broadcast(&c.wake);
    mutex_unlock(&c.lock);
    thread_join(thread);
    cond_fini(&c.wake);
    mutex_fini(&c.lock);
    if (status && status != WF_CANCELLED) {
        show_error(f.conn, sql);
    }
    assert_true(status == WF_OK || status == WF_CANCELLED);
    if (status) {
        assert_string_equal(wf_connection_error(f.conn)->sqlstate, "57014");
    }
    check_target(status);
    return status && c.told ? (int64_t)(end - c.at) * 1000 / CLOCKS_PER_SEC : -1;
}

static void test_cancel(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        char buf[700];
        const char *sql = statement_of(i, buf);
        int64_t worst = -1;
        int64_t used = wf_memory_used(f.db);
        for (int64_t delay_ms = 0; delay_ms < 400; delay_ms += delay_ms / 3 + 2) {
            int64_t late = cancelled_after(sql, delay_ms * 1000000);
            worst = late > worst ? late : worst;
            if (late < 0 && delay_ms > 0) {
                break; /* it ends by itself before that */
            }
        }
        if (getenv("FAULT_VERBOSE")) {
            fprintf(stderr, "stops within %lld ms: %s\n", (long long)worst, sql);
        }
        if (worst >= SECONDS_MOST * 1000) {
            fprintf(stderr, "%lld ms: %s\n", (long long)worst, sql);
        }
        assert_true(worst < SECONDS_MOST * 1000);
        run(f.conn, "drop table target; create table target (i bigint, g int, s text)");
        assert_true(wf_memory_used(f.db) <= used + (4 << 20)); /* ranks of texts may be kept */
        check_control(f.conn);
    }
}

/* A cascade that goes on for a hundred thousand waves: it stops, and nothing of it has happened. */
static void test_cascade(void **state) {
    (void)state;
    run(f.conn, "create table chain (id int primary key, p int references chain on delete cascade)");
    run(f.conn, "insert into chain select i, nullif(i - 1, 0) from generate_series(1, 100000) i");
    for (int64_t delay_ms = 1, late = 0; late >= 0; delay_ms += delay_ms / 2 + 1) {
        late = cancelled_after("delete from chain where id = 1", delay_ms * 1000000);
        assert_true(late < SECONDS_MOST * 1000);
        char got[100];
        wf_result *result = must(f.conn, "select count(*) from chain");
        flatten(result, got, sizeof got);
        wf_result_close(result);
        bool ended = atoll(got) == 0;
        assert_true(ended || atoll(got) == 100000);
        if (ended) {
            break;
        }
    }
    run(f.conn, "drop table chain");
}

static void test_timeout(void **state) {
    (void)state;
    static const int timeouts[] = {1, 7, 40};
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        for (size_t k = 0; k < 3; k++) {
            char buf[700];
            set_timeout(timeouts[k]);
            const char *sql = statement_of(i, buf);
            clock_t start = clock();
            wf_status status = wf_query(f.conn, sql, NULL);
            int64_t ms = (int64_t)(clock() - start) * 1000 / CLOCKS_PER_SEC;
            assert_true(status == WF_OK || status == WF_CANCELLED);
            assert_true(ms < SECONDS_MOST * 1000);
            set_timeout(0);
            check_target(status);
        }
        check_control(f.conn);
    }
    set_timeout(20);
    refuse(f.conn, "select count(*) from big a, big b, big c", "57014", "statement_timeout");
    set_timeout(0);
}

/* None of these ends by itself before the test's patience does: the source has 10^18 rows, and
 * stopping must not walk through the rest of them. */
static const char *const endless[] = {
    "select count(*) from generate_series(1, 1000000000000000000)",
    "select i from generate_series(1, 1000000000000000000) i order by i desc limit 3",
    "select i from generate_series(1, 1000000000000000000) i where i < 0 limit 3",
    "select distinct i % 10 from generate_series(1, 1000000000000000000) i",
    "create table endless as select i from generate_series(1, 1000000000000000000) i",
    "insert into target select i, 1, 'x' from generate_series(1, 1000000000000000000) i",
    "select generate_series(1, 3), generate_series(1, 1000000000000000000)",
    "select exists (select from generate_series(1, 1000000000000000000) i where i < 0)",
    "select count(*) from generate_series(1, 1000000000000000000) i where i in (select g from big)",
    "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000000) b",
    "select max(b) from (values (1), (2)) v(a), lateral generate_series(a, 1000000000000000000) b",
    "with recursive r(n) as (select 1::bigint union all select n + 1 from r) select max(n) from r",
    "select count(*) from generate_series(timestamp '2000-01-01', '290000-01-01', '1 us')",
    "select count(*) from generate_series(1.0, 1000000000000000000.0, 0.1)",
};

/* The first rows of such a source come at once. */
static void test_first_rows(void **state) {
    (void)state;
    static const char *const first[][2] = {
        {"select g from generate_series(1, 1000000000000000000) g limit 3", "1;2;3;"},
        {"select count(*) from (select g from generate_series(1, 1000000000000000000) g limit "
         "300000) q",
         "300000;"},
        {"select count(*) from (select g from generate_series(1, 1000000000000000000) g union all "
         "select 1 limit 70000) q",
         "70000;"},
        {"select g from generate_series(1.0, 1000000000000000000) g limit 2", "1.0;2.0;"},
        {"select g from (values (7)) v(a), lateral generate_series(a, 1000000000000000000, 3) g "
         "limit 3",
         "7;10;13;"},
    };
    run(f.conn, "set statement_timeout = 5000");
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        expect(f.conn, first[i][0], first[i][1]);
    }
    run(f.conn, "set statement_timeout = 0");
}

static void test_endless(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        int64_t late = cancelled_after(endless[i], 40000000);
        set_timeout(40);
        clock_t start = clock();
        refuse(f.conn, endless[i], "57014", "statement_timeout");
        int64_t ms = (int64_t)(clock() - start) * 1000 / CLOCKS_PER_SEC;
        set_timeout(0);
        late = ms > late && late >= 0 ? ms : late;
        if (getenv("FAULT_VERBOSE") || late < 0 || late >= SECONDS_MOST * 1000) {
            fprintf(stderr, "stops after %lld ms: %s\n", (long long)late, endless[i]);
        }
        assert_true(late >= 0 && late < SECONDS_MOST * 1000);
        check_control(f.conn);
    }
    expect(f.conn, "select count(*) from target", "0;");
}

/* One row is enough: a single value that takes long, folded while the query is compiled or made
 * from a column. */
static const char *const long_values[] = {
    "select length(repeat('x', 400000000))",
    "select length(lpad('é', 200000000, 'é'))",
    "select length(regexp_replace(repeat('x', 50000000), 'x', 'yyyy', 'g'))",
    "select length(replace(repeat('x', 50000000), 'x', 'yyyy'))",
    "select length(translate(repeat('x', 50000000), repeat('abcdefghij', 1000), 'y'))",
    "select strpos(repeat('x', 10000000), repeat('x', 5000000) || 'b')",
    "select repeat('x', 1000000) like '%' || repeat('x', 500000) || 'b%'",
    "select repeat('x', 1000000) ilike '%' || repeat('x_', 250000) || 'b%'",
    "select regexp_count(repeat('x', 1000000), 'x|x*y')",
    "select regexp_substr(repeat('ab', 20000000), 'b+a?b', 1, 20000000)",
    "select md5(repeat('x', 200000000)), sha512(repeat('x', 200000000)::bytea)",
    "select length(encode(repeat('x', 100000000)::bytea, 'base64'))",
    "select length(decode(repeat('41', 50000000), 'hex'))",
    "select length(upper(repeat('xé', 50000000))), length(initcap(repeat('xé', 50000000)))",
    "select length(reverse(repeat('xé', 50000000)))",
    "select length(btrim(repeat('x', 100000000), repeat('y', 1000) || 'x'))",
    "select split_part(repeat('a,', 100000000), ',', 100000000)",
    "select length(to_char(1.5, repeat('x', 40000000)))",
    "select length(to_char(timestamp '2020-01-01', repeat('x', 40000000)))",
    "select length(to_char(timestamptz '2020-01-01', repeat('\"', 40000000)))",
    "select length(to_char(interval '1 day', repeat('x', 40000000)))",
    "select to_number('12', repeat('x', 40000000))",
    "select to_date(repeat('x', 40000000), repeat('\"x\"', 40000000))",
    "select length(string_agg(repeat('x', 1000000), '')) from generate_series(1, 300)",
};

static void stop_value(const char *sql, int timeout_ms) {
    set_timeout(timeout_ms);
    clock_t start = clock();
    wf_status status = wf_query(f.conn, sql, NULL);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    set_timeout(0);
    assert_true(status == WF_OK || status == WF_CANCELLED);
    if (seconds > SECONDS_MOST) {
        fprintf(stderr, "%.1f s: %.100s\n", seconds, sql);
    }
    assert_true(seconds <= SECONDS_MOST);
}

static void test_long_values(void **state) {
    (void)state;
    int64_t used = wf_memory_used(f.db);
    run(f.conn, "create table one (x text)");
    run(f.conn, "insert into one values ('x')");
    for (size_t i = 0; i < sizeof long_values / sizeof *long_values; i++) {
        const char *sql = long_values[i], *constant = strstr(sql, "repeat('x'");
        stop_value(sql, 30);
        if (constant && !strstr(sql, " from ")) {
            char from_column[300];
            snprintf(from_column, sizeof from_column, "%.*srepeat(x%s from one",
                     (int)(constant - sql), sql, constant + strlen("repeat('x'"));
            stop_value(from_column, 30);
        }
        check_control(f.conn);
    }
    run(f.conn, "drop table one");
    assert_true(wf_memory_used(f.db) <= used + (4 << 20));
}

/* Statements that take long before anything runs: head, piece count times, tail. */
static const struct giant {
    const char *head, *piece, *tail;
    int count;
} giants[] = {
    {"select count(*) from control group by ", "k + #, ", "g", 20000},
    {"select k from control order by ", "k + #, ", "g", 20000},
    {"select g from control group by g having ", "sum(k) > # and ", "true", 9000},
    {"select k from control where ", "g like '%#%' or ", "false", 9000},
    {"select k from control where k in (", "#, ", "0)", 300000},
    {"select greatest(", "k + #, ", "1) from control", 20000},
    {"select length(", "g || '#' || ", "'') from control", 4900},
    {"select ", "(select max(k) + # from control), ", "1", 900},
    {"select ", "sum(k) over (order by k + #), ", "1 from control", 1500},
    {"values ", "(# + random(), 'v#'), ", "(1, '')", 100000},
    {"insert into target values ", "(#, #, 'v#'), ", "(1, 1, '')", 100000},
};

static char *giant_text(const struct giant *g) {
    size_t cap = strlen(g->head) + strlen(g->tail) + (strlen(g->piece) + 24) * (size_t)g->count + 1;
    char *text = malloc(cap);
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, cap, "%s", g->head);
    for (int i = 0; i < g->count; i++) {
        for (const char *at = g->piece; *at; at++) {
            len += (size_t)snprintf(text + len, cap - len, *at == '#' ? "%d" : "%c",
                                    *at == '#' ? i : *at);
        }
    }
    snprintf(text + len, cap - len, "%s", g->tail);
    return text;
}

static void test_giants(void **state) {
    (void)state;
    static const int timeouts[] = {20, 150};
    for (size_t i = 0; i < 2 * sizeof giants / sizeof *giants; i++) {
        char *sql = giant_text(&giants[i / 2]);
        stop_value(sql, timeouts[i % 2]);
        free(sql);
        run(f.conn, "drop table target; create table target (i bigint, g int, s text)");
    }
    check_control(f.conn);
}

/* A cancel that comes when nothing runs is forgotten. */
static void test_cancel_idle(void **state) {
    (void)state;
    wf_cancel(f.conn);
    check_control(f.conn);
    wf_cancel(NULL);
}

enum { SESSIONS = 4, ROUNDS = 25 };

struct session {
    wf_database *db;
    wf_connection *conn;
    int number;
    _Atomic int64_t *shared_rows; /* rows put into `shared` so far, by all */
    _Atomic int *over;
    int failures;
};

/* Runs a statement that may meet others; only these errors are fair. */
static wf_status fair(struct session *s, const char *sql) {
    static const char *const allowed[] = {"00000", "42P01", "42P07", "57014",
                                          "42703", "42601"}; /* another's table of that name */
    wf_result *result = NULL;
    wf_status status = wf_query(s->conn, sql, &result);
    const char *sqlstate = wf_connection_error(s->conn)->sqlstate;
    bool known = false;
    for (int i = 0; i < 6; i++) {
        known = known || strcmp(sqlstate, allowed[i]) == 0;
    }
    if (!known) {
        show_error(s->conn, sql);
        s->failures++;
    }
    wf_result_close(result);
    return status;
}

static void session_round(struct session *s, int round) {
    char sql[300];
    snprintf(sql, sizeof sql, "create table mine_%d (a int, s text)", s->number);
    fair(s, sql);
    snprintf(sql, sizeof sql, "insert into mine_%d select k, g from control", s->number);
    s->failures += fair(s, sql) != WF_OK;
    snprintf(sql, sizeof sql, "insert into shared values (%d, 'word %d'), (%d, null)", s->number,
             round * 10 + s->number, round);
    if (!fair(s, sql)) {
        atomic_fetch_add(s->shared_rows, 2);
    }
    fair(s, "create table if not exists contested (a int, t text)");
    fair(s, "insert into contested select k, t from control_two");
    fair(s, "select t, count(*) from contested group by t order by t");
    fair(s, "select s.a, c.g from shared s join control c on s.a = c.k where s.t is not null");
    fair(s, round % 2 ? "drop table contested" : "drop table if exists contested, absent");
    fair(s, round % 3 ? "create table contested (b date)" : "select max(t), count(*) from shared");
    snprintf(sql, sizeof sql, "select count(*), sum(a) from mine_%d", s->number);
    fair(s, sql);
    snprintf(sql, sizeof sql, "drop table mine_%d", s->number);
    s->failures += fair(s, sql) != WF_OK;
}

static void session_main(void *arg) {
    struct session *s = arg;
    for (int round = 0; round < ROUNDS; round++) {
        session_round(s, round);
    }
}

struct nuisance {
    wf_connection *conns[SESSIONS];
    _Atomic int over;
};

static void victim_main(void *arg) {
    struct session *s = arg;
    while (!atomic_load(s->over)) {
        fair(s, "select count(*) from control a, control b, control c, control d, control e");
        fair(s, "insert into scratch select k from control");
    }
}

static void nuisance_main(void *arg) {
    struct nuisance *n = arg;
    while (!atomic_load(&n->over)) {
        for (int i = 0; i < SESSIONS; i++) {
            wf_cancel(n->conns[i]);
        }
    }
}

static void test_sessions(void **state) {
    (void)state;
    run(f.conn, "create table shared (a int, t text)");
    _Atomic int64_t rows = 0;
    struct session sessions[SESSIONS];
    struct thread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = (struct session){.db = f.db, .number = i, .shared_rows = &rows};
        assert_int_equal(wf_connect(f.db, &sessions[i].conn), WF_OK);
    }
    for (int i = 0; i < SESSIONS; i++) {
        threads[i] = thread_start(session_main, &sessions[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
        wf_disconnect(sessions[i].conn);
    }
    for (int i = 0; i < SESSIONS; i++) {
        assert_int_equal(sessions[i].failures, 0);
    }
    char want[60];
    snprintf(want, sizeof want, "%lld;", (long long)atomic_load(&rows));
    expect(f.conn, "select count(*) from shared", want);
    assert_int_equal(atomic_load(&rows), SESSIONS * ROUNDS * 2);
    check_control(f.conn);
    run(f.conn, "drop table shared; drop table if exists contested");
}

/* One thread cancels everybody all the time: statements end either way, tables stay whole. */
static void test_nuisance(void **state) {
    (void)state;
    run(f.conn, "create table scratch (k int)");
    struct nuisance n;
    atomic_init(&n.over, 0);
    _Atomic int over = 0;
    struct session sessions[SESSIONS];
    struct thread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = (struct session){.db = f.db, .number = i, .over = &over};
        assert_int_equal(wf_connect(f.db, &sessions[i].conn), WF_OK);
        n.conns[i] = sessions[i].conn;
        threads[i] = thread_start(victim_main, &sessions[i]);
    }
    struct thread *bad = thread_start(nuisance_main, &n);
    for (int i = 0; i < 40; i++) {
        check_control(f.conn);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    atomic_store(&n.over, 1);
    thread_join(bad);
    for (int i = 0; i < SESSIONS; i++) {
        assert_int_equal(sessions[i].failures, 0);
        check_control(sessions[i].conn);
        wf_disconnect(sessions[i].conn);
    }
    expect(f.conn, "select count(*) % 5 from scratch", "0;");
    run(f.conn, "drop table scratch");
}

/* A connection is for one thread at a time; the second is told, and nothing breaks. */
static void intruder_main(void *arg) {
    struct session *s = arg;
    while (!atomic_load(s->over)) {
        wf_result *result = NULL;
        wf_status status = wf_query(s->conn, "select count(*) from control", &result);
        s->failures += status != WF_OK && status != WF_MISUSE;
        wf_result_close(result);
    }
}

static void test_intruders(void **state) {
    (void)state;
    _Atomic int over = 0;
    struct session sessions[SESSIONS];
    struct thread *threads[SESSIONS];
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(f.db, &conn), WF_OK);
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = (struct session){.conn = conn, .over = &over};
        threads[i] = thread_start(intruder_main, &sessions[i]);
    }
    for (int i = 0; i < 40; i++) {
        check_control(f.conn);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        assert_int_equal(sessions[i].failures, 0);
    }
    check_control(conn);
    wf_disconnect(conn);
}

/* Results, statements and streams outlive what they came from, in any order. */
static void test_any_order(void **state) {
    (void)state;
    struct fault_db g = open_with("2", NULL);
    make_control(g.conn);
    wf_result *result = must(g.conn, "select g || 'x', k from control order by k");
    wf_result *other = must(g.conn, "select g || 'x', k from control order by k");
    wf_statement *statement = NULL;
    assert_int_equal(wf_prepare(g.conn, "select k from control where k > $1", &statement), WF_OK);
    struct ArrowArrayStream stream;
    assert_int_equal(wf_result_arrow_stream(other, &stream), WF_OK);
    run(g.conn, "drop table control");
    close_both(g);
    char got[1000];
    flatten(result, got, sizeof got);
    assert_string_equal(got, "ax|1;bx|2;ax|3;~|4;bx|5;");
    wf_result_close(result);
    wf_result_close(other);
    struct ArrowArray array = {0};
    assert_int_equal(stream.get_next(&stream, &array), 0);
    assert_int_equal(array.length, 5);
    stream.release(&stream);
    array.release(&array);
    wf_statement_close(statement);
}

/* The text of a parameter in a result is the result's own. */
static void test_parameter_text(void **state) {
    (void)state;
    wf_statement *statement = NULL;
    wf_result *result = NULL;
    assert_int_equal(
        wf_prepare(f.conn, "select coalesce(g, $1), k from control order by k", &statement), WF_OK);
    assert_int_equal(wf_bind_text(statement, 1, "a text of some length", -1), WF_OK);
    assert_int_equal(wf_execute(statement, &result), WF_OK);
    assert_int_equal(wf_bind_text(statement, 1, "another, even longer one than that", -1), WF_OK);
    wf_statement_close(statement);
    char got[1000];
    flatten(result, got, sizeof got);
    assert_string_equal(got, "a|1;b|2;a|3;a text of some length|4;b|5;");
    wf_result_close(result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),      cmocka_unit_test(test_cascade),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_first_rows),  cmocka_unit_test(test_endless),
        cmocka_unit_test(test_long_values), cmocka_unit_test(test_giants),
        cmocka_unit_test(test_cancel_idle), cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_nuisance),    cmocka_unit_test(test_intruders),
        cmocka_unit_test(test_any_order),   cmocka_unit_test(test_parameter_text),
    };
    return cmocka_run_group_tests(tests, setup, big_close);
}

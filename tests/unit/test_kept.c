/* test_kept.c: kept rows of derived predicates are those that rules derive: random changes by two
 * connections, in and out of transactions, with rules of many forms; after each, what is kept and
 * what is computed is compared. The same of a database file that is closed, or left as by a kill, and
 * opened again. The seed is fixed, so a failure repeats; WARPFOX_FUZZ says how many programs there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "warpfox.h"

/* Of path and far each. */
static const char *const paths[] = {
    "path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z).",
    "path(x, y) <- edge(x, y). path(x, z) <- edge(x, y), path(y, z).",
    "path(x, y) <- edge(x, y). path(x, z) <- path(x, y), path(y, z).",
    "path(x, y) <- edge(x, y). path(x, z) <- path(x, y), path(y, w), edge(w, z).",
    "path(x, y) <- link(x, y). link(x, y) <- edge(x, y), node(x). path(x, z) <- path(x, y), link(y, z). "
    "path(x, x) <- node(x), x > 3.",
    "path(x, y) <- edge(x, y). path(x, y) <- odd(x, y). odd(x, z) <- path(x, y), edge(y, z). "
    "path(x, z) <- odd(x, y), edge(z, y), node(z).",
    "path(1, 2). path(x, y) <- edge(x, y), t:b[x] = w, t:a[x] = u, y != u, w > 0. "
    "path(x, z) <- path(x, y), edge(y, z), t:a[z] = _.",
};
static const char *const fars[] = {
    "far(x, y) <- path(x, y), !edge(x, y).",
    "cnt[x] = n <- agg<< n = count() >> path(x, _). far(x, n) <- cnt[x] = n.",
    "far(x, z) <- path(x, y), path(y, z), x != z. far(x, z) <- far(z, x), node(x).",
    "sum[x] = n <- agg<< n = total(y) >> path(x, y). far(x, n) <- sum[x] = n, n > 5. "
    "far(x, y) <- far(x, z), edge(z, y).",
    "top[i] = x <- seq<< desc x >> path(x, _). far(i, x) <- top[i] = x, i < 3. far(x, y) <- far(y, x).",
    "low[x] = n <- agg<< n = min(y) >> path(x, y), node(x). far(x, n) <- low[x] = n, !t(x, _, _).",
    "pair[x, y] = n <- agg<< n = count() >> edge(x, y), path(y, z), node(z). far(x, n) <- pair[x, _] = n. "
    "far(x, y) <- far(x, z), edge(z, y).",
    "big[x] = n <- agg<< n = total(v) >> path(x, y), t:a[y] = a, v = a * 2000000000000000000. "
    "far(x, y) <- big[x] = n, y = n / 1000000000000000000.",
    "m(x; a, z) <- agg<< a = min(y), z = max(w) >> path(x, y), edge(y, w). far(x, z) <- m(x; a, z), a != z.",
    "cnt[x] = n <- agg<< n = count_distinct(y) >> path(x, y), t:b[x] = _. "
    "s[n] = m <- agg<< m = count() >> cnt[_] = n. far(n, m) <- s[n] = m.",
    "one[1, x] = n <- agg<< n = count() >> path(x, _), !node(x). far(x, n) <- one[1, x] = n.",
    "w(x, y) <- path(x, y), edge(y, _). c[x] = n <- agg<< n = count() >> w(x, y), t:b[y] = v, v < x. "
    "far(x, y) <- c[x] = n, n > 1, edge(x, y). far(x, y) <- far(y, x).",
    "far(x, n) <- agg<< n = total(y) >> edge(x, y), x != y.",
    "top[x, i] = y <- seq<< desc y >> path(x, y), x != 3. far(x, y) <- top[x, i] = y, i < 2. far(x, y) <- far(y, x).",
    "top(x, z, i, y) <- seq<< desc v, y >> path(x, y), t:a[y] = v, node(z), !edge(y, z). "
    "far(x, n) <- agg<< n = total(y) >> top(x, _, i, y), i < 3.",
    "run[x, y] = n <- series<< n = runtotal[y](w) >> path(x, y), w = y * 10. far(x, n) <- run[x, _] = n, n > 20. "
    "far(x, y) <- far(x, z), edge(z, y).",
    "run[x, y] = n <- series<< n = runtotal[y](w) >> path(x, y), t:a[y] = a, w = a * 2000000000000000000. "
    "far(x, y) <- agg<< y = max(n) >> run[x, _] = m, n = m / 1000000000000000000.",
    "all[] = n <- agg<< n = count() >> path(x, y), y > 2. far(x, n) <- all[] = n, node(x). "
    "far(x, y) <- far(y, x), node(y).",
};
/* Of path and far together, and constraints that read both: they are one thing that is kept, whichever is asked for. */
static const char *const together[] = {
    "path(x, y) <- edge(x, y). far(x, y) <- path(y, x), node(x). path(x, z) <- far(y, x), edge(y, z), x != z. "
    "!(path(x, y), path(x, z), y > 1000, z > 1000, y != z). !(far(x, _), x > 1000).",
    "path(x, y) <- edge(x, y), far(y, _). far(x, y) <- edge(x, y), t:a[x] = y. far(x, z) <- path(y, x), far(y, z). "
    "!(far(x, y), far(x, z), y > 1000, z > 1000, y != z). path(x, _) -> x < 1000.",
};
enum { PATHS = sizeof paths / sizeof paths[0], FARS = sizeof fars / sizeof fars[0], VALUES = 6 };

static uint64_t rng = 88172645463325252ULL;

static int pick(int below) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (int)(rng % (uint64_t)below);
}

static int value(void) {
    return pick(VALUES) + 1;
}

/* False for what fails by rights: a transaction that lost, in a key too, or is over. */
static bool run(wf_connection *conn, const char *sql) {
    wf_result *result = NULL;
    wf_status status = wf_query(conn, sql, &result);
    wf_result_close(result);
    if (status != WF_OK) {
        const char *state = wf_connection_error(conn)->sqlstate;
        bool lost = strcmp(state, "40001") == 0 || strcmp(state, "25P02") == 0 ||
                    strcmp(state, "23505") == 0;
        if (!lost) {
            print_message("%s: %s\n", wf_connection_error(conn)->message, sql);
        }
        assert_true(lost);
    }
    return status == WF_OK;
}

/* The rows of a query as text; "" when the transaction is over. */
static void rows_of(wf_connection *conn, const char *sql, char *out, size_t cap) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    size_t used = 0;
    out[0] = 0;
    if (wf_query(conn, sql, &result) != WF_OK) {
        assert_string_equal(wf_connection_error(conn)->sqlstate, "25P02");
        return;
    }
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            wf_text text = wf_batch_text(batch, 0, i);
            assert_true(used + (size_t)text.len + 2 < cap);
            memcpy(out + used, text.ptr, (size_t)text.len);
            used += (size_t)text.len;
            out[used++] = ';';
            out[used] = 0;
        }
    }
    wf_result_close(result);
}

static void compare(wf_connection *conn, const char *name, const char *mode) {
    static char computed[1 << 16], kept[1 << 16];
    char sql[200], set[60];
    snprintf(sql, sizeof sql, "select x || ' ' || y from %s f(x, y) order by x, y", name);
    snprintf(set, sizeof set, "set derived = %s", mode);
    if (!run(conn, "set derived = computed")) {
        return;
    }
    rows_of(conn, sql, computed, sizeof computed);
    if (run(conn, set)) {
        rows_of(conn, sql, kept, sizeof kept);
        assert_string_equal(computed, kept);
    }
}

static void change(wf_connection *conn, int number, bool rules) {
    char sql[300];
    int x = value(), y = value(), z = value();
    switch (pick(rules ? 19 : 17)) {
    case 0:
    case 1:
        snprintf(sql, sizeof sql, "delete from edge where x = %d and y = %d", x, y);
        break;
    case 2:
        snprintf(sql, sizeof sql, "update edge set y = %d where x = %d", y, x);
        break;
    case 3:
        snprintf(sql, sizeof sql, "insert into node values (%d) on conflict do nothing", x);
        break;
    case 4:
        snprintf(sql, sizeof sql, "delete from node where x = %d", x);
        break;
    case 5:
        snprintf(sql, sizeof sql,
                 "insert into t values (%d, nullif(%d, 2), %d) on conflict (k) do update set a = "
                 "excluded.a, b = excluded.b",
                 x, y, z);
        break;
    case 6:
        snprintf(sql, sizeof sql, "delete from t where k = %d", x);
        break;
    case 7:
        snprintf(sql, sizeof sql, "call logiql('-node(%d). +node(%d). +edge(%d, %d).')", x, y, y, z);
        break;
    case 8:
        snprintf(sql, sizeof sql, "call logiql('-edge(x, y) <- path(x, y), node(y), x > %d.')", x);
        break;
    case 9:
        snprintf(sql, sizeof sql, "create table other%d (a int)", number);
        break;
    case 10:
        snprintf(sql, sizeof sql, "begin");
        break;
    case 11:
        snprintf(sql, sizeof sql, pick(2) ? "commit" : "rollback");
        break;
    case 12:
        snprintf(sql, sizeof sql, "insert into edge select %d, i from generate_series(%d, %d) i", x,
                 y, z);
        break;
    case 13:
        snprintf(sql, sizeof sql, pick(4) ? "delete from edge where x + y = %d" : "truncate edge", z);
        break;
    case 17:
        snprintf(sql, sizeof sql, "call logiql('path(x, y) <- node(x), y = x + %d, x = %d.')", x, y);
        break;
    case 18:
        snprintf(sql, sizeof sql, "drop view far; call logiql('far(x, y) <- path(y, x), x > %d.')", x);
        break;
    default:
        snprintf(sql, sizeof sql, "insert into edge values (%d, %d)", x, y);
    }
    (void)run(conn, sql);
}

/* Of so many programs; `rules` says which, NULL: any. */
static void run_programs(int programs, const char *const *rules, int rule_count) {
    for (int p = 0; p < programs; p++) {
        wf_database *db = NULL;
        wf_connection *conns[2] = {NULL, NULL};
        char sql[1000];
        assert_int_equal(wf_open(NULL, NULL, &db, NULL), WF_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(wf_connect(db, &conns[i]), WF_OK);
            (void)run(conns[i], "set device = cpu");
        }
        (void)run(conns[0], "create table edge (x bigint, y bigint)");
        (void)run(conns[0], "create table node (x bigint primary key)");
        (void)run(conns[0], "create table t (k bigint primary key, a bigint, b bigint)");
        const char *path = rules ? rules[p % rule_count] : paths[pick(PATHS)];
        snprintf(sql, sizeof sql, "call logiql('%s %s')", path, rules ? "" : fars[pick(FARS)]);
        (void)run(conns[0], sql);
        for (int step = 0; step < 40; step++) {
            wf_connection *conn = conns[pick(3) == 0];
            change(conn, p * 1000 + step, !rules);
            if (pick(4) > 0) {
                const char *mode = pick(3) > 0 ? "followed" : "kept";
                compare(conn, "path", mode);
                compare(conn, "far", mode);
            }
        }
        wf_disconnect(conns[0]);
        wf_disconnect(conns[1]);
        wf_close(db);
    }
}

static void test_kept(void **state) {
    (void)state;
    const char *many = getenv("WARPFOX_FUZZ");
    run_programs(many ? atoi(many) : 12, NULL, 0);
}

static void test_together(void **state) {
    (void)state;
    const char *many = getenv("WARPFOX_FUZZ");
    run_programs(many ? atoi(many) / 2 : 8, together, 2);
}

/* --- entities --- */

static const char entity_rules[] =
    "person(x), person_name(x:n) -> string(n). boss[p] = q -> person(p), person(q). "
    "knows(p, q) -> person(p), person(q). lvl[p] = n -> person(p), int(n). "
    "above(p, q) <- boss[p] = q. above(p, r) <- above(p, q), boss[q] = r. "
    "reach(p, q) <- knows(p, q). reach(p, r) <- reach(p, q), knows(q, r). "
    "fans[p] = n <- agg<< n = count() >> reach(q, p). "
    "top[i] = p <- seq<< desc n, m >> fans[p] = n, person_name[p] = m. "
    "ctx(x) -> . mk[p, n] = x -> person(p), int(n), ctx(x). lang:constructor(`mk). mk[p, n] = x <- lvl[p] = n. "
    "mk[q, m] = y <- ctx(x), mk[p, n] = x, knows(p, q), m = n + 1, m < 5. "
    "deep[p] = n <- agg<< n = max(m) >> mk[p, m] = x.";
/* Texts of them, a column each. */
static const char *const entity_queries[] = {
    "select p || q from logiql('_(p, q) <- above(p, q).') order by 1",
    "select p || q from logiql('_(p, q) <- above(p, q), reach(p, q).') order by 1",
    "select q from logiql('_(q) <- reach(\"n1\", q).') order by 1",
    "select p from logiql('_(p) <- person(p), !knows(p, _), !knows(_, p).') order by 1",
    "select p || n from logiql('_(p, n) <- fans[p] = n.') order by 1",
    "select i || p from logiql('_(i, p) <- top[i] = p.') order by 1",
    "select p || n from logiql('_(p, n) <- mk[p, n] = x, ctx(x).') order by 1",
    "select p || n from logiql('_(p, n) <- deep[p] = n.') order by 1",
};
enum { ENTITY_QUERIES = sizeof entity_queries / sizeof entity_queries[0] };

static void change_entities(wf_connection *conn) {
    char sql[300];
    int x = value(), y = value();
    switch (pick(13)) {
    case 0:
        snprintf(sql, sizeof sql, "call logiql('-knows(\"n%d\", \"n%d\").')", x, y);
        break;
    case 1:
        snprintf(sql, sizeof sql, "call logiql('^boss[\"n%d\"] = \"n%d\".')", x, y);
        break;
    case 2:
        snprintf(sql, sizeof sql, "call logiql('-boss[\"n%d\"] = _.')", x);
        break;
    case 3:
        snprintf(sql, sizeof sql, "call logiql('^lvl[\"n%d\"] = %d.')", x, y - 1);
        break;
    case 4:
        snprintf(sql, sizeof sql, "call logiql('-lvl[\"n%d\"] = _.')", x);
        break;
    case 5:
        snprintf(sql, sizeof sql, "call logiql('-knows(p, q) <- knows(p, q), boss[p] = q.')");
        break;
    case 6:
        snprintf(sql, sizeof sql, "call logiql('+knows(p, r) <- knows(p, q), boss[q] = r.')");
        break;
    case 7:
        snprintf(sql, sizeof sql,
                 "delete from knows where p in (select id from person where person_name = 'n%d')", x);
        break;
    case 8:
        snprintf(sql, sizeof sql, "begin");
        break;
    case 9:
        snprintf(sql, sizeof sql, pick(2) ? "commit" : "rollback");
        break;
    default:
        snprintf(sql, sizeof sql, "call logiql('+knows(\"n%d\", \"n%d\").')", x, y);
    }
    (void)run(conn, sql);
}

/* Scripts that create entities make temporary tables, in transactions too, which are definitions that come
 * and go; makers and what they make are one thing that is kept, and each is asked for first now and then. */
static void test_entities(void **state) {
    (void)state;
    static char computed[1 << 14], kept[1 << 14];
    const char *many = getenv("WARPFOX_FUZZ");
    int programs = many ? atoi(many) : 6;
    for (int p = 0; p < programs; p++) {
        wf_database *db = NULL;
        wf_connection *conns[2] = {NULL, NULL};
        char sql[2000];
        assert_int_equal(wf_open(NULL, NULL, &db, NULL), WF_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(wf_connect(db, &conns[i]), WF_OK);
            (void)run(conns[i], "set device = cpu");
        }
        snprintf(sql, sizeof sql, "call logiql('%s')", entity_rules);
        (void)run(conns[0], sql);
        for (int step = 0; step < 60; step++) {
            wf_connection *conn = conns[pick(3) == 0];
            change_entities(conn);
            for (int q = 0; q < ENTITY_QUERIES; q++) {
                bool both = pick(3) == 0 && run(conn, "set derived = computed");
                if (both) {
                    rows_of(conn, entity_queries[q], computed, sizeof computed);
                }
                if (both && run(conn, pick(3) ? "set derived = followed" : "set derived = kept")) {
                    rows_of(conn, entity_queries[q], kept, sizeof kept);
                    assert_string_equal(computed, kept);
                }
            }
        }
        wf_disconnect(conns[0]);
        wf_disconnect(conns[1]);
        wf_close(db);
    }
}

/* --- in a file --- */

static const char kept_path[] = "/tmp/warpfox-test-kept.wf";

static void copy_file(const char *from, const char *to) {
    char sql[600];
    snprintf(sql, sizeof sql, "rm -f %s && if [ -e %s ]; then cp %s %s; fi", to, from, from, to);
    assert_int_equal(system(sql), 0);
}

static void open_file(wf_database **db, wf_connection **conn, bool readonly) {
    wf_option options[] = {{"device", "cpu"}, {readonly ? "readonly" : NULL, "on"}, {NULL, NULL}};
    assert_int_equal(wf_open(kept_path, options, db, NULL), WF_OK);
    assert_int_equal(wf_connect(*db, conn), WF_OK);
}

/* Closed, or left as a kill leaves it: the files as they are, while somebody has them open. */
static void open_again(wf_database **db, wf_connection **conn, bool killed, bool readonly) {
    char log[100], copy[100], copied_log[100];
    snprintf(log, sizeof log, "%s.log", kept_path);
    snprintf(copy, sizeof copy, "%s.copy", kept_path);
    snprintf(copied_log, sizeof copied_log, "%s.copy.log", kept_path);
    if (killed) {
        copy_file(kept_path, copy);
        copy_file(log, copied_log);
    }
    wf_disconnect(*conn);
    wf_close(*db);
    if (killed) {
        copy_file(copy, kept_path);
        copy_file(copied_log, log);
    }
    open_file(db, conn, readonly);
}

/* What EXPLAIN ANALYZE says was done about the rows of a predicate: "kept", "updated", "computed", … */
static void how_kept(wf_connection *conn, const char *name, char out[20]) {
    char sql[200], start[60];
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    snprintf(sql, sizeof sql, "explain analyze select count(*) from %s", name);
    snprintf(start, sizeof start, "%s: ", name);
    snprintf(out, 20, "nothing");
    assert_int_equal(wf_query(conn, sql, &result), WF_OK);
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            wf_text line = wf_batch_text(batch, 0, i);
            size_t len = strlen(start);
            if ((size_t)line.len > len && memcmp(line.ptr, start, len) == 0) {
                snprintf(out, 20, "%.*s", (int)strcspn(line.ptr + len, " ,"), line.ptr + len);
            }
        }
    }
    wf_result_close(result);
}

static void expect_kept(wf_connection *conn, const char *name, const char *expected) {
    char found[20];
    how_kept(conn, name, found);
    if (strcmp(found, expected) != 0) {
        print_message("rows of %s\n", name);
    }
    assert_string_equal(found, expected);
}

static void remove_files(void) {
    copy_file("/tmp/warpfox-no-such-file", kept_path);
    copy_file("/tmp/warpfox-no-such-file", "/tmp/warpfox-test-kept.wf.log");
}

static void test_file_states(void **state) {
    (void)state;
    wf_database *db = NULL;
    wf_connection *conn = NULL;
    remove_files();
    open_file(&db, &conn, false);
    (void)run(conn, "create table edge as select i x, i + 1 y, 'e' || i % 7 s from generate_series(1, 60) i");
    (void)run(conn, "call logiql('path(x, y) <- edge(x, y, _). path(x, z) <- path(x, y), edge(y, z, _). "
                    "ways[x] = n <- agg<< n = count() >> path(x, _). word(s, x) <- edge(x, _, s). "
                    "word(s, y) <- word(s, x), edge(x, y, s).')");
    expect_kept(conn, "ways", "computed");
    expect_kept(conn, "word", "computed");
    open_again(&db, &conn, false, false);
    expect_kept(conn, "word", "kept"); /* those that nobody asks for stay in the file, too */
    open_again(&db, &conn, false, true);
    expect_kept(conn, "ways", "kept");
    compare(conn, "path", "kept");
    compare(conn, "word", "kept");
    open_again(&db, &conn, false, false);
    (void)run(conn, "insert into edge values (61, 62, 'new'), (7, 3, 'e0')"); /* the log has it */
    open_again(&db, &conn, true, false);
    expect_kept(conn, "path", "updated");
    compare(conn, "path", "kept");
    compare(conn, "ways", "kept");
    compare(conn, "word", "kept");
    (void)run(conn, "insert into edge values (62, 63, 'more'), (63, 64, 'more')"); /* rows stay behind */
    (void)run(conn, "delete from edge where x = 60");
    open_again(&db, &conn, false, false);
    expect_kept(conn, "path", "updated");
    compare(conn, "path", "kept");
    (void)run(conn, "insert into edge values (64, 65, 'more')");
    open_again(&db, &conn, false, false);
    (void)run(conn, "insert into edge values (65, 66, 'more')"); /* twice, and in the log */
    open_again(&db, &conn, true, false);
    expect_kept(conn, "path", "updated");
    compare(conn, "path", "kept");
    (void)run(conn, "checkpoint");
    (void)run(conn, "delete from edge where x = 59");
    open_again(&db, &conn, true, false);
    compare(conn, "path", "followed");
    compare(conn, "ways", "followed");
    compare(conn, "word", "followed");
    (void)run(conn, "checkpoint");
    (void)run(conn, "call logiql('path(x, x) <- edge(x, _, \"new\").')"); /* other rules */
    open_again(&db, &conn, true, false);
    expect_kept(conn, "ways", "computed");
    expect_kept(conn, "word", "kept");
    compare(conn, "path", "kept");
    compare(conn, "ways", "kept");
    wf_disconnect(conn);
    wf_close(db);
    remove_files();
}

static void test_file(void **state) {
    (void)state;
    const char *many = getenv("WARPFOX_FUZZ");
    int programs = many ? atoi(many) / 4 : 4;
    for (int p = 0; p < programs; p++) {
        wf_database *db = NULL;
        wf_connection *conn = NULL;
        char sql[1000];
        remove_files();
        open_file(&db, &conn, false);
        (void)run(conn, "create table edge (x bigint, y bigint)");
        (void)run(conn, "create table node (x bigint primary key)");
        (void)run(conn, "create table t (k bigint primary key, a bigint, b bigint)");
        snprintf(sql, sizeof sql, "call logiql('%s %s')", paths[pick(PATHS)], fars[pick(FARS)]);
        (void)run(conn, sql);
        for (int step = 0; step < 40; step++) {
            change(conn, p * 1000 + step, true);
            if (pick(3) > 0) {
                compare(conn, "path", pick(3) > 0 ? "followed" : "kept");
            }
            if (pick(3) > 0) {
                compare(conn, "far", pick(3) > 0 ? "followed" : "kept");
            }
            if (pick(8) == 0) {
                (void)wf_query(conn, "checkpoint", NULL);
            }
            if (pick(5) == 0) {
                open_again(&db, &conn, pick(2), false);
            }
        }
        wf_disconnect(conn);
        wf_close(db);
    }
    remove_files();
}

/* Sessions at the same time: each sees in its transaction what follows from its snapshot. */
enum { ROUNDS = 30, SESSIONS = 3 };
struct session {
    wf_connection *conn;
    int number;
    bool wrong;
};

static bool reads(wf_connection *conn, const char *sql, char *out, size_t cap) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    bool ok = wf_query(conn, sql, &result) == WF_OK &&
              wf_result_next_batch(result, &batch) == WF_OK && batch;
    wf_text text = ok ? wf_batch_text(batch, 0, 0) : (wf_text){"", 0};
    snprintf(out, cap, "%.*s", (int)text.len, text.ptr);
    wf_result_close(result);
    return ok;
}

static void *session_run(void *arg) {
    static const char look[] = "select count(*) || ' ' || coalesce(sum(x * 10 + y), 0) from path";
    struct session *s = arg;
    wf_result *result = NULL;
    char sql[100], kept[100], computed[100];
    for (int i = 0; i < ROUNDS && !s->wrong; i++) {
        int x = (i * 7 + s->number * 3) % VALUES, y = (i * 5 + s->number) % VALUES;
        snprintf(sql, sizeof sql, i % 3 ? "insert into edge values (%d, %d)" : "delete from edge where x = %d",
                 x, y);
        s->wrong = wf_query(s->conn, sql, &result) != WF_OK;
        wf_result_close(result);
        s->wrong = s->wrong || wf_query(s->conn, "begin", NULL) != WF_OK ||
                   wf_query(s->conn, "set local derived = followed", NULL) != WF_OK ||
                   !reads(s->conn, look, kept, sizeof kept) ||
                   wf_query(s->conn, "set local derived = computed", NULL) != WF_OK ||
                   !reads(s->conn, look, computed, sizeof computed) ||
                   wf_query(s->conn, "commit", NULL) != WF_OK || strcmp(kept, computed) != 0;
        result = NULL;
    }
    return NULL;
}

static void test_sessions(void **state) {
    (void)state;
    wf_database *db = NULL;
    struct session sessions[SESSIONS];
    pthread_t threads[SESSIONS];
    assert_int_equal(wf_open(NULL, NULL, &db, NULL), WF_OK);
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = (struct session){.number = i};
        assert_int_equal(wf_connect(db, &sessions[i].conn), WF_OK);
        (void)run(sessions[i].conn, "set device = cpu");
    }
    (void)run(sessions[0].conn, "create table edge (x bigint, y bigint)");
    (void)run(sessions[0].conn, "call logiql('path(x, y) <- edge(x, y). path(x, z) <- path(x, y), "
                                "edge(y, z).')");
    for (int i = 0; i < SESSIONS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, session_run, &sessions[i]), 0);
    }
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(sessions[i].wrong);
        wf_disconnect(sessions[i].conn);
    }
    wf_close(db);
}

/* More rows than a fourth of the memory holds are computed by every reader. */
static void test_large(void **state) {
    (void)state;
    wf_option options[] = {{"memory", "20MB"}, {"device", "cpu"}, {NULL, NULL}};
    wf_database *db = NULL;
    wf_connection *conn = NULL;
    char text[100];
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    (void)run(conn, "create table edge as select i as x, i + 1 as y from generate_series(1, 900) i");
    (void)run(conn, "call logiql('path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z).')");
    for (int i = 0; i < 2; i++) {
        assert_true(reads(conn, "select (count(*) + 0)::text from path", text, sizeof text));
        assert_string_equal(text, "405450");
    }
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    assert_int_equal(wf_query(conn, "call logiql_rules()", &result), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_memory_equal(wf_batch_text(batch, 4, 0).ptr, "no", 2);
    wf_result_close(result);
    wf_disconnect(conn);
    wf_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept), cmocka_unit_test(test_together),
                                       cmocka_unit_test(test_entities),
                                       cmocka_unit_test(test_file_states),
                                       cmocka_unit_test(test_file),
                                       cmocka_unit_test(test_sessions),
                                       cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

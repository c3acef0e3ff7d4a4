/* test_logiql_fuzz.c: broken LogiQL: mutated programs, run to their end, as scripts and as queries.
 *
 * A program gives an error with a code and a place, or answers; the sanitizers see the rest. Pieces
 * of one program land in another, so that names, arities and types clash. The seed is fixed, so a
 * failure repeats; WARPFOX_FUZZ says how many programs there are, WARPFOX_SEED which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "warpfox.h"

static const char *const seeds[] = {
    "edge(1, 2). edge(2, 3). edge(3, 1). path(x, y) <- edge(x, y). path(x, z) <- path(x, y), "
    "edge(y, z). "
    "_(x, y) <- path(x, y), x < 3.",
    "edge(x, y) -> int(x), int(y). edge(1, 2). leaf(x) <- edge(_, x), !edge(x, _). _(x) <- leaf(x) "
    "; edge(x, _).",
    "price[\"a\"] = 3.5. price[s] = v -> string(s), decimal(v). twice[s] = v * 2 <- price[s] = v. "
    "_(s, v) <- "
    "twice[s] = v, v >= 1.25.",
    "even(0). odd(n) <- even(m), n = m + 1, n < 9. even(n) <- odd(m), n = m + 1, n < 9. _(x) <- "
    "even(x).",
    "f[1, 1] = 5. f[1, 2] = 6. q[k] = a, r[k] = b <- agg<< a = total(x), b = count() >> f[k, i] = "
    "x. _(k, a, b) "
    "<- q[k] = a, r[k] = b, a > b.",
    "a(3, \"c\"). a(1, \"b\"). s(i; x, y) <- seq<< desc x, y >> a(x, y). _(i, x, y) <- s(i; x, y), "
    "0 <= i < 2.",
    "fib[1] = 1. fib[2] = 1. fib[i] = fib[i-1] + fib[i-2] <- 2 < i <= 9. _(i, v) <- fib[i] = v.",
    "p(1). +p(2). -p(1). ^g[1] = 3. g[k] = v -> int(k), int(v). +h(x, y) <- p(x), y = x / (x - 1). "
    "_(x) <- h(x, _).",
    "d(#2012-03-04#, 1.5f, true, \"a\\n\" \"b\"). _(y, n, u) <- d(t, f, b, s), y = "
    "datetime:year[t], n = "
    "string:length[s], u = string:substring[s, 0, 2] + \"!\", string:like(s, \"a%\"), b = true, f "
    "< 2.0f.",
    "_(?x, ?n) <- emp:name[?x] = ?n, !(emp:boss[?x] = ?b, ?b > 1), emp:pay[?x] * 2 != 3.0.",
    "n[] = c <- agg<< c = count_distinct(b) >> emp(_, _, b, _). _(c, m) <- n[] = c, m = "
    "int:decimal:convert[c] * 1.5.",
    "edge(1, 2). edge(x, y) -> x < y. node(1). edge(x, _) -> node(x). !(edge(x, x)). f[x] = y <- "
    "edge(x, y). _(x) <- f[x] = 2.",
    "lang:physical:filePath[`_in] = \"/nowhere.csv\". lang:physical:delimiter[`_in] = \",\". "
    "lang:setting[\"fusion\"] = \"on\". "
    "lang:physical:capacity[`e] = 9. e(1). _(x) <- e(x), !(x > 2, x < 5).",
    "person(x), person_name(x:n) -> string(n). works(p, y) -> person(p), int[32](y). "
    "works(\"ann\", "
    "3). +person(x), +person_name(x:n), +works(x, 1) <- n = \"bob\" ; n = \"eve\". _(x, y) <- "
    "works(x, y), x != \"eve\", !works(x, 3).",
    "lang:entity(`ctx). mk[a, b] = x -> int(a), string(b), ctx(x). lang:constructor(`mk). nx[p] = "
    "x -> "
    "ctx(p), ctx(x). lang:constructor(`nx). i(1, \"a\"). i(2, \"b\"). +mk[a, b] = x, +nx[x] = y, "
    "+seen(y, a) <- i(a, b). _(x) <- ctx(x), mk[1, _] = x.",
    "list(x) -> . cons[h, t] = x -> int(h), list(t), list(x). nil[] = x -> list(x). "
    "lang:constructor(`cons). lang:constructor(`nil). nil[] = x <- . len[x] = 0 <- nil[] = x. "
    "len[x] = n -> list(x), int(n). cons[n, t] = x, len[x] = n <- len[t] = m, n = m + 1, n < 4. "
    "_(x, n) <- len[x] = n.",
    "p(1). p(2). -p(1). +p(5). log(x, w) -> int(x), string(w). +log(x, \"n\") <- p@final(x), "
    "!p@start(x). +log(y, \"d\") <- +p(x), y = x + 1. ^g[1] = 3. +log(v, \"g\") <- ^g[1] = v. _(x, "
    "w) <- "
    "log(x, w).",
    "lang:physical:filePath[`_o] = \"/nowhere/o.csv\". lang:physical:fileMode[`_o] = \"export\". "
    "_o(a, b) -> "
    "int(a), string(b). e(1, \"x\"). _(a) <- e(a, _).",
    "n(x) -> int(x). n(1). n(2). w[k] = v -> int(k), int(v). lang:defaultValue[`w] = 0. w[1] = 10. "
    "g[x] = v "
    "<- n(x), w[x] = v. lang:derivationType[`g] = \"Derived\". _(x, v) <- g[x] = v, !w[x] = 3, v < "
    "w[x] + 1.",
    "v(1, 2.5). v(2, 3.5). t[i] = s <- series<< s = runtotal[i](x) >> v(i, x). _(i, s, p) <- t[i] "
    "= s, p "
    "= string:split[\"a-b-c\", \"-\", i].",
    "far(x, y) <- path(x, y), !(edge(x, y), !(x > y)). path(x, z) <- path(x, y), path(y, z). "
    "path(x, y) <- edge(x, y). "
    "edge(4, 5). _() <- far(4, 5).",
    "line(1, \"a\", 5). line(2, \"b\", 6). hot(\"a\"). w(o; h) <- line(o, p, v), (hot(p), h = v ; "
    "!hot(p), h = 0). k(o; h) <- line(o, p, _), (p = \"a\", h = 5 ; p != \"a\", h = 2). s[h] = n <- agg<< n = "
    "count() >> w(_; h). _(h, n, o) <- s[h] = n, k(o; h).",
    "f[1] = 4. f[2] = 6. e(1, 2). e(2, 1). t[x] = s <- agg<< s = total(f[y] + 1) >> e(x, y). r(i; x, s) "
    "<- seq<< desc s >> t[x] = s. g(x) <- e(x, _). _(i, x) <- r(i; x, _), i < 1, g(x), x = 1.",
    "e(x, y) -> int(x), int(y). e(1, 2). e(2, 3). f[x] = y <- e(x, y). h(x; y, z) <- f[x] = y, e(y, z). "
    "g[y] = x <- f[x] = y, x < 4. k[x] = 1 <- e(x, _). _(x, y) <- g[y] = x, k[x] = 1, !h(y; _, x).",
    "e(x, y) <- x = 1, y = 2 ; x = 2, y = 3. f[x] = y <- e(x, y). f[y] = x <- e(x, y), x > 1. k[] = n <- agg<< n = "
    "max(x) >> f[x] = _. _[x] = y <- f[x] = y, k[] = n, y < n + 2.",
};
enum { SEEDS = sizeof seeds / sizeof seeds[0], TEXT_MOST = 2000 };

static uint64_t rng = 88172645463325252ULL;

static uint64_t next_random(uint64_t below) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % below;
}

/* A run of bytes of any program comes in at a place. */
static size_t insert(char *text, size_t len) {
    const char *from = seeds[next_random(SEEDS)];
    size_t start = next_random(strlen(from));
    size_t run = next_random(40);
    run = run < strlen(from) - start ? run : strlen(from) - start;
    size_t at = next_random(len);
    if (len + run >= TEXT_MOST) {
        return len;
    }
    memmove(text + at + run, text + at, len - at);
    memcpy(text + at, from + start, run);
    return len + run;
}

static int is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Where the word at or behind a place begins and ends; its length is 0 when there is none. */
static size_t word_at(const char *text, size_t len, size_t at, size_t *end) {
    while (at < len && !is_word(text[at])) {
        at++;
    }
    while (at > 0 && at < len && is_word(text[at - 1])) {
        at--;
    }
    *end = at;
    while (*end < len && is_word(text[*end])) {
        (*end)++;
    }
    return at;
}

/* A word gives way to one of any program: most of these can be read, and mean something else. */
static size_t swap_word(char *text, size_t len) {
    const char *from = seeds[next_random(SEEDS)];
    size_t end, other_end;
    size_t start = word_at(text, len, next_random(len), &end);
    size_t other = word_at(from, strlen(from), next_random(strlen(from)), &other_end);
    size_t run = other_end - other;
    if (len - (end - start) + run >= TEXT_MOST) {
        return len;
    }
    memmove(text + start + run, text + end, len - end);
    memcpy(text + start, from + other, run);
    return len - (end - start) + run;
}

static size_t mutate(char *text, size_t len) {
    static const char marks[] = "()[],;'\"_<>=!+-*/.:@^`#?x0 ";
    for (uint64_t edits = next_random(4) + 1; edits > 0 && len > 1; edits--) {
        size_t at = next_random(len);
        switch (next_random(10)) {
        case 0:
            text[at] = (char)(next_random(255) + 1);
            break;
        case 1:
        case 2:
            text[at] = marks[next_random(sizeof marks - 1)];
            break;
        case 3:
            memmove(text + at, text + at + 1, len - at - 1);
            len--;
            break;
        case 4:
        case 5:
            len = insert(text, len);
            break;
        default:
            len = swap_word(text, len);
        }
    }
    text[len] = 0;
    return len;
}

static void run(wf_connection *conn, const char *text) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    wf_status status = wf_query(conn, text, &result);
    while (status == WF_OK && result && wf_result_next_batch(result, &batch) == WF_OK && batch) {
    }
    if (status != WF_OK) {
        const wf_error *error = wf_connection_error(conn);
        bool placed = error->position >= 0 && error->position <= (int64_t)strlen(text);
        bool elsewhere =
            strcmp(error->sqlstate, "54001") == 0 || strcmp(error->sqlstate, "57014") == 0;
        if (strncmp(error->sqlstate, "XX", 2) == 0 || (!placed && !elsewhere)) {
            print_message("%s %s at %d: %s\n", error->sqlstate, error->message,
                          (int)error->position, text);
        }
        assert_int_not_equal(strncmp(error->sqlstate, "XX", 2), 0);
        assert_true(placed || elsewhere);
    }
    wf_result_close(result);
}

/* The same as one query, whose clauses are its own. */
static void run_local(wf_connection *conn, const char *text) {
    char sql[TEXT_MOST + 60];
    snprintf(sql, sizeof sql, "select * from logiql($fuzz$%s$fuzz$)", text);
    assert_int_equal(wf_set(conn, "language", "sql"), WF_OK);
    run(conn, sql);
    assert_int_equal(wf_set(conn, "language", "logiql"), WF_OK);
}

static wf_connection *connect(wf_database *db) {
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    assert_int_equal(wf_query(conn,
                              "create table emp (id int primary key, name text, boss int, pay "
                              "decimal(8,2)); insert into emp values (1, 'a', null, 1.5), "
                              "(2, 'b', 1, 2), (3, 'c', 1, 3.25)",
                              NULL),
                     WF_OK);
    assert_int_equal(wf_set(conn, "statement_timeout", "2s"), WF_OK);
    assert_int_equal(wf_set(conn, "language", "logiql"), WF_OK);
    return conn;
}

/* Programs of one database see what those before them left. */
static void test_mutations(void **state) {
    (void)state;
    const char *wanted = getenv("WARPFOX_FUZZ"), *seed = getenv("WARPFOX_SEED");
    rng += seed ? strtoull(seed, NULL, 10) : 0;
    int left = wanted ? atoi(wanted) : 600;
    enum { EACH = 60 };
    while (left > 0) {
        wf_database *db = NULL;
        wf_error error;
        const wf_option options[] = {
            {"threads", "1"}, {"memory", "512MB"}, {"device", "cpu"}, {NULL, NULL}};
        assert_int_equal(wf_open(NULL, options, &db, &error), WF_OK);
        wf_connection *conn = connect(db);
        for (int i = 0; i < EACH && left > 0; i++, left--) {
            char text[TEXT_MOST + 1];
            snprintf(text, sizeof text, "%s", seeds[next_random(SEEDS)]);
            mutate(text, strlen(text));
            run(conn, text);
            run_local(conn, text);
        }
        wf_disconnect(conn);
        wf_close(db);
    }
}

/* The programs themselves are right. */
static void test_seeds(void **state) {
    (void)state;
    for (int i = 0; i < SEEDS; i++) {
        wf_database *db = NULL;
        wf_error error;
        assert_int_equal(wf_open(NULL, NULL, &db, &error), WF_OK);
        wf_connection *conn = connect(db);
        wf_status status = wf_query(conn, seeds[i], NULL);
        if (status != WF_OK) {
            print_message("%s\n%s\n", wf_connection_error(conn)->message, seeds[i]);
        }
        assert_int_equal(status, WF_OK);
        wf_disconnect(conn);
        wf_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

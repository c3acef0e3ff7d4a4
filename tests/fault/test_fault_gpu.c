/* test_fault_gpu.c: the n-th call of the driver fails while a statement runs on the card, for every
 * n, with and without the loss of the context: the statement ends with an error that says so or
 * with the right rows, and the next one is right. So it is where the host has no memory. The card
 * has little memory, so that what a failure leaves behind is missed soon: steps would then go on in
 * memory of the host, and say so. With less, they do. */
#define _GNU_SOURCE
#include "../unit/test_gpu_fixture.h"

#include <dlfcn.h>

#include "base/mem.h"

typedef void (*fail_at)(unsigned long long n, int code);
typedef unsigned long long (*call_count)(void);
typedef const char *(*kernel_reports)(void);

static fail_at simt_fail_at;
static call_count simt_call_count;
static kernel_reports simt_report;

static int open_simt(void **state) {
    find_gpu(state);
    if (getenv("WARPFOX_TEST_GPU") || !has_gpu) {
        has_gpu = false; /* a real driver does not fail on request */
        return 0;
    }
    void *library = dlopen(getenv("WARPFOX_CUDA"), RTLD_NOW | RTLD_NODELETE);
    assert_non_null(library);
    *(void **)&simt_fail_at = dlsym(library, "simtFailAt");
    *(void **)&simt_call_count = dlsym(library, "simtCallCount");
    *(void **)&simt_report = dlsym(library, "simtReport");
    assert_true(simt_fail_at && simt_call_count && simt_report);
    return 0;
}

static void make_tables(void) {
    run("set device = cpu");
    run("set tablet_rows = 1024");
    run("create table t as select i a, i % 7 g, i * i b, case when i % 5 = 0 then null else "
        "'text ' || i % 11 end s from generate_series(0::bigint, 4999) s(i)");
    run("delete from t where a % 500 = 3");
    run("create table d as select i * 1000003 k, 'a long enough name ' || i n, i v "
        "from generate_series(0::bigint, 40) s(i)");
    run("create table e as select i / 3 k, i v from generate_series(0::bigint, 30) s(i)");
    run("create table h as select i / 300 k, i v from generate_series(0::bigint, 599) s(i)"); /* few keys, many rows */
    run("set gpu_payload = on");
}

struct piece {
    const char *placement;
    const char *sql;
    int32_t columns; /* all of type bigint */
};
static const struct piece pieces[] = {
    {"cached", "select g, count(*), sum(a)::bigint, max(b) from t where a > 100 group by g", 4},
    {"streamed", "select a, b, g from t where b % 3 <> 1", 3},
    {"mapped", "select count(*), sum(b % 1000)::bigint from t where g < 4", 2},
    {"cached", "select count(*), count(distinct s) from t join d on t.g * 1000003 = d.k", 2},
    {"cached", "select t.a, e.v from t join e on t.g = e.k where a < 3000", 2},
    {"streamed", "select count(*), count(e.v) from t left join e on t.g = e.k", 2},
    {"cached", "select count(*) from t where g in (select v from d where n like '%2%')", 1},
    {"cached", "select length(s)::bigint, count(*) from t where s <> 'text 3' group by s", 2},
    {"cached",
     "select sum(x)::bigint, count(*) from (select a x from t where g = 1 union all "
     "select v from e) u",
     2},
    {"cached",
     "select count(*), sum(n)::bigint from (select count(*) n from t where a < 700 "
     "group by b * 1000000000007, a * 1000000000039) w",
     2},
    {"cached", "select a, b from t where s <> 'text 3' order by s desc, b limit 400", 2},
    {"cached",
     "select w.a, e.v from (select a, g from t where s > 'text 1' order by s desc, b limit 90 offset 2) w "
     "join e on w.g = e.k where e.v < (select max(v) from d) order by 1, 2 limit 20",
     2},
    {"cached",
     "select a, rank() over w, max(b) over w from t where a < 300 window w as (partition by g order by s)",
     3},
    {"cached",
     "select g, (mode() within group (order by a % 3))::bigint, max(r) from (select a, g, row_number() over "
     "(partition by g order by b desc) r from t where a < 900) w where r < 60 group by g order by 3, 1",
     3},
    {"cached",
     "select count(*), sum(d.v + h.v)::bigint from t join d on t.g = d.v left join h on t.g = h.k where a < 90",
     2},
    {"cached", "select a % 90, g, count(*) from t group by 1, 2 having count(*) > 5 order by 3, 1", 3},
    {"cached",
     "select count(x.b), sum(y.g)::bigint from d left join (select a, b from t where g > 1) x on x.a = d.v "
     "left join (select a, g from t where g < 5) y on y.a = d.v + 1",
     2},
    {"streamed",
     "select sum(v)::bigint, count(*) from (select a v from t where g > 1 union all select b from t where g < 5) u",
     2},
};
enum { PIECES = sizeof pieces / sizeof *pieces };

/* The rows, or the error: true when there was none. */
static bool answered(const struct piece *p, uint64_t expected, int64_t expected_rows) {
    wf_result *result = NULL;
    wf_status status = wf_query(conn, p->sql, &result);
    const wf_batch *batch = NULL;
    uint64_t sum = 0;
    int64_t rows = 0;
    while (!status && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        sum += batch_digest(batch, p->columns);
        rows += wf_batch_rows(batch);
    }
    if (status) {
        const wf_error *error = result ? wf_result_error(result) : wf_connection_error(conn);
        assert_true(error->message[0] != 0);
        if (strncmp(error->sqlstate, "5800", 4) != 0 && strcmp(error->sqlstate, "53200") != 0) {
            fail_msg("%s: %s %s", p->sql, error->sqlstate, error->message);
        }
    } else {
        assert_int_equal(rows, expected_rows);
        assert_true(sum == expected);
    }
    wf_result_close(result);
    if (simt_report()[0]) { /* a kernel that ran on after its memory was given away */
        fail_msg("%s: %s", p->sql, simt_report());
    }
    return !status;
}

static const char *device = "gpu";

static void fail_each_call(const struct piece *p, int code, int first, int step) {
    char text[60];
    int64_t rows = 0;
    run("set device = cpu");
    uint64_t expected = digest(p->sql, p->columns, &rows);
    snprintf(text, sizeof text, "set device = %s", device);
    run(text);
    snprintf(text, sizeof text, "set gpu_placement = %s", p->placement);
    run(text);
    for (unsigned long long n = (unsigned)first;; n += (unsigned)step) {
        unsigned long long before = simt_call_count();
        simt_fail_at(n, code);
        bool right = answered(p, expected, rows);
        unsigned long long calls = simt_call_count() - before;
        simt_fail_at(0, 0);
        /* What was left behind is still there after the next failure. A context that was lost on the way out is missed
         * by the next one. */
        bool asks = code || right || n % 3 == 0;
        bool next = !asks || answered(p, expected, rows) || (right && answered(p, expected, rows));
        if (!next) {
            fail_msg("%s: call %llu failed with %d, and so does what follows: %s", p->sql, n, code,
                     wf_connection_error(conn)->message);
        }
        if (right && calls < n) {
            break;
        }
        assert_true(n < 4000);
    }
}

static void find_spilled(const char *line, void *arg) {
    bool *found = arg;
    *found = *found || strstr(line, "the device has no room");
}

/* Whether some of its steps lie in memory of the host. */
static bool spills(const struct piece *p) {
    char text[600];
    bool found = false;
    snprintf(text, sizeof text, "explain analyze %s", p->sql);
    each_line(text, find_spilled, &found);
    return found;
}

static void test_calls(void **state) {
    (void)state;
    for (int i = 0; i < PIECES; i++) {
        open_db("5MB", "vm");
        make_tables();
        fail_each_call(&pieces[i], 0, 1, 2); /* refused memory where it is asked for, else unknown */
        fail_each_call(&pieces[i], 700, 2, 2);
        assert_false(spills(&pieces[i]));
        close_db();
    }
}

/* Memory of the host is refused, sooner or later, ever less often: the answer is right or an error, and
 * right again at the end. */
static void refuse_memory(const struct piece *piece, int64_t often) {
    int64_t rows = 0;
    uint64_t expected = digest(piece->sql, piece->columns, &rows);
    bool reached = true;
    for (int64_t n = 1; reached; n += 1 + n / often) {
        memory_fail_at(n);
        bool right = answered(piece, expected, rows);
        reached = memory_fail_at(0) >= n;
        assert_true(right || reached);
    }
    assert_true(answered(piece, expected, rows));
}

/* Strings that steps make, on their way to a sort and to the answer. */
static void test_texts(void **state) {
    (void)state;
    static const struct piece piece = {
        "cached",
        "select a, length(x)::bigint from (select a, upper(s) || g x from t where a < 400) w order by x, a limit 90",
        2};
    open_db("5MB", "woven");
    make_tables();
    fail_each_call(&piece, 0, 1, 3);
    fail_each_call(&piece, 700, 2, 5);
    assert_false(spills(&piece));
    refuse_memory(&piece, 8);
    close_db();
}

/* On a card that has no room: every way that a step has left, and the host short of memory. */
static void test_spilled(void **state) {
    (void)state;
    static const struct piece few[] = {
        {"auto", "select t.a, e.v from t join e on t.g = e.k where a < 1000", 2},
        {"auto", "select a * 1000003, count(*), min(b) from t group by 1", 3}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        open_db("90kB", "vm");
        make_tables();
        fail_each_call(&few[i], 0, 1, 23);
        fail_each_call(&few[i], 700, 2, 53);
        assert_true(spills(&few[i]));
        refuse_memory(&few[i], 8);
        close_db();
    }
}

/* The same with memory of the host that is refused. */
static void test_host_memory(void **state) {
    (void)state;
    for (int i = 0; i < PIECES; i++) {
        char text[60];
        int64_t rows = 0;
        open_db("5MB", "vm");
        make_tables();
        uint64_t expected = digest(pieces[i].sql, pieces[i].columns, &rows);
        run("set device = gpu");
        snprintf(text, sizeof text, "set gpu_placement = %s", pieces[i].placement);
        run(text);
        bool reached = true;
        for (int64_t n = 1; reached; n += 1 + n / 128) {
            memory_fail_at(n);
            bool right = answered(&pieces[i], expected, rows);
            reached = memory_fail_at(0) >= n;
            assert_true(right || reached);
            assert_true(answered(&pieces[i], expected, rows));
        }
        close_db();
    }
}

/* The card has a share, the host another: whatever fails there, nothing of the host's is left. */
static void test_shares(void **state) {
    (void)state;
    device = "hybrid";
    for (int i = 0; i < PIECES; i++) {
        if (i != 0 && i != 1 && i != 4 && i != 5) {
            continue;
        }
        open_db("5MB", "vm");
        make_tables();
        run("set hybrid_share = 40");
        fail_each_call(&pieces[i], 0, 1, 5);
        fail_each_call(&pieces[i], 700, 2, 9);
        refuse_memory(&pieces[i], 16);
        close_db();
    }
    device = "gpu";
}

/* Rounds of a recursion that nobody has looked at yet; relations have too little room at first. */
static void test_rounds(void **state) {
    (void)state;
    static const struct piece piece = {
        "cached",
        "with recursive c(a, b) as (select k, v from e union select c.a, e.v from c join e on e.k = c.b) "
        "select a, b from c",
        2};
    open_db("5MB", "vm");
    make_tables();
    fail_each_call(&piece, 0, 1, 9);
    fail_each_call(&piece, 700, 2, 29);
    refuse_memory(&piece, 4);
    close_db();
}

/* The driver has no memory for one call or another, rounds under way or not: others do what is left. */
static void test_rounds_elsewhere(void **state) {
    (void)state;
    static const struct piece piece = {
        "auto",
        "with recursive c(a, b) as (select k, v from e union select c.a, e.v from c join e on e.k = c.b), "
        "d(a, n) as (select k, 1::bigint from e where k < 5 union all select a + 1, n + 1 from d where n < 40) "
        "select a, b from c union all select a, n from d",
        2};
    int64_t rows = 0;
    open_db("5MB", "vm");
    make_tables();
    run("set device = cpu");
    uint64_t expected = digest(piece.sql, piece.columns, &rows);
    run("set device = gpu");
    assert_true(answered(&piece, expected, rows));
    unsigned long long calls = 0;
    int wrong = 0;
    for (unsigned long long n = 1; n == 1 || calls >= n; n += 3) {
        unsigned long long before = simt_call_count();
        simt_fail_at(n, 2);
        bool right = answered(&piece, expected, rows);
        wrong += !right;
        if (!right) {
            print_message("call %llu: %s\n", n, wf_connection_error(conn)->message);
        }
        calls = simt_call_count() - before;
        simt_fail_at(0, 0);
    }
    assert_int_equal(wrong, 0);
    close_db();
}

static void find_sorted(const char *line, void *arg) {
    bool *found = arg;
    *found = *found || strstr(line, "sorted by the card");
}

/* A graph that the card has no room for, and sorts part by part, one part on its way while another is worked on. */
static void test_boxes(void **state) {
    (void)state;
    static const struct piece piece = {
        "auto", "select count(*) from h xy, h yz, h xz where xy.a = xz.a and xy.b = yz.a and xz.b = yz.b", 1};
    bool found = false;
    char text[600];
    open_db("180kB", "vm");
    run("set device = cpu");
    run("create table h as select distinct least(a, b) a, greatest(a, b) b from (select i * i % 911 * (i % 5) % 290 a, "
        "i * 7919 % 3001 % 290 b from generate_series(1::bigint, 15000) v(i)) e where a <> b");
    run("set multiway = on");
    run("set device = gpu");
    snprintf(text, sizeof text, "explain analyze %s", piece.sql);
    each_line(text, find_sorted, &found);
    assert_true(found);
    fail_each_call(&piece, 0, 1, 5);
    fail_each_call(&piece, 700, 2, 17);
    refuse_memory(&piece, 8);
    close_db();
}

/* What an earlier statement kept on the card: it is found, made anew, or not kept, and nothing of it is left behind. */
static void test_kept(void **state) {
    (void)state;
    static const struct piece pieces_kept[] = {
        {"auto", "select count(*) from h xy, h yz, h xz where xy.a = xz.a and xy.b = yz.a and xz.b = yz.b", 1},
        {"auto",
         "select sum(xy.a + yz.b)::bigint from h xy, h yz, h xz where xy.a = xz.a and xy.b = yz.a and "
         "xz.b = yz.b",
         1}};
    for (size_t i = 0; i < sizeof pieces_kept / sizeof *pieces_kept; i++) {
        open_db("5MB", i ? "woven" : "vm");
        run("set device = cpu");
        run("create table h as select distinct least(a, b) a, greatest(a, b) b from "
            "(select i * i % 911 * (i % 5) % 90 a, i * 7919 % 3001 % 90 b from generate_series(1::bigint, 900) v(i)) e "
            "where a <> b");
        run("set multiway = on");
        fail_each_call(&pieces_kept[i], 0, 1, 2);
        fail_each_call(&pieces_kept[i], 2, 1, 3);
        fail_each_call(&pieces_kept[i], 700, 2, 5);
        assert_false(spills(&pieces_kept[i]));
        refuse_memory(&pieces_kept[i], 16);
        run("insert into h values (500, 501)"); /* and while it is kept */
        refuse_memory(&pieces_kept[i], 16);
        close_db();
    }
}

/* Devices are described, whatever of the card cannot be measured. */
static void test_devices(void **state) {
    (void)state;
    if (!has_gpu) {
        skip();
    }
    const wf_option small[] = {{"memory", "64MB"}, {"threads", "1"}, {NULL, NULL}};
    wf_database *own = NULL;
    assert_int_equal(wf_open(NULL, small, &own, NULL), WF_OK);
    for (int kind = 0; kind < 2; kind++) {
        bool reached = true;
        for (int64_t n = 1; reached; n += 1 + n / 32) {
            unsigned long long before = simt_call_count();
            simt_fail_at(kind ? 0 : (unsigned long long)n, 0);
            memory_fail_at(kind ? n : 0);
            char *text = wf_devices(own);
            reached = kind ? memory_fail_at(0) >= n : simt_call_count() - before >= (uint64_t)n;
            simt_fail_at(0, 0);
            assert_non_null(text);
            assert_true(strstr(text, "gpu: ") || kind);
            assert_true(reached || strstr(text, "mapped read: "));
            wf_free(text);
        }
    }
    wf_close(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spilled),
                                       cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_host_memory),
                                       cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_rounds),
                                       cmocka_unit_test(test_rounds_elsewhere),
                                       cmocka_unit_test(test_boxes),
                                       cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_devices)};
    return cmocka_run_group_tests(tests, open_simt, NULL);
}

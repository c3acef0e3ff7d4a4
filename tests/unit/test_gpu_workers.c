/* test_gpu_workers.c: several workers on one card: statements of two sessions run side by side and
 * get the answers they get alone, also where memory is short, the context is lost, or one of them
 * is cancelled. Under the thread sanitizer this is the test of what workers of a card share. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dlfcn.h>

#include "base/thread.h"
#include "gpu/gpu_int.h"
#include "session/session.h"

enum { SESSIONS = 2, QUERIES = 6, ROUNDS_LEAST = 2, ROUNDS_MOST = 200 };

static const char *const queries[QUERIES] = {
    "select count(*), sum(a)::bigint from t where a % 7 < 3",
    "select g, count(*), max(a) from t group by g",
    "select t.a, u.v from t join u on t.k = u.k where u.v < 40",
    "select count(*), sum(u.v + t.a)::bigint from t join u on t.g = u.v",
    "select length(s)::bigint, count(*), min(a) from t group by s",
    "select a, k from t where k in (select k from u where v % 5 = 1)",
};
static const int32_t columns[QUERIES] = {2, 3, 2, 2, 3, 2};

static uint64_t answers[QUERIES];
static _Atomic i32 wrong, refused, done;

static void open_workers(const char *workers, const char *memory) {
    const wf_option options[] = {{"gpu_memory", memory},
                                 {"gpu_code", "vm"},
                                 {"threads", "2"},
                                 {"gpu_workers", workers},
                                 {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run("set device = cpu");
    run("set tablet_rows = 512");
    run("create table t as select i a, i * 7919 % 1009 * 4294967311 k, i % 13 g, 'name ' || i * 7 "
        "% "
        "97 s from generate_series(0::bigint, 3999) s(i)");
    run("create table u as select i * 4294967311 k, i v from generate_series(0::bigint, 400) s(i)");
    for (int i = 0; i < QUERIES; i++) {
        int64_t rows = 0;
        answers[i] = digest(queries[i], columns[i], &rows);
    }
    run("set device = gpu");
    wrong = refused = done = 0;
    assert_int_equal(number("select count(*) from t"), 4000); /* the card is open from now on */
}

static struct gpu_card *card_of(u32 i) {
    const struct gpu *g = db->gpus[i]->self;
    return g->card;
}

static i32 inside_most(void) {
    struct gpu_card *card = card_of(0);
    mutex_lock(&card->lock);
    i32 most = card->inside_most;
    mutex_unlock(&card->lock);
    return most;
}

/* One answer; false when the statement failed. */
static bool ask(wf_connection *c, int i, const char *allowed) {
    wf_result *result = NULL;
    if (wf_query(c, queries[i], &result) != WF_OK) {
        const char *state = wf_connection_error(c)->sqlstate;
        if (!allowed || strcmp(state, allowed) != 0) {
            fprintf(stderr, "%s: %s %s\n", queries[i], state, wf_connection_error(c)->message);
            atomic_fetch_add(&wrong, 1);
        }
        return false;
    }
    uint64_t sum = 0;
    const wf_batch *batch = NULL;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        sum += batch_digest(batch, columns[i]);
    }
    wf_result_close(result);
    if (sum != answers[i]) {
        fprintf(stderr, "another answer: %s\n", queries[i]);
        atomic_fetch_add(&wrong, 1);
    }
    return true;
}

struct session {
    int number;
    const char *placement;
    const char *allowed; /* SQLSTATE of errors that may come; NULL = none */
    bool overlaps;       /* runs until steps of both were inside at once */
};

static void work(void *arg) {
    const struct session *s = arg;
    wf_connection *c = NULL;
    char text[80];
    if (wf_connect(db, &c) != WF_OK) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    snprintf(text, sizeof text, "set gpu_placement = %s", s->placement);
    bool fine = wf_query(c, "set device = gpu", NULL) == WF_OK && wf_query(c, text, NULL) == WF_OK;
    atomic_fetch_add(&wrong, !fine);
    bool goes_on = true;
    for (int round = 0; goes_on; round++) {
        for (int i = 0; i < QUERIES; i++) {
            bool answered = ask(c, (i + 3 * s->number) % QUERIES, s->allowed);
            atomic_fetch_add(&refused, !answered);
        }
        atomic_fetch_add(&done, 1);
        goes_on = round + 1 < ROUNDS_LEAST ||
                  (s->overlaps && round < ROUNDS_MOST && inside_most() < SESSIONS);
    }
    wf_disconnect(c);
}

static void run_sessions(struct session like) {
    struct session sessions[SESSIONS];
    struct thread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = like;
        sessions[i].number = i;
        threads[i] = thread_start(work, &sessions[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    assert_int_equal(wrong, 0);
}

/* Steps of two sessions are inside at once, and both sessions get their answers. */
static void test_side_by_side(void **state) {
    (void)state;
    static const char *const places[] = {"cached", "streamed", "mapped"};
    for (int p = 0; p < 3; p++) {
        open_workers("2", "0");
        assert_int_equal(db->gpu_count, 2);
        assert_true(card_of(0) == card_of(1));
        assert_int_equal(db->gpus[0]->space, db->gpus[1]->space);
        run_sessions((struct session){.placement = places[p], .overlaps = true});
        assert_int_equal(inside_most(), SESSIONS);
        close_db();
    }
}

/* One worker: never two steps at once. */
static void test_one_worker(void **state) {
    (void)state;
    open_workers("1", "0");
    run_sessions((struct session){.placement = "cached"});
    assert_int_equal(db->gpu_count, 1);
    assert_int_equal(inside_most(), 1);
    close_db();
}

/* Memory for one step at a time: segments are evicted, and steps that find none run alone; no
 * statement is refused. */
static void test_short_of_memory(void **state) {
    (void)state;
    open_workers("2", "1MB");
    run_sessions((struct session){.placement = "auto", .overlaps = true});
    run_sessions((struct session){.placement = "cached"});
    assert_int_equal(refused, 0);
    close_db();
}

static void (*simt_fail_at)(uint64_t nth, int code);

/* A lost context takes the steps that are inside; then the card is reset once, for all workers. */
static void test_lost_context(void **state) {
    (void)state;
    open_workers("2", "0");
    void *library = dlopen(getenv("WARPFOX_CUDA"), RTLD_NOW | RTLD_NOLOAD);
    if (library) {
        *(void **)&simt_fail_at = dlsym(library, "simtFailAt");
    }
    if (!simt_fail_at) {
        close_db();
        skip();
    }
    for (int n = 20; n < 400; n += 60) {
        u64 epoch = card_of(0)->epoch;
        refused = 0;
        simt_fail_at((uint64_t)n, 700);
        run_sessions((struct session){.placement = "cached", .allowed = "58001"});
        simt_fail_at(0, 0);
        assert_in_range(refused, 0, SESSIONS * (1 + SESSIONS));
        for (int i = 0; i < QUERIES; i++) {
            assert_true(ask(conn, i, NULL));
        }
        assert_true(refused == 0 || card_of(0)->epoch == epoch + 1);
    }
    assert_int_equal(wrong, 0);
    dlclose(library);
    close_db();
}

static void cancelled(void *arg) {
    wf_connection *c = arg;
    wf_status status =
        wf_query(c, "select count(*) from t x join t y on x.g = y.g join t z on z.g = y.g", NULL);
    const char *sqlstate = wf_connection_error(c)->sqlstate;
    if (status == WF_OK || strcmp(sqlstate, "57014") != 0) {
        fprintf(stderr, "not cancelled: %d %s\n", (int)status, sqlstate);
        atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&done, 100);
}

/* Cancelling one statement does not touch the other worker's. */
static void test_cancel(void **state) {
    (void)state;
    open_workers("2", "0");
    wf_connection *c = NULL;
    assert_int_equal(wf_connect(db, &c), WF_OK);
    assert_int_equal(wf_query(c, "set device = gpu", NULL), WF_OK);
    struct thread *thread = thread_start(cancelled, c);
    assert_non_null(thread);
    for (int i = 0; i < 2; i++) {
        assert_true(ask(conn, i, NULL));
    }
    while (done < 100) {
        wf_cancel(c);
    }
    thread_join(thread);
    assert_true(ask(c, 1, NULL));
    assert_int_equal(wrong, 0);
    wf_disconnect(c);
    close_db();
}

static bool is_inside(void) {
    struct gpu_card *card = card_of(0);
    mutex_lock(&card->lock);
    bool inside = card->inside > 0;
    mutex_unlock(&card->lock);
    return inside;
}

/* A statement that waits for the only worker can be cancelled while the other one goes on. */
static void test_cancel_waiting(void **state) {
    (void)state;
    open_workers("1", "0");
    wf_connection *both[2];
    struct thread *threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wf_connect(db, &both[i]), WF_OK);
        assert_int_equal(wf_query(both[i], "set device = gpu", NULL), WF_OK);
        threads[i] = thread_start(cancelled, both[i]);
        assert_non_null(threads[i]);
        while (i == 0 && !is_inside()) {
        }
    }
    while (done < 100) { /* the second one, which waits */
        wf_cancel(both[1]);
    }
    assert_int_equal(done, 100);
    while (done < 200) {
        wf_cancel(both[0]);
    }
    for (int i = 0; i < 2; i++) {
        thread_join(threads[i]);
        wf_disconnect(both[i]);
    }
    assert_true(ask(conn, 1, NULL));
    assert_int_equal(wrong, 0);
    close_db();
}

/* A card lives as long as one of its workers, whichever that is; it has four at most. */
static void test_open_and_close(void **state) {
    (void)state;
    if (!has_gpu) {
        skip();
    }
    for (int last = 0; last < GPU_STEP_WORKERS; last++) {
        char why[300] = "";
        struct memory mem;
        struct error err;
        struct device *devices[GPU_STEP_WORKERS];
        memory_init(&mem, NULL, 0, "memory");
        error_reset(&err);
        devices[0] = gpu_device_open(&mem, 0, 0, why);
        for (int i = 1; i < GPU_STEP_WORKERS; i++) {
            devices[i] = gpu_device_share(devices[0], why);
            assert_non_null(devices[i]);
        }
        assert_null(gpu_device_share(devices[0], why));
        assert_non_null(strstr(why, "at most 4 workers"));
        for (int i = 0; i < GPU_STEP_WORKERS; i++) {
            if (i != last) {
                devices[i]->close(devices[i]);
            }
        }
        struct gpu *g = devices[last]->self;
        assert_int_equal(gpu_enter(g, &err), ERR_OK);
        assert_false(gpu_leave(g));
        assert_non_null(gpu_device_share(devices[last], why));
        g->card->workers[last ? 0 : 1]->device.close(&g->card->workers[last ? 0 : 1]->device);
        devices[last]->close(devices[last]);
        assert_int_equal(atomic_load(&mem.used_bytes), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_and_close), cmocka_unit_test(test_one_worker),
        cmocka_unit_test(test_side_by_side),   cmocka_unit_test(test_short_of_memory),
        cmocka_unit_test(test_lost_context),   cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_waiting)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}

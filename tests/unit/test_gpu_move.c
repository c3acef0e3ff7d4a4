/* test_gpu_move.c: columns come to the card in the background once statements have lost more than
 * that costs; nobody waits for it, there may be no room, and tables may go away meanwhile. Rates are
 * made up, so that the card is a thousand times as fast and the bus is slow. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "gpu/gpu_int.h"
#include "session/session.h"

static struct gpu_card *card;
static struct gpu *worker;

/* `bus`: bytes a nanosecond. */
static void open_rated(const char *gpu_memory, double bus) {
    open_db(gpu_memory, "vm");
    run("set tablet_rows = 1024");
    run("set statement_cache = off"); /* what runs take changes nothing */
    run("set device = cpu");
    run("create table t as select i a, i % 7 b, i * 3 c from generate_series(1::bigint, 6000) s(i)");
    run("set device = gpu");
    run("select count(*) from generate_series(1, 10)"); /* opens the card */
    worker = db->gpus[0]->self;
    card = worker->card;
    cpu_rates_tell(db->cpu, &(struct device_rates){
                                .bytes_per_ns = 1, .probes_per_ns = 0.01, .cost_per_ns = 0.01});
    gpu_rates_tell(0, &(struct device_rates){.bytes_per_ns = 1000,
                                             .probes_per_ns = 10,
                                             .bus_bytes_per_ns = bus,
                                             .bus_down_bytes_per_ns = 1,
                                             .launch_ns = 1000});
    run("set device = auto");
}

static void await_moves(void) {
    for (int i = 0; i < 2000 && atomic_load(&card->moves.busy); i++) {
        usleep(5000);
    }
    assert_int_equal(atomic_load(&card->moves.busy), 0);
}

struct found {
    bool on_gpu, lacks;
};

static void look(const char *line, void *arg) {
    struct found *found = arg;
    found->on_gpu = found->on_gpu || strstr(line, "      gpu vm: ");
    found->lacks = found->lacks || strstr(line, "more column");
}

static struct found explain(const char *sql) {
    char text[300];
    struct found found = {false, false};
    snprintf(text, sizeof text, "explain analyze %s", sql);
    each_line(text, look, &found);
    return found;
}

#define SUM "select b, sum(a)::bigint from t group by b"

/* Bringing both columns costs what some statements lose. */
static void test_moves(void **state) {
    (void)state;
    open_rated("0", 3e-4);
    int64_t rows = 0;
    uint64_t expected = digest(SUM, 2, &rows);
    struct found found = explain(SUM);
    assert_true(!found.on_gpu && found.lacks);
    int runs = 2;
    while (atomic_load(&card->moves.moved_count) < 2 && runs < 100) {
        assert_true(digest(SUM, 2, &rows) == expected);
        await_moves();
        runs++;
    }
    assert_true(runs > 2 && runs < 100);
    found = explain(SUM);
    assert_true(found.on_gpu && !found.lacks);
    assert_true(digest(SUM, 2, &rows) == expected);
    assert_int_equal(atomic_load(&card->moves.moved_count), 2); /* c was not missed */
    run("insert into t values (6001, 0, 0)"); /* a new version: most of it is there */
    found = explain(SUM);
    assert_int_equal(atomic_load(&card->moves.dropped_count), 0);
    close_db();
}

/* Worth the wait at once: nothing is left to the background. */
static void test_at_once(void **state) {
    (void)state;
    open_rated("0", 1);
    struct found found = explain(SUM);
    assert_true(found.on_gpu && !found.lacks);
    assert_int_equal(atomic_load(&card->moves.busy), 0);
    close_db();
}

/* Rates lie by more than ratios of steps may tell: the simulated card is slower than the host, and what the
 * whole took tells. */
static void test_whole(void **state) {
    (void)state;
    open_rated("0", 1);
    run("set statement_cache = on");
    int on_card[2] = {0, 0};
    int64_t rows = 0;
    uint64_t expected = digest(SUM, 2, &rows);
    for (int i = 0; i < 1000; i++) {
        wf_result *result = query(SUM);
        const wf_batch *batch = NULL;
        assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
        assert_true(batch_digest(batch, 2) == expected);
        on_card[i >= 900] += strstr(wf_result_devices(result), "gpu") != NULL;
        wf_result_close(result);
    }
    assert_true(on_card[0] >= 2);
    assert_true(on_card[1] <= 20);
    close_db();
}

static void lose(const char *sql, int times) {
    for (int i = 0; i < times; i++) {
        run(sql);
    }
}

/* While the card is somebody else's, statements go on; a table that is dropped is let go. */
static void test_nobody_waits(void **state) {
    (void)state;
    struct error err;
    error_reset(&err);
    open_rated("0", 3e-4);
    assert_int_equal(gpu_enter_alone(worker, &err), ERR_OK);
    lose(SUM, 60);
    assert_int_equal(atomic_load(&card->moves.busy), 2);
    run("drop table t");
    gpu_leave(worker);
    await_moves();
    assert_int_equal(atomic_load(&card->moves.dropped_count), 2);
    assert_true(card->cache.count <= 1); /* the tablet that had been waited for */
    run("create table t as select i a, i % 7 b from generate_series(1::bigint, 6000) s(i)");
    assert_int_equal(gpu_enter_alone(worker, &err), ERR_OK);
    lose(SUM, 60);
    assert_int_equal(atomic_load(&card->moves.busy), 2);
    gpu_leave(worker);
    close_db(); /* whatever is still to come */
}

/* No room: it is given up, asked for less often, and takes nothing from others. */
static void test_no_room(void **state) {
    (void)state;
    open_rated("0", 3e-4);
    run("set device = gpu");
    run("select sum(c) from t"); /* c is there */
    run("set device = auto");
    i64 count = card->cache.count;
    assert_true(count > 0);
    card->heap.budget_bytes = card->heap.used_bytes + 1000;
    for (int i = 0; i < 40 && atomic_load(&card->moves.dropped_count) < 2; i++) {
        run("select sum(c) from t"); /* and used meanwhile */
        run(SUM);
        await_moves();
    }
    i64 dropped = atomic_load(&card->moves.dropped_count);
    assert_true(dropped >= 2);
    assert_int_equal(card->cache.count, count);
    assert_int_equal(atomic_load(&card->moves.moved_count), 0);
    close_db();
}

/* What no step has used since makes room. */
static void test_makes_room(void **state) {
    (void)state;
    open_rated("0", 3e-4);
    run("set device = gpu");
    run("select sum(c) from t");
    run("set device = auto");
    u64 dropped = card->cache.drop_no;
    card->heap.budget_bytes = (card->heap.used_bytes + 1000) * 8 / 7;
    for (int i = 0; i < 100 && atomic_load(&card->moves.moved_count) < 1; i++) {
        run(SUM);
        await_moves();
    }
    assert_true(atomic_load(&card->moves.moved_count) > 0);
    assert_true(card->cache.drop_no > dropped);
    close_db();
}

/* The n-th call of the driver fails: whatever it was, statements answer, and the card comes back. */
static void test_failing_calls(void **state) {
    (void)state;
    void (*fail_at)(unsigned long long, int) = NULL;
    open_rated("0", 3e-4);
    const char *path = getenv("WARPFOX_CUDA");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (library) {
        *(void **)&fail_at = dlsym(library, "simtFailAt");
    }
    i64 moved = 0; /* both columns: no call was left to fail */
    for (unsigned long long n = 1; fail_at && moved < 2 && n <= 40; n += 2) {
        i64 before = atomic_load(&card->moves.moved_count);
        run("create table u as select i a, i % 7 b from generate_series(1::bigint, 3000) s(i)");
        fail_at(n, n % 3 ? 2 : 700);
        for (int i = 0; i < 60 && !atomic_load(&card->moves.busy); i++) {
            run("select b, sum(a) from u group by b");
        }
        await_moves();
        fail_at(0, 0);
        moved = atomic_load(&card->moves.moved_count) - before;
        assert_int_equal(number("select sum(a)::bigint from u"), 4501500);
        run("drop table u");
    }
    same_on_both(SUM, 2);
    if (library) {
        dlclose(library);
    }
    close_db();
}

/* A chip without a virtual machine: kernels have to be compiled, which is not worth it at once. */
static void test_compiler_costs(void **state) {
    (void)state;
    setenv("SIMT_CHIP", "80", 1);
    open_db("0", "auto");
    run("set device = cpu");
    run("create table t as select i a, i % 7 b from generate_series(1::bigint, 70000) s(i)");
    (void)database_gpu(db);
    card = ((struct gpu *)db->gpus[0]->self)->card;
    cpu_rates_tell(db->cpu, &(struct device_rates){
                                .bytes_per_ns = 1, .probes_per_ns = 0.1, .cost_per_ns = 0.1});
    gpu_rates_tell(0, &(struct device_rates){.bytes_per_ns = 1000,
                                             .probes_per_ns = 10,
                                             .bus_bytes_per_ns = 100,
                                             .bus_down_bytes_per_ns = 100,
                                             .launch_ns = 1000});
    run("set device = auto");
    assert_false(card->codes.has_machine);
    assert_false(explain(SUM).on_gpu);
    close_db();
    unsetenv("SIMT_CHIP");
}

/* Statements that took longer than opening a card pay for that, in the background. */
static void test_start(void **state) {
    (void)state;
    open_db("0", "vm");
    run("create table t as select i a from generate_series(1::bigint, 70000) s(i)");
    run("select sum(a) from t where a > 5");
    assert_null(db->opener); /* not yet */
    db->spent_ns = 1000000000;
    run("select sum(a) from t where a > 5");
    run("select 1");
    for (int i = 0; i < 2000 && !database_gpu(db); i++) {
        usleep(1000);
    }
    assert_non_null(db->opener);
    assert_int_equal(db->gpu_count, 1);
    assert_int_equal(number("select count(*) from t"), 70000);
    close_db();
    open_db("0", "vm");
    run("create table t as select i a from generate_series(1::bigint, 70000) s(i)");
    db->spent_ns = 1000000000;
    run("select sum(a) from t");
    close_db(); /* while it is being opened */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves), cmocka_unit_test(test_at_once), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_nobody_waits), cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_makes_room), cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_start), cmocka_unit_test(test_compiler_costs)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}

/* test_gpu_compile.c: compilers in the background: what is compiled first, several at once, texts
 * that fail, closing while one is busy; and statements on a chip that nothing was compiled for.
 * The first tests have an NVRTC of their own, the others need the simt driver. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

#include "gpu/gpu_int.h"

/* --- an NVRTC that takes as long as the test wants --- */

struct fake {
    const char *text;
    int (*stopped)(void *arg, void *unused);
    void *stopped_arg;
};
static _Atomic i32 fake_running, fake_most, fake_done, fake_gate; /* gate: how many may end */
static char fake_order[32];
static _Atomic i32 fake_taken;

static int fake_version(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}
static int fake_create(void **out, const char *text, const char *name, int count,
                       const char *const *headers, const char *const *names) {
    UNUSED(name);
    UNUSED(count);
    UNUSED(headers);
    UNUSED(names);
    struct fake *fake = calloc(1, sizeof *fake);
    fake->text = text;
    *out = fake;
    return 0;
}
static int fake_destroy(void **program) {
    free(*program);
    *program = NULL;
    return 0;
}
static int fake_flow(void *program, int (*stopped)(void *arg, void *unused), void *arg) {
    struct fake *fake = program;
    fake->stopped = stopped;
    fake->stopped_arg = arg;
    return 0;
}
/* Its name is the text's first letter. 'x' does not compile; a known one knows no more options. */
static int fake_compile(void *program, int option_count, const char *const *options) {
    struct fake *fake = program;
    UNUSED(options);
    if (fake->text[0] == 'o' && option_count > 4) {
        return 5;
    }
    fake_order[atomic_fetch_add(&fake_taken, 1)] = fake->text[0];
    i32 running = atomic_fetch_add(&fake_running, 1) + 1;
    i32 most = atomic_load(&fake_most);
    while (running > most && !atomic_compare_exchange_weak(&fake_most, &most, running)) {
    }
    while (atomic_load(&fake_gate) <= atomic_load(&fake_done)) {
        if (fake->stopped && fake->stopped(fake->stopped_arg, NULL)) {
            atomic_fetch_sub(&fake_running, 1);
            return 16;
        }
        usleep(500);
    }
    atomic_fetch_add(&fake_done, 1);
    atomic_fetch_sub(&fake_running, 1);
    return fake->text[0] == 'x' ? 6 : 0;
}
static int fake_size(void *program, size_t *out) {
    UNUSED(program);
    *out = 5;
    return 0;
}
static int fake_cubin(void *program, char *out) {
    UNUSED(program);
    memcpy(out, "code", 5);
    return 0;
}
static int fake_log(void *program, char *out) {
    UNUSED(program);
    memcpy(out, "oops", 5);
    return 0;
}

static struct cu_api fake_api = {.has_rtc = 1,
                                 .is_simt = 1,
                                 .rtc_version = fake_version,
                                 .rtc_create = fake_create,
                                 .rtc_destroy = fake_destroy,
                                 .rtc_compile = fake_compile,
                                 .rtc_cubin_size = fake_size,
                                 .rtc_cubin = fake_cubin,
                                 .rtc_log_size = fake_size,
                                 .rtc_log = fake_log,
                                 .rtc_set_flow = fake_flow};
static struct gpu_card *card;
static struct code codes[8];

static void fake_open(void) {
    unsetenv("WARPFOX_CACHE");
    card = calloc(1, sizeof *card);
    card->api = &fake_api;
    card->chip = 90;
    fake_most = fake_done = fake_gate = fake_taken = 0;
    memset(fake_order, 0, sizeof fake_order);
    memset(codes, 0, sizeof codes);
    gpu_codes_init(card);
}

static void fake_close(void) {
    gpu_codes_fini(card, false);
    for (i32 i = 0; i < COUNT_OF(codes); i++) {
        free(codes[i].text);
        free(codes[i].image);
    }
    free(card);
}

static struct code *add(i32 i, const char *text, i64 gain) {
    codes[i].text = strdup(text);
    codes[i].gain = gain;
    codes[i].key = (u64)i + 1;
    mutex_lock(&card->codes.lock);
    gpu_code_enqueue(card, &codes[i]);
    mutex_unlock(&card->codes.lock);
    return &codes[i];
}

static void wait_for(struct code *code) {
    mutex_lock(&card->codes.lock);
    assert_int_equal(gpu_code_wait(card, code, NULL), ERR_OK);
    mutex_unlock(&card->codes.lock);
}

static void until(const _Atomic i32 *value, i32 wanted) {
    while (atomic_load(value) < wanted) {
        usleep(500);
    }
}

/* One thread, so that the order is known: others are made to look busy. */
static void test_hottest_first(void **state) {
    UNUSED(state);
    fake_open();
    add(0, "a", 1); /* begins at once */
    until(&fake_taken, 1);
    mutex_lock(&card->codes.lock);
    i32 threads = card->codes.thread_count;
    card->codes.thread_count = COMPILERS_MOST; /* no more are started */
    mutex_unlock(&card->codes.lock);
    add(1, "b", 10);
    add(2, "c", 1000);
    add(3, "d", 100);
    struct code *waited = add(4, "e", 1);
    mutex_lock(&card->codes.lock);
    waited->waiters++;
    mutex_unlock(&card->codes.lock);
    atomic_store(&fake_gate, 5);
    until(&fake_done, 5);
    assert_string_equal(fake_order, "aecdb");
    mutex_lock(&card->codes.lock);
    card->codes.thread_count = threads;
    mutex_unlock(&card->codes.lock);
    fake_close();
}

/* While somebody waits all cores compile. */
static void test_several(void **state) {
    UNUSED(state);
    fake_open();
    if (cpu_count() < 2) {
        fake_close();
        skip();
    }
    add(0, "a", 1);
    add(1, "b", 2);
    until(&fake_taken, 1);
    mutex_lock(&card->codes.lock);
    codes[0].waiters++; /* both are needed now */
    codes[1].waiters++;
    mutex_unlock(&card->codes.lock);
    codes[2].text = strdup("c");
    codes[2].state = CODE_COMPILED;
    wait_for(&codes[2]); /* who waits starts what is missing */
    until(&fake_running, 2);
    atomic_store(&fake_gate, 2);
    wait_for(&codes[0]);
    wait_for(&codes[1]);
    assert_int_equal(codes[0].state, CODE_COMPILED);
    assert_int_equal(codes[1].state, CODE_COMPILED);
    assert_true(fake_most >= 2);
    assert_true(card->codes.thread_count <= cpu_count());
    fake_close();
}

static void test_failing(void **state) {
    UNUSED(state);
    fake_open();
    atomic_store(&fake_gate, 3);
    wait_for(add(0, "x", 1));
    assert_int_equal(codes[0].state, CODE_FAILED);
    assert_string_equal(codes[0].log, "oops");
    wait_for(add(1, "a", 1)); /* the thread goes on */
    assert_int_equal(codes[1].state, CODE_COMPILED);
    codes[2].quick = 1;
    wait_for(add(2, "o", 1)); /* an older one is asked again, with fewer options */
    assert_int_equal(codes[2].state, CODE_COMPILED);
    assert_int_equal(codes[2].quick, 0);
    assert_int_equal(card->codes.slow_only, 1);
    fake_close();
}

/* Closing waits neither for the text being compiled nor for those behind it. */
static void test_closing(void **state) {
    UNUSED(state);
    fake_open();
    add(0, "a", 1);
    add(1, "b", 1);
    add(2, "c", 1);
    until(&fake_taken, 1);
    i64 start = clock_ns();
    gpu_compilers_stop(card);
    assert_true(clock_ns() - start < 2000000000);
    assert_int_equal(codes[0].state, CODE_FAILED);
    assert_int_equal(fake_done, 0);
    card->codes.thread_count = 0; /* they have been joined */
    fake_close();
}

/* --- statements --- */

static char folder[64];

static void set_driver(const char *chip, const char *version, const char *slow_ms) {
    setenv("SIMT_CHIP", chip, 1);
    setenv("SIMT_RTC", version, 1);
    setenv("SIMT_SLOW", slow_ms, 1);
    setenv("WARPFOX_CACHE", folder, 1);
}

static void open_rows(const char *code) {
    open_db("0", code);
    run("set device = cpu");
    run("create table t as select i, i % 7 as g from generate_series(1, 100000) s(i)");
    run("set device = gpu");
}

/* Where a question ran; its answer is the same wherever. */
static const char *place(const char *sql, int64_t expected) {
    static char devices[200];
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_non_null(batch);
    assert_int_equal(wf_batch_int64(batch, 0)[0], expected);
    snprintf(devices, sizeof devices, "%s", wf_result_devices(result));
    wf_result_close(result);
    return devices;
}

static bool becomes(const char *sql, int64_t expected, const char *devices) {
    for (i32 i = 0; i < 600; i++) {
        if (strstr(place(sql, expected), devices)) {
            return true;
        }
        usleep(100000);
    }
    return false;
}

#define FIRST "select count(*) from t where i > 40 and g < 5"
#define SECOND "select count(*) from t where i * g > 40"

static void test_ready_at_once(void **state) {
    UNUSED(state);
    set_driver("80", "130", "20");
    open_rows("auto");
    int64_t first = number("select count(*) from generate_series(41, 100000) s(i) where i % 7 < 5");
    assert_non_null(strstr(place(FIRST, first), "gpu quick"));
    assert_true(becomes(FIRST, first, "gpu woven"));
    close_db();
    open_rows("auto"); /* what was compiled well is found first */
    assert_non_null(strstr(place(FIRST, first), "gpu woven"));
    close_db();
}

/* Few rows are not worth a compiler's time until they come again and again. */
static void test_few_again(void **state) {
    UNUSED(state);
    static const char sql[] = "select count(*) from few where i * (i % 7) > 40";
    set_driver("80", "130", "0");
    open_db("0", "auto");
    run("set device = cpu");
    run("create table few as select i from generate_series(1, 500) s(i)");
    run("set device = gpu");
    int64_t expected = number("select count(*) from generate_series(1, 500) s(i) where i * (i % 7) > 40");
#ifndef WF_HARD /* where all rows are many */
    for (i32 i = 0; i < WEAVE_LEAST_RUNS; i++) {
        assert_non_null(strstr(place(sql, expected), "gpu quick"));
    }
    usleep(500000);
    assert_non_null(strstr(place(sql, expected), "gpu quick")); /* whose compiler begins now */
#endif
    assert_true(becomes(sql, expected, "gpu woven"));
    close_db();
}

static i32 file_count(void) {
    DIR *dir = opendir(folder);
    i32 count = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        count += strstr(entry->d_name, ".cubin") != NULL;
    }
    closedir(dir);
    return count;
}

/* A step whose kernel was compiled well in the meantime says so, too. */
static void count_steps(const char *line, void *arg) {
    *(i32 *)arg += strstr(line, "gpu quick") || strstr(line, "gpu woven");
}

/* What was compiled in advance is what steps then ask for: there is one text a step. */
static void test_foreseen(void **state) {
    UNUSED(state);
    set_driver("87", "130", "0");
    open_db("0", "auto");
    run("set device = cpu");
    run("create table few as select i, i % 7 as g, 'text ' || i % 3 as s "
        "from generate_series(1, 500) x(i)");
    run("set device = gpu");
    i32 before = file_count();
    i32 steps = 0;
    each_line("explain analyze select count(*) as i from few where g > 4 union all "
              "select count(*) from few where i < 100 and s = 'text 2' union all "
              "select max(i) from few where g = 0",
              count_steps, &steps);
    close_db();
    assert_true(steps >= 3);
#ifdef WF_HARD /* kernels of few rows are compiled well in the background, too */
    assert_in_range(file_count() - before, 5, 2 + 2 * steps);
#else
    assert_in_range(file_count() - before, 5, 2 + steps); /* and two modules */
#endif
}

/* An NVRTC that cannot hurry compiles once, well. */
static void test_older_compiler(void **state) {
    UNUSED(state);
    set_driver("86", "120", "0");
    open_rows("auto");
    int64_t second =
        number("select count(*) from generate_series(1, 100000) s(i) where i * (i % 7) > 40");
    assert_non_null(strstr(place(SECOND, second), "gpu woven"));
    close_db();
}

static int64_t told;
static void hear(void *arg, const char *severity, const char *text) {
    (void)arg;
    told += !strcmp(severity, "NOTICE") && strstr(text, "compiling kernels for") != NULL;
}

/* Only who waits longer than a second is told, once. */
static void test_told(void **state) {
    UNUSED(state);
    set_driver("89", "130", "1500");
    open_rows("auto");
    told = 0;
    assert_int_equal(wf_set_notice(conn, hear, NULL), WF_OK);
    run("select sum(i * 3) from t where g > 1");
    assert_int_equal(told, 1);
    run("select sum(i * 3) from t where g > 1");
    assert_int_equal(told, 1);
    close_db();
}

/* A statement that waits for a compiler can be cancelled, and the database closed. */
static void test_cancelled(void **state) {
    UNUSED(state);
    set_driver("90", "130", "20000");
    open_rows("woven");
    run("set statement_timeout = 200");
    i64 start = clock_ns();
    wf_result *result = NULL;
    assert_int_not_equal(wf_query(conn, "select min(i + g) from t where g > 2", &result), WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "57014");
    close_db();
    assert_true(clock_ns() - start < 10000000000);
}

static int find_folder(void **state) {
    snprintf(folder, sizeof folder, "/tmp/warpfox-compile-XXXXXX");
    umask(022);
    assert_non_null(mkdtemp(folder));
    return find_gpu(state);
}

static int drop_folder(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir) {
        closedir(dir);
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hottest_first),  cmocka_unit_test(test_several),
        cmocka_unit_test(test_failing),        cmocka_unit_test(test_closing),
        cmocka_unit_test(test_ready_at_once),  cmocka_unit_test(test_foreseen),
        cmocka_unit_test(test_older_compiler), cmocka_unit_test(test_told),
        cmocka_unit_test(test_cancelled),      cmocka_unit_test(test_few_again),
    };
    return cmocka_run_group_tests(tests, find_folder, drop_folder);
}

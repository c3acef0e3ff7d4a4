/* test_gpu_file.c: tables of a database file on the card.
 *
 * Each question is asked of a table in memory on the CPU, then of one in a file that has just been
 * opened, on the card, in every placement, with much and with little memory on both sides. Columns
 * of numbers that nobody has in memory cross the bus packed, in fewer bytes than they have in memory.
 * Then calls of the driver and memory of the host are refused on the way, and the file is damaged. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/mem.h"
#include "session/session.h"
#include "store/frames_int.h"

/* Test builds let every column go; others keep small ones in memory, which then do not cross packed. */
#ifdef WF_HARD
#define TABLET_ROWS "2048"
#define LAST_ROW "11399"
#define SMALL_CARD "250kB"
#else
#define TABLET_ROWS "16384"
#define LAST_ROW "60399"
#define SMALL_CARD "2MB"
#endif

/* Numbers of all widths, ascending, shuffled, in runs, alone, in differences that are too wide; NULLs. */
static const char *const table[] = {
    "set device = cpu; set tablet_rows = " TABLET_ROWS,
    "create table t (k bigint primary key, r bigint, wide bigint, n integer, small smallint, d date, q decimal(12,2), "
    "g text, s text, b boolean, c integer, runs integer, f double precision, step bigint)",
    "insert into t select i, i * 7919 % 100003, (i % 5 - 2) * 4611686018427387903, "
    "case when i % 7 > 0 then i * 31 % 4096 end, "
    "(i % 200) - 100, date '1990-01-01' + (i * 13 % 9000)::integer, i * 17 % 100000 / 4.0, "
    "case when i % 11 > 0 then 'group ' || i % 9 end, 'a text of its own ' || i * 7919 % 100003, i % 3 = 0, 77, "
    "i / 1000, i / 3.0, i * i * i from generate_series(0::bigint, " LAST_ROW ") s(i)",
    "delete from t where k % 1000 = 999",
};

struct ask {
    const char *sql;
    int32_t columns; /* all of type bigint */
};
static const struct ask asks[] = {
    {"select count(*), sum(k)::bigint, sum(r)::bigint, min(wide), max(wide), sum(step % 1000003)::bigint from t", 6},
    {"select n::bigint, count(*), sum(small)::bigint, max(d - date '1980-01-01')::bigint from t group by n", 4},
    {"select k, r, wide, n::bigint, small::bigint, runs::bigint, c::bigint, step from t where r % 3 = 1", 8},
    {"select length(g)::bigint, count(*), sum(q * 100)::bigint from t group by g", 3},
    {"select k, length(s)::bigint from t where s like '%77%' and b", 2},
    {"select x.k, y.r from t x join t y on x.r = y.k where x.n < 30", 2},
    {"select runs::bigint, count(distinct n), (sum(f) * 3)::bigint from t where d > date '2000-01-01' group by 1", 3},
    {"select r, k from t order by r desc limit 50", 2},
};
enum { ASKS = sizeof asks / sizeof *asks };

static uint64_t sums[ASKS];
static int64_t counts[ASKS];
static int64_t plain_bytes; /* of the first question, over the bus */
static char path[300];

static void forget_file(void) {
    char log[310];
    snprintf(log, sizeof log, "%s.log", path);
    remove(path);
    remove(log);
}

static void make_table(void) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        run(table[i]);
    }
}

static int64_t metric(const char *sql, const char *name) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
    }
    int64_t value = wf_result_metric(result, name);
    wf_result_close(result);
    return value;
}

static int open_model(void **state) {
    find_gpu(state);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/warpfox-gpu-file-%ld.wf", folder ? folder : "/tmp", (long)getpid());
    if (!has_gpu) {
        return 0;
    }
    open_db("64MB", "vm");
    make_table();
    for (int i = 0; i < ASKS; i++) {
        sums[i] = digest(asks[i].sql, asks[i].columns, &counts[i]);
    }
    run("set device = gpu; set gpu_placement = cached");
    plain_bytes = metric(asks[0].sql, "bytes_moved");
    close_db();
    open_file_db(path, NULL, "64MB", "vm");
    make_table();
    close_db();
    return 0;
}

static int close_model(void **state) {
    (void)state;
    forget_file();
    return 0;
}

static void open_again(const char *memory, const char *gpu_memory, const char *code,
                       const char *placement) {
    char text[60];
    open_file_db(path, memory, gpu_memory, code);
    run("set device = gpu");
    snprintf(text, sizeof text, "set gpu_placement = %s", placement);
    run(text);
}

static void ask_all(void) {
    for (int i = 0; i < ASKS; i++) {
        int64_t rows = 0;
        uint64_t sum = digest(asks[i].sql, asks[i].columns, &rows);
        if (sum != sums[i] || rows != counts[i]) {
            fail_msg("%s: %lld rows, not %lld, or others", asks[i].sql, (long long)rows,
                     (long long)counts[i]);
        }
    }
}

static void test_placements(void **state) {
    (void)state;
    static const char *const placements[] = {"cached", "streamed", "serial", "mapped", "auto"};
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        for (int tight = 0; tight < 4; tight++) {
            bool small_card = tight & 1;
            if (small_card && p == 0) {
                continue; /* cached: nothing else is allowed */
            }
            open_again(tight & 2 ? "24MB" : NULL, small_card ? SMALL_CARD : "64MB", "vm", placements[p]);
            ask_all();
            ask_all();
            close_db();
        }
    }
    open_again(NULL, "64MB", "woven", "streamed");
    ask_all();
    close_db();
}

/* What crosses the bus, and that the second time nothing has to where columns stay. */
static void test_packed(void **state) {
    (void)state;
    for (int streamed = 0; streamed < 2; streamed++) {
        open_again(NULL, "64MB", "vm", streamed ? "streamed" : "cached");
        int64_t packed = metric(asks[0].sql, "bytes_packed");
        assert_true(packed > 0);
        close_db();
        open_again(NULL, "64MB", "vm", streamed ? "streamed" : "cached");
        int64_t moved = metric(asks[0].sql, "bytes_moved");
        assert_true(moved >= packed);
        assert_true(moved < plain_bytes * 4 / 5);
        int64_t again = metric(asks[0].sql, "bytes_moved");
        assert_true(streamed ? again == moved : again < packed / 4); /* deleted rows are looked up anew */
        close_db();
    }
    /* In memory it crosses as it is there. */
    open_db("64MB", "vm");
    make_table();
    run("set device = gpu; set gpu_placement = streamed");
    assert_int_equal(metric(asks[0].sql, "bytes_packed"), 0);
    close_db();
}

/* Columns rest in memory, packed and unpacked beside each other, and are read ahead by a thread: the host
 * reads some of them meanwhile, and others have to go. */
static void test_ahead(void **state) {
    (void)state;
    bool was = frames_go_at_once;
    frames_go_at_once = false;
    for (int i = 0; i < 4; i++) {
        open_again(i & 1 ? "24MB" : NULL, "64MB", "vm", i & 2 ? "streamed" : "cached");
        ask_all();
        run("set device = cpu");
        ask_all();
        run("set device = gpu");
        ask_all();
        close_db();
    }
    frames_go_at_once = was;
}

static _Atomic int64_t early_bytes;

static i64 count_early(i64 file, void *to, i64 bytes, i64 at) {
    atomic_fetch_add(&early_bytes, database_has_gpu(db) ? 0 : bytes);
    return disk_system.read(file, to, bytes, at);
}

/* While the driver starts, what the first statement reads comes from the disk; of a table of which a key's index or
 * zones leave little, no more than that. */
static void test_early(void **state) {
    (void)state;
    static struct disk counting;
    bool was = frames_go_at_once;
    frames_go_at_once = false;
    counting = disk_system;
    counting.read = count_early;
    static const char *const few[] = {"select sum(r)::bigint from t where k < 50", "select r from t where k = 77"};
    const char *most[] = {asks[0].sql, "select sum(k)::bigint from t where wide < -1"};
    int64_t whole = 0;
    for (int i = 0; i < 4; i++) {
        setenv("SIMT_START", "700", 1);
        open_again(NULL, "64MB", "vm", "cached");
        disk_now = &counting;
        early_bytes = 0;
        if (i < 2) {
            int64_t packed = metric(most[i], "bytes_packed");
            whole = i == 0 ? packed : whole;
            assert_true(packed > 0);
            assert_true(early_bytes >= packed / 10 * 9); /* where blocks begin goes along, and is not on the disk */
        } else {
            (void)metric(few[i - 2], "bytes_packed");
            assert_true(early_bytes < whole / 2);
        }
        unsetenv("SIMT_START");
        ask_all();
        disk_now = &disk_system;
        close_db();
    }
    frames_go_at_once = was;
}

/* Changes, and files that were written anew: what was packed before is forgotten. */
static void test_changed(void **state) {
    (void)state;
    open_again(NULL, "64MB", "vm", "auto");
    run("insert into t select i, i, i, i, 1, null, 2, 'new', 'new', true, 77, 5, 1, i "
        "from generate_series(100000, 106000) s(i)");
    run("checkpoint");
    int64_t rows = 0;
    run("set device = cpu");
    uint64_t sum = digest(asks[2].sql, asks[2].columns, &rows);
    run("set device = gpu");
    int64_t found = 0;
    assert_true(digest(asks[2].sql, asks[2].columns, &found) == sum);
    assert_int_equal(found, rows);
    run("delete from t where k >= 100000");
    run("vacuum");
    ask_all();
    close_db();
    open_again(NULL, "64MB", "vm", "cached");
    ask_all();
    close_db();
}

typedef void (*fail_at)(unsigned long long n, int code);
typedef unsigned long long (*call_count)(void);

/* Right, or an error of the device, the disk or of memory. */
static bool right(int i) {
    wf_result *result = NULL;
    wf_status status = wf_query(conn, asks[i].sql, &result);
    const wf_batch *batch = NULL;
    uint64_t sum = 0;
    while (!status && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        sum += batch_digest(batch, asks[i].columns);
    }
    const wf_error *error = result ? wf_result_error(result) : wf_connection_error(conn);
    if (status && strncmp(error->sqlstate, "5800", 4) != 0 && strcmp(error->sqlstate, "53200") != 0) {
        fail_msg("%s: %s %s", asks[i].sql, error->sqlstate, error->message);
    }
    assert_true(status || sum == sums[i]);
    wf_result_close(result);
    return !status;
}

static void test_refused(void **state) {
    (void)state;
    if (getenv("WARPFOX_TEST_GPU") || !has_gpu) {
        skip(); /* a real driver does not fail on request */
    }
    void *library = dlopen(getenv("WARPFOX_CUDA"), RTLD_NOW | RTLD_NODELETE);
    assert_non_null(library);
    fail_at simt_fail_at;
    call_count simt_call_count;
    *(void **)&simt_fail_at = dlsym(library, "simtFailAt");
    *(void **)&simt_call_count = dlsym(library, "simtCallCount");
    for (int streamed = 0; streamed < 2; streamed++) {
        for (int kind = 0; kind < 3; kind++) { /* refused, context lost, memory of the host refused */
            bool reached = true;
            for (int64_t n = 1 + kind; reached; n += 7 + n / 6) {
                open_again(NULL, "5MB", "vm", streamed ? "streamed" : "cached");
                assert_true(right(3)); /* what is kept of earlier steps is there */
                unsigned long long before = simt_call_count();
                if (kind < 2) {
                    simt_fail_at((unsigned long long)n, kind ? 700 : 0);
                } else {
                    memory_fail_at(n);
                }
                bool good = right(0);
                reached = kind < 2 ? simt_call_count() - before >= (uint64_t)n : memory_fail_at(0) >= n;
                simt_fail_at(0, 0);
                assert_true(good || reached);
                assert_true(right(0) || right(0));
                close_db();
            }
        }
    }
}

static char *read_all(long *out_size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)*out_size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)*out_size, file), *out_size);
    fclose(file);
    return bytes;
}

static void write_all(const char *bytes, long size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    fclose(file);
}

/* A changed bit is harmless or an error that says where; other columns can be read. */
static void test_damage(void **state) {
    (void)state;
    if (!has_gpu) {
        skip();
    }
    long size = 0;
    char *bytes = read_all(&size);
    int found = 0;
    for (long at = 8192 + 40; at < size; at += size / 40) {
        bytes[at] ^= 16;
        write_all(bytes, size);
        bytes[at] ^= 16;
        const wf_option options[] = {{"gpu_memory", "64MB"}, {"gpu_code", "vm"}, {NULL, NULL}};
        if (wf_open(path, options, &db, NULL)) {
            continue;
        }
        assert_int_equal(wf_connect(db, &conn), WF_OK);
        run("set device = gpu; set host_rows = 0");
        wf_result *result = NULL;
        wf_status status = wf_query(conn, asks[0].sql, &result);
        if (status) {
            const wf_error *error = wf_connection_error(conn);
            assert_string_equal(error->sqlstate, "XX001");
            found += strstr(error->message, "column \"") != NULL;
        } else {
            const wf_batch *batch = NULL;
            assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
            assert_true(batch_digest(batch, asks[0].columns) == sums[0]);
        }
        wf_result_close(result);
        close_db();
    }
    write_all(bytes, size);
    free(bytes);
    assert_true(found > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placements), cmocka_unit_test(test_packed),  cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_changed),    cmocka_unit_test(test_refused), cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}

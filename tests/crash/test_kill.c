/* test_kill.c: a process that commits is killed at any moment; what it was told is there.
 *
 * The test starts itself as another process, whose sessions write down numbers one after the other and say each
 * that was committed; some commits load many rows, and the file is saved in the background all the time. After
 * a while the process gets SIGKILL. Then the database opens, a session's numbers are those from 1 to the last
 * one that it said, or one more, `check_database` finds nothing, and it goes on from there.
 *
 * KILL_ROUNDS: how often (4; hundreds are for by hand). CRASH_SEED: where the dice begin. */
#define _GNU_SOURCE
#include "../fault/fault.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SESSIONS = 3, LOAD_ROWS = 15000 };

/* The file as both processes open it: one that is saved again and again. */
static wf_database *open_saving(const char *path) {
    wf_option options[] = {{"device", "cpu"}, {"threads", "1"}, {"checkpoint_size", "40kB"}, {NULL, NULL}};
    wf_error error;
    wf_database *db = NULL;
    if (wf_open(path, options, &db, &error)) {
        fprintf(stderr, "%s %s\n", error.sqlstate, error.message);
        exit(3);
    }
    return db;
}

static i64 ask(wf_connection *conn, const char *format, int id) {
    char sql[200], text[1000];
    (void)snprintf(sql, sizeof sql, format, id);
    wf_result *result = must(conn, sql);
    flatten(result, text, sizeof text);
    wf_result_close(result);
    return atoll(text);
}

/* the process that is killed */

struct teller {
    wf_database *db;
    int id;
};

static void tell(void *arg) {
    const struct teller *t = arg;
    wf_connection *conn = NULL;
    char sql[300];
    if (wf_connect(t->db, &conn)) {
        exit(3);
    }
    for (i64 n = ask(conn, "select count(*) from numbers where id = %d", t->id) + 1;; n++) {
        bool loads = n % 40 == t->id;
        (void)snprintf(sql, sizeof sql,
                       "begin; insert into numbers values (%d, %lld, repeat('y', %d)); "
                       "insert into loads select %d, i from generate_series(1, %d) i; commit",
                       t->id, (long long)n, (int)(n % 300), t->id, loads ? LOAD_ROWS : 0);
        while (wf_query(conn, sql, NULL)) {
            if (strcmp(wf_connection_error(conn)->sqlstate, "40001") != 0) {
                show_error(conn, sql);
                exit(3);
            }
            (void)wf_query(conn, "rollback", NULL);
        }
        int len = snprintf(sql, sizeof sql, "%d %lld\n", t->id, (long long)n);
        if (write(STDOUT_FILENO, sql, (size_t)len) != len) {
            exit(0); /* nobody listens any more */
        }
        if (n % 25 == 24 && wf_query(conn, t->id ? "checkpoint" : "vacuum", NULL)) {
            show_error(conn, "vacuum");
            exit(3);
        }
    }
}

static int child(const char *path) {
    wf_database *db = open_saving(path);
    struct teller tellers[SESSIONS];
    struct thread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        tellers[i] = (struct teller){db, i};
        threads[i] = thread_start(tell, &tellers[i]);
    }
    thread_join(threads[0]);
    return 3;
}

/* the one that looks */

static u64 dice;
static u32 roll(u32 sides) {
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (u32)(dice >> 33) % sides;
}

static void hear(FILE *from, i64 *io_said) {
    char line[100];
    int id;
    long long n;
    while (fgets(line, sizeof line, from)) {
        if (strchr(line, '\n') && sscanf(line, "%d %lld", &id, &n) == 2 && id >= 0 && id < SESSIONS) {
            io_said[id] = MAX_OF(io_said[id], (i64)n);
        }
    }
}

static void kill_once(const char *path, i64 *io_said) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl("/proc/self/exe", "test_kill", path, (char *)NULL);
        _exit(4);
    }
    assert_true(pid > 0);
    (void)close(ends[1]);
    struct timespec wait = {0, 1000000L * (100 + roll(600))};
    (void)nanosleep(&wait, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    FILE *from = fdopen(ends[0], "r");
    hear(from, io_said);
    (void)fclose(from);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* it did not end by itself */
}

static void look(const char *path, i64 *io_said) {
    wf_database *db = open_saving(path);
    wf_connection *conn = NULL;
    char text[2000];
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    for (int i = 0; i < SESSIONS; i++) {
        i64 count = ask(conn, "select count(*) from numbers where id = %d", i);
        i64 last = ask(conn, "select coalesce(max(n), 0) from numbers where id = %d", i);
        assert_int_equal(count, last);
        assert_in_range(count, io_said[i], io_said[i] + 1);
        i64 loads = ask(conn, "select count(*) from numbers where id = %d and n %% 40 = id", i);
        assert_int_equal(ask(conn, "select count(*) from loads where id = %d", i), loads * LOAD_ROWS);
        io_said[i] = count;
    }
    wf_result *result = must(conn, "call check_database()");
    flatten(result, text, sizeof text);
    wf_result_close(result);
    assert_null(strstr(text, "damaged"));
    wf_disconnect(conn);
    wf_close(db);
}

static void test_kill(void **state) {
    UNUSED(state);
    const char *rounds = getenv("KILL_ROUNDS"), *seed = getenv("CRASH_SEED");
    char path[100], log[110];
    i64 said[SESSIONS] = {0}, all = 0;
    dice = seed ? (u64)atoll(seed) : 5;
    (void)snprintf(path, sizeof path, "/tmp/warpfox-kill-%d.wf", (int)getpid());
    (void)snprintf(log, sizeof log, "%s.log", path);
    wf_database *db = open_saving(path);
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn, "create table numbers (id integer, n bigint, s text, primary key (id, n)); "
              "create table loads (id integer, i integer)");
    wf_disconnect(conn);
    wf_close(db);
    for (int i = rounds ? atoi(rounds) : 4; i > 0; i--) {
        kill_once(path, said);
        look(path, said);
    }
    for (int i = 0; i < SESSIONS; i++) {
        all += said[i];
    }
    printf("%lld commits\n", (long long)all);
    (void)unlink(path);
    (void)unlink(log);
}

int main(int argc, char **argv) {
    if (argc > 1 && argv[1][0] == '/') {
        return child(argv[1]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill)};
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}

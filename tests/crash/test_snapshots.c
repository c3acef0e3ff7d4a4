/* test_snapshots.c: sessions run random transactions side by side; every answer is what its snapshot says.
 *
 * A session counts its commits in a row of its own, so the counts that a transaction reads first say exactly
 * which commits its snapshot has. All answers are written down and looked at in the end: who writes a key has
 * changed what the writer before left there (no lost update); a key that a transaction reads has the value of
 * the last writer in its snapshot, or its own (no dirty read, the same answer every time); of two snapshots
 * one contains the other. The file is saved in the background all the time, tables are compacted, and read
 * again after the database is closed.
 *
 * SNAPSHOT_SECONDS: how long (2; minutes under the thread sanitizer are for by hand). */
#include "../fault/fault.h"

#include <unistd.h>

enum { SESSIONS = 8, KEYS = 24, READS_MOST = 4, NONE = -1 };

struct tally {
    i32 n[SESSIONS];
};
struct cuts {
    struct tally *items;
    i64 count;
};
struct answer { /* of a SELECT of all keys */
    struct tally seen;
    i32 values[KEYS]; /* NONE: no row */
    u32 own;          /* keys that the transaction itself had changed: bits */
    i32 own_values[KEYS];
};
struct writer { /* a committed transaction that wrote a key */
    i32 session, n;
    i32 before, value; /* what its snapshot has, what it left; NONE: no row */
    struct tally seen;
    i64 rank; /* the first snapshot that has it, of all in order */
};
struct writes {
    struct writer *items;
    i64 count, cap;
};
struct player {
    wf_database *db;
    int id;
    u64 dice;
    i64 until_ns;
    bool failed;
    i32 commits, aborts, tokens;
    struct answer *answers;
    i64 answer_count, answer_cap;
    struct writes writes[KEYS];
};

static u32 roll_of(struct player *p, u32 sides) {
    p->dice = p->dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (u32)(p->dice >> 33) % sides;
}

/* A refusal that ends the transaction; anything else is a failure of the test. */
static bool run_in(struct player *p, wf_connection *conn, const char *sql, wf_result **out) {
    if (!wf_query(conn, sql, out)) {
        return true;
    }
    const char *code = wf_connection_error(conn)->sqlstate;
    if (strcmp(code, "40001") != 0 && strcmp(code, "23505") != 0) {
        show_error(conn, sql);
        p->failed = true;
    }
    return false;
}

static bool read_pairs(struct player *p, wf_connection *conn, const char *sql, i32 *out, i32 count) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    for (i32 i = 0; i < count; i++) {
        out[i] = NONE;
    }
    if (!run_in(p, conn, sql, &result)) {
        return false;
    }
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t r = 0; r < wf_batch_rows(batch); r++) {
            char key[32], value[32];
            wf_value_text(batch, 0, r, key, sizeof key);
            wf_value_text(batch, 1, r, value, sizeof value);
            i32 k = atoi(key);
            p->failed |= k < 0 || k >= count || out[k] != NONE; /* or it is there twice */
            out[k < 0 || k >= count ? 0 : k] = atoi(value);
        }
    }
    wf_result_close(result);
    return true;
}

static bool read_all(struct player *p, wf_connection *conn, const struct answer *now) {
    if (p->answer_count == p->answer_cap) {
        p->answer_cap = MAX_OF(2 * p->answer_cap, 1024);
        p->answers = realloc(p->answers, sizeof *p->answers * (size_t)p->answer_cap);
    }
    struct answer *a = &p->answers[p->answer_count];
    *a = *now;
    bool fine = read_pairs(p, conn, "select k, v from kv", a->values, KEYS);
    p->answer_count += fine;
    return fine;
}

static bool change(struct player *p, wf_connection *conn, struct answer *now, i32 token) {
    char sql[160];
    i32 k = (i32)roll_of(p, KEYS);
    i32 has = now->own >> k & 1 ? now->own_values[k] : now->values[k], value = token;
    if (has == NONE) {
        (void)snprintf(sql, sizeof sql, "insert into kv values (%d, %d, 'of %d')", k, token, p->id);
    } else if (roll_of(p, 5) == 0) {
        (void)snprintf(sql, sizeof sql, "delete from kv where k = %d", k);
        value = NONE;
    } else {
        (void)snprintf(sql, sizeof sql, "update kv set v = %d where k = %d", token, k);
    }
    now->own |= 1u << k;
    now->own_values[k] = value;
    return run_in(p, conn, sql, NULL);
}

static void note_commit(struct player *p, const struct answer *now) {
    p->commits++;
    for (i32 k = 0; k < KEYS; k++) {
        struct writes *w = &p->writes[k];
        bool nothing = now->values[k] == NONE && now->own_values[k] == NONE; /* came and went */
        if (!(now->own >> k & 1) || nothing) {
            continue;
        }
        if (w->count == w->cap) {
            w->cap = MAX_OF(2 * w->cap, 64);
            w->items = realloc(w->items, sizeof *w->items * (size_t)w->cap);
        }
        w->items[w->count++] = (struct writer){.session = p->id,
                                               .n = p->commits,
                                               .before = now->values[k],
                                               .value = now->own_values[k],
                                               .seen = now->seen};
    }
}

static bool transact(struct player *p, wf_connection *conn) {
    struct answer now = {.own = 0};
    char sql[100];
    bool fine = run_in(p, conn, "begin", NULL) &&
                read_pairs(p, conn, "select id, n from counts", now.seen.n, SESSIONS) &&
                read_all(p, conn, &now);
    memcpy(now.values, fine ? p->answers[p->answer_count - 1].values : now.values, sizeof now.values);
    for (u32 i = roll_of(p, READS_MOST); fine && i > 0; i--) {
        fine = change(p, conn, &now, p->id * 100000000 + ++p->tokens) &&
               (roll_of(p, 2) || read_all(p, conn, &now));
    }
    bool wants = fine && now.own && roll_of(p, 8) > 0;
    if (wants) {
        (void)snprintf(sql, sizeof sql, "update counts set n = %d where id = %d", p->commits + 1, p->id);
        fine = run_in(p, conn, sql, NULL) && run_in(p, conn, "commit", NULL);
    }
    if (wants && fine) {
        note_commit(p, &now);
    } else {
        p->aborts++;
        (void)wf_query(conn, "rollback", NULL);
    }
    return !p->failed;
}

static void play(void *arg) {
    struct player *p = arg;
    wf_connection *conn = NULL;
    p->failed = wf_connect(p->db, &conn) != WF_OK;
    for (i64 i = 0; !p->failed && clock_ns() < p->until_ns; i++) {
        transact(p, conn);
        if (p->id == 0 && i % 64 == 63 && wf_query(conn, i % 128 == 127 ? "vacuum" : "checkpoint", NULL)) {
            show_error(conn, "vacuum");
            p->failed = true;
        }
    }
    wf_disconnect(conn);
}

static bool has(const struct tally *seen, const struct writer *w) {
    return seen->n[w->session] >= w->n;
}

/* Of two that no snapshot tells apart one took the row away before the other made one. */
static int by_order(const void *a, const void *b) {
    const struct writer *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : (y->value == NONE) - (x->value == NONE);
}

static i64 rank_of(const struct cuts *cuts, const struct writer *w) {
    i64 low = 0, high = cuts->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (has(&cuts->items[middle], w)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* All writers of a key, one after the other: each changed what the one before it had left. It has also seen
 * that one, unless there was no row: one that came and went meanwhile is nobody's loss. */
static struct writes order_writes(struct player *players, const struct cuts *cuts, i32 k) {
    struct writes all = {0};
    for (int s = 0; s < SESSIONS; s++) {
        all.cap += players[s].writes[k].count;
    }
    all.items = malloc(sizeof *all.items * (size_t)(all.cap + 1));
    for (int s = 0; s < SESSIONS; s++) {
        i64 n = players[s].writes[k].count;
        if (n) {
            memcpy(all.items + all.count, players[s].writes[k].items, sizeof *all.items * (size_t)n);
        }
        all.count += n;
    }
    for (i64 i = 0; i < all.count; i++) {
        all.items[i].rank = rank_of(cuts, &all.items[i]);
    }
    qsort(all.items, (size_t)all.count, sizeof *all.items, by_order);
    for (i64 i = 0; i < all.count; i++) {
        i32 left = i ? all.items[i - 1].value : NONE;
        assert_int_equal(all.items[i].before, left);
        assert_true(left == NONE || has(&all.items[i].seen, &all.items[i - 1]));
    }
    return all;
}

static void check_answer(const struct answer *a, const struct writes *writes, i32 k) {
    i64 low = 0, high = writes->count;
    while (low < high) { /* the first that is not in the snapshot */
        i64 middle = (low + high) / 2;
        if (has(&a->seen, &writes->items[middle])) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert_true(low == writes->count || !has(&a->seen, &writes->items[writes->count - 1]));
    i32 should = a->own >> k & 1 ? a->own_values[k] : low ? writes->items[low - 1].value : NONE;
    assert_int_equal(a->values[k], should);
}

static int by_sum(const void *a, const void *b) {
    const struct tally *x = a, *y = b;
    i64 sum = 0;
    for (int s = 0; s < SESSIONS; s++) {
        sum += (i64)x->n[s] - y->n[s];
    }
    return sum < 0 ? -1 : sum > 0;
}

/* All snapshots in their order: of two one contains the other. */
static struct cuts order_cuts(struct player *players) {
    i64 count = 0, at = 0;
    for (int s = 0; s < SESSIONS; s++) {
        count += players[s].answer_count;
    }
    struct tally *all = malloc(sizeof *all * (size_t)(count + 1));
    for (int s = 0; s < SESSIONS; s++) {
        for (i64 i = 0; i < players[s].answer_count; i++) {
            all[at++] = players[s].answers[i].seen;
        }
    }
    qsort(all, (size_t)count, sizeof *all, by_sum);
    for (i64 i = 1; i < count; i++) {
        for (int s = 0; s < SESSIONS; s++) {
            assert_true(all[i - 1].n[s] <= all[i].n[s]);
        }
    }
    return (struct cuts){all, count};
}

static void check_all(struct player *players, const i32 *last) {
    struct cuts cuts = order_cuts(players);
    for (i32 k = 0; k < KEYS; k++) {
        struct writes writes = order_writes(players, &cuts, k);
        for (int s = 0; s < SESSIONS; s++) {
            for (i64 i = 0; i < players[s].answer_count; i++) {
                check_answer(&players[s].answers[i], &writes, k);
            }
        }
        assert_int_equal(last[k], writes.count ? writes.items[writes.count - 1].value : NONE);
        free(writes.items);
    }
    free(cuts.items);
}

static wf_database *open_shared(const char *path) {
    wf_option options[] = {{"device", "cpu"}, {"threads", "2"}, {"checkpoint_size", "40kB"}, {NULL, NULL}};
    wf_error error;
    wf_database *db = NULL;
    if (wf_open(path, options, &db, &error)) {
        fprintf(stderr, "%s %s\n", error.sqlstate, error.message);
        fail();
    }
    return db;
}

static void run_players(struct player *players, const char *path) {
    const char *given = getenv("SNAPSHOT_SECONDS");
    i64 until = clock_ns() + (given ? atoll(given) : 2) * 1000000000LL;
    struct thread *threads[SESSIONS];
    wf_database *db = open_shared(path);
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn, "create table kv (k integer primary key, v integer, s text); "
              "create table counts (id integer primary key, n integer)");
    run(conn, "insert into counts select i, 0 from generate_series(0, 7) i");
    for (int i = 0; i < SESSIONS; i++) {
        players[i].db = db;
        players[i].id = i;
        players[i].dice = (u64)i + 1;
        players[i].until_ns = until;
        threads[i] = thread_start(play, &players[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
        assert_false(players[i].failed);
    }
    wf_disconnect(conn);
    wf_close(db);
}

static void test_snapshots(void **state) {
    UNUSED(state);
    static struct player players[SESSIONS];
    char path[100];
    i32 last[KEYS];
    i64 commits = 0, aborts = 0, answers = 0;
    (void)snprintf(path, sizeof path, "/tmp/warpfox-snapshots-%d.wf", (int)getpid());
    run_players(players, path);
    wf_database *db = open_shared(path);
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    assert_true(read_pairs(&players[0], conn, "select k, v from kv", last, KEYS));
    wf_disconnect(conn);
    wf_close(db);
    (void)unlink(path);
    check_all(players, last);
    for (int i = 0; i < SESSIONS; i++) {
        commits += players[i].commits;
        aborts += players[i].aborts;
        answers += players[i].answer_count;
        for (i32 k = 0; k < KEYS; k++) {
            free(players[i].writes[k].items);
        }
        free(players[i].answers);
    }
    printf("%lld commits, %lld transactions given up, %lld answers\n", (long long)commits, (long long)aborts,
           (long long)answers);
    assert_true(commits > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_snapshots)};
    return cmocka_run_group_tests_name("snapshots", tests, NULL, NULL);
}

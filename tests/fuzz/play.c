/* play.c: runs the statements of one round in a fresh database and watches.
 *
 * Whatever a statement says, it ends soon with rows or an error that is no internal one, also when
 * memory is refused on the way and when its constants are parameters; a query gives the same rows
 * with the optimiser and fusion as without; and when all is done the control query is right and the
 * memory is back. What breaks the process or keeps it is seen by who watches it (rounds.c). */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"
#include "warpfox.h"

enum { MEMORY_MOST = 64 << 20 };

static const char *const control[][2] = {
    {"select g, count(*), sum(k), sum(x), min(d) from fuzz_control group by g",
     "\x01NULL | 1 | 4 | 4.5 | -1;a | 2 | 4 | 0.5 | 1.25;b | 2 | 7 | 3.5 | 2.5;"},
    {"select upper(t) || '!', c.k from fuzz_control c join fuzz_other d on c.k = d.k where t <> "
     "'one'",
     "FIVE! | 5;TWO! | 2;ZWEI! | 2;"},
};
static const char make_control[] =
    "create table fuzz_control (k integer not null, g text, x double precision, d decimal(9,2)); "
    "insert into fuzz_control values (1, 'a', 0.5, 1.25), (2, 'b', 1.5, 2.50), (3, 'a', null, "
    "3.75), "
    "(4, null, 4.5, -1.00), (5, 'b', 2.0, null); "
    "create table fuzz_other (k integer, t text); "
    "insert into fuzz_other values (1, 'one'), (2, 'two'), (2, 'zwei'), (5, 'five')";

struct player {
    wf_connection *conn;
    struct gen *g; /* of the step */
    struct progress *progress;
    struct answer one;
    struct answer other;
};

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool found(struct player *p, const char *what, const char *detail) {
    snprintf(p->progress->found, FOUND_MAX, "%s: %.1500s", what, detail);
    return false;
}

static void bind_random(struct gen *g, wf_statement *statement, int32_t param) {
    static const int64_t numbers[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, 1 << 20, 100};
    static const char *const texts[] = {"",     "1",    "abc", "2020-02-30",
                                        "-0.5", "true", "%",   "\xc3\xa9"};
    wf_int128 wide = {g->rng, (int64_t)below(g, 3) - 1};
    switch (below(g, 7)) {
    case 0:
        wf_bind_null(statement, param);
        break;
    case 1:
        wf_bind_int64(statement, param, numbers[below(g, 8)]);
        break;
    case 2:
        wf_bind_double(statement, param, (double)numbers[below(g, 8)] * 0.7);
        break;
    case 3:
        wf_bind_decimal(statement, param, wide, (int32_t)below(g, 45) - 3);
        break;
    case 4:
        wf_bind_date(statement, param, (int32_t)numbers[below(g, 8)]);
        break;
    case 5:
        wf_bind_bool(statement, param, below(g, 2));
        break;
    default:
        wf_bind_text(statement, param, texts[below(g, 8)], -1);
    }
}

/* The statement with some of its numbers and strings as parameters, executed a few times. */
static wf_status run_prepared(struct player *p, const char *sql, wf_result **out) {
    static struct words words;
    static struct sentence text;
    words_cut(sql, &words);
    text.len = 0;
    text.text[0] = 0;
    int32_t params = 0;
    for (int i = 0; i < words.count; i++) {
        if (word_class(words.at[i]) <= WORD_STRING && params < 9 && below(p->g, 2)) {
            char name[4] = {'$', (char)('1' + params++), 0, 0};
            words_put(&text, name, 2);
        } else {
            words_put(&text, words.at[i], words.len[i]);
        }
    }
    wf_statement *statement = NULL;
    wf_status status = wf_prepare(p->conn, text.text, &statement);
    for (int again = below(p->g, 4); !status && again > 0; again--) {
        for (int32_t k = 1; k <= params; k++) {
            bind_random(p->g, statement, k);
        }
        wf_result_close(*out);
        *out = NULL;
        status = wf_execute(statement, out);
    }
    wf_statement_close(statement);
    return status;
}

/* Through the rows, whatever comes; now and then not to the end. */
static bool read_rows(struct player *p, wf_result *result) {
    const wf_batch *batch = NULL;
    char value[300];
    int64_t rows = 0;
    int64_t most = one_in(p->g, 4) ? 10 : 1000000;
    while (rows < most && wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int32_t c = 0; c < wf_result_column_count(result); c++) {
            for (int64_t r = 0; r < wf_batch_rows(batch) && r < 100; r++) {
                wf_value_text(batch, c, r, value, sizeof value);
            }
        }
        rows += wf_batch_rows(batch);
    }
    const wf_error *error = wf_result_error(result);
    return strncmp(error->sqlstate, "XX", 2) != 0 || found(p, error->sqlstate, error->message);
}

static bool run_one(struct player *p, const char *sql) {
    wf_result *result = NULL;
    bool prepared = one_in(p->g, 6);
    refuse_memory_at(one_in(p->g, 8) ? below(p->g, 80) + 1 : 0);
    wf_status status = prepared ? run_prepared(p, sql, &result) : wf_query(p->conn, sql, &result);
    bool good = status || !result || read_rows(p, result);
    refuse_memory_at(0);
    const wf_error *error = wf_connection_error(p->conn);
    if (good && status) {
        char text[3000];
        wf_error_text(error, sql, text, sizeof text);
        if (strncmp(error->sqlstate, "XX", 2) == 0) {
            good = found(p, error->sqlstate, error->message);
        } else if (error->position < -1 || (!prepared && error->position > (int64_t)strlen(sql))) {
            good = found(p, "a position outside the text", error->message);
        } else if (!error->message[0]) {
            good = found(p, "an error without a message", error->sqlstate);
        }
    }
    wf_result_close(result);
    *(status ? &p->progress->refused : &p->progress->answered) += 1;
    return good;
}

/* Does the text say which rows come, and nothing else? */
static bool is_comparable(const char *sql) {
    static const char open_words[] =
        " limit offset fetch random setseed now clock_timestamp transaction_timestamp "
        "statement_timestamp timeofday current_timestamp current_time current_date localtime "
        "localtimestamp nextval currval lastval setval row_number ntile lag lead first_value "
        "last_value nth_value string_agg array_agg listagg first last any_value arbitrary mode "
        "rows "
        "on tablesample explain insert update delete into create set show for gen_random_uuid "
        "pg_sleep settings current_setting set_config warpfox_settings ";
    static struct words words;
    words_cut(sql, &words);
    if (!words.count || !word_in(words.at[0], words.len[0], " select with values table ")) {
        return false;
    }
    for (int i = 0; i < words.count; i++) {
        /* ON is a join's condition, too: only DISTINCT ON leaves rows open */
        bool on = words.len[i] == 2 && strncmp(words.at[i], "on", 2) == 0;
        bool distinct = i > 0 && word_in(words.at[i - 1], words.len[i - 1], " distinct ");
        if (*words.at[i] == ';' ||
            (on ? distinct : word_in(words.at[i], words.len[i], open_words))) {
            return false;
        }
    }
    return true;
}

/* States that depend on how a query is run: time, memory, limits, what a device lacks. */
static bool is_circumstance(const char *state) {
    return strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0 ||
           strncmp(state, "54", 2) == 0 || strncmp(state, "0A", 2) == 0 ||
           strncmp(state, "25", 2) == 0;
}

static bool compare_settings(struct player *p, const char *sql) {
    if (wf_query(p->conn,
                 "set optimizer = on; set fusion = on; set vector_rows = 1024; reset float_sum",
                 NULL)) {
        return true;
    }
    ours_ask(p->conn, sql, NULL, &p->one);
    if (wf_query(p->conn, "set optimizer = off; set fusion = off; set vector_rows = 3", NULL)) {
        return true;
    }
    ours_ask(p->conn, sql, NULL, &p->other);
    p->progress->compared++;
    if (p->one.huge || p->other.huge || is_circumstance(p->one.state) ||
        is_circumstance(p->other.state)) {
        return true;
    }
    bool raised = strcmp(p->one.state, "00000") != 0;
    bool other_raised = strcmp(p->other.state, "00000") != 0;
    if (other_raised) { /* with the optimiser on a query may do without what raises */
        return true;
    }
    if (raised) {
        return found(p, "raises only with the optimiser", p->one.message);
    }
    if (answer_same(&p->one, &p->other)) {
        return true;
    }
    char text[900];
    snprintf(text, sizeof text, "%d and %d rows; %.300s / %.300s", p->one.line_count,
             p->other.line_count, p->one.line_count ? p->one.lines[0] : "",
             p->other.line_count ? p->other.lines[0] : "");
    return found(p, "other rows without optimiser and fusion", text);
}

static bool play_step(struct player *p, const struct round *round, const struct step *step) {
    (void)wf_query(p->conn, "set statement_timeout = 2000", NULL);
    if (step->verbatim) {
        wf_status status = wf_query(p->conn, step->text, NULL);
        const wf_error *error = wf_connection_error(p->conn);
        return !status || strncmp(error->sqlstate, "XX", 2) != 0 ||
               found(p, error->sqlstate, error->message);
    }
    if (!run_one(p, step->text)) {
        return false;
    }
    if (one_in(p->g, 3) && is_comparable(step->text)) {
        bool good = compare_settings(p, step->text);
        (void)wf_query(p->conn, "reset optimizer; reset fusion; reset vector_rows", NULL);
        (void)wf_query(p->conn, round->settings, NULL);
        return good;
    }
    return true;
}

/* What the script stored leaves no room for any statement: then it is right to refuse them. */
static bool is_full(wf_database *db, const char *message) {
    return strstr(message, "out of host memory") && wf_memory_used(db) > MEMORY_MOST / 4 * 3;
}

static bool check_control(struct player *p, wf_database *db) {
    (void)wf_query(p->conn, "rollback",
                   NULL); /* a script may leave a transaction, or a failed one */
    wf_status status = WF_CANCELLED;
    for (int i = 0; i < 100 && status == WF_CANCELLED; i++) { /* by a timeout of a millisecond */
        status = wf_query(
            p->conn, "reset all; set statement_timeout = 60000; set search_path = public", NULL);
    }
    if (status) {
        return found(p, "RESET after it all", wf_connection_error(p->conn)->message);
    }
    for (int i = 0; i < 2; i++) {
        char got[1000] = "";
        size_t len = 0;
        ours_ask(p->conn, control[i][0], NULL, &p->one);
        for (int k = 0; k < p->one.line_count && len < 900; k++) {
            len += (size_t)snprintf(got + len, sizeof got - len, "%.100s;", p->one.lines[k]);
        }
        if (strcmp(got, control[i][1]) != 0 && !is_full(db, p->one.message)) {
            return found(p, "the control query", p->one.message[0] ? p->one.message : got);
        }
    }
    return true;
}

bool round_play(const struct round *round, struct progress *progress) {
    static struct gen g;
    struct player p = {.g = &g, .progress = progress};
    wf_option options[] = {{"device", round->device},
                           {"threads", round->threads},
                           {"memory", "64MB"},
                           {"statement_cache", "off"},
                           {NULL, NULL}};
    wf_database *db = NULL;
    wf_error error;
    if (wf_open(NULL, options, &db, &error) || wf_connect(db, &p.conn)) {
        return found(&p, "opening", error.message);
    }
    bool good = !wf_query(p.conn, make_control, NULL) && !wf_query(p.conn, round->settings, NULL);
    good = good || found(&p, "preparing", wf_connection_error(p.conn)->message);
    for (int i = 0; good && i < round->count; i++) {
        progress->step = i;
        progress->since_ns = now_ns();
        g.rng = round->steps[i].seed;
        good = play_step(&p, round, &round->steps[i]);
    }
    progress->since_ns = now_ns();
    good = good && check_control(&p, db);
    int64_t used = wf_memory_used(db);
    if (good && (used <= 0 || used > MEMORY_MOST)) {
        good = found(&p, "memory after it all", "beyond the budget");
    }
    answer_free(&p.one);
    answer_free(&p.other);
    wf_disconnect(p.conn);
    wf_close(db);
    return good;
}

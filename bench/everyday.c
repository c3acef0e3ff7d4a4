/* everyday.c: `bench everyday`: about fifty questions over rows, on the CPU and on the GPU: group-bys and
 * joins of the public db-benchmark, windows, sorts, text, time.
 *
 * Answers stay where they are made: a question is a materialised subquery of which one reader takes
 * all columns and another the first row: so all columns are written, in their order, and not fused into
 * what reads them. The time is that of the steps that make it, as EXPLAIN (STEPS) tells; those that read
 * it do not count. All questions are asked once before any is measured, of the GPU by several
 * connections, so that kernels are compiled side by side. What is read of an answer, a number of every
 * column, is compared between the devices; answers over few rows (--rows up to 100,000) are compared
 * whole. A step of many rows that ran on the host while the GPU was asked for is named. The exit status
 * is 1 when an answer differs, or the GPU refuses a question. */
#include "bench_everyday.h"
#include "bench_sides.h"
#include "everyday.def"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES = 4000, DIGEST_BYTES = 2000, TROUBLE_BYTES = 300 };
enum { ROWS_WHOLE = 100000, FEW_ROWS = 1000, COMPILE_SECONDS = 3, WARMERS = 4, HOT_RUNS = 4 };
enum { WOVEN_ROWS = 65536 }; /* steps of fewer stay on the virtual machine */
enum { COL_DEVICE = 1, COL_OPERATORS, COL_NS, COL_ROWS_IN = 7, COL_ROWS_OUT };

#define X(kind, name, sql) {kind, name, sql},
static const struct question { const char *kind, *name, *sql; } questions[] = {WF_EVERYDAY(X)};
#undef X
enum { QUESTIONS = sizeof questions / sizeof *questions };

struct answer {
    bool ok;
    double seconds, whole_seconds; /* of its steps; of the whole statement */
    int64_t rows;
    char host[TROUBLE_BYTES]; /* steps of many rows that ran on the host */
    char trouble[TROUBLE_BYTES];
    char digest[DIGEST_BYTES];
    uint64_t sum;             /* of hashes of its rows, where they are few */
    char sql[SQL_BYTES];      /* to be measured */
    bool interim;             /* some step ran other code than it will */
    double hot_seconds;       /* of the question itself, best of its last runs, rows left on the card */
    int64_t waits;            /* of the host for the card in the last of them */
    char most[TROUBLE_BYTES]; /* the step that took longest */
};

struct everyday {
    const struct bench_options *options;
    struct bench_db db;
    struct bench_side sides[2];
    double logs;
    bool compiles; /* there are enough rows for woven code */
    struct answer (*answers)[2];
    int asked, compared, wrong, refused, slower, on_host;
};

static void note(struct answer *out, const wf_error *error) {
    snprintf(out->trouble, sizeof out->trouble, "%s: %.250s", error->sqlstate, error->message);
    out->ok = false;
}

/* A number of every column. */
static bool digest_text(struct everyday *w, const char *question, char *out, size_t cap,
                        struct answer *answer) {
    char sql[SQL_BYTES];
    wf_result *result = NULL;
    wf_type_info type;
    size_t used = 0;
    snprintf(sql, sizeof sql, "select * from (%s) as q limit 0", question);
    if (wf_query(w->db.conn, sql, &result) != WF_OK) {
        note(answer, wf_connection_error(w->db.conn));
        return false;
    }
    for (int32_t c = 0; c < wf_result_column_count(result); c++) {
        const char *name = wf_result_name(result, c);
        (void)wf_result_type(result, c, &type);
        bool number = type.type >= WF_TYPE_SMALLINT && type.type <= WF_TYPE_DOUBLE;
        const char *form = type.type == WF_TYPE_TEXT ? "%ssum(length(%s))"
                           : number                  ? "%ssum(%s)"
                                                     : "%smax(%s)";
        used +=
            used < cap ? (size_t)snprintf(out + used, cap - used, form, c ? ", " : "", name) : 0;
    }
    wf_result_close(result);
    return used < cap;
}

static void statement_text(const char *before, const char *question, const char *digest, char *out,
                           size_t cap) {
    snprintf(out, cap,
             "%swith q as materialized (%s) select count(*), %s, (select count(*) from (select * "
             "from q limit 1) as o) from q",
             before, question, digest);
}

/* How many steps there are until the answer is made: the last of them ends in a variable that is shared. */
static int64_t steps_of(const wf_batch *batch) {
    static const char end[] = ", Shared";
    int64_t row = wf_batch_rows(batch);
    char label[200] = "";
    do {
        wf_value_text(batch, COL_OPERATORS, --row, label, sizeof label);
    } while (row > 0 && (strlen(label) < strlen(end) ||
                         strcmp(label + strlen(label) - strlen(end), end) != 0));
    return row + 1;
}

static double number(const wf_batch *batch, int column, int64_t row) {
    char text[64];
    wf_value_text(batch, column, row, text, sizeof text);
    return strtod(text, NULL);
}

/* Rows that were put in order are copied to become shared: an answer would not be. */
static bool only_shares(const char *label) {
    return strcmp(label, "Sort, Shared") == 0 || strcmp(label, "Limit, Shared") == 0;
}

static void add_steps(const wf_batch *batch, struct answer *out) {
    size_t used = 0;
    int64_t count = steps_of(batch);
    double most = 0;
    out->seconds = 0;
    out->host[0] = 0;
    out->interim = false;
    for (int64_t row = 0; row < count; row++) {
        char device[40], label[100];
        wf_value_text(batch, COL_DEVICE, row, device, sizeof device);
        wf_value_text(batch, COL_OPERATORS, row, label, sizeof label);
        if (only_shares(label)) {
            continue;
        }
        double ms = 1e-6 * number(batch, COL_NS, row);
        out->seconds += 1e-3 * ms;
        bool weaves = number(batch, COL_ROWS_IN, row) >= WOVEN_ROWS;
        out->interim =
            out->interim || (weaves && (strstr(device, "vm") || strstr(device, "quick")));
        if (ms > most) {
            most = ms;
            snprintf(out->most, sizeof out->most, "%s: %s %.2f ms", device, label, ms);
        }
        if (strncmp(device, "cpu", 3) == 0 && number(batch, COL_ROWS_IN, row) >= FEW_ROWS &&
            used < sizeof out->host) {
            used += (size_t)snprintf(out->host + used, sizeof out->host - used, "%s%s %.1f ms",
                                     used ? "; " : "", label, 1e-6 * number(batch, COL_NS, row));
        }
    }
}

/* One run, and what its steps took. */
static bool run_steps(struct everyday *w, const char *sql, struct answer *out) {
    wf_result *result = NULL;
    const wf_batch *batch;
    struct answer now = *out;
    double start = bench_now();
    bool good = wf_query(w->db.conn, sql, &result) == WF_OK &&
                wf_result_next_batch(result, &batch) == WF_OK && batch;
    now.whole_seconds = bench_now() - start;
    if (!good) {
        note(out, result ? wf_result_error(result) : wf_connection_error(w->db.conn));
    } else {
        add_steps(batch, &now);
        *out = now.seconds < out->seconds ? now : *out;
    }
    wf_result_close(result);
    return good;
}

static uint64_t hash_text(const char *text, size_t len, uint64_t hash) {
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ULL;
    }
    return hash ^ hash >> 29;
}

static uint64_t hash_row(const wf_batch *batch, int32_t columns, int64_t row) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    char text[300];
    for (int32_t c = 0; c < columns; c++) {
        size_t len = wf_value_text(batch, c, row, text, sizeof text);
        len = len < sizeof text ? len : sizeof text - 1;
        hash = hash_text(text, len, hash * 3 + (wf_batch_is_null(batch, c, row) ? 1 : 2));
    }
    return hash;
}

/* What is read of the answer, and the answer itself where it is short. */
static bool read_answer(struct everyday *w, const char *sql, const char *question,
                        struct answer *out) {
    const wf_batch *batch;
    size_t used = 0;
    for (int whole = 0; whole < 2; whole++) {
        wf_result *result = NULL;
        wf_status status = wf_query(w->db.conn, whole ? question : sql, &result);
        while (status == WF_OK && (status = wf_result_next_batch(result, &batch)) == WF_OK &&
               batch) {
            int32_t columns = wf_result_column_count(result);
            for (int32_t c = 0; c < columns && !whole; c++) {
                char text[200];
                wf_value_text(batch, c, 0, text, sizeof text);
                out->rows = c == 0 ? strtoll(text, NULL, 10) : out->rows;
                used += used < sizeof out->digest
                            ? (size_t)snprintf(out->digest + used, sizeof out->digest - used, "%s ",
                                               text)
                            : 0;
            }
            for (int64_t row = 0; whole && row < wf_batch_rows(batch); row++) {
                out->sum += hash_row(batch, columns, row);
            }
        }
        if (status != WF_OK) {
            note(out, result ? wf_result_error(result) : wf_connection_error(w->db.conn));
        }
        wf_result_close(result);
        if (status != WF_OK || w->compiles) {
            return status == WF_OK;
        }
    }
    return true;
}

static void use_side(struct everyday *w, const struct bench_side *side) {
    char sql[100];
    snprintf(sql, sizeof sql, "set device = %s", side->name);
    bench_run(&w->db, sql);
}

/* Once, for the answer. */
static void ask(struct everyday *w, const struct question *q, const struct bench_side *side,
                struct answer *out) {
    char sql[SQL_BYTES], digest[DIGEST_BYTES];
    *out = (struct answer){.ok = true, .seconds = 1e30};
    bench_run(&w->db, "set device = cpu");
    if (digest_text(w, q->sql, digest, sizeof digest, out)) {
        use_side(w, side);
        statement_text("", q->sql, digest, sql, sizeof sql);
        (void)read_answer(w, sql, q->sql, out);
        statement_text("explain (steps) ", q->sql, digest, out->sql, sizeof out->sql);
    }
}

/* One of several connections that have the kernels of all questions compiled, side by side. */
struct warmer {
    struct everyday *w;
    int first;
    pthread_t thread;
};

static void *warm(void *arg) {
    const struct warmer *warmer = arg;
    struct everyday *w = warmer->w;
    wf_connection *conn = NULL;
    bool ready = wf_connect(w->db.db, &conn) == WF_OK &&
                 wf_query(conn, "set device = gpu", NULL) == WF_OK &&
                 wf_query(conn, "set gpu_code = woven", NULL) == WF_OK;
    for (int i = warmer->first; ready && i < QUESTIONS; i += WARMERS) {
        wf_result *result = NULL;
        if (w->answers[i][0].ok && wf_query(conn, w->answers[i][0].sql, &result) == WF_OK) {
            wf_result_close(result);
        }
    }
    wf_disconnect(conn);
    return NULL;
}

static void warm_all(struct everyday *w) {
    struct warmer warmers[WARMERS];
    int started = 0;
    while (started < WARMERS) {
        warmers[started] = (struct warmer){.w = w, .first = started};
        if (pthread_create(&warmers[started].thread, NULL, warm, &warmers[started]) != 0) {
            break; /* kernels are compiled later, then */
        }
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(warmers[i].thread, NULL);
    }
}

/* Again, for the time. Kernels may be compiled in the background: runs before all of them are there do
 * not count. */
static void measure(struct everyday *w, const struct bench_side *side, struct answer *out) {
    use_side(w, side);
    double end = bench_now() + (w->compiles ? COMPILE_SECONDS : 0);
    do {
        out->seconds = 1e30;
        (void)run_steps(w, out->sql, out);
    } while (out->ok && out->interim && bench_now() < end);
    for (int i = 1; i < w->options->runs && out->ok; i++) {
        (void)run_steps(w, out->sql, out);
    }
}

/* The question as it stands, on the card, as a statement that ran before: its steps are queued. */
static void measure_hot(struct everyday *w, const struct question *q, struct answer *out) {
    bench_run(&w->db, "set gpu_result = device");
    for (int i = 0; i < HOT_RUNS && out->ok; i++) {
        wf_result *result = NULL;
        const wf_batch *batch;
        double start = bench_now();
        bool good = wf_query(w->db.conn, q->sql, &result) == WF_OK &&
                    wf_result_next_batch(result, &batch) == WF_OK;
        double seconds = bench_now() - start;
        if (!good) {
            note(out, result ? wf_result_error(result) : wf_connection_error(w->db.conn));
        } else if (i >= HOT_RUNS / 2) {
            out->waits = wf_result_metric(result, "waits");
            out->hot_seconds = i == HOT_RUNS / 2 || seconds < out->hot_seconds ? seconds : out->hot_seconds;
        }
        wf_result_close(result);
    }
    bench_run(&w->db, "reset gpu_result");
}

static void print_answer(const struct everyday *w, const struct question *q,
                         const struct bench_side *side, const struct answer *a, double ratio) {
    if (w->options->json) {
        printf(
            "{\"bench\":\"everyday\",\"kind\":\"%s\",\"question\":\"%s\",\"device\":\"%s\","
            "\"ok\":%s,\"ms\":%.4f,"
            "\"rows\":%lld,\"cpu_gpu\":%.2f,\"hot_ms\":%.4f,\"waits\":%lld,"
            "\"most\":\"%s\",\"host\":\"%s\",\"trouble\":\"%s\"}\n",
            q->kind, q->name, side->name, a->ok ? "true" : "false", a->ok ? a->seconds * 1e3 : 0,
            (long long)a->rows, ratio, a->hot_seconds * 1e3, (long long)a->waits, a->most, a->host, a->trouble);
    } else if (!a->ok) {
        printf(w->options->markdown ? "| %s | %s | %s | | | | | | %s |\n" : "%-7s %-24s %-4s %s\n",
               q->kind, q->name, side->name, a->trouble);
    } else {
        char text[16] = "", hot[24] = "", waits[24] = "";
        bool gpu = side->place == WF_ON_GPU;
        if (ratio > 0) {
            snprintf(text, sizeof text, "%.1f", ratio);
        }
        if (gpu) {
            snprintf(hot, sizeof hot, "%.3f", a->hot_seconds * 1e3);
            snprintf(waits, sizeof waits, "%lld", (long long)a->waits);
        }
        printf(w->options->markdown ? "| %s | %s | %s | %lld | %.3f | %s | %s | %s | %s |\n"
                                    : "%-7s %-24s %-4s %10lld %10.3f %8s %10s %5s  %s\n",
               q->kind, q->name, side->name, (long long)a->rows, a->seconds * 1e3, text, hot, waits,
               gpu ? a->host : "");
    }
    fflush(stdout);
}

static void compare(struct everyday *w, const struct question *q, const struct answer answers[2],
                    double ratio) {
    if (answers[0].ok && answers[1].ok &&
        (answers[0].sum != answers[1].sum || strcmp(answers[0].digest, answers[1].digest) != 0)) {
        fprintf(stderr, "bench: everyday: %s: the devices differ: %s| %s\n", q->name,
                answers[0].digest, answers[1].digest);
        w->wrong++;
    }
    if (ratio > 0) {
        w->logs += log(ratio);
        w->compared++;
        w->slower += ratio < 1;
        w->on_host += answers[1].host[0] != 0;
    }
}

static void run_question(struct everyday *w, const struct question *q, struct answer answers[2]) {
    for (int s = 0; s < 2; s++) {
        if (w->sides[s].used) {
            if (answers[s].ok) {
                measure(w, &w->sides[s], &answers[s]);
            }
            if (answers[s].ok && w->sides[s].place == WF_ON_GPU) {
                measure_hot(w, q, &answers[s]);
            }
            bool both = s && w->sides[0].used && answers[0].ok && answers[1].ok;
            double ratio = both ? answers[0].seconds / answers[1].seconds : 0;
            print_answer(w, q, &w->sides[s], &answers[s], ratio);
            w->refused += !answers[s].ok;
            if (s && w->sides[0].used) {
                compare(w, q, answers, ratio);
            }
        }
    }
}

static bool wanted(const struct bench_options *options, const struct question *q) {
    bool names_kind = false;
    for (int i = 0; options->only && i < QUESTIONS; i++) {
        names_kind = names_kind || strcmp(options->only, questions[i].kind) == 0;
    }
    return !options->only || (names_kind ? strcmp(options->only, q->kind) == 0
                                         : strstr(q->name, options->only) != NULL);
}

static void print_head(const struct bench_options *options, int64_t rows, double seconds) {
    if (options->markdown) {
        printf("\n%lld rows\n\n| kind | question | device | rows | ms | CPU : GPU | hot ms | waits | on the host "
               "|\n|---|---|---|---|---|---|---|---|---|\n",
               (long long)rows);
    } else if (options->json) {
        printf("{\"bench\":\"everyday\",\"rows\":%lld,\"made_s\":%.2f}\n", (long long)rows,
               seconds);
    } else {
        printf("%lld rows, made in %.1f s\n%-7s %-24s %-4s %10s %10s %8s %10s %5s  %s\n", (long long)rows,
               seconds, "", "question", "", "rows", "ms", "cpu:gpu", "hot ms", "waits", "on the host");
    }
    fflush(stdout);
}

static void print_end(const struct everyday *w) {
    if (w->options->json) {
        printf("{\"bench\":\"everyday\",\"asked\":%d,\"failed\":%d,\"differ\":%d,\"slower\":%d,"
               "\"cpu_gpu\":%.2f}\n",
               w->asked, w->refused, w->wrong, w->slower,
               w->compared ? exp(w->logs / w->compared) : 0.0);
    } else if (!w->compared) {
        printf("\nasked: %d; failed: %d\n", w->asked, w->refused);
    } else {
        printf("\nGPU %.2f times as fast as the CPU (geometric mean of %d questions); slower: %d; "
               "with host steps of %d rows "
               "and more: %d; failed: %d\n",
               exp(w->logs / w->compared), w->compared, w->slower, (int)FEW_ROWS, w->on_host,
               w->refused);
    }
}

int bench_everyday(const struct bench_options *options) {
    static struct answer answers[QUESTIONS][2];
    struct everyday w = {.options = options, .answers = answers};
    struct bench_options with = *options;
    wf_prim *prim = NULL;
    int64_t rows = options->rows ? options->rows : 10000000;
    w.compiles = rows > ROWS_WHOLE;
    if (w.compiles && !option_setting(&options->settings, "gpu_workers")) {
        (void)option_settle(&with.settings, OPTION_GPU_WORKERS, "4"); /* WARMERS */
    }
    bench_open(&w.db, &with);
    if (wf_prim_open(w.db.db, &prim) != WF_OK || !bench_sides_open(prim, options, w.sides)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    wf_prim_close(prim);
    bool any = false;
    for (int i = 0; i < QUESTIONS; i++) {
        any = any || wanted(options, &questions[i]);
    }
    if (!any) {
        fprintf(stderr, "bench: everyday: no kind or question is called %s\n", options->only);
        bench_close(&w.db);
        return 1;
    }
    double start = bench_now();
    everyday_tables(&w.db, rows);
    bench_run(&w.db, w.compiles ? "reset host_rows" : "set host_rows = 0");
    print_head(options, rows, bench_now() - start);
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < QUESTIONS && w.sides[s].used; i++) {
            if (wanted(options, &questions[i])) {
                ask(&w, &questions[i], &w.sides[s], &answers[i][s]);
            }
        }
        if (s == 0 && w.sides[0].used && w.sides[1].used && w.compiles) {
            warm_all(&w);
        }
    }
    for (int i = 0; i < QUESTIONS; i++) {
        if (wanted(options, &questions[i])) {
            run_question(&w, &questions[i], answers[i]);
            w.asked++;
        }
    }
    print_end(&w);
    bench_close(&w.db);
    return w.wrong || w.refused;
}

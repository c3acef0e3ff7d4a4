/* tpch.c: the 22 queries of TPC-H with the validation parameters, each answer checked.
 *
 * The tables come from CALL tpch. A query is run once cold, once to check its answer, then `runs`
 * times hot; a time is from text to the last row read. The power figure is the specification's,
 * 3600 · SF over the geometric mean in seconds, without the refresh functions. A query that fails
 * or answers wrongly is reported and the rest goes on; the exit status tells. The ceiling of a hot
 * run is not one figure here: `explain analyze` prints each step's. */
#include "bench_tpch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1000, BAR_CELLS = 24, TITLE_CELLS = 33 };

struct query_run {
    int number;
    bool ran;
    char trouble[400]; /* an error, or why the answer is wrong */
    enum tpch_verdict verdict;
    int64_t rows;
    double first, best, median; /* seconds */
    char device[40];
};

static void note_error(struct bench_db *db, struct query_run *out) {
    const wf_error *error = wf_connection_error(db->conn);
    snprintf(out->trouble, sizeof out->trouble, "%s: %.350s", error->sqlstate, error->message);
}

/* Runs the query and reads all rows; the seconds it took, below 0 when it failed. */
static double run_once(struct bench_db *db, const char *sql, struct query_run *out) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    double start = bench_now();
    wf_status status = wf_query(db->conn, sql, &result);
    int64_t rows = 0;
    while (status == WF_OK && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        rows += wf_batch_rows(batch);
    }
    double seconds = bench_now() - start;
    if (status != WF_OK) {
        note_error(db, out);
    } else {
        out->rows = rows;
        snprintf(out->device, sizeof out->device, "%s", wf_result_devices(result));
    }
    wf_result_close(result);
    return status == WF_OK ? seconds : -1;
}

static bool check_once(struct bench_db *db, const char *sql, const struct bench_options *options,
                       struct query_run *out) {
    wf_result *result = NULL;
    if (wf_query(db->conn, sql, &result) != WF_OK) {
        note_error(db, out);
        return false;
    }
    out->verdict = tpch_check(result, options->sf, out->number, options->answers, out->trouble,
                              sizeof out->trouble);
    wf_result_close(result);
    return true;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The query as it is run: the fraction of query 11 is 0.0001 over the scale factor. Answer files
 * belong to the text as it stands. */
static const char *query_text(const struct bench_options *options, int number) {
    static char text[4096];
    static const char fraction[] = "0.0001000000";
    const char *from = bench_texts[number - 1].text;
    const char *at = number == 11 && !options->answers ? strstr(from, fraction) : NULL;
    if (!at) {
        return from;
    }
    snprintf(text, sizeof text, "%.*s%.10f%s", (int)(at - from), from,
             0.0001 / strtod(options->sf, NULL), at + strlen(fraction));
    return text;
}

static void run_query(struct bench_db *db, const struct bench_options *options,
                      struct query_run *out) {
    static double times[RUNS_MAX];
    const char *sql = query_text(options, out->number);
    int runs = options->runs < RUNS_MAX ? options->runs : RUNS_MAX;
    out->first = run_once(db, sql, out);
    if (out->first < 0 || !check_once(db, sql, options, out)) {
        return;
    }
    for (int i = 0; i < runs; i++) {
        times[i] = run_once(db, sql, out);
        if (times[i] < 0) {
            return;
        }
    }
    qsort(times, (size_t)runs, sizeof *times, compare_times);
    out->best = times[0];
    out->median = runs % 2 ? times[runs / 2] : (times[runs / 2 - 1] + times[runs / 2]) / 2;
    out->ran = true;
}

/* "1,3,5-9" names queries; NULL all of them. */
static bool listed(const char *list, int number) {
    if (!list) {
        return true;
    }
    while (*list) {
        char *end;
        long from = strtol(list, &end, 10), to = from;
        if (*end == '-') {
            to = strtol(end + 1, &end, 10);
        }
        if (number >= from && number <= to) {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        list = end + 1;
    }
    return false;
}

struct outcome {
    struct query_run runs[TPCH_QUERIES];
    int count;
    int ran, wrong, failed, unknown;
    double load_seconds;
    double mean; /* geometric, of the medians */
    double slowest;
};

static void sum_up(struct outcome *out) {
    double logs = 0;
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        out->failed += !run->ran;
        out->wrong += run->ran && run->verdict == TPCH_WRONG;
        out->unknown += run->ran && run->verdict == TPCH_UNKNOWN;
        if (run->ran) {
            out->ran++;
            logs += log(run->median);
            out->slowest = run->median > out->slowest ? run->median : out->slowest;
        }
    }
    out->mean = out->ran ? exp(logs / out->ran) : 0;
}

static double power_of(const struct outcome *out, const struct bench_options *options) {
    return out->ran == TPCH_QUERIES ? 3600 * strtod(options->sf, NULL) / out->mean : 0;
}

static void print_bar(double share) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int cells = (int)(share * BAR_CELLS * 8 + 0.5);
    for (int i = 0; i < cells / 8; i++) {
        fputs("█", stdout);
    }
    fputs(eighths[cells % 8], stdout);
}

static const char *verdict_text(const struct query_run *run) {
    return run->verdict == TPCH_RIGHT ? "right" : run->verdict == TPCH_WRONG ? "WRONG" : "unknown";
}

/* A query's text begins with its title, in a comment, up to a semicolon. */
static void print_title(int number) {
    const char *text = bench_texts[number - 1].text + strlen("-- ");
    printf("%2d  %-*.*s ", number, TITLE_CELLS, (int)strcspn(text, ";\n"), text);
}

static void print_table(const struct outcome *out, const struct bench_options *options) {
    printf("%2s  %-*s %6s %10s %10s %10s  %-7s\n", "", TITLE_CELLS, "query", "rows", "first ms",
           "best ms", "median ms", "answer");
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        print_title(run->number);
        if (!run->ran) {
            printf("failed: %s\n", run->trouble);
            continue;
        }
        printf("%6lld %10.2f %10.2f %10.2f  %-7s ", (long long)run->rows, run->first * 1e3,
               run->best * 1e3, run->median * 1e3, verdict_text(run));
        print_bar(run->median / out->slowest);
        printf("%s%s\n", run->trouble[0] ? " " : "", run->trouble);
    }
    printf("\ngeometric mean of the medians: %.2f ms over %d quer%s", out->mean * 1e3, out->ran,
           out->ran == 1 ? "y" : "ies");
    if (out->ran == TPCH_QUERIES) {
        printf("; power (no refresh functions) at SF %s: %.0f", options->sf,
               power_of(out, options));
    }
    printf("\n%d right, %d wrong, %d not checked, %d failed\n",
           out->ran - out->wrong - out->unknown, out->wrong, out->unknown, out->failed);
}

static void print_json_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

static void print_json(const struct outcome *out, const struct bench_options *options) {
    const char *threads = option_setting(&options->settings, "threads");
    printf("{\"bench\": \"tpch\", \"sf\": %s, \"threads\": %s, \"device\": \"%s\", \"runs\": %d, "
           "\"load_ms\": %.3f,\n"
           " \"queries\": [",
           options->sf, threads ? threads : "0", bench_device(options), options->runs,
           out->load_seconds * 1e3);
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        printf("%s\n  {\"query\": %d, ", i ? "," : "", run->number);
        if (run->ran) {
            printf("\"rows\": %lld, \"first_ms\": %.3f, \"best_ms\": %.3f, \"median_ms\": %.3f, "
                   "\"ran_on\": \"%s\", "
                   "\"answer\": \"%s\"",
                   (long long)run->rows, run->first * 1e3, run->best * 1e3, run->median * 1e3,
                   run->device, run->verdict == TPCH_WRONG ? "wrong" : verdict_text(run));
        }
        if (run->trouble[0]) {
            printf("%s\"error\": ", run->ran ? ", " : "");
            print_json_text(run->trouble);
        }
        printf("}");
    }
    printf("],\n \"geometric_mean_ms\": %.3f, \"power\": %.1f, \"wrong\": %d, \"failed\": %d}\n",
           out->mean * 1e3, power_of(out, options), out->wrong, out->failed);
}

static void load(struct bench_db *db, const struct bench_options *options, struct outcome *out) {
    char sql[200];
    snprintf(sql, sizeof sql, "call tpch(sf => %s, columns => 'queries', text => '%s')",
             options->sf, options->text ? options->text : "dbgen");
    double start = bench_now();
    bench_run(db, sql);
    out->load_seconds = bench_now() - start;
    if (!options->json) {
        printf("TPC-H at scale factor %s, tables made in %.2f s\n\n", options->sf,
               out->load_seconds);
    }
}

int bench_tpch(const struct bench_options *options) {
    static struct outcome out;
    struct bench_db db;
    bench_open(&db, options);
    if (wf_set(db.conn, "device", bench_device(options)) != WF_OK) {
        fprintf(stderr, "bench: %s\n", wf_connection_error(db.conn)->message);
        bench_close(&db);
        return 2;
    }
    load(&db, options, &out);
    bench_run(&db, "set statement_timeout = 300000"); /* a query that goes astray ends */
    for (int number = 1; number <= bench_text_count; number++) {
        if (listed(options->queries, number)) {
            struct query_run *run = &out.runs[out.count++];
            run->number = number;
            run_query(&db, options, run);
        }
    }
    sum_up(&out);
    if (options->json) {
        print_json(&out, options);
    } else {
        print_table(&out, options);
    }
    bench_close(&db);
    return out.wrong || out.failed ? 1 : 0;
}

/* suite.c: runs the queries of a benchmark, TPC-H or SSB, each answer checked.
 *
 * The tables come from CALL tpch or CALL ssb. A query is run once cold, once to check its answer,
 * then `runs` times hot; a time is from text to the last row read. The power figure is the specification's,
 * 3600 · SF over the geometric mean in seconds, without the refresh functions. A query that fails
 * or answers wrongly is reported and the rest goes on; the exit status tells. One more run tells what
 * it did (suite_profile.c): kernels, bytes, transfers, memory, and the floor, which is the sum of
 * its steps'; `explain analyze` prints each step's. */
#include "bench_suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1000, BAR_CELLS = 24, TITLE_CELLS = 33 };

struct query_run {
    int query; /* from 0 */
    bool ran;
    char trouble[400]; /* an error, or why the answer is wrong */
    enum verdict verdict;
    int64_t rows;
    double first, best, median; /* seconds */
    double waits;               /* of the host for the card, in the last run; a profile waits for every step */
    char device[40];
    struct query_profile profile;
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
        out->waits = (double)wf_result_metric(result, "waits");
        snprintf(out->device, sizeof out->device, "%s", wf_result_devices(result));
    }
    wf_result_close(result);
    return status == WF_OK ? seconds : -1;
}

static bool check_once(struct bench_db *db, const char *sql, const struct suite_check *check,
                       struct query_run *out) {
    wf_result *result = NULL;
    if (wf_query(db->conn, sql, &result) != WF_OK) {
        note_error(db, out);
        return false;
    }
    out->verdict = suite_check(result, check, out->trouble, sizeof out->trouble);
    wf_result_close(result);
    return true;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool in_logiql(const struct bench_options *options) {
    return options->language && strcmp(options->language, "logiql") == 0;
}

/* Clauses as a query of SQL. Where the tuples are numbered, that is their order, and no answer. */
static void print_logic(char *to, size_t cap, const char *clauses) {
    bool numbered = strstr(clauses, "\n_(i, ") != NULL;
    snprintf(to, cap, "select %s from logiql($lq$%s$lq$) order by %s",
             numbered ? "* exclude (i)" : "*", clauses, numbered ? "i" : "all");
}

/* The query as it is run: one of TPC-H has a fraction of 0.0001 over the scale factor. Answer files
 * belong to the text as it stands. */
static const char *query_text(const struct suite *suite, const struct bench_options *options,
                              int query) {
    static char text[8192], logic[8192];
    static const char fraction[] = "0.0001000000";
    const char *from = bench_texts[suite->first_text + query].text;
    if (in_logiql(options)) {
        print_logic(logic, sizeof logic, bench_texts[suite->first_logic + query].text);
        from = logic;
    }
    const char *at =
        query == suite->fraction_query && !options->answers ? strstr(from, fraction) : NULL;
    if (!at) {
        return from;
    }
    snprintf(text, sizeof text, "%.*s%.10f%s", (int)(at - from), from,
             0.0001 / strtod(options->sf, NULL), at + strlen(fraction));
    return text;
}

/* A query's place in lists: "7" is 70, "3.2" is 32. `whole`: what a name without a point stands for
 * when it ends a range. */
static long place_of(const char *text, char **end, int whole) {
    long place = strtol(text, end, 10) * 10;
    return **end == '.' ? place + strtol(*end + 1, end, 10) : place + whole;
}

/* "1,3,5-9" names queries, "2" all of 2.1 to 2.3; NULL all of them. */
static bool listed(const char *list, const char *label) {
    char *end;
    long place = place_of(label, &end, 0);
    while (list && *list) {
        const char *first = list;
        long from = place_of(first, &end, 0);
        long to = place_of(*end == '-' ? end + 1 : first, &end, 9);
        if (place >= from && place <= to) {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        list = end + 1;
    }
    return !list;
}

static void run_query(struct bench_db *db, const struct suite *suite,
                      const struct bench_options *options, struct suite_operators *operators,
                      struct query_run *out) {
    static double times[RUNS_MAX];
    const char *sql = query_text(suite, options, out->query);
    bool other_text = options->text && strcmp(options->text, "dbgen") != 0 &&
                      listed(suite->text_queries, suite->labels[out->query]);
    struct suite_check check = {suite, out->query, other_text ? NULL : options->sf,
                                options->answers};
    int runs = options->runs < RUNS_MAX ? options->runs : RUNS_MAX;
    out->first = run_once(db, sql, out);
    if (out->first < 0 || !check_once(db, sql, &check, out)) {
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
    out->ran = suite_profile(db, sql, &out->profile, operators);
    out->profile.waits = out->waits;
    if (!out->ran) {
        note_error(db, out);
    }
}

struct outcome {
    const struct suite *suite;
    struct query_run runs[SUITE_QUERIES];
    int count;
    int ran, wrong, failed, unknown;
    struct suite_operators operators;
    double load_seconds;
    double mean; /* geometric, of the medians */
    double slowest;
};

static void sum_up(struct outcome *out) {
    double logs = 0;
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        out->failed += !run->ran;
        out->wrong += run->ran && run->verdict == VERDICT_WRONG;
        out->unknown += run->ran && run->verdict == VERDICT_UNKNOWN;
        if (run->ran) {
            out->ran++;
            logs += log(run->median);
            out->slowest = run->median > out->slowest ? run->median : out->slowest;
        }
    }
    out->mean = out->ran ? exp(logs / out->ran) : 0;
}

static double power_of(const struct outcome *out, const struct bench_options *options) {
    return out->suite->power && out->ran == out->suite->count
               ? 3600 * strtod(options->sf, NULL) / out->mean
               : 0;
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
    return run->verdict == VERDICT_RIGHT   ? "right"
           : run->verdict == VERDICT_WRONG ? "WRONG"
                                           : "unknown";
}

static void print_title(const struct suite *suite, int query) {
    const char *text = bench_texts[suite->first_text + query].text + strlen("-- ");
    printf("%3s  %-*.*s ", suite->labels[query], TITLE_CELLS, (int)strcspn(text, ";\n"), text);
}

static void print_profiles(const struct outcome *out) {
    printf("\n%3s  %5s %8s %6s %9s %10s %9s %9s %9s %9s %9s %9s\n", "", "steps", "kernels", "waits",
           "kernel ms", "floor ms", "of floor", "MB read", "MB made", "MB sent", "MB back", "peak MB");
    for (int i = 0; i < out->count; i++) {
        const struct query_profile *p = &out->runs[i].profile;
        if (out->runs[i].ran) {
            printf("%3s  %5d %8.0f %6.0f %9.3f %10.3f %8.0f%% %9.1f %9.1f %9.1f %9.1f %9.1f\n",
                   out->suite->labels[out->runs[i].query], p->steps, p->launches,
                   p->waits, p->kernel_seconds * 1e3, p->floor_seconds * 1e3,
                   p->seconds > 0 ? 100 * p->floor_seconds / p->seconds : 0, p->bytes_read / 1e6,
                   p->bytes_written / 1e6, p->bytes_sent / 1e6, p->bytes_fetched / 1e6,
                   p->peak / 1e6);
        }
    }
}

static void print_operators(const struct suite_operators *operators) {
    printf("\n%-16s %6s %10s %7s\n", "operator", "times", "ms", "share");
    for (int i = 0; i < operators->count; i++) {
        const struct operator_share *share = &operators->list[i];
        double part = operators->seconds > 0 ? share->seconds / operators->seconds : 0;
        printf("%-16s %6d %10.3f %6.1f%%  ", share->name, share->count, share->seconds * 1e3,
               part * 100);
        print_bar(part);
        putchar('\n');
    }
}

static void print_table(const struct outcome *out, const struct bench_options *options) {
    printf("%3s  %-*s %6s %10s %10s %10s  %-7s\n", "", TITLE_CELLS, "query", "rows", "first ms",
           "best ms", "median ms", "answer");
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        print_title(out->suite, run->query);
        if (!run->ran) {
            printf("failed: %s\n", run->trouble);
            continue;
        }
        printf("%6lld %10.2f %10.2f %10.2f  %-7s ", (long long)run->rows, run->first * 1e3,
               run->best * 1e3, run->median * 1e3, verdict_text(run));
        print_bar(run->median / out->slowest);
        printf("%s%s\n", run->trouble[0] ? " " : "", run->trouble);
    }
    print_profiles(out);
    print_operators(&out->operators);
    printf("\ngeometric mean of the medians: %.2f ms over %d quer%s", out->mean * 1e3, out->ran,
           out->ran == 1 ? "y" : "ies");
    if (power_of(out, options) > 0) {
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

static void print_json_profile(const struct query_profile *p) {
    printf(", \"steps\": %d, \"kernels\": %.0f, \"waits\": %.0f, \"steps_ms\": %.3f, \"kernel_ms\": %.3f, "
           "\"floor_ms\": %.3f, \"bytes_read\": %.0f, \"bytes_written\": %.0f, "
           "\"bytes_sent\": %.0f, \"bytes_fetched\": %.0f, \"device_peak\": %.0f",
           p->steps, p->launches, p->waits, p->seconds * 1e3, p->kernel_seconds * 1e3, p->floor_seconds * 1e3,
           p->bytes_read, p->bytes_written, p->bytes_sent, p->bytes_fetched, p->peak);
}

static void print_json(const struct outcome *out, const struct bench_options *options) {
    const char *threads = option_setting(&options->settings, "threads");
    printf("{\"bench\": \"%s\", \"sf\": %s, \"threads\": %s, \"device\": \"%s\", \"runs\": %d, "
           "\"load_ms\": %.3f,\n"
           " \"queries\": [",
           out->suite->name, options->sf, threads ? threads : "0", bench_device(options),
           options->runs, out->load_seconds * 1e3);
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        printf("%s\n  {\"query\": %s, ", i ? "," : "", out->suite->labels[run->query]);
        if (run->ran) {
            printf("\"rows\": %lld, \"first_ms\": %.3f, \"best_ms\": %.3f, \"median_ms\": %.3f, "
                   "\"ran_on\": \"%s\", "
                   "\"answer\": \"%s\"",
                   (long long)run->rows, run->first * 1e3, run->best * 1e3, run->median * 1e3,
                   run->device, run->verdict == VERDICT_WRONG ? "wrong" : verdict_text(run));
        }
        if (run->ran) {
            print_json_profile(&run->profile);
        }
        if (run->trouble[0]) {
            printf("%s\"error\": ", run->ran ? ", " : "");
            print_json_text(run->trouble);
        }
        printf("}");
    }
    printf("],\n \"operators\": [");
    for (int i = 0; i < out->operators.count; i++) {
        const struct operator_share *share = &out->operators.list[i];
        printf("%s\n  {\"name\": \"%s\", \"times\": %d, \"ms\": %.3f}", i ? "," : "", share->name,
               share->count, share->seconds * 1e3);
    }
    printf("],\n \"geometric_mean_ms\": %.3f, \"power\": %.1f, \"wrong\": %d, \"failed\": %d}\n",
           out->mean * 1e3, power_of(out, options), out->wrong, out->failed);
}

/* Times and floors of the queries, and below them the operators' shares. */
static bool draw(const struct outcome *out, const struct bench_options *options) {
    static struct plot_bars panels[2];
    char title[100];
    snprintf(title, sizeof title, "%s at scale factor %s", out->suite->title, options->sf);
    panels[0] = (struct plot_bars){.title = title,
                                   .y_label = "ms, median",
                                   .series = {"query", "floor of its steps"},
                                   .series_count = 2};
    panels[1] = (struct plot_bars){.title = "Operators of all queries",
                                   .y_label = "% of the time, % of the operators",
                                   .series = {"time", "occurrence"},
                                   .series_count = 2};
    for (int i = 0; i < out->count; i++) {
        const struct query_run *run = &out->runs[i];
        if (run->ran) {
            double ms[] = {run->median * 1e3, run->profile.floor_seconds * 1e3};
            plot_bars_add(&panels[0], out->suite->labels[run->query], ms);
        }
    }
    double times = 0;
    for (int i = 0; i < out->operators.count; i++) {
        times += out->operators.list[i].count;
    }
    for (int i = 0; i < out->operators.count; i++) {
        const struct operator_share *share = &out->operators.list[i];
        double parts[] = {100 * share->seconds / (out->operators.seconds + 1e-12),
                          100 * share->count / times};
        plot_bars_add(&panels[1], share->name, parts);
    }
    return plot_bars_write(options->plot, panels, 2);
}

static void load(struct bench_db *db, const struct bench_options *options, struct outcome *out) {
    const struct suite *suite = out->suite;
    const char *columns = options->columns ? options->columns : "queries";
    char text[40] = "", sql[BENCH_LIST_BYTES + 200];
    if (suite->more) {
        snprintf(text, sizeof text, suite->more, options->text ? options->text : "dbgen");
    }
    snprintf(sql, sizeof sql, "call %s(sf => %s, columns => '%s'%s)", suite->name, options->sf,
             columns, text);
    double start = bench_now();
    bench_run(db, sql);
    out->load_seconds = bench_now() - start;
    if (!options->json) {
        printf("%s at scale factor %s, tables made in %.2f s\n\n", suite->title, options->sf,
               out->load_seconds);
    }
}

int suite_run(const struct suite *suite, const struct bench_options *options) {
    static struct outcome out;
    struct bench_db db;
    bench_open(&db, options);
    if (wf_set(db.conn, "device", bench_device(options)) != WF_OK) {
        fprintf(stderr, "bench: %s\n", wf_connection_error(db.conn)->message);
        bench_close(&db);
        return 2;
    }
    out.suite = suite;
    load(&db, options, &out);
    bench_run(&db, "set statement_timeout = 300000"); /* a query that goes astray ends */
    for (int query = 0; query < suite->count; query++) {
        if (listed(options->queries, suite->labels[query])) {
            struct query_run *run = &out.runs[out.count++];
            run->query = query;
            run_query(&db, suite, options, &out.operators, run);
        }
    }
    sum_up(&out);
    suite_operators_sort(&out.operators);
    if (options->json) {
        print_json(&out, options);
    } else {
        print_table(&out, options);
    }
    bench_close(&db);
    bool drawn = !options->plot || draw(&out, options);
    return out.wrong || out.failed || !drawn ? 1 : 0;
}

/* bench.c: the list of experiments and what they share: opening, measuring, ceilings. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint32_t bench_shuffled(uint32_t i, uint32_t n, int bits) {
    uint64_t mask = (1ULL << bits) - 1;
    uint64_t x = i;
    do {
        for (int round = 0; round < 3; round++) {
            x = x * 0x9e3779b97f4a7c15ULL & mask;
            x ^= x >> (bits / 2 + 1);
        }
    } while (x >= n);
    return (uint32_t)x;
}

static void open_with(struct bench_db *out, const struct option_settings *settings) {
    wf_error error;
    if (wf_open(NULL, settings->list, &out->db, &error) != WF_OK) {
        fprintf(stderr, "bench: cannot open a database: %s\n", error.message);
        exit(2);
    }
    if (wf_connect(out->db, &out->conn) != WF_OK) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
}

void bench_open(struct bench_db *out, const struct bench_options *options) {
    struct option_settings settings = options->settings;
    (void)option_settle(&settings, OPTION_DEVICE, "auto");
    open_with(out, &settings);
}

void bench_open_threads(struct bench_db *out, const char *threads, const struct bench_options *options) {
    struct option_settings settings = options->settings;
    (void)option_settle(&settings, OPTION_DEVICE, "auto");
    (void)option_settle(&settings, OPTION_THREADS, threads);
    open_with(out, &settings);
}

const char *bench_device(const struct bench_options *options) {
    const char *device = option_setting(&options->settings, "device");
    return device ? device : "auto";
}

void bench_close(struct bench_db *db) {
    wf_disconnect(db->conn);
    wf_close(db->db);
}

void bench_run(struct bench_db *db, const char *sql) {
    if (wf_query(db->conn, sql, NULL) != WF_OK) {
        char text[1200];
        wf_error_text(wf_connection_error(db->conn), sql, text, sizeof text);
        fprintf(stderr, "bench: %s\n", text);
        exit(1);
    }
}

size_t bench_fill(const char *text, const char *const *values, char *out, size_t cap) {
    size_t used = 0;
    for (const char *p = text; *p; p++) {
        bool value = p[0] == '{' && p[1] >= '1' && p[1] <= '9' && p[2] == '}';
        const char *from = value ? values[p[1] - '1'] : p;
        size_t length = value ? strlen(from) : 1;
        if (used + length >= cap) {
            break;
        }
        memcpy(out + used, from, length);
        used += length;
        p += value ? 2 : 0;
    }
    out[used] = 0;
    return used;
}

static void record(struct bench_time *out, wf_result *result, double seconds) {
    out->seconds = seconds;
    out->rows = wf_result_row_count(result);
    out->device_seconds = (double)wf_result_metric(result, "device_ns") * 1e-9;
    out->bytes_moved = wf_result_metric(result, "bytes_moved");
    out->launches = wf_result_metric(result, "launches");
    snprintf(out->device, sizeof out->device, "%s", wf_result_devices(result));
}

/* Rows are computed as they are read: reading them is part of the time. */
static bool read_all(wf_result *result, struct bench_time *out) {
    const wf_batch *batch;
    wf_status status;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
    }
    if (status) {
        snprintf(out->error, sizeof out->error, "%s", wf_result_error(result)->message);
    }
    return status == WF_OK;
}

void bench_measure(struct bench_db *db, const char *sql, int runs, struct bench_time *out) {
    memset(out, 0, sizeof *out);
    double best_device = 1e30;
    for (int i = 0; i <= runs; i++) {
        wf_result *result = NULL;
        double start = bench_now();
        if (wf_query(db->conn, sql, &result) != WF_OK) {
            snprintf(out->error, sizeof out->error, "%s", wf_connection_error(db->conn)->message);
            return;
        }
        if (!read_all(result, out)) {
            wf_result_close(result);
            return;
        }
        double seconds = bench_now() - start;
        double device = (double)wf_result_metric(result, "device_ns") * 1e-9;
        if (i > 0 && device > 0 && device < best_device) {
            best_device = device;
        }
        if (i == 1 || (i > 1 && seconds < out->seconds)) {
            record(out, result, seconds);
        }
        wf_result_close(result);
    }
    out->device_seconds = best_device < 1e30 ? best_device : 0;
    out->ok = true;
}

/* The number after `key` in the devices report. */
static double report_number(const char *report, const char *key) {
    const char *at = strstr(report, key);
    return at ? strtod(at + strlen(key), NULL) : 0;
}

void bench_ceilings(struct bench_db *db, struct bench_ceiling *out) {
    char *report = wf_devices(db->db);
    memset(out, 0, sizeof *out);
    if (report) {
        out->host_read = report_number(report, "measured read bandwidth: ");
        out->gpu_read = report_number(report, "device read: ");
        out->gpu_copy = report_number(report, "device copy: ");
        out->bus_in = report_number(report, "host to device: ");
        out->mapped_read = report_number(report, "mapped read: ");
        out->bus_out = report_number(report, "device to host: ");
        wf_free(report);
    }
}

/* 500k, 8M, 1G; -1 when it is no such number. */
static int64_t parse_rows(const char *text) {
    char *end;
    double value = strtod(text, &end);
    double unit = strchr("kK", *end) ? 1e3 : strchr("mM", *end) ? 1e6 : 1e9;
    if (end == text || value < 0 || value > 1e15) {
        return -1;
    }
    if (!*end) {
        return (int64_t)value;
    }
    return strchr("kKmMgG", *end) && !end[1] ? (int64_t)(value * unit) : -1;
}

#define TAKES(id) (1ULL << OPTION_##id)
#define ON_QUERIES (TAKES(SF) | TAKES(COLUMNS) | TAKES(QUERIES) | TAKES(ANSWERS) | TAKES(PLOT))
#define ON_ARRAYS (TAKES(ROWS) | TAKES(MARKDOWN) | TAKES(NO_GPU))

static const unsigned long long all_take = TAKES(DEVICE) | TAKES(THREADS) | TAKES(MEMORY) |
                                           TAKES(GPU_MEMORY) | TAKES(GPU_WORKERS) | TAKES(GPU_CODE) |
                                           TAKES(RUNS) | TAKES(JSON) | TAKES(HELP) | TAKES(VERSION);
static const struct experiment {
    const char *name;
    int (*run)(const struct bench_options *options);
    unsigned long long takes; /* beyond what all take */
    bool sides;               /* -d says which devices it runs on, one after the other */
    const char *text;
} experiments[] = {
    {"virginian", bench_virginian,
     TAKES(ROWS) | TAKES(GROWTH) | TAKES(NO_GPU) | TAKES(ONLY) | TAKES(ENCODING), true,
     "ten filter queries on CPU and GPU, every placement"},
    {"tpch", bench_tpch, ON_QUERIES | TAKES(TEXT) | TAKES(LANGUAGE), false, "the 22 queries of TPC-H, answers checked"},
    {"ssb", bench_ssb, ON_QUERIES, false, "the 13 queries of the Star Schema Benchmark, answers checked"},
    {"prim", bench_prim, ON_ARRAYS | TAKES(ONLY) | TAKES(PLOT), true,
     "primitives on plain arrays against a copy of the same bytes, and against CUB"},
    {"ops", bench_ops, ON_ARRAYS | TAKES(ONLY) | TAKES(PLOT), true,
     "relational algebra on packed tuples against a copy of the same bytes"},
    {"join", bench_join, ON_ARRAYS | TAKES(ONLY) | TAKES(PLOT), true,
     "joins of plain arrays: every algorithm over sizes, selectivity, duplicates, bands, payloads, skew"},
    {"strings", bench_strings, ON_ARRAYS, true, "sorts of texts by their average length"},
    {"weave", bench_weave, ON_ARRAYS | TAKES(ONLY) | TAKES(PLOT), true,
     "five patterns of operators, fused into one kernel and one by one; a sweep of the selection ratio"},
    {"everyday", bench_everyday, ON_ARRAYS | TAKES(ONLY), true,
     "group-bys and joins of the db-benchmark, windows, sorts, text, time: answers left where they are made"},
    {"datalog", bench_datalog, ON_ARRAYS | TAKES(ONLY) | TAKES(GRAPH), true,
     "recursive programs over graphs: closure, same generation, components, distances, aliases, "
     "points-to; answers checked"},
    {"graph", bench_graph, ON_ARRAYS | TAKES(ONLY) | TAKES(GRAPH) | TAKES(LANGUAGE) | TAKES(PLOT), true,
     "triangles, cliques, diamonds, cycles and paths of graphs, counted and listed: joins of pairs and multiway "
     "joins, budgets of memory, workers; answers checked"},
    {"papers", bench_papers, TAKES(ROWS) | TAKES(NO_GPU) | TAKES(ONLY), true,
     "tables and figures of the papers behind prim, ops, join and strings, as Markdown; "
     "--only table3, table4, fig11 to fig15, fig9 or stages"},
};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

static void print_experiments(FILE *out) {
    fprintf(out, "Usage: warpfox bench NAME [OPTIONS]\n\nExperiments, and the options of their own:\n");
    for (int i = 0; i < EXPERIMENTS; i++) {
        fprintf(out, "  %-12s %s\n  %-12s", experiments[i].name, experiments[i].text, "");
        for (int id = 0; id < OPTION_COUNT; id++) {
            if (experiments[i].takes >> id & 1) {
                fprintf(out, " %s", option_name((enum option_id)id));
            }
        }
        fputc('\n', out);
    }
}

static int print_help(void) {
    print_experiments(stdout);
    printf("\nOptions:\n");
    option_print_help(option_ids(PART_BENCH));
    printf("\nAll but tpch and ssb run on one device after the other: there -d is cpu, gpu or auto, which is both.\n");
    return 0;
}

/* -1 to go on, else the exit status. */
static int take(struct bench_options *options, enum option_id id, const char *value) {
    const struct {
        enum option_id id;
        const char **to;
    } texts[] = {
        {OPTION_ONLY, &options->only},       {OPTION_ENCODING, &options->encoding}, {OPTION_SF, &options->sf},
        {OPTION_QUERIES, &options->queries}, {OPTION_ANSWERS, &options->answers},   {OPTION_TEXT, &options->text},
        {OPTION_PLOT, &options->plot},       {OPTION_COLUMNS, &options->columns},
        {OPTION_LANGUAGE, &options->language}, {OPTION_GRAPH, &options->graph},
    };
    const struct {
        enum option_id id;
        bool *to;
    } flags[] = {
        {OPTION_JSON, &options->json},
        {OPTION_MARKDOWN, &options->markdown},
        {OPTION_GROWTH, &options->growth},
        {OPTION_NO_GPU, &options->no_gpu},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i].to = texts[i].id == id ? value : *texts[i].to;
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        *flags[i].to = *flags[i].to || flags[i].id == id;
    }
    switch (id) {
    case OPTION_ROWS:
        options->rows = parse_rows(value);
        return -1;
    case OPTION_RUNS:
        options->runs = strspn(value, "0123456789") == strlen(value) ? atoi(value) : 0;
        return -1;
    case OPTION_HELP:
        return print_help();
    case OPTION_VERSION:
        printf("warpfox %s\n", wf_version());
        return 0;
    default:
        (void)option_settle(&options->settings, id, value);
        return -1;
    }
}

static bool one_of(const char *value, const char *a, const char *b) {
    return !value || strcmp(value, a) == 0 || strcmp(value, b) == 0;
}

/* A list of names, at most as long as a statement here has room for. */
static bool columns_sound(const char *columns) {
    return !columns || (!strchr(columns, '\'') && strlen(columns) <= BENCH_LIST_BYTES);
}

/* What becomes part of a statement must be what it claims to be. */
static bool options_sound(const struct bench_options *options) {
    char *end;
    double sf = strtod(options->sf, &end);
    return options->rows >= 0 && options->runs > 0 && sf > 0 && !*end &&
           options->sf[strspn(options->sf, "0123456789.")] == 0 && columns_sound(options->columns) &&
           one_of(options->text, "dbgen", "duckdb") &&
           one_of(options->language, "sql", "logiql") && one_of(options->encoding, "plain", "narrow");
}

/* Runs an experiment that takes all that was given (a set of options); else the exit status. */
static int run_experiment(const struct experiment *experiment, const struct bench_options *options,
                          unsigned long long given) {
    unsigned long long foreign = given & ~(all_take | experiment->takes);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (foreign >> id & 1) {
            char format[100];
            snprintf(format, sizeof format, "%s takes no \"%%s\"", experiment->name);
            return option_complain(PART_BENCH, format, option_name((enum option_id)id));
        }
    }
    const char *device = bench_device(options);
    if (experiment->sides && strcmp(device, "auto") != 0 && !one_of(device, "cpu", "gpu")) {
        return option_complain(PART_BENCH, "no device \"%s\" here: cpu, gpu or auto", device);
    }
    return experiment->run(options);
}

int bench_main(int argc, char **argv) {
    struct bench_options options = {.runs = 5, .sf = "1"};
    struct option_reader reader = {.argc = argc, .argv = argv, .at = 1, .part = PART_BENCH};
    const char *name = NULL, *value;
    unsigned long long given = 0;
    enum option_id id;
    while ((id = option_next(&reader, &value)) != OPTION_END) {
        int status = -1;
        if (id == OPTION_MISTAKE) {
            status = 2;
        } else if (id != OPTION_WORD) {
            given |= 1ULL << id;
            status = take(&options, id, value);
        } else if (name) {
            status = option_complain(PART_BENCH, "one experiment at a time: \"%s\"", value);
        } else {
            name = value;
        }
        if (status >= 0) {
            return status;
        }
    }
    if (!name) {
        fprintf(stderr, "bench: name an experiment\n");
        print_experiments(stderr);
        return 2;
    }
    if (!options_sound(&options)) {
        return option_complain(PART_BENCH, "%s", "numbers must be positive, --text dbgen or duckdb, --columns names, "
                                                 "--language sql or logiql, "
                                                 "--encoding plain or narrow");
    }
    for (int i = 0; i < EXPERIMENTS; i++) {
        if (strcmp(experiments[i].name, name) == 0) {
            return run_experiment(&experiments[i], &options, given);
        }
    }
    fprintf(stderr, "bench: no experiment \"%s\"\n", name);
    print_experiments(stderr);
    return 2;
}

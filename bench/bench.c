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

void bench_open(struct bench_db *out, int threads, const struct bench_options *options) {
    wf_error error;
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    wf_option list[3] = {{"threads", count}};
    if (options->memory) {
        list[1] = (wf_option){"memory", options->memory};
    }
    if (wf_open(NULL, list, &out->db, &error) != WF_OK ||
        wf_connect(out->db, &out->conn) != WF_OK) {
        fprintf(stderr, "bench: cannot open a database: %s\n", error.message);
        exit(1);
    }
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

static int64_t parse_rows(const char *text) {
    char *end;
    double value = strtod(text, &end);
    switch (*end) {
    case 'k':
    case 'K':
        return (int64_t)(value * 1e3);
    case 'm':
    case 'M':
        return (int64_t)(value * 1e6);
    case 'g':
    case 'G':
        return (int64_t)(value * 1e9);
    default:
        return (int64_t)value;
    }
}

static const struct {
    const char *name;
    int (*run)(const struct bench_options *options);
    const char *text;
} experiments[] = {
    {"virginian", bench_virginian,
     "ten filter queries on CPU and GPU, every placement "
     "(--rows N --growth --no-gpu --only NAME --encoding plain|narrow --memory SIZE)"},
    {"tpch", bench_tpch,
     "the 22 queries of TPC-H, answers checked (--sf X --device D --threads N --queries 1,3,5-9 "
     "--memory SIZE "
     "--answers DIR --text dbgen|duckdb)"},
    {"prim", bench_prim,
     "primitives on plain arrays against a copy of the same bytes, and against CUB "
     "(--rows N --device cpu|gpu|both --only NAME --threads N --plot FILE.svg)"},
    {"ops", bench_ops,
     "relational algebra on packed tuples against a copy of the same bytes "
     "(--rows N --device cpu|gpu|both --only NAME --threads N --plot FILE.svg)"},
    {"join", bench_join,
     "joins of plain arrays: every algorithm over sizes, selectivity, duplicates, bands, payloads "
     "and "
     "skew (--rows N --device cpu|gpu|both --only NAME --threads N --plot FILE.svg)"},
    {"strings", bench_strings,
     "sorts of texts by their average length (--rows N --device cpu|gpu|both --threads N)"},
    {"papers", bench_papers,
     "tables and figures of the papers behind prim, ops, join and strings, as Markdown "
     "(--only table3|table4|fig11|fig12|fig13|fig14|fig15|fig9|stages --device cpu|gpu|both)"},
};

static int usage(const char *problem) {
    fprintf(stderr, "%s\nwarpfox bench NAME [--rows N] [--runs N] [--json] [--markdown]\n",
            problem);
    for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++) {
        fprintf(stderr, "  %-12s %s\n", experiments[i].name, experiments[i].text);
    }
    return 2;
}

/* Options that take a value; false when `name` is none of them. */
static bool take_value(struct bench_options *options, const char *name, const char *value) {
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"--only", &options->only},         {"--memory", &options->memory},
        {"--encoding", &options->encoding}, {"--sf", &options->sf},
        {"--device", &options->device},     {"--queries", &options->queries},
        {"--answers", &options->answers},   {"--text", &options->text},
        {"--plot", &options->plot},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].name, name) == 0) {
            *texts[i].to = value;
            return true;
        }
    }
    if (strcmp(name, "--rows") == 0) {
        options->rows = parse_rows(value);
    } else if (strcmp(name, "--runs") == 0) {
        options->runs = atoi(value);
    } else if (strcmp(name, "--threads") == 0) {
        options->threads = atoi(value);
    } else {
        return false;
    }
    return true;
}

/* What becomes part of a statement must be what it claims to be. */
static bool options_sound(const struct bench_options *options) {
    char *end;
    double sf = strtod(options->sf, &end);
    bool known_text = !options->text || strcmp(options->text, "dbgen") == 0 ||
                      strcmp(options->text, "duckdb") == 0;
    return options->rows >= 0 && options->runs > 0 && options->threads >= 0 && sf > 0 && !*end &&
           options->sf[strspn(options->sf, "0123456789.")] == 0 && known_text;
}

int bench_main(int argc, char **argv) {
    struct bench_options options = {.runs = 5, .sf = "1"};
    const char *name = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (strcmp(argv[i], "--markdown") == 0) {
            options.markdown = true;
        } else if (strcmp(argv[i], "--growth") == 0) {
            options.growth = true;
        } else if (strcmp(argv[i], "--no-gpu") == 0) {
            options.no_gpu = true;
        } else if (i + 1 < argc && take_value(&options, argv[i], argv[i + 1])) {
            i++;
        } else if (argv[i][0] != '-' && !name) {
            name = argv[i];
        } else {
            return usage("bench: unknown option");
        }
    }
    if (!name || !options_sound(&options)) {
        return usage("bench: name an experiment; numbers must be positive, text dbgen or duckdb");
    }
    for (size_t i = 0; i < sizeof experiments / sizeof *experiments; i++) {
        if (strcmp(experiments[i].name, name) == 0) {
            return experiments[i].run(&options);
        }
    }
    return usage("bench: no such experiment");
}

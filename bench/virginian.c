/* virginian.c: the experiment of the Virginian paper, with today's devices.
 *
 * Ten filter queries over one table. Configurations: one CPU thread, all threads, and on a GPU serial, streamed, mapped
 * and cached, each by the virtual machine and by the woven kernel, with columns at full width and in their narrow
 * encodings. Results are materialised in host memory except for cached, as in the paper. Beside each time stands the
 * share of the bandwidth that bounds it: bytes of 32-byte sectors the query must touch plus its output, counted once,
 * over the time, over the ceiling measured in the same run. */
#include "bench_virginian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = VIRGINIAN_QUERIES };

static const char *const texts[QUERIES] = {
    "select id, uniformi, normali5 from test where uniformi > 60 and normali5 < 0",
    "select id, uniformf, normalf5 from test where uniformf > 60.0 and normalf5 < 0.0",
    "select id, uniformi, normali5 from test where uniformi > -60 and normali5 < 5",
    "select id, uniformf, normalf5 from test where uniformf > -60.0 and normalf5 < 5.0",
    "select id, uniformi, normali20 from test where (normali20 + 40) > (uniformi - 10)",
    "select id, uniformf, normalf20 from test where (normalf20 + 40.0) > (uniformf - 10.0)",
    "select id, normali5, normali20 from test where normali5 * normali20 >= -5 and normali5 * normali20 <= 5",
    "select id, normalf5, normalf20 from test where normalf5 * normalf20 >= -5.0 and normalf5 * normalf20 <= 5.0",
    "select id, uniformi, normali5, normali20 from test where uniformi >= -1 and uniformi <= 1 or normali5 >= -1 and "
    "normali5 <= 1 or normali20 >= -1 and normali20 <= 1",
    "select id, uniformf, normalf5, normalf20 from test where uniformf >= -1.0 and uniformf <= 1.0 or normalf5 >= -1.0 "
    "and normalf5 <= 1.0 or normalf20 >= -1.0 and normalf20 <= 1.0",
};

/* What a query must touch, per row of the table: columns read by the first condition, by the second where the first
 * holds, and by the output where both hold. */
struct demand {
    int first_cols, second_cols, late_cols, out_cols;
    bool (*first)(const struct virginian_data *d, int64_t i);
    bool (*both)(const struct virginian_data *d, int64_t i);
};

#define TWIN(name, u, n5, n20)                                                                     \
    static bool name##_1a(const struct virginian_data *d, int64_t i) { return d->u[i] > 60; }      \
    static bool name##_1(const struct virginian_data *d, int64_t i) {                              \
        return d->u[i] > 60 && d->n5[i] < 0;                                                       \
    }                                                                                              \
    static bool name##_2a(const struct virginian_data *d, int64_t i) { return d->u[i] > -60; }     \
    static bool name##_2(const struct virginian_data *d, int64_t i) {                              \
        return d->u[i] > -60 && d->n5[i] < 5;                                                      \
    }                                                                                              \
    static bool name##_3(const struct virginian_data *d, int64_t i) {                              \
        return ((double)d->n20[i] + 40) > ((double)d->u[i] - 10);                                  \
    }                                                                                              \
    static bool name##_4(const struct virginian_data *d, int64_t i) {                              \
        return d->n5[i] * d->n20[i] >= -5 && d->n5[i] * d->n20[i] <= 5;                            \
    }                                                                                              \
    static bool name##_5(const struct virginian_data *d, int64_t i) {                              \
        return (d->u[i] >= -1 && d->u[i] <= 1) || (d->n5[i] >= -1 && d->n5[i] <= 1) ||             \
               (d->n20[i] >= -1 && d->n20[i] <= 1);                                                \
    }
TWIN(whole, uniformi, normali5, normali20)
TWIN(real, uniformf, normalf5, normalf20)
#undef TWIN

static const struct demand demands[QUERIES] = {
    {1, 1, 1, 3, whole_1a, whole_1}, {1, 1, 1, 3, real_1a, real_1},   {1, 1, 1, 3, whole_2a, whole_2},
    {1, 1, 1, 3, real_2a, real_2},   {2, 0, 1, 3, whole_3, whole_3},  {2, 0, 1, 3, real_3, real_3},
    {2, 0, 1, 3, whole_4, whole_4},  {2, 0, 1, 3, real_4, real_4},    {3, 0, 1, 4, whole_5, whole_5},
    {3, 0, 1, 4, real_5, real_5},
};

const int virginian_columns[QUERIES][VIRGINIAN_COLUMNS] = {
    {0, 1, 3, -1}, {0, 2, 4, -1}, {0, 1, 3, -1}, {0, 2, 4, -1}, {0, 1, 5, -1},
    {0, 2, 6, -1}, {0, 3, 5, -1}, {0, 4, 6, -1}, {0, 1, 3, 5},  {0, 2, 4, 6},
};
bool virginian_keeps(const struct virginian_data *data, int query, int64_t i) {
    return demands[query].both(data, i);
}

/* Bytes per row a query must touch and write, 32-bit columns, from a sample of the data. */
static double demand_bytes(const struct demand *q, const struct virginian_data *sample) {
    enum { SECTOR_ROWS = 8, SECTOR_BYTES = 32 };
    int64_t second = 0, late = 0, kept = 0;
    for (int64_t at = 0; at + SECTOR_ROWS <= sample->rows; at += SECTOR_ROWS) {
        int any_first = 0, all = 0;
        for (int64_t i = at; i < at + SECTOR_ROWS; i++) {
            any_first |= q->first(sample, i);
            all += q->both(sample, i);
        }
        second += any_first;
        late += all > 0;
        kept += all;
    }
    double rows = (double)(sample->rows / SECTOR_ROWS * SECTOR_ROWS);
    return q->first_cols * 4.0 + (double)(second * q->second_cols * SECTOR_BYTES) / rows +
           (double)(late * q->late_cols * SECTOR_BYTES) / rows + (double)kept * q->out_cols * 4.0 / rows;
}

struct config {
    const char *name, *device, *placement, *code, *result;
    bool one_thread;
    enum { BOUND_HOST, BOUND_GPU, BOUND_BUS, BOUND_MAPPED } bound;
};
static const struct config configs[] = {
    {"1 thread", "cpu", "auto", "auto", "host", true, BOUND_HOST},
    {"all threads", "cpu", "auto", "auto", "host", false, BOUND_HOST},
    {"serial vm", "gpu", "serial", "vm", "host", false, BOUND_BUS},
    {"serial woven", "gpu", "serial", "woven", "host", false, BOUND_BUS},
    {"streamed vm", "gpu", "streamed", "vm", "host", false, BOUND_BUS},
    {"streamed woven", "gpu", "streamed", "woven", "host", false, BOUND_BUS},
    {"mapped vm", "gpu", "mapped", "vm", "host", false, BOUND_MAPPED},
    {"mapped woven", "gpu", "mapped", "woven", "host", false, BOUND_MAPPED},
    {"cached vm", "gpu", "cached", "vm", "device", false, BOUND_GPU},
    {"cached woven", "gpu", "cached", "woven", "device", false, BOUND_GPU},
};
enum { CONFIGS = sizeof configs / sizeof *configs };

static void load(struct bench_db *db, int64_t rows, bool narrow) {
    enum { CHUNK = 1 << 20 };
    wf_set(db->conn, "narrow", narrow ? "on" : "off");
    bench_run(db, "create table test (id integer, uniformi integer, uniformf real, normali5 integer, normalf5 real, "
                  "normali20 integer, normalf20 real)");
    for (int64_t at = 0; at < rows; at += 16 * CHUNK) {
        int64_t made = rows - at < 16 * CHUNK ? rows - at : 16 * CHUNK;
        struct virginian_data d;
        if (!virginian_make(&d, at, made)) {
            fprintf(stderr, "bench: out of memory making rows\n");
            exit(1);
        }
        wf_input columns[7] = {{d.id, NULL},       {d.uniformi, NULL},  {d.uniformf, NULL}, {d.normali5, NULL},
                               {d.normalf5, NULL}, {d.normali20, NULL}, {d.normalf20, NULL}};
        if (wf_append(db->conn, "test", made, 7, columns) != WF_OK) {
            fprintf(stderr, "bench: %s\n", wf_connection_error(db->conn)->message);
            exit(1);
        }
        virginian_free(&d);
    }
}

static double ceiling_of(const struct config *config, const struct bench_ceiling *ceiling) {
    switch (config->bound) {
    case BOUND_HOST:
        return ceiling->host_read;
    case BOUND_GPU:
        return ceiling->gpu_read;
    case BOUND_MAPPED:
        return ceiling->mapped_read;
    default:
        return ceiling->bus_in;
    }
}

static void apply(struct bench_db *db, const struct config *config) {
    wf_set(db->conn, "device", config->device);
    wf_set(db->conn, "gpu_placement", config->placement);
    wf_set(db->conn, "gpu_code", config->code);
    wf_set(db->conn, "gpu_result", config->result);
}

struct virginian_run {
    const struct bench_options *options;
    const struct bench_ceiling *ceiling;
    const struct virginian_data *sample;
    bool gpu;
    int64_t rows;
    bool narrow;
    struct virginian_answers answers; /* over so many rows */
    bool wrong;
};

struct series {
    double times[QUERIES];
    double mean;
};

/* Times one configuration; prints a line per query. */
static bool run_config(struct virginian_run *run, struct bench_db *db, const struct config *config,
                       struct series *out) {
    const struct bench_options *options = run->options;
    const char *encoding = run->narrow ? "narrow" : "plain";
    apply(db, config);
    double sum = 0;
    for (int q = 0; q < QUERIES; q++) {
        struct bench_time time;
        bench_measure(db, texts[q], options->runs, &time);
        if (!time.ok) {
            printf("%-15s %-6s q%-2d  %s\n", config->name, encoding, q + 1, time.error);
            return false;
        }
        wf_set(db->conn, "gpu_result", "host"); /* rows that stay on the card cannot be looked at */
        run->wrong |= !virginian_right(db, texts[q], q, &run->answers) || time.rows != run->answers.rows[q];
        wf_set(db->conn, "gpu_result", config->result);
        bool device = config->bound == BOUND_GPU && time.device_seconds > 0;
        double seconds = device ? time.device_seconds : time.seconds;
        double bytes = demand_bytes(&demands[q], run->sample) * (double)run->rows;
        double rate = bytes * 1e-9 / seconds;
        double limit = ceiling_of(config, run->ceiling);
        out->times[q] = seconds;
        sum += seconds;
        if (options->json) {
            printf("{\"rows\": %lld, \"config\": \"%s\", \"narrow\": %s, \"query\": %d, \"ms\": %.4f, "
                   "\"wall_ms\": %.4f, \"kept\": %lld, \"bytes\": %.0f, \"gb_s\": %.2f, "
                   "\"ceiling_gb_s\": %.2f, \"moved\": %lld, \"device\": \"%s\"}\n",
                   (long long)run->rows, config->name, run->narrow ? "true" : "false", q + 1, seconds * 1e3,
                   time.seconds * 1e3, (long long)time.rows, bytes, rate, limit,
                   (long long)time.bytes_moved, time.device);
        } else {
            printf("%-15s %-6s q%-2d %11.4f ms %11.4f wall %12lld rows %9.1f MB %8.1f GB/s %5.0f %%\n", config->name,
                   encoding, q + 1, seconds * 1e3, time.seconds * 1e3, (long long)time.rows,
                   bytes * 1e-6, rate, limit > 0 ? rate / limit * 100 : 0);
        }
        fflush(stdout);
    }
    out->mean = sum / QUERIES;
    return true;
}

static void print_summary(const struct series *series, const bool *have, bool narrow) {
    printf("\n%-15s %-6s %12s %12s %12s %14s %14s\n", "mean of ten", "", "integer ms", "float ms", "all ms",
           "over 1 thread", "over all");
    for (int c = 0; c < CONFIGS; c++) {
        if (!have[c]) {
            continue;
        }
        double whole = 0, real = 0;
        for (int q = 0; q < QUERIES; q += 2) {
            whole += series[c].times[q] * 200;
            real += series[c].times[q + 1] * 200;
        }
        printf("%-15s %-6s %12.4f %12.4f %12.4f %13.1fx %13.1fx\n", configs[c].name, narrow ? "narrow" : "plain", whole,
               real, series[c].mean * 1e3, series[0].mean / series[c].mean, series[1].mean / series[c].mean);
    }
    printf("\n");
}

/* A query nobody has run before, with the table cached: the virtual machine answers at once, the woven kernel takes
 * over when its compilation in the background ends. */
static void run_first_sight(struct bench_db *db, const struct bench_options *options) {
    const char *sql = "select id + 7, uniformi * 3 - normali5 from test where normali20 % 7 = 3 and "
                      "uniformi > normali5";
    const struct config fresh = {"first sight", "gpu", "cached", "auto", "device", false, BOUND_GPU};
    apply(db, &fresh);
    bench_run(db, "call gpu_cache('test')");
    struct bench_time warm;
    bench_measure(db, texts[0], 1, &warm); /* the device is open and its fixed kernels are loaded */
    double start = bench_now();
    for (int i = 0; i < 2000; i++) {
        wf_result *result = NULL;
        double from = bench_now();
        if (wf_query(db->conn, sql, &result) != WF_OK) {
            printf("first sight: %s\n", wf_connection_error(db->conn)->message);
            return;
        }
        double wall = bench_now() - from;
        bool woven = strstr(wf_result_devices(result), "woven") != NULL;
        if ((i == 0 || woven) && !options->json) {
            printf("first sight: run %d, %.1f ms after the first began: %.3f ms wall, %lld rows, %s\n", i + 1,
                   (from - start) * 1e3, wall * 1e3, (long long)wf_result_row_count(result),
                   wf_result_devices(result));
        }
        wf_result_close(result);
        if (woven) {
            return;
        }
    }
}

static bool wanted(const struct config *config, const struct bench_options *options, bool one_thread, bool gpu) {
    return config->one_thread == one_thread && (gpu || config->bound == BOUND_HOST) &&
           (!options->only || strstr(config->name, options->only)) &&
           (strcmp(bench_device(options), "auto") == 0 || strcmp(bench_device(options), config->device) == 0);
}

/* All configurations over `rows` rows in one encoding. */
static void run_rows(struct virginian_run *run) {
    const struct bench_options *options = run->options;
    struct series series[CONFIGS] = {0};
    bool have[CONFIGS] = {false};
    for (int one = 1; one >= 0; one--) {
        struct bench_db db = {NULL, NULL};
        for (int c = 0; c < CONFIGS; c++) {
            if (!wanted(&configs[c], options, one == 1, run->gpu)) {
                continue;
            }
            if (!db.db) {
                if (one) {
                    bench_open_threads(&db, "1", options);
                } else {
                    bench_open(&db, options);
                }
                load(&db, run->rows, run->narrow);
            }
            have[c] = run_config(run, &db, &configs[c], &series[c]);
        }
        if (db.db && run->gpu && !one && have[CONFIGS - 1]) {
            run_first_sight(&db, options);
        }
        bench_close(&db);
    }
    if (!options->json) {
        print_summary(series, have, run->narrow);
    }
}

int bench_virginian(const struct bench_options *options) {
    struct bench_db db;
    struct bench_ceiling ceiling;
    struct virginian_data sample;
    bench_open(&db, options);
    bench_ceilings(&db, &ceiling);
    bench_close(&db);
    bool gpu = ceiling.gpu_read > 0 && !options->no_gpu;
    if (!virginian_make(&sample, 0, 1 << 20)) {
        fprintf(stderr, "bench: out of memory\n");
        return 1;
    }
    if (!options->json) {
        printf("ceilings, GB/s: host read %.1f, device read %.1f, device copy %.1f, bus in %.1f, bus out %.1f, "
               "mapped %.1f\n",
               ceiling.host_read, ceiling.gpu_read, ceiling.gpu_copy, ceiling.bus_in, ceiling.bus_out,
               ceiling.mapped_read);
        printf("bytes: touched 32-byte sectors of 32-bit columns plus output, once; the share is of host read, "
               "device read, bus in (serial, streamed) or mapped read\n\n");
    }
    int64_t most = options->rows ? options->rows : 8000000;
    int64_t start = options->growth ? 1000000 : most;
    struct virginian_run run = {.options = options, .ceiling = &ceiling, .sample = &sample, .gpu = gpu};
    for (int64_t rows = start; rows <= most && !run.wrong; rows *= options->growth ? 10 : 2) {
        run.rows = rows;
        if (!virginian_expect(&run.answers, rows)) {
            fprintf(stderr, "bench: out of memory\n");
            return 1;
        }
        for (int narrow = 0; narrow < 2; narrow++) {
            if (!options->encoding || strcmp(options->encoding, narrow ? "narrow" : "plain") == 0) {
                run.narrow = narrow == 1;
                run_rows(&run);
            }
        }
        if (!options->growth) {
            break;
        }
    }
    virginian_free(&sample);
    return run.wrong;
}

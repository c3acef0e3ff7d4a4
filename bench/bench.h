/* bench.h: what experiments share. Experiments see the public interface only. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "option.h"
#include "warpfox.h"

enum { BENCH_LIST_BYTES = 4000 }; /* of --columns */
struct bench_options {
    int64_t rows; /* 0: the experiment's own choice */
    int runs;
    bool json;
    bool markdown; /* tables as Markdown, where the experiment has any */
    bool growth;
    bool no_gpu;
    const char *only;     /* configurations whose name contains this */
    const char *encoding; /* "plain", "narrow" or NULL for both */
    const char *sf;       /* TPC-H, SSB: scale factor, as written */
    const char *queries;  /* "1,3,5-9"; NULL = all */
    const char *answers;  /* folder of answer files; NULL = the answers known here */
    const char *columns;  /* TPC-H, SSB: as CALL takes them; NULL = those the queries read */
    const char *language; /* of the queries: "sql" or "logiql"; NULL = sql */
    const char *text;     /* TPC-H: "dbgen" or "duckdb"; NULL = dbgen */
    const char *graph;    /* datalog, graph: a kind, or a file of edges; NULL = several kinds */
    const char *plot;     /* SVG file to draw; NULL = none */
    struct option_settings settings; /* device, threads, memory, gpu_memory, gpu_workers, as given */
};

/* `warpfox bench NAME …`: runs an experiment; returns the exit status. */
int bench_main(int argc, char **argv);
int bench_virginian(const struct bench_options *options);
int bench_tpch(const struct bench_options *options);
int bench_ssb(const struct bench_options *options);
int bench_prim(const struct bench_options *options);
int bench_ops(const struct bench_options *options);
int bench_join(const struct bench_options *options);
int bench_strings(const struct bench_options *options);
int bench_weave(const struct bench_options *options);
int bench_everyday(const struct bench_options *options);
int bench_datalog(const struct bench_options *options);
int bench_graph(const struct bench_options *options);
int bench_papers(const struct bench_options *options);

/* A database with one connection and the settings given; exits with a message and status 2 when it
 * cannot be opened. Experiments on arrays take `device` as a choice of
 * sides: the database does not get it. */
struct bench_db {
    wf_database *db;
    wf_connection *conn;
};
void bench_open(struct bench_db *out, const struct bench_options *options);
/* The same with this many threads, whatever was given. */
void bench_open_threads(struct bench_db *out, const char *threads, const struct bench_options *options);
/* -d NAME, or the default. */
const char *bench_device(const struct bench_options *options);
void bench_close(struct bench_db *db);
/* Runs a statement that must succeed. */
void bench_run(struct bench_db *db, const char *sql);
/* `text` with {1} to {9} as values[0] to values[8]; the length of what fits, ended by 0. */
size_t bench_fill(const char *text, const char *const *values, char *out, size_t cap);

/* One measured statement: the fastest of `runs` after one warm-up. */
struct bench_time {
    bool ok;
    char error[600];
    int64_t rows;
    double seconds;        /* wall, from text to rows */
    double device_seconds; /* kernels only */
    int64_t bytes_moved;
    int64_t launches;
    char device[40];
};
void bench_measure(struct bench_db *db, const char *sql, int runs, struct bench_time *out);

/* A permutation of 0 .. n - 1 without a table: a bijection of the next power of two, 2^bits,
 * applied until it falls below n. */
uint32_t bench_shuffled(uint32_t i, uint32_t n, int bits);
double bench_now(void); /* seconds */

/* Ceilings measured in this run, GB/s; 0 when there is no GPU. */
struct bench_ceiling {
    double host_read; /* all threads, streaming a large array */
    double gpu_read;
    double gpu_copy;
    double bus_in;
    double bus_out;
    double mapped_read;
};
void bench_ceilings(struct bench_db *db, struct bench_ceiling *out);

/* A line chart of several series as SVG; x is logarithmic. False, with a message on stderr, when
 * the file cannot be written. */
enum { PLOT_POINTS = 32 };
struct plot_series {
    char name[64];
    int count;
    double x[PLOT_POINTS], y[PLOT_POINTS]; /* x ascending, above 0 */
};
bool plot_write(const char *path, const char *title, const char *x_label, const char *y_label,
                const struct plot_series *series, int count);

/* Charts of bars in groups, one below the other, as SVG. */
enum { PLOT_BARS = 64, PLOT_BAR_SERIES = 5 };
struct plot_bars {
    const char *title, *y_label;
    const char *series[PLOT_BAR_SERIES];
    int series_count, count;
    struct {
        char label[32];
        double y[PLOT_BAR_SERIES];
    } bars[PLOT_BARS];
};
/* A group: a bar of each series. */
void plot_bars_add(struct plot_bars *bars, const char *label, const double *y);
bool plot_bars_write(const char *path, const struct plot_bars *panels, int count);

/* The Virginian table, in memory: seven 32-bit columns, reproducible. */
struct virginian_data {
    int64_t rows;
    int32_t *id, *uniformi, *normali5, *normali20;
    float *uniformf, *normalf5, *normalf20;
};
bool virginian_make(struct virginian_data *out, int64_t first, int64_t rows);
void virginian_free(struct virginian_data *data);

#endif

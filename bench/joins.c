/* joins.c: `bench join`: the joins of the library over sizes, selectivities, duplicates, bands,
 * payloads and skew, with every algorithm, and whether the chooser picks well.
 *
 * The experiments `table4` and `fig11` to `fig14` are those of He et al. 2008; `today` has the
 * sizes current GPU joins are published for; `skew`, `band` and `choice` are ours. S has unique
 * keys unless said otherwise. A tuple is a row of either side; bytes count both sides and the
 * result once. On the GPU times are the device's own, with arrays there; fig12 adds the bus. */
#include "bench_joins.h"

#include <stdlib.h>
#include <string.h>

static const char *const algorithm_names[] = {"auto",  "ninlj",       "inlj",  "smj",
                                              "radix", "partitioned", "plain", "direct"};
#define ALL_BUT_LOOPS                                                            \
    {                                                                            \
        WF_JOIN_INLJ, WF_JOIN_SMJ, WF_JOIN_RADIX_HASH, WF_JOIN_PARTITIONED_HASH, \
            WF_JOIN_PLAIN_HASH, WF_JOIN_DIRECT, WF_JOIN_AUTO                     \
    }

static void must(struct join_bench *b, wf_status status, const char *what) {
    if (status != WF_OK) {
        fprintf(stderr, "bench: %s: %s\n", what, wf_prim_error(b->prim)->message);
        exit(1);
    }
}

static void *room(struct join_bench *b, wf_place place, int64_t bytes) {
    void *data = NULL;
    must(b, wf_prim_alloc(b->prim, place, bytes + 16, &data), "memory");
    return data;
}

/* --- data on a device --- */

static void data_place(struct join_bench *b, struct join_data *to, const struct join_data *host,
                       wf_place place) {
    *to = *host;
    for (int side = 0; place == WF_ON_GPU && side < 2; side++) {
        int64_t bytes = host->rows[side] * 4;
        to->keys[side] = room(b, place, bytes);
        must(b, wf_prim_copy(b->prim, to->keys[side], host->keys[side], bytes), "copy");
        to->values[side] = room(b, place, bytes);
        must(b, wf_prim_copy(b->prim, to->values[side], host->values[side], bytes), "copy");
    }
}

static void data_unplace(struct join_bench *b, struct join_data *data, wf_place place) {
    for (int side = 0; place == WF_ON_GPU && side < 2; side++) {
        wf_prim_free(b->prim, data->keys[side]);
        wf_prim_free(b->prim, data->values[side]);
    }
}

static wf_array array_u32(uint32_t *data, int64_t count) {
    return (wf_array){.type = WF_ELEM_U32, .data = data, .count = count};
}

static void spec_make(const struct join_case *c, struct join_data *d, wf_join_algorithm algorithm,
                      wf_array cols[2][WF_JOIN_COLUMNS], wf_join_spec *out) {
    memset(out, 0, sizeof *out);
    out->algorithm = algorithm;
    out->band = c->band;
    out->width = (uint64_t)c->width;
    out->sequential = c->sequential;
    wf_join_side *sides[2] = {&out->r, &out->s};
    for (int side = 0; side < 2; side++) {
        sides[side]->keys = array_u32(d->keys[side], d->rows[side]);
        sides[side]->columns = cols[side];
        sides[side]->column_count = (1 + c->more_columns);
        for (int i = 0; i < (1 + c->more_columns); i++) {
            cols[side][i] = array_u32(d->values[side], d->rows[side]);
        }
    }
}

/* --- one measurement --- */

struct join_out_room {
    uint32_t *keys, *cols[2][WF_JOIN_COLUMNS];
    wf_array arrays[2][WF_JOIN_COLUMNS];
    wf_join_out out;
};

static void out_make(struct join_bench *b, struct join_out_room *o, wf_place place, int columns,
                     int64_t rows) {
    memset(o, 0, sizeof *o);
    o->keys = room(b, place, rows * 4);
    o->out.keys = array_u32(o->keys, rows);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < columns; i++) {
            o->cols[side][i] = room(b, place, rows * 4);
            o->arrays[side][i] = array_u32(o->cols[side][i], rows);
        }
    }
    o->out.r_columns = o->arrays[0];
    o->out.s_columns = o->arrays[1];
}

static void out_free(struct join_bench *b, struct join_out_room *o) {
    wf_prim_free(b->prim, o->keys);
    for (int i = 0; i < 2 * WF_JOIN_COLUMNS; i++) {
        wf_prim_free(b->prim, o->cols[i / WF_JOIN_COLUMNS][i % WF_JOIN_COLUMNS]);
    }
}

static int64_t count_rows(struct join_bench *b, wf_place place, const wf_join_spec *spec) {
    wf_join *join = NULL;
    int64_t rows = -1;
    if (wf_prim_join_open(b->prim, place, spec, &join) == WF_OK &&
        wf_prim_join_count(join, &rows) != WF_OK) {
        rows = -1;
    }
    wf_prim_join_close(join);
    return rows;
}

/* Seconds of the fastest run; below zero: refused, which is told. */
static double measure(struct join_bench *b, const struct join_case *c, struct join_data *d,
                      wf_join_algorithm algorithm, wf_place place, int64_t *rows) {
    wf_array cols[2][WF_JOIN_COLUMNS];
    wf_join_spec spec;
    struct join_out_room o;
    bool bus = c->from_host && place == WF_ON_GPU;
    spec_make(c, d, algorithm, cols, &spec);
    if (*rows < 0) {
        *rows = count_rows(b, place, &spec);
    }
    if (*rows < 0) {
        fprintf(stderr, "bench: %s: %s\n", algorithm_names[algorithm],
                wf_prim_error(b->prim)->message);
        return -1;
    }
    out_make(b, &o, bus ? WF_ON_CPU : place, (1 + c->more_columns), *rows);
    double best = -1;
    int runs = b->options->runs;
    for (int i = 0; i <= runs; i++) {
        int64_t got = 0;
        double start = bench_now();
        wf_status status = wf_prim_join(b->prim, place, &spec, &o.out, &got);
        if (status != WF_OK || got != *rows) {
            fprintf(stderr, "bench: %s: %s\n", algorithm_names[algorithm],
                    status ? wf_prim_error(b->prim)->message : "another number of rows");
            b->wrong = b->wrong || status == WF_OK;
            best = -1;
            break;
        }
        double seconds = place == WF_ON_GPU && !bus
                             ? 1e-9 * (double)wf_prim_metric(b->prim, "device_ns")
                             : bench_now() - start;
        if (i == 1 || (i > 1 && seconds < best)) {
            best = seconds;
            b->on_device = 1e-9 * (double)wf_prim_metric(b->prim, "device_ns");
        }
        if (bench_now() - start >
            (i ? 2 : 10)) { /* slow ones are measured once; the first compiles */
            best = best < 0 ? seconds : best;
            break;
        }
    }
    out_free(b, &o);
    return best;
}

/* --- the answer --- */

/* The multiset of rows as one number; every column of a side holds its row's value. */
static uint64_t row_sum(uint32_t key, uint32_t r, uint32_t s, int columns) {
    uint64_t sum = bench_mix((uint64_t)key << 32 | r) ^ bench_mix((uint64_t)s + 0x5bd1e995u);
    for (int i = 1; i < columns; i++) {
        sum = bench_mix(sum ^ ((uint64_t)r << 32 | s));
    }
    return sum;
}
static uint64_t out_sum(const struct join_out_room *o, int64_t i, int columns) {
    uint32_t r = o->cols[0][0][i];
    uint32_t s = o->cols[1][0][i];
    uint64_t sum = bench_mix((uint64_t)o->keys[i] << 32 | r) ^ bench_mix((uint64_t)s + 0x5bd1e995u);
    for (int k = 1; k < columns; k++) {
        sum = bench_mix(sum ^ ((uint64_t)o->cols[0][k][i] << 32 | o->cols[1][k][i]));
    }
    return sum;
}

static uint64_t expected_sum(const struct join_case *c, const struct join_data *d,
                             int64_t *out_rows) {
    uint64_t sum = 0;
    *out_rows = 0;
    for (int64_t i = 0; i < d->rows[0]; i++) {
        uint64_t low = d->keys[0][i];
        uint64_t high = low + (uint64_t)c->width;
        for (int64_t k = 0; k < d->rows[1]; k++) {
            if (d->keys[1][k] >= low && d->keys[1][k] <= high) {
                sum +=
                    row_sum((uint32_t)low, d->values[0][i], d->values[1][k], 1 + c->more_columns);
                ++*out_rows;
            }
        }
    }
    return sum;
}

static void check(struct join_bench *b, const struct join_case *c, wf_join_algorithm algorithm,
                  wf_place place) {
    struct join_data d;
    struct join_case small = *c;
    small.rows[0] = c->rows[0] < 1500 ? c->rows[0] : 1500;
    small.rows[1] = c->rows[1] < 1100 ? c->rows[1] : 1100;
    join_data_make(&small, &d);
    int64_t rows;
    int64_t got = 0;
    uint64_t expect = expected_sum(&small, &d, &rows);
    wf_array cols[2][WF_JOIN_COLUMNS];
    wf_join_spec spec;
    struct join_out_room o;
    spec_make(&small, &d, algorithm, cols, &spec);
    out_make(b, &o, WF_ON_CPU, (1 + c->more_columns), rows);
    wf_status status = wf_prim_join(b->prim, place, &spec, &o.out, &got);
    if (status != WF_OK && strcmp(wf_prim_error(b->prim)->sqlstate, "0A000") != 0 &&
        strcmp(wf_prim_error(b->prim)->sqlstate, "54000") != 0) {
        must(b, status, "join");
    }
    if (status == WF_OK) {
        uint64_t sum = 0;
        for (int64_t i = 0; i < got; i++) {
            sum += out_sum(&o, i, 1 + c->more_columns);
        }
        if (got != rows || sum != expect) {
            fprintf(stderr, "bench: %s, %s: wrong answer\n", c->name, algorithm_names[algorithm]);
            b->wrong = true;
        }
    }
    out_free(b, &o);
    join_data_free(&d);
}

/* --- lines --- */

static void print_line(struct join_bench *b, const struct join_case *c, wf_join_algorithm algorithm,
                       int side, double seconds, double ratio, int64_t rows) {
    double tuples = (double)(c->rows[0] + c->rows[1]);
    double bytes = 4.0 * (1 + (1 + c->more_columns)) * tuples +
                   4.0 * (1 + 2 * (1 + c->more_columns)) * (double)rows;
    double gbs = 1e-9 * bytes / seconds;
    double share = b->side[side].copy_gbs > 0 ? gbs / b->side[side].copy_gbs : 0;
    const char *search = c->sequential ? " seq" : "";
    char name[80];
    snprintf(name, sizeof name, "%s", c->name);
    if (c->from_host && b->side[side].place == WF_ON_GPU) { /* the rest is the bus */
        snprintf(name, sizeof name, "host; %.3f ms joining", b->on_device * 1e3);
    }
    if (b->options->json) {
        printf("{\"bench\":\"join\",\"group\":\"%s\",\"name\":\"%s\",\"algorithm\":\"%s%s\","
               "\"device\":\"%s\",\"r\":%lld,\"s\":%lld,\"rows\":%lld,\"ms\":%.4f,"
               "\"gtuples_per_s\":%.4f,\"gb_per_s\":%.2f,\"share\":%.4f,\"cpu_gpu\":%.2f}\n",
               c->group, name, algorithm_names[algorithm], search, b->side[side].name,
               (long long)c->rows[0], (long long)c->rows[1], (long long)rows, seconds * 1e3,
               1e-9 * tuples / seconds, gbs, share, ratio);
    } else {
        char text[16] = "";
        if (ratio > 0) {
            snprintf(text, sizeof text, "%.1f", ratio);
        }
        printf(b->options->markdown
                   ? "| %s | %s | %s%s | %s | %lld | %.3f | %.3f | %.1f | %.1f %% | %s |\n"
                   : "%-7s %-28s %-11s%-4s %-4s %10lld %10.3f %8.3f %8.1f %6.1f%% %8s\n",
               c->group, name, algorithm_names[algorithm], search, b->side[side].name,
               (long long)rows, seconds * 1e3, 1e-9 * tuples / seconds, gbs, share * 100, text);
    }
    fflush(stdout);
}

static void plot_point(struct join_bench *b, const struct join_case *c, wf_join_algorithm algorithm,
                       int side, double seconds) {
    char name[64];
    snprintf(name, sizeof name, "%s, %s", algorithm_names[algorithm], b->side[side].name);
    int at = 0;
    while (at < b->series_count && strcmp(b->series[at].name, name) != 0) {
        at++;
    }
    if (at == b->series_count && at < (int)(sizeof b->series / sizeof *b->series)) {
        memset(&b->series[b->series_count++], 0, sizeof *b->series);
        snprintf(b->series[at].name, sizeof b->series[at].name, "%s", name);
    }
    if (at < b->series_count && b->series[at].count < PLOT_POINTS) {
        struct plot_series *s = &b->series[at];
        s->x[s->count] = (double)c->rows[0];
        s->y[s->count++] = 1e-6 * (double)(c->rows[0] + c->rows[1]) / seconds;
    }
}

/* Every algorithm of a case on every device; the chooser's time against the best, last. */
static void run_case(struct join_bench *b, const struct join_case *c) {
    struct join_data host;
    struct join_data data[2];
    double times[8][2] = {{0, 0}};
    bool fits[2];
    join_data_make(c, &host);
    int64_t rows = -1;
    for (int side = 0; side < 2; side++) {
        fits[side] = b->side[side].used && (side == 1 || c->rows[0] <= b->cpu_most);
        if (fits[side]) {
            data_place(b, &data[side], &host, c->from_host ? WF_ON_CPU : b->side[side].place);
        }
    }
    for (int i = 0; i < c->algorithm_count; i++) {
        wf_join_algorithm a = c->algorithms[i];
        for (int side = 0; side < 2; side++) {
            if (fits[side]) {
                check(b, c, a, b->side[side].place);
                times[a][side] = measure(b, c, &data[side], a, b->side[side].place, &rows);
            }
        }
        for (int side = 0; side < 2; side++) {
            if (fits[side] && times[a][side] > 0) {
                double both = fits[0] && fits[1] && times[a][0] > 0 && times[a][1] > 0;
                print_line(b, c, a, side, times[a][side],
                           side && both > 0 ? times[a][0] / times[a][1] : 0, rows);
                plot_point(b, c, a, side, times[a][side]);
            }
        }
    }
    for (int side = 0; side < 2; side++) {
        int best = 0;
        for (int a = 1; a < 8; a++) {
            bool better = times[a][side] > 0 && (!best || times[a][side] < times[best][side]);
            best = better ? a : best;
        }
        if (fits[side] && best && times[0][side] > 0 && !b->options->json &&
            !b->options->markdown) {
            printf("%-7s %-28s chooser on %s: %.2f of the best (%s)\n", c->group, c->name,
                   b->side[side].name, times[0][side] / times[best][side], algorithm_names[best]);
        }
        if (fits[side]) {
            data_unplace(b, &data[side], c->from_host ? WF_ON_CPU : b->side[side].place);
        }
    }
    join_data_free(&host);
}

/* --- probing alone --- */

/* Seconds that as many random reads take as there are rows of R. */
static double measure_gather(struct join_bench *b, struct join_data *d, wf_place place) {
    uint32_t *out = room(b, place, d->rows[0] * 4);
    double best = -1;
    for (int i = 0; i <= b->options->runs; i++) {
        must(b,
             wf_prim_gather(b->prim, place, array_u32(out, d->rows[0]),
                            array_u32(d->values[1], d->rows[1]), array_u32(d->keys[0], d->rows[0]),
                            1, NULL),
             "gather");
        double seconds =
            1e-9 * (double)wf_prim_metric(b->prim, place == WF_ON_GPU ? "device_ns" : "ns");
        best = best < 0 || seconds < best ? seconds : best;
    }
    wf_prim_free(b->prim, out);
    return best;
}

static double measure_probe(struct join_bench *b, const struct join_case *c, struct join_data *d,
                            wf_join_algorithm algorithm, wf_place place) {
    wf_array cols[2][WF_JOIN_COLUMNS];
    wf_join_spec spec;
    struct join_out_room o;
    double best = -1;
    spec_make(c, d, algorithm, cols, &spec);
    spec.kind = WF_JOIN_LEFT; /* so that S is built on whatever the sizes */
    out_make(b, &o, place, 1, d->rows[0]);
    wf_join_out out = {.s_columns = o.arrays[1]}; /* what a gather gives: the value of each key */
    for (int i = 0; i <= b->options->runs; i++) {
        wf_join *join = NULL;
        int64_t rows = 0;
        must(b, wf_prim_join_open(b->prim, place, &spec, &join), "join");
        must(b, wf_prim_join_next(join, &out, &rows), "join");
        double seconds =
            1e-9 * (double)wf_prim_metric(b->prim, place == WF_ON_GPU ? "device_ns" : "ns");
        best = best < 0 || seconds < best ? seconds : best;
        b->wrong = b->wrong || rows != d->rows[0];
        wf_prim_join_close(join);
    }
    out_free(b, &o);
    return best;
}

/* The same, small: what is given are the values at R's keys, in any order. */
static void check_probe(struct join_bench *b, wf_join_algorithm algorithm, wf_place place) {
    struct join_case c = {.group = "probe", .name = "dense", .rows = {3001, 1000}};
    struct join_data d;
    wf_array cols[2][WF_JOIN_COLUMNS];
    wf_join_spec spec;
    struct join_out_room o;
    uint32_t at[1000];
    uint64_t sum = 0;
    int64_t rows = 0;
    join_data_make(&c, &d);
    spec_make(&c, &d, algorithm, cols, &spec);
    spec.kind = WF_JOIN_LEFT;
    out_make(b, &o, WF_ON_CPU, 1, d.rows[0]);
    must(b, wf_prim_join(b->prim, place, &spec, &(wf_join_out){.s_columns = o.arrays[1]}, &rows),
         "join");
    for (int64_t i = 0; i < d.rows[1]; i++) {
        at[d.keys[1][i]] = d.values[1][i];
    }
    for (int64_t i = 0; i < d.rows[0]; i++) {
        sum += bench_mix(o.cols[1][0][i]) - bench_mix(at[d.keys[0][i]]);
    }
    if (rows != d.rows[0] || sum) {
        fprintf(stderr, "bench: probe, %s: wrong answer\n", algorithm_names[algorithm]);
        b->wrong = true;
    }
    out_free(b, &o);
    join_data_free(&d);
}

/* Tables of all different, dense keys: the probes of R against a gather of as many elements. */
static void run_probe(struct join_bench *b, int64_t r_rows, int64_t s_rows) {
    if (b->wrong || b->options->plot || (b->options->only && !strstr("probe", b->options->only))) {
        return;
    }
    struct join_case c = {.group = "probe", .name = "dense", .rows = {r_rows, s_rows}};
    struct join_data host;
    static const wf_join_algorithm algorithms[] = {WF_JOIN_DIRECT, WF_JOIN_PLAIN_HASH};
    join_data_make(&c, &host);
    for (int side = 0; side < 2; side++) {
        if (!b->side[side].used || (side == 0 && r_rows > b->cpu_most)) {
            continue;
        }
        struct join_data d;
        wf_place place = b->side[side].place;
        data_place(b, &d, &host, place);
        double gather = measure_gather(b, &d, place);
        for (int i = 0; i < 2; i++) {
            check_probe(b, algorithms[i], place);
            double seconds = measure_probe(b, &c, &d, algorithms[i], place);
            printf(
                b->options->json
                    ? "{\"bench\":\"join\",\"group\":\"probe\",\"algorithm\":\"%s\",\"device\":\"%"
                      "s\","
                      "\"r\":%lld,\"s\":%lld,\"ms\":%.4f,\"gather_ms\":%.4f,\"share\":%.4f}\n"
                    : "probe   %-11s %-4s %10lld rows, table of %10lld: %9.3f ms, gather %9.3f ms: "
                      "%.3f of the ceiling\n",
                algorithm_names[algorithms[i]], b->side[side].name, (long long)r_rows,
                (long long)s_rows, seconds * 1e3, gather * 1e3, gather / seconds);
        }
        data_unplace(b, &d, place);
    }
    join_data_free(&host);
}

/* --- the list of cases --- */

static void add(struct join_bench *b, struct join_case c) {
    bool wanted =
        !b->options->only || strstr(c.group, b->options->only) || strstr(c.name, b->options->only);
    if (!wanted || b->wrong || (b->options->plot && strcmp(c.group, "fig14") != 0)) {
        return;
    }
    if (!c.algorithm_count) {
        static const wf_join_algorithm all[] = ALL_BUT_LOOPS;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            if (all[i] != WF_JOIN_DIRECT || !c.sparse) {
                c.algorithms[c.algorithm_count++] = all[i];
            }
        }
    }
    run_case(b, &c);
}

#define CASE(...)        \
    (struct join_case) { \
        __VA_ARGS__      \
    }

/* The tables and figures of the paper; n stands for its 16 million rows. */
static void run_paper(struct join_bench *b, int64_t n) {
    int64_t loops = n / 64;
    add(b, CASE(.group = "table4", .name = "nested loops", .rows = {loops, loops},
                .algorithms = {WF_JOIN_NINLJ}, .algorithm_count = 1));
    add(b, CASE(.group = "table4", .name = "uniform", .rows = {n, n}));
    for (int sequential = 0; sequential < 2; sequential++) {
        add(b, CASE(.group = "fig11", .name = "search", .rows = {n / 16, n / 16},
                    .sequential = sequential,
                    .algorithms = {WF_JOIN_INLJ, WF_JOIN_SMJ, WF_JOIN_RADIX_HASH},
                    .algorithm_count = 3));
    }
    add(b, CASE(.group = "fig12", .name = "from and to the host", .rows = {n, n}, .from_host = 1));
    static const int shares[] = {0, 25, 50, 75, 100};
    static const char *const selected[] = {"selectivity 0", "selectivity 25 %", "selectivity 50 %",
                                           "selectivity 75 %", "selectivity 100 %"};
    static const char *const repeated[] = {"duplicates 0", "duplicates 25 %", "duplicates 50 %",
                                           "duplicates 75 %", "duplicates 100 %"};
    for (int i = 0; i < 5; i++) {
        add(b, CASE(.group = "fig13", .name = selected[i], .rows = {n, n},
                    .missing = 100 - shares[i]));
    }
    for (int i = 0; i < 5; i++) {
        add(b,
            CASE(.group = "fig13", .name = repeated[i], .rows = {n, n}, .duplicates = shares[i]));
    }
    for (int64_t rows = n / 16; rows <= n * 8; rows *= 2) {
        add(b, CASE(.group = "fig14", .name = "size", .rows = {rows, rows},
                    .algorithms = {WF_JOIN_RADIX_HASH, WF_JOIN_PARTITIONED_HASH, WF_JOIN_PLAIN_HASH,
                                   WF_JOIN_AUTO},
                    .algorithm_count = 4));
    }
}

/* Dense keys, which a direct table or a split may suit: tables within and beyond the cache. */
static void run_dense(struct join_bench *b, int64_t n) {
    static const struct {
        const char *name;
        int r, s, columns; /* sixteenths of n */
    } cases[] = {{"n / 4 with n / 4", 4, 4, 0},
                 {"n / 2 with n / 2", 8, 8, 0},
                 {"n with n", 16, 16, 0},
                 {"4n with 4n", 64, 64, 0},
                 {"8n with 8n", 128, 128, 0},
                 {"8n with n / 2", 128, 8, 0},
                 {"8n with n", 128, 16, 0},
                 {"8n with 2n", 128, 32, 0},
                 {"8n with 4n", 128, 64, 0},
                 {"n with n, two columns", 16, 16, 1},
                 {"8n with n, two columns", 128, 16, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        add(b, CASE(.group = "direct", .name = cases[i].name,
                    .rows = {n / 16 * cases[i].r, n / 16 * cases[i].s},
                    .more_columns = cases[i].columns,
                    .algorithms = {WF_JOIN_DIRECT, WF_JOIN_PARTITIONED_HASH, WF_JOIN_AUTO},
                    .algorithm_count = 3));
    }
}

static void run_ours(struct join_bench *b, int64_t n) {
    static const char *const names[2][2] = {{"8n with 8n", "n with 8n"},
                                            {"8n with 8n, two columns", "n with 8n, two columns"}};
    for (int columns = 1; columns <= 2; columns++) {
        for (int i = 0; i < 2; i++) {
            add(b, CASE(.group = "today", .name = names[columns - 1][i],
                        .more_columns = columns - 1, .rows = {8 * n, i ? n : 8 * n}, .sparse = 1));
        }
    }
    static const int bands[] = {0, 1, 4, 16};
    static const char *const band_names[] = {"band 0", "band 1", "band 4", "band 16"};
    for (int i = 0; i < 4; i++) {
        add(b, CASE(.group = "band", .name = band_names[i], .rows = {n, n}, .band = true,
                    .width = bands[i], .algorithms = {WF_JOIN_INLJ, WF_JOIN_SMJ, WF_JOIN_AUTO},
                    .algorithm_count = 3));
    }
    add(b, CASE(.group = "skew", .name = "uniform", .rows = {n, n}, .sparse = 1));
    add(b, CASE(.group = "skew", .name = "zipf in R", .rows = {n, n}, .sparse = 1, .zipf = 1));
    add(b, CASE(.group = "skew", .name = "half of R one key", .rows = {n, n}, .sparse = 1,
                .duplicates = 50));
    add(b, CASE(.group = "skew", .name = "R all equal", .rows = {n, n}, .sparse = 1,
                .duplicates = 100));
    add(b, CASE(.group = "skew", .name = "1 % of S one key", .rows = {n, n}, .sparse = 1,
                .s_duplicates = 1));
    add(b, CASE(.group = "skew", .name = "half of S one key", .rows = {n, n}, .sparse = 1,
                .s_duplicates = 50));
    int64_t root = 1;
    while (root * root < n) {
        root *= 2;
    }
    add(b, CASE(.group = "skew", .name = "both all equal", .rows = {root, root}, .duplicates = 100,
                .both = 1));
    run_dense(b, n);
    static const char *const choice_names[2][3] = {
        {"dense, n / 256", "dense, n / 16", "dense, n"},
        {"sparse, n / 256", "sparse, n / 16", "sparse, n"}};
    for (int sparse = 0; sparse < 2; sparse++) {
        for (int i = 0; i < 3; i++) {
            add(b, CASE(.group = "choice", .name = choice_names[sparse][i], .sparse = sparse,
                        .rows = {n, n >> (8 - 4 * i)}, .more_columns = i & 1));
        }
    }
}

int bench_join(const struct bench_options *options) {
    struct join_bench *b = calloc(1, sizeof *b);
    struct bench_db db;
    if (!b || options->rows > 1 << 28 || (options->rows && options->rows < 1024)) {
        fprintf(stderr, "bench: join takes 1,024 to 268,435,456 rows\n");
        free(b);
        return 2;
    }
    b->options = options;
    bench_open(&db, options);
    if (wf_prim_open(db.db, &b->prim) != WF_OK || !bench_sides_open(b->prim, b->options, b->side)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    int64_t n = options->rows ? options->rows : b->side[1].used ? 16 << 20 : 1 << 20;
    b->cpu_most = b->side[1].used ? 16 << 20 : INT64_MAX;
    if (!options->json) {
        printf("n = %lld", (long long)n);
        for (int side = 0; side < 2; side++) {
            if (b->side[side].used) {
                printf("; copy on %s %.1f GB/s", b->side[side].name, b->side[side].copy_gbs);
            }
        }
        if (options->markdown) {
            printf("\n\n| | case | algorithm | device | rows | ms | G tuples/s | GB/s | of copy | "
                   "CPU : GPU |\n|---|---|---|---|---|---|---|---|---|---|\n");
        } else {
            printf("\n%-7s %-28s %-15s %-4s %10s %10s %8s %8s %7s %8s\n", "", "", "algorithm", "",
                   "rows", "ms", "G tup/s", "GB/s", "of copy", "cpu:gpu");
        }
    }
    run_paper(b, n);
    run_ours(b, n);
    run_probe(b, 8 * n, n / 16);
    run_probe(b, 8 * n, n);
    run_probe(b, 8 * n, 8 * n);
    bool drawn = !options->plot || b->wrong ||
                 plot_write(options->plot, "Joins of two sides of equal size", "rows of a side",
                            "M tuples/s", b->series, b->series_count);
    int status = b->wrong || !drawn;
    wf_prim_close(b->prim);
    bench_close(&db);
    free(b);
    return status;
}

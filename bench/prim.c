/* prim.c: `bench prim`: primitives on arrays that lie on the device, each beside the ceiling.
 *
 * The ceiling is a copy of the same device's memory, measured in the same run: bytes in and out,
 * once, over the time. On the GPU a time is the device's own; copies are timed by the difference
 * between a long and a short one, which leaves the call itself out. Where CUB has the operation
 * and its module is there, both are measured by switching the setting gpu_cub. */
#include "bench_prim.h"
#include "bench_sides.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_ROWS = 100003, SIZES_MOST = 24 };

struct side { /* one device */
    struct bench_side on;
    struct prim_data d;
};

struct bench_run {
    const struct bench_options *options;
    wf_database *db;
    wf_prim *prim;
    struct side side[2]; /* cpu, gpu */
    struct plot_series series[64];
    int series_count;
    bool wrong;
};

static void must(struct bench_run *r, wf_status status, const char *what) {
    if (status != WF_OK) {
        fprintf(stderr, "bench: %s: %s\n", what, wf_prim_error(r->prim)->message);
        exit(1);
    }
}

/* --- data --- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static void fill_rows(struct prim_data *d) {
    int bits = 1;
    while (bits < 32 && (1LL << bits) < d->rows) {
        bits++;
    }
    for (int64_t i = 0; i < d->rows; i++) {
        d->keys[i] = (uint32_t)mix((uint64_t)i);
        d->order[i] = bench_shuffled((uint32_t)i, (uint32_t)d->rows, bits);
        d->same[i] = 77;
    }
    for (int wide = 0; wide < 2; wide++) {
        int64_t part = d->rows / (wide ? 4 : 2) / 64 * 64;
        for (int64_t i = 0; i < 2 * part; i++) {
            uint64_t up = (uint64_t)(i % part) * 4 + mix((uint64_t)i) % 4;
            if (wide) {
                d->up_wide[i] = up;
            } else {
                d->up[i] = (uint32_t)up;
            }
        }
    }
    uint64_t half = (uint64_t)d->rows / 2;
    for (int64_t s = 0; s <= d->segments; s++) {
        uint64_t at = (uint64_t)s * SEGMENT_ROWS;
        d->even[s] = at < (uint64_t)d->rows ? at : (uint64_t)d->rows;
        d->skewed[s] =
            s == 0 ? 0
                   : half + (uint64_t)(s - 1) * ((uint64_t)d->rows - half) / (uint64_t)d->segments;
    }
}

static void *room(struct bench_run *r, wf_place place, int64_t bytes) {
    void *data = NULL;
    must(r, wf_prim_alloc(r->prim, place, bytes, &data), "memory");
    return data;
}

static struct prim_data data_new(struct bench_run *r, wf_place place, int64_t rows) {
    struct prim_data d = {.rows = rows, .segments = rows / SEGMENT_ROWS + 1};
    d.keys = room(r, place, rows * 4);
    d.order = room(r, place, rows * 4);
    d.same = room(r, place, rows * 4);
    d.even = room(r, place, (d.segments + 1) * 8);
    d.skewed = room(r, place, (d.segments + 1) * 8);
    d.up = room(r, place, rows * 4);
    d.up_wide = room(r, place, rows * 4);
    d.out = room(r, place, rows * 4 + 16);
    d.out2 = room(r, place, rows * 4 + 16);
    d.bins = room(r, place, BINS_MOST * 8);
    return d;
}

static void data_free(struct bench_run *r, struct prim_data *d) {
    void *all[] = {d->up,   d->up_wide, d->keys, d->order, d->same,
                   d->even, d->skewed,  d->out,  d->out2,  d->bins};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wf_prim_free(r->prim, all[i]);
    }
    memset(d, 0, sizeof *d);
}

static void data_copy(struct bench_run *r, struct prim_data *to, const struct prim_data *from) {
    int64_t ends = (from->segments + 1) * 8;
    must(r, wf_prim_copy(r->prim, to->keys, from->keys, from->rows * 4), "copy");
    must(r, wf_prim_copy(r->prim, to->order, from->order, from->rows * 4), "copy");
    must(r, wf_prim_copy(r->prim, to->same, from->same, from->rows * 4), "copy");
    must(r, wf_prim_copy(r->prim, to->up, from->up, from->rows * 4), "copy");
    must(r, wf_prim_copy(r->prim, to->up_wide, from->up_wide, from->rows * 4), "copy");
    must(r, wf_prim_copy(r->prim, to->even, from->even, ends), "copy");
    must(r, wf_prim_copy(r->prim, to->skewed, from->skewed, ends), "copy");
}

/* --- measuring --- */

/* Seconds of the fastest run after one to warm up; below zero: the device refused, which is told.
 */
static double measure(struct bench_run *r, const struct side *s, const struct prim_experiment *e,
                      bool *out_cub) {
    struct prim_case c = {r->prim, s->on.place, &s->d, 0};
    double best = 1e30;
    for (int i = 0; i <= r->options->runs; i++) {
        if (e->run(&c, e->arg) != WF_OK) {
            fprintf(stderr, "bench: %s on %s: %s\n", e->name, s->on.name,
                    wf_prim_error(r->prim)->message);
            return -1;
        }
        double seconds =
            1e-9 * (double)wf_prim_metric(r->prim, s->on.place == WF_ON_GPU ? "device_ns" : "ns");
        best = i > 0 && seconds < best ? seconds : best;
        if (seconds > 3) { /* slow ones are measured once */
            best = seconds < best ? seconds : best;
            break;
        }
    }
    *out_cub = wf_prim_metric(r->prim, "cub") == 1;
    return best;
}

/* Once, small, with arrays of the host. */
static void check(struct bench_run *r, const struct side *s, const struct prim_experiment *e,
                  const struct prim_data *small) {
    struct prim_case c = {r->prim, s->on.place, small, 0};
    if (e->run(&c, e->arg) != WF_OK) { /* measuring will say why */
        r->wrong |= strcmp(wf_prim_error(r->prim)->sqlstate, "0A000") != 0;
        return;
    }
    if (!e->check(&c, e->arg)) {
        fprintf(stderr, "bench: %s on %s: wrong answer\n", e->name, s->on.name);
        r->wrong = true;
    }
}

/* --- output --- */

struct figures {
    double seconds[2]; /* cpu, gpu; 0: not measured */
    double cub;
};

static void print_head(const struct bench_run *r, int64_t rows) {
    if (r->options->json) {
        return;
    }
    printf("\n%lld rows", (long long)rows);
    for (int s = 0; s < 2; s++) {
        if (r->side[s].on.used) {
            printf("; copy on %s %.1f GB/s", r->side[s].on.name, r->side[s].on.copy_gbs);
        }
    }
    if (r->options->markdown) {
        printf("\n\n| | device | ms | M rows/s | GB/s | of copy | CPU : GPU | ours : CUB |\n"
               "|---|---|---|---|---|---|---|---|\n");
        return;
    }
    printf("\n%-26s %-4s %10s %10s %9s %9s %9s %9s\n", "", "", "ms", "M rows/s", "GB/s", "of copy",
           "cpu:gpu", "ours:CUB");
}

static void print_line(const struct bench_run *r, const struct prim_experiment *e, int s,
                       int64_t rows, const struct figures *f) {
    const struct side *side = &r->side[s];
    double seconds = f->seconds[s];
    double gbs = 1e-9 * e->bytes * (double)rows / seconds;
    double share = side->on.copy_gbs > 0 ? gbs / side->on.copy_gbs : 0;
    double ratio = f->seconds[0] > 0 && f->seconds[1] > 0 ? f->seconds[0] / f->seconds[1] : 0;
    double cub = s == 1 && f->cub > 0 ? f->cub / seconds : 0;
    if (r->options->json) {
        printf("{\"bench\":\"prim\",\"name\":\"%s\",\"device\":\"%s\",\"rows\":%lld,\"ms\":%.4f,"
               "\"gb_per_s\":%.2f,\"copy_gb_per_s\":%.2f,\"share\":%.4f,\"cpu_gpu\":%.2f,"
               "\"cub_ms\":%.4f}\n",
               e->name, side->on.name, (long long)rows, seconds * 1e3, gbs, side->on.copy_gbs,
               share, ratio, s == 1 ? f->cub * 1e3 : 0.0);
        return;
    }
    char text[2][16] = {"", ""};
    snprintf(text[0], sizeof text[0], "%.1f", ratio);
    snprintf(text[1], sizeof text[1], "%.2f", cub);
    printf(r->options->markdown ? "| %s | %s | %.3f | %.1f | %.1f | %.1f %% | %s | %s |\n"
                                : "%-26s %-4s %10.3f %10.1f %9.1f %8.1f%% %9s %9s\n",
           e->name, side->on.name, seconds * 1e3, 1e-6 * (double)rows / seconds, gbs, share * 100,
           ratio > 0 && s == 1 ? text[0] : "", cub > 0 ? text[1] : "");
    fflush(stdout);
}

static void plot_point(struct bench_run *r, const struct prim_experiment *e, const char *suffix,
                       int64_t rows, double seconds) {
    char name[64];
    snprintf(name, sizeof name, "%s, %s", e->name, suffix);
    int at = 0;
    while (at < r->series_count && strcmp(r->series[at].name, name) != 0) {
        at++;
    }
    if (at == r->series_count && at < (int)(sizeof r->series / sizeof *r->series)) {
        r->series_count++;
        memset(&r->series[at], 0, sizeof r->series[at]);
        snprintf(r->series[at].name, sizeof r->series[at].name, "%s", name);
    }
    if (at < r->series_count && r->series[at].count < PLOT_POINTS) {
        struct plot_series *s = &r->series[at];
        s->x[s->count] = (double)rows;
        s->y[s->count++] = 1e-9 * e->bytes * (double)rows / seconds;
    }
}

/* --- runs --- */

static void run_experiment(struct bench_run *r, const struct prim_experiment *e, int64_t rows) {
    struct figures f = {{0, 0}, 0};
    bool cub = false;
    for (int s = 0; s < 2; s++) {
        if (r->side[s].on.used) {
            must(r, wf_prim_setting(r->prim, "gpu_cub", "off"), "gpu_cub");
            f.seconds[s] = measure(r, &r->side[s], e, &cub);
        }
    }
    if (f.seconds[1] > 0) {
        must(r, wf_prim_setting(r->prim, "gpu_cub", "on"), "gpu_cub");
        double seconds = measure(r, &r->side[1], e, &cub);
        f.cub = cub ? seconds : 0;
    }
    for (int s = 0; s < 2; s++) {
        if (f.seconds[s] > 0) {
            print_line(r, e, s, rows, &f);
            plot_point(r, e, r->side[s].on.name, rows, f.seconds[s]);
        }
    }
    if (f.cub > 0) {
        plot_point(r, e, "CUB", rows, f.cub);
    }
}

/* Number e of both lists. */
static const struct prim_experiment *experiment_at(int e) {
    return e < prim_experiment_count ? &prim_experiments[e]
                                     : &prim_order_experiments[e - prim_experiment_count];
}
static int experiment_count(void) {
    return prim_experiment_count + prim_order_experiment_count;
}

static bool wanted(const struct bench_run *r, const struct prim_experiment *e) {
    bool named = !r->options->only || strstr(e->name, r->options->only) ||
                 (e->paper && strstr(e->paper, r->options->only));
    return named && (!r->options->plot || r->options->only || e->plotted);
}

static void run_size(struct bench_run *r, int64_t rows) {
    struct prim_data host = data_new(r, WF_ON_CPU, rows);
    fill_rows(&host);
    for (int s = 0; s < 2; s++) {
        struct side *side = &r->side[s];
        if (side->on.used) {
            side->d = host;
            if (side->on.place == WF_ON_GPU) {
                side->d = data_new(r, WF_ON_GPU, rows);
                data_copy(r, &side->d, &host);
            }
        }
    }
    print_head(r, rows);
    for (int e = 0; e < experiment_count(); e++) {
        if (wanted(r, experiment_at(e))) {
            run_experiment(r, experiment_at(e), rows);
        }
    }
    if (r->side[1].on.used) {
        data_free(r, &r->side[1].d);
    }
    data_free(r, &host);
}

static void check_all(struct bench_run *r) {
    struct prim_data small = data_new(r, WF_ON_CPU, SMALL_ROWS);
    fill_rows(&small);
    for (int e = 0; e < experiment_count(); e++) {
        for (int s = 0; s < 2; s++) {
            for (int cub = 0; cub <= s && r->side[s].on.used && wanted(r, experiment_at(e));
                 cub++) {
                must(r, wf_prim_setting(r->prim, "gpu_cub", cub ? "on" : "off"), "gpu_cub");
                check(r, &r->side[s], experiment_at(e), &small);
            }
        }
    }
    data_free(r, &small);
}

static bool open_sides(struct bench_run *r) {
    struct bench_side sides[2];
    bool any = bench_sides_open(r->prim, r->options, sides);
    r->side[0].on = sides[0];
    r->side[1].on = sides[1];
    return any;
}

static int list_sizes(const struct bench_run *r, int64_t sizes[SIZES_MOST]) {
    bool gpu = r->side[1].on.used;
    int64_t most = r->options->rows ? r->options->rows : gpu ? 256 << 20 : 16 << 20;
    int count = 0;
    bool sizes_asked = r->options->only && strcmp(r->options->only, "fig14") == 0;
    if (r->options->plot || sizes_asked) {
        int64_t least = r->options->plot ? 1 << 16 : 1 << 20;
        for (int64_t rows = least; rows < most && count < SIZES_MOST - 1; rows *= 4) {
            sizes[count++] = rows;
        }
    } else if (!r->options->rows && gpu) {
        sizes[count++] = 16 << 20;
    }
    sizes[count++] = most;
    return count;
}

int bench_prim(const struct bench_options *options) {
    struct bench_run *r = calloc(1, sizeof *r);
    struct bench_db db;
    int64_t sizes[SIZES_MOST];
    if (!r || options->rows > UINT32_MAX || (options->rows && options->rows < SEGMENT_ROWS)) {
        fprintf(stderr, "bench: prim takes %d to %u rows\n", SEGMENT_ROWS, UINT32_MAX);
        free(r);
        return 2;
    }
    r->options = options;
    bench_open(&db, options);
    r->db = db.db;
    if (wf_prim_open(db.db, &r->prim) != WF_OK || !open_sides(r)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    check_all(r);
    int count = r->wrong ? 0 : list_sizes(r, sizes);
    for (int i = 0; i < count; i++) {
        run_size(r, sizes[i]);
    }
    bool drawn = !options->plot || r->wrong ||
                 plot_write(options->plot, "Primitives on arrays", "rows", "GB/s, in and out once",
                            r->series, r->series_count);
    int status = r->wrong || !drawn;
    wf_prim_close(r->prim);
    bench_close(&db);
    free(r);
    return status;
}

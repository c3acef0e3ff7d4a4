/* ops.c: `bench ops`: relational algebra on packed tuples that lie on the device, after "Efficient
 * relational algebra algorithms and data structures for GPU" (Diamos et al.).
 *
 * First Fig. 9: every operator over sizes, for tuples of 32 and of 64 bits, as bytes in and out,
 * each counted once, over the time, beside a copy of the same device's memory. Then, for the join:
 * the share of its stages, key distributions, and Table 3: cycles per tuple given of the ways a
 * block joins two tiles. Every operator's answer is compared with a plain loop's first, small. */
#include "bench_ops.h"
#include "bench_sides.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_ROWS = 10007, SIZES_MOST = 16, STAGES = WF_STAGE_NETWORK + 1 };

struct side {
    struct bench_side on;
    struct ops_data d;
};

struct ops_run {
    const struct bench_options *options;
    wf_prim *prim;
    struct side side[2]; /* cpu, gpu */
    struct plot_series series[32];
    int series_count;
    bool wrong;
};

static void must(struct ops_run *r, bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "bench: %s: %s\n", what, wf_prim_error(r->prim)->message);
        exit(1);
    }
}

/* --- measuring --- */

/* Seconds of the fastest run after one to warm up; below zero: refused, which is told. */
static double measure(struct ops_run *r, const struct side *s, const struct ops_experiment *e,
                      struct ops_case *c) {
    double best = 1e30;
    for (int i = 0; i <= r->options->runs; i++) {
        if (e->run(c, e->arg) != WF_OK) {
            fprintf(stderr, "bench: %s on %s: %s\n", e->name, s->on.name,
                    wf_prim_error(r->prim)->message);
            return -1;
        }
        double seconds =
            1e-9 * (double)wf_prim_metric(r->prim, s->on.place == WF_ON_GPU ? "device_ns" : "ns");
        best = i > 0 && seconds < best ? seconds : best;
    }
    return best;
}

/* --- answers --- */

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 29;
}

static uint64_t digest(const void *words, int bytes, int64_t count, bool unordered) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t w = bytes == 4 ? ((const uint32_t *)words)[i] : ((const uint64_t *)words)[i];
        sum += mixed(w + (unordered ? 0 : (uint64_t)i * 0x9e3779b97f4a7c15ULL));
    }
    return sum;
}

static void check(struct ops_run *r, const struct side *s, const struct ops_experiment *e,
                  const struct ops_data *small, const wf_rel_join *join) {
    struct ops_case c = {.prim = r->prim, .place = s->on.place, .d = small, .join = *join};
    uint64_t *expected = malloc((size_t)small->rows * 2 * 8);
    if (!expected || e->run(&c, e->arg) != WF_OK) { /* measuring will say why */
        r->wrong |= strcmp(wf_prim_error(r->prim)->sqlstate, "0A000") != 0;
        free(expected);
        return;
    }
    int64_t count = e->answer ? e->answer(small, e->arg, expected) : c.out_rows;
    bool same = count == c.out_rows &&
                (!e->answer || digest(expected, 8, count, e->unordered) ==
                                   digest(small->out, small->bytes, count, e->unordered));
    if (!same || (e->check && !e->check(&c, e->arg))) {
        fprintf(stderr, "bench: %s on %s: wrong answer (%lld tuples, %lld expected)\n", e->name,
                s->on.name, (long long)c.out_rows, (long long)count);
        r->wrong = true;
    }
    free(expected);
}

static bool wanted(const struct ops_run *r, const struct ops_experiment *e) {
    bool figure = r->options->only && strcmp(r->options->only, "fig9") == 0;
    return !r->options->only || strstr(e->name, r->options->only) || (figure && e->plotted);
}

static void check_all(struct ops_run *r) {
    for (int bytes = 4; bytes <= 8; bytes += 4) {
        struct ops_data small;
        must(r, ops_make(r->prim, &small, SMALL_ROWS, bytes, KEYS_UNIFORM), "memory");
        for (int e = 0; e < ops_experiment_count; e++) {
            for (int s = 0; s < 2; s++) {
                if (r->side[s].on.used && wanted(r, &ops_experiments[e])) {
                    check(r, &r->side[s], &ops_experiments[e], &small, &(wf_rel_join){0});
                }
            }
        }
        ops_free(r->prim, &small);
    }
}

/* --- Fig. 9 --- */

static void plot_point(struct ops_run *r, const char *name, int bytes, const char *device,
                       int64_t rows, double percent) {
    char label[64];
    snprintf(label, sizeof label, "%s, %d bits, %s", name, bytes * 8, device);
    int at = 0;
    while (at < r->series_count && strcmp(r->series[at].name, label) != 0) {
        at++;
    }
    if (at == (int)(sizeof r->series / sizeof *r->series)) {
        return;
    }
    struct plot_series *s = &r->series[at];
    if (at == r->series_count) {
        r->series_count++;
        snprintf(s->name, sizeof s->name, "%s", label);
    }
    if (s->count < PLOT_POINTS) {
        s->x[s->count] = (double)rows;
        s->y[s->count++] = percent;
    }
}

static void print_line(struct ops_run *r, const struct ops_experiment *e, int s,
                       const struct ops_case *c, const double seconds[2]) {
    const struct side *side = &r->side[s];
    double gbs = 1e-9 * (double)c->bytes / seconds[s];
    double share = side->on.copy_gbs > 0 ? gbs / side->on.copy_gbs : 0;
    double ratio = seconds[0] > 0 && seconds[1] > 0 ? seconds[0] / seconds[1] : 0;
    if (e->plotted) {
        plot_point(r, e->name, side->d.bytes, side->on.name, side->d.rows, share * 100);
    }
    if (r->options->json) {
        printf("{\"bench\":\"ops\",\"name\":\"%s\",\"device\":\"%s\",\"bits\":%d,\"rows\":%lld,"
               "\"out_rows\":%lld,\"ms\":%.4f,\"gb_per_s\":%.2f,\"copy_gb_per_s\":%.2f,"
               "\"share\":%.4f,\"cpu_gpu\":%.2f}\n",
               e->name, side->on.name, side->d.bytes * 8, (long long)side->d.rows,
               (long long)c->out_rows, seconds[s] * 1e3, gbs, side->on.copy_gbs, share, ratio);
        return;
    }
    char text[16] = "";
    if (ratio > 0 && s == 1) {
        snprintf(text, sizeof text, "%.1f", ratio);
    }
    printf(r->options->markdown ? "| %s | %s | %.3f | %.1f | %.1f | %.1f %% | %s |\n"
                                : "%-24s %-4s %10.3f %10.1f %9.1f %8.1f%% %9s\n",
           e->name, side->on.name, seconds[s] * 1e3, 1e-6 * (double)side->d.rows / seconds[s], gbs,
           share * 100, text);
    fflush(stdout);
}

static bool sides_open(struct ops_run *r, int64_t rows, int bytes, enum ops_keys keys) {
    struct ops_data host;
    if (!ops_make(r->prim, &host, rows, bytes, keys)) {
        fprintf(stderr, "bench: %lld tuples of %d bits: %s\n", (long long)rows, bytes * 8,
                wf_prim_error(r->prim)->message);
        ops_free(r->prim, &host);
        return false;
    }
    r->side[0].d = host;
    if (r->side[1].on.used && !ops_copy(r->prim, &r->side[1].d, &host)) {
        fprintf(stderr, "bench: %lld tuples of %d bits on the GPU: %s\n", (long long)rows,
                bytes * 8, wf_prim_error(r->prim)->message);
        ops_free(r->prim, &r->side[1].d);
        ops_free(r->prim, &host);
        return false;
    }
    return true;
}

static void sides_close(struct ops_run *r) {
    if (r->side[1].on.used) {
        ops_free(r->prim, &r->side[1].d);
    }
    ops_free(r->prim, &r->side[0].d);
}

static void run_size(struct ops_run *r, int64_t rows, int bytes) {
    int any = 0;
    for (int i = 0; i < ops_experiment_count; i++) {
        any += wanted(r, &ops_experiments[i]);
    }
    if (!any || !sides_open(r, rows, bytes, KEYS_UNIFORM)) {
        return;
    }
    if (!r->options->json) {
        printf("\n%lld tuples of %d bits\n", (long long)rows, bytes * 8);
        if (r->options->markdown) {
            printf("\n| | device | ms | M rows/s | GB/s | of copy | CPU : GPU |\n"
                   "|---|---|---|---|---|---|---|\n");
        } else {
            printf("%-24s %-4s %10s %10s %9s %9s %9s\n", "", "", "ms", "M rows/s", "GB/s",
                   "of copy", "cpu:gpu");
        }
    }
    for (int i = 0; i < ops_experiment_count; i++) {
        const struct ops_experiment *e = &ops_experiments[i];
        struct ops_case c[2];
        double seconds[2] = {0, 0};
        for (int s = 0; s < 2 && wanted(r, e); s++) {
            c[s] = (struct ops_case){
                .prim = r->prim, .place = r->side[s].on.place, .d = &r->side[s].d};
            seconds[s] = r->side[s].on.used ? measure(r, &r->side[s], e, &c[s]) : 0;
        }
        for (int s = 0; s < 2; s++) {
            if (seconds[s] > 0) {
                print_line(r, e, s, &c[s], seconds);
            }
        }
    }
    sides_close(r);
}

/* --- the join's stages, distributions, and ways of a block --- */

static const struct ops_experiment join_sparse = {"JOIN", 0,     ops_run_join, ops_answer_join,
                                                  false,  false, NULL};
static const char *const stage_names[] = {"merge",       "binary search", "blocked binary search",
                                          "brute force", "hash table",    "join network"};

static void print_join(struct ops_run *r, const char *what, const char *keys, double seconds,
                       const struct ops_case *c) {
    static const char *const cycles[] = {"load_cycles", "compute_cycles", "place_cycles",
                                         "gather_cycles"};
    double part = 1e-9 * (double)wf_prim_metric(r->prim, "partition_ns") / seconds;
    double all = 0;
    double shares[4];
    for (int i = 0; i < 4; i++) {
        shares[i] = (double)wf_prim_metric(r->prim, cycles[i]);
        all += shares[i];
    }
    double per_row = c->out_rows ? shares[1] / (double)c->out_rows : 0;
    for (int i = 0; i < 4; i++) {
        shares[i] = all > 0 ? shares[i] / all * (1 - part) : 0;
    }
    double gbs = 1e-9 * (double)c->bytes / seconds;
    if (r->options->json) {
        printf("{\"bench\":\"ops\",\"name\":\"join stages\",\"way\":\"%s\",\"keys\":\"%s\","
               "\"rows\":%lld,\"out_rows\":%lld,\"ms\":%.4f,\"gb_per_s\":%.2f,\"partition\":%.4f,"
               "\"load\":%.4f,\"compute\":%.4f,\"place\":%.4f,\"gather\":%.4f,"
               "\"cycles_per_row\":%.1f}\n",
               what, keys, (long long)c->d->rows, (long long)c->out_rows, seconds * 1e3, gbs, part,
               shares[0], shares[1], shares[2], shares[3], per_row);
        return;
    }
    printf(r->options->markdown
               ? "| %s | %s | %.3f | %.1f | %.1f %% | %.1f %% | %.1f %% | %.1f %% | "
                 "%.1f %% | %.1f |\n"
               : "%-22s %-8s %9.3f %9.1f %9.1f%% %5.1f%% %7.1f%% %5.1f%% %6.1f%% "
                 "%10.1f\n",
           what, keys, seconds * 1e3, gbs, part * 100, shares[0] * 100, shares[1] * 100,
           shares[2] * 100, shares[3] * 100, per_row);
    fflush(stdout);
}

/* Every way of joining tiles, small, on every distribution. */
static void check_stages(struct ops_run *r) {
    for (int keys = 0; keys < KEYS_KINDS; keys++) {
        struct ops_data small;
        must(r, ops_make(r->prim, &small, SMALL_ROWS, 4, (enum ops_keys)keys), "memory");
        for (int i = 0; i < 2 * STAGES; i++) {
            wf_rel_join join = {WF_REL_INNER, (wf_join_stage)(i % STAGES), 0, 0};
            if (r->side[i / STAGES].on.used) {
                check(r, &r->side[i / STAGES], &join_sparse, &small, &join);
            }
        }
        ops_free(r->prim, &small);
    }
}

static void run_join_stages(struct ops_run *r, int64_t rows, struct side *s) {
    if (!r->options->json) {
        printf(
            "\nJOIN of %lld tuples of 32 bits on the %s, its stages; cycles are those of blocks in "
            "the compute stage\n",
            (long long)rows, s->on.name);
        printf(r->options->markdown ? "\n| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n"
                                      "|---|---|---|---|---|---|---|---|---|---|\n"
                                    : "%-22s %-8s %9s %9s %10s %6s %8s %6s %7s %10s\n",
               "", "keys", "ms", "GB/s", "partition", "load", "compute", "place", "gather",
               "cycles/row");
    }
    for (int keys = 0; keys < KEYS_KINDS; keys++) {
        if (!sides_open(r, rows, 4, (enum ops_keys)keys)) {
            return;
        }
        for (int stage = WF_STAGE_MERGE; stage <= WF_STAGE_NETWORK; stage++) {
            struct ops_case c = {.prim = r->prim, .place = s->on.place, .d = &s->d};
            c.join = (wf_rel_join){WF_REL_INNER, (wf_join_stage)stage, 0, 1};
            double seconds = measure(r, s, &join_sparse, &c);
            if (seconds > 0) {
                print_join(r, stage_names[stage], ops_key_names[keys], seconds, &c);
            }
        }
        sides_close(r);
    }
}

/* --- runs --- */

static bool open_sides(struct ops_run *r) {
    struct bench_side sides[2];
    bool any = bench_sides_open(r->prim, r->options, sides);
    r->side[0].on = sides[0];
    r->side[1].on = sides[1];
    return any;
}

static int list_sizes(const struct ops_run *r, int64_t sizes[SIZES_MOST]) {
    int count = 0;
    if (r->options->rows) {
        sizes[count++] = r->options->rows;
        return count;
    }
    int64_t most = r->side[1].on.used ? 16 << 20 : 4 << 20;
    for (int64_t rows = 8192; rows < most; rows *= 4) {
        sizes[count++] = rows;
    }
    sizes[count++] = most;
    if (r->side[1].on.used) {
        sizes[count++] = 128 << 20;
        sizes[count++] = 256 << 20;
    }
    return count;
}

static void print_ceilings(const struct ops_run *r) {
    for (int s = 0; s < 2; s++) {
        if (r->side[s].on.used && !r->options->json) {
            printf("copy on %s: %.1f GB/s\n", r->side[s].on.name, r->side[s].on.copy_gbs);
        }
    }
}

int bench_ops(const struct bench_options *options) {
    struct ops_run *r = calloc(1, sizeof *r);
    struct bench_db db;
    int64_t sizes[SIZES_MOST];
    if (!r || options->rows > 256 << 20) {
        fprintf(stderr, "bench: ops takes at most %d rows\n", 256 << 20);
        free(r);
        return 2;
    }
    r->options = options;
    bench_open(&db, options);
    if (wf_prim_open(db.db, &r->prim) != WF_OK || !open_sides(r)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    check_all(r);
    int count = r->wrong ? 0 : list_sizes(r, sizes);
    print_ceilings(r);
    for (int bytes = 4; bytes <= 8; bytes += 4) {
        for (int i = 0; i < count; i++) {
            run_size(r, sizes[i], bytes);
        }
    }
    if (count && (!options->only || strstr("JOIN stages", options->only))) {
        check_stages(r);
        for (int s = 0; s < 2 && !r->wrong; s++) {
            int64_t most = s ? 16 << 20 : 1 << 20; /* all against all takes its time */
            if (r->side[s].on.used) {
                run_join_stages(r, sizes[count - 1] < most ? sizes[count - 1] : most, &r->side[s]);
            }
        }
    }
    bool drawn = !options->plot || r->wrong ||
                 plot_write(options->plot, "Relational algebra on packed tuples", "tuples",
                            "% of a copy", r->series, r->series_count);
    int status = r->wrong || !drawn;
    wf_prim_close(r->prim);
    bench_close(&db);
    free(r);
    return status;
}

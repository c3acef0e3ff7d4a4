/* weave.c: `bench weave`: what fusing operators gains, by the five patterns of Fig. 24 of Wu's thesis
 * ("Acceleration and Execution of Relational Queries Using GPGPU", chapter 4).
 *
 * Fused, a pattern is a query, run by woven kernels or by the CPU's pipelines, whose answer stays
 * where it was made: steps that read it afterwards do not count. Unfused, it is a sequence of the
 * library's operators on columns of the same values, each of which writes its result
 * (weave_library.c), and twice more of its relational algebra on packed tuples (weave_algebra.c; of
 * (e), which has none, the former): in one pass an operator, and as the thesis has them, partition,
 * compute, gather. These are given relations in the order of their keys, so what they are compared with
 * reads tables in that order, too. Time is that of kernels on a
 * GPU, without transfers, and that of the steps on the CPU. Bytes are those operators read and
 * write; fusion cannot gain more than their ratio unless what it saves is more than bytes. Sizes
 * are those of the tuples, 16 bytes a row. Answers of the smallest size are compared with those
 * of plain loops. */
#include "bench_sides.h"
#include "bench_weave.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TUPLE_BYTES = 16, PERCENT = 50, SERIES_MAX = 16, LEAST_ROWS = 1000 };

/* `q` and for (d) `p` are what the pattern makes; one reader takes all of it and another the first row,
 * which no pipeline does at once, so that it is kept where it was made. */
static const struct {
    const char *name, *text;
    const char *sql;    /* the tables it makes; {1}: the border, {2}: behind names of tables */
    const char *reads;  /* a query of them that keeps them from being fused into it */
    const char *checks; /* the number of their rows, and the sum of all values */
} patterns[WEAVE_PATTERNS] = {
    [WEAVE_SELECTS] =
        {"a", "three SELECTs, PROJECT",
         "q(v) as materialized (select k from t where a < {1} and b < {1} and c < {1})",
         "(select v from q limit 1), (select max(v) from q)",
         "(select count(*) from q), (select sum(v) from q)"},
    [WEAVE_JOINS] =
        {"b", "two JOINs",
         "q(v, v2, v3) as materialized (select r.a, s.d, u.e from r join s{2} s on r.k = s.k "
         "join u{2} u on r.k = u.k)",
         "(select v from q limit 1), max(v), max(v2), max(v3) from q",
         "(select count(*) from q), (select sum(v::bigint + v2 + v3) from q)"},
    [WEAVE_SELECTED] =
        {"c", "JOINs of three selected tables",
         "q(v, v2, v3) as materialized (select r.a, s.d, u.e from r join s{2} s on r.k = s.k "
         "join u{2} u on r.k = u.k where r.a < {1} and s.d < {1} and u.e < {1})",
         "(select v from q limit 1), max(v), max(v2), max(v3) from q",
         "(select count(*) from q), (select sum(v::bigint + v2 + v3) from q)"},
    [WEAVE_SHARED] =
        {"d", "two SELECTs of one table",
         "p(v) as materialized (select k from t where a < {1}), "
         "q(v) as materialized (select c from t where b < {1})",
         "(select v from p limit 1), (select max(v) from p), (select v from q limit 1), "
         "(select max(v) from q)",
         "(select count(*) from p) + (select count(*) from q), "
         "(select sum(v) from p) + (select sum(v) from q)"},
    [WEAVE_MATH] = {"e", "price * (1 - discount) * (1 + tax)",
                    "q(v) as materialized (select p * (1::real - d) * (1::real + x) from f)",
                    "(select v from q limit 1), (select max(v) from q)",
                    "(select count(*) from q), (select sum(v) from q)"},
    [WEAVE_PAIR] = {"sweep", "two SELECTs",
                    "q(v) as materialized (select k from t where a < {1} and b < {1})",
                    "(select v from q limit 1), (select max(v) from q)",
                    "(select count(*) from q), (select sum(v) from q)"},
};

/* What the fused form is compared with. */
enum other { UNFUSED, TUPLES, STAGES, OTHERS };
static const char *const other_names[OTHERS] = {"unfused", "tuples", "stages"};
static const char *const other_texts[OTHERS] = {
    "operators on columns", "operators on packed tuples", "partition, compute, gather"};

struct weave {
    const struct bench_options *options;
    struct bench_db db;
    wf_prim *prim;
    struct bench_side sides[2];
    int64_t rows; /* of the tables there are */
    bool check;
    int wrong;
    struct plot_series series[SERIES_MAX];
    int series_count;
    double logs[2][WEAVE_PATTERNS][OTHERS]; /* of speedups, by side */
    int log_count[2][WEAVE_PATTERNS];
};

/* --- the fused way ----------------------------------------------------------------------------- */

static void make_table(struct weave *w, const char *name, enum weave_column first, int count) {
    char sql[1200], item[200];
    int64_t rows = weave_rows(first, w->rows);
    size_t used = (size_t)snprintf(sql, sizeof sql, "create table %s as select ", name);
    for (int c = 0; c < count; c++) {
        weave_expression((enum weave_column)((int)first + c), w->rows, item, sizeof item);
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s%s", c ? ", " : "", item);
    }
    snprintf(sql + used, sizeof sql - used, " from generate_series(0::bigint, %lld) g(i)",
             (long long)rows - 1);
    bench_run(&w->db, sql);
}

static void make_tables(struct weave *w) {
    bench_run(&w->db, "set device = cpu");
    make_table(w, "t", T_K, 4);
    make_table(w, "f", F_PRICE, 3);
    make_table(w, "r", R_K, 2);
    make_table(w, "s", S_K, 2);
    make_table(w, "u", U_K, 2);
    bench_run(&w->db, "create table s_sorted as select * from s order by k");
    bench_run(&w->db, "create table u_sorted as select * from u order by k");
}

static void drop_tables(struct weave *w) {
    bench_run(&w->db, "drop table t, f, r, s, u, s_sorted, u_sorted");
}

struct query {
    enum weave_pattern pattern;
    int percent;
    bool sorted; /* tables in the order of their keys */
};

/* The pattern's tables, and `select` with what is read of them. */
static void query_text(const struct query *q, const char *before, const char *reads, char *out,
                       size_t cap) {
    char border[16];
    const char *values[] = {border, q->sorted ? "_sorted" : ""};
    snprintf(border, sizeof border, "%d", (int)weave_border(q->percent));
    size_t used = (size_t)snprintf(out, cap, "%s with ", before);
    used += bench_fill(patterns[q->pattern].sql, values, out + used, cap - used);
    snprintf(out + used, cap - used, " select %s", reads);
}

static double number(const wf_batch *batch, int column, int64_t row) {
    char text[64];
    wf_value_text(batch, column, row, text, sizeof text);
    return strtod(text, NULL);
}

static void fail(struct weave *w, const char *sql) {
    char text[1200];
    wf_error_text(wf_connection_error(w->db.conn), sql, text, sizeof text);
    fprintf(stderr, "bench: weave: %s\n", text);
    exit(1);
}

/* Columns of EXPLAIN (STEPS). */
enum {
    COL_OPERATORS = 2,
    COL_NS,
    COL_KERNEL_NS,
    COL_ROWS_IN = 7,
    COL_READ = 9,
    COL_WRITTEN,
    COL_PEAK = 15,
    COL_REGISTERS = 17
};
enum { FEW_ROWS = 16 }; /* of what becomes of scalar subqueries */

/* A step that writes one of the pattern's tables. */
static bool ends_pattern(const wf_batch *batch, int64_t row) {
    char label[400];
    wf_value_text(batch, COL_OPERATORS, row, label, sizeof label);
    size_t len = strlen(label), end = strlen(", Shared");
    return len > end && strcmp(label + len - end, ", Shared") == 0;
}

/* A step of the pattern rather than of what reads its tables. */
static bool is_part(const wf_batch *batch, int64_t row) {
    char label[400];
    wf_value_text(batch, COL_OPERATORS, row, label, sizeof label);
    return strncmp(label, "Shared", 6) != 0 && strncmp(label, "Aggregate", 9) != 0 &&
           number(batch, COL_ROWS_IN, row) > FEW_ROWS;
}

static void add_step(struct weave_cost *cost, const wf_batch *batch, int64_t row, bool gpu) {
    double ns = number(batch, COL_KERNEL_NS, row), peak = number(batch, COL_PEAK, row);
    int registers = (int)number(batch, COL_REGISTERS, row);
    int shared = (int)number(batch, COL_REGISTERS + 1, row);
    int occupancy = (int)number(batch, COL_REGISTERS + 2, row);
    cost->seconds += (gpu && ns > 0 ? ns : number(batch, COL_NS, row)) * 1e-9;
    cost->bytes += number(batch, COL_READ, row) + number(batch, COL_WRITTEN, row);
    cost->memory = peak > cost->memory ? peak : cost->memory;
    cost->registers = registers > cost->registers ? registers : cost->registers;
    cost->shared_bytes = shared > cost->shared_bytes ? shared : cost->shared_bytes;
    if (occupancy > 0 && (cost->occupancy == 0 || occupancy < cost->occupancy)) {
        cost->occupancy = occupancy;
    }
}

static struct weave_cost fused_once(struct weave *w, const struct query *q, bool gpu) {
    enum weave_pattern pattern = q->pattern;
    struct weave_cost cost = {0};
    char sql[1200];
    wf_result *result = NULL;
    const wf_batch *batch;
    query_text(q, "explain (steps)", patterns[pattern].reads, sql, sizeof sql);
    if (wf_query(w->db.conn, sql, &result) != WF_OK) {
        fail(w, sql);
    }
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        int64_t last = -1;
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            last = ends_pattern(batch, row) ? row : last;
        }
        if (last < 0) {
            fprintf(stderr, "bench: weave: no step of %s writes its rows\n",
                    patterns[pattern].text);
            exit(1);
        }
        for (int64_t row = 0; row <= last; row++) {
            if (is_part(batch, row)) {
                add_step(&cost, batch, row, gpu);
            }
        }
    }
    if (!gpu) { /* the tables lie in the database's memory */
        bool joins = pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED;
        double columns = joins ? 2 : pattern == WEAVE_MATH ? 3 : 4;
        cost.memory =
            (double)wf_result_metric(result, "peak_bytes") + 4 * columns * (double)w->rows;
    }
    wf_result_close(result);
    return cost;
}

/* The answer's rows and sum. */
static struct weave_sum fused_sum(struct weave *w, const struct query *q) {
    char sql[1200];
    wf_result *result = NULL;
    const wf_batch *batch;
    query_text(q, "", patterns[q->pattern].checks, sql, sizeof sql);
    if (wf_query(w->db.conn, sql, &result) != WF_OK ||
        wf_result_next_batch(result, &batch) != WF_OK || !batch) {
        fail(w, sql);
    }
    struct weave_sum out = {number(batch, 0, 0), number(batch, 1, 0)};
    wf_result_close(result);
    return out;
}

/* --- measuring --------------------------------------------------------------------------------- */

static bool near(struct weave_sum a, struct weave_sum b) {
    return a.rows == b.rows && fabs(a.sum - b.sum) <= 1e-5 * fabs(b.sum);
}

static void check_sum(struct weave *w, enum weave_pattern pattern, const char *way,
                      struct weave_sum got) {
    struct weave_sum want = weave_plain(pattern, w->rows, PERCENT);
    if (!near(got, want)) {
        fprintf(stderr,
                "bench: weave: %s of %s: %.0f rows with sum %.6g instead of %.0f with %.6g\n", way,
                patterns[pattern].text, got.rows, got.sum, want.rows, want.sum);
        w->wrong++;
    }
}

static void use_side(struct weave *w, const struct bench_side *side) {
    char sql[100];
    snprintf(sql, sizeof sql, "set device = %s", side->name);
    bench_run(&w->db, sql);
    if (side->place == WF_ON_GPU) {
        bench_run(&w->db, "set gpu_code = woven");
    }
}

struct pair {
    struct weave_cost fused, by_key; /* by_key: of tables in the order of their keys */
    struct weave_cost others[OTHERS]; /* seconds 0: there is none */
};

static void take_best(struct weave_cost *best, int run, struct weave_cost cost) {
    if (run > 0 && (best->seconds == 0 || cost.seconds < best->seconds)) {
        *best = cost;
    }
}

static void measure_tuples(struct weave *w, const struct bench_side *side,
                           enum weave_pattern pattern, int percent, struct pair *out) {
    struct weave_algebra *a = weave_algebra_open(w->prim, side->place, pattern, w->rows);
    for (int other = TUPLES; other <= STAGES; other++) {
        struct weave_sum sum;
        for (int i = 0; i <= w->options->runs; i++) {
            bool check = w->check && i == 0;
            take_best(&out->others[other], i,
                      weave_algebra_run(a, other == STAGES, percent, check ? &sum : NULL));
        }
        if (w->check) {
            check_sum(w, pattern, other_texts[other], sum);
        }
    }
    weave_algebra_close(a);
}

static struct weave_cost measure_fused(struct weave *w, const struct bench_side *side,
                                       const struct query *q) {
    struct weave_cost best = {.seconds = 0};
    if (w->check) {
        check_sum(w, q->pattern, "the query's answer", fused_sum(w, q));
    }
    for (int i = 0; i <= w->options->runs; i++) {
        take_best(&best, i, fused_once(w, q, side->place == WF_ON_GPU));
    }
    return best;
}

static struct pair measure(struct weave *w, const struct bench_side *side,
                           enum weave_pattern pattern, int percent) {
    struct pair best = {.fused = {.seconds = 0}};
    struct query query = {pattern, percent, false};
    struct weave_sum sum;
    struct weave_library *lib = weave_library_open(w->prim, side->place, pattern, w->rows);
    for (int i = 0; i <= w->options->runs; i++) {
        bool check = w->check && i == 0;
        take_best(&best.others[UNFUSED], i, weave_library_run(lib, percent, check ? &sum : NULL));
    }
    weave_library_close(lib);
    if (w->check) {
        check_sum(w, pattern, "the library's answer", sum);
    }
    if (weave_algebra_has(pattern)) {
        measure_tuples(w, side, pattern, percent, &best);
    }
    best.fused = measure_fused(w, side, &query);
    best.by_key = best.fused;
    if (pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED) {
        query.sorted = true;
        best.by_key = measure_fused(w, side, &query);
    }
    return best;
}

/* --- output ------------------------------------------------------------------------------------ */

static void plot_point(struct weave *w, const char *name, double x, double y) {
    int at = 0;
    while (at < w->series_count && strcmp(w->series[at].name, name) != 0) {
        at++;
    }
    if (at == SERIES_MAX) {
        return;
    }
    struct plot_series *s = &w->series[at];
    if (at == w->series_count) {
        w->series_count++;
        snprintf(s->name, sizeof s->name, "%s", name);
    }
    if (s->count < PLOT_POINTS) {
        s->x[s->count] = x;
        s->y[s->count++] = y;
    }
}

static void print_head(const struct weave *w) {
    if (w->options->json) {
        return;
    }
    if (w->options->markdown) {
        printf("| pattern | on | MB | way | ms | GB/s | of a copy | MB moved | memory MB | "
               "registers | shared | occupancy "
               "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    } else {
        printf("%-8s %-4s %7s  %-8s %10s %8s %9s %9s %10s %5s %7s %5s\n", "pattern", "on", "MB",
               "way", "ms", "GB/s", "of a copy", "MB moved", "memory MB", "regs", "shared", "occ.");
    }
}

struct line {
    const char *pattern, *on, *way;
    int percent; /* of the sweep; 0 = none */
    double mb;
    double copy_gbs;
};

static void print_line(const struct weave *w, const struct line *l, const struct weave_cost *c) {
    double gbs = c->bytes / c->seconds * 1e-9, of = l->copy_gbs > 0 ? gbs / l->copy_gbs : 0;
    if (w->options->json) {
        printf("{\"bench\": \"weave\", \"pattern\": \"%s\", \"percent\": %d, \"on\": \"%s\", "
               "\"mb\": %.3f, "
               "\"way\": \"%s\", \"ms\": %.4f, \"gbs\": %.2f, \"of_copy\": %.3f, \"bytes\": %.0f, "
               "\"memory\": %.0f, \"registers\": %d, \"shared_bytes\": %d, \"occupancy\": %d}\n",
               l->pattern, l->percent ? l->percent : PERCENT, l->on, l->mb, l->way,
               c->seconds * 1e3, gbs, of, c->bytes, c->memory, c->registers, c->shared_bytes,
               c->occupancy);
        return;
    }
    char name[24];
    snprintf(name, sizeof name, l->percent ? "%s %d" : "%s", l->pattern, l->percent);
    printf(w->options->markdown
               ? "| %s | %s | %.1f | %s | %.3f | %.1f | %.0f %% | %.1f | %.1f | %d | %d | %d %% |\n"
               : "%-8s %-4s %7.1f  %-8s %10.3f %8.1f %8.0f%% %9.1f %10.1f %5d %7d %4d%%\n",
           name, l->on, l->mb, l->way, c->seconds * 1e3, gbs, of * 100, c->bytes / 1e6,
           c->memory / 1e6, c->registers, c->shared_bytes, c->occupancy);
}

/* How many times as fast the fused form is as another, and how many times the bytes that moves. */
static void print_ratio(const struct weave *w, enum other other, const struct weave_cost *fused,
                        const struct weave_cost *than) {
    double speedup = than->seconds / fused->seconds, ratio = than->bytes / fused->bytes;
    if (!w->options->json && !w->options->markdown) {
        printf("%-21s  fused %.2f times as fast as %s, which moves %.2f times the bytes: %.0f%% of "
               "that\n",
               "", speedup, other_names[other], ratio, 100 * speedup / ratio);
    }
}

static void print_pair(struct weave *w, int side, enum weave_pattern pattern, int percent,
                       const struct pair *p) {
    struct line line = {patterns[pattern].name,
                        w->sides[side].name,
                        "fused",
                        percent,
                        (double)w->rows * TUPLE_BYTES / 1e6,
                        w->sides[side].copy_gbs};
    print_line(w, &line, &p->fused);
    line.way = "by key";
    if (pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED) {
        print_line(w, &line, &p->by_key);
    }
    for (int other = 0; other < OTHERS; other++) {
        line.way = other_names[other];
        if (p->others[other].seconds > 0) {
            print_line(w, &line, &p->others[other]);
        }
    }
    w->log_count[side][pattern] += !percent;
    for (int other = 0; other < OTHERS; other++) {
        bool has = p->others[other].seconds > 0;
        const struct weave_cost *fused = other == UNFUSED ? &p->fused : &p->by_key;
        const struct weave_cost *than = &p->others[has ? other : UNFUSED];
        if (has) {
            print_ratio(w, (enum other)other, fused, than);
        }
        if (!percent) {
            w->logs[side][pattern][other] += log(than->seconds / fused->seconds);
        }
    }
    fflush(stdout);
    char name[64];
    snprintf(name, sizeof name, "%s, %s", line.pattern, line.on);
    if (!percent) {
        plot_point(w, name, line.mb * 1e6, p->others[UNFUSED].seconds / p->fused.seconds);
    }
}

static void print_means(const struct weave *w) {
    for (int s = 0; s < 2 && !w->options->json; s++) {
        double logs[OTHERS] = {0};
        int count = 0;
        for (int p = 0; p < WEAVE_PAIR; p++) {
            if (!w->log_count[s][p]) {
                continue;
            }
            printf("%s(%s) %s on %s, on average of the sizes, fused is as fast as", count ? "" : "\n",
                   patterns[p].name, patterns[p].text, w->sides[s].name);
            for (int other = 0; other < OTHERS; other++) {
                double mean = w->logs[s][p][other] / w->log_count[s][p];
                logs[other] += mean;
                printf("%s %s %.2f times", other ? "," : "", other_names[other], exp(mean));
            }
            printf("\n");
            count++;
        }
        for (int other = 0; other < OTHERS && count > 1; other++) {
            printf("geometric mean of the patterns on %s, against %s: %.2f\n", w->sides[s].name,
                   other_texts[other], exp(logs[other] / count));
        }
    }
}

/* --- the whole --------------------------------------------------------------------------------- */

static bool wanted(const struct weave *w, enum weave_pattern pattern) {
    const char *only = w->options->only;
    return !only || strcmp(only, patterns[pattern].name) == 0 ||
           (strlen(only) > 1 && strstr(patterns[pattern].text, only));
}

static void run_size(struct weave *w, bool sweep) {
    static const int percents[] = {10, 30, 50, 70, 90};
    make_tables(w);
    for (int s = 0; s < 2; s++) {
        if (!w->sides[s].used) {
            continue;
        }
        use_side(w, &w->sides[s]);
        for (int p = 0; p < WEAVE_PAIR; p++) {
            if (wanted(w, (enum weave_pattern)p)) {
                struct pair pair = measure(w, &w->sides[s], (enum weave_pattern)p, PERCENT);
                print_pair(w, s, (enum weave_pattern)p, 0, &pair);
            }
        }
        for (size_t i = 0; sweep && i < sizeof percents / sizeof *percents; i++) {
            if (wanted(w, WEAVE_PAIR)) {
                bool check = w->check;
                w->check = check && percents[i] == PERCENT;
                struct pair pair = measure(w, &w->sides[s], WEAVE_PAIR, percents[i]);
                w->check = check;
                print_pair(w, s, WEAVE_PAIR, percents[i], &pair);
            }
        }
    }
    drop_tables(w);
}

int bench_weave(const struct bench_options *options) {
    /* 64 MB to 10 GB of tuples. */
    static const int64_t sizes[] = {4000000, 16000000, 64000000, 256000000, 640000000};
    static struct weave w;
    w.options = options;
    bench_open(&w.db, options);
    if (wf_prim_open(w.db.db, &w.prim) != WF_OK || !bench_sides_open(w.prim, options, w.sides)) {
        bench_close(&w.db);
        return 2;
    }
    bench_run(&w.db, "set narrow = off"); /* columns as wide as the library's */
    int64_t most = options->rows ? options->rows : w.sides[1].used ? sizes[2] : sizes[1];
    most = most < LEAST_ROWS ? LEAST_ROWS : most;
    print_head(&w);
    w.check = true;
    if (most < sizes[0]) {
        w.rows = most;
        run_size(&w, true);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most; i++) {
        w.rows = sizes[i];
        bool last = i + 1 == sizeof sizes / sizeof *sizes || sizes[i + 1] > most;
        run_size(&w, i <= 2 && (last || i == 2));
        w.check = false;
    }
    print_means(&w);
    wf_prim_close(w.prim);
    bench_close(&w.db);
    bool drawn =
        !options->plot || plot_write(options->plot, "Fused operators", "bytes of tuples",
                                     "times as fast as one by one", w.series, w.series_count);
    return w.wrong || !drawn ? 1 : 0;
}

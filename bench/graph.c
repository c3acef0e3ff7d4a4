/* graph.c: `bench graph`: patterns of a graph, counted and listed, by joins of pairs and by multiway joins.
 *
 * Edges are rows of e(a, b), a < b, each once, in random order; u has them in both directions, for patterns that
 * are no cliques. The time is that of the whole statement, best of --runs, sorting included; edges a second are
 * those of the graph. Counts are compared with those of another way (graph_check.c), or where that takes too
 * long with the first one. On a GPU cliques are also counted by a thread for every edge, without any of what makes
 * threads share their work: the naive form. Then triangles and cliques of four with less memory than the data, and with
 * one and two workers, on a GPU with memory for a quarter of the data. */
#define _GNU_SOURCE
#include "bench_graph.h"
#include "bench_sides.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SQL_BYTES = 2000, EDGES = 20000, EDGE_BYTES = 16, LIST_MOST = 1 << 27, WAYS = 3 };
enum { WORKERS_BUDGET = 25 }; /* percent of the data, of workers of a GPU: they share boxes */
enum { BUDGET_LEAST = 1 << 16 }; /* what a statement takes whatever its data are */

static const struct pattern {
    const char *name, *table;
    const char *edges;   /* two nodes each */
    const char *smaller; /* pairs of nodes, the first of which is smaller: each is found once */
    pattern_check *check;
} patterns[] = {
    {"triangles", "e", "xy yz xz", "", check_triangles},
    {"4-cliques", "e", "xy xz yz xw yw zw", "", check_cliques4},
    {"5-cliques", "e", "xy xz yz xw yw zw xv yv zv wv", "", check_cliques5},
    {"diamonds", "u", "xy xz yz xw yw", "xy zw", check_diamonds},
    {"4-cycles", "u", "xy yz zw xw", "xy xz yw", check_cycles4},
    {"2-paths", "u", "xy yz", "xz", check_paths2},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static const struct way {
    const char *name, *setting;
    bool naive; /* of cliques that are counted on a GPU */
} ways[WAYS] = {{"pairs", "off", false}, {"multiway", "on", false}, {"naive", "on", true}};

/* One line of the report. */
struct trial {
    const struct pattern *pattern;
    const struct bench_side *side;
    const struct way *way;
    bool listed;
    int budget;  /* percent of the data; 0: all there is */
    int workers; /* 0: as given */
};

struct run {
    bool ok;
    double seconds, cpu_seconds;
    int64_t rounds, bytes, found;
    char trouble[300];
};

struct graphs {
    const struct bench_options *options;
    struct bench_db db;
    struct bench_side sides[2];
    const struct graph *graph;
    int64_t right; /* of the pattern; -1: not known */
    int same, wrong, failed;
    struct plot_bars *bars; /* patterns, budgets, workers */
};

static double cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- what is asked --- */

struct text {
    char text[SQL_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->used, sizeof t->text - t->used, format, args);
    va_end(args);
    t->used += (size_t)n < sizeof t->text - t->used ? (size_t)n : 0;
}

/* The nodes of a pattern, in the order they are named in. */
static void nodes_of(const struct pattern *p, char out[8]) {
    int count = 0;
    for (const char *at = p->edges; *at; at++) {
        if (*at != ' ' && !memchr(out, *at, (size_t)count)) {
            out[count++] = *at;
        }
    }
    out[count] = 0;
}

/* The column a node is first in. */
static void put_node(struct text *t, const struct pattern *p, char node) {
    int at = (int)(strchr(p->edges, node) - p->edges);
    put(t, "e%d.%c", at / 3, at % 3 ? 'b' : 'a');
}

static void sql_text(struct text *t, const struct pattern *p, bool listed) {
    char nodes[8] = "";
    nodes_of(p, nodes);
    put(t, "select ");
    for (const char *n = nodes; *n && listed; n++) {
        put(t, n > nodes ? ", " : "");
        put_node(t, p, *n);
    }
    put(t, "%s from ", listed ? "" : "count(*)");
    int count = (int)(strlen(p->edges) + 1) / 3;
    for (int i = 0; i < count; i++) {
        put(t, "%s%s e%d", i ? ", " : "", p->table, i);
    }
    const char *join = " where ";
    for (int i = 0; i < 3 * count; i++) {
        if (i % 3 < 2 && strchr(p->edges, p->edges[i]) != p->edges + i) {
            put(t, "%s", join);
            put_node(t, p, p->edges[i]);
            put(t, " = e%d.%c", i / 3, i % 3 ? 'b' : 'a');
            join = " and ";
        }
    }
    for (const char *at = p->smaller; *at; at += at[2] ? 3 : 2) {
        put(t, "%s", join);
        put_node(t, p, at[0]);
        put(t, " < ");
        put_node(t, p, at[1]);
    }
}

static void logiql_text(struct text *t, const struct pattern *p, bool listed) {
    char nodes[8] = "";
    nodes_of(p, nodes);
    put(t, "select * from logiql($lq$ ");
    if (listed) {
        for (const char *n = nodes; *n; n++) {
            put(t, "%s%c", n > nodes ? ", " : "_(", *n);
        }
        put(t, ") <- ");
    } else {
        put(t, "found[] = n <- agg<< n = count() >> ");
    }
    for (const char *at = p->edges; *at; at += at[2] ? 3 : 2) {
        put(t, "%s%s(%c, %c)", at > p->edges ? ", " : "", p->table, at[0], at[1]);
    }
    for (const char *at = p->smaller; *at; at += at[2] ? 3 : 2) {
        put(t, ", %c < %c", at[0], at[1]);
    }
    put(t, listed ? ". $lq$) as t(" : ". _(n) <- found[] = n. $lq$) as t(n)");
    for (const char *n = nodes; *n && listed; n++) {
        put(t, "%c%c", *n, n[1] ? ',' : ')');
    }
}

static void query_text(const struct graphs *w, struct text *t, const struct pattern *p, bool listed) {
    const char *language = w->options->language;
    if (language && strcmp(language, "logiql") == 0) {
        logiql_text(t, p, listed);
    } else {
        sql_text(t, p, listed);
    }
}

/* --- runs --- */

static void make_tables(struct graphs *w) {
    const wf_input inputs[] = {{.values = w->graph->from}, {.values = w->graph->to}};
    bench_run(&w->db, "create or replace table e (a bigint, b bigint)");
    if (w->graph->edges && wf_append(w->db.conn, "e", w->graph->edges, 2, inputs) != WF_OK) {
        fprintf(stderr, "bench: %s\n", wf_connection_error(w->db.conn)->message);
        exit(1);
    }
}

static void need_table(struct graphs *w, const struct pattern *p) {
    if (*p->table == 'u') {
        bench_run(&w->db, "set device = cpu");
        bench_run(&w->db, "create table if not exists u as select a, b from e union all select b, a from e");
    }
}

static void run_once(struct graphs *w, const char *sql, bool listed, struct run *out) {
    wf_result *result = NULL;
    const wf_batch *batch;
    double start = bench_now(), cpu = cpu_now();
    wf_status status = wf_query(w->db.conn, sql, &result);
    out->found = 0;
    while (status == WF_OK && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        char text[64] = "";
        if (!listed && wf_batch_rows(batch) > 0) {
            wf_value_text(batch, 0, 0, text, sizeof text);
        }
        out->found += listed ? wf_batch_rows(batch) : strtoll(text, NULL, 10);
    }
    double seconds = bench_now() - start;
    cpu = cpu_now() - cpu;
    if (status != WF_OK) {
        const wf_error *error = result ? wf_result_error(result) : wf_connection_error(w->db.conn);
        snprintf(out->trouble, sizeof out->trouble, "%s: %.250s", error->sqlstate, error->message);
        out->ok = false;
    } else {
        out->seconds = seconds < out->seconds ? seconds : out->seconds;
        out->cpu_seconds = cpu < out->cpu_seconds ? cpu : out->cpu_seconds;
        int64_t card = wf_result_metric(result, "device_peak");
        out->bytes = card > 0 ? card : wf_result_metric(result, "peak_bytes");
        out->rounds = wf_result_metric(result, "rounds");
    }
    wf_result_close(result);
}

static void measure(struct graphs *w, const struct trial *trial, struct run *out) {
    struct text text = {.used = 0};
    char sql[100];
    need_table(w, trial->pattern);
    *out = (struct run){.ok = true, .seconds = 1e30, .cpu_seconds = 1e30};
    snprintf(sql, sizeof sql, "set device = %s; set multiway = %s; set tries = computed", trial->side->name,
             trial->way->setting);
    bench_run(&w->db, sql);
    query_text(w, &text, trial->pattern, trial->listed);
    if (trial->way->naive) {
        setenv("WARPFOX_CLIQUES", "naive", 1);
    }
    for (int i = 0; i < w->options->runs && out->ok; i++) {
        run_once(w, text.text, trial->listed, out);
    }
    unsetenv("WARPFOX_CLIQUES");
}

/* --- what is said --- */

static void print_head(const struct bench_options *options) {
    if (options->markdown) {
        printf("| pattern | graph | edges | device | way | form | budget | workers | found | ms | processor ms | "
               "M edges/s | MB | rounds | answer |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    } else if (!options->json) {
        printf("%-10s %-20s %10s %-6s %-9s %-6s %6s %7s %12s %11s %11s %9s %8s %6s  %s\n", "pattern", "graph", "edges",
               "device", "way", "form", "budget", "workers", "found", "ms", "cpu ms", "Medges/s", "MB", "rounds",
               "answer");
    }
}

static void print_run(const struct graphs *w, const struct trial *t, const struct run *run, const char *verdict) {
    char budget[16] = "all", workers[16] = "-";
    double rate = run->ok ? 1e-6 * (double)w->graph->edges / run->seconds : 0;
    if (t->budget) {
        snprintf(budget, sizeof budget, "%d%%", t->budget);
    }
    if (t->workers) {
        snprintf(workers, sizeof workers, "%d", t->workers);
    }
    const char *form =
        w->options->json
            ? "{\"bench\":\"graph\",\"pattern\":\"%s\",\"graph\":\"%s\",\"edges\":%lld,\"device\":\"%s\","
              "\"way\":\"%s\",\"form\":\"%s\",\"budget\":\"%s\",\"workers\":\"%s\",\"found\":%lld,\"ms\":%.3f,"
              "\"cpu_ms\":%.3f,\"medges_per_s\":%.3f,\"mb\":%.1f,\"rounds\":%lld,\"answer\":\"%s\"}\n"
        : w->options->markdown
            ? "| %s | %s | %lld | %s | %s | %s | %s | %s | %lld | %.2f | %.2f | %.3f | %.1f | %lld | %s |\n"
            : "%-10s %-20s %10lld %-6s %-9s %-6s %6s %7s %12lld %11.2f %11.2f %9.3f %8.1f %6lld  %s\n";
    printf(form, t->pattern->name, w->graph->name, (long long)w->graph->edges, t->side->name, t->way->name,
           t->listed ? "list" : "count", budget, workers, (long long)run->found, run->ok ? 1e3 * run->seconds : 0,
           run->ok ? 1e3 * run->cpu_seconds : 0, rate, 1e-6 * (double)run->bytes, (long long)run->rounds,
           run->ok ? verdict : run->trouble);
    fflush(stdout);
}

static const char *judge(struct graphs *w, const struct run *run) {
    if (!run->ok) {
        w->failed++;
        return "failed";
    }
    bool first = w->right < 0;
    w->right = first ? run->found : w->right;
    bool same = run->found == w->right;
    w->same += same;
    w->wrong += !same;
    return first ? "first" : same ? "right" : "WRONG";
}

static bool is_wanted(const struct graphs *w, const struct trial *t) {
    char name[100];
    if (t->budget || t->workers) {
        snprintf(name, sizeof name, "%s %s", t->pattern->name, t->workers ? "workers" : "budget");
    } else {
        snprintf(name, sizeof name, "%s %s %s", t->pattern->name, t->way->name, t->listed ? "list" : "count");
    }
    bool naive = t->side->place == WF_ON_GPU && !t->listed && *t->pattern->table == 'e';
    return t->side->used && (naive || !t->way->naive) && (!w->options->only || strstr(name, w->options->only));
}

/* Its rate, where it ran. */
static double run_trial(struct graphs *w, const struct trial *trial) {
    struct run run;
    if (!is_wanted(w, trial) || (trial->listed && w->right > LIST_MOST)) {
        return 0;
    }
    measure(w, trial, &run);
    print_run(w, trial, &run, judge(w, &run));
    return run.ok ? 1e-6 * (double)w->graph->edges / run.seconds : 0;
}

static void run_pattern(struct graphs *w, const struct pattern *pattern) {
    double rates[PLOT_BAR_SERIES] = {0};
    w->right = pattern->check(w->graph);
    for (int i = 0; i < 4 * WAYS; i++) { /* counted, then listed; by all devices and ways */
        int way = i % WAYS, side = i / WAYS % 2, series = 2 * side + way;
        struct trial trial = {pattern, &w->sides[side], &ways[way], i >= 2 * WAYS, 0, 0};
        double rate = run_trial(w, &trial);
        if (!trial.listed && series < PLOT_BAR_SERIES && is_wanted(w, &trial)) {
            rates[series] = rate;
        }
    }
    char label[32];
    snprintf(label, sizeof label, "%.10s %.18s", pattern->name, w->graph->name);
    plot_bars_add(&w->bars[0], label, rates);
}

/* The same tables in a database with other settings. */
static void reopen(struct graphs *w, const struct bench_options *options) {
    bench_close(&w->db);
    bench_open(&w->db, options);
    make_tables(w);
}

/* A database that has so much memory, or so many workers, on the device of a trial. */
static void reopen_for(struct graphs *w, const struct trial *t) {
    bool gpu = t->side->place == WF_ON_GPU;
    struct bench_options options = *w->options;
    char workers[16], memory[40], text[80]; /* options are kept by their addresses */
    if (t->workers) {
        snprintf(workers, sizeof workers, "%d", t->workers);
        (void)option_settle(&options.settings, gpu ? OPTION_GPU_WORKERS : OPTION_THREADS, workers);
    }
    int64_t bytes = w->graph->edges * EDGE_BYTES / 100 * t->budget;
    bytes = bytes < BUDGET_LEAST ? BUDGET_LEAST : bytes;
    snprintf(memory, sizeof memory, "%lld", (long long)bytes);
    if (gpu && t->budget) {
        (void)option_settle(&options.settings, OPTION_GPU_MEMORY, memory);
    }
    reopen(w, &options);
    if (!gpu && t->budget) {
        snprintf(text, sizeof text, "set statement_memory = %lld", (long long)bytes);
        bench_run(&w->db, text);
    }
}

/* One line of the second part, on both devices. */
static void run_variant(struct graphs *w, const struct pattern *pattern, int budget, int workers) {
    double rates[PLOT_BAR_SERIES] = {0};
    bool any = false;
    for (int side = 0; side < 2; side++) {
        bool gpu = w->sides[side].place == WF_ON_GPU;
        struct trial trial = {pattern, &w->sides[side], &ways[1], false, budget, workers};
        trial.budget = workers && gpu ? WORKERS_BUDGET : budget;
        if (is_wanted(w, &trial)) {
            any = true;
            reopen_for(w, &trial);
            rates[side] = run_trial(w, &trial);
        }
    }
    char label[32];
    if (workers) {
        snprintf(label, sizeof label, "%.10s, %d", pattern->name, workers);
    } else {
        snprintf(label, sizeof label, "%.10s, %d %%", pattern->name, budget);
    }
    if (any) {
        plot_bars_add(&w->bars[workers ? 2 : 1], label, rates);
    }
}

static void run_variants(struct graphs *w) {
    static const int budgets[] = {5, 10, 25, 50, 100, 200};
    for (int p = 0; p < 2; p++) {
        w->right = patterns[p].check(w->graph);
        for (int i = 0; i < 6; i++) {
            run_variant(w, &patterns[p], budgets[i], 0);
        }
        for (int workers = 1; workers <= 2; workers++) {
            run_variant(w, &patterns[p], 0, workers);
        }
    }
    reopen(w, w->options);
}

static bool run_graph(struct graphs *w, const char *spec) {
    struct graph graph;
    if (!graph_make(&graph, spec, w->options->rows ? w->options->rows : EDGES, GRAPH_UNDIRECTED)) {
        return false;
    }
    w->graph = &graph;
    bench_run(&w->db, "drop table if exists u");
    make_tables(w);
    for (int i = 0; i < PATTERNS; i++) {
        run_pattern(w, &patterns[i]);
    }
    run_variants(w);
    graph_free(&graph);
    return true;
}

static bool run_all(struct graphs *w) {
    static const char *const kinds[] = {"gnm", "rmat", "rmat45"};
    bool fine = true;
    print_head(w->options);
    for (int i = 0; i < 3 && fine; i++) {
        if (!w->options->graph || i == 0) {
            fine = run_graph(w, w->options->graph ? w->options->graph : kinds[i]);
        }
    }
    if (fine && w->same + w->wrong + w->failed == 0) {
        fprintf(stderr, "bench: graph has nothing called \"%s\"\n", w->options->only ? w->options->only : "");
        fine = false;
    }
    if (fine && !w->options->json) {
        printf("%s%d right, %d wrong, %d failed\n", w->options->markdown ? "\n" : "", w->same, w->wrong, w->failed);
    }
    return fine;
}

int bench_graph(const struct bench_options *options) {
    static struct plot_bars bars[] = {
        {.title = "Patterns counted",
         .y_label = "M edges/s",
         .series = {"pairs, CPU", "multiway, CPU", "pairs, GPU", "multiway, GPU", "naive, GPU"},
         .series_count = PLOT_BAR_SERIES},
        {.title = "Cliques counted with memory for a part of the data",
         .y_label = "M edges/s",
         .series = {"CPU", "GPU"},
         .series_count = 2},
        {.title = "Cliques counted by one and two workers",
         .y_label = "M edges/s",
         .series = {"CPU", "GPU"},
         .series_count = 2}};
    struct graphs w = {.options = options, .bars = bars};
    wf_prim *prim = NULL;
    bench_open(&w.db, options);
    if (wf_prim_open(w.db.db, &prim) != WF_OK || !bench_sides_open(prim, options, w.sides)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    wf_prim_close(prim);
    bool fine = run_all(&w);
    bench_close(&w.db);
    fine = fine && (!options->plot || plot_bars_write(options->plot, bars, bars[1].count + bars[2].count ? 3 : 1));
    return !fine || w.wrong || w.failed;
}

/* datalog.c: `bench datalog`: recursive programs over graphs, on the CPU and on the GPU, and by Soufflé.
 *
 * A program is rules in LogiQL and a query for how many tuples its relations have and what their columns add up to,
 * which is compared with what another way gives (datalog_check.c). The time is that of the whole statement, best of
 * --runs, compiling included; processor time is that of all threads. A tuple of the answer counts once, however often
 * it was derived. The exit status is 1 when an answer is wrong or a statement fails. */
#define _GNU_SOURCE
#include "bench_datalog.h"
#include "bench_sides.h"
#include "datalog.def"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define X(name, check, divide, tables, outputs, rules, souffle) {name, check, divide, tables, outputs, rules, souffle},
static const struct datalog_program programs[] = {WF_DATALOG(X)};
#undef X
enum { PROGRAMS = sizeof programs / sizeof *programs, SQL_BYTES = 8000, EDGES = 8000 };

struct run {
    bool ok;
    double seconds, cpu_seconds;
    int64_t rounds, bytes; /* at most in use: on the host, or on the card */
    struct answer answer;
    char trouble[300];
};

struct datalog {
    const struct bench_options *options;
    struct bench_db db;
    struct bench_side sides[2];
    bool souffle;
    int right, wrong, unchecked, failed;
};

bool output_of(const struct datalog_program *program, int number, struct output *out) {
    const char *at = program->outputs;
    for (int i = 0; i < number && at; i++) {
        at = strstr(at, ") ");
        at = at ? at + 2 : NULL;
    }
    if (!at) {
        return false;
    }
    snprintf(out->atom, sizeof out->atom, "%.*s", (int)(strchr(at, ')') + 1 - at), at);
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(at, "("), at);
    return true;
}

static double cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- what is asked --- */

/* A tuple for every relation that has some: its number, how many, the sums of x and y. */
static void query_text(const struct datalog_program *program, char *out, size_t cap) {
    struct output o;
    size_t used = (size_t)snprintf(out, cap, "select * from logiql($lq$\n%s", program->rules);
    for (int i = 0; output_of(program, i, &o); i++) {
        bool two = strstr(o.atom, "y)") != NULL;
        used += (size_t)snprintf(out + used, cap - used,
                                 "c%d[] = c, a%d[] = a%s <- agg<< c = count(), a = total(x)%s >> %s.\n"
                                 "_(%d, c, a, %s) <- c%d[] = c, a%d[] = a%s.\n",
                                 i, i, two ? ", b[] = b" : "", two ? ", b = total(y)" : "", o.atom, i, two ? "b" : "0",
                                 i, i, two ? ", b[] = b" : "");
        for (char *at = strstr(out, ", b[]"); at; at = strstr(at + 1, ", b[]")) { /* each has its own */
            memmove(at + 4, at + 3, strlen(at + 3) + 1);
            at[3] = (char)('0' + i);
            used++;
        }
    }
    snprintf(out + used, cap - used, "$lq$) as answer(relation, tuples, x, y)");
}

static void make_tables(struct datalog *w, const struct datalog_program *program, const struct graph *graph) {
    static const char *const cols = "a bigint, b bigint, c bigint";
    for (int kind = 0; kind < FACT_KINDS; kind++) {
        const struct fact_table *table = &fact_tables[kind];
        char sql[200];
        if (!(program->tables >> kind & 1)) {
            continue;
        }
        struct facts facts;
        wf_input inputs[3];
        facts_make(&facts, (enum fact_kind)kind, graph);
        for (int c = 0; c < 3; c++) {
            inputs[c] = (wf_input){.values = facts.cols[c]};
        }
        snprintf(sql, sizeof sql, "create or replace table %s (%.*s)", table->name, 10 * table->columns - 2, cols);
        bench_run(&w->db, sql);
        if (facts.rows && wf_append(w->db.conn, table->name, facts.rows, table->columns, inputs) != WF_OK) {
            fprintf(stderr, "bench: %s\n", wf_connection_error(w->db.conn)->message);
            exit(1);
        }
        facts_free(&facts);
    }
}

/* --- runs --- */

static int64_t number_at(const wf_batch *batch, int column, int64_t row) {
    char text[64];
    wf_value_text(batch, column, row, text, sizeof text);
    return strtoll(text, NULL, 10);
}

static void read_row(const wf_batch *batch, int64_t row, const struct datalog_program *program, struct run *out) {
    int relation = (int)number_at(batch, 0, row);
    struct output o;
    bool known = output_of(program, relation, &o);
    for (int c = 0; known && c < 3; c++) {
        out->answer.numbers[3 * relation + c] = number_at(batch, c + 1, row);
    }
}

static bool run_once(struct datalog *w, const char *sql, const struct datalog_program *program, struct run *out) {
    wf_result *result = NULL;
    const wf_batch *batch;
    double start = bench_now(), cpu = cpu_now();
    wf_status status = wf_query(w->db.conn, sql, &result);
    memset(&out->answer, 0, sizeof out->answer);
    while (status == WF_OK && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            read_row(batch, row, program, out);
        }
    }
    if (status != WF_OK) {
        const wf_error *error = result ? wf_result_error(result) : wf_connection_error(w->db.conn);
        snprintf(out->trouble, sizeof out->trouble, "%s: %.250s", error->sqlstate, error->message);
        wf_result_close(result);
        out->ok = false;
        return false;
    }
    double seconds = bench_now() - start;
    cpu = cpu_now() - cpu;
    out->seconds = seconds < out->seconds ? seconds : out->seconds;
    out->cpu_seconds = cpu < out->cpu_seconds ? cpu : out->cpu_seconds;
    int64_t card = wf_result_metric(result, "device_peak");
    out->bytes = card > 0 ? card : wf_result_metric(result, "peak_bytes");
    out->rounds = wf_result_metric(result, "rounds");
    wf_result_close(result);
    return true;
}

static void measure(struct datalog *w, const struct bench_side *side, const struct datalog_program *program,
                    struct run *out) {
    char sql[SQL_BYTES];
    *out = (struct run){.ok = true, .seconds = 1e30, .cpu_seconds = 1e30};
    snprintf(sql, sizeof sql, "set device = %s", side->name);
    bench_run(&w->db, sql);
    query_text(program, sql, sizeof sql);
    for (int i = 0; i < w->options->runs && out->ok; i++) {
        (void)run_once(w, sql, program, out);
    }
}

/* --- what is said --- */

static int64_t tuples_of(const struct answer *answer) {
    int64_t tuples = 0;
    for (int i = 0; i < ANSWER_NUMBERS; i += 3) {
        tuples += answer->numbers[i];
    }
    return tuples;
}

static void print_head(const struct bench_options *options) {
    if (options->markdown) {
        printf("| program | graph | device | rounds | tuples | ms | processor ms | M tuples/s | MB | answer |\n"
               "|---|---|---|---|---|---|---|---|---|---|\n");
    } else if (!options->json) {
        printf("%-10s %-22s %-8s %6s %11s %10s %10s %9s %8s  %s\n", "program", "graph", "device", "rounds", "tuples",
               "ms", "cpu ms", "Mtuple/s", "MB", "answer");
    }
}

static void print_run(const struct datalog *w, const struct datalog_program *program, const struct graph *graph,
                      const char *device, const struct run *run, const char *verdict) {
    int64_t tuples = tuples_of(&run->answer);
    double rate = run->ok ? 1e-6 * (double)tuples / run->seconds : 0;
    const char *form =
        w->options->json
            ? "{\"bench\":\"datalog\",\"program\":\"%s\",\"graph\":\"%s\",\"device\":\"%s\",\"rounds\":%lld,"
              "\"tuples\":%lld,\"ms\":%.3f,\"cpu_ms\":%.3f,\"mtuples_per_s\":%.2f,\"mb\":%.1f,\"answer\":\"%s\"}\n"
        : w->options->markdown ? "| %s | %s | %s | %lld | %lld | %.2f | %.2f | %.2f | %.1f | %s |\n"
                               : "%-10s %-22s %-8s %6lld %11lld %10.2f %10.2f %9.2f %8.1f  %s\n";
    printf(form, program->name, graph->name, device, (long long)run->rounds, (long long)tuples,
           run->ok ? 1e3 * run->seconds : 0, run->ok ? 1e3 * run->cpu_seconds : 0, rate, 1e-6 * (double)run->bytes,
           run->ok ? verdict : run->trouble);
    fflush(stdout);
}

static const char *judge(struct datalog *w, const struct run *run, bool known, const struct answer *right) {
    if (!run->ok) {
        w->failed++;
        return "failed";
    }
    if (!known) {
        w->unchecked++;
        return "not checked";
    }
    bool same = memcmp(run->answer.numbers, right->numbers, sizeof right->numbers) == 0;
    w->right += same;
    w->wrong += !same;
    return same ? "right" : "WRONG";
}

static void run_souffle(struct datalog *w, const struct datalog_program *program, const struct graph *graph,
                        const struct answer *right, bool known) {
    struct souffle_run souffle;
    const char *threads = option_setting(&w->options->settings, "threads");
    souffle_measure(program, graph, threads ? threads : "auto", &souffle);
    struct run run = {.ok = souffle.ok, .seconds = souffle.seconds};
    bool same = true;
    for (int i = 0; i < ANSWER_NUMBERS / 3; i++) {
        run.answer.numbers[3 * i] = souffle.counts[i];
        same = same && souffle.counts[i] == right->numbers[3 * i];
    }
    snprintf(run.trouble, sizeof run.trouble, "%s", souffle.trouble);
    print_run(w, program, graph, "souffle", &run, !known ? "not checked" : same ? "right" : "WRONG");
    w->failed += !souffle.ok;
    w->wrong += souffle.ok && known && !same;
}

static bool run_case(struct datalog *w, const struct datalog_program *program, const char *spec) {
    struct graph graph;
    struct answer right = {0};
    int64_t edges = (w->options->rows ? w->options->rows : EDGES) / program->divide + 1;
    if (!graph_make(&graph, spec, edges, GRAPH_DIRECTED)) {
        return false;
    }
    bool known = program->check(&graph, &right);
    make_tables(w, program, &graph);
    for (int s = 0; s < 2; s++) {
        if (w->sides[s].used) {
            struct run run;
            measure(w, &w->sides[s], program, &run);
            print_run(w, program, &graph, w->sides[s].name, &run, judge(w, &run, known, &right));
        }
    }
    if (w->souffle) {
        run_souffle(w, program, &graph, &right, known);
    }
    graph_free(&graph);
    return true;
}

static bool run_all(struct datalog *w) {
    static const char *const graphs[] = {"gnp", "rmat", "grid", "chain", "tree"};
    const char *only = w->options->only;
    bool any = false, fine = true;
    for (int i = 0; i < PROGRAMS && fine; i++) {
        if (only && !strstr(programs[i].name, only)) {
            continue;
        }
        any = true;
        for (int g = 0; g < (int)(sizeof graphs / sizeof *graphs) && fine; g++) {
            if (!w->options->graph || g == 0) {
                fine = run_case(w, &programs[i], w->options->graph ? w->options->graph : graphs[g]);
            }
        }
    }
    if (!any) {
        fprintf(stderr, "bench: datalog has no program \"%s\"\n", only);
    }
    return any && fine;
}

int bench_datalog(const struct bench_options *options) {
    struct datalog w = {.options = options, .souffle = souffle_found()};
    wf_prim *prim = NULL;
    bench_open(&w.db, options);
    if (wf_prim_open(w.db.db, &prim) != WF_OK || !bench_sides_open(prim, options, w.sides)) {
        fprintf(stderr, "bench: no device\n");
        return 1;
    }
    wf_prim_close(prim);
    print_head(options);
    bool fine = run_all(&w);
    if (fine && !options->json) {
        printf("%s%d right, %d wrong, %d not checked, %d failed%s\n", options->markdown ? "\n" : "", w.right, w.wrong,
               w.unchecked, w.failed, w.souffle ? "" : "; without Soufflé, which is not in PATH");
    }
    bench_close(&w.db);
    return !fine || w.wrong || w.failed;
}

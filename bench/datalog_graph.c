/* datalog_graph.c: the graphs of `bench datalog`, and the tables that programs read of them.
 *
 * All is drawn by a hash of its number, so that every run has the same. Files may name nodes by any
 * numbers: they are numbered anew, in their order. */
#include "bench_datalog.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 8, METHODS = 16, NODES_MOST = 1 << 30 };

const char *const graph_kinds[GRAPH_KINDS] = {"gnp", "rmat", "grid", "chain", "tree"};

uint64_t graph_draw(uint64_t number, uint64_t what) {
    uint64_t x = number * 0x9e3779b97f4a7c15ULL + what * 0xd1342543de82ef95ULL + 1;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static void *room_for(void *old, int64_t count) {
    void *room = realloc(old, (size_t)count * sizeof(int64_t));
    if (!room) {
        fprintf(stderr, "bench: no memory for %lld edges\n", (long long)count);
        exit(1);
    }
    return room;
}

void facts_add(struct facts *facts, int64_t a, int64_t b, int64_t c) {
    const int64_t values[] = {a, b, c};
    if (facts->rows == facts->room) {
        facts->room = facts->room ? 2 * facts->room : 1024;
        for (int i = 0; i < 3; i++) {
            facts->cols[i] = room_for(facts->cols[i], facts->room);
        }
    }
    for (int i = 0; i < 3; i++) {
        facts->cols[i][facts->rows] = values[i];
    }
    facts->rows++;
}

void facts_free(struct facts *facts) {
    for (int i = 0; i < 3; i++) {
        free(facts->cols[i]);
    }
    *facts = (struct facts){0};
}

void graph_free(struct graph *graph) {
    free(graph->from);
    free(graph->to);
}

/* --- kinds --- */

/* Of all pairs each with the same probability: the distance to the next one is geometric. */
static void draw_gnp(struct facts *out, int64_t nodes, int64_t edges) {
    double share = (double)edges / ((double)nodes * (double)nodes);
    double log_rest = share < 1 ? log1p(-share) : -1e300;
    double pairs = (double)nodes * (double)nodes, at = -1;
    for (uint64_t i = 0;; i++) {
        double u = ((double)(graph_draw(i, 1) >> 11) + 0.5) / 9007199254740992.0;
        at += 1 + floor(log(u) / log_rest);
        if (at >= pairs) {
            return;
        }
        facts_add(out, (int64_t)at / nodes, (int64_t)at % nodes, 0);
    }
}

/* Halves of the nodes, again and again: .57 .19 .19 .05. */
static void draw_rmat(struct facts *out, int64_t nodes, int64_t edges) {
    for (int64_t i = 0; i < edges; i++) {
        int64_t x = 0, y = 0;
        for (int64_t half = nodes / 2, level = 0; half > 0; half /= 2, level++) {
            uint64_t draw = graph_draw((uint64_t)i, 100 + (uint64_t)level) % 100;
            x += draw >= 76 ? half : 0;
            y += (draw >= 57 && draw < 76) || draw >= 95 ? half : 0;
        }
        facts_add(out, x, y, 0);
    }
}

static void draw_grid(struct facts *out, int64_t side) {
    for (int64_t i = 0; i < side * side; i++) {
        if (i % side + 1 < side) {
            facts_add(out, i, i + 1, 0);
        }
        if (i / side + 1 < side) {
            facts_add(out, i, i + side, 0);
        }
    }
}

static void draw_parents(struct facts *out, int64_t nodes, int64_t children) {
    for (int64_t i = 1; i < nodes; i++) {
        facts_add(out, (i - 1) / children, i, 0);
    }
}

/* --- in order, each once --- */

struct edge {
    int64_t from, to;
};

static int by_ends(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

static void take_edges(struct graph *out, const struct facts *drawn) {
    struct edge *edges = room_for(NULL, 2 * drawn->rows + 2);
    for (int64_t i = 0; i < drawn->rows; i++) {
        edges[i] = (struct edge){drawn->cols[0][i], drawn->cols[1][i]};
    }
    qsort(edges, (size_t)drawn->rows, sizeof *edges, by_ends);
    out->from = room_for(NULL, drawn->rows + 1);
    out->to = room_for(NULL, drawn->rows + 1);
    for (int64_t i = 0; i < drawn->rows; i++) {
        if (i == 0 || by_ends(&edges[i], &edges[i - 1]) != 0) {
            out->from[out->edges] = edges[i].from;
            out->to[out->edges++] = edges[i].to;
        }
    }
    free(edges);
}

/* --- files --- */

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t number_of(const int64_t *names, int64_t count, int64_t name) {
    return (const int64_t *)bsearch(&name, names, (size_t)count, sizeof name, by_number) - names;
}

static int64_t number_nodes(struct facts *drawn) {
    int64_t *names = room_for(NULL, 2 * drawn->rows + 1);
    int64_t count = 0;
    for (int64_t i = 0; i < 2 * drawn->rows; i++) {
        names[i] = drawn->cols[i & 1][i / 2];
    }
    qsort(names, (size_t)(2 * drawn->rows), sizeof *names, by_number);
    for (int64_t i = 0; i < 2 * drawn->rows; i++) {
        if (i == 0 || names[i] != names[count - 1]) {
            names[count++] = names[i];
        }
    }
    for (int64_t i = 0; i < 2 * drawn->rows; i++) {
        drawn->cols[i & 1][i / 2] = number_of(names, count, drawn->cols[i & 1][i / 2]);
    }
    free(names);
    return count;
}

/* Two numbers a line, with blanks, tabs or a comma between them; what begins otherwise is skipped where it is a
 * comment (# or %) or the first line. */
static bool read_edges(const char *path, struct facts *out) {
    FILE *file = fopen(path, "r");
    char line[512];
    if (!file) {
        fprintf(stderr, "bench: no graph \"%s\": %s; there are gnp, rmat, grid, chain, tree\n", path, strerror(errno));
        return false;
    }
    bool fine = true;
    for (int64_t no = 1; fine && fgets(line, sizeof line, file); no++) {
        char *first = line + strspn(line, " \t"), *end, *rest;
        if (strchr("#%\r\n", *first)) {
            continue;
        }
        int64_t a = strtoll(first, &end, 10);
        rest = end + strspn(end, " \t,;");
        int64_t b = strtoll(rest, &rest, 10);
        fine = (end > first && rest > end + 1) || no == 1;
        if (end > first && rest > end + 1) {
            facts_add(out, a, b, 0);
        } else if (!fine) {
            fprintf(stderr, "bench: %s:%lld: two numbers are wanted\n", path, (long long)no);
        }
    }
    fclose(file);
    return fine;
}

/* --- by name --- */

static int64_t power_of_two(int64_t at_least) {
    int64_t power = 2;
    while (power < at_least) {
        power *= 2;
    }
    return power;
}

/* `nodes` 0: as many as go with the edges. */
static bool draw(struct graph *out, struct facts *drawn, int kind, int64_t nodes, int64_t edges) {
    int64_t side = nodes ? nodes : (int64_t)sqrt((double)edges / 2) + 1;
    nodes = nodes ? nodes : kind < 2 ? edges / 4 + 2 : kind == 3 ? edges / 8 + 2 : edges + 1;
    out->nodes = kind == 1 ? power_of_two(nodes) : kind == 2 ? side * side : nodes;
    if (out->nodes < 1 || out->nodes > NODES_MOST || edges > NODES_MOST ||
        (kind == 2 && side > 1 << 15)) {
        return false;
    }
    switch (kind) {
    case 0:
        draw_gnp(drawn, nodes, edges);
        break;
    case 1:
        draw_rmat(drawn, out->nodes, edges);
        break;
    case 2:
        draw_grid(drawn, side);
        break;
    default:
        draw_parents(drawn, nodes, kind == 3 ? 1 : 2);
    }
    return true;
}

bool graph_make(struct graph *out, const char *spec, int64_t edges) {
    struct facts drawn = {0};
    bool fine = false, known = false;
    memset(out, 0, sizeof *out);
    const char *name = strrchr(spec, '/') ? strrchr(spec, '/') + 1 : spec;
    snprintf(out->name, sizeof out->name, "%s", name);
    for (int kind = 0; kind < GRAPH_KINDS && !known; kind++) {
        size_t len = strlen(graph_kinds[kind]);
        if (strncmp(spec, graph_kinds[kind], len) != 0 || (spec[len] != ':' && spec[len] != 0)) {
            continue;
        }
        char *end = "";
        int64_t nodes = spec[len] ? strtoll(spec + len + 1, &end, 10) : 0;
        int64_t own = *end == ',' ? strtoll(end + 1, &end, 10) : spec[len] ? 4 * nodes : edges;
        known = true;
        fine = !*end && nodes >= 0 && (nodes > 0 || !spec[len]) && own > 0 && nodes <= NODES_MOST &&
               draw(out, &drawn, kind, nodes, own);
        if (!fine) {
            fprintf(stderr, "bench: no graph has the size of \"%s\"\n", spec);
        }
    }
    if (!known && (fine = read_edges(spec, &drawn))) {
        out->nodes = number_nodes(&drawn);
    }
    if (fine) {
        take_edges(out, &drawn);
    }
    facts_free(&drawn);
    return fine;
}

/* --- tables --- */

const struct fact_table fact_tables[FACT_KINDS] = {
    [FACT_EDGE] = {"e", 2},     [FACT_BOTH] = {"u", 2},       [FACT_NODE] = {"n", 1},
    [FACT_WEIGHT] = {"w", 3},   [FACT_START] = {"s", 1},      [FACT_ASSIGN] = {"assign", 2},
    [FACT_NEW] = {"new", 2},    [FACT_DEREFERENCE] = {"dereference", 2},
    [FACT_MOVE] = {"move", 2},  [FACT_LOAD] = {"load", 3},    [FACT_STORE] = {"store", 3},
    [FACT_CALL] = {"call", 3},  [FACT_METHOD] = {"method", 2}, [FACT_FORMAL] = {"formal", 2},
};

static void add_both(struct facts *out, int64_t x, int64_t y) {
    facts_add(out, x, y, 0);
    facts_add(out, y, x, 0);
}

/* Statements of a program that has a variable for every node: what an edge becomes is drawn. */
static void add_statement(struct facts *out, enum fact_kind kind, int64_t i, int64_t x, int64_t y) {
    uint64_t turn = graph_draw((uint64_t)i, 2) % 20;
    int64_t field = (int64_t)(graph_draw((uint64_t)i, 3) % FIELDS);
    enum fact_kind is = turn < 11 ? FACT_MOVE : turn < 14 ? FACT_LOAD : turn < 17 ? FACT_STORE : FACT_CALL;
    if (is == kind && kind == FACT_MOVE) {
        facts_add(out, y, x, 0);
    } else if (is == kind && kind == FACT_LOAD) {
        facts_add(out, y, x, field);
    } else if (is == kind && kind == FACT_STORE) {
        facts_add(out, y, field, x);
    } else if (is == kind) {
        facts_add(out, i, y, x);
    }
}

static void add_of_edge(struct facts *out, enum fact_kind kind, int64_t i, int64_t x, int64_t y) {
    switch (kind) {
    case FACT_EDGE:
    case FACT_ASSIGN:
        facts_add(out, x, y, 0);
        break;
    case FACT_BOTH:
        add_both(out, x, y);
        break;
    case FACT_WEIGHT:
        facts_add(out, x, y, 1 + (int64_t)(graph_draw((uint64_t)i, 4) % 100));
        break;
    case FACT_DEREFERENCE:
        if (graph_draw((uint64_t)i, 5) % 4 == 0) {
            facts_add(out, x, y, 0);
        }
        break;
    default:
        add_statement(out, kind, i, x, y);
    }
}

static void add_of_node(struct facts *out, enum fact_kind kind, int64_t x, int64_t nodes) {
    uint64_t draw = graph_draw((uint64_t)x, 6);
    if (kind == FACT_NODE) {
        facts_add(out, x, 0, 0);
    } else if (kind == FACT_METHOD) { /* a method for what is made at x */
        facts_add(out, x, (int64_t)(draw >> 8 & 0xffffff) % METHODS, 0);
    } else if (kind == FACT_NEW && draw % 4 == 0) {
        facts_add(out, x, x, 0);
    } else if (kind == FACT_FORMAL && x < METHODS) {
        facts_add(out, x, (int64_t)(draw >> 8 & 0xffffffff) % nodes, 0);
    }
}

void facts_make(struct facts *out, enum fact_kind kind, const struct graph *graph) {
    bool of_nodes = kind == FACT_NODE || kind == FACT_NEW || kind == FACT_METHOD || kind == FACT_FORMAL;
    *out = (struct facts){0};
    if (kind == FACT_START && graph->edges > 0) {
        facts_add(out, graph->from[0], 0, 0);
    }
    for (int64_t i = 0; i < graph->edges && !of_nodes && kind != FACT_START; i++) {
        add_of_edge(out, kind, i, graph->from[i], graph->to[i]);
    }
    for (int64_t x = 0; x < graph->nodes && of_nodes; x++) {
        add_of_node(out, kind, x, graph->nodes);
    }
}

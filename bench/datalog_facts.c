/* datalog_facts.c: the tables that programs of `bench datalog` read of a graph. */
#include "bench_datalog.h"

#include <stdlib.h>

enum { FIELDS = 8, METHODS = 16 };

void facts_add(struct facts *facts, int64_t a, int64_t b, int64_t c) {
    const int64_t values[] = {a, b, c};
    if (facts->rows == facts->room) {
        facts->room = facts->room ? 2 * facts->room : 1024;
        for (int i = 0; i < 3; i++) {
            facts->cols[i] = graph_room(facts->cols[i], facts->room);
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

/* bench_datalog.h: tables and answers of `bench datalog`. */
#ifndef BENCH_DATALOG_H
#define BENCH_DATALOG_H

#include "bench_graphs.h"

/* Rows of a table of up to three columns. */
struct facts {
    int64_t rows, room;
    int64_t *cols[3];
};
void facts_add(struct facts *facts, int64_t a, int64_t b, int64_t c);
void facts_free(struct facts *facts);

/* The tables of a program, by what they hold. */
enum fact_kind {
    FACT_EDGE,        /* e(x, y) */
    FACT_BOTH,        /* u(x, y): edges in both directions */
    FACT_NODE,        /* n(x) */
    FACT_WEIGHT,      /* w(x, y, c): edges with lengths from 1 to 100 */
    FACT_START,       /* s(x): the first node that has an edge out of it */
    FACT_ASSIGN,      /* assign(x, y) */
    FACT_DEREFERENCE, /* dereference(x, y) */
    FACT_NEW,         /* new(v, h) */
    FACT_MOVE,        /* move(v, u) */
    FACT_LOAD,        /* load(v, b, f): v = b.f */
    FACT_STORE,       /* store(b, f, u): b.f = u */
    FACT_CALL,        /* call(s, b, a): at s, a method of what b is gets a */
    FACT_METHOD,      /* method(h, m): which one that is, by what was made at h */
    FACT_FORMAL,      /* formal(m, v): its parameter */
    FACT_KINDS
};
extern const struct fact_table {
    const char *name;
    int columns;
} fact_tables[FACT_KINDS];
void facts_make(struct facts *out, enum fact_kind kind, const struct graph *graph);

/* What a program's answer is: of each relation how many tuples it has, and the sums of their columns. */
enum { ANSWER_NUMBERS = 12 };
struct answer {
    int count;
    int64_t numbers[ANSWER_NUMBERS];
};
/* By another way, without any database. False: too much memory would be needed. */
typedef bool second_way(const struct graph *graph, struct answer *out);
second_way check_closure, check_generation, check_components, check_distances;
second_way check_reach, check_alias, check_points_to;

/* A program of datalog.def. */
struct datalog_program {
    const char *name;
    second_way *check;
    int divide;
    unsigned tables;
    const char *outputs, *rules, *souffle;
};
/* One of the relations of its answer: its name, and its atom as it stands in `outputs`; false: there is none. */
struct output {
    char name[32], atom[64];
};
bool output_of(const struct datalog_program *program, int number, struct output *out);

/* souffle.c: the same program by Soufflé, where `souffle` is in PATH. */
struct souffle_run {
    bool ok;
    double seconds; /* of the compiled program, with reading its facts */
    int64_t counts[ANSWER_NUMBERS / 3];
    char trouble[200];
};
bool souffle_found(void);
void souffle_measure(const struct datalog_program *program, const struct graph *graph, const char *threads,
                     struct souffle_run *out);

#endif

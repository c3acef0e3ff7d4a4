/* bench_weave.h: the patterns of `bench weave`: their data, and what the library makes of them. */
#ifndef BENCH_WEAVE_H
#define BENCH_WEAVE_H

#include "bench.h"
#include "warpfox_prim.h"

enum weave_pattern {
    WEAVE_SELECTS,  /* (a) three SELECTs one after the other, PROJECT */
    WEAVE_JOINS,    /* (b) two JOINs one after the other */
    WEAVE_SELECTED, /* (c) JOINs of three selected tables */
    WEAVE_SHARED,   /* (d) two SELECTs of one table */
    WEAVE_MATH,     /* (e) price * (1 - discount) * (1 + tax) */
    WEAVE_PAIR,     /* two SELECTs one after the other, for the sweep of their ratio */
    WEAVE_PATTERNS
};

/* Columns of the tables, a 32-bit value each. t and f have `rows`, r, s and u a third: the keys of
 * these are 0, 1, …, in another order in each. */
enum weave_column {
    T_K,
    T_A,
    T_B,
    T_C,
    F_PRICE,
    F_DISCOUNT,
    F_TAX,
    R_K,
    R_A,
    S_K,
    S_D,
    U_K,
    U_E,
    WEAVE_COLUMNS
};
int64_t weave_rows(enum weave_column column, int64_t rows);
/* Value i of a column, a float's as its bits. */
uint32_t weave_value(enum weave_column column, int64_t i, int64_t rows);
/* The expression that makes it from i in SQL. */
void weave_expression(enum weave_column column, int64_t rows, char *out, size_t cap);
/* What a SELECT of so many percent compares with. */
int32_t weave_border(int percent);

/* The number of rows of an answer and a sum over them, for comparison; near enough for floats. */
struct weave_sum {
    double rows, sum;
};
struct weave_sum weave_plain(enum weave_pattern pattern, int64_t rows, int percent);

/* What a run took. */
struct weave_cost {
    double seconds;
    double bytes;                           /* read and written by operators */
    double memory;                          /* inputs and what is kept at once beside them */
    int registers, shared_bytes, occupancy; /* the most, and of occupancy the least */
};

/* One pattern by operators of the library, each of which writes its result. */
struct weave_library;
struct weave_library *weave_library_open(wf_prim *prim, wf_place place, enum weave_pattern pattern,
                                         int64_t rows);
/* `check`: the answer is brought to the host and summed. Exits with a message on an error. */
struct weave_cost weave_library_run(struct weave_library *lib, int percent,
                                    struct weave_sum *check);
void weave_library_close(struct weave_library *lib);

/* The same by relational algebra on packed tuples; has: whether there are operators for it.
 * `staged`: what an operator computes is gathered by another kernel, as in the thesis. */
struct weave_algebra;
bool weave_algebra_has(enum weave_pattern pattern);
struct weave_algebra *weave_algebra_open(wf_prim *prim, wf_place place, enum weave_pattern pattern,
                                         int64_t rows);
struct weave_cost weave_algebra_run(struct weave_algebra *a, bool staged, int percent,
                                    struct weave_sum *check);
void weave_algebra_close(struct weave_algebra *a);

#endif

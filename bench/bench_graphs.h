/* bench_graphs.h: graphs that experiments run on, drawn or read. */
#ifndef BENCH_GRAPHS_H
#define BENCH_GRAPHS_H

#include "bench.h"

/* Edges, each once; nodes are 0 .. nodes - 1. */
struct graph {
    char name[64];
    int64_t nodes, edges;
    int64_t *from, *to;
};

/* As drawn: in ascending order, with loops. Without direction: from the lower to the higher node, no loops, in
 * random order. */
enum graph_form { GRAPH_DIRECTED, GRAPH_UNDIRECTED };

/* "gnp:2000,8000", "gnm:…", "rmat:2048,8000", "rmat45:…" (nodes, edges), "grid:40" (its side), "chain:500",
 * "tree:1000" (nodes), one of these without a size, which has about `edges` edges, or a file of edges, two
 * numbers a line. False, with a message on stderr, when there is no such graph. */
bool graph_make(struct graph *out, const char *spec, int64_t edges, enum graph_form form);
void graph_free(struct graph *graph);
uint64_t graph_draw(uint64_t number, uint64_t what); /* a random number: the same every time */
void *graph_room(void *old, int64_t count);          /* of so many 64-bit numbers; exits where there is none */

#endif

/* bench_graph.h: the patterns of `bench graph`. */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "bench_graphs.h"

/* How many there are, by another way than any join; -1: it would take too long. */
typedef int64_t pattern_check(const struct graph *graph);
pattern_check check_triangles, check_cliques4, check_cliques5, check_diamonds, check_cycles4, check_paths2;

#endif

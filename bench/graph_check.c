/* graph_check.c: how often a pattern is in a graph, by rows of a matrix of bits: no joins.
 *
 * Cliques: the nodes that all so far are connected with are a row, and its bits are gone through. Diamonds
 * and cycles of four are pairs of nodes that a pair has in common; paths of two are pairs of neighbours. */
#include "bench_graph.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 1 << 13, WORDS_MOST = NODES_MOST / 64, CLIQUE_MOST = 5 };

struct matrix {
    int64_t nodes, words;
    uint64_t *above; /* neighbours with higher numbers */
    uint64_t *both;
};

static bool matrix_open(struct matrix *m, const struct graph *graph) {
    *m = (struct matrix){.nodes = graph->nodes, .words = (graph->nodes + 63) / 64};
    if (graph->nodes > NODES_MOST) {
        return false;
    }
    m->above = calloc((size_t)(m->nodes * m->words + 1), sizeof(uint64_t));
    m->both = calloc((size_t)(m->nodes * m->words + 1), sizeof(uint64_t));
    for (int64_t i = 0; m->above && m->both && i < graph->edges; i++) {
        int64_t x = graph->from[i], y = graph->to[i];
        m->above[x * m->words + y / 64] |= 1ULL << (y & 63);
        m->both[x * m->words + y / 64] |= 1ULL << (y & 63);
        m->both[y * m->words + x / 64] |= 1ULL << (x & 63);
    }
    return m->above && m->both;
}

static void matrix_close(struct matrix *m) {
    free(m->above);
    free(m->both);
}

static int64_t count_bits(const uint64_t *a, const uint64_t *b, int64_t words) {
    int64_t count = 0;
    for (int64_t i = 0; i < words; i++) {
        count += __builtin_popcountll(a[i] & b[i]);
    }
    return count;
}

/* Cliques of `size` more nodes out of these. */
static int64_t cliques_in(const struct matrix *m, const uint64_t *nodes, int size) {
    uint64_t rest[WORDS_MOST];
    int64_t count = 0;
    if (size == 1) {
        return count_bits(nodes, nodes, m->words);
    }
    for (int64_t w = 0; w < m->words; w++) {
        for (uint64_t bits = nodes[w]; bits; bits &= bits - 1) {
            const uint64_t *row = &m->above[(64 * w + __builtin_ctzll(bits)) * m->words];
            for (int64_t k = 0; k < m->words; k++) {
                rest[k] = nodes[k] & row[k];
            }
            count += cliques_in(m, rest, size - 1);
        }
    }
    return count;
}

static int64_t count_cliques(const struct graph *graph, int size) {
    struct matrix m;
    int64_t count = -1;
    if (matrix_open(&m, graph)) {
        count = 0;
        for (int64_t x = 0; x < m.nodes; x++) {
            count += cliques_in(&m, &m.above[x * m.words], size - 1);
        }
    }
    matrix_close(&m);
    return count;
}

int64_t check_triangles(const struct graph *graph) {
    return count_cliques(graph, 3);
}

int64_t check_cliques4(const struct graph *graph) {
    return count_cliques(graph, 4);
}

int64_t check_cliques5(const struct graph *graph) {
    return count_cliques(graph, CLIQUE_MOST);
}

/* Pairs of common neighbours of two nodes, over the edges, or over all pairs. */
static int64_t count_pairs(const struct graph *graph, bool edges) {
    struct matrix m;
    int64_t count = -1;
    if (matrix_open(&m, graph)) {
        count = 0;
        for (int64_t x = 0; x < m.nodes; x++) {
            for (int64_t y = x + 1; y < m.nodes; y++) {
                if (!edges || (m.above[x * m.words + y / 64] >> (y & 63) & 1)) {
                    int64_t common = count_bits(&m.both[x * m.words], &m.both[y * m.words], m.words);
                    count += common * (common - 1) / 2;
                }
            }
        }
    }
    matrix_close(&m);
    return count;
}

int64_t check_diamonds(const struct graph *graph) {
    return count_pairs(graph, true);
}

/* Each has two pairs of opposite nodes. */
int64_t check_cycles4(const struct graph *graph) {
    int64_t twice = count_pairs(graph, false);
    return twice < 0 ? -1 : twice / 2;
}

int64_t check_paths2(const struct graph *graph) {
    int64_t *degrees = calloc((size_t)graph->nodes + 1, sizeof *degrees);
    int64_t count = degrees ? 0 : -1;
    for (int64_t i = 0; degrees && i < graph->edges; i++) { /* each edge with those at its ends before */
        count += degrees[graph->from[i]]++;
        count += degrees[graph->to[i]]++;
    }
    free(degrees);
    return count;
}

/* datalog_check.c: answers of `bench datalog` by another way than joins.
 *
 * Relations over pairs of nodes are matrices of bits. A rule that chains two of them ORs rows: what x
 * reaches by the first has a row in the second. Rules are applied again and again, up and down the
 * rows by turns, until nothing changes. Components are found by union and find, distances by a queue,
 * points-to sets as rows of bits that statements OR into each other. */
#include "bench_datalog.h"

#include <stdlib.h>
#include <string.h>

enum { MATRIX_BYTES_MOST = 1 << 30 };

struct matrix {
    int64_t nodes, words; /* rows; words of a row */
    uint64_t *bits;
};

static bool matrix_make(struct matrix *m, int64_t rows, int64_t cols) {
    m->nodes = rows;
    m->words = cols / 64 + 1;
    m->bits = rows < MATRIX_BYTES_MOST / 8 / m->words
                  ? calloc((size_t)(rows + 1), (size_t)m->words * sizeof *m->bits)
                  : NULL;
    return m->bits != NULL;
}

static uint64_t *row_of(const struct matrix *m, int64_t x) {
    return m->bits + x * m->words;
}

static void matrix_set(struct matrix *m, int64_t x, int64_t y) {
    row_of(m, x)[y / 64] |= 1ULL << (y % 64);
}

static bool matrix_has(const struct matrix *m, int64_t x, int64_t y) {
    return row_of(m, x)[y / 64] >> (y % 64) & 1;
}

/* Whether it got more. */
static bool or_row(uint64_t *to, const uint64_t *from, int64_t words) {
    uint64_t more = 0;
    for (int64_t i = 0; i < words; i++) {
        more |= from[i] & ~to[i];
        to[i] |= from[i];
    }
    return more != 0;
}

/* Bits of a row from `y` on; -1: there are no more. */
static int64_t next_bit(const struct matrix *m, int64_t x, int64_t y) {
    const uint64_t *row = row_of(m, x);
    for (int64_t w = y / 64; w < m->words; w++) {
        uint64_t word = w == y / 64 ? row[w] & ~0ULL << (y % 64) : row[w];
        if (word) {
            return w * 64 + __builtin_ctzll(word);
        }
    }
    return -1;
}

static void add_numbers(struct answer *out, int64_t count, int64_t first, int64_t second) {
    out->numbers[out->count++] = count;
    out->numbers[out->count++] = first;
    out->numbers[out->count++] = second;
}

static void add_matrix(struct answer *out, const struct matrix *m) {
    int64_t count = 0, first = 0, second = 0;
    for (int64_t x = 0; x < m->nodes; x++) {
        for (int64_t y = next_bit(m, x, 0); y >= 0; y = next_bit(m, x, y + 1)) {
            count++;
            first += x;
            second += y;
        }
    }
    add_numbers(out, count, first, second);
}

/* --- rules of matrices --- */

/* dst has a · b; b < 0: a turned around. */
struct chain {
    int dst, a, b;
};

static bool apply(struct matrix *all, const struct chain *rule, int64_t x) {
    const struct matrix *a = &all[rule->a];
    struct matrix *dst = &all[rule->dst];
    bool more = false;
    for (int64_t z = next_bit(a, x, 0); z >= 0; z = next_bit(a, x, z + 1)) {
        if (rule->b < 0) {
            more = more || !matrix_has(dst, z, x);
            matrix_set(dst, z, x);
        } else {
            more = or_row(row_of(dst, x), row_of(&all[rule->b], z), dst->words) || more;
        }
    }
    return more;
}

static void solve(struct matrix *all, const struct chain *rules, int count) {
    int64_t nodes = all[0].nodes;
    bool down = false;
    for (bool more = true; more; down = !down) {
        more = false;
        for (int r = 0; r < count; r++) {
            for (int64_t i = 0; i < nodes; i++) {
                more = apply(all, &rules[r], down ? nodes - 1 - i : i) || more;
            }
        }
    }
}

static bool matrices_make(struct matrix *all, int count, int64_t nodes) {
    bool fine = nodes * (nodes / 64 + 1) < MATRIX_BYTES_MOST / 8 / count * 2;
    for (int i = 0; i < count; i++) {
        all[i] = (struct matrix){0};
        fine = fine && matrix_make(&all[i], nodes, nodes);
    }
    return fine;
}

static void matrices_free(struct matrix *all, int count) {
    for (int i = 0; i < count; i++) {
        free(all[i].bits);
    }
}

static void matrix_fill(struct matrix *m, const struct graph *graph, enum fact_kind kind) {
    struct facts facts;
    facts_make(&facts, kind, graph);
    for (int64_t i = 0; i < facts.rows; i++) {
        matrix_set(m, facts.cols[0][i], facts.cols[1][i]);
    }
    facts_free(&facts);
}

bool check_closure(const struct graph *graph, struct answer *out) {
    enum { EDGE, PATH, COUNT };
    static const struct chain rules[] = {{PATH, EDGE, PATH}};
    struct matrix all[COUNT];
    bool fine = matrices_make(all, COUNT, graph->nodes);
    if (fine) {
        matrix_fill(&all[EDGE], graph, FACT_EDGE);
        matrix_fill(&all[PATH], graph, FACT_EDGE);
        solve(all, rules, 1);
        add_matrix(out, &all[PATH]);
    }
    matrices_free(all, COUNT);
    return fine;
}

bool check_generation(const struct graph *graph, struct answer *out) {
    enum { EDGE, PARENT, HALF, SAME, COUNT };
    static const struct chain rules[] = {
        {PARENT, EDGE, -1}, {SAME, PARENT, EDGE}, {HALF, PARENT, SAME}, {SAME, HALF, EDGE}};
    struct matrix all[COUNT];
    bool fine = matrices_make(all, COUNT, graph->nodes);
    if (fine) {
        matrix_fill(&all[EDGE], graph, FACT_EDGE);
        solve(all, rules, 4);
        add_matrix(out, &all[SAME]);
    }
    matrices_free(all, COUNT);
    return fine;
}

bool check_alias(const struct graph *graph, struct answer *out) {
    enum { ASSIGN, DEREF, BACK, FLOW, FLOWN, MEMORY, VALUE, HALF, WAY, COUNT };
    static const struct chain rules[] = {
        {BACK, DEREF, -1},        {FLOW, ASSIGN, MEMORY}, {FLOW, FLOW, FLOW},   {FLOWN, FLOW, -1}, {HALF, BACK, VALUE},
        {MEMORY, HALF, DEREF},    {VALUE, FLOWN, FLOW},   {WAY, FLOWN, MEMORY}, {VALUE, WAY, FLOW}};
    struct matrix all[COUNT];
    bool fine = matrices_make(all, COUNT, graph->nodes);
    if (fine) {
        matrix_fill(&all[ASSIGN], graph, FACT_ASSIGN);
        matrix_fill(&all[FLOW], graph, FACT_ASSIGN);
        matrix_fill(&all[DEREF], graph, FACT_DEREFERENCE);
        for (int64_t i = 0; i < graph->edges; i++) {
            for (int m = 0; m < 4; m++) {
                int64_t x = m & 1 ? graph->from[i] : graph->to[i];
                matrix_set(&all[m & 2 ? FLOW : MEMORY], x, x);
            }
        }
        solve(all, rules, sizeof rules / sizeof *rules);
        add_matrix(out, &all[FLOW]);
        add_matrix(out, &all[MEMORY]);
        add_matrix(out, &all[VALUE]);
    }
    matrices_free(all, COUNT);
    return fine;
}

/* --- one node's --- */

static int64_t *numbers_new(int64_t count, int64_t value) {
    int64_t *numbers = malloc((size_t)(count + 1) * sizeof *numbers);
    for (int64_t i = 0; numbers && i <= count; i++) {
        numbers[i] = value;
    }
    return numbers;
}

/* Distances from the first node, by a queue of nodes that came nearer; unweighted: 0. */
static bool distances(const struct graph *graph, bool weighted, int64_t *far) {
    int64_t *first = numbers_new(graph->nodes, 0), *queue = numbers_new(graph->nodes + 1, 0);
    char *queued = calloc((size_t)graph->nodes + 1, 1);
    bool fine = first && queue && queued;
    struct facts w;
    facts_make(&w, FACT_WEIGHT, graph);
    for (int64_t i = graph->edges - 1; fine && i >= 0; i--) { /* edges are in order */
        first[graph->from[i]] = i;
    }
    int64_t head = 0, tail = 0, size = graph->nodes + 1;
    if (fine && graph->edges) {
        far[graph->from[0]] = 0;
        queue[tail++] = graph->from[0];
    }
    while (fine && head != tail) {
        int64_t x = queue[head];
        head = (head + 1) % size;
        queued[x] = 0;
        for (int64_t i = first[x]; i < graph->edges && graph->from[i] == x; i++) {
            int64_t y = graph->to[i], now = far[x] + (weighted ? w.cols[2][i] : 0);
            if (far[y] >= 0 && far[y] <= now) {
                continue;
            }
            far[y] = now;
            if (!queued[y]) {
                queued[y] = 1;
                queue[tail] = y;
                tail = (tail + 1) % size;
            }
        }
    }
    facts_free(&w);
    free(first);
    free(queue);
    free(queued);
    return fine;
}

static bool check_from_one(const struct graph *graph, bool weighted, struct answer *out) {
    int64_t *far = numbers_new(graph->nodes, -1);
    int64_t count = 0, nodes = 0, sum = 0;
    bool fine = far && distances(graph, weighted, far);
    for (int64_t x = 0; fine && x < graph->nodes; x++) {
        count += far[x] >= 0;
        nodes += far[x] >= 0 ? x : 0;
        sum += far[x] >= 0 ? far[x] : 0;
    }
    free(far);
    add_numbers(out, count, nodes, sum);
    out->count -= !weighted; /* no second column */
    return fine;
}

bool check_reach(const struct graph *graph, struct answer *out) {
    return check_from_one(graph, false, out);
}

bool check_distances(const struct graph *graph, struct answer *out) {
    return check_from_one(graph, true, out);
}

static int64_t root_of(int64_t *parents, int64_t x) {
    while (parents[x] != x) {
        parents[x] = parents[parents[x]];
        x = parents[x];
    }
    return x;
}

bool check_components(const struct graph *graph, struct answer *out) {
    int64_t *parents = numbers_new(graph->nodes, 0);
    int64_t nodes = 0, labels = 0;
    for (int64_t x = 0; parents && x < graph->nodes; x++) {
        parents[x] = x;
    }
    for (int64_t i = 0; parents && i < graph->edges; i++) { /* the least is the root */
        int64_t a = root_of(parents, graph->from[i]), b = root_of(parents, graph->to[i]);
        parents[a > b ? a : b] = a > b ? b : a;
    }
    for (int64_t x = 0; parents && x < graph->nodes; x++) {
        nodes += x;
        labels += root_of(parents, x);
    }
    add_numbers(out, graph->nodes, nodes, labels);
    free(parents);
    return parents != NULL;
}

/* --- points-to --- */

enum { FIELD_ROWS = 8 };

struct program {
    struct facts facts[FACT_KINDS];
    struct matrix vars, fields, calls; /* v by h; base and field by h; call by method */
};

static bool move_all(struct program *p) {
    const struct facts *moves = &p->facts[FACT_MOVE], *loads = &p->facts[FACT_LOAD], *stores = &p->facts[FACT_STORE];
    int64_t words = p->vars.words;
    bool more = false;
    for (int64_t i = 0; i < moves->rows; i++) {
        more = or_row(row_of(&p->vars, moves->cols[0][i]), row_of(&p->vars, moves->cols[1][i]), words) || more;
    }
    for (int64_t i = 0; i < stores->rows; i++) {
        int64_t x = stores->cols[0][i];
        for (int64_t b = next_bit(&p->vars, x, 0); b >= 0; b = next_bit(&p->vars, x, b + 1)) {
            more = or_row(row_of(&p->fields, b * FIELD_ROWS + stores->cols[1][i]),
                          row_of(&p->vars, stores->cols[2][i]), words) ||
                   more;
        }
    }
    for (int64_t i = 0; i < loads->rows; i++) {
        int64_t x = loads->cols[1][i];
        for (int64_t b = next_bit(&p->vars, x, 0); b >= 0; b = next_bit(&p->vars, x, b + 1)) {
            more = or_row(row_of(&p->vars, loads->cols[0][i]),
                          row_of(&p->fields, b * FIELD_ROWS + loads->cols[2][i]), words) ||
                   more;
        }
    }
    return more;
}

static bool call_all(struct program *p) {
    const struct facts *calls = &p->facts[FACT_CALL], *methods = &p->facts[FACT_METHOD];
    const struct facts *formals = &p->facts[FACT_FORMAL];
    bool more = false;
    for (int64_t i = 0; i < calls->rows; i++) {
        int64_t x = calls->cols[1][i];
        for (int64_t h = next_bit(&p->vars, x, 0); h >= 0; h = next_bit(&p->vars, x, h + 1)) {
            int64_t method = methods->cols[1][h]; /* there is one for every h */
            matrix_set(&p->calls, calls->cols[0][i], method);
            if (method < formals->rows) {
                more = or_row(row_of(&p->vars, formals->cols[1][method]), row_of(&p->vars, calls->cols[2][i]),
                              p->vars.words) ||
                       more;
            }
        }
    }
    return more;
}

static void add_fields(struct answer *out, const struct matrix *m) {
    int64_t count = 0, bases = 0, heaps = 0;
    for (int64_t x = 0; x < m->nodes; x++) {
        for (int64_t y = next_bit(m, x, 0); y >= 0; y = next_bit(m, x, y + 1)) {
            count++;
            bases += x / FIELD_ROWS;
            heaps += y;
        }
    }
    add_numbers(out, count, bases, heaps);
}

bool check_points_to(const struct graph *graph, struct answer *out) {
    struct program p;
    int64_t nodes = graph->nodes;
    memset(&p, 0, sizeof p);
    bool fine = matrix_make(&p.vars, nodes, nodes) && matrix_make(&p.fields, nodes * FIELD_ROWS, nodes) &&
                matrix_make(&p.calls, graph->edges + 1, 16);
    for (int kind = FACT_NEW; kind <= FACT_FORMAL; kind++) {
        facts_make(&p.facts[kind], (enum fact_kind)kind, graph);
    }
    if (fine) {
        matrix_fill(&p.vars, graph, FACT_NEW);
        for (bool more = true; more;) {
            more = move_all(&p);
            more = call_all(&p) || more;
        }
        add_matrix(out, &p.vars);
        add_fields(out, &p.fields);
        add_matrix(out, &p.calls);
    }
    for (int kind = FACT_NEW; kind <= FACT_FORMAL; kind++) {
        facts_free(&p.facts[kind]);
    }
    free(p.vars.bits);
    free(p.fields.bits);
    free(p.calls.bits);
    return fine;
}

/* graphs.c: the graphs of `bench datalog` and `bench graph`.
 *
 * All is drawn by a hash of its number, so that every run has the same. Files may name nodes by any
 * numbers: they are numbered anew, in their order. An edge is a word, its first node in the upper half,
 * until duplicates are gone. */
#define _GNU_SOURCE
#include "bench_graphs.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES_MOST = 1 << 30, THREADS_MOST = 64, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct edges {
    int64_t count, room;
    uint64_t *words;
};

uint64_t graph_draw(uint64_t number, uint64_t what) {
    uint64_t x = number * 0x9e3779b97f4a7c15ULL + what * 0xd1342543de82ef95ULL + 1;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

void *graph_room(void *old, int64_t count) {
    void *room = realloc(old, (size_t)count * sizeof(int64_t));
    if (!room) {
        fprintf(stderr, "bench: no memory for %lld edges\n", (long long)count);
        exit(1);
    }
    return room;
}

static uint64_t word_of(int64_t from, int64_t to) {
    return (uint64_t)from << 32 | (uint64_t)to;
}

static void add_edge(struct edges *edges, int64_t from, int64_t to) {
    if (edges->count == edges->room) {
        edges->room = edges->room ? 2 * edges->room : 1024;
        edges->words = graph_room(edges->words, edges->room);
    }
    edges->words[edges->count++] = word_of(from, to);
}

void graph_free(struct graph *graph) {
    free(graph->from);
    free(graph->to);
}

/* --- side by side --- */

struct share {
    void (*each)(void *arg, int64_t from, int64_t to);
    void *arg;
    int64_t from, to;
};

static void *run_share(void *arg) {
    struct share *share = arg;
    share->each(share->arg, share->from, share->to);
    return NULL;
}

/* Numbers 0 .. count - 1, by all cores. */
static void for_all(int64_t count, void (*each)(void *arg, int64_t from, int64_t to), void *arg) {
    pthread_t threads[THREADS_MOST];
    struct share shares[THREADS_MOST];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t parts = count < 1 << 16 || cores < 1 ? 1 : cores < THREADS_MOST ? cores : THREADS_MOST;
    bool started[THREADS_MOST] = {false};
    for (int64_t i = 0; i < parts; i++) {
        shares[i] = (struct share){each, arg, count * i / parts, count * (i + 1) / parts};
        started[i] = i > 0 && pthread_create(&threads[i], NULL, run_share, &shares[i]) == 0;
    }
    for (int64_t i = 0; i < parts; i++) {
        if (!started[i]) {
            run_share(&shares[i]);
        }
    }
    for (int64_t i = 0; i < parts; i++) {
        if (started[i]) {
            pthread_join(threads[i], NULL);
        }
    }
}

/* --- kinds --- */

struct drawing {
    struct edges *out;
    int64_t nodes, edges;
    int percent[3]; /* of RMAT's quarters, each with those before it */
};

/* Of all pairs each with the same probability: the distance to the next one is geometric. */
static void draw_gnp(struct drawing *d) {
    double pairs = (double)d->nodes * (double)d->nodes, at = -1;
    double share = (double)d->edges / pairs;
    double log_rest = share < 1 ? log1p(-share) : -1e300;
    for (uint64_t i = 0;; i++) {
        double u = ((double)(graph_draw(i, 1) >> 11) + 0.5) / 9007199254740992.0;
        at += 1 + floor(log(u) / log_rest);
        if (at >= pairs) {
            return;
        }
        add_edge(d->out, (int64_t)at / d->nodes, (int64_t)at % d->nodes);
    }
}

static void draw_pairs(void *arg, int64_t from, int64_t to) {
    const struct drawing *d = arg;
    for (int64_t i = from; i < to; i++) {
        uint64_t x = graph_draw((uint64_t)i, 7), y = graph_draw((uint64_t)i, 8);
        d->out->words[i] = word_of((int64_t)(x % (uint64_t)d->nodes), (int64_t)(y % (uint64_t)d->nodes));
    }
}

/* Halves of the nodes, again and again. */
static void draw_quarters(void *arg, int64_t from, int64_t to) {
    const struct drawing *d = arg;
    const uint64_t a = (uint64_t)d->percent[0], b = (uint64_t)d->percent[1], c = (uint64_t)d->percent[2];
    for (int64_t i = from; i < to; i++) {
        int64_t x = 0, y = 0;
        for (int64_t half = d->nodes / 2, level = 0; half > 0; half /= 2, level++) {
            uint64_t draw = graph_draw((uint64_t)i, 100 + (uint64_t)level) % 100;
            x += draw >= b ? half : 0;
            y += (draw >= a && draw < b) || draw >= c ? half : 0;
        }
        d->out->words[i] = word_of(x, y);
    }
}

/* Edges whose number says all of them. */
static void draw_all(struct drawing *d, void (*each)(void *arg, int64_t from, int64_t to)) {
    d->out->words = graph_room(d->out->words, d->edges + 1);
    d->out->count = d->out->room = d->edges;
    for_all(d->edges, each, d);
}

static void draw_gnm(struct drawing *d) {
    draw_all(d, draw_pairs);
}

static void draw_rmat(struct drawing *d) {
    memcpy(d->percent, (int[]){57, 76, 95}, sizeof d->percent);
    draw_all(d, draw_quarters);
}

static void draw_rmat45(struct drawing *d) {
    memcpy(d->percent, (int[]){45, 60, 75}, sizeof d->percent);
    draw_all(d, draw_quarters);
}

static void draw_grid(struct drawing *d) {
    int64_t side = (int64_t)llround(sqrt((double)d->nodes));
    for (int64_t i = 0; i < d->nodes; i++) {
        if (i % side + 1 < side) {
            add_edge(d->out, i, i + 1);
        }
        if (i / side + 1 < side) {
            add_edge(d->out, i, i + side);
        }
    }
}

static void draw_parents(struct edges *out, int64_t nodes, int64_t children) {
    for (int64_t i = 1; i < nodes; i++) {
        add_edge(out, (i - 1) / children, i);
    }
}

static void draw_chain(struct drawing *d) {
    draw_parents(d->out, d->nodes, 1);
}

static void draw_tree(struct drawing *d) {
    draw_parents(d->out, d->nodes, 2);
}

/* How many nodes go with so many edges. */
enum shape { SHAPE_QUARTER, SHAPE_HALF, SHAPE_EIGHTH, SHAPE_SAME, SHAPE_SQUARE };
static const struct kind {
    const char *name;
    enum shape shape;
    bool halves; /* the number of nodes is a power of two */
    void (*draw)(struct drawing *d);
} kinds[] = {
    {"gnp", SHAPE_QUARTER, false, draw_gnp},
    {"gnm", SHAPE_HALF, false, draw_gnm},
    {"rmat", SHAPE_QUARTER, true, draw_rmat},
    {"rmat45", SHAPE_QUARTER, true, draw_rmat45},
    {"grid", SHAPE_SQUARE, false, draw_grid},
    {"chain", SHAPE_EIGHTH, false, draw_chain},
    {"tree", SHAPE_SAME, false, draw_tree},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- each once --- */

static int bits_of(int64_t nodes) {
    int bits = 1;
    while (bits < 32 && nodes > (int64_t)1 << bits) {
        bits++;
    }
    return bits;
}

/* Words by the bits [first, first + DIGIT_BITS). */
static void sort_by(uint64_t *to, const uint64_t *from, int64_t count, int first) {
    static int64_t starts[DIGITS];
    memset(starts, 0, sizeof starts);
    for (int64_t i = 0; i < count; i++) {
        starts[from[i] >> first & (DIGITS - 1)]++;
    }
    int64_t sum = 0;
    for (int i = 0; i < DIGITS; i++) {
        int64_t own = starts[i];
        starts[i] = sum;
        sum += own;
    }
    for (int64_t i = 0; i < count; i++) {
        to[starts[from[i] >> first & (DIGITS - 1)]++] = from[i];
    }
}

/* A digit of the lower half may reach into the upper: those bits are sorted again. */
static void sort_edges(struct edges *edges, int bits) {
    uint64_t *other = graph_room(NULL, edges->count + 1);
    for (int half = 0; half < 64; half += 32) {
        for (int bit = 0; bit < bits; bit += DIGIT_BITS) {
            sort_by(other, edges->words, edges->count, half + bit);
            uint64_t *sorted = other;
            other = edges->words;
            edges->words = sorted;
        }
    }
    free(other);
}

static void keep_undirected(struct edges *edges) {
    int64_t kept = 0;
    for (int64_t i = 0; i < edges->count; i++) {
        uint64_t word = edges->words[i], turned = word << 32 | word >> 32;
        if (word != turned) {
            edges->words[kept++] = word < turned ? word : turned;
        }
    }
    edges->count = kept;
}

struct taking {
    const struct edges *edges;
    struct graph *out;
    int bits; /* 0: in their order */
};

static void take_some(void *arg, int64_t from, int64_t to) {
    const struct taking *t = arg;
    for (int64_t i = from; i < to; i++) {
        int64_t at = t->bits ? (int64_t)bench_shuffled((uint32_t)i, (uint32_t)t->edges->count, t->bits) : i;
        t->out->from[at] = (int64_t)(t->edges->words[i] >> 32);
        t->out->to[at] = (int64_t)(t->edges->words[i] & 0xffffffff);
    }
}

static void take_edges(struct graph *out, struct edges *edges, enum graph_form form) {
    if (form == GRAPH_UNDIRECTED) {
        keep_undirected(edges);
    }
    sort_edges(edges, bits_of(out->nodes));
    int64_t kept = 0;
    for (int64_t i = 0; i < edges->count; i++) {
        if (i == 0 || edges->words[i] != edges->words[kept - 1]) {
            edges->words[kept++] = edges->words[i];
        }
    }
    edges->count = out->edges = kept;
    out->from = graph_room(NULL, kept + 1);
    out->to = graph_room(NULL, kept + 1);
    struct taking taking = {edges, out, form == GRAPH_UNDIRECTED ? bits_of(kept) : 0};
    for_all(kept, take_some, &taking);
}

/* --- files --- */

struct names {
    int64_t count, room; /* two an edge */
    int64_t *of;
};

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t number_of(const int64_t *names, int64_t count, int64_t name) {
    return (const int64_t *)bsearch(&name, names, (size_t)count, sizeof name, by_number) - names;
}

/* Edges of nodes in the order of their names; how many nodes there are. */
static int64_t number_nodes(const struct names *names, struct edges *out) {
    int64_t *sorted = graph_room(NULL, names->count + 1);
    int64_t count = 0;
    for (int64_t i = 0; i < names->count; i++) {
        sorted[i] = names->of[i];
    }
    qsort(sorted, (size_t)names->count, sizeof *sorted, by_number);
    for (int64_t i = 0; i < names->count; i++) {
        if (i == 0 || sorted[i] != sorted[count - 1]) {
            sorted[count++] = sorted[i];
        }
    }
    for (int64_t i = 0; i < names->count; i += 2) {
        add_edge(out, number_of(sorted, count, names->of[i]), number_of(sorted, count, names->of[i + 1]));
    }
    free(sorted);
    return count;
}

/* Two numbers a line, with blanks, tabs or a comma between them; what begins otherwise is skipped where it is a
 * comment (# or %) or the first line. */
static bool read_edges(const char *path, struct names *out) {
    FILE *file = fopen(path, "r");
    char line[512];
    if (!file) {
        fprintf(stderr, "bench: no graph \"%s\": %s; there are gnp, gnm, rmat, rmat45, grid, chain, tree\n", path,
                strerror(errno));
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
        if (out->count + 2 > out->room) {
            out->room = 2 * out->room + 1024;
            out->of = graph_room(out->of, out->room);
        }
        if (end > first && rest > end + 1) {
            out->of[out->count++] = a;
            out->of[out->count++] = b;
        } else if (!fine) {
            fprintf(stderr, "bench: %s:%lld: two numbers are wanted\n", path, (long long)no);
        }
    }
    fclose(file);
    return fine;
}

/* --- by name --- */

static int64_t nodes_for(enum shape shape, int64_t edges) {
    switch (shape) {
    case SHAPE_QUARTER:
        return edges / 4 + 2;
    case SHAPE_HALF:
        return edges / 2 + 2;
    case SHAPE_EIGHTH:
        return edges / 8 + 2;
    case SHAPE_SQUARE:
        return (int64_t)sqrt((double)edges / 2) + 1;
    default:
        return edges + 1;
    }
}

/* `nodes` 0: as many as go with the edges. */
static bool draw(struct graph *out, struct edges *drawn, const struct kind *kind, int64_t nodes, int64_t edges) {
    nodes = nodes ? nodes : nodes_for(kind->shape, edges);
    if (nodes < 1 || edges > NODES_MOST || nodes > (kind->shape == SHAPE_SQUARE ? 1 << 15 : NODES_MOST)) {
        return false;
    }
    int64_t power = 2;
    while (power < nodes) {
        power *= 2;
    }
    out->nodes = kind->halves ? power : kind->shape == SHAPE_SQUARE ? nodes * nodes : nodes;
    struct drawing d = {.out = drawn, .nodes = out->nodes, .edges = edges};
    kind->draw(&d);
    return true;
}

/* The kind that a name begins with, up to its end or its size. */
static const struct kind *kind_of(const char *spec) {
    for (int i = 0; i < KINDS; i++) {
        size_t len = strlen(kinds[i].name);
        if (strcspn(spec, ":") == len && strncmp(spec, kinds[i].name, len) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static bool draw_named(struct graph *out, struct edges *drawn, const char *spec, int64_t edges) {
    const char *size = strchr(spec, ':');
    char *end = "";
    int64_t nodes = size ? strtoll(size + 1, &end, 10) : 0;
    int64_t own = *end == ',' ? strtoll(end + 1, &end, 10) : size ? 4 * nodes : edges;
    bool fine = !*end && nodes >= 0 && (nodes > 0 || !size) && own > 0 && nodes <= NODES_MOST &&
                draw(out, drawn, kind_of(spec), nodes, own);
    if (!fine) {
        fprintf(stderr, "bench: no graph has the size of \"%s\"\n", spec);
    }
    return fine;
}

bool graph_make(struct graph *out, const char *spec, int64_t edges, enum graph_form form) {
    struct edges drawn = {0};
    struct names names = {0};
    memset(out, 0, sizeof *out);
    const char *name = strrchr(spec, '/') ? strrchr(spec, '/') + 1 : spec;
    snprintf(out->name, sizeof out->name, "%s", name);
    bool known = kind_of(spec) != NULL;
    bool fine = known ? draw_named(out, &drawn, spec, edges) : read_edges(spec, &names);
    if (fine && !known) {
        out->nodes = number_nodes(&names, &drawn);
    }
    if (fine) {
        take_edges(out, &drawn, form);
    }
    free(drawn.words);
    free(names.of);
    return fine;
}

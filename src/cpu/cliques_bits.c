/* cliques_bits.c: cliques of a graph whose edges are there once. Of turned edges each is found at its first
 * node; else nodes are taken in the order that the edges' directions give.
 *
 * Triangles. The neighbours of a node are marked, a bit each; every neighbour v then asks which ones are
 * its neighbours, too, by whatever is least work:
 *   - v is one of the heaviest nodes, which have a row of bits each, those behind v: rows are ANDed, or
 *     the node's neighbours behind v are looked up in it;
 *   - else v's neighbours are looked up among the marks, or, where v has many more than are left, those
 *     that are left are sought among v's.
 * Larger cliques. The neighbours of a node get a matrix of bits, who is whose neighbour, and whoever takes
 * one of them goes on with the bits that its row leaves, until rows of two nodes are ANDed and counted. */
#include "cpu/cliques.h"
#include "cpu/vec.h"

enum {
    WORD = 64, /* nodes of a word of bits */
    AHEAD_STARTS = 24, /* edges whose lists are fetched before they are needed */
    AHEAD_LISTS = 12,
    SEEK_COST = 3, /* lookups that a step of a search takes */
    ROWS_AN_EDGE = 4, /* bytes of matrices of neighbours */
#ifdef WF_HARD
    TASK_EDGES = 64,
    ROWS_LEAST = 1 << 8,
    BITS_AN_EDGE = 256,
#else
    TASK_EDGES = 1 << 14,
    ROWS_LEAST = 1 << 20,
    BITS_AN_EDGE = 32,
#endif
};

struct counter { /* of a worker */
    u64 *marks;  /* a bit a node; the block all of this lies in */
    u32 *places; /* of words of marks that have any, */
    u64 *words;  /* and these */
    u64 *rows;  /* of a matrix of neighbours, of words each */
    u64 *masks; /* for every depth */
    u64 found;
    u64 steps;
};

struct count {
    struct exec *x;
    const struct clique_graph *g;
    const struct vec_table *vec;
    u32 size;
    b8 turned; /* neighbours of a node are behind it */
    struct bit_rows heavy; /* bits is NULL where there are none */
    i64 heavy_bytes;
    struct counter *counters;
    _Atomic i32 over;
};

static i64 words_of(i64 bits) {
    return (bits + WORD - 1) / WORD;
}

/* --- the matrix of the heaviest nodes --- */

static void heavy_task(void *arg, i64 task, i32 worker) {
    UNUSED(worker);
    struct count *c = arg;
    const struct clique_graph *g = c->g;
    i64 first = c->heavy.first + task * WORD, end = MIN_OF(first + WORD, g->nodes);
    for (i64 n = first; n < end && !stop_asked(); n++) {
        u64 *row = c->heavy.bits + bit_row_place(&c->heavy, n - c->heavy.first);
        memset(row, 0, (size_t)(c->heavy.words - task) * 8);
        for (i64 i = g->starts[n]; i < g->starts[n + 1]; i++) {
            i64 bit = g->to[i] - first;
            row[bit / WORD] |= 1ULL << bit % WORD;
        }
    }
}

/* As large as edges make worth while, and memory has room for. */
static void heavy_init(struct count *c) {
    const struct clique_graph *g = c->g;
    struct bit_rows *rows = &c->heavy;
    i64 most = WORD;
    while (most * most / 2 < g->edges * BITS_AN_EDGE) {
        most += WORD;
    }
    for (i64 nodes = MIN_OF(g->heavy, most); nodes >= 2 * WORD && !rows->bits; nodes /= 2) {
        rows->first = ALIGN_UP(g->nodes - nodes, WORD);
        rows->words = words_of(g->nodes - rows->first);
        c->heavy_bytes = bit_row_place(rows, rows->words * WORD) * 8;
        rows->bits = mem_try(c->x->mem, c->heavy_bytes);
    }
    if (rows->bits) {
        tasks_run(c->x, rows->words, heavy_task, c);
    } else {
        rows->first = g->nodes;
    }
}

/* --- triangles --- */

static i64 seek_all(const u32 *some, i64 count, const u32 *in, i64 in_count) {
    i64 found = 0, at = 0;
    for (i64 i = 0; i < count && at < in_count; i++) {
        at = clique_seek(in, at, in_count, some[i]);
        found += at < in_count && in[at] == some[i];
    }
    return found;
}

static i64 common_light(const struct count *c, const u64 *marks, u32 v, const u32 *behind, i64 count) {
    const struct clique_graph *g = c->g;
    const u32 *own = g->to + g->starts[v];
    i64 own_count = g->starts[v + 1] - g->starts[v];
    if (own_count > 16 && count * SEEK_COST * (WORD - __builtin_clzll((u64)own_count)) < own_count) {
        return seek_all(behind, count, own, own_count);
    }
    return c->vec->marked_nodes(own, own_count, 0, marks);
}

static void fetch_ahead(const struct clique_graph *g, i64 edge) {
    if (edge + AHEAD_STARTS < g->edges) {
        __builtin_prefetch(&g->starts[g->to[edge + AHEAD_STARTS]]);
        __builtin_prefetch(&g->to[g->starts[g->to[edge + AHEAD_LISTS]]]);
    }
}

static void count_triangles(struct count *c, struct counter *w, i64 node) {
    const struct clique_graph *g = c->g;
    i64 from = g->starts[node], end = g->starts[node + 1];
    u64 *marks = w->marks;
    if (end - from < (c->turned ? 2 : 1)) {
        return;
    }
    for (i64 i = from; i < end; i++) {
        marks[g->to[i] / WORD] |= 1ULL << g->to[i] % WORD;
    }
    i64 i = from;
    i64 found = 0;
    for (; i < end && g->to[i] < c->heavy.first; i++) {
        i64 rest = c->turned ? i + 1 : from;
        fetch_ahead(g, i);
        found += common_light(c, marks, g->to[i], g->to + rest, end - rest);
    }
    if (end - i > 1) {
        found += c->vec->edges_among(&c->heavy, g->to + i, end - i, marks, w->places, w->words);
    }
    for (i = from; i < end; i++) {
        marks[g->to[i] / WORD] = 0;
    }
    w->found += (u64)found;
}

/* --- larger cliques --- */

/* Who of the neighbours of a node is whose neighbour. */
static void fill_rows(const struct count *c, struct counter *w, i64 node) {
    const struct clique_graph *g = c->g;
    i64 from = g->starts[node], count = g->starts[node + 1] - from, words = words_of(count);
    const u32 *own = g->to + from;
    memset(w->rows, 0, (size_t)(count * words) * 8);
    for (i64 p = 0; p < count; p++) {
        i64 at = g->starts[own[p]], end = g->starts[own[p] + 1];
        u64 *row = w->rows + p * words;
        fetch_ahead(g, from + p);
        for (i64 q = c->turned ? p + 1 : 0; q < count && at < end;) {
            if (g->to[at] == own[q]) {
                row[q / WORD] |= 1ULL << q % WORD;
                q++;
                at++;
            } else if (g->to[at] < own[q]) {
                at = clique_seek(g->to, at + 1, end, own[q]);
            } else {
                q = clique_seek(own, q + 1, count, g->to[at]);
            }
        }
        w->steps += (u64)(count + end - at);
    }
}

/* Cliques of `missing` more nodes among the bits of a mask; before word `first` there are none. */
static u64 count_deep(struct count *c, struct counter *w, u64 *mask, i64 words, i64 first,
                      u32 missing) {
    u64 found = 0; /* of so many steps that it fits */
    for (i64 i = first; i < words; i++) {
        for (u64 bits = mask[i]; bits; bits &= bits - 1) {
            const u64 *row = w->rows + (i * WORD + __builtin_ctzll(bits)) * words;
            i64 from = c->turned ? i : 0;
            u64 before = w->steps;
            w->steps += (u64)(words - from);
            if (missing == 2) {
                found += (u64)c->vec->common_bits(mask + from, row + from, words - from);
            } else {
                u64 *both = mask + words;
                u64 any = 0;
                for (i64 k = from; k < words; k++) {
                    both[k] = mask[k] & row[k];
                    any |= both[k];
                }
                found += any ? count_deep(c, w, both, words, from, missing - 1) : 0;
            }
            if (stop_due(before, w->steps)) {
                return found;
            }
        }
    }
    return found;
}

static void count_larger(struct count *c, struct counter *w, i64 node) {
    const struct clique_graph *g = c->g;
    i64 count = g->starts[node + 1] - g->starts[node], words = words_of(count);
    if (c->turned ? count + 1 < (i64)c->size : count == 0) {
        return;
    }
    fill_rows(c, w, node);
    for (i64 i = 0; i < words; i++) {
        w->masks[i] = i + 1 < words || count % WORD == 0 ? ~0ULL : (1ULL << count % WORD) - 1;
    }
    u64 found = count_deep(c, w, w->masks, words, 0, c->size - 1);
    if (__builtin_add_overflow(w->found, found, &w->found)) {
        atomic_store(&c->over, 1);
    }
}

/* --- all nodes --- */

/* The first node whose edges begin at or behind this one. */
static i64 node_at(const struct clique_graph *g, i64 edge) {
    i64 below = 0, above = g->nodes;
    while (below < above) {
        i64 middle = below + (above - below) / 2;
        bool less = g->starts[middle] < edge;
        below = less ? middle + 1 : below;
        above = less ? above : middle;
    }
    return below;
}

/* The last nodes, which have most to do, come first. */
static void nodes_task(void *arg, i64 task, i32 worker) {
    struct count *c = arg;
    struct counter *w = &c->counters[worker];
    i64 no = c->g->edges / TASK_EDGES - task;
    i64 end = node_at(c->g, (no + 1) * TASK_EDGES);
    i64 n = stop_asked() ? end : node_at(c->g, no * TASK_EDGES);
    for (; n < end && c->size == 3; n++) {
        count_triangles(c, w, n);
    }
    for (; n < end && !stop_asked(); n++) {
        count_larger(c, w, n);
    }
    work_rows(c->x, TASK_EDGES * CLIQUE_COUNT_READS);
}

/* Words that a worker has. */
struct rooms {
    i64 marks, places, words; /* of triangles */
    i64 rows, masks;          /* of larger cliques */
};

static struct rooms rooms_of(const struct clique_graph *g, u32 size) {
    i64 all = words_of(g->nodes), row = words_of(g->longest);
    i64 some = MIN_OF(g->longest, all) + 1;
    return size == 3 ? (struct rooms){.marks = all, .places = (some + 1) / 2, .words = some}
                     : (struct rooms){.rows = g->longest * row, .masks = size * row};
}

static i64 room_bytes(const struct rooms *r) {
    return (r->marks + r->places + r->words + r->rows + r->masks + 1) * 8;
}

static FALLIBLE counters_init(struct count *c, i32 workers, const struct rooms *rooms) {
    struct memory *mem = c->x->mem;
    for (i32 i = 0; i < workers; i++) {
        struct counter *w = &c->counters[i];
        w->marks = mem_alloc(mem, room_bytes(rooms));
        if (!w->marks) {
            return memory_refused(mem, c->x->err, room_bytes(rooms));
        }
        memset(w->marks, 0, (size_t)rooms->marks * 8);
        w->words = w->marks + rooms->marks;
        w->rows = w->words + rooms->words;
        w->masks = w->rows + rooms->rows;
        w->places = (u32 *)(w->masks + rooms->masks);
    }
    return ERR_OK;
}

bool cliques_fit_bits(const struct exec *x, const struct clique_graph *g, u32 size) {
    i32 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 rows = g->longest > 1 << 24 ? I64_MAX : g->longest * words_of(g->longest) * 8 * workers;
    return !g->weights && (size == 3 || rows <= MAX_OF(g->edges * ROWS_AN_EDGE, ROWS_LEAST));
}

wf_status cliques_by_bits(struct exec *x, const struct clique_graph *g, u32 size, u64 *out) {
    struct count c = {.x = x, .g = g, .vec = vec_table_best(), .size = size};
    c.turned = g->form != CLIQUE_PLAIN;
    c.heavy.first = g->nodes;
    i32 workers = x->pool ? pool_worker_count(x->pool) : 1;
    struct rooms rooms = rooms_of(g, size);
    c.counters = NEW_ARRAY(x->arena, struct counter, workers);
    wf_status status = counters_init(&c, workers, &rooms);
    if (!status && size == 3 && c.turned) {
        heavy_init(&c);
    }
    if (!status) {
        tasks_run(x, g->edges / TASK_EDGES + 1, nodes_task, &c);
        status = exec_check(x);
    }
    mem_free(x->mem, c.heavy.bits, c.heavy_bytes);
    for (i32 i = 0; i < workers; i++) {
        mem_free(x->mem, c.counters[i].marks, room_bytes(&rooms));
        if (__builtin_add_overflow(*out, c.counters[i].found, out)) {
            atomic_store(&c.over, 1);
        }
    }
    if (!status && atomic_load(&c.over)) {
        FAIL(x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return status;
}

/* cliques_build.c: edges as they come become lists of neighbours.
 *
 * 1. Which way edges go is counted, and degrees are, of a sample where edges are many.
 * 2. Nodes get their places by ascending degree (not in form PLAIN).
 * 3. Edges are split into buckets by their first node. What is left of an edge then fits 32 bits where
 *    there are at most some million nodes: a word.
 * 4. Every bucket is sorted, in the cache; whether edges are as the form says is seen. Lists take the
 *    place of the words. If edges are not so, all is done again in form PLAIN.
 *
 * Beside the edges that makes 4 or 8 bytes an edge and 16 a node. */
#include "cpu/cliques.h"
#include "cpu/radix.h"

enum {
    PARTS = 32,       /* tasks, of edges or of nodes */
    BUCKET_BITS = 11, /* at most */
    WORD_BITS = 32,
    GROUP = 16, /* neighbouring edges that a sample of degrees takes together */
#ifdef WF_HARD
    PIECE_ROWS = 100,
    BUCKET_ROWS = 16,
    SAMPLED_ROWS = 1 << 10,
    HEAVY_DEGREE = 3
#else
    PIECE_ROWS = 1 << 16,
    BUCKET_ROWS = 1 << 15,
    SAMPLED_ROWS = 1 << 20, /* edges that tell degrees, about */
    HEAVY_DEGREE = 32
#endif
};

struct piece {
    const u32 *from, *to;
    i64 rows;
};

struct build {
    struct exec *x;
    struct clique_graph *g;
    struct piece *pieces;
    i64 piece_count;
    i64 rows;
    i64 every; /* of so many groups of edges one tells degrees */
    i32 bits;  /* of a node */
    i32 shift; /* of these, those that a bucket leaves */
    b8 wide;   /* words of 64 bits */
    _Atomic u32 *degrees;
    u32 *rank;
    u32 *classes; /* by part and class: nodes, then where the next one goes */
    void *words;
    i64 *places; /* by part and bucket: words, then where the next one goes */
    i64 *ends;   /* by bucket, from the one before it */
    i64 longest_bucket;
    void **temps; /* by worker */
    _Atomic i64 up, down, loops, longest;
    _Atomic i32 odd;      /* edges are not as the form says */
    _Atomic i32 repeated; /* some are there more than once */
};

static void *take(struct exec *x, i64 bytes, wf_status *status) {
    void *data = *status ? NULL : mem_alloc(x->mem, MAX_OF(bytes, 1));
    if (!data && !*status) {
        *status = memory_refused(x->mem, x->err, bytes);
    }
    return data;
}

static void *take_zeros(struct exec *x, i64 bytes, wf_status *status) {
    void *data = take(x, bytes, status);
    if (data) {
        memset(data, 0, (size_t)bytes);
    }
    return data;
}

static void give(struct exec *x, void *data, i64 bytes) {
    mem_free(x->mem, data, MAX_OF(bytes, 1));
}

static struct row_span part_of(i64 count, i64 part) {
    return (struct row_span){count * part / PARTS, count * (part + 1) / PARTS};
}

static void cut_pieces(struct build *b, const struct variable *edges) {
    i64 most = edges->rows / PIECE_ROWS + edges->chunks.count;
    b->pieces = NEW_ARRAY(b->x->arena, struct piece, most + 1);
    for (i64 i = 0; i < edges->chunks.count; i++) {
        const struct chunk *chunk = edges->chunks.items[i];
        const u32 *from = chunk->cols[0].data, *to = chunk->cols[1].data;
        for (i64 at = 0; at < chunk->rows; at += PIECE_ROWS) {
            i64 rows = MIN_OF(chunk->rows - at, PIECE_ROWS);
            b->pieces[b->piece_count++] = (struct piece){from + at, to + at, rows};
        }
    }
}

/* --- 1: facts --- */

static void facts_task(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    struct row_span span = part_of(b->piece_count, part);
    i64 up = 0, down = 0, loops = 0, skip = (b->every - 1) * GROUP + 1;
    for (i64 i = span.first; i < span.end && !stop_asked(); i++) {
        const struct piece *p = &b->pieces[i];
        i64 more = 0, less = 0;
        for (i64 k = 0; k < p->rows; k++) {
            more += p->from[k] < p->to[k];
            less += p->from[k] > p->to[k];
        }
        up += more;
        down += less;
        loops += p->rows - more - less;
        for (i64 k = 0; k < p->rows; k += k % GROUP == GROUP - 1 ? skip : 1) {
            atomic_fetch_add_explicit(&b->degrees[p->from[k]], 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&b->degrees[p->to[k]], 1, memory_order_relaxed);
        }
    }
    atomic_fetch_add(&b->up, up);
    atomic_fetch_add(&b->down, down);
    atomic_fetch_add(&b->loops, loops);
}

static FALLIBLE find_facts(struct build *b) {
    struct exec *x = b->x;
    b->every = MAX_OF(MIN_OF(b->rows / SAMPLED_ROWS, 8), 1);
    tasks_run(x, PARTS, facts_task, b);
    work_rows(x, b->rows);
    bool one_way = !b->up || !b->down;
    b->g->form = b->loops            ? CLIQUE_PLAIN
                 : one_way           ? CLIQUE_TURNED
                 : b->up == b->down  ? CLIQUE_BOTH
                                     : CLIQUE_PLAIN;
    return exec_check(x);
}

/* --- 2: ranks --- */

/* Classes of degrees, ascending: 32 an octave. */
static u32 class_of(u32 degree) {
    i32 octave = 31 - __builtin_clz(degree | 1);
    u32 class = degree < 32 ? degree
                            : 32 + (u32)(octave - 5) * 32 + (degree >> (octave - 5) & 31);
    return MIN_OF(class, CLIQUE_CLASSES - 1);
}

static u32 degree_of(const struct build *b, i64 node) {
    return atomic_load_explicit(&b->degrees[node], memory_order_relaxed);
}

static void classes_task(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    u32 *count = b->classes + part * CLIQUE_CLASSES;
    struct row_span span = part_of(b->g->nodes, part);
    for (i64 n = span.first; n < span.end; n++) {
        count[class_of(degree_of(b, n))]++;
    }
}

static void ranks_task(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    u32 *at = b->classes + part * CLIQUE_CLASSES;
    struct row_span span = part_of(b->g->nodes, part);
    for (i64 n = span.first; n < span.end; n++) {
        b->rank[n] = at[class_of(degree_of(b, n))]++;
    }
}

static void rank_nodes(struct build *b) {
    u32 heavy_class = class_of((u32)MAX_OF(HEAVY_DEGREE / b->every, 1));
    b->classes = NEW_ARRAY(b->x->arena, u32, PARTS * CLIQUE_CLASSES);
    tasks_run(b->x, PARTS, classes_task, b);
    u32 before = 0;
    for (u32 class = 0; class < CLIQUE_CLASSES; class++) {
        if (class == heavy_class) {
            b->g->heavy = b->g->nodes - before;
        }
        for (i64 part = 0; part < PARTS; part++) {
            u32 *at = &b->classes[part * CLIQUE_CLASSES + class];
            u32 count = *at;
            *at = before;
            before += count;
        }
    }
    tasks_run(b->x, PARTS, ranks_task, b);
}

/* --- 3: split --- */

struct turned {
    u32 first, second;
    u32 back; /* it was turned; of form BOTH only */
};

static inline struct turned turn(const u32 *rank, enum clique_form form, u32 from, u32 to) {
    if (form == CLIQUE_PLAIN) {
        return (struct turned){from, to, 0};
    }
    u32 a = rank[from], b = rank[to];
    return (struct turned){MIN_OF(a, b), MAX_OF(a, b), form == CLIQUE_BOTH && b < a};
}

static void count_task(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    i64 *count = b->places + (part << (b->bits - b->shift));
    enum clique_form form = b->g->form;
    const u32 *rank = b->rank;
    struct row_span span = part_of(b->piece_count, part);
    for (i64 i = span.first; i < span.end && !stop_asked(); i++) {
        const struct piece *p = &b->pieces[i];
        for (i64 k = 0; k < p->rows; k++) {
            count[turn(rank, form, p->from[k], p->to[k]).first >> b->shift]++;
        }
    }
}

static void split_task(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    i64 *at = b->places + (part << (b->bits - b->shift));
    enum clique_form form = b->g->form;
    const u32 *rank = b->rank;
    i32 shift = b->shift, both = form == CLIQUE_BOTH, high = b->bits + both;
    u32 mask = (u32)((1ULL << shift) - 1);
    struct row_span span = part_of(b->piece_count, part);
    for (i64 i = span.first; i < span.end && !stop_asked(); i++) {
        const struct piece *p = &b->pieces[i];
        for (i64 k = 0; k < p->rows; k++) {
            struct turned edge = turn(rank, form, p->from[k], p->to[k]);
            i64 place = at[edge.first >> shift]++;
            u64 word = (u64)(edge.first & mask) << high | (u64)edge.second << both | edge.back;
            if (b->wide) {
                ((u64 *)b->words)[place] = word;
            } else {
                ((u32 *)b->words)[place] = (u32)word;
            }
        }
    }
}

/* Buckets that make words narrow, if there can be so many; and sorts short. */
static void plan_split(struct build *b) {
    i32 both = b->g->form == CLIQUE_BOTH;
    i32 wish = 0;
    while (wish < BUCKET_BITS && b->rows >> wish > BUCKET_ROWS) {
        wish++;
    }
    i32 narrow = 2 * b->bits + both - WORD_BITS;
    wish = narrow <= BUCKET_BITS ? MAX_OF(wish, narrow) : wish;
    b->shift = b->bits - MIN_OF(wish, b->bits);
    b->wide = b->shift + b->bits + both > WORD_BITS;
}

static FALLIBLE split_edges(struct build *b) {
    struct exec *x = b->x;
    i64 buckets = 1LL << (b->bits - b->shift);
    i64 at = 0;
    b->longest_bucket = 0;
    b->places = NEW_ARRAY(x->arena, i64, PARTS * buckets);
    b->ends = NEW_ARRAY(x->arena, i64, buckets);
    tasks_run(x, PARTS, count_task, b);
    work_rows(x, b->rows);
    TRY(exec_check(x));
    for (i64 bucket = 0; bucket < buckets; bucket++) {
        i64 first = at;
        for (i64 part = 0; part < PARTS; part++) {
            i64 *place = &b->places[part * buckets + bucket];
            i64 count = *place;
            *place = at;
            at += count;
        }
        b->ends[bucket] = at;
        b->longest_bucket = MAX_OF(b->longest_bucket, at - first);
    }
    tasks_run(x, PARTS, split_task, b);
    work_rows(x, b->rows);
    return exec_check(x);
}

/* --- 4: sort --- */

/* Lists of a bucket: words of `first .. end`, sorted, are in `sorted`; neighbours go to `to`. */
struct lists {
    struct build *b;
    const void *sorted;
    i64 count;
    u32 *to;
    i64 node, end; /* the next node whose start is not known yet; behind the bucket's */
    i64 place;     /* of the bucket's first edge, of all */
};

static inline u64 sorted_word(const struct lists *l, i64 i) {
    return l->b->wide ? ((const u64 *)l->sorted)[i] : ((const u32 *)l->sorted)[i];
}

static void make_lists(struct lists *l) {
    struct build *b = l->b;
    struct clique_graph *g = b->g;
    i32 both = g->form == CLIQUE_BOTH, high = b->bits + both;
    i64 first = l->node, longest = 0;
    u64 mask = (1ULL << b->bits) - 1;
    u64 last = ~0ULL;
    bool again = false, odd = both && l->count % 2;
    for (i64 i = 0; i < l->count; i += 1 + both) {
        u64 word = sorted_word(l, i);
        u64 edge = word >> both;
        again = again || edge == last;
        odd = odd || (both && (word & 1 || sorted_word(l, MIN_OF(i + 1, l->count - 1)) != word + 1));
        last = edge;
        i64 at = i >> both, node = first + (i64)(word >> high);
        for (; l->node <= node; l->node++) {
            g->starts[l->node] = l->place + at;
        }
        longest = MAX_OF(longest, l->place + at + 1 - g->starts[node]);
        l->to[at] = (u32)(edge & mask);
    }
    for (; l->node < l->end; l->node++) {
        g->starts[l->node] = l->place + (l->count >> both);
    }
    if (again) {
        atomic_store(&b->repeated, 1);
    }
    if (odd || (again && g->form != CLIQUE_PLAIN)) {
        atomic_store(&b->odd, 1);
    }
    i64 seen = atomic_load(&b->longest);
    while (longest > seen && !atomic_compare_exchange_weak(&b->longest, &seen, longest)) {
    }
}

static void sort_task(void *arg, i64 bucket, i32 worker) {
    struct build *b = arg;
    i32 both = b->g->form == CLIQUE_BOTH, high = b->shift + b->bits + both;
    i64 from = bucket ? b->ends[bucket - 1] : 0, count = b->ends[bucket] - from;
    i64 first = MIN_OF(bucket << b->shift, b->g->nodes);
    if (stop_asked() || atomic_load_explicit(&b->odd, memory_order_relaxed)) {
        return;
    }
    struct lists l = {.b = b, .sorted = b->temps[worker], .count = count, .node = first};
    l.end = MIN_OF((bucket + 1) << b->shift, b->g->nodes);
    l.place = from >> both;
    if (b->wide) {
        l.to = (u32 *)((u64 *)b->words + from);
        radix_sort_words_few((u64 *)b->words + from, b->temps[worker], count, high);
    } else {
        l.to = (u32 *)b->words + from;
        radix_sort_halves_few((u32 *)b->words + from, b->temps[worker], count, high);
    }
    make_lists(&l);
    work_rows(b->x, 2 * count);
}

/* Lists of a bucket lie where its words did: they move together. */
static void pack_lists(struct build *b) {
    i32 both = b->g->form == CLIQUE_BOTH;
    i64 buckets = 1LL << (b->bits - b->shift);
    u32 *to = b->words;
    for (i64 i = 0; i < buckets && (b->wide || both); i++) {
        i64 from = i ? b->ends[i - 1] : 0, count = b->ends[i] - from;
        memmove(to + (from >> both), to + (b->wide ? 2 * from : from), (size_t)(count >> both) * 4);
    }
}

static FALLIBLE sort_edges(struct build *b) {
    struct exec *x = b->x;
    i32 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 bytes = b->longest_bucket * (b->wide ? 8 : 4);
    wf_status status = ERR_OK;
    b->temps = NEW_ARRAY(x->arena, void *, workers);
    for (i32 i = 0; i < workers; i++) {
        b->temps[i] = take(x, bytes, &status);
    }
    if (!status) {
        tasks_run(x, 1LL << (b->bits - b->shift), sort_task, b);
        status = exec_check(x);
    }
    for (i32 i = 0; i < workers; i++) {
        give(x, b->temps[i], bytes);
    }
    TRY(status);
    b->g->edges = b->g->form == CLIQUE_BOTH ? b->rows / 2 : b->rows;
    b->g->starts[b->g->nodes] = b->g->edges;
    b->g->longest = b->longest;
    if (!b->odd) {
        pack_lists(b);
    }
    return exec_check(x);
}

/* Equal edges, which are neighbours now, become one. */
static FALLIBLE weigh(struct exec *x, struct clique_graph *g) {
    wf_status status = ERR_OK;
    i64 at = 0, longest = 0;
    g->weights = take(x, g->block_bytes, &status);
    TRY(status);
    for (i64 n = 0; n < g->nodes; n++) {
        i64 from = g->starts[n], end = g->starts[n + 1];
        g->starts[n] = at;
        for (i64 i = from; i < end; i++) {
            bool again = at > g->starts[n] && g->to[at - 1] == g->to[i];
            at -= again;
            g->weights[at] = again ? g->weights[at] + 1 : 1;
            g->to[at++] = g->to[i];
        }
        longest = MAX_OF(longest, at - g->starts[n]);
    }
    g->starts[g->nodes] = at;
    g->edges = at;
    g->longest = longest;
    return exec_check(x);
}

/* In the form that g has. */
static FALLIBLE make_graph(struct build *b) {
    struct exec *x = b->x;
    struct clique_graph *g = b->g;
    wf_status status = ERR_OK;
    plan_split(b);
    g->block_bytes = MAX_OF(b->rows * (b->wide ? 8 : 4), 1);
    b->words = take(x, g->block_bytes, &status);
    if (!status && g->form != CLIQUE_PLAIN) {
        rank_nodes(b);
    }
    status = status ? status : split_edges(b);
    status = status ? status : sort_edges(b);
    if (status || b->odd) {
        give(x, b->words, g->block_bytes);
        return status;
    }
    g->to = b->words;
    return ERR_OK;
}

static FALLIBLE make_any(struct build *b) {
    TRY(find_facts(b));
    TRY(make_graph(b));
    if (b->odd) {
        b->odd = 0;
        b->longest = 0;
        b->g->form = CLIQUE_PLAIN;
        TRY(make_graph(b));
    }
    return b->g->form == CLIQUE_PLAIN && b->repeated ? weigh(b->x, b->g) : ERR_OK;
}

void clique_graph_fini(struct memory *mem, struct clique_graph *g) {
    mem_free(mem, g->starts, clique_starts_bytes(g));
    mem_free(mem, g->to, g->block_bytes);
    mem_free(mem, g->weights, g->block_bytes);
}

wf_status clique_graph_init(struct exec *x, const struct step *step, struct clique_graph *g) {
    struct build b = {.x = x, .g = g, .rows = x->vars[step->src].rows, .bits = 1};
    wf_status status = ERR_OK;
    g->nodes = (i64)step->key_range.hi + 1;
    while ((g->nodes - 1) >> b.bits) {
        b.bits++;
    }
    cut_pieces(&b, &x->vars[step->src]);
    g->starts = take(x, clique_starts_bytes(g), &status);
    b.degrees = take_zeros(x, g->nodes * 4, &status);
    b.rank = take(x, g->nodes * 4, &status);
    status = status ? status : make_any(&b);
    give(x, (void *)b.degrees, g->nodes * 4);
    give(x, b.rank, g->nodes * 4);
    return status;
}

/* trie.c: edges become a TrieArray, in order and in parts.
 *
 * Which way edges go is counted first. Where all go up, or all down, or each is there in both directions, and none is
 * a loop, nodes are renamed by ascending degree and edges turned to the later node (decision 0035); whether edges are
 * repeated, or lack their opposite, is seen once they are sorted, and then it is done again with edges as they come.
 * How many neighbours every node has is known before edges are moved, so that they go to buckets of nodes that
 * follow each other, each in one piece, written in order; a bucket is then sorted in memory, and its neighbours are
 * written behind those of the one before. Arrays for which memory has no room are in temporary space. */
#include "run/trie.h"

#include <stdatomic.h>

#include "base/temp.h"

#ifdef WF_HARD
enum { PIECE_ROWS = 64, BUCKET_WORDS = 32, SAMPLED_ROWS = 256 };
#else
enum { PIECE_ROWS = 1 << 18, BUCKET_WORDS = 1 << 16, SAMPLED_ROWS = 1 << 22 };
#endif
enum {
    SAMPLED_EVERY = 8,
    BUCKETS_MOST = 1024,
    BLOCKS_MOST = 1 << 14, /* of nodes that share a bucket */
    LINE_WORDS = 16,       /* that go to a bucket together */
    SHORT_LIST = 48,
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS
};

struct piece {
    const u32 *from, *to;
    i64 rows;
    bool sampled;
};

struct sorter { /* a worker's */
    u64 *lines;   /* LINE_WORDS for every bucket, */
    u32 *filled;  /* so many of them */
    u32 *list;    /* the neighbours of a bucket, by node */
    u32 *other;   /* as many of a node */
    u32 *cursors; /* by node of a bucket */
    i64 longest;
    u64 odd;
};

struct builder {
    struct exec *x;
    struct trie *t;
    struct piece *pieces;
    i64 piece_count;
    _Atomic u32 *ranks; /* degrees, then places; or NULL */
    _Atomic u64 up, down, loops;
    _Atomic u32 *counts; /* t->starts + 1 */
    u64 *words;          /* first node and neighbour, by buckets */
    i64 *bucket_at;      /* where its words are; one more */
    i64 *bucket_node;    /* its first node; one more */
    _Atomic i64 *cursors;
    u16 bucket_of[BLOCKS_MOST];
    i32 shift; /* of a node to its block */
    i64 bucket_count, most_words, most_nodes;
    struct sorter *sorters;
    i32 sorter_count;
};

static void run_tasks(struct exec *x, i64 count, void (*task)(void *arg, i64 i, i32 worker),
                      void *arg) {
    if (x->pool && count > 1) {
        pool_run(x->pool, count, task, arg);
        return;
    }
    for (i64 i = 0; i < count; i++) {
        task(arg, i, 0);
    }
}

/* At least a page, which may lie in temporary space. */
static void *take(struct builder *b, i64 bytes, wf_status *status) {
    void *data = *status ? NULL : mem_alloc(b->x->mem, MAX_OF(bytes, TEMP_LEAST));
    if (!data && !*status) {
        *status = memory_refused(b->x->mem, b->x->err, bytes);
    }
    return data;
}

static u32 *take_array(struct builder *b, i64 count, struct buffer **out, wf_status *status) {
    *out = *status ? NULL : buffer_new_at(b->x->mem, MAX_OF(count, 1) * 4, BUFFER_REST);
    if (!*out && !*status) {
        *status = memory_refused(b->x->mem, b->x->err, count * 4);
    }
    return *out ? (u32 *)(void *)(*out)->data : NULL;
}

static void give(struct builder *b, void *data, i64 bytes) {
    mem_free(b->x->mem, data, MAX_OF(bytes, TEMP_LEAST));
}

static void cut_pieces(struct builder *b, u32 var) {
    const struct variable *v = &b->x->vars[var];
    i64 most = v->rows / PIECE_ROWS + v->chunks.count + 1;
    b->pieces = NEW_ARRAY(b->x->arena, struct piece, most);
    for (i64 c = 0; c < v->chunks.count; c++) {
        const struct chunk *chunk = v->chunks.items[c];
        for (i64 at = 0; at < chunk->rows; at += PIECE_ROWS) {
            b->pieces[b->piece_count++] = (struct piece){
                (const u32 *)chunk->cols[0].data + at, (const u32 *)chunk->cols[1].data + at,
                MIN_OF(PIECE_ROWS, chunk->rows - at), v->rows < SAMPLED_ROWS};
        }
    }
}

/* --- names --- */

/* Pages of temporary space that have been looked at count as memory until they are let go. */
static void cool(const struct exec *x) {
    if (x->mem->temp) {
        temp_cool(x->mem->temp);
    }
}

static void facts_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct builder *b = arg;
    cool(b->x);
    const struct piece *p = &b->pieces[i];
    u64 up = 0, down = 0;
    for (i64 r = 0; r < p->rows; r++) {
        up += p->from[r] < p->to[r];
        down += p->from[r] > p->to[r];
        if (p->sampled || ((u64)r >> 10) % SAMPLED_EVERY == 0) {
            atomic_fetch_add_explicit(&b->ranks[p->from[r]], 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&b->ranks[p->to[r]], 1, memory_order_relaxed);
        }
    }
    atomic_fetch_add(&b->up, up);
    atomic_fetch_add(&b->down, down);
    atomic_fetch_add(&b->loops, (u64)p->rows - up - down);
}

/* As kernels/cliques.h has them: 32 an octave. */
static u32 degree_class(u32 degree) {
    if (degree < 32) {
        return degree;
    }
    u32 octave = 31 - (u32)__builtin_clz(degree);
    u32 at = 32 + (octave - 5) * 32 + (degree >> (octave - 5) & 31);
    return MIN_OF(at, CLIQUE_CLASSES - 1);
}

static void rank_nodes(struct builder *b) {
    i64 places[CLIQUE_CLASSES] = {0};
    for (i64 n = 0; n < b->t->nodes; n++) {
        places[degree_class(atomic_load_explicit(&b->ranks[n], memory_order_relaxed))]++;
    }
    i64 before = 0;
    for (i64 c = 0; c < CLIQUE_CLASSES; c++) {
        i64 count = places[c];
        places[c] = before;
        before += count;
    }
    for (i64 n = 0; n < b->t->nodes; n++) {
        u32 class = degree_class(atomic_load_explicit(&b->ranks[n], memory_order_relaxed));
        atomic_store_explicit(&b->ranks[n], (u32)places[class]++, memory_order_relaxed);
    }
}

/* An edge as it is sorted: its first node, and the other with, in form BOTH, a bit for its direction. */
static inline u64 turned(const struct builder *b, u32 from, u32 to) {
    if (b->t->form == CLIQUE_PLAIN) {
        return (u64)from << 32 | to;
    }
    u32 x = atomic_load_explicit(&b->ranks[from], memory_order_relaxed);
    u32 y = atomic_load_explicit(&b->ranks[to], memory_order_relaxed);
    u64 first = MIN_OF(x, y), second = MAX_OF(x, y);
    return first << 32 | (b->t->form == CLIQUE_BOTH ? second << 1 | (from < to) : second);
}

/* --- buckets --- */

static void count_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct builder *b = arg;
    cool(b->x);
    const struct piece *p = &b->pieces[i];
    for (i64 r = 0; r < p->rows; r++) {
        u64 first = turned(b, p->from[r], p->to[r]) >> 32;
        atomic_fetch_add_explicit(&b->counts[first], 1, memory_order_relaxed);
    }
}

/* Buckets are blocks of nodes, of as many edges as are sorted in near memory. */
static void cut_buckets(struct builder *b) {
    struct trie *t = b->t;
    i64 cap = MAX_OF(BUCKET_WORDS, t->rows / (BUCKETS_MOST / 4) + 1);
    while (t->nodes >> b->shift >= BLOCKS_MOST) {
        b->shift++;
    }
    i64 words = 0, block = 0;
    b->bucket_count = 0;
    b->most_words = b->most_nodes = 0;
    for (i64 node = 0; node < t->nodes; block++) {
        i64 end = MIN_OF((block + 1) << b->shift, t->nodes), own = 0;
        for (; node < end; node++) {
            own += t->starts[node + 1];
        }
        i64 at = b->bucket_count - 1;
        if (block == 0 || words + own > b->bucket_at[at] + cap) {
            at = b->bucket_count++;
            b->bucket_at[at] = words;
            b->bucket_node[at] = block << b->shift;
        }
        b->bucket_of[block] = (u16)at;
        words += own;
        b->most_words = MAX_OF(b->most_words, words - b->bucket_at[at]);
        b->most_nodes = MAX_OF(b->most_nodes, end - b->bucket_node[at]);
    }
    b->bucket_at[b->bucket_count] = words;
    b->bucket_node[b->bucket_count] = t->nodes;
    for (i64 i = 0; i < b->bucket_count; i++) {
        atomic_store(&b->cursors[i], b->bucket_at[i]);
    }
}

/* Counts become places. */
static void sum_up(struct builder *b) {
    struct trie *t = b->t;
    u32 sum = 0;
    t->longest = 0;
    t->first = t->nodes;
    for (i64 n = 0; n < t->nodes; n++) {
        u32 own = t->starts[n + 1] / (t->form == CLIQUE_BOTH ? 2 : 1);
        t->longest = MAX_OF(t->longest, (i64)own);
        t->first = own && t->first == t->nodes ? n : t->first;
        t->starts[n] = sum;
        sum += own;
    }
    t->starts[t->nodes] = sum;
    t->edges = sum;
}

static void flush(struct builder *b, struct sorter *s, i64 bucket) {
    u32 n = s->filled[bucket];
    i64 at = atomic_fetch_add_explicit(&b->cursors[bucket], (i64)n, memory_order_relaxed);
    memcpy(&b->words[at], &s->lines[bucket * LINE_WORDS], (size_t)n * 8);
    s->filled[bucket] = 0;
}

static void split_task(void *arg, i64 i, i32 worker) {
    struct builder *b = arg;
    cool(b->x);
    struct sorter *s = &b->sorters[worker];
    const struct piece *p = &b->pieces[i];
    for (i64 r = 0; r < p->rows; r++) {
        u64 word = turned(b, p->from[r], p->to[r]);
        i64 bucket = b->bucket_of[word >> 32 >> b->shift];
        s->lines[bucket * LINE_WORDS + s->filled[bucket]++] = word;
        if (s->filled[bucket] == LINE_WORDS) {
            flush(b, s, bucket);
        }
    }
    for (i64 k = 0; k < b->bucket_count; k++) {
        flush(b, s, k);
    }
}

/* --- lists --- */

static void sort_short(u32 *list, i64 count) {
    for (i64 i = 1; i < count; i++) {
        u32 x = list[i];
        i64 k = i;
        for (; k > 0 && list[k - 1] > x; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
    }
}

/* By digits, the lowest first; there and back. */
static void sort_list(u32 *list, u32 *other, i64 count) {
    if (count <= SHORT_LIST) {
        sort_short(list, count);
        return;
    }
    for (i32 bit = 0; bit < 32; bit += DIGIT_BITS) {
        i64 places[DIGITS] = {0};
        for (i64 i = 0; i < count; i++) {
            places[list[i] >> bit & (DIGITS - 1)]++;
        }
        i64 sum = 0;
        for (i32 d = 0; d < DIGITS; d++) {
            i64 own = places[d];
            places[d] = sum;
            sum += own;
        }
        for (i64 i = 0; i < count; i++) {
            other[places[list[i] >> bit & (DIGITS - 1)]++] = list[i];
        }
        u32 *sorted = other;
        other = list;
        list = sorted;
    }
}

/* A sorted list of a node to its place; whether it is what the form says. */
static u64 put_list(const struct builder *b, i64 node, const u32 *list, i64 count) {
    const struct trie *t = b->t;
    u32 *out = t->to + t->starts[node];
    u64 odd = 0;
    if (t->form == CLIQUE_BOTH) {
        i64 room = trie_degree(t, node);
        odd = (u64)(count & 1);
        for (i64 i = 0; i + 1 < count && i / 2 < room; i += 2) {
            odd += (list[i] & 1) || list[i + 1] != (list[i] | 1) || (i && list[i - 1] == list[i + 1]);
            out[i / 2] = list[i] >> 1;
        }
        return odd;
    }
    for (i64 i = 0; i < count; i++) {
        odd += t->form == CLIQUE_TURNED && i && list[i - 1] == list[i];
        out[i] = list[i];
    }
    return odd;
}

static void bucket_task(void *arg, i64 i, i32 worker) {
    struct builder *b = arg;
    cool(b->x);
    struct sorter *s = &b->sorters[worker];
    i64 first = b->bucket_node[i], nodes = b->bucket_node[i + 1] - first;
    const u64 *words = b->words + b->bucket_at[i];
    i64 count = b->bucket_at[i + 1] - b->bucket_at[i];
    if (stop_asked()) {
        return;
    }
    memset(s->cursors, 0, (size_t)(nodes + 1) * 4);
    for (i64 k = 0; k < count; k++) {
        s->cursors[(i64)(words[k] >> 32) - first + 1]++;
    }
    for (i64 n = 0; n < nodes; n++) {
        s->cursors[n + 1] += s->cursors[n];
    }
    for (i64 k = 0; k < count; k++) {
        s->list[s->cursors[(i64)(words[k] >> 32) - first]++] = (u32)words[k];
    }
    u32 at = 0;
    for (i64 n = 0; n < nodes; n++) { /* a cursor is where its list ends now */
        i64 own = (i64)s->cursors[n] - at;
        sort_list(s->list + at, s->other, own);
        s->odd += put_list(b, first + n, s->list + at, own);
        at = s->cursors[n];
    }
}

/* --- all of it --- */

static FALLIBLE sorters_open(struct builder *b) {
    wf_status status = ERR_OK;
    i64 longest = b->t->longest * (b->t->form == CLIQUE_BOTH ? 2 : 1) + 1;
    for (i32 i = 0; i < b->sorter_count; i++) {
        struct sorter *s = &b->sorters[i];
        *s = (struct sorter){.longest = longest};
        s->lines = take(b, b->bucket_count * LINE_WORDS * 8, &status);
        s->filled = take(b, b->bucket_count * 4, &status);
        s->list = take(b, b->most_words * 4, &status);
        s->other = take(b, longest * 4, &status);
        s->cursors = take(b, (b->most_nodes + 1) * 4, &status);
        if (!status) {
            memset(s->filled, 0, (size_t)b->bucket_count * 4);
        }
    }
    return status;
}

static u64 sorters_close(struct builder *b) {
    u64 odd = 0;
    for (i32 i = 0; i < b->sorter_count; i++) {
        struct sorter *s = &b->sorters[i];
        odd += s->odd;
        give(b, s->lines, b->bucket_count * LINE_WORDS * 8);
        give(b, s->filled, b->bucket_count * 4);
        give(b, s->list, b->most_words * 4);
        give(b, s->other, s->longest * 4);
        give(b, s->cursors, (b->most_nodes + 1) * 4);
        *s = (struct sorter){0};
    }
    return odd;
}

/* Edges in this form, sorted; how many are not what it says. */
static FALLIBLE sort_edges(struct builder *b, u64 *out_odd) {
    struct trie *t = b->t;
    *out_odd = 0;
    memset(t->starts, 0, (size_t)(t->nodes + 1) * 4);
    run_tasks(b->x, b->piece_count, count_task, b);
    TRY(exec_check(b->x));
    cut_buckets(b);
    sum_up(b);
    wf_status status = sorters_open(b);
    if (!status) {
        run_tasks(b->x, b->piece_count, split_task, b);
        status = exec_check(b->x);
    }
    if (!status) {
        run_tasks(b->x, b->bucket_count, bucket_task, b);
        status = exec_check(b->x);
    }
    *out_odd = sorters_close(b);
    return status;
}

static FALLIBLE build_all(struct builder *b) {
    struct trie *t = b->t;
    u64 odd = 0;
    memset((void *)b->ranks, 0, (size_t)t->nodes * 4);
    run_tasks(b->x, b->piece_count, facts_task, b);
    TRY(exec_check(b->x));
    bool one_way = !b->up || !b->down;
    t->form = b->loops          ? CLIQUE_PLAIN
              : one_way         ? CLIQUE_TURNED
              : b->up == b->down ? CLIQUE_BOTH
                                : CLIQUE_PLAIN;
    if (t->form != CLIQUE_PLAIN) {
        rank_nodes(b);
    }
    TRY(sort_edges(b, &odd));
    if (odd) {
        t->form = CLIQUE_PLAIN;
        TRY(sort_edges(b, &odd));
    }
    return ERR_OK;
}

wf_status trie_build(struct exec *x, u32 var, i64 nodes, struct trie *out) {
    struct builder *b = NEW(x->arena, struct builder);
    wf_status status = ERR_OK;
    *out = (struct trie){.nodes = nodes, .rows = x->vars[var].rows};
    if (out->rows >= (i64)0xffffffff) {
        FAIL(x->err, PROGRAM_LIMIT, "a graph of %lld edges is too large", out->rows);
    }
    b->x = x;
    b->t = out;
    b->sorter_count = x->pool ? pool_worker_count(x->pool) : 1;
    b->sorters = NEW_ARRAY(x->arena, struct sorter, b->sorter_count);
    b->bucket_at = NEW_ARRAY(x->arena, i64, BUCKETS_MOST + 1);
    b->bucket_node = NEW_ARRAY(x->arena, i64, BUCKETS_MOST + 1);
    b->cursors = NEW_ARRAY(x->arena, _Atomic i64, BUCKETS_MOST);
    cut_pieces(b, var);
    out->starts = take_array(b, nodes + 1, &out->starts_buffer, &status);
    out->to = take_array(b, out->rows, &out->to_buffer, &status);
    b->ranks = take(b, nodes * 4, &status);
    b->words = take(b, out->rows * 8, &status);
    b->counts = (_Atomic u32 *)(void *)(out->starts + 1);
    status = status ? status : build_all(b);
    give(b, (void *)b->ranks, nodes * 4);
    give(b, b->words, out->rows * 8);
    if (status) {
        trie_fini(out);
    }
    return status;
}

void trie_fini(struct trie *t) {
    buffer_release(t->starts_buffer);
    buffer_release(t->to_buffer);
    t->starts_buffer = t->to_buffer = NULL;
    t->starts = t->to = NULL;
}

i64 trie_slice_end(const struct trie *t, i64 first, i64 bytes) {
    i64 lo = first + 1, hi = t->nodes;
    while (lo < hi) { /* the last that has room, if the first has */
        i64 middle = lo + (hi - lo + 1) / 2;
        bool fits = trie_slice_bytes(t, first, middle) <= bytes;
        lo = fits ? middle : lo;
        hi = fits ? hi : middle - 1;
    }
    return lo;
}

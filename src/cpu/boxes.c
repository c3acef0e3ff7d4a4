/* boxes.c: STEP_CLIQUES of a graph that memory has no room for, or that devices share: box by box.
 *
 * Edges are sorted, in memory or in temporary space (run/trie.h). All threads count in one box after the
 * other, so that what they read of second nodes is one slice. A node's neighbours are marked as bits, and those of its
 * neighbours are looked up there. The heaviest nodes, as many as memory has room for, have a row of bits each, as in
 * cliques_bits.c: triangles whose last two nodes are among them need no slice, and no list. Of graphs with repeated
 * edges, and of larger cliques, lists are met instead, where an edge that is there n times counts n times. */
#include "cpu/boxes.h"

#include "base/temp.h"
#include "cpu/cpu_int.h"
#include "cpu/vec.h"
#include "run/trie.h"
#include "run/tries.h"

enum {
    TASK_NODES = 64, /* of a slab */
    WORD = 64,       /* nodes of a word of bits */
    BITS_AN_EDGE = 32
};
#define BOX_EDGE_BYTES 12 /* of the step in one piece */
#define SLICE_LEAST (64LL << 10)

struct counter {              /* a worker's */
    u64 *bits;                /* of all nodes; or a block of */
    u64 *words;               /* of these, those that have any, */
    u32 *places;              /* and where they are */
    u32 *to[CLIQUE_NODES];    /* candidates, by depth, */
    u64 *times[CLIQUE_NODES]; /* and how often each is one */
    u64 found;
    b8 over;
};

struct box_job {
    struct exec *x;
    struct boxes *b;
    const struct trie *t;
    struct counter *counters;
    i32 counter_count;
    struct slab slab;
    i64 second, second_end; /* nodes of the slice */
    b8 marks;
    const struct vec_table *vec;
    struct bit_rows
        heavy; /* of the last nodes, from heavy.first on; all nodes are before it where there are none */
    i64 heavy_bytes;
};

static i64 seek(const u32 *list, i64 at, i64 end, u32 node) {
    while (at < end) {
        i64 middle = at + (end - at) / 2;
        bool less = list[middle] < node;
        at = less ? middle + 1 : at;
        end = less ? end : middle;
    }
    return at;
}

static void add(struct counter *c, u64 *sum, u64 more) {
    c->over = c->over || __builtin_add_overflow(*sum, more, sum);
}

static u64 times(struct counter *c, u64 a, u64 b) {
    u64 product = 0;
    c->over = c->over || __builtin_mul_overflow(a, b, &product);
    return product;
}

/* Triangles of a node whose second node is in the slice: bits. */
static void count_marked(const struct box_job *j, struct counter *c, i64 node) {
    const struct trie *t = j->t;
    const u32 *list = t->to;
    i64 first = t->starts[node], end = t->starts[node + 1];
    i64 from = seek(list, first, end, (u32)j->second);
    i64 upto = seek(list, from, end, (u32)j->second_end);
    if (from == upto || end - first < 2) {
        return;
    }
    for (i64 i = from; i < end; i++) {
        c->bits[list[i] >> 6] |= 1ULL << (list[i] & 63);
    }
    u64 found = 0;
    for (i64 i = from; i < upto; i++) {
        i64 own = t->starts[list[i]], own_end = t->starts[list[i] + 1];
        if (own_end - own > 16 * (end - i)) { /* few of many: looked up there */
            for (i64 k = i + 1; k < end && own < own_end; k++) {
                own = seek(list, own, own_end, list[k]);
                found += own < own_end && list[own] == list[k];
            }
            continue;
        }
        found += (u64)j->vec->marked_nodes(list + own, own_end - own, 0, c->bits);
    }
    for (i64 i = from; i < end; i++) {
        c->bits[list[i] >> 6] = 0;
    }
    c->found += found;
}

/* Triangles of a node whose other nodes are heavy: rows of bits. */
static void count_heavy(const struct box_job *j, struct counter *c, i64 node) {
    const struct trie *t = j->t;
    const u32 *list = t->to;
    i64 end = t->starts[node + 1];
    i64 from = seek(list, t->starts[node], end, (u32)j->heavy.first);
    if (end - from < 2) {
        return;
    }
    for (i64 i = from; i < end; i++) {
        c->bits[list[i] / WORD] |= 1ULL << list[i] % WORD;
    }
    c->found +=
        (u64)j->vec->edges_among(&j->heavy, list + from, end - from, c->bits, c->places, c->words);
    for (i64 i = from; i < end; i++) {
        c->bits[list[i] / WORD] = 0;
    }
}

/* Candidates that are neighbours of a node, too, at the next depth. */
static i64 meet(const struct box_job *j, struct counter *c, u32 depth, i64 count, u32 node) {
    const struct trie *t = j->t;
    const u32 *to = c->to[depth];
    i64 at = t->starts[node], end = t->starts[node + 1], found = 0;
    for (i64 i = 0; i < count && at < end; i++) {
        while (at < end && t->to[at] < to[i]) {
            at++;
        }
        i64 same = at;
        while (same < end && t->to[same] == to[i]) {
            same++;
        }
        if (same > at) {
            c->to[depth + 1][found] = to[i];
            c->times[depth + 1][found++] = times(c, c->times[depth][i], (u64)(same - at));
        }
    }
    return found;
}

/* Cliques that `missing` candidates complete; of the first only those from `from` to `upto`. */
static u64 descend(const struct box_job *j, struct counter *c, u32 depth, i64 count, u32 missing,
                   struct row_span own) {
    u64 total = 0;
    for (i64 i = own.first; i < own.end; i++) {
        u64 below = 1;
        if (missing > 1) {
            i64 found = meet(j, c, depth, count, c->to[depth][i]);
            below = descend(j, c, depth + 1, found, missing - 1, (struct row_span){0, found});
        }
        add(c, &total, times(c, below, c->times[depth][i]));
    }
    return total;
}

static void count_met(const struct box_job *j, struct counter *c, i64 node) {
    const struct trie *t = j->t;
    i64 count = 0;
    for (i64 i = t->starts[node]; i < (i64)t->starts[node + 1]; i++) {
        bool again = count && c->to[0][count - 1] == t->to[i];
        count -= again;
        c->times[0][count] = again ? c->times[0][count] + 1 : 1;
        c->to[0][count++] = t->to[i];
    }
    struct row_span own = {seek(c->to[0], 0, count, (u32)j->second),
                           seek(c->to[0], 0, count, (u32)j->second_end)};
    add(c, &c->found, descend(j, c, 0, count, j->b->size - 1, own));
}

static void box_task(void *arg, i64 task, i32 worker) {
    const struct box_job *j = arg;
    struct counter *c = &j->counters[worker];
    i64 first = j->slab.first + task * TASK_NODES;
    if (j->x->mem->temp) {
        temp_cool(j->x->mem->temp);
    }
    for (i64 n = first; n < MIN_OF(first + TASK_NODES, j->slab.end) && !stop_asked(); n++) {
        if (j->second >= j->heavy.first) {
            count_heavy(j, c, n);
        } else if (j->marks) {
            count_marked(j, c, n);
        } else {
            count_met(j, c, n);
        }
    }
}

/* --- room --- */

static void *take(struct box_job *j, i64 bytes, wf_status *status) {
    void *data = *status ? NULL : mem_alloc(j->x->mem, MAX_OF(bytes, TEMP_LEAST));
    if (!data && !*status) {
        *status = memory_refused(j->x->mem, j->x->err, bytes);
    }
    return data;
}

/* Words of marks, and how many of them the neighbours of a node can have. */
static i64 mark_words(const struct box_job *j) {
    return j->t->nodes / WORD + 1;
}

static i64 some_words(const struct box_job *j) {
    return MIN_OF(j->t->longest, mark_words(j)) + 1;
}

static i64 counter_bytes(const struct box_job *j) {
    i64 room = ALIGN_UP(j->t->longest, 2);
    return j->marks ? mark_words(j) * 8 + some_words(j) * (8 + 4)
                    : (i64)j->b->size * room * (8 + 4);
}

static FALLIBLE counters_open(struct box_job *j) {
    wf_status status = ERR_OK;
    i64 room = ALIGN_UP(j->t->longest, 2);
    for (i32 i = 0; i < j->counter_count; i++) {
        struct counter *c = &j->counters[i];
        c->bits = take(j, counter_bytes(j), &status);
        if (c->bits && j->marks) {
            memset(c->bits, 0, (size_t)counter_bytes(j));
            c->words = c->bits + mark_words(j);
            c->places = (u32 *)(void *)(c->words + some_words(j));
        }
        for (u32 d = 0; c->bits && !j->marks && d < j->b->size; d++) {
            c->times[d] = c->bits + d * room;
            c->to[d] = (u32 *)(void *)(c->bits + j->b->size * room) + d * room;
        }
    }
    return status;
}

static void counters_close(struct box_job *j, struct box_sum *sum) {
    for (i32 i = 0; i < j->counter_count; i++) {
        struct counter *c = &j->counters[i];
        sum->over =
            sum->over || c->over || __builtin_add_overflow(sum->found, c->found, &sum->found);
        mem_free(j->x->mem, c->bits, MAX_OF(counter_bytes(j), TEMP_LEAST));
    }
}

/* --- rows of bits --- */

static void heavy_task(void *arg, i64 task, i32 worker) {
    UNUSED(worker);
    const struct box_job *j = arg;
    const struct trie *t = j->t;
    i64 first = j->heavy.first + task * WORD, end = MIN_OF(first + WORD, t->nodes);
    for (i64 n = first; n < end && !stop_asked(); n++) {
        u64 *row = j->heavy.bits + bit_row_place(&j->heavy, n - j->heavy.first);
        memset(row, 0, (size_t)(j->heavy.words - task) * 8);
        for (i64 i = t->starts[n]; i < (i64)t->starts[n + 1]; i++) {
            i64 bit = t->to[i] - first;
            row[bit / WORD] |= 1ULL << bit % WORD;
        }
    }
}

/* As large as edges make worth while, and half of what memory has left. */
static FALLIBLE heavy_open(struct box_job *j) {
    const struct trie *t = j->t;
    i64 left = memory_left(j->x->mem) / 2, most = WORD;
    while (most * most / 2 < t->edges * BITS_AN_EDGE) {
        most += WORD;
    }
    for (i64 nodes = MIN_OF(t->nodes, most); nodes >= 2 * WORD && !j->heavy.bits;
         nodes = nodes * 3 / 4) {
        j->heavy.first = ALIGN_UP(t->nodes - nodes, WORD);
        j->heavy.words = (t->nodes - j->heavy.first + WORD - 1) / WORD;
        j->heavy_bytes = bit_row_place(&j->heavy, j->heavy.words * WORD) * 8;
        j->heavy.bits = j->heavy_bytes <= left ? mem_try(j->x->mem, j->heavy_bytes) : NULL;
    }
    if (!j->heavy.bits) {
        j->heavy.first = t->nodes;
        return ERR_OK;
    }
    tasks_run(j->x, j->heavy.words, heavy_task, j);
    return exec_check(j->x);
}

/* --- all of it --- */

/* Where the slice of second nodes ends that begins with j->second. Heavy nodes are one, of no bytes. */
static i64 slice_end(const struct box_job *j, i64 slice_bytes) {
    const struct trie *t = j->t;
    if (j->second >= j->heavy.first) {
        return t->nodes;
    }
    i64 end = trie_slice_end(t, j->second, slice_bytes);
    end = j->second == t->nodes - 1 || end == t->nodes ? t->nodes : end;
    return MIN_OF(end, j->heavy.first);
}

static FALLIBLE count_slab(struct box_job *j, struct box_sum *sum, i64 slice_bytes) {
    const struct trie *t = j->t;
    j->second = t->form == CLIQUE_PLAIN ? t->first : j->slab.first;
    for (; j->second < t->nodes; j->second = j->second_end) {
        j->second_end = slice_end(j, slice_bytes);
        i64 tasks = (j->slab.end - j->slab.first + TASK_NODES - 1) / TASK_NODES;
        tasks_run(j->x, tasks, box_task, j);
        TRY(exec_check(j->x));
        sum->boxes++;
    }
    sum->edges += (i64)(t->starts[j->slab.end] - t->starts[j->slab.first]);
    return ERR_OK;
}

static FALLIBLE count_in(struct exec *x, struct boxes *b) {
    struct box_job j = {.x = x, .b = b, .t = &b->trie, .vec = vec_table_best()};
    struct box_sum sum = {0};
    j.heavy.first = b->trie.nodes;
    j.marks = b->size == 3 && b->trie.form != CLIQUE_PLAIN;
    j.counter_count = x->pool ? pool_worker_count(x->pool) : 1;
    j.counters = NEW_ARRAY(x->arena, struct counter, j.counter_count);
    wf_status status = counters_open(&j);
    if (!status && j.marks) {
        status = heavy_open(&j);
    }
    i64 room = MAX_OF(memory_left(x->mem) / 2, SLICE_LEAST);
    struct box_room most = {.bytes = room, .node_bytes = 4};
    u32 taker = boxes_enter(b, x, clock_ns());
    while (!status && boxes_take(b, taker, &most, &j.slab)) {
        status = count_slab(&j, &sum, room);
        if (!status) {
            boxes_finished(b, taker, &j.slab, clock_ns());
        }
    }
    counters_close(&j, &sum);
    mem_free(x->mem, j.heavy.bits, j.heavy_bytes);
    if (!status) {
        boxes_add(b, &sum);
    }
    return status;
}

bool boxes_wanted(const struct exec *x, const struct step *step) {
    if (variable_graph(&x->vars[step->src]) || x->vars[step->src].levels) {
        return false;
    }
    i64 rows = x->vars[step->src].rows, bytes = BOX_EDGE_BYTES * rows;
    return exec_boxes(x) || (rows > 0 && boxes_forced(x)) ||
           (rows > 0 && x->mem->temp && memory_left(x->mem) < bytes);
}

wf_status boxes_run(struct exec *x, u32 step_no, const struct step *step) {
    struct boxes *b = exec_boxes(x);
    if (!b) {
        TRY(boxes_open(x, step_no, step, NULL, &b));
    }
    return count_in(x, b);
}

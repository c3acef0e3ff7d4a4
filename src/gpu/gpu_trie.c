/* gpu_trie.c: edges on the host become a TrieArray (run/trie.h), sorted by a card that has no room for them all.
 *
 * A sample of the edges tells degrees, and what form the graph seems to have. All edges then cross the bus to be
 * turned and sorted by pieces, which go back to the host as words; what form it is is known then. Then buckets, the
 * edges of nodes that follow each other, come out of all pieces, are sorted at once, and go back as lists. While
 * kernels work on one, the next is on its way, and the one before leaves: copies both ways have a stream each.
 * The card holds one number for every node, and five areas of a piece's words. Where it has no room for these, the
 * host none for the words, or one node's edges are more than a piece, the host sorts (run/trie.c).
 * See decision 0073; what stays, decision 0094. */
#include "gpu/gpu_cliques.h"
#include "prim/order.h"
#include "run/trie.h"

enum {
    EVENTS_FROM = 2,
    AREAS = 5,        /* of a piece: two that come, one between, two that go */
    RANGE_BYTES = 16,
    WORD_ROOM = 48,   /* bytes for every word of a piece, with what sorting takes: to begin with */
    PIECES_FEW = 4,   /* so many at least, so that copies and kernels overlap */
    PIECE_LEAST = 64,
    BLOCKS_MOST = 1 << 16, /* of nodes that share a bucket */
    BLOCKS_PART = 32       /* of all room, for their counts */
};
#ifdef WF_HARD
#define NO_RANGES(pieces) ((pieces) % 3 == 0) /* are listed, at times */
enum { GROUP_ROWS = 128 };
#else
#define NO_RANGES(pieces) false
enum { GROUP_ROWS = 1 << 14 }; /* neighbouring edges that a sample takes together */
#endif

struct edges {
    const u32 *from, *ends;
    i64 rows, at; /* so many before it */
};
typedef VEC(struct edges) edge_list;
struct bucket {
    i64 node, nodes; /* its first, and how many */
    i64 words, at;   /* edges as they were sorted; so many before it */
};

struct part {
    void *to;
    u64 from;
    i64 bytes;
};

struct maker {
    struct cliques *c;
    struct trie *t;
    edge_list pieces, groups; /* of all edges, and of the sample */
    i64 together;             /* groups that are looked at at once */
    VEC(struct bucket) buckets;
    i64 cap;     /* words of an area */
    u64 in[2], between, out[2];
    void *came[2], *left[2], *gone[2]; /* events: it is there, kernels have read it, what they made is on the host */
    void *made[2];
    struct buffer *words; /* of all pieces, each sorted */
    u64 words_addr;       /* where the card reads them; 0 = it cannot */
    struct buffer *ranges; /* of the pieces, by bucket: as in struct kcliques */
    u64 ranges_at[2];      /* on the card, of a bucket */
    i64 range_room;        /* ranges */
    u32 *blocks;          /* edges that begin in each block of nodes */
    u64 blocks_at;
    i64 block_count;
    struct prim_sort how;
    b8 cannot; /* another way has to be found */
    u64 odd;
};

/* --- room --- */

static i64 sort_bytes(struct maker *m, i64 count, wf_status *status) {
    struct prim_payload none = {.count = 0};
    struct prim_array keys = {.type = ELEM_U64, .count = count};
    struct prim_job job = prim_job_inside(m->c->o.x, &m->c->o.g->device);
    *status = prim_sort_array(&job, &m->how, keys, keys, &none);
    return ALIGN_UP(job.work_peak, PRIM_ALIGN);
}

/* As many words as the card has room for, or as make pieces enough. */
static FALLIBLE find_room(struct maker *m) {
    struct order_step *o = &m->c->o;
    struct gpu_block *block = NULL;
    wf_status status = ERR_OK;
    i64 area = 0, work = 0, ranges = 0;
    m->cap = MIN_OF(o->g->card->heap.budget_bytes / WORD_ROOM,
                    m->c->args.rows / PIECES_FEW + PIECE_LEAST);
    for (; m->cap >= PIECE_LEAST && !block && !o->g->card->broken; m->cap -= block ? 0 : m->cap / 8 + 1) {
        area = ALIGN_UP(m->cap * 8, PRIM_ALIGN);
        work = sort_bytes(m, m->cap, &status);
        TRY(status);
        m->range_room = m->t->rows / m->cap + o->x->vars[m->c->step->src].chunks.count + 1;
        ranges = ALIGN_UP(m->range_room * RANGE_BYTES, PRIM_ALIGN);
        block = gpu_alloc_try(o->g, AREAS * area + 2 * ranges + work);
    }
    m->cannot = !block;
    if (!block) {
        return ERR_OK;
    }
    VEC_PUSH(o->x->arena, &o->temps, block);
    u64 at = block->addr;
    for (i32 k = 0; k < 2; k++, at += 2 * (u64)area) {
        m->in[k] = at;
        m->out[k] = at + (u64)area;
    }
    m->between = at;
    m->ranges_at[0] = at + (u64)area;
    m->ranges_at[1] = m->ranges_at[0] + (u64)ranges;
    o->work = m->ranges_at[1] + (u64)ranges;
    o->work_bytes = work;
    return ERR_OK;
}

static FALLIBLE take_host(struct maker *m) {
    struct exec *x = m->c->o.x;
    struct gpu *g = m->c->o.g;
    struct trie *t = m->t;
    m->words = gpu_host_buffer(g->card->host, x->mem, x->pool, t->rows * 8);
    t->starts_buffer = m->words ? gpu_host_buffer(g->card->host, x->mem, x->pool, (t->nodes + 1) * 4) : NULL;
    t->to_buffer = t->starts_buffer ? gpu_host_buffer(g->card->host, x->mem, x->pool, t->rows * 4) : NULL;
    m->cannot = !t->to_buffer;
    m->words_addr = m->words ? gpu_host_addr(g->card->host, m->words) : 0;
    if (t->to_buffer) {
        t->starts = (u32 *)(void *)t->starts_buffer->data;
        t->to = (u32 *)(void *)t->to_buffer->data;
    }
    return ERR_OK;
}

static FALLIBLE open_events(struct maker *m) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    for (i32 k = 0; k < 2; k++) {
        void **all[] = {&m->came[k], &m->left[k], &m->gone[k], &m->made[k]};
        for (i32 i = 0; i < COUNT_OF(all); i++) {
            TRY(gpu_event(g, EVENTS_FROM + 2 * i + k, all[i], err));
            CU(g->api->event_record(*all[i], g->streams[0]));
        }
    }
    return ERR_OK;
}

/* Pieces of `most` edges at most, of which one in `every` is taken. */
static void cut_pieces(struct maker *m, i64 most, i64 every, edge_list *out) {
    struct exec *x = m->c->o.x;
    const struct variable *v = &x->vars[m->c->step->src];
    i64 before = 0, no = 0;
    for (i64 i = 0; i < v->chunks.count; i++) {
        const struct chunk *chunk = v->chunks.items[i];
        for (i64 at = 0; at < chunk->rows; at += most, no++) {
            struct edges piece = {(const u32 *)chunk->cols[0].data + at,
                                  (const u32 *)chunk->cols[1].data + at,
                                  MIN_OF(most, chunk->rows - at), before};
            if (no % every == 0) {
                VEC_PUSH(x->arena, out, piece);
            }
            before += piece.rows;
        }
    }
}

/* --- one after the other, the next on its way --- */

struct course {
    i64 count;
    FALLIBLE (*bring)(struct maker *m, i64 no); /* what number `no` is made of, to m->in */
    FALLIBLE (*run)(struct maker *m, i64 no);   /* says when it has read that */
};

static FALLIBLE bring_next(struct maker *m, const struct course *course, i64 no) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    if (no < course->count) {
        CU(g->api->stream_wait_event(g->streams[1], m->left[no & 1], 0));
        TRY(course->bring(m, no));
        CU(g->api->event_record(m->came[no & 1], g->streams[1]));
    }
    return ERR_OK;
}

static FALLIBLE follow(struct maker *m, const struct course *course) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    TRY(bring_next(m, course, 0));
    for (i64 no = 0; no < course->count; no++) {
        TRY(bring_next(m, course, no + 1));
        CU(g->api->stream_wait_event(g->streams[0], m->came[no & 1], 0));
        TRY(course->run(m, no));
    }
    CU(gpu_sync(g, g->streams[0]));
    CU(gpu_sync(g, g->down));
    return ERR_OK;
}

static FALLIBLE has_read(struct maker *m, i64 no) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    CU(g->api->event_record(m->left[no & 1], g->streams[0]));
    return ERR_OK;
}

/* What number `no` has in m->out may be written over. */
static FALLIBLE may_write(struct maker *m, i64 no) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    CU(g->api->stream_wait_event(g->streams[0], m->gone[no & 1], 0));
    return ERR_OK;
}

/* Two parts of m->out to the host, when they are made. */
static FALLIBLE send(struct maker *m, i64 no, const struct part parts[2]) {
    struct gpu *g = m->c->o.g;
    struct error *err = m->c->o.x->err;
    CU(g->api->event_record(m->made[no & 1], g->streams[0]));
    CU(g->api->stream_wait_event(g->down, m->made[no & 1], 0));
    for (i32 i = 0; i < 2; i++) {
        if (parts[i].bytes > 0) {
            CU(g->api->copy_to_host(parts[i].to, parts[i].from, (size_t)parts[i].bytes, g->down));
            m->c->o.metric->bytes_moved += parts[i].bytes;
        }
    }
    CU(g->api->event_record(m->gone[no & 1], g->down));
    return ERR_OK;
}

/* --- a sample --- */

static i64 group_rows(const struct maker *m, i64 no) {
    i64 rows = 0;
    for (i64 i = no * m->together; i < MIN_OF((no + 1) * m->together, m->groups.count); i++) {
        rows += m->groups.items[i].rows;
    }
    return rows;
}

static FALLIBLE bring_groups(struct maker *m, i64 no) {
    struct order_step *o = &m->c->o;
    u64 from = m->in[no & 1];
    u64 ends = from + (u64)group_rows(m, no) * 4;
    for (i64 i = no * m->together; i < MIN_OF((no + 1) * m->together, m->groups.count); i++) {
        const struct edges *p = &m->groups.items[i];
        TRY(gpu_upload(o->g, from, p->from, p->rows * 4, NULL, o->g->streams[1], o->x->err));
        TRY(gpu_upload(o->g, ends, p->ends, p->rows * 4, NULL, o->g->streams[1], o->x->err));
        from += (u64)p->rows * 4;
        ends += (u64)p->rows * 4;
        o->metric->bytes_moved += p->rows * 8;
    }
    return ERR_OK;
}

static void open_rows(struct maker *m, i64 no, i64 rows) {
    struct kcliques *args = &m->c->args;
    args->rows = rows;
    args->from = DEV(const u32 *, m->in[no & 1]);
    args->ends = DEV(const u32 *, m->in[no & 1] + (u64)rows * 4);
}

static FALLIBLE look_at_groups(struct maker *m, i64 no) {
    u32 every = m->c->args.every;
    open_rows(m, no, group_rows(m, no));
    m->c->args.every = 1; /* all that is here */
    TRY(cliques_start(m->c, KERNEL_CLIQUE_FACTS, m->c->args.rows));
    m->c->args.every = every;
    return has_read(m, no);
}

/* Degrees, and what form there seems to be. */
static FALLIBLE sample(struct maker *m) {
    struct cliques *c = m->c;
    i64 rows = MIN_OF(GROUP_ROWS, m->cap);
    cut_pieces(m, rows, c->args.every, &m->groups);
    m->together = m->cap / rows;
    struct course groups = {(m->groups.count + m->together - 1) / m->together, bring_groups, look_at_groups};
    TRY(follow(m, &groups));
    TRY(cliques_look(c));
    c->args.rows = m->t->rows;
    c->args.form = cliques_form(c);
    if (c->args.form == CLIQUE_PLAIN && !c->report[CLIQUE_LOOPS] && c->args.every > 1) {
        c->args.form = CLIQUE_BOTH; /* as many up as down in all, maybe */
    }
    return c->args.form == CLIQUE_PLAIN ? ERR_OK : cliques_rank(c);
}

/* --- pieces --- */

static FALLIBLE bring_piece(struct maker *m, i64 no) {
    struct cliques *c = m->c;
    struct gpu *g = c->o.g;
    const struct edges *p = &m->pieces.items[no];
    u64 to = m->in[no & 1];
    c->o.metric->bytes_moved += p->rows * 8;
    TRY(gpu_upload(g, to, p->from, p->rows * 4, NULL, g->streams[1], c->o.x->err));
    return gpu_upload(g, to + (u64)p->rows * 4, p->ends, p->rows * 4, NULL, g->streams[1], c->o.x->err);
}

static FALLIBLE sort_piece(struct maker *m, i64 no) {
    const struct edges *p = &m->pieces.items[no];
    struct part words = {m->words->data + p->at * 8, m->out[no & 1], p->rows * 8};
    open_rows(m, no, p->rows);
    m->c->args.words = DEV(u64 *, m->between);
    TRY(cliques_start(m->c, KERNEL_CLIQUE_TURN, p->rows));
    TRY(has_read(m, no));
    TRY(may_write(m, no));
    TRY(cliques_sort(m->c, &m->how, m->out[no & 1], m->between, p->rows));
    return send(m, no, (const struct part[2]){words, {0}});
}

/* --- buckets --- */

/* Edges in an area, and in another the lists that are made of them, with where each begins. */
static bool has_room(const struct maker *m, i64 words, i64 nodes) {
    return words <= m->cap && words + nodes + 4 <= 2 * m->cap;
}

/* Of blocks that follow each other. */
static bool cut_buckets(struct maker *m) {
    struct kcliques *args = &m->c->args;
    struct bucket now = {0};
    m->buckets.count = 0;
    for (i64 b = 0; b < m->block_count; b++) {
        i64 first = b << args->shift;
        i64 nodes = MIN_OF((i64)1 << args->shift, m->t->nodes - first);
        if (now.nodes > 0 && !has_room(m, now.words + (i64)m->blocks[b], now.nodes + nodes)) {
            VEC_PUSH(m->c->o.x->arena, &m->buckets, now);
            now = (struct bucket){.node = first, .at = now.at + now.words};
        }
        now.nodes += nodes;
        now.words += m->blocks[b];
        if (!has_room(m, now.words, now.nodes)) {
            return false; /* one block alone */
        }
    }
    VEC_PUSH(m->c->o.x->arena, &m->buckets, now);
    return true;
}

/* The first word of a sorted piece whose edge begins at `node` or later. */
static i64 find_node(const struct maker *m, const struct edges *p, i64 node) {
    const u64 *words = (const u64 *)(const void *)m->words->data + p->at;
    u64 least = (u64)node << (m->c->args.bits + (m->c->args.form == CLIQUE_BOTH));
    i64 lo = 0, hi = p->rows;
    while (lo < hi) {
        i64 middle = lo + (hi - lo) / 2;
        bool less = words[middle] < least;
        lo = less ? middle + 1 : lo;
        hi = less ? hi : middle;
    }
    return lo;
}

/* Where the buckets' words lie in the pieces, in memory that copies read; without, they are copied range by range. */
static void list_ranges(struct maker *m) {
    struct exec *x = m->c->o.x;
    i64 pieces = m->pieces.count;
    buffer_release(m->ranges);
    m->ranges = NULL;
    if (!m->words_addr || pieces > m->range_room || NO_RANGES(pieces)) {
        return;
    }
    m->ranges = gpu_host_buffer(m->c->o.g->card->host, x->mem, x->pool, m->buckets.count * pieces * RANGE_BYTES);
    u64 *to = m->ranges ? (u64 *)(void *)m->ranges->data : NULL;
    i64 *begins = NEW_ARRAY(x->arena, i64, pieces + 1); /* of the bucket, in every piece */
    for (i64 no = 0; to && no < m->buckets.count; no++) {
        const struct bucket *b = &m->buckets.items[no];
        u64 before = 0;
        for (i64 i = 0; i < pieces; i++) {
            const struct edges *p = &m->pieces.items[i];
            i64 end = find_node(m, p, b->node + b->nodes);
            *to++ = (u64)(p->at + begins[i]);
            *to++ = before;
            before += (u64)(end - begins[i]);
            begins[i] = end;
        }
        ASSERT(before == (u64)b->words);
    }
}

/* All of its ranges at once, by a kernel that reads them over the bus. */
static FALLIBLE gather_bucket(struct maker *m, i64 no) {
    struct cliques *c = m->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    void *function = NULL;
    const struct bucket *b = &m->buckets.items[no];
    i64 bytes = m->pieces.count * RANGE_BYTES;
    u64 at = m->ranges_at[no & 1];
    struct kcliques args = c->args;
    TRY(gpu_kernel(g->card, KERNEL_CLIQUE_BRING, c->o.x, &function, err));
    TRY(gpu_upload(g, at, m->ranges->data + no * bytes, bytes, m->ranges, g->streams[1], err));
    args.rows = b->words;
    args.words = DEV(u64 *, m->in[no & 1]);
    args.source = DEV(const u64 *, m->words_addr);
    args.ranges = DEV(const u64 *, at);
    args.range_count = (u32)m->pieces.count;
    c->o.launches++;
    c->o.metric->bytes_moved += bytes;
    struct gpu_grid grid = {order_blocks(&c->o, b->words), CLIQUE_THREADS, 0};
    return gpu_launch(g, function, grid, g->streams[1], &args, err);
}

static FALLIBLE bring_bucket(struct maker *m, i64 no) {
    struct cliques *c = m->c;
    const struct bucket *b = &m->buckets.items[no];
    u64 to = m->in[no & 1];
    c->o.metric->bytes_moved += b->words * 8;
    if (m->ranges) {
        return b->words ? gather_bucket(m, no) : ERR_OK;
    }
    for (i64 i = 0; i < m->pieces.count; i++) {
        const struct edges *p = &m->pieces.items[i];
        i64 first = find_node(m, p, b->node);
        i64 bytes = 8 * (find_node(m, p, b->node + b->nodes) - first);
        TRY(gpu_upload(c->o.g, to, m->words->data + 8 * (p->at + first), bytes, NULL, c->o.g->streams[1],
                       c->o.x->err));
        to += (u64)bytes;
    }
    ASSERT(to == m->in[no & 1] + (u64)b->words * 8);
    return ERR_OK;
}

/* Lists of its nodes, and where they begin among all. */
static FALLIBLE sort_bucket(struct maker *m, i64 no) {
    struct cliques *c = m->c;
    const struct bucket *b = &m->buckets.items[no];
    i64 twice = c->args.form == CLIQUE_BOTH ? 2 : 1;
    i64 edges = b->words / twice;
    u64 to = m->out[no & 1];
    u64 offsets = to + (u64)ALIGN_UP(edges, 2) * 4;
    m->odd += (u64)(b->words % twice);
    if (b->words) {
        TRY(cliques_sort(c, &m->how, m->between, m->in[no & 1], b->words));
    }
    TRY(has_read(m, no));
    TRY(may_write(m, no));
    c->args.words = DEV(u64 *, m->between);
    c->args.to = DEV(u32 *, to);
    c->args.offsets = DEV(u32 *, offsets);
    c->args.edges = edges;
    c->args.nodes = (u32)b->nodes;
    c->args.base = (u32)b->node;
    c->args.first = b->at / twice;
    TRY(cliques_start(c, KERNEL_CLIQUE_ENDS, edges));
    TRY(cliques_start(c, KERNEL_CLIQUE_OFFSETS, b->nodes + 1));
    return send(m, no,
                (const struct part[2]){
                    {(u8 *)(m->t->to + b->at / twice), to, edges * 4},
                    {(u8 *)(m->t->starts + b->node), offsets, b->nodes * 4}});
}

/* --- all of it --- */

/* Edges in the form that they seem to have; m->odd of them have not. */
static FALLIBLE sort_edges(struct maker *m) {
    struct cliques *c = m->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    struct course pieces = {m->pieces.count, bring_piece, sort_piece};
    i32 bits = (i32)(2 * c->args.bits) + (c->args.form == CLIQUE_BOTH);
    m->how.high_bit = (i32)ALIGN_UP(bits, 8);
    m->odd = 0;
    CU(g->api->set_bytes(m->blocks_at, 0, (size_t)m->block_count * 4, g->streams[0]));
    CU(g->api->set_bytes((u64)(size_t)c->args.report, 0, CLIQUE_WORDS * 8, g->streams[0]));
    TRY(follow(m, &pieces));
    TRY(cliques_look(c));
    if (cliques_form(c) != c->args.form) { /* the sample did not know */
        m->odd = 1;
        return ERR_OK;
    }
    TRY(order_receive(&c->o, m->blocks, m->blocks_at, m->block_count * 4));
    if (!cut_buckets(m)) {
        m->cannot = 1;
        return ERR_OK;
    }
    list_ranges(m);
    struct course buckets = {m->buckets.count, bring_bucket, sort_bucket};
    TRY(follow(m, &buckets));
    TRY(cliques_look(c));
    m->odd += c->report[CLIQUE_ODD];
    c->args.nodes = (u32)m->t->nodes;
    c->args.base = 0;
    return ERR_OK;
}

static void sum_up(struct maker *m) {
    struct trie *t = m->t;
    t->form = m->c->args.form;
    t->edges = t->rows / (t->form == CLIQUE_BOTH ? 2 : 1);
    t->starts[t->nodes] = (u32)t->edges;
    t->first = t->nodes;
    t->longest = 0;
    for (i64 n = 0; n < t->nodes; n++) {
        i64 degree = trie_degree(t, n);
        t->longest = MAX_OF(t->longest, degree);
    }
    for (i64 n = 0; n < t->nodes && t->first == t->nodes; n++) {
        t->first = trie_degree(t, n) ? n : t->nodes;
    }
}

static FALLIBLE open_blocks(struct maker *m) {
    struct cliques *c = m->c;
    i64 most = MIN_OF(BLOCKS_MOST, MAX_OF(c->o.g->card->heap.budget_bytes / BLOCKS_PART / 4, 1));
    while ((m->t->nodes - 1) >> c->args.shift >= most) {
        c->args.shift++;
    }
    m->block_count = ((m->t->nodes - 1) >> c->args.shift) + 1;
    m->blocks = NEW_ARRAY(c->o.x->arena, u32, m->block_count);
    return order_block(&c->o, m->block_count * 4, &m->blocks_at);
}

/* Whether edges are as they seemed is known when they are sorted, by pieces or by lists; then they are sorted
 * again, in the end as they come. */
static FALLIBLE make_all(void *arg) {
    struct maker *m = arg;
    struct cliques *c = m->c;
    TRY(cliques_open(c));
    c->args.rank = c->args.degrees; /* read and written by the same thread */
    TRY(open_blocks(m));
    m->how = (struct prim_sort){.by = SORT_RADIX, .high_bit = 64};
    TRY(find_room(m));
    TRY(m->cannot ? ERR_OK : take_host(m));
    if (m->cannot) {
        return ERR_OK;
    }
    TRY(open_events(m));
    cut_pieces(m, m->cap, 1, &m->pieces);
    TRY(sample(m));
    c->args.blocks = DEV(u32 *, m->blocks_at);
    TRY(sort_edges(m));
    if (m->odd && c->args.form != CLIQUE_PLAIN) {
        u32 form = cliques_form(c);
        c->args.form = form != c->args.form ? form : CLIQUE_PLAIN;
        TRY(sort_edges(m));
    }
    if (m->odd && c->args.form != CLIQUE_PLAIN) {
        c->args.form = CLIQUE_PLAIN;
        TRY(sort_edges(m));
    }
    if (!m->cannot) {
        sum_up(m);
    }
    return arena_check(c->o.x->arena, c->o.x->err);
}

wf_status cliques_make_trie(struct cliques *c, struct trie *out, bool *out_has) {
    struct exec *x = c->o.x;
    struct maker *m = NEW(x->arena, struct maker);
    i64 mark = c->o.temps.count;
    *out = (struct trie){.nodes = (i64)c->step->key_range.hi + 1, .rows = x->vars[c->step->src].rows, .by_card = 1};
    *out_has = false;
    if (out->rows >= (i64)0xffffffff) {
        return ERR_OK; /* refused by whoever sorts on the host */
    }
    m->c = c;
    m->t = out;
    wf_status status = order_timed(&c->o, make_all, m);
    if (status) {
        gpu_wait(c->o.g);
    }
    order_drop(&c->o, mark);
    c->o.work = 0;
    c->o.work_bytes = 0;
    buffer_release(m->words);
    buffer_release(m->ranges);
    c->args = (struct kcliques){0};
    *out_has = !status && !m->cannot;
    if (!*out_has) {
        trie_fini(out);
    }
    if (status == ERR_DEVICE_MEMORY) { /* the host has another way */
        error_reset(x->err);
        status = ERR_OK;
    }
    return status;
}

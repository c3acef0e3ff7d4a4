/* gpu_boxes.c: STEP_CLIQUES of a graph that the card has no room for: box by box.
 *
 * The host holds sorted edges (run/trie.h). The card holds a slab, the neighbours of a range of first
 * nodes, and one after the other the slices of second nodes, in two places: while kernels count in one box,
 * the next slice is on its way. Cliques of more than three nodes keep a matrix among the neighbours of every
 * first node of the slab; slices fill it in, and when all have been there it is gone down
 * (kernels/cliques.h). For triangles the nodes with most edges have a matrix of bits among each other that stays:
 * those whose last two nodes are in it need no slice, so slices end where these nodes begin. Of any other graph
 * triangles are counted by a thread an edge; its larger cliques are left to the host. Edges are sorted by the card
 * (gpu_trie.c), or, where it has no room for that, by the host. See decisions 0037 and 0073. */
#include "gpu/gpu_cliques.h"
#include "run/trie.h"

enum {
    NODE_BYTES = 20, /* of a slab, for every node: where its edges are, lists, the place of its matrix */
    REGION_UNIT = 256,
    MASK_PART = 16, /* of all room, for masks */
    MATRIX_PART = 5, /* two fifths, for the matrix of the heaviest nodes, */
    HEAVY_WORTH = 16, /* if so large a part of the edges is among them */
    EVENTS_FIRST = 2
};
#define ROOM_LEAST (16LL << 10)

struct box_run {
    struct cliques *c;
    struct boxes *b;
    const struct trie *t;
    bool deep;
    struct box_room room;
    i64 slice_bytes;
    u64 slab_at, slices_at[2], bits_at, masks_at, matrix_at;
    i64 heavy, heavy_bytes; /* nodes of the matrix; 0 = there is none */
    i64 mask_blocks, mask_words;
    void *there[2], *done[2]; /* events: a slice has come, kernels have left it */
    i64 slice_count;
    struct box_sum sum;
    struct buffer *lists; /* of a slab, on the host */
    u32 taker;          /* its number in the boxes */
    struct slab queued; /* which nobody has waited for; none: from 0 to 0 */
};

/* --- room --- */

/* The parts of a block of so many bytes; false where a node has no room. */
static bool divide(struct box_run *r, i64 bytes) {
    i64 longest = r->t->longest;
    i64 least = 4 * longest + NODE_BYTES + 2 * REGION_UNIT;
    r->heavy = r->deep || r->t->form == CLIQUE_PLAIN || !cliques_has_shared(r->c, cliques_block_bytes(longest))
                   ? 0
                   : cliques_heavy_nodes(r->t->edges, r->t->nodes, bytes / MATRIX_PART * 2);
    if (r->heavy && (i64)(r->t->edges - r->t->starts[r->t->nodes - r->heavy]) < r->t->edges / HEAVY_WORTH) {
        r->heavy = 0;
    }
    r->heavy_bytes = ALIGN_UP(r->heavy * r->heavy / 8, REGION_UNIT);
    bytes -= r->heavy_bytes;
    r->slice_bytes = bytes / 4 / REGION_UNIT * REGION_UNIT;
    r->room = (struct box_room){.bytes = bytes / 2, .node_bytes = NODE_BYTES};
    if (r->deep) {
        r->mask_words = CLIQUE_WARPS * (i64)(r->b->size - 3) * ((longest + 31) / 32);
        r->mask_blocks = MAX_OF(bytes / MASK_PART / (r->mask_words * 4), 1);
        i64 masks = ALIGN_UP(r->mask_blocks * r->mask_words * 4, REGION_UNIT);
        i64 matrix = 4 * box_matrix_words(longest);
        r->slice_bytes = bytes / 5 / REGION_UNIT * REGION_UNIT;
        i64 rest = bytes - 2 * r->slice_bytes - masks;
        r->room.bits_bytes = MAX_OF(rest / 2, matrix) / REGION_UNIT * REGION_UNIT + REGION_UNIT;
        r->room.bytes = rest - r->room.bits_bytes;
    }
    r->room.bytes = r->room.bytes / REGION_UNIT * REGION_UNIT;
    return r->room.bytes >= least && r->slice_bytes >= least;
}

/* As much as there is, or as all of it takes. */
static FALLIBLE find_room(struct box_run *r) {
    struct gpu *g = r->c->o.g;
    struct gpu_block *block = NULL;
    i64 all = trie_slice_bytes(r->t, r->t->first, r->t->nodes) + NODE_BYTES * r->t->nodes;
    i64 bytes = MIN_OF(g->card->heap.budget_bytes / MAX_OF(r->b->takers, 1), 4 * all + ROOM_LEAST);
    while (!block && !g->card->broken && divide(r, bytes)) {
        block = gpu_alloc_try(g, bytes);
        bytes = block ? bytes : bytes / 8 * 7;
    }
    if (!block) { /* the least that a node has room in, or the refusal */
        while (!divide(r, bytes)) {
            bytes += bytes / 8 + REGION_UNIT;
        }
        TRY(gpu_alloc_here(g, bytes, &block, r->c->o.x->err));
    }
    VEC_PUSH(r->c->o.x->arena, &r->c->o.temps, block);
    r->slices_at[0] = block->addr;
    r->slices_at[1] = r->slices_at[0] + (u64)r->slice_bytes;
    r->slab_at = r->slices_at[1] + (u64)r->slice_bytes;
    r->bits_at = r->slab_at + (u64)r->room.bytes;
    r->masks_at = r->bits_at + (u64)r->room.bits_bytes;
    r->matrix_at = block->addr + (u64)(bytes / REGION_UNIT * REGION_UNIT - r->heavy_bytes);
    r->room.bytes -= 2 * REGION_UNIT; /* its parts are aligned */
    return ERR_OK;
}

/* --- slabs --- */

/* Which of its nodes have a matrix, and where. */
static FALLIBLE list_deep(struct box_run *r, const struct slab *slab, u64 at) {
    struct cliques *c = r->c;
    i64 nodes = slab->end - slab->first;
    u64 *places = (u64 *)(void *)r->lists->data;
    u32 *block = (u32 *)(void *)(places + nodes);
    u64 many = 0, longest = 0, words = 0;
    for (i64 n = 0; n < nodes; n++) {
        i64 degree = trie_degree(r->t, slab->first + n);
        if (degree + 1 >= r->b->size) {
            places[many] = words;
            block[many++] = (u32)n;
            words += (u64)box_matrix_words(degree);
            longest = MAX_OF(longest, (u64)degree);
        }
    }
    c->report[CLIQUE_LISTED] = 0;
    c->report[CLIQUE_LISTED_BLOCK] = many;
    c->report[CLIQUE_LONGEST] = longest;
    u64 report = (u64)(size_t)c->args.report;
    TRY(order_send(&c->o, report + CLIQUE_LISTED * 8, &c->report[CLIQUE_LISTED], 3 * 8));
    c->args.places = DEV(const u64 *, at);
    c->args.listed_block = DEV(u32 *, at + (u64)nodes * 8);
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    if (words) {
        CU(g->api->set_bytes(r->bits_at, 0, (size_t)words * 4, g->streams[0]));
    }
    TRY(gpu_upload(g, at, r->lists->data, nodes * 12, r->lists, g->streams[0], err));
    CU(gpu_sync(g, g->streams[0])); /* the lists change with the next slab */
    return ERR_OK;
}

/* Which of those that are not heavy are looked at by a warp or a block. */
static FALLIBLE list_nodes(struct box_run *r, const struct slab *slab, u64 at) {
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    u64 counts = (u64)(size_t)(c->args.report + CLIQUE_LISTED);
    c->args.listed = DEV(u32 *, at);
    c->args.listed_block = DEV(u32 *, at + (u64)(slab->end - slab->first) * 4);
    CU(g->api->set_bytes(counts, 0, 3 * 8, g->streams[0]));
    TRY(cliques_start(c, KERNEL_CLIQUE_LIST, c->args.light / CLIQUE_RANKS + 1));
    return cliques_look(c);
}

static FALLIBLE load_slice(struct box_run *r, u64 at, i64 first, i64 end, void *stream) {
    struct gpu *g = r->c->o.g;
    struct error *err = r->c->o.x->err;
    const struct trie *t = r->t;
    i64 starts = (end - first + 1) * 4, edges = 4 * (i64)(t->starts[end] - t->starts[first]);
    r->c->o.metric->bytes_moved += starts + edges;
    TRY(gpu_upload(g, at, t->starts + first, starts, t->starts_buffer, stream, err));
    return gpu_upload(g, at + (u64)starts, t->to + t->starts[first], edges, t->to_buffer, stream,
                      err);
}

/* Neighbours behind the offsets, as if all edges before them were there, too. */
static u32 *behind(const struct trie *t, u64 at, i64 first, i64 end) {
    return DEV(u32 *, at + (u64)(end - first + 1) * 4 - (u64)t->starts[first] * 4);
}

static FALLIBLE load_slab(struct box_run *r, const struct slab *slab) {
    struct cliques *c = r->c;
    const struct trie *t = r->t;
    TRY(load_slice(r, r->slab_at, slab->first, slab->end, c->o.g->streams[0]));
    i64 light = t->nodes - r->heavy; /* from there on nodes are heavy */
    c->args.base = (u32)slab->first;
    c->args.nodes = (u32)(slab->end - slab->first);
    c->args.light = (u32)(MAX_OF(MIN_OF(slab->end, light), slab->first) - slab->first);
    c->args.offsets = DEV(u32 *, r->slab_at);
    c->args.to = behind(t, r->slab_at, slab->first, slab->end);
    c->args.edges = (i64)(t->starts[slab->end] - t->starts[slab->first]);
    c->first_edge = t->starts[slab->first];
    i64 bytes = ALIGN_UP(trie_slice_bytes(t, slab->first, slab->end), REGION_UNIT);
    u64 at = r->slab_at + (u64)bytes;
    if (t->form == CLIQUE_PLAIN) {
        return ERR_OK;
    }
    return r->deep ? list_deep(r, slab, at) : list_nodes(r, slab, at);
}

/* --- boxes --- */

static FALLIBLE count_box(struct box_run *r) {
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    u64 tickets = (u64)(size_t)(c->args.report + CLIQUE_TICKETS);
    i64 many = (i64)c->report[CLIQUE_LISTED_BLOCK];
    CU(g->api->set_bytes(tickets, 0, 3 * 8, g->streams[0]));
    if (r->t->form == CLIQUE_PLAIN) {
        return cliques_count_plain(c);
    }
    if (!r->deep) {
        return cliques_count_triangles(c);
    }
    i64 shared = cliques_set_bytes((i64)c->report[CLIQUE_LONGEST], true);
    c->args.stage = CLIQUE_FILL;
    return many ? cliques_start_resident(c, KERNEL_CLIQUE_BOX, many, shared) : ERR_OK;
}

static FALLIBLE finish_slab(struct box_run *r) {
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    i64 many = (i64)c->report[CLIQUE_LISTED_BLOCK];
    if (!r->deep || !many) {
        return ERR_OK;
    }
    u64 tickets = (u64)(size_t)(c->args.report + CLIQUE_TICKETS);
    CU(g->api->set_bytes(tickets, 0, 3 * 8, g->streams[0]));
    c->args.stage = CLIQUE_DESCEND;
    return cliques_start_resident(c, KERNEL_CLIQUE_BOX, MIN_OF(many, r->mask_blocks), 0);
}

/* Slices from `first` to `last`, in two places by turns: while `use` has one, the next is on its way. */
static FALLIBLE each_slice(struct box_run *r, i64 first, i64 last, FALLIBLE (*use)(struct box_run *r)) {
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    const struct trie *t = r->t;
    for (i64 end = 0; first < last; first = end) {
        i64 k = r->slice_count & 1;
        end = MIN_OF(trie_slice_end(t, first, r->slice_bytes), last);
        if (t->starts[end] == t->starts[first]) {
            continue;
        }
        CU(g->api->stream_wait_event(g->streams[1], r->done[k], 0));
        TRY(load_slice(r, r->slices_at[k], first, end, g->streams[1]));
        CU(g->api->event_record(r->there[k], g->streams[1]));
        CU(g->api->stream_wait_event(g->streams[0], r->there[k], 0));
        c->args.second = (u32)first;
        c->args.second_count = (u32)(end - first);
        c->args.second_offsets = DEV(const u32 *, r->slices_at[k]);
        c->args.second_to = behind(t, r->slices_at[k], first, end);
        TRY(use(r));
        CU(g->api->event_record(r->done[k], g->streams[0]));
        r->slice_count++;
    }
    return ERR_OK;
}

static FALLIBLE use_box(struct box_run *r) {
    r->sum.boxes++;
    TRY(count_box(r));
    r->c->args.heavy = 0xffffffffu; /* heavy second nodes have had their turn */
    return ERR_OK;
}

/* The slab before. */
static void note_finished(struct box_run *r) {
    if (r->queued.first < r->queued.end) {
        boxes_finished(r->b, r->taker, &r->queued, clock_ns());
    }
    r->queued = (struct slab){0, 0};
}

static FALLIBLE count_slab(struct box_run *r, const struct slab *slab) {
    struct cliques *c = r->c;
    const struct trie *t = r->t;
    i64 boxes = r->sum.boxes;
    c->args.heavy = r->heavy ? (u32)(t->nodes - r->heavy) : 0xffffffffu;
    TRY(load_slab(r, slab));
    note_finished(r); /* which was waited for, if only now */
    i64 first = t->form == CLIQUE_PLAIN ? t->first : slab->first;
    TRY(each_slice(r, first, t->nodes - r->heavy, use_box));
    if (r->heavy && c->args.light && boxes == r->sum.boxes) { /* all second nodes are heavy */
        c->args.second_count = 0;
        TRY(use_box(r));
    }
    if (r->heavy && c->args.light < c->args.nodes) {
        c->args.heavy = (u32)(t->nodes - r->heavy);
        r->sum.boxes++;
        TRY(cliques_count_heavy(c));
    }
    return finish_slab(r);
}

/* Edges of a slice among heavy nodes, as bits. */
static FALLIBLE note_slice(struct box_run *r) {
    struct kcliques *args = &r->c->args;
    args->base = args->second;
    args->nodes = args->second_count;
    args->offsets = (u32 *)(size_t)args->second_offsets;
    args->to = (u32 *)(size_t)args->second_to;
    return cliques_start(r->c, KERNEL_CLIQUE_MATRIX, r->slice_bytes / 4);
}

static FALLIBLE make_matrix(struct box_run *r) {
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    if (!r->heavy) {
        return ERR_OK;
    }
    CU(g->api->set_bytes(r->matrix_at, 0, (size_t)r->heavy_bytes, g->streams[0]));
    c->args.matrix = DEV(u32 *, r->matrix_at);
    c->args.row_words = (u32)(r->heavy / 32);
    c->args.heavy = (u32)(r->t->nodes - r->heavy);
    return each_slice(r, r->t->nodes - r->heavy, r->t->nodes, note_slice);
}

static FALLIBLE count_slabs(void *arg) {
    struct box_run *r = arg;
    struct cliques *c = r->c;
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    struct slab slab;
    u64 report = 0;
    TRY(cliques_zeros(c, CLIQUE_WORDS * 8, &report));
    c->args.report = DEV(u64 *, report);
    TRY(find_room(r));
    c->args.scratch = DEV(u32 *, r->bits_at);
    c->args.masks = DEV(u32 *, r->masks_at);
    c->args.mask_words = (u64)r->mask_words;
    for (i32 i = 0; i < 2; i++) {
        TRY(gpu_event(g, EVENTS_FIRST + i, &r->there[i], err));
        TRY(gpu_event(g, EVENTS_FIRST + 2 + i, &r->done[i], err));
        CU(g->api->event_record(r->done[i], g->streams[0]));
    }
    i64 nodes = r->deep ? MIN_OF(r->room.bytes / NODE_BYTES + 1, r->t->nodes) : 0;
    r->lists = buffer_new_at(c->o.x->mem, nodes * 12 + 16, BUFFER_WORK);
    if (!r->lists) {
        return memory_refused(c->o.x->mem, err, nodes * 12);
    }
    wf_status status = make_matrix(r);
    r->taker = boxes_enter(r->b, c->o.x, clock_ns());
    while (!status && boxes_take(r->b, r->taker, &r->room, &slab)) {
        status = count_slab(r, &slab);
        r->queued = slab;
        r->sum.edges += (i64)(r->t->starts[slab.end] - r->t->starts[slab.first]);
    }
    status = status ? status : cliques_look(c);
    if (status) {
        gpu_wait(g);
    } else {
        note_finished(r);
    }
    buffer_release(r->lists);
    return status;
}

/* Larger cliques of any graph would need a third node's neighbours, and sets that have no room in shared
 * memory another way: the host does those. */
static bool has_way(const struct box_run *r) {
    i64 shared = cliques_set_bytes(r->t->longest, true);
    return !r->deep || (r->t->form != CLIQUE_PLAIN && cliques_has_shared(r->c, shared));
}

static FALLIBLE count_in(struct cliques *c, struct boxes *b) {
    struct box_run r = {.c = c, .b = b, .t = &b->trie, .deep = b->size > 3};
    c->args.form = b->trie.form;
    c->args.size = b->size;
    c->args.heavy = 0xffffffffu;
    c->args.least = CLIQUE_TINY + 1;
    if (!has_way(&r)) {
        FAIL(c->o.x->err, DEVICE_MEMORY, "out of GPU memory: this graph is not counted in boxes");
    }
    wf_status status = order_timed(&c->o, count_slabs, &r);
    if (!status) {
        r.sum.found = c->report[CLIQUE_FOUND];
        r.sum.over = c->report[CLIQUE_OVER] != 0;
        boxes_add(b, &r.sum);
    }
    return status;
}

wf_status boxes_count(struct cliques *c, u32 step_no) {
    struct exec *x = c->o.x;
    struct boxes *b = exec_boxes(x);
    struct trie made;
    bool has = false;
    const struct trie *kept = gpu_kept_boxes(&x->vars[c->step->src]);
    if (!b && kept) {
        made = *kept;
        made.kept = 1;
        buffer_retain(made.starts_buffer);
        buffer_retain(made.to_buffer);
        TRY(boxes_open(x, step_no, c->step, &made, &b));
    } else if (!b) {
        TRY(gpu_var_fetch(c->o.g, x, c->step->src));
        x->vars[c->step->src].on_host = 1;
        variable_drop_copy(&x->vars[c->step->src]);
        TRY(cliques_make_trie(c, &made, &has));
        if (has) {
            gpu_keep_boxes(c->o.g, x, c->step->src, &made);
        }
        TRY(boxes_open(x, step_no, c->step, has ? &made : NULL, &b));
    }
    return count_in(c, b);
}

/* gpu_cliques.c: STEP_CLIQUES on the card (kernels/cliques.h).
 *
 * Whether edges are all turned one way, or there in both directions, is counted; that none is repeated,
 * and that every one has its opposite, is seen once they are sorted. Then nodes may be renamed: by
 * ascending degree, of which a sample is enough, so that few edges lead away from any. Graphs that are
 * neither are counted as they come, by a thread an edge. Where degrees are few and even nodes keep their order
 * (decision 0061). A graph that the card has no room for is counted
 * in boxes (gpu_boxes.c). What a node's neighbours are is found by what
 * suits their number; the heaviest nodes have a matrix of bits among each other, as large as edges make
 * worth while. */
#include "gpu/gpu_cliques.h"

#include "run/tries.h"

#include <stdlib.h>

_Static_assert((int)CLIQUE_DEPTH >= (int)CLIQUE_NODES, "a place for every node");

#define SAMPLED_EVERY 8
#define THIN_EVERY 32 /* where a node has few edges */
#define THIN_NODES 4  /* in edges */
#ifdef WF_HARD
#define NO_ROOM(rows) ((rows) % 16 == 3) /* beside a graph that is kept, at times */
#define HEAVY_DEGREE 3 /* of nodes of the matrix, at least */
#define HEAVY_BITS 256
#define EVEN_DEGREE 4
#define SAMPLED_ROWS 4096
#else
#define NO_ROOM(rows) false
#define SAMPLED_ROWS (1LL << 22) /* from so many edges on a part of them tells degrees */
#define EVEN_DEGREE 16 /* that an end of an edge has on average: no order of nodes makes lists much shorter */
#define HEAVY_DEGREE 64
#define HEAVY_BITS 64 /* of the matrix, for every edge */
#endif
#define HEAVY_UNIT 128 /* nodes: rows are whole words of 16 bytes */
#define PLAIN_EDGES (1LL << 17) /* of a launch, of any graph */
#define SCRATCH_PART 8 /* of the budget, for matrices of neighbours */
#define SHARED_OWN 1024 /* bytes that kernels have of their own */

wf_status cliques_start(struct cliques *c, enum kernel_no kernel, i64 rows) {
    return order_start(&c->o, kernel, order_blocks(&c->o, rows), CLIQUE_THREADS, &c->args);
}

wf_status cliques_start_resident(struct cliques *c, enum kernel_no kernel, i64 most, i64 shared) {
    struct gpu *g = c->o.g;
    void *function = NULL;
    i32 per_sm = 1;
    TRY(exec_check(c->o.x));
    TRY(gpu_kernel(g->card, kernel, c->o.x, &function, c->o.x->err));
    TRY(gpu_blocks_per_sm(g, function, CLIQUE_THREADS, shared, &per_sm, c->o.x->err));
    i64 blocks = MAX_OF(MIN_OF((i64)per_sm * g->card->sm_count, most), 1);
    c->o.launches++;
    return gpu_launch(g, function, (struct gpu_grid){blocks, CLIQUE_THREADS, shared}, g->streams[0],
                      &c->args, c->o.x->err);
}

wf_status cliques_zeros(struct cliques *c, i64 bytes, u64 *out) {
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    TRY(order_block(&c->o, bytes, out));
    CU(g->api->set_bytes(*out, 0, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

wf_status cliques_look(struct cliques *c) {
    return order_receive(&c->o, c->report, (u64)(size_t)c->args.report, CLIQUE_WORDS * 8);
}

wf_status cliques_open(struct cliques *c) {
    u64 report = 0;
    u64 degrees = 0;
    u64 classes = 0;
    c->args.rows = c->o.x->vars[c->step->src].rows;
    c->args.nodes = (u32)(c->step->key_range.hi + 1);
    c->args.size = c->step->col_count;
    bool thin = c->args.rows < THIN_NODES * (i64)c->args.nodes;
    c->args.every = c->args.rows < SAMPLED_ROWS ? 1 : thin ? THIN_EVERY : SAMPLED_EVERY;
    c->args.bits = 1;
    while ((c->args.nodes - 1) >> c->args.bits) {
        c->args.bits++;
    }
    TRY(cliques_zeros(c, CLIQUE_WORDS * 8, &report));
    TRY(cliques_zeros(c, (i64)c->args.nodes * 4, &degrees));
    TRY(cliques_zeros(c, CLIQUE_CLASSES * 4, &classes));
    c->args.classes = DEV(u32 *, classes);
    c->args.report = DEV(u64 *, report);
    c->args.degrees = DEV(u32 *, degrees);
    return ERR_OK;
}

bool cliques_naive(void) {
    const char *asked = getenv("WARPFOX_CLIQUES");
    return asked && strcmp(asked, "naive") == 0;
}

u32 cliques_form(const struct cliques *c) {
    bool naive = cliques_naive();
    bool one_way = !c->report[CLIQUE_UP] || !c->report[CLIQUE_DOWN];
    bool both = c->report[CLIQUE_UP] == c->report[CLIQUE_DOWN];
    return c->report[CLIQUE_LOOPS] || naive ? CLIQUE_PLAIN
           : one_way                        ? CLIQUE_TURNED
           : both                           ? CLIQUE_BOTH
                                            : CLIQUE_PLAIN;
}

static FALLIBLE open_edges(struct cliques *c) {
    struct kcol cols[2];
    for (u32 i = 0; i < 2; i++) {
        TRY(gpu_var_col(c->o.g, c->o.x, c->step->src, i, &cols[i], &c->o.metric->bytes_moved));
    }
    TRY(cliques_open(c));
    c->args.from = (const u32 *)(const void *)cols[0].data;
    c->args.ends = (const u32 *)(const void *)cols[1].data;
    TRY(cliques_start(c, KERNEL_CLIQUE_FACTS, c->args.rows));
    TRY(cliques_look(c));
    c->args.form = cliques_form(c);
    return ERR_OK;
}

/* The least degree of a class. */
static i64 class_degree(const struct cliques *c, i64 class) {
    i64 octave = (class - 32) / 32;
    i64 degree = class < 32 ? class : (32 + (class - 32) % 32) << octave;
    return degree * c->args.every;
}

/* Whether degrees are few and even, by those of the sample: of degrees d there are sums of d / every, of
 * d (d - 1) / every^2 then. */
static bool are_even(const struct cliques *c, const u32 *classes) {
    f64 ends = 0, pairs = 0;
    for (i64 i = 0; i < CLIQUE_CLASSES; i++) {
        f64 degree = (f64)class_degree(c, i) / c->args.every;
        ends += classes[i] * degree;
        pairs += classes[i] * degree * (degree - 1);
    }
    return pairs * c->args.every <= EVEN_DEGREE * ends;
}

/* Also how many of them are heavy. */
wf_status cliques_rank(struct cliques *c) {
    u32 *classes = NEW_ARRAY(c->o.x->arena, u32, CLIQUE_CLASSES);
    u64 addr = (u64)(size_t)c->args.classes;
    u64 rank = (u64)(size_t)c->args.rank;
    c->args.rank = NULL;
    TRY(cliques_start(c, KERNEL_CLIQUE_CLASSES, c->args.nodes));
    TRY(order_receive(&c->o, classes, addr, CLIQUE_CLASSES * 4));
    if (are_even(c, classes)) {
        return ERR_OK;
    }
    TRY(rank ? ERR_OK : order_block(&c->o, (i64)c->args.nodes * 4, &rank));
    c->args.rank = DEV(u32 *, rank);
    u32 before = 0;
    for (i64 i = 0; i < CLIQUE_CLASSES; i++) {
        u32 count = classes[i];
        classes[i] = before;
        before += count;
        c->heavy += class_degree(c, i) >= HEAVY_DEGREE ? (i64)count : 0;
    }
    TRY(order_send(&c->o, addr, classes, CLIQUE_CLASSES * 4));
    return cliques_start(c, KERNEL_CLIQUE_RANKS, c->args.nodes / CLIQUE_RANKS + 1);
}

/* Lists are short, and put in order by themselves. */
static bool sorts_half(const struct cliques *c) {
    return c->args.form == CLIQUE_TURNED && !c->args.rank;
}

wf_status cliques_sort(struct cliques *c, const struct prim_sort *how, u64 to, u64 from, i64 count) {
    struct prim_payload none = {.count = 0};
    struct prim_array keys = {.type = ELEM_U64, .data = DEV(void *, from), .count = count};
    struct prim_array out = {.type = ELEM_U64, .data = DEV(void *, to), .count = count};
    struct prim_job job = prim_job_inside(c->o.x, &c->o.g->device);
    TRY(prim_sort_array(&job, how, out, keys, &none));
    TRY(order_work(&c->o, job.work_peak));
    prim_job_go(&job, DEV(void *, c->o.work));
    TRY(prim_sort_array(&job, how, out, keys, &none));
    c->o.launches += job.launches;
    return ERR_OK;
}

static FALLIBLE sort_words(struct cliques *c) {
    i32 bits = (i32)(2 * c->args.bits) + (c->args.form == CLIQUE_BOTH);
    struct prim_sort how = {.by = SORT_RADIX, .high_bit = (i32)ALIGN_UP(bits, 8)};
    if (sorts_half(c)) {
        how.low_bit = (i32)c->args.bits;
        how.high_bit = MIN_OF(how.low_bit + (i32)ALIGN_UP(c->args.bits, 8), 64);
    }
    c->args.words = DEV(u64 *, c->words[1]);
    return cliques_sort(c, &how, c->words[1], c->words[0], c->args.rows);
}

/* Sorted edges of this form, and where those of every node are. */
static FALLIBLE make_graph(struct cliques *c) {
    if (c->args.form != CLIQUE_PLAIN) {
        TRY(cliques_rank(c));
    }
    c->args.words = DEV(u64 *, c->words[0]);
    TRY(cliques_start(c, KERNEL_CLIQUE_TURN, c->args.rows));
    TRY(sort_words(c));
    c->args.edges = c->args.form == CLIQUE_BOTH ? c->args.rows / 2 : c->args.rows;
    if (sorts_half(c)) {
        TRY(cliques_start(c, KERNEL_CLIQUE_OFFSETS, (i64)c->args.nodes + 1));
        return cliques_start(c, KERNEL_CLIQUE_ORDER, c->args.edges);
    }
    TRY(cliques_start(c, KERNEL_CLIQUE_ENDS, c->args.edges));
    return cliques_start(c, KERNEL_CLIQUE_OFFSETS, (i64)c->args.nodes + 1);
}

/* What the step made last stays on the card, if it may. */
static void keep_graph(struct cliques *c, i64 first) {
    struct gpu_block **blocks = c->o.temps.items + first;
    struct card_graph graph = {blocks[0], blocks[1], c->args.form, c->heavy};
    if (!cliques_naive() && gpu_keep_graph(c->o.g, c->o.x, c->step->src, &graph)) {
        blocks[0] = blocks[1] = NULL; /* not the step's any more */
    }
}

static FALLIBLE build_graph(struct cliques *c) {
    u64 to = 0;
    u64 offsets = 0;
    i64 first = c->o.temps.count;
    TRY(order_block(&c->o, c->args.rows * 4, &to));
    TRY(order_block(&c->o, ((i64)c->args.nodes + 1) * 4, &offsets));
    for (i32 i = 0; i < 2; i++) {
        TRY(order_block(&c->o, c->args.rows * 8, &c->words[i]));
    }
    c->args.to = DEV(u32 *, to);
    c->args.offsets = DEV(u32 *, offsets);
    TRY(make_graph(c));
    TRY(cliques_look(c));
    if (c->report[CLIQUE_ODD]) {
        c->args.form = CLIQUE_PLAIN;
        TRY(make_graph(c));
        TRY(cliques_look(c));
    }
    keep_graph(c, first);
    return ERR_OK;
}

/* The graph that an earlier statement made. */
static FALLIBLE take_graph(struct cliques *c, const struct card_graph *graph) {
    TRY(cliques_open(c));
    c->args.to = DEV(u32 *, graph->to->addr);
    c->args.offsets = DEV(u32 *, graph->offsets->addr);
    c->args.form = graph->form;
    c->args.edges = graph->form == CLIQUE_BOTH ? c->args.rows / 2 : c->args.rows;
    c->heavy = graph->heavy;
    c->o.metric->how = "the graph was made before, and kept on the card";
    return ERR_OK;
}

/* --- counting --- */

wf_status cliques_count_plain(struct cliques *c) {
    i64 end = c->first_edge + c->args.edges;
    for (i64 first = c->first_edge; first < end; first += PLAIN_EDGES) {
        c->args.first = first;
        c->args.last = MIN_OF(first + PLAIN_EDGES, end);
        TRY(cliques_start(c, KERNEL_CLIQUE_PLAIN, PLAIN_EDGES));
        TRY(cliques_look(c)); /* waits, so that a statement can be cancelled in between */
    }
    return ERR_OK;
}

i64 cliques_heavy_nodes(i64 edges, i64 most, i64 bytes) {
    i64 nodes = HEAVY_UNIT;
    while (nodes * 2 <= most && 4 * nodes * nodes <= edges * HEAVY_BITS && nodes * nodes / 2 <= bytes) {
        nodes *= 2;
    }
    return nodes <= most && nodes * nodes / 8 <= bytes ? nodes : 0;
}

/* A matrix of the heaviest nodes, as far as there is room. */
static FALLIBLE make_matrix(struct cliques *c) {
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    i64 most = MIN_OF(c->heavy, (i64)c->args.nodes) / HEAVY_UNIT * HEAVY_UNIT;
    i64 nodes = cliques_heavy_nodes(c->args.edges, most, I64_MAX);
    struct gpu_block *block = NULL;
    for (; nodes && !block && !g->card->broken; nodes = block ? nodes : nodes / 2) {
        if (nodes < HEAVY_UNIT) {
            return ERR_OK;
        }
        block = gpu_alloc_try(g, nodes * nodes / 8);
    }
    if (!block) {
        return ERR_OK;
    }
    VEC_PUSH(c->o.x->arena, &c->o.temps, block);
    CU(g->api->set_bytes(block->addr, 0, (size_t)(nodes * nodes / 8), g->streams[0]));
    c->args.matrix = DEV(u32 *, block->addr);
    c->args.row_words = (u32)(nodes / 32);
    c->args.heavy = c->args.light = c->args.nodes - (u32)nodes;
    return cliques_start(c, KERNEL_CLIQUE_MATRIX, c->args.edges);
}

static FALLIBLE list_nodes(struct cliques *c) {
    u64 lists[2];
    for (i32 i = 0; i < 2; i++) {
        TRY(order_block(&c->o, (i64)c->args.nodes * 4, &lists[i]));
    }
    c->args.listed = DEV(u32 *, lists[0]);
    c->args.listed_block = DEV(u32 *, lists[1]);
    c->args.least = c->args.size == 3 ? CLIQUE_TINY + 1 : c->args.size - 1;
    TRY(cliques_start(c, KERNEL_CLIQUE_LIST, c->args.nodes / CLIQUE_RANKS + 1));
    return cliques_look(c);
}

i64 cliques_set_bytes(i64 count, bool places) {
    i64 slots = CLIQUE_WARP_SLOTS;
    while (slots < (places ? 2 : 4) * count) {
        slots *= 2;
    }
    return 4 * ((places ? 2 : 1) * slots + count);
}

bool cliques_has_shared(const struct cliques *c, i64 bytes) {
    return bytes <= c->o.g->card->shared_max - SHARED_OWN;
}

i64 cliques_block_bytes(i64 count) {
    return cliques_set_bytes(count, false) + count * 8; /* bits, and two numbers */
}

wf_status cliques_count_triangles(struct cliques *c) {
    i64 longest = (i64)c->report[CLIQUE_LONGEST];
    i64 shared = c->args.matrix ? cliques_block_bytes(longest) : cliques_set_bytes(longest, false);
    i64 few = (i64)c->report[CLIQUE_LISTED], many = (i64)c->report[CLIQUE_LISTED_BLOCK];
    if (many && !cliques_has_shared(c, shared)) {
        return cliques_count_plain(c);
    }
    TRY(cliques_start(c, KERNEL_CLIQUE_TINY, c->args.edges));
    if (few) {
        TRY(cliques_start_resident(c, KERNEL_CLIQUE_WARPS, few / CLIQUE_WARPS + 1, 0));
    }
    if (many) {
        TRY(cliques_start_resident(c, KERNEL_CLIQUE_BLOCKS, many, shared));
    }
    return ERR_OK;
}

wf_status cliques_count_heavy(struct cliques *c) {
    struct gpu *g = c->o.g;
    struct error *err = c->o.x->err;
    CU(g->api->set_bytes((u64)(size_t)(c->args.report + CLIQUE_TICKETS + 2), 0, 8, g->streams[0]));
    return cliques_start_resident(c, KERNEL_CLIQUE_HEAVY, c->args.nodes - c->args.light,
                                  (i64)c->args.row_words * 4);
}

/* Blocks whose matrices of neighbours have room on the card. */
static FALLIBLE take_scratch(struct cliques *c, i64 words, i64 *blocks) {
    struct gpu *g = c->o.g;
    *blocks = MIN_OF(*blocks, MAX_OF(g->card->heap.budget_bytes / SCRATCH_PART / (words * 4), 1));
    struct gpu_block *block = gpu_alloc_try(g, *blocks * words * 4);
    if (!block) {
        *blocks = 1;
        TRY(gpu_alloc(g, words * 4, &block, c->o.x->err));
    }
    VEC_PUSH(c->o.x->arena, &c->o.temps, block);
    c->args.scratch = DEV(u32 *, block->addr);
    c->args.scratch_words = (u64)words;
    return ERR_OK;
}

static FALLIBLE count_deep(struct cliques *c) {
    i64 longest = (i64)c->report[CLIQUE_LONGEST];
    i64 blocks = (i64)c->report[CLIQUE_LISTED_BLOCK];
    i64 words = (longest + 31) / 32;
    i64 all = longest * words + CLIQUE_WARPS * (i64)(c->args.size - 3) * words;
    i64 shared = cliques_set_bytes(longest, true);
    if (!blocks) {
        return ERR_OK;
    }
    if (!cliques_has_shared(c, shared)) {
        return cliques_count_plain(c);
    }
    if (cliques_has_shared(c, shared + 4 * all)) {
        shared += 4 * all;
    } else {
        blocks = MIN_OF(blocks, c->o.g->card->sm_count * 4LL);
        TRY(take_scratch(c, all, &blocks));
    }
    return cliques_start_resident(c, KERNEL_CLIQUE_DEEP, blocks, shared);
}

static FALLIBLE sum_up(struct cliques *c) {
    bool over = c->report[CLIQUE_OVER] != 0;
    c->found = c->report[CLIQUE_FOUND];
    for (u64 i = 2; c->args.form == CLIQUE_BOTH && i <= c->args.size; i++) { /* in any order */
        over = over || __builtin_mul_overflow(c->found, i, &c->found);
    }
    if (over || c->found > I64_MAX) {
        FAIL(c->o.x->err, OUT_OF_RANGE, "bigint out of range");
    }
    return ERR_OK;
}

static FALLIBLE count_all(void *arg) {
    struct cliques *c = arg;
    const struct card_graph *kept = gpu_kept_graph(c->o.g, &c->o.x->vars[c->step->src]);
    if (kept) {
        TRY(take_graph(c, kept));
    } else {
        TRY(open_edges(c));
        TRY(build_graph(c));
    }
    c->args.heavy = c->args.light = c->args.nodes;
    c->args.second_offsets = c->args.offsets;
    c->args.second_to = c->args.to;
    c->args.second_count = c->args.nodes;
    if (c->args.form == CLIQUE_PLAIN) {
        TRY(cliques_count_plain(c));
    } else if (c->args.size == 3) {
        TRY(make_matrix(c));
        TRY(list_nodes(c));
        TRY(cliques_count_triangles(c));
        TRY(c->args.matrix ? cliques_count_heavy(c) : ERR_OK);
    } else {
        TRY(list_nodes(c));
        TRY(count_deep(c));
    }
    TRY(cliques_look(c));
    return sum_up(c);
}

/* A graph that is kept is not counted in parts; where an earlier statement made it, its rows are not here. */
static FALLIBLE give_graph_back(struct exec *x, struct variable *v) {
    if (!kept_trie_far(v->kept)) {
        return ERR_OK;
    }
    if (!v->copy && !v->on_host) {
        FAIL(x->err, DEVICE_MEMORY, "out of GPU memory: no room beside a graph that is kept");
    }
    kept_trie_release(v->kept);
    v->kept = NULL;
    return ERR_OK;
}

wf_status gpu_run_cliques(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct cliques c = {.o = {.g = g, .x = x, .metric = &x->metrics[step_no]}, .step = step};
    i64 rows = x->vars[step->src].rows;
    bool in_boxes = gpu_kept_boxes(&x->vars[step->src]) != NULL;
    bool parts = rows > 0 && (g->tight >= TIGHT_STREAM || in_boxes || exec_boxes(x) || boxes_forced(x));
    bool failed = in_boxes && (g->tight >= TIGHT_STREAM || boxes_are_open(x)); /* for want of room: once is enough */
    if (in_boxes) {
        TRY(failed || NO_ROOM(rows) ? give_graph_back(x, &x->vars[step->src]) : ERR_OK);
    } else if (parts || NO_ROOM(rows) || !gpu_kept_graph(g, &x->vars[step->src])) {
        TRY(give_graph_back(x, &x->vars[step->src]));
    }
    wf_status status = rows == 0 ? ERR_OK
                       : parts   ? boxes_count(&c, step_no)
                                 : order_timed(&c.o, count_all, &c);
    order_end(&c.o, status);
    TRY(status);
    c.o.metric->rows_in += rows;
    c.o.metric->rows_out += 1;
    c.o.metric->bytes_read += rows * 8;
    if (parts) {
        return ERR_OK;
    }
    variable_reset(&x->vars[step->dst]);
    struct chunk *out = chunk_new(x, &x->program->vars[step->dst], 1, false);
    if (!out) {
        return memory_refused(x->mem, x->err, 16);
    }
    ((i64 *)out->cols[0].data)[0] = (i64)c.found;
    variable_append(x, step->dst, out);
    return ERR_OK;
}

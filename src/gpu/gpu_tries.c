/* gpu_tries.c: sorted rows with their index, and graphs, kept on the card for later statements.
 *
 * What a chain of steps (run/tries.h) made of a table's version hangs on that version, as what the host keeps does,
 * and lies in blocks that no execution owns. A statement that finds it gets records of its own of the rows and the
 * index, whose blocks are lent: only pipelines read what a chain makes, so nobody changes them, and any number of
 * sessions and workers read at once. When memory on the card is short what nobody uses goes, least recently used
 * first, before columns of tables do; all together have at most a share of the card. After a reset of the
 * context what was there is only forgotten. A graph that the card has no room for, and has sorted for boxes, stays
 * in the memory of the host, which may have it back. See decisions 0090 and 0094. */
#include "gpu/gpu_cliques.h"
#include "run/trie.h"
#include "run/tries.h"

enum {
    KEPT_SHARE = 4,     /* of the card's memory, at most */
    GRAPH_BYTES = 28    /* for each edge, of a graph that is made on the card */
};
#define IN_BOXES (1u << 31) /* the space of what lies in the memory of the host, for boxes of any card */

struct card_trie {
    struct kept_far far; /* the first */
    struct gpu_card *card;
    u64 epoch;
    struct gpu_var *rows, *index; /* whose blocks these are; NULL: a graph */
    struct card_graph graph;
    struct trie in_boxes; /* or this, in the memory of the host */
};

/* --- blocks of a record --- */

enum { OWN_BLOCKS = 5 };

static void own_blocks(struct gpu_var *gv, struct gpu_block **out[OWN_BLOCKS]) {
    out[0] = &gv->slots;
    out[1] = &gv->heads;
    out[2] = &gv->filter;
    out[3] = &gv->near;
    out[4] = &gv->index_rows;
}

static i64 block_bytes(const struct gpu_block *block) {
    return block ? block->bytes : 0;
}

static i64 var_bytes(struct gpu_var *gv) {
    struct gpu_block **own[OWN_BLOCKS];
    i64 bytes = 0;
    own_blocks(gv, own);
    for (i32 i = 0; i < OWN_BLOCKS; i++) {
        bytes += block_bytes(*own[i]);
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        bytes += block_bytes(gv->cols[c].data) + block_bytes(gv->cols[c].nulls);
    }
    return bytes;
}

static bool is_here(const struct gpu_block *block) {
    return !block || !block->host;
}

/* Whether all of it lies on the card, and is only what its rows say, whoever asks. */
static bool may_keep(const struct gpu_card *card, struct gpu_var *gv) {
    struct gpu_block **own[OWN_BLOCKS];
    bool fine = gv && gv->card == card && gv->epoch == card->epoch && !gv->packed && !gv->grow && !gv->lut &&
                !gv->parts.count && !gv->count_at && !gv->texts.count && !gv->kept;
    if (!fine) {
        return false;
    }
    own_blocks(gv, own);
    for (i32 i = 0; i < OWN_BLOCKS; i++) {
        fine = fine && is_here(*own[i]);
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        fine = fine && is_here(gv->cols[c].data) && is_here(gv->cols[c].nulls);
    }
    return fine;
}

/* The same once more; NULL: memory of the host is refused. */
static struct gpu_var *record_copy(const struct gpu_var *from) {
    struct gpu_var *gv = mem_alloc(from->card->mem, from->bytes);
    if (gv) {
        memcpy(gv, from, (size_t)from->bytes);
        gv->cols = (struct gpu_col *)(void *)(gv + 1);
    }
    return gv;
}

static void record_free(struct gpu_var *gv) {
    if (gv) {
        mem_free(gv->card->mem, gv, gv->bytes);
    }
}

/* What was added to a record while it was lent is its own. */
static void free_added(struct gpu_card *card, struct gpu_block *block, const struct gpu_block *lent) {
    if (block != lent) {
        gpu_heap_free(card, block);
    }
}

void gpu_var_give_back(struct gpu_var *gv) {
    struct gpu_var *lender = gv->lender;
    struct gpu_block **own[OWN_BLOCKS], **lent[OWN_BLOCKS];
    own_blocks(gv, own);
    own_blocks(lender, lent);
    for (i32 i = 0; i < OWN_BLOCKS; i++) {
        free_added(gv->card, *own[i], *lent[i]);
        *own[i] = NULL;
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        free_added(gv->card, gv->cols[c].data, lender->cols[c].data);
        free_added(gv->card, gv->cols[c].nulls, lender->cols[c].nulls);
        gv->cols[c] = (struct gpu_col){0};
    }
    kept_trie_release(gv->kept);
    gv->kept = NULL;
}

/* --- the end of one --- */

static void free_trie(struct card_trie *trie) {
    struct gpu_card *card = trie->card;
    if (trie->rows) {
        gpu_var_release(trie->rows);
        gpu_var_release(trie->index);
    }
    gpu_heap_free(card, trie->graph.to);
    gpu_heap_free(card, trie->graph.offsets);
    trie_fini(&trie->in_boxes);
    mem_free(card->mem, trie, (i64)sizeof *trie);
}

static void free_far(struct kept_far *far) {
    free_trie((struct card_trie *)(void *)far);
}

/* --- room --- */

i64 gpu_tries_drop(struct gpu_card *card) {
    struct tries *tries = atomic_load(&card->tries);
    return tries ? tries_drop_far(tries, card->space) : 0;
}

i64 gpu_tries_idle(struct gpu_card *card) {
    struct tries *tries = atomic_load(&card->tries);
    i64 all = 0, idle = 0;
    if (tries) {
        tries_far_bytes(tries, card->space, &all, &idle);
    }
    return idle;
}

/* Of what all may have so many bytes more. */
static bool make_room(struct gpu_card *card, struct exec *x, i64 bytes) {
    i64 most = card->heap.budget_bytes / KEPT_SHARE, all = 0, idle = 0;
    for (bool dropped = true; dropped && bytes <= most;) {
        tries_far_bytes(x->tries, card->space, &all, &idle);
        if (all + bytes <= most) {
            return true;
        }
        dropped = tries_drop_far(x->tries, card->space) > 0;
    }
    return false;
}

static struct card_trie *trie_new(struct gpu_card *card, struct exec *x, i64 bytes, i64 rows) {
    struct card_trie *trie =
        make_room(card, x, bytes) ? mem_alloc(card->mem, (i64)sizeof *trie) : NULL;
    if (trie) {
        *trie = (struct card_trie){.far = {.space = card->space, .bytes = bytes, .rows = rows, .free = free_far},
                                   .card = card,
                                   .epoch = card->epoch};
        atomic_store(&card->tries, x->tries);
    }
    return trie;
}

/* --- keeping --- */

/* The records of the execution become lent ones. */
static void keep_rows(struct gpu *g, struct exec *x, const struct trie_chain *chain) {
    struct gpu_var *rows = x->vars[chain->rows].copy, *index = x->vars[chain->index].copy;
    if (!may_keep(g->card, rows) || !may_keep(g->card, index) || x->vars[chain->rows].rows != rows->rows) {
        return;
    }
    struct card_trie *trie = trie_new(g->card, x, var_bytes(rows) + var_bytes(index), rows->rows);
    if (!trie) {
        return;
    }
    trie->rows = record_copy(rows);
    trie->index = record_copy(index);
    struct kept_trie *kept =
        trie->rows && trie->index ? tries_keep_far(x, chain, &trie->far, 2) : NULL;
    if (!kept) { /* the blocks are still the execution's */
        record_free(trie->rows);
        record_free(trie->index);
        mem_free(g->card->mem, trie, (i64)sizeof *trie);
        return;
    }
    rows->kept = index->kept = kept;
    rows->lender = trie->rows;
    index->lender = trie->index;
}

void gpu_keep(struct device *dev, struct exec *x, const struct trie_chain *chain) {
    struct gpu *g = dev->self;
    if (!x->tries || g->card->broken) {
        return;
    }
    if (chain->index == NO_VAR) { /* the step that makes a graph may keep it */
        tries_keep(x, chain);
        return;
    }
    keep_rows(g, x, chain);
}

bool gpu_keep_graph(struct gpu *g, struct exec *x, u32 var, const struct card_graph *graph) {
    struct variable *v = &x->vars[var];
    i64 bytes = block_bytes(graph->to) + block_bytes(graph->offsets);
    bool here = is_here(graph->to) && is_here(graph->offsets);
    struct card_trie *trie = v->chain && x->tries && !v->kept && here && !g->card->broken
                                 ? trie_new(g->card, x, bytes, v->rows)
                                 : NULL;
    if (!trie) {
        return false;
    }
    trie->graph = *graph;
    struct kept_trie *kept = tries_keep_far(x, v->chain, &trie->far, 1);
    if (!kept) {
        mem_free(g->card->mem, trie, (i64)sizeof *trie);
        return false;
    }
    v->kept = kept;
    return true;
}

void gpu_keep_boxes(struct gpu *g, struct exec *x, u32 var, const struct trie *made) {
    struct variable *v = &x->vars[var];
    struct gpu_card *card = g->card;
    bool may = v->chain && x->tries && !v->kept && !card->broken && made->by_card && !boxes_forced(x);
    struct card_trie *trie = may ? mem_alloc(card->mem, (i64)sizeof *trie) : NULL;
    if (!trie) {
        return;
    }
    i64 bytes = gpu_host_size(made->starts_buffer) + gpu_host_size(made->to_buffer);
    *trie = (struct card_trie){
        .far = {.space = IN_BOXES, .bytes = bytes, .in_host = 1, .rows = v->rows, .free = free_far},
        .card = card,
        .in_boxes = *made};
    v->kept = tries_keep_far(x, v->chain, &trie->far, 1);
    if (!v->kept) {
        mem_free(card->mem, trie, (i64)sizeof *trie);
        return;
    }
    (void)gpu_host_own(buffer_retain(made->starts_buffer), card->mem);
    (void)gpu_host_own(buffer_retain(made->to_buffer), card->mem);
}

/* --- taking --- */

/* Whether so many edges have no room on the card, so that they would be counted in boxes. */
static bool is_large(struct gpu *g, i64 rows) {
    i64 room = gpu_heap_available(g->card) + gpu_cache_evictable(g) + gpu_tries_idle(g->card);
    return rows > room / GRAPH_BYTES;
}

static bool take_boxes(struct gpu *g, struct exec *x, const struct trie_chain *chain) {
    struct kept_trie *kept = tries_take_far(x, chain, IN_BOXES, 1);
    if (!kept) {
        return false;
    }
    const struct card_trie *trie = (const struct card_trie *)(const void *)kept_trie_far(kept);
    if (!is_large(g, trie->far.rows)) {
        kept_trie_release(kept);
        return false;
    }
    x->vars[chain->rows].kept = kept;
    x->vars[chain->rows].rows = trie->far.rows;
    return true;
}

static void lend(struct device *dev, struct variable *v, struct gpu_var *gv, struct kept_trie *kept,
                 struct gpu_var *lender) {
    variable_drop_copy(v);
    gv->kept = kept;
    gv->lender = lender;
    v->copy = gv;
    v->copy_release = gpu_var_release;
    v->copy_space = dev->space;
    v->rows = lender->rows;
    v->on_host = 0;
}

static bool lend_rows(struct device *dev, struct exec *x, const struct trie_chain *chain,
                      struct card_trie *trie, struct kept_trie *kept) {
    struct gpu_var *rows = record_copy(trie->rows);
    struct gpu_var *index = rows ? record_copy(trie->index) : NULL;
    if (!index) {
        record_free(rows);
        return false;
    }
    lend(dev, &x->vars[chain->rows], rows, kept, trie->rows);
    lend(dev, &x->vars[chain->index], index, kept, trie->index);
    x->vars[chain->index].rows = trie->far.rows;
    return true;
}

bool gpu_take_kept(struct device *dev, struct exec *x, const struct trie_chain *chain) {
    struct gpu *g = dev->self;
    bool graph = chain->index == NO_VAR;
    i32 users = graph ? 1 : 2;
    if (graph && (cliques_naive() || boxes_forced(x))) {
        return false;
    }
    struct kept_trie *kept = tries_take_far(x, chain, dev->space, users);
    if (!kept) {
        return graph && !g->card->broken && take_boxes(g, x, chain);
    }
    struct card_trie *trie = (struct card_trie *)(void *)kept_trie_far(kept);
    bool there = trie->epoch == g->card->epoch && !g->card->broken;
    if (!there) {
        tries_forget(kept);
    }
    if (there && graph) {
        x->vars[chain->rows].kept = kept;
        x->vars[chain->rows].rows = trie->far.rows;
        return true;
    }
    if (there && lend_rows(dev, x, chain, trie, kept)) {
        return true;
    }
    for (i32 i = 0; i < users; i++) {
        kept_trie_release(kept);
    }
    return false;
}

const struct trie *gpu_kept_boxes(const struct variable *v) {
    const struct card_trie *trie = (const struct card_trie *)(const void *)kept_trie_far(v->kept);
    return trie && trie->far.in_host ? &trie->in_boxes : NULL;
}

const struct card_graph *gpu_kept_graph(const struct gpu *g, const struct variable *v) {
    const struct card_trie *trie = (const struct card_trie *)(const void *)kept_trie_far(v->kept);
    return trie && trie->far.space == g->device.space && trie->epoch == g->card->epoch ? &trie->graph : NULL;
}

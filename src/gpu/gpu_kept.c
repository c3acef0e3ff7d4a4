/* gpu_kept.c: what a pipeline needs to run that is the same every time, prepared once and kept.
 *
 * A `gpu_step` is a pipeline of a program: its plan, and the functions that were woven of it. A
 * `gpu_scan` is what such a step makes of one version of its table and of the literals that prune
 * it: parts, layouts, batches, and on the card the block that says where every segment is. A step
 * that runs again finds both and prepares nothing, however many tablets there are.
 *
 * Programs and versions are known by numbers that are never used again, so nothing here is ever
 * wrong, only useless. A scan holds no reference to tablets. Its segments may have been evicted:
 * the cache counts what it drops, and after a drop a scan is compared with it before it is used.
 * While a step uses a scan its segments stay: whoever evicts asks here first. Kept things take a
 * small share of the host's memory, least recently used first out, and none of the card's that a
 * step wants for itself. The card's lock guards all of it; who uses something is counted in it. */
#include "gpu/gpu_job.h"

#define SCANS_MOST 8 /* of a step */
#define SHARE_OF_MEMORY 64
#define KEPT_MOST_BYTES (64LL << 20)

void gpu_kept_init(struct gpu_card *card) {
    memory_init(&card->kept.mem, card->mem, 0, card->mem->setting);
}

/* --- scans --- */

wf_status gpu_scan_new(struct gpu_card *card, struct sv key, struct gpu_scan **out,
                       struct error *err) {
    struct gpu_scan *scan = mem_alloc(&card->kept.mem, (i64)sizeof *scan);
    if (!scan) {
        return memory_refused(card->mem, err, (i64)sizeof *scan);
    }
    memset(scan, 0, sizeof *scan);
    arena_init(&scan->arena, &card->kept.mem);
    scan->key = arena_sv(&scan->arena, key);
    *out = scan;
    return ERR_OK;
}

void gpu_scan_free(struct gpu_card *card, struct gpu_scan *scan) {
    gpu_heap_free(card, scan->fixed);
    gpu_heap_free(card, scan->gone);
    gpu_str_drop(card, &scan->texts);
    for (u32 c = 0; scan->dict_views && c < scan->col_count; c++) {
        gpu_heap_free(card, scan->dict_views[c].block);
    }
    arena_fini(&scan->arena);
    mem_free(&card->kept.mem, scan, (i64)sizeof *scan);
}

/* Whether its segments are where they were, and no copy of them is still under way. */
static bool is_sound(struct gpu *g, struct gpu_scan *scan) {
    struct gpu_card *card = g->card;
    bool sound = true;
    for (i64 i = 0; sound && scan->checked_no != card->cache.drop_no && i < scan->segs.count; i++) {
        sound = gpu_cache_holds(g, &scan->segs.items[i]);
    }
    scan->checked_no = sound ? card->cache.drop_no : ~0ULL;
    return sound;
}

static void unlink_scan(struct gpu_card *card, struct gpu_scan *scan) {
    struct gpu_scan **at = &scan->step->scans;
    while (*at != scan) {
        at = &(*at)->next;
    }
    *at = scan->next;
    scan->next = NULL;
    *(scan->before ? &scan->before->after : &card->kept.scans) = scan->after;
    if (scan->after) {
        scan->after->before = scan->before;
    }
}

static void link_scan(struct gpu_card *card, struct gpu_step *step, struct gpu_scan *scan) {
    scan->step = step;
    scan->next = step->scans;
    step->scans = scan;
    scan->before = NULL;
    scan->after = card->kept.scans;
    if (scan->after) {
        scan->after->before = scan;
    }
    card->kept.scans = scan;
}

struct gpu_scan *gpu_scan_take(struct gpu *g, struct gpu_step *step, struct sv key) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    struct gpu_scan *scan = step->scans;
    while (scan && (scan->key.len != key.len || memcmp(scan->key.ptr, key.ptr, (size_t)key.len))) {
        scan = scan->next;
    }
    if (scan && !is_sound(g, scan)) {
        if (!scan->users) {
            unlink_scan(card, scan);
            gpu_scan_free(card, scan);
        }
        scan = NULL;
    }
    if (scan) {
        unlink_scan(card, scan);
        link_scan(card, step, scan);
        card->kept.found_count++;
        scan->users++;
        scan->use_no = g->run_no;
        scan->used_by[g->number] = g->run_no;
    }
    mutex_unlock(&card->lock);
    return scan;
}

void gpu_scan_give(struct gpu_card *card, struct gpu_scan *scan) {
    mutex_lock(&card->lock);
    scan->users--;
    mutex_unlock(&card->lock);
}

void gpu_scan_keep(struct gpu *g, struct gpu_step *step, struct gpu_scan *scan) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    i64 count = 0;
    for (struct gpu_scan *other = step->scans, *next; other; other = next) {
        next = other->next;
        bool same = other->key.len == scan->key.len &&
                    !memcmp(other->key.ptr, scan->key.ptr, (size_t)scan->key.len);
        if (!other->users && (same || ++count >= SCANS_MOST)) {
            unlink_scan(card, other);
            gpu_scan_free(card, other);
        }
    }
    /* Its segments were used by this step, which is still inside: none has been dropped. */
    scan->checked_no = card->cache.drop_no;
    scan->use_no = g->run_no;
    link_scan(card, step, scan);
    mutex_unlock(&card->lock);
}

/* --- steps --- */

static struct gpu_step **slot_of(struct gpu_card *card, u64 program_id,
                                 const struct pipeline *pipe) {
    u64 hash = hash_u64(program_id * 31 + (u64)(size_t)pipe);
    return &card->kept.slots[hash % COUNT_OF(card->kept.slots)];
}

static struct gpu_step *find_step(struct gpu_card *card, u64 program_id,
                                  const struct pipeline *pipe, bool counts) {
    struct gpu_step *step = *slot_of(card, program_id, pipe);
    while (step &&
           (step->program_id != program_id || step->plan.pipe != pipe || step->counts != counts)) {
        step = step->chain;
    }
    return step;
}

static void order_remove(struct gpu_kept *kept, struct gpu_step *step) {
    *(step->newer ? &step->newer->older : &kept->newest) = step->older;
    *(step->older ? &step->older->newer : &kept->oldest) = step->newer;
}

static void order_add(struct gpu_kept *kept, struct gpu_step *step) {
    step->newer = NULL;
    step->older = kept->newest;
    *(kept->newest ? &kept->newest->newer : &kept->oldest) = step;
    kept->newest = step;
}

static void step_free(struct gpu_card *card, struct gpu_step *step) {
    while (step->scans) {
        struct gpu_scan *scan = step->scans;
        ASSERT(!scan->users);
        unlink_scan(card, scan);
        gpu_scan_free(card, scan);
    }
    arena_fini(&step->arena);
    mem_free(&card->kept.mem, step, (i64)sizeof *step);
}

/* From here on nobody finds it; the last user frees it. */
static void step_forget(struct gpu_card *card, struct gpu_step *step) {
    struct gpu_step **at = slot_of(card, step->program_id, step->plan.pipe);
    while (*at != step) {
        at = &(*at)->chain;
    }
    *at = step->chain;
    order_remove(&card->kept, step);
    step->is_kept = 0;
    if (!step->users) {
        step_free(card, step);
    }
}

static i64 most_bytes(const struct gpu_card *card) {
    i64 share = card->mem->limit_bytes / SHARE_OF_MEMORY;
    return share ? MIN_OF(share, KEPT_MOST_BYTES) : KEPT_MOST_BYTES;
}

/* Forgets steps that nobody uses, the one used longest ago first, until the rest fits. */
static void trim(struct gpu_card *card, i64 bytes) {
    struct gpu_step *step = card->kept.oldest;
    while (step && atomic_load(&card->kept.mem.used_bytes) > bytes) {
        struct gpu_step *newer = step->newer;
        if (!step->users) {
            step_forget(card, step);
        }
        step = newer;
    }
}

/* Registers of so many rows that the tile of the virtual machine has no room for them. */
static bool is_wide(const struct gpu_card *card, const struct gpu_plan *plan) {
    i64 beside = 4096 + 2 * plan->tile_rows; /* a kernel's own arrays, and where rows go */
    return plan->slot_bytes + beside > card->shared_max;
}

static FALLIBLE make_step(struct gpu_card *card, struct exec *x, const struct pipeline *pipe,
                          struct gpu_step **out) {
    struct gpu_step *step = mem_alloc(&card->kept.mem, (i64)sizeof *step);
    if (!step) {
        return memory_refused(card->mem, x->err, (i64)sizeof *step);
    }
    memset(step, 0, sizeof *step);
    arena_init(&step->arena, &card->kept.mem);
    step->program_id = x->program->id;
    step->counts = x->counts_rows;
    step->users = 1;
    step->refusal = gpu_plan_make(&step->arena, x->program, pipe, x->counts_rows, &step->plan);
    step->plan.pipe = pipe; /* a refused plan names it, too */
    if (!step->refusal && !step->plan.woven_op && is_wide(card, &step->plan)) {
        step->plan.woven_op = "so wide a pipeline";
    }
    wf_status status = arena_check(&step->arena, x->err);
    if (status) {
        step_free(card, step);
        return status;
    }
    *out = step;
    return ERR_OK;
}

/* Another thread may have made the same meanwhile; then this one is used once. */
static void add_step(struct gpu_card *card, struct gpu_step *step) {
    mutex_lock(&card->lock);
    if (!find_step(card, step->program_id, step->plan.pipe, step->counts)) {
        struct gpu_step **slot = slot_of(card, step->program_id, step->plan.pipe);
        step->chain = *slot;
        *slot = step;
        order_add(&card->kept, step);
        step->is_kept = 1;
    }
    mutex_unlock(&card->lock);
}

wf_status gpu_step_take(struct gpu_card *card, struct exec *x, const struct pipeline *pipe,
                        struct gpu_step **out) {
    u64 id = x->program->id;
    mutex_lock(&card->lock);
    struct gpu_step *step = id ? find_step(card, id, pipe, x->counts_rows) : NULL;
    if (step) {
        step->users++;
        order_remove(&card->kept, step);
        order_add(&card->kept, step);
    }
    mutex_unlock(&card->lock);
    if (!step) {
        TRY(make_step(card, x, pipe, &step));
        if (id) {
            add_step(card, step);
        }
    }
    *out = step;
    return ERR_OK;
}

void gpu_step_give(struct gpu_card *card, struct gpu_step *step) {
    mutex_lock(&card->lock);
    step->users--;
    if (!step->users && !step->is_kept) {
        step_free(card, step);
    }
    trim(card, most_bytes(card));
    mutex_unlock(&card->lock);
}

/* --- functions --- */

static bool same_weave(const struct weave *a, const struct weave *b) {
    size_t first = offsetof(struct weave, aggs);
    size_t bytes = offsetof(struct weave, rows_per_thread) - first;
    u32 cols = a->plan->pipe->source.col_count;
    i64 indexes = a->plan->indexes.count;
    bool cells = true;
    for (u32 k = 0; k < PIPE_AGGS; k++) {
        const struct agg_cells *x = a->cells[k], *y = b->cells[k];
        cells = cells && (x && y ? !memcmp(x, y, sizeof *x) : x == y);
    }
    return cells && !memcmp((const u8 *)a + first, (const u8 *)b + first, bytes) &&
           (!cols || !memcmp(a->cols, b->cols, cols * sizeof *a->cols)) &&
           (!indexes || !memcmp(a->indexes, b->indexes, (size_t)indexes * sizeof *a->indexes));
}

void *gpu_step_woven(struct gpu_card *card, struct gpu_step *step, struct weave *weave) {
    mutex_lock(&card->lock);
    const struct gpu_woven_form *form = step->woven;
    while (form && !same_weave(&form->weave, weave)) {
        form = form->next;
    }
    mutex_unlock(&card->lock);
    if (!form) {
        return NULL;
    }
    weave->rows_per_thread = form->weave.rows_per_thread;
    weave->shared_bytes = form->weave.shared_bytes;
    return form->function;
}

void gpu_step_keep_woven(struct gpu_card *card, struct gpu_step *step, const struct weave *weave,
                         void *function) {
    u32 cols = step->plan.pipe->source.col_count;
    i64 indexes = step->plan.indexes.count;
    mutex_lock(&card->lock);
    struct gpu_woven_form *form = arena_try(&step->arena, (i64)sizeof *form);
    struct weave_col *own_cols = arena_try(&step->arena, (cols + 1) * (i64)sizeof *own_cols);
    struct weave_index *own = arena_try(&step->arena, (indexes + 1) * (i64)sizeof *own);
    struct agg_cells *cells[PIPE_AGGS];
    bool all = form && own_cols && own;
    for (u32 k = 0; k < PIPE_AGGS; k++) {
        cells[k] = weave->cells[k] ? arena_try(&step->arena, (i64)sizeof *cells[k]) : NULL;
        all = all && !cells[k] == !weave->cells[k];
    }
    if (all) { /* else it is looked for again the next time */
        memcpy(own_cols, weave->cols, cols * sizeof *own_cols);
        memcpy(own, weave->indexes, (size_t)indexes * sizeof *own);
        form->weave = *weave;
        form->weave.plan = &step->plan;
        form->weave.cols = own_cols;
        form->weave.indexes = own;
        for (u32 k = 0; k < PIPE_AGGS; k++) {
            if (cells[k]) {
                memcpy(cells[k], weave->cells[k], sizeof *cells[k]);
            }
            form->weave.cells[k] = cells[k];
        }
        form->function = function;
        form->next = step->woven;
        step->woven = form;
    }
    mutex_unlock(&card->lock);
}

/* --- making room --- */

void gpu_kept_settle(struct gpu_card *card) {
    u64 settled = card->kept.settled_no;
    for (struct gpu_scan *scan = card->kept.scans; scan; scan = scan->after) {
        for (i64 i = 0; (scan->users || scan->use_no > settled) && i < scan->segs.count; i++) {
            gpu_cache_touch(card, &scan->segs.items[i], scan->used_by);
        }
    }
    card->kept.settled_no = card->run_count;
}

bool gpu_kept_drop_scans(struct gpu_card *card) {
    bool dropped = false;
    mutex_lock(&card->lock);
    for (struct gpu_scan *scan = card->kept.scans, *next; scan; scan = next) {
        next = scan->after;
        if (!scan->users) {
            unlink_scan(card, scan);
            gpu_scan_free(card, scan);
            dropped = true;
        }
    }
    mutex_unlock(&card->lock);
    return dropped;
}

void gpu_kept_fini(struct gpu_card *card) {
    while (card->kept.oldest) {
        step_forget(card, card->kept.oldest);
    }
}

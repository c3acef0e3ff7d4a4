/* gpu_split.c: STEP_SPLIT on the card: rows of a variable brought together by key.
 *
 * Who looks keys up in a table that is larger than the second-level cache, or keeps groups in one,
 * fetches a sector from memory for every row, and writes it back where the table is being made. Rows
 * that come in the order of the table's places find it in the cache. So both sides of a large join,
 * and the inputs of a large aggregation, are split by the upper bits of their places, in one pass
 * after one read that counts. Nobody relies on it: where the table turns out to be small, or the card
 * has no room for a second copy of the rows, they are left as they are. The variable's columns are
 * replaced when everything has worked. See decisions 0036, 0039.
 *
 * Where a join's table and the rows it leads to have no room at once, both sides are split by other
 * bits of the key's hash, into as many parts as it takes, and remember where these begin: the join is
 * made part by part (gpu_parts.c). Then the rows may go through memory of the host. */
#include "gpu/gpu_order.h"

enum {
    CACHE_PART = 8, /* a part of the table is at most so much of the cache: blocks work on several */
    PARTS_LEAST_BITS = 4,
    PARTS_MOST_BITS = 9,
    KEYS_PER_ROW = 256, /* more: an index is hashed */
    KEYS_PER_GROUP = 4,
    SET_KEYS_LEAST = 1 << 20,
    ROOM_SHIFT = 40, /* of a hash: tables number their slots by lower bits */
    ROOM_PART = 16   /* a part is so much of the room there is: rows and what becomes of them want some, too */
};
_Static_assert(1 << PARTS_MOST_BITS == SPLIT_PARTS_MOST, "a counter for every part");

struct splitter {
    struct order_step o;
    struct exec *x;
    const struct step *step;
    struct gpu_var *gv;
    struct ksplit_rows args;
    i64 table_bytes; /* that are visited: of the table, and of the rows it leads to */
    i32 place_bits;
    struct gpu_col *made;
    struct gpu_parts parts; /* of a join that has no room at once */
};

static i32 bits_of(u64 n) { /* numbers below n */
    i32 bits = 0;
    while (bits < 64 && n > 1ULL << bits) {
        bits++;
    }
    return bits;
}

static i64 row_bytes(const struct exec *x, u32 var) {
    const struct var *def = &x->program->vars[var];
    i64 bytes = 0;
    for (u32 c = 0; c < def->col_count; c++) {
        bytes += kind_bytes[def->kinds[c]];
    }
    return bytes;
}

/* A table by key, of `bytes` for each, or a hash table with so many slots. */
static void by_key(struct splitter *s, u64 span, i64 bytes) {
    s->args.by = SPLIT_BY_KEY;
    s->args.key_lo = (i64)s->step->key_range.lo;
    s->place_bits = bits_of(span);
    s->table_bytes = bytes;
}
static void by_hash(struct splitter *s, enum split_place by, i64 rows, i64 slot_bytes) {
    s->args.by = by;
    s->args.key_lo = by == SPLIT_BY_PAIR ? (i64)s->step->key_range.lo : 0;
    s->place_bits = bits_of(2 * (u64)MAX_OF(rows, 1));
    s->table_bytes = slot_bytes << s->place_bits;
}

/* The table as it is expected to be made (gpu_build.c, gpu_agg.c). */
static void foresee_table(struct splitter *s) {
    const struct step *step = s->step;
    struct range range = step->key_range;
    i128 span = range.hi - range.lo + 1;
    bool known = span > 0 && range.lo >= I64_MIN && span <= I64_MAX;
    i64 rows = step->groups ? MIN_OF(step->groups, s->args.rows) : s->args.rows;
    i128 most = step->groups ? (i128)KEYS_PER_GROUP * rows
                             : MAX_OF((i128)KEYS_PER_ROW * rows, (i128)SET_KEYS_LEAST);
    i64 word_bytes = 8 * (1 + (i64)step->word_count);
    if (known && span <= most) {
        i64 direct = step->groups ? (i64)span * word_bytes : MIN_OF((i64)span, rows + (i64)span / 16) * 4;
        by_key(s, (u64)span, direct);
    } else if (step->groups) {
        by_hash(s, SPLIT_BY_HASH, rows, word_bytes);
    } else if (known && span <= (i128)1 << 32) {
        by_hash(s, SPLIT_BY_PAIR, rows, 8);
    } else {
        by_hash(s, SPLIT_BY_HASH, rows, 16);
    }
    s->table_bytes += step->groups ? 0 : rows * (row_bytes(s->x, step->src) - 8);
}

/* That of an index that is there. */
static void see_table(struct splitter *s, u32 index) {
    const struct variable *v = &s->x->vars[index];
    const struct gpu_var *gv = v->copy;
    u32 rows_var = s->x->program->vars[index].rows_var;
    if (!gv || v->copy_space != s->o.g->device.space) {
        s->table_bytes = 0;
        return;
    }
    const struct kindex *at = &gv->index;
    bool hashed = at->form == KINDEX_PAIRS || at->form == KINDEX_RUNS;
    s->args.by = at->form == KINDEX_PAIRS ? SPLIT_BY_PAIR : hashed ? SPLIT_BY_HASH : SPLIT_BY_KEY;
    s->args.key_lo = at->key_lo;
    s->place_bits = bits_of(at->slot_count);
    s->table_bytes = gpu_index_bytes(gv) + gv->rows * (row_bytes(s->x, rows_var) - 8);
}

/* Those of the index, or how many a table that is to be made needs for want of room; 0: it has room. */
static u32 room_parts(const struct splitter *s) {
    struct gpu *g = s->o.g;
    const struct variable *v = &s->x->vars[s->step->dst2 != NO_VAR ? s->step->dst2 : s->step->src];
    const struct gpu_var *gv = v->copy;
    u32 count = 2;
    bool alone = setting_device(s->x->settings) != NULL; /* else others may read the index, too */
    if (!gv || v->copy_space != g->device.space || s->step->groups || !alone) {
        return 0;
    }
    if (s->step->dst2 != NO_VAR) {
        return gv->parts.count;
    }
    i64 room = gpu_heap_available(g->card) + gpu_cache_evictable(g);
    for (u32 c = 0; c < gv->col_count; c++) { /* these rows have room already */
        const struct gpu_block *block = gv->cols[c].data;
        room += block && !block->host ? block->bytes : 0;
    }
    if (s->table_bytes <= room / 4 * 3) {
        return 0;
    }
    while (count < SPLIT_PARTS_MOST && s->table_bytes / count > room / ROOM_PART) {
        count *= 2;
    }
    return count;
}

/* How many parts, 0: the rows stay as they are. */
static u32 choose_parts(struct splitter *s) {
    i64 cache = MAX_OF(s->o.g->card->l2_bytes, 1);
    bool always = s->x->settings->partition == PARTITION_ON;
    i32 bits = PARTS_LEAST_BITS;
    if (s->step->dst2 != NO_VAR) {
        see_table(s, s->step->dst2);
    } else {
        foresee_table(s);
    }
    u32 count = room_parts(s);
    if (count) {
        s->parts = (struct gpu_parts){.count = count, .index = s->step->dst2};
        s->args.by = SPLIT_BY_HASH;
        s->args.key_lo = 0;
        s->args.shift = ROOM_SHIFT;
        s->args.mask = count - 1;
        return count;
    }
    if (s->args.rows < 2 || s->place_bits == 0 || (!always && s->table_bytes <= cache)) {
        return 0;
    }
    while (bits < PARTS_MOST_BITS && s->table_bytes >> bits > cache / CACHE_PART) {
        bits++;
    }
    bits = MIN_OF(bits, s->place_bits);
    s->args.shift = (u32)(s->place_bits - bits);
    s->args.mask = (1u << bits) - 1;
    return 1u << bits;
}

/* Whether all columns are on the card, and there is room for them twice. */
static bool can_move(const struct splitter *s) {
    const struct variable *v = &s->x->vars[s->step->src];
    const struct gpu_var *gv = v->copy;
    i64 bytes = 0;
    if (!gv || v->copy_space != s->o.g->device.space || gv->epoch != s->o.g->card->epoch) {
        return false;
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        i64 width = kind_bytes[s->x->program->vars[s->step->src].kinds[c]];
        if (!gv->cols[c].addr) {
            return false;
        }
        bytes += (width + (gv->cols[c].nulls_addr ? 1 : 0)) * s->args.rows + GPU_ALIGN;
    }
    bool spills = s->parts.count && s->o.g->tight >= TIGHT_SPILL;
    return spills || bytes < gpu_heap_available(s->o.g->card);
}

static FALLIBLE new_columns(struct splitter *s, struct ksplit_col *cols) {
    const struct var *def = &s->x->program->vars[s->step->src];
    i64 n = s->args.rows;
    u32 count = 0;
    for (u32 c = 0; c < s->gv->col_count; c++) {
        const struct gpu_col *from = &s->gv->cols[c];
        struct gpu_col *to = &s->made[c];
        i64 width = kind_bytes[def->kinds[c]];
        TRY(gpu_alloc(s->o.g, n * width, &to->data, s->x->err));
        to->addr = to->data->addr;
        cols[count++] =
            (struct ksplit_col){DEV(const u8 *, from->addr), DEV(u8 *, to->addr), (u64)width};
        if (from->nulls_addr) {
            TRY(gpu_alloc(s->o.g, n, &to->nulls, s->x->err));
            to->nulls_addr = to->nulls->addr;
            cols[count++] = (struct ksplit_col){DEV(const u8 *, from->nulls_addr),
                                                DEV(u8 *, to->nulls_addr), 1};
        }
        s->o.metric->bytes_read += n * width;
        s->o.metric->bytes_written += n * width;
    }
    s->args.col_count = count;
    return ERR_OK;
}

static FALLIBLE move_rows(void *arg) {
    struct splitter *s = arg;
    struct gpu *g = s->o.g;
    struct error *err = s->x->err;
    struct ksplit_col *cols = NEW_ARRAY(s->x->arena, struct ksplit_col, 2 * s->gv->col_count + 1);
    i64 tiles = (s->args.rows + SPLIT_ROWS_TILE - 1) / SPLIT_ROWS_TILE;
    u64 cols_addr = 0;
    u64 cursors = 0;
    TRY(arena_check(s->x->arena, err));
    TRY(new_columns(s, cols));
    i64 col_bytes = s->args.col_count * (i64)sizeof *cols;
    TRY(order_block(&s->o, col_bytes, &cols_addr));
    TRY(order_block(&s->o, SPLIT_PARTS_MOST * 8, &cursors));
    TRY(order_send(&s->o, cols_addr, cols, col_bytes));
    CU(g->api->set_bytes(cursors, 0, SPLIT_PARTS_MOST * 8, g->streams[0]));
    s->args.key = DEV(const i64 *, s->gv->cols[s->step->col].addr);
    s->args.cols = DEV(const struct ksplit_col *, cols_addr);
    s->args.cursors = DEV(u64 *, cursors);
    s->o.metric->bytes_read += s->args.rows * 8;
    TRY(order_start(&s->o, KERNEL_SPLIT_ROWS_COUNT, MIN_OF(tiles, g->card->sm_count * 4LL),
                    SPLIT_ROWS_THREADS, &s->args));
    TRY(order_start(&s->o, KERNEL_SPLIT_ROWS_PLACES, 1, SPLIT_ROWS_THREADS, &s->args));
    TRY(order_start(&s->o, KERNEL_SPLIT_ROWS, tiles, SPLIT_ROWS_THREADS, &s->args));
    if (!s->parts.count) {
        return ERR_OK;
    }
    u64 *starts = NEW_ARRAY(s->x->arena, u64, s->parts.count + 1);
    TRY(arena_check(s->x->arena, err));
    s->parts.starts = starts; /* each ends where the next one starts */
    return order_receive(&s->o, starts + 1, cursors, s->parts.count * 8);
}

static void replace(struct splitter *s) {
    gpu_var_replace(s->o.g->card, &s->x->vars[s->step->src], s->gv, s->made);
    s->gv->capacity = s->args.rows;
    s->gv->parts = s->parts;
}

/* Whether the step may be tried again, with memory of the host. */
static bool lets_spill(const struct splitter *s) {
    const struct variable *v = &s->x->vars[s->step->src];
    const struct gpu *g = s->o.g;
    return s->parts.count && v->copy && g->may_spill && g->tight < TIGHT_SPILL;
}

wf_status gpu_run_split(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct step_metric *metric = &x->metrics[step_no];
    struct splitter s = {.o = {.g = g, .x = x, .metric = metric}, .x = x, .step = step};
    s.args.rows = x->vars[step->src].rows;
    metric->device = "gpu";
    metric->rows_in += s.args.rows;
    metric->rows_out += s.args.rows;
    u32 parts = choose_parts(&s);
    bool moves = parts && can_move(&s);
    if (s.parts.count && !moves && lets_spill(&s)) {
        FAIL(x->err, DEVICE_MEMORY, "out of GPU memory: no room to split %lld rows", s.args.rows);
    }
    if (!moves) {
        metric->how = parts ? "left as they are: no room" : "left as they are: the cache holds the table";
        return ERR_OK;
    }
    s.gv = x->vars[step->src].copy;
    s.made = NEW_ARRAY(x->arena, struct gpu_col, s.gv->col_count + 1);
    TRY(arena_check(x->arena, x->err));
    wf_status status = order_timed(&s.o, move_rows, &s);
    order_end(&s.o, status);
    if (status) {
        for (u32 c = 0; c < s.gv->col_count; c++) {
            gpu_heap_free(g->card, s.made[c].data);
            gpu_heap_free(g->card, s.made[c].nulls);
        }
        if (status != ERR_DEVICE_MEMORY || g->card->broken || lets_spill(&s)) {
            return status;
        }
        error_reset(x->err);
        metric->how = "left as they are: no room";
        return ERR_OK;
    }
    replace(&s);
    metric->how = arena_printf(x->arena, s.parts.count ? "%u parts: the table has no room at once" : "%u parts",
                               parts);
    return ERR_OK;
}

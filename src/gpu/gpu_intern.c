/* gpu_intern.c: interners on the card: tables that number strings or pairs (kernels/intern.h).
 *
 * Numbers mean the same on both sides: an entry's number is its place in the order of adding. Going
 * to the card, the host's entries are copied and a kernel files them. Coming back, when a host step
 * or the answer asks, entries that the host does not have are added there in their order. A step
 * that runs out of room is run again with a larger table: what it added until then are keys of its
 * rows and stays.
 */
#include "gpu/gpu_int.h"

enum { BLOCK_SLOTS, BLOCK_ENTRIES, BLOCK_HEAP, BLOCK_COUNTS };
#define ENTRIES_FIRST (1LL << 17)
#define ENTRIES_FIRST_SIMT 32
#define ENTRIES_MOST (1LL << 30)
#define ENTRY_BYTES ((i64)(INTERN_WORDS * 8))
#define TEXT_BYTES 24 /* room per entry at first */
#define SHOWN_BYTES 64 /* the same of one that is shown */

static FALLIBLE open_host(struct exec *x, u32 var, bool is_text, i64 *out_len) {
    struct variable *v = &x->vars[var];
    if (is_text && !v->dict) {
        v->dict = dict_open(x->mem);
    } else if (!is_text && !v->pairs) {
        v->pairs = pair_map_open(x->mem);
    }
    if (is_text ? !v->dict : !v->pairs) {
        return memory_refused(x->mem, x->err, 65536);
    }
    *out_len = is_text ? dict_len(v->dict) : pair_map_len(v->pairs);
    return ERR_OK;
}

/* --- tables --- */

static void drop_blocks(struct gpu *g, struct gpu_block *blocks[4]) {
    for (i32 i = 0; i < 4; i++) {
        gpu_heap_free(g->card, blocks[i]);
        blocks[i] = NULL;
    }
}

static FALLIBLE take_blocks(struct gpu *g, i64 slots, i64 entries, i64 heap_bytes,
                            struct gpu_block *blocks[4], struct error *err) {
    TRY(gpu_alloc(g, slots * 4, &blocks[BLOCK_SLOTS], err));
    TRY(gpu_alloc(g, entries * ENTRY_BYTES, &blocks[BLOCK_ENTRIES], err));
    TRY(gpu_alloc(g, heap_bytes, &blocks[BLOCK_HEAP], err));
    TRY(gpu_alloc(g, INTERN_COUNTS * 8, &blocks[BLOCK_COUNTS], err));
    CU(g->api->set_bytes(blocks[BLOCK_SLOTS]->addr, 0, (size_t)slots * 4, g->streams[0]));
    return ERR_OK;
}

/* All of its blocks, or none: who finds no room tries again. */
static FALLIBLE new_table(struct gpu *g, struct exec *x, i64 entries, i64 heap_bytes,
                          struct gpu_block *blocks[4], struct kintern *out) {
    struct error *err = x->err;
    if (entries > ENTRIES_MOST) {
        FAIL(err, OUT_OF_MEMORY, "more than %lld distinct keys on the GPU", ENTRIES_MOST);
    }
    i64 slots = 2;
    while (slots < 2 * entries) {
        slots *= 2;
    }
    wf_status status = take_blocks(g, slots, entries, heap_bytes, blocks, err);
    if (status) {
        drop_blocks(g, blocks);
        return status;
    }
    *out = (struct kintern){.slots = DEV(u32 *, blocks[BLOCK_SLOTS]->addr),
                            .entries = DEV(u64 *, blocks[BLOCK_ENTRIES]->addr),
                            .heap = DEV(u8 *, blocks[BLOCK_HEAP]->addr),
                            .counts = DEV(u64 *, blocks[BLOCK_COUNTS]->addr),
                            .slot_count = (u64)slots,
                            .entry_limit = (u64)entries,
                            .heap_bytes = (u64)heap_bytes};
    return ERR_OK;
}

/* Files the entries and sets the counts. */
static FALLIBLE fill(struct gpu *g, struct exec *x, struct gpu_var *gv, bool is_text) {
    struct error *err = x->err;
    struct kintern_fill args = {gv->intern, gv->intern_count, is_text, 0};
    u64 counts[INTERN_COUNTS] = {(u64)gv->intern_count, (u64)gv->intern_bytes};
    u64 addr = gv->intern_blocks[BLOCK_COUNTS]->addr;
    if (!gv->intern_count && !gv->intern_bytes) {
        CU(g->api->set_bytes(addr, 0, sizeof counts, g->streams[0]));
        return ERR_OK;
    }
    CU(g->api->copy_to_device(addr, counts, sizeof counts, g->streams[0]));
    if (gv->intern_count) {
        void *function = NULL;
        TRY(gpu_kernel(g->card, KERNEL_INTERN_FILL, x, &function, err));
        i64 blocks = MIN_OF((gv->intern_count + BLOCK_THREADS - 1) / BLOCK_THREADS,
                            (i64)g->card->sm_count * 8);
        TRY(gpu_launch(g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, g->streams[0],
                       &args, err));
    }
    CU(gpu_sync(g, g->streams[0])); /* the counts lie on this stack */
    return ERR_OK;
}

/* A table of another size with the same entries. */
static FALLIBLE resize(struct gpu *g, struct exec *x, struct gpu_var *gv, bool is_text, i64 entries,
                       i64 heap_bytes) {
    struct error *err = x->err;
    struct gpu_block *old[4];
    memcpy(old, gv->intern_blocks, sizeof old);
    memset(gv->intern_blocks, 0, sizeof gv->intern_blocks);
    wf_status status = new_table(g, x, entries, heap_bytes, gv->intern_blocks, &gv->intern);
    if (status) { /* the entries stay where they are */
        memcpy(gv->intern_blocks, old, sizeof old);
        return status;
    }
    if (gv->intern_count) {
        int code =
            g->api->copy_device(gv->intern_blocks[BLOCK_ENTRIES]->addr, old[BLOCK_ENTRIES]->addr,
                                (size_t)(gv->intern_count * ENTRY_BYTES), g->streams[0]);
        status = gpu_check(g->card, code, "copy_device", err);
    }
    if (!status && gv->intern_bytes) {
        int code = g->api->copy_device(gv->intern_blocks[BLOCK_HEAP]->addr, old[BLOCK_HEAP]->addr,
                                       (size_t)gv->intern_bytes, g->streams[0]);
        status = gpu_check(g->card, code, "copy_device", err);
    }
    status = status ? status : fill(g, x, gv, is_text);
    drop_blocks(g, old);
    return status;
}

/* --- from the host --- */

static u64 word_of(const char *p, i64 left) {
    u64 x = 0;
    for (i64 i = 0; i < MIN_OF(left, 8); i++) {
        x |= (u64)(u8)p[i] << (56 - 8 * i);
    }
    return x;
}

/* Everything the host holds, as entries and heap. */
static void host_entries(const struct variable *v, bool is_text, i64 len, u64 *entries, u64 *heap) {
    u64 at = 0;
    for (i64 i = 0; i < len; i++) {
        u64 *entry = entries + i * INTERN_WORDS;
        if (!is_text) {
            i64 a;
            i64 b;
            pair_map_get(v->pairs, i, &a, &b);
            entry[1] = (u64)a;
            entry[2] = (u64)b;
            continue;
        }
        struct sv s = dict_get(v->dict, (i32)i);
        entry[1] = (u64)s.len;
        entry[2] = at;
        for (i64 k = 0; k < s.len; k += 8, at += 8) {
            heap[at / 8] = word_of(s.ptr + k, s.len - k);
        }
    }
}

static FALLIBLE from_host(struct gpu *g, struct exec *x, const struct variable *v,
                          struct gpu_var *gv, bool is_text, struct intern_size size,
                          i64 *moved) {
    i64 len = is_text ? dict_len(v->dict) : pair_map_len(v->pairs);
    i64 bytes = 0;
    for (i64 i = 0; is_text && i < len; i++) {
        bytes += ALIGN_UP(dict_get(v->dict, (i32)i).len, 8);
    }
    drop_blocks(g, gv->intern_blocks);
    TRY(new_table(g, x, MAX_OF(2 * len, size.entries), MAX_OF(2 * bytes, size.bytes) + 8,
                  gv->intern_blocks, &gv->intern));
    i64 all = len * ENTRY_BYTES + bytes;
    u64 *copy = mem_alloc(x->mem, all);
    if (!copy) {
        return memory_refused(x->mem, x->err, all);
    }
    memset(copy, 0, (size_t)all);
    u64 *heap = copy + len * INTERN_WORDS;
    host_entries(v, is_text, len, copy, heap);
    gv->intern_count = len;
    gv->intern_bytes = bytes;
    wf_status status = gpu_upload(g, gv->intern_blocks[BLOCK_ENTRIES]->addr, copy,
                                  len * ENTRY_BYTES, NULL, g->streams[0], x->err);
    if (!status) {
        status = gpu_upload(g, gv->intern_blocks[BLOCK_HEAP]->addr, heap, bytes, NULL,
                            g->streams[0], x->err);
    }
    status = status ? status : fill(g, x, gv, is_text);
    if (status) {
        (void)gpu_sync(g, g->streams[0]);
    }
    mem_free(x->mem, copy, all);
    *moved += all;
    return status;
}

/* No more than a part of what is free, whoever expected it. */
static struct intern_size bounded(const struct gpu *g, struct intern_size size) {
    enum { SHARE = 4 };
    i64 entries = gpu_heap_available(g->card) / SHARE / (ENTRY_BYTES + 16);
    i64 bytes = gpu_heap_available(g->card) / SHARE;
    size.entries = MIN_OF(size.entries, MIN_OF(entries, ENTRIES_MOST));
    size.bytes = MIN_OF(size.bytes, bytes);
    return size;
}

wf_status gpu_intern_open(struct gpu *g, struct exec *x, u32 var, bool is_text,
                          struct intern_size size, struct kintern *out, i64 *moved) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = NULL;
    i64 len = 0;
    TRY(open_host(x, var, is_text, &len));
    TRY(gpu_var_get(g, x, var, &gv));
    size = bounded(g, size);
    if (len > gv->intern_count) {
        TRY(from_host(g, x, v, gv, is_text, size, moved));
    } else if (!gv->intern_blocks[BLOCK_COUNTS]) {
        i64 entries = MAX_OF(g->api->is_simt ? ENTRIES_FIRST_SIMT : ENTRIES_FIRST, size.entries);
        i64 bytes = MAX_OF(entries * TEXT_BYTES, size.bytes);
        TRY(new_table(g, x, entries, is_text ? bytes : 8, gv->intern_blocks, &gv->intern));
        TRY(fill(g, x, gv, is_text));
    } else if (size.grows) {
        TRY(resize(g, x, gv, is_text, (i64)gv->intern.entry_limit * 4,
                   (i64)gv->intern.heap_bytes * (is_text ? 4 : 1)));
    }
    gv->intern_most = size.entries;
    gv->intern_most_bytes = is_text ? size.bytes : 0;
    *out = gv->intern;
    return ERR_OK;
}

/* --- to the host --- */

/* Strings in the heap's words, whose first bytes are highest and become the first. */
static FALLIBLE add_texts(struct exec *x, struct dict *dict, i64 have, i64 count,
                          const u64 *entries, u64 *heap, i64 heap_words) {
    i64 bytes = (count - have) * (i64)(sizeof(str) + sizeof(i32));
    str *texts = mem_alloc(x->mem, bytes);
    if (!texts) {
        return memory_refused(x->mem, x->err, bytes);
    }
    i32 *codes = (i32 *)(void *)(texts + (count - have));
    for (i64 i = 0; i < heap_words; i++) {
        heap[i] = __builtin_bswap64(heap[i]);
    }
    for (i64 i = 0; i < count - have; i++) {
        const u64 *entry = entries + i * INTERN_WORDS;
        texts[i] = str_from((struct sv){(const char *)(heap + entry[2] / 8), (i64)entry[1]});
    }
    bool fine = dict_add_many(dict, texts, NULL, count - have, codes);
    for (i64 i = 0; fine && i < count - have; i++) {
        CHECK(codes[i] == have + i);
    }
    mem_free(x->mem, texts, bytes);
    return fine ? ERR_OK : memory_refused(x->mem, x->err, 64);
}

static FALLIBLE add_pairs(struct exec *x, struct pair_map *pairs, i64 have, i64 count,
                          const u64 *entries) {
    for (i64 i = have; i < count; i++) {
        const u64 *entry = entries + (i - have) * INTERN_WORDS;
        i64 number = pair_map_add(pairs, (i64)entry[1], (i64)entry[2]);
        if (number < 0) {
            return memory_refused(x->mem, x->err, 64);
        }
        CHECK(number == i);
    }
    return ERR_OK;
}

/* Codes, entries and their texts in one block: codes, a count, pairs of length and place, the heap. */
struct show {
    struct gpu *g;
    struct exec *x;
    const struct gpu_var *gv;
    const i32 *codes;
    i64 count;
    i64 heap_bytes;
    struct gpu_block *block;
    u64 *copy; /* from the count on */
};

static i64 show_head(const struct show *s) { /* bytes before the heap, without the codes */
    return 8 + s->count * 16;
}

static FALLIBLE show_once(struct show *s) {
    struct gpu *g = s->g;
    struct error *err = s->x->err;
    i64 code_bytes = ALIGN_UP(s->count * 4, 16);
    i64 bytes = show_head(s) + s->heap_bytes;
    void *function = NULL;
    TRY(gpu_alloc(g, code_bytes + bytes, &s->block, err));
    s->copy = mem_alloc(s->x->mem, bytes);
    if (!s->copy) {
        return memory_refused(s->x->mem, err, bytes);
    }
    u64 used = s->block->addr + (u64)code_bytes;
    CU(g->api->copy_to_device(s->block->addr, s->codes, (size_t)s->count * 4, g->streams[0]));
    CU(g->api->set_bytes(used, 0, 8, g->streams[0]));
    TRY(gpu_kernel(g->card, KERNEL_INTERN_SHOW, s->x, &function, err));
    struct kintern_show args = {.intern = s->gv->intern,
                                .codes = DEV(const u32 *, s->block->addr),
                                .count = s->count,
                                .out = DEV(u64 *, used + 8),
                                .used = DEV(u64 *, used),
                                .heap = DEV(u8 *, used + (u64)show_head(s)),
                                .heap_bytes = (u64)s->heap_bytes};
    i64 blocks = MIN_OF((s->count + BLOCK_THREADS - 1) / BLOCK_THREADS,
                        (i64)g->card->sm_count * 8);
    struct gpu_grid grid = {MAX_OF(blocks, 1), BLOCK_THREADS, 0};
    TRY(gpu_launch(g, function, grid, g->streams[0], &args, err));
    CU(g->api->copy_to_host(s->copy, used, (size_t)bytes, g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    return ERR_OK;
}

static void show_drop(struct show *s) {
    gpu_heap_free(s->g->card, s->block);
    mem_free(s->x->mem, s->copy, show_head(s) + s->heap_bytes);
    s->block = NULL;
    s->copy = NULL;
}

static FALLIBLE show_add(struct show *s, struct dict *dict) {
    u64 *heap = s->copy + show_head(s) / 8;
    for (i64 i = 0; i < s->heap_bytes / 8; i++) {
        heap[i] = __builtin_bswap64(heap[i]);
    }
    for (i64 i = 0; i < s->count; i++) {
        const u64 *entry = s->copy + 1 + 2 * i;
        struct sv text = {(const char *)(heap + entry[1] / 8), (i64)entry[0]};
        if (dict_add(dict, text) != (i32)i) { /* they are distinct */
            return memory_refused(s->x->mem, s->x->err, 64);
        }
    }
    return ERR_OK;
}

wf_status gpu_intern_show(struct gpu *g, struct exec *x, u32 var, const i32 *codes, i64 count) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = v->copy;
    struct show s = {.g = g, .x = x, .gv = gv, .codes = codes, .count = count};
    if (gv->epoch != g->card->epoch) {
        FAIL(x->err, GPU, "keys were lost when the GPU was reset");
    }
    if (count == 0) {
        v->on_host = 1;
        return ERR_OK;
    }
    s.heap_bytes = count * SHOWN_BYTES;
    wf_status status = show_once(&s);
    if (!status && (i64)s.copy[0] > s.heap_bytes) { /* some are long */
        i64 used = (i64)s.copy[0];
        show_drop(&s);
        s.heap_bytes = used;
        status = show_once(&s);
    }
    if (status) {
        (void)g->api->stream_synchronize(g->streams[0]);
    }
    status = status ? status : show_add(&s, v->dict);
    show_drop(&s);
    v->on_host = !status;
    return status;
}

wf_status gpu_intern_fetch(struct gpu *g, struct exec *x, u32 var, i64 *moved) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = v->copy;
    struct error *err = x->err;
    bool is_text = v->dict != NULL;
    if (gv->epoch != g->card->epoch) {
        FAIL(err, GPU, "keys were lost when the GPU was reset");
    }
    i64 have = is_text ? dict_len(v->dict) : pair_map_len(v->pairs);
    i64 rest = gv->intern_count - have;
    if (rest > 0) {
        i64 entry_bytes = rest * ENTRY_BYTES;
        i64 heap_bytes = is_text ? gv->intern_bytes : 0;
        u64 *copy = mem_alloc(x->mem, entry_bytes + heap_bytes);
        if (!copy) {
            return memory_refused(x->mem, err, entry_bytes + heap_bytes);
        }
        u64 from = gv->intern_blocks[BLOCK_ENTRIES]->addr + (u64)(have * ENTRY_BYTES);
        int code = g->api->copy_to_host(copy, from, (size_t)entry_bytes, g->streams[0]);
        if (!code && heap_bytes) {
            code = g->api->copy_to_host(copy + rest * INTERN_WORDS,
                                        gv->intern_blocks[BLOCK_HEAP]->addr, (size_t)heap_bytes,
                                        g->streams[0]);
        }
        int done = gpu_sync(g, g->streams[0]);
        wf_status status = gpu_check(g->card, code ? code : done, "copy_to_host", err);
        if (!status) {
            u64 *heap = copy + rest * INTERN_WORDS;
            status = is_text ? add_texts(x, v->dict, have, gv->intern_count, copy, heap, heap_bytes / 8)
                             : add_pairs(x, v->pairs, have, gv->intern_count, copy);
        }
        mem_free(x->mem, copy, entry_bytes + heap_bytes);
        *moved += entry_bytes + heap_bytes;
        TRY(status);
    }
    v->on_host = 1;
    return ERR_OK;
}

wf_status gpu_intern_send_all(struct gpu *g, struct gpu_var *gv, i64 most, u8 *to, struct gpu_wanted *out,
                              i64 *out_bytes, struct error *err) {
    i64 entries = MIN_OF(gv->intern_most, (i64)gv->intern.entry_limit);
    i64 bytes = ALIGN_UP(MIN_OF(gv->intern_most_bytes, (i64)gv->intern.heap_bytes), 8);
    *out_bytes = 0;
    if (!gv->intern_blocks[BLOCK_COUNTS] || entries < 1 || entries > most / ENTRY_BYTES ||
        entries * ENTRY_BYTES + bytes > most) {
        return ERR_OK;
    }
    out->entries = entries;
    out->bytes = MIN_OF(bytes, (i64)gv->intern.heap_bytes / 8 * 8);
    CU(g->api->copy_to_host(to, gv->intern_blocks[BLOCK_ENTRIES]->addr, (size_t)(entries * ENTRY_BYTES),
                            g->streams[0]));
    if (out->bytes) {
        CU(g->api->copy_to_host(to + entries * ENTRY_BYTES, gv->intern_blocks[BLOCK_HEAP]->addr,
                                (size_t)out->bytes, g->streams[0]));
    }
    *out_bytes = entries * ENTRY_BYTES + out->bytes;
    return ERR_OK;
}

wf_status gpu_intern_take_all(struct exec *x, u32 var, u8 *sent, const struct gpu_wanted *as) {
    struct variable *v = &x->vars[var];
    const struct gpu_var *gv = v->copy;
    i64 have = v->dict ? dict_len(v->dict) : v->pairs ? pair_map_len(v->pairs) : -1;
    if (have != 0 || gv->intern_count > as->entries || (v->dict && gv->intern_bytes > as->bytes)) {
        return ERR_OK;
    }
    u64 *entries = (u64 *)(void *)sent;
    u64 *heap = entries + as->entries * INTERN_WORDS;
    TRY(v->dict ? add_texts(x, v->dict, 0, gv->intern_count, entries, heap, as->bytes / 8)
                : add_pairs(x, v->pairs, 0, gv->intern_count, entries));
    v->on_host = 1;
    return ERR_OK;
}

bool gpu_intern_is_new(const struct exec *x, u32 var) {
    const struct variable *v = &x->vars[var];
    const struct gpu_var *gv = v->copy;
    return (!gv || !gv->intern_count) && (!v->dict || !dict_len(v->dict)) &&
           (!v->pairs || !pair_map_len(v->pairs));
}

void gpu_intern_forget(struct gpu *g, struct exec *x, u32 var) {
    struct gpu_var *gv = x->vars[var].copy;
    if (gv) {
        drop_blocks(g, gv->intern_blocks);
        gv->intern = (struct kintern){0};
    }
}

wf_status gpu_intern_send(struct gpu *g, const struct gpu_var *gv, u8 *to, struct error *err) {
    CU(g->api->copy_to_host(to, gv->intern_blocks[BLOCK_COUNTS]->addr, INTERN_COUNTS * 8, g->streams[0]));
    return ERR_OK;
}

void gpu_intern_close(struct exec *x, u32 var, const u8 *sent, struct intern_size *out) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = v->copy;
    u64 counts[INTERN_COUNTS];
    memcpy(counts, sent, sizeof counts);
    gv->intern_count = (i64)MIN_OF(counts[INTERN_ENTRIES], gv->intern.entry_limit);
    gv->intern_bytes = (i64)MIN_OF(counts[INTERN_BYTES], gv->intern.heap_bytes);
    v->on_host = 0;
    v->rows = gv->intern_count;
    *out = (struct intern_size){.entries = gv->intern_count, .bytes = gv->intern_bytes};
}

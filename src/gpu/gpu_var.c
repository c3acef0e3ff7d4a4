/* gpu_var.c: relation variables, lookup tables and indexes on the card, and the way back to the
 * host.
 *
 * What a GPU step produces stays on the card until a host step asks for it; what the CPU produced
 * is uploaded column by column when a GPU step first reads it. Both sides may hold the same rows.
 * Results are copied straight into memory that is registered with the driver and belongs to the
 * chunk: nothing on the host is copied twice. */
#include "gpu/gpu_int.h"

enum { COLUMN_ALIGN = 256, COLUMN_PAD = 64 };

wf_status gpu_var_loose(struct gpu *g, struct exec *x, u32 col_count, struct gpu_var **out) {
    i64 bytes = (i64)sizeof(struct gpu_var) + (i64)sizeof(struct gpu_col) * col_count;
    struct gpu_var *gv = mem_alloc(g->card->mem, bytes);
    if (!gv) {
        return memory_refused(g->card->mem, x->err, bytes);
    }
    memset(gv, 0, (size_t)bytes);
    gv->card = g->card;
    gv->epoch = g->card->epoch;
    gv->bytes = bytes;
    gv->col_count = col_count;
    gv->cols = (struct gpu_col *)(void *)(gv + 1);
    *out = gv;
    return ERR_OK;
}

wf_status gpu_var_new(struct gpu *g, struct exec *x, u32 var, u32 col_count, struct gpu_var **out) {
    struct variable *v = &x->vars[var];
    variable_drop_copy(v);
    TRY(gpu_var_loose(g, x, col_count, out));
    v->copy = *out;
    v->copy_release = gpu_var_release;
    v->copy_space = g->device.space;
    return ERR_OK;
}

void gpu_var_release(void *var) {
    struct gpu_var *gv = var;
    struct gpu_card *card = gv->card;
    if (gv->kept) {
        gpu_var_give_back(gv);
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        gpu_heap_free(card, gv->cols[c].data);
        gpu_heap_free(card, gv->cols[c].nulls);
    }
    gpu_heap_free(card, gv->slots);
    gpu_heap_free(card, gv->heads);
    gpu_heap_free(card, gv->filter);
    gpu_heap_free(card, gv->near);
    gpu_heap_free(card, gv->index_rows);
    gpu_heap_free(card, gv->grow);
    gpu_heap_free(card, gv->lut);
    gpu_str_drop(card, &gv->texts);
    for (i32 i = 0; i < COUNT_OF(gv->intern_blocks); i++) {
        gpu_heap_free(card, gv->intern_blocks[i]);
    }
    mem_free(card->mem, gv, gv->bytes);
}

wf_status gpu_var_get(struct gpu *g, struct exec *x, u32 var, struct gpu_var **out) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = v->copy;
    if (gv && gv->card != g->card) {
        FAIL(x->err, INTERNAL, "variable %u lies on another GPU", var);
    }
    /* The host may have added rows to what was fetched. */
    bool behind = gv && v->kind == VAR_ROWS && v->on_host && gv->rows != v->rows;
    if (gv && gv->epoch == g->card->epoch && !behind) {
        *out = gv;
        return ERR_OK;
    }
    if (gv && !v->on_host && !v->index && !v->lut) {
        FAIL(x->err, GPU, "variable %s was lost when the GPU was reset",
             x->program->vars[var].name ? x->program->vars[var].name : "?");
    }
    TRY(gpu_var_new(g, x, var, x->program->vars[var].col_count, out));
    (*out)->rows = v->rows;
    return ERR_OK;
}

/* A block in the place of what an attempt left there that found no room for all it needed. */
static FALLIBLE alloc_anew(struct gpu *g, i64 bytes, struct gpu_block **io_block, struct error *err) {
    if (*io_block) {
        gpu_wait(g); /* the driver may still be writing */
        gpu_heap_free(g->card, *io_block);
        *io_block = NULL;
    }
    return gpu_alloc(g, bytes, io_block, err);
}

static FALLIBLE upload_new(struct gpu *g, struct exec *x, const void *src, i64 bytes,
                           struct gpu_block **out, i64 *moved) {
    TRY(alloc_anew(g, bytes, out, x->err));
    *moved += bytes;
    return gpu_upload(g, (*out)->addr, src, bytes, NULL, g->streams[0], x->err);
}

/* Text of the host lies anywhere: its bytes are gathered, and views point to the copy. */
static FALLIBLE upload_text(struct gpu *g, struct exec *x, const struct variable *v,
                            struct gpu_var *gv, u32 col, bool with_nulls, i64 *moved) {
    struct gpu_col *to = &gv->cols[col];
    str *views = mem_alloc(x->mem, MAX_OF(v->rows, 1) * (i64)sizeof(str));
    b8 *nulls = mem_alloc(x->mem, MAX_OF(v->rows, 1));
    wf_status status = views && nulls ? ERR_OK : memory_refused(x->mem, x->err, v->rows * 17);
    i64 at = 0;
    for (i64 i = 0; !status && i < v->chunks.count; i++) {
        const struct chunk *chunk = v->chunks.items[i];
        for (i64 r = 0; r < chunk->rows; r++, at++) {
            nulls[at] = chunk->cols[col].nulls ? chunk->cols[col].nulls[r] : 0;
            views[at] = nulls[at] ? str_from(SV("")) : ((const str *)chunk->cols[col].data)[r];
        }
    }
    struct buffer *heap = NULL;
    status = status ? status : gpu_str_gather(x->mem, views, v->rows, &heap, x->err);
    if (!status) {
        struct gpu_str text = {.host = heap->data, .bytes = heap->bytes, .heap = heap};
        gpu_str_add(x->arena, &gv->texts, text);
        status = upload_new(g, x, views, MAX_OF(v->rows, 1) * (i64)sizeof(str), &to->data, moved);
    }
    if (!status && with_nulls) {
        status = upload_new(g, x, nulls, v->rows, &to->nulls, moved);
    }
    if (!status) { /* the driver may still be reading */
        status = gpu_check(g->card, gpu_sync(g, g->streams[0]), "stream_synchronize",
                           x->err);
    }
    mem_free(x->mem, views, MAX_OF(v->rows, 1) * (i64)sizeof(str));
    mem_free(x->mem, nulls, MAX_OF(v->rows, 1));
    to->addr = !status && to->data ? to->data->addr : 0;
    to->nulls_addr = !status && to->nulls ? to->nulls->addr : 0;
    return status;
}

static FALLIBLE upload_column(struct gpu *g, struct exec *x, const struct variable *v,
                              struct gpu_var *gv, u32 col, i64 *moved) {
    struct error *err = x->err;
    struct gpu_col *to = &gv->cols[col];
    bool nulls = false;
    for (i64 i = 0; i < v->chunks.count; i++) {
        nulls = nulls || v->chunks.items[i]->cols[col].nulls;
    }
    if (v->chunks.count && v->chunks.items[0]->cols[col].kind == KIND_STR) {
        return upload_text(g, x, v, gv, col, nulls, moved);
    }
    i64 width = v->chunks.count ? kind_bytes[v->chunks.items[0]->cols[col].kind] : 8;
    TRY(alloc_anew(g, MAX_OF(v->rows * width, 1), &to->data, err));
    if (nulls) {
        TRY(alloc_anew(g, v->rows, &to->nulls, err));
        CU(g->api->set_bytes(to->nulls->addr, 0, (size_t)v->rows, g->streams[0]));
    }
    i64 at = 0;
    for (i64 i = 0; i < v->chunks.count; i++) {
        const struct chunk *chunk = v->chunks.items[i];
        const struct column *from = &chunk->cols[col];
        TRY(gpu_upload(g, to->data->addr + (u64)(at * width), from->data, chunk->rows * width, NULL,
                       g->streams[0], err));
        if (from->nulls) {
            TRY(gpu_upload(g, to->nulls->addr + (u64)at, from->nulls, chunk->rows, NULL,
                           g->streams[0], err));
            *moved += chunk->rows;
        }
        *moved += chunk->rows * width;
        at += chunk->rows;
    }
    to->addr = to->data->addr;
    to->nulls_addr = to->nulls ? to->nulls->addr : 0;
    return ERR_OK;
}

wf_status gpu_var_col(struct gpu *g, struct exec *x, u32 var, u32 col, struct kcol *out,
                      i64 *moved) {
    struct gpu_var *gv = NULL;
    TRY(gpu_var_get(g, x, var, &gv));
    if (!gv->cols[col].addr) {
        i64 texts = gv->texts.count;
        TRY(upload_column(g, x, &x->vars[var], gv, col, moved));
        /* A sort on the card makes its rows the variable's: their text outlives the copy. */
        for (i64 i = texts; i < gv->texts.count; i++) {
            variable_keep_heap(x, var, buffer_retain(gv->texts.items[i].heap));
        }
    }
    *out = (struct kcol){.data = DEV(const u8 *, gv->cols[col].addr),
                         .nulls = DEV(const b8 *, gv->cols[col].nulls_addr),
                         .len = gv->rows};
    return ERR_OK;
}

/* A table of text: its views hold addresses of the card. */
static FALLIBLE upload_views(struct gpu *g, struct exec *x, const struct variable *v,
                             struct gpu_var *gv, i64 *moved) {
    str *views = NEW_ARRAY(x->arena, str, v->lut_len + 1);
    memcpy(views, v->lut, (size_t)v->lut_len * sizeof *views);
    struct buffer *heap = NULL;
    TRY(gpu_str_gather(x->mem, views, v->lut_len, &heap, x->err));
    struct gpu_str text = {.host = heap->data, .bytes = heap->bytes, .heap = heap};
    gpu_str_add(x->arena, &gv->texts, text);
    u64 addr = 0;
    TRY(gpu_str_addr(g, x, &gv->texts.items[gv->texts.count - 1], &addr, moved));
    for (i64 i = 0; i < v->lut_len; i++) {
        views[i].addr += addr - (u64)(size_t)heap->data;
    }
    return upload_new(g, x, views, MAX_OF(v->lut_len, 1) * (i64)sizeof(str), &gv->lut, moved);
}

wf_status gpu_var_lut(struct gpu *g, struct exec *x, u32 var, struct kcol *out, i64 *moved) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = NULL;
    TRY(gpu_var_get(g, x, var, &gv));
    if (!gv->lut) {
        i64 bytes = v->lut_len * kind_bytes[x->program->vars[var].lut_kind];
        if (x->program->vars[var].lut_kind == KIND_STR) {
            TRY(upload_views(g, x, v, gv, moved));
        } else {
            TRY(upload_new(g, x, v->lut, bytes, &gv->lut, moved));
        }
    }
    *out = (struct kcol){.data = DEV(const u8 *, gv->lut->addr), .len = v->lut_len};
    return ERR_OK;
}

i64 gpu_index_bytes(const struct gpu_var *gv) {
    i64 bytes = 0;
    bytes += gv->slots ? gv->slots->bytes : 0;
    bytes += gv->heads ? gv->heads->bytes : 0;
    return bytes;
}

/* The longest run of a key that an index of the host may have. */
static i64 index_most(const struct index *index) {
    i64 most = 1;
    for (i64 s = 0; !index->unique && s < index->slot_count; s++) {
        i64 run = index->slots ? (i64)index->slots[s].hi - index->slots[s].lo
                               : (i64)index->heads[s + 1] - index->heads[s];
        most = MAX_OF(most, run);
    }
    return most;
}

f64 gpu_var_share(const struct exec *x, u32 index, i64 rows, f64 bits) {
    f64 share = x->program->vars[index].found * (f64)rows;
    return share > 0.0 ? MIN_OF(share, 1.0) : bits;
}

/* An index of the host, and its filter where it is a bitmap of keys and there is room. */
static FALLIBLE upload_index(struct gpu *g, struct exec *x, u32 var, struct gpu_var *gv,
                             i64 *moved) {
    struct index *index = x->vars[var].index;
    if (index->form == INDEX_CHAIN) {
        FAIL(x->err, DEVICE_MEMORY, "no GPU has a chain of indexes");
    }
    TRY(index_plain(x, index));
    if (index->slots) {
        TRY(upload_new(g, x, index->slots, index->slot_count * (i64)sizeof *index->slots,
                       &gv->slots, moved));
    } else {
        TRY(upload_new(g, x, index->heads, index->head_count * 4, &gv->heads, moved));
    }
    if (!index->unique) {
        TRY(upload_new(g, x, index->rows, index->row_count * 4, &gv->index_rows, moved));
    }
    gv->most_matches = index_most(index);
    gv->share = gpu_var_share(
        x, var, index->row_count,
        index->form == INDEX_BITS ? (f64)index->row_count / (f64)index->slot_count : 1.0);
    gv->index =
        (struct kindex){.form = index->form == INDEX_BITS ? KINDEX_BITS
                                : index->slots            ? KINDEX_RUNS
                                                          : KINDEX_DIRECT,
                        .unique = index->unique,
                        .key_lo = index->key_lo,
                        .slot_count = (u64)index->slot_count,
                        .slots = DEV(const u64 *, gv->slots ? gv->slots->addr : 0),
                        .heads = DEV(const u32 *, gv->heads ? gv->heads->addr : 0),
                        .rows = DEV(const u32 *, gv->index_rows ? gv->index_rows->addr : 0)};
    i64 bytes = index_filter_bytes(index);
    gv->filter =
        index->slots && index->filter && !index->filter_hashed ? gpu_alloc_try(g, bytes) : NULL;
    if (gv->filter) {
        TRY(gpu_upload(g, gv->filter->addr, index->filter, bytes, NULL, g->streams[0], x->err));
        *moved += bytes;
        gv->share = gpu_var_share(x, var, index->row_count,
                                  (f64)index->row_count / (f64)index->filter_bits);
        gv->index.filter = (struct kfilter){.bits = DEV(u32 *, gv->filter->addr),
                                            .lo = index->filter_lo,
                                            .count = (u64)index->filter_bits,
                                            .mask = ~0ULL};
    }
    return ERR_OK;
}

/* Who asks for an index looks whether its keys are there. */
static void forget_index(struct gpu *g, struct gpu_var *gv) {
    struct gpu_block **parts[] = {&gv->slots, &gv->heads, &gv->index_rows, &gv->filter};
    gpu_wait(g); /* the driver may still be writing */
    for (i32 i = 0; i < COUNT_OF(parts); i++) {
        gpu_heap_free(g->card, *parts[i]);
        *parts[i] = NULL;
    }
}

wf_status gpu_var_index(struct gpu *g, struct exec *x, u32 var, struct kindex *out, i64 *moved) {
    struct gpu_var *gv = NULL;
    TRY(gpu_var_get(g, x, var, &gv));
    if (gv->parts.count) { /* whoever asks reads rows of all parts */
        TRY(gpu_build_whole(g, x, var, moved));
        gv = x->vars[var].copy;
    }
    if (!gv->heads && !gv->slots) {
        if (!x->vars[var].index) {
            FAIL(x->err, INTERNAL, "variable %u has no index", var);
        }
        wf_status status = upload_index(g, x, var, gv, moved);
        if (status) {
            forget_index(g, gv);
            return status;
        }
    }
    *out = gv->index;
    return ERR_OK;
}

/* --- to the host --- */

void gpu_var_replace(struct gpu_card *card, struct variable *v, struct gpu_var *gv,
                     const struct gpu_col *made) {
    for (u32 c = 0; c < gv->col_count; c++) {
        gpu_heap_free(card, gv->cols[c].data);
        gpu_heap_free(card, gv->cols[c].nulls);
        gv->cols[c] = made[c];
    }
    for (i64 i = 0; i < v->chunks.count; i++) {
        chunk_release(v->chunks.items[i]);
    }
    v->chunks.count = 0;
    v->on_host = 0;
    gv->parts = (struct gpu_parts){0};
}

/* A column of a chunk that lies where kernels wrote it. */
static void view(struct buffer **buffer, struct buffer *here) {
    buffer_release(*buffer);
    *buffer = buffer_retain(here);
}

/* A chunk in one block of the result pool: columns one after the other, each padded; without those that lie in
 * memory of the host. */
static struct chunk *pinned_chunk(struct gpu *g, struct exec *x, const struct var *def, i64 rows,
                                  const struct fetch_col *cols, i64 *out_bytes) {
    i64 *data_at = NEW_ARRAY(x->arena, i64, 2 * def->col_count + 1);
    i64 at = 0;
    for (u32 c = 0; c < def->col_count; c++) {
        data_at[2 * c] = at;
        at += cols[c].data_here ? 0 : ALIGN_UP(rows * kind_bytes[def->kinds[c]] + COLUMN_PAD, COLUMN_ALIGN);
        data_at[2 * c + 1] = at;
        at += cols[c].nulls && !cols[c].nulls_here ? ALIGN_UP(rows + COLUMN_PAD, COLUMN_ALIGN) : 0;
    }
    *out_bytes = at;
    struct chunk *chunk = chunk_view_new(x, def->col_count);
    struct buffer *all = chunk ? gpu_host_buffer(g->card->host, x->mem, x->pool, at) : NULL;
    if (!all) {
        chunk_release(chunk);
        return NULL;
    }
    chunk->rows = rows;
    for (u32 c = 0; c < def->col_count; c++) {
        chunk->cols[c].kind = def->kinds[c];
        chunk->cols[c].data = all->data + data_at[2 * c];
        chunk->buffers[2 * c] = buffer_retain(all);
        if (cols[c].nulls) {
            chunk->cols[c].nulls = all->data + data_at[2 * c + 1];
            chunk->buffers[2 * c + 1] = buffer_retain(all);
        }
        if (cols[c].data_here) {
            chunk->cols[c].data = cols[c].data_here->data;
            view(&chunk->buffers[2 * c], cols[c].data_here);
        }
        if (cols[c].nulls_here) {
            chunk->cols[c].nulls = cols[c].nulls_here->data;
            view(&chunk->buffers[2 * c + 1], cols[c].nulls_here);
        }
    }
    buffer_release(all);
    return chunk;
}

static FALLIBLE fill_chunk(struct gpu *g, struct exec *x, const struct chunk *chunk,
                           const struct fetch_col *cols, void *stream, i64 *moved) {
    struct error *err = x->err;
    for (u32 c = 0; c < chunk->col_count && chunk->rows > 0; c++) {
        const struct column *to = &chunk->cols[c];
        if (!cols[c].data) { /* a sort dropped it */
            continue;
        }
        i64 bytes = cols[c].data_here ? 0 : chunk->rows * kind_bytes[to->kind];
        if (bytes) {
            CU(g->api->copy_to_host(to->data, cols[c].data, (size_t)bytes, stream));
        }
        *moved += bytes;
        if (to->nulls && !cols[c].nulls_here) {
            CU(g->api->copy_to_host(to->nulls, cols[c].nulls, (size_t)chunk->rows, stream));
            *moved += chunk->rows;
        }
    }
    return ERR_OK;
}

wf_status gpu_rows_to_chunk(struct gpu *g, struct exec *x, const struct row_fetch *fetch,
                            i64 *moved) {
    i64 bytes = 0;
    const struct var *def = &x->program->vars[fetch->var];
    struct chunk *chunk = pinned_chunk(g, x, def, fetch->rows, fetch->cols, &bytes);
    if (!chunk) {
        return memory_refused(x->mem, x->err, bytes);
    }
    chunk->order = fetch->order;
    /* Even a chunk that fails: a copy into it may be under way. */
    variable_append(x, fetch->var, chunk);
    return fill_chunk(g, x, chunk, fetch->cols, fetch->stream, moved);
}

/* Few rows cost a launch and a wait, however many columns there are: they go through mapped memory.
 * False: they are too many. */
#define FEW_BYTES (32LL << 10)

/* Rows do not wait for a compiler. */
bool gpu_has_fetch(const struct gpu_card *card) {
    return atomic_load(&card->codes.kernels[KERNEL_FETCH]) ||
           atomic_load(&card->codes.kernels[KERNEL_AGG_INIT]) ||
           atomic_load(&card->codes.kernels[KERNEL_BUILD_UNIQUE]) || gpu_image_find(card, "build");
}

static void add_part(struct kfetch *args, i64 *at, u64 from, i64 bytes) {
    args->parts[args->count++] =
        (struct kfetch_part){DEV(const u8 *, from), (u64)*at, (u64)bytes};
    *at = ALIGN_UP(*at + bytes, 64);
}

static bool few_rows(const struct var *def, i64 rows, const struct fetch_col *cols, i64 most,
                     struct kfetch *out) {
    i64 at = 0;
    memset(out, 0, sizeof *out);
    for (u32 c = 0; c < def->col_count; c++) {
        if (!cols[c].data) { /* a sort dropped it */
            continue;
        }
        i64 bytes = rows * kind_bytes[def->kinds[c]];
        bool aligned = (cols[c].data | cols[c].nulls) % 8 == 0;
        if (!aligned || out->count + 2 > FETCH_PARTS || at + bytes + rows > most) {
            return false;
        }
        add_part(out, &at, cols[c].data, bytes);
        if (cols[c].nulls) {
            add_part(out, &at, cols[c].nulls, rows);
        }
    }
    return out->count > 0 && rows > 0;
}

/* Behind rows: strings that their step made, as many bytes as have room. */
static bool add_texts(const struct gpu_var *gv, i64 most, struct kfetch *out) {
    const struct kfetch_part *last = &out->parts[out->count - 1];
    i64 at = ALIGN_UP((i64)(last->at + last->bytes), 64);
    for (i64 i = 0; i < gv->texts.count; i++) {
        const struct gpu_far *far = gv->texts.items[i].far;
        if (!far || atomic_load(&far->is_here)) {
            continue;
        }
        if (out->count == FETCH_PARTS || at + far->host->bytes > most) {
            return false;
        }
        add_part(out, &at, far->block->addr + HEAP_HEAD, far->host->bytes);
    }
    return true;
}

static void take_texts(const struct gpu_var *gv, const struct kfetch *sent, u32 part, const u8 *from) {
    for (i64 i = 0; i < gv->texts.count && part < sent->count; i++) {
        struct gpu_far *far = gv->texts.items[i].far;
        u64 addr = (u64)(size_t)sent->parts[part].from;
        if (far && addr == far->block->addr + HEAP_HEAD) {
            memcpy(far->host->data, from + sent->parts[part++].at, (size_t)far->used);
            atomic_store(&far->is_here, 1);
        }
    }
}

/* Rows that lie where a fetch put them, as a chunk. */
static FALLIBLE sent_to_chunk(struct gpu *g, struct exec *x, const struct row_fetch *fetch,
                              const struct kfetch *sent, const u8 *from) {
    i64 bytes = 0;
    struct chunk *chunk = pinned_chunk(g, x, &x->program->vars[fetch->var], fetch->rows,
                                       fetch->cols, &bytes);
    if (!chunk) {
        return memory_refused(x->mem, x->err, bytes);
    }
    chunk->order = fetch->order;
    variable_append(x, fetch->var, chunk);
    u32 part = 0;
    for (u32 c = 0; c < chunk->col_count; c++) {
        const struct column *to = &chunk->cols[c];
        if (!fetch->cols[c].data) {
            continue;
        }
        memcpy(to->data, from + sent->parts[part++].at, (size_t)(fetch->rows * kind_bytes[to->kind]));
        if (to->nulls) {
            memcpy(to->nulls, from + sent->parts[part++].at, (size_t)fetch->rows);
        }
    }
    take_texts(x->vars[fetch->var].copy, sent, part, from);
    return ERR_OK;
}

static FALLIBLE send_few(struct gpu *g, struct exec *x, u64 to, void *stream, struct kfetch *args) {
    void *function = NULL;
    TRY(gpu_kernel(g->card, KERNEL_FETCH, x, &function, x->err));
    args->to = DEV(u8 *, to);
    return gpu_launch(g, function, (struct gpu_grid){args->count, BLOCK_THREADS, 0}, stream, args, x->err);
}

static FALLIBLE fetch_few(struct gpu *g, struct exec *x, const struct row_fetch *fetch,
                          struct kfetch *args) {
    struct error *err = x->err;
    TRY(gpu_pinned_reserve(g, &g->reports, FEW_BYTES + 4096, err));
    TRY(send_few(g, x, g->reports.addr, fetch->stream, args));
    CU(gpu_sync(g, fetch->stream));
    return sent_to_chunk(g, x, fetch, args, g->reports.host);
}

static struct fetch_col *fetch_cols(struct exec *x, const struct gpu_var *gv) {
    struct fetch_col *cols = NEW_ARRAY(x->arena, struct fetch_col, gv->col_count + 1);
    for (u32 c = 0; c < gv->col_count; c++) {
        cols[c] = (struct fetch_col){.data = gv->cols[c].addr, .nulls = gv->cols[c].nulls_addr};
    }
    return cols;
}

/* Whether so many bytes lie within the block, or in that of all columns. */
static bool is_within(const struct gpu_var *gv, const struct gpu_block *block, u64 addr, i64 bytes) {
    block = block ? block : gv->cols[0].data;
    return !addr || (block && addr >= block->addr && addr + (u64)bytes <= block->addr + (u64)block->bytes);
}

wf_status gpu_var_send_few(struct gpu *g, struct exec *x, u32 var, i64 most, u64 to,
                           struct kfetch *out, bool *out_sent) {
    const struct var *def = &x->program->vars[var];
    const struct variable *v = &x->vars[var];
    const struct gpu_var *gv = v->copy;
    *out_sent = false;
    bool may = gv && gv->epoch == g->card->epoch && gv->col_count == def->col_count && gpu_has_fetch(g->card);
    for (u32 c = 0; may && c < gv->col_count; c++) { /* as many rows as are expected */
        const struct gpu_col *col = &gv->cols[c];
        may = is_within(gv, col->data, col->addr, v->rows * kind_bytes[def->kinds[c]]) &&
              is_within(gv, col->nulls, col->nulls_addr, v->rows);
    }
    if (!may || !few_rows(def, v->rows, fetch_cols(x, gv), most, out) || !add_texts(gv, most, out)) {
        return ERR_OK;
    }
    *out_sent = true;
    return send_few(g, x, to, g->streams[0], out);
}

wf_status gpu_var_take_sent(struct gpu *g, struct exec *x, u32 var, i64 rows, const struct kfetch *sent,
                            const u8 *from) {
    struct variable *v = &x->vars[var];
    struct row_fetch fetch = {var, rows, 0, fetch_cols(x, v->copy), g->streams[0]};
    v->rows = 0; /* variable_append counts them again */
    wf_status status = sent_to_chunk(g, x, &fetch, sent, from);
    v->rows = rows;
    return status;
}

wf_status gpu_var_take_few(struct gpu *g, struct exec *x, u32 var, i64 rows, const u8 *from,
                           i64 stride) {
    i64 bytes = 0;
    const struct var *def = &x->program->vars[var];
    struct fetch_col *cols = NEW_ARRAY(x->arena, struct fetch_col, def->col_count + 1);
    struct chunk *chunk = pinned_chunk(g, x, def, rows, cols, &bytes);
    if (!chunk) {
        return memory_refused(x->mem, x->err, bytes);
    }
    for (u32 c = 0; c < def->col_count; c++) {
        memcpy(chunk->cols[c].data, from + stride * c, (size_t)(rows * kind_bytes[def->kinds[c]]));
    }
    x->vars[var].rows = 0; /* variable_append counts them again */
    variable_append(x, var, chunk);
    x->vars[var].on_host = 1;
    return ERR_OK;
}

/* A bitmap of keys, and words behind it. */
static FALLIBLE fetch_set(struct gpu *g, struct exec *x, struct variable *v,
                          const struct gpu_var *gv) {
    struct error *err = x->err;
    i64 bytes = key_set_bytes(gv->set_bits, gv->set_best != KEY_ONLY);
    if (gv->epoch != g->card->epoch) {
        FAIL(err, GPU, "a set of keys was lost when the GPU was reset");
    }
    if (gv->set_places) {
        return gpu_keys_fetch(g, x, v, gv);
    }
    key_set_close(v->keys);
    v->keys = key_set_of_bits(x->mem, gv->set_bits, (enum key_best)gv->set_best);
    if (!v->keys) {
        return memory_refused(x->mem, err, bytes);
    }
    CU(g->api->copy_to_host(key_set_bits(v->keys), gv->heads->addr, (size_t)bytes,
                            g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    v->on_host = 1;
    return ERR_OK;
}

/* A table of numbers. */
static FALLIBLE fetch_lut(struct gpu *g, struct exec *x, struct variable *v,
                          const struct gpu_var *gv) {
    struct error *err = x->err;
    if (gv->epoch != g->card->epoch) {
        FAIL(err, GPU, "a lookup table was lost when the GPU was reset");
    }
    v->lut_bytes = MAX_OF(v->lut_len, 1) * (i64)sizeof(i32);
    v->lut = mem_alloc(x->mem, v->lut_bytes);
    if (!v->lut) {
        i64 bytes = v->lut_bytes;
        v->lut_bytes = 0;
        return memory_refused(x->mem, err, bytes);
    }
    CU(g->api->copy_to_host(v->lut, gv->lut->addr, (size_t)v->lut_bytes, g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    v->on_host = 1;
    return ERR_OK;
}

/* Memory of the host that a column has to itself. */
static struct buffer *lies_here(const struct gpu_block *block, u64 addr) {
    return block && block->addr == addr ? block->host : NULL;
}

wf_status gpu_var_fetch(struct gpu *g, struct exec *x, u32 var) {
    struct variable *v = &x->vars[var];
    struct gpu_var *gv = v->copy;
    struct error *err = x->err;
    if (gv && v->kind == VAR_INTERN) {
        i64 moved = 0;
        return gpu_intern_fetch(g, x, var, &moved);
    }
    if (gv && v->kind == VAR_SET && !v->on_host) {
        return fetch_set(g, x, v, gv);
    }
    if (gv && v->kind == VAR_LUT && !v->on_host && !v->lut) {
        return fetch_lut(g, x, v, gv);
    }
    if (!gv || v->on_host || (v->kind != VAR_ROWS && v->kind != VAR_AGG)) {
        return ERR_OK;
    }
    if (gv->epoch != g->card->epoch) {
        FAIL(err, GPU, "rows were lost when the GPU was reset");
    }
    for (i64 i = 0; i < gv->texts.count; i++) {
        if (gv->texts.items[i].far) {
            TRY(gpu_far_fetch(g, x, gv->texts.items[i].far));
        }
    }
    struct fetch_col *cols = fetch_cols(x, gv);
    i64 moved = 0;
    i64 rows = v->rows;
    v->rows = 0; /* variable_append counts them again */
    struct row_fetch fetch = {var, rows, 0, cols, g->streams[0]};
    struct kfetch few;
    if (gpu_has_fetch(g->card) && few_rows(&x->program->vars[var], rows, cols, FEW_BYTES, &few)) {
        wf_status status = fetch_few(g, x, &fetch, &few);
        v->rows = rows;
        return status;
    }
    for (u32 c = 0; c < gv->col_count; c++) {
        cols[c].data_here = lies_here(gv->cols[c].data, gv->cols[c].addr);
        cols[c].nulls_here = lies_here(gv->cols[c].nulls, gv->cols[c].nulls_addr);
    }
    wf_status status = gpu_rows_to_chunk(g, x, &fetch, &moved);
    v->rows = rows;
    TRY(status);
    if (rows > 0) {
        CU(gpu_sync(g, g->streams[0]));
    }
    return ERR_OK;
}

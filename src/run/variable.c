/* variable.c: chunks and variables: making, ordering, flattening, releasing.
 *
 * A variable's rows are a list of chunks that may come from many threads; `order` restores the
 * order of their source rows. Column data are counted buffers, so a slice of a block is a chunk
 * too. Heaps (the bytes of strings that opcodes made) belong to the variable and are inherited by
 * whoever copies its views, which is why a release never leaves a view dangling. */
#include "run/variable.h"

#include "base/temp.h"
#include "run/device.h"

#include "run/run_int.h"
#include "run/tries.h"

#include <stdlib.h>

enum { PARALLEL_ROWS = 1 << 17 };

static i64 chunk_bytes(u32 col_count) {
    return (i64)sizeof(struct chunk) + (i64)sizeof(struct column) * col_count +
           (i64)sizeof(void *) * 2 * col_count;
}

struct chunk *chunk_view_new(struct exec *x, u32 col_count) {
    struct chunk *chunk = mem_alloc(x->mem, chunk_bytes(col_count));
    if (!chunk) {
        return NULL;
    }
    memset(chunk, 0, (size_t)chunk_bytes(col_count));
    chunk->cols = (struct column *)(void *)(chunk + 1);
    chunk->buffers = (struct buffer **)(void *)(chunk->cols + col_count);
    chunk->col_count = col_count;
    chunk->mem = x->mem;
    return chunk;
}

void chunk_pass(const struct chunk *chunk, i64 first, i64 rows) {
    for (u32 c = 0; c < chunk->col_count && chunk->mem->temp; c++) {
        const struct column *col = &chunk->cols[c];
        i64 width = kind_bytes[col->kind];
        mem_pass(chunk->mem, (const u8 *)col->data + first * width, rows * width);
        if (col->nulls) {
            mem_pass(chunk->mem, col->nulls + first, rows);
        }
    }
}

struct chunk *chunk_new(struct exec *x, const struct var *var, i64 rows, bool with_nulls) {
    struct chunk *chunk = chunk_view_new(x, var->col_count);
    if (!chunk) {
        return NULL;
    }
    chunk->rows = rows;
    for (u32 c = 0; c < var->col_count; c++) {
        struct column *col = &chunk->cols[c];
        col->kind = var->kinds[c];
        struct buffer *data = buffer_new(x->mem, MAX_OF(rows, 1) * kind_bytes[col->kind]);
        struct buffer *nulls = with_nulls ? buffer_new(x->mem, MAX_OF(rows, 1)) : NULL;
        chunk->buffers[2 * c] = data;
        chunk->buffers[2 * c + 1] = nulls;
        if (!data || (with_nulls && !nulls)) {
            chunk_release(chunk);
            return NULL;
        }
        col->data = data->data;
        col->nulls = nulls ? nulls->data : NULL;
    }
    return chunk;
}

void chunk_release(struct chunk *chunk) {
    if (!chunk) {
        return;
    }
    for (u32 c = 0; c < 2 * chunk->col_count; c++) {
        buffer_release(chunk->buffers[c]);
    }
    mem_free(chunk->mem, chunk, chunk_bytes(chunk->col_count));
}

void variable_append(struct exec *x, u32 var, struct chunk *chunk) {
    struct variable *v = &x->vars[var];
    ASSERT(chunk->rows >= 0);
    mutex_lock(&x->lock);
    VEC_PUSH(exec_arena(x), &v->chunks, chunk);
    v->rows += chunk->rows;
    v->on_host = 1;
    mutex_unlock(&x->lock);
}

void variable_keep_heap(struct exec *x, u32 var, struct buffer *heap) {
    mutex_lock(&x->lock);
    VEC_PUSH(exec_arena(x), &x->vars[var].heaps, heap);
    mutex_unlock(&x->lock);
}

struct heap_room variable_take_heap(struct exec *x, u32 var) {
    struct heap_room room = {0};
    mutex_lock(&x->lock);
    struct variable *v = &x->vars[var];
    if (v->heap_rooms.count) {
        room = v->heap_rooms.items[--v->heap_rooms.count];
    }
    mutex_unlock(&x->lock);
    return room;
}

void variable_give_heap(struct exec *x, u32 var, struct heap_room room) {
    ASSERT(room.used >= 0 && room.used <= room.heap->bytes);
    mutex_lock(&x->lock);
    VEC_PUSH(exec_arena(x), &x->vars[var].heap_rooms, room);
    mutex_unlock(&x->lock);
}

/* Puts a heap into a table of those that are there; false: it was there. */
static bool heap_put(struct buffer **places, i64 mask, struct buffer *heap) {
    i64 at = (i64)(hash_u64((u64)(size_t)heap) & (u64)mask);
    while (places[at] && places[at] != heap) {
        at = (at + 1) & mask;
    }
    bool fresh = !places[at];
    places[at] = heap;
    return fresh;
}

/* Rounds of a recursion take heaps of what they read again and again: those that are there stay once. */
void variable_keep_heaps(struct exec *x, u32 var, u32 from) {
    from = x->vars[from].view_of ? x->vars[from].view_of - 1 : from;
    i64 count = var != from ? x->vars[from].heaps.count : 0;
    i64 had = x->vars[var].heaps.count;
    i64 room = 1;
    while (room < 2 * (count + had)) {
        room *= 2;
    }
    struct buffer **places = NULL;
    if (count > 0 && had > 0) { /* without memory for it some are there twice */
        places = mem_alloc(x->mem, room * (i64)sizeof *places);
    }
    if (places) {
        memset(places, 0, (size_t)room * sizeof *places);
    }
    for (i64 i = 0; places && i < had; i++) {
        (void)heap_put(places, room - 1, x->vars[var].heaps.items[i]);
    }
    for (i64 i = 0; i < count; i++) {
        struct buffer *heap = x->vars[from].heaps.items[i];
        if (!places || heap_put(places, room - 1, heap)) {
            variable_keep_heap(x, var, buffer_retain(heap));
        }
    }
    mem_free(x->mem, places, room * (i64)sizeof *places);
}

struct index *index_new(struct exec *x, u32 var) {
    struct variable *v = &x->vars[var];
    ASSERT(v->index == NULL);
    if (!v->spare_index) {
        mutex_lock(&x->lock);
        v->spare_index = NEW(exec_arena(x), struct index);
        mutex_unlock(&x->lock);
    }
    v->index = v->spare_index;
    v->spare_index = NULL;
    *v->index = (struct index){0};
    return v->index;
}

/* A loop asks for the last rows of many a million times. */
i64 variable_chunk(const struct variable *var, i64 row, i64 *out_first) {
    i64 at = var->chunks.count;
    i64 first = var->rows;
    while (at > 0 && first > row) {
        first -= var->chunks.items[--at]->rows;
    }
    *out_first = first;
    return at;
}

static int by_order(const void *a, const void *b) {
    const struct chunk *ca = *(struct chunk *const *)a;
    const struct chunk *cb = *(struct chunk *const *)b;
    return ca->order < cb->order ? -1 : ca->order > cb->order;
}

static bool orders_differ(const struct variable *v) {
    bool differ = true;
    for (i64 i = 1; i < v->chunks.count && differ; i++) {
        differ = v->chunks.items[i - 1]->order < v->chunks.items[i]->order;
    }
    return differ;
}

void variable_order(struct exec *x, u32 var) {
    struct variable *v = &x->vars[var];
    if (v->chunks.count > 1) {
        qsort(v->chunks.items, (size_t)v->chunks.count, sizeof(struct chunk *), by_order);
    }
    ASSERT(orders_differ(v)); /* or the order of rows would depend on who came first */
}

static bool column_has_nulls(const struct variable *v, u32 col) {
    for (i64 i = 0; i < v->chunks.count; i++) {
        if (v->chunks.items[i]->cols[col].nulls) {
            return true;
        }
    }
    return false;
}

struct flatten {
    const struct variable *v;
    struct chunk *out;
    u32 col;
    i64 *starts; /* where each chunk goes */
};

/* A column of one chunk to its place. */
static void flatten_chunk(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    const struct flatten *f = arg;
    const struct chunk *from = f->v->chunks.items[i];
    const struct column *to = &f->out->cols[f->col];
    const struct column *col = &from->cols[f->col];
    i64 width = kind_bytes[to->kind];
    if (from->rows == 0) {
        return;
    }
    if (f->out->mem->temp) {
        temp_cool(f->out->mem->temp);
    }
    mem_copy(f->out->mem, (u8 *)to->data + f->starts[i] * width, col->data, from->rows * width);
    mem_pass(f->out->mem, col->data, from->rows * width);
    if (to->nulls && col->nulls) {
        memcpy(to->nulls + f->starts[i], col->nulls, (size_t)from->rows);
    } else if (to->nulls) {
        memset(to->nulls + f->starts[i], 0, (size_t)from->rows);
    }
}

static FALLIBLE flatten_column(struct exec *x, struct flatten *f, u32 c) {
    const struct variable *v = f->v;
    struct chunk *out = f->out;
    bool nulls = column_has_nulls(v, c);
    i64 width = kind_bytes[out->cols[c].kind];
    i64 room = MAX_OF(out->room, 1);
    out->buffers[2 * c] = buffer_new(x->mem, room * width);
    out->buffers[2 * c + 1] = nulls ? buffer_new(x->mem, room) : NULL;
    if (!out->buffers[2 * c] || (nulls && !out->buffers[2 * c + 1])) {
        return memory_refused(x->mem, x->err, room * width);
    }
    out->cols[c].data = out->buffers[2 * c]->data;
    out->cols[c].nulls = nulls ? out->buffers[2 * c + 1]->data : NULL;
    f->col = c;
    if (x->pool && v->rows >= PARALLEL_ROWS) {
        pool_run(x->pool, v->chunks.count, flatten_chunk, f);
    } else {
        for (i64 i = 0; i < v->chunks.count; i++) {
            flatten_chunk(f, i, 0);
        }
    }
    return ERR_OK;
}

/* The chunks' share of a column that has its new place. */
static void drop_column(struct variable *v, u32 c) {
    for (i64 i = 0; i < v->chunks.count; i++) {
        struct chunk *chunk = v->chunks.items[i];
        buffer_release(chunk->buffers[2 * c]);
        buffer_release(chunk->buffers[2 * c + 1]);
        chunk->buffers[2 * c] = chunk->buffers[2 * c + 1] = NULL;
        chunk->cols[c].data = NULL;
        chunk->cols[c].nulls = NULL;
    }
}

/* Whether the first chunk has room for the others. */
static bool has_room(const struct variable *v, u32 col_count) {
    const struct chunk *first = v->chunks.count ? v->chunks.items[0] : NULL;
    bool room = first && first->room >= v->rows;
    for (u32 c = 0; c < col_count && room; c++) {
        room = first->cols[c].nulls || !column_has_nulls(v, c);
    }
    return room;
}

/* Rows that came since the variable was flat go behind those that there were. */
static void flatten_rest(struct variable *v, u32 col_count, i64 *starts) {
    struct flatten f = {.v = v, .out = v->chunks.items[0], .starts = starts};
    for (i64 i = 1; i < v->chunks.count; i++) {
        for (f.col = 0; f.col < col_count; f.col++) {
            flatten_chunk(&f, i, 0);
        }
        chunk_release(v->chunks.items[i]);
    }
    f.out->rows = v->rows;
    v->chunks.count = 1;
}

wf_status variable_flatten(struct exec *x, u32 var) {
    struct variable *v = &x->vars[var];
    const struct var *def = &x->program->vars[var];
    if (v->chunks.count == 1) {
        return ERR_OK;
    }
    i64 *starts = NEW_ARRAY(x->arena, i64, v->chunks.count + 1);
    for (i64 i = 0; i < v->chunks.count; i++) {
        starts[i + 1] = starts[i] + v->chunks.items[i]->rows;
    }
    if (has_room(v, def->col_count)) {
        flatten_rest(v, def->col_count, starts);
        return ERR_OK;
    }
    struct chunk *out = chunk_view_new(x, def->col_count);
    if (!out) {
        return memory_refused(x->mem, x->err, chunk_bytes(def->col_count));
    }
    bool again = v->chunks.count && v->chunks.items[0]->room; /* more may come as often */
    out->rows = v->rows;
    out->room = again ? 2 * v->rows : v->rows;
    struct flatten f = {.v = v, .out = out, .starts = starts};
    wf_status status = ERR_OK;
    for (u32 c = 0; c < def->col_count && !status; c++) {
        out->cols[c].kind = def->kinds[c];
        status = flatten_column(x, &f, c);
        if (!status) { /* no more than one column is there twice */
            drop_column(v, c);
        }
    }
    if (status) {
        chunk_release(out);
        return status;
    }
    for (i64 i = 0; i < v->chunks.count; i++) {
        chunk_release(v->chunks.items[i]);
    }
    v->chunks.count = 0;
    VEC_PUSH(exec_arena(x), &v->chunks, out);
    return ERR_OK;
}

void variable_drop_copy(struct variable *var) {
    if (var->copy && var->copy_release) {
        var->copy_release(var->copy);
    }
    var->copy = NULL;
}

void variable_reset(struct variable *var) {
    variable_drop_copy(var);
    for (i64 i = 0; i < var->chunks.count; i++) {
        chunk_release(var->chunks.items[i]);
    }
    var->chunks.count = 0;
    for (i64 i = 0; i < var->heaps.count; i++) {
        buffer_release(var->heaps.items[i]);
    }
    var->heaps.count = 0;
    var->heap_rooms.count = 0;
    if (var->index) {
        index_release(var->mem, var->index);
        var->spare_index = var->index;
        var->index = NULL;
    }
    kept_trie_release(var->kept);
    var->kept = NULL;
    var->levels = NULL;
    var->chain = NULL;
    key_set_close(var->keys);
    var->keys = NULL;
    mem_free(var->mem, var->lut, var->lut_bytes);
    var->lut = NULL;
    var->lut_len = 0;
    var->lut_bytes = 0;
    var->rows = 0;
    var->view_of = 0;
    var->on_host = 0;
}

void variable_release(struct variable *var) {
    variable_reset(var);
    dict_release(var->dict);
    var->dict = NULL;
    pair_map_close(var->pairs);
    var->pairs = NULL;
}

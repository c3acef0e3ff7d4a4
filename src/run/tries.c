/* tries.c: what is kept of versions, and whose memory it is.
 *
 * Something kept is counted blocks of the database's budget. Variables that have it are its users; without any
 * it is idle. One lock for all: what it guards is short, and nothing is allocated or freed under it, since
 * whoever needs memory may come here for it. */
#include "run/tries.h"

#include "run/run_int.h"

enum { KEPT_SHARE = 4 }; /* of the budget, at most */

struct kept_trie {
    struct tries *tries;
    struct table_version *version;   /* NULL: it is in no list, and goes with its last user */
    struct kept_trie *next;          /* of the version */
    struct kept_trie *newer, *older; /* of all, by when they were used */
    i32 users;
    i64 bytes;     /* as the budget counts them */
    i64 own_bytes; /* of this block */
    struct sv key;
    i64 rows;
    u32 col_count;
    u8 *kinds;
    struct buffer **buffers; /* two a column, as a chunk has them */
    struct index index;
    struct kept_graph *graph; /* instead of them */
    struct kept_far *far;     /* or this: none of its bytes are of the budget */
};

struct tries {
    struct memory *mem;
    struct mutex lock;
    struct kept_trie *newest, *oldest;
    i64 bytes;
};

/* --- lists, under the lock --- */

static void unlist(struct tries *t, struct kept_trie *k) {
    *(k->newer ? &k->newer->older : &t->newest) = k->older;
    *(k->older ? &k->older->newer : &t->oldest) = k->newer;
}

static void list_newest(struct tries *t, struct kept_trie *k) {
    k->newer = NULL;
    k->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = k;
    t->newest = k;
}

static u32 space_of(const struct kept_trie *k) {
    return k->far ? k->far->space : 0;
}

/* Whose bytes these are. */
static u32 memory_of(const struct kept_trie *k) {
    return k->far && k->far->in_host ? 0 : space_of(k);
}

static struct kept_trie *find(const struct table_version *version, struct sv key, u32 space) {
    struct kept_trie *k = version->kept;
    while (k && (space_of(k) != space || !sv_eq(k->key, key))) {
        k = k->next;
    }
    return k;
}

/* From its version and all lists; its bytes are then used. */
static void unlink_kept(struct kept_trie *k) {
    struct kept_trie **at = &k->version->kept;
    while (*at != k) {
        at = &(*at)->next;
    }
    *at = k->next;
    k->next = NULL;
    k->version = NULL;
    unlist(k->tries, k);
    k->tries->bytes -= k->bytes;
    if (k->users == 0) {
        memory_wake(k->tries->mem, IDLE_TRIES, k->bytes);
    }
}

/* The least recently used of a memory that nobody uses, out of all lists; NULL: all are used. */
static struct kept_trie *take_oldest(struct tries *t, u32 space) {
    struct kept_trie *k = t->oldest;
    while (k && (k->users > 0 || memory_of(k) != space)) {
        k = k->newer;
    }
    if (k) {
        unlink_kept(k);
    }
    return k;
}

/* --- the end of one --- */

static void free_arrays(struct memory *mem, struct index *index) {
    index->kept = NULL;
    index_release(mem, index);
}

static void free_kept(struct kept_trie *k) {
    struct memory *mem = k->tries->mem;
    for (u32 i = 0; i < 2 * k->col_count; i++) {
        buffer_release(k->buffers[i]);
    }
    if (k->far) {
        k->far->free(k->far);
    } else if (k->graph) {
        k->graph->free(mem, k->graph);
    } else {
        free_arrays(mem, &k->index);
    }
    mem_free(mem, k, k->own_bytes);
}

static void free_all(struct kept_trie *gone) {
    while (gone) {
        struct kept_trie *next = gone->next;
        free_kept(gone);
        gone = next;
    }
}

static void give_back(void *owner, i64 bytes) {
    struct tries *t = owner;
    struct kept_trie *gone = NULL;
    mutex_lock(&t->lock);
    while (bytes > 0) {
        struct kept_trie *k = take_oldest(t, 0);
        if (!k) {
            break;
        }
        bytes -= k->bytes;
        k->next = gone;
        gone = k;
    }
    mutex_unlock(&t->lock);
    free_all(gone);
}

void kept_trie_release(struct kept_trie *k) {
    if (!k) {
        return;
    }
    struct tries *t = k->tries;
    mutex_lock(&t->lock);
    ASSERT(k->users > 0);
    bool last = --k->users == 0;
    bool gone = last && !k->version;
    if (last && !gone) {
        memory_rest(t->mem, IDLE_TRIES, k->bytes);
    }
    mutex_unlock(&t->lock);
    if (gone) {
        free_kept(k);
    }
}

/* The version is about to go. */
static void drop_kept(struct table_version *version) {
    struct kept_trie *gone = NULL;
    struct tries *t = version->kept_in;
    mutex_lock(&t->lock);
    while (version->kept) {
        struct kept_trie *k = version->kept;
        unlink_kept(k);
        if (k->users == 0) {
            k->next = gone;
            gone = k;
        }
    }
    mutex_unlock(&t->lock);
    free_all(gone);
}

/* --- all of them --- */

struct tries *tries_open(struct memory *mem) {
    struct tries *t = mem_alloc(mem, (i64)sizeof *t);
    if (!t) {
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->mem = mem;
    mutex_init(&t->lock);
    mem->idle[IDLE_TRIES].owner = t;
    mem->idle[IDLE_TRIES].give_back = give_back;
    return t;
}

void tries_close(struct tries *t) {
    if (!t) {
        return;
    }
    ASSERT(!t->newest); /* versions are gone */
    t->mem->idle[IDLE_TRIES].give_back = NULL;
    t->mem->idle[IDLE_TRIES].owner = NULL;
    mutex_fini(&t->lock);
    mem_free(t->mem, t, (i64)sizeof *t);
}

/* --- taking --- */

/* One more user, or several. */
static struct kept_trie *take(struct tries *t, const struct table_version *version, struct sv key,
                              u32 space, i32 users) {
    mutex_lock(&t->lock);
    struct kept_trie *k = find(version, key, space);
    if (k) {
        if (k->users == 0) {
            memory_wake(t->mem, IDLE_TRIES, k->bytes);
        }
        k->users += users;
        unlist(t, k);
        list_newest(t, k);
    }
    mutex_unlock(&t->lock);
    return k;
}

static bool lend_rows(struct exec *x, const struct trie_chain *chain, struct kept_trie *k) {
    struct variable *rows = &x->vars[chain->rows], *index = &x->vars[chain->index];
    struct chunk *chunk = chunk_view_new(x, k->col_count);
    if (!chunk) {
        return false;
    }
    for (u32 c = 0; c < k->col_count; c++) {
        struct buffer *data = k->buffers[2 * c], *nulls = k->buffers[2 * c + 1];
        chunk->buffers[2 * c] = buffer_retain(data);
        chunk->buffers[2 * c + 1] = nulls ? buffer_retain(nulls) : NULL;
        chunk->cols[c] = (struct column){k->kinds[c], data->data, nulls ? nulls->data : NULL};
    }
    chunk->rows = k->rows;
    variable_append(x, chain->rows, chunk);
    rows->kept = k;
    *index_new(x, chain->index) = k->index;
    index->index->kept = k;
    index->rows = k->rows;
    index->on_host = 1;
    return true;
}

bool tries_take(struct exec *x, const struct trie_chain *chain) {
    bool graph = chain->index == NO_VAR;
    struct kept_trie *k =
        x->tries ? take(x->tries, x->versions[chain->table], chain->key, 0, graph ? 1 : 2) : NULL;
    if (!k) {
        return false;
    }
    if (graph) {
        x->vars[chain->rows].kept = k;
        x->vars[chain->rows].rows = k->rows;
        x->vars[chain->rows].on_host = 1;
        return true;
    }
    if (!lend_rows(x, chain, k)) {
        kept_trie_release(k);
        kept_trie_release(k);
        return false;
    }
    return true;
}

struct kept_graph *variable_graph(const struct variable *var) {
    return var->kept ? var->kept->graph : NULL;
}

/* --- keeping --- */

static i64 share_of(const struct tries *t) {
    return t->mem->limit_bytes ? t->mem->limit_bytes / KEPT_SHARE : I64_MAX;
}

/* Makes room among those that nobody uses. */
static bool make_room(struct tries *t, i64 bytes) {
    struct kept_trie *gone = NULL;
    mutex_lock(&t->lock);
    bool fits = bytes <= share_of(t);
    while (fits && t->bytes + bytes > share_of(t)) {
        struct kept_trie *k = take_oldest(t, 0);
        fits = k != NULL;
        if (k) {
            k->next = gone;
            gone = k;
        }
    }
    mutex_unlock(&t->lock);
    free_all(gone);
    return fits;
}

static struct kept_trie *kept_new(struct tries *t, struct sv key, u32 col_count) {
    i64 buffers_at = ALIGN_UP((i64)sizeof(struct kept_trie), 16);
    i64 kinds_at = buffers_at + 2 * (i64)col_count * (i64)sizeof(struct buffer *);
    i64 key_at = kinds_at + col_count;
    i64 bytes = key_at + key.len;
    u8 *block = mem_alloc(t->mem, bytes);
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    struct kept_trie *k = (struct kept_trie *)(void *)block;
    k->tries = t;
    k->own_bytes = bytes;
    k->bytes = mem_size(bytes);
    k->buffers = (struct buffer **)(void *)(block + buffers_at);
    k->kinds = block + kinds_at;
    k->col_count = col_count;
    k->key = (struct sv){(char *)block + key_at, key.len};
    memcpy(block + key_at, key.ptr, (size_t)key.len);
    return k;
}

/* With so many users; false: somebody was faster, and its own block is gone. */
static bool publish(struct kept_trie *k, struct table_version *version, i32 users) {
    struct tries *t = k->tries;
    mutex_lock(&t->lock);
    bool first = !find(version, k->key, space_of(k));
    if (first) {
        k->users = users;
        k->version = version;
        k->next = version->kept;
        version->kept = k;
        version->kept_in = t;
        version->drop_kept = drop_kept;
        list_newest(t, k);
        t->bytes += k->bytes;
    }
    mutex_unlock(&t->lock);
    return first;
}

i64 kept_trie_own(struct exec *x, i64 bytes) {
    memory_lift(x->mem, mem_size(bytes));
    return mem_size(bytes);
}

struct array {
    const void *data;
    i64 bytes;
};
enum { ARRAYS = 6 };

static i64 parts_of(const struct index *index) {
    return index->form == INDEX_CHAIN ? index->part_count : 1;
}

/* Those of a part; the whole index, or the first part, has the list of parts, too. */
static void index_arrays(const struct index *whole, i64 number, struct array out[ARRAYS]) {
    const struct index *index = whole->parts ? &whole->parts[number] : whole;
    out[0] = (struct array){index->slots, index->slot_count * (i64)sizeof(struct hash_slot)};
    out[1] = (struct array){index->blocks, index->block_count * (i64)sizeof(struct rank_block)};
    out[2] = (struct array){index->heads, index->head_count * (i64)sizeof(u32)};
    out[3] = (struct array){index->rows, index->row_count * (i64)sizeof(u32)};
    out[4] = (struct array){index->filter, index_filter_bytes(index)};
    out[5] = (struct array){number ? NULL : whole->parts, whole->part_count * (i64)sizeof *whole};
}

/* Bytes of the chain's rows and index; 0: they are not all blocks of the statement's memory, or others have
 * them, too. */
static i64 bytes_to_keep(struct exec *x, const struct trie_chain *chain) {
    const struct variable *rows = &x->vars[chain->rows];
    const struct index *index = x->vars[chain->index].index;
    struct array arrays[ARRAYS];
    if (!rows->on_host || rows->chunks.count != 1 || rows->heaps.count || rows->kept || !index ||
        index->class_bits || index->kept || x->vars[chain->index].mem != x->mem) {
        return 0;
    }
    const struct chunk *chunk = rows->chunks.items[0];
    i64 bytes = 0;
    bool ok = chunk->rows == rows->rows;
    for (u32 i = 0; ok && i < 2 * chunk->col_count; i++) {
        const struct buffer *buf = chunk->buffers[i];
        ok = !buf || (atomic_load(&buf->refs) == 1 && !buf->free_data && buf->mem == x->mem &&
                      !mem_in_temp(x->mem, buf->data));
        bytes += buf ? mem_size(buf->bytes + BUFFER_PAD) : 0;
    }
    for (u32 c = 0; ok && c < chunk->col_count; c++) {
        ok = chunk->buffers[2 * c] && chunk->cols[c].data == chunk->buffers[2 * c]->data;
    }
    for (i64 p = 0; ok && p < parts_of(index); p++) {
        index_arrays(index, p, arrays);
        for (i32 i = 0; ok && i < ARRAYS; i++) {
            ok = !arrays[i].data || !mem_in_temp(x->mem, arrays[i].data);
            bytes += arrays[i].data ? mem_size(arrays[i].bytes) : 0;
        }
    }
    return ok ? bytes : 0;
}

/* Blocks become the database's, as soon as they are kept. */
static void hand_over(struct exec *x, const struct trie_chain *chain, struct kept_trie *k) {
    struct index *index = x->vars[chain->index].index;
    struct array arrays[ARRAYS];
    for (u32 i = 0; i < 2 * k->col_count; i++) {
        if (k->buffers[i]) {
            (void)kept_trie_own(x, k->buffers[i]->bytes + BUFFER_PAD);
            k->buffers[i]->mem = k->tries->mem;
        }
    }
    for (i64 p = 0; p < parts_of(index); p++) {
        index_arrays(index, p, arrays);
        for (i32 i = 0; i < ARRAYS; i++) {
            if (arrays[i].data) {
                (void)kept_trie_own(x, arrays[i].bytes);
            }
        }
    }
    index->kept = k;
    x->vars[chain->rows].kept = k;
}

static void keep_rows(struct exec *x, const struct trie_chain *chain) {
    const struct chunk *chunk =
        x->vars[chain->rows].rows ? x->vars[chain->rows].chunks.items[0] : NULL;
    i64 bytes = chunk ? bytes_to_keep(x, chain) : 0;
    struct kept_trie *k = bytes && make_room(x->tries, bytes)
                              ? kept_new(x->tries, chain->key, chunk->col_count)
                              : NULL;
    if (!k) {
        return;
    }
    k->rows = chunk->rows;
    k->index = *x->vars[chain->index].index;
    k->bytes += bytes;
    for (u32 c = 0; c < chunk->col_count; c++) {
        k->kinds[c] = chunk->cols[c].kind;
    }
    for (u32 i = 0; i < 2 * chunk->col_count; i++) {
        k->buffers[i] = chunk->buffers[i] ? buffer_retain(chunk->buffers[i]) : NULL;
    }
    if (publish(k, x->versions[chain->table], 2)) {
        hand_over(x, chain, k);
        return;
    }
    for (u32 i = 0; i < 2 * chunk->col_count; i++) {
        buffer_release(k->buffers[i]);
    }
    mem_free(x->tries->mem, k, k->own_bytes);
}

void tries_keep(struct exec *x, const struct trie_chain *chain) {
    if (!x->tries || x->versions[chain->table]->is_delta) {
        return;
    }
    if (chain->index != NO_VAR) {
        keep_rows(x, chain);
        return;
    }
    struct trie_chain *copy = NEW(exec_arena(x), struct trie_chain);
    *copy = *chain;
    x->vars[chain->rows].chain = copy;
}

bool tries_keep_graph(struct exec *x, u32 var, i64 bytes,
                      struct kept_graph *(*make)(struct exec *x, void *arg), void *arg) {
    struct variable *v = &x->vars[var];
    const struct trie_chain *chain = v->chain;
    struct kept_trie *k = chain && x->tries && !v->kept && make_room(x->tries, bytes)
                              ? kept_new(x->tries, chain->key, 0)
                              : NULL;
    if (!k) {
        return false;
    }
    k->rows = v->rows;
    k->bytes += bytes;
    k->graph = make(x, arg);
    if (!k->graph) {
        mem_free(x->tries->mem, k, k->own_bytes);
        return false;
    }
    if (!publish(k, x->versions[chain->table], 1)) {
        free_kept(k);
        return true;
    }
    v->kept = k;
    return true;
}

/* --- in the memory of a device --- */

struct kept_far *kept_trie_far(const struct kept_trie *kept) {
    return kept ? kept->far : NULL;
}

struct kept_trie *tries_take_far(struct exec *x, const struct trie_chain *chain, u32 space, i32 users) {
    return x->tries ? take(x->tries, x->versions[chain->table], chain->key, space, users) : NULL;
}

struct kept_trie *tries_keep_far(struct exec *x, const struct trie_chain *chain, struct kept_far *far,
                                 i32 users) {
    struct table_version *version = x->versions[chain->table];
    bool may = x->tries && !version->is_delta && (!far->in_host || make_room(x->tries, far->bytes));
    struct kept_trie *k = may ? kept_new(x->tries, chain->key, 0) : NULL;
    if (!k) {
        return NULL;
    }
    /* Its own are few, and not idle unless others are. */
    k->bytes = far->in_host ? k->bytes + far->bytes : 0;
    k->far = far;
    k->rows = far->rows;
    if (!publish(k, version, users)) {
        mem_free(x->tries->mem, k, k->own_bytes);
        return NULL;
    }
    return k;
}

void tries_forget(struct kept_trie *k) {
    mutex_lock(&k->tries->lock);
    if (k->version) {
        unlink_kept(k);
    }
    mutex_unlock(&k->tries->lock);
}

i64 tries_drop_far(struct tries *t, u32 space) {
    mutex_lock(&t->lock);
    struct kept_trie *k = take_oldest(t, space);
    mutex_unlock(&t->lock);
    i64 bytes = k ? MAX_OF(k->far->bytes, 1) : 0;
    if (k) {
        free_kept(k);
    }
    return bytes;
}

void tries_far_bytes(struct tries *t, u32 space, i64 *out_all, i64 *out_idle) {
    *out_all = *out_idle = 0;
    mutex_lock(&t->lock);
    for (const struct kept_trie *k = t->oldest; k; k = k->newer) {
        bool there = space && memory_of(k) == space;
        *out_all += there ? k->far->bytes : 0;
        *out_idle += there && k->users == 0 ? k->far->bytes : 0;
    }
    mutex_unlock(&t->lock);
}

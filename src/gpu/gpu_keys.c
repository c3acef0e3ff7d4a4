/* gpu_keys.c: sets of keys that are tables: of a recursion's rows whose keys have too many bits for a bitmap.
 *
 * A table has at least twice as many places as rows have room, and some for keys whose rows found none
 * and took them out again: kernels add no keys where rows have no room any more (keys_add in
 * kernels/block.h), so those are at most as many as a card has rows in flight. When rows get more room
 * the keys move to a larger table. */
#include "gpu/gpu_int.h"

#include "defs/host_words.h"
#include "defs/fn_table.h"

#define KEYS_IN_FLIGHT (1LL << 20)
#define KEYS_IN_FLIGHT_SIMT 64LL

i64 gpu_keys_places(const struct gpu *g, i64 rows) {
    i64 least = 2 * rows + (g->api->is_simt ? KEYS_IN_FLIGHT_SIMT : KEYS_IN_FLIGHT);
    i64 places = 1;
    while (places < least) {
        places *= 2;
    }
    return places;
}

i64 gpu_keys_bytes(i64 places) {
    return (places + KEYS_APART) * (i64)sizeof(u64);
}

/* The host's keys in a table, there. */
static FALLIBLE send_keys(struct gpu *g, struct exec *x, struct gpu_var *set, struct key_set *keys,
                          i64 *moved) {
    struct error *err = x->err;
    i64 bytes = gpu_keys_bytes(set->set_places);
    u64 *places = mem_alloc(x->mem, bytes);
    if (!places) {
        return memory_refused(x->mem, err, bytes);
    }
    memset(places, 0, (size_t)bytes);
    u64 mask = (u64)set->set_places - 1;
    i64 key = 0;
    for (struct key_walk at = key_set_walk(keys); key_set_next(&at, &key);) {
        u64 word = (u64)key + 1u;
        if (word + 1u <= 1u) {
            places[mask + 1u + (word & 1u)] = 1;
            continue;
        }
        u64 slot = hash_64((u64)key) & mask;
        while (places[slot]) {
            slot = (slot + 1u) & mask;
        }
        places[slot] = word;
    }
    wf_status status = gpu_upload(g, set->heads->addr, places, bytes, NULL, g->streams[0], err);
    int code = gpu_sync(g, g->streams[0]);
    mem_free(x->mem, places, bytes);
    *moved += bytes;
    TRY(status);
    return gpu_check(g->card, code, "stream_synchronize", err);
}

wf_status gpu_keys_new(struct gpu *g, struct exec *x, struct gpu_var *set, struct key_set *keys,
                       i64 *moved) {
    struct error *err = x->err;
    set->set_places = gpu_keys_places(g, keys ? key_set_count(keys) : 0);
    i64 bytes = gpu_keys_bytes(set->set_places);
    TRY(gpu_alloc(g, bytes, &set->heads, err));
    if (keys) {
        return send_keys(g, x, set, keys, moved);
    }
    CU(g->api->set_bytes(set->heads->addr, 0, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

wf_status gpu_keys_grow(struct gpu *g, struct exec *x, struct gpu_block **table, i64 had,
                        i64 places) {
    struct error *err = x->err;
    struct gpu_block *block = NULL;
    void *function = NULL;
    TRY(gpu_kernel(g->card, KERNEL_KEYS_MOVE, x, &function, err));
    TRY(gpu_alloc(g, gpu_keys_bytes(places), &block, err));
    struct kkeys args = {.from = DEV(const u64 *, (*table)->addr),
                         .to = DEV(u64 *, block->addr),
                         .from_count = (u64)had,
                         .to_mask = (u64)places - 1};
    i64 blocks = MIN_OF(had / BLOCK_THREADS + 1, (i64)g->card->sm_count * 8);
    int code = g->api->set_bytes(block->addr, 0, (size_t)gpu_keys_bytes(places), g->streams[0]);
    wf_status status = gpu_check(g->card, code, "set_bytes", err);
    if (!status) {
        status = gpu_launch(g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0},
                            g->streams[0], &args, err);
    }
    if (!status) {
        status = gpu_check(g->card, gpu_sync(g, g->streams[0]), "stream_synchronize", err);
    }
    if (status) {
        gpu_wait(g);
        gpu_heap_free(g->card, block);
        return status;
    }
    gpu_heap_free(g->card, *table);
    *table = block;
    return ERR_OK;
}

/* Adds what a table has of a few places; false when memory is refused. */
static bool take_keys(struct key_set *keys, const u64 *places, i64 count) {
    enum { MANY = 1024 };
    i64 some[MANY];
    u32 fresh[MANY];
    bool fine = true;
    for (i64 i = 0; i < count && fine;) {
        i64 n = 0;
        for (; i < count && n < MANY; i++) {
            some[n] = (i64)(places[i] - 1u);
            n += places[i] != 0 && places[i] != KEYS_GONE;
        }
        struct key_rows rows = {.keys = some};
        fine = key_set_add(keys, &rows, NULL, n, fresh) >= 0;
    }
    return fine;
}

wf_status gpu_keys_fetch(struct gpu *g, struct exec *x, struct variable *v,
                         const struct gpu_var *set) {
    struct error *err = x->err;
    i64 bytes = gpu_keys_bytes(set->set_places);
    struct key_set *keys = key_set_open(x->mem, set->set_bits, KEY_ONLY);
    u64 *places = keys ? mem_alloc(x->mem, bytes) : NULL;
    wf_status status = ERR_OK;
    if (places) {
        int code = g->api->copy_to_host(places, set->heads->addr, (size_t)bytes, g->streams[0]);
        code = code ? code : gpu_sync(g, g->streams[0]);
        status = gpu_check(g->card, code, "copy_to_host", err);
    }
    bool fine = places && !status && take_keys(keys, places, set->set_places);
    for (u32 apart = 0; fine && apart < KEYS_APART; apart++) {
        i64 key = -1 - (i64)apart;
        u32 fresh = 0;
        struct key_rows rows = {.keys = &key};
        bool there = places[set->set_places + apart] != 0;
        fine = !there || key_set_add(keys, &rows, NULL, 1, &fresh) >= 0;
    }
    mem_free(x->mem, places, bytes);
    if (!fine) {
        key_set_close(keys);
        return status ? status : memory_refused(x->mem, err, bytes);
    }
    key_set_close(v->keys);
    v->keys = keys;
    v->on_host = 1;
    return ERR_OK;
}

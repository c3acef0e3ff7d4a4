/* key_twins.c: rows that agree in a key, among more rows than memory has an index for.
 *
 * ALTER TABLE, CREATE UNIQUE INDEX and loads into a file have many rows at once whose keys lie in the file with
 * them. They are looked at in passes: each takes the rows whose hash falls to it into one table of whole hashes
 * and row numbers, of as much memory as there is, and reads every tablet once, one after the other. Rows of one
 * hash are the only ones whose keys are compared. The row that is named is the first that has a twin before it, or one
 * that was there already, however many passes there were. See decision 0066. */
#include "store/key_int.h"

enum {
    LEFT_SHARE = 2, /* of the memory that is left, for the table */
    ENTRIES_LEAST = 1 << 10,
#ifdef WF_HARD
    ENTRIES_MOST = 1 << 11,
#else
    ENTRIES_MOST = 1 << 30,
#endif
    SLOTS = 4, /* of which ROWS are to be used */
    ROWS = 3,
    FULL = 7, /* of 8 slots: there are more rows in a pass than there should be */
    PASSES_MOST = 1 << 16
};

struct entry {
    u64 hash;
    u64 row; /* + 1; 0 = free */
};

struct twins {
    struct memory *mem;
    const struct table *table;
    const struct table_key *key;
    const struct table_version *base, *mine;
    struct entry *slots;
    i64 cap, used;
    i64 pass, passes;
    i64 found; /* the least row that has a twin, as far as was seen; I64_MAX = none */
    bool overfull;
};

static i64 slots_bytes(i64 cap) {
    return cap * (i64)sizeof(struct entry);
}

/* As many slots as the rows need, or as there is memory for. */
static bool slots_open(struct twins *w, i64 rows) {
    i64 room = memory_left(w->mem) / LEFT_SHARE;
    w->cap = ENTRIES_LEAST;
    while (w->cap < rows * SLOTS / ROWS && slots_bytes(2 * w->cap) <= room &&
           w->cap < ENTRIES_MOST) {
        w->cap *= 2;
    }
    while (!w->slots && w->cap >= ENTRIES_LEAST) {
        w->slots = mem_alloc(w->mem, slots_bytes(w->cap));
        w->cap /= w->slots ? 1 : 2;
    }
    w->passes = w->slots ? (rows * SLOTS / ROWS + w->cap - 1) / w->cap : 0;
    w->passes = MAX_OF(w->passes, 1);
    return w->slots != NULL;
}

/* Whether base has the row, too. */
static bool is_old(const struct twins *w, i64 row) {
    if (!w->base) {
        return false;
    }
    i64 t = version_find_row(w->mine, row);
    return row - w->mine->row_starts[t] < version_first_new(w->base, w->mine, t);
}

/* A row's key as bytes; its columns are held only meanwhile. */
static FALLIBLE key_bytes(const struct twins *w, i64 row, struct text *out, struct error *err) {
    struct key_values values;
    struct pins pins;
    i64 t = version_find_row(w->mine, row);
    pins_init(&pins, w->mem);
    bool has = key_read(&pins, w->table, w->key, w->mine->tablets[t],
                        row - w->mine->row_starts[t], &values);
    for (u32 i = 0; i < w->key->col_count && has; i++) {
        key_append(out, w->table->cols[w->key->cols[i]].type, &values.v[i]);
    }
    wf_status status = pins_check(&pins, err);
    pins_fini(&pins);
    return status;
}

/* Pages of two tablets need not be in memory at once: what the caller holds goes. */
static FALLIBLE same_key(const struct twins *w, i64 a, i64 b, struct pins *held, bool *out,
                         struct error *err) {
    struct arena arena;
    struct text x, y;
    pins_fini(held);
    pins_init(held, w->mem);
    arena_init(&arena, w->mem);
    text_init(&x, &arena);
    text_init(&y, &arena);
    wf_status status = key_bytes(w, a, &x, err);
    status = status ? status : key_bytes(w, b, &y, err);
    status = status ? status : arena_check(&arena, err);
    *out = !status && x.len == y.len && memcmp(x.ptr, y.ptr, (size_t)x.len) == 0;
    arena_fini(&arena);
    return status;
}

/* A row among those before it. Of rows that cannot be the one that is named, one of a hash is enough. */
static FALLIBLE look(struct twins *w, u64 hash, i64 row, struct pins *held, struct error *err) {
    u64 mask = (u64)w->cap - 1, at = hash & mask;
    for (; w->slots[at].row; at = (at + 1) & mask) {
        if (w->slots[at].hash != hash) {
            continue;
        }
        i64 other = (i64)w->slots[at].row - 1; /* which comes before it */
        bool old = is_old(w, row), other_old = is_old(w, other), same;
        i64 named = old ? other : row;
        if (old && other_old) {
            continue; /* their keys differ: they were looked at when they came */
        }
        if (named >= w->found) {
            return ERR_OK;
        }
        TRY(same_key(w, row, other, held, &same, err));
        if (same) {
            w->found = named;
            return ERR_OK;
        }
    }
    w->overfull = w->overfull || ++w->used > w->cap / 8 * FULL;
    if (!w->overfull) {
        w->slots[at] = (struct entry){hash, (u64)row + 1};
    }
    return ERR_OK;
}

static FALLIBLE look_at_tablet(struct twins *w, i64 t, struct pins *pins, struct error *err) {
    const struct table_version *mine = w->mine;
    const u64 *deleted = version_deleted(mine, t);
    i64 rows = mine->tablet_rows[t];
    for (i64 from = 0; from < rows && !w->overfull; from += KEY_BATCH) {
        u64 hashes[KEY_BATCH];
        b8 has[KEY_BATCH];
        i64 n = MIN_OF(rows - from, KEY_BATCH);
        if (!key_hashes(pins, w->table, w->key, mine->tablets[t], from, n, hashes, has)) {
            return pins_check(pins, err);
        }
        for (i64 i = 0; i < n; i++) {
            i64 pos = from + i;
            bool dead = deleted && deleted[pos >> 6] >> (pos & 63) & 1;
            if (has[i] && !dead && (i64)((hashes[i] >> 32) % (u64)w->passes) == w->pass) {
                TRY(look(w, hashes[i], mine->row_starts[t] + pos, pins, err));
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE run_pass(struct twins *w, struct error *err) {
    wf_status status = ERR_OK;
    memset(w->slots, 0, (size_t)slots_bytes(w->cap));
    w->used = 0;
    for (i64 t = 0; t < w->mine->tablet_count && !status && !w->overfull; t++) {
        struct pins pins; /* of one tablet at a time */
        pins_init(&pins, w->mem);
        status = look_at_tablet(w, t, &pins, err);
        pins_fini(&pins);
    }
    return status;
}

wf_status version_find_twin(struct table *table, const struct table_key *key,
                            const struct table_version *base, const struct table_version *mine,
                            i64 *out_row, struct error *err) {
    struct twins w = {table->mem, table, key, base, mine, .found = I64_MAX};
    if (!slots_open(&w, mine->rows)) {
        return memory_refused(table->mem, err, slots_bytes(ENTRIES_LEAST));
    }
    wf_status status = ERR_OK;
    for (w.pass = 0; w.pass < w.passes && !status; w.pass++) {
        status = run_pass(&w, err);
        if (w.overfull) { /* hashes are not even: from the start, in smaller parts */
            w.overfull = false;
            w.passes *= 2;
            w.pass = -1;
            status = w.passes > PASSES_MOST ? memory_refused(table->mem, err, slots_bytes(w.cap))
                                            : status;
        }
    }
    mem_free(table->mem, w.slots, slots_bytes(w.cap));
    *out_row = w.found;
    return status;
}

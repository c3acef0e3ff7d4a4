/* key_meet.c: rows that are about to come, more than memory has an index for, among those a version has.
 *
 * INSERT … ON CONFLICT asks of every row that it proposes whether its key is there. One by one that
 * reads the version in no order. Here hashes of the keys, of the rows given and of the rows there, are
 * made once and lie in temporary space. A pass takes as many of the given rows, side by side, as a table
 * in memory has room for, and reads the hashes of those before them and of all that are there past it,
 * from the first to the last. Rows whose hashes are equal have their keys compared. See decision 0088. */
#include "store/key_int.h"

#include "base/stop.h"
#include "base/temp.h"

enum {
    LEFT_SHARE = 4, /* of the memory that is left, for the table */
    ENTRIES_LEAST = 1 << 10,
#ifdef WF_HARD
    ENTRIES_MOST = 1 << 11,
#else
    ENTRIES_MOST = 1 << 28,
#endif
    ROWS_PER_CHECK = STOP_EVERY(1 << 16)
};

struct entry {
    u64 hash; /* 0 = free */
    i64 row;
};

struct meeting {
    const struct table *table;
    const struct table_key *key;
    const struct table_version *version;
    struct memory *mem;
    const struct input_col *cols;
    i64 rows;
    u64 *given, *there; /* hashes by row; 0 = it has no key, or is gone */
    struct entry *slots;
    i64 cap;
    struct key_meets out;
    i64 tablet; /* whose columns are held; -1 = none */
    struct pins pins;
    struct arena arena;
    struct text own, other; /* keys that are compared */
};

/* False: it has a NULL. */
static bool given_key(const struct meeting *m, i64 row, struct key_values *out) {
    for (u32 i = 0; i < m->key->col_count; i++) {
        u32 c = m->key->cols[i];
        struct type type = m->table->cols[c].type;
        i64 width = kind_bytes[type_kind(type)];
        if (m->cols[c].nulls && m->cols[c].nulls[row]) {
            return false;
        }
        memcpy(&out->v[i], (const u8 *)m->cols[c].data + row * width, (size_t)width);
        key_canonical(type, &out->v[i]);
    }
    return true;
}

static FALLIBLE check(const struct meeting *m, i64 done, struct error *err) {
    if (done % ROWS_PER_CHECK) {
        return ERR_OK;
    }
    if (m->mem->temp) {
        temp_cool(m->mem->temp);
    }
    return stop_check(err);
}

static u64 some(u64 hash) {
    return hash ? hash : 1;
}

static FALLIBLE hash_given(struct meeting *m, struct error *err) {
    for (i64 row = 0; row < m->rows; row++) {
        struct key_values values;
        TRY(check(m, row, err));
        m->given[row] = given_key(m, row, &values) ? some(key_hash(m->table, m->key, &values)) : 0;
    }
    return ERR_OK;
}

static FALLIBLE hash_tablet(struct meeting *m, i64 t, struct error *err) {
    const struct table_version *v = m->version;
    const u64 *deleted = version_deleted(v, t);
    u64 *to = m->there + v->row_starts[t];
    for (i64 from = 0; from < v->tablet_rows[t]; from += KEY_BATCH) {
        u64 hashes[KEY_BATCH];
        b8 has[KEY_BATCH];
        i64 n = MIN_OF(v->tablet_rows[t] - from, KEY_BATCH);
        TRY(check(m, from, err));
        if (!key_hashes(&m->pins, m->table, m->key, v->tablets[t], from, n, hashes, has)) {
            return pins_check(&m->pins, err);
        }
        for (i64 i = 0; i < n; i++) {
            i64 pos = from + i;
            bool dead = deleted && deleted[pos >> 6] >> (pos & 63) & 1;
            to[pos] = has[i] && !dead ? some(hashes[i]) : 0;
        }
    }
    return ERR_OK;
}

/* Columns of one tablet at a time. */
static void hold(struct meeting *m, i64 t) {
    if (m->tablet != t) {
        pins_fini(&m->pins);
        pins_init(&m->pins, m->table->mem);
        m->tablet = t;
    }
}

static FALLIBLE hash_there(struct meeting *m, struct error *err) {
    for (i64 t = 0; t < m->version->tablet_count; t++) {
        hold(m, t);
        TRY(hash_tablet(m, t, err));
    }
    return ERR_OK;
}

static void print_key(const struct meeting *m, const struct key_values *values, struct text *out) {
    out->len = 0;
    for (u32 i = 0; i < m->key->col_count; i++) {
        key_append(out, m->table->cols[m->key->cols[i]].type, &values->v[i]);
    }
}

static bool same_keys(struct meeting *m, i64 row, const struct key_values *other) {
    struct key_values own;
    bool has = given_key(m, row, &own);
    ASSERT(has);
    UNUSED(has);
    print_key(m, &own, &m->own);
    print_key(m, other, &m->other);
    return m->own.len == m->other.len && memcmp(m->own.ptr, m->other.ptr, (size_t)m->own.len) == 0;
}

/* The entry with this key, or the free one where it would be. */
static struct entry *entry_of(struct meeting *m, u64 hash, const struct key_values *key) {
    u64 mask = (u64)m->cap - 1, at = hash & mask;
    while (m->slots[at].hash && !(m->slots[at].hash == hash && same_keys(m, m->slots[at].row, key))) {
        at = (at + 1) & mask;
    }
    return &m->slots[at];
}

static bool is_hit(const struct meeting *m, u64 hash) {
    u64 mask = (u64)m->cap - 1, at = hash & mask;
    while (m->slots[at].hash && m->slots[at].hash != hash) {
        at = (at + 1) & mask;
    }
    return m->slots[at].hash != 0;
}

/* Given rows [first, end) into the table; those whose key is there already are twins. */
static FALLIBLE enter(struct meeting *m, i64 first, i64 end, struct error *err) {
    memset(m->slots, 0, (size_t)m->cap * sizeof *m->slots);
    for (i64 row = first; row < end; row++) {
        struct key_values key;
        TRY(check(m, row, err));
        m->out.twin[row] = 0;
        m->out.row[row] = -1;
        if (m->out.first) {
            m->out.first[row] = -1;
        }
        if (!m->given[row]) {
            continue;
        }
        (void)given_key(m, row, &key);
        struct entry *entry = entry_of(m, m->given[row], &key);
        m->out.twin[row] = entry->hash != 0;
        if (!entry->hash) {
            *entry = (struct entry){m->given[row], row};
        }
        if (m->out.first) {
            m->out.first[row] = entry->row;
        }
    }
    return ERR_OK;
}

static FALLIBLE pass_given(struct meeting *m, i64 end, struct error *err) {
    i64 *firsts = m->out.first;
    for (i64 row = 0; row < end; row++) {
        struct key_values key;
        TRY(check(m, row, err));
        if (m->given[row] && is_hit(m, m->given[row])) {
            (void)given_key(m, row, &key);
            struct entry *entry = entry_of(m, m->given[row], &key);
            if (entry->hash) {
                m->out.twin[entry->row] = 1;
            }
            if (entry->hash && firsts && firsts[entry->row] == entry->row) {
                firsts[entry->row] = row;
            }
        }
    }
    return ERR_OK;
}

/* Rows of a pass have the first of their key within it, which has the first of all. */
static void follow(struct meeting *m, i64 first, i64 end) {
    i64 *firsts = m->out.first;
    for (i64 row = first; row < end && firsts; row++) {
        firsts[row] = firsts[row] >= first ? firsts[firsts[row]] : firsts[row];
    }
}

static FALLIBLE pass_there(struct meeting *m, struct error *err) {
    const struct table_version *v = m->version;
    for (i64 t = 0; t < v->tablet_count; t++) {
        for (i64 pos = 0; pos < v->tablet_rows[t]; pos++) {
            u64 hash = m->there[v->row_starts[t] + pos];
            struct key_values key;
            TRY(check(m, pos, err));
            if (!hash || !is_hit(m, hash)) {
                continue;
            }
            hold(m, t);
            if (!key_read(&m->pins, m->table, m->key, v->tablets[t], pos, &key)) {
                return pins_check(&m->pins, err);
            }
            struct entry *entry = entry_of(m, hash, &key);
            if (entry->hash) {
                m->out.row[entry->row] = v->row_starts[t] + pos;
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE run(struct meeting *m, struct error *err) {
    i64 size = m->cap / 2;
    TRY(hash_given(m, err));
    TRY(hash_there(m, err));
    for (i64 first = 0; first < m->rows; first += size) {
        i64 end = MIN_OF(m->rows, first + size);
        TRY(enter(m, first, end, err));
        TRY(pass_given(m, first, err));
        follow(m, first, end);
        TRY(pass_there(m, err));
    }
    TRY(pins_check(&m->pins, err));
    return arena_check(&m->arena, err);
}

/* As many slots as the rows need, or as there is memory for. */
static bool slots_open(struct meeting *m) {
    i64 item = (i64)sizeof *m->slots, room = memory_left(m->mem) / LEFT_SHARE;
    m->cap = ENTRIES_LEAST;
    while (m->cap < 2 * m->rows && 2 * m->cap * item <= room && m->cap < ENTRIES_MOST) {
        m->cap *= 2;
    }
    m->slots = mem_alloc(m->mem, m->cap * item);
    return m->slots != NULL;
}

/* Many because rows are given as loads are. */
wf_status version_meet(struct table *table, u32 key, const struct table_version *version,
                       struct memory *mem, i64 rows, const struct input_col *cols,
                       const struct key_meets *out, struct error *err) {
    struct meeting m = {.table = table,
                        .key = &table->keys[key],
                        .version = version,
                        .mem = mem,
                        .cols = cols,
                        .rows = rows,
                        .out = *out,
                        .tablet = -1};
    i64 given_bytes = MAX_OF(rows, 1) * (i64)sizeof(u64);
    i64 there_bytes = MAX_OF(version->rows, 1) * (i64)sizeof(u64);
    pins_init(&m.pins, table->mem);
    arena_init(&m.arena, mem);
    text_init(&m.own, &m.arena);
    text_init(&m.other, &m.arena);
    m.given = mem_alloc_rest(mem, given_bytes);
    m.there = mem_alloc_rest(mem, there_bytes);
    wf_status status = m.given && m.there && slots_open(&m)
                           ? run(&m, err)
                           : memory_refused(mem, err, given_bytes + there_bytes);
    mem_free(mem, m.slots, m.cap * (i64)sizeof *m.slots);
    mem_free(mem, m.there, there_bytes);
    mem_free(mem, m.given, given_bytes);
    pins_fini(&m.pins);
    arena_fini(&m.arena);
    return status;
}

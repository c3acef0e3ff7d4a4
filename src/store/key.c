/* key.c: PRIMARY KEY and UNIQUE: no two live rows agree in all columns of a key.
 *
 * Checked when a version is made, for the rows that its base had not. Loads mostly come in the
 * order of their key, so order is looked at first: while keys ascend strictly from row to row
 * nothing else is needed, neither an index nor memory, and a look-up is a binary search. When a row
 * breaks the order, a hash index is made, once, and kept from version to version.
 *
 * The index maps a hash to the ids (slot, position) of rows and is shared by all versions that go
 * back to the one it was made for. It holds every row of each of them, and may hold more: rows
 * deleted since, rows of other transactions, of statements that failed. So an entry is only a hint:
 * whoever finds one looks whether his version has that row, live, and whether its key is equal. A
 * key with a NULL in it is never entered, since it equals nothing. */
#include "defs/ops.h"
#include "defs/value.h"
#include "store/store_int.h"

#include <math.h>
#include <stdio.h>

enum { KEY_COLS_MAX = 32 };

struct key_index {
    _Atomic i32 refs;
    struct memory *mem;
    struct mutex lock; /* what follows */
    i64 cap, used;
    u64 *rows; /* id + 1, 0 = free */
    u32 *hashes;
};

struct key_index *key_index_retain(struct key_index *index) {
    if (index) {
        atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
    }
    return index;
}

static i64 entry_bytes(i64 cap) {
    return cap * (i64)(sizeof(u64) + sizeof(u32));
}

void key_index_release(struct key_index *index) {
    if (index && atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) == 1) {
        struct memory *mem = index->mem;
        mem_free(mem, index->rows, entry_bytes(index->cap));
        mutex_fini(&index->lock);
        mem_free(mem, index, (i64)sizeof *index);
    }
}

static bool index_alloc(struct key_index *index, i64 cap) {
    u64 *rows = mem_alloc(index->mem, entry_bytes(cap));
    if (!rows) {
        return false;
    }
    memset(rows, 0, (size_t)cap * sizeof *rows);
    index->rows = rows;
    index->hashes = (u32 *)(void *)(rows + cap);
    index->cap = cap;
    return true;
}

static void index_put(struct key_index *index, u32 hash, u64 row) {
    u64 mask = (u64)index->cap - 1;
    u64 at = hash & mask;
    while (index->rows[at]) {
        at = (at + 1) & mask;
    }
    index->rows[at] = row;
    index->hashes[at] = hash;
}

/* Under the lock. Room for `more` entries. */
static bool index_reserve(struct key_index *index, i64 more) {
    i64 cap = MAX_OF(index->cap, 64), old_cap = index->cap;
    while ((index->used + more) * 3 > cap * 2) {
        cap *= 2;
    }
    if (cap == old_cap) {
        return true;
    }
    u64 *rows = index->rows;
    const u32 *hashes = index->hashes;
    if (!index_alloc(index, cap)) {
        return false;
    }
    for (i64 i = 0; i < old_cap; i++) {
        if (rows[i]) {
            index_put(index, hashes[i], rows[i]);
        }
    }
    mem_free(index->mem, rows, entry_bytes(old_cap));
    return true;
}

static struct key_index *index_open(struct memory *mem) {
    struct key_index *index = mem_alloc(mem, (i64)sizeof *index);
    if (index) {
        memset(index, 0, sizeof *index);
        atomic_init(&index->refs, 1);
        index->mem = mem;
        mutex_init(&index->lock);
    }
    return index;
}

/* One key's values in a row. */
struct key_values {
    union lit v[KEY_COLS_MAX];
};

void key_canonical(struct type type, union lit *io) {
    if (type.id == TYPE_INTERVAL) {
        io->i128 = value_interval_order(io->i128);
    } else if (type.id == TYPE_REAL) {
        io->f32 = io->f32 == 0 ? 0.0f : io->f32 != io->f32 ? (f32)NAN : io->f32;
    } else if (type.id == TYPE_DOUBLE) {
        io->f64 = io->f64 == 0 ? 0.0 : io->f64 != io->f64 ? (f64)NAN : io->f64;
    }
}

void key_append(struct text *out, struct type type, const union lit *v) {
    if (type_kind(type) == KIND_STR) {
        struct sv s = sv_of(v->str);
        text_append(out, (struct sv){(const char *)&s.len, (i64)sizeof s.len});
        text_append(out, s);
        return;
    }
    union lit canonical = *v;
    key_canonical(type, &canonical);
    text_append(out, (struct sv){(const char *)&canonical, kind_bytes[type_kind(type)]});
}

/* The values as they are compared; false: one of them is NULL. */
static bool read_key(const struct table *table, const struct table_key *key,
                     const struct tablet *tablet, i64 pos, struct key_values *out) {
    for (u32 i = 0; i < key->col_count; i++) {
        u32 col = key->cols[i];
        if (!segment_get(&tablet->cols[col], table->dicts[col], table->cols[col].type, pos,
                         &out->v[i])) {
            return false;
        }
        key_canonical(table->cols[col].type, &out->v[i]);
    }
    return true;
}

static f64 float_of(const union lit *v, enum kind kind) {
    return kind == KIND_F32 ? (f64)v->f32 : v->f64;
}

static i128 exact_of(const union lit *v, enum kind kind) {
    switch (kind) {
    case KIND_B8:
        return v->b8;
    case KIND_I32:
        return v->i32;
    case KIND_I64:
        return v->i64;
    default:
        return v->i128;
    }
}

static int compare_value(const union lit *a, const union lit *b, enum kind kind) {
    if (kind == KIND_STR) {
        return sv_cmp(sv_of(a->str), sv_of(b->str));
    }
    if (kind == KIND_F32 || kind == KIND_F64) {
        f64 x = float_of(a, kind), y = float_of(b, kind);
        bool x_nan = x != x, y_nan = y != y;
        return x_nan || y_nan ? x_nan - y_nan : (x > y) - (x < y);
    }
    i128 x = exact_of(a, kind), y = exact_of(b, kind);
    return (x > y) - (x < y);
}

static int compare_key(const struct table *table, const struct table_key *key,
                       const struct key_values *a, const struct key_values *b) {
    for (u32 i = 0; i < key->col_count; i++) {
        int order = compare_value(&a->v[i], &b->v[i], type_kind(table->cols[key->cols[i]].type));
        if (order) {
            return order;
        }
    }
    return 0;
}

static u64 hash_value(const union lit *v, enum kind kind) {
    if (kind == KIND_STR) {
        return text_hash(sv_of(v->str));
    }
    if (kind == KIND_F32 || kind == KIND_F64) {
        f64 x = float_of(v, kind);
        u64 bits;
        memcpy(&bits, &x, sizeof bits);
        return hash_u64(bits);
    }
    u128 x = (u128)exact_of(v, kind);
    return hash_u64((u64)x ^ hash_u64((u64)(x >> 64)));
}

static u32 hash_key(const struct table *table, const struct table_key *key,
                    const struct key_values *values) {
    u64 hash = 0;
    for (u32 i = 0; i < key->col_count; i++) {
        hash = hash_u64(hash * 31 +
                        hash_value(&values->v[i], type_kind(table->cols[key->cols[i]].type)));
    }
    return (u32)(hash >> 16);
}

static u64 row_id(u32 slot, i64 pos) {
    return (u64)slot << 20 | (u64)pos;
}

static bool is_live(const struct table_version *version, i64 t, i64 pos) {
    const u64 *bits = version_deleted(version, t);
    return !(bits && bits[pos >> 6] >> (pos & 63) & 1);
}

/* A key of a table in one version, and its index. */
struct keyed {
    struct table *table;
    const struct table_key *key;
    const struct table_version *version;
    struct key_index *index;
};

/* The number of a live row of the version with this key, other than row `self` (0: none), or -1.
 * The key is `values` or, when that is NULL, that of row `own_pos` of tablet `own_t`. Under the
 * index's lock. */
static i64 index_find(const struct keyed *k, u32 hash, const struct key_values *values, i64 own_t,
                      i64 own_pos, u64 self) {
    const struct key_index *index = k->index;
    const struct table *table = k->table;
    const struct table_key *key = k->key;
    const struct table_version *version = k->version;
    u64 mask = (u64)index->cap - 1;
    struct key_values own, other;
    for (u64 at = hash & mask; index->cap && index->rows[at]; at = (at + 1) & mask) {
        u64 id = index->rows[at] - 1;
        if (index->hashes[at] != hash || id + 1 == self) {
            continue;
        }
        if (!values) {
            (void)read_key(table, key, version->tablets[own_t], own_pos, &own);
            values = &own;
        }
        i64 t = version_find_slot(version, (u32)(id >> 20));
        i64 pos = (i64)(id & 0xfffff);
        if (t >= 0 && pos < version->tablet_rows[t] && is_live(version, t, pos) &&
            read_key(table, key, version->tablets[t], pos, &other) &&
            compare_key(table, key, values, &other) == 0) {
            return version->row_starts[t] + pos;
        }
    }
    return -1;
}

/* Rows of a tablet on their way into an index: their hashes first, so that the slots they fall into
 * come from memory together. */
enum { RUN_ROWS = 64 };
struct key_run {
    i32 count;
    u32 pos[RUN_ROWS];
    u32 hash[RUN_ROWS];
};

/* The live rows with a key of [from, to), at most RUN_ROWS positions. */
static void run_fill(struct key_run *run, const struct keyed *k, i64 t, i64 from, i64 to) {
    const struct key_index *index = k->index;
    const struct table *table = k->table;
    const struct table_version *version = k->version;
    u64 mask = (u64)index->cap - 1;
    run->count = 0;
    for (i64 pos = from; pos < to; pos++) {
        struct key_values values;
        if (is_live(version, t, pos) &&
            read_key(table, k->key, version->tablets[t], pos, &values)) {
            u32 hash = hash_key(table, k->key, &values);
            __builtin_prefetch(&index->rows[hash & mask], 1);
            __builtin_prefetch(&index->hashes[hash & mask], 1);
            run->pos[run->count] = (u32)pos;
            run->hash[run->count++] = hash;
        }
    }
}

/* An index of the version's live rows. */
static FALLIBLE index_build(struct table *table, const struct table_key *key,
                            const struct table_version *version, struct key_index **out,
                            struct error *err) {
    struct key_index *index = index_open(table->mem);
    if (!index || !index_reserve(index, version->live_rows)) {
        key_index_release(index);
        return memory_refused(table->mem, err, version->live_rows * 18);
    }
    struct keyed keyed = {table, key, version, index};
    for (i64 t = 0; t < version->tablet_count; t++) {
        i64 rows = version->tablet_rows[t];
        for (i64 from = 0; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, &keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            for (i32 i = 0; i < run.count; i++) {
                index_put(index, run.hash[i], row_id(version->slots[t], run.pos[i]) + 1);
            }
            index->used += run.count;
        }
    }
    *out = index;
    return ERR_OK;
}

/* The version's index of a key, made now if it has none; retained. */
static FALLIBLE index_of(struct table *table, u32 k, struct table_version *version,
                         struct key_index **out, struct error *err) {
    struct mutex *lock = &table->state->lock;
    mutex_lock(lock);
    *out = key_index_retain(version->keys[k].index);
    mutex_unlock(lock);
    if (*out) {
        return ERR_OK;
    }
    TRY(index_build(table, &table->keys[k], version, out, err));
    mutex_lock(lock);
    if (!version->keys[k].index) {
        version->keys[k].index = key_index_retain(*out);
    }
    mutex_unlock(lock);
    return ERR_OK;
}

static i64 first_new(const struct table_version *base, const struct table_version *mine, i64 t) {
    i64 before = mine->slots[t] < base->next_slot ? version_find_slot(base, mine->slots[t]) : -1;
    return before >= 0 ? base->tablet_rows[before] : 0;
}

/* Whether the rows that base has not ascend strictly, from its last row on. */
static bool still_strict(const struct table *table, const struct table_key *key,
                         const struct table_version *base, const struct table_version *mine) {
    struct key_values keys[2];
    bool any = false;
    i32 now = 0;
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 from = first_new(base, mine, t), rows = mine->tablet_rows[t];
        if (from == rows) {
            any = false; /* the last row before the first new one counts; read below */
            continue;
        }
        i64 pt = from > 0 ? t : t - 1;
        i64 pp = from > 0 ? from - 1 : t > 0 ? (i64)mine->tablet_rows[t - 1] - 1 : -1;
        if (!any && pp >= 0) {
            if (!read_key(table, key, mine->tablets[pt], pp, &keys[now])) {
                return false;
            }
            any = true;
        }
        for (i64 pos = from; pos < rows; pos++) {
            now ^= 1;
            if (!read_key(table, key, mine->tablets[t], pos, &keys[now]) ||
                (any && compare_key(table, key, &keys[now ^ 1], &keys[now]) >= 0)) {
                return false;
            }
            any = true;
        }
    }
    return true;
}

static void print_value(char *out, i64 cap, struct type type, const union lit *v) {
    if (type_kind(type) == KIND_STR) {
        struct sv s = sv_of(v->str);
        snprintf(out, (size_t)cap, "%.*s", (int)MIN_OF(s.len, 50), s.ptr);
        return;
    }
    char text[VALUE_TEXT_MAX];
    i32 len = value_print(type, type_kind(type), v, text);
    snprintf(out, (size_t)cap, "%.*s", (int)len, text);
}

/* Row `pos` of tablet `t` has a key that another one has. */
static FALLIBLE duplicate(const struct table *table, const struct table_key *key,
                          const struct tablet *tablet, i64 pos, struct error *err) {
    error_set(err, ERR_UNIQUE, -1, "duplicate key value violates unique constraint \"%.100s\"",
              key->name);
    char cols[120] = "", shown[160] = "";
    size_t col_len = 0, len = 0;
    for (u32 i = 0; i < key->col_count; i++) {
        const struct column_def *col = &table->cols[key->cols[i]];
        char value[VALUE_TEXT_MAX];
        union lit v;
        (void)segment_get(&tablet->cols[key->cols[i]], table->dicts[key->cols[i]], col->type, pos,
                          &v);
        print_value(value, (i64)sizeof value, col->type, &v);
        if (col_len < sizeof cols && len < sizeof shown) {
            col_len += (size_t)snprintf(cols + col_len, sizeof cols - col_len, "%s%s",
                                        i ? ", " : "", col->name);
            len += (size_t)snprintf(shown + len, sizeof shown - len, "%s%s", i ? ", " : "", value);
        }
    }
    error_hint(err, "Key (%s)=(%s) already exists.", cols, shown);
    return ERR_UNIQUE;
}

static bool has_null(const struct keyed *k, i64 t, i64 pos) {
    bool found = false;
    for (u32 c = 0; c < k->key->col_count; c++) {
        const struct segment *seg = &k->version->tablets[t]->cols[k->key->cols[c]];
        found = found || segment_is_null(seg, pos);
    }
    return found;
}

static FALLIBLE enter_run(const struct keyed *k, i64 t, const struct key_run *run, bool known,
                          struct error *err) {
    for (i32 i = 0; i < run->count; i++) {
        u64 self = row_id(k->version->slots[t], run->pos[i]) + 1;
        ASSERT(!has_null(k, t, run->pos[i])); /* it equals nothing */
        if (!known && index_find(k, run->hash[i], NULL, t, run->pos[i], self) >= 0) {
            return duplicate(k->table, k->key, k->version->tablets[t], run->pos[i], err);
        }
        index_put(k->index, run->hash[i], self);
        k->index->used++;
    }
    return ERR_OK;
}

/* Looks every new row up, then enters it. Under the index's lock. */
static FALLIBLE enter_new(struct table *table, const struct table_key *key,
                          const struct table_version *base, const struct table_version *mine,
                          struct key_index *index, bool known, struct error *err) {
    struct keyed keyed = {table, key, mine, index};
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 from = first_new(base, mine, t), rows = mine->tablet_rows[t];
        if (!index_reserve(index, rows - from)) {
            return memory_refused(table->mem, err, entry_bytes(index->cap * 2));
        }
        for (; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, &keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            TRY(enter_run(&keyed, t, &run, known, err));
        }
    }
    return ERR_OK;
}

static i64 index_used(struct key_index *index) {
    mutex_lock(&index->lock);
    i64 used = index->used;
    mutex_unlock(&index->lock);
    return used;
}

static FALLIBLE check_key(struct table *table, u32 k, struct table_version *base,
                          struct table_version *mine, bool waits, struct error *err) {
    const struct table_key *key = &table->keys[k];
    bool strict = base->keys[k].strict && still_strict(table, key, base, mine);
    struct key_index *index = NULL;
    mine->keys[k].strict = strict;
    mutex_lock(&table->state->lock);
    index = key_index_retain(base->keys[k].index);
    mutex_unlock(&table->state->lock);
    if (strict && !index) {
        return ERR_OK;
    }
    if (index && index_used(index) > 4 * mine->live_rows + 1024) { /* mostly rows that are gone */
        key_index_release(index);
        index = NULL;
        TRY(index_build(table, key, base, &index, err));
    } else if (!index) {
        TRY(index_of(table, k, base, &index, err));
    }
    mutex_lock(&index->lock);
    wf_status status = enter_new(table, key, base, mine, index, strict || waits, err);
    mutex_unlock(&index->lock);
    if (status) {
        key_index_release(index);
        return status;
    }
    key_index_release(mine->keys[k].index); /* carried over by a delete */
    mine->keys[k].index = index;
    return ERR_OK;
}

wf_status version_check_keys(struct table *table, struct table_version *base,
                             struct table_version *mine, const b8 *waiting, struct error *err) {
    if (base == mine) {
        return ERR_OK;
    }
    for (u32 k = 0; k < table->key_count; k++) {
        CHECK(table->keys[k].col_count <= KEY_COLS_MAX);
        TRY(check_key(table, k, base, mine, waiting && waiting[k], err));
    }
    return ERR_OK;
}

wf_status version_keep_keys(struct table *table, struct table_version *base,
                            struct table_version *mine, struct error *err) {
    for (u32 k = 0; k < table->key_count; k++) {
        TRY(check_key(table, k, base, mine, true, err));
    }
    return ERR_OK;
}

/* Under the index's lock, which holds all rows of the version. */
static FALLIBLE look_for_twins(struct table *table, const struct table_key *key,
                               const struct table_version *base, const struct table_version *mine,
                               struct key_index *index, struct error *err) {
    struct keyed keyed = {table, key, mine, index};
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 rows = mine->tablet_rows[t];
        for (i64 from = base ? first_new(base, mine, t) : 0; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, &keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            for (i32 i = 0; i < run.count; i++) {
                u64 self = row_id(mine->slots[t], run.pos[i]) + 1;
                if (index_find(&keyed, run.hash[i], NULL, t, run.pos[i], self) >= 0) {
                    return duplicate(table, key, mine->tablets[t], run.pos[i], err);
                }
            }
        }
    }
    return ERR_OK;
}

wf_status version_check_key(struct table *table, u32 k, const struct table_version *base,
                            struct table_version *mine, struct error *err) {
    if (base == mine || mine->keys[k].strict) {
        return ERR_OK;
    }
    struct key_index *index;
    TRY(index_of(table, k, mine, &index, err));
    mutex_lock(&index->lock);
    wf_status status = look_for_twins(table, &table->keys[k], base, mine, index, err);
    mutex_unlock(&index->lock);
    key_index_release(index);
    return status;
}

/* In a version whose keys ascend: binary search for the row. */
static i64 search_strict(const struct table *table, const struct table_key *key,
                         const struct table_version *version, const struct key_values *values) {
    i64 low = 0, high = version->rows;
    struct key_values at;
    while (low < high) {
        i64 middle = low + (high - low) / 2;
        i64 t = version_find_row(version, middle);
        if (!read_key(table, key, version->tablets[t], middle - version->row_starts[t], &at)) {
            return -1;
        }
        int order = compare_key(table, key, &at, values);
        if (order == 0) {
            return is_live(version, t, middle - version->row_starts[t]) ? middle : -1;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return -1;
}

wf_status version_key_exists(struct table *table, struct table_version *version, u32 k,
                             const void *const *values, bool *out, struct error *err) {
    i64 row = -1;
    TRY(version_key_row(table, version, k, values, &row, err));
    *out = row >= 0;
    return ERR_OK;
}

wf_status version_key_row(struct table *table, struct table_version *version, u32 k,
                          const void *const *values, i64 *out_row, struct error *err) {
    const struct table_key *key = &table->keys[k];
    struct key_values wanted;
    for (u32 i = 0; i < key->col_count; i++) {
        i64 bytes = kind_bytes[type_kind(table->cols[key->cols[i]].type)];
        memcpy(&wanted.v[i], values[i], (size_t)bytes);
        key_canonical(table->cols[key->cols[i]].type, &wanted.v[i]);
    }
    mutex_lock(&table->state->lock);
    bool has_index = version->keys[k].index != NULL;
    mutex_unlock(&table->state->lock);
    if (!has_index && version->keys[k].strict) {
        *out_row = search_strict(table, key, version, &wanted);
        return ERR_OK;
    }
    struct key_index *index;
    TRY(index_of(table, k, version, &index, err));
    mutex_lock(&index->lock);
    u32 hash = hash_key(table, key, &wanted);
    struct keyed keyed = {table, key, version, index};
    *out_row = index_find(&keyed, hash, &wanted, 0, 0, 0);
    mutex_unlock(&index->lock);
    key_index_release(index);
    return ERR_OK;
}

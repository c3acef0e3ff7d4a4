/* key.c: PRIMARY KEY and UNIQUE: no two live rows agree in all columns of a key.
 *
 * Checked when a version is made, for the rows that its base had not. Loads mostly come in the
 * order of their key, so order is looked at first: while keys ascend strictly from row to row, or
 * come in short runs of one value of their first column, nothing else is needed, neither an index
 * nor memory, and a look-up is a binary search. Threads of a load look at the tablets they seal, so
 * that only the edges between tablets are left to look at.
 *
 * When a row breaks the order, rows are found in two ways. Those of tablets that were read from the
 * database file (`is_parted`) are found tablet by tablet: where its range can have the key, by its
 * own order or by hashes that lie in the file beside its columns (key_part.c). So a file of any size
 * takes next to no memory; many that came with their tablets
 * are looked at together (key_twins.c). All other rows are in a hash index, made once and kept from
 * version to version.
 *
 * The index maps a hash to the ids (slot, position) of rows and is shared by all versions that go
 * back to the one it was made for. It holds every such row of each of them, and may hold more: rows
 * deleted since, rows of other transactions, of statements that failed. So an entry is only a hint,
 * and so are the hashes of a tablet, which know nothing of deleted rows: whoever finds one looks
 * whether his version has that row, live, and whether its key is equal. A key with a NULL in it is
 * never entered, since it equals nothing. */
#include "store/key_int.h"

#include "defs/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

bool key_read(struct pins *pins, const struct table *table, const struct table_key *key,
              const struct tablet *tablet, i64 pos, struct key_values *out) {
    for (u32 i = 0; i < key->col_count; i++) {
        u32 col = key->cols[i];
        if (!pins_need(pins, tablet, col) || !segment_get(&tablet->cols[col], table->dicts[col],
                                                          table->cols[col].type, pos, &out->v[i])) {
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

static int compare_cols(const struct table *table, const struct table_key *key, u32 cols,
                        const struct key_values *a, const struct key_values *b) {
    for (u32 i = 0; i < cols; i++) {
        int order = compare_value(&a->v[i], &b->v[i], type_kind(table->cols[key->cols[i]].type));
        if (order) {
            return order;
        }
    }
    return 0;
}

static int compare_key(const struct table *table, const struct table_key *key,
                       const struct key_values *a, const struct key_values *b) {
    return compare_cols(table, key, key->col_count, a, b);
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

u64 key_hash(const struct table *table, const struct table_key *key,
             const struct key_values *values) {
    u64 hash = 0;
    for (u32 i = 0; i < key->col_count; i++) {
        hash = hash_u64(hash * 31 +
                        hash_value(&values->v[i], type_kind(table->cols[key->cols[i]].type)));
    }
    return hash;
}

/* What an index keeps of it. */
static u32 index_hash(u64 hash) {
    return (u32)(hash >> 16);
}

/* One column's values into the hashes of a batch. */
static void hash_column(const struct segment *seg, const struct dict *dict, struct type type,
                        i64 first, i64 rows, u64 *io) {
    union lit values[KEY_BATCH];
    u32 pos[KEY_BATCH], to[KEY_BATCH];
    enum kind kind = type_kind(type);
    i64 width = kind_bytes[kind];
    for (i64 i = 0; i < rows; i++) {
        pos[i] = (u32)(first + i);
        to[i] = (u32)i;
    }
    segment_take(seg, dict, (u8)kind, pos, to, rows, values);
    if (kind == KIND_I64 || kind == KIND_I32) { /* the same, faster: most keys */
        for (i64 i = 0; i < rows; i++) {
            i64 x = kind == KIND_I64 ? ((const i64 *)(const void *)values)[i]
                                     : ((const i32 *)(const void *)values)[i];
            io[i] = hash_u64(io[i] * 31 + hash_u64((u64)x ^ hash_u64(x < 0 ? ~0ULL : 0)));
        }
        return;
    }
    for (i64 i = 0; i < rows; i++) {
        union lit v;
        memcpy(&v, (const u8 *)values + i * width, (size_t)width);
        key_canonical(type, &v);
        io[i] = hash_u64(io[i] * 31 + hash_value(&v, kind));
    }
}

/* Many because a range of a tablet is three, and the answer is two. */
bool key_hashes(struct pins *pins, const struct table *table, const struct table_key *key,
                const struct tablet *tablet, i64 first, i64 rows, u64 *out, b8 *out_has) {
    ASSERT(rows <= KEY_BATCH);
    memset(out, 0, (size_t)rows * sizeof *out);
    memset(out_has, 1, (size_t)rows);
    for (u32 i = 0; i < key->col_count; i++) {
        u32 col = key->cols[i];
        const struct segment *seg = &tablet->cols[col];
        if (!pins_need(pins, tablet, col)) {
            return false;
        }
        for (i64 row = 0; seg->valid && row < rows; row++) {
            out_has[row] &= !segment_is_null(seg, first + row);
        }
        hash_column(seg, table->dicts[col], table->cols[col].type, first, rows, out);
    }
    return true;
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
    struct pins *pins;
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
            (void)key_read(k->pins, table, key, version->tablets[own_t], own_pos, &own);
            values = &own;
        }
        i64 t = version_find_slot(version, (u32)(id >> 20));
        i64 pos = (i64)(id & 0xfffff);
        if (t >= 0 && pos < version->tablet_rows[t] && is_live(version, t, pos) &&
            key_read(k->pins, table, key, version->tablets[t], pos, &other) &&
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
    const struct table_version *version = k->version;
    u64 mask = (u64)index->cap - 1, hashes[RUN_ROWS];
    b8 has[RUN_ROWS];
    run->count = 0;
    if (!key_hashes(k->pins, k->table, k->key, version->tablets[t], from, to - from, hashes, has)) {
        return;
    }
    for (i64 pos = from; pos < to; pos++) {
        if (has[pos - from] && is_live(version, t, pos)) {
            u32 hash = index_hash(hashes[pos - from]);
            __builtin_prefetch(&index->rows[hash & mask], 1);
            __builtin_prefetch(&index->hashes[hash & mask], 1);
            run->pos[run->count] = (u32)pos;
            run->hash[run->count++] = hash;
        }
    }
}

/* Whether a tablet's rows are found by its own part of the key, and are in no index. */
static bool is_parted(const struct tablet *tablet) {
    return tablet->filed && !tablet->tail;
}

/* Live rows that are to be in an index: those that no part finds. */
static i64 index_rows(const struct table_version *version) {
    i64 rows = 0;
    for (i64 t = 0; t < version->tablet_count; t++) {
        bool counts = !is_parted(version->tablets[t]);
        rows += counts ? (i64)version->tablet_rows[t] - version->deleted_counts[t] : 0;
    }
    return rows;
}

/* An index of the version's live rows in tablets without parts. */
static FALLIBLE index_build(struct table *table, const struct table_key *key,
                            const struct table_version *version, struct key_index **out,
                            struct error *err) {
    struct key_index *index = index_open(table->mem);
    i64 expected = index_rows(version);
    if (!index || !index_reserve(index, expected)) {
        key_index_release(index);
        return memory_refused(table->mem, err, expected * 18);
    }
    struct pins pins;
    struct keyed keyed = {table, key, version, index, &pins};
    wf_status status = ERR_OK;
    for (i64 t = 0; t < version->tablet_count && !status; t++) {
        i64 rows = is_parted(version->tablets[t]) ? 0 : version->tablet_rows[t];
        pins_init(&pins, table->mem);
        for (i64 from = 0; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, &keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            for (i32 i = 0; i < run.count; i++) {
                index_put(index, run.hash[i], row_id(version->slots[t], run.pos[i]) + 1);
            }
            index->used += run.count;
        }
        status = pins_check(&pins, err);
        pins_fini(&pins);
    }
    if (status) {
        key_index_release(index);
        return status;
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

i64 version_first_new(const struct table_version *base, const struct table_version *mine, i64 t) {
    i64 before = mine->slots[t] < base->next_slot ? version_find_slot(base, mine->slots[t]) : -1;
    return before >= 0 ? base->tablet_rows[before] : 0;
}

/* --- order ------------------------------------------------------------------------------------- */

/* Rows looked at one after the other. `keys` are those of the run that the last one belongs to, as
 * far as they were seen; when the order has no runs any more, the last one alone. */
struct key_walk {
    const struct table *table;
    const struct table_key *key;
    struct pins *pins;
    u8 order; /* what holds so far */
    i32 count;
    b8 ascends; /* the run does */
    struct key_values keys[KEY_RUN_MAX + 1];
};

static void walk_only(struct key_walk *walk, i32 at) {
    for (u32 i = 0; i < walk->key->col_count; i++) {
        walk->keys[0].v[i] = walk->keys[at].v[i];
    }
    walk->count = 1;
    walk->ascends = 1;
}

static bool run_has_twin(const struct key_walk *walk, i32 at) {
    for (i32 i = 0; i < at; i++) {
        if (compare_key(walk->table, walk->key, &walk->keys[i], &walk->keys[at]) == 0) {
            return true;
        }
    }
    return false;
}

static void walk_row(struct key_walk *walk, const struct tablet *tablet, i64 pos) {
    const struct table *table = walk->table;
    const struct table_key *key = walk->key;
    i32 at = walk->count;
    if (!key_read(walk->pins, table, key, tablet, pos, &walk->keys[at])) {
        walk->order = 0;
        return;
    }
    if (at == 0) {
        walk_only(walk, 0);
        return;
    }
    const struct key_values *last = &walk->keys[at - 1], *now = &walk->keys[at];
    int first = compare_value(&last->v[0], &now->v[0], type_kind(table->cols[key->cols[0]].type));
    int order = first ? first : compare_key(table, key, last, now);
    walk->order &= (u8)(order < 0 ? 0xff : ~KEY_STRICT);
    if (first) {
        walk->order &= (u8)(first < 0 ? 0xff : ~KEY_RUNS);
        walk_only(walk, at);
        return;
    }
    walk->ascends = walk->ascends && order < 0;
    if (at == KEY_RUN_MAX || (!walk->ascends && run_has_twin(walk, at))) {
        walk->order &= (u8)~KEY_RUNS;
    }
    if (walk->order & KEY_RUNS) {
        walk->count = at + 1;
    } else {
        walk_only(walk, at);
    }
}

static void walk_rows(struct key_walk *walk, const struct tablet *tablet, i64 from, i64 to) {
    for (i64 pos = from; pos < to && walk->order; pos++) {
        walk_row(walk, tablet, pos);
    }
}

/* A tablet whose own rows are known to be in this order: its edges are left to look at. */
static void walk_edges(struct key_walk *walk, const struct tablet *tablet, i64 rows, u8 order) {
    enum { EDGE = KEY_RUN_MAX + 1 };
    walk->order &= order;
    if (rows <= 2 * EDGE) {
        walk_rows(walk, tablet, 0, rows);
        return;
    }
    walk_rows(walk, tablet, 0, EDGE);
    walk->count = 0;
    walk_rows(walk, tablet, rows - EDGE, rows);
}

u8 segment_key_order(const struct table *table, const struct table_key *key,
                     const struct tablet *tablet) {
    bool told = key->col_count == 1 && tablet->cols[key->cols[0]].strict &&
                table->cols[key->cols[0]].type.id != TYPE_INTERVAL;
    return told ? KEY_STRICT | KEY_RUNS : 0;
}

/* Keys of a few integers, as most are: columns of a piece are compared at once. */
enum { ORDER_COLS = 4, ORDER_ROWS = 512 };

static bool has_integers(const struct table *table, const struct table_key *key,
                         const struct tablet *tablet) {
    bool fine = key->col_count <= ORDER_COLS && !tablet->tail;
    for (u32 i = 0; fine && i < key->col_count; i++) {
        const struct segment *seg = &tablet->cols[key->cols[i]];
        enum kind kind = type_kind(table->cols[key->cols[i]].type);
        fine = (kind == KIND_I32 || kind == KIND_I64) && seg->encoding == ENC_INT &&
               seg->null_count == 0;
    }
    return fine;
}

/* The order of such rows where they are strictly ascending, else 0. Every column is held. */
static u8 integers_order(const struct table_key *key, const struct tablet *tablet) {
    i64 values[ORDER_COLS][ORDER_ROWS + 1] = {0}; /* behind the last row of the piece before */
    u32 pos[ORDER_ROWS], to[ORDER_ROWS];
    b8 ascends[ORDER_ROWS], same[ORDER_ROWS];
    i64 run = 1, longest = 1;
    for (i64 first = 0; first < tablet->rows; first += ORDER_ROWS) {
        i64 n = MIN_OF(tablet->rows - first, ORDER_ROWS);
        for (i64 i = 0; i < n; i++) {
            pos[i] = (u32)(first + i);
            to[i] = (u32)(i + 1);
        }
        memset(ascends, 0, sizeof ascends);
        for (u32 c = key->col_count; c-- > 0;) {
            i64 *col = values[c];
            segment_take(&tablet->cols[key->cols[c]], NULL, KIND_I64, pos, to, n, col);
            for (i64 i = 0; i < n; i++) {
                same[i] = col[i] == col[i + 1];
                ascends[i] = (b8)((col[i] < col[i + 1]) | (same[i] & ascends[i]));
            }
            ascends[0] |= first == 0;
            same[0] &= first != 0;
            col[0] = col[n];
        }
        b8 all = 1;
        for (i64 i = 0; i < n; i++) {
            all &= ascends[i];
            run = same[i] ? run + 1 : 1;
            longest = MAX_OF(longest, run);
        }
        if (!all) {
            return 0;
        }
    }
    return longest <= KEY_RUN_MAX ? KEY_STRICT | KEY_RUNS : KEY_STRICT;
}

/* The order that rows of integers have, if it is strict; 0: it has to be looked at row by row. */
static FALLIBLE find_integers_order(struct pins *pins, const struct table *table,
                                    const struct table_key *key, const struct tablet *tablet,
                                    u8 *out, struct error *err) {
    *out = 0;
    if (has_integers(table, key, tablet)) {
        for (u32 i = 0; i < key->col_count; i++) {
            TRY(pins_hold(pins, tablet, key->cols[i], err));
        }
        *out = integers_order(key, tablet);
    }
    return ERR_OK;
}

wf_status tablet_find_order(const struct table *table, const struct table_key *key,
                            const struct tablet *tablet, u8 *out, struct error *err) {
    struct pins pins;
    struct key_walk walk = {.table = table, .key = key, .pins = &pins};
    pins_init(&pins, table->mem);
    walk.order = segment_key_order(table, walk.key, tablet);
    wf_status status = ERR_OK;
    if (!walk.order) {
        status = find_integers_order(&pins, table, key, tablet, &walk.order, err);
    }
    if (!status && !walk.order) {
        walk.order = KEY_STRICT | KEY_RUNS;
        walk_rows(&walk, tablet, 0, tablet->rows);
        status = pins_check(&pins, err);
    }
    pins_fini(&pins);
    *out = walk.order;
    return status;
}

u8 tablet_key_order(const struct table *table, u32 k, const struct tablet *tablet) {
    struct error none; /* a tablet that was just made is all there */
    u8 order = 0;
    error_reset(&none);
    return tablet_find_order(table, &table->keys[k], tablet, &order, &none) ? 0 : order;
}

/* The rows before row `first`, as many as can be of its run. */
static void walk_before(struct key_walk *walk, const struct table_version *version, i64 first) {
    walk->count = 0;
    for (i64 row = MAX_OF(first - KEY_RUN_MAX, 0); row < first && walk->order; row++) {
        i64 t = version_find_row(version, row);
        walk_row(walk, version->tablets[t], row - version->row_starts[t]);
    }
}

/* The order of the base that the rows which it has not keep. */
static u8 order_kept(struct pins *pins, const struct table *table, u32 k,
                     const struct table_version *base, const struct table_version *mine) {
    struct key_walk walk = {
        .table = table, .key = &table->keys[k], .pins = pins, .order = base->keys[k].order};
    i64 seen = 0; /* the walk has come to this row */
    for (i64 t = 0; t < mine->tablet_count && walk.order; t++) {
        const struct tablet *tablet = mine->tablets[t];
        i64 from = version_first_new(base, mine, t), rows = mine->tablet_rows[t];
        if (from == rows) {
            continue;
        }
        if (seen != mine->row_starts[t] + from) {
            walk_before(&walk, mine, mine->row_starts[t] + from);
        }
        bool loaded = t >= mine->tablet_count - mine->loaded_count;
        u8 told = loaded ? mine->keys[k].loaded : segment_key_order(table, walk.key, tablet);
        if (from == 0 && (loaded || told)) {
            walk_edges(&walk, tablet, rows, told);
        } else {
            walk_rows(&walk, tablet, from, rows);
        }
        seen = mine->row_starts[t] + rows;
    }
    return walk.order;
}

/* --- rows by search, and by the parts of tablets ------------------------------------------------ */

/* The first of rows [low, high), which are in an order, whose key does not come before the values in
 * its first `cols` columns. */
static i64 lower_bound(const struct keyed *k, i64 low, i64 high, u32 cols,
                       const struct key_values *values) {
    const struct table_version *version = k->version;
    struct key_values at;
    while (low < high) {
        i64 middle = low + (high - low) / 2;
        i64 t = version_find_row(version, middle);
        bool has_key = key_read(k->pins, k->table, k->key, version->tablets[t],
                                middle - version->row_starts[t], &at);
        ASSERT(has_key || k->pins->status);
        if (!has_key) {
            return version->rows;
        }
        bool before = compare_cols(k->table, k->key, cols, &at, values) < 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

/* In rows [low, high), which are in an order: the live row with these values, or -1. */
static i64 search_ordered(const struct keyed *k, i64 low, i64 high, u8 order,
                          const struct key_values *values) {
    const struct table_version *version = k->version;
    u32 cols = order & KEY_STRICT ? k->key->col_count : 1;
    for (i64 row = lower_bound(k, low, high, cols, values); row < high; row++) {
        i64 t = version_find_row(version, row), pos = row - version->row_starts[t];
        struct key_values at;
        if (!key_read(k->pins, k->table, k->key, version->tablets[t], pos, &at) ||
            compare_cols(k->table, k->key, cols, &at, values) != 0) {
            return -1;
        }
        if (compare_key(k->table, k->key, &at, values) == 0) {
            return is_live(version, t, pos) ? row : -1;
        }
    }
    return -1;
}

/* Whether a tablet's columns have the range for the values. */
static bool may_hold(const struct keyed *k, const struct tablet *tablet,
                     const struct key_values *values) {
    for (u32 i = 0; i < k->key->col_count; i++) {
        u32 col = k->key->cols[i];
        struct type type = k->table->cols[col].type;
        enum kind kind = type_kind(type);
        if (kind == KIND_STR || kind == KIND_F32 || kind == KIND_F64 || type.id == TYPE_INTERVAL) {
            continue;
        }
        i128 value = exact_of(&values->v[i], kind);
        if (value < tablet->cols[col].range.lo || value > tablet->cols[col].range.hi) {
            return false;
        }
    }
    return true;
}

/* The part of tablet t, made now if it has none; NULL: the pins know why. */
static struct key_part *part_of(const struct keyed *k, i64 t) {
    const struct table_key *key = k->key;
    struct tablet *tablet = k->version->tablets[t];
    struct key_part *part = tablet_find_part(tablet, key->cols, key->col_count);
    if (part || k->pins->status) {
        return k->pins->status ? NULL : part;
    }
    k->pins->status = part_build(k->table, key, tablet, &part, &k->pins->err);
    if (!k->pins->status && !tablet_add_part(tablet, key->cols, key->col_count, part)) {
        k->pins->status = memory_refused(k->pins->mem, &k->pins->err, (i64)sizeof *part);
    }
    return k->pins->status ? NULL : tablet_find_part(tablet, key->cols, key->col_count);
}

/* The number of a live row of tablet t with this key, or -1. */
static i64 part_find(const struct keyed *k, i64 t, u64 hash, const struct key_values *values) {
    const struct table_version *version = k->version;
    const struct tablet *tablet = version->tablets[t];
    i64 first = version->row_starts[t];
    struct key_part *part = may_hold(k, tablet, values) ? part_of(k, t) : NULL;
    if (!part) {
        return -1;
    }
    if (part->order) {
        return search_ordered(k, first, first + version->tablet_rows[t], part->order, values);
    }
    struct part_cursor cursor = {.pins = k->pins, .table = k->table, .key = k->key, .part = part};
    struct key_values other;
    u32 pos = 0;
    if (!part_seek(&cursor, hash)) {
        return -1;
    }
    while (part_next(&cursor, &pos)) {
        if (is_live(version, t, pos) && key_read(k->pins, k->table, k->key, tablet, pos, &other) &&
            compare_key(k->table, k->key, values, &other) == 0) {
            return first + pos;
        }
    }
    return -1;
}

/* The same of all tablets with parts. */
static i64 parts_find(const struct keyed *k, u64 hash, const struct key_values *values) {
    const struct table_version *version = k->version;
    i64 row = -1;
    for (i64 t = 0; t < version->tablet_count && row < 0 && !k->pins->status; t++) {
        row = is_parted(version->tablets[t]) ? part_find(k, t, hash, values) : -1;
    }
    return row;
}

static bool has_parts(const struct table_version *version) {
    bool has = false;
    for (i64 t = 0; t < version->tablet_count && !has; t++) {
        has = is_parted(version->tablets[t]);
    }
    return has;
}

/* Rows that are looked for, in the order of their hashes, so that every chunk of every tablet is
 * looked at once. */
enum { PROBES_MOST = 1 << 16 };
struct probe {
    u64 hash;
    u32 t, pos;
};
struct probes {
    const struct keyed *keyed;
    struct probe *items;
    i64 count, cap;
};

static int compare_probes(const void *a, const void *b) {
    u64 x = ((const struct probe *)a)->hash, y = ((const struct probe *)b)->hash;
    return (x > y) - (x < y);
}

/* The least number of a row whose key some tablet with a part has; I64_MAX when there is none. Each
 * tablet's chunks and columns are held while it is looked at. */
static FALLIBLE probes_run(struct probes *probes, i64 *io_row, struct error *err) {
    const struct table_version *version = probes->keyed->version;
    wf_status status = ERR_OK;
    qsort(probes->items, (size_t)probes->count, sizeof *probes->items, compare_probes);
    for (i64 t = 0; t < version->tablet_count && !status; t++) {
        if (!is_parted(version->tablets[t])) {
            continue;
        }
        struct pins pins;
        struct keyed k = *probes->keyed;
        k.pins = &pins;
        pins_init(&pins, k.table->mem);
        for (i64 i = 0; i < probes->count && !pins.status; i++) {
            const struct probe *p = &probes->items[i];
            struct key_values values;
            i64 own = version->row_starts[p->t] + p->pos;
            if (own < *io_row &&
                key_read(&pins, k.table, k.key, version->tablets[p->t], p->pos, &values) &&
                part_find(&k, t, p->hash, &values) >= 0) {
                *io_row = own;
            }
        }
        status = pins_check(&pins, err);
        pins_fini(&pins);
    }
    probes->count = 0;
    return status;
}

/* The live rows [from, to) of tablet t to the probes. */
static FALLIBLE probes_add(struct probes *probes, i64 t, i64 from, i64 to, i64 *io_row,
                           struct error *err) {
    const struct keyed *k = probes->keyed;
    for (; from < to && *io_row == I64_MAX; from += KEY_BATCH) {
        i64 n = MIN_OF(to - from, KEY_BATCH);
        u64 hashes[KEY_BATCH];
        b8 has[KEY_BATCH];
        if (!key_hashes(k->pins, k->table, k->key, k->version->tablets[t], from, n, hashes, has)) {
            return pins_check(k->pins, err);
        }
        for (i64 i = 0; i < n; i++) {
            if (has[i] && is_live(k->version, t, from + i)) {
                probes->items[probes->count++] = (struct probe){hashes[i], (u32)t, (u32)(from + i)};
            }
        }
        if (probes->count + KEY_BATCH > probes->cap) {
            TRY(probes_run(probes, io_row, err));
        }
    }
    return ERR_OK;
}

/* The first row that base has not, of a tablet without a part, whose key some tablet with a part
 * has. */
static FALLIBLE first_in_parts(const struct keyed *k, const struct table_version *base,
                               i64 *out_row, struct error *err) {
    const struct table_version *mine = k->version;
    i64 more = 0;
    *out_row = I64_MAX;
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 from = base ? version_first_new(base, mine, t) : 0;
        more += is_parted(mine->tablets[t]) ? 0 : mine->tablet_rows[t] - from;
    }
    if (more == 0 || !has_parts(mine)) {
        return ERR_OK;
    }
    struct probes probes = {.keyed = k, .cap = MIN_OF(more, PROBES_MOST) + 2 * KEY_BATCH};
    i64 bytes = probes.cap * (i64)sizeof *probes.items;
    probes.items = mem_alloc(k->table->mem, bytes);
    if (!probes.items) {
        return memory_refused(k->table->mem, err, bytes);
    }
    wf_status status = ERR_OK;
    for (i64 t = 0; t < mine->tablet_count && !status; t++) {
        if (!is_parted(mine->tablets[t])) {
            i64 from = base ? version_first_new(base, mine, t) : 0;
            status = probes_add(&probes, t, from, mine->tablet_rows[t], out_row, err);
        }
    }
    status = status ? status : probes_run(&probes, out_row, err);
    mem_free(k->table->mem, probes.items, bytes);
    return status;
}

/* --- checking ---------------------------------------------------------------------------------- */

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

/* What there is room for, behind what there is. */
static void show_more(char *out, size_t cap, const char *text) {
    size_t len = strlen(out);
    snprintf(out + len, cap - len, "%s%s", len ? ", " : "", text);
}

void key_show_value(struct shown_key *out, const char *name, struct type type, const union lit *v) {
    char value[VALUE_TEXT_MAX];
    print_value(value, (i64)sizeof value, type, v);
    show_more(out->cols, sizeof out->cols, name);
    show_more(out->values, sizeof out->values, value);
}

void key_show(const struct table *table, const u32 *cols, u32 count, const struct tablet *tablet,
              i64 pos, struct shown_key *out) {
    *out = (struct shown_key){"", ""};
    for (u32 i = 0; i < count; i++) {
        const struct column_def *col = &table->cols[cols[i]];
        union lit v;
        (void)segment_get(&tablet->cols[cols[i]], table->dicts[cols[i]], col->type, pos, &v);
        key_show_value(out, col->name, col->type, &v);
    }
}

/* Row `pos` of tablet `t` has a key that another one has. */
static FALLIBLE duplicate(const struct table *table, const struct table_key *key,
                          const struct tablet *tablet, i64 pos, struct error *err) {
    struct shown_key shown;
    error_set(err, ERR_UNIQUE, -1, "duplicate key value violates unique constraint \"%.100s\"",
              key->name);
    key_show(table, key->cols, key->col_count, tablet, pos, &shown);
    error_hint(err, "Key (%s)=(%s) already exists.", shown.cols, shown.values);
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

/* `taken`: the first row whose key a part has. */
static FALLIBLE enter_run(const struct keyed *k, i64 t, const struct key_run *run, bool known,
                          i64 taken, struct error *err) {
    i64 first = k->version->row_starts[t];
    for (i32 i = 0; i < run->count; i++) {
        u64 self = row_id(k->version->slots[t], run->pos[i]) + 1;
        ASSERT(!has_null(k, t, run->pos[i])); /* it equals nothing */
        if (first + run->pos[i] == taken ||
            (!known && index_find(k, run->hash[i], NULL, t, run->pos[i], self) >= 0)) {
            return duplicate(k->table, k->key, k->version->tablets[t], run->pos[i], err);
        }
        index_put(k->index, run->hash[i], self);
        k->index->used++;
    }
    return ERR_OK;
}

/* Looks every new row up, then enters it. Under the index's lock. */
static FALLIBLE enter_new(const struct keyed *keyed, const struct table_version *base, bool known,
                          i64 taken, struct error *err) {
    const struct table_version *mine = keyed->version;
    struct key_index *index = keyed->index;
    struct table *table = keyed->table;
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 from = version_first_new(base, mine, t), rows = mine->tablet_rows[t];
        if (is_parted(mine->tablets[t])) {
            continue;
        }
        if (!index_reserve(index, rows - from)) {
            return memory_refused(table->mem, err, entry_bytes(index->cap * 2));
        }
        for (; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            TRY(enter_run(keyed, t, &run, known, taken, err));
        }
    }
    return pins_check(keyed->pins, err);
}

static i64 index_used(struct key_index *index) {
    mutex_lock(&index->lock);
    i64 used = index->used;
    mutex_unlock(&index->lock);
    return used;
}

/* Whether mine has rows in tablets with parts that base has not: ALTER TABLE of what was read from a
 * file. */
static bool has_new_parts(const struct table_version *base, const struct table_version *mine) {
    bool has = false;
    for (i64 t = 0; t < mine->tablet_count && !has; t++) {
        has = is_parted(mine->tablets[t]) &&
              (!base || version_first_new(base, mine, t) < mine->tablet_rows[t]);
    }
    return has;
}

/* All rows that base has not (NULL: all) against all there are. */
static FALLIBLE check_whole(struct pins *pins, struct table *table, const struct table_key *key,
                            const struct table_version *base, const struct table_version *mine,
                            struct error *err) {
    i64 row;
    struct key_values values;
    pins_fini(pins); /* it has room for what it needs one by one */
    pins_init(pins, table->mem);
    TRY(version_find_twin(table, key, base, mine, &row, err));
    if (row == I64_MAX) {
        return ERR_OK;
    }
    i64 t = version_find_row(mine, row), pos = row - mine->row_starts[t];
    bool has = key_read(pins, table, key, mine->tablets[t], pos, &values); /* its columns are held */
    TRY(pins_check(pins, err));
    ASSERT(has);
    return has ? duplicate(table, key, mine->tablets[t], pos, err) : ERR_OK;
}

/* The order of rows ends here: each tablet of the base keeps it for itself. */
static FALLIBLE note_order(const struct table_key *key, const struct table_version *base, u8 order,
                           struct error *err) {
    for (i64 t = 0; t < base->tablet_count; t++) {
        struct tablet *tablet = base->tablets[t];
        if (tablet->tail || tablet_find_part(tablet, key->cols, key->col_count)) {
            continue;
        }
        struct key_part *part = part_new(tablet->mem, order, 0, tablet->rows);
        if (!part || !tablet_add_part(tablet, key->cols, key->col_count, part)) {
            return memory_refused(tablet->mem, err, (i64)sizeof *part);
        }
    }
    return ERR_OK;
}

/* The base's index, or one made of it, for rows of mine. */
static FALLIBLE index_for(struct table *table, u32 k, struct table_version *base,
                          const struct table_version *mine, struct key_index *has,
                          struct key_index **out, struct error *err) {
    if (has &&
        index_used(has) > 4 * index_rows(mine) + 1024) { /* mostly rows that are gone */
        key_index_release(has);
        return index_build(table, &table->keys[k], base, out, err);
    }
    *out = has;
    return has ? ERR_OK : index_of(table, k, base, out, err);
}

static FALLIBLE check_key(struct pins *pins, struct table *table, u32 k, struct table_version *base,
                          struct table_version *mine, bool waits, struct error *err) {
    const struct table_key *key = &table->keys[k];
    u8 order = order_kept(pins, table, k, base, mine);
    struct key_index *index = NULL;
    i64 taken = I64_MAX;
    TRY(pins_check(pins, err));
    mine->keys[k].order = order;
    mutex_lock(&table->state->lock);
    index = key_index_retain(base->keys[k].index);
    mutex_unlock(&table->state->lock);
    if (order && !index) {
        return ERR_OK;
    }
    bool known = order || waits;
    TRY(index_for(table, k, base, mine, index, &index, err));
    struct keyed keyed = {table, key, mine, index, pins};
    wf_status status =
        !order && base->keys[k].order ? note_order(key, base, base->keys[k].order, err) : ERR_OK;
    if (!status && !known && has_new_parts(base, mine)) {
        status = check_whole(pins, table, key, base, mine, err);
        known = true;
    } else if (!status && !known) {
        status = first_in_parts(&keyed, base, &taken, err);
    }
    if (!status) {
        mutex_lock(&index->lock);
        status = enter_new(&keyed, base, known, taken, err);
        mutex_unlock(&index->lock);
    }
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
    struct pins pins;
    wf_status status = ERR_OK;
    pins_init(&pins, table->mem);
    for (u32 k = 0; k < table->key_count && !status; k++) {
        CHECK(table->keys[k].col_count <= KEY_COLS_MAX);
        status = check_key(&pins, table, k, base, mine, waiting && waiting[k], err);
    }
    pins_fini(&pins);
    return status;
}

wf_status version_keep_keys(struct table *table, struct table_version *base,
                            struct table_version *mine, struct error *err) {
    struct pins pins;
    wf_status status = ERR_OK;
    pins_init(&pins, table->mem);
    for (u32 k = 0; k < table->key_count && !status; k++) {
        status = check_key(&pins, table, k, base, mine, true, err);
    }
    pins_fini(&pins);
    return status;
}

/* Under the index's lock. */
static FALLIBLE look_for_twins(const struct keyed *keyed, const struct table_version *base,
                               i64 taken, struct error *err) {
    const struct table_version *mine = keyed->version;
    for (i64 t = 0; t < mine->tablet_count; t++) {
        i64 rows = mine->tablet_rows[t];
        if (is_parted(mine->tablets[t])) {
            continue;
        }
        for (i64 from = base ? version_first_new(base, mine, t) : 0; from < rows; from += RUN_ROWS) {
            struct key_run run;
            run_fill(&run, keyed, t, from, MIN_OF(from + RUN_ROWS, rows));
            for (i32 i = 0; i < run.count; i++) {
                u64 self = row_id(mine->slots[t], run.pos[i]) + 1;
                if (mine->row_starts[t] + run.pos[i] == taken ||
                    index_find(keyed, run.hash[i], NULL, t, run.pos[i], self) >= 0) {
                    return duplicate(keyed->table, keyed->key, mine->tablets[t], run.pos[i], err);
                }
            }
        }
    }
    return pins_check(keyed->pins, err);
}

wf_status version_check_key(struct table *table, u32 k, const struct table_version *base,
                            struct table_version *mine, struct error *err) {
    if (base == mine || mine->keys[k].order) {
        return ERR_OK;
    }
    struct key_index *index;
    struct pins pins;
    if (has_new_parts(base, mine)) {
        pins_init(&pins, table->mem);
        wf_status status = check_whole(&pins, table, &table->keys[k], base, mine, err);
        pins_fini(&pins);
        return status;
    }
    TRY(index_of(table, k, mine, &index, err));
    struct keyed keyed = {table, &table->keys[k], mine, index, &pins};
    i64 taken = I64_MAX;
    pins_init(&pins, table->mem);
    wf_status status = first_in_parts(&keyed, base, &taken, err);
    if (!status) {
        mutex_lock(&index->lock);
        status = look_for_twins(&keyed, base, taken, err);
        mutex_unlock(&index->lock);
    }
    pins_fini(&pins);
    key_index_release(index);
    return status;
}

void key_finder_open(struct key_finder *finder, struct table *table, struct table_version *version,
                     u32 key) {
    *finder = (struct key_finder){.table = table, .version = version, .key = key};
    pins_init(&finder->pins, table->mem);
}

void key_finder_close(struct key_finder *finder) {
    key_index_release(finder->index);
    pins_fini(&finder->pins);
}

static FALLIBLE finder_begin(struct key_finder *finder, struct error *err) {
    struct table *table = finder->table;
    struct table_version *version = finder->version;
    mutex_lock(&table->state->lock);
    bool has_index = version->keys[finder->key].index != NULL;
    mutex_unlock(&table->state->lock);
    bool searches = !has_index && version->keys[finder->key].order;
    TRY(searches ? ERR_OK : index_of(table, finder->key, version, &finder->index, err));
    finder->order = searches ? version->keys[finder->key].order : 0;
    finder->has_begun = 1;
    return ERR_OK;
}

static FALLIBLE finder_look(struct key_finder *finder, const struct key_values *wanted,
                            i64 *out_row, struct error *err) {
    struct keyed keyed = {.table = finder->table,
                          .key = &finder->table->keys[finder->key],
                          .version = finder->version,
                          .index = finder->index,
                          .pins = &finder->pins};
    if (finder->order) {
        *out_row = search_ordered(&keyed, 0, finder->version->rows, finder->order, wanted);
    } else {
        u64 hash = key_hash(keyed.table, keyed.key, wanted);
        mutex_lock(&keyed.index->lock);
        *out_row = index_find(&keyed, index_hash(hash), wanted, 0, 0, 0);
        mutex_unlock(&keyed.index->lock);
        *out_row = *out_row >= 0 ? *out_row : parts_find(&keyed, hash, wanted);
    }
    return pins_check(&finder->pins, err);
}

static void finder_drop(struct key_finder *finder) {
    pins_fini(&finder->pins);
    pins_init(&finder->pins, finder->table->mem);
}

/* What is held goes when it is much, or when what is needed next has no room beside it. */
wf_status key_finder_row(struct key_finder *finder, const void *const *values, i64 *out_row,
                         struct error *err) {
    enum { SHARE = 4 }; /* of the memory that is left */
    const struct table *table = finder->table;
    const struct table_key *key = &table->keys[finder->key];
    struct key_values wanted;
    for (u32 i = 0; i < key->col_count; i++) {
        i64 bytes = kind_bytes[type_kind(table->cols[key->cols[i]].type)];
        memcpy(&wanted.v[i], values[i], (size_t)bytes);
        key_canonical(table->cols[key->cols[i]].type, &wanted.v[i]);
    }
    TRY(finder->has_begun ? ERR_OK : finder_begin(finder, err));
    if (finder->pins.bytes > memory_left(table->mem) / SHARE) {
        finder_drop(finder);
    }
    bool held = finder->pins.count > 0;
    wf_status status = finder_look(finder, &wanted, out_row, err);
    if (status == ERR_OUT_OF_MEMORY && held) {
        error_reset(err);
        finder_drop(finder);
        status = finder_look(finder, &wanted, out_row, err);
    }
    return status;
}

wf_status version_key_row(struct table *table, struct table_version *version, u32 key,
                          const void *const *values, i64 *out_row, struct error *err) {
    struct key_finder finder;
    key_finder_open(&finder, table, version, key);
    wf_status status = key_finder_row(&finder, values, out_row, err);
    key_finder_close(&finder);
    return status;
}

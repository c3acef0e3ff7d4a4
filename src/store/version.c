/* version.c: table versions: what a statement reads.
 *
 * A version is one block: the list of tablets, the rows to read of each and which of them are
 * deleted, where each begins, the statistics as of that moment, and the draft that an append goes
 * on from. It is built completely before anybody sees it and never changes, but for the indexes of
 * its keys, which are made when first needed. */
#include "store/store_int.h"

struct version_box {
    struct table_version version;
    struct memory *mem;
    i64 bytes;
    u32 col_count;
    u32 key_count;
};

struct table_version *version_sample(struct arena *arena, const struct table_version *version,
                                     i64 rows) {
    struct table_version *out = NEW(arena, struct table_version);
    *out = *version;
    out->id = memory_identity(arena->mem, IDENTITY_VERSION);
    out->kept = NULL;
    out->kept_in = NULL;
    out->tablet_count = MIN_OF(version->tablet_count, 1);
    out->rows = out->live_rows = out->tablet_count ? MIN_OF((i64)version->tablet_rows[0], rows) : 0;
    out->tablet_rows = NEW_ARRAY(arena, u32, 1);
    out->row_starts = NEW_ARRAY(arena, i64, 2);
    out->tablet_rows[0] = (u32)out->rows;
    out->row_starts[1] = out->rows;
    return out;
}

struct table_version *version_retain(struct table_version *version) {
    atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
    return version;
}

void version_release(struct table_version *version) {
    if (!version || atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct version_box *box = (struct version_box *)(void *)version;
    if (version->kept_in) {
        version->drop_kept(version);
    }
    for (i64 i = 0; i < version->tablet_count; i++) {
        tablet_release(version->tablets[i]);
        buffer_release(version->deleted[i]);
    }
    for (u32 i = 0; i < box->key_count; i++) {
        key_index_release(version->keys[i].index);
    }
    draft_free(box->mem, box->col_count, version->draft);
    moves_release(version->moves);
    mem_free(box->mem, box, box->bytes);
}

bool version_is_private(const struct table_version *version) {
    return version->draft && version->draft->is_private;
}

void version_discard(struct table_version *version) {
    if (!version) {
        return;
    }
    i64 last = version->tablet_count - 1;
    bool alone = atomic_load(&version->refs) == 1 &&
                 (last < 0 || atomic_load(&version->tablets[last]->refs) == 1);
    if (alone) {
        draft_unclaim(version->draft);
    }
    version_release(version);
}

struct table_version *version_alloc(const struct table *table, i64 tablet_count) {
    i64 stats_at = ALIGN_UP((i64)sizeof(struct version_box), 64);
    i64 keys_at = stats_at + (i64)table->col_count * (i64)sizeof(struct column_stats);
    i64 tablets_at = keys_at + (i64)table->key_count * (i64)sizeof(struct key_state);
    i64 deleted_at = tablets_at + tablet_count * (i64)sizeof(struct tablet *);
    i64 starts_at = deleted_at + tablet_count * (i64)sizeof(struct buffer *);
    i64 rows_at = starts_at + tablet_count * (i64)sizeof(i64);
    i64 bytes = rows_at + 3 * tablet_count * (i64)sizeof(u32);
    u8 *block = mem_alloc(table->mem, bytes);
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    struct version_box *box = (struct version_box *)(void *)block;
    box->mem = table->mem;
    box->bytes = bytes;
    box->col_count = table->col_count;
    box->key_count = table->key_count;
    struct table_version *version = &box->version;
    atomic_init(&version->refs, 1);
    version->id = memory_identity(table->mem, IDENTITY_VERSION);
    version->stats = (struct column_stats *)(void *)(block + stats_at);
    version->keys = (struct key_state *)(void *)(block + keys_at);
    version->tablets = (struct tablet **)(void *)(block + tablets_at);
    version->deleted = (struct buffer **)(void *)(block + deleted_at);
    version->row_starts = (i64 *)(void *)(block + starts_at);
    version->tablet_rows = (u32 *)(void *)(block + rows_at);
    version->slots = version->tablet_rows + tablet_count;
    version->deleted_counts = version->slots + tablet_count;
    return version;
}

void version_push(struct table_version *version, struct tablet *tablet, u32 slot,
                  struct buffer *deleted, u32 deleted_count) {
    i64 i = version->tablet_count++;
    ASSERT(tablet->rows > 0 && deleted_count <= tablet->rows && (deleted || !deleted_count));
    ASSERT(!deleted ||
           bits_count((const u64 *)(const void *)deleted->data, tablet->rows) == deleted_count);
    version->mixed |= i > 0 && version->slots[i - 1] > slot;
    version->tablets[i] = tablet;
    version->tablet_rows[i] = tablet->rows;
    version->row_starts[i] = version->rows;
    version->slots[i] = slot;
    version->deleted[i] = deleted;
    version->deleted_counts[i] = deleted_count;
    version->rows += tablet->rows;
    version->live_rows += tablet->rows - deleted_count;
}

i64 version_find_slot(const struct table_version *version, u32 slot) {
    i64 low = 0, high = version->tablet_count;
    if (version->mixed) {
        while (low < high && version->slots[low] != slot) {
            low++;
        }
        return low < high ? low : -1;
    }
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (version->slots[middle] < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < version->tablet_count && version->slots[low] == slot ? low : -1;
}

i64 bits_count(const u64 *words, i64 rows) {
    i64 count = 0;
    for (i64 i = 0; i < rows >> 6; i++) {
        count += __builtin_popcountll(words[i]);
    }
    u64 rest = rows & 63 ? words[rows >> 6] & ((1ULL << (rows & 63)) - 1) : 0;
    return count + __builtin_popcountll(rest);
}

struct buffer *bits_new(struct memory *mem, i64 rows, const struct buffer *from) {
    i64 bytes = ALIGN_UP(rows + 63, 512) / 8; /* room to grow: a tail is often extended */
    struct buffer *bits = buffer_new(mem, bytes);
    if (bits) {
        i64 same = from ? MIN_OF(from->bytes, bytes) : 0;
        if (same) {
            memcpy(bits->data, from->data, (size_t)same);
        }
        memset(bits->data + same, 0, (size_t)(bytes - same));
    }
    return bits;
}

/* The estimate, bounded by what is known for certain. */
static i64 distinct_of(struct col_draft *col, struct type type, i32 len) {
    i64 present = col->all.rows - col->all.null_count;
    if (present == 0) {
        return col->all.rows ? 1 : 0;
    }
    bool exact = !type_is_text(type) && !type_is_float(type);
    if (exact && col->all.strict && col->all.null_count == 0) {
        return present;
    }
    i64 bound = present;
    if (exact) {
        u128 span = (u128)col->all.range.hi - (u128)col->all.range.lo;
        bound = span < (u128)bound ? (i64)span + 1 : bound;
    }
    if (type_is_text(type) && !col->has_str) {
        return MAX_OF(MIN_OF(len, bound), 1);
    }
    if (col->sketch_changed) {
        col->distinct = (i64)(sketch_estimate(&col->sketch) + 0.5);
        col->sketch_changed = 0;
    }
    return MAX_OF(MIN_OF(col->distinct, bound), 1);
}

static struct column_stats stats_of(struct col_draft *col, struct type type, struct dict *dict,
                                    i64 live_rows) {
    bool exact = !type_is_text(type) && !type_is_float(type);
    struct column_stats stats = {.range = facts_range(&col->all),
                                 .null_count = col->all.null_count};
    stats.dict_len = dict ? dict_publish(dict) : 0;
    stats.all_dict = dict && !col->has_str;
    stats.distinct = MIN_OF(distinct_of(col, type, stats.dict_len), MAX_OF(live_rows, 1));
    /* Intervals that are equal may be different numbers, which ascend nevertheless. */
    stats.unique = exact && type.id != TYPE_INTERVAL && col->all.rows && col->all.strict &&
                   !col->all.null_count;
    stats.sorted = exact && col->all.rows && col->all.sorted && !col->all.null_count;
    return stats;
}

void version_stats(struct table_version *version, const struct table *table) {
    struct draft *draft = version->draft;
    for (u32 i = 0; i < table->col_count; i++) {
        version->stats[i] =
            stats_of(&draft->cols[i], table->cols[i].type, table->dicts[i], version->live_rows);
        ASSERT(draft->cols[i].all.rows >= version->live_rows);
    }
    for (u32 i = 0; i < table->key_count; i++) {
        if (table->keys[i].col_count == 1 && !table->keys[i].deferrable) {
            struct column_stats *stats = &version->stats[table->keys[i].cols[0]];
            stats->unique |= stats->null_count == 0;
        }
    }
    version->commit_no = (i64)memory_identity(table->mem, IDENTITY_COMMIT);
    version->content_no = version->commit_no;
}

/* The base's bitmap of tablet t as the writer left it, for at least `rows` rows; false when memory
 * is refused. */
static bool bitmap_of(const struct writer *writer, i64 t, i64 rows, struct buffer **out,
                      u32 *out_count) {
    struct buffer *bits = writer->deleted ? writer->deleted[t] : writer->base->deleted[t];
    *out_count = writer->deleted ? writer->deleted_counts[t] : writer->base->deleted_counts[t];
    *out = NULL;
    if (bits) {
        bool covers = bits->bytes * 8 >= rows;
        *out = covers ? buffer_retain(bits) : bits_new(writer->table->mem, rows, bits);
        return *out != NULL;
    }
    return true;
}

static bool push_carried(struct table_version *version, const struct writer *writer, i64 t) {
    const struct table_version *base = writer->base;
    struct buffer *bits;
    u32 count;
    if (!bitmap_of(writer, t, base->tablet_rows[t], &bits, &count)) {
        return false;
    }
    if (count == base->tablet_rows[t]) {
        buffer_release(bits); /* no live row */
        return true;
    }
    version_push(version, tablet_retain(base->tablets[t]), base->slots[t], bits, count);
    return true;
}

/* A new tablet, or the base's tail, longer or sealed; takes nothing when it fails. */
static bool push_new(struct table_version *version, const struct writer *writer,
                     struct tablet *tablet, u32 slot, struct buffer *deleted) {
    struct buffer *bits = deleted ? buffer_retain(deleted) : NULL;
    u32 count = deleted ? (u32)bits_count((const u64 *)(void *)deleted->data, tablet->rows) : 0;
    i64 t = slot < writer->base->next_slot ? version_find_slot(writer->base, slot) : -1;
    if (t >= 0 && !bitmap_of(writer, t, tablet->rows, &bits, &count)) {
        return false;
    }
    version_push(version, tablet, slot, bits, count);
    return true;
}

struct table_version *version_new(struct writer *writer, struct tablet *tail) {
    struct table *table = writer->table;
    struct draft *draft = writer->draft;
    i64 count = draft->sealed_count + writer->sealed.count + (tail != NULL);
    struct table_version *version = version_alloc(table, count);
    bool ok = version != NULL;
    for (i64 i = 0; ok && i < draft->sealed_count; i++) {
        ok = push_carried(version, writer, i);
    }
    for (i64 i = 0; ok && i < writer->sealed.count; i++) {
        struct tablet *tablet = tablet_retain(writer->sealed.items[i]);
        ok = push_new(version, writer, tablet, writer->sealed_slots[i], writer->sealed_deleted[i]);
        if (!ok) {
            tablet_release(tablet);
        }
    }
    if (ok) {
        draft->sealed_count = version->tablet_count;
    }
    ok = ok && (!tail || push_new(version, writer, tail, draft->tail_slot, writer->tail_deleted));
    if (!ok) {
        version_release(version);
        return NULL;
    }
    version->draft = draft;
    version->next_slot = writer->next_slot;
    version->moves = moves_retain(writer->base->moves);
    version_stats(version, table);
    return version;
}

struct table_version *version_empty(struct table *table, u32 next_slot) {
    struct table_version *version = version_alloc(table, 0);
    struct draft *draft = draft_new(table);
    if (!version || !draft) {
        version_release(version);
        draft_free(table->mem, table->col_count, draft);
        return NULL;
    }
    version->draft = draft;
    version->next_slot = next_slot;
    for (u32 i = 0; i < table->key_count; i++) {
        version->keys[i].order = KEY_STRICT | KEY_RUNS;
    }
    version_stats(version, table);
    return version;
}

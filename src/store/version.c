/* version.c: table versions: what a statement reads.
 *
 * A version is one block: the list of tablets, the rows to read of each, where each begins, and the
 * statistics as of that moment. It is built completely before it is published and never changes. */
#include "store/store_int.h"

struct version_box {
    struct table_version version;
    struct memory *mem;
    i64 bytes;
};

static _Atomic i64 last_commit_no;

struct table_version *version_retain(struct table_version *version) {
    atomic_fetch_add_explicit(&version->refs, 1, memory_order_relaxed);
    return version;
}

void version_release(struct table_version *version) {
    if (!version || atomic_fetch_sub_explicit(&version->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (i64 i = 0; i < version->tablet_count; i++) {
        tablet_release(version->tablets[i]);
    }
    struct version_box *box = (struct version_box *)(void *)version;
    mem_free(box->mem, box, box->bytes);
}

static struct table_version *version_alloc(const struct table *table, i64 tablet_count) {
    i64 stats_at = ALIGN_UP((i64)sizeof(struct version_box), 64);
    i64 tablets_at = stats_at + (i64)table->col_count * (i64)sizeof(struct column_stats);
    i64 starts_at = tablets_at + tablet_count * (i64)sizeof(struct tablet *);
    i64 rows_at = starts_at + tablet_count * (i64)sizeof(i64);
    i64 bytes = rows_at + tablet_count * (i64)sizeof(u32);
    u8 *block = mem_alloc(table->mem, bytes);
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    struct version_box *box = (struct version_box *)(void *)block;
    box->mem = table->mem;
    box->bytes = bytes;
    struct table_version *version = &box->version;
    atomic_init(&version->refs, 1);
    version->stats = (struct column_stats *)(void *)(block + stats_at);
    version->tablets = (struct tablet **)(void *)(block + tablets_at);
    version->row_starts = (i64 *)(void *)(block + starts_at);
    version->tablet_rows = (u32 *)(void *)(block + rows_at);
    return version;
}

static void version_push(struct table_version *version, struct tablet *tablet) {
    i64 i = version->tablet_count++;
    version->tablets[i] = tablet;
    version->tablet_rows[i] = tablet->rows;
    version->row_starts[i] = version->rows;
    version->rows += tablet->rows;
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

static struct column_stats stats_of(struct col_draft *col, struct type type,
                                    const struct dict *dict) {
    bool exact = !type_is_text(type) && !type_is_float(type);
    struct column_stats stats = {.range = facts_range(&col->all),
                                 .null_count = col->all.null_count};
    stats.dict_len = dict ? dict_len(dict) : 0;
    stats.all_dict = dict && !col->has_str;
    stats.distinct = distinct_of(col, type, stats.dict_len);
    stats.unique = exact && col->all.rows && col->all.strict && !col->all.null_count;
    return stats;
}

struct table_version *version_new(struct writer *writer, struct tablet *tail) {
    const struct table *table = writer->table;
    struct draft *draft = writer->draft;
    const struct table_version *old = table->state->current;
    i64 count = draft->sealed_count + writer->sealed.count + (tail != NULL);
    struct table_version *version = version_alloc(table, count);
    if (!version) {
        return NULL;
    }
    for (i64 i = 0; i < draft->sealed_count; i++) {
        version_push(version, tablet_retain(old->tablets[i]));
    }
    for (i64 i = 0; i < writer->sealed.count; i++) {
        version_push(version, tablet_retain(writer->sealed.items[i]));
    }
    if (tail) {
        version_push(version, tail);
    }
    for (u32 i = 0; i < table->col_count; i++) {
        version->stats[i] = stats_of(&draft->cols[i], table->cols[i].type, table->dicts[i]);
        ASSERT(draft->cols[i].all.rows == version->rows);
    }
    version->commit_no = atomic_fetch_add(&last_commit_no, 1) + 1;
    return version;
}

/* earlier.c: a version of a table that came before one in the database file, said by what differs.
 *
 * What follows from a table may follow from an earlier version than the one that a state saves. Slots and positions
 * are the same in both, so the earlier one is the tablets of the later, without rows that came
 * since, and with those that were deleted since. A tablet that has gone, or was written anew, cannot be said.
 *
 * Such a version is for reading and for comparing with later ones: nothing is appended to it. */
#include "store/saved_int.h"

bool version_is_earlier(const struct table_version *now, const struct table_version *then) {
    bool fits = then->next_slot <= now->next_slot && then->commit_no <= now->commit_no && !now->is_delta;
    for (i64 t = 0; t < then->tablet_count && fits; t++) {
        i64 at = version_find_slot(now, then->slots[t]);
        fits = at >= 0 && now->tablet_rows[at] >= then->tablet_rows[t];
    }
    return fits;
}

void version_earlier_save(struct blob *out, const struct table_version *then) {
    blob_u32(out, then->next_slot);
    blob_u32(out, (u32)then->tablet_count);
    for (i64 t = 0; t < then->tablet_count; t++) {
        blob_u32(out, then->slots[t]);
        blob_u32(out, then->tablet_rows[t]);
        if (then->deleted_counts[t]) {
            bits_save(out, version_deleted(then, t), then->tablet_rows[t], then->deleted_counts[t]);
        } else {
            blob_u32(out, 0);
        }
    }
}

/* What was true of all rows of the later one is of these; what only live rows keep is not said. */
static void take_stats(struct table_version *version, const struct table *table,
                       const struct table_version *now) {
    for (u32 c = 0; c < table->col_count; c++) {
        struct column_stats *stats = &version->stats[c];
        *stats = now->stats[c];
        stats->unique = stats->sorted = 0;
        stats->null_count += !table->cols[c].not_null && !stats->null_count;
    }
}

static FALLIBLE take_tablet(struct blob_reader *from, struct table *table,
                            const struct table_version *now, struct table_version *out,
                            struct error *err) {
    u32 slot = read_u32(from);
    i64 rows = read_u32(from);
    i64 at = from->bad ? -1 : version_find_slot(now, slot);
    i64 all = at < 0 ? 0 : now->tablet_rows[at];
    from->bad |= at < 0 || rows > all || rows == 0 || version_find_slot(out, slot) >= 0;
    if (from->bad) {
        return ERR_OK;
    }
    struct buffer *bits = bits_new(table->mem, all, NULL);
    if (!bits) {
        return memory_refused(table->mem, err, all / 8);
    }
    u64 *words = (u64 *)(void *)bits->data;
    (void)bits_load(from, words, rows);
    for (i64 i = rows; i < all; i++) {
        words[i >> 6] |= 1ULL << (i & 63);
    }
    i64 hidden = bits_count(words, all);
    if (from->bad || hidden == all) { /* a tablet without live rows is none */
        buffer_release(bits);
        return ERR_OK;
    }
    if (!hidden) {
        buffer_release(bits);
        bits = NULL;
    }
    version_push(out, tablet_retain(now->tablets[at]), slot, bits, (u32)hidden);
    return ERR_OK;
}

wf_status version_earlier_load(struct blob_reader *from, struct table *table,
                               const struct table_version *now, struct table_version **out,
                               struct error *err) {
    u32 next_slot = read_u32(from);
    u32 count = read_count(from, 12);
    struct table_version *version = version_alloc(table, count);
    if (!version) {
        return memory_refused(table->mem, err, (i64)count * 48);
    }
    version->is_delta = 1;
    version->next_slot = next_slot;
    version->commit_no = now->commit_no;
    version->content_no = -(i64)version->id; /* as no other's */
    take_stats(version, table, now);
    wf_status status = ERR_OK;
    for (u32 t = 0; t < count && !from->bad && !status; t++) {
        status = take_tablet(from, table, now, version, err);
    }
    if (status || from->bad) {
        version_release(version);
        return status;
    }
    *out = version;
    return ERR_OK;
}

/* sample.c: a few texts of a column, for the optimiser's estimates.
 *
 * What share of the rows a LIKE keeps cannot be told from a range or a count of distinct values,
 * and a guess that is off by ten turns join orders around. So the estimate tries the pattern on
 * texts taken at even distances from the version the statement reads. It costs a few dozen
 * microseconds where the query has such a condition, and nothing where it has none. Of a table
 * in the database file, texts of the first tablet stand for all: the statement will read that anyway. */
#include "sql/sql_int.h"

/* The tablet's part of the sample; texts that may leave memory are copied. */
static i64 sample_tablet(const struct snapshot_table *source, u32 col, struct arena *arena, str *out,
                         i64 max) {
    const struct tablet *tablet = source->version->tablets[0];
    i64 rows = source->version->tablet_rows[0], count = MIN_OF(rows, max);
    struct error ignored; /* whoever reads the column meets it */
    error_reset(&ignored);
    if (column_hold(tablet, col, HOLD_IN_MEMORY, &ignored)) {
        return 0;
    }
    for (i64 i = 0; i < count; i++) {
        i64 row = MIN_OF((i64)((f64)rows / (f64)count * ((f64)i + 0.5)), rows - 1);
        bool there = segment_get(&tablet->cols[col], source->table->dicts[col],
                                 source->table->cols[col].type, row, &out[i]);
        out[i] = str_from(there ? arena_sv(arena, sv_of(out[i])) : SV(""));
    }
    column_drop(tablet, col);
    return count;
}

i64 sample_texts(const struct snapshot_table *source, u32 col, struct arena *arena, str *out, i64 max) {
    const struct table_version *version = source->version;
    i64 count = MIN_OF(version->rows, max);
    i64 t = 0;
    bool framed = false;
    for (i64 i = 0; i < version->tablet_count; i++) {
        framed = framed || version->tablets[i]->framed;
    }
    if (framed) {
        return sample_tablet(source, col, arena, out, max);
    }
    for (i64 i = 0; i < count; i++) {
        i64 row = (i64)((f64)version->rows / (f64)count * ((f64)i + 0.5));
        row = MIN_OF(row, version->rows - 1);
        while (row >= version->row_starts[t] + (i64)version->tablet_rows[t]) {
            t++;
        }
        const struct segment *seg = &version->tablets[t]->cols[col];
        if (!segment_get(seg, source->table->dicts[col], source->table->cols[col].type,
                         row - version->row_starts[t], &out[i])) {
            out[i] = str_from(SV(""));
        }
    }
    return count;
}

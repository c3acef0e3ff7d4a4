/* sample.c: a few texts of a column, for the optimiser's estimates.
 *
 * What share of the rows a LIKE keeps cannot be told from a range or a count of distinct values,
 * and a guess that is off by ten turns join orders around. So the estimate tries the pattern on
 * texts taken at even distances from the version the statement reads. It costs a few dozen
 * microseconds where the query has such a condition, and nothing where it has none. */
#include "sql/sql_int.h"

i64 sample_texts(const struct snapshot_table *source, u32 col, str *out, i64 max) {
    const struct table_version *version = source->version;
    i64 count = MIN_OF(version->rows, max);
    i64 t = 0;
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

/* scan.c: a table as an operator of a plan, with what its statistics prove.
 *
 * Every occurrence of a table makes fresh columns, one for each of the table's, in its order. */
#include "typing/typing.h"

#include "catalog/catalog.h"
#include "store/scan.h"

/* What is known of a column: by the statistics, or, of a provider that has none, by its type. */
static struct column_stats known_of(const struct snapshot_table *found, u32 col) {
    if (!found->table->provider) {
        return found->version->stats[col];
    }
    if (found->table->provider->stats) {
        return found->table->provider->stats[col];
    }
    return (struct column_stats){.range = range_of_type(found->table->cols[col].type),
                                 .null_count = found->table->provider->rows + 1};
}

static void scan_column(struct plan *plan, struct rel *scan, const struct snapshot_table *found,
                        u32 i) {
    const struct column_def *def = &found->table->cols[i];
    struct column_stats stats = known_of(found, i);
    bool no_nulls = stats.null_count == 0;
    const char *name = arena_sv(plan->arena, sv_from(def->name)).ptr;
    u32 col = plan_col_new(plan, name, def->type, !no_nulls && !def->not_null);
    struct scan_col scan_col = {.col = col,
                                .table_col = i,
                                .range = stats.range,
                                .no_nulls = no_nulls,
                                .all_dict = stats.all_dict,
                                .unique = stats.unique,
                                .sorted = stats.sorted,
                                .distinct = stats.distinct};
    if (stats.all_dict) { /* what is known of text is how many codes it has */
        scan_col.range = range_of_value(0);
        scan_col.range.hi = stats.dict_len - 1;
    }
    VEC_PUSH(plan->arena, &scan->scan.cols, scan_col);
    VEC_PUSH(plan->arena, &scan->out, col);
}

struct rel *scan_new(struct plan *plan, const struct snapshot_table *found, const char *alias,
                     i32 position) {
    const struct table *table = found->table;
    struct rel *scan = rel_new(plan, REL_SCAN, NULL, NULL);
    scan->position = position;
    scan->scan.table_id = table->id;
    scan->scan.table_name = arena_sv(plan->arena, sv_from(table->name)).ptr;
    scan->scan.alias = alias;
    scan->scan.table_rows = found->version->rows;
    struct snapshot_table *source = NEW(plan->arena, struct snapshot_table);
    *source = *found;
    scan->scan.source = source;
    scan->rows = found->version->live_rows;
    if (table->provider) {
        scan->scan.table_rows = scan->rows = table->provider->rows;
        scan->scan.rows_most = table->provider->rows_most;
    }
    scan->scan.live_rows = scan->rows;
    for (u32 i = 0; i < table->col_count; i++) {
        scan_column(plan, scan, found, i);
    }
    return scan;
}

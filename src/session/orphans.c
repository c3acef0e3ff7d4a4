/* orphans.c: references of very many rows at once, by a join.
 *
 * A row's reference is looked up in the key it refers to (constraint.c), which is read in no order then. Where
 * many rows have to be looked at, those without a parent are asked for by a SELECT, which the engine runs as
 * any other: with all workers, and in parts where memory is short. Only for types whose values are equal in SQL
 * just where a key finds them. See decision 0077. */
#include "session/constraint_int.h"

enum {
#ifdef WF_HARD
    JOIN_ROWS = 64
#else
    JOIN_ROWS = 1 << 17
#endif
};

static bool alike(struct type child, struct type parent) {
    bool whole = child.id == TYPE_SMALLINT || child.id == TYPE_INTEGER || child.id == TYPE_BIGINT;
    bool whole_too = parent.id == TYPE_SMALLINT || parent.id == TYPE_INTEGER || parent.id == TYPE_BIGINT;
    bool plain = child.id == TYPE_TEXT || child.id == TYPE_DATE || child.id == TYPE_TIMESTAMP;
    return (whole && whole_too) || (plain && child.id == parent.id);
}

bool orphans_by_join(const struct table *child, const struct table_foreign *fk,
                     const struct table_version *rows, const struct table *parent) {
    /* of one table a statement reads one version */
    bool fine = rows->live_rows >= JOIN_ROWS && child->id != parent->id &&
                !(fk->match_full && fk->col_count > 1);
    for (u32 i = 0; i < fk->col_count && fine; i++) {
        fine = alike(child->cols[fk->cols[i]].type, parent->cols[fk->ref_cols[i]].type);
    }
    return fine;
}

static void print_table(struct text *sql, const struct edition *edition, const struct object *object) {
    const struct edition_entry *schema = edition_find_oid(edition, object->schema);
    define_name(sql, schema ? schema->object->name : "public");
    text_print(sql, ".");
    define_name(sql, object->name);
}

static void print_columns(struct text *sql, const struct table *child, const struct table_foreign *fk) {
    for (u32 i = 0; i < fk->col_count; i++) {
        text_print(sql, "%s c.", i ? "," : "");
        define_name(sql, child->cols[fk->cols[i]].name);
    }
}

/* Columns that are looked at, one pair or one column at a time. */
static void print_pairs(struct text *sql, const struct table *child, const struct table_foreign *fk,
                        const struct table *parent) {
    for (u32 i = 0; i < fk->col_count; i++) {
        text_print(sql, "%s c.", i ? " AND" : "");
        define_name(sql, child->cols[fk->cols[i]].name);
        if (parent) {
            text_print(sql, " = p.");
            define_name(sql, parent->cols[fk->ref_cols[i]].name);
        } else {
            text_print(sql, " IS NOT NULL");
        }
    }
}

/* The least of those that were found, as the columns of an answer. */
static void show_found(struct rowset *found, const struct table *child, const struct table_foreign *fk,
                       bool *out_any, struct shown_key *out) {
    struct wf_batch batch;
    *out = (struct shown_key){"", ""};
    *out_any = rowset_read(found, 1, &batch) == WF_OK && batch.row_count > 0;
    for (u32 i = 0; *out_any && i < fk->col_count; i++) {
        const struct column_def *col = &child->cols[fk->cols[i]];
        const struct column *values = &batch.chunk->cols[i];
        union lit value = {.i64 = 0};
        if (type_kind(col->type) == KIND_STR) {
            value.str = str_from(batch_text(&batch, (i32)i, 0));
        } else {
            i32 width = kind_bytes[values->kind];
            memcpy(&value, (const u8 *)values->data + batch.first * width, (size_t)width);
        }
        key_show_value(out, col->name, col->type, &value);
    }
}

FALLIBLE orphans_find(struct wf_connection *conn, const struct object *child,
                      const struct table_foreign *fk, struct table_version *rows,
                      const struct edition_entry *parent, bool *out_any,
                      struct shown_key *out_key) {
    struct arena arena;
    struct text sql;
    struct rowset *found = NULL;
    arena_init(&arena, &conn->db->mem);
    text_init(&sql, &arena);
    text_print(&sql, "SELECT");
    print_columns(&sql, child->table, fk);
    text_print(&sql, " FROM ");
    print_table(&sql, conn->tx.mine, child);
    text_print(&sql, " c WHERE");
    print_pairs(&sql, child->table, fk, NULL);
    text_print(&sql, " AND NOT EXISTS (SELECT 1 FROM ");
    print_table(&sql, conn->tx.mine, parent->object);
    text_print(&sql, " p WHERE");
    print_pairs(&sql, child->table, fk, parent->object->table);
    text_print(&sql, ") ORDER BY");
    print_columns(&sql, child->table, fk);
    text_print(&sql, " LIMIT 1");
    struct inner_select select = {.binding.text = sv_from(sql.ptr),
                                  .binding.bind = bind_sql,
                                  .binding.arg = sql.ptr,
                                  .table = child->table,
                                  .version = rows,
                                  .old = parent->object->table,
                                  .old_version = parent->version};
    wf_status status = arena_check(&arena, &conn->err);
    status = status ? status : inner_run(conn, &select, &found);
    *out_any = false;
    if (!status) {
        show_found(found, child->table, fk, out_any, out_key);
    }
    rowset_release(found);
    arena_fini(&arena);
    return status;
}

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

static wf_status bind_orphans(void *arg, struct arena *arena, struct snapshot *snap,
                              struct type *param_types, struct statement *out, struct error *err) {
    struct parsed_list list;
    TRY(sql_parse(arena, sv_from(arg), &list, err));
    return sql_bind(arena, list.items.items[0], snap, param_types, out, err);
}

static void print_table(struct text *sql, const struct edition *edition, const struct object *object) {
    const struct edition_entry *schema = edition_find_oid(edition, object->schema);
    define_name(sql, schema ? schema->object->name : "public");
    text_print(sql, ".");
    define_name(sql, object->name);
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

FALLIBLE orphans_find(struct wf_connection *conn, const struct object *child,
                      const struct table_foreign *fk, struct table_version *rows,
                      const struct edition_entry *parent, bool *out_any) {
    struct arena arena;
    struct text sql;
    struct rowset *found = NULL;
    arena_init(&arena, &conn->db->mem);
    text_init(&sql, &arena);
    text_print(&sql, "SELECT 1 FROM ");
    print_table(&sql, conn->tx.mine, child);
    text_print(&sql, " c WHERE");
    print_pairs(&sql, child->table, fk, NULL);
    text_print(&sql, " AND NOT EXISTS (SELECT 1 FROM ");
    print_table(&sql, conn->tx.mine, parent->object);
    text_print(&sql, " p WHERE");
    print_pairs(&sql, child->table, fk, parent->object->table);
    text_print(&sql, ") LIMIT 1");
    struct inner_select select = {.binding.text = sv_from(sql.ptr),
                                  .binding.bind = bind_orphans,
                                  .binding.arg = sql.ptr,
                                  .table = child->table,
                                  .version = rows,
                                  .old = parent->object->table,
                                  .old_version = parent->version};
    wf_status status = arena_check(&arena, &conn->err);
    status = status ? status : inner_run(conn, &select, &found);
    *out_any = !status && found->answer.rows > 0;
    rowset_release(found);
    arena_fini(&arena);
    return status;
}

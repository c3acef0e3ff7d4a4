/* change.c: statements that change rows: INSERT, UPDATE, DELETE, TRUNCATE.
 *
 * Each runs its plan on the statement's snapshot to the end before it changes anything, so a
 * statement that reads its own table sees one state of it. Then it makes a version with the
 * outcome, which becomes part of the transaction if keys and constraints allow; what fails leaves
 * the transaction as it was. */
#include "session/session_int.h"

FALLIBLE change_base(struct wf_connection *conn, const struct table *table,
                     struct table_version **out) {
    const struct edition_entry *entry = edition_find_table(conn->tx.mine, table->id);
    if (!entry) {
        FAIL(&conn->err, UNDEFINED_TABLE, "table \"%s\" is gone", table->name);
    }
    *out = entry->version;
    return ERR_OK;
}

FALLIBLE change_keep(struct wf_connection *conn, struct table *table, struct table_version *base,
                     struct table_version *mine) {
    b8 *waiting = NULL;
    for (u32 k = 0; k < table->key_count; k++) {
        if (!waiting && key_is_deferred(conn, &table->keys[k])) {
            waiting = mem_alloc(&conn->db->mem, table->key_count);
            TRY(waiting ? ERR_OK : memory_refused(&conn->db->mem, &conn->err, table->key_count));
            memset(waiting, 0, table->key_count);
        }
        if (waiting) {
            waiting[k] = key_is_deferred(conn, &table->keys[k]);
        }
    }
    wf_status status = version_check_keys(table, base, mine, waiting, &conn->err);
    mem_free(&conn->db->mem, waiting, waiting ? table->key_count : 0);
    TRY(status);
    return tx_set_version(conn, table, mine);
}

FALLIBLE change_install(struct wf_connection *conn, struct table *table, struct table_version *base,
                        struct table_version *mine, const struct row_pairs *pairs) {
    TRY(change_keep(conn, table, base, mine));
    return constraints_after(conn, table, base, pairs);
}

/* Makes the version a change has made the transaction's; *io_mine is given up. */
static FALLIBLE install_or_discard(struct wf_connection *conn, struct table *table,
                                   struct table_version *base, struct table_version *mine) {
    wf_status status = mine ? change_install(conn, table, base, mine, NULL) : ERR_OK;
    if (status) {
        version_discard(mine);
    } else {
        version_release(mine);
    }
    return status;
}

FALLIBLE change_append(struct wf_connection *conn, struct table *table, i64 row_count,
                       const struct input_col *cols) {
    struct table_version *base = NULL, *mine = NULL;
    TRY(change_base(conn, table, &base));
    if (row_count == 0) {
        return ERR_OK;
    }
    base = version_retain(base);
    wf_status status = append_rows(conn, table, base, row_count, cols, &mine);
    status = status ? status : install_or_discard(conn, table, base, mine);
    version_release(base);
    return status;
}

void change_expect_answer(struct rowset *rows) {
    enum { STORE_COST = 30 }; /* of a value, in the units of run/work.c */
    rows->exec.work.answer_cost = STORE_COST * (i64)rows->exec.program->col_count;
}

FALLIBLE change_answer(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       i64 *out_count) {
    enum { FEW_ROWS = 1 << 18 };
    struct table_version *base = NULL, *mine = NULL;
    struct gathered all = {0};
    *out_count = rows->answer.rows;
    if (!rows->more && rows->answer.rows < FEW_ROWS) {
        watch_exec(&conn->watch, &rows->exec);
        wf_status status = gather(rows, table, 0, NULL, *out_count, &all, &conn->err);
        status = status ? status : change_append(conn, table, *out_count, all.cols);
        watch_exec(&conn->watch, NULL);
        gather_free(table, &all);
        return status;
    }
    TRY(change_base(conn, table, &base));
    base = version_retain(base);
    wf_status status = append_answer(conn, rows, table, base, out_count, &mine);
    status = status ? status : install_or_discard(conn, table, base, mine);
    version_release(base);
    return status;
}

static FALLIBLE find_target(struct wf_connection *conn, struct rowset *rows,
                            const struct statement *st, struct snapshot_table *out) {
    if (!snapshot_find_id(&rows->snap, st->change.table_id, out)) {
        FAIL(&conn->err, UNDEFINED_TABLE, "table \"%s\" is gone", st->name);
    }
    return ERR_OK;
}

/* INSERT */

FALLIBLE fill_from_sequence(struct wf_connection *conn, struct rowset *rows,
                            const struct table *table, const struct fill *fill,
                            struct gathered *all) {
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, fill->sequence);
    struct input_col *col = &all->cols[fill->col];
    if (!entry || !entry->object->sequence) {
        FAIL(&conn->err, UNDEFINED_OBJECT, "the sequence of column \"%s\" is gone",
             table->cols[fill->col].name);
    }
    enum kind kind = type_kind(table->cols[fill->col].type);
    i64 width = kind_bytes[kind], bytes = all->rows * width;
    struct buffer *data = buffer_new(&rows->mem, MAX_OF(bytes, 1));
    if (!data) {
        return memory_refused(&rows->mem, &conn->err, bytes);
    }
    memcpy(data->data, col->data, (size_t)bytes);
    for (i64 i = 0; i < all->rows; i++) {
        if (col->nulls && col->nulls[i]) {
            i64 value = 0;
            wf_status status =
                sequence_next(entry->object->sequence, entry->object->name, 1, &value, &conn->err);
            status = status ? status : session_note_value(conn, fill->sequence, value, true);
            if (status) {
                buffer_release(data);
                return status;
            }
            struct type type = table->cols[fill->col].type;
            i64 most = type.id == TYPE_SMALLINT ? INT16_MAX : INT32_MAX;
            if (type.id != TYPE_BIGINT && (value > most || value < -most - 1)) {
                char name[32];
                buffer_release(data);
                FAIL(&conn->err, OUT_OF_RANGE, "%s out of range", type_print(type, name));
            }
            i128 wide = value;
            memcpy(data->data + i * width, &wide, (size_t)width); /* little-endian, exact kinds */
        }
    }
    buffer_release(all->buffers[2 * fill->col]);
    all->buffers[2 * fill->col] = data;
    col->data = data->data;
    col->nulls = NULL;
    return ERR_OK;
}

struct returning_arg {
    const struct parsed *parsed;
    const struct table *rows;
};

static wf_status bind_returning(void *arg, struct arena *arena, struct snapshot *snap,
                                struct type *param_types, struct statement *out,
                                struct error *err) {
    const struct returning_arg *own = arg;
    return sql_bind_returning(arena, own->parsed, snap, own->rows, param_types, out, err);
}

/* A table by itself that holds new rows: where the statement names the table, it sees the old. */
static struct table *table_beside(struct wf_connection *conn, const struct table *table) {
    struct table_def def = table_def_view(table);
    return table_open_def(&conn->db->mem, catalog_new_id(conn->db->catalog), &def, table->dicts,
                          table->tablet_shift, table->plain);
}

static FALLIBLE insert_returning(struct wf_connection *conn, const struct run_request *request,
                                 struct rowset *rows, struct table *table,
                                 struct table_version *base) {
    struct table_version *mine = NULL, *delta = NULL;
    TRY(change_base(conn, table, &mine));
    struct table *beside = table_beside(conn, table);
    if (!beside) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *beside);
    }
    wf_status status = version_delta(table, base, mine, &delta, &conn->err);
    if (!status) {
        struct returning_arg arg = {request->parsed, beside};
        struct inner_select select = {.binding.script = request->script,
                                      .binding.text = parsed_text(request->parsed),
                                      .binding.bind = bind_returning,
                                      .binding.arg = &arg,
                                      .table = beside,
                                      .version = delta,
                                      .old = table,
                                      .old_version = base,
                                      .request = request};
        status = inner_run(conn, &select, &rows->instead);
    }
    version_release(delta);
    table_close(beside);
    return status;
}

/* Whether rows can be inserted as they are computed. */
static bool takes_slices(const struct statement *st) {
    return !st->change.conflict && st->change.fill_count == 0;
}

FALLIBLE insert_answer(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows) {
    const struct statement *st = rowset_statement(rows);
    struct snapshot_table target;
    TRY(find_target(conn, rows, st, &target));
    struct table *table = target.table;
    ASSERT(rows->col_count == table->col_count);
    i64 count = rows->answer.rows;
    if (takes_slices(st)) {
        TRY(change_answer(conn, rows, table, &count));
    } else {
        struct gathered all = {0};
        wf_status status = gather(rows, table, 0, NULL, count, &all, &conn->err);
        for (i32 i = 0; i < st->change.fill_count && !status; i++) {
            status = fill_from_sequence(conn, rows, table, &st->change.fills[i], &all);
        }
        if (!status) {
            status = st->change.conflict ? change_conflict(conn, request, rows, table, &all, &count)
                                         : change_append(conn, table, count, all.cols);
        }
        gather_free(table, &all);
        TRY(status);
    }
    rows->rows_affected = count;
    rows->tag = arena_printf(&rows->arena, rows->compiled->stmt.is_copy ? "COPY %lld" : "INSERT 0 %lld", count);
    if (st->change.returning && !rows->explains) {
        TRY(insert_returning(conn, request, rows, table, target.version));
    }
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    return ERR_OK;
}

FALLIBLE run_insert(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows));
    change_expect_answer(rows);
    TRY(takes_slices(&rows->compiled->stmt) ? rowset_start_exec(conn, rows)
                                            : rowset_run_exec(conn, rows));
    return insert_answer(conn, request, rows);
}

/* UPDATE and DELETE */

/* Leaves the columns of RETURNING, and of the rows only those that were changed. */
static FALLIBLE keep_returning(struct rowset *rows, u32 first, i32 count, const b8 *fresh, i64 kept,
                               struct error *err) {
    struct arena *arena = &rows->arena;
    struct chunk *chunk = NEW(arena, struct chunk);
    chunk->rows = kept;
    chunk->cols = NEW_ARRAY(arena, struct column, count + 1);
    for (i32 c = 0; c < count; c++) {
        u32 from = first + (u32)c;
        const struct answer *answer = &rows->answer;
        enum kind kind = KIND_B8;
        i64 at = 0, row = 0;
        for (i64 s = 0; s < answer->slice_count; s++) {
            const struct slice *slice = &answer->slices[s];
            const struct column *col = &slice->chunk->cols[from];
            kind = (enum kind)col->kind;
            i64 width = kind_bytes[kind];
            if (!chunk->cols[c].data) {
                chunk->cols[c].kind = col->kind;
                chunk->cols[c].data = arena_alloc(arena, MAX_OF(kept, 1) * width);
                chunk->cols[c].nulls = NEW_ARRAY(arena, b8, MAX_OF(kept, 1));
            }
            for (i64 i = 0; i < slice->rows; i++, row++) {
                if (fresh[row]) {
                    memcpy((u8 *)chunk->cols[c].data + at * width,
                           (const u8 *)col->data + (slice->first + i) * width, (size_t)width);
                    chunk->cols[c].nulls[at++] = col->nulls && col->nulls[slice->first + i];
                }
            }
        }
    }
    rows->cols += first;
    rows->col_count = (u32)count;
    rows->answer.rows = kept;
    rows->answer.slice_count = kept ? 1 : 0;
    rows->answer.slices = NEW(arena, struct slice);
    *rows->answer.slices = (struct slice){chunk, 0, kept};
    return arena_check(arena, err);
}

FALLIBLE change_row_numbers(struct rowset *rows, i64 **out, struct error *err) {
    i64 *ids = NEW_ARRAY(&rows->arena, i64, rows->answer.rows + 1), at = 0;
    for (i64 s = 0; s < rows->answer.slice_count; s++) {
        const struct slice *slice = &rows->answer.slices[s];
        const struct column *col = &slice->chunk->cols[0];
        ASSERT(col->kind == KIND_I64);
        memcpy(ids + at, (const i64 *)col->data + slice->first, (size_t)slice->rows * sizeof *ids);
        at += slice->rows;
    }
    *out = ids;
    return arena_check(&rows->arena, err);
}

/* The rows that UPDATE and DELETE take away. */
struct taken {
    struct table *table;
    struct table_version *base, *less; /* with them and without */
    b8 *fresh;                         /* marks those of the answer that did it */
    i64 count;
};

static FALLIBLE take_rows(struct wf_connection *conn, struct rowset *rows, struct taken *out) {
    struct snapshot_table target;
    i64 *ids = NULL;
    TRY(find_target(conn, rows, rowset_statement(rows), &target));
    TRY(change_row_numbers(rows, &ids, &conn->err));
    *out = (struct taken){.table = target.table, .base = target.version};
    out->fresh = NEW_ARRAY(&rows->arena, b8, rows->answer.rows + 1);
    TRY(arena_check(&rows->arena, &conn->err));
    struct deletion gone = {.count = rows->answer.rows, .rows = ids, .fresh = out->fresh};
    wf_status status = version_delete(out->table, out->base, &gone, &out->less, &conn->err);
    out->count = gone.deleted;
    return status;
}

static FALLIBLE finish_change(struct wf_connection *conn, struct rowset *rows, u32 first,
                              const char *word, const struct taken *taken) {
    const struct statement *st = rowset_statement(rows);
    i64 count = taken->count;
    rows->rows_affected = count;
    rows->tag = arena_printf(&rows->arena, "%s %lld", word, count);
    if (st->change.returning && !rows->explains) {
        return keep_returning(rows, first, st->change.returning, taken->fresh, count, &conn->err);
    }
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    return ERR_OK;
}

FALLIBLE delete_answer(struct wf_connection *conn, struct rowset *rows) {
    struct taken taken;
    TRY(take_rows(conn, rows, &taken));
    wf_status status =
        taken.count ? change_install(conn, taken.table, taken.base, taken.less, NULL) : ERR_OK;
    version_release(taken.less);
    TRY(status);
    return finish_change(conn, rows, 1, "DELETE", &taken);
}

FALLIBLE run_delete(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows));
    TRY(rowset_run_exec(conn, rows));
    return delete_answer(conn, rows);
}

static FALLIBLE append_changed(struct wf_connection *conn, struct rowset *rows,
                               const struct taken *taken) {
    struct table *table = taken->table;
    i64 count = taken->count;
    struct table_version *mine = NULL;
    struct chosen chosen = {1, count < rows->answer.rows ? taken->fresh : NULL, count};
    TRY(append_chosen(conn, rows, table, taken->less, &chosen, &mine));
    i64 *ids = NULL, kept = 0;
    wf_status status = change_row_numbers(rows, &ids, &conn->err);
    for (i64 i = 0; !status && i < rows->answer.rows; i++) {
        ids[kept] = ids[i];
        kept += taken->fresh[i];
    }
    struct row_pairs pairs = {count, ids};
    status = status ? status : change_install(conn, table, taken->base, mine, &pairs);
    if (status) {
        version_discard(mine);
    } else {
        version_release(mine);
    }
    return status;
}

/* More rows than are there at once. */
static FALLIBLE update_flowing(struct wf_connection *conn, struct rowset *rows) {
    struct snapshot_table target;
    struct replaced replaced;
    TRY(find_target(conn, rows, rowset_statement(rows), &target));
    wf_status status = append_replacing(conn, rows, target.table, target.version, &replaced);
    if (!status && replaced.mine) {
        struct row_pairs pairs = {replaced.count, replaced.ids};
        status = change_install(conn, target.table, target.version, replaced.mine, &pairs);
    }
    if (status) {
        version_discard(replaced.mine);
    } else {
        version_release(replaced.mine);
    }
    struct taken taken = {.table = target.table, .count = replaced.count};
    replaced_fini(&replaced);
    TRY(status);
    return finish_change(conn, rows, 1 + target.table->col_count, "UPDATE", &taken);
}

FALLIBLE update_answer(struct wf_connection *conn, struct rowset *rows) {
    struct taken taken;
    if (rows->more) {
        return update_flowing(conn, rows);
    }
    TRY(take_rows(conn, rows, &taken));
    wf_status status = taken.count ? append_changed(conn, rows, &taken) : ERR_OK;
    version_release(taken.less);
    TRY(status);
    return finish_change(conn, rows, 1 + taken.table->col_count, "UPDATE", &taken);
}

FALLIBLE run_update(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows));
    bool whole = rows->compiled->stmt.change.returning > 0;
    TRY(whole ? rowset_run_exec(conn, rows) : rowset_start_exec(conn, rows));
    return update_answer(conn, rows);
}

/* TRUNCATE */

struct emptied {
    VEC(u64) ids; /* of tables */
};

static bool among(const struct emptied *all, u64 id) {
    for (i64 i = 0; i < all->ids.count; i++) {
        if (all->ids.items[i] == id) {
            return true;
        }
    }
    return false;
}

/* Tables that refer to one that is emptied are emptied with it: named too, or by CASCADE. */
static FALLIBLE add_referrers(struct wf_connection *conn, const struct statement *st,
                              struct arena *arena, struct emptied *io, u32 oid) {
    for (struct edition_walk at = edition_walk_users(conn->tx.mine, oid); edition_step(&at);) {
        const struct table *table = at.entry->object->table;
        for (u32 f = 0; table && f < table->foreign_count; f++) {
            if (table->foreigns[f].ref_oid != oid || among(io, table->id)) {
                continue;
            }
            if (!st->truncate.cascade) {
                error_set(&conn->err, ERR_NOT_SUPPORTED, st->position,
                          "cannot truncate a table referenced in a foreign key constraint");
                error_hint(&conn->err,
                           "Truncate table \"%s\" at the same time, or use TRUNCATE … CASCADE.",
                           table->name);
                return ERR_NOT_SUPPORTED;
            }
            notice(conn, "NOTICE", "truncate cascades to table \"%s\"", table->name);
            VEC_PUSH(arena, &io->ids, table->id);
        }
    }
    return ERR_OK;
}

static void restart_sequences(const struct edition *edition, u32 owner) {
    for (struct edition_walk at = edition_walk_users(edition, owner); edition_step(&at);) {
        const struct object *object = at.entry->object;
        if (object->sequence && object->owner == owner) {
            sequence_set(object->sequence, object->sequence->start, false);
        }
    }
}

FALLIBLE run_truncate(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    struct emptied all = {0};
    rows->tag = "TRUNCATE TABLE";
    for (i32 i = 0; i < st->truncate.count; i++) {
        if (!among(&all, st->truncate.ids[i])) {
            VEC_PUSH(&rows->arena, &all.ids, st->truncate.ids[i]);
        }
    }
    for (i64 i = 0; i < all.ids.count; i++) {
        const struct edition_entry *entry = edition_find_table(conn->tx.mine, all.ids.items[i]);
        TRY(add_referrers(conn, st, &rows->arena, &all, entry->object->oid));
        TRY(arena_check(&rows->arena, &conn->err));
    }
    for (i64 i = 0; i < all.ids.count; i++) {
        const struct edition_entry *entry = edition_find_table(conn->tx.mine, all.ids.items[i]);
        if (st->truncate.restart) {
            restart_sequences(conn->tx.mine, entry->object->oid);
        }
        struct table_version *empty;
        TRY(version_truncate(entry->object->table, entry->version, &empty, &conn->err));
        wf_status status = tx_set_version(conn, entry->object->table, empty);
        version_release(empty);
        TRY(status);
    }
    return ERR_OK;
}

/* reference.c: what becomes of rows that refer to a row that is gone or has another key.
 *
 * The keys that a table lost are put into a map, after an UPDATE each with the key that its row has
 * now. The tables that refer to it are searched for rows with such a key, and ON DELETE or ON
 * UPDATE says what happens: they go, are made again with other values in the referring columns
 * (which is an update of their table, with all that follows from it), or are an error. */
#include "api/constraint_int.h"

/* Keys as bytes, for the set of those that are gone. */
static struct sv key_bytes(struct text *out, const struct table *table, u32 count, const u32 *cols,
                           const struct values *values) {
    out->len = 0;
    for (u32 i = 0; i < count; i++) {
        enum kind kind = type_kind(table->cols[cols[i]].type);
        if (kind == KIND_STR) {
            struct sv s = sv_of(values->v[i].str);
            text_append(out, (struct sv){(const char *)&s.len, (i64)sizeof s.len});
            text_append(out, s);
        } else {
            text_append(out, (struct sv){(const char *)&values->v[i], kind_bytes[kind]});
        }
    }
    return (struct sv){out->ptr, out->len};
}

/* Whether the parent has no row with this key any more; then *out is its bytes. */
static FALLIBLE is_gone(struct arena *arena, struct text *bytes, struct table *parent,
                        const struct table_foreign *fk, const struct values *values,
                        struct table_version *now, bool *out_gone, struct sv *out,
                        struct error *err) {
    u32 key = 0, order[32];
    const void *in_order[32];
    bool still = false;
    TRY(reference_key(parent, fk, &key, order, err));
    for (u32 i = 0; i < fk->col_count; i++) {
        in_order[i] = values->at[order[i]];
    }
    TRY(version_key_exists(parent, now, key, in_order, &still, err));
    *out_gone = !still;
    *out = still ? (struct sv){NULL, 0}
                 : arena_sv(arena, key_bytes(bytes, parent, fk->col_count, fk->ref_cols, values));
    return ERR_OK;
}

FALLIBLE gone_keys(struct arena *arena, struct table *parent, const struct table_foreign *fk,
                   const struct table_version *removed, struct table_version *now, struct map *out,
                   struct error *err) {
    struct text bytes;
    text_init(&bytes, arena);
    map_init(out, arena);
    for (i64 t = 0; t < removed->tablet_count; t++) {
        for (i64 pos = 0; pos < removed->tablet_rows[t]; pos++) {
            struct values values;
            struct sv key;
            bool gone = false;
            if (!is_live(removed, t, pos) || !read_values(parent, removed->tablets[t], pos,
                                                          fk->col_count, fk->ref_cols, &values)) {
                continue;
            }
            TRY(is_gone(arena, &bytes, parent, fk, &values, now, &gone, &key, err));
            if (gone) {
                map_set(out, key, out);
            }
        }
    }
    return arena_check(arena, err);
}

/* A key that a row has now. */
struct new_key {
    union lit v[32];
    b8 nulls[32];
};

static i64 tablet_of(const struct table_version *version, i64 row) {
    i64 lo = 0, hi = version->tablet_count - 1;
    while (lo < hi) {
        i64 mid = (lo + hi + 1) / 2;
        if (version->row_starts[mid] <= row) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return lo;
}

static struct new_key *read_new(struct arena *arena, const struct table *table,
                                const struct table_foreign *fk, const struct tablet *tablet,
                                i64 pos) {
    struct new_key *key = NEW(arena, struct new_key);
    for (u32 i = 0; i < fk->col_count; i++) {
        u32 c = fk->ref_cols[i];
        key->nulls[i] =
            !segment_get(&tablet->cols[c], table->dicts[c], table->cols[c].type, pos, &key->v[i]);
    }
    return key;
}

/* After an UPDATE: the i-th live row of `delta` is what row old_rows[i] of the base has become. */
static FALLIBLE moved_keys(struct arena *arena, struct table *parent,
                           const struct table_foreign *fk, const struct table_version *base,
                           const struct table_version *delta, struct table_version *now,
                           const struct row_pairs *pairs, struct map *out, struct error *err) {
    struct text bytes;
    i64 i = 0;
    text_init(&bytes, arena);
    map_init(out, arena);
    for (i64 t = 0; t < delta->tablet_count; t++) {
        for (i64 pos = 0; pos < delta->tablet_rows[t] && i < pairs->count; pos++) {
            struct values values;
            struct sv key;
            bool gone = false;
            if (!is_live(delta, t, pos)) {
                continue;
            }
            i64 row = pairs->old_rows[i++], from = tablet_of(base, row);
            if (!read_values(parent, base->tablets[from], row - base->row_starts[from],
                             fk->col_count, fk->ref_cols, &values)) {
                continue;
            }
            TRY(is_gone(arena, &bytes, parent, fk, &values, now, &gone, &key, err));
            if (gone) {
                map_set(out, key, read_new(arena, parent, fk, delta->tablets[t], pos));
            }
        }
    }
    return arena_check(arena, err);
}

void find_referring(struct arena *arena, const struct table *child, const struct table_foreign *fk,
                    const struct table_version *rows, const struct map *keys,
                    struct row_list *out) {
    struct text bytes;
    text_init(&bytes, arena);
    for (i64 t = 0; t < rows->tablet_count; t++) {
        for (i64 pos = 0; pos < rows->tablet_rows[t]; pos++) {
            struct values values;
            if (!is_live(rows, t, pos) ||
                !read_values(child, rows->tablets[t], pos, fk->col_count, fk->cols, &values)) {
                continue;
            }
            void *found =
                map_find(keys, key_bytes(&bytes, child, fk->col_count, fk->cols, &values));
            if (found) {
                VEC_PUSH(arena, &out->rows, rows->row_starts[t] + pos);
                VEC_PUSH(arena, &out->found, found);
            }
        }
    }
}

FALLIBLE still_referred(const struct table *parent, const struct table *child,
                        const struct table_foreign *fk, struct error *err) {
    error_set(err, ERR_FOREIGN_KEY, -1,
              "update or delete on table \"%s\" violates foreign key constraint \"%s\" on table "
              "\"%s\"",
              parent->name, fk->name, child->name);
    error_hint(err, "The key is still referenced from table \"%s\".", child->name);
    return ERR_FOREIGN_KEY;
}

/* SET DEFAULT */

static wf_status bind_default(void *arg, struct arena *arena, struct snapshot *snap,
                              struct type *param_types, struct statement *out, struct error *err) {
    struct parsed_list list;
    TRY(sql_parse(arena, sv_from(arg), &list, err));
    return sql_bind(arena, list.items.items[0], snap, param_types, out, err);
}

FALLIBLE default_value(struct wf_connection *conn, struct arena *arena, const struct table *child,
                       u32 col, union lit *out, b8 *out_null) {
    const struct column_def *def = &child->cols[col];
    char word[32];
    *out_null = 1;
    if (!def->default_text) {
        return ERR_OK;
    }
    char *text = arena_printf(arena, "SELECT CAST((%s) AS %s)", def->default_text,
                              type_print(def->type, word));
    struct inner_select select = {.text = sv_from(text), .bind = bind_default, .arg = text};
    struct rowset *rows;
    TRY(arena_check(arena, &conn->err));
    TRY(inner_run(conn, &select, &rows));
    const struct slice *slice = rows->answer.rows == 1 ? &rows->answer.slices[0] : NULL;
    const struct column *value = slice ? &slice->chunk->cols[0] : NULL;
    if (value && !(value->nulls && value->nulls[slice->first])) {
        i64 width = kind_bytes[value->kind];
        *out_null = 0;
        memcpy(out, (const u8 *)value->data + slice->first * width, (size_t)width);
        if (value->kind == KIND_STR) {
            out->str = str_from(arena_sv(arena, sv_of(out->str)));
        }
    }
    rowset_release(rows);
    return arena_check(arena, &conn->err);
}

/* What a referring column gets: the same for every row, or by row what its parent has now. */
static FALLIBLE fill_reference(struct wf_connection *conn, struct arena *arena, struct table *child,
                               const struct table_foreign *fk, u32 part, u8 action,
                               const struct row_list *list, u8 *data, b8 *nulls) {
    i64 width = kind_bytes[type_kind(child->cols[fk->cols[part]].type)];
    struct new_key same = {.nulls = {1}};
    if (action == FK_SET_DEFAULT) {
        TRY(default_value(conn, arena, child, fk->cols[part], &same.v[0], &same.nulls[0]));
    }
    for (i64 i = 0; i < list->rows.count; i++) {
        const struct new_key *key = action == FK_CASCADE ? list->found.items[i] : &same;
        u32 at = action == FK_CASCADE ? part : 0;
        nulls[i] = key->nulls[at];
        memcpy(data + i * width, &key->v[at], (size_t)width);
    }
    return ERR_OK;
}

/* The listed rows again, with other values in the columns that refer. */
static FALLIBLE append_again(struct wf_connection *conn, struct arena *arena, struct table *child,
                             const struct table_foreign *fk, u8 action,
                             const struct table_version *base, const struct row_list *list,
                             struct table_version *less, struct table_version **out) {
    i64 count = list->rows.count;
    struct input_col *cols = NEW_ARRAY(arena, struct input_col, child->col_count);
    for (u32 c = 0; c < child->col_count; c++) {
        i64 width = kind_bytes[type_kind(child->cols[c].type)], t = 0;
        u8 *data = arena_alloc(arena, MAX_OF(count, 1) * width);
        b8 *nulls = NEW_ARRAY(arena, b8, MAX_OF(count, 1));
        u32 part = 0;
        while (part < fk->col_count && fk->cols[part] != c) {
            part++;
        }
        TRY(arena_check(arena, &conn->err));
        if (part < fk->col_count) {
            TRY(fill_reference(conn, arena, child, fk, part, action, list, data, nulls));
        }
        for (i64 i = 0; i < count && part == fk->col_count; i++) {
            while (list->rows.items[i] >= base->row_starts[t] + base->tablet_rows[t]) {
                t++;
            }
            i64 pos = list->rows.items[i] - base->row_starts[t];
            nulls[i] = !segment_get(&base->tablets[t]->cols[c], child->dicts[c],
                                    child->cols[c].type, pos, data + i * width);
        }
        cols[c] = (struct input_col){data, nulls};
    }
    TRY(arena_check(arena, &conn->err));
    return version_append_unchecked(child, less, count, cols, out, &conn->err);
}

/* The rows of the list go, or are made again. */
static FALLIBLE act(struct wf_connection *conn, struct arena *arena, struct table *child,
                    const struct table_foreign *fk, u8 action, bool deletes,
                    struct table_version *base, const struct row_list *list) {
    struct table_version *less, *mine;
    struct row_pairs pairs = {list->rows.count, list->rows.items};
    i64 deleted;
    TRY(version_delete(child, base, list->rows.count, list->rows.items, &less, NULL, &deleted,
                       &conn->err));
    wf_status status = ERR_OK;
    mine = less;
    if (!deletes) {
        status = append_again(conn, arena, child, fk, action, base, list, less, &mine);
    }
    if (!status) {
        status = change_install(conn, child, base, mine, deletes ? NULL : &pairs);
        if (mine != less) {
            version_release(mine);
        }
    }
    version_release(less);
    return status;
}

/* One reference after a change of the table it refers to. */
struct changed_parent {
    struct table *table;
    struct table_version *base, *removed, *delta, *now;
    const struct row_pairs *pairs; /* NULL: rows were deleted */
};

static FALLIBLE referrer_after(struct wf_connection *conn, struct arena *arena,
                               const struct changed_parent *p, struct table *child,
                               const struct table_foreign *fk) {
    struct map keys;
    struct row_list list = {0};
    struct table_version *base;
    u8 action = p->pairs ? fk->on_update : fk->on_delete;
    if (action == FK_NO_ACTION && reference_is_deferred(conn, fk)) {
        return ERR_OK;
    }
    TRY(p->pairs ? moved_keys(arena, p->table, fk, p->base, p->delta, p->now, p->pairs, &keys,
                              &conn->err)
                 : gone_keys(arena, p->table, fk, p->removed, p->now, &keys, &conn->err));
    if (keys.entries.count == 0) {
        return ERR_OK;
    }
    TRY(change_base(conn, child, &base));
    find_referring(arena, child, fk, base, &keys, &list);
    TRY(arena_check(arena, &conn->err));
    if (list.rows.count == 0) {
        return ERR_OK;
    }
    if (action == FK_NO_ACTION || action == FK_RESTRICT) {
        return still_referred(p->table, child, fk, &conn->err);
    }
    base = version_retain(base);
    wf_status status =
        act(conn, arena, child, fk, action, action == FK_CASCADE && !p->pairs, base, &list);
    version_release(base);
    return status;
}

/* The list of tables is made first: acting on them changes the edition. */
FALLIBLE referrers_after(struct wf_connection *conn, u32 oid, struct table *table,
                         struct table_version *base, struct table_version *mine,
                         const struct row_pairs *pairs) {
    struct edition *edition = edition_retain(conn->tx.mine);
    struct changed_parent p = {.table = table, .base = base, .now = mine, .pairs = pairs};
    struct arena arena;
    arena_init(&arena, &conn->db->mem);
    wf_status status = ERR_OK;
    for (i64 i = 0; i < edition->count && !status; i++) {
        struct table *child = edition->entries[i].object->table;
        u32 child_oid = edition->entries[i].object->oid;
        for (u32 f = 0; child && f < child->foreign_count && !status; f++) {
            const struct table_foreign *fk = &child->foreigns[f];
            if ((fk->ref_oid ? fk->ref_oid : child_oid) != oid) {
                continue;
            }
            if (!p.removed) {
                status = version_removed(table, base, mine, &p.removed, &conn->err);
            }
            if (!status && pairs && !p.delta) {
                status = version_delta(table, base, mine, &p.delta, &conn->err);
            }
            if (!status && p.removed->live_rows > 0) {
                status = referrer_after(conn, &arena, &p, child, fk);
            }
        }
    }
    version_release(p.removed);
    version_release(p.delta);
    arena_fini(&arena);
    edition_release(edition);
    return status;
}

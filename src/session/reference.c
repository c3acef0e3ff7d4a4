/* reference.c: keys of references as values: those of rows that are gone, and rows that refer to
 * them; a column's DEFAULT.
 *
 * A key is compared in the types of the table it belongs to: what refers to it is brought to those
 * first, so that an integer may refer to a bigint. */
#include <stdio.h>

#include "session/constraint_int.h"

static i128 exact_of(struct type type, const union lit *v) {
    enum kind kind = type_kind(type);
    return kind == KIND_I32 ? v->i32 : kind == KIND_I64 ? v->i64 : v->i128;
}

static bool convert_exact(struct type to, struct type from, union lit *io) {
    i128 v = exact_of(from, io);
    i32 shift = (i32)to.scale - (i32)from.scale;
    if (shift < 0 && v % pow10_i128(-shift) != 0) {
        return false;
    }
    if (shift > 0 && __builtin_mul_overflow(v, pow10_i128(shift), &v)) {
        return false;
    }
    v = shift < 0 ? v / pow10_i128(-shift) : v;
    struct range range = range_of_type(to);
    if (v < range.lo || v > range.hi) {
        return false;
    }
    enum kind kind = type_kind(to);
    if (kind == KIND_I32) {
        io->i32 = (i32)v;
    } else if (kind == KIND_I64) {
        io->i64 = (i64)v;
    } else {
        io->i128 = v;
    }
    return true;
}

bool reference_convert(struct type to, struct type from, union lit *io) {
    if (type_is_exact(to) && type_is_exact(from)) {
        return convert_exact(to, from, io);
    }
    if (!type_is_float(to)) {
        return true;
    }
    f64 x = from.id == TYPE_DOUBLE ? io->f64
            : from.id == TYPE_REAL ? (f64)io->f32
                                   : (f64)exact_of(from, io) / (f64)pow10_i128(from.scale);
    if (to.id == TYPE_DOUBLE) {
        io->f64 = x;
        return true;
    }
    io->f32 = (f32)x;
    return (f64)io->f32 == x || x != x;
}

bool reference_bytes(struct text *out, const struct table *parent, const struct table_foreign *fk,
                     const struct table *child, const union lit *values) {
    out->len = 0;
    for (u32 i = 0; i < fk->col_count; i++) {
        struct type type = parent->cols[fk->ref_cols[i]].type;
        union lit v = values[i];
        if (child && !reference_convert(type, child->cols[fk->cols[i]].type, &v)) {
            return false;
        }
        key_append(out, type, &v);
    }
    return true;
}

/* A search for keys that a table had: the reference they matter to, the rows there are now. */
struct key_search {
    struct arena *arena;
    struct text bytes;
    struct table *parent;
    const struct table_foreign *fk;
    struct key_finder now;
    u32 order[32]; /* the reference's columns as the key has them */
    struct error *err;
};

/* The key's bytes when the parent has no row with it any more; else out->ptr is NULL. */
static FALLIBLE if_gone(struct key_search *s, const struct values *values, struct sv *out) {
    const struct table_foreign *fk = s->fk;
    const void *in_order[32];
    i64 row = -1;
    for (u32 i = 0; i < fk->col_count; i++) {
        in_order[i] = values->at[s->order[i]];
    }
    TRY(key_finder_row(&s->now, in_order, &row, s->err));
    *out = (struct sv){NULL, 0};
    if (row < 0) {
        (void)reference_bytes(&s->bytes, s->parent, fk, NULL, values->v);
        *out = arena_sv(s->arena, (struct sv){s->bytes.ptr, s->bytes.len});
    }
    return ERR_OK;
}

FALLIBLE gone_keys(struct arena *arena, struct table *parent, const struct table_foreign *fk,
                   const struct table_version *removed, struct table_version *now, struct map *out,
                   struct error *err) {
    struct key_search search = {.arena = arena, .parent = parent, .fk = fk, .err = err};
    u32 number = 0;
    TRY(reference_key(parent, fk, &number, search.order, err));
    struct row_reader reader = {.table = parent, .count = fk->col_count, .cols = fk->ref_cols};
    wf_status status = ERR_OK;
    pins_init(&reader.pins, parent->mem);
    key_finder_open(&search.now, parent, now, number);
    text_init(&search.bytes, arena);
    map_init(out, arena);
    for (i64 t = 0; t < removed->tablet_count; t++) {
        for (i64 pos = 0; pos < removed->tablet_rows[t] && !status; pos++) {
            struct values values;
            struct sv key = {NULL, 0};
            if (!is_live(removed, t, pos) ||
                !read_values(&reader, removed->tablets[t], pos, &values)) {
                continue;
            }
            status = if_gone(&search, &values, &key);
            if (!status && key.ptr) {
                map_set(out, key, out);
            }
        }
    }
    status = status ? status : pins_check(&reader.pins, err);
    key_finder_close(&search.now);
    pins_fini(&reader.pins);
    return status ? status : arena_check(arena, err);
}

FALLIBLE still_referred(const struct table *parent, const struct table *child,
                        const struct table_foreign *fk, const struct shown_key *key,
                        struct error *err) {
    char cols[sizeof key->cols] = "";
    size_t len = 0;
    for (u32 i = 0; i < fk->col_count && len < sizeof cols; i++) {
        len += (size_t)snprintf(cols + len, sizeof cols - len, "%s%s", i ? ", " : "",
                                parent->cols[fk->ref_cols[i]].name);
    }
    error_set(err, ERR_FOREIGN_KEY, -1,
              "update or delete on table \"%s\" violates foreign key constraint \"%s\" on table "
              "\"%s\"",
              parent->name, fk->name, child->name);
    error_hint(err, "Key (%s)=(%s) is still referenced from table \"%s\".", cols, key->values,
               child->name);
    return ERR_FOREIGN_KEY;
}

/* 23503 when a row of the child has one of the keys. */
FALLIBLE find_referring(struct arena *arena, const struct table *parent, const struct table *child,
                        const struct table_foreign *fk, const struct table_version *rows,
                        const struct map *keys, struct error *err) {
    struct row_reader reader = {.table = child, .count = fk->col_count, .cols = fk->cols};
    struct text bytes;
    struct shown_key key;
    bool found = false;
    pins_init(&reader.pins, child->mem);
    text_init(&bytes, arena);
    for (i64 t = 0; t < rows->tablet_count && !found; t++) {
        for (i64 pos = 0; pos < rows->tablet_rows[t] && !found; pos++) {
            struct values values;
            found = is_live(rows, t, pos) &&
                    read_values(&reader, rows->tablets[t], pos, &values) &&
                    reference_bytes(&bytes, parent, fk, child, values.v) &&
                    map_find(keys, (struct sv){bytes.ptr, bytes.len});
            if (found) {
                key_show(child, fk->cols, fk->col_count, rows->tablets[t], pos, &key);
            }
        }
    }
    wf_status status = pins_check(&reader.pins, err);
    pins_fini(&reader.pins);
    return status ? status : found ? still_referred(parent, child, fk, &key, err) : ERR_OK;
}

/* SET DEFAULT */

wf_status bind_sql(void *arg, struct arena *arena, struct snapshot *snap, struct type *param_types,
                   struct statement *out, struct error *err) {
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
    struct inner_select select = {
        .binding.text = sv_from(text), .binding.bind = bind_sql, .binding.arg = text};
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

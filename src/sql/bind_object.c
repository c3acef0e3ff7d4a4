/* bind_object.c: functions that look objects up by OID: pg_table_is_visible, format_type,
 * pg_get_constraintdef and their kin, and the type regclass.
 *
 * Part of binding. As the relations of bind_system.c are rows of constants, each of these is a CASE
 * over the OIDs that the edition has: definitions are few, and a cached plan is bound again when
 * they change. regclass is no type here: 'name'::regclass is the object's OID, oid::regclass the
 * name. */
#include "sql/ddl_int.h"
#include "codes/func.h"
#include "codes/op.h"
#include "defs/ops.h"
#include "host/eval.h"

struct choices {
    struct bind *b;
    struct expr *arg;
    VEC(struct expr *) args; /* of the CASE */
    i32 position;
};

static struct expr *text_const(struct bind *b, const char *text, i32 position) {
    return expr_text(b->t, arena_sv(b->arena, sv_from(text)), position);
}

static void choose(struct choices *c, i64 oid, struct expr *value) {
    struct expr *key = expr_new(c->b->arena, EXPR_CONST, type_of(TYPE_BIGINT), c->position);
    const_set_exact(key, oid);
    struct expr *same =
        expr_call(c->b->arena, FUNC_EQ, type_of(TYPE_BOOLEAN), c->position, 2, c->arg, key);
    VEC_PUSH(c->b->arena, &c->args, same);
    VEC_PUSH(c->b->arena, &c->args, value);
}

static struct expr *chosen(struct choices *c, struct type type, struct expr *otherwise) {
    if (c->args.count == 0) {
        return otherwise;
    }
    VEC_PUSH(c->b->arena, &c->args, otherwise);
    return expr_many(c->b->t, EXPR_CASE, type, c->position, (i32)c->args.count, c->args.items);
}

#define EACH_OBJECT(b, it)                                                                \
    for (struct edition_walk at_ = edition_walk((b)->snap->edition); edition_step(&at_);) \
        for (const struct object *it = at_.entry->object; it; it = NULL)

static struct expr *is_visible(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        const struct edition_entry *found =
            object->kind == OBJECT_SCHEMA
                ? NULL
                : snapshot_lookup(b->snap, (struct sv){NULL, 0}, sv_from(object->name));
        if (found && found->object == object) {
            choose(c, object->oid, expr_bool(b->t, true, c->position));
            for (u32 k = 0; object->table && k < object->table->key_count; k++) {
                choose(c, object->table->keys[k].oid, expr_bool(b->t, true, c->position));
            }
        }
    }
    return chosen(c, type_of(TYPE_BOOLEAN), expr_bool(b->t, false, c->position));
}

static struct expr *relation_name(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        if (object->kind != OBJECT_SCHEMA) {
            choose(c, object->oid, text_const(b, object->name, c->position));
        }
        for (u32 k = 0; object->table && k < object->table->key_count; k++) {
            const struct table_key *key = &object->table->keys[k];
            if (!key->index) { /* that one is an object */
                choose(c, key->oid, text_const(b, key->name, c->position));
            }
        }
    }
    return chosen(c, type_of(TYPE_TEXT), expr_null(b->t, type_of(TYPE_TEXT), c->position));
}

static struct expr *comment_of(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        if (object->comment) {
            choose(c, object->oid, text_const(b, object->comment, c->position));
        }
    }
    return chosen(c, type_of(TYPE_TEXT), expr_null(b->t, type_of(TYPE_TEXT), c->position));
}

static struct expr *view_text(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        if (object->kind == OBJECT_VIEW && object->text) {
            choose(c, object->oid, text_const(b, object->text, c->position));
        }
    }
    return chosen(c, type_of(TYPE_TEXT), expr_null(b->t, type_of(TYPE_TEXT), c->position));
}

/* A name as SQL text has it. */
static const char *quoted(struct bind *b, const char *name) {
    union lit none = {0}, in = {.str = str_from(sv_from(name))}, out = in;
    u8 fault = op_eval(OP_QUOTE_IDENT, &out, in, none, none, b->arena);
    return fault ? name : arena_sv(b->arena, sv_of(out.str)).ptr;
}

static const char *column_names(struct bind *b, const struct table *table, u32 count,
                                const u32 *cols) {
    struct text out;
    text_init(&out, b->arena);
    for (u32 i = 0; i < count; i++) {
        text_print(&out, "%s%s", i ? ", " : "", quoted(b, table->cols[cols[i]].name));
    }
    return out.ptr ? out.ptr : "";
}

static const char *waits_text(bool deferrable, bool deferred) {
    return deferred ? " DEFERRABLE INITIALLY DEFERRED" : deferrable ? " DEFERRABLE" : "";
}

/* Those that ON DELETE SET names: bit i of `set` is the reference's column i. */
static const char *set_names(struct bind *b, const struct table *table, const struct table_foreign *fk) {
    u32 *cols = NEW_ARRAY(b->arena, u32, fk->col_count);
    u32 count = 0;
    for (u32 i = 0; i < fk->col_count; i++) {
        cols[count] = fk->cols[i];
        count += fk->set_on_delete >> i & 1;
    }
    return count ? arena_printf(b->arena, " (%s)", column_names(b, table, count, cols)) : "";
}

static const char *reference_text(struct bind *b, const struct object *object,
                                  const struct table_foreign *fk) {
    static const char *const actions[] = {"", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"};
    const struct edition_entry *parent =
        edition_find_oid(b->snap->edition, fk->ref_oid ? fk->ref_oid : object->oid);
    if (!parent) {
        return "";
    }
    return arena_printf(
        b->arena, "FOREIGN KEY (%s) REFERENCES %s(%s)%s%s%s%s%s%s%s%s",
        column_names(b, object->table, fk->col_count, fk->cols), quoted(b, parent->object->name),
        column_names(b, parent->object->table, fk->col_count, fk->ref_cols),
        fk->match_full ? " MATCH FULL" : "", fk->on_update ? " ON UPDATE " : "", actions[fk->on_update],
        fk->on_delete ? " ON DELETE " : "", actions[fk->on_delete], set_names(b, object->table, fk),
        waits_text(fk->deferrable, fk->deferred), fk->unvalidated ? " NOT VALID" : "");
}

static struct expr *constraint_text(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        const struct table *table = object->table;
        for (u32 k = 0; table && k < table->key_count; k++) {
            const struct table_key *key = &table->keys[k];
            const char *text =
                arena_printf(b->arena, "%s (%s)%s", key->primary ? "PRIMARY KEY" : "UNIQUE",
                             column_names(b, table, key->col_count, key->cols),
                             waits_text(key->deferrable, key->deferred));
            choose(c, key->oid, text_const(b, text, c->position));
        }
        for (u32 k = 0; table && k < table->check_count; k++) {
            const struct table_check *check = &table->checks[k];
            const char *text = arena_printf(b->arena, "CHECK ((%s))%s", check->text,
                                            check->unvalidated ? " NOT VALID" : "");
            choose(c, table->checks[k].oid, text_const(b, text, c->position));
        }
        for (u32 k = 0; table && k < table->foreign_count; k++) {
            const struct table_foreign *fk = &table->foreigns[k];
            choose(c, fk->oid, text_const(b, reference_text(b, object, fk), c->position));
        }
    }
    return chosen(c, type_of(TYPE_TEXT), expr_null(b->t, type_of(TYPE_TEXT), c->position));
}

static struct expr *index_text(struct choices *c) {
    struct bind *b = c->b;
    EACH_OBJECT(b, object) {
        const struct table *table = object->table;
        for (u32 k = 0; table && k < table->key_count; k++) {
            const struct table_key *key = &table->keys[k];
            const char *text =
                arena_printf(b->arena, "CREATE UNIQUE INDEX %s ON %s USING btree (%s)", quoted(b, key->name),
                             quoted(b, object->name), column_names(b, table, key->col_count, key->cols));
            choose(c, key->oid, text_const(b, text, c->position));
        }
        const struct edition_entry *owner =
            object->kind == OBJECT_INDEX ? edition_find_oid(b->snap->edition, object->owner) : NULL;
        if (owner) {
            const char *text =
                arena_printf(b->arena, "CREATE INDEX %s ON %s USING btree (%s)", quoted(b, object->name),
                             quoted(b, owner->object->name), object->text ? object->text : "");
            choose(c, object->oid, text_const(b, text, c->position));
        }
    }
    return chosen(c, type_of(TYPE_TEXT), expr_null(b->t, type_of(TYPE_TEXT), c->position));
}

/* A type's name by its OID; with its digits where a column of the database has just these. */
static struct expr *type_text(struct choices *c, struct expr *modifier) {
    struct bind *b = c->b;
    struct type text = type_of(TYPE_TEXT);
    for (i32 id = TYPE_BOOLEAN; id < TYPE_COUNT; id++) {
        struct choices own = {.b = b, .arg = modifier, .position = c->position};
        EACH_OBJECT(b, object) {
            for (u32 k = 0; modifier && object->table && k < object->table->col_count; k++) {
                struct type type = object->table->cols[k].type;
                i64 digits = bind_type_modifier(type);
                if ((i32)type.id == id && digits >= 0) {
                    const char *shown = bind_type_words(b, type, true);
                    choose(&own, digits, text_const(b, shown, c->position));
                }
            }
        }
        struct type type = type_of((enum type_id)id);
        const char *bare = bind_type_words(b, type, false);
        choose(c, type_oid(type), chosen(&own, text, text_const(b, bare, c->position)));
    }
    return chosen(c, text, expr_null(b->t, text, c->position));
}

static const struct {
    const char *name;
    i32 least, most;
    u8 kind;
} object_functions[] = {
    {"pg_table_is_visible", 1, 1, 'v'}, {"pg_get_userbyid", 1, 1, 'u'},
    {"format_type", 2, 2, 't'},         {"pg_get_expr", 2, 3, 'e'},
    {"obj_description", 1, 2, 'd'},     {"pg_get_constraintdef", 1, 2, 'c'},
    {"pg_get_indexdef", 1, 3, 'i'},     {"pg_get_viewdef", 1, 2, 'w'},
    {"pg_encoding_to_char", 1, 1, 'n'}, {"col_description", 2, 2, '0'},
    {"shobj_description", 2, 2, '0'},   {"pg_get_serial_sequence", 2, 2, 's'},
};

/* pg_get_serial_sequence('table', 'column') */
static FALLIBLE serial_of(struct bind *b, const struct call *call, struct expr **out) {
    struct sv texts[2];
    const struct edition_entry *entry = NULL;
    u32 col = 0;
    *out = expr_null(b->t, type_of(TYPE_TEXT), call->position);
    for (i32 i = 0; i < 2; i++) {
        struct expr *arg = NULL;
        TRY(coerce_unknown(b->t, call->args[i], type_of(TYPE_TEXT), &arg));
        if (!type_is_string(arg->type)) {
            return call_undefined(b->t, call->name, call->args, call->count, call->position);
        }
        if (arg->kind == EXPR_CONST && arg->is_null) {
            return ERR_OK;
        }
        if (!literal_text(arg, &texts[i])) {
            return unsupported(b, call->position, "%s of a name that is not constant", call->name);
        }
    }
    TRY(snapshot_open(b->snap, b->err));
    TRY(bind_relation_text(b, arena_sv(b->arena, texts[0]).ptr, call->position, &entry));
    const struct object *owner = entry->object;
    const char *name = arena_sv(b->arena, texts[1]).ptr;
    if (!owner->table) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, call->position,
                "column \"%.100s\" of relation \"%.100s\" does not exist", name, owner->name);
    }
    TRY(bind_column_list(b, owner->table, &name, &call->position, 1, &col));
    EACH_OBJECT(b, object) {
        if (object->sequence && object->owner == owner->oid && object->owner_col == col + 1) {
            const struct edition_entry *schema = edition_find_oid(b->snap->edition, object->schema);
            const char *text =
                arena_printf(b->arena, "%s.%s", quoted(b, schema ? schema->object->name : ""),
                             quoted(b, object->name));
            *out = text_const(b, text, call->position);
        }
    }
    return ERR_OK;
}

/* Arguments that are OIDs are numbers here. */
static FALLIBLE oid_argument(struct bind *b, struct expr *arg, struct expr **out) {
    TRY(coerce_unknown(b->t, arg, type_of(TYPE_BIGINT), out));
    if (!coerce_allowed((*out)->type, type_of(TYPE_BIGINT), COERCE_IMPLICIT)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, arg->position, "an OID is expected here");
    }
    return coerce_to(b->t, *out, type_of(TYPE_BIGINT), out);
}

FALLIBLE bind_object_call(struct bind *b, const struct call *call, bool *out_is,
                          struct expr **out) {
    u8 kind = 0;
    for (i64 i = 0; i < COUNT_OF(object_functions); i++) {
        if (strcmp(object_functions[i].name, call->name) == 0 &&
            call->count >= object_functions[i].least && call->count <= object_functions[i].most) {
            kind = object_functions[i].kind;
        }
    }
    *out_is = kind != 0;
    if (!kind) {
        return ERR_OK;
    }
    TRY(snapshot_open(b->snap, b->err));
    if (kind == 's') {
        return serial_of(b, call, out);
    }
    if (kind == 'e') { /* what is kept is the text itself */
        return coerce_unknown(b->t, call->args[0], type_of(TYPE_TEXT), out);
    }
    struct choices c = {.b = b, .position = call->position};
    TRY(oid_argument(b, call->args[0], &c.arg));
    TRY(typing_sharable(b->t, c.arg));
    if (kind == 't') {
        struct expr *modifier = NULL;
        TRY(oid_argument(b, call->args[1], &modifier));
        bool none = modifier->kind == EXPR_CONST && modifier->is_null;
        *out = type_text(&c, none ? NULL : modifier);
        return ERR_OK;
    }
    *out = kind == 'v'   ? is_visible(&c)
           : kind == 'd' ? comment_of(&c)
           : kind == 'c' ? constraint_text(&c)
           : kind == 'i' ? index_text(&c)
           : kind == 'w' ? view_text(&c)
           : kind == 'u' ? text_const(b, "warpfox", call->position)
           : kind == 'n' ? text_const(b, "UTF8", call->position)
                         : expr_null(b->t, type_of(TYPE_TEXT), call->position);
    return ERR_OK;
}

FALLIBLE bind_regclass(struct bind *b, struct expr *arg, i32 position, struct expr **out) {
    struct sv text;
    TRY(snapshot_open(b->snap, b->err));
    if (literal_text(arg, &text)) {
        bool number = text.len > 0;
        for (i64 i = 0; i < text.len; i++) {
            number = number && text.ptr[i] >= '0' && text.ptr[i] <= '9';
        }
        if (number) {
            return coerce_unknown(b->t, arg, type_of(TYPE_BIGINT), out);
        }
        u32 oid = 0;
        TRY(bind_oid_text(b, arena_sv(b->arena, text).ptr, position, &oid));
        *out = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), position);
        const_set_exact(*out, oid);
        return ERR_OK;
    }
    struct choices c = {.b = b, .position = position};
    if (arg->type.id == TYPE_TEXT) {
        return unsupported(b, position, "regclass of a text that is not constant");
    }
    TRY(oid_argument(b, arg, &c.arg));
    TRY(typing_sharable(b->t, c.arg));
    *out = relation_name(&c);
    return ERR_OK;
}

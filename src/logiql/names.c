/* names.c: predicates by their names, and types.
 *
 * A name means, in this order: clauses of the text at hand, an object of the database (a table, a
 * derived predicate, a view of SQL), a column of a table as `table:column`. What a name means is
 * found out once for a text. */
#include "logiql/bind_int.h"

void lq_bind_init(struct lq_bind *b, struct plan *plan, struct snapshot *snap, struct error *err) {
    *b = (struct lq_bind){.arena = plan->arena, .plan = plan, .snap = snap, .err = err};
    b->typing = (struct typing){.arena = plan->arena, .plan = plan, .err = err};
    b->t = &b->typing;
    map_init(&b->preds, b->arena);
}

i32 lq_at(const struct lq_bind *b, i32 position) {
    return b->rule && !b->rule->own ? -1 : position;
}

/* Mistakes in one rule do not hide those in others. */
FALLIBLE lq_noted(struct lq_bind *b, wf_status status, struct lq_pred *pred) {
    bool keeps = b->mistakes && status && status != ERR_OUT_OF_MEMORY && status != ERR_CANCELLED;
    if (!keeps) {
        return status;
    }
    bool follows = b->follows && b->mistakes->count > 0;
    b->follows = 0;
    pred->failed = 1;
    if (follows) {
        error_reset(b->err);
        return ERR_OK;
    }
    lq_mistake(b->arena, b->mistakes, b->err->code, b->err->position,
               b->err->hint[0] ? b->err->hint : NULL, "%s", b->err->message);
    error_reset(b->err);
    return ERR_OK;
}

/* --- types --- */

enum lq_class class_of(struct type type) {
    return type_is_integer(type)                               ? CLASS_INT
           : type.id == TYPE_DECIMAL                           ? CLASS_DECIMAL
           : type_is_float(type)                               ? CLASS_FLOAT
           : type_is_string(type)                              ? CLASS_STRING
           : type.id == TYPE_BOOLEAN                           ? CLASS_BOOLEAN
           : type.id == TYPE_DATE || type.id == TYPE_TIMESTAMP ? CLASS_DATETIME
                                                               : CLASS_OTHER;
}

const char *class_name(struct type type, char buf[32]) {
    static const char *const names[] = {"",       "int",     "decimal", "float",
                                        "string", "boolean", "datetime"};
    enum lq_class class = class_of(type);
    return class == CLASS_OTHER ? type_print(type, buf) : names[class];
}

bool lq_type_named(struct sv name, struct type *out) {
    static const struct {
        const char *name;
        u8 id;
    } types[] = {{"int", TYPE_BIGINT},         {"int64", TYPE_BIGINT},   {"uint", TYPE_BIGINT},
                 {"int32", TYPE_INTEGER},      {"uint32", TYPE_BIGINT},  {"int16", TYPE_SMALLINT},
                 {"int8", TYPE_SMALLINT},      {"uint8", TYPE_SMALLINT}, {"uint16", TYPE_INTEGER},
                 {"uint64", TYPE_BIGINT},      {"float", TYPE_DOUBLE},   {"float64", TYPE_DOUBLE},
                 {"float32", TYPE_REAL},       {"string", TYPE_TEXT},    {"boolean", TYPE_BOOLEAN},
                 {"datetime", TYPE_TIMESTAMP}, {"date", TYPE_DATE}};
    if (sv_eq(name, SV("decimal")) || sv_eq(name, SV("decimal64")) ||
        sv_eq(name, SV("decimal128"))) {
        *out = type_decimal(DECIMAL_DIGITS_MAX, 10);
        return true;
    }
    if (sv_eq(name, SV("int128"))) {
        *out = type_decimal(DECIMAL_DIGITS_MAX, 0);
        return true;
    }
    for (i64 i = 0; i < COUNT_OF(types); i++) {
        if (sv_eq(name, sv_from(types[i].name))) {
            *out = type_of((enum type_id)types[i].id);
            return true;
        }
    }
    return false;
}

/* --- atoms --- */

i32 atom_arity(const struct lq_atom *atom) {
    return (i32)(atom->keys.count + atom->values.count);
}

const struct lq_expr *atom_arg(const struct lq_atom *atom, i32 i) {
    return i < atom->keys.count ? atom->keys.items[i] : atom->values.items[i - atom->keys.count];
}

static bool name_taken(const char **names, i32 count, const char *name) {
    for (i32 i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

const char **head_names(struct arena *arena, const struct lq_atom *head) {
    i32 count = atom_arity(head);
    const char **names = NEW_ARRAY(arena, const char *, count + 1);
    for (i32 i = 0; i < count; i++) {
        const struct lq_expr *arg = atom_arg(head, i);
        bool named = arg->kind == LQ_VARIABLE && arg->text.len > 0 && arg->text.ptr[0] != '$';
        names[i] = named ? arena_sv(arena, arg->text).ptr : arena_printf(arena, "x%d", i + 1);
        for (i32 k = i + 1; name_taken(names, i, names[i]); k++) {
            names[i] = arena_printf(arena, "x%d", k);
        }
    }
    return names;
}

/* --- predicates --- */

struct lq_pred *pred_new(struct lq_bind *b, struct sv name, u8 origin) {
    struct lq_pred *pred = NEW(b->arena, struct lq_pred);
    pred->name = arena_sv(b->arena, name);
    pred->origin = origin;
    pred->arity = -1;
    pred->key_count = -1;
    pred->position = -1;
    map_set(&b->preds, pred->name, pred);
    return pred;
}

struct lq_pred *pred_known(const struct lq_bind *b, struct sv name) {
    return map_find(&b->preds, name);
}

static const struct table_key *primary_key(const struct table *table) {
    for (u32 i = 0; i < table->key_count; i++) {
        if (table->keys[i].primary && !table->keys[i].deferrable) {
            return &table->keys[i];
        }
    }
    return NULL;
}

static void pred_columns(struct lq_bind *b, struct lq_pred *pred, i32 count) {
    pred->arity = count;
    pred->names = NEW_ARRAY(b->arena, const char *, count + 1);
    pred->types = NEW_ARRAY(b->arena, struct type, count + 1);
    pred->kinds = NEW_ARRAY(b->arena, struct sv, count + 1);
}

/* A key of the first columns, with columns behind it, makes a functional predicate; so does one
 * column without a key that LogiQL declared. */
static void from_table(struct lq_bind *b, struct lq_pred *pred, const struct object *object) {
    const struct table *table = object->table;
    pred_columns(b, pred, (i32)table->col_count);
    pred->key = primary_key(table);
    for (u32 i = 0; i < table->col_count; i++) {
        pred->names[i] = arena_sv(b->arena, sv_from(table->cols[i].name)).ptr;
        pred->types[i] = table->cols[i].type;
    }
    bool leads = pred->key != NULL && pred->key->col_count < table->col_count;
    for (u32 i = 0; leads && i < pred->key->col_count; i++) {
        leads = pred->key->cols[i] == i;
    }
    bool scalar = !pred->key && object->logical && table->col_count == 1;
    pred->key_count = leads ? (i32)pred->key->col_count : scalar ? 0 : -1;
}

static void from_sql_view(struct lq_bind *b, struct lq_pred *pred, const struct object *view) {
    pred_columns(b, pred, (i32)view->col_count);
    for (u32 i = 0; i < view->col_count; i++) {
        pred->names[i] = arena_sv(b->arena, sv_from(view->col_names[i])).ptr;
        pred->types[i] = view->col_types[i];
    }
}

/* Clauses that the database keeps. */
static FALLIBLE from_rules(struct lq_bind *b, struct lq_pred *pred, const struct object *view) {
    struct lq_program program;
    struct sv text = arena_sv(b->arena, sv_from(view->text));
    TRY(lq_parse(b->arena, text, &program, b->err));
    if (program.mistakes.count > 0) {
        FAIL(b->err, INTERNAL, "the rules of \"%.100s\" cannot be read: %s", pred->name.ptr,
             program.mistakes.items[0].message);
    }
    for (i64 i = 0; i < program.clauses.count; i++) {
        bool done = false;
        TRY(declaration_kept(b, program.clauses.items[i], pred, &done));
        if (!done) {
            TRY(clause_rules(b, program.clauses.items[i], false));
        }
    }
    return ERR_OK;
}

static bool is_member(const struct lq_bind *b, const struct object *view) {
    for (i64 i = 0; i < b->member_count; i++) {
        if (b->members[i]->oid == view->oid) {
            return true;
        }
    }
    return false;
}

/* Rows that somebody keeps are read where they are; what its rules say besides stays known. */
static FALLIBLE from_kept(struct lq_bind *b, struct lq_pred *pred, const struct object *view) {
    struct rule_keeper *keeper = b->snap->keeper;
    struct kept_rows found = {0};
    if (!keeper || is_member(b, view)) {
        return ERR_OK;
    }
    TRY(keeper->find(keeper, b->snap, view, &found, b->err));
    if (found.are_kept) {
        pred->origin = ORIGIN_KEPT;
        pred->kept = found.table;
        pred->rules.count = 0;
        pred->types = NEW_ARRAY(b->arena, struct type, pred->arity + 1);
        pred->kinds = NEW_ARRAY(b->arena, struct sv, pred->arity + 1);
        for (i32 i = 0; i < pred->arity; i++) {
            pred->types[i] = pred->kept.table->cols[i].type;
            pred->kinds[i] = found.kinds && found.kinds[i].len > 0
                                 ? arena_sv(b->arena, found.kinds[i])
                                 : (struct sv){NULL, 0};
        }
    }
    return ERR_OK;
}

static FALLIBLE from_object(struct lq_bind *b, struct sv name, const struct edition_entry *entry,
                            i32 position, struct lq_pred **out) {
    const struct object *object = entry->object;
    struct lq_pred *pred = *out = pred_new(b, name, ORIGIN_TABLE);
    pred->entry = entry;
    if (object->kind == OBJECT_TABLE) {
        from_table(b, pred, object);
        return object->logical && object->text ? from_rules(b, pred, object) : ERR_OK;
    } else if (object->kind == OBJECT_VIEW && object->logical) {
        pred->origin = ORIGIN_RULES;
        TRY(from_rules(b, pred, object));
        return from_kept(b, pred, object);
    } else if (object->kind == OBJECT_VIEW) {
        pred->origin = ORIGIN_VIEW;
        from_sql_view(b, pred, object);
    } else {
        map_remove(&b->preds, pred->name);
        FAIL_AT(b->err, WRONG_OBJECT, position, "\"%.100s\" is not a predicate", pred->name.ptr);
    }
    return ERR_OK;
}

FALLIBLE pred_of_view(struct lq_bind *b, const struct object *view, struct lq_pred **out) {
    struct lq_pred *pred = *out = pred_new(b, sv_from(view->name), ORIGIN_RULES);
    pred->entry = edition_find_oid(b->snap->edition, view->oid);
    TRY(from_rules(b, pred, view));
    return from_kept(b, pred, view);
}

/* table:column, where the table has a primary key. */
static bool from_column(struct lq_bind *b, struct sv name, struct lq_pred **out) {
    i64 colon = name.len;
    while (colon > 0 && name.ptr[colon - 1] != ':') {
        colon--;
    }
    if (colon <= 1) {
        return false;
    }
    struct sv table_name = {name.ptr, colon - 1};
    struct sv col_name = {name.ptr + colon, name.len - colon};
    const struct edition_entry *entry = snapshot_lookup(b->snap, (struct sv){NULL, 0}, table_name);
    const struct table *table = entry ? entry->object->table : NULL;
    const struct table_key *key = table ? primary_key(table) : NULL;
    for (u32 c = 0; key && c < table->col_count; c++) {
        if (!sv_eq(sv_from(table->cols[c].name), col_name)) {
            continue;
        }
        struct lq_pred *pred = *out = pred_new(b, name, ORIGIN_COLUMN);
        pred_columns(b, pred, (i32)key->col_count + 1);
        pred->entry = entry;
        pred->key = key;
        pred->value_col = c;
        pred->key_count = (i32)key->col_count;
        const struct lq_pred *whole = pred_look(b, table_name);
        bool names = whole && whole->is_entity && sv_eq(whole->refmode, pred->name);
        pred->identifies = names ? whole->name : (struct sv){NULL, 0};
        for (i32 i = 0; i < pred->arity; i++) {
            u32 col = i < pred->key_count ? key->cols[i] : c;
            pred->kinds[i] = whole ? kind_of(whole, (i32)col) : (struct sv){NULL, 0};
            pred->names[i] = arena_sv(b->arena, sv_from(table->cols[col].name)).ptr;
            pred->types[i] = table->cols[col].type;
        }
        return true;
    }
    return false;
}

static struct sv next_pred(void *arg, i64 i) {
    const struct lq_bind *b = arg;
    return i < b->preds.entries.count && b->preds.entries.items[i].key.ptr
               ? b->preds.entries.items[i].key
               : (struct sv){NULL, 0};
}

FALLIBLE pred_get(struct lq_bind *b, struct sv name, i32 position, struct lq_pred **out) {
    *out = pred_known(b, name);
    if (*out) {
        return ERR_OK;
    }
    TRY(snapshot_open(b->snap, b->err));
    const struct edition_entry *entry = snapshot_lookup(b->snap, (struct sv){NULL, 0}, name);
    if (entry) {
        return from_object(b, name, entry, position, out);
    }
    if (from_column(b, name, out)) {
        return ERR_OK;
    }
    const char *near = nearest_name(b->arena, name, next_pred, b);
    error_set(b->err, ERR_UNDEFINED_TABLE, position, "predicate \"%.*s\" is not defined",
              (int)MIN_OF(name.len, 100), name.ptr);
    if (near && name.len > 2 && strlen(near) > 2) {
        error_hint(b->err, "Perhaps you meant \"%s\".", near);
    } else if (name.len > 2) {
        snapshot_hint(b->snap, name, b->err);
    }
    return b->err->code;
}

bool pred_exists(struct lq_bind *b, struct sv name) {
    struct lq_pred *pred = pred_known(b, name);
    return pred || snapshot_lookup(b->snap, (struct sv){NULL, 0}, name);
}

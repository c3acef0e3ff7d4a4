/* bind_system.c: information_schema and pg_catalog: the catalog as tables.
 *
 * Part of binding. What these relations hold follows from the edition a statement reads, so each is
 * bound as a list of constant rows made from it; definitions are few, and a cached plan is bound
 * again when they change. A relation is a line in `relations`, its columns, and a function that
 * adds its rows. Where PostgreSQL has more columns, ours are the first and most used ones, under
 * its names. */
#include "sql/sql_int.h"

#include "codes/func.h"

struct sys {
    struct bind *b;
    const struct edition *edition;
    i64 width;
    const struct sys_col *cols;
    VEC(struct expr *) exprs;
};

enum { SYS_TEXT, SYS_INT, SYS_BOOL, SYS_BIG };
struct sys_col {
    const char *name;
    u8 kind;
};

static struct type sys_type(u8 kind) {
    return type_of(kind == SYS_TEXT  ? TYPE_TEXT
                   : kind == SYS_INT ? TYPE_INTEGER
                   : kind == SYS_BIG ? TYPE_BIGINT
                                     : TYPE_BOOLEAN);
}

static struct expr *sys_new(struct sys *s) {
    i64 at = s->exprs.count % s->width;
    struct expr *expr = expr_new(s->b->arena, EXPR_CONST, sys_type(s->cols[at].kind), -1);
    VEC_PUSH(s->b->arena, &s->exprs, expr);
    return expr;
}

static void put_text(struct sys *s, const char *text) { /* NULL is NULL */
    struct expr *expr = sys_new(s);
    expr->is_null = text == NULL;
    expr->value.str = str_from(text ? arena_sv(s->b->arena, sv_from(text)) : SV(""));
}

static void put_number(struct sys *s, i64 value) {
    const_set_exact(sys_new(s), value);
}

static void put_yes(struct sys *s, bool yes) {
    put_text(s, yes ? "YES" : "NO");
}

static const char *schema_of(const struct sys *s, const struct object *object) {
    const struct edition_entry *schema = edition_find_oid(s->edition, object->schema);
    return schema ? schema->object->name : "";
}

const char *bind_type_words(struct bind *b, struct type type, bool digits) {
    static const char *const words[TYPE_COUNT] = {
        [TYPE_BOOLEAN] = "boolean",
        [TYPE_SMALLINT] = "smallint",
        [TYPE_INTEGER] = "integer",
        [TYPE_BIGINT] = "bigint",
        [TYPE_DECIMAL] = "numeric",
        [TYPE_REAL] = "real",
        [TYPE_DOUBLE] = "double precision",
        [TYPE_DATE] = "date",
        [TYPE_TIME] = "time without time zone",
        [TYPE_TIMESTAMP] = "timestamp without time zone",
        [TYPE_TIMESTAMPTZ] = "timestamp with time zone",
        [TYPE_INTERVAL] = "interval",
        [TYPE_CHAR] = "character",
        [TYPE_UUID] = "uuid",
        [TYPE_BLOB] = "bytea",
    };
    bool limited = type.id == TYPE_TEXT && type.length;
    const char *word = limited                ? "character varying"
                       : type.id == TYPE_TEXT ? "text"
                       : words[type.id]       ? words[type.id]
                                              : "unknown";
    if (digits && type.id == TYPE_DECIMAL && type.precision) {
        return arena_printf(b->arena, "%s(%d,%d)", word, (int)type.precision, (int)type.scale);
    }
    if (digits && type.id == TYPE_INTERVAL) {
        char text[32];
        return keep(b, type_print(type, text));
    }
    if (digits && type.precision && type_category(type) == 'D') { /* time(3) without time zone */
        i32 first = (i32)strcspn(word, " ");
        return arena_printf(b->arena, "%.*s(%d)%s", (int)first, word, type.precision - 1,
                            word + first);
    }
    return digits && type.length ? arena_printf(b->arena, "%s(%d)", word, (int)type.length) : word;
}

/* The type's name without its digits. */
static const char *bare_type(struct sys *s, struct type type) {
    return bind_type_words(s->b, type, false);
}

#define EACH(s, it, KIND)                                                           \
    for (struct edition_walk at_ = edition_walk((s)->edition); edition_step(&at_);) \
        for (const struct object *it = at_.entry->object; it && it->kind == (KIND); it = NULL)

static const struct sys_col schemata_cols[] = {
    {"catalog_name", SYS_TEXT}, {"schema_name", SYS_TEXT}, {"schema_owner", SYS_TEXT}};
static void schemata(struct sys *s) {
    EACH(s, object, OBJECT_SCHEMA) {
        put_text(s, "memory");
        put_text(s, object->name);
        put_text(s, "warpfox");
    }
}

static const struct sys_col tables_cols[] = {{"table_catalog", SYS_TEXT},
                                             {"table_schema", SYS_TEXT},
                                             {"table_name", SYS_TEXT},
                                             {"table_type", SYS_TEXT},
                                             {"is_insertable_into", SYS_TEXT}};
static void tables(struct sys *s) {
    for (struct edition_walk at = edition_walk(s->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        bool view = object->kind == OBJECT_VIEW;
        if (!view && object->kind != OBJECT_TABLE) {
            continue;
        }
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, view ? "VIEW" : object->temp ? "LOCAL TEMPORARY" : "BASE TABLE");
        put_yes(s, !view);
    }
}

/* The name of the type in pg_type. */
static const char *type_name(struct type type) {
    static const char *const names[TYPE_COUNT] = {
        [TYPE_BOOLEAN] = "bool",        [TYPE_SMALLINT] = "int2",
        [TYPE_INTEGER] = "int4",        [TYPE_BIGINT] = "int8",
        [TYPE_DECIMAL] = "numeric",     [TYPE_REAL] = "float4",
        [TYPE_DOUBLE] = "float8",       [TYPE_DATE] = "date",
        [TYPE_TIME] = "time",           [TYPE_CHAR] = "bpchar",
        [TYPE_TIMESTAMP] = "timestamp", [TYPE_INTERVAL] = "interval",
        [TYPE_UUID] = "uuid",           [TYPE_TIMESTAMPTZ] = "timestamptz",
        [TYPE_BLOB] = "bytea",
    };
    bool limited = type.id == TYPE_TEXT && type.length;
    return limited                ? "varchar"
           : type.id == TYPE_TEXT ? "text"
           : names[type.id]       ? names[type.id]
                                  : "";
}

static void put_number_or_null(struct sys *s, bool known, i64 value) {
    put_number(s, value);
    s->exprs.items[s->exprs.count - 1]->is_null = !known;
}

/* HOUR TO MINUTE */
static void put_interval_fields(struct sys *s, struct type type) {
    bool some = type.id == TYPE_INTERVAL && type.length;
    char text[32];
    char *words = text + (some ? strlen("interval ") : 0);
    type_print(type, text);
    for (char *at = words; *at; at++) {
        *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    }
    put_text(s, some ? keep(s->b, words) : "");
    s->exprs.items[s->exprs.count - 1]->is_null = !some;
}

static void put_column_type(struct sys *s, struct type type, bool updatable) {
    bool moment = type.id == TYPE_TIME || type.id == TYPE_TIMESTAMP ||
                  type.id == TYPE_TIMESTAMPTZ || type.id == TYPE_INTERVAL;
    bool text = type.id == TYPE_TEXT || type.id == TYPE_CHAR;
    put_number_or_null(s, text && type.length, type.length);
    i32 digits = moment && type.precision ? type.precision - 1 : 6;
    put_number_or_null(s, moment || type.id == TYPE_DATE, moment ? digits : 0);
    put_interval_fields(s, type);
    put_text(s, "pg_catalog");
    put_text(s, type_name(type));
    put_text(s, "NEVER");
    put_yes(s, updatable);
}

static const struct sys_col columns_cols[] = {{"table_catalog", SYS_TEXT},
                                              {"table_schema", SYS_TEXT},
                                              {"table_name", SYS_TEXT},
                                              {"column_name", SYS_TEXT},
                                              {"ordinal_position", SYS_INT},
                                              {"column_default", SYS_TEXT},
                                              {"is_nullable", SYS_TEXT},
                                              {"data_type", SYS_TEXT},
                                              {"numeric_precision", SYS_INT},
                                              {"numeric_scale", SYS_INT},
                                              {"is_identity", SYS_TEXT},
                                              {"identity_generation", SYS_TEXT},
                                              {"character_maximum_length", SYS_INT},
                                              {"datetime_precision", SYS_INT},
                                              {"interval_type", SYS_TEXT},
                                              {"udt_schema", SYS_TEXT},
                                              {"udt_name", SYS_TEXT},
                                              {"is_generated", SYS_TEXT},
                                              {"is_updatable", SYS_TEXT}};
/* The columns of a table or view. */
static u32 column_count(const struct object *object) {
    bool relation = object->kind == OBJECT_TABLE || object->kind == OBJECT_VIEW;
    return !relation ? 0 : object->table ? object->table->col_count : object->col_count;
}

static struct column_def column_of(const struct object *object, u32 c) {
    if (object->table) {
        return object->table->cols[c];
    }
    return (struct column_def){.name = object->col_names[c], .type = object->col_types[c]};
}

static void columns(struct sys *s) {
    for (struct edition_walk at = edition_walk(s->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        for (u32 c = 0; c < column_count(object); c++) {
            struct column_def def = column_of(object, c), *col = &def;
            bool decimal = col->type.id == TYPE_DECIMAL;
            put_text(s, "memory");
            put_text(s, schema_of(s, object));
            put_text(s, object->name);
            put_text(s, col->name);
            put_number(s, c + 1);
            put_text(s, col->default_text);
            put_yes(s, !col->not_null);
            put_text(s, bare_type(s, col->type));
            put_number(s, col->type.precision);
            s->exprs.items[s->exprs.count - 1]->is_null = !decimal;
            put_number(s, col->type.scale);
            s->exprs.items[s->exprs.count - 1]->is_null = !decimal;
            put_yes(s, col->identity != 0);
            put_text(s, col->identity == 'a'   ? "ALWAYS"
                        : col->identity == 'd' ? "BY DEFAULT"
                                               : NULL);
            put_column_type(s, col->type, object->table != NULL);
        }
    }
}

static const struct sys_col views_cols[] = {{"table_catalog", SYS_TEXT},
                                            {"table_schema", SYS_TEXT},
                                            {"table_name", SYS_TEXT},
                                            {"view_definition", SYS_TEXT}};
static void views(struct sys *s) {
    EACH(s, object, OBJECT_VIEW) {
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, object->text);
    }
}

static const struct sys_col constraints_cols[] = {
    {"constraint_catalog", SYS_TEXT}, {"constraint_schema", SYS_TEXT},
    {"constraint_name", SYS_TEXT},    {"table_catalog", SYS_TEXT},
    {"table_schema", SYS_TEXT},       {"table_name", SYS_TEXT},
    {"constraint_type", SYS_TEXT}};
static void put_constraint(struct sys *s, const struct object *object, const char *name,
                           const char *type) {
    put_text(s, "memory");
    put_text(s, schema_of(s, object));
    put_text(s, name);
    put_text(s, "memory");
    put_text(s, schema_of(s, object));
    put_text(s, object->name);
    put_text(s, type);
}
static void table_constraints(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        const struct table *table = object->table;
        for (u32 i = 0; i < table->key_count; i++) {
            if (!table->keys[i].index) {
                put_constraint(s, object, table->keys[i].name,
                               table->keys[i].primary ? "PRIMARY KEY" : "UNIQUE");
            }
        }
        for (u32 i = 0; i < table->check_count; i++) {
            put_constraint(s, object, table->checks[i].name, "CHECK");
        }
        for (u32 i = 0; i < table->foreign_count; i++) {
            put_constraint(s, object, table->foreigns[i].name, "FOREIGN KEY");
        }
    }
}

static const struct sys_col usage_cols[] = {
    {"constraint_catalog", SYS_TEXT}, {"constraint_schema", SYS_TEXT},
    {"constraint_name", SYS_TEXT},    {"table_catalog", SYS_TEXT},
    {"table_schema", SYS_TEXT},       {"table_name", SYS_TEXT},
    {"column_name", SYS_TEXT},        {"ordinal_position", SYS_INT}};
static void put_usage(struct sys *s, const struct object *object, const char *name, u32 count,
                      const u32 *cols) {
    for (u32 i = 0; i < count; i++) {
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, name);
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, object->table->cols[cols[i]].name);
        put_number(s, i + 1);
    }
}
static void key_column_usage(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        const struct table *table = object->table;
        for (u32 i = 0; i < table->key_count; i++) {
            if (!table->keys[i].index) {
                put_usage(s, object, table->keys[i].name, table->keys[i].col_count,
                          table->keys[i].cols);
            }
        }
        for (u32 i = 0; i < table->foreign_count; i++) {
            put_usage(s, object, table->foreigns[i].name, table->foreigns[i].col_count,
                      table->foreigns[i].cols);
        }
    }
}

/* The key of the parent that a reference rests on. */
static const struct table_key *referred_key(const struct sys *s, const struct object *object,
                                            const struct table_foreign *fk,
                                            const struct object **out_parent) {
    const struct edition_entry *entry =
        edition_find_oid(s->edition, fk->ref_oid ? fk->ref_oid : object->oid);
    *out_parent = entry ? entry->object : NULL;
    const struct table *parent = entry ? entry->object->table : NULL;
    for (u32 k = 0; parent && k < parent->key_count; k++) {
        if (parent->keys[k].oid == fk->ref_key) {
            return &parent->keys[k];
        }
    }
    return NULL;
}

static const struct sys_col referential_cols[] = {{"constraint_catalog", SYS_TEXT},
                                                  {"constraint_schema", SYS_TEXT},
                                                  {"constraint_name", SYS_TEXT},
                                                  {"unique_constraint_catalog", SYS_TEXT},
                                                  {"unique_constraint_schema", SYS_TEXT},
                                                  {"unique_constraint_name", SYS_TEXT},
                                                  {"match_option", SYS_TEXT},
                                                  {"update_rule", SYS_TEXT},
                                                  {"delete_rule", SYS_TEXT}};
static void referential_constraints(struct sys *s) {
    static const char *const rules[] = {"NO ACTION", "RESTRICT", "CASCADE", "SET NULL",
                                        "SET DEFAULT"};
    EACH(s, object, OBJECT_TABLE) {
        for (u32 i = 0; i < object->table->foreign_count; i++) {
            const struct table_foreign *fk = &object->table->foreigns[i];
            const struct object *parent = NULL;
            const struct table_key *key = referred_key(s, object, fk, &parent);
            put_text(s, "memory");
            put_text(s, schema_of(s, object));
            put_text(s, fk->name);
            put_text(s, "memory");
            put_text(s, parent ? schema_of(s, parent) : NULL);
            put_text(s, key ? key->name : NULL);
            put_text(s, fk->match_full ? "FULL" : "NONE");
            put_text(s, rules[fk->on_update]);
            put_text(s, rules[fk->on_delete]);
        }
    }
}

static const struct sys_col column_usage_cols[] = {
    {"table_catalog", SYS_TEXT},  {"table_schema", SYS_TEXT},       {"table_name", SYS_TEXT},
    {"column_name", SYS_TEXT},    {"constraint_catalog", SYS_TEXT}, {"constraint_schema", SYS_TEXT},
    {"constraint_name", SYS_TEXT}};
static void put_column_usage(struct sys *s, const struct object *of, const struct object *object,
                             const char *name, u32 count, const u32 *cols) {
    for (u32 i = 0; i < count; i++) {
        put_text(s, "memory");
        put_text(s, schema_of(s, of));
        put_text(s, of->name);
        put_text(s, of->table->cols[cols[i]].name);
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, name);
    }
}
static void constraint_column_usage(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 i = 0; i < object->table->key_count; i++) {
            const struct table_key *key = &object->table->keys[i];
            if (!key->index) {
                put_column_usage(s, object, object, key->name, key->col_count, key->cols);
            }
        }
        for (u32 i = 0; i < object->table->foreign_count; i++) {
            const struct table_foreign *fk = &object->table->foreigns[i];
            const struct object *parent = NULL;
            if (referred_key(s, object, fk, &parent)) {
                put_column_usage(s, parent, object, fk->name, fk->col_count, fk->ref_cols);
            }
        }
    }
}

static const struct sys_col checks_cols[] = {{"constraint_catalog", SYS_TEXT},
                                             {"constraint_schema", SYS_TEXT},
                                             {"constraint_name", SYS_TEXT},
                                             {"check_clause", SYS_TEXT}};
static void check_constraints(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 i = 0; i < object->table->check_count; i++) {
            put_text(s, "memory");
            put_text(s, schema_of(s, object));
            put_text(s, object->table->checks[i].name);
            put_text(s, object->table->checks[i].text);
        }
    }
}

static const struct sys_col sequences_cols[] = {
    {"sequence_catalog", SYS_TEXT}, {"sequence_schema", SYS_TEXT},
    {"sequence_name", SYS_TEXT},    {"data_type", SYS_TEXT},
    {"numeric_precision", SYS_INT}, {"numeric_precision_radix", SYS_INT},
    {"numeric_scale", SYS_INT},     {"start_value", SYS_BIG},
    {"minimum_value", SYS_BIG},     {"maximum_value", SYS_BIG},
    {"increment", SYS_BIG},         {"cycle_option", SYS_TEXT}};

/* The numbers of an identity column belong to it: they are no sequence of the user's. */
static bool is_of_identity(const struct sys *s, const struct object *sequence) {
    const struct edition_entry *owner =
        sequence->owner ? edition_find_oid(s->edition, sequence->owner) : NULL;
    const struct table *table = owner ? owner->object->table : NULL;
    return table && sequence->owner_col && table->cols[sequence->owner_col - 1].identity;
}

static void sequences(struct sys *s) {
    EACH(s, object, OBJECT_SEQUENCE) {
        const struct sequence *seq = object->sequence;
        if (is_of_identity(s, object)) {
            continue;
        }
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, bare_type(s, seq->type));
        put_number(s, seq->type.id == TYPE_SMALLINT ? 16 : seq->type.id == TYPE_INTEGER ? 32 : 64);
        put_number(s, 2);
        put_number(s, 0);
        put_number(s, seq->start);
        put_number(s, seq->min);
        put_number(s, seq->max);
        put_number(s, seq->increment);
        put_yes(s, seq->cycle);
    }
}

enum { OWNER = 10, HEAP = 2, BTREE = 403 }; /* OIDs that PostgreSQL gives them */

static const struct sys_col namespace_cols[] = {
    {"oid", SYS_BIG}, {"nspname", SYS_TEXT}, {"nspowner", SYS_BIG}};
static void pg_namespace(struct sys *s) {
    EACH(s, object, OBJECT_SCHEMA) {
        put_number(s, object->oid);
        put_text(s, object->name);
        put_number(s, OWNER);
    }
}

static const struct sys_col class_cols[] = {
    {"oid", SYS_BIG},           {"relname", SYS_TEXT},        {"relnamespace", SYS_BIG},
    {"relkind", SYS_TEXT},      {"relnatts", SYS_INT},        {"reltuples", SYS_BIG},
    {"relowner", SYS_BIG},      {"relam", SYS_BIG},           {"relpersistence", SYS_TEXT},
    {"relchecks", SYS_INT},     {"relhasindex", SYS_BOOL},    {"relhasrules", SYS_BOOL},
    {"reltablespace", SYS_BIG}, {"relhastriggers", SYS_BOOL}, {"relrowsecurity", SYS_BOOL},
    {"reltoastrelid", SYS_BIG}, {"relispartition", SYS_BOOL}, {"relforcerowsecurity", SYS_BOOL},
    {"reltype", SYS_BIG},       {"reloftype", SYS_BIG},       {"relreplident", SYS_TEXT}};
static void put_class(struct sys *s, u32 oid, const char *name, const struct object *in,
                      const char *kind, i64 width, i64 rows) {
    const struct table *table = *kind == 'r' ? in->table : NULL;
    put_number(s, oid);
    put_text(s, name);
    put_number(s, in->schema);
    put_text(s, kind);
    put_number(s, width);
    put_number(s, rows);
    put_number(s, OWNER);
    put_number(s, *kind == 'r' ? HEAP : *kind == 'i' ? BTREE : 0);
    put_text(s, in->temp ? "t" : "p");
    put_number(s, table ? table->check_count : 0);
    put_number(s, table && table->key_count > 0);
    put_number(s, *kind == 'v');
    for (i32 i = 0; i < 8; i++) {
        put_number(s, 0);
    }
    put_text(s, *kind == 'r' ? "d" : "n");
}
static void pg_class(struct sys *s) {
    static const char *const kinds[] = {"", "r", "v", "S", "i"};
    for (struct edition_walk at = edition_walk(s->edition); edition_step(&at);) {
        const struct edition_entry *entry = at.entry;
        const struct object *object = entry->object;
        if (object->kind == OBJECT_SCHEMA) {
            continue;
        }
        put_class(s, object->oid, object->name, object, kinds[object->kind],
                  object->table ? object->table->col_count : object->col_count,
                  entry->version ? entry->version->live_rows : 0);
        for (u32 k = 0; object->table && k < object->table->key_count; k++) {
            const struct table_key *key = &object->table->keys[k];
            if (!key->index) { /* those of constraints are no objects of their own */
                put_class(s, key->oid, key->name, object, "i", key->col_count, 0);
            }
        }
    }
}

static const struct sys_col attribute_cols[] = {
    {"attrelid", SYS_BIG},      {"attname", SYS_TEXT},    {"atttypid", SYS_BIG},
    {"attnum", SYS_INT},        {"attnotnull", SYS_BOOL}, {"atthasdef", SYS_BOOL},
    {"attisdropped", SYS_BOOL}, {"atttypmod", SYS_INT},   {"attidentity", SYS_TEXT},
    {"attgenerated", SYS_TEXT}, {"attcollation", SYS_BIG}};
/* Digits and lengths as PostgreSQL packs them. */
i64 bind_type_modifier(struct type type) {
    enum { ALL_FIELDS = 0x7fff, ALL_DIGITS = 0xffff };
    if (type.id == TYPE_DECIMAL) {
        return ((i64)type.precision << 16 | type.scale) + 4;
    }
    if (type.id == TYPE_INTERVAL && (type.length || type.precision)) {
        return (i64)(type.length ? type.length : ALL_FIELDS) << 16 |
               (type.precision ? type.precision - 1 : ALL_DIGITS);
    }
    return type.precision ? type.precision - 1 : type.length ? (i64)type.length + 4 : -1;
}
static void pg_attribute(struct sys *s) {
    for (struct edition_walk at = edition_walk(s->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        for (u32 c = 0; c < column_count(object); c++) {
            struct column_def def = column_of(object, c), *col = &def;
            bool text = col->type.id == TYPE_TEXT || col->type.id == TYPE_CHAR;
            put_number(s, object->oid);
            put_text(s, col->name);
            put_number(s, type_oid(col->type));
            put_number(s, c + 1);
            put_number(s, col->not_null);
            put_number(s, col->default_text != NULL);
            put_number(s, 0);
            put_number(s, bind_type_modifier(col->type));
            put_text(s, col->identity == 'a' ? "a" : col->identity == 'd' ? "d" : "");
            put_text(s, "");
            put_number(s, text ? 100 : 0);
        }
    }
}

static const struct sys_col type_cols[] = {
    {"oid", SYS_BIG},         {"typname", SYS_TEXT},    {"typnamespace", SYS_BIG},
    {"typtype", SYS_TEXT},    {"typrelid", SYS_BIG},    {"typelem", SYS_BIG},
    {"typnotnull", SYS_BOOL}, {"typbasetype", SYS_BIG}, {"typcollation", SYS_BIG}};
static void pg_type(struct sys *s) {
    for (i32 id = TYPE_BOOLEAN; id < TYPE_COUNT; id++) {
        struct type type = type_of((enum type_id)id);
        put_number(s, type_oid(type));
        put_text(s, *type_name(type) ? type_name(type) : bare_type(s, type));
        put_number(s, OID_PG_CATALOG);
        put_text(s, "b");
        put_number(s, 0);
        put_number(s, 0);
        put_number(s, 0);
        put_number(s, 0);
        put_number(s, id == TYPE_TEXT || id == TYPE_CHAR ? 100 : 0);
    }
}

static const struct sys_col am_cols[] = {
    {"oid", SYS_BIG}, {"amname", SYS_TEXT}, {"amtype", SYS_TEXT}};
static void pg_am(struct sys *s) {
    put_number(s, HEAP);
    put_text(s, "heap");
    put_text(s, "t");
    put_number(s, BTREE);
    put_text(s, "btree");
    put_text(s, "i");
}

static const struct sys_col role_cols[] = {
    {"oid", SYS_BIG},         {"rolname", SYS_TEXT},       {"rolsuper", SYS_BOOL},
    {"rolinherit", SYS_BOOL}, {"rolcreaterole", SYS_BOOL}, {"rolcreatedb", SYS_BOOL},
    {"rolcanlogin", SYS_BOOL}};
static void pg_roles(struct sys *s) {
    put_number(s, OWNER);
    put_text(s, "warpfox");
    for (i32 i = 0; i < 5; i++) {
        put_number(s, 1);
    }
}

static const struct sys_col database_cols[] = {{"oid", SYS_BIG},
                                               {"datname", SYS_TEXT},
                                               {"datdba", SYS_BIG},
                                               {"encoding", SYS_INT},
                                               {"datcollate", SYS_TEXT},
                                               {"datctype", SYS_TEXT},
                                               {"datistemplate", SYS_BOOL},
                                               {"datallowconn", SYS_BOOL}};
static void pg_database(struct sys *s) {
    put_number(s, 1);
    put_text(s, "memory");
    put_number(s, OWNER);
    put_number(s, 6); /* UTF8 */
    put_text(s, "C");
    put_text(s, "C.UTF-8");
    put_number(s, 0);
    put_number(s, 1);
}

static const struct sys_col index_cols[] = {
    {"indexrelid", SYS_BIG},   {"indrelid", SYS_BIG},        {"indnatts", SYS_INT},
    {"indnkeyatts", SYS_INT},  {"indisunique", SYS_BOOL},    {"indisprimary", SYS_BOOL},
    {"indisvalid", SYS_BOOL},  {"indisclustered", SYS_BOOL}, {"indisreplident", SYS_BOOL},
    {"indimmediate", SYS_BOOL}};
static void put_pg_index(struct sys *s, u32 oid, u32 table, i64 width, bool unique, bool primary,
                         bool immediate) {
    put_number(s, oid);
    put_number(s, table);
    put_number(s, width);
    put_number(s, width);
    put_number(s, unique);
    put_number(s, primary);
    put_number(s, 1);
    put_number(s, 0);
    put_number(s, 0);
    put_number(s, immediate);
}
/* A unique index is listed as the key that it is. */
static bool is_key_of(const struct table *table, u32 index) {
    for (u32 k = 0; k < table->key_count; k++) {
        if (table->keys[k].oid == index) {
            return true;
        }
    }
    return false;
}
static void pg_index(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 k = 0; k < object->table->key_count; k++) {
            const struct table_key *key = &object->table->keys[k];
            put_pg_index(s, key->oid, object->oid, key->col_count, true, key->primary,
                         !key->deferrable);
        }
    }
    EACH(s, index, OBJECT_INDEX) {
        const struct object *table = edition_find_oid(s->edition, index->owner)->object;
        if (!is_key_of(table->table, index->oid)) {
            put_pg_index(s, index->oid, index->owner, index->col_count, false, false, true);
        }
    }
}

static const struct sys_col constraint_cols[] = {
    {"oid", SYS_BIG},           {"conname", SYS_TEXT},       {"connamespace", SYS_BIG},
    {"contype", SYS_TEXT},      {"condeferrable", SYS_BOOL}, {"condeferred", SYS_BOOL},
    {"convalidated", SYS_BOOL}, {"conrelid", SYS_BIG},       {"confrelid", SYS_BIG},
    {"conindid", SYS_BIG},      {"confupdtype", SYS_TEXT},   {"confdeltype", SYS_TEXT},
    {"conparentid", SYS_BIG}};
static void put_pg_constraint(struct sys *s, const struct object *object, u32 oid, const char *name,
                              const char *type, const b8 flags[3]) {
    put_number(s, oid);
    put_text(s, name);
    put_number(s, object->schema);
    put_text(s, type);
    for (i32 i = 0; i < 3; i++) { /* deferrable, deferred, validated */
        put_number(s, flags[i]);
    }
    put_number(s, object->oid);
}
static void put_reference(struct sys *s, u32 parent, u32 index, const char *on_update,
                          const char *on_delete) {
    put_number(s, parent);
    put_number(s, index);
    put_text(s, on_update);
    put_text(s, on_delete);
    put_number(s, 0);
}
static void pg_constraint(struct sys *s) {
    static const char *const actions[] = {"a", "r", "c", "n", "d"};
    EACH(s, object, OBJECT_TABLE) {
        const struct table *table = object->table;
        for (u32 i = 0; i < table->key_count; i++) {
            const struct table_key *key = &table->keys[i];
            if (key->index) {
                continue;
            }
            const b8 flags[3] = {key->deferrable, key->deferred, 1};
            put_pg_constraint(s, object, key->oid, key->name, key->primary ? "p" : "u", flags);
            put_reference(s, 0, key->oid, " ", " ");
        }
        for (u32 i = 0; i < table->check_count; i++) {
            const b8 flags[3] = {0, 0, !table->checks[i].unvalidated};
            put_pg_constraint(s, object, table->checks[i].oid, table->checks[i].name, "c", flags);
            put_reference(s, 0, 0, " ", " ");
        }
        for (u32 i = 0; i < table->foreign_count; i++) {
            const struct table_foreign *fk = &table->foreigns[i];
            const struct object *parent = NULL;
            const struct table_key *key = referred_key(s, object, fk, &parent);
            const b8 flags[3] = {fk->deferrable, fk->deferred, !fk->unvalidated};
            put_pg_constraint(s, object, fk->oid, fk->name, "f", flags);
            put_reference(s, parent ? parent->oid : 0, key ? key->oid : 0, actions[fk->on_update],
                          actions[fk->on_delete]);
        }
    }
}

static const struct sys_col attrdef_cols[] = {
    {"adrelid", SYS_BIG}, {"adnum", SYS_INT}, {"adbin", SYS_TEXT}};
static void pg_attrdef(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 c = 0; c < object->table->col_count; c++) {
            if (object->table->cols[c].default_text) {
                put_number(s, object->oid);
                put_number(s, c + 1);
                put_text(s, object->table->cols[c].default_text);
            }
        }
    }
}

static const struct sys_col description_cols[] = {
    {"objoid", SYS_BIG}, {"classoid", SYS_BIG}, {"objsubid", SYS_INT}, {"description", SYS_TEXT}};
static void pg_description(struct sys *s) {
    for (struct edition_walk at = edition_walk(s->edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        if (object->comment) {
            put_number(s, object->oid);
            put_number(s, 1259); /* pg_class */
            put_number(s, 0);
            put_text(s, object->comment);
        }
    }
}

static const struct sys_col sequence_cols[] = {
    {"seqrelid", SYS_BIG}, {"seqtypid", SYS_BIG}, {"seqstart", SYS_BIG}, {"seqincrement", SYS_BIG},
    {"seqmax", SYS_BIG},   {"seqmin", SYS_BIG},   {"seqcache", SYS_BIG}, {"seqcycle", SYS_BOOL}};
static void pg_sequence(struct sys *s) {
    EACH(s, object, OBJECT_SEQUENCE) {
        const struct sequence *seq = object->sequence;
        put_number(s, object->oid);
        put_number(s, type_oid(seq->type));
        put_number(s, seq->start);
        put_number(s, seq->increment);
        put_number(s, seq->max);
        put_number(s, seq->min);
        put_number(s, 1);
        put_number(s, seq->cycle);
    }
}

/* What a sequence holds changes without a change of definition: it is asked for when the statement
 * starts. */
static struct expr *sequence_state(struct bind *b, const struct object *object, u8 kind) {
    struct late late = {.kind = kind, .sequence = object->oid, .name = keep(b, object->name)};
    struct expr *value = bind_late_param(b, &late, -1);
    if (kind != LATE_IS_CALLED) {
        return value;
    }
    struct expr *none = expr_new(b->arena, EXPR_CONST, value->type, -1);
    const_set_exact(none, 0);
    return expr_call(b->arena, FUNC_NE, type_of(TYPE_BOOLEAN), -1, 2, value, none);
}

static const struct sys_col pg_sequences_cols[] = {
    {"schemaname", SYS_TEXT}, {"sequencename", SYS_TEXT}, {"sequenceowner", SYS_TEXT},
    {"data_type", SYS_TEXT},  {"start_value", SYS_BIG},   {"min_value", SYS_BIG},
    {"max_value", SYS_BIG},   {"increment_by", SYS_BIG},  {"cycle", SYS_BOOL},
    {"cache_size", SYS_BIG},  {"last_value", SYS_BIG}};
static void pg_sequences(struct sys *s) {
    struct bind *b = s->b;
    EACH(s, object, OBJECT_SEQUENCE) {
        const struct sequence *seq = object->sequence;
        struct expr *args[3] = {sequence_state(b, object, LATE_IS_CALLED),
                                sequence_state(b, object, LATE_LAST_VALUE),
                                expr_null(b->t, type_of(TYPE_BIGINT), -1)};
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, "warpfox");
        put_text(s, bare_type(s, seq->type));
        put_number(s, seq->start);
        put_number(s, seq->min);
        put_number(s, seq->max);
        put_number(s, seq->increment);
        put_number(s, seq->cycle);
        put_number(s, 1);
        VEC_PUSH(b->arena, &s->exprs,
                 expr_many(b->t, EXPR_CASE, type_of(TYPE_BIGINT), -1, 3, args));
    }
}

void bind_sequence_row(struct bind *b, const struct object *object, struct select_out *out) {
    static const char *const names[] = {"last_value", "log_cnt", "is_called"};
    struct expr *count = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    const_set_exact(count, 0);
    struct expr *values[] = {sequence_state(b, object, LATE_LAST_VALUE), count,
                             sequence_state(b, object, LATE_IS_CALLED)};
    struct rel *rel = rel_new(b->plan, REL_VALUES, NULL, NULL);
    rel->rows = 1;
    out->rel = rel;
    out->names = NEW_ARRAY(b->arena, const char *, COUNT_OF(names) + 1);
    for (i64 i = 0; i < COUNT_OF(names); i++) {
        VEC_PUSH(b->arena, &rel->values.exprs, values[i]);
        VEC_PUSH(b->arena, &rel->out, bind_col_new(b, NULL, names[i], values[i]->type, false));
        out->names[i] = names[i];
    }
}

static const struct sys_col collation_cols[] = {
    {"oid", SYS_BIG}, {"collname", SYS_TEXT}, {"collnamespace", SYS_BIG}};
static void pg_collation(struct sys *s) {
    static const struct {
        i64 oid;
        const char *name;
    } known[] = {{100, "default"}, {950, "C"}, {951, "POSIX"}};
    for (i64 i = 0; i < COUNT_OF(known); i++) {
        put_number(s, known[i].oid);
        put_text(s, known[i].name);
        put_number(s, OID_PG_CATALOG);
    }
}

static const struct sys_col inherits_cols[] = {
    {"inhrelid", SYS_BIG}, {"inhparent", SYS_BIG}, {"inhseqno", SYS_INT}};
static const struct sys_col trigger_cols[] = {
    {"oid", SYS_BIG}, {"tgrelid", SYS_BIG}, {"tgname", SYS_TEXT}, {"tgisinternal", SYS_BOOL}};
static const struct sys_col enum_cols[] = {
    {"oid", SYS_BIG}, {"enumtypid", SYS_BIG}, {"enumlabel", SYS_TEXT}};
static void no_rows(struct sys *s) {
    UNUSED(s);
}

static const struct sys_col pg_tables_cols[] = {
    {"schemaname", SYS_TEXT},  {"tablename", SYS_TEXT},  {"tableowner", SYS_TEXT},
    {"tablespace", SYS_TEXT},  {"hasindexes", SYS_BOOL}, {"hasrules", SYS_BOOL},
    {"hastriggers", SYS_BOOL}, {"rowsecurity", SYS_BOOL}};
static void pg_tables(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        bool indexed = object->table->key_count > 0;
        bool refers = object->table->foreign_count > 0; /* to PostgreSQL a kind of trigger */
        for (struct edition_walk at = edition_walk_users(s->edition, object->oid);
             edition_step(&at);) {
            indexed = indexed || at.entry->object->kind == OBJECT_INDEX;
            refers = refers || at.entry->object->kind == OBJECT_TABLE;
        }
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, "warpfox");
        put_text(s, NULL);
        put_number(s, indexed);
        put_number(s, 0);
        put_number(s, refers);
        put_number(s, 0);
    }
}

static const struct sys_col pg_views_cols[] = {
    {"schemaname", SYS_TEXT}, {"viewname", SYS_TEXT}, {"definition", SYS_TEXT}};
static void pg_views(struct sys *s) {
    EACH(s, object, OBJECT_VIEW) {
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, object->text);
    }
}

static const struct sys_col pg_indexes_cols[] = {{"schemaname", SYS_TEXT},
                                                 {"tablename", SYS_TEXT},
                                                 {"indexname", SYS_TEXT},
                                                 {"indexdef", SYS_TEXT}};
static void put_index(struct sys *s, const struct object *table, const char *name,
                      const char *unique, const char *cols) {
    put_text(s, schema_of(s, table));
    put_text(s, table->name);
    put_text(s, name);
    put_text(s, arena_printf(s->b->arena, "CREATE %sINDEX %s ON %s (%s)", unique, name, table->name,
                             cols));
}
static void pg_indexes(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 k = 0; k < object->table->key_count; k++) {
            const struct table_key *key = &object->table->keys[k];
            struct text cols;
            text_init(&cols, s->b->arena);
            for (u32 i = 0; i < key->col_count; i++) {
                text_print(&cols, "%s%s", i ? ", " : "", object->table->cols[key->cols[i]].name);
            }
            put_index(s, object, key->name, "UNIQUE ", cols.ptr);
        }
    }
    EACH(s, index, OBJECT_INDEX) {
        const struct object *table = edition_find_oid(s->edition, index->owner)->object;
        if (!is_key_of(table->table, index->oid)) {
            put_index(s, table, index->name, "", index->text);
        }
    }
}

#define RELATION(schema, name, cols, fill) \
    { schema, name, cols, COUNT_OF(cols), fill }
static const struct {
    u32 schema;
    const char *name;
    const struct sys_col *cols;
    i64 width;
    void (*fill)(struct sys *s);
} relations[] = {
    RELATION(OID_INFORMATION, "schemata", schemata_cols, schemata),
    RELATION(OID_INFORMATION, "tables", tables_cols, tables),
    RELATION(OID_INFORMATION, "columns", columns_cols, columns),
    RELATION(OID_INFORMATION, "views", views_cols, views),
    RELATION(OID_INFORMATION, "table_constraints", constraints_cols, table_constraints),
    RELATION(OID_INFORMATION, "key_column_usage", usage_cols, key_column_usage),
    RELATION(OID_INFORMATION, "referential_constraints", referential_cols, referential_constraints),
    RELATION(OID_INFORMATION, "constraint_column_usage", column_usage_cols,
             constraint_column_usage),
    RELATION(OID_INFORMATION, "check_constraints", checks_cols, check_constraints),
    RELATION(OID_INFORMATION, "sequences", sequences_cols, sequences),
    RELATION(OID_PG_CATALOG, "pg_namespace", namespace_cols, pg_namespace),
    RELATION(OID_PG_CATALOG, "pg_class", class_cols, pg_class),
    RELATION(OID_PG_CATALOG, "pg_attribute", attribute_cols, pg_attribute),
    RELATION(OID_PG_CATALOG, "pg_type", type_cols, pg_type),
    RELATION(OID_PG_CATALOG, "pg_am", am_cols, pg_am),
    RELATION(OID_PG_CATALOG, "pg_roles", role_cols, pg_roles),
    RELATION(OID_PG_CATALOG, "pg_database", database_cols, pg_database),
    RELATION(OID_PG_CATALOG, "pg_index", index_cols, pg_index),
    RELATION(OID_PG_CATALOG, "pg_constraint", constraint_cols, pg_constraint),
    RELATION(OID_PG_CATALOG, "pg_attrdef", attrdef_cols, pg_attrdef),
    RELATION(OID_PG_CATALOG, "pg_description", description_cols, pg_description),
    RELATION(OID_PG_CATALOG, "pg_sequence", sequence_cols, pg_sequence),
    RELATION(OID_PG_CATALOG, "pg_sequences", pg_sequences_cols, pg_sequences),
    RELATION(OID_PG_CATALOG, "pg_collation", collation_cols, pg_collation),
    RELATION(OID_PG_CATALOG, "pg_inherits", inherits_cols, no_rows),
    RELATION(OID_PG_CATALOG, "pg_trigger", trigger_cols, no_rows),
    RELATION(OID_PG_CATALOG, "pg_enum", enum_cols, no_rows),
    RELATION(OID_PG_CATALOG, "pg_tables", pg_tables_cols, pg_tables),
    RELATION(OID_PG_CATALOG, "pg_views", pg_views_cols, pg_views),
    RELATION(OID_PG_CATALOG, "pg_indexes", pg_indexes_cols, pg_indexes),
};

/* A VALUES of the rows; without any, one row that no condition lets through. */
static struct rel *sys_rel(struct sys *s) {
    struct bind *b = s->b;
    bool none = s->exprs.count == 0;
    for (i64 i = 0; none && i < s->width; i++) {
        sys_new(s)->is_null = 1;
    }
    struct rel *rel = rel_new(b->plan, REL_VALUES, NULL, NULL);
    rel->rows = s->exprs.count / s->width;
    rel->values.exprs.items = s->exprs.items;
    rel->values.exprs.count = s->exprs.count;
    rel->values.exprs.cap = s->exprs.cap;
    for (i64 c = 0; c < s->width; c++) {
        bool nullable = false;
        for (i64 i = c; i < s->exprs.count; i += s->width) {
            nullable =
                nullable || s->exprs.items[i]->is_null || s->exprs.items[i]->kind == EXPR_CASE;
        }
        VEC_PUSH(b->arena, &rel->out,
                 bind_col_new(b, NULL, s->cols[c].name, sys_type(s->cols[c].kind), nullable));
    }
    return none ? bind_filter(b, rel, expr_bool(b->t, false, -1)) : rel;
}

static u32 system_schema(const char *schema) {
    return !schema                                     ? OID_PG_CATALOG
           : strcmp(schema, "pg_catalog") == 0         ? OID_PG_CATALOG
           : strcmp(schema, "information_schema") == 0 ? OID_INFORMATION
                                                       : 0;
}

const char *system_relation(i64 i, u32 *out_schema) {
    if (i >= COUNT_OF(relations)) {
        return NULL;
    }
    *out_schema = relations[i].schema;
    return relations[i].name;
}

const char *system_column(const char *schema, const char *name, i64 i) {
    u32 oid = system_schema(schema);
    for (i64 r = 0; r < COUNT_OF(relations); r++) {
        if (relations[r].schema == oid && strcmp(relations[r].name, name) == 0) {
            return i < relations[r].width ? relations[r].cols[i].name : NULL;
        }
    }
    return NULL;
}

FALLIBLE bind_system(struct bind *b, const char *schema, const char *name, bool *out_is,
                     struct select_out *out) {
    u32 oid = system_schema(schema);
    *out_is = false;
    for (i64 i = 0; i < COUNT_OF(relations) && oid; i++) {
        if (relations[i].schema != oid || strcmp(relations[i].name, name) != 0) {
            continue;
        }
        TRY(snapshot_open(b->snap, b->err));
        struct sys s = {.b = b,
                        .edition = b->snap->edition,
                        .width = relations[i].width,
                        .cols = relations[i].cols};
        relations[i].fill(&s);
        out->rel = sys_rel(&s);
        out->names = NEW_ARRAY(b->arena, const char *, s.width + 1);
        for (i64 c = 0; c < s.width; c++) {
            out->names[c] = s.cols[c].name;
        }
        *out_is = true;
    }
    return ERR_OK;
}

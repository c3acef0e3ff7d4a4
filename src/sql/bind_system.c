/* bind_system.c: information_schema and pg_catalog: the catalog as tables.
 *
 * Part of binding. What these relations hold follows from the edition a statement reads, so each is
 * bound as a list of constant rows made from it; definitions are few, and a cached plan is bound
 * again when they change. A relation is a line in `relations`, its columns, and a function that
 * adds its rows. Where PostgreSQL has more columns, ours are the first and most used ones, under
 * its names. */
#include "sql/sql_int.h"

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

static const char *type_text(struct sys *s, struct type type) {
    char text[32];
    return arena_printf(s->b->arena, "%s", type_print(type, text));
}

/* The type's name without its digits. */
static const char *bare_type(struct sys *s, struct type type) {
    char *text = arena_printf(s->b->arena, "%s", type_text(s, type));
    char *paren = strchr(text, '(');
    if (paren) {
        *paren = 0;
    }
    return strcmp(text, "decimal") == 0 ? "numeric" : text;
}

#define EACH(s, it, KIND)                                                                          \
    for (i64 i_ = 0; i_ < (s)->edition->count; i_++)                                               \
        for (const struct object *it = (s)->edition->entries[i_].object; it && it->kind == (KIND); \
             it = NULL)

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
    for (i64 i = 0; i < s->edition->count; i++) {
        const struct object *object = s->edition->entries[i].object;
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

static const struct sys_col columns_cols[] = {
    {"table_catalog", SYS_TEXT}, {"table_schema", SYS_TEXT},    {"table_name", SYS_TEXT},
    {"column_name", SYS_TEXT},   {"ordinal_position", SYS_INT}, {"column_default", SYS_TEXT},
    {"is_nullable", SYS_TEXT},   {"data_type", SYS_TEXT},       {"numeric_precision", SYS_INT},
    {"numeric_scale", SYS_INT},  {"is_identity", SYS_TEXT},     {"identity_generation", SYS_TEXT}};
static void columns(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 c = 0; c < object->table->col_count; c++) {
            const struct column_def *col = &object->table->cols[c];
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
    {"sequence_catalog", SYS_TEXT}, {"sequence_schema", SYS_TEXT}, {"sequence_name", SYS_TEXT},
    {"data_type", SYS_TEXT},        {"start_value", SYS_BIG},      {"minimum_value", SYS_BIG},
    {"maximum_value", SYS_BIG},     {"increment", SYS_BIG},        {"cycle_option", SYS_TEXT}};
static void sequences(struct sys *s) {
    EACH(s, object, OBJECT_SEQUENCE) {
        const struct sequence *seq = object->sequence;
        put_text(s, "memory");
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, bare_type(s, seq->type));
        put_number(s, seq->start);
        put_number(s, seq->min);
        put_number(s, seq->max);
        put_number(s, seq->increment);
        put_yes(s, seq->cycle);
    }
}

static const struct sys_col namespace_cols[] = {{"oid", SYS_BIG}, {"nspname", SYS_TEXT}};
static void pg_namespace(struct sys *s) {
    EACH(s, object, OBJECT_SCHEMA) {
        put_number(s, object->oid);
        put_text(s, object->name);
    }
}

static const struct sys_col class_cols[] = {{"oid", SYS_BIG},          {"relname", SYS_TEXT},
                                            {"relnamespace", SYS_BIG}, {"relkind", SYS_TEXT},
                                            {"relnatts", SYS_INT},     {"reltuples", SYS_BIG}};
static void pg_class(struct sys *s) {
    static const char *const kinds[] = {"", "r", "v", "S", "i"};
    for (i64 i = 0; i < s->edition->count; i++) {
        const struct edition_entry *entry = &s->edition->entries[i];
        const struct object *object = entry->object;
        if (object->kind == OBJECT_SCHEMA) {
            continue;
        }
        put_number(s, object->oid);
        put_text(s, object->name);
        put_number(s, object->schema);
        put_text(s, kinds[object->kind]);
        put_number(s, object->table ? object->table->col_count : object->col_count);
        put_number(s, entry->version ? entry->version->live_rows : 0);
    }
}

static const struct sys_col attribute_cols[] = {{"attrelid", SYS_BIG},     {"attname", SYS_TEXT},
                                                {"atttypid", SYS_BIG},     {"attnum", SYS_INT},
                                                {"attnotnull", SYS_BOOL},  {"atthasdef", SYS_BOOL},
                                                {"attisdropped", SYS_BOOL}};
static void pg_attribute(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        for (u32 c = 0; c < object->table->col_count; c++) {
            const struct column_def *col = &object->table->cols[c];
            put_number(s, object->oid);
            put_text(s, col->name);
            put_number(s, type_oid(col->type));
            put_number(s, c + 1);
            put_number(s, col->not_null);
            put_number(s, col->default_text != NULL);
            put_number(s, 0);
        }
    }
}

static const struct sys_col type_cols[] = {{"oid", SYS_BIG}, {"typname", SYS_TEXT}};
static void pg_type(struct sys *s) {
    for (i32 id = TYPE_BOOLEAN; id < TYPE_COUNT; id++) {
        struct type type = type_of((enum type_id)id);
        put_number(s, type_oid(type));
        put_text(s, bare_type(s, type));
    }
}

static const struct sys_col pg_tables_cols[] = {
    {"schemaname", SYS_TEXT}, {"tablename", SYS_TEXT}, {"tableowner", SYS_TEXT}};
static void pg_tables(struct sys *s) {
    EACH(s, object, OBJECT_TABLE) {
        put_text(s, schema_of(s, object));
        put_text(s, object->name);
        put_text(s, "warpfox");
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
        const struct edition_entry *table = edition_find_oid(s->edition, index->owner);
        bool listed = false; /* as a key */
        for (u32 k = 0; table && table->object->table && k < table->object->table->key_count; k++) {
            listed = listed || table->object->table->keys[k].oid == index->oid;
        }
        if (table && !listed) {
            put_index(s, table->object, index->name, "", index->text ? index->text : "");
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
    RELATION(OID_INFORMATION, "check_constraints", checks_cols, check_constraints),
    RELATION(OID_INFORMATION, "sequences", sequences_cols, sequences),
    RELATION(OID_PG_CATALOG, "pg_namespace", namespace_cols, pg_namespace),
    RELATION(OID_PG_CATALOG, "pg_class", class_cols, pg_class),
    RELATION(OID_PG_CATALOG, "pg_attribute", attribute_cols, pg_attribute),
    RELATION(OID_PG_CATALOG, "pg_type", type_cols, pg_type),
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
    rel->exprs.items = s->exprs.items;
    rel->exprs.count = s->exprs.count;
    rel->exprs.cap = s->exprs.cap;
    for (i64 c = 0; c < s->width; c++) {
        bool nullable = false;
        for (i64 i = c; i < s->exprs.count; i += s->width) {
            nullable = nullable || s->exprs.items[i]->is_null;
        }
        VEC_PUSH(b->arena, &rel->out,
                 bind_col_new(b, NULL, s->cols[c].name, sys_type(s->cols[c].kind), nullable));
    }
    return none ? bind_filter(b, rel, expr_bool(b, false, -1)) : rel;
}

FALLIBLE bind_system(struct bind *b, const char *schema, const char *name, bool *out_is,
                     struct select_out *out) {
    u32 oid = !schema                                     ? OID_PG_CATALOG
              : strcmp(schema, "pg_catalog") == 0         ? OID_PG_CATALOG
              : strcmp(schema, "information_schema") == 0 ? OID_INFORMATION
                                                          : 0;
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

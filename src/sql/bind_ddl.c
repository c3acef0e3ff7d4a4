/* bind_ddl.c: CREATE TABLE: columns and constraints.
 *
 * Part of binding. Definitions are checked here as far as the statement and the snapshot allow;
 * whether a name is taken is for the catalog to say when the statement runs. Expressions (DEFAULT,
 * CHECK) are bound once, for their errors, and kept as the text they were written in, which is
 * bound again whenever it is needed. Constraints without a name get PostgreSQL's. */
#include "base/map.h"
#include "sql/ddl_int.h"

#include <stdio.h>

static const struct {
    const char *name;
    u8 id;
} serials[] = {
    {"serial", TYPE_INTEGER}, {"serial4", TYPE_INTEGER},  {"bigserial", TYPE_BIGINT},
    {"serial8", TYPE_BIGINT}, {"serial2", TYPE_SMALLINT}, {"smallserial", TYPE_SMALLINT},
};

static bool serial_type(const struct json *type, struct type *out) {
    const struct json *names = json_get(type, "names");
    for (i64 i = 0; json_count(names) == 1 && i < COUNT_OF(serials); i++) {
        if (strcmp(serials[i].name, node_string(json_first(names))) == 0) {
            *out = type_of((enum type_id)serials[i].id);
            return true;
        }
    }
    return false;
}

FALLIBLE ddl_column_type(struct bind *b, const struct json *body, struct type *out) {
    struct type_name name;
    TRY(bind_type(b, body, &name));
    *out = name.type;
    if (name.open_decimal) {
        wf_status status = unsupported(b, name.position, "decimal without precision and scale");
        error_hint(b->err, "Say how many digits: decimal(18,3).");
        return status;
    }
    return ERR_OK;
}

/* Text */

/* 'today' in a definition is the day the definition was made, and a timestamptz is read by the zone
 * of that session. */
const struct when *bind_note_moment(void *arg, const struct expr *literal, struct type type) {
    struct bind *b = arg;
    char buf[VALUE_TEXT_MAX];
    union lit value;
    if (b->parsed->prepared) {
        return &b->parsed->when;
    }
    if (literal->position < 0 ||
        value_parse(type, sv_of(literal->value.str), b->snap->when, &value)) {
        return NULL;
    }
    i32 len = value_print_zone(type, type_kind(type), &value, 0, buf);
    struct moment moment = {b->parsed, literal->position,
                            arena_sv(b->arena, (struct sv){buf, len}).ptr};
    VEC_PUSH(b->arena, &b->moments, moment);
    return NULL;
}

/* The literal that starts at a position, as it is kept; NULL = as it stands there. */
static const char *moment_at(struct bind *b, i64 position) {
    for (i64 i = b->moments.count - 1; i >= 0; i--) {
        const struct moment *moment = &b->moments.items[i];
        if (moment->position == position && moment->parsed == b->parsed) {
            return moment->text;
        }
    }
    return NULL;
}

/* A text with its literals of moments as they mean now; one that goes on in the next line stays. */
static const char *settle_moments(struct bind *b, i64 from, i64 to) {
    struct sv script = {b->parsed->script.ptr, to};
    struct sv token, next;
    struct text out;
    i64 at = from, copied = from;
    text_init(&out, b->arena);
    while (lex_next(script, &at, &token)) {
        i64 start = token.ptr - script.ptr, after = at;
        const char *text = moment_at(b, start);
        bool goes_on = text && lex_next(script, &after, &next) && next.ptr[0] == '\'';
        if (text && !goes_on) {
            text_print(&out, "%.*s'%s'", (int)(start - copied), script.ptr + copied, text);
            copied = at;
        }
    }
    text_print(&out, "%.*s", (int)(to - copied), script.ptr + copied);
    return out.ptr;
}

/* From its first token to its last: what is kept goes before other text, which a comment at its end would
 * swallow. */
const char *ddl_text(struct bind *b, i64 from, i64 to) {
    struct sv script = {b->parsed->script.ptr, to}, token;
    i64 first = to, end = to;
    for (i64 at = from; lex_next(script, &at, &token);) {
        first = MIN_OF(first, token.ptr - script.ptr);
        end = token.ptr[0] == ';' ? end : at;
    }
    return b->moments.count ? settle_moments(b, first, end)
                            : arena_sv(b->arena, (struct sv){script.ptr + first, end - first}).ptr;
}

i64 ddl_after_word(struct bind *b, i64 at, const char *word) {
    struct sv token;
    while (lex_next(b->parsed->script, &at, &token)) {
        if (sv_eq_nocase(token, sv_from(word))) {
            return at;
        }
    }
    return -1;
}

i64 ddl_item_end(struct bind *b, i64 at) {
    struct sv script = b->parsed->script, token;
    i64 end = b->parsed->text.ptr + b->parsed->text.len - script.ptr;
    i32 depth = 0;
    while (at < end && lex_next(script, &at, &token)) {
        i64 start = token.ptr - script.ptr;
        if (start >= end) {
            break;
        }
        char c = token.ptr[0];
        if (depth == 0 && (c == ',' || c == ')' || c == ';')) {
            return start;
        }
        depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    }
    return end;
}

i64 ddl_list_end(struct bind *b, i64 at) {
    struct sv script = b->parsed->script;
    for (at = ddl_item_end(b, at); at < script.len && script.ptr[at] == ',';) {
        at = ddl_item_end(b, at + 1);
    }
    return at;
}

/* CHECK ( … ): what is between the parentheses. */
const char *ddl_check_text(struct bind *b, i32 location) {
    i64 at = ddl_after_word(b, location, "check");
    at = at < 0 ? -1 : ddl_after_word(b, at, "(");
    return at < 0 ? "" : ddl_text(b, at, ddl_item_end(b, at));
}

/* DEFAULT …: up to the next constraint of the column or its end. */
static void default_span(struct bind *b, const struct json *constraints, i32 location,
                         i64 span[2]) {
    i64 at = ddl_after_word(b, location, "default");
    at = at < 0 ? location : at;
    i64 end = ddl_item_end(b, at);
    JSON_EACH(node, constraints) {
        i32 other = json_position(node_body(node));
        if (other > location && other < end) {
            end = other;
        }
    }
    span[0] = at;
    span[1] = end;
}

/* Names */

static bool key_has_name(const struct table_def *def, const char *name) {
    bool has = false;
    for (u32 i = 0; i < def->key_count; i++) {
        has = has || strcmp(def->keys[i].name, name) == 0;
    }
    return has;
}

static bool constraint_has_name(const struct table_def *def, const char *name) {
    bool has = key_has_name(def, name);
    for (u32 i = 0; i < def->check_count; i++) {
        has = has || strcmp(def->checks[i].name, name) == 0;
    }
    for (u32 i = 0; i < def->foreign_count; i++) {
        has = has || strcmp(def->foreigns[i].name, name) == 0;
    }
    return has;
}

/* Bytes of a name that are left when it is cut, none of them a part of a character. */
static i64 cut_bytes(const char *name, i64 bytes) {
    while (bytes > 0 && (name[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    return bytes;
}

const char *sql_object_name(struct arena *arena, const char *table, const char *cols,
                            const char *end, i32 number) {
    char label[24];
    i32 len = snprintf(label, sizeof label, number ? "_%.10s%d" : "_%.10s", end, number);
    i64 room = NAME_BYTES - len - (cols ? 1 : 0);
    i64 left = (i64)strlen(table), right = cols ? (i64)strlen(cols) : 0;
    while (left + right > room) { /* the longer one gives way */
        *(left > right ? &left : &right) -= 1;
    }
    left = cut_bytes(table, left);
    right = cols ? cut_bytes(cols, right) : 0;
    return arena_printf(arena, "%.*s%s%.*s%s", (int)left, table, cols ? "_" : "", (int)right,
                        cols ? cols : "", label);
}

/* `cols` may be NULL. `key`: of a key, which must be free among relations, too. */
static const char *new_name(struct bind *b, const struct table_def *def, const char *cols,
                            const char *end, bool key) {
    const char *name = sql_object_name(b->arena, def->name, cols, end, 0);
    for (i32 n = 1; constraint_has_name(def, name) ||
                    (key && edition_name_holder(b->snap->edition, b->home, sv_from(name)));
         n++) {
        name = sql_object_name(b->arena, def->name, cols, end, n);
    }
    return name;
}

static const char *columns_name(struct bind *b, const struct table_def *def, u32 count,
                                const u32 *cols, const char *end, bool key) {
    struct text out;
    text_init(&out, b->arena);
    for (u32 i = 0; i < count && out.len <= NAME_BYTES; i++) {
        text_print(&out, "%s%s", i ? "_" : "", def->cols[cols[i]].name);
    }
    return new_name(b, def, count ? out.ptr : NULL, end, key);
}

FALLIBLE ddl_check_name(struct bind *b, const struct table_def *def, const char *name, bool key,
                        i32 position) {
    if (constraint_has_name(def, name)) { /* keys share their names with relations */
        return error_set(
            b->err, key && key_has_name(def, name) ? ERR_DUPLICATE_TABLE : ERR_DUPLICATE_OBJECT,
            position, "constraint \"%.100s\" for relation \"%.100s\" already exists", name,
            def->name);
    }
    return ERR_OK;
}

static FALLIBLE given_name(struct bind *b, const struct table_def *def, const struct json *body,
                           const char **out) {
    const char *name = json_text(body, "conname");
    bool key =
        json_is(body, "contype", "CONSTR_UNIQUE") || json_is(body, "contype", "CONSTR_PRIMARY");
    *out = keep(b, name);
    return name ? ddl_check_name(b, def, name, key, json_position(body)) : ERR_OK;
}

static FALLIBLE ddl_find_column(struct bind *b, const struct table_def *def, const char *name,
                                i32 position, u32 *out) {
    for (u32 i = 0; i < def->col_count; i++) {
        if (strcmp(def->cols[i].name, name) == 0) {
            *out = i;
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_COLUMN, position, "column \"%.100s\" named in key does not exist",
            name);
}

static FALLIBLE column_numbers(struct bind *b, const struct table_def *def,
                               const struct json *names, i32 position, u32 *out_count, u32 **out) {
    *out = NEW_ARRAY(b->arena, u32, json_count(names) + 1);
    *out_count = 0;
    if (json_count(names) > 32) {
        FAIL_AT(b->err, TOO_MANY_COLUMNS, position, "cannot use more than 32 columns in a key");
    }
    JSON_EACH(name, names) {
        u32 col = 0;
        TRY(ddl_find_column(b, def, node_string(name), position, &col));
        for (u32 i = 0; i < *out_count; i++) {
            if ((*out)[i] == col) {
                FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                        "column \"%.100s\" appears twice in a constraint", node_string(name));
            }
        }
        (*out)[(*out_count)++] = col;
    }
    return ERR_OK;
}

/* Constraints; lists in the definition grow by one. */

#define GROW(b, list, count, type)                                  \
    do {                                                            \
        type *grown_ = NEW_ARRAY((b)->arena, type, (count) + 2);    \
        if (count) {                                                \
            memcpy(grown_, (list), (size_t)(count) * sizeof(type)); \
        }                                                           \
        (list) = grown_;                                            \
    } while (0)

static const char *key_name(struct bind *b, const struct table_def *def,
                            const struct table_key *key) {
    return key->primary ? new_name(b, def, NULL, "pkey", true)
                        : columns_name(b, def, key->col_count, key->cols, "key", true);
}

static FALLIBLE add_key(struct bind *b, struct table_def *def, const struct json *body,
                        const char *column) {
    bool primary = json_is(body, "contype", "CONSTR_PRIMARY");
    i32 position = json_position(body);
    struct table_key key = {.primary = primary};
    TRY(bind_only(b, body, "contype conname location keys deferrable initdeferred", position));
    key.deferred = (b8)json_flag(body, "initdeferred");
    key.deferrable = key.deferred || json_flag(body, "deferrable");
    if (column) {
        key.cols = NEW_ARRAY(b->arena, u32, 1);
        key.col_count = 1;
        TRY(ddl_find_column(b, def, column, position, key.cols));
    } else {
        TRY(column_numbers(b, def, json_get(body, "keys"), position, &key.col_count, &key.cols));
    }
    for (u32 i = 0; primary && i < def->key_count; i++) {
        if (def->keys[i].primary) {
            FAIL_AT(b->err, INVALID_DEFINITION, position,
                    "multiple primary keys for table \"%.100s\" are not allowed", def->name);
        }
    }
    TRY(given_name(b, def, body, &key.name));
    key.unnamed = !key.name;
    if (!key.name) {
        key.name = key_name(b, def, &key);
    }
    for (u32 i = 0; primary && i < key.col_count; i++) {
        def->cols[key.cols[i]].not_null = 1;
    }
    GROW(b, def->keys, def->key_count, struct table_key);
    def->keys[def->key_count++] = key;
    return ERR_OK;
}

/* Keys of one definition that say the same are one: the primary key, else the first, under the
 * first name that is given. Those before `first` are not the definition's. */
static void merge_keys(struct bind *b, struct table_def *def, u32 first) {
    struct table_key *all = NEW_ARRAY(b->arena, struct table_key, def->key_count + 1);
    u32 count = first, end = def->key_count;
    for (u32 pass = 0; pass < 2; pass++) { /* the primary key comes first */
        for (u32 i = first; i < end; i++) {
            struct table_key *key = &def->keys[i], *old = NULL;
            if (key->primary != (pass == 0)) {
                continue;
            }
            for (u32 k = first; k < count; k++) {
                old = !old && table_key_equal(&all[k], key) ? &all[k] : old;
            }
            if (!old) {
                all[count++] = *key;
            } else if (old->unnamed && !key->unnamed) {
                old->name = key->name;
                old->unnamed = 0;
            }
        }
    }
    if (count > first) {
        memcpy(def->keys + first, all + first, (size_t)(count - first) * sizeof *all);
    }
    def->key_count = count;
    for (u32 i = first; i < count; i++) {
        def->keys[i].name = def->keys[i].unnamed ? "" : def->keys[i].name;
    }
    for (u32 i = first; i < count; i++) {
        struct table_key *key = &def->keys[i];
        key->name = key->unnamed ? key_name(b, def, key) : key->name;
    }
}

/* The columns of the table being defined, as a scope of their own. */
void ddl_scope(struct bind *b, const struct table_def *def, struct scope *out) {
    struct scope_table table = {keep(b, def->name), def->col_count,
                                NEW_ARRAY(b->arena, struct scope_col, def->col_count + 1)};
    for (u32 i = 0; i < def->col_count; i++) {
        const char *name = keep(b, def->cols[i].name);
        table.cols[i] =
            (struct scope_col){name, bind_col_new(b, table.alias, name, def->cols[i].type, true)};
        VEC_PUSH(b->arena, &out->cols, table.cols[i]);
    }
    VEC_PUSH(b->arena, &out->tables, table);
}

struct one_col {
    u32 col;
    i32 count;
};

static bool count_cols(const struct expr *expr, void *arg) {
    struct one_col *one = arg;
    if (expr->kind == EXPR_COL && !(one->count && one->col == expr->col)) {
        one->col = expr->col;
        one->count++;
    }
    return true;
}

static FALLIBLE add_check(struct bind *b, struct table_def *def, const struct json *body) {
    i32 position = json_position(body);
    struct table_check check = {0};
    TRY(bind_only(b, body,
                  "contype conname location raw_expr initially_valid skip_validation "
                  "is_no_inherit",
                  position));
    struct scope scope = {0};
    ddl_scope(b, def, &scope);
    struct query q = {.scope = &scope, .clause = "check constraints"};
    struct expr *cond = NULL;
    TRY(bind_condition(b, &q, json_get(body, "raw_expr"), "CHECK", &cond));
    check.text = ddl_check_text(b, position);
    check.unvalidated = (b8)json_flag(body, "skip_validation");
    TRY(given_name(b, def, body, &check.name));
    if (!check.name) {
        struct one_col one = {0};
        expr_walk(cond, count_cols, &one);
        u32 col = one.count == 1 ? one.col - scope.tables.items[0].cols[0].col : 0;
        check.name = columns_name(b, def, one.count == 1 ? 1 : 0, &col, "check", false);
    }
    GROW(b, def->checks, def->check_count, struct table_check);
    def->checks[def->check_count++] = check;
    return ERR_OK;
}

static void fk_action_of(const struct json *body, const char *field, u8 *out) {
    static const struct {
        const char *letter;
        u8 action;
    } actions[] = {{"a", FK_NO_ACTION},
                   {"r", FK_RESTRICT},
                   {"c", FK_CASCADE},
                   {"n", FK_SET_NULL},
                   {"d", FK_SET_DEFAULT}};
    for (i64 i = 0; i < COUNT_OF(actions); i++) {
        if (json_is(body, field, actions[i].letter)) {
            *out = actions[i].action;
        }
    }
}

/* DEFERRABLE and INITIALLY DEFERRED behind a constraint of a column, where they are nodes of their
 * own. */
static FALLIBLE column_deferrable(struct bind *b, struct table_def *def, const struct json *before,
                                  const struct json *body) {
    bool deferred = json_is(body, "contype", "CONSTR_ATTR_DEFERRED");
    bool off = json_is(body, "contype", "CONSTR_ATTR_NOT_DEFERRABLE") ||
               json_is(body, "contype", "CONSTR_ATTR_IMMEDIATE");
    if (before && json_is(before, "contype", "CONSTR_FOREIGN")) {
        struct table_foreign *fk = &def->foreigns[def->foreign_count - 1];
        fk->deferrable = fk->deferrable || !off;
        fk->deferred = fk->deferred || deferred;
        return ERR_OK;
    }
    if (before && (json_is(before, "contype", "CONSTR_PRIMARY") ||
                   json_is(before, "contype", "CONSTR_UNIQUE"))) {
        struct table_key *key = &def->keys[def->key_count - 1];
        key->deferrable = key->deferrable || !off;
        key->deferred = key->deferred || deferred;
        return ERR_OK;
    }
    FAIL_AT(b->err, SYNTAX, json_position(body), "misplaced %s clause",
            deferred ? "INITIALLY DEFERRED" : "DEFERRABLE");
}

static FALLIBLE key_not_deferrable(struct bind *b, const struct table_def *parent,
                                   const struct table_key *key, i32 position) {
    if (key->deferrable) {
        FAIL_AT(b->err, WRONG_STATE, position,
                "cannot use a deferrable %s for referenced table \"%.100s\"",
                key->primary ? "primary key" : "unique constraint", parent->name);
    }
    return ERR_OK;
}

/* The columns referred to: named, or the primary key; they must be a key. Of equal ones it is the
 * first that is checked at once. */
static FALLIBLE referred_columns(struct bind *b, const struct table_def *parent,
                                 const struct json *names, i32 position, u32 *out_count, u32 **out,
                                 u32 *out_key) {
    const struct table_key *deferrable = NULL;
    TRY(column_numbers(b, parent, names, position, out_count, out));
    for (u32 k = 0; k < parent->key_count; k++) {
        const struct table_key *key = &parent->keys[k];
        u32 found = 0;
        if (!names && key->primary) {
            *out = key->cols;
            *out_count = key->col_count;
            *out_key = key->oid;
            return key_not_deferrable(b, parent, key, position);
        }
        for (u32 i = 0; i < key->col_count; i++) {
            for (u32 c = 0; c < *out_count; c++) {
                found += (*out)[c] == key->cols[i];
            }
        }
        if (names && found == key->col_count && found == *out_count) {
            *out_key = key->oid;
            deferrable = key->deferrable && !deferrable ? key : deferrable;
            if (!key->deferrable) {
                return ERR_OK;
            }
        }
    }
    if (deferrable) {
        return key_not_deferrable(b, parent, deferrable, position);
    }
    if (!names) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position,
                "there is no primary key for referenced table \"%.100s\"", parent->name);
    }
    FAIL_AT(b->err, INVALID_FOREIGN_KEY, position,
            "there is no unique constraint matching given keys for referenced table \"%.100s\"",
            parent->name);
}

FALLIBLE ddl_check_pairs(struct bind *b, const struct table_def *def,
                         const struct table_foreign *fk, const struct table_def *parent,
                         i32 position) {
    for (u32 i = 0; i < fk->col_count; i++) {
        const struct column_def *own = &def->cols[fk->cols[i]];
        const struct column_def *other = &parent->cols[fk->ref_cols[i]];
        if (!type_refers(own->type, other->type)) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, position,
                    "key columns \"%.60s\" and \"%.60s\" are of incompatible types", own->name,
                    other->name);
        }
    }
    return ERR_OK;
}

/* ON DELETE SET NULL (columns) */
static FALLIBLE set_columns(struct bind *b, const struct table_def *def, const struct json *names,
                            struct table_foreign *io, i32 position) {
    JSON_EACH(node, names) {
        u32 col = 0, at = 0;
        TRY(ddl_find_column(b, def, node_string(node), position, &col));
        while (at < io->col_count && io->cols[at] != col) {
            at++;
        }
        if (at == io->col_count) {
            FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                    "column \"%.100s\" referenced in ON DELETE SET action must be part of foreign "
                    "key",
                    def->cols[col].name);
        }
        io->set_on_delete |= 1u << at;
    }
    return ERR_OK;
}

static FALLIBLE add_foreign(struct bind *b, struct table_def *def, const struct json *body,
                            const char *column, const char *schema) {
    i32 position = json_position(body);
    const struct json *pk = json_get(body, "pktable");
    struct table_foreign fk = {0};
    TRY(bind_only(b, body,
                  "contype conname location pktable fk_attrs pk_attrs fk_matchtype fk_upd_action "
                  "fk_del_action fk_del_set_cols initially_valid skip_validation deferrable "
                  "initdeferred",
                  position));
    if (json_is(body, "fk_matchtype", "p")) {
        return unsupported(b, position, "MATCH PARTIAL");
    }
    fk.match_full = json_is(body, "fk_matchtype", "f");
    fk.unvalidated = (b8)json_flag(body, "skip_validation");
    fk_action_of(body, "fk_del_action", &fk.on_delete);
    fk_action_of(body, "fk_upd_action", &fk.on_update);
    fk.deferred = (b8)json_flag(body, "initdeferred");
    fk.deferrable = fk.deferred || json_flag(body, "deferrable");
    if (column) {
        fk.cols = NEW_ARRAY(b->arena, u32, 1);
        fk.col_count = 1;
        TRY(ddl_find_column(b, def, column, position, fk.cols));
    } else {
        TRY(column_numbers(b, def, json_get(body, "fk_attrs"), position, &fk.col_count, &fk.cols));
    }
    TRY(set_columns(b, def, json_get(body, "fk_del_set_cols"), &fk, position));
    const char *name = json_text(pk, "relname"), *in = json_text(pk, "schemaname");
    bool own = name && strcmp(name, def->name) == 0 && (!in || (schema && !strcmp(in, schema)));
    struct table_def parent = *def;
    if (!own) {
        const struct edition_entry *entry = NULL;
        TRY(bind_relation(b, pk, &entry));
        if (entry->object->kind != OBJECT_TABLE) {
            FAIL_AT(b->err, WRONG_OBJECT, json_position(pk),
                    "referenced relation \"%.100s\" is not a table", entry->object->name);
        }
        if (entry->object->temp != b->home_temp) { /* one of them outlives the session */
            const char *word = b->home_temp ? "temporary" : "permanent";
            FAIL_AT(b->err, INVALID_DEFINITION, position,
                    "constraints on %s tables may reference only %s tables", word, word);
        }
        fk.ref_oid = entry->object->oid;
        parent = table_def_view(entry->object->table);
    }
    u32 count = 0;
    TRY(referred_columns(b, &parent, json_get(body, "pk_attrs"), position, &count, &fk.ref_cols,
                         &fk.ref_key));
    if (count != fk.col_count) {
        FAIL_AT(b->err, INVALID_FOREIGN_KEY, position,
                "number of referencing and referenced columns for foreign key disagree");
    }
    TRY(ddl_check_pairs(b, def, &fk, &parent, position));
    TRY(given_name(b, def, body, &fk.name));
    fk.name = fk.name ? fk.name : columns_name(b, def, fk.col_count, fk.cols, "fkey", false);
    GROW(b, def->foreigns, def->foreign_count, struct table_foreign);
    def->foreigns[def->foreign_count++] = fk;
    return ERR_OK;
}

FALLIBLE ddl_add_constraint(struct bind *b, struct table_def *def, const struct json *body,
                            const char *column, const char *schema) {
    static const struct {
        const char *type;
        const char *words;
    } others[] = {{"CONSTR_EXCLUSION", "EXCLUDE"}, {"CONSTR_GENERATED", "GENERATED columns"}};
    const char *type = json_text(body, "contype");
    type = type ? type : "";
    if (strcmp(type, "CONSTR_PRIMARY") == 0 || strcmp(type, "CONSTR_UNIQUE") == 0) {
        return add_key(b, def, body, column);
    }
    if (strcmp(type, "CONSTR_CHECK") == 0) {
        return add_check(b, def, body);
    }
    if (strcmp(type, "CONSTR_FOREIGN") == 0) {
        return add_foreign(b, def, body, column, schema);
    }
    for (i64 i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(others[i].type, type) == 0) {
            return unsupported(b, json_position(body), "%s", others[i].words);
        }
    }
    return unsupported(b, json_position(body), "constraint %s", type);
}

/* Columns */

struct ddl_seq *ddl_add_sequence(struct bind *b, struct new_table *out, u32 col) {
    const struct column_def *def = &out->def.cols[col];
    GROW(b, out->seqs, out->seq_count, struct ddl_seq);
    struct ddl_seq *seq = &out->seqs[out->seq_count++];
    seq->name = sql_object_name(b->arena, out->def.name, def->name, "seq", 0);
    seq->col = col;
    seq->owned = 1;
    struct range range = range_of_type(def->type);
    seq->like = (struct sequence){
        .start = 1, .last = 1, .increment = 1, .min = 1, .max = (i64)range.hi, .type = def->type};
    return seq;
}

FALLIBLE ddl_default(struct bind *b, const struct json *expr, const i64 span[2],
                     struct column_def *col) {
    struct query q = {.clause = "DEFAULT expressions"};
    const struct edition_entry *sequence = NULL;
    TRY(bind_nextval_of(b, expr, &sequence));
    if (sequence) {
        col->default_text = ddl_text(b, span[0], span[1]);
        col->sequence = sequence->object->oid;
        return ERR_OK;
    }
    struct expr *value = NULL;
    wf_status status = bind_expr(b, &q, expr, &value);
    if (status == ERR_UNDEFINED_COLUMN) {
        i32 position = b->err->position;
        error_reset(b->err);
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "cannot use column reference in DEFAULT expression");
    }
    TRY(status);
    TRY(bind_assign(b, value, col, &value));
    col->default_text = ddl_text(b, span[0], span[1]);
    return ERR_OK;
}

FALLIBLE ddl_add_identity(struct bind *b, const struct json *body, struct new_table *out, u32 col) {
    struct column_def *def = &out->def.cols[col];
    i32 position = json_position(body);
    TRY(bind_only(b, body, "contype conname location generated_when options", position));
    if (def->type.id != TYPE_INTEGER && def->type.id != TYPE_BIGINT &&
        def->type.id != TYPE_SMALLINT) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "identity column type must be smallint, integer, or bigint");
    }
    bool filled = def->default_text != NULL;
    for (i32 i = 0; i < out->seq_count; i++) {
        filled |= out->seqs[i].col == col;
    }
    if (def->identity) {
        FAIL_AT(b->err, SYNTAX, position, "multiple identity specifications for column \"%.100s\"",
                def->name);
    }
    if (filled) {
        FAIL_AT(b->err, SYNTAX, position,
                "both default and identity specified for column \"%.100s\"", def->name);
    }
    def->identity = json_is(body, "generated_when", "a") ? 'a' : 'd';
    def->not_null = 1;
    struct ddl_seq *seq = ddl_add_sequence(b, out, col);
    return bind_sequence_options(b, json_get(body, "options"), seq);
}

/* What a column's own list says of it alone; keys and references come when all columns are known.
 */
static FALLIBLE column_constraints(struct bind *b, const struct json *list, struct new_table *out,
                                   u32 number) {
    struct column_def *col = &out->def.cols[number];
    bool nullable = false;
    JSON_EACH(node, list) {
        const struct json *body = node_body(node);
        if (json_is(body, "contype", "CONSTR_NOTNULL")) {
            col->not_null = 1;
        } else if (json_is(body, "contype", "CONSTR_NULL")) {
            nullable = true;
        } else if (json_is(body, "contype", "CONSTR_DEFAULT")) {
            if (col->default_text) {
                FAIL_AT(b->err, SYNTAX, json_position(body),
                        "multiple default values specified for column \"%.100s\" of table "
                        "\"%.100s\"",
                        col->name, out->def.name);
            }
            if (col->identity) {
                FAIL_AT(b->err, SYNTAX, json_position(body),
                        "both default and identity specified for column \"%.100s\"", col->name);
            }
            i64 span[2];
            default_span(b, list, json_position(body), span);
            TRY(ddl_default(b, json_get(body, "raw_expr"), span, col));
        } else if (json_is(body, "contype", "CONSTR_IDENTITY")) {
            TRY(ddl_add_identity(b, body, out, number));
        }
        if (nullable && col->not_null) {
            FAIL_AT(b->err, SYNTAX, json_position(body),
                    "conflicting NULL/NOT NULL declarations for column \"%.100s\" of table "
                    "\"%.100s\"",
                    col->name, out->def.name);
        }
    }
    return ERR_OK;
}

FALLIBLE ddl_column(struct bind *b, const struct json *body, struct new_table *out, u32 number) {
    i32 position = json_position(body);
    struct column_def *col = &out->def.cols[number];
    TRY(bind_only(b, body, "colname typeName is_local constraints collClause location", position));
    col->name = json_text(body, "colname");
    col->name = keep(b, col->name ? col->name : "");
    const struct json *type = json_get(body, "typeName");
    if (serial_type(type, &col->type)) {
        struct ddl_seq *seq = ddl_add_sequence(b, out, number);
        col->not_null = 1;
        col->default_text = arena_printf(b->arena, "nextval('%s'::regclass)", seq->name);
    } else {
        if (json_flag(type, "setof")) {
            FAIL_AT(b->err, INVALID_DEFINITION, position,
                    "column \"%.100s\" cannot be declared SETOF", col->name);
        }
        TRY(ddl_column_type(b, type, &col->type));
    }
    const struct json *collation = json_get(body, "collClause");
    if (collation) {
        TRY(bind_collation(b, json_get(collation, "collname"), col->type,
                           json_position(collation)));
    }
    return column_constraints(b, json_get(body, "constraints"), out, number);
}

/* Keys, checks and references of a column. */
static FALLIBLE column_keys(struct bind *b, const struct json *body, struct table_def *def,
                            const char *schema) {
    static const char *const own[] = {"CONSTR_NOTNULL", "CONSTR_NULL", "CONSTR_DEFAULT",
                                      "CONSTR_IDENTITY"};
    const struct json *before = NULL;
    JSON_EACH(node, json_get(body, "constraints")) {
        const struct json *constraint = node_body(node);
        bool done = false;
        for (i64 i = 0; i < COUNT_OF(own); i++) {
            done = done || json_is(constraint, "contype", own[i]);
        }
        const char *type = json_text(constraint, "contype");
        if (type && strncmp(type, "CONSTR_ATTR_", 12) == 0) {
            TRY(column_deferrable(b, def, before, constraint));
            continue;
        }
        before = constraint;
        if (!done) {
            TRY(ddl_add_constraint(b, def, constraint, json_text(body, "colname"), schema));
        }
    }
    return ERR_OK;
}

FALLIBLE ddl_column_keys(struct bind *b, const struct json *body, struct table_def *def,
                         const char *schema) {
    u32 own = def->key_count;
    TRY(column_keys(b, body, def, schema));
    merge_keys(b, def, own);
    return ERR_OK;
}

enum { LIKE_CONSTRAINTS = 4, LIKE_DEFAULTS = 8, LIKE_IDENTITY = 32, LIKE_INDEXES = 64 };

/* LIKE other INCLUDING: its checks and keys. `first` is where its columns are. */
static FALLIBLE like_constraints(struct bind *b, const struct json *body, struct table_def *def,
                                 u32 first) {
    const struct edition_entry *entry = NULL;
    TRY(bind_relation(b, json_get(body, "relation"), &entry));
    const struct table *table = entry->object->table;
    i64 options = json_number(body, "options");
    for (u32 i = 0; (options & LIKE_CONSTRAINTS) && i < table->check_count; i++) {
        const char *name = keep(b, table->checks[i].name);
        for (i32 n = 1; constraint_has_name(def, name); n++) {
            name = arena_printf(b->arena, "%s%d", table->checks[i].name, n);
        }
        struct table_check check = {.name = name, .text = keep(b, table->checks[i].text)};
        GROW(b, def->checks, def->check_count, struct table_check);
        def->checks[def->check_count++] = check;
    }
    for (u32 i = 0; (options & LIKE_INDEXES) && i < table->key_count; i++) {
        struct table_key key = table->keys[i];
        u32 *cols = NEW_ARRAY(b->arena, u32, key.col_count + 1);
        if (key.index) { /* no constraint */
            return unsupported(b, json_position(json_get(body, "relation")),
                               "LIKE … INCLUDING INDEXES of a unique index");
        }
        for (u32 c = 0; c < key.col_count; c++) {
            cols[c] = first + key.cols[c];
            def->cols[cols[c]].not_null |= key.primary;
        }
        key.cols = cols;
        key.oid = 0;
        key.name = key_name(b, def, &key);
        GROW(b, def->keys, def->key_count, struct table_key);
        def->keys[def->key_count++] = key;
    }
    return ERR_OK;
}

/* LIKE other: its columns, with their defaults where INCLUDING says so, and room for `more`
 * others. */
static FALLIBLE like_columns(struct bind *b, const struct json *body, struct new_table *out,
                             u32 more) {
    const struct json *relation = json_get(body, "relation");
    const struct edition_entry *entry = NULL;
    i64 options = json_number(body, "options");
    TRY(bind_relation(b, relation, &entry));
    if (entry->object->kind != OBJECT_TABLE) {
        FAIL_AT(b->err, WRONG_OBJECT, json_position(relation), "\"%.100s\" is not a table",
                entry->object->name);
    }
    const struct table *table = entry->object->table;
    struct column_def *cols =
        NEW_ARRAY(b->arena, struct column_def, out->def.col_count + table->col_count + more);
    if (out->def.col_count) {
        memcpy(cols, out->def.cols, out->def.col_count * sizeof *cols);
    }
    out->def.cols = cols;
    for (u32 i = 0; i < table->col_count; i++) {
        const struct column_def *col = &table->cols[i];
        if (col->identity && (options & LIKE_IDENTITY)) {
            return unsupported(b, json_position(relation), "LIKE … INCLUDING IDENTITY");
        }
        bool defaults = (options & LIKE_DEFAULTS) && !col->identity;
        out->def.cols[out->def.col_count++] =
            (struct column_def){.name = keep(b, col->name),
                                .type = col->type,
                                .not_null = col->not_null,
                                .default_text = defaults ? keep(b, col->default_text) : NULL,
                                .sequence = defaults ? col->sequence : 0};
    }
    return ERR_OK;
}

static FALLIBLE check_columns(struct bind *b, const struct new_table *out, i32 position) {
    struct map names;
    map_init(&names, b->arena);
    if (out->def.col_count > COLUMNS_MAX) {
        FAIL_AT(b->err, TOO_MANY_COLUMNS, position, "tables can have at most %d columns",
                (int)COLUMNS_MAX);
    }
    for (u32 i = 0; i < out->def.col_count; i++) {
        if (map_find(&names, sv_from(out->def.cols[i].name))) {
            FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                    "column \"%.100s\" specified more than once", out->def.cols[i].name);
        }
        map_set(&names, sv_from(out->def.cols[i].name), &names);
    }
    return ERR_OK;
}

static FALLIBLE table_columns(struct bind *b, const struct json *list, i32 position,
                              struct new_table *out) {
    i32 count = json_count(list), last = position;
    out->def.cols = NEW_ARRAY(b->arena, struct column_def, count + 1);
    JSON_EACH(node, list) {
        if (node_is(node, "ColumnDef")) {
            last = node_position(node);
            TRY(ddl_column(b, node_body(node), out, out->def.col_count));
            out->def.col_count++;
            TRY(check_columns(b, out, last));
        } else if (node_is(node, "TableLikeClause")) {
            TRY(like_columns(b, node_body(node), out, (u32)count));
        }
    }
    return check_columns(b, out, last);
}

static FALLIBLE table_constraints(struct bind *b, const struct json *list, const char *schema,
                                  struct table_def *def) {
    u32 first = 0;
    JSON_EACH(node, list) {
        const struct edition_entry *entry = NULL;
        if (node_is(node, "TableLikeClause")) {
            TRY(bind_relation(b, json_get(node_body(node), "relation"), &entry));
            TRY(like_constraints(b, node_body(node), def, first));
        }
        first += entry ? entry->object->table->col_count : node_is(node, "ColumnDef");
    }
    u32 own = def->key_count;
    for (int pass = 0; pass < 2; pass++) { /* keys first: a table may refer to itself */
        JSON_EACH(node, list) {
            const struct json *body = node_body(node);
            bool foreign = json_is(body, "contype", "CONSTR_FOREIGN");
            if (node_is(node, "Constraint") && foreign == (pass == 1)) {
                TRY(ddl_add_constraint(b, def, body, NULL, schema));
            } else if (node_is(node, "ColumnDef") && pass == 0) {
                TRY(column_keys(b, body, def, schema));
            }
        }
        if (pass == 0) {
            merge_keys(b, def, own);
        }
    }
    for (u32 i = 0; i < def->check_count; i++) { /* of a new table nothing is left to look at */
        def->checks[i].unvalidated = 0;
    }
    for (u32 i = 0; i < def->foreign_count; i++) {
        def->foreigns[i].unvalidated = 0;
    }
    return ERR_OK;
}

FALLIBLE ddl_target(struct bind *b, const struct json *relation, struct statement *out) {
    TRY(bind_only(b, relation, "schemaname relname inh relpersistence location",
                  json_position(relation)));
    out->name = keep(b, json_text(relation, "relname"));
    out->create.schema = keep(b, json_text(relation, "schemaname"));
    out->position = json_position(relation);
    out->create.temp = json_is(relation, "relpersistence", "t") ||
                       (out->create.schema && strcmp(out->create.schema, "pg_temp") == 0);
    if (out->create.temp && out->create.schema && strcmp(out->create.schema, "pg_temp") != 0) {
        FAIL_AT(b->err, INVALID_DEFINITION, out->position,
                "cannot create temporary relation in non-temporary schema");
    }
    if (out->create.temp) {
        out->create.schema = NULL;
    }
    if (!out->name) {
        out->name = "";
    }
    return ERR_OK;
}

FALLIBLE ddl_on_commit(struct bind *b, const struct statement *out, i32 position) {
    if (!out->create.temp) {
        FAIL_AT(b->err, INVALID_DEFINITION, position,
                "ON COMMIT can only be used on temporary tables");
    }
    return unsupported(b, position, "ON COMMIT");
}

/* Whether there is such a schema is asked when the statement runs. */
static FALLIBLE find_home(struct bind *b, const struct statement *out) {
    struct error none;
    error_reset(&none);
    TRY(snapshot_open(b->snap, b->err));
    b->home = b->snap->temp_schema;
    b->home_temp = out->create.temp;
    if (!out->create.temp &&
        snapshot_target(b->snap, sv_from(out->create.schema ? out->create.schema : ""), -1,
                        &b->home, &none)) {
        b->home = 0;
    }
    return ERR_OK;
}

FALLIBLE bind_create(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const struct json *elements = json_get(body, "tableElts");
    i32 position = json_position(relation);
    TRY(bind_only(b, body, "relation tableElts oncommit if_not_exists", position));
    TRY(ddl_target(b, relation, out));
    if (!json_is(body, "oncommit", "ONCOMMIT_NOOP") &&
        !(out->create.temp && json_is(body, "oncommit", "ONCOMMIT_PRESERVE_ROWS"))) {
        return ddl_on_commit(b, out, position);
    }
    out->kind = STATEMENT_CREATE_TABLE;
    out->create.if_not_exists = json_flag(body, "if_not_exists");
    out->create.or_replace = b->parsed->or_replace;
    struct new_table *table = &out->create.table.table;
    table->def.name = out->name;
    TRY(find_home(b, out));
    TRY(table_columns(b, elements, out->position, table));
    return table_constraints(b, elements, out->create.schema, &table->def);
}

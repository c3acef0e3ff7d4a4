/* bind_copy.c: COPY table FROM 'file', COPY table or query TO 'file', and their options, in the new
 * and the old writing.
 *
 * Part of binding. The grammar brings both writings to one list of options. The format is csv, tbl (dbgen's: '|'
 * between and after fields, no quotes) or trie; without FORMAT the file's name decides, and anything but .tbl and
 * .trie is csv. The rows of a trie are in order, each once: to a file by a plan that makes them so, from one as
 * INSERT takes them. */
#include "sql/ddl_int.h"
#include "codes/func.h"
#include "sql/sql_int.h"

struct copy_given { /* which options were written */
    const char *format;
    b8 delimiter, quote, escape, null_text, header, format_given, force_quote;
    b8 force_not_null, force_null, freeze, encoding;
    b8 comment, skip, null_padding, ignore_errors, compression;
};

const char *option_text(struct bind *b, const struct json *def_elem, bool *out_given) {
    const struct json *arg = json_get(def_elem, "arg");
    const struct json *body = node_body(arg);
    *out_given = body != NULL;
    if (node_is(arg, "String")) {
        return node_string(arg);
    }
    if (node_is(arg, "Boolean")) {
        return json_flag(body, "boolval") ? "true" : "false";
    }
    if (node_is(arg, "Integer")) {
        return arena_printf(b->arena, "%lld", json_number(body, "ival"));
    }
    if (node_is(arg, "Float")) {
        const char *text = json_text(body, "fval");
        return text ? text : "";
    }
    return "";
}

FALLIBLE option_bool(struct bind *b, const struct json *def_elem, bool *out) {
    bool given = false;
    struct sv text = sv_from(option_text(b, def_elem, &given));
    bool on = sv_eq_nocase(text, SV("true")) || sv_eq_nocase(text, SV("on")) ||
              sv_eq_nocase(text, SV("1"));
    bool off = sv_eq_nocase(text, SV("false")) || sv_eq_nocase(text, SV("off")) ||
               sv_eq_nocase(text, SV("0"));
    *out = !given || on;
    if (given && !on && !off) {
        const char *name = json_text(def_elem, "defname");
        FAIL_AT(b->err, SYNTAX, json_position(def_elem), "%.60s requires a Boolean value",
                name ? name : "");
    }
    return ERR_OK;
}

static FALLIBLE one_byte(struct bind *b, const char *text, const char *what, i32 position,
                         char *out) {
    if (strlen(text) != 1) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "COPY %s must be a single one-byte character",
                what);
    }
    if (text[0] == '\n' || text[0] == '\r') {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "COPY %s cannot be newline or carriage return",
                what);
    }
    *out = text[0];
    return ERR_OK;
}

static FALLIBLE copy_format(struct bind *b, const char *format, i32 position,
                            struct copy_given *given) {
    given->format = format;
    if (strcmp(format, "csv") == 0 || strcmp(format, "tbl") == 0 || strcmp(format, "trie") == 0) {
        return ERR_OK;
    }
    if (strcmp(format, "text") == 0 || strcmp(format, "binary") == 0 ||
        strcmp(format, "parquet") == 0) {
        wf_status status = unsupported(b, position, "COPY format %s",
                                       strcmp(format, "parquet") == 0 ? "Parquet" : format);
        error_hint(b->err, "Use FORMAT csv, tbl or trie.");
        return status;
    }
    FAIL_AT(b->err, INVALID_PARAMETER, position, "COPY format \"%.60s\" not recognized", format);
}

static FALLIBLE copy_header(struct bind *b, const struct json *option, struct copy_options *copy) {
    bool given = false;
    bool on = false;
    if (sv_eq_nocase(sv_from(option_text(b, option, &given)), SV("match"))) {
        return unsupported(b, json_position(option), "HEADER MATCH");
    }
    TRY(option_bool(b, option, &on));
    copy->header = on;
    return ERR_OK;
}

static FALLIBLE copy_encoding(struct bind *b, const char *text, i32 position) {
    bool utf8 = sv_eq_nocase(sv_from(text), SV("utf8")) || sv_eq_nocase(sv_from(text), SV("utf-8"));
    static const char *const others[] = {"latin1",  "latin2",     "latin9", "sql_ascii", "win1252",
                                         "win1250", "iso_8859_5", "koi8r",  "euc_jp",    "sjis"};
    for (i64 i = 0; !utf8 && i < COUNT_OF(others); i++) {
        if (sv_eq_nocase(sv_from(text), sv_from(others[i]))) {
            return unsupported(b, position, "ENCODING \"%.60s\"", text);
        }
    }
    if (!utf8) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "argument to option \"encoding\" must be a valid encoding name");
    }
    return ERR_OK;
}

static wf_status redundant(struct bind *b, b8 *seen, i32 position) {
    if (*seen) {
        FAIL_AT(b->err, SYNTAX, position, "conflicting or redundant options");
    }
    *seen = 1;
    return ERR_OK;
}

/* A list of columns, or a star. */
static FALLIBLE copy_force_quote(struct bind *b, const struct json *option,
                                 struct copy_options *copy) {
    const struct json *arg = json_get(option, "arg");
    if (node_is(arg, "A_Star")) {
        copy->quote_all = 1;
        return ERR_OK;
    }
    const struct json *items = json_get(node_body(arg), "items");
    copy->quote_names = NEW_ARRAY(b->arena, const char *, json_count(items) + 1);
    JSON_EACH(item, items) {
        copy->quote_names[copy->quote_count++] = keep(b, node_string(item));
    }
    return ERR_OK;
}

static FALLIBLE copy_names(struct bind *b, const struct json *option, struct copy_names *out) {
    const struct json *items = json_get(node_body(json_get(option, "arg")), "items");
    out->names = NEW_ARRAY(b->arena, const char *, json_count(items) + 1);
    JSON_EACH(item, items) {
        out->names[out->count++] = keep(b, node_string(item));
    }
    if (!items) {
        FAIL_AT(b->err, INVALID_PARAMETER, json_position(option),
                "argument to option \"%.60s\" must be a list of column names",
                json_text(option, "defname"));
    }
    return ERR_OK;
}

static FALLIBLE copy_compression(struct bind *b, const char *text, i32 position,
                                 struct copy_options *copy) {
    struct sv name = sv_from(text);
    bool by_name = sv_eq_nocase(name, SV("auto")) || sv_eq_nocase(name, SV("auto_detect"));
    if (!by_name && !sv_eq_nocase(name, SV("none")) && !sv_eq_nocase(name, SV("gzip")) &&
        !sv_eq_nocase(name, SV("zstd"))) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "COPY compression must be none, gzip or zstd");
    }
    copy->compression = by_name ? NULL : keep(b, text);
    return ERR_OK;
}

static FALLIBLE copy_skip(struct bind *b, const char *text, i32 position, i64 *out) {
    i64 lines = 0;
    for (const char *c = text; *c; c++) {
        bool digit = *c >= '0' && *c <= '9';
        lines = digit && lines >= 0 && lines < I64_MAX / 100 ? lines * 10 + (*c - '0') : -1;
    }
    if (lines < 0 || !*text) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "COPY skip must be a number of lines");
    }
    *out = lines;
    return ERR_OK;
}

/* Options that PostgreSQL has not, named as in DuckDB. */
static FALLIBLE copy_own_option(struct bind *b, const char *name, const struct json *option,
                                struct copy_options *copy, struct copy_given *given) {
    i32 position = json_position(option);
    bool has_value = false, on = false;
    const char *text = option_text(b, option, &has_value);
    if (strcmp(name, "comment") == 0) {
        TRY(redundant(b, &given->comment, position));
        return one_byte(b, text, "comment", position, &copy->comment);
    }
    if (strcmp(name, "skip") == 0) {
        TRY(redundant(b, &given->skip, position));
        return copy_skip(b, text, position, &copy->skip);
    }
    if (strcmp(name, "compression") == 0) {
        TRY(redundant(b, &given->compression, position));
        return copy_compression(b, text, position, copy);
    }
    if (strcmp(name, "null_padding") == 0) {
        TRY(redundant(b, &given->null_padding, position));
        TRY(option_bool(b, option, &on));
        copy->null_padding = on;
        return ERR_OK;
    }
    if (strcmp(name, "ignore_errors") == 0) {
        TRY(redundant(b, &given->ignore_errors, position));
        TRY(option_bool(b, option, &on));
        copy->ignore_errors = on;
        return ERR_OK;
    }
    FAIL_AT(b->err, SYNTAX, position, "option \"%.60s\" not recognized", name);
}

static FALLIBLE copy_option(struct bind *b, const struct json *option, struct copy_options *copy,
                            struct copy_given *given) {
    const char *name = json_text(option, "defname");
    i32 position = json_position(option);
    bool has_value = false;
    const char *text = option_text(b, option, &has_value);
    name = name ? name : "";
    if (strcmp(name, "format") == 0) {
        TRY(redundant(b, &given->format_given, position));
        return copy_format(b, text, position, given);
    }
    if (strcmp(name, "header") == 0) {
        TRY(redundant(b, &given->header, position));
        return copy_header(b, option, copy);
    }
    if (strcmp(name, "delimiter") == 0 || strcmp(name, "delim") == 0 || strcmp(name, "sep") == 0) {
        TRY(redundant(b, &given->delimiter, position));
        return one_byte(b, text, "delimiter", position, &copy->delimiter);
    }
    if (strcmp(name, "quote") == 0) {
        TRY(redundant(b, &given->quote, position));
        return one_byte(b, text, "quote", position, &copy->quote);
    }
    if (strcmp(name, "escape") == 0) {
        TRY(redundant(b, &given->escape, position));
        return one_byte(b, text, "escape", position, &copy->escape);
    }
    if (strcmp(name, "null") == 0 || strcmp(name, "nullstr") == 0) {
        copy->null_text = keep(b, text);
        return redundant(b, &given->null_text, position);
    }
    if (strcmp(name, "encoding") == 0) {
        TRY(redundant(b, &given->encoding, position));
        return copy_encoding(b, text, position);
    }
    if (strcmp(name, "force_quote") == 0) {
        TRY(redundant(b, &given->force_quote, position));
        return copy_force_quote(b, option, copy);
    }
    if (strcmp(name, "force_not_null") == 0 || strcmp(name, "force_null") == 0) {
        bool not_null = name[6] == 'n' && name[7] == 'o';
        TRY(redundant(b, not_null ? &given->force_not_null : &given->force_null, position));
        return copy_names(b, option, not_null ? &copy->not_null_names : &copy->null_names);
    }
    if (strcmp(name, "freeze") == 0) { /* rows are everybody's at commit, as without it */
        bool on = false;
        TRY(redundant(b, &given->freeze, position));
        return option_bool(b, option, &on);
    }
    return copy_own_option(b, name, option, copy, given);
}

static bool path_ends(const char *path, const char *end) {
    i64 len = (i64)strlen(path);
    i64 end_len = (i64)strlen(end);
    return len >= end_len && sv_eq_nocase((struct sv){path + len - end_len, end_len}, sv_from(end));
}

/* Also when it is packed: x.tbl.gz. */
static bool is_tbl(const char *path) {
    return path_ends(path, ".tbl") || path_ends(path, ".tbl.gz") || path_ends(path, ".tbl.zst");
}

static FALLIBLE copy_defaults(struct bind *b, struct copy_options *copy,
                              const struct copy_given *given, i32 position) {
    bool tbl = given->format ? strcmp(given->format, "tbl") == 0 : copy->path && is_tbl(copy->path);
    if (!given->delimiter) {
        copy->delimiter = tbl ? '|' : ',';
    }
    if (!given->quote) {
        copy->quote = tbl ? 0 : '"';
    }
    if (!given->escape) {
        copy->escape = copy->quote;
    }
    if (!given->null_text) {
        copy->null_text = "";
    }
    copy->trailing_delimiter = tbl;
    if (copy->quote && copy->quote == copy->delimiter) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "COPY delimiter and quote must be different");
    }
    if (strchr(copy->null_text, '\n') || strchr(copy->null_text, '\r')) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "COPY null representation cannot use newline or carriage return");
    }
    if (strchr(copy->null_text, copy->delimiter)) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "COPY delimiter character must not appear in the NULL specification");
    }
    return ERR_OK;
}

static FALLIBLE copy_columns(struct bind *b, const struct json *list, const struct table *table,
                             i32 position, struct copy_options *copy) {
    i32 count = json_count(list);
    const char **names = NEW_ARRAY(b->arena, const char *, count + 1);
    i32 *positions = NEW_ARRAY(b->arena, i32, count + 1);
    copy->cols = NEW_ARRAY(b->arena, u32, count + 1);
    copy->col_count = count;
    i32 i = 0;
    JSON_EACH(name, list) {
        names[i] = node_string(name);
        positions[i++] = position;
    }
    return bind_column_list(b, table, names, positions, count, copy->cols);
}

static FALLIBLE check_copy_form(struct bind *b, const struct json *body, i32 position) {
    bool from = json_flag(body, "is_from");
    const char *path = json_text(body, "filename");
    if (json_flag(body, "is_program")) {
        return unsupported(b, position, "COPY %s PROGRAM", from ? "FROM" : "TO");
    }
    if (from && !path) {
        wf_status status = unsupported(b, position, "COPY FROM STDIN");
        error_hint(b->err, "Name a file: COPY table FROM 'file.csv'.");
        return status;
    }
    if (path && path_ends(path, ".parquet")) {
        return unsupported(b, position, "COPY %s a Parquet file", from ? "from" : "to");
    }
    return bind_only(b, body, "relation query attlist is_from filename options whereClause",
                     position);
}

/* Nothing can be said of a trie file but that it is one. */
static FALLIBLE check_trie(struct bind *b, const struct copy_options *copy, const struct copy_given *given,
                           i32 position) {
    bool more = given->delimiter || given->quote || given->escape || given->null_text || given->header ||
                given->force_quote || given->force_not_null || given->force_null || given->encoding ||
                given->comment || given->skip || given->null_padding || given->ignore_errors || given->compression;
    if (more) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "COPY in the format trie takes no other options");
    }
    if (!copy->path) {
        return unsupported(b, position, "a trie file on standard output");
    }
    return ERR_OK;
}

static FALLIBLE copy_options(struct bind *b, const struct json *body, i32 position,
                             struct copy_options *copy) {
    struct copy_given given = {0};
    copy->path = keep(b, json_text(body, "filename"));
    JSON_EACH(option, json_get(body, "options")) {
        TRY(copy_option(b, node_body(option), copy, &given));
    }
    copy->trie = given.format ? strcmp(given.format, "trie") == 0 : copy->path && path_ends(copy->path, ".trie");
    if (copy->trie) {
        return check_trie(b, copy, &given, position);
    }
    TRY(copy_defaults(b, copy, &given, position));
    bool from = json_flag(body, "is_from"), csv = copy->quote != 0;
    if (given.force_quote && (from || !csv)) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "COPY FORCE_QUOTE needs COPY TO in the format csv");
    }
    bool reads = given.comment || given.skip || given.null_padding || given.ignore_errors;
    if (reads && !from) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "COPY COMMENT, SKIP, NULL_PADDING and IGNORE_ERRORS need COPY FROM");
    }
    if (copy->comment && (copy->comment == copy->delimiter || copy->comment == copy->quote)) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "COPY comment, delimiter and quote must be different");
    }
    if ((given.force_not_null || given.force_null) && (!from || !csv)) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "COPY %s needs COPY FROM in the format csv",
                given.force_not_null ? "FORCE_NOT_NULL" : "FORCE_NULL");
    }
    return ERR_OK;
}

static void put_name(struct text *out, const char *name) {
    text_print(out, "\"");
    for (; *name; name++) {
        text_print(out, *name == '"' ? "\"\"" : "%c", *name);
    }
    text_print(out, "\"");
}

/* Only tables have rows of their own: a view's are a query's, and asked for as such. */
static FALLIBLE check_copied(struct bind *b, const struct json *relation) {
    const char *schema = json_text(relation, "schemaname"), *name = json_text(relation, "relname");
    TRY(snapshot_open(b->snap, b->err));
    const struct edition_entry *entry =
        snapshot_lookup(b->snap, sv_from(schema ? schema : ""), sv_from(name));
    if (!entry || entry->object->kind == OBJECT_TABLE || entry->object->hidden) {
        return ERR_OK;
    }
    error_set(b->err, ERR_WRONG_OBJECT, json_position(relation), "cannot copy from %s \"%.100s\"",
              object_words[entry->object->kind], entry->object->name);
    if (entry->object->kind == OBJECT_VIEW) {
        error_hint(b->err, "Try the COPY (SELECT ...) TO variant.");
    }
    return ERR_WRONG_OBJECT;
}

/* COPY t (a, b) TO is COPY (SELECT a, b FROM t) TO. */
static FALLIBLE table_query(struct bind *b, const struct json *body, i32 position,
                            const struct json **out) {
    const struct json *relation = json_get(body, "relation");
    const char *schema = json_text(relation, "schemaname");
    struct text text;
    TRY(check_copied(b, relation));
    text_init(&text, b->arena);
    text_print(&text, "SELECT ");
    i32 i = 0;
    JSON_EACH(name, json_get(body, "attlist")) {
        text_print(&text, "%s", i++ ? ", " : "");
        put_name(&text, node_string(name));
    }
    text_print(&text, "%s FROM ", i ? "" : "*");
    if (schema) {
        put_name(&text, schema);
        text_print(&text, ".");
    }
    put_name(&text, json_text(relation, "relname"));
    struct parsed_list list;
    TRY(sql_parse(b->arena, (struct sv){text.ptr, text.len}, &list, b->err));
    *out = list.items.items[0]->node;
    bind_place(b, *out, position);
    return ERR_OK;
}

static FALLIBLE force_quotes(struct bind *b, const struct plan *plan, struct copy_options *copy,
                             i32 position) {
    i64 count = plan->root->out.count;
    copy->quote_cols = NEW_ARRAY(b->arena, b8, count + 1);
    for (i32 i = 0; i < copy->quote_count; i++) {
        bool found = false;
        for (i64 c = 0; c < count; c++) {
            if (strcmp(plan->names.items[c], copy->quote_names[i]) == 0) {
                copy->quote_cols[c] = 1;
                found = true;
            }
        }
        if (!found) {
            FAIL_AT(b->err, UNDEFINED_COLUMN, position,
                    "FORCE_QUOTE column \"%.100s\" is not copied", copy->quote_names[i]);
        }
    }
    for (i64 c = 0; copy->quote_all && c < count; c++) {
        copy->quote_cols[c] = 1;
    }
    return ERR_OK;
}

/* The plan's rows in the order of all columns, each once. */
static FALLIBLE order_rows(struct bind *b, struct plan *plan, i32 position) {
    struct bind own = *b;
    own.plan = plan;
    if (plan->root->out.count == 0) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "a trie file has at least one column");
    }
    for (i64 i = 0; i < plan->root->out.count; i++) {
        const struct plan_col *col = &plan->cols.items[plan->root->out.items[i]];
        enum kind kind = type_kind(col->type);
        char type[32];
        if (kind != KIND_B8 && kind != KIND_I32 && kind != KIND_I64) {
            FAIL_AT(b->err, NOT_SUPPORTED, position, "column \"%.100s\" is %s, which a trie file cannot hold",
                    plan->names.items[i], type_print(col->type, type));
        }
    }
    struct rel *rows = bind_distinct_rel(&own, plan->root);
    struct rel *sort = rel_new(plan, REL_SORT, rows, NULL);
    for (i64 i = 0; i < rows->out.count; i++) {
        struct order_key key = {.expr = expr_col(plan, rows->out.items[i], -1)};
        VEC_PUSH(b->arena, &sort->sort.order, key);
    }
    sort->rows = rows->rows;
    plan->root = sort;
    return arena_check(b->arena, b->err);
}

static FALLIBLE copy_to(struct bind *b, const struct json *body, i32 position,
                        struct statement *out) {
    const struct json *query = json_get(body, "query");
    if (!query) {
        TRY(table_query(b, body, position, &query));
    }
    if (!node_is(query, "SelectStmt")) {
        return unsupported(b, position, "COPY of %s", node_type(query));
    }
    struct statement rows = {0};
    TRY(bind_statement(b, query, &rows));
    if (rows.kind != STATEMENT_SELECT) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "COPY (SELECT INTO) is not supported");
    }
    out->kind = STATEMENT_COPY_TO;
    out->plan = rows.plan;
    if (out->copy.options.trie) {
        return order_rows(b, out->plan, position);
    }
    return force_quotes(b, out->plan, &out->copy.options, position);
}

/* FORCE_NOT_NULL and FORCE_NULL, by column of the table; NULL = none. */
static FALLIBLE force_columns(struct bind *b, const struct table *table,
                              const struct copy_options *copy, const struct copy_names *names,
                              const char *what, i32 position, b8 **out) {
    *out = names->count ? NEW_ARRAY(b->arena, b8, table->col_count + 1) : NULL;
    for (i32 i = 0; i < names->count; i++) {
        u32 col = 0;
        TRY(bind_column_list(b, table, &names->names[i], &position, 1, &col));
        bool listed = copy->col_count == 0;
        for (i32 k = 0; k < copy->col_count; k++) {
            listed = listed || copy->cols[k] == col;
        }
        if (!listed) {
            FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                    "%s column \"%.100s\" not referenced by COPY", what, names->names[i]);
        }
        (*out)[col] = 1;
    }
    return ERR_OK;
}

/* WHERE of a COPY FROM, over whole rows. */
static FALLIBLE copy_where(struct bind *b, const struct copy_options *copy, struct scope *scope,
                           struct expr **out) {
    const struct parsed *outer = b->parsed;
    struct query q = {.scope = scope, .clause = "COPY FROM WHERE conditions"};
    b->parsed = copy->parsed;
    wf_status status = bind_condition(b, &q, copy->where, "WHERE", out);
    b->parsed = outer;
    return status;
}

static bool in_file(const struct copy_options *copy, u32 col) {
    for (i32 i = 0; i < copy->col_count; i++) {
        if (copy->cols[i] == col) {
            return true;
        }
    }
    return copy->col_count == 0;
}

static bool visit_steady(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_CALL || (expr->func != FUNC_RANDOM && expr->func != FUNC_RANDOM_UUID);
}

/* Whether values of column col's sequence cannot be reserved for all rows at once. */
static bool draws_by_row(struct bind *b, const struct table *table, const struct copy_options *copy,
                         u32 col) {
    u32 sequence = table->cols[col].sequence;
    const struct edition_entry *entry = edition_find_oid(b->snap->edition, sequence);
    if (entry && entry->object->sequence && entry->object->sequence->cycle) {
        return true;
    }
    for (u32 i = 0; i < col; i++) {
        if (table->cols[i].sequence == sequence && !in_file(copy, i)) {
            return true;
        }
    }
    return false;
}

static FALLIBLE bind_defaults(struct bind *b, const struct table *table, struct copy_options *copy,
                              struct statement *out) {
    out->copy.defaults = NEW_ARRAY(b->arena, struct expr *, table->col_count + 1);
    b->default_effects = 1;
    for (u32 i = 0; i < table->col_count; i++) {
        bool fills = false;
        pending_list pending = {0};
        if (in_file(copy, i)) {
            continue;
        }
        TRY(bind_default_value(b, &pending, &table->cols[i], &out->copy.defaults[i], &fills));
        copy->by_row = copy->by_row || pending.count > 0 ||
                       !expr_walk(out->copy.defaults[i], visit_steady, NULL) ||
                       (fills && draws_by_row(b, table, copy, i));
    }
    return ERR_OK;
}

FALLIBLE bind_copied_rows(struct bind *b, const struct statement *st, const struct table *file,
                          struct statement *out) {
    struct snapshot_table target, from;
    struct scope scope = {0};
    pending_list pending = {0};
    TRY(snapshot_open(b->snap, b->err));
    if (!snapshot_find_id(b->snap, st->copy.table_id, &target) ||
        !snapshot_find_id(b->snap, file->id, &from)) {
        FAIL(b->err, UNDEFINED_TABLE, "table \"%.100s\" is gone", st->name);
    }
    b->default_effects = 1;
    TRY(bind_table_scope(b, &from, "file", -1, &scope));
    u32 count = target.table->col_count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, count + 1);
    for (i32 i = 0; i < st->copy.options.col_count; i++) {
        u32 col = scope.tables.items[0].cols[i].col;
        exprs[st->copy.options.cols[i]] = expr_col(b->plan, col, -1);
    }
    for (u32 i = 0; i < count; i++) {
        const struct column_def *def = &target.table->cols[i];
        bool fills = false;
        names[i] = keep(b, def->name);
        VEC_PUSH(b->arena, &b->plan->names, names[i]);
        if (exprs[i]) {
            continue;
        }
        TRY(bind_default_value(b, &pending, def, &exprs[i], &fills));
        if (fills) {
            TRY(bind_next_value(b, &pending, def, &exprs[i]));
        }
    }
    struct rel *rows = bind_project(b, bind_attach(b, scope.rel, &pending), exprs, names, count);
    if (st->copy.options.where) {
        struct scope whole = {0};
        struct expr *cond = NULL;
        ddl_scope(b,
                  &(struct table_def){
                      .name = target.table->name, .col_count = count, .cols = target.table->cols},
                  &whole);
        for (u32 i = 0; i < count; i++) { /* under the numbers the rows have */
            whole.tables.items[0].cols[i].col = rows->out.items[i];
            whole.cols.items[i].col = rows->out.items[i];
        }
        TRY(copy_where(b, &st->copy.options, &whole, &cond));
        rows = bind_filter(b, rows, cond);
    }
    b->plan->root = rows;
    out->kind = STATEMENT_SELECT;
    out->plan = b->plan;
    return ERR_OK;
}

/* Which rows of the file are taken; its errors are found here, the filter is made when it runs. */
static FALLIBLE bind_copy_where(struct bind *b, const struct table *table, const struct json *where,
                                struct copy_options *copy) {
    struct table_def def = table_def_view(table);
    struct scope scope = {0};
    struct expr *cond = NULL;
    if (!where) {
        return ERR_OK;
    }
    copy->where = where;
    copy->parsed = b->parsed;
    copy->by_row = 1;
    for (u32 i = 0; copy->col_count == 0 && i < table->col_count; i++) {
        copy->cols = i ? copy->cols : NEW_ARRAY(b->arena, u32, table->col_count + 1);
        copy->cols[i] = i;
    }
    copy->col_count = copy->col_count ? copy->col_count : (i32)table->col_count;
    ddl_scope(b, &def, &scope);
    return copy_where(b, copy, &scope, &cond);
}

/* COPY t (a, b) FROM 'f.trie' is INSERT INTO t (a, b) SELECT * FROM read_trie('f.trie'). */
static FALLIBLE copy_from_trie(struct bind *b, const struct json *body, i32 position, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const char *schema = json_text(relation, "schemaname"), *path = out->copy.options.path;
    struct text text;
    struct parsed_list list;
    i32 i = 0;
    if (json_get(body, "whereClause")) {
        wf_status status = unsupported(b, position, "WHERE of COPY FROM a trie file");
        error_hint(b->err, "INSERT INTO ... SELECT ... FROM read_trie('file') WHERE ...");
        return status;
    }
    text_init(&text, b->arena);
    text_print(&text, "INSERT INTO ");
    if (schema) {
        put_name(&text, schema);
        text_print(&text, ".");
    }
    put_name(&text, json_text(relation, "relname"));
    JSON_EACH(name, json_get(body, "attlist")) {
        text_print(&text, i++ ? ", " : " (");
        put_name(&text, node_string(name));
    }
    text_print(&text, "%s SELECT * FROM read_trie('", i ? ")" : "");
    for (; *path; path++) {
        text_print(&text, *path == '\'' ? "''" : "%c", *path);
    }
    text_print(&text, "')");
    TRY(sql_parse(b->arena, (struct sv){text.ptr, text.len}, &list, b->err));
    bind_place(b, list.items.items[0]->node, position);
    struct statement insert = {0};
    TRY(bind_statement(b, list.items.items[0]->node, &insert));
    *out = insert;
    out->is_copy = 1;
    return ERR_OK;
}

FALLIBLE bind_copy(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    i32 position =
        relation ? json_position(relation) : (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    struct copy_options *copy = &out->copy.options;
    TRY(check_copy_form(b, body, position));
    TRY(copy_options(b, body, position, copy));
    if (!json_flag(body, "is_from")) {
        return copy_to(b, body, position, out);
    }
    if (copy->trie) {
        return copy_from_trie(b, body, position, out);
    }
    struct snapshot_table found;
    TRY(bind_table(b, relation, "copy to", &found));
    out->name = keep(b, found.table->name);
    TRY(copy_columns(b, json_get(body, "attlist"), found.table, position, copy));
    TRY(force_columns(b, found.table, copy, &copy->not_null_names, "FORCE_NOT_NULL", position,
                      &copy->force_not_null));
    TRY(force_columns(b, found.table, copy, &copy->null_names, "FORCE_NULL", position,
                      &copy->force_null));
    TRY(bind_defaults(b, found.table, copy, out));
    TRY(bind_copy_where(b, found.table, json_get(body, "whereClause"), copy));
    out->kind = STATEMENT_COPY_FROM;
    out->position = position;
    out->copy.table_id = found.table->id;
    return ERR_OK;
}

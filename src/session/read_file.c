/* read_file.c: files named in FROM: found out about, made a table of the statement's own, and
 * reported in the words of COPY, so that the user can say the same next time.
 *
 * The table has no rows: it has a provider, which reads the file when the statement runs. */
#include "session/read_file.h"

#include "io/input.h"
#include "io/pack.h"
#include "io/trie_file.h"

#define FIRST_ID (1ULL << 62) /* far from those of the catalog */
static _Atomic u64 next_id = FIRST_ID;

bool is_file_table(const struct table *table) {
    return table->id >= FIRST_ID;
}

static void print_char(struct text *out, const char *name, char c) {
    if (c == '\t') {
        text_print(out, ", %s E'\\t'", name);
    } else if (c == '\'') {
        text_print(out, ", %s ''''", name);
    } else if (c) {
        text_print(out, ", %s '%c'", name, c);
    }
}

static void tell(struct wf_connection *conn, struct arena *arena, const char *path,
                 const struct csv_sniffed *found) {
    const struct csv_options *o = &found->options;
    struct text out;
    text_init(&out, arena);
    text_print(&out, "%s: (FORMAT %s", path, o->trailing_delimiter ? "tbl" : "csv");
    print_char(&out, "DELIMITER", o->delimiter);
    print_char(&out, "QUOTE", o->quote);
    if (o->escape != o->quote) {
        print_char(&out, "ESCAPE", o->escape);
    }
    if (o->null_text[0]) {
        text_print(&out, ", NULL '%s'", o->null_text);
    }
    print_char(&out, "COMMENT", o->comment);
    if (o->skip && o->skip < I64_MAX) {
        text_print(&out, ", SKIP %lld", o->skip);
    }
    text_print(&out, ", HEADER %s), columns (", o->header ? "true" : "false");
    for (u32 i = 0; i < found->col_count; i++) {
        char type[32];
        text_print(&out, "%s\"", i ? ", " : "");
        for (const char *c = found->cols[i].name; *c; c++) {
            text_print(&out, *c == '"' ? "\"\"" : "%c", *c);
        }
        text_print(&out, "\" %s", type_print(found->cols[i].type, type));
    }
    text_print(&out, ")");
    notice(conn, "NOTICE", "%s", out.ptr);
}

void notice_ignored(struct wf_connection *conn, const char *path, i64 lines) {
    if (lines) {
        notice(conn, "NOTICE", "%s: %lld line%s left out because of errors", path, lines,
               lines == 1 ? " was" : "s were");
    }
}

void notice_files(struct wf_connection *conn, const struct snapshot *snap) {
    for (i64 i = 0; i < snap->tables.count; i++) {
        const struct table *table = snap->tables.items[i].table;
        if (is_file_table(table) && csv_file_is(table)) {
            const char *path = "";
            i64 ignored = csv_file_ignored(table, &path);
            notice_ignored(conn, path, ignored);
        }
    }
}

static struct csv_given what_is_given(const struct file_request *request) {
    struct csv_given given = {.has_header = request->header >= 0,
                              .has_delimiter = request->delimiter != NULL,
                              .has_quote = request->quote != NULL,
                              .has_escape = request->escape != NULL,
                              .has_comment = request->comment != NULL,
                              .has_skip = request->skip >= 0,
                              .all_text = request->all_text,
                              .all_cols = request->all_cols,
                              .sample_rows = request->sample_rows,
                              .cols = request->cols,
                              .col_count = request->col_count,
                              .names = request->names,
                              .name_count = request->name_count};
    given.options = (struct csv_options){.header = request->header > 0,
                                         .null_text = request->null_text,
                                         .null_more = request->null_more,
                                         .null_padding = request->null_padding,
                                         .ignore_errors = request->ignore_errors,
                                         .skip = MAX_OF(request->skip, 0)};
    given.options.delimiter = request->delimiter ? request->delimiter[0] : 0;
    given.options.quote = request->quote ? request->quote[0] : 0;
    given.options.escape = request->escape ? request->escape[0] : 0;
    given.options.comment = request->comment ? request->comment[0] : 0;
    return given;
}

static FALLIBLE make_table(struct wf_connection *conn, const char *name, u32 col_count, const struct column_def *cols,
                           struct table **out, struct error *err) {
    enum { TABLET_SHIFT = 20 };
    *out = table_open(&conn->db->mem, atomic_fetch_add(&next_id, 1), name, col_count, cols, TABLET_SHIFT, false);
    return *out ? ERR_OK : memory_refused(&conn->db->mem, err, 4096);
}

static FALLIBLE read_trie(struct wf_connection *conn, const struct file_request *request, struct table **out,
                          struct error *err) {
    struct trie_file *file = NULL;
    const struct column_def *cols = NULL;
    wf_status status = trie_file_open(&conn->db->mem, request->path, &file, err);
    if (!status) {
        u32 count = trie_file_columns(file, &cols);
        status = make_table(conn, request->path, count, cols, out, err);
        if (status) {
            trie_file_close(file);
        } else {
            trie_file_attach(file, *out);
        }
    }
    if (status && err->position < 0) {
        err->position = request->position;
    }
    return status;
}

wf_status file_read(struct file_reader *reader, const struct file_request *request,
                    struct table **out, struct error *err) {
    struct wf_connection *conn = ((struct file_reading *)reader)->conn;
    if (request->trie) {
        return read_trie(conn, request, out, err);
    }
    struct csv_given given = what_is_given(request);
    enum packing packing =
        request->compression ? packing_named(request->compression) : PACKING_BY_NAME;
    struct load_progress progress = {.stop = &conn->stop};
    struct csv_file *file = NULL;
    watch_load(&conn->watch, &progress);
    given.options.when = (struct when){(i32)conn->settings.timezone, conn->tx.start_us};
    wf_status status =
        csv_file_open(&conn->db->mem, request->path, packing, &given, &progress, &file, err);
    watch_load(&conn->watch, NULL);
    if (!status) {
        const struct csv_sniffed *found = csv_file_sniffed(file);
        status = make_table(conn, "read_csv", found->col_count, found->cols, out, err);
        if (status) {
            csv_file_close(file);
        } else {
            csv_file_attach(file, *out);
        }
    }
    if (!status) {
        struct arena arena;
        arena_init(&arena, &conn->db->mem);
        tell(conn, &arena, request->path, csv_file_sniffed(file));
        arena_fini(&arena);
    } else if (err->position < 0) {
        err->position = request->position;
    }
    return status;
}

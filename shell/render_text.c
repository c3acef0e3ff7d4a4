/* render_text.c: results for programs: csv, tsv, json, jsonl, markdown, line.
 *
 * Every format is a begin, a row and an end; rows are written batch by batch straight to stdout, so
 * the size of a result does not matter. CSV quotes only where it must; NULL is an empty field and
 * the empty text is "". TSV escapes as PostgreSQL's COPY does, with \N for NULL. */
#include "shell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    wf_result *result;
    int32_t col_count;
    wf_type_info *types;
    const wf_batch *batch;
    int64_t row; /* within the batch */
    int64_t row_no;
    char *scratch;
    size_t scratch_cap;
};

/* The text of a value that is not NULL. */
static wf_text value(struct writer *w, int32_t col) {
    if (w->types[col].type == WF_TYPE_TEXT || w->types[col].type == WF_TYPE_CHAR) {
        return wf_batch_text(w->batch, col, w->row);
    }
    size_t len = wf_value_text(w->batch, col, w->row, w->scratch, w->scratch_cap);
    if (len >= w->scratch_cap) {
        w->scratch_cap = len + 1;
        w->scratch = shell_grow(w->scratch, w->scratch_cap);
        wf_value_text(w->batch, col, w->row, w->scratch, w->scratch_cap);
    }
    return (wf_text){w->scratch, (int64_t)len};
}

static bool value_is_null(const struct writer *w, int32_t col) {
    return wf_batch_is_null(w->batch, col, w->row) != 0;
}

static void put(wf_text text) {
    fwrite(text.ptr, 1, (size_t)text.len, stdout);
}

static wf_text text_of(const char *text) {
    return (wf_text){text, (int64_t)strlen(text)};
}

static void put_csv(wf_text text) {
    bool quoted = text.len == 0;
    for (int64_t i = 0; i < text.len && !quoted; i++) {
        char c = text.ptr[i];
        quoted = c == ',' || c == '"' || c == '\n' || c == '\r';
    }
    if (!quoted) {
        put(text);
        return;
    }
    putchar('"');
    for (int64_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            putchar('"');
        }
        putchar(text.ptr[i]);
    }
    putchar('"');
}

static void csv_begin(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        if (c) {
            putchar(',');
        }
        put_csv(text_of(wf_result_name(w->result, c)));
    }
    putchar('\n');
}

static void csv_row(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        if (c) {
            putchar(',');
        }
        if (!value_is_null(w, c)) {
            put_csv(value(w, c));
        }
    }
    putchar('\n');
}

static void put_tsv(wf_text text) {
    for (int64_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        switch (c) {
        case '\t':
            fputs("\\t", stdout);
            break;
        case '\n':
            fputs("\\n", stdout);
            break;
        case '\r':
            fputs("\\r", stdout);
            break;
        case '\\':
            fputs("\\\\", stdout);
            break;
        default:
            putchar(c);
            break;
        }
    }
}

static void tsv_begin(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        if (c) {
            putchar('\t');
        }
        put_tsv(text_of(wf_result_name(w->result, c)));
    }
    putchar('\n');
}

static void tsv_row(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        if (c) {
            putchar('\t');
        }
        if (value_is_null(w, c)) {
            fputs("\\N", stdout);
        } else {
            put_tsv(value(w, c));
        }
    }
    putchar('\n');
}

static void put_json_text(wf_text text) {
    putchar('"');
    for (int64_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '"' || c == '\\') {
            putchar('\\');
            putchar(c);
        } else if (c == '\n') {
            fputs("\\n", stdout);
        } else if (c == '\t') {
            fputs("\\t", stdout);
        } else if (c == '\r') {
            fputs("\\r", stdout);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

/* JSON has no NaN and no infinities: they are written as texts. */
static bool is_special(struct writer *w, int32_t col) {
    if (w->types[col].type == WF_TYPE_REAL) {
        return !isfinite(wf_batch_float(w->batch, col)[w->row]);
    }
    return w->types[col].type == WF_TYPE_DOUBLE &&
           !isfinite(wf_batch_double(w->batch, col)[w->row]);
}

static void put_json_value(struct writer *w, int32_t c) {
    wf_type type = w->types[c].type;
    if (value_is_null(w, c)) {
        fputs("null", stdout);
    } else if (type == WF_TYPE_BOOLEAN) {
        fputs(wf_batch_bool(w->batch, c)[w->row] ? "true" : "false", stdout);
    } else if (type >= WF_TYPE_SMALLINT && type <= WF_TYPE_DOUBLE && !is_special(w, c)) {
        put(value(w, c));
    } else {
        put_json_text(value(w, c));
    }
}

static void put_json_object(struct writer *w) {
    putchar('{');
    for (int32_t c = 0; c < w->col_count; c++) {
        if (c) {
            putchar(',');
        }
        put_json_text(text_of(wf_result_name(w->result, c)));
        putchar(':');
        put_json_value(w, c);
    }
    putchar('}');
}

static void json_begin(struct writer *w) {
    (void)w;
    putchar('[');
}

static void json_row(struct writer *w) {
    fputs(w->row_no ? ",\n " : "", stdout);
    put_json_object(w);
}

static void json_end(struct writer *w) {
    (void)w;
    fputs("]\n", stdout);
}

static void jsonl_row(struct writer *w) {
    put_json_object(w);
    putchar('\n');
}

static void put_markdown(wf_text text) {
    for (int64_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '|') {
            putchar('\\');
        }
        if (c == '\n') {
            fputs("<br>", stdout);
        } else if (c != '\r') {
            putchar(c);
        }
    }
}

static void markdown_begin(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        fputs("| ", stdout);
        put_markdown(text_of(wf_result_name(w->result, c)));
        putchar(' ');
    }
    fputs("|\n", stdout);
    for (int32_t c = 0; c < w->col_count; c++) {
        wf_type type = w->types[c].type;
        bool right = type >= WF_TYPE_SMALLINT && type <= WF_TYPE_DOUBLE;
        fputs(right ? "|---:" : "|---", stdout);
    }
    fputs("|\n", stdout);
}

static void markdown_row(struct writer *w) {
    for (int32_t c = 0; c < w->col_count; c++) {
        fputs("| ", stdout);
        if (value_is_null(w, c)) {
            fputs("NULL", stdout);
        } else {
            put_markdown(value(w, c));
        }
        putchar(' ');
    }
    fputs("|\n", stdout);
}

static void line_row(struct writer *w) {
    int64_t widest = 0;
    for (int32_t c = 0; c < w->col_count; c++) {
        const char *name = wf_result_name(w->result, c);
        int64_t width = wf_display_width(name, strlen(name));
        widest = width > widest ? width : widest;
    }
    fputs(w->row_no ? "\n" : "", stdout);
    for (int32_t c = 0; c < w->col_count; c++) {
        const char *name = wf_result_name(w->result, c);
        for (int64_t i = wf_display_width(name, strlen(name)); i < widest; i++) {
            putchar(' ');
        }
        fputs(name, stdout);
        fputs(" = ", stdout);
        put(value_is_null(w, c) ? text_of("NULL") : value(w, c));
        putchar('\n');
    }
}

static void nothing(struct writer *w) {
    (void)w;
}

static const struct {
    void (*begin)(struct writer *);
    void (*row)(struct writer *);
    void (*end)(struct writer *);
} writers[FORMAT_COUNT] = {
    [FORMAT_CSV] = {csv_begin, csv_row, nothing},
    [FORMAT_TSV] = {tsv_begin, tsv_row, nothing},
    [FORMAT_JSON] = {json_begin, json_row, json_end},
    [FORMAT_JSONL] = {nothing, jsonl_row, nothing},
    [FORMAT_MARKDOWN] = {markdown_begin, markdown_row, nothing},
    [FORMAT_LINE] = {nothing, line_row, nothing},
};

bool render_text(enum format format, wf_result *result) {
    bool fine = true;
    if (!writers[format].row) {
        while (next_rows(result, &fine)) {
        }
        return fine;
    }
    struct writer w = {.result = result, .col_count = wf_result_column_count(result)};
    w.types = shell_alloc(sizeof(wf_type_info) * (size_t)w.col_count);
    w.scratch_cap = 128;
    w.scratch = shell_alloc(w.scratch_cap);
    for (int32_t c = 0; c < w.col_count; c++) {
        (void)!wf_result_type(result, c, &w.types[c]);
    }
    writers[format].begin(&w);
    while ((w.batch = next_rows(result, &fine))) {
        int64_t rows = wf_batch_rows(w.batch);
        for (w.row = 0; w.row < rows; w.row++, w.row_no++) {
            writers[format].row(&w);
        }
    }
    if (fine) {
        writers[format].end(&w);
    }
    free(w.types);
    free(w.scratch);
    return fine;
}

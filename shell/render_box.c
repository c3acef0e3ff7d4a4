/* render_box.c: results as boxes for people.
 *
 * Names with their types under them, then the rows: all of them up to .maxrows (40), else the first
 * and the last ones. The box fits the terminal, or .maxwidth: wide columns are cut with an
 * ellipsis, widest first, and when every column is at its least width the columns that do not fit
 * are hidden and counted in the footer. Widths are display widths, so CJK text lines up. Rows are
 * read as they come: only the first ones and a ring of the last ones are kept, whatever the size of
 * the result. */
#include "shell.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_WIDTH = 12, BORDER_WIDTH = 3, HANG_WIDTH = 4 };

struct cell {
    char *text;
    int64_t width;
    bool is_null;
};

struct box {
    const struct shell *shell;
    wf_result *result;
    int32_t col_count;
    int64_t row_count;  /* of the result */
    int64_t shown;      /* rows shown */
    int64_t head;       /* of those, before the gap */
    int64_t first_rows; /* kept from the start, */
    int64_t last_rows;  /* and in a ring */
    struct cell *cells; /* rows of cells: names, types, first rows, ring of last rows */
    int64_t cell_rows;  /* of them, there is room for */
    int64_t *widths;
    bool *right;     /* aligned to the right */
    int32_t visible; /* columns that fit */
};

static struct cell *cell_at(const struct box *box, int64_t row, int32_t col) {
    return &box->cells[row * box->col_count + col];
}

/* A printable copy: control characters become escapes. */
static void cell_set(struct cell *cell, const char *text, size_t len) {
    struct strbuf out = {0};
    size_t start = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != 0x7f) {
            continue;
        }
        strbuf_append(&out, text + start, i - start);
        start = i + 1;
        switch (c) {
        case '\n':
            strbuf_append(&out, "\\n", 2);
            break;
        case '\r':
            strbuf_append(&out, "\\r", 2);
            break;
        case '\t':
            strbuf_append(&out, "\\t", 2);
            break;
        default:
            strbuf_print(&out, "\\x%02x", c);
            break;
        }
    }
    strbuf_append(&out, text + start, len - start);
    cell->text = out.ptr;
    cell->width = wf_display_width(out.ptr, out.len);
}

static void fill_value(struct cell *cell, const wf_batch *batch, int32_t col, int64_t row) {
    if (wf_batch_is_null(batch, col, row)) {
        cell_set(cell, "NULL", 4);
        cell->is_null = true;
        return;
    }
    char small[128];
    size_t len = wf_value_text(batch, col, row, small, sizeof small);
    if (len < sizeof small) {
        cell_set(cell, small, len);
        return;
    }
    char *large = shell_alloc(len + 1);
    wf_value_text(batch, col, row, large, len + 1);
    cell_set(cell, large, len);
    free(large);
}

/* Where row number `row` of the result is kept: the first ones in order, then a ring. */
static int64_t place_of(const struct box *box, int64_t row) {
    int64_t first = box->first_rows;
    return 2 + (row < first ? row : first + (row - first) % box->last_rows);
}

static void reserve_rows(struct box *box, int64_t rows) {
    if (rows > box->cell_rows) {
        int64_t room = rows > 2 * box->cell_rows ? rows : 2 * box->cell_rows;
        size_t row_bytes = sizeof(struct cell) * (size_t)box->col_count;
        box->cells =
            shell_grow(box->cells, row_bytes * (size_t)room + 1); /* no columns: no bytes */
        memset(box->cells + box->cell_rows * box->col_count, 0,
               row_bytes * (size_t)(room - box->cell_rows));
        box->cell_rows = room;
    }
}

static void keep_row(struct box *box, const wf_batch *batch, int64_t at, int64_t row) {
    int64_t place = place_of(box, row);
    reserve_rows(box, place + 1);
    for (int32_t c = 0; c < box->col_count; c++) {
        struct cell *cell = cell_at(box, place, c);
        free(cell->text);
        *cell = (struct cell){0};
        fill_value(cell, batch, c, at);
    }
}

/* Of a batch only its first and last rows can end up in the box. */
static bool read_rows(struct box *box) {
    bool fine;
    const wf_batch *batch;
    int64_t seen = 0;
    while ((batch = next_rows(box->result, &fine))) {
        int64_t rows = wf_batch_rows(batch);
        for (int64_t r = 0; r < rows; r++) {
            if (seen + r >= box->first_rows && r < rows - box->last_rows) {
                r = rows - box->last_rows;
            }
            if (r < rows) {
                keep_row(box, batch, r, seen + r);
            }
        }
        seen += rows;
    }
    int64_t kept = box->first_rows < INT64_MAX ? box->first_rows + box->last_rows : INT64_MAX;
    box->row_count = fine ? wf_result_row_count(box->result) : 0;
    box->shown = seen > kept ? kept : seen;
    box->head = seen > box->first_rows ? box->first_rows : seen;
    return fine;
}

/* Row number i of those shown. */
static int64_t shown_place(const struct box *box, int64_t i) {
    return place_of(box, i < box->head ? i : box->row_count - box->shown + i);
}

static bool box_fill(struct box *box) {
    int32_t most = box->shell->max_rows; /* 0: all */
    box->first_rows = most ? (most + 1) / 2 : INT64_MAX;
    box->last_rows = most ? most / 2 : 0;
    reserve_rows(box, 2);
    box->widths = shell_alloc(sizeof(int64_t) * (size_t)box->col_count);
    box->right = shell_alloc(sizeof(bool) * (size_t)box->col_count);
    for (int32_t c = 0; c < box->col_count; c++) {
        wf_type_info info = {0};
        (void)!wf_result_type(box->result, c, &info);
        const char *name = wf_result_name(box->result, c);
        cell_set(cell_at(box, 0, c), name, strlen(name));
        cell_set(cell_at(box, 1, c), info.text, strlen(info.text));
        box->right[c] = info.type >= WF_TYPE_SMALLINT && info.type <= WF_TYPE_DOUBLE;
    }
    bool fine = read_rows(box);
    for (int64_t r = 0; r < box->cell_rows; r++) {
        for (int32_t c = 0; c < box->col_count; c++) {
            int64_t width = cell_at(box, r, c)->width;
            box->widths[c] = width > box->widths[c] ? width : box->widths[c];
        }
    }
    return fine;
}

static int64_t box_width(const struct box *box, int32_t cols) {
    int64_t width = 1;
    for (int32_t c = 0; c < cols; c++) {
        width += box->widths[c] + BORDER_WIDTH;
    }
    return width;
}

static int32_t widest_column(const struct box *box) {
    int32_t best = 0;
    for (int32_t c = 1; c < box->col_count; c++) {
        best = box->widths[c] > box->widths[best] ? c : best;
    }
    return best;
}

static void box_fit(struct box *box, int64_t columns) {
    box->visible = box->col_count;
    int64_t over = columns > 0 ? box_width(box, box->col_count) - columns : 0;
    while (over > 0) {
        int32_t widest = widest_column(box);
        if (box->widths[widest] <= LEAST_WIDTH) {
            break;
        }
        box->widths[widest]--;
        over--;
    }
    int64_t mark = 1 + BORDER_WIDTH; /* the column of dots that stands for the hidden ones */
    while (over > 0 && box->visible > 1 && box_width(box, box->visible) + mark > columns) {
        box->visible--;
    }
}

static void put_times(const char *text, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        fputs(text, stdout);
    }
}

/* Bytes of text that fit into `width` columns. */
static size_t fitting(const char *text, size_t len, int64_t width) {
    size_t end = 0;
    int64_t used = 0;
    while (end < len) {
        size_t next = end + 1;
        while (next < len && ((unsigned char)text[next] & 0xc0) == 0x80) {
            next++;
        }
        used += wf_display_width(text + end, next - end);
        if (used > width) {
            break;
        }
        end = next;
    }
    return end;
}

static void put_cell(const struct box *box, const struct cell *cell, int64_t width, bool right) {
    const char *dots = box->shell->ascii ? "..." : "…";
    int64_t dots_width = box->shell->ascii ? 3 : 1;
    size_t len = strlen(cell->text);
    int64_t used = cell->width;
    if (cell->width > width) {
        len = fitting(cell->text, len, width - dots_width);
        used = wf_display_width(cell->text, len) + dots_width;
    }
    fputs(" ", stdout);
    put_times(" ", right ? width - used : 0);
    fwrite(cell->text, 1, len, stdout);
    fputs(cell->width > width ? dots : "", stdout);
    put_times(" ", (right ? 0 : width - used) + 1);
}

struct rule {
    const char *left, *line, *middle, *right;
};
static const struct rule unicode_rules[] = {
    {"┌", "─", "┬", "┐"}, {"├", "─", "┼", "┤"}, {"└", "─", "┴", "┘"}};
static const struct rule ascii_rule = {"+", "-", "+", "+"};

static void put_rule(const struct box *box, int which) {
    const struct rule *rule = box->shell->ascii ? &ascii_rule : &unicode_rules[which];
    fputs(rule->left, stdout);
    for (int32_t c = 0; c < box->visible; c++) {
        fputs(c ? rule->middle : "", stdout);
        put_times(rule->line, box->widths[c] + 2);
    }
    if (box->visible < box->col_count) {
        fputs(rule->middle, stdout);
        put_times(rule->line, 3);
    }
    fputs(rule->right, stdout);
    fputs("\n", stdout);
}

static void put_row(const struct box *box, int64_t row, bool is_gap) {
    const char *bar = box->shell->ascii ? "|" : "│";
    const char *gap = box->shell->ascii ? ":" : "·";
    struct cell gap_cell = {(char *)(size_t)gap, 1, false};
    fputs(bar, stdout);
    for (int32_t c = 0; c < box->visible; c++) {
        const struct cell *cell = is_gap ? &gap_cell : cell_at(box, row, c);
        put_cell(box, cell, box->widths[c], box->right[c]);
        fputs(bar, stdout);
    }
    if (box->visible < box->col_count) {
        fputs(box->shell->ascii ? " . " : " … ", stdout);
        fputs(bar, stdout);
    }
    fputs("\n", stdout);
}

static void put_footer(const struct box *box) {
    printf("(%lld row%s", (long long)box->row_count, box->row_count == 1 ? "" : "s");
    if (box->shown < box->row_count && box->col_count > 0) {
        if (box->shown > 0) {
            printf(", %lld shown", (long long)box->shown);
        } else {
            printf(" left on the device");
        }
    }
    if (box->visible < box->col_count) {
        printf(", %d of %d columns shown", box->visible, box->col_count);
    }
    printf(", %s", time_text(wf_result_time_ns(box->result)).text);
    const char *devices = wf_result_devices(box->result);
    printf("%s%s)\n", devices[0] ? ", " : "", devices);
}

/* One line on as many of the terminal's as it needs: broken at blanks, what follows indented by
 * more than the line itself. */
static void put_wrapped(const char *text, size_t len, int64_t columns) {
    size_t indent = 0;
    while (indent < len && text[indent] == ' ') {
        indent++;
    }
    indent = (int64_t)indent + HANG_WIDTH > columns / 2 ? 0 : indent + HANG_WIDTH;
    size_t at = 0;
    while (columns > 0 &&
           wf_display_width(text + at, len - at) > columns - (at ? (int64_t)indent : 0)) {
        size_t end = at + fitting(text + at, len - at, columns - (at ? (int64_t)indent : 0));
        size_t cut = end;
        while (cut > at && text[cut] != ' ') {
            cut--;
        }
        bool blank = cut > at + strspn(text + at, " ");
        cut = blank ? cut : end > at ? end : at + 1;
        printf("%*s%.*s\n", at ? (int)indent : 0, "", (int)(cut - at), text + at);
        at = cut + blank;
    }
    printf("%*s%.*s\n", at ? (int)indent : 0, "", (int)(len - at), text + at);
}

/* EXPLAIN's lines whole: a box would cut the long ones and hide the middle of the list. */
static bool render_lines(const struct shell *shell, wf_result *result) {
    const wf_batch *batch;
    bool fine;
    int columns = shell_columns(shell);
    while ((batch = next_rows(result, &fine))) {
        for (int64_t r = 0; r < wf_batch_rows(batch); r++) {
            wf_text line = wf_batch_text(batch, 0, r);
            put_wrapped(line.ptr, (size_t)line.len, columns);
        }
    }
    return fine;
}

static void put_box(const struct box *box) {
    if (box->col_count == 0) { /* there is nothing to see but their number */
        put_footer(box);
        return;
    }
    put_rule(box, 0);
    put_row(box, 0, false);
    put_row(box, 1, false);
    put_rule(box, 1);
    for (int64_t r = 0; r < box->shown; r++) {
        if (r == box->head && box->shown < box->row_count) {
            put_row(box, 0, true);
        }
        put_row(box, shown_place(box, r), false);
    }
    put_rule(box, 2);
    put_footer(box);
}

bool render_is_plan(wf_result *result) {
    return strcmp(wf_result_tag(result), "EXPLAIN") == 0 && wf_result_column_count(result) == 1;
}

bool render_box(const struct shell *shell, wf_result *result) {
    if (render_is_plan(result)) {
        return render_lines(shell, result);
    }
    struct box box = {.shell = shell, .result = result};
    box.col_count = wf_result_column_count(result);
    bool fine = box_fill(&box);
    if (fine) {
        progress_clear();
        box_fit(&box, shell_columns(shell));
        put_box(&box);
    }
    for (int64_t i = 0; i < box.cell_rows * box.col_count; i++) {
        free(box.cells[i].text);
    }
    free(box.cells);
    free(box.widths);
    free(box.right);
    return fine;
}

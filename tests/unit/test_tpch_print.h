/* test_tpch_print.h: rows of a generator as dbgen prints them: fields ended by '|', a line a row.
 */
#ifndef TEST_TPCH_PRINT_H
#define TEST_TPCH_PRINT_H

#include <stdio.h>
#include <stdlib.h>

#include "io/generate.h"

enum { PRINT_COLS = 20 };

static int print_date(char *out, i32 days) { /* from 1970 to 2000 */
    static const u8 lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    i32 year = 1970, month = 0;
    for (i32 n; days >= (n = year % 4 == 0 ? 366 : 365); year++) {
        days -= n;
    }
    for (i32 n; days >= (n = lengths[month] + (month == 1 && year % 4 == 0)); month++) {
        days -= n;
    }
    return sprintf(out, "%04d-%02d-%02d", year, month + 1, days + 1);
}

static i64 column_bytes(const struct gen_column *col) {
    if (col->word) {
        return sizeof(u32);
    }
    if (strcmp(col->type, "text") == 0) {
        return sizeof(str);
    }
    return strcmp(col->type, "integer") == 0 || strcmp(col->type, "date") == 0 ? 4 : 8;
}

static int print_value(char *out, const struct gen_column *col, const void *data, i64 i) {
    char scratch[64];
    if (col->word) {
        return sprintf(out, "%s", col->word((i32)((const u32 *)data)[i], scratch));
    }
    if (strcmp(col->type, "text") == 0) {
        struct sv s = sv_of(((const str *)data)[i]);
        memcpy(out, s.ptr, (size_t)s.len);
        return (int)s.len;
    }
    if (strcmp(col->type, "date") == 0) {
        return print_date(out, ((const i32 *)data)[i]);
    }
    if (strcmp(col->type, "integer") == 0) {
        return sprintf(out, "%d", ((const i32 *)data)[i]);
    }
    i64 value = ((const i64 *)data)[i], size = value < 0 ? -value : value;
    if (strcmp(col->type, "bigint") == 0) {
        return sprintf(out, "%lld", value);
    }
    if (strcmp(col->name, "l_quantity") == 0) { /* a decimal that dbgen prints as an integer */
        return sprintf(out, "%lld", value / 100);
    }
    return sprintf(out, "%s%lld.%02lld", value < 0 ? "-" : "", size / 100, size % 100);
}

/* Makes rows [first, first + rows) at once and hands out their lines. */
static void print_rows(const struct generator *gen, i32 table, i64 first, i64 rows,
                       void (*line)(void *arg, const char *text, i64 len), void *arg) {
    const struct gen_table *plan = &gen->tables[table];
    struct gen_target cols[PRINT_COLS];
    char text[2048];
    for (u32 c = 0; c < plan->col_count; c++) {
        cols[c].data = malloc((size_t)((rows + 1) * column_bytes(&plan->cols[c])));
        cols[c].text = malloc((size_t)((rows + 1) * plan->cols[c].text_bytes + 1));
    }
    struct gen_chunk chunk = {first, rows, cols};
    gen->fill(gen, table, &chunk);
    for (i64 i = 0; i < rows; i++) {
        char *end = text;
        for (u32 c = 0; c < plan->col_count; c++) {
            end += print_value(end, &plan->cols[c], cols[c].data, i);
            *end++ = '|';
        }
        *end++ = '\n';
        line(arg, text, end - text);
    }
    for (u32 c = 0; c < plan->col_count; c++) {
        free(cols[c].data);
        free(cols[c].text);
    }
}

#endif

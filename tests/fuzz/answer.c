/* answer.c: answers as lines of text that can be sorted and compared.
 *
 * Values become canonical: numbers lose trailing zeros and the sign of zero, because PostgreSQL's
 * numerics carry a scale of their own where our columns have one; inexact ones keep eight digits.
 * Fields end with a byte no value has. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "warpfox.h"

enum { LINES_MOST = 60000 };
static const size_t bytes_most = (size_t)16 << 20;

void answer_reset(struct answer *a) {
    a->line_count = 0;
    a->byte_count = 0;
    a->huge = false;
    a->message[0] = 0;
    snprintf(a->state, sizeof a->state, "00000");
    if (!a->bytes) {
        a->byte_room = bytes_most + 100000;
        a->bytes = malloc(a->byte_room);
        a->line_room = LINES_MOST;
        a->lines = malloc(sizeof *a->lines * (size_t)LINES_MOST);
        if (!a->bytes || !a->lines) {
            abort();
        }
    }
    a->lines[0] = a->bytes;
}

void answer_free(struct answer *a) {
    free(a->bytes);
    free(a->lines);
    a->bytes = NULL;
    a->lines = NULL;
}

static void canonical(const char *text, bool inexact, char *out, size_t cap) {
    double value = strtod(text, NULL);
    bool plain = strspn(text, "-0123456789.") == strlen(text);
    if (inexact) {
        snprintf(out, cap, "%.8g", fabs(value) < 1e-9 ? 0.0 : value);
    } else if (!plain) {
        snprintf(out, cap, "%.17g", value);
    } else {
        snprintf(out, cap, "%s", text);
        size_t len = strlen(out);
        if (strchr(out, '.')) {
            while (len > 0 && out[len - 1] == '0') {
                out[--len] = 0;
            }
            if (len > 0 && out[len - 1] == '.') {
                out[--len] = 0;
            }
        }
    }
    if (strcmp(out, "-0") == 0) {
        snprintf(out, cap, "0");
    }
}

static void put(struct answer *a, const char *text) {
    size_t n = strlen(text);
    if (a->byte_count + n + 8 >= a->byte_room) {
        a->huge = true;
        return;
    }
    memcpy(a->bytes + a->byte_count, text, n);
    a->byte_count += n;
}

void answer_value(struct answer *a, const char *text, bool number, bool inexact, bool first) {
    char digits[400];
    if (!first) {
        put(a, " | ");
    }
    if (!text) {
        put(a, "\x01NULL");
    } else if (number && strlen(text) < sizeof digits) {
        canonical(text, inexact, digits, sizeof digits);
        put(a, digits);
    } else {
        put(a, text);
    }
}

void answer_end_row(struct answer *a) {
    if (a->line_count + 2 >= a->line_room || a->byte_count > bytes_most) {
        a->huge = true;
        return;
    }
    a->bytes[a->byte_count++] = 0;
    a->lines[++a->line_count] = a->bytes + a->byte_count;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void answer_sort(struct answer *a) {
    qsort(a->lines, (size_t)a->line_count, sizeof *a->lines, by_text);
}

bool answer_same(const struct answer *a, const struct answer *b) {
    bool same = strcmp(a->state, b->state) == 0 && a->line_count == b->line_count;
    for (int i = 0; same && i < a->line_count; i++) {
        same = strcmp(a->lines[i], b->lines[i]) == 0;
    }
    return same;
}

void answer_print(const struct answer *a, int most) {
    if (strcmp(a->state, "00000") != 0) {
        printf("    %s %s\n", a->state, a->message);
        return;
    }
    printf("    %d rows\n", a->line_count);
    for (int i = 0; i < a->line_count && i < most; i++) {
        printf("    %.300s\n", a->lines[i]);
    }
}

static void failed(struct answer *out, const wf_error *error) {
    answer_reset(out);
    snprintf(out->state, sizeof out->state, "%s", error->sqlstate);
    snprintf(out->message, sizeof out->message, "%.299s", error->message);
}

static void read_batch(const wf_batch *batch, const wf_type_info *types, int32_t cols,
                       const struct gen *g, struct answer *out) {
    static char value[20000];
    for (int64_t row = 0; row < wf_batch_rows(batch) && !out->huge; row++) {
        for (int32_t c = 0; c < cols; c++) {
            bool null = wf_batch_is_null(batch, c, row) != 0;
            bool number = types[c].type >= WF_TYPE_SMALLINT && types[c].type <= WF_TYPE_DOUBLE;
            wf_value_text(batch, c, row, value, sizeof value);
            answer_value(out, null ? NULL : value, number, g && c < OUT_MAX && g->inexact[c],
                         c == 0);
        }
        answer_end_row(out);
    }
}

void ours_ask(wf_connection *conn, const char *sql, const struct gen *g, struct answer *out) {
    wf_result *result = NULL;
    wf_type_info types[32];
    snprintf(now_running, sizeof now_running, "%s", sql);
    answer_reset(out);
    if (wf_query(conn, sql, &result)) {
        failed(out, wf_connection_error(conn));
        return;
    }
    if (!result) { /* nothing was asked */
        return;
    }
    int32_t cols = wf_result_column_count(result);
    for (int32_t c = 0; c < cols && c < 32; c++) {
        (void)wf_result_type(result, c, &types[c]);
    }
    const wf_batch *batch = NULL;
    wf_status status = WF_OK;
    while (!status && !out->huge) {
        status = wf_result_next_batch(result, &batch);
        if (status || !batch) {
            break;
        }
        read_batch(batch, types, cols < 32 ? cols : 32, g, out);
    }
    if (status) {
        failed(out, wf_result_error(result));
    }
    wf_result_close(result);
    if (!g || !g->ordered) {
        answer_sort(out);
    }
}

/* suite_check.c: whether an answer is the right one.
 *
 * Against checksums where the scale factor is one of those in tpch_answers.h or ssb_answers.h, which
 * were made with DuckDB on the same rows; or against answer files (qNN.csv, '|' between values, a header
 * line) when a folder is named. Two checksums an answer: the sum of each row's hash, and one hash
 * over the ORDER BY columns in sequence, so that rows which tie may come in any order. Numbers lose
 * trailing zeros; averages and quotients are rounded to six decimals for a checksum, and compared
 * to nine digits with a file, since others compute them as doubles. */
#include "bench_suite.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 400 };
static const uint64_t fnv_basis = 1469598103934665603ULL;

static uint64_t fnv(uint64_t hash, const char *text) {
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
    }
    return hash;
}

static bool looks_numeric(const char *text) {
    int dots = 0, digits = 0;
    text += *text == '-';
    for (; *text; text++) {
        if (*text == '.') {
            dots++;
        } else if (isdigit((unsigned char)*text)) {
            digits++;
        } else {
            return false;
        }
    }
    return dots == 1 && digits > 0;
}

/* Trailing zeros of a fraction say nothing. */
static void strip_zeros(char *text) {
    if (looks_numeric(text)) {
        size_t len = strlen(text);
        while (text[len - 1] == '0') {
            len--;
        }
        len -= text[len - 1] == '.';
        text[len] = 0;
    }
}

static void value_of(const wf_batch *batch, int column, int64_t row, char kind,
                     char out[VALUE_BYTES]) {
    out[0] = 0;
    if (!wf_batch_is_null(batch, column, row)) {
        wf_value_text(batch, column, row, out, VALUE_BYTES);
        if (kind == 'a') {
            snprintf(out, VALUE_BYTES, "%.6f", strtod(out, NULL));
        }
        strip_zeros(out);
    }
}

static bool check_sums(wf_result *result, const struct known_answer *known, const char *kinds,
                       char *why, size_t cap) {
    uint64_t sum = 0, order = fnv_basis;
    int64_t rows = 0;
    const wf_batch *batch;
    char value[VALUE_BYTES];
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++, rows++) {
            uint64_t hash = fnv_basis;
            for (int c = 0; kinds[c]; c++) {
                value_of(batch, c, row, kinds[c], value);
                hash = fnv(fnv(hash, value), "|");
                order = kinds[c] == 'E' ? fnv(fnv(order, value), "|") : order;
            }
            sum += hash;
            order = fnv(order, "\n");
        }
    }
    if (rows != known->rows) {
        snprintf(why, cap, "%lld rows instead of %lld", (long long)rows, (long long)known->rows);
    } else if (sum != known->sum) {
        snprintf(why, cap, "the rows have checksum %016llx instead of %016llx",
                 (unsigned long long)sum, (unsigned long long)known->sum);
    } else if (order != known->order) {
        snprintf(why, cap, "the rows are not in the order asked for");
    }
    return rows == known->rows && sum == known->sum && order == known->order;
}

/* --- answer files ---------------------------------------------------------------------------- */

static bool near(const char *ours, const char *theirs) {
    double a = strtod(ours, NULL), b = strtod(theirs, NULL);
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static bool same_value(const wf_batch *batch, int column, int64_t row, char kind, char *theirs,
                       char ours[VALUE_BYTES]) {
    strip_zeros(theirs);
    value_of(batch, column, row, 'e', ours);
    return strcmp(ours, theirs) == 0 || (kind == 'a' && near(ours, theirs));
}

/* Compares one row with one line. */
static bool same_row(const wf_batch *batch, int64_t row, const char *kinds, char *line, char *why,
                     size_t cap) {
    char ours[VALUE_BYTES];
    for (int c = 0; kinds[c]; c++) {
        char *end = line + strcspn(line, "|\r\n");
        char stop = *end;
        *end = 0;
        if (line[0] == '"' && end > line + 1 && end[-1] == '"') {
            end[-1] = 0;
            line++;
        }
        if (!same_value(batch, c, row, kinds[c], line, ours)) {
            snprintf(why, cap, "column %d is '%.80s' instead of '%.80s'", c + 1, ours, line);
            return false;
        }
        line = end + (stop == '|');
    }
    return true;
}

static bool check_file(wf_result *result, FILE *file, const char *kinds, char *why, size_t cap) {
    static char line[4096];
    char detail[200] = "";
    int64_t rows = 0;
    const wf_batch *batch;
    bool header = fgets(line, sizeof line, file) != NULL;
    while (header && wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            rows++;
            if (!fgets(line, sizeof line, file)) {
                snprintf(why, cap, "more rows than the answer file has, %lld", (long long)rows - 1);
                return false;
            }
            if (!same_row(batch, row, kinds, line, detail, sizeof detail)) {
                snprintf(why, cap, "row %lld: %s", (long long)rows, detail);
                return false;
            }
        }
    }
    if (fgets(line, sizeof line, file)) {
        snprintf(why, cap, "%lld rows, fewer than the answer file has", (long long)rows);
        return false;
    }
    return header;
}

enum verdict suite_check(wf_result *result, const struct suite_check *check, char *why,
                         size_t cap) {
    const struct suite *suite = check->suite;
    const char *kinds = suite->kinds[check->query];
    if (wf_result_column_count(result) != (int)strlen(kinds)) {
        snprintf(why, cap, "%d columns instead of %d", (int)wf_result_column_count(result),
                 (int)strlen(kinds));
        return VERDICT_WRONG;
    }
    if (check->folder) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s.csv", check->folder,
                 bench_texts[suite->first_text + check->query].name);
        FILE *file = fopen(path, "r");
        if (!file) {
            snprintf(why, cap, "cannot read %.300s", path);
            return VERDICT_WRONG;
        }
        bool right = check_file(result, file, kinds, why, cap);
        fclose(file);
        return right ? VERDICT_RIGHT : VERDICT_WRONG;
    }
    double wanted = check->scale ? strtod(check->scale, NULL) : 0;
    for (int i = 0; check->scale && i < suite->known_count; i++) {
        const struct known_answer *known = &suite->known[i];
        if (strcmp(known->query, suite->labels[check->query]) == 0 &&
            fabs(strtod(known->scale, NULL) - wanted) < 1e-9) {
            return check_sums(result, known, kinds, why, cap) ? VERDICT_RIGHT : VERDICT_WRONG;
        }
    }
    return VERDICT_UNKNOWN;
}

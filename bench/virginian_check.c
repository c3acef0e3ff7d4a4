/* virginian_check.c: whether the answers of the ten queries are right: the number of rows, and of
 * every column a sum over mixed values, against a loop over the rows the table was made of. */
#include "bench_virginian.h"

#include <string.h>

enum { CHUNK = 1 << 22 };

static uint64_t mixed(uint64_t x, uint64_t row) {
    x = (x ^ row * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 29) * 0x94d049bb133111ebULL;
    return x ^ x >> 32;
}

static uint32_t bits_at(const struct virginian_data *d, int column, int64_t i) {
    const void *columns[] = {d->id,       d->uniformi,  d->uniformf, d->normali5,
                             d->normalf5, d->normali20, d->normalf20};
    uint32_t bits;
    memcpy(&bits, (const char *)columns[column] + 4 * i, 4);
    return bits;
}

bool virginian_expect(struct virginian_answers *out, int64_t rows) {
    memset(out, 0, sizeof *out);
    for (int64_t first = 0; first < rows; first += CHUNK) {
        struct virginian_data d;
        int64_t n = rows - first < CHUNK ? rows - first : CHUNK;
        if (!virginian_make(&d, first, n)) {
            return false;
        }
        for (int q = 0; q < VIRGINIAN_QUERIES; q++) {
            const int *columns = virginian_columns[q];
            for (int64_t i = 0; i < n; i++) {
                if (virginian_keeps(&d, q, i)) {
                    out->rows[q]++;
                    for (int c = 0; c < VIRGINIAN_COLUMNS && columns[c] >= 0; c++) {
                        out->sums[q][c] += mixed(bits_at(&d, columns[c], i), (uint64_t)d.id[i]);
                    }
                }
            }
        }
        virginian_free(&d);
    }
    return true;
}

/* A batch's values of a column of four bytes, whatever their type. */
static const void *values_of(const wf_batch *batch, int column) {
    const void *whole = wf_batch_int32(batch, column);
    return whole ? whole : wf_batch_float(batch, column);
}

static bool add_batch(const wf_batch *batch, int q, uint64_t sums[VIRGINIAN_COLUMNS]) {
    const int32_t *id = wf_batch_int32(batch, 0);
    for (int c = 0; c < VIRGINIAN_COLUMNS && virginian_columns[q][c] >= 0; c++) {
        const char *values = values_of(batch, c);
        if (!id || !values || wf_batch_nulls(batch, c)) {
            return false;
        }
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            uint32_t bits;
            memcpy(&bits, values + 4 * i, 4);
            sums[c] += mixed(bits, (uint64_t)id[i]);
        }
    }
    return true;
}

bool virginian_right(struct bench_db *db, const char *sql, int q,
                     const struct virginian_answers *expected) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    uint64_t sums[VIRGINIAN_COLUMNS] = {0};
    int64_t rows = 0;
    bool right = wf_query(db->conn, sql, &result) == WF_OK;
    while (right && wf_result_next_batch(result, &batch) == WF_OK && batch) {
        rows += wf_batch_rows(batch);
        right = add_batch(batch, q, sums);
    }
    right = right && rows == expected->rows[q] && wf_result_error(result)->status == WF_OK &&
            memcmp(sums, expected->sums[q], sizeof sums) == 0;
    if (!right) {
        fprintf(stderr, "bench: wrong answer (%lld rows, %lld expected): %s\n", (long long)rows,
                (long long)expected->rows[q], sql);
    }
    wf_result_close(result);
    return right;
}

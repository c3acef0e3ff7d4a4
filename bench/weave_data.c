/* weave_data.c: the columns of `bench weave`, value by value and as SQL, and the answers of plain
 * loops. Integers are multiples modulo 2^31, so that any share of them lies below a border; keys of
 * r, s and u are permutations. */
#include "bench_weave.h"

#include <stdlib.h>
#include <string.h>

enum { MODULUS_BITS = 31, KEY_STEP_S = 7919, KEY_STEP_U = 104729 };

/* (i * factor + more) mod 2^31 */
static const struct {
    const char *name;
    int64_t factor, more;
} columns[WEAVE_COLUMNS] = {
    [T_K] = {"k", 1, 0},
    [T_A] = {"a", 2654435761, 12345},
    [T_B] = {"b", 2246822519, 777},
    [T_C] = {"c", 3266489917, 99991},
    [F_PRICE] = {"p", 2654435761, 1},
    [F_DISCOUNT] = {"d", 2246822519, 2},
    [F_TAX] = {"x", 3266489917, 3},
    [R_K] = {"k", 1, 0},
    [R_A] = {"a", 2654435761, 12345},
    [S_K] = {"k", KEY_STEP_S, 0},
    [S_D] = {"d", 2246822519, 777},
    [U_K] = {"k", KEY_STEP_U, 0},
    [U_E] = {"e", 3266489917, 99991},
};

int64_t weave_rows(enum weave_column column, int64_t rows) {
    int64_t third = rows / 3 > 0 ? rows / 3 : 1;
    while (third % KEY_STEP_S == 0 || third % KEY_STEP_U == 0) {
        third++;
    }
    return column >= R_K ? third : rows;
}

static bool is_key(enum weave_column column) {
    return column == R_K || column == S_K || column == U_K;
}

static bool is_float(enum weave_column column) {
    return column >= F_PRICE && column <= F_TAX;
}

uint32_t weave_value(enum weave_column column, int64_t i, int64_t rows) {
    int64_t value = i * columns[column].factor + columns[column].more;
    if (is_key(column)) {
        return (uint32_t)(value % weave_rows(column, rows));
    }
    value &= (1LL << MODULUS_BITS) - 1;
    if (is_float(column)) {
        float share = (float)(value >> 11) / 1048576.0f;
        uint32_t bits;
        memcpy(&bits, &share, sizeof bits);
        return bits;
    }
    return (uint32_t)value;
}

void weave_expression(enum weave_column column, int64_t rows, char *out, size_t cap) {
    char value[100];
    snprintf(value, sizeof value, "(i * %lld + %lld)", (long long)columns[column].factor,
             (long long)columns[column].more);
    if (is_key(column)) {
        snprintf(out, cap, "(%s %% %lld)::integer as %s", value,
                 (long long)weave_rows(column, rows), columns[column].name);
    } else if (is_float(column)) {
        snprintf(out, cap, "((%s %% 2147483648 >> 11) / 1048576.0::float8)::real as %s", value,
                 columns[column].name);
    } else {
        snprintf(out, cap, "(%s %% 2147483648)::integer as %s", value, columns[column].name);
    }
}

int32_t weave_border(int percent) {
    return (int32_t)((1LL << MODULUS_BITS) * percent / 100);
}

static double real_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int32_t at(enum weave_column column, int64_t i, int64_t rows) {
    return (int32_t)weave_value(column, i, rows);
}

/* Rows of r, s and u have the same key when r's row is the key and the others' rows are found by
 * it: the row of a key is looked for by counting on. */
static struct weave_sum plain_join(int64_t rows, int32_t border) {
    struct weave_sum out = {0, 0};
    int64_t n = weave_rows(R_K, rows);
    int64_t s_key = 0, u_key = 0, kept = 0;
    unsigned char *good = calloc((size_t)n, 1);
    if (!good) {
        return out;
    }
    for (int64_t i = 0; i < n; i++) { /* good: how many of the three are selected */
        s_key = at(S_K, i, rows);
        u_key = at(U_K, i, rows);
        good[i] = (unsigned char)(good[i] + (at(R_A, i, rows) < border));
        good[s_key] = (unsigned char)(good[s_key] + (at(S_D, i, rows) < border));
        good[u_key] = (unsigned char)(good[u_key] + (at(U_E, i, rows) < border));
    }
    for (int64_t i = 0; i < n; i++) {
        kept += good[i] == 3;
        out.sum += good[i] == 3 ? at(R_A, i, rows) : 0;
        out.sum += good[at(S_K, i, rows)] == 3 ? at(S_D, i, rows) : 0;
        out.sum += good[at(U_K, i, rows)] == 3 ? at(U_E, i, rows) : 0;
    }
    out.rows = (double)kept;
    free(good);
    return out;
}

static void add(struct weave_sum *sum, bool kept, double value) {
    sum->rows += kept;
    sum->sum += kept ? value : 0;
}

struct weave_sum weave_plain(enum weave_pattern pattern, int64_t rows, int percent) {
    struct weave_sum out = {0, 0};
    int32_t border = weave_border(percent);
    if (pattern == WEAVE_JOINS || pattern == WEAVE_SELECTED) {
        return plain_join(rows, pattern == WEAVE_JOINS ? INT32_MAX : border);
    }
    for (int64_t i = 0; i < rows; i++) {
        bool a = at(T_A, i, rows) < border, b = at(T_B, i, rows) < border;
        bool c = at(T_C, i, rows) < border;
        switch (pattern) {
        case WEAVE_SELECTS:
            add(&out, a && b && c, at(T_K, i, rows));
            break;
        case WEAVE_PAIR:
            add(&out, a && b, at(T_K, i, rows));
            break;
        case WEAVE_SHARED:
            add(&out, a, at(T_K, i, rows));
            add(&out, b, at(T_C, i, rows));
            break;
        default:
            add(&out, true,
                real_of(weave_value(F_PRICE, i, rows)) *
                    (1 - real_of(weave_value(F_DISCOUNT, i, rows))) *
                    (1 + real_of(weave_value(F_TAX, i, rows))));
        }
    }
    return out;
}

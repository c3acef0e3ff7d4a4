/* joins_data.c: the two sides of a join: unique keys in S, and R drawn from them.
 *
 * Keys are a permutation of 0 .. n - 1 made without a table, spread over 32 bits by an invertible
 * mix where they shall be sparse. Keys of R without a match are those of numbers from n on. */
#include "bench_joins.h"

#include <math.h>
#include <stdlib.h>

uint64_t bench_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* A bijection of 32-bit words. */
static uint32_t spread(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

static uint32_t number_of_r(const struct join_case *c, int64_t i, int bits) {
    uint64_t draw = bench_mix((uint64_t)i * 3 + 1);
    uint32_t n = (uint32_t)c->rows[1];
    if ((int)(draw % 100) < c->duplicates) {
        return 1 % n;
    }
    if ((int)(draw / 100 % 100) < c->missing) {
        return n + (uint32_t)(draw >> 32) % n;
    }
    if (c->zipf) {
        double u = ((double)(draw >> 11) + 0.5) / 9007199254740992.0;
        uint32_t rank = (uint32_t)exp(u * log((double)n));
        return rank < n ? rank : n - 1;
    }
    return c->rows[0] == c->rows[1] ? bench_shuffled((uint32_t)i, n, bits)
                                    : (uint32_t)(draw >> 32) % n;
}

void join_data_make(const struct join_case *c, struct join_data *out) {
    int bits = 1;
    while (bits < 32 && (1LL << bits) < c->rows[1]) {
        bits++;
    }
    for (int side = 0; side < 2; side++) {
        int64_t n = c->rows[side];
        out->rows[side] = n;
        out->keys[side] = malloc((size_t)n * 4 + 4);
        out->values[side] = malloc((size_t)n * 4 + 4);
        if (!out->keys[side] || !out->values[side]) {
            fprintf(stderr, "bench: no memory for %lld rows\n", (long long)n);
            exit(1);
        }
        for (int64_t i = 0; i < n; i++) {
            uint32_t number = side == 0 ? number_of_r(c, i, bits)
                              : c->both ? 1
                                        : bench_shuffled((uint32_t)(n - 1 - i), (uint32_t)n, bits);
            if (side == 1 && (int)(bench_mix((uint64_t)i) % 100) < c->s_duplicates) {
                number = 1;
            }
            out->keys[side][i] = c->sparse ? spread(number) : number;
            out->values[side][i] = (uint32_t)i;
        }
    }
}

void join_data_free(struct join_data *data) {
    for (int side = 0; side < 2; side++) {
        free(data->keys[side]);
        free(data->values[side]);
    }
}

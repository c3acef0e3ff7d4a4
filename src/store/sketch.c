/* sketch.c: how many distinct values a column holds, roughly (HyperLogLog with 256 cells).
 *
 * Every non-NULL value adds its hash when it is sealed or appended; sketches of tablets made by
 * several threads merge by maximum, so the estimate does not depend on who loaded what. The error
 * is some 6 %, which is enough to choose a join order or the size of a hash table. Exact counting
 * of small domains was not worth a second structure: the caller bounds the estimate by the width of
 * the value range, by the dictionary's length and by the number of rows. */
#include "store/store_int.h"

#include <math.h>

bool sketch_merge(struct sketch *into, const struct sketch *from) {
    u8 more = 0;
    for (i32 i = 0; i < 1 << SKETCH_BITS; i++) {
        more |= from->longest[i] > into->longest[i];
        into->longest[i] = MAX_OF(into->longest[i], from->longest[i]);
    }
    return more;
}

/* 2^-n, n at most 64: every version of a table asks 256 times a column. */
static f64 power(u8 n) {
    u64 bits = (u64)(1023 - n) << 52;
    f64 value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

f64 sketch_estimate(const struct sketch *sketch) {
    const f64 cells = 1 << SKETCH_BITS;
    const f64 bias = 0.7213 / (1.0 + 1.079 / cells);
    f64 sum = 0;
    i32 empty = 0;
    for (i32 i = 0; i < 1 << SKETCH_BITS; i++) {
        sum += power(sketch->longest[i]);
        empty += sketch->longest[i] == 0;
    }
    f64 raw = bias * cells * cells / sum;
    if (raw <= 2.5 * cells && empty > 0) { /* few values: count the empty cells instead */
        return cells * log(cells / empty);
    }
    return raw;
}

/* column_scan.c: the first pass over rows on their way into a segment: range, order, zones, sketch.
 *
 * Rows are looked at in chunks of 1,024. Where a chunk has NULLs, its other values are first moved
 * together, so that the loops below never test a flag; what a chunk yields is merged into its zone
 * and into the facts of the whole. The checks for order stop at the first chunk that is not sorted,
 * which for most columns is the first. */
#include "store/store_int.h"

#include <math.h>

#define NO_LSB 1023 /* lsb while there is no finite nonzero value: merges with any other */

struct range range_empty(struct type type) {
    struct range r = {0};
    if (!type_is_text(type)) {
        r.lo = I128_MAX;
        r.hi = I128_MIN;
        r.lsb = type_is_float(type) ? NO_LSB : 0;
    }
    return r;
}

void facts_init(struct facts *facts, struct type type) {
    memset(facts, 0, sizeof *facts);
    facts->range = range_empty(type);
    facts->sorted = facts->strict = !type_is_text(type) && !type_is_float(type);
    facts->and_bits = ~0ULL;
}

void facts_merge(struct facts *into, const struct facts *next, struct type type) {
    if (next->rows == 0) {
        return;
    }
    if (!type_is_text(type)) {
        /* Both sorted and NULL-free: the last value before is hi, the first one after is lo. */
        bool first = into->rows == 0;
        into->sorted &= next->sorted && (first || into->range.hi <= next->range.lo);
        into->strict &= next->strict && (first || into->range.hi < next->range.lo);
        struct range *r = &into->range;
        r->lo = MIN_OF(r->lo, next->range.lo);
        r->hi = MAX_OF(r->hi, next->range.hi);
        r->abs_max = MAX_OF(r->abs_max, next->range.abs_max);
        r->lsb = MIN_OF(r->lsb, next->range.lsb);
        r->may_special |= next->range.may_special;
        into->and_bits &= next->and_bits;
        into->or_bits |= next->or_bits;
    }
    into->rows += next->rows;
    into->null_count += next->null_count;
}

struct range facts_range(const struct facts *facts) {
    struct range r = facts->range;
    r.lsb = r.lsb == NO_LSB ? 0 : r.lsb; /* zero is a multiple of anything */
    return r;
}

struct facts segment_facts(const struct segment *seg, struct type type, i64 rows) {
    struct facts facts;
    facts_init(&facts, type);
    facts.range = seg->range;
    if (type_is_float(type) && seg->range.abs_max == 0) {
        facts.range.lsb = NO_LSB;
    }
    facts.rows = rows;
    facts.null_count = seg->null_count;
    facts.sorted = seg->sorted;
    facts.strict = seg->strict;
    return facts;
}

struct column_source source_of_input(struct type type, const struct input_col *col, i64 first,
                                     i64 rows) {
    enum kind kind = type_kind(type);
    return (struct column_source){.type = type,
                                  .kind = (u8)kind,
                                  .form = FORM_PLAIN,
                                  .data = (const u8 *)col->data + first * kind_bytes[kind],
                                  .nulls = col->nulls ? col->nulls + first : NULL,
                                  .rows = rows};
}

const b8 *source_nulls(const struct column_source *src, i64 first, i64 count, b8 *scratch) {
    ASSERT(count <= CHUNK_ROWS);
    if (src->nulls) {
        const b8 *nulls = src->nulls + first;
        return memchr(nulls, 1, (size_t)count) ? nulls : NULL;
    }
    if (!src->valid) {
        return NULL;
    }
    b8 any = 0;
    for (i64 i = 0; i < count; i++) {
        i64 row = first + i;
        scratch[i] = (b8)(~src->valid[row >> 6] >> (row & 63) & 1);
        any |= scratch[i];
    }
    return any ? scratch : NULL;
}

struct sv source_text(const struct column_source *src, i64 i) {
    if (src->form == FORM_PLAIN) {
        return sv_of(((const str *)src->data)[i]);
    }
    const u32 *ends = src->data;
    u32 begin = i ? ends[i - 1] : src->start;
    return (struct sv){(const char *)src->bytes + begin, (i64)ends[i] - (i64)begin};
}

static u64 hash_of_b8(b8 v) {
    return hash_u64(v);
}

static u64 hash_of_i32(i32 v) {
    return hash_u64((u64)v);
}

static u64 hash_of_i64(i64 v) {
    return hash_u64((u64)v);
}

static u64 hash_of_i128(i128 v) {
    return hash_u64((u64)v ^ hash_u64((u64)((u128)v >> 64)));
}

static u64 hash_of_f64(f64 v) {
    f64 plain = v + 0.0; /* -0.0 and 0.0 are one value */
    u64 bits;
    memcpy(&bits, &plain, sizeof bits);
    return hash_u64(bits);
}

#define EXACT_KINDS(X) X(b8) X(i32) X(i64) X(i128)

/* Facts of `n` values without NULLs; n > 0. Order is looked at only while the column is sorted. */
#define X(T)                                                               \
    static void scan_##T(const T *v, i64 n, bool order, struct facts *out, \
                         struct sketch *sketch) {                          \
        T lo = v[0], hi = v[0];                                            \
        for (i64 i = 1; i < n; i++) {                                      \
            lo = v[i] < lo ? v[i] : lo;                                    \
            hi = v[i] > hi ? v[i] : hi;                                    \
        }                                                                  \
        i64 down = !order, same = !order;                                  \
        for (i64 i = 1; order && i < n; i++) {                             \
            down += v[i] < v[i - 1];                                       \
            same += v[i] == v[i - 1];                                      \
        }                                                                  \
        out->range.lo = lo;                                                \
        out->range.hi = hi;                                                \
        out->sorted = down == 0;                                           \
        out->strict = down == 0 && same == 0;                              \
        for (i64 i = 0; sketch && i < n; i++) {                            \
            sketch_add(sketch, hash_of_##T(v[i]));                         \
        }                                                                  \
    }                                                                      \
    static i64 gather_##T(T *dst, const T *v, const b8 *nulls, i64 n) {    \
        i64 kept = 0;                                                      \
        for (i64 i = 0; i < n; i++) {                                      \
            dst[kept] = v[i];                                              \
            kept += !nulls[i];                                             \
        }                                                                  \
        return kept;                                                       \
    }
EXACT_KINDS(X)
#undef X

struct float_zone {
    f64 lo, hi;
};

/* lsb and largest magnitude: integer operations on the bits. */
static void scan_float_bits(const f64 *v, i64 n, struct facts *out) {
    const u64 exponent_mask = 0x7ffULL << 52, digit_mask = (1ULL << 52) - 1;
    u64 and_bits = ~0ULL, or_bits = 0, top = 0, special = 0;
    i64 lsb = NO_LSB;
    for (i64 i = 0; i < n; i++) {
        u64 bits;
        memcpy(&bits, &v[i], sizeof bits);
        and_bits &= bits;
        or_bits |= bits;
        u64 abs = bits & ~(1ULL << 63);
        if (abs - 1 >= exponent_mask - 1) { /* zero, infinite or NaN; a zero without a sign is none */
            special |= bits;
            continue;
        }
        top = abs > top ? abs : top;
        i64 exponent = (i64)(abs >> 52);
        u64 digits = (abs & digit_mask) | (u64)(exponent != 0) << 52;
        i64 low = exponent + (exponent == 0) - 1075 + __builtin_ctzll(digits);
        lsb = low < lsb ? low : lsb;
    }
    memcpy(&out->range.abs_max, &top, sizeof top);
    out->range.lo = out->range.hi = 0; /* not empty; floats have no exact bounds */
    out->range.lsb = (i32)lsb;
    out->range.may_special = special != 0;
    out->and_bits = and_bits;
    out->or_bits = or_bits;
}

static void scan_float(const f64 *v, i64 n, struct facts *out, struct float_zone *zone,
                       struct sketch *sketch) {
    scan_float_bits(v, n, out);
    f64 lo = INFINITY, hi = -INFINITY;
    i64 nans = 0;
    for (i64 i = 0; i < n; i++) {
        lo = v[i] < lo ? v[i] : lo;
        hi = v[i] > hi ? v[i] : hi;
        nans += v[i] != v[i];
    }
    zone->lo = MIN_OF(zone->lo, nans ? -INFINITY : lo);
    zone->hi = MAX_OF(zone->hi, nans ? INFINITY : hi);
    for (i64 i = 0; sketch && i < n; i++) {
        sketch_add(sketch, hash_of_f64(v[i]));
    }
}

/* The chunk's non-NULL values as f64; exact, so that both float kinds share one loop. */
static i64 gather_float(f64 *dst, const struct column_source *src, i64 first, i64 n,
                        const b8 *nulls) {
    f64 wide[CHUNK_ROWS];
    const f64 *v = wide;
    if (src->kind == KIND_F32) {
        const f32 *narrow = (const f32 *)src->data + first;
        for (i64 i = 0; i < n; i++) {
            wide[i] = narrow[i];
        }
    } else {
        v = (const f64 *)src->data + first;
    }
    if (!nulls) {
        memcpy(dst, v, (size_t)n * sizeof *v);
        return n;
    }
    i64 kept = 0;
    for (i64 i = 0; i < n; i++) {
        dst[kept] = v[i];
        kept += !nulls[i];
    }
    return kept;
}

static void scan_text(const struct column_source *src, i64 first, i64 n, const b8 *nulls,
                      struct sketch *sketch) {
    if (!sketch || src->form == FORM_CODES) {
        return;
    }
    for (i64 i = 0; i < n; i++) {
        if (!(nulls && nulls[i])) {
            sketch_add(sketch, text_hash(source_text(src, first + i)));
        }
    }
}

static i64 count_nulls(const b8 *nulls, i64 n) {
    i64 count = 0;
    for (i64 i = 0; nulls && i < n; i++) {
        count += nulls[i];
    }
    return count;
}

union chunk_values { /* gathering writes one past what it keeps */
    b8 b8[CHUNK_ROWS + 1];
    i32 i32[CHUNK_ROWS + 1];
    i64 i64[CHUNK_ROWS + 1];
    i128 i128[CHUNK_ROWS + 1];
    f64 f64[CHUNK_ROWS + 1];
};

static void scan_chunk(const struct column_source *src, i64 first, i64 n, bool order,
                       struct facts *out, struct float_zone *zone, struct sketch *sketch) {
    b8 scratch[CHUNK_ROWS];
    union chunk_values values;
    const b8 *nulls = source_nulls(src, first, n, scratch);
    facts_init(out, src->type);
    out->rows = n;
    out->null_count = count_nulls(nulls, n);
    if (out->null_count == n) {
        out->sorted = out->strict = 0;
        return;
    }
    switch (src->kind) {
#define EXACT_CASE(K, T)                                                    \
    case KIND_##K: {                                                        \
        const T *v = (const T *)src->data + first;                          \
        i64 kept = nulls ? gather_##T(values.T, v, nulls, n) : n;           \
        scan_##T(nulls ? values.T : v, kept, order && !nulls, out, sketch); \
        break;                                                              \
    }
        EXACT_CASE(B8, b8)
        EXACT_CASE(I32, i32)
        EXACT_CASE(I64, i64)
        EXACT_CASE(I128, i128)
#undef EXACT_CASE
    case KIND_F32:
    case KIND_F64: {
        i64 kept = gather_float(values.f64, src, first, n, nulls);
        scan_float(values.f64, kept, out, zone, sketch);
        break;
    }
    default:
        scan_text(src, first, n, nulls, sketch);
    }
}

void column_scan(const struct column_source *src, struct facts *out, struct sketch *sketch,
                 struct zone *zones) {
    struct facts zone_facts, chunk;
    facts_init(out, src->type);
    for (i64 zone_first = 0; zone_first < src->rows; zone_first += ZONE_ROWS) {
        i64 zone_end = MIN_OF(zone_first + ZONE_ROWS, src->rows);
        struct float_zone floats = {INFINITY, -INFINITY};
        facts_init(&zone_facts, src->type);
        for (i64 first = zone_first; first < zone_end; first += CHUNK_ROWS) {
            bool order = out->sorted && zone_facts.sorted;
            i64 n = MIN_OF(CHUNK_ROWS, zone_end - first);
            scan_chunk(src, first, n, order, &chunk, &floats, sketch);
            facts_merge(&zone_facts, &chunk, src->type);
        }
        facts_merge(out, &zone_facts, src->type);
        if (zones) {
            zones[zone_first / ZONE_ROWS] = (struct zone){.lo = zone_facts.range.lo,
                                                          .hi = zone_facts.range.hi,
                                                          .flo = floats.lo,
                                                          .fhi = floats.hi};
        }
    }
}

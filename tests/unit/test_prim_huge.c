/* test_prim_huge.c: sorts, splits, merges, searches, runs, sets and moves at sizes up to 10^9 and
 * beyond 2^31 elements, judged on the device (test_prim_huge.h).
 *
 * `make test` runs every case with some thousand rows on both devices. On a card:
 *   WARPFOX_TEST_GPU=1 PRIM_TEST_CPU=0 PRIM_TEST_MAX=1e9 test_prim_huge [--only sort]
 * Cases that do not fit 115 GB at that size have fewer rows and say "(memory)": elements of 16
 * bytes with payloads, and what works on two arrays and a result of words of 8 bytes. */
#include "test_prim_huge.h"

static const wf_array none = {.type = WF_ELEM_U32};

/* --- sorts --- */

struct sort_spec {
    wf_sort how;
    wf_elem type;
    enum prim_shape shape;
    int payload; /* 0: none; 4, 8: row numbers of so many bytes; 20: 4, and 16 that tell the same */
};

static void run_sort(struct huge *h) {
    const struct sort_spec *s = h->spec;
    int64_t n = h->n;
    int count = s->payload == 20 ? 2 : s->payload > 0;
    wf_elem row_type = s->payload == 8 ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_array keys = vec(s->type, n);
    wf_array out = vec(s->type, n);
    wf_array from[2] = {none, none};
    wf_array into[2] = {none, none};
    make_keys(keys, s->shape, (uint64_t)s->type + 1);
    for (int p = 0; p < count; p++) {
        wf_elem type = p ? WF_ELEM_U128 : row_type;
        from[p] = vec(type, n);
        into[p] = vec(type, n);
        iota(p ? as(WF_ELEM_U64, from[p]) : from[p], 0, 1); /* 2i and 2i + 1 in the wide one */
    }
    OK(wf_prim_sort(prim, at, &s->how, out, keys, into, from, count, NULL));
    h->ns = spent();
    struct order_check c = {.by = {s->type, NULL},
                            .in = keys,
                            .out = out,
                            .rows = into[0],
                            .descending = s->how.descending,
                            .stable = s->how.by <= WF_SORT_MERGE};
    check_order(&c);
    if (count == 2) { /* the other payload went the same way */
        wf_array wide = vec(WF_ELEM_U64, n);
        wf_array rows = vec(WF_ELEM_U64, n);
        half_words(wide, into[1], 1);
        widen(rows, into[0]);
        mapk("MUL_I64", rows, rows, 2);
        mapk("ADD_I64", rows, rows, 1);
        expect_same(wide, rows, "second payload");
    }
}

#define SORT(by, type, shape, payload, down)                               \
    &(const struct sort_spec) {                                            \
        {WF_SORT_##by, down, 0, 0}, WF_ELEM_##type, SHAPE_##shape, payload \
    }
static const struct huge_case sort_cases[] = {
    {"sort radix u32 random", run_sort, SORT(RADIX, U32, RANDOM, 0, 0), 100, 30},
    {"sort radix u32 zipf, rows", run_sort, SORT(RADIX, U32, ZIPF, 4, 0), 100, 40},
    {"sort radix u32 sorted, rows, down", run_sort, SORT(RADIX, U32, SORTED, 4, 1), 100, 40},
    {"sort radix u32 constant, rows", run_sort, SORT(RADIX, U32, CONSTANT, 4, 0), 100, 40},
    {"sort radix i32 pareto, rows, down", run_sort, SORT(RADIX, I32, PARETO, 4, 1), 100, 40},
    {"sort radix i32 reversed", run_sort, SORT(RADIX, I32, REVERSED, 0, 0), 100, 30},
    {"sort radix f32 random, wide rows", run_sort, SORT(RADIX, F32, RANDOM, 8, 0), 100, 50},
    {"sort radix f32 duplicates, down", run_sort, SORT(RADIX, F32, DUPLICATES, 0, 1), 100, 30},
    {"sort radix u64 random, rows", run_sort, SORT(RADIX, U64, RANDOM, 4, 0), 100, 50},
    {"sort radix u64 zipf, wide rows, down", run_sort, SORT(RADIX, U64, ZIPF, 8, 1), 100, 60},
    {"sort radix i64 duplicates", run_sort, SORT(RADIX, I64, DUPLICATES, 0, 0), 100, 40},
    {"sort radix i64 pareto, rows", run_sort, SORT(RADIX, I64, PARETO, 4, 0), 100, 50},
    {"sort radix f64 random, rows and wide", run_sort, SORT(RADIX, F64, RANDOM, 20, 0), 100, 115},
    {"sort radix f64 zipf, down", run_sort, SORT(RADIX, F64, ZIPF, 0, 1), 100, 40},
    {"sort radix u128 random, wide rows", run_sort, SORT(RADIX, U128, RANDOM, 8, 0), 100, 100},
    {"sort radix u128 duplicates, down", run_sort, SORT(RADIX, U128, DUPLICATES, 0, 1), 100, 80},
    {"sort radix u32 random, rows, many", run_sort, SORT(RADIX, U32, RANDOM, 4, 0), 220, 40},
    {"sort merge u32 random", run_sort, SORT(MERGE, U32, RANDOM, 0, 0), 100, 30},
    {"sort merge u32 duplicates, rows", run_sort, SORT(MERGE, U32, DUPLICATES, 4, 0), 100, 40},
    {"sort merge i32 zipf, wide rows, down", run_sort, SORT(MERGE, I32, ZIPF, 8, 1), 100, 50},
    {"sort merge u64 sorted", run_sort, SORT(MERGE, U64, SORTED, 0, 0), 100, 40},
    {"sort merge i64 pareto, rows", run_sort, SORT(MERGE, I64, PARETO, 4, 0), 100, 50},
    {"sort merge f32 constant, rows", run_sort, SORT(MERGE, F32, CONSTANT, 4, 0), 100, 40},
    {"sort merge f64 random, rows and wide", run_sort, SORT(MERGE, F64, RANDOM, 20, 0), 100, 140},
    {"sort merge u128 random, rows", run_sort, SORT(MERGE, U128, RANDOM, 4, 0), 100, 80},
    {"sort bitonic u32 random", run_sort, SORT(BITONIC, U32, RANDOM, 0, 0), 100, 30},
    {"sort bitonic i32 sorted, rows, down", run_sort, SORT(BITONIC, I32, SORTED, 4, 1), 50, 40},
    {"sort bitonic u64 zipf, rows", run_sort, SORT(BITONIC, U64, ZIPF, 4, 0), 50, 50},
    {"sort bitonic f32 duplicates", run_sort, SORT(BITONIC, F32, DUPLICATES, 0, 0), 50, 30},
    {"sort bitonic f64 constant, rows", run_sort, SORT(BITONIC, F64, CONSTANT, 4, 0), 25, 50},
    {"sort bitonic u128 pareto", run_sort, SORT(BITONIC, U128, PARETO, 0, 0), 25, 70},
    {"sort quick u32 random", run_sort, SORT(QUICK, U32, RANDOM, 0, 0), 100, 30},
    {"sort quick i32 zipf, rows", run_sort, SORT(QUICK, I32, ZIPF, 4, 0), 100, 40},
    {"sort quick u64 constant", run_sort, SORT(QUICK, U64, CONSTANT, 0, 0), 100, 60},
    {"sort quick f64 pareto, rows, down", run_sort, SORT(QUICK, F64, PARETO, 4, 1), 50, 60},
    {"sort quick i64 sorted, wide rows", run_sort, SORT(QUICK, I64, SORTED, 8, 0), 50, 60},
    {"sort quick u128 duplicates, rows", run_sort, SORT(QUICK, U128, DUPLICATES, 4, 0), 50, 100},
};

/* --- text --- */

enum { LETTERS = 1 << 16 };

/* Spans of up to 23 bytes, of four letters: beginnings are shared, many spans are equal. */
static wf_array make_spans(int64_t n, wf_array bytes) {
    wf_array spans = vec(WF_ELEM_TEXT, n);
    wf_array words = as(WF_ELEM_U64, spans);
    int mark = held_count;
    wf_array t = vec(WF_ELEM_U64, words.count);
    wf_array odd = vec(WF_ELEM_BOOL, words.count);
    wf_array place = vec(WF_ELEM_U64, words.count);
    iota(place, 0, 1);
    iota(words, 7, 1);
    mix(words, t);
    mapk("BITAND_I64", place, place, 1);
    mapk("EQ_I64", odd, place, 1);
    mapk("SHR_I64", words, words, 20);
    mapk("MOD_I64", place, words, 24);
    mapk("MOD_I64", words, words, LETTERS - 24);
    map3("SEL_I64", words, odd, place, words);
    release_to(mark);
    spans.bytes = bytes.data;
    spans.byte_count = LETTERS;
    return spans;
}

static void check_text_order(wf_array out, wf_array rows, int descending, int stable) {
    int64_t n = out.count - 1;
    wf_array good = vec(WF_ELEM_BOOL, n);
    wf_array same = vec(WF_ELEM_BOOL, n);
    wf_array less = vec(WF_ELEM_BOOL, n);
    wf_array also = vec(WF_ELEM_BOOL, n);
    wf_array left = out;
    wf_array right = part(out, 1, n);
    wf_array wide = vec(WF_ELEM_I64, n + 1);
    left.count = n;
    map2("LT_STR", good, descending ? right : left, descending ? left : right);
    map2("EQ_STR", same, left, right);
    widen(wide, rows);
    compare_next(less, also, wide, 0);
    if (stable) {
        map2("AND_B8", same, same, less);
    }
    map2("OR_B8", good, good, same);
    expect_all(good, 0, "order of text");
}

static void run_text(struct huge *h) {
    const struct sort_spec *s = h->spec;
    int64_t n = h->n < 2 ? 2 : h->n;
    wf_array bytes = vec(WF_ELEM_U64, LETTERS / 8);
    wf_array t = vec(WF_ELEM_U64, LETTERS / 8);
    iota(bytes, 1, 1);
    mix(bytes, t);
    mapk("BITAND_I64", bytes, bytes, 0x0101010101010101ULL * 3);
    mapk("ADD_I64", bytes, bytes, 0x0101010101010101ULL * 'a');
    wf_array spans = make_spans(n, bytes);
    wf_array out = spans;
    out.data = vec(WF_ELEM_TEXT, n).data;
    wf_array rows = vec(WF_ELEM_U32, n);
    wf_array into = vec(WF_ELEM_U32, n);
    iota(rows, 0, 1);
    OK(wf_prim_sort(prim, at, &s->how, out, spans, &into, &rows, 1, NULL));
    h->ns = spent();
    check_text_order(out, into, s->how.descending, s->how.by <= WF_SORT_MERGE);
    wf_array got = vec(WF_ELEM_TEXT, n);
    OK(wf_prim_gather(prim, at, as(WF_ELEM_U128, got), as(WF_ELEM_U128, spans), into, 0, NULL));
    expect_same(got, out, "spans of rows");
    expect_print(print_of(into), print_of_rows(n), "rows");
}

static const struct huge_case text_cases[] = {
    {"sort auto text", run_text, SORT(AUTO, TEXT, RANDOM, 4, 0), 10, 150},
    {"sort auto text, down", run_text, SORT(AUTO, TEXT, RANDOM, 4, 1), 1, 150},
    {"sort merge text", run_text, SORT(MERGE, TEXT, RANDOM, 4, 0), 10, 150},
    {"sort bitonic text", run_text, SORT(BITONIC, TEXT, RANDOM, 4, 0), 1, 150},
};

/* --- splits --- */

struct split_spec {
    wf_split how;
    wf_elem type;
    enum prim_shape shape;
    int payload;
    int splitters;
};

/* Where parts start, from the input alone: counts of its elements' parts. */
static void check_starts(const struct split_spec *s, const wf_split *how, wf_array keys,
                         wf_array starts) {
    int64_t parts = starts.count - 1;
    uint64_t *got = fetch(starts);
    uint64_t *sums = calloc((size_t)parts + 1, 8);
    int mark = held_count;
    wf_array ranks = vec(WF_ELEM_I64, keys.count < CHUNK ? keys.count : CHUNK);
    wf_array bins = vec(WF_ELEM_U64, parts);
    struct ranks by = {s->type, how};
    for (int64_t first = 0; first < keys.count; first += CHUNK) {
        ranks.count = keys.count - first < CHUNK ? keys.count - first : CHUNK;
        ranks_of(ranks, part(keys, first, ranks.count), &by);
        OK(wf_prim_histogram(prim, at, bins, ranks, 0, 1, NULL));
        uint64_t *counts = fetch(bins);
        for (int64_t p = 0; p < parts; p++) {
            sums[p] += counts[p];
        }
        free(counts);
    }
    int64_t wrong = -1;
    uint64_t start = 0;
    for (int64_t p = 0; p <= parts && wrong < 0; p++) {
        wrong = got[p] == start ? -1 : p;
        start += sums[p];
    }
    free(got);
    free(sums);
    release_to(mark);
    NEED(wrong < 0, "part %" PRId64 " starts elsewhere", wrong);
}

static void run_split(struct huge *h) {
    const struct split_spec *s = h->spec;
    int64_t n = h->n;
    wf_split how = s->how;
    how.bits = n < 1000000 && how.bits > 12 ? 12 : how.bits; /* simulated blocks are slow */
    wf_elem row_type = s->payload == 8 ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_array keys = vec(s->type, n);
    wf_array out = vec(s->type, n);
    wf_array rows = s->payload ? vec(row_type, n) : none;
    wf_array into = s->payload ? vec(row_type, n) : none;
    make_keys(keys, s->shape, 3);
    iota(rows, 0, 1);
    if (how.by == WF_SPLIT_RANGE) { /* some of the keys, in order, some of them equal */
        wf_array drawn = vec(s->type, s->splitters);
        how.splitters = vec(s->type, s->splitters);
        make_keys(drawn, s->shape, 3);
        OK(wf_prim_sort(prim, at, NULL, how.splitters, drawn, NULL, NULL, 0, NULL));
    }
    int64_t parts = how.by == WF_SPLIT_RANGE ? s->splitters + 1 : (int64_t)1 << how.bits;
    wf_array starts = vec(WF_ELEM_U64, parts + 1);
    OK(wf_prim_split(prim, at, &how, out, starts, keys, &into, &rows, s->payload > 0, NULL));
    h->ns = spent();
    struct order_check c = {
        .by = {s->type, &how}, .in = keys, .out = out, .rows = into, .stable = !how.unstable};
    check_order(&c);
    check_starts(s, &how, keys, starts);
}

#define SPLIT(by, shift, bits, unstable, type, shape, payload)                                 \
    &(const struct split_spec) {                                                               \
        {WF_SPLIT_##by, shift, bits, {0}, unstable}, WF_ELEM_##type, SHAPE_##shape, payload, 0 \
    }
#define RANGES(splitters, type, shape, payload)                                           \
    &(const struct split_spec) {                                                          \
        {WF_SPLIT_RANGE, 0, 0, {0}, 0}, WF_ELEM_##type, SHAPE_##shape, payload, splitters \
    }
static const struct huge_case split_cases[] = {
    {"split radix 1 u32 random", run_split, SPLIT(RADIX, 0, 0, 0, U32, RANDOM, 4), 30, 40},
    {"split radix 2 u32 random", run_split, SPLIT(RADIX, 31, 1, 0, U32, RANDOM, 4), 100, 40},
    {"split radix 64 u32 zipf", run_split, SPLIT(RADIX, 2, 6, 0, U32, ZIPF, 4), 100, 40},
    {"split radix 64 u32 constant, loose", run_split, SPLIT(RADIX, 0, 6, 1, U32, CONSTANT, 4), 100,
     40},
    {"split radix 2048 u32 random, many", run_split, SPLIT(RADIX, 7, 11, 0, U32, RANDOM, 4), 220,
     40},
    {"split radix 2048 u32 random, loose, many", run_split, SPLIT(RADIX, 7, 11, 1, U32, RANDOM, 4),
     220, 40},
    {"split radix 1024 u128 random", run_split, SPLIT(RADIX, 64, 10, 0, U128, RANDOM, 4), 100, 90},
    {"split radix 16 M u32 random", run_split, SPLIT(RADIX, 8, 24, 0, U32, RANDOM, 0), 100, 40},
    {"split radix 1 M u64 sorted, loose", run_split, SPLIT(RADIX, 5, 20, 1, U64, SORTED, 8), 100,
     60},
    {"split hash 256 u32 pareto, loose", run_split, SPLIT(HASH, 3, 8, 1, U32, PARETO, 4), 100, 40},
    {"split hash 32 K u64 duplicates", run_split, SPLIT(HASH, 40, 15, 0, U64, DUPLICATES, 4), 100,
     50},
    {"split hash 32 K u64 zipf, loose", run_split, SPLIT(HASH, 40, 15, 1, U64, ZIPF, 8), 100, 60},
    {"split hash 16 M u64 random", run_split, SPLIT(HASH, 0, 24, 0, U64, RANDOM, 0), 100, 50},
    {"split range 256 u32 random", run_split, RANGES(255, U32, RANDOM, 4), 100, 40},
    {"split range 1001 f64 random", run_split, RANGES(1000, F64, RANDOM, 4), 100, 50},
    {"split range 4096 i64 duplicates", run_split, RANGES(4095, I64, DUPLICATES, 8), 100, 60},
    {"split range 30 K i32 zipf", run_split, RANGES(30000, I32, ZIPF, 4), 100, 40},
    {"split range 3 f32 constant", run_split, RANGES(2, F32, CONSTANT, 4), 50, 40},
    {"split range 100 u128 random", run_split, RANGES(99, U128, RANDOM, 0), 50, 80},
};

/* --- ascending arrays: merge, search, balance, runs, sets --- */

struct pair_spec {
    wf_elem type;
    enum prim_shape a, b;
    int share;   /* percent of the elements that are a's */
    int payload; /* merge */
    wf_set_how set;
    int upper, sorted; /* search */
};

/* Ascending elements of a shape. */
static void make_ascending(wf_array out, enum prim_shape shape, uint64_t seed) {
    int mark = held_count;
    wf_array keys = vec(out.type, out.count);
    make_keys(keys, shape, seed);
    OK(wf_prim_sort(prim, at, NULL, out, keys, NULL, NULL, 0, NULL));
    release_to(mark);
}

static int64_t share_of(const struct pair_spec *s, int64_t n) {
    int64_t a = n * s->share / 100;
    return s->share == 100 ? n : a & ~15LL; /* what follows it stays aligned */
}

static void run_merge(struct huge *h) {
    const struct pair_spec *s = h->spec;
    int64_t n = h->n;
    int64_t a = share_of(s, n);
    wf_array both = vec(s->type, n);
    make_ascending(part(both, 0, a), s->a, 1);
    make_ascending(part(both, a, n - a), s->b, 2);
    wf_array out = vec(s->type, n);
    wf_elem row_type = s->payload == 8 ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_array rows = s->payload ? vec(row_type, n) : none;
    wf_array into = s->payload ? vec(row_type, n) : none;
    iota(rows, 0, 1);
    OK(wf_prim_merge(prim, at, out, part(both, 0, a), part(both, a, n - a), into,
                     s->payload ? part(rows, 0, a) : none, s->payload ? part(rows, a, n - a) : none,
                     NULL));
    h->ns = spent();
    struct order_check c = {
        .by = {s->type, NULL}, .in = both, .out = out, .rows = into, .stable = 1};
    check_order(&c);
}

/* lower or upper bounds are what they should be: the element before is smaller (or not greater),
 * the one there is not. */
static void check_bounds(wf_array bounds, wf_array needles, wf_array among, int upper) {
    int mark = held_count;
    int64_t n = bounds.count;
    struct ranks by = {needles.type, NULL};
    wf_array x = vec(WF_ELEM_I64, n);
    wf_array y = vec(WF_ELEM_I64, n);
    wf_array index = vec(WF_ELEM_I64, n);
    wf_array keys = vec(among.type, n);
    wf_array good = vec(WF_ELEM_BOOL, n);
    wf_array out = vec(WF_ELEM_BOOL, n);
    wf_array bound = vec(WF_ELEM_I64, n);
    widen(bound, bounds);
    ranks_of(x, needles, &by);
    for (int side = 0; side < 2; side++) { /* the element before the bound, the one at it */
        mapk("SUB_I64", index, bound, !side);
        mapk(side ? "GE_I64" : "LT_I64", out, index, side ? (uint64_t)among.count : 0);
        uint64_t zero = 0;
        map3("SEL_I64", index, out, prim_array(WF_ELEM_U64, &zero, 1), index);
        OK(wf_prim_gather(prim, at, keys, among, index, 0, NULL));
        ranks_of(y, keys, &by);
        map2(side ? (upper ? "GT_I64" : "GE_I64") : (upper ? "LE_I64" : "LT_I64"), good, y, x);
        map2("OR_B8", good, good, out);
        expect_all(good, 0, side ? "bound too low" : "bound too high");
    }
    release_to(mark);
}

static void check_all_bounds(wf_array bounds, wf_array needles, wf_array among, int upper) {
    for (int64_t first = 0; first < bounds.count; first += CHUNK) {
        int64_t n = bounds.count - first < CHUNK ? bounds.count - first : CHUNK;
        check_bounds(part(bounds, first, n), part(needles, first, n), among, upper);
    }
}

static void run_search(struct huge *h) {
    const struct pair_spec *s = h->spec;
    int64_t a = share_of(s, h->n);
    int64_t b = h->n - a;
    wf_array needles = vec(s->type, a);
    wf_array among = vec(s->type, b < 1 ? 1 : b);
    make_ascending(among, s->b, 5);
    if (s->sorted) {
        make_ascending(needles, s->a, 6);
    } else {
        make_keys(needles, s->a, 6);
    }
    wf_array out = vec(s->payload == 4 ? WF_ELEM_U32 : WF_ELEM_I64, a);
    OK(wf_prim_search(prim, at, s->upper, s->sorted, out, needles, among, NULL));
    h->ns = spent();
    check_all_bounds(out, needles, among, s->upper);
}

/* Segments of 0 .. 2 * mean elements; one in a thousand has a thousand times as many when skewed.
 */
static int64_t make_starts(wf_array starts, uint64_t mean, bool skewed) {
    int mark = held_count;
    int64_t n = starts.count;
    wf_array sizes = vec(WF_ELEM_U64, n);
    wf_array t = vec(WF_ELEM_U64, n);
    iota(sizes, 9, 1);
    mix(sizes, t);
    mapk("SHR_I64", sizes, sizes, 1);
    mapk("MOD_I64", sizes, sizes, 2 * mean + 1);
    if (skewed) { /* every other one, and those before 1,000s, to powers */
        wf_array is = vec(WF_ELEM_BOOL, n);
        wf_array more = vec(WF_ELEM_U64, n);
        iota(t, 0, 1);
        mapk("MOD_I64", t, t, 1000);
        mapk("EQ_I64", is, t, 999);
        mapk("MUL_I64", more, sizes, 1000);
        uint64_t zero = 0;
        map3("SEL_I64", sizes, is, more, prim_array(WF_ELEM_U64, &zero, 1));
    }
    OK(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, starts, sizes, NULL));
    uint64_t last = 0;
    uint64_t size = 0;
    peek(starts, n - 1, &last);
    peek(sizes, n - 1, &size);
    release_to(mark);
    return (int64_t)(last + size);
}

struct segment_spec {
    uint64_t mean;
    int skewed;
    wf_elem type; /* of what is written */
};

static void run_balance(struct huge *h) {
    const struct segment_spec *s = h->spec;
    int64_t segments = h->n / (int64_t)(s->mean ? s->mean : 1) + 1;
    wf_array starts = vec(WF_ELEM_U64, segments);
    int64_t count = make_starts(starts, s->mean, s->skewed);
    wf_array out = vec(s->type, count);
    OK(wf_prim_balance(prim, at, out, count, starts, NULL));
    h->ns = spent();
    /* As a search: out + 1 is the number of starts not greater than i. */
    for (int64_t first = 0; first < count; first += CHUNK) {
        int mark = held_count;
        int64_t n = count - first < CHUNK ? count - first : CHUNK;
        wf_array bound = vec(WF_ELEM_I64, n);
        wf_array i = vec(WF_ELEM_U64, n);
        widen(bound, part(out, first, n));
        mapk("ADD_I64", bound, bound, 1);
        iota(i, first, 1);
        check_bounds(bound, i, starts, 1);
        release_to(mark);
    }
}

/* Segmented sums of numbers 0, 1, 2 …: known from where segments begin and end. */
static void run_segments(struct huge *h) {
    const struct segment_spec *s = h->spec;
    int64_t segments = h->n / (int64_t)(s->mean ? s->mean : 1) + 1;
    wf_array offsets = vec(WF_ELEM_U64, segments + 1);
    int64_t count = make_starts(part(offsets, 0, segments), s->mean, s->skewed);
    poke(offsets, segments, &count);
    wf_array in = vec(WF_ELEM_U64, count);
    wf_array out = vec(WF_ELEM_U64, segments);
    iota(in, 0, 1);
    OK(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, out, in, offsets, NULL));
    h->ns = spent();
    wf_array end = vec(WF_ELEM_U64, segments);
    wf_array sum = vec(WF_ELEM_U64, segments);
    wf_array size = vec(WF_ELEM_U64, segments);
    wf_array start = part(offsets, 0, segments);
    OK(wf_prim_copy(prim, end.data, (char *)offsets.data + 8, segments * 8));
    map2("SUB_I64", size, end, start);
    map2("ADD_I64", sum, end, start);
    mapk("SUB_I64", sum, sum, 1);
    map2("MUL_I64", sum, sum, size); /* below 2^63 up to 3 * 10^9 */
    mapk("SHR_I64", sum, sum, 1);
    wf_array bad = vec(WF_ELEM_BOOL, segments);
    wf_array empty = vec(WF_ELEM_BOOL, segments);
    map2("NE_I64", bad, sum, out);
    mapk("EQ_I64", empty, size, 0);
    map2("ANDN_B8", bad, bad, empty);
    expect_none(bad, 0, "sum of a segment");
    mapk("NE_I64", bad, out, 0);
    map2("AND_B8", bad, bad, empty);
    expect_none(bad, 0, "sum of an empty segment");
}

/* Runs: heads by comparison of neighbours, kept by compaction. */
static void run_runs(struct huge *h) {
    const struct pair_spec *s = h->spec;
    int64_t n = h->n;
    wf_array keys = vec(s->type, n);
    make_ascending(keys, s->a, 7);
    wf_array out_keys = vec(s->type, n);
    wf_array starts = vec(WF_ELEM_U64, n);
    wf_array counts = vec(WF_ELEM_U32, n);
    int64_t runs = 0;
    OK(wf_prim_runs(prim, at, out_keys, starts, counts, keys, &runs, NULL));
    h->ns = spent();
    wf_elem word = width_of(s->type) == 4 ? WF_ELEM_U32 : WF_ELEM_U64;
    wf_array before = vec(s->type, n);
    wf_array head = vec(WF_ELEM_BOOL, n);
    unsigned char yes = 1;
    OK(wf_prim_copy(prim, (char *)before.data + width_of(word), keys.data,
                    (n - 1) * width_of(word)));
    OK(wf_prim_copy(prim, before.data, keys.data, width_of(word)));
    map2(word == WF_ELEM_U32 ? "NE_I32" : "NE_I64", head, as(word, keys), as(word, before));
    poke(head, 0, &yes);
    wf_array in[] = {keys, {.type = WF_ELEM_U64}};
    wf_array expected[] = {before, vec(WF_ELEM_U64, n)};
    int64_t count = 0;
    expected[0] = vec(s->type, n);
    OK(wf_prim_compact(prim, at, 1, expected, in, 2, head, &count, NULL));
    NEED(count == runs, "%" PRId64 " runs, expected %" PRId64, runs, count);
    expect_same(part(out_keys, 0, runs), part(expected[0], 0, runs), "keys of runs");
    expect_same(part(starts, 0, runs), part(expected[1], 0, runs), "starts of runs");
    wf_array end = vec(WF_ELEM_U64, runs);
    wf_array length = vec(WF_ELEM_U64, runs);
    OK(wf_prim_copy(prim, end.data, (char *)starts.data + 8, (runs - 1) * 8));
    poke(end, runs - 1, &n);
    map2("SUB_I64", end, end, part(starts, 0, runs));
    widen(length, part(counts, 0, runs));
    expect_same(length, end, "lengths of runs");
}

/* Sums of runs against segments of the same starts. */
static void run_reduce_runs(struct huge *h) {
    const struct pair_spec *s = h->spec;
    int64_t n = h->n;
    wf_array keys = vec(s->type, n);
    wf_array in = vec(WF_ELEM_U64, n);
    wf_array out_keys = vec(s->type, n);
    wf_array sums = vec(WF_ELEM_U64, n);
    wf_array starts = vec(WF_ELEM_U64, n + 1);
    int64_t count = 0;
    int64_t runs = 0;
    make_ascending(keys, s->a, 8);
    iota(in, 5, 3);
    OK(wf_prim_reduce_runs(prim, at, WF_FOLD_ADD, out_keys, sums, keys, in, &runs, NULL));
    h->ns = spent();
    wf_array expected_keys = vec(s->type, n);
    OK(wf_prim_runs(prim, at, expected_keys, part(starts, 0, n), (wf_array){.type = WF_ELEM_U32},
                    keys, &count, NULL));
    NEED(count == runs, "%" PRId64 " runs, expected %" PRId64, runs, count);
    poke(starts, runs, &n);
    wf_array expected = vec(WF_ELEM_U64, runs);
    OK(wf_prim_reduce_segments(prim, at, WF_FOLD_ADD, expected, in, part(starts, 0, runs + 1),
                               NULL));
    expect_same(part(sums, 0, runs), expected, "sums of runs");
    expect_same(part(out_keys, 0, runs), part(expected_keys, 0, runs), "keys of runs");
}

/* Which elements of a stay: its number among its equals against how many equals b has. */
static void set_flags(wf_array keep, wf_array a, wf_array b, const wf_set_how *how, bool in_both) {
    int mark = held_count;
    int64_t n = a.count;
    wf_array rank = vec(WF_ELEM_I64, n);
    wf_array low = vec(WF_ELEM_I64, n);
    wf_array other = vec(WF_ELEM_I64, n);
    OK(wf_prim_search(prim, at, 0, 0, low, a, a, NULL));
    iota(rank, 0, 1);
    map2("SUB_I64", rank, rank, low);
    OK(wf_prim_search(prim, at, 1, 0, other, a, b, NULL));
    OK(wf_prim_search(prim, at, 0, 0, low, a, b, NULL));
    map2("SUB_I64", other, other, low);
    if (how->distinct) {
        wf_array some = vec(WF_ELEM_BOOL, n);
        mapk("GT_I64", some, other, 0);
        map1("I64_B8", other, some);
        mapk("EQ_I64", some, rank, 0);
        map2(in_both ? "LT_I64" : "GE_I64", keep, rank, other);
        map2("AND_B8", keep, keep, some);
    } else {
        map2(in_both ? "LT_I64" : "GE_I64", keep, rank, other);
    }
    release_to(mark);
}

static struct print add_prints(struct print a, struct print b) {
    return (struct print){a.count + b.count, a.sum + b.sum, a.xor ^b.xor };
}

static wf_array kept(wf_array a, wf_array b, const wf_set_how *how, bool in_both) {
    wf_array out = vec(a.type, a.count);
    int mark = held_count;
    wf_array keep = vec(WF_ELEM_BOOL, a.count);
    set_flags(keep, a, b, how, in_both);
    OK(wf_prim_compact(prim, at, 1, &out, &a, 1, keep, &out.count, NULL));
    release_to(mark);
    return out;
}

static void run_set(struct huge *h) {
    const struct pair_spec *s = h->spec;
    int64_t n = share_of(s, h->n);
    int64_t m = h->n - n;
    wf_array a = vec(s->type, n);
    wf_array b = vec(s->type, m);
    make_ascending(a, s->a, 1);
    make_ascending(b, s->b,
                   1); /* the same seed: the smaller one's elements are in the other, too */
    wf_array out = vec(s->type, n + m);
    int64_t count = 0;
    OK(wf_prim_set(prim, at, &s->set, out, a, b, &count, NULL));
    h->ns = spent();
    out.count = count;
    if (s->set.op == WF_SET_INTERSECTION || s->set.op == WF_SET_DIFFERENCE) {
        expect_same(out, kept(a, b, &s->set, s->set.op == WF_SET_INTERSECTION), "set");
        return;
    }
    struct print expected = print_of(kept(b, a, &s->set, false));
    expected = add_prints(expected, print_of(kept(a, b, &s->set, false)));
    if (s->set.op == WF_SET_UNION) {
        expected = add_prints(expected, print_of(kept(a, b, &s->set, true)));
    }
    expect_print(print_of(out), expected, "set");
    struct order_check c = {.by = {s->type, NULL}, .in = out, .out = out};
    for (int64_t first = 0; first + 1 < count; first += CHUNK) {
        check_neighbours(&c, first, count - 1 - first < CHUNK ? count - 1 - first : CHUNK);
    }
}

#define PAIR(type, a, b, share, payload)                                                 \
    &(const struct pair_spec) {                                                          \
        WF_ELEM_##type, SHAPE_##a, SHAPE_##b, share, payload, {WF_SET_UNION, 0, 0}, 0, 0 \
    }
#define FIND(type, a, b, share, payload, upper, sorted)                                           \
    &(const struct pair_spec) {                                                                   \
        WF_ELEM_##type, SHAPE_##a, SHAPE_##b, share, payload, {WF_SET_UNION, 0, 0}, upper, sorted \
    }
#define SET(op, distinct, type, a, b, share)                                             \
    &(const struct pair_spec) {                                                          \
        WF_ELEM_##type, SHAPE_##a, SHAPE_##b, share, 0, {WF_SET_##op, distinct, 0}, 0, 0 \
    }
#define SEGMENTS(mean, skewed, type) \
    &(const struct segment_spec) {   \
        mean, skewed, WF_ELEM_##type \
    }
static const struct huge_case pair_cases[] = {
    {"merge u32 random", run_merge, PAIR(U32, RANDOM, RANDOM, 50, 0), 100, 30},
    {"merge u32 random and sorted, rows, many", run_merge, PAIR(U32, RANDOM, SORTED, 60, 4), 220,
     40},
    {"merge u32 constant, rows", run_merge, PAIR(U32, CONSTANT, CONSTANT, 50, 4), 100, 40},
    {"merge i32 zipf and pareto, rows", run_merge, PAIR(I32, ZIPF, PARETO, 30, 4), 100, 40},
    {"merge f32 duplicates, wide rows", run_merge, PAIR(F32, DUPLICATES, RANDOM, 99, 8), 100, 50},
    {"merge u64 random", run_merge, PAIR(U64, RANDOM, ZIPF, 50, 0), 100, 40},
    {"merge i64 pareto, rows", run_merge, PAIR(I64, PARETO, PARETO, 50, 4), 100, 50},
    {"merge f64 random, rows", run_merge, PAIR(F64, RANDOM, SORTED, 1, 4), 100, 50},
    {"merge u128 duplicates, rows", run_merge, PAIR(U128, DUPLICATES, RANDOM, 50, 4), 100, 90},
    {"search u32 random, sorted", run_search, FIND(U32, RANDOM, RANDOM, 50, 4, 0, 1), 100, 50},
    {"search u32 random, any, upper", run_search, FIND(U32, RANDOM, ZIPF, 50, 4, 1, 0), 100, 50},
    {"search i64 pareto, sorted, upper", run_search, FIND(I64, PARETO, DUPLICATES, 70, 8, 1, 1),
     100, 60},
    {"search f64 zipf, any", run_search, FIND(F64, ZIPF, ZIPF, 50, 8, 0, 0), 100, 60},
    {"search u64 random, few in many", run_search, FIND(U64, RANDOM, RANDOM, 2, 8, 0, 1), 100, 60},
    {"search u64 constant in random, many", run_search, FIND(U64, CONSTANT, RANDOM, 90, 8, 1, 1),
     150, 60},
    {"balance 16", run_balance, SEGMENTS(16, 0, U32), 100, 50},
    {"balance 1, many", run_balance, SEGMENTS(1, 0, U32), 220, 40},
    {"balance skewed", run_balance, SEGMENTS(100, 1, U64), 100, 60},
    {"segments 16", run_segments, SEGMENTS(16, 0, U64), 100, 50},
    {"segments 1, many", run_segments, SEGMENTS(1, 0, U64), 220, 50},
    {"segments skewed", run_segments, SEGMENTS(1000, 1, U64), 100, 50},
    {"runs u32 random", run_runs, PAIR(U32, RANDOM, RANDOM, 100, 0), 100, 80},
    {"runs u32 zipf", run_runs, PAIR(U32, ZIPF, RANDOM, 100, 0), 100, 80},
    {"runs u32 constant", run_runs, PAIR(U32, CONSTANT, RANDOM, 100, 0), 100, 80},
    {"runs u64 sorted", run_runs, PAIR(U64, SORTED, RANDOM, 100, 0), 100, 100},
    {"runs i64 duplicates", run_runs, PAIR(I64, DUPLICATES, RANDOM, 100, 0), 100, 100},
    {"runs u32 pareto, many", run_runs, PAIR(U32, PARETO, RANDOM, 100, 0), 220, 60},
    {"reduce runs u32 zipf", run_reduce_runs, PAIR(U32, ZIPF, RANDOM, 100, 0), 100, 60},
    {"reduce runs u64 random", run_reduce_runs, PAIR(U64, RANDOM, RANDOM, 100, 0), 100, 90},
    {"reduce runs i32 constant", run_reduce_runs, PAIR(I32, CONSTANT, RANDOM, 100, 0), 100, 60},
    {"set union u32 random, many", run_set, SET(UNION, 0, U32, RANDOM, RANDOM, 50), 240, 40},
    {"set intersection u32 random", run_set, SET(INTERSECTION, 0, U32, RANDOM, RANDOM, 30), 100,
     50},
    {"set difference u32 zipf", run_set, SET(DIFFERENCE, 0, U32, ZIPF, ZIPF, 50), 100, 50},
    {"set symmetric u32 pareto", run_set, SET(SYMMETRIC, 0, U32, PARETO, ZIPF, 50), 100, 50},
    {"set union u64 sorted, distinct", run_set, SET(UNION, 1, U64, SORTED, RANDOM, 40), 100, 70},
    {"set intersection u64 zipf, distinct", run_set, SET(INTERSECTION, 1, U64, ZIPF, ZIPF, 50), 100,
     70},
    {"set difference i64 random", run_set, SET(DIFFERENCE, 0, I64, RANDOM, RANDOM, 70), 100, 70},
    {"set symmetric f32 random", run_set, SET(SYMMETRIC, 0, F32, SORTED, ZIPF, 50), 100, 50},
    {"set union u32 constant", run_set, SET(UNION, 0, U32, CONSTANT, CONSTANT, 50), 100, 50},
    {"set difference u128 duplicates", run_set,
     SET(DIFFERENCE, 0, U128, DUPLICATES, DUPLICATES, 50), 60, 110},
};

/* --- moves, in counts beyond 31 and 32 bits --- */

/* out[i] = in[place of i], in[j] = j mixed: known for every i. */
static void check_moved(wf_array out, int64_t n, bool inverse) {
    for (int64_t first = 0; first < n; first += CHUNK) {
        int mark = held_count;
        int64_t k = n - first < CHUNK ? n - first : CHUNK;
        wf_array v = vec(WF_ELEM_U64, k);
        wf_array t = vec(WF_ELEM_U64, k);
        wf_array expected = vec(out.type, k);
        iota(v, first, 1);
        permute(v, n, inverse);
        mix(v, t);
        narrow(expected, v);
        expect_same(part(out, first, k), expected, "moved");
        release_to(mark);
    }
}

struct move_spec {
    wf_elem type, index;
    int passes, scatter;
};

static void run_move(struct huge *h) {
    const struct move_spec *s = h->spec;
    int64_t n = h->n < 1 ? 1 : h->n;
    wf_array in = vec(s->type, n);
    wf_array out = vec(s->type, n);
    wf_array index = vec(s->index, n);
    for (int64_t first = 0; first < n; first += CHUNK) {
        int mark = held_count;
        int64_t k = n - first < CHUNK ? n - first : CHUNK;
        wf_array v = vec(WF_ELEM_U64, k);
        wf_array t = vec(WF_ELEM_U64, k);
        iota(v, first, 1);
        permute(v, n, false);
        narrow(part(index, first, k), v);
        iota(v, first, 1);
        mix(v, t);
        narrow(part(in, first, k), v);
        release_to(mark);
    }
    OK(s->scatter ? wf_prim_scatter(prim, at, out, in, index, s->passes, NULL)
                  : wf_prim_gather(prim, at, out, in, index, s->passes, NULL));
    h->ns = spent();
    check_moved(out, n, s->scatter);
}

static void check_iota(wf_array a, int64_t start, int64_t step, const char *what) {
    wf_array expected = vec(a.type, a.count < CHUNK ? a.count : CHUNK);
    for (int64_t first = 0; first < a.count; first += CHUNK) {
        expected.count = a.count - first < CHUNK ? a.count - first : CHUNK;
        iota(expected, start + first * step, step);
        expect_same(part(a, first, expected.count), expected, what);
    }
}

struct wide_spec {
    wf_elem type;
};

static void run_wide_map(struct huge *h) {
    const struct wide_spec *s = h->spec;
    wf_array a = vec(s->type, h->n);
    wf_array b = vec(s->type, h->n);
    wf_array flags = vec(WF_ELEM_BOOL, h->n);
    bool wide = width_of(s->type) == 8;
    iota(a, 3, 5);
    iota(b, -1, 2);
    map2(wide ? "SUB_I64" : "SUB_I32", a, a, b);
    h->ns = spent();
    check_iota(a, 4, 3, "map");
    mapk(wide ? "NE_I64" : "NE_I32", flags, a, 5); /* 3i + 4 = 5 modulo 2^32 for 1431655766 */
    int64_t k = h->n < 1431655766 ? h->n : 1431655766;
    for (int64_t first = 0; first < k; first += CHUNK) {
        wf_array some = part(flags, first, k - first < CHUNK ? k - first : CHUNK);
        expect_all(some, first, "flags");
    }
}

static void run_wide_scan(struct huge *h) {
    const struct wide_spec *s = h->spec;
    wf_array a = vec(s->type, h->n);
    uint64_t two = 2;
    OK(wf_prim_fill(prim, at, a, &two, NULL));
    OK(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, a, a, NULL));
    h->ns = spent();
    check_iota(a, 0, 2, "scan");
    uint64_t sum = 0;
    uint64_t n = (uint64_t)h->n;
    uint64_t expected = n * (n - 1);
    OK(wf_prim_reduce(prim, at, WF_FOLD_ADD, prim_array(s->type, &sum, 1), a, NULL));
    NEED(width_of(s->type) == 8 ? sum == expected : (uint32_t)sum == (uint32_t)expected,
         "reduction");
}

/* Rows whose number is no multiple of 64: the p-th is p + p / 63 + 1. */
static void check_sixty_three(wf_array rows) {
    for (int64_t first = 0; first < rows.count; first += CHUNK) {
        int mark = held_count;
        int64_t k = rows.count - first < CHUNK ? rows.count - first : CHUNK;
        wf_array p = vec(WF_ELEM_U64, k);
        wf_array q = vec(WF_ELEM_U64, k);
        wf_array expected = vec(rows.type, k);
        iota(p, first, 1);
        mapk("DIV_I64", q, p, 63);
        map2("ADD_I64", p, p, q);
        mapk("ADD_I64", p, p, 1);
        narrow(expected, p);
        expect_same(part(rows, first, k), expected, "compaction");
        release_to(mark);
    }
}

static void run_wide_compact(struct huge *h) {
    const struct wide_spec *s = h->spec;
    int64_t n = h->n;
    int64_t expected = n - (n + 63) / 64;
    wf_array flags = vec(WF_ELEM_BOOL, n);
    wf_array numbers = vec(WF_ELEM_U64, n);
    wf_array column = vec(WF_ELEM_U32, n);
    iota(numbers, 0, 1);
    iota(column, 0, 1);
    mapk("BITAND_I64", numbers, numbers, 63);
    mapk("NE_I64", flags, numbers, 0);
    wf_array in[] = {column, {.type = s->type}};
    wf_array out[] = {vec(WF_ELEM_U32, n), as(s->type, numbers)};
    int64_t count = 0;
    OK(wf_prim_compact(prim, at, 1, out, in, 2, flags, &count, NULL));
    h->ns = spent();
    NEED(count == expected, "%" PRId64 " kept, expected %" PRId64, count, expected);
    out[0].count = out[1].count = count;
    check_sixty_three(out[0]);
    check_sixty_three(out[1]);
    struct print ordered = print_of(out[0]);
    OK(wf_prim_compact(prim, at, 0, out, in, 1, flags, &count, NULL));
    expect_print(print_of(out[0]), ordered, "unordered");
    uint32_t most = 0x7fffffffU; /* below, then the rest */
    int64_t below = n < most ? n : most;
    out[0].count = n;
    OK(wf_prim_compact_compare(prim, at, 1, out, &column, 1, column, WF_COMPARE_LT, &most, &count,
                               NULL));
    NEED(count == below, "%" PRId64 " below 2^31 - 1", count);
    check_iota(part(out[0], 0, count), 0, 1, "compaction by comparison");
}

static void run_wide_histogram(struct huge *h) {
    wf_array column = vec(WF_ELEM_U32, h->n);
    uint64_t bins[256];
    iota(column, 0, 1);
    OK(wf_prim_histogram(prim, at, prim_array(WF_ELEM_U64, bins, 256), column, 0, 1 << 24, NULL));
    h->ns = spent();
    for (int64_t b = 0; b < 256; b++) { /* numbers begin anew at 2^32 */
        int64_t left = (h->n & 0xffffffffLL) - (b << 24);
        int64_t expected = left <= 0 ? 0 : left < 1 << 24 ? left : 1 << 24;
        expected += (h->n >> 32) << 24;
        NEED((int64_t)bins[b] == expected, "bin %" PRId64, b);
    }
    uint32_t one = 7;
    OK(wf_prim_fill(prim, at, column, &one, NULL)); /* one bin has them all */
    OK(wf_prim_histogram(prim, at, prim_array(WF_ELEM_U64, bins, 256), column, 0, 1, NULL));
    for (int64_t b = 0; b < 256; b++) {
        NEED((int64_t)bins[b] == (b == 7 ? h->n : 0), "bin %" PRId64 " of equal ones", b);
    }
}

#define MOVE(type, index, passes, scatter)               \
    &(const struct move_spec) {                          \
        WF_ELEM_##type, WF_ELEM_##index, passes, scatter \
    }
#define WIDE(type)              \
    &(const struct wide_spec) { \
        WF_ELEM_##type          \
    }
static const struct huge_case move_cases[] = {
    {"gather u32 by u32, one pass, many", run_move, MOVE(U32, U32, 1, 0), 220, 20},
    {"gather u32 by u32, 4 passes", run_move, MOVE(U32, U32, 4, 0), 100, 20},
    {"gather u64 by u64, 16 passes", run_move, MOVE(U64, U64, 16, 0), 100, 30},
    {"gather u64 by i64, passes chosen", run_move, MOVE(U64, I64, 0, 0), 100, 30},
    {"scatter u32 by u32, one pass, many", run_move, MOVE(U32, U32, 1, 1), 220, 20},
    {"scatter u32 by u64, 4 passes", run_move, MOVE(U32, U64, 4, 1), 100, 20},
    {"scatter u64 by u32, 16 passes", run_move, MOVE(U64, U32, 16, 1), 100, 30},
    {"scatter u64 by i64, passes chosen", run_move, MOVE(U64, I64, 0, 1), 100, 30},
    {"map u32, many", run_wide_map, WIDE(U32), 480, 12},
    {"map u64, many", run_wide_map, WIDE(U64), 220, 20},
    {"scan u32, many", run_wide_scan, WIDE(U32), 480, 12},
    {"scan u64, many", run_wide_scan, WIDE(U64), 480, 12},
    {"compact u32 and u64, many", run_wide_compact, WIDE(U64), 230, 24},
    {"compact u32 and u32, many", run_wide_compact, WIDE(U32), 230, 24},
    {"histogram u32, many", run_wide_histogram, WIDE(U32), 430, 6},
};

/* --- the checks themselves --- */

struct damage {
    struct order_check c;
};

static void judge_order(struct huge *h) {
    check_order(&((const struct damage *)h->spec)->c);
}

/* Whether a check of the order notices that element `to` has become a copy of element `from`, or
 * that the two have changed places. */
static bool notices(struct order_check c, wf_array where, int64_t from, int64_t to, bool both) {
    struct damage d = {c};
    struct huge h = {.spec = &d};
    uint64_t x[2], y[2];
    peek(where, from, x);
    peek(where, to, y);
    poke(where, to, x);
    if (both) {
        poke(where, from, y);
    }
    bool noticed = !attempt(judge_order, &h);
    poke(where, from, x);
    poke(where, to, y);
    return noticed && attempt(judge_order, &h);
}

static void damage_one(struct huge *h) {
    const struct sort_spec *s = h->spec;
    int64_t n = h->n;
    wf_array keys = vec(s->type, n);
    wf_array out = vec(s->type, n);
    wf_array rows = vec(WF_ELEM_U32, n);
    wf_array into = vec(WF_ELEM_U32, n);
    make_keys(keys, s->shape, 1);
    iota(rows, 0, 1);
    OK(wf_prim_sort(prim, at, &s->how, out, keys, &into, &rows, 1, NULL));
    struct order_check c = {
        .by = {s->type, NULL}, .in = keys, .out = out, .rows = into, .stable = 1};
    struct order_check bare = c;
    bare.rows = none;
    check_order(&c);
    NEED(notices(c, out, n / 5, n - n / 5, true), "keys that changed places");
    NEED(notices(bare, out, n / 5, n - n / 5, true), "keys that changed places, without rows");
    int64_t to = n / 2; /* the first of other keys becomes one more of those before */
    for (bool same = true; same; to += same) {
        uint64_t x[2] = {0};
        uint64_t y[2] = {0};
        peek(out, to - 1, x);
        peek(out, to, y);
        same = memcmp(x, y, 16) == 0;
    }
    NEED(notices(bare, out, to - 1, to, false), "a key that was lost");
    NEED(notices(c, into, n / 3, n / 2, false), "a row that came twice");
    NEED(notices(c, into, 1, n - 2, true), "rows that changed places");
    NEED(notices(c, into, 1, 2, true), "equal keys out of their order");
}

static void damage_words(struct huge *h) {
    wf_array a = vec(WF_ELEM_U32, h->n);
    wf_array b = vec(WF_ELEM_U32, h->n);
    wf_array flags = vec(WF_ELEM_BOOL, h->n);
    iota(a, 0, 1);
    iota(b, 0, 1);
    uint32_t other = 12;
    poke(b, h->n - 1, &other);
    map2("EQ_I32", flags, a, b);
    expect_all(flags, 0, "flags");
}

static void damage_same(struct huge *h) {
    wf_array a = vec(WF_ELEM_U64, h->n);
    wf_array b = vec(WF_ELEM_U64, h->n);
    iota(a, 0, 1);
    iota(b, 0, 1);
    uint64_t other = 12;
    poke(b, h->n / 2, &other);
    expect_same(a, b, "arrays");
}

static void damage_bounds(struct huge *h) {
    wf_array among = vec(WF_ELEM_U64, h->n);
    wf_array bounds = vec(WF_ELEM_U64, h->n);
    iota(among, 0, 1);
    iota(bounds, 0, 1);
    check_bounds(bounds, among, among, 0); /* right so far */
    uint64_t wrong = 1;
    poke(bounds, h->n / 2, &wrong);
    check_bounds(bounds, among, among, 0);
}

static const struct huge_case damage_cases[] = {
    {"damage u32", damage_one, SORT(RADIX, U32, SMALL, 4, 0), 100, 50},
    {"damage f64", damage_one, SORT(RADIX, F64, DUPLICATES, 4, 0), 100, 50},
    {"damage u128", damage_one, SORT(RADIX, U128, SMALL, 4, 0), 100, 90},
};

static void test_checks_fail(void **state) {
    (void)state;
    static void (*const wrong[])(struct huge * h) = {damage_words, damage_same, damage_bounds};
    cases_failed = 0;
    for (int place = 0; place < prim_places(); place++) {
        at = (wf_place)place;
        for (int i = 0; i < 3; i++) {
            run_case(&damage_cases[i], 3000);
        }
        assert_int_equal(cases_failed, 0);
        for (int i = 0; i < 3; i++) {
            struct huge h = {.n = 3000};
            assert_false(attempt(wrong[i], &h));
            assert_non_null(strstr(case_said, i == 0   ? "flags: 1 of 3000, the first at 2999"
                                              : i == 1 ? "arrays: the host"
                                                       : "bound too"));
        }
    }
}

enum { USUAL = 2011 };
#define RUN(cases) run_cases(cases, (int)(sizeof cases / sizeof *cases), USUAL)

static void test_sorts(void **state) {
    (void)state;
    RUN(sort_cases);
    RUN(text_cases);
}
static void test_splits(void **state) {
    (void)state;
    RUN(split_cases);
}
static void test_ascending(void **state) {
    (void)state;
    RUN(pair_cases);
}
static void test_moves(void **state) {
    (void)state;
    RUN(move_cases);
}

int main(int argc, char **argv) {
    huge_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks_fail), cmocka_unit_test(test_sorts),
        cmocka_unit_test(test_splits),      cmocka_unit_test(test_ascending),
        cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

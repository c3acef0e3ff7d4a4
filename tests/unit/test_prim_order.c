/* test_prim_order.c: split and sort, on both devices, against plain loops. */
#include "test_prim_fixture.h"

#ifdef __SANITIZE_ADDRESS__
enum { SORT_LARGE = 70000, SPLIT_LARGE = 150000 }; /* simulated threads are slow then */
#else
enum { SORT_LARGE = 270000, SPLIT_LARGE = 1000000 };
#endif
enum { PAYLOADS = 2 };
__extension__ typedef unsigned __int128 wide;

/* What orders a key of a type, as two words. */
struct rank {
    uint64_t high, low;
};

static uint64_t float_rank(double x) {
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, 8);
    return isnan(x) ? ~0ULL : bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static struct rank rank_of(wf_elem type, const void *keys, int64_t i) {
    switch (type) {
    case WF_ELEM_U32:
        return (struct rank){0, ((const uint32_t *)keys)[i]};
    case WF_ELEM_I32:
        return (struct rank){0, (uint64_t)((int64_t)((const int32_t *)keys)[i] + (1LL << 40))};
    case WF_ELEM_F32:
        return (struct rank){0, float_rank((double)((const float *)keys)[i])};
    case WF_ELEM_U64:
        return (struct rank){0, ((const uint64_t *)keys)[i]};
    case WF_ELEM_I64:
        return (struct rank){0, ((const uint64_t *)keys)[i] ^ 1ULL << 63};
    case WF_ELEM_F64:
        return (struct rank){0, float_rank(((const double *)keys)[i])};
    default:
        return (struct rank){((const uint64_t *)keys)[2 * i + 1], ((const uint64_t *)keys)[2 * i]};
    }
}

static int rank_compare(struct rank a, struct rank b) {
    return a.high != b.high ? (a.high < b.high ? -1 : 1) : a.low < b.low ? -1 : a.low > b.low;
}

static int64_t width_of(wf_elem type) {
    static const int64_t widths[] = {4, 4, 4, 8, 8, 8, 16, 16};
    return widths[type];
}

static void fill_keys(wf_elem type, enum prim_shape shape, void *keys, int64_t n, uint64_t seed) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = prim_key(shape, i, n, &seed);
        if (type == WF_ELEM_F32) {
            ((float *)keys)[i] = key % 50 == 0   ? -0.0F
                                 : key % 50 == 1 ? 0.0F
                                 : key % 50 == 2 ? (float)NAN
                                 : key % 50 == 3 ? (float)-NAN
                                                 : (float)(int64_t)(key << 3);
        } else if (type == WF_ELEM_F64) {
            ((double *)keys)[i] = key % 50 == 0   ? -0.0
                                  : key % 50 == 1 ? 0.0
                                  : key % 50 == 2 ? NAN
                                                  : (double)(int64_t)(key << 3);
        } else if (width_of(type) == 4) {
            ((uint32_t *)keys)[i] = (uint32_t)key;
        } else if (width_of(type) == 8) {
            ((uint64_t *)keys)[i] = key;
        } else {
            ((uint64_t *)keys)[2 * i] = key;
            ((uint64_t *)keys)[2 * i + 1] = key >> 3 & 0xff000000000000ffULL;
        }
    }
}

/* Payload element i holds i in its first four bytes. */
static void *payload_new(wf_elem type, int64_t n) {
    int64_t width = width_of(type);
    char *data = calloc((size_t)n + 1, (size_t)width);
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = (uint32_t)i;
        memcpy(data + i * width, &row, 4);
    }
    return data;
}

struct cell {
    wf_place place;
    wf_elem type;
    enum prim_shape shape;
    int64_t n;
    int payload_count;
    wf_elem payload_types[PAYLOADS];
};

struct arrays {
    void *keys, *out;
    void *in[PAYLOADS], *to[PAYLOADS];
    wf_array from[PAYLOADS], into[PAYLOADS];
};

static void arrays_new(struct arrays *a, const struct cell *c) {
    int64_t width = width_of(c->type);
    a->keys = calloc((size_t)c->n + 1, (size_t)width);
    a->out = calloc((size_t)c->n + 1, (size_t)width);
    fill_keys(c->type, c->shape, a->keys, c->n, (uint64_t)c->n + c->type);
    for (int p = 0; p < PAYLOADS; p++) {
        a->in[p] = a->to[p] = NULL;
        if (p < c->payload_count) {
            wf_elem type = c->payload_types[p];
            a->in[p] = payload_new(type, c->n);
            a->to[p] = calloc((size_t)c->n + 1, (size_t)width_of(type));
            a->from[p] = prim_array(type, a->in[p], c->n);
            a->into[p] = prim_array(type, a->to[p], c->n);
        }
    }
}

static void arrays_free(struct arrays *a) {
    free(a->keys);
    free(a->out);
    for (int p = 0; p < PAYLOADS; p++) {
        free(a->in[p]);
        free(a->to[p]);
    }
}

/* The row output element i came from, as its payload tells, -1 without; checks key and payloads. */
static int64_t row_of(const struct arrays *a, const struct cell *c, int64_t i) {
    int64_t width = width_of(c->type);
    int64_t row = -1;
    for (int p = 0; p < c->payload_count; p++) {
        int64_t bytes = width_of(c->payload_types[p]);
        uint32_t told;
        memcpy(&told, (char *)a->to[p] + i * bytes, 4);
        if ((row >= 0 && row != told) || told >= c->n ||
            memcmp((char *)a->to[p] + i * bytes, (char *)a->in[p] + told * bytes, (size_t)bytes) ||
            memcmp((char *)a->out + i * width, (char *)a->keys + told * width, (size_t)width)) {
            fail_msg("type %d, shape %d, %lld rows: payload %d of element %lld", c->type, c->shape,
                     (long long)c->n, p, (long long)i);
        }
        row = told;
    }
    return row;
}

static uint64_t sum_of(const void *data, int64_t bytes) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < bytes / 4; i++) {
        sum += ((const uint32_t *)data)[i] * (uint64_t)0x9e3779b97f4a7c15;
    }
    return sum;
}

/* --- sort --- */

static struct rank masked(struct rank r, const wf_sort *how) {
    if (how->high_bit) {
        wide all = (wide)r.high << 64 | r.low;
        int bits = how->high_bit - how->low_bit;
        all = all >> how->low_bit & (bits < 128 ? ((wide)1 << bits) - 1 : ~(wide)0);
        r = (struct rank){(uint64_t)(all >> 64), (uint64_t)all};
    }
    return r;
}

static void check_sort(const struct cell *c, wf_sort how) {
    struct arrays a;
    arrays_new(&a, c);
    assert_prim_ok(wf_prim_sort(prim, c->place, &how, prim_array(c->type, a.out, c->n),
                                prim_array(c->type, a.keys, c->n), a.into, a.from, c->payload_count,
                                NULL));
    bool stable = how.by != WF_SORT_BITONIC && how.by != WF_SORT_QUICK;
    int64_t last_row = -1;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t row = row_of(&a, c, i);
        int order = i ? rank_compare(masked(rank_of(c->type, a.out, i - 1), &how),
                                     masked(rank_of(c->type, a.out, i), &how))
                      : -1;
        order = i && how.descending ? -order : order;
        if (order > 0 || (order == 0 && stable && row >= 0 && row < last_row)) {
            fail_msg("sort %d on %d: type %d, shape %d, %lld rows: element %lld", how.by, c->place,
                     c->type, c->shape, (long long)c->n, (long long)i);
        }
        last_row = row;
    }
    int64_t bytes = c->n * width_of(c->type);
    assert_true(sum_of(a.out, bytes) == sum_of(a.keys, bytes));
    arrays_free(&a);
}

/* What travels with keys of each type: few combinations, because each is compiled. */
static struct cell cell_of(int place, int type, enum prim_shape shape, int64_t n) {
    static const struct {
        int count;
        wf_elem types[PAYLOADS];
    } payloads[] = {
        [WF_ELEM_U32] = {1, {WF_ELEM_U32}},
        [WF_ELEM_I32] = {1, {WF_ELEM_U32}},
        [WF_ELEM_F32] = {1, {WF_ELEM_U64}},
        [WF_ELEM_U64] = {0, {0}},
        [WF_ELEM_I64] = {0, {0}},
        [WF_ELEM_F64] = {2, {WF_ELEM_U32, WF_ELEM_U128}},
        [WF_ELEM_U128] = {1, {WF_ELEM_U64}},
    };
    return (struct cell){(wf_place)place,
                         (wf_elem)type,
                         shape,
                         n,
                         payloads[type].count,
                         {payloads[type].types[0], payloads[type].types[1]}};
}

static void test_sort_radix(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            struct cell c =
                cell_of(place, s % 7, (enum prim_shape)(s % SHAPE_COUNT), prim_sizes[s]);
            check_sort(&c, (wf_sort){WF_SORT_AUTO, s & 1, 0, 0});
        }
        for (int type = 0; type < 7; type++) {
            for (int shape = type & 1; shape < SHAPE_COUNT; shape += 2) {
                struct cell c = cell_of(place, type, (enum prim_shape)shape, 4001);
                check_sort(&c, (wf_sort){WF_SORT_RADIX, shape > 3, 0, 0});
            }
        }
    }
}

/* Large enough that a sort asks which passes do nothing; more where PRIM_TEST_MAX says so. */
static void test_sort_large(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        struct cell c = cell_of(place, WF_ELEM_U64, SHAPE_PARETO, prim_test_max(SORT_LARGE));
        check_sort(&c, (wf_sort){WF_SORT_RADIX, 0, 0, 0});
    }
}

static void test_sort_bits(void **state) {
    (void)state;
    static const int bits[][2] = {{0, 1}, {3, 10}, {4, 24}, {17, 32}, {5, 64}, {60, 128}, {64, 80}};
    for (int place = 0; place < prim_places(); place++) {
        for (int b = 0; b < 7; b++) {
            int type = bits[b][1] <= 32   ? WF_ELEM_U32
                       : bits[b][1] <= 64 ? WF_ELEM_U64
                                          : WF_ELEM_U128;
            struct cell c = cell_of(place, type, SHAPE_RANDOM, 3000);
            check_sort(&c, (wf_sort){WF_SORT_RADIX, b & 1, bits[b][0], bits[b][1]});
        }
    }
}

/* The ways a warp's elements find their equals, and shapes of tiles. */
static void test_sort_shapes(void **state) {
    (void)state;
    static const char *const shapes[] = {"128,4,0,8", "96,7,2,11", "256,3,1,5", "64,2,0,3"};
    for (int s = 0; s < 4 && prim_has_gpu; s++) {
        setenv("WARPFOX_SPLIT", shapes[s], 1);
        struct cell c = {WF_ON_GPU, WF_ELEM_U32, (enum prim_shape)(s * 5 % SHAPE_COUNT),
                         5000,      1,           {WF_ELEM_U32}};
        check_sort(&c, (wf_sort){WF_SORT_RADIX, 0, 0, 0});
        unsetenv("WARPFOX_SPLIT");
    }
}

/* --- split --- */

static uint64_t part_of(const struct cell *c, const wf_split *how, const void *keys, int64_t i) {
    uint64_t mask = (1ULL << how->bits) - 1;
    if (how->by == WF_SPLIT_RANGE) {
        uint64_t below = 0;
        for (int64_t k = 0; k < how->splitters.count; k++) {
            below += rank_compare(rank_of(c->type, how->splitters.data, k),
                                  rank_of(c->type, keys, i)) <= 0;
        }
        return below;
    }
    if (width_of(c->type) == 4) {
        uint32_t x = ((const uint32_t *)keys)[i];
        if (how->by == WF_SPLIT_HASH) {
            x = (x ^ x >> 16) * 0x85ebca6bu;
            x = (x ^ x >> 13) * 0xc2b2ae35u;
            x ^= x >> 16;
        }
        return x >> how->shift & mask;
    }
    if (width_of(c->type) == 8) {
        uint64_t x = ((const uint64_t *)keys)[i];
        if (how->by == WF_SPLIT_HASH) {
            x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
            x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
            x ^= x >> 32;
        }
        return x >> how->shift & mask;
    }
    wide all = (wide)((const uint64_t *)keys)[2 * i + 1] << 64 | ((const uint64_t *)keys)[2 * i];
    return (uint64_t)(all >> how->shift) & mask;
}

static void check_split(const struct cell *c, const wf_split *how) {
    struct arrays a;
    arrays_new(&a, c);
    int64_t parts = how->by == WF_SPLIT_RANGE ? how->splitters.count + 1 : (int64_t)1 << how->bits;
    uint64_t *starts = malloc((size_t)(parts + 1) * 8);
    memset(starts, 0xff, (size_t)(parts + 1) * 8);
    assert_prim_ok(wf_prim_split(prim, c->place, how, prim_array(c->type, a.out, c->n),
                                 prim_array(WF_ELEM_U64, starts, parts + 1),
                                 prim_array(c->type, a.keys, c->n), a.into, a.from,
                                 c->payload_count, NULL));
    assert_int_equal(starts[0], 0);
    assert_int_equal(starts[parts], c->n);
    char *seen = calloc((size_t)c->n + 1, 1);
    for (int64_t p = 0; p < parts; p++) {
        int64_t last = -1;
        for (int64_t i = (int64_t)starts[p]; i < (int64_t)starts[p + 1]; i++) {
            int64_t row = row_of(&a, c, i);
            bool wrong = row >= 0 && (how->unstable ? seen[row]++ != 0 : row <= last);
            if ((int64_t)part_of(c, how, a.out, i) != p || wrong) {
                fail_msg("split %d: type %d, %lld rows: element %lld of part %lld", how->by,
                         c->type, (long long)c->n, (long long)i, (long long)p);
            }
            last = row;
        }
        assert_true(starts[p] <= starts[p + 1]);
    }
    int64_t bytes = c->n * width_of(c->type);
    assert_true(sum_of(a.out, bytes) == sum_of(a.keys, bytes));
    free(seen);
    free(starts);
    arrays_free(&a);
}

static void test_split_bits(void **state) {
    (void)state;
    static const int bits[] = {0, 1, 4, 6, 8, 11, 13};
    static const int types[] = {WF_ELEM_I64, WF_ELEM_U128, WF_ELEM_U32, WF_ELEM_U32};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            struct cell c =
                cell_of(place, types[s % 4], (enum prim_shape)(s * 3 % SHAPE_COUNT), prim_sizes[s]);
            wf_split how = {.by = s % 4 == 3 ? WF_SPLIT_HASH : WF_SPLIT_RADIX, .bits = bits[s % 7]};
            how.shift = s % 5 * 4;
            check_split(&c, &how);
        }
        struct cell c = cell_of(place, WF_ELEM_U32, SHAPE_ZIPF, prim_test_max(SPLIT_LARGE));
        check_split(&c, &(wf_split){.by = WF_SPLIT_RADIX, .bits = 6});
        c = cell_of(place, WF_ELEM_U64, SHAPE_RANDOM, 5000);
        check_split(&c, &(wf_split){.by = WF_SPLIT_HASH, .bits = 7, .shift = 40});
    }
}

/* Unstable: one pass and two, a tile and one more or less, skew, payloads of both widths. */
static void test_split_unstable(void **state) {
    (void)state;
    static const struct {
        int type, bits, payload_count;
        wf_elem payload[PAYLOADS];
        int64_t sizes[4];
    } cases[] = {
        {WF_ELEM_U32, 6, 1, {WF_ELEM_U32}, {0, 8191, 8193, 20011}},
        {WF_ELEM_I64, 8, 2, {WF_ELEM_U64, WF_ELEM_I32}, {33, 4097, 6144, 13001}},
        {WF_ELEM_U32, 15, 1, {WF_ELEM_U32}, {1, 8192, 8193, 30011}},
        {WF_ELEM_U64, 11, 0, {WF_ELEM_U32}, {16384, 5000, 16385, 1}},
        {WF_ELEM_U128, 5, 1, {WF_ELEM_U32}, {0, 33, 1000, 3001}},
    };
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 20; s++) {
            int k = s % 5;
            struct cell c = {(wf_place)place,
                             (wf_elem)cases[k].type,
                             (enum prim_shape)(s * 3 % SHAPE_COUNT),
                             cases[k].sizes[s / 5],
                             cases[k].payload_count,
                             {cases[k].payload[0], cases[k].payload[1]}};
            wf_split how = {.by = k == 2 ? WF_SPLIT_HASH : WF_SPLIT_RADIX,
                            .bits = cases[k].bits,
                            .shift = s / 5,
                            .unstable = 1};
            check_split(&c, &how);
        }
        struct cell c = {(wf_place)place, WF_ELEM_U32, SHAPE_ZIPF, 0, 1, {WF_ELEM_U32}};
        c.n = prim_test_max(SPLIT_LARGE / 10);
        check_split(&c, &(wf_split){.by = WF_SPLIT_RADIX, .bits = 6, .unstable = 1});
        c.shape = SHAPE_CONSTANT;
        check_split(&c, &(wf_split){.by = WF_SPLIT_HASH, .bits = 15, .unstable = 1});
    }
}

static void test_split_range(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 2, 31, 256, 700};
    for (int place = 0; place < prim_places(); place++) {
        for (int type = 0; type < 7; type++) {
            struct cell c = cell_of(place, type, (enum prim_shape)(type % SHAPE_COUNT), 3001);
            int n = counts[type % 6];
            uint64_t splitters[2 * 700];
            uint64_t sorted[2 * 700];
            fill_keys(c.type, c.shape, splitters, n, 5);
            assert_prim_ok(wf_prim_sort(prim, WF_ON_CPU, NULL, prim_array(c.type, sorted, n),
                                        prim_array(c.type, splitters, n), NULL, NULL, 0, NULL));
            wf_split how = {.by = WF_SPLIT_RANGE, .splitters = prim_array(c.type, sorted, n)};
            how.unstable = type == 5; /* 700 splitters */
            check_split(&c, &how);
        }
    }
}

static void test_one_thread(void **state) {
    (void)state;
    wf_prim *before = prim;
    wf_database *db = prim_db;
    prim_start("1");
    struct cell c = {WF_ON_CPU, WF_ELEM_U64, SHAPE_RANDOM, 100003, 1, {WF_ELEM_U128}};
    check_sort(&c, (wf_sort){WF_SORT_RADIX, 0, 0, 0});
    check_split(&c, &(wf_split){.by = WF_SPLIT_HASH, .bits = 10});
    wf_prim_close(prim);
    wf_close(prim_db);
    prim = before;
    prim_db = db;
}

/* A budget that refuses the workspace: an error, nothing kept, and smaller calls go on. */
static void test_memory(void **state) {
    (void)state;
    enum { N = 1000000 };
    wf_prim *before = prim;
    wf_database *db = prim_db;
    const wf_option options[] = {{"threads", "2"}, {"memory", "8MB"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, options, &prim_db, NULL), WF_OK);
    assert_int_equal(wf_prim_open(prim_db, &prim), WF_OK);
    int64_t used = wf_memory_used(prim_db);
    uint64_t *keys = calloc(N, 8);
    uint64_t *out = calloc(N, 8);
    assert_prim_error(wf_prim_sort(prim, WF_ON_CPU, NULL, prim_array(WF_ELEM_U64, out, N),
                                   prim_array(WF_ELEM_U64, keys, N), NULL, NULL, 0, NULL),
                      "53200");
    assert_int_equal(wf_memory_used(prim_db), used);
    wf_work work = {NULL, 0, 0};
    assert_prim_ok(wf_prim_sort(prim, WF_ON_CPU, NULL, prim_array(WF_ELEM_U64, out, N),
                                prim_array(WF_ELEM_U64, keys, N), NULL, NULL, 0, &work));
    assert_true(work.needed >= 16LL * N);
    assert_prim_ok(wf_prim_sort(prim, WF_ON_CPU, NULL, prim_array(WF_ELEM_U64, out, 1000),
                                prim_array(WF_ELEM_U64, keys, 1000), NULL, NULL, 0, NULL));
    free(keys);
    free(out);
    wf_prim_close(prim);
    wf_close(prim_db);
    prim = before;
    prim_db = db;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_radix),     cmocka_unit_test(test_sort_large),
        cmocka_unit_test(test_sort_bits),      cmocka_unit_test(test_sort_shapes),
        cmocka_unit_test(test_split_bits),     cmocka_unit_test(test_split_range),
        cmocka_unit_test(test_split_unstable),
        cmocka_unit_test(test_one_thread),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

/* test_prim_match.c: joins on both devices: every algorithm, kind and type of key, against sorted
 * host arrays.
 *
 * A result is right when every row is a pair that matches, no pair comes twice, columns belong to
 * their rows, and there are as many rows as a search of the sorted keys counts. */
#include "test_prim_fixture.h"

enum { ALGORITHMS = WF_JOIN_DIRECT + 1 };

struct shape_spec {
    enum prim_shape r, s;
    uint64_t domain; /* keys modulo this; 0 = as they are */
};

struct check {
    wf_place place;
    wf_join_algorithm algorithm;
    wf_join_kind kind;
    wf_elem type;
    int64_t n, m;
    struct shape_spec shape;
    int band, sequential;
    uint64_t width;
    int64_t room; /* of one call; 0 = all */
    int columns;  /* a side's: 0 .. 3 */
    int no_rows;  /* row numbers are not asked for: values tell */
    int host;     /* device arrays otherwise */
    int counted;  /* rows are counted before any is asked for */
};

struct sides {
    void *keys[2];
    uint32_t *narrow[2]; /* column 0: row number * 3 + side */
    uint64_t *wide[2];   /* column 1: its square, and so on */
    int64_t count[2];
    uint64_t *sorted; /* words of S */
};

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t key_bytes(wf_elem type) {
    return type == WF_ELEM_TEXT                                                ? 16
           : type == WF_ELEM_U64 || type == WF_ELEM_I64 || type == WF_ELEM_F64 ? 8
                                                                               : 4;
}

/* Texts of the two sides lie in bytes of their own; whose spans an array has, its address tells. */
enum { TEXT_MOST = 40 };
static struct {
    char *bytes[2];
    const void *s_keys;
} texts;

static uint64_t text_word(const void *keys, int64_t i) {
    wf_span span = ((const wf_span *)keys)[i];
    const char *at = texts.bytes[keys == texts.s_keys] + span.offset;
    uint64_t word = span.length;
    for (uint64_t k = 0; k < span.length; k++) {
        word = (word ^ (unsigned char)at[k]) * 0x100000001b3ULL;
        word ^= word >> 29;
    }
    return word;
}

/* A text for a key: equal ones for equal keys, some empty, many with the same first bytes. */
static wf_span text_of(uint64_t key, char *bytes, int64_t row) {
    wf_span span = {(uint64_t)row * TEXT_MOST, 0};
    if (key % 101) {
        span.length =
            (uint64_t)snprintf(bytes + span.offset, TEXT_MOST, "%s%llu",
                               key & 1 ? "the same first bytes " : "", (unsigned long long)key);
    }
    return span;
}

/* Floats: several NaN, both zeros. */
static uint64_t float_of(uint64_t key, bool wide, int64_t row) {
    double value = key % 9 == 1 ? (row & 1 ? -0.0 : 0.0) : (double)(key % 1000003) / 8 - 100;
    float narrow = (float)value;
    uint64_t bits = 0;
    memcpy(&bits, wide ? (void *)&value : (void *)&narrow, wide ? 8 : 4);
    if (key % 9 == 0) {
        bits = (wide ? 0x7ff0000000000001ULL : 0x7f800001u) + (uint64_t)(row % 5);
        bits |= row & 1 ? (wide ? 1ULL << 63 : 1u << 31) : 0;
    }
    return bits;
}
static uint64_t float_word(uint64_t bits, bool wide) {
    uint64_t sign = wide ? 1ULL << 63 : 1ULL << 31;
    uint64_t infinity = wide ? 0x7ff0000000000000ULL : 0x7f800000u;
    return (bits & ~sign) > infinity ? infinity + 1 : bits == sign ? 0 : bits;
}

static uint64_t flip_of(wf_elem type) {
    return type == WF_ELEM_I32 ? 0x80000000ULL : type == WF_ELEM_I64 ? 0x8000000000000000ULL : 0;
}

static uint64_t word_of(const struct check *c, const void *keys, int64_t i) {
    if (c->type == WF_ELEM_TEXT) {
        return text_word(keys, i);
    }
    if (c->type == WF_ELEM_F32) {
        return float_word(((const uint32_t *)keys)[i], false);
    }
    if (c->type == WF_ELEM_F64) {
        return float_word(((const uint64_t *)keys)[i], true);
    }
    uint64_t key =
        key_bytes(c->type) == 8 ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
    return key ^ flip_of(c->type);
}

static void make_sides(const struct check *c, struct sides *s) {
    uint64_t seed = (uint64_t)(c->n * 31 + c->m);
    s->count[0] = c->n;
    s->count[1] = c->m;
    for (int side = 0; side < 2; side++) {
        int64_t n = s->count[side];
        s->keys[side] = malloc((size_t)n * 16 + 8);
        texts.bytes[side] = c->type == WF_ELEM_TEXT ? malloc((size_t)n * TEXT_MOST + 1) : NULL;
        s->narrow[side] = malloc((size_t)n * 4 + 8);
        s->wide[side] = malloc((size_t)n * 8 + 8);
        for (int64_t i = 0; i < n; i++) {
            uint64_t key = prim_key(side ? c->shape.s : c->shape.r, i, n, &seed);
            key = c->shape.domain ? key % c->shape.domain : key;
            if (c->type == WF_ELEM_F32 || c->type == WF_ELEM_F64) {
                key = float_of(key, c->type == WF_ELEM_F64, i);
            }
            if (c->type == WF_ELEM_TEXT) {
                ((wf_span *)s->keys[side])[i] = text_of(key, texts.bytes[side], i);
            } else if (key_bytes(c->type) == 8) {
                ((uint64_t *)s->keys[side])[i] = key;
            } else {
                ((uint32_t *)s->keys[side])[i] = (uint32_t)key;
            }
            s->narrow[side][i] = (uint32_t)i * 3 + (uint32_t)side;
            s->wide[side][i] = (uint64_t)i * (uint64_t)i + (uint64_t)side;
        }
    }
    texts.s_keys = s->keys[1];
    s->sorted = malloc((size_t)c->m * 8 + 8);
    for (int64_t i = 0; i < c->m; i++) {
        s->sorted[i] = word_of(c, s->keys[1], i);
    }
    qsort(s->sorted, (size_t)c->m, 8, compare_u64);
}

static void free_sides(struct sides *s) {
    for (int side = 0; side < 2; side++) {
        free(s->keys[side]);
        free(texts.bytes[side]);
        texts.bytes[side] = NULL;
        free(s->narrow[side]);
        free(s->wide[side]);
    }
    free(s->sorted);
}

static uint64_t last_word(const struct check *c, uint64_t word) {
    uint64_t most = key_bytes(c->type) == 8 ? ~0ULL : 0xffffffffULL;
    uint64_t width = c->band ? c->width : 0;
    return width > most - word ? most : word + width;
}

static int64_t below(const struct sides *s, uint64_t word, bool or_equal) {
    int64_t low = 0;
    int64_t high = s->count[1];
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (or_equal ? s->sorted[mid] <= word : s->sorted[mid] < word) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static int64_t matches(const struct check *c, const struct sides *s, int64_t row) {
    uint64_t word = word_of(c, s->keys[0], row);
    return below(s, last_word(c, word), true) - below(s, word, false);
}

static int64_t expected(const struct check *c, const struct sides *s) {
    int64_t total = 0;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t k = matches(c, s, i);
        total += c->kind == WF_JOIN_LEFT   ? (k ? k : 1)
                 : c->kind == WF_JOIN_SEMI ? k > 0
                 : c->kind == WF_JOIN_ANTI ? k == 0
                                           : k;
    }
    return total;
}

struct result {
    void *keys;
    uint32_t *r_rows, *narrow[2];
    int64_t *s_rows;
    uint64_t *wide[2];
    uint64_t *pairs;
    int64_t total;
};

static void make_result(struct result *out, int64_t total) {
    size_t n = (size_t)total + 1;
    out->keys = malloc(n * 16);
    out->r_rows = malloc(n * 4);
    out->s_rows = malloc(n * 8);
    out->pairs = malloc(n * 8);
    for (int side = 0; side < 2; side++) {
        out->narrow[side] = malloc(n * 4);
        out->wide[side] = malloc(n * 8);
    }
    out->total = 0;
}

static void free_result(struct result *out) {
    free(out->keys);
    free(out->r_rows);
    free(out->s_rows);
    free(out->pairs);
    for (int side = 0; side < 2; side++) {
        free(out->narrow[side]);
        free(out->wide[side]);
    }
}

/* Rows of the result one by one. */
static void check_rows(const struct check *c, const struct sides *s, const struct result *out) {
    bool semi = c->kind >= WF_JOIN_SEMI;
    for (int64_t i = 0; i < out->total; i++) {
        int64_t r = c->no_rows ? (int64_t)(out->narrow[0][i] / 3) : (int64_t)out->r_rows[i];
        assert_in_range(r, 0, c->n - 1);
        int64_t q = semi                ? -1
                    : !c->no_rows       ? out->s_rows[i]
                    : out->narrow[1][i] ? (int64_t)(out->narrow[1][i] / 3)
                                        : -1;
        uint64_t word = word_of(c, s->keys[0], r);
        assert_true(word_of(c, out->keys, i) == word);
        if (q >= 0) {
            uint64_t other = word_of(c, s->keys[1], q);
            assert_true(q < c->m && other >= word && other <= last_word(c, word));
        } else if (c->kind != WF_JOIN_SEMI) {
            assert_int_equal(matches(c, s, r), 0);
        } else {
            assert_true(matches(c, s, r) > 0);
        }
        if (c->columns > 0) {
            assert_int_equal(out->narrow[0][i], (uint32_t)r * 3);
            assert_true(semi || out->narrow[1][i] == (q < 0 ? 0 : (uint32_t)q * 3 + 1));
        }
        if (c->columns > 1) {
            assert_true(out->wide[0][i] == (uint64_t)r * (uint64_t)r);
            assert_true(semi || out->wide[1][i] == (q < 0 ? 0 : (uint64_t)q * (uint64_t)q + 1));
        }
        out->pairs[i] = (uint64_t)r << 32 | (uint32_t)q;
    }
    qsort(out->pairs, (size_t)out->total, 8, compare_u64);
    for (int64_t i = 1; i < out->total; i++) {
        assert_true(out->pairs[i] != out->pairs[i - 1]);
    }
}

static wf_array part_of(wf_elem type, void *data, int64_t done, int64_t room, bool wanted) {
    int64_t bytes = key_bytes(type);
    return prim_array(type, wanted ? (char *)data + done * bytes : NULL, room);
}

/* The output that starts behind the rows there are. */
static wf_join_out out_from(const struct check *c, struct result *to, int64_t room,
                            wf_array cols[2][3]) {
    bool semi = c->kind >= WF_JOIN_SEMI;
    wf_join_out out = {.keys = part_of(c->type, to->keys, to->total, room, true)};
    out.r_rows = part_of(WF_ELEM_U32, to->r_rows, to->total, room, !c->no_rows);
    out.s_rows = part_of(WF_ELEM_I64, to->s_rows, to->total, room, !semi && !c->no_rows);
    for (int side = 0; side < 2; side++) {
        bool wanted = side == 0 || !semi;
        cols[side][0] = part_of(WF_ELEM_U32, to->narrow[side], to->total, room, wanted);
        cols[side][1] = part_of(WF_ELEM_F64, to->wide[side], to->total, room, wanted);
        cols[side][2] = part_of(WF_ELEM_U32, NULL, to->total, room, false);
    }
    out.r_columns = cols[0];
    out.s_columns = cols[1];
    return out;
}

static void run_join(const struct check *c, const struct sides *s, wf_join_spec *spec) {
    int64_t total = expected(c, s);
    int64_t room = c->room ? c->room : total;
    struct result out;
    wf_array cols[2][3];
    int64_t count = 0;
    make_result(&out, total + room);
    if (!c->room) {
        wf_join_out to = out_from(c, &out, total, cols);
        assert_prim_ok(wf_prim_join(prim, c->place, spec, &to, &out.total));
    } else {
        wf_join *join = NULL;
        assert_prim_ok(wf_prim_join_open(prim, c->place, spec, &join));
        if (total & 1 || c->counted) {
            assert_prim_ok(wf_prim_join_count(join, &count));
            assert_int_equal(count, total);
        }
        do {
            int64_t left = total - out.total;
            wf_join_out to = out_from(c, &out, left && left < room ? left : room, cols);
            assert_prim_ok(wf_prim_join_next(join, &to, &count));
            out.total += count;
        } while (count > 0);
        wf_prim_join_close(join);
    }
    assert_int_equal(out.total, total);
    check_rows(c, s, &out);
    free_result(&out);
}

static void *on_device(const struct check *c, void *host, int64_t bytes) {
    void *data = NULL;
    if (c->host || c->place == WF_ON_CPU) {
        return host;
    }
    assert_prim_ok(wf_prim_alloc(prim, c->place, bytes + 1, &data));
    assert_prim_ok(wf_prim_copy(prim, data, host, bytes));
    return data;
}

static void check_join(struct check c) {
    struct sides s;
    make_sides(&c, &s);
    wf_array cols[2][3];
    wf_join_spec spec = {.algorithm = c.algorithm,
                         .kind = c.kind,
                         .band = c.band,
                         .width = c.width,
                         .sequential = c.sequential,
                         .want_rows = !c.no_rows};
    wf_join_side *sides[2] = {&spec.r, &spec.s};
    for (int i = 0; i < 2; i++) {
        int64_t n = s.count[i];
        cols[i][0] = prim_array(WF_ELEM_U32, on_device(&c, s.narrow[i], n * 4), n);
        cols[i][1] = prim_array(WF_ELEM_F64, on_device(&c, s.wide[i], n * 8), n);
        cols[i][2] = cols[i][0];
        sides[i]->keys = prim_array(c.type, on_device(&c, s.keys[i], n * key_bytes(c.type)), n);
        if (c.type == WF_ELEM_TEXT) {
            sides[i]->keys.bytes = on_device(&c, texts.bytes[i], n * TEXT_MOST);
            sides[i]->keys.byte_count = n * TEXT_MOST;
        }
        sides[i]->columns = cols[i];
        sides[i]->column_count = c.columns;
    }
    run_join(&c, &s, &spec);
    for (int i = 0; i < 2; i++) {
        wf_prim_free(prim, cols[i][0].data == s.narrow[i] ? NULL : cols[i][0].data);
        wf_prim_free(prim, cols[i][1].data == (void *)s.wide[i] ? NULL : cols[i][1].data);
        wf_prim_free(prim, sides[i]->keys.data == s.keys[i] ? NULL : sides[i]->keys.data);
        wf_prim_free(prim, sides[i]->keys.bytes == texts.bytes[i]
                               ? NULL
                               : (void *)(size_t)sides[i]->keys.bytes);
    }
    free_sides(&s);
}

static const wf_elem types[] = {WF_ELEM_U32, WF_ELEM_I64, WF_ELEM_I32, WF_ELEM_U64};

/* Unique, nearly unique and repeated keys; sizes around tiles. */
static void test_kinds(void **state) {
    (void)state;
    static const struct shape_spec shapes[] = {{SHAPE_SORTED, SHAPE_SORTED, 0},
                                               {SHAPE_RANDOM, SHAPE_REVERSED, 700},
                                               {SHAPE_RANDOM, SHAPE_RANDOM, 900},
                                               {SHAPE_RANDOM, SHAPE_SORTED, 1500},
                                               {SHAPE_ZIPF, SHAPE_DUPLICATES, 500}};
    int k = 0;
    for (int place = 0; place < prim_places(); place++) {
        for (int a = 0; a < ALGORITHMS; a++) {
            for (int kind = 0; kind < 4; kind++) {
                for (int j = 0; j < 2 - place; j++, k++) {
                    check_join((struct check){.place = (wf_place)place,
                                              .algorithm = (wf_join_algorithm)a,
                                              .kind = (wf_join_kind)kind,
                                              .type = types[k % 4],
                                              .n = k % 3 ? 1201 : 517,
                                              .m = k % 5 ? 1025 : 300,
                                              .shape = shapes[(k + a + place) % 5],
                                              .sequential = k & 1,
                                              .room = k % 4 == 1 ? 777 : 0,
                                              .columns = k % 4,
                                              .host = k % 3 == 0});
                }
            }
        }
    }
}

/* Counted first, then written in one call: unique keys whose order is not that of their rows. */
static void test_counted(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int k = 0; k < 4 * ALGORITHMS; k++) {
            check_join((struct check){.place = (wf_place)place,
                                      .algorithm = (wf_join_algorithm)(k / 4),
                                      .kind = (wf_join_kind)(k % 4),
                                      .type = types[(k / 4 + k) % 4],
                                      .n = 400,
                                      .m = 301,
                                      .shape = {SHAPE_SORTED, SHAPE_REVERSED, 0},
                                      .room = 1000,
                                      .columns = 1,
                                      .no_rows = k & 1,
                                      .counted = 1});
        }
    }
}

/* Counting that failed leaves a join that knows nothing of its rows. */
static void test_count_refused(void **state) {
    (void)state;
    enum { N = 1000 };
    uint32_t keys[N];
    uint32_t out_keys[N];
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = i * 7919u;
    }
    for (int place = 0; place < prim_places(); place++) {
        wf_join *join = NULL;
        int64_t count = 0;
        wf_join_spec spec = {.algorithm = WF_JOIN_PLAIN_HASH, .memory_limit = 24000};
        wf_join_out out = {.keys = prim_array(WF_ELEM_U32, out_keys, N)};
        spec.r.keys = spec.s.keys = prim_array(WF_ELEM_U32, keys, N);
        assert_prim_ok(wf_prim_join_open(prim, (wf_place)place, &spec, &join));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(wf_prim_join_count(join, &count), WF_NO_MEMORY);
            assert_string_equal(wf_prim_error(prim)->sqlstate, "53200");
        }
        assert_int_equal(wf_prim_join_next(join, &out, &count), WF_NO_MEMORY);
        assert_string_equal(wf_prim_error(prim)->sqlstate, "53200");
        wf_prim_join_close(join);
    }
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 31, 33, 2047, 2048, 2049, 4097};
    int k = 0;
    for (int place = 0; place < prim_places(); place++) {
        for (int a = 0; a < ALGORITHMS; a++) {
            for (int i = 0; i < 8; i++, k++) {
                int64_t n = sizes[i];
                int64_t m = sizes[(k * 3 + a) % 8];
                if (a == WF_JOIN_NINLJ && n * m > 5000000) {
                    continue;
                }
                check_join((struct check){.place = (wf_place)place,
                                          .algorithm = (wf_join_algorithm)a,
                                          .kind = (wf_join_kind)(k % 4),
                                          .type = types[k / 3 % 4],
                                          .n = n,
                                          .m = m,
                                          .shape = {SHAPE_RANDOM, SHAPE_SORTED, 5000},
                                          .columns = 1,
                                          .no_rows = (k % 4 == 0),
                                          .host = 1});
            }
        }
    }
}

static void test_band(void **state) {
    (void)state;
    static const uint64_t widths[] = {0, 1, 5, 1000, ~0ULL};
    for (int place = 0; place < prim_places(); place++) {
        for (int a = WF_JOIN_AUTO; a <= WF_JOIN_SMJ; a++) {
            for (int i = 0; i < 5; i++) {
                uint64_t width = widths[i];
                check_join((struct check){.place = (wf_place)place,
                                          .algorithm = (wf_join_algorithm)a,
                                          .kind = (wf_join_kind)((a + i) % 4),
                                          .type = types[(i + a) % 4],
                                          .n = width > 99 ? 70 : 900,
                                          .m = width > 99 ? 90 : 1100,
                                          .shape = {SHAPE_RANDOM, SHAPE_RANDOM, 3000},
                                          .band = 1,
                                          .width = width,
                                          .room = i == 2 ? 333 : 0,
                                          .sequential = i & 1,
                                          .columns = 2});
            }
        }
    }
}

/* Larger sides and heavy keys: up to all equal, in one call and in many. */
static void test_skew(void **state) {
    (void)state;
    static const struct shape_spec shapes[] = {{SHAPE_CONSTANT, SHAPE_SORTED, 0},
                                               {SHAPE_DUPLICATES, SHAPE_SORTED, 20000},
                                               {SHAPE_ZIPF, SHAPE_REVERSED, 20000},
                                               {SHAPE_PARETO, SHAPE_ZIPF, 40000000}};
    for (int place = 0; place < prim_places(); place++) {
        for (int a = WF_JOIN_INLJ; a < ALGORITHMS; a++) {
            bool sequential = a == WF_JOIN_INLJ;
            for (int i = 0; i < 3; i++) {
                check_join((struct check){.place = (wf_place)place,
                                          .algorithm = (wf_join_algorithm)a,
                                          .kind = i == 2 ? WF_JOIN_LEFT : WF_JOIN_INNER,
                                          .type = types[(i + a) % 4],
                                          .n = 4019,
                                          .m = 3509,
                                          .shape = shapes[i],
                                          .sequential = sequential,
                                          .room = i == 1 ? 2500 : 0,
                                          .columns = 1});
            }
            check_join((struct check){.place = (wf_place)place,
                                      .algorithm = (wf_join_algorithm)a,
                                      .type = WF_ELEM_U32,
                                      .n = 30,
                                      .m = 5000,
                                      .shape = {SHAPE_CONSTANT, SHAPE_CONSTANT, 0},
                                      .room = a & 1 ? 50001 : 0,
                                      .columns = 1});
        }
    }
}

/* Keys 0 and the greatest leave no value to mark empty slots with. */
static void test_extremes(void **state) {
    (void)state;
    uint32_t r[] = {0, 0xffffffffu, 5, 7, 0, 0x80000000u};
    uint32_t s[] = {0xffffffffu, 0, 7, 9, 0x7fffffffu};
    uint32_t rows[16];
    for (int place = 0; place < prim_places(); place++) {
        for (int a = 0; a < WF_JOIN_DIRECT; a++) {
            for (int type = WF_ELEM_U32; type <= WF_ELEM_I32; type++) {
                wf_join_spec spec = {.algorithm = (wf_join_algorithm)a, .want_rows = 1};
                spec.r.keys = prim_array((wf_elem)type, r, 6);
                spec.s.keys = prim_array((wf_elem)type, s, 5);
                wf_join_out out = {.r_rows = prim_array(WF_ELEM_U32, rows, 16)};
                int64_t count = 0;
                assert_prim_ok(wf_prim_join(prim, (wf_place)place, &spec, &out, &count));
                assert_int_equal(count, 4);
            }
        }
    }
}

/* Parts of S too large for a table or a sort of their own: they are cut into chunks. All of S one
 * key, most of it, a few heavy keys, a key on either end; every kind; with room for all, and less.
 */
static void test_heavy_part(void **state) {
    (void)state;
    static const struct shape_spec heavy[] = {{SHAPE_SMALL, SHAPE_CONSTANT, 0},
                                              {SHAPE_RANDOM, SHAPE_SMALL, 3},
                                              {SHAPE_SORTED, SHAPE_ZIPF, 0},
                                              {SHAPE_SORTED, SHAPE_PARETO, 0}};
    for (int t = 0; t < 2 * 16 * prim_places(); t++) {
        check_join(
            (struct check){.place = (wf_place)(t / 32),
                           .algorithm = t & 1 ? WF_JOIN_RADIX_HASH : WF_JOIN_PARTITIONED_HASH,
                           .kind = (wf_join_kind)(t / 2 % 4),
                           .type = types[t / 8 % 4],
                           .n = 40 + t % 5,
                           .m = t % 3 ? 20003 : 40001,
                           .shape = heavy[t / 8 % 4],
                           .room = t % 7 == 3 ? 3000 : 0,
                           .columns = t % 3});
    }
    for (int place = 0; place < prim_places(); place++) {
        for (int a = WF_JOIN_RADIX_HASH; a <= WF_JOIN_PARTITIONED_HASH; a++) {
            check_join((struct check){.place = (wf_place)place,
                                      .algorithm = (wf_join_algorithm)a,
                                      .kind = WF_JOIN_LEFT,
                                      .type = a == WF_JOIN_RADIX_HASH ? WF_ELEM_U64 : WF_ELEM_U32,
                                      .n = 211,
                                      .m = 20003,
                                      .shape = {SHAPE_SMALL, SHAPE_CONSTANT, 0},
                                      .columns = 1});
        }
    }
}

/* One worker; and nothing is left of what joins took. */
static void test_one_thread(void **state) {
    (void)state;
    wf_prim *before = prim;
    wf_database *db = prim_db;
    prim_start("1");
    int64_t used = wf_memory_used(prim_db);
    for (int a = 0; a < ALGORITHMS; a++) {
        check_join((struct check){.algorithm = (wf_join_algorithm)a,
                                  .kind = (wf_join_kind)(a % 4),
                                  .type = types[a % 4],
                                  .n = 5003,
                                  .m = 2003,
                                  .shape = {SHAPE_RANDOM, SHAPE_SORTED, 3000},
                                  .room = a == WF_JOIN_PARTITIONED_HASH ? 100 : 0,
                                  .columns = 2});
        assert_int_equal(wf_memory_used(prim_db), used);
    }
    wf_prim_close(prim);
    wf_close(prim_db);
    prim = before;
    prim_db = db;
}

/* The largest that is cheap enough, through the chooser and the split. */
static void test_large(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int a = 0; a < 3; a++) {
            static const wf_join_algorithm which[] = {WF_JOIN_AUTO, WF_JOIN_PARTITIONED_HASH,
                                                      WF_JOIN_PLAIN_HASH};
            int64_t n = prim_test_max(a != 1 ? 40009 : place ? 100003 : 1000003);
            check_join((struct check){.place = (wf_place)place,
                                      .algorithm = which[a],
                                      .type = a == 1 ? WF_ELEM_U32 : WF_ELEM_U64,
                                      .n = n,
                                      .m = n,
                                      .shape = {a ? SHAPE_SORTED : SHAPE_RANDOM, SHAPE_REVERSED, 0},
                                      .no_rows = 1,
                                      .columns = 1});
        }
    }
}

/* Keys that are no integers: every algorithm and kind; with room for all, and in windows. */
static void test_other_keys(void **state) {
    (void)state;
    static const wf_elem others[] = {WF_ELEM_F32, WF_ELEM_TEXT, WF_ELEM_F64};
    static const int64_t sizes[][2] = {{700, 600}, {0, 5}, {5, 0}, {1, 1}, {3001, 90}, {257, 2003}};
    static const struct shape_spec shapes[] = {{SHAPE_RANDOM, SHAPE_RANDOM, 900},
                                               {SHAPE_SORTED, SHAPE_REVERSED, 0},
                                               {SHAPE_CONSTANT, SHAPE_SORTED, 0},
                                               {SHAPE_ZIPF, SHAPE_RANDOM, 300}};
    for (int place = 0; place < prim_places(); place++) {
        for (int t = 0; t < 3 * 12; t++) {
            int a = t / 3 % ALGORITHMS;
            int s = t % 7 % 6;
            wf_elem type = others[t % 3];
            if (a == WF_JOIN_DIRECT && type != WF_ELEM_TEXT) {
                a = WF_JOIN_AUTO; /* floats are spread too far */
            }
            check_join((struct check){.place = (wf_place)place,
                                      .algorithm = (wf_join_algorithm)a,
                                      .kind = (wf_join_kind)(t / 2 % 4),
                                      .type = type,
                                      .n = sizes[s][0],
                                      .m = sizes[s][1],
                                      .shape = shapes[t % 4],
                                      .room = t % 5 == 2 ? 100 : 0,
                                      .host = t & 1,
                                      .columns = t % 3});
        }
        uint32_t out[4];
        float f[4] = {0};
        wf_span bad[2] = {{0, 0}, {3, 5}};
        int64_t count;
        wf_array keys = prim_array(WF_ELEM_F32, f, 4);
        wf_join_spec spec = {.r.keys = keys, .s.keys = keys, .want_rows = 1, .band = 1};
        wf_join_out to = {.r_rows = prim_array(WF_ELEM_U32, out, 4)};
        assert_prim_error(wf_prim_join(prim, (wf_place)place, &spec, &to, &count), "0A000");
        spec.band = 0;
        spec.r.keys = (wf_array){WF_ELEM_TEXT, bad, 2, "seven b", 7};
        assert_prim_error(wf_prim_join(prim, (wf_place)place, &spec, &to, &count), "42804");
        spec.s.keys = spec.r.keys;
        assert_prim_error(wf_prim_join(prim, (wf_place)place, &spec, &to, &count), "22023");
    }
}

/* What AUTO takes for n dense keys with m; with `same`, every so many keys of either are equal. */
static wf_join_algorithm choice_of(wf_place place, int64_t n, int64_t m, int64_t same) {
    uint32_t *keys = malloc((size_t)(n > m ? n : m) * 4 + 4);
    for (int64_t i = 0; i < n || i < m; i++) {
        keys[i] = same && i % same == 0 ? 7 : (uint32_t)i;
    }
    wf_array r = prim_array(WF_ELEM_U32, keys, n);
    wf_array s = prim_array(WF_ELEM_U32, keys, m);
    wf_join_spec spec = {.r = {.keys = r, .columns = &r, .column_count = 1},
                         .s = {.keys = s, .columns = &s, .column_count = 1}};
    wf_join *join = NULL;
    assert_prim_ok(wf_prim_join_open(prim, place, &spec, &join));
    wf_join_algorithm algorithm = wf_prim_join_algorithm(join);
    wf_prim_join_close(join);
    free(keys);
    return algorithm;
}

/* Dense keys have a direct table while that stays in the cache, of which simt says that it has one
 * megabyte; both sides are split where it does not. */
static void test_choice(void **state) {
    (void)state;
    assert_int_equal(choice_of(WF_ON_CPU, 20000, 1000, 0), WF_JOIN_DIRECT);
    assert_int_equal(choice_of(WF_ON_CPU, 0, 0, 0), WF_JOIN_DIRECT);
    if (prim_has_gpu && !getenv("WARPFOX_TEST_GPU")) {
        assert_int_equal(choice_of(WF_ON_GPU, 20000, 1000, 0), WF_JOIN_DIRECT);
        assert_int_equal(choice_of(WF_ON_GPU, 230000, 220000, 0), WF_JOIN_PARTITIONED_HASH);
        assert_int_equal(choice_of(WF_ON_GPU, 230000, 220000, 20), WF_JOIN_SMJ);
    }
}

int main(void) {
    setenv("SIMT_SEED", "7", 0); /* no two splits come out in the same order unless they must */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted),    cmocka_unit_test(test_count_refused),
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_band),       cmocka_unit_test(test_skew),
        cmocka_unit_test(test_heavy_part), cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_one_thread), cmocka_unit_test(test_large),
        cmocka_unit_test(test_choice),     cmocka_unit_test(test_other_keys),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

/* test_prim_algebra.c: operators on packed tuples, on both devices, against plain loops.
 *
 * Words are kept as 128 bits here, whatever the relation's word; expected tuples are made field by
 * field, without the library's shifts. */
#include "test_prim_fixture.h"

__extension__ typedef unsigned __int128 word;

static int64_t bytes_of(wf_elem type) {
    return type == WF_ELEM_U32 ? 4 : type == WF_ELEM_U64 ? 8 : 16;
}

static word get(const wf_relation *r, int64_t i) {
    const char *at = (const char *)r->data + i * bytes_of(r->word);
    word w = 0;
    memcpy(&w, at, (size_t)bytes_of(r->word));
    return w;
}
static void set(const wf_relation *r, int64_t i, word w) {
    memcpy((char *)r->data + i * bytes_of(r->word), &w, (size_t)bytes_of(r->word));
}

static uint64_t field(const wf_relation *r, word w, int f) {
    int low = (int)bytes_of(r->word) * 8;
    for (int i = 0; i <= f; i++) {
        low -= r->bits[i];
    }
    word mask = ((word)1 << r->bits[f]) - 1;
    return (uint64_t)(w >> low & mask);
}
static word key(const wf_relation *r, word w) {
    int bits = 0;
    for (int f = 0; f < r->key_count; f++) {
        bits += r->bits[f];
    }
    return w >> (bytes_of(r->word) * 8 - bits);
}
static word pack(const wf_relation *r, const uint64_t *fields) {
    word w = 0;
    int low = (int)bytes_of(r->word) * 8;
    for (int f = 0; f < r->field_count; f++) {
        low -= r->bits[f];
        w |= (word)fields[f] << low;
    }
    return w;
}

static int by_word(const void *a, const void *b) {
    word x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* A key of one field and a value; U128: two key fields. */
static wf_relation layout(wf_elem type, int variant) {
    wf_relation r = {.word = type, .field_count = 2, .key_count = 1};
    static const unsigned char bits[3][2][4] = {
        {{20, 8}, {28, 4}}, {{40, 16}, {32, 30}}, {{30, 34, 12}, {64, 64}}};
    int t = type == WF_ELEM_U32 ? 0 : type == WF_ELEM_U64 ? 1 : 2;
    memcpy(r.bits, bits[t][variant], 4);
    if (r.bits[2]) {
        r.field_count = 3;
        r.key_count = 2;
    }
    return r;
}

/* n sorted tuples; `distinct`: keys all different. */
static wf_relation make(wf_elem type, int variant, enum prim_shape shape, int64_t n, uint64_t seed,
                        uint64_t range) {
    wf_relation r = layout(type, variant);
    word *words = malloc((size_t)n * sizeof *words + 16);
    r.data = malloc((size_t)(n * bytes_of(type)) + 16);
    r.count = n;
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = prim_key(shape, i, n, &seed) % range;
        uint64_t fields[3] = {k, prim_random(&seed), prim_random(&seed)};
        for (int f = 0; f < r.field_count; f++) {
            fields[f] &= r.bits[f] < 64 ? (1ULL << r.bits[f]) - 1 : ~0ULL;
        }
        if (r.key_count == 2) {
            fields[1] &= 1;
        }
        words[i] = pack(&r, fields);
    }
    qsort(words, (size_t)n, sizeof *words, by_word);
    for (int64_t i = 0; i < n; i++) {
        set(&r, i, words[i]);
    }
    free(words);
    return r;
}

static wf_relation room(wf_elem type, int64_t n) {
    wf_relation r = {.word = type, .room = n, .data = malloc((size_t)(n * bytes_of(type)) + 16)};
    memset(r.data, 0x5c, (size_t)(n * bytes_of(type)) + 16);
    return r;
}
static void drop(wf_relation *r) {
    free(r->data);
    free(r->fills);
    r->data = NULL;
    r->fills = NULL;
}

/* The relation in pages, some of them not full. */
static wf_relation paged(const wf_relation *in, int64_t page_rows) {
    wf_relation r = *in;
    r.form = WF_PAGED;
    r.page_rows = page_rows;
    r.page_count = 0;
    int64_t most = 3 * in->count / page_rows + 8;
    r.data = malloc((size_t)(most * page_rows * bytes_of(in->word)));
    memset(r.data, 0x77, (size_t)(most * page_rows * bytes_of(in->word)));
    r.fills = malloc((size_t)most * 4);
    int64_t done = 0;
    while (done < in->count) {
        int64_t p = r.page_count++;
        const int64_t fills[] = {page_rows, page_rows / 2 + 1, 0, page_rows - 1, 1};
        int64_t want = fills[p % 5];
        want = want < in->count - done ? want : in->count - done;
        for (int64_t i = 0; i < want; i++) {
            set(&r, p * page_rows + i, get(in, done + i));
        }
        r.fills[p] = (uint32_t)want;
        done += want;
    }
    r.fills[r.page_count++] = 0; /* behind the last row */
    return r;
}
static wf_relation paged_room(wf_elem type, int64_t page_rows, int64_t pages) {
    wf_relation r = room(type, pages * page_rows);
    r.form = WF_PAGED;
    r.page_rows = page_rows;
    r.room = pages;
    r.fills = malloc((size_t)pages * 4 + 16);
    return r;
}

/* Whether the relation is these words, in this order. */
static void check_words(const char *what, const wf_relation *r, const word *expected, int64_t n) {
    if (r->count != n) {
        fail_msg("%s: %lld tuples, not %lld", what, (long long)r->count, (long long)n);
    }
    int64_t at = 0;
    int64_t pages = r->form == WF_PAGED ? r->page_count : 1;
    for (int64_t p = 0; p < pages; p++) {
        int64_t fill = r->form == WF_PAGED ? r->fills[p] : n;
        for (int64_t i = 0; i < fill; i++, at++) {
            word w = get(r, (r->form == WF_PAGED ? p * r->page_rows : 0) + i);
            if (at >= n || w != expected[at]) {
                fail_msg("%s of %lld: tuple %lld is %llx", what, (long long)n, (long long)at,
                         (unsigned long long)w);
            }
        }
    }
    assert_int_equal(at, n);
}

/* PRIM_TEST_MAX within what a plain sort of 16-byte words does in a minute. */
static int64_t largest(int64_t usual) {
    int64_t most = prim_test_max(usual);
    return most < 1 << 26 ? most : 1 << 26;
}

static const wf_elem words3[] = {WF_ELEM_U32, WF_ELEM_U64, WF_ELEM_U128};

/* --- project, select, convert --- */

static void check_project(wf_place place, wf_elem type, wf_elem to, int64_t n, int form) {
    static const int orders[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 0}};
    const int *fields = orders[n % 3];
    wf_relation in = make(type, 0, SHAPE_RANDOM, n, (uint64_t)n + 1, 1 << 20);
    wf_relation pages = paged(&in, 1008);
    int count = n % 3 == 2 ? 1 : 2;
    wf_relation shape = {.word = to, .field_count = count};
    int bits = 0;
    for (int f = 0; f < count; f++) {
        shape.bits[f] = in.bits[fields[f]];
        bits += shape.bits[f];
    }
    wf_relation out =
        form & 2 ? paged_room(to, 1008, pages.page_count + n / 1008 + 1) : room(to, n);
    wf_status status =
        wf_prim_rel_project(prim, place, &out, form & 1 ? &pages : &in, fields, count, NULL);
    if (bits > bytes_of(to) * 8) {
        assert_int_not_equal(status, WF_OK);
    } else {
        assert_prim_ok(status);
        word *expected = calloc((size_t)n + 1, sizeof *expected);
        for (int64_t i = 0; i < n; i++) {
            uint64_t values[2];
            for (int f = 0; f < count; f++) {
                values[f] = field(&in, get(&in, i), fields[f]);
            }
            expected[i] = pack(&shape, values);
        }
        check_words("project", &out, expected, n);
        assert_int_equal(out.field_count, count);
        assert_int_equal(out.key_count, n % 3 == 0 ? 0
                                        : in.key_count < count
                                            ? in.key_count
                                            : 1 + (count == 2 && in.key_count == 2));
        free(expected);
    }
    drop(&in);
    drop(&pages);
    drop(&out);
}

static void test_project(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_project((wf_place)place, words3[s % 3], words3[(s + 1) % 3], prim_sizes[s],
                          s & 3);
            check_project((wf_place)place, words3[s % 3], words3[s % 3], prim_sizes[s],
                          (s + 1) & 3);
        }
        check_project((wf_place)place, WF_ELEM_U32, WF_ELEM_U32, largest(1000001), 0);
    }
}

static int holds(const wf_term *t, uint64_t v) {
    switch (t->compare) {
    case WF_COMPARE_EQ:
        return v == t->value;
    case WF_COMPARE_NE:
        return v != t->value;
    case WF_COMPARE_LT:
        return v < t->value;
    case WF_COMPARE_LE:
        return v <= t->value;
    case WF_COMPARE_GT:
        return v > t->value;
    default:
        return v >= t->value;
    }
}

static void check_select(wf_place place, wf_elem type, int64_t n, int form, int unordered) {
    wf_relation in = make(type, 0, SHAPE_RANDOM, n, (uint64_t)n + 5, 1 << 20);
    wf_relation pages = paged(&in, 1040);
    uint64_t seed = (uint64_t)n;
    wf_term terms[6];
    static const int term_counts[] = {0, 2, 5}; /* few texts are compiled */
    int count = type == WF_ELEM_U32 ? term_counts[n % 3] : type == WF_ELEM_U64 ? 3 : 1;
    for (int t = 0; t < count; t++) {
        int f = t % in.field_count;
        uint64_t top = f == 0 ? 1 << 20 : 256;
        terms[t] =
            (wf_term){f, (wf_compare)(prim_random(&seed) % 6), prim_random(&seed) % top, t / 2};
        if (t == 4) { /* beyond every field but the widest */
            terms[t].value = t & 1 ? 0 : 1ULL << 41;
        }
    }
    word *expected = calloc((size_t)n + 1, sizeof *expected);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int any = count == 0;
        int all = 1;
        for (int t = 0; t < count; t++) {
            all = all && holds(&terms[t], field(&in, get(&in, i), terms[t].field));
            if (t + 1 == count || terms[t + 1].clause != terms[t].clause) {
                any = any || all;
                all = 1;
            }
        }
        if (any) {
            expected[kept++] = get(&in, i);
        }
    }
    wf_relation out =
        form & 2 ? paged_room(type, 1040, pages.page_count + n / 1040 + 1) : room(type, kept);
    assert_prim_ok(wf_prim_rel_select(prim, place, &out, form & 1 ? &pages : &in, terms, count,
                                      unordered, NULL));
    if (unordered && !(form & 2)) {
        assert_int_equal(out.count, kept);
        word *got = calloc((size_t)kept + 1, sizeof *got);
        for (int64_t i = 0; i < kept; i++) {
            got[i] = get(&out, i);
        }
        qsort(got, (size_t)kept, sizeof *got, by_word);
        assert_memory_equal(got, expected, (size_t)kept * sizeof *got);
        free(got);
    } else {
        check_words("select", &out, expected, kept);
    }
    if (kept > 0 && !(form & 2) && n < 50000) {
        out.room = kept - 1;
        assert_prim_error(wf_prim_rel_select(prim, place, &out, form & 1 ? &pages : &in, terms,
                                             count, unordered, NULL),
                          "54000");
        assert_int_equal(out.count, kept);
    }
    free(expected);
    drop(&in);
    drop(&pages);
    drop(&out);
}

static void test_select(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_select((wf_place)place, words3[s % 3], prim_sizes[s], s & 3, s % 5 == 0);
        }
        static const int64_t edges[] = {8191, 8192, 8193, 2047, 2049, 20000};
        for (int s = 0; s < 6; s++) {
            check_select((wf_place)place, words3[s % 3], edges[s], 0, 0);
        }
        check_select((wf_place)place, WF_ELEM_U32, largest(100003), 0, 0);
        check_select((wf_place)place, WF_ELEM_U32, 50000, 0, 1);
    }
}

static void test_convert(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 15, 16, 1000, 20011};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 6; s++) {
            int64_t n = sizes[s];
            wf_relation in = make(words3[s % 3], 0, SHAPE_RANDOM, n, 9, 1 << 20);
            word *expected = calloc((size_t)n + 1, sizeof *expected);
            for (int64_t i = 0; i < n; i++) {
                expected[i] = get(&in, i);
            }
            wf_relation loose = paged(&in, 496);
            wf_relation full = paged_room(in.word, 512, n / 512 + 1);
            wf_relation back = room(in.word, n);
            assert_prim_ok(wf_prim_rel_convert(prim, (wf_place)place, &full, &loose, NULL));
            check_words("convert", &full, expected, n);
            assert_int_equal(full.page_count, (n + 511) / 512);
            assert_int_equal(full.field_count, in.field_count);
            assert_prim_ok(wf_prim_rel_convert(prim, (wf_place)place, &back, &full, NULL));
            check_words("convert", &back, expected, n);
            if (n > 1) {
                back.room = n - 1;
                assert_prim_error(wf_prim_rel_convert(prim, (wf_place)place, &back, &full, NULL),
                                  "54000");
            }
            free(expected);
            drop(&in);
            drop(&loose);
            drop(&full);
            drop(&back);
        }
    }
}

/* --- product --- */

static void check_product(wf_place place, wf_elem type, wf_elem to, int64_t n, int64_t m,
                          int form) {
    wf_relation x = make(type, 0, SHAPE_RANDOM, n, 1, 1 << 20);
    wf_relation y = make(type, 0, SHAPE_RANDOM, m, 2, 1 << 20);
    if (type == WF_ELEM_U128) { /* fields of both must fit */
        y.field_count = 1;
        y.bits[0] = 50;
        y.key_count = 1;
    }
    wf_relation paged_x = paged(&x, 32);
    wf_relation out = form & 2 ? paged_room(to, 64, n * m / 64 + 1) : room(to, n * m);
    wf_relation paged_y = paged(&y, 16);
    assert_prim_ok(wf_prim_rel_product(prim, place, &out, form & 1 ? &paged_x : &x,
                                       form & 1 && n % 2 ? &paged_y : &y, NULL));
    assert_int_equal(out.field_count, x.field_count + y.field_count);
    word *expected = calloc((size_t)(n * m) + 1, sizeof *expected);
    for (int64_t i = 0; i < n * m; i++) {
        uint64_t fields[8];
        int at = 0;
        for (int f = 0; f < x.field_count; f++) {
            fields[at++] = field(&x, get(&x, i / m), f);
        }
        for (int f = 0; f < y.field_count; f++) {
            fields[at++] = field(&y, get(&y, i % m), f);
        }
        expected[i] = pack(&out, fields);
    }
    check_words("product", &out, expected, n * m);
    if (n * m > 0 && !(form & 2)) {
        out.room--;
        assert_prim_error(wf_prim_rel_product(prim, place, &out, &x, &y, NULL), "54000");
        assert_int_equal(out.count, n * m);
    }
    free(expected);
    drop(&x);
    drop(&y);
    drop(&paged_x);
    drop(&paged_y);
    drop(&out);
}

static void test_product(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{0, 5},    {5, 0},    {1, 1},    {3, 7},    {40, 100},
                                       {7, 4095}, {2, 9000}, {9000, 2}, {300, 33}, {1, 4097}};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 10; s++) {
            check_product((wf_place)place, WF_ELEM_U32, s & 1 ? WF_ELEM_U64 : WF_ELEM_U128,
                          sizes[s][0], sizes[s][1], s & 3);
            check_product((wf_place)place, WF_ELEM_U64, WF_ELEM_U128, sizes[s][0], sizes[s][1],
                          (s + 2) & 3);
        }
        check_product((wf_place)place, WF_ELEM_U128, WF_ELEM_U128, 13, 17, 0);
    }
}

/* --- sets and joins --- */

enum { JOIN_SET = 4 }; /* kinds: wf_rel_kind, then wf_rel_set */

/* wx or wy may be NULL, not both: no partner. */
static word joined(const wf_relation *out, const wf_relation *x, const wf_relation *y,
                   const word *wx, const word *wy, int missing) {
    uint64_t fields[8];
    int at = 0;
    for (int f = 0; f < x->field_count; f++) {
        uint64_t none = missing ? (x->bits[f] < 64 ? (1ULL << x->bits[f]) - 1 : ~0ULL) : 0;
        fields[at++] = wx ? field(x, *wx, f) : f < x->key_count ? field(y, *wy, f) : none;
    }
    for (int f = y->key_count; f < y->field_count; f++) {
        uint64_t none = missing ? (y->bits[f] < 64 ? (1ULL << y->bits[f]) - 1 : ~0ULL) : 0;
        fields[at++] = wy ? field(y, *wy, f) : none;
    }
    return pack(out, fields);
}

struct pairs {
    int64_t *x, *y, count, room;
};
static void add(struct pairs *p, int64_t x, int64_t y) {
    if (p->count == p->room) {
        p->room = p->room * 2 + 64;
        p->x = realloc(p->x, (size_t)p->room * 8);
        p->y = realloc(p->y, (size_t)p->room * 8);
    }
    p->x[p->count] = x;
    p->y[p->count++] = y;
}

/* Pairs of positions in the order promised. */
static struct pairs join_pairs(const wf_relation *x, const wf_relation *y, int kind) {
    struct pairs p = {NULL, NULL, 0, 0};
    int pairs = kind < JOIN_SET;
    int lone_x = kind == WF_REL_LEFT || kind == WF_REL_FULL || kind == JOIN_SET + WF_UNION ||
                 kind == JOIN_SET + WF_DIFFERENCE;
    int lone_y = kind == WF_REL_RIGHT || kind == WF_REL_FULL || kind == JOIN_SET + WF_UNION;
    int once = kind == JOIN_SET + WF_UNION || kind == JOIN_SET + WF_INTERSECTION;
    int64_t j = 0;
    for (int64_t i = 0; i <= x->count; i++) {
        word k = i < x->count ? key(x, get(x, i)) : 0;
        while (j < y->count && (i == x->count || key(y, get(y, j)) < k)) {
            int had = i > 0 && key(x, get(x, i - 1)) == key(y, get(y, j));
            if (lone_y && !had) {
                add(&p, -1, j);
            }
            j++;
        }
        if (i == x->count) {
            break;
        }
        int64_t end = j;
        while (end < y->count && key(y, get(y, end)) == k) {
            end++;
        }
        for (int64_t q = j; q < end && pairs; q++) {
            add(&p, i, q);
        }
        if (end == j ? lone_x : once) {
            add(&p, i, -1);
        }
    }
    return p;
}

enum { REL_STAGES = WF_STAGE_NETWORK + 1 };

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

struct join_case {
    wf_elem type, to;
    int kind, stage, form;
    enum prim_shape shape;
    int64_t n, m;
    uint64_t range;
};

/* Keys that are multiples of `gap`, every so many of which is left out. */
static void make_unique(wf_relation *r, uint64_t gap, int64_t left_out) {
    word at = 0;
    int low = (int)bytes_of(r->word) * 8;
    for (int f = 0; f < r->key_count; f++) {
        low -= r->bits[f];
    }
    for (int64_t i = 0; i < r->count; i++) {
        at += i % left_out == left_out - 1;
        set(r, i, at * gap << low | (get(r, i) & (((word)1 << low) - 1)));
        at++;
    }
}

static wf_status run_join(wf_place place, const struct join_case *c, wf_relation *out,
                          const wf_relation *x, const wf_relation *y) {
    wf_rel_join how = {.kind = (wf_rel_kind)c->kind,
                       .stage = (wf_join_stage)c->stage,
                       .missing = c->n & 1,
                       .profile = c->n == 1920};
    return c->kind < JOIN_SET
               ? wf_prim_rel_join(prim, place, &how, out, x, y, NULL)
               : wf_prim_rel_set(prim, place, (wf_rel_set)(c->kind - JOIN_SET), out, x, y, NULL);
}

static void check_positions(wf_place place, const struct join_case *c, const wf_relation *x,
                            const wf_relation *y) {
    int64_t count = 0;
    wf_rel_join how = {.kind = (wf_rel_kind)c->kind, .stage = (wf_join_stage)c->stage};
    wf_relation kx = *x; /* whole words are the keys */
    wf_relation ky = *y;
    kx.field_count = ky.field_count = kx.key_count = ky.key_count = 1;
    kx.bits[0] = ky.bits[0] = (unsigned char)(bytes_of(x->word) * 8);
    struct pairs p = join_pairs(&kx, &ky, c->kind);
    uint32_t *a = malloc((size_t)p.count * 4 + 4);
    uint32_t *b = malloc((size_t)p.count * 4 + 4);
    assert_prim_ok(wf_prim_join_sorted(prim, place, &how, prim_array(WF_ELEM_U32, a, p.count),
                                       prim_array(WF_ELEM_U32, b, p.count),
                                       prim_array(x->word, x->data, x->count),
                                       prim_array(y->word, y->data, y->count), &count, NULL));
    assert_int_equal(count, p.count);
    for (int64_t i = 0; i < count; i++) {
        if (a[i] != (uint32_t)p.x[i] || b[i] != (uint32_t)p.y[i]) {
            fail_msg("positions of %lld: pair %lld", (long long)count, (long long)i);
        }
    }
    free(a);
    free(b);
    free(p.x);
    free(p.y);
}

/* With a gap: keys are multiples of it, none of them twice. */
static void check_join_of(wf_place place, struct join_case c, uint64_t gap) {
    wf_relation x = make(c.type, 0, c.shape, c.n, 3, c.range);
    wf_relation y = make(c.type, 0, c.shape, c.m, 4, c.range);
    if (c.n > 0 && c.shape == SHAPE_SORTED) { /* words in common */
        memcpy(y.data, x.data, (size_t)((c.n < c.m ? c.n : c.m) * bytes_of(c.type)));
    }
    if (gap) {
        make_unique(&x, gap, 2 + c.n % 5);
        make_unique(&y, gap, 3);
    }
    struct pairs p = join_pairs(&x, &y, c.kind);
    wf_elem to = c.kind < JOIN_SET ? c.to : c.type;
    wf_relation paged_x = paged(&x, 512);
    wf_relation paged_y = paged(&y, 80);
    wf_relation out = c.form & 2 ? paged_room(to, 256, p.count / 256 + 1) : room(to, p.count);
    const wf_relation *in_x = c.form & 1 ? &paged_x : &x;
    const wf_relation *in_y = c.form & 4 ? &paged_y : &y;
    assert_prim_ok(run_join(place, &c, &out, in_x, in_y));
    word *expected = calloc((size_t)p.count + 1, sizeof *expected);
    for (int64_t i = 0; i < p.count; i++) {
        word wx = p.x[i] < 0 ? 0 : get(&x, p.x[i]);
        word wy = p.y[i] < 0 ? 0 : get(&y, p.y[i]);
        expected[i] = c.kind >= JOIN_SET
                          ? (p.x[i] < 0 ? wy : wx)
                          : joined(&out, &x, &y, p.x[i] >= 0 ? &wx : NULL,
                                   p.y[i] >= 0 ? &wy : NULL, c.n & 1);
    }
    check_words("join", &out, expected, p.count);
    if (p.count > 1 && !(c.form & 2) && p.count % 3 == 0) {
        memset((char *)out.data + (p.count - 1) * bytes_of(to), 0x5c, (size_t)bytes_of(to));
        out.room = p.count - 1;
        assert_prim_error(run_join(place, &c, &out, in_x, in_y), "54000");
        assert_int_equal(out.count, p.count);
        assert_int_equal(((unsigned char *)out.data)[(p.count - 1) * bytes_of(to)], 0x5c);
    }
    if ((c.kind == WF_REL_INNER || c.kind == WF_REL_FULL) && c.type == WF_ELEM_U32 && !c.stage) {
        check_positions(place, &c, &x, &y);
    }
    free(expected);
    free(p.x);
    free(p.y);
    drop(&x);
    drop(&y);
    drop(&paged_x);
    drop(&paged_y);
    drop(&out);
}

static void check_join(wf_place place, struct join_case c) {
    check_join_of(place, c, 0);
}

static void test_join(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {
        {0, 0},       {0, 33},     {33, 0},     {1, 1},       {31, 32},  {33, 257}, {1919, 1921},
        {1920, 1920}, {3000, 840}, {840, 3001}, {4000, 3999}, {1, 9000}, {9000, 1}, {9011, 12009}};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 14 * 7; s++) {
            int kind = s % 7;
            struct join_case c = {.type = words3[kind == 0 ? s / 7 % 3 : kind % 3],
                                  .kind = kind,
                                  .form = s % 11 < 4 ? (s & 3) * 5 & 7 : 0,
                                  .shape = (enum prim_shape)(s * 5 % SHAPE_COUNT),
                                  .n = sizes[s % 14][0],
                                  .m = sizes[s % 14][1],
                                  .range = 1 << 20};
            c.to = c.type == WF_ELEM_U32 ? WF_ELEM_U64 : WF_ELEM_U128;
            if (c.shape == SHAPE_CONSTANT || c.shape == SHAPE_SMALL ||
                c.shape == SHAPE_DUPLICATES || c.shape == SHAPE_PARETO || c.shape == SHAPE_ZIPF) {
                c.n = c.n > 400 ? 400 + c.n % 97 : c.n; /* the answer grows by the square */
                c.m = c.m > 400 ? 400 + c.m % 97 : c.m;
            }
            check_join((wf_place)place, c);
        }
    }
}

/* Keys that do not repeat, which the card joins otherwise than those that do: close together, far
 * apart, too far for any word. */
static void test_join_unique(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{9000, 8000}, {3968, 3969}, {3840, 3840},
                                       {1, 3000},    {5001, 40},   {7000, 12001}};
    static const uint64_t gaps[3][3] = {{1, 3, 7}, {1, 1 << 20, 7}, {1, 1 << 30, 1ULL << 49}};
    for (int s = 0; s < 7 * 6 * prim_places(); s++) {
        int kind = s % 7;
        int type = kind == 0 ? s / 7 % 3 : kind % 3;
        struct join_case c = {.type = words3[type],
                              .to = type == 0 ? WF_ELEM_U64 : WF_ELEM_U128,
                              .kind = kind,
                              .n = sizes[s / 7 % 6][0],
                              .m = sizes[s / 7 % 6][1],
                              .range = 1 << 20};
        check_join_of((wf_place)(s / 42), c, gaps[type][(s / 7 + s) % 3]);
    }
}

static void test_join_stages(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 6 * 6; s++) {
            static const enum prim_shape shapes[] = {SHAPE_RANDOM, SHAPE_SORTED, SHAPE_SMALL,
                                                     SHAPE_ZIPF,   SHAPE_PARETO, SHAPE_CONSTANT};
            static const int64_t sizes[] = {2503, 4000, 300, 700, 300, 150};
            wf_elem type = words3[s % 5 == 0 ? s / 6 % 3 : 0];
            struct join_case c = {.type = type,
                                  .to = type == WF_ELEM_U32 ? WF_ELEM_U64 : WF_ELEM_U128,
                                  .kind = s / 6 & 1,
                                  .stage = s / 6,
                                  .shape = shapes[s % 6],
                                  .n = sizes[s % 6],
                                  .m = sizes[s % 6] + 7 * (s / 6),
                                  .range = 20000};
            check_join((wf_place)place, c);
        }
    }
}

/* Every stage with sides of different lengths, keys that lie close on one side and far apart on the
 * other, so that shares of a network do not fit, and runs that cross tiles; positions too. */
static void test_join_stages_uneven(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{0, 5},     {5, 0},     {1, 1},     {7, 5000},
                                       {5000, 7},  {9, 2048},  {2039, 9},  {6001, 2001},
                                       {64, 4096}, {3000, 65}, {2500, 777}};
    for (int s = 0; s < 11 * REL_STAGES * prim_places(); s++) {
        int64_t n = sizes[s % 11][0];
        int64_t m = sizes[s % 11][1];
        int stage = s / 11 % REL_STAGES;
        uint32_t *x = malloc((size_t)n * 4 + 4);
        uint32_t *y = malloc((size_t)m * 4 + 4);
        for (int64_t i = 0; i < n; i++) {
            x[i] = (uint32_t)(i < n / 2 ? i * 3 : i * i / 7 + 90000);
        }
        for (int64_t i = 0; i < m; i++) {
            y[i] = (uint32_t)(i % 13 < 6 && s & 1 ? i / 40 * 30 : i / 2 * 5);
        }
        qsort(y, (size_t)m, 4, compare_u32);
        wf_relation rx = {.word = WF_ELEM_U32, .data = x, .count = n};
        wf_relation ry = {.word = WF_ELEM_U32, .data = y, .count = m};
        struct join_case c = {.kind = s % 2 ? WF_REL_LEFT : WF_REL_INNER, .stage = stage};
        check_positions((wf_place)(s / (11 * REL_STAGES)), &c, &rx, &ry);
        free(x);
        free(y);
    }
}

/* Keys with so many partners that their output is cut into chunks. */
static void test_join_skew(void **state) {
    (void)state;
    static const struct join_case cases[] = {
        {WF_ELEM_U32, WF_ELEM_U64, WF_REL_INNER, 0, 0, SHAPE_CONSTANT, 200, 350, 1 << 20},
        {WF_ELEM_U64, WF_ELEM_U128, WF_REL_FULL, 0, 0, SHAPE_PARETO, 400, 400, 40},
        {WF_ELEM_U32, WF_ELEM_U64, WF_REL_LEFT, 2, 0, SHAPE_ZIPF, 3000, 5, 1 << 20},
        {WF_ELEM_U32, WF_ELEM_U64, WF_REL_INNER, 4, 0, SHAPE_CONSTANT, 3, 20000, 1 << 20},
        {WF_ELEM_U32, WF_ELEM_U64, WF_REL_INNER, 0, 0, SHAPE_RANDOM, 1600, 1600, 100},
        {WF_ELEM_U128, WF_ELEM_U128, WF_REL_RIGHT, 0, 5, SHAPE_CONSTANT, 200, 200, 9},
        {WF_ELEM_U32, WF_ELEM_U32, JOIN_SET + WF_INTERSECTION, 0, 0, SHAPE_CONSTANT, 2000, 9000, 9},
    };
    for (int place = 0; place < prim_places(); place++) {
        for (size_t s = 0; s < sizeof cases / sizeof *cases; s++) {
            check_join((wf_place)place, cases[s]);
        }
    }
}

/* Pages on either side or both, of every kind and by every way of joining tiles; tiles that begin
 * and end within pages, heavy keys. */
static void test_join_pages(void **state) {
    (void)state;
    static const enum prim_shape shapes[] = {SHAPE_RANDOM, SHAPE_SORTED, SHAPE_ZIPF,
                                             SHAPE_CONSTANT};
    static const int64_t sizes[][2] = {{9011, 5003}, {1, 4000}, {4000, 1},
                                       {700, 0},     {0, 700},  {90, 17}};
    for (int s = 0; s < 7 * 6 * prim_places(); s++) {
        struct join_case c = {.type = words3[s % 3],
                              .to = s % 3 == 0 ? WF_ELEM_U64 : WF_ELEM_U128,
                              .kind = s % 7,
                              .form = s / 7 % 3 == 0   ? 5
                                      : s / 7 % 3 == 1 ? 1
                                                       : 4 + (s & 2),
                              .stage = s % 7 < 2 ? s / 7 % 6 : 0,
                              .shape = shapes[s / 7 % 4],
                              .n = sizes[s / 7 % 6][0],
                              .m = sizes[s / 7 % 6][1],
                              .range = 1 << 20};
        if (c.shape == SHAPE_CONSTANT || c.shape == SHAPE_ZIPF) {
            c.n = c.n > 300 ? 300 : c.n;
            c.m = c.m > 450 ? 450 : c.m;
        }
        check_join((wf_place)(s / 42), c);
    }
}

/* By whole tuple: relations are sets. */
static void test_whole_sets(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 500, 5003, 9000, 4097};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 18; s++) {
            wf_relation r[2];
            for (int i = 0; i < 2; i++) {
                r[i] = make(words3[s % 3], 0, SHAPE_RANDOM, sizes[(s + i) % 6], 3 + (uint64_t)i,
                            s % 2 ? 60 : 4000);
                int64_t kept = 0;
                for (int64_t k = 0; k < r[i].count;
                     k++) { /* few values, so that some are in both */
                    word w = get(&r[i], k) & ~((word)7 << (bytes_of(r[i].word) * 8 - 28));
                    if (kept == 0 || w > get(&r[i], kept - 1)) {
                        set(&r[i], kept++, w);
                    }
                }
                r[i].count = kept;
                r[i].key_count = r[i].field_count;
            }
            struct pairs p = join_pairs(&r[0], &r[1], JOIN_SET + s / 3 % 3);
            word *expected = calloc((size_t)p.count + 1, sizeof *expected);
            for (int64_t i = 0; i < p.count; i++) {
                expected[i] = p.x[i] < 0 ? get(&r[1], p.y[i]) : get(&r[0], p.x[i]);
            }
            wf_relation out = room(r[0].word, p.count);
            assert_prim_ok(wf_prim_rel_set(prim, (wf_place)place, (wf_rel_set)(s / 3 % 3), &out,
                                           &r[0], &r[1], NULL));
            check_words("set", &out, expected, p.count);
            free(expected);
            free(p.x);
            free(p.y);
            drop(&r[0]);
            drop(&r[1]);
            drop(&out);
        }
    }
}

/* Bytes of workspace that a difference of relations of n words in pages takes. */
static int64_t paged_set_work(wf_place place, int64_t n) {
    wf_relation dense = make(WF_ELEM_U64, 0, SHAPE_SORTED, n, 1, 4000);
    dense.key_count = dense.field_count;
    wf_relation pages = paged(&dense, 160);
    wf_relation out = room(WF_ELEM_U64, n);
    wf_work work = {.data = NULL};
    assert_prim_ok(wf_prim_rel_set(prim, place, WF_DIFFERENCE, &out, &pages, &dense, &work));
    drop(&dense);
    drop(&pages);
    drop(&out);
    return (int64_t)work.needed;
}

/* By whole tuple on pages, as they are: what equal tuples of one input meet are those of the other
 * by their number, whatever pages and tiles they lie in. */
static void test_whole_set_pages(void **state) {
    (void)state;
    static const int64_t sizes[] = {9000, 0, 1, 34000, 700, 4097};
    static const enum prim_shape shapes[] = {SHAPE_RANDOM, SHAPE_ZIPF, SHAPE_CONSTANT,
                                             SHAPE_SORTED};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < 24; s++) {
            wf_relation r[2];
            wf_relation pages[2];
            for (int i = 0; i < 2; i++) {
                r[i] = make(words3[s % 3], 0, shapes[s % 4], sizes[(s / 3 + i) % 6],
                            5 + (uint64_t)i, 3000);
                r[i].key_count = r[i].field_count;
                pages[i] = paged(&r[i], i ? 160 : 1008);
            }
            wf_rel_set op = (wf_rel_set)(s / 3 % 3);
            wf_relation expected = room(r[0].word, r[0].count + r[1].count);
            assert_prim_ok(wf_prim_rel_set(prim, WF_ON_CPU, op, &expected, &r[0], &r[1], NULL));
            word *words = calloc((size_t)expected.count + 1, sizeof *words);
            for (int64_t i = 0; i < expected.count; i++) {
                words[i] = get(&expected, i);
            }
            for (int form = 1; form < 4; form++) {
                wf_relation out = form == 2 ? paged_room(r[0].word, 32, expected.count / 32 + 1)
                                            : room(r[0].word, expected.count);
                assert_prim_ok(wf_prim_rel_set(prim, (wf_place)place, op, &out,
                                               form & 1 ? &pages[0] : &r[0],
                                               form & 2 ? &pages[1] : &r[1], NULL));
                check_words("set of pages", &out, words, expected.count);
                drop(&out);
            }
            free(words);
            drop(&expected);
            for (int i = 0; i < 2; i++) {
                drop(&r[i]);
                drop(&pages[i]);
            }
        }
        int64_t grows =
            paged_set_work((wf_place)place, 80000) - paged_set_work((wf_place)place, 40000);
        assert_true(grows < 40000 * 2); /* pages are not copied: their fills are summed up */
    }
}

static void test_join_large(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        int64_t n = largest(60000);
        struct join_case c = {WF_ELEM_U64, WF_ELEM_U128,   WF_REL_INNER, 0, 0, SHAPE_RANDOM, n,
                              n,           4 * (uint64_t)n};
        check_join((wf_place)place, c);
    }
}

/* --- reduction --- */

static void check_reduce(wf_place place, wf_elem type, wf_reduce reduce, enum prim_shape shape,
                         int64_t n, int form) {
    wf_relation in = make(type, 0, shape, n, 8, n % 2 ? 1 << 20 : 50);
    wf_relation pages = paged(&in, 160);
    wf_relation out = room(type, n);
    int f = in.field_count - 1;
    uint64_t *values = malloc((size_t)n * 8 + 8);
    wf_array to = prim_array(WF_ELEM_U64, values, n);
    assert_prim_ok(wf_prim_rel_reduce(prim, place, reduce, f, &out, to, form ? &pages : &in, NULL));
    assert_int_equal(out.field_count, in.key_count);
    int64_t group = -1;
    uint64_t expected = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = reduce == WF_REDUCE_COUNT ? 1 : field(&in, get(&in, i), f);
        if (i == 0 || key(&in, get(&in, i)) != key(&in, get(&in, i - 1))) {
            group++;
            expected = v;
        } else if (reduce == WF_REDUCE_MIN || reduce == WF_REDUCE_MAX) {
            expected = (v < expected) == (reduce == WF_REDUCE_MIN) ? v : expected;
        } else {
            expected += v;
        }
        if (i + 1 == n || key(&in, get(&in, i)) != key(&in, get(&in, i + 1))) {
            if (values[group] != expected || key(&out, get(&out, group)) != key(&in, get(&in, i))) {
                fail_msg("reduce of %lld: group %lld is %llu, not %llu", (long long)n,
                         (long long)group, (unsigned long long)values[group],
                         (unsigned long long)expected);
            }
        }
    }
    assert_int_equal(out.count, group + 1);
    if (group > 0) {
        to.count = group;
        assert_prim_error(wf_prim_rel_reduce(prim, place, reduce, f, &out, to, &in, NULL), "54000");
        assert_int_equal(out.count, group + 1);
    }
    free(values);
    drop(&in);
    drop(&pages);
    drop(&out);
}

static void test_reduce(void **state) {
    (void)state;
    static const int64_t edges[] = {3839, 3840, 3841, 2816, 2817, 1281, 7680};
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            wf_elem type = words3[s % 3];
            check_reduce((wf_place)place, type,
                         type == WF_ELEM_U32 ? (wf_reduce)(s / 3 % 4) : (wf_reduce)(s % 3),
                         (enum prim_shape)(s % SHAPE_COUNT), prim_sizes[s], s % 5 == 0);
        }
        for (int s = 0; s < 7; s++) {
            check_reduce((wf_place)place, words3[s / 3],
                         s < 3 ? (wf_reduce)(s + 1) : (wf_reduce)(s / 3), SHAPE_ZIPF, edges[s], 0);
        }
        check_reduce((wf_place)place, WF_ELEM_U32, WF_REDUCE_MAX, SHAPE_CONSTANT, 50000, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_project),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_join_unique),
        cmocka_unit_test(test_join_stages),
        cmocka_unit_test(test_join_skew),
        cmocka_unit_test(test_join_stages_uneven),
        cmocka_unit_test(test_join_pages),
        cmocka_unit_test(test_join_large),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_whole_sets),
        cmocka_unit_test(test_whole_set_pages),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

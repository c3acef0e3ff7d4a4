/* test_prim_huge_join.c: joins and relational algebra at sizes up to 10^9, judged on the device
 * (test_prim_huge.h).
 *
 * Keys are formulas of row numbers that can be solved: row j of S has number j modulo the distinct
 * ones, R's rows have numbers of a shape, and keys are those numbers or an invertible mix of them;
 * so the partners of every row of R are known, and a result is right when it has as many rows as
 * there are partners and the fingerprint of (row of R, row of S) is theirs; keys and columns are
 * then compared with those of their rows. Sorted joins are proven: pairs ascend strictly, all are
 * of equal keys, and they are as many as searches of one side's keys in the other count.
 *
 * Run as test_prim_huge is. 10^9 JOIN 10^9 fits a card of 140 GB with keys of 4 bytes; with 8 it is
 * some 7 * 10^8. Nested loops have as many rows of S as make 2 * 10^12 comparisons. */
#include "test_prim_huge.h"

/* --- joins --- */

struct join_spec {
    wf_join_algorithm algorithm;
    wf_join_kind kind;
    wf_elem type;
    enum prim_shape shape; /* of R's numbers */
    int copies;            /* rows of S of one number; 0: one */
    int s_percent;         /* rows of S for 100 of R; 0: as many */
    int plain;             /* keys are the numbers, not mixed */
    int all;               /* every row of R has partners; else about half, where it is random */
    int band;              /* width: 7: two partners, 2: one for three of four */
    int passes;            /* 0: all at once */
    int no_rows;           /* columns tell rows */
    int sequential;
};

static int copies_of(const struct join_spec *j) {
    return j->copies ? j->copies : 1;
}

struct sides {
    const struct join_spec *spec;
    int64_t n, m, distinct;
    wf_array r_keys, s_keys, r_col, s_col;
};

/* Numbers of R's rows first .. first + v.count. */
static void r_numbers(const struct sides *s, wf_array v, wf_array t, int64_t first) {
    const struct join_spec *j = s->spec;
    uint64_t range = (uint64_t)(j->band ? 4 * (s->m - 2) : j->all ? s->distinct : 2 * s->distinct);
    iota(v, first, 1);
    shape_words(j->shape, v, t, s->n, 11);
    mapk("SHR_I64", v, v, j->shape == SHAPE_RANDOM || j->shape == SHAPE_DUPLICATES ? 3 : 0);
    mapk("MOD_I64", v, v, range);
}

static void numbers_to_keys(const struct sides *s, wf_array out, wf_array v, wf_array t) {
    if (!s->spec->plain && !s->spec->band) {
        if (width_of(out.type) == 4) {
            mix32(v, t);
        } else {
            mix(v, t);
        }
    }
    narrow(out, v);
}

static void make_sides(struct sides *s, const struct huge *h) {
    const struct join_spec *j = s->spec = h->spec;
    s->n = h->n;
    s->m = j->s_percent ? s->n * j->s_percent / 100 : s->n;
    if (j->algorithm == WF_JOIN_NINLJ) {
        double most = at == WF_ON_GPU && getenv("WARPFOX_TEST_GPU") ? 2e12 : 1e7;
        s->m = (double)s->m * (double)s->n < most ? s->m : (int64_t)(most / (double)s->n);
    }
    s->m = s->m < 16 ? 16 : s->m;
    s->distinct = s->m / copies_of(j);
    s->m = s->distinct * copies_of(j);
    s->r_keys = vec(j->type, s->n);
    s->s_keys = vec(j->type, s->m);
    s->r_col = vec(WF_ELEM_U32, s->n);
    s->s_col = vec(WF_ELEM_U32, s->m);
    iota(s->r_col, 0, 1);
    iota(s->s_col, 1, 1);
    int mark = held_count;
    int64_t most = s->n > s->m ? s->n : s->m;
    wf_array v = vec(WF_ELEM_U64, most < CHUNK ? most : CHUNK);
    wf_array t = vec(WF_ELEM_U64, v.count);
    for (int64_t first = 0; first < s->n; first += CHUNK) {
        v.count = s->n - first < CHUNK ? s->n - first : CHUNK;
        r_numbers(s, v, t, first);
        numbers_to_keys(s, part(s->r_keys, first, v.count), v, t);
    }
    for (int64_t first = 0; first < s->m; first += CHUNK) {
        v.count = s->m - first < CHUNK ? s->m - first : CHUNK;
        iota(v, first, 1);
        if (j->band) {
            permute(v, s->m, false);
            mapk("MUL_I64", v, v, 4);
        } else {
            mapk("MOD_I64", v, v, (uint64_t)s->distinct);
        }
        numbers_to_keys(s, part(s->s_keys, first, v.count), v, t);
    }
    release_to(mark);
}

/* Adds the words (row of R) * 2^32 + w for rows whose flag says so; `rows` are theirs. */
static void add_kept(struct print *p, wf_array rows, wf_array w, wf_array flags) {
    int mark = held_count;
    wf_array words = vec(WF_ELEM_U64, rows.count);
    wf_array to = vec(WF_ELEM_U64, rows.count);
    int64_t count = 0;
    mapk("SHL_I64", words, rows, 32);
    map2("ADD_I64", words, words, w);
    OK(wf_prim_compact(prim, at, 1, &to, &words, 1, flags, &count, NULL));
    to.count = count;
    if (count) {
        print_words(p, to, words);
    }
    release_to(mark);
}

/* Whether rows with numbers v have partners; the number of the first one of S, then. */
static void first_partner(const struct sides *s, wf_array v, wf_array has) {
    int band = s->spec->band;
    if (!band) {
        mapk("LT_I64", has, v, (uint64_t)s->distinct);
        return;
    }
    int mark = held_count;
    wf_array low = vec(WF_ELEM_U64, v.count);
    mapk("BITAND_I64", low, v, 3);
    mapk("NE_I64", has, low, band == 2 ? 1 : 9);
    mapk("ADD_I64", v, v, 3);
    mapk("SHR_I64", v, v, 2);
    release_to(mark);
}

/* The fingerprint of a chunk of R's rows in the result; of S its row + 1, 0 for none. */
static void expect_chunk(const struct sides *s, struct print *p, int64_t first, int64_t n) {
    const struct join_spec *j = s->spec;
    wf_array v = vec(WF_ELEM_U64, n);
    wf_array t = vec(WF_ELEM_U64, n);
    wf_array rows = vec(WF_ELEM_U64, n);
    wf_array has = vec(WF_ELEM_BOOL, n);
    uint64_t zero = 0;
    r_numbers(s, v, t, first);
    iota(rows, first, 1);
    first_partner(s, v, has);
    int partners = j->kind >= WF_JOIN_SEMI ? 0 : j->band == 7 ? 2 : copies_of(j);
    for (int k = 0; k < partners; k++) {
        mapk("ADD_I64", t, v, (uint64_t)(j->band ? k : k * s->distinct));
        if (j->band) {
            permute(t, s->m, true);
        }
        mapk("ADD_I64", t, t, 1);
        add_kept(p, rows, t, has);
    }
    if (j->kind == WF_JOIN_SEMI) {
        add_kept(p, rows, prim_array(WF_ELEM_U64, &zero, 1), has);
    } else if (j->kind != WF_JOIN_INNER) {
        map1("NOT_B8", has, has);
        add_kept(p, rows, prim_array(WF_ELEM_U64, &zero, 1), has);
    }
}

static struct print expect_join(const struct sides *s) {
    struct print p = {0};
    for (int64_t first = 0; first < s->n; first += CHUNK) {
        int mark = held_count;
        expect_chunk(s, &p, first, s->n - first < CHUNK ? s->n - first : CHUNK);
        release_to(mark);
    }
    return p;
}

struct result {
    wf_array keys, r_rows, s_rows, r_col, s_col;
};

/* One chunk of a result: its fingerprint, and keys and columns against its rows. */
static void check_rows(const struct sides *s, const struct result *r, struct print *p,
                       int64_t first, int64_t n) {
    const struct join_spec *j = s->spec;
    wf_array v = vec(WF_ELEM_U64, n);
    wf_array t = vec(WF_ELEM_U64, n);
    wf_array keys = vec(j->type, n);
    wf_array rows = part(j->no_rows ? r->r_col : r->r_rows, first, n);
    bool of_s = j->kind < WF_JOIN_SEMI;
    widen(v, rows);
    mapk("SHL_I64", v, v, 32);
    if (of_s) {
        widen(t, part(j->no_rows ? r->s_col : r->s_rows, first, n));
        mapk("ADD_I64", t, t, !j->no_rows);
        map1("LOW_I64", t, t); /* no row is 2^32 - 1 */
        map2("ADD_I64", v, v, t);
    }
    if (of_s && !j->no_rows) {
        wf_array narrow_rows = vec(WF_ELEM_U32, n);
        narrow(narrow_rows, t);
        expect_same(part(r->s_col, first, n), narrow_rows, "column of S");
    }
    print_words(p, v, t);
    OK(wf_prim_gather(prim, at, keys, s->r_keys, rows, 0, NULL));
    expect_same(part(r->keys, first, n), keys, "keys");
    expect_same(part(r->r_col, first, n), rows, "column of R");
}

static void take_result(const struct sides *s, const struct result *r, struct print *p,
                        int64_t count) {
    for (int64_t first = 0; first < count; first += CHUNK) {
        int mark = held_count;
        check_rows(s, r, p, first, count - first < CHUNK ? count - first : CHUNK);
        release_to(mark);
    }
}

static wf_join *open_join; /* closed whatever happens */

static void join_in_passes(struct huge *h, const struct sides *s, const wf_join_spec *spec,
                           const wf_join_out *out, const struct result *r, struct print *p) {
    int64_t count = 1;
    int64_t total = 0;
    OK(wf_prim_join_open(prim, at, spec, &open_join));
    h->ns = spent();
    OK(wf_prim_join_count(open_join, &total));
    h->ns += spent();
    while (count) {
        OK(wf_prim_join_next(open_join, out, &count));
        h->ns += spent();
        take_result(s, r, p, count);
    }
    NEED(total == p->count, "%" PRId64 " rows counted, %" PRId64 " given", total, p->count);
}

static void run_join_open(struct huge *h) {
    const struct join_spec *j = h->spec;
    struct sides s;
    make_sides(&s, h);
    struct print expected = expect_join(&s);
    int64_t room = j->passes ? expected.count / j->passes + 1 : expected.count;
    bool of_s = j->kind < WF_JOIN_SEMI;
    struct result r = {.keys = vec(j->type, room),
                       .r_col = vec(WF_ELEM_U32, room),
                       .s_col = of_s ? vec(WF_ELEM_U32, room) : (wf_array){.type = WF_ELEM_U32},
                       .r_rows = {.type = WF_ELEM_U32},
                       .s_rows = {.type = WF_ELEM_U32}};
    if (!j->no_rows) {
        r.r_rows = vec(WF_ELEM_U32, room);
        r.s_rows = of_s ? vec(WF_ELEM_U32, room) : r.s_rows;
    }
    wf_join_spec spec = {.algorithm = j->algorithm,
                         .kind = j->kind,
                         .band = j->band > 0,
                         .width = (uint64_t)j->band,
                         .sequential = j->sequential,
                         .want_rows = !j->no_rows,
                         .r = {s.r_keys, &s.r_col, 1},
                         .s = {s.s_keys, &s.s_col, 1}};
    wf_join_out out = {.keys = r.keys,
                       .r_columns = &r.r_col,
                       .s_columns = &r.s_col,
                       .r_rows = r.r_rows,
                       .s_rows = r.s_rows};
    struct print got = {0};
    if (j->passes) {
        join_in_passes(h, &s, &spec, &out, &r, &got);
    } else {
        int64_t count = 0;
        OK(wf_prim_join(prim, at, &spec, &out, &count));
        h->ns = spent();
        take_result(&s, &r, &got, count);
    }
    expect_print(got, expected, "rows of the join");
}

static void run_join(struct huge *h) {
    open_join = NULL;
    struct huge inner = *h;
    char said[sizeof case_said];
    bool good = attempt(run_join_open, &inner);
    wf_prim_join_close(open_join);
    open_join = NULL;
    h->ns = inner.ns;
    memcpy(said, case_said, sizeof said);
    NEED(good, "%s", said);
}

/* All keys equal: n * m rows, more than 32 bits count, none of them written. */
static void run_count(struct huge *h) {
    const struct join_spec *j = h->spec;
    int64_t n = h->n / 500 < 50 ? 50 : h->n / 500;
    int64_t total = 0;
    uint64_t key = 5;
    wf_array keys = vec(j->type, n);
    OK(wf_prim_fill(prim, at, keys, &key, NULL));
    wf_join_spec spec = {
        .algorithm = j->algorithm, .kind = j->kind, .r = {keys, NULL, 0}, .s = {keys, NULL, 0}};
    wf_join *join = NULL;
    OK(wf_prim_join_open(prim, at, &spec, &join));
    wf_status status = wf_prim_join_count(join, &total);
    h->ns = spent();
    wf_prim_join_close(join);
    h->n = n;
    OK(status);
    NEED(total == n * n, "%" PRId64 " rows counted, not %" PRId64, total, n * n);
}

#define JOIN(algorithm, kind, type, shape, ...)                                         \
    &(const struct join_spec) {                                                         \
        WF_JOIN_##algorithm, WF_JOIN_##kind, WF_ELEM_##type, SHAPE_##shape, __VA_ARGS__ \
    }
static const struct huge_case join_cases[] = {
    {"join ninlj inner u32 random", run_join, JOIN(NINLJ, INNER, U32, RANDOM, .copies = 2), 50, 60},
    {"join ninlj left u64 zipf", run_join, JOIN(NINLJ, LEFT, U64, ZIPF, .copies = 1), 1, 100},
    {"join ninlj inner band i32 pareto", run_join, JOIN(NINLJ, INNER, I32, PARETO, .band = 7), 1,
     80},
    {"join ninlj anti u32 sorted", run_join, JOIN(NINLJ, ANTI, U32, SORTED, .copies = 3), 1, 60},
    {"join inlj inner u32 random", run_join, JOIN(INLJ, INNER, U32, RANDOM, .copies = 1), 100, 110},
    {"join inlj left u64 zipf, sequential", run_join,
     JOIN(INLJ, LEFT, U64, ZIPF, .copies = 2, .sequential = 1), 50, 170},
    {"join inlj semi i32 pareto", run_join, JOIN(INLJ, SEMI, I32, PARETO, .copies = 3), 100, 110},
    {"join inlj anti i64 duplicates", run_join, JOIN(INLJ, ANTI, I64, DUPLICATES, .plain = 1), 50,
     150},
    {"join inlj inner band u32 random", run_join, JOIN(INLJ, INNER, U32, RANDOM, .band = 7), 25,
     170},
    {"join inlj left band u64 random", run_join, JOIN(INLJ, LEFT, U64, RANDOM, .band = 2), 25, 170},
    {"join smj inner u32 random", run_join, JOIN(SMJ, INNER, U32, RANDOM, .copies = 1), 100, 115},
    {"join smj inner u64 zipf, N:M", run_join, JOIN(SMJ, INNER, U64, ZIPF, .copies = 3), 30, 250},
    {"join smj left u32 sorted, sequential", run_join,
     JOIN(SMJ, LEFT, U32, SORTED, .plain = 1, .sequential = 1), 50, 115},
    {"join smj semi u64 pareto", run_join, JOIN(SMJ, SEMI, U64, PARETO, .copies = 2), 50, 150},
    {"join smj anti u32 random", run_join, JOIN(SMJ, ANTI, U32, RANDOM, .copies = 2), 50, 115},
    {"join smj inner band u64 random", run_join, JOIN(SMJ, INNER, U64, RANDOM, .band = 7), 25, 200},
    {"join smj semi band u32 zipf", run_join, JOIN(SMJ, SEMI, U32, ZIPF, .band = 2), 25, 150},
    {"join smj anti band i32 random", run_join, JOIN(SMJ, ANTI, I32, RANDOM, .band = 2), 25, 150},
    {"join radix inner u32 random", run_join, JOIN(RADIX_HASH, INNER, U32, RANDOM, .copies = 1),
     100, 115},
    {"join radix left u32 zipf, sequential", run_join,
     JOIN(RADIX_HASH, LEFT, U32, ZIPF, .copies = 2, .sequential = 1), 50, 115},
    {"join radix semi i64 duplicates", run_join,
     JOIN(RADIX_HASH, SEMI, I64, DUPLICATES, .copies = 1), 50, 160},
    {"join radix anti u32 constant", run_join, JOIN(RADIX_HASH, ANTI, U32, CONSTANT, .copies = 1),
     50, 115},
    {"join partitioned inner u32 random", run_join,
     JOIN(PARTITIONED_HASH, INNER, U32, RANDOM, .copies = 1), 100, 115},
    {"join partitioned inner u32 random, columns", run_join,
     JOIN(PARTITIONED_HASH, INNER, U32, RANDOM, .no_rows = 1, .all = 1), 100, 100},
    {"join partitioned inner u64 random, N:M", run_join,
     JOIN(PARTITIONED_HASH, INNER, U64, RANDOM, .copies = 3, .all = 1, .s_percent = 30), 50, 200},
    {"join partitioned left u32 zipf", run_join,
     JOIN(PARTITIONED_HASH, LEFT, U32, ZIPF, .copies = 2), 50, 150},
    {"join partitioned semi u64 pareto", run_join,
     JOIN(PARTITIONED_HASH, SEMI, U64, PARETO, .copies = 1), 50, 160},
    {"join partitioned anti i32 sorted", run_join,
     JOIN(PARTITIONED_HASH, ANTI, I32, SORTED, .copies = 1), 50, 115},
    {"join partitioned inner u32 constant", run_join,
     JOIN(PARTITIONED_HASH, INNER, U32, CONSTANT, .copies = 2, .s_percent = 20), 50, 115},
    {"join plain inner u32 random", run_join, JOIN(PLAIN_HASH, INNER, U32, RANDOM, .copies = 1),
     100, 115},
    {"join plain inner u64 zipf, N:M", run_join,
     JOIN(PLAIN_HASH, INNER, U64, ZIPF, .copies = 3, .s_percent = 50), 40, 220},
    {"join plain left i64 pareto, columns", run_join,
     JOIN(PLAIN_HASH, LEFT, I64, PARETO, .no_rows = 1, .copies = 1), 50, 160},
    {"join plain semi u32 duplicates", run_join,
     JOIN(PLAIN_HASH, SEMI, U32, DUPLICATES, .copies = 4), 50, 115},
    {"join plain anti u64 random", run_join, JOIN(PLAIN_HASH, ANTI, U64, RANDOM, .copies = 1), 50,
     160},
    {"join direct inner u32 random", run_join,
     JOIN(DIRECT, INNER, U32, RANDOM, .plain = 1, .no_rows = 1), 100, 100},
    {"join direct left u64 zipf", run_join, JOIN(DIRECT, LEFT, U64, ZIPF, .plain = 1), 50, 160},
    {"join direct semi i32 random, N:M", run_join,
     JOIN(DIRECT, SEMI, I32, RANDOM, .plain = 1, .copies = 2), 50, 115},
    {"join direct anti i64 pareto", run_join, JOIN(DIRECT, ANTI, I64, PARETO, .plain = 1), 50, 160},
    {"join direct inner u32 random, N:M", run_join,
     JOIN(DIRECT, INNER, U32, RANDOM, .plain = 1, .copies = 3, .s_percent = 30), 50, 150},
    {"join auto inner u32 random, 1 to 8", run_join,
     JOIN(AUTO, INNER, U32, RANDOM, .s_percent = 12), 100, 90},
    {"join auto left u64 sorted", run_join, JOIN(AUTO, LEFT, U64, SORTED, .copies = 1), 50, 160},
    {"join auto inner band u32 pareto", run_join, JOIN(AUTO, INNER, U32, PARETO, .band = 7), 25,
     150},
    {"join partitioned, 3 rows for one, passes", run_join,
     JOIN(PARTITIONED_HASH, INNER, U32, RANDOM, .copies = 3, .all = 1, .passes = 6), 100, 115},
    {"join plain, 3 rows for one", run_join,
     JOIN(PLAIN_HASH, INNER, U32, RANDOM, .copies = 3, .all = 1, .s_percent = 30), 100, 115},
    {"join smj, 3 rows for one, passes", run_join,
     JOIN(SMJ, INNER, U32, ZIPF, .copies = 3, .all = 1, .s_percent = 30, .passes = 4), 100, 100},
    {"join inlj, 2 rows for one, passes", run_join,
     JOIN(INLJ, INNER, U64, RANDOM, .copies = 2, .all = 1, .s_percent = 30, .passes = 7), 50, 160},
    {"join count of ninlj, all equal", run_count, JOIN(NINLJ, INNER, U32, RANDOM, .all = 1), 10, 8},
    {"join count of inlj, all equal", run_count, JOIN(INLJ, INNER, U32, RANDOM, .all = 1), 100, 8},
    {"join count of smj, all equal", run_count, JOIN(SMJ, INNER, U64, RANDOM, .all = 1), 100, 8},
    {"join count of radix, all equal", run_count, JOIN(RADIX_HASH, INNER, U32, RANDOM, .all = 1),
     10, 8},
    {"join count of partitioned, all equal", run_count,
     JOIN(PARTITIONED_HASH, INNER, U32, RANDOM, .all = 1), 10, 8},
    {"join count of plain, all equal", run_count, JOIN(PLAIN_HASH, INNER, U64, RANDOM, .all = 1),
     10, 8},
    {"join count of direct, all equal", run_count, JOIN(DIRECT, INNER, U32, RANDOM, .all = 1), 10,
     8},
};

/* --- relations --- */

/* Tuples of 64 bits: a key of 32 bits, and the tuple's number. */
static wf_relation tuples(wf_array words) {
    return (wf_relation){.word = WF_ELEM_U64,
                         .field_count = 2,
                         .key_count = 1,
                         .bits = {32, 32},
                         .data = words.data,
                         .count = words.count,
                         .room = words.count};
}

struct rel_spec {
    enum prim_shape x, y;
    int x_by, y_by; /* keys are divided by so much */
    int share;      /* percent of the tuples that are x's; 0: half */
    int what;       /* kind of join, set, or reduction */
    wf_join_stage stage;
    int narrow; /* join: positions of arrays of keys; set: tuples of 32 bits, all of them key */
};

/* Ascending keys (U32) of a shape, each divided. */
static wf_array rel_keys(enum prim_shape shape, int by, int64_t n, uint64_t seed) {
    wf_array out = vec(WF_ELEM_U32, n);
    int mark = held_count;
    wf_array v = vec(WF_ELEM_U32, n);
    make_keys(v, shape, seed);
    OK(wf_prim_sort(prim, at, NULL, out, v, NULL, NULL, 0, NULL));
    for (int64_t first = 0; by > 1 && first < n; first += CHUNK) {
        int inner = held_count;
        int64_t k = n - first < CHUNK ? n - first : CHUNK;
        wf_array w = vec(WF_ELEM_U64, k);
        widen(w, part(out, first, k));
        mapk("DIV_I64", w, w, (uint64_t)by);
        narrow(part(out, first, k), w);
        release_to(inner);
    }
    release_to(mark);
    return out;
}

static wf_array tuple_words(wf_array keys) {
    wf_array words = vec(WF_ELEM_U64, keys.count);
    int mark = held_count;
    wf_array t = vec(WF_ELEM_U64, keys.count < CHUNK ? keys.count : CHUNK);
    for (int64_t first = 0; first < keys.count; first += CHUNK) {
        t.count = keys.count - first < CHUNK ? keys.count - first : CHUNK;
        wf_array w = part(words, first, t.count);
        widen(w, part(keys, first, t.count));
        mapk("SHL_I64", w, w, 32);
        iota(t, first, 1);
        map2("ADD_I64", w, w, t);
    }
    release_to(mark);
    return words;
}

/* How many elements of `among` equal each needle. */
static wf_array equals_in(wf_array needles, wf_array among) {
    wf_array out = vec(WF_ELEM_I64, needles.count);
    int mark = held_count;
    wf_array low = vec(WF_ELEM_I64, needles.count);
    OK(wf_prim_search(prim, at, 1, 0, out, needles, among, NULL));
    OK(wf_prim_search(prim, at, 0, 0, low, needles, among, NULL));
    map2("SUB_I64", out, out, low);
    release_to(mark);
    return out;
}

static wf_array kept_by(wf_array in, wf_array counts, bool some) {
    wf_array out = vec(in.type, in.count);
    int mark = held_count;
    wf_array flags = vec(WF_ELEM_BOOL, in.count);
    mapk(some ? "NE_I64" : "EQ_I64", flags, counts, 0);
    OK(wf_prim_compact(prim, at, 1, &out, &in, 1, flags, &out.count, NULL));
    release_to(mark);
    return out;
}

static void run_rel_set(struct huge *h) {
    const struct rel_spec *s = h->spec;
    int64_t n = h->n * (s->share ? s->share : 50) / 100;
    int64_t m = h->n - n;
    wf_array x_keys = rel_keys(s->x, s->x_by, n, 1);
    wf_array y_keys = rel_keys(s->y, s->y_by, m, 2);
    wf_array x = s->narrow ? x_keys : tuple_words(x_keys);
    wf_array y = s->narrow ? y_keys : tuple_words(y_keys);
    wf_array room = vec(x.type, n + m);
    wf_relation rx = tuples(x);
    wf_relation ry = tuples(y);
    if (s->narrow) {
        rx.word = ry.word = WF_ELEM_U32;
        rx.field_count = ry.field_count = 1;
    }
    wf_relation out = {.word = rx.word, .data = room.data, .room = room.count};
    OK(wf_prim_rel_set(prim, at, (wf_rel_set)s->what, &out, &rx, &ry, NULL));
    h->ns = spent();
    room.count = out.count;
    if (s->what != WF_UNION) {
        wf_array in_y = equals_in(x_keys, y_keys);
        if (!s->narrow) { /* by tuple the rule counts equals, and test_prim_huge checks it */
            expect_same(room, kept_by(x, in_y, s->what == WF_INTERSECTION), "set of tuples");
            return;
        }
    }
    if (s->narrow) {
        wf_set_how how = {s->what == WF_UNION          ? WF_SET_UNION
                          : s->what == WF_INTERSECTION ? WF_SET_INTERSECTION
                                                       : WF_SET_DIFFERENCE,
                          0, 0};
        wf_array expected = vec(WF_ELEM_U32, n + m);
        OK(wf_prim_set(prim, at, &how, expected, x, y, &expected.count, NULL));
        expect_same(room, expected, "set of keys");
        return;
    }
    struct print p = print_of(x);
    struct print q = print_of(kept_by(y, equals_in(y_keys, x_keys), false));
    p = (struct print){p.count + q.count, p.sum + q.sum, p.xor ^q.xor };
    expect_print(print_of(room), p, "union of tuples");
    struct order_check c = {.by = {WF_ELEM_U64, NULL}, .in = room, .out = room};
    for (int64_t first = 0; first + 1 < room.count; first += CHUNK) {
        int64_t left = room.count - 1 - first;
        check_neighbours(&c, first, left < CHUNK ? left : CHUNK);
    }
}

/* --- sorted joins --- */

struct pairs {       /* of a result, all ones where a side is missing */
    wf_array x, y;   /* U32 */
    wf_array kx, ky; /* keys of the sides */
    wf_rel_kind kind;
};

static void expect_absent(wf_array rows, wf_array keys, wf_array other, const char *what) {
    int mark = held_count;
    wf_array got = vec(WF_ELEM_U32, rows.count);
    wf_array bad = vec(WF_ELEM_BOOL, rows.count);
    if (rows.count) {
        OK(wf_prim_gather(prim, at, got, keys, rows, 0, NULL));
        mapk("NE_I64", bad, equals_in(got, other), 0);
        expect_none(bad, 0, what);
    }
    release_to(mark);
}

/* Rows of a column that the flags name. */
static wf_array flagged(wf_array in, wf_array flags) {
    wf_array out = vec(in.type, in.count);
    OK(wf_prim_compact(prim, at, 1, &out, &in, 1, flags, &out.count, NULL));
    return out;
}

static int64_t sum_of(wf_array counts, bool at_least_one) {
    uint64_t sum = 0;
    if (at_least_one) {
        wf_array bad = vec(WF_ELEM_BOOL, counts.count);
        wf_array one = vec(WF_ELEM_I64, counts.count);
        mapk("EQ_I64", bad, counts, 0);
        map1("I64_B8", one, bad);
        map2("ADD_I64", counts, counts, one);
    }
    OK(wf_prim_reduce(prim, at, WF_FOLD_ADD, prim_array(WF_ELEM_I64, &sum, 1), counts, NULL));
    return (int64_t)sum;
}

/* Pairs with an x ascend strictly, are of equal keys where y is there, and only who has no partner
 * comes without. */
static void check_with_x(const struct pairs *p, wf_array x, wf_array y) {
    int64_t n = x.count;
    wf_array v = vec(WF_ELEM_U64, n);
    wf_array t = vec(WF_ELEM_U64, n);
    wf_array whole = vec(WF_ELEM_BOOL, n);
    widen(v, x);
    mapk("SHL_I64", v, v, 32);
    widen(t, y);
    map2("ADD_I64", v, v, t);
    struct order_check c = {.by = {WF_ELEM_U64, NULL}, .in = v, .out = v, .rows = v, .stable = 1};
    for (int64_t first = 0; first + 1 < n; first += CHUNK) {
        check_neighbours(&c, first, n - 1 - first < CHUNK ? n - 1 - first : CHUNK);
    }
    mapk("NE_I32", whole, y, 0xffffffffU);
    wf_array both_x = flagged(x, whole);
    wf_array both_y = flagged(y, whole);
    wf_array from_x = vec(WF_ELEM_U32, both_x.count);
    wf_array from_y = vec(WF_ELEM_U32, both_x.count);
    OK(wf_prim_gather(prim, at, from_x, p->kx, both_x, 0, NULL));
    OK(wf_prim_gather(prim, at, from_y, p->ky, both_y, 0, NULL));
    expect_same(from_x, from_y, "keys of pairs");
    map1("NOT_B8", whole, whole);
    expect_absent(flagged(x, whole), p->kx, p->ky, "x that has partners comes alone");
}

static void check_pairs(const struct pairs *p) {
    bool keeps_x = p->kind == WF_REL_LEFT || p->kind == WF_REL_FULL;
    bool keeps_y = p->kind == WF_REL_RIGHT || p->kind == WF_REL_FULL;
    int64_t expected = sum_of(equals_in(p->kx, p->ky), keeps_x);
    if (keeps_y) {
        wf_array alone = kept_by(p->ky, equals_in(p->ky, p->kx), false);
        expected += alone.count;
    }
    NEED(p->x.count == expected, "%" PRId64 " pairs, expected %" PRId64, p->x.count, expected);
    int mark = held_count;
    wf_array with = vec(WF_ELEM_BOOL, p->x.count);
    mapk("NE_I32", with, p->x, 0xffffffffU);
    check_with_x(p, flagged(p->x, with), flagged(p->y, with));
    map1("NOT_B8", with, with);
    wf_array alone = flagged(p->y, with);
    NEED(keeps_y || alone.count == 0, "pairs without x");
    expect_absent(alone, p->ky, p->kx, "y that has partners comes alone");
    struct order_check c = {.by = {WF_ELEM_U32, NULL}, .in = alone, .out = alone, .rows = alone};
    c.stable = 1;
    for (int64_t first = 0; first + 1 < alone.count; first += CHUNK) {
        check_neighbours(&c, first,
                         alone.count - 1 - first < CHUNK ? alone.count - 1 - first : CHUNK);
    }
    release_to(mark);
}

/* Tuples of 128 bits (key, number in x, number in y) to pairs. */
static void unpack(struct pairs *p, wf_array out) {
    p->x = vec(WF_ELEM_U32, out.count);
    p->y = vec(WF_ELEM_U32, out.count);
    for (int64_t first = 0; first < out.count; first += CHUNK) {
        int mark = held_count;
        int64_t n = out.count - first < CHUNK ? out.count - first : CHUNK;
        wf_array v = vec(WF_ELEM_U64, n);
        half_words(v, part(out, first, n), 1);
        map1("LOW_I64", v, v);
        narrow(part(p->x, first, n), v);
        half_words(v, part(out, first, n), 0);
        mapk("SHR_I64", v, v, 32);
        narrow(part(p->y, first, n), v);
        release_to(mark);
    }
}

/* The key of a tuple is that of the side that is there. */
static void check_tuple_keys(const struct pairs *p, wf_array out) {
    int mark = held_count;
    wf_array with = vec(WF_ELEM_BOOL, out.count);
    wf_array v = vec(WF_ELEM_U64, out.count);
    wf_array key = vec(WF_ELEM_U32, out.count);
    half_words(v, out, 1);
    mapk("SHR_I64", v, v, 32);
    narrow(key, v);
    for (int side = 0; side < 2; side++) {
        mapk(side ? "EQ_I32" : "NE_I32", with, p->x, 0xffffffffU);
        wf_array rows = flagged(side ? p->y : p->x, with);
        wf_array got = vec(WF_ELEM_U32, rows.count);
        OK(wf_prim_gather(prim, at, got, side ? p->ky : p->kx, rows, 0, NULL));
        expect_same(flagged(key, with), got, "keys of tuples");
    }
    release_to(mark);
}

static void run_rel_join(struct huge *h) {
    const struct rel_spec *s = h->spec;
    int64_t n = h->n * (s->share ? s->share : 50) / 100;
    int64_t m = h->n - n;
    wf_rel_join how = {.kind = (wf_rel_kind)s->what, .stage = s->stage, .missing = 1};
    struct pairs p = {
        .kx = rel_keys(s->x, s->x_by, n, 1), .ky = rel_keys(s->y, s->y_by, m, 2), .kind = how.kind};
    how.stage = at == WF_ON_CPU ? WF_STAGE_MERGE : how.stage;
    int64_t room = 2 * h->n;
    if (s->narrow) {
        int64_t count = 0;
        p.x = vec(WF_ELEM_U32, room);
        p.y = vec(WF_ELEM_U32, room);
        OK(wf_prim_join_sorted(prim, at, &how, p.x, p.y, p.kx, p.ky, &count, NULL));
        h->ns = spent();
        p.x.count = p.y.count = count;
    } else {
        wf_relation x = tuples(tuple_words(p.kx));
        wf_relation y = tuples(tuple_words(p.ky));
        wf_array words = vec(WF_ELEM_U128, room);
        wf_relation out = {.word = WF_ELEM_U128, .data = words.data, .room = room};
        OK(wf_prim_rel_join(prim, at, &how, &out, &x, &y, NULL));
        h->ns = spent();
        words.count = out.count;
        unpack(&p, words);
        check_tuple_keys(&p, words);
    }
    check_pairs(&p);
}

/* --- what takes one relation --- */

static void run_rel_reduce(struct huge *h) {
    const struct rel_spec *s = h->spec;
    int64_t n = h->n;
    wf_array keys = rel_keys(s->x, s->x_by, n, 1);
    wf_array words = tuple_words(keys);
    wf_relation in = tuples(words);
    wf_array out_keys = vec(WF_ELEM_U64, n);
    wf_array values = vec(WF_ELEM_U64, n);
    wf_relation out = {.word = WF_ELEM_U64, .data = out_keys.data, .room = n};
    OK(wf_prim_rel_reduce(prim, at, (wf_reduce)s->what, 1, &out, values, &in, NULL));
    h->ns = spent();
    wf_array run_keys = vec(WF_ELEM_U32, n);
    wf_array expected = vec(WF_ELEM_U64, n);
    int64_t runs = 0;
    wf_array numbers = words; /* no longer needed */
    iota(numbers, 0, 1);
    if (s->what == WF_REDUCE_COUNT) {
        uint64_t one = 1;
        OK(wf_prim_fill(prim, at, numbers, &one, NULL));
    }
    OK(wf_prim_reduce_runs(prim, at,
                           s->what == WF_REDUCE_MIN   ? WF_FOLD_MIN
                           : s->what == WF_REDUCE_MAX ? WF_FOLD_MAX
                                                      : WF_FOLD_ADD,
                           run_keys, expected, keys, numbers, &runs, NULL));
    NEED(runs == out.count, "%" PRId64 " keys, expected %" PRId64, out.count, runs);
    expect_same(part(values, 0, runs), part(expected, 0, runs), "values");
    wf_array v = part(out_keys, 0, runs);
    mapk("SHR_I64", v, v, 32);
    widen(part(expected, 0, runs), part(run_keys, 0, runs));
    expect_same(v, part(expected, 0, runs), "keys of values");
}

/* Fields (key, number) to (number, key), and to the key alone. */
static void run_rel_project(struct huge *h) {
    wf_array keys = vec(WF_ELEM_U32, h->n);
    make_keys(keys, SHAPE_RANDOM, 4);
    wf_array words = tuple_words(keys);
    wf_relation in = tuples(words);
    wf_array room = vec(WF_ELEM_U64, h->n);
    wf_array slim = vec(WF_ELEM_U32, h->n);
    wf_relation out = {.word = WF_ELEM_U64, .data = room.data, .room = h->n};
    wf_relation thin = {.word = WF_ELEM_U32, .data = slim.data, .room = h->n};
    static const int fields[] = {1, 0};
    OK(wf_prim_rel_project(prim, at, &out, &in, fields, 2, NULL));
    h->ns = spent();
    OK(wf_prim_rel_project(prim, at, &thin, &in, fields + 1, 1, NULL));
    NEED(out.count == h->n && thin.count == h->n, "tuples");
    expect_same(slim, keys, "keys alone");
    wf_array t = vec(WF_ELEM_U64, h->n < CHUNK ? h->n : CHUNK);
    wf_array v = vec(WF_ELEM_U64, t.count);
    for (int64_t first = 0; first < h->n; first += CHUNK) {
        v.count = t.count = h->n - first < CHUNK ? h->n - first : CHUNK;
        iota(v, first, 1);
        mapk("SHL_I64", v, v, 32);
        widen(t, part(keys, first, t.count));
        map2("ADD_I64", v, v, t);
        expect_same(part(room, first, v.count), v, "fields in another order");
    }
}

/* key < a or key >= b and number < c, in order, in any order, and in pages. */
static void run_rel_select(struct huge *h) {
    int64_t n = h->n;
    wf_array keys = vec(WF_ELEM_U32, n);
    make_keys(keys, (enum prim_shape)((const struct rel_spec *)h->spec)->x, 4);
    wf_array words = tuple_words(keys);
    wf_relation in = tuples(words);
    wf_array room = vec(WF_ELEM_U64, n);
    wf_array expected = vec(WF_ELEM_U64, n);
    wf_array flags = vec(WF_ELEM_BOOL, n);
    wf_array t = vec(WF_ELEM_BOOL, n);
    wf_array v = vec(WF_ELEM_U64, n);
    wf_term terms[] = {{0, WF_COMPARE_LT, 40, 0},
                       {0, WF_COMPARE_GE, 1U << 30, 1},
                       {1, WF_COMPARE_LT, (uint64_t)n / 2, 1}};
    widen(v, keys);
    mapk("GE_I64", flags, v, 1U << 30);
    mapk("LT_I64", t, v, 40);
    iota(v, 0, 1);
    wf_array low = vec(WF_ELEM_BOOL, n);
    mapk("LT_I64", low, v, (uint64_t)n / 2);
    map2("AND_B8", flags, flags, low);
    map2("OR_B8", flags, flags, t);
    OK(wf_prim_compact(prim, at, 1, &expected, &words, 1, flags, &expected.count, NULL));
    for (int unordered = 0; unordered < 2; unordered++) {
        wf_relation out = {.word = WF_ELEM_U64, .data = room.data, .room = n};
        OK(wf_prim_rel_select(prim, at, &out, &in, terms, 3, unordered, NULL));
        h->ns = unordered ? h->ns : spent();
        wf_array got = part(room, 0, out.count);
        if (unordered) {
            expect_print(print_of(got), print_of(expected), "any order");
        } else {
            expect_same(got, expected, "selection");
        }
    }
    int64_t pages = n / 4096 + 1;
    wf_relation paged = {.word = WF_ELEM_U64,
                         .form = WF_PAGED,
                         .data = vec(WF_ELEM_U64, pages * 4096).data,
                         .room = pages,
                         .page_rows = 4096,
                         .fills = vec(WF_ELEM_U32, pages).data};
    wf_relation dense = {.word = WF_ELEM_U64, .data = room.data, .room = n};
    OK(wf_prim_rel_select(prim, at, &paged, &in, terms, 3, 0, NULL));
    OK(wf_prim_rel_convert(prim, at, &dense, &paged, NULL));
    expect_same(part(room, 0, dense.count), expected, "selection in pages");
}

/* n tuples with m: out[i] = x[i / m], y[i % m]. */
static void run_rel_product(struct huge *h) {
    int64_t m = (int64_t)sqrt((double)h->n) + 1;
    int64_t n = h->n / m;
    wf_array x = vec(WF_ELEM_U64, n);
    wf_array y = vec(WF_ELEM_U64, m);
    iota(x, 7LL << 32, 1LL << 32);
    iota(y, 9LL << 32, 1LL << 32);
    wf_relation rx = {.word = WF_ELEM_U64,
                      .field_count = 1,
                      .key_count = 1,
                      .bits = {32},
                      .data = x.data,
                      .count = n};
    wf_relation ry = rx;
    ry.data = y.data;
    ry.count = m;
    wf_array room = vec(WF_ELEM_U64, n * m);
    wf_relation out = {.word = WF_ELEM_U64, .data = room.data, .room = n * m};
    OK(wf_prim_rel_product(prim, at, &out, &rx, &ry, NULL));
    h->ns = spent();
    NEED(out.count == n * m, "%" PRId64 " tuples", out.count);
    wf_array t = vec(WF_ELEM_U64, n * m < CHUNK ? n * m : CHUNK);
    wf_array v = vec(WF_ELEM_U64, t.count);
    for (int64_t first = 0; first < n * m; first += CHUNK) {
        v.count = t.count = n * m - first < CHUNK ? n * m - first : CHUNK;
        iota(v, first, 1);
        mapk("MOD_I64", t, v, (uint64_t)m);
        mapk("DIV_I64", v, v, (uint64_t)m);
        mapk("SHL_I64", v, v, 32);
        map2("ADD_I64", v, v, t);
        mapk("ADD_I64", v, v, (7ULL << 32) + 9);
        expect_same(part(room, first, v.count), v, "product");
    }
}

#define REL(shape, by, other, other_by, does, ...)                                   \
    &(const struct rel_spec) {                                                       \
        SHAPE_##shape, SHAPE_##other, by, other_by, .what = (int)(does), __VA_ARGS__ \
    }
static const struct huge_case rel_cases[] = {
    {"rel union random", run_rel_set, REL(RANDOM, 1, RANDOM, 1, WF_UNION, .narrow = 0), 100, 60},
    {"rel union zipf with sorted", run_rel_set, REL(ZIPF, 1, SORTED, 1, WF_UNION, .narrow = 0), 100,
     60},
    {"rel intersection repeated", run_rel_set,
     REL(SORTED, 4, SORTED, 3, WF_INTERSECTION, .share = 60), 100, 60},
    {"rel intersection constant", run_rel_set,
     REL(CONSTANT, 1, SORTED, 1, WF_INTERSECTION, .narrow = 0), 100, 60},
    {"rel difference pareto", run_rel_set, REL(PARETO, 1, ZIPF, 1, WF_DIFFERENCE, .narrow = 0), 100,
     60},
    {"rel difference duplicates", run_rel_set,
     REL(DUPLICATES, 1, RANDOM, 1, WF_DIFFERENCE, .share = 30), 100, 60},
    {"rel union of keys, random, many", run_rel_set,
     REL(RANDOM, 1, RANDOM, 1, WF_UNION, .narrow = 1), 230, 40},
    {"rel intersection of keys, zipf", run_rel_set,
     REL(ZIPF, 1, ZIPF, 1, WF_INTERSECTION, .narrow = 1), 100, 40},
    {"rel difference of keys, repeated", run_rel_set,
     REL(SORTED, 4, SORTED, 3, WF_DIFFERENCE, .narrow = 1), 100, 40},
    {"rel join inner random", run_rel_join, REL(RANDOM, 1, RANDOM, 1, WF_REL_INNER, .share = 50),
     80, 130},
    {"rel join inner zipf with sorted", run_rel_join,
     REL(ZIPF, 1, SORTED, 1, WF_REL_INNER, .share = 50), 80, 130},
    {"rel join inner repeated", run_rel_join, REL(SORTED, 3, SORTED, 2, WF_REL_INNER, .share = 50),
     60, 130},
    {"rel join left pareto with sorted", run_rel_join,
     REL(PARETO, 1, SORTED, 2, WF_REL_LEFT, .share = 40), 50, 130},
    {"rel join right duplicates", run_rel_join,
     REL(SORTED, 1, DUPLICATES, 1, WF_REL_RIGHT, .share = 50), 60, 130},
    {"rel join full random", run_rel_join, REL(RANDOM, 1, SORTED, 1, WF_REL_FULL, .share = 50), 60,
     130},
    {"rel join inner constant with sorted", run_rel_join,
     REL(CONSTANT, 1, SORTED, 1, WF_REL_INNER, .share = 50), 60, 130},
    {"rel join inner, binary", run_rel_join,
     REL(SORTED, 2, SORTED, 1, WF_REL_INNER, .stage = WF_STAGE_BINARY), 50, 130},
    {"rel join left, blocked", run_rel_join,
     REL(ZIPF, 1, SORTED, 1, WF_REL_LEFT, .stage = WF_STAGE_BLOCKED), 50, 130},
    {"rel join inner, brute", run_rel_join,
     REL(RANDOM, 1, RANDOM, 1, WF_REL_INNER, .stage = WF_STAGE_BRUTE), 20, 130},
    {"rel join inner, hash", run_rel_join,
     REL(SORTED, 1, SORTED, 1, WF_REL_INNER, .stage = WF_STAGE_HASH), 50, 130},
    {"rel join left, network", run_rel_join,
     REL(RANDOM, 1, RANDOM, 1, WF_REL_LEFT, .stage = WF_STAGE_NETWORK), 50, 130},
    {"join sorted inner random, many", run_rel_join,
     REL(RANDOM, 1, RANDOM, 1, WF_REL_INNER, .narrow = 1), 120, 90},
    {"join sorted inner 3 with 3", run_rel_join,
     REL(SORTED, 3, SORTED, 3, WF_REL_INNER, .narrow = 1), 100, 110},
    {"join sorted left zipf", run_rel_join, REL(ZIPF, 1, SORTED, 1, WF_REL_LEFT, .narrow = 1), 100,
     100},
    {"join sorted full pareto", run_rel_join, REL(PARETO, 1, SORTED, 1, WF_REL_FULL, .narrow = 1),
     100, 110},
    {"rel reduce sum random", run_rel_reduce, REL(RANDOM, 8, RANDOM, 1, WF_REDUCE_SUM, .share = 1),
     100, 70},
    {"rel reduce count zipf", run_rel_reduce, REL(ZIPF, 1, RANDOM, 1, WF_REDUCE_COUNT, .share = 1),
     100, 70},
    {"rel reduce min constant", run_rel_reduce,
     REL(CONSTANT, 1, RANDOM, 1, WF_REDUCE_MIN, .share = 1), 100, 70},
    {"rel reduce max pareto, many", run_rel_reduce,
     REL(PARETO, 1, RANDOM, 1, WF_REDUCE_MAX, .share = 1), 220, 50},
    {"rel project, many", run_rel_project, NULL, 220, 36},
    {"rel select random", run_rel_select, REL(RANDOM, 1, RANDOM, 1, 0, .share = 1), 100, 70},
    {"rel select zipf", run_rel_select, REL(ZIPF, 1, RANDOM, 1, 0, .share = 1), 100, 70},
    {"rel product, many", run_rel_product, NULL, 450, 12},
};

/* --- the checks themselves --- */

/* A join whose result is damaged: a row is given twice, another is lost. */
static void damage_join(struct huge *h) {
    struct sides s;
    struct print got = {0};
    make_sides(&s, h);
    struct print expected = expect_join(&s);
    struct result r = {.keys = s.r_keys, .r_col = s.r_col, .r_rows = s.r_col};
    uint32_t again = 17;
    wf_array rows = vec(WF_ELEM_U32, s.n);
    iota(rows, 0, 1);
    r.r_rows = rows;
    if (h->ns) { /* a semi join of rows that all have partners is R itself */
        poke(rows, 18, &again);
        poke(s.r_col, 18, &again);
        uint64_t key[2];
        peek(s.r_keys, 17, key);
        poke(s.r_keys, 18, key);
    }
    check_rows(&s, &r, &got, 0, s.n);
    expect_print(got, expected, "rows of the join");
}

static void damage_pairs(struct huge *h) {
    struct pairs p = {.kx = rel_keys(SHAPE_SORTED, 1, h->n, 1),
                      .ky = rel_keys(SHAPE_SORTED, 1, h->n, 2),
                      .x = vec(WF_ELEM_U32, h->n),
                      .y = vec(WF_ELEM_U32, h->n),
                      .kind = WF_REL_INNER};
    uint32_t other = 5;
    iota(p.x, 0, 1);
    iota(p.y, 0, 1);
    if (h->ns == 1) {
        poke(p.y, 9, &other);
    } else if (h->ns == 2) {
        p.x.count = p.y.count = h->n - 1;
    }
    check_pairs(&p);
}

static void test_checks_fail(void **state) {
    (void)state;
    static const struct join_spec semi = {.kind = WF_JOIN_SEMI,
                                          .type = WF_ELEM_U32,
                                          .shape = SHAPE_RANDOM,
                                          .copies = 1,
                                          .s_percent = 100,
                                          .all = 1};
    for (int place = 0; place < prim_places(); place++) {
        at = (wf_place)place;
        for (int wrong = 0; wrong < 3; wrong++) {
            struct huge h = {.n = 999, .ns = wrong, .spec = &semi};
            assert_int_equal(attempt(damage_join, &h), wrong == 0);
            assert_int_equal(attempt(damage_pairs, &h), wrong == 0);
        }
    }
}

enum { USUAL = 1999 };
#define RUN(cases) run_cases(cases, (int)(sizeof cases / sizeof *cases), USUAL)

static void test_joins(void **state) {
    (void)state;
    RUN(join_cases);
}
static void test_relations(void **state) {
    (void)state;
    RUN(rel_cases);
}

int main(int argc, char **argv) {
    huge_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks_fail),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_relations),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

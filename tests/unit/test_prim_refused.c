/* test_prim_refused.c: what the primitives on arrays refuse: wrong types, sizes, options and
 * places, arrays that overlap, limits; and that the same call without the mistake is fine. */
#include "test_prim_fixture.h"

static const wf_array none = {.type = WF_ELEM_U32};

/* A key of 20 bits and a field of 8. */
static wf_relation layout(void) {
    return (wf_relation){.word = WF_ELEM_U32, .field_count = 2, .key_count = 1, .bits = {20, 8}};
}

/* Two sides of 64 rows, and a result of as many. */
static uint32_t few_r[64], few_s[64], few_out[128];

static wf_join_spec few_spec(void) {
    wf_join_spec spec = {.want_rows = 1};
    for (int i = 0; i < 64; i++) {
        few_r[i] = few_s[i] = (uint32_t)i * 1000003u;
    }
    spec.r.keys = prim_array(WF_ELEM_U32, few_r, 64);
    spec.s.keys = prim_array(WF_ELEM_U32, few_s, 64);
    return spec;
}

static void refuse_open(wf_place at, const wf_join_spec *spec, const char *sqlstate) {
    wf_join *join = NULL;
    assert_prim_error(wf_prim_join_open(prim, at, spec, &join), sqlstate);
    assert_null(join);
}

static void test_refused_specs(void **state) {
    (void)state;
    static const float f[4];
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_join_spec bad = few_spec();
        bad.algorithm = (wf_join_algorithm)99;
        refuse_open(at, &bad, "22023");
        bad = few_spec();
        bad.kind = (wf_join_kind)-1;
        refuse_open(at, &bad, "22023");
        bad = few_spec();
        bad.s.keys.type = WF_ELEM_I32;
        refuse_open(at, &bad, "42804");
        bad.s.keys = bad.r.keys = prim_array(WF_ELEM_BOOL, (void *)(size_t)f, 4);
        refuse_open(at, &bad, "42804");
        bad = few_spec();
        bad.r.keys.count = -1;
        refuse_open(at, &bad, "22023");
        bad = few_spec();
        bad.r.keys.count = 0xffffffffLL;
        refuse_open(at, &bad, "54000");
        bad = few_spec();
        bad.r.column_count = 9;
        refuse_open(at, &bad, "22023");
        bad.r.column_count = 1;
        refuse_open(at, &bad, "22023");
        wf_array column = prim_array(WF_ELEM_U32, few_out, 63);
        bad.r.columns = &column;
        refuse_open(at, &bad, "22023");
        bad = few_spec();
        bad.band = 1;
        bad.algorithm = WF_JOIN_PLAIN_HASH;
        refuse_open(at, &bad, "0A000");
        bad = few_spec();
        bad.algorithm = WF_JOIN_DIRECT;
        refuse_open(at, &bad, "54000");
        bad.algorithm = WF_JOIN_PARTITIONED_HASH;
        bad.memory_limit = 100;
        refuse_open(at, &bad, "53200");
        bad.memory_limit = -1;
        refuse_open(at, &bad, "22023");
    }
    assert_int_equal(wf_prim_join_open(NULL, WF_ON_CPU, NULL, NULL), WF_MISUSE);
    wf_prim_join_close(NULL);
}

static void refuse_next(wf_join *join, wf_join_out out, const char *sqlstate) {
    int64_t count = -1;
    assert_prim_error(wf_prim_join_next(join, &out, &count), sqlstate);
    assert_int_equal(count, 0);
}

static void test_refused_outputs(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_join_spec spec = few_spec();
        wf_join_out out = {.r_rows = prim_array(WF_ELEM_U32, few_out, 128)};
        wf_join_out bad = {.r_rows = prim_array(WF_ELEM_U32, few_out, 63)};
        int64_t count = -1;
        wf_join *join = NULL;
        assert_prim_error(wf_prim_join(prim, at, &spec, &bad, &count), "54000");
        assert_int_equal(count, 64);
        assert_prim_ok(wf_prim_join_open(prim, at, &spec, &join));
        bad.r_rows.type = WF_ELEM_F32;
        refuse_next(join, bad, "42804");
        bad = out;
        bad.keys = prim_array(WF_ELEM_U64, few_out, 10);
        refuse_next(join, bad, "42804");
        bad = out;
        bad.s_rows = prim_array(WF_ELEM_U32, few_out + 10, 10);
        refuse_next(join, bad, "22023"); /* they overlap */
        bad = (wf_join_out){.keys = prim_array(WF_ELEM_U32, NULL, 10)};
        refuse_next(join, bad, "22023");
        bad = (wf_join_out){.keys = prim_array(WF_ELEM_U32, few_s + 8, 10)};
        refuse_next(join, bad, "22023"); /* S is still read */
        bad = out;
        bad.r_rows.count = 0;
        refuse_next(join, bad, "22023");
        assert_prim_ok(wf_prim_join_next(join, &out, &count));
        assert_int_equal(count, 64);
        assert_prim_ok(wf_prim_join_next(join, &out, &count));
        assert_int_equal(count, 0);
        wf_prim_join_close(join);
        spec.kind = WF_JOIN_ANTI;
        spec.want_rows = 0;
        assert_prim_ok(wf_prim_join_open(prim, at, &spec, &join));
        refuse_next(join, out, "22023");
        wf_prim_join_close(join);
        spec.want_rows = 1;
        assert_prim_ok(wf_prim_join_open(prim, at, &spec, &join));
        refuse_next(join, (wf_join_out){.s_rows = prim_array(WF_ELEM_U32, few_out, 10)}, "22023");
        wf_prim_join_close(join);
    }
}

static void test_algebra_joins(void **state) {
    (void)state;
    static uint32_t a[64], b[64];
    static uint64_t c[256];
    static const wf_rel_join inner = {WF_REL_INNER, WF_STAGE_MERGE, 0, 0};
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_relation in = layout();
        in.data = a;
        in.count = 10;
        wf_relation in2 = in;
        in2.data = b;
        wf_relation out = {.word = WF_ELEM_U32, .data = b, .room = 64};
        wf_relation wide = {.word = WF_ELEM_U64, .data = c, .room = 256};
        wf_rel_join how = inner;
        assert_prim_error(wf_prim_rel_join(prim, at, NULL, &wide, &in, &in2, NULL), "22023");
        assert_prim_error(wf_prim_rel_join(prim, at, &inner, &out, &in, &in2, NULL), "22023");
        how.kind = (wf_rel_kind)9;
        assert_prim_error(wf_prim_rel_join(prim, at, &how, &wide, &in, &in2, NULL), "22023");
        how = (wf_rel_join){WF_REL_FULL, WF_STAGE_HASH, 0, 0};
        assert_prim_error(wf_prim_rel_join(prim, at, &how, &wide, &in, &in2, NULL), "0A000");
        in2.bits[0] = 19;
        assert_prim_error(wf_prim_rel_join(prim, at, &inner, &wide, &in, &in2, NULL), "42804");
        in2.bits[0] = 20;
        in2.key_count = 0;
        assert_prim_error(wf_prim_rel_set(prim, at, WF_UNION, &wide, &in, &in2, NULL), "22023");
        in2.key_count = 1;
        assert_prim_error(wf_prim_rel_set(prim, at, WF_UNION, &wide, &in, &in2, NULL), "42804");
        assert_prim_error(wf_prim_rel_reduce(prim, at, WF_REDUCE_SUM, 5, &out,
                                             prim_array(WF_ELEM_U64, c, 64), &in, NULL),
                          "22023");
        assert_prim_error(wf_prim_rel_reduce(prim, at, WF_REDUCE_SUM, 1, &out,
                                             prim_array(WF_ELEM_U32, c, 64), &in, NULL),
                          "42804");
        wf_work work = {NULL, 0, 0};
        assert_prim_ok(wf_prim_rel_join(prim, at, &inner, &wide, &in, &in2, &work));
        assert_true(work.needed > 0);
    }
    assert_int_equal(wf_prim_rel_convert(NULL, WF_ON_CPU, NULL, NULL, NULL), WF_MISUSE);
}

static void test_algebra(void **state) {
    (void)state;
    static uint32_t a[64], b[64];
    static uint64_t c[256];
    static const int fields[] = {0, 1};
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_relation in = layout();
        in.data = a;
        in.count = 10;
        wf_relation out = {.word = WF_ELEM_U32, .data = b, .room = 64};
        wf_relation wide = {.word = WF_ELEM_U64, .data = c, .room = 256};
        const wf_term bad_field[] = {{7, WF_COMPARE_EQ, 1, 0}};
        const wf_term bad_clause[] = {{0, WF_COMPARE_EQ, 1, 1}, {0, WF_COMPARE_EQ, 1, 0}};
        assert_prim_error(wf_prim_rel_project(prim, at, NULL, &in, fields, 2, NULL), "22023");
        assert_prim_error(wf_prim_rel_project(prim, at, &out, NULL, fields, 2, NULL), "22023");
        assert_prim_error(wf_prim_rel_project(prim, at, &out, &in, NULL, 2, NULL), "22023");
        assert_prim_error(wf_prim_rel_project(prim, at, &out, &in, fields, 17, NULL), "22023");
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, bad_field, 1, 0, NULL), "22023");
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, bad_clause, 2, 0, NULL), "22023");
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, bad_field, 99, 0, NULL), "22023");
        assert_prim_error(wf_prim_rel_select(prim, at, &wide, &in, NULL, 0, 0, NULL), "42804");
        assert_prim_error(wf_prim_rel_convert(prim, at, &wide, &in, NULL), "42804");
        assert_prim_error(wf_prim_rel_product(prim, at, &out, &in, &in, NULL), "22023");
        in.count = -1;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        in.count = 10;
        in.bits[0] = 30;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        in.bits[0] = 0;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        in.bits[0] = 20;
        in.word = WF_ELEM_I32;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "42804");
        in.word = WF_ELEM_U32;
        out.data = a + 4;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        out.data = NULL;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        out.data = b;
        out.form = WF_PAGED;
        out.page_rows = 10;
        out.fills = (uint32_t *)c;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
        out.page_rows = 16;
        out.room = 0;
        assert_prim_error(wf_prim_rel_select(prim, at, &out, &in, NULL, 0, 0, NULL), "22023");
    }
}

static void test_order(void **state) {
    (void)state;
    static uint32_t a[64], b[64];
    static uint64_t starts[40];
    wf_array in = prim_array(WF_ELEM_U32, a, 10);
    wf_array out = prim_array(WF_ELEM_U32, b, 10);
    wf_array places = prim_array(WF_ELEM_U64, starts, 17);
    wf_split how = {.by = WF_SPLIT_RADIX, .bits = 4};
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
#define SPLIT(how, out, starts, in) \
    wf_prim_split(prim, at, how, out, starts, in, NULL, NULL, 0, NULL)
        assert_prim_ok(SPLIT(&how, out, places, in));
        assert_prim_ok(SPLIT(&how, out, none, in));
        assert_prim_error(SPLIT(NULL, out, none, in), "22023");
        places.count = 16;
        assert_prim_error(SPLIT(&how, out, places, in), "22023");
        places.count = 17;
        how.shift = 30;
        assert_prim_error(SPLIT(&how, out, none, in), "22023");
        how = (wf_split){.by = (wf_split_by)9, .bits = 4};
        assert_prim_error(SPLIT(&how, out, none, in), "22023");
        how = (wf_split){.by = WF_SPLIT_RANGE, .splitters = prim_array(WF_ELEM_I32, a + 32, 3)};
        assert_prim_error(SPLIT(&how, out, none, in), "42804");
        how = (wf_split){.by = WF_SPLIT_RADIX, .bits = 4};
        out.data = a + 5;
        assert_prim_error(SPLIT(&how, out, none, in), "22023");
        out.data = b;
        out.type = WF_ELEM_F32;
        assert_prim_error(SPLIT(&how, out, none, in), "42804");
        out.type = WF_ELEM_U32;
        in.count = 11;
        assert_prim_error(SPLIT(&how, out, none, in), "22023");
        in.count = -1;
        assert_prim_error(SPLIT(&how, out, none, in), "22023");
        in.count = 10;
#define SORT(how, out, in, count) wf_prim_sort(prim, at, how, out, in, &out, &in, count, NULL)
        wf_sort sort = {.by = WF_SORT_RADIX, .low_bit = 4, .high_bit = 2};
        assert_prim_error(SORT(&sort, out, in, 0), "22023");
        assert_prim_error(SORT(&sort, out, in, 3), "22023");
        sort = (wf_sort){.by = WF_SORT_MERGE, .high_bit = 2};
        assert_prim_error(SORT(&sort, out, in, 0), "0A000");
        sort = (wf_sort){.by = (wf_sort_by)77};
        assert_prim_error(SORT(&sort, out, in, 0), "22023");
        assert_prim_error(SORT(NULL, out, in, 1), "22023"); /* the payload overlaps the keys */
        assert_prim_error(wf_prim_sort(prim, at, NULL, out, in, NULL, NULL, 1, NULL), "22023");
        assert_prim_ok(SORT(NULL, out, in, 0));
    }
    assert_int_equal(wf_prim_sort(NULL, WF_ON_CPU, NULL, out, in, NULL, NULL, 0, NULL), WF_MISUSE);
}

static void test_move(void **state) {
    (void)state;
    static uint32_t a[64];
    wf_array in = prim_array(WF_ELEM_U32, a, 10);
    wf_array out = prim_array(WF_ELEM_U32, a + 32, 10);
    wf_array f = prim_array(WF_ELEM_F32, a + 32, 10);
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        assert_prim_error(wf_prim_scan(prim, at, (wf_fold)99, 0, out, in, NULL), "22023");
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, f, in, NULL), "42804");
        in.type = WF_ELEM_F32;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, f, in, NULL), "0A000");
        in.type = WF_ELEM_TEXT;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "42804");
        in.type = WF_ELEM_U32;
        in.count = -1;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        in.count = 11;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        in.count = 10;
        out.data = a + 1;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        out.data = NULL;
        assert_prim_error(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL), "22023");
        out.data = a + 32;
        assert_prim_ok(wf_prim_scan(prim, at, WF_FOLD_ADD, 0, out, in, NULL));
        assert_int_equal(wf_prim_error(prim)->status, WF_OK);
    }
    assert_prim_error(wf_prim_scan(prim, (wf_place)7, WF_FOLD_ADD, 0, out, in, NULL), "22023");
    assert_int_equal(wf_prim_scan(NULL, WF_ON_CPU, WF_FOLD_ADD, 0, out, in, NULL), WF_MISUSE);
}

static void test_map(void **state) {
    (void)state;
    static int64_t a[16], b[16], out[16];
    static wf_span spans[2] = {{0, 3}, {3, 6}};
    static int32_t lengths[2];
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_array in[2] = {prim_array(WF_ELEM_I64, a, 10), prim_array(WF_ELEM_I64, b, 10)};
        wf_array to = prim_array(WF_ELEM_I64, out, 10);
        b[3] = 0;
        assert_prim_error(wf_prim_map(prim, at, "DIV_I64", to, in, 2, NULL), "22012");
        assert_prim_error(wf_prim_map(prim, at, "NO_SUCH", to, in, 2, NULL), "42883");
        assert_prim_error(wf_prim_map(prim, at, NULL, to, in, 2, NULL), "42883");
        assert_prim_error(wf_prim_map(prim, at, "FILTER", to, in, 2, NULL), "0A000");
        assert_prim_error(wf_prim_map(prim, at, "SEL_STR", to, in, 2, NULL), "0A000");
        assert_prim_error(wf_prim_map(prim, at, "PARSE_DATE", to, in, 1, NULL), "0A000");
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, in, 1, NULL), "22023");
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, NULL, 2, NULL), "22023");
        assert_prim_error(wf_prim_map(prim, at, "ADD_I32", to, in, 2, NULL), "42804");
        in[1].type = WF_ELEM_F64;
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, in, 2, NULL), "42804");
        in[1].type = WF_ELEM_U64;
        in[1].count = 9;
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, in, 2, NULL), "22023");
        in[1].count = 10;
        to.count = 9;
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, in, 2, NULL), "22023");
        to.count = 10;
        to.data = a + 1;
        assert_prim_error(wf_prim_map(prim, at, "ADD_I64", to, in, 2, NULL), "22023");
        to.data = out;
        in[0].count = in[1].count = 0;
        assert_prim_ok(wf_prim_map(prim, at, "ADD_I64", to, in, 2, NULL));
        wf_array text = {WF_ELEM_TEXT, spans, 2, "abcdefgh", 8};
        assert_prim_error(wf_prim_map(prim, at, "LENGTH_STR", prim_array(WF_ELEM_I32, lengths, 2),
                                      &text, 1, NULL),
                          "22003"); /* a span leaves the bytes */
        spans[1].length = 5;
        assert_prim_ok(wf_prim_map(prim, at, "LENGTH_STR", prim_array(WF_ELEM_I32, lengths, 2),
                                   &text, 1, NULL));
        assert_true(lengths[0] == 3 && lengths[1] == 5);
        spans[1].length = 6;
    }
}

static void test_compact(void **state) {
    (void)state;
    static uint32_t a[32], b[32];
    static uint8_t f[32];
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
        wf_array in[9] = {prim_array(WF_ELEM_U32, a, 10)};
        wf_array out[9] = {prim_array(WF_ELEM_U32, b, 10)};
        wf_array flags = prim_array(WF_ELEM_BOOL, f, 10);
        int64_t count;
        assert_prim_ok(wf_prim_compact(prim, at, 1, out, in, 1, flags, &count, NULL));
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 0, flags, &count, NULL), "22023");
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 9, flags, &count, NULL), "22023");
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 1, flags, NULL, NULL), "22023");
        assert_prim_error(wf_prim_compact(prim, at, 1, NULL, in, 1, flags, &count, NULL), "22023");
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 1, in[0], &count, NULL), "42804");
        in[0].count = 9;
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 1, flags, &count, NULL), "22023");
        in[0].count = 10;
        out[0].type = WF_ELEM_I32;
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 1, flags, &count, NULL), "42804");
        out[0] = in[0];
        assert_prim_error(wf_prim_compact(prim, at, 1, out, in, 1, flags, &count, NULL), "22023");
        out[0].data = b;
        uint32_t five = 5;
        assert_prim_error(wf_prim_compact_compare(prim, at, 1, out, in, 1, in[0], (wf_compare)9,
                                                  &five, &count, NULL),
                          "22023");
        assert_prim_error(wf_prim_compact_compare(prim, at, 1, out, in, 1, in[0], WF_COMPARE_EQ,
                                                  NULL, &count, NULL),
                          "22023");
        in[0].count = flags.count = 0;
        assert_prim_ok(wf_prim_compact(prim, at, 0, out, in, 1, flags, &count, NULL));
        assert_int_equal(count, 0);
    }
}

static void test_merge(void **state) {
    (void)state;
    static uint64_t a[64], b[64], c[64];
    wf_array x = prim_array(WF_ELEM_U64, a, 10);
    wf_array y = prim_array(WF_ELEM_U64, b, 10);
    wf_array z = prim_array(WF_ELEM_U64, c, 20);
    wf_array f = prim_array(WF_ELEM_F64, c, 20);
    int64_t count;
    for (int place = 0; place < prim_places(); place++) {
        wf_place at = (wf_place)place;
#define MERGE(out, a, b) wf_prim_merge(prim, at, out, a, b, none, none, none, NULL)
        assert_prim_ok(MERGE(z, x, y));
        assert_prim_error(MERGE(f, x, y), "42804");
        assert_prim_error(MERGE(z, x, f), "42804");
        assert_prim_error(MERGE(y, x, y), "22023");
        assert_prim_error(wf_prim_merge(prim, at, z, x, y, f, none, none, NULL), "42804");
        z.count = 19;
        assert_prim_error(MERGE(z, x, y), "22023");
        x.count = -1;
        assert_prim_error(MERGE(z, x, y), "22023");
        x.count = 10;
        z.count = 20;
        assert_prim_error(wf_prim_search(prim, at, 0, 0, f, x, y, NULL), "42804");
        z.count = 9;
        assert_prim_error(wf_prim_search(prim, at, 0, 0, z, x, y, NULL), "22023");
        assert_prim_error(wf_prim_balance(prim, at, z, 10, y, NULL), "22023");
        assert_prim_error(wf_prim_balance(prim, at, z, -1, y, NULL), "22023");
        z.count = 20;
        assert_prim_error(wf_prim_balance(prim, at, z, 10, f, NULL), "42804");
        assert_prim_error(wf_prim_runs(prim, at, f, none, none, x, &count, NULL), "42804");
        assert_prim_error(wf_prim_runs(prim, at, z, none, none, x, NULL, NULL), "22023");
        wf_set_how how = {(wf_set_op)9, 0, 0};
        assert_prim_error(wf_prim_set(prim, at, &how, z, x, y, &count, NULL), "22023");
        how = (wf_set_how){WF_SET_UNION, 0, 64};
        assert_prim_error(wf_prim_set(prim, at, &how, z, x, y, &count, NULL), "22023");
        how.ignore_bits = 3;
        x.type = y.type = z.type = WF_ELEM_I64;
        assert_prim_error(wf_prim_set(prim, at, &how, z, x, y, &count, NULL), "0A000");
        x.type = y.type = z.type = WF_ELEM_U64;
        assert_prim_error(wf_prim_set(prim, at, &how, y, x, y, &count, NULL), "22023");
        assert_prim_error(wf_prim_set(prim, at, NULL, z, x, y, &count, NULL), "22023");
        assert_prim_ok(wf_prim_set(prim, at, &how, z, x, y, &count, NULL));
    }
    assert_int_equal(wf_prim_runs(NULL, WF_ON_CPU, z, none, none, x, &count, NULL), WF_MISUSE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_specs), cmocka_unit_test(test_refused_outputs),
        cmocka_unit_test(test_algebra_joins), cmocka_unit_test(test_algebra),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_move),
        cmocka_unit_test(test_map),           cmocka_unit_test(test_compact),
        cmocka_unit_test(test_merge),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

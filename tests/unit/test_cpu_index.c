/* test_cpu_index.c: STEP_BUILD: every form of index, against a plain list of keys.
 *
 * Keys in order, shuffled, spread, random over 64 bits; unique or repeated, a few with very many
 * rows; with NULLs, in one chunk, many, none. Each index must give, for every key there is and for
 * keys that are not there, exactly its rows, ascending; and so must its plain form, which kernels
 * read, and the loops that look up a vector of keys, of every processor level. Of a chain, its parts together
 * must. */
#include "cpu/lookup.h"
#include "test_cpu_fixture.h"

enum { ROWS_MAX = 40000 };

static i64 key[ROWS_MAX];
static b8 is_null[ROWS_MAX];

static u64 next(u64 *seed) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return hash_u64(*seed);
}

enum shape {
    IN_ORDER,
    SHUFFLED,
    SPREAD_IN_ORDER,
    SPREAD,
    FAR,
    REPEATED,
    REPEATED_IN_ORDER,
    REPEATED_FAR,
    ONE_KEY,
    SHAPES
};

static i64 key_of(i32 shape, i64 i, i64 rows, u64 r) {
    switch (shape) {
    case IN_ORDER:
        return i - 500;
    case SHUFFLED:
        return i * 7919 % 40009;
    case SPREAD_IN_ORDER:
        return i * 37;
    case SPREAD:
        return i * 7919 % 40009 * 41;
    case FAR:
        return (i64)hash_u64((u64)i);
    case REPEATED:
        return (i64)(r % (u64)(rows / 4 + 1)) * 17;
    case REPEATED_IN_ORDER:
        return i / 3;
    case REPEATED_FAR:
        return (i64)hash_u64(r % 5 ? r % (u64)(rows / 3 + 1) : 7);
    default:
        return I64_MIN;
    }
}

static void fill(struct fix *f, u32 var, i64 rows, i64 chunk_rows, bool nulls) {
    for (i64 at = 0; at < rows; at += chunk_rows) {
        i64 n = MIN_OF(chunk_rows, rows - at);
        struct chunk *chunk = chunk_new(&f->x, &f->program.vars[var], n, nulls);
        memcpy(chunk->cols[0].data, key + at, (size_t)n * sizeof *key);
        if (nulls) {
            memcpy(chunk->cols[0].nulls, is_null + at, (size_t)n);
        }
        variable_append(&f->x, var, chunk);
    }
}

/* The run of a key: of elements of *out_list, or of rows when that is NULL. */
static void find(const struct index *index, i64 k, u32 *lo, u32 *hi, const u32 **out_list) {
    u64 slot = (u64)k - (u64)index->key_lo;
    bool inside = slot < (u64)index->slot_count;
    *lo = *hi = 0;
    *out_list = index->unique ? NULL : index->rows;
    if (index->form == INDEX_HASH) {
        u64 at = hash_u64((u64)k) & ((u64)index->slot_count - 1);
        while (index->slots[at].lo != index->slots[at].hi && index->slots[at].key != k) {
            at = (at + 1) & ((u64)index->slot_count - 1);
        }
        *lo = index->slots[at].lo;
        *hi = index->slots[at].hi;
    } else if (index->form == INDEX_RANK && inside) {
        const struct rank_block *block = &index->blocks[slot >> 6];
        u64 below = block->bits & ((1ULL << (slot & 63)) - 1);
        u64 r = block->before + (u64)__builtin_popcountll(below);
        if (block->bits >> (slot & 63) & 1) {
            *lo = !index->unique ? index->heads[r] : index->rows ? index->rows[r] : (u32)r;
            *hi = !index->unique ? index->heads[r + 1] : *lo + 1;
        }
    } else if (index->form == INDEX_DIRECT && inside) {
        *lo = index->unique ? index->heads[slot] - 1 : index->heads[slot];
        *hi = index->unique ? *lo + (index->heads[slot] != 0) : index->heads[slot + 1];
    }
}

struct entry {
    i64 key;
    i64 row;
};

static int by_key(const void *a, const void *b) {
    const struct entry *ea = a;
    const struct entry *eb = b;
    return ea->key != eb->key ? (ea->key < eb->key ? -1 : 1) : ea->row < eb->row ? -1 : 1;
}

static struct entry sorted[ROWS_MAX];

static i64 sort_entries(i64 rows, bool nulls) {
    i64 n = 0;
    for (i64 i = 0; i < rows; i++) {
        if (!nulls || !is_null[i]) {
            sorted[n++] = (struct entry){key[i], i};
        }
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_key);
    return n;
}

static void check_chain(const struct index *chain, i64 rows, bool nulls) {
    i64 n = sort_entries(rows, nulls);
    assert_int_equal(chain->row_count, n);
    assert_false(chain->unique);
    for (i64 i = 0; i < n;) {
        i64 asked = sorted[i].key;
        for (i64 p = 0; p < chain->part_count; p++) {
            const struct index *part = &chain->parts[p];
            u32 lo;
            u32 hi;
            const u32 *list;
            find(part, asked, &lo, &hi, &list);
            for (; lo < hi; lo++, i++) {
                assert_true(i < n && sorted[i].key == asked);
                assert_int_equal(part->base + (list ? list[lo] : lo), sorted[i].row);
            }
        }
        assert_true(i == n || sorted[i].key != asked);
    }
}

static void check(const struct index *index, i64 rows, bool nulls) {
    i64 n = sort_entries(rows, nulls);
    assert_int_equal(index->row_count, n);
    u32 lo;
    u32 hi;
    const u32 *list;
    for (i64 i = 0; i < n;) {
        i64 end = i;
        find(index, sorted[i].key, &lo, &hi, &list);
        for (; end < n && sorted[end].key == sorted[i].key; end++) {
            u32 at = lo + (u32)(end - i);
            assert_true(at < hi);
            assert_int_equal(list ? list[at] : at, sorted[end].row);
        }
        assert_int_equal(hi - lo, end - i);
        i64 gap = (i64)((u64)sorted[end - 1].key + 1); /* not there, unless it is the next one */
        if (end == n || sorted[end].key != gap) {
            find(index, gap, &lo, &hi, &list);
            assert_int_equal(lo, hi);
        }
        i = end;
    }
}

enum { ASKED = 300 };

/* Both ways to ask a unique index for a vector of keys, half of them not there. */
static void check_lookup(const struct index *index, i64 rows, const struct vec_table *vec) {
    static u64 hash[ASKED + LOOKUP_SLACK];
    static i64 asked[ASKED], passed[ASKED + LOOKUP_SLACK];
    static i64 row[ASKED], selected[ASKED];
    static u32 at[ASKED + LOOKUP_SLACK];
    static b8 found[ASKED];
    struct lookup l = {vec, hash, passed, at};
    struct lookup_count counts[2] = {{0, 0}, {0, 0}};
    u64 seed = 17;
    for (i64 n = ASKED; n > 0; n = n * 2 / 3) {
        for (i64 i = 0; i < n; i++) {
            u64 r = next(&seed);
            asked[i] = rows && r & 1 ? key[r / 2 % (u64)rows] : (i64)(r >> (r & 63));
        }
        lookup_rows(&l, &counts[0], index, asked, n, row, found);
        i64 kept = lookup_select(&l, &counts[1], index, asked, n, selected);
        i64 k = 0;
        for (i64 i = 0; i < n; i++) {
            u32 lo;
            u32 hi;
            const u32 *list;
            find(index, asked[i], &lo, &hi, &list);
            assert_int_equal(found[i], lo != hi);
            if (found[i]) {
                assert_int_equal(row[i], lo);
                assert_true(k < kept);
                assert_int_equal(at[k++], i);
                assert_int_equal(selected[i], lo);
            }
        }
        assert_int_equal(k, kept);
    }
}

/* One reader over so many keys, few or most of them there, that it judges the filter before the
 * table; what it finds must not depend on that. */
static void check_long(const struct index *index, i64 rows, const struct vec_table *vec,
                       u64 every) {
    enum { LONG_BATCHES = 80 };
    static u64 hash[ASKED + LOOKUP_SLACK];
    static i64 asked[ASKED], passed[ASKED + LOOKUP_SLACK], row[ASKED];
    static u32 at[ASKED + LOOKUP_SLACK], los[ASKED], his[ASKED];
    static b8 found[ASKED];
    struct lookup l = {vec, hash, passed, at};
    struct lookup_count count = {0, 0};
    u64 seed = 23;
    for (i64 batch = 0; batch < LONG_BATCHES; batch++) {
        for (i64 i = 0; i < ASKED; i++) {
            u64 r = next(&seed);
            asked[i] = rows && r % every == 0 ? key[r / every % (u64)rows] : (i64)next(&seed);
        }
        if (index->unique) {
            lookup_rows(&l, &count, index, asked, ASKED, row, found);
        } else {
            lookup_runs(&l, &count, index, asked, ASKED, los, his);
        }
        for (i64 i = 0; i < ASKED; i++) {
            u32 lo;
            u32 hi;
            const u32 *list;
            find(index, asked[i], &lo, &hi, &list);
            if (index->unique) {
                assert_int_equal(found[i], lo != hi);
                assert_true(!found[i] || row[i] == lo);
            } else {
                assert_int_equal(his[i] - los[i], hi - lo);
                assert_true(lo == hi ||
                            (los[i] == lo && lookup_first(index, lo) == (list ? list[lo] : lo)));
            }
        }
    }
}

static void check_level(const struct index *index, i64 rows, const struct vec_table *vec) {
    if (index->unique) {
        check_lookup(index, rows, vec);
    }
    check_long(index, rows, vec, 50);
    check_long(index, rows, vec, 1);
}

static void check_lookups(const struct index *index, i64 rows) {
    check_level(index, rows, &vec_table_baseline);
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2) {
        check_level(index, rows, &vec_table_avx2);
    }
    if (cpu_level() >= CPU_AVX512) {
        check_level(index, rows, &vec_table_avx512);
    }
#endif
}

static void build_and_check(i32 shape, i64 rows, i64 chunk_rows, bool nulls, i32 threads) {
    u64 seed = 11;
    for (i64 i = 0; i < rows; i++) {
        u64 r = next(&seed);
        key[i] = key_of(shape, i, rows, r);
        is_null[i] = (r >> 33) % 6 == 0;
    }
    struct fix f;
    fix_init(&f, threads);
    const u8 kinds[1] = {KIND_I64};
    u32 var = fix_var(&f, VAR_ROWS, 1, kinds);
    u32 dst = fix_var(&f, VAR_INDEX, 0, NULL);
    f.program.vars[dst].rows_var = var;
    struct step *step = fix_step(&f, STEP_BUILD);
    step->src = var;
    step->dst = dst;
    fix_open(&f);
    fill(&f, var, rows, chunk_rows, nulls);
    struct run_devices devices = {.count = 1, .list = {f.cpu}};
    assert_int_equal(exec_run(&f.x, &devices), ERR_OK);
    struct index *index = f.x.vars[dst].index;
    if (index->form == INDEX_CHAIN) {
        check_chain(index, rows, nulls);
        fix_fini(&f);
        return;
    }
    check(index, rows, nulls);
    check_lookups(index, rows);
    assert_int_equal(index_plain(&f.x, index), ERR_OK);
    check(index, rows, nulls);
    fix_fini(&f);
}

static void test_forms(void **state) {
    UNUSED(state);
    for (i32 shape = 0; shape < SHAPES; shape++) {
        for (i32 nulls = 0; nulls < 2; nulls++) {
            build_and_check(shape, 0, 100, nulls, 2);
            build_and_check(shape, 1, 100, nulls, 1);
            build_and_check(shape, 70, 9, nulls, 2);
            build_and_check(shape, 5000, 5000, nulls, 1);
            build_and_check(shape, ROWS_MAX, 3000, nulls, 4);
        }
    }
}

/* Parts end where chunks do, within them, behind several. */
static void test_chains(void **state) {
    UNUSED(state);
    static const i64 limits[] = {0, 1, 100, 4096, 39999};
    for (i64 l = 0; l < COUNT_OF(limits); l++) {
        index_rows_limit(limits[l]);
        for (i32 shape = 0; shape < SHAPES; shape++) {
            i64 rows = limits[l] > 100 || limits[l] == 0 ? ROWS_MAX : 700;
            build_and_check(shape, rows, 3000, shape & 1, 2);
            build_and_check(shape, rows, rows / 7, !(shape & 1), 1);
            build_and_check(shape, 130, 9, shape & 1, 2);
        }
    }
    index_rows_limit(INDEX_ROWS_MOST);
}

static void test_choice(void **state) {
    UNUSED(state);
    static const struct {
        i32 shape;
        u8 form;
        b8 unique;
    } cases[] = {{IN_ORDER, INDEX_RANK, 1}, {SHUFFLED, INDEX_DIRECT, 1},
                 {SPREAD, INDEX_RANK, 1},   {FAR, INDEX_HASH, 1},
                 {REPEATED, INDEX_RANK, 0}, {REPEATED_FAR, INDEX_HASH, 0}};
    for (i64 c = 0; c < COUNT_OF(cases); c++) {
        struct fix f;
        fix_init(&f, 2);
        const u8 kinds[1] = {KIND_I64};
        u32 var = fix_var(&f, VAR_ROWS, 1, kinds);
        u32 dst = fix_var(&f, VAR_INDEX, 0, NULL);
        struct step *step = fix_step(&f, STEP_BUILD);
        step->src = var;
        step->dst = dst;
        u64 seed = 3;
        for (i64 i = 0; i < ROWS_MAX; i++) {
            key[i] = key_of(cases[c].shape, i, ROWS_MAX, next(&seed));
        }
        fix_open(&f);
        fill(&f, var, ROWS_MAX, 10000, false);
        struct run_devices devices = {.count = 1, .list = {f.cpu}};
        assert_int_equal(exec_run(&f.x, &devices), ERR_OK);
        assert_int_equal(f.x.vars[dst].index->form, cases[c].form);
        assert_int_equal(f.x.vars[dst].index->unique, cases[c].unique);
        assert_true(f.x.vars[dst].index->bytes > 0);
        assert_int_equal(f.x.vars[dst].index->filter_hashed, cases[c].form == INDEX_HASH);
        fix_fini(&f);
    }
}

/* Every allocation of a build may be refused: 53200, and nothing leaks. */
static void check_refusals(void) {
    static const i32 shapes[] = {SHUFFLED, SPREAD, FAR, REPEATED, REPEATED_FAR};
    for (i64 s = 0; s < COUNT_OF(shapes); s++) {
        bool done = false;
        for (i64 nth = 1; !done && nth < 200; nth++) {
            struct fix f;
            fix_init(&f, 2);
            const u8 kinds[1] = {KIND_I64};
            u32 var = fix_var(&f, VAR_ROWS, 1, kinds);
            u32 dst = fix_var(&f, VAR_INDEX, 0, NULL);
            struct step *step = fix_step(&f, STEP_BUILD);
            step->src = var;
            step->dst = dst;
            u64 seed = 3;
            for (i64 i = 0; i < ROWS_MAX; i++) {
                key[i] = key_of(shapes[s], i, ROWS_MAX, next(&seed));
            }
            fix_open(&f);
            fill(&f, var, ROWS_MAX, 10000, false);
            struct run_devices devices = {.count = 1, .list = {f.cpu}};
            memory_fail_at(nth);
            wf_status status = exec_run(&f.x, &devices);
            memory_fail_at(0);
            assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
            done = status == ERR_OK;
            fix_fini(&f);
        }
        assert_true(done);
    }
}

static void test_refusals(void **state) {
    UNUSED(state);
    check_refusals();
    index_rows_limit(ROWS_MAX / 3);
    check_refusals();
    index_rows_limit(INDEX_ROWS_MOST);
}

int main(void) {
    index_rows_limit(INDEX_ROWS_MOST); /* single indexes, but where a test says so */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

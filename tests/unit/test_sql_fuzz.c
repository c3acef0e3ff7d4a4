/* test_sql_fuzz.c: broken input: mutated queries, garbage, and statements deeper than any stack.
 *
 * Nothing here checks a result beyond "an error with a code, or a plan that verifies": the
 * sanitizers do. The seed is fixed, so a failure repeats. */
#include "test_sql_fixture.h"

#include <stdlib.h>

static const char *const seeds[] = {
    "select a, b as x, sum(c) * 2, count(*) from t where a > 1 and b like 'x%' or d between "
    "'1995-01-01' "
    "and date '1996-01-01' + interval '3' month group by a, b having sum(c) > 1.5 order by 2 desc "
    "nulls "
    "last, sum(c) limit 10 offset 3",
    "select distinct t.*, case when u.a in (1, 2, null) then u.x else 'é' end from t join u on t.a "
    "= u.a, "
    "(select a + 1 as z from u) as q(k) where coalesce(k, t.g, 0) <> nullif(h, 3)",
    "with q(p) as (select a from t) insert into u (a, x) select p, upper('abc') || p from q where "
    "$1 = p",
    "insert into u values (1, 'x', 2.5), (-2, null, '3.25'), (default, $$text$$, 1e-2)",
    "create table if not exists z (a int not null, b decimal(12,2), c double precision, d text "
    "null)",
    "copy t (a, b) from 'file.csv' with (format csv, header, delimiter '|', null '', quote '\"')",
    "explain (analyze, program off, cuda) select extract(year from d), substring(b from 2 for 3) "
    "from t",
    "drop table if exists a, main.b; set x = 'y'; show all; call f(1, n => -2.5); reset all",
    "values (1, 'a'), (2.5, null) order by 1 limit $1 offset $2",
    "select \"a\", t.\"b\", E'\\n', U&'\\0041', /* c /* d */ */ 1 -- end\n from main.t natural "
    "join u",
};

static u64 rng = 88172645463325252ULL;

static u64 next_random(void) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static void check(struct fixture *f, const char *text, i64 len) {
    wf_status status = fixture_bind(f, (struct sv){text, len});
    assert_int_not_equal(status, ERR_INTERNAL);
    assert_true(status == ERR_OK || f->err.code == status);
    assert_true(f->err.position >= -1 && f->err.position <= len);
}

/* A few edits: a byte replaced, removed, doubled, or a run copied from elsewhere. */
static i64 mutate(char *text, i64 len, i64 cap) {
    static const char marks[] = "()[],;'\"$*+-/.:=<>% \n\\x0";
    for (u64 edits = next_random() % 4 + 1; edits > 0 && len > 1; edits--) {
        i64 at = (i64)(next_random() % (u64)len);
        switch (next_random() % 5) {
        case 0:
            text[at] = (char)next_random();
            break;
        case 1:
            text[at] = marks[next_random() % (sizeof marks - 1)];
            break;
        case 2:
            memmove(text + at, text + at + 1, (size_t)(len - at - 1));
            len--;
            break;
        default: {
            i64 from = (i64)(next_random() % (u64)len);
            i64 run = MIN_OF((i64)(next_random() % 24), len - from);
            run = MIN_OF(run, cap - len);
            char piece[32];
            memcpy(piece, text + from, (size_t)run);
            memmove(text + at + run, text + at, (size_t)(len - at));
            memcpy(text + at, piece, (size_t)run);
            len += run;
            break;
        }
        }
    }
    return len;
}

static void test_mutations(void **state) {
    struct fixture *f = *state;
    const char *rounds_text = getenv("WARPFOX_FUZZ_ROUNDS");
    i64 rounds = rounds_text ? atoll(rounds_text) : 4000;
    char text[2000];
    for (i64 i = 0; i < rounds; i++) {
        const char *seed = seeds[(u64)i % COUNT_OF(seeds)];
        i64 len = (i64)strlen(seed);
        memcpy(text, seed, (size_t)len);
        len = mutate(text, len, (i64)sizeof text);
        char *exact = malloc((size_t)len); /* so that a read past the end is seen */
        memcpy(exact, text, (size_t)len);
        check(f, exact, len);
        free(exact);
    }
}

static void test_garbage(void **state) {
    struct fixture *f = *state;
    char text[300];
    for (i32 i = 0; i < 1000; i++) {
        i64 len = (i64)(next_random() % sizeof text);
        for (i64 k = 0; k < len; k++) {
            text[k] = (char)(next_random() % (i % 2 ? 256 : 96) + (i % 2 ? 0 : 32));
        }
        check(f, text, len);
    }
}

/* head, then `left` count times, the middle, `right` count times, tail. */
static wf_status bind_repeated(struct fixture *f, const char *head, const char *left,
                               const char *middle, const char *right, const char *tail, i64 count) {
    i64 left_len = (i64)strlen(left);
    i64 right_len = (i64)strlen(right);
    i64 cap = count * (left_len + right_len) + 1000;
    char *text = malloc((size_t)cap);
    i64 len = snprintf(text, 400, "%s", head);
    for (i64 i = 0; i < count; i++) {
        memcpy(text + len, left, (size_t)left_len);
        len += left_len;
    }
    len += snprintf(text + len, 200, "%s", middle);
    for (i64 i = 0; i < count; i++) {
        memcpy(text + len, right, (size_t)right_len);
        len += right_len;
    }
    len += snprintf(text + len, 200, "%s", tail);
    wf_status status = fixture_bind(f, (struct sv){text, len});
    free(text);
    return status;
}

static const struct {
    const char *head, *left, *middle, *right, *tail;
    i64 count;
    wf_status status;
} deep[] = {
    {"select ", "1+", "1", "", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "1+", "1", "", "", 9000, ERR_OK},
    {"select ", "1+", "1", "", "", 1000000, ERR_TOO_COMPLEX},
    {"select a from t where ", "a=1 and ", "a=2", "", "", 100000, ERR_OK},
    {"select a from t where ", "a=1 or ", "a=2", "", "", 100000, ERR_OK},
    {"select a in (", "7, ", "8", "", ") from t", 100000, ERR_OK},
    {"select ", "(", "1", ")", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "not ", "true", "", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "- ", "a", "", " from t", 100000, ERR_TOO_COMPLEX},
    {"select ", "case when true then ", "1", " end", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "abs(", "1", ")", "", 2000, ERR_OK},
    {"select ", "abs(", "1", ")", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "b||", "b", "", " from t", 100000, ERR_TOO_COMPLEX},
    {"select ", "", "1", "::int", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "", "1", " is null", "", 100000, ERR_TOO_COMPLEX},
    {"select ", "array[", "1", "]", "", 100000, ERR_TOO_COMPLEX},
    {"select * from ", "(select * from ", "t", ") q", "", 300, ERR_OK},
    {"select * from ", "(select * from ", "t", ") q", "", 3000, ERR_TOO_COMPLEX},
    {"select ", "nullif(", "a", ", 1)", " from t", 60, ERR_OK},
    {"select ", "nullif(", "a", ", 1)", " from t", 100000, ERR_TOO_COMPLEX},
    {"select ", "coalesce(", "a", ", 1)", " from t", 60, ERR_OK},
    {"select ", "coalesce(", "a", ", 1)", " from t", 100000, ERR_TOO_COMPLEX},
    {"select ", "greatest(", "a", ", g)", " from t", 60, ERR_OK},
    {"select ", "greatest(", "a", ", g)", " from t", 100000, ERR_TOO_COMPLEX},
    {"select 1, 2", " union select 1, 2", "", "", "", 400, ERR_OK},
    {"select 1, 2", " union select 1, 2", "", "", "", 20000, ERR_TOO_COMPLEX},
    {"insert into u (a) values ", "(1), ", "(2)", "", "", 100000, ERR_OK},
    {"select 1", "; select 1", "", "", "", 5000, ERR_OK},
};

static void test_deep(void **state) {
    struct fixture *f = *state;
    for (i64 i = 0; i < COUNT_OF(deep); i++) {
        wf_status status = bind_repeated(f, deep[i].head, deep[i].left, deep[i].middle,
                                         deep[i].right, deep[i].tail, deep[i].count);
        if (status != deep[i].status) {
            print_error("%s%s… x %lld: %s\n", deep[i].head, deep[i].left, deep[i].count,
                        f->err.message);
        }
        assert_int_equal(status, deep[i].status);
    }
}

/* A WITH query used twice by the next, thirty times over: bound once each, not a thousand million
 * times. */
static void test_doubling(void **state) {
    struct fixture *f = *state;
    struct arena arena;
    struct text sql;
    arena_init(&arena, &f->mem);
    text_init(&sql, &arena);
    text_print(&sql, "with c0 as (select a from t)");
    for (int i = 1; i <= 30; i++) {
        text_print(&sql, ", c%d as (select p.a from c%d p, c%d q)", i, i - 1, i - 1);
    }
    text_print(&sql, " select * from c30");
    assert_int_equal(fixture_bind(f, (struct sv){sql.ptr, sql.len}), ERR_OK);
    arena_fini(&arena);
}

/* The n-th reservation fails: an error or a plan, never a crash. */
static void test_memory(void **state) {
    struct fixture *f = *state;
    for (i64 n = 1; n < 40; n++) {
        memory_fail_at(n);
        wf_status status = fixture_bind(f, sv_from(seeds[0]));
        memory_fail_at(0);
        assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
    }
    assert_int_equal(fixture_bind(f, sv_from(seeds[0])), ERR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations), cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_deep),      cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}

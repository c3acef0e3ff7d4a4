/* test_sql_opt.c: from text through the optimiser: what becomes of joins, subqueries, set
 * operations.
 *
 * Plans are compared as EXPLAIN prints them, less the row estimates; each is verified with and
 * without the optional passes. The tables are those of the fixture, and empty. */
#include "opt/opt.h"
#include "test_sql_fixture.h"

static void drop_estimates(char *text) {
    char *to = text;
    for (char *at = text; *at;) {
        if (strncmp(at, "  [~", 4) == 0) {
            at += strcspn(at, "\n");
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static char *plan_text(struct fixture *f, const char *sql, bool optimizer) {
    struct settings settings;
    settings_init(&settings);
    settings.optimizer = optimizer;
    wf_status status = fixture_bind(f, sv_from(sql));
    status = status ? status : opt_run(f->statement.plan, &settings, &f->err);
    status = status ? status : plan_verify(f->statement.plan, &f->err);
    if (status != ERR_OK) {
        print_error("%s\n  %s %s\n", sql, error_sqlstate(status), f->err.message);
    }
    assert_int_equal(status, ERR_OK);
    struct text out;
    text_init(&out, &f->arena);
    plan_print(&out, f->statement.plan);
    drop_estimates(out.ptr);
    return out.ptr;
}

static const struct {
    const char *sql;
    const char *plan;
} plans[] = {
    /* what drops most rows for the bytes it reads is tested first, not what can raise */
    {"select b from t where e > 1.5 and a = 3", "Project b\n"
                                                "  Filter a = 3 AND e > 1.5\n"
                                                "    Scan t (a, b, e)\n"},
    {"select b from t where e > 1.5 and 10 / a = 3 and a = 3",
     "Project b\n"
     "  Filter e > 1.5 AND 10 / a = 3 AND a = 3\n"
     "    Scan t (a, b, e)\n"},
    {"select * from (select x from generate_series(1, 1000) x union all select y from "
     "generate_series(1, 1000) y) u order by random() limit 5",
     "Project x\n"
     "  Limit 5\n"
     "    Sort by sort\n"
     "      Project x, random(0) as sort\n"
     "        Union\n"
     "          Project generate_series as x\n"
     "            Function generate_series(1, 1000)\n"
     "          Project generate_series as y\n"
     "            Function generate_series(1, 1000)\n"},
    {"select * from (select x from generate_series(1, 1000) x union all select y from "
     "generate_series(1, 1000) y) u order by x limit 5",
     "Limit 5\n"
     "  Sort by x\n"
     "    Project x\n"
     "      Union\n"
     "        Project generate_series as x\n"
     "          Limit 5\n"
     "            Sort by generate_series\n"
     "              Function generate_series(1, 1000)\n"
     "        Project generate_series as y\n"
     "          Limit 5\n"
     "            Sort by generate_series\n"
     "              Function generate_series(1, 1000)\n"},
    {"select x from (select x from generate_series(0, 1000) x union all select y from "
     "generate_series(0, 1000) y) u order by 10 / x limit 5",
     "Project x\n"
     "  Limit 5\n"
     "    Sort by sort\n"
     "      Project x, 10 / x as sort\n"
     "        Union\n"
     "          Project generate_series as x\n"
     "            Function generate_series(0, 1000)\n"
     "          Project generate_series as y\n"
     "            Function generate_series(0, 1000)\n"},
    {"select g, s from (select g, sum(g) s from generate_series(0, 1000) g group by g) "
     "q where 10 / g > 1",
     "Project g, s\n"
     "  Project generate_series as g, sum(generate_series) as s\n"
     "    Aggregate sum(generate_series) by generate_series\n"
     "      Filter 10 / generate_series > 1\n"
     "        Function generate_series(0, 1000)\n"},
    {"select g, s from (select g, sum(g) s from generate_series(0, 1000) g group by g) "
     "q where g > 1",
     "Project g, s\n"
     "  Project generate_series as g, sum(generate_series) as s\n"
     "    Aggregate sum(generate_series) by generate_series\n"
     "      Filter generate_series > 1\n"
     "        Function generate_series(0, 1000)\n"},
    {"select g, s from (select g, sum(g) over (partition by g) s from "
     "generate_series(0, 1000) g) q where 10 / g > 1",
     "Project g, s\n"
     "  Project generate_series as g, sum as s\n"
     "    Filter 10 / generate_series > 1\n"
     "      Window sum(generate_series) partition by generate_series\n"
     "        Function generate_series(0, 1000)\n"},
    {"select g, count(*) from (select g, a from t order by g limit 9) s group by g",
     "Project g, count(*) as count\n"
     "  Aggregate count(*) by g, in runs\n"
     "    Limit 9\n"
     "      Sort by g\n"
     "        Project g\n"
     "          Scan t (g)\n"},
    {"select t.a, u.x from t left join u on t.a = u.a and u.y > 1 where t.g > 5",
     "Project a, x\n"
     "  Join left on a = a\n"
     "    Filter g > 5\n"
     "      Scan t (a, g)\n"
     "    Filter CAST(y AS decimal(13,3)) > 1.000\n"
     "      Scan u (a, x, y)\n"},
    {"select t.a from t left join u on t.a = u.a where u.y > 1",
     "Project a\n"
     "  Join on a = a\n"
     "    Filter CAST(y AS decimal(13,3)) > 1.000\n"
     "      Scan u (a, y)\n"
     "    Scan t (a)\n"},
    {"select t.a, u.a from t full join u on t.a = u.a where t.a > 1", "Project a, a\n"
                                                                      "  Join left on a = a\n"
                                                                      "    Filter a > 1\n"
                                                                      "      Scan t (a)\n"
                                                                      "    Scan u (a)\n"},
    {"select t.a from t where exists (select 1 from u where u.a = t.a and u.y > t.c and u.y <> t.c)",
     "Project a\n"
     "  Join semi on a = a where CAST(y AS decimal(13,3)) > CAST(c AS decimal(13,3)) "
     "AND CAST(y AS decimal(13,3)) <> CAST(c AS decimal(13,3))\n"
     "    Scan t (a, c)\n"
     "    Scan u (a, y)\n"},
    {"select t.a from t where not exists (select 1 from u where u.a = t.a)",
     "Project a\n"
     "  Join anti on a = a\n"
     "    Scan t (a)\n"
     "    Scan u (a)\n"},
    {"select t.a from t where t.a in (select a from u where x = 'q')", "Project a\n"
                                                                       "  Join semi on a = a\n"
                                                                       "    Scan t (a)\n"
                                                                       "    Project a\n"
                                                                       "      Filter x = 'q'\n"
                                                                       "        Scan u (a, x)\n"},
    {"select t.a from t where t.a not in (select a from u)", "Project a\n"
                                                             "  Join anti on a = a\n"
                                                             "    Scan t (a)\n"
                                                             "    Project a\n"
                                                             "      Scan u (a)\n"},
    {"select t.a in (select a from u) from t", "Project mark as ?column?\n"
                                               "  Join mark on a = a\n"
                                               "    Scan t (a)\n"
                                               "    Project a\n"
                                               "      Scan u (a)\n"},
    {"select a, (select max(y) from u where u.a = t.a) from t",
     "Project a, max(y) as max\n"
     "  Join left on a = a (right side unique)\n"
     "    Scan t (a)\n"
     "    Aggregate max(y) by a\n"
     "      Scan u (a, y)\n"},
    {"select a, (select count(*) from u where u.a = t.a) from t",
     "Project a, CASE WHEN count(*) IS NULL THEN 0 ELSE count(*) END as count\n"
     "  Join left on a = a (right side unique)\n"
     "    Scan t (a)\n"
     "    Aggregate count(*) by a\n"
     "      Scan u (a)\n"},
    {"select a from t where c > (select 2 * avg(y) from u where u.a = t.a)",
     "Project a\n"
     "  Join on a = a where CAST(c AS decimal(29,19)) > CAST(2 * avg(y) AS decimal(29,19))\n"
     "    Aggregate avg(y) by a\n"
     "      Scan u (a, y)\n"
     "    Scan t (a, c)\n"},
    {"select a from t where c > (select avg(y) from u)",
     "Project a\n"
     "  Join on CAST(c AS decimal(29,19)) > CAST(avg AS decimal(29,19))\n"
     "    Project avg(y) as avg\n"
     "      Aggregate avg(y)\n"
     "        Scan u (y)\n"
     "    Scan t (a, c)\n"},
    {"select a, (select count(*) from u where u.a < t.a) from t",
     "Project a, CASE WHEN count(*) IS NULL THEN 0 ELSE count(*) END as count\n"
     "  Join left on a is not distinct from a (right side unique)\n"
     "    Shared #1\n"
     "      Scan t (a)\n"
     "    Aggregate count(*) by a\n"
     "      Join on a < a\n"
     "        Project a\n"
     "          Aggregate by a\n"
     "            Shared #1\n"
     "        Scan u (a)\n"},
    {"select a, (select x from u where u.a = t.a order by y limit 1) from t",
     "Project a, x\n"
     "  Join left on a = a (right side unique)\n"
     "    Scan t (a)\n"
     "    Project x, a\n"
     "      Filter row_number <= 1\n"
     "        Window row_number() rows between unbounded preceding and current row partition by a "
     "order by y\n"
     "          Project x, y, a\n"
     "            Scan u (a, x, y)\n"},
    {"select t.a, s.n from t, lateral (select count(*) n from u where u.a = t.a having count(*) > "
     "1) s",
     "Project a, n\n"
     "  Join on a is not distinct from a\n"
     "    Project count(*) as n, a\n"
     "      Filter count(*) > 1\n"
     "        Project CASE WHEN count(*) IS NULL THEN 0 ELSE count(*) END as count(*), a\n"
     "          Join left on a is not distinct from a (right side unique)\n"
     "            Project a\n"
     "              Aggregate by a\n"
     "                Shared #1\n"
     "                  Scan t (a)\n"
     "            Aggregate count(*) by a\n"
     "              Scan u (a)\n"
     "    Shared #1\n"},
    {"select count(distinct b) from t", "Project count(b) as count\n"
                                        "  Aggregate count(b)\n"
                                        "    Aggregate by b\n"
                                        "      Scan t (b)\n"},
    {"select a, count(distinct b), sum(c) from t group by a",
     "Project a, count(b) as count, sum(c) as sum\n"
     "  Join on a is not distinct from a (right side unique)\n"
     "    Aggregate sum(c) by a\n"
     "      Shared #1\n"
     "        Scan t (a, b, c)\n"
     "    Aggregate count(b) by a\n"
     "      Aggregate by a, b\n"
     "        Shared #1\n"},
    {"select a from t union select a from u", "Aggregate by a\n"
                                              "  Union\n"
                                              "    Project a\n"
                                              "      Scan t (a)\n"
                                              "    Project a\n"
                                              "      Scan u (a)\n"},
    {"select a from t except select a from u", "Join anti on a is not distinct from a\n"
                                               "  Aggregate by a\n"
                                               "    Project a\n"
                                               "      Scan t (a)\n"
                                               "  Project a\n"
                                               "    Scan u (a)\n"},
    {"select a from (select a from t union all select a from u) q where a > 3",
     "Project a\n"
     "  Union\n"
     "    Project a\n"
     "      Filter a > 3\n"
     "        Scan t (a)\n"
     "    Project a\n"
     "      Filter a > 3\n"
     "        Scan u (a)\n"},
    {"select * from (select a, row_number() over (partition by a order by g) r from t) q where r = "
     "1 and a = 2",
     "Project a, r\n"
     "  Project a, row_number as r\n"
     "    Filter row_number = 1\n"
     "      Window row_number() partition by a order by g\n"
     "        Filter a = 2\n"
     "          Scan t (a, g)\n"},
    {"with q as (select a, b from t) select q1.a from q q1, q q2 where q1.a = q2.a",
     "Project a\n"
     "  Join on a = a\n"
     "    Shared #1\n"
     "      Project a\n"
     "        Scan t (a)\n"
     "    Shared #1\n"},
    {"select a, sum(c) from t group by rollup (a)", "Project a, sum(c) as sum\n"
                                                    "  Union\n"
                                                    "    Project a, sum(c)\n"
                                                    "      Aggregate sum(c) by a\n"
                                                    "        Shared #1\n"
                                                    "          Scan t (a, c)\n"
                                                    "    Project NULL as a, sum(c)\n"
                                                    "      Aggregate sum(c)\n"
                                                    "        Shared #1\n"},
    {"select t.a from t, u where (t.a = u.a and u.y = 1) or (t.a = u.a and u.y = 2 and t.g = 3)",
     "Project a\n"
     "  Join on a = a where (CAST(y AS decimal(13,3)) = 1.000 OR CAST(y AS decimal(13,3)) = 2.000 "
     "AND g = 3)\n"
     "    Filter (CAST(y AS decimal(13,3)) = 1.000 OR CAST(y AS decimal(13,3)) = 2.000)\n"
     "      Scan u (a, y)\n"
     "    Scan t (a, g)\n"},
    {"select t.a from t, u where t.a = u.a and u.a = 7", "Project a\n"
                                                         "  Join on a = a\n"
                                                         "    Filter a = 7\n"
                                                         "      Scan u (a)\n"
                                                         "    Filter a = 7\n"
                                                         "      Scan t (a)\n"},
    {"select a from t where 1 = 1 and (case when 2 > 1 then a else g end) > 1 + 1",
     "Project a\n"
     "  Filter CAST(a AS bigint) > 2\n"
     "    Scan t (a)\n"},
    {"select p.a from t p, t q, u where p.a = u.a and q.a = u.a and p.g / q.g > 1",
     "Project a\n"
     "  Filter g / g > 1\n"
     "    Join on a = a\n"
     "      Join on a = a\n"
     "        Scan u (a)\n"
     "        Scan t as q (a, g)\n"
     "      Scan t as p (a, g)\n"},
};

static void test_plans(void **state) {
    struct fixture *f = *state;
    i32 bad = 0;
    for (i64 i = 0; i < COUNT_OF(plans); i++) {
        (void)plan_text(f, plans[i].sql, false);
        const char *got = plan_text(f, plans[i].sql, true);
        if (strcmp(got, plans[i].plan) != 0) {
            print_error("%s\n got:\n%s expected:\n%s\n", plans[i].sql, got, plans[i].plan);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

/* Sixty-four tables in a chain: planned in time, and without products. */
static void test_many(void **state) {
    struct fixture *f = *state;
    struct arena arena;
    struct text sql;
    arena_init(&arena, &f->mem);
    text_init(&sql, &arena);
    text_print(&sql, "select count(*) from u u0");
    for (int i = 1; i < 64; i++) {
        text_print(&sql, ", u u%d", i);
    }
    text_print(&sql, " where u0.a = u1.a");
    for (int i = 2; i < 64; i++) {
        text_print(&sql, " and u%d.a = u%d.a", i - 1, i);
    }
    const char *got = plan_text(f, sql.ptr, true);
    assert_null(strstr(got, "cross"));
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}

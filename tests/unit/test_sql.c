/* test_sql.c: what the SQL front end understands: plans, types, constants, and the other
 * statements.
 *
 * Plans are compared as EXPLAIN prints them, less the row estimates. The tables are those of the
 * fixture. */
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

static char *plan_text(struct fixture *f, const char *sql) {
    wf_status status = fixture_bind(f, sv_from(sql));
    if (status != ERR_OK) {
        print_error("%s\n  %s %s\n", sql, error_sqlstate(status), f->err.message);
    }
    assert_int_equal(status, ERR_OK);
    assert_non_null(f->statement.plan);
    struct text out;
    text_init(&out, &f->arena);
    plan_print(&out, f->statement.plan);
    drop_estimates(out.ptr);
    return out.ptr;
}

#define SCAN_T "Scan t (a, b, c, d, e, f, g, h, i)\n"
#define SCAN_U "Scan u (a, x, y)\n"

static const struct {
    const char *sql;
    const char *plan;
} plans[] = {
    {"select a from t", "Project a\n  " SCAN_T},
    {"select 1 as one", "Project 1 as one\n  Values\n"},
    {"select * from u", "Project a, x, y\n  " SCAN_U},
    {"select u.*, a as z from u", "Project a, x, y, a as z\n  " SCAN_U},
    {"table u", "Project a, x, y\n  " SCAN_U},
    {"select a from main.t as q where q.a > 1 and q.i and not q.i",
     "Project a\n  Filter a > 1 AND i AND NOT i\n    Scan t as q (a, b, c, d, e, f, g, h, i)\n"},
    {"select p, q from u as v(p, q)", "Project a as p, x as q\n  Scan u as v (a, x, y)\n"},
    {"select x from t join u on t.a = u.a and t.c > u.y",
     "Project x\n  Join on a = a AND CAST(c AS decimal(13,3)) > CAST(y AS decimal(13,3))\n   "
     " " SCAN_T "    " SCAN_U},
    {"select x from t, u where t.a = u.a",
     "Project x\n  Filter a = a\n    Join cross\n      " SCAN_T "      " SCAN_U},
    {"select * from u p join u q using (a)", "Project a, x, y, x, y\n  Join on a = a\n    Scan u "
                                             "as p (a, x, y)\n    Scan u as q (a, x, y)\n"},
    {"select a, p.a, q.a from u p natural join u q",
     "Project a, a, a\n  Join on a = a AND x = x AND y = y\n    Scan u as p (a, x, y)\n"
     "    Scan u as q (a, x, y)\n"},
    {"select z + 1 from (select a as z from u where a > 0) q",
     "Project z + 1 as ?column?\n  Project a as z\n    Filter a > 0\n      " SCAN_U},
    {"with q(k) as (select a from u), r as (select k from q) select r.k from r, q",
     "Project k\n  Join cross\n    Project k\n      Project a as k\n        Shared #1\n"
     "          Project a\n            " SCAN_U "    Shared #1\n"},
    {"select a, sum(c) from t group by a",
     "Project a, sum(c) as sum\n  Aggregate sum(c) by a\n    " SCAN_T},
    {"select a + 1 as k, count(*), count(b) from t where i group by k having sum(c) > 3 and "
     "count(*) > 1",
     "Project (a + 1) as k, count(*) as count, count(b) as count\n  Filter sum(c) > 3.00 AND "
     "count(*) > 1\n"
     "    Aggregate count(*), count(b), sum(c) by a + 1\n      Filter i\n        " SCAN_T},
    {"select (a + 1) * 2 from t group by a + 1",
     "Project (a + 1) * 2 as ?column?\n  Aggregate by a + 1\n    " SCAN_T},
    {"select a, b, a from t group by 1, 2, 3", "Project a, b, a\n  Aggregate by a, b\n    " SCAN_T},
    {"select a from t group by a, a", "Project a\n  Aggregate by a\n    " SCAN_T},
    {"select sum(a) + sum(a) + min(distinct a) from t",
     "Project sum(a) + sum(a) + CAST(min(a) AS bigint) as ?column?\n  Aggregate sum(a), min(a)\n   "
     " " SCAN_T},
    {"select 1 from t having count(*) > 2",
     "Project 1 as ?column?\n  Filter count(*) > 2\n    Aggregate count(*)\n      " SCAN_T},
    {"select 1 having true",
     "Project 1 as ?column?\n  Filter true\n    Aggregate count(*)\n      Values\n"},
    {"select distinct a, b from t order by b desc, 1",
     "Sort by b desc, a\n  Aggregate by a, b\n    Project a, b\n      " SCAN_T},
    {"select a as k from t order by k, a desc nulls last, b nulls first",
     "Project k\n  Sort by k, k desc nulls last, b nulls first\n    Project a as k, b\n     "
     " " SCAN_T},
    {"select b from t order by a + 1 limit 5",
     "Project b\n  Limit 5\n    Sort by sort\n      Project b, a + 1 as sort\n        " SCAN_T},
    {"select a, sum(c) from t group by a order by sum(c) desc, avg(c)",
     "Project a, sum\n  Sort by sum desc, avg(c)\n    Project a, sum(c) as sum, avg(c)\n"
     "      Aggregate sum(c), avg(c) by a\n        " SCAN_T},
    {"select a from t limit 3 offset 2", "Limit 3 offset 2\n  Project a\n    " SCAN_T},
    {"select a from t fetch first row only", "Limit 1\n  Project a\n    " SCAN_T},
    {"select a from t limit all offset '4'", "Limit offset 4\n  Project a\n    " SCAN_T},
    {"select a from t limit null", "Project a\n  " SCAN_T},
    {"select a from t limit 2.5", "Limit 3\n  Project a\n    " SCAN_T},
    {"values (1, 'a'), (2, null)", "Values\n"},
    {"values (1), (2) order by column1 desc limit 1",
     "Limit 1\n  Sort by column1 desc\n    Project column1\n      Values\n"},
    {"select k from (values (1, 'x')) v(k, l)", "Project column1 as k\n  Values\n"},
    {"insert into u values (1, 'x', 2)", "Values\n"},
    {"insert into u default values", "Values\n"},
    {"insert into u (y, a) select c, g from t",
     "Project CAST(g AS integer) as a, NULL as x, CAST(c AS decimal(5,3)) as y\n  Project c, g\n   "
     " " SCAN_T},
    {"insert into u select 1, 'x' from t", "Project ?column? as a, ?column? as x, NULL as y\n  "
                                           "Project 1 as ?column?, 'x' as ?column?\n    " SCAN_T},
    {"explain select a from u", "Project a\n  " SCAN_U},
};

static void test_plans(void **state) {
    struct fixture *f = *state;
    i32 bad = 0;
    for (i64 i = 0; i < COUNT_OF(plans); i++) {
        const char *got = plan_text(f, plans[i].sql);
        if (strcmp(got, plans[i].plan) != 0) {
            print_error("%s\n got:\n%s expected:\n%s\n", plans[i].sql, got, plans[i].plan);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

/* An expression over t: how it prints when bound, its type, its name. */
static const struct {
    const char *sql;
    const char *bound;
    const char *type;
    const char *name;
} exprs[] = {
    {"1", "1", "integer", "?column?"},
    {"0", "0", "integer", "?column?"},
    {"-0", "0", "integer", "?column?"},
    {"-5", "-5", "integer", "?column?"},
    {"- - 5", "5", "integer", "?column?"},
    {"-(-(- /* x */ 5))", "-5", "integer", "?column?"},
    {"-2147483648", "-2147483648", "integer", "?column?"},
    {"2147483648", "2147483648", "bigint", "?column?"},
    {"9223372036854775808", "9223372036854775808", "decimal(19,0)", "?column?"},
    {"1.50", "1.50", "decimal(3,2)", "?column?"},
    {".05", "0.05", "decimal(2,2)", "?column?"},
    {"5.", "5", "decimal(1,0)", "?column?"},
    {"1e3", "1000", "decimal(4,0)", "?column?"},
    {"15e-4", "0.0015", "decimal(4,4)", "?column?"},
    {"-1.5", "-1.5", "decimal(2,1)", "?column?"},
    {"'x'", "'x'", "text", "?column?"},
    {"'it''s'", "'it''s'", "text", "?column?"},
    {"null", "NULL", "text", "?column?"},
    {"true", "true", "boolean", "?column?"},
    {"date '1995-03-15'", "date '1995-03-15'", "date", "date"},
    {"'7'::int", "7", "integer", "int4"},
    {"cast('2.555' as decimal(5,2))", "2.56", "decimal(5,2)", "numeric"},
    {"'1.25'::numeric", "1.25", "decimal(3,2)", "numeric"},
    {"5::numeric", "5", "decimal(10,0)", "numeric"},
    {"2.5::int", "3", "integer", "int4"},
    {"300::smallint", "300", "smallint", "int2"},
    {"40000::smallint", "CAST(40000 AS smallint)", "smallint", "int2"},
    {"0.1::double precision", "0.1", "double precision", "float8"},
    {"1::real", "1", "real", "float4"},
    {"null::date", "NULL", "date", "date"},
    {"a", "a", "integer", "a"},
    {"t.b", "b", "text", "b"},
    {"a::bigint", "CAST(a AS bigint)", "bigint", "a"},
    {"a::integer", "a", "integer", "a"},
    {"b::date", "CAST(b AS date)", "date", "b"},
    {"i::int", "CAST(i AS integer)", "integer", "i"},
    {"a::numeric", "CAST(a AS decimal(10,0))", "decimal(10,0)", "a"},
    {"a + 1", "a + 1", "integer", "?column?"},
    {"h + h", "h + h", "smallint", "?column?"},
    {"h + a", "CAST(h AS integer) + a", "integer", "?column?"},
    {"a + g", "CAST(a AS bigint) + g", "bigint", "?column?"},
    {"a + f", "CAST(a AS double precision) + CAST(f AS double precision)", "double precision",
     "?column?"},
    {"f + f", "f + f", "real", "?column?"},
    {"f + e", "CAST(f AS double precision) + e", "double precision", "?column?"},
    {"f * 2", "CAST(f AS double precision) * 2", "double precision", "?column?"},
    {"c + e", "CAST(c AS double precision) + e", "double precision", "?column?"},
    {"f + '0.5'", "f + 0.5", "real", "?column?"},
    {"a / 2", "a / 2", "integer", "?column?"},
    {"a / 2.0", "CAST(a AS decimal(10,0)) / 2.0", "decimal(28,17)", "?column?"},
    {"a % 3", "a % 3", "integer", "?column?"},
    {"c + 1", "c + 1.00", "decimal(13,2)", "?column?"},
    {"c + 0.125", "CAST(c AS decimal(13,3)) + 0.125", "decimal(14,3)", "?column?"},
    {"1 - c", "1.00 - c", "decimal(13,2)", "?column?"},
    {"c * c", "c * c", "decimal(24,4)", "?column?"},
    {"c * 2", "c * 2", "decimal(13,2)", "?column?"},
    {"c * a", "c * CAST(a AS decimal(10,0))", "decimal(22,2)", "?column?"},
    {"c * c * c * c", "c * c * c * c", "decimal(38,8)", "?column?"},
    {"c / 3", "c / 3", "decimal(29,19)", "?column?"},
    {"c % 2", "c % 2", "decimal(3,2)", "?column?"},
    {"-c", "-c", "decimal(12,2)", "?column?"},
    {"+ a", "a", "integer", "?column?"},
    {"d + 1", "d + 1", "date", "?column?"},
    {"h + d", "d + CAST(h AS integer)", "date", "?column?"},
    {"d - 1", "d - 1", "date", "?column?"},
    {"d - d", "d - d", "integer", "?column?"},
    {"d - '2000-01-01'", "d - date '2000-01-01'", "integer", "?column?"},
    {"date '1998-12-01' - interval '90' day", "timestamp '1998-09-02 00:00:00'", "timestamp",
     "?column?"},
    {"date '1996-02-29' + interval '1' year", "timestamp '1997-02-28 00:00:00'", "timestamp",
     "?column?"},
    {"interval '1 month 2 days' + date '2023-01-31'", "timestamp '2023-03-02 00:00:00'",
     "timestamp", "?column?"},
    {"date '2023-03-31' - interval '1 mon'", "timestamp '2023-02-28 00:00:00'", "timestamp",
     "?column?"},
    {"date '2024-01-01' + interval '-1' month + interval '2 weeks'",
     "timestamp '2023-12-15 00:00:00'", "timestamp", "?column?"},
    {"a = 1", "a = 1", "boolean", "?column?"},
    {"a = '1'", "a = 1", "boolean", "?column?"},
    {"a <> g", "CAST(a AS bigint) <> g", "boolean", "?column?"},
    {"a != 1.5", "CAST(a AS decimal(11,1)) <> 1.5", "boolean", "?column?"},
    {"c > 3", "c > 3.00", "boolean", "?column?"},
    {"c >= 0.125", "CAST(c AS decimal(13,3)) >= 0.125", "boolean", "?column?"},
    {"c < '0.05'", "c < 0.05", "boolean", "?column?"},
    {"f <= 0.1", "CAST(f AS double precision) <= 0.1", "boolean", "?column?"},
    {"d < '1995-01-01'", "d < date '1995-01-01'", "boolean", "?column?"},
    {"'x' = 'y'", "'x' = 'y'", "boolean", "?column?"},
    {"null = 1", "NULL = 1", "boolean", "?column?"},
    {"i = true", "i = true", "boolean", "?column?"},
    {"a between 1 and 2.5", "a >= 1 AND CAST(a AS decimal(11,1)) <= 2.5", "boolean", "?column?"},
    {"a not between 1 and 2", "a < 1 OR a > 2", "boolean", "?column?"},
    {"a between symmetric 2 and 1", "a >= 2 AND a <= 1 OR a >= 1 AND a <= 2", "boolean",
     "?column?"},
    {"a in (1, '2', null)", "a IN (1, 2, NULL)", "boolean", "?column?"},
    {"a in (1)", "a = 1", "boolean", "?column?"},
    {"a not in (1, 2.5)", "NOT CAST(a AS decimal(11,1)) IN (1.0, 2.5)", "boolean", "?column?"},
    {"b in ('x', 'y')", "b IN ('x', 'y')", "boolean", "?column?"},
    {"b like 'a%'", "b like 'a%'", "boolean", "?column?"},
    {"b not like 'a%'", "NOT b like 'a%'", "boolean", "?column?"},
    {"b ilike 'a_'", "b ilike 'a_'", "boolean", "?column?"},
    {"b like '10!%' escape '!'", "b like '10\\%'", "boolean", "?column?"},
    {"b like 'a\\b' escape ''", "b like 'a\\\\b'", "boolean", "?column?"},
    {"b like 'aéé%' escape 'é'", "b like 'a\\é%'", "boolean", "?column?"},
    {"b is null", "b IS NULL", "boolean", "?column?"},
    {"b is not null", "b IS NOT NULL", "boolean", "?column?"},
    {"i is true", "CASE WHEN i THEN true ELSE false END", "boolean", "?column?"},
    {"i is not false", "CASE WHEN NOT i THEN false ELSE true END", "boolean", "?column?"},
    {"i is unknown", "i IS NULL", "boolean", "?column?"},
    {"a is distinct from 1", "a <> 1", "boolean", "?column?"},
    {"a is not distinct from null",
     "CASE WHEN a IS NULL THEN NULL IS NULL WHEN NULL IS NULL THEN false ELSE a = NULL END",
     "boolean", "?column?"},
    {"case when i then 1 when not i then 2.5 end",
     "CASE WHEN i THEN 1.0 WHEN NOT i THEN 2.5 ELSE NULL END", "decimal(11,1)", "case"},
    {"case a when 1 then 'x' else b end", "CASE WHEN a = 1 THEN 'x' ELSE b END", "text", "b"},
    {"case when i then f else 1 end", "CASE WHEN i THEN f ELSE 1 END", "real", "case"},
    {"coalesce(a, 2)", "coalesce(a, 2)", "integer", "coalesce"},
    {"coalesce(null, a)", "coalesce(NULL, a)", "integer", "coalesce"},
    {"nullif(a, 0)", "nullif(a, 0)", "integer", "nullif"},
    {"greatest(a, 5)", "greatest(a, 5)", "integer", "greatest"},
    {"length(b)", "length(b)", "integer", "length"},
    {"char_length('x')", "length('x')", "integer", "char_length"},
    {"octet_length(b)", "octet_length(b)", "integer", "octet_length"},
    {"upper(b) || lower(b)", "upper(b) || lower(b)", "text", "?column?"},
    {"b || a", "b || CAST(a AS text)", "text", "?column?"},
    {"'x' || 'y'", "'x' || 'y'", "text", "?column?"},
    {"substring(b from 2 for 3)", "substring(b, 2, 3)", "text", "substring"},
    {"substr(b, h)", "substring(b, CAST(h AS integer), 1099511627776)", "text", "substr"},
    {"abs(c)", "abs(c)", "decimal(12,2)", "abs"},
    {"mod(a, 7)", "a % 7", "integer", "mod"},
    {"extract(year from d)", "CAST(year(wf_finite(d)) AS decimal(10,0))", "decimal(10,0)",
     "extract"},
    {"extract('Month' from d)", "CAST(month(d) AS decimal(10,0))", "decimal(10,0)", "extract"},
    {"date_part('day', d)", "CAST(day(d) AS double precision)", "double precision", "date_part"},
    {"concat(b, 1)", "b || CAST(1 AS text)", "text", "concat"},
    {"b collate \"C\"", "b", "text", "b"},
    {"i and a > 1 or not i", "i AND a > 1 OR NOT i", "boolean", "?column?"},
    {"$1 + a", "$1 + a", "integer", "?column?"},
    {"$1", "$1", "text", "?column?"},
    {"c = $1", "CAST(c AS decimal(18,6)) = $1", "boolean", "?column?"},
    {"$1::date", "$1", "date", "date"},
    {"coalesce($1, $1 + 1)", "coalesce($1, $1 + 1)", "integer", "coalesce"},
};

static void test_exprs(void **state) {
    struct fixture *f = *state;
    i32 bad = 0;
    for (i64 i = 0; i < COUNT_OF(exprs); i++) {
        char sql[300];
        snprintf(sql, sizeof sql, "select %s from t", exprs[i].sql);
        (void)plan_text(f, sql);
        const struct plan *plan = f->statement.plan;
        char type[32];
        struct text bound;
        text_init(&bound, &f->arena);
        expr_print(&bound, plan, plan->root->project.exprs.items[0]);
        type_print(plan->cols.items[plan->root->out.items[0]].type, type);
        bool same = strcmp(bound.ptr, exprs[i].bound) == 0 && strcmp(type, exprs[i].type) == 0 &&
                    strcmp(plan->names.items[0], exprs[i].name) == 0;
        if (!same) {
            print_error("%s\n  got %s : %s as %s\n", exprs[i].sql, bound.ptr, type,
                        plan->names.items[0]);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

static const struct {
    const char *call;
    const char *type;
} aggregates[] = {
    {"count(*)", "bigint"},
    {"count(b)", "bigint"},
    {"sum(h)", "bigint"},
    {"sum(a)", "bigint"},
    {"sum(g)", "decimal(38,0)"},
    {"sum(c)", "decimal(38,2)"},
    {"sum(f)", "real"},
    {"sum(e)", "double precision"},
    {"avg(a)", "decimal(26,16)"},
    {"avg(c)", "decimal(28,18)"},
    {"avg(f)", "double precision"},
    {"avg(e)", "double precision"},
    {"min(b)", "text"},
    {"max(d)", "date"},
    {"max(c)", "decimal(12,2)"},
    {"min(h)", "smallint"},
};

static void test_aggregates(void **state) {
    struct fixture *f = *state;
    for (i64 i = 0; i < COUNT_OF(aggregates); i++) {
        char sql[100];
        char type[32];
        snprintf(sql, sizeof sql, "select %s from t", aggregates[i].call);
        (void)plan_text(f, sql);
        const struct plan *plan = f->statement.plan;
        const struct plan_col *col = &plan->cols.items[plan->root->out.items[0]];
        assert_string_equal(type_print(col->type, type), aggregates[i].type);
        assert_int_equal(col->nullable, strncmp(aggregates[i].call, "count", 5) != 0);
    }
}

static void test_scan(void **state) {
    struct fixture *f = *state;
    (void)plan_text(f, "select * from t");
    const struct rel *scan = rel_input(f->statement.plan->root);
    assert_int_equal(scan->kind, REL_SCAN);
    assert_int_equal(scan->scan.cols.count, 9);
    assert_int_equal(scan->scan.table_rows, 0);
    for (u32 i = 0; i < 9; i++) {
        assert_int_equal(scan->scan.cols.items[i].table_col, i);
        assert_true(scan->scan.cols.items[i].no_nulls);
        assert_false(f->statement.plan->cols.items[scan->scan.cols.items[i].col].nullable);
    }
}

static void test_params(void **state) {
    struct fixture *f = *state;
    (void)plan_text(f, "select $3, a from t where d > $1 and $2 = b and g < $4 limit $5");
    static const u8 want[] = {TYPE_DATE, TYPE_TEXT, TYPE_TEXT, TYPE_BIGINT, TYPE_BIGINT};
    assert_int_equal(f->statement.plan->param_count, 5);
    for (i32 i = 0; i < 5; i++) {
        assert_int_equal(f->params[i].id, want[i]);
        assert_int_equal(f->statement.plan->param_types[i].id, want[i]);
    }
}

static void test_parse(void **state) {
    struct fixture *f = *state;
    struct arena arena;
    struct parsed_list list;
    struct error err;
    arena_init(&arena, &f->mem);
    error_reset(&err);
    struct sv script = SV(" -- é\n select 'é;', $2 ;; /* x */ insert into t values ($1) -- y\n ; ");
    assert_int_equal(sql_parse(&arena, script, &list, &err), ERR_OK);
    assert_int_equal(list.items.count, 2);
    assert_true(sv_eq(parsed_text(list.items.items[0]), SV("select 'é;', $2")));
    assert_true(sv_eq(parsed_text(list.items.items[1]), SV("insert into t values ($1)")));
    assert_int_equal(parsed_param_count(list.items.items[0]), 2);
    assert_int_equal(parsed_param_count(list.items.items[1]), 1);
    assert_int_equal(sql_parse(&arena, SV(" -- nothing\n ;"), &list, &err), ERR_OK);
    assert_int_equal(list.items.count, 0);
    assert_int_equal(sql_parse(&arena, SV(""), &list, &err), ERR_OK);
    assert_int_equal(list.items.count, 0);
    assert_int_equal(sql_parse(&arena, SV("select 'é', ) 1"), &list, &err), ERR_SYNTAX);
    assert_int_equal(err.position, 13);
    assert_string_equal(err.message, "syntax error at or near \")\"");
    error_reset(&err); /* what a rewriting put in the file's place is refused, too */
    assert_int_equal(sql_parse(&arena, SV("select normalize('a', 'f')"), &list, &err), ERR_SYNTAX);
    assert_int_equal(err.position, 22);
    assert_string_equal(err.message, "syntax error at or near \"'f'\"");
    arena_fini(&arena);
}

static struct statement *bound(struct fixture *f, const char *sql) {
    wf_status status = fixture_bind(f, sv_from(sql));
    if (status != ERR_OK) {
        print_error("%s\n  %s\n", sql, f->err.message);
    }
    assert_int_equal(status, ERR_OK);
    return &f->statement;
}

static void test_create_drop(void **state) {
    struct fixture *f = *state;
    const struct statement *s = bound(
        f, "create table if not exists z (a int not null, b numeric(12,2), c float, d float(10), "
           "e varchar null, f int8, g double precision, h boolean)");
    static const char *const types[] = {"integer", "decimal(12,2)", "double precision", "real",
                                        "text",    "bigint",        "double precision", "boolean"};
    assert_int_equal(s->kind, STATEMENT_CREATE_TABLE);
    assert_string_equal(s->name, "z");
    assert_true(s->create.if_not_exists);
    const struct table_def *def = &s->create.table.table.def;
    assert_int_equal(def->col_count, COUNT_OF(types));
    for (u32 i = 0; i < def->col_count; i++) {
        char type[32];
        assert_string_equal(type_print(def->cols[i].type, type), types[i]);
        assert_int_equal(def->cols[i].not_null, i == 0);
    }
    s = bound(f, "drop table if exists \"If\", main . b /* , */ , c cascade");
    assert_int_equal(s->kind, STATEMENT_DROP);
    assert_int_equal(s->drop.count, 3);
    assert_string_equal(s->drop.names[0], "If");
    assert_string_equal(s->drop.names[1], "b");
    assert_string_equal(s->drop.names[2], "c");
    assert_int_equal(s->drop.positions[0], 21);
    assert_int_equal(s->drop.positions[1], 27);
    assert_int_equal(s->drop.positions[2], 46);
}

static void test_insert(void **state) {
    struct fixture *f = *state;
    const struct statement *s =
        bound(f, "insert into u (y, a) values (1.2345, '7'), (default, null)");
    const struct rel *rel = s->plan->root;
    assert_int_equal(s->kind, STATEMENT_INSERT);
    assert_string_equal(s->name, "u");
    assert_int_not_equal(s->change.table_id, 0);
    assert_int_equal(rel->values.exprs.count, 6);
    assert_int_equal(rel->values.exprs.items[0]->value.i32, 7);
    assert_true(rel->values.exprs.items[1]->is_null);
    assert_int_equal(rel->values.exprs.items[2]->value.i64, 1235);
    assert_true(rel->values.exprs.items[3]->is_null && rel->values.exprs.items[5]->is_null);
    assert_int_equal(s->plan->names.count, 3);
}

static void test_copy(void **state) {
    struct fixture *f = *state;
    const struct statement *s = bound(
        f, "copy t (b, a) from '/x/y.csv' with (format csv, header, delimiter ';', null 'NA', "
           "escape E'\\\\')");
    assert_int_equal(s->kind, STATEMENT_COPY_FROM);
    assert_string_equal(s->copy.options.path, "/x/y.csv");
    assert_int_equal(s->copy.options.delimiter, ';');
    assert_int_equal(s->copy.options.quote, '"');
    assert_int_equal(s->copy.options.escape, '\\');
    assert_string_equal(s->copy.options.null_text, "NA");
    assert_true(s->copy.options.header);
    assert_false(s->copy.options.trailing_delimiter);
    assert_int_equal(s->copy.options.col_count, 2);
    assert_int_equal(s->copy.options.cols[0], 1);
    assert_int_equal(s->copy.options.cols[1], 0);
    s = bound(f, "copy t from 'x.TBL'");
    assert_int_equal(s->copy.options.delimiter, '|');
    assert_int_equal(s->copy.options.quote, 0);
    assert_true(s->copy.options.trailing_delimiter);
    assert_false(s->copy.options.header);
    assert_int_equal(s->copy.options.col_count, 0);
    assert_string_equal(s->copy.options.null_text, "");
    s = bound(f, "copy t from 'x' csv header delimiter '|'");
    assert_int_equal(s->copy.options.delimiter, '|');
    assert_int_equal(s->copy.options.quote, '"');
    assert_true(s->copy.options.header);
    s = bound(f, "copy t from 'x.tbl' (format csv, header false)");
    assert_int_equal(s->copy.options.delimiter, ',');
    assert_false(s->copy.options.header);
}

static void test_session(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *sql;
        const char *setting;
        const char *value;
    } sets[] = {
        {"set device = cpu", "device", "cpu"},
        {"set device to 'gpu'", "device", "gpu"},
        {"set x = 12", "x", "12"},
        {"set x = -3", "x", "-3"},
        {"set x = 1.5", "x", "1.5"},
        {"set fusion = off", "fusion", "off"},
        {"set fusion = true", "fusion", "true"},
        {"set x to default", "x", NULL},
        {"reset x", "x", NULL},
        {"reset all", "all", NULL},
    };
    for (i64 i = 0; i < COUNT_OF(sets); i++) {
        const struct statement *s = bound(f, sets[i].sql);
        assert_int_equal(s->kind, STATEMENT_SET);
        assert_string_equal(s->set.name, sets[i].setting);
        assert_true((s->set.value == NULL) == (sets[i].value == NULL));
        if (s->set.value) {
            assert_string_equal(s->set.value, sets[i].value);
        }
    }
    assert_string_equal(bound(f, "show device")->set.name, "device");
    assert_string_equal(bound(f, "show all")->set.name, "all");
}

static void test_explain(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *sql;
        u32 bits;
    } explains[] = {
        {"explain select 1", EXPLAIN_PLAN},
        {"explain analyze select 1", EXPLAIN_PLAN | EXPLAIN_ANALYZE},
        {"explain (program) select 1", EXPLAIN_PROGRAM},
        {"explain (plan, opcodes on, cuda) select 1",
         EXPLAIN_PLAN | EXPLAIN_OPCODES | EXPLAIN_CUDA},
        {"explain (analyze, plan off) select 1", EXPLAIN_ANALYZE},
        {"explain (program off) insert into u values (1)", EXPLAIN_PLAN},
    };
    for (i64 i = 0; i < COUNT_OF(explains); i++) {
        const struct statement *s = bound(f, explains[i].sql);
        assert_int_equal(s->kind, STATEMENT_EXPLAIN);
        assert_int_equal(s->explain.levels, explains[i].bits);
        assert_non_null(s->explain.inner->plan);
    }
}

static void test_call(void **state) {
    struct fixture *f = *state;
    const struct statement *s = bound(f, "call tpch(-1, 'x', sf => 0.01, keys => true)");
    assert_int_equal(s->kind, STATEMENT_CALL);
    assert_string_equal(s->call.procedure, "tpch");
    assert_int_equal(s->call.count, 4);
    assert_int_equal(s->call.args[0]->value.i32, -1);
    assert_int_equal(s->call.args[1]->type.id, TYPE_TEXT);
    assert_null(s->call.names[0]);
    assert_string_equal(s->call.names[2], "sf");
    assert_int_equal(s->call.args[2]->value.i64, 1);
    assert_int_equal(s->call.args[2]->type.scale, 2);
    assert_int_equal(s->call.args[3]->type.id, TYPE_BOOLEAN);
    assert_int_equal(bound(f, "call f()")->call.count, 0);
}

static void test_keywords(void **state) {
    UNUSED(state);
    i32 count = 0;
    for (; sql_keywords[count]; count++) {
        assert_true(count == 0 || strcmp(sql_keywords[count - 1], sql_keywords[count]) < 0);
    }
    assert_true(count > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),       cmocka_unit_test(test_exprs),
        cmocka_unit_test(test_aggregates),  cmocka_unit_test(test_scan),
        cmocka_unit_test(test_params),      cmocka_unit_test(test_parse),
        cmocka_unit_test(test_create_drop), cmocka_unit_test(test_insert),
        cmocka_unit_test(test_copy),        cmocka_unit_test(test_session),
        cmocka_unit_test(test_explain),     cmocka_unit_test(test_call),
        cmocka_unit_test(test_keywords),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}

/* test_fault_random.c: random queries that make sense, under settings that must not matter.
 *
 * Where the changed statements of tests/fuzz mostly meet the parser, these queries are well typed
 * and reach the devices: expressions over all types with NULLs and extreme values, joins, groups,
 * sorts. Each runs with vectors of 1,024 and of 3 rows, fused and not, optimised and not, over one
 * tablet and over many, and must give the same rows, or the same SQLSTATE, every time.
 *
 * FUZZ_SECONDS (3) sets how long, FUZZ_SEED where to begin, FUZZ_LOG names a file that collects all
 * statements. */
#include "fault.h"

static uint64_t rng;

static uint64_t next_random(void) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static int below(int n) {
    return (int)(next_random() % (uint64_t)n);
}

enum { SQL_MAX = 20000 };
static char sql[SQL_MAX];
static size_t sql_len;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int len = vsnprintf(sql + sql_len, SQL_MAX - sql_len, format, list);
    va_end(list);
    sql_len += len > 0 ? (size_t)len : 0;
    sql_len = sql_len < SQL_MAX ? sql_len : SQL_MAX - 1;
}

enum kind_of { BOOL, INT, BIG, DEC, FLOAT, TEXT, DATE, KINDS };

/* Columns of every table by kind. */
static const char *const columns[KINDS][3] = {
    [BOOL] = {"o", "o", "o"}, [INT] = {"i", "j", "s"},   [BIG] = {"b", "b", "i"},
    [DEC] = {"d", "e", "d"},  [FLOAT] = {"f", "r", "f"}, [TEXT] = {"t", "u", "t"},
    [DATE] = {"y", "y", "y"},
};

static const char *const constants[KINDS][8] = {
    [BOOL] = {"true", "false", "null::boolean", "true", "false", "true", "1 = 1", "null::boolean"},
    [INT] = {"0", "1", "-1", "7", "2147483647", "-2147483648", "null::int", "100"},
    [BIG] = {"0::bigint", "5000000000", "-1::bigint", "9223372036854775807", "null::bigint", "3",
             "-9000000000000000000", "12"},
    [DEC] = {"0.5", "-1.25", "100.00", "0.0001", "null::decimal(9,2)", "99999.99", "3.0", "-0.01"},
    [FLOAT] = {"0.5e0", "-2.5e0", "1e10", "1e-10", "null::double precision", "1e300", "3e0", "0e0"},
    [TEXT] = {"''", "'a'", "'alpha'", "'Zürich'", "null::text", "'x%y_z'", "'12'", "'ALPHA'"},
    [DATE] = {"date '2000-02-29'", "date '1970-01-01'", "date '1999-12-31'", "null::date",
              "date '2024-03-01'", "date '0001-01-01'", "date '2000-01-01'", "date '2038-01-19'"},
};

static int table_count; /* in FROM; columns are q0.i, q1.i, … */

static void expr(enum kind_of kind, int depth);

static void leaf(enum kind_of kind) {
    if (below(3)) {
        say("q%d.%s", below(table_count), columns[kind][below(3)]);
    } else {
        say("%s", constants[kind][below(8)]);
    }
}

static void both(const char *before, enum kind_of kind, const char *between, const char *after,
                 int depth) {
    say("%s", before);
    expr(kind, depth - 1);
    say("%s", between);
    expr(kind, depth - 1);
    say("%s", after);
}

static void condition(int depth) {
    static const char *const compare[] = {" = ", " <> ", " < ", " <= ", " > ", " >= "};
    static const char *const patterns[] = {"'%a%'", "'a_p%'", "'%'", "'Z%h'", "'_'", "'%é%'"};
    enum kind_of kind = (enum kind_of)(1 + below(KINDS - 1));
    switch (below(8)) {
    case 0:
        both("(", BOOL, " and ", ")", depth);
        break;
    case 1:
        both("(", BOOL, " or ", ")", depth);
        break;
    case 2:
        say("not ");
        expr(BOOL, depth - 1);
        break;
    case 3:
        say("(");
        expr(kind, depth - 1);
        say(below(2) ? " is null)" : " is not null)");
        break;
    case 4:
        say("(");
        expr(TEXT, depth - 1);
        say(below(2) ? " like %s)" : " not like %s)", patterns[below(6)]);
        break;
    case 5:
        say("(");
        expr(kind, depth - 1);
        say(below(2) ? " in (" : " not in (");
        for (int n = below(4); n > 0; n--) {
            say("%s, ", constants[kind][below(8)]);
        }
        expr(kind, depth - 1);
        say("))");
        break;
    case 6:
        both("(", kind, " between ", " and ", depth);
        expr(kind, depth - 1);
        say(")");
        break;
    default:
        both("(", kind, compare[below(6)], ")", depth);
    }
}

static void number(enum kind_of kind, int depth) {
    static const char *const signs[] = {" + ", " - ", " * ", " + ", " - ", " * ", " / "};
    static const char *const names[KINDS] = {
        [INT] = "int", [BIG] = "bigint", [DEC] = "decimal(12,2)", [FLOAT] = "double precision"};
    switch (below(6)) {
    case 0:
        say("cast(");
        expr((enum kind_of)(INT + below(4)), depth - 1);
        say(" as %s)", names[kind]);
        break;
    case 1:
        say("(- ");
        expr(kind, depth - 1);
        say(")");
        break;
    case 2:
        if (kind == INT) {
            say("length(");
            expr(TEXT, depth - 1);
            say(")");
        } else {
            say("abs(");
            expr(kind, depth - 1);
            say(")");
        }
        break;
    default:
        both("(", kind, signs[below(7)], ")", depth);
    }
}

static void text_or_date(enum kind_of kind, int depth) {
    if (kind == DATE) {
        say("(");
        expr(DATE, depth - 1);
        say(below(2) ? " + %d)" : " - %d)", below(1000));
        return;
    }
    switch (below(5)) {
    case 0:
        say(below(2) ? "upper(" : "lower(");
        expr(TEXT, depth - 1);
        say(")");
        break;
    case 1:
        say("substring(");
        expr(TEXT, depth - 1);
        say(" from %d for %d)", below(4) - 1, below(4));
        break;
    case 2:
        say("cast(");
        expr((enum kind_of)below(KINDS), depth - 1);
        say(" as text)");
        break;
    default:
        both("(", TEXT, " || ", ")", depth);
    }
}

static void expr(enum kind_of kind, int depth) {
    if (depth <= 0 || below(5) == 0 || sql_len > SQL_MAX / 2) {
        leaf(kind);
        return;
    }
    int form = below(8);
    if (form == 0) {
        say("case when ");
        expr(BOOL, depth - 1);
        say(" then ");
        expr(kind, depth - 1);
        if (below(2)) {
            say(" else ");
            expr(kind, depth - 1);
        }
        say(" end");
    } else if (form == 1) {
        both(below(2) ? "coalesce(" : "nullif(", kind, ", ", ")", depth);
    } else if (kind == BOOL) {
        condition(depth);
    } else if (kind == TEXT || kind == DATE) {
        text_or_date(kind, depth);
    } else {
        number(kind, depth);
    }
}

static void from(void) {
    static const char *const tables[] = {"many", "few", "tiles", "none", "few", "many"};
    table_count = 1 + (below(2) ? below(3) : 0);
    int joins = table_count - 1;
    say(" from %s q0", table_count > 2 ? "few" : tables[below(6)]);
    table_count = 1;
    for (int k = 1; k <= joins; k++) {
        static const char *const keys[] = {"i", "j", "t", "y", "s", "b", "d", "o"};
        const char *key = keys[below(joins > 1 ? 5 : 8)];
        say(" join %s q%d on q%d.%s = q%d.%s", joins > 1 ? "few" : tables[below(6)], k, below(k),
            key, k, key);
        if (below(4) == 0) {
            say(" and q%d.%s = q%d.%s", below(k), "g", k, "g");
        }
        table_count = k + 1;
    }
}

static enum kind_of any_kind(void) {
    return (enum kind_of)below(KINDS);
}

static void aggregate(int depth) {
    static const char *const names[] = {"sum", "avg", "min", "max", "count", "sum", "min", "max"};
    int name = below(8);
    enum kind_of kind = name < 2 || name == 5 ? (enum kind_of)(INT + below(4)) : any_kind();
    if (name == 4 && below(2)) {
        say("count(*)");
        return;
    }
    if (kind == BOOL) {
        kind = TEXT;
    }
    say("%s(", names[name]);
    expr(kind, depth);
    say(")");
}

/* The text of a query without its FROM is made after it, so that its tables are known. */
static void make_query(void) {
    static char tail[SQL_MAX];
    int depth = 1 + below(4);
    sql_len = 0;
    from();
    memcpy(tail, sql, sql_len + 1);
    sql_len = 0;
    int groups = below(3) ? 0 : 1 + below(3);
    bool totals = groups > 0 || below(5) == 0;
    int cols = 1 + below(4);
    say(below(8) == 0 ? "select distinct " : "select ");
    for (int g = 0; g < groups; g++) {
        say(g ? ", " : "");
        expr(any_kind(), depth - 2);
    }
    for (int c = 0; c < cols; c++) {
        say(c || groups ? ", " : "");
        if (totals) {
            aggregate(depth);
        } else {
            expr(any_kind(), depth);
        }
    }
    say("%s", tail);
    if (below(2)) {
        say(" where ");
        expr(BOOL, depth);
    }
    if (groups) {
        say(" group by 1%s%s", groups > 1 ? ", 2" : "", groups > 2 ? ", 3" : "");
    }
    if (totals && below(4) == 0) {
        say(" having count(*) > %d", below(4));
    }
    if (below(3) == 0) {
        for (int c = 1; c <= groups + cols; c++) {
            say("%s%d%s", c == 1 ? " order by " : ", ", c, below(2) ? " desc" : "");
        }
        if (below(2)) {
            say(" limit %d", below(40));
        }
        if (below(4) == 0) {
            say(" offset %d", below(10));
        }
    }
}

static const char *const defs = " (i int, j int not null, s smallint, b bigint, d decimal(9,2), e "
                                "decimal(18,4), f double precision, "
                                "r real, t text, u text, o boolean, y date, g int)";

static void log_statement(const char *text) {
    const char *path = getenv("FUZZ_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n;\n", text);
        fclose(file);
    }
}

static void fill(wf_connection *conn, const char *table, int rows, bool extremes) {
    static const char *const words[] = {"'alpha'", "'beta'",  "'Zürich'", "''",      "'a'",
                                        "null",    "'x%y_z'", "'12'",     "'ALPHA'", "'été'"};
    static const char *const edges[] = {"2147483647", "-2147483648", "0", "null"};
    static const char *const big[] = {"9223372036854775807", "-9223372036854775808", "0", "null"};
    char text[1000];
    snprintf(text, sizeof text, "create table %s%s", table, defs);
    run(conn, text);
    log_statement(text);
    for (int i = 0; i < rows; i++) {
        bool edge = extremes && below(30) == 0;
        char small[20];
        snprintf(small, sizeof small, "%d", below(20) - 5);
        snprintf(text, sizeof text,
                 "insert into %s values (%s, %d, %s, %s, %s, %d.%04d, %s, %d.5, %s, 'u%d', %s, "
                 "%s, %d)",
                 table,
                 edge       ? edges[below(4)]
                 : below(8) ? small
                            : "null",
                 below(1000), edge ? "32767" : small, edge ? big[below(4)] : small,
                 edge       ? "9999999.99"
                 : below(9) ? "12.34"
                            : "null",
                 below(100000), below(10000),
                 edge       ? "1e308"
                 : below(9) ? "0.1"
                            : "null",
                 below(9) - 4, words[below(10)], below(rows),
                 below(3) ? below(2) ? "true" : "false" : "null",
                 below(6) ? below(2) ? "'2000-02-29'" : "'1999-12-31'" : "null", below(5));
        run(conn, text);
        log_statement(text);
    }
}

enum { CELLS = 5, MOST_LINES = 5000 };
static const char *const cells[CELLS] = {
    "",
    "set vector_rows = 3; set morsel_rows = 5",
    "set fusion = off",
    "set optimizer = off",
    "set vector_rows = 7; set fusion = off; set optimizer = off",
};

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rows in one text, sorted when their order is open; or the SQLSTATE. */
static void answer(wf_connection *conn, char *out, size_t cap) {
    static char rows[1 << 20];
    static char *lines[MOST_LINES];
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result)) {
        snprintf(out, cap, "%s", wf_connection_error(conn)->sqlstate);
        return;
    }
    flatten(result, rows, sizeof rows);
    int64_t row_count = wf_result_row_count(result);
    if (wf_result_error(result)->status) {
        snprintf(out, cap, "%s", wf_result_error(result)->sqlstate);
        wf_result_close(result);
        return;
    }
    wf_result_close(result);
    if (row_count > MOST_LINES || strlen(rows) + 1000 > sizeof rows) {
        snprintf(out, cap, "%lld rows", (long long)row_count);
        return;
    }
    size_t count = 0;
    for (char *at = strtok(rows, ";"); at && count < MOST_LINES; at = strtok(NULL, ";")) {
        lines[count++] = at;
    }
    if (!strstr(sql, " order by 1")) {
        qsort(lines, count, sizeof *lines, compare_lines);
    }
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < count && len + 1 < cap; i++) {
        len += (size_t)snprintf(out + len, cap - len, "%s\n", lines[i]);
    }
}

static void test_random(void **state) {
    (void)state;
    static char first[1 << 20];
    static char other[1 << 20];
    const char *seed = getenv("FUZZ_SEED");
    const char *seconds = getenv("FUZZ_SECONDS");
    rng = seed ? strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 88172645463325252ULL;
    struct fault_db f = open_with("3", NULL);
    make_control(f.conn);
    wf_connection *conns[CELLS];
    for (int c = 0; c < CELLS; c++) {
        assert_int_equal(wf_connect(f.db, &conns[c]), WF_OK);
        run(conns[c], "set statement_timeout = 5000");
        run(conns[c], cells[c]);
    }
    fill(f.conn, "few", 12, false);
    fill(f.conn, "many", 200, true);
    fill(f.conn, "none", 0, false);
    run(f.conn, "set tablet_rows = 16");
    fill(f.conn, "tiles", 150, true);
    int64_t end = clock_ns() + (seconds ? atoll(seconds) : 3) * 1000000000;
    long long passed = 0;
    long long raised = 0;
    int wrong = 0;
    while (clock_ns() < end && wrong < 20) {
        make_query();
        log_statement(sql);
        answer(conns[0], first, sizeof first);
        bool failed = strlen(first) == 5;
        passed += !failed;
        raised += failed;
        if (strcmp(first, "XX000") == 0) {
            show_error(conns[0], sql);
            wrong++;
        }
        for (int c = 1; c < CELLS; c++) {
            answer(conns[c], other, sizeof other);
            if (strcmp(first, other) != 0 && strcmp(first, "57014") != 0 &&
                strcmp(other, "57014") != 0) {
                fprintf(stderr, "with \"%s\":\n%s\n%.300s----\n%.300s\n\n", cells[c], sql, first,
                        other);
                wrong++;
                break;
            }
        }
    }
    if (getenv("FAULT_VERBOSE")) {
        fprintf(stderr, "%lld answered, %lld refused\n", passed, raised);
    }
    check_control(f.conn);
    for (int c = 0; c < CELLS; c++) {
        wf_disconnect(conns[c]);
    }
    close_both(f);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

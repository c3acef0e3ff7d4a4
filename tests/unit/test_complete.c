/* test_complete.c: what wf_complete offers, by what stands around the cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "warpfox.h"

static wf_connection *conn;
static char found[65536]; /* " a b c " */
static char files[256];

static int collect(void *arg, const char *text, wf_completion kind) {
    (void)arg;
    if (kind == WF_COMPLETION_FILE) {
        snprintf(files, sizeof files, "%s", text);
        return 0;
    }
    strcat(found, text);
    strcat(found, " ");
    return 0;
}

/* The bar is the cursor. Returns where the word begins. */
static size_t complete(const char *marked) {
    char text[2000];
    const char *bar = strchr(marked, '|');
    size_t cursor = (size_t)(bar - marked), start = 0;
    snprintf(text, sizeof text, "%.*s%s", (int)cursor, marked, bar + 1);
    strcpy(found, " ");
    files[0] = 0;
    assert_int_equal(wf_complete(conn, text, strlen(text), cursor, collect, NULL, &start), WF_OK);
    return start;
}

static void all(const char *marked, const char *wanted) {
    complete(marked);
    if (strcmp(found, wanted) != 0) {
        fail_msg("%s: \"%s\", not \"%s\"", marked, found, wanted);
    }
}

static void has(const char *marked, const char *word, int wanted) {
    char padded[100];
    complete(marked);
    snprintf(padded, sizeof padded, " %s ", word);
    if ((strstr(found, padded) != NULL) != wanted) {
        fail_msg("%s: \"%s\" %s %s", marked, found, wanted ? "lacks" : "has", word);
    }
}

static void test_tables(void **state) {
    (void)state;
    all("select * from tr|", " trips ");
    all("select * from trips, sta|", " stations ");
    all("select * from trips t join sta|", " stations ");
    all("insert into st|", " stations ");
    all("update st|", " stations ");
    all("delete from st|", " stations ");
    all("copy st|", " stations ");
    all("drop table if exists st|", " stations ");
    all("summarize lo|", " long_trips ");
    all("select * from |", " far long_trips stations trips ");
    all("with w as (select 1 as one) select * from w|", " w ");
    all("select * from other.|", " hidden ");
    all("select * from oth|", " other ");
    all("select * from information_schema.key_c|", " key_column_usage ");
    all("create table st|", " ");
    has("select * from trips |", "trips", 0);
    has("select * from trips wh|", "where", 1);
    has("SELECT * from trips WH|", "WHERE", 1);
    has("|", "select", 0); /* nothing typed: too many */
    has("sel|", "select", 1);
    has("from gen|", "generate_series", 1);
}

static void test_columns(void **state) {
    (void)state;
    all("select | from trips", " city km \"Day\" ");
    all("select city, k| from trips", " km ");
    all("select t.| from trips t", " city km \"Day\" ");
    all("select s.| from trips t join stations s on true", " id name ");
    all("select * from trips t join stations s on t.ci|", " city ");
    all("select * from trips where | ", " city km \"Day\" ");
    all("select \"D| from trips", " \"Day\" ");
}

/* Names with functions and keywords among them. */
static void test_scopes(void **state) {
    (void)state;
    has("select ci| from trips", "city", 1);
    has("select na| from trips", "name", 0);
    has("select (select na| from stations) from trips", "name", 1);
    has("select (select ci| from stations) from trips", "city", 1); /* outer */
    has("select ci| from (select name from stations) x", "city", 0);
    all("select x.| from (select name, id + 1 as more, max(id), s.* from stations s) x",
        " name more max id name ");
    all("with w as (select city as town, km from trips) select w.| from w", " town km ");
    all("with w(a) as (select city as town from trips), v as (select * from w) select v.| from v",
        " town ");
    all("select v.| from long_trips v", " town dist ");
    all("select far.| from far", " a b ");
    has("select ci| from trips union all select name from stations", "city", 1);
    has("select city from trips union all select ci| from stations", "city", 0);
    has("update trips set k|", "km", 1);
    has("delete from trips where k|", "km", 1);
    all("insert into trips (c|", " city ");
    all("insert into other.hidden (|", " h ");
    all("create index on trips (k|", " km ");
    all("alter table trips drop column k|", " km ");
    has("select ci|", "city", 1); /* FROM is yet to come */
    all("select trips.|", " city km \"Day\" ");
    all("select 1; select t.| from trips t; select 2", " city km \"Day\" ");
    has("select extract(year from ci|) from trips", "city", 1);
    has("select 1 from trips where city is distinct from ci|", "city", 1);
    all("select i.table_na| from information_schema.tables i", " table_name ");
    has("select coun| from trips", "count", 1);
    has("select COUN| from trips", "COUNT", 1);
}

static void test_settings_and_types(void **state) {
    (void)state;
    all("set dev|", " device ");
    all("show dev|", " device ");
    all("set device = |", " auto cpu gpu hybrid default ");
    all("set device to g|", " gpu ");
    all("set session fus|", " fusion ");
    all("set fusion = o|", " on off ");
    all("set search_path = oth|", " other ");
    all("select 1::bigi|", " bigint ");
    all("select cast(1 as smalli|", " smallint ");
    has("explain (ana|", "analyze", 1);
}

static void test_files_and_nothing(void **state) {
    (void)state;
    assert_int_equal(complete("select * from 'some/fi|"), 15);
    assert_string_equal(files, "some/fi");
    complete("copy trips from '|");
    assert_int_equal(strlen(found), 1);
    complete("copy trips to '/tm|");
    assert_string_equal(files, "/tm");
    complete("from read_csv('a|");
    assert_string_equal(files, "a");
    complete("from read_trie('b|");
    assert_string_equal(files, "b");
    complete("select 'tr|");
    assert_string_equal(files, "");
    all("select 'tr|", " ");
    all("select 1 -- from tr|", " ");
    all("select 1 /* from tr|", " ");
    all("select $$ from tr|", " ");
    all("select 12|", " ");
    all("select * from ((((tr|", " trips ");
    has("select * from (sel|", "select", 1);
    has("select count(tr|", "trim", 0);
    all(")|", " ");
    all("(|", " ");
    all(".|", " ");
    all("select . . .|", " ");
    all("select a.b.c.|", " ");
    all("with with as (select * from with) select with.|", " ");
    all("with w as (select * from w) select w.| from w", " ");
}

static int set_up(void **state) {
    (void)state;
    wf_database *db;
    wf_error error;
    if (wf_open(NULL, NULL, &db, &error) || wf_connect(db, &conn)) {
        return 1;
    }
    wf_close(db);
    return wf_query(conn,
                    "create table trips (city text, km integer, \"Day\" date);"
                    "create table stations (id integer, name text);"
                    "create view long_trips as select city as town, km * 2 as dist from trips;"
                    "create view far(a, b) as select city, km from trips;"
                    "create schema other; create table other.hidden (h integer)",
                    NULL) != WF_OK;
}

static int tear_down(void **state) {
    (void)state;
    wf_disconnect(conn);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_settings_and_types),
        cmocka_unit_test(test_files_and_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

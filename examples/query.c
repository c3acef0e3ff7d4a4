/* query.c: a tour of warpfox.h: open, query, prepared statements, batches, Arrow, errors.
 *
 * Build: cc -Iinclude examples/query.c -Lbuild -lwarpfox -o query. Prints what it finds and returns
 * 0 when everything went as it should. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpfox.h"

static wf_connection *conn;

/* Any failure ends the program with the error as the shell would print it. */
static void must(wf_status status, const char *sql) {
    if (status) {
        char text[2000];
        wf_error_text(wf_connection_error(conn), sql, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        exit(1);
    }
}

static void run(const char *sql) {
    must(wf_query(conn, sql, NULL), sql);
}

/* Values of any type as text: the simplest way to read a result. */
static void print_rows(wf_result *result) {
    int32_t columns = wf_result_column_count(result);
    const wf_batch *batch;
    wf_status status;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            for (int32_t c = 0; c < columns; c++) {
                char text[100];
                wf_value_text(batch, c, row, text, sizeof text);
                printf("%s%s", c ? " | " : "  ", wf_batch_is_null(batch, c, row) ? "NULL" : text);
            }
            printf("\n");
        }
    }
    if (status) { /* rows are computed while they are read, so this can fail too */
        fprintf(stderr, "%s\n", wf_result_error(result)->message);
        exit(1);
    }
}

static void show_query(void) {
    const char *sql = "select city, count(*), sum(price) from sales group by city order by city";
    wf_result *result;
    must(wf_query(conn, sql, &result), sql);
    print_rows(result);
    printf("%s: %" PRId64 " rows, ran on %s\n", wf_result_tag(result), wf_result_row_count(result),
           wf_result_devices(result)); /* the number of rows is known once they are read */
    wf_result_close(result);
}

/* Typed access: whole columns as C arrays. */
static void show_columns(void) {
    const char *sql = "select id, qty from sales where qty is not null order by id";
    wf_result *result;
    must(wf_query(conn, sql, &result), sql);
    int64_t total = 0;
    const wf_batch *batch;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        const int32_t *qty = wf_batch_int32(batch, 1);
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            total += qty[row];
        }
    }
    printf("quantity in all: %" PRId64 "\n", total);
    wf_result_close(result);
}

static void show_prepared(void) {
    const char *sql = "select id, city from sales where price > $1 and city <> $2 order by id";
    wf_statement *statement;
    must(wf_prepare(conn, sql, &statement), sql);
    for (int32_t i = 1; i <= wf_statement_param_count(statement); i++) {
        wf_type_info info;
        if (wf_statement_param_type(statement, i, &info) == WF_OK) {
            printf("$%d is %s\n", i, info.text);
        }
    }
    static const char *const prices[] = {"10", "20.5"};
    for (int i = 0; i < 2; i++) {
        must(wf_bind_text(statement, 1, prices[i], -1), sql);
        must(wf_bind_text(statement, 2, "Oslo", -1), sql);
        wf_result *result;
        must(wf_execute(statement, &result), sql);
        printf("over %s:\n", prices[i]);
        print_rows(result);
        wf_result_close(result);
    }
    wf_statement_close(statement);
}

static void show_arrow(void) {
    const char *sql = "select id, price, city from sales order by id";
    wf_result *result;
    must(wf_query(conn, sql, &result), sql);
    struct ArrowArrayStream stream;
    must(wf_result_arrow_stream(result, &stream), sql);
    wf_result_close(result); /* the stream keeps the rows */
    struct ArrowSchema schema;
    if (stream.get_schema(&stream, &schema) == 0) {
        for (int64_t c = 0; c < schema.n_children; c++) {
            printf("arrow column %s: %s\n", schema.children[c]->name, schema.children[c]->format);
        }
        schema.release(&schema);
    }
    struct ArrowArray array;
    while (stream.get_next(&stream, &array) == 0 && array.release) {
        const int32_t *ids = array.children[0]->buffers[1];
        printf("arrow batch of %" PRId64 " rows, first id %" PRId32 "\n", array.length, ids[0]);
        array.release(&array);
    }
    stream.release(&stream);
}

static void show_error(void) {
    const char *sql = "select id, prize\nfrom sales";
    char text[2000];
    if (wf_query(conn, sql, NULL) == WF_OK) {
        exit(1);
    }
    wf_error_text(wf_connection_error(conn), sql, text, sizeof text);
    printf("%s\n", text);
}

int main(void) {
    wf_option options[] = {{"device", "cpu"}, {"threads", "2"}, {NULL, NULL}};
    wf_database *db;
    wf_error error;
    if (wf_open(NULL, options, &db, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (wf_connect(db, &conn)) {
        return 1;
    }
    run("create table sales (id integer not null, city text, price decimal(8,2), qty integer)");
    run("insert into sales values (1, 'Oslo', 12.50, 3), (2, 'Rome', 20.00, null),"
        " (3, 'Rome', 31.25, 7), (4, 'Lima', 8.75, 1)");
    show_query();
    show_columns();
    show_prepared();
    show_arrow();
    show_error();
    wf_disconnect(conn);
    wf_close(db);
    return 0;
}

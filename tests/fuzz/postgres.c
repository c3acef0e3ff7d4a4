/* postgres.c: asks PostgreSQL through libpq, which only this test needs. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

struct postgres {
    PGconn *conn;
};

static void quiet(void *arg, const char *message) {
    (void)arg;
    (void)message;
}

struct postgres *postgres_open(const char *dsn) {
    struct postgres *pg = calloc(1, sizeof *pg);
    if (!pg) {
        return NULL;
    }
    pg->conn = PQconnectdb(dsn);
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(pg->conn));
        postgres_close(pg);
        return NULL;
    }
    PQsetNoticeProcessor(pg->conn, quiet, NULL);
    postgres_run(pg, "set statement_timeout = 5000; set jit = off; set search_path = public; "
                     "set max_parallel_workers_per_gather = 0");
    return pg;
}

void postgres_close(struct postgres *pg) {
    if (pg) {
        PQfinish(pg->conn);
        free(pg);
    }
}

bool postgres_run(void *pg, const char *sql) {
    PGresult *result = PQexec(((struct postgres *)pg)->conn, sql);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!good) {
        fprintf(stderr, "%.200s\n%s", sql, PQresultErrorMessage(result));
    }
    PQclear(result);
    return good;
}

static void read_rows(const PGresult *result, const struct gen *g, struct answer *out) {
    enum {
        OID_BOOL = 16,
        OID_BIGINT = 20,
        OID_SMALLINT = 21,
        OID_INTEGER = 23,
        OID_NUMERIC = 1700
    };
    enum { OID_REAL = 700, OID_DOUBLE = 701 };
    int cols = PQnfields(result);
    for (int row = 0; row < PQntuples(result) && !out->huge; row++) {
        for (int c = 0; c < cols; c++) {
            Oid oid = PQftype(result, c);
            bool number = oid == OID_BIGINT || oid == OID_SMALLINT || oid == OID_INTEGER ||
                          oid == OID_NUMERIC || oid == OID_REAL || oid == OID_DOUBLE;
            const char *text = PQgetvalue(result, row, c);
            if (oid == OID_BOOL) {
                text = text[0] == 't' ? "true" : "false";
            }
            answer_value(out, PQgetisnull(result, row, c) ? NULL : text, number,
                         c < OUT_MAX && g->inexact[c], c == 0);
        }
        answer_end_row(out);
    }
}

void postgres_ask(struct postgres *pg, const char *sql, const struct gen *g, struct answer *out) {
    answer_reset(out);
    PGresult *result = PQexec(pg->conn, sql);
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        read_rows(result, g, out);
        if (!g->ordered) {
            answer_sort(out);
        }
    } else if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        snprintf(out->state, sizeof out->state, "%s", state ? state : "08000");
        snprintf(out->message, sizeof out->message, "%s", message ? message : "");
    }
    PQclear(result);
}

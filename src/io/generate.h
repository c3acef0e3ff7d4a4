/* generate.h: tables made by a program rather than read from a file.
 *
 * A generator knows its tables, their sizes, and how to make any run of rows of any of them on its
 * own: so rows are made by all threads at once, straight into the columns of tablets. */
#ifndef WF_IO_GENERATE_H
#define WF_IO_GENERATE_H

#include "io/io.h"

struct gen_column {
    const char *name;
    const char *type; /* as CREATE TABLE has it */
    /* Text of few values, which become the column's dictionary in this order: fill writes their
     * numbers. word(i, scratch) is value i, NULL behind the last. */
    const char *(*word)(i32 i, char scratch[64]);
    i32 text_bytes; /* room for text a row, for fill to write to; other text must outlive the load
                     */
    b8 unread;      /* left out when only the columns that queries read are wanted */
};

struct gen_table {
    const char *name;
    u32 col_count;
    const struct gen_column *cols;
    const char *keys; /* table constraints, as CREATE TABLE has them; @ before names of tables */
};

/* Where a run of rows goes. */
struct gen_target {
    void *data; /* of the first row: elements of the type's kind, u32 for words; NULL: not wanted */
    char *text; /* text_bytes for each row */
};
struct gen_chunk {
    i64 first_row, rows;
    struct gen_target *cols; /* by the generator's column number */
};

struct generator {
    i32 table_count;
    const struct gen_table *tables; /* the largest first, so that threads end together */
    i64 (*rows)(const struct generator *gen, i32 table);
    /* Thread-safe; any rows of the table. */
    void (*fill)(const struct generator *gen, i32 table, const struct gen_chunk *chunk);
};

/* Fills empty tables, one per table of the generator with the columns wanted, in parallel. On an
 * error some may have rows: the caller drops them. *out_rows counts the rows of all. */
FALLIBLE generate_load(const struct generator *gen, struct table *const *tables, struct pool *pool,
                       struct memory *mem, struct load_progress *progress, i64 *out_rows,
                       struct error *err);

/* Calls task for every i below count: on the pool, or here when there is none. */
void generate_run(struct pool *pool, i64 count, void (*task)(void *arg, i64 i, i32 worker),
                  void *arg);

enum { TPCH_SCALE_MIN = 1000, TPCH_SCALE_MAX = 1000000000 }; /* 0.001 and 1,000, in millionths */
/* Whose addresses and comments: those of the official dbgen, or those of the dbgen in DuckDB, which
 * cuts comments from the first 10 MiB of the pool and draws an address's letters from a range that
 * does not wrap. All else is the same. */
enum tpch_text { TPCH_TEXT_DBGEN, TPCH_TEXT_DUCKDB };
/* TPC-H at scale factor `millionths` / 10^6: rows as the official dbgen makes them. Takes the
 * memory of the text pool, 300 MiB or 10, until it is closed. ERR_CANCELLED as told through
 * progress. */
FALLIBLE tpch_open(struct generator **out, i64 millionths, enum tpch_text text, struct pool *pool,
                   struct memory *mem, struct load_progress *progress, struct error *err);
void tpch_close(struct generator *gen);
/* The tables, without opening. */
const struct gen_table *tpch_tables(i32 *out_count);
/* The table's keys at this scale: those of the table, unless dbgen's own rows break them. */
const char *tpch_keys(i32 table, i64 millionths);

#endif

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
    b8 pooled;      /* cut from the text pool */
};

/* A list of words as a column's vocabulary. */
#define GEN_WORDS(name, ...)                             \
    const char *name(i32 i, char scratch[64]) {          \
        static const char *const list[] = {__VA_ARGS__}; \
        UNUSED(scratch);                                 \
        return i < COUNT_OF(list) ? list[i] : NULL;      \
    }

struct gen_key {
    const char *cols;  /* names with ", " between; NULL behind the last key of a table */
    const char *table; /* whose primary key they refer to; NULL: they are the primary key */
};

struct gen_table {
    const char *name;
    u32 col_count;
    const struct gen_column *cols;
    const struct gen_key *keys; /* the primary key first */
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
/* Row i of a column; the value is computed only where the column is wanted, so what it draws must
 * come from streams that no other column reads. */
#define GEN_PUT(col, type, i, value)           \
    do {                                       \
        if ((col).data) {                      \
            ((type *)(col).data)[i] = (value); \
        }                                      \
    } while (0)

struct generator {
    i32 table_count;
    const struct gen_table *tables; /* the largest first, so that threads end together */
    i64 (*rows)(const struct generator *gen, i32 table);
    /* Thread-safe; any rows of the table. */
    void (*fill)(const struct generator *gen, i32 table, const struct gen_chunk *chunk);
    void (*rest)(struct generator *gen); /* no more rows are asked for: what they needed goes; or NULL */
    void (*close)(struct generator *gen);
    bool is_last; /* generate_load is called once: `rest` follows before the tables are committed */
};

/* Fills empty tables, one per table of the generator with the columns wanted, NULL for a table that
 * is not wanted, in parallel. On an error some may have rows: the caller drops them. *out_rows
 * counts the rows of all. */
FALLIBLE generate_load(struct generator *gen, struct table *const *tables, struct pool *pool,
                       struct memory *mem, struct load_progress *progress, i64 *out_rows,
                       struct error *err);

/* Calls task for every i below count: on the pool, or here when there is none. */
void generate_run(struct pool *pool, i64 count, void (*task)(void *arg, i64 i, i32 worker),
                  void *arg);

enum { GEN_SCALE_MIN = 1000, GEN_SCALE_MAX = 1000000000 }; /* 0.001 and 1,000, in millionths */
/* Whose addresses and comments: those of the official dbgen, or those of the dbgen in DuckDB, which
 * cuts comments from the first 10 MiB of the pool and draws an address's letters from a range that
 * does not wrap. All else is the same. */
enum tpch_text { TPCH_TEXT_DBGEN, TPCH_TEXT_DUCKDB };
struct gen_request {
    i64 millionths;      /* of the scale factor */
    enum tpch_text text; /* TPC-H only */
    b8 no_pool;          /* no pooled column is wanted */
    struct pool *pool;   /* NULL: on the calling thread */
    struct memory *mem;
    struct load_progress *progress; /* may be NULL */
};
/* The tables of a benchmark, without opening, and how to open it. */
struct gen_suite {
    const char *name; /* of the procedure */
    b8 has_text;      /* takes gen_request.text */
    i32 table_count;
    const struct gen_table *tables;
    /* The table's keys at this scale: those of the table, unless its own rows break them. */
    const struct gen_key *(*keys)(i32 table, i64 millionths);
    /* ERR_CANCELLED as told through progress. The generator is closed by its `close`. */
    wf_status (*open)(struct generator **out, const struct gen_request *request, struct error *err);
};
/* Rows as the official dbgen makes them. Takes the memory of the text pool, 300 MiB or 10, until it
 * is closed. */
extern const struct gen_suite tpch_suite;
/* The Star Schema Benchmark, its lines those of TPC-H's orders. */
extern const struct gen_suite ssb_suite;

#endif

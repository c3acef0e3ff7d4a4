/* tpch_int.h: what the files of the TPC-H generator share. */
#ifndef WF_IO_TPCH_INT_H
#define WF_IO_TPCH_INT_H

#include "io/generate.h"
#include "io/tpch_rand.h"

#define TPCH_POOL_BLOCK_BYTES (1LL << 20)
enum {
    TPCH_POOL_BLOCKS = 300, /* of the official pool */
    TPCH_SUPPLIERS_PER_PART = 4,
    TPCH_LINES_MAX = 7,
    TPCH_NAME_BYTES = 56, /* of a part: five of the longest colours and blanks */
    /* Bytes of comments, on average. */
    TPCH_LINE_COMMENT = 27,
    TPCH_ORDER_COMMENT = 49,
    TPCH_PARTSUPP_COMMENT = 124,
    TPCH_PART_COMMENT = 14,
    TPCH_CUSTOMER_COMMENT = 73,
    /* Orders whose lines are counted together; a row of lineitem is found from there. */
    TPCH_COUNT_ORDERS = 8192,
};

/* --- tpch_text.c ------------------------------------------------------------------------------ */
/* What a pool of so many blocks takes, with room to write the last sentence. */
i64 tpch_pool_bytes(i64 blocks);
/* Writes one block of the pool of `blocks`; blocks may be written at once. */
void tpch_pool_block(char *pool, i64 block, i64 blocks);
/* Reads the whole pool's random numbers and hands out what the marks must be, and what they are.
 * For tests. */
void tpch_pool_walk(void (*mark)(void *arg, i64 block, u32 seed, i64 offset), void *arg);
u32 tpch_pool_seed(i64 block);
i64 tpch_pool_offset(i64 block);

/* --- the generator --------------------------------------------------------------------------- */
enum tpch_table {
    TPCH_LINEITEM,
    TPCH_ORDERS,
    TPCH_PARTSUPP,
    TPCH_PART,
    TPCH_CUSTOMER,
    TPCH_SUPPLIER,
    TPCH_NATION,
    TPCH_REGION,
    TPCH_TABLES,
};

struct tpch {
    struct generator generator; /* first: a pointer to it is one to this */
    i32 suppliers, customers, parts;
    i64 orders, lines;
    i32 clerks;
    i64 count_count;  /* of line_starts, less one */
    i64 *line_starts; /* per TPCH_COUNT_ORDERS orders: lines before them */
    /* Official: a pool of 300 MiB, and letters of addresses drawn from a range that wraps. */
    i64 pool_blocks;
    i32 letter_sign;
    char *pool;
    struct memory *mem;
};

/* tpch_orders.c */
void tpch_count_lines(struct tpch *tpch, i64 part); /* line_starts[part + 1] = lines of the part */
void tpch_fill_orders(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_lineitem(const struct tpch *tpch, const struct gen_chunk *chunk);

/* tpch_tables.c: the other six */
void tpch_fill_part(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_partsupp(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_supplier(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_customer(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_nation(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_region(const struct tpch *tpch, const struct gen_chunk *chunk);

/* A comment of `least` to `most` bytes: a place in the pool, then a length. */
static inline str tpch_comment(const struct tpch *tpch, u32 *seed, i32 least, i32 most) {
    i32 place = rand_draw(seed, (i32)(tpch->pool_blocks * TPCH_POOL_BLOCK_BYTES) - most + 1);
    i32 len = least + rand_draw(seed, most - least + 1);
    return (str){(u32)len, 0, (u64)(size_t)(tpch->pool + place)}; /* whoever needs it reads it */
}

/* Comments that were drawn for `rows` rows as views of the pool, copied together: col->text has
 * room for `text_bytes` a row, their average; what does not fit stays a view. The pool is larger
 * than any cache, so each comment is asked for some rows ahead. */
void tpch_pull_comments(const struct gen_target *col, i64 rows, i32 text_bytes);

/* The supplier number `i` (0 to 3) of a part. */
static inline i32 tpch_supplier_of(const struct tpch *tpch, i32 part, i32 i) {
    u32 s = (u32)tpch->suppliers, p = (u32)part;
    return (i32)((p + (u32)i * (s / TPCH_SUPPLIERS_PER_PART + (p - 1) / s)) % s + 1);
}

/* In cents. */
static inline i64 tpch_retail_price(i32 part) {
    return 90000 + part / 10 % 20001 + part % 1000 * 100;
}

#endif

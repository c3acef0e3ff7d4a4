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
    TPCH_NATIONS = 25,
    TPCH_COLORS = 92,             /* of part names */
    TPCH_START_DATE = 8035,       /* 1992-01-01, in days since 1970 */
    TPCH_CURRENT_DATE = 9298,     /* 1995-06-17 */
    TPCH_ORDER_DAYS = 2557 - 151, /* the range of order dates */
};

/* The first seeds of what orders and their lines draw. */
enum {
    TPCH_SEED_DATE = 1066728069,
    TPCH_SEED_LINES = 1434868289,
    TPCH_SEED_CUSTOMER = 851767375,
    TPCH_SEED_PRIORITY = 591449447,
    TPCH_SEED_CLERK = 1171034773,
    TPCH_SEED_ORDER_COMMENT = 276090261,
    TPCH_SEED_QUANTITY = 209208115,
    TPCH_SEED_DISCOUNT = 554590007,
    TPCH_SEED_TAX = 721958466,
    TPCH_SEED_PART = 1808217256,
    TPCH_SEED_SUPPLIER = 2095021727,
    TPCH_SEED_SHIP_DATE = 1769349045,
    TPCH_SEED_COMMIT_DATE = 904914315,
    TPCH_SEED_RECEIPT_DATE = 373135028,
    TPCH_SEED_FLAG = 717419739,
    TPCH_SEED_INSTRUCTION = 1371272478,
    TPCH_SEED_MODE = 675466456,
    TPCH_SEED_LINE_COMMENT = 1095462486,
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

/* Which rows the lines of an order are: known once the lines of all orders are counted. */
struct tpch_lines {
    i64 orders, count;
    i64 part_count;
    i64 *starts; /* per TPCH_COUNT_ORDERS orders, and at the end: lines before them */
};

struct tpch {
    struct generator generator; /* first: a pointer to it is one to this */
    i32 suppliers, customers, parts;
    i32 clerks;
    struct tpch_lines lines;
    /* Official: a pool of 300 MiB, and letters of addresses drawn from a range that wraps. */
    i64 pool_blocks;
    i32 letter_sign;
    char *pool; /* NULL when no comment is wanted */
    struct memory *mem;
};

/* --- tpch_orders.c --------------------------------------------------------------------------- */
/* Counts; tpch_lines_fini also after an error. */
FALLIBLE tpch_lines_init(struct tpch_lines *lines, i64 orders, const struct gen_request *request,
                         struct error *err);
void tpch_lines_fini(struct tpch_lines *lines, struct memory *mem);
/* The order (from 0) a row of lineitem belongs to, and its place there. */
i64 tpch_order_of_line(const struct tpch_lines *lines, i64 row, i32 *out_line);
/* Every fourth eight of the keys is used. */
static inline i64 tpch_order_key(i64 order) {
    return (order >> 3 << 5) | (order & 7);
}
/* A third of the customers never order: a number that 3 divides moves to a neighbour. */
i32 tpch_ordering_customer(struct stream *customers, i32 count);

/* What an order's lines say about it. */
struct tpch_line_streams {
    struct stream quantity, discount, tax, part, ship_date;
};
struct tpch_line_streams tpch_line_streams_at(i64 order);
/* In cents; *out_status is the word of o_orderstatus. */
i64 tpch_total_price(i32 parts, struct tpch_line_streams *streams, i32 date, i32 lines,
                     u32 *out_status);

void tpch_fill_orders(const struct tpch *tpch, const struct gen_chunk *chunk);
void tpch_fill_lineitem(const struct tpch *tpch, const struct gen_chunk *chunk);

/* --- tpch.c ---------------------------------------------------------------------------------- */
/* Words as gen_column has them. */
const char *tpch_priority_word(i32 i, char scratch[64]);
const char *tpch_mode_word(i32 i, char scratch[64]);
const char *tpch_segment_word(i32 i, char scratch[64]);
const char *tpch_region_word(i32 i, char scratch[64]);
const char *tpch_nation_word(i32 i, char scratch[64]);
const char *tpch_type_word(i32 i, char scratch[64]);
const char *tpch_color_word(i32 i, char scratch[64]); /* of part names */
const char *tpch_container_word(i32 i, char scratch[64]);

/* --- tpch_tables.c: the other six ------------------------------------------------------------ */
extern const u8 tpch_nation_regions[TPCH_NATIONS];
/* "Supplier#000000001": nine digits behind a label. */
str tpch_put_label(char *out, const char *label, i32 number);
/* Letters, digits, blanks and commas, five to a draw. The draw's range is 2^31, in dbgen an int
 * that wraps: then the sign is -1. */
str tpch_put_address(char *out, i32 least, i32 most, i32 letter_sign, u32 seed);
/* "25-989-741-2988"; the country code comes from the nation. */
str tpch_put_phone(char *out, i32 nation, u32 seed);
/* So many different colours: the head of a shuffle. */
str tpch_put_colors(char *out, i32 count, u32 seed);
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
 * room for `text_bytes` a row, their average; what does not fit stays a view. Nothing is done for a
 * column that is not wanted. The pool is larger
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

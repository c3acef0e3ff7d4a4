/* tpch_orders.c: orders and their lines.
 *
 * An order has one to seven lines. Streams of lines give every order seven draws, used or not, so
 * order n's lines can be made alone; which row of lineitem they are is known from a first pass that
 * only draws the number of lines (line_starts), an order every few nanoseconds. An order's total
 * price and status follow from its lines, which are therefore drawn for both tables.
 *
 * The loops keep one seed per stream in registers or on the stack and write one row of all columns
 * at a time: the multiplications of a dozen streams overlap, which is what they cost. */
#include "io/tpch_int.h"

enum {
    START_DATE = 8035,       /* 1992-01-01, in days since 1970 */
    CURRENT_DATE = 9298,     /* 1995-06-17 */
    ORDER_DAYS = 2557 - 151, /* the range of order dates */
};

/* The first seeds. */
enum {
    SEED_DATE = 1066728069,
    SEED_LINES = 1434868289,
    SEED_CUSTOMER = 851767375,
    SEED_PRIORITY = 591449447,
    SEED_CLERK = 1171034773,
    SEED_ORDER_COMMENT = 276090261,
    SEED_QUANTITY = 209208115,
    SEED_DISCOUNT = 554590007,
    SEED_TAX = 721958466,
    SEED_PART = 1808217256,
    SEED_SUPPLIER = 2095021727,
    SEED_SHIP_DATE = 1769349045,
    SEED_COMMIT_DATE = 904914315,
    SEED_RECEIPT_DATE = 373135028,
    SEED_FLAG = 717419739,
    SEED_INSTRUCTION = 1371272478,
    SEED_MODE = 675466456,
    SEED_LINE_COMMENT = 1095462486,
};

/* Every eighth of the keys is used. */
static i64 order_key(i64 order) {
    return (order >> 3 << 5) | (order & 7);
}

void tpch_count_lines(struct tpch *tpch, i64 part) {
    i64 first = part * TPCH_COUNT_ORDERS;
    i64 end = MIN_OF(first + TPCH_COUNT_ORDERS, tpch->orders);
    u32 seed = rand_skip(SEED_LINES, first);
    i64 lines = 0;
    for (i64 i = first; i < end; i++) {
        lines += 1 + rand_draw(&seed, TPCH_LINES_MAX);
    }
    tpch->line_starts[part + 1] = lines;
}

/* The order (from 0) a row of lineitem belongs to, and its place there. */
static i64 order_of_line(const struct tpch *tpch, i64 row, i32 *out_line) {
    i64 low = starts_find(tpch->line_starts, tpch->count_count, row);
    i64 order = low * TPCH_COUNT_ORDERS, before = tpch->line_starts[low];
    u32 seed = rand_skip(SEED_LINES, order);
    for (;; order++) {
        i32 lines = 1 + rand_draw(&seed, TPCH_LINES_MAX);
        if (before + lines > row) {
            *out_line = (i32)(row - before);
            return order;
        }
        before += lines;
    }
}

static struct stream line_stream(u32 seed, i64 order) {
    return stream_at(seed, TPCH_LINES_MAX, order);
}

/* --- orders ----------------------------------------------------------------------------------- */

/* What an order's lines say about it. */
struct line_streams {
    struct stream quantity, discount, tax, part, ship_date;
};

static struct line_streams line_streams_at(i64 order) {
    return (struct line_streams){line_stream(SEED_QUANTITY, order),
                                 line_stream(SEED_DISCOUNT, order), line_stream(SEED_TAX, order),
                                 line_stream(SEED_PART, order), line_stream(SEED_SHIP_DATE, order)};
}

enum { STATUS_SHIPPED, STATUS_OPEN, STATUS_PART };

static i64 total_price(const struct tpch *tpch, struct line_streams *streams, i32 date, i32 lines,
                       u32 *out_status) {
    u32 quantity = stream_row(&streams->quantity), discount = stream_row(&streams->discount);
    u32 tax = stream_row(&streams->tax), part = stream_row(&streams->part);
    u32 ship_date = stream_row(&streams->ship_date);
    i64 total = 0;
    i32 shipped = 0;
    for (i32 i = 0; i < lines; i++) {
        i64 price =
            tpch_retail_price(1 + rand_draw(&part, tpch->parts)) * (1 + rand_draw(&quantity, 50));
        price = price * (100 - rand_draw(&discount, 11)) / 100;
        total += price * (100 + rand_draw(&tax, 9)) / 100;
        shipped += date + 1 + rand_draw(&ship_date, 121) <= CURRENT_DATE;
    }
    *out_status = shipped == lines ? STATUS_SHIPPED : shipped ? STATUS_PART : STATUS_OPEN;
    return total;
}

/* A third of the customers never order: a number that 3 divides moves to a neighbour. */
static i32 ordering_customer(const struct tpch *tpch, i32 drawn) {
    for (i32 delta = 1; drawn % 3 == 0; delta = -delta) {
        drawn = MIN_OF(drawn + delta, tpch->customers);
    }
    return drawn;
}

static str put_clerk(char *out, i32 number) {
    memcpy(out, "Clerk#", 6);
    for (i32 i = 14; i >= 6; i--, number /= 10) {
        out[i] = (char)('0' + number % 10);
    }
    return str_from((struct sv){out, 15});
}

enum {
    O_ORDERKEY,
    O_CUSTKEY,
    O_ORDERSTATUS,
    O_TOTALPRICE,
    O_ORDERDATE,
    O_ORDERPRIORITY,
    O_CLERK,
    O_SHIPPRIORITY,
    O_COMMENT,
};

void tpch_fill_orders(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    struct stream dates = stream_at(SEED_DATE, 1, first);
    struct stream line_counts = stream_at(SEED_LINES, 1, first);
    struct stream customers = stream_at(SEED_CUSTOMER, 1, first);
    struct stream priorities = stream_at(SEED_PRIORITY, 1, first);
    struct stream clerks = stream_at(SEED_CLERK, 1, first);
    struct stream comments = stream_at(SEED_ORDER_COMMENT, 2, first);
    struct line_streams lines = line_streams_at(first);
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 date = START_DATE + stream_draw(&dates, ORDER_DAYS);
        i32 line_count = 1 + stream_draw(&line_counts, TPCH_LINES_MAX);
        u32 status;
        ((i64 *)cols[O_TOTALPRICE].data)[i] = total_price(tpch, &lines, date, line_count, &status);
        ((i64 *)cols[O_ORDERKEY].data)[i] = order_key(first + i + 1);
        ((i32 *)cols[O_CUSTKEY].data)[i] =
            ordering_customer(tpch, 1 + stream_draw(&customers, tpch->customers));
        ((u32 *)cols[O_ORDERSTATUS].data)[i] = status;
        ((i32 *)cols[O_ORDERDATE].data)[i] = date;
        ((u32 *)cols[O_ORDERPRIORITY].data)[i] = (u32)stream_draw(&priorities, 5);
        ((str *)cols[O_CLERK].data)[i] =
            put_clerk(cols[O_CLERK].text + i * 15, 1 + stream_draw(&clerks, tpch->clerks));
        ((i32 *)cols[O_SHIPPRIORITY].data)[i] = 0;
        u32 seed = stream_row(&comments);
        ((str *)cols[O_COMMENT].data)[i] = tpch_comment(tpch, &seed, 19, 78);
    }
    tpch_pull_comments(&cols[O_COMMENT], chunk->rows, TPCH_ORDER_COMMENT);
}

/* --- lineitem --------------------------------------------------------------------------------- */

enum {
    L_ORDERKEY,
    L_PARTKEY,
    L_SUPPKEY,
    L_LINENUMBER,
    L_QUANTITY,
    L_EXTENDEDPRICE,
    L_DISCOUNT,
    L_TAX,
    L_RETURNFLAG,
    L_LINESTATUS,
    L_SHIPDATE,
    L_COMMITDATE,
    L_RECEIPTDATE,
    L_SHIPINSTRUCT,
    L_SHIPMODE,
    L_COMMENT,
};

enum { FLAG_RETURNED, FLAG_ACCEPTED, FLAG_NONE };

/* The streams of an order's lines; also, while one order is made, the seeds of its lines. */
#define LINE_STREAMS(X)              \
    X(quantity, SEED_QUANTITY)       \
    X(discount, SEED_DISCOUNT)       \
    X(tax, SEED_TAX)                 \
    X(part, SEED_PART)               \
    X(supplier, SEED_SUPPLIER)       \
    X(ship, SEED_SHIP_DATE)          \
    X(commit, SEED_COMMIT_DATE)      \
    X(receipt, SEED_RECEIPT_DATE)    \
    X(flag, SEED_FLAG)               \
    X(instruction, SEED_INSTRUCTION) \
    X(mode, SEED_MODE)

struct line_seeds {
#define X(name, seed) u32 name;
    LINE_STREAMS(X)
#undef X
    u32 comment;
};

static void write_price(const struct tpch *tpch, const struct gen_chunk *chunk, i64 i,
                        struct line_seeds *s) {
    const struct gen_target *cols = chunk->cols;
    i32 part = 1 + rand_draw(&s->part, tpch->parts);
    i32 quantity = 1 + rand_draw(&s->quantity, 50);
    ((i32 *)cols[L_PARTKEY].data)[i] = part;
    ((i32 *)cols[L_SUPPKEY].data)[i] =
        tpch_supplier_of(tpch, part, rand_draw(&s->supplier, TPCH_SUPPLIERS_PER_PART));
    ((i64 *)cols[L_QUANTITY].data)[i] = quantity * 100;
    ((i64 *)cols[L_EXTENDEDPRICE].data)[i] = tpch_retail_price(part) * quantity;
    ((i64 *)cols[L_DISCOUNT].data)[i] = rand_draw(&s->discount, 11);
    ((i64 *)cols[L_TAX].data)[i] = rand_draw(&s->tax, 9);
}

static void write_shipping(const struct gen_chunk *chunk, i64 i, i32 order_date,
                           struct line_seeds *s) {
    const struct gen_target *cols = chunk->cols;
    i32 ship = order_date + 1 + rand_draw(&s->ship, 121);
    i32 receipt = ship + 1 + rand_draw(&s->receipt, 30);
    bool received = receipt <= CURRENT_DATE; /* only then does the flag take a draw */
    ((i32 *)cols[L_SHIPDATE].data)[i] = ship;
    ((i32 *)cols[L_COMMITDATE].data)[i] = order_date + 30 + rand_draw(&s->commit, 61);
    ((i32 *)cols[L_RECEIPTDATE].data)[i] = receipt;
    ((u32 *)cols[L_RETURNFLAG].data)[i] = received ? (u32)rand_draw(&s->flag, 2) : FLAG_NONE;
    ((u32 *)cols[L_LINESTATUS].data)[i] = ship > CURRENT_DATE;
    ((u32 *)cols[L_SHIPINSTRUCT].data)[i] = (u32)rand_draw(&s->instruction, 4);
    ((u32 *)cols[L_SHIPMODE].data)[i] = (u32)rand_draw(&s->mode, 7);
}

/* One line; rows before the chunk are made and not kept. */
static void make_line(const struct tpch *tpch, const struct gen_chunk *chunk, i64 i, i32 order_date,
                      struct line_seeds *s) {
    write_price(tpch, chunk, i, s);
    write_shipping(chunk, i, order_date, s);
    if (chunk->cols[L_COMMENT].data) {
        ((str *)chunk->cols[L_COMMENT].data)[i] = tpch_comment(tpch, &s->comment, 10, 43);
    }
}

void tpch_fill_lineitem(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i32 skip;
    i64 order = order_of_line(tpch, chunk->first_row, &skip);
    struct stream dates = stream_at(SEED_DATE, 1, order);
    struct stream line_counts = stream_at(SEED_LINES, 1, order);
#define X(name, seed) u32 name = line_stream(seed, order).at;
    LINE_STREAMS(X)
#undef X
    u32 comment = stream_at(SEED_LINE_COMMENT, 2 * TPCH_LINES_MAX, order).at;
    u32 step = rand_power(TPCH_LINES_MAX), comment_step = rand_power(2 * TPCH_LINES_MAX);
    for (i64 i = 0; i < chunk->rows; order++, skip = 0) {
        i32 date = START_DATE + stream_draw(&dates, ORDER_DAYS);
        i32 lines = 1 + stream_draw(&line_counts, TPCH_LINES_MAX);
        struct line_seeds s = {.comment = comment};
#define X(name, seed) s.name = name, name = rand_mul(name, step);
        LINE_STREAMS(X)
#undef X
        comment = rand_mul(comment, comment_step);
        for (i32 line = 0; line < skip; line++) { /* written over by the first row that counts */
            make_line(tpch, chunk, i, date, &s);
        }
        for (i32 line = skip; line < lines && i < chunk->rows; line++, i++) {
            make_line(tpch, chunk, i, date, &s);
            ((i64 *)cols[L_ORDERKEY].data)[i] = order_key(order + 1);
            ((i32 *)cols[L_LINENUMBER].data)[i] = line + 1;
        }
    }
    if (cols[L_COMMENT].data) {
        tpch_pull_comments(&cols[L_COMMENT], chunk->rows, TPCH_LINE_COMMENT);
    }
}

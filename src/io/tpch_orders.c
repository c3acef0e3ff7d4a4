/* tpch_orders.c: orders and their lines.
 *
 * An order has one to seven lines. Streams of lines give every order seven draws, used or not, so
 * order n's lines can be made alone; which row of lineitem they are is known from a first pass that
 * only draws the number of lines (struct tpch_lines), an order every few nanoseconds. An order's total
 * price and status follow from its lines, which are therefore drawn for both tables.
 *
 * The loops keep one seed per stream in registers or on the stack and write one row of all columns
 * at a time: the multiplications of a dozen streams overlap, which is what they cost. */
#include "io/tpch_int.h"

static void count_task(void *arg, i64 part, i32 worker) {
    const struct tpch_lines *lines = arg;
    UNUSED(worker);
    i64 first = part * TPCH_COUNT_ORDERS;
    i64 end = MIN_OF(first + TPCH_COUNT_ORDERS, lines->orders);
    u32 seed = rand_skip(TPCH_SEED_LINES, first);
    i64 count = 0;
    for (i64 i = first; i < end; i++) {
        count += 1 + rand_draw(&seed, TPCH_LINES_MAX);
    }
    lines->starts[part + 1] = count;
}

static i64 starts_bytes(const struct tpch_lines *lines) {
    return (lines->part_count + 1) * (i64)sizeof *lines->starts;
}

FALLIBLE tpch_lines_init(struct tpch_lines *lines, i64 orders, const struct gen_request *request,
                         struct error *err) {
    lines->orders = orders;
    lines->part_count = (orders + TPCH_COUNT_ORDERS - 1) / TPCH_COUNT_ORDERS;
    lines->starts = mem_alloc(request->mem, starts_bytes(lines));
    if (!lines->starts) {
        return memory_refused(request->mem, err, starts_bytes(lines));
    }
    generate_run(request->pool, lines->part_count, count_task, lines);
    lines->starts[0] = 0;
    for (i64 i = 0; i < lines->part_count; i++) {
        lines->starts[i + 1] += lines->starts[i];
    }
    lines->count = lines->starts[lines->part_count];
    return load_progress_check(request->progress, err);
}

void tpch_lines_fini(struct tpch_lines *lines, struct memory *mem) {
    mem_free(mem, lines->starts, starts_bytes(lines));
}

i64 tpch_order_of_line(const struct tpch_lines *lines, i64 row, i32 *out_line) {
    i64 low = starts_find(lines->starts, lines->part_count, row);
    i64 order = low * TPCH_COUNT_ORDERS, before = lines->starts[low];
    u32 seed = rand_skip(TPCH_SEED_LINES, order);
    for (;; order++) {
        i32 count = 1 + rand_draw(&seed, TPCH_LINES_MAX);
        if (before + count > row) {
            *out_line = (i32)(row - before);
            return order;
        }
        before += count;
    }
}

static struct stream line_stream(u32 seed, i64 order) {
    return stream_at(seed, TPCH_LINES_MAX, order);
}

/* --- orders ----------------------------------------------------------------------------------- */

struct tpch_line_streams tpch_line_streams_at(i64 order) {
    return (struct tpch_line_streams){
        line_stream(TPCH_SEED_QUANTITY, order), line_stream(TPCH_SEED_DISCOUNT, order),
        line_stream(TPCH_SEED_TAX, order), line_stream(TPCH_SEED_PART, order),
        line_stream(TPCH_SEED_SHIP_DATE, order)};
}

enum { STATUS_SHIPPED, STATUS_OPEN, STATUS_PART };

i64 tpch_total_price(i32 parts, struct tpch_line_streams *streams, i32 date, i32 lines,
                     u32 *out_status) {
    u32 quantity = stream_row(&streams->quantity), discount = stream_row(&streams->discount);
    u32 tax = stream_row(&streams->tax), part = stream_row(&streams->part);
    u32 ship_date = stream_row(&streams->ship_date);
    i64 total = 0;
    i32 shipped = 0;
    for (i32 i = 0; i < lines; i++) {
        i64 price = tpch_retail_price(1 + rand_draw(&part, parts)) * (1 + rand_draw(&quantity, 50));
        price = price * (100 - rand_draw(&discount, 11)) / 100;
        total += price * (100 + rand_draw(&tax, 9)) / 100;
        shipped += date + 1 + rand_draw(&ship_date, 121) <= TPCH_CURRENT_DATE;
    }
    *out_status = shipped == lines ? STATUS_SHIPPED : shipped ? STATUS_PART : STATUS_OPEN;
    return total;
}

i32 tpch_ordering_customer(struct stream *customers, i32 count) {
    i32 drawn = 1 + stream_draw(customers, count);
    for (i32 delta = 1; drawn % 3 == 0; delta = -delta) {
        drawn = MIN_OF(drawn + delta, count);
    }
    return drawn;
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
    struct stream dates = stream_at(TPCH_SEED_DATE, 1, first);
    struct stream line_counts = stream_at(TPCH_SEED_LINES, 1, first);
    struct stream customers = stream_at(TPCH_SEED_CUSTOMER, 1, first);
    struct stream priorities = stream_at(TPCH_SEED_PRIORITY, 1, first);
    struct stream clerks = stream_at(TPCH_SEED_CLERK, 1, first);
    struct stream comments = stream_at(TPCH_SEED_ORDER_COMMENT, 2, first);
    struct tpch_line_streams lines = tpch_line_streams_at(first);
    bool priced = cols[O_TOTALPRICE].data || cols[O_ORDERSTATUS].data;
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 date = TPCH_START_DATE + stream_draw(&dates, TPCH_ORDER_DAYS);
        i32 line_count = 1 + stream_draw(&line_counts, TPCH_LINES_MAX);
        u32 status = 0;
        i64 total = priced ? tpch_total_price(tpch->parts, &lines, date, line_count, &status) : 0;
        GEN_PUT(cols[O_TOTALPRICE], i64, i, total);
        GEN_PUT(cols[O_ORDERKEY], i64, i, tpch_order_key(first + i + 1));
        GEN_PUT(cols[O_CUSTKEY], i32, i, tpch_ordering_customer(&customers, tpch->customers));
        GEN_PUT(cols[O_ORDERSTATUS], u32, i, status);
        GEN_PUT(cols[O_ORDERDATE], i32, i, date);
        GEN_PUT(cols[O_ORDERPRIORITY], u32, i, (u32)stream_draw(&priorities, 5));
        GEN_PUT(cols[O_CLERK], str, i,
                tpch_put_label(cols[O_CLERK].text + i * 15, "Clerk#",
                               1 + stream_draw(&clerks, tpch->clerks)));
        GEN_PUT(cols[O_SHIPPRIORITY], i32, i, 0);
        u32 seed = stream_row(&comments);
        GEN_PUT(cols[O_COMMENT], str, i, tpch_comment(tpch, &seed, 19, 78));
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
#define LINE_STREAMS(X)                   \
    X(quantity, TPCH_SEED_QUANTITY)       \
    X(discount, TPCH_SEED_DISCOUNT)       \
    X(tax, TPCH_SEED_TAX)                 \
    X(part, TPCH_SEED_PART)               \
    X(supplier, TPCH_SEED_SUPPLIER)       \
    X(ship, TPCH_SEED_SHIP_DATE)          \
    X(commit, TPCH_SEED_COMMIT_DATE)      \
    X(receipt, TPCH_SEED_RECEIPT_DATE)    \
    X(flag, TPCH_SEED_FLAG)               \
    X(instruction, TPCH_SEED_INSTRUCTION) \
    X(mode, TPCH_SEED_MODE)

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
    GEN_PUT(cols[L_PARTKEY], i32, i, part);
    GEN_PUT(cols[L_SUPPKEY], i32, i,
            tpch_supplier_of(tpch, part, rand_draw(&s->supplier, TPCH_SUPPLIERS_PER_PART)));
    GEN_PUT(cols[L_QUANTITY], i64, i, quantity * 100);
    GEN_PUT(cols[L_EXTENDEDPRICE], i64, i, tpch_retail_price(part) * quantity);
    GEN_PUT(cols[L_DISCOUNT], i64, i, rand_draw(&s->discount, 11));
    GEN_PUT(cols[L_TAX], i64, i, rand_draw(&s->tax, 9));
}

static void write_shipping(const struct gen_chunk *chunk, i64 i, i32 order_date,
                           struct line_seeds *s) {
    const struct gen_target *cols = chunk->cols;
    i32 ship = order_date + 1 + rand_draw(&s->ship, 121);
    i32 receipt = ship + 1 + rand_draw(&s->receipt, 30);
    bool received = receipt <= TPCH_CURRENT_DATE; /* only then does the flag take a draw */
    GEN_PUT(cols[L_SHIPDATE], i32, i, ship);
    GEN_PUT(cols[L_COMMITDATE], i32, i, order_date + 30 + rand_draw(&s->commit, 61));
    GEN_PUT(cols[L_RECEIPTDATE], i32, i, receipt);
    GEN_PUT(cols[L_RETURNFLAG], u32, i, received ? (u32)rand_draw(&s->flag, 2) : FLAG_NONE);
    GEN_PUT(cols[L_LINESTATUS], u32, i, ship > TPCH_CURRENT_DATE);
    GEN_PUT(cols[L_SHIPINSTRUCT], u32, i, (u32)rand_draw(&s->instruction, 4));
    GEN_PUT(cols[L_SHIPMODE], u32, i, (u32)rand_draw(&s->mode, 7));
}

/* One line; rows before the chunk are made and not kept. */
static void make_line(const struct tpch *tpch, const struct gen_chunk *chunk, i64 i, i32 order_date,
                      struct line_seeds *s) {
    write_price(tpch, chunk, i, s);
    write_shipping(chunk, i, order_date, s);
    GEN_PUT(chunk->cols[L_COMMENT], str, i, tpch_comment(tpch, &s->comment, 10, 43));
}

void tpch_fill_lineitem(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i32 skip;
    i64 order = tpch_order_of_line(&tpch->lines, chunk->first_row, &skip);
    struct stream dates = stream_at(TPCH_SEED_DATE, 1, order);
    struct stream line_counts = stream_at(TPCH_SEED_LINES, 1, order);
#define X(name, seed) u32 name = line_stream(seed, order).at;
    LINE_STREAMS(X)
#undef X
    u32 comment = stream_at(TPCH_SEED_LINE_COMMENT, 2 * TPCH_LINES_MAX, order).at;
    u32 step = rand_power(TPCH_LINES_MAX), comment_step = rand_power(2 * TPCH_LINES_MAX);
    for (i64 i = 0; i < chunk->rows; order++, skip = 0) {
        i32 date = TPCH_START_DATE + stream_draw(&dates, TPCH_ORDER_DAYS);
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
            GEN_PUT(cols[L_ORDERKEY], i64, i, tpch_order_key(order + 1));
            GEN_PUT(cols[L_LINENUMBER], i32, i, line + 1);
        }
    }
    tpch_pull_comments(&cols[L_COMMENT], chunk->rows, TPCH_LINE_COMMENT);
}

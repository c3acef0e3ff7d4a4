/* ssb_rows.c: the rows of lineorder, part, customer, supplier and date.
 *
 * Every stream has a fixed share of draws a row (tpch_rand.h), seven an order for what each line
 * draws, so each function here starts at the chunk's first row and goes on from there. */
#include "io/ssb_int.h"

#include <stdio.h>

/* The first seeds of what TPC-H does not draw. */
enum {
    SEED_PART_NAME = 709314158,
    SEED_PART_COLOR = 1522138213,
    SEED_PART_BRAND = 877203441,
    SEED_CUSTOMER_CITY = 1188563459,
    SEED_SUPPLIER_CITY = 1934267215,
};

/* --- lineorder -------------------------------------------------------------------------------- */

enum {
    LO_ORDERKEY,
    LO_LINENUMBER,
    LO_CUSTKEY,
    LO_PARTKEY,
    LO_SUPPKEY,
    LO_ORDERDATE,
    LO_ORDERPRIORITY,
    LO_SHIPPRIORITY,
    LO_QUANTITY,
    LO_EXTENDEDPRICE,
    LO_ORDTOTALPRICE,
    LO_DISCOUNT,
    LO_REVENUE,
    LO_SUPPLYCOST,
    LO_TAX,
    LO_COMMITDATE,
    LO_SHIPMODE,
};

/* The streams of an order's lines; also, while one order is made, the seeds of its lines. */
#define LINE_STREAMS(X)              \
    X(quantity, TPCH_SEED_QUANTITY)  \
    X(discount, TPCH_SEED_DISCOUNT)  \
    X(tax, TPCH_SEED_TAX)            \
    X(part, TPCH_SEED_PART)          \
    X(supplier, TPCH_SEED_SUPPLIER)  \
    X(commit, TPCH_SEED_COMMIT_DATE) \
    X(mode, TPCH_SEED_MODE)

struct line_seeds {
#define X(name, seed) u32 name;
    LINE_STREAMS(X)
#undef X
};

/* What the lines of an order share. */
struct order_head {
    i64 key;
    i32 day; /* from 0 = 1992-01-01 */
    i32 customer;
    u32 priority;
    i32 total;
};

static void put_head(const struct ssb *ssb, const struct gen_target *cols, i64 i, i32 line,
                     const struct order_head *head) {
    GEN_PUT(cols[LO_ORDERKEY], i64, i, head->key);
    GEN_PUT(cols[LO_LINENUMBER], i32, i, line + 1);
    GEN_PUT(cols[LO_CUSTKEY], i32, i, head->customer);
    GEN_PUT(cols[LO_ORDERDATE], i32, i, ssb->date_keys[head->day]);
    GEN_PUT(cols[LO_ORDERPRIORITY], u32, i, head->priority);
    GEN_PUT(cols[LO_SHIPPRIORITY], u32, i, 0);
    GEN_PUT(cols[LO_ORDTOTALPRICE], i32, i, head->total);
}

static void put_line(const struct ssb *ssb, const struct gen_target *cols, i64 i, i32 day,
                     struct line_seeds *s) {
    i32 part = 1 + rand_draw(&s->part, ssb->parts);
    i32 quantity = 1 + rand_draw(&s->quantity, 50), discount = rand_draw(&s->discount, 11);
    i64 price = tpch_retail_price(part);
    GEN_PUT(cols[LO_PARTKEY], i32, i, part);
    GEN_PUT(cols[LO_SUPPKEY], i32, i, 1 + rand_draw(&s->supplier, ssb->suppliers));
    GEN_PUT(cols[LO_QUANTITY], i32, i, quantity);
    GEN_PUT(cols[LO_EXTENDEDPRICE], i32, i, (i32)(price * quantity));
    GEN_PUT(cols[LO_DISCOUNT], i32, i, discount);
    GEN_PUT(cols[LO_REVENUE], i32, i, (i32)(price * quantity * (100 - discount) / 100));
    GEN_PUT(cols[LO_SUPPLYCOST], i32, i, (i32)(price * 6 / 10));
    GEN_PUT(cols[LO_TAX], i32, i, rand_draw(&s->tax, 9));
    GEN_PUT(cols[LO_COMMITDATE], i32, i, ssb->date_keys[day + 30 + rand_draw(&s->commit, 61)]);
    GEN_PUT(cols[LO_SHIPMODE], u32, i, (u32)rand_draw(&s->mode, 7));
}

struct head_streams {
    struct stream date, line_count, customer, priority;
    struct tpch_line_streams lines;
};

/* Returns the order's lines. */
static i32 next_head(const struct ssb *ssb, struct head_streams *streams, i64 order, bool total,
                     struct order_head *out) {
    u32 status;
    i32 lines = 1 + stream_draw(&streams->line_count, TPCH_LINES_MAX);
    out->key = tpch_order_key(order + 1);
    out->day = stream_draw(&streams->date, TPCH_ORDER_DAYS);
    out->customer = tpch_ordering_customer(&streams->customer, ssb->customers);
    out->priority = (u32)stream_draw(&streams->priority, 5);
    out->total = !total ? 0
                        : (i32)tpch_total_price(ssb->parts, &streams->lines,
                                                TPCH_START_DATE + out->day, lines, &status);
    return lines;
}

void ssb_fill_lineorder(const struct ssb *ssb, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i32 skip;
    i64 order = tpch_order_of_line(&ssb->lines, chunk->first_row, &skip);
    struct head_streams heads = {
        stream_at(TPCH_SEED_DATE, 1, order), stream_at(TPCH_SEED_LINES, 1, order),
        stream_at(TPCH_SEED_CUSTOMER, 1, order), stream_at(TPCH_SEED_PRIORITY, 1, order),
        tpch_line_streams_at(order)};
#define X(name, seed) u32 name = rand_skip(seed, order * TPCH_LINES_MAX);
    LINE_STREAMS(X)
#undef X
    u32 step = rand_power(TPCH_LINES_MAX);
    for (i64 i = 0; i < chunk->rows; order++, skip = 0) {
        struct order_head head;
        struct line_seeds s;
        i32 lines = next_head(ssb, &heads, order, cols[LO_ORDTOTALPRICE].data != NULL, &head);
#define X(name, seed) s.name = name, name = rand_mul(name, step);
        LINE_STREAMS(X)
#undef X
        for (i32 line = 0; line < skip; line++) { /* written over by the first row that counts */
            put_line(ssb, cols, i, head.day, &s);
        }
        for (i32 line = skip; line < lines && i < chunk->rows; line++, i++) {
            put_line(ssb, cols, i, head.day, &s);
            put_head(ssb, cols, i, line, &head);
        }
    }
}

/* --- part ------------------------------------------------------------------------------------- */

enum { P_PARTKEY, P_NAME, P_MFGR, P_CATEGORY, P_BRAND1, P_COLOR, P_TYPE, P_SIZE, P_CONTAINER };

void ssb_fill_part(const struct ssb *ssb, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    struct stream names = stream_at(SEED_PART_NAME, 2, first);
    struct stream makers = stream_at(1, 1, first);
    struct stream categories = stream_at(46831694, 1, first);
    struct stream brands = stream_at(SEED_PART_BRAND, 1, first);
    struct stream colors = stream_at(SEED_PART_COLOR, 1, first);
    struct stream types = stream_at(1841581359, 1, first);
    struct stream sizes = stream_at(1193163244, 1, first);
    struct stream containers = stream_at(727633698, 1, first);
    UNUSED(ssb);
    for (i64 i = 0; i < chunk->rows; i++) {
        u32 maker = (u32)stream_draw(&makers, 5);
        u32 category = maker * 5 + (u32)stream_draw(&categories, 5);
        GEN_PUT(cols[P_PARTKEY], i32, i, (i32)(first + i + 1));
        GEN_PUT(cols[P_NAME], str, i,
                tpch_put_colors(cols[P_NAME].text + i * SSB_NAME_BYTES, 2, stream_row(&names)));
        GEN_PUT(cols[P_MFGR], u32, i, maker);
        GEN_PUT(cols[P_CATEGORY], u32, i, category);
        GEN_PUT(cols[P_BRAND1], u32, i,
                category * SSB_BRANDS + (u32)stream_draw(&brands, SSB_BRANDS));
        GEN_PUT(cols[P_COLOR], u32, i, (u32)stream_draw(&colors, TPCH_COLORS));
        GEN_PUT(cols[P_TYPE], u32, i, (u32)stream_draw(&types, 150));
        GEN_PUT(cols[P_SIZE], i32, i, 1 + stream_draw(&sizes, 50));
        GEN_PUT(cols[P_CONTAINER], u32, i, (u32)stream_draw(&containers, 40));
    }
}

/* --- customer, supplier ----------------------------------------------------------------------- */

enum { KEY, NAME, ADDRESS, CITY, NATION, REGION, PHONE, SEGMENT };

struct firm_streams {
    const char *label;
    struct stream address, nation, city, phone;
};

/* What customers and suppliers have in common. */
static void fill_firms(const struct gen_chunk *chunk, struct firm_streams *streams) {
    const struct gen_target *cols = chunk->cols;
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 key = (i32)(chunk->first_row + i + 1), nation = stream_draw(&streams->nation, 25);
        GEN_PUT(cols[KEY], i32, i, key);
        GEN_PUT(cols[NAME], str, i, tpch_put_label(cols[NAME].text + i * 18, streams->label, key));
        GEN_PUT(cols[ADDRESS], str, i,
                tpch_put_address(cols[ADDRESS].text + i * SSB_ADDRESS_BYTES, 6, SSB_ADDRESS_BYTES,
                                 1, stream_row(&streams->address)));
        GEN_PUT(cols[CITY], u32, i,
                (u32)(nation * SSB_CITIES + stream_draw(&streams->city, SSB_CITIES)));
        GEN_PUT(cols[NATION], u32, i, (u32)nation);
        GEN_PUT(cols[REGION], u32, i, tpch_nation_regions[nation]);
        GEN_PUT(cols[PHONE], str, i,
                tpch_put_phone(cols[PHONE].text + i * 15, nation, stream_row(&streams->phone)));
    }
}

void ssb_fill_customer(const struct ssb *ssb, const struct gen_chunk *chunk) {
    i64 first = chunk->first_row;
    struct firm_streams streams = {
        "Customer#", stream_at(881155353, 9, first), stream_at(1489529863, 1, first),
        stream_at(SEED_CUSTOMER_CITY, 1, first), stream_at(1521138112, 3, first)};
    struct stream segments = stream_at(1140279430, 1, first);
    UNUSED(ssb);
    fill_firms(chunk, &streams);
    for (i64 i = 0; i < chunk->rows; i++) {
        GEN_PUT(chunk->cols[SEGMENT], u32, i, (u32)stream_draw(&segments, 5));
    }
}

void ssb_fill_supplier(const struct ssb *ssb, const struct gen_chunk *chunk) {
    i64 first = chunk->first_row;
    struct firm_streams streams = {
        "Supplier#", stream_at(706178559, 9, first), stream_at(110356601, 1, first),
        stream_at(SEED_SUPPLIER_CITY, 1, first), stream_at(884434366, 3, first)};
    UNUSED(ssb);
    fill_firms(chunk, &streams);
}

/* --- date ------------------------------------------------------------------------------------- */

enum {
    D_DATEKEY,
    D_DATE,
    D_DAYOFWEEK,
    D_MONTH,
    D_YEAR,
    D_YEARMONTHNUM,
    D_YEARMONTH,
    D_DAYNUMINWEEK,
    D_DAYNUMINMONTH,
    D_DAYNUMINYEAR,
    D_MONTHNUMINYEAR,
    D_WEEKNUMINYEAR,
    D_SELLINGSEASON,
    D_LASTDAYINWEEKFL,
    D_LASTDAYINMONTHFL,
    D_HOLIDAYFL,
    D_WEEKDAYFL,
};

static str put_date(char *out, const struct ssb_day *day) {
    char text[64], scratch[64];
    i32 len = (i32)snprintf(text, sizeof text, "%s %d, %d", ssb_month_word(day->month - 1, scratch),
                            day->day, day->year);
    CHECK(len <= SSB_DATE_BYTES);
    memcpy(out, text, (size_t)len);
    return str_from((struct sv){out, len});
}

static u32 season_of(i32 month) {
    static const u8 seasons[] = {SSB_WINTER, SSB_WINTER, SSB_WINTER,    SSB_SPRING,
                                 SSB_SUMMER, SSB_SUMMER, SSB_SUMMER,    SSB_SUMMER,
                                 SSB_FALL,   SSB_FALL,   SSB_CHRISTMAS, SSB_CHRISTMAS};
    return seasons[month - 1];
}

static i32 is_holiday(const struct ssb_day *day) {
    i32 date = day->month * 100 + day->day;
    return date == 101 || date == 704 || date == 1111 || date == 1225;
}

void ssb_fill_date(const struct ssb *ssb, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 no = (i32)(chunk->first_row + i);
        struct ssb_day day = ssb_day_of(no);
        GEN_PUT(cols[D_DATEKEY], i32, i, ssb->date_keys[no]);
        GEN_PUT(cols[D_DATE], str, i, put_date(cols[D_DATE].text + i * SSB_DATE_BYTES, &day));
        GEN_PUT(cols[D_DAYOFWEEK], u32, i, (u32)(day.in_week - 1));
        GEN_PUT(cols[D_MONTH], u32, i, (u32)(day.month - 1));
        GEN_PUT(cols[D_YEAR], i32, i, day.year);
        GEN_PUT(cols[D_YEARMONTHNUM], i32, i, day.year * 100 + day.month);
        GEN_PUT(cols[D_YEARMONTH], u32, i, (u32)((day.year - 1992) * 12 + day.month - 1));
        GEN_PUT(cols[D_DAYNUMINWEEK], i32, i, day.in_week);
        GEN_PUT(cols[D_DAYNUMINMONTH], i32, i, day.day);
        GEN_PUT(cols[D_DAYNUMINYEAR], i32, i, day.in_year);
        GEN_PUT(cols[D_MONTHNUMINYEAR], i32, i, day.month);
        GEN_PUT(cols[D_WEEKNUMINYEAR], i32, i, (day.in_year - 1) / 7 + 1);
        GEN_PUT(cols[D_SELLINGSEASON], u32, i, season_of(day.month));
        GEN_PUT(cols[D_LASTDAYINWEEKFL], i32, i, day.in_week == 7);
        GEN_PUT(cols[D_LASTDAYINMONTHFL], i32, i, day.ends_month);
        GEN_PUT(cols[D_HOLIDAYFL], i32, i, is_holiday(&day));
        GEN_PUT(cols[D_WEEKDAYFL], i32, i, day.in_week > 1 && day.in_week < 7);
    }
}

/* ssb.c: the five tables of the Star Schema Benchmark: their columns, keys and sizes.
 *
 * The schema is that of O'Neil, O'Neil and Chen, "Star Schema Benchmark", revision 3: TPC-H's orders
 * and lines as one table of facts, and four dimensions. Prices are whole cents, as integers. A line
 * is the line that TPC-H has at the same scale: part, quantity, discount, tax, dates and mode come
 * from the same streams of random numbers (tpch_int.h); so do the columns of customers, suppliers
 * and parts that TPC-H has too. What is new here (cities, brands, colours, suppliers of lines) has
 * streams of its own. `unread` marks what none of the 13 queries reads. */
#include "io/ssb_int.h"

#include <stdio.h>

/* --- words ------------------------------------------------------------------------------------ */

static GEN_WORDS(ship_priority_word, "0") static GEN_WORDS(weekday_word, "Sunday", "Monday",
                                                           "Tuesday", "Wednesday", "Thursday",
                                                           "Friday", "Saturday")
    GEN_WORDS(ssb_month_word, "January", "February", "March", "April", "May", "June", "July",
              "August", "September", "October", "November",
              "December") static GEN_WORDS(season_word, "Winter", "Spring", "Summer", "Fall",
                                           "Christmas")

        static const char *year_month_word(i32 i, char scratch[64]) {
    char month[64];
    snprintf(scratch, 64, "%.3s%d", ssb_month_word(i % 12, month), 1992 + i / 12);
    return i < 7 * 12 ? scratch : NULL;
}

/* "UNITED KI1": nine bytes of the nation and a digit. */
static const char *city_word(i32 i, char scratch[64]) {
    char nation[64];
    if (i >= TPCH_NATIONS * SSB_CITIES) {
        return NULL;
    }
    snprintf(scratch, 64, "%-9.9s%d", tpch_nation_word(i / SSB_CITIES, nation), i % SSB_CITIES);
    return scratch;
}

static const char *maker_word(i32 i, char scratch[64]) {
    snprintf(scratch, 64, "MFGR#%d", i + 1);
    return i < 5 ? scratch : NULL;
}

static const char *category_word(i32 i, char scratch[64]) {
    snprintf(scratch, 64, "MFGR#%d%d", i / 5 + 1, i % 5 + 1);
    return i < 25 ? scratch : NULL;
}

static const char *brand_word(i32 i, char scratch[64]) {
    i32 category = i / SSB_BRANDS;
    snprintf(scratch, 64, "MFGR#%d%d%d", category / 5 + 1, category % 5 + 1, i % SSB_BRANDS + 1);
    return i < 25 * SSB_BRANDS ? scratch : NULL;
}

/* --- tables ----------------------------------------------------------------------------------- */

#define NUMBER(name) \
    { name, "integer", NULL, 0, 0, 0 }
#define WORD(name, word) \
    { name, "text", word, 0, 0, 0 }
#define UNREAD_NUMBER(name) \
    { name, "integer", NULL, 0, 1, 0 }
#define UNREAD_WORD(name, word) \
    { name, "text", word, 0, 1, 0 }
#define UNREAD_TEXT(name, bytes) \
    { name, "text", NULL, bytes, 1, 0 }

static const struct gen_column lineorder_cols[] = {
    {"lo_orderkey", "bigint", NULL, 0, 1, 0}, /* sparse: passes 2^31 at scale factor 358 */
    UNREAD_NUMBER("lo_linenumber"),
    NUMBER("lo_custkey"),
    NUMBER("lo_partkey"),
    NUMBER("lo_suppkey"),
    NUMBER("lo_orderdate"),
    UNREAD_WORD("lo_orderpriority", tpch_priority_word),
    UNREAD_WORD("lo_shippriority", ship_priority_word),
    NUMBER("lo_quantity"),
    NUMBER("lo_extendedprice"),
    UNREAD_NUMBER("lo_ordtotalprice"),
    NUMBER("lo_discount"),
    NUMBER("lo_revenue"),
    NUMBER("lo_supplycost"),
    UNREAD_NUMBER("lo_tax"),
    UNREAD_NUMBER("lo_commitdate"),
    UNREAD_WORD("lo_shipmode", tpch_mode_word)};
static const struct gen_column part_cols[] = {NUMBER("p_partkey"),
                                              UNREAD_TEXT("p_name", SSB_NAME_BYTES),
                                              WORD("p_mfgr", maker_word),
                                              WORD("p_category", category_word),
                                              WORD("p_brand1", brand_word),
                                              UNREAD_WORD("p_color", tpch_color_word),
                                              UNREAD_WORD("p_type", tpch_type_word),
                                              UNREAD_NUMBER("p_size"),
                                              UNREAD_WORD("p_container", tpch_container_word)};
static const struct gen_column customer_cols[] = {NUMBER("c_custkey"),
                                                  UNREAD_TEXT("c_name", 18),
                                                  UNREAD_TEXT("c_address", SSB_ADDRESS_BYTES),
                                                  WORD("c_city", city_word),
                                                  WORD("c_nation", tpch_nation_word),
                                                  WORD("c_region", tpch_region_word),
                                                  UNREAD_TEXT("c_phone", 15),
                                                  UNREAD_WORD("c_mktsegment", tpch_segment_word)};
static const struct gen_column supplier_cols[] = {NUMBER("s_suppkey"),
                                                  UNREAD_TEXT("s_name", 18),
                                                  UNREAD_TEXT("s_address", SSB_ADDRESS_BYTES),
                                                  WORD("s_city", city_word),
                                                  WORD("s_nation", tpch_nation_word),
                                                  WORD("s_region", tpch_region_word),
                                                  UNREAD_TEXT("s_phone", 15)};
static const struct gen_column date_cols[] = {NUMBER("d_datekey"),
                                              UNREAD_TEXT("d_date", SSB_DATE_BYTES),
                                              UNREAD_WORD("d_dayofweek", weekday_word),
                                              UNREAD_WORD("d_month", ssb_month_word),
                                              NUMBER("d_year"),
                                              NUMBER("d_yearmonthnum"),
                                              WORD("d_yearmonth", year_month_word),
                                              UNREAD_NUMBER("d_daynuminweek"),
                                              UNREAD_NUMBER("d_daynuminmonth"),
                                              UNREAD_NUMBER("d_daynuminyear"),
                                              UNREAD_NUMBER("d_monthnuminyear"),
                                              NUMBER("d_weeknuminyear"),
                                              UNREAD_WORD("d_sellingseason", season_word),
                                              UNREAD_NUMBER("d_lastdayinweekfl"),
                                              UNREAD_NUMBER("d_lastdayinmonthfl"),
                                              UNREAD_NUMBER("d_holidayfl"),
                                              UNREAD_NUMBER("d_weekdayfl")};

static const struct gen_key lineorder_keys[] = {{"lo_orderkey, lo_linenumber", NULL},
                                                {"lo_custkey", "customer"},
                                                {"lo_partkey", "part"},
                                                {"lo_suppkey", "supplier"},
                                                {"lo_orderdate", "date"},
                                                {"lo_commitdate", "date"},
                                                {NULL, NULL}};
static const struct gen_key part_keys[] = {{"p_partkey", NULL}, {NULL, NULL}};
static const struct gen_key customer_keys[] = {{"c_custkey", NULL}, {NULL, NULL}};
static const struct gen_key supplier_keys[] = {{"s_suppkey", NULL}, {NULL, NULL}};
static const struct gen_key date_keys[] = {{"d_datekey", NULL}, {NULL, NULL}};

#define TABLE(name) \
    { #name, COUNT_OF(name##_cols), name##_cols, name##_keys }
static const struct gen_table tables[SSB_TABLES] = {
    [SSB_LINEORDER] = TABLE(lineorder), [SSB_PART] = TABLE(part), [SSB_CUSTOMER] = TABLE(customer),
    [SSB_SUPPLIER] = TABLE(supplier),   [SSB_DATE] = TABLE(date),
};

static const struct gen_key *keys_of(i32 table, i64 millionths) {
    UNUSED(millionths);
    return tables[table].keys;
}

static i64 rows_of(const struct generator *gen, i32 table) {
    const struct ssb *ssb = (const struct ssb *)(const void *)gen;
    switch ((enum ssb_table)table) {
    case SSB_LINEORDER:
        return ssb->lines.count;
    case SSB_PART:
        return ssb->parts;
    case SSB_CUSTOMER:
        return ssb->customers;
    case SSB_SUPPLIER:
        return ssb->suppliers;
    default:
        return SSB_DAYS;
    }
}

static void fill(const struct generator *gen, i32 table, const struct gen_chunk *chunk) {
    static void (*const fills[SSB_TABLES])(const struct ssb *, const struct gen_chunk *) = {
        [SSB_LINEORDER] = ssb_fill_lineorder, [SSB_PART] = ssb_fill_part,
        [SSB_CUSTOMER] = ssb_fill_customer,   [SSB_SUPPLIER] = ssb_fill_supplier,
        [SSB_DATE] = ssb_fill_date,
    };
    fills[table]((const struct ssb *)(const void *)gen, chunk);
}

/* --- opening ---------------------------------------------------------------------------------- */

struct ssb_day ssb_day_of(i32 day) {
    static const u8 lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    struct ssb_day out = {.year = 1992, .month = 1, .in_week = (day + 3) % 7 + 1};
    for (i32 n; day >= (n = out.year % 4 ? 365 : 366); out.year++) {
        day -= n;
    }
    out.in_year = day + 1;
    i32 length;
    while (day >= (length = lengths[out.month - 1] + (out.month == 2 && out.year % 4 == 0))) {
        day -= length;
        out.month++;
    }
    out.day = day + 1;
    out.ends_month = out.day == length;
    return out;
}

/* 200,000 parts, and as many again each time the scale factor doubles. */
static i32 part_count(i64 millionths) {
    i64 doublings = 0;
    while (2000000LL << doublings <= millionths) {
        doublings++;
    }
    return (i32)(millionths < 1000000 ? 200000 * millionths / 1000000 : 200000 * (1 + doublings));
}

static void close_ssb(struct generator *gen) {
    struct ssb *ssb = (struct ssb *)(void *)gen;
    tpch_lines_fini(&ssb->lines, ssb->mem);
    mem_free(ssb->mem, ssb, (i64)sizeof *ssb);
}

static wf_status open_ssb(struct generator **out, const struct gen_request *request,
                          struct error *err) {
    i64 millionths = request->millionths;
    CHECK(millionths >= GEN_SCALE_MIN && millionths <= GEN_SCALE_MAX);
    struct ssb *ssb = mem_alloc(request->mem, (i64)sizeof *ssb);
    if (!ssb) {
        return memory_refused(request->mem, err, (i64)sizeof *ssb);
    }
    *ssb = (struct ssb){.generator = {SSB_TABLES, tables, rows_of, fill, NULL, close_ssb, false},
                        .suppliers = (i32)(2000 * millionths / 1000000),
                        .customers = (i32)(30000 * millionths / 1000000),
                        .parts = part_count(millionths),
                        .mem = request->mem};
    for (i32 i = 0; i < SSB_DAYS; i++) {
        struct ssb_day day = ssb_day_of(i);
        ssb->date_keys[i] = (day.year * 100 + day.month) * 100 + day.day;
    }
    wf_status status = tpch_lines_init(&ssb->lines, 1500000 * millionths / 1000000, request, err);
    if (status) {
        close_ssb(&ssb->generator);
        return status;
    }
    *out = &ssb->generator;
    return ERR_OK;
}

const struct gen_suite ssb_suite = {"ssb", 0, SSB_TABLES, tables, keys_of, open_ssb};

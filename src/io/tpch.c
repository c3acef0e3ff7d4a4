/* tpch.c: the eight tables of TPC-H: their columns, keys and sizes, and what rows are made from.
 *
 * Rows are those of the official dbgen, byte for byte: each column's stream of random numbers, the
 * share of it a row has, the order of draws and the vocabulary are its. What it prints as text is
 * here made straight into columns, and any run of rows on its own. The scale factor may be any
 * decimal; sizes are rounded down.
 *
 * Text of few values goes in as dictionary codes. Of the columns, `unread` marks those that none of
 * the 22 queries reads: some comments, clerks, retail prices. */
#include "io/tpch_int.h"

#include <stdio.h>

/* --- words ------------------------------------------------------------------------------------ */

static GEN_WORDS(status_word, "F", "O", "P") GEN_WORDS(
    tpch_priority_word, "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
    "5-LOW") static GEN_WORDS(flag_word, "R", "A",
                              "N") static GEN_WORDS(line_status_word, "F",
                                                    "O") static GEN_WORDS(instruction_word,
                                                                          "DELIVER IN PERSON",
                                                                          "COLLECT COD",
                                                                          "TAKE BACK RETURN",
                                                                          "NONE")
    GEN_WORDS(tpch_mode_word, "REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP")
        GEN_WORDS(tpch_segment_word, "AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD",
                  "MACHINERY")
            GEN_WORDS(tpch_region_word, "AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
                GEN_WORDS(tpch_nation_word, "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT",
                          "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ",
                          "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA",
                          "ROMANIA", "SAUDI ARABIA", "VIETNAM", "RUSSIA", "UNITED KINGDOM",
                          "UNITED STATES")

                    static const char *maker_word(i32 i, char scratch[64]) {
    snprintf(scratch, 64, "Manufacturer#%d", i + 1);
    return i < 5 ? scratch : NULL;
}

static const char *brand_word(i32 i, char scratch[64]) {
    snprintf(scratch, 64, "Brand#%d%d", i / 5 + 1, i % 5 + 1);
    return i < 25 ? scratch : NULL;
}

const char *tpch_type_word(i32 i, char scratch[64]) {
    static const char *const first[] = {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"};
    static const char *const second[] = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"};
    static const char *const third[] = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};
    if (i >= 150) {
        return NULL;
    }
    snprintf(scratch, 64, "%s %s %s", first[i / 25], second[i / 5 % 5], third[i % 5]);
    return scratch;
}

const char *tpch_container_word(i32 i, char scratch[64]) {
    static const char *const first[] = {"SM", "LG", "MED", "JUMBO", "WRAP"};
    static const char *const second[] = {"CASE", "BOX", "BAG", "JAR", "PACK", "PKG", "CAN", "DRUM"};
    if (i >= 40) {
        return NULL;
    }
    snprintf(scratch, 64, "%s %s", first[i / 8], second[i % 8]);
    return scratch;
}

/* --- tables ----------------------------------------------------------------------------------- */

#define NUMBER(name, type) \
    { name, type, NULL, 0, 0, 0 }
#define WORD(name, word) \
    { name, "text", word, 0, 0, 0 }
#define TEXT(name, bytes) \
    { name, "text", NULL, bytes, 0, 0 }
#define COMMENT(name, bytes) \
    { name, "text", NULL, bytes, 0, 1 }
#define UNREAD(name, bytes) \
    { name, "text", NULL, bytes, 1, 1 }
#define KEY "integer"
#define ORDER_KEY "bigint" /* keys of orders are sparse and pass 2^31 at scale factor 358 */
#define MONEY "decimal(15,2)"

static const struct gen_column region_cols[] = {
    NUMBER("r_regionkey", KEY), WORD("r_name", tpch_region_word), UNREAD("r_comment", 0)};
static const struct gen_column nation_cols[] = {NUMBER("n_nationkey", KEY),
                                                WORD("n_name", tpch_nation_word),
                                                NUMBER("n_regionkey", KEY), UNREAD("n_comment", 0)};
static const struct gen_column supplier_cols[] = {
    NUMBER("s_suppkey", KEY),   TEXT("s_name", 18),  TEXT("s_address", 40),
    NUMBER("s_nationkey", KEY), TEXT("s_phone", 15), NUMBER("s_acctbal", MONEY),
    COMMENT("s_comment", 100)};
static const struct gen_column customer_cols[] = {NUMBER("c_custkey", KEY),
                                                  TEXT("c_name", 18),
                                                  TEXT("c_address", 40),
                                                  NUMBER("c_nationkey", KEY),
                                                  TEXT("c_phone", 15),
                                                  NUMBER("c_acctbal", MONEY),
                                                  WORD("c_mktsegment", tpch_segment_word),
                                                  COMMENT("c_comment", TPCH_CUSTOMER_COMMENT)};
static const struct gen_column part_cols[] = {NUMBER("p_partkey", KEY),
                                              TEXT("p_name", TPCH_NAME_BYTES),
                                              WORD("p_mfgr", maker_word),
                                              WORD("p_brand", brand_word),
                                              WORD("p_type", tpch_type_word),
                                              NUMBER("p_size", "integer"),
                                              WORD("p_container", tpch_container_word),
                                              {"p_retailprice", MONEY, NULL, 0, 1, 0},
                                              UNREAD("p_comment", TPCH_PART_COMMENT)};
static const struct gen_column partsupp_cols[] = {
    NUMBER("ps_partkey", KEY), NUMBER("ps_suppkey", KEY), NUMBER("ps_availqty", "integer"),
    NUMBER("ps_supplycost", MONEY), UNREAD("ps_comment", TPCH_PARTSUPP_COMMENT)};
static const struct gen_column orders_cols[] = {
    NUMBER("o_orderkey", ORDER_KEY),         NUMBER("o_custkey", KEY),
    WORD("o_orderstatus", status_word),      NUMBER("o_totalprice", MONEY),
    NUMBER("o_orderdate", "date"),           WORD("o_orderpriority", tpch_priority_word),
    {"o_clerk", "text", NULL, 15, 1, 0},     NUMBER("o_shippriority", "integer"),
    COMMENT("o_comment", TPCH_ORDER_COMMENT)};
static const struct gen_column lineitem_cols[] = {
    NUMBER("l_orderkey", ORDER_KEY),    NUMBER("l_partkey", KEY),
    NUMBER("l_suppkey", KEY),           NUMBER("l_linenumber", "integer"),
    NUMBER("l_quantity", MONEY),        NUMBER("l_extendedprice", MONEY),
    NUMBER("l_discount", MONEY),        NUMBER("l_tax", MONEY),
    WORD("l_returnflag", flag_word),    WORD("l_linestatus", line_status_word),
    NUMBER("l_shipdate", "date"),       NUMBER("l_commitdate", "date"),
    NUMBER("l_receiptdate", "date"),    WORD("l_shipinstruct", instruction_word),
    WORD("l_shipmode", tpch_mode_word), UNREAD("l_comment", TPCH_LINE_COMMENT)};

static const struct gen_key lineitem_keys[] = {{"l_orderkey, l_linenumber", NULL},
                                               {"l_orderkey", "orders"},
                                               {"l_partkey, l_suppkey", "partsupp"},
                                               {NULL, NULL}};
static const struct gen_key orders_keys[] = {
    {"o_orderkey", NULL}, {"o_custkey", "customer"}, {NULL, NULL}};
static const struct gen_key partsupp_keys[] = {{"ps_partkey, ps_suppkey", NULL},
                                               {"ps_partkey", "part"},
                                               {"ps_suppkey", "supplier"},
                                               {NULL, NULL}};
static const struct gen_key part_keys[] = {{"p_partkey", NULL}, {NULL, NULL}};
static const struct gen_key customer_keys[] = {
    {"c_custkey", NULL}, {"c_nationkey", "nation"}, {NULL, NULL}};
static const struct gen_key supplier_keys[] = {
    {"s_suppkey", NULL}, {"s_nationkey", "nation"}, {NULL, NULL}};
static const struct gen_key nation_keys[] = {
    {"n_nationkey", NULL}, {"n_regionkey", "region"}, {NULL, NULL}};
static const struct gen_key region_keys[] = {{"r_regionkey", NULL}, {NULL, NULL}};

#define TABLE(name) \
    { #name, COUNT_OF(name##_cols), name##_cols, name##_keys }
static const struct gen_table tables[TPCH_TABLES] = {
    [TPCH_LINEITEM] = TABLE(lineitem), [TPCH_ORDERS] = TABLE(orders),
    [TPCH_PARTSUPP] = TABLE(partsupp), [TPCH_PART] = TABLE(part),
    [TPCH_CUSTOMER] = TABLE(customer), [TPCH_SUPPLIER] = TABLE(supplier),
    [TPCH_NATION] = TABLE(nation),     [TPCH_REGION] = TABLE(region),
};

/* With few suppliers, the four of a part are not always four: steps of a quarter of them, plus one
 * for every so many parts before it, may come back to where they began. */
static bool partsupp_is_unique(i64 suppliers) {
    i64 parts = suppliers * 20;
    for (i64 more = 0; more <= (parts - 1) / suppliers; more++) {
        for (i64 i = 1; i < TPCH_SUPPLIERS_PER_PART; i++) {
            if (i * (suppliers / TPCH_SUPPLIERS_PER_PART + more) % suppliers == 0) {
                return false;
            }
        }
    }
    return true;
}

static const struct gen_key *keys_of(i32 table, i64 millionths) {
    static const struct gen_key loose_lineitem_keys[] = {{"l_orderkey, l_linenumber", NULL},
                                                         {"l_orderkey", "orders"},
                                                         {"l_partkey", "part"},
                                                         {"l_suppkey", "supplier"},
                                                         {NULL, NULL}};
    bool unique = partsupp_is_unique(10000 * millionths / 1000000);
    if (!unique && table == TPCH_PARTSUPP) {
        return &partsupp_keys[1];
    }
    return !unique && table == TPCH_LINEITEM ? loose_lineitem_keys : tables[table].keys;
}

static i64 rows_of(const struct generator *gen, i32 table) {
    const struct tpch *tpch = (const struct tpch *)(const void *)gen;
    switch ((enum tpch_table)table) {
    case TPCH_LINEITEM:
        return tpch->lines.count;
    case TPCH_ORDERS:
        return tpch->lines.orders;
    case TPCH_PARTSUPP:
        return (i64)tpch->parts * TPCH_SUPPLIERS_PER_PART;
    case TPCH_PART:
        return tpch->parts;
    case TPCH_CUSTOMER:
        return tpch->customers;
    case TPCH_SUPPLIER:
        return tpch->suppliers;
    case TPCH_NATION:
        return TPCH_NATIONS;
    default:
        return 5;
    }
}

static void fill(const struct generator *gen, i32 table, const struct gen_chunk *chunk) {
    static void (*const fills[TPCH_TABLES])(const struct tpch *, const struct gen_chunk *) = {
        [TPCH_LINEITEM] = tpch_fill_lineitem, [TPCH_ORDERS] = tpch_fill_orders,
        [TPCH_PARTSUPP] = tpch_fill_partsupp, [TPCH_PART] = tpch_fill_part,
        [TPCH_CUSTOMER] = tpch_fill_customer, [TPCH_SUPPLIER] = tpch_fill_supplier,
        [TPCH_NATION] = tpch_fill_nation,     [TPCH_REGION] = tpch_fill_region,
    };
    fills[table]((const struct tpch *)(const void *)gen, chunk);
}

/* --- opening ---------------------------------------------------------------------------------- */

struct opening {
    struct tpch *tpch;
    struct load_progress *progress;
};

static void pool_task(void *arg, i64 i, i32 worker) {
    const struct opening *opening = arg;
    UNUSED(worker);
    if (!load_progress_over(opening->progress)) {
        tpch_pool_block(opening->tpch->pool, i, opening->tpch->pool_blocks);
    }
}

static FALLIBLE make_pool(struct tpch *tpch, const struct gen_request *request, struct error *err) {
    struct opening opening = {tpch, request->progress};
    tpch->pool = mem_alloc(tpch->mem, tpch_pool_bytes(tpch->pool_blocks));
    if (!tpch->pool) {
        return memory_refused(tpch->mem, err, tpch_pool_bytes(tpch->pool_blocks));
    }
    generate_run(request->pool, tpch->pool_blocks, pool_task, &opening);
    return load_progress_check(request->progress, err);
}

static void rest_tpch(struct generator *gen) {
    struct tpch *tpch = (struct tpch *)(void *)gen;
    mem_free(tpch->mem, tpch->pool, tpch_pool_bytes(tpch->pool_blocks));
    tpch->pool = NULL;
}

static void close_tpch(struct generator *gen) {
    struct tpch *tpch = (struct tpch *)(void *)gen;
    rest_tpch(gen);
    tpch_lines_fini(&tpch->lines, tpch->mem);
    mem_free(tpch->mem, tpch, (i64)sizeof *tpch);
}

static wf_status open_tpch(struct generator **out, const struct gen_request *request,
                           struct error *err) {
    i64 millionths = request->millionths;
    bool duckdb = request->text == TPCH_TEXT_DUCKDB;
    CHECK(millionths >= GEN_SCALE_MIN && millionths <= GEN_SCALE_MAX);
    struct tpch *tpch = mem_alloc(request->mem, (i64)sizeof *tpch);
    if (!tpch) {
        return memory_refused(request->mem, err, (i64)sizeof *tpch);
    }
    *tpch = (struct tpch){.generator = {TPCH_TABLES, tables, rows_of, fill, rest_tpch, close_tpch, false},
                          .suppliers = (i32)(10000 * millionths / 1000000),
                          .customers = (i32)(150000 * millionths / 1000000),
                          .parts = (i32)(200000 * millionths / 1000000),
                          .clerks = (i32)MAX_OF(1000 * millionths / 1000000, 1000),
                          .pool_blocks = duckdb ? 10 : TPCH_POOL_BLOCKS,
                          .letter_sign = duckdb ? 1 : -1,
                          .mem = request->mem};
    wf_status status = tpch_lines_init(&tpch->lines, 1500000 * millionths / 1000000, request, err);
    if (!status && !request->no_pool) {
        status = make_pool(tpch, request, err);
    }
    if (status) {
        close_tpch(&tpch->generator);
        return status;
    }
    *out = &tpch->generator;
    return ERR_OK;
}

const struct gen_suite tpch_suite = {"tpch", 1, TPCH_TABLES, tables, keys_of, open_tpch};

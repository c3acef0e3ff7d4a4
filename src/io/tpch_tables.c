/* tpch_tables.c: the rows of part, partsupp, supplier, customer, nation and region.
 *
 * Every stream has a fixed share of draws a row (see tpch_rand.h), so each function here starts at
 * the chunk's first row and goes on from there. Names, addresses and phone numbers are written into
 * the chunk's text; comments are views of the pool. */
#include "io/tpch_int.h"
#include "io/tpch_words.h"

str tpch_put_label(char *out, const char *label, i32 number) {
    i32 len = (i32)strlen(label);
    memcpy(out, label, (size_t)len);
    for (i32 i = len + 8; i >= len; i--, number /= 10) {
        out[i] = (char)('0' + number % 10);
    }
    return str_from((struct sv){out, len + 9});
}

str tpch_put_address(char *out, i32 least, i32 most, i32 letter_sign, u32 seed) {
    static const char letters[] =
        "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
    i32 len = least + rand_draw(&seed, most - least + 1);
    i64 bits = 0;
    for (i32 i = 0; i < len; i++, bits >>= 6) {
        if (i % 5 == 0) {
            seed = rand_mul(seed, TPCH_MULTIPLIER);
            bits = (i64)((f64)seed / (f64)TPCH_MODULUS * 2147483648.0) * letter_sign;
        }
        out[i] = letters[bits & 63];
    }
    return str_from((struct sv){out, len});
}

static void put_digits(char *out, i32 count, i32 number) {
    for (i32 i = count - 1; i >= 0; i--, number /= 10) {
        out[i] = (char)('0' + number % 10);
    }
}

str tpch_put_phone(char *out, i32 nation, u32 seed) {
    memcpy(out, "00-000-000-0000", 15);
    put_digits(out, 2, 10 + nation);
    put_digits(out + 3, 3, 100 + rand_draw(&seed, 900));
    put_digits(out + 7, 3, 100 + rand_draw(&seed, 900));
    put_digits(out + 11, 4, 1000 + rand_draw(&seed, 9000));
    return str_from((struct sv){out, 15});
}

str tpch_put_colors(char *out, i32 count, u32 seed) {
    u8 order[TPCH_COLORS];
    char *end = out;
    for (i32 i = 0; i < TPCH_COLORS; i++) {
        order[i] = (u8)i;
    }
    for (i32 i = 0; i < count; i++) {
        i32 from = i + rand_draw(&seed, TPCH_COLORS - i);
        u8 color = order[from];
        order[from] = order[i];
        order[i] = color;
        size_t len = strlen(tpch_colors[color]);
        memcpy(end, tpch_colors[color], len);
        end += len;
        *end++ = ' ';
    }
    return str_from((struct sv){out, end - 1 - out});
}

_Static_assert(COUNT_OF(tpch_colors) == TPCH_COLORS, "92 colours");

const char *tpch_color_word(i32 i, char scratch[64]) {
    UNUSED(scratch);
    return i < TPCH_COLORS ? tpch_colors[i] : NULL;
}

/* 10 to 40 letters. */
static str put_address(const struct tpch *tpch, char *out, u32 seed) {
    return tpch_put_address(out, 10, 40, tpch->letter_sign, seed);
}

enum {
    P_PARTKEY,
    P_NAME,
    P_MFGR,
    P_BRAND,
    P_TYPE,
    P_SIZE,
    P_CONTAINER,
    P_RETAILPRICE,
    P_COMMENT,
};

void tpch_fill_part(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    struct stream names = stream_at(709314158, TPCH_COLORS, first);
    struct stream makers = stream_at(1, 1, first);
    struct stream brands = stream_at(46831694, 1, first);
    struct stream types = stream_at(1841581359, 1, first);
    struct stream sizes = stream_at(1193163244, 1, first);
    struct stream containers = stream_at(727633698, 1, first);
    struct stream comments = stream_at(804159733, 2, first);
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 key = (i32)(first + i + 1);
        u32 maker = (u32)stream_draw(&makers, 5);
        GEN_PUT(cols[P_PARTKEY], i32, i, key);
        GEN_PUT(cols[P_NAME], str, i,
                tpch_put_colors(cols[P_NAME].text + i * TPCH_NAME_BYTES, 5, stream_row(&names)));
        GEN_PUT(cols[P_MFGR], u32, i, maker);
        GEN_PUT(cols[P_BRAND], u32, i, maker * 5 + (u32)stream_draw(&brands, 5));
        GEN_PUT(cols[P_TYPE], u32, i, (u32)stream_draw(&types, 150));
        GEN_PUT(cols[P_SIZE], i32, i, 1 + stream_draw(&sizes, 50));
        GEN_PUT(cols[P_CONTAINER], u32, i, (u32)stream_draw(&containers, 40));
        GEN_PUT(cols[P_RETAILPRICE], i64, i, tpch_retail_price(key));
        u32 seed = stream_row(&comments);
        GEN_PUT(cols[P_COMMENT], str, i, tpch_comment(tpch, &seed, 5, 22));
    }
    tpch_pull_comments(&cols[P_COMMENT], chunk->rows, TPCH_PART_COMMENT);
}

enum { PS_PARTKEY, PS_SUPPKEY, PS_AVAILQTY, PS_SUPPLYCOST, PS_COMMENT };

/* Four rows a part, in one stream: a row is a draw. */
void tpch_fill_partsupp(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    u32 quantity = rand_skip(1671059989, first);
    u32 cost = rand_skip(1051288424, first);
    u32 comment = rand_skip(1961692154, 2 * first);
    for (i64 i = 0; i < chunk->rows; i++) {
        i64 row = first + i;
        i32 part = (i32)(row / TPCH_SUPPLIERS_PER_PART) + 1;
        i32 place = (i32)(row % TPCH_SUPPLIERS_PER_PART);
        GEN_PUT(cols[PS_PARTKEY], i32, i, part);
        GEN_PUT(cols[PS_SUPPKEY], i32, i, tpch_supplier_of(tpch, part, place));
        GEN_PUT(cols[PS_AVAILQTY], i32, i, 1 + rand_draw(&quantity, 9999));
        GEN_PUT(cols[PS_SUPPLYCOST], i64, i, 100 + rand_draw(&cost, 99901));
        GEN_PUT(cols[PS_COMMENT], str, i, tpch_comment(tpch, &comment, 49, 198));
    }
    tpch_pull_comments(&cols[PS_COMMENT], chunk->rows, TPCH_PARTSUPP_COMMENT);
}

enum { S_SUPPKEY, S_NAME, S_ADDRESS, S_NATIONKEY, S_PHONE, S_ACCTBAL, S_COMMENT };

struct note_streams { /* of what the Better Business Bureau has to say */
    struct stream chance, kind, gap, place;
};

/* Some comments, ten in ten thousand, say "Customer … Complaints" or "Customer … Recommends". */
static str add_note(str comment, char *out, struct note_streams *notes) {
    enum { NOTE_BYTES = 19, CUSTOMER_BYTES = 9 };
    u32 gap_seed = stream_row(&notes->gap), place_seed = stream_row(&notes->place);
    bool complaint = stream_draw(&notes->kind, 101) < 50;
    if (stream_draw(&notes->chance, 10000) >= 10) {
        return comment;
    }
    struct sv text = sv_of(comment);
    i32 gap = rand_draw(&gap_seed, (i32)text.len - NOTE_BYTES + 1);
    i32 place = rand_draw(&place_seed, (i32)text.len - NOTE_BYTES - gap + 1);
    memcpy(out, text.ptr, (size_t)text.len);
    memcpy(out + place, "Customer ", CUSTOMER_BYTES);
    memcpy(out + place + CUSTOMER_BYTES + gap, complaint ? "Complaints" : "Recommends", 10);
    return str_from((struct sv){out, text.len});
}

void tpch_fill_supplier(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    struct stream addresses = stream_at(706178559, 9, first);
    struct stream nations = stream_at(110356601, 1, first);
    struct stream phones = stream_at(884434366, 3, first);
    struct stream balances = stream_at(962338209, 1, first);
    struct stream comments = stream_at(1341315363, 2, first);
    struct note_streams notes = {stream_at(202794285, 1, first), stream_at(753643799, 1, first),
                                 stream_at(263032577, 1, first), stream_at(715851524, 1, first)};
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 key = (i32)(first + i + 1), nation = stream_draw(&nations, 25);
        GEN_PUT(cols[S_SUPPKEY], i32, i, key);
        GEN_PUT(cols[S_NAME], str, i, tpch_put_label(cols[S_NAME].text + i * 18, "Supplier#", key));
        GEN_PUT(cols[S_ADDRESS], str, i,
                put_address(tpch, cols[S_ADDRESS].text + i * 40, stream_row(&addresses)));
        GEN_PUT(cols[S_NATIONKEY], i32, i, nation);
        GEN_PUT(cols[S_PHONE], str, i,
                tpch_put_phone(cols[S_PHONE].text + i * 15, nation, stream_row(&phones)));
        GEN_PUT(cols[S_ACCTBAL], i64, i, -99999 + stream_draw(&balances, 1099999));
        u32 seed = stream_row(&comments);
        GEN_PUT(
            cols[S_COMMENT], str, i,
            add_note(tpch_comment(tpch, &seed, 25, 100), cols[S_COMMENT].text + i * 100, &notes));
    }
}

enum {
    C_CUSTKEY,
    C_NAME,
    C_ADDRESS,
    C_NATIONKEY,
    C_PHONE,
    C_ACCTBAL,
    C_MKTSEGMENT,
    C_COMMENT,
};

void tpch_fill_customer(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    i64 first = chunk->first_row;
    struct stream addresses = stream_at(881155353, 9, first);
    struct stream nations = stream_at(1489529863, 1, first);
    struct stream phones = stream_at(1521138112, 3, first);
    struct stream balances = stream_at(298370230, 1, first);
    struct stream segments = stream_at(1140279430, 1, first);
    struct stream comments = stream_at(1335826707, 2, first);
    for (i64 i = 0; i < chunk->rows; i++) {
        i32 key = (i32)(first + i + 1), nation = stream_draw(&nations, 25);
        GEN_PUT(cols[C_CUSTKEY], i32, i, key);
        GEN_PUT(cols[C_NAME], str, i, tpch_put_label(cols[C_NAME].text + i * 18, "Customer#", key));
        GEN_PUT(cols[C_ADDRESS], str, i,
                put_address(tpch, cols[C_ADDRESS].text + i * 40, stream_row(&addresses)));
        GEN_PUT(cols[C_NATIONKEY], i32, i, nation);
        GEN_PUT(cols[C_PHONE], str, i,
                tpch_put_phone(cols[C_PHONE].text + i * 15, nation, stream_row(&phones)));
        GEN_PUT(cols[C_ACCTBAL], i64, i, -99999 + stream_draw(&balances, 1099999));
        GEN_PUT(cols[C_MKTSEGMENT], u32, i, (u32)stream_draw(&segments, 5));
        u32 seed = stream_row(&comments);
        GEN_PUT(cols[C_COMMENT], str, i, tpch_comment(tpch, &seed, 29, 116));
    }
    tpch_pull_comments(&cols[C_COMMENT], chunk->rows, TPCH_CUSTOMER_COMMENT);
}

const u8 tpch_nation_regions[TPCH_NATIONS] = {0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2,
                                              4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1};

void tpch_fill_nation(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    struct stream comments = stream_at(606179079, 2, chunk->first_row);
    for (i64 i = 0; i < chunk->rows; i++) {
        i64 row = chunk->first_row + i;
        u32 seed = stream_row(&comments);
        GEN_PUT(cols[0], i32, i, (i32)row);
        GEN_PUT(cols[1], u32, i, (u32)row);
        GEN_PUT(cols[2], i32, i, tpch_nation_regions[row]);
        GEN_PUT(cols[3], str, i, tpch_comment(tpch, &seed, 28, 115));
    }
}

void tpch_fill_region(const struct tpch *tpch, const struct gen_chunk *chunk) {
    const struct gen_target *cols = chunk->cols;
    struct stream comments = stream_at(1500869201, 2, chunk->first_row);
    for (i64 i = 0; i < chunk->rows; i++) {
        i64 row = chunk->first_row + i;
        u32 seed = stream_row(&comments);
        GEN_PUT(cols[0], i32, i, (i32)row);
        GEN_PUT(cols[1], u32, i, (u32)row);
        GEN_PUT(cols[2], str, i, tpch_comment(tpch, &seed, 28, 115));
    }
}

/* ssb_int.h: what the files of the Star Schema Benchmark's generator share. */
#ifndef WF_IO_SSB_INT_H
#define WF_IO_SSB_INT_H

#include "io/tpch_int.h"

enum {
    SSB_DAYS = 2556,     /* of the table of dates: from 1992-01-01 to 1998-12-30 */
    SSB_CITIES = 10,     /* of a nation */
    SSB_BRANDS = 40,     /* of a category */
    SSB_NAME_BYTES = 24, /* of a part: two of the longest colours and blanks */
    SSB_ADDRESS_BYTES = 24,
    SSB_DATE_BYTES = 18, /* "September 30, 1998" */
};

enum ssb_table { SSB_LINEORDER, SSB_PART, SSB_CUSTOMER, SSB_SUPPLIER, SSB_DATE, SSB_TABLES };

struct ssb {
    struct generator generator; /* first: a pointer to it is one to this */
    i32 suppliers, customers, parts;
    struct tpch_lines lines;
    i32 date_keys[SSB_DAYS]; /* yyyymmdd */
    struct memory *mem;
};

/* A day of the calendar. */
struct ssb_day {
    i32 year, month, day; /* from 1 */
    i32 in_year;          /* from 1 */
    i32 in_week;          /* 1 = Sunday */
    b8 ends_month;
};
struct ssb_day ssb_day_of(i32 day); /* from 0 = 1992-01-01 */

enum { SSB_WINTER, SSB_SPRING, SSB_SUMMER, SSB_FALL, SSB_CHRISTMAS };

const char *ssb_month_word(i32 i, char scratch[64]); /* "January" */

/* ssb_rows.c */
void ssb_fill_lineorder(const struct ssb *ssb, const struct gen_chunk *chunk);
void ssb_fill_part(const struct ssb *ssb, const struct gen_chunk *chunk);
void ssb_fill_customer(const struct ssb *ssb, const struct gen_chunk *chunk);
void ssb_fill_supplier(const struct ssb *ssb, const struct gen_chunk *chunk);
void ssb_fill_date(const struct ssb *ssb, const struct gen_chunk *chunk);

#endif

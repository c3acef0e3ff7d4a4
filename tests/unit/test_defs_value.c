/* test_defs_value.c: text to values and back, case mapping, UTF-8. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "defs/value.h"
#include "defs/host_words.h"
#include "defs/fn_date.h"
#include "defs/types.h"
#include "host/chars.h"

static u64 seed = 1234567890123456789ULL;

static u64 next(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* The text with nothing behind it: the sanitizers see who reads on. Valid until the next call. */
static struct sv exactly(const char *text) {
    static char *copy;
    free(copy);
    size_t len = strlen(text);
    copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return (struct sv){copy, (i64)len};
}

static void check_int(const char *text, u8 fault, i64 want) {
    i64 got = 77;
    u8 f = value_parse_int(exactly(text), &got);
    if (f != fault || got != (fault ? 77 : want)) {
        fail_msg("'%s' gave %d, %lld", text, f, got);
    }
}

static void test_int(void **state) {
    UNUSED(state);
    check_int("0", 0, 0);
    check_int("-0", 0, 0);
    check_int("+5", 0, 5);
    check_int("  42 \n", 0, 42);
    check_int("12345678", 0, 12345678);
    check_int("-1234567890123456", 0, -1234567890123456);
    check_int("9223372036854775807", 0, I64_MAX);
    check_int("-9223372036854775808", 0, I64_MIN);
    check_int("9223372036854775808", FAULT_BIGINT, 0);
    check_int("-9223372036854775809", FAULT_BIGINT, 0);
    check_int("99999999999999999999999", FAULT_BIGINT, 0);
    check_int("00000000000000000000000007", 0, 7);
    static const char *const bad[] = {
        "",          " ",        "-",        "+",    "--1",
        "1 2",       "1.5",      "1e3",      "0x10", "abc",
        "12345678x", "1234567/", "1234567:", "- 1",  "99999999999999999999x",
        ":",         "1:",       "/1"};
    for (i64 i = 0; i < COUNT_OF(bad); i++) {
        check_int(bad[i], FAULT_TEXT_INT, 0);
    }
    for (i32 n = 0; n < 100000; n++) {
        i64 x = (i64)(next() >> next() % 64) * (next() & 1 ? 1 : -1);
        char buf[64], want[64];
        i32 len = value_format_i64(x, buf);
        assert_int_equal(len, snprintf(want, sizeof want, "%lld", x));
        assert_memory_equal(buf, want, (size_t)len);
        check_int(want, 0, x);
    }
}

static void check_dec(const char *text, i32 scale, u8 fault, const char *want) {
    i128 got = 0;
    char buf[64];
    u8 f = value_parse_dec(exactly(text), scale, &got);
    i32 len = value_format_dec(got, scale, buf);
    if (f != fault || (!fault && !sv_eq((struct sv){buf, len}, sv_from(want)))) {
        fail_msg("'%s' at scale %d gave %d, %.*s", text, scale, f, len, buf);
    }
}

static void test_dec(void **state) {
    UNUSED(state);
    check_dec("0", 2, 0, "0.00");
    check_dec("1.5", 2, 0, "1.50");
    check_dec("-1.5", 2, 0, "-1.50");
    check_dec("-0.005", 2, 0, "-0.01");
    check_dec("0.004999", 2, 0, "0.00");
    check_dec("1.005", 2, 0, "1.01");
    check_dec("123.", 1, 0, "123.0");
    check_dec(".5", 0, 0, "1");
    check_dec("-.4", 0, 0, "0");
    check_dec("1e3", 0, 0, "1000");
    check_dec("1.5E-2", 3, 0, "0.015");
    check_dec(" +12.50 ", 2, 0, "12.50");
    check_dec("99999999999999999999999999999999999999", 0, 0,
              "99999999999999999999999999999999999999");
    check_dec("99999999999999999999999999999999999999.4", 0, 0,
              "99999999999999999999999999999999999999");
    check_dec("99999999999999999999999999999999999999.5", 0, FAULT_DECIMAL, "");
    check_dec("1e38", 0, FAULT_DECIMAL, "");
    check_dec("1e37", 1, FAULT_DECIMAL, "");
    check_dec("-1e37", 0, 0, "-10000000000000000000000000000000000000");
    check_dec("0.00000000000000000000000000000000000001", 38, 0,
              "0.00000000000000000000000000000000000001");
    check_dec("1e-50", 38, 0, "0.00000000000000000000000000000000000000");
    check_dec("1e999999999999", 2, FAULT_DECIMAL, "");
    check_dec("0e999999999999", 2, 0, "0.00");
    check_dec("1e-999999999999", 2, 0, "0.00");
    check_dec("000000000000000000000000000000000000000000000000001.25", 2, 0, "1.25");
    check_dec("123456789012345678", 10, 0, "123456789012345678.0000000000");
    check_dec("NaN", 2, FAULT_DECIMAL, "");
    check_dec("-Infinity", 2, FAULT_DECIMAL, "");
    static const char *const bad[] = {
        "",     " ",   ".",   "-",   "-.",  "1..2", "1.2.3", "e5", "1e",  "1e+",
        "1e5x", "abc", "1,5", "1 2", "--1", "1.5.", "1:",    "/1", "1e:", "12345678901234567x"};
    for (i64 i = 0; i < COUNT_OF(bad); i++) {
        check_dec(bad[i], 2, FAULT_TEXT_NUM, "");
    }
    for (i32 n = 0; n < 100000; n++) {
        i128 x = (i128)((u128)next() << 64 | next()) >> (1 + next() % 127);
        i32 scale = (i32)(next() % 39);
        if (x >= pow10_i128(38) || x <= -pow10_i128(38)) {
            continue;
        }
        char buf[64];
        i32 len = value_format_dec(x, scale, buf);
        i128 back = 0;
        assert_int_equal(value_parse_dec((struct sv){buf, len}, scale, &back), 0);
        assert_true(back == x);
    }
}

static void check_f64(const char *text, u8 fault, f64 want) {
    f64 got = 77;
    u8 f = value_parse_f64(exactly(text), &got);
    bool same = fault ? got == 77 : got == want || (isnan(got) && isnan(want));
    if (f != fault || !same) {
        fail_msg("'%s' gave %d, %.17g", text, f, got);
    }
}

static void test_parse_float(void **state) {
    UNUSED(state);
    check_f64("0", 0, 0);
    check_f64("1.5", 0, 1.5);
    check_f64(" -2.5e3 ", 0, -2500);
    check_f64("1e22", 0, 1e22);
    check_f64("1e23", 0, 1e23);
    check_f64("123456789012345678901234567890", 0, 123456789012345678901234567890.0);
    check_f64("5e-324", 0, 5e-324);
    check_f64("2.4703282292062327e-324", FAULT_FLOAT_UNDERFLOW, 0);
    check_f64("1e-400", FAULT_FLOAT_UNDERFLOW, 0);
    check_f64("1e309", FAULT_FLOAT_OVERFLOW, 0);
    check_f64("-1e99999999999999999999", FAULT_FLOAT_OVERFLOW, 0);
    check_f64("0e99999999999999999999", 0, 0);
    check_f64("NaN", 0, (f64)NAN);
    check_f64("inf", 0, (f64)INFINITY);
    check_f64("-Infinity", 0, -(f64)INFINITY);
    check_f64("+INF", 0, (f64)INFINITY);
    check_f64(".5", 0, 0.5);
    check_f64("5.", 0, 5);
    static const char *const bad[] = {"",      " ",   ".",   "1x", "1e",  "infin", "nano",
                                      "0x1p3", "1 2", "--1", "1:", "1.:", "1e/"};
    for (i64 i = 0; i < COUNT_OF(bad); i++) {
        check_f64(bad[i], FAULT_TEXT_NUM, 0);
    }
    char tie[1100]; /* half way between 1 and its neighbour, then a digit far behind it */
    strcpy(tie, "1.00000000000000011102230246251565404236316680908203125");
    check_f64(tie, 0, 1.0);
    for (i32 i = 0; i < 900; i++) {
        strcat(tie, "0");
    }
    check_f64(tie, 0, 1.0);
    strcat(tie, "1");
    check_f64(tie, 0, 1.0000000000000002);
    f32 x = 0;
    assert_int_equal(value_parse_f32(SV("16777217"), &x), 0);
    assert_true(x == 16777216.0f);
    assert_int_equal(value_parse_f32(SV("16777217.0000000001"), &x), 0);
    assert_true(x == 16777218.0f);
    assert_int_equal(value_parse_f32(SV("3.5e38"), &x), FAULT_FLOAT_OVERFLOW);
    assert_int_equal(value_parse_f32(SV("1e-50"), &x), FAULT_FLOAT_UNDERFLOW);
    assert_int_equal(value_parse_f32(SV("1e-45"), &x), 0);
    assert_true(x == 1e-45f);
}

/* Random decimal texts: the library's answer is the yardstick. */
static void test_parse_float_random(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 100000; n++) {
        char text[64];
        u64 digits = next() >> next() % 64;
        i32 exponent = (i32)(next() % 60) - 30;
        snprintf(text, sizeof text, "%s%llu.%03llue%d", next() & 1 ? "-" : "", digits,
                 next() % 1000, exponent);
        f64 d = 0;
        f32 s = 0;
        assert_int_equal(value_parse_f64(sv_from(text), &d), 0);
        assert_true(d == strtod(text, NULL));
        u8 f = value_parse_f32(sv_from(text), &s);
        f32 want = strtof(text, NULL);
        if (isinf(want)) {
            assert_int_equal(f, FAULT_FLOAT_OVERFLOW);
        } else {
            assert_true(f == 0 && s == want);
        }
    }
}

static void check_format(f64 x, const char *want) {
    char buf[64];
    i32 len = value_format_f64(x, buf);
    if (!sv_eq((struct sv){buf, len}, sv_from(want))) {
        fail_msg("%.17g printed as %.*s, not %s", x, len, buf, want);
    }
}

static i32 digit_count(const char *s, i32 len) {
    i32 count = 0;
    i32 zeros = 0;
    for (i32 i = 0; i < len && s[i] != 'e'; i++) {
        if (s[i] >= '0' && s[i] <= '9' && (count || s[i] != '0')) {
            count++;
            zeros = s[i] == '0' ? zeros + 1 : 0;
        }
    }
    return count - zeros;
}

static void test_format_float(void **state) {
    UNUSED(state);
    check_format(0, "0");
    check_format(-0.0, "-0");
    check_format(0.1, "0.1");
    check_format(-1.5, "-1.5");
    check_format(100, "100");
    check_format(123456.75, "123456.75");
    check_format(0.0001, "0.0001");
    check_format(0.00001, "1e-05");
    check_format(1e20, "1e+20");
    check_format(1e14, "100000000000000");
    check_format(1e15, "1e+15");
    check_format(123456789012345678.0, "1.2345678901234568e+17");
    check_format(5e-324, "5e-324");
    check_format(1.7976931348623157e308, "1.7976931348623157e+308");
    check_format(2.2250738585072014e-308, "2.2250738585072014e-308");
    check_format(1e23, "9.999999999999999e+22"); /* 1e+23 lies on the edge of the interval */
    check_format(9007199254740991.0, "9.007199254740991e+15");
    check_format((f64)NAN, "NaN");
    check_format((f64)INFINITY, "Infinity");
    check_format(-(f64)INFINITY, "-Infinity");
    for (i32 n = 0; n < 100000; n++) {
        f64 x = bits_f64(n % 4 ? next() : (next() % 2046 + 1) << 52); /* powers of two as well */
        if (isnan(x) || isinf(x)) {
            continue;
        }
        char buf[65], shortest[64];
        i32 len = value_format_f64(x, buf);
        buf[len] = 0;
        assert_true(strtod(buf, NULL) == x);
        i32 digits = 1; /* the fewest digits of a correctly rounded text that reads back */
        while (snprintf(shortest, sizeof shortest, "%.*e", digits - 1, x),
               strtod(shortest, NULL) != x) {
            digits++;
        }
        /* The library reads a text half way to the next double as the even one; we never print such
         * a text. */
        assert_true(digit_count(buf, len) <= digits || !(f64_bits(x) & 1));
    }
}

static void test_format_real(void **state) {
    UNUSED(state);
    static const struct {
        f32 value;
        const char *text;
    } samples[] = {{0.1f, "0.1"},
                   {123456.0f, "123456"},
                   {1234567.0f, "1.234567e+06"},
                   {1e-4f, "0.0001"},
                   {1e-5f, "1e-05"},
                   {3.4028235e38f, "3.4028235e+38"},
                   {1e-45f, "1e-45"},
                   {16777216.0f, "1.6777216e+07"}};
    char buf[65], shortest[64];
    for (i64 i = 0; i < COUNT_OF(samples); i++) {
        i32 len = value_format_f32(samples[i].value, buf);
        buf[len] = 0;
        assert_string_equal(buf, samples[i].text);
    }
    for (i32 n = 0; n < 100000; n++) {
        f32 x = bits_f32(n % 4 ? (u32)next() : (u32)(next() % 254 + 1) << 23);
        if (isnan(x) || isinf(x) || x == 0) {
            continue;
        }
        i32 len = value_format_f32(x, buf);
        buf[len] = 0;
        assert_true(strtof(buf, NULL) == x);
        f32 back = 0;
        assert_int_equal(value_parse_f32((struct sv){buf, len}, &back), 0);
        assert_true(back == x);
        i32 digits = 1;
        while (snprintf(shortest, sizeof shortest, "%.*e", digits - 1, (f64)x),
               strtof(shortest, NULL) != x) {
            digits++;
        }
        assert_true(digit_count(buf, len) <= digits || !(f32_bits(x) & 1));
    }
}

static void test_bool(void **state) {
    UNUSED(state);
    static const char *const yes[] = {"t", "TRUE", "tr", " yes ", "y", "on", "1", "oN"};
    static const char *const no[] = {"f", "false", "n", "no", "off", "of", "0", "FALS"};
    static const char *const bad[] = {"", "o", "2", "tru e", "truex", "10", "yess", "-"};
    for (i64 i = 0; i < 8; i++) {
        b8 x = 7;
        assert_true(value_parse_bool(exactly(yes[i]), &x) == 0 && x == 1);
        assert_true(value_parse_bool(exactly(no[i]), &x) == 0 && x == 0);
        assert_int_equal(value_parse_bool(exactly(bad[i]), &x), FAULT_TEXT_BOOL);
    }
}

static void check_date(const char *text, u8 fault, const char *want) {
    i32 got = 0;
    char buf[65] = "";
    u8 f = value_parse_date(exactly(text), (struct when){0}, &got);
    i32 len = value_format_date(got, buf);
    buf[len] = 0;
    if (f != fault || (!fault && strcmp(buf, want))) {
        fail_msg("'%s' gave %d, %s", text, f, buf);
    }
}

static void test_date(void **state) {
    UNUSED(state);
    static const struct {
        const char *text, *want;
    } good[] = {{"1970-01-01", "1970-01-01"},
                {"1998-12-01", "1998-12-01"},
                {" 1999-1-8 ", "1999-01-08"},
                {"19990108", "1999-01-08"},
                {"990108", "1999-01-08"},
                {"1/8/1999", "1999-01-08"},
                {"1/18/99", "1999-01-18"},
                {"1/2/03", "2003-01-02"},
                {"January 8, 1999", "1999-01-08"},
                {"8 Jan 1999", "1999-01-08"},
                {"1999-Jan-08", "1999-01-08"},
                {"Jan-08-1999", "1999-01-08"},
                {"08-Jan-99", "1999-01-08"},
                {"1999/01/08", "1999-01-08"},
                {"1999.01.08", "1999-01-08"},
                {"0044-03-15 BC", "0044-03-15 BC"},
                {"4714-11-24 BC", "4714-11-24 BC"},
                {"2000-02-29", "2000-02-29"},
                {"5874897-12-31", "5874897-12-31"},
                {"1999-01-08 04:05:06", "1999-01-08"},
                {"1999-01-08T04:05:06.789", "1999-01-08"},
                {"1999-01-08 AD", "1999-01-08"}};
    for (i64 i = 0; i < COUNT_OF(good); i++) {
        check_date(good[i].text, 0, good[i].want);
    }
    static const char *const range[] = {
        "1999-02-29",    "1999-13-01",    "1999-00-10", "1999-01-00", "0000-01-01", "1900-02-29",
        "4714-11-23 BC", "5874898-01-01", "13/1/1999",  "1999-04-31", "2020-01-0:"};
    for (i64 i = 0; i < COUNT_OF(range); i++) {
        check_date(range[i], FAULT_DATE_RANGE, "");
    }
    static const char *const bad[] = {"",
                                      " ",
                                      "hello",
                                      "1999",
                                      "1999-01",
                                      "1999-01-",
                                      "1999-01-08x",
                                      "1999-Foo-08",
                                      "1999-01-08-09",
                                      "2020-0a-01",

                                      "Jan 1999",
                                      "1999-01-08 BC x"};
    for (i64 i = 0; i < COUNT_OF(bad); i++) {
        check_date(bad[i], FAULT_TEXT_DATE, "");
    }
    for (i32 n = 0; n < 200000; n++) {
        i32 date = n % 2 ? (i32)(next() % 2147483494) - 2440588 : (i32)(next() % 100000) - 50000;
        char buf[64];
        i32 len = value_format_date(date, buf);
        i32 back = 0;
        assert_int_equal(value_parse_date((struct sv){buf, len}, (struct when){0}, &back), 0);
        assert_int_equal(back, date);
    }
}

static void check_utf8(const char *bytes, i64 len, i64 bad) {
    i64 at = -1;
    assert_int_equal(utf8_valid(bytes, len, &at), bad < 0);
    assert_int_equal(at, bad);
}

static void test_utf8(void **state) {
    UNUSED(state);
    check_utf8("", 0, -1);
    check_utf8("plain ASCII text of some length", 31, -1);
    check_utf8("plain ASCII text with \xc3\xa9 and \xf0\x9f\x98\x80 more", 37, -1);
    check_utf8("abc\0def", 7, 3);
    check_utf8("01234567\0", 9, 8);
    check_utf8("0123456789\xff", 11, 10);
    check_utf8("\xc0\xaf", 2, 0);
    check_utf8("\xc3", 1, 0);
    check_utf8("\xe0\x9f\xbf", 3, 0);
    check_utf8("\xed\xa0\x80", 3, 0);
    check_utf8("\xf4\x90\x80\x80", 4, 0);
    check_utf8("\xf4\x8f\xbf\xbf", 4, -1);
    check_utf8("\xf5\x80\x80\x80", 4, 0);
    check_utf8("a\x80", 2, 1);
    check_utf8("\xe2\x82", 2, 0);
}

static void check_case(const char *text, const char *upper, const char *lower) {
    u8 buf[128];
    struct sv s = sv_from(text);
    i64 len = case_upper_bytes(s);
    case_upper_write(buf, s);
    assert_true(sv_eq((struct sv){(const char *)buf, len}, sv_from(upper)));
    len = case_lower_bytes(s);
    case_lower_write(buf, s);
    assert_true(sv_eq((struct sv){(const char *)buf, len}, sv_from(lower)));
}

static void test_case(void **state) {
    UNUSED(state);
    check_case("", "", "");
    check_case("Hello World, 123 @[`{", "HELLO WORLD, 123 @[`{", "hello world, 123 @[`{");
    check_case("\xc3\xa9T\xc3\x89", "\xc3\x89T\xc3\x89", "\xc3\xa9t\xc3\xa9");
    check_case("\xc3\x9f", "\xc3\x9f", "\xc3\x9f");                         /* sharp s stays */
    check_case("\xce\xa3\xcf\x83", "\xce\xa3\xce\xa3", "\xcf\x83\xcf\x83"); /* sigma */
    check_case("\xc4\xb1", "I", "\xc4\xb1");            /* dotless i gets shorter */
    check_case("\xc8\xba", "\xc8\xba", "\xe2\xb1\xa5"); /* gets longer */
    check_case("\xd0\x96\xd1\x8f", "\xd0\x96\xd0\xaf", "\xd0\xb6\xd1\x8f");
    check_case("\xf0\x90\x90\xa8", "\xf0\x90\x90\x80", "\xf0\x90\x90\xa8");
    check_case("a\xff"
               "b",
               "A\xff"
               "B",
               "a\xff"
               "b"); /* not UTF-8: copied */
    assert_int_equal(case_upper(0x1f80), 0x1f88);
    assert_int_equal(case_lower(0x130), 0x69);
    assert_int_equal(case_lower(0x212a), 0x6b);
    assert_int_equal(case_upper(0x101), 0x100);
    assert_int_equal(case_upper(0x100), 0x100);
    assert_int_equal(case_upper(0x10ffff), 0x10ffff);
    for (u32 c = 0; c < 0x110000; c++) { /* mapping twice changes nothing more */
        assert_int_equal(case_upper(case_upper(c)), case_upper(c));
        assert_int_equal(case_lower(case_lower(c)), case_lower(c));
    }
}

/* A text as a value of a type: what the type does not hold is refused. */
static void test_limits(void **state) {
    (void)state;
    static const struct {
        struct type type;
        const char *text;
        u8 fault;
    } samples[] = {
        {{.id = TYPE_SMALLINT}, "32767", FAULT_NONE},
        {{.id = TYPE_SMALLINT}, "32768", FAULT_SMALLINT},
        {{.id = TYPE_SMALLINT}, "-32768", FAULT_NONE},
        {{.id = TYPE_SMALLINT}, "-32769", FAULT_SMALLINT},
        {{.id = TYPE_INTEGER}, "2147483647", FAULT_NONE},
        {{.id = TYPE_INTEGER}, "2147483648", FAULT_INTEGER},
        {{.id = TYPE_INTEGER}, "-2147483649", FAULT_INTEGER},
        {{.id = TYPE_BIGINT}, "9223372036854775807", FAULT_NONE},
        {{.id = TYPE_BIGINT}, "9223372036854775808", FAULT_BIGINT},
        {{.id = TYPE_DECIMAL, .precision = 5, .scale = 2}, "999.99", FAULT_NONE},
        {{.id = TYPE_DECIMAL, .precision = 5, .scale = 2}, "-999.994", FAULT_NONE},
        {{.id = TYPE_DECIMAL, .precision = 5, .scale = 2}, "999.995", FAULT_DECIMAL},
        {{.id = TYPE_DECIMAL, .precision = 5, .scale = 2}, "-1000", FAULT_DECIMAL},
        {{.id = TYPE_DECIMAL, .precision = 20, .scale = 0}, "99999999999999999999", FAULT_NONE},
        {{.id = TYPE_DECIMAL, .precision = 20, .scale = 0}, "100000000000000000000",
         FAULT_DECIMAL},
        {{.id = TYPE_DECIMAL, .precision = 38, .scale = 0}, "1e38", FAULT_DECIMAL},
    };
    for (i64 i = 0; i < COUNT_OF(samples); i++) {
        i128 room = 0;
        u8 fault = value_parse(samples[i].type, sv_from(samples[i].text), (struct when){0}, &room);
        if (fault != samples[i].fault) {
            fail_msg("%s: fault %d", samples[i].text, (int)fault);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_int),          cmocka_unit_test(test_dec),
        cmocka_unit_test(test_parse_float),  cmocka_unit_test(test_parse_float_random),
        cmocka_unit_test(test_format_float), cmocka_unit_test(test_format_real),
        cmocka_unit_test(test_bool),         cmocka_unit_test(test_date),
        cmocka_unit_test(test_utf8),         cmocka_unit_test(test_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_csv_sniff.c: what is found out about a file, and the rows that gives: one table of small
 * files, and what becomes of values that come late. The expected answers are DuckDB's, but where a
 * comment says otherwise. */
#define _POSIX_C_SOURCE 200809L
#include "test_csv_fixture.h"

#include "store/scan.h"

/* Columns as `name type`, separated by commas, then rows after bars; NULL is `-`. */
static void dump(const struct csv_sniffed *found, struct table *table, char *out, i64 cap) {
    i64 n = 0;
    for (u32 i = 0; i < found->col_count; i++) {
        char type[32];
        n += snprintf(out + n, (size_t)(cap - n), "%s%s %s", i ? "," : "", found->cols[i].name,
                      type_print(found->cols[i].type, type));
    }
    struct table_version *version = table_snapshot(table);
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (i64 i = 0; i < version->tablet_rows[t]; i++) {
            for (u32 c = 0; c < table->col_count; c++) {
                assert_true(n < cap - 300);
                out[n++] = c ? ',' : '|';
                n += print_cell(table, version->tablets[t], c, i, out + n);
            }
        }
    }
    version_release(version);
    out[n] = 0;
}

/* --- the same rows from a scan, part by part ---------------------------------------------------
 */

enum { MOST_PARTS = 1 << 17 };
struct scanning {
    struct csv_file *file;
    struct table *table;
    struct scan *scan;
    char *texts[MOST_PARTS]; /* of each part, from malloc */
    i64 bad_number;
    struct error bad, failed;
    struct mutex lock;
};

static char *print_part(const struct table *table, const struct scan_part *part) {
    i64 n = 0, cap = 64;
    for (i64 i = 0; i < part->rows; i++) {
        for (u32 c = 0; c < table->col_count; c++) {
            bool text = type_kind(table->cols[c].type) == KIND_STR;
            cap += 128 + (text ? ((const str *)part->cols[c].data)[i].len : 0);
        }
    }
    char *out = malloc((size_t)cap);
    for (i64 i = 0; i < part->rows; i++) {
        for (u32 c = 0; c < table->col_count; c++) {
            struct type type = table->cols[c].type;
            const u8 *value = (const u8 *)part->cols[c].data + i * kind_bytes[type_kind(type)];
            out[n++] = c ? ',' : '|';
            if (part->cols[c].nulls[i]) {
                out[n++] = '-';
                static const u8 zero[16];
                i64 bytes = type_kind(type) == KIND_STR ? 8 : kind_bytes[type_kind(type)];
                assert_memory_equal(value, zero, (size_t)bytes);
            } else if (type_kind(type) == KIND_STR) {
                str s = *(const str *)(const void *)value;
                assert_int_equal(s.prefix, str_from(sv_of(s)).prefix);
                memcpy(out + n, sv_of(s).ptr, (size_t)s.len);
                n += s.len;
            } else {
                n += value_print(type, type_kind(type), value, out + n);
            }
        }
    }
    out[n] = 0;
    return out;
}

static void scan_task(void *arg, i64 i, i32 worker) {
    struct scanning *s = arg;
    struct scan_part part = {0};
    struct error own;
    UNUSED(i);
    error_reset(&own);
    while (!part.end && !part.bad) {
        wf_status status = s->table->provider->next(s->scan, worker, &part, &own);
        mutex_lock(&s->lock);
        if (status) {
            s->failed = own;
            part.end = 1;
        } else if (!part.end) {
            assert_true(part.number < MOST_PARTS && !s->texts[part.number]);
            s->texts[part.number] = print_part(s->table, &part);
        }
        if (part.bad && part.number < s->bad_number) {
            s->bad_number = part.number;
            s->bad = part.err;
        }
        mutex_unlock(&s->lock);
    }
}

static wf_status scan_all(struct scanning *s, i64 part_bytes) {
    static b8 cols[2000];
    memset(cols, 1, sizeof cols);
    struct scan_request request = {
        .cols = cols, .mem = &mem, .worker_count = 3, .part_bytes = part_bytes};
    TRY(s->table->provider->open(s->table->provider, &request, &s->scan, &err));
    pool_run(pool, 3, scan_task, s);
    s->table->provider->close(s->scan);
    if (s->failed.code || s->bad_number != I64_MAX) {
        err = s->failed.code ? s->failed : s->bad;
        return err.code;
    }
    return ERR_OK;
}

/* The rows, as dump prints them behind the columns. */
static wf_status scan_text(const struct csv_given *given, enum packing packing, i64 bytes,
                           char *out) {
    static struct scanning s;
    memset(&s, 0, sizeof s);
    s.bad_number = I64_MAX;
    mutex_init(&s.lock);
    *out = 0;
    TRY(csv_file_open(&mem, path, packing, given, NULL, &s.file, &err));
    const struct csv_sniffed *found = csv_file_sniffed(s.file);
    s.table = table_open(&mem, 1, "t", found->col_count, found->cols, 4, false);
    csv_file_attach(s.file, s.table);
    wf_status status = scan_all(&s, bytes < 4096 ? 7 : 4099);
    bool whole = true; /* a part that failed may have some behind it */
    for (i64 i = 0; i < MOST_PARTS; i++) {
        whole = whole && s.texts[i];
        out += whole ? sprintf(out, "%s", s.texts[i]) : 0;
        free(s.texts[i]);
    }
    mutex_fini(&s.lock);
    table_close(s.table);
    return status;
}

/* What a load said is what a scan says, of an archive, too. */
static void compare_scan(const struct csv_given *given, struct sv text, wf_status status,
                         const char *rows) {
    static char got[1 << 22];
    struct error loaded = err;
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        error_reset(&err);
        if (packing) {
            write_packed(text, packing);
        }
        wf_status scanned = scan_text(given, packing, text.len, got);
        assert_int_equal(scanned, status);
        if (status) {
            assert_string_equal(err.message, loaded.message);
            assert_string_equal(err.hint, loaded.hint);
        } else {
            assert_string_equal(got, rows);
        }
    }
    err = loaded;
}

/* As a file in FROM is read: loaded, and scanned. */
static wf_status read_text(struct sv text, const struct csv_given *given, char *out, i64 cap) {
    struct arena arena;
    struct csv_sniffed found = {0};
    struct input in;
    i64 rows = 0;
    write_file(text);
    arena_init(&arena, &mem);
    error_reset(&err);
    *out = 0;
    TRY(input_open(&in, path, PACKING_BY_NAME, false, &mem, NULL, &err));
    wf_status status = csv_sniff(&arena, &in, given, NULL, &found, &err);
    char *behind = out;
    if (!status) {
        struct table *table = table_open(&mem, 1, "t", found.col_count, found.cols, 4, false);
        dump(&found, table, out, cap); /* the columns, as there are no rows yet */
        behind = out + strlen(out);
        struct load_means means = {pool, &mem, NULL};
        status = csv_load_blocks(table, &in, &found.options, &means, 7, &rows, &err);
        if (!status) {
            dump(&found, table, out, cap);
        }
        table_close(table);
    }
    input_close(&in);
    arena_fini(&arena);
    compare_scan(given, text, status, behind);
    return status;
}

static void expect(struct sv text, const struct csv_given *given, const char *wanted) {
    static char got[1 << 16];
    struct csv_given none = {0};
    wf_status status = read_text(text, given ? given : &none, got, sizeof got);
    if (status || strcmp(got, wanted) != 0) {
        print_message("file: %.*s\n", (int)MIN_OF(text.len, 200), text.ptr);
    }
    if (status) {
        print_message("%s\n", err.message);
    }
    assert_int_equal(status, ERR_OK);
    assert_string_equal(got, wanted);
}

static void expect_error(struct sv text, const struct csv_given *given, wf_status code,
                         const char *message, const char *hint) {
    static char got[1 << 16];
    struct csv_given none = {0};
    assert_int_equal(read_text(text, given ? given : &none, got, sizeof got), code);
    if (!strstr(err.message, message) || !strstr(err.hint, hint)) {
        print_message("%s\n%s\n", err.message, err.hint);
    }
    assert_non_null(strstr(err.message, message));
    assert_non_null(strstr(err.hint, hint));
}

struct sample {
    const char *text, *wanted;
};
#define RUN(samples)                                                   \
    for (i64 i = 0; i < COUNT_OF(samples); i++) {                      \
        expect(sv_from((samples)[i].text), NULL, (samples)[i].wanted); \
    }

static void test_types(void **state) {
    (void)state;
    static const struct sample samples[] = {
        {"1,2024-01-31 12:34:56\n", "column0 integer,column1 timestamp|1,2024-01-31 12:34:56"},
        {"1,2024-01-31T12:34:56\n", "column0 integer,column1 timestamp|1,2024-01-31 12:34:56"},
        {"1,2024-01-31 12:34:56.123456\n",
         "column0 integer,column1 timestamp|1,2024-01-31 12:34:56.123456"},
        {"1,2024-01-31 12:34\n", "column0 integer,column1 timestamp|1,2024-01-31 12:34:00"},
        {"t\n2024-01-31T12:34:56Z\n", "t timestamp with time zone|2024-01-31 12:34:56+00"},
        {"t\n2024-01-31 12:34:56+02\n", "t timestamp with time zone|2024-01-31 10:34:56+00"},
        {"a\n2024-01-31 12:34:56 UTC+1\n", "a text|2024-01-31 12:34:56 UTC+1"},
        {"a\n2020-01-01\n2020-01-02 10:00:00\n", "a text|2020-01-01|2020-01-02 10:00:00"},
        {"a\n2020-01-01\n2020/1/2\n", "a date|2020-01-01|2020-01-02"},
        {"a\n2020-13-45\n", "a text|2020-13-45"},
        {"a\n2020-01-01\ninfinity\n", "a date|2020-01-01|infinity"},
        {"a\n12:34:56\n01:02:03.5\n", "a time|12:34:56|01:02:03.5"},
        {"a\n12:34\n25:00\n", "a text|12:34|25:00"},
        {"a\n01234\n00001\n", "a text|01234|00001"},
        {"a\n0\n-0\n10\n", "a integer|0|0|10"},
        {"a\n-01\n", "a text|-01"}, /* ours: DuckDB drops the zero */
        {"a\n00.5\n", "a text|00.5"},
        {"a\n+1\n", "a text|+1"},
        {"a\n0.5\n.5\n5.\n", "a double precision|0.5|0.5|5"},
        {"a\n1\n2.5\n", "a double precision|1|2.5"},
        {"a\n1e5\n", "a double precision|100000"},
        {"a\n1.5\ninf\n-infinity\nnan\n", "a double precision|1.5|Infinity|-Infinity|NaN"},
        {"a\n2147483648\n1\n", "a bigint|2147483648|1"},
        {"a\n9223372036854775808\n-1\n", "a decimal(38,0)|9223372036854775808|-1"},
        /* ours: wider than any number here */
        {"a\n123456789012345678901234567890123456789\n",
         "a text|123456789012345678901234567890123456789"},
        {"a\ntrue\nFALSE\n", "a boolean|true|false"},
        {"a\nt\nf\n", "a boolean|true|false"},
        {"a\nyes\nno\n", "a boolean|true|false"},
        {"a\non\noff\n", "a text|on|off"},
        {"a\n1\ntrue\n", "a text|1|true"},
        {"a\n0x1f\n", "a text|0x1f"}, /* ours: DuckDB reads it as a number */
        {"a\n1_000\n", "a text|1_000"},
        {"a,b\n\"1,234\",x\n", "a text,b text|1,234,x"},
        {"a\n31.12.2020\n", "a text|31.12.2020"}, /* ours: only year, month, day */
        {"a,b\n 1 , 2.5 \n", "a integer,b double precision|1,2.5"},
        {"a,b\n\"1\",x\n2,y\n", "a integer,b text|1,x|2,y"},
        {"a,b\n\"\",1\n3,2\n", "a integer,b integer|-,1|3,2"},
        {"a,b\n\"\",1\nx,2\n,3\n", "a text,b integer|,1|x,2|-,3"}, /* ours: '' is no NULL */
        {"a,b\n,1\n2,\n", "a integer,b integer|-,1|2,-"},
    };
    RUN(samples);
}

static void test_header(void **state) {
    (void)state;
    static const struct sample samples[] = {
        {"a,b,c\n", "a text,b text,c text"},
        {"a,b,c", "a text,b text,c text"},
        {"hello\n", "hello text"},
        {"a,a,b\n1,2,3\n", "a integer,a_1 integer,b integer|1,2,3"},
        {"a,a\nx,y\n", "a text,a_1 text|x,y"},
        {"x,y\nx,z\n", "x text,y text|x,z"},
        {"1,x\n", "column0 integer,column1 text|1,x"},
        {"x,1\n", "column0 text,column1 integer|x,1"},
        {"1,2\n3,a\n", "column0 integer,column1 text|1,2|3,a"},
        {"a,2\n3,4\n", "a integer,2 integer|3,4"},
        {"1,\n2,3\n", "column0 integer,column1 integer|1,-|2,3"},
        {"a,,c\n1,2,3\n", "a integer,column1 integer,c integer|1,2,3"},
        {" a , b \n1,2\n", "a integer,b integer|1,2"},
        {"\"a \"\"q\"\"\",b\n1,2\n", "a \"q\" integer,b integer|1,2"},
        {"\xef\xbb\xbf"
         "a,b\n1,2\n",
         "a integer,b integer|1,2"},
        {"a23456789012345678901234567890123456789012345678901234567890123\xc3\xa9xyz,b\n1,2\n",
         "a23456789012345678901234567890123456789012345678901234567890123 integer,b integer|1,2"},
        {"a2345678901234567890123456789012345678901234567890123456789012\xc3\xa9xyz,b\n1,2\n",
         "a2345678901234567890123456789012345678901234567890123456789012 integer,b integer|1,2"},
        {"", "column0 text"},
        {"\n", "column0 text"},
        {"\r\n\r\n", "column0 text"},
        {"some title\nanother line\na,b,c\n1,2,3\n4,5,6\n",
         "a integer,b integer,c integer|1,2,3|4,5,6"},
        {"a,b\n1,2,3\n4,5,6\n", "column0 integer,column1 integer,column2 integer|1,2,3|4,5,6"},
    };
    RUN(samples);
}

static void test_lines(void **state) {
    (void)state;
    static const struct sample samples[] = {
        {"a,b\r1,2\r3,4\r", "a integer,b integer|1,2|3,4"},
        {"a,b\r1,\"x\ry\"\r3,4", "a integer,b text|1,x\ry|3,4"},
        {"a,b\n1,2\r\n3,4\n", "a integer,b integer|1,2|3,4"}, /* ours: DuckDB refuses it */
        {"a,b\n\n1,2\n\n3,4\n\n", "a integer,b integer|1,2|3,4"},
        {"\n\na,b\n1,2\n", "a integer,b integer|1,2"},
        {"a,b\n   \n1,2\n", "a integer,b integer|1,2"}, /* ours */
        {"a\n\n1\n\n2\n", "a integer|-|1|-|2"},
        {"a\n1\n2", "a integer|1|2"},
        {"# hello\na,b\n1,2\n# it's \"more\n3,4\n", "a integer,b integer|1,2|3,4"},
        {"a,b\n1,2\n#end\n", "a integer,b integer|1,2"},
        {"a,b\n1,2 # x\n3,4\n", "a integer,b text|1,2 # x|3,4"},
        {"#a,b\n1,2\n", "#a integer,b integer|1,2"},
        {"a,b\n#x,1\n#y,2\n", "a text,b integer|#x,1|#y,2"},
        {"a,b\n1,2,\n3,4,\n", "a integer,b integer|1,2|3,4"},
    };
    RUN(samples);
}

static void test_dialects(void **state) {
    (void)state;
    static const struct sample samples[] = {
        {"a;b\n1,5;2\n2,5;3\n", "a text,b integer|1,5,2|2,5,3"},
        {"a\tb c\n1\t2 3\n", "a integer,b c text|1,2 3"},
        {"a|b\n1|2\n", "a integer,b integer|1,2"},
        {"1|x|\n2|y|\n", "column0 integer,column1 text|1,x|2,y"}, /* ours: dbgen's tables */
        {"a|b\n1|\n2|3\n", "a integer,b integer|1,-|2,3"},
        {"a b\n1 2\n", "a b text|1 2"},
        {"a,b\n'x,y',1\n'z',2\n", "a text,b integer|x,y,1|z,2"},
        {"a,b\n'1','it''s'\n", "a integer,b text|1,it's"},
        {"a,b\nit's,1\nx,2\n", "a text,b integer|it's,1|x,2"},
        {"a,b\n'tis,1\nx,2\n", "a text,b integer|'tis,1|x,2"},
        {"a,b\nx\"y,1\nz,2\n", "a text,b integer|x\"y,1|z,2"},
        {"a,b\n\"x,1\nz,2\n", "a text,b integer|\"x,1|z,2"},
        {"a,b\n\"x\\\"y\",1\n\"z\",2\n", "a text,b integer|x\"y,1|z,2"},
        {"a,b\n\"x\"\"y\",1\n\"z\",2\n", "a text,b integer|x\"y,1|z,2"},
        {"a\n\"1,234\"\n", "a text|1,234"},
        {"a, b\n1, \"x, y\"\n3, \"y\" \n", "a integer,b text|1,x, y|3,y"},
        {"a, b\n1, x\n3, y\n", "a integer,b text|1, x|3, y"},
        {"a, b\n1, 2\n3, 4\n", "a integer,b integer|1,2|3,4"},
        {"a,b,c\n1,2\n3,4\n", "a,b,c text|1,2|3,4"},
        {"a\n1,2\n3\n", "a text|1,2|3"},
    };
    RUN(samples);
}

static void test_errors(void **state) {
    (void)state;
    expect_error(SV("a,b,c\n1,2,3\n4,5\n6,7,8\n"), NULL, ERR_BAD_COPY_FORMAT,
                 ", line 3: 2 fields found, 3 expected", "null_padding => true");
    expect_error(SV("a,b\n1,2\n3,4,5\n6,7\n"), NULL, ERR_BAD_COPY_FORMAT,
                 ", line 3: 3 fields found, 2 expected", "ignore_errors => true");
    expect_error(SV("a,b\n1,\"x\0y\"\n2,z\n"), NULL, ERR_INVALID_ENCODING, "line 2, column 2 (b)",
                 "ignore_errors => true");
    expect_error(SV("\xff\xfe"
                    "a\0,\0b\0\n\0"),
                 NULL, ERR_INVALID_ENCODING, "UTF-16", "iconv");
    expect_error(SV("a\0,\0b\0\n\0"), NULL, ERR_INVALID_ENCODING, "UTF-16", "iconv");
}

static void test_options(void **state) {
    (void)state;
    struct csv_given given = {.options.null_padding = 1};
    expect(SV("a,b,c\n1,2,3\n4,5\n6\n"), &given, "a integer,b integer,c integer|1,2,3|4,5,-|6,-,-");
    given = (struct csv_given){.options.ignore_errors = 1};
    expect(SV("a,b\n1,2\n3\n4,5,6\n7,8\n"), &given, "a integer,b integer|1,2|7,8");
    given = (struct csv_given){.options.comment = '#', .has_comment = 1};
    expect(SV("a,b\n1,x#2\n 3,\"y#\" # z\n # all\n"), &given, "a integer,b text|1,x|3,y#");
    given = (struct csv_given){.options.skip = 1, .has_skip = 1};
    expect(SV("a \"note,x\n1,2\n"), &given, "column0 integer,column1 integer|1,2");
    given = (struct csv_given){.has_header = 1};
    expect(SV("a,b\n1,2\n"), &given, "column0 text,column1 text|a,b|1,2");
    given = (struct csv_given){.has_header = 1, .options.header = 1};
    expect(SV("1,2\n3,4\n"), &given, "1 integer,2 integer|3,4");
    static const char *const more[] = {"null", NULL};
    given = (struct csv_given){.options.null_text = "NA", .options.null_more = more};
    expect(SV("a,b\n1,NA\nnull,3\n"), &given, "a integer,b integer|1,-|-,3");
    given = (struct csv_given){.all_text = 1};
    expect(SV("a,b\n1,2\n"), &given, "a text,b text|1,2");
    struct column_def cols[] = {{.name = "b", .type = type_of(TYPE_TEXT)}};
    given = (struct csv_given){.cols = cols, .col_count = 1};
    expect(SV("a,b\n1,2\n"), &given, "a integer,b text|1,2");
    cols[0].name = "zz";
    expect_error(SV("a,b\n1,2\n"), &given, ERR_UNDEFINED_COLUMN, "\"zz\"", "");
    struct column_def all[] = {{.name = "name", .type = type_of(TYPE_TEXT)},
                               {.name = "age", .type = type_of(TYPE_INTEGER)}};
    given = (struct csv_given){.cols = all, .col_count = 2, .all_cols = 1};
    expect(SV("Pedro,31\nAda,7\n"), &given, "name text,age integer|Pedro,31|Ada,7");
    expect(SV("n,a\nPedro,31\n"), &given, "name text,age integer|Pedro,31");
    expect_error(SV("Pedro,31\nOogie Boogie, three\n"), &given, ERR_INVALID_TEXT,
                 "line 2, column 2 (age)", "types => {'age': 'text'}");
    given.options.ignore_errors = 1;
    expect(SV("Pedro,31\nOogie Boogie, three\n"), &given, "name text,age integer|Pedro,31");
    all[1].type = type_of(TYPE_TEXT);
    expect(SV("a,b\nc,d\n"), &given, "name text,age text|a,b|c,d");
    expect(SV("Name, age\nc,d\n"), &given, "name text,age text|c,d");
    given = (struct csv_given){.has_quote = 1};
    expect(SV("a,b\n\"x,1\n"), &given, "a text,b integer|\"x,1");
}

/* A value behind the sample is not changed to fit: it is an error, unless the whole file is looked
 * at first. */
static void test_late(void **state) {
    (void)state;
    static const struct {
        const char *usual, *late, *type;
    } samples[] = {
        {"2024-01-31", "2024-01-31 12:34:56", "text"},
        {"2024-01-31 12:34:56", "2024-01-31 12:34:56+02", "text"},
        {"12:34:56", "12:34:56 PM", "text"},
        {"1234", "0123", "text"},
        {"1234", "12.5", "double precision"},
        {"1.5", "01.5", "text"},
        {"1234", "12345678901", "bigint"},
        {"true", "on", "text"},
    };
    enum { ROWS = 21000 };
    static char text[ROWS * 32], got[1 << 20], wanted[100];
    struct csv_given none = {0}, all = {.sample_rows = -1};
    for (i64 k = 0; k < COUNT_OF(samples); k++) {
        i64 n = snprintf(text, sizeof text, "a\n");
        for (i64 i = 0; i < ROWS; i++) {
            n += snprintf(text + n, 32, "%s\n", samples[k].usual);
        }
        n += snprintf(text + n, 32, "%s\n", samples[k].late);
        assert_true(read_text((struct sv){text, n}, &none, got, sizeof got) != ERR_OK);
        assert_non_null(strstr(err.message, ", line 21002, column 1 (a): "));
        assert_non_null(strstr(err.hint, "sample_size => -1"));
        assert_int_equal(read_text((struct sv){text, n}, &all, got, sizeof got), ERR_OK);
        snprintf(wanted, sizeof wanted, "a %s|", samples[k].type);
        assert_memory_equal(got, wanted, strlen(wanted));
        i64 len = (i64)strlen(samples[k].late);
        assert_string_equal(got + strlen(got) - len, samples[k].late);
    }
}

/* Records longer than a part, of text that no archive makes shorter; lines within them count. */
static void test_long(void **state) {
    (void)state;
    enum { LONG = 60000 };
    static char text[3 * LONG], got[1 << 20];
    struct csv_given none = {0};
    u64 r = 1;
    i64 n = snprintf(text, sizeof text, "id,t\n1,\"");
    for (i64 i = 0; i < LONG; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        text[n++] = i % 5000 ? (char)('!' + (r >> 33) % 90 + ((r >> 33) % 90 == 1)) : '\n';
    }
    n += snprintf(text + n, 100, "\"\n2,b\n3,\"");
    memcpy(text + n, text + 8, LONG);
    n += LONG;
    n += snprintf(text + n, 100, "\"");
    assert_int_equal(read_text((struct sv){text, n}, &none, got, sizeof got), ERR_OK);
    assert_int_equal(strlen(got), strlen("id integer,t text|1,|2,b|3,") + 2 * LONG);
}

/* What is wrong far behind the sample, in the text or in an archive of it. */
static void test_far(void **state) {
    (void)state;
    enum { BYTES = 2200000 };
    char *text = malloc(BYTES + 100), *got = malloc(2 * BYTES);
    struct csv_given none = {0};
    u64 r = 1;
    i64 n = 0;
    while (n < BYTES) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        n += snprintf(text + n, 32, "%lld\n", (i64)(r >> 34) + 1000000000);
    }
    struct sv whole = {text, n};
    for (enum packing packing = PACKING_GZIP; packing <= PACKING_ZSTD; packing++) {
        struct file_view view;
        write_packed(whole, packing);
        assert_int_equal(file_view_open(&view, path, &err), ERR_OK);
        char *packed = malloc((size_t)view.bytes);
        memcpy(packed, view.data, (size_t)view.bytes);
        write_file((struct sv){packed, view.bytes - 10});
        assert_int_equal(scan_text(&none, packing, n, got), ERR_BAD_COPY_FORMAT);
        assert_non_null(strstr(err.message, "cut short"));
        memset(packed + view.bytes - 2000, 0x55, 1000);
        write_file((struct sv){packed, view.bytes});
        error_reset(&err);
        assert_int_equal(scan_text(&none, packing, n, got), ERR_BAD_COPY_FORMAT);
        free(packed);
        file_view_close(&view);
    }
    n += snprintf(text + n, 32, "x\n");
    assert_true(read_text((struct sv){text, n}, &none, got, 2 * BYTES) != ERR_OK);
    free(text);
    free(got);
}

/* Every record of an archive is looked at, through a window: fields reach over its ends, one is
 * longer than it, the misfits come last, and the budget is a fraction of what is unpacked. */
static i64 write_far(char *text, enum packing packing) {
    enum { ROWS = 400000, LONG_AT = 170000, LONG_BYTES = 1400000 };
    i64 n = sprintf(text, "n,d,\"a \"\"name\"\"\",u\n");
    for (i64 i = 0; i < ROWS; i++) {
        n += sprintf(text + n, "%lld,2024-01-31,\"some \"\"%lld\"\",\n%lld\",\n", i, i * 7, i);
        if (i == LONG_AT) {
            n += sprintf(text + n, "1,,\"");
            memset(text + n, '\n', LONG_BYTES);
            n += LONG_BYTES;
            n += sprintf(text + n, "\",\n");
        }
    }
    n += sprintf(text + n, "2.5,2024-01-31 10:00:00,\"\",7\n");
    write_packed((struct sv){text, n}, packing);
    return n;
}

static void check_far_types(struct memory *budget, enum packing packing, i64 sample_rows,
                            const char *n_type, const char *d_type) {
    struct csv_given given = {.sample_rows = sample_rows};
    struct csv_file *file = NULL;
    char type[32];
    assert_int_equal(csv_file_open(budget, path, packing, &given, NULL, &file, &err), ERR_OK);
    const struct csv_sniffed *found = csv_file_sniffed(file);
    assert_int_equal(found->col_count, 4);
    assert_string_equal(found->cols[2].name, "a \"name\"");
    assert_string_equal(type_print(found->cols[0].type, type), n_type);
    assert_string_equal(type_print(found->cols[1].type, type), d_type);
    csv_file_close(file);
}

static void test_window(void **state) {
    (void)state;
    char *text = malloc((size_t)40 << 20);
    struct memory budget;
    memory_init(&budget, &mem, 7 << 20, "memory");
    for (enum packing packing = PACKING_GZIP; packing <= PACKING_ZSTD; packing++) {
        i64 bytes = write_far(text, packing);
        assert_true(bytes > 2 * budget.limit_bytes);
        check_far_types(&budget, packing, 0, "integer", "date");
        check_far_types(&budget, packing, 300000, "integer", "date");
        check_far_types(&budget, packing, 500000, "double precision", "text");
        check_far_types(&budget, packing, -1, "double precision", "text");

        _Atomic i32 cancel = 1;
        struct stop stop = {.cancel = &cancel};
        struct load_progress progress = {.stop = &stop};
        struct input in;
        assert_int_equal(input_open_sample(&in, path, packing, 1 << 20, &budget, NULL, &err),
                         ERR_OK);
        assert_true(in.cut && in.bytes < 2 << 20);
        assert_int_equal(input_slide(&in, in.bytes, &progress, &err), ERR_CANCELLED);
        input_close(&in);
        error_reset(&err);
    }
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
    free(text);
}

/* Lines to be skipped that reach behind the first look. */
static void test_far_skip(void **state) {
    (void)state;
    enum { LINES = 400000 };
    char *text = malloc(LINES * 16);
    struct csv_given given = {.options.skip = LINES, .has_skip = 1};
    i64 n = 0;
    for (i64 i = 0; i < LINES; i++) {
        n += sprintf(text + n, "note %lld\n", i);
    }
    n += sprintf(text + n, "a|b\n1|2024-01-31\n");
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        struct csv_file *file = NULL;
        if (packing) {
            write_packed((struct sv){text, n}, packing);
        } else {
            write_file((struct sv){text, n});
        }
        assert_int_equal(csv_file_open(&mem, path, packing, &given, NULL, &file, &err), ERR_OK);
        const struct csv_sniffed *found = csv_file_sniffed(file);
        assert_int_equal(found->col_count, 2);
        assert_string_equal(found->cols[1].name, "b");
        assert_int_equal(found->cols[1].type.id, TYPE_DATE);
        csv_file_close(file);
    }
    free(text);
}

static void test_wide(void **state) {
    (void)state;
    static char text[200000];
    i64 n = 0;
    for (i64 i = 0; i < 10000; i++) {
        n += snprintf(text + n, 20, "%sc%lld", i ? "," : "", i);
    }
    expect_error((struct sv){text, n}, NULL, ERR_TOO_MANY_COLUMNS, "1600", "");
}

/* A file that is another when it is scanned than when it was looked at. */
static void test_changed(void **state) {
    (void)state;
    static const b8 cols[2] = {1, 1};
    struct csv_given none = {0};
    struct csv_file *file = NULL;
    struct scan *scan = NULL;
    struct scan_request request = {.cols = cols, .mem = &mem, .worker_count = 1};
    write_file(SV("a,b\n1,2\n3,4\n"));
    assert_int_equal(csv_file_open(&mem, path, PACKING_NONE, &none, NULL, &file, &err), ERR_OK);
    const struct csv_sniffed *found = csv_file_sniffed(file);
    struct table *table = table_open(&mem, 1, "t", found->col_count, found->cols, 4, false);
    csv_file_attach(file, table);
    write_file(SV("a,b\n1,2\n3,4\n5,6\n"));
    assert_int_equal(table->provider->open(table->provider, &request, &scan, &err), ERR_IO);
    assert_non_null(strstr(err.message, "changed"));
    struct table_version *version = NULL;
    assert_int_equal(csv_file_load(table, NULL, NULL, &version, &err), ERR_IO);
    table_close(table);
}

/* The memory a scan needs is refused, at every place where it asks. */
static void check_refused(enum packing packing) {
    static char got[1 << 16];
    struct csv_given none = {0};
    wf_status status = ERR_OUT_OF_MEMORY;
    struct sv text = SV("a,b\n1,\"x\"\"y\"\n3,\"a\nb\"\n");
    if (packing) {
        write_packed(text, packing);
    } else {
        write_file(text);
    }
    for (i64 nth = 1; status; nth++) {
        error_reset(&err);
        memory_fail_at(nth);
        struct csv_file *file = NULL;
        status = csv_file_open(&mem, path, packing, &none, NULL, &file, &err);
        if (!status) {
            csv_file_close(file);
        } else {
            assert_int_equal(status, ERR_OUT_OF_MEMORY);
        }
    }
    memory_fail_at(0);
    struct csv_file *file = NULL;
    assert_int_equal(csv_file_open(&mem, path, packing, &none, NULL, &file, &err), ERR_OK);
    const struct csv_sniffed *found = csv_file_sniffed(file);
    struct table *table = table_open(&mem, 1, "t", found->col_count, found->cols, 4, false);
    csv_file_attach(file, table);
    status = ERR_OUT_OF_MEMORY;
    for (i64 nth = 1; status; nth++) {
        static struct scanning s;
        memset(&s, 0, sizeof s);
        s.bad_number = I64_MAX;
        s.table = table;
        mutex_init(&s.lock);
        error_reset(&err);
        memory_fail_at(nth);
        status = scan_all(&s, 7);
        memory_fail_at(0);
        char *out = got;
        for (i64 i = 0; i < 64; i++) {
            out += s.texts[i] ? sprintf(out, "%s", s.texts[i]) : 0;
            free(s.texts[i]);
        }
        mutex_fini(&s.lock);
        assert_true(!status || status == ERR_OUT_OF_MEMORY);
    }
    assert_string_equal(got, "|1,x\"y|3,a\nb");
    table_close(table);
}

static void test_refused(void **state) {
    (void)state;
    for (enum packing packing = PACKING_NONE; packing <= PACKING_ZSTD; packing++) {
        check_refused(packing);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_header, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dialects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_far, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_far_skip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wide, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

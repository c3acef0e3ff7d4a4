/* test_csv.c: reading delimited files: what rows come out, with blocks so small that everything
 * straddles a boundary; what errors say; and how fast it is (printed, not judged). */
#define _POSIX_C_SOURCE 200809L
#include "test_csv_fixture.h"

#include "io/pack.h"

static const struct csv_options csv = {
    .delimiter = ',', .quote = '"', .escape = '"', .null_text = ""};
static const struct csv_options tbl = {.delimiter = '|', .trailing_delimiter = 1, .null_text = ""};

/* Columns by letters: i integer, m smallint, l bigint, d decimal(12,2), b boolean, t text, D date,
 * f real, F double; a capital N before a letter makes the column NOT NULL. */
static struct table *table_of(const char *letters, u32 tablet_shift) {
    static const char *const names[] = {"c1", "c2",  "c3",  "c4",  "c5",  "c6",  "c7",  "c8",
                                        "c9", "c10", "c11", "c12", "c13", "c14", "c15", "c16"};
    struct column_def defs[16];
    memset(defs, 0, sizeof defs);
    u32 n = 0;
    for (; *letters; letters++) {
        defs[n].not_null |= *letters == 'N';
        if (*letters == 'N') {
            continue;
        }
        defs[n].name = names[n];
        defs[n].type = *letters == 'i'   ? type_of(TYPE_INTEGER)
                       : *letters == 'm' ? type_of(TYPE_SMALLINT)
                       : *letters == 'l' ? type_of(TYPE_BIGINT)
                       : *letters == 'd' ? type_decimal(12, 2)
                       : *letters == 'b' ? type_of(TYPE_BOOLEAN)
                       : *letters == 'D' ? type_of(TYPE_DATE)
                       : *letters == 'f' ? type_of(TYPE_REAL)
                       : *letters == 'F' ? type_of(TYPE_DOUBLE)
                                         : type_of(TYPE_TEXT);
        n++;
    }
    struct table *table = table_open(&mem, 1, "t", n, defs, tablet_shift, false);
    assert_non_null(table);
    return table;
}

/* All rows as text: values separated by '~', NULL as "-", rows ended by ';'. */
static char *dump(struct table *table) {
    static char out[1 << 16];
    i64 n = 0;
    struct table_version *version = table_snapshot(table);
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (i64 i = 0; i < version->tablet_rows[t]; i++) {
            for (u32 c = 0; c < table->col_count; c++) {
                assert_true(n < (1 << 16) - 300);
                n += snprintf(out + n, 2, "%s", c ? "~" : "");
                n += print_cell(table, version->tablets[t], c, i, out + n);
            }
            out[n++] = ';';
        }
    }
    version_release(version);
    out[n] = 0;
    return out;
}

static wf_status load(struct table *table, const struct csv_options *options, i64 block_bytes) {
    i64 rows;
    struct input in;
    error_reset(&err);
    TRY(input_open(&in, path, PACKING_BY_NAME, false, &mem, NULL, &err));
    struct load_means means = {pool, &mem, NULL};
    wf_status status = csv_load_blocks(table, &in, options, &means, block_bytes, &rows, &err);
    input_close(&in);
    return status;
}

/* The file as COPY loads it. */
static wf_status load_file(struct table *table, const char *from, const struct csv_options *options,
                           struct pool *workers, struct load_progress *progress, i64 *out_rows) {
    struct input in;
    TRY(input_open(&in, from, PACKING_BY_NAME, true, &mem, progress, &err));
    struct load_means means = {workers, &mem, progress};
    wf_status status = csv_load(table, &in, options, &means, out_rows, &err);
    input_close(&in);
    return status;
}

/* The text must give these rows whatever the size of blocks and tablets. */
static void expect(const char *letters, const struct csv_options *options, struct sv text,
                   const char *rows) {
    static const i64 sizes[] = {1, 2, 3, 5, 7, 13, 64, 1000, 1 << 20};
    write_file(text);
    for (i64 i = 0; i < COUNT_OF(sizes); i++) {
        for (u32 shift = 0; shift <= 12; shift += 4) {
            struct table *table = table_of(letters, shift);
            wf_status status = load(table, options, sizes[i]);
            if (status) {
                print_message("block %lld: %s\n", sizes[i], err.message);
            }
            assert_int_equal(status, ERR_OK);
            assert_string_equal(dump(table), rows);
            table_close(table);
        }
    }
}

/* It must fail with this code and a message that ends like this, and leave the table as it was. */
static void expect_error(const char *letters, const struct csv_options *options, struct sv text,
                         wf_status code, const char *tail) {
    static const i64 sizes[] = {1, 4, 9, 64, 1 << 20};
    write_file(text);
    for (i64 i = 0; i < COUNT_OF(sizes); i++) {
        for (u32 shift = 0; shift <= 10; shift += 5) {
            struct table *table = table_of(letters, shift);
            assert_int_equal(load(table, options, sizes[i]), code);
            i64 at = (i64)strlen(err.message) - (i64)strlen(tail);
            if (at < 0 || strcmp(err.message + at, tail) != 0) {
                print_message("got: %s\nnot: %s\n", err.message, tail);
            }
            assert_true(at >= 0);
            assert_string_equal(err.message + at, tail);
            assert_string_equal(dump(table), "");
            table_close(table);
        }
    }
}

static void test_plain(void **state) {
    (void)state;
    expect("iidt", &csv, SV("1,2,3.45,abc\n-7,0,-0.5,x y\n"), "1~2~3.45~abc;-7~0~-0.50~x y;");
    expect("it", &csv, SV("1,a\r\n2,b\r\n3,c"), "1~a;2~b;3~c;");
    expect("it", &csv, SV("1,a\n2,b\n\n"), "1~a;2~b;");
    expect("it", &csv, SV("1,a\r\n2,\"b\"\r"), "1~a;2~b;");
    expect("it", &csv, SV("1,a\r\n2,b\r\n\r\n"), "1~a;2~b;");
    expect("it", &csv,
           SV("\xef\xbb\xbf"
              "1,a\n"),
           "1~a;");
    expect("it", &csv, SV(""), "");
    expect("it", &csv, SV("\n"), "");
    expect("i", &csv, SV("1\n\n3\n"), "1;-;3;");
    expect("bDfFml", &csv, SV("t,1998-12-01,1.5,-2e3,-32768,9223372036854775807\nfalse,,,,,\n"),
           "true~1998-12-01~1.5~-2000~-32768~9223372036854775807;false~-~-~-~-~-;");
    expect("tt", &csv, SV("\xc3\xa9,b\n"), "\xc3\xa9~b;");
}

static void test_quotes(void **state) {
    (void)state;
    expect("tti", &csv, SV("\"a\",\"b,c\",1\n\"x\ny\",\"\r\n\",2\n"), "a~b,c~1;x\ny~\r\n~2;");
    expect("tt", &csv, SV("\"\"\"\",\"a\"\"b\"\n"), "\"~a\"b;");
    expect("tt", &csv, SV("\"\",\n"), "~-;"); /* quoted empty is text, empty is NULL */
    expect("tt", &csv, SV("ab\"cd\"ef,\"x\"y\"z\"\r\n"), "abcdef~xyz;");
}

static void test_quotes_again(void **state) {
    (void)state;
    expect("tt", &csv, SV("\"a\",\"b\"\r\n\"c\",d\r\n\"\n\n\n\",\"\"\"\n\"\"\""),
           "a~b;c~d;\n\n\n~\"\n\";");
    expect("it", &csv, SV("\"12\",\"\"\n"), "12~;");
    struct csv_options back = csv;
    back.escape = '\\';
    expect("tt", &back, SV("\"a\\\"b\",\"c\\\\\"\n\"\\d\ne\",f\\\n"), "a\"b~c\\;\\d\ne~f\\;");
    expect("tt", &back, SV("\"\\\\\\\"\n\",\"\\\\\"\n\"x\",\"y\"\n"), "\\\"\n~\\;x~y;");
    struct csv_options single = csv;
    single.quote = single.escape = '\'';
    single.delimiter = ';';
    single.null_text = "NULL";
    expect("tt", &single, SV("'a;b';NULL\n'NULL';\n"), "a;b~-;NULL~;");
}

static void test_tbl(void **state) {
    (void)state;
    expect("itd", &tbl, SV("1|a \"quoted\" b|2.50|\n2||3|\n"), "1~a \"quoted\" b~2.50;2~-~3.00;");
    expect("itd", &tbl, SV("1|a|2.50\n2|b|3|\r\n"), "1~a~2.50;2~b~3.00;");
    struct csv_options odd = tbl;
    odd.null_text = "\\N";
    expect("it", &odd, SV("1||\n\\N|\\N|\n"), "1~;-~-;");
}

static void test_header_and_columns(void **state) {
    (void)state;
    struct csv_options options = csv;
    options.header = 1;
    expect("it", &options, SV("k,\"na\nme\"\n1,a\n"), "1~a;");
    expect("it", &options, SV("k,name"), "");
    expect("it", &options, SV("k,name\n\n"), "");
    static const u32 cols[] = {2, 0};
    options.cols = cols;
    options.col_count = 2;
    expect("iti", &options, SV("c,a\n5,6\n7,8\n"), "6~-~5;8~-~7;");
    expect_error("iNti", &options, SV("c,a\n5,6\n"), ERR_NOT_NULL,
                 ", line 2: no value for column \"c2\", which is NOT NULL");
    expect("iNti", &options, SV("c,a\n"), "");
}

static void test_errors(void **state) {
    (void)state;
    expect_error("itd", &csv, SV("1,a,2\n2,b,3\n3,c,abc\n4,d,x\n"), ERR_INVALID_TEXT,
                 ", line 3, column 3 (c3): \"abc\" is not a decimal(12,2)");
    expect_error("it", &csv, SV("1,a\nx1,b\n"), ERR_INVALID_TEXT,
                 ", line 2, column 1 (c1): \"x1\" is not an integer");
    expect_error("tm", &csv, SV("a,32767\nb,32768\n"), ERR_OUT_OF_RANGE,
                 ", line 2, column 2 (c2): \"32768\" is out of range for smallint");
    expect_error("di", &csv, SV("12345678901.00,1\n"), ERR_OUT_OF_RANGE,
                 ", line 1, column 1 (c1): \"12345678901.00\" is out of range for decimal(12,2)");
    expect_error("tD", &csv, SV("a,1999-02-30\n"), ERR_DATETIME_OVERFLOW,
                 ", line 1, column 2 (c2): \"1999-02-30\" is out of range for date");
    expect_error("tb", &csv, SV("a,maybe\n"), ERR_INVALID_TEXT,
                 ", line 1, column 2 (c2): \"maybe\" is not a boolean");
    expect_error("iNi", &csv, SV("1,2\n3,\n"), ERR_NOT_NULL,
                 ", line 2, column 2 (c2): a NULL in a column that is NOT NULL");
    expect_error("it", &csv, SV("1,a\n2,b\xff\n"), ERR_INVALID_ENCODING,
                 ", line 2, column 2 (c2): invalid UTF-8: byte 0xff");
    expect_error("it", &csv, SV("1,a\n2,b\0c\n"), ERR_INVALID_ENCODING,
                 ", line 2, column 2 (c2): invalid UTF-8: byte 0x00");
    expect_error("ti", &csv, SV("a,1\nb,\xe9\n"), ERR_INVALID_ENCODING,
                 ", line 2, column 2 (c2): invalid UTF-8: \"?\"");
}

static void test_shape_errors(void **state) {
    (void)state;
    expect_error("itd", &csv, SV("1,a,2\n2,b\n"), ERR_BAD_COPY_FORMAT,
                 ", line 2: 2 fields found, 3 expected");
    expect_error("it", &csv, SV("1,a\n2,b,c,d\n"), ERR_BAD_COPY_FORMAT,
                 ", line 2: 4 fields found, 2 expected");
    expect_error("it", &csv, SV("1,a\n\n2,b\n"), ERR_BAD_COPY_FORMAT,
                 ", line 2: 0 fields found, 2 expected");
    expect_error("it", &csv, SV("1,a,\n"), ERR_BAD_COPY_FORMAT,
                 ", line 1: 3 fields found, 2 expected");
    expect_error("it", &tbl, SV("1|a||\n"), ERR_BAD_COPY_FORMAT,
                 ", line 1: 4 fields found, 2 expected");
    expect_error("it", &csv, SV("1,a\n2,\"b\n3,c\n4,d\n"), ERR_BAD_COPY_FORMAT,
                 ", line 2: the quote that begins here never ends");
    /* Lines inside of quotes count. */
    expect_error("ti", &csv, SV("\"a\n\nb\",1\n\"c\nd\",x\n"), ERR_INVALID_TEXT,
                 ", line 5, column 2 (c2): \"x\" is not an integer");
    expect_error("ti", &csv, SV("a,1\nb,\"x\"\"\"\n"), ERR_INVALID_TEXT,
                 ", line 2, column 2 (c2): \"x\"\" is not an integer");
    struct table *table = table_of("i", 4);
    i64 rows;
    error_reset(&err);
    assert_int_equal(load_file(table, "/nowhere/x.csv", &csv, pool, NULL, &rows), ERR_NO_DATA_FILE);
    table_close(table);
}

static void test_varchar(void **state) {
    (void)state;
    struct type type = type_of(TYPE_TEXT);
    type.length = 3;
    struct column_def def = {.name = "v", .type = type};
    struct table *table = table_open(&mem, 1, "t", 1, &def, 4, false);
    write_file(SV("\xc3\xa9\xc3\xa9\xc3\xa9\nab  \n"));
    assert_int_equal(load(table, &csv, 8), ERR_OK);
    assert_string_equal(dump(table), "\xc3\xa9\xc3\xa9\xc3\xa9;ab ;");
    write_file(SV("abcd\n"));
    assert_int_equal(load(table, &csv, 8), ERR_STRING_TOO_LONG);
    table_close(table);
}

/* A file of random records with every kind of nuisance, against the rows it was made from. */
static void test_random(void **state) {
    (void)state;
    static char text[1 << 16], rows[1 << 16];
    static const char *const bits[] = {"a", "\"\"", ",", "\n", "\r\n", "longer text", "", "x"};
    for (u64 seed = 1; seed <= 40; seed++) {
        i64 n = 0, m = 0;
        u64 h = hash_u64(seed);
        i64 count = (i64)(h % 60);
        for (i64 row = 0; row < count; row++) {
            n += snprintf(text + n, 64, "%lld,\"", row);
            m += snprintf(rows + m, 64, "%lld~", row);
            for (u64 k = (h = hash_u64(h + 1)) % 6; k > 0; k--) {
                const char *bit = bits[(h = hash_u64(h + 1)) % 8];
                n += snprintf(text + n, 64, "%s", bit);
                m += snprintf(rows + m, 64, "%s", *bit == '"' ? "\"" : bit);
            }
            n += snprintf(text + n, 64, "\",%lld%s", row * 7,
                          row + 1 == count && seed % 2 ? ""
                          : seed % 3                   ? "\n"
                                                       : "\r\n");
            m += snprintf(rows + m, 64, "~%lld;", row * 7);
        }
        rows[m] = 0;
        expect("iti", &csv, (struct sv){text, n}, rows);
    }
}

static void test_refused(void **state) {
    (void)state;
    write_file(SV("1,\"a\"\"b\"\n2,b\n3,c\n4,d\n5,e\n6,\"f\"\n"));
    for (u32 shift = 1; shift <= 10; shift += 9) {
        for (i64 nth = 1, refused = 1; refused; nth++) {
            struct table *table = table_of("it", shift);
            memory_fail_at(nth);
            wf_status status = load(table, &csv, 10);
            memory_fail_at(0);
            refused = status != ERR_OK;
            if (refused) {
                assert_int_equal(status, ERR_OUT_OF_MEMORY);
                assert_string_equal(dump(table), "");
                assert_int_equal(load(table, &csv, 10), ERR_OK);
            }
            assert_string_equal(dump(table), "1~a\"b;2~b;3~c;4~d;5~e;6~f;");
            table_close(table);
        }
    }
}

static void cut_file(void *arg) {
    struct load_progress *progress = arg;
    i64 until = clock_ns() + 3000000000;
    while (atomic_load(&progress->bytes_done) == 0 && clock_ns() < until) {
    }
    assert_int_equal(truncate(path, 4096), 0);
}

static void test_cancel_and_progress(void **state) {
    (void)state;
    write_file(SV("1,a\n2,b\n3,c\n"));
    struct table *table = table_of("it", 4);
    _Atomic i32 cancel = 1;
    struct stop stop = {.cancel = &cancel};
    struct load_progress progress = {.stop = &stop};
    i64 rows;
    assert_int_equal(load_file(table, path, &csv, pool, &progress, &rows), ERR_CANCELLED);
    atomic_store(&cancel, 0);
    stop.deadline_ns = 1;
    error_reset(&err);
    assert_int_equal(load_file(table, path, &csv, pool, &progress, &rows), ERR_CANCELLED);
    stop.deadline_ns = 0;
    error_reset(&err);
    assert_int_equal(load_file(table, path, &csv, pool, &progress, &rows), ERR_OK);
    assert_int_equal(rows, 3);
    assert_int_equal(atomic_load(&progress.bytes_done), 12);
    assert_int_equal(progress.bytes_total, 12);
    table_close(table);
}

/* Another program cuts the file short under the reader. */
static void test_torn(void **state) {
    (void)state;
    enum { LINES = 1200000 };
    char *text = malloc((size_t)LINES * 16);
    for (i64 i = 0; i < LINES; i++) {
        memcpy(text + i * 16, "1234567,abcdefg\n", 16);
    }
    write_file((struct sv){text, (i64)LINES * 16});
    struct file_view view;
    assert_int_equal(file_view_open(&view, path, &err), ERR_OK);
    assert_int_equal(view.data[view.bytes - 1], '\n');
    assert_int_equal(truncate(path, 1 << 20), 0);
    assert_false(file_view_torn(&view));
    assert_int_equal(view.data[0], '1');
    assert_int_equal(view.data[view.bytes - 5000], 0);
    assert_true(file_view_torn(&view));
    file_view_close(&view);
    struct table *table = table_of("it", 10);
    for (i32 round = 0; round < 6; round++) {
        write_file((struct sv){text, (i64)LINES * 16});
        struct load_progress progress = {.bytes_total = 0};
        struct thread *thread = thread_start(cut_file, &progress);
        assert_non_null(thread);
        i64 rows = 0;
        wf_status status = load_file(table, path, &csv, pool, &progress, &rows);
        thread_join(thread);
        assert_true(status == ERR_OK ? rows == LINES : status == ERR_IO && rows == 0);
        assert_true(!status || strstr(err.message, "changed the file"));
        error_reset(&err);
    }
    table_close(table);
    free(text);
}

/* The text packed into the file, and what the file holds then. */
static i64 packed_bytes(struct sv text, enum packing packing, char *out, i64 cap) {
    struct file_view view;
    write_packed(text, packing);
    assert_int_equal(file_view_open(&view, path, &err), ERR_OK);
    i64 bytes = view.bytes;
    assert_true(bytes <= cap);
    memcpy(out, view.data, (size_t)bytes);
    file_view_close(&view);
    return bytes;
}

/* What the file unpacks to; its bytes, or the error. */
static wf_status unpack_file(enum packing packing, struct sv wanted) {
    struct input in;
    error_reset(&err);
    TRY(input_open(&in, path, packing, false, &mem, NULL, &err));
    bool same = in.bytes == wanted.len && !memcmp(in.data, wanted.ptr, (size_t)wanted.len);
    input_close(&in);
    return same ? ERR_OK : ERR_INTERNAL;
}

static void test_packed(void **state) {
    (void)state;
    static char text[60000], packed[65536], broken[65536];
    i64 len = 0;
    for (i64 i = 0; len < 50000; i++) {
        len += snprintf(text + len, 40, "%lld,word %lld\n", i, i * i % 97);
    }
    struct sv whole = {text, len};
    for (enum packing packing = PACKING_GZIP; packing <= PACKING_ZSTD; packing++) {
        i64 bytes = packed_bytes(whole, packing, packed, sizeof packed);
        assert_true(bytes < len);
        assert_int_equal(unpack_file(packing, whole), ERR_OK);
        for (i64 cut = 1; cut < bytes; cut += 1 + cut / 50) { /* cut short anywhere */
            write_file((struct sv){packed, cut});
            assert_int_equal(unpack_file(packing, whole), ERR_BAD_COPY_FORMAT);
        }
        for (i64 at = 0; at < bytes; at += 1 + at / 50) { /* a byte changed: an error, or caught by
                                                             nobody but never a crash */
            memcpy(broken, packed, (size_t)bytes);
            broken[at] = (char)(broken[at] ^ 0x55);
            write_file((struct sv){broken, bytes});
            wf_status status = unpack_file(packing, whole);
            assert_true(status == ERR_OK || status == ERR_INTERNAL ||
                        status == ERR_BAD_COPY_FORMAT || status == ERR_OUT_OF_MEMORY);
        }
        memcpy(broken, packed, (size_t)bytes); /* two archives behind each other */
        if (2 * bytes <= (i64)sizeof broken && 2 * len <= (i64)sizeof text) {
            memcpy(broken + bytes, packed, (size_t)bytes);
            write_file((struct sv){broken, 2 * bytes});
            struct input in;
            assert_int_equal(input_open(&in, path, packing, false, &mem, NULL, &err), ERR_OK);
            assert_int_equal(in.bytes, 2 * len);
            input_close(&in);
        }
        for (i64 nth = 1; nth < 12; nth++) {
            write_file((struct sv){packed, bytes});
            memory_fail_at(nth);
            wf_status status = unpack_file(packing, whole);
            memory_fail_at(0);
            assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
        }
    }
    write_file(SV("hello\n"));
    assert_int_equal(unpack_file(PACKING_GZIP, whole), ERR_BAD_COPY_FORMAT);
    assert_non_null(strstr(err.message, "no gzip archive"));
    assert_int_equal(unpack_file(PACKING_ZSTD, whole), ERR_BAD_COPY_FORMAT);
    write_file(SV(""));
    assert_int_equal(unpack_file(PACKING_GZIP, SV("")), ERR_OK);
}

/* A small archive of very much: the budget ends it. */
static void test_bomb(void **state) {
    (void)state;
    static char text[1 << 20], packed[65536];
    memset(text, '7', sizeof text);
    for (enum packing packing = PACKING_GZIP; packing <= PACKING_ZSTD; packing++) {
        i64 bytes = packed_bytes((struct sv){text, sizeof text}, packing, packed, sizeof packed);
        FILE *file = fopen(path, "wb");
        for (i64 i = 0; i < 200; i++) {
            assert_int_equal(fwrite(packed, 1, (size_t)bytes, file), bytes);
        }
        fclose(file);
        struct memory small;
        struct input in;
        memory_init(&small, &mem, 20 << 20, "memory");
        error_reset(&err);
        assert_int_equal(input_open(&in, path, packing, false, &small, NULL, &err),
                         ERR_OUT_OF_MEMORY);
        _Atomic i32 cancel = 1;
        struct stop stop = {.cancel = &cancel};
        struct load_progress progress = {.stop = &stop};
        error_reset(&err);
        assert_int_equal(input_open(&in, path, packing, false, &mem, &progress, &err),
                         ERR_CANCELLED);
    }
}

static void test_gaps(void **state) {
    (void)state;
    struct csv_options options = csv;
    options.ignore_errors = 1;
    expect("it", &options, SV("1,a\nx,b\n3\n4,d,e\n5,f\n"), "1~a;5~f;");
    expect("it", &options, SV("x,b\n\"y\nz\",\"\n\"\n"), "");
    expect("it", &options, SV("1,a\n2,\"b\n3,c\n"), "1~a;");
    options = csv;
    options.null_padding = 1;
    expect("itt", &options, SV("1,a\n2\n\n3,c,d\n"), "1~a~-;2~-~-;-~-~-;3~c~d;");
    expect_error("iNt", &options, SV("1,a\n2\n"), ERR_NOT_NULL,
                 "line 2, column 2 (c2): a NULL in a column that is NOT NULL");
    options = csv;
    options.comment = '#';
    expect("it", &options, SV("#x \"\n1,a#b,\"c\n # y\n2,\"b#\"# z\n3,c\n#"), "1~a;2~b#;3~c;");
    options = csv;
    options.lenient = 1;
    expect("it", &options, SV("\n1,a\n  \n2, \"b\" \n\n3,c,\n"), "1~a;2~b;3~c;");
    options = csv;
    options.skip = 2;
    options.header = 1;
    expect("it", &options, SV("\"note\n\na,b\n1,x\n"), "1~x;");
    expect("it", &csv, SV("1,a\r2,b\r3,c"), "1~a;2~b;3~c;");
    expect("it", &csv, SV("1,\"a\nb\"\r2,\"\r\"\r"), "1~a\nb;2~\r;");
}

/* A line with too many fields is that, whatever they hold; one with too few is read up to there. */
static void test_shape_first(void **state) {
    (void)state;
    expect_error("it", &csv, SV("1,a\nx,b,c\n"), ERR_BAD_COPY_FORMAT,
                 "line 2: 3 fields found, 2 expected");
    expect_error("iit", &csv, SV("1,2,a\nx,b\n"), ERR_INVALID_TEXT,
                 "line 2, column 1 (c1): \"x\" is not an integer");
    expect_error("iit", &csv, SV("1,2,a\n3,b,c\n"), ERR_INVALID_TEXT,
                 "line 2, column 2 (c2): \"b\" is not an integer");
    expect_error("it", &tbl, SV("1|a|\nx|b|\n"), ERR_INVALID_TEXT,
                 "line 2, column 1 (c1): \"x\" is not an integer");
}

/* One record of many megabytes is gone over once, and can be stopped. */
static void test_long_line(void **state) {
    (void)state;
    enum { BYTES = 40 << 20 };
    char *text = malloc(BYTES);
    memset(text, 'x', BYTES);
    for (i64 i = 0; i < BYTES; i += 100) {
        text[i] = ',';
    }
    write_file((struct sv){text, BYTES});
    free(text);
    struct table *table = table_of("it", 10);
    i64 begin = clock_ns();
    assert_int_equal(load(table, &csv, 1 << 12), ERR_BAD_COPY_FORMAT);
    assert_true(clock_ns() - begin < 20000000000LL); /* 10,000 blocks, each once */
    _Atomic i32 cancel = 1;
    struct stop stop = {.cancel = &cancel};
    struct load_progress progress = {.stop = &stop};
    i64 rows;
    error_reset(&err);
    assert_int_equal(load_file(table, path, &csv, pool, &progress, &rows), ERR_CANCELLED);
    table_close(table);
}

/* Records like TPC-H's lineitem: the speed to compare with 150 MB/s on one core. */
static void test_speed(void **state) {
    (void)state;
#ifdef WF_HARD
    const i64 lines = 20000;
#else
    const i64 lines = 400000;
#endif
    char *text = malloc((size_t)lines * 160);
    i64 n = 0;
    for (i64 i = 0; i < lines; i++) {
        u64 h = hash_u64((u64)i + 1);
        n += snprintf(
            text + n, 160,
            "%lld|%llu|%llu|%lld|%llu|%llu.%02llu|0.%02llu|0.0%llu|%c|%c|199%llu-0%llu-1%llu|"
            "1996-%02llu-12|1996-03-22|%s|TRUCK|egular courts above the %llx|\n",
            i / 4 + 1, h % 200000, h % 10000, i % 4 + 1, h % 50 + 1, h % 90000 + 900, h % 100,
            h % 11, h % 9, "ANR"[h % 3], "OF"[h % 2], h % 8, h % 9 + 1, h % 10, h % 12 + 1,
            h % 2 ? "DELIVER IN PERSON" : "COLLECT COD", h >> 40);
    }
    write_file((struct sv){text, n});
    free(text);
    struct pool *one = pool_open(1);
    for (i32 threads = 1; threads <= 2; threads++) {
        struct table *table = table_of("iiiiddddttDDDttt", 17);
        i64 rows, begin = clock_ns();
        struct pool *workers = threads == 1 ? one : pool;
        error_reset(&err);
        wf_status status = load_file(table, path, &tbl, workers, NULL, &rows);
        if (status) {
            print_message("%s\n", err.message);
        }
        assert_int_equal(status, ERR_OK);
        assert_int_equal(rows, lines);
        f64 seconds = (f64)(clock_ns() - begin) / 1e9;
        print_message("%s: %.0f MB/s\n", threads == 1 ? "1 thread" : "3 threads",
                      (f64)n / 1e6 / seconds);
        table_close(table);
    }
    pool_close(one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quotes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quotes_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tbl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_header_and_columns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shape_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_varchar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancel_and_progress, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_torn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_packed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bomb, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gaps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shape_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_speed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

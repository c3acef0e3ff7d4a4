/* test_fault_fuzz.c: statements of the test scripts, broken at random and run.
 *
 * Each round takes one script, opens a fresh database under random settings and runs the script's
 * statements in order, some of them changed: words dropped, doubled, swapped, taken from other
 * scripts, numbers made extreme, bytes flipped. Whatever comes out must end soon with rows or an
 * error that is no internal one, also when memory is refused on the way, and the control query must
 * be right afterwards. A second loop does the same to the bytes of a CSV file: all its rows appear,
 * or none.
 *
 * FUZZ_SECONDS (3) sets how long, FUZZ_SEED where to begin, FUZZ_LOG names a file that holds the
 * statement at hand when something breaks, FUZZ_CORPUS a pattern of scripts. */
#include <glob.h>

#include "fault.h"

struct piece {
    char *text;
};

struct script {
    struct piece *pieces;
    size_t count;
};

static struct script *scripts;
static size_t script_count;
static uint64_t rng;

static uint64_t next_random(void) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static size_t below(size_t n) {
    return (size_t)(next_random() % n);
}

static void *grow(void *ptr, size_t bytes) {
    void *out = realloc(ptr, bytes);
    assert_non_null(out);
    return out;
}

/* Adds the SQL of one record: what stands between its first line and a blank line or `----`. */
static void add_piece(struct script *script, const char *start, size_t len) {
    char *text = grow(NULL, len + 1);
    memcpy(text, start, len);
    text[len] = 0;
    script->pieces = grow(script->pieces, (script->count + 1) * sizeof *script->pieces);
    script->pieces[script->count++].text = text;
}

static void read_script(const char *path, struct script *script) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[20000];
    char sql[20000];
    size_t len = 0;
    bool inside = false;
    while (fgets(line, sizeof line, file)) {
        bool ends = line[0] == '\n' || strncmp(line, "----", 4) == 0;
        if (inside && ends) {
            add_piece(script, sql, len);
            inside = false;
        } else if (inside && len + strlen(line) < sizeof sql) {
            memcpy(sql + len, line, strlen(line));
            len += strlen(line);
        } else if (strncmp(line, "statement ", 10) == 0 || strncmp(line, "query ", 6) == 0) {
            inside = true;
            len = 0;
        }
    }
    if (inside) {
        add_piece(script, sql, len);
    }
    fclose(file);
}

static void read_corpus(void) {
    char pattern[1000];
    const char *given = getenv("FUZZ_CORPUS");
    const char *slash = strrchr(__FILE__, '/');
    snprintf(pattern, sizeof pattern, "%.*s/../sql/*/*.test", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".");
    glob_t found;
    assert_int_equal(glob(given ? given : pattern, 0, NULL, &found), 0);
    script_count = found.gl_pathc;
    scripts = calloc(script_count, sizeof *scripts);
    assert_non_null(scripts);
    for (size_t i = 0; i < script_count; i++) {
        read_script(found.gl_pathv[i], &scripts[i]);
    }
    globfree(&found);
}

static void free_corpus(void) {
    for (size_t i = 0; i < script_count; i++) {
        for (size_t k = 0; k < scripts[i].count; k++) {
            free(scripts[i].pieces[k].text);
        }
        free(scripts[i].pieces);
    }
    free(scripts);
}

static const char *random_piece(void) {
    const struct script *script = &scripts[below(script_count)];
    return script->count ? script->pieces[below(script->count)].text : "select 1";
}

enum { TEXT_MAX = 60000, WORDS_MAX = 4000 };

struct words {
    const char *at[WORDS_MAX];
    size_t len[WORDS_MAX];
    size_t count;
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

static void cut_words(const char *text, struct words *out) {
    out->count = 0;
    for (const char *at = text; *at && out->count < WORDS_MAX;) {
        const char *start = at;
        if (*at == '\'' || *at == '"') {
            at = strchr(at + 1, *at);
            at = at ? at + 1 : start + strlen(start);
        } else if (is_word(*at)) {
            while (is_word(*at)) {
                at++;
            }
        } else {
            at++;
        }
        if (*start != ' ' && *start != '\n') {
            out->at[out->count] = start;
            out->len[out->count++] = (size_t)(at - start);
        }
    }
}

static const char *const spices[] = {
    "0",
    "-1",
    "1",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1e308",
    "-1e-308",
    "'NaN'",
    "0.1",
    "99999999999999999999999999999999999999",
    "null",
    "true",
    "false",
    "''",
    "'%_%'",
    "'\\'",
    "'2000-02-29'",
    "date '5874897-12-31'",
    "distinct",
    "not",
    "and",
    "or",
    "case when",
    "then",
    "else",
    "end",
    "(",
    ")",
    ",",
    "*",
    "/",
    "%",
    "||",
    "::int",
    "::text",
    "::date",
    "::decimal(18,9)",
    "::smallint",
    "::real",
    "::boolean",
    "is null",
    "in (1, 2, null)",
    "between",
    "like",
    "group by 1",
    "order by 1 desc",
    "limit 3",
    "offset 2",
    "limit 0",
    "having",
    "where",
    "coalesce(",
    "nullif(",
    "count(*)",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "upper(",
    "length(",
    "substring(",
    "abs(",
    "cast(",
    "as",
    "from",
    "join",
    "on",
    "explain",
    "explain analyze",
    "explain (program, opcodes)",
    "with q as (select 1 as a)",
    "q",
    "$1",
    "default",
    "values",
    "1 = 1",
    "interval '1' month",
    "+",
    "-",
    "=",
    "<>",
    "greatest(",
    "concat(",
    "trim(",
    "round(",
    "extract(year from",
    "is distinct from",
};

static void put(char *out, size_t *len, const char *text, size_t count) {
    if (*len + count + 2 < TEXT_MAX) {
        memcpy(out + *len, text, count);
        *len += count;
        out[(*len)++] = ' ';
    }
}

enum word_class { WORD_NUMBER, WORD_STRING, WORD_NAME, WORD_MARK };

static enum word_class class_of(const char *word) {
    if (*word >= '0' && *word <= '9') {
        return WORD_NUMBER;
    }
    return *word == '\'' ? WORD_STRING : is_word(*word) ? WORD_NAME : WORD_MARK;
}

/* A word that can stand where `word` stands, more often than not. */
static size_t similar_word(const struct words *words, const char *word) {
    size_t found = below(words->count);
    for (int tries = 0; tries < 12 && class_of(words->at[found]) != class_of(word); tries++) {
        found = below(words->count);
    }
    return found;
}

/* Writes `text` again word by word, with a few changes. */
static void change_words(const char *text, char *out) {
    static struct words mine;
    static struct words other;
    cut_words(text, &mine);
    size_t edits = below(3) ? 1 : 1 + below(4);
    uint32_t odds = (uint32_t)(mine.count / edits + 1);
    size_t len = 0;
    for (size_t i = 0; i < mine.count; i++) {
        if (below(odds) != 0) {
            put(out, &len, mine.at[i], mine.len[i]);
            continue;
        }
        const char *spice = spices[below(sizeof spices / sizeof *spices)];
        size_t from = below(mine.count);
        switch (below(16)) {
        case 0: /* dropped */
            break;
        case 1: /* doubled */
            put(out, &len, mine.at[i], mine.len[i]);
            put(out, &len, mine.at[i], mine.len[i]);
            break;
        case 2: /* another word of the statement instead */
            put(out, &len, mine.at[from], mine.len[from]);
            break;
        case 3: /* something known to be hard instead */
            put(out, &len, spice, strlen(spice));
            break;
        case 4: /* the same, beside it */
            put(out, &len, mine.at[i], mine.len[i]);
            put(out, &len, spice, strlen(spice));
            break;
        case 5: /* a run of the statement again */
            for (size_t k = from; k < mine.count && k < from + below(12); k++) {
                put(out, &len, mine.at[k], mine.len[k]);
            }
            put(out, &len, mine.at[i], mine.len[i]);
            break;
        case 6: /* a similar word of another statement */
        case 7:
            cut_words(random_piece(), &other);
            if (other.count) {
                from = similar_word(&other, mine.at[i]);
                put(out, &len, other.at[from], other.len[from]);
            }
            break;
        case 8: /* a similar word of this one */
        case 9:
        case 10:
        case 11:
        case 12:
        case 13:
            from = similar_word(&mine, mine.at[i]);
            put(out, &len, mine.at[from], mine.len[from]);
            break;
        default: /* a run of another statement */
            cut_words(random_piece(), &other);
            from = other.count ? below(other.count) : 0;
            for (size_t k = from; k < other.count && k < from + 1 + below(8); k++) {
                put(out, &len, other.at[k], other.len[k]);
            }
        }
    }
    out[len] = 0;
}

static void change_bytes(char *text, size_t len) {
    for (size_t edits = below(3) + 1; edits > 0 && len > 0; edits--) {
        char byte = (char)next_random();
        text[below(len)] = byte ? byte : ' ';
    }
}

static void log_statement(const char *sql) {
    const char *path = getenv("FUZZ_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n;\n", sql);
        fclose(file);
    }
}

static void bind_random(wf_statement *statement, int32_t param) {
    static const int64_t numbers[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, 1 << 20, 100};
    static const char *const texts[] = {"",     "1",    "abc", "2020-02-30",
                                        "-0.5", "true", "%",   "\xc3\xa9"};
    wf_int128 wide = {next_random(), (int64_t)below(3) - 1};
    switch (below(7)) {
    case 0:
        wf_bind_null(statement, param);
        break;
    case 1:
        wf_bind_int64(statement, param, numbers[below(8)]);
        break;
    case 2:
        wf_bind_double(statement, param, (double)numbers[below(8)] * 0.7);
        break;
    case 3:
        wf_bind_decimal(statement, param, wide, (int32_t)below(45) - 3);
        break;
    case 4:
        wf_bind_date(statement, param, (int32_t)numbers[below(8)]);
        break;
    case 5:
        wf_bind_bool(statement, param, (int)below(2));
        break;
    default:
        wf_bind_text(statement, param, texts[below(8)], -1);
    }
}

/* The statement with some of its numbers and strings as parameters, executed a few times. */
static wf_status run_prepared(wf_connection *conn, const char *sql, wf_result **out) {
    static struct words words;
    static char text[TEXT_MAX];
    cut_words(sql, &words);
    size_t len = 0;
    int32_t params = 0;
    for (size_t i = 0; i < words.count; i++) {
        enum word_class class = class_of(words.at[i]);
        if (class <= WORD_STRING && params < 9 && below(2)) {
            char name[4] = {'$', (char)('1' + params++), 0, 0};
            put(text, &len, name, 2);
        } else {
            put(text, &len, words.at[i], words.len[i]);
        }
    }
    text[len] = 0;
    log_statement(text);
    wf_statement *statement = NULL;
    wf_status status = wf_prepare(conn, text, &statement);
    for (size_t again = below(4); !status && again > 0; again--) {
        for (int32_t p = 1; p <= params; p++) {
            bind_random(statement, p);
        }
        wf_result_close(*out);
        *out = NULL;
        status = wf_execute(statement, out);
    }
    wf_statement_close(statement);
    return status;
}

static void run_one(wf_connection *conn, const char *sql) {
    static long long answered;
    static long long refused;
    log_statement(sql);
    int64_t start = clock_ns();
    wf_result *result = NULL;
    bool prepared = below(6) == 0;
    bool starved = below(8) == 0;
    memory_fail_at(starved ? (int64_t)below(80) + 1 : 0);
    wf_status status = prepared ? run_prepared(conn, sql, &result) : wf_query(conn, sql, &result);
    int64_t rows = 0;
    if (!status && result && below(4) == 0) { /* through the whole of it, whatever comes */
        const wf_batch *batch = NULL;
        while (wf_result_next_batch(result, &batch) == WF_OK && batch && rows < 1000000) {
            rows += wf_batch_rows(batch);
        }
        assert_string_not_equal(wf_result_error(result)->sqlstate, "XX000");
    }
    memory_fail_at(0);
    int64_t ms = (clock_ns() - start) / 1000000;
    const wf_error *error = wf_connection_error(conn);
    if (status) {
        char text[3000];
        wf_error_text(error, sql, text, sizeof text);
        assert_true(error->position >= -1 && (prepared || error->position <= (int64_t)strlen(sql)));
    } else if (result && rows == 0 && wf_result_row_count(result) < 5000) {
        static char text[100000];
        flatten(result, text, sizeof text);
    }
    if (strcmp(error->sqlstate, "XX000") == 0 || ms > 15000) {
        fprintf(stderr, "%lld ms\n", (long long)ms);
        show_error(conn, sql);
        fprintf(stderr, "----\n%s\n----\n", sql);
        fail();
    }
    wf_result_close(result);
    answered += !status;
    refused += status != WF_OK;
    if ((answered + refused) % 10000 == 0 && getenv("FAULT_VERBOSE")) {
        fprintf(stderr, "%lld answered, %lld refused\n", answered, refused);
    }
}

static void random_settings(wf_connection *conn) {
    static const char *const choices[] = {
        "set vector_rows = 1",    "set vector_rows = 3",  "set morsel_rows = 7",
        "set tablet_rows = 4",    "set tablet_rows = 64", "set fusion = off",
        "set optimizer = off",    "set narrow = off",     "set fusion = off",
        "set morsel_rows = 1000",
    };
    run(conn, "set statement_timeout = 2000");
    for (size_t i = below(4); i > 0; i--) {
        run(conn, choices[below(sizeof choices / sizeof *choices)]);
    }
}

static bool makes_tables(const char *sql) {
    return strncmp(sql, "create", 6) == 0 || strncmp(sql, "insert", 6) == 0 ||
           strncmp(sql, "copy", 4) == 0;
}

static void fuzz_round(int64_t end_ns) {
    static char text[TEXT_MAX];
    const struct script *script = &scripts[below(script_count)];
    struct fault_db f = open_with(below(2) ? "1" : "3", "64MB");
    make_control(f.conn);
    random_settings(f.conn);
    for (size_t i = 0; i < script->count && clock_ns() < end_ns; i++) {
        const char *sql = script->pieces[i].text;
        bool setup = makes_tables(sql);
        if (setup) {
            wf_query(f.conn, sql, NULL);
        }
        for (size_t again = setup ? below(2) : 1 + below(3); again > 0; again--) {
            change_words(sql, text);
            if (below(8) == 0) {
                change_bytes(text, strlen(text));
            }
            run_one(f.conn, text);
        }
    }
    wf_query(f.conn, "rollback", NULL); /* the script may have left a transaction open, or failed */
    run(f.conn, "set fusion = on; set optimizer = on; set search_path = public");
    check_control(f.conn);
    int64_t results_closed = wf_memory_used(f.db);
    assert_true(results_closed > 0 && results_closed <= 64 << 20);
    close_both(f);
}

static int64_t seconds(void) {
    const char *text = getenv("FUZZ_SECONDS");
    return text ? atoll(text) : 3;
}

static void test_statements(void **state) {
    (void)state;
    const char *seed = getenv("FUZZ_SEED");
    rng = seed ? strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 88172645463325252ULL;
    int64_t end = clock_ns() + seconds() * 1000000000;
    while (clock_ns() < end) {
        fuzz_round(end);
    }
}

static void fuzz_file(struct fault_db f, const char *path, bool text_format) {
    static char bytes[4000];
    size_t len = 0;
    int64_t lines = (int64_t)below(40);
    char mark = text_format ? '|' : ',';
    for (int64_t i = 0; i < lines; i++) {
        len += (size_t)snprintf(bytes + len, sizeof bytes - len,
                                "%lld%c%s%lld%s%c%lld.%02lld%c200%lld-01-0%lld\n", (long long)i,
                                mark, i % 3 || text_format ? "" : "\"", (long long)i,
                                i % 3 || text_format ? "" : "\"", mark, (long long)i * 7,
                                (long long)i, mark, (long long)(i % 10), (long long)(i % 9 + 1));
    }
    static const char marks[] = ",|\"\n\r\\'\t .-+e0159\xc3\xa9\xff";
    for (size_t edits = below(5); edits > 0 && len > 0; edits--) {
        bytes[below(len)] = below(4) ? marks[below(sizeof marks - 1)] : (char)next_random();
    }
    len -= len && below(4) == 0 ? below(len) : 0;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
    char sql[500];
    snprintf(sql, sizeof sql, "copy f from '%s' with (%s%s)", path,
             text_format ? "delimiter '|'" : "format csv", below(4) ? "" : ", header");
    wf_result *result = NULL;
    wf_status status = wf_query(f.conn, sql, &result);
    int64_t loaded = status ? 0 : wf_result_rows_affected(result);
    wf_result_close(result);
    assert_true(status || loaded <= 4000);
    assert_string_not_equal(wf_connection_error(f.conn)->sqlstate, "XX000");
    char want[40];
    snprintf(want, sizeof want, "%lld;", (long long)loaded);
    expect(f.conn, "select count(*) from f", want);
    run(f.conn, "select a, b, c, d from f order by b, a");
    run(f.conn, "drop table f; create table f (a int, b text, c decimal(12,2), d date)");
}

static void test_files(void **state) {
    (void)state;
    char path[300];
    scratch_path(path, "fuzz.csv");
    struct fault_db f = open_with("2", NULL);
    make_control(f.conn);
    run(f.conn, "create table f (a int, b text, c decimal(12,2), d date)");
    int64_t end = clock_ns() + seconds() * 300000000;
    while (clock_ns() < end) {
        fuzz_file(f, path, below(2) == 0);
    }
    check_control(f.conn);
    close_both(f);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_files),
    };
    read_corpus();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free_corpus();
    return failed;
}

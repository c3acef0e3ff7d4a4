/* script.c: runs one sqllogictest script.
 *
 * Records: `statement ok`, `statement error [SQLSTATE]`, `query TYPES [nosort|rowsort|valuesort] [label]` with the
 * expected values after `----`, one per line, or one row per line with tabs between values, or `N values hashing to
 * MD5`. `connection NAME` before a record runs it, and only it, on a connection of that name (made on first use); other
 * records run on the script's own. Also skipif / onlyif (we answer to "warpfox" and
 * "postgresql"), hash-threshold, halt and comments.
 * TYPES: I prints integers, R with three decimals, T and everything else as the shell prints it; NULL as NULL, the
 * empty text as (empty). */
#define _GNU_SOURCE
#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defs/op.def"
#include "defs/real.def"
#include "defs/refusal.def"

struct lines {
    char **items;
    int64_t count, cap;
};

struct script {
    const char *path;
    const struct cell *cell;
    const struct run_options *options;
    struct tally *tally;
    struct lines text;
    int64_t at; /* next line */
    int reports;
    wf_connection *conn; /* of the record at hand */
    wf_connection *own;  /* the script's own */
    wf_database *db;
    const char *file;    /* the database lies there; NULL: in memory */
    bool keeps_nothing;  /* so far sessions have nothing that a new one would not have */
    bool changed;        /* since it was opened */
    struct {
        char name[64];
        wf_connection *conn;
    } others[8];
};

static void lines_push(struct lines *lines, const char *text, size_t len) {
    if (lines->count == lines->cap) {
        lines->cap = lines->cap ? lines->cap * 2 : 64;
        lines->items = realloc(lines->items, (size_t)lines->cap * sizeof(char *));
    }
    char *copy = malloc(len + 1);
    if (!lines->items || !copy) {
        fputs("runner: out of memory\n", stderr);
        exit(2);
    }
    memcpy(copy, text, len);
    copy[len] = 0;
    lines->items[lines->count++] = copy;
}

static void lines_free(struct lines *lines) {
    for (int64_t i = 0; i < lines->count; i++) {
        free(lines->items[i]);
    }
    free(lines->items);
    memset(lines, 0, sizeof *lines);
}

static bool read_lines(const char *path, struct lines *out) {
    FILE *in = fopen(path, "r");
    if (!in) {
        return false;
    }
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t len; (len = getline(&line, &cap, in)) >= 0;) {
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
            len--;
        }
        lines_push(out, line, (size_t)len);
    }
    free(line);
    fclose(in);
    return true;
}

static void report(struct script *s, int64_t line, const char *sql, const char *what) {
    s->tally->failed++;
    if (s->reports++ < s->options->max_reports) {
        printf("FAIL %s:%lld [%s]\n  %s\n  %s\n", s->path, (long long)line, s->cell->name, sql, what);
    }
}

/* The SQL of the record at s->at: lines up to a blank one or `----`. */
static char *take_sql(struct script *s) {
    size_t len = 0;
    int64_t end = s->at;
    while (end < s->text.count && s->text.items[end][0] && strcmp(s->text.items[end], "----") != 0) {
        len += strlen(s->text.items[end]) + 1;
        end++;
    }
    char *sql = malloc(len + 1);
    char *to = sql;
    for (; s->at < end; s->at++) {
        size_t n = strlen(s->text.items[s->at]);
        memcpy(to, s->text.items[s->at], n);
        to[n] = '\n';
        to += n + 1;
    }
    *to = 0;
    return sql;
}

static bool is_listed(const char *const *names, size_t count, const char *word, size_t len) {
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether an opcode is of a list whose opcodes are refused for that reason. */
static bool op_refused(const char *reason, const char *word, size_t len) {
    static const char *const made[] = {
#define X(A, name, a, b, c, fn, text) #name,
        WF_OPS_TEXT(X, )
#undef X
    };
    static const char *const read[] = {
#define X(A, name, r, a, b, c, fn, text) #name,
        WF_OPS_HOST(X, )
#undef X
    };
    static const char *const rare[] = {
#define X(A, name, ...) #name,
        WF_OPS_RARE(X, ) WF_OPS_MAKE(X, )
#undef X
    };
    static const char *const woven[] = { /* of those read, those that woven kernels have */
#define X(A, name, part, body) #name,
        WF_OPS_AHEAD(X, ) WF_OPS_PARTLY(X, )
#undef X
    };
    bool is_woven = is_listed(woven, sizeof woven / sizeof *woven, word, len);
    static const char *const control[] = {"FROUND", "VARIANCE", "TRY", "MEET", /* rare ones, too, and shapes */
                                          "so wide a pipeline", "so long a pipeline"};
    if (strcmp(reason, "MAKES") == 0) {
        return is_listed(made, sizeof made / sizeof *made, word, len);
    }
    if (strcmp(reason, "READS") == 0) {
        return is_listed(read, sizeof read / sizeof *read, word, len);
    }
    if (strcmp(reason, "CODE_VM") == 0 || strcmp(reason, "COMPILER") == 0) {
        return is_woven || is_listed(rare, sizeof rare / sizeof *rare, word, len) ||
               is_listed(control, sizeof control / sizeof *control, word, len);
    }
    return true;
}

/* Whether refusal.def has the reason, and it is a reason for what the text names. */
static bool is_known_refusal(const char *text) {
    static const struct {
        const char *name, *before, *after;
    } reasons[] = {
#define X(A, name, before, after, why) {#name, before, after},
        WF_REFUSALS(X, )
#undef X
    };
    size_t len = strlen(text);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        size_t head = strlen(reasons[i].before), tail = strlen(reasons[i].after);
        if (len >= head + tail && memcmp(text, reasons[i].before, head) == 0 &&
            strcmp(text + len - tail, reasons[i].after) == 0 &&
            op_refused(reasons[i].name, text + head, len - head - tail)) {
            return true;
        }
    }
    return false;
}

/* A step that the GPU refuses by name, for a reason of refusal.def; --verbose lists them. */
static bool is_refusal(const struct script *s, const wf_error *error) {
    static const char words[] = "cannot run on the GPU: ";
    const char *at = strstr(error->message, words);
    bool refused = s->cell->gpu && strcmp(error->sqlstate, "0A000") == 0 && at &&
                   is_known_refusal(at + strlen(words));
    if (refused && s->options->verbose) {
        printf("REFUSED %s:%lld [%s] %s\n", s->path, (long long)s->at, s->cell->name, error->message);
    }
    return refused;
}

/* Outcomes that end a record without a verdict on its rows; true when the record is dealt with. */
static bool excused(struct script *s, const wf_error *error) {
    if (s->cell->tiny_memory && strcmp(error->sqlstate, "53200") == 0) {
        s->tally->skipped++;
        return true;
    }
    if (is_refusal(s, error)) {
        s->tally->refused++;
        return true;
    }
    if (s->options->allow_unsupported && strcmp(error->sqlstate, "0A000") == 0) {
        s->tally->skipped++;
        return true;
    }
    return false;
}

/* A statement that must succeed but that the GPU refuses by name is run where it can be, so that the records after it
 * find its rows. */
static bool run_elsewhere(struct script *s, const char *sql) {
    const wf_error *error = wf_connection_error(s->conn);
    if (!is_refusal(s, error)) {
        return false;
    }
    bool fine = wf_set(s->conn, "device", "cpu") == WF_OK && wf_query(s->conn, sql, NULL) == WF_OK;
    return wf_set(s->conn, "device", "gpu") == WF_OK && fine;
}

/* Whether a statement leaves nothing in its session, as far as its first words tell. */
static bool is_passing(const char *sql) {
    static const char *const begins[] = {"create table ",         "create view ",   "create index ",
                                         "create unique index ",  "insert into ",   "update ",
                                         "delete from ",          "alter table ",   "drop table ",
                                         "call tpch",             "call ssb",       "create or replace view ",
                                         "create schema ",        "comment on ",    "drop view ",
                                         "drop index ",           "call logiql",    "vacuum",
                                         "checkpoint",            "analyze"};
    bool passing = false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        passing = passing || strncasecmp(sql, begins[i], strlen(begins[i])) == 0;
    }
    return passing;
}

static bool open_script(struct script *s);
static void close_script(struct script *s);

/* A file is closed and opened where tables have changed and no session would miss anything, so that what
 * follows reads from it. */
static void open_again(struct script *s) {
    if (s->file && s->changed && s->keeps_nothing) {
        close_script(s);
        if (!open_script(s)) {
            exit(2);
        }
    }
    s->changed = false;
}

static void run_statement(struct script *s, const char *expect, const char *state) {
    int64_t line = s->at + 1;
    char *sql = take_sql(s);
    s->changed = true;
    s->keeps_nothing = s->keeps_nothing && is_passing(sql);
    wf_status status = wf_query(s->conn, sql, NULL);
    const wf_error *error = wf_connection_error(s->conn);
    char what[1000];
    if (strcmp(expect, "ok") == 0) {
        if (status == WF_OK) {
            s->tally->passed++;
        } else if (run_elsewhere(s, sql)) {
            s->tally->refused++;
        } else if (!excused(s, error)) {
            snprintf(what, sizeof what, "expected success, got %s: %s", error->sqlstate, error->message);
            report(s, line, sql, what);
        }
    } else if (status == WF_OK) {
        report(s, line, sql, "expected an error, got success");
    } else if (!*state || strcmp(state, error->sqlstate) == 0) {
        s->tally->passed++;
    } else if (!excused(s, error)) {
        snprintf(what, sizeof what, "expected SQLSTATE %s, got %s: %s", state, error->sqlstate, error->message);
        report(s, line, sql, what);
    }
    free(sql);
}

static void render(const wf_batch *batch, int32_t col, int64_t row, char type, struct lines *out) {
    char buf[256];
    if (wf_batch_is_null(batch, col, row)) {
        lines_push(out, "NULL", 4);
        return;
    }
    wf_text text = wf_batch_text(batch, col, row);
    size_t shown = wf_value_text(batch, col, row, buf, sizeof buf);
    if (text.ptr && shown == (size_t)text.len) { /* bytes are shown otherwise */
        lines_push(out, text.len ? text.ptr : "(empty)", text.len ? (size_t)text.len : 7);
        return;
    }
    if (type == 'R') {
        double value = strtod(buf, NULL);
        snprintf(buf, sizeof buf, "%.3f", value);
    } else if (type == 'I' && strchr(buf, '.')) {
        snprintf(buf, sizeof buf, "%lld", (long long)strtod(buf, NULL));
    }
    lines_push(out, buf, strlen(buf));
}

static wf_status collect(wf_result *result, const char *types, struct lines *out) {
    int32_t cols = wf_result_column_count(result);
    const wf_batch *batch;
    wf_status status;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        for (int64_t row = 0; row < wf_batch_rows(batch); row++) {
            for (int32_t col = 0; col < cols; col++) {
                render(batch, col, row, types[col], out);
            }
        }
    }
    return status;
}

static int32_t sort_cols;

static int compare_rows(const void *a, const void *b) {
    char *const *x = a, *const *y = b;
    for (int32_t i = 0; i < sort_cols; i++) {
        int order = strcmp(x[i], y[i]);
        if (order) {
            return order;
        }
    }
    return 0;
}

static void sort_values(struct lines *values, const char *mode, int32_t cols) {
    if (strcmp(mode, "nosort") == 0 || values->count == 0) {
        return;
    }
    sort_cols = strcmp(mode, "rowsort") == 0 ? cols : 1;
    qsort(values->items, (size_t)(values->count / sort_cols), sizeof(char *) * (size_t)sort_cols, compare_rows);
}

/* Expected values: as written, rows split at tabs. */
static void take_expected(struct script *s, struct lines *out) {
    if (s->at < s->text.count && strcmp(s->text.items[s->at], "----") == 0) {
        s->at++;
    }
    for (; s->at < s->text.count && s->text.items[s->at][0]; s->at++) {
        const char *from = s->text.items[s->at];
        for (const char *tab; (tab = strchr(from, '\t')); from = tab + 1) {
            lines_push(out, from, (size_t)(tab - from));
        }
        lines_push(out, from, strlen(from));
    }
}

static bool matches(const struct lines *got, const struct lines *want, char *what, size_t cap) {
    long long count;
    char digest[40], hex[33];
    if (want->count == 1 && sscanf(want->items[0], "%lld values hashing to %32s", &count, digest) == 2) {
        struct md5 md5;
        md5_init(&md5);
        for (int64_t i = 0; i < got->count; i++) {
            md5_add(&md5, got->items[i], strlen(got->items[i]));
            md5_add(&md5, "\n", 1);
        }
        md5_hex(&md5, hex);
        snprintf(what, cap, "expected %lld values hashing to %s, got %lld to %s", count, digest,
                 (long long)got->count, hex);
        return count == got->count && strcmp(hex, digest) == 0;
    }
    for (int64_t i = 0; i < got->count && i < want->count; i++) {
        if (strcmp(got->items[i], want->items[i]) != 0) {
            snprintf(what, cap, "value %lld: expected `%.100s`, got `%.100s`", (long long)i + 1, want->items[i],
                     got->items[i]);
            return false;
        }
    }
    snprintf(what, cap, "expected %lld values, got %lld", (long long)want->count, (long long)got->count);
    return got->count == want->count;
}

static void failed(struct script *s, int64_t line, const char *sql, const wf_error *error) {
    char what[1000];
    if (run_elsewhere(s, sql)) { /* what it changes, and returns, counts for the records after it */
        s->tally->refused++;
    } else if (!excused(s, error)) {
        snprintf(what, sizeof what, "%s: %s", error->sqlstate, error->message);
        report(s, line, sql, what);
    }
}

/* Whether the answer stays the same however often it is asked for. */
static bool only_reads(const char *sql) {
    static const char *const firsts[] = {"select", "with", "values", "from", "table"};
    static const char *const others[] = {"nextval", "setval", "currval", "lastval", "returning", "random",
                                         "insert",  "update", "delete",  "clock",   "uuid",      "into"};
    bool reads = false;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        reads = reads || strncasecmp(sql, firsts[i], strlen(firsts[i])) == 0;
    }
    for (const char *at = sql; *at && reads; at++) {
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            reads = reads && strncasecmp(at, others[i], strlen(others[i])) != 0;
        }
    }
    return reads;
}

/* Asks once; whether the answer is the one wanted. */
static bool ask(struct script *s, int64_t line, const char *sql, const char *types, const char *mode,
                const struct lines *want) {
    struct lines got = {0};
    bool right = false;
    wf_result *result = NULL;
    char what[1000];
    if (wf_query(s->conn, sql, &result) != WF_OK) {
        failed(s, line, sql, wf_connection_error(s->conn));
    } else if (!result || wf_result_column_count(result) != (int32_t)strlen(types)) {
        snprintf(what, sizeof what, "expected %d columns, got %d", (int)strlen(types),
                 result ? (int)wf_result_column_count(result) : 0);
        report(s, line, sql, what);
    } else if (collect(result, types, &got) != WF_OK) {
        failed(s, line, sql, wf_result_error(result));
    } else {
        sort_values(&got, mode, (int32_t)strlen(types));
        right = matches(&got, want, what, sizeof what);
        if (!right) {
            report(s, line, sql, what);
        }
    }
    wf_result_close(result);
    lines_free(&got);
    return right;
}

static void run_query(struct script *s, const char *types, const char *mode) {
    int64_t line = s->at + 1;
    char *sql = take_sql(s);
    struct lines want = {0};
    take_expected(s, &want);
    bool right = ask(s, line, sql, types, mode, &want);
    for (int i = 0; right && i < s->options->again && only_reads(sql); i++) {
        right = ask(s, line, sql, types, mode, &want);
    }
    s->tally->passed += right;
    lines_free(&want);
    free(sql);
}

/* Tables of which only the optimiser sees the keys are multiplied, on a card that is simulated. */
static bool multiplies_on_card(const struct cell *cell) {
    bool off = false;
    for (int i = 0; i < 10 && cell->set[i][0]; i++) {
        off |= strcmp(cell->set[i][0], "optimizer") == 0 && strcmp(cell->set[i][1], "off") == 0;
    }
    return off && cell->gpu;
}

/* `who` is a database, or a kind of cell: tiny-memory refuses what takes much, gpu-unoptimised takes
 * long for products, a card gives a table's rows in no order. */
static bool skips(const struct script *s, const char *verb, const char *who) {
    bool us = strcmp(who, "warpfox") == 0 || strcmp(who, "postgresql") == 0 ||
              (strcmp(who, "tiny-memory") == 0 && s->cell->tiny_memory) ||
              (strcmp(who, "card") == 0 && s->cell->gpu) ||
              (strcmp(who, "gpu-unoptimised") == 0 && multiplies_on_card(s->cell));
    return strcmp(verb, "skipif") == 0 ? us : !us;
}

static void skip_record(struct script *s) {
    while (s->at < s->text.count && s->text.items[s->at][0]) {
        s->at++;
    }
}

static wf_connection *open_connection(struct script *s) {
    wf_connection *conn = NULL;
    if (wf_connect(s->db, &conn) != WF_OK) {
        report(s, s->at, "", "cannot connect");
        return NULL;
    }
    for (int i = 0; i < 10 && s->cell->set[i][0]; i++) {
        if (wf_set(conn, s->cell->set[i][0], s->cell->set[i][1]) != WF_OK) {
            report(s, 0, s->cell->set[i][0], wf_connection_error(conn)->message);
        }
    }
    return conn;
}

static void use_connection(struct script *s, const char *name) {
    for (int i = 0; i < 8; i++) {
        if (!s->others[i].conn) {
            snprintf(s->others[i].name, sizeof s->others[i].name, "%s", name);
            s->others[i].conn = open_connection(s);
        }
        if (strcmp(s->others[i].name, name) == 0) {
            s->conn = s->others[i].conn;
            return;
        }
    }
    report(s, s->at, name, "too many connections");
}

static void run_records(struct script *s) {
    bool skip = false;
    while (s->at < s->text.count) {
        char word[3][64] = {"", "", ""};
        const char *line = s->text.items[s->at++];
        if (!line[0] || line[0] == '#') {
            continue;
        }
        sscanf(line, "%63s %63s %63s", word[0], word[1], word[2]);
        if (strcmp(word[0], "skipif") == 0 || strcmp(word[0], "onlyif") == 0) {
            skip = skip || skips(s, word[0], word[1]);
        } else if (strcmp(word[0], "hash-threshold") == 0) {
            continue;
        } else if (strcmp(word[0], "halt") == 0) {
            if (!skip) {
                return;
            }
            skip = false;
        } else if (skip) {
            skip_record(s);
            skip = false;
        } else if (strcmp(word[0], "statement") == 0) {
            run_statement(s, word[1], word[2]);
            s->conn = s->own;
        } else if (strcmp(word[0], "query") == 0) {
            open_again(s);
            run_query(s, word[1], word[2][0] ? word[2] : "nosort");
            s->conn = s->own;
        } else if (strcmp(word[0], "connection") == 0) {
            s->keeps_nothing = false;
            use_connection(s, word[1]);
        } else {
            report(s, s->at, line, "unknown record");
            skip_record(s);
        }
    }
}

static bool open_script(struct script *s) {
    wf_option open[8] = {{NULL, NULL}};
    wf_error error;
    int count = 0;
    for (int i = 0; i < 5 && s->cell->open[i][0]; i++) {
        if (strcmp(s->cell->open[i][0], "file") != 0) {
            open[count++] = (wf_option){s->cell->open[i][0], s->cell->open[i][1]};
            open[count] = (wf_option){NULL, NULL};
        }
    }
    if (wf_open(s->file, open, &s->db, &error) != WF_OK) {
        report(s, 0, "", error.message);
        return false;
    }
    s->own = s->conn = open_connection(s);
    return s->own != NULL;
}

static void close_script(struct script *s) {
    for (int i = 0; i < 8; i++) {
        wf_disconnect(s->others[i].conn);
        s->others[i].conn = NULL;
    }
    wf_disconnect(s->own);
    wf_close(s->db);
    s->own = s->conn = NULL;
    s->db = NULL;
}

void script_run(const char *path, const struct cell *cell, const struct run_options *options,
                struct tally *tally) {
    struct script s = {.path = path, .cell = cell, .options = options, .tally = tally, .keeps_nothing = true};
    char file[64];
    for (int i = 0; i < 5 && cell->open[i][0]; i++) {
        s.file = strcmp(cell->open[i][0], "file") == 0 ? file : s.file;
    }
    (void)snprintf(file, sizeof file, "/tmp/warpfox-cell-%ld.wf", (long)getpid());
    if (!read_lines(path, &s.text)) {
        report(&s, 0, "", "cannot read the script");
    } else if (open_script(&s)) {
        run_records(&s);
    }
    close_script(&s);
    lines_free(&s.text);
    if (s.file) {
        (void)remove(file);
    }
}

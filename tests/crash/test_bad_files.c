/* test_bad_files.c: files that cannot be opened, or not read: what is said, and that nothing is touched.
 *
 * A good database (a clean file, or one with the log that a kill leaves) is spoilt in one way at a time;
 * it is then opened for writing and for reading only. The table below has the whole message and the whole hint
 * of each. Whatever lies in the folder is compared byte by byte with what lay there before. */
#define _GNU_SOURCE
#include "crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/file_int.h"

static char folder[120], path[200], log_path[210];
static char good_folder[100];

/* --- all that lies in the folder --- */

struct thing {
    char name[100];
    mode_t mode;
    i64 bytes;
    u64 sum;
};
enum { THINGS = 16 };
struct things {
    struct thing items[THINGS];
    int count;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct thing *)a)->name, ((const struct thing *)b)->name);
}

static char *slurp(const char *from, i64 *out_bytes) {
    FILE *in = fopen(from, "rb");
    assert_non_null(in);
    char *text = malloc(8 << 20);
    *out_bytes = (i64)fread(text, 1, 8 << 20, in);
    (void)fclose(in);
    return text;
}

static void spill(const char *to, const char *text, i64 bytes) {
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, (size_t)bytes, out), bytes);
    assert_int_equal(fclose(out), 0);
}

static struct things look(void) {
    struct things all = {.count = 0};
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        struct thing *thing = &all.items[all.count++];
        char full[400];
        (void)snprintf(thing->name, sizeof thing->name, "%.99s", entry->d_name);
        (void)snprintf(full, sizeof full, "%s/%s", folder, thing->name);
        struct stat info;
        assert_int_equal(lstat(full, &info), 0);
        thing->mode = info.st_mode;
        thing->bytes = 0;
        thing->sum = 0;
        if (S_ISREG(info.st_mode)) {
            char *text = slurp(full, &thing->bytes);
            thing->sum = bytes_sum(text, thing->bytes, 0);
            free(text);
        }
    }
    (void)closedir(dir);
    qsort(all.items, (size_t)all.count, sizeof all.items[0], by_name);
    return all;
}

static void same(const struct things *before, const struct things *after, const char *what) {
    bool equal = before->count == after->count;
    for (int i = 0; equal && i < before->count; i++) {
        const struct thing *a = &before->items[i], *b = &after->items[i];
        equal = strcmp(a->name, b->name) == 0 && a->mode == b->mode && a->bytes == b->bytes && a->sum == b->sum;
    }
    if (!equal) {
        for (int side = 0; side < 2; side++) {
            const struct things *all = side ? after : before;
            for (int i = 0; i < all->count; i++) {
                fprintf(stderr, "%s %s: %lld bytes, %llx\n", side ? "after " : "before", all->items[i].name,
                        (long long)all->items[i].bytes, (unsigned long long)all->items[i].sum);
            }
        }
        fail_msg("%s: something was touched", what);
    }
}

/* --- a good one --- */

static void copy_one(const char *from, const char *to) {
    i64 bytes = 0;
    char *text = slurp(from, &bytes);
    spill(to, text, bytes);
    free(text);
}

/* good/clean.wf is closed; good/killed.wf and its log are as a kill leaves them. */
static void make_good(void) {
    char from[300], to[300];
    (void)snprintf(from, sizeof from, "%s/clean.wf", good_folder);
    struct fault_db f = must_open(from);
    run(f.conn, "set tablet_rows = 1024; create table t (k bigint primary key, s text, d decimal(9,2))");
    run(f.conn, "insert into t select i * 7919 % 5003, 'a text of its own ' || i * 31 % 4999, i / 4.0 "
                "from generate_series(1, 5000) i");
    run(f.conn, "create table other as select i from generate_series(1, 5000) i");
    close_both(f);
    (void)snprintf(to, sizeof to, "%s/killed.wf", good_folder);
    copy_one(from, to);
    f = must_open(to);
    run(f.conn, "insert into other values (-1)");
    run(f.conn, "insert into other values (-2)");
    run(f.conn, "insert into other values (-3)");
    static char again[310];
    (void)snprintf(from, sizeof from, "%s/left.wf", good_folder);
    copy_one(to, from);
    (void)snprintf(from, sizeof from, "%s/left.wf.log", good_folder);
    (void)snprintf(again, sizeof again, "%s.log", to);
    copy_one(again, from);
    close_both(f);
    (void)snprintf(to, sizeof to, "%s/alien.wf", good_folder);
    f = must_open(to);
    run(f.conn, "create table t (a integer)");
    (void)snprintf(from, sizeof from, "%s/alien.log", good_folder);
    (void)snprintf(again, sizeof again, "%s.log", to);
    copy_one(again, from);
    close_both(f);
}

static void take(const char *name) {
    char from[300];
    (void)snprintf(from, sizeof from, "rm -rf '%s'; mkdir -m 755 '%s'", folder, folder);
    assert_int_equal(system(from), 0);
    (void)snprintf(from, sizeof from, "%s/%s.wf", good_folder, name);
    copy_one(from, path);
    (void)snprintf(from, sizeof from, "%s/%s.wf.log", good_folder, name);
    if (access(from, F_OK) == 0) {
        copy_one(from, log_path);
    }
}


/* --- ways to spoil it --- */

static i64 size_of(const char *of) {
    struct stat info;
    return stat(of, &info) ? -1 : (i64)info.st_size;
}

static void flip(const char *of, i64 at) {
    i64 bytes = 0;
    char *text = slurp(of, &bytes);
    assert_true(at < bytes);
    text[at] ^= 16;
    spill(of, text, bytes);
    free(text);
}

static void cut(i64 arg) { /* bytes from the end, where below 0 */
    assert_int_equal(truncate(path, arg < 0 ? size_of(path) + arg : arg), 0);
}

static void cut_log(i64 arg) {
    assert_int_equal(truncate(log_path, arg), 0);
}

static void drop_log(i64 arg) {
    UNUSED(arg);
    assert_int_equal(unlink(log_path), 0);
}

static void foreign(i64 arg) {
    UNUSED(arg);
    spill(path, "a,b\n1,2\n", 8);
}

static void is_folder(i64 log) {
    (void)unlink(log ? log_path : path);
    assert_int_equal(mkdir(log ? log_path : path, 0755), 0);
}

static void is_pipe(i64 log) {
    (void)unlink(log ? log_path : path);
    assert_int_equal(mkfifo(log ? log_path : path, 0644), 0);
}

static void is_device(i64 arg) {
    UNUSED(arg);
    (void)unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
}

static void is_dangling(i64 arg) {
    UNUSED(arg);
    (void)unlink(path);
    assert_int_equal(symlink("nowhere/at.all", path), 0);
}

static void flip_headers(i64 arg) {
    flip(path, arg);
    flip(path, PAGE_BYTES + arg);
}

static struct header header_of(void) {
    i64 bytes = 0;
    char *text = slurp(path, &bytes);
    struct header header;
    memcpy(&header, text, sizeof header);
    free(text);
    return header;
}

static void put_headers(struct header header) {
    i64 bytes = 0;
    char *text = slurp(path, &bytes);
    header.sum = bytes_sum(&header, HEADER_BYTES - (i64)sizeof header.sum, 0);
    memcpy(text, &header, sizeof header);
    memcpy(text + PAGE_BYTES, &header, sizeof header);
    spill(path, text, bytes);
    free(text);
}

static void newer_format(i64 arg) {
    struct header header = header_of();
    header.format = (u32)arg;
    put_headers(header);
}

static void flip_root(i64 arg) {
    flip(path, header_of().root_at + arg);
}

static void flip_log(i64 arg) {
    flip(log_path, arg);
}

/* The log of a later time than the file. */
static void later_log(i64 arg) {
    UNUSED(arg);
    char from[300];
    (void)snprintf(from, sizeof from, "%s/left.wf.log", good_folder);
    copy_one(from, log_path);
}

/* The log of a database that is called alike elsewhere. */
static void alien_log(i64 arg) {
    UNUSED(arg);
    char from[300];
    (void)snprintf(from, sizeof from, "%s/alien.log", good_folder);
    copy_one(from, log_path);
}

#define ALIEN "the log \"%s.log\" belongs to another database"
#define GO_BACK \
    "Nothing was written. Put it back where it was, and the database's own in its place; one that was closed has none."
#define COPY_IT \
    "Nothing was written. Copy the file and its log before anything else; `warpfox check FILE` lists what is damaged."
#define NOT_OURS "The file was not touched. To read rows of a text file: SELECT * FROM '%s' in a database of its own."
#define NAME_ONE "It was not touched. Name a file; a new one is made where there is none."
#define PUT_BACK \
    "Commits since the last checkpoint are in it. Put it back beside the database; nothing was written."
#define SHORTER "database \"%s\" is damaged: it is shorter than its header says"
#define NO_HEADER "database \"%s\" is damaged: no header is whole"
#define NO_DATABASE "\"%s\" is not a Warpfox database"
#define NO_FILE "could not open database \"%s\": it is a pipe, a device or the like, not a file"
#define LOG_START "database \"%s\" is damaged: the start of its log cannot be read"

/* Names of which good one, how it is spoilt, and what is said; `%s` is the path. Without `reads` it is
 * the same for those who only read. */
static const struct bad {
    const char *what, *good;
    void (*spoil)(i64 arg);
    i64 arg;
    const char *code, *message, *hint, *reads, *reads_hint;
} bads[] = {
    {"cut to 1", "clean", cut, 1, "42809", NO_DATABASE, NOT_OURS, NULL, NULL},
    {"cut to 15", "clean", cut, 15, "42809", NO_DATABASE, NOT_OURS, NULL, NULL},
    {"cut to 16", "clean", cut, 16, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"cut to 39", "clean", cut, 39, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"cut to 40", "clean", cut, 40, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"cut to 127", "clean", cut, 127, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"cut to 128", "clean", cut, 128, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"cut to 4095", "clean", cut, 4095, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"cut to 4096", "clean", cut, 4096, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"cut to 8191", "clean", cut, 8191, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"cut to 8192", "clean", cut, 8192, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"cut to 60000", "clean", cut, 60000, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"without its last page", "clean", cut, -4097, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"empty beside a log", "left", cut, 0, "XX001", "database \"%s\" is damaged: it is empty, and its log is not",
     COPY_IT, NULL, NULL},
    {"cut to 100 beside a log", "left", cut, 100, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"cut to 8192 beside a log", "left", cut, 8192, "XX001", SHORTER, COPY_IT, NULL, NULL},
    {"a text", "clean", foreign, 0, "42809", NO_DATABASE, NOT_OURS, NULL, NULL},
    {"a folder", "clean", is_folder, 0, "42809", "could not open database \"%s\": Is a directory", NAME_ONE, NULL,
     NULL},
    {"a pipe", "clean", is_pipe, 0, "42809", NO_FILE, NAME_ONE, NULL, NULL},
    {"a device", "clean", is_device, 0, "42809", NO_FILE, NAME_ONE, NULL, NULL},
    {"a link to nothing", "clean", is_dangling, 0, "58P01", "could not open database \"%s\": No such file or directory",
     "The name is a link to something that is not there.", "could not open database \"%s\": No such file or directory",
     "A database that is read only has to be there."},
    {"both magics", "clean", flip_headers, 3, "42809", NO_DATABASE, NOT_OURS, NULL, NULL},
    {"both headers", "clean", flip_headers, 50, "XX001", NO_HEADER, COPY_IT, NULL, NULL},
    {"a newer format", "clean", newer_format, FILE_FORMAT + 1, "0A000", "newer", NULL, NULL, NULL},
    {"the root", "clean", flip_root, 9, "XX001", "root", COPY_IT, NULL, NULL},
    {"no log", "left", drop_log, 0, "XX001", "the log \"%s.log\" is missing", PUT_BACK, NULL, NULL},
    {"an empty log", "left", cut_log, 0, "XX001", LOG_START, COPY_IT, NULL, NULL},
    {"a log of 30 bytes", "left", cut_log, 30, "XX001", LOG_START, COPY_IT, NULL, NULL},
    {"the log's start", "left", flip_log, -1, "XX001", LOG_START, COPY_IT, NULL, NULL},
    {"the log's first record", "left", flip_log, FILE_START + 40, "XX001",
     "database \"%s\" is damaged: a committed record of its log cannot be read", COPY_IT, NULL, NULL},
    {"a later log", "clean", later_log, 0, "XX001",
     "database \"%s\" is damaged: its log is newer than its header", COPY_IT, NULL, NULL},
    {"the log of another", "clean", alien_log, 0, "XX001", ALIEN, GO_BACK, NULL, NULL},
    {"the log of another in place of its own", "left", alien_log, 0, "XX001", ALIEN, GO_BACK, NULL, NULL},
    {"a log that is a folder", "clean", is_folder, 1, "42809", "could not open \"%s.log\": Is a directory", "", NULL,
     NULL},
    {"a log that is a pipe", "clean", is_pipe, 1, "42809",
     "could not open \"%s.log\": it is a pipe, a device or the like, not a file", "", NULL, NULL},
};

static void said(const struct bad *bad, const wf_error *error, bool reads) {
    char message[700], hint[700];
    const char *form = reads && bad->reads ? bad->reads : bad->message;
    const char *advice = reads && bad->reads ? bad->reads_hint : bad->hint;
    (void)snprintf(message, sizeof message, "%s", form);
    (void)snprintf(hint, sizeof hint, "%s", advice ? advice : "");
    char *at = strstr(message, "%s");
    if (at) {
        (void)snprintf(message, sizeof message, "%.*s%s%s", (int)(at - message), form, path, form + (at - message) + 2);
    }
    at = strstr(hint, "%s");
    if (at) {
        (void)snprintf(hint, sizeof hint, "%.*s%s%s", (int)(at - hint), advice, path, advice + (at - hint) + 2);
    }
    if (strcmp(form, "newer") == 0) {
        (void)snprintf(message, sizeof message, "database \"%s\" has format %d; this program knows formats 1 to %d",
                       path, FILE_FORMAT + 1, FILE_FORMAT);
        (void)snprintf(hint, sizeof hint, "The file was not touched. Open it with a newer Warpfox.");
    }
    if (strcmp(form, "root") == 0) {
        struct header header = header_of();
        (void)snprintf(message, sizeof message,
                       "database \"%s\" is damaged: the checksum of %lld bytes at %lld is wrong", path,
                       (long long)header.root_bytes, (long long)header.root_at);
    }
    if (strcmp(error->sqlstate, bad->code) != 0 || strcmp(error->message, message) != 0 ||
        strcmp(error->hint, hint) != 0) {
        fprintf(stderr, "%s%s:\n  %s %s\n  %s\nexpected\n  %s %s\n  %s\n", bad->what, reads ? ", read only" : "",
                error->sqlstate, error->message, error->hint, bad->code, message, hint);
        fail();
    }
}

static wf_status open_only(bool reads, struct fault_db *f, wf_error *error) {
    wf_option options[] = {{"device", "cpu"}, {"threads", "1"}, {"readonly", reads ? "on" : "off"}, {NULL, NULL}};
    *f = (struct fault_db){NULL, NULL};
    wf_status status = wf_open(path, options, &f->db, error);
    if (!status) {
        assert_int_equal(wf_connect(f->db, &f->conn), WF_OK);
    }
    return status;
}

static void test_bad(void **state) {
    UNUSED(state);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct bad *bad = &bads[i];
        take(bad->good);
        i64 arg = bad->arg;
        if (bad->spoil == flip_log && arg < 0) { /* the slot of the log in force */
            arg = header_of().log_generation % 2 ? PAGE_BYTES + 25 : 25;
        }
        bad->spoil(arg);
        struct things before = look();
        for (int reads = 0; reads < 2; reads++) {
            struct fault_db f;
            wf_error error;
            if (!open_only(reads, &f, &error)) {
                close_both(f);
                fail_msg("%s: it opened", bad->what);
            }
            said(bad, &error, reads);
            struct things after = look();
            same(&before, &after, bad->what);
        }
    }
}

/* It is put back, or what is damaged is harmless: the file opens as ever. */
/* Where the last record of the log ends; zeros follow. */
static i64 records_end(void) {
    FILE *file = fopen(log_path, "rb");
    assert_non_null(file);
    i64 end = 0;
    int c;
    for (i64 at = 1; (c = fgetc(file)) != EOF; at++) {
        end = c ? at : end;
    }
    fclose(file);
    return ALIGN_UP(end, 8);
}

static void test_harmless(void **state) {
    UNUSED(state);
    struct fault_db f;
    wf_error error;
    take("clean");
    flip(path, PAGE_BYTES + 30); /* the second header: it is written again */
    assert_int_equal(open_only(true, &f, &error), WF_OK);
    close_both(f);
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    expect(f.conn, "select count(*) from t", "5000;");
    close_both(f);
    flip(path, 30); /* and the first one */
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    expect(f.conn, "select count(*) from t", "5000;");
    close_both(f);
    take("left"); /* a record that was not whole when the power went */
    cut_log(records_end() - 16);
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    expect(f.conn, "select count(*) from other", "5002;");
    close_both(f);
    take("clean"); /* an empty file is one to be */
    cut(0);
    assert_int_equal(open_only(true, &f, &error), WF_ERROR);
    assert_int_equal(size_of(path), 0);
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    run(f.conn, "create table t (a integer)");
    close_both(f);
}

/* A bit in every page: the file opens, and a statement that needs what is damaged says so by name; or it does
 * not open. Nothing is wrong, and nothing is written. */
static void test_damage(void **state) {
    UNUSED(state);
    static const char *const asks[] = {"select count(*), sum(k), max(s), sum(d) from t", "select sum(i) from other",
                                       "insert into t (k) values (4711)"};
    static const char *const answers[] = {"5000|12506242|a text of its own 999|3125625.00;", "12502500;", NULL};
    take("clean");
    i64 end = header_of().end;
    int columns = 0, keys = 0, files = 0;
    for (i64 at = FILE_START + 64; at < end; at += 1024) {
        take("clean");
        flip(path, at);
        struct fault_db f;
        wf_error error;
        struct things before = look();
        if (open_only(true, &f, &error)) {
            assert_string_equal(error.sqlstate, "XX001");
            bool column = strstr(error.message, "column \"") == error.message; /* of a tail, which is read at once */
            assert_true(column ? strstr(error.hint, "Nothing was changed. ") == error.hint
                               : strcmp(error.hint, COPY_IT) == 0);
            struct things after = look();
            same(&before, &after, "damage");
            files++;
            continue;
        }
        close_both(f);
        assert_int_equal(open_only(false, &f, &error), WF_OK);
        for (int i = 0; i < 3; i++) {
            wf_result *result = NULL;
            char text[2000] = "";
            bool fails = wf_query(f.conn, asks[i], &result);
            if (!fails && answers[i]) {
                flatten(result, text, sizeof text);
            }
            wf_error got = fails ? *wf_connection_error(f.conn) : *wf_result_error(result);
            wf_result_close(result);
            if (got.message[0]) { /* also where rows come as they are asked for */
                bool key = strstr(got.message, "key \"") == got.message;
                bool column = strstr(got.message, "column \"") == got.message;
                if (!key && !column && strcmp(got.sqlstate, "23505") != 0) {
                    fail_msg("%s: %s %s", asks[i], got.sqlstate, got.message);
                }
                keys += key;
                columns += column;
                assert_true(!(key || column) || strstr(got.message, " is damaged: "));
                assert_true(!(key || column) || strstr(got.hint, "Nothing was changed. "));
            } else if (answers[i]) {
                assert_string_equal(text, answers[i]);
            }
        }
        close_both(f);
    }
    if (!columns || !keys) {
        fail_msg("%d columns, %d keys, %d files", columns, keys, files);
    }
}

/* --- others --- */

static void expect_error(bool reads, const char *code, const char *message, const char *hint) {
    struct fault_db f;
    wf_error error;
    struct things before = look();
    if (!open_only(reads, &f, &error)) {
        close_both(f);
        fail_msg("it opened");
    }
    if (strcmp(error.sqlstate, code) != 0 || strcmp(error.message, message) != 0 || strcmp(error.hint, hint) != 0) {
        fprintf(stderr, "%s %s\n%s\nexpected\n%s %s\n%s\n", error.sqlstate, error.message, error.hint, code, message,
                hint);
        fail();
    }
    struct things after = look();
    same(&before, &after, message);
}

#define ONE_WRITER \
    "One process at a time may change a database; any number may read one that nobody changes: --readonly."

/* A process that holds it until it is told to end. */
static pid_t holder_start(bool reads, int *out_end) {
    int ready[2], end[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        struct fault_db f;
        wf_error error;
        (void)close(end[1]);
        bool fine = !open_only(reads, &f, &error) && write(ready[1], "r", 1) == 1 && read(end[0], &byte, 1) >= 0;
        _exit(fine ? 0 : 1);
    }
    (void)close(end[0]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    *out_end = end[1];
    return child;
}

static void test_holders(void **state) {
    UNUSED(state);
    char host[128] = "", message[700];
    (void)gethostname(host, sizeof host - 1);
    take("clean");
    int end = -1;
    pid_t child = holder_start(false, &end);
    (void)snprintf(message, sizeof message, "database \"%s\" is in use by process %d on %s", path, (int)child, host);
    expect_error(false, "55006", message, ONE_WRITER);
    expect_error(true, "55006", message, ONE_WRITER);
    (void)close(end);
    assert_int_equal(waitpid(child, NULL, 0), child);
    take("clean");
    child = holder_start(true, &end);
    (void)snprintf(message, sizeof message, "database \"%s\" is being read by process %d on %s", path, (int)child,
                   host);
    expect_error(false, "55006", message, ONE_WRITER);
    struct fault_db f;
    wf_error error;
    assert_int_equal(open_only(true, &f, &error), WF_OK); /* beside each other */
    refuse(f.conn, "insert into other values (1)", "25006", "it was opened read-only");
    expect(f.conn, "select count(*) from t", "5000;");
    close_both(f);
    (void)close(end);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    close_both(f);
}

/* What others may not read or write, tried as somebody else. */
static void test_permissions(void **state) {
    UNUSED(state);
    char message[700];
    take("clean");
    bool root = geteuid() == 0;
    assert_int_equal(chmod(path, root ? 0644 : 0444), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    struct things before = look();
    struct fault_db f;
    wf_error error;
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    wf_status writes = open_only(false, &f, &error);
    wf_status reads = open_only(true, &f, NULL);
    if (!reads) {
        expect(f.conn, "select count(*) from t", "5000;");
        close_both(f);
    }
    assert_int_equal(root ? seteuid(0) : 0, 0);
    (void)snprintf(message, sizeof message, "could not open database \"%s\": Permission denied", path);
    assert_int_equal(writes, WF_ERROR);
    assert_int_equal(reads, WF_OK);
    assert_string_equal(error.sqlstate, "42501");
    assert_string_equal(error.message, message);
    assert_string_equal(error.hint, "To read it only: --readonly.");
    assert_int_equal(chmod(path, root ? 0666 : 0644), 0); /* the folder alone: no log can be made */
    struct things later = look();
    later.items[0].mode = before.items[0].mode;
    same(&before, &later, "permissions");
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    writes = open_only(false, &f, &error);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    (void)snprintf(message, sizeof message, "could not create \"%s\": Permission denied", log_path);
    assert_int_equal(writes, WF_ERROR);
    assert_string_equal(error.sqlstate, "42501");
    assert_string_equal(error.message, message);
    later = look();
    later.items[0].mode = before.items[0].mode;
    same(&before, &later, "permissions of the folder");
    assert_int_equal(chmod(folder, 0755), 0);
}

static void test_names(void **state) {
    UNUSED(state);
    char kept[200], message[700];
    struct fault_db f;
    wf_error error;
    take("clean");
    (void)snprintf(kept, sizeof kept, "%s", path);
    (void)snprintf(path, sizeof path, "%s/link.wf", folder); /* a link: the log lies beside the file */
    assert_int_equal(symlink("x.wf", path), 0);
    assert_int_equal(open_only(false, &f, &error), WF_OK);
    run(f.conn, "insert into other values (-1)");
    assert_true(size_of(log_path) > 0);
    close_both(f);
    static const char *const odd[] = {"a b", "it's", "\"q\"", "new\nline", "\xff\xfe", "%s%n", "-x", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, odd[i]);
        assert_int_equal(open_only(false, &f, &error), WF_OK);
        run(f.conn, "create table t as select 7 as a");
        close_both(f);
        assert_int_equal(open_only(false, &f, &error), WF_OK);
        expect(f.conn, "select a from t", "7;");
        close_both(f);
        assert_int_equal(unlink(path), 0);
    }
    (void)snprintf(path, sizeof path, "%s/no/such.wf", folder);
    (void)snprintf(message, sizeof message, "could not open database \"%s\": No such file or directory", path);
    expect_error(false, "58P01", message, "The file is made where there is none, its folder is not.");
    (void)snprintf(path, sizeof path, "%s/x.wf/such.wf", folder);
    (void)snprintf(message, sizeof message, "could not open database \"%s\": Not a directory", path);
    expect_error(false, "58P01", message, "The file is made where there is none, its folder is not.");
    (void)snprintf(path, sizeof path, "%s/none.wf", folder);
    (void)snprintf(message, sizeof message, "could not open database \"%s\": No such file or directory", path);
    expect_error(true, "58P01", message, "A database that is read only has to be there.");
    (void)snprintf(path, sizeof path, "%s", kept);
}

static int make_folders(void **state) {
    UNUSED(state);
    (void)snprintf(good_folder, sizeof good_folder, "/tmp/warpfox-bad-XXXXXX");
    if (!mkdtemp(good_folder) || chmod(good_folder, 0755)) {
        return 1;
    }
    (void)snprintf(folder, sizeof folder, "%s/try", good_folder);
    (void)snprintf(path, sizeof path, "%s/x.wf", folder);
    (void)snprintf(log_path, sizeof log_path, "%s.log", path);
    make_good();
    return 0;
}

static int drop_folders(void **state) {
    UNUSED(state);
    char sql[300];
    (void)snprintf(sql, sizeof sql, "rm -rf '%s'", good_folder);
    return system(sql);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holders), /* forks, so it is first: no other thread has been */
        cmocka_unit_test(test_bad),         cmocka_unit_test(test_harmless), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_permissions), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("bad files", tests, make_folders, drop_folders);
}

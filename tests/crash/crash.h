/* crash.h: what the tests of crashes share: a database on the recording disk, its journal kept aside. */
#ifndef WF_TESTS_CRASH_H
#define WF_TESTS_CRASH_H

#include "../fault/fault.h"

#include "recorder.h"

#define PATH "paper.wf"
#ifndef CHECKPOINT_SIZE
#define CHECKPOINT_SIZE "0"
#endif

UNUSED_FN static bool try_open(struct fault_db *f, const char *path, wf_error *error) {
    wf_option options[] = {
        {"device", "cpu"},         {"threads", "1"}, {"statement_cache", "off"},
        {"checkpoint_size", CHECKPOINT_SIZE}, {NULL, NULL}};
    *f = (struct fault_db){NULL, NULL};
    if (wf_open(path, options, &f->db, error)) {
        return false;
    }
    assert_int_equal(wf_connect(f->db, &f->conn), WF_OK);
    return true;
}

UNUSED_FN static struct fault_db must_open(const char *path) {
    struct fault_db f;
    wf_error error;
    if (!try_open(&f, path, &error)) {
        fprintf(stderr, "%s %s\n", error.sqlstate, error.message);
        fail();
    }
    return f;
}

UNUSED_FN static i64 asked(const char *name, i64 otherwise) {
    const char *given = getenv(name);
    return given ? atoll(given) : otherwise;
}

UNUSED_FN static void check_clean(wf_connection *conn) {
    wf_result *result = must(conn, "call check_database()");
    char text[2000];
    flatten(result, text, sizeof text);
    wf_result_close(result);
    if (strstr(text, "damaged")) {
        fprintf(stderr, "%s\n", text);
        fail();
    }
}

/* What is on the disk now is durable, and begins a journal of its own; the other is kept aside. */
struct journal {
    struct line *lines;
    i64 count, cap;
};
UNUSED_FN static struct journal journal_aside(void) {
    struct journal kept = {disk.lines, disk.count, disk.cap};
    disk.lines = NULL;
    disk.count = disk.cap = 0;
    for (int i = 0; i < FILES; i++) {
        if (disk.files[i].exists) {
            note(LINE_MAKE, &disk.files[i], 0, 0, NULL);
            note(LINE_WRITE, &disk.files[i], 0, disk.files[i].size, disk.files[i].data);
            note(LINE_SYNC, &disk.files[i], 0, 0, NULL);
        }
    }
    note(LINE_FOLDER, &disk.files[0], 0, 0, NULL);
    return kept;
}

UNUSED_FN static void journal_back(struct journal kept) {
    journal_drop(0);
    free(disk.lines);
    disk.lines = kept.lines;
    disk.count = kept.count;
    disk.cap = kept.cap;
}

#endif

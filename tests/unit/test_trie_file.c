/* test_trie_file.c: trie files by their writer and their reader alone: what goes in comes out, refused memory leaves
 * nothing, and files that are right by their checksums and wrong otherwise neither crash nor give values that their
 * head excludes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/file.h"
#include "io/trie_file.h"

enum { COLS = 3, ROWS = 5000, MUTATIONS = 1500, PATH_BYTES = 64 };

static struct memory mem;
static struct error err;
static char path[PATH_BYTES];
static i32 a[ROWS];
static i64 b[ROWS];
static b8 c[ROWS];

static const struct column_def defs[COLS] = {{.name = "a", .type = {.id = TYPE_INTEGER}},
                                             {.name = "the second", .type = {.id = TYPE_BIGINT}},
                                             {.name = "c", .type = {.id = TYPE_BOOLEAN}}};

static int open_all(void **state) {
    (void)state;
    memory_init(&mem, NULL, 0, "memory");
    snprintf(path, sizeof path, "/tmp/wf_trie_%ld", (long)getpid());
    for (i32 i = 0; i < ROWS; i++) { /* ascending, and some of them twice */
        i32 k = i - (i % 50 == 1);
        a[i] = k / 40 - 30;
        b[i] = (i64)(k % 40 / 2) * 5000000000;
        c[i] = (b8)(k % 2);
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    unlink(path);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

static wf_status write_file(void) {
    struct trie_writer *w = NULL;
    struct file_out out;
    struct file_wait wait = {NULL, NULL};
    TRY(file_out_open(&out, path, wait, &err));
    wf_status status = trie_writer_open(&mem, COLS, defs, &w, &err);
    for (i64 at = 0; !status && at < ROWS; at += 1000) {
        struct input_col cols[COLS] = {{a + at, NULL}, {b + at, NULL}, {c + at, NULL}};
        status = trie_writer_add(w, 1000, cols, &err);
    }
    status = status ? status : trie_writer_finish(w, &out, &err);
    trie_writer_close(w);
    wf_status closed = file_out_close(&out, !status, &err);
    return status ? status : closed;
}

struct seen {
    i64 rows;
    i64 sum;
    bool in_range; /* of what the head says */
};

static void see(const struct scan_part *part, const struct column_stats *stats, struct seen *seen) {
    for (i64 r = 0; r < part->rows; r++) {
        i64 values[COLS] = {((const i32 *)part->cols[0].data)[r], ((const i64 *)part->cols[1].data)[r],
                            ((const b8 *)part->cols[2].data)[r]};
        for (i32 k = 0; k < COLS; k++) {
            seen->in_range = seen->in_range && values[k] >= stats[k].range.lo && values[k] <= stats[k].range.hi;
            seen->sum += (i64)((u64)values[k] * (u64)(k + 1));
        }
        seen->rows++;
    }
}

/* All rows of the file, if it is one of three such columns. */
static wf_status read_file(struct seen *seen) {
    struct trie_file *file = NULL;
    const struct column_def *cols = NULL;
    *seen = (struct seen){.in_range = true};
    TRY(trie_file_open(&mem, path, &file, &err));
    struct scan_provider *provider = (struct scan_provider *)file; /* NOLINT: it is its first member */
    wf_status status = ERR_OK;
    struct scan *scan = NULL;
    bool same = trie_file_columns(file, &cols) == COLS;
    for (u32 i = 0; same && i < COLS; i++) {
        same = type_kind(cols[i].type) == type_kind(defs[i].type);
    }
    b8 wanted[COLS] = {1, 1, 1};
    struct scan_request request = {.cols = wanted, .mem = &mem, .worker_count = 1, .part_bytes = 3000};
    status = same ? provider->open(provider, &request, &scan, &err) : ERR_DAMAGED;
    while (!status) {
        struct scan_part part;
        status = provider->next(scan, 0, &part, &err);
        if (status || part.end) {
            break;
        }
        see(&part, provider->stats, seen);
        status = part.bad ? ERR_DAMAGED : ERR_OK;
    }
    if (scan) {
        provider->close(scan);
    }
    status = status ? status : provider->levels->check(provider, &err);
    trie_file_close(file);
    return status;
}

static void test_round(void **state) {
    (void)state;
    struct seen seen;
    i64 rows = 0, sum = 0;
    for (i64 i = 0; i < ROWS; i++) {
        bool again = i > 0 && a[i] == a[i - 1] && b[i] == b[i - 1] && c[i] == c[i - 1];
        rows += !again;
        sum += again ? 0 : a[i] + 2 * b[i] + 3 * c[i];
    }
    assert_int_equal(write_file(), ERR_OK);
    assert_int_equal(read_file(&seen), ERR_OK);
    assert_int_equal(seen.rows, rows);
    assert_int_equal(seen.sum, sum);
    assert_true(seen.in_range);
}

static void test_refused_memory(void **state) {
    (void)state;
    struct seen seen;
    bool done = false;
    for (i64 n = 1; !done; n++) {
        memory_fail_at(n);
        wf_status status = write_file();
        memory_fail_at(0);
        assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&mem.used_bytes), 0);
        done = status == ERR_OK;
    }
    done = false;
    for (i64 n = 1; !done; n++) {
        memory_fail_at(n);
        wf_status status = read_file(&seen);
        memory_fail_at(0);
        assert_true(status == ERR_OK || status == ERR_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&mem.used_bytes), 0);
        done = status == ERR_OK;
    }
}

static u64 drawn = 1;
static u64 draw(u64 below) {
    drawn = drawn * 6364136223846793005ULL + 1442695040888963407ULL;
    return hash_u64(drawn) % below;
}

/* Checksums as they would be if somebody had meant it. */
static void sum_up(u8 *data, i64 bytes) {
    struct trie_head head;
    memcpy(&head, data, sizeof head);
    bool body = head.body_at >= sizeof head && head.body_at <= head.sums_at && head.sums_at <= (u64)bytes;
    i64 slices = body ? ((i64)(head.sums_at - head.body_at) + TRIE_SLICE - 1) / TRIE_SLICE : 0;
    if (body && head.sums_at + 8 * (u64)(slices + 1) <= (u64)bytes) {
        u8 *sums = data + head.sums_at;
        for (i64 i = 0; i <= slices; i++) {
            i64 from = (i64)head.body_at + i * TRIE_SLICE;
            u64 sum = i < slices ? trie_sum(data + from, MIN_OF(TRIE_SLICE, (i64)head.sums_at - from))
                                 : trie_sum(sums, slices * 8);
            memcpy(sums + 8 * i, &sum, 8);
        }
    }
    if (body) {
        memset(data + offsetof(struct trie_head, head_sum), 0, 8);
        u64 sum = trie_sum(data, (i64)head.body_at);
        memcpy(data + offsetof(struct trie_head, head_sum), &sum, 8);
    }
}

static void test_wrong_by_design(void **state) {
    (void)state;
    static const u64 odd[] = {0, 1, 2, 3, 4, 7, 8, 40, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff,
                              0x7fffffffffffffff, 0x8000000000000000, ~0ULL, 5000, 4096, 65536};
    struct file_view view;
    struct seen seen;
    i64 fine = 0;
    assert_int_equal(write_file(), ERR_OK);
    assert_int_equal(file_view_open(&view, path, &err), ERR_OK);
    i64 bytes = view.bytes;
    u8 *data = malloc((size_t)bytes);
    for (i64 i = 0; i < MUTATIONS; i++) {
        memcpy(data, view.data, (size_t)bytes);
        for (u64 n = 1 + draw(3); n > 0; n--) {
            i64 width = 1 << draw(4);
            i64 at = (i64)draw(i % 2 ? 96 + 3 * 64 + 20 : (u64)bytes) / width * width;
            u64 x = draw(2) ? odd[draw(COUNT_OF(odd))] : draw(2) ? draw(1000) : draw(~0ULL);
            memcpy(data + at, &x, (size_t)MIN_OF(width, bytes - at));
        }
        sum_up(data, bytes);
        assert_int_equal(file_write_all(path, data, bytes, &err), ERR_OK);
        fine += read_file(&seen) == ERR_OK;
        assert_true(seen.in_range);
        assert_int_equal(atomic_load(&mem.used_bytes), 0);
    }
    assert_in_range(fine, 1, MUTATIONS - 1); /* some mean nothing, some are seen */
    free(data);
    file_view_close(&view);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round), cmocka_unit_test(test_refused_memory),
                                       cmocka_unit_test(test_wrong_by_design)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}

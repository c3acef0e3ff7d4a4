/* test_csv_fixture.h: a file of its own, memory and a pool for every test that reads one. */
#ifndef WF_TEST_CSV_FIXTURE_H
#define WF_TEST_CSV_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/csv_int.h"
#include "io/pack.h"

static struct memory mem;
static struct pool *pool;
static struct error err;
static char path[64];

static int set_up(void **state) {
    (void)state;
    static i32 number;
    memory_init(&mem, NULL, 0, "memory");
    pool = pool_open(3);
    snprintf(path, sizeof path, "/tmp/wf_test_csv_%lld_%d.csv", clock_ns(), number++);
    error_reset(&err);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    memory_fail_at(0);
    remove(path);
    pool_close(pool);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

static void write_file(struct sv text) {
    struct error own;
    error_reset(&own);
    assert_int_equal(file_write_all(path, text.ptr, text.len, &own), ERR_OK);
}

/* The text packed into the file. */
static inline void write_packed(struct sv text, enum packing packing) {
    struct file_out file;
    struct pack pack;
    struct file_wait none = {0};
    assert_int_equal(file_out_open(&file, path, none, &err), ERR_OK);
    assert_int_equal(pack_open(&pack, packing, &file, &mem, &err), ERR_OK);
    for (i64 at = 0; at < text.len; at += 1000) {
        assert_int_equal(pack_write(&pack, text.ptr + at, MIN_OF(1000, text.len - at), &err),
                         ERR_OK);
    }
    assert_int_equal(pack_end(&pack, &err), ERR_OK);
    pack_close(&pack);
    assert_int_equal(file_out_close(&file, true, &err), ERR_OK);
}

/* Row i of a column as text, NULL as "-"; returns how many bytes. */
static inline i64 print_cell(const struct table *table, const struct tablet *tablet, u32 c, i64 i,
                             char *out) {
    struct type type = table->cols[c].type;
    union lit v;
    if (!segment_get(&tablet->cols[c], table->dicts[c], type, i, &v)) {
        *out = '-';
        return 1;
    }
    if (type_kind(type) == KIND_STR) {
        memcpy(out, sv_of(v.str).ptr, (size_t)v.str.len);
        return v.str.len;
    }
    return value_print(type, type_kind(type), &v, out);
}

#endif

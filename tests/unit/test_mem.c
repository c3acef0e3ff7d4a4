/* test_mem.c: budgets and temporary space: what counts, and bytes that come back from where they lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/temp.h"

enum { LIMIT = 8 << 20, BLOCK = 1 << 20 };

struct space {
    struct memory mem;
    struct temp temp;
    struct temp_exit out;
};

static void space_open(struct space *s, i64 limit) {
    memory_init(&s->mem, NULL, limit, "memory");
    temp_exit_init(&s->out);
    temp_init(&s->temp, "/tmp", 0, limit / WARM_SHARE);
    s->mem.temp = &s->temp;
}

static void space_close(struct space *s) {
    assert_int_equal(atomic_load(&s->mem.used_bytes), 0);
    assert_int_equal(s->temp.used_bytes, 0);
    temp_fini(&s->temp, &s->out);
    temp_exit_fini(&s->out);
}

static u8 byte_of(i64 i) {
    return (u8)(i * 31 + i / 4099);
}

static void fill(u8 *at, i64 bytes) {
    for (i64 i = 0; i < bytes; i++) {
        at[i] = byte_of(i);
    }
}

static void assert_filled(const u8 *at, i64 bytes) {
    i64 wrong = 0;
    for (i64 i = 0; i < bytes; i++) {
        wrong += at[i] != byte_of(i);
    }
    assert_int_equal(wrong, 0);
}

/* The program's part, and what large blocks leave to others, is nobody's. */
static void test_program_counts(void **state) {
    (void)state;
    struct memory mem;
    memory_init(&mem, NULL, LIMIT, "memory");
    mem.program_bytes = LIMIT / 4;
    assert_false(memory_reserve(&mem, LIMIT - LIMIT / 4 + 1));
    assert_true(memory_reserve(&mem, LIMIT - LIMIT / 4));
    assert_false(memory_reserve(&mem, 1));
    memory_release(&mem, LIMIT - LIMIT / 4);
    assert_true(memory_left(&mem) < LIMIT - LIMIT / 4);
}

/* What is numbered is numbered by database, whichever of its memories it lies in. */
static void test_identities(void **state) {
    (void)state;
    struct memory one, session, statement, two;
    memory_init(&one, NULL, LIMIT, "memory");
    memory_init(&session, &one, 0, "memory");
    memory_init(&statement, &session, LIMIT / 2, "statement_memory");
    memory_init(&two, NULL, LIMIT, "memory");
    assert_int_equal(memory_identity(&statement, IDENTITY_TABLET), 1);
    assert_int_equal(memory_identity(&one, IDENTITY_TABLET), 2);
    assert_int_equal(memory_identity(&session, IDENTITY_TABLET), 3);
    assert_int_equal(memory_identity(&session, IDENTITY_COMMIT), 1);
    assert_int_equal(memory_identity(&two, IDENTITY_TABLET), 1);
}

/* Freed blocks that are kept for later never stand in the way of others. */
static void test_freed_blocks_give_way(void **state) {
    (void)state;
    struct memory mem;
    memory_init(&mem, NULL, LIMIT, "memory");
    for (i64 round = 0; round < 4; round++) {
        void *blocks[7];
        for (i64 i = 0; i < 7; i++) {
            blocks[i] = mem_alloc(&mem, BLOCK - round * 4096);
            assert_non_null(blocks[i]);
            memset(blocks[i], 1, (size_t)(BLOCK - round * 4096));
        }
        assert_null(mem_alloc(&mem, 2 * BLOCK));
        for (i64 i = 0; i < 7; i++) {
            mem_free(&mem, blocks[i], BLOCK - round * 4096);
        }
        assert_true(memory_reserve(&mem, LIMIT));
        memory_release(&mem, LIMIT);
    }
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

/* What is written past the pages is read through them, and the other way round. */
static void test_copies(void **state) {
    (void)state;
    struct space s;
    space_open(&s, LIMIT);
    u8 *here = mem_alloc(&s.mem, BLOCK);
    u8 *there = mem_alloc(&s.mem, 2 * LIMIT);
    assert_true(here && there && mem_in_temp(&s.mem, there) && !mem_in_temp(&s.mem, here));
    fill(here, BLOCK);
    mem_copy(&s.mem, there + 12345, here, BLOCK);
    assert_filled(there + 12345, BLOCK);
    mem_pass(&s.mem, there, BLOCK + 12345);
    temp_cool(&s.temp);
    memset(here, 0, BLOCK);
    mem_copy(&s.mem, here, there + 12345, BLOCK);
    assert_filled(here, BLOCK);
    for (i64 bytes = 1; bytes < 5000; bytes += 617) { /* few bytes go by the page */
        memset(here, 0, (size_t)bytes);
        mem_copy(&s.mem, here, there + 12345, bytes);
        assert_filled(here, bytes);
        mem_copy(&s.mem, there + 7, here, bytes);
        assert_filled(there + 7, bytes);
        fill(there + 12345, BLOCK);
    }
    mem_free(&s.mem, there, 2 * LIMIT);
    mem_free(&s.mem, here, BLOCK);
    space_close(&s);
}

/* Buffers that wait leave half of memory to who works; a free block of temporary space is used again. */
static void test_buffers_rest(void **state) {
    (void)state;
    struct space s;
    space_open(&s, LIMIT);
    struct buffer *buffers[12];
    i64 aside = 0;
    for (i64 i = 0; i < 12; i++) {
        buffers[i] = buffer_new_at(&s.mem, BLOCK, BUFFER_WORK);
        assert_non_null(buffers[i]);
        fill(buffers[i]->data, BLOCK);
        buffer_rest(buffers[i]);
        aside += mem_in_temp(&s.mem, buffers[i]->data);
    }
    assert_in_range(aside, 6, 11);
    assert_true(atomic_load(&s.mem.used_bytes) <= LIMIT / 2 + 2 * BLOCK);
    for (i64 i = 0; i < 12; i++) {
        assert_filled(buffers[i]->data, BLOCK);
        buffer_release(buffers[i]);
    }
    i64 end = s.temp.end;
    void *again = temp_alloc(&s.temp, BLOCK + BUFFER_PAD);
    assert_non_null(again);
    assert_int_equal(s.temp.end, end);
    temp_free(&s.temp, again, BLOCK + BUFFER_PAD);
    space_close(&s);
}

/* No page between blocks is anybody's: what is never written would cut the file into pieces. Of a larger free block the
 * rest stays free. */
static void test_blocks_touch(void **state) {
    (void)state;
    static const i64 bytes[] = {1, 4096, 4097, 60000, 104 * 1024, 131073, 1000000, 5 << 20};
    struct space s;
    space_open(&s, LIMIT);
    u8 *blocks[COUNT_OF(bytes)], *first = temp_alloc(&s.temp, 4096);
    assert_non_null(first);
    for (i64 i = 0, at = 4096; i < COUNT_OF(bytes); at += ALIGN_UP(bytes[i++], 4096)) {
        blocks[i] = mem_alloc_aside(&s.mem, bytes[i]);
        assert_ptr_equal(blocks[i], first + at);
        fill(blocks[i], bytes[i]);
    }
    i64 end = s.temp.end;
    for (i64 i = 0; i < COUNT_OF(bytes); i++) {
        assert_filled(blocks[i], bytes[i]);
        mem_free(&s.mem, blocks[i], bytes[i]);
    }
    for (i64 i = COUNT_OF(bytes); i-- > 0;) {
        blocks[i] = temp_alloc(&s.temp, bytes[i]);
        assert_non_null(blocks[i]);
    }
    assert_int_equal(s.temp.end, end); /* all of them were there */
    u8 *large = blocks[COUNT_OF(bytes) - 1];
    temp_free(&s.temp, large, 5 << 20);
    u8 *most = temp_alloc(&s.temp, 4 << 20), *rest = temp_alloc(&s.temp, 1 << 20);
    assert_ptr_equal(most, large);
    assert_ptr_equal(rest, large + (4 << 20));
    temp_free(&s.temp, most, 4 << 20);
    temp_free(&s.temp, rest, 1 << 20);
    for (i64 i = 0; i < COUNT_OF(bytes) - 1; i++) {
        temp_free(&s.temp, blocks[i], bytes[i]);
    }
    temp_free(&s.temp, first, 4096);
    space_close(&s);
}

/* A long file leaves behind the statement's back, and is gone when the database is. */
static struct disk counting;
static _Atomic i32 opened, closed;

static i64 count_open(const char *folder) {
    opened++;
    return disk_system.open_unnamed(folder);
}

static void count_close(i64 file) {
    closed++;
    disk_system.close(file);
}

static void test_long_files_leave(void **state) {
    (void)state;
    struct space s;
    struct temp other;
    counting = disk_system;
    counting.open_unnamed = count_open;
    counting.close = count_close;
    disk_now = &counting;
    space_open(&s, LIMIT);
    temp_init(&other, "/tmp", 0, LIMIT);
    struct temp *both[] = {&s.temp, &other};
    for (i64 i = 0; i < COUNT_OF(both); i++) {
        u8 *block = temp_alloc(both[i], 65 << 20);
        assert_non_null(block);
        block[65 << 19] = 1;
        temp_free(both[i], block, 65 << 20);
    }
    assert_int_equal(opened, 2);
    temp_fini(&other, &s.out);
    space_close(&s);
    assert_int_equal(closed, 2);
    disk_now = &disk_system;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_program_counts), cmocka_unit_test(test_freed_blocks_give_way),
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_buffers_rest),
        cmocka_unit_test(test_blocks_touch),   cmocka_unit_test(test_long_files_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

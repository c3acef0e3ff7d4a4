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
};

static void space_open(struct space *s, i64 limit) {
    memory_init(&s->mem, NULL, limit, "memory");
    temp_init(&s->temp, "/tmp", 0, limit / WARM_SHARE);
    s->mem.temp = &s->temp;
}

static void space_close(struct space *s) {
    assert_int_equal(atomic_load(&s->mem.used_bytes), 0);
    assert_int_equal(s->temp.used_bytes, 0);
    temp_fini(&s->temp);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_counts),
        cmocka_unit_test(test_freed_blocks_give_way),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_buffers_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_packed.c: columns packed for the disk come back as they were; bytes that were not packed do no
 * harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "store/packed.h"

static u64 dice = 88172645463325252ULL;

static u64 roll(void) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

/* Numbers of a column, in one of several ways. */
static u64 number(int way, u64 i, u64 last) {
    switch (way) {
    case 0:
        return 7;
    case 1:
        return last + roll() % 5;
    case 2:
        return roll();
    case 3:
        return roll() % 1000;
    case 4:
        return i % 2 ? ~0ULL - roll() % 3 : roll() % 3;
    case 5:
        return ~0ULL - i;
    default:
        return i / 700 * 0x0123456789abcdefULL;
    }
}

struct column {
    struct segment seg;
    struct packed_form form;
    u8 *block;
};

static struct column column_make(int way, u8 width, u32 rows, bool has_valid, i64 text_bytes) {
    struct column c = {.seg = {.encoding = text_bytes ? ENC_STR : ENC_INT, .width = width}};
    struct segment_layout *lay = &c.form.lay;
    c.form = (struct packed_form){.rows = rows, .width = width, .text_bytes = text_bytes};
    lay->data_bytes = (i64)rows * width;
    lay->valid_at = ALIGN_UP(lay->data_bytes, 64);
    lay->valid_bytes = has_valid ? ((i64)rows + 63) / 64 * 8 : 0;
    lay->bytes_at = lay->valid_at + ALIGN_UP(lay->valid_bytes, 64);
    lay->total = lay->bytes_at + text_bytes;
    c.block = calloc(1, (size_t)lay->total + 64);
    u64 last = 0;
    for (u32 i = 0; i < rows; i++) {
        last = number(way, i, last);
        memcpy(c.block + (i64)i * width, &last, width);
    }
    for (i64 i = 0; i < lay->valid_bytes; i++) {
        c.block[lay->valid_at + i] = (u8)roll();
    }
    bool pays = roll() % 2;
    for (i64 i = 0; i < text_bytes; i++) {
        c.block[lay->bytes_at + i] = pays ? (u8)('a' + roll() % 3) : (u8)roll();
    }
    c.seg.data = c.block;
    c.seg.valid = has_valid ? (const u64 *)(void *)(c.block + lay->valid_at) : NULL;
    c.seg.bytes = c.block + lay->bytes_at;
    c.seg.bytes_len = text_bytes;
    return c;
}

static void test_all_ways(void **state) {
    UNUSED(state);
    static const u32 sizes[] = {1, 63, 1023, 1024, 1025, 5000};
    struct memory mem;
    memory_init(&mem, NULL, 0, "memory");
    i64 smaller = 0;
    for (int round = 0; round < 7 * 4 * 6 * 4; round++) {
        u32 rows = sizes[round / 28 % 6];
        i64 text = round / 168 % 2 ? 20LL * rows : 0;
        struct column c = column_make(round % 7, (u8)(1 << round / 7 % 4), rows, round / 336, text);
        struct blob blob;
        blob_init(&blob, &mem);
        bool packed = column_pack(&c.seg, &c.form, &blob);
        smaller += packed;
        u8 *back = malloc((size_t)c.form.lay.total + 1);
        memset(back, 0xaa, (size_t)c.form.lay.total);
        if (packed) {
            assert_true(column_unpack(blob.data, blob.len, &c.form, back));
            assert_memory_equal(back, c.block, (size_t)c.form.lay.total);
        }
        for (int i = 0; packed && i < 20; i++) { /* any bit, any length */
            u8 *bad = malloc((size_t)blob.len);
            i64 len = i % 4 ? blob.len : (i64)(roll() % (u64)blob.len);
            memcpy(bad, blob.data, (size_t)len);
            if (i % 4 && len) {
                bad[roll() % (i % 2 ? 64 : (u64)len) % (u64)len] ^= (u8)(1 << roll() % 8);
            }
            (void)column_unpack(bad, len, &c.form, back);
            free(bad);
        }
        free(back);
        free(c.block);
        blob_fini(&blob);
    }
    assert_true(smaller > 200);
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

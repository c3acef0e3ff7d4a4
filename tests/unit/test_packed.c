/* test_packed.c: columns packed for the disk come back as they were; bytes that were not packed do no
 * harm. */
#define _POSIX_C_SOURCE 200809L
#include "test_store_rows.h"

#include "store/packed.h"

enum { ROWS_MOST = 3000, TEXT_MOST = 1 << 18 };

static u64 dice = 88172645463325252ULL;

static u64 roll(void) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

/* A column in memory, as a segment and as one block. */
static struct {
    _Alignas(64) u8 block[ROWS_MOST * 8 + ROWS_MOST / 8 + TEXT_MOST + 256];
    struct segment seg;
    struct packed_form form;
} col;

static void lay_out(u8 encoding, u8 width, u32 rows, bool nulls, i64 text_bytes) {
    memset(&col.seg, 0, sizeof col.seg);
    col.seg.encoding = encoding;
    col.seg.width = width;
    col.seg.bytes_len = text_bytes;
    col.form = (struct packed_form){rows, width, segment_layout(&col.seg, rows, nulls), text_bytes};
    assert_true(col.form.lay.total + 64 <= (i64)sizeof col.block);
    memset(col.block, 0, sizeof col.block);
    col.seg.data = col.block;
    col.seg.valid = nulls ? (const u64 *)(const void *)(col.block + col.form.lay.valid_at) : NULL;
    col.seg.bytes = text_bytes ? col.block + col.form.lay.bytes_at : NULL;
}

/* Every processor level packs to the same bytes, and takes them. */
static void same_at_all_levels(const u8 *bytes, i64 count) {
    static const char *const levels[] = {"baseline", "avx2", "avx512"};
    u8 *back = malloc((size_t)col.form.lay.total + 64);
    u8 *scratch = malloc((size_t)packed_scratch_bytes(&col.form) + 1);
    for (u32 i = 0; i < COUNT_OF(levels); i++) {
        struct desk desk = {.mem = &mem};
        setenv("WARPFOX_CPU", levels[i], 1);
        assert_int_equal(column_pack(&col.seg, &col.form, &desk), count);
        if (count) {
            assert_memory_equal(desk.at, bytes, (size_t)count);
            assert_true(column_unpack(bytes, count, &col.form, scratch, back));
            assert_memory_equal(back, col.block, (size_t)col.form.lay.total);
        }
        desk_fini(&desk);
    }
    unsetenv("WARPFOX_CPU");
    free(scratch);
    free(back);
}

/* Packed bytes, 0: it does not pay. What comes back is what was there, whatever is damaged is noticed or
 * harmless. */
static i64 there_and_back(u8 *out_form) {
    i64 total = col.form.lay.total;
    struct desk desk = {.mem = &mem};
    u8 *back = malloc((size_t)total + 64);
    u8 *scratch = malloc((size_t)packed_scratch_bytes(&col.form) + 1);
    i64 bytes = column_pack(&col.seg, &col.form, &desk);
    u8 *to = desk.at;
    assert_true(bytes < total);
    *out_form = bytes ? to[0] : 0;
    if (bytes) {
        assert_true(column_unpack(to, bytes, &col.form, scratch, back));
        assert_memory_equal(back, col.block, (size_t)total);
        assert_false(column_unpack(to, bytes - 1, &col.form, scratch, back));
    }
    same_at_all_levels(to, bytes);
    for (i32 i = 0; bytes && i < 200; i++) { /* the sanitizers look on */
        u64 at = i < 60 ? (u64)i % (u64)bytes : roll() % (u64)bytes;
        u8 was = to[at];
        to[at] = (u8)roll();
        (void)column_unpack(to, bytes, &col.form, scratch, back);
        to[at] = was;
    }
    free(scratch);
    free(back);
    desk_fini(&desk);
    return bytes;
}

static void put_number(u8 width, i64 i, u64 value) {
    memcpy(col.block + i * width, &value, width);
}

static void test_numbers(void **state) {
    UNUSED(state);
    static const u32 counts[] = {1, 2, 3, 9, 63, 1000, 1023, 1024, 1025, 2047, 3000};
    for (u8 width = 1; width <= 8; width *= 2) {
        for (u32 bits = 0; bits <= width * 8u; bits++) {
            for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
                bool sorted = roll() & 1, nulls = roll() & 1;
                u8 form;
                u64 least = roll() >> (64 - width * 8) >> (width == 8 ? 9 : 2 + bits % 5), last = least;
                lay_out(ENC_INT, width, counts[n], nulls, 0);
                for (i64 i = 0; i < counts[n]; i++) {
                    u64 some = bits ? roll() >> (64 - bits) : 0;
                    last += some;
                    put_number(width, i, sorted ? last : least + some);
                }
                if (nulls) {
                    memset(col.block + col.form.lay.valid_at, 0x5a, (size_t)col.form.lay.valid_bytes);
                }
                i64 made = there_and_back(&form);
                bool small = bits + 2 < width * 8u / 2 && counts[n] >= 1000 && !nulls;
                assert_true(!small || sorted || made > 0);
            }
        }
    }
}

static i64 put_text(i64 row, i64 end, const char *text, i64 len) {
    memcpy(col.block + col.form.lay.bytes_at + end, text, (size_t)len);
    put_number(4, row, (u64)(end + len));
    return end + len;
}

/* Rows of so many different words, of `word_most` bytes; how they were packed. */
static u8 pack_rows(u32 rows, u32 words, u32 word_most) {
    static char text[ROWS_MOST][64];
    static i64 lens[ROWS_MOST];
    i64 total = 0;
    u8 form;
    for (u32 i = 0; i < rows; i++) {
        lens[i] = 0;
        while (roll() % 8 && lens[i] + word_most + 1 < 64) {
            u64 word = roll() % words * 0x9e3779b97f4a7c15ULL;
            for (u64 b = 0; b < 1 + word % word_most; b++) {
                text[i][lens[i]++] = (char)(0x21 + (word >> (b % 8 * 7)) % 90);
            }
            text[i][lens[i]++] = ' ';
        }
        total += lens[i];
    }
    lay_out(ENC_STR, 4, rows, false, total);
    i64 end = 0;
    for (u32 i = 0; i < rows; i++) {
        end = put_text(i, end, text[i], lens[i]);
    }
    (void)there_and_back(&form);
    return form;
}

static void test_texts(void **state) {
    UNUSED(state);
    enum { PLAIN, ZSTD, WORDS };
    assert_int_equal(pack_rows(3000, 40, 7), WORDS);
    assert_int_equal(pack_rows(3000, 300, 30), WORDS);
    assert_int_equal(pack_rows(3000, 1 << 30, 30) == WORDS, 0); /* hardly a word comes again */
    for (u32 i = 0; i < 60; i++) {
        (void)pack_rows(1 + (u32)(roll() % ROWS_MOST), 1 + (u32)(roll() % 500), 1 + (u32)(roll() % 40));
    }
}

/* Words of any length, empty rows, and text without a space for long; bytes of 0 are in no word. */
static void test_long_words(void **state) {
    UNUSED(state);
    enum { WORDS = 2 };
    static const i64 lens[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 9000};
    static char text[TEXT_MOST];
    for (size_t n = 0; n < sizeof lens / sizeof lens[0]; n++) {
        for (u32 shift = 0; shift < 3; shift++) { /* where pieces begin */
            i64 len = lens[n], rows = MIN_OF(ROWS_MOST, (TEXT_MOST - 8) / (len + 2)), end = 0;
            memset(text, shift == 1 ? 0 : 'x', (size_t)len);
            text[len] = ' ';
            lay_out(ENC_STR, 4, (u32)rows, false, shift + (rows - 1) * (len + (shift < 2)));
            for (i64 row = 0; row < rows; row++) {
                end = put_text(row, end, row ? text : "yy", row ? len + (shift < 2) : shift);
            }
            u8 form;
            i64 made = there_and_back(&form);
            bool has_zero = shift == 1 && len > 0;
            assert_true(!made || (form == WORDS) != has_zero || len == 0 || len > 16);
        }
    }
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
    i64 smaller = 0;
    for (int round = 0; round < 7 * 4 * 6 * 4; round++) {
        u32 rows = sizes[round / 28 % 6];
        i64 text = round / 168 % 2 ? 20LL * rows : 0;
        struct column c = column_make(round % 7, (u8)(1 << round / 7 % 4), rows, round / 336, text);
        struct desk desk = {.mem = &mem};
        u8 *scratch = malloc((size_t)packed_scratch_bytes(&c.form) + 1);
        i64 bytes = column_pack(&c.seg, &c.form, &desk);
        const u8 *data = desk.at;
        smaller += bytes > 0;
        u8 *back = malloc((size_t)c.form.lay.total + 64);
        memset(back, 0xaa, (size_t)c.form.lay.total);
        if (bytes) {
            assert_true(column_unpack(data, bytes, &c.form, scratch, back));
            assert_memory_equal(back, c.block, (size_t)c.form.lay.total);
        }
        for (int i = 0; bytes && i < 20; i++) { /* any bit, any length */
            u8 *bad = malloc((size_t)bytes);
            i64 len = i % 4 ? bytes : (i64)(roll() % (u64)bytes);
            memcpy(bad, data, (size_t)len);
            if (i % 4 && len) {
                bad[roll() % (i % 2 ? 64 : (u64)len) % (u64)len] ^= (u8)(1 << roll() % 8);
            }
            (void)column_unpack(bad, len, &c.form, scratch, back);
            free(bad);
        }
        free(back);
        free(c.block);
        free(scratch);
        desk_fini(&desk);
    }
    assert_true(smaller > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_texts, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_long_words, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_all_ways, set_up, nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

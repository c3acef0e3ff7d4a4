/* packed.c: columns to the disk and back: numbers in as many bits as they need, text in words or zstd.
 *
 * Numbers are what the segment holds: values less the least one, codes, ends of texts. Of every
 * PACK_ROWS of them, one block has either their distances from the least of them, or the distances of
 * their differences from the least difference, whichever takes fewer bits: ends of texts become
 * lengths, keys in order and runs of the same value next to nothing. All arithmetic is that of u64,
 * which wraps. docs/file-format.md has the bytes; see decision 0041.
 *
 * Unpacking trusts no size: what does not fit is damage, though the checksum was right. */
#include "store/packed.h"

#include "base/level.h"
#include "store/pack_loops.h"

#include <zstd.h>

enum {
    PACK_HEAD = 24, /* bytes before the blocks */
    PAGE = 4096,
    ZSTD_LEVEL = 1,
    TRIAL_BYTES = 1 << 16, /* of text, to see whether it pays */
    TEXT_PLAIN = 0,
    TEXT_ZSTD = 1,
    TEXT_WORDS = 2,
};

struct pack_head {
    u8 text; /* TEXT_… */
    u8 zero[7];
    u64 number_bytes, text_bytes;
};
_Static_assert(sizeof(struct pack_head) == PACK_HEAD, "head");

static const struct pack_loops *loops_now(void) {
    return LEVEL_BEST(pack_loops);
}

/* Text in zstd, where a piece of it becomes smaller by a fifth, and all of it by a byte; the bytes,
 * or 0. */
static i64 pack_text(const u8 *text, i64 bytes, u8 *to, i64 room) {
    size_t trial = (size_t)MIN_OF(bytes, TRIAL_BYTES);
    room = MIN_OF(room, bytes - 1);
    if (room <= 0) {
        return 0;
    }
    size_t made = ZSTD_compress(to, (size_t)room, text, trial, ZSTD_LEVEL);
    if (ZSTD_isError(made) || made >= trial / 5 * 4) {
        return 0;
    }
    if (bytes > TRIAL_BYTES) {
        made = ZSTD_compress(to, (size_t)room, text, (size_t)bytes, ZSTD_LEVEL);
    }
    return ZSTD_isError(made) ? 0 : (i64)made;
}

/* Of the block, for so many bytes. */
static i64 desk_block_bytes(i64 bytes) {
    return bytes + 2 * PAGE;
}

void desk_lose(struct desk *desk) {
    desk->at = desk->block = NULL;
    desk->bytes = 0;
}

static void desk_clear(struct desk *desk) {
    mem_free(desk->mem, desk->block, desk_block_bytes(desk->bytes));
    desk_lose(desk);
}

void desk_fini(struct desk *desk) {
    desk_clear(desk);
    mem_free(desk->mem, desk->words, (i64)sizeof *desk->words);
    desk->words = NULL;
}

bool desk_reserve(struct desk *desk, i64 bytes, i64 kept) {
    if (bytes <= desk->bytes) {
        return true;
    }
    u8 *block = mem_alloc(desk->mem, desk_block_bytes(bytes));
    if (!block) {
        return false;
    }
    u8 *at = (u8 *)ALIGN_UP((size_t)block, (size_t)PAGE);
    if (kept) {
        memcpy(at, desk->at, (size_t)kept);
    }
    desk_clear(desk);
    desk->at = at;
    desk->block = block;
    desk->bytes = bytes;
    return true;
}

/* Text is in words if that is at most so much of it. */
static i64 words_room(i64 text_bytes) {
    return text_bytes / 5 * 2;
}

i64 packed_room(const struct packed_form *form) {
    return form->lay.total - form->text_bytes + words_room(form->text_bytes);
}

/* The text in words, in at most `room` bytes; how many, or 0. */
static i64 pack_words(const struct segment *seg, const struct packed_form *form, struct desk *desk,
                      u8 *to, i64 room) {
    if (!desk->words) {
        desk->words = mem_alloc(desk->mem, (i64)sizeof *desk->words);
    }
    return desk->words && form->width == 4 ? loops_now()->words(seg, form, desk->words, to, room) : 0;
}

/* The text, behind `at` bytes of the column; where it ends, or 0. */
static i64 put_text(const struct segment *seg, const struct packed_form *form, struct desk *desk,
                    i64 at, struct pack_head *head) {
    i64 bytes = form->text_bytes, left = form->lay.total - 1 - at;
    i64 made = pack_words(seg, form, desk, desk->at + at, MIN_OF(left, words_room(bytes)));
    head->text = TEXT_WORDS;
    if (!made) {
        if (!desk_reserve(desk, form->lay.total, at)) {
            return 0;
        }
        head->text = TEXT_ZSTD;
        made = pack_text(seg->bytes, bytes, desk->at + at, left);
    }
    if (!made && left >= bytes) {
        head->text = TEXT_PLAIN;
        memcpy(desk->at + at, seg->bytes, (size_t)bytes);
        made = bytes;
    }
    head->text_bytes = (u64)made;
    return made ? at + made : 0;
}

i64 column_pack(const struct segment *seg, const struct packed_form *form, struct desk *desk) {
    bool numbers = seg->encoding == ENC_INT || seg->encoding == ENC_DICT || seg->encoding == ENC_STR;
    if (!numbers || form->width > 8 || !form->width || form->rows == 0 ||
        form->lay.total <= PACK_HEAD || !desk_reserve(desk, packed_room(form), 0)) {
        return 0;
    }
    struct pack_head head = {0};
    u8 *end = desk->at + form->lay.total - form->text_bytes - 1;
    u8 *to = loops_now()->numbers(seg, form, desk->at + PACK_HEAD, end);
    if (!to || end - to < form->lay.valid_bytes) {
        return 0;
    }
    head.number_bytes = (u64)(to - desk->at - PACK_HEAD);
    if (seg->valid) {
        memcpy(to, seg->valid, (size_t)form->lay.valid_bytes);
        to += form->lay.valid_bytes;
    }
    i64 bytes = to - desk->at;
    if (form->text_bytes) {
        bytes = put_text(seg, form, desk, bytes, &head);
    }
    if (bytes) {
        memcpy(desk->at, &head, PACK_HEAD);
    }
    return bytes;
}

/* What the column has besides its head. False: it cannot be so. */
static bool read_head(const u8 *from, i64 bytes, const struct packed_form *form,
                      struct pack_head *out) {
    if (bytes < PACK_HEAD || !form->width || form->width > 8) {
        return false;
    }
    memcpy(out, from, PACK_HEAD);
    i64 left = bytes - PACK_HEAD - form->lay.valid_bytes;
    return left >= 0 && out->number_bytes <= (u64)left &&
           out->text_bytes == (u64)left - out->number_bytes;
}

i64 packed_block_count(i64 rows) {
    return (rows + PACK_ROWS - 1) / PACK_ROWS;
}

bool packed_starts(const u8 *from, i64 bytes, const struct packed_form *form, u32 *out_starts) {
    struct pack_head head;
    if (!read_head(from, bytes, form, &head) || head.text_bytes || bytes >> 32) {
        return false;
    }
    i64 at = PACK_HEAD, end = PACK_HEAD + (i64)head.number_bytes;
    for (i64 first = 0; first < form->rows; first += PACK_ROWS) {
        struct block_head block;
        if (end - at < BLOCK_HEAD) {
            return false;
        }
        memcpy(&block, from + at, BLOCK_HEAD);
        out_starts[first / PACK_ROWS] = (u32)at;
        u32 bits = (u32)(block.form >> PACK_LEAST_BITS & 0x7f);
        at += BLOCK_HEAD + block_bytes(MIN_OF(form->rows - first, PACK_ROWS), bits);
        if (bits > 64) {
            return false;
        }
    }
    return at == end;
}

i64 packed_scratch_bytes(const struct packed_form *form) {
    return form->text_bytes ? (i64)sizeof(struct dictionary) : 0;
}

bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, void *scratch,
                   u8 *to) {
    struct pack_head head;
    if (!read_head(from, bytes, form, &head)) {
        return false;
    }
    const u8 *numbers = from + PACK_HEAD, *valid = numbers + head.number_bytes;
    const u8 *text = valid + form->lay.valid_bytes;
    const struct pack_loops *loops = loops_now();
    if (!loops->numbers_back(numbers, valid, form, to)) {
        return false;
    }
    memset(to + form->lay.data_bytes, 0, (size_t)(form->lay.bytes_at - form->lay.data_bytes));
    memcpy(to + form->lay.valid_at, valid, (size_t)form->lay.valid_bytes);
    if (head.text == TEXT_PLAIN) {
        bool fits = head.text_bytes == (u64)form->text_bytes;
        memcpy(to + form->lay.bytes_at, text, fits ? (size_t)form->text_bytes : 0);
        return fits;
    }
    if (head.text == TEXT_WORDS) {
        return loops->words_back(text, (i64)head.text_bytes, scratch, to + form->lay.bytes_at,
                                 form->text_bytes);
    }
    size_t made = ZSTD_decompress(to + form->lay.bytes_at, (size_t)form->text_bytes, text,
                                  (size_t)head.text_bytes);
    return head.text == TEXT_ZSTD && !ZSTD_isError(made) && made == (size_t)form->text_bytes;
}

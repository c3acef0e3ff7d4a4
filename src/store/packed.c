/* packed.c: columns to the disk and back: numbers in as many bits as they need, text in zstd.
 *
 * Numbers are what the segment holds: values less the least one, codes, ends of texts. Of every
 * PACK_ROWS of them, one block has either their distances from the least of them, or the distances of
 * their differences from the least difference, whichever takes fewer bits: ends of texts become
 * lengths, keys in order and runs of the same value next to nothing. All arithmetic is that of u64,
 * which wraps. docs/file-format.md has the bytes.
 *
 * Unpacking trusts no size: what does not fit is damage, though the checksum was right. */
#include "store/packed.h"

#include <zstd.h>

enum {
    PACK_ROWS = 1024,
    PACK_HEAD = 24,   /* bytes before the blocks */
    BLOCK_HEAD = 16,  /* bytes of a block before its bits */
    ZSTD_LEVEL = 1,
    TRIAL_BYTES = 1 << 16, /* of text, to see whether it pays */
    TEXT_PLAIN = 0,
    TEXT_ZSTD = 1,
};

struct pack_head {
    u8 text; /* TEXT_… */
    u8 zero[7];
    u64 number_bytes, text_bytes;
};
_Static_assert(sizeof(struct pack_head) == PACK_HEAD, "head");

struct block_head {
    u64 form;   /* the least number; from bit 56 the bits of each; bit 63: they are differences */
    u64 before; /* the number before the block's first */
};
enum { LEAST_BITS = 56, DIFFERS_BIT = 63 };
_Static_assert(sizeof(struct block_head) == BLOCK_HEAD, "block");

static i64 block_bytes(i64 rows, u32 bits) {
    return (rows * bits + 63) / 64 * 8;
}

static u32 bits_of(u64 span) {
    return span ? 64 - (u32)__builtin_clzll(span) : 0;
}

static void read_values(const void *from, u8 width, i64 first, i64 n, u64 *out) {
    const u8 *at = (const u8 *)from + first * width;
    switch (width) {
    case 1:
        for (i64 i = 0; i < n; i++) {
            out[i] = at[i];
        }
        break;
    case 2:
        for (i64 i = 0; i < n; i++) {
            out[i] = ((const u16 *)(const void *)at)[i];
        }
        break;
    case 4:
        for (i64 i = 0; i < n; i++) {
            out[i] = ((const u32 *)(const void *)at)[i];
        }
        break;
    default:
        memcpy(out, at, (size_t)n * 8);
    }
}

static void write_values(void *to, u8 width, i64 first, i64 n, const u64 *from) {
    u8 *at = (u8 *)to + first * width;
    switch (width) {
    case 1:
        for (i64 i = 0; i < n; i++) {
            at[i] = (u8)from[i];
        }
        break;
    case 2:
        for (i64 i = 0; i < n; i++) {
            ((u16 *)(void *)at)[i] = (u16)from[i];
        }
        break;
    case 4:
        for (i64 i = 0; i < n; i++) {
            ((u32 *)(void *)at)[i] = (u32)from[i];
        }
        break;
    default:
        memcpy(at, from, (size_t)n * 8);
    }
}

static void span_of(const u64 *values, i64 n, u64 *out_least, u64 *out_span) {
    u64 least = values[0], most = values[0];
    for (i64 i = 1; i < n; i++) {
        least = MIN_OF(least, values[i]);
        most = MAX_OF(most, values[i]);
    }
    *out_least = least;
    *out_span = most - least;
}

/* Differences as distances from a bias, so that small ones of either sign are small. */
static void differences(const u64 *values, i64 n, u64 before, u64 *out) {
    const u64 bias = 1ULL << 55;
    out[0] = values[0] - before + bias;
    for (i64 i = 1; i < n; i++) {
        out[i] = values[i] - values[i - 1] + bias;
    }
}

static void put_bits(u64 *words, const u64 *values, i64 n, u64 least, u32 bits) {
    for (i64 i = 0; i < n && bits; i++) {
        u64 value = values[i] - least, at = (u64)i * bits;
        u32 shift = at & 63;
        words[at >> 6] |= value << shift;
        if (shift + bits > 64) {
            words[(at >> 6) + 1] |= value >> (64 - shift);
        }
    }
}

static void pack_block(const u64 *values, i64 n, u64 before, struct blob *out) {
    u64 changes[PACK_ROWS], words[PACK_ROWS] = {0}, least, span, least_change, span_change;
    span_of(values, n, &least, &span);
    differences(values, n, before, changes);
    span_of(changes, n, &least_change, &span_change);
    u32 bits = least >> LEAST_BITS ? 64 : bits_of(span), bits_change = bits_of(span_change);
    bool differs = bits_change < bits && !(least_change >> LEAST_BITS);
    least = differs ? least_change : bits == 64 ? 0 : least;
    bits = differs ? bits_change : bits;
    struct block_head head = {
        least | (u64)bits << LEAST_BITS | (u64)differs << DIFFERS_BIT, before};
    blob_bytes(out, &head, (i64)sizeof head);
    put_bits(words, differs ? changes : values, n, least, bits);
    blob_bytes(out, words, block_bytes(n, bits));
}

static void pack_numbers(const struct segment *seg, const struct packed_form *form,
                         struct blob *out) {
    u64 values[PACK_ROWS], before = 0;
    for (i64 first = 0; first < form->rows; first += PACK_ROWS) {
        i64 n = MIN_OF(form->rows - first, PACK_ROWS);
        read_values(seg->data, form->width, first, n, values);
        pack_block(values, n, before, out);
        before = values[n - 1];
    }
}

/* Text in zstd, where a piece of it becomes smaller by a fifth; false: plain. */
static bool pack_text(const u8 *text, i64 bytes, struct blob *out) {
    size_t trial = (size_t)MIN_OF(bytes, TRIAL_BYTES), room = ZSTD_compressBound((size_t)bytes);
    i64 at = out->len;
    u8 *to = blob_room(out, (i64)room);
    if (!to) {
        return false;
    }
    size_t tried = ZSTD_compress(to, room, text, trial, ZSTD_LEVEL);
    size_t made = 0;
    bool pays = !ZSTD_isError(tried) && tried < trial / 5 * 4;
    if (pays) {
        made = ZSTD_compress(to, room, text, (size_t)bytes, ZSTD_LEVEL);
        pays = !ZSTD_isError(made) && made < (size_t)bytes;
    }
    out->len = at + (pays ? (i64)made : 0);
    return pays;
}

bool column_pack(const struct segment *seg, const struct packed_form *form, struct blob *out) {
    bool numbers = seg->encoding == ENC_INT || seg->encoding == ENC_DICT || seg->encoding == ENC_STR;
    if (!numbers || form->width > 8 || !form->width || form->rows == 0) {
        return false;
    }
    struct pack_head head = {0};
    blob_bytes(out, &head, PACK_HEAD);
    pack_numbers(seg, form, out);
    head.number_bytes = (u64)(out->len - PACK_HEAD);
    if (seg->valid) {
        blob_bytes(out, seg->valid, form->lay.valid_bytes);
    }
    i64 text_at = out->len;
    if (form->text_bytes) {
        head.text = pack_text(seg->bytes, form->text_bytes, out) ? TEXT_ZSTD : TEXT_PLAIN;
        if (head.text == TEXT_PLAIN) {
            blob_bytes(out, seg->bytes, form->text_bytes);
        }
    }
    head.text_bytes = (u64)(out->len - text_at);
    if (out->refused_bytes || out->len >= form->lay.total) {
        return false;
    }
    memcpy(out->data, &head, PACK_HEAD);
    return true;
}

static void get_bits(const u64 *words, i64 n, u64 least, u32 bits, u64 *out) {
    u64 mask = bits < 64 ? (1ULL << bits) - 1 : ~0ULL;
    for (i64 i = 0; i < n; i++) {
        u64 at = (u64)i * bits, value = words[at >> 6] >> (at & 63);
        u32 shift = at & 63;
        if (shift + bits > 64) {
            value |= words[(at >> 6) + 1] << (64 - shift);
        }
        out[i] = (value & mask) + least;
    }
}

static bool unpack_numbers(const u8 *at, const u8 *end, const struct packed_form *form, u8 *to) {
    u64 words[PACK_ROWS + 1], values[PACK_ROWS];
    const u64 bias = 1ULL << 55;
    for (i64 first = 0; first < form->rows; first += PACK_ROWS) {
        i64 n = MIN_OF(form->rows - first, PACK_ROWS);
        struct block_head head;
        if (end - at < BLOCK_HEAD) {
            return false;
        }
        memcpy(&head, at, BLOCK_HEAD);
        at += BLOCK_HEAD;
        u32 bits = (u32)(head.form >> LEAST_BITS & 0x7f);
        i64 bytes = block_bytes(n, bits);
        if (bits > 64 || end - at < bytes) {
            return false;
        }
        memcpy(words, at, (size_t)bytes);
        words[bytes / 8] = 0;
        get_bits(words, n, head.form & ((1ULL << LEAST_BITS) - 1), bits, values);
        if (head.form >> DIFFERS_BIT) {
            u64 last = head.before;
            for (i64 i = 0; i < n; i++) {
                last += values[i] - bias;
                values[i] = last;
            }
        }
        write_values(to, form->width, first, n, values);
        at += bytes;
    }
    return at == end;
}

bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, u8 *to) {
    struct pack_head head;
    if (bytes < PACK_HEAD || !form->width || form->width > 8) {
        return false;
    }
    memcpy(&head, from, PACK_HEAD);
    i64 left = bytes - PACK_HEAD - form->lay.valid_bytes;
    if (left < 0 || head.number_bytes > (u64)left ||
        head.text_bytes != (u64)left - head.number_bytes) {
        return false;
    }
    const u8 *numbers = from + PACK_HEAD, *valid = numbers + head.number_bytes;
    const u8 *text = valid + form->lay.valid_bytes;
    if (!unpack_numbers(numbers, valid, form, to)) {
        return false;
    }
    memset(to + form->lay.data_bytes, 0, (size_t)(form->lay.bytes_at - form->lay.data_bytes));
    memcpy(to + form->lay.valid_at, valid, (size_t)form->lay.valid_bytes);
    if (head.text == TEXT_PLAIN) {
        bool fits = head.text_bytes == (u64)form->text_bytes;
        memcpy(to + form->lay.bytes_at, text, fits ? (size_t)form->text_bytes : 0);
        return fits;
    }
    size_t made = ZSTD_decompress(to + form->lay.bytes_at, (size_t)form->text_bytes, text,
                                  (size_t)head.text_bytes);
    return head.text == TEXT_ZSTD && !ZSTD_isError(made) && made == (size_t)form->text_bytes;
}

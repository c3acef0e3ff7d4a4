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

#include <zstd.h>

enum {
    PACK_HEAD = 24,   /* bytes before the blocks */
    BLOCK_HEAD = 16,  /* bytes of a block before its bits */
    ZSTD_LEVEL = 1,
    TRIAL_BYTES = 1 << 16, /* of text, to see whether it pays */
    TEXT_PLAIN = 0,
    TEXT_ZSTD = 1,
    TEXT_WORDS = 2,
    WORDS_HEAD = 24,
    WORD_BYTES = 16,
    WORDS_MOST = 1 << 16, /* different ones that can be read */
    WORDS_MADE = WORDS_MOST - 1,
    WORDS_FREE = 1 << 12, /* from there on their bytes must be few */
    WORD_SLOT_BITS_FIRST = 12,
    WORD_SLOT_BITS = 17,
    PIECE_BYTES = 1 << 12, /* of text that is cut at once */
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
_Static_assert(sizeof(struct block_head) == BLOCK_HEAD, "block");

struct words_head {
    u32 words, zero;        /* that are different */
    u64 codes, code_bytes;
};
_Static_assert(sizeof(struct words_head) == WORDS_HEAD, "words");

static i64 block_bytes(i64 rows, u32 bits) {
    return (rows * bits + 63) / 64 * 8;
}

static u32 bits_of(u64 span) {
    return span ? 64 - (u32)__builtin_clzll(span) : 0;
}

/* --- bits ---
 * Neighbours are put together until a piece has more than half a word, then pieces follow each
 * other: the first is a loop that compilers make vectors of, the second takes few steps. Taking them
 * apart is the same backwards. What lies behind the last number is 0. */

struct words { /* of a block: numbers, pieces, or bits */
    u64 at[PACK_ROWS + 8];
};

static void pair_up(u64 *restrict to, const u64 *restrict from, i64 pairs, u32 bits) {
    for (i64 i = 0; i < pairs; i++) {
        to[i] = from[2 * i] | from[2 * i + 1] << bits;
    }
}

static void split_up(u64 *restrict to, const u64 *restrict from, i64 pairs, u32 bits) {
    u64 mask = (1ULL << bits) - 1;
    for (i64 i = 0; i < pairs; i++) {
        to[2 * i] = from[i] & mask;
        to[2 * i + 1] = from[i] >> bits;
    }
}

static void put_pieces(u64 *to, const u64 *pieces, i64 count, u32 bits) {
    u64 word = 0;
    u32 fill = 0;
    for (i64 i = 0; i < count; i++) {
        word |= pieces[i] << fill;
        fill += bits;
        if (fill >= 64) {
            *to++ = word;
            fill -= 64;
            word = fill ? pieces[i] >> (bits - fill) : 0;
        }
    }
    *to = word;
}

static void get_pieces(const u64 *from, u64 *pieces, i64 count, u32 bits) {
    u64 mask = bits < 64 ? (1ULL << bits) - 1 : ~0ULL;
    for (i64 i = 0; i < count; i++) {
        u64 at = (u64)i * bits;
        u32 shift = at & 63;
        u64 high = shift ? from[(at >> 6) + 1] << (64 - shift) : 0;
        pieces[i] = (from[at >> 6] >> shift | high) & mask;
    }
}

/* The bits of n numbers; `numbers` is used up. */
static const u64 *put_bits(struct words *numbers, struct words *room, struct words *out, i64 n,
                           u32 bits) {
    u64 *from = numbers->at, *next = room->at;
    for (; bits && bits <= 32 && n > 1; bits *= 2) {
        from[n] = 0;
        n = (n + 1) / 2;
        pair_up(next, from, n, bits);
        u64 *swap = from;
        from = next;
        next = swap;
    }
    if (bits) {
        put_pieces(out->at, from, n, bits);
    }
    return out->at;
}

/* The n numbers again; they lie in one of the two. */
static u64 *get_bits(const struct words *bits_in, struct words *one, struct words *two, i64 n,
                     u32 bits) {
    u64 *now = one->at, *next = two->at;
    u32 steps = 0;
    while (bits << steps <= 32 && n > 1LL << steps) {
        steps++;
    }
    i64 count = (n + (1LL << steps) - 1) >> steps;
    get_pieces(bits_in->at, now, count, bits << steps);
    for (; steps > 0; count *= 2) {
        split_up(next, now, count, bits << --steps);
        u64 *swap = now;
        now = next;
        next = swap;
    }
    return now;
}

/* --- numbers --- */

static void read_wide(const void *from, i64 first, i64 n, u64 *out) {
    memcpy(out, (const u8 *)from + first * 8, (size_t)n * 8);
}

static void read_narrow(const void *from, u8 width, i64 first, i64 n, u32 *out) {
    const u8 *at = (const u8 *)from + first * width;
    if (width == 1) {
        for (i64 i = 0; i < n; i++) {
            out[i] = at[i];
        }
    } else if (width == 2) {
        for (i64 i = 0; i < n; i++) {
            out[i] = ((const u16 *)(const void *)at)[i];
        }
    } else {
        memcpy(out, at, (size_t)n * 4);
    }
}

/* Numbers plus `least`, in `width` bytes each. */
static void write_values(void *to, u8 width, i64 first, i64 n, const u64 *from, u64 least) {
    u8 *at = (u8 *)to + first * width;
    switch (width) {
    case 1:
        for (i64 i = 0; i < n; i++) {
            at[i] = (u8)(from[i] + least);
        }
        break;
    case 2:
        for (i64 i = 0; i < n; i++) {
            ((u16 *)(void *)at)[i] = (u16)(from[i] + least);
        }
        break;
    case 4:
        for (i64 i = 0; i < n; i++) {
            ((u32 *)(void *)at)[i] = (u32)(from[i] + least);
        }
        break;
    default:
        for (i64 i = 0; i < n; i++) {
            ((u64 *)(void *)at)[i] = from[i] + least;
        }
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

/* As distances from a bias, so that small ones of either sign are small. */
static void differences(const u64 *values, i64 n, u64 before, u64 *out) {
    out[0] = values[0] - before + PACK_BIAS;
    for (i64 i = 1; i < n; i++) {
        out[i] = values[i] - values[i - 1] + PACK_BIAS;
    }
}

/* One block on its way. */
struct packing {
    u8 *at, *end; /* where it goes; at = NULL: there is no room */
    u64 before;   /* the number before the block */
    struct words numbers, changes, bits;
};

static void put_block(struct packing *p, struct words *numbers, struct words *room, i64 n,
                      u64 form, u32 bits) {
    struct block_head head = {form | (u64)bits << PACK_LEAST_BITS, p->before};
    i64 bytes = block_bytes(n, bits);
    if (!p->at || p->end - p->at < BLOCK_HEAD + bytes) {
        p->at = NULL;
        return;
    }
    memcpy(p->at, &head, BLOCK_HEAD);
    memcpy(p->at + BLOCK_HEAD, put_bits(numbers, room, &p->bits, n, bits), (size_t)bytes);
    p->at += BLOCK_HEAD + bytes;
}

static void pack_wide(struct packing *p, i64 n) {
    u64 *values = p->numbers.at, *changes = p->changes.at;
    u64 least, span, least_change, span_change, last = values[n - 1];
    span_of(values, n, &least, &span);
    differences(values, n, p->before, changes);
    span_of(changes, n, &least_change, &span_change);
    u32 bits = least >> PACK_LEAST_BITS ? 64 : bits_of(span), bits_change = bits_of(span_change);
    bool differs = bits_change < bits && !(least_change >> PACK_LEAST_BITS);
    if (differs) {
        for (i64 i = 0; i < n; i++) {
            changes[i] -= least_change;
        }
        put_block(p, &p->changes, &p->numbers, n, least_change | 1ULL << PACK_DIFFERS_BIT, bits_change);
    } else {
        least = bits == 64 ? 0 : least;
        for (i64 i = 0; i < n; i++) {
            values[i] -= least;
        }
        put_block(p, &p->numbers, &p->changes, n, least, bits);
    }
    p->before = last;
}

static void spans_narrow(const u32 *restrict values, i64 n, u32 *out_least, u32 *out_most) {
    u32 least = values[0], most = values[0];
    for (i64 i = 1; i < n; i++) {
        least = MIN_OF(least, values[i]);
        most = MAX_OF(most, values[i]);
    }
    *out_least = least;
    *out_most = most;
}

/* The least and greatest of the n - 1 differences, which i32 holds. */
static void changes_narrow(const u32 *restrict values, i64 n, i32 *out_least, i32 *out_most) {
    i32 least = 0x7fffffff, most = -0x7fffffff - 1;
    for (i64 i = 1; i < n; i++) {
        i32 change = (i32)(values[i] - values[i - 1]);
        least = MIN_OF(least, change);
        most = MAX_OF(most, change);
    }
    *out_least = least;
    *out_most = most;
}

/* The same for numbers of 32 bits, of which vectors hold more. */
static void pack_narrow(struct packing *p, const u32 *values, i64 n) {
    u32 low, high;
    u64 *numbers = p->numbers.at;
    spans_narrow(values, n, &low, &high);
    if (high - low > 0x7fffffffu) {
        for (i64 i = 0; i < n; i++) {
            numbers[i] = values[i];
        }
        pack_wide(p, n);
        return;
    }
    i32 fall, rise;
    changes_narrow(values, n, &fall, &rise);
    i64 first = (i64)values[0] - (i64)p->before;
    i64 least = MIN_OF(first, (i64)fall), most = MAX_OF(first, (i64)rise);
    u32 bits = bits_of(high - low), bits_change = bits_of((u64)(most - least));
    if (bits_change < bits) {
        numbers[0] = (u64)(first - least);
        for (i64 i = 1; i < n; i++) {
            numbers[i] = values[i] - values[i - 1] - (u32)least;
        }
        put_block(p, &p->numbers, &p->changes, n, ((u64)least + PACK_BIAS) | 1ULL << PACK_DIFFERS_BIT,
                  bits_change);
    } else {
        for (i64 i = 0; i < n; i++) {
            numbers[i] = values[i] - low;
        }
        put_block(p, &p->numbers, &p->changes, n, low, bits);
    }
    p->before = values[n - 1];
}

/* Where they end; NULL when they do not fit. */
static u8 *pack_numbers(const struct segment *seg, const struct packed_form *form, u8 *to,
                        u8 *end) {
    struct packing p = {.at = to, .end = end};
    u32 narrow[PACK_ROWS];
    for (i64 first = 0; first < form->rows && p.at; first += PACK_ROWS) {
        i64 n = MIN_OF(form->rows - first, PACK_ROWS);
        if (form->width == 8) {
            read_wide(seg->data, first, n, p.numbers.at);
            pack_wide(&p, n);
        } else {
            read_narrow(seg->data, form->width, first, n, narrow);
            pack_narrow(&p, narrow, n);
        }
    }
    return p.at;
}

/* --- text of words ---
 * Text is cut behind each space, after WORD_BYTES and at the ends of rows; each different piece, a
 * word, gets a number in the order of appearance, so that frequent ones are small, and the numbers
 * are packed. It takes a look at a table for every few bytes, and no search: less time than zstd
 * where rows are made of few words. Where words are too many it gives up soon. */

struct word {
    u64 low, high; /* its bytes, the rest 0 */
    u32 len, zero;
};

struct wording {
    struct packing p;
    u32 codes[PACK_ROWS];
    i64 waiting; /* of codes */
    u64 cuts[PIECE_BYTES / 64];
    u16 ends[PIECE_BYTES + 8]; /* of the words of a piece */
    u16 slots[1 << WORD_SLOT_BITS]; /* 2^bits of them: where a word is in `words`, + 1; 0 = nobody */
    u32 bits;
    u32 count;
    i64 total, word_bytes;
    struct word words[WORDS_MADE]; /* by code */
};

#define BYTES_OF(b) (0x0101010101010101ULL * (b))

/* A bit for each of 8 bytes that is a space. */
static u64 spaces_of(const u8 *text) {
    u64 x;
    memcpy(&x, text, 8);
    x ^= BYTES_OF(' ');
    u64 zero = ~(((x & BYTES_OF(0x7f)) + BYTES_OF(0x7f)) | x | BYTES_OF(0x7f));
    return (zero >> 7) * 0x0102040810204080ULL >> 56;
}

static u64 spaces_of_64(const u8 *text) {
    u64 bits = 0;
    for (i32 i = 0; i < 8; i++) {
        bits |= spaces_of(text + 8 * i) << 8 * i;
    }
    return bits;
}

/* The word of `len` bytes, 1 to WORD_BYTES, at the start of as many that can be read. */
static inline struct word word_at(const u8 *text, i64 len) {
    u64 low, high;
    memcpy(&low, text, 8);
    memcpy(&high, text + 8, 8);
    u64 mask = ~0ULL >> ((0 - len) & 7) * 8; /* of the last 8 bytes that it has some of */
    return (struct word){low & (len > 8 ? ~0ULL : mask), high & (len > 8 ? mask : 0), (u32)len, 0};
}

static void flush_codes(struct wording *w) {
    if (w->waiting) {
        pack_narrow(&w->p, w->codes, w->waiting);
        w->waiting = 0;
    }
}

/* Where the word's code is, or would be. Codes are small, and those of frequent words near each other,
 * so that most of both tables is found near the processor. */
static inline u16 *find_word(struct wording *w, const struct word *word) {
    u64 hash = (word->low ^ word->high * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
    u32 at = (u32)(hash >> (64 - w->bits)), mask = (1u << w->bits) - 1;
    for (; w->slots[at]; at = (at + 1) & mask) {
        const struct word *there = &w->words[w->slots[at] - 1];
        u64 differs = (there->low ^ word->low) | (there->high ^ word->high);
        if (!(differs | (there->len ^ word->len))) {
            break;
        }
    }
    return &w->slots[at];
}

static void lay_slots(struct wording *w, u32 bits) {
    w->bits = bits;
    memset(w->slots, 0, sizeof *w->slots << bits);
    for (u32 i = 0; i < w->count; i++) {
        *find_word(w, &w->words[i]) = (u16)(i + 1);
    }
}

static bool add_word(struct wording *w, u16 *slot, const struct word *word) {
    if (w->count == WORDS_MADE) {
        return false;
    }
    w->words[w->count++] = *word;
    *slot = (u16)w->count;
    w->word_bytes += word->len;
    if (w->count * 4 > 1u << w->bits && w->bits < WORD_SLOT_BITS) {
        lay_slots(w, w->bits + 1);
    }
    return true;
}

/* False: there are too many words. */
static inline bool put_word(struct wording *w, const struct word *word) {
    u16 *slot = find_word(w, word);
    u32 code = *slot ? *slot - 1u : w->count;
    if (!*slot && !add_word(w, slot, word)) {
        return false;
    }
    w->codes[w->waiting++] = code;
    w->total++;
    if (w->waiting == PACK_ROWS) {
        flush_codes(w);
    }
    return true;
}

/* The places behind the bits that are set, eight at a time: how many there are nobody can foresee. */
static i32 list_cuts(const u64 *cuts, i32 words, u16 *out) {
    i32 count = 0;
    for (i32 j = 0; j < words; j++) {
        for (u64 left = cuts[j]; left;) {
            for (i32 k = 0; k < 8; k++) {
                out[count] = (u16)(j * 64 + __builtin_ctzll(left | 1ULL << 63) + 1);
                count += left != 0;
                left &= left - 1;
            }
        }
    }
    return count;
}

/* Words of a piece, which end where w->ends says; longer ones are several. */
static bool put_words(struct wording *w, const u8 *text, i32 count) {
    i64 at = 0;
    for (i32 i = 0; i < count; i++) {
        i64 end = w->ends[i];
        do {
            struct word word = word_at(text + at, MIN_OF(end - at, WORD_BYTES));
            at += word.len;
            if (!put_word(w, &word)) {
                return false;
            }
        } while (at < end);
    }
    return true;
}

/* A piece is cut wherever words end before any of them is looked at, so that none waits for the one
 * before it. The next begins where its last word ends. */
static bool put_rows(struct wording *w, const u8 *text, const u32 *ends, i64 rows, i64 bytes) {
    u8 last[PIECE_BYTES + WORD_BYTES];
    i64 row = 0;
    for (i64 at = 0; at < bytes; at += w->ends[0]) {
        i64 n = MIN_OF(bytes - at, PIECE_BYTES);
        const u8 *from = text + at;
        if (bytes - at < PIECE_BYTES + WORD_BYTES) {
            memset(last, 0, sizeof last);
            memcpy(last, from, (size_t)MIN_OF(bytes - at, (i64)sizeof last));
            from = last;
        }
        for (i64 i = 0; i * 64 < n; i++) {
            w->cuts[i] = spaces_of_64(from + i * 64);
        }
        for (; row < rows && (i64)ends[row] <= at + n; row++) {
            i64 end = (i64)ends[row] - at - 1; /* an empty row ends where the one before it does */
            w->cuts[MAX_OF(end, 0) / 64] |= end >= 0 ? 1ULL << end % 64 : 0;
        }
        i32 count = list_cuts(w->cuts, (i32)((n + 63) / 64), w->ends);
        if (count == 0) {
            w->ends[count++] = (u16)n;
        }
        bool many = w->count > WORDS_FREE && w->word_bytes * 8 > at;
        if (many || !w->p.at || !put_words(w, from, count)) {
            return false;
        }
        w->ends[0] = w->ends[count - 1];
    }
    return true;
}

/* The text of the column in words, in at most `room` bytes; how many, or 0. */
static i64 pack_words(const struct segment *seg, const struct packed_form *form,
                      struct memory *mem, u8 *to, i64 room) {
    i64 bytes = (i64)sizeof(struct wording);
    struct wording *w = room > WORDS_HEAD && form->width == 4 ? mem_alloc(mem, bytes) : NULL;
    if (!w) {
        return 0;
    }
    memset(w, 0, offsetof(struct wording, cuts));
    w->count = 0;
    w->total = w->word_bytes = 0;
    lay_slots(w, WORD_SLOT_BITS_FIRST);
    w->p.at = to + WORDS_HEAD;
    w->p.end = to + room;
    bool fine = put_rows(w, seg->bytes, seg->data, form->rows, form->text_bytes);
    if (fine) {
        flush_codes(w);
    }
    u8 *at = w->p.at;
    fine = fine && at && to + room - at >= w->count + w->word_bytes;
    if (fine) {
        struct words_head head = {w->count, 0, (u64)w->total, (u64)(at - to - WORDS_HEAD)};
        memcpy(to, &head, WORDS_HEAD);
        for (u32 i = 0; i < w->count; i++) {
            *at++ = (u8)w->words[i].len;
        }
        for (u32 i = 0; i < w->count; i++) {
            memcpy(at, &w->words[i], w->words[i].len); /* its bytes come first */
            at += w->words[i].len;
        }
    }
    mem_free(mem, w, bytes);
    return fine ? at - to : 0;
}

/* --- columns --- */

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

void desk_fini(struct desk *desk) {
    mem_free(desk->mem, desk->at, desk->bytes);
    desk->at = NULL;
    desk->bytes = 0;
}

bool desk_reserve(struct desk *desk, i64 bytes, i64 kept) {
    if (bytes <= desk->bytes) {
        return true;
    }
    u8 *at = mem_alloc(desk->mem, bytes);
    if (!at) {
        return false;
    }
    if (kept) {
        memcpy(at, desk->at, (size_t)kept);
    }
    desk_fini(desk);
    desk->at = at;
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

/* The text, behind `at` bytes of the column; where it ends, or 0. */
static i64 put_text(const struct segment *seg, const struct packed_form *form, struct desk *desk,
                    i64 at, struct pack_head *head) {
    i64 bytes = form->text_bytes, left = form->lay.total - 1 - at;
    i64 made = pack_words(seg, form, desk->mem, desk->at + at, MIN_OF(left, words_room(bytes)));
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
    u8 *to = pack_numbers(seg, form, desk->at + PACK_HEAD, end);
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

/* One block of n numbers at *io_at: they lie in `one` or `two`, less *out_least; NULL: it cannot be one. */
static u64 *unpack_block(const u8 **io_at, const u8 *end, i64 n, struct words *one,
                         struct words *two, u64 *out_least) {
    struct words bits_in;
    struct block_head head;
    const u8 *at = *io_at;
    if (end - at < BLOCK_HEAD) {
        return NULL;
    }
    memcpy(&head, at, BLOCK_HEAD);
    at += BLOCK_HEAD;
    u32 bits = (u32)(head.form >> PACK_LEAST_BITS & 0x7f);
    i64 bytes = block_bytes(n, bits);
    if (bits > 64 || end - at < bytes) {
        return NULL;
    }
    memcpy(bits_in.at, at, (size_t)bytes);
    memset((u8 *)bits_in.at + bytes, 0, 3 * sizeof(u64)); /* pieces go beyond the numbers */
    *io_at = at + bytes;
    u64 *values = one->at, least = head.form & ((1ULL << PACK_LEAST_BITS) - 1);
    if (bits) {
        values = get_bits(&bits_in, one, two, n, bits);
    } else {
        memset(values, 0, (size_t)n * 8);
    }
    *out_least = least;
    if (head.form >> PACK_DIFFERS_BIT) {
        u64 last = head.before;
        for (i64 i = 0; i < n; i++) {
            last += values[i] + least - PACK_BIAS;
            values[i] = last;
        }
        *out_least = 0;
    }
    return values;
}

static bool unpack_numbers(const u8 *at, const u8 *end, const struct packed_form *form, u8 *to) {
    struct words one, two;
    for (i64 first = 0; first < form->rows; first += PACK_ROWS) {
        i64 n = MIN_OF(form->rows - first, PACK_ROWS);
        u64 least;
        const u64 *values = unpack_block(&at, end, n, &one, &two, &least);
        if (!values) {
            return false;
        }
        write_values(to, form->width, first, n, values, least);
    }
    return at == end;
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

struct dictionary {
    u8 words[WORDS_MOST][WORD_BYTES];
    u8 lens[WORDS_MOST];
};

/* The words, behind the numbers; false: they cannot be. */
static bool read_words(struct dictionary *dict, u32 count, const u8 *at, const u8 *end) {
    if (count > WORDS_MOST || end - at < count) {
        return false;
    }
    memcpy(dict->lens, at, count);
    at += count;
    for (u32 i = 0; i < count; i++) {
        u8 len = dict->lens[i];
        if (len > WORD_BYTES || end - at < len) {
            return false;
        }
        memset(dict->words[i], 0, WORD_BYTES);
        memcpy(dict->words[i], at, len);
        at += len;
    }
    return at == end;
}

/* Words of one block; where they end, NULL when they are more than there is room for. Each is written
 * with WORD_BYTES: a frame's pad lies behind the text. */
static u8 *put_block_words(const struct dictionary *dict, u32 count, const u64 *values, u64 least,
                           i64 n, u8 *to, const u8 *end) {
    for (i64 i = 0; i < n; i++) {
        u64 code = values[i] + least;
        if (code >= count || to > end) {
            return NULL;
        }
        memcpy(to, dict->words[code], WORD_BYTES);
        to += dict->lens[code];
    }
    return to;
}

static bool unpack_codes(const struct dictionary *dict, const struct words_head *head, const u8 *at,
                         u8 *to, i64 text_bytes) {
    const u8 *codes_end = at + head->code_bytes, *end = to + text_bytes;
    struct words one, two;
    for (u64 first = 0; first < head->codes; first += PACK_ROWS) {
        i64 n = (i64)MIN_OF(head->codes - first, PACK_ROWS);
        u64 least;
        const u64 *values = unpack_block(&at, codes_end, n, &one, &two, &least);
        to = values ? put_block_words(dict, head->words, values, least, n, to, end) : NULL;
        if (!to) {
            return false;
        }
    }
    return at == codes_end && to == end;
}

i64 packed_scratch_bytes(const struct packed_form *form) {
    return form->text_bytes ? (i64)sizeof(struct dictionary) : 0;
}

static bool unpack_words(const u8 *from, i64 bytes, struct dictionary *dict, u8 *to,
                         i64 text_bytes) {
    struct words_head head;
    if (bytes < WORDS_HEAD) {
        return false;
    }
    memcpy(&head, from, WORDS_HEAD);
    from += WORDS_HEAD;
    bytes -= WORDS_HEAD;
    if (head.code_bytes > (u64)bytes) {
        return false;
    }
    bool fine = read_words(dict, head.words, from + head.code_bytes, from + bytes) &&
                unpack_codes(dict, &head, from, to, text_bytes);
    memset(to + text_bytes, 0, WORD_BYTES);
    return fine;
}

bool column_unpack(const u8 *from, i64 bytes, const struct packed_form *form, void *scratch,
                   u8 *to) {
    struct pack_head head;
    if (!read_head(from, bytes, form, &head)) {
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
    if (head.text == TEXT_WORDS) {
        return unpack_words(text, (i64)head.text_bytes, scratch, to + form->lay.bytes_at,
                            form->text_bytes);
    }
    size_t made = ZSTD_decompress(to + form->lay.bytes_at, (size_t)form->text_bytes, text,
                                  (size_t)head.text_bytes);
    return head.text == TEXT_ZSTD && !ZSTD_isError(made) && made == (size_t)form->text_bytes;
}

/* pack_loops.c: the loops that pack and unpack columns, compiled once per processor level.
 *
 * What they write and read is the same at every level. packed.c says what they are for, docs/file-format.md
 * has the bytes. */
#include "store/pack_loops.h"

#include "base/level.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
    WORDS_HEAD = 24,
    NOBODY = WORDS_MADE,
    WORDS_FREE = 1 << 12, /* from there on their bytes must be few */
    WORD_SLOT_BITS_FIRST = 12,
};

struct words_head {
    u32 words, zero;        /* that are different */
    u64 codes, code_bytes;
};
_Static_assert(sizeof(struct words_head) == WORDS_HEAD, "words");

static u32 bits_of(u64 span) {
    return span ? 64 - (u32)__builtin_clzll(span) : 0;
}

/* --- bits ---
 * Neighbours are put together until a piece has more than half a word, then pieces follow each
 * other: the first is a loop that compilers make vectors of, the second takes few steps. Taking them
 * apart is the same backwards. What lies behind the last number is 0. */

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

/* --- text of words ---
 * Text is cut behind each space, after WORD_BYTES and at the ends of rows; each different piece, a
 * word, gets a number in the order of appearance, so that frequent ones are small, and the numbers
 * are packed. It takes a look at a table for every few bytes, and no search: less time than zstd
 * where rows are made of few words. Where words are too many it gives up soon. */

/* The bytes of a word that are its own, by its length. */
#define OWN(n) {(n) >= 8 ? ~0ULL : (1ULL << (n) % 8 * 8) - 1, \
                (n) <= 8 ? 0 : (n) == 16 ? ~0ULL : (1ULL << (n) % 8 * 8) - 1}
static const u64 own_bytes[WORD_BYTES + 1][2] = {OWN(0),  OWN(1),  OWN(2),  OWN(3),  OWN(4),  OWN(5),
                                                 OWN(6),  OWN(7),  OWN(8),  OWN(9),  OWN(10), OWN(11),
                                                 OWN(12), OWN(13), OWN(14), OWN(15), OWN(16)};

/* A bit for each of 64 bytes that is a space; *io_zero: some byte is 0. */
#if defined(__SSE2__)
static u64 spaces_of_64(const u8 *text, u64 *io_zero) {
    u64 bits = 0;
    __m128i least = _mm_set1_epi8(-1);
    for (i32 i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(text + 16 * i));
        least = _mm_min_epu8(least, x);
        bits |= (u64)(u32)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8(' '))) << 16 * i;
    }
    *io_zero |= (u64)(u32)_mm_movemask_epi8(_mm_cmpeq_epi8(least, _mm_setzero_si128()));
    return bits;
}
#else
#define BYTES_OF(b) (0x0101010101010101ULL * (b))

static u64 zeros_of(u64 x) { /* a bit for each of 8 bytes that is 0 */
    u64 low = BYTES_OF(0x7f), zero = ~(((x & low) + low) | x | low);
    return (zero >> 7) * 0x0102040810204080ULL >> 56;
}

static u64 spaces_of_64(const u8 *text, u64 *io_zero) {
    u64 bits = 0;
    for (i32 i = 0; i < 8; i++) {
        u64 x;
        memcpy(&x, text + 8 * i, 8);
        *io_zero |= zeros_of(x);
        bits |= zeros_of(x ^ BYTES_OF(' ')) << 8 * i;
    }
    return bits;
}
#endif

/* Its upper bits say where a word is; its products lie in one vector. */
#define HASH_BY 0x9e3779b1u, 0x85ebca77u, 0xc2b2ae3du, 0x27d4eb2fu
static inline u32 word_hash(struct word word) {
    static const u32 by[] = {HASH_BY};
    return (u32)word.low * by[0] + (u32)(word.low >> 32) * by[1] + (u32)word.high * by[2] +
           (u32)(word.high >> 32) * by[3];
}

static void flush_codes(struct wording *w) {
    if (w->waiting) {
        pack_narrow(&w->p, w->codes, w->waiting);
        w->waiting = 0;
    }
}

static inline bool is_same(const struct word *there, struct word word) {
    return !((there->low ^ word.low) | (there->high ^ word.high));
}

/* Where the word's code is, or would be. */
static u16 *find_word(struct wording *w, struct word word) {
    u32 at = word_hash(word) >> w->shift, mask = ~0u >> w->shift;
    while (w->slots[at] != NOBODY && !is_same(&w->words[w->slots[at]], word)) {
        at = (at + 1) & mask;
    }
    return &w->slots[at];
}

static void lay_slots(struct wording *w, u32 shift) {
    w->shift = shift;
    memset(w->slots, 0xff, sizeof *w->slots << (32 - shift));
    for (u32 i = 0; i < w->count; i++) {
        *find_word(w, w->words[i]) = (u16)i;
    }
}

/* The code of a word that is not where it would be at first, or new; NOBODY: there are too many. */
static u32 add_word(struct wording *w, struct word word, i64 len) {
    u16 *slot = find_word(w, word);
    if (*slot != NOBODY || w->count == WORDS_MADE) {
        return *slot;
    }
    u32 code = w->count++;
    w->words[code] = word;
    w->word_lens[code] = (u8)len;
    w->word_bytes += len;
    *slot = (u16)code;
    if ((u64)w->count << (w->shift + 2) > 1ULL << 32 && w->shift > 32 - WORD_SLOT_BITS) {
        lay_slots(w, w->shift - 1);
    }
    return code;
}

static inline struct word word_at(const u8 *text, i64 len) {
    struct word word;
    memcpy(&word, text, sizeof word);
    word.low &= own_bytes[len][0];
    word.high &= own_bytes[len][1];
    return word;
}

#if defined(__AVX512BW__) && defined(__AVX512DQ__)
static inline __m512i four_words(const void *a, const void *b, const void *c, const void *d) {
    __m256i ab = _mm256_castsi128_si256(_mm_loadu_si128(a));
    __m256i cd = _mm256_castsi128_si256(_mm_loadu_si128(c));
    ab = _mm256_inserti128_si256(ab, _mm_loadu_si128(b), 1);
    cd = _mm256_inserti128_si256(cd, _mm_loadu_si128(d), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}

#define ONES 0x0001000100010001ULL
/* Four at once; where each of them would be at first, into `at`. */
static inline __m512i hash_four(const u8 *text, const u16 *starts, const u16 *lens, u32 shift,
                                u32 at[16]) {
    static const u32 factors[] = {HASH_BY};
    static const u8 places[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const u64 lanes[] = {0, 0, ONES, ONES, 2 * ONES, 2 * ONES, 3 * ONES, 3 * ONES};
    __m512i spread = _mm512_loadu_si512(lanes);
    __m128i len = _mm_loadl_epi64((const void *)lens);
    len = _mm_mullo_epi16(len, _mm_set1_epi16(0x0101)); /* in each byte */
    __m512i own = _mm512_permutexvar_epi16(spread, _mm512_castsi128_si512(len));
    __m512i words = four_words(text + starts[0], text + starts[1], text + starts[2], text + starts[3]);
    __m512i place = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)places));
    words = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(place, own), words);
    __m512i by = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)factors));
    __m512i hash = _mm512_mullo_epi32(words, by);
    hash = _mm512_add_epi32(hash, _mm512_shuffle_epi32(hash, 0xb1));
    hash = _mm512_add_epi32(hash, _mm512_shuffle_epi32(hash, 0x4e));
    _mm512_storeu_si512(at, _mm512_srl_epi32(hash, _mm_cvtsi32_si128((int)shift)));
    return words;
}

/* The codes of up to n words of `text`, until one is not where it would be at first. How many. */
static i64 find_codes(const struct wording *w, const u8 *text, const u16 *starts, const u16 *lens,
                      i64 n, u32 *codes) {
    const struct word *words = w->words;
    i64 i = 0;
    for (; i + 4 <= n; i += 4) {
        u32 at[16];
        __m512i four = hash_four(text, starts + i, lens + i, w->shift, at);
        u32 a = w->slots[at[0]], b = w->slots[at[4]], c = w->slots[at[8]], d = w->slots[at[12]];
        codes[i] = a;
        codes[i + 1] = b;
        codes[i + 2] = c;
        codes[i + 3] = d;
        u32 differ = _mm512_cmpneq_epi64_mask(
            four, four_words(&words[a], &words[b], &words[c], &words[d]));
        if (differ) {
            return i + __builtin_ctz(differ) / 2;
        }
    }
    return i;
}
#else
static i64 find_codes(const struct wording *w, const u8 *text, const u16 *starts, const u16 *lens,
                      i64 n, u32 *codes) {
    i64 i = 0;
    for (; i < n; i++) {
        struct word word = word_at(text + starts[i], lens[i]);
        codes[i] = w->slots[word_hash(word) >> w->shift];
        if (!is_same(&w->words[codes[i]], word)) {
            break;
        }
    }
    return i;
}
#endif

/* The codes of n words of `text`, of 1 to WORD_BYTES bytes each. False: there are too many that differ. */
static bool put_codes(struct wording *w, const u8 *text, const u16 *starts, const u16 *lens, i64 n) {
    u32 *codes = w->codes + w->waiting;
    for (i64 i = 0; i < n;) {
        i += find_codes(w, text, starts + i, lens + i, n - i, codes + i);
        if (i < n) {
            codes[i] = add_word(w, word_at(text + starts[i], lens[i]), lens[i]);
            if (codes[i++] == NOBODY) {
                return false;
            }
        }
    }
    w->waiting += n;
    w->total += n;
    if (w->waiting == PACK_ROWS) {
        flush_codes(w);
    }
    return true;
}

/* The places behind the bits that are set, eight at a time: how many there are nobody can foresee. */
static i32 list_cuts(const u64 *cuts, i32 words, u16 *out) {
    const u16 *start = out;
    for (i32 j = 0; j < words; j++) {
        u16 *to = out;
        out += __builtin_popcountll(cuts[j]);
        for (u64 left = cuts[j]; left; to += 8) {
            for (i32 k = 0; k < 8; k++) {
                to[k] = (u16)(j * 64 + __builtin_ctzll(left | 1ULL << 63) + 1);
                left &= left - 1;
            }
        }
    }
    return (i32)(out - start);
}

/* How long words are, and the longest. The first begins at 0. */
static i32 list_lens(const u16 *restrict starts, i32 count, u16 *restrict lens) {
    u16 most = 0;
    for (i32 i = 0; i < count; i++) {
        lens[i] = (u16)(starts[i + 1] - starts[i]);
        most = MAX_OF(most, lens[i]);
    }
    return most;
}

/* Longer words are several. */
static i32 split_words(struct wording *w, i32 count) {
    u16 starts[PIECE_BYTES + 1];
    i32 n = 0;
    memcpy(starts, w->starts, (size_t)(count + 1) * sizeof *starts);
    for (i32 i = 0, at = 0; i < count; i++) {
        for (; at < starts[i + 1]; n++) {
            w->starts[n] = (u16)at;
            w->lens[n] = (u16)MIN_OF(starts[i + 1] - at, WORD_BYTES);
            at += w->lens[n];
        }
    }
    return n;
}

/* Words of a piece, which begin where w->starts says. */
static bool put_words(struct wording *w, const u8 *text, i32 count) {
    if (list_lens(w->starts, count, w->lens) > WORD_BYTES) {
        count = split_words(w, count);
    }
    bool fine = true;
    for (i64 i = 0, n; i < count && fine; i += n) {
        n = MIN_OF(count - i, PACK_ROWS - w->waiting);
        fine = put_codes(w, text, w->starts + i, w->lens + i, n);
    }
    return fine;
}

/* A piece is cut wherever words end before any of them is looked at, so that none waits for the one
 * before it. The next begins where its last word ends. */
static bool put_rows(struct wording *w, const u8 *text, const u32 *ends, i64 rows, i64 bytes) {
    u8 last[PIECE_BYTES + WORD_BYTES];
    i64 row = 0;
    w->starts[0] = 0;
    for (i64 at = 0, used; at < bytes; at += used) {
        i64 n = MIN_OF(bytes - at, PIECE_BYTES);
        u64 zero = 0;
        const u8 *from = text + at;
        if (bytes - at < PIECE_BYTES + WORD_BYTES) {
            memset(last, ' ', sizeof last);
            memcpy(last, from, (size_t)MIN_OF(bytes - at, (i64)sizeof last));
            from = last;
        }
        for (i64 i = 0; i * 64 < n; i++) {
            w->cuts[i] = spaces_of_64(from + i * 64, &zero);
        }
        if (n % 64) {
            w->cuts[n / 64] &= (1ULL << n % 64) - 1;
        }
        for (; row < rows && (i64)ends[row] <= at + n; row++) {
            i64 end = (i64)ends[row] - at - 1; /* an empty row ends where the one before it does */
            w->cuts[MAX_OF(end, 0) / 64] |= end >= 0 ? 1ULL << end % 64 : 0;
        }
        i32 count = list_cuts(w->cuts, (i32)((n + 63) / 64), w->starts + 1);
        if (count == 0) {
            w->starts[++count] = (u16)n;
        }
        used = w->starts[count];
        bool many = w->count > WORDS_FREE && w->word_bytes * 8 > at;
        if (zero || many || !w->p.at || !put_words(w, from, count)) {
            return false;
        }
    }
    return true;
}

static i64 pack_words(const struct segment *seg, const struct packed_form *form,
                      struct wording *w, u8 *to, i64 room) {
    if (room <= WORDS_HEAD) {
        return 0;
    }
    memset(w, 0, offsetof(struct wording, cuts));
    w->count = 0;
    w->total = w->word_bytes = 0;
    w->words[NOBODY] = (struct word){0};
    lay_slots(w, 32 - WORD_SLOT_BITS_FIRST);
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
        memcpy(at, w->word_lens, w->count);
        at += w->count;
        for (u32 i = 0; i < w->count; i++) {
            memcpy(at, &w->words[i], w->word_lens[i]); /* its bytes come first */
            at += w->word_lens[i];
        }
    }
    return fine ? at - to : 0;
}

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

const struct pack_loops LEVEL_NAME(pack_loops) = {.numbers = pack_numbers,
                                                  .numbers_back = unpack_numbers,
                                                  .words = pack_words,
                                                  .words_back = unpack_words};

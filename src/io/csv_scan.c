/* csv_scan.c: looking at delimited text 64 bytes at a time.
 *
 * The one file of the reader with vector instructions (SSE2, which every x86-64 has; elsewhere
 * plain C over eight bytes at a time). Everything above works on 64-bit masks. Whether a newline
 * lies within quotes is a prefix exclusive-or over the mask of quotes, so counting never branches
 * on the data. An escape character other than the quote is rare and gets a plain state machine. */
#include "io/csv_int.h"

#ifdef __SSE2__
#include <emmintrin.h>

static u64 mask_eq(const char *p, char c) {
    const __m128i want = _mm_set1_epi8(c);
    u64 mask = 0;
    for (i32 i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        mask |= (u64)(u32)_mm_movemask_epi8(_mm_cmpeq_epi8(v, want)) << (16 * i);
    }
    return mask;
}

static u64 mask_eq3(const char *p, char a, char b, char c) {
    const __m128i va = _mm_set1_epi8(a), vb = _mm_set1_epi8(b), vc = _mm_set1_epi8(c);
    u64 mask = 0;
    for (i32 i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, va), _mm_cmpeq_epi8(v, vb));
        hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, vc));
        mask |= (u64)(u32)_mm_movemask_epi8(hit) << (16 * i);
    }
    return mask;
}

/* Some byte is NUL or above 127: as a signed byte, below 1. */
static bool any_odd(const char *p) {
    const __m128i one = _mm_set1_epi8(1);
    __m128i odd = _mm_setzero_si128();
    for (i32 i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        odd = _mm_or_si128(odd, _mm_cmplt_epi8(v, one));
    }
    return _mm_movemask_epi8(odd) != 0;
}
#else
static u64 mask_eq(const char *p, char c) {
    u64 mask = 0;
    for (i32 i = 0; i < 64; i++) {
        mask |= (u64)(p[i] == c) << i;
    }
    return mask;
}

static u64 mask_eq3(const char *p, char a, char b, char c) {
    return mask_eq(p, a) | mask_eq(p, b) | mask_eq(p, c);
}

static bool any_odd(const char *p) {
    u8 low = 255;
    for (i32 i = 0; i < 64; i++) {
        u8 byte = (u8)p[i];
        low = MIN_OF(low, byte && byte < 128 ? 1 : 0);
    }
    return low == 0;
}
#endif

static i64 count_bits(u64 x) { /* the baseline processor has no instruction for it */
    x -= x >> 1 & 0x5555555555555555ULL;
    x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return (i64)(x * 0x0101010101010101ULL >> 56);
}

/* Bit i of the result: an odd number of bits up to and including i is set. */
static u64 prefix_xor(u64 x) {
    for (i32 shift = 1; shift < 64; shift *= 2) {
        x ^= x << shift;
    }
    return x;
}

void csv_masks(const char *bytes, i64 word_count, char a, char b, char c, u64 *out) {
    for (i64 i = 0; i < word_count; i++) {
        out[i] = mask_eq3(bytes + 64 * i, a, b, c);
    }
}

/* Newlines outside of quotes for both beginnings, when the escape is the quote itself. */
struct toggle_count {
    u64 inside; /* all ones while inside, had the block begun outside */
    i64 newlines[2];
    i64 ends[2];
    bool odd;
};

static i64 behind_last(u64 mask, i64 at, i64 before) {
    return mask ? at + 64 - __builtin_clzll(mask) : before;
}

static void toggle_word(struct toggle_count *count, const char *p, i64 at, char quote,
                        char newline) {
    u64 newlines = mask_eq(p, newline);
    u64 inside = count->inside;
    if (quote) {
        inside ^= prefix_xor(mask_eq(p, quote));
        count->inside = 0 - (inside >> 63);
    }
    count->newlines[0] += count_bits(newlines & ~inside);
    count->newlines[1] += count_bits(newlines & inside);
    count->ends[0] = behind_last(newlines & ~inside, at, count->ends[0]);
    count->ends[1] = behind_last(newlines & inside, at, count->ends[1]);
    count->odd |= any_odd(p);
}

static void count_toggles(const char *bytes, i64 len, char quote, char newline,
                          struct csv_count *out) {
    struct toggle_count count = {0};
    i64 i = 0;
    for (; i + 64 <= len; i += 64) {
        toggle_word(&count, bytes + i, i, quote, newline);
    }
    if (i < len) {
        char rest[64];
        memset(rest, 'x', sizeof rest);
        if (quote == 'x') { /* padding must count as nothing */
            memset(rest, 'y', sizeof rest);
        }
        memcpy(rest, bytes + i, (size_t)(len - i));
        toggle_word(&count, rest, i, quote, newline);
    }
    out->newlines[QUOTE_OUT] = count.newlines[0];
    out->newlines[QUOTE_IN] = count.newlines[1];
    out->ends[QUOTE_OUT] = count.ends[0];
    out->ends[QUOTE_IN] = count.ends[1];
    out->lines = count.newlines[0] + count.newlines[1];
    out->after[QUOTE_OUT] = count.inside ? QUOTE_IN : QUOTE_OUT;
    out->after[QUOTE_IN] = count.inside ? QUOTE_OUT : QUOTE_IN;
    out->plain = !count.odd;
}

/* The state after byte c. */
static u8 step(u8 state, char c, const struct csv_marks *marks) {
    switch (state) {
    case QUOTE_OUT:
        return marks->quote && c == marks->quote       ? QUOTE_IN
               : marks->comment && c == marks->comment ? QUOTE_COMMENT
                                                       : QUOTE_OUT;
    case QUOTE_COMMENT:
        return c == marks->newline ? QUOTE_OUT : QUOTE_COMMENT;
    case QUOTE_IN_ESCAPED:
        return QUOTE_IN;
    default:
        return marks->escape != marks->quote && c == marks->escape ? QUOTE_IN_ESCAPED
               : c == marks->quote                                 ? QUOTE_OUT
                                                                   : QUOTE_IN;
    }
}

static bool ends_record(u8 state, char c, char newline) {
    return c == newline && (state == QUOTE_OUT || state == QUOTE_COMMENT);
}

static void count_steps(const char *bytes, i64 len, const struct csv_marks *marks, u8 state,
                        struct csv_count *out) {
    u8 first = state;
    i64 newlines = 0, end = 0;
    for (i64 i = 0; i < len; i++) {
        bool ends = ends_record(state, bytes[i], marks->newline);
        newlines += ends;
        end = ends ? i + 1 : end;
        state = step(state, bytes[i], marks);
    }
    out->newlines[first] = newlines;
    out->ends[first] = end;
    out->after[first] = state;
}

void csv_count(const char *bytes, i64 len, const struct csv_marks *marks, struct csv_count *out) {
    memset(out, 0, sizeof *out);
    count_toggles(bytes, len, marks->quote, marks->newline, out);
    if (marks->comment || (marks->quote && marks->escape != marks->quote)) {
        for (u8 state = QUOTE_OUT; state < QUOTE_STATES; state++) {
            count_steps(bytes, len, marks, state, out);
        }
    }
}

i64 csv_newlines(const char *bytes, i64 len, char newline) {
    struct csv_count count;
    struct csv_marks marks = {.newline = newline};
    csv_count(bytes, len, &marks, &count);
    return count.newlines[QUOTE_OUT];
}

const char *csv_next_record(const char *at, const char *end, const struct csv_marks *marks,
                            u8 state) {
    for (; at < end; at++) {
        if (ends_record(state, *at, marks->newline)) {
            return at + 1;
        }
        state = step(state, *at, marks);
    }
    return end;
}

char csv_line_end(const char *bytes, i64 len, char quote) {
    enum { LOOK_BYTES = 1 << 20 };
    struct csv_marks marks = {.quote = quote, .escape = quote, .newline = '\n'};
    u8 state = QUOTE_OUT;
    for (i64 i = 0; i < MIN_OF(len, LOOK_BYTES); i++) {
        if (state == QUOTE_OUT && (bytes[i] == '\n' || bytes[i] == '\r')) {
            bool alone = bytes[i] == '\r' && !(i + 1 < len && bytes[i + 1] == '\n');
            return alone ? '\r' : '\n';
        }
        state = step(state, bytes[i], &marks);
    }
    return '\n';
}

void cursor_init(struct csv_cursor *cursor, const char *begin, const char *end,
                 const struct csv_marks *marks, struct csv_job *job) {
    cursor->window = cursor->next = begin;
    cursor->end = end;
    cursor->delimiter = marks->delimiter;
    cursor->newline = marks->newline;
    cursor->quote = marks->quote ? marks->quote : marks->newline;
    cursor->word = cursor->word_count = 0;
    cursor->mask = 0;
    cursor->job = job;
    cursor->refills = 0;
}

bool cursor_refill(struct csv_cursor *cursor) {
    enum { ASK_REFILLS = 256 }; /* a megabyte: a record may be as long as the file */
    if (++cursor->refills % ASK_REFILLS == 0 && cursor->job && csv_stopped(cursor->job)) {
        cursor->next = cursor->end;
    }
    i64 left = cursor->end - cursor->next;
    cursor->window = cursor->next;
    cursor->word = 0;
    cursor->word_count = (i32)MIN_OF(left / 64, WINDOW_WORDS);
    if (left == 0) {
        return false;
    }
    if (cursor->word_count == 0) { /* the last bytes: nothing may be read behind them */
        char rest[64] = {0};
        memcpy(rest, cursor->window, (size_t)left);
        csv_masks(rest, 1, cursor->delimiter, cursor->newline, cursor->quote, cursor->masks);
        cursor->masks[0] &= (1ULL << left) - 1;
        cursor->word_count = 1;
        cursor->next = cursor->end;
    } else {
        csv_masks(cursor->window, cursor->word_count, cursor->delimiter, cursor->newline,
                  cursor->quote, cursor->masks);
        cursor->next += 64 * (i64)cursor->word_count;
    }
    cursor->mask = cursor->masks[0];
    return true;
}

/* radix.c: stable parallel radix sort of words of 32, 64 and 128 bits, and of words with a number
 * alongside.
 *
 * From the most significant bits down. A large input is split once by all workers: blocks are
 * counted, the counts become places, blocks are scattered. The parts, a few thousand elements each,
 * then fit the cache and are sorted as tasks of their own, again by splitting, until insertion
 * sorts what is left. Sparse keys so cost as many passes as tell them apart, not as they have bits.
 * Parts that start behind the last wanted element are not even written, which makes a sort with a
 * small LIMIT little more than one look at the keys. Least-significant-first passes over the whole
 * array were measured at twice the time for 64-bit keys of 10 M rows. */
#include "cpu/radix.h"

#include "cpu/cpu_int.h"

enum {
    SMALL = 24,      /* insertion sort */
    LOCAL_BITS = 11, /* most bits of one split in the cache */
    SPLIT_BITS = 10, /* most bits of the split by all workers */
    BLOCKS_MAX = 256,
    BUCKETS_MAX = 1 << LOCAL_BITS,
#ifdef WF_HARD
    PART_ROWS = 64,
    PARALLEL_ROWS = 1 << 10,
    BLOCK_ROWS = 1 << 11
#else
    PART_ROWS = 8 << 10, /* what a split by all workers aims at */
    PARALLEL_ROWS = 1 << 16,
    BLOCK_ROWS = 1 << 18 /* rows of a task; parts beyond are split by all workers again */
#endif
};

static i32 log2_of(i64 n) {
    return n > 1 ? 64 - __builtin_clzll((u64)n - 1) : 0;
}

/* Bits to look at first, of those in [low, high). */
static i32 digit_bits(i64 n, i32 low, i32 high, i32 most) {
    i32 bits = MAX_OF(MIN_OF(log2_of(n) - 2, most), 1);
    return MIN_OF(bits, high - low);
}

/* The sort of one element type; KEY is what its digits come from, LESS the order of two elements
 * whose digits are equal so far. Long because a sort without types would compare and move through
 * pointers: the functions exist once for words and once for words with a number alongside. */
#define RADIX_SORT(name, elem, KEY, LESS)                                                         \
    static void name##_insert(elem *to, const elem *from, i64 n) {                                \
        for (i64 i = 0; i < n; i++) {                                                             \
            elem x = from[i];                                                                     \
            i64 at = i;                                                                           \
            for (; at > 0 && LESS(x, to[at - 1]); at--) {                                         \
                to[at] = to[at - 1];                                                              \
            }                                                                                     \
            to[at] = x;                                                                           \
        }                                                                                         \
    }                                                                                             \
    /* Sorts `data`; the result goes there, or with `over` to `other`. */                         \
    static void name##_local(elem *data, elem *other, i64 n, i32 low, i32 high, bool over) {      \
        if (n <= SMALL || high <= low) {                                                          \
            if (high > low) {                                                                     \
                name##_insert(over ? other : data, data, n);                                      \
            } else if (over) {                                                                    \
                memcpy(other, data, (size_t)n * sizeof(elem));                                    \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        i32 bits = digit_bits(n, low, high, LOCAL_BITS);                                          \
        i32 shift = high - bits;                                                                  \
        u64 mask = (1ULL << bits) - 1;                                                            \
        u32 at[BUCKETS_MAX + 1];                                                                  \
        memset(at, 0, ((size_t)mask + 2) * sizeof(u32));                                          \
        for (i64 i = 0; i < n; i++) {                                                             \
            at[((u64)(KEY(data[i]) >> shift) & mask) + 1]++;                                      \
        }                                                                                         \
        for (u64 d = 1; d <= mask; d++) {                                                         \
            at[d + 1] += at[d];                                                                   \
        }                                                                                         \
        for (i64 i = 0; i < n; i++) {                                                             \
            other[at[(u64)(KEY(data[i]) >> shift) & mask]++] = data[i];                           \
        }                                                                                         \
        i64 first = 0; /* at[d] is now the end of bucket d */                                     \
        for (u64 d = 0; d <= mask; d++) {                                                         \
            i64 count = (i64)at[d] - first;                                                       \
            if (count) {                                                                          \
                name##_local(other + first, data + first, count, low, shift, !over);              \
            }                                                                                     \
            first = at[d];                                                                        \
        }                                                                                         \
    }                                                                                             \
    struct name##_split {                                                                         \
        struct exec *x;                                                                           \
        elem *data, *other;                                                                       \
        i64 n, want, block_rows;                                                                  \
        i32 low, high, shift, bits;                                                               \
        bool over;                                                                                \
        i64 *counts; /* per block and digit, then where the block's elements go */                \
        i64 *starts; /* per digit */                                                              \
        _Atomic i32 stop;                                                                         \
    };                                                                                            \
    static void name##_count(void *arg, i64 b, i32 worker) {                                      \
        UNUSED(worker);                                                                           \
        struct name##_split *s = arg;                                                             \
        u64 mask = (1ULL << s->bits) - 1;                                                         \
        i64 *count = s->counts + (b << s->bits);                                                  \
        i64 end = MIN_OF((b + 1) * s->block_rows, s->n);                                          \
        for (i64 i = b * s->block_rows; i < end; i++) {                                           \
            count[(u64)(KEY(s->data[i]) >> s->shift) & mask]++;                                   \
        }                                                                                         \
    }                                                                                             \
    static void name##_scatter(void *arg, i64 b, i32 worker) {                                    \
        UNUSED(worker);                                                                           \
        struct name##_split *s = arg;                                                             \
        u64 mask = (1ULL << s->bits) - 1;                                                         \
        i64 *at = s->counts + (b << s->bits);                                                     \
        i64 end = MIN_OF((b + 1) * s->block_rows, s->n);                                          \
        u64 last = mask;                                                                          \
        while (last > 0 && s->starts[last] >= s->want) {                                          \
            last--;                                                                               \
        }                                                                                         \
        for (i64 i = b * s->block_rows; i < end; i++) {                                           \
            u64 d = (u64)(KEY(s->data[i]) >> s->shift) & mask;                                    \
            if (d <= last) {                                                                      \
                s->other[at[d]++] = s->data[i];                                                   \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static void name##_part(void *arg, i64 d, i32 worker) {                                       \
        UNUSED(worker);                                                                           \
        struct name##_split *s = arg;                                                             \
        i64 first = s->starts[d];                                                                 \
        i64 n = s->starts[d + 1] - first;                                                         \
        if (n == 0 || n > BLOCK_ROWS || first >= s->want ||                                       \
            atomic_load_explicit(&s->stop, memory_order_relaxed)) {                               \
            return;                                                                               \
        }                                                                                         \
        if (exec_check(s->x)) {                                                                   \
            atomic_store_explicit(&s->stop, 1, memory_order_relaxed);                             \
            return;                                                                               \
        }                                                                                         \
        name##_local(s->other + first, s->data + first, n, s->low, s->shift, !s->over);           \
        work_rows(s->x, 2 * n);                                                                   \
    }                                                                                             \
    static FALLIBLE name##_all(struct name##_split *s, i64 *out_valid);                           \
    /* Parts too large for one task: each by all workers. */                                      \
    static FALLIBLE name##_large(struct name##_split *s, i64 *out_valid) {                        \
        for (i64 d = 0; d < 1LL << s->bits; d++) {                                                \
            i64 first = s->starts[d];                                                             \
            i64 n = s->starts[d + 1] - first;                                                     \
            i64 valid = n;                                                                        \
            if (n > BLOCK_ROWS && first < s->want) {                                              \
                struct name##_split part = {.x = s->x, .n = n, .low = s->low, .high = s->shift};  \
                part.data = s->other + first;                                                     \
                part.other = s->data + first;                                                     \
                part.want = s->want - first;                                                      \
                part.over = !s->over;                                                             \
                TRY(name##_all(&part, &valid));                                                   \
            }                                                                                     \
            *out_valid = first < s->want ? first + valid : *out_valid;                            \
        }                                                                                         \
        return ERR_OK;                                                                            \
    }                                                                                             \
    static FALLIBLE name##_all(struct name##_split *s, i64 *out_valid) {                          \
        struct exec *x = s->x;                                                                    \
        if (s->n < PARALLEL_ROWS || s->high <= s->low) {                                          \
            name##_local(s->data, s->other, s->n, s->low, s->high, s->over);                      \
            *out_valid = s->n;                                                                    \
            return exec_check(x);                                                                 \
        }                                                                                         \
        s->bits = MIN_OF(MAX_OF(log2_of(s->n / PART_ROWS), 4), SPLIT_BITS);                       \
        s->bits = MIN_OF(s->bits, s->high - s->low);                                              \
        s->shift = s->high - s->bits;                                                             \
        s->block_rows = MAX_OF(BLOCK_ROWS, s->n / BLOCKS_MAX + 1);                                \
        i64 blocks = (s->n + s->block_rows - 1) / s->block_rows;                                  \
        i64 bytes = ((blocks + 1) << s->bits) * (i64)sizeof(i64) + (i64)sizeof(i64);              \
        s->counts = mem_alloc(x->mem, bytes);                                                     \
        if (!s->counts) {                                                                         \
            return memory_refused(x->mem, x->err, bytes);                                         \
        }                                                                                         \
        memset(s->counts, 0, (size_t)bytes);                                                      \
        s->starts = s->counts + (blocks << s->bits);                                              \
        tasks_run(x, blocks, name##_count, s);                                                    \
        places(s->counts, s->starts, blocks, s->bits);                                            \
        work_rows(x, s->n);                                                                       \
        wf_status status = exec_check(x);                                                         \
        if (!status) {                                                                            \
            tasks_run(x, blocks, name##_scatter, s);                                              \
            work_rows(x, s->n);                                                                   \
            tasks_run(x, 1LL << s->bits, name##_part, s);                                         \
            status = exec_check(x);                                                               \
        }                                                                                         \
        status = status ? status : name##_large(s, out_valid);                                    \
        mem_free(x->mem, s->counts, bytes);                                                       \
        return status;                                                                            \
    }

/* Counts per block and digit become the place of each block's first element of a digit. */
static void places(i64 *counts, i64 *starts, i64 blocks, i32 bits) {
    i64 at = 0;
    for (i64 d = 0; d < 1LL << bits; d++) {
        starts[d] = at;
        for (i64 b = 0; b < blocks; b++) {
            i64 count = counts[(b << bits) + d];
            counts[(b << bits) + d] = at;
            at += count;
        }
    }
    starts[1LL << bits] = at;
}

#define WORD_KEY(x) (x)
#define WORD_LESS(a, b) ((a) < (b))
#define PAIR_KEY(x) ((x).key)
#define PAIR_LESS(a, b) ((a).key < (b).key)
#define ITEM_KEY(x) ((u128)(x).high << 64 | (x).low)
#define ITEM_LESS(a, b) ((a).high < (b).high || ((a).high == (b).high && (a).low < (b).low))
RADIX_SORT(words, u64, WORD_KEY, WORD_LESS)
RADIX_SORT(pairs, struct prim_pair, PAIR_KEY, PAIR_LESS)
RADIX_SORT(halves, u32, WORD_KEY, WORD_LESS)
RADIX_SORT(half_pairs, struct radix_half, PAIR_KEY, PAIR_LESS)
RADIX_SORT(items, struct radix_item, ITEM_KEY, ITEM_LESS)

wf_status radix_sort_words(struct exec *x, u64 *data, u64 *temp, i64 n, i32 low, i32 high,
                           i64 want) {
    i64 valid = 0;
    struct words_split s = {.x = x, .data = data, .other = temp, .n = n, .want = want};
    s.low = low;
    s.high = high;
    return words_all(&s, &valid);
}

wf_status radix_sort_pairs(struct exec *x, struct prim_pair *data, struct prim_pair *temp, i64 n,
                           i32 high, i64 want, i64 *out_valid) {
    *out_valid = 0;
    struct pairs_split s = {.x = x, .data = data, .other = temp, .n = n, .want = want};
    s.high = high;
    return pairs_all(&s, out_valid);
}

wf_status radix_sort_halves(struct exec *x, u32 *data, u32 *temp, i64 n) {
    i64 valid = 0;
    struct halves_split s = {.x = x, .data = data, .other = temp, .n = n, .want = n};
    s.high = 32;
    return halves_all(&s, &valid);
}

wf_status radix_sort_half_pairs(struct exec *x, struct radix_half *data, struct radix_half *temp,
                                i64 n) {
    i64 valid = 0;
    struct half_pairs_split s = {.x = x, .data = data, .other = temp, .n = n, .want = n};
    s.high = 32;
    return half_pairs_all(&s, &valid);
}

wf_status radix_sort_items(struct exec *x, struct radix_item *data, struct radix_item *temp,
                           i64 n) {
    i64 valid = 0;
    struct items_split s = {.x = x, .data = data, .other = temp, .n = n, .want = n};
    s.high = 128;
    return items_all(&s, &valid);
}

void radix_sort_few(struct prim_pair *data, struct prim_pair *temp, i64 n, i32 high) {
    pairs_local(data, temp, n, 0, high, false);
}

void radix_sort_words_few(u64 *data, u64 *out, i64 n, i32 high) {
    words_local(data, out, n, 0, high, true);
}

void radix_sort_halves_few(u32 *data, u32 *out, i64 n, i32 high) {
    halves_local(data, out, n, 0, high, true);
}

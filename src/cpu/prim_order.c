/* prim_order.c: the CPU's split of plain arrays.
 *
 * Blocks are counted as tasks, the counts become places, blocks are scattered as tasks. A block
 * goes through in pieces: partition numbers of a piece, then its places, then one array after
 * another to those places; so there is one loop per kind of key and one per width of element rather
 * than one per combination. (Collecting a cache line per partition before writing it was measured:
 * no faster into 2,048 partitions, slower into 64, with 2 MB of cache per core.) More partitions
 * than SPLIT_PASS_BITS say are passes from the lowest bits on, which is right because each is
 * stable. */
#include "cpu/prim_order.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

enum {
    SPLIT_PASS_BITS = 11,
    PIECE = 1024,
    SEARCH_ROWS = 64, /* so many per partition: rather search for its start */
#ifdef WF_HARD
    BLOCK_ROWS = 1 << 12,
#else
    BLOCK_ROWS = 1 << 16,
#endif
    BLOCKS_MAX = 256
};

struct split {
    struct exec *x;
    const struct prim_split *how;
    struct order order;
    i64 n, block_rows;
    i32 shift, bits; /* of the partition's number, in this pass */
    i32 arrays;
    i32 bytes[1 + ORDER_PAYLOADS];
    const u8 *in[1 + ORDER_PAYLOADS];
    u8 *out[1 + ORDER_PAYLOADS];
    i64 *counts; /* [block][digit] */
};

/* --- partition numbers --- */

static u64 ordered(const struct order *o, u64 key) {
    u64 word = !o->is_float ? key : o->bytes == 4 ? order_f32((u32)key) : order_f64(key);
    return word ^ o->flip_low;
}

static u64 word_at(const u8 *keys, i32 bytes, i64 i) {
    return bytes == 4 ? ((const u32 *)(const void *)keys)[i] : ((const u64 *)(const void *)keys)[i];
}

static u128 wide_at(const struct order *o, const void *keys, i64 i) {
    const u64 *word = (const u64 *)keys + 2 * i;
    return (u128)(word[1] ^ o->flip_high) << 64 | (word[0] ^ o->flip_low);
}

static u64 range_of(const struct split *s, const u8 *keys, i64 i) {
    const struct prim_array *splitters = &s->how->splitters;
    i64 low = 0;
    i64 high = splitters->count;
    bool wide = s->order.bytes == 16;
    u128 rank =
        wide ? wide_at(&s->order, keys, i) : ordered(&s->order, word_at(keys, s->order.bytes, i));
    while (low < high) {
        i64 mid = low + (high - low) / 2;
        u128 at = wide ? wide_at(&s->order, splitters->data, mid)
                       : ordered(&s->order, word_at(splitters->data, s->order.bytes, mid));
        bool below = at <= rank;
        low = below ? mid + 1 : low;
        high = below ? high : mid;
    }
    return (u64)low;
}

static void digits_wide(u32 *out, const struct split *s, const u8 *keys, i64 n) {
    const u64 *key = (const u64 *)(const void *)keys;
    for (i64 i = 0; i < n; i++) {
        u128 word = (u128)key[2 * i + 1] << 64 | key[2 * i];
        out[i] = s->how->by == SPLIT_HASH ? (u32)(hash_128(key[2 * i], key[2 * i + 1]) >> s->shift)
                                          : (u32)(word >> s->shift);
    }
}

/* Digits of keys[0..n) in this pass. */
static void digits_of(u32 *out, const struct split *s, const u8 *keys, i64 n) {
    const u32 *half = (const u32 *)(const void *)keys;
    const u64 *word = (const u64 *)(const void *)keys;
    u32 mask = (u32)((1ULL << s->bits) - 1);
    bool hash = s->how->by == SPLIT_HASH;
    if (s->how->by == SPLIT_RANGE) {
        for (i64 i = 0; i < n; i++) {
            out[i] = (u32)(range_of(s, keys, i) >> s->shift);
        }
    } else if (s->order.bytes == 16) {
        digits_wide(out, s, keys, n);
    } else if (s->order.bytes == 4 && hash) {
        for (i64 i = 0; i < n; i++) {
            out[i] = hash_32(half[i]) >> s->shift;
        }
    } else if (s->order.bytes == 4) {
        for (i64 i = 0; i < n; i++) {
            out[i] = half[i] >> s->shift;
        }
    } else if (hash) {
        for (i64 i = 0; i < n; i++) {
            out[i] = (u32)(hash_64(word[i]) >> s->shift);
        }
    } else {
        for (i64 i = 0; i < n; i++) {
            out[i] = (u32)(word[i] >> s->shift);
        }
    }
    for (i64 i = 0; i < n; i++) {
        out[i] &= mask;
    }
}

/* --- a pass --- */

static void count_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct split *s = arg;
    i64 *count = s->counts + (b << s->bits);
    i64 end = MIN_OF((b + 1) * s->block_rows, s->n);
    u32 digit[PIECE];
    for (i64 i = b * s->block_rows; i < end; i += PIECE) {
        i64 n = MIN_OF(end - i, PIECE);
        digits_of(digit, s, s->in[0] + i * s->bytes[0], n);
        for (i64 j = 0; j < n; j++) {
            count[digit[j]]++;
        }
    }
}

struct word16 {
    u64 low, high;
};

static void scatter(u8 *out, const u8 *in, i32 bytes, const i64 *place, i64 n) {
    if (bytes == 4) {
        for (i64 j = 0; j < n; j++) {
            ((u32 *)(void *)out)[place[j]] = ((const u32 *)(const void *)in)[j];
        }
    } else if (bytes == 8) {
        for (i64 j = 0; j < n; j++) {
            ((u64 *)(void *)out)[place[j]] = ((const u64 *)(const void *)in)[j];
        }
    } else {
        for (i64 j = 0; j < n; j++) {
            ((struct word16 *)(void *)out)[place[j]] = ((const struct word16 *)(const void *)in)[j];
        }
    }
}

static void scatter_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct split *s = arg;
    i64 *at = s->counts + (b << s->bits);
    i64 end = MIN_OF((b + 1) * s->block_rows, s->n);
    u32 digit[PIECE];
    i64 place[PIECE];
    for (i64 i = b * s->block_rows; i < end; i += PIECE) {
        i64 n = MIN_OF(end - i, PIECE);
        digits_of(digit, s, s->in[0] + i * s->bytes[0], n);
        for (i64 j = 0; j < n; j++) {
            place[j] = at[digit[j]]++;
        }
        for (i32 a = 0; a < s->arrays; a++) {
            scatter(s->out[a], s->in[a] + i * s->bytes[a], s->bytes[a], place, n);
        }
    }
}

static i64 block_count(const struct split *s) {
    return (s->n + s->block_rows - 1) / s->block_rows;
}

static FALLIBLE run_pass(struct split *s, u64 *starts, i64 parts) {
    i64 blocks = block_count(s);
    i64 digits = 1LL << s->bits;
    memset(s->counts, 0, (size_t)(blocks * digits) * sizeof(i64));
    tasks_run(s->x, blocks, count_task, s);
    i64 at = 0;
    for (i64 d = 0; d < digits; d++) {
        if (starts && d <= parts) {
            starts[d] = (u64)at;
        }
        for (i64 b = 0; b < blocks; b++) {
            i64 n = s->counts[b * digits + d];
            s->counts[b * digits + d] = at;
            at += n;
        }
    }
    if (starts && digits == parts) {
        starts[parts] = (u64)at;
    }
    TRY(exec_check(s->x));
    tasks_run(s->x, blocks, scatter_task, s);
    return exec_check(s->x);
}

/* Where partitions start in the result of several passes: many of them by one look at all keys, */
static void look_for_starts(const struct split *s, const u8 *keys, u64 *starts, i64 parts) {
    i64 part = 0;
    u32 digit[PIECE];
    for (i64 i = 0; i < s->n; i += PIECE) {
        i64 n = MIN_OF(s->n - i, PIECE);
        digits_of(digit, s, keys + i * s->bytes[0], n);
        for (i64 j = 0; j < n; j++) {
            while (part <= digit[j]) {
                starts[part++] = (u64)(i + j);
            }
        }
    }
    while (part <= parts) {
        starts[part++] = (u64)s->n;
    }
}
/* few by a search each. */
static void search_starts(const struct split *s, const u8 *keys, u64 *starts, i64 parts) {
    for (i64 part = 0; part <= parts; part++) {
        i64 low = part ? (i64)starts[part - 1] : 0;
        i64 high = s->n;
        while (low < high) {
            i64 mid = low + (high - low) / 2;
            u32 digit;
            digits_of(&digit, s, keys + mid * s->bytes[0], 1);
            low = (i64)digit < part ? mid + 1 : low;
            high = (i64)digit < part ? high : mid;
        }
        starts[part] = (u64)low;
    }
}

static void find_starts(struct split *s, const u8 *keys, i32 bits, u64 *starts, i64 parts) {
    s->bits = bits;
    s->shift = s->how->by == SPLIT_RANGE ? 0 : s->how->shift;
    if (parts > s->n / SEARCH_ROWS) {
        look_for_starts(s, keys, starts, parts);
    } else {
        search_starts(s, keys, starts, parts);
    }
}

static i32 bits_for(i64 parts) {
    i32 bits = 0;
    while (1LL << bits < parts) {
        bits++;
    }
    return bits;
}

wf_status cpu_split(struct prim_job *job, const struct prim_split *how, struct prim_array out_keys,
                    struct prim_array out_starts, struct prim_array keys,
                    const struct prim_payload *payload) {
    i64 parts = split_parts(how);
    i32 bits = how->by == SPLIT_RANGE ? bits_for(parts) : how->bits;
    i32 passes = MAX_OF((bits + SPLIT_PASS_BITS - 1) / SPLIT_PASS_BITS, 1);
    i32 pass_bits = (bits + passes - 1) / passes;
    struct split s = {.x = job->x, .how = how, .n = keys.count, .arrays = 1 + payload->count};
    s.order = order_of(keys.type, how->descending);
    s.block_rows = MAX_OF(BLOCK_ROWS, s.n / BLOCKS_MAX + 1);
    i64 mark = prim_mark(job);
    s.counts = prim_take(job, (block_count(&s) * (i64)sizeof(i64)) << pass_bits);
    const u8 *from[1 + ORDER_PAYLOADS] = {keys.data};
    u8 *out[1 + ORDER_PAYLOADS] = {out_keys.data};
    u8 *temp[1 + ORDER_PAYLOADS] = {NULL};
    s.bytes[0] = elem_bytes[keys.type];
    for (i32 i = 0; i < payload->count; i++) {
        s.bytes[i + 1] = elem_bytes[payload->in[i].type];
        from[i + 1] = payload->in[i].data;
        out[i + 1] = payload->out[i].data;
    }
    for (i32 i = 0; i < s.arrays && passes > 1; i++) {
        temp[i] = prim_take(job, s.n * s.bytes[i]);
    }
    u64 *starts = out_starts.data;
    for (i32 p = 0; p < passes && !job->measuring; p++) {
        u8 **to = (passes - 1 - p) % 2 ? temp : out;
        memcpy(s.in, from, sizeof from);
        memcpy(s.out, to, sizeof s.out);
        s.shift = (how->by == SPLIT_RANGE ? 0 : how->shift) + p * pass_bits;
        s.bits = MIN_OF(pass_bits, bits - p * pass_bits);
        TRY(run_pass(&s, passes == 1 ? starts : NULL, parts));
        for (i32 i = 0; i < s.arrays; i++) {
            from[i] = to[i];
        }
    }
    if (passes > 1 && starts && !job->measuring) {
        find_starts(&s, out_keys.data, bits, starts, parts);
    }
    prim_back(job, mark);
    return ERR_OK;
}

const struct prim_order cpu_prim_order = {.split = cpu_split,
                                          .sort = cpu_sort,
                                          .merge = cpu_merge,
                                          .search = cpu_search,
                                          .runs = cpu_runs,
                                          .sets = cpu_sets,
                                          .words = cpu_words,
                                          .number = cpu_number};

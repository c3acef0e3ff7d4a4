/* prim_compact.c: the CPU's compaction: count what blocks keep, then write every block's rows where
 * they belong.
 *
 * Which rows of a vector are kept is worked out twice, once to count and once to write: reading the
 * column again costs less than keeping bits of all rows. Rows keep their order whether that is
 * asked for or not. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"

#include "defs/host_words.h"

enum { COMPACT_ROWS = 1 << 15, VECTOR = 1024 };

struct wide {
    u64 w[2];
};

struct compact_run {
    const struct prim_compact *c;
    const struct vec_table *vec;
    i64 *starts; /* per block: rows kept, then rows kept before it */
};

/* --- which rows --- */

static inline u32 word_f32(f32 x) {
    u32 bits = x != x ? 0x7fffffffu : x == 0 ? 0u : f32_bits(x);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}
static inline u64 word_f64(f64 x) {
    u64 bits = x != x ? (u64)I64_MAX : x == 0 ? 0u : f64_bits(x);
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}
static inline u128 word_wide(struct wide x) {
    return (u128)x.w[1] << 64 | x.w[0];
}

/* mask[i] = word of element i within [lo, lo + span], or not. */
#define RANGE_LOOP(type, word, WORD)                                    \
    do {                                                                \
        const type *in = (const type *)k->by.data + first;              \
        WORD lo = (WORD)low;                                            \
        WORD span = (WORD)((WORD)high - lo);                            \
        for (i64 i = 0; i < n; i++) {                                   \
            mask[i] = (b8)(((WORD)((WORD)(word)-lo) <= span) ^ negate); \
        }                                                               \
    } while (0)
static void mask_compare(b8 *mask, const struct prim_keep *k, i64 first, i64 n) {
    u128 low = (u128)k->lo[1] << 64 | k->lo[0];
    u128 high = (u128)k->hi[1] << 64 | k->hi[0];
    u64 flip = prim_order_flip(k->by.type);
    b8 negate = k->negate;
    switch (k->by.type) {
    case ELEM_U32:
    case ELEM_I32:
        RANGE_LOOP(u32, in[i] ^ (u32)flip, u32);
        break;
    case ELEM_U64:
    case ELEM_I64:
        RANGE_LOOP(u64, in[i] ^ flip, u64);
        break;
    case ELEM_F32:
        RANGE_LOOP(f32, word_f32(in[i]), u32);
        break;
    case ELEM_F64:
        RANGE_LOOP(f64, word_f64(in[i]), u64);
        break;
    default:
        RANGE_LOOP(struct wide, word_wide(in[i]), u128);
    }
}

#define HEADS_LOOP(type, word)                             \
    do {                                                   \
        const type *in = (const type *)k->by.data + first; \
        for (i64 i = first == 0; i < n; i++) {             \
            mask[i] = (word(in[i]) != word(in[i - 1]));    \
        }                                                  \
    } while (0)
#define AS_IS(x) (x)
#define AS_BOOL(x) ((x) != 0)
static void mask_heads(b8 *mask, const struct prim_keep *k, i64 first, i64 n) {
    mask[0] = 1;
    switch (k->by.type) {
    case ELEM_F32:
        HEADS_LOOP(f32, word_f32);
        break;
    case ELEM_F64:
        HEADS_LOOP(f64, word_f64);
        break;
    case ELEM_U32:
    case ELEM_I32:
        HEADS_LOOP(u32, AS_IS);
        break;
    case ELEM_BOOL:
        HEADS_LOOP(u8, AS_BOOL);
        break;
    case ELEM_U64:
    case ELEM_I64:
        HEADS_LOOP(u64, AS_IS);
        break;
    default:
        HEADS_LOOP(struct wide, word_wide);
    }
}

static void mask_rows(b8 *mask, const struct prim_keep *k, i64 first, i64 n) {
    if (k->kind == KEEP_COMPARE) {
        mask_compare(mask, k, first, n);
    } else if (k->kind == KEEP_HEADS) {
        mask_heads(mask, k, first, n);
    } else {
        const u8 *flags = (const u8 *)k->by.data + first;
        for (i64 i = 0; i < n; i++) {
            mask[i] = flags[i] != 0;
        }
    }
}

static void count_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    struct compact_run *r = arg;
    i64 end = MIN_OF((b + 1) * COMPACT_ROWS, r->c->keep.by.count);
    i64 kept = 0;
    b8 mask[VECTOR];
    for (i64 first = b * COMPACT_ROWS; first < end; first += VECTOR) {
        i64 n = MIN_OF(VECTOR, end - first);
        mask_rows(mask, &r->c->keep, first, n);
        i32 sum = 0;
        for (i64 i = 0; i < n; i++) {
            sum += mask[i];
        }
        kept += sum;
    }
    r->starts[b] = kept;
}

/* --- writing --- */

static void write_numbers(const struct prim_array *out, i64 at, i64 first, const u32 *sel, i64 m) {
    for (i64 j = 0; j < m; j++) {
        if (out->type == ELEM_U32) {
            ((u32 *)out->data)[at + j] = (u32)(first + sel[j]);
        } else {
            ((u64 *)out->data)[at + j] = (u64)(first + sel[j]);
        }
    }
}

static void write_columns(const struct compact_run *r, i64 at, i64 first, const u32 *sel, i64 m) {
    for (i32 c = 0; c < r->c->column_count; c++) {
        const struct prim_array *in = &r->c->in[c];
        const struct prim_array *out = &r->c->out[c];
        i32 bytes = elem_bytes[in->type];
        i32 width = bytes == 16 ? 4 : bytes == 8 ? 3 : bytes == 4 ? 2 : 0;
        if (!in->data) {
            write_numbers(out, at, first, sel, m);
        } else {
            r->vec->gather[width]((u8 *)out->data + at * bytes,
                                  (const u8 *)in->data + first * bytes, sel, m);
        }
    }
}

static void write_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct compact_run *r = arg;
    i64 end = MIN_OF((b + 1) * COMPACT_ROWS, r->c->keep.by.count);
    i64 at = r->starts[b];
    b8 mask[VECTOR];
    u32 sel[VECTOR + 64];
    for (i64 first = b * COMPACT_ROWS; first < end; first += VECTOR) {
        i64 n = MIN_OF(VECTOR, end - first);
        mask_rows(mask, &r->c->keep, first, n);
        i64 m = r->vec->sel_build(sel, mask, n);
        write_columns(r, at, first, sel, m);
        at += m;
    }
}

wf_status prim_cpu_compact(struct prim_job *job, const struct prim_compact *compact) {
    i64 rows = compact->keep.by.count;
    i64 blocks = (rows + COMPACT_ROWS - 1) / COMPACT_ROWS;
    struct compact_run r = {.c = compact,
                            .vec = ((const struct cpu_device *)job->dev->self)->vec,
                            .starts = prim_take(job, blocks * 8)};
    *compact->out_count = 0;
    if (job->measuring || !rows) {
        return ERR_OK;
    }
    tasks_run(job->x, blocks, count_task, &r);
    TRY(exec_check(job->x));
    i64 all = 0;
    for (i64 b = 0; b < blocks; b++) {
        i64 kept = r.starts[b];
        r.starts[b] = all;
        all += kept;
    }
    *compact->out_count = all;
    if (all > compact->room) {
        return prim_no_room(job, compact->what, all, compact->room);
    }
    tasks_run(job->x, blocks, write_task, &r);
    return exec_check(job->x);
}

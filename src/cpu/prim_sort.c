/* prim_sort.c: the CPU's sort of plain arrays.
 *
 * Radix sort is radix.c's, over the narrowest element that holds what is needed: integers of 32 or
 * 64 bits alone, or with one payload of the same width. Every other case sorts what orders the keys
 * with row numbers, and then fetches keys and payload by row. Such cases are floats (whose order
 * drops bits), wide keys, several or wide payloads, and a range of bits. The sorts by comparison
 * work on the same elements. Text is sorted by merges, its first sixteen bytes beside the rows. */
#include "cpu/prim_order.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

enum form { FORM_HALVES, FORM_HALF_PAIRS, FORM_WORDS, FORM_PAIRS, FORM_ROWS, FORM_ITEMS };

struct sort_run {
    struct order order;
    struct prim_array out, keys;
    const struct prim_payload *payload;
    enum form form;
    i32 low, high;
    i64 n;
    void *data, *temp;
};

static u64 ordered(const struct order *o, const void *keys, i64 i) {
    u64 key = o->bytes == 4 ? ((const u32 *)keys)[i] : ((const u64 *)keys)[i];
    u64 word = !o->is_float ? key : o->bytes == 4 ? order_f32((u32)key) : order_f64(key);
    return word ^ o->flip_low;
}

static u64 text_word(const struct prim_span *span, const u8 *bytes, u64 from) {
    u64 word = 0;
    for (u64 j = from; j < from + 8; j++) {
        word = word << 8 | (j < span->length ? bytes[span->offset + j] : 0u);
    }
    return word;
}

/* What orders element `row`, without `ignore` low bits. */
static void item_words(struct radix_item *out, const struct order *o, const struct prim_array *keys,
                       i64 row, i32 ignore) {
    out->row = (u64)row;
    if (o->is_text) {
        const struct prim_span *span = (const struct prim_span *)keys->data + row;
        u64 flip = o->descending ? ~0ULL : 0;
        out->high = text_word(span, keys->bytes, 0) ^ flip;
        out->low = text_word(span, keys->bytes, 8) ^ flip;
    } else if (o->bytes == 16) {
        const u64 *word = (const u64 *)keys->data + 2 * row;
        u128 all = (u128)(word[1] ^ o->flip_high) << 64 | (word[0] ^ o->flip_low);
        all >>= ignore;
        out->high = (u64)(all >> 64);
        out->low = (u64)all;
    } else {
        out->high = 0;
        out->low = ordered(o, keys->data, row) >> ignore;
    }
}

bool text_item_less(const struct radix_item *a, const struct radix_item *b,
                    const struct item_order *o) {
    const struct prim_span *p = &o->spans[a->row];
    const struct prim_span *q = &o->spans[b->row];
    u64 n = MIN_OF(p->length, q->length);
    i32 order = n > 16 ? memcmp(o->bytes + p->offset + 16, o->bytes + q->offset + 16, n - 16) : 0;
    order = order ? order : p->length < q->length ? -1 : p->length > q->length;
    return o->descending ? order > 0 : order < 0;
}

/* --- rows in, rows out --- */

struct gather {
    struct prim_array out, in;
    const u8 *rows; /* the row of element i is at i * stride */
    i64 stride, n;
};

#define GATHER_ROW(g, i) (*(const u64 *)(const void *)((g)->rows + (i) * (g)->stride))

static void gather_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct gather *g = arg;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, g->n);
    i32 bytes = elem_bytes[g->in.type];
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        u64 row = GATHER_ROW(g, i);
        if (bytes == 4) {
            ((u32 *)g->out.data)[i] = ((const u32 *)g->in.data)[row];
        } else if (bytes == 8) {
            ((u64 *)g->out.data)[i] = ((const u64 *)g->in.data)[row];
        } else {
            ((struct prim_span *)g->out.data)[i] = ((const struct prim_span *)g->in.data)[row];
        }
    }
}

static void gather_rows(struct exec *x, struct prim_array out, struct prim_array in,
                        const u64 *rows, i64 stride, i64 n) {
    struct gather g = {out, in, (const u8 *)rows, stride, n};
    tasks_run(x, order_blocks(n), gather_task, &g);
}

struct check {
    struct prim_array text;
    _Atomic i32 bad;
};

static void check_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    struct check *c = arg;
    const struct prim_span *span = c->text.data;
    u64 bytes = (u64)c->text.byte_count;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, c->text.count);
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        if (span[i].offset > bytes || span[i].length > bytes - span[i].offset) {
            atomic_store(&c->bad, 1);
        }
    }
}

wf_status cpu_check_text(struct prim_job *job, struct prim_array text) {
    struct check c = {text, 0};
    if (elem_kinds[text.type] == 'T' && !job->measuring) {
        tasks_run(job->x, order_blocks(text.count), check_task, &c);
    }
    if (atomic_load(&c.bad)) {
        FAIL(job->x->err, INVALID_PARAMETER, "a text lies outside the bytes of its array");
    }
    return ERR_OK;
}

/* --- filling and emptying --- */

static enum form choose_form(const struct sort_run *s, enum sort_by by) {
    const struct order *o = &s->order;
    const struct prim_payload *p = s->payload;
    bool whole = s->low == 0 && s->high == 8 * o->bytes && !o->is_float;
    i32 payload = p->count == 1 ? elem_bytes[p->in[0].type] : 0;
    if (o->bytes == 16) {
        return FORM_ITEMS;
    }
    if (whole && p->count == 0) {
        return o->bytes == 4 ? FORM_HALVES : FORM_WORDS;
    }
    if (whole && payload == 4 && o->bytes == 4 && by == SORT_RADIX) {
        return FORM_HALF_PAIRS;
    }
    return whole && payload == 8 ? FORM_PAIRS : FORM_ROWS;
}

static const i32 form_bytes[] = {4, 8, 8, 16, 16, 24};

static void fill_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct sort_run *s = arg;
    const struct order *o = &s->order;
    const void *keys = s->keys.data;
    const void *payload = s->payload->in[0].data;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, s->n);
    u64 mask = s->high - s->low < 64 ? (1ULL << (s->high - s->low)) - 1 : ~0ULL;
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        struct radix_item *item = (struct radix_item *)s->data + i;
        switch (s->form) {
        case FORM_HALVES:
            ((u32 *)s->data)[i] = (u32)ordered(o, keys, i);
            break;
        case FORM_HALF_PAIRS:
            ((struct radix_half *)s->data)[i] =
                (struct radix_half){(u32)ordered(o, keys, i), ((const u32 *)payload)[i]};
            break;
        case FORM_WORDS:
            ((u64 *)s->data)[i] = ordered(o, keys, i);
            break;
        case FORM_PAIRS:
            ((struct prim_pair *)s->data)[i] =
                (struct prim_pair){ordered(o, keys, i), ((const u64 *)payload)[i]};
            break;
        case FORM_ROWS:
            ((struct prim_pair *)s->data)[i] =
                (struct prim_pair){ordered(o, keys, i) >> s->low & mask, (u64)i};
            break;
        case FORM_ITEMS:
            item_words(item, o, &s->keys, i, s->low);
            item->high &= s->high - s->low > 64 ? ~0ULL >> (128 - (s->high - s->low)) : 0;
            item->low &= mask;
            break;
        }
    }
}

/* Keys back from what ordered them: the forms that need no rows lose no bits. */
static void drain_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct sort_run *s = arg;
    u64 flip = s->order.flip_low;
    void *payload = s->payload->out[0].data;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, s->n);
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        if (s->form == FORM_HALVES) {
            ((u32 *)s->out.data)[i] = ((const u32 *)s->data)[i] ^ (u32)flip;
        } else if (s->form == FORM_WORDS) {
            ((u64 *)s->out.data)[i] = ((const u64 *)s->data)[i] ^ flip;
        } else if (s->form == FORM_HALF_PAIRS) {
            struct radix_half half = ((const struct radix_half *)s->data)[i];
            ((u32 *)s->out.data)[i] = half.key ^ (u32)flip;
            ((u32 *)payload)[i] = half.row;
        } else {
            struct prim_pair pair = ((const struct prim_pair *)s->data)[i];
            if (s->order.bytes == 4) {
                ((u32 *)s->out.data)[i] = (u32)(pair.key ^ flip);
            } else {
                ((u64 *)s->out.data)[i] = pair.key ^ flip;
            }
            ((u64 *)payload)[i] = pair.row;
        }
    }
}

static FALLIBLE sort_by_radix(struct exec *x, struct sort_run *s) {
    i64 valid;
    switch (s->form) {
    case FORM_HALVES:
        return radix_sort_halves(x, s->data, s->temp, s->n);
    case FORM_HALF_PAIRS:
        return radix_sort_half_pairs(x, s->data, s->temp, s->n);
    case FORM_WORDS:
        return radix_sort_words(x, s->data, s->temp, s->n, 0, 64, s->n);
    case FORM_PAIRS:
    case FORM_ROWS:
        return radix_sort_pairs(x, s->data, s->temp, s->n, MIN_OF(s->high - s->low, 64), s->n,
                                &valid);
    case FORM_ITEMS:
        break;
    }
    return radix_sort_items(x, s->data, s->temp, s->n);
}

static FALLIBLE sort_form(struct exec *x, struct sort_run *s, enum sort_by by) {
    struct item_order o = {s->order.is_text ? s->keys.data : NULL, s->keys.bytes,
                           s->order.descending};
    const struct sort_loops *loops = s->form == FORM_HALVES  ? &sort_loops_halves
                                     : s->form == FORM_WORDS ? &sort_loops_words
                                     : s->form == FORM_ITEMS ? &sort_loops_items
                                                             : &sort_loops_pairs;
    return by == SORT_RADIX     ? sort_by_radix(x, s)
           : by == SORT_BITONIC ? loops->bitonic(x, &o, s->data, s->n)
           : by == SORT_QUICK   ? loops->quick(x, &o, s->data, s->temp, s->n)
                                : loops->merge(x, &o, s->data, s->temp, s->n);
}

static void empty_rows(struct exec *x, const struct sort_run *s) {
    bool items = s->form == FORM_ITEMS;
    i64 stride = form_bytes[s->form];
    const u64 *rows = items ? &((const struct radix_item *)s->data)->row
                            : &((const struct prim_pair *)s->data)->row;
    gather_rows(x, s->out, s->keys, rows, stride, s->n);
    for (i32 i = 0; i < s->payload->count; i++) {
        gather_rows(x, s->payload->out[i], s->payload->in[i], rows, stride, s->n);
    }
}

wf_status cpu_sort(struct prim_job *job, const struct prim_sort *how, struct prim_array out_keys,
                   struct prim_array keys, const struct prim_payload *payload) {
    struct sort_run s = {.order = order_of(keys.type, how->descending),
                         .out = out_keys,
                         .keys = keys,
                         .payload = payload,
                         .n = keys.count,
                         .low = how->low_bit};
    s.high = how->high_bit ? how->high_bit : 8 * s.order.bytes;
    enum sort_by by = how->by != SORT_AUTO ? how->by : s.order.is_text ? SORT_MERGE : SORT_RADIX;
    s.form = choose_form(&s, by);
    i64 mark = prim_mark(job);
    s.data = prim_take(job, s.n * form_bytes[s.form]);
    s.temp = prim_take(job, s.n * form_bytes[s.form]);
    prim_back(job, mark);
    if (job->measuring || s.n == 0) {
        return ERR_OK;
    }
    TRY(cpu_check_text(job, keys));
    tasks_run(job->x, order_blocks(s.n), fill_task, &s);
    TRY(exec_check(job->x));
    TRY(sort_form(job->x, &s, by));
    if (s.form >= FORM_ROWS) {
        empty_rows(job->x, &s);
    } else {
        tasks_run(job->x, order_blocks(s.n), drain_task, &s);
    }
    return exec_check(job->x);
}

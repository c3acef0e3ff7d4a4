/* prim_texts.c: words that stand for texts and floats, and numbers for the texts of a join, on the
 * CPU.
 *
 * Numbers come from one hash table of rows of r that all workers fill at once. A slot holds half of
 * a hash and the smallest row with its text: it only ever changes from empty to some row, and from
 * a row to a smaller one with an equal text, so whoever meets it compares with the right text. */
#include "cpu/prim_order.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

struct words {
    struct prim_array out, in;
    enum prim_words how;
};

static void words_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct words *w = arg;
    const struct prim_span *span = w->in.data;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, w->in.count);
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        if (w->how == WORDS_FLOAT && elem_bytes[w->in.type] == 4) {
            ((u32 *)w->out.data)[i] = same_f32(((const u32 *)w->in.data)[i]);
        } else if (w->how == WORDS_FLOAT) {
            ((u64 *)w->out.data)[i] = same_f64(((const u64 *)w->in.data)[i]);
        } else {
            const u8 *at = w->in.bytes + span[i].offset;
            ((u64 *)w->out.data)[i] = w->how == WORDS_HASH ? hash_text(at, span[i].length)
                                                           : text_prefix(at, span[i].length);
        }
    }
}

wf_status cpu_words(struct prim_job *job, enum prim_words how, struct prim_array out,
                    struct prim_array in) {
    struct words w = {out, in, how};
    TRY(cpu_check_text(job, in));
    if (!job->measuring) {
        tasks_run(job->x, order_blocks(in.count), words_task, &w);
    }
    return exec_check(job->x);
}

/* --- numbers --- */

#define SLOT_EMPTY (~0ULL)

struct numbers {
    struct prim_array texts[2];
    u32 *out[2];
    _Atomic u64 *slots;
    u64 mask;
    i32 side;
};

static bool text_is(const struct prim_array *a, i64 i, const struct prim_array *b, i64 k) {
    const struct prim_span *p = (const struct prim_span *)a->data + i;
    const struct prim_span *q = (const struct prim_span *)b->data + k;
    return p->length == q->length &&
           (p->length == 0 || memcmp(a->bytes + p->offset, b->bytes + q->offset, p->length) == 0);
}

static u64 text_hash(const struct prim_array *a, i64 i) {
    const struct prim_span *span = (const struct prim_span *)a->data + i;
    return hash_text(a->bytes + span->offset, span->length);
}

static void insert_text(const struct numbers *s, i64 i) {
    u64 hash = text_hash(&s->texts[0], i);
    u64 mine = hash >> 32 << 32 | (u64)i;
    for (u64 at = hash & s->mask;; at = (at + 1) & s->mask) {
        u64 held = SLOT_EMPTY;
        if (atomic_compare_exchange_strong(&s->slots[at], &held, mine)) {
            return;
        }
        if (held >> 32 == mine >> 32 && text_is(&s->texts[0], i, &s->texts[0], (i64)(u32)held)) {
            while (mine < held && !atomic_compare_exchange_weak(&s->slots[at], &held, mine)) {
            }
            return;
        }
    }
}

static u32 find_text(const struct numbers *s, i64 i) {
    u64 hash = text_hash(&s->texts[s->side], i);
    u64 at = hash & s->mask;
    u64 held = atomic_load_explicit(&s->slots[at], memory_order_relaxed);
    while (held != SLOT_EMPTY && !(held >> 32 == hash >> 32 &&
                                   text_is(&s->texts[s->side], i, &s->texts[0], (i64)(u32)held))) {
        at = (at + 1) & s->mask;
        held = atomic_load_explicit(&s->slots[at], memory_order_relaxed);
    }
    return held == SLOT_EMPTY ? ~0u : (u32)held;
}

static void insert_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct numbers *s = arg;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, s->texts[0].count);
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        insert_text(s, i);
    }
}

static void find_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct numbers *s = arg;
    i64 end = MIN_OF((b + 1) * ORDER_ROWS, s->texts[s->side].count);
    for (i64 i = b * ORDER_ROWS; i < end; i++) {
        s->out[s->side][i] = find_text(s, i);
    }
}

wf_status cpu_number(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                     struct prim_array s) {
    struct numbers n = {.texts = {r, s}, .out = {out_r, out_s}};
    i64 slots = 64;
    while (slots < 2 * r.count) {
        slots *= 2;
    }
    n.slots = prim_take(job, slots * 8);
    n.mask = (u64)slots - 1;
    TRY(cpu_check_text(job, r));
    TRY(cpu_check_text(job, s));
    if (job->measuring) {
        return ERR_OK;
    }
    memset((void *)n.slots, 0xff, (size_t)slots * 8);
    tasks_run(job->x, order_blocks(r.count), insert_task, &n);
    TRY(exec_check(job->x));
    for (n.side = 0; n.side < 2; n.side++) {
        tasks_run(job->x, order_blocks(n.texts[n.side].count), find_task, &n);
    }
    return exec_check(job->x);
}

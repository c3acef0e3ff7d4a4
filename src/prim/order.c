/* order.c: entry points of the primitives that order elements: each goes to the device's own body.
 */
#include "prim/order.h"

#include "prim/move.h"

struct order order_of(enum elem type, bool descending) {
    struct order o = {.type = (u8)type, .bytes = elem_bytes[type], .descending = descending};
    o.is_float = elem_kinds[type] == 'F';
    o.is_text = elem_kinds[type] == 'T';
    if (elem_kinds[type] == 'I') {
        o.flip_low = 1ULL << (8 * o.bytes - 1);
    }
    if (descending) {
        o.flip_low = o.bytes == 4 ? (u32)~o.flip_low : ~o.flip_low;
        o.flip_high = ~o.flip_high;
    }
    return o;
}

i64 split_parts(const struct prim_split *how) {
    return how->by == SPLIT_RANGE ? how->splitters.count + 1 : 1LL << how->bits;
}

wf_status prim_room(struct prim_job *job, const char *what, i64 needed, i64 room) {
    if (needed > room) {
        FAIL(job->x->err, PROGRAM_LIMIT, "%s: %lld results, and room for %lld", what, needed, room);
    }
    return ERR_OK;
}

static const struct prim_payload no_payload;

wf_status prim_words_array(struct prim_job *job, enum prim_words how, struct prim_array out,
                           struct prim_array in) {
    const struct prim_order *order = job->dev->prims->order;
    return order && order->words ? order->words(job, how, out, in)
                                 : prim_refuse(job, "words of keys");
}

wf_status prim_number_texts(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                            struct prim_array s) {
    const struct prim_order *order = job->dev->prims->order;
    return order && order->number ? order->number(job, out_r, out_s, r, s)
                                  : prim_refuse(job, "numbers of texts");
}

static struct prim_array take(struct prim_job *job, enum elem type, i64 count) {
    return (struct prim_array){
        .type = (u8)type, .data = prim_take(job, count * elem_bytes[type]), .count = count};
}

/* Text: words that say the partition are split with row numbers, which everything then follows. */
static FALLIBLE split_text(struct prim_job *job, const struct prim_split *how,
                           struct prim_array out_keys, struct prim_array out_starts,
                           struct prim_array keys, const struct prim_payload *payload) {
    i64 n = keys.count;
    bool range = how->by == SPLIT_RANGE;
    i64 parts = split_parts(how);
    struct prim_split by = {.by = SPLIT_RADIX, .shift = how->shift, .bits = how->bits};
    by.unstable = how->unstable;
    for (by.bits = range ? 0 : how->bits; range && 1LL << by.bits < parts;) {
        by.bits++;
    }
    i64 mark = prim_mark(job);
    struct prim_array word = take(job, range ? ELEM_U32 : ELEM_U64, n);
    struct prim_array out_word = take(job, word.type, n);
    struct prim_array row = take(job, ELEM_U64, n);
    struct prim_array out_row = take(job, ELEM_U64, n);
    struct prim_array starts = take(job, ELEM_U64, (1LL << by.bits) + 1);
    i64 inner = prim_mark(job);
    if (range) {
        struct prim_search search = {.upper = 1};
        by.shift = 0;
        TRY(prim_search_array(job, search, word, keys, how->splitters));
    } else {
        TRY(prim_words_array(job, how->by == SPLIT_HASH ? WORDS_HASH : WORDS_PREFIX, word, keys));
    }
    prim_back(job, inner);
    struct prim_series rows = {.out = row, .step = 1};
    struct prim_payload moved = {.count = 1, .in = {row}, .out = {out_row}};
    TRY(prim_series(job, &rows));
    TRY(prim_split_array(job, &by, out_word, starts, word, &moved));
    prim_back(job, inner);
    out_keys.count = n;
    TRY(prim_gather(job, out_keys, keys, out_row, 0));
    for (i32 i = 0; i < payload->count; i++) {
        prim_back(job, inner);
        TRY(prim_gather(job, payload->out[i], payload->in[i], out_row, 0));
    }
    if (out_starts.data || job->measuring) {
        struct prim_array first = take(job, ELEM_U64, parts + 1);
        struct prim_series places = {.out = first, .step = 1};
        TRY(prim_series(job, &places));
        out_starts.count = parts + 1;
        TRY(prim_gather(job, out_starts, starts, first, 1));
    }
    prim_back(job, mark);
    return ERR_OK;
}

wf_status prim_split_array(struct prim_job *job, const struct prim_split *how,
                           struct prim_array out_keys, struct prim_array out_starts,
                           struct prim_array keys, const struct prim_payload *payload) {
    const struct prim_order *order = job->dev->prims->order;
    if (elem_kinds[keys.type] == 'T') {
        return split_text(job, how, out_keys, out_starts, keys, payload ? payload : &no_payload);
    }
    return order && order->split
               ? order->split(job, how, out_keys, out_starts, keys, payload ? payload : &no_payload)
               : prim_refuse(job, "split");
}

wf_status prim_sort_array(struct prim_job *job, const struct prim_sort *how,
                          struct prim_array out_keys, struct prim_array keys,
                          const struct prim_payload *payload) {
    const struct prim_order *order = job->dev->prims->order;
    return order && order->sort
               ? order->sort(job, how, out_keys, keys, payload ? payload : &no_payload)
               : prim_refuse(job, "sort");
}

wf_status prim_merge_array(struct prim_job *job, struct prim_array out, struct prim_array a,
                           struct prim_array b, struct prim_array out_payload,
                           struct prim_array a_payload, struct prim_array b_payload) {
    const struct prim_order *order = job->dev->prims->order;
    return order && order->merge ? order->merge(job, out, a, b, out_payload, a_payload, b_payload)
                                 : prim_refuse(job, "merge");
}

wf_status prim_search_array(struct prim_job *job, struct prim_search how, struct prim_array out,
                            struct prim_array needles, struct prim_array among) {
    const struct prim_order *order = job->dev->prims->order;
    return order && order->search ? order->search(job, how, out, needles, among)
                                  : prim_refuse(job, "search");
}

wf_status prim_runs_array(struct prim_job *job, struct prim_array out_keys,
                          struct prim_array out_starts, struct prim_array out_counts,
                          struct prim_array keys, i64 *out_count) {
    const struct prim_order *order = job->dev->prims->order;
    *out_count = 0;
    return order && order->runs
               ? order->runs(job, out_keys, out_starts, out_counts, keys, out_count)
               : prim_refuse(job, "runs");
}

wf_status prim_set_array(struct prim_job *job, struct prim_set how, struct prim_array out,
                         struct prim_array a, struct prim_array b, i64 *out_count) {
    const struct prim_order *order = job->dev->prims->order;
    *out_count = 0;
    return order && order->sets ? order->sets(job, how, out, a, b, out_count)
                                : prim_refuse(job, "set operation");
}

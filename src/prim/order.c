/* order.c: entry points of the primitives that order elements: each goes to the device's own body.
 */
#include "prim/order.h"

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

wf_status prim_split_array(struct prim_job *job, const struct prim_split *how,
                           struct prim_array out_keys, struct prim_array out_starts,
                           struct prim_array keys, const struct prim_payload *payload) {
    const struct prim_order *order = job->dev->prims->order;
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

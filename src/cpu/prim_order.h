/* prim_order.h: what the CPU's primitives that order elements share.
 *
 * Sorts other than by radix, and every comparison, work on items: what orders the key as two words
 * (text: its first sixteen bytes), and the row it comes from. */
#ifndef WF_CPU_PRIM_ORDER_H
#define WF_CPU_PRIM_ORDER_H

#include "cpu/cpu_int.h"
#include "cpu/radix.h"
#include "prim/order.h"

enum { ORDER_ROWS = 1 << 15 }; /* of one task */
static inline i64 order_blocks(i64 n) {
    return (n + ORDER_ROWS - 1) / ORDER_ROWS;
}

struct item_order {
    const struct prim_span *spans; /* TEXT: by row; else NULL */
    const u8 *bytes;
    b8 descending; /* TEXT */
};
bool item_less(const struct radix_item *a, const struct radix_item *b, const struct item_order *o);
/* Out of element `row` of an array: its words; `ignore` low bits are dropped. */
void item_words(struct radix_item *out, const struct order *o, const struct prim_array *keys,
                i64 row, i32 ignore);
/* out[i] = in[row of item i], as tasks. */
void items_gather(struct exec *x, struct prim_array out, struct prim_array in,
                  const struct radix_item *items, i64 n);
/* ERR_INVALID_PARAMETER when spans point outside their bytes. */
FALLIBLE cpu_check_text(struct prim_job *job, struct prim_array text);

/* Sorts items; the result is in `items`. Merge is stable. */
FALLIBLE items_merge_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                          struct radix_item *temp, i64 n);
FALLIBLE items_bitonic_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                            i64 n);
FALLIBLE items_quick_sort(struct exec *x, const struct item_order *o, struct radix_item *items,
                          struct radix_item *temp, i64 n);

FALLIBLE cpu_sort(struct prim_job *job, const struct prim_sort *how, struct prim_array out_keys,
                  struct prim_array keys, const struct prim_payload *payload);
FALLIBLE cpu_split(struct prim_job *job, const struct prim_split *how, struct prim_array out_keys,
                   struct prim_array out_starts, struct prim_array keys,
                   const struct prim_payload *payload);

FALLIBLE cpu_merge(struct prim_job *job, struct prim_array out, struct prim_array a,
                   struct prim_array b, struct prim_array out_payload, struct prim_array a_payload,
                   struct prim_array b_payload);
FALLIBLE cpu_search(struct prim_job *job, struct prim_search how, struct prim_array out,
                    struct prim_array needles, struct prim_array among);
FALLIBLE cpu_runs(struct prim_job *job, struct prim_array out_keys, struct prim_array out_starts,
                  struct prim_array out_counts, struct prim_array keys, i64 *out_count);
FALLIBLE cpu_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                  struct prim_array a, struct prim_array b, i64 *out_count);

#endif

/* prim_order.h: what the CPU's primitives that order elements share.
 *
 * Items hold keys of any type: what orders the key as two words (of text its first sixteen bytes),
 * and the row it comes from. */
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
bool text_item_less(const struct radix_item *a, const struct radix_item *b,
                    const struct item_order *o); /* whose words are equal */
static inline bool item_less(const struct radix_item *a, const struct radix_item *b,
                             const struct item_order *o) {
    if (a->high != b->high) {
        return a->high < b->high;
    }
    return a->low != b->low || !o->spans ? a->low < b->low : text_item_less(a, b, o);
}
/* ERR_INVALID_PARAMETER when spans point outside their bytes. */
FALLIBLE cpu_check_text(struct prim_job *job, struct prim_array text);

/* Sorts by comparison; the result is in `data`, `temp` has room for as many. Merge is stable. */
struct sort_loops {
    FALLIBLE (*merge)(struct exec *x, const struct item_order *o, void *data, void *temp, i64 n);
    FALLIBLE (*bitonic)(struct exec *x, const struct item_order *o, void *data, i64 n);
    FALLIBLE (*quick)(struct exec *x, const struct item_order *o, void *data, void *temp, i64 n);
};
extern const struct sort_loops sort_loops_halves; /* u32 */
extern const struct sort_loops sort_loops_words;  /* u64 */
extern const struct sort_loops sort_loops_pairs;  /* struct prim_pair */
extern const struct sort_loops sort_loops_items;  /* struct radix_item */

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
FALLIBLE cpu_words(struct prim_job *job, enum prim_words how, struct prim_array out,
                   struct prim_array in);
FALLIBLE cpu_number(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                    struct prim_array s);
FALLIBLE cpu_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                  struct prim_array a, struct prim_array b, i64 *out_count);

#endif

/* gpu_prim_order.h: what the card's primitives that order elements share. */
#ifndef WF_GPU_GPU_PRIM_ORDER_H
#define WF_GPU_GPU_PRIM_ORDER_H

#include "defs/korder.h"
#include "gpu/gpu_prim.h"
#include "prim/order.h"

enum { ORDER_DEFINES = 400 };

struct korder korder_of(const struct order *o, const struct prim_array *keys);
/* The lines that say what kind of key it is. */
i32 order_text(const struct order *o, char *out, i32 cap);
/* Elements per thread where threads walk along a merge: odd, so that threads meet different banks
 * of shared memory. */
static inline i32 path_items(i32 key_bytes) {
    return key_bytes == 4 ? 15 : key_bytes == 8 ? 11 : 7;
}
/* Whether a merge, or with args->run a step of the merge sort, can be that of integers in
 * registers: what is merged, and where arrays lie. */
bool gpu_merges_words(const struct order *o, const struct kmerge *args, i32 payload_bytes);
/* Cuts and merges `total` elements; cuts have room for every tile of merge.h. */
FALLIBLE gpu_merge_words(struct prim_job *job, const struct order *o, const struct kmerge *args,
                         i64 total, i32 payload_bytes);
/* A piece of the workspace as an array. */
struct prim_array order_take(struct prim_job *job, enum elem type, i64 count);
/* ERR_INVALID_PARAMETER when spans point outside their bytes; waits. Nothing for other types. */
FALLIBLE order_check_text(struct prim_job *job, struct prim_array text);

/* A split as its passes see it: partition numbers are `bits` bits from `shift` on. */
struct split_plan {
    u8 by; /* enum split_by */
    i32 shift, bits;
    i64 part_count;
    struct kparts parts;
    struct order order;
};
/* "#define PART_…", or nothing where the key's own bits decide. */
const char *split_text(enum split_by by);
/* Whether the unstable split takes these widths and so many partitions. */
bool gpu_loose_takes(const struct split_plan *plan, const struct prim_payload *payload);
FALLIBLE gpu_loose_split(struct prim_job *job, const struct split_plan *plan,
                         struct prim_array out_keys, struct prim_array out_starts,
                         struct prim_array keys, const struct prim_payload *payload);

FALLIBLE gpu_split(struct prim_job *job, const struct prim_split *how, struct prim_array out_keys,
                   struct prim_array out_starts, struct prim_array keys,
                   const struct prim_payload *payload);
FALLIBLE gpu_radix_sort(struct prim_job *job, const struct prim_sort *how,
                        struct prim_array out_keys, struct prim_array keys,
                        const struct prim_payload *payload);
FALLIBLE gpu_words(struct prim_job *job, enum prim_words how, struct prim_array out,
                   struct prim_array in);
FALLIBLE gpu_number(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                    struct prim_array s);
/* Elements side by side, or rows of pages, numbered through. */
struct prim_pages {
    struct prim_array rows;
    struct krel_pages pages;
    b8 paged;
};
FALLIBLE gpu_paged_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                        const struct prim_pages *a, const struct prim_pages *b, i64 *out_count);
/* A sort by comparison. */
struct sorting { /* keys and at most one payload; data NULL: none */
    struct prim_job *job;
    struct order order;
    struct korder korder;
    i64 n;
    struct prim_array keys, out, payload, out_payload;
    char defines[ORDER_DEFINES];
};
static inline i32 sorting_payload_bytes(const struct sorting *s) {
    return s->payload.count ? elem_bytes[s->payload.type] : 0;
}
/* n elements of out and out_payload from `first` on, in place. */
FALLIBLE gpu_bitonic_sort(struct sorting *s, i64 first, i64 n);
FALLIBLE gpu_quick_sort(struct sorting *s);
/* Parts of an array, which begin at starts[0 .. parts] (on the card), each by itself, if it has more
 * than `least` elements; elements of the others are left alone, in `out`, too. */
FALLIBLE gpu_quick_parts(struct sorting *s, const u64 *starts, i64 parts, i64 least);
/* The lines before the text of kernels that compare keys. */
void sorting_defines(struct sorting *s);
FALLIBLE gpu_sort(struct prim_job *job, const struct prim_sort *how, struct prim_array out_keys,
                  struct prim_array keys, const struct prim_payload *payload);

#endif

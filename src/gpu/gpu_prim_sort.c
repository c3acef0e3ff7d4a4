/* gpu_prim_sort.c: sorts by comparison on the card: merge, bitonic; text; the choice.
 *
 * These sorts carry one payload; with two they carry row numbers and fetch both afterwards. Text is
 * sorted by the number its first eight bytes make, by radix, and when neighbours are equal in that,
 * by merges that compare all bytes: those find nearly everything in place. */
#include "gpu/gpu_prim_order.h"

#include <stdio.h>

void sorting_defines(struct sorting *s) {
    i32 used = order_text(&s->order, s->defines, ORDER_DEFINES);
    snprintf(s->defines + used, (size_t)(ORDER_DEFINES - used),
             "#define PATH_ITEMS %d\n#define PAYLOAD %d\n", path_items(s->order.bytes),
             sorting_payload_bytes(s));
}

static void *part_of_array(struct prim_array a, i64 first) {
    return a.data ? (u8 *)a.data + first * elem_bytes[a.type] : NULL;
}

/* --- merge --- */

/* Sorts n elements from in to out; temp holds as many. */
static FALLIBLE merge_sort(struct sorting *s, i64 first, i64 n, struct prim_array temp,
                           struct prim_array temp_payload) {
    struct prim_job *job = s->job;
    i64 tile = PATH_THREADS * path_items(s->order.bytes);
    i64 tiles = (n + tile - 1) / tile;
    i64 mark = prim_mark(job);
    i64 *cuts = prim_take(job, (tiles + 1) * 8);
    i32 left = 0;
    for (i64 run = tile; run < n; run *= 2) {
        left++;
    }
    struct kmerge args = {.order = s->korder,
                          .a = part_of_array(s->keys, first),
                          .a_payload = part_of_array(s->payload, first),
                          .a_count = n,
                          .cuts = cuts};
    struct gpu_template block = {"merge", "k_merge_block", s->defines};
    struct gpu_template cut = {"merge", "k_merge_cuts", s->defines};
    struct gpu_template merge = {"merge", "k_merge", s->defines};
    bool to_temp = left % 2;
    args.out = to_temp ? temp.data : part_of_array(s->out, first);
    args.out_payload = to_temp ? temp_payload.data : part_of_array(s->out_payload, first);
    TRY(gpu_prim_launch_all(job, &block, tiles, PATH_THREADS, 0, &args));
    for (args.run = tile; args.run < n; args.run *= 2) {
        args.a = args.out;
        args.a_payload = args.out_payload;
        to_temp = !to_temp;
        args.out = to_temp ? temp.data : part_of_array(s->out, first);
        args.out_payload = to_temp ? temp_payload.data : part_of_array(s->out_payload, first);
        if (gpu_merges_words(&s->order, &args, sorting_payload_bytes(s))) {
            TRY(gpu_merge_words(job, &s->order, &args, n, sorting_payload_bytes(s)));
            continue;
        }
        TRY(gpu_prim_launch_all(job, &cut, tiles / PATH_THREADS + 1, PATH_THREADS, 0, &args));
        TRY(gpu_prim_launch_all(job, &merge, tiles, PATH_THREADS, 0, &args));
    }
    prim_back(job, mark);
    return ERR_OK;
}

static FALLIBLE sort_by_merge(struct sorting *s) {
    struct prim_array temp = order_take(s->job, s->keys.type, s->n);
    struct prim_array temp_payload = {.type = s->payload.type};
    if (s->payload.count) {
        temp_payload = order_take(s->job, s->payload.type, s->n);
    }
    return merge_sort(s, 0, s->n, temp, temp_payload);
}

/* --- bitonic --- */

static FALLIBLE copy_through(struct sorting *s) {
    TRY(gpu_prim_move(s->job, s->out.data, s->keys.data, s->n * s->order.bytes));
    return gpu_prim_move(s->job, s->out_payload.data, s->payload.data,
                         s->n * sorting_payload_bytes(s));
}

wf_status gpu_bitonic_sort(struct sorting *s, i64 first, i64 n) {
    struct prim_job *job = s->job;
    struct kbitonic args = {.order = s->korder,
                            .keys = part_of_array(s->out, first),
                            .payload = part_of_array(s->out_payload, first),
                            .count = n};
    struct gpu_template tile = {"bitonic", "k_bitonic_tile", s->defines};
    struct gpu_template step = {"bitonic", "k_bitonic_step", s->defines};
    i64 tiles = (n + BITONIC_TILE - 1) / BITONIC_TILE;
    TRY(gpu_prim_launch_all(job, &tile, tiles, BITONIC_THREADS, 0, &args));
    for (args.run = 2 * BITONIC_TILE; args.run / 2 < n; args.run *= 2) {
        i64 pairs = (n + args.run - 1) / args.run * (args.run / 2);
        i64 blocks = (pairs + BITONIC_THREADS - 1) / BITONIC_THREADS;
        args.step = 0;
        TRY(gpu_prim_launch_all(job, &step, blocks, BITONIC_THREADS, 0, &args));
        for (args.step = args.run / 4; args.step >= BITONIC_TILE; args.step /= 2) {
            TRY(gpu_prim_launch_all(job, &step, blocks, BITONIC_THREADS, 0, &args));
        }
        TRY(gpu_prim_launch_all(job, &tile, tiles, BITONIC_THREADS, 0, &args));
    }
    return ERR_OK;
}

static FALLIBLE sort_by_bitonic(struct sorting *s) {
    TRY(copy_through(s));
    return gpu_bitonic_sort(s, 0, s->n);
}

/* --- text --- */

static FALLIBLE launch_spans(struct sorting *s, const char *kernel, struct prim_array spans,
                             u64 *prefixes, u32 *flag) {
    struct kspans args = {.spans = spans.data,
                          .count = s->n,
                          .bytes = s->keys.bytes,
                          .byte_count = (u64)s->keys.byte_count,
                          .prefixes = prefixes,
                          .flag = flag};
    struct gpu_template code = {"spans", kernel, ""};
    return gpu_prim_launch(s->job, &code, s->n / TEXT_PREFIX_THREADS + 1, TEXT_PREFIX_THREADS, 0,
                           &args);
}

static FALLIBLE sort_text(struct sorting *s) {
    struct prim_job *job = s->job;
    struct prim_array prefix = order_take(job, ELEM_U64, s->n);
    struct prim_array sorted = order_take(job, ELEM_U64, s->n);
    u32 *flag = prim_take(job, 4);
    u32 ties = 0;
    struct prim_payload payload = {.count = 1 + (s->payload.count > 0)};
    payload.in[0] = s->keys;
    payload.out[0] = s->out;
    payload.in[1] = s->payload;
    payload.out[1] = s->out_payload;
    struct prim_sort how = {.by = SORT_RADIX, .descending = s->order.descending};
    TRY(launch_spans(s, "k_text_prefix", s->keys, prefix.data, flag));
    TRY(prim_sort_array(job, &how, sorted, prefix, &payload));
    TRY(gpu_prim_fill(job, flag, 0, 4));
    TRY(launch_spans(s, "k_text_ties", s->out, sorted.data, flag));
    TRY(gpu_prim_fetch(job, &ties, flag, 4));
    struct sorting again = *s;
    again.keys = order_take(job, s->keys.type, s->n);
    again.payload.data = s->payload.count ? prim_take(job, s->n * sorting_payload_bytes(s)) : NULL;
    if (ties || job->measuring) {
        TRY(gpu_prim_move(job, again.keys.data, s->out.data, s->n * s->order.bytes));
        TRY(gpu_prim_move(job, again.payload.data, s->out_payload.data,
                          s->n * sorting_payload_bytes(s)));
        return sort_by_merge(&again);
    }
    return ERR_OK;
}

/* --- the choice --- */

static FALLIBLE sort_one(struct sorting *s, enum sort_by by) {
    sorting_defines(s);
    return by == SORT_BITONIC ? sort_by_bitonic(s)
           : by == SORT_QUICK ? (s->n <= BITONIC_TILE ? sort_by_bitonic(s) : gpu_quick_sort(s))
           : by == SORT_AUTO  ? sort_text(s)
                              : sort_by_merge(s);
}

static FALLIBLE launch_rows(struct prim_job *job, const char *kernel, enum elem type,
                            const struct krows *args) {
    char defines[40];
    snprintf(defines, sizeof defines, "#define ELEM_BYTES %d\n", elem_bytes[type]);
    struct gpu_template code = {"rows", kernel, defines};
    return gpu_prim_launch(job, &code, args->count / PATH_THREADS + 1, PATH_THREADS, 0, args);
}

/* Two payloads: rows travel, then both are fetched. */
static FALLIBLE sort_rows(struct sorting *s, enum sort_by by, const struct prim_payload *payload) {
    struct prim_job *job = s->job;
    struct krows args = {.count = s->n};
    s->payload = order_take(job, ELEM_U64, s->n);
    s->out_payload = order_take(job, ELEM_U64, s->n);
    args.out = s->payload.data;
    TRY(launch_rows(job, "k_rows", ELEM_U64, &args));
    TRY(sort_one(s, by));
    args.rows = s->out_payload.data;
    for (i32 i = 0; i < payload->count; i++) {
        args.in = payload->in[i].data;
        args.out = payload->out[i].data;
        TRY(launch_rows(job, "k_rows_fetch", payload->in[i].type, &args));
    }
    return ERR_OK;
}

wf_status gpu_sort(struct prim_job *job, const struct prim_sort *how, struct prim_array out_keys,
                   struct prim_array keys, const struct prim_payload *payload) {
    bool is_text = elem_kinds[keys.type] == 'T';
    if (how->by == SORT_RADIX || (how->by == SORT_AUTO && !is_text)) {
        return gpu_radix_sort(job, how, out_keys, keys, payload);
    }
    struct sorting s = {.job = job,
                        .order = order_of(keys.type, how->descending),
                        .n = keys.count,
                        .keys = keys,
                        .out = out_keys,
                        .payload.type = ELEM_U32};
    s.korder = korder_of(&s.order, &keys);
    if (s.n == 0) {
        return ERR_OK;
    }
    i64 mark = prim_mark(job);
    TRY(order_check_text(job, keys));
    if (payload->count == 1) {
        s.payload = payload->in[0];
        s.out_payload = payload->out[0];
    }
    TRY(payload->count == 2 ? sort_rows(&s, how->by, payload) : sort_one(&s, how->by));
    prim_back(job, mark);
    return ERR_OK;
}

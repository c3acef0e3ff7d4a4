/* gpu_prim_texts.c: words that stand for texts and floats, and numbers for the texts of a join, on
 * the card (kernels/spans.h, rows.h). */
#include "gpu/gpu_prim_order.h"

#include <stdio.h>

static FALLIBLE float_words(struct prim_job *job, struct prim_array out, struct prim_array in) {
    char defines[40];
    snprintf(defines, sizeof defines, "#define ELEM_BYTES %d\n", elem_bytes[in.type]);
    struct gpu_template code = {"rows", "k_rows_same", defines};
    struct krows args = {.in = in.data, .out = out.data, .count = in.count};
    return gpu_prim_launch(job, &code, in.count / PATH_THREADS + 1, PATH_THREADS, 0, &args);
}

wf_status gpu_words(struct prim_job *job, enum prim_words how, struct prim_array out,
                    struct prim_array in) {
    if (in.count == 0 || how == WORDS_FLOAT) {
        return in.count ? float_words(job, out, in) : ERR_OK;
    }
    TRY(order_check_text(job, in));
    struct kspans args = {.spans = in.data,
                          .count = in.count,
                          .bytes = in.bytes,
                          .byte_count = (u64)in.byte_count,
                          .prefixes = out.data};
    struct gpu_template code = {"spans", how == WORDS_HASH ? "k_text_hash" : "k_text_prefix", ""};
    return gpu_prim_launch(job, &code, in.count / TEXT_PREFIX_THREADS + 1, TEXT_PREFIX_THREADS, 0,
                           &args);
}

static FALLIBLE go(struct prim_job *job, const char *kernel, const struct knumber *args) {
    struct gpu_template code = {"spans", kernel, ""};
    return args->count ? gpu_prim_launch(job, &code, args->count / TEXT_PREFIX_THREADS + 1,
                                         TEXT_PREFIX_THREADS, 0, args)
                       : ERR_OK;
}

wf_status gpu_number(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                     struct prim_array s) {
    i64 slots = 64;
    while (slots < 2 * r.count) {
        slots *= 2;
    }
    struct knumber args = {.held = r.data,
                           .held_bytes = r.bytes,
                           .slots = prim_take(job, slots * 8),
                           .mask = (u64)slots - 1,
                           .spans = r.data,
                           .bytes = r.bytes,
                           .count = r.count,
                           .out = out_r};
    TRY(order_check_text(job, r));
    TRY(order_check_text(job, s));
    TRY(gpu_prim_fill(job, args.slots, 0xff, slots * 8));
    TRY(go(job, "k_text_insert", &args));
    TRY(go(job, "k_text_find", &args));
    args.spans = s.data;
    args.bytes = s.bytes;
    args.count = s.count;
    args.out = out_s;
    return go(job, "k_text_find", &args);
}

/* move.c: entry points of the primitives that compute or move elements: each goes to the device's
 * own body. What devices share is here too: words that order like their elements, comparisons as
 * ranges of them, runs by way of compaction and segments, rounding of exact sums. */
#include "prim/move.h"

#include "defs/host_words.h"
/* after the words it is written in */
#include "defs/fn_float.h"
#include "defs/fn_fround.h"

#define GO(name, ...)                                     \
    (job->dev->prims->move && job->dev->prims->move->name \
         ? job->dev->prims->move->name(job, __VA_ARGS__)  \
         : prim_refuse(job, #name))

wf_status prim_map(struct prim_job *job, const struct prim_map *map) {
    return GO(map, map);
}

wf_status prim_series(struct prim_job *job, const struct prim_series *series) {
    return GO(series, series);
}

wf_status prim_reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                      struct prim_array in) {
    return GO(reduce, fold, out, in);
}

wf_status prim_reduce_segments(struct prim_job *job, const struct prim_segments *segments) {
    return GO(segments, segments);
}

wf_status prim_scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                          struct prim_array out, struct prim_array in) {
    return GO(scan, fold, inclusive, out, in);
}

wf_status prim_compact(struct prim_job *job, const struct prim_compact *compact) {
    return GO(compact, compact);
}

wf_status prim_gather(struct prim_job *job, struct prim_array out, struct prim_array in,
                      struct prim_array index, i32 passes) {
    return GO(gather, out, in, index, passes);
}

wf_status prim_scatter(struct prim_job *job, struct prim_array out, struct prim_array in,
                       struct prim_array index, i32 passes) {
    return GO(scatter, out, in, index, passes);
}

wf_status prim_histogram(struct prim_job *job, const struct prim_bins *bins) {
    return GO(histogram, bins);
}

/* Runs are the segments between rows whose key differs from the row before. The number of runs is
 * known only when the job runs; the workspace has room for as many as the outputs take. */
wf_status prim_reduce_runs(struct prim_job *job, enum fold fold, struct prim_array out_keys,
                           struct prim_array out, struct prim_array keys, struct prim_array in,
                           i64 *out_count) {
    i64 room = MIN_OF(MIN_OF(out_keys.count, out.count), keys.count);
    i64 *offsets = prim_take(job, (room + 1) * 8);
    struct prim_compact heads = {.keep = {.kind = KEEP_HEADS, .by = keys},
                                 .ordered = 1,
                                 .column_count = 2,
                                 .out = {out_keys, {.type = ELEM_U64, .data = offsets}},
                                 .in = {keys, {.type = ELEM_U64}},
                                 .room = room,
                                 .out_count = out_count};
    i64 mark = prim_mark(job);
    TRY(prim_compact(job, &heads));
    prim_back(job, mark);
    i64 runs = job->measuring ? room : *out_count;
    struct prim_series end = {.out = {.type = ELEM_U64, .count = 1}, .first = (u64)keys.count};
    end.out.data = job->measuring ? NULL : offsets + runs;
    TRY(prim_series(job, &end));
    prim_back(job, mark);
    struct prim_segments segments = {
        .fold = fold, .out = out, .in = in, .offsets = offsets, .segment_count = runs};
    return prim_reduce_segments(job, &segments);
}

u64 prim_order_word(enum elem type, const void *value) {
    u32 narrow = 0;
    u64 word = 0;
    if (elem_bytes[type] == 4) {
        memcpy(&narrow, value, 4);
        word = narrow;
    } else {
        memcpy(&word, value, 8);
    }
    if (type == ELEM_F32) {
        f32 x = bits_f32(narrow);
        narrow = x != x ? 0x7fffffffu : x == 0 ? 0u : narrow;
        return narrow >> 31 ? (u32)~narrow : narrow | 1u << 31;
    }
    if (type == ELEM_F64) {
        f64 x = bits_f64(word);
        word = x != x ? (u64)I64_MAX : x == 0 ? 0u : word;
        return word >> 63 ? ~word : word | 1ULL << 63;
    }
    return word ^ prim_order_flip(type);
}

static u128 value_word(enum elem type, const void *value) {
    u64 words[2];
    if (elem_bytes[type] < 16) {
        return prim_order_word(type, value);
    }
    memcpy(words, value, 16);
    return (u128)words[1] << 64 | words[0];
}

struct prim_keep prim_keep_compare(struct prim_array by, enum prim_comparison compare,
                                   const void *value) {
    u128 x = value_word(by.type, value);
    u128 most = elem_bytes[by.type] == 16  ? ~(u128)0
                : elem_bytes[by.type] == 8 ? (u128)~0ULL
                                           : (u128)0xffffffffu;
    /* x < v is not (x >= v), x > v is not (x <= v): no bound leaves the words' range. */
    bool negate = compare == COMPARE_NE || compare == COMPARE_LT || compare == COMPARE_GT;
    u128 lo = compare == COMPARE_LE || compare == COMPARE_GT ? 0 : x;
    u128 hi = compare == COMPARE_GE || compare == COMPARE_LT ? most : x;
    return (struct prim_keep){.kind = KEEP_COMPARE,
                              .negate = negate,
                              .by = by,
                              .lo = {(u64)lo, (u64)(lo >> 64)},
                              .hi = {(u64)hi, (u64)(hi >> 64)}};
}

struct prim_binning prim_binning(const struct prim_bins *bins) {
    i128 base = (i128)bins->first + (i128)prim_order_flip(bins->in.type);
    u64 width = (u64)bins->width;
    if (base >= 0) {
        return (struct prim_binning){(u64)base, width, ~0ULL, 0};
    }
    u64 before = (u64)-base; /* of the first bins, below all words */
    u64 low = before / width;
    return (struct prim_binning){width - before % width, width, low, low + 1};
}

wf_status prim_map_fault(const struct prim_job *job, u64 fault) {
    if (fault == ~0ULL) {
        return ERR_OK;
    }
    return error_set(job->x->err, fault_error((u8)fault), -1, "%s (element %lld)",
                     fault_message((u8)fault), (i64)(fault >> 8));
}

wf_status prim_no_room(const struct prim_job *job, const char *what, i64 count, i64 room) {
    FAIL(job->x->err, PROGRAM_LIMIT, "%s: %lld results, out has room for %lld",
         what ? what : "compaction", count, room);
}

wf_status prim_bad_index(const struct prim_job *job, i64 at, i64 count) {
    FAIL(job->x->err, INVALID_PARAMETER, "index[%lld] is outside an array of %lld elements", at,
         count);
}

enum kind prim_elem_kind(enum elem type) {
    static const u8 kinds[ELEM_COUNT] = {
        [ELEM_U32] = KIND_I32,   [ELEM_I32] = KIND_I32,  [ELEM_F32] = KIND_F32,
        [ELEM_U64] = KIND_I64,   [ELEM_I64] = KIND_I64,  [ELEM_F64] = KIND_F64,
        [ELEM_U128] = KIND_I128, [ELEM_TEXT] = KIND_STR, [ELEM_BOOL] = KIND_B8,
    };
    return (enum kind)kinds[type];
}

wf_status prim_fsum_fault(const struct prim_job *job, u8 fault) {
    return fault ? error_set(job->x->err, fault_error(fault), -1, "%s", fault_message(fault))
                 : ERR_OK;
}

u8 prim_fsum_round(const i64 *words, enum elem type, void *out) {
    u8 fault = 0;
    f64 wide = 0;
    f32 narrow = 0;
    if (words[FSUM_NAN] || (words[FSUM_PLUS] && words[FSUM_MINUS])) {
        wide = bits_f64(0x7ff8000000000000ULL);
        narrow = bits_f32(0x7fc00000u);
    } else if (words[FSUM_PLUS] || words[FSUM_MINUS]) {
        wide = bits_f64(words[FSUM_PLUS] ? 0x7ff0000000000000ULL : 0xfff0000000000000ULL);
        narrow = bits_f32(words[FSUM_PLUS] ? 0x7f800000u : 0xff800000u);
    } else if (type == ELEM_F64) {
        wide = fn_fround_f64(words, FSUM_LIMBS, 32, -1074, &fault);
    } else {
        narrow = fn_fround_f32(words, FSUM_LIMBS, 32, -1074, &fault);
    }
    if (type == ELEM_F64) {
        memcpy(out, &wide, 8);
    } else {
        memcpy(out, &narrow, 4);
    }
    return fault;
}

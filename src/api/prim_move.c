/* prim_move.c: the public primitives that compute or move elements: checks, then the device. */
#include "api/prim_int.h"
#include "codes/op.h"
#include "prim/move.h"

_Static_assert((i32)WF_COMPACT_COLUMNS == (i32)COMPACT_COLUMNS, "columns of a compaction");
_Static_assert((i32)WF_COMPARE_GE == (i32)COMPARE_GE, "comparisons in one order");

/* Checks of a fold over elements of `in`; ok to call after a failure. */
static enum fold need_fold(struct call *c, wf_fold fold, wf_elem type, bool float_sums) {
    bool known = fold >= 0 && (i32)fold < FOLD_COUNT;
    CALL_NEED(c, known, INVALID_PARAMETER, "there is no operator number %d", (int)fold);
    if (c->status) {
        return FOLD_ADD;
    }
    bool sum = float_sums && fold == WF_FOLD_ADD && elem_kinds[type] == 'F';
    CALL_NEED(c, sum || fold_has((enum fold)fold, (enum elem)type), NOT_SUPPORTED,
              "%s does not exist for %s", fold_names[fold], elem_names[type]);
    return (enum fold)fold;
}

static void need_room(struct call *c, i64 room, i64 count) {
    CALL_NEED(c, room >= count, INVALID_PARAMETER, "out has room for %lld of %lld", room, count);
}

static void need_same(struct call *c, wf_elem out, wf_elem in) {
    CALL_NEED(c, out == in, DATATYPE_MISMATCH, "out is of another type than in");
}

/* --- map --- */

static wf_status map_body(struct prim_job *job, void *arg) {
    return prim_map(job, arg);
}

static u16 opcode_find(const char *name) {
    i32 code = 0;
    while (code < OP_COUNT && (!name || strcmp(op_infos[code].name, name) != 0)) {
        code++;
    }
    return (u16)code;
}

/* Opcodes that are expressions over elements. */
static bool opcode_maps(const struct op_info *info) {
    bool expression = !(info->flags & (OP_CONTROL | OP_MAKES)) && info->expr;
    return expression && info->result != KIND_STR;
}

static void need_kind(struct call *c, const char *name, struct prim_array a, u8 kind) {
    CALL_NEED(c, c->status || (u8)prim_elem_kind(a.type) == kind, DATATYPE_MISMATCH,
              "%s cannot be of type %s", name, elem_names[a.type]);
}

static void map_operands(struct call *c, struct prim_map *m, const wf_array *in) {
    static const char *const names[3] = {"operand 1", "operand 2", "operand 3"};
    const struct op_info *info = &op_infos[m->code];
    m->arity = info->arity;
    for (i32 i = 0; i < m->arity && !c->status; i++) {
        m->in[i] = call_in(c, names[i], in[i], "UIFWTB");
        need_kind(c, names[i], m->in[i], info->operands[i]);
        m->count = i ? MAX_OF(m->count, in[i].count) : in[i].count;
    }
    for (i32 i = 0; i < m->arity && !c->status; i++) {
        m->count = in[i].count ? m->count : 0; /* one empty operand among single elements */
    }
    for (i32 i = 0; i < m->arity && !c->status; i++) {
        CALL_NEED(c, in[i].count == m->count || in[i].count == 1, INVALID_PARAMETER,
                  "%s has %lld elements, another one %lld", names[i], (i64)in[i].count, m->count);
    }
}

/* An operand that is the output itself must go through it in step. */
static void map_apart(struct call *c, const struct prim_map *m, const wf_array *in,
                      const wf_array *out) {
    static const char *const names[3] = {"operand 1", "operand 2", "operand 3"};
    const char *same = NULL;
    for (i32 i = 0; i < m->arity && !c->status; i++) {
        bool in_step = elem_bytes[in[i].type] == elem_bytes[out->type] && in[i].count == m->count;
        if (in[i].data && in[i].data == out->data && in_step) {
            same = names[i];
        }
    }
    call_apart(c, same, "out");
}

wf_status wf_prim_map(wf_prim *prim, wf_place place, const char *opcode, wf_array out,
                      const wf_array *in, int32_t in_count, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "map", work)) {
        struct prim_map m = {.code = opcode_find(opcode)};
        CALL_NEED(&c, m.code < OP_COUNT, UNDEFINED_FUNCTION, "there is no opcode %s",
                  opcode ? opcode : "NULL");
        if (!c.status) {
            const struct op_info *info = &op_infos[m.code];
            CALL_NEED(&c, opcode_maps(info), NOT_SUPPORTED, "opcode %s", info->name);
            CALL_NEED(&c, in && in_count == info->arity, INVALID_PARAMETER,
                      "opcode %s has %d operands, %d given", info->name, info->arity, in_count);
            m.out = call_out(&c, "out", out, "UIFWB");
            need_kind(&c, "out", m.out, info->result);
        }
        if (!c.status) {
            map_operands(&c, &m, in);
            need_room(&c, out.count, m.count);
            map_apart(&c, &m, in, &out);
            call_filled(&c, m.out, m.count);
        }
        call_run(&c, map_body, &m);
    }
    return call_close(&c);
}

static wf_status series_body(struct prim_job *job, void *arg) {
    return prim_series(job, arg);
}

wf_status wf_prim_fill(wf_prim *prim, wf_place place, wf_array out, const void *value,
                       wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "fill", work)) {
        struct prim_series s = {.out = call_out(&c, "out", out, "UIFWB")};
        CALL_NEED(&c, value, INVALID_PARAMETER, "there is no value");
        if (!c.status) {
            u64 words[2] = {0, 0};
            memcpy(words, value, (size_t)elem_bytes[out.type]);
            s.first = words[0];
            s.wide = words[1];
        }
        call_run(&c, series_body, &s);
    }
    return call_close(&c);
}

wf_status wf_prim_sequence(wf_prim *prim, wf_place place, wf_array out, int64_t first, int64_t step,
                           wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "sequence", work)) {
        struct prim_series s = {
            .out = call_out(&c, "out", out, "UI"), .first = (u64)first, .step = (u64)step};
        call_run(&c, series_body, &s);
    }
    return call_close(&c);
}

/* --- reduction, scan --- */

struct fold_args {
    enum fold fold;
    bool inclusive;
    struct prim_array out, in, keys, out_keys;
    i64 *out_count;
};

static wf_status reduce_body(struct prim_job *job, void *arg) {
    struct fold_args *a = arg;
    return prim_reduce(job, a->fold, a->out, a->in);
}

wf_status wf_prim_reduce(wf_prim *prim, wf_place place, wf_fold fold, wf_array out, wf_array in,
                         wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "reduce", work)) {
        struct fold_args a = {.out = call_out(&c, "out", out, "UIF"),
                              .in = call_in(&c, "in", in, "UIF")};
        need_same(&c, out.type, in.type);
        a.fold = need_fold(&c, fold, in.type, true);
        need_room(&c, out.count, 1);
        call_apart(&c, NULL, NULL);
        call_filled(&c, a.out, 1);
        call_run(&c, reduce_body, &a);
    }
    return call_close(&c);
}

static wf_status segments_body(struct prim_job *job, void *arg) {
    return prim_reduce_segments(job, arg);
}

wf_status wf_prim_reduce_segments(wf_prim *prim, wf_place place, wf_fold fold, wf_array out,
                                  wf_array in, wf_array offsets, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "segmented reduction", work)) {
        struct prim_segments s = {.out = call_out(&c, "out", out, "UIF"),
                                  .in = call_in(&c, "in", in, "UIF")};
        struct prim_array ends = call_in(&c, "offsets", offsets, "UI");
        s.offsets = ends.data;
        s.segment_count = offsets.count - 1;
        CALL_NEED(&c, c.status || elem_bytes[ends.type] == 8, DATATYPE_MISMATCH,
                  "offsets have 8 bytes");
        CALL_NEED(&c, offsets.count >= 1, INVALID_PARAMETER,
                  "offsets are one more than the segments");
        need_same(&c, out.type, in.type);
        s.fold = need_fold(&c, fold, in.type, true);
        need_room(&c, out.count, s.segment_count);
        call_apart(&c, NULL, NULL);
        call_filled(&c, s.out, s.segment_count);
        call_run(&c, segments_body, &s);
    }
    return call_close(&c);
}

static wf_status runs_body(struct prim_job *job, void *arg) {
    struct fold_args *a = arg;
    return prim_reduce_runs(job, a->fold, a->out_keys, a->out, a->keys, a->in, a->out_count);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_reduce_runs(wf_prim *prim, wf_place place, wf_fold fold, wf_array out_keys,
                              wf_array out, wf_array keys, wf_array in, int64_t *out_count,
                              wf_work *work) {
    struct call c;
    i64 count = 0;
    if (call_open(&c, prim, place, "reduction of runs", work)) {
        struct fold_args a = {.out_keys = call_out(&c, "out_keys", out_keys, "UIFWB"),
                              .out = call_out(&c, "out", out, "UIF"),
                              .keys = call_in(&c, "keys", keys, "UIFWB"),
                              .in = call_in(&c, "in", in, "UIF"),
                              .out_count = &count};
        need_same(&c, out.type, in.type);
        need_same(&c, out_keys.type, keys.type);
        a.fold = need_fold(&c, fold, in.type, true);
        CALL_NEED(&c, keys.count == in.count, INVALID_PARAMETER, "%lld keys of %lld elements",
                  (i64)keys.count, (i64)in.count);
        CALL_NEED(&c, out_count, INVALID_PARAMETER, "there is no place for the number of runs");
        call_apart(&c, NULL, NULL);
        call_run(&c, runs_body, &a);
        call_filled(&c, a.out, count);
        call_filled(&c, a.out_keys, count);
    }
    if (out_count) {
        *out_count = count;
    }
    return call_close(&c);
}

static wf_status scan_body(struct prim_job *job, void *arg) {
    struct fold_args *a = arg;
    return prim_scan_array(job, a->fold, a->inclusive, a->out, a->in);
}

wf_status wf_prim_scan(wf_prim *prim, wf_place place, wf_fold fold, int inclusive, wf_array out,
                       wf_array in, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "scan", work)) {
        struct fold_args a = {.inclusive = inclusive != 0,
                              .out = call_out(&c, "out", out, "UIF"),
                              .in = call_in(&c, "in", in, "UIF")};
        need_same(&c, out.type, in.type);
        a.fold = need_fold(&c, fold, in.type, false);
        need_room(&c, out.count, in.count);
        call_apart(&c, "out", "in");
        call_filled(&c, a.out, in.count);
        call_run(&c, scan_body, &a);
    }
    return call_close(&c);
}

/* --- compaction --- */

static wf_status compact_body(struct prim_job *job, void *arg) {
    return prim_compact(job, arg);
}

/* Columns in and out; the key may be among them, and is then the same array. */
static void compact_columns(struct call *c, struct prim_compact *p, const wf_array *out,
                            const wf_array *in, int32_t count, const wf_array *by) {
    CALL_NEED(c, out && in && count > 0 && count <= COMPACT_COLUMNS, INVALID_PARAMETER,
              "%d columns, 1 to %d can be", count, COMPACT_COLUMNS);
    p->room = I64_MAX;
    for (i32 i = 0; i < count && !c->status; i++) {
        bool numbers = !in[i].data && !in[i].count && by->count > 0;
        bool is_key = in[i].data && in[i].data == by->data && in[i].type == by->type &&
                      in[i].count == by->count;
        p->out[i] = call_out(c, "out", out[i], "UIFWTB");
        p->in[i] = is_key ? p->keep.by : call_in(c, "in", in[i], numbers ? "U" : "UIFWTB");
        need_same(c, out[i].type, in[i].type);
        CALL_NEED(c, numbers || in[i].count == by->count, INVALID_PARAMETER,
                  "a column has %lld rows, the others %lld", (i64)in[i].count, (i64)by->count);
        p->in[i].data = numbers ? NULL : p->in[i].data;
        p->room = MIN_OF(p->room, out[i].count);
        p->column_count = i + 1;
    }
}

static wf_status compact_run(struct call *c, struct prim_compact *p, i64 *out_count) {
    i64 count = 0;
    p->out_count = &count;
    CALL_NEED(c, out_count, INVALID_PARAMETER, "there is no place for the number of rows");
    call_apart(c, NULL, NULL);
    call_run(c, compact_body, p);
    for (i32 i = 0; i < p->column_count; i++) {
        call_filled(c, p->out[i], count);
    }
    if (out_count) {
        *out_count = count;
    }
    return call_close(c);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_compact(wf_prim *prim, wf_place place, int ordered, const wf_array *out,
                          const wf_array *in, int32_t in_count, wf_array flags, int64_t *out_count,
                          wf_work *work) {
    struct call c;
    if (!call_open(&c, prim, place, "compaction", work)) {
        return call_close(&c);
    }
    struct prim_compact p = {.ordered = ordered != 0,
                             .keep = {.kind = KEEP_FLAGS, .by = call_in(&c, "flags", flags, "B")}};
    compact_columns(&c, &p, out, in, in_count, &flags);
    return compact_run(&c, &p, (i64 *)out_count);
}

/* Many because a public call names each of its arrays. */
wf_status wf_prim_compact_compare(wf_prim *prim, wf_place place, int ordered, const wf_array *out,
                                  const wf_array *in, int32_t in_count, wf_array key,
                                  wf_compare compare, const void *value, int64_t *out_count,
                                  wf_work *work) {
    struct call c;
    if (!call_open(&c, prim, place, "compaction", work)) {
        return call_close(&c);
    }
    struct prim_compact p = {.ordered = ordered != 0,
                             .keep = {.by = call_in(&c, "key", key, "UIFW")}};
    CALL_NEED(&c, compare >= 0 && compare <= WF_COMPARE_GE, INVALID_PARAMETER,
              "there is no comparison number %d", (int)compare);
    CALL_NEED(&c, value, INVALID_PARAMETER, "there is no value to compare with");
    if (!c.status) {
        p.keep = prim_keep_compare(p.keep.by, (enum prim_comparison)compare, value);
    }
    compact_columns(&c, &p, out, in, in_count, &key);
    return compact_run(&c, &p, (i64 *)out_count);
}

/* --- gather, scatter, histogram --- */

struct index_args {
    struct prim_array out, in, index;
    i32 passes;
};

static wf_status gather_body(struct prim_job *job, void *arg) {
    struct index_args *a = arg;
    return prim_gather(job, a->out, a->in, a->index, a->passes);
}

static wf_status scatter_body(struct prim_job *job, void *arg) {
    struct index_args *a = arg;
    return prim_scatter(job, a->out, a->in, a->index, a->passes);
}

enum { PASSES_MOST = 1024 };

static void need_index(struct call *c, const struct index_args *a) {
    CALL_NEED(c, c->status || a->index.type != ELEM_I32, DATATYPE_MISMATCH,
              "index cannot be of type I32");
    CALL_NEED(c, a->passes >= 0 && a->passes <= PASSES_MOST, INVALID_PARAMETER,
              "%d passes, 0 to %d can be", a->passes, PASSES_MOST);
}

wf_status wf_prim_gather(wf_prim *prim, wf_place place, wf_array out, wf_array in, wf_array index,
                         int32_t passes, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "gather", work)) {
        struct index_args a = {.out = call_out(&c, "out", out, "UIFWT"),
                               .in = call_in(&c, "in", in, "UIFWT"),
                               .index = call_in(&c, "index", index, "UI"),
                               .passes = passes};
        need_same(&c, out.type, in.type);
        need_index(&c, &a);
        need_room(&c, out.count, index.count);
        call_apart(&c, NULL, NULL);
        call_filled(&c, a.out, index.count);
        call_run(&c, gather_body, &a);
    }
    return call_close(&c);
}

wf_status wf_prim_scatter(wf_prim *prim, wf_place place, wf_array out, wf_array in, wf_array index,
                          int32_t passes, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "scatter", work)) {
        struct index_args a = {.out = call_inout(&c, "out", out, "UIFWT"),
                               .in = call_in(&c, "in", in, "UIFWT"),
                               .index = call_in(&c, "index", index, "UI"),
                               .passes = passes};
        need_same(&c, out.type, in.type);
        need_index(&c, &a);
        CALL_NEED(&c, in.count == index.count, INVALID_PARAMETER, "%lld elements, %lld indexes",
                  (i64)in.count, (i64)index.count);
        call_apart(&c, NULL, NULL);
        call_run(&c, scatter_body, &a);
    }
    return call_close(&c);
}

static wf_status histogram_body(struct prim_job *job, void *arg) {
    return prim_histogram(job, arg);
}

wf_status wf_prim_histogram(wf_prim *prim, wf_place place, wf_array out, wf_array in, int64_t first,
                            int64_t width, wf_work *work) {
    struct call c;
    if (call_open(&c, prim, place, "histogram", work)) {
        struct prim_bins b = {.out = call_out(&c, "out", out, "U"),
                              .in = call_in(&c, "in", in, "UI"),
                              .first = first,
                              .width = width};
        CALL_NEED(&c, c.status || b.out.type == ELEM_U64, DATATYPE_MISMATCH, "counts are U64");
        CALL_NEED(&c, width >= 1, INVALID_PARAMETER, "bins are at least 1 wide");
        call_apart(&c, NULL, NULL);
        call_run(&c, histogram_body, &b);
    }
    return call_close(&c);
}

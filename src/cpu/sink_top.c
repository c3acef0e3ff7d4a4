/* sink_top.c: rows that cannot be among the first of an order are dropped before they are
 * materialised.
 *
 * A ROWS sink whose variable is sorted next, with a limit of k, needs no row that k others precede.
 * Every worker keeps the k least keys it has met in a heap. The greatest of them is its bar, and
 * the least bar of all workers holds for everybody. Keys are the packed words of the sort, over the
 * ranges the program proves. A key too wide for one word takes part with its upper bits, a text as
 * it is (top_text.c). Rows that tie with the bar stay unless the key is the whole order and the bar
 * the worker's own, whose rows came before: so the rows that survive give the same answer on any
 * number of threads.
 *
 * The filter runs as soon as the keys are known. Opcodes that only fetch or compute other columns
 * move behind it (top_reorder), so that a column which no surviving row needs is not read. Where
 * the first key is a column of the table and nothing in the pipeline can raise, zones whose best
 * value lies behind the bar are not even looked at. The first ten of ten million rows in no order
 * then cost a few zones in a hundred. */
#include "cpu/cpu_int.h"
#include "codes/loop.h"
#include "cpu/sort_key.h"
#include "cpu/top_text.h"

enum { TOP_MAX = 1 << 16, WIDTH_STR = 4 };

struct top_part {
    struct sort_part part;
    u16 reg, null_reg;
    u8 cut;                  /* low bits that found no room */
    const struct dict *dict; /* of codes whose text decides */
};

struct top {
    i64 k;
    u32 part_count;
    struct top_part *parts;
    b8 exact;      /* the key is the whole order */
    u32 zone_col;  /* the table's column that is the first key; NO_VAR: zones tell nothing */
    i32 rest_bits; /* of the key, behind the first part */
    _Atomic u64 bar;
    struct text_top *text; /* a text follows the parts; NULL: none does */
    u16 text_reg, null_reg;
    const struct dict *dict; /* the text is that of codes; or NULL */
};

struct top_worker {
    u64 *heap; /* greatest first */
    i64 count;
    struct text_heap *texts; /* instead, where a text decides */
};

/* preparing */

static bool only_fetches(u16 code) {
    return op_infos[code].flags & OP_FETCHES;
}

static void note_needed(void *arg, u16 reg) {
    if (reg != NO_REG) {
        ((b8 *)arg)[reg] = 1;
    }
}

/* Whether the opcode stays before the filter: a key needs it, or it may raise. */
static bool stays(const struct op *op, const b8 *needed) {
    return (op->dst != NO_REG && needed[op->dst]) || op->code == OP_CONST ||
           (op_infos[op->code].flags & (OP_FAULTS | OP_HOST | OP_MAKES)) != 0;
}

const struct pipeline *top_reorder(struct exec *x, const struct pipeline *pipe, u32 *out_at) {
    const struct sink *sink = pipe->sinks;
    *out_at = NO_VAR;
    if (pipe->sink_count != 1 || sink->kind != SINK_ROWS || sink->top_key_count == 0 ||
        sink->top > TOP_MAX || sink->top <= 0 || pipe->op_count == 0 ||
        pipe->ops[pipe->op_count - 1].code != OP_EMIT) {
        return pipe;
    }
    u32 end = pipe->op_count - 1;
    u32 start = end;
    while (start > 0 && (!(op_infos[pipe->ops[start - 1].code].flags & OP_CONTROL) ||
                         only_fetches(pipe->ops[start - 1].code))) {
        start--;
    }
    b8 *needed = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    b8 *first = NEW_ARRAY(x->arena, b8, pipe->op_count + 1);
    for (u32 k = 0; k < sink->top_key_count; k++) {
        note_needed(needed, sink->cols[sink->top_keys[k].col].reg);
        note_needed(needed, sink->cols[sink->top_keys[k].col].null_reg);
    }
    for (u32 i = end; i-- > start;) {
        first[i] = stays(&pipe->ops[i], needed);
        if (first[i]) {
            op_reads(&pipe->ops[i], pipe->sinks, note_needed, needed);
        }
    }
    struct pipeline *out = NEW(x->arena, struct pipeline);
    *out = *pipe;
    out->ops = NEW_ARRAY(x->arena, struct op, pipe->op_count);
    out->marks = NEW_ARRAY(x->arena, struct row_mark, pipe->mark_count + 1);
    for (u32 m = 0; m < pipe->mark_count; m++) { /* what is moved drops no rows */
        out->marks[m] = pipe->marks[m];
        out->marks[m].op = MIN_OF(out->marks[m].op, start);
    }
    memcpy(out->ops, pipe->ops, sizeof(struct op) * start);
    u32 at = start;
    for (i32 pass = 1; pass >= 0; pass--) {
        for (u32 i = start; i < end; i++) {
            if (first[i] == pass) {
                out->ops[at++] = pipe->ops[i];
            }
        }
        *out_at = pass ? at : *out_at;
    }
    out->ops[at] = pipe->ops[end];
    *out_at = *out_at > 0 ? *out_at : NO_VAR;
    return out;
}

/* begin */

static void order_range(struct sort_part *part, const struct reg *reg, i32 rank_len) {
    i128 lo = part->rank ? 0 : reg->range.lo;
    i128 hi = part->rank ? rank_len : reg->range.hi;
    switch (part->kind) {
    case KIND_F32:
        part->hi = ~0u;
        break;
    case KIND_F64:
        part->hi = ~0ULL;
        break;
    case KIND_B8:
        part->hi = 1;
        break;
    case KIND_I128:
        part->lo = order_number(KIND_I128, NULL, &lo, 0);
        part->hi = order_number(KIND_I128, NULL, &hi, 0);
        break;
    default: {
        i64 ends[2] = {(i64)MAX_OF(lo, (i128)I64_MIN), (i64)MIN_OF(hi, (i128)I64_MAX)};
        part->lo = order_number(KIND_I64, NULL, ends, 0);
        part->hi = order_number(KIND_I64, NULL, ends, 1);
        break;
    }
    }
}

/* False when the key cannot take part at all. */
static bool make_part(struct pipe_run *run, const struct sink *sink, const struct sort_key *key,
                      struct top_part *out) {
    struct exec *x = run->x;
    const struct sink_col *col = &sink->cols[key->col];
    const struct reg *reg = &run->pipe.pipe->regs[col->reg];
    *out = (struct top_part){.reg = col->reg, .null_reg = col->null_reg};
    out->part = (struct sort_part){.kind = reg->kind,
                                   .nulls = col->null_reg != NO_REG,
                                   .nulls_first = key->nulls_first,
                                   .descending = key->descending};
    i32 len = 0;
    if (col->dict && x->program->dicts[col->dict - 1].table == NO_VAR) {
        out->dict = x->dicts[col->dict - 1]; /* its ranks would be found for this once */
        out->part.form = PART_NULLS;
        return out->dict != NULL;
    }
    if (col->dict) {
        const i32 *code_at;
        len = x->dict_lens[col->dict - 1];
        if (!x->dicts[col->dict - 1] ||
            !dict_ranks(x->dicts[col->dict - 1], len, &out->part.rank, &code_at)) {
            return false;
        }
    }
    if (reg->kind == KIND_STR) { /* only its NULLs; the text itself is no word */
        out->part.form = PART_NULLS;
        return true;
    }
    order_range(&out->part, reg, len);
    return out->part.lo <= out->part.hi;
}

/* Whether leaving rows out can be noticed: a row may raise only where it would have been seen. */
static bool may_skip(const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    bool plain = !(info->flags & OP_CONTROL) || only_fetches(op->code) || op->code == OP_FILTER ||
                 op->code == OP_EMIT;
    return plain && !(info->flags & (OP_FAULTS | OP_HOST | OP_MAKES));
}

/* The table's column that a register is, if it is nothing else; a wider form of it is the same. */
static u32 zone_col(const struct pipe_run *run, const struct top_part *part) {
    const struct pipeline *pipe = run->pipe.pipe;
    u16 reg = part->reg;
    u32 col = NO_VAR;
    if (pipe->source.kind != SOURCE_TABLE || part->part.nulls || part->part.rank ||
        part->part.kind == KIND_STR || part->part.kind == KIND_B8) {
        return NO_VAR;
    }
    for (u32 i = pipe->op_count; i-- > 0;) {
        const struct op *op = &pipe->ops[i];
        if (!may_skip(op)) {
            return NO_VAR;
        }
        if (op->dst == reg && !run->pipe.multi[reg]) {
            bool widens =
                op->code == OP_I64_I32 || op->code == OP_I128_I64 || op->code == OP_I128_I32;
            col = op->code == OP_LOAD ? pipe->source.cols[op->imm] : col;
            reg = widens ? op->a : reg;
        }
    }
    return col;
}

static void find_zones(struct pipe_run *run, struct top *top) {
    top->zone_col = top->part_count ? zone_col(run, &top->parts[0]) : NO_VAR;
    for (u32 p = 1; p < top->part_count; p++) {
        top->rest_bits += top->parts[p].part.bits - top->parts[p].cut;
    }
}

/* A value of 64 bits that may be NULL: whether it is, and then the value, 0 of a NULL (part_fill). Returns the
 * latter. */
static struct top_part *split_nulls(struct top *top, struct top_part *part, i32 *io_left) {
    struct top_part *value = part + 1;
    *value = *part;
    value->part.nulls = 0;
    part_measure(&value->part);
    part->part.form = PART_NULLS;
    part_measure(&part->part);
    *io_left -= part->part.bits;
    top->part_count++;
    return value;
}

/* Adds the parts of a key; false when no further key can take part. */
static bool add_key(struct pipe_run *run, const struct sink *sink, u32 k, struct top *top,
                    i32 *io_left) {
    struct top_part *part = &top->parts[top->part_count];
    const struct sort_key *key = &sink->top_keys[k];
    bool last = k + 1 == sink->top_key_count;
    if (!make_part(run, sink, key, part)) {
        return false;
    }
    part_measure(&part->part);
    if (part->part.kind == KIND_STR || part->dict) {
        if (part->part.nulls && *io_left == 0) {
            return false;
        }
        top->part_count += part->part.nulls;
        top->text = text_top_new(run->x->arena, top->k, key->descending, last);
        top->text_reg = part->reg;
        top->null_reg = part->null_reg;
        top->dict = part->dict;
        return false;
    }
    if (part->part.bits > 64 && part->part.nulls && *io_left > 0) {
        part = split_nulls(top, part, io_left);
    }
    if (part->part.bits > 64 || *io_left == 0) {
        return false;
    }
    part->cut = (u8)MAX_OF(part->part.bits - *io_left, 0);
    *io_left -= part->part.bits - part->cut;
    top->part_count++;
    top->exact = last && !part->cut;
    return !part->cut;
}

void *top_begin(struct pipe_run *run, const struct sink *sink) {
    struct top *top = NEW(run->x->arena, struct top);
    top->k = sink->top;
    top->parts = NEW_ARRAY(run->x->arena, struct top_part, 2 * sink->top_key_count + 1);
    atomic_init(&top->bar, ~0ULL);
    i32 left = 64;
    for (u32 k = 0; k < sink->top_key_count && add_key(run, sink, k, top, &left); k++) {
    }
    find_zones(run, top);
    return top->part_count || top->text ? top : NULL;
}

/* filtering */

/* A register's active rows, dense. */
static const void *active(struct worker *w, struct frame *fr, u16 reg, void *to) {
    const void *from = frame_read(w, fr, reg);
    if (!fr->sel) {
        return from;
    }
    u8 width = w->run->pipe.width[reg];
    w->run->pipe.vec->gather[width](to ? to : fr->spare[width], from, fr->sel, fr->m);
    return to ? to : fr->spare[width];
}

static void make_keys(struct worker *w, struct frame *fr, const struct top *top) {
    u64 *key = w->hash;
    memset(key, 0, (size_t)fr->m * sizeof *key);
    for (u32 p = 0; p < top->part_count; p++) {
        const struct top_part *part = &top->parts[p];
        const b8 *nulls = part->null_reg == NO_REG ? NULL : active(w, fr, part->null_reg, w->found);
        const void *data = active(w, fr, part->reg, NULL);
        if (!part->cut) {
            part_fill(&part->part, data, nulls, fr->m, key);
            continue;
        }
        u64 *wide = (u64 *)(void *)w->keys;
        memset(wide, 0, (size_t)fr->m * sizeof *wide);
        part_fill(&part->part, data, nulls, fr->m, wide);
        for (i64 j = 0; j < fr->m; j++) {
            key[j] = key[j] << (part->part.bits - part->cut) | wide[j] >> part->cut;
        }
    }
}

static void sift_down(u64 *heap, i64 n, u64 key) {
    i64 at = 0;
    for (i64 child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= key) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

static void push(struct top_worker *t, i64 k, u64 key) {
    if (t->count == k) {
        if (key < t->heap[0]) {
            sift_down(t->heap, k, key);
        }
        return;
    }
    i64 at = t->count++;
    while (at > 0 && t->heap[(at - 1) / 2] < key) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = key;
}

static void lower_bar(struct top *top, u64 bar) {
    u64 old = atomic_load_explicit(&top->bar, memory_order_relaxed);
    while (bar < old && !atomic_compare_exchange_weak_explicit(
                            &top->bar, &old, bar, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* The greatest key that is still of use; false when none is. */
static bool current_bar(const struct top *top, const struct top_worker *t, u64 *out) {
    if (top->text) {
        *out = text_top_word(top->text, t ? t->texts : NULL);
        return true;
    }
    bool full = t && t->count == top->k;
    u64 bar = atomic_load_explicit(&top->bar, memory_order_relaxed);
    u64 own = full ? t->heap[0] : ~0ULL;
    bool strict = full && top->exact && own <= bar;
    *out = strict ? own - (own > 0) : MIN_OF(bar, own);
    return !(full && top->exact && own == 0);
}

bool top_zones(const struct pipe_run *run) {
    const struct top *top = run->top;
    return top && top->zone_col != NO_VAR && run->pipe.top_at != NO_VAR;
}

bool top_excludes(const struct worker *w, i64 zone) {
    const struct top *top = w->run->top;
    const struct segment *seg = &w->tablet->cols[top->zone_col];
    const struct top_part *part = &top->parts[0];
    u64 bar;
    if (!seg->zones) {
        return false;
    }
    if (!current_bar(top, w->top, &bar)) {
        return true;
    }
    const struct zone *z = &seg->zones[zone];
    union lit best = {0};
    i128 number = part->part.descending ? z->hi : z->lo;
    f64 real = part->part.descending ? z->fhi : z->flo;
    switch (part->part.kind) {
    case KIND_I32:
        best.i32 = (i32)number;
        break;
    case KIND_I64:
        best.i64 = (i64)number;
        break;
    case KIND_I128:
        best.i128 = number;
        break;
    case KIND_F32:
        best.f32 = (f32)real;
        break;
    default:
        best.f64 = real;
        break;
    }
    bool is_float = part->part.kind == KIND_F32 || part->part.kind == KIND_F64;
    if (is_float ? !(real - real == 0.0) : z->lo > z->hi) {
        return false; /* NaN hides behind infinity; no values, no bounds */
    }
    u64 key = part_value(&part->part, &best, NULL, 0) >> part->cut;
    return top->rest_bits < 64 && key << top->rest_bits > bar;
}

/* The rows up to the bar: which of the active ones in w->group, their keys in w->hash. */
static i64 select_keys(struct worker *w, struct frame *fr, const struct top *top, u64 bar) {
    const u64 *key = w->hash;
    i64 kept = 0;
    make_keys(w, fr, top);
    for (i64 j = 0; j < fr->m; j++) {
        w->group[kept] = (u32)j;
        kept += key[j] <= bar;
    }
    return kept;
}

/* The texts of codes, those at `at` or the first n. Entries and their bytes lie anywhere: all of
 * the former are read before any of the latter is touched. */
static const str *texts_of(const struct dict *dict, const i32 *code, const b8 *nulls, const u32 *at,
                           i64 n, str *out) {
    for (i64 j = 0; j < n; j++) {
        struct sv text = nulls && nulls[j] ? SV("") : dict_get(dict, code[at ? at[j] : j]);
        __builtin_prefetch(text.ptr);
        out[j] = (str){(u32)text.len, 0, (u64)(size_t)text.ptr};
    }
    for (i64 j = 0; j < n; j++) {
        out[j] = str_from(sv_of(out[j]));
    }
    return out;
}

/* Leaves only the rows whose word does not exclude them; which they were goes to `at`. */
static void narrow_rows(struct worker *w, u64 bar, struct text_rows *rows, u32 *at) {
    u64 *key = w->hash;
    i64 few = 0;
    for (i64 j = 0; j < rows->count; j++) {
        at[few] = (u32)j;
        few += key[j] <= bar;
    }
    for (i64 j = 0; j < few; j++) {
        key[j] = key[at[j]];
    }
    for (i64 j = 0; j < few && rows->nulls; j++) {
        w->found[j] = rows->nulls[at[j]];
    }
    rows->nulls = rows->nulls ? w->found : NULL;
    rows->count = few;
}

/* The same where a text decides. */
static i64 select_texts(struct worker *w, struct frame *fr, struct top *top, struct top_worker *t) {
    struct text_rows rows = {.count = fr->m};
    u32 *at = NULL;
    if (top->part_count) {
        make_keys(w, fr, top);
        rows.word = w->hash;
    }
    rows.nulls = top->null_reg == NO_REG ? NULL : active(w, fr, top->null_reg, w->found);
    rows.text = active(w, fr, top->text_reg, NULL);
    if (top->dict && top->part_count) {
        at = (u32 *)(void *)w->rows;
        narrow_rows(w, text_top_word(top->text, t->texts), &rows, at);
    }
    if (top->dict) {
        rows.text = texts_of(top->dict, (const i32 *)(const void *)rows.text, rows.nulls, at,
                             rows.count, fr->spare[WIDTH_STR]);
    }
    i64 kept = text_top_select(w, top->text, &t->texts, &rows, w->group);
    for (i64 i = 0; i < kept && at; i++) {
        w->group[i] = at[w->group[i]];
    }
    return kept;
}

/* The same for keys that are words; they become part of the heap. */
static i64 select_words(struct worker *w, struct frame *fr, struct top *top, struct top_worker *t) {
    u64 bar;
    if (!current_bar(top, t, &bar)) {
        return 0;
    }
    if (!t->heap) {
        t->heap = NEW_ARRAY(&w->arena, u64, top->k);
    }
    i64 kept = select_keys(w, fr, top, bar);
    for (i64 j = 0; j < kept; j++) {
        push(t, top->k, w->hash[w->group[j]]);
    }
    if (kept && t->count == top->k) {
        lower_bar(top, t->heap[0]);
    }
    return kept;
}

void top_filter(struct worker *w, struct frame *fr) {
    struct top *top = w->run->top;
    if (!w->top) {
        w->top = NEW(&w->arena, struct top_worker);
    }
    i64 kept = (top->text ? select_texts : select_words)(w, fr, top, w->top);
    u32 *out = fr->sel_alt;
    for (i64 j = 0; j < kept; j++) {
        out[j] = ACTIVE(fr, w->group[j]);
    }
    if (kept < fr->m) {
        fr->sel_alt = fr->sel_mem;
        fr->sel_mem = out;
        fr->sel = out;
        fr->m = kept;
        fr->mask_valid = 0;
    }
}

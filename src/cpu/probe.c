/* probe.c: index lookups: PROBE keeps the rows that match, MATCH repeats them once per match.
 *
 * The keys of a whole vector are looked up at once (lookup.c). MATCH fills the child frame with
 * (row, match) pairs, gathers the registers still needed, and runs the rest of the pipeline
 * whenever the child is full. A unique index needs none of that: it only drops rows. EACH does the
 * same with the opcodes up to its ANY, which notes in the parent's `any` what came through; a row
 * whose mind is made up takes no further matches.
 *
 * A chain is asked part by part, for as many rows of the vector as their runs in all parts have room: then
 * the matches of a row come in the order of rows, as from a single index. */
#include "cpu/cpu_int.h"

#include "codes/control.h"

enum { EXPANSIONS_PER_CHECK = STOP_EVERY(64) };

/* Keys of the active rows from the `first`th on, dense. */
static const i64 *keys_from(struct worker *w, struct frame *fr, u16 reg, i64 first, i64 n) {
    const i64 *key = frame_read(w, fr, reg);
    if (!fr->sel) {
        return key + first;
    }
    w->run->pipe.vec->gather[3](w->keys, key, fr->sel + first, n);
    return w->keys;
}

static const i64 *active_keys(struct worker *w, struct frame *fr, u16 reg) {
    return keys_from(w, fr, reg, 0, fr->m);
}

static struct lookup lookup_of(const struct worker *w) {
    return (struct lookup){w->run->pipe.vec, w->hash, w->passed, w->group};
}

static struct lookup_count *count_of(const struct worker *w, const struct cpu_op *op) {
    return &w->counts[op - w->run->pipe.ops];
}

/* Rows whose `b` is 0 look nothing up. */
static const b8 *wanted(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    return op->b == NO_REG ? NULL : frame_read(w, fr, op->b);
}

/* Narrows the selection to `kept` rows, which fr->sel_alt names. */
void frame_keep(struct frame *fr, i64 kept) {
    if (kept < fr->m) {
        u32 *out = fr->sel_alt;
        fr->sel_alt = fr->sel_mem;
        fr->sel_mem = out;
        fr->sel = out;
        fr->m = kept;
        fr->mask_valid = 0;
    }
}

/* Rows whose key is of another class are another pass's. */
static void select_class(struct worker *w, struct frame *fr, const struct index *index,
                         const struct cpu_op *op) {
    const i64 *key = index->class_bits ? active_keys(w, fr, op->a) : NULL;
    i64 kept = 0;
    for (i64 j = 0; key && j < fr->m; j++) {
        fr->sel_alt[kept] = ACTIVE(fr, j);
        kept += index_class_of(index, key[j]) == index->class_no;
    }
    if (key) {
        frame_keep(fr, kept);
    }
}

/* chains */

static FALLIBLE reserve_parts(struct worker *w, struct frame *fr, i64 room) {
    struct memory *mem = w->run->x->mem;
    if (room <= fr->part_room) {
        return ERR_OK;
    }
    u32 *lo = mem_alloc(mem, 2 * room * (i64)sizeof *lo);
    if (!lo) {
        return memory_refused(mem, &w->err, 2 * room * (i64)sizeof *lo);
    }
    mem_free(mem, fr->part_lo, 2 * fr->part_room * (i64)sizeof *lo);
    fr->part_lo = lo;
    fr->part_hi = lo + room;
    fr->part_room = room;
    return ERR_OK;
}

/* The runs of the `first`th to (first + n)th active rows in every part, n of each in part_lo and part_hi. */
static void look_in_parts(struct worker *w, struct frame *fr, const struct index *chain,
                          const struct cpu_op *op, i64 first, i64 n) {
    const i64 *key = keys_from(w, fr, op->a, first, n);
    const b8 *where = wanted(w, fr, op);
    struct lookup l = lookup_of(w);
    w->probes += n * chain->part_count;
    for (i64 p = 0; p < chain->part_count; p++) {
        const struct index *part = &chain->parts[p];
        u32 *lo = fr->part_lo + p * n, *hi = fr->part_hi + p * n;
        if (part->unique) {
            i64 *rows = w->rows + first;
            b8 *found = w->found + first;
            lookup_rows(&l, count_of(w, op), part, key, n, rows, found);
            for (i64 k = 0; k < n; k++) {
                lo[k] = found[k] ? (u32)rows[k] : 0;
                hi[k] = lo[k] + found[k];
            }
        } else {
            lookup_runs(&l, count_of(w, op), part, key, n, lo, hi);
        }
        for (i64 k = 0; where && k < n; k++) {
            hi[k] = where[ACTIVE(fr, first + k)] ? hi[k] : lo[k];
        }
    }
}

/* Calls `take` for stretches of the active rows, once their runs in all parts are known. */
static FALLIBLE each_stretch(struct worker *w, struct frame *fr, const struct index *chain,
                             const struct cpu_op *op,
                             FALLIBLE (*take)(void *arg, struct frame *fr, i64 first, i64 n),
                             void *arg) {
    i64 vector = w->run->vector_rows;
    i64 most = MAX_OF(vector / chain->part_count, 1);
    TRY(reserve_parts(w, fr, most * chain->part_count));
    for (i64 first = 0; first < fr->m; first += most) {
        i64 n = MIN_OF(most, fr->m - first);
        look_in_parts(w, fr, chain, op, first, n);
        TRY(take(arg, fr, first, n));
    }
    return ERR_OK;
}

/* A row of a part's run. */
static inline i64 row_of(const struct index *part, u32 at) {
    return part->base + (part->unique || !part->rows ? (i64)at : (i64)part->rows[at]);
}

struct firsts {
    struct worker *w;
    const struct index *chain;
};

/* The first row of each, in w->rows and w->found; run_lo .. run_hi are as long as there are rows, up to two. */
static FALLIBLE take_firsts(void *arg, struct frame *fr, i64 first, i64 n) {
    const struct firsts *f = arg;
    for (i64 k = 0; k < n; k++) {
        i64 row = 0;
        u32 count = 0;
        for (i64 p = 0; p < f->chain->part_count && count < 2; p++) {
            u32 lo = fr->part_lo[p * n + k], hi = fr->part_hi[p * n + k];
            row = lo < hi && count == 0 ? row_of(&f->chain->parts[p], lo) : row;
            count += MIN_OF(hi - lo, 2);
        }
        f->w->rows[first + k] = row;
        f->w->found[first + k] = count > 0;
        fr->run_lo[first + k] = 0;
        fr->run_hi[first + k] = count;
    }
    return ERR_OK;
}

/* single look-ups */

/* The row of active row j in w->rows, whether there is one in w->found; of an index with duplicates
 * the first. */
static FALLIBLE find_rows(struct worker *w, struct frame *fr, const struct index *index,
                          const struct cpu_op *op) {
    if (index->form == INDEX_CHAIN) {
        struct firsts firsts = {w, index};
        return each_stretch(w, fr, index, op, take_firsts, &firsts);
    }
    const i64 *key = active_keys(w, fr, op->a);
    w->probes += fr->m;
    struct lookup l = lookup_of(w);
    if (index->unique) {
        lookup_rows(&l, count_of(w, op), index, key, fr->m, w->rows, w->found);
    } else {
        lookup_runs(&l, count_of(w, op), index, key, fr->m, fr->run_lo, fr->run_hi);
        for (i64 j = 0; j < fr->m; j++) {
            w->found[j] = fr->run_lo[j] != fr->run_hi[j];
            w->rows[j] = w->found[j] ? lookup_first(index, fr->run_lo[j]) : 0;
        }
    }
    const b8 *where = wanted(w, fr, op);
    for (i64 j = 0; where && j < fr->m; j++) {
        w->found[j] = (b8)(w->found[j] & where[ACTIVE(fr, j)]);
    }
    return ERR_OK;
}

/* The runs of active row j, in the frame's run_lo and run_hi: of index->rows, or, where the index
 * is unique or has none, of rows themselves. Of no chain. */
static FALLIBLE find_runs(struct worker *w, struct frame *fr, const struct index *index,
                          const struct cpu_op *op) {
    if (index->unique) {
        TRY(find_rows(w, fr, index, op));
        for (i64 j = 0; j < fr->m; j++) {
            fr->run_lo[j] = w->found[j] ? (u32)w->rows[j] : 0;
            fr->run_hi[j] = fr->run_lo[j] + w->found[j];
        }
        return ERR_OK;
    }
    w->probes += fr->m;
    const i64 *key = active_keys(w, fr, op->a);
    struct lookup l = lookup_of(w);
    lookup_runs(&l, count_of(w, op), index, key, fr->m, fr->run_lo, fr->run_hi);
    const b8 *where = wanted(w, fr, op);
    for (i64 j = 0; where && j < fr->m; j++) {
        fr->run_hi[j] = where[ACTIVE(fr, j)] ? fr->run_hi[j] : fr->run_lo[j];
    }
    return ERR_OK;
}

/* Rows with several matches, where only one is allowed. */
static bool second_matches(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    bool any = false;
    memset(w->fault, 0, (size_t)fr->n);
    for (i64 j = 0; j < fr->m; j++) {
        bool more = w->found[j] && fr->run_hi[j] - fr->run_lo[j] > 1;
        w->fault[ACTIVE(fr, j)] = more ? FAULT_MORE_ROWS : 0;
        any = any || more;
    }
    return any && ops_fault(w, fr, op);
}

static void keep_outer(struct worker *w, struct frame *fr, i64 *dst) {
    for (i64 j = 0; j < fr->m; j++) {
        dst[ACTIVE(fr, j)] = w->found[j] ? w->rows[j] : -1;
    }
}

/* Rows without a match are dropped, and nothing is asked of them. */
static void probe_select(struct worker *w, struct frame *fr, const struct index *index,
                         const struct cpu_op *op) {
    const i64 *key = active_keys(w, fr, op->a);
    struct lookup l = lookup_of(w);
    i64 *dst = frame_dst(w, fr, op->dst);
    i64 *rows = fr->sel ? w->rows : dst;
    w->probes += fr->m;
    i64 kept = lookup_select(&l, count_of(w, op), index, key, fr->m, rows);
    for (i64 k = 0; k < kept && fr->sel; k++) {
        u32 i = fr->sel[l.at[k]];
        dst[i] = rows[l.at[k]];
        fr->sel_alt[k] = i;
    }
    if (!fr->sel && kept < fr->m) {
        memcpy(fr->sel_alt, l.at, (size_t)kept * sizeof(u32));
    }
    frame_keep(fr, kept);
}

wf_status probe_run(struct worker *w, struct frame *fr, const struct cpu_op *op, bool *out_stop) {
    *out_stop = false;
    const struct index *index = w->run->x->vars[op->op->imm].index;
    select_class(w, fr, index, op);
    if (index->unique && op->b == NO_REG && !(probe_flags(op->op) & PROBE_OUTER)) {
        probe_select(w, fr, index, op);
        return ERR_OK;
    }
    TRY(find_rows(w, fr, index, op));
    if ((probe_flags(op->op) & PROBE_SINGLE) && !index->unique && second_matches(w, fr, op)) {
        *out_stop = true;
        return ERR_OK;
    }
    i64 *dst = frame_dst(w, fr, op->dst);
    if (probe_flags(op->op) & PROBE_OUTER) {
        keep_outer(w, fr, dst);
        return ERR_OK;
    }
    u32 *out = fr->sel_alt;
    i64 kept = 0;
    if (fr->sel) {
        for (i64 j = 0; j < fr->m; j++) {
            dst[fr->sel[j]] = w->rows[j];
            out[kept] = fr->sel[j];
            kept += w->found[j];
        }
    } else {
        memcpy(dst, w->rows, (size_t)(fr->m * (i64)sizeof(i64)));
        kept = w->run->pipe.vec->sel_build(out, w->found, fr->m);
    }
    frame_keep(fr, kept);
    return ERR_OK;
}

/* Runs the rest of the pipeline over the pairs collected in the child. */
static FALLIBLE match_flush(struct worker *w, struct frame *fr, struct frame *child,
                            const struct cpu_op *op, u32 pc) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    if (child->n == 0 || w->enough) {
        return ERR_OK;
    }
    if (++w->ticks % EXPANSIONS_PER_CHECK == 0) {
        wf_status status = exec_check(w->run->x);
        if (status) {
            return error_set(&w->err, status, -1, "statement cancelled");
        }
    }
    for (u32 i = 0; i < op->live_count; i++) {
        u16 r = op->live[i];
        if (r != op->dst) { /* the matches are in the child already */
            void *to = frame_dst(w, child, r);
            pipe->vec->gather[pipe->width[r]](to, frame_read(w, fr, r), child->from, child->n);
        }
    }
    for (i64 i = 0; i < child->n; i++) {
        u32 at = child->from[i];
        child->pos_mem[i] = fr->pos ? fr->pos[at] : at;
    }
    child->pos = child->pos_mem;
    child->first = fr->first;
    child->sel = NULL;
    child->m = child->n;
    child->mask_valid = 0;
    return ops_run(w, child, pc + 1);
}

struct expand expand_open(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc) {
    struct expand e = {.w = w, .fr = fr, .child = &w->frames[fr->level + 1], .op = op, .pc = pc};
    e.child->n = 0;
    e.child->scoped = op->op->code == OP_EACH;
    e.match = frame_dst(w, e.child, op->dst);
    return e;
}

wf_status expand_flush(struct expand *e) {
    TRY(match_flush(e->w, e->fr, e->child, e->op, e->pc));
    e->child->n = 0;
    e->match = frame_dst(e->w, e->child, e->op->dst);
    return ERR_OK;
}

/* The rows of a run. */
static inline FALLIBLE expand_run(struct expand *e, u32 row, u32 lo, u32 hi) {
    struct frame *child = e->child;
    const struct index *index = e->index;
    bool plain = index->unique || !index->rows;
    bool each = child->scoped;
    bool single = (probe_flags(e->op->op) & PROBE_SINGLE) != 0;
    while (lo < hi) {
        if (each && (e->fr->any[row] == -2 || (e->fr->any[row] >= 0 && !single))) {
            return ERR_OK;
        }
        i64 take = MIN_OF((i64)(hi - lo), e->w->run->vector_rows - child->n);
        for (i64 k = 0; k < take; k++) {
            child->from[child->n + k] = row;
            e->match[child->n + k] = index->base + (plain ? (i64)lo + k : (i64)index->rows[lo + k]);
        }
        child->n += take;
        lo += (u32)take;
        if (child->n == e->w->run->vector_rows) {
            TRY(expand_flush(e));
        }
    }
    return ERR_OK;
}

/* A row without a match. */
static inline FALLIBLE expand_none(struct expand *e, u32 row) {
    e->child->from[e->child->n] = row;
    e->match[e->child->n++] = -1;
    return e->child->n == e->w->run->vector_rows ? expand_flush(e) : ERR_OK;
}

static bool expands_none(const struct expand *e) {
    return (probe_flags(e->op->op) & PROBE_OUTER) != 0;
}

/* Rows and their runs in a chain. */
static FALLIBLE take_parts(void *arg, struct frame *fr, i64 first, i64 n) {
    struct expand *e = arg;
    const struct index *chain = e->chain;
    for (i64 k = 0; k < n; k++) {
        bool any = false;
        u32 row = ACTIVE(fr, first + k);
        for (i64 p = 0; p < chain->part_count; p++) {
            u32 lo = fr->part_lo[p * n + k], hi = fr->part_hi[p * n + k];
            e->index = &chain->parts[p];
            any = any || lo < hi;
            TRY(expand_run(e, row, lo, hi));
        }
        TRY(any || !expands_none(e) ? ERR_OK : expand_none(e, row));
    }
    return ERR_OK;
}

wf_status match_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc) {
    struct expand e = expand_open(w, fr, op, pc);
    e.index = w->run->x->vars[op->op->imm].index;
    select_class(w, fr, e.index, op);
    if (e.index->form == INDEX_CHAIN) {
        e.chain = e.index;
        TRY(each_stretch(w, fr, e.chain, op, take_parts, &e));
        return expand_flush(&e);
    }
    bool outer = expands_none(&e);
    TRY(find_runs(w, fr, e.index, op));
    for (i64 j = 0; j < fr->m; j++) {
        if (outer && fr->run_lo[j] == fr->run_hi[j]) {
            TRY(expand_none(&e, ACTIVE(fr, j)));
            continue;
        }
        TRY(expand_run(&e, ACTIVE(fr, j), fr->run_lo[j], fr->run_hi[j]));
    }
    return expand_flush(&e);
}

wf_status run_find(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct index *index = w->run->x->vars[op->op->imm].index;
    if (index->form == INDEX_CHAIN) { /* both ends have no room: MEET finds the second (meet.c) */
        TRY(find_rows(w, fr, index, op));
        keep_outer(w, fr, frame_dst(w, fr, op->dst));
        return ERR_OK;
    }
    TRY(find_runs(w, fr, index, op));
    i64 *dst = frame_dst(w, fr, op->dst);
    for (i64 j = 0; j < fr->m; j++) {
        u32 lo = fr->run_lo[j], hi = fr->run_hi[j];
        if (lo < hi && index->rows && !index->unique) { /* they follow each other */
            ASSERT(index->rows[hi - 1] - index->rows[lo] == hi - 1 - lo);
            hi = index->rows[lo] + (hi - lo);
            lo = index->rows[lo];
        }
        dst[ACTIVE(fr, j)] = (i64)((u64)lo << 32 | hi);
    }
    return ERR_OK;
}

void any_note(struct worker *w, struct frame *child, const struct cpu_op *op) {
    i64 *any = w->frames[child->level - 1].any;
    const i64 *match = frame_read(w, child, op->a);
    for (i64 j = 0; j < child->m; j++) {
        u32 i = ACTIVE(child, j);
        i64 *to = &any[child->from[i]];
        *to = *to == -1 ? match[i] : (probe_flags(op->op) & PROBE_SINGLE) ? -2 : *to;
    }
}

wf_status each_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc,
                   bool *out_stop) {
    const struct cpu_op *close = &w->run->pipe.ops[op->jump];
    for (i64 i = 0; i < fr->n; i++) {
        fr->any[i] = -1;
    }
    TRY(match_run(w, fr, op, pc));
    bool several = false;
    memset(w->fault, 0, (size_t)fr->n);
    for (i64 i = 0; i < fr->n; i++) {
        w->fault[i] = fr->any[i] == -2 ? FAULT_MORE_ROWS : 0;
        several = several || fr->any[i] == -2;
    }
    memcpy(frame_dst(w, fr, close->dst), fr->any, (size_t)fr->n * sizeof(i64));
    *out_stop = several && ops_fault(w, fr, close);
    return ERR_OK;
}

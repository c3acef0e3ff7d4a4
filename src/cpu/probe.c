/* probe.c: index lookups: PROBE keeps the rows that match, MATCH repeats them once per match.
 *
 * Keys of a whole vector are hashed first and their slots prefetched, so that the misses of a
 * vector overlap; the comparison loop then finds them in the cache. MATCH fills the child frame
 * with (row, match) pairs, gathers the registers still needed, and runs the rest of the pipeline
 * whenever the child is full. A unique index needs none of that: it only drops rows. */
#include "cpu/cpu_int.h"

enum { EXPANSIONS_PER_CHECK = 64 };

/* Keys of the active rows, dense. */
static const i64 *active_keys(struct worker *w, struct frame *fr, u16 reg) {
    if (!fr->sel) {
        return frame_read(w, fr, reg);
    }
    w->run->pipe.vec->gather[3](w->keys, frame_read(w, fr, reg), fr->sel, fr->m);
    return w->keys;
}

static void hash_keys(struct worker *w, const struct index *index, const i64 *key, i64 m) {
    w->run->pipe.vec->hash(w->hash, key, m);
    u64 mask = (u64)index->slot_count - 1;
    i64 heads_per_slot = index->unique ? 1 : 2;
    for (i64 j = 0; j < m; j++) {
        w->hash[j] &= mask;
        __builtin_prefetch(&index->keys[w->hash[j]]);
        __builtin_prefetch(&index->heads[(i64)w->hash[j] * heads_per_slot]);
    }
}

static void hash_unique(struct worker *w, const struct index *index, const i64 *key, i64 m) {
    i64 mask = index->slot_count - 1;
    hash_keys(w, index, key, m);
    for (i64 j = 0; j < m; j++) {
        i64 slot = (i64)w->hash[j];
        u32 head = index->heads[slot];
        while (head && index->keys[slot] != key[j]) {
            slot = (slot + 1) & mask;
            head = index->heads[slot];
        }
        w->found[j] = head != 0;
        w->rows[j] = head ? (i64)head - 1 : 0;
    }
}

static void hash_runs(struct worker *w, struct frame *fr, const struct index *index,
                      const i64 *key) {
    i64 mask = index->slot_count - 1;
    hash_keys(w, index, key, fr->m);
    for (i64 j = 0; j < fr->m; j++) {
        i64 slot = (i64)w->hash[j];
        const u32 *run = &index->heads[2 * slot];
        while (run[0] != run[1] && index->keys[slot] != key[j]) {
            slot = (slot + 1) & mask;
            run = &index->heads[2 * slot];
        }
        fr->run_lo[j] = run[0];
        fr->run_hi[j] = run[1];
        __builtin_prefetch(&index->rows[run[0]]);
    }
}

static void direct_runs(struct frame *fr, const struct index *index, const i64 *key) {
    for (i64 j = 0; j < fr->m; j++) {
        u64 slot = (u64)key[j] - (u64)index->key_lo;
        bool inside = slot < (u64)index->slot_count;
        fr->run_lo[j] = inside ? index->heads[slot] : 0;
        fr->run_hi[j] = inside ? index->heads[slot + 1] : 0;
        __builtin_prefetch(&index->rows[fr->run_lo[j]]);
    }
}

/* The runs of active row j, in the frame's run_lo and run_hi. */
static void find_runs(struct worker *w, struct frame *fr, const struct index *index, u16 reg) {
    const i64 *key = active_keys(w, fr, reg);
    w->probes += fr->m;
    if (index->form == INDEX_HASH) {
        hash_runs(w, fr, index, key);
    } else {
        direct_runs(fr, index, key);
    }
}

/* The row of active row j in w->rows, whether there is one in w->found. */
static void find_rows(struct worker *w, struct frame *fr, const struct index *index, u16 reg) {
    if (!index->unique) {
        find_runs(w, fr, index, reg);
        for (i64 j = 0; j < fr->m; j++) {
            w->found[j] = fr->run_lo[j] != fr->run_hi[j];
            w->rows[j] = w->found[j] ? (i64)index->rows[fr->run_lo[j]] : 0;
        }
        return;
    }
    const i64 *key = active_keys(w, fr, reg);
    w->probes += fr->m;
    if (index->form == INDEX_HASH) {
        hash_unique(w, index, key, fr->m);
    } else {
        w->run->pipe.vec->probe_direct(w->rows, w->found, key, index->key_lo, index->slot_count,
                                       index->heads, fr->m);
    }
}

void probe_run(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct index *index = w->run->x->vars[op->op->imm].index;
    find_rows(w, fr, index, op->a);
    i64 *dst = frame_dst(w, fr, op->dst);
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
    if (kept < fr->m) {
        fr->sel_alt = fr->sel_mem;
        fr->sel_mem = out;
        fr->sel = out;
        fr->m = kept;
        fr->mask_valid = 0;
    }
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

wf_status match_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc) {
    const struct index *index = w->run->x->vars[op->op->imm].index;
    struct frame *child = &w->frames[fr->level + 1];
    find_runs(w, fr, index, op->a);
    child->n = 0;
    i64 *match = frame_dst(w, child, op->dst);
    for (i64 j = 0; j < fr->m; j++) {
        u32 lo = fr->run_lo[j];
        u32 hi = fr->run_hi[j];
        while (lo < hi) {
            i64 take = MIN_OF((i64)(hi - lo), w->run->vector_rows - child->n);
            for (i64 k = 0; k < take; k++) {
                child->from[child->n + k] = ACTIVE(fr, j);
                match[child->n + k] = (i64)index->rows[lo + k];
            }
            child->n += take;
            lo += (u32)take;
            if (child->n == w->run->vector_rows) {
                TRY(match_flush(w, fr, child, op, pc));
                child->n = 0;
                match = frame_dst(w, child, op->dst);
            }
        }
    }
    return match_flush(w, fr, child, op, pc);
}

/* ops.c: the interpreter: one opcode at a time over a vector.
 *
 * Scalar opcodes run their loop over all n rows, or over the selection when they must not touch
 * inactive ones. Rows are dropped by shrinking the selection; when few are left the vector is
 * compacted. A fault of an active row is reported and ends the vector, not the pipeline: another
 * vector may hold the fault that counts. */
#include "cpu/cpu_int.h"

#include "codes/control.h"
#include "defs/host_words.h"

#include "defs/fn_fround.h"

/* Inside TRY a fault only marks its row. */
static bool try_fault(struct worker *w, struct frame *fr) {
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        fr->try_flags[i] = (b8)(fr->try_flags[i] | (w->fault[i] != 0));
    }
    return false;
}

bool ops_fault(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    u64 least = ~0ULL;
    if (fr->try_flags) {
        return try_fault(w, fr);
    }
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        if (w->fault[i] == 0) {
            continue;
        }
        if (w->run->pipe.keeps_faults) {
            fr->kept[i] = fr->kept[i] ? fr->kept[i] : w->fault[i];
            continue;
        }
        i64 row = w->row_start + ROW_AT(fr, i);
        u64 key = fault_key(op->op->rank, row, w->fault[i]);
        least = MIN_OF(least, key);
    }
    if (least == ~0ULL) {
        return false;
    }
    exec_fault(w->run->x, least);
    return true;
}

/* Returns whether some row, active or not, faulted. */
static u8 scalar(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct op_info *info = &op_infos[op->op->code];
    const void *a = frame_read(w, fr, op->a);
    const void *b = op->b_value;
    if (!b && info->arity > 1) {
        b = frame_read(w, fr, op->b);
    }
    const void *c = info->arity > 2 ? frame_read(w, fr, op->c) : NULL;
    if (op->sel_fn && fr->sel) {
        if (info->arity > 1) {
            b = frame_read(w, fr, op->b);
        }
        if (info->flags & OP_FAULTS) {
            memset(w->fault, 0, (size_t)fr->n);
        }
        return op->sel_fn(frame_dst(w, fr, op->dst), a, b, c, fr->sel, fr->m, w->fault);
    }
    void *dst = frame_dst(w, fr, op->dst);
    if (op->blend && fr->sel) {
        void *all = fr->spare[op->width];
        u8 any = op->fn(all, a, b, c, fr->n, w->fault);
        w->run->pipe.vec->blend[op->width](dst, all, fr->sel, fr->m);
        return any;
    }
    return op->fn(dst, a, b, c, fr->n, w->fault);
}

static void filter(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    const b8 *keep = frame_read(w, fr, op->a);
    if (pipe->is_const[op->a]) {
        fr->m = keep[0] ? fr->m : 0;
        return;
    }
    i64 m;
    if (!fr->sel) {
        m = pipe->vec->sel_build(fr->sel_alt, keep, fr->n);
        if (m == fr->n) {
            return;
        }
        if (m * 16 > fr->n * op->compact_at || pipe->keeps_faults) {
            memcpy(fr->mask, keep, (size_t)fr->n);
            fr->mask_valid = 1;
        }
    } else if (fr->mask_valid) {
        pipe->vec->mask_and(fr->mask, keep, fr->n);
        m = pipe->vec->sel_build(fr->sel_alt, fr->mask, fr->n);
    } else {
        m = pipe->vec->sel_refine(fr->sel_alt, fr->sel, fr->m, keep);
    }
    ASSERT(m >= 0 && m <= fr->m); /* rows are only ever dropped */
    u32 *swap = fr->sel_mem;
    fr->sel_mem = fr->sel_alt;
    fr->sel_alt = swap;
    fr->sel = fr->sel_mem;
    fr->m = m;
}

static void compact_if_sparse(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    if (fr->sel && fr->m && fr->m * 16 <= fr->n * op->compact_at && !fr->scoped &&
        !w->run->pipe.keeps_faults) {
        frame_compact(w, fr, op);
    }
}

static void row_numbers(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    i64 *dst = frame_dst(w, fr, op->dst);
    for (i64 i = 0; i < fr->n; i++) {
        dst[i] = w->row_start + ROW_AT(fr, i);
    }
}

/* A literal into a register that other opcodes write too; plain constants are set up front. */
static void assign_const(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    if (w->run->pipe.is_const[op->dst]) {
        return;
    }
    u8 *dst = frame_dst(w, fr, op->dst);
    i64 bytes = 1LL << op->width;
    for (i64 j = 0; j < fr->m; j++) {
        memcpy(dst + (i64)ACTIVE(fr, j) * bytes, &w->run->x->lits[op->op->imm], (size_t)bytes);
    }
}

/* Memory has no room for more: the pipeline starts anew, in pieces, where it can be cut. */
static wf_status intern_refused(struct worker *w, const struct cpu_op *op, i64 bytes) {
    if (w->run->x->vars[op->op->imm].bounded) {
        atomic_store_explicit(&w->run->refused_var, op->op->imm + 1, memory_order_relaxed);
    }
    return memory_refused(w->run->x->mem, &w->err, bytes);
}

/* Texts of other partitions are another pass's. */
static void select_leaf(struct frame *fr, const struct open_leaf *leaf, const str *s) {
    i64 kept = 0;
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        fr->sel_alt[kept] = i;
        kept += dict_hash(sv_of(s[i])) >> (64 - leaf->bits) == leaf->prefix;
    }
    frame_keep(fr, kept);
}

static FALLIBLE intern(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct variable *v = &w->run->x->vars[op->op->imm];
    struct dict *dict = v->leaf ? v->leaf->dict : v->dict;
    const str *s = frame_read(w, fr, op->a);
    if (v->leaf && v->leaf->bits) {
        select_leaf(fr, v->leaf, s);
    }
    i32 *dst = frame_dst(w, fr, op->dst);
    if (op->b != INTERN_ADD) {
        dict_find_many(dict, s, fr->sel, fr->m, dst);
    } else if (!dict_add_many(dict, s, fr->sel, fr->m, dst)) {
        return intern_refused(w, op, dict_bytes(dict));
    }
    for (i64 j = 0; v->leaf && j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        dst[i] += dst[i] < 0 ? 0 : (i32)v->leaf->first;
    }
    return ERR_OK;
}

static FALLIBLE intern_any(struct worker *w, struct frame *fr, const struct cpu_op *op,
                           bool *out_stop) {
    TRY(intern_keyed(op->op) ? best_intern(w, fr, op) : intern(w, fr, op));
    *out_stop = fr->m == 0; /* all are another pass's */
    return ERR_OK;
}

enum { INTERNS_PER_CHECK = STOP_EVERY(64) };

static FALLIBLE intern_pair(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct variable *v = &w->run->x->vars[op->op->imm];
    struct pair_map *pairs = v->leaf ? v->leaf->pairs : v->pairs;
    i64 first = v->leaf ? v->leaf->first : 0;
    const i64 *a = frame_read(w, fr, op->a);
    const i64 *b = frame_read(w, fr, op->b);
    i32 *dst = frame_dst(w, fr, op->dst);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        if (op->c == 1) {
            i64 found = pair_map_find(pairs, a[i], b[i]);
            dst[i] = (i32)(found < 0 ? found : found + first);
            continue;
        }
        i64 number = pair_map_add(pairs, a[i], b[i]);
        if (number < 0 || number + first > I32_MAX) {
            return intern_refused(w, op, 16);
        }
        dst[i] = (i32)(number + first);
        if (j % INTERNS_PER_CHECK == INTERNS_PER_CHECK - 1) { /* each may make a large table grow */
            TRY(exec_check(w->run->x));
        }
    }
    return ERR_OK;
}

static void unpair(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const struct pair_map *pairs = w->run->x->vars[op->op->imm].pairs;
    i64 len = pair_map_len(pairs);
    const i32 *number = frame_read(w, fr, op->a);
    i64 *dst = frame_dst(w, fr, op->dst);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        i64 half[2] = {0, 0};
        if (number[i] >= 0 && number[i] < len) {
            pair_map_get(pairs, number[i], &half[0], &half[1]);
        }
        dst[i] = half[op->b & 1];
    }
}

/* The words of a row lie in consecutive registers. True when the vector is to be dropped. */
static bool round_sum(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    i64 words[FROUND_WORDS_MAX];
    i32 first = w->run->x->lits[op->op->imm].i32;
    bool is_f64 = w->run->pipe.pipe->regs[op->dst].kind == KIND_F64;
    void *dst = frame_dst(w, fr, op->dst);
    u8 any = 0;
    memset(w->fault, 0, (size_t)fr->n);
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        frame_words(w, fr, op, i, words);
        if (is_f64) {
            ((f64 *)dst)[i] = fn_fround_f64(words, op->b, op->c, first, &w->fault[i]);
        } else {
            ((f32 *)dst)[i] = fn_fround_f32(words, op->b, op->c, first, &w->fault[i]);
        }
        any |= w->fault[i];
    }
    return any && ops_fault(w, fr, op);
}

/* Narrows the active rows to those where the condition holds. */
static void when_begin(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 depth) {
    const struct vec_table *vec = w->run->pipe.vec;
    const b8 *cond = frame_read(w, fr, op->a);
    u32 *out = fr->when_sel[depth];
    fr->m = fr->sel ? vec->sel_refine(out, fr->sel, fr->m, cond) : vec->sel_build(out, cond, fr->n);
    fr->sel = out;
}

/* Opcodes that shape rows or fetch values. *out_stop: the vector is done. */
static FALLIBLE control(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc,
                        bool *out_stop) {
    switch (op->op->code) {
    case OP_CONST:
        assign_const(w, fr, op);
        return ERR_OK;
    case OP_LOAD:
        load_column(w, fr, op);
        return ERR_OK;
    case OP_LOADN:
        load_nulls(w, fr, op);
        return ERR_OK;
    case OP_LOADV:
        load_variable(w, fr, op);
        return ERR_OK;
    case OP_LOADVN:
        load_variable_nulls(w, fr, op);
        return ERR_OK;
    case OP_ROWNO:
        row_numbers(w, fr, op);
        return ERR_OK;
    case OP_LUT:
        load_lut(w, fr, op);
        return ERR_OK;
    case OP_FILTER:
        filter(w, fr, op);
        break;
    case OP_PROBE:
        TRY(probe_run(w, fr, op, out_stop));
        if (*out_stop || probe_flags(op->op) & PROBE_OUTER) {
            *out_stop = *out_stop || fr->m == 0; /* all are another pass's */
            return ERR_OK;
        }
        break;
    case OP_MATCH:
        if (w->run->x->vars[op->op->imm].index->unique) {
            TRY(probe_run(w, fr, op, out_stop));
            break;
        }
        *out_stop = true;
        return match_run(w, fr, op, pc);
    case OP_RUN:
        return run_find(w, fr, op);
    case OP_MEET:
        *out_stop = true;
        return meet_run(w, fr, op, pc);
    case OP_COMMON:
        TRY(meet_count(w, fr, op));
        break;
    case OP_INTERN:
        return intern_any(w, fr, op, out_stop);
    case OP_INTERN2:
        return intern_pair(w, fr, op);
    case OP_UNPAIR:
        unpair(w, fr, op);
        return ERR_OK;
    case OP_FROUND:
    case OP_VARIANCE:
        *out_stop = op->op->code == OP_FROUND ? round_sum(w, fr, op) : variance_run(w, fr, op);
        return ERR_OK;
    case OP_EMIT:
        w->rows_out += w->run->pipe.pipe->sinks[op->op->imm].kind == SINK_LUT ? fr->m : 0;
        return w->run->sinks[op->op->imm].class->consume(w, op->op->imm, fr);
    default:
        return error_set(&w->err, ERR_INTERNAL, -1, "opcode %s is unknown to the CPU",
                         op_infos[op->op->code].name);
    }
    *out_stop = fr->m == 0;
    ASSERT(frame_is_sound(w, fr));
    compact_if_sparse(w, fr, op);
    return ERR_OK;
}

static FALLIBLE value(struct worker *w, struct frame *fr, const struct cpu_op *op, bool *out_stop) {
    const struct op_info *info = &op_infos[op->op->code];
    u8 any = 0;
    w->op_cost += fr->n * info->cost;
    if (!op->fn) { /* no loop */
        TRY(host_run(w, fr, op, &any));
    } else {
        any = scalar(w, fr, op);
    }
    *out_stop = any && ops_fault(w, fr, op);
    return ERR_OK;
}

wf_status ops_run(struct worker *w, struct frame *fr, u32 pc) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    struct when_level *when = fr->when;
    u32 depth = 0;
    bool stop = false;
    while (pc < pipe->op_count && !stop) {
        const struct cpu_op *op = &pipe->ops[pc];
        for (u32 mark = op->mark; mark < op->mark_end; mark++) {
            w->marks[mark] += fr->m;
        }
        if (pc == pipe->top_at && w->run->top) {
            top_filter(w, fr);
            if (fr->m == 0) {
                return ERR_OK;
            }
            compact_if_sparse(w, fr, &pipe->top_op);
        }
        if (op->op->code == OP_WHEN) {
            when[depth] = (struct when_level){fr->sel, fr->m, fr->try_flags};
            when_begin(w, fr, op, depth);
            depth++;
            pc = fr->m ? pc + 1 : op->jump;
            continue;
        }
        if (op->op->code == OP_TRY) {
            when[depth] = (struct when_level){fr->sel, fr->m, fr->try_flags};
            fr->try_flags = frame_dst(w, fr, op->dst);
            memset(fr->try_flags, 0, (size_t)fr->n);
            depth++;
            pc++;
            continue;
        }
        if (op->op->code == OP_EACH) {
            TRY(each_run(w, fr, op, pc, &stop));
            pc = op->jump + 1;
            continue;
        }
        if (op->op->code == OP_ANY) { /* the rows of an EACH go no further */
            any_note(w, fr, op);
            return ERR_OK;
        }
        if (op->op->code == OP_END) {
            ASSERT(depth > 0 && fr->m <= when[depth - 1].m); /* WHEN only narrows */
            depth--;
            fr->sel = when[depth].sel;
            fr->m = when[depth].m;
            fr->try_flags = when[depth].try_flags;
        } else if (op_infos[op->op->code].flags & OP_CONTROL) {
            TRY(control(w, fr, op, pc, &stop));
        } else {
            TRY(value(w, fr, op, &stop));
        }
        pc++;
    }
    return ERR_OK;
}

/* scans.c: pipelines that read the same rows, in one scan (decision 0054).
 *
 * Subqueries, sides of joins and branches of unions often read one table several times, each with
 * its own condition. Their pipelines depend on the same input and on nothing of each other, so one
 * kernel may do both: it loads what both read once, and each part goes on where its own conditions
 * hold, WHEN … END instead of FILTER, up to its own sink. What only a sink of rows reads is loaded
 * where it is written, for few rows and in few registers. (Aggregations of one shared input without
 * conditions between are made together from the beginning: agg_scan.c.)
 *
 * The later one moves up to the earlier, so nothing in between may make what it reads, and none
 * of its opcodes may raise: errors keep their order. Branches of a union follow each other, so that
 * its rows keep theirs. Parts stay apart where one makes groups and the other rows; where their
 * conditions leave few rows, as zone maps or a list of what is left save more than a column that is
 * read once; for the same reason where bounds of rows exclude each other; where they look keys up,
 * which tests bitmaps before anything else; where no column is read by both; where both together
 * need more registers than there are; and where their rows are the answer as it is, which is
 * computed as it is read, or are sorted for an index and kept. */
#include "lower/lower_int.h"

#include "codes/op.h"

#ifdef WF_HARD
enum { ROWS_MIN = 2 }; /* tests have small tables */
#else
enum { ROWS_MIN = 1000 };
#endif
enum { FEW = 8 };     /* conditions that leave less than a row of so many */
enum { SCOPES_MOST = 8 }; /* in each other */

/* --- who may --- */

static bool op_may_share(const struct op *op, bool rows) {
    const struct op_info *info = &op_infos[op->code];
    bool looks = info->roles[OPERAND_IMM] == ROLE_index || info->roles[OPERAND_A] == ROLE_words;
    bool makes = info->roles[OPERAND_IMM] == ROLE_interner || info->flags & (OP_MAKES | OP_HOST);
    return !looks && !(rows && makes) && !(info->flags & OP_REPEATS) &&
           (op->code == OP_FILTER || !op_shapes(op));
}

/* Whether a variable is the answer as its pipelines give it. */
static bool is_read_at_once(const struct lower *l, u32 var) {
    bool answer = false;
    for (i64 i = 0; i < l->steps.count; i++) {
        const struct step *step = &l->steps.items[i];
        answer = answer || (step->kind == STEP_RESULT && step->src == var);
        if (step->kind == STEP_SORT && step->src == var) {
            return false;
        }
    }
    return answer;
}

/* Whether a variable is sorted for an index: what is kept of a table is found by the steps that make it, each
 * from a scan of its own (run/trie_chain.c). */
static bool becomes_trie(const struct lower *l, u32 var) {
    for (i64 i = 0; i + 1 < l->steps.count; i++) {
        const struct step *step = &l->steps.items[i];
        if (step->kind == STEP_SORT && step->src == var) {
            return step[1].kind == STEP_BUILD && step[1].src == var;
        }
    }
    return false;
}

static bool sink_may_share(const struct lower *l, const struct sink *sink, u8 kind) {
    bool rows = sink->kind == SINK_ROWS && sink->limit < 0 && !sink->set_var && !sink->top_key_count &&
                !is_read_at_once(l, sink->var) && !becomes_trie(l, sink->var);
    return sink->kind == kind && (rows || (sink->kind == SINK_AGG && !sink->in_runs));
}

static bool pipe_may_share(const struct lower *l, const struct pipeline *pipe) {
    const struct source *from = &pipe->source;
    bool rows = from->kind == SOURCE_TABLE ||
                (from->kind == SOURCE_VAR && l->vars.items[from->ref].kind == VAR_ROWS);
    bool can = rows && from->rows >= ROWS_MIN && (!pipe->filtered || pipe->filtered >= from->rows / FEW);
    for (u32 s = 0; can && s < pipe->sink_count; s++) {
        can = sink_may_share(l, &pipe->sinks[s], pipe->sinks[0].kind);
    }
    u32 filters = 0;
    u32 depth = 0;
    u32 deepest = 0;
    for (u32 i = 0; can && i < pipe->op_count; i++) {
        u16 flags = op_infos[pipe->ops[i].code].flags;
        can = op_may_share(&pipe->ops[i], pipe->sinks[0].kind == SINK_ROWS);
        filters += pipe->ops[i].code == OP_FILTER;
        depth += (flags & OP_OPENS) != 0;
        depth -= (flags & OP_CLOSES) != 0;
        deepest = MAX_OF(deepest, depth);
    }
    return can && filters + deepest <= SCOPES_MOST;
}

static bool may_raise(const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (op_may_fault(&pipe->ops[i])) {
            return true;
        }
    }
    return false;
}

/* --- what a step uses --- */

struct touched {
    b8 *read;    /* by variable: read or written */
    b8 *written;
};

static void note_touched(void *arg, u32 var) {
    ((b8 *)arg)[var] = 1;
}

static void touch_step(const struct lower *l, const struct step *step, struct touched *t) {
    lower_each_var(l, step, note_touched, t->read);
    const u32 made[] = {step->dst, step->dst2, step->kind == STEP_SORT ? step->src : NO_VAR};
    for (u32 i = 0; i < COUNT_OF(made); i++) {
        if (made[i] != NO_VAR) {
            t->written[made[i]] = 1;
        }
    }
    const struct pipeline *pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
    for (u32 s = 0; pipe && s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        const u32 vars[] = {sink->var, sink->set_var ? sink->set_var - 1 : NO_VAR,
                            sink->kind == SINK_LUT ? sink->null_var : NO_VAR,
                            sink->kind == SINK_LUT ? sink->fault_var : NO_VAR};
        for (u32 i = 0; i < COUNT_OF(vars); i++) {
            if (vars[i] != NO_VAR) {
                t->written[vars[i]] = 1;
            }
        }
    }
    for (u32 i = 0; pipe && i < pipe->op_count; i++) {
        if (pipe->ops[i].code == OP_INTERN || pipe->ops[i].code == OP_INTERN2) {
            t->written[op_variable(&pipe->ops[i])] = 1;
        }
    }
}

static bool appends_to(const struct pipeline *pipe, u32 var) {
    bool appends = false;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        appends = appends || (pipe->sinks[s].var == var && pipe->sinks[s].append);
    }
    return appends;
}

/* Whether step `later` can be run at the place of `earlier`, or, for a variable that both add rows
 * to, right behind it. */
static bool may_move(const struct lower *l, i64 earlier, i64 later) {
    i64 count = l->vars.count + 1;
    struct touched mine = {NEW_ARRAY(l->arena, b8, count), NEW_ARRAY(l->arena, b8, count)};
    struct touched first = {NEW_ARRAY(l->arena, b8, count), NEW_ARRAY(l->arena, b8, count)};
    struct touched others = {NEW_ARRAY(l->arena, b8, count), NEW_ARRAY(l->arena, b8, count)};
    const struct pipeline *pipe = l->steps.items[later].pipeline;
    touch_step(l, &l->steps.items[later], &mine);
    touch_step(l, &l->steps.items[earlier], &first);
    for (i64 i = earlier + 1; i < later; i++) {
        touch_step(l, &l->steps.items[i], &others);
    }
    for (i64 v = 0; v < l->vars.count; v++) {
        bool behind = first.written[v] && appends_to(pipe, (u32)v);
        bool met = appends_to(pipe, (u32)v) && !first.written[v];
        met = met || (mine.read[v] && others.written[v]) || (mine.written[v] && others.read[v]);
        met = met || (!behind && ((mine.read[v] && first.written[v]) || (mine.written[v] && first.read[v])));
        if (met) {
            return false;
        }
    }
    return true;
}

/* --- both in one --- */

struct part {
    const struct pipeline *from;
    u16 *number; /* by register: that of the pipeline both become; NO_REG = none yet */
    u32 *col;    /* by column of the source: the same of the other source */
    u32 sink;    /* of its first sink */
};

struct merge {
    struct lower *l;
    struct pipeline *out;
    u8 *loads;         /* by column of out's source: how many parts load it, */
    b8 *early;         /* and whether one does so for all rows */
    u16 *value, *null; /* by column: registers that hold what both load; NO_REG = none */
};

static u32 find_col(const struct source *source, u32 col) {
    u32 at = 0;
    while (at < source->col_count && source->cols[at] != col) {
        at++;
    }
    return at;
}

static void renumber(void *arg, u16 *reg) {
    const u16 *number = arg;
    *reg = number[*reg];
}

static void put_op(struct merge *m, struct part *part, struct op op) {
    struct pipeline *out = m->out;
    op.imm += op.code == OP_EMIT ? part->sink : 0;
    if (op.code == OP_LOAD || op.code == OP_LOADN) {
        op.imm = part->col[op.imm];
    }
    op_change_reads(&op, out->sinks, renumber, part->number);
    if (op.dst != NO_REG) {
        if (part->number[op.dst] == NO_REG) {
            part->number[op.dst] = (u16)out->reg_count;
            out->regs[out->reg_count++] = part->from->regs[op.dst];
        }
        op.dst = part->number[op.dst];
    }
    out->ops[out->op_count++] = op;
}

/* What both parts load is loaded before either; literals, too, belong there. */
static bool stands_before(const struct merge *m, const struct part *part, const struct op *op) {
    bool load = op->code == OP_LOAD || op->code == OP_LOADN;
    u32 col = load ? part->col[op->imm] : 0;
    bool shared = load && m->loads[col] > 1 && (m->early[col] || m->out->sinks[0].kind == SINK_AGG);
    return load ? shared : op->code == OP_CONST && part->from->regs[op->dst].is_const;
}

static void put_before(struct merge *m, struct part *part) {
    for (u32 i = 0; i < part->from->op_count; i++) {
        const struct op *op = &part->from->ops[i];
        if (!stands_before(m, part, op)) {
            continue;
        }
        u16 *held = op->code == OP_CONST  ? NULL
                    : op->code == OP_LOAD ? &m->value[part->col[op->imm]]
                                          : &m->null[part->col[op->imm]];
        if (held && *held != NO_REG) {
            part->number[op->dst] = *held;
            continue;
        }
        put_op(m, part, *op);
        if (held) {
            *held = m->out->ops[m->out->op_count - 1].dst;
        }
    }
}

static void put_marks(struct merge *m, const struct part *part, u32 *next, u32 upto) {
    while (*next < part->from->mark_count && part->from->marks[*next].op <= upto) {
        m->out->marks[m->out->mark_count++] =
            (struct row_mark){m->out->op_count, part->from->marks[*next].rel};
        ++*next;
    }
}

static void put_body(struct merge *m, struct part *part) {
    u32 mark = 0;
    u32 scopes = 0;
    for (u32 i = 0; i < part->from->op_count; i++) {
        struct op op = part->from->ops[i];
        put_marks(m, part, &mark, i);
        if (stands_before(m, part, &op)) {
            continue;
        }
        if (op.code == OP_FILTER) {
            op.code = OP_WHEN;
            scopes++;
        }
        put_op(m, part, op);
    }
    put_marks(m, part, &mark, 0xffffffffu);
    for (; scopes > 0; scopes--) {
        struct op end = {OP_END, NO_REG, NO_REG, NO_REG, NO_REG, 0, 0, -1};
        m->out->ops[m->out->op_count++] = end;
    }
}

/* Its sinks, with lists of registers of their own. */
static void take_sinks(struct merge *m, struct part *part) {
    struct pipeline *out = m->out;
    part->sink = out->sink_count;
    for (u32 s = 0; s < part->from->sink_count; s++) {
        struct sink sink = part->from->sinks[s];
        u16 *words = NEW_ARRAY(m->l->arena, u16, sink.word_count + 1);
        if (sink.word_count) {
            memcpy(words, sink.word_regs, sizeof *words * sink.word_count);
        }
        sink.word_regs = words;
        out->sinks[out->sink_count++] = sink;
    }
}

static void begin_part(struct merge *m, struct part *part) {
    const struct pipeline *from = part->from;
    part->number = NEW_ARRAY(m->l->arena, u16, from->reg_count + 1);
    memset(part->number, 0xff, sizeof(u16) * (from->reg_count + 1));
    part->col = NEW_ARRAY(m->l->arena, u32, from->source.col_count + 1);
    for (u32 c = 0; c < from->source.col_count; c++) {
        u32 at = find_col(&m->out->source, from->source.cols[c]);
        if (at == m->out->source.col_count) {
            m->out->source.cols[m->out->source.col_count++] = from->source.cols[c];
        }
        part->col[c] = at;
    }
    b8 *loads = NEW_ARRAY(m->l->arena, b8, m->out->source.col_count + 1);
    u32 depth = 0;
    bool filtered = false;
    for (u32 i = 0; i < from->op_count; i++) {
        u16 flags = op_infos[from->ops[i].code].flags;
        depth += (flags & OP_OPENS) != 0;
        depth -= (flags & OP_CLOSES) != 0;
        filtered = filtered || from->ops[i].code == OP_FILTER;
        if (from->ops[i].code == OP_LOAD || from->ops[i].code == OP_LOADN) {
            loads[part->col[from->ops[i].imm]] = 1;
            m->early[part->col[from->ops[i].imm]] |= !filtered && depth == 0;
        }
    }
    for (u32 c = 0; c < m->out->source.col_count; c++) {
        m->loads[c] = (u8)(m->loads[c] + loads[c]);
    }
    take_sinks(m, part);
}

static bool same_prunes(const struct pipeline *a, const struct pipeline *b) {
    bool same = a->prune_count == b->prune_count;
    for (u32 i = 0; same && i < a->prune_count; i++) {
        const struct prune *x = &a->prunes[i];
        const struct prune *y = &b->prunes[i];
        same = a->source.cols[x->col] == b->source.cols[y->col] && x->lo_lit == y->lo_lit &&
               x->hi_lit == y->hi_lit && x->kind == y->kind;
    }
    return same;
}

/* A bound that is known before the program runs (prune.c notes whole numbers as i128), or false. */
static bool bound_of(const struct lower *l, const struct prune *p, u32 lit, i128 *out) {
    bool known = lit != NO_LIT && p->kind == KIND_I128;
    for (u32 i = 0; known && i < l->program->param_count; i++) {
        known = l->program->param_lits[i] != lit;
    }
    *out = known ? l->lits.items[lit].i128 : 0;
    return known;
}

/* Whether no row is wanted by both: each then reads the zones that have rows of its own. */
static bool exclude_each_other(const struct lower *l, const struct pipeline *a, const struct pipeline *b) {
    for (u32 i = 0; i < a->prune_count; i++) {
        for (u32 k = 0; k < b->prune_count; k++) {
            const struct prune *x = &a->prunes[i];
            const struct prune *y = &b->prunes[k];
            i128 lo, hi;
            bool same = a->source.cols[x->col] == b->source.cols[y->col];
            bool below = bound_of(l, x, x->hi_lit, &hi) && bound_of(l, y, y->lo_lit, &lo) && hi <= lo;
            bool above = !below && bound_of(l, y, y->hi_lit, &hi) && bound_of(l, x, x->lo_lit, &lo) && hi <= lo;
            if (same && (below || above)) {
                return true;
            }
        }
    }
    return false;
}

/* One pipeline of two. */
static struct pipeline *merge_pipes(struct lower *l, const struct pipeline *a, const struct pipeline *b) {
    struct arena *arena = l->arena;
    struct pipeline *out = NEW(arena, struct pipeline);
    u32 cols = a->source.col_count + b->source.col_count;
    struct merge m = {.l = l, .out = out};
    struct part parts[2] = {{.from = a}, {.from = b}};
    out->source = a->source;
    out->source.rows = MAX_OF(a->source.rows, b->source.rows);
    out->source.col_count = 0;
    out->source.cols = NEW_ARRAY(arena, u32, cols + 1);
    out->ops = NEW_ARRAY(arena, struct op, 2 * (a->op_count + b->op_count) + 1);
    out->regs = NEW_ARRAY(arena, struct reg, a->reg_count + b->reg_count + 1);
    out->sinks = NEW_ARRAY(arena, struct sink, a->sink_count + b->sink_count);
    out->marks = NEW_ARRAY(arena, struct row_mark, a->mark_count + b->mark_count + 1);
    m.loads = NEW_ARRAY(arena, u8, cols + 1);
    m.early = NEW_ARRAY(arena, b8, cols + 1);
    m.value = NEW_ARRAY(arena, u16, cols + 1);
    m.null = NEW_ARRAY(arena, u16, cols + 1);
    memset(m.value, 0xff, sizeof(u16) * (cols + 1));
    memset(m.null, 0xff, sizeof(u16) * (cols + 1));
    for (u32 p = 0; p < 2; p++) {
        begin_part(&m, &parts[p]);
    }
    for (u32 p = 0; p < 2; p++) {
        put_before(&m, &parts[p]);
    }
    for (u32 p = 0; p < 2; p++) {
        put_body(&m, &parts[p]);
    }
    if (same_prunes(a, b)) {
        out->prunes = a->prunes;
        out->prune_count = a->prune_count;
    }
    out->ends = a->ends;
    return out;
}

/* --- which --- */

static bool share_column(const struct source *a, const struct source *b) {
    for (u32 c = 0; c < b->col_count; c++) {
        if (find_col(a, b->cols[c]) < a->col_count) {
            return true;
        }
    }
    return false;
}

static u32 word_count(const struct pipeline *pipe) {
    u32 count = 0;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        count += pipe->sinks[s].word_count;
    }
    return count;
}

static struct pipeline *try_merge(struct lower *l, i64 earlier, i64 later) {
    enum { WORDS_MOST = 32 }; /* of groups that threads may keep in registers */
    const struct step *x = &l->steps.items[earlier];
    const struct step *y = &l->steps.items[later];
    if (y->kind != STEP_PIPELINE || y->defer) {
        return NULL;
    }
    const struct pipeline *a = x->pipeline;
    const struct pipeline *b = y->pipeline;
    bool same = a->source.kind == b->source.kind && a->source.ref == b->source.ref &&
                a->sinks[0].kind == b->sinks[0].kind;
    if (!same || a->sink_count + b->sink_count > PIPE_AGGS || a->reg_count + b->reg_count >= NO_REG ||
        word_count(a) + word_count(b) > WORDS_MOST ||
        (a->sinks[0].kind == SINK_ROWS && exclude_each_other(l, a, b)) || !pipe_may_share(l, b) || may_raise(b) ||
        !share_column(&a->source, &b->source) || !may_move(l, earlier, later)) {
        return NULL;
    }
    struct pipeline *both = merge_pipes(l, a, b);
    return weave_fits(l, both) ? both : NULL;
}

void scans_share(struct lower *l) {
    if (!l->limits->fusion || l->loops.count || l->status) {
        return;
    }
    for (i64 i = 0; i < l->steps.count; i++) {
        const struct step *step = &l->steps.items[i];
        bool can = step->kind == STEP_PIPELINE && !step->defer && pipe_may_share(l, step->pipeline);
        for (i64 k = i + 1; can && k < l->steps.count;) {
            struct pipeline *both = try_merge(l, i, k);
            if (!both) {
                k++;
                continue;
            }
            struct step *first = &l->steps.items[i];
            first->pipeline = both;
            first->label = arena_printf(l->arena, "%s; %s", first->label, l->steps.items[k].label);
            memmove(&l->steps.items[k], &l->steps.items[k + 1],
                    sizeof(struct step) * (size_t)(l->steps.count - k - 1));
            l->steps.count--;
        }
    }
}

/* finish.c: the end of a pipeline's construction: dead opcodes go, registers are numbered, a step
 * is made.
 *
 * An opcode stays if it shapes the rows, might raise, or defines a register that a later opcode
 * that stays reads. Because expressions are lowered without asking who will read them (NULL flags
 * above all), this pass is what keeps NULL-free and filter-only pipelines minimal. */
#include "lower/lower_int.h"

#include "codes/control.h"

static void mark_live(void *arg, u16 reg) {
    ((u8 *)arg)[reg] = 1;
}

static void renumber(void *arg, u16 *reg) {
    *reg = ((u16 *)arg)[*reg];
}

static bool is_root(const struct builder *b, i64 i) {
    const struct op *op = &b->ops.items[i];
    bool scope = op_infos[op->code].flags & (OP_OPENS | OP_CLOSES | OP_EMITS);
    return scope || op_shapes(op) || b->faults.items[i];
}

/* WHEN directly followed by its END masks nothing. */
static void drop_empty_whens(struct builder *b, u8 *keep) {
    i64 *stack = NEW_ARRAY(b->l->arena, i64, b->ops.count + 1);
    i64 depth = 0;
    i64 last = -1; /* last kept opcode */
    for (i64 i = 0; i < b->ops.count; i++) {
        if (!keep[i]) {
            continue;
        }
        u16 flags = op_infos[b->ops.items[i].code].flags;
        if (flags & OP_SHAPES) {
            last = i; /* EACH and ANY are no masks */
            continue;
        }
        if (flags & OP_OPENS) {
            stack[depth++] = i;
        } else if ((flags & OP_CLOSES) && last == stack[--depth]) {
            keep[i] = 0;
            keep[last] = 0;
            last = depth > 0 ? stack[depth - 1] : -1;
            continue;
        }
        last = i;
    }
}

/* Fills keep and live; repeats because an empty WHEN no longer reads its condition. */
static void find_live(struct builder *b, u8 *keep, u8 *live) {
    for (int round = 0; round < 2; round++) {
        memset(live, 0, (size_t)b->regs.count + 1);
        for (i64 i = b->ops.count; i-- > 0;) {
            const struct op *op = &b->ops.items[i];
            bool wanted = is_root(b, i) || (op->dst != NO_REG && live[op->dst]);
            keep[i] = (u8)(wanted && (round == 0 || keep[i]));
            if (keep[i]) {
                op_reads(op, b->sinks.items, mark_live, live);
            }
        }
        drop_empty_whens(b, keep);
    }
}

/* counting */

/* Whether each of `count` rows that are alike may be told by one and their number: what is summed up
 * is 1, which becomes the number where `number` is a register. */
static bool counts_alike(struct builder *b, u16 number) {
    for (i64 s = 0; s < b->sinks.count; s++) {
        struct sink *sink = &b->sinks.items[s];
        for (u32 i = 0; sink->kind == SINK_AGG && i < sink->word_count; i++) {
            union lit lit;
            bool one = build_is_const(b, sink->word_regs[i], &lit) && lit.i64 == 1;
            bool extreme = sink->words[i] == WORD_MIN || sink->words[i] == WORD_MAX;
            if (!extreme && !(one && sink->words[i] == WORD_ADD)) {
                return false;
            }
            sink->word_regs[i] = !extreme && number != NO_REG ? number : sink->word_regs[i];
        }
        if (sink->kind != SINK_AGG) {
            return false;
        }
    }
    return b->sinks.count > 0;
}

/* The last opcode that repeats rows is a MEET whose rows nobody reads: they are counted. What
 * follows it then has other numbers of rows than operators give. */
static bool count_instead(struct builder *b, const u8 *keep, const u8 *live) {
    i64 last = b->ops.count - 1;
    while (last >= 0 && !(keep[last] && (op_infos[b->ops.items[last].code].flags & OP_REPEATS))) {
        last--;
    }
    struct op *op = last >= 0 ? &b->ops.items[last] : NULL;
    if (!op || op->code != OP_MEET || live[op->dst] || b->l->plan->for_gpu ||
        !counts_alike(b, NO_REG)) {
        return false;
    }
    op->code = OP_COMMON;
    b->regs.items[op->dst].range = range_exact(0, I64_MAX);
    (void)counts_alike(b, op->dst);
    while (b->marks.count > 0 && b->marks.items[b->marks.count - 1].op > last) {
        b->marks.count--;
    }
    return true;
}

/* late loads */

struct sinking {
    const struct builder *b;
    const u8 *keep;
    i64 *op_of; /* register -> opcode that defines it, + 1 */
    i64 *place; /* per opcode: the one it goes right before; its own number when it stays */
    i64 now;    /* opcode whose operands are being looked at */
    i64 *outer; /* per opcode: the WHEN or EACH around it, -1 outside */
};

static bool is_load(u16 code) {
    return code == OP_LOAD || code == OP_LOADN || code == OP_LOADV || code == OP_LOADVN;
}

/* The last place before `user` that is not inside a WHEN that `op` is outside of. A reader outside
 * the WHEN that `op` is in leaves it where it is. */
static i64 place_before(const struct sinking *s, i64 op, i64 user) {
    while (user >= 0 && s->outer[user] != s->outer[op]) {
        user = s->outer[user];
    }
    return user >= 0 ? user : op;
}

static void note_use(void *arg, u16 reg) {
    struct sinking *s = arg;
    i64 op = s->op_of[reg] - 1;
    if (op >= 0 && is_load(s->b->ops.items[op].code)) {
        i64 user = s->now;
        while (user > 0 && s->b->ops.items[user].code == OP_RUN &&
               s->b->ops.items[user - 1].code == OP_RUN) { /* runs that meet stay side by side */
            user--;
        }
        s->place[op] = place_before(s, op, user);
    }
}

/* Every load goes right before its first reader, behind the filters in between. Readers are visited
 * from the last to the first, so the first one's word stands. A run of FROUND's words keeps its
 * order, because all of them have the same reader; what RUNs side by side read comes before them all. */
static i64 *sink_loads(struct builder *b, const u8 *keep) {
    struct arena *arena = b->l->arena;
    i64 count = b->ops.count;
    struct sinking s = {.b = b, .keep = keep};
    s.op_of = NEW_ARRAY(arena, i64, b->regs.count + 1);
    s.place = NEW_ARRAY(arena, i64, count + 1);
    s.outer = NEW_ARRAY(arena, i64, count + 1);
    i64 when = -1;
    for (i64 i = 0; i < count; i++) {
        const struct op *op = &b->ops.items[i];
        u16 flags = op_infos[op->code].flags;
        if (keep[i] && (flags & OP_CLOSES)) {
            when = s.outer[when];
        }
        s.outer[i] = when;
        when = keep[i] && (flags & OP_OPENS) ? i : when;
        s.place[i] = i;
        if (op->dst != NO_REG) {
            s.op_of[op->dst] = i + 1;
        }
    }
    for (s.now = count; s.now-- > 0;) {
        if (keep[s.now]) {
            op_reads(&b->ops.items[s.now], b->sinks.items, note_use, &s);
        }
    }
    return s.place;
}

/* The opcodes in their final order. */
static i64 *final_order(struct builder *b, const u8 *keep, i64 *out_count) {
    struct arena *arena = b->l->arena;
    i64 *place = sink_loads(b, keep);
    i64 *first = NEW_ARRAY(arena, i64, b->ops.count + 1); /* chains of loads by place, + 1 */
    i64 *next = NEW_ARRAY(arena, i64, b->ops.count + 1);
    i64 *order = NEW_ARRAY(arena, i64, b->ops.count + 1);
    for (i64 i = b->ops.count; i-- > 0;) {
        if (keep[i] && place[i] != i) {
            next[i] = first[place[i]];
            first[place[i]] = i + 1;
        }
    }
    i64 count = 0;
    for (i64 i = 0; i < b->ops.count; i++) {
        for (i64 load = first[i]; load; load = next[load - 1]) {
            order[count++] = load - 1;
        }
        if (keep[i] && place[i] == i) {
            order[count++] = i;
        }
    }
    *out_count = count;
    return order;
}

static void copy_op(struct builder *b, u16 *number, struct op op, struct pipeline *pipe) {
    op_change_reads(&op, b->sinks.items, renumber, number);
    if (op.dst != NO_REG) {
        pipe->regs[pipe->reg_count] = b->regs.items[op.dst];
        number[op.dst] = (u16)pipe->reg_count++;
        op.dst = number[op.dst];
    }
    pipe->ops[pipe->op_count++] = op;
}

static void copy_ops(struct builder *b, const u8 *keep, const u8 *live, struct pipeline *pipe) {
    struct arena *arena = b->l->arena;
    i64 count;
    i64 *order = final_order(b, keep, &count);
    u16 *number = NEW_ARRAY(arena, u16, b->regs.count + 1);
    pipe->ops = NEW_ARRAY(arena, struct op, b->consts.count + count);
    pipe->regs = NEW_ARRAY(arena, struct reg, b->regs.count);
    for (i64 i = 0; i < b->consts.count; i++) {
        if (live[b->consts.items[i].dst]) {
            copy_op(b, number, b->consts.items[i], pipe);
        }
    }
    pipe->marks = NEW_ARRAY(arena, struct row_mark, b->marks.count + 1);
    for (i64 i = 0; i <= count; i++) {
        /* Loads move down to their readers: a mark stands before the first opcode made after it. */
        while (pipe->mark_count < b->marks.count &&
               (i == count || b->marks.items[pipe->mark_count].op <= order[i])) {
            pipe->marks[pipe->mark_count] =
                (struct row_mark){pipe->op_count, b->marks.items[pipe->mark_count].rel};
            pipe->mark_count++;
        }
        if (i < count) {
            copy_op(b, number, b->ops.items[order[i]], pipe);
        }
    }
}

/* Pruning bounds on columns that are no longer read by a LOAD still name a source column: fine. */
struct step *build_finish(struct builder *b) {
    struct lower *l = b->l;
    if (l->status) {
        return NULL;
    }
    struct pipeline *pipe = NEW(l->arena, struct pipeline);
    u8 *keep = NEW_ARRAY(l->arena, u8, b->ops.count + 1);
    u8 *live = NEW_ARRAY(l->arena, u8, b->regs.count + 1);
    find_live(b, keep, live);
    if (count_instead(b, keep, live)) {
        find_live(b, keep, live);
    }
    copy_ops(b, keep, live, pipe);
    pipe->source = b->source;
    pipe->filtered = b->filtered;
    pipe->source.col_count = (u32)b->cols.count;
    pipe->source.cols = b->cols.items;
    pipe->sink_count = (u32)b->sinks.count;
    pipe->sinks = b->sinks.items;
    prune_finish(b, pipe);
    weave_check(l, b, pipe);
    pipe->ends = weave_end(b);
    struct step *step = lower_step(l, STEP_PIPELINE, b->label.len > 0 ? b->label.ptr : "Rows");
    step->position = b->source_position;
    step->pipeline = pipe;
    return step;
}

/* weave.c: which operators share a pipeline, as chapter 4 of Wu's thesis ("Kernel Weaver")
 * chooses them.
 *
 * Operators that wait for a row, or for the rows of a block, may be woven into the kernel of
 * whoever makes these; those that wait for all of them end it (rel.def says who is which). So the
 * operators between two that wait for a whole kernel are candidates, and lower_rel makes one
 * pipeline of them, in their order. That may need more than there is: registers, and shared
 * memory where one row becomes several and threads hand each other what they have. Then the
 * pipeline keeps as many of its first operators as there is room for, because rows are most
 * there; the next one begins another, for which the same is asked: the plan is lowered again with
 * that cut. Aggregations that share a scan get one each first. With fusion off every operator
 * ends its pipeline in a variable. */
#include "lower/lower_int.h"

#include "codes/op.h"

static const struct cut *find_cut(const struct cut *cuts, i64 count, const struct rel *rel) {
    for (i64 i = 0; i < count; i++) {
        if (cuts[i].rel == rel) {
            return &cuts[i];
        }
    }
    return NULL;
}

bool weave_cuts_after(const struct lower *l, const struct rel *rel) {
    if (!l->limits->fusion) {
        return rel->kind == REL_FILTER || rel->kind == REL_PROJECT || rel->kind == REL_JOIN ||
               rel->kind == REL_AGG || rel->kind == REL_WINDOW;
    }
    return find_cut(l->cuts.items, l->cuts.count, rel) != NULL;
}

/* Ends b with the rows of rel and goes on from there. Rows without columns get one, to be counted
 * by. */
struct builder *weave_cut(struct builder *b, const struct rel *rel) {
    struct lower *l = b->l;
    i64 count = rel->out.count;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count + 1);
    for (i64 i = 0; i < count; i++) {
        cols[i] = lower_carry(b, rel->out.items[i]);
    }
    if (count == 0) {
        cols[0].value = (struct value){build_bool(b, false), NO_REG};
        cols[0].type = type_of(TYPE_BOOLEAN);
    }
    const struct cut *cut = find_cut(l->cuts.items, l->cuts.count, rel);
    b->ends = cut ? cut->why : "fusion is off";
    u32 var = lower_rows(b, "rows", cols, (u32)MAX_OF(count, 1), false, -1);
    struct builder *next = lower_over(l, var, rel->rows);
    for (i64 i = 0; i < count; i++) {
        bind_source(next, rel->out.items[i], (u32)i);
    }
    return next;
}

const char *weave_end(const struct builder *b) {
    struct arena *arena = b->l->arena;
    if (b->ends || !b->last_label) {
        return b->ends;
    }
    for (u32 kind = 0; kind < REL_COUNT; kind++) {
        if (strcmp(rel_names[kind], b->last_label) == 0 && rel_kind_waits((enum rel_kind)kind) != WAITS_KERNEL) {
            return "with the answer";
        }
    }
    return arena_printf(arena, "%s waits for all rows (kernel)", b->last_label);
}

/* --- what a pipeline needs --- */

/* By opcode: what those up to it need. */
struct needs {
    i32 live, matches, carried;
};

struct life { /* of a register; first > last: it has none, or is a literal, which all rows share */
    u32 first, last;
};

struct reading {
    struct life *lives;
    u32 at;
};

static void read_reg(void *arg, u16 reg) {
    const struct reading *r = arg;
    r->lives[reg].last = MAX_OF(r->lives[reg].last, r->at);
}

static struct life *find_lives(struct arena *arena, const struct pipeline *pipe) {
    struct life *lives = NEW_ARRAY(arena, struct life, pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        lives[r].first = 0xffffffffu;
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        struct reading reading = {lives, i};
        op_reads(op, pipe->sinks, read_reg, &reading);
        if (op->dst != NO_REG && !pipe->regs[op->dst].is_const) {
            lives[op->dst].first = MIN_OF(lives[op->dst].first, i);
        }
    }
    return lives;
}

/* Bytes that go from one thread to others where opcode `at` finds several rows: registers, and which match is whose. */
static i32 carried_at(const struct pipeline *pipe, const struct life *lives, u32 at) {
    i32 bytes = 3 * (i32)sizeof(u32);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        bytes += lives[r].first < at && lives[r].last > at ? kind_bytes[pipe->regs[r].kind] : 0;
    }
    return bytes;
}

/* What is behind MATCH and MEET is repeated, so whatever is alive there stays so. */
static void lengthen_lives(const struct pipeline *pipe, struct life *lives, u32 at) {
    for (u32 r = 0; r < pipe->reg_count; r++) {
        if (lives[r].first <= at && (lives[r].last > at || r == pipe->ops[at].dst)) {
            lives[r].last = pipe->op_count;
        }
    }
}

static struct needs *find_needs(struct arena *arena, const struct pipeline *pipe) {
    struct needs *needs = NEW_ARRAY(arena, struct needs, pipe->op_count + 1);
    i32 *more = NEW_ARRAY(arena, i32, pipe->op_count + 2); /* lives that begin less those that have ended */
    struct life *lives = find_lives(arena, pipe);
    i32 matches = 0, carried = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (pipe->ops[i].code == OP_MATCH || pipe->ops[i].code == OP_MEET) {
            matches++;
            carried += pipe->ops[i].code == OP_MATCH ? carried_at(pipe, lives, i) : 0;
            lengthen_lives(pipe, lives, i);
        }
        needs[i] = (struct needs){0, matches, carried};
    }
    for (u32 r = 0; r < pipe->reg_count; r++) {
        if (lives[r].first < lives[r].last) {
            more[lives[r].first]++;
            more[lives[r].last + 1]--;
        }
    }
    i32 live = 0, most = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        live += more[i];
        most = MAX_OF(most, live);
        needs[i].live = most;
    }
    return needs;
}

/* --- where it is cut --- */

static bool fits(const struct lower_limits *limits, struct needs n) {
    return (limits->max_live == 0 || n.live <= limits->max_live) &&
           (limits->max_matches == 0 || n.matches <= limits->max_matches) &&
           (limits->max_carried == 0 || n.carried <= limits->max_carried);
}

/* What a pipeline that ends with a boundary's operator needs: it writes all columns that are read afterwards. */
static struct needs needs_upto(const struct lower *l, const struct pipeline *pipe, const struct needs *needs,
                               const struct boundary *boundary) {
    u32 at = pipe->marks[boundary->mark].op;
    const struct rel *rel = boundary->rel;
    struct needs n = at > 0 ? needs[at - 1] : (struct needs){0, 0, 0};
    i32 width = 0;
    for (i64 i = 0; i < rel->out.count; i++) {
        width += 1 + l->plan->cols.items[rel->out.items[i]].nullable;
    }
    n.live = MAX_OF(n.live, width);
    return n;
}

/* Operators that only read what is in memory: behind them there is nothing to keep. Groups have columns computed. */
static bool only_reads(const struct rel *rel) {
    bool waits = rel->input_count == 0 || rel_waits(rel, 0) == WAITS_KERNEL;
    return waits && rel->kind != REL_AGG;
}

/* The last operator up to which there is room, else the one up to which the fewest registers are needed. */
static const struct boundary *choose_cut(const struct lower *l, const struct builder *b,
                                         const struct pipeline *pipe, const struct needs *needs) {
    const struct boundary *best = NULL;
    i32 least = needs[pipe->op_count - 1].live;
    bool found = false;
    for (i64 i = 0; i + 1 < b->boundaries.count; i++) { /* the last one ends the pipeline anyway */
        const struct boundary *at = &b->boundaries.items[i];
        if (only_reads(at->rel) || weave_cuts_after(l, at->rel)) {
            continue;
        }
        struct needs n = needs_upto(l, pipe, needs, at);
        if (fits(l->limits, n)) {
            best = at;
            found = true;
        } else if (!found && n.live < least) {
            best = at;
            least = n.live;
        }
    }
    return best;
}

static const char *reason(const struct lower *l, const struct boundary *cut, const struct pipeline *pipe,
                          const struct needs *needs) {
    const struct boundary *next = cut + 1;
    const struct lower_limits *limits = l->limits;
    struct needs n = needs_upto(l, pipe, needs, next);
    if (fits(limits, n)) { /* it is the columns it writes that are too many for what was before */
        n = needs[pipe->op_count - 1];
    }
    static const char *const classes[] = {"source", "element", "block", "kernel"};
    const char *name = arena_printf(l->arena, "%s (%s)", rel_names[next->rel->kind],
                                    classes[rel_waits(next->rel, 0)]);
    if (limits->max_matches && n.matches > limits->max_matches) {
        return arena_printf(l->arena, "%s would be match %d of at most %d", name, n.matches,
                            limits->max_matches);
    }
    if (limits->max_carried && n.carried > limits->max_carried) {
        return arena_printf(l->arena, "with %s a row would need %d bytes of shared memory of at most %d", name,
                            n.carried, limits->max_carried);
    }
    return arena_printf(l->arena, "with %s %d registers would be alive of at most %d", name, n.live,
                        limits->max_live);
}

bool weave_fits(const struct lower *l, const struct pipeline *pipe) {
    const struct needs *needs = find_needs(l->arena, pipe);
    return pipe->op_count == 0 || fits(l->limits, needs[pipe->op_count - 1]);
}

void weave_check(struct lower *l, const struct builder *b, const struct pipeline *pipe) {
    const struct needs *needs = find_needs(l->arena, pipe);
    if (pipe->op_count == 0 || fits(l->limits, needs[pipe->op_count - 1])) {
        return;
    }
    if (b->together) {
        VEC_PUSH(l->arena, &l->apart, b->together);
        l->again = 1;
        return;
    }
    const struct boundary *at = choose_cut(l, b, pipe, needs);
    if (at && !find_cut(l->wishes.items, l->wishes.count, at->rel)) {
        struct cut cut = {at->rel, reason(l, at, pipe, needs)};
        VEC_PUSH(l->arena, &l->wishes, cut);
    }
}

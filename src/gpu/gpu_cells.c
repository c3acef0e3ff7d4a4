/* gpu_cells.c: which keys an aggregation can meet, and how few groups are kept in cells of a
 * thread's own.
 *
 * Where there are few groups every thread of a woven kernel has a copy of the table in shared
 * memory, so that nothing is atomic and no two threads meet in a bank: cell c of slot s is at
 * (s * cells + c) * threads + thread. What counts is how many bytes a slot takes. Ranges of the
 * program's registers say how large a sum can get within so many rows; sums that are small enough
 * share a cell, side by side, and are taken apart when the block adds its cells to the state: at its
 * end, and whenever those rows are reached. So no field ever overflows into its neighbour. A
 * negative sum borrows from the field above it; whoever takes the fields apart, from the lowest up,
 * gives that back. */
#include "gpu/gpu_int.h"

#include "codes/loop.h"

/* --- keys --- */

enum { RANGE_DEPTH = 16 };

static struct range range_between(i128 lo, i128 hi) {
    return (struct range){.lo = lo, .hi = hi};
}

static struct range range_both(struct range a, struct range b) {
    return range_between(MAX_OF(a.lo, b.lo), MIN_OF(a.hi, b.hi));
}

/* The one opcode that sets a register; NULL when there are several. */
static const struct op *only_op(const struct pipeline *pipe, u16 reg) {
    const struct op *found = NULL;
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (pipe->ops[i].dst == reg) {
            if (found) {
                return NULL;
            }
            found = &pipe->ops[i];
        }
    }
    return found;
}

static struct range reg_bounds(const struct exec *x, const struct pipeline *pipe, u16 reg,
                               i32 depth);

/* From an opcode's operands; false: nothing beyond what the program says. Only opcodes that keys
 * are packed with, on values that do not overflow. */
static bool op_bounds(const struct exec *x, const struct pipeline *pipe, const struct op *op,
                      i32 depth, struct range *out) {
    struct range a;
    struct range b;
    switch (op->code) {
    case OP_LOAD:
    case OP_LOADV: {
        u32 dict = pipe->regs[op->dst].dict;
        if (!dict || !x->dicts[dict - 1]) {
            return false;
        }
        *out = range_between(0, MAX_OF(x->dict_lens[dict - 1], 1) - 1);
        return true;
    }
    case OP_INTERN:
    case OP_INTERN2: { /* numbers that the table has room for: it was opened before */
        const struct gpu_var *table = x->vars[op->imm].copy;
        if (!table || !table->intern.entry_limit || !gpu_op_adds(op)) {
            return false;
        }
        *out = range_between(0, (i128)table->intern.entry_limit - 1);
        return true;
    }
    case OP_I64_I32:
    case OP_I32_I64:
        *out = reg_bounds(x, pipe, op->a, depth);
        return true;
    case OP_ADD_I32:
    case OP_ADD_I64:
        a = reg_bounds(x, pipe, op->a, depth);
        b = reg_bounds(x, pipe, op->b, depth);
        *out = range_between(a.lo + b.lo, a.hi + b.hi);
        return true;
    case OP_MUL_I32:
        a = reg_bounds(x, pipe, op->a, depth);
        b = reg_bounds(x, pipe, op->b, depth);
        *out = range_between(a.lo * b.lo, a.hi * b.hi);
        return a.lo >= 0 && b.lo >= 0;
    case OP_SEL_I32:
    case OP_SEL_I64:
        a = reg_bounds(x, pipe, op->b, depth);
        b = reg_bounds(x, pipe, op->c, depth);
        *out = range_between(MIN_OF(a.lo, b.lo), MAX_OF(a.hi, b.hi));
        return true;
    default:
        return false;
    }
}

/* What a register can hold at this execution: dictionaries are shorter than programs allow for. */
static struct range reg_bounds(const struct exec *x, const struct pipeline *pipe, u16 reg,
                               i32 depth) {
    struct range known = pipe->regs[reg].range;
    const struct op *op = depth > 0 ? only_op(pipe, reg) : NULL;
    struct range found;
    if (op && known.lo <= known.hi && op_bounds(x, pipe, op, depth - 1, &found)) {
        return range_both(known, found);
    }
    return known;
}

struct range gpu_key_range(const struct exec *x, const struct gpu_plan *plan,
                           const struct sink *sink) {
    struct range all = sink->key_bits < 64 ? range_between(0, ((i128)1 << sink->key_bits) - 1)
                                           : range_between(I64_MIN, I64_MAX);
    struct range key = range_both(all, reg_bounds(x, plan->pipe, sink->key, RANGE_DEPTH));
    return key.lo <= key.hi ? key : all;
}

/* --- words --- */

static struct range word_range(const struct gpu_plan *plan, const struct sink *sink, u32 word) {
    return plan->pipe->regs[sink->word_regs[word]].range;
}

i32 gpu_touch_word(const struct gpu_plan *plan, const struct sink *sink) {
    for (u32 w = 0; w < sink->word_count; w++) {
        struct range r = word_range(plan, sink, w);
        bool sums = sink->words[w] == WORD_ADD && !plan->is_limb[sink->word_regs[w]];
        if (sums && r.lo >= 1 && r.lo <= r.hi && r.hi < 1 << 20) { /* no sum of those is 0 */
            return (i32)w;
        }
    }
    return -1;
}

/* Bits that a sum of so many values takes; 64 where it may wrap. */
static u8 sum_bits(struct range r, i64 rows, b8 *out_signed) {
    *out_signed = r.lo < 0;
    if (r.lo > r.hi || r.lo < I64_MIN || r.hi > I64_MAX) {
        return 64;
    }
    u128 most = (u128)MAX_OF(r.hi, -r.lo) * (u128)rows;
    u8 bits = 1;
    while (bits < 64 && most >> bits != 0) {
        bits++;
    }
    return (u8)MIN_OF(bits + *out_signed, 64);
}

bool gpu_words_narrow(const struct gpu_plan *plan, const struct sink *sink, i64 rows) {
    bool narrow = true;
    for (u32 w = 0; w < sink->word_count; w++) {
        b8 is_signed;
        bool sums = sink->words[w] == WORD_ADD && !plan->is_limb[sink->word_regs[w]];
        narrow = narrow && sums && sum_bits(word_range(plan, sink, w), rows, &is_signed) <= 32 &&
                 !is_signed;
    }
    return narrow;
}

/* Puts a field into the first cell with room, or a new one. */
static bool place_field(struct agg_cells *cells, u32 field, u8 *used) {
    struct agg_field *f = &cells->fields[field];
    u32 c = 0;
    while (c < cells->count && used[c] + f->bits > 64) {
        c++;
    }
    if (c == AGG_CELLS) {
        return false;
    }
    cells->count = MAX_OF(cells->count, c + 1);
    f->cell = (u8)c;
    f->shift = used[c];
    used[c] = (u8)(used[c] + f->bits);
    return true;
}

bool gpu_agg_cells(const struct gpu_plan *plan, const struct sink *sink, bool head, i64 rows,
                   struct agg_cells *out) {
    u8 used[AGG_CELLS] = {0};
    memset(out, 0, sizeof *out); /* compared by its bytes */
    out->field_count = sink->word_count + head;
    out->rows = rows;
    if (plan->limbs.count || out->field_count > AGG_FIELDS) {
        return false;
    }
    for (u32 w = 0; w < out->field_count; w++) {
        struct agg_field *f = &out->fields[w];
        f->op = w < sink->word_count ? sink->words[w] : (u8)WORD_ADD;
        struct range range = w < sink->word_count ? word_range(plan, sink, w) : range_between(1, 1);
        f->bits = f->op == WORD_ADD ? sum_bits(range, rows, &f->is_signed) : 64;
        f->short_value = range.lo >= 0 && range.lo <= range.hi && range.hi < (i128)1 << 32;
    }
    for (u8 bits = 64; bits > 0; bits--) { /* the widest first */
        for (u32 w = 0; w < out->field_count; w++) {
            if (out->fields[w].bits == bits && !place_field(out, w, used)) {
                return false;
            }
        }
    }
    for (u32 c = 0; c < out->count; c++) {
        out->cells[c].narrow = used[c] <= 32;
        out->cells[c].place = used[c] <= 32 ? out->narrow_count++ : out->wide_count++;
    }
    return true;
}

i64 gpu_agg_cell_bytes(const struct agg_cells *cells) {
    return (8LL * cells->wide_count + 4LL * cells->narrow_count) * WOVEN_BLOCK;
}

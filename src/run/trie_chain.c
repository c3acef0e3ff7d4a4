/* trie_chain.c: steps that make a trie, or the edges of a graph, of one table: which they are, and what they do.
 *
 * A chain ends with the index over rows that were just sorted, or before STEP_CLIQUES. It is followed back as far
 * as variables are read that it makes itself; every step on the way belongs to it, and nobody else may read or
 * change what it makes, but for pipelines that read the rows and the index. Its key is all that decides what the
 * rows are, with literals by their values, so that two statements that want the same rows have the same key. */
#include "run/tries.h"

#include "codes/control.h"
#include "run/run_int.h"

enum { CHAIN_STEPS = 6, CHAIN_VARS = 12 };

struct chain {
    struct exec *x;
    const struct block *block;
    u32 first, end;       /* steps of the block */
    u32 vars[CHAIN_VARS]; /* that it makes, by their numbers in the key */
    u32 var_count;
    u32 open[CHAIN_VARS]; /* that it reads, and nobody has made yet */
    u32 open_count;
    u32 table;
    b8 ok;
    struct text key;
};

/* --- which steps --- */

static bool has(const u32 *list, u32 count, u32 var) {
    for (u32 i = 0; i < count; i++) {
        if (list[i] == var) {
            return true;
        }
    }
    return false;
}

static void add(struct chain *c, u32 *list, u32 *count, u32 var) {
    if (has(list, *count, var)) {
        return;
    }
    c->ok = c->ok && *count < CHAIN_VARS;
    if (c->ok) {
        list[(*count)++] = var;
    }
}

static void need(void *arg, u32 var) {
    struct chain *c = arg;
    add(c, c->open, &c->open_count, var);
}

struct finding {
    const struct chain *c;
    bool found;
};

static void is_open(void *arg, u32 var) {
    struct finding *f = arg;
    f->found = f->found || has(f->c->open, f->c->open_count, var);
}

/* A pipeline makes a variable anew; whoever sorts only changes it. */
static void is_made(void *arg, u32 var) {
    struct chain *c = arg;
    add(c, c->vars, &c->var_count, var);
    for (u32 i = 0; i < c->open_count; i++) {
        if (c->open[i] == var) {
            c->open[i] = c->open[--c->open_count];
        }
    }
}

static bool is_plain_op(const struct chain *c, const struct op *op) {
    const struct program *program = c->x->program;
    if (op_variable(op) != NO_VAR) {
        return false;
    }
    if (op_infos[op->code].roles[OPERAND_IMM] != ROLE_literal) {
        return true;
    }
    bool moment = op->imm + 1 == program->seed_lit;
    for (i32 t = 0; t < TIME_COUNT; t++) {
        moment = moment || op->imm + 1 == program->time_lits[t];
    }
    return !moment && program->lit_kinds[op->imm] != KIND_STR;
}

static bool is_plain_sink(const struct sink *sink) {
    bool kind = sink->kind == SINK_ROWS || sink->kind == SINK_AGG;
    return kind && !sink->append && sink->keep_count == 0 && sink->top_key_count == 0 &&
           sink->limit < 0;
}

static bool is_plain_pipeline(struct chain *c, const struct pipeline *pipe) {
    bool table = pipe->source.kind == SOURCE_TABLE;
    bool ok = (table && !exec_provider(c->x, pipe) &&
               (c->table == NO_VAR || c->table == pipe->source.ref)) ||
              pipe->source.kind == SOURCE_VAR;
    for (u32 i = 0; ok && i < pipe->op_count; i++) {
        ok = is_plain_op(c, &pipe->ops[i]);
    }
    for (u32 i = 0; ok && i < pipe->sink_count; i++) {
        ok = is_plain_sink(&pipe->sinks[i]);
    }
    c->table = ok && table ? pipe->source.ref : c->table;
    return ok;
}

static bool is_plain(struct chain *c, const struct step *step) {
    switch (step->defer ? STEP_RESULT : step->kind) {
    case STEP_PIPELINE:
        return is_plain_pipeline(c, step->pipeline);
    case STEP_SORT:
        return step->limit < 0 && step->limit_lit == NO_LIT;
    case STEP_BUILD:
        return !step->grow && !c->x->program->vars[step->dst].set;
    default:
        return false;
    }
}

/* From the step before `first` back to where everything is made that it reads. */
static bool follow_back(struct chain *c) {
    while (c->ok && c->open_count > 0 && c->first > 0 && c->end - c->first < CHAIN_STEPS) {
        const struct step *step = &c->block->steps[c->first - 1];
        struct finding f = {c, false};
        step_outputs(step, is_open, &f);
        if (!f.found || !is_plain(c, step)) {
            return false;
        }
        c->first--;
        if (step->kind == STEP_PIPELINE) {
            step_outputs(step, is_made, c);
        }
        step_inputs(c->x->program, step, need, c);
    }
    return c->ok && c->open_count == 0 && c->table != NO_VAR;
}

/* What others may do with what the chain makes: pipelines read the rows and the index. */
struct outsiders {
    const struct chain *c;
    u32 rows, index;
    const struct step *step;
    bool fine;
};

static void others_read(void *arg, u32 var) {
    struct outsiders *o = arg;
    bool kept = var == o->rows || var == o->index;
    bool reads = o->step->kind == STEP_PIPELINE && o->index != NO_VAR;
    bool counts = o->step->kind == STEP_CLIQUES && o->index == NO_VAR;
    o->fine = o->fine && (!has(o->c->vars, o->c->var_count, var) || (kept && (reads || counts)));
}

static void others_write(void *arg, u32 var) {
    struct outsiders *o = arg;
    o->fine = o->fine && !has(o->c->vars, o->c->var_count, var);
}

static bool is_closed(const struct chain *c, u32 rows, u32 index) {
    const struct program *program = c->x->program;
    struct outsiders o = {c, rows, index, NULL, true};
    for (u32 b = 0; b < program->block_count && o.fine; b++) {
        const struct block *block = &program->blocks[b];
        for (u32 s = 0; s < block->step_count && o.fine; s++) {
            if (block != c->block || s < c->first || s >= c->end) {
                o.step = &block->steps[s];
                step_inputs(program, o.step, others_read, &o);
                step_outputs(o.step, others_write, &o);
            }
        }
    }
    return o.fine;
}

/* --- what they do --- */

static void put(struct chain *c, const void *data, i64 bytes) {
    text_append(&c->key, (struct sv){data, bytes});
}

static void put_number(struct chain *c, i64 number) {
    put(c, &number, (i64)sizeof number);
}

static void put_var(struct chain *c, u32 var) {
    u32 i = 0;
    while (i < c->var_count && c->vars[i] != var) {
        i++;
    }
    put_number(c, i);
}

/* A dictionary of the table, by its column. */
static void put_dict(struct chain *c, u32 dict) {
    const struct dict_ref *ref = dict ? &c->x->program->dicts[dict - 1] : NULL;
    c->ok = c->ok && (!ref || ref->table == c->table);
    put_number(c, ref ? 1 + (i64)ref->col : 0);
}

static void put_op(struct chain *c, const struct pipeline *pipe, const struct op *op) {
    const u16 fields[5] = {op->code, op->dst, op->a, op->b, op->c};
    put(c, fields, (i64)sizeof fields);
    switch (op_infos[op->code].roles[OPERAND_IMM]) {
    case ROLE_literal:
        put_number(c, c->x->program->lit_kinds[op->imm]);
        put(c, &c->x->lits[op->imm], kind_bytes[c->x->program->lit_kinds[op->imm]]);
        break;
    case ROLE_column:
        put_number(c, pipe->source.cols[op->imm]);
        break;
    default:
        put_number(c, op->imm);
        break;
    }
}

static void put_sink(struct chain *c, const struct sink *sink) {
    const struct var *var = &c->x->program->vars[sink->var];
    put_number(c, sink->kind);
    put_var(c, sink->var);
    put_number(c, sink->set_var != 0);
    put_number(c, sink->key);
    put_number(c, sink->key_bits);
    put_number(c, sink->col_count);
    for (u32 i = 0; i < sink->col_count; i++) {
        put_number(c, sink->cols[i].reg);
        put_number(c, sink->cols[i].null_reg);
        put_dict(c, sink->cols[i].dict);
    }
    put_number(c, sink->word_count);
    for (u32 i = 0; i < sink->word_count; i++) {
        put_number(c, sink->words[i]);
        put_number(c, sink->word_regs[i]);
    }
    put(c, var->kinds, var->kinds ? var->col_count : 0);
}

static void put_pipeline(struct chain *c, const struct pipeline *pipe) {
    put_number(c, pipe->source.kind);
    if (pipe->source.kind == SOURCE_VAR) {
        put_var(c, pipe->source.ref);
    }
    put_number(c, pipe->reg_count);
    for (u32 i = 0; i < pipe->reg_count; i++) {
        put_number(c, pipe->regs[i].kind);
        put_dict(c, pipe->regs[i].dict);
    }
    put_number(c, pipe->op_count);
    for (u32 i = 0; i < pipe->op_count; i++) {
        put_op(c, pipe, &pipe->ops[i]);
    }
    put_number(c, pipe->sink_count);
    for (u32 i = 0; i < pipe->sink_count; i++) {
        put_sink(c, &pipe->sinks[i]);
    }
}

static void put_step(struct chain *c, const struct step *step) {
    put_number(c, step->kind);
    if (step->kind == STEP_PIPELINE) {
        put_pipeline(c, step->pipeline);
        return;
    }
    put_var(c, step->src);
    put_number(c, step->col);
    put_number(c, step->col_count);
    for (u32 i = 0; i < step->key_count; i++) {
        put_number(c, step->keys[i].col);
        put_number(c, 2 * step->keys[i].descending + step->keys[i].nulls_first);
    }
    put(c, &step->key_range.lo, (i64)sizeof step->key_range.lo);
    put(c, &step->key_range.hi, (i64)sizeof step->key_range.hi);
    for (u32 i = 0; i < step->field_count; i++) {
        put_number(c, step->fields[i].shift);
        put_number(c, step->fields[i].bits);
    }
}

/* --- all of it --- */

static bool holds_text(const struct var *var) {
    for (u32 i = 0; i < var->col_count; i++) {
        if (var->kinds[i] == KIND_STR) {
            return true;
        }
    }
    return false;
}

/* The chain that ends before or with step `at`. */
static bool chain_to(struct exec *x, const struct block *block, u32 at, struct chain *c,
                     struct trie_chain *out) {
    const struct step *last = &block->steps[at];
    bool graph = last->kind == STEP_CLIQUES;
    bool trie = last->kind == STEP_BUILD && at > 0 && block->steps[at - 1].kind == STEP_SORT &&
                block->steps[at - 1].src == last->src;
    *c = (struct chain){
        .x = x, .block = block, .end = graph ? at : at + 1, .table = NO_VAR, .ok = 1};
    c->first = c->end;
    if ((!graph && !trie) || holds_text(&x->program->vars[last->src])) {
        return false;
    }
    need(c, trie ? last->dst : last->src);
    if (trie) {
        if (!is_plain(c, last)) {
            return false;
        }
        is_made(c, last->dst);
        need(c, last->src);
        c->first--;
    }
    out->rows = last->src;
    out->index = trie ? last->dst : NO_VAR;
    return follow_back(c) && is_closed(c, out->rows, out->index);
}

bool trie_chain_at(struct exec *x, const struct block *block, u32 block_first, u32 step,
                   struct trie_chain *out) {
    const struct step *first = &block->steps[step];
    bool scans = first->kind == STEP_PIPELINE && first->pipeline->source.kind == SOURCE_TABLE;
    for (u32 at = step + 1; scans && at < block->step_count && at <= step + CHAIN_STEPS; at++) {
        struct chain c;
        u8 kind = block->steps[at].kind;
        if ((kind != STEP_BUILD && kind != STEP_CLIQUES) || !chain_to(x, block, at, &c, out) ||
            c.first != step) {
            continue;
        }
        text_init(&c.key, x->arena);
        for (u32 s = c.first; s < c.end; s++) {
            put_step(&c, &block->steps[s]);
        }
        put_number(&c, block->steps[at].kind);
        put(&c, &block->steps[at].key_range.hi, (i64)sizeof block->steps[at].key_range.hi);
        out->first = block_first + c.first;
        out->end = block_first + c.end;
        out->table = c.table;
        out->key = (struct sv){c.key.ptr, c.key.len};
        return c.ok;
    }
    return false;
}

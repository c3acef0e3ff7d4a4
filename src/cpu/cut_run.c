/* cut_run.c: runs a pipeline, in pieces where memory has no room for an index or an interner.
 *
 * An index that memory does not hold says so before the pipeline begins (index_classes.c). An interner is
 * filled as long as memory has room; then the pipeline starts anew, cut where the interner refused:
 * rows go to 64 partitions by the hash of what is numbered, and each partition is numbered by itself, in
 * an interner of its own whose numbers follow those of the partitions before. It ends in temporary
 * space, without a hash table: numbers lead to texts as ever, and who looks for a text has the
 * partition's table made again. A partition of more rows than memory may have entries for is divided
 * again, twice at most. Groups whose rows all lie in one partition are complete when it ends, and come
 * in the order of their numbers. */
#include "cpu/cut.h"

#include "codes/control.h"

enum {
#ifdef WF_HARD
    LEAF_LEAST = 64,
#else
    LEAF_LEAST = 4096, /* rows that are not divided again */
#endif
    ENTRY_BYTES = 80 /* of a text or pair, with its slots while they grow */
};

struct staging {
    struct device *dev;
    struct exec *x;
    u32 step_no;
    const struct step *step;
    struct stage *stages;
    u32 count;
    b8 *wanted;       /* by variable: interners that were refused */
    u32 refused;      /* variable + 1: one more */
    i64 leaves_again; /* partitions that were divided again */
};

/* leaves */

static FALLIBLE leaf_open(struct exec *x, struct variable *v, bool adds, i64 first, i64 end) {
    struct open_leaf *leaf = NEW(exec_arena(x), struct open_leaf);
    leaf->first = first;
    if (v->dict) {
        leaf->dict = adds ? dict_open(x->mem) : dict_recall(v->dict, (i32)first, (i32)end);
    } else {
        leaf->pairs = adds ? pair_map_open(x->mem) : pair_map_recall(v->pairs, first, end);
    }
    v->leaf = leaf;
    return leaf->dict || leaf->pairs ? ERR_OK : memory_refused(x->mem, x->err, 65536);
}

static void leaf_close(struct variable *v) {
    if (v->leaf) {
        dict_release(v->leaf->dict);
        pair_map_close(v->leaf->pairs);
        v->leaf = NULL;
        mem_trim(); /* many blocks of all sizes came and went */
    }
}

static FALLIBLE leaf_absorb(struct exec *x, struct variable *v) {
    bool fine = v->dict ? dict_absorb(v->dict, v->leaf->dict)
                        : pair_map_absorb(v->pairs, v->leaf->pairs);
    return fine ? ERR_OK : memory_refused(x->mem, x->err, 65536);
}

static i64 interner_len(const struct variable *v) {
    return v->dict ? dict_len(v->dict) : pair_map_len(v->pairs);
}

/* The numbers of a partition, by the bits of the hash that its rows share. Those of one that was divided
 * follow each other, too; true: they are too many for memory. */
static bool leaf_find(const struct exec *x, const struct leaves *leaves, u64 prefix, i32 level,
                      struct leaf *out) {
    bool deeper = false, any = false;
    *out = (struct leaf){prefix, level, 0, 0};
    for (i64 i = 0; i < leaves->items.count; i++) {
        const struct leaf *leaf = &leaves->items.items[i];
        if (leaf->level < level || leaf->prefix >> CUT_BITS * (leaf->level - level) != prefix) {
            continue;
        }
        deeper = deeper || leaf->level > level;
        out->first = any ? MIN_OF(out->first, leaf->first) : leaf->first;
        out->end = MAX_OF(out->end, leaf->end);
        any = true;
    }
    return deeper && (out->end - out->first) * ENTRY_BYTES > memory_left(x->mem);
}

/* one partition */

struct part_run {
    struct staging *st;
    struct pipe_run *run;
    const struct cut *cut;
};

static FALLIBLE run_rows(const struct part_run *r, struct row_parts *parts, i64 p) {
    struct pipe_run *run = r->run;
    run->from = parts;
    run->rows = &parts->parts[p];
    TRY(pipe_part(run));
    row_part_release(parts, p);
    return r->cut->groups && !run->into ? pipe_turn(run) : ERR_OK;
}

static FALLIBLE run_part(const struct part_run *r, struct row_parts *parts, i64 p, u64 prefix);

static FALLIBLE run_split(const struct part_run *r, struct row_parts *parts, i64 p, u64 prefix) {
    struct row_parts *children;
    TRY(row_part_split(parts, p, &children));
    r->st->leaves_again++;
    wf_status status = ERR_OK;
    for (i64 c = 0; c < children->count && !status; c++) {
        status = run_part(r, children, c, prefix << CUT_BITS | (u64)c);
    }
    row_parts_release(children);
    return status;
}

static FALLIBLE run_adding(const struct part_run *r, struct row_parts *parts, i64 p, u64 prefix) {
    struct exec *x = r->run->x;
    struct variable *v = &x->vars[r->cut->var];
    i64 rows = parts->parts[p].rows;
    if (rows > LEAF_LEAST && parts->level + 1 < CUT_LEVELS &&
        rows * ENTRY_BYTES > memory_left(x->mem)) {
        return run_split(r, parts, p, prefix);
    }
    i64 first = interner_len(v);
    TRY(leaf_open(x, v, true, first, first));
    wf_status status = run_rows(r, parts, p);
    status = status ? status : leaf_absorb(x, v);
    leaf_close(v);
    struct leaf leaf = {prefix, parts->level, first, interner_len(v)};
    VEC_PUSH(exec_arena(x), &v->leaves->items, leaf);
    return status;
}

static FALLIBLE run_finding(const struct part_run *r, struct row_parts *parts, i64 p, u64 prefix) {
    struct exec *x = r->run->x;
    struct variable *v = &x->vars[r->cut->var];
    struct leaf leaf;
    if (leaf_find(x, v->leaves, prefix, parts->level, &leaf)) {
        return run_split(r, parts, p, prefix);
    }
    TRY(leaf_open(x, v, false, leaf.first, leaf.end));
    wf_status status = run_rows(r, parts, p);
    leaf_close(v);
    return status;
}

static FALLIBLE run_part(const struct part_run *r, struct row_parts *parts, i64 p, u64 prefix) {
    struct exec *x = r->run->x;
    if (parts->parts[p].rows == 0) {
        return ERR_OK;
    }
    TRY(exec_check(x));
    if (r->cut->by == CUT_KEY) {
        TRY(class_open(x, r->cut->var, (u32)p));
        return run_rows(r, parts, p);
    }
    return r->cut->adds ? run_adding(r, parts, p, prefix) : run_finding(r, parts, p, prefix);
}

/* stages */

/* Interners that the piece fills take memory alone, where the pipeline could be cut for them. */
static void bound_interners(const struct staging *st, const struct pipeline *pipe, bool bound) {
    struct exec *x = st->x;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        bool text = op->code == OP_INTERN && op->b == INTERN_ADD;
        if (!text && (op->code != OP_INTERN2 || op->c == 1)) {
            continue;
        }
        struct variable *v = &x->vars[op->imm];
        bool fresh = !v->leaves && !st->wanted[op->imm] && interner_len(v) == 0;
        bool small = bound && fresh && cut_possible(x, st->step->pipeline, op->imm);
        enum mem_place place = small ? MEM_HALF : MEM_ANY;
        v->bounded = small;
        if (v->dict) {
            dict_place(v->dict, place);
        } else {
            pair_map_place(v->pairs, place);
        }
    }
}

/* All partitions of the stage before; those that memory has not come to are dropped where one fails. */
static FALLIBLE run_parts(struct staging *st, struct pipe_run *run, const struct cut *cut,
                          struct row_parts *parts) {
    struct exec *x = st->x;
    struct part_run r = {st, run, cut};
    if (cut->by != CUT_KEY && cut->adds) {
        x->vars[cut->var].leaves = NEW(exec_arena(x), struct leaves);
    }
    wf_status status = pipe_begin(run);
    for (i64 p = 0; p < parts->count && !status; p++) {
        status = run_part(&r, parts, p, (u64)p);
    }
    status = status ? status : pipe_end(run);
    if (cut->by == CUT_KEY) {
        class_close(x, cut->var);
    }
    return status;
}

static FALLIBLE run_stage(struct staging *st, u32 s, struct row_parts *from,
                          struct row_parts **out) {
    struct exec *x = st->x;
    struct step step = *st->step;
    struct pipe_run run;
    bool last = s + 1 == st->count;
    const struct cut *cut = s > 0 ? &st->stages[s - 1].cut : NULL;
    step.pipeline = st->stages[s].pipe;
    TRY(pipe_open(st->dev, x, &step, &run));
    run.mark_first = st->stages[s].mark_first;
    run.later = s > 0;
    run.opened = cut ? cut->var + 1 : 0;
    if (s == 0) {
        pipe_note_skipped(&run, st->step_no);
    }
    if (!last) {
        *out = run.into = row_parts_new(x, &st->stages[s].cut, 0, run.worker_count);
    }
    pipe_classes(&run);
    run.rows_all = from ? from->rows : 0;
    bound_interners(st, step.pipeline, true);
    bool limited = last && step.pipeline->sink_count == 1 && step.pipeline->sinks[0].kind == SINK_ROWS;
    run.feeds = from != NULL;
    wf_status status;
    if (from) {
        status = run_parts(st, &run, cut, from);
        pipe_metric(&run, st->step_no, status == ERR_OK);
    } else {
        status = pipe_window(&run, st->step_no, 0, I64_MAX,
                             limited ? step.pipeline->sinks[0].limit : -1);
    }
    st->refused = atomic_load(&run.refused_var);
    bound_interners(st, step.pipeline, false);
    pipe_close(&run);
    return status;
}

/* dictionaries */

/* The one opcode of a pipeline over a dictionary that looks for texts in an interner of partitions; NULL:
 * there is none. */
static const struct op *finds_texts(const struct exec *x, const struct pipeline *pipe) {
    const struct op *found = NULL;
    u32 depth = 0;
    for (u32 i = 0; i < pipe->op_count && pipe->source.kind == SOURCE_DICT; i++) {
        const struct op *op = &pipe->ops[i];
        depth += op->code == OP_WHEN || op->code == OP_TRY;
        depth -= op->code == OP_END;
        bool finds = op->code == OP_INTERN && op->b == INTERN_FIND && x->vars[op->imm].leaves;
        if (finds && (found || depth > 0)) {
            return NULL;
        }
        found = finds ? op : found;
    }
    return found;
}

struct dict_run {
    struct pipe_run *run;
    struct variable *v;           /* where texts are looked for */
    const struct leaves *sources; /* partitions of the dictionary that is read; NULL = it has none */
};

/* Entries of the source that may begin with the prefix: those of its partitions, and those in none. */
static FALLIBLE run_entries(const struct dict_run *d, u64 prefix, i32 level) {
    struct pipe_run *run = d->run;
    i64 rest = 0;
    for (i64 i = 0; d->sources && i < d->sources->items.count; i++) {
        const struct leaf *leaf = &d->sources->items.items[i];
        i32 common = MIN_OF(leaf->level, level);
        rest = MAX_OF(rest, leaf->end);
        if (leaf->prefix >> CUT_BITS * (leaf->level - common) == prefix >> CUT_BITS * (level - common) &&
            leaf->first < leaf->end) {
            run->window_first = leaf->first;
            run->window_end = leaf->end;
            TRY(pipe_part(run));
        }
    }
    run->window_first = rest;
    run->window_end = I64_MAX;
    return pipe_part(run);
}

/* Every text begins with one of these prefixes: of partitions, or of none that there is. */
static FALLIBLE run_prefix(const struct dict_run *d, u64 prefix, i32 level) {
    struct leaf leaf;
    bool deeper = leaf_find(d->run->x, d->v->leaves, prefix, level, &leaf);
    TRY(exec_check(d->run->x));
    for (u64 c = 0; c < CUT_PARTS && deeper; c++) {
        TRY(run_prefix(d, prefix << CUT_BITS | c, level + 1));
    }
    if (deeper) {
        return ERR_OK;
    }
    TRY(leaf_open(d->run->x, d->v, false, leaf.first, leaf.end));
    d->v->leaf->bits = CUT_BITS * (level + 1);
    d->v->leaf->prefix = prefix;
    wf_status status = run_entries(d, prefix, level);
    leaf_close(d->v);
    return status;
}

static FALLIBLE run_dictionary(struct device *dev, struct exec *x, u32 step_no,
                               const struct step *step, u32 var) {
    struct pipe_run run;
    TRY(pipe_open(dev, x, step, &run));
    u32 interner = program_interner(x->program, step->pipeline->source.ref);
    struct dict_run d = {&run, &x->vars[var], interner == NO_VAR ? NULL : x->vars[interner].leaves};
    wf_status status = pipe_begin(&run);
    for (u64 prefix = 0; prefix < CUT_PARTS && !status; prefix++) {
        status = run_prefix(&d, prefix, 0);
    }
    status = status ? status : pipe_end(&run);
    pipe_metric(&run, step_no, status == ERR_OK);
    x->metrics[step_no].how = "looked for by partition";
    pipe_close(&run);
    return status;
}

static void note_stages(const struct staging *st, i64 rows, i64 bytes) {
    struct exec *x = st->x;
    const char *how = x->metrics[st->step_no].how;
    const char *again = st->leaves_again ? arena_printf(exec_arena(x), ", %lld divided again",
                                                        (long long)st->leaves_again)
                                         : "";
    x->metrics[st->step_no].how = arena_printf(
        exec_arena(x), "cut in %u, %lld rows set aside by partition (%lld MB)%s%s%s", st->count,
        (long long)rows, (long long)(bytes >> 20), again, how ? "; " : "", how ? how : "");
}

static FALLIBLE run_stages(struct staging *st) {
    struct row_parts *parts = NULL;
    i64 rows = 0, bytes = 0;
    wf_status status = ERR_OK;
    for (u32 s = 0; s < st->count && !status; s++) {
        struct row_parts *next = NULL;
        status = run_stage(st, s, parts, &next);
        row_parts_release(parts);
        parts = next;
        rows += parts ? parts->rows : 0;
        bytes += parts ? parts->bytes : 0;
    }
    row_parts_release(parts);
    if (st->count > 1) {
        note_stages(st, rows, bytes);
    }
    return status;
}

/* What the pipeline put into interners that were empty before goes. */
static void empty_interners(struct staging *st, const b8 *filled) {
    struct exec *x = st->x;
    for (u32 v = 0; v < x->program->var_count; v++) {
        struct variable *var = &x->vars[v];
        if (x->program->vars[v].kind != VAR_INTERN || filled[v]) {
            continue;
        }
        dict_release(var->dict);
        pair_map_close(var->pairs);
        var->dict = NULL;
        var->pairs = NULL;
        var->leaves = NULL;
    }
    mem_trim();
}

static b8 *filled_interners(const struct exec *x) {
    b8 *filled = NEW_ARRAY(x->arena, b8, x->program->var_count + 1);
    for (u32 v = 0; v < x->program->var_count; v++) {
        const struct variable *var = &x->vars[v];
        filled[v] = var->dict || var->pairs;
    }
    return filled;
}

wf_status stages_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step) {
    const struct op *finds = finds_texts(x, step->pipeline);
    if (finds) {
        return run_dictionary(dev, x, step_no, step, finds->imm);
    }
    struct staging st = {.dev = dev, .x = x, .step_no = step_no, .step = step};
    struct step_metric *metric = &x->metrics[step_no];
    const struct step_metric before = *metric;
    i64 *marks = NEW_ARRAY(x->arena, i64, step->pipeline->mark_count + 1);
    u32 mark_count = step->pipeline->mark_count;
    for (u32 m = 0; m < mark_count; m++) {
        marks[m] = metric->marks[m];
    }
    const b8 *filled = filled_interners(x);
    st.wanted = NEW_ARRAY(x->arena, b8, x->program->var_count + 1);
    for (;;) {
        st.refused = 0;
        st.stages = cut_stages(x, step->pipeline, st.wanted, &st.count);
        wf_status status = run_stages(&st);
        if (!status || !st.refused) {
            return status;
        }
        st.wanted[st.refused - 1] = 1;
        error_reset(x->err);
        empty_interners(&st, filled);
        *metric = before;
        for (u32 m = 0; m < mark_count; m++) {
            metric->marks[m] = marks[m];
        }
    }
}

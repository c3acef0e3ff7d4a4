/* gpu_loop.c: rounds of a recursion that the host queues before it knows whether they are needed
 * (docs/decisions/0029).
 *
 * A loop fits when its steps cut parts of relations, run pipelines over them which add to relations, or to
 * rows that are kept for an index, and add those to the index (gpu_grow.c). Rows that several rules of a round
 * read are made anew by each round, and read as they are. How many rows a relation has
 * and which of them a round reads is then known to the card alone (struct kloop): between two steps a warp
 * notes what the first made and what the second reads (k_turn), and a step without rows leaves at once. The
 * host queues a number of rounds, then looks: a few words tell whether rounds found anything new, ran out of
 * room or met a fault.
 *
 * Where the card cannot go on, the loop is left as if the round had not begun, and the runtime runs
 * that round step by step, which makes room, raises errors and moves to other devices. A relation with a
 * set keeps what the round added, since the set has those rows: they are part of what the round reads
 * then, and the next one begins behind them. So no row is read twice as new, and none is missed. */
#include "gpu/gpu_job.h"

#define LOOP_LEAST_ROWS (1LL << 20) /* room of a relation, at first */
#define LOOP_LEAST_ROWS_SIMT 64
#define LOOP_GROWTH 4
#define LOOP_ROWS_MOST (1LL << 32) /* a list names the rows of a launch by 32 bits */
#define LOOK_NS 20000000           /* the host looks at least as often, rounds permitting */

/* A relation; behind those, rows that are kept for an index, and indexes: what has a number of rows that
 * steps of a round add to. */
struct loop_rel {
    u32 var, lit;
    b8 has_set;
    b8 distinct; /* a key comes once */
    b8 cut;      /* a step cuts a part of it and notes how far it got */
    b8 index;    /* of the rows of `of` */
    b8 anew;     /* rows of this round, which a pipeline makes and others read */
    u8 key_bits;
    u32 of; /* rows of an index: as many as this one has at most */
    struct gpu_var *rows;
};

struct loop_part {
    u32 var, step_no;
    u8 rel, form;
};

struct loop_pipe { /* or, with `growth`, a step that adds to an index */
    struct job job;
    struct gpu_growth *growth;
    struct job_ready ready;
    struct gpu_block *args;
    struct gpu_block *counts; /* as they were when the round began; NULL: nobody counts */
    i64 row_bytes;            /* of what it reads */
    u32 rel, part, step_no;   /* part: part_count + i is all of relation i, which is made anew */
    b8 begins;                /* it makes its relation anew */
};

struct looping {
    struct gpu *g;
    struct exec *x;
    struct rounds *r;
    struct loop_rel rels[LOOP_RELS];
    struct loop_part parts[LOOP_PARTS];
    struct loop_pipe *pipes;
    struct gpu_growth *growths; /* by pipe */
    u32 rel_count, part_count, pipe_count;
    u32 loop_count; /* of the relations, those of the recursion */
    struct gpu_block *block; /* struct kloop */
    void *turn;
    struct kloop seen; /* as of the last look */
    i64 launches;
    b8 counts; /* pipelines count rows */
    b8 went;   /* rounds were queued */
    b8 inside; /* of a round some pipelines were, others not */
    b8 settled; /* relations and literals are as the card left them */
    u32 ran;   /* the last one that was, if what it made has not been noted; pipe_count = none */
};

/* --- whether it fits --- */

static u32 rel_of(const struct looping *l, u32 var) {
    u32 i = 0;
    while (i < l->rel_count && l->rels[i].var != var) {
        i++;
    }
    return i;
}

static u32 part_of(const struct looping *l, u32 var) {
    u32 i = 0;
    while (i < l->part_count && l->parts[i].var != var) {
        i++;
    }
    return i;
}

static bool add_part(struct looping *l, const struct step *step, u32 step_no) {
    u32 at = rel_of(l, step->src);
    if (!step->shares || step->defer || at == l->rel_count || l->part_count == LOOP_PARTS ||
        l->pipe_count) {
        return false;
    }
    struct loop_rel *rel = &l->rels[at];
    bool delta = step->offset_lit == rel->lit && step->limit_lit == NO_LIT && step->limit < 0;
    bool old = step->limit_lit == rel->lit && step->offset_lit == NO_LIT && step->offset == 0;
    bool all = step->offset_lit == NO_LIT && step->limit_lit == NO_LIT && step->offset == 0 &&
               step->limit < 0;
    rel->cut = rel->cut || step->mark_lit == rel->lit + 1;
    u8 form = delta ? LOOP_DELTA : old ? LOOP_OLD : LOOP_ALL;
    l->parts[l->part_count++] = (struct loop_part){step->dst, step_no, (u8)at, form};
    return delta || old || all;
}

/* Whether nothing that the opcodes refer to changes from round to round, but for indexes that grow and
 * their rows. */
static bool reads_only_its_rows(const struct looping *l, const struct pipeline *pipe) {
    bool only = true;
    for (u32 i = 0; i < pipe->op_count; i++) {
        u32 var = op_variable(&pipe->ops[i]);
        only = only && (var == NO_VAR ||
                        (rel_of(l, var) >= l->loop_count && part_of(l, var) == l->part_count));
    }
    return only;
}

/* The relations, and rows of theirs that are kept for indexes; false: there are too many. */
static bool add_relations(struct looping *l) {
    const struct block *block = l->r->block;
    u32 count = block->loop_count;
    for (u32 i = 0; i < block->loop_count; i++) {
        count += block->loop_vars[i].fresh_count;
    }
    if (count > LOOP_RELS) {
        return false;
    }
    for (u32 i = 0; i < block->loop_count; i++) {
        const struct loop_var *v = &block->loop_vars[i];
        l->rels[l->rel_count++] = (struct loop_rel){.var = v->var, .lit = v->lit};
    }
    l->loop_count = l->rel_count;
    for (u32 i = 0; i < block->loop_count; i++) {
        const struct loop_var *v = &block->loop_vars[i];
        for (u32 k = 0; k < v->fresh_count; k++) {
            l->rels[l->rel_count++] = (struct loop_rel){.var = v->fresh[k], .of = i};
        }
    }
    return true;
}

static bool add_build(struct looping *l, const struct step *step, u32 step_no) {
    u32 of = rel_of(l, step->src);
    bool fit = step->grow && !step->defer && of >= l->loop_count && of < l->rel_count &&
               l->rel_count < LOOP_RELS && l->pipe_count < LOOP_STEPS &&
               rel_of(l, step->dst) == l->rel_count;
    if (fit) {
        struct loop_pipe *p = &l->pipes[l->pipe_count++];
        *p = (struct loop_pipe){.rel = l->rel_count, .step_no = step_no};
        p->growth = &l->growths[l->pipe_count - 1];
        p->job = (struct job){.g = l->g,
                              .x = l->x,
                              .step = step,
                              .metric = &l->x->metrics[step_no],
                              .capacity = I64_MAX};
        l->rels[l->rel_count++] = (struct loop_rel){.var = step->dst, .of = of, .index = 1};
    }
    return fit;
}

/* Rows without NULLs that a round makes for itself: a flag that another round left would stay. */
static void add_anew(struct looping *l, const struct sink *sink) {
    bool plain = !sink->append && l->rel_count < LOOP_RELS && rel_of(l, sink->var) == l->rel_count;
    for (u32 c = 0; plain && c < sink->col_count; c++) {
        plain = sink->cols[c].null_reg == NO_REG;
    }
    if (plain) {
        l->rels[l->rel_count++] = (struct loop_rel){.var = sink->var, .anew = 1};
    }
}

/* What a pipeline reads, by a number as in struct loop_pipe; false: it is something else. */
static bool find_source(const struct looping *l, u32 var, u32 *out_part, u32 *out_var) {
    u32 part = part_of(l, var);
    u32 rel = rel_of(l, var);
    bool anew = rel < l->rel_count && l->rels[rel].anew;
    *out_part = part < l->part_count ? part : l->part_count + rel;
    *out_var = part < l->part_count ? l->rels[l->parts[part].rel].var : var;
    return part < l->part_count || anew;
}

static bool add_pipe(struct looping *l, const struct step *step, u32 step_no) {
    const struct pipeline *pipe = step->pipeline;
    const struct sink *sink = &pipe->sinks[0];
    u32 part = 0, source = 0;
    bool rows = pipe->source.kind == SOURCE_VAR && pipe->sink_count == 1 &&
                sink->kind == SINK_ROWS && sink->limit < 0 && !step->defer &&
                find_source(l, pipe->source.ref, &part, &source);
    if (rows) {
        add_anew(l, sink);
    }
    u32 rel = rows ? rel_of(l, sink->var) : l->rel_count;
    bool adds = rel < l->rel_count && (sink->append || l->rels[rel].anew);
    if (!adds || l->pipe_count == LOOP_STEPS || !reads_only_its_rows(l, pipe)) {
        return false;
    }
    if (sink->set_var) {
        l->rels[rel].has_set = 1;
        l->rels[rel].distinct = sink->word_count == 0; /* else a better value comes behind a worse one */
        l->rels[rel].key_bits = sink->key_bits;
    }
    struct loop_pipe *p = &l->pipes[l->pipe_count++];
    *p = (struct loop_pipe){
        .rel = rel, .part = part, .step_no = step_no, .begins = !sink->append};
    p->job = (struct job){.g = l->g,
                          .x = l->x,
                          .step = step,
                          .pipe = pipe,
                          .metric = &l->x->metrics[step_no],
                          .arena = l->x->arena,
                          .ranged = 1,
                          .range_var = source};
    p->job.col_count = pipe->source.col_count;
    return true;
}

static bool fits(struct looping *l) {
    const struct block *block = l->r->block;
    bool fit = l->x->settings->gpu_rounds > 0 && !l->x->capture && add_relations(l);
    for (u32 s = 0; fit && s < block->step_count; s++) {
        const struct step *step = &block->steps[s];
        u32 step_no = l->r->first_step + s;
        fit = step->kind == STEP_LIMIT      ? add_part(l, step, step_no)
              : step->kind == STEP_PIPELINE ? add_pipe(l, step, step_no)
              : step->kind == STEP_BUILD    ? add_build(l, step, step_no)
                                            : false;
    }
    for (u32 i = 0; fit && i < l->loop_count; i++) {
        fit = l->rels[i].cut;
    }
    fit = fit && (!block->stop_var || rel_of(l, block->stop_var - 1) < l->loop_count);
    return fit && l->pipe_count > 0;
}

/* Whether the pipelines' plans can do without the host between two rounds. */
static FALLIBLE open_pipes(struct looping *l, bool *out_fits) {
    *out_fits = true;
    for (u32 i = 0; *out_fits && i < l->pipe_count; i++) {
        struct job *j = &l->pipes[i].job;
        if (l->pipes[i].growth) {
            continue;
        }
        TRY(gpu_job_open(j));
        const struct gpu_plan *plan = &j->plan;
        *out_fits = !plan->has_text && !plan->interns.count && !plan->makes &&
                    !atomic_load(&j->kept->elsewhere);
        for (i64 k = 0; k < plan->indexes.count; k++) {
            u32 of = l->x->program->vars[plan->indexes.items[k]].rows_var;
            i64 rows = of < l->x->program->var_count ? l->x->vars[of].rows : 0;
            j->range_rows = MAX_OF(j->range_rows, rows);
        }
    }
    return ERR_OK;
}

/* --- room --- */

static bool has_nulls(const struct looping *l, u32 rel, u32 col) {
    bool nulls = false;
    for (u32 i = 0; i < l->pipe_count; i++) {
        bool adds = l->pipes[i].rel == rel && !l->pipes[i].growth;
        const struct sink *sink = adds ? l->pipes[i].job.plan.sink : NULL;
        nulls = nulls || (sink && sink->cols[col].null_reg != NO_REG);
    }
    return nulls;
}

static bool has_room(const struct looping *l, u32 rel, const struct gpu_var *rows, i64 wanted) {
    bool room = rows->capacity >= wanted;
    for (u32 c = 0; room && c < rows->col_count; c++) {
        room = rows->cols[c].nulls_addr || !has_nulls(l, rel, c);
    }
    return room;
}

/* Rows that a relation is to have room for: `least`, or more where that costs little. */
static i64 wanted_room(const struct looping *l, const struct loop_rel *rel, i64 *out_least) {
    const struct variable *v = &l->x->vars[rel->var];
    const struct var *def = &l->x->program->vars[rel->var];
    i64 width = 0;
    if (rel >= l->rels + l->loop_count && !rel->anew) {
        *out_least = l->rels[rel->of].rows->capacity;
        return *out_least;
    }
    for (u32 c = 0; c < def->col_count; c++) {
        width += kind_bytes[def->kinds[c]] + 1;
    }
    i64 most = LOOP_ROWS_MOST;
    if (rel->distinct && rel->key_bits < 32) {
        most = 1LL << rel->key_bits;
    }
    i64 first = l->g->api->is_simt ? LOOP_LEAST_ROWS_SIMT : LOOP_LEAST_ROWS;
    i64 room = MAX_OF(gpu_heap_available(l->g->card), 0) / 4 / width;
    i64 delta = rel->anew ? 0 : v->rows - l->x->lits[rel->lit].i64;
    *out_least = MIN_OF(v->rows + MAX_OF(delta, v->rows / 4) + 1, most);
    return MAX_OF(*out_least,
                  MIN_OF(most, v->rows + MIN_OF(room, MAX_OF(LOOP_GROWTH * v->rows, first))));
}

/* Columns with room, and what there is in them. */
static FALLIBLE grow_columns(struct looping *l, u32 rel, const struct gpu_var *from,
                             struct gpu_var *to) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    ASSERT(to->capacity >= from->rows);
    u32 var = l->rels[rel].var;
    const struct var *def = &l->x->program->vars[var];
    for (u32 c = 0; c < def->col_count; c++) {
        struct gpu_col *col = &to->cols[c];
        i64 width = kind_bytes[def->kinds[c]];
        TRY(gpu_alloc_here(g, to->capacity * width, &col->data, err));
        col->addr = col->data->addr;
        if (from->rows > 0) {
            CU(g->api->copy_device(col->addr, from->cols[c].addr, (size_t)(from->rows * width),
                                   g->streams[0]));
        }
        if (!from->cols[c].nulls_addr && !has_nulls(l, rel, c)) {
            continue;
        }
        TRY(gpu_alloc_here(g, to->capacity, &col->nulls, err));
        col->nulls_addr = col->nulls->addr;
        CU(g->api->set_bytes(col->nulls_addr, 0, (size_t)to->capacity, g->streams[0]));
        if (from->cols[c].nulls_addr && from->rows > 0) {
            CU(g->api->copy_device(col->nulls_addr, from->cols[c].nulls_addr, (size_t)from->rows,
                                   g->streams[0]));
        }
    }
    to->rows = from->rows;
    CU(gpu_sync(g, g->streams[0])); /* what was copied from goes */
    return ERR_OK;
}

/* Where rows stay, flags behind them are what an earlier try left. */
static FALLIBLE clear_nulls(struct looping *l, const struct gpu_var *rows) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    for (u32 c = 0; c < rows->col_count; c++) {
        if (rows->cols[c].nulls_addr && rows->capacity > rows->rows) {
            CU(g->api->set_bytes(rows->cols[c].nulls_addr + (u64)rows->rows, 0,
                                 (size_t)(rows->capacity - rows->rows), g->streams[0]));
        }
    }
    return ERR_OK;
}

/* The relation's rows on the card, and nowhere else, with room for more. */
static FALLIBLE make_room(struct looping *l, u32 at) {
    struct exec *x = l->x;
    struct loop_rel *rel = &l->rels[at];
    struct variable *v = &x->vars[rel->var];
    i64 least = 0;
    i64 moved = 0;
    i64 wanted = wanted_room(l, rel, &least);
    for (u32 c = 0; v->rows > 0 && c < x->program->vars[rel->var].col_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(l->g, x, rel->var, c, &col, &moved));
    }
    struct gpu_var *old = NULL;
    TRY(gpu_var_get(l->g, x, rel->var, &old));
    l->pipes[0].job.metric->bytes_moved += moved;
    i64 rows = v->rows;
    if (has_room(l, at, old, least)) {
        v->copy = NULL;
        variable_reset(v);
        v->copy = rel->rows = old;
        v->rows = old->rows = rows;
        return clear_nulls(l, old);
    }
    struct gpu_var *grown = NULL;
    v->copy = NULL;
    wf_status status = gpu_var_new(l->g, x, rel->var, old->col_count, &grown);
    if (!status) {
        grown->capacity = wanted;
        old->rows = rows;
        status = grow_columns(l, at, old, grown);
    }
    if (status) { /* it stays as it was */
        gpu_wait(l->g);
        variable_drop_copy(v);
        v->copy = old;
        v->copy_release = gpu_var_release;
        v->copy_space = l->g->device.space;
        return status;
    }
    gpu_var_release(old);
    v->copy = NULL;
    variable_reset(v);
    v->copy = rel->rows = grown;
    v->rows = rows;
    return ERR_OK;
}

/* --- rounds --- */

/* The report of a step that adds to an index. */
static FALLIBLE ready_growth(struct looping *l, struct loop_pipe *p) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    const struct gpu_var *index = l->x->vars[l->rels[p->rel].var].copy;
    u64 report[REPORT_WORDS] = {[REPORT_FAULT] = ~0ULL, [REPORT_COUNTS] = (u64)index->most_matches};
    TRY(gpu_alloc_here(g, sizeof report, &p->args, err));
    TRY(gpu_pinned_reserve(g, &g->reports, sizeof report, err));
    memcpy(g->reports.host, report, sizeof report);
    CU(g->api->copy_to_device(p->args->addr, g->reports.host, sizeof report, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    p->job.reports_at = 0;
    p->growth->args.report = DEV(u64 *, p->args->addr);
    p->growth->args.range =
        DEV(const struct krange *, l->block->addr + offsetof(struct kloop, now));
    return ERR_OK;
}

static FALLIBLE ready_pipes(struct looping *l) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    for (u32 i = 0; i < l->pipe_count; i++) {
        struct loop_pipe *p = &l->pipes[i];
        struct job *j = &p->job;
        if (p->growth) {
            TRY(ready_growth(l, p));
            continue;
        }
        j->out = l->rels[p->rel].rows;
        j->capacity = j->out->capacity;
        if (j->plan.sink->set_var) {
            TRY(gpu_job_set_begin(j));
            TRY(gpu_job_set_room(j));
        }
        u64 now = l->block->addr + offsetof(struct kloop, now);
        TRY(gpu_job_ready(j, now, &p->args, &p->ready));
        i64 rows = MAX_OF(l->x->vars[j->range_var].rows, 1);
        p->row_bytes = j->source_bytes / rows;
        if (j->plan.count_places) {
            TRY(gpu_alloc_here(g, LOOP_COUNTS * 8, &p->counts, err));
            l->counts = 1;
            CU(g->api->set_bytes(p->counts->addr, 0, LOOP_COUNTS * 8, g->streams[0]));
        }
        CU(gpu_sync(g, g->streams[0])); /* the next one's arguments take their place */
    }
    return ERR_OK;
}

static u64 report_of(const struct loop_pipe *p) {
    return p->args->addr + (u64)p->job.reports_at;
}

static u64 counts_of(const struct loop_pipe *p) {
    return p->args->addr + (u64)p->job.counts_at;
}

/* What the card begins with. */
static FALLIBLE send_state(struct looping *l) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    memset(&l->seen, 0, sizeof l->seen);
    for (u32 i = 0; i < l->rel_count; i++) {
        struct kloop_rel *rel = &l->seen.rels[i];
        rel->rows = rel->rows_before = (u64)l->x->vars[l->rels[i].var].rows;
        if (i < l->loop_count) {
            rel->taken = rel->taken_before = (u64)l->x->lits[l->rels[i].lit].i64;
        }
    }
    for (u32 i = 0; i < l->pipe_count; i++) {
        const struct loop_pipe *p = &l->pipes[i];
        if (!p->counts) {
            continue;
        }
        l->seen.steps[i].counts = DEV(const u64 *, counts_of(p));
        l->seen.steps[i].counts_before = DEV(u64 *, p->counts->addr);
    }
    TRY(gpu_pinned_reserve(g, &g->reports, (i64)sizeof l->seen, err));
    memcpy(g->reports.host, &l->seen, sizeof l->seen);
    CU(g->api->copy_to_device(l->block->addr, g->reports.host, sizeof l->seen, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    return ERR_OK;
}

/* The relation, + 1, all of which a pipeline reads since the round made it; 0 = it reads a part of one. */
static u32 all_of(const struct looping *l, const struct loop_pipe *p) {
    bool whole = !p->growth && p->part >= l->part_count;
    return whole ? p->part - l->part_count + 1 : 0;
}

/* Between pipelines `took` and `next`; one past the last: none. */
static FALLIBLE queue_turn(struct looping *l, u32 took, u32 next) {
    const struct loop_pipe *before = took < l->pipe_count ? &l->pipes[took] : NULL;
    const struct loop_pipe *behind = next < l->pipe_count ? &l->pipes[next] : NULL;
    const struct block *block = l->r->block;
    struct kturn turn = {.loop = DEV(struct kloop *, l->block->addr),
                         .begins = next == 0,
                         .stop_rel = l->r->stop_rows < 0 ? 0 : rel_of(l, block->stop_var - 1) + 1,
                         .stop_rows = l->r->stop_rows,
                         .rel_count = l->rel_count,
                         .loop_count = l->loop_count,
                         .part_count = l->part_count,
                         .step_count = l->counts ? l->pipe_count : 0};
    for (u32 i = 0; i < l->part_count; i++) {
        turn.part_rels[i] = l->parts[i].rel;
        turn.part_forms[i] = l->parts[i].form;
    }
    if (before) {
        turn.took = DEV(const u64 *, report_of(before));
        turn.took_rel = before->rel;
        turn.took_step = took;
        turn.capacity = before->job.capacity;
    }
    if (behind) {
        turn.next = DEV(u64 *, report_of(behind));
        turn.next_rel = behind->rel;
        turn.next_step = next;
        turn.next_part = MIN_OF(behind->part, l->part_count);
        turn.next_source = behind->growth ? l->rels[behind->rel].of + 1 : all_of(l, behind);
        turn.next_all = all_of(l, behind) != 0;
        turn.next_begins = behind->begins;
    }
    l->launches++;
    struct gpu_grid grid = {1, turn.step_count ? 256 : 32, 0};
    return gpu_launch(l->g, l->turn, grid, l->g->streams[0], &turn, l->x->err);
}

static FALLIBLE queue_pipe(struct looping *l, struct loop_pipe *p) {
    const struct job_ready *ready = &p->ready;
    const struct gpu_growth *growth = p->growth;
    void *stream = l->g->streams[0];
    for (i32 k = 0; growth && k < GROW_KERNELS; k++) {
        TRY(gpu_launch(l->g, growth->kernels[k], growth->grid, stream, &growth->args, l->x->err));
        p->job.metric->launches++;
    }
    if (!growth) {
        TRY(gpu_launch(l->g, ready->function, ready->grid, stream, &ready->args, l->x->err));
        p->job.metric->launches++;
    }
    return ERR_OK;
}

static FALLIBLE queue_rounds(struct looping *l, i64 count) {
    u32 none = l->pipe_count;
    for (i64 k = 0; k < count; k++) {
        for (u32 i = 0; i < l->pipe_count; i++) {
            u32 before = i ? i - 1 : k ? l->pipe_count - 1 : none;
            TRY(queue_turn(l, before, i));
            l->ran = none;
            l->inside = 1;
            TRY(queue_pipe(l, &l->pipes[i]));
            l->ran = i;
            l->inside = i + 1 < l->pipe_count;
        }
    }
    TRY(queue_turn(l, l->pipe_count - 1, none));
    l->ran = none;
    return ERR_OK;
}

/* Queues rounds and waits for what they tell. */
static FALLIBLE look(struct looping *l, i64 count, i64 *out_ns) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    void *first = NULL;
    void *last = NULL;
    float ms = 0;
    TRY(gpu_event(g, 0, &first, err));
    TRY(gpu_event(g, 1, &last, err));
    CU(g->api->event_record(first, g->streams[0]));
    l->went = 1;
    l->ran = l->pipe_count;
    TRY(queue_rounds(l, count));
    CU(g->api->copy_to_host(g->reports.host, l->block->addr, sizeof l->seen, g->streams[0]));
    CU(g->api->event_record(last, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    memcpy(&l->seen, g->reports.host, sizeof l->seen);
    CU(g->api->event_elapsed(&ms, first, last));
    *out_ns = (i64)((f64)ms * 1e6);
    return ERR_OK;
}

/* Whether the card may begin another round: something is new, and a launch may take all of it. */
static bool goes_on(const struct looping *l) {
    bool fresh = false;
    bool taken = true;
    for (u32 i = 0; i < l->loop_count; i++) {
        fresh = fresh || l->seen.rels[i].rows > l->seen.rels[i].taken;
    }
    for (u32 i = 0; i < l->pipe_count; i++) {
        const struct loop_pipe *p = &l->pipes[i];
        if (p->growth) {
            continue;
        }
        u32 all = all_of(l, p);
        const struct loop_part *part = all ? NULL : &l->parts[p->part];
        const struct kloop_rel *rel = &l->seen.rels[all ? all - 1 : part->rel];
        u64 before = part && part->form == LOOP_DELTA ? rel->taken : 0;
        u64 end = part && part->form == LOOP_OLD ? rel->taken : rel->rows;
        taken = taken && gpu_job_takes(&p->job, (i64)(end - before));
    }
    return fresh && taken && !l->seen.stopped && !l->seen.over;
}

/* What indexes have become decides how many rows a launch may take, and the work of a pipeline whether it
 * is worth a kernel of its own. */
static void note_indexes(struct looping *l) {
    i64 rows = 0;
    bool grows = false;
    for (u32 i = 0; i < l->pipe_count; i++) {
        const struct loop_rel *rel = &l->rels[l->pipes[i].rel];
        rows = MAX_OF(rows, (i64)l->seen.rels[l->pipes[i].rel].rows);
        if (l->pipes[i].growth) {
            struct gpu_var *gv = l->x->vars[rel->var].copy;
            gv->most_matches = MAX_OF((i64)l->seen.steps[i].longest, gv->most_matches);
            grows = true;
        }
    }
    for (u32 i = 0; grows && i < l->pipe_count; i++) {
        if (!l->pipes[i].growth) {
            l->pipes[i].job.range_rows = MAX_OF(l->pipes[i].job.range_rows, rows);
            gpu_job_count_matches(&l->pipes[i].job);
        }
    }
}

static FALLIBLE go_round(struct looping *l) {
    i64 count = 1;
    i64 total_ns = 0;
    while (goes_on(l)) {
        i64 ns = 0;
        TRY(exec_check(l->x));
        TRY(look(l, count, &ns));
        total_ns += ns;
        bool slow = ns > LOOK_NS && !l->g->api->is_simt; /* its times say nothing */
        count = slow ? MAX_OF(count / 2, 1) : MIN_OF(2 * count, l->x->settings->gpu_rounds);
        note_indexes(l);
        for (u32 i = 0; i < l->pipe_count; i++) {
            struct job *j = &l->pipes[i].job;
            if (!l->pipes[i].growth && !j->sigs[0].function) { /* the woven kernel may have come */
                TRY(gpu_job_ready_code(j, &l->pipes[i].ready));
            }
        }
    }
    for (u32 i = 0; i < l->pipe_count; i++) {
        l->pipes[i].job.metric->device_ns += total_ns / l->pipe_count;
    }
    return ERR_OK;
}

/* --- what is left --- */

/* An index may have rows of a round that could not go on, or part of what was added to it: the step that
 * adds to it in that round, before anybody looks into it, makes it anew. */
static void settle_index(struct variable *v, i64 rows, bool back) {
    struct gpu_var *gv = v->copy;
    gv->rows = v->rows = rows;
    gv->grown_rows = back ? I64_MAX : rows;
    v->on_host = 0;
}

/* Relations and literals as after the last round, or as before the one that could not go on. */
static void settle(struct looping *l) {
    struct exec *x = l->x;
    for (u32 i = 0; i < l->rel_count; i++) {
        const struct loop_rel *rel = &l->rels[i];
        const struct kloop_rel *seen = &l->seen.rels[i];
        bool back = l->seen.stopped != 0;
        struct variable *v = &x->vars[rel->var];
        if (rel->index) {
            settle_index(v, (i64)seen->rows, back);
            continue;
        }
        v->rows = (i64)(back && !rel->has_set ? seen->rows_before : seen->rows);
        v->on_host = 0;
        rel->rows->rows = v->rows;
        if (i < l->loop_count) {
            x->lits[rel->lit].i64 = (i64)(back ? seen->taken_before : seen->taken);
        }
    }
    for (u32 i = 0; i < l->pipe_count; i++) {
        if (l->pipes[i].job.set) {
            gpu_job_set_end(&l->pipes[i].job);
        }
    }
    l->r->count = (i64)l->seen.rounds - (l->seen.stopped != 0);
    l->settled = 1;
}

/* The step that stopped may have met a fault. */
static FALLIBLE look_at_fault(struct looping *l) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    const struct loop_pipe *p = &l->pipes[l->seen.stopped - 1];
    /* To memory that is still there where the wait fails and the copy comes later. */
    CU(g->api->copy_to_host(g->reports.host, report_of(p), REPORT_WORDS * 8, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    u64 report[REPORT_WORDS];
    memcpy(report, g->reports.host, sizeof report);
    u64 fault = report[REPORT_FAULT];
    if (fault == ELSEWHERE_WORD) { /* the host runs it from now on */
        atomic_store(&p->job.kept->elsewhere, 1);
    } else if (fault != ~0ULL) {
        exec_fault(l->x, fault);
        l->r->fault = p->job.step;
    }
    return ERR_OK;
}

/* The rows that a pipeline counted; not those of a round that could not go on. */
static FALLIBLE take_counts(struct looping *l, struct loop_pipe *p) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    if (l->seen.stopped && p->counts) {
        CU(g->api->copy_device(counts_of(p), p->counts->addr, LOOP_COUNTS * 8, g->streams[0]));
    }
    struct gpu_block *args = g->args_block;
    g->args_block = p->args;
    wf_status status = gpu_job_counts(&p->job);
    g->args_block = args;
    gpu_job_marks(&p->job);
    return status;
}

/* For EXPLAIN ANALYZE. */
static FALLIBLE tell(struct looping *l) {
    struct exec *x = l->x;
    bool back = l->seen.stopped != 0;
    for (u32 i = 0; i < l->part_count; i++) {
        struct step_metric *m = &x->metrics[l->parts[i].step_no];
        const struct kloop_part *part = &l->seen.parts[i];
        m->rows_in += (i64)(back ? part->of_before : part->of);
        m->rows_out += (i64)(back ? part->cut_before : part->cut);
        m->device = "gpu";
    }
    for (u32 i = 0; i < l->pipe_count; i++) {
        struct loop_pipe *p = &l->pipes[i];
        struct step_metric *m = p->job.metric;
        const struct kloop_step *step = &l->seen.steps[i];
        i64 read = (i64)(back ? step->read_before : step->read);
        i64 made = (i64)(back && !l->rels[p->rel].has_set ? step->made_before : step->made);
        m->rows_in += read;
        m->rows_out += made;
        m->bytes_read += read * (p->growth ? 8 : p->row_bytes);
        m->bytes_written += p->growth ? 0 : made * gpu_job_row_bytes(&p->job);
        m->device = p->growth ? "gpu grown hash" : gpu_job_code(&p->job);
        m->how = arena_printf(exec_arena(x), "%lld rounds queued", (i64)l->seen.rounds);
        if (x->counts_rows && !p->growth) {
            p->job.source_rows = read;
            TRY(take_counts(l, p));
        }
    }
    l->pipes[0].job.metric->launches += l->launches;
    return ERR_OK;
}

/* Before pipelines that look into them. */
static FALLIBLE ready_indexes(struct looping *l) {
    for (u32 i = 0; i < l->pipe_count; i++) {
        const struct loop_pipe *p = &l->pipes[i];
        if (p->growth) {
            i64 capacity = l->rels[l->rels[p->rel].of].rows->capacity;
            TRY(gpu_grow_ready(l->g, l->x, p->job.step, capacity, p->growth));
        }
    }
    return ERR_OK;
}

static FALLIBLE run_loop(struct looping *l) {
    struct gpu *g = l->g;
    struct exec *x = l->x;
    bool fit = false;
    TRY(open_pipes(l, &fit));
    if (!fit) {
        l->r->cannot = 1;
        return ERR_OK;
    }
    TRY(gpu_alloc_here(g, (i64)sizeof(struct kloop), &l->block, x->err));
    TRY(gpu_kernel(g->card, KERNEL_TURN, x, &l->turn, x->err));
    for (u32 i = 0; i < l->rel_count; i++) {
        if (!l->rels[i].index) {
            TRY(make_room(l, i));
        }
    }
    TRY(ready_indexes(l));
    TRY(ready_pipes(l));
    TRY(send_state(l));
    TRY(go_round(l));
    if (!l->went) {
        return ERR_OK;
    }
    settle(l);
    if (l->seen.stopped) {
        TRY(look_at_fault(l));
    }
    return tell(l);
}

/* The driver had no memory for a launch. All that was queued has been run: what it made is noted, and
 * a round that was not queued whole could not go on. Where not even that is possible, the statement
 * ends. */
static FALLIBLE recover(struct looping *l) {
    struct gpu *g = l->g;
    struct error *err = l->x->err;
    if (l->settled) { /* it was a look at what is left */
        return l->seen.stopped ? look_at_fault(l) : ERR_OK;
    }
    if (l->ran < l->pipe_count) {
        TRY(queue_turn(l, l->ran, l->pipe_count));
    }
    CU(g->api->copy_to_host(g->reports.host, l->block->addr, sizeof l->seen, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    memcpy(&l->seen, g->reports.host, sizeof l->seen);
    bool fault = l->seen.stopped != 0;
    l->seen.stopped += l->inside && !l->seen.stopped && !l->seen.over;
    settle(l);
    if (fault) {
        TRY(look_at_fault(l));
    }
    return tell(l);
}

/* A relation that a round was adding to when something failed: the statement ends. */
static void close_loop(struct looping *l) {
    for (u32 i = 0; i < l->pipe_count; i++) {
        struct loop_pipe *p = &l->pipes[i];
        gpu_job_texts_drop(&p->job);
        gpu_heap_free(l->g->card, p->args);
        gpu_heap_free(l->g->card, p->counts);
        if (p->job.kept) {
            gpu_step_give(l->g->card, p->job.kept);
        }
    }
    gpu_heap_free(l->g->card, l->block);
}

static struct looping *looping_new(struct gpu *g, struct exec *x, struct rounds *r) {
    struct looping *l = NEW(x->arena, struct looping);
    *l = (struct looping){.g = g, .x = x, .r = r};
    l->pipes = NEW_ARRAY(x->arena, struct loop_pipe, r->block->step_count + 1);
    l->growths = NEW_ARRAY(x->arena, struct gpu_growth, r->block->step_count + 1);
    return l;
}

bool gpu_queues_loop(struct gpu *g, struct exec *x, const struct block *block, u32 first_step) {
    struct rounds r = {.block = block, .first_step = first_step};
    return fits(looping_new(g, x, &r));
}

wf_status gpu_run_loop(struct gpu *g, struct exec *x, struct rounds *r) {
    struct looping *l = looping_new(g, x, r);
    TRY(arena_check(x->arena, x->err));
    if (!fits(l)) {
        r->cannot = 1;
        return ERR_OK;
    }
    g->waits = 0;
    wf_status status = run_loop(l);
    if (status) {
        gpu_wait(g);
    }
    bool refused = status == ERR_DEVICE_MEMORY; /* a step at a time there may be another way */
    if (refused) {
        error_reset(x->err);
        r->cannot = 1;
        status = l->went ? recover(l) : ERR_OK;
    }
    if (refused && status) {
        gpu_wait(g);
    }
    l->pipes[0].job.metric->waits += g->waits;
    close_loop(l);
    return status;
}

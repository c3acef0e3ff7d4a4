/* share.c: see share.h.
 *
 * The arithmetic knows devices by their costs only. Putting together is what every sink's contract
 * allows: rows of a table's scan are in no order that anybody relies on, and are kept in that of the
 * shares; a state's words merge by their operations in any order (defs/agg.def), so the states of
 * all shares are rows for the same aggregation once more; a mark is there if any share set it. */
#include "run/share.h"

#include "codes/control.h"
#include "run/run_int.h"

/* --- how much --- */

f64 share_ns(const struct share_cost *c, f64 share) {
    if (share <= 0) {
        return 0;
    }
    f64 moved = share > c->here && c->here < 1 ? (share - c->here) / (1 - c->here) : 0;
    return c->fixed_ns + share * c->rows_ns + moved * c->move_ns;
}

/* The largest share that is done in `ns`. */
static f64 share_within(const struct share_cost *c, f64 ns) {
    f64 left = ns - c->fixed_ns;
    if (left <= 0) {
        return 0;
    }
    f64 first = c->here * c->rows_ns;
    if (left < first) {
        return left / c->rows_ns;
    }
    f64 rest = (1 - c->here) * c->rows_ns + (c->here < 1 ? c->move_ns : 0);
    return rest > 0 ? MIN_OF(c->here + (left - first) / rest * (1 - c->here), 1) : 1;
}

f64 share_out(u32 count, const struct share_cost *costs, f64 *out_shares) {
    enum { HALVINGS = 60 };
    f64 least = 0;
    f64 most = share_ns(&costs[0], 1);
    for (u32 d = 1; d < count; d++) {
        most = MIN_OF(most, share_ns(&costs[d], 1));
    }
    for (u32 i = 0; i < HALVINGS; i++) {
        f64 ns = (least + most) / 2;
        f64 sum = 0;
        for (u32 d = 0; d < count; d++) {
            sum += share_within(&costs[d], ns);
        }
        *(sum >= 1 ? &most : &least) = ns;
    }
    f64 sum = 0;
    for (u32 d = 0; d < count; d++) {
        out_shares[d] = share_within(&costs[d], most);
        sum += out_shares[d];
    }
    for (u32 d = 0; d < count; d++) {
        out_shares[d] /= sum;
    }
    ASSERT(sum >= 1 - 1e-6);
    return most;
}

i64 share_row(const struct table_version *version, i64 row) {
    i64 count = version->tablet_count;
    if (row <= 0 || count == 0 || row >= version->rows) {
        return row <= 0 || count == 0 ? 0 : version->rows;
    }
    i64 low = 0;
    i64 high = count;
    while (high - low > 1) {
        i64 middle = (low + high) / 2;
        *(version->row_starts[middle] <= row ? &low : &high) = middle;
    }
    i64 start = version->row_starts[low];
    i64 rows = version->tablet_rows[low];
    i64 zone = (row - start) >> ZONE_SHIFT;
    i64 below = zone << ZONE_SHIFT;
    i64 above = MIN_OF(below + ZONE_ROWS, rows);
    return start + (row - start - below < above - (row - start) ? below : above);
}

static bool is_live(const struct exec *x, const struct pipeline *pipe, const struct tablet *tablet,
                    i64 zone) {
    bool live = true;
    for (u32 i = 0; live && i < pipe->prune_count; i++) {
        const struct prune *p = &pipe->prunes[i];
        live = !exec_zone_excluded(x, &tablet->cols[pipe->source.cols[p->col]], p, zone);
    }
    return live;
}

/* Rows of zones that have to be looked at, until they are `enough`; *out_row: where that was. */
static i64 count_live(const struct exec *x, const struct pipeline *pipe, i64 enough, i64 *out_row) {
    const struct table_version *version = x->versions[pipe->source.ref];
    i64 live = 0;
    *out_row = version->rows;
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (i64 at = 0; at < version->tablet_rows[t]; at += ZONE_ROWS) {
            i64 rows = MIN_OF(version->tablet_rows[t] - at, ZONE_ROWS);
            rows = is_live(x, pipe, version->tablets[t], at >> ZONE_SHIFT) ? rows : 0;
            if (live + rows / 2 >= enough) {
                *out_row = version->row_starts[t] + at;
                return live;
            }
            live += rows;
        }
    }
    return live;
}

void share_ends(const struct exec *x, const struct pipeline *pipe, u32 count, const f64 *shares,
                i64 *out_ends) {
    const struct table_version *version = x->versions[pipe->source.ref];
    i64 end = 0;
    i64 live = pipe->prune_count ? count_live(x, pipe, I64_MAX, &end) : 0;
    f64 sum = 0;
    for (u32 i = 0; i < count; i++) {
        sum += shares[i];
        end = share_row(version, (i64)(sum * (f64)version->rows));
        if (live) {
            (void)count_live(x, pipe, (i64)(sum * (f64)live), &end);
        }
        out_ends[i] = i + 1 < count ? end : version->rows;
    }
}

/* --- whether --- */

static bool names_sink(const struct pipeline *pipe, u32 var) {
    bool named = false;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        named = named || pipe->sinks[s].var == var;
    }
    return named;
}

static bool op_fits(const struct pipeline *pipe, const struct op *op) {
    u32 var = op_variable(op);
    bool numbers = op_infos[op->code].roles[OPERAND_IMM] == ROLE_interner;
    return !numbers && (var == NO_VAR || !names_sink(pipe, var));
}

/* A scan that stops after a few rows is better left alone; one of which equal rows count once knows
 * them by one set. */
static bool sink_fits(const struct sink *sink) {
    return sink->kind == SINK_AGG || sink->kind == SINK_MARK ||
           (sink->kind == SINK_ROWS && sink->limit < 0 && !sink->set_var);
}

bool share_possible(const struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
    bool fits = pipe && pipe->source.kind == SOURCE_TABLE && !exec_provider(x, pipe) && !x->capture &&
                !exec_passes(x, pipe) && !exec_chains(x, pipe);
    for (u32 s = 0; fits && s < pipe->sink_count; s++) {
        fits = sink_fits(&pipe->sinks[s]);
    }
    for (u32 i = 0; fits && i < pipe->op_count; i++) {
        fits = op_fits(pipe, &pipe->ops[i]);
    }
    return fits;
}

/* --- putting together --- */

/* What a mark says of a row, in any share. */
static FALLIBLE join_marks(struct exec *x, struct exec *from, u32 var) {
    TRY(variable_flatten(x, var));
    TRY(variable_flatten(from, var));
    const struct chunk *to = x->vars[var].chunks.items[0];
    const struct chunk *more = from->vars[var].chunks.items[0];
    CHECK(to->rows == more->rows);
    b8 *marks = to->cols[0].data;
    const b8 *others = more->cols[0].data;
    for (i64 i = 0; i < to->rows; i++) {
        marks[i] |= others[i];
    }
    return ERR_OK;
}

/* Whose rows are moved: it keeps none. */
static void move_chunks(struct exec *x, u32 var, struct variable *from) {
    struct variable *to = &x->vars[var];
    for (i64 i = 0; i < from->chunks.count; i++) {
        struct chunk *chunk = from->chunks.items[i];
        if (chunk->rows == 0) {
            chunk_release(chunk);
            continue;
        }
        i64 count = to->chunks.count;
        chunk->order = count ? to->chunks.items[count - 1]->order + 1 : 0;
        variable_append(x, var, chunk);
    }
    from->chunks.count = 0;
    for (i64 i = 0; i < from->heaps.count; i++) {
        variable_keep_heap(x, var, from->heaps.items[i]);
    }
    from->heaps.count = 0;
    from->heap_rooms.count = 0;
}

wf_status share_take(struct exec *x, struct exec *from, const struct sink *sink) {
    bool first = x->vars[sink->var].chunks.count == 0;
    if (sink->kind == SINK_MARK && !first) {
        return join_marks(x, from, sink->var);
    }
    move_chunks(x, sink->var, &from->vars[sink->var]);
    x->vars[sink->var].on_host = 1;
    return ERR_OK;
}

/* A program of one step: rows of states (variable 0) are the input of the same aggregation
 * (variable 1). */
struct merging {
    struct program program;
    struct var vars[2];
    struct pipeline pipe;
    struct sink sink;
    struct block block;
    struct step step;
    struct step_metric metric;
    struct variable in_out[2];
};

static void describe_merging(struct exec *x, const struct sink *sink, struct merging *m) {
    struct arena *arena = x->arena;
    const struct var *def = &x->program->vars[sink->var];
    u32 cols = 1 + sink->word_count;
    u32 first = sink->key == NO_REG; /* one group: no key is loaded */
    *m = (struct merging){.vars = {*def, *def}, .sink = *sink};
    u32 *numbers = NEW_ARRAY(arena, u32, cols);
    struct reg *regs = NEW_ARRAY(arena, struct reg, cols);
    struct op *ops = NEW_ARRAY(arena, struct op, cols + 1);
    u32 op_count = 0;
    for (u32 c = 0; c < cols; c++) {
        numbers[c] = c;
        regs[c] = (struct reg){.kind = KIND_I64, .range = {I64_MIN, I64_MAX}};
        if (c >= first) {
            ops[op_count++] = (struct op){OP_LOAD, (u16)c, NO_REG, NO_REG, NO_REG, 0, c, -1};
        }
    }
    ops[op_count++] = (struct op){OP_EMIT, NO_REG, NO_REG, NO_REG, NO_REG, 0, 0, -1};
    u16 *word_regs = NEW_ARRAY(arena, u16, cols);
    for (u32 w = 0; w < sink->word_count; w++) {
        word_regs[w] = (u16)(1 + w);
    }
    m->sink.var = 1;
    m->sink.key = first ? NO_REG : 0;
    m->sink.word_regs = word_regs;
    m->sink.in_runs = 0;
    m->sink.keep_count = 0;
    m->pipe = (struct pipeline){
        .source = {.kind = SOURCE_VAR, .ref = 0, .col_count = cols, .cols = numbers},
        .op_count = op_count,
        .ops = ops,
        .reg_count = cols,
        .regs = regs,
        .sink_count = 1,
        .sinks = &m->sink};
    m->step = (struct step){.kind = STEP_PIPELINE, .label = "Merge", .pipeline = &m->pipe};
    m->block = (struct block){.step_count = 1, .steps = &m->step, .next = NO_VAR};
    m->program = (struct program){
        .arena = arena, .var_count = 2, .vars = m->vars, .block_count = 1, .blocks = &m->block};
}

wf_status share_merge_groups(struct exec *x, struct device *host, const struct sink *sink) {
    struct merging *m = NEW(x->arena, struct merging);
    describe_merging(x, sink, m);
    struct exec merge = {.program = &m->program,
                         .arena = x->arena,
                         .mem = x->mem,
                         .err = x->err,
                         .pool = x->vars[sink->var].rows < x->settings->host_rows ? NULL : x->pool,
                         .settings = x->settings,
                         .vars = m->in_out,
                         .metrics = &m->metric,
                         .cancel = x->cancel,
                         .cancel_seen = x->cancel_seen,
                         .deadline_ns = x->deadline_ns,
                         .whole = x};
    mutex_init(&merge.lock);
    for (u32 v = 0; v < 2; v++) {
        m->in_out[v] = (struct variable){.kind = VAR_AGG, .mem = x->mem, .on_host = 1};
    }
    struct variable *to = &x->vars[sink->var];
    move_chunks(&merge, 0, to);
    to->rows = 0;
    i64 done = atomic_load(&x->work.rows);
    wf_status status = host->run(host, &merge, 0, &m->step);
    atomic_store(&x->work.rows, done); /* rows of the scan only */
    if (!status) {
        move_chunks(x, sink->var, &m->in_out[1]);
    }
    variable_release(&m->in_out[0]);
    variable_release(&m->in_out[1]);
    mutex_fini(&merge.lock);
    return status;
}

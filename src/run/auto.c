/* auto.c: where the steps of a program run when the session names no device.
 *
 * Before the first step that another device could run, the rest of the program is described to
 * place.c: what each step would take each device, and what bringing things over would cost. Rows of
 * variables that are not there yet are those of the last run, or estimates of lowering; times are
 * corrected by earlier runs (past.c). When a step leaves very different numbers of rows, or did not
 * run where it was meant to, the steps behind it are placed again. What the statement would gain if
 * its columns were on a device is told to the device, which may fetch them. A program that runs again
 * and again may take another way as a whole, and once that is clear nothing is estimated any more: see ways.c
 * and decision 0091.
 *
 * Places are memories: the host's is 0, each card's is one, however many workers it has. */
#include <math.h>

#include "run/run_int.h"

enum { REVISIONS_MOST = 8 };
#define ROWS_OFF 4          /* times more or fewer rows than expected: placed again */
#define ROWS_OFF_LEAST 4096 /* unless they are few anyway */
/* Rows of the host lie in memory that the driver does not know: it copies them first. */
#define PAGEABLE 8
#define HASH_SLOT_BYTES 16
#define QUEUE_NS 15e3 /* of the host, to prepare a step and hand it to a device */
/* About as the host builds its indexes: ranks, and a bitmap before a hash table, up to such spans. */
#define RANKS_PER_ROW 64
#define RANKS_LEAST (1LL << 20)
#define BITMAP_MOST(rows) ((rows) < 4096 ? 1 << 24 : 1 << 26)

struct noted { /* of a step */
    u8 can;
    const struct device *refused; /* the last that cannot */
    const char *refusal;
};

struct column_thing {
    u32 table, col;
    f64 up_ns;
    i64 missing_bytes; /* of the place that lacks most of it */
    u8 at;
};

struct placed_loop { /* whose rounds a device may queue */
    u32 first;
    u8 queued; /* places */
    f64 looks;
    f64 look_ns[PLACES_MOST];
    f64 round_ns[PLACES_MOST]; /* of all its steps, not corrected */
};

struct placed {
    u32 step_count, place_count;
    const struct step **steps;
    u32 numbers[PLACES_MOST]; /* of devices, by place */
    struct device_rates rates[PLACES_MOST];
    u8 *places;          /* by step */
    struct noted *notes; /* by step */
    i64 *rows;           /* by variable, as expected */
    b8 *on_host;         /* by variable, as expected */
    i64 *uncut;          /* rows, before a sort left the first of them only */
    struct expected *vars;
    b8 stale;
    u32 revisions;
    f64 lost_ns;
    i64 lacking, lacking_bytes; /* columns that a device was told it lacks */
    f64 running_ns;             /* estimate of the step that was chosen last */
    u8 way;                     /* enum way */
    b8 measured;                /* the time of the whole tells something about it */
    b8 settled;                 /* nothing was estimated */
    VEC(struct placed_loop) loops;
};

/* --- what there is --- */

static void find_places(struct exec *x, const struct run_devices *devices, struct placed *out) {
    for (u32 i = 0; i < devices->count && out->place_count < PLACES_MOST; i++) {
        struct device *device = devices->list[i];
        if (i > 0 && device->space == devices->list[i - 1]->space) {
            continue;
        }
        if (device->space && device->rates) {
            device->rates(device, x, &out->rates[out->place_count]);
        }
        out->numbers[out->place_count++] = i;
    }
}

static struct placed *placed_new(struct exec *x, const struct run_devices *devices) {
    struct arena *arena = exec_arena(x);
    const struct program *program = x->program;
    struct placed *p = NEW(arena, struct placed);
    for (u32 b = 0; b < program->block_count; b++) {
        p->step_count += program->blocks[b].step_count;
    }
    p->steps = NEW_ARRAY(arena, const struct step *, p->step_count + 1);
    u32 no = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            p->steps[no++] = &program->blocks[b].steps[s];
        }
    }
    p->places = NEW_ARRAY(arena, u8, p->step_count + 1);
    p->notes = NEW_ARRAY(arena, struct noted, p->step_count + 1);
    p->rows = NEW_ARRAY(arena, i64, program->var_count + 1);
    p->uncut = NEW_ARRAY(arena, i64, program->var_count + 1);
    p->on_host = NEW_ARRAY(arena, b8, program->var_count + 1);
    p->vars = NEW_ARRAY(arena, struct expected, program->var_count + 1);
    find_places(x, devices, p);
    return p;
}

/* Until it is built: a bitmap of keys where their span allows it, with ranks unless it is a set, else a
 * hash table. A device that is sent it gets an array of the span instead of ranks (index_plain), or
 * the table and the bitmap of keys before it. */
static struct expected index_guess(const struct exec *x, const struct step *build, i64 rows) {
    f64 span = (f64)build->key_range.hi - (f64)build->key_range.lo + 1;
    f64 hashed = (f64)rows * 2 * HASH_SLOT_BYTES;
    bool narrow = span < (f64)MAX_OF(rows * RANKS_PER_ROW, RANKS_LEAST);
    if (narrow && x->program->vars[build->dst].set) {
        return (struct expected){.index_bytes = (i64)(span / 8), .sent_bytes = (i64)(span / 8)};
    }
    if (narrow) {
        return (struct expected){.index_bytes = (i64)MIN_OF(span / 4 + (f64)rows * 4, hashed),
                                 .sent_bytes = (i64)(span * 4)};
    }
    f64 bits = span < BITMAP_MOST(rows) ? span / 8 : 0;
    return (struct expected){.index_bytes = (i64)hashed, .sent_bytes = (i64)(hashed + bits)};
}

static struct expected as_it_is(const struct exec *x, u32 var) {
    const struct variable *v = &x->vars[var];
    const struct index *index = v->index;
    if (!index) {
        return (struct expected){v->rows, v->rows * HASH_SLOT_BYTES, v->rows * HASH_SLOT_BYTES};
    }
    i64 array = index->slot_count * (i64)sizeof(u32);
    return (struct expected){v->rows, index->bytes, index->blocks ? array : index->bytes};
}

static void expect_output(void *arg, u32 var) {
    struct placed *p = arg;
    p->vars[var].rows = p->uncut[var] = p->rows[var];
}

static void expect_cut(void *arg, u32 var) {
    struct placed *p = arg;
    p->vars[var].rows = p->rows[var];
}

/* Rows that a step leaves. Sorts cut what they read: until then a variable has as many rows as were made. */
static void expect_step(const struct exec *x, struct placed *p, const struct step *step) {
    step_makes_rows(x, step, step_reads_rows(x, step, p->rows), p->rows);
    if (step->kind == STEP_BUILD) {
        p->vars[step->dst] = index_guess(x, step, p->rows[step->src]);
    }
    step_outputs(step, step->kind == STEP_SORT ? expect_cut : expect_output, p);
}

/* Behind a sort there are fewer rows. */
static void expect_cuts(const struct exec *x, struct placed *p, const struct step *step) {
    if (step->kind == STEP_SORT) {
        expect_step(x, p, step);
    }
}

/* The places where a variable lies. */
static u8 where_is(const struct exec *x, const struct run_devices *devices, const struct placed *p,
                   u32 var) {
    const struct variable *v = &x->vars[var];
    u8 at = !v->copy || v->on_host || v->index || v->lut ? 1 : 0;
    for (u32 i = 1; v->copy && i < p->place_count; i++) {
        bool here = devices->list[p->numbers[i]]->space == v->copy_space;
        at = (u8)(at | (here ? 1u << i : 0u));
    }
    return at;
}

/* --- what a step reads --- */

struct reading {
    struct exec *x;
    const struct step *step;
    const struct expected *vars;
    const struct device_rates *rates; /* of the device that it would be brought to, or from */
    VEC(struct place_use) uses;
};

static f64 row_bytes(const struct var *var) {
    f64 bytes = 0;
    for (u32 c = 0; c < var->col_count; c++) {
        bytes += kind_bytes[var->kinds[c]];
    }
    return bytes;
}

/* Bytes of it that a device other than the host would have to be sent for this step. */
static f64 sent_bytes(const struct reading *r, u32 var) {
    const struct var *def = &r->x->program->vars[var];
    const struct pipeline *pipe = r->step->pipeline;
    f64 rows = (f64)r->vars[var].rows;
    if (def->kind == VAR_INDEX) {
        return (f64)r->vars[var].sent_bytes;
    }
    if (!pipe) {
        return rows * (r->step->kind == STEP_BUILD ? (f64)sizeof(i64) : row_bytes(def));
    }
    if (pipe->source.kind != SOURCE_VAR || pipe->source.ref != var || !def->kinds) {
        return rows * (f64)sizeof(i64); /* a column of it, a table by code, an interner */
    }
    f64 bytes = 0;
    for (u32 c = 0; c < pipe->source.col_count; c++) {
        bytes += kind_bytes[def->kinds[pipe->source.cols[c]]];
    }
    return rows * bytes;
}

/* An index is not fetched: the host builds it again. */
static f64 fetched_bytes(const struct reading *r, u32 var) {
    const struct var *def = &r->x->program->vars[var];
    f64 width = def->kinds ? row_bytes(def) : (f64)sizeof(i64);
    return (f64)r->vars[var].rows * (def->kind == VAR_INDEX ? 8 * (f64)sizeof(i64) : width);
}

static f64 over(f64 bytes, f64 bytes_per_ns) {
    return bytes_per_ns > 0 ? bytes / bytes_per_ns : 0;
}

static void note_use(void *arg, u32 var) {
    struct reading *r = arg;
    const struct device_rates *rates = r->rates;
    f64 up = over(sent_bytes(r, var), rates->bus_bytes_per_ns / PAGEABLE) + rates->launch_ns;
    struct place_use use = {
        var, up, over(fetched_bytes(r, var), rates->bus_down_bytes_per_ns) + rates->launch_ns};
    for (i64 i = 0; i < r->uses.count; i++) { /* another column of the same */
        if (r->uses.items[i].thing == var) {
            r->uses.items[i].up_ns += use.up_ns;
            return;
        }
    }
    VEC_PUSH(r->x->arena, &r->uses, use);
}

/* The answer that stays where it is needs nothing. */
static bool stays(const struct exec *x, const struct step *step) {
    return step->kind == STEP_RESULT && setting_keeps_result(x->settings);
}

static void read_vars(struct reading *r) {
    if (!stays(r->x, r->step)) {
        step_inputs(r->x->program, r->step, note_use, r);
    }
}

/* The table whose columns a step reads; NULL: it reads none, or they are no tablets. */
static struct table_version *columns_of(const struct exec *x, const struct step *step) {
    const struct pipeline *pipe = step->pipeline;
    bool table = pipe && pipe->source.kind == SOURCE_TABLE && !exec_provider(x, pipe);
    return table ? x->versions[pipe->source.ref] : NULL;
}

struct expected *auto_expected(struct exec *x) {
    struct expected *vars = x->found;
    if (!vars) {
        vars = x->found = NEW_ARRAY(exec_arena(x), struct expected, x->program->var_count + 1);
    }
    for (u32 v = 0; v < x->program->var_count; v++) {
        vars[v] = as_it_is(x, v);
    }
    return vars;
}

struct step_cost auto_cost(struct exec *x, struct device *device, const struct step *step) {
    struct device_rates rates = {0};
    const struct expected *vars = auto_expected(x);
    struct table_version *version = device->column ? columns_of(x, step) : NULL;
    if (device->space && device->rates) {
        device->rates(device, x, &rates);
    }
    struct step_cost cost = {.ns = device->estimate_ns(device, x, step, vars), .here = 1};
    struct reading r = {.x = x, .step = step, .vars = vars, .rates = &rates};
    read_vars(&r);
    for (i64 i = 0; i < r.uses.count; i++) {
        const struct variable *v = &x->vars[r.uses.items[i].thing];
        bool here = v->copy && v->copy_space == device->space;
        bool on_host = !v->copy || v->on_host || v->index || v->lut;
        cost.move_ns += device->space && !here ? r.uses.items[i].up_ns : 0;
        cost.move_ns += !on_host && !here ? r.uses.items[i].down_ns : 0;
    }
    f64 bytes = 0;
    f64 missing = 0;
    for (u32 c = 0; version && c < step->pipeline->source.col_count; c++) {
        struct column_place place;
        device->column(device, version, step->pipeline->source.cols[c], &place);
        cost.column_ns += place.ns;
        bytes += (f64)place.bytes;
        missing += (f64)place.missing_bytes;
    }
    cost.move_ns += cost.column_ns;
    cost.here = bytes > 0 ? 1 - missing / bytes : 1;
    return cost;
}

/* --- the description --- */

struct describing {
    struct exec *x;
    const struct run_devices *devices;
    struct placed *p;
    u32 first;
    struct place_step *steps;
    VEC(struct column_thing) columns;
    VEC(struct place_loop) loops;
};

static u32 column_thing(struct describing *d, const struct step *step, u32 col) {
    u32 table = step->pipeline->source.ref;
    u32 vars = d->x->program->var_count;
    for (i64 i = 0; i < d->columns.count; i++) {
        if (d->columns.items[i].table == table && d->columns.items[i].col == col) {
            return vars + (u32)i;
        }
    }
    struct column_thing thing = {.table = table, .col = col, .at = 1};
    for (u32 i = 1; i < d->p->place_count; i++) {
        struct device *device = d->devices->list[d->p->numbers[i]];
        struct column_place place = {0};
        if (device->column) {
            device->column(device, d->x->versions[table], col, &place);
        }
        thing.at = (u8)(thing.at | (place.missing_bytes ? 0u : 1u << i));
        thing.up_ns = MAX_OF(thing.up_ns, place.ns);
        thing.missing_bytes = MAX_OF(thing.missing_bytes, place.missing_bytes);
    }
    VEC_PUSH(d->x->arena, &d->columns, thing);
    return vars + (u32)d->columns.count - 1;
}

struct makes {
    struct arena *arena;
    VEC(u32) vars;
};

static void note_made(void *arg, u32 var) {
    struct makes *m = arg;
    VEC_PUSH(m->arena, &m->vars, var);
}

/* The loop whose rounds are queued that a step is in; NULL = none. */
static struct placed_loop *queued_loop(struct describing *d, u32 s) {
    for (i64 i = 0; i < d->loops.count; i++) {
        const struct place_loop *loop = &d->loops.items[i];
        for (i64 k = 0; loop->first <= s && s < loop->end && k < d->p->loops.count; k++) {
            if (d->p->loops.items[k].first == loop->first) {
                return &d->p->loops.items[k];
            }
        }
    }
    return NULL;
}

static void expect_on_host(void *arg, u32 var) {
    struct placed *p = arg;
    p->on_host[var] = 1;
}

static void expect_away(void *arg, u32 var) {
    struct placed *p = arg;
    p->on_host[var] = 0;
}

struct reads_away {
    const struct placed *p;
    b8 away;
};
static void look_away(void *arg, u32 var) {
    struct reads_away *r = arg;
    r->away = r->away || !r->p->on_host[var];
}

/* Where lies what it makes: few rows of what is queued stay where that is (queue.c). */
static void expect_where(const struct exec *x, struct placed *p, const struct step *step, u8 can) {
    struct reads_away reads = {p, can != 1};
    if (can == 1 && !choose_host_always(x, step)) {
        step_inputs(x->program, step, look_away, &reads);
    }
    step_outputs(step, reads.away ? expect_away : expect_on_host, p);
}

/* Which places can run it, with the rows that it is expected to read. */
static void describe_places(struct describing *d, u32 s) {
    struct exec *x = d->x;
    const struct step *step = d->p->steps[s];
    struct noted *note = &d->p->notes[s];
    *note = (struct noted){.can = 1};
    if (step->kind != STEP_SORT) {
        expect_step(x, d->p, step);
    }
    bool host = choose_expects_host(x, step, d->p->rows, d->p->on_host);
    for (u32 i = 1; i < d->p->place_count; i++) {
        struct device *device = d->devices->list[d->p->numbers[i]];
        const char *refusal = host || !device->refuses ? NULL : device->refuses(device, x, step);
        note->can = (u8)(note->can | (host || refusal ? 0u : 1u << i));
        note->refused = refusal ? device : note->refused;
        note->refusal = refusal ? refusal : note->refusal;
    }
    if (stays(x, step)) {
        note->can = (u8)((1u << d->p->place_count) - 1);
    }
    expect_where(x, d->p, step, note->can);
}

/* What it takes at those. */
static void describe_times(struct describing *d, u32 s, struct place_step *out) {
    struct exec *x = d->x;
    const struct step *step = d->p->steps[s];
    const struct noted *note = &d->p->notes[s];
    struct placed_loop *loop = queued_loop(d, s);
    bool works = step->kind != STEP_RESULT && step->kind != STEP_LIMIT && step->kind != STEP_FETCH;
    for (u32 i = 0; works && i < d->p->place_count; i++) {
        struct device *device = d->devices->list[d->p->numbers[i]];
        if (note->can >> i & 1 && (i > 0 || note->can != 1)) {
            out->ns[i] =
                device->estimate_ns(device, x, step, d->p->vars) * past_ratio(x->past, s, i);
        }
        if (loop && out->ns[i] > 0 && loop->queued >> i & 1) {
            f64 ns = device->round_ns(device, x, step, d->p->vars);
            loop->round_ns[i] += ns;
            out->round_ns[i] = ns * past_ratio(x->past, loop->first, i);
        }
    }
    out->can = note->can;
}

static void describe_step(struct describing *d, u32 s, struct place_step *out) {
    struct exec *x = d->x;
    const struct step *step = d->p->steps[s];
    struct makes makes = {.arena = x->arena};
    struct reading r = {
        .x = x, .step = step, .vars = d->p->vars, .rates = &d->p->rates[d->p->place_count - 1]};
    describe_places(d, s);
    describe_times(d, s, out);
    read_vars(&r);
    bool may = d->p->notes[s].can != 1; /* the host lacks none */
    for (u32 c = 0; may && columns_of(x, step) && c < step->pipeline->source.col_count; c++) {
        u32 thing = column_thing(d, step, step->pipeline->source.cols[c]);
        f64 up = d->columns.items[thing - x->program->var_count].up_ns;
        struct place_use use = {thing, up, 0};
        VEC_PUSH(x->arena, &r.uses, use);
    }
    step_outputs(step, note_made, &makes);
    expect_cuts(x, d->p, step);
    out->uses = r.uses.items;
    out->use_count = (u32)r.uses.count;
    out->made = makes.vars.items;
    out->made_count = (u32)makes.vars.count;
}

/* Looks at 1, 2, 4 up to so many rounds that are queued: see gpu/gpu_loop.c. */
static f64 looks_of(const struct exec *x, f64 rounds) {
    f64 most = (f64)MAX_OF(x->settings->gpu_rounds, 1);
    f64 looks = 1;
    for (f64 at = 1; at < most && rounds > 0; at *= 2) {
        rounds -= at;
        looks++;
    }
    return looks + MAX_OF(rounds, 0) / most;
}

/* Which places queue rounds of the block, and what their looks take. */
static void describe_queue(struct describing *d, const struct block *block, struct place_loop *loop) {
    enum { LOOK_WAITS = 2 };
    struct exec *x = d->x;
    struct placed_loop placed = {.first = loop->first, .looks = looks_of(x, loop->rounds)};
    for (u32 i = 1; i < d->p->place_count; i++) {
        struct device *device = d->devices->list[d->p->numbers[i]];
        bool queues = device->queues && device->queues(device, x, block, loop->first);
        placed.queued = (u8)(placed.queued | (queues ? 1u << i : 0u));
        placed.look_ns[i] = queues ? LOOK_WAITS * d->p->rates[i].launch_ns + QUEUE_NS : 0;
    }
    loop->queued = placed.queued;
    loop->looks = placed.looks;
    memcpy(loop->look_ns, placed.look_ns, sizeof loop->look_ns);
    if (placed.queued) {
        VEC_PUSH(exec_arena(x), &d->p->loops, placed);
    }
}

/* A loop within another is part of it. */
static void describe_loops(struct describing *d) {
    const struct program *program = d->x->program;
    u32 *firsts = NEW_ARRAY(d->x->arena, u32, program->block_count + 1);
    for (u32 b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        firsts[b + 1] = firsts[b] + block->step_count;
        if (!block->loop_count) {
            continue;
        }
        struct place_loop loop = {
            .first = firsts[block->loop], .end = firsts[b + 1], .rounds = past_rounds(d->x->past, b)};
        if (block->loop == b) {
            describe_queue(d, block, &loop);
        }
        while (d->loops.count && d->loops.items[d->loops.count - 1].first >= loop.first) {
            loop.queued = 0;
            loop.rounds = MAX_OF(loop.rounds, d->loops.items[--d->loops.count].rounds);
        }
        if (loop.end > loop.first) {
            VEC_PUSH(d->x->arena, &d->loops, loop);
        }
    }
}

/* Rounds are queued where all that works in them can be run. */
static void check_queues(struct describing *d) {
    for (i64 i = 0; i < d->loops.count; i++) {
        struct place_loop *loop = &d->loops.items[i];
        for (u32 s = MAX_OF(loop->first, d->first); s < loop->end; s++) {
            u8 kind = d->p->steps[s]->kind;
            bool works = kind == STEP_PIPELINE || kind == STEP_BUILD;
            loop->queued &= works ? d->p->notes[s].can : (u8)~0u;
        }
    }
}

/* The step to place from: of a loop, its first. */
static u32 place_from(const struct describing *d, u32 step_no) {
    for (i64 i = 0; i < d->loops.count; i++) {
        if (d->loops.items[i].first <= step_no && step_no < d->loops.items[i].end) {
            return d->loops.items[i].first;
        }
    }
    return step_no;
}

/* --- what is missing --- */

/* The time that columns on a device would save is shared out among those that would be read there,
 * by what bringing each would cost: together they are worth it when each is. */
static void tell_lacking(struct describing *d, struct placing *placing, f64 ns) {
    struct exec *x = d->x;
    u32 vars = x->program->var_count;
    u8 *at = NEW_ARRAY(x->arena, u8, placing->thing_count + 1);
    u8 *ideal = NEW_ARRAY(x->arena, u8, placing->step_count + 1);
    u8 *wanted = NEW_ARRAY(x->arena, u8, d->columns.count + 1); /* by column: place, 0 = none */
    memcpy(at, placing->at, placing->thing_count);
    memset(at + vars, (1 << placing->place_count) - 1, (size_t)d->columns.count);
    placing->at = at;
    f64 lost = ns - place_program(x->arena, placing, ideal);
    f64 up_ns = 0;
    for (u32 s = 0; s < placing->step_count; s++) {
        const struct place_step *step = &placing->steps[s];
        bool moves = ideal[s] && !d->p->places[d->first + s];
        for (u32 i = 0; moves && i < step->use_count; i++) {
            u32 thing = step->uses[i].thing;
            struct column_thing *col = thing < vars ? NULL : &d->columns.items[thing - vars];
            if (col && !(col->at >> ideal[s] & 1) && !wanted[thing - vars]) {
                wanted[thing - vars] = ideal[s];
                up_ns += col->up_ns;
            }
        }
    }
    for (i64 c = 0; lost > 0 && up_ns > 0 && c < d->columns.count; c++) {
        const struct column_thing *col = &d->columns.items[c];
        struct device *device = d->devices->list[d->p->numbers[wanted[c]]];
        struct table_version *version = x->versions[col->table];
        if (wanted[c] && device->lacks && !version->is_delta) {
            device->lacks(device, version, col->col, lost * col->up_ns / up_ns);
            d->p->lacking++;
            d->p->lacking_bytes += col->missing_bytes;
            d->p->lost_ns = lost;
        }
    }
}

const char *auto_note(const struct exec *x) {
    const struct placed *p = x->placed;
    return p && p->lacking
               ? arena_printf(exec_arena(x),
                              "with %lld more column%s (%.1f MB) on the card it would take %s less",
                              p->lacking, p->lacking == 1 ? "" : "s", (f64)p->lacking_bytes / 1e6,
                              duration_of((i64)p->lost_ns).text)
               : NULL;
}

/* --- placing --- */

/* The program with its steps where the way has them; its time. */
static f64 place_as(struct arena *arena, const struct placing *placing, enum way way, u8 *out_places) {
    struct placing forced = *placing;
    struct place_step *steps = NEW_ARRAY(arena, struct place_step, placing->step_count + 1);
    for (u32 s = 0; s < placing->step_count; s++) {
        u8 can = placing->steps[s].can;
        steps[s] = placing->steps[s];
        steps[s].can = way == WAY_HOST ? 1 : way == WAY_CARD && can & 2 ? 2 : can;
    }
    forced.steps = steps;
    return place_program(arena, &forced, out_places);
}

/* The way that the program takes this time, by what it took before. Not where columns have to be brought for which
 * one would wait long, nor under EXPLAIN ANALYZE, which waits for every step. */
static bool may_choose_way(const struct exec *x) {
    return x->past && !x->profiles && !x->counts_rows && x->settings->device == DEVICE_AUTO;
}

static void choose_way(struct exec *x, struct placed *p, const struct placing *placing, f64 missing_ns) {
    enum { SHORT_NS = 1000000 };
    f64 estimates[WAYS] = {0};
    if (missing_ns > SHORT_NS || !may_choose_way(x)) {
        return;
    }
    struct ways *ways = past_ways(x->past);
    u8 *places = NEW_ARRAY(x->arena, u8, placing->step_count + 1);
    for (enum way w = WAY_HOST; ways_ask(ways) && w < WAYS; w++) {
        estimates[w] = place_as(x->arena, placing, w, places);
    }
    p->measured = 1;
    p->way = (u8)ways_choose(ways, estimates);
}

/* What variables have, and where. */
static void expect_as_is(struct describing *d) {
    struct placed *p = d->p;
    for (u32 v = 0; v < d->x->program->var_count; v++) {
        p->vars[v] = as_it_is(d->x, v);
        p->rows[v] = p->uncut[v] = d->x->vars[v].rows;
        p->on_host[v] = where_is(d->x, d->devices, p, v) & 1;
    }
}

/* A program that has found its way goes it again, and estimates nothing. False: columns are missing. */
static bool place_settled(struct describing *d, enum way way) {
    struct exec *x = d->x;
    struct placed *p = d->p;
    for (u32 s = d->first; s < p->step_count; s++) {
        const struct step *step = p->steps[s];
        describe_places(d, s);
        u8 can = way == WAY_CARD && p->notes[s].can & 2 ? 2 : way == WAY_HOST ? 1 : p->notes[s].can;
        p->places[s] = (u8)__builtin_ctz(can);
        for (u32 c = 0; can == 2 && columns_of(x, step) && c < step->pipeline->source.col_count; c++) {
            struct column_place place = {0};
            struct device *device = d->devices->list[p->numbers[1]];
            if (device->column) {
                device->column(device, x->versions[step->pipeline->source.ref], step->pipeline->source.cols[c], &place);
            }
            if (place.missing_bytes) {
                return false;
            }
        }
        expect_cuts(x, p, step);
    }
    p->way = (u8)way;
    p->measured = p->settled = 1;
    return true;
}

static void place(struct exec *x, const struct run_devices *devices, u32 step_no) {
    bool again = x->placed != NULL;
    struct placed *p = again ? x->placed : placed_new(x, devices);
    struct describing d = {.x = x, .devices = devices, .p = p};
    x->placed = p;
    p->stale = 0;
    p->loops.count = 0;
    p->revisions += again;
    describe_loops(&d);
    d.first = place_from(&d, step_no);
    enum way settled = again || d.loops.count || !may_choose_way(x) ? WAY_PLACED : ways_settled(past_ways(x->past));
    p->settled = 0;
    expect_as_is(&d);
    if (settled != WAY_PLACED) {
        if (place_settled(&d, settled)) {
            return;
        }
        expect_as_is(&d);
    }
    for (u32 s = d.first; s < p->step_count; s++) { /* a loop's steps read what those behind them make */
        expect_step(x, p, p->steps[s]);
    }
    u32 count = p->step_count - d.first;
    d.steps = NEW_ARRAY(x->arena, struct place_step, count + 1);
    for (u32 s = 0; s < count; s++) {
        describe_step(&d, d.first + s, &d.steps[s]);
    }
    u32 loop_count = 0;
    check_queues(&d);
    for (i64 i = 0; i < d.loops.count; i++) { /* those that are still to come */
        struct place_loop loop = d.loops.items[i];
        if (loop.first >= d.first) {
            loop.first -= d.first;
            loop.end -= d.first;
            d.loops.items[loop_count++] = loop;
        }
    }
    u32 vars = x->program->var_count;
    u8 *at = NEW_ARRAY(x->arena, u8, vars + d.columns.count + 1);
    f64 missing_ns = 0; /* to bring all of them */
    bool lacks = false;
    for (u32 v = 0; v < vars; v++) {
        at[v] = where_is(x, devices, p, v);
    }
    for (i64 c = 0; c < d.columns.count; c++) {
        at[vars + c] = d.columns.items[c].at;
        lacks = lacks || d.columns.items[c].missing_bytes;
        missing_ns += d.columns.items[c].missing_bytes ? d.columns.items[c].up_ns : 0;
    }
    struct placing placing = {.place_count = p->place_count,
                              .thing_count = vars + (u32)d.columns.count,
                              .step_count = count,
                              .loop_count = loop_count,
                              .at = at,
                              .steps = d.steps,
                              .loops = d.loops.items};
    if (!again) {
        choose_way(x, p, &placing, missing_ns);
    }
    f64 ns = place_as(x->arena, &placing, (enum way)p->way, p->places + d.first);
    if (lacks && !again) {
        tell_lacking(&d, &placing, ns);
    }
}

static void put_why(struct exec *x, const struct run_devices *devices, u32 step_no, u32 place,
                    struct chosen *out) {
    const struct placed *p = x->placed;
    const struct noted *note = &p->notes[step_no];
    struct text why;
    u32 best = place;
    i32 runs = 0;
    f64 least = INFINITY;
    text_init(&why, x->arena);
    text_print(&why, "estimated:");
    for (u32 i = 0; i < p->place_count; i++) {
        if (!(note->can >> i & 1)) {
            continue;
        }
        struct device *device = devices->list[p->numbers[i]];
        struct step_cost cost = auto_cost(x, device, p->steps[step_no]);
        cost.ns *= past_ratio(x->past, step_no, i);
        runs = MAX_OF(runs, past_runs(x->past, step_no, i));
        text_print(&why, "%s %s %s", i ? "," : "", device->name,
                   duration_of(cost.ns < 9e18 ? (i64)cost.ns : I64_MAX).text);
        if (cost.move_ns >= 1000) { /* else it would show as nothing */
            text_print(&why, " and %s to bring what it reads",
                       duration_of(cost.move_ns < 9e18 ? (i64)cost.move_ns : I64_MAX).text);
        }
        best = cost.ns + cost.move_ns < least ? i : best;
        least = MIN_OF(least, cost.ns + cost.move_ns);
    }
    if (runs) {
        text_print(&why, "; corrected by earlier runs");
    }
    if (best != place) {
        text_print(&why, "; better for the steps behind it");
    }
    out->why = why.ptr;
}

void auto_choose(struct exec *x, const struct run_devices *devices, u32 step_no,
                 const struct step *step, struct chosen *out) {
    struct placed *p = x->placed;
    if (!p || (p->stale && p->revisions < REVISIONS_MOST)) {
        place(x, devices, step_no);
        p = x->placed;
    }
    u32 place = p->places[step_no];
    const struct noted *note = &p->notes[step_no];
    *out = (struct chosen){.number = p->numbers[place]};
    if (note->can == 1 && note->refused) {
        out->why = why_printed(x, step_no, "the %s cannot: %s", note->refused->title, note->refusal);
        p->running_ns = 0;
        return;
    }
    struct device *device = devices->list[out->number];
    p->running_ns = x->past && !p->settled ? device->estimate_ns(device, x, step, auto_expected(x)) : 0;
    out->why = p->way == WAY_PLACED ? "estimated" : "measured: all of it was faster so";
    if (x->profiles) {
        put_why(x, devices, step_no, place, out);
    }
}

/* --- afterwards --- */

struct looking {
    struct exec *x;
    struct placed *p; /* NULL: nothing was placed */
    b8 makes;         /* the step makes them, rather than to change what another made */
};

static bool is_off(i64 rows, i64 expected) {
    i64 most = MAX_OF(rows, expected);
    return most >= ROWS_OFF_LEAST && most / ROWS_OFF > MIN_OF(rows, expected);
}

static void look_at_rows(void *arg, u32 var) {
    struct looking *l = arg;
    i64 rows = l->x->vars[var].rows;
    past_had(l->x->past, var, rows);
    if (l->makes) {
        past_made(l->x->past, var, rows);
    }
    if (l->p) { /* what was queued is looked at when it has been cut already */
        bool other = is_off(rows, l->p->rows[var]) && is_off(rows, l->p->uncut[var]);
        l->p->stale = l->p->stale || other;
    }
}

static const struct step *step_at(const struct program *program, u32 step_no) {
    const struct step *step = NULL;
    for (u32 b = 0; !step; b++) {
        const struct block *block = &program->blocks[b];
        step = step_no < block->step_count ? &block->steps[step_no] : NULL;
        step_no -= step ? 0 : block->step_count;
    }
    return step;
}

void auto_left(struct exec *x, u32 step_no) {
    const struct step *step = step_at(x->program, step_no);
    struct looking looking = {x, x->placed, step->kind != STEP_SORT && step->kind != STEP_SPLIT};
    if (x->past || x->placed) {
        step_outputs(step, look_at_rows, &looking);
    }
    if (step->kind == STEP_BUILD) {
        const struct index *index = x->vars[step->dst].index;
        past_indexed(x->past, step->dst, index && index->unique);
    }
}

void auto_ran(struct exec *x, const struct run_devices *devices, u32 number, u32 step_no, i64 ns) {
    struct placed *p = x->placed;
    auto_left(x, step_no);
    if (!p) {
        return;
    }
    u32 place = 0;
    while (place < p->place_count &&
           devices->list[p->numbers[place]]->space != devices->list[number]->space) {
        place++;
    }
    bool as_meant = place == p->places[step_no];
    p->stale = p->stale || !as_meant;
    const struct step_metric *m = &x->metrics[step_no];
    bool usual = !m->interim && !x->compiling_ns;
    if (as_meant && place < p->place_count && p->running_ns > 0 && usual) {
        const struct device_rates *rates = &p->rates[place];
        f64 moved = over((f64)(m->bytes_moved - m->bytes_fetched), rates->bus_bytes_per_ns) +
                    over((f64)m->bytes_fetched, rates->bus_down_bytes_per_ns);
        f64 took = MAX_OF((f64)ns - moved, (f64)ns / 10);
        if (place && m->device_ns && queue_may(x, step_at(x->program, step_no))) { /* nobody will wait for it */
            took = MIN_OF(took, (f64)m->device_ns + QUEUE_NS);
        }
        past_took(x->past, step_no, place, p->running_ns, took);
    }
    p->running_ns = 0;
}

/* Steps that had a choice were all there: then the way is that one, too. */
static bool all_at(const struct placed *p, u32 place) {
    bool any = false;
    for (u32 s = 0; s < p->step_count; s++) {
        if (p->notes[s].can > 1 && p->steps[s]->kind != STEP_RESULT && p->places[s] != place) {
            return false;
        }
        any = any || p->notes[s].can > 1;
    }
    return any;
}

void auto_ended(struct exec *x) {
    const struct placed *p = x->placed;
    bool usual = p && p->measured && !x->compiling_ns;
    for (u32 s = 0; usual && s < p->step_count; s++) {
        usual = !x->metrics[s].interim;
    }
    if (!usual) {
        return;
    }
    struct ways *ways = past_ways(x->past);
    ways_took(ways, (enum way)p->way, x->run_ns);
    if (p->way == WAY_PLACED && p->place_count > 1 && (all_at(p, 0) || all_at(p, 1))) {
        ways_took(ways, all_at(p, 0) ? WAY_HOST : WAY_CARD, x->run_ns);
    }
}

f64 auto_pause(struct exec *x) {
    f64 running_ns = x->placed ? x->placed->running_ns : 0;
    auto_resume(x, 0);
    return running_ns;
}

bool auto_places_away(const struct exec *x, u32 step_no) {
    return !x->placed || x->placed->places[step_no] != 0;
}

void auto_resume(struct exec *x, f64 running_ns) {
    if (x->placed) {
        x->placed->running_ns = running_ns;
    }
}

void auto_queued_rounds(struct exec *x, const struct run_devices *devices, u32 number,
                        const struct rounds *r, i64 ns) {
    enum { NEVER = 32 }; /* times as long, where the device found that it cannot */
    const struct placed *p = x->placed;
    bool usual = p && (r->count > 0 || r->cannot) && !x->compiling_ns;
    for (u32 s = 0; usual && s < r->block->step_count; s++) {
        usual = !x->metrics[r->first_step + s].interim;
    }
    for (i64 i = 0; usual && i < p->loops.count; i++) {
        const struct placed_loop *loop = &p->loops.items[i];
        u32 place = 1;
        while (place < p->place_count && devices->list[p->numbers[place]]->space != devices->list[number]->space) {
            place++;
        }
        if (loop->first == r->first_step && place < p->place_count && loop->queued >> place & 1) {
            f64 looks = looks_of(x, (f64)r->count) * loop->look_ns[place];
            f64 estimate = loop->round_ns[place] * (f64)MAX_OF(r->count, 1);
            f64 took = r->count ? MAX_OF((f64)ns - looks, (f64)ns / 10) : estimate * NEVER;
            past_took(x->past, loop->first, place, estimate, took);
        }
    }
}

/* What a round reads of a relation is expected to be as much as on average: the last one found nothing. */
void auto_loop_ended(struct exec *x, const struct block *block, u32 first_step, i64 rounds) {
    for (u32 s = 0; s < block->step_count && rounds > 0; s++) {
        const struct step *step = &block->steps[s];
        if (step->kind == STEP_LIMIT && step->shares) {
            past_had(x->past, step->dst, x->metrics[first_step + s].rows_out / rounds);
        }
    }
}

void auto_went_round(struct exec *x, const struct block *block) {
    struct looking looking = {x, x->placed, 0};
    for (u32 s = 0; s < block->step_count; s++) {
        step_outputs(&block->steps[s], look_at_rows, &looking);
    }
    if (x->placed) {
        x->placed->running_ns = 0;
    }
}

/* hybrid.c: shares of one scan for several devices, under device = hybrid.
 *
 * Whether a scan is shared is decided when it is about to run: by the estimates that auto places by,
 * corrected by what earlier runs took, and with what bringing everything together costs; it has to be
 * clearly faster than where auto would run it. The rows are cut where tablets or zones begin, in the
 * order of the devices, the host's last: cards keep the same first rows, and columns of those. Shares
 * that an earlier run had are kept while they do, since what a card has prepared for them is then
 * still right.
 *
 * Every share is an execution of its own (struct exec, `whole`): own arena, error, metrics, and the
 * variables that the step makes; what it reads is the whole's, brought to the host before, and nobody
 * changes it meanwhile. A copy on a card is lent to the share that runs there. Faults go to the whole,
 * where the smallest wins, as always; they carry numbers of the table's rows. A share that is refused
 * memory is run by another device; any other failure halts all. */
#include "run/run_int.h"

#include <math.h>

#include "run/share.h"
#include "run/trie.h"

#define WORTH 0.9       /* of the time without shares, at most */
#define START_NS 60e3   /* a thread for each share, and waiting for it */
#define KEPT_WORTH 1.15 /* shares of an earlier run may take so much longer than the best */
#define PAGEABLE 8      /* as in auto.c: rows of the host, on their way to a card */
#define STEPS_REACH 0.5 /* of the host's rate of probes, merging groups */

/* --- whether, and how much --- */

struct dividing {
    struct exec *x;
    const struct run_devices *devices;
    const struct step *step;
    u32 step_no;
    u32 count;
    u32 numbers[DEVICES_MOST]; /* of those that can run it; the host is the last */
    u32 places[DEVICES_MOST];
    struct share_cost costs[DEVICES_MOST]; /* corrected by earlier runs */
    f64 raw_fixed_ns[DEVICES_MOST], raw_rows_ns[DEVICES_MOST];
    f64 shares[DEVICES_MOST];
    f64 bring_ns; /* what all shares read to the host, before they start */
};

static void add_device(struct dividing *d, u32 number, u32 place) {
    d->numbers[d->count] = number;
    d->places[d->count++] = place;
}

/* One of every memory that can run the step; place 0 is the host's. */
static void find_devices(struct dividing *d) {
    u32 place = 0;
    for (u32 i = 1; i < d->devices->count && place + 1 < PLACES_MOST; i++) {
        struct device *device = d->devices->list[i];
        if (device->space == d->devices->list[i - 1]->space) {
            continue;
        }
        place++;
        if (!device->refuses || !device->refuses(device, d->x, d->step)) {
            add_device(d, i, place);
        }
    }
    add_device(d, 0, 0);
}

static f64 estimate(struct dividing *d, struct device *device, const struct row_span *span,
                    const struct expected *vars) {
    d->x->span = span;
    f64 ns = device->estimate_ns(device, d->x, d->step, vars);
    d->x->span = NULL;
    return ns;
}

static void find_costs(struct dividing *d) {
    static const struct row_span none = {0, 0};
    const struct expected *vars = auto_expected(d->x);
    for (u32 i = 0; i < d->count; i++) {
        struct device *device = d->devices->list[d->numbers[i]];
        struct step_cost cost = auto_cost(d->x, device, d->step);
        f64 ratio = past_ratio(d->x->past, d->step_no, d->places[i]);
        f64 fixed = MIN_OF(estimate(d, device, &none, vars), cost.ns);
        d->raw_fixed_ns[i] = fixed;
        d->raw_rows_ns[i] = cost.ns - fixed;
        bool host = i + 1 == d->count;
        f64 vars_ns = cost.move_ns - cost.column_ns;
        d->bring_ns = host ? vars_ns : d->bring_ns;
        d->costs[i] = (struct share_cost){.fixed_ns = fixed * ratio + (host ? 0 : vars_ns),
                                          .rows_ns = (cost.ns - fixed) * ratio,
                                          .move_ns = cost.column_ns,
                                          .here = cost.here};
    }
}

/* What it costs that all that the shares made is on the host then, in one piece, and that the next
 * step may want it on a card. */
static f64 together_ns(struct dividing *d, bool wanted_away) {
    struct exec *x = d->x;
    struct device_rates card = {0};
    struct device_rates host = {0};
    struct device *away = d->devices->list[d->numbers[0]];
    struct device *here = d->devices->list[0];
    if (away->rates) {
        away->rates(away, x, &card);
    }
    if (here->rates) {
        here->rates(here, x, &host);
    }
    i64 *rows = NEW_ARRAY(x->arena, i64, x->program->var_count + 1);
    step_makes_rows(x, d->step, step_reads_rows(x, d->step, NULL), rows);
    f64 ns = 0;
    const struct pipeline *pipe = d->step->pipeline;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        const struct var *var = &x->program->vars[sink->var];
        f64 made = (f64)(sink->kind == SINK_MARK ? x->vars[sink->rows_var].rows : rows[sink->var]);
        f64 bytes = 0;
        for (u32 c = 0; c < var->col_count; c++) {
            bytes += made * kind_bytes[var->kinds[c]];
        }
        ns += card.launch_ns +
              (card.bus_down_bytes_per_ns > 0 ? bytes / card.bus_down_bytes_per_ns : 0);
        ns +=
            wanted_away && card.bus_bytes_per_ns > 0 ? PAGEABLE * bytes / card.bus_bytes_per_ns : 0;
        ns += sink->kind == SINK_AGG && host.probes_per_ns > 0
                  ? 2 * made / (STEPS_REACH * host.probes_per_ns)
                  : 0;
    }
    return ns;
}

static f64 slowest_ns(const struct dividing *d, const f64 *shares) {
    f64 ns = 0;
    for (u32 i = 0; i < d->count; i++) {
        ns = MAX_OF(ns, share_ns(&d->costs[i], shares[i]));
    }
    return ns;
}

/* Those of an earlier run, while they do; true when they are taken. */
static bool keep_shares(struct dividing *d, f64 best_ns) {
    f64 kept[DEVICES_MOST];
    f64 sum = 0;
    for (u32 i = 0; i < d->count; i++) {
        kept[i] = past_share(d->x->past, d->step_no, d->places[i]);
        sum += kept[i];
    }
    bool fits = fabs(sum - 1) < 1e-3 && slowest_ns(d, kept) <= KEPT_WORTH * best_ns;
    if (fits) {
        memcpy(d->shares, kept, sizeof kept);
    }
    return fits;
}

/* Given: the host's percentage; the others share the rest evenly. */
static void force_shares(struct dividing *d) {
    f64 host = (f64)d->x->settings->hybrid_share / 100;
    for (u32 i = 0; i < d->count; i++) {
        d->shares[i] = i + 1 == d->count ? host : (1 - host) / (d->count - 1);
    }
}

/* By throughput; false when the step is better left to the device that was chosen. */
static bool find_shares(struct dividing *d, struct chosen *chosen) {
    struct exec *x = d->x;
    u32 at = 0;
    while (at + 1 < d->count &&
           d->devices->list[d->numbers[at]]->space != d->devices->list[chosen->number]->space) {
        at++;
    }
    find_costs(d);
    f64 best_ns = share_out(d->count, d->costs, d->shares);
    f64 alone_ns = share_ns(&d->costs[at], 1) + (d->places[at] ? 0 : d->bring_ns);
    f64 ns = START_NS + d->bring_ns + together_ns(d, d->places[at] != 0);
    if (best_ns + ns > WORTH * alone_ns) {
        return false;
    }
    bool kept = keep_shares(d, best_ns);
    for (u32 i = 0; !kept && i < d->count; i++) {
        past_shared(x->past, d->step_no, d->places[i], d->shares[i]);
    }
    if (x->profiles) {
        chosen->why =
            arena_printf(x->arena, "shares: estimated %s, %s alone %s",
                         duration_of((i64)(slowest_ns(d, d->shares) + ns)).text,
                         d->devices->list[chosen->number]->name, duration_of((i64)alone_ns).text);
    } else {
        chosen->why = "shares";
    }
    return true;
}

/* Rows are dealt out in the order of the devices; who would get none has no share. */
static struct share_plan *cut_rows(const struct dividing *d) {
    const struct pipeline *pipe = d->step->pipeline;
    const struct table_version *version = d->x->versions[pipe->source.ref];
    struct share_plan *plan = NEW(d->x->arena, struct share_plan);
    i64 ends[DEVICES_MOST];
    i64 at = 0;
    share_ends(d->x, pipe, d->count, d->shares, ends);
    for (u32 i = 0; i < d->count; i++) {
        i64 end = ends[i];
        if (end > at) {
            f64 share = (f64)(end - at) / (f64)version->rows;
            plan->parts[plan->count++] =
                (struct share_part){.number = d->numbers[i],
                                    .place = d->places[i],
                                    .span = {at, end},
                                    .estimate_ns = d->raw_fixed_ns[i] + share * d->raw_rows_ns[i]};
            at = end;
        }
    }
    return plan;
}

void hybrid_choose(struct exec *x, const struct run_devices *devices, u32 step_no,
                   const struct step *step, struct chosen *chosen) {
    struct dividing d = {.x = x, .devices = devices, .step = step, .step_no = step_no};
    bool forced = x->settings->hybrid_share > 0;
    if (devices->count < 2 || chosen->alone || !share_possible(x, step)) {
        return;
    }
    i64 rows = x->versions[step->pipeline->source.ref]->rows;
    if (!forced && rows < 2 * ZONE_ROWS) {
        return;
    }
    find_devices(&d);
    if (d.count < 2) {
        return;
    }
    if (forced) {
        force_shares(&d);
    } else if (!find_shares(&d, chosen)) {
        return;
    }
    const struct share_plan *plan = cut_rows(&d);
    if (plan->count > 1) {
        chosen->shares = plan;
        chosen->why = forced ? "hybrid_share" : chosen->why;
    }
}

/* --- running --- */

/* One for every device of the list, kept from step to step. */
struct share_run {
    struct exec x;
    struct arena arena;
    struct error err;
    struct variable *vars;
    i64 *heap_counts; /* by variable: those that were the whole's */
    struct step_metric *metrics;
    b8 open;
    /* of the step that runs */
    const struct run_devices *devices;
    const struct share_part *part;
    const struct step *step;
    u32 step_no;
    u32 number; /* of the device that ran it in the end */
    struct stop stop;
    struct thread *thread;
    wf_status status;
    i64 ns;
};

struct shares {
    _Atomic i32 halted;
    const struct run_devices *devices; /* that may help with boxes; NULL = none may */
    struct boxes *boxes;               /* of the step that runs; NULL = it has none */
    struct share_run runs[DEVICES_MOST];
};

void shares_close(struct exec *x) {
    for (u32 i = 0; x->shares && i < DEVICES_MOST; i++) {
        if (x->shares->runs[i].open) {
            arena_fini(&x->shares->runs[i].arena);
        }
    }
    x->shares = NULL;
}

static bool makes(const struct step *step, u32 var) {
    const struct pipeline *pipe = step->pipeline;
    bool made = !pipe && step->dst == var;
    for (u32 s = 0; pipe && s < pipe->sink_count; s++) {
        made = made || pipe->sinks[s].var == var;
    }
    return made;
}

/* What a device of this space holds of variables goes to the share and back. */
static void lend_copies(struct exec *x, struct share_run *r, u32 space) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        struct variable *own = &x->vars[v];
        if (own->copy && own->copy_space == space && !makes(r->step, v)) {
            r->vars[v].copy = own->copy;
            r->vars[v].copy_release = own->copy_release;
            r->vars[v].copy_space = own->copy_space;
            own->copy = NULL;
        }
    }
}

/* Another card's that was made meanwhile is not kept: a variable has one copy. */
static void return_copies(struct exec *x, struct share_run *r) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        struct variable *own = &x->vars[v];
        struct variable *lent = &r->vars[v];
        if (makes(r->step, v)) {
            continue;
        }
        for (i64 i = r->heap_counts[v]; i < lent->heaps.count; i++) {
            variable_keep_heap(x, v, lent->heaps.items[i]);
        }
        if (lent->copy && own->copy) {
            variable_drop_copy(lent);
        } else if (lent->copy) {
            own->copy = lent->copy;
            own->copy_release = lent->copy_release;
            own->copy_space = lent->copy_space;
        }
        lent->copy = NULL;
        lent->heaps.count = r->heap_counts[v];
    }
}

static void open_metric(struct share_run *r) {
    u32 mark_count = r->step->pipeline ? r->step->pipeline->mark_count : 0;
    struct step_metric *m = &r->metrics[r->step_no];
    i64 *marks = m->marks ? m->marks : NEW_ARRAY(&r->arena, i64, mark_count + 1);
    *m = (struct step_metric){.marks = marks};
    for (u32 i = 0; i < mark_count; i++) {
        m->marks[i] = -1;
    }
}

/* The variables as they are for a share: those the step makes are empty. Its lists of the others grow
 * elsewhere. */
static void open_vars(const struct exec *x, struct share_run *r) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        struct variable *own = &r->vars[v];
        *own = x->vars[v];
        own->copy = NULL;
        own->chunks.cap = own->chunks.count;
        own->heaps.cap = own->heaps.count;
        r->heap_counts[v] = own->heaps.count;
        if (makes(r->step, v)) {
            *own = (struct variable){.kind = x->vars[v].kind, .mem = x->mem};
        }
    }
}

static void open_share(struct exec *x, struct share_run *r) {
    if (!r->open) {
        arena_init(&r->arena, x->mem);
        r->heap_counts = NEW_ARRAY(&r->arena, i64, x->program->var_count + 1);
        r->vars = NEW_ARRAY(&r->arena, struct variable, x->program->var_count + 1);
        r->metrics = NEW_ARRAY(&r->arena, struct step_metric, step_total(x->program) + 1);
        r->open = 1;
    }
    error_reset(&r->err);
    r->status = ERR_OK;
    r->stop = exec_stop(x);
    open_metric(r);
    open_vars(x, r);
    r->x = (struct exec){.program = x->program,
                         .arena = &r->arena,
                         .mem = x->mem,
                         .err = &r->err,
                         .pool = x->pool,
                         .settings = x->settings,
                         .tables = x->tables,
                         .versions = x->versions,
                         .providers = x->providers,
                         .lits = x->lits,
                         .dicts = x->dicts,
                         .dict_lens = x->dict_lens,
                         .vars = r->vars,
                         .metrics = r->metrics,
                         .cancel = x->cancel,
                         .cancel_seen = x->cancel_seen,
                         .deadline_ns = x->deadline_ns,
                         .compiling_ns = x->compiling_ns,
                         .compiling_told = x->compiling_told,
                         .counts_rows = x->counts_rows,
                         .profiles = x->profiles,
                         .whole = x,
                         .span = &r->part->span,
                         .halted = &x->shares->halted};
    mutex_init(&r->x.lock);
}

/* Its outputs, which nobody took, and what was lent. */
static void close_share(struct exec *x, struct share_run *r) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        if (makes(r->step, v)) {
            variable_reset(&r->vars[v]);
        }
    }
    return_copies(x, r);
    mutex_fini(&r->x.lock);
}

static bool is_refusal(wf_status status) {
    return status == ERR_OUT_OF_MEMORY || status == ERR_DEVICE_MEMORY;
}

/* Of the device it was cut for, or another one. What it made is on the host then, unless a fault
 * makes that useless. */
static void run_share(struct share_run *r, u32 number) {
    struct exec *whole = r->x.whole;
    const struct stop *outer = stop_enter(&r->stop);
    r->number = device_take(r->devices, number);
    struct device *device = r->devices->list[r->number];
    r->metrics[r->step_no].device = device->name;
    i64 start = clock_ns();
    r->status = device->run(device, &r->x, r->step_no, r->step);
    r->ns = clock_ns() - start;
    for (u32 s = 0; r->step->pipeline && s < r->step->pipeline->sink_count; s++) {
        if (!r->status && device->space && atomic_load(&whole->fault) == ~0ULL) {
            r->status = device->fetch(device, &r->x, r->step->pipeline->sinks[s].var);
        }
    }
    device_give(r->devices, r->number);
    r->status = r->status ? r->status : arena_check(&r->arena, &r->err);
    if (r->status && !is_refusal(r->status)) {
        atomic_store(&whole->shares->halted, 1);
    }
    stop_enter(outer);
}

static void share_thread(void *arg) {
    struct share_run *r = arg;
    run_share(r, r->part->number);
}

/* The first share, a card's, runs on the calling thread, which alone may speak to the session. */
static void run_shares(struct exec *x, const struct share_plan *plan, struct share_run **runs) {
    for (u32 i = 1; i < plan->count; i++) {
        runs[i]->thread = thread_start(share_thread, runs[i]);
    }
    runs[0]->x.tell = x->tell;
    runs[0]->x.tell_arg = x->tell_arg;
    run_share(runs[0], plan->parts[0].number);
    x->compiling_ns = runs[0]->x.compiling_ns;
    x->compiling_told = runs[0]->x.compiling_told;
    for (u32 i = 1; i < plan->count; i++) {
        if (runs[i]->thread) {
            thread_join(runs[i]->thread);
        } else { /* there are no more threads */
            share_thread(runs[i]);
        }
        runs[i]->thread = NULL;
    }
}

/* A share that was refused memory, by a device that was not; the host's has most of it. */
static void take_over(struct exec *x, const struct share_plan *plan, struct share_run **runs,
                      u32 at) {
    struct share_run *r = runs[at];
    u32 other = plan->count;
    for (u32 i = 0; i < plan->count; i++) {
        other = i != at && !runs[i]->status ? i : other;
    }
    if (other < plan->count) {
        u32 number = plan->parts[other].number;
        close_share(x, r);
        open_share(x, r);
        lend_copies(x, r, r->devices->list[number]->space);
        run_share(r, number);
    }
}

/* --- afterwards --- */

static FALLIBLE put_together(struct exec *x, const struct run_devices *devices,
                             const struct share_plan *plan, struct share_run **runs) {
    const struct pipeline *pipe = runs[0]->step->pipeline;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        u32 makers = 0;
        for (u32 i = 0; i < plan->count; i++) {
            makers += runs[i]->vars[sink->var].rows > 0;
            TRY(share_take(x, &runs[i]->x, sink));
        }
        if (sink->kind == SINK_AGG && makers > 1) {
            TRY(share_merge_groups(x, devices->list[0], sink));
        }
    }
    return ERR_OK;
}

static void add_metric(struct step_metric *to, const struct step_metric *m, u32 mark_count) {
    to->interim |= m->interim;
    to->device_ns += m->device_ns;
    to->rows_in += m->rows_in;
    to->bytes_read += m->bytes_read;
    to->bytes_written += m->bytes_written;
    to->bytes_moved += m->bytes_moved;
    to->bytes_packed += m->bytes_packed;
    to->bytes_fetched += m->bytes_fetched;
    to->probes += m->probes;
    to->op_cost += m->op_cost;
    to->launches += m->launches;
    to->waits += m->waits;
    to->bytes_spilled += m->bytes_spilled;
    to->device_peak = MAX_OF(to->device_peak, m->device_peak);
    to->tablets_pruned_rows += m->tablets_pruned_rows;
    for (u32 i = 0; i < mark_count; i++) {
        to->marks[i] = m->marks[i] < 0 ? to->marks[i] : MAX_OF(to->marks[i], 0) + m->marks[i];
    }
    to->kernel = m->kernel.registers ? m->kernel : to->kernel;
}

/* Every share with its rows and its time. */
static void report(struct exec *x, const struct share_plan *plan, struct share_run **runs,
                   u32 step_no) {
    struct arena *arena = exec_arena(x);
    struct step_metric *metric = &x->metrics[step_no];
    struct step_metric *shares = NEW_ARRAY(arena, struct step_metric, plan->count);
    struct text name, how;
    text_init(&name, arena);
    text_init(&how, arena);
    for (u32 i = 0; i < plan->count; i++) {
        const struct share_part *part = &plan->parts[i];
        const struct step_metric *m = &runs[i]->metrics[step_no];
        add_metric(metric, m, runs[i]->step->pipeline->mark_count);
        shares[i] = *m;
        shares[i].device_no = runs[i]->number;
        shares[i].ns = runs[i]->ns;
        shares[i].device = arena_printf(arena, "%s", m->device);
        text_print(&name, "%s%s", i ? " + " : "", m->device);
        text_print(&how, "%s%s %lld rows in %s%s%s%s", i ? ", " : "", m->device,
                   part->span.end - part->span.first, duration_of(runs[i]->ns).text,
                   m->how ? " (" : "", m->how ? m->how : "", m->how ? ")" : "");
        if (runs[i]->number != part->number) {
            text_print(&how, " as another device had no memory");
        }
    }
    metric->device_no = runs[0]->number;
    metric->device = name.ptr;
    metric->how = how.ptr;
    metric->shares = shares;
    metric->share_count = plan->count;
}

/* What shares took corrects the next estimates. */
static void learn(struct exec *x, const struct share_plan *plan, struct share_run **runs,
                  u32 step_no) {
    for (u32 i = 0; i < plan->count; i++) {
        const struct share_part *part = &plan->parts[i];
        const struct step_metric *m = &runs[i]->metrics[step_no];
        struct device *device = runs[i]->devices->list[part->number];
        struct device_rates rates = {0};
        if (runs[i]->number != part->number || m->interim || x->compiling_ns) {
            continue;
        }
        if (device->space && device->rates) {
            device->rates(device, x, &rates);
        }
        f64 sent = (f64)(m->bytes_moved - m->bytes_fetched);
        f64 moved = rates.bus_bytes_per_ns > 0 ? sent / rates.bus_bytes_per_ns : 0;
        f64 ns = (f64)runs[i]->ns;
        past_took(x->past, step_no, part->place, part->estimate_ns, MAX_OF(ns - moved, ns / 10));
    }
}

/* Whether a card that has a share lacks it. */
static bool is_missed(const struct exec *x, const struct run_devices *devices,
                      const struct share_plan *plan, u32 var) {
    const struct variable *v = &x->vars[var];
    bool missed = false;
    for (u32 i = 0; i < plan->count; i++) {
        u32 space = devices->list[plan->parts[i].number]->space;
        missed = missed || (space && (!v->copy || v->copy_space != space));
    }
    return missed;
}

/* Nobody may change what all shares read: it is in one piece, and in a form that all know. */
static FALLIBLE settle_inputs(struct exec *x, const struct run_devices *devices,
                              const struct share_plan *plan, const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        const u8 *roles = op_infos[op->code].roles;
        if (roles[OPERAND_B] == ROLE_rows) {
            TRY(variable_flatten(x, op->b));
        }
        if (roles[OPERAND_IMM] == ROLE_index && x->vars[op->imm].index &&
            is_missed(x, devices, plan, op->imm)) {
            TRY(index_plain(x, x->vars[op->imm].index));
        }
    }
    for (u32 s = 0; s < pipe->sink_count; s++) {
        struct variable *v = &x->vars[pipe->sinks[s].var];
        variable_drop_copy(v);
        if (!pipe->sinks[s].append) {
            variable_reset(v);
        }
        v->on_host = 1;
    }
    return arena_check(x->arena, x->err);
}

/* The error of the share that failed by itself, of several the first. */
static FALLIBLE first_error(struct exec *x, const struct share_plan *plan,
                            struct share_run **runs) {
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < plan->count; i++) {
            bool told = runs[i]->status == ERR_CANCELLED; /* maybe because of another */
            if (runs[i]->status && (pass || !told)) {
                *x->err = runs[i]->err;
                return runs[i]->status;
            }
        }
    }
    return ERR_OK;
}

static i64 rows_held(const struct exec *x, const struct pipeline *pipe) {
    i64 rows = 0;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        bool counts = pipe->sinks[s].kind != SINK_MARK;
        for (u32 before = 0; before < s; before++) { /* branches of one union */
            counts = counts && pipe->sinks[before].var != pipe->sinks[s].var;
        }
        rows += counts ? x->vars[pipe->sinks[s].var].rows : 0;
    }
    return rows;
}

wf_status hybrid_run(struct exec *x, const struct run_devices *devices, u32 step_no,
                     const struct step *step, const struct share_plan *plan) {
    struct share_run *runs[DEVICES_MOST];
    TRY(settle_inputs(x, devices, plan, step->pipeline));
    i64 held = rows_held(x, step->pipeline);
    x->shares = x->shares ? x->shares : NEW(exec_arena(x), struct shares);
    atomic_store(&x->shares->halted, 0);
    for (u32 i = 0; i < plan->count; i++) {
        runs[i] = &x->shares->runs[plan->parts[i].number];
        runs[i]->devices = devices;
        runs[i]->part = &plan->parts[i];
        runs[i]->step = step;
        runs[i]->step_no = step_no;
        open_share(x, runs[i]);
        lend_copies(x, runs[i], devices->list[plan->parts[i].number]->space);
    }
    run_shares(x, plan, runs);
    for (u32 i = 0; i < plan->count && !atomic_load(&x->shares->halted); i++) {
        if (is_refusal(runs[i]->status)) {
            take_over(x, plan, runs, i);
        }
    }
    wf_status status = first_error(x, plan, runs);
    bool faulted = atomic_load(&x->fault) != ~0ULL;
    if (!status && !faulted) {
        status = put_together(x, devices, plan, runs);
        x->metrics[step_no].rows_out += rows_held(x, step->pipeline) - held;
    }
    for (u32 i = 0; i < plan->count; i++) {
        close_share(x, runs[i]);
    }
    report(x, plan, runs, step_no);
    if (!status && !faulted) {
        learn(x, plan, runs, step_no);
    }
    return status;
}

/* --- boxes --- */

/* A device that has no room for a graph has cut it (run/trie.h); the session's others take from the same
 * queue, each in an execution of its own. The first one does not wait for them: the runtime does, when it has
 * left its device, whose workers may wait for it. */
static const struct share_part helper_part = {.number = 0};
_Static_assert((int)BOX_TAKERS >= (int)DEVICES_MOST, "a place for every device");

struct boxes *exec_boxes(const struct exec *x) {
    return x->whole && x->whole->shares ? x->whole->shares->boxes : NULL;
}

bool boxes_are_open(const struct exec *x) {
    return !x->whole && x->shares && x->shares->boxes;
}

void boxes_allow(struct exec *x, const struct run_devices *devices) {
    x->shares = x->shares ? x->shares : NEW(exec_arena(x), struct shares);
    x->shares->devices = devices;
}

static bool may_help(struct exec *x, const struct run_devices *devices, u32 number, u32 step_no,
                     const struct step *step) {
    struct device *device = devices->list[number];
    bool named = x->settings->device == DEVICE_GPU || x->settings->device == DEVICE_HYBRID;
    bool wanted = device->space || x->settings->device == DEVICE_HYBRID;
    return named && wanted && number != x->metrics[step_no].device_no &&
           (!device->refuses || !device->refuses(device, x, step));
}

static void help(void *arg) {
    struct share_run *r = arg;
    run_share(r, r->number);
}

wf_status boxes_open(struct exec *x, u32 step_no, const struct step *step, const struct trie *made,
                     struct boxes **out) {
    struct shares *s = x->shares;
    struct boxes *b = NEW(exec_arena(x), struct boxes);
    TRY(boxes_init(b, x, step, made));
    s->boxes = *out = b;
    atomic_store(&s->halted, 0);
    for (u32 i = 0; i < s->devices->count; i++) {
        struct share_run *r = &s->runs[i];
        r->devices = NULL;
        if (may_help(x, s->devices, i, step_no, step)) {
            r->devices = s->devices;
            r->part = &helper_part;
            r->step = step;
            r->step_no = step_no;
            r->number = i;
            open_share(x, r);
            b->takers++;
        }
    }
    for (u32 i = 0; i < s->devices->count; i++) {
        if (s->runs[i].devices) {
            s->runs[i].thread = thread_start(help, &s->runs[i]);
        }
    }
    return ERR_OK;
}

/* Who helped, and what came of it. */
static void report_boxes(struct exec *x, u32 step_no, const struct boxes *b) {
    struct shares *s = x->shares;
    struct step_metric *metric = &x->metrics[step_no];
    struct text how;
    text_init(&how, exec_arena(x));
    text_print(&how, "%lld boxes of %lld slabs, %s", b->boxes, b->slabs,
               b->trie.kept      ? "sorted before, and kept"
               : b->trie.by_card ? "sorted by the card"
                                 : "sorted by the host");
    if (b->takers > 1) {
        text_print(&how, ", %s took %lld", s->devices->list[metric->device_no]->name, boxes_slabs_of(b, x));
    }
    for (u32 i = 0; i < s->devices->count; i++) {
        struct share_run *r = &s->runs[i];
        if (r->devices && !r->status) {
            add_metric(metric, &r->metrics[step_no], 0);
            text_print(&how, ", %s helped with %lld", s->devices->list[r->number]->name, boxes_slabs_of(b, &r->x));
        }
    }
    metric->how = how.ptr;
}

static FALLIBLE write_count(struct exec *x, const struct step *step, u64 count) {
    variable_reset(&x->vars[step->dst]);
    struct chunk *out = chunk_new(x, &x->program->vars[step->dst], 1, false);
    if (!out) {
        return memory_refused(x->mem, x->err, 16);
    }
    ((i64 *)out->cols[0].data)[0] = (i64)count;
    variable_append(x, step->dst, out);
    return ERR_OK;
}

wf_status boxes_settle(struct exec *x, u32 step_no, const struct step *step, wf_status status) {
    struct shares *s = x->shares;
    struct boxes *b = s ? s->boxes : NULL;
    if (!b) {
        return status;
    }
    if (status && !is_refusal(status)) {
        atomic_store(&s->halted, 1);
    }
    for (u32 i = 0; i < s->devices->count; i++) {
        struct share_run *r = &s->runs[i];
        if (r->devices && r->thread) {
            thread_join(r->thread);
            if (r->status && !is_refusal(r->status) && (!status || is_refusal(status))) {
                *x->err = r->err;
                status = r->status;
            }
        }
    }
    if (is_refusal(status) && b->counted == b->trie.edges) { /* others had room */
        error_reset(x->err);
        status = ERR_OK;
    }
    if (!status && b->counted != b->trie.edges) { /* who had taken the rest had no room for it */
        status = error_set(x->err, ERR_DEVICE_MEMORY, -1, "out of memory in a box of the graph");
    }
    u64 count = 0;
    status = status ? status : boxes_total(b, x->err, &count);
    status = status ? status : write_count(x, step, count);
    if (!status) {
        x->rounds += b->boxes;
        report_boxes(x, step_no, b);
    }
    for (u32 i = 0; i < s->devices->count; i++) {
        if (s->runs[i].devices) {
            close_share(x, &s->runs[i]);
            s->runs[i].thread = NULL;
        }
    }
    boxes_fini(b);
    s->boxes = NULL;
    return status;
}

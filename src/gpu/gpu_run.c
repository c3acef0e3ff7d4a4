/* gpu_run.c: STEP_PIPELINE on the card: argument block, code, launches, what they report.
 *
 * Under auto a step starts on the virtual machine, or where there is none on a kernel woven in a
 * hurry, while its woven kernel is compiled in the background; where it reads few rows, once it ran some
 * times (decision 0091). It changes over between two launches:
 * all take the same arguments and leave the same state.
 *
 * Batches of a cached source follow each other on one stream. Those of a streamed or mapped one
 * take turns on several, and rows go to the host on a stream of their own. While the host waits for
 * the count of batch i, batches i + 1 to i + 3 are under way. Each waits only for its own slot, so
 * copies in, kernels and copies out overlap.
 *
 * Cancellation is looked at before every launch; a launch covers few enough rows to end within 100
 * ms. */
#include "gpu/gpu_capture.h"
#include "gpu/gpu_job.h"

#include "codes/loop.h"

#define ARGS_LEAST_BYTES (64LL << 10)
#define SYNC_ROWS (1LL << 28) /* rows in flight before cancellation is looked at again */
#define LAUNCH_NS 50000000    /* what launches of rows that multiply aim at */
#define LAUNCH_GROWTH 16
#define EVENTS_MOST 512 /* of launches whose times are not added up yet */
#define FIRST_MATCHES (1LL << 32) /* that the first launch may give */
#define FIRST_MATCHES_SIMT (1LL << 22)
#define MATCHES_MOST (1LL << 60)

/* --- the argument block --- */

static i64 take(i64 *bytes, i64 more) {
    i64 at = *bytes;
    *bytes = ALIGN_UP(at + MAX_OF(more, 1), 256);
    return at;
}

/* One for every batch whose rows go to the host, or for every variable. */
static i64 report_count(const struct job *j) {
    return MAX_OF(j->to_host ? j->batch_count : (i64)gpu_job_made_count(j), 1);
}

/* As many more for tables that are read out at once. */
static i64 report_bytes(const struct job *j) {
    return report_count(j) * (j->early_bytes ? 2 : 1) * REPORT_WORDS * 8;
}

/* Of the counts for EXPLAIN ANALYZE. */
static i64 count_bytes(const struct job *j) {
    return j->plan.count_places ? (i64)COUNT_COPIES * COUNT_PLACES * 8 : 0;
}

static void lay_out_batch(struct job *j, struct batch *b) {
    i64 *bytes = &j->layout.bytes;
    b->segs_at = take(bytes, b->count * j->col_count * (i64)sizeof(struct kseg));
    b->rows_at = take(bytes, b->count * 8);
    b->starts_at = take(bytes, b->count * 8);
    b->zone_count = (u32)((b->max_rows + ZONE_ROWS - 1) >> ZONE_SHIFT);
    b->zones_at = -1;
    b->gone_at = gpu_job_gone_bits(j) ? take(bytes, b->count * 8) : -1;
    for (i64 p = b->first; p < b->first + b->count && b->zones_at < 0; p++) {
        if (j->parts[p].keep) {
            b->zones_at = take(bytes, b->count * b->zone_count);
        }
    }
}

static void lay_out_fixed(struct job *j) {
    i64 *bytes = &j->layout.bytes;
    *bytes = 0;
    for (u32 i = 0; i < j->sig_count; i++) {
        j->sigs[i].ops_at = take(bytes, j->plan.ops.count * (i64)sizeof(struct kop));
    }
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        i64 words = j->plan.aggs[k]->word_count;
        j->layout.words_at[k] = take(bytes, words);
        j->layout.word_regs_at[k] = take(bytes, words * (i64)sizeof(u16));
    }
    j->layout.limbs_at = take(bytes, j->plan.limbs.count * (i64)sizeof(struct klimbs));
    for (i64 i = 0; i < j->batch_count; i++) {
        lay_out_batch(j, &j->batches[i]);
    }
}

enum { HEAVY_BYTES = (1 + HEAVY_ROWS) * 4 };

static void lay_out(struct job *j) {
    const struct gpu_plan *plan = &j->plan;
    i64 *bytes = &j->blob_bytes;
    *bytes = 0;
    (void)take(bytes, 8 * gpu_agg_col_count(j, plan->agg_count)); /* for gpu_job_sink_end */
    j->lits_at = take(bytes, (plan->lits.count + plan->patterns.count) * (i64)sizeof(struct klit));
    j->lit_bytes_at = take(bytes, gpu_job_literal_bytes(j));
    j->luts_at = take(bytes, plan->luts.count * (i64)sizeof(struct kcol));
    j->cols_at = take(bytes, plan->cols.count * (i64)sizeof(struct kcol));
    j->indexes_at = take(bytes, plan->indexes.count * (i64)sizeof(struct kindex));
    j->interns_at = take(bytes, plan->interns.count * (i64)sizeof(struct kintern));
    j->texts_in_at = take(bytes, gpu_job_text_room(j, NULL));
    i64 outs = gpu_job_out_places(j);
    j->outs_at = take(bytes, outs * j->slot_count * (i64)sizeof(struct kout));
    j->sinks_at = take(bytes, plan->rows_count * (i64)sizeof(struct ksink));
    j->heavy_at = j->heavy_least ? take(bytes, HEAVY_BYTES * j->slot_count) : 0;
    j->reports_at = take(bytes, report_bytes(j) + count_bytes(j) * (plan->agg_count > 1 ? 2 : 1));
    j->counts_at = j->reports_at + report_bytes(j);
    for (u32 k = 0; k < plan->agg_count; k++) {
        j->aggs[k].keeps_at = take(bytes, plan->keeps[k].count * (i64)sizeof(struct kkeep));
    }
    for (i64 i = 0; i < j->batch_count; i++) {
        j->batches[i].texts_at = take(bytes, gpu_job_text_room(j, &j->batches[i]));
        bool in_runs = j->aggs[0].shape.run_rows != 0;
        j->batches[i].bounds_at = in_runs ? take(bytes, j->batches[i].count * 8) : -1;
    }
}

static FALLIBLE fill_operands(struct job *j) {
    const struct gpu_plan *plan = &j->plan;
    struct exec *x = j->x;
    i64 *moved = &j->metric->bytes_moved;
    struct klit *lits = (struct klit *)(void *)(j->blob + j->lits_at);
    struct kcol *luts = (struct kcol *)(void *)(j->blob + j->luts_at);
    struct kcol *cols = (struct kcol *)(void *)(j->blob + j->cols_at);
    for (i64 i = 0; i < plan->lits.count; i++) {
        u32 lit = plan->lits.items[i];
        memset(&lits[i], 0, sizeof lits[i]);
        memcpy(&lits[i], &x->lits[lit], kind_bytes[x->program->lit_kinds[lit]]);
        if (x->program->lit_kinds[lit] == KIND_STR) {
            memcpy(&lits[i], &j->lit_views[i], sizeof(str));
        }
    }
    for (i64 i = 0; i < plan->patterns.count; i++) {
        memcpy(&lits[plan->lits.count + i], &j->pattern_views[i], sizeof(str));
    }
    for (i64 i = 0; i < plan->luts.count; i++) {
        TRY(gpu_var_lut(j->g, x, plan->luts.items[i], &luts[i], moved));
    }
    for (i64 i = 0; i < plan->cols.count; i++) {
        if (gpu_pack_is(x, plan, i)) {
            cols[i] = gpu_pack_col(&plan->packed_by[i]);
            continue;
        }
        TRY(gpu_var_col(j->g, x, plan->cols.items[i].var, plan->cols.items[i].col, &cols[i],
                        moved));
    }
    if (plan->indexes.count) {
        memcpy(j->blob + j->indexes_at, j->indexes,
               sizeof(struct kindex) * (size_t)plan->indexes.count);
    }
    if (plan->interns.count) {
        memcpy(j->blob + j->interns_at, j->interns,
               sizeof(struct kintern) * (size_t)plan->interns.count);
    }
    j->text_in_count = gpu_job_texts_in(j, (struct ktext *)(void *)(j->blob + j->texts_in_at));
    return ERR_OK;
}

static void fill_words(struct job *j) {
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        const struct sink *sink = j->plan.aggs[k];
        u16 *regs = (u16 *)(void *)(j->fixed + j->layout.word_regs_at[k]);
        for (u32 w = 0; w < sink->word_count; w++) {
            j->fixed[j->layout.words_at[k] + w] = sink->words[w];
            u16 reg = sink->word_regs[w];
            regs[w] = j->plan.is_limb[reg] ? (u16)AGG_NO_REG : j->plan.places[reg];
        }
    }
    struct klimbs *limbs = (struct klimbs *)(void *)(j->fixed + j->layout.limbs_at);
    for (i64 i = 0; i < j->plan.limbs.count; i++) {
        const struct plan_limbs *run = &j->plan.limbs.items[i];
        limbs[i] = (struct klimbs){j->plan.places[run->reg],
                                   j->plan.places[run->lsb],
                                   (u16)run->word,
                                   (u16)run->count,
                                   run->first,
                                   run->code == OP_FSQUARE_F64};
    }
}

static void fill_sink(struct job *j) {
    struct kout *outs = (struct kout *)(void *)(j->blob + j->outs_at);
    i64 count = gpu_job_out_places(j);
    for (i32 s = 0; s < j->slot_count; s++) {
        gpu_job_sink_outs(j, s, outs + s * count);
    }
    gpu_job_sinks(j, (struct ksink *)(void *)(j->blob + j->sinks_at));
    gpu_agg_early_cols(j, (u64 *)(void *)j->blob);
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        gpu_agg_keeps(j, k, (struct kkeep *)(void *)(j->blob + j->aggs[k].keeps_at));
    }
    u64 *reports = (u64 *)(void *)(j->blob + j->reports_at);
    for (i64 r = 0; r < report_count(j); r++) {
        reports[r * REPORT_WORDS + REPORT_FAULT] = ~0ULL;
        reports[r * REPORT_WORDS + REPORT_ROWS] = r == 0 ? (u64)j->old_rows : 0;
        /* The virtual machine's launches for further aggregations count the same rows again. */
        i64 counts_at = j->counts_at + (r && j->plan.agg_count ? count_bytes(j) : 0);
        reports[r * REPORT_WORDS + REPORT_COUNTS] = j->g->args_block->addr + (u64)counts_at;
    }
}

static FALLIBLE fill_batch(struct job *j, i64 i) {
    struct batch *b = &j->batches[i];
    struct kseg *segs = (struct kseg *)(void *)(j->fixed + b->segs_at);
    i64 *rows = (i64 *)(void *)(j->fixed + b->rows_at);
    i64 *starts = (i64 *)(void *)(j->fixed + b->starts_at);
    i64 slot_at = 0;
    for (u32 c = 0; c < j->col_count; c++) {
        for (i64 p = 0; p < b->count; p++) {
            TRY(gpu_job_segment(j, b, b->first + p, c, &slot_at, (i32)(i % j->slot_count),
                                &segs[(i64)c * b->count + p]));
        }
    }
    gpu_job_part_texts(j, b, segs);
    for (i64 p = 0; p < b->count; p++) {
        const struct part *part = &j->parts[b->first + p];
        rows[p] = part->rows;
        if (b->gone_at >= 0) {
            ((u64 *)(void *)(j->fixed + b->gone_at))[p] = part->gone_addr;
        }
        starts[p] = part->row_start;
        if (b->zones_at >= 0) {
            u8 *zones = j->fixed + b->zones_at + p * b->zone_count;
            i64 count = (part->rows + ZONE_ROWS - 1) >> ZONE_SHIFT;
            memset(zones, 1, b->zone_count);
            if (part->keep) {
                memcpy(zones, part->keep, (size_t)count);
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE fill_fixed(struct job *j) {
    for (u32 i = 0; i < j->sig_count; i++) {
        gpu_plan_forms(&j->plan, j->sigs[i].cols,
                       (struct kop *)(void *)(j->fixed + j->sigs[i].ops_at));
    }
    fill_words(j);
    if (j->keeps) {
        j->scan->segs.count = 0;
    }
    for (i64 b = 0; b < j->batch_count; b++) {
        TRY(fill_batch(j, b));
    }
    return ERR_OK;
}

/* Makes room for the block on both sides: in pinned memory all of it, on the card but for a fixed
 * part that the scan keeps. */
static FALLIBLE reserve_args(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 all = j->blob_bytes + (j->fixed_done ? 0 : j->layout.bytes);
    i64 here = j->keeps ? j->blob_bytes : all;
    TRY(gpu_pinned_reserve(g, &g->args, all, err));
    j->early_at = ALIGN_UP(report_bytes(j) + count_bytes(j), 64);
    i64 behind = MAX_OF(j->early_bytes, gpu_room_bytes(j));
    j->held_at = ALIGN_UP(j->early_at + behind, 64);
    TRY(gpu_pinned_reserve(g, &g->reports, j->held_at + j->plan.interns.count * INTERN_COUNTS * 8, err));
    if (g->args_block && g->args_block->bytes < here + 64) {
        gpu_heap_free(g->card, g->args_block);
        g->args_block = NULL;
    }
    if (!g->args_block) {
        TRY(gpu_alloc(g, MAX_OF(here, ARGS_LEAST_BYTES), &g->args_block, err));
    }
    if (j->keeps && !j->fixed_done) {
        gpu_heap_free(g->card, j->scan->fixed);
        j->scan->fixed = NULL;
        TRY(gpu_alloc(g, j->layout.bytes, &j->scan->fixed, err));
    }
    return ERR_OK;
}

static FALLIBLE send_args(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (!j->fixed_done) {
        lay_out_fixed(j);
    }
    lay_out(j);
    TRY(reserve_args(j));
    j->blob = g->args.host;
    j->fixed = j->blob + j->blob_bytes;
    memset(j->blob, 0, (size_t)(j->blob_bytes + (j->fixed_done ? 0 : j->layout.bytes)));
    u64 addr = g->args_block->addr;
    i64 bytes = j->blob_bytes;
    if (!j->fixed_done) {
        TRY(fill_fixed(j));
        j->fixed_addr = j->keeps ? j->scan->fixed->addr : addr + (u64)bytes;
        bytes += j->keeps ? 0 : j->layout.bytes;
    }
    gpu_job_literals(j, j->blob + j->lit_bytes_at, addr + (u64)j->lit_bytes_at);
    TRY(fill_operands(j));
    fill_sink(j);
    for (i64 i = 0; i < j->batch_count; i++) {
        struct batch *b = &j->batches[i];
        b->text_count = gpu_job_texts_out(j, b, (struct ktext *)(void *)(j->blob + b->texts_at));
        if (b->bounds_at >= 0) {
            memcpy(j->blob + b->bounds_at, j->tile_starts + b->first, (size_t)b->count * 8);
        }
    }
    CU(g->api->copy_to_device(addr, j->blob, (size_t)bytes, g->streams[0]));
    if (j->keeps && !j->fixed_done) {
        CU(g->api->copy_to_device(j->fixed_addr, j->fixed, (size_t)j->layout.bytes, g->streams[0]));
        j->fixed_done = 1;
    }
    return ERR_OK;
}

/* What was queued on the first stream so far comes before everything on the others. */
static FALLIBLE spread(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    void *ready = NULL;
    if (j->slot_count < 2) {
        return ERR_OK;
    }
    TRY(gpu_event(g, 0, &ready, err));
    CU(g->api->event_record(ready, g->streams[0]));
    for (i32 s = 1; s < j->slot_count; s++) {
        CU(g->api->stream_wait_event(g->streams[s], ready, 0));
    }
    return ERR_OK;
}

/* --- code --- */

/* Up to this share of keys that are there, the rows that are left go on as a list. */
#ifdef WF_HARD
static const f64 FEW_SHARE = 2.0; /* all */
#else
static const f64 FEW_SHARE = 0.25;
#endif

/* From this share on a bitmap is asked when its turn comes, where others leave few rows: so TPC-H 21's
 * orders (0.49), not SSB 4.1's parts (0.4), which took 0.81 ms asked first and 1.18 then. */
static const f64 MOST_SHARE = 0.45;

/* So that bitmaps that leave fewest rows are asked first. */
static u8 how_few(f64 share) {
    u8 few = 0;
    for (f64 most = FEW_SHARE; few + 1 < WEAVE_FEW && share <= most; most /= 4.0) {
        few++;
    }
    return few;
}

/* Whether numbers of 32 bits, computed with in 32, meet the same bits as in 64: none that is counted
 * lies outside of their range, or only the lowest bits are looked at. */
static bool is_narrow(const struct kindex *index, struct weave_field field) {
    const struct kfilter *filter = &index->filter;
    i64 lo = filter->bits ? filter->lo : index->key_lo;
    u64 count = filter->bits ? filter->count : index->slot_count;
    bool low_bits = filter->bits && filter->mask <= 0xffffffffu;
    bool whole = !filter->bits || filter->mask == ~(u64)0;
    i64 least = low_bits ? 0 : I32_MIN;
    i64 most = low_bits ? 0xffffffffLL : I32_MAX;
    bool moved = filter->bits && filter->shift && !field.count;
    return !moved && (low_bits || whole) && count > 0 && count <= 0xffffffffu && lo >= least && lo <= most &&
           count <= (u64)(most - lo) + 1;
}

/* Lists of rows lie beside the tables of an aggregation where a block may have so many bytes. */
#define LISTS_LEAST_SHARED (154 << 10)

/* And the lowest bits of keys beside both. */
#define NEAR_LEAST_SHARED (LISTS_LEAST_SHARED + (int)NEAR_BITS / 8)
/* A list names the rows of a launch by 32 bits. */
#define LISTED_ROWS (1LL << 32)

/* What the text is made for. */
static void describe_weave(struct job *j, struct sig *sig) {
    struct weave_index *indexes =
        NEW_ARRAY(j->x->arena, struct weave_index, j->plan.indexes.count + 1);
    for (i64 i = 0; i < j->plan.indexes.count; i++) {
        const struct kindex *index = &j->indexes[i];
        const struct gpu_var *gv = j->x->vars[j->plan.indexes.items[i]].copy;
        indexes[i] =
            (struct weave_index){(u8)index->form, (b8)index->unique, index->filter.bits != NULL,
                                 how_few(gv->share), gv->field,
                                 index->near && j->g->card->shared_max >= NEAR_LEAST_SHARED,
                                 is_narrow(index, gv->field), gv->share > MOST_SHARE,
                                 index->apart != 0};
    }
    memset(&sig->weave, 0, sizeof sig->weave);
    sig->weave.plan = &j->plan;
    sig->weave.cols = sig->cols;
    sig->weave.indexes = indexes;
    for (i64 i = 0; i < MIN_OF(j->plan.cols.count, 64); i++) {
        sig->weave.packed |= (u64)gpu_pack_is(j->x, &j->plan, i) << i;
    }
    sig->weave.gone = gpu_job_gone_bits(j) != NULL;
    sig->weave.ranged = j->ranged;
    sig->weave.pieces = gpu_weave_pieces(j->x, j->pipe);
    sig->weave.lists =
        j->plan.sink->kind != SINK_AGG || j->g->card->shared_max >= LISTS_LEAST_SHARED;
    sig->weave.roomy = j->g->card->shared_max >= LISTS_LEAST_SHARED;
    sig->weave.heavy = j->heavy_least && !j->aggs[0].shape.run_rows;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        gpu_agg_weave(&j->aggs[k].shape, k, &sig->weave);
    }
}

/* Under auto: whether the step is worth a compiler's time: for its rows, or since the program runs again and again;
 * rounds of one recursion do not tell that. */
static bool is_worth_weaving(const struct job *j) {
#ifdef WF_HARD
    UNUSED(j);
    return true;
#else
    bool many = MAX_OF(j->source_rows, j->range_rows) >= WEAVE_LEAST_ROWS;
    i64 runs = atomic_fetch_add(&j->kept->small_runs, !many && !j->x->rounds);
    return many || runs >= WEAVE_LEAST_RUNS;
#endif
}

/* NULL: use the virtual machine. A step with an opcode that it does not have, or on a card that has
 * no machine, waits for a kernel that is compiled quickly. */
wf_status gpu_job_woven(struct job *j, struct sig *sig, void **out) {
    struct woven_ask ask = {.text = &sig->text, .how = WOVEN_WAIT, .x = j->x};
    i64 code = j->x->settings->gpu_code;
    *out = sig->function;
    if (code == CODE_AUTO) {
        /* The machine goes round as often as a row has matches: longer than a compiler in a hurry takes. */
        bool machine = j->g->card->codes.has_machine && !j->plan.woven_op && !j->heavy_least;
        ask.how = machine ? WOVEN_LATER : WOVEN_QUICKLY;
        i64 rows = MAX_OF(j->source_rows, j->range_rows);
        ask.gain = is_worth_weaving(j) ? MAX_OF(rows, 1) * j->pipe->op_count : 0;
    }
    if (sig->function || j->vm_only || (code == CODE_VM && !j->plan.woven_op) ||
        (ask.how == WOVEN_LATER && !ask.gain)) {
        return ERR_OK;
    }
    struct gpu_card *card = j->g->card;
    if (!sig->text.len) {
        describe_weave(j, sig);
        sig->function = gpu_step_woven(card, j->kept, &sig->weave);
    }
    *out = sig->function;
    if (sig->function) {
        return ERR_OK;
    }
    if (!sig->text.len) {
        text_init(&sig->text, j->x->arena);
        gpu_weave_text(&sig->weave, &sig->text);
    }
    TRY(gpu_woven(card, &ask, out, j->x->err));
    j->used_quick |= ask.is_quick;
    j->metric->interim |= ask.is_coming;
    if (*out) {
        atomic_store(&j->kept->has_code, 1);
    }
    if (*out && !ask.is_quick) {
        sig->function = *out;
        gpu_step_keep_woven(card, j->kept, &sig->weave, sig->function);
    }
    return ERR_OK;
}

/* --- launches --- */

static void set_tiles(const struct job *j, const struct batch *b, i64 tile_rows,
                      struct kargs *args) {
    i64 most = (b->max_rows + tile_rows - 1) / tile_rows;
    while ((1LL << args->tile_shift) < most) {
        args->tile_shift++;
    }
    i64 last = j->parts[b->first + b->count - 1].rows;
    args->tile_count =
        ((u64)(b->count - 1) << args->tile_shift) + (u64)((last + tile_rows - 1) / tile_rows);
}

/* Slots for the best text of every key: more keys than that are filed as they come. */
static i64 best_slots(const struct job *j) {
    enum { BEST_SLOTS = 1 << 16, BEST_SLOTS_SIMT = 4 };
    return j->plan.best_count ? j->g->api->is_simt ? BEST_SLOTS_SIMT : BEST_SLOTS : 0;
}

static struct kargs batch_args(const struct job *j, i64 i) {
    const struct batch *b = &j->batches[i];
    u64 base = j->g->args_block->addr;
    const struct sink *sink = j->plan.sink;
    i64 outs =
        (i64)sizeof(struct kout) * gpu_job_out_places(j) * (i % j->slot_count);
    i64 report = j->to_host ? i * REPORT_WORDS * 8 : 0;
    /* A kernel that may stop asks for no more room: it must have room for all it may give. */
    bool stops = sink->kind == SINK_ROWS && j->capacity >= sink->limit;
    i64 limit = stops ? sink->limit : -1;
#define AT(type, at) DEV(type, base + (u64)(at))
#define FIXED(type, at) DEV(type, j->fixed_addr + (u64)(at))
    struct kargs args = {
        .segs = FIXED(const struct kseg *, b->segs_at),
        .tablet_rows =
            j->count_at ? DEV(const i64 *, j->count_at) : FIXED(const i64 *, b->rows_at),
        .row_starts = FIXED(const i64 *, b->starts_at),
        .zones = b->zones_at < 0 ? NULL : FIXED(const u8 *, b->zones_at),
        .gone = b->gone_at < 0 ? NULL : FIXED(const u64 *const *, b->gone_at),
        .zone_count = b->zone_count,
        .tablet_count = (u32)b->count,
        .op_count = (u32)j->plan.ops.count,
        .ops = FIXED(const struct kop *, j->sigs[b->sig].ops_at),
        .hoist_count = j->plan.hoist_count,
        .slot_bytes = (u32)j->plan.slot_bytes,
        .lits = AT(const struct klit *, j->lits_at),
        .luts = AT(const struct kcol *, j->luts_at),
        .cols = AT(const struct kcol *, j->cols_at),
        .indexes = AT(const struct kindex *, j->indexes_at),
        .interns = AT(const struct kintern *, j->interns_at),
        .outs = AT(const struct kout *, j->outs_at + outs),
        .out_count = (u32)gpu_job_out_count(j),
        .emit = j->set != NULL,
        .capacity = j->capacity,
        .limit = limit,
        .report = AT(u64 *, j->reports_at + report),
        .heap = DEV(u8 *, j->made ? j->made->addr : 0),
        .heap_bytes = (u64)j->made_bytes,
        .bests = DEV(u64 *, j->bests ? j->bests->addr : 0),
        .best_slots = (u64)best_slots(j),
        .texts_in = {.items = AT(const struct ktext *, j->texts_in_at), .count = j->text_in_count},
        .texts_out = {.items = AT(const struct ktext *, b->texts_at), .count = b->text_count},
        .heavy_least = j->heavy_least};
    if (j->plan.rows_count > 1) {
        args.sinks = AT(const struct ksink *, j->sinks_at);
    }
    if (j->heavy_least) {
        args.heavy = AT(u32 *, j->heavy_at + HEAVY_BYTES * (i % j->slot_count));
    }
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        args.aggs[k] = gpu_agg_args(j, k);
        args.aggs[k].bound_starts = b->bounds_at < 0 ? NULL : AT(const u64 *, b->bounds_at);
    }
#undef FIXED
#undef AT
    return args;
}

/* A batch is one launch, unless it has more rows than one may take: then launches follow each other
 * by tiles. Of rows that may match any number of others the first launch takes few, and later ones
 * as many as the time of those before allows. */
struct launch {
    void *function; /* NULL: the virtual machine */
    u64 tile;       /* the first that is left; 0 again when none is */
    i64 step;       /* tiles of the next launch; 0 = not known yet */
};

static i64 most_rows(const struct job *j) {
    return j->g->api->is_simt ? LAUNCH_ROWS_SIMT : LAUNCH_ROWS;
}

/* How many matches a row may have; 1 when none can have several. */
static i64 most_matches(const struct job *j) {
    i64 matches = 1;
    for (u32 i = 0; i < j->pipe->op_count; i++) {
        const struct op *op = &j->pipe->ops[i];
        bool each = op->code == OP_MATCH || op->code == OP_EACH;
        u32 number = j->plan.op_imm[i];
        if (op->code == OP_MEET) {
            struct meet_list lists[MEET_LISTS_MOST];
            each = gpu_meet_lists(&j->plan, i, lists) > 0;
            number = lists[0].index;
        }
        if (each && !j->indexes[number].unique) {
            const struct gpu_var *index = j->x->vars[j->plan.indexes.items[number]].copy;
            i64 most = MAX_OF(index->most_matches, 1);
            matches = MIN_OF(matches, MATCHES_MOST / most) * most;
        }
    }
    return MAX_OF(matches, 1);
}

#define HEAVY_LEAST 16384 /* matches, which keep a block busy for as long as launching takes */
#define HEAVY_LEAST_SIMT 64

/* Whether rows of the first lookup that gives several may have that many. Rows that are counted on
 * their way are counted once. */
static u32 heavy_least(const struct job *j) {
    u32 least = j->g->api->is_simt ? HEAVY_LEAST_SIMT : HEAVY_LEAST;
    for (u32 i = 0; i < j->pipe->op_count && !j->ranged && !j->plan.count_places; i++) {
        const struct op *op = &j->pipe->ops[i];
        u32 number = j->plan.op_imm[i];
        if (op->code == OP_MEET) {
            return 0;
        }
        if (op->code == OP_MATCH && !j->indexes[number].unique) {
            const struct gpu_var *index = j->x->vars[j->plan.indexes.items[number]].copy;
            return index->most_matches >= least ? least : 0;
        }
    }
    return 0;
}

static void cut_launch(const struct job *j, i64 tile_rows, struct launch *l, struct kargs *args) {
    i64 tiles = (i64)args->tile_count;
    i64 matches = j->each_gives;
    i64 most = MAX_OF(most_rows(j) / tile_rows, 1);
    if (!l->step) {
        i64 few = (j->g->api->is_simt ? FIRST_MATCHES_SIMT : FIRST_MATCHES) / matches / tile_rows;
        l->step = matches > 1 ? MAX_OF(few, 1) : most;
    }
    l->step = MIN_OF(l->step, most);
    bool cut = matches > 1 || j->place == PLACE_CACHED || tiles > LISTED_ROWS / tile_rows;
    i64 end = cut ? MIN_OF((i64)l->tile + l->step, tiles) : tiles;
    args->tile_first = l->tile;
    args->tile_count = (u64)end;
    l->tile = end < tiles ? (u64)end : 0;
}

/* The kernel and its tiles. */
static FALLIBLE choose_code(struct job *j, struct batch *b, struct launch *l, struct kargs *args,
                            void **out_function, i64 *out_tile_rows, i64 *out_shared) {
    struct sig *sig = &j->sigs[b->sig];
    bool rows = j->plan.sink->kind == SINK_ROWS;
    if (l->tile == 0) { /* a tile means other rows to the other code */
        TRY(gpu_job_woven(j, sig, &l->function));
    }
    *out_function = l->function;
    *out_tile_rows = (i64)WOVEN_BLOCK * sig->weave.rows_per_thread;
    *out_shared = sig->weave.shared_bytes;
    j->used_woven |= sig->function != NULL;
    j->used_vm |= l->function == NULL;
    if (!l->function) {
        bool large = j->plan.tile_rows == VM_TILE_LARGE;
        TRY(gpu_kernel(j->g->card,
                       !rows   ? KERNEL_VM_AGG
                       : large ? KERNEL_VM_ROWS
                               : KERNEL_VM_ROWS_SMALL,
                       j->x, out_function, j->x->err));
        *out_tile_rows = j->plan.tile_rows;
        *out_shared = j->plan.slot_bytes + (rows ? 2 * j->plan.tile_rows : 0);
    }
    set_tiles(j, b, *out_tile_rows, args);
    return ERR_OK;
}

static FALLIBLE capture_before(struct job *j, const struct batch *b, struct gpu_grid grid,
                               const struct kargs *args) {
    struct sig *sig = &j->sigs[b->sig];
    if (!sig->text.len) { /* the kernel was found by its description */
        text_init(&sig->text, j->x->arena);
        gpu_weave_text(&sig->weave, &sig->text);
    }
    struct gpu_launched launched = {(u32)(j->metric - j->x->metrics),
                                    j->step->label,
                                    {sig->text.ptr, sig->text.len},
                                    grid,
                                    args};
    return gpu_capture_before(j->g, j->x, &launched);
}

/* Code that is about to be launched. */
struct start {
    void *function, *stream;
    u32 threads;
    i64 shared;                   /* without the tables of aggregations */
    const struct batch *captured; /* NULL: the launch is not recorded */
};

static FALLIBLE start_kernel(struct job *j, const struct start *s, struct kargs args) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 shared = s->shared + gpu_agg_shared(j, s->threads, s->shared, &args);
    i32 per_sm = 1;
    TRY(gpu_blocks_per_sm(g, s->function, s->threads, shared, &per_sm, err));
    i64 most = (i64)g->card->sm_count * per_sm;
    i64 blocks = args.heavy_turn ? most : MIN_OF((i64)(args.tile_count - args.tile_first), most);
    struct gpu_grid grid = {blocks, s->threads, shared};
    if (s->captured) {
        TRY(capture_before(j, s->captured, grid, &args));
    }
    j->launched = 1;
    TRY(gpu_launch(g, s->function, grid, s->stream, &args, err));
    j->metric->launches++;
    return s->captured ? gpu_capture_after(g, j->x) : ERR_OK;
}

/* The virtual machine makes one aggregation after the other. */
static FALLIBLE start_machine(struct job *j, const struct start *s, const struct kargs *args) {
    for (u32 k = 0; k < MAX_OF(j->plan.agg_count, 1); k++) {
        struct kargs one = *args;
        one.emit = j->plan.agg_count ? k : args->emit;
        one.aggs[0] = args->aggs[k];
        one.report += k * REPORT_WORDS;
        TRY(start_kernel(j, s, one));
    }
    return ERR_OK;
}

/* Rows with very many matches are left to a launch of their own, in which all blocks share them. */
static FALLIBLE start_woven(struct job *j, const struct start *s, const struct sig *sig,
                            const struct kargs *args) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (!sig->weave.heavy) {
        return start_kernel(j, s, *args);
    }
    CU(g->api->set_bytes((u64)(size_t)args->heavy, 0, sizeof(u32), s->stream));
    TRY(start_kernel(j, s, *args));
    struct start second = *s;
    struct kargs heavy = *args;
    second.captured = NULL;
    heavy.tile_count = heavy.tile_first;
    heavy.heavy_turn = 1;
    return start_kernel(j, &second, heavy);
}

static FALLIBLE launch_batch(struct job *j, i64 i, void *stream, struct launch *l) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct batch *b = &j->batches[i];
    struct kargs args = batch_args(j, i);
    struct start start = {.stream = stream};
    i64 tile_rows = 1;
    TRY(choose_code(j, b, l, &args, &start.function, &tile_rows, &start.shared));
    start.threads = l->function ? WOVEN_BLOCK : VM_BLOCK;
    start.captured = j->x->capture && l->function ? b : NULL;
    cut_launch(j, tile_rows, l, &args);
    void *first = NULL;
    void *last = NULL;
    TRY(gpu_event(g, j->event_base + 1 + j->event_count, &first, err));
    TRY(gpu_event(g, j->event_base + 2 + j->event_count, &last, err));
    j->event_count += 2;
    CU(g->api->event_record(first, stream));
    TRY(l->function ? start_woven(j, &start, &j->sigs[b->sig], &args)
                    : start_machine(j, &start, &args));
    CU(g->api->event_record(last, stream));
    return ERR_OK;
}

static void progress(struct job *j, const struct batch *b) {
    work_rows(j->x, b->rows);
}

/* What the launches so far took, once they are done. */
static FALLIBLE add_times(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    void **events = g->events + j->event_base;
    for (i64 e = 0; e < j->event_count; e += 2) {
        float ms = 0;
        CU(g->api->event_elapsed(&ms, events[1 + e], events[2 + e]));
        j->metric->device_ns += (i64)((f64)ms * 1e6);
    }
    j->event_count = 0;
    return ERR_OK;
}

/* How the pipeline uses an interner. */
struct intern_use {
    bool text, adds, best;
};
static struct intern_use intern_use(const struct job *j, i64 number) {
    struct intern_use use = {0};
    for (u32 i = 0; i < j->pipe->op_count; i++) {
        const struct op *op = &j->pipe->ops[i];
        bool names = op_infos[op->code].roles[OPERAND_IMM] == ROLE_interner;
        if (names && j->plan.op_imm[i] == number) {
            use.text = use.text || op->code == OP_INTERN;
            use.adds = use.adds || gpu_op_adds(op);
            use.best = use.best || (op->code == OP_INTERN && op->b > 1);
        }
    }
    return use;
}

static i64 held_at(const struct job *j, i64 number) {
    return j->held_at + number * INTERN_COUNTS * 8;
}

/* Queues copies of what interners hold. */
static FALLIBLE send_held(struct job *j) {
    for (i64 i = 0; i < j->plan.interns.count; i++) {
        const struct gpu_var *gv = j->x->vars[j->plan.interns.items[i]].copy;
        if (intern_use(j, i).adds) {
            TRY(gpu_intern_send(j->g, gv, j->g->reports.host + held_at(j, i), j->x->err));
        }
    }
    return ERR_OK;
}

static FALLIBLE read_report(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    for (i32 s = 1; s < j->slot_count; s++) { /* launches of other batches have times, too */
        CU(gpu_sync(g, g->streams[s]));
    }
    CU(g->api->copy_to_host(g->reports.host, g->args_block->addr + (u64)j->reports_at,
                            (size_t)report_bytes(j), g->streams[0]));
    TRY(send_held(j));
    CU(gpu_sync(g, g->streams[0]));
    return add_times(j);
}

/* Whether the rest of a source need not be looked at: a limit is reached, or all must be done again
 * with more room anyway. Rows that do not fit are counted, unless no card could hold them. */
static bool has_enough(const struct job *j) {
    u64 report[REPORT_WORDS];
    const struct sink *sink = j->plan.sink;
    memcpy(report, j->g->reports.host, sizeof report);
    for (u32 k = 1; k < gpu_job_made_count(j); k++) {
        u64 more[REPORT_WORDS];
        memcpy(more, j->g->reports.host + k * sizeof more, sizeof more);
        report[REPORT_RETRY] |= more[REPORT_RETRY];
    }
    i64 rows = (i64)report[REPORT_ROWS];
    bool hopeless = rows > j->g->card->heap.budget_bytes / MAX_OF(gpu_job_row_bytes(j), 1);
    return (report[REPORT_RETRY] & (RETRY_TABLE | RETRY_INTERN | RETRY_ORDER)) ||
           ((report[REPORT_RETRY] & RETRY_OUTPUT) && hopeless) ||
           (sink->kind == SINK_ROWS && sink->limit >= 0 && rows >= sink->limit);
}

/* All launches of a batch; between them the host looks at what they gave. */
static FALLIBLE run_batch(struct job *j, i64 b, void *stream) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct launch l = {NULL, 0, 0};
    do {
        TRY(exec_check(j->x));
        i64 start = clock_ns();
        TRY(launch_batch(j, b, stream, &l));
        if (l.tile) {
            CU(gpu_sync(g, stream));
            if (!j->to_host) {
                TRY(read_report(j));
                l.tile = has_enough(j) ? 0 : l.tile;
            }
            i64 ns = MAX_OF(clock_ns() - start, 1);
            i64 factor = MIN_OF(LAUNCH_NS / ns, LAUNCH_GROWTH);
            l.step = factor > 0 ? l.step * factor : MAX_OF(l.step / 2, 1);
        }
    } while (l.tile);
    progress(j, &j->batches[b]);
    return ERR_OK;
}

static FALLIBLE run_cached(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 in_flight = 0;
    for (i64 b = 0; b < j->batch_count; b++) {
        if (j->by_part.build) {
            TRY(gpu_parts_enter(j, &j->batches[b]));
        }
        TRY(run_batch(j, b, g->streams[0]));
        in_flight += j->batches[b].rows;
        if (in_flight >= SYNC_ROWS) {
            CU(gpu_sync(g, g->streams[0]));
            in_flight = 0;
        }
    }
    if (j->by_part.build) {
        CU(gpu_sync(g, g->streams[0]));
        gpu_parts_leave(j);
    }
    return ERR_OK;
}

static FALLIBLE start_batch(struct job *j, i64 b) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i32 slot = (i32)(b % j->slot_count);
    void *stream = g->streams[slot];
    if (j->place == PLACE_STREAMED || j->place == PLACE_SERIAL) {
        TRY(gpu_job_stream(j, &j->batches[b], slot));
    }
    if (j->place == PLACE_SERIAL) {
        CU(gpu_sync(g, stream));
    }
    if (j->to_host && b >= j->slot_count) { /* until then the slot's rows are still being copied */
        CU(g->api->stream_wait_event(stream, g->slot_down[slot], 0));
    }
    TRY(run_batch(j, b, stream));
    if (j->to_host) {
        i64 at = b * REPORT_WORDS * 8;
        CU(g->api->copy_to_host(g->reports.host + at,
                                g->args_block->addr + (u64)(j->reports_at + at), REPORT_WORDS * 8,
                                stream));
    }
    TRY(gpu_room_note(j, slot, stream));
    CU(g->api->event_record(g->slot_done[slot], stream));
    return ERR_OK;
}

static FALLIBLE run_slots(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 started = 0;
    i64 done = 0;
    while (started < j->batch_count && !j->gives_up) {
        TRY(gpu_room_before(j, started, &done));
        if (!j->gives_up) {
            TRY(start_batch(j, started++));
        }
        bool many = j->event_count >= EVENTS_MOST;
        while (started >= done + (many ? 1 : j->slot_count)) {
            TRY(gpu_job_harvest(j, done++));
        }
        if (many) {
            TRY(add_times(j));
        }
    }
    while (done < started) {
        TRY(gpu_job_harvest(j, done++));
    }
    if (j->to_host) {
        CU(gpu_sync(g, g->down));
    }
    return ERR_OK;
}

/* The rows counted by all launches of this run. */
wf_status gpu_job_counts(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (!count_bytes(j)) {
        return ERR_OK;
    }
    u64 *counts = NEW_ARRAY(j->x->arena, u64, COUNT_PLACES);
    u8 *host = g->reports.host + report_bytes(j);
    CU(g->api->copy_to_host(host, g->args_block->addr + (u64)j->counts_at, (size_t)count_bytes(j),
                            g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    for (i64 i = 0; i < (i64)(COUNT_COPIES * COUNT_PLACES); i++) {
        u64 count;
        memcpy(&count, host + i * 8, sizeof count);
        counts[i % COUNT_PLACES] += count;
    }
    j->counts = counts;
    return ERR_OK;
}

static FALLIBLE collect(struct job *j) {
    TRY(j->to_host ? add_times(j) : read_report(j));
    return gpu_job_counts(j);
}

/* As much as it held when the step ran last; before that, keys of as many groups as the plan expects. */
static struct intern_size intern_size(const struct job *j, i64 number, struct intern_use use) {
    struct intern_size size = {.grows = use.adds && j->interns_full};
    if (!use.adds) {
        return size;
    }
    if (number < STEP_INTERNS) {
        size.entries = atomic_load(&j->kept->interned[number].entries);
        size.bytes = atomic_load(&j->kept->interned[number].bytes);
    }
    for (u32 k = 0; !size.entries && !use.best && !j->g->api->is_simt && k < j->plan.agg_count; k++) {
        size.entries = MIN_OF(j->plan.aggs[k]->groups, j->source_rows);
    }
    size.entries += size.entries / 8;
    size.bytes += size.bytes / 8;
    return size;
}

static FALLIBLE open_interns(struct job *j) {
    const struct u32_list *interns = &j->plan.interns;
    j->interns = NEW_ARRAY(j->x->arena, struct kintern, interns->count + 1);
    for (i64 i = 0; i < interns->count; i++) {
        struct intern_use use = intern_use(j, i);
        TRY(gpu_intern_open(j->g, j->x, interns->items[i], use.text, intern_size(j, i, use),
                            &j->interns[i], &j->metric->bytes_moved));
    }
    j->interns_full = j->g->known.interns_full = 0;
    return ERR_OK;
}

/* Numbers of a run that is to be repeated may be nobody's: it starts anew. */
static FALLIBLE clear_bests(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 bytes = j->plan.best_count * best_slots(j) * BEST_WORDS * 8;
    if (!bytes) {
        return ERR_OK;
    }
    if (!j->bests) {
        TRY(gpu_alloc(g, bytes, &j->bests, err));
    }
    CU(g->api->set_bytes(j->bests->addr, 0, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

/* Numbers that a queue gave in vain. */
static void forget_interns(struct job *j) {
    for (i64 i = 0; j->interns && i < j->plan.interns.count; i++) {
        if (intern_use(j, i).adds) {
            gpu_intern_forget(j->g, j->x, j->plan.interns.items[i]);
        }
    }
}

static void close_interns(struct job *j) {
    for (i64 i = 0; i < j->plan.interns.count; i++) {
        struct intern_size held;
        if (!intern_use(j, i).adds) {
            continue;
        }
        gpu_intern_close(j->x, j->plan.interns.items[i], j->g->reports.host + held_at(j, i), &held);
        if (i < STEP_INTERNS) {
            atomic_store(&j->kept->interned[i].entries, held.entries);
            atomic_store(&j->kept->interned[i].bytes, held.bytes);
        }
    }
}

/* All that comes before the first launch. */
static FALLIBLE begin_once(struct job *j) {
    j->launched = 0;
    TRY(open_interns(j));
    TRY(clear_bests(j));
    TRY(gpu_job_made_begin(j));
    TRY(gpu_job_sink_begin(j));
    TRY(gpu_job_fits(j));
    gpu_room_begin(j);
    TRY(send_args(j));
    TRY(gpu_agg_init(j));
    return spread(j);
}

static FALLIBLE run_once(struct job *j, bool *out_again) {
    TRY(begin_once(j));
    if (j->place == PLACE_CACHED && !j->to_host) {
        TRY(run_cached(j));
    } else {
        TRY(run_slots(j));
    }
    if (j->early_bytes) {
        TRY(gpu_agg_early(j));
    }
    TRY(collect(j));
    close_interns(j);
    TRY(gpu_job_made_end(j, out_again));
    if (!*out_again) { /* else rows, groups and faults may come from strings that were not made */
        TRY(gpu_job_sink_end(j, out_again));
    }
    gpu_job_sink_drop(j);
    return ERR_OK;
}

/* --- of a loop --- */

#define RANGE_TILE_SHIFT 62 /* all tiles are of the only tablet */

wf_status gpu_job_indexes(struct job *j) {
    struct exec *x = j->x;
    j->indexes = NEW_ARRAY(x->arena, struct kindex, j->plan.indexes.count + 1);
    for (i64 i = 0; i < j->plan.indexes.count; i++) {
        if (!gpu_parts_open(j, i)) {
            TRY(gpu_var_index(j->g, x, j->plan.indexes.items[i], &j->indexes[i],
                              &j->metric->bytes_moved));
        }
    }
    return ERR_OK;
}

void gpu_job_count_matches(struct job *j) {
    j->each_gives = most_matches(j);
}

bool gpu_job_takes(const struct job *j, i64 rows) {
    i64 matches = j->g->api->is_simt ? FIRST_MATCHES_SIMT : FIRST_MATCHES;
    return rows <= most_rows(j) && rows <= matches / j->each_gives;
}

wf_status gpu_job_ready_code(struct job *j, struct job_ready *out) {
    struct launch l = {NULL, 0, 0};
    i64 tile_rows = 1;
    i64 shared = 0;
    i32 per_sm = 1;
    TRY(choose_code(j, &j->batches[0], &l, &out->args, &out->function, &tile_rows, &shared));
    out->args.tile_shift = RANGE_TILE_SHIFT;
    u32 threads = l.function ? WOVEN_BLOCK : VM_BLOCK;
    TRY(gpu_blocks_per_sm(j->g, out->function, threads, shared, &per_sm, j->x->err));
    out->grid = (struct gpu_grid){(i64)j->g->card->sm_count * per_sm, threads, shared};
    return ERR_OK;
}

wf_status gpu_job_ready(struct job *j, u64 range, struct gpu_block **args,
                        struct job_ready *out) {
    TRY(gpu_job_indexes(j));
    TRY(gpu_job_source(j));
    TRY(gpu_job_place(j));
    TRY(gpu_job_texts(j));
    j->each_gives = most_matches(j);
    j->interns = NEW_ARRAY(j->x->arena, struct kintern, 1);
    TRY(send_args(j));
    out->args = batch_args(j, 0);
    out->args.range = DEV(const struct krange *, range);
    out->args.tablet_rows = DEV(const i64 *, range + offsetof(struct krange, end));
    out->args.row_starts = DEV(const i64 *, range + offsetof(struct krange, start));
    *args = j->g->args_block;
    j->g->args_block = NULL;
    return gpu_job_ready_code(j, out);
}

/* Rows for which the card has no room go to the host batch by batch. When the batches' rows have no
 * room either, those of the largest batch are to be fewer. */
static bool can_send_less(struct job *j) {
    if (!gpu_job_can_send(j)) {
        return false;
    }
    i64 largest = 0;
    for (i64 b = 1; b < j->batch_count; b++) {
        largest = j->batches[b].rows > j->batches[largest].rows ? b : largest;
    }
    bool was_whole = !j->sends;
    j->sends = 1;
    j->wanted = 0;
    return was_whole || (j->batch_count && gpu_job_cut_smaller(j, largest, 2));
}

static FALLIBLE send_less(struct job *j) {
    gpu_wait(j->g); /* nothing may still be writing what is dropped */
    error_reset(j->x->err);
    gpu_job_sink_drop(j);
    variable_reset(&j->x->vars[j->plan.sink->var]);
    j->event_count = 0;
    return gpu_job_place(j);
}

/* A batch gave more rows than its slot has room for: it gets the room, or, where that is more than
 * a slot's share of the card, batches are cut smaller. */
static FALLIBLE make_room(struct job *j) {
    i64 bytes = j->wanted * MAX_OF(gpu_job_row_bytes(j), 1);
    i64 times = bytes / MAX_OF(gpu_job_slot_share(j), 1) + 1;
    if (times > 1 && gpu_job_cut_smaller(j, j->wanted_batch, times)) {
        j->wanted = j->wanted / times + 1;
        return gpu_job_place(j);
    }
    return ERR_OK;
}

wf_status gpu_job_open(struct job *j) {
    struct exec *x = j->x;
    TRY(gpu_step_take(j->g->card, x, j->pipe, &j->kept));
    if (j->kept->refusal) {
        FAIL(x->err, NOT_SUPPORTED, "cannot run on the GPU: %s", j->kept->refusal);
    }
    j->plan = j->kept->plan;
    return ERR_OK;
}

static FALLIBLE run_job(struct job *j) {
    struct exec *x = j->x;
    TRY(gpu_job_open(j));
    TRY(gpu_job_indexes(j));
    TRY(gpu_job_scan(j));
    if (!j->found) {
        TRY(gpu_job_source(j));
        TRY(gpu_job_place(j));
        TRY(gpu_job_gone(j));
    }
    TRY(gpu_job_texts(j));
    j->each_gives = most_matches(j);
    j->heavy_least = heavy_least(j);
    bool again = true;
    while (again) {
        wf_status status = run_once(j, &again);
        if (!status && j->elsewhere) {
            FAIL(x->err, NOT_SUPPORTED, "%s cannot run on the GPU: %s", j->step->label ? j->step->label : "step",
                 gpu_refusal(x->arena, REFUSE_FORM, ""));
        }
        if (status == ERR_DEVICE_MEMORY && can_send_less(j)) {
            again = true;
            status = send_less(j);
        } else if (!status && j->wanted) {
            status = make_room(j);
        }
        TRY(status);
    }
    return ERR_OK;
}

/* An append that failed leaves what the variable held, and the bytes of its texts. */
static void put_back_old(struct job *j) {
    u32 var = j->plan.sink->var;
    struct variable *v = &j->x->vars[var];
    v->copy = j->in_place ? NULL : v->copy;
    variable_reset(v);
    for (i64 i = 0; i < j->old->texts.count; i++) {
        struct buffer *heap = j->old->texts.items[i].heap;
        if (heap) {
            variable_keep_heap(j->x, var, buffer_retain(heap));
        }
    }
    v->copy = j->old;
    v->copy_release = gpu_var_release;
    v->copy_space = j->g->device.space;
    v->rows = j->old_rows;
    j->old->rows = j->old_rows;
    j->old = NULL;
}

const char *gpu_job_code(const struct job *j) {
    if (j->used_quick) {
        return j->used_woven ? "gpu quick+woven" : "gpu quick";
    }
    return !j->used_woven ? "gpu vm" : j->used_vm ? "gpu vm+woven" : "gpu woven";
}

void gpu_job_init(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct job *out) {
    *out = (struct job){.g = g, .x = x, .step = step, .pipe = step->pipeline};
    out->metric = &x->metrics[step_no];
    out->capacity = g->known.capacity;
    for (u32 k = 0; k < PIPE_AGGS; k++) {
        out->aggs[k].groups_wanted = g->known.groups[k];
    }
    out->made_bytes = g->known.made_bytes;
    out->interns_full = g->known.interns_full;
    out->out_of_order = g->known.out_of_order;
}

void gpu_job_close(struct job *j, wf_status status) {
    struct gpu *g = j->g;
    if (status) { /* nothing may still be reading what is freed below */
        gpu_wait(g);
    }
    if (status && j->queued) {
        forget_interns(j);
    }
    gpu_parts_close(j);
    gpu_job_sink_drop(j);
    gpu_job_texts_drop(j);
    gpu_job_made_drop(j);
    gpu_heap_free(g->card, j->bests);
    if (j->set && status) {
        gpu_job_set_restore(j);
    }
    gpu_heap_free(g->card, j->set_was);
    if (j->old && status) {
        put_back_old(j);
    }
    if (j->old && !j->in_place) {
        gpu_var_release(j->old);
    }
    struct step_metric *metric = j->metric;
    if (j->x->counts_rows && !status) {
        gpu_job_marks(j);
    }
    metric->device = gpu_job_code(j);
    if (j->by_part.build && !status) {
        metric->how = arena_printf(j->x->arena, "%s%skeys in %u parts", metric->how ? metric->how : "",
                                   metric->how ? "; " : "", j->by_part.count);
    }
    metric->rows_in += j->source_rows;
    metric->bytes_read += j->source_bytes;
    metric->tablets_pruned_rows += j->pruned_rows;
    metric->bytes_moved += j->place == PLACE_MAPPED ? j->source_bytes : 0;
    gpu_job_scan_end(j, status);
    if (j->kept) {
        gpu_step_give(g->card, j->kept);
    }
}

wf_status gpu_run_pipeline(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct job j;
    gpu_job_init(g, x, step_no, step, &j);
    wf_status status = run_job(&j);
    gpu_job_close(&j, status);
    return status;
}

/* --- of a queue --- */

/* Whether what the step makes, and how it is done, can be left to the card. */
static bool may_queue(const struct job *j) {
    const struct gpu_plan *plan = &j->plan;
    const struct sink *sink = plan->sink;
    u8 source = j->pipe->source.kind;
    for (i64 i = 0; i < plan->interns.count; i++) { /* else it could not be as if nothing had been added */
        if (intern_use(j, i).adds && !gpu_intern_is_new(j->x, plan->interns.items[i])) {
            return false;
        }
    }
    return (source == SOURCE_TABLE || source == SOURCE_VAR) && !plan->best_count && !sink->append && !sink->set_var &&
           !atomic_load(&j->kept->elsewhere);
}

/* Rows that match several others are looked at between launches. */
static bool is_one_launch(const struct job *j) {
    return j->each_gives == 1 || gpu_job_takes(j, j->source_rows);
}

static FALLIBLE queue_launches(struct job *j) {
    for (i64 b = 0; b < j->batch_count; b++) {
        struct launch l = {NULL, 0, 0};
        do {
            TRY(exec_check(j->x));
            TRY(launch_batch(j, b, j->g->streams[0], &l));
        } while (l.tile);
        progress(j, &j->batches[b]);
    }
    TRY(send_held(j));
    return j->plan.agg_count ? gpu_agg_queue(j) : ERR_OK;
}

wf_status gpu_job_queue(struct job *j, bool *out_done) {
    *out_done = false;
    j->queued = 1;
    TRY(gpu_job_open(j));
    TRY(gpu_job_indexes(j));
    if (!may_queue(j) || j->by_part.build) {
        return ERR_OK;
    }
    TRY(gpu_job_scan(j));
    if (j->scan && !j->found) { /* its columns may have to be brought first */
        return ERR_OK;
    }
    if (!j->scan) {
        TRY(gpu_job_source(j));
        TRY(gpu_job_place(j));
    }
    TRY(gpu_job_texts(j));
    j->each_gives = most_matches(j);
    j->heavy_least = heavy_least(j);
    if (!is_one_launch(j)) {
        return ERR_OK;
    }
    TRY(begin_once(j));
    if (j->plan.agg_count && !gpu_agg_can_queue(j)) {
        return ERR_OK;
    }
    TRY(queue_launches(j));
    *out_done = true;
    return ERR_OK;
}

wf_status gpu_job_settle(struct job *j, const i64 *rows, i64 made) {
    if (j->count_at) {
        j->source_rows = j->x->vars[j->pipe->source.ref].rows;
    }
    TRY(add_times(j));
    close_interns(j);
    gpu_job_made_note(j, made);
    return gpu_job_sink_settle(j, rows);
}

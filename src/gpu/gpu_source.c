/* gpu_source.c: where a pipeline's rows come from: parts, layout signatures, pruning, placement,
 * batches.
 *
 * Tablets of one launch share a layout (encoding, width, NULLs of every column read), so that the
 * woven text can decode without asking; tablets are therefore taken grouped by layout, not in
 * order. Zone maps drop tablets, and mark zones of 2^14 rows that the kernel skips. Placement
 * decides where a kernel finds column data: in the cache on the card, in pinned host memory
 * (mapped), or in one of a few slots that copies fill while other slots are being computed on
 * (streamed; serial is one slot, one tablet, no overlap). */
#include "gpu/gpu_job.h"

#include "codes/control.h"

/* Over the bus: large enough that starting a batch does not show, small enough that the first copy
 * in and the last one out, which nothing overlaps, do not either. Under the simt driver tables are
 * small, and so are batches, so that slots are used again. */
#define BATCH_BYTES (24LL << 20)
#define BATCH_BYTES_SIMT (16LL << 10)
#define BATCH_ROWS (16LL << 20)

/* --- layout --- */

struct weave_col gpu_segment_form(const struct segment *seg, b8 with_nulls) {
    struct weave_col out = {SEG_CONST, with_nulls && seg->valid ? NULLS_BITS : NULLS_NONE};
    if (seg->encoding == ENC_STR) {
        out.form = SEG_STR;
    } else if (seg->encoding == ENC_FLOAT) {
        out.form = seg->width == 4 ? SEG_F32 : SEG_F64;
    } else if (seg->encoding != ENC_CONST) {
        bool is_signed = segment_is_signed(seg);
        switch (seg->width) {
        case 1:
            out.form = SEG_U8;
            break;
        case 2:
            out.form = SEG_U16;
            break;
        case 4:
            out.form = is_signed ? SEG_I32 : SEG_U32;
            break;
        case 8:
            out.form = is_signed ? SEG_I64 : SEG_U64;
            break;
        default:
            out.form = SEG_U128;
            break;
        }
    }
    return out;
}

struct weave_col gpu_kind_form(u8 kind, bool nulls) {
    static const u8 forms[KIND_COUNT] = {
        [KIND_B8] = SEG_U8,   [KIND_I32] = SEG_I32, [KIND_I64] = SEG_I64, [KIND_I128] = SEG_U128,
        [KIND_F32] = SEG_F32, [KIND_F64] = SEG_F64, [KIND_STR] = SEG_VIEW};
    return (struct weave_col){forms[kind], nulls ? NULLS_BYTES : NULLS_NONE};
}

/* The kind of the register a column is loaded into; KIND_NONE when only its NULLs are. */
static u8 loaded_kind(const struct job *j, u32 col) {
    for (u32 i = 0; i < j->pipe->op_count; i++) {
        const struct op *op = &j->pipe->ops[i];
        if (op->code == OP_LOAD && op->imm == col) {
            return j->pipe->regs[op->dst].kind;
        }
    }
    return KIND_NONE;
}

/* Lowering and the store agree about what a column is. */
static bool form_fits(const struct job *j, u32 col, u8 form) {
    u8 kind = loaded_kind(j, col);
    bool is_float = kind == KIND_F32 || kind == KIND_F64;
    bool float_form = form == SEG_F32 || form == SEG_F64;
    bool text_form = form == SEG_STR || form == SEG_VIEW;
    return form == SEG_CONST || kind == KIND_NONE ||
           (is_float == float_form && (!text_form || kind == KIND_STR) &&
            (form != SEG_F32 || kind == KIND_F32) && (form != SEG_F64 || kind == KIND_F64));
}

static u32 find_sig(struct job *j, const struct weave_col *cols) {
    size_t bytes = sizeof *cols * j->col_count;
    for (u32 s = 0; s < j->sig_count; s++) {
        if (!memcmp(j->sigs[s].cols, cols, bytes)) {
            return s;
        }
    }
    struct sig *grown = NEW_ARRAY(j->arena, struct sig, j->sig_count + 1);
    if (j->sig_count) {
        memcpy(grown, j->sigs, sizeof *grown * j->sig_count);
    }
    j->sigs = grown;
    j->sigs[j->sig_count].cols = NEW_ARRAY(j->arena, struct weave_col, j->col_count + 1);
    memcpy(j->sigs[j->sig_count].cols, cols, bytes);
    return j->sig_count++;
}

/* --- scans that are kept --- */

/* What decides parts, layouts and batches besides the pipeline. */
static struct sv scan_key(const struct job *j) {
    const struct exec *x = j->x;
    struct text key;
    text_init(&key, x->arena);
    struct row_span span = exec_span(x, -1);
    u64 head[4] = {x->versions[j->pipe->source.ref]->id, (u64)x->settings->gpu_placement,
                   (u64)span.first, (u64)span.end};
    text_append(&key, (struct sv){(const char *)head, (i64)sizeof head});
    for (u32 i = 0; i < j->pipe->prune_count; i++) {
        const struct prune *p = &j->pipe->prunes[i];
        for (u32 side = 0; side < 2; side++) {
            u32 lit = side ? p->hi_lit : p->lo_lit;
            const union lit *value = lit == NO_LIT ? NULL : &x->lits[lit];
            bool text = value && p->kind == KIND_STR;
            u64 length = text ? value->str.len : value ? kind_bytes[p->kind] : ~0ULL;
            text_append(&key, (struct sv){(const char *)&length, (i64)sizeof length});
            if (value) {
                const void *bytes = text ? (const void *)(size_t)value->str.addr : value;
                text_append(&key, (struct sv){bytes, (i64)length});
            }
        }
    }
    return (struct sv){key.ptr, key.len};
}

/* Signatures and batches take what this run finds out, so each has its own. */
static void copy_lists(struct arena *arena, struct sig **sigs, u32 sig_count,
                       struct batch **batches, i64 batch_count) {
    struct sig *own_sigs = NEW_ARRAY(arena, struct sig, sig_count + 1);
    struct batch *own_batches = NEW_ARRAY(arena, struct batch, batch_count + 1);
    for (u32 s = 0; s < sig_count; s++) {
        own_sigs[s] = (struct sig){.cols = (*sigs)[s].cols, .ops_at = (*sigs)[s].ops_at};
    }
    for (i64 b = 0; b < batch_count; b++) {
        own_batches[b] = (*batches)[b];
    }
    *sigs = own_sigs;
    *batches = own_batches;
}

static void scan_to_job(struct job *j) {
    const struct gpu_scan *scan = j->scan;
    j->found = j->fixed_done = 1;
    j->part_count = scan->part_count;
    j->parts = scan->parts;
    j->sig_count = scan->sig_count;
    j->sigs = scan->sigs;
    j->batch_count = scan->batch_count;
    j->batches = scan->batches;
    copy_lists(j->x->arena, &j->sigs, j->sig_count, &j->batches, j->batch_count);
    j->source_rows = scan->source_rows;
    j->source_bytes = scan->source_bytes;
    j->pruned_rows = scan->pruned_rows;
    j->layout = scan->layout;
    j->fixed_addr = scan->fixed->addr;
    j->place = PLACE_CACHED;
    j->slot_count = 1;
}

static void job_to_scan(struct job *j) {
    struct gpu_scan *scan = j->scan;
    scan->part_count = j->part_count;
    scan->parts = j->parts;
    scan->sig_count = j->sig_count;
    scan->sigs = j->sigs;
    scan->batch_count = j->batch_count;
    scan->batches = j->batches;
    copy_lists(&scan->arena, &scan->sigs, scan->sig_count, &scan->batches, scan->batch_count);
    scan->source_rows = j->source_rows;
    scan->source_bytes = j->source_bytes;
    scan->pruned_rows = j->pruned_rows;
    scan->layout = j->layout;
}

wf_status gpu_job_scan(struct job *j) {
    j->col_count = j->pipe->source.col_count;
    j->arena = j->x->arena;
    if (j->pipe->source.kind != SOURCE_TABLE) {
        return ERR_OK;
    }
    struct sv key = scan_key(j);
    j->scan = gpu_scan_take(j->g, j->kept, key);
    if (j->scan) {
        scan_to_job(j);
        return ERR_OK;
    }
    TRY(gpu_scan_new(j->g->card, key, &j->scan, j->x->err));
    j->scan->col_count = j->col_count;
    j->arena = &j->scan->arena;
    return ERR_OK;
}

void gpu_job_scan_end(struct job *j, wf_status status) {
    struct gpu_scan *scan = j->scan;
    if (!scan) {
        return;
    }
    if (j->found) {
        gpu_scan_give(j->g->card, scan);
        return;
    }
    bool keeps = !status && j->keeps && j->fixed_done;
    if (keeps) {
        job_to_scan(j);
    }
    if (keeps && !scan->arena.refused_bytes) {
        gpu_scan_keep(j->g, j->kept, scan);
    } else {
        gpu_scan_free(j->g->card, scan);
    }
    j->scan = NULL;
}

/* --- pruning --- */

/* Fills part->keep when some zone can be skipped, or is another share's; returns the rows left. */
static i64 prune_part(struct job *j, struct part *part, struct row_span span) {
    const struct pipeline *pipe = j->pipe;
    i64 zones = (part->rows + ZONE_ROWS - 1) >> ZONE_SHIFT;
    i64 dropped = 0;
    i64 elsewhere = 0;
    bool cut = part->row_start < span.first || part->row_start + part->rows > span.end;
    u8 *keep = pipe->prune_count || cut ? NEW_ARRAY(j->arena, u8, zones) : NULL;
    for (i64 z = 0; keep && z < zones; z++) {
        i64 first = part->row_start + (z << ZONE_SHIFT);
        i64 rows = MIN_OF(part->rows - (z << ZONE_SHIFT), ZONE_ROWS);
        ASSERT(first >= span.end || first + rows <= span.end);
        if (first < span.first || first >= span.end) {
            elsewhere += rows;
            continue;
        }
        keep[z] = 1;
        for (u32 i = 0; i < pipe->prune_count; i++) {
            const struct prune *p = &pipe->prunes[i];
            const struct segment *seg = &part->tablet->cols[pipe->source.cols[p->col]];
            if (exec_zone_excluded(j->x, seg, p, z)) {
                keep[z] = 0;
            }
        }
        if (first >= j->rows_end || first + ZONE_ROWS <= j->rows_first) {
            keep[z] = 0;
        }
        dropped += keep[z] ? 0 : rows;
    }
    part->keep = dropped || elsewhere ? keep : NULL;
    j->pruned_rows += dropped;
    return part->rows - dropped - elsewhere;
}

/* --- parts --- */

static FALLIBLE table_parts(struct job *j) {
    const struct source *source = &j->pipe->source;
    const struct table_version *version = j->x->versions[source->ref];
    struct weave_col *cols = NEW_ARRAY(j->x->arena, struct weave_col, j->col_count + 1);
    j->parts = NEW_ARRAY(j->arena, struct part, version->tablet_count + 1);
    struct row_span span = exec_span(j->x, I64_MAX);
    exec_row_range(j->x, j->pipe, &j->rows_first, &j->rows_end);
    for (i64 t = 0; t < version->tablet_count; t++) {
        struct part part = {.tablet = version->tablets[t],
                            .rows = version->tablet_rows[t],
                            .row_start = version->row_starts[t],
                            .gone = version->deleted[t]};
        bool here = part.row_start < span.end && part.row_start + part.rows > span.first;
        i64 left = here ? prune_part(j, &part, span) : 0;
        if (left == 0) {
            continue;
        }
        for (u32 c = 0; c < j->col_count; c++) {
            u32 col = source->cols[c];
            cols[c] = (struct weave_col){SEG_CONST, NULLS_NONE};
            if (j->plan.col_used[c]) {
                cols[c] = gpu_segment_form(&part.tablet->cols[col], 1);
                ASSERT(form_fits(j, c, cols[c].form));
                struct seg_bytes bytes = gpu_segment_bytes(part.tablet, col, part.rows);
                j->source_bytes += bytes.total_bytes;
            }
        }
        part.sig = find_sig(j, cols);
        j->parts[j->part_count++] = part;
        j->source_rows += left;
    }
    return ERR_OK;
}

static FALLIBLE single_part(struct job *j) {
    struct exec *x = j->x;
    const struct source *source = &j->pipe->source;
    u32 var = gpu_job_source_var(j);
    i64 rows = source->kind == SOURCE_ONE ? 1 : x->vars[var].rows;
    rows = j->ranged ? MAX_OF(rows, 1) : rows; /* it may have some later */
    struct weave_col *cols = NEW_ARRAY(x->arena, struct weave_col, j->col_count + 1);
    j->var_cols = NEW_ARRAY(x->arena, struct kcol, j->col_count + 1);
    for (u32 c = 0; rows > 0 && c < j->col_count; c++) {
        if (j->plan.col_used[c]) {
            u32 col = source->cols[c];
            u8 kind = x->program->vars[var].kinds[col];
            TRY(gpu_var_col(j->g, x, var, col, &j->var_cols[c], &j->metric->bytes_moved));
            cols[c] = gpu_kind_form(kind, j->var_cols[c].nulls != NULL);
            ASSERT(form_fits(j, c, cols[c].form));
            j->source_bytes += rows * kind_bytes[kind];
        }
    }
    const struct gpu_var *gv = x->vars[var].copy;
    j->count_at = j->queued && gv ? gv->count_at : 0;
    j->source_rows = rows;
    if (j->by_part.build && !j->queued) {
        return gpu_parts_cut(j, find_sig(j, cols));
    }
    j->parts = NEW_ARRAY(x->arena, struct part, 1);
    j->parts[0] = (struct part){.rows = rows, .sig = find_sig(j, cols)};
    j->part_count = rows > 0;
    return ERR_OK;
}

/* start, stop and step, in the one row of a variable; no rows when one of them is NULL. */
static FALLIBLE series_part(struct job *j) {
    struct exec *x = j->x;
    u32 var = j->pipe->source.ref;
    TRY(gpu_var_fetch(j->g, x, var));
    TRY(variable_flatten(x, var));
    const struct chunk *chunk = x->vars[var].chunks.items[0];
    i64 bounds[3] = {0, -1, 1};
    bool is_null = chunk->rows == 0;
    for (u32 i = 0; i < 3 && !is_null; i++) {
        is_null = chunk->cols[i].nulls && chunk->cols[i].nulls[0];
        bounds[i] = ((const i64 *)chunk->cols[i].data)[0];
    }
    if (!is_null && bounds[2] == 0) {
        FAIL(x->err, INVALID_PARAMETER, "step size cannot equal zero");
    }
    i128 span = bounds[2] > 0 ? (i128)bounds[1] - bounds[0] : (i128)bounds[0] - bounds[1];
    i128 step = bounds[2] > 0 ? (i128)bounds[2] : -(i128)bounds[2];
    i64 rows = is_null || span < 0 ? 0 : (i64)MIN_OF(span / step + 1, (i128)I64_MAX / 2);
    struct weave_col *cols = NEW_ARRAY(x->arena, struct weave_col, j->col_count + 1);
    for (u32 c = 0; c < j->col_count; c++) {
        cols[c] = (struct weave_col){SEG_SERIES, NULLS_NONE};
    }
    j->series_start = bounds[0];
    j->series_step = bounds[2];
    j->parts = NEW_ARRAY(x->arena, struct part, 1);
    j->parts[0] = (struct part){.rows = rows, .sig = find_sig(j, cols)};
    j->part_count = rows > 0;
    j->source_rows = rows;
    return ERR_OK;
}

static void group_parts(struct job *j) { /* by signature, in order otherwise */
    struct part *sorted = NEW_ARRAY(j->arena, struct part, j->part_count + 1);
    i64 at = 0;
    for (u32 s = 0; s < j->sig_count; s++) {
        for (i64 p = 0; p < j->part_count; p++) {
            if (j->parts[p].sig == s) {
                sorted[at++] = j->parts[p];
            }
        }
    }
    j->parts = sorted;
}

wf_status gpu_job_source(struct job *j) {
    if (j->pipe->source.kind == SOURCE_TABLE) {
        TRY(table_parts(j));
        if (j->sig_count > 1) {
            group_parts(j);
        }
        return ERR_OK;
    }
    return j->pipe->source.kind == SOURCE_SERIES ? series_part(j) : single_part(j);
}

/* Deleted rows of a part, in the zones that are read. */
static i64 gone_rows(const struct part *part) {
    const u64 *bits = (const u64 *)(const void *)part->gone->data;
    i64 gone = 0;
    for (i64 r = 0; r < part->rows; r += 64) {
        if (!part->keep || part->keep[r >> ZONE_SHIFT]) {
            i64 rows = MIN_OF(part->rows - r, 64);
            u64 word = bits[r / 64];
            gone += __builtin_popcountll(rows < 64 ? word & (((u64)1 << rows) - 1) : word);
        }
    }
    return gone;
}

/* Rows that get to an opcode, of `live` that the source has; -1 = not counted. */
static i64 rows_at(const struct job *j, u32 op, i64 live) {
    i64 behind = gpu_counted_behind(j->pipe, op);
    u8 place = behind >= 0 && j->counts ? j->plan.count_after[behind] : 0;
    return behind < 0 ? live : place ? (i64)j->counts[place - 1] : -1;
}

void gpu_job_marks(struct job *j) {
    const struct pipeline *pipe = j->pipe;
    i64 *marks = j->metric->marks;
    i64 live = j->source_rows;
    for (i64 p = 0; p < j->part_count; p++) {
        live -= j->parts[p].gone ? gone_rows(&j->parts[p]) : 0;
    }
    for (u32 m = 0; m < pipe->mark_count; m++) {
        i64 rows = rows_at(j, pipe->marks[m].op, live);
        marks[m] = rows < 0 ? marks[m] : MAX_OF(marks[m], 0) + rows;
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        /* What the second-level cache holds is found faster than any place in memory. */
        if (gpu_op_looks_up(pipe, i) &&
            gpu_index_bytes(j->x->vars[pipe->ops[i].imm].copy) > j->g->card->l2_bytes) {
            j->metric->probes += MAX_OF(rows_at(j, i, live), 0);
        }
    }
}

/* Bits change with every version of the table: they are the scan's, not the cache's. */
wf_status gpu_job_gone(struct job *j) {
    i64 bytes = 0;
    for (i64 p = 0; p < j->part_count; p++) {
        bytes += j->parts[p].gone ? ALIGN_UP(j->parts[p].rows, 2048) / 8 : 0;
    }
    if (!bytes) {
        return ERR_OK;
    }
    struct gpu_block **gone = &j->scan->gone;
    TRY(gpu_alloc(j->g, bytes, gone, j->x->err));
    u64 at = (*gone)->addr;
    for (i64 p = 0; p < j->part_count; p++) {
        struct part *part = &j->parts[p];
        if (part->gone) {
            i64 size = (part->rows + 63) / 64 * 8;
            part->gone_addr = at;
            TRY(gpu_upload(j->g, at, part->gone->data, size, NULL, j->g->streams[0], j->x->err));
            j->metric->bytes_moved += size;
            at += (u64)ALIGN_UP(part->rows, 2048) / 8;
        }
    }
    return ERR_OK;
}

/* --- placement --- */

static i64 missing_bytes(const struct job *j) {
    i64 bytes = 0;
    for (i64 p = 0; p < j->part_count; p++) {
        const struct part *part = &j->parts[p];
        for (u32 c = 0; part->tablet && c < j->col_count; c++) {
            u32 col = j->pipe->source.cols[c];
            struct seg_bytes seg = gpu_segment_bytes(part->tablet, col, part->rows);
            i64 size = seg.total_bytes;
            if (j->plan.col_used[c] && size && !gpu_cache_has(j->g->card, part->tablet->id, col)) {
                bytes += ALIGN_UP(size + 256, GPU_ALIGN);
            }
        }
    }
    return bytes;
}

static i32 choose_place(struct job *j) {
    i32 asked = (i32)j->x->settings->gpu_placement;
    enum gpu_tight tight = j->g->tight;
    if (j->pipe->source.kind != SOURCE_TABLE) {
        return PLACE_CACHED;
    }
    if (tight >= TIGHT_MAP && asked != PLACE_CACHED) {
        return tight == TIGHT_MAP ? PLACE_MAPPED : PLACE_STREAMED;
    }
    if (asked != PLACE_AUTO) {
        return asked;
    }
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    bool fits = tight < TIGHT_STREAM && missing_bytes(j) <= room / 4 * 3;
    return fits ? PLACE_CACHED : PLACE_STREAMED;
}

wf_status gpu_job_fits(struct job *j) {
    bool loads = j->place == PLACE_CACHED && j->scan && !j->fixed_done;
    if (!loads || j->x->settings->gpu_placement != PLACE_AUTO) {
        return ERR_OK;
    }
    i64 missing = missing_bytes(j);
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    if (missing > room) {
        FAIL(j->x->err, DEVICE_MEMORY, "out of GPU memory: columns of %lld bytes, room for %lld",
             missing, room);
    }
    return ERR_OK;
}

static i64 part_slot_bytes(const struct job *j, const struct part *part) {
    i64 bytes = 0;
    for (u32 c = 0; part->tablet && c < j->col_count; c++) {
        if (j->plan.col_used[c]) {
            struct seg_bytes seg =
                gpu_segment_bytes(part->tablet, j->pipe->source.cols[c], part->rows);
            bytes += ALIGN_UP(seg.data_bytes + 64, 256) + ALIGN_UP(seg.valid_bytes, 256) +
                     ALIGN_UP(seg.text_bytes, 256);
        }
    }
    return bytes;
}

static void cut_batches(struct job *j, i64 most_rows, i64 most_parts) {
    j->batches = NEW_ARRAY(j->x->arena, struct batch, j->part_count + 1);
    j->batch_count = 0;
    for (i64 p = 0; p < j->part_count; p++) {
        const struct part *part = &j->parts[p];
        struct batch *b = j->batch_count ? &j->batches[j->batch_count - 1] : NULL;
        if (!b || b->sig != part->sig || b->rows + part->rows > most_rows ||
            b->count >= most_parts) {
            b = &j->batches[j->batch_count++];
            *b = (struct batch){.first = p, .sig = part->sig, .zones_at = -1};
        }
        b->count++;
        b->rows += part->rows;
        b->max_rows = MAX_OF(b->max_rows, part->rows);
    }
}

i64 gpu_job_slot_share(const struct job *j) {
    const struct gpu_card *card = j->g->card;
    return card->heap.budget_bytes / 2 / GPU_STREAMS / card->worker_count;
}

/* Rows of a batch, so that a table of groups has room for those of all batches under way, each row
 * being one, twice: then groups can be put aside. Where few groups are expected, any number. */
#define GROUP_ROOM_SHARE 48
static i64 rows_for_groups(const struct job *j) {
    i64 room = gpu_heap_available(j->g->card) + gpu_cache_evictable(j->g);
    i64 rows = I64_MAX;
    for (u32 k = 0; k < j->plan.agg_count; k++) {
        const struct sink *sink = j->plan.aggs[k];
        i64 width = 8 * (1 + (i64)sink->word_count) * j->plan.agg_count;
        i64 groups = MIN_OF(sink->groups, j->source_rows);
        if (groups > room / 16 / width) {
            rows = MIN_OF(rows, room / width / GROUP_ROOM_SHARE);
        }
    }
    return rows;
}

/* Rows of a batch that crosses the bus, by the wider of its two directions. */
static i64 batch_rows(const struct job *j) {
    const struct gpu *g = j->g;
    if (j->batch_rows) {
        return j->batch_rows;
    }
    i64 rows = MAX_OF(j->source_rows, 1);
    i64 in = MAX_OF(j->source_bytes / rows, 1);
    i64 out = gpu_job_row_bytes(j);
    i64 most = (g->api->is_simt ? BATCH_BYTES_SIMT : BATCH_BYTES) / MAX_OF(in, out);
    i64 room = gpu_job_slot_share(j) / (in + out);
    return MAX_OF(MIN_OF(MIN_OF(MIN_OF(most, room), BATCH_ROWS), rows_for_groups(j)), 1);
}

bool gpu_job_cut_smaller(struct job *j, i64 batch, i64 times) {
    const struct batch *b = &j->batches[batch];
    if (b->count < 2) {
        return false;
    }
    j->batch_rows = MAX_OF(b->rows / MAX_OF(times, 2), 1);
    return true;
}

static void drop_slots(struct gpu *g, struct gpu_block **slots) {
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        gpu_heap_free(g->card, slots[s]);
        slots[s] = NULL;
    }
}

/* What makes room for the first slot: the others, and blocks of the other direction that an earlier
 * step left and this one does not use yet. */
static void drop_other_slots(struct job *j, struct gpu_block **slots) {
    struct gpu *g = j->g;
    bool outward = slots == g->rows;
    drop_slots(g, slots);
    if (!outward || !j->slot_bytes) {
        drop_slots(g, outward ? g->slots : g->rows);
    }
}

wf_status gpu_job_slots(struct job *j, struct gpu_block **slots, i64 bytes) {
    struct gpu *g = j->g;
    g->slots_run_no = g->run_no;
    for (i32 s = 0; s < j->slot_count; s++) {
        if (slots[s] && slots[s]->bytes < bytes + 64) {
            gpu_heap_free(g->card, slots[s]);
            slots[s] = NULL;
        }
        if (!slots[s] && s > 0) {
            slots[s] = gpu_alloc_try(g, bytes);
            j->slot_count = slots[s] ? j->slot_count : s;
        } else if (!slots[s]) {
            slots[s] = gpu_alloc_try(g, bytes);
        }
        if (!slots[s] && s == 0) {
            bool spills = slots == g->rows || g->tight == TIGHT_ALL;
            drop_other_slots(j, slots);
            TRY(spills ? gpu_alloc(g, bytes, &slots[s], j->x->err)
                       : gpu_alloc_here(g, bytes, &slots[s], j->x->err));
        }
    }
    return ERR_OK;
}

wf_status gpu_job_place(struct job *j) {
    j->place = choose_place(j);
    /* Batches that had to be cut again are this run's. */
    j->keeps = j->scan && !j->found && j->place == PLACE_CACHED && !j->sends && !j->batch_rows &&
               j->g->tight < TIGHT_SPILL;
    j->fixed_done = 0;
    bool slots = j->place == PLACE_STREAMED || j->place == PLACE_SERIAL;
    bool whole = j->place == PLACE_CACHED && !j->sends;
    j->slot_count = whole || j->place == PLACE_SERIAL ? 1 : GPU_STREAMS;
    j->slot_bytes = 0;
    bool apart = j->place == PLACE_SERIAL || j->by_part.build;
    cut_batches(j, whole ? LAUNCH_ROWS : batch_rows(j), apart ? 1 : I64_MAX);
    for (i64 b = 0; slots && b < j->batch_count; b++) {
        i64 bytes = 0;
        for (i64 p = 0; p < j->batches[b].count; p++) {
            bytes += part_slot_bytes(j, &j->parts[j->batches[b].first + p]);
        }
        j->slot_bytes = MAX_OF(j->slot_bytes, bytes);
    }
    j->slot_count = (i32)MAX_OF(MIN_OF(j->slot_count, j->batch_count), 1);
    return j->slot_bytes > 0 ? gpu_job_slots(j, j->g->slots, j->slot_bytes) : ERR_OK;
}

/* --- addresses --- */

static u64 mapped_addr(const void *data, const struct buffer *buf) {
    return buf->device_addr + (u64)((const u8 *)data - buf->data);
}

static bool inside(const struct buffer *buf, const void *data, i64 bytes) {
    const u8 *at = data;
    return buf && at >= buf->data && at + bytes <= buf->data + buf->bytes;
}

static bool can_map(struct job *j, const struct seg_bytes *seg) {
    bool data = !seg->data_bytes || (inside(seg->data_buffer, seg->data, seg->data_bytes) &&
                                     gpu_pin(j->g, seg->data_buffer));
    bool valid = !seg->valid_bytes || (inside(seg->valid_buffer, seg->valid, seg->valid_bytes) &&
                                       gpu_pin(j->g, seg->valid_buffer));
    bool text = !seg->text_bytes || (inside(seg->text_buffer, seg->text, seg->text_bytes) &&
                                     gpu_pin(j->g, seg->text_buffer));
    return data && valid && text;
}

/* Kernels read it there: it stays as long as the execution. Where there is no room it is copied. */
static bool is_there(struct job *j, const struct tablet *tablet, u32 col) {
    struct error ignored; /* a copy meets it again */
    error_reset(&ignored);
    return !exec_hold(j->x, tablet, col, true, &ignored);
}

static void set_base(const struct segment *seg, u8 kind, struct kseg *out) {
    bool real = kind == KIND_F32 || kind == KIND_F64;
    union lit value = {.i128 = segment_base(seg)};
    if (seg->encoding == ENC_CONST && real) {
        value = segment_const(seg, kind);
    }
    out->base = (u64)value.i128;
    out->base_high = (u64)((u128)value.i128 >> 64);
}

/* Where a part's column is. A slot holds the columns of its batch one after the other, in the order
 * gpu_job_stream copies them. */
struct addrs {
    u64 data, nulls, text;
};
static struct addrs slot_addrs(struct job *j, const struct seg_bytes *seg, i64 *slot_at, i32 slot) {
    u64 base = j->g->slots[slot]->addr + (u64)*slot_at;
    i64 data = ALIGN_UP(seg->data_bytes + 64, 256);
    i64 valid = ALIGN_UP(seg->valid_bytes, 256);
    *slot_at += data + valid + ALIGN_UP(seg->text_bytes, 256);
    return (struct addrs){base, base + (u64)data, base + (u64)(data + valid)};
}

static struct addrs mapped_addrs(const struct seg_bytes *seg) {
    struct addrs at = {0};
    at.data = seg->data_bytes ? mapped_addr(seg->data, seg->data_buffer) : 0;
    at.nulls = seg->valid_bytes ? mapped_addr(seg->valid, seg->valid_buffer) : 0;
    at.text = seg->text_bytes ? mapped_addr(seg->text, seg->text_buffer) : 0;
    return at;
}

/* What makes text of a column: its bytes, or its dictionary's views. */
static void set_text(const struct job *j, u32 col, const struct seg_bytes *seg, u64 text,
                     struct kseg *out) {
    if (out->form == SEG_STR) {
        out->bytes = DEV(const u8 *, text);
        out->base = (u64)(size_t)seg->text;
    } else if (j->scan->dict_views && j->text_cols && j->text_cols[col]) {
        const struct dict_views *dict = &j->scan->dict_views[col];
        out->bytes = DEV(const u8 *, dict->block ? dict->block->addr : 0);
        out->base_high = (u64)dict->len;
    }
}

/* What crosses the bus next is read meanwhile: the next tablet by a thread, others by the disk. */
static void ahead(const struct job *j, u32 col, i64 first) {
    enum { AHEAD = 4 };
    u32 table_col = j->pipe->source.cols[col];
    for (i64 p = first; p < MIN_OF(j->part_count, first + AHEAD); p++) {
        const struct tablet *tablet = j->parts[p].tablet;
        if (tablet->framed && !gpu_cache_has(j->g->card, tablet->id, table_col)) {
            (p == first ? column_ahead : column_expect)(tablet, table_col, true);
        }
    }
}

wf_status gpu_job_segment(struct job *j, const struct batch *b, i64 p, u32 col, i64 *slot_at,
                          i32 slot, struct kseg *out) {
    const struct part *part = &j->parts[p];
    const struct weave_col form = j->sigs[b->sig].cols[col];
    memset(out, 0, sizeof *out);
    out->form = form.form;
    out->null_form = form.null_form;
    if (!j->plan.col_used[col]) {
        return ERR_OK;
    }
    if (out->form == SEG_SERIES) {
        out->base = (u64)j->series_start;
        out->base_high = (u64)j->series_step;
        return ERR_OK;
    }
    if (!part->tablet) {
        const struct kcol *from = &j->var_cols[col];
        u8 kind = j->x->program->vars[gpu_job_source_var(j)].kinds[j->pipe->source.cols[col]];
        out->data = from->data + part->row_start * kind_bytes[kind];
        out->nulls = from->nulls ? from->nulls + part->row_start : NULL;
        return ERR_OK;
    }
    u32 table_col = j->pipe->source.cols[col];
    set_base(&part->tablet->cols[table_col], loaded_kind(j, col), out);
    struct seg_bytes seg = gpu_segment_bytes(part->tablet, table_col, part->rows);
    struct addrs at;
    if (j->place == PLACE_STREAMED || j->place == PLACE_SERIAL) {
        at = slot_addrs(j, &seg, slot_at, slot);
    } else if (j->place == PLACE_MAPPED && is_there(j, part->tablet, table_col) &&
               can_map(j, &seg)) {
        at = mapped_addrs(&seg);
    } else {
        struct cached *cached = NULL;
        ahead(j, col, p + 1);
        TRY(gpu_cache_load(j->g, part->tablet, table_col, part->rows, &cached,
                           &j->metric->bytes_moved, j->x->err));
        at = (struct addrs){cached->data, cached->nulls, cached->text};
        if (j->keeps && cached->block) {
            struct cached_at where = {part->tablet->id, cached->block->addr, table_col};
            VEC_PUSH(&j->scan->arena, &j->scan->segs, where);
        }
    }
    out->data = DEV(const u8 *, at.data);
    out->nulls = DEV(const u8 *, at.nulls);
    set_text(j, col, &seg, at.text, out);
    return ERR_OK;
}

wf_status gpu_job_stream(struct job *j, const struct batch *b, i32 slot) {
    i64 slot_at = 0;
    for (u32 c = 0; c < j->col_count; c++) {
        for (i64 p = b->first; j->plan.col_used[c] && p < b->first + b->count; p++) {
            const struct part *part = &j->parts[p];
            u32 col = j->pipe->source.cols[c];
            struct seg_bytes seg = gpu_segment_bytes(part->tablet, col, part->rows);
            struct addrs at = slot_addrs(j, &seg, &slot_at, slot);
            struct gpu_bring bring = {part->tablet, col, slot, part->rows, at.data, at.nulls, at.text};
            ahead(j, c, p + 1);
            TRY(gpu_bring(j->g, &bring, &j->metric->bytes_moved, j->x->err));
        }
    }
    return ERR_OK;
}

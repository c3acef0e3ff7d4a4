/* gpu_parts.c: joins whose table, and the rows it leads to, have no room on the card at once.
 *
 * Both sides of such a join are split by a hash of their key into the same number of parts (STEP_SPLIT),
 * in memory of the host where the card has no room for the rows either. STEP_BUILD then makes no table:
 * the pipeline that looks keys up goes through its source part by part, and before each it has the
 * table of that part made, and brings columns of its rows that lie in memory of the host. So tables
 * and what is fetched from them at random are always on the card, and whatever crosses the bus does so
 * in order and once. Kernels do not know: every row of the source is in one part, with all rows that
 * could match it, so joins of every kind come out as they would at once. Rows of the built side are
 * numbered within their part; columns and marks are handed to kernels from the part's first row on.
 *
 * A part that has no room (one key has that many rows) is dealt with as any other step's lack of it.
 * See decision 0039. */
#include "gpu/gpu_job.h"

static u32 index_var(const struct job *j) {
    return j->plan.indexes.items[j->by_part.number];
}

static const struct gpu_var *here(const struct job *j, u32 var) {
    const struct variable *v = &j->x->vars[var];
    const struct gpu_var *gv = v->copy;
    bool is = gv && v->copy_space == j->g->device.space && gv->epoch == j->g->card->epoch;
    return is ? gv : NULL;
}

bool gpu_parts_open(struct job *j, i64 number) {
    const struct source *source = &j->pipe->source;
    u32 var = j->plan.indexes.items[number];
    const struct gpu_var *index = here(j, var);
    if (!index || !index->parts.count || j->by_part.build || j->ranged) {
        return false;
    }
    u32 step_no = 0;
    const struct step *build = program_build(j->x->program, var, &step_no);
    const struct gpu_var *from = source->kind == SOURCE_VAR ? here(j, source->ref) : NULL;
    const struct gpu_var *rows = build ? here(j, build->src) : NULL;
    bool suits = from && from->parts.count == index->parts.count && from->parts.index == var &&
                 rows && rows->parts.count == index->parts.count;
    if (!suits && !(j->queued && build)) { /* a step that is queued will be run instead */
        return false;
    }
    j->by_part = (struct job_parts){
        .build = build,
        .count = index->parts.count,
        .number = (u32)number,
        .cols = NEW_ARRAY(j->x->arena, struct gpu_block *, 2 * j->plan.cols.count + 1)};
    j->indexes[number] = index->index;
    return true;
}

void gpu_parts_leave(struct job *j) {
    struct job_parts *p = &j->by_part;
    for (i64 i = 0; p->cols && i < 2 * j->plan.cols.count; i++) {
        gpu_heap_free(j->g->card, p->cols[i]);
        p->cols[i] = NULL;
    }
    if (p->table) {
        gpu_var_release(p->table);
        p->table = NULL;
    }
}

void gpu_parts_close(struct job *j) {
    gpu_parts_leave(j);
    gpu_heap_free(j->g->card, j->by_part.before);
    j->by_part.before = NULL;
}

enum { BEFORE_ROWS = 64 }; /* parts begin at multiples of it, so that a word has the bits of all before */

wf_status gpu_parts_cut(struct job *j, u32 sig) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct gpu_var *from = j->x->vars[j->pipe->source.ref].copy;
    i64 most = 0;
    j->parts = NEW_ARRAY(j->x->arena, struct part, from->parts.count);
    for (u32 p = 0; p < from->parts.count; p++) {
        i64 first = (i64)from->parts.starts[p];
        i64 end = (i64)from->parts.starts[p + 1];
        struct part part = {.row_start = first / BEFORE_ROWS * BEFORE_ROWS, .sig = sig, .number = p};
        part.rows = end - part.row_start;
        if (first < end) {
            j->parts[j->part_count++] = part;
            most = MAX_OF(most, part.rows);
        }
    }
    i64 bytes = ALIGN_UP(most, 2048) / 8;
    TRY(gpu_alloc(g, bytes, &j->by_part.before, err));
    CU(g->api->set_bytes(j->by_part.before->addr, 0, (size_t)bytes, g->streams[0]));
    for (i64 p = 0; p < j->part_count; p++) {
        j->parts[p].gone_addr = j->by_part.before->addr;
    }
    return ERR_OK;
}

/* Bytes of a column from `at` on: where they are, or, if that is memory of the host, brought. */
static FALLIBLE bring(struct job *j, const struct gpu_block *from, u64 at, i64 bytes,
                      struct gpu_block **copy, u64 *out) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    *out = at;
    *copy = from && from->host && bytes > 0 ? gpu_alloc_try(g, bytes) : NULL;
    if (*copy) {
        *out = (*copy)->addr;
        CU(g->api->copy_device(*out, at, (size_t)bytes, g->streams[0]));
        j->metric->bytes_moved += bytes;
    }
    return ERR_OK;
}

static FALLIBLE enter_cols(struct job *j, i64 first, i64 rows) {
    u32 var = j->by_part.build->src;
    const struct gpu_var *gv = j->x->vars[var].copy;
    struct kcol *cols = (struct kcol *)(void *)(j->blob + j->cols_at);
    for (i64 i = 0; i < j->plan.cols.count; i++) {
        u32 col = j->plan.cols.items[i].col;
        u64 data = 0;
        u64 nulls = 0;
        if (j->plan.cols.items[i].var != var) {
            continue;
        }
        const struct gpu_col *from = &gv->cols[col];
        i64 width = kind_bytes[j->x->program->vars[var].kinds[col]];
        TRY(bring(j, from->data, from->addr + (u64)(first * width), rows * width,
                  &j->by_part.cols[2 * i], &data));
        if (from->nulls_addr) {
            TRY(bring(j, from->nulls, from->nulls_addr + (u64)first, rows,
                      &j->by_part.cols[2 * i + 1], &nulls));
        }
        cols[i] = (struct kcol){.data = DEV(const u8 *, data), .nulls = DEV(const b8 *, nulls), .len = rows};
    }
    return ERR_OK;
}

/* Marks of rows that a full join used. */
static void enter_marks(struct job *j, i64 first) {
    struct kout *outs = (struct kout *)(void *)(j->blob + j->outs_at);
    u32 mark = 0;
    for (u32 s = 0; s < j->pipe->sink_count; s++) {
        const struct sink *sink = &j->pipe->sinks[s];
        if (sink->kind == SINK_MARK) {
            u64 addr = j->marks[mark]->cols[0].addr;
            addr += sink->rows_var == j->by_part.build->src ? (u64)first : 0;
            outs[gpu_job_out_count(j) + mark++].data = DEV(u8 *, addr);
        }
    }
}

static FALLIBLE enter_rows(struct job *j, const struct part *part) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct gpu_var *from = j->x->vars[j->pipe->source.ref].copy;
    u64 before = (1ULL << ((i64)from->parts.starts[part->number] - part->row_start)) - 1;
    TRY(gpu_pinned_reserve(g, &g->reports, (i64)sizeof before, err));
    memcpy(g->reports.host, &before, sizeof before);
    CU(g->api->copy_to_device(j->by_part.before->addr, g->reports.host, sizeof before, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    return ERR_OK;
}

static FALLIBLE send(struct job *j, i64 at, i64 bytes) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (bytes > 0) {
        CU(g->api->copy_to_device(g->args_block->addr + (u64)at, j->blob + at, (size_t)bytes,
                                  g->streams[0]));
    }
    return ERR_OK;
}

wf_status gpu_parts_enter(struct job *j, const struct batch *b) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_parts *p = &j->by_part;
    TRY(exec_check(j->x));
    CU(gpu_sync(g, g->streams[0])); /* the part before is done, and what was sent has arrived */
    gpu_parts_leave(j);
    TRY(enter_rows(j, &j->parts[b->first]));
    const struct gpu_var *rows = j->x->vars[p->build->src].copy;
    struct build_part of = {.step = p->build,
                            .part = j->parts[b->first].number,
                            .event_base = j->event_base + 1 + j->event_count,
                            .metric = j->metric};
    i64 first = (i64)rows->parts.starts[of.part];
    TRY(gpu_build_part(g, j->x, &of, &p->table));
    TRY(enter_cols(j, first, (i64)rows->parts.starts[of.part + 1] - first));
    enter_marks(j, first);
    struct gpu_var *index = j->x->vars[index_var(j)].copy;
    index->most_matches = p->table->most_matches;
    j->indexes[p->number] = p->table->index;
    gpu_job_count_matches(j);
    struct kindex *indexes = (struct kindex *)(void *)(j->blob + j->indexes_at);
    indexes[p->number] = p->table->index;
    TRY(send(j, j->indexes_at, j->plan.indexes.count * (i64)sizeof *indexes));
    TRY(send(j, j->cols_at, j->plan.cols.count * (i64)sizeof(struct kcol)));
    return send(j, j->outs_at, gpu_job_out_places(j) * (i64)sizeof(struct kout));
}

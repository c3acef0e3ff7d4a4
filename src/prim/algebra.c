/* algebra.c: entry points of the operators on packed tuples.
 *
 * Set operations by whole tuple are those on arrays (prim/order.h), by key they are joins. Both,
 * products and reductions work on pages as they are, with sums of their fills; only what projects
 * pages into an array gathers them first. An output in full pages is an array as well, whose
 * fill counts are written at the end. A paged input is measured with as many rows as its pages have
 * room for. */
#include "prim/algebra.h"
#include "prim/order.h"

static const struct prim_algebra *class_of(const struct prim_job *job) {
    return job->dev->prims->algebra;
}

static FALLIBLE check_room(struct prim_job *job, i64 count, i64 room) {
    if (count > room) {
        FAIL(job->x->err, PROGRAM_LIMIT, "%lld rows do not fit the output's room for %lld", count,
             room);
    }
    return ERR_OK;
}

static i64 room_of(struct rel_rows out) {
    return out.paged ? out.page_count * out.page_rows : out.count;
}

/* An array of the rows. */
static FALLIBLE gathered(struct prim_job *job, struct rel_rows in, struct rel_rows *out) {
    *out = in;
    if (!in.paged) {
        return ERR_OK;
    }
    const struct rel_terms all = {.count = 0};
    i64 most = in.page_count * in.page_rows;
    *out = (struct rel_rows){.type = in.type, .count = most};
    out->data = prim_take(job, most * elem_bytes[in.type]);
    i64 mark = prim_mark(job);
    i64 count = 0;
    TRY(class_of(job)->select(job, *out, in, &all, false, &count));
    prim_back(job, mark);
    out->count = job->measuring ? most : count;
    return ERR_OK;
}

/* Rows of pages numbered through: `starts` in workspace, and how many they are. A body takes as
 * much as if all pages were full. */
static FALLIBLE numbered(struct prim_job *job, struct rel_rows *rows) {
    if (!rows->paged) {
        return ERR_OK;
    }
    i64 count = 0;
    u64 *starts = prim_take(job, (rows->page_count + 1) * 8);
    i64 mark = prim_mark(job);
    TRY(class_of(job)->starts(job, starts, *rows, &count));
    prim_back(job, mark);
    rows->starts = starts;
    rows->count = job->measuring ? rows->page_count * rows->page_rows : count;
    return ERR_OK;
}

static FALLIBLE write_fills(struct prim_job *job, struct rel_rows out, i64 count) {
    if (!out.paged || job->measuring) {
        return ERR_OK;
    }
    i64 pages = (count + out.page_rows - 1) / out.page_rows;
    return class_of(job)->fill(job, out.fills, out.page_rows, pages, count);
}

wf_status prim_rel_project(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                           const struct rel_moves *moves, i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    if (!algebra) {
        return prim_refuse(job, "project");
    }
    if (in.paged && out.paged) {
        return algebra->project(job, out, in, moves);
    }
    TRY(gathered(job, in, &in));
    *out_count = in.count;
    if (!job->measuring) {
        TRY(check_room(job, in.count, room_of(out)));
    }
    return algebra->project(job, out, in, moves);
}

wf_status prim_rel_select(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                          const struct rel_terms *terms, bool unordered, i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    if (!algebra) {
        return prim_refuse(job, "select");
    }
    TRY(algebra->select(job, out, in, terms, unordered, out_count));
    return out.paged ? ERR_OK : check_room(job, *out_count, out.count);
}

wf_status prim_rel_convert(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                           i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    const struct rel_terms all = {.count = 0};
    if (!algebra) {
        return prim_refuse(job, "convert");
    }
    struct rel_rows dense = {.type = out.type, .data = out.data, .count = room_of(out)};
    TRY(algebra->select(job, dense, in, &all, false, out_count));
    TRY(check_room(job, *out_count, dense.count));
    return write_fills(job, out, *out_count);
}

wf_status prim_rel_product(struct prim_job *job, struct rel_rows out, struct rel_rows x,
                           struct rel_rows y, const struct rel_combine *combine, i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    if (!algebra) {
        return prim_refuse(job, "product");
    }
    TRY(numbered(job, &x));
    TRY(numbered(job, &y));
    if (__builtin_mul_overflow(x.count, y.count, out_count)) {
        *out_count = I64_MAX;
    }
    if (!job->measuring) {
        TRY(check_room(job, *out_count, room_of(out)));
    }
    struct rel_rows dense = {.type = out.type, .data = out.data, .count = *out_count};
    TRY(algebra->product(job, dense, x, y, combine));
    return write_fills(job, out, *out_count);
}

static FALLIBLE join_whole(struct prim_job *job, const struct rel_join *j, i64 *out_count) {
    struct prim_array out = {.type = j->out.type, .data = j->out.data, .count = j->out.count};
    if (j->x.paged || j->y.paged) {
        return class_of(job)->sets(job, j->set, out, j->x, j->y, out_count);
    }
    struct prim_array x = {.type = j->x.type, .data = j->x.data, .count = j->x.count};
    struct prim_array y = {.type = j->y.type, .data = j->y.data, .count = j->y.count};
    return prim_set_array(job, j->set, out, x, y, out_count);
}

wf_status prim_rel_join(struct prim_job *job, const struct rel_join *join, i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    struct rel_join j = *join;
    if (!algebra) {
        return prim_refuse(job, "join");
    }
    TRY(numbered(job, &j.x));
    TRY(numbered(job, &j.y));
    j.out.count = j.indexes ? j.out_x.count : room_of(join->out);
    j.out.paged = 0;
    TRY(j.whole ? join_whole(job, &j, out_count) : algebra->join(job, &j, out_count));
    TRY(check_room(job, *out_count, j.out.count));
    return j.indexes ? ERR_OK : write_fills(job, join->out, *out_count);
}

wf_status prim_rel_reduce(struct prim_job *job, const struct rel_reduce *reduce, i64 *out_count) {
    const struct prim_algebra *algebra = class_of(job);
    struct rel_reduce r = *reduce;
    if (!algebra) {
        return prim_refuse(job, "reduce");
    }
    TRY(numbered(job, &r.in));
    TRY(algebra->reduce(job, &r, out_count));
    return check_room(job, *out_count, MIN_OF(r.out.count, r.value_room));
}

/* agg_scan.c: aggregations of one input, in one scan.
 *
 * DISTINCT aggregates and grouping sets become several aggregations of a shared input, and so may
 * subqueries. When all users of the input are such, nobody needs its rows: the pipeline that makes
 * them ends in a sink for each, made when the first of them is asked for. Where there are more than a
 * pipeline may have, the rows are kept, and read by as few pipelines as there can be.
 *
 * Errors count in the order in which the aggregations would be made one by one. */
#include "lower/agg_int.h"

static struct agg_state *take_made(struct lower *l, const struct rel *rel) {
    for (i64 i = 0; i < l->aggs.count; i++) {
        struct agg_state *s = l->aggs.items[i];
        if (s && s->rel == rel) {
            l->aggs.items[i] = NULL; /* groups have one reader */
            return s;
        }
    }
    return NULL;
}

static bool goes_together(const struct lower *l, const struct shared *shared) {
    bool can = shared && shared->uses > 1 && shared->aggs.count == shared->uses && !shared->apart;
    for (i64 i = 0; can && i < l->apart.count; i++) {
        can = l->apart.items[i] != shared->input;
    }
    return can && l->limits->fusion && !l->defer && !l->drawing;
}

/* What stands between the input and an aggregation. */
static void lower_between(struct builder *b, const struct rel *rel, bool read) {
    if (rel_shares(rel)) {
        shared_bind(b, rel, read);
    } else {
        lower_between(b, rel_input(rel), read);
        lower_project(b, rel);
    }
    build_row_mark(b, rel);
}

/* Those numbered first to end - 1, in one pipeline. */
static void make_some(struct lower *l, const struct rel *input, i64 first, i64 end, bool backwards) {
    b8 before = l->unordered;
    i64 all = shared_find(l, input)->aggs.count;
    bool read = all > PIPE_AGGS;
    struct builder *b;
    l->unordered = 1;
    if (read) {
        shared_make(l, input, 1);
        b = lower_over(l, shared_find(l, input)->var, input->rows);
    } else {
        b = lower_rel(l, input);
    }
    l->unordered = before;
    build_label(b, rel_names[REL_SHARED]);
    b->together = input;
    for (i64 i = first; i < end && !l->status; i++) {
        i64 at = backwards ? first + end - 1 - i : i;
        const struct rel *rel = shared_find(l, input)->aggs.items[at];
        lower_between(b, rel_input(rel), read);
        struct agg_state *s = agg_state_new(l, rel);
        VEC_PUSH(l->arena, &l->aggs, s);
        agg_state_sink(s, b);
        ASSERT(l->status || s->w.b == b); /* none of them needs its rows in order */
    }
    build_finish(b);
    shared_find(l, input)->apart |= !read; /* none is made twice */
}

struct agg_state *agg_together(struct lower *l, const struct rel *rel) {
    const struct rel *below = rel_input(rel);
    struct agg_state *made = take_made(l, rel);
    while (below->kind == REL_PROJECT) {
        below = rel_input(below);
    }
    const struct shared *shared = rel_shares(below) ? shared_find(l, rel_input(below)) : NULL;
    if (made || l->status || !goes_together(l, shared)) {
        return made;
    }
    i64 count = shared->aggs.count;
    i64 at = 0;
    while (at < count && shared->aggs.items[at] != rel) {
        at++;
    }
    i64 first = at / PIPE_AGGS * PIPE_AGGS;
    i64 end = MIN_OF(first + PIPE_AGGS, count);
    make_some(l, rel_input(below), first, end, count > 1 && at == end - 1);
    return take_made(l, rel);
}

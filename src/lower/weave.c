/* weave.c: which operators share a pipeline.
 *
 * Filters, projections and probes depend on their input row by row and are fused into the pipeline
 * of their producer. Builds, aggregations and sorts need all of their input and end it. That much
 * is the shape of lower_rel. Here are the exceptions. With fusion off every operator ends its
 * pipeline in a variable. A pipeline that keeps more registers alive than the limits allow is cut
 * at one of its operators, the middle one of those not tried yet: the plan is lowered again with
 * that cut. Aggregations that share a scan get one each first. */
#include "lower/lower_int.h"

bool weave_cuts_after(const struct lower *l, const struct rel *rel) {
    if (!l->limits->fusion) {
        return rel->kind == REL_FILTER || rel->kind == REL_PROJECT || rel->kind == REL_JOIN ||
               rel->kind == REL_AGG || rel->kind == REL_WINDOW;
    }
    for (i64 i = 0; i < l->cuts.count; i++) {
        if (l->cuts.items[i] == rel) {
            return true;
        }
    }
    return false;
}

/* Ends b with the rows of rel and goes on from there. Rows without columns get one, to be counted
 * by. */
struct builder *weave_cut(struct builder *b, const struct rel *rel) {
    struct lower *l = b->l;
    i64 count = rel->out.count;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count + 1);
    for (i64 i = 0; i < count; i++) {
        cols[i] = lower_carry(b, rel->out.items[i]);
    }
    if (count == 0) {
        cols[0].value = (struct value){build_bool(b, false), NO_REG};
        cols[0].type = type_of(TYPE_BOOLEAN);
    }
    u32 var = lower_rows(b, "rows", cols, (u32)MAX_OF(count, 1), false, -1);
    struct builder *next = lower_over(l, var, rel->rows);
    for (i64 i = 0; i < count; i++) {
        bind_source(next, rel->out.items[i], (u32)i);
    }
    return next;
}

void weave_check(struct lower *l, const struct builder *b, const struct pipeline *pipe) {
    bool over = l->limits->max_live > 0 && build_max_live(pipe) > l->limits->max_live;
    if (over && b->together) {
        VEC_PUSH(l->arena, &l->apart, b->together);
        l->again = 1;
        return;
    }
    if (!over || b->boundaries.count < 2) {
        return;
    }
    i64 middle = (b->boundaries.count - 1) / 2; /* the last one ends the pipeline anyway */
    const struct rel *rel = b->boundaries.items[middle].rel;
    for (i64 i = 0; i < l->wishes.count; i++) {
        if (l->wishes.items[i] == rel) {
            return;
        }
    }
    if (!weave_cuts_after(l, rel)) {
        VEC_PUSH(l->arena, &l->wishes, rel);
    }
}

/* test_order.c: the order in which a filter's conditions are tested.
 *
 * A condition is worth its turn by the rows it drops for every byte that has to be read for it:
 * columns of later ones are loaded only where rows are left. What can be told from the same columns
 * is tested together. A filter of which a condition can raise stays as it is written; lowering puts
 * dear conditions, such as LIKE, behind cheap ones. */
#include "opt/opt_int.h"

enum { MOST_CONDS = 32 }; /* more are left as they are */

struct tests {
    struct opt *o;
    b8 *seen;  /* columns that were read */
    b8 *reads; /* and those of the condition looked at */
    u32 count;
    struct expr *conds[MOST_CONDS];
    b8 placed[MOST_CONDS];
};

static void note_col(u32 col, void *arg) {
    ((b8 *)arg)[col] = 1;
}

/* Bytes of a column's value, as columns are stored by their ranges. */
static f64 col_bytes(const struct opt *o, u32 col) {
    const struct col_fact *fact = &o->facts[col];
    struct type type = o->plan->cols.items[col].type;
    bool text = type_kind(type) == KIND_STR;
    i128 values = fact->has_range               ? fact->range.hi - fact->range.lo
                  : text && fact->has_distinct ? (i128)fact->distinct
                                               : (i128)1 << 40;
    f64 most = text ? 16.0 : (f64)kind_bytes[type_kind(type)];
    f64 bytes = values < 1 << 8 ? 1.0 : values < 1 << 16 ? 2.0 : values < (i128)1 << 32 ? 4.0 : 16.0;
    return MIN_OF(bytes, most);
}

struct within {
    const b8 *seen, *reads;
    bool ok;
};

static void check_within(u32 col, void *arg) {
    struct within *w = arg;
    w->ok = w->ok && (w->seen[col] || w->reads[col]);
}

/* Those left that read no other columns than this one and the ones before, itself first. */
static void gather_with(struct tests *t, u32 at, expr_list *out) {
    struct arena *arena = t->o->plan->arena;
    memset(t->reads, 0, (size_t)t->o->plan->cols.count);
    expr_each_col(t->conds[at], note_col, t->reads);
    VEC_PUSH(arena, out, t->conds[at]);
    for (u32 i = 0; i < t->count; i++) {
        struct within w = {t->seen, t->reads, i != at && !t->placed[i]};
        expr_each_col(t->conds[i], check_within, &w);
        if (w.ok) {
            VEC_PUSH(arena, out, t->conds[i]);
        }
    }
}

static f64 worth(struct tests *t, const expr_list *together) {
    f64 bytes = 0.25; /* what is known costs something, too */
    for (i64 col = 0; col < t->o->plan->cols.count; col++) {
        bytes += t->reads[col] && !t->seen[col] ? col_bytes(t->o, (u32)col) : 0.0;
    }
    return (1.0 - estimate_conds(t->o, together)) / bytes;
}

static bool holds(const expr_list *list, const struct expr *expr) {
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i] == expr) {
            return true;
        }
    }
    return false;
}

/* The conditions worth most now, behind those placed before. */
static bool place_next(struct tests *t, expr_list *out) {
    expr_list best = {0};
    f64 most = -1.0;
    for (u32 i = 0; i < t->count; i++) {
        expr_list together = {0};
        if (t->placed[i]) {
            continue;
        }
        gather_with(t, i, &together);
        f64 now = worth(t, &together);
        if (now > most) {
            most = now;
            best = together;
        }
    }
    for (i64 k = 0; k < best.count; k++) {
        VEC_PUSH(t->o->plan->arena, out, best.items[k]);
        expr_each_col(best.items[k], note_col, t->seen);
    }
    for (u32 i = 0; i < t->count; i++) {
        t->placed[i] = t->placed[i] || holds(&best, t->conds[i]);
    }
    return best.count > 0;
}

static void order_tests(struct rel *rel, void *arg) {
    struct opt *o = arg;
    expr_list *conds = rel->kind == REL_FILTER ? &rel->filter.conds : NULL;
    if (!conds || conds->count < 2 || conds->count > MOST_CONDS) {
        return;
    }
    struct arena *arena = o->plan->arena;
    struct tests t = {.o = o, .count = (u32)conds->count};
    expr_list ordered = {0};
    t.seen = NEW_ARRAY(arena, b8, o->plan->cols.count + 1);
    t.reads = NEW_ARRAY(arena, b8, o->plan->cols.count + 1);
    for (u32 i = 0; i < t.count; i++) {
        t.conds[i] = conds->items[i];
        if (facts_can_raise(o, t.conds[i])) {
            return;
        }
    }
    while (place_next(&t, &ordered)) {
    }
    *conds = ordered;
}

FALLIBLE pass_test_order(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, order_tests, o);
    return ERR_OK;
}

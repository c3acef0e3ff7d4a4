/* late_keys.c: of columns that a group's key decides, only the first rows' are read.
 *
 * `select c_custkey, c_name, c_address, sum(x) … group by c_custkey, c_name, c_address order by sum(x)
 * limit 20` groups by c_custkey alone (group_keys.c), but joins would still carry the names of all
 * customers to the groups. Where neither the order nor HAVING looks at them, the LIMIT is applied to
 * the groups first, and the few that are left meet the table again, by its key:
 *
 *   Limit, Sort, Project                          Limit, Sort, Project
 *     Aggregate by k, which implies a, b            Join on k = k'
 *       Join …                              =>        Limit, Sort
 *         Scan t (k, a, b)                              Aggregate by k
 *                                                         Join … Scan t (k)
 *                                                     Scan t (k', a', b')
 *
 * Every row of a group has a row of t, since only inner joins lie in between, and t's key finds that
 * row again. A table that t's columns lead to in the same way (the nation of a customer) is met again
 * behind it. The upper LIMIT and ORDER BY stay, as a join keeps no order.
 *
 * Columns that nobody reads any more go with prune_columns. */
#include "opt/opt_int.h"

#ifdef WF_HARD
enum { ROWS_MIN = 4 }; /* tests have small tables */
#else
enum { ROWS_MIN = 2000 }; /* that are grouped, to be worth a thought */
#endif
enum {
    GROUPS_TIMES = 8,    /* groups for every row that is wanted */
    TABLE_TIMES = 4,     /* a table so many times larger is looked through for the rows of others */
    WIDTH_MIN_BYTES = 16 /* of what is carried to the groups otherwise */
};

struct late {
    struct opt *o;
    struct rel *limit; /* REL_LIMIT, and what stands below it: */
    struct rel *sort;  /* NULL: any rows will do */
    struct rel *above; /* whose input the groups are */
    struct rel *top;   /* the groups, or the filter of HAVING over them */
    struct rel *agg;
    struct expr *count; /* rows that are wanted */
    i64 rows;
    order_list order; /* over the columns of `top` */
    u8 *early;        /* by column: read by the order or HAVING */
    u32 *same;        /* by column: another one that is equal to it; itself: none, see find */
    VEC(struct rel *) scans;
    struct expr **found; /* by column of the groups' rows: what has its value above the limit */
    struct expr **map;   /* by column of `top`: what stands for it above */
    struct rel *joined;  /* NULL: nothing is worth it */
};

static u32 find(const struct late *l, u32 col) {
    while (l->same[col] != col) {
        col = l->same[col];
    }
    return col;
}

/* --- the pattern --- */

/* As limit and offset together, both constants. */
static bool wanted_rows(struct late *l) {
    const struct expr *limit = l->limit->limit.count;
    const struct expr *offset = l->limit->limit.offset;
    if (!limit || limit->kind != EXPR_CONST || limit->is_null ||
        (offset && offset->kind != EXPR_CONST)) {
        return false;
    }
    i64 skipped = offset && !offset->is_null ? offset->value.i64 : 0;
    if (limit->value.i64 < 1 || limit->value.i64 > I64_MAX / 2 || skipped > I64_MAX / 2) {
        return false;
    }
    l->rows = limit->value.i64 + skipped;
    l->count = expr_new(l->o->plan->arena, EXPR_CONST, limit->type, limit->position);
    l->count->value.i64 = l->rows;
    return true;
}

static void note_early(u32 col, void *arg) {
    struct late *l = arg;
    l->early[col] = 1;
}

static bool map_order(struct late *l, struct expr *const *map) {
    for (i64 i = 0; i < l->order.count; i++) {
        struct expr **key = &l->order.items[i].expr;
        *key = expr_map(l->o->plan->arena, *key, map);
        if (facts_can_raise(l->o, *key) || expr_is_volatile(*key)) {
            return false;
        }
    }
    return true;
}

/* The chain below a LIMIT down to the groups; the order over their columns. */
static bool find_groups(struct late *l) {
    struct plan *plan = l->o->plan;
    struct rel *at = rel_input(l->limit);
    l->above = l->limit;
    if (at->kind == REL_SORT) {
        l->sort = l->above = at;
        for (i64 i = 0; i < at->sort.order.count; i++) {
            VEC_PUSH(plan->arena, &l->order, at->sort.order.items[i]);
        }
        at = rel_input(at);
    }
    for (; at->kind == REL_PROJECT; at = rel_input(at)) {
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        for (i64 i = 0; i < at->project.exprs.count; i++) {
            map[at->out.items[i]] = at->project.exprs.items[i];
        }
        if (!map_order(l, map)) {
            return false;
        }
        l->above = at;
    }
    l->top = at;
    for (i64 i = 0; at->kind == REL_FILTER && i < at->filter.conds.count; i++) {
        expr_each_col(at->filter.conds.items[i], note_early, l);
    }
    for (i64 i = 0; i < l->order.count; i++) {
        expr_each_col(l->order.items[i].expr, note_early, l);
    }
    l->agg = at->kind == REL_FILTER ? rel_input(at) : at;
    return l->agg->kind == REL_AGG && l->agg->agg.implied.count > 0;
}

/* --- tables below, and equal columns --- */

static void join_same(struct late *l, const struct expr *a, const struct expr *b) {
    if (a->kind == EXPR_COL && b->kind == EXPR_COL && type_eq(a->type, b->type) &&
        opt_equal_is_same(a->type)) {
        l->same[find(l, a->col)] = find(l, b->col);
    }
}

/* Tables that every row below comes with a row of. */
static void note_tables(struct late *l, struct rel *rel) {
    if (rel->kind == REL_SCAN && rel->scan.rows_most == 0) {
        VEC_PUSH(l->o->plan->arena, &l->scans, rel);
    } else if (rel->kind == REL_FILTER) {
        note_tables(l, rel_input(rel));
    } else if (rel->kind == REL_JOIN && rel->join.kind != JOIN_FULL) {
        bool inner = opt_is_inner(rel);
        for (i64 i = 0; inner && i < rel->join.left_keys.count; i++) {
            bool null_safe = i < rel->join.null_safe.count && rel->join.null_safe.items[i];
            if (!null_safe) {
                join_same(l, rel->join.left_keys.items[i], rel->join.right_keys.items[i]);
            }
        }
        note_tables(l, rel_left(rel));
        if (inner) {
            note_tables(l, rel_right(rel));
        }
    }
}

/* What the groups' own keys are called above the limit. */
static void find_keys(struct late *l) {
    const struct rel *agg = l->agg;
    for (i64 i = 0; i < agg->agg.keys.count; i++) {
        const struct expr *key = agg->agg.keys.items[i];
        if (!agg->agg.implied.items[i] && key->kind == EXPR_COL) {
            l->found[find(l, key->col)] = expr_col(l->o->plan, agg->out.items[i], -1);
        }
    }
}

/* --- one table --- */

/* Its key, where that has a value above the limit. */
static const struct scan_col *key_of(const struct late *l, const struct rel *scan) {
    for (i64 i = 0; i < scan->scan.cols.count; i++) {
        const struct scan_col *col = &scan->scan.cols.items[i];
        const struct plan_col *info = &l->o->plan->cols.items[col->col];
        const struct expr *found = l->found[find(l, col->col)];
        if (col->unique && (col->no_nulls || !info->nullable) && col->table_col != ROWID_COL &&
            opt_equal_is_same(info->type) && found && type_eq(found->type, info->type)) {
            return col;
        }
    }
    return NULL;
}

/* Whether a group key is a column of this table that may be read late. */
static bool comes_late(const struct late *l, const struct rel *scan, i64 key) {
    const struct expr *expr = l->agg->agg.keys.items[key];
    return l->agg->agg.implied.items[key] && expr->kind == EXPR_COL &&
           !l->early[l->agg->out.items[key]] && !l->map[l->agg->out.items[key]] &&
           rel_has_out(scan, expr->col);
}

static i64 late_bytes(const struct late *l, const struct rel *scan) {
    i64 bytes = 0;
    for (i64 i = 0; i < l->agg->agg.keys.count; i++) {
        if (comes_late(l, scan, i)) {
            bytes += kind_bytes[type_kind(l->agg->agg.keys.items[i]->type)];
        }
    }
    return bytes;
}

/* The first table is to be worth it; others, which are met through it, are not carried either. */
static bool is_worth(const struct late *l, const struct rel *scan) {
    i64 bytes = late_bytes(l, scan);
    i64 grouped = rel_input(l->agg)->rows;
    return l->joined
               ? bytes > 0 && scan->rows <= grouped
               : bytes >= WIDTH_MIN_BYTES && grouped >= ROWS_MIN &&
                     l->agg->rows / GROUPS_TIMES >= l->rows && scan->rows / TABLE_TIMES <= grouped;
}

/* The groups that are wanted. */
static struct rel *first_groups(struct late *l) {
    struct plan *plan = l->o->plan;
    struct rel *at = l->top;
    if (l->order.count > 0) {
        struct rel *sort = rel_new(plan, REL_SORT, at, NULL);
        sort->sort.order.items = l->order.items;
        sort->sort.order.count = sort->sort.order.cap = l->order.count;
        at = sort;
    }
    struct rel *limit = rel_new(plan, REL_LIMIT, at, NULL);
    limit->limit.count = l->count;
    return limit;
}

static void join_again(struct late *l, struct rel *scan, const struct scan_col *key) {
    struct plan *plan = l->o->plan;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct expr *known = l->found[find(l, key->col)];
    struct rel *again = rel_copy(plan, scan, map);
    struct rel *left = l->joined ? l->joined : first_groups(l);
    l->joined = rel_join(plan, JOIN_INNER, left, again);
    VEC_PUSH(plan->arena, &l->joined->join.left_keys, known);
    VEC_PUSH(plan->arena, &l->joined->join.right_keys, map[key->col]);
    for (i64 i = 0; i < l->agg->agg.keys.count; i++) {
        if (comes_late(l, scan, i)) {
            l->map[l->agg->out.items[i]] = map[l->agg->agg.keys.items[i]->col];
        }
    }
    for (i64 i = 0; i < scan->scan.cols.count; i++) {
        u32 col = scan->scan.cols.items[i].col;
        struct expr **found = &l->found[find(l, col)];
        *found = *found ? *found : map[col];
    }
}

/* --- all of it --- */

static bool rename_above(struct rel *rel, void *arg) {
    const struct late *l = arg;
    if (rel != l->top) {
        rel_rename(l->o->plan->arena, rel, l->map, l->o->plan->cols.count);
    }
    return rel != l->top;
}

static void consider(struct opt *o, struct rel *limit) {
    struct plan *plan = o->plan;
    i64 cols = plan->cols.count;
    struct late l = {.o = o, .limit = limit};
    l.early = NEW_ARRAY(plan->arena, u8, cols + 1);
    if (!wanted_rows(&l) || !find_groups(&l)) {
        return;
    }
    l.same = NEW_ARRAY(plan->arena, u32, cols + 1);
    for (u32 i = 0; i < (u32)cols; i++) {
        l.same[i] = i;
    }
    note_tables(&l, rel_input(l.agg));
    /* Columns that are made from here on are in neither, but for room to ask. */
    i64 room = cols;
    for (i64 i = 0; i < l.scans.count; i++) {
        room += l.scans.items[i]->scan.cols.count;
    }
    l.found = NEW_ARRAY(plan->arena, struct expr *, room + 1);
    l.map = NEW_ARRAY(plan->arena, struct expr *, room + 1);
    find_keys(&l);
    for (i64 i = 0; i < l.scans.count; i++) {
        const struct scan_col *key = key_of(&l, l.scans.items[i]);
        if (key && is_worth(&l, l.scans.items[i])) {
            join_again(&l, l.scans.items[i], key);
            l.scans.items[i] = l.scans.items[--l.scans.count];
            i = -1; /* it may lead to others */
        }
    }
    if (l.joined) {
        opt_rely(o, rel_input(l.agg));
        rel_walk(plan->arena, plan->root, rename_above, &l);
        rel_set_input(l.above, l.joined);
    }
}

FALLIBLE pass_late_keys(struct opt *o) {
    estimate_rel(o, o->plan->root);
    rel_all list = opt_all_of(o, REL_LIMIT);
    for (i64 i = 0; i < list.count; i++) {
        consider(o, list.items[i]);
    }
    return ERR_OK;
}

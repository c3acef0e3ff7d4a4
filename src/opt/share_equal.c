/* share_equal.c: equal parts of one statement are computed once.
 *
 * Views and derived tables are often written several times in a statement. Two parts of the plan
 * are equal when their operators and expressions are, up to the numbers of columns; the first then
 * becomes the input of a SHARED, and the others are SHAREDs over it that make the columns they made
 * before. The largest equal parts are taken first.
 *
 * A shared part ends in a variable, which pays where it ends there anyway (aggregates, windows),
 * and where its result is much smaller than what it reads (joins, filters). Parts with volatile
 * functions stay apart. The pass runs behind those that move conditions and semi joins into a part:
 * what made two uses differ was worth more than sharing. */
#include "opt/opt_int.h"

#ifdef WF_HARD
enum { ROWS_MIN = 2 }; /* tests have small tables */
#else
enum { ROWS_MIN = 10000 }; /* read by a part, to be worth a thought */
#endif
enum { WORTH = 8 };

struct part {
    struct rel *rel;
    struct rel *parent;
    i32 which;
    u64 hash;
    i64 end;  /* what is below it stands up to there */
    i64 read; /* rows of the scans below */
    b8 gone;  /* below a part that is shared now */
};

struct parts {
    struct opt *o;
    VEC(struct part) items; /* parents first, each followed by all that is below it */
};

static u64 mix(u64 hash, u64 value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* Equal parts have equal hashes. */
static u64 own_hash(const struct rel *rel) {
    u64 hash = mix(rel->kind, rel->join);
    hash = mix(hash, rel->table_id);
    hash = mix(hash, rel->table_func);
    hash = mix(hash, (u64)rel->conds.count);
    hash = mix(hash, (u64)rel->exprs.count);
    hash = mix(hash, (u64)rel->calls.count);
    hash = mix(hash, (u64)rel->left_keys.count);
    hash = mix(hash, (u64)rel->windows.count);
    return mix(hash, (u64)rel->order.count);
}

static i64 collect(struct parts *p, struct rel *rel, struct rel *parent, i32 which) {
    struct part part = {.rel = rel, .parent = parent, .which = which, .hash = own_hash(rel)};
    i64 at = p->items.count;
    VEC_PUSH(p->o->plan->arena, &p->items, part);
    part.read = rel->kind == REL_SCAN ? rel->table_rows : 0;
    if (rel->kind == REL_SHARED) {
        part.hash = mix(part.hash, (u64)rel->left_cols.count);
        if (opt_first_visit(p->o, rel->inputs[0])) {
            collect(p, rel->inputs[0], rel, 0);
        }
    } else {
        for (i32 i = 0; i < rel->input_count; i++) {
            i64 below = collect(p, rel->inputs[i], rel, i);
            part.hash = mix(part.hash, p->items.items[below].hash);
            part.read += p->items.items[below].read;
        }
    }
    part.end = p->items.count;
    p->items.items[at] = part;
    return at;
}

static bool is_worth(const struct part *part) {
    const struct rel *rel = part->rel;
    if (!part->parent || part->parent->kind == REL_SHARED || part->read < ROWS_MIN) {
        return false;
    }
    if (rel->kind == REL_AGG || rel->kind == REL_WINDOW) {
        return true;
    }
    return (rel->kind == REL_JOIN || rel->kind == REL_FILTER) && rel->rows <= part->read / WORTH;
}

struct match {
    struct opt *o;
    struct expr **map; /* by column of the second part: that of the first */
};

static bool equal_exprs(const struct match *m, struct expr *const *a, struct expr *const *b,
                        i64 count) {
    for (i64 i = 0; i < count; i++) {
        if ((a[i] == NULL) != (b[i] == NULL)) {
            return false;
        }
        if (a[i] && (opt_is_volatile(a[i]) ||
                     !expr_equal(a[i], expr_map(m->o->plan->arena, b[i], m->map)))) {
            return false;
        }
    }
    return true;
}

static bool equal_orders(const struct match *m, const struct order_key *a,
                         const struct order_key *b, i64 count) {
    for (i64 i = 0; i < count; i++) {
        if (a[i].descending != b[i].descending || a[i].nulls_first != b[i].nulls_first ||
            !equal_exprs(m, &a[i].expr, &b[i].expr, 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_calls(const struct match *m, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < a->calls.count; i++) {
        const struct agg_call *x = &a->calls.items[i];
        const struct agg_call *y = &b->calls.items[i];
        if (x->agg != y->agg || x->distinct != y->distinct || x->order.count != y->order.count ||
            !equal_exprs(m, &x->arg, &y->arg, 1) || !equal_exprs(m, &x->arg2, &y->arg2, 1) ||
            !equal_exprs(m, &x->filter, &y->filter, 1) ||
            !equal_orders(m, x->order.items, y->order.items, x->order.count)) {
            return false;
        }
    }
    return true;
}

static bool equal_windows(const struct match *m, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < a->windows.count; i++) {
        const struct window_call *x = &a->windows.items[i];
        const struct window_call *y = &b->windows.items[i];
        const struct frame *f = &x->frame;
        const struct frame *g = &y->frame;
        if (x->is_serial || y->is_serial || x->is_agg != y->is_agg || x->func != y->func ||
            x->arg_count != y->arg_count || f->mode != g->mode || f->from != g->from ||
            f->to != g->to || f->exclude != g->exclude ||
            !equal_exprs(m, x->args, y->args, x->arg_count) ||
            !equal_exprs(m, &x->filter, &y->filter, 1) ||
            !equal_exprs(m, &f->from_offset, &g->from_offset, 1) ||
            !equal_exprs(m, &f->to_offset, &g->to_offset, 1)) {
            return false;
        }
    }
    return true;
}

static void name(struct match *m, u32 second, u32 first) {
    m->map[second] = expr_col(m->o->plan, first, -1);
}

static bool is_named(const struct match *m, u32 second, u32 first) {
    return m->map[second] && m->map[second]->col == first;
}

static bool equal_scans(struct match *m, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < b->scan_cols.count; i++) {
        i64 at = 0;
        while (at < a->scan_cols.count &&
               a->scan_cols.items[at].table_col != b->scan_cols.items[i].table_col) {
            at++;
        }
        if (at == a->scan_cols.count || b->scan_cols.items[i].table_col == ROWID_COL) {
            return false;
        }
        name(m, b->scan_cols.items[i].col, a->scan_cols.items[at].col);
    }
    return true;
}

static bool equal_lists(const struct match *m, const struct rel *a, const struct rel *b) {
    if (a->kind == REL_SHARED) {
        return a->inputs[0] == b->inputs[0] &&
               memcmp(a->left_cols.items, b->left_cols.items,
                      sizeof(u32) * (size_t)a->left_cols.count) == 0;
    }
    for (i64 i = 0; i < a->left_cols.count; i++) {
        if (!is_named(m, b->left_cols.items[i], a->left_cols.items[i]) ||
            !is_named(m, b->right_cols.items[i], a->right_cols.items[i])) {
            return false;
        }
    }
    for (i64 i = 0; i < a->null_safe.count; i++) {
        if (a->null_safe.items[i] != b->null_safe.items[i]) {
            return false;
        }
    }
    return true;
}

static bool equal_counts(const struct rel *a, const struct rel *b) {
    bool rounds = a->kind == REL_FIX || a->kind == REL_WORK;
    return !rounds && a->kind == b->kind && a->join == b->join && a->table_id == b->table_id &&
           a->table_func == b->table_func && a->conds.count == b->conds.count &&
           a->exprs.count == b->exprs.count && a->calls.count == b->calls.count &&
           a->left_keys.count == b->left_keys.count && a->windows.count == b->windows.count &&
           a->order.count == b->order.count && a->null_safe.count == b->null_safe.count &&
           a->left_cols.count == b->left_cols.count && a->input_count == b->input_count;
}

/* The columns an operator makes, one by one. */
static bool name_made(struct match *m, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < a->windows.count; i++) {
        name(m, b->windows.items[i].col, a->windows.items[i].col);
    }
    if (a->kind == REL_JOIN && a->join == JOIN_MARK) {
        name(m, b->mark_col, a->mark_col);
    }
    bool makes = a->kind == REL_PROJECT || a->kind == REL_AGG || a->kind == REL_VALUES ||
                 a->kind == REL_UNION || a->kind == REL_SHARED || a->kind == REL_FUNC;
    if (makes && a->out.count != b->out.count) {
        return false;
    }
    for (i64 i = 0; makes && i < a->out.count; i++) {
        if (!type_eq(m->o->plan->cols.items[a->out.items[i]].type,
                     m->o->plan->cols.items[b->out.items[i]].type)) {
            return false;
        }
        name(m, b->out.items[i], a->out.items[i]);
    }
    return true;
}

static bool equal(struct match *m, const struct rel *a, const struct rel *b) {
    if (!equal_counts(a, b)) {
        return false;
    }
    for (i32 i = 0; i < a->input_count && a->kind != REL_SHARED; i++) {
        if (!equal(m, a->inputs[i], b->inputs[i])) {
            return false;
        }
    }
    if (a->kind == REL_SCAN && !equal_scans(m, a, b)) {
        return false;
    }
    return equal_exprs(m, a->conds.items, b->conds.items, a->conds.count) &&
           equal_exprs(m, a->exprs.items, b->exprs.items, a->exprs.count) &&
           equal_exprs(m, a->left_keys.items, b->left_keys.items, a->left_keys.count) &&
           equal_exprs(m, a->right_keys.items, b->right_keys.items, a->left_keys.count) &&
           equal_exprs(m, &a->limit, &b->limit, 1) && equal_exprs(m, &a->offset, &b->offset, 1) &&
           equal_orders(m, a->order.items, b->order.items, a->order.count) &&
           equal_calls(m, a, b) && equal_windows(m, a, b) && equal_lists(m, a, b) &&
           name_made(m, a, b);
}

/* Whether all that the second part hands on is handed on by the first. */
static bool covers(const struct match *m, const struct rel *a, const struct rel *b) {
    for (i64 i = 0; i < b->out.count; i++) {
        const struct expr *first = m->map[b->out.items[i]];
        if (!first || !rel_has_out(a, first->col)) {
            return false;
        }
    }
    return true;
}

static void forget_below(struct parts *p, const struct part *part) {
    for (i64 i = part - p->items.items; i < part->end; i++) {
        p->items.items[i].gone = 1;
    }
}

/* The second part becomes another use of the first. */
static void join_use(struct parts *p, const struct match *m, struct part *first,
                     struct part *second) {
    struct plan *plan = p->o->plan;
    struct rel *use = rel_new(plan, REL_SHARED, first->rel, NULL);
    for (i64 i = 0; i < second->rel->out.count; i++) {
        u32 col = second->rel->out.items[i];
        VEC_PUSH(plan->arena, &use->left_cols, m->map[col]->col);
        VEC_PUSH(plan->arena, &use->out, col);
    }
    use->rows = first->rel->rows;
    second->parent->inputs[second->which] = use;
    forget_below(p, second);
}

static void consider(struct parts *p, i64 at) {
    struct plan *plan = p->o->plan;
    struct part *first = &p->items.items[at];
    bool shared = false;
    for (i64 i = at + 1; i < p->items.count; i++) {
        struct part *second = &p->items.items[i];
        if (second->gone || second->hash != first->hash || !second->parent ||
            second->parent->kind == REL_SHARED) {
            continue;
        }
        struct match m = {.o = p->o};
        m.map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        if (equal(&m, first->rel, second->rel) && covers(&m, first->rel, second->rel)) {
            join_use(p, &m, first, second);
            shared = true;
        }
    }
    if (shared) {
        opt_share(plan, first->parent, first->which);
        forget_below(p, first);
    }
}

FALLIBLE pass_share_equal(struct opt *o) {
    enum { MOST = 400 }; /* operators: the search is quadratic */
    struct parts p = {.o = o};
    estimate_rel(o, o->plan->root);
    o->visited.count = 0;
    collect(&p, o->plan->root, NULL, 0);
    for (i64 i = 0; i < p.items.count && p.items.count <= MOST; i++) {
        if (!p.items.items[i].gone && is_worth(&p.items.items[i])) {
            consider(&p, i);
        }
    }
    return ERR_OK;
}

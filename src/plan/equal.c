/* equal.c: whether two parts of a plan compute the same.
 *
 * They do when their operators and expressions are equal up to the numbers of columns. The map
 * grows from the inputs upwards: what the second part's operators make is called by the names of
 * the first's, so that expressions above can be compared. What the optimiser noted about an
 * operator does not count, and what is volatile is equal to nothing. Recursions are not either, but who
 * shares within the rounds of one may say that its rows are equal to themselves. */
#include "plan/plan_int.h"

struct match {
    struct plan *plan;
    struct expr **map; /* by column of the second part: that of the first */
    const struct rel *a, *b;
    u32 fix; /* rows of this recursion are equal to themselves; 0 = none */
};

static u64 mix(u64 hash, u64 value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* Items of a list that equal operators have as many of; -1: it is none. */
static i64 count_of(const struct rel *rel, const struct rel_field *field) {
    const void *at = field_in(rel, field);
    switch (field->class) {
    case FIELD_EXPRS:
    case FIELD_MAKES:
    case FIELD_CONDS:
        return ((const expr_list *)at)->count;
    case FIELD_ORDER:
        return ((const order_list *)at)->count;
    case FIELD_CALLS:
        return ((const agg_list *)at)->count;
    case FIELD_WINDOWS:
        return ((const window_list *)at)->count;
    case FIELD_COLS:
        return (*(col_list *const *)at)->count;
    case FIELD_FLAGS:
        return ((const flag_list *)at)->count;
    default:
        return -1;
    }
}

u64 rel_hash(const struct rel *rel) {
    u64 hash = mix(rel->kind, (u64)rel->input_count);
    EACH_FIELD(field, rel) {
        u64 word = 0;
        if (field->class == FIELD_WORD) {
            memcpy(&word, field_in(rel, field), field->bytes);
        }
        hash = mix(hash, word + (u64)count_of(rel, field));
    }
    return hash;
}

static bool equal_shape(const struct match *m) {
    const struct rel *a = m->a;
    const struct rel *b = m->b;
    bool rounds = a->kind == REL_WORK && b->kind == REL_WORK && m->fix && a->work.fix == m->fix &&
                  b->work.fix == m->fix;
    if (a->kind != b->kind || a->input_count != b->input_count) {
        return false;
    }
    EACH_FIELD(field, a) {
        bool word = field->class == FIELD_WORD &&
                    memcmp(field_in(a, field), field_in(b, field), field->bytes) != 0;
        if (word || (field->class == FIELD_FIX && !rounds) ||
            count_of(a, field) != count_of(b, field)) {
            return false;
        }
    }
    return true;
}

static bool equal_exprs(const struct match *m, struct expr *const *a, struct expr *const *b,
                        i64 count) {
    for (i64 i = 0; i < count; i++) {
        if ((a[i] == NULL) != (b[i] == NULL)) {
            return false;
        }
        if (a[i] &&
            (expr_is_volatile(a[i]) || !expr_equal(a[i], expr_map(m->plan->arena, b[i], m->map)))) {
            return false;
        }
    }
    return true;
}

static bool equal_orders(const struct match *m, const order_list *a, const order_list *b) {
    for (i64 i = 0; i < a->count; i++) {
        const struct order_key *x = &a->items[i];
        const struct order_key *y = &b->items[i];
        if (x->descending != y->descending || x->nulls_first != y->nulls_first ||
            !equal_exprs(m, &x->expr, &y->expr, 1)) {
            return false;
        }
    }
    return true;
}

static bool equal_calls(const struct match *m, const agg_list *a, const agg_list *b) {
    for (i64 i = 0; i < a->count; i++) {
        const struct agg_call *x = &a->items[i];
        const struct agg_call *y = &b->items[i];
        if (x->agg != y->agg || x->distinct != y->distinct || x->order.count != y->order.count ||
            !equal_exprs(m, &x->arg, &y->arg, 1) || !equal_exprs(m, &x->arg2, &y->arg2, 1) ||
            !equal_exprs(m, &x->filter, &y->filter, 1) || !equal_orders(m, &x->order, &y->order)) {
            return false;
        }
    }
    return true;
}

static bool equal_windows(const struct match *m, const window_list *a, const window_list *b) {
    for (i64 i = 0; i < a->count; i++) {
        const struct window_call *x = &a->items[i];
        const struct window_call *y = &b->items[i];
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
        m->map[y->col] = expr_col(m->plan, x->col, -1);
    }
    return true;
}

/* The second scan's columns are among the first's. */
static bool equal_scans(const struct match *m, const scan_list *a, const scan_list *b) {
    for (i64 i = 0; i < b->count; i++) {
        i64 at = 0;
        while (at < a->count && a->items[at].table_col != b->items[i].table_col) {
            at++;
        }
        if (at == a->count || b->items[i].table_col == ROWID_COL) {
            return false;
        }
        m->map[b->items[i].col] = expr_col(m->plan, a->items[at].col, -1);
    }
    return true;
}

/* Columns of a shared input are the same ones. */
static bool equal_cols(const struct match *m, const col_list *a, const col_list *b) {
    for (i64 i = 0; i < a->count * m->a->input_count; i++) {
        u32 first = a[i / a->count].items[i % a->count];
        u32 second = b[i / a->count].items[i % a->count];
        const struct expr *named = m->map[second];
        if (rel_shares(m->a) ? first != second : !named || named->col != first) {
            return false;
        }
    }
    return true;
}

static bool equal_marks(const struct match *m, u32 a, u32 b) {
    if (a != NO_COL && b != NO_COL) {
        m->map[b] = expr_col(m->plan, a, -1);
    }
    return (a == NO_COL) == (b == NO_COL);
}

static bool equal_field(const struct match *m, const struct rel_field *field) {
    const void *a = field_in(m->a, field);
    const void *b = field_in(m->b, field);
    i64 count = count_of(m->a, field);
    switch (field->class) {
    case FIELD_EXPRS:
    case FIELD_MAKES:
    case FIELD_CONDS:
        return equal_exprs(m, ((const expr_list *)a)->items, ((const expr_list *)b)->items, count);
    case FIELD_BOUND:
        return equal_exprs(m, a, b, 1);
    case FIELD_ORDER:
        return equal_orders(m, a, b);
    case FIELD_CALLS:
        return equal_calls(m, a, b);
    case FIELD_WINDOWS:
        return equal_windows(m, a, b);
    case FIELD_SCANS:
        return equal_scans(m, a, b);
    case FIELD_COLS:
        return equal_cols(m, *(col_list *const *)a, *(col_list *const *)b);
    case FIELD_MARK:
        return equal_marks(m, *(const u32 *)a, *(const u32 *)b);
    case FIELD_FLAGS:
        return count == 0 || memcmp(((const flag_list *)a)->items, ((const flag_list *)b)->items,
                                    (size_t)count) == 0;
    default:
        return true;
    }
}

/* The columns an operator makes, one by one. */
static bool name_made(const struct match *m) {
    const struct plan_col *cols = m->plan->cols.items;
    if (rel_passes(m->a)) {
        return true;
    }
    if (m->a->out.count != m->b->out.count) {
        return false;
    }
    for (i64 i = 0; i < m->a->out.count; i++) {
        u32 first = m->a->out.items[i];
        u32 second = m->b->out.items[i];
        if (!type_eq(cols[first].type, cols[second].type)) {
            return false;
        }
        m->map[second] = expr_col(m->plan, first, -1);
    }
    return true;
}

bool rel_equal_round(struct plan *plan, const struct rel *a, const struct rel *b, struct expr **map,
                     u32 fix) {
    struct match m = {plan, map, a, b, fix};
    bool same = equal_shape(&m);
    for (i32 i = 0; same && i < a->input_count; i++) {
        same = rel_shares(a) ? a->inputs[i] == b->inputs[i]
                             : rel_equal_round(plan, a->inputs[i], b->inputs[i], map, fix);
    }
    EACH_FIELD(field, a) {
        same = same && equal_field(&m, field);
    }
    return same && name_made(&m);
}

bool rel_equal(struct plan *plan, const struct rel *a, const struct rel *b, struct expr **map) {
    return rel_equal_round(plan, a, b, map, 0);
}

/* bind_depend.c: columns that a primary key in GROUP BY decides.
 *
 * Part of binding. When all columns of a table's primary key are group keys, every other column of
 * that table has one value in a group, and may be used above the groups as if it were a key, as in
 * PostgreSQL. It becomes one: the groups stay the same, and the pass group_keys takes it out of
 * the key again. The key must be in every grouping set. Only tables named in FROM count; a derived
 * table has columns of its own. */
#include "sql/select_int.h"

struct dependents {
    struct bind *b;
    struct select *s;
};

static i64 key_number(const struct select *s, u32 col) {
    for (i64 i = 0; i < s->keys.count; i++) {
        if (s->keys.items[i]->kind == EXPR_COL && s->keys.items[i]->col == col) {
            return i;
        }
    }
    return -1;
}

static bool in_all_sets(const struct select *s, i64 key) {
    for (i64 i = 0; i < s->sets.count; i++) {
        const struct key_set *set = &s->sets.items[i];
        bool in = false;
        for (i64 k = 0; k < set->keys.count; k++) {
            in = in || set->keys.items[k] == key;
        }
        if (!in) {
            return false;
        }
    }
    return true;
}

static bool depends(const struct dependents *d, u32 col) {
    for (i64 i = 0; i < d->b->scan_keys.count; i++) {
        const struct scan_key *known = &d->b->scan_keys.items[i];
        if (col < known->first || col - known->first >= known->count) {
            continue;
        }
        bool all = true;
        for (u32 k = 0; k < known->key_count && all; k++) {
            i64 number = key_number(d->s, known->first + known->keys[k]);
            all = number >= 0 && in_all_sets(d->s, number);
        }
        return all;
    }
    return false;
}

static void note_col(u32 col, void *arg) {
    struct dependents *d = arg;
    struct select *s = d->s;
    if (key_number(s, col) >= 0 || !rel_has_out(s->rel, col) || !depends(d, col)) {
        return;
    }
    for (i64 i = 0; i < s->sets.count; i++) {
        VEC_PUSH(d->b->arena, &s->sets.items[i].keys, s->keys.count);
    }
    VEC_PUSH(d->b->arena, &s->keys, expr_col(d->b->plan, col, -1));
}

static void note_slot(struct expr **slot, void *arg) {
    expr_each_col(*slot, note_col, arg);
}

static void note_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, note_slot, arg);
}

static void note_pending(struct dependents *d, const pending_list *list) {
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i].serial) {
            window_each_expr(&list->items[i].call, note_slot, d);
            continue;
        }
        rel_each(d->b->arena, list->items[i].rel, note_rel, d);
        for (i64 k = 0; k < list->items[i].conds.count; k++) {
            note_slot(&list->items[i].conds.items[k], d);
        }
    }
}

void bind_dependents(struct bind *b, struct select *s) {
    struct dependents d = {b, s};
    struct query *q = &s->query;
    if (s->keys.count == 0 || b->scan_keys.count == 0) {
        return;
    }
    for (i64 i = 0; i < s->exprs.count; i++) {
        note_slot(&s->exprs.items[i], &d);
    }
    if (s->having) {
        note_slot(&s->having, &d);
    }
    for (i64 i = 0; i < q->windows.count; i++) {
        bind_window_each_expr(&q->windows.items[i], note_slot, &d);
    }
    note_pending(&d, &s->having_pending);
    note_pending(&d, &q->pending);
}

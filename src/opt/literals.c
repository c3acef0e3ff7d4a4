/* literals.c: joins with lists of literals.
 *
 *     join on x = v                      filter x IN (1, 2, 3)
 *       …                                  …
 *       values (1), (2), (3) as v
 *
 * A row meets at most one of a list whose values differ, so the join is a condition, and v is x. Facts of LogiQL and
 * VALUES of SQL say IN that way. Semi and anti joins are conditions, too. Conditions reach the scan, which skips what
 * they rule out, where a join would build a table, wait for it and, of texts, compare them one by one.
 *
 * Of a list with further columns the join stays. But texts that are equal to a column of a table are read from there,
 * where they have numbers already. See decision 0042. */
#include "opt/opt_int.h"

enum { LIST_MOST = 256 };

struct list {
    const struct rel *values;
    i64 at; /* column */
};

/* The literals that a column is, whatever copies it. */
static bool find_list(const struct rel *rel, u32 col, struct list *out) {
    for (;;) {
        i64 at = 0;
        while (at < rel->out.count && rel->out.items[at] != col) {
            at++;
        }
        bool copies = rel->kind == REL_SHARED || (rel->kind == REL_PROJECT && at < rel->out.count &&
                                                  rel->project.exprs.items[at]->kind == EXPR_COL);
        if (at == rel->out.count || (rel->kind != REL_VALUES && !copies)) {
            return false;
        }
        if (rel->kind == REL_VALUES) {
            *out = (struct list){rel, at};
            return true;
        }
        col = rel->kind == REL_SHARED ? rel->shared.cols->items[at]
                                      : rel->project.exprs.items[at]->col;
        rel = rel_input(rel);
    }
}

static i64 list_rows(const struct list *list) {
    return list->values->values.exprs.count / list->values->out.count;
}

static struct expr *list_item(const struct list *list, i64 row) {
    return list->values->values.exprs.items[row * list->values->out.count + list->at];
}

/* Constants of the type, none of which is NULL, and for `differ` no two equal. */
static bool is_plain(const struct list *list, struct type type, bool differ) {
    i64 rows = list_rows(list);
    if (rows == 0 || rows > LIST_MOST || !opt_equal_is_same(type)) {
        return false;
    }
    for (i64 i = 0; i < rows; i++) {
        const struct expr *item = list_item(list, i);
        if (item->kind != EXPR_CONST || item->is_null || !type_eq(item->type, type)) {
            return false;
        }
        for (i64 k = 0; k < i && differ; k++) {
            if (expr_equal(item, list_item(list, k))) {
                return false;
            }
        }
    }
    return true;
}

/* A whole number that was made wider only to be compared; numbers that do not fit are no values of it. */
static struct expr *narrowed(struct expr *what) {
    bool widens = what->kind == EXPR_CAST && type_is_integer(what->type) &&
                  type_is_integer(what->args[0]->type);
    struct range from = range_of_type(widens ? what->args[0]->type : what->type);
    return widens && range_within(from, range_of_type(what->type)) ? what->args[0] : what;
}

static void push_item(struct arena *arena, expr_list *to, struct expr *item, struct type type) {
    if (!type_eq(item->type, type)) {
        struct range all = range_of_type(type);
        struct expr *copy = expr_new(arena, EXPR_CONST, type, item->position);
        if (const_exact(item) < all.lo || const_exact(item) > all.hi) {
            return;
        }
        const_set_exact(copy, const_exact(item));
        item = copy;
    }
    VEC_PUSH(arena, to, item);
}

static struct expr *is_in(struct arena *arena, struct expr *what, const struct list *list) {
    expr_list args = {0};
    what = narrowed(what);
    VEC_PUSH(arena, &args, what);
    for (i64 i = 0; i < list_rows(list); i++) {
        push_item(arena, &args, list_item(list, i), what->type);
    }
    if (args.count == 1) { /* equal to none of them; NULL of NULL is not true either */
        struct expr *no = expr_new(arena, EXPR_CONST, type_of(TYPE_BOOLEAN), what->position);
        return no;
    }
    struct expr *in = expr_new(arena, EXPR_IN, type_of(TYPE_BOOLEAN), what->position);
    in->arg_count = (i32)args.count;
    in->args = args.items;
    return in;
}

static struct expr *with_args(struct arena *arena, enum expr_kind kind, struct expr *a,
                              struct expr *b) {
    struct expr *expr = expr_new(arena, kind, type_of(TYPE_BOOLEAN), a->position);
    expr->arg_count = b ? 2 : 1;
    expr->args = NEW_ARRAY(arena, struct expr *, 2);
    expr->args[0] = a;
    expr->args[1] = b;
    return expr;
}

/* Of an anti join: rows whose value is NULL meet nothing. */
static struct expr *is_not_in(struct opt *o, struct expr *what, const struct list *list) {
    struct arena *arena = o->plan->arena;
    struct expr *not = with_args(arena, EXPR_NOT, is_in(arena, what, list), NULL);
    if (!expr_nullable(o->plan, what)) {
        return not;
    }
    return with_args(arena, EXPR_OR, with_args(arena, EXPR_IS_NULL, what, NULL), not);
}

/* --- columns that are others from here on --- */

struct renaming {
    struct opt *o;
    const struct rel *stop;
    struct expr **map;
    i64 count;
};

/* A column that is passed on by two names is passed on once. */
static void pass_once(struct arena *arena, struct rel *rel) {
    col_list once = {0};
    for (i64 i = 0; i < rel->out.count; i++) {
        bool seen = false;
        for (i64 k = 0; k < once.count && !seen; k++) {
            seen = once.items[k] == rel->out.items[i];
        }
        if (!seen) {
            VEC_PUSH(arena, &once, rel->out.items[i]);
        }
    }
    rel->out = once;
}

static bool rename_above(struct rel *rel, void *arg) {
    struct renaming *r = arg;
    if (rel == r->stop) {
        return false;
    }
    rel_rename(r->o->plan->arena, rel, r->map, r->count);
    if (rel_passes(rel) && rel->kind != REL_SCAN) {
        pass_once(r->o->plan->arena, rel);
    }
    return true;
}

void opt_rename_above(struct opt *o, const struct rel *stop, struct expr **map, i64 count) {
    struct renaming r = {o, stop, map, count};
    rel_walk(o->plan->arena, o->plan->root, rename_above, &r);
}

struct dropping {
    struct arena *arena;
    const struct rel *stop;
    u32 col;
};

static bool drop_col(struct rel *rel, void *arg) {
    const struct dropping *d = arg;
    if (rel != d->stop && rel_passes(rel) && rel_has_out(rel, d->col)) {
        col_list kept = {0};
        for (i64 i = 0; i < rel->out.count; i++) {
            if (rel->out.items[i] != d->col) {
                VEC_PUSH(d->arena, &kept, rel->out.items[i]);
            }
        }
        rel->out = kept;
    }
    return rel != d->stop;
}

void opt_drop_above(struct opt *o, const struct rel *stop, u32 col) {
    struct dropping d = {o->plan->arena, stop, col};
    rel_walk(o->plan->arena, o->plan->root, drop_col, &d);
}

static struct expr **no_names(struct opt *o) {
    return NEW_ARRAY(o->plan->arena, struct expr *, o->plan->cols.count + 1);
}

struct usage {
    const struct rel *join;
    u32 col;
    b8 found;
};

static void note_use(u32 col, void *arg) {
    struct usage *u = arg;
    u->found = u->found || col == u->col;
}

static void look_in(struct expr **slot, void *arg) {
    if (*slot) {
        expr_each_col(*slot, note_use, arg);
    }
}

static void look_for_use(struct rel *rel, void *arg) {
    struct usage *u = arg;
    if (rel != u->join) {
        rel_each_expr(rel, look_in, u);
    }
    for (i32 k = 0; k < rel->input_count; k++) {
        const col_list *cols = rel_cols(rel, k);
        for (i64 i = 0; cols && i < cols->count; i++) {
            note_use(cols->items[i], u);
        }
    }
}

bool opt_is_read(struct opt *o, const struct rel *join, u32 col) {
    struct usage u = {join, col, 0};
    rel_each(o->plan->arena, o->plan->root, look_for_use, &u);
    return u.found;
}

/* --- joins --- */

static void push_conds(struct opt *o, struct rel *filter, const expr_list *conds,
                       struct expr **map) {
    for (i64 i = 0; i < conds->count; i++) {
        VEC_PUSH(o->plan->arena, &filter->filter.conds,
                 expr_map(o->plan->arena, conds->items[i], map));
    }
}

/* The join becomes a filter, its column of literals what it is compared with: a column, or one that a projection
 * makes. */
static void become_filter(struct opt *o, struct rel *join, i32 side, struct expr *what, u32 col,
                          struct expr *cond) {
    struct plan *plan = o->plan;
    struct rel *other = join->inputs[1 - side];
    struct expr **map = no_names(o);
    i64 count = plan->cols.count;
    expr_list conds = join->join.conds;
    col_list out = join->out;
    struct rel *filter = rel_new(plan, REL_FILTER, other, NULL);
    map[col] = what;
    VEC_PUSH(plan->arena, &filter->filter.conds, cond);
    push_conds(o, filter, &conds, map);
    if (what->kind == EXPR_COL || !opt_is_read(o, join, col)) {
        rel_become(plan, join, REL_FILTER, other);
        join->filter.conds = filter->filter.conds;
        join->out = filter->out;
    } else {
        rel_become(plan, join, REL_PROJECT, filter);
        join->out = (col_list){0};
        for (i64 i = 0; i < out.count; i++) {
            u32 old = out.items[i];
            u32 made = plan_col_like(plan, old);
            plan->cols.items[made].nullable = old != col && plan->cols.items[old].nullable;
            VEC_PUSH(plan->arena, &join->project.exprs, old == col ? what : expr_col(plan, old, -1));
            VEC_PUSH(plan->arena, &join->out, made);
        }
        for (i64 i = 0; i < out.count; i++) {
            map[out.items[i]] = expr_col(plan, join->out.items[i], -1);
        }
    }
    if (what->kind == EXPR_COL || join->kind == REL_PROJECT) {
        opt_rename_above(o, join, map, count);
    } else {
        opt_drop_above(o, join, col);
    }
}

static bool is_shown(const struct opt *o, const struct rel *join, u32 col) {
    return o->plan->root == join || rel_has_out(o->plan->root, col);
}

static bool has_plain_keys(const struct rel *join) {
    for (i64 i = 0; i < join->join.null_safe.count; i++) {
        if (join->join.null_safe.items[i]) {
            return false;
        }
    }
    return join->join.left_keys.count > 0 && !join->join.dependent;
}

static struct expr *key_of(const struct rel *join, i32 side, i64 i) {
    return (side == 0 ? &join->join.left_keys : &join->join.right_keys)->items[i];
}

/* An inner join whose side is one column of literals. */
static bool take_inner(struct opt *o, struct rel *join, i32 side) {
    struct rel *rel = join->inputs[side];
    struct expr *key = key_of(join, side, 0), *what = key_of(join, 1 - side, 0);
    struct list list;
    bool plain = join->join.left_keys.count == 1 && rel->out.count == 1 && key->kind == EXPR_COL &&
                 !is_shown(o, join, key->col) && find_list(rel, key->col, &list) &&
                 is_plain(&list, what->type, true) && !expr_is_volatile(what);
    if (plain) {
        become_filter(o, join, side, what, key->col, is_in(o->plan->arena, what, &list));
    }
    return plain;
}

static bool take_semi(struct opt *o, struct rel *join) {
    struct expr *key = key_of(join, 1, 0), *what = key_of(join, 0, 0);
    bool anti = join->join.kind == JOIN_ANTI;
    struct list list;
    bool plain = join->join.left_keys.count == 1 && join->join.conds.count == 0 &&
                 key->kind == EXPR_COL && find_list(rel_right(join), key->col, &list) &&
                 is_plain(&list, what->type, false) && !expr_is_volatile(what);
    if (plain) {
        col_list out = join->out;
        struct expr *cond =
            anti ? is_not_in(o, what, &list) : is_in(o->plan->arena, what, &list);
        rel_become(o->plan, join, REL_FILTER, rel_left(join));
        VEC_PUSH(o->plan->arena, &join->filter.conds, cond);
        join->out = out;
    }
    return plain;
}

/* Texts of a list that are those of a table's column. */
static bool read_table(struct opt *o, struct rel *join, i32 side) {
    struct expr **map = no_names(o);
    bool any = false;
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        const struct expr *key = key_of(join, side, i), *what = key_of(join, 1 - side, i);
        struct list list;
        bool texts = key->kind == EXPR_COL && what->kind == EXPR_COL &&
                     type_kind(key->type) == KIND_STR && type_eq(key->type, what->type) &&
                     !is_shown(o, join, key->col) && rel_has_out(join, what->col) &&
                     what->col < o->fact_count && o->facts[what->col].source &&
                     find_list(join->inputs[side], key->col, &list);
        if (texts) {
            map[key->col] = expr_col(o->plan, what->col, -1);
            any = true;
        }
    }
    if (any) {
        opt_rename_above(o, join, map, o->plan->cols.count);
    }
    return false; /* no condition is new */
}

static bool take(struct opt *o, struct rel *join) {
    u8 kind = join->join.kind;
    if (!has_plain_keys(join)) {
        return false;
    }
    if (kind == JOIN_SEMI || kind == JOIN_ANTI) {
        return take_semi(o, join);
    }
    return kind == JOIN_INNER && (take_inner(o, join, 1) || take_inner(o, join, 0) ||
                                  read_table(o, join, 1) || read_table(o, join, 0));
}

FALLIBLE pass_literals(struct opt *o) {
    rel_all joins = opt_all_of(o, REL_JOIN);
    bool any = false;
    for (i64 i = 0; i < joins.count; i++) {
        struct rel *join = joins.items[i];
        if (join->kind == REL_JOIN && take(o, join)) {
            any = true;
        }
    }
    if (any) {
        opt_look_again(o);
        return pass_push_filter(o);
    }
    return arena_check(o->plan->arena, o->err);
}

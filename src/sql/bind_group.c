/* bind_group.c: GROUP BY, grouping sets, and the rule that above groups only groups exist.
 *
 * Part of binding. A GROUP BY clause is a list of sets of keys: one for plain keys, several for
 * ROLLUP, CUBE and GROUPING SETS (the product of what its items stand for). One set is one AGG.
 * Several are one AGG each over the same shared input, with NULL for the keys a set leaves out, and
 * a UNION of them.
 *
 * Expressions above are bound over the input and rewritten here: what equals a key becomes the
 * key's column, and a column of the input that is left over is error 42803; the plans of subqueries
 * that stand above the groups too. Expressions are rebuilt, never changed: keys and select list may
 * share them. */
#include "sql/select_int.h"

enum { SETS_MAX = 4096, CUBE_MAX = 12 };

static FALLIBLE check_item(struct bind *b, const struct select *s, i64 item) {
    struct seen seen = s->seen.items[item];
    if (seen.agg) {
        FAIL_AT(b->err, GROUPING, seen.agg - 1, "aggregate functions are not allowed in GROUP BY");
    }
    if (seen.window) {
        FAIL_AT(b->err, WINDOWING, seen.window - 1,
                "window functions are not allowed in GROUP BY");
    }
    return ERR_OK;
}

static bool uses_rel(struct expr *key, const struct rel *rel, u32 mark_col) {
    if (key->kind == EXPR_COL) {
        return key->col == mark_col || rel_has_out(rel, key->col);
    }
    for (i32 i = 0; i < key->arg_count; i++) {
        if (uses_rel(key->args[i], rel, mark_col)) {
            return true;
        }
    }
    return false;
}

static bool uses_col(const struct expr *key, u32 col) {
    bool uses = key->kind == EXPR_COL && key->col == col;
    for (i32 i = 0; i < key->arg_count && !uses; i++) {
        uses = uses_col(key->args[i], col);
    }
    return uses;
}

/* Subqueries that a key needs stand below the groups. */
static void sink_pending(struct bind *b, struct query *q, struct expr *key) {
    i64 kept = 0;
    for (i64 i = 0; i < q->pending.count; i++) {
        const struct pending p = q->pending.items[i];
        if (p.serial ? uses_col(key, p.call.col)
                     : uses_rel(key, p.rel, p.join == JOIN_MARK ? p.mark_col : ROWID_COL)) {
            VEC_PUSH(b->arena, &q->below, p);
        } else {
            q->pending.items[kept++] = p;
        }
    }
    q->pending.count = kept;
}

/* Those that it uses itself, and those in arguments of set-returning functions. */
static void sink_key(struct bind *b, struct query *q, struct expr *key) {
    sink_pending(b, q, key);
    for (i64 i = 0; i < q->set_calls.count; i++) {
        const struct set_call *call = &q->set_calls.items[i];
        struct rel made = {.out = {(u32 *)&call->col, 1, 1}};
        for (i32 k = 0; uses_rel(key, &made, ROWID_COL) && k < call->count; k++) {
            sink_key(b, q, call->args[k]);
        }
    }
}

/* `item`: the select item that a key is named by; -1 = the first that is equal to it, if any. Where
 * there are several grouping sets, equal items named apart are keys apart. */
static i64 add_key(struct bind *b, struct select *s, struct expr *key, i64 item) {
    sink_key(b, &s->query, key);
    for (i64 i = 0; s->by_item && item < 0 && i < s->shown; i++) {
        item = expr_equal(s->exprs.items[i], key) ? i : item;
    }
    item = s->by_item ? item : -1;
    i64 same = expr_find(b->arena, &s->key_hashes, s->keys.items, s->keys.count, key);
    for (i64 i = same; i >= 0 && i < s->keys.count; i++) {
        if (s->key_items.items[i] == item && expr_equal(s->keys.items[i], key)) {
            return i;
        }
    }
    VEC_PUSH(b->arena, &s->keys, key);
    VEC_PUSH(b->arena, &s->key_items, item);
    return s->keys.count - 1;
}

/* The number of a key, which is added when it is new. */
static FALLIBLE bind_key(struct bind *b, struct select *s, const struct json *node, i64 *out) {
    i64 target = -1;
    const char *name = bare_name(node);
    bool in_scope = name && scope_find(&s->scope, name) != NULL;
    TRY(select_numbered(b, s, node, "GROUP BY", &target));
    if (name && !in_scope) { /* a column of FROM comes before an alias */
        TRY(select_named(b, s, name, "GROUP BY", node_position(node), &target));
    }
    struct expr *key = NULL;
    if (target >= 0) {
        key = s->exprs.items[target];
        TRY(check_item(b, s, target));
    } else {
        TRY(bind_expr(b, &s->query, node, &key));
        TRY(coerce_unknown(b->t, key, type_of(TYPE_TEXT), &key));
    }
    *out = add_key(b, s, key, target);
    return ERR_OK;
}

static void set_add(struct bind *b, struct key_set *set, i64 key) {
    i64 at = 0, end = set->keys.count;
    while (at < end) {
        i64 middle = at + (end - at) / 2;
        at = set->keys.items[middle] < key ? middle + 1 : at;
        end = at > middle ? end : middle;
    }
    if (at < set->keys.count && set->keys.items[at] == key) {
        return;
    }
    VEC_PUSH(b->arena, &set->keys, key);
    memmove(&set->keys.items[at + 1], &set->keys.items[at],
            sizeof(i64) * (size_t)(set->keys.count - 1 - at));
    set->keys.items[at] = key;
}

static void set_add_all(struct bind *b, struct key_set *set, const struct key_set *more) {
    for (i64 i = 0; i < more->keys.count; i++) {
        set_add(b, set, more->keys.items[i]);
    }
}

static struct key_set set_union(struct bind *b, const struct key_set *x, const struct key_set *y) {
    struct key_set both = {0};
    set_add_all(b, &both, x);
    set_add_all(b, &both, y);
    return both;
}

/* An expression, or several in parentheses: the keys of one step of ROLLUP or CUBE. */
static FALLIBLE bind_key_list(struct bind *b, struct select *s, const struct json *node,
                              struct key_set *out) {
    i64 key = 0;
    if (!node_is(node, "RowExpr")) {
        TRY(bind_key(b, s, node, &key));
        set_add(b, out, key);
        return ERR_OK;
    }
    JSON_EACH(item, json_get(node_body(node), "args")) {
        TRY(bind_key(b, s, item, &key));
        set_add(b, out, key);
    }
    return ERR_OK;
}

/* GROUP BY ALL: the select items without aggregates. */
static void bind_all_keys(struct bind *b, struct select *s, struct key_set *out) {
    for (i64 i = 0; i < s->shown; i++) {
        if (!s->seen.items[i].agg && !s->seen.items[i].window) {
            set_add(b, out, add_key(b, s, s->exprs.items[i], i));
        }
    }
}

static FALLIBLE too_many(struct bind *b, i64 count, i32 position) {
    if (count > SETS_MAX) {
        FAIL_AT(b->err, TOO_COMPLEX, position, "too many grouping sets present (maximum %d)",
                (int)SETS_MAX);
    }
    return ERR_OK;
}

static FALLIBLE bind_item(struct bind *b, struct select *s, const struct json *node, key_sets *out);

/* ROLLUP (a, b): (a, b), (a), (). CUBE: every subset. */
static FALLIBLE bind_steps(struct bind *b, struct select *s, const struct json *body, bool cube,
                           key_sets *out) {
    const struct json *content = json_get(body, "content");
    i32 count = json_count(content);
    i32 position = json_position(body);
    struct key_set *steps = NEW_ARRAY(b->arena, struct key_set, count + 1);
    i32 n = 0;
    if (cube && count > CUBE_MAX) {
        FAIL_AT(b->err, TOO_MANY_COLUMNS, position, "CUBE is limited to %d elements",
                (int)CUBE_MAX);
    }
    JSON_EACH(node, content) {
        TRY(bind_key_list(b, s, node, &steps[n++]));
    }
    i64 sets = cube ? (i64)1 << count : count + 1;
    TRY(too_many(b, sets, position));
    for (i64 k = 0; k < sets; k++) {
        struct key_set set = {0};
        for (i32 i = 0; i < count; i++) {
            bool in = cube ? !(k >> (count - 1 - i) & 1) : i < count - k;
            set = in ? set_union(b, &set, &steps[i]) : set;
        }
        VEC_PUSH(b->arena, out, set);
    }
    return ERR_OK;
}

static FALLIBLE bind_grouping_set(struct bind *b, struct select *s, const struct json *body,
                                  key_sets *out) {
    if (json_is(body, "kind", "GROUPING_SET_EMPTY")) {
        struct key_set none = {0};
        VEC_PUSH(b->arena, out, none);
        return ERR_OK;
    }
    bool cube = json_is(body, "kind", "GROUPING_SET_CUBE");
    if (cube || json_is(body, "kind", "GROUPING_SET_ROLLUP")) {
        return bind_steps(b, s, body, cube, out);
    }
    JSON_EACH(node, json_get(body, "content")) {
        TRY(bind_item(b, s, node, out));
        TRY(too_many(b, out->count, json_position(body)));
    }
    return ERR_OK;
}

/* The sets one item of GROUP BY stands for. */
static FALLIBLE bind_item(struct bind *b, struct select *s, const struct json *node,
                          key_sets *out) {
    if (node_is(node, "GroupingSet")) {
        TRY(bind_enter(b, NEST_EXPR, node_position(node)));
        TRY(bind_grouping_set(b, s, node_body(node), out));
        bind_leave(b, NEST_EXPR);
        return ERR_OK;
    }
    struct key_set set = {0};
    if (bind_is_all(node)) {
        bind_all_keys(b, s, &set);
    } else {
        TRY(bind_key_list(b, s, node, &set));
    }
    VEC_PUSH(b->arena, out, set);
    return ERR_OK;
}

static bool same_set(const struct key_set *x, const struct key_set *y) {
    return x->keys.count == y->keys.count &&
           (x->keys.count == 0 || memcmp(x->keys.items, y->keys.items,
                                         sizeof *x->keys.items * (size_t)x->keys.count) == 0);
}

/* GROUP BY DISTINCT: each set once. */
static void drop_repeated(key_sets *sets) {
    i64 kept = 0;
    for (i64 i = 0; i < sets->count; i++) {
        i64 k = 0;
        while (k < kept && !same_set(&sets->items[k], &sets->items[i])) {
            k++;
        }
        if (k == kept) {
            sets->items[kept++] = sets->items[i];
        }
    }
    sets->count = kept;
}

FALLIBLE bind_groups(struct bind *b, struct select *s) {
    const struct json *clause = json_get(s->body, "groupClause");
    s->query.clause = "GROUP BY";
    s->query.sets_allowed = 1;
    JSON_EACH(node, clause) {
        s->by_item = s->by_item || node_is(node, "GroupingSet");
    }
    JSON_EACH(node, clause) {
        key_sets item = {0};
        TRY(bind_item(b, s, node, &item));
        TRY(too_many(b, MAX_OF(s->sets.count, 1) * item.count, node_position(node)));
        if (s->sets.count == 0) {
            s->sets = item;
            continue;
        }
        if (item.count == 1) {
            for (i64 i = 0; i < s->sets.count; i++) {
                set_add_all(b, &s->sets.items[i], &item.items[0]);
            }
            continue;
        }
        key_sets product = {0};
        for (i64 i = 0; i < s->sets.count; i++) {
            for (i64 k = 0; k < item.count; k++) {
                struct key_set both = set_union(b, &s->sets.items[i], &item.items[k]);
                VEC_PUSH(b->arena, &product, both);
            }
        }
        s->sets = product;
    }
    if (json_flag(s->body, "groupDistinct")) {
        drop_repeated(&s->sets);
    }
    s->query.sets_allowed = 0;
    return ERR_OK;
}

/* What is above the groups sees keys under these columns. */
struct groups {
    struct bind *b;
    struct expr **keys;
    const u32 *cols;
    i64 count;
    const u8 *input; /* by column: made below the groups */
    bool in_subquery;
    wf_status status;
};

static wf_status ungrouped(const struct groups *g, const struct expr *expr) {
    const struct origin *origin = &g->b->origins.items[expr->col];
    if (g->in_subquery) {
        FAIL_AT(g->b->err, GROUPING, expr->position,
                "subquery uses ungrouped column \"%.100s%s%.100s\" from outer query",
                origin->table ? origin->table : "", origin->table ? "." : "", origin->name);
    }
    FAIL_AT(g->b->err, GROUPING, expr->position,
            "column \"%.100s%s%.100s\" must appear in the GROUP BY clause or be used in an "
            "aggregate function",
            origin->table ? origin->table : "", origin->table ? "." : "", origin->name);
}

/* A group key in the expression is the group's column; NULL: its arguments are looked at. */
static struct expr *grouped(struct expr *expr, void *arg) {
    struct groups *g = arg;
    for (i64 i = 0; i < g->count; i++) {
        if (expr_equal(expr, g->keys[i])) {
            return expr_col(g->b->plan, g->cols[i], expr->position);
        }
    }
    if (expr->kind == EXPR_COL && g->input[expr->col] && g->status == ERR_OK) {
        g->status = ungrouped(g, expr);
    }
    return NULL;
}

static void group_slot(struct expr **slot, void *arg) {
    struct groups *g = arg;
    if (g->status == ERR_OK) {
        *slot = expr_rebuild(g->b->arena, *slot, grouped, g);
    }
}

static void group_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, group_slot, arg);
}

static FALLIBLE group_pending(struct groups *g, pending_list *list) {
    g->in_subquery = true;
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i].serial) {
            window_each_expr(&list->items[i].call, group_slot, g);
            continue;
        }
        rel_each(g->b->arena, list->items[i].rel, group_rel, g);
        for (i64 k = 0; k < list->items[i].conds.count; k++) {
            group_slot(&list->items[i].conds.items[k], g);
        }
    }
    g->in_subquery = false;
    return g->status;
}

static FALLIBLE group_windows(struct groups *g, struct query *q) {
    for (i64 i = 0; i < q->windows.count; i++) {
        bind_window_each_expr(&q->windows.items[i], group_slot, g);
    }
    return g->status;
}

static const char *key_name(struct bind *b, const struct expr *key) {
    const char *name = bind_short_name(b, key, "key");
    return strchr(name, ' ') ? arena_printf(b->arena, "(%s)", name) : name;
}

struct call_map {
    struct arena *arena;
    struct expr *const *map;
};

static void map_slot(struct expr **slot, void *arg) {
    const struct call_map *m = arg;
    *slot = expr_map(m->arena, *slot, m->map);
}

/* An aggregate call over other columns, with a result of its own. */
static struct agg_call copy_call(struct bind *b, const struct agg_call *from,
                                 struct expr *const *map) {
    struct agg_call call = *from;
    struct plan_col col = b->plan->cols.items[from->col];
    struct call_map m = {b->arena, map};
    call.col = bind_col_new(b, NULL, col.name, col.type, col.nullable);
    memset(&call.order, 0, sizeof call.order);
    for (i64 i = 0; i < from->order.count; i++) {
        VEC_PUSH(b->arena, &call.order, from->order.items[i]);
    }
    agg_each_expr(&call, map_slot, &m);
    return call;
}

/* The AGG of one set over its own copy of the input: all keys, all calls, all GROUPINGs. */
static struct rel *set_rel(struct bind *b, struct select *s, const struct key_set *set,
                           struct rel *input, struct expr *const *map) {
    struct rel *agg = rel_new(b->plan, REL_AGG, input, NULL);
    struct rel *project = NULL;
    i64 key_count = s->keys.count;
    struct expr **shown = NEW_ARRAY(b->arena, struct expr *, key_count + 1);
    for (i64 i = 0; i < key_count; i++) {
        shown[i] = expr_null(b->t, s->keys.items[i]->type, -1);
    }
    for (i64 i = 0; i < set->keys.count; i++) {
        i64 at = set->keys.items[i];
        struct expr *key = expr_map(b->arena, s->keys.items[at], map);
        u32 col = bind_col_new(b, NULL, key_name(b, key), key->type, expr_nullable(b->plan, key));
        VEC_PUSH(b->arena, &agg->agg.keys, key);
        VEC_PUSH(b->arena, &agg->out, col);
        shown[at] = expr_col(b->plan, col, -1);
    }
    for (i64 i = 0; i < s->query.calls.count; i++) {
        struct agg_call call = copy_call(b, &s->query.calls.items[i], map);
        VEC_PUSH(b->arena, &agg->agg.calls, call);
        VEC_PUSH(b->arena, &agg->out, call.col);
    }
    agg->rows = set->keys.count == 0 ? 1 : MAX_OF(input->rows / 10, 1);
    project = rel_new(b->plan, REL_PROJECT, agg, NULL);
    for (i64 i = 0; i < key_count; i++) {
        VEC_PUSH(b->arena, &project->project.exprs, shown[i]);
    }
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        VEC_PUSH(b->arena, &project->project.exprs,
                 expr_col(b->plan, agg->agg.calls.items[i].col, -1));
    }
    project->rows = agg->rows;
    return project;
}

static FALLIBLE grouping_value(struct bind *b, struct select *s, const struct key_set *set,
                               const struct grouping_call *call, i32 *out) {
    *out = 0;
    for (i32 i = 0; i < call->arg_count; i++) {
        i64 key = 0;
        while (key < s->keys.count && !expr_equal(s->keys.items[key], call->args[i])) {
            key++;
        }
        if (key == s->keys.count) {
            FAIL_AT(b->err, GROUPING, call->args[i]->position,
                    "arguments to GROUPING must be grouping expressions of the associated query "
                    "level");
        }
        bool in = false;
        for (i64 k = 0; k < set->keys.count; k++) {
            in = in || set->keys.items[k] == key;
        }
        *out = *out * 2 + (in ? 0 : 1);
    }
    return ERR_OK;
}

/* Columns of a set's projection; the last operator gets those the expressions above name. */
static void name_set(struct bind *b, struct select *s, struct rel *rel, const u32 *key_cols,
                     bool last) {
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        i64 call = i - s->keys.count;
        i64 grouping = call - s->query.calls.count;
        u32 final = call < 0       ? key_cols[i]
                    : grouping < 0 ? s->query.calls.items[call].col
                                   : s->query.groupings.items[grouping].col;
        struct plan_col col = b->plan->cols.items[final];
        u32 own = last ? final
                       : bind_col_new(b, NULL, col.name, col.type,
                                      expr_nullable(b->plan, rel->project.exprs.items[i]));
        VEC_PUSH(b->arena, &rel->out, own);
    }
}

static struct rel *union_sets(struct bind *b, struct rel **rels, i64 count) {
    while (count > 1) { /* pairwise, so that the tree stays shallow */
        i64 made = 0;
        for (i64 i = 0; i < count; i += 2) {
            rels[made++] = i + 1 < count ? bind_union_rel(b, rels[i], rels[i + 1]) : rels[i];
        }
        count = made;
    }
    return rels[0];
}

static FALLIBLE set_rels(struct bind *b, struct select *s, const u32 *key_cols, struct rel **out) {
    i64 count = s->sets.count;
    struct rel *input = s->rel;
    struct rel **rels = NEW_ARRAY(b->arena, struct rel *, count);
    for (i64 i = 0; i < count; i++) {
        struct rel *own = count > 1 ? bind_shared(b, input) : input;
        struct expr **map = NEW_ARRAY(b->arena, struct expr *, b->plan->cols.count + 1);
        for (i64 k = 0; count > 1 && k < input->out.count; k++) {
            map[input->out.items[k]] = expr_col(b->plan, own->out.items[k], -1);
        }
        rels[i] = set_rel(b, s, &s->sets.items[i], own, map);
        for (i64 k = 0; k < s->query.groupings.count; k++) {
            i32 value = 0;
            TRY(grouping_value(b, s, &s->sets.items[i], &s->query.groupings.items[k], &value));
            VEC_PUSH(b->arena, &rels[i]->project.exprs, expr_int(b->t, value, -1));
        }
        name_set(b, s, rels[i], key_cols, count == 1);
    }
    *out = union_sets(b, rels, count);
    for (i64 i = 0; count > 1 && i < (*out)->out.count; i++) {
        i64 call = i - s->keys.count;
        i64 grouping = call - s->query.calls.count;
        (*out)->out.items[i] = call < 0       ? key_cols[i]
                               : grouping < 0 ? s->query.calls.items[call].col
                                              : s->query.groupings.items[grouping].col;
    }
    return ERR_OK;
}

static struct rel *plain_agg(struct bind *b, struct select *s, const u32 *key_cols) {
    struct rel *agg = rel_new(b->plan, REL_AGG, s->rel, NULL);
    for (i64 i = 0; i < s->keys.count; i++) {
        VEC_PUSH(b->arena, &agg->agg.keys, s->keys.items[i]);
        VEC_PUSH(b->arena, &agg->out, key_cols[i]);
    }
    for (i64 i = 0; i < s->query.calls.count; i++) {
        VEC_PUSH(b->arena, &agg->agg.calls, s->query.calls.items[i]);
        VEC_PUSH(b->arena, &agg->out, s->query.calls.items[i].col);
    }
    agg->rows = s->keys.count == 0 ? 1 : MAX_OF(s->rel->rows / 10, 1);
    return agg;
}

struct handing {
    struct bind *b;
    struct rel *rel;
};

static void hand_on(u32 col, void *arg) {
    const struct handing *h = arg;
    if (!rel_has_out(h->rel, col)) {
        VEC_PUSH(h->b->arena, &h->rel->out, col);
    }
}

/* The order in which rows below projections and filters were sorted, in columns that are there
 * above them; NULL = they were not. Both hand on the keys they lack. */
static const struct rel *sorted_below(struct bind *b, struct rel *rel, struct expr **keys) {
    if (rel->kind == REL_SORT) {
        for (i64 i = 0; i < rel->sort.order.count; i++) {
            keys[i] = rel->sort.order.items[i].expr;
        }
        return rel;
    }
    if (rel->kind != REL_PROJECT && rel->kind != REL_FILTER) {
        return NULL;
    }
    const struct rel *sort = sorted_below(b, rel_input(rel), keys);
    struct handing handing = {b, rel};
    for (i64 i = 0; sort && rel->kind == REL_FILTER && i < sort->sort.order.count; i++) {
        expr_each_col(keys[i], hand_on, &handing);
    }
    for (i64 i = 0; sort && rel->kind == REL_PROJECT && i < sort->sort.order.count; i++) {
        i64 at = 0;
        while (at < rel->project.exprs.count &&
               !expr_equal(rel->project.exprs.items[at], keys[i])) {
            at++;
        }
        if (at == rel->project.exprs.count) {
            bool nullable = expr_nullable(b->plan, keys[i]);
            VEC_PUSH(b->arena, &rel->project.exprs, keys[i]);
            VEC_PUSH(b->arena, &rel->out,
                     bind_col_new(b, NULL, "key", keys[i]->type, nullable));
        }
        keys[i] = expr_col(b->plan, rel->out.items[at], -1);
    }
    return sort;
}

static i64 sort_width(const struct rel *rel) {
    while (rel->kind == REL_PROJECT || rel->kind == REL_FILTER) {
        rel = rel_input(rel);
    }
    return rel->kind == REL_SORT ? rel->sort.order.count : 0;
}

/* Texts are put together in the order of a sorted subquery, if no other is asked for. */
static void inherit_order(struct bind *b, struct select *s) {
    i64 width = sort_width(s->rel);
    struct expr **keys = NEW_ARRAY(b->arena, struct expr *, width + 1);
    for (i64 i = 0; width > 0 && i < s->query.calls.count; i++) {
        struct agg_call *call = &s->query.calls.items[i];
        if (call->agg != AGG_STRING_AGG || call->order.count > 0 || call->distinct) {
            continue;
        }
        const struct rel *sort = sorted_below(b, s->rel, keys);
        for (i64 k = 0; k < width; k++) {
            struct order_key key = sort->sort.order.items[k];
            key.expr = keys[k];
            VEC_PUSH(b->arena, &call->order, key);
        }
    }
}

static FALLIBLE rewrite_above(struct groups *g, struct select *s) {
    for (i64 i = 0; i < s->key_items.count; i++) {
        i64 item = s->key_items.items[i];
        if (item >= 0) {
            i32 position = s->exprs.items[item]->position;
            s->exprs.items[item] = expr_col(g->b->plan, g->cols[i], position);
        }
    }
    for (i64 i = 0; i < s->exprs.count; i++) {
        group_slot(&s->exprs.items[i], g);
    }
    if (s->having) {
        group_slot(&s->having, g);
    }
    TRY(g->status);
    TRY(group_windows(g, &s->query));
    for (i64 i = 0; i < s->query.set_calls.count; i++) {
        struct set_call *call = &s->query.set_calls.items[i];
        for (i32 k = 0; call->stage != SET_BELOW_GROUPS && k < call->count; k++) {
            group_slot(&call->args[k], g);
        }
    }
    TRY(g->status);
    TRY(group_pending(g, &s->having_pending));
    return group_pending(g, &s->query.pending);
}

FALLIBLE build_groups(struct bind *b, struct select *s) {
    struct query *q = &s->query;
    s->rel = bind_attach(b, s->rel, &q->below);
    TRY(build_sets(b, s, SET_BELOW_GROUPS));
    if (s->sets.count == 0 && q->calls.count == 0 && q->groupings.count == 0 && !s->having) {
        return ERR_OK;
    }
    if (q->calls.count > 0 && bind_reads_work(s->scope.rel)) {
        FAIL_AT(b->err, INVALID_RECURSION, q->calls.items[0].position,
                "aggregate functions are not allowed in a recursive query's recursive term");
    }
    bool one_set = s->sets.count == 0 || (s->sets.count == 1 && q->groupings.count == 0);
    if (s->sets.count == 0) {
        struct key_set none = {0};
        VEC_PUSH(b->arena, &s->sets, none);
    }
    bool unread = q->calls.count == 0; /* groups of everything are there whatever FROM and WHERE give */
    for (i64 i = 0; i < s->sets.count; i++) {
        bool all = s->sets.items[i].keys.count == 0;
        unread = unread && all;
        if (all && q->calls.count == 0) {
            bind_count_star(b, q); /* a group of everything must have a column */
        }
    }
    bind_dependents(b, s);
    u32 *cols = NEW_ARRAY(b->arena, u32, s->keys.count + 1);
    for (i64 i = 0; i < s->keys.count; i++) {
        struct expr *key = s->keys.items[i];
        bool nullable = s->sets.count > 1 || expr_nullable(b->plan, key);
        cols[i] = bind_col_new(b, NULL, key_name(b, key), key->type, nullable);
    }
    u8 *input = NEW_ARRAY(b->arena, u8, b->plan->cols.count + 1);
    for (i64 i = 0; i < s->rel->out.count; i++) {
        input[s->rel->out.items[i]] = 1;
    }
    s->rel = unread ? bind_one_row(b) : s->rel; /* PostgreSQL does not evaluate them either */
    inherit_order(b, s);
    if (one_set && q->groupings.count == 0) {
        s->rel = plain_agg(b, s, cols);
    } else {
        TRY(set_rels(b, s, cols, &s->rel));
    }
    struct groups g = {
        .b = b, .keys = s->keys.items, .cols = cols, .count = s->keys.count, .input = input};
    TRY(rewrite_above(&g, s));
    s->rel = bind_attach(b, s->rel, &s->having_pending);
    if (s->having) {
        s->rel = bind_filter(b, s->rel, s->having);
    }
    return ERR_OK;
}

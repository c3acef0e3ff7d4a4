/* join.c: joins of every kind.
 *
 * The right input ends in a variable with an index on the packed key; the left one's pipeline goes
 * on. An inner join probes, or matches where a row may have several partners. Semi, anti and mark
 * joins ask a set of keys. Outer probes keep rows without a partner at row -1, where columns read
 * as NULL; keys that cannot match (NULL, or never seen) clear the probe's condition instead of
 * dropping the row.
 *
 * A residual condition is part of the match. Where the partner is unique it is computed behind the
 * probe and turns the row number into -1. Otherwise EACH … ANY tries the partners one after the
 * other; an outer join with several partners then matches once more, only rows that have one. A
 * full join marks the right rows it used and appends the others. Joins without keys have the same
 * key, 0, everywhere: the index is one run, and no more than a vector of pairs exists at a time. */
#include "lower/lower_int.h"

#include "codes/loop.h"

struct join {
    struct lower *l;
    const struct rel *rel;
    struct builder *left;
    struct join_keys keys;
    u32 *payload; /* right columns that are read behind the probe */
    u32 payload_count;
    u32 index;
    u32 rows; /* the right side: key, payload */
    u16 key;  /* of the left side */
    u16 asked; /* where the conditions, all of left columns alone, hold; NO_REG: there are others */
    struct parts_sides split; /* by key, first */
    const struct rel *grows; /* the right side gives what is new of these rows in an index that stays; NULL = all */
    struct lazy lazy;
};

static bool visit_mark(const struct expr *expr, void *arg) {
    if (expr->kind == EXPR_COL) {
        ((u8 *)arg)[expr->col] = 1;
    }
    return true;
}

/* Of an input's columns those that are read behind the probe: not its keys, as a rule. */
static u32 *read_behind(const struct join *j, const struct rel *input, u32 *out_count) {
    struct lower *l = j->l;
    u8 *wanted = NEW_ARRAY(l->arena, u8, l->plan->cols.count + 1);
    u32 *cols = NEW_ARRAY(l->arena, u32, input->out.count + 1);
    for (i64 i = 0; i < j->rel->out.count; i++) {
        wanted[j->rel->out.items[i]] = 1;
    }
    for (i64 i = 0; i < j->rel->join.conds.count; i++) {
        expr_walk(j->rel->join.conds.items[i], visit_mark, wanted);
    }
    *out_count = 0;
    for (i64 i = 0; i < input->out.count; i++) {
        if (wanted[input->out.items[i]]) {
            cols[(*out_count)++] = input->out.items[i];
        }
    }
    return cols;
}

/* Whether a set of the right side's keys is all that the join needs: of an inner one where a row
 * has at most one partner, and nothing is read of it. */
static bool asks_only(const struct join *j) {
    const struct rel *rel = j->rel;
    bool asks = rel->join.kind == JOIN_SEMI || rel->join.kind == JOIN_ANTI ||
                rel->join.kind == JOIN_MARK ||
                (rel->join.kind == JOIN_INNER && rel->join.right_unique && j->payload_count == 0);
    return asks && rel->join.conds.count == 0;
}

/* What the plan expects of lookups, where one finds at most one row. */
static void expect_lookups(const struct join *j, struct var *index) {
    const struct rel *rel = j->rel;
    i64 left = rel_left(rel)->rows;
    i64 right = rel_right(rel)->rows;
    bool one = rel->join.kind == JOIN_SEMI || (rel->join.kind == JOIN_INNER && rel->join.right_unique);
    index->asked = left;
    index->found = one && left > 0 && right > 0 ? (f64)rel->rows / (f64)left / (f64)right : 0.0;
}

static void build_side(struct join *j, struct builder *right) {
    struct lower *l = j->l;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, j->payload_count + 1);
    cols[0].value.reg = key_join_pack(right, &j->keys, false);
    cols[0].value.null = j->keys.right_null;
    cols[0].type = type_of(TYPE_BIGINT);
    u32 count = 1;
    for (u32 i = 0; i < j->payload_count && !l->status; i++) {
        cols[count] = lower_carry(right, j->payload[i]);
        if (j->lazy.number && reg_dict(right, cols[count].value.reg)) {
            cols[count].value.reg = string_view(right, cols[count].value.reg);
        }
        count++;
    }
    build_label(right, "Build");
    j->rows = lower_rows(right, "build", cols, count, false, -1);
    if (j->grows && !l->status) {
        l->steps.items[l->steps.count - 1].pipeline->sinks[0].append = 1;
    }
    if (j->split.built) {
        parts_step(l, j->rows, j->keys.range);
    }
    j->index = lower_var(l, VAR_INDEX, "index");
    l->vars.items[j->index].rows_var = j->rows;
    l->vars.items[j->index].set = asks_only(j);
    expect_lookups(j, &l->vars.items[j->index]);
    struct step *step = lower_step(l, STEP_BUILD, "Build");
    step->src = j->rows;
    step->dst = j->index;
    step->col = 0;
    step->key_range = j->keys.range;
    step->fields = key_join_fields(l, &j->keys, &step->field_count);
    if (j->grows && !l->status) {
        fix_keep_growing(l, j->grows, step);
    }
}

static struct parts_sides splits(const struct join *j) {
    const struct rel *rel = j->rel;
    i64 left = rel_left(rel)->rows;
    bool one = rel->join.right_unique || rel->join.kind == JOIN_SEMI;
    struct parts_join of = {.sorted = rel->join.left_sorted,
                            .built_sorted = rel->join.right_sorted,
                            .rows = rel_right(rel)->rows,
                            .probes = left,
                            .range = j->keys.range,
                            .payload_count = j->payload_count,
                            .found = one && left > 0 ? (f64)rel->rows / (f64)left : 1.0};
    read_behind(j, rel_left(rel), &of.carried_count);
    bool can = rel->join.left_keys.count > 0 && !j->grows && !j->lazy.number;
    return can ? parts_for_join(j->l, j->left, &of) : (struct parts_sides){0, 0};
}

/* Cuts the left side's pipeline: the key, whether it can match, and what is read behind the probe. */
static void split_left(struct join *j) {
    struct lower *l = j->l;
    const struct rel *left = rel_left(j->rel);
    u32 carried_count;
    const u32 *carried = read_behind(j, left, &carried_count);
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, carried_count + 2);
    u32 count = 0;
    cols[count].value = (struct value){j->key, NO_REG};
    cols[count++].type = type_of(TYPE_BIGINT);
    bool valid = j->keys.valid != NO_REG;
    if (valid) {
        cols[count].value = (struct value){j->keys.valid, NO_REG};
        cols[count++].type = type_of(TYPE_BOOLEAN);
    }
    for (u32 i = 0; i < carried_count && !l->status; i++) {
        cols[count++] = lower_carry(j->left, carried[i]);
    }
    j->left->ends = "rows are split by key";
    u32 var = l->status ? 0 : lower_rows(j->left, "probing", cols, count, false, -1);
    if (l->status) {
        return;
    }
    parts_step(l, var, j->keys.range)->dst2 = j->index;
    j->left = lower_over(l, var, left->rows);
    j->key = lower_source_value(j->left, 0).reg;
    j->keys.valid = valid ? lower_source_value(j->left, 1).reg : (u16)NO_REG;
    for (u32 i = 0; i < carried_count; i++) {
        bind_source(j->left, carried[i], count - carried_count + i);
    }
}

/* A row that does not ask gets no fault of a subquery that others share. */
static u16 lazy_when(const struct join *j) {
    return j->lazy.lit && j->asked != NO_REG ? (u16)(j->asked + 1) : 0;
}

/* Binds the right columns to row `row` of the build side; outer: it may be -1. */
static void bind_right(struct join *j, u16 row, bool outer) {
    struct lower *l = j->l;
    for (u32 i = 0; i < j->payload_count && !l->status; i++) {
        const struct var *var = &l->vars.items[j->rows];
        const struct var_info *info = &l->var_infos.items[j->rows];
        struct binding bind = {.kind = BIND_VAR,
                               .reg_kind = var->kinds[i + 1],
                               .nullable = info->nullable[i + 1] || outer,
                               .outer = outer,
                               .row_reg = row,
                               .var = j->rows,
                               .col = i + 1,
                               .dict = var->dicts[i + 1],
                               .lazy = j->lazy.lit ? j->lazy.lit : info->lazy[i + 1],
                               .lazy_there = outer && !j->lazy.lit,
                               .lazy_when = lazy_when(j),
                               .range = info->ranges[i + 1]};
        bool counted =
            bind.reg_kind == KIND_I32 || bind.reg_kind == KIND_I64 || bind.reg_kind == KIND_I128;
        if (outer && counted) { /* what a missing row reads as */
            bind.range.lo = MIN_OF(bind.range.lo, 0);
            bind.range.hi = MAX_OF(bind.range.hi, 0);
        }
        *bind_at(j->left, j->payload[i]) = bind;
    }
}

static u16 probe(struct join *j, u16 code, u16 flags, u16 where) {
    struct op op = {.code = (u16)code,
                    .a = j->key,
                    .b = where,
                    .c = flags ? flags : (u16)NO_REG,
                    .imm = j->index};
    return build_probe(j->left, op);
}

static u16 is_row(struct builder *b, u16 row) {
    return build_op(b, OP_GE_I64, row, build_int(b, KIND_I64, 0), NO_REG, range_bool());
}

/* All conditions at once, 0 where NULL. */
static u16 all_conds(struct join *j) {
    struct expr *all = expr_new(j->l->arena, EXPR_AND, type_of(TYPE_BOOLEAN), -1);
    all->args = j->rel->join.conds.items;
    all->arg_count = (i32)j->rel->join.conds.count;
    return lower_expr(j->left, all).reg;
}

/* The same, evaluated only where the match exists. */
static u16 conditions(struct join *j, u16 there) {
    struct scope scope = build_when(j->left, there);
    u16 cond = all_conds(j);
    build_end(j->left, scope);
    return build_and(j->left, cond, there);
}

static bool visit_left(const struct expr *expr, void *arg) {
    return expr->kind != EXPR_COL || !rel_has_out(arg, expr->col);
}

/* Conditions that are the same whatever the partner is, tested before one is looked for. */
static u16 where_asked(struct join *j) {
    const struct rel *rel = j->rel;
    bool left = rel->join.left_keys.count == 0 && rel->join.conds.count > 0 &&
                (rel->join.kind == JOIN_SINGLE || rel->join.kind == JOIN_MARK);
    for (i64 i = 0; left && i < rel->join.conds.count; i++) {
        left = expr_walk(rel->join.conds.items[i], visit_left, rel_right(rel));
    }
    return left ? all_conds(j) : (u16)NO_REG;
}

/* A partner that satisfies the conditions, or -1. */
static u16 try_each(struct join *j, u16 flags) {
    struct op op = {.code = OP_EACH,
                    .a = j->key,
                    .b = j->keys.valid,
                    .c = flags ? flags : (u16)NO_REG,
                    .imm = j->index};
    u16 row;
    struct scope scope = build_each(j->left, op, &row);
    bind_right(j, row, false);
    lower_filter(j->left, j->rel->join.conds.items, j->rel->join.conds.count);
    return build_any(j->left, scope, row, flags ? flags : (u16)NO_REG);
}

/* The one partner of every row, or -1. */
static u16 only_partner(struct join *j) {
    struct builder *b = j->left;
    bool single = j->rel->join.kind == JOIN_SINGLE && !j->rel->join.right_unique && !j->lazy.number;
    u16 flags = (u16)(PROBE_OUTER | (single ? PROBE_SINGLE : 0));
    if (j->asked != NO_REG) {
        return probe(j, OP_PROBE, flags, j->asked);
    }
    if (single && j->rel->join.conds.count > 0) {
        return try_each(j, PROBE_SINGLE);
    }
    u16 row = probe(j, OP_PROBE, flags, j->keys.valid);
    if (j->rel->join.conds.count == 0) {
        return row;
    }
    bind_right(j, row, true);
    u16 holds = conditions(j, is_row(b, row));
    u16 none = build_int(b, KIND_I64, -1);
    return build_sel(b, holds, row, none);
}

/* Every partner of every row; -1 once for a row without. */
static u16 all_partners(struct join *j, i64 right_most) {
    struct builder *b = j->left;
    u16 where = j->keys.valid;
    if (j->rel->join.conds.count > 0) {
        where = is_row(b, try_each(j, 0));
    }
    u16 row = probe(j, OP_MATCH, PROBE_OUTER, where);
    b->max_rows = rows_mul(b->max_rows, MAX_OF(right_most, 1));
    if (j->rel->join.conds.count > 0) {
        bind_right(j, row, true);
        u16 there = is_row(b, row);
        u16 holds = conditions(j, there);
        build_plain(b, OP_FILTER, build_or(b, holds, build_not(b, there)), 0);
    }
    return row;
}

static void join_inner(struct join *j, i64 right_most) {
    bool one = j->rel->join.right_unique;
    u16 row = probe(j, one ? OP_PROBE : OP_MATCH, 0, NO_REG);
    if (!one) {
        j->left->max_rows = rows_mul(j->left->max_rows, right_most);
    }
    bind_right(j, row, false);
    lower_filter(j->left, j->rel->join.conds.items, j->rel->join.conds.count);
}

/* SEMI, ANTI, MARK: whether there is a partner. One that is unique is looked at as by other joins. */
static void join_asking(struct join *j) {
    struct builder *b = j->left;
    bool semi = j->rel->join.kind == JOIN_SEMI;
    bool one = j->rel->join.right_unique;
    if (semi && j->rel->join.conds.count == 0) {
        probe(j, OP_PROBE, 0, NO_REG);
        return;
    }
    if (semi && one) {
        join_inner(j, 1);
        return;
    }
    bool tries = j->rel->join.conds.count > 0 && j->asked == NO_REG && !one;
    u16 found = is_row(b, tries ? try_each(j, 0) : only_partner(j));
    if (j->rel->join.kind == JOIN_MARK) {
        bind_value(b, j->rel->join.mark_col, (struct value){found, NO_REG});
        bind_at(b, j->rel->join.mark_col)->lazy = j->lazy.lit;
        bind_at(b, j->rel->join.mark_col)->lazy_when = lazy_when(j);
    } else if (!b->l->status) {
        build_plain(b, OP_FILTER, semi ? found : build_not(b, found), 0);
    }
}

/* FULL */

static u32 mark_sink(struct join *j, u16 row) {
    struct lower *l = j->l;
    u32 marks = lower_rows_var(l, "marks", 1);
    struct var *var = &l->vars.items[marks];
    var->types[0] = type_of(TYPE_BOOLEAN);
    var->kinds[0] = KIND_B8;
    l->var_infos.items[marks].ranges[0] = range_bool();
    l->var_infos.items[marks].max_rows = l->var_infos.items[j->rows].max_rows;
    struct sink sink = {.kind = SINK_MARK,
                        .var = marks,
                        .limit = -1,
                        .rows_var = j->rows,
                        .key = row,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(j->left, sink);
    return marks;
}

/* A pipeline over the right rows that no left row used. */
static struct builder *unused_rows(struct join *j, u32 marks) {
    struct lower *l = j->l;
    struct builder *b = lower_over(l, j->rows, rel_right(j->rel)->rows);
    struct op number = {.code = OP_ROWNO, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    u16 row = build_ctl(b, number, KIND_I64, build_rows_range(l, j->rows, 0), 0);
    struct op load = {.code = OP_LOADV, .a = row, .b = (u16)marks, .c = NO_REG, .imm = 0};
    u16 used = build_ctl(b, load, KIND_B8, range_bool(), 0);
    build_plain(b, OP_FILTER, build_not(b, used), 0);
    for (u32 i = 0; i < j->payload_count && !l->status; i++) {
        bind_source(b, j->payload[i], i + 1);
    }
    build_label(b, "Full join");
    return b;
}

static struct builder *join_full(struct join *j, i64 right_most) {
    struct lower *l = j->l;
    const struct rel *rel = j->rel;
    u32 count = (u32)rel->out.count;
    u16 row = all_partners(j, right_most);
    bind_right(j, row, true);
    if (l->status) {
        return j->left;
    }
    u32 marks = mark_sink(j, row);
    struct builder *bs[2] = {j->left, unused_rows(j, marks)};
    struct out_col *cols[2];
    for (u32 s = 0; s < 2; s++) {
        cols[s] = NEW_ARRAY(l->arena, struct out_col, count + 1);
        for (u32 i = 0; i < count && !l->status; i++) {
            u32 col = rel->out.items[i];
            struct type type = l->plan->cols.items[col].type;
            bool bound = bind_at(bs[s], col)->kind != BIND_NONE;
            cols[s][i].value = bound ? lower_col(bs[s], col) : lower_null(bs[s], type);
            cols[s][i].type = type;
        }
    }
    build_label(j->left, "Join");
    u32 var = union_rows(l, bs, cols, 2, count);
    struct builder *b = lower_over(l, var, rel->rows);
    for (u32 i = 0; i < count && !l->status; i++) {
        bind_source(b, rel->out.items[i], i);
    }
    return b;
}

/* The rows of a recursion of which the right side's index gets only what is new. */
static const struct rel *growing_side(const struct join *j) {
    const struct rel *right = rel_right(j->rel);
    bool seen = j->rel->join.kind == JOIN_ANTI && asks_only(j) && fix_is_seen(j->l, right);
    bool joins = j->rel->join.kind == JOIN_INNER && j->rel->join.left_keys.count > 0 &&
                 !j->lazy.number;
    return seen ? right : joins ? fix_growing(j->l, right) : NULL;
}

struct builder *lower_join(struct lower *l, const struct rel *rel) {
    struct join j = {.l = l, .rel = rel};
    b8 before = l->unordered;
    lazy_open(l, rel, &j.lazy);
    l->unordered = 1;
    j.grows = growing_side(&j);
    struct builder *right = j.grows ? fix_last_round(l, rel_right(rel), j.grows)
                                    : lower_rel(l, rel_right(rel));
    lazy_leave(l, &j.lazy);
    l->unordered = before;
    j.left = lower_rel(l, rel_left(rel));
    if (l->status) {
        return j.left;
    }
    enum join_kind kind = (enum join_kind)rel->join.kind;
    j.keys.keep_left = kind != JOIN_INNER && kind != JOIN_CROSS && kind != JOIN_SEMI;
    j.keys.keep_right = kind == JOIN_FULL;
    key_join_prepare(&j.keys, j.left, right, rel);
    i64 right_most = right->max_rows;
    j.payload = read_behind(&j, rel_right(rel), &j.payload_count);
    j.split = splits(&j);
    lazy_enter(l, &j.lazy);
    build_side(&j, right);
    lazy_leave(l, &j.lazy);
    if (j.lazy.number && !l->status) {
        l->deferrals.items[j.lazy.number - 1].rows_var = j.rows;
    }
    j.key = key_join_pack(j.left, &j.keys, true);
    if (j.split.probing && !l->status) {
        split_left(&j);
    }
    j.asked = where_asked(&j);
    if (l->status) {
        return j.left;
    }
    switch (kind) {
    case JOIN_INNER:
    case JOIN_CROSS:
        join_inner(&j, right_most);
        break;
    case JOIN_SEMI:
    case JOIN_ANTI:
    case JOIN_MARK:
        join_asking(&j);
        break;
    case JOIN_FULL:
        return join_full(&j, right_most);
    case JOIN_LEFT:
        bind_right(&j, rel->join.right_unique ? only_partner(&j) : all_partners(&j, right_most),
                   true);
        break;
    case JOIN_SINGLE:
        bind_right(&j, only_partner(&j), true);
        break;
    }
    return j.left;
}

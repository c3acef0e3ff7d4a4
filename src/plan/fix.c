/* fix.c: makes recursions of several relations, of rules that name them.
 *
 * A rule is evaluated semi-naively: of every combination of rows that its atoms meet in, at least
 * one was new in the last round, or it was met before. With n atoms it becomes n plans. The i-th
 * reads what is new at atom i, what is old at those before, and all at those behind: together they
 * give every combination once.
 *
 * A relation that is distinct loses rows that it has already, and repeats among those that are left:
 * most of what a round finds was found before. One that keeps the best value of every key loses rows
 * that are no better than what it has. Those that were better once stay among its rows: what is made
 * of them is no better than what is made of the best (order.c), so they do no harm, and who reads
 * the relation in the end takes the best row of every key. */
#include "plan/plan.h"

#include "codes/func.h"

struct draft_relation {
    const struct plan_col *cols;
    i64 col_count;
    bool distinct;
    const char *name; /* NULL = none */
    bool best; /* of every key the least value, or the greatest */
    bool greatest;
    u32 value; /* its column */
    struct rel *base; /* NULL: none so far */
    struct rel *again;
};

struct fix_draft {
    struct plan *plan;
    u32 number;
    u32 count;
    struct draft_relation *relations;
    VEC(struct rel *) atoms; /* of all rules, copies too */
};

struct fix_draft *fix_open(struct plan *plan, u32 count) {
    struct fix_draft *f = NEW(plan->arena, struct fix_draft);
    *f = (struct fix_draft){.plan = plan, .number = ++plan->fix_count, .count = count};
    f->relations = NEW_ARRAY(plan->arena, struct draft_relation, count);
    return f;
}

void fix_relation(struct fix_draft *f, u32 relation, const struct plan_col *cols, i64 count,
                  bool distinct) {
    struct plan_col *own = NEW_ARRAY(f->plan->arena, struct plan_col, count + 1);
    for (i64 i = 0; i < count; i++) {
        own[i] = cols[i];
    }
    f->relations[relation] =
        (struct draft_relation){.cols = own, .col_count = count, .distinct = distinct};
}

void fix_call(struct fix_draft *f, u32 relation, const char *name) {
    f->relations[relation].name = name;
}

void fix_best(struct fix_draft *f, u32 relation, u32 value, bool greatest) {
    struct draft_relation *r = &f->relations[relation];
    ASSERT((i64)value < r->col_count);
    r->best = true;
    r->greatest = greatest;
    r->value = value;
}

i8 fix_moves(const struct fix_draft *f, u32 relation, u32 *out_value) {
    const struct draft_relation *r = &f->relations[relation];
    *out_value = r->value;
    return (i8)(!r->best ? 0 : r->greatest ? 1 : -1);
}

u32 fix_number(const struct fix_draft *f) {
    return f->number;
}

/* Columns of the relation under new numbers, as what `rel` makes. What they hold is known in the end. */
static void make_cols(const struct fix_draft *f, u32 relation, struct rel *rel) {
    const struct draft_relation *r = &f->relations[relation];
    for (i64 i = 0; i < r->col_count; i++) {
        u32 col = plan_col_new(f->plan, r->cols[i].name, r->cols[i].type, true);
        VEC_PUSH(f->plan->arena, &rel->out, col);
    }
}

static struct rel *work_new(struct fix_draft *f, u32 relation, enum work_part part) {
    struct rel *work = rel_new(f->plan, REL_WORK, NULL, NULL);
    work->work.fix = f->number;
    work->work.relation = relation;
    work->work.part = (u8)part;
    make_cols(f, relation, work);
    VEC_PUSH(f->plan->arena, &f->atoms, work);
    return work;
}

struct rel *fix_atom(struct fix_draft *f, u32 relation) {
    return work_new(f, relation, WORK_DELTA);
}

/* Rows of both, where there are some of the first. */
static struct rel *both(const struct fix_draft *f, u32 relation, struct rel *first,
                        struct rel *second) {
    if (!first) {
        return second;
    }
    struct rel *rel = rel_new(f->plan, REL_UNION, first, second);
    for (i32 i = 0; i < 2; i++) {
        for (i64 c = 0; c < rel->inputs[i]->out.count; c++) {
            VEC_PUSH(f->plan->arena, &rel->arms.cols[i], rel->inputs[i]->out.items[c]);
        }
    }
    make_cols(f, relation, rel);
    rel->rows = first->rows + second->rows;
    return rel;
}

void fix_base(struct fix_draft *f, u32 relation, struct rel *term) {
    struct draft_relation *r = &f->relations[relation];
    ASSERT(term->out.count == r->col_count);
    r->base = both(f, relation, r->base, term);
}

struct atom_list {
    const struct fix_draft *f;
    VEC(struct rel *) items;
};

static void note_atom(struct rel *rel, void *arg) {
    struct atom_list *list = arg;
    if (rel->kind == REL_WORK && rel->work.fix == list->f->number) {
        VEC_PUSH(list->f->plan->arena, &list->items, rel);
    }
}

/* The plan in which atom `at` reads what is new. */
static void mark_atoms(struct fix_draft *f, struct rel *term, i64 at) {
    struct atom_list list = {.f = f};
    rel_each(f->plan->arena, term, note_atom, &list);
    for (i64 i = 0; i < list.items.count; i++) {
        list.items.items[i]->work.part =
            (u8)(i < at ? WORK_OLD : i == at ? WORK_DELTA : WORK_ALL);
    }
}

void fix_rule(struct fix_draft *f, u32 relation, struct rel *term) {
    struct plan *plan = f->plan;
    struct draft_relation *r = &f->relations[relation];
    struct atom_list list = {.f = f};
    ASSERT(term->out.count == r->col_count);
    rel_each(plan->arena, term, note_atom, &list);
    for (i64 i = 0; i + 1 < list.items.count; i++) {
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        struct rel *copy = rel_copy_round(plan, term, map, f->number);
        struct atom_list copies = {.f = f};
        rel_each(plan->arena, copy, note_atom, &copies);
        for (i64 k = 0; k < copies.items.count; k++) {
            VEC_PUSH(plan->arena, &f->atoms, copies.items.items[k]);
        }
        mark_atoms(f, copy, i);
        r->again = both(f, relation, r->again, copy);
    }
    mark_atoms(f, term, list.items.count - 1);
    r->again = both(f, relation, r->again, term);
}

/* No rows. */
static struct rel *nothing(const struct fix_draft *f, u32 relation) {
    struct arena *arena = f->plan->arena;
    const struct draft_relation *r = &f->relations[relation];
    struct rel *row = rel_new(f->plan, REL_VALUES, NULL, NULL);
    make_cols(f, relation, row);
    for (i64 i = 0; i < r->col_count; i++) {
        struct expr *null = expr_new(arena, EXPR_CONST, r->cols[i].type, -1);
        null->is_null = 1;
        VEC_PUSH(arena, &row->values.exprs, null);
    }
    struct rel *none = rel_new(f->plan, REL_FILTER, row, NULL);
    struct expr *never = expr_new(arena, EXPR_CONST, type_of(TYPE_BOOLEAN), -1);
    VEC_PUSH(arena, &none->filter.conds, never);
    row->rows = none->rows = 1;
    return none;
}

static struct rel *once(const struct fix_draft *f, u32 relation, struct rel *rel) {
    struct arena *arena = f->plan->arena;
    if (rel->out.count == 0) { /* all rows without columns are equal */
        struct rel *first = rel_new(f->plan, REL_LIMIT, rel, NULL);
        first->limit.count = expr_new(arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
        const_set_exact(first->limit.count, 1);
        first->rows = 1;
        return first;
    }
    struct rel *agg = rel_new(f->plan, REL_AGG, rel, NULL);
    for (i64 i = 0; i < rel->out.count; i++) {
        VEC_PUSH(arena, &agg->agg.keys, expr_col(f->plan, rel->out.items[i], -1));
    }
    make_cols(f, relation, agg);
    agg->rows = MAX_OF(rel->rows / 10, 1);
    return agg;
}

/* Without keys there is a row though there were none before. */
static struct rel *not_of_none(struct plan *plan, struct rel *rel) {
    struct rel *filter = rel_new(plan, REL_FILTER, rel, NULL);
    struct expr *null = expr_new(plan->arena, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), -1);
    struct expr *some = expr_new(plan->arena, EXPR_NOT, type_of(TYPE_BOOLEAN), -1);
    null->args = NEW_ARRAY(plan->arena, struct expr *, 1);
    some->args = NEW_ARRAY(plan->arena, struct expr *, 1);
    null->arg_count = some->arg_count = 1;
    null->args[0] = expr_col(plan, rel->out.items[0], -1);
    some->args[0] = null;
    VEC_PUSH(plan->arena, &filter->filter.conds, some);
    filter->rows = rel->rows;
    return filter;
}

/* Of every key the best row. */
static struct rel *best_rows(struct plan *plan, struct rel *rel, u32 value, bool greatest) {
    struct agg_call call = {.agg = greatest ? AGG_MAX : AGG_MIN, .position = -1};
    struct rel *agg = rel_new(plan, REL_AGG, rel, NULL);
    struct rel *out = rel_new(plan, REL_PROJECT, agg, NULL); /* in their order */
    for (u32 i = 0; i < rel->out.count; i++) {
        u32 col = plan_col_like(plan, rel->out.items[i]);
        struct expr *expr = expr_col(plan, rel->out.items[i], -1);
        if (i == value) {
            call.arg = expr;
            call.col = col;
        } else {
            VEC_PUSH(plan->arena, &agg->agg.keys, expr);
            VEC_PUSH(plan->arena, &agg->out, col);
        }
        VEC_PUSH(plan->arena, &out->project.exprs, expr_col(plan, col, -1));
        plan->cols.items[col].nullable |= rel->out.count == 1; /* of no rows */
        u32 named = plan_col_like(plan, col);
        VEC_PUSH(plan->arena, &out->out, named);
    }
    VEC_PUSH(plan->arena, &agg->agg.calls, call);
    VEC_PUSH(plan->arena, &agg->out, call.col);
    agg->rows = out->rows = MAX_OF(rel->rows / 2, 1);
    return agg->agg.keys.count > 0 ? out : not_of_none(plan, out);
}

struct rel *fix_read_best(struct plan *plan, struct rel *fix, u32 relation, u32 value,
                          bool greatest) {
    return best_rows(plan, fix_read(plan, fix, relation), value, greatest);
}

/* Rows that are better than what the relation has, of every key the best one. */
static struct rel *better_rows(struct fix_draft *f, u32 relation, struct rel *again) {
    struct plan *plan = f->plan;
    const struct draft_relation *r = &f->relations[relation];
    struct rel *seen = work_new(f, relation, WORK_ALL);
    struct rel *join = rel_join(plan, JOIN_ANTI, again, seen);
    for (i64 i = 0; i < again->out.count; i++) {
        struct expr *left = expr_col(plan, again->out.items[i], -1);
        struct expr *right = expr_col(plan, seen->out.items[i], -1);
        if ((u32)i == r->value) {
            struct expr *as_good =
                expr_call(plan->arena, r->greatest ? FUNC_LE : FUNC_GE, type_of(TYPE_BOOLEAN), -1,
                          2, left, right);
            VEC_PUSH(plan->arena, &join->join.conds, as_good);
            continue;
        }
        VEC_PUSH(plan->arena, &join->join.left_keys, left);
        VEC_PUSH(plan->arena, &join->join.right_keys, right);
        VEC_PUSH(plan->arena, &join->join.null_safe, (b8)1);
    }
    join->rows = again->rows;
    return best_rows(plan, join, r->value, r->greatest);
}

/* Rows that are not in the relation yet, each once. */
static struct rel *new_rows(struct fix_draft *f, u32 relation, struct rel *again) {
    struct rel *seen = work_new(f, relation, WORK_ALL);
    struct rel *join = rel_join(f->plan, JOIN_ANTI, again, seen);
    for (i64 i = 0; i < again->out.count; i++) {
        VEC_PUSH(f->plan->arena, &join->join.left_keys,
                 expr_col(f->plan, again->out.items[i], -1));
        VEC_PUSH(f->plan->arena, &join->join.right_keys,
                 expr_col(f->plan, seen->out.items[i], -1));
        VEC_PUSH(f->plan->arena, &join->join.null_safe, (b8)1);
    }
    join->rows = again->rows;
    return once(f, relation, join);
}

static struct rel *first_rows(struct fix_draft *f, u32 relation, struct rel *base) {
    const struct draft_relation *r = &f->relations[relation];
    return r->best       ? best_rows(f->plan, base, r->value, r->greatest)
           : r->distinct ? once(f, relation, base)
                         : base;
}

static struct rel *further_rows(struct fix_draft *f, u32 relation, struct rel *again) {
    const struct draft_relation *r = &f->relations[relation];
    return r->best       ? better_rows(f, relation, again)
           : r->distinct ? new_rows(f, relation, again)
                         : again;
}

struct rel *fix_close(struct fix_draft *f) {
    enum { ROWS_LEAST = 100, GROWTH = 10 };
    struct arena *arena = f->plan->arena;
    struct rel **inputs = NEW_ARRAY(arena, struct rel *, 2 * (i64)f->count);
    i64 rows = 0;
    for (u32 r = 0; r < f->count; r++) {
        struct draft_relation *relation = &f->relations[r];
        struct rel *base = relation->base ? relation->base : nothing(f, r);
        struct rel *again = relation->again ? relation->again : nothing(f, r);
        inputs[2 * r] = relation->base ? first_rows(f, r, base) : base;
        inputs[2 * r + 1] = relation->again ? further_rows(f, r, again) : again;
        rows += inputs[2 * r]->rows * GROWTH;
    }
    struct rel *fix = rel_over(f->plan, REL_FIX, inputs, 2 * (i32)f->count);
    fix->fix.number = f->number;
    fix->fix.names = NEW_ARRAY(arena, const char *, f->count);
    for (u32 r = 0; r < f->count; r++) {
        fix->fix.names[r] = f->relations[r].name;
    }
    for (i32 i = 0; i < fix->input_count; i++) {
        for (i64 c = 0; c < inputs[i]->out.count; c++) {
            VEC_PUSH(arena, &fix->fix.cols[i], inputs[i]->out.items[c]);
        }
        if (i % 2 == 0) {
            make_cols(f, (u32)i / 2, fix);
        }
    }
    fix->rows = rows;
    for (i64 i = 0; i < f->atoms.count; i++) {
        struct rel *atom = f->atoms.items[i];
        i64 least = MAX_OF(inputs[2 * atom->work.relation]->rows, ROWS_LEAST);
        atom->rows = atom->work.part == WORK_DELTA ? least : least * GROWTH;
    }
    return fix;
}

struct rel *fix_read(struct plan *plan, struct rel *fix, u32 relation) {
    i32 input = 2 * (i32)relation;
    struct rel *read =
        rel_shared(plan, fix, rel_copied(fix, input), NULL, rel_cols(fix, input)->count);
    read->shared.relation = relation;
    return read;
}

/* fix.c: recursion as a loop of the program.
 *
 * A relation of a FIX is one variable that only gets more rows. The first term fills it, and a round
 * appends what it finds. What WORK reads are shares of that variable, cut anew when a round begins:
 * the rows that the last round appended, those before them, or both. A literal says where the last
 * round ended. The block of a round's steps is run again while a relation has rows behind its
 * literal (struct loop_var). So no row is copied, and a round sees what there was before it,
 * whatever it appends itself.
 *
 * Columns of the variables have the kinds of their types. What values they hold is guessed: those
 * of the first term. Where a round makes others of them, the guess is widened and all is lowered
 * again, so that a column that is only copied keeps its range, and one that counts up has any
 * value. Steps of the loop that depend on no round, such as building the other side of a join, are
 * moved before it.
 *
 * A relation whose rows are distinct asks of every new row whether it was found before. That set of
 * keys grows: a round adds those of the last round's rows, and looks at no others (fix_is_seen). */
#include "lower/lower_int.h"

enum { ANY_ROWS = 60, WIDENINGS = 2 };

/* what columns hold */

/* Nothing is known of how many rows there will be. */
static void take_guess(struct lower *l, u32 number, const struct fix_guess *guess) {
    struct var_info *info = &l->var_infos.items[number];
    info->max_rows = (i64)1 << ANY_ROWS;
    for (u32 i = 0; i < guess->col_count; i++) {
        info->ranges[i] = guess->ranges[i];
        info->nullable[i] = guess->nullable[i];
    }
}

/* What a column holds becomes part of the guess; whether it had not been. */
static bool widen(struct fix_guess *guess, u32 col, struct range range, bool nulls,
                  struct type type) {
    bool wider = nulls && !guess->nullable[col];
    if (guess->none) {
        guess->ranges[col] = range;
        guess->nullable[col] = nulls;
        return true;
    }
    guess->nullable[col] |= nulls;
    if (!guess->open[col] && !range_within(range, guess->ranges[col])) {
        guess->open[col] = guess->widened >= WIDENINGS;
        guess->ranges[col] =
            guess->open[col] ? range_of_type(type) : range_union(guess->ranges[col], range);
        wider = true;
    }
    return wider;
}

/* The guess for a relation whose first term is in `number`; none: without rows. */
static i64 guess_at(struct lower *l, u32 fix, u32 relation, u32 number, bool none) {
    u32 count = l->vars.items[number].col_count;
    const struct var_info *info = &l->var_infos.items[number];
    for (i64 i = 0; i < l->guesses.count; i++) {
        struct fix_guess *guess = &l->guesses.items[i];
        if (guess->fix == fix && guess->relation == relation) {
            for (u32 c = 0; !none && c < count; c++) { /* it may read another recursion */
                (void)widen(guess, c, info->ranges[c], info->nullable[c],
                            l->vars.items[number].types[c]);
            }
            return i;
        }
    }
    struct fix_guess guess = {
        .fix = fix, .relation = relation, .col_count = count, .none = none};
    guess.ranges = NEW_ARRAY(l->arena, struct range, count + 1);
    guess.nullable = NEW_ARRAY(l->arena, b8, count + 1);
    guess.open = NEW_ARRAY(l->arena, b8, count + 1);
    memcpy(guess.ranges, info->ranges, sizeof(struct range) * count);
    memcpy(guess.nullable, info->nullable, sizeof(b8) * count);
    VEC_PUSH(l->arena, &l->guesses, guess);
    return l->guesses.count - 1;
}

/* The recursion of a number, where it was begun. */
static struct loop *fix_find(const struct lower *l, u32 number) {
    for (i64 i = 0; i < l->working.count; i++) {
        if (l->working.items[i]->rel->fix.number == number) {
            return l->working.items[i];
        }
    }
    return NULL;
}

/* terms */

static struct out_col *term_cols(struct builder *b, const col_list *list, u32 *out_count) {
    struct out_col *out = NEW_ARRAY(b->l->arena, struct out_col, list->count + 1);
    for (i64 i = 0; i < list->count && !b->l->status; i++) {
        out[i].value = lower_col(b, list->items[i]);
        out[i].type = b->l->plan->cols.items[list->items[i]].type;
        if (type_kind(out[i].type) == KIND_STR && !b->l->status) { /* codes of one round only */
            out[i].value.reg = string_view(b, out[i].value.reg);
        }
    }
    if (list->count == 0 && !b->l->status) { /* rows are counted by one */
        out[0].value = (struct value){build_bool(b, false), NO_REG};
        out[0].type = type_of(TYPE_BOOLEAN);
    }
    *out_count = (u32)MAX_OF(list->count, 1);
    return out;
}

static bool is_none(const struct rel *rel) {
    const struct expr *cond = rel->kind == REL_FILTER && rel->filter.conds.count == 1
                                  ? rel->filter.conds.items[0]
                                  : NULL;
    return cond && cond->kind == EXPR_CONST && (cond->is_null || !cond->value.b8);
}

/* Rows of the first term. */
static void begin_relation(struct lower *l, const struct rel *rel, u32 relation,
                           struct loop_rel *r) {
    static const union lit none = {0};
    u32 count = 0;
    *r = (struct loop_rel){.parts = {NO_VAR, NO_VAR, NO_VAR}};
    struct builder *b = lower_rel(l, rel->inputs[2 * relation]);
    if (l->status) {
        return;
    }
    build_label(b, rel_names[REL_FIX]);
    struct out_col *cols = term_cols(b, rel_cols(rel, 2 * (i32)relation), &count);
    r->all = lower_rows(b, "recursion", cols, count, true, -1);
    if (l->status) {
        return;
    }
    l->vars.items[r->all].in_order = 0;
    r->lit = lower_lit_new(l, KIND_I64, none);
    r->guess = guess_at(l, rel->fix.number, relation, r->all, is_none(rel->inputs[2 * relation]));
    take_guess(l, r->all, &l->guesses.items[r->guess]);
}

/* Rows of a round, behind the others. */
static void append_rows(struct builder *b, const struct out_col *cols, u32 count,
                        const struct loop_rel *r) {
    struct lower *l = b->l;
    struct fix_guess *guess = &l->guesses.items[r->guess];
    struct sink_col *out = NEW_ARRAY(l->arena, struct sink_col, count);
    bool wider = false;
    for (u32 i = 0; i < count && !l->status; i++) {
        struct value v = cols[i].value;
        v.reg = lower_canonical(b, v, cols[i].type);
        if (l->status) {
            return;
        }
        v.null = build_is_bool(b, v.null, false) ? (u16)NO_REG : v.null;
        out[i] = (struct sink_col){.reg = v.reg, .null_reg = v.null, .type = cols[i].type};
        wider |= widen(guess, i, reg_range(b, v.reg), v.null != NO_REG, cols[i].type);
    }
    if (wider) {
        guess->widened += !guess->none;
        guess->none = 0;
        l->guessed_wrong = 1;
    }
    struct sink sink = {.kind = SINK_ROWS,
                        .var = r->all,
                        .limit = -1,
                        .append = 1,
                        .col_count = count,
                        .cols = out,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(b, sink);
    build_finish(b);
}

static void lower_rules(struct lower *l, struct loop *loop, u32 relation) {
    u32 count = 0;
    i32 input = 2 * (i32)relation + 1;
    struct builder *b = lower_rel(l, loop->rel->inputs[input]);
    if (l->status) {
        return;
    }
    build_label(b, rel_names[REL_FIX]);
    struct out_col *cols = term_cols(b, rel_cols(loop->rel, input), &count);
    if (!l->status) {
        append_rows(b, cols, count, &loop->rels[relation]);
    }
}

/* the loop */

static u32 like_var(struct lower *l, u32 from, const char *name) {
    u32 to = lower_rows_var(l, name, l->vars.items[from].col_count);
    struct var *var = &l->vars.items[to];
    for (u32 i = 0; i < var->col_count; i++) {
        var->types[i] = l->vars.items[from].types[i];
        var->kinds[i] = l->vars.items[from].kinds[i];
    }
    return to;
}

/* The steps that cut what a round reads go first of all. Nothing is wanted of a relation that nobody
 * reads but how far its rows go. */
static void cut_parts(struct lower *l, struct loop *loop) {
    i64 before = l->steps.count;
    for (u32 i = 0; i < loop->count; i++) {
        struct loop_rel *r = &loop->rels[i];
        bool read = r->parts[WORK_OLD] != NO_VAR || r->parts[WORK_ALL] != NO_VAR;
        if (r->parts[WORK_DELTA] == NO_VAR && !read) {
            r->parts[WORK_DELTA] = like_var(l, r->all, "delta");
        }
        struct step *last = NULL;
        for (u32 part = WORK_DELTA; part <= WORK_ALL; part++) {
            if (r->parts[part] == NO_VAR) {
                continue;
            }
            last = lower_step(l, STEP_LIMIT, rel_names[REL_FIX]);
            last->src = r->all;
            last->dst = r->parts[part];
            last->shares = 1;
            last->offset_lit = part == WORK_DELTA ? r->lit : NO_LIT;
            last->limit_lit = part == WORK_OLD ? r->lit : NO_LIT;
        }
        last->mark_lit = r->lit + 1;
    }
    i64 cuts = l->steps.count - before;
    struct step *moved = NEW_ARRAY(l->arena, struct step, cuts + 1);
    memcpy(moved, l->steps.items + before, sizeof(struct step) * (size_t)cuts);
    memmove(l->steps.items + loop->first + cuts, l->steps.items + loop->first,
            sizeof(struct step) * (size_t)(before - loop->first));
    memcpy(l->steps.items + loop->first, moved, sizeof(struct step) * (size_t)cuts);
    for (i64 i = 0; i < l->loops.count; i++) { /* inner ones */
        struct loop *inner = l->loops.items[i];
        if (inner->first >= loop->first) {
            inner->first += cuts;
            inner->end += cuts;
        }
    }
}

struct dependence {
    b8 *vars; /* changes from round to round */
    bool found;
};

static void look_at(void *arg, u32 var) {
    struct dependence *d = arg;
    d->found = d->found || d->vars[var];
}

static void taint(void *arg, u32 var) {
    ((struct dependence *)arg)->vars[var] = 1;
}

/* Steps that touch nothing a round changes go before the loop, in their order. */
static void hoist(struct lower *l, struct loop *loop) {
    struct dependence d = {.vars = NEW_ARRAY(l->arena, b8, l->vars.count + 1)};
    i64 count = loop->end - loop->first;
    struct step *sorted = NEW_ARRAY(l->arena, struct step, count + 1);
    b8 *stays = NEW_ARRAY(l->arena, b8, count + 1);
    for (u32 i = 0; i < loop->count; i++) {
        d.vars[loop->rels[i].all] = 1;
    }
    for (i64 i = 0; i < count; i++) {
        const struct step *step = &l->steps.items[loop->first + i];
        d.found = false;
        lower_each_var(l, step, look_at, &d);
        stays[i] = d.found;
        if (d.found) {
            lower_each_var(l, step, taint, &d);
        }
    }
    i64 at = 0;
    i64 moved = 0;
    for (i32 round = 0; round < 2; round++) {
        for (i64 i = 0; i < count; i++) {
            if (stays[i] == round) {
                sorted[at++] = l->steps.items[loop->first + i];
            }
        }
        moved = round == 0 ? at : moved;
    }
    memcpy(l->steps.items + loop->first, sorted, sizeof(struct step) * (size_t)count);
    loop->first += moved;
}

static u32 limit_lit(struct lower *l, const struct expr *limit) {
    if (limit && limit->kind == EXPR_CONST && !limit->is_null) {
        return lower_lit(l, KIND_I64, limit->value);
    }
    return limit && limit->kind == EXPR_PARAM ? lower_param_lit(l, limit->param) : NO_LIT;
}

struct search {
    const struct lower *l;
    bool found;
};

static void note_round(struct rel *rel, void *arg) {
    struct search *s = arg;
    s->found = s->found || (rel->kind == REL_WORK && fix_find(s->l, rel->work.fix));
}

/* Other recursions that a round reads, and that read nothing of a round, run before it. */
static bool make_before(struct rel *rel, void *arg) {
    struct lower *l = arg;
    const struct rel *fix = rel_shares(rel) ? rel_input(rel) : NULL;
    if (!fix || fix->kind != REL_FIX || l->status) {
        return !l->status;
    }
    struct search s = {l, false};
    rel_each(l->arena, rel_input(rel), note_round, &s);
    if (!s.found) {
        fix_before(l, fix);
    }
    return false;
}

static void fix_make(struct lower *l, const struct rel *rel) {
    struct loop *loop = NEW(l->arena, struct loop);
    loop->rel = rel;
    loop->count = (u32)rel->input_count / 2;
    loop->rels = NEW_ARRAY(l->arena, struct loop_rel, loop->count);
    loop->stop_lit = limit_lit(l, rel->fix.limit);
    for (u32 i = 0; i < loop->count && !l->status; i++) {
        begin_relation(l, rel, i, &loop->rels[i]);
    }
    VEC_PUSH(l->arena, &l->working, loop);
    for (i32 i = 1; i < rel->input_count && !l->status; i += 2) {
        rel_walk(l->arena, rel->inputs[i], make_before, l);
    }
    if (l->status) {
        return;
    }
    loop->first = l->steps.count;
    i64 inner = l->loops.count;
    for (u32 i = 0; i < loop->count && !l->status; i++) {
        lower_rules(l, loop, i);
    }
    if (l->status) {
        return;
    }
    cut_parts(l, loop);
    loop->end = l->steps.count;
    if (inner == l->loops.count && !l->defer) {
        hoist(l, loop);
    }
    loop->done = 1;
    VEC_PUSH(l->arena, &l->loops, loop);
}

void fix_before(struct lower *l, const struct rel *rel) {
    if (!fix_find(l, rel->fix.number)) {
        fix_make(l, rel);
    }
}

/* readers */

static struct builder *over(struct lower *l, u32 var, i64 rows) {
    struct builder *b = l->status ? NULL : lower_over(l, var, rows);
    return b ? b : build_new(l, SOURCE_ONE, 0, 1, 1);
}

struct builder *lower_fix(struct lower *l, const struct rel *rel) {
    fix_make(l, rel);
    const struct loop *loop = fix_find(l, rel->fix.number);
    struct builder *b = over(l, loop ? loop->rels[0].all : 0, rel->rows);
    for (i64 i = 0; i < rel->out.count && !l->status; i++) {
        bind_source(b, rel->out.items[i], (u32)i);
    }
    return b;
}

struct builder *fix_relation_rows(struct lower *l, const struct rel *shared) {
    const struct rel *fix = rel_input(shared);
    fix_before(l, fix);
    const struct loop *loop = fix_find(l, fix->fix.number);
    u32 relation = shared->shared.relation;
    struct builder *b = over(l, loop ? loop->rels[relation].all : 0, shared->rows);
    const u32 *cols = rel_copied(fix, 2 * (i32)relation);
    for (i64 i = 0; i < shared->out.count && !l->status; i++) {
        u32 at = 0;
        while (cols[at] != shared->shared.cols->items[i]) {
            at++;
        }
        bind_source(b, shared->out.items[i], at);
    }
    return b;
}

static struct builder *read_part(struct lower *l, const struct rel *rel, u32 part) {
    struct loop *loop = fix_find(l, rel->work.fix);
    if (!loop || loop->done) {
        lower_fail(l, ERR_INTERNAL, rel->position, "lowering: working rows outside of a recursion");
        return build_new(l, SOURCE_ONE, 0, 1, 1);
    }
    static const char *const names[] = {"delta", "old", "found"};
    struct loop_rel *r = &loop->rels[rel->work.relation];
    if (r->parts[part] == NO_VAR) {
        r->parts[part] = like_var(l, r->all, names[part]);
        take_guess(l, r->parts[part], &l->guesses.items[r->guess]);
    }
    struct builder *b = over(l, r->parts[part], rel->rows);
    for (i64 k = 0; k < rel->out.count && !l->status; k++) {
        bind_source(b, rel->out.items[k], (u32)k);
    }
    return b;
}

struct builder *lower_work(struct lower *l, const struct rel *rel) {
    return read_part(l, rel, rel->work.part);
}

/* rows found before */

bool fix_is_seen(const struct lower *l, const struct rel *rel) {
    bool all = l->limits->sets_grow && rel->kind == REL_WORK && rel->work.part == WORK_ALL;
    const struct loop *loop = all ? fix_find(l, rel->work.fix) : NULL;
    return loop && loop->rels[rel->work.relation].fresh == 0 && !l->defer;
}

struct builder *fix_last_round(struct lower *l, const struct rel *rel) {
    return read_part(l, rel, WORK_DELTA);
}

void fix_keep_seen(struct lower *l, const struct rel *rel, struct step *build) {
    fix_find(l, rel->work.fix)->rels[rel->work.relation].fresh = build->src + 1;
    build->grow = 1;
}

/* blocks */

static bool is_edge(const struct lower *l, i64 step) {
    for (i64 i = 0; i < l->loops.count; i++) {
        if (l->loops.items[i]->first == step || l->loops.items[i]->end == step) {
            return true;
        }
    }
    return false;
}

static u32 block_at(const struct lower *l, i64 step) {
    u32 number = 0;
    for (i64 i = 1; i <= step; i++) {
        number += is_edge(l, i);
    }
    return number;
}

static struct loop_var *loop_vars(struct lower *l, const struct loop *loop) {
    struct loop_var *vars = NEW_ARRAY(l->arena, struct loop_var, loop->count);
    for (u32 i = 0; i < loop->count; i++) {
        const struct loop_rel *r = &loop->rels[i];
        vars[i] = (struct loop_var){r->all, r->lit, r->fresh};
    }
    return vars;
}

void fix_blocks(struct lower *l, struct program *p) {
    i64 total = l->steps.count;
    p->block_count = block_at(l, total - 1) + 1;
    p->blocks = NEW_ARRAY(l->arena, struct block, p->block_count);
    i64 first = 0;
    u32 number = 0;
    for (i64 i = 1; i <= total; i++) {
        if (i < total && !is_edge(l, i)) {
            continue;
        }
        struct block *block = &p->blocks[number++];
        *block = (struct block){.step_count = (u32)(i - first),
                                .steps = l->steps.items + first,
                                .next = number < p->block_count ? number : NO_VAR};
        for (i64 k = 0; k < l->loops.count; k++) {
            const struct loop *loop = l->loops.items[k];
            if (loop->first == first) {
                block->enter_count = loop->count;
                block->enter_vars = loop_vars(l, loop);
            }
            if (loop->end == i) {
                block->loop_count = loop->count;
                block->loop_vars = loop_vars(l, loop);
                block->loop = block_at(l, loop->first);
                block->stop_lit = loop->stop_lit;
                block->stop_var = loop->stop_lit != NO_LIT ? loop->rels[0].all + 1 : 0;
            }
        }
        first = i;
    }
}

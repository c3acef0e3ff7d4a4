/* fix.c: recursion as a loop of the program.
 *
 * A FIX has two variables: all rows found so far, and those of the last round, which WORK reads.
 * The first term fills both. Then come the steps of the second term, once a round: they leave the
 * new rows in a third variable, from which they are appended to the first and replace the second.
 * The block of these steps is run again while the second has rows (struct block).
 *
 * Columns of the variables have the kinds of their types. What values they hold is guessed: those
 * of the first term. Where a round makes others of them, the guess is widened and all is lowered
 * again, so that a column that is only copied keeps its range, and one that counts up has any
 * value. Steps of the loop that depend on no round, such as building the other side of a join, are
 * moved before it.
 *
 * UNION asks of every new row whether it was found before. That set of keys grows: a round adds
 * those of the last round's rows, and looks at no others (fix_seen). */
#include "lower/lower_int.h"

enum { ANY_ROWS = 60, WIDENINGS = 2 };

/* Nothing is known of how many rows there will be. */
static void take_guess(struct lower *l, u32 number, const struct fix_guess *guess) {
    u32 count = l->vars.items[number].col_count;
    struct var_info *info = &l->var_infos.items[number];
    info->max_rows = (i64)1 << ANY_ROWS;
    for (u32 i = 0; i < count; i++) {
        info->ranges[i] = guess->ranges[i];
        info->nullable[i] = guess->nullable[i];
    }
}

/* What a variable's columns hold becomes part of the guess; how many of them it had not. */
static i64 widen(struct lower *l, struct fix_guess *guess, u32 number) {
    const struct var *var = &l->vars.items[number];
    const struct var_info *info = &l->var_infos.items[number];
    i64 wider = 0;
    for (u32 i = 0; i < var->col_count; i++) {
        bool nulls = info->nullable[i] && !guess->nullable[i];
        if (!guess->open[i] && !range_within(info->ranges[i], guess->ranges[i])) {
            guess->open[i] = guess->widened >= WIDENINGS;
            guess->ranges[i] = guess->open[i] ? range_of_type(var->types[i])
                                              : range_union(guess->ranges[i], info->ranges[i]);
            wider++;
        }
        wider += nulls;
        guess->nullable[i] |= nulls;
    }
    return wider;
}

/* The guess for a recursion whose first term is in `number`. */
static i64 guess_at(struct lower *l, u32 fix, u32 number) {
    for (i64 i = 0; i < l->guesses.count; i++) {
        if (l->guesses.items[i].fix == fix) {
            (void)widen(l, &l->guesses.items[i], number); /* it may read another recursion */
            return i;
        }
    }
    u32 count = l->vars.items[number].col_count;
    const struct var_info *info = &l->var_infos.items[number];
    struct fix_guess guess = {.fix = fix};
    guess.ranges = NEW_ARRAY(l->arena, struct range, count + 1);
    guess.nullable = NEW_ARRAY(l->arena, b8, count + 1);
    guess.open = NEW_ARRAY(l->arena, b8, count + 1);
    memcpy(guess.ranges, info->ranges, sizeof(struct range) * count);
    memcpy(guess.nullable, info->nullable, sizeof(b8) * count);
    VEC_PUSH(l->arena, &l->guesses, guess);
    return l->guesses.count - 1;
}

static struct out_col *term_cols(struct builder *b, const u32 *cols, i64 count) {
    struct out_col *out = NEW_ARRAY(b->l->arena, struct out_col, count + 1);
    for (i64 i = 0; i < count && !b->l->status; i++) {
        out[i].value = lower_col(b, cols[i]);
        out[i].type = b->l->plan->cols.items[cols[i]].type;
        if (type_kind(out[i].type) == KIND_STR && !b->l->status) { /* codes of one round only */
            out[i].value.reg = string_view(b, out[i].value.reg);
        }
    }
    return out;
}

/* A pipeline from one variable into another with the same columns. */
static void copy_rows(struct lower *l, u32 from, u32 to, bool append, i64 rows) {
    struct builder *b = lower_over(l, from, rows);
    u32 count = l->vars.items[from].col_count;
    struct sink_col *cols = NEW_ARRAY(l->arena, struct sink_col, count + 1);
    for (u32 i = 0; i < count && !l->status; i++) {
        struct value v = lower_source_value(b, i);
        cols[i] = (struct sink_col){
            .reg = v.reg, .null_reg = v.null, .type = l->vars.items[from].types[i]};
    }
    struct sink sink = {.kind = SINK_ROWS,
                        .var = to,
                        .limit = -1,
                        .append = append,
                        .col_count = count,
                        .cols = cols,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    if (!l->status) {
        build_label(b, rel_names[REL_FIX]);
        build_sink(b, sink);
        build_finish(b);
    }
}

static u32 like_var(struct lower *l, u32 from, const char *name) {
    u32 to = lower_rows_var(l, name, l->vars.items[from].col_count);
    struct var *var = &l->vars.items[to];
    for (u32 i = 0; i < var->col_count; i++) {
        var->types[i] = l->vars.items[from].types[i];
        var->kinds[i] = l->vars.items[from].kinds[i];
    }
    return to;
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
    d.vars[loop->work] = d.vars[loop->all] = 1;
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

struct builder *lower_fix(struct lower *l, const struct rel *rel) {
    i64 count = rel->out.count;
    i64 inner = l->loops.count;
    struct builder *b = lower_rel(l, rel_left(rel));
    struct loop loop = {.fix = rel->fix.number, .stop_lit = NO_LIT};
    if (rel->fix.limit && rel->fix.limit->kind == EXPR_CONST && !rel->fix.limit->is_null) {
        loop.stop_lit = lower_lit(l, KIND_I64, rel->fix.limit->value);
    } else if (rel->fix.limit && rel->fix.limit->kind == EXPR_PARAM) {
        loop.stop_lit = lower_param_lit(l, rel->fix.limit->param);
    }
    if (l->status) {
        return b;
    }
    build_label(b, rel_names[REL_FIX]);
    struct out_col *cols = term_cols(b, rel->fix.cols[0].items, count);
    loop.all = lower_rows(b, "recursion", cols, (u32)count, true, -1);
    if (l->status) {
        return b;
    }
    i64 guess = guess_at(l, rel->fix.number, loop.all);
    take_guess(l, loop.all, &l->guesses.items[guess]);
    loop.work = like_var(l, loop.all, "work");
    take_guess(l, loop.work, &l->guesses.items[guess]);
    copy_rows(l, loop.all, loop.work, false, rel_left(rel)->rows);
    loop.first = l->steps.count;
    inner = l->loops.count;
    VEC_PUSH(l->arena, &l->working, loop);
    i64 own = l->working.count - 1;
    struct builder *again = l->status ? b : lower_rel(l, rel_right(rel));
    if (l->status) {
        return b;
    }
    loop.fresh = l->working.items[own].fresh;
    cols = term_cols(again, rel->fix.cols[1].items, count);
    u32 found = lower_rows(again, "new", cols, (u32)count, true, -1);
    if (!l->status && widen(l, &l->guesses.items[guess], found)) {
        l->guesses.items[guess].widened++;
        l->guessed_wrong = 1;
    }
    copy_rows(l, found, loop.all, true, rel->rows);
    copy_rows(l, found, loop.work, false, rel->rows);
    loop.end = l->steps.count;
    if (!l->status && inner == l->loops.count && !l->defer) {
        hoist(l, &loop);
    }
    VEC_PUSH(l->arena, &l->loops, loop);
    struct builder *out = lower_over(l, loop.all, rel->rows);
    for (i64 i = 0; i < count && !l->status; i++) {
        bind_source(out, rel->out.items[i], (u32)i);
    }
    return out;
}

struct builder *lower_work(struct lower *l, const struct rel *rel) {
    for (i64 i = 0; i < l->working.count; i++) {
        const struct loop *loop = &l->working.items[i];
        if (loop->fix == rel->work.fix) {
            struct builder *b = lower_over(l, rel->work.whole ? loop->all : loop->work, rel->rows);
            for (i64 k = 0; k < rel->out.count && !l->status; k++) {
                bind_source(b, rel->out.items[k], (u32)k);
            }
            return b;
        }
    }
    lower_fail(l, ERR_INTERNAL, rel->position, "lowering: working rows outside of a recursion");
    return build_new(l, SOURCE_ONE, 0, 1, 1);
}

bool fix_is_seen(const struct lower *l, const struct rel *rel) {
    bool all = l->limits->sets_grow && rel->kind == REL_WORK && rel->work.whole;
    for (i64 i = 0; all && i < l->working.count; i++) {
        if (l->working.items[i].fix == rel->work.fix) {
            return l->working.items[i].fresh == 0 && !l->defer;
        }
    }
    return false;
}

struct builder *fix_last_round(struct lower *l, const struct rel *rel) {
    struct rel last = *rel;
    last.work.whole = 0;
    return lower_work(l, &last);
}

void fix_keep_seen(struct lower *l, const struct rel *rel, struct step *build) {
    for (i64 i = 0; i < l->working.count; i++) {
        if (l->working.items[i].fix == rel->work.fix) {
            l->working.items[i].fresh = build->src + 1;
        }
    }
    build->grow = 1;
}

static bool is_edge(const struct lower *l, i64 step) {
    for (i64 i = 0; i < l->loops.count; i++) {
        if (l->loops.items[i].first == step || l->loops.items[i].end == step) {
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
                                .next = number < p->block_count ? number : NO_VAR,
                                .loop_var = NO_VAR};
        for (i64 k = 0; k < l->loops.count; k++) {
            if (l->loops.items[k].first == first && l->loops.items[k].fresh) {
                block->fresh_var = l->loops.items[k].fresh;
            }
            if (l->loops.items[k].end == i) {
                block->loop_var = l->loops.items[k].work;
                block->loop = block_at(l, l->loops.items[k].first);
                block->stop_lit = l->loops.items[k].stop_lit;
                block->stop_var = block->stop_lit != NO_LIT ? l->loops.items[k].all + 1 : 0;
            }
        }
        first = i;
    }
}

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
 * A relation whose rows are distinct has a set of their keys, to which the pipelines that make rows
 * add: what was there is dropped, so that neither repeats nor rows of earlier rounds cost a step of
 * their own. Where a device cannot do that, a round asks of every row whether it was found before
 * (the plan's anti join), and then removes repeats; that set of keys grows, too, where it can: a round
 * adds those of the last round's rows, and looks at no others (fix_is_seen). See decision 0027.
 *
 * So do indexes of rows that a rule joins with those of the last round (fix_growing): the rows that are
 * new go behind those that the index has, at the beginning of a round, or, of old rows, at its end. */
#include "lower/lower_int.h"

#include "codes/func.h"
#include "codes/loop.h"

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
        struct range any = guess->coded[col] ? range_exact(0, I32_MAX) : range_of_type(type);
        guess->ranges[col] = guess->open[col] ? any : range_union(guess->ranges[col], range);
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
    guess.coded = NEW_ARRAY(l->arena, b8, count + 1);
    guess.plain = NEW_ARRAY(l->arena, b8, count + 1);
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

static struct fix_guess *guess_of(const struct lower *l, u32 fix, u32 relation) {
    for (i64 i = 0; i < l->guesses.count; i++) {
        struct fix_guess *guess = &l->guesses.items[i];
        if (guess->fix == fix && guess->relation == relation) {
            return guess;
        }
    }
    return NULL;
}

/* Text of a column becomes views, unless it is codes of the dictionary that the relation's column has. The first term
 * (dicts is NULL) may decide on one: that of a table's column, since others are made while a program runs. */
static u16 term_text(struct builder *b, u16 reg, struct fix_guess *guess, i64 i,
                     const u32 *dicts) {
    struct lower *l = b->l;
    u32 dict = reg_dict(b, reg);
    bool plain = guess && guess->plain[i];
    bool stays = dict && !plain &&
                 (dicts ? dicts[i] == dict : l->dicts.items[dict - 1].table != NO_VAR);
    if (stays) {
        return reg;
    }
    reg = string_view(b, reg);
    if (dicts && dicts[i] && guess && !l->status) { /* codes were a wrong guess */
        guess->plain[i] = 1;
        guess->ranges[i] = reg_range(b, reg);
        l->guessed_wrong = 1;
    }
    return reg;
}

static struct out_col *term_cols(struct builder *b, const col_list *list, struct fix_guess *guess,
                                 const u32 *dicts, u32 *out_count) {
    struct out_col *out = NEW_ARRAY(b->l->arena, struct out_col, list->count + 1);
    for (i64 i = 0; i < list->count && !b->l->status; i++) {
        out[i].value = lower_col(b, list->items[i]);
        out[i].type = b->l->plan->cols.items[list->items[i]].type;
        if (type_kind(out[i].type) == KIND_STR && !b->l->status) {
            out[i].value.reg = term_text(b, out[i].value.reg, guess, i, dicts);
        } else if (!b->l->status) {
            out[i].value.reg = lower_canonical(b, out[i].value, out[i].type);
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

/* The plan of a term without what makes its rows distinct, and its columns for those of the
 * relation. */
struct term {
    const struct rel *rel;
    col_list cols;
};

/* One column under another name; false where it is computed. */
static bool name_below(const struct rel *rel, u32 *io_col) {
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; exprs && i < exprs->count; i++) {
        if (rel->out.items[i] == *io_col) {
            *io_col = exprs->items[i]->col;
            return exprs->items[i]->kind == EXPR_COL;
        }
    }
    return !exprs;
}

static bool names_below(struct term *t) {
    bool all = true;
    for (i64 i = 0; i < t->cols.count && all; i++) {
        all = name_below(t->rel, &t->cols.items[i]);
    }
    return all;
}

static bool is_distinct(const struct rel *rel) {
    return rel->kind == REL_AGG && rel->agg.calls.count == 0 && rel->agg.keys.count > 0;
}

static struct term term_of(struct lower *l, const struct rel *fix, i32 input) {
    struct term t = {.rel = fix->inputs[input]};
    const col_list *cols = rel_cols(fix, input);
    for (i64 i = 0; i < cols->count; i++) {
        VEC_PUSH(l->arena, &t.cols, cols->items[i]);
    }
    return t;
}

/* Takes off projections that only name columns, and what makes their rows distinct. */
static struct term peel(struct lower *l, const struct rel *fix, i32 input, bool *out_distinct) {
    struct term t = term_of(l, fix, input);
    *out_distinct = false;
    while (t.rel->kind == REL_PROJECT || is_distinct(t.rel)) {
        struct term below = term_of(l, fix, input);
        below.rel = t.rel;
        memcpy(below.cols.items, t.cols.items, sizeof(u32) * (size_t)t.cols.count);
        if (!names_below(&below)) {
            break;
        }
        *out_distinct = *out_distinct || is_distinct(t.rel);
        memcpy(t.cols.items, below.cols.items, sizeof(u32) * (size_t)t.cols.count);
        t.rel = rel_input(t.rel);
    }
    return t;
}

/* Of every key the best value. */
struct best {
    b8 is, greatest;
    u32 value; /* which column of the relation */
};

/* Takes off what keeps the best value of every key, where that is all the term does. */
static struct best peel_best(struct term *t) {
    const struct rel *agg = t->rel;
    const struct agg_call *call = agg->kind == REL_AGG && agg->agg.calls.count == 1
                                      ? &agg->agg.calls.items[0]
                                      : NULL;
    bool extreme = call && (call->agg == AGG_MIN || call->agg == AGG_MAX) && !call->filter &&
                   call->arg->kind == EXPR_COL && agg->agg.keys.count == t->cols.count - 1;
    struct best best = {.greatest = extreme && call->agg == AGG_MAX};
    i64 found = 0;
    for (i64 i = 0; extreme && i < t->cols.count; i++) {
        u32 below = t->cols.items[i];
        if (below == call->col) {
            best.value = (u32)i;
            found++;
        } else {
            extreme = name_below(agg, &below);
        }
    }
    best.is = extreme && found == 1;
    for (i64 i = 0; best.is && i < t->cols.count; i++) {
        if (i == (i64)best.value) {
            t->cols.items[i] = call->arg->col;
        } else {
            (void)name_below(agg, &t->cols.items[i]);
        }
    }
    t->rel = best.is ? rel_input(agg) : t->rel;
    return best;
}

static bool is_pair(const struct expr *left, u32 left_col, const struct expr *right, u32 right_col) {
    return left->kind == EXPR_COL && left->col == left_col && right->kind == EXPR_COL &&
           right->col == right_col;
}

/* Whether the join's condition is that the left row's value is no better. */
static bool is_no_better(const struct rel *join, struct best best, u32 left, u32 right) {
    const struct expr *cond = join->join.conds.count == 1 ? join->join.conds.items[0] : NULL;
    bool call = cond && cond->kind == EXPR_CALL && cond->arg_count == 2;
    u16 straight = best.greatest ? FUNC_LE : FUNC_GE;
    u16 turned = best.greatest ? FUNC_GE : FUNC_LE;
    return call &&
           ((cond->func == straight && is_pair(cond->args[0], left, cond->args[1], right)) ||
            (cond->func == turned && is_pair(cond->args[1], left, cond->args[0], right)));
}

/* Whether the term is rows that its relation does not have, by all columns, or that are better than
 * those it has of the same key; then it becomes all rows there may be. */
static bool is_new(struct term *t, const struct rel *fix, u32 relation, struct best best) {
    const struct rel *join = t->rel;
    const struct rel *seen =
        join->kind == REL_JOIN && join->join.kind == JOIN_ANTI && !join->join.lazy ? rel_right(join)
                                                                                  : NULL;
    i64 keys = t->cols.count - best.is;
    bool all = seen && seen->kind == REL_WORK && seen->work.fix == fix->fix.number &&
               seen->work.relation == relation && seen->work.part == WORK_ALL &&
               join->join.left_keys.count == keys && join->join.null_safe.count == keys;
    all = all && keys > 0 && (best.is ? is_no_better(join, best, t->cols.items[best.value],
                                         seen->out.items[best.value])
                          : join->join.conds.count == 0);
    for (i64 i = 0, k = 0; all && i < t->cols.count; i++) {
        if (!best.is || i != (i64)best.value) {
            all = is_pair(join->join.left_keys.items[k], t->cols.items[i],
                          join->join.right_keys.items[k], seen->out.items[i]) &&
                  join->join.null_safe.items[k];
            k++;
        }
    }
    t->rel = all ? rel_left(join) : t->rel;
    return all;
}

/* Whether a bitmap of all keys that the relation may have is no waste: a few megabytes, or as many
 * bits as there are pairs of the rows that it begins with. A best value takes 64 bits. */
static bool is_small(const struct lower *l, const struct rel *fix, u32 relation, struct best best) {
    enum { FREE_BITS = 24, MOST_BITS = 34, VALUE_BITS = 6 };
    const struct fix_guess *guess = guess_of(l, fix->fix.number, relation);
    const u32 *cols = rel_copied(fix, 2 * (i32)relation);
    i64 count = rel_cols(fix, 2 * (i32)relation)->count;
    u64 rows = (u64)MAX_OF(fix->inputs[2 * relation]->rows, 1);
    u32 most = MAX_OF(2 * (64 - (u32)__builtin_clzll(rows)), (u32)FREE_BITS);
    u32 bits = best.is ? VALUE_BITS : 0;
    for (i64 i = 0; guess && i < count; i++) {
        if (best.is && i == (i64)best.value) {
            continue;
        }
        enum kind kind = type_kind(l->plan->cols.items[cols[i]].type);
        struct range range = guess->ranges[i];
        bool exact = kind == KIND_B8 || kind == KIND_I32 || kind == KIND_I64 ||
                     kind == KIND_I128 || guess->coded[i];
        bits += exact && range.lo <= range.hi ? key_bits_of(range) + guess->nullable[i] : MOST_BITS;
    }
    return guess && !guess->none && bits <= MIN_OF(most, (u32)MOST_BITS);
}

/* Keys of the relation's rows, by what its columns hold. */
static void begin_set(struct lower *l, struct loop_rel *r) {
    struct builder *b = lower_over(l, r->all, 0);
    u32 count = l->vars.items[r->all].col_count;
    r->layout = NEW(l->arena, struct key_layout);
    r->layout->fields = NEW_ARRAY(l->arena, struct key_field, count + 1);
    for (u32 i = 0; i < count && !l->status; i++) {
        if (r->best && i == r->value) {
            continue;
        }
        struct type type = l->vars.items[r->all].types[i];
        r->layout->fields[r->layout->count++] =
            key_field_of(b, lower_source_value(b, i), type);
    }
    key_place(l, r->layout);
    r->set = lower_var(l, VAR_SET, "set") + 1;
}

/* A word that orders as the value of which a key keeps the best; one that is NULL is the worst. */
static u16 best_word(struct builder *b, struct value v, bool greatest) {
    enum kind kind = reg_kind(b, v.reg);
    if (kind == KIND_F32 || kind == KIND_F64) {
        v.reg = build_op(b, kind == KIND_F32 ? OP_ORD_F32 : OP_ORD_F64, v.reg, NO_REG, NO_REG,
                         range_exact(I64_MIN, I64_MAX));
    }
    u16 reg = build_kind(b, v.reg, KIND_I64);
    return lower_guard(b, reg, v.null, build_int(b, KIND_I64, greatest ? I64_MIN : I64_MAX));
}

/* The sink asks the relation's set whether a row is new, or better. */
static void ask_set(struct builder *b, const struct loop_rel *r, const struct value *values,
                    u32 count, struct sink *sink) {
    struct lower *l = b->l;
    struct value *keys = NEW_ARRAY(l->arena, struct value, count + 1);
    u32 key_count = 0;
    for (u32 i = 0; i < count; i++) {
        if (!r->best || i != r->value) {
            keys[key_count++] = values[i];
        }
    }
    sink->set_var = r->set;
    sink->set_small = r->small;
    sink->key = key_pack(b, r->layout, keys, false, NULL);
    sink->key_bits = (u8)MIN_OF(r->layout->bits, 64);
    if (r->best && !l->status) {
        sink->words = NEW_ARRAY(l->arena, u8, 1);
        sink->word_regs = NEW_ARRAY(l->arena, u16, 1);
        sink->words[0] = r->greatest ? WORD_MAX : WORD_MIN;
        sink->word_regs[0] = best_word(b, values[r->value], r->greatest);
        sink->word_count = 1;
    }
}

/* Rows of a term become the relation's first ones, or go behind the others. */
static void end_rows(struct builder *b, const struct out_col *cols, u32 count,
                     const struct loop_rel *r, bool append) {
    struct lower *l = b->l;
    struct fix_guess *guess = &l->guesses.items[r->guess];
    struct sink_col *out = NEW_ARRAY(l->arena, struct sink_col, count);
    struct value *values = NEW_ARRAY(l->arena, struct value, count);
    bool wider = false;
    for (u32 i = 0; i < count && !l->status; i++) {
        struct value v = cols[i].value;
        v.null = build_is_bool(b, v.null, false) ? (u16)NO_REG : v.null;
        values[i] = v;
        out[i] = (struct sink_col){.reg = v.reg,
                                   .null_reg = v.null,
                                   .type = cols[i].type,
                                   .dict = l->vars.items[r->all].dicts[i]};
        wider |= append && widen(guess, i, reg_range(b, v.reg), v.null != NO_REG, cols[i].type);
    }
    if (wider) {
        guess->widened += !guess->none;
        guess->none = 0;
        l->guessed_wrong = 1;
    }
    struct sink sink = {.kind = SINK_ROWS,
                        .var = r->all,
                        .limit = -1,
                        .append = append,
                        .col_count = count,
                        .cols = out,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    if (r->set && !wider && !l->guessed_wrong && !l->status) { /* what is lowered again needs none */
        ask_set(b, r, values, count, &sink);
    }
    build_sink(b, sink);
    build_finish(b);
}

/* The variable of a relation that begins with these rows. */
static void begin_rows(struct builder *b, const struct out_col *cols, u32 count,
                       const char *name, struct loop_rel *r) {
    struct lower *l = b->l;
    r->all = lower_rows_var(l, "recursion", count);
    struct var *var = &l->vars.items[r->all];
    var->relation = name;
    struct var_info *info = &l->var_infos.items[r->all];
    var->rows = b->rows;
    for (u32 i = 0; i < count; i++) {
        u16 null = cols[i].value.null;
        var->types[i] = cols[i].type;
        var->kinds[i] = b->regs.items[cols[i].value.reg].kind;
        var->dicts[i] = reg_dict(b, cols[i].value.reg);
        info->ranges[i] = reg_range(b, cols[i].value.reg);
        info->nullable[i] = null != NO_REG && !build_is_bool(b, null, false);
    }
}

/* Whether a word holds the value of which a key keeps the best. */
static bool has_word(const struct lower *l, const struct term *t, struct best best) {
    enum kind kind =
        best.is ? type_kind(l->plan->cols.items[t->cols.items[best.value]].type) : KIND_I64;
    return kind == KIND_I32 || kind == KIND_I64 || kind == KIND_F32 || kind == KIND_F64;
}

/* Rows of the first term. */
static void begin_relation(struct lower *l, const struct rel *rel, u32 relation,
                           struct loop_rel *r) {
    static const union lit none = {0};
    i32 input = 2 * (i32)relation;
    u32 count = 0;
    bool distinct = false;
    *r = (struct loop_rel){.parts = {NO_VAR, NO_VAR, NO_VAR}};
    struct term rule = peel(l, rel, input + 1, &distinct);
    bool known = guess_of(l, rel->fix.number, relation) != NULL;
    struct best best = peel_best(&rule);
    bool asks = !l->defer && is_new(&rule, rel, relation, best) && has_word(l, &rule, best);
    bool small = l->limits->sets_small && is_small(l, rel, relation, best);
    bool grows = best.is ? l->limits->bests_grow : l->limits->sets_grow;
    bool counts_once = asks && (grows || small);
    struct term first = counts_once ? peel(l, rel, input, &distinct) : term_of(l, rel, input);
    if (counts_once && best.is) {
        (void)peel_best(&first);
        r->best = 1;
        r->greatest = best.greatest;
        r->value = best.value;
    }
    struct builder *b = lower_rel(l, first.rel);
    if (l->status) {
        return;
    }
    build_label(b, rel_names[REL_FIX]);
    struct fix_guess *guess = guess_of(l, rel->fix.number, relation);
    struct out_col *cols = term_cols(b, &first.cols, guess, NULL, &count);
    if (l->status) {
        return;
    }
    begin_rows(b, cols, count, rel->fix.names ? rel->fix.names[relation] : NULL, r);
    r->lit = lower_lit_new(l, KIND_I64, none);
    r->guess = guess_at(l, rel->fix.number, relation, r->all, is_none(rel->inputs[input]));
    take_guess(l, r->all, &l->guesses.items[r->guess]);
    for (u32 i = 0; i < count; i++) {
        l->guesses.items[r->guess].coded[i] = l->vars.items[r->all].dicts[i] != 0;
    }
    if (counts_once) {
        begin_set(l, r);
        r->small = is_small(l, rel, relation, best) && r->layout->bits <= 34;
    } else if (asks && !known && l->limits->sets_small) { /* it may be small, now that it is known */
        l->guessed_wrong = 1;
    }
    end_rows(b, cols, count, r, false);
}

/* Rows of a round. A union has a pipeline for each of its inputs. */
static void lower_term(struct lower *l, struct term t, const struct loop_rel *r) {
    u32 count = 0;
    if (t.rel->kind == REL_UNION && !weave_cuts_after(l, t.rel)) {
        for (i32 side = 0; side < t.rel->input_count; side++) {
            struct term arm = {.rel = t.rel->inputs[side]};
            for (i64 i = 0; i < t.cols.count; i++) {
                i64 at = 0;
                while (t.rel->out.items[at] != t.cols.items[i]) {
                    at++;
                }
                VEC_PUSH(l->arena, &arm.cols, t.rel->arms.cols[side].items[at]);
            }
            lower_term(l, arm, r);
        }
        return;
    }
    struct builder *b = l->status ? NULL : lower_rel(l, t.rel);
    if (l->status) {
        return;
    }
    build_label(b, rel_names[REL_FIX]);
    struct out_col *cols = term_cols(b, &t.cols, &l->guesses.items[r->guess],
                                     l->vars.items[r->all].dicts, &count);
    if (!l->status) {
        end_rows(b, cols, count, r, true);
    }
}

static void lower_rules(struct lower *l, struct loop *loop, u32 relation) {
    struct loop_rel *r = &loop->rels[relation];
    i32 input = 2 * (i32)relation + 1;
    bool distinct = false;
    struct term t = term_of(l, loop->rel, input);
    if (r->set) {
        t = peel(l, loop->rel, input, &distinct);
        struct best best = peel_best(&t);
        (void)is_new(&t, loop->rel, relation, best);
    }
    lower_term(l, t, r);
}

/* the loop */

static u32 like_var(struct lower *l, u32 from, const char *name) {
    u32 to = lower_rows_var(l, name, l->vars.items[from].col_count);
    struct var *var = &l->vars.items[to];
    for (u32 i = 0; i < var->col_count; i++) {
        var->types[i] = l->vars.items[from].types[i];
        var->kinds[i] = l->vars.items[from].kinds[i];
        var->dicts[i] = l->vars.items[from].dicts[i];
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

static bool is_late(const struct loop *loop, const struct step *step) {
    u32 var = step->kind == STEP_PIPELINE ? step->pipeline->sinks[0].var : NO_VAR;
    for (i64 i = 0; i < loop->late.count; i++) {
        if (loop->late.items[i] == var) {
            return true;
        }
    }
    return false;
}

/* Rows of this round are old from the next one on: what indexes of old rows get of them goes last. */
static void put_late(struct lower *l, struct loop *loop) {
    i64 left = loop->late.count;
    for (i64 at = loop->first; left > 0 && at < loop->end; left--) {
        while (at < loop->end && !is_late(loop, &l->steps.items[at])) {
            at++;
        }
        if (at == loop->end) {
            break;
        }
        struct step step = l->steps.items[at];
        memmove(l->steps.items + at, l->steps.items + at + 1,
                sizeof step * (size_t)(loop->end - at - 1));
        l->steps.items[loop->end - 1] = step;
        for (i64 i = 0; i < l->loops.count; i++) { /* inner ones */
            struct loop *inner = l->loops.items[i];
            if (inner->first > at && inner->end <= loop->end) {
                inner->first--;
                inner->end--;
            }
        }
    }
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
    put_late(l, loop);
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
    return read_part(l, rel, rel == l->growing ? WORK_DELTA : (u32)rel->work.part);
}

bool fix_is_open(const struct lower *l) {
    bool open = false;
    for (i64 i = 0; i < l->working.count; i++) {
        open = open || !l->working.items[i]->done;
    }
    return open;
}

/* what is kept from round to round */

bool fix_is_seen(const struct lower *l, const struct rel *rel) {
    bool all = l->limits->bests_grow && rel->kind == REL_WORK && rel->work.part == WORK_ALL;
    return all && fix_find(l, rel->work.fix) && !l->defer;
}

/* The recursion whose steps are being made. */
static const struct loop *open_loop(const struct lower *l) {
    const struct loop *open = NULL;
    for (i64 i = 0; i < l->working.count; i++) {
        open = l->working.items[i]->done ? open : l->working.items[i];
    }
    return open;
}

const struct rel *fix_growing(const struct lower *l, const struct rel *input) {
    while (input->kind == REL_FILTER || input->kind == REL_PROJECT) {
        input = rel_input(input);
    }
    bool grows = !l->defer && input->kind == REL_WORK &&
                 input->work.part != WORK_DELTA && fix_find(l, input->work.fix) == open_loop(l);
    return grows ? input : NULL;
}

struct builder *fix_last_round(struct lower *l, const struct rel *input, const struct rel *work) {
    l->growing = work;
    struct builder *b = lower_rel(l, input);
    l->growing = NULL;
    return b;
}

void fix_keep_growing(struct lower *l, const struct rel *work, struct step *build) {
    struct loop *loop = fix_find(l, work->work.fix);
    struct loop_rel *r = &loop->rels[work->work.relation];
    VEC_PUSH(l->arena, &r->fresh, build->src);
    if (work->work.part == WORK_OLD) {
        VEC_PUSH(l->arena, &loop->late, build->src);
    }
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
        vars[i] = (struct loop_var){r->all, r->lit, (u32)r->fresh.count, r->fresh.items};
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

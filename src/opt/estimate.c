/* estimate.c: how many rows every operator makes, and which join keys are unique.
 *
 * Simple rules from column ranges and distinct counts, independent predicates; good enough to tell
 * large from small, which is all that join order and sizes of tables need. Uniqueness is not an
 * estimate: it comes from the store, is guarded, and passes only through operators that cannot
 * repeat a row; a group occurs once, and so does the one row of an aggregate without keys. */
#include "opt/opt_int.h"

#include <math.h>

#include "codes/loop.h"
#include "codes/scalar.h"
#include "host/eval.h"

static f64 clamp_share(f64 share) {
    return share < 1e-9 ? 1e-9 : share > 1.0 ? 1.0 : share;
}

static bool const_number(const struct expr *expr, f64 *out) {
    if (expr->kind != EXPR_CONST || expr->is_null) {
        return false;
    }
    switch (type_kind(expr->type)) {
    case KIND_I32:
        *out = expr->value.i32;
        return true;
    case KIND_I64:
        *out = (f64)expr->value.i64;
        break;
    case KIND_I128:
        *out = (f64)expr->value.i128;
        break;
    default:
        return false;
    }
    if (expr->type.id == TYPE_DECIMAL) {
        *out /= (f64)pow10_i128(expr->type.scale);
    }
    return true;
}

static const struct expr *plain_col(const struct expr *expr) {
    while (expr->kind == EXPR_CAST) {
        expr = expr->args[0];
    }
    return expr->kind == EXPR_COL ? expr : NULL;
}

/* Share of groups whose aggregate lies below or above a value, as if normally distributed. Real
 * groups are less even: there may always be some. */
static f64 spread_share(const struct col_fact *fact, f64 value, bool below) {
    const f64 least = 1e-4;
    f64 steps = (value - fact->mean) / MAX_OF(fact->deviation, 1e-9);
    f64 share = 0.5 * erfc((below ? -steps : steps) / sqrt(2.0));
    return MAX_OF(share, least);
}

static f64 compare_share(const struct opt *o, const struct expr *expr) {
    const struct expr *col = plain_col(expr->args[0]);
    bool swapped = !col;
    col = col ? col : plain_col(expr->args[1]);
    f64 value = 0;
    bool known = col && const_number(expr->args[swapped ? 0 : 1], &value);
    const struct col_fact *fact = col && col->col < o->fact_count ? &o->facts[col->col] : NULL;
    if (expr->func == FUNC_EQ || expr->func == FUNC_NE) {
        f64 share = fact && fact->has_distinct ? 1.0 / (f64)fact->distinct : 0.05;
        return expr->func == FUNC_EQ ? share : 1.0 - share;
    }
    if (known && fact && fact->has_spread) {
        return spread_share(fact, value, (expr->func == FUNC_LT || expr->func == FUNC_LE) != swapped);
    }
    if (!known || !fact || !fact->has_range) {
        return 0.33;
    }
    f64 lo = (f64)fact->range.lo;
    f64 hi = (f64)fact->range.hi;
    f64 below = hi > lo ? (value - lo) / (hi - lo) : 0.5;
    bool less = expr->func == FUNC_LT || expr->func == FUNC_LE;
    return less != swapped ? below : 1.0 - below;
}

/* LIKE: the pattern is tried on a sample of the column. */
static f64 like_share(struct opt *o, const struct expr *expr) {
    enum { SAMPLE = 256 };
    const struct expr *col = plain_col(expr->args[0]);
    const struct expr *pattern = expr->args[1];
    bool known = col && col->col < o->fact_count && o->facts[col->col].source && o->plan->sample &&
                 pattern->kind == EXPR_CONST && !pattern->is_null;
    if (!known) {
        return 0.1;
    }
    u64 hash = sv_hash(sv_of(pattern->value.str));
    for (i64 i = 0; i < o->likes.count; i++) {
        const struct like_share *old = &o->likes.items[i];
        if (old->col == col->col && old->func == expr->func && old->hash == hash &&
            sv_eq(sv_of(old->pattern), sv_of(pattern->value.str))) {
            return old->share;
        }
    }
    const struct col_fact *fact = &o->facts[col->col];
    str texts[SAMPLE];
    i64 count = o->plan->sample(fact->source, fact->table_col, o->plan->arena, texts, SAMPLE);
    u16 code = expr->func == FUNC_LIKE ? OP_LIKE_STR : OP_ILIKE_STR;
    i64 hits = 0;
    for (i64 i = 0; i < count; i++) {
        union lit a = {.str = texts[i]};
        union lit b = {.str = pattern->value.str};
        union lit out = {0};
        hits += op_eval(code, &out, a, b, b, o->plan->arena) == 0 && out.b8;
    }
    f64 share = ((f64)hits + 0.5) / ((f64)count + 1.0);
    struct like_share made = {col->col, (u16)expr->func, pattern->value.str, hash, share};
    VEC_PUSH(o->plan->arena, &o->likes, made);
    return share;
}

/* TABLESAMPLE of a share that is known. */
static bool is_sample(const struct expr *expr) {
    return expr->func == FUNC_LT && expr->args[0]->kind == EXPR_CALL &&
           (expr->args[0]->func == FUNC_SAMPLE || expr->args[0]->func == FUNC_SAMPLE_NOW) &&
           expr->args[1]->kind == EXPR_CONST;
}

f64 estimate_share(struct opt *o, const struct expr *expr) {
    f64 share = 1.0;
    switch (expr->kind) {
    case EXPR_AND:
        for (i32 i = 0; i < expr->arg_count; i++) {
            share *= estimate_share(o, expr->args[i]);
        }
        return clamp_share(share);
    case EXPR_OR:
        for (i32 i = 0; i < expr->arg_count; i++) {
            share *= 1.0 - estimate_share(o, expr->args[i]);
        }
        return clamp_share(1.0 - share);
    case EXPR_NOT:
        return clamp_share(1.0 - estimate_share(o, expr->args[0]));
    case EXPR_IS_NULL:
        return 0.1;
    case EXPR_IN: {
        const struct expr *col = plain_col(expr->args[0]);
        bool known = col && col->col < o->fact_count && o->facts[col->col].has_distinct;
        f64 one = known ? 1.0 / (f64)o->facts[col->col].distinct : 0.05;
        return clamp_share(one * (f64)(expr->arg_count - 1));
    }
    case EXPR_CALL:
        if (is_sample(expr)) {
            return clamp_share(expr->args[1]->value.f64);
        }
        if (expr->func >= FUNC_EQ && expr->func <= FUNC_GE) {
            return clamp_share(compare_share(o, expr));
        }
        return expr->func == FUNC_LIKE || expr->func == FUNC_ILIKE ? like_share(o, expr) : 0.33;
    case EXPR_CONST:
        return clamp_share(!expr->is_null && expr->value.b8 ? 1.0 : 0.0);
    default:
        return 0.5;
    }
}

/* Share of rows that the conjuncts of an arm about this column alone keep; 1: there are none. */
static f64 share_of_col(struct opt *o, struct expr *arm, u32 col) {
    expr_list parts = {0};
    f64 share = 1.0;
    expr_split_and(o->plan->arena, &parts, arm);
    for (i64 i = 0; i < parts.count; i++) {
        u32 only = NO_COL;
        if (expr_only_col(parts.items[i], &only) && only == col) {
            share *= estimate_share(o, parts.items[i]);
        }
    }
    return share;
}

/* What an OR says of one column in all of its arms, by which rows were filtered before. */
static f64 known_share(struct opt *o, const struct expr *all, u32 col) {
    f64 none = 1.0;
    for (i32 i = 0; i < all->arg_count; i++) {
        none *= 1.0 - share_of_col(o, all->args[i], col);
    }
    return 1.0 - none;
}

f64 estimate_residual(struct opt *o, const struct expr *cond) {
    f64 share = estimate_share(o, cond);
    f64 known = 1.0;
    expr_list parts = {0};
    VEC(u32) cols = {0};
    if (cond->kind != EXPR_OR) {
        return share;
    }
    expr_split_and(o->plan->arena, &parts, cond->args[0]);
    for (i64 i = 0; i < parts.count; i++) {
        u32 col = NO_COL;
        bool seen = !expr_only_col(parts.items[i], &col);
        for (i64 k = 0; !seen && k < cols.count; k++) {
            seen = cols.items[k] == col;
        }
        if (!seen) {
            VEC_PUSH(o->plan->arena, &cols, col);
            known *= known_share(o, cond, col);
        }
    }
    return clamp_share(share / MAX_OF(known, share));
}

static i64 to_rows(f64 rows) {
    return rows < 1.0 ? 1 : rows > 1e18 ? (i64)1e18 : (i64)rows;
}

/* +1 for a lower bound on *out, -1 for an upper one, 0 for anything else. */
static i32 bound_on(const struct expr *cond, u32 *out) {
    if (cond->kind != EXPR_CALL || cond->func < FUNC_LT || cond->func > FUNC_GE) {
        return 0;
    }
    const struct expr *left = plain_col(cond->args[0]);
    const struct expr *right = plain_col(cond->args[1]);
    bool less = cond->func == FUNC_LT || cond->func == FUNC_LE;
    if ((left != NULL) == (right != NULL)) {
        return 0;
    }
    *out = left ? left->col : right->col;
    return less == (left != NULL) ? -1 : 1;
}

/* The first conditions that bound a column from below and from above. */
struct bounds {
    u32 col;
    const struct expr *low, *high;
};

/* A place for a column; the table has more places than there are conditions. */
static struct bounds *bounds_of(struct bounds *table, u64 mask, u32 col) {
    u64 at = hash_u64(col) & mask;
    while ((table[at].low || table[at].high) && table[at].col != col) {
        at = (at + 1) & mask;
    }
    table[at].col = col;
    return &table[at];
}

/* Two bounds of one column make a range, not two independent conditions. */
static f64 range_share(struct opt *o, const struct expr *cond, const struct bounds *bounds,
                       i32 sign) {
    f64 own = estimate_share(o, cond);
    const struct expr *other = sign > 0 ? bounds->high : bounds->low;
    if (!other) {
        return own;
    }
    f64 both = own + estimate_share(o, other) - 1.0;
    return sign > 0 ? (both < 0.001 ? 0.001 : both) : 1.0; /* counted once */
}

/* Share of rows that all conditions keep together, a join's or a filter's. */
static f64 conds_share(struct opt *o, const expr_list *conds, bool of_join) {
    enum { FEW = 16 };
    struct bounds few[4 * FEW] = {{0}}, *table = few;
    i64 count = conds->count, places = COUNT_OF(few);
    u32 col = 0;
    if (count > FEW) {
        while (places < 2 * count) {
            places *= 2;
        }
        table = NEW_ARRAY(o->plan->arena, struct bounds, places);
    }
    for (i64 i = count; i-- > 0;) {
        const struct expr *cond = conds->items[i];
        i32 sign = bound_on(cond, &col);
        struct bounds *bounds = sign ? bounds_of(table, (u64)places - 1, col) : NULL;
        if (bounds) {
            *(sign > 0 ? &bounds->low : &bounds->high) = cond;
        }
    }
    f64 share = 1.0;
    for (i64 i = 0; i < count; i++) {
        const struct expr *cond = conds->items[i];
        i32 sign = bound_on(cond, &col);
        share *= sign      ? range_share(o, cond, bounds_of(table, (u64)places - 1, col), sign)
                 : of_join ? estimate_residual(o, cond)
                           : estimate_share(o, cond);
    }
    return share;
}

f64 estimate_conds(struct opt *o, const expr_list *conds) {
    return conds_share(o, conds, false);
}

static i64 filtered(struct opt *o, const struct rel *rel, i64 rows) {
    const expr_list *conds = rel_conds(rel);
    f64 share = conds_share(o, conds, rel->kind == REL_JOIN);
    return conds->count > 0 ? to_rows((f64)rows * share) : rows;
}

/* How many different values there are at most; 0 = nobody knows. */
static i64 values_most(const struct opt *o, const struct expr *expr) {
    const struct expr *col = plain_col(expr);
    if (col) {
        return col->col < o->fact_count ? o->facts[col->col].values_most : 0;
    }
    i64 sum = 0;
    for (i32 i = 0; expr->kind == EXPR_CASE && i < expr->arg_count; i++) {
        if (i % 2 == 1 || i + 1 == expr->arg_count) {
            i64 one = values_most(o, expr->args[i]);
            if (one == 0) {
                return 0;
            }
            sum += one;
        }
    }
    return expr->kind == EXPR_CONST ? 1 : sum;
}

/* What is known of an input's columns, of those that are made of them. */
static void pass_values(struct opt *o, const struct rel *rel) {
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; exprs && i < exprs->count; i++) {
        if (rel->out.items[i] < o->fact_count) {
            o->facts[rel->out.items[i]].values_most = values_most(o, exprs->items[i]);
        }
    }
    for (i64 i = 0; rel->kind == REL_SHARED && i < rel->out.count; i++) {
        u32 from = rel->shared.cols->items[i];
        if (rel->out.items[i] < o->fact_count && from < o->fact_count) {
            o->facts[rel->out.items[i]].values_most = o->facts[from].values_most;
        }
    }
}

i64 estimate_distinct(const struct opt *o, const struct expr *expr, i64 rows) {
    const struct expr *col = plain_col(expr);
    i64 most = MAX_OF(rows, 1);
    i64 values = values_most(o, expr);
    most = values > 0 ? MIN_OF(most, values) : most;
    if (expr->type.id == TYPE_BOOLEAN) {
        most = MIN_OF(most, 2);
    }
    if (col && col->col < o->fact_count && o->facts[col->col].has_distinct) {
        return MIN_OF(most, o->facts[col->col].distinct);
    }
    if (expr->kind == EXPR_CONST) {
        return 1;
    }
    return most;
}

i64 estimate_base(const struct rel *rel) {
    i64 rows = rel->kind == REL_SCAN ? rel->scan.table_rows : rel->rows;
    bool passes = rel->kind == REL_FILTER || rel->kind == REL_PROJECT || opt_is_inner(rel);
    for (i32 i = 0; passes && i < rel->input_count; i++) {
        i64 below = estimate_base(rel->inputs[i]); /* once: the macro would ask twice */
        rows = MAX_OF(rows, below);
    }
    return MAX_OF(rows, 1);
}

/* Rows of an inner join by its first `key_count` keys. */
static f64 keyed_rows(const struct opt *o, const struct rel *join, i64 key_count) {
    i64 left_rows = rel_left(join)->rows;
    i64 right_rows = rel_right(join)->rows;
    f64 rows = (f64)left_rows * (f64)right_rows;
    for (i64 i = 0; i < key_count; i++) {
        i64 a = estimate_distinct(o, join->join.left_keys.items[i], left_rows);
        i64 b = estimate_distinct(o, join->join.right_keys.items[i], right_rows);
        rows /= (f64)MAX_OF(a, b);
    }
    if (key_count > 1) { /* a key of several columns has no more values than its table rows */
        i64 values = MIN_OF(estimate_base(rel_left(join)), estimate_base(rel_right(join)));
        f64 least = (f64)left_rows * (f64)right_rows / (f64)values;
        rows = MAX_OF(rows, MIN_OF(least, keyed_rows(o, join, 1)));
    }
    return rows;
}

/* Whether no two rows of rel agree in all of `cols`; `nulls`: NULL counts as a value. */
static bool cols_unique(const struct plan *plan, const struct rel *rel, const u32 *cols, i64 count,
                        bool nulls);

static bool has_col(const u32 *cols, i64 count, u32 col) {
    for (i64 i = 0; i < count; i++) {
        if (cols[i] == col) {
            return true;
        }
    }
    return false;
}

static bool scan_unique(const struct plan *plan, const struct rel *rel, const u32 *cols, i64 count,
                        bool nulls) {
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        const struct scan_col *col = &rel->scan.cols.items[i];
        bool whole = !nulls || col->no_nulls || !plan->cols.items[col->col].nullable;
        if (col->unique && whole && has_col(cols, count, col->col)) {
            return true;
        }
    }
    return false;
}

/* Columns that are copies, as columns of the input. */
static bool copies_unique(const struct plan *plan, const struct rel *rel, const u32 *cols,
                          i64 count, bool nulls) {
    u32 *below = NEW_ARRAY(plan->arena, u32, rel->out.count + 1);
    i64 found = 0;
    for (i64 i = 0; i < rel->out.count; i++) {
        if (!has_col(cols, count, rel->out.items[i])) {
            continue;
        }
        if (rel->kind == REL_SHARED) {
            below[found++] = rel->shared.cols->items[i];
        } else if (rel->project.exprs.items[i]->kind == EXPR_COL) {
            below[found++] = rel->project.exprs.items[i]->col;
        }
    }
    return cols_unique(plan, rel_input(rel), below, found, nulls);
}

static bool agg_unique(const struct rel *rel, const u32 *cols, i64 count) {
    for (i64 i = 0; i < rel->agg.keys.count; i++) {
        if (!has_col(cols, count, rel->out.items[i])) {
            return false;
        }
    }
    return true;
}

static bool join_unique(const struct plan *plan, const struct rel *rel, const u32 *cols, i64 count,
                        bool nulls) {
    bool left_once = rel->join.right_unique || rel->join.kind == JOIN_SEMI ||
                     rel->join.kind == JOIN_ANTI || rel->join.kind == JOIN_MARK ||
                     rel->join.kind == JOIN_SINGLE;
    if (rel->join.kind == JOIN_FULL) {
        return false;
    }
    if (left_once) {
        return cols_unique(plan, rel_left(rel), cols, count, nulls);
    }
    return opt_is_inner(rel) &&
           estimate_unique(plan, rel_left(rel), rel->join.left_keys.items,
                           rel->join.null_safe.items, rel->join.left_keys.count) &&
           cols_unique(plan, rel_right(rel), cols, count, nulls);
}

/* row_number = 1 within partitions by some of these columns. */
static bool first_only(const struct rel *rel, const u32 *cols, i64 count) {
    const struct rel *window = rel_input(rel);
    bool first = false;
    if (rel->kind != REL_FILTER || window->kind != REL_WINDOW || window->window.calls.count != 1 ||
        window->window.calls.items[0].is_agg || rel_is_serial(window) ||
        window->window.calls.items[0].func != WINDOW_ROW_NUMBER) {
        return false;
    }
    for (i64 i = 0; i < rel->filter.conds.count; i++) {
        const struct expr *cond = rel->filter.conds.items[i];
        first =
            first || (cond->kind == EXPR_CALL && (cond->func == FUNC_LE || cond->func == FUNC_EQ) &&
                      cond->args[0]->kind == EXPR_COL &&
                      cond->args[0]->col == window->window.calls.items[0].col &&
                      cond->args[1]->kind == EXPR_CONST && !cond->args[1]->is_null &&
                      cond->args[1]->value.i64 == 1);
    }
    for (i64 i = 0; i < window->window.keys.count; i++) {
        const struct expr *key = window->window.keys.items[i];
        first = first && key->kind == EXPR_COL && has_col(cols, count, key->col);
    }
    return first;
}

static bool cols_unique(const struct plan *plan, const struct rel *rel, const u32 *cols, i64 count,
                        bool nulls) {
    switch (rel->kind) {
    case REL_SCAN:
        return scan_unique(plan, rel, cols, count, nulls);
    case REL_VALUES:
        return rel->rows <= 1 && rel->values.exprs.count <= rel->out.count;
    case REL_LIMIT:
        if (rel->limit.count && rel->limit.count->kind == EXPR_CONST &&
            rel->limit.count->value.i64 <= 1) {
            return true;
        }
        return cols_unique(plan, rel_input(rel), cols, count, nulls);
    case REL_FILTER:
        return first_only(rel, cols, count) ||
               cols_unique(plan, rel_input(rel), cols, count, nulls);
    case REL_SORT:
    case REL_WINDOW:
        return cols_unique(plan, rel_input(rel), cols, count, nulls);
    case REL_PROJECT:
    case REL_SHARED:
        return copies_unique(plan, rel, cols, count, nulls);
    case REL_AGG:
        return agg_unique(rel, cols, count);
    case REL_JOIN:
        return join_unique(plan, rel, cols, count, nulls);
    default:
        return false;
    }
}

bool estimate_unique(const struct plan *plan, const struct rel *rel, struct expr *const *keys,
                     const b8 *null_safe, i64 count) {
    u32 *cols = NEW_ARRAY(plan->arena, u32, count + 1);
    i64 found = 0;
    bool nulls = false;
    for (i64 i = 0; i < count; i++) {
        nulls = nulls || (null_safe && null_safe[i]);
        if (keys[i]->kind == EXPR_COL) {
            cols[found++] = keys[i]->col;
        }
    }
    return cols_unique(plan, rel, cols, found, nulls);
}

static i64 agg_rows(const struct opt *o, const struct rel *rel) {
    i64 in = rel_input(rel)->rows;
    f64 groups = 1.0;
    for (i64 i = 0; i < rel->agg.keys.count; i++) {
        if (rel->agg.implied.count == 0 || !rel->agg.implied.items[i]) {
            groups *= (f64)estimate_distinct(o, rel->agg.keys.items[i], in);
        }
    }
    return to_rows(MIN_OF(groups, (f64)MAX_OF(in, 1)));
}

/* How sums, counts and averages of groups are spread: the numbers are taken as even between the least
 * and the greatest of the column, the rows of a group as drawn by chance. */
static void spread_calls(struct opt *o, const struct rel *rel) {
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        const struct agg_call *call = &rel->agg.calls.items[i];
        const struct expr *col = call->arg ? plain_col(call->arg) : NULL;
        struct col_fact *to = call->col < o->fact_count ? &o->facts[call->col] : NULL;
        f64 rows = (f64)rel_input(rel)->rows / (f64)MAX_OF(rel->rows, 1);
        f64 mean = 1.0;
        f64 square = 1.0; /* the mean of squares */
        bool counts = call->agg == AGG_COUNT || call->agg == AGG_COUNT_STAR;
        bool sums = call->agg == AGG_SUM || call->agg == AGG_AVG;
        if (sums && col && col->col < o->fact_count && o->facts[col->col].has_values) {
            f64 lo = o->facts[col->col].least;
            f64 hi = o->facts[col->col].most;
            mean = (lo + hi) / 2.0;
            square = mean * mean + (hi - lo) * (hi - lo) / 12.0;
        } else if (!counts) {
            continue;
        }
        if (!to || call->distinct) {
            continue;
        }
        if (counts) { /* each row is counted once: 0 + 1 + … + (values - 1) is no more than the rows */
            to->values_most = (i64)sqrt(2.0 * (f64)rel_input(rel)->rows) + 2;
        }
        rows *= call->filter ? estimate_share(o, call->filter) : 1.0;
        to->has_spread = 1;
        to->mean = call->agg == AGG_AVG ? mean : rows * mean;
        to->deviation = call->agg == AGG_AVG ? sqrt((square - mean * mean) / MAX_OF(rows, 1.0))
                                             : sqrt(rows * square);
    }
}

static i64 limit_rows(const struct rel *rel) {
    i64 in = rel_input(rel)->rows;
    if (rel->limit.count && rel->limit.count->kind == EXPR_CONST && !rel->limit.count->is_null) {
        return MIN_OF(in, MAX_OF(rel->limit.count->value.i64, 0));
    }
    return in;
}

/* Share of the left's rows with a match. */
static f64 match_share(struct opt *o, const struct rel *rel) {
    f64 share = 1.0;
    for (i64 i = 0; i < rel->join.left_keys.count; i++) {
        i64 a = estimate_distinct(o, rel->join.left_keys.items[i], rel_left(rel)->rows);
        i64 b = estimate_distinct(o, rel->join.right_keys.items[i], rel_right(rel)->rows);
        share *= clamp_share((f64)b / (f64)a);
    }
    for (i64 i = 0; i < rel->join.conds.count; i++) {
        f64 one = estimate_residual(o, rel->join.conds.items[i]);
        share *= rel->join.left_keys.count > 0 ? clamp_share(one * 2.0) : 1.0;
    }
    return clamp_share(share);
}

static i64 join_rows(struct opt *o, const struct rel *rel) {
    i64 left = rel_left(rel)->rows;
    i64 right = rel_right(rel)->rows;
    i64 inner = 0;
    switch (rel->join.kind) {
    case JOIN_SEMI:
        return to_rows((f64)left * match_share(o, rel));
    case JOIN_ANTI:
        return to_rows((f64)left * MAX_OF(1.0 - match_share(o, rel), 0.05));
    case JOIN_MARK:
    case JOIN_SINGLE:
        return left;
    default:
        inner = filtered(o, rel, to_rows(keyed_rows(o, rel, rel->join.left_keys.count)));
        break;
    }
    if (rel->join.kind == JOIN_LEFT) {
        return MAX_OF(inner, left);
    }
    return rel->join.kind == JOIN_FULL ? MAX_OF(inner, MAX_OF(left, right)) : inner;
}

static i64 union_rows(const struct rel *rel) {
    f64 rows = 0.0;
    for (i32 i = 0; i < rel->input_count; i++) {
        rows += (f64)rel->inputs[i]->rows;
    }
    return to_rows(rows);
}

static i64 fix_rows(const struct rel *rel) {
    f64 rows = 0.0;
    for (i32 i = 0; i < rel->input_count; i += 2) {
        rows += (f64)rel->inputs[i]->rows * 10.0;
    }
    return to_rows(rows);
}

static void estimate_one(struct rel *rel, void *arg) {
    struct opt *o = arg;
    i64 in = rel->input_count == 1 ? rel_input(rel)->rows : 0;
    switch (rel->kind) {
    case REL_SCAN:
        rel->rows = rel->scan.live_rows;
        break;
    case REL_VALUES:
        rel->rows = rel->out.count > 0 ? rel->values.exprs.count / rel->out.count : 1;
        break;
    case REL_FUNC:
    case REL_WORK:
        break;
    case REL_CLIQUES:
        rel->rows = 1;
        break;
    case REL_FIX:
        rel->rows = fix_rows(rel);
        break;
    case REL_FILTER:
        rel->rows = filtered(o, rel, in);
        break;
    case REL_JOIN:
        rel->join.right_unique =
            estimate_unique(o->plan, rel_right(rel), rel->join.right_keys.items,
                            rel->join.null_safe.items, rel->join.right_keys.count);
        rel->rows = join_rows(o, rel);
        break;
    case REL_AGG:
        rel->rows = rel->agg.keys.count > 0 ? agg_rows(o, rel) : 1;
        pass_values(o, rel);
        spread_calls(o, rel);
        break;
    case REL_PROJECT:
    case REL_SHARED:
        rel->rows = in;
        pass_values(o, rel);
        break;
    case REL_UNION:
        rel->rows = union_rows(rel);
        break;
    case REL_LIMIT:
        rel->rows = limit_rows(rel);
        break;
    default:
        rel->rows = in;
        break;
    }
}

void estimate_rel(struct opt *o, struct rel *rel) {
    rel_each_up(o->plan->arena, rel, estimate_one, o);
}

FALLIBLE pass_estimate(struct opt *o) {
    estimate_rel(o, o->plan->root);
    return ERR_OK;
}

/* estimate.c: how many rows every operator makes, and which join keys are unique.
 *
 * Simple rules from column ranges and distinct counts, independent predicates; good enough to tell
 * large from small, which is all that join order and sizes of tables need. Uniqueness is not an
 * estimate: it comes from the store, is guarded, and passes only through operators that cannot
 * repeat a row. */
#include "opt/opt_int.h"

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
    if (!known || !fact || !fact->has_range) {
        return 0.33;
    }
    f64 lo = (f64)fact->range.lo;
    f64 hi = (f64)fact->range.hi;
    f64 below = hi > lo ? (value - lo) / (hi - lo) : 0.5;
    bool less = expr->func == FUNC_LT || expr->func == FUNC_LE;
    return less != swapped ? below : 1.0 - below;
}

static f64 share_of(const struct opt *o, const struct expr *expr) {
    f64 share = 1.0;
    switch (expr->kind) {
    case EXPR_AND:
        for (i32 i = 0; i < expr->arg_count; i++) {
            share *= share_of(o, expr->args[i]);
        }
        return clamp_share(share);
    case EXPR_OR:
        for (i32 i = 0; i < expr->arg_count; i++) {
            share *= 1.0 - share_of(o, expr->args[i]);
        }
        return clamp_share(1.0 - share);
    case EXPR_NOT:
        return clamp_share(1.0 - share_of(o, expr->args[0]));
    case EXPR_IS_NULL:
        return 0.1;
    case EXPR_IN: {
        const struct expr *col = plain_col(expr->args[0]);
        bool known = col && col->col < o->fact_count && o->facts[col->col].has_distinct;
        f64 one = known ? 1.0 / (f64)o->facts[col->col].distinct : 0.05;
        return clamp_share(one * (f64)(expr->arg_count - 1));
    }
    case EXPR_CALL:
        if (expr->func >= FUNC_EQ && expr->func <= FUNC_GE) {
            return clamp_share(compare_share(o, expr));
        }
        return expr->func == FUNC_LIKE || expr->func == FUNC_ILIKE ? 0.1 : 0.33;
    case EXPR_CONST:
        return clamp_share(!expr->is_null && expr->value.b8 ? 1.0 : 0.0);
    default:
        return 0.5;
    }
}

static i64 to_rows(f64 rows) {
    return rows < 1.0 ? 1 : rows > 1e18 ? (i64)1e18 : (i64)rows;
}

static i64 filtered(const struct opt *o, const struct rel *rel, i64 rows) {
    f64 left = (f64)rows;
    for (i64 i = 0; i < rel->conds.count; i++) {
        left *= share_of(o, rel->conds.items[i]);
    }
    return rel->conds.count > 0 ? to_rows(left) : rows;
}

i64 estimate_distinct(const struct opt *o, const struct expr *expr, i64 rows) {
    const struct expr *col = plain_col(expr);
    i64 most = MAX_OF(rows, 1);
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

i64 estimate_join(const struct opt *o, i64 left_rows, i64 right_rows, struct expr *const *left_keys,
                  struct expr *const *right_keys, i64 key_count) {
    f64 rows = (f64)left_rows * (f64)right_rows;
    for (i64 i = 0; i < key_count; i++) {
        i64 a = estimate_distinct(o, left_keys[i], left_rows);
        i64 b = estimate_distinct(o, right_keys[i], right_rows);
        rows /= (f64)MAX_OF(a, b);
    }
    return to_rows(rows);
}

/* Whether no two rows of rel share a value of column `col` (NULLs aside). */
static bool col_unique(const struct rel *rel, u32 col) {
    switch (rel->kind) {
    case REL_SCAN:
        for (i64 i = 0; i < rel->scan_cols.count; i++) {
            if (rel->scan_cols.items[i].col == col) {
                return rel->scan_cols.items[i].unique;
            }
        }
        return false;
    case REL_FILTER:
    case REL_SORT:
    case REL_LIMIT:
        return col_unique(rel->inputs[0], col);
    case REL_PROJECT:
        for (i64 i = 0; i < rel->exprs.count; i++) {
            if (rel->out.items[i] == col) {
                const struct expr *expr = rel->exprs.items[i];
                return expr->kind == EXPR_COL && col_unique(rel->inputs[0], expr->col);
            }
        }
        return false;
    case REL_AGG:
        return rel->exprs.count == 1 && rel->out.items[0] == col;
    case REL_JOIN: /* a unique right side repeats no left row */
        return rel->right_unique && col_unique(rel->inputs[0], col);
    default:
        return false;
    }
}

static bool keys_unique(const struct rel *right, struct expr *const *keys, i64 count) {
    for (i64 i = 0; i < count; i++) {
        if (keys[i]->kind == EXPR_COL && col_unique(right, keys[i]->col)) {
            return true;
        }
    }
    return false;
}

static i64 agg_rows(const struct opt *o, const struct rel *rel) {
    i64 in = rel->inputs[0]->rows;
    f64 groups = 1.0;
    for (i64 i = 0; i < rel->exprs.count; i++) {
        groups *= (f64)estimate_distinct(o, rel->exprs.items[i], in);
    }
    return to_rows(MIN_OF(groups, (f64)MAX_OF(in, 1)));
}

static i64 limit_rows(const struct rel *rel) {
    i64 in = rel->inputs[0]->rows;
    if (rel->limit && rel->limit->kind == EXPR_CONST && !rel->limit->is_null) {
        return MIN_OF(in, MAX_OF(rel->limit->value.i64, 0));
    }
    return in;
}

void estimate_rel(struct opt *o, struct rel *rel) {
    for (i32 i = 0; i < rel->input_count; i++) {
        estimate_rel(o, rel->inputs[i]);
    }
    i64 in = rel->input_count > 0 ? rel->inputs[0]->rows : 0;
    switch (rel->kind) {
    case REL_SCAN:
        rel->rows = rel->table_rows;
        break;
    case REL_VALUES:
        rel->rows = rel->out.count > 0 ? rel->exprs.count / rel->out.count : 1;
        break;
    case REL_FILTER:
        rel->rows = filtered(o, rel, in);
        break;
    case REL_JOIN:
        rel->right_unique =
            keys_unique(rel->inputs[1], rel->right_keys.items, rel->right_keys.count);
        rel->rows = estimate_join(o, in, rel->inputs[1]->rows, rel->left_keys.items,
                                  rel->right_keys.items, rel->left_keys.count);
        rel->rows = filtered(o, rel, rel->rows);
        break;
    case REL_AGG:
        rel->rows = rel->exprs.count > 0 ? agg_rows(o, rel) : 1;
        break;
    case REL_LIMIT:
        rel->rows = limit_rows(rel);
        break;
    default:
        rel->rows = in;
        break;
    }
}

FALLIBLE pass_estimate(struct opt *o) {
    estimate_rel(o, o->plan->root);
    return ERR_OK;
}

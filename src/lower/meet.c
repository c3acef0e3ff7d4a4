/* meet.c: joins, one on the other, whose right sides have a column in common (see opt/meet.c).
 *
 * Each right side ends in rows of its key, the common column and what else is read of it, sorted by
 * the first two, with an index on the key: the runs of a trie of two levels. The left pipeline looks
 * up a run in each, and MEET goes through the rows that all of them agree in. Columns of all right
 * sides but the first are equal to others, and bound to those. Texts meet by their codes.
 *
 * The side whose key changes most often from row to row comes first, the one whose key stays longest
 * last: what the last ones have in common is found once for many rows (decision 0089). Only a side of
 * which more is read than keys and the common column has to be the first.
 *
 * Right sides that are the same scan with the same key and column are built once. */
#include "lower/lower_int.h"

#include "codes/control.h"

enum { LISTS_MAX = MEET_LISTS_MOST };

struct side {
    struct rel rel; /* the join without the common column */
    struct builder *right;
    struct join_keys keys;
    u32 common;   /* plan column */
    b8 coded;     /* it is text: codes meet, and the text itself is carried along */
    u32 *payload; /* plan columns from column 2 of `rows` on */
    u32 payload_count;
    u32 rows, index;
    i64 most; /* rows, proven */
};

struct meet {
    struct lower *l;
    const struct rel *rels[LISTS_MAX]; /* the lowest first */
    struct side sides[LISTS_MAX];
    u32 count;
    struct builder *left;
    bool sorted; /* its rows are those of a side */
    bool moves;  /* the lowest join's side need not be the first */
};

/* Whether the lowest join's right side need not be the first: nothing is read of it but what is equal to
 * columns of others. */
static bool may_move(const struct meet *m) {
    const struct side *side = &m->sides[0];
    const struct rel_JOIN *join = &side->rel.join;
    bool equal = !side->coded;
    for (i64 i = 0; i < join->left_keys.count; i++) {
        const struct expr *a = join->left_keys.items[i], *b = join->right_keys.items[i];
        equal = equal && a->kind == EXPR_COL && b->kind == EXPR_COL && type_eq(a->type, b->type) &&
                !type_is_float(a->type) && a->type.id != TYPE_INTERVAL;
    }
    for (u32 i = 0; i < side->payload_count; i++) {
        bool is_key = false;
        for (i64 k = 0; equal && k < join->right_keys.count; k++) {
            is_key = is_key || join->right_keys.items[k]->col == side->payload[i];
        }
        equal = equal && is_key;
    }
    return equal;
}

static bool visit_mark(const struct expr *expr, void *arg) {
    if (expr->kind == EXPR_COL) {
        ((u8 *)arg)[expr->col] = 1;
    }
    return true;
}

/* Columns of the first right side that are read behind MEET, but for the common one. */
static void find_payload(struct meet *m) {
    struct lower *l = m->l;
    struct side *side = &m->sides[0];
    const struct rel *input = rel_right(m->rels[0]);
    const struct rel *top = m->rels[m->count - 1];
    u8 *wanted = NEW_ARRAY(l->arena, u8, l->plan->cols.count + 1);
    for (i64 i = 0; i < top->out.count; i++) {
        wanted[top->out.items[i]] = 1;
    }
    for (u32 k = 0; k < m->count; k++) {
        for (i64 i = 0; i < m->rels[k]->join.conds.count; i++) {
            expr_walk(m->rels[k]->join.conds.items[i], visit_mark, wanted);
        }
    }
    side->payload = NEW_ARRAY(l->arena, u32, input->out.count + 1);
    for (i64 i = 0; i < input->out.count; i++) {
        u32 col = input->out.items[i];
        if (col == side->common ? side->coded : wanted[col]) {
            side->payload[side->payload_count++] = col;
        }
    }
    m->moves = may_move(m);
    side->payload_count = m->moves ? 0 : side->payload_count;
}

static void open_sides(struct meet *m, const struct rel *rel) {
    struct lower *l = m->l;
    for (const struct rel *at = rel;; at = rel_left(at)) {
        m->count++;
        if (!at->join.meets) {
            break;
        }
    }
    const struct rel *at = rel;
    for (u32 i = m->count; i-- > 0; at = rel_left(at)) {
        m->rels[i] = at;
    }
    for (u32 i = 0; i < m->count; i++) {
        struct side *side = &m->sides[i];
        const struct rel_JOIN *first = &m->rels[1]->join, *own = &m->rels[i]->join;
        side->rel = *m->rels[i];
        side->rel.join.left_keys.count -= i > 0;
        side->rel.join.right_keys.count -= i > 0;
        side->common = i ? own->right_keys.items[own->right_keys.count - 1]->col
                         : first->left_keys.items[first->left_keys.count - 1]->col;
        side->coded = type_kind(l->plan->cols.items[side->common].type) == KIND_STR;
        side->right = lower_rel(l, rel_right(m->rels[i]));
        side->most = side->right->max_rows;
    }
    find_payload(m);
}

static u32 table_col(const struct rel *scan, const struct expr *col) {
    for (i64 i = 0; col->kind == EXPR_COL && i < scan->scan.cols.count; i++) {
        if (scan->scan.cols.items[i].col == col->col) {
            return scan->scan.cols.items[i].table_col;
        }
    }
    return NO_COL;
}

static u32 common_col(const struct side *side) {
    struct expr col = {.kind = EXPR_COL, .col = side->common};
    return table_col(rel_right(&side->rel), &col);
}

/* Whether the rows and the index of `other` serve this side, too. */
static bool same_build(const struct side *side, const struct side *other) {
    const struct rel *a = rel_right(&side->rel), *b = rel_right(&other->rel);
    if (a->kind != REL_SCAN || b->kind != REL_SCAN || a->scan.table_id != b->scan.table_id ||
        !side->keys.raw || !other->keys.raw || common_col(side) == NO_COL) {
        return false;
    }
    u32 key = table_col(a, side->rel.join.right_keys.items[0]);
    return key != NO_COL && key == table_col(b, other->rel.join.right_keys.items[0]) &&
           common_col(side) == common_col(other);
}

static struct out_col common_value(struct side *side) {
    struct builder *b = side->right;
    struct value v = lower_col(b, side->common);
    if (v.null != NO_REG && !b->l->status) {
        build_plain(b, OP_FILTER, build_not(b, v.null), 0);
    }
    return (struct out_col){.value = {build_kind(b, v.reg, KIND_I64), NO_REG},
                            .type = type_of(TYPE_BIGINT)};
}

static void build_side(struct lower *l, struct side *side) {
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, side->payload_count + 2);
    cols[1] = common_value(side); /* drops rows, before the key is packed */
    cols[0].value = (struct value){key_join_pack(side->right, &side->keys, false), NO_REG};
    cols[0].type = type_of(TYPE_BIGINT);
    for (u32 i = 0; i < side->payload_count && !l->status; i++) {
        cols[i + 2] = lower_carry(side->right, side->payload[i]);
    }
    build_label(side->right, "Build");
    side->rows = lower_rows(side->right, "trie", cols, side->payload_count + 2, false, -1);
    struct step *sort = lower_step(l, STEP_SORT, "Build");
    sort->src = side->rows;
    sort->key_count = 2;
    sort->keys = NEW_ARRAY(l->arena, struct sort_key, 2);
    sort->keys[1].col = 1;
    side->index = lower_var(l, VAR_INDEX, "runs");
    l->vars.items[side->index].rows_var = side->rows;
    struct step *step = lower_step(l, STEP_BUILD, "Build");
    step->src = side->rows;
    step->dst = side->index;
    step->key_range = side->keys.range;
    step->fields = key_join_fields(l, &side->keys, &step->field_count);
}

static void make_sides(struct meet *m) {
    for (u32 i = 0; i < m->count && !m->l->status; i++) {
        struct side *side = &m->sides[i];
        key_join_prepare(&side->keys, m->left, side->right, &side->rel);
        bool made = false;
        for (u32 k = 0; k < i && !made && !m->l->status; k++) {
            made = same_build(side, &m->sides[k]);
            side->rows = made ? m->sides[k].rows : 0;
            side->index = made ? m->sides[k].index : 0;
        }
        if (!made && !m->l->status) {
            build_side(m->l, side);
        }
    }
}

/* The place of a table's column in the rows of a side; NO_COL: it is not the key or the common one. */
static u32 sorted_col(const struct side *side, u32 col) {
    u32 key = table_col(rel_right(&side->rel), side->rel.join.right_keys.items[0]);
    return col == NO_COL ? NO_COL : col == key ? 0 : col == common_col(side) ? 1 : NO_COL;
}

/* The left side is the table that one of the others has sorted, and nothing else is read of it: its
 * rows come in that order, so that neighbours look up the same runs. NO_VAR: it is not. */
static u32 sorted_left(const struct meet *m) {
    const struct rel *left = rel_left(m->rels[0]);
    bool raw = left->kind == REL_SCAN && !m->left->row_number;
    for (u32 i = 0; i < m->count; i++) {
        raw = raw && m->sides[i].keys.raw;
    }
    for (u32 i = m->count; raw && i-- > 0;) {
        const struct side *side = &m->sides[i];
        const struct rel *right = rel_right(&side->rel);
        bool same = right->kind == REL_SCAN && right->scan.table_id == left->scan.table_id;
        for (i64 c = 0; same && c < left->scan.cols.count; c++) {
            const struct scan_col *col = &left->scan.cols.items[c];
            same = sorted_col(side, col->table_col) != NO_COL &&
                   type_kind(m->l->plan->cols.items[col->col].type) != KIND_STR;
        }
        if (same) {
            return i;
        }
    }
    return NO_VAR;
}

static void open_sorted(struct meet *m, u32 number) {
    const struct side *side = &m->sides[number];
    const struct rel *left = rel_left(m->rels[0]);
    m->left = lower_over(m->l, side->rows, left->rows);
    m->sorted = true;
    for (i64 c = 0; c < left->scan.cols.count; c++) {
        bind_source(m->left, left->scan.cols.items[c].col,
                    sorted_col(side, left->scan.cols.items[c].table_col));
    }
    build_label(m->left, "Scan");
    build_row_mark(m->left, left);
}

/* --- the order in which lists meet --- */

/* The later a column is known, the more often it changes from row to row. */
static u32 column_lateness(const struct meet *m, u32 col) {
    const struct binding *bind = bind_at(m->left, col);
    u32 place = m->sorted && bind->kind == BIND_SOURCE ? m->left->cols.items[bind->col] : 0;
    return bind->kind == BIND_VAR ? 2u + bind->row_reg : place;
}

static u32 lateness(const struct meet *m, const struct side *side) {
    u32 latest = 0;
    for (i64 i = 0; i < side->rel.join.left_keys.count; i++) {
        const struct expr *key = side->rel.join.left_keys.items[i];
        latest = key->kind == EXPR_COL ? MAX_OF(latest, column_lateness(m, key->col)) : latest;
    }
    return latest;
}

static void order_sides(struct meet *m) {
    for (u32 i = m->moves ? 1 : 2; i < m->count; i++) {
        for (u32 k = i; k > !m->moves; k--) {
            struct side *a = &m->sides[k - 1], *b = &m->sides[k];
            if (lateness(m, a) >= lateness(m, b)) {
                break;
            }
            struct side side = *a;
            *a = *b;
            *b = side;
        }
    }
}

static u16 key_of(const struct meet *m, struct side *side) {
    struct builder *b = m->left;
    return m->sorted ? build_kind(b, lower_expr(b, side->rel.join.left_keys.items[0]).reg, KIND_I64)
                     : key_join_pack(b, &side->keys, true);
}

/* RUN of every side, in registers that follow each other; returns the first. */
static u16 open_runs(struct meet *m) {
    struct builder *b = m->left;
    u16 keys[LISTS_MAX], first = NO_REG;
    for (u32 i = 0; i < m->count && !m->l->status; i++) {
        keys[i] = key_of(m, &m->sides[i]);
        b->max_rows = rows_mul(b->max_rows, m->sides[i].most);
    }
    for (u32 i = 0; i < m->count && !m->l->status; i++) {
        struct op op = {
            .code = OP_RUN, .a = keys[i], .b = NO_REG, .c = NO_REG, .imm = m->sides[i].index};
        u16 run = build_ctl_new(b, op, KIND_I64, range_exact(I64_MIN, I64_MAX), 0);
        first = i ? first : run;
    }
    return first;
}

static void bind_row(struct meet *m, u32 col, u32 at, u16 row) {
    struct lower *l = m->l;
    u32 rows = m->sides[0].rows;
    *bind_at(m->left, col) = (struct binding){.kind = BIND_VAR,
                                              .reg_kind = l->vars.items[rows].kinds[at],
                                              .nullable = l->var_infos.items[rows].nullable[at],
                                              .row_reg = row,
                                              .var = rows,
                                              .col = at,
                                              .dict = l->vars.items[rows].dicts[at],
                                              .lazy = l->var_infos.items[rows].lazy[at],
                                              .range = l->var_infos.items[rows].ranges[at]};
}

/* Columns of right sides are equal to columns of the left, or to the common one, which the first side has; of a
 * first side that had to be it others are read, too. */
static void bind_equals(struct meet *m) {
    for (u32 i = !m->moves; i < m->count; i++) {
        const struct rel_JOIN *join = &m->sides[i].rel.join;
        for (i64 k = 0; k < join->left_keys.count; k++) {
            const struct expr *from = join->left_keys.items[k];
            u32 to = join->right_keys.items[k]->col;
            *bind_at(m->left, to) = from->kind == EXPR_COL
                                        ? *bind_at(m->left, from->col)
                                        : (struct binding){.kind = BIND_EXPR, .expr = from};
        }
        if (i) {
            *bind_at(m->left, m->sides[i].common) = *bind_at(m->left, m->sides[0].common);
        }
    }
}

struct builder *lower_meet(struct lower *l, const struct rel *rel) {
    struct meet m = {.l = l};
    b8 before = l->unordered;
    l->unordered = 1;
    open_sides(&m, rel);
    l->unordered = before;
    m.left = lower_rel(l, rel_left(m.rels[0]));
    make_sides(&m);
    u32 sorted = l->status ? NO_VAR : sorted_left(&m);
    if (sorted != NO_VAR) {
        open_sorted(&m, sorted);
    }
    struct builder *b = m.left;
    if (!l->status) {
        order_sides(&m);
    }
    struct op op = {.code = OP_MEET, .a = open_runs(&m), .b = (u16)m.count, .c = NO_REG};
    u16 row = build_ctl_new(b, op, KIND_I64, build_rows_range(l, m.sides[0].rows, 0), 0);
    if (l->status) {
        return b;
    }
    if (!m.sides[0].coded) {
        bind_row(&m, m.sides[0].common, 1, row);
    }
    for (u32 i = 0; i < m.sides[0].payload_count; i++) {
        bind_row(&m, m.sides[0].payload[i], i + 2, row);
    }
    bind_equals(&m);
    for (u32 i = 0; i < m.count; i++) {
        lower_filter(b, m.rels[i]->join.conds.items, m.rels[i]->join.conds.count);
    }
    return b;
}

/* meet.c: joins that close a cycle look up what they have in common at once.
 *
 * In  e1(x, y), e2(y, z), e3(x, z)  the join of e1 and e2 gives every path of two edges, of which
 * e3 keeps few. A join by pairs cannot do better; one that looks up the neighbours z of y and those
 * of x at once, both sorted, gives only those in both, for about the price of the shorter list. That
 * is the innermost step of a leapfrog triejoin, and all of it is a pipeline of such steps.
 *
 * So a join whose keys compare some columns with the left side of the inner join below it, and one
 * column with that join's right side, is marked: it meets it. Lowering makes one opcode of both
 * (lower/meet.c). Any number of further joins may meet the same two. What is read of a right side that meets
 * another must be equal to a column known otherwise: its keys. Where more is read, a join with the
 * keys alone, each once, is put below it, and meets. In a recursion right sides that read
 * its rows keep an index that grows instead.
 *
 * Under `multiway = auto` it is done where the lower join is expected to give more rows than any of
 * the inputs has. See decision 0031. */
#include "opt/opt_int.h"

struct meeting {
    struct opt *o;
    struct rel *join;    /* the upper one */
    struct rel *base;    /* the lowest: its left side is everybody's */
    struct expr *common; /* of base's right side, where others meet it already; else NULL */
    i64 met;             /* the key that compares the common column; -1 = none so far */
    b8 before;           /* the join is a new one, below another */
};

static struct expr *right_partner(const struct rel_JOIN *join, u32 col, i64 keys) {
    for (i64 i = 0; i < keys; i++) {
        if (join->right_keys.items[i]->kind == EXPR_COL && join->right_keys.items[i]->col == col) {
            return join->left_keys.items[i];
        }
    }
    return NULL;
}

/* What a column of one of the joins below is equal to in the left side of the lowest; NULL: nothing
 * is. *out_common: it is, or is equal to, the common column. */
static struct expr *left_equal(const struct meeting *m, struct expr *col, bool *out_common) {
    const struct rel *left = rel_left(m->base);
    *out_common = false;
    if (rel_has_out(left, col->col)) {
        return col;
    }
    for (struct rel *at = rel_left(m->join);; at = rel_left(at)) {
        const struct rel_JOIN *join = &at->join;
        i64 last = join->right_keys.count - 1;
        *out_common = *out_common || (join->meets && join->right_keys.items[last]->col == col->col);
        struct expr *equal = right_partner(join, col->col, last + !join->meets);
        if (equal) {
            return equal;
        }
        if (!join->meets) {
            break;
        }
    }
    *out_common = *out_common || (m->common ? m->common->col == col->col
                                            : rel_has_out(rel_right(m->base), col->col));
    return NULL;
}

static bool is_whole(struct type type) {
    enum kind kind = type_kind(type);
    return (kind == KIND_I32 || kind == KIND_I64) && opt_equal_is_same(type);
}

/* A column of a table of whose dictionary all values are; NULL: it is no such one. */
static const struct scan_col *coded_col(const struct rel *rel, u32 col, const struct rel **out_scan) {
    while (rel->kind == REL_FILTER) {
        rel = rel_input(rel);
    }
    *out_scan = rel;
    for (i64 i = 0; rel->kind == REL_SCAN && i < rel->scan.cols.count; i++) {
        const struct scan_col *at = &rel->scan.cols.items[i];
        if (at->col == col && at->all_dict) {
            return at;
        }
    }
    return NULL;
}

/* Whether texts that are compared are codes of one dictionary. */
static bool are_codes(const struct meeting *m, const struct expr *a, const struct expr *b) {
    const struct rel *first = NULL, *second = NULL;
    const struct scan_col *x =
        coded_col(rel_right(m->base), m->common ? m->common->col : a->col, &first);
    const struct scan_col *y = coded_col(rel_right(m->join), b->col, &second);
    return x && y && first->scan.table_id == second->scan.table_id && x->table_col == y->table_col &&
           type_kind(a->type) == KIND_STR;
}

/* Whether all keys are plain columns of equal types, of which one is the common one; the others are
 * then compared with the lowest join's left side. */
static bool find_keys(struct meeting *m, struct expr **lefts) {
    struct rel_JOIN *join = &m->join->join;
    for (i64 i = 0; i < join->left_keys.count; i++) {
        struct expr *a = join->left_keys.items[i], *b = join->right_keys.items[i];
        bool common = false;
        if (a->kind != EXPR_COL || b->kind != EXPR_COL || !type_eq(a->type, b->type) ||
            !opt_equal_is_same(a->type)) {
            return false;
        }
        lefts[i] = left_equal(m, a, &common);
        if (lefts[i]) {
            continue;
        }
        if (!common || m->met >= 0 || !(is_whole(a->type) || (!m->before && are_codes(m, a, b)))) {
            return false;
        }
        m->met = i;
    }
    return m->met >= 0 && join->left_keys.count > 1;
}

struct reads {
    const struct rel_JOIN *join;
    const struct rel *right;
    bool others;
};

static void note_read(u32 col, void *arg) {
    struct reads *r = arg;
    r->others = r->others || (rel_has_out(r->right, col) &&
                              !right_partner(r->join, col, r->join->right_keys.count));
}

/* Whether anything but its keys is read of the upper join's right side. */
static bool reads_more(const struct rel *join) {
    struct reads r = {&join->join, rel_right(join), false};
    for (i64 i = 0; i < join->out.count; i++) {
        note_read(join->out.items[i], &r);
    }
    for (i64 i = 0; i < join->join.conds.count; i++) {
        expr_each_col(join->join.conds.items[i], note_read, &r);
    }
    return r.others;
}

static bool is_plain(const struct rel *rel) {
    bool safe = false;
    for (i64 i = 0; rel->kind == REL_JOIN && i < rel->join.null_safe.count; i++) {
        safe = safe || rel->join.null_safe.items[i];
    }
    return opt_is_inner(rel) && !safe && !rel->join.lazy && rel->join.left_keys.count > 0;
}

static bool is_worth(const struct meeting *m) {
    const struct settings *s = m->o->settings;
    i64 most = MAX_OF(rel_left(m->base)->rows, rel_right(m->base)->rows);
    most = MAX_OF(most, rel_right(m->join)->rows);
    return s->multiway == 1 || (s->multiway == 0 && !m->o->plan->for_gpu && m->base->rows > most);
}

static void need_out(struct plan *plan, struct rel *rel, u32 col) {
    if (!rel_has_out(rel, col)) {
        VEC_PUSH(plan->arena, &rel->out, col);
    }
}

static void need_below(u32 col, void *arg) {
    struct meeting *m = arg;
    for (struct rel *at = rel_left(m->join);; at = rel_left(at)) {
        need_out(m->o->plan, at, col);
        if (!at->join.meets) {
            return;
        }
    }
}

/* The common key comes last; the others compare the lowest join's left side. */
static void mark_meeting(struct meeting *m, struct expr **lefts) {
    struct rel_JOIN *join = &m->join->join;
    i64 last = join->left_keys.count - 1;
    struct expr *a = m->common ? m->common : join->left_keys.items[m->met];
    struct expr *b = join->right_keys.items[m->met];
    for (i64 i = 0; i <= last; i++) {
        join->left_keys.items[i] = lefts[i] ? lefts[i] : a;
        expr_each_col(join->left_keys.items[i], need_below, m);
    }
    join->left_keys.items[m->met] = join->left_keys.items[last];
    join->right_keys.items[m->met] = join->right_keys.items[last];
    join->left_keys.items[last] = a;
    join->right_keys.items[last] = b;
    join->null_safe.count = 0;
    join->right_unique = 0; /* by its other keys alone */
    join->meets = 1;
}

/* --- right sides of which more is read --- */

/* Joins above one that was put below them, for what else is read of their right sides. */
typedef VEC(struct rel *) rel_late;

static bool is_late(const rel_late *late, const struct rel *rel) {
    for (i64 i = 0; i < late->count; i++) {
        if (late->items[i] == rel) {
            return true;
        }
    }
    return false;
}

/* The same join on `left`. */
static struct rel *join_on(struct plan *plan, const struct rel *rel, struct rel *left) {
    struct rel *join = rel_new(plan, REL_JOIN, left, rel_right(rel));
    join->join.kind = JOIN_INNER;
    join->rows = rel->rows;
    join->out.count = 0;
    for (i64 i = 0; i < left->out.count; i++) {
        VEC_PUSH(plan->arena, &join->out, left->out.items[i]);
    }
    for (i64 i = 0; i < rel->join.left_keys.count; i++) {
        VEC_PUSH(plan->arena, &join->join.left_keys, rel->join.left_keys.items[i]);
        VEC_PUSH(plan->arena, &join->join.right_keys, rel->join.right_keys.items[i]);
    }
    return join;
}

/* Its right side becomes the keys of the rows there, each once: nothing is repeated by it. */
static void keys_only(struct opt *o, struct rel *join) {
    struct plan *plan = o->plan;
    struct rel *right = rel_right(join);
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct rel *keys = rel_new(plan, REL_AGG, rel_copy(plan, right, map), NULL);
    for (i64 i = 0; i < join->join.right_keys.count; i++) {
        struct expr **key = &join->join.right_keys.items[i];
        u32 col = plan_col_new(plan, plan->cols.items[(*key)->col].name, (*key)->type, true);
        VEC_PUSH(plan->arena, &keys->agg.keys, map[(*key)->col]);
        VEC_PUSH(plan->arena, &keys->out, col);
        *key = expr_col(plan, col, -1);
    }
    keys->rows = right->rows;
    rel_set_right(join, keys);
}

static bool is_simple(const struct rel *rel) {
    return rel->kind == REL_SCAN || (rel->kind == REL_FILTER && is_simple(rel_input(rel)));
}

static void consider(struct opt *o, struct rel *rel, rel_late *late) {
    struct rel *left = is_plain(rel) ? rel_left(rel) : NULL;
    while (left && is_late(late, left)) {
        left = rel_left(left);
    }
    if (!left || !is_plain(left) || left->join.right_unique) {
        return;
    }
    bool before = left != rel_left(rel) || reads_more(rel);
    if (before && !is_simple(rel_right(rel))) {
        return;
    }
    struct rel *join = before ? join_on(o->plan, rel, left) : rel;
    struct meeting m = {.o = o, .join = join, .base = left, .met = -1, .before = before};
    i64 lists = 2;
    for (; m.base->join.meets; m.base = rel_left(m.base), lists++) {
        m.common = m.base->join.left_keys.items[m.base->join.left_keys.count - 1];
    }
    struct expr **lefts = NEW_ARRAY(o->plan->arena, struct expr *, rel->join.left_keys.count + 1);
    if (lists > MEET_LISTS_MOST || !find_keys(&m, lefts) || !is_worth(&m) ||
        opt_reads_rounds(o, rel_right(m.base)) || opt_reads_rounds(o, rel_right(rel))) {
        return;
    }
    if (before) {
        struct rel *above = rel;
        while (rel_left(above) != left) {
            above = rel_left(above);
        }
        keys_only(o, join);
        rel_set_left(above, join);
        VEC_PUSH(o->plan->arena, late, rel);
    }
    mark_meeting(&m, lefts);
}

FALLIBLE pass_meet(struct opt *o) {
    if (o->settings->multiway == 2) {
        return ERR_OK;
    }
    rel_all joins = opt_all_of(o, REL_JOIN);
    rel_late late = {0};
    for (i64 i = joins.count; i-- > 0;) { /* those below first */
        consider(o, joins.items[i], &late);
    }
    return ERR_OK;
}

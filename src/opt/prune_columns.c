/* prune_columns.c: every operator hands on only the columns somebody above it uses.
 *
 * Column numbers are unique in a plan, so one table of marks serves the whole tree: walking down,
 * an operator first narrows its own output by the marks its consumers left, then marks what its
 * expressions need, then visits its inputs. The input of SHARED is visited after the last of its
 * users. Windows and marks that nobody reads disappear, and so does a join that neither drops nor
 * repeats rows of the left and whose right side is not used. */
#include "opt/opt_int.h"

static void mark(u32 col, void *arg) {
    ((u8 *)arg)[col] = 1;
}

static void narrow_out(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->out.count; i++) {
        if (used[rel->out.items[i]]) {
            rel->out.items[kept++] = rel->out.items[i];
        }
    }
    rel->out.count = kept;
}

/* A column may be unused because it has no NULLs (nobody asks then whether it is NULL): that fact
 * stays guarded. */
static void narrow_scan(struct plan *plan, struct rel *rel, const u8 *used) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        const struct scan_col *col = &rel->scan.cols.items[i];
        if (used[col->col]) {
            rel->scan.cols.items[kept++] = *col;
        } else if (col->no_nulls && col->table_col != ROWID_COL) {
            VEC_PUSH(plan->arena, &plan->relied,
                     ((struct relied){rel->scan.table_id, col->table_col, 1, 0}));
        }
    }
    rel->scan.cols.count = kept;
}

static void narrow_project(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        if (used[rel->out.items[i]]) {
            rel->out.items[kept] = rel->out.items[i];
            rel->project.exprs.items[kept++] = rel->project.exprs.items[i];
        }
    }
    rel->project.exprs.count = kept;
    rel->out.count = kept;
}

/* One column stays, because a row without columns could not be counted. */
static void narrow_values(struct rel *rel, const u8 *used) {
    i64 width = rel->out.count;
    i64 rows = width > 0 ? rel->values.exprs.count / width : 0;
    i64 kept = 0;
    i64 wanted = 0;
    for (i64 c = 0; c < width; c++) {
        wanted += used[rel->out.items[c]];
    }
    for (i64 r = 0; r < rows; r++) {
        for (i64 c = 0; c < width; c++) {
            if (used[rel->out.items[c]] || (wanted == 0 && c == 0)) {
                rel->values.exprs.items[kept++] = rel->values.exprs.items[r * width + c];
            }
        }
    }
    rel->values.exprs.count = kept;
    if (wanted == 0) {
        rel->out.count = MIN_OF(width, 1);
    } else {
        narrow_out(rel, used);
    }
}

static void mark_slot(struct expr **slot, void *arg) {
    expr_each_col(*slot, mark, arg);
}

/* Keys that others decide go when nobody reads them. */
static void narrow_keys(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    i64 count = rel->agg.implied.count;
    for (i64 i = 0; i < count; i++) {
        if (rel->agg.implied.items[i] && !used[rel->out.items[i]]) {
            continue;
        }
        rel->agg.keys.items[kept] = rel->agg.keys.items[i];
        rel->agg.implied.items[kept] = rel->agg.implied.items[i];
        rel->out.items[kept++] = rel->out.items[i];
    }
    if (count > 0) {
        rel->agg.keys.count = kept;
        rel->agg.implied.count = kept;
    }
}

/* The one row of an aggregate whose calls nobody reads must have a column; it computes nothing. */
static void count_rows(struct plan *plan, struct rel *agg) {
    struct agg_call *call = &agg->agg.calls.items[0];
    *call =
        (struct agg_call){.col = call->col, .agg = AGG_COUNT_STAR, .position = call->position};
    plan->cols.items[call->col].type = type_of(TYPE_BIGINT);
    plan->cols.items[call->col].nullable = false;
    agg->out.items[0] = call->col;
    agg->agg.calls.count = 1;
    agg->out.count = 1;
}

static void narrow_agg(struct plan *plan, struct rel *rel, const u8 *used) {
    narrow_keys(rel, used);
    i64 kept = 0;
    i64 keys = rel->agg.keys.count;
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        if (used[rel->agg.calls.items[i].col]) {
            rel->out.items[keys + kept] = rel->agg.calls.items[i].col;
            rel->agg.calls.items[kept++] = rel->agg.calls.items[i];
        }
    }
    if (keys + kept == 0) {
        count_rows(plan, rel);
        return;
    }
    rel->agg.calls.count = kept;
    rel->out.count = keys + kept;
}

/* UNION and SHARED: one column stays, for the same reason as in VALUES. */
static void narrow_copies(struct rel *rel, u8 *used) {
    i64 kept = 0;
    bool any = false;
    for (i64 i = 0; i < rel->out.count; i++) {
        any = any || used[rel->out.items[i]];
    }
    if (!any && rel->out.count > 0) {
        used[rel->out.items[0]] = 1;
    }
    for (i64 i = 0; i < rel->out.count; i++) {
        if (!used[rel->out.items[i]]) {
            continue;
        }
        for (i32 k = 0; k < rel->input_count; k++) {
            u32 *cols = rel_cols(rel, k)->items;
            used[cols[i]] = 1;
            cols[kept] = cols[i];
        }
        rel->out.items[kept++] = rel->out.items[i];
    }
    rel->out.count = kept;
    for (i32 k = 0; k < rel->input_count; k++) {
        rel_cols(rel, k)->count = kept;
    }
}

static void use_copied(const struct rel *rel, u8 *used) {
    for (i32 k = 0; k < rel->input_count; k++) {
        const col_list *cols = rel_cols(rel, k);
        for (i64 i = 0; cols && i < cols->count; i++) {
            used[cols->items[i]] = 1;
        }
    }
}

static void narrow_window(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    if (rel_is_serial(rel)) {
        return;
    }
    for (i64 i = 0; i < rel->window.calls.count; i++) {
        if (used[rel->window.calls.items[i].col]) {
            rel->window.calls.items[kept++] = rel->window.calls.items[i];
        }
    }
    rel->window.calls.count = kept;
}

struct prune {
    struct opt *o;
    u8 *used;
    VEC(struct rel *) inputs; /* of SHARED, with the users still to come */
    VEC(i64) left;
    VEC(b8) live; /* a user stays */
};

static bool any_used(const struct rel *rel, const u8 *used) {
    for (i64 i = 0; i < rel->out.count; i++) {
        if (used[rel->out.items[i]]) {
            return true;
        }
    }
    return false;
}

/* Whether the operator does nothing that is seen above. */
static bool is_idle(const struct prune *p, const struct rel *rel) {
    if (rel->kind == REL_WINDOW) {
        return rel->window.calls.count == 0;
    }
    if (rel->kind != REL_JOIN) {
        return false;
    }
    if (rel->join.kind == JOIN_MARK) {
        return !p->used[rel->join.mark_col];
    }
    bool once =
        rel->join.kind == JOIN_SINGLE || (rel->join.kind == JOIN_LEFT && rel->join.right_unique);
    return once && !any_used(rel_right(rel), p->used);
}

static void narrow(struct prune *p, struct rel *rel) {
    switch (rel->kind) {
    case REL_SCAN:
        narrow_out(rel, p->used);
        narrow_scan(p->o->plan, rel, p->used);
        return;
    case REL_VALUES:
        narrow_values(rel, p->used);
        return;
    case REL_PROJECT:
        narrow_project(rel, p->used);
        return;
    case REL_AGG:
        narrow_agg(p->o->plan, rel, p->used);
        return;
    case REL_UNION:
    case REL_SHARED:
        narrow_copies(rel, p->used);
        return;
    default:
        if (rel_passes(rel)) {
            narrow_out(rel, p->used);
        } else { /* a round of a recursion needs all columns of the one before */
            use_copied(rel, p->used);
        }
        return;
    }
}

static i64 input_number(const struct prune *p, const struct rel *input) {
    i64 at = 0;
    while (p->inputs.items[at] != input) {
        at++;
    }
    return at;
}

static struct rel *prune(struct prune *p, struct rel *rel);

/* One user of an input is done, staying or not; after the last the input is narrowed. */
static void end_use(struct prune *p, struct rel *input, bool stays);

/* What is below an operator that disappears. */
static void forget(struct prune *p, struct rel *rel) {
    for (i32 i = 0; i < rel->input_count; i++) {
        if (rel_shares(rel)) {
            end_use(p, rel->inputs[i], false);
        } else {
            forget(p, rel->inputs[i]);
        }
    }
}

static void end_use(struct prune *p, struct rel *input, bool stays) {
    i64 at = input_number(p, input);
    p->live.items[at] = p->live.items[at] || stays;
    if (--p->left.items[at] > 0) {
        return;
    }
    if (!p->live.items[at]) {
        forget(p, input);
        return;
    }
    *input = *prune(p, rel_body(p->o->plan, input));
}

static struct rel *prune(struct prune *p, struct rel *rel) {
    if (rel->kind == REL_WINDOW) {
        narrow_window(rel, p->used);
    }
    if (is_idle(p, rel)) {
        if (rel->kind != REL_JOIN) {
            return prune(p, rel_input(rel));
        }
        opt_rely(p->o, rel_right(rel));
        forget(p, rel_right(rel));
        return prune(p, rel_left(rel));
    }
    narrow(p, rel);
    rel_each_expr(rel, mark_slot, p->used);
    for (i32 i = 0; i < rel->input_count; i++) {
        if (rel_shares(rel)) {
            end_use(p, rel->inputs[i], true);
        } else {
            rel->inputs[i] = prune(p, rel->inputs[i]);
        }
    }
    return rel;
}

static void count_user(struct rel *rel, void *arg) {
    struct prune *p = arg;
    if (!rel_shares(rel)) {
        return;
    }
    for (i64 i = 0; i < p->inputs.count; i++) {
        if (p->inputs.items[i] == rel_input(rel)) {
            p->left.items[i]++;
            return;
        }
    }
    VEC_PUSH(p->o->plan->arena, &p->inputs, rel_input(rel));
    VEC_PUSH(p->o->plan->arena, &p->left, (i64)1);
    VEC_PUSH(p->o->plan->arena, &p->live, (b8)0);
}

FALLIBLE pass_prune_columns(struct opt *o) {
    struct rel *old = o->plan->root;
    struct prune p = {.o = o, .used = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1)};
    rel_each(o->plan->arena, old, count_user, &p);
    struct rel like = *old;
    like.out.items = NEW_ARRAY(o->plan->arena, u32, old->out.count + 1);
    for (i64 i = 0; i < old->out.count; i++) {
        p.used[old->out.items[i]] = 1;
        like.out.items[i] = old->out.items[i];
    }
    o->plan->root = rel_with_out(o->plan, prune(&p, old), &like);
    return ERR_OK;
}

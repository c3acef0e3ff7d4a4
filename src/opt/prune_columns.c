/* prune_columns.c: every operator hands on only the columns somebody above it uses.
 *
 * Column numbers are unique in a plan, so one table of marks serves the whole tree: walking down,
 * an operator first narrows its own output by the marks its consumers left, then marks what its
 * expressions need, then visits its inputs. */
#include "opt/opt_int.h"

static void mark(u32 col, void *arg) {
    ((u8 *)arg)[col] = 1;
}

static void mark_exprs(struct expr *const *items, i64 count, u8 *used) {
    for (i64 i = 0; i < count; i++) {
        expr_each_col(items[i], mark, used);
    }
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

static void narrow_scan(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->scan_cols.count; i++) {
        if (used[rel->scan_cols.items[i].col]) {
            rel->scan_cols.items[kept++] = rel->scan_cols.items[i];
        }
    }
    rel->scan_cols.count = kept;
}

static void narrow_project(struct rel *rel, const u8 *used) {
    i64 kept = 0;
    for (i64 i = 0; i < rel->exprs.count; i++) {
        if (used[rel->out.items[i]]) {
            rel->out.items[kept] = rel->out.items[i];
            rel->exprs.items[kept++] = rel->exprs.items[i];
        }
    }
    rel->exprs.count = kept;
    rel->out.count = kept;
}

/* One column stays, because a row without columns could not be counted. */
static void narrow_values(struct rel *rel, const u8 *used) {
    i64 width = rel->out.count;
    i64 rows = width > 0 ? rel->exprs.count / width : 0;
    i64 kept = 0;
    i64 wanted = 0;
    for (i64 c = 0; c < width; c++) {
        wanted += used[rel->out.items[c]];
    }
    for (i64 r = 0; r < rows; r++) {
        for (i64 c = 0; c < width; c++) {
            if (used[rel->out.items[c]] || (wanted == 0 && c == 0)) {
                rel->exprs.items[kept++] = rel->exprs.items[r * width + c];
            }
        }
    }
    rel->exprs.count = kept;
    if (wanted == 0) {
        rel->out.count = MIN_OF(width, 1);
    } else {
        narrow_out(rel, used);
    }
}

static void narrow_agg(struct rel *rel, u8 *used) {
    i64 kept = 0;
    i64 keys = rel->exprs.count;
    for (i64 i = 0; i < rel->calls.count; i++) {
        if (used[rel->calls.items[i].col]) {
            rel->out.items[keys + kept] = rel->calls.items[i].col;
            rel->calls.items[kept++] = rel->calls.items[i];
        }
    }
    rel->calls.count = kept;
    rel->out.count = keys + kept;
    mark_exprs(rel->exprs.items, keys, used);
    for (i64 i = 0; i < kept; i++) {
        if (rel->calls.items[i].arg) {
            expr_each_col(rel->calls.items[i].arg, mark, used);
        }
    }
}

static void prune(struct rel *rel, u8 *used) {
    switch (rel->kind) {
    case REL_SCAN:
        narrow_out(rel, used);
        narrow_scan(rel, used);
        break;
    case REL_VALUES:
        narrow_values(rel, used);
        break;
    case REL_PROJECT:
        narrow_project(rel, used);
        mark_exprs(rel->exprs.items, rel->exprs.count, used);
        break;
    case REL_AGG:
        narrow_agg(rel, used);
        break;
    default:
        narrow_out(rel, used);
        mark_exprs(rel->conds.items, rel->conds.count, used);
        mark_exprs(rel->left_keys.items, rel->left_keys.count, used);
        mark_exprs(rel->right_keys.items, rel->right_keys.count, used);
        for (i64 i = 0; i < rel->order.count; i++) {
            expr_each_col(rel->order.items[i].expr, mark, used);
        }
        break;
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        prune(rel->inputs[i], used);
    }
}

FALLIBLE pass_prune_columns(struct opt *o) {
    u8 *used = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    for (i64 i = 0; i < o->plan->root->out.count; i++) {
        used[o->plan->root->out.items[i]] = 1;
    }
    prune(o->plan->root, used);
    return ERR_OK;
}

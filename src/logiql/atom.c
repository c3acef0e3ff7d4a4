/* atom.c: the rows of a predicate that an atom reads.
 *
 * Columns of one row of a table that are asked for one by one (t:a[k], t:b[k]) come from one scan.
 * Where bindings are counted, a table without a key is made a set of the columns that are named. */
#include "logiql/bind_int.h"

static FALLIBLE check_arity(struct lq_bind *b, const struct lq_pred *pred,
                            const struct lq_atom *atom) {
    i32 position = lq_at(b, atom->position);
    if (pred->arity != atom_arity(atom)) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "predicate \"%.100s\" has %d arguments, not %d", pred->name.ptr, pred->arity,
                atom_arity(atom));
    }
    bool view = pred->origin == ORIGIN_VIEW; /* of SQL or of a file: nobody says what its keys are */
    if (atom->form != LQ_PLAIN && pred->key_count != atom->keys.count && !view) {
        if (pred->key_count < 0) {
            FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                    "\"%.100s\" is not a functional predicate: write %.100s(…)", pred->name.ptr,
                    pred->name.ptr);
        }
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "predicate \"%.100s\" has %d keys, not %d", pred->name.ptr, pred->key_count,
                (int)atom->keys.count);
    }
    return ERR_OK;
}

static bool same_arg(const struct lq_expr *x, const struct lq_expr *y) {
    return x->kind == y->kind && x->kind != LQ_ANY && x->args.count == 0 && y->args.count == 0 &&
           sv_eq(x->text, y->text) && x->truth == y->truth;
}

/* A scan of the table with the same key, made for an atom before. */
static struct rel *same_row(const struct lq_scope *scope, const struct lq_pred *pred,
                            const struct lq_atom *atom) {
    for (i64 i = 0; i < scope->reads.count; i++) {
        const struct lq_read *read = &scope->reads.items[i];
        bool same = read->table_id == pred->entry->object->table->id;
        for (i32 k = 0; k < pred->key_count && same; k++) {
            same = same_arg(read->keys.items[k], atom_arg(atom, k));
        }
        if (same) {
            return read->scan;
        }
    }
    return NULL;
}

static struct rel *scan_of(struct lq_bind *b, const struct lq_pred *pred, i32 position) {
    struct snapshot_table found = snapshot_of(b->snap, pred->entry);
    return scan_new(b->plan, &found, arena_sv(b->arena, sv_from(found.table->name)).ptr, position);
}

/* Whether the atom names the column twice or not at all is all the same: named once is enough. */
static struct rel *named_only(struct lq_bind *b, struct rel *rel, const struct lq_atom *atom,
                              u32 *cols) {
    i64 count = 0;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, rel->out.count + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, rel->out.count + 1);
    i32 *places = NEW_ARRAY(b->arena, i32, rel->out.count + 1);
    for (i32 i = 0; i < atom_arity(atom); i++) {
        if (atom_arg(atom, i)->kind != LQ_ANY) {
            places[count] = i;
            names[count] = b->plan->cols.items[cols[i]].name;
            exprs[count++] = expr_col(b->plan, cols[i], -1);
        }
    }
    rel = lq_distinct(b, lq_project(b, rel, exprs, names, count));
    for (i64 i = 0; i < count; i++) {
        cols[places[i]] = rel->out.items[i];
    }
    return rel;
}

/* No rows, where only the types matter. */
static FALLIBLE empty_rel(struct lq_bind *b, const struct lq_pred *pred, struct rel **out) {
    struct rel *row = one_row(b);
    for (i32 i = 0; i < pred->arity; i++) {
        u32 col = plan_col_new(b->plan, pred->names[i], pred->types[i], true);
        VEC_PUSH(b->arena, &row->out, col);
        VEC_PUSH(b->arena, &row->values.exprs, expr_null(b->t, pred->types[i], -1));
    }
    struct rel *none = *out = rel_new(b->plan, REL_FILTER, row, NULL);
    VEC_PUSH(b->arena, &none->filter.conds, expr_bool(b->t, false, -1));
    none->rows = 1;
    return arena_check(b->arena, b->err);
}

static FALLIBLE view_rel(struct lq_bind *b, const struct lq_pred *pred, struct rel **out) {
    struct bound_relation bound;
    if (b->views) {
        TRY(b->views->bind(b->views, pred->entry->object, &bound));
        *out = bound.rel;
        return ERR_OK;
    }
    return empty_rel(b, pred, out);
}

static void note_fact(struct lq_bind *b, struct lq_scope *scope, const struct lq_pred *pred,
                      const struct lq_atom *atom) {
    i32 count = atom_arity(atom);
    struct lq_fact fact = {.key_count = count, .arg_count = count};
    fact.args = NEW_ARRAY(b->arena, const struct lq_expr *, count + 1);
    bool table = pred->origin == ORIGIN_TABLE;
    if (table && pred->key) { /* the key's columns first */
        i32 at = 0;
        for (u32 k = 0; k < pred->key->col_count; k++) {
            fact.args[at++] = atom_arg(atom, (i32)pred->key->cols[k]);
        }
        fact.key_count = at;
        for (i32 i = 0; i < count && at < count; i++) {
            bool in_key = false;
            for (u32 k = 0; k < pred->key->col_count; k++) {
                in_key = in_key || (i32)pred->key->cols[k] == i;
            }
            if (!in_key) {
                fact.args[at++] = atom_arg(atom, i);
            }
        }
    } else {
        for (i32 i = 0; i < count; i++) {
            fact.args[i] = atom_arg(atom, i);
        }
        fact.key_count = pred->key_count >= 0 ? pred->key_count : count;
        fact.is_bag = table || pred->origin == ORIGIN_VIEW;
    }
    VEC_PUSH(b->arena, &scope->facts, fact);
}

static FALLIBLE source_rel(struct lq_bind *b, struct lq_scope *scope, struct lq_pred *pred,
                           const struct lq_atom *atom, struct rel **out) {
    i32 position = lq_at(b, atom->position);
    struct rel *part = NULL;
    if (b->part && !scope->outer) {
        bool same = pred->origin == ORIGIN_COLUMN && same_row(scope, pred, atom);
        TRY(part_rel(b, scope, pred, same, &part));
    }
    if (part && pred->origin != ORIGIN_COLUMN) {
        *out = part;
        return ERR_OK;
    }
    switch (pred->origin) {
    case ORIGIN_RULES:
    case ORIGIN_KEPT:
        *out = pred_read(b, pred);
        return ERR_OK;
    case ORIGIN_VIEW:
        return view_rel(b, pred, out);
    case ORIGIN_LATER:
        return empty_rel(b, pred, out);
    case ORIGIN_COLUMN: {
        struct rel *scan = same_row(scope, pred, atom);
        *out = scan ? scan : part ? part : scan_of(b, pred, position);
        if (!scan) {
            struct lq_read read = {.table_id = pred->entry->object->table->id, .scan = *out};
            for (i32 i = 0; i < pred->key_count; i++) {
                VEC_PUSH(b->arena, &read.keys, (struct lq_expr *)(size_t)atom_arg(atom, i));
            }
            VEC_PUSH(b->arena, &scope->reads, read);
        }
        return ERR_OK;
    }
    default:
        *out = scan_of(b, pred, position);
        return ERR_OK;
    }
}

FALLIBLE atom_rel(struct lq_bind *b, struct lq_scope *scope, const struct lq_atom *atom,
                  struct rel **out, u32 **out_cols) {
    struct lq_pred *pred;
    TRY(pred_get(b, atom->name, lq_at(b, atom->position), &pred));
    TRY(check_arity(b, pred, atom));
    if (pred->failed || !pred->types) { /* its own mistakes are known */
        b->follows = 1;
        FAIL_AT(b->err, UNDEFINED_OBJECT, lq_at(b, atom->position),
                "the types of \"%.100s\" are not known", pred->name.ptr);
    }
    TRY(source_rel(b, scope, pred, atom, out));
    u32 *cols = *out_cols = NEW_ARRAY(b->arena, u32, pred->arity + 1);
    bool by_key = pred->origin == ORIGIN_COLUMN;
    for (i32 i = 0; i < pred->arity; i++) {
        u32 from = by_key ? (i < pred->key_count ? pred->key->cols[i] : pred->value_col) : (u32)i;
        cols[i] = (*out)->out.items[from];
    }
    bool bag = (pred->origin == ORIGIN_TABLE && !pred->key) || pred->origin == ORIGIN_VIEW;
    if (scope->counts && bag) {
        *out = named_only(b, *out, atom, cols);
    }
    note_fact(b, scope, pred, atom);
    return ERR_OK;
}

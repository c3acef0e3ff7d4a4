/* prune.c: which rows of a table a pipeline need not look at.
 *
 * A condition that compares a column with a literal or parameter bounds it (struct prune). Zone
 * maps tell which zones lie outside. Where every column of a key is bound to one value, the key's
 * index says which row has it: a look-up by primary key reads that row, on every device, however
 * many there are. A key that may be broken until the end of a transaction says nothing. */
#include "run/run_int.h"

static i128 exact_lit(const union lit *lit, u8 kind) {
    switch (kind) {
    case KIND_B8:
        return lit->b8;
    case KIND_I32:
        return lit->i32;
    case KIND_I64:
        return lit->i64;
    default:
        return lit->i128;
    }
}

static f64 float_lit(const union lit *lit, u8 kind) {
    return kind == KIND_F32 ? (f64)lit->f32 : lit->f64;
}

static bool is_float(u8 kind) {
    return kind == KIND_F32 || kind == KIND_F64;
}

bool exec_zone_excluded(const struct exec *x, const struct segment *seg, const struct prune *p,
                        i64 zone) {
    const union lit *lo = p->lo_lit != NO_LIT ? &x->lits[p->lo_lit] : NULL;
    const union lit *hi = p->hi_lit != NO_LIT ? &x->lits[p->hi_lit] : NULL;
    if (!seg->zones || p->kind == KIND_STR) {
        return false;
    }
    const struct zone *z = &seg->zones[zone];
    if (is_float(p->kind)) {
        return (lo && z->fhi < float_lit(lo, p->kind)) || (hi && z->flo > float_lit(hi, p->kind));
    }
    return (lo && z->hi < exact_lit(lo, p->kind)) || (hi && z->lo > exact_lit(hi, p->kind));
}

/* The literal as a value of the column's kind; false: the column cannot hold it. */
static bool as_column(const union lit *lit, u8 kind, u8 col_kind, union lit *out) {
    memset(out, 0, sizeof *out);
    if (kind == KIND_STR) {
        out->str = lit->str;
        return true;
    }
    if (is_float(kind)) {
        f64 value = float_lit(lit, kind);
        out->f64 = value;
        if (col_kind == KIND_F32) {
            out->f32 = (f32)value;
        }
        return col_kind == KIND_F64 || value != value || (f64)out->f32 == value;
    }
    i128 value = exact_lit(lit, kind);
    switch (col_kind) {
    case KIND_B8:
        out->b8 = (b8)(value != 0);
        return value == 0 || value == 1;
    case KIND_I32:
        out->i32 = (i32)value;
        return out->i32 == value;
    case KIND_I64:
        out->i64 = (i64)value;
        return out->i64 == value;
    default:
        out->i128 = value;
        return true;
    }
}

static const struct prune *find_equal(const struct pipeline *pipe, u32 col, u8 col_kind) {
    for (u32 i = 0; i < pipe->prune_count; i++) {
        const struct prune *p = &pipe->prunes[i];
        bool alike = is_float(p->kind) == is_float(col_kind) &&
                     (p->kind == KIND_STR) == (col_kind == KIND_STR);
        if (pipe->source.cols[p->col] == col && p->lo_lit != NO_LIT && p->lo_lit == p->hi_lit &&
            alike) {
            return p;
        }
    }
    return NULL;
}

enum { KEY_COLS_MOST = 32 };

/* Whether the pipeline binds all columns of the key; *out_row: the one row, -1 = none. */
static bool key_row(const struct exec *x, const struct pipeline *pipe, u32 k, i64 *out_row) {
    struct table *table = x->tables[pipe->source.ref];
    const struct table_key *key = &table->keys[k];
    union lit values[KEY_COLS_MOST];
    const void *at[KEY_COLS_MOST];
    bool holds = true;
    if (key->deferrable || key->col_count > KEY_COLS_MOST) {
        return false;
    }
    for (u32 i = 0; i < key->col_count; i++) {
        u8 kind = (u8)type_kind(table->cols[key->cols[i]].type);
        const struct prune *p = find_equal(pipe, key->cols[i], kind);
        if (!p) {
            return false;
        }
        holds = as_column(&x->lits[p->lo_lit], p->kind, kind, &values[i]) && holds;
        at[i] = &values[i];
    }
    struct error ignored;
    error_reset(&ignored);
    *out_row = -1;
    return !holds || !version_key_row(table, x->versions[pipe->source.ref], k, at, out_row,
                                      &ignored); /* no memory for an index: all rows are read */
}

void exec_row_range(const struct exec *x, const struct pipeline *pipe, i64 *out_first,
                    i64 *out_end) {
    const struct table *table = x->tables[pipe->source.ref];
    *out_first = 0;
    *out_end = x->versions[pipe->source.ref]->rows;
    for (u32 k = 0; pipe->prune_count && k < table->key_count; k++) {
        i64 row = -1;
        if (key_row(x, pipe, k, &row)) {
            bool there = row < *out_end; /* a sample may end before it */
            *out_first = there ? MAX_OF(row, 0) : 0;
            *out_end = there ? row + 1 : 0;
            break;
        }
    }
    if (x->span) {
        *out_first = MAX_OF(*out_first, x->span->first);
        *out_end = MAX_OF(MIN_OF(*out_end, x->span->end), *out_first);
    }
}

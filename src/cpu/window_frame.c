/* window_frame.c: which rows a window function sees: frames of ROWS, RANGE and GROUPS, exclusions.
 *
 * Offsets are constant, so both ends of a frame only move forward from row to row: two pointers
 * visit every row of a partition once. The bounds of RANGE come as a column, computed by opcodes,
 * so that here values of any type are only compared. */
#include "cpu/window_int.h"

wf_status frame_offsets(struct exec *x, const struct window_fn *fn, struct frame_walk *out,
                        struct error *err) {
    TRY(exec_frame_offset(x, fn->from_lit, fn->from, &out->from_off, err));
    return exec_frame_offset(x, fn->to_lit, fn->to, &out->to_off, err);
}

void frame_begin(struct frame_walk *f, i64 first, i64 end) {
    f->first = first;
    f->end = end;
    f->row = first - 1;
    f->peer = f->peer_end = first;
    f->peer_no = -1;
    f->lo = f->hi = first;
    f->group_lo = f->group_hi = 0;
}

static i64 peers_end(const struct frame_walk *f, i64 from) {
    i64 at = from + 1;
    while (at < f->end && !(f->w->starts[at] & WINDOW_PEER)) {
        at++;
    }
    return MIN_OF(at, f->end);
}

/* Three-way comparison of a key with a bound, both values of one kind; floats with NaN last. */
static int compare_values(u8 kind, const void *a, i64 i, const void *b, i64 j) {
#define CMP(type)                      \
    do {                               \
        type p = ((const type *)a)[i]; \
        type q = ((const type *)b)[j]; \
        return p < q ? -1 : p > q;     \
    } while (0)
#define CMP_FLOAT(type)                 \
    do {                                \
        type p = ((const type *)a)[i];  \
        type q = ((const type *)b)[j];  \
        if (p != p || q != q) {         \
            return (p != p) - (q != q); \
        }                               \
        return p < q ? -1 : p > q;      \
    } while (0)
    switch (kind) {
    case KIND_I32:
        CMP(i32);
    case KIND_I64:
        CMP(i64);
    case KIND_I128:
        CMP(i128);
    case KIND_F32:
        CMP_FLOAT(f32);
    default:
        CMP_FLOAT(f64);
    }
#undef CMP
#undef CMP_FLOAT
}

/* Whether row `at` lies before the bound of the current row; with_equal: or on it. */
static bool before_bound(const struct frame_walk *f, i64 at, u32 bound_col, bool with_equal) {
    const struct column *key = &f->w->chunk->cols[f->fn->key];
    const struct column *bound = &f->w->chunk->cols[bound_col];
    const struct sort_key *order = &f->w->step->keys[f->w->step->part_count];
    bool at_null = key->nulls && key->nulls[at];
    if (at_null) {
        return order->nulls_first;
    }
    int cmp = compare_values(key->kind, key->data, at, bound->data, f->row);
    cmp = order->descending ? -cmp : cmp;
    return with_equal ? cmp <= 0 : cmp < 0;
}

/* RANGE with an offset. A row whose key is NULL has its peers for company. */
static i64 range_end(const struct frame_walk *f, i64 at, u32 bound_col, bool is_hi) {
    const struct column *key = &f->w->chunk->cols[f->fn->key];
    if (key->nulls && key->nulls[f->row]) {
        return is_hi ? f->peer_end : f->peer;
    }
    while (at < f->end && before_bound(f, at, bound_col, is_hi)) {
        at++;
    }
    return at;
}

static i64 rows_end(const struct frame_walk *f, u8 bound, i64 offset, bool is_hi) {
    i64 limit = f->end - f->first + 1;
    offset = MIN_OF(offset, limit);
    i64 at = f->row + is_hi;
    at = bound == BOUND_BEFORE ? at - offset : bound == BOUND_AFTER ? at + offset : at;
    return MAX_OF(f->first, MIN_OF(at, f->end));
}

/* Moves *at, where group *number starts, to where group `want` starts. */
static void groups_end(const struct frame_walk *f, i64 want, i64 *at, i64 *number) {
    while (*number < want && *at < f->end) {
        *at = peers_end(f, *at);
        ++*number;
    }
}

static void find_ends(struct frame_walk *f) {
    const struct window_fn *fn = f->fn;
    bool offsets = fn->mode == FRAME_GROUPS;
    switch (fn->from) {
    case BOUND_UNBOUNDED_BEFORE:
        f->lo = f->first;
        break;
    case BOUND_UNBOUNDED_AFTER:
        f->lo = f->end;
        break;
    default:
        if (fn->mode == FRAME_ROWS) {
            f->lo = rows_end(f, fn->from, f->from_off, false);
        } else if (fn->from == BOUND_CURRENT) {
            f->lo = f->peer;
        } else if (offsets) {
            i64 off = fn->from == BOUND_BEFORE ? -f->from_off : MIN_OF(f->from_off, f->end);
            groups_end(f, f->peer_no + off, &f->lo, &f->group_lo);
        } else {
            f->lo = range_end(f, f->lo, fn->from_col, false);
        }
        break;
    }
    switch (fn->to) {
    case BOUND_UNBOUNDED_BEFORE:
        f->hi = f->first;
        break;
    case BOUND_UNBOUNDED_AFTER:
        f->hi = f->end;
        break;
    default:
        if (fn->mode == FRAME_ROWS) {
            f->hi = rows_end(f, fn->to, f->to_off, true);
        } else if (fn->to == BOUND_CURRENT) {
            f->hi = f->peer_end;
        } else if (offsets) {
            i64 off = fn->to == BOUND_BEFORE ? -f->to_off : MIN_OF(f->to_off, f->end);
            groups_end(f, f->peer_no + off + 1, &f->hi, &f->group_hi);
        } else {
            f->hi = range_end(f, f->hi, fn->to_col, true);
        }
        break;
    }
}

static void frame_ends(struct frame_walk *f) {
    i64 lo = f->lo, hi = f->hi;
    find_ends(f);
    ASSERT(f->row == f->first || (f->lo >= lo && f->hi >= hi)); /* ends only move forward */
    ASSERT(f->lo >= f->first && f->lo <= f->end && f->hi >= f->first && f->hi <= f->end);
}

static void add_run(struct frame_walk *f, i64 lo, i64 hi) {
    if (lo < hi) {
        f->runs[f->run_count++] = (struct run){lo, hi};
    }
}

/* The frame less what is excluded. */
static void split_runs(struct frame_walk *f) {
    i64 out_lo = f->end;
    i64 out_hi = f->end;
    f->run_count = 0;
    if (f->fn->exclude == EXCLUDE_CURRENT) {
        out_lo = f->row;
        out_hi = f->row + 1;
    } else if (f->fn->exclude != EXCLUDE_NONE) {
        out_lo = f->peer;
        out_hi = f->peer_end;
    }
    add_run(f, f->lo, MIN_OF(f->hi, out_lo));
    if (f->fn->exclude == EXCLUDE_TIES && f->row >= f->lo && f->row < f->hi) {
        add_run(f, f->row, f->row + 1);
    }
    add_run(f, MAX_OF(f->lo, out_hi), f->hi);
}

void frame_next(struct frame_walk *f) {
    f->row++;
    if (f->row == f->peer_end) {
        f->peer = f->row;
        f->peer_end = peers_end(f, f->row);
        f->peer_no++;
    }
    frame_ends(f);
    split_runs(f);
}

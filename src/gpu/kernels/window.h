/* window.h: window functions over sorted rows.
 *
 * Where partitions and groups of peers start is marked, numbered by sums, and turned round: from
 * numbers to rows. Then every row finds its frame by itself, without looking at its neighbours: in
 * a few accesses, or by a search among keys where a distance of RANGE is asked for. The word of a
 * frame is a difference of sums, or is put together from the nodes of a tree over all rows.
 *
 * Ordered aggregates read the same: groups are partitions, equal values are peers. */
#include "sort_value.h"

#include "defs/fn_int.h"

#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "defs/kwindow.h"

FN b8 window_same(const struct ksort_part *p, i64 a, i64 b, struct ktexts texts) {
    b8 null_a = sort_is_null(p, a);
    b8 null_b = sort_is_null(p, b);
    if (null_a || null_b) {
        return (b8)(null_a && null_b);
    }
    if (p->value == SORT_STR) {
        return sort_same_text(p, a, b, texts);
    }
    return (b8)(sort_number(p, a) == sort_number(p, b));
}

KERNEL(k_window_marks, struct kwindow_rows, SORT_THREADS) {
    i64 known = sort_known(args.rows, args.rows_at);
    SORT_ROWS(r, args.rows) {
        if (r >= known) { /* sums stay as they are */
            args.part_no[r] = 0;
            args.peer_no[r] = 0;
            continue;
        }
        u32 part = r == 0;
        u32 peer = r == 0;
        for (u32 k = 0; k < args.key_count && !part && !(peer && k >= args.part_count); k++) {
            b8 same = window_same(&args.keys[k], r - 1, r, args.texts);
            part |= !same && k < args.part_count;
            peer |= !same;
        }
        args.part_no[r] = part;
        args.peer_no[r] = peer;
    }
}

KERNEL(k_window_starts, struct kwindow_rows, SORT_THREADS) {
    i64 known = sort_known(args.rows, args.rows_at);
    SORT_ROWS(r, known) {
        u32 part = args.part_no[r];
        u32 peer = args.peer_no[r];
        if (r == 0 || args.part_no[r - 1] != part) {
            args.part_starts[part - 1u] = (u32)r;
        }
        if (r == 0 || args.peer_no[r - 1] != peer) {
            args.peer_starts[peer - 1u] = (u32)r;
        }
        if (r == known - 1) {
            args.part_starts[part] = (u32)known;
            args.peer_starts[peer] = (u32)known;
        }
    }
}

KERNEL(k_window_tree, struct kwindow_tree, SORT_THREADS) {
    SORT_ROWS(k, args.end - args.first) {
        i64 i = args.first + k;
        args.tree[i] = args.leaves ? args.leaves[k]
                                   : word_merge(args.op, args.tree[2 * i], args.tree[2 * i + 1]);
    }
}

/* --- frames --- */

struct window_at { /* a row, its partition, its peers, its frame */
    i64 row, first, end;
    i64 peer, peer_end;
    i64 lo, hi;
    i64 run_lo[3], run_hi[3]; /* the frame less what is excluded */
    u32 runs;
};

/* The first row of the partition that lies not before the bound of this one; is_hi: beyond it. */
FN i64 window_range(const struct kwindow *a, const struct window_at *w, const struct ksort_part *bound,
                    b8 is_hi) {
    if (sort_is_null(&a->key, w->row)) {
        return is_hi ? w->peer_end : w->peer;
    }
    u128 want = sort_number(bound, w->row);
    i64 lo = w->first;
    i64 hi = w->end;
    while (lo < hi) {
        i64 mid = (lo + hi) >> 1;
        b8 before = (b8)a->key.nulls_first;
        if (!sort_is_null(&a->key, mid)) {
            u128 v = sort_number(&a->key, mid);
            before = (b8)(a->key.descending ? v > want : v < want);
            before |= (b8)(is_hi && v == want);
        }
        if (before) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

FN i64 window_clamp(i64 x, i64 lo, i64 hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

/* Where group `number` of peers starts, counted through all rows. */
FN i64 window_group(const struct kwindow *a, const struct window_at *w, i64 number) {
    i64 least = (i64)a->rows.peer_no[w->first] - 1;
    i64 most = (i64)a->rows.peer_no[w->end - 1];
    return (i64)a->rows.peer_starts[window_clamp(number, least, most)];
}

FN i64 window_end(const struct kwindow *a, const struct window_at *w, u32 bound, i64 off, b8 is_hi) {
    if (bound == BOUND_UNBOUNDED_BEFORE) {
        return w->first;
    }
    if (bound == BOUND_UNBOUNDED_AFTER) {
        return w->end;
    }
    off = off > a->rows.rows ? a->rows.rows : off;
    off = bound == BOUND_BEFORE ? -off : bound == BOUND_AFTER ? off : 0;
    if (a->mode == FRAME_ROWS) {
        return window_clamp(w->row + (i64)is_hi + off, w->first, w->end);
    }
    if (bound == BOUND_CURRENT) {
        return is_hi ? w->peer_end : w->peer;
    }
    if (a->mode == FRAME_GROUPS) {
        return window_group(a, w, (i64)a->rows.peer_no[w->row] - 1 + off + (i64)is_hi);
    }
    return window_range(a, w, is_hi ? &a->to_bound : &a->from_bound, is_hi);
}

FN void window_run(struct window_at *w, i64 lo, i64 hi) {
    if (lo < hi) {
        w->run_lo[w->runs] = lo;
        w->run_hi[w->runs] = hi;
        w->runs++;
    }
}

FN_SLOW void window_frame(const struct kwindow *a, struct window_at *w) {
    i64 out_lo = w->end;
    i64 out_hi = w->end;
    w->lo = window_end(a, w, a->from, a->from_off, 0);
    w->hi = window_end(a, w, a->to, a->to_off, 1);
    w->runs = 0;
    if (a->exclude == EXCLUDE_CURRENT) {
        out_lo = w->row;
        out_hi = w->row + 1;
    } else if (a->exclude != EXCLUDE_NONE) {
        out_lo = w->peer;
        out_hi = w->peer_end;
    }
    window_run(w, w->lo, w->hi < out_lo ? w->hi : out_lo);
    if (a->exclude == EXCLUDE_TIES && w->row >= w->lo && w->row < w->hi) {
        window_run(w, w->row, w->row + 1);
    }
    window_run(w, w->lo > out_hi ? w->lo : out_hi, w->hi);
}

FN i64 window_nth(const struct window_at *w, i64 n) { /* from 0; -1 when there are not so many */
    for (u32 k = 0; k < w->runs; k++) {
        i64 rows = w->run_hi[k] - w->run_lo[k];
        if (n < rows) {
            return w->run_lo[k] + n;
        }
        n -= rows;
    }
    return -1;
}

/* --- words --- */

FN i64 window_tree_range(const struct kwindow *a, i64 lo, i64 hi) {
    i64 best = word_identity(a->func);
    lo += a->rows.rows;
    hi += a->rows.rows;
    while (lo < hi) {
        if (lo & 1) {
            best = word_merge(a->func, best, a->tree[lo++]);
        }
        if (hi & 1) {
            best = word_merge(a->func, best, a->tree[--hi]);
        }
        lo >>= 1;
        hi >>= 1;
    }
    return best;
}

FN i64 window_word(const struct kwindow *a, const struct window_at *w) {
    i64 word = word_identity(a->func);
    u64 sum = 0;
    for (u32 k = 0; k < w->runs; k++) {
        i64 lo = w->run_lo[k];
        i64 hi = w->run_hi[k];
        if (a->sums) {
            sum += a->sums[hi - 1] - (lo ? a->sums[lo - 1] : 0u);
        } else {
            word = word_merge(a->func, word, window_tree_range(a, lo, hi));
        }
    }
    return a->sums ? (i64)sum : word;
}

/* --- functions --- */

FN b8 window_null(const struct kwindow_col *col, i64 row) {
    return (b8)(col->nulls && col->nulls[row]);
}

/* Copies a value of `width` bytes from one row to another; from -1: zero. */
FN void window_copy(u8 *out, u32 width, const u8 *data, i64 from, i64 to) {
    b8 none = (b8)(from < 0);
    switch (width) {
    case 1:
        out[to] = none ? 0u : data[from];
        break;
    case 4:
        ((u32 *)out)[to] = none ? 0u : ((const u32 *)data)[from];
        break;
    case 8:
        ((u64 *)out)[to] = none ? 0u : ((const u64 *)data)[from];
        break;
    default:
        store16(out + 16 * to, none ? vec_of(0, 0) : load16(data + 16 * from));
        break;
    }
}

/* The value at row `from`, which may be -1, to row `to`. */
FN void window_take(const struct kwindow *a, const struct kwindow_col *col, i64 from, i64 to) {
    b8 missing = (b8)(from < 0 || window_null(col, from));
    a->out_nulls[to] = missing;
    window_copy(a->out, a->width, col->data, missing ? -1 : from, to);
}

FN void window_neighbour(const struct kwindow *a, const struct window_at *w) {
    i64 off = 1;
    i64 r = w->row;
    if (a->arg_count & 2u) {
        if (window_null(&a->args[1], r)) {
            window_take(a, &a->args[0], -1, r);
            return;
        }
        off = ((const i64 *)a->args[1].data)[r];
    }
    off = a->func == WINDOW_LAG ? (off == I64_MIN ? I64_MAX : -off) : off;
    if (off >= w->first - r && off < w->end - r) {
        window_take(a, &a->args[0], r + off, r);
    } else if (a->arg_count & 4u) {
        window_take(a, &a->args[2], r, r);
    } else {
        window_take(a, &a->args[0], -1, r);
    }
}

/* The first rows of a partition go to buckets that have one row more. */
FN void window_bucket(const struct kwindow *a, const struct window_at *w) {
    i64 r = w->row;
    i32 *out = (i32 *)a->out;
    a->out_nulls[r] = window_null(&a->args[0], w->first);
    out[r] = 0;
    if (a->out_nulls[r]) {
        return;
    }
    i64 buckets = ((const i64 *)a->args[0].data)[w->first];
    if (buckets <= 0) {
        atom_or_u64(a->report, 1);
        return;
    }
    i64 rows = w->end - w->first;
    i64 at = r - w->first;
    i64 small = rows / buckets;
    i64 large = rows % buckets;
    i64 in_large = large * (small + 1);
    out[r] = (i32)(at < in_large ? at / (small + 1)
                                 : large + (at - in_large) / (small > 1 ? small : 1)) +
             1;
}

FN void window_nth_value(const struct kwindow *a, const struct window_at *w) {
    i64 n = ((const i64 *)a->args[1].data)[w->row];
    if (window_null(&a->args[1], w->row)) {
        window_take(a, &a->args[0], -1, w->row);
    } else if (n <= 0) {
        a->out_nulls[w->row] = 1;
        atom_or_u64(a->report, 1);
    } else {
        window_take(a, &a->args[0], window_nth(w, n - 1), w->row);
    }
}

FN void window_func(const struct kwindow *a, const struct window_at *w) {
    i64 *counts = (i64 *)a->out;
    f64 *shares = (f64 *)a->out;
    i64 rows = w->end - w->first;
    switch (a->func) {
    case WINDOW_ROW_NUMBER:
        counts[w->row] = w->row - w->first + 1;
        break;
    case WINDOW_RANK:
        counts[w->row] = w->peer - w->first + 1;
        break;
    case WINDOW_DENSE_RANK:
        counts[w->row] = (i64)a->rows.peer_no[w->row] - (i64)a->rows.peer_no[w->first] + 1;
        break;
    case WINDOW_PERCENT_RANK:
        shares[w->row] = rows > 1 ? (f64)(w->peer - w->first) / (f64)(rows - 1) : 0;
        break;
    case WINDOW_CUME_DIST:
        shares[w->row] = (f64)(w->peer_end - w->first) / (f64)rows;
        break;
    case WINDOW_NTILE:
        window_bucket(a, w);
        break;
    case WINDOW_LAG:
    case WINDOW_LEAD:
        window_neighbour(a, w);
        break;
    case WINDOW_FIRST_VALUE:
        window_take(a, &a->args[0], window_nth(w, 0), w->row);
        break;
    case WINDOW_LAST_VALUE:
        window_take(a, &a->args[0], w->runs ? w->run_hi[w->runs - 1u] - 1 : -1, w->row);
        break;
    default:
        window_nth_value(a, w);
        break;
    }
}

KERNEL(k_window, struct kwindow, SORT_THREADS) {
    SORT_ROWS(r, sort_known(args.rows.rows, args.rows.rows_at)) {
        struct window_at w;
        u32 part = args.rows.part_no[r];
        u32 peer = args.rows.peer_no[r];
        w.row = r;
        w.first = (i64)args.rows.part_starts[part - 1u];
        w.end = (i64)args.rows.part_starts[part];
        w.peer = (i64)args.rows.peer_starts[peer - 1u];
        w.peer_end = (i64)args.rows.peer_starts[peer];
        w.runs = 0;
        if (args.is_word || args.func >= WINDOW_FIRST_VALUE) {
            window_frame(&args, &w);
        }
        if (args.is_word) {
            ((i64 *)args.out)[r] = window_word(&args, &w);
        } else {
            window_func(&args, &w);
        }
    }
}

/* --- ordered aggregates --- */

/* MODE: the longest run of equal values of every group, of those the first. */
KERNEL(k_fold_runs, struct kfold, SORT_THREADS) {
    const struct kwindow_rows *rows = &args.rows;
    SORT_ROWS(r, sort_known(rows->rows, rows->rows_at)) {
        u32 peer = rows->peer_no[r];
        if (rows->peer_starts[peer - 1u] == (u32)r && (i64)rows->part_no[r] <= args.groups) {
            u64 len = rows->peer_starts[peer] - (u32)r;
            atom_max_u64(&args.best[rows->part_no[r] - 1u], len << 32 | (0xffffffffu - peer));
        }
    }
}

/* The smallest group that has a fault, with its number. */
FN void fold_fault(const struct kfold *a, i64 group, u32 fault) {
    atom_min_u64(&a->report[REPORT_FAULT], (u64)group << 8 | fault);
}

/* `share` of the way from one row's value to the next one's. */
FN void fold_between(const struct kfold *a, i64 group, i64 row, f64 share) {
    if (a->width == 8u) {
        const f64 *x = (const f64 *)a->value.data + row;
        ((f64 *)a->out)[group] = x[0] + share * (x[1] - x[0]);
        return;
    }
    u8 fault = 0; /* intervals */
    vec16 low = load16(a->value.data + 16 * row);
    vec16 high = load16(a->value.data + 16 * (row + 1));
    i128 from = i128_of(vec_low(low), vec_high(low));
    i128 way = fn_iv_mul(fn_iv_sum(i128_of(vec_low(high), vec_high(high)), from, -1, &fault), share, &fault);
    i128 at = fn_iv_sum(from, way, 1, &fault);
    store16(a->out + 16 * group, vec_of((u64)at, (u64)((u128)at >> 64)));
    if (fault) {
        fold_fault(a, group, fault);
    }
}

FN void fold_percentile(const struct kfold *a, i64 group, i64 first, i64 count) {
    b8 none = (b8)(a->share.nulls && a->share.nulls[first]);
    f64 share = none ? 0 : ((const f64 *)a->share.data)[first];
    a->out_nulls[group] = none;
    if (!(share >= 0 && share <= 1)) {
        fold_fault(a, group, 0);
        share = 0;
    }
    if (a->fold == AGG_PERCENTILE_DISC) {
        f64 place = share * (f64)count;
        i64 at = (i64)place;
        at += (f64)at < place;
        window_copy(a->out, a->width, a->value.data, first + (at > 1 ? at : 1) - 1, group);
        return;
    }
    f64 at = share * (f64)(count - 1);
    i64 low = (i64)at;
    if ((f64)low == at) {
        window_copy(a->out, a->width, a->value.data, first + low, group);
    } else {
        fold_between(a, group, first + low, at - (f64)low);
    }
}

KERNEL(k_fold, struct kfold, SORT_THREADS) {
    const struct kwindow_rows *rows = &args.rows;
    i64 known = sort_known(rows->rows, rows->rows_at);
    i64 groups = known ? (i64)rows->part_no[known - 1] : 0;
    if (t_block() == 0 && t_id() == 0) {
        args.report[REPORT_ROWS] = (u64)groups;
    }
    SORT_ROWS(g, groups < args.groups ? groups : args.groups) {
        i64 first = rows->part_starts[g];
        args.out_keys[g] = args.keys[first];
        args.out_nulls[g] = 0;
        if (args.fold == AGG_PERCENTILE_CONT || args.fold == AGG_PERCENTILE_DISC) {
            fold_percentile(&args, g, first, (i64)rows->part_starts[g + 1] - first);
            continue;
        }
        u32 run = args.best ? 0xffffffffu - (u32)args.best[g] : 0u;
        i64 row = args.best ? (i64)rows->peer_starts[run - 1u] : first;
        window_copy(args.out, args.width, args.value.data, row, g);
    }
}

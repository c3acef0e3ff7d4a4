/* rel_word.h: loops over packed tuples of one word type, included once for each.
 *
 * The file that includes this defines W, the word, and WORD(name), which makes a function's name of
 * it; alone it is the text for u32. Loops without branches are kept apart from those with, so that
 * compilers turn them into vector code. */
#include "cpu/rel_int.h"

#ifndef W
#define W u32
#define WORD(name) name##_u32
#endif

/* keep[i] = the terms hold for in[i]. */
__attribute__((unused)) static void WORD(test)(const W *in, i64 n, const struct rel_terms *terms,
                                               b8 *keep) {
    b8 clause[REL_BLOCK];
    memset(keep, terms->count == 0, (size_t)n);
    memset(clause, 1, (size_t)n);
    for (u32 t = 0; t < terms->count; t++) {
        const struct rel_term term = terms->term[t];
        for (i64 i = 0; i < n; i++) {
            u64 field = (u64)(in[i] >> term.shift) & term.mask;
            clause[i] &= (field - term.low <= term.span) ^ term.inverted;
        }
        if (term.last) {
            for (i64 i = 0; i < n; i++) {
                keep[i] |= clause[i];
                clause[i] = 1;
            }
        }
    }
}

/* The words kept, to `out`, which has room for one word more than there are. */
__attribute__((unused)) static i64 WORD(compact)(W *out, const W *in, const b8 *keep, i64 n) {
    i64 at = 0;
    for (i64 i = 0; i < n; i++) {
        out[at] = in[i];
        at += keep[i];
    }
    return at;
}

/* How many of the first d words of the merge are of x; of equal keys those of y come first. */
__attribute__((unused)) static i64 WORD(split)(const W *x, i64 nx, const W *y, i64 ny, i64 d,
                                               u32 shift) {
    i64 lo = MAX_OF(0, d - ny);
    i64 hi = MIN_OF(d, nx);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (x[mid] >> shift < y[d - 1 - mid] >> shift) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The first word with the key of y[end - 1]. */
__attribute__((unused)) static i64 WORD(run_start)(const W *y, i64 end, u32 shift) {
    W key = y[end - 1] >> shift;
    i64 hi = end - 1;
    i64 step = 1;
    while (hi - step >= 0 && y[hi - step] >> shift == key) {
        hi -= step;
        step *= 2;
    }
    i64 lo = MAX_OF(hi - step, -1); /* not of the run */
    while (hi - lo > 1) {
        i64 mid = (lo + hi) / 2;
        if (y[mid] >> shift == key) {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    return hi;
}

/* The lesser of row i of x and row j of y, or both runs where their keys are equal: that of y, from
 * lo on, has started before j only for the first key of a range. */
__attribute__((unused)) static inline void WORD(join_step)(struct rel_range *r, const W *x,
                                                           const W *y, i64 *i, i64 *j, i64 lo) {
    const u32 shift = r->shift;
    const i64 xb = r->x_base;
    const i64 yb = r->y_base;
    W key = x[*i - xb] >> shift;
    if (*j < r->y_end && y[*j - yb] >> shift < key && lo == *j) {
        range_lone_y(r, *j, *j + 1, (r->kind & REL_Y_ALONE) != 0);
        ++*j;
        return;
    }
    while (*j < r->y_end && y[*j - yb] >> shift == key) {
        ++*j;
    }
    while (*i < r->x_end && x[*i - xb] >> shift == key) {
        range_match(r, *i, lo, *j);
        ++*i;
    }
}

/* The partners of the x of a range one after the other, words of y without partner in between.
 * While keys are distinct there is no branch that depends on them: a step writes what it may have
 * to give out and counts whether it did. */
__attribute__((unused)) static void WORD(join)(struct rel_range *r, const W *x, const W *y) {
    const u32 shift = r->shift;
    const i64 xb = r->x_base;
    const i64 yb = r->y_base;
    const i64 on_equal = (r->kind & (REL_PAIRS | REL_X_ONCE)) != 0;
    const i64 on_x = (r->kind & REL_X_ALONE) != 0;
    const i64 on_y = (r->kind & REL_Y_ALONE) != 0;
    const i64 pairs = r->kind & REL_PAIRS;
    i64 i = r->x_first;
    i64 j = r->y_first;
    if (r->back > 0) {
        WORD(join_step)(r, x, y, &i, &j, j - r->back);
    }
    const i64 x_last = r->x_end - 1;
    const i64 y_last = r->y_end - 1;
    while (i < x_last && j < y_last) {
        bool twice = false;
        i64 held = r->held; /* in a register, as the rest of the loop's state */
        while (i < x_last && j < y_last && held < REL_BLOCK) {
            const W a = x[i - xb] >> shift;
            const W b = y[j - yb] >> shift;
            if ((a == b) & ((x[i + 1 - xb] >> shift == a) | (y[j + 1 - yb] >> shift == a))) {
                twice = true;
                break;
            }
            const i64 less = a < b;
            const i64 more = a > b;
            const i64 with_y = more | (pairs & ~less);
            r->x[held] = i | -more; /* -1: none */
            r->y[held] = j | (with_y - 1);
            i += 1 - more;
            j += 1 - less;
            held += (less & on_x) | (more & on_y) | (~(less | more) & on_equal);
        }
        r->held = (i32)held;
        if (held == REL_BLOCK) {
            range_flush(r);
        }
        if (twice) {
            WORD(join_step)(r, x, y, &i, &j, j);
        }
    }
    while (i < r->x_end) {
        WORD(join_step)(r, x, y, &i, &j, j);
    }
    i64 end = r->y_end;
    bool next = r->x_end < r->x_count;
    while (on_y && next && end > j && y[end - 1 - yb] >> shift == x[r->x_end - xb] >> shift) {
        end--;
    }
    range_lone_y(r, j, end, on_y);
}

/* How many of n words start a group; `before`: the one before them, NULL: there is none. */
__attribute__((unused)) static i64 WORD(heads)(const W *in, i64 n, u32 shift, const W *before) {
    i64 heads = n > 0 && (!before || *before >> shift != in[0] >> shift);
    for (i64 i = 1; i < n; i++) {
        heads += in[i] >> shift != in[i - 1] >> shift;
    }
    return heads;
}

/* Groups of n words to out[at ...); *part takes what belongs to the group before.
 * How many groups begin. */
__attribute__((unused)) static i64 WORD(reduce)(const struct rel_reduce *r, const W *in, W *out,
                                                i64 n, i64 at, const W *before, u64 *part) {
    const u32 shift = r->key_shift;
    const i64 begin = at;
    u64 *to = part;
    *part = reduce_identity(r->reduce);
    for (i64 i = 0; i < n; i++) {
        W key = in[i] >> shift;
        const W *last = i ? &in[i - 1] : before;
        if (!last || *last >> shift != key) {
            out[at] = (W)(key << shift);
            to = &r->values[at++];
            *to = reduce_identity(r->reduce);
        }
        *to = reduce_join(
            r->reduce, *to,
            r->reduce == REDUCE_COUNT ? 1 : (u64)(in[i] >> r->field_shift) & r->field_mask);
    }
    return at - begin;
}

#undef W
#undef WORD

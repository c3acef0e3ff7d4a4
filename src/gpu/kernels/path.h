/* path.h: where the merge of two ascending arrays crosses a diagonal.
 *
 * The first `diagonal` elements of the merge are so many of a and the rest of b; of equal elements
 * those of a come first. The balanced path pairs the k-th of equal elements of a with the k-th of b
 * and never parts a pair: where a diagonal would, the point has one element of b more ("star"). */
#ifndef WF_PATH_H
#define WF_PATH_H

#include "order.h"

#define PATH_TILE (PATH_THREADS * PATH_ITEMS)

FN i64 path_far(const K *a, i64 a_n, const K *b, i64 b_n, i64 diagonal, const struct korder *o) {
    i64 low = diagonal > b_n ? diagonal - b_n : 0;
    i64 high = diagonal < a_n ? diagonal : a_n;
    while (low < high) {
        i64 mid = (low + high) >> 1;
        if (key_less(b[diagonal - 1 - mid], a[mid], o)) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}
/* The same within a tile. */
FN u32 path_near(const K *a, u32 a_n, const K *b, u32 b_n, u32 diagonal, const struct korder *o) {
    u32 low = diagonal > b_n ? diagonal - b_n : 0u;
    u32 high = diagonal < a_n ? diagonal : a_n;
    while (low < high) {
        u32 mid = (low + high) >> 1;
        if (key_less(b[diagonal - 1u - mid], a[mid], o)) {
            high = mid;
        } else {
            low = mid + 1u;
        }
    }
    return low;
}

/* How many of p[0..n), ascending, are less than x; with `upper` not greater. */
FN i64 bound_of(const K *p, i64 n, K x, u32 upper, const struct korder *o) {
    i64 low = 0;
    i64 high = n;
    while (low < high) {
        i64 mid = (low + high) >> 1;
        u32 below = upper ? !key_less(x, p[mid], o) : key_less(p[mid], x, o);
        if (below) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}
/* The same where the answer is likely near the end: steps back double. */
FN i64 bound_back(const K *p, i64 n, K x, const struct korder *o) {
    i64 step = 1;
    i64 high = n;
    while (high > 0) {
        i64 at = high > step ? high - step : 0;
        if (key_less(p[at], x, o)) {
            return at + bound_of(p + at, high - at, x, 0, o);
        }
        high = at;
        step *= 2;
    }
    return 0;
}

/* Elements of a before the balanced point, times 2, plus the star. */
FN i64 balanced_path(const K *a, i64 a_n, const K *b, i64 b_n, i64 diagonal,
                     const struct korder *o) {
    i64 i = path_far(a, a_n, b, b_n, diagonal, o);
    i64 j = diagonal - i;
    u32 star = 0;
    if (j < b_n) {
        K x = b[j];
        i64 a_first = bound_back(a, i, x, o);
        i64 b_first = bound_back(b, j, x, o);
        i64 run = (i - a_first) + (j - b_first); /* elements equal to x before the diagonal */
        i64 b_take = run >> 1 > j - b_first ? run >> 1 : j - b_first;
        i64 b_end = b_first + b_take + 1 < b_n ? b_first + b_take + 1 : b_n;
        i64 b_run = j + bound_of(b + j, b_end - j, x, 1, o) - b_first;
        b_take = b_take < b_run ? b_take : b_run;
        i64 a_take = run - b_take;
        star = a_take == b_take + 1 && b_take < b_run;
        i = a_first + a_take;
    }
    return i * 2 + (i64)star;
}

#endif

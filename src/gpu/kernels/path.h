/* path.h: where the merge of two ascending arrays crosses a diagonal.
 *
 * The first `diagonal` elements of the merge are so many of a and the rest of b; of equal elements
 * those of a come first. The balanced path pairs the k-th of equal elements of a with the k-th of b
 * and never parts a pair: where a diagonal would, the point has one element of b more ("star"). */
#ifndef WF_PATH_H
#define WF_PATH_H

#include "order.h"

#define PATH_TILE (PATH_THREADS * PATH_ITEMS)

/* The words below exist for whole arrays (far) and, with indexes of 32 bits, for tiles (near);
 * ARRAY and AT(p, i) say what an array is and how to reach its element i.
 * path: how many of the first `diagonal` elements of the merge come from a.
 * path_in: the same, known to be from low to high. A far step asks for three elements of each array
 * at once and leaves a quarter: what it waits for is memory.
 * bound: how many of p[0..n), ascending, are less than x; with `upper` not greater. It is known to
 * be `low` at least.
 * bound_back: the same, where the answer is likely near the end: steps back double.
 * balance: elements of a before the balanced point, times 2, plus the star, from path's answer.
 * Long because they are one set of words for two index types: 64 bits cost registers in tiles. */
#define PATH_WORDS(where, I, WAYS, ARRAY, AT)                                                   \
    FN I path_in_##where(ARRAY a, ARRAY b, I low, I high, I diagonal, const struct korder *o) { \
        while (WAYS > 2 && high - low >= WAYS) {                                                \
            I step = (high - low) / WAYS;                                                       \
            I more = 0;                                                                         \
            UNROLL for (I k = 1; k < WAYS; k++) {                                               \
                I mid = low + k * step;                                                         \
                more += !key_less(AT(b, diagonal - 1 - mid), AT(a, mid), o);                    \
            }                                                                                   \
            high = more < WAYS - 1 ? low + (more + 1) * step : high;                            \
            low += more ? more * step + 1 : 0;                                                  \
        }                                                                                       \
        while (low < high) {                                                                    \
            I mid = (low + high) >> 1;                                                          \
            if (key_less(AT(b, diagonal - 1 - mid), AT(a, mid), o)) {                           \
                high = mid;                                                                     \
            } else {                                                                            \
                low = mid + 1;                                                                  \
            }                                                                                   \
        }                                                                                       \
        return low;                                                                             \
    }                                                                                           \
    FN I path_##where(ARRAY a, I a_n, ARRAY b, I b_n, I diagonal, const struct korder *o) {     \
        return path_in_##where(a, b, diagonal > b_n ? diagonal - b_n : 0,                       \
                               diagonal < a_n ? diagonal : a_n, diagonal, o);                   \
    }                                                                                           \
    FN I bound_##where(ARRAY p, I low, I n, K x, u32 upper, const struct korder *o) {           \
        I high = n;                                                                             \
        while (low < high) {                                                                    \
            I mid = (low + high) >> 1;                                                          \
            u32 below = upper ? !key_less(x, AT(p, mid), o) : key_less(AT(p, mid), x, o);       \
            if (below) {                                                                        \
                low = mid + 1;                                                                  \
            } else {                                                                            \
                high = mid;                                                                     \
            }                                                                                   \
        }                                                                                       \
        return low;                                                                             \
    }                                                                                           \
    FN I bound_back_##where(ARRAY p, I n, K x, const struct korder *o) {                        \
        I step = 1;                                                                             \
        I high = n;                                                                             \
        while (high > 0) {                                                                      \
            I at = high > step ? high - step : 0;                                               \
            if (key_less(AT(p, at), x, o)) {                                                    \
                return bound_##where(p, at + 1, high, x, 0, o);                                 \
            }                                                                                   \
            high = at;                                                                          \
            step *= 2;                                                                          \
        }                                                                                       \
        return 0;                                                                               \
    }                                                                                           \
    FN I balance_##where(ARRAY a, ARRAY b, I b_n, I i, I diagonal, const struct korder *o) {    \
        I j = diagonal - i;                                                                     \
        I star = 0;                                                                             \
        if (j < b_n) {                                                                          \
            K x = AT(b, j);                                                                     \
            I a_first = bound_back_##where(a, i, x, o);                                         \
            I b_first = bound_back_##where(b, j, x, o);                                         \
            I run = (i - a_first) + (j - b_first); /* equal to x, before the diagonal */        \
            I b_take = run >> 1 > j - b_first ? run >> 1 : j - b_first;                         \
            I b_end = b_first + b_take + 1 < b_n ? b_first + b_take + 1 : b_n;                  \
            I b_run = bound_##where(b, j, b_end, x, 1, o) - b_first;                            \
            b_take = b_take < b_run ? b_take : b_run;                                           \
            I a_take = run - b_take;                                                            \
            star = a_take == b_take + 1 && b_take < b_run;                                      \
            i = a_first + a_take;                                                               \
        }                                                                                       \
        return i * 2 + star;                                                                    \
    }
#define PATH_AT(p, i) ((p)[i])
PATH_WORDS(far, i64, 4, const K *, PATH_AT)
PATH_WORDS(near, i32, 2, const K *, PATH_AT)

#endif

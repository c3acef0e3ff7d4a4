/* ctajoin.h: how a block joins two sorted tiles in shared memory: which words of y each x matches.
 *
 * Interchangeable: each takes the tiles and gives every thread up to TUPLE_VT elements of the
 * output's order: the range of y that an x matches, or, from the merge alone, a y without partner.
 * The cut between tiles has put all y of a key before its x, so a range ends in the tile. It may
 * start before it, which only that of the tile's first key can: `back` says how far.
 *
 * STAGE 0 merges between cuts of the merge path: even work whatever the keys, one search per thread.
 * The others are those of Diamos et al.:
 *   1  searches both bounds of every x
 *   2  searches those of a thread's run of x, which it holds in registers
 *   3  compares all with all
 *   4  builds a hash table of the distinct keys of y
 *   5  is a network: both sides are halved stage by stage, and a half of x goes on with its share of y
 *      and a little more, so that shares overlap. A thread whose share stays large, because keys
 *      repeat or lie unevenly, leaves by a side exit and searches. */
#ifndef WF_CTAJOIN_H
#define WF_CTAJOIN_H

#include "tuple.h"

#include "defs/fn_table.h"

#define RANGE_BEFORE 0xffffu /* the range starts before the tile */

struct tiles { /* of x and y, in shared memory */
    const IN_W *x;
    const IN_W *y;
    u32 nx, ny;
    u32 shift;
    i64 back;
    IN_W next; /* the x behind the tile */
    u32 has_next;
};

/* A range is end | start << 16; that of a y has its place in the low half. The merge need not keep
 * them: they follow from where it began and what it did. */
struct matches {
    u32 range[TUPLE_VT];
    u32 is_x, is_y; /* which elements are an x, and a y without partner that is wanted */
    u32 same;       /* of the merge: which elements have the key of the y before, */
    u32 y_first;    /* place of the first y, */
    u32 start;      /* of that run, << 16 */
    u32 x_first;    /* place of the first x */
    u32 given;      /* elements that give rows, */
    u32 rows;       /* how many; so many that the tile is heavy when it cannot say */
    u32 many;       /* one gives more than one */
};

struct cursor { /* of a walk through the elements of a merge */
    u32 y, start;
};
FN u32 merged_range(struct cursor *c, u32 is_x, u32 same) {
    u32 range = c->y | (is_x && same ? c->start : c->y << 16);
    if (!is_x) {
        c->start = same ? c->start : c->y << 16;
        c->y++;
    }
    return range;
}
FN struct cursor cursor_of(const struct matches *m) {
    struct cursor c;
    c.y = m->y_first;
    c.start = m->start;
    return c;
}
/* The range of element k, asked for in order; `merged`: they come from a merge. */
FN u32 next_range(const struct matches *m, u32 k, struct cursor *c, u32 merged) {
    if (STAGE != 0 && !merged) {
        return m->range[k];
    }
    return merged_range(c, m->is_x >> k & 1u, m->same >> k & 1u);
}
#define BACK_MOST \
    (1 << 18) /* what is told of `back` where 32 bits must do: 15 * 256 of them fit \
               */

FN IN_W key_x(const struct tiles *t, u32 i) {
    return t->x[i] >> t->shift;
}
FN IN_W key_y(const struct tiles *t, u32 j) {
    return t->y[j] >> t->shift;
}

/* The first place of [lo, hi) whose y is not below (upper: is above) the key. */
FN u32 bound_y(const struct tiles *t, IN_W key, u32 lo, u32 hi, u32 upper) {
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        IN_W y = key_y(t, mid);
        if (y < key || (upper && y == key)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The start of the run of equal keys that ends before `end` (> 0), most likely near. */
FN u32 run_start(const struct tiles *t, u32 end) {
    IN_W key = key_y(t, end - 1);
    u32 hi = end - 1;
    u32 step = 1;
    while (hi >= step && key_y(t, hi - step) == key) {
        hi -= step;
        step *= 2;
    }
    return bound_y(t, key, hi >= step ? hi - step : 0u, hi, 0);
}

FN u32 range_of(const struct tiles *t, IN_W key, u32 lo, u32 hi) {
    u32 before = lo == 0 && t->back > 0 && key == key_x(t, 0);
    return hi | (before ? RANGE_BEFORE : lo) << 16;
}
FN u64 range_count(u32 range, i64 back) {
    u32 lo = range >> 16;
    u32 hi = range & 0xffffu;
    return lo == RANGE_BEFORE ? (u64)hi + (u64)back : (u64)(hi - lo);
}

/* --- 0: merge -------------------------------------------------------------------------------- */

FN u32 tile_split(const struct tiles *t, u32 d) {
    u32 lo = d > t->ny ? d - t->ny : 0u;
    u32 hi = d < t->nx ? d : t->nx;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        if (key_x(t, mid) < key_y(t, d - 1 - mid)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* What an element gives: `partners` of an x, or a y alone. */
FN void matches_note(struct matches *m, u32 k, u32 is_x, u32 is_y, u32 partners) {
    u32 rows = 0;
    if (KIND & REL_PAIRS) {
        rows = partners;
    } else if (KIND & REL_X_ONCE) {
        rows = partners != 0;
    }
    if (KIND & REL_X_ALONE) {
        rows = is_x && partners == 0 ? 1u : rows;
    }
    if (KIND & REL_Y_ALONE) {
        rows |= is_y;
    }
    m->given |= (u32)(rows != 0) << k;
    m->many |= rows > 1u;
    m->rows += rows;
}

FN void t_merge(const struct tiles *t, struct matches *m) {
    u32 total = t->nx + t->ny;
    u32 d = t_id() * TUPLE_VT;
    d = d < total ? d : total;
    u32 i = tile_split(t, d);
    u32 j = d - i;
    IN_W x = key_x(t, i); /* behind the last word of a tile lies one more */
    IN_W y = key_y(t, j);
    i32 lo = (i32)j; /* start of the run of the last y, whose key is `last` */
    IN_W last = 0;
    u32 has_last = 0;
    i32 back = t->back < BACK_MOST ? (i32)t->back : BACK_MOST;
    if (j > 0) {
        last = key_y(t, j - 1);
        has_last = 1;
        if ((i < t->nx && x == last) || (j < t->ny && y == last)) {
            lo = (i32)run_start(t, j);
        }
    } else if (back > 0) {
        last = key_x(t, 0);
        has_last = 1;
    }
    if (has_last && lo == 0 && back > 0 && last == key_x(t, 0)) {
        lo = -back;
    }
    m->start = lo < 0 ? RANGE_BEFORE << 16 : (u32)lo << 16;
    m->x_first = i;
    m->y_first = j;
    m->is_x = m->is_y = m->same = m->given = m->rows = m->many = 0;
    NO_UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 here = d + k < total;
        u32 is_x = i < t->nx && (j >= t->ny || x < y);
        u32 same = has_last && (is_x ? x : y) == last;
        u32 hit = is_x && same;
        u32 is_y = 0;
        if (KIND & REL_Y_ALONE) {
            u32 partner = i < t->nx ? x == y : t->has_next && t->next == y;
            is_y = here && !is_x && !partner;
            m->is_y |= is_y << k;
        }
        m->same |= same << k;
        m->is_x |= is_x << k;
        matches_note(m, k, is_x, is_y, hit ? (u32)((i32)j - lo) : 0u);
        if (is_x) {
            i++;
        } else {
            lo = same ? lo : (i32)j;
            last = y;
            has_last = 1;
            j++;
        }
        IN_W next = is_x ? key_x(t, i) : j <= t->ny ? key_y(t, j) : (IN_W)0;
        x = is_x ? next : x;
        y = is_x ? y : next;
    }
}

/* --- the others: a thread has the x from t_id * TUPLE_VT on ---------------------------------- */

FN u32 x_count(const struct tiles *t) {
    u32 first = t_id() * TUPLE_VT;
    u32 left = t->nx > first ? t->nx - first : 0u;
    return left < TUPLE_VT ? left : (u32)TUPLE_VT;
}
FN void matches_begin(const struct tiles *t, struct matches *m) {
    m->x_first = t_id() * TUPLE_VT;
    m->is_x = (1u << x_count(t)) - 1u;
    m->is_y = m->same = m->y_first = m->start = m->given = m->rows = m->many = 0;
}
FN void matches_end(const struct tiles *t, struct matches *m) {
    i64 back = t->back < BACK_MOST ? t->back : BACK_MOST;
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 is_x = m->is_x >> k & 1u;
        matches_note(m, k, is_x, 0, is_x ? (u32)range_count(m->range[k], back) : 0u);
    }
}

/* 1 */
FN void t_binary(const struct tiles *t, struct matches *m) {
    matches_begin(t, m);
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        m->range[k] = 0;
        if (m->is_x >> k & 1u) {
            IN_W key = key_x(t, m->x_first + k);
            u32 lo = bound_y(t, key, 0, t->ny, 0);
            m->range[k] = range_of(t, key, lo, bound_y(t, key, lo, t->ny, 1));
        }
    }
}

/* The ranges of a thread's n keys, which lie in [from, end) of y, by a walk along both. */
FN void t_walk(const struct tiles *t, struct matches *m, u32 n, u32 from, u32 end) {
    IN_W key[TUPLE_VT];
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        key[k] = k < n ? key_x(t, m->x_first + k) : (IN_W)0;
    }
    u32 lo = from;
    u32 hi = from;
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        m->range[k] = 0;
        if (k < n) {
            if (k == 0 || key[k] != key[k - 1]) {
                lo = hi;
                while (lo < end && key_y(t, lo) < key[k]) {
                    lo++;
                }
                hi = lo;
                while (hi < end && key_y(t, hi) == key[k]) {
                    hi++;
                }
            }
            m->range[k] = range_of(t, key[k], lo, hi);
        }
    }
}

/* 2 */
FN void t_blocked(const struct tiles *t, struct matches *m) {
    matches_begin(t, m);
    u32 n = x_count(t);
    u32 from = n ? bound_y(t, key_x(t, m->x_first), 0, t->ny, 0) : 0u;
    u32 end = n ? bound_y(t, key_x(t, m->x_first + n - 1), from, t->ny, 1) : 0u;
    t_walk(t, m, n, from, end);
}

/* Counts the y that are below, and not above, each x; a range grows as it counts. A thread without
 * x has nothing to count. */
FN void t_count_all(const struct tiles *t, struct matches *m) {
    u32 n = x_count(t);
    IN_W key[TUPLE_VT];
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        key[k] = k < n ? key_x(t, m->x_first + k) : (IN_W)0;
        m->range[k] = 0;
    }
    u32 end = n ? t->ny : 0u;
    for (u32 j = 0; j < end; j++) {
        IN_W y = key_y(t, j);
        UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
            m->range[k] += (u32)(y <= key[k]) | (u32)(y < key[k]) << 16;
        }
    }
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 range = m->range[k];
        m->range[k] = k < n ? range_of(t, key[k], range >> 16, range & 0xffffu) : 0u;
    }
}

/* 3 */
FN void t_brute(const struct tiles *t, struct matches *m) {
    matches_begin(t, m);
    t_count_all(t, m);
}

/* 4 */
FN u32 hash_slot(IN_W key, u32 mask) {
    u64 x = (u64)key;
#if IN_BYTES == 16
    x ^= (u64)(key >> 64) * 0x9e3779b97f4a7c15ULL;
#endif
    x *= 0xd6e8feb86659fd93ULL;
    return (u32)(x >> 40) & mask;
}

/* s_table: HASH_SLOTS words; place of the first y of a key + 1, or 0. Two barriers. */
#define HASH_SLOTS 8192u
FN void b_hash(const struct tiles *t, struct matches *m, u32 *s_table) {
    u32 mask = 63u;
    while (mask + 1u < 2u * t->ny) {
        mask = 2u * mask + 1u;
    }
    for (u32 s = t_id(); s <= mask; s += JOIN_THREADS) {
        s_table[s] = 0;
    }
    b_sync();
    for (u32 j = t_id(); j < t->ny; j += JOIN_THREADS) {
        IN_W key = key_y(t, j);
        if (j == 0 || key_y(t, j - 1) != key) {
            u32 slot = hash_slot(key, mask);
            u32 held = atom_cas_u32(&s_table[slot], 0, j + 1u);
            TABLE_WALK(slot, mask, held, atom_cas_u32(&s_table[slot], 0, j + 1u), held)
        }
    }
    b_sync();
    matches_begin(t, m);
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        m->range[k] = 0;
        if (m->is_x >> k & 1u) {
            IN_W key = key_x(t, m->x_first + k);
            u32 slot = hash_slot(key, mask);
            u32 head = s_table[slot];
            TABLE_WALK(slot, mask, head, s_table[slot], head && key_y(t, head - 1u) != key)
            u32 lo = head ? head - 1u : 0u;
            u32 hi = lo;
            u32 step = 1;
            while (head && hi + step <= t->ny && key_y(t, hi + step - 1u) == key) {
                hi += step;
                step *= 2;
            }
            u32 end = hi + step < t->ny ? hi + step : t->ny;
            hi = head ? bound_y(t, key, hi, end, 1) : 0u;
            m->range[k] = range_of(t, key, lo, hi);
        }
    }
}

/* 5: the part of y that may hold the keys of a part of x. */
struct wire {
    u32 x_from, x_end;
    u32 from, end;
};

/* One half of a wire's x, of `half` elements at most, goes on with its share of the wire's y and a
 * little more; where that little is too little it goes on with all of it. */
FN void wire_halve(const struct tiles *t, struct wire *w, u32 half, u32 x_from) {
    u32 all = w->x_end - w->x_from;
    if (all <= half) {
        return; /* there is no other half */
    }
    u32 ys = w->end - w->from;
    u32 share = all == 2u * half ? ys >> 1 : ys * half / all; /* of the lower half */
    u32 more = ys / 16 + 4;
    if (x_from == w->x_from) {
        u32 end = w->from + share + more;
        w->x_end = x_from + half;
        if (end < w->end && key_y(t, end) > key_x(t, w->x_end - 1u)) {
            w->end = end;
        }
    } else {
        u32 from = share > more ? w->from + share - more : w->from;
        w->x_from = x_from;
        if (from > w->from && key_y(t, from - 1u) < key_x(t, x_from)) {
            w->from = from;
        }
    }
}

/* Beyond so many y for the x of a thread it leaves by the side exit. */
#define NETWORK_MOST (6u * TUPLE_VT)
FN void t_network(const struct tiles *t, struct matches *m) {
    matches_begin(t, m);
    u32 n = x_count(t);
    struct wire w = {0, t->nx, 0, t->ny};
    UNROLL for (u32 group = JOIN_THREADS / 2; group; group /= 2) {
        if (n) {
            wire_halve(t, &w, group * TUPLE_VT, (t_id() & ~(group - 1u)) * TUPLE_VT);
        }
    }
    if (n && w.end - w.from > NETWORK_MOST) {
        t_binary(t, m);
    } else {
        t_walk(t, m, n, w.from, w.end);
    }
}

#endif

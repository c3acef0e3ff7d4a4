/* rel_stage.h: how a worker joins two sorted tiles, besides the merge, for one type of word:
 * included once for each, as rel_word.h is.
 *
 * Counterparts of gpu/kernels/ctajoin.h, after Diamos et al.: both bounds of every x searched;
 * those of a block of x in registers; all against all; a hash table of the distinct keys of y; a
 * network that halves both sides until few are left. Each finds for every x of the tile the range
 * of y that it matches. */
#include "cpu/rel_int.h"

#ifndef W
#define W u32
#define WORD(name) name##_u32
#endif

struct WORD(stage) {
    const W *x, *y; /* of the tile */
    i32 nx, ny;
    u32 shift;
    struct rel_range *range;
    u16 *table; /* of STAGE_SLOTS: the place of a key's first y + 1 */
};

/* Place i of x matches places lo .. hi of y; the run of the first x may have begun before. */
static void WORD(stage_give)(const struct WORD(stage) * s, i32 i, i32 lo, i32 hi) {
    struct rel_range *r = s->range;
    bool before = lo == 0 && s->x[i] >> s->shift == s->x[0] >> s->shift;
    range_match(r, r->x_first + i, r->y_first + lo - (before ? r->back : 0), r->y_first + hi);
}

/* The first place of lo .. hi whose y is not below (upper: is above) the key. */
static i32 WORD(stage_bound)(const struct WORD(stage) * s, W key, i32 lo, i32 hi, bool upper) {
    while (lo < hi) {
        i32 mid = (lo + hi) / 2;
        W y = s->y[mid] >> s->shift;
        if (y < key || (upper && y == key)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void WORD(stage_binary)(const struct WORD(stage) * s, i32 first, i32 end) {
    for (i32 i = first; i < end; i++) {
        W key = s->x[i] >> s->shift;
        i32 lo = WORD(stage_bound)(s, key, 0, s->ny, false);
        WORD(stage_give)(s, i, lo, WORD(stage_bound)(s, key, lo, s->ny, true));
    }
}

/* How many y of a window are below, and not above, each of STAGE_BLOCK x: two sums a lane. */
static void WORD(stage_count)(const struct WORD(stage) * s, i32 first, i32 end, i32 from, i32 to) {
    W key[STAGE_BLOCK];
    i32 lo[STAGE_BLOCK];
    i32 hi[STAGE_BLOCK];
    for (i32 k = 0; k < STAGE_BLOCK; k++) {
        key[k] = s->x[MIN_OF(first + k, end - 1)] >> s->shift;
        lo[k] = hi[k] = from;
    }
    for (i32 j = from; j < to; j++) {
        W y = s->y[j] >> s->shift;
        for (i32 k = 0; k < STAGE_BLOCK; k++) {
            lo[k] += y < key[k];
            hi[k] += y <= key[k];
        }
    }
    for (i32 k = 0; k < end - first; k++) {
        WORD(stage_give)(s, first + k, lo[k], hi[k]);
    }
}

static void WORD(stage_blocked)(const struct WORD(stage) * s) {
    for (i32 first = 0; first < s->nx; first += STAGE_BLOCK) {
        i32 end = MIN_OF(first + STAGE_BLOCK, s->nx);
        W key[STAGE_BLOCK];
        for (i32 k = 0; k < end - first; k++) {
            key[k] = s->x[first + k] >> s->shift;
        }
        i32 lo = WORD(stage_bound)(s, key[0], 0, s->ny, false);
        i32 last = WORD(stage_bound)(s, key[end - first - 1], lo, s->ny, true);
        i32 hi = lo;
        for (i32 k = 0; k < end - first; k++) {
            if (k == 0 || key[k] != key[k - 1]) {
                for (lo = hi; lo < last && s->y[lo] >> s->shift < key[k];) {
                    lo++;
                }
                for (hi = lo; hi < last && s->y[hi] >> s->shift == key[k];) {
                    hi++;
                }
            }
            WORD(stage_give)(s, first + k, lo, hi);
        }
    }
}

static void WORD(stage_brute)(const struct WORD(stage) * s) {
    for (i32 first = 0; first < s->nx; first += STAGE_BLOCK) {
        WORD(stage_count)(s, first, MIN_OF(first + STAGE_BLOCK, s->nx), 0, s->ny);
    }
}

static u32 WORD(stage_slot)(W key) {
    u64 folded = (u64)key ^ (u64)((u128)key >> 64) * 0x9e3779b97f4a7c15ULL;
    return (u32)(folded * 0xd6e8feb86659fd93ULL >> 40) % STAGE_SLOTS;
}

static void WORD(stage_hash)(const struct WORD(stage) * s) {
    memset(s->table, 0, STAGE_SLOTS * sizeof *s->table);
    for (i32 j = 0; j < s->ny; j++) {
        W key = s->y[j] >> s->shift;
        if (j == 0 || s->y[j - 1] >> s->shift != key) {
            u32 slot = WORD(stage_slot)(key);
            while (s->table[slot]) {
                slot = (slot + 1) % STAGE_SLOTS;
            }
            s->table[slot] = (u16)(j + 1);
        }
    }
    for (i32 i = 0; i < s->nx; i++) {
        W key = s->x[i] >> s->shift;
        u32 slot = WORD(stage_slot)(key);
        while (s->table[slot] && s->y[s->table[slot] - 1] >> s->shift != key) {
            slot = (slot + 1) % STAGE_SLOTS;
        }
        i32 lo = MAX_OF(s->table[slot] - 1, 0);
        i32 hi = lo;
        while (s->table[slot] && hi < s->ny && s->y[hi] >> s->shift == key) {
            hi++;
        }
        WORD(stage_give)(s, i, lo, hi);
    }
}

/* The bounds of the share of y that x_from .. x_end of a wire goes on with: its part and a little
 * more; a side on which that was too little stays as it was. */
static struct stage_wire WORD(stage_part)(const struct WORD(stage) * s, struct stage_wire w,
                                          i32 x_from, i32 x_end) {
    struct stage_wire part = {x_from, x_end, w.from, w.end};
    i32 all = w.x_end - w.x_from;
    i32 low = w.from + (w.end - w.from) * (x_from - w.x_from) / all;
    i32 high = w.from + (w.end - w.from) * (x_end - w.x_from) / all;
    i32 more = (high - low) / 8 + 4;
    low = MAX_OF(low - more, w.from);
    high = MIN_OF(high + more, w.end);
    if (low > w.from && s->y[low - 1] >> s->shift < s->x[x_from] >> s->shift) {
        part.from = low;
    }
    if (high < w.end && s->y[high] >> s->shift > s->x[x_end - 1] >> s->shift) {
        part.end = high;
    }
    return part;
}

static void WORD(stage_network)(const struct WORD(stage) * s, struct stage_wire w) {
    struct stage_wire open[32]; /* halves still to come: one a level */
    i32 depth = 0;
    open[depth++] = w;
    while (depth) {
        w = open[--depth];
        i32 n = w.x_end - w.x_from;
        if (n > STAGE_BLOCK) {
            i32 mid = w.x_from + n / 2;
            open[depth++] = WORD(stage_part)(s, w, mid, w.x_end);
            open[depth++] = WORD(stage_part)(s, w, w.x_from, mid);
        } else if (w.end - w.from > STAGE_EXIT) {
            WORD(stage_binary)(s, w.x_from, w.x_end);
        } else if (n) {
            WORD(stage_count)(s, w.x_from, w.x_end, w.from, w.end);
        }
    }
}

/* The tile's x one after the other. x and y: the words at x_first and y_first. */
static void WORD(stage_join)(struct rel_range *r, u8 stage, const W *x, const W *y) {
    u16 table[STAGE_SLOTS];
    struct WORD(stage) s = {.x = x,
                            .y = y,
                            .nx = (i32)(r->x_end - r->x_first),
                            .ny = (i32)(r->y_end - r->y_first),
                            .shift = r->shift,
                            .range = r,
                            .table = table};
    switch (stage) {
    case REL_STAGE_BINARY:
        WORD(stage_binary)(&s, 0, s.nx);
        break;
    case REL_STAGE_BLOCKED:
        WORD(stage_blocked)(&s);
        break;
    case REL_STAGE_BRUTE:
        WORD(stage_brute)(&s);
        break;
    case REL_STAGE_HASH:
        WORD(stage_hash)(&s);
        break;
    default:
        WORD(stage_network)(&s, (struct stage_wire){0, s.nx, 0, s.ny});
        break;
    }
}

#undef W
#undef WORD

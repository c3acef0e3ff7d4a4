/* sets.h: union, intersection, difference and symmetric difference of ascending arrays in one pass.
 *
 * k_set_cuts parts both arrays into tiles along the balanced path (path.h), so that the k-th of
 * equal elements of a and the k-th of b are in one tile, and notes what lies on both sides of each
 * cut. A block takes one tile: each thread keeps what the operation keeps of its part, the tile's
 * count is published, and only then, while earlier tiles answer, what is kept is packed in shared
 * memory; it leaves in vectors at the output's own alignment.
 *
 * SET_WIRES: where no element of the tile repeats within its array, threads merge in registers
 * (wires.h). Tiles with repeated elements, tiles that span too much for words, and keys whose
 * equals may differ in bits are brought as they are and walked step by step.
 *
 * SET_PAGES: the arrays are rows of pages (pages.h), which are found by number; tiles are walked.
 *
 * The text defines WF_MIN_BLOCKS, PATH_ITEMS (SET_WIRES: 15 or 31), SET_THREADS, SET_OP, SET_WIRES,
 * SET_PAGES and SET_DISTINCT: keep only the first of equal elements of its array. */
#include "path.h"
#include "lookback.h"

#define SET_OP_UNION 0
#define SET_OP_INTERSECTION 1
#define SET_OP_DIFFERENCE 2
#define SET_OP_SYMMETRIC 3
#define KEEP_A (SET_OP != SET_OP_INTERSECTION)
#define KEEP_B (SET_OP == SET_OP_UNION || SET_OP == SET_OP_SYMMETRIC)
#define KEEP_BOTH (SET_OP == SET_OP_UNION || SET_OP == SET_OP_INTERSECTION)
#define SET_STEPS (PATH_ITEMS + 1) /* a star may add one */
#define SET_TILE (SET_THREADS * PATH_ITEMS)
#define SET_WARPS (SET_THREADS / 32)
#define VEC_KEYS (16 / KEY_BYTES)
#define COARSE 8 /* so many cuts lie between two that are searched for in whole arrays */

#if SET_PAGES
#include "pages.h"
typedef struct {
    const K *data;
    struct krel_pages pages;
} set_rows;
FN set_rows set_rows_of(const void *data, struct krel_pages pages) {
    set_rows rows;
    rows.data = (const K *)data;
    rows.pages = pages;
    return rows;
}
#define SET_AT(p, i) ((p).data[row_place(&(p).pages, (i))])
PATH_WORDS(paged, i64, 4, set_rows, SET_AT)
#define FAR(word) word##_paged
#else
typedef const K *set_rows;
#define set_rows_of(data, pages) ((const K *)(data))
#define FAR(word) word##_far
#endif
#define SET_A(args) set_rows_of((args)->a, (args)->a_pages)
#define SET_B(args) set_rows_of((args)->b, (args)->b_pages)

#if SET_WIRES
#define RAW K
#define RAW_BYTES KEY_BYTES
#define WIRE_THREADS SET_THREADS
#define WIRE_ITEMS PATH_ITEMS
#define WIRE_A_LAST (SET_OP != SET_OP_UNION)
#ifdef KEY_WHOLE
#define WIRE_WHOLE 1
#endif
#include "wires.h"
#endif

/* --- cuts --- */

FN i64 set_path(const struct kset *args, i64 diagonal) {
    i64 total = args->a_count + args->b_count;
    return FAR(path)(SET_A(args), args->a_count, SET_B(args), args->b_count,
                     diagonal < total ? diagonal : total, &args->order);
}

#if SET_WIRES
/* What lies on both sides of a cut: the least element behind it, the greatest before it. */
FN void note_bounds(const struct kset *args, i64 cut, i64 i, i64 j) {
    const K *a = (const K *)args->a;
    const K *b = (const K *)args->b;
    u32 in_a = i < args->a_count;
    K least = in_a ? a[i] : (K)0;
    if (j < args->b_count && (!in_a || key_less(b[j], least, &args->order))) {
        least = b[j];
    }
    K greatest = i > 0 ? a[i - 1] : (K)0;
    if (j > 0 && (i == 0 || key_less(greatest, b[j - 1], &args->order))) {
        greatest = b[j - 1];
    }
    ((K *)args->bounds)[2 * cut] = least;
    ((K *)args->bounds)[2 * cut + 1] = greatest;
}
#endif

KERNEL(k_set_cuts, struct kset, SET_THREADS) {
    SHARED(i64, s_coarse, SET_THREADS / COARSE + 1);
    i64 total = args.a_count + args.b_count;
    i64 first = (i64)t_block() * SET_THREADS;
    if (t_id() <= SET_THREADS / COARSE) {
        s_coarse[t_id()] = set_path(&args, (first + (i64)t_id() * COARSE) * SET_TILE);
    }
    b_sync();
    i64 tile = first + (i64)t_id();
    i64 diagonal = tile * SET_TILE;
    if (diagonal < total) {
        i64 next = (first + (i64)(t_id() / COARSE + 1u) * COARSE) * SET_TILE;
        i64 low = s_coarse[t_id() / COARSE]; /* a's elements never get fewer, nor do b's */
        i64 high = s_coarse[t_id() / COARSE + 1u];
        i64 b_high = (next < total ? next : total) - high;
        i64 b_low = (first + (i64)(t_id() / COARSE) * COARSE) * SET_TILE - low;
        low = diagonal - b_high > low ? diagonal - b_high : low;
        high = diagonal - b_low < high ? diagonal - b_low : high;
        set_rows a = SET_A(&args);
        set_rows b = SET_B(&args);
        low = FAR(path_in)(a, b, low, high, diagonal, &args.order);
        i64 cut = FAR(balance)(a, b, args.b_count, low, diagonal, &args.order);
        args.cuts[tile] = cut;
#if SET_WIRES
        note_bounds(&args, tile, cut >> 1, diagonal - (cut >> 1) + (cut & 1));
#endif
    } else if (diagonal < total + SET_TILE) {
        args.cuts[tile] = args.a_count * 2;
#if SET_WIRES
        note_bounds(&args, tile, args.a_count, args.b_count);
#endif
    }
}

/* --- a tile --- */

struct set_place { /* of a tile in both arrays */
    i64 i, j;
    u32 a_rows, b_rows;
};

FN struct set_place set_place_of(const struct kset *args, i64 tile) {
    i64 total = args->a_count + args->b_count;
    i64 cut = args->cuts[tile];
    i64 next = args->cuts[tile + 1];
    i64 next_diagonal = (tile + 1) * SET_TILE < total ? (tile + 1) * SET_TILE : total;
    struct set_place p;
    p.i = cut >> 1;
    p.j = tile * SET_TILE - p.i + (cut & 1);
    p.a_rows = (u32)((next >> 1) - p.i);
    p.b_rows = (u32)(next_diagonal - (next >> 1) + (next & 1) - p.j);
    return p;
}

struct set_tile {
    K *keys;                /* shared memory */
    u32 a_at, b_at;         /* where its elements of a start there, and those of b */
    u32 a_rows, b_rows;     /* how many */
    u32 a_before, b_before; /* whether the arrays have elements before them */
};

struct set_part { /* of a thread, in elements of the tile */
    u32 i, j, i_end, j_end;
};

struct set_shared { /* words of shared memory */
    u8 *tile;       /* set_shared in gpu_prim_merge.c */
    u32 *cuts;      /* one per thread and one more */
    u32 *sums;      /* one per warp */
    u64 *before;
};

#if SET_PAGES
/* Rows first .. first + rows to s: returns where the first is. */
FN u32 t_bring(K *s, set_rows from, i64 first, u32 rows, i64 count) {
    struct page_span span = page_span(&from.pages, first, (i64)rows);
    for (u32 k = t_id(); k < rows; k += SET_THREADS) {
        s[k] = from.data[row_near(&from.pages, span, first + (i64)k)];
    }
    UNUSED_WORD(count);
    return 0;
}
#else
/* Elements first .. first + rows of an array to s, in vectors, at their own alignment: returns
 * where the first is. Before it, SET_DISTINCT, the one before. */
FN u32 t_bring(K *s, const K *from, i64 first, u32 rows, i64 count) {
    u32 skew = (u32)first & (VEC_KEYS - 1u);
    i64 base = first - (i64)skew;
    for (u32 at = t_id() * VEC_KEYS; at < skew + rows; at += SET_THREADS * VEC_KEYS) {
        if (base + (i64)at + VEC_KEYS <= count) {
            store16(s + VEC_KEYS + at, load16(from + base + at));
        } else {
            for (u32 k = 0; k < VEC_KEYS && base + (i64)at + (i64)k < count; k++) {
                s[VEC_KEYS + at + k] = from[base + (i64)at + (i64)k];
            }
        }
    }
#if SET_DISTINCT
    if (t_id() == 0 && skew == 0 && first > 0) {
        s[VEC_KEYS - 1] = from[first - 1];
    }
#endif
    return VEC_KEYS + skew;
}
#endif

FN void t_bring_tile(struct set_tile *t, const struct kset *args, const struct set_place *p) {
    t->a_rows = p->a_rows;
    t->b_rows = p->b_rows;
    t->a_before = p->i > 0;
    t->b_before = p->j > 0;
    t->a_at = t_bring(t->keys, SET_A(args), p->i, t->a_rows, args->a_count);
    u32 a_end = (t->a_at + t->a_rows + VEC_KEYS - 1u) & ~(VEC_KEYS - 1u);
    t->b_at = a_end + t_bring(t->keys + a_end, SET_B(args), p->j, t->b_rows, args->b_count);
}

/* The end of a thread's part is where the next thread's begins. One barrier. */
FN void b_part_ends(struct set_part *p, const struct set_tile *t, u32 *s_cuts) {
    s_cuts[t_id()] = p->i << 16 | p->j;
    if (t_id() == 0) {
        s_cuts[SET_THREADS] = t->a_rows << 16 | t->b_rows;
    }
    b_sync();
    u32 end = s_cuts[t_id() + 1u];
    p->i_end = end >> 16;
    p->j_end = end & 65535u;
}

/* --- step by step --- */

/* Walks through a part; bit k of the result: step k kept key[k]. */
FN u32 set_walk(K *key, const struct set_tile *t, const struct set_part *p,
                const struct korder *o) {
    const K *s_a = t->keys + t->a_at;
    const K *s_b = t->keys + t->b_at;
    u32 i = p->i;
    u32 j = p->j;
    u32 kept = 0;
    K x = 0; /* what comes next of a, and of b */
    K y = 0;
    if (i < p->i_end) {
        x = s_a[i];
    }
    if (j < p->j_end) {
        y = s_b[j];
    }
    UNROLL for (u32 k = 0; k < SET_STEPS; k++) {
        u32 has_a = i < p->i_end;
        u32 has_b = j < p->j_end;
        u32 a_goes = has_a && (!has_b || !key_less(y, x, o));
        u32 b_goes = has_b && (!has_a || !key_less(x, y, o));
        u32 keep = a_goes ? (b_goes ? KEEP_BOTH : KEEP_A) : b_goes ? KEEP_B : 0;
        key[k] = a_goes ? x : y;
#if SET_DISTINCT
        if (keep && a_goes && (i || t->a_before)) {
            keep = !key_same(s_a[(i32)i - 1], x, o);
        } else if (keep && !a_goes && (j || t->b_before)) {
            keep = !key_same(s_b[(i32)j - 1], y, o);
        }
#endif
        kept |= keep << k;
        if (a_goes) {
            i++;
            if (i < p->i_end) {
                x = s_a[i];
            }
        }
        if (b_goes) {
            j++;
            if (j < p->j_end) {
                y = s_b[j];
            }
        }
    }
    return kept;
}

/* Where a thread's part begins, from its place on the path. */
FN void part_balance(struct set_part *p, const struct set_tile *t, const struct korder *o) {
    u32 diagonal = p->i + p->j;
    u32 cut = (u32)balance_near(t->keys + t->a_at, t->keys + t->b_at, (i32)t->b_rows, (i32)p->i,
                                (i32)diagonal, o);
    p->i = cut >> 1;
    p->j = diagonal - p->i + (cut & 1u);
}

/* --- the output --- */

/* How many of `total` elements from `base` on there is room for. */
FN u32 set_room(const struct kset *args, u64 base, u32 total) {
    i64 left = args->room - (i64)base;
    return left >= (i64)total ? total : left > 0 ? (u32)left : 0u;
}

FN void t_set_total(const struct kset *args, i64 tile, u64 total) {
    if (t_id() == 0 && (tile + 1) * SET_TILE >= args->a_count + args->b_count) {
        *args->total = total;
    }
}

FN vec16 vec_of_keys(const K *key) {
    vec16 v;
    UNROLL for (u32 q = 0; q < VEC_KEYS; q++) {
        UNROLL for (u32 w = 0; w < KEY_BYTES / 4; w++) {
            v.w[q * (KEY_BYTES / 4) + w] = (u32)(key[q] >> (w * 32 % (KEY_BYTES * 8)));
        }
    }
    return v;
}

/* The tile's list to the output: whole vectors but at the ends. KEY(x) makes a key of what the list
 * has. */
#define SET_WRITE(list, out, base, fits, KEY)                                            \
    {                                                                                    \
        u32 skew = (u32)(base) & (VEC_KEYS - 1u);                                        \
        u32 end = (fits) + skew;                                                         \
        K *to = (out) + ((base)-skew);                                                   \
        for (u32 at = t_id() * VEC_KEYS; at < end; at += SET_THREADS * VEC_KEYS) {       \
            if (at >= skew && at + VEC_KEYS <= end) {                                    \
                K key[VEC_KEYS];                                                         \
                UNROLL for (u32 q = 0; q < VEC_KEYS; q++) {                              \
                    key[q] = KEY((list)[at + q - skew]);                                 \
                }                                                                        \
                store_once16(to + at, vec_of_keys(key));                                 \
            } else {                                                                     \
                for (u32 i = at < skew ? skew : at; i < at + VEC_KEYS && i < end; i++) { \
                    to[i] = KEY((list)[i - skew]);                                       \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }

/* --- by wires --- */

#if SET_WIRES
/* Which wires are kept; `next_pairs`: the word behind the part is the pair of the last. */
FN u32 set_kept(const struct wire_bits *bits, u32 next_pairs) {
#if SET_OP == SET_OP_INTERSECTION
    u32 kept = bits->pair;
#elif SET_OP == SET_OP_UNION
    u32 kept = ~bits->pair;
#elif SET_OP == SET_OP_DIFFERENCE
    u32 kept = bits->last & ~bits->pair;
#else
    u32 kept = ~bits->pair & ~(bits->pair >> 1 | next_pairs << (WIRES - 1));
#endif
    UNUSED_WORD(next_pairs);
    return kept & bits->here;
}

/* By one thread: whether an array's first element in the tile equals the one before it. */
FN u32 set_goes_on(const struct kset *args, const struct set_place *p) {
#if SET_DISTINCT
    const K *a = (const K *)args->a + p->i;
    const K *b = (const K *)args->b + p->j;
    return (p->i > 0 && p->a_rows && key_same(a[-1], a[0], &args->order)) ||
           (p->j > 0 && p->b_rows && key_same(b[-1], b[0], &args->order));
#else
    UNUSED_WORD(args);
    UNUSED_WORD(p);
    return 0;
#endif
}

/* The whole tile; 0: keys repeat, nothing was done. */
#define SET_BY_WIRES(w, X)                                                             \
    FN u32 b_set_##w(const struct kset *args, i64 tile, const struct set_place *place, \
                     struct wire_tile *t, const struct set_shared *s) {                \
        if (b_any((i32)t_bring_##w(t, s->tile))) {                                     \
            return 0;                                                                  \
        }                                                                              \
        struct wire_part p = b_part_##w(s->tile, t, s->cuts);                          \
        X r[WIRES];                                                                    \
        X before = before_##w(s->tile, t, &p);                                         \
        load_##w(r, s->tile, t, &p, before);                                           \
        merge_##w(r);                                                                  \
        struct wire_bits bits = learn_##w(r, t, &p, before);                           \
        u32 next = 0;                                                                  \
        if (SET_OP == SET_OP_SYMMETRIC) {                                              \
            next = (r[WIRES - 1] ^ after_##w(s->tile, t, &p)) >> WIRE_LOW(t) == 1u;    \
        }                                                                              \
        u32 kept = set_kept(&bits, next);                                              \
        if (b_any((i32)(bits.repeated | (t_id() == 0 && set_goes_on(args, place))))) { \
            return 0;                                                                  \
        }                                                                              \
        u32 all;                                                                       \
        u32 to = b_sum_before_u32(bits_set_u32(kept), SET_THREADS, s->sums, &all);     \
        if (t_id() == 0) {                                                             \
            look_tell(args->state, tile, all);                                         \
        }                                                                              \
        X *list = (X *)(void *)s->tile;                                                \
        UNROLL for (u32 k = 0; k < WIRES; k++) {                                       \
            if (kept >> k & 1u) {                                                      \
                list[to] = r[k];                                                       \
                to++;                                                                  \
            }                                                                          \
        }                                                                              \
        u64 base = b_look_up(args->state, tile, all, s->before);                       \
        u32 fits = set_room(args, base, all);                                          \
        SET_WRITE(list, (K *)args->out, base, fits, KEY_##w)                           \
        t_set_total(args, tile, base + all);                                           \
        return 1;                                                                      \
    }
#define KEY_narrow(x) raw_narrow(t, x)
SET_BY_WIRES(narrow, u32)
#if KEY_BYTES > 4
#define KEY_wide(x) raw_wide(t, x)
SET_BY_WIRES(wide, u64)
#endif

FN u32 b_set_wires(const struct kset *args, i64 tile, const struct set_shared *s) {
    struct set_place p = set_place_of(args, tile);
    struct wire_tile t;
    K least = ((const K *)args->bounds)[2 * tile];
    K greatest = ((const K *)args->bounds)[2 * tile + 3];
    t.a = (const K *)args->a;
    t.b = (const K *)args->b;
    t.a_count = args->a_count;
    t.b_count = args->b_count;
    t.a_first = p.i;
    t.b_first = p.j;
    t.a_rows = p.a_rows;
    t.b_rows = p.b_rows;
    t.low = args->order.ignore_bits;
    t.down = t.b_before = 0;
    if (wires_fit(&t, least, greatest, 32)) {
        return b_set_narrow(args, tile, &p, &t, s);
    }
#if KEY_BYTES > 4
    if (wires_fit(&t, least, greatest, 64)) {
        return b_set_wide(args, tile, &p, &t, s);
    }
#endif
    return 0;
}
#endif

/* --- the whole --- */

#if SET_WIRES /* out of the way of what most tiles do: it wants other registers */
#define FN_WALKED FN_SLOW
#else
#define FN_WALKED FN
#endif
FN_WALKED void b_set_walked(struct kset args, i64 tile, struct set_shared s) {
    struct set_place place = set_place_of(&args, tile);
    struct set_tile t;
    t.keys = (K *)(void *)s.tile;
    t_bring_tile(&t, &args, &place);
    b_sync();
    u32 rows = t.a_rows + t.b_rows;
    u32 diagonal = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
    struct set_part p;
    p.i = (u32)path_near(t.keys + t.a_at, (i32)t.a_rows, t.keys + t.b_at, (i32)t.b_rows,
                         (i32)diagonal, &args.order);
    p.j = diagonal - p.i;
    part_balance(&p, &t, &args.order);
    b_part_ends(&p, &t, s.cuts);
    K key[SET_STEPS];
    u32 kept = set_walk(key, &t, &p, &args.order);
    u32 all;
    u32 to = b_sum_before_u32(bits_set_u32(kept), SET_THREADS, s.sums, &all);
    if (t_id() == 0) {
        look_tell(args.state, tile, all);
    }
    UNROLL for (u32 k = 0; k < SET_STEPS; k++) {
        if (kept >> k & 1u) {
            t.keys[to] = key[k];
            to++;
        }
    }
    u64 base = b_look_up(args.state, tile, all, s.before);
    u32 fits = set_room(&args, base, all);
#define KEY_ITSELF(x) (x)
    SET_WRITE(t.keys, (K *)args.out, base, fits, KEY_ITSELF)
    t_set_total(&args, tile, base + all);
}

KERNEL(k_set, struct kset, SET_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_sums, SET_WARPS);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_cuts, SET_THREADS + 1);
    i64 tile = b_ticket(args.ticket, s_ticket);
    struct set_shared s;
    s.tile = s_bytes;
    s.cuts = s_cuts;
    s.sums = s_sums;
    s.before = s_before;
#if SET_WIRES
    if (b_set_wires(&args, tile, &s)) {
        return;
    }
#endif
    b_set_walked(args, tile, s);
}

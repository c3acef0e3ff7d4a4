/* sets.h: union, intersection, difference and symmetric difference of ascending arrays in one pass.
 *
 * k_set_cuts parts both arrays into tiles along the balanced path (path.h), so that the k-th of
 * equal elements of a and the k-th of b are in one tile. A block takes one tile: it is brought into
 * shared memory in vectors, each thread keeps what the operation keeps of its part, the tile's
 * count is published, and only then, while earlier tiles answer, what is kept is packed in shared
 * memory; it leaves in vectors at the output's own alignment.
 *
 * SET_WIRES: where no element of the tile repeats within its array, a thread merges its elements in
 * registers by a network of minima and maxima (those of a ascending, those of b descending, the
 * element before them are a bitonic sequence) and compares neighbours: pairs are then elements that
 * equal the one before. Tiles with repeated elements, and keys whose equals may differ in bits, are
 * walked step by step.
 *
 * The text defines WF_MIN_BLOCKS, PATH_ITEMS (SET_WIRES: 15 or 31), SET_THREADS, SET_OP, SET_WIRES
 * and SET_DISTINCT: keep only the first of equal elements of its array. */
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

/* --- cuts --- */

FN i64 set_path(const struct kset *args, i64 diagonal) {
    i64 total = args->a_count + args->b_count;
    return path_far((const K *)args->a, args->a_count, (const K *)args->b, args->b_count,
                    diagonal < total ? diagonal : total, &args->order);
}

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
        const K *a = (const K *)args.a;
        const K *b = (const K *)args.b;
        low = path_in_far(a, b, low, high, diagonal, &args.order);
        args.cuts[tile] = balance_far(a, b, args.b_count, low, diagonal, &args.order);
    } else if (diagonal < total + SET_TILE) {
        args.cuts[tile] = args.a_count * 2;
    }
}

/* --- a tile --- */

struct set_tile {
    K *keys;                /* shared memory */
    u32 a_at, b_at;         /* where its elements of a start there, and those of b */
    u32 a_rows, b_rows;     /* how many */
    u32 a_before, b_before; /* whether the arrays have elements before them */
};

struct set_part { /* of a thread, in elements of the tile */
    u32 i, j, i_end, j_end;
};

/* Elements first .. first + rows of an array to s, in vectors, at their own alignment: returns
 * where the first is. Before it, SET_DISTINCT, the one before. */
FN u32 t_bring(K *s, const K *from, i64 first, u32 rows, i64 count) {
    u32 skew = (u32)first & (VEC_KEYS - 1u);
    i64 base = first - (i64)skew;
    for (u32 at = t_id() * VEC_KEYS; at < skew + rows; at += SET_THREADS * VEC_KEYS) {
        if (base + (i64)at + VEC_KEYS <= count) {
            store16(s + VEC_KEYS + at, load_once16(from + base + at));
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

FN void t_bring_tile(struct set_tile *t, const struct kset *args, i64 tile) {
    i64 total = args->a_count + args->b_count;
    i64 cut = args->cuts[tile];
    i64 next = args->cuts[tile + 1];
    i64 next_diagonal = (tile + 1) * SET_TILE < total ? (tile + 1) * SET_TILE : total;
    i64 i = cut >> 1;
    i64 j = tile * SET_TILE - i + (cut & 1);
    t->a_rows = (u32)((next >> 1) - i);
    t->b_rows = (u32)(next_diagonal - (next >> 1) + (next & 1) - j);
    t->a_before = i > 0;
    t->b_before = j > 0;
    t->a_at = t_bring(t->keys, (const K *)args->a, i, t->a_rows, args->a_count);
    u32 a_end = (t->a_at + t->a_rows + VEC_KEYS - 1u) & ~(VEC_KEYS - 1u);
    t->b_at = a_end + t_bring(t->keys + a_end, (const K *)args->b, j, t->b_rows, args->b_count);
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

/* --- by wires --- */

#if SET_WIRES
#define WIRES SET_STEPS
#define FROM_FLAGS (SET_OP == SET_OP_DIFFERENCE) /* a wire's element is a's */
#define FLAGS (FROM_FLAGS ? WIRES : 1)

/* What comes before the part in the merge, as a word that orders like it; 0 if nothing does. */
FN K word_before(const struct set_tile *t, const struct set_part *p, const struct korder *o) {
    K a_last = 0;
    K b_last = 0;
    if (p->i) {
        a_last = key_order(t->keys[t->a_at + p->i - 1u], o);
    }
    if (p->j) {
        b_last = key_order(t->keys[t->b_at + p->j - 1u], o);
    }
    return a_last > b_last ? a_last : b_last;
}

/* The element of wire k: offsets in bytes, because the choice between two is cheap then. */
FN K wire_element(const struct set_tile *t, u32 k, u32 a_n, u32 a_byte, u32 b_byte,
                  const struct korder *o) {
    u32 at = k < a_n ? a_byte + k * KEY_BYTES : b_byte - k * KEY_BYTES;
    return key_order(*(const K *)((const u8 *)t->keys + at), o);
}

/* The part's elements on the first wires, as words that order like them, what comes before them on
 * the others. Whether an element repeats within its array, or cannot be told from the nothing
 * before it. */
FN u32 wires_load(K *r, const struct set_tile *t, const struct set_part *p,
                  const struct korder *o) {
    u32 a_n = p->i_end - p->i;
    u32 rows = a_n + p->j_end - p->j;
    const K *a = t->keys + (t->a_at + p->i);
    const K *b = t->keys + (t->b_at + p->j);
    u32 a_byte = (t->a_at + p->i) * KEY_BYTES;
    u32 b_byte = (t->b_at + p->j + rows - 1u) * KEY_BYTES;
    K before = word_before(t, p, o);
    u32 repeated = 0;
    if (rows == PATH_ITEMS) {
        UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
            r[k] = wire_element(t, k, a_n, a_byte, b_byte, o);
        }
        r[PATH_ITEMS] = before;
        UNROLL for (u32 k = 1; k < PATH_ITEMS; k++) {
            repeated |= k != a_n && r[k - 1] == r[k];
        }
    } else { /* at a tile's end */
        UNROLL for (u32 k = 0; k < WIRES; k++) {
            r[k] = k < rows ? wire_element(t, k, a_n, a_byte, b_byte, o) : before;
        }
        UNROLL for (u32 k = 1; k < WIRES; k++) {
            repeated |= k < rows && k != a_n && r[k - 1] == r[k];
        }
    }
    if (a_n) {
        repeated |= (p->i || (SET_DISTINCT && t->a_before)) && a[-1] == a[0];
        repeated |= !(p->i | p->j) && key_order(a[0], o) == 0;
    }
    if (rows > a_n) {
        repeated |= (p->j || (SET_DISTINCT && t->b_before)) && b[-1] == b[0];
        repeated |= !(p->i | p->j) && key_order(b[0], o) == 0;
    }
    return repeated;
}

FN void wires_merge(K *r, u32 *from_a) {
    UNROLL for (u32 by = WIRES / 2; by; by /= 2) {
        UNROLL for (u32 k = 0; k < WIRES; k++) {
            if (!(k & by)) {
                K x = r[k];
                K y = r[k + by];
                r[k] = x < y ? x : y;
                r[k + by] = x < y ? y : x;
#if FROM_FLAGS
                u32 f = from_a[k];
                u32 g = from_a[k + by];
                from_a[k] = x < y ? f : g;
                from_a[k + by] = x < y ? g : f;
#endif
            }
        }
    }
    UNUSED_WORD(from_a);
}

/* As set_walk, of wires that are loaded. */
FN u32 set_wires(K *r, const struct set_tile *t, const struct set_part *p, const struct korder *o) {
    u32 rows = p->i_end - p->i + p->j_end - p->j;
    u32 there = rows ? ~0u >> (32 - WIRES) & ~0u << (WIRES - rows) : 0u; /* the last wires now */
    u32 from_a[FLAGS];
    UNROLL for (u32 k = 0; k < FLAGS; k++) {
        from_a[k] = k < p->i_end - p->i;
    }
    wires_merge(r, from_a);
    u32 same = rows == WIRES && r[0] == word_before(t, p, o); /* bits: equals the one before */
    UNROLL for (u32 k = 1; k < WIRES; k++) {
        same |= (u32)(r[k] == r[k - 1]) << k;
    }
#if SET_OP == SET_OP_INTERSECTION
    u32 kept = same & there;
#elif SET_OP == SET_OP_UNION
    u32 kept = ~same & there;
#else
    u32 kept = ~same & ~(same >> 1) & there;
    if (p->i_end > p->i && p->j_end < t->b_rows &&
        t->keys[t->a_at + p->i_end - 1u] == t->keys[t->b_at + p->j_end]) {
        kept &= ~(1u << (WIRES - 1)); /* the next thread has its pair */
    }
#endif
#if FROM_FLAGS
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        kept &= ~((from_a[k] ^ 1u) << k);
    }
#endif
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        r[k] = key_order(r[k], o);
    }
    return kept;
}
#endif

/* --- the whole --- */

/* What the thread keeps: bits of steps, and their keys. The tile is in shared memory. */
FN u32 b_set_keep(K *key, const struct set_tile *t, u32 *s_cuts, const struct korder *o) {
    u32 rows = t->a_rows + t->b_rows;
    u32 diagonal = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
    struct set_part p;
    p.i = (u32)path_near(t->keys + t->a_at, (i32)t->a_rows, t->keys + t->b_at, (i32)t->b_rows,
                         (i32)diagonal, o);
    p.j = diagonal - p.i;
#if SET_WIRES
    b_part_ends(&p, t, s_cuts);
    if (!b_any((i32)wires_load(key, t, &p, o))) {
        return set_wires(key, t, &p, o);
    }
#endif
    part_balance(&p, t, o);
    b_part_ends(&p, t, s_cuts);
    return set_walk(key, t, &p, o);
}

/* The sum over lower threads. One barrier. */
FN u32 b_set_place(u32 count, u32 *s_sums, u32 *out_total) {
    u32 upto = count;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        u32 other = w_up_u32(upto, by);
        upto += t_lane() >= by ? other : 0u;
    }
    if (t_lane() == 31u) {
        s_sums[t_id() >> 5] = upto;
    }
    b_sync();
    u32 before = upto - count;
    u32 total = 0;
    UNROLL for (u32 w = 0; w < SET_WARPS; w++) {
        u32 sum = s_sums[w];
        before += w < t_id() >> 5 ? sum : 0u;
        total += sum;
    }
    *out_total = total;
    return before;
}

/* The tile's list to the output, as much as there is room for: whole vectors but at the ends. */
FN void t_write_list(const K *list, K *out, u64 base, u32 total, i64 room) {
    i64 left = room - (i64)base;
    u32 fits = left >= (i64)total ? total : left > 0 ? (u32)left : 0u;
    u32 skew = (u32)base & (VEC_KEYS - 1u);
    u32 end = fits + skew;
    K *to = out + (base - skew);
    for (u32 at = t_id() * VEC_KEYS; at < end; at += SET_THREADS * VEC_KEYS) {
        if (at >= skew && at + VEC_KEYS <= end) {
            const u32 *words = (const u32 *)(list + (at - skew));
            vec16 v;
            UNROLL for (u32 k = 0; k < 4; k++) {
                v.w[k] = words[k];
            }
            store_once16(to + at, v);
        } else {
            for (u32 i = at < skew ? skew : at; i < at + VEC_KEYS && i < end; i++) {
                to[i] = list[i - skew];
            }
        }
    }
}

KERNEL(k_set, struct kset, SET_THREADS) {
    SHARED_BYTES(s_bytes); /* the tile: set_shared in gpu_prim_merge.c */
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_sums, SET_WARPS);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_cuts, SET_THREADS + 1);
    i64 tile = b_ticket(args.ticket, s_ticket);
    struct set_tile t;
    t.keys = (K *)s_bytes;
    t_bring_tile(&t, &args, tile);
    b_sync();
    K key[SET_STEPS];
    u32 kept = b_set_keep(key, &t, s_cuts, &args.order);
    u32 all;
    u32 to = b_set_place(bits_set_u32(kept), s_sums, &all);
    if (t_id() == 0) {
        look_tell(args.state, tile, all);
    }
    UNROLL for (u32 k = 0; k < SET_STEPS; k++) {
        if (kept >> k & 1u) {
            t.keys[to] = key[k];
            to++;
        }
    }
    u64 before = b_look_up(args.state, tile, all, s_before);
    t_write_list(t.keys, (K *)args.out, before, all, args.room);
    if (t_id() == 0 && (tile + 1) * SET_TILE >= args.a_count + args.b_count) {
        *args.total = before + all;
    }
}

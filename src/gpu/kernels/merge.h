/* merge.h: merges of ascending arrays, and the merge sort made of them; stable.
 *
 * k_merge brings a tile's elements into shared memory, where each thread finds its own part of the
 * merge and does it one element at a time. Payload stays where it is until the order is known and
 * is fetched from the few lines it lies in. k_merge_block sorts tiles: in registers, then by merges
 * in shared memory. Integers without payload are merged by merge_words.h. The text defines
 * PATH_ITEMS, PAYLOAD (bytes, 0 = none). */
#include "path.h"

#define MERGE_THREADS PATH_THREADS
#define MERGE_TILE PATH_TILE
#include "merge_cuts.h"

#if PAYLOAD
typedef WORD_OF(PAYLOAD) P;
#endif

struct spans { /* of two ascending runs of a tile */
    u32 a, a_end, b, b_end;
};

/* ITEMS elements of the merge of both; `from` gets their places in the tile. */
FN void merge_serial(K *key, u32 *from, const K *s_keys, struct spans s, const struct korder *o) {
    u32 i = s.a;
    u32 j = s.b;
    K x = 0;
    K y = 0;
    if (i < s.a_end) {
        x = s_keys[i];
    }
    if (j < s.b_end) {
        y = s_keys[j];
    }
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        u32 take_b = j < s.b_end && (i >= s.a_end || key_less(y, x, o));
        from[k] = take_b ? j : i;
        key[k] = take_b ? y : x;
        if (take_b) {
            j++;
            if (j < s.b_end) {
                y = s_keys[j];
            }
        } else {
            i++;
            if (i < s.a_end) {
                x = s_keys[i];
            }
        }
    }
}

KERNEL(k_merge, struct kmerge, PATH_THREADS) {
    SHARED(K, s_keys, PATH_TILE);
    struct merge_place at_tile = merge_place_of(&args, (i64)t_block());
    struct merge_pair pair = at_tile.pair;
    const K *a = (const K *)args.a + pair.first;
    const K *b = merge_b(&args, &pair);
    i64 row = at_tile.row;
    i64 i = at_tile.i;
    i64 j = at_tile.j;
    u32 rows = at_tile.rows;
    u32 a_rows = at_tile.a_rows;
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        s_keys[k] = k < a_rows ? a[i + k] : b[j + (k - a_rows)];
    }
    b_sync();
    K key[PATH_ITEMS];
    u32 from[PATH_ITEMS];
    u32 mine = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
    u32 at = (u32)path_near(s_keys, (i32)a_rows, s_keys + a_rows, (i32)(rows - a_rows), (i32)mine,
                            &args.order);
    struct spans mine_of = {at, a_rows, a_rows + mine - at, rows};
    merge_serial(key, from, s_keys, mine_of, &args.order);
    b_sync();
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        if (mine + k < rows) {
            s_keys[mine + k] = key[k];
        }
    }
    b_sync();
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        ((K *)args.out)[row + k] = s_keys[k];
    }
#if PAYLOAD
    u32 *s_from = (u32 *)(void *)s_keys;
    const P *a_payload = (const P *)args.a_payload + pair.first;
    const P *b_payload = args.run ? a_payload + pair.a_n : (const P *)args.b_payload;
    b_sync();
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        if (mine + k < rows) {
            s_from[mine + k] = from[k];
        }
    }
    b_sync();
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        u32 f = s_from[k];
        ((P *)args.out_payload)[row + k] =
            f < a_rows ? a_payload[i + f] : b_payload[j + (f - a_rows)];
    }
#endif
}

/* The thread's own elements, ascending; those from `n` on are not there. */
FN void sort_own(K *key, u32 *from, u32 n, const struct korder *o) {
    UNROLL for (u32 round = 0; round < PATH_ITEMS; round++) {
        UNROLL for (u32 k = round & 1u; k + 1u < PATH_ITEMS; k += 2u) {
            if (k + 1u < n && key_less(key[k + 1u], key[k], o)) {
                K other = key[k];
                u32 place = from[k];
                key[k] = key[k + 1u];
                from[k] = from[k + 1u];
                key[k + 1u] = other;
                from[k + 1u] = place;
            }
        }
    }
}

KERNEL(k_merge_block, struct kmerge, PATH_THREADS) {
    SHARED(K, s_keys, PATH_TILE);
    SHARED(u32, s_from, PATH_TILE);
    i64 row = (i64)t_block() * PATH_TILE;
    u32 rows = args.a_count - row < PATH_TILE ? (u32)(args.a_count - row) : PATH_TILE;
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        s_keys[k] = ((const K *)args.a)[row + k];
    }
    b_sync();
    K key[PATH_ITEMS];
    u32 from[PATH_ITEMS];
    u32 mine = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
    u32 own = rows - mine < PATH_ITEMS ? rows - mine : PATH_ITEMS;
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        from[k] = mine + k;
        if (k < own) {
            key[k] = s_keys[mine + k];
        }
    }
    sort_own(key, from, own, &args.order);
    for (u32 width = 1; width < PATH_THREADS; width *= 2) {
        b_sync();
        UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
            if (k < own) {
                s_keys[mine + k] = key[k];
                s_from[mine + k] = from[k];
            }
        }
        b_sync();
        u32 first = (t_id() & ~(2u * width - 1u)) * PATH_ITEMS;
        first = first < rows ? first : rows;
        u32 middle = first + width * PATH_ITEMS < rows ? first + width * PATH_ITEMS : rows;
        u32 end = middle + width * PATH_ITEMS < rows ? middle + width * PATH_ITEMS : rows;
        u32 at = (u32)path_near(s_keys + first, (i32)(middle - first), s_keys + middle,
                                (i32)(end - middle), (i32)(mine - first), &args.order);
        struct spans mine_of = {first + at, middle, middle + (mine - first - at), end};
        merge_serial(key, from, s_keys, mine_of, &args.order);
        UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
            if (k < own) {
                from[k] = s_from[from[k]];
            }
        }
    }
    b_sync();
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        if (k < own) {
            s_keys[mine + k] = key[k];
            s_from[mine + k] = from[k];
        }
    }
    b_sync();
    for (u32 k = t_id(); k < rows; k += PATH_THREADS) {
        ((K *)args.out)[row + k] = s_keys[k];
#if PAYLOAD
        ((P *)args.out_payload)[row + k] = ((const P *)args.a_payload)[row + s_from[k]];
#endif
    }
}

/* join_wires.h: part of reljoin.h: a tile in which no key repeats, merged in registers (wires.h). */
#ifndef WF_JOIN_WIRES_H
#define WF_JOIN_WIRES_H

#define RAW IN_W
#define RAW_BYTES IN_BYTES
#define WIRE_THREADS JOIN_THREADS
#define WIRE_ITEMS TUPLE_VT
#define WIRE_A_LAST (!KIND_UNION) /* then an x meets the y before it; a union keeps every x */
#include "wires.h"

#define LIST_ROWS (KIND_OUTER ? TILE_ROWS + 1 : TILE_ROWS / 2 + 1) /* most rows of pairs */

/* Which wires give a row; `met`: what is behind the part is the partner of its last y. */
FN u32 join_kept(const struct wire_bits *bits, u32 met) {
    u32 kept = 0;
    if (KIND_UNION) {
        kept = ~bits->pair & ~(met << (WIRES - 1));
    } else {
        if (KIND & (REL_PAIRS | REL_X_ONCE)) {
            kept |= bits->pair;
        }
        if (KIND & REL_X_ALONE) {
            kept |= bits->last & ~bits->pair;
        }
        if (KIND & REL_Y_ALONE) {
            kept |= ~bits->last & ~(bits->pair >> 1 | met << (WIRES - 1));
        }
    }
    return kept & bits->here;
}

/* Whether the tile's last y meets the x behind the tile. */
FN u32 last_y_meets(const struct krel_join *a, const struct tiles *t, struct place p) {
    return t->has_next && t->ny &&
           ((const IN_W *)a->y)[p.y + (i64)t->ny - 1] >> t->shift == t->next;
}

/* Places, as t_stage_one has them. */
FN void t_stage_places(const struct wire_bits *bits, const struct wire_part *part, u32 kept,
                       u32 row, u32 *s_rows) {
    u32 skip = WIRES - (part->i_end - part->i + part->j_end - part->j);
    u32 is_x = bits->last & bits->here;
    UNROLL for (u32 k = 0; k < WIRES; k++) {
        if (kept >> k & 1u) {
            u32 xs = bits_set_u32(is_x & ((1u << k) - 1u)); /* before it */
            u32 xi = part->i + xs;
            u32 y = Y_BIAS + part->j + k - skip - xs;
            u32 pair = bits->pair >> k & 1u ? y - 1u : NO_Y;
            if ((KIND & REL_Y_ALONE) && !(is_x >> k & 1u)) {
                pair = y;
                xi = NO_X;
            }
            s_rows[row++] = xi | pair << 16;
        }
    }
}

/* t_stage_words: what rows are made of: the word of each; of pairs that of x and in a second list
 * that of y, 0 where there is none.
 * b_join: the whole tile; 0: keys repeat, nothing was done. */
#define JOIN_BY_WIRES(w, X)                                                                    \
    FN void t_stage_##w(const X *r, const struct wire_bits *bits, X before, u32 kept, u32 row, \
                        X *list) {                                                             \
        UNROLL for (u32 k = 0; k < WIRES; k++) {                                               \
            if (kept >> k & 1u) {                                                              \
                u32 is_x = !(KIND & REL_Y_ALONE) || bits->last >> k & 1u;                      \
                u32 pair = !KIND_OUTER || bits->pair >> k & 1u;                                \
                X y = k ? r[k - 1] : before;                                                   \
                list[row] = (KIND & REL_PAIRS) && !is_x ? (X)0 : r[k];                         \
                if (KIND & REL_PAIRS) {                                                        \
                    list[LIST_ROWS + row] = !is_x ? r[k] : pair ? y : (X)0;                    \
                }                                                                              \
                row++;                                                                         \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
    FN u32 b_join_##w(const struct krel_join *args, i64 tile, const struct tiles *t,           \
                      struct place p, struct wire_tile *wt, const struct join_shared *s,       \
                      u64 *clock) {                                                            \
        if (b_any((i32)t_bring_##w(wt, s->tile))) {                                            \
            return 0;                                                                          \
        }                                                                                      \
        profile(args, 0, clock);                                                               \
        struct wire_part part = b_part_##w(s->tile, wt, s->cuts);                              \
        X r[WIRES];                                                                            \
        X before = before_##w(s->tile, wt, &part);                                             \
        load_##w(r, s->tile, wt, &part, before);                                               \
        merge_##w(r);                                                                          \
        struct wire_bits bits = learn_##w(r, wt, &part, before);                               \
        u32 met = 0;                                                                           \
        if (KIND & REL_Y_ALONE) {                                                              \
            if (part.i_end == t->nx && part.j_end == t->ny) {                                  \
                met = last_y_meets(args, t, p);                                                \
            } else if (!KIND_UNION) {                                                          \
                met = (r[WIRES - 1] ^ after_##w(s->tile, wt, &part)) >> WIRE_LOW(wt) == 1u;    \
            }                                                                                  \
        }                                                                                      \
        u32 kept = join_kept(&bits, met);                                                      \
        if (b_any((i32)bits.repeated)) {                                                       \
            return 0;                                                                          \
        }                                                                                      \
        u32 all;                                                                               \
        u32 row = b_sum_before_u32(bits_set_u32(kept), JOIN_THREADS, s->counts, &all);         \
        if (t_id() == 0) {                                                                     \
            look_tell(args->state, tile, all);                                                 \
        }                                                                                      \
        X *list = (X *)(void *)s->tile;                                                        \
        JOIN_STAGE_##w;                                                                        \
        profile(args, 1, clock);                                                               \
        i64 base = (i64)b_look_up(args->state, tile, all, s->before);                          \
        profile(args, 2, clock);                                                               \
        if (t_id() == 0 && tile == args->tiles - 1) {                                          \
            args->counters[REL_TOTAL] = (u64)base + all;                                       \
        }                                                                                      \
        u32 rows = rows_that_fit(args, base, all);                                             \
        JOIN_WRITE_##w profile(args, 3, clock);                                                \
        return 1;                                                                              \
    }

#define JOIN_STAGE_narrow JOIN_STAGE(narrow)
#define JOIN_WRITE_narrow JOIN_WRITE(narrow)
#define JOIN_STAGE_wide JOIN_STAGE(wide)
#define JOIN_WRITE_wide JOIN_WRITE(wide)
#define JOIN_WIDE (!KIND_OUTER || IN_BYTES != 8) /* whose lists fit the tile */

JOIN_BY_WIRES(narrow, u32)
#if IN_BYTES > 4
JOIN_BY_WIRES(wide, u64)
#endif

FN u32 b_join_wires(const struct krel_join *args, i64 tile, const struct join_shared *s,
                    u64 *clock) {
    struct tiles t;
    struct place p = tile_open(args, tile, &t);
    struct wire_tile wt;
    IN_W least = ((const IN_W *)args->bounds)[2 * tile];
    IN_W greatest = ((const IN_W *)args->bounds)[2 * tile + 3];
    wt.a = (const IN_W *)args->x;
    wt.b = (const IN_W *)args->y;
    wt.a_count = args->x_count;
    wt.b_count = args->y_count;
    wt.a_first = p.x;
    wt.b_first = p.y;
    wt.a_rows = t.nx;
    wt.b_rows = t.ny;
    wt.b_before = !KIND_UNION && t.back == 1;
    wt.low = args->low;
    wt.down = args->down;
    if ((!KIND_UNION && t.back > 1) || (args->backs[tile] & 1)) {
        return 0;
    }
    if (wires_fit(&wt, least, greatest, 32)) {
        return b_join_narrow(args, tile, &t, p, &wt, s, clock);
    }
#if IN_BYTES > 4
    if (JOIN_WIDE && wires_fit(&wt, least, greatest, 64)) {
        return b_join_wide(args, tile, &t, p, &wt, s, clock);
    }
#endif
    return 0;
}

#endif

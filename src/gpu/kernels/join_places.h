/* join_places.h: part of reljoin.h: a row of the result is the places of its x and y. */
#ifndef WF_JOIN_PLACES_H
#define WF_JOIN_PLACES_H

#define NO_INDEX ((INDEX) ~(INDEX)0)

/* One row of output: places in the inputs, -1 for none. */
FN void put_row(const struct krel_join *a, i64 at, i64 x, i64 y) {
    ((INDEX *)a->out)[at] = (INDEX)x;
    ((INDEX *)a->out_y)[at] = (INDEX)y;
}

/* Pairs of staged places to the output. */
FN void b_gather(const struct krel_join *a, struct place p, i64 base, u32 rows, const u32 *s_rows) {
    i64 y_first = p.y - (i64)Y_BIAS;
#define ROW_X(r) ((s_rows[r] & 0xffffu) == NO_X ? NO_INDEX : (INDEX)(p.x + (s_rows[r] & 0xffffu)))
#define ROW_Y(r) (s_rows[r] >> 16 == NO_Y ? NO_INDEX : (INDEX)(y_first + (s_rows[r] >> 16)))
    PUT_ROWS(INDEX, (i32)(16 / sizeof(INDEX)), a->out, base, rows, ROW_X)
    PUT_ROWS(INDEX, (i32)(16 / sizeof(INDEX)), a->out_y, base, rows, ROW_Y)
}

/* What a tile merged by wires stages and writes: see JOIN_BY_WIRES. */
#define JOIN_STAGE(w) t_stage_places(&bits, &part, kept, row, (u32 *)(void *)list)
#define JOIN_WRITE(w) b_gather(args, p, base, rows, (const u32 *)(void *)list);

#endif

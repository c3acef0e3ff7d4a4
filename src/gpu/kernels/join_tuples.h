/* join_tuples.h: part of reljoin.h: a row of the result is a tuple, made of the words of its x and
 * y. */
#ifndef WF_JOIN_TUPLES_H
#define WF_JOIN_TUPLES_H

/* The tuple of a pair, of an x alone, of a y alone. */
FN OUT_W row_word(const struct krel_join *a, u32 has_x, u32 has_y, IN_W x, IN_W y) {
    const struct rel_combine *c = &a->combine;
    OUT_W word = 0;
    if (has_x) {
        word = word_move(x, &c->x);
        if ((KIND & REL_X_ALONE) && !has_y) {
            word |= (OUT_W)WIDE_OF(c->no_y_low, c->no_y_high);
        }
    } else {
        word = word_move(y, &c->key) | (OUT_W)WIDE_OF(c->no_x_low, c->no_x_high);
    }
    if (has_y) {
        word |= word_move(y, &c->y);
    }
    return word;
}

/* One row of output: places in the inputs, -1 for none. */
FN void put_row(const struct krel_join *a, i64 at, i64 x, i64 y) {
    IN_W of_x = x < 0 ? (IN_W)0 : x_word(a, x);
    IN_W of_y = y < 0 ? (IN_W)0 : y_word(a, y);
    ((OUT_W *)a->out)[at] = row_word(a, x >= 0, y >= 0, of_x, of_y);
}

/* Words come from the inputs once more: pairs are staged where they were. */
FN OUT_W staged_row(const struct krel_join *a, struct place p, u32 pair) {
    u32 xi = pair & 0xffffu;
    u32 yi = pair >> 16;
    u32 has_x = !(KIND & REL_Y_ALONE) || xi != NO_X;
    u32 has_y = (KIND & (REL_PAIRS | REL_Y_ALONE)) && yi != NO_Y;
    IN_W of_x = has_x ? x_word(a, p.x + (i64)xi) : (IN_W)0;
    IN_W of_y = has_y ? y_word(a, p.y + (i64)yi - (i64)Y_BIAS) : (IN_W)0;
    return row_word(a, has_x, has_y, of_x, of_y);
}

FN void b_gather(const struct krel_join *a, struct place p, i64 base, u32 rows, const u32 *s_rows) {
#define ROW_WORD(r) staged_row(a, p, s_rows[r])
    PUT_ROWS(OUT_W, OUT_VEC, a->out, base, rows, ROW_WORD)
}

/* What a tile merged by wires stages and writes: see JOIN_BY_WIRES. */
#define JOIN_STAGE(w) t_stage_##w(r, &bits, before, kept, row, list)
#define JOIN_WRITE(w) PUT_ROWS(OUT_W, OUT_VEC, args->out, base, rows, ROW_##w)
#define ROW_OF(w, r)                                                                         \
    ((KIND & REL_PAIRS) ? row_word(args, !(KIND & REL_Y_ALONE) || list[r] != 0,              \
                                   !(KIND & REL_X_ALONE) || list[LIST_ROWS + (r)] != 0,      \
                                   raw_##w(wt, list[r]), raw_##w(wt, list[LIST_ROWS + (r)])) \
                        : row_word(args, KIND_UNION ? !(list[r] >> WIRE_LOW(wt) & 1u) : 1u,  \
                                   KIND_UNION && (list[r] >> WIRE_LOW(wt) & 1u),             \
                                   raw_##w(wt, list[r]), raw_##w(wt, list[r])))
#define ROW_narrow(r) ROW_OF(narrow, r)
#define ROW_wide(r) ROW_OF(wide, r)

#endif

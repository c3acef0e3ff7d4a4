/* merge_cuts.h: where each tile of a merge begins in both inputs.
 *
 * The inputs are two arrays, or neighbouring runs of one: a step of the merge sort. A tile lies
 * within one pair of runs, because runs are so many tiles long. One thread finds one cut, all at
 * once, before the merge: a tile that searched for itself would wait for some sixty dependent
 * reads. The text defines MERGE_THREADS and MERGE_TILE. */
#ifndef WF_MERGE_CUTS_H
#define WF_MERGE_CUTS_H

#include "path.h"

struct merge_pair { /* two runs, and where they lie in the input */
    i64 first, a_n, b_n;
};
FN struct merge_pair merge_pair_of(const struct kmerge *m, i64 row) {
    struct merge_pair pair;
    pair.first = 0;
    pair.a_n = m->a_count;
    pair.b_n = m->b_count;
    if (m->run) {
        pair.first = row / (2 * m->run) * (2 * m->run);
        i64 left = m->a_count - pair.first;
        pair.a_n = left < m->run ? left : m->run;
        pair.b_n = left - pair.a_n < m->run ? left - pair.a_n : m->run;
    }
    return pair;
}
FN const K *merge_b(const struct kmerge *m, const struct merge_pair *pair) {
    return m->run ? (const K *)m->a + pair->first + pair->a_n : (const K *)m->b;
}

KERNEL(k_merge_cuts, struct kmerge, MERGE_THREADS) {
    i64 total = args.a_count + (args.run ? 0 : args.b_count);
    i64 tile = (i64)t_block() * t_count() + t_id();
    i64 row = tile * MERGE_TILE;
    if (row < total) {
        struct merge_pair pair = merge_pair_of(&args, row);
        args.cuts[tile] = path_far((const K *)args.a + pair.first, pair.a_n, merge_b(&args, &pair),
                                   pair.b_n, row - pair.first, &args.order);
    }
}

/* A tile's part of a pair: elements from i on of its first run, from j on of its second. */
struct merge_place {
    struct merge_pair pair;
    i64 row, i, j;
    u32 rows, a_rows;
};
FN struct merge_place merge_place_of(const struct kmerge *m, i64 tile) {
    struct merge_place p;
    i64 total = m->a_count + (m->run ? 0 : m->b_count);
    p.row = tile * MERGE_TILE;
    p.pair = merge_pair_of(m, p.row);
    i64 end = p.row + MERGE_TILE < total ? p.row + MERGE_TILE : total;
    p.i = m->cuts[tile];
    p.j = p.row - p.pair.first - p.i;
    i64 i_end = end - p.pair.first == p.pair.a_n + p.pair.b_n ? p.pair.a_n : m->cuts[tile + 1];
    p.rows = (u32)(end - p.row);
    p.a_rows = (u32)(i_end - p.i);
    return p;
}

#endif

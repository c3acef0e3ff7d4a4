/* agg_runs.h: aggregation of rows that come in the order of their key: every run is a group. */
#ifndef WF_CPU_AGG_RUNS_H
#define WF_CPU_AGG_RUNS_H

#include "cpu/agg_parts.h"
#include "cpu/cpu_int.h"

/* The runs of one worker. Those of the morsel at hand are columns in `memory`; whenever they fill
 * it or the next morsel begins, they become a piece: a chunk of key and words, whose `order` tells
 * its place among all pieces. */
struct agg_runs {
    i64 *memory; /* (1 + word_count) columns of cap words */
    i64 bytes;
    i64 cap;
    i64 count; /* runs in memory; the last one is still open */
    i64 morsel, piece;
    VEC(struct chunk *) pieces;
};

bool runs_init(struct agg_runs *runs, struct memory *mem, const struct sink *sink, i64 vector_rows);
/* Releases the pieces, too. */
void runs_fini(struct agg_runs *runs, struct memory *mem);
enum runs_end { RUNS_TAKEN, RUNS_DESCEND, RUNS_REFUSED };
/* The active rows of a vector. DESCEND: a key is less than the one before it, and nothing was
 * taken. */
enum runs_end runs_consume(struct worker *w, const struct sink *sink, struct agg_runs *runs,
                           struct frame *fr, const i64 *key);
/* What is in memory becomes a piece; false when memory is refused. */
bool runs_flush(struct worker *w, const struct sink *sink, struct agg_runs *runs);
/* Puts pieces in order and merges groups that go on from one to the next; pieces that lost their
 * only row are released. False when they overlap: then they are partial states like any others. */
bool runs_join(struct chunk **pieces, i64 *count, const struct sink *sink);
/* The rows of a piece as partial states; false when memory is refused. */
bool runs_to_parts(struct agg_parts *parts, const struct chunk *piece);

#endif

/* prim_match.h: what the files of the CPU's joins share.
 *
 * Keys of four bytes are widened to words as they are read, so that every loop exists once; tasks
 * are blocks of probing rows, parts, or blocks of the result. Rows of the result are collected as
 * pairs of positions and written a column at a time. */
#ifndef WF_CPU_PRIM_MATCH_H
#define WF_CPU_PRIM_MATCH_H

#include "cpu/cpu_int.h"
#include "prim/match.h"

enum {
    MATCH_ROWS = 1 << 14, /* of one task */
    MATCH_BATCH = 512     /* pairs written at once */
};

static inline u64 key_at(const void *keys, i32 bytes, i64 i) {
    return bytes == 8 ? ((const u64 *)keys)[i] : ((const u32 *)keys)[i];
}

/* Both sides of a join, probing first; one argument for all tasks. */
struct match {
    struct exec *x;
    struct prim_join *join;
    const struct join_out *out;
    const struct join_arrays *probe, *built;
    i64 probe_count, built_count;
    i32 bytes; /* of a key */
    u64 flip;
    u64 width;
    b8 listed;       /* positions of the result go through the sides' lists */
    i64 first, rows; /* the window of the result */
    _Atomic i64 total;
    _Atomic i32 flag; /* duplicates, or a part too large */
    _Atomic u64 low, high_not;
};
void match_init(struct match *m, struct prim_job *job, struct prim_join *join,
                const struct join_out *out, bool listed);
static inline u64 probe_word(const struct match *m, i64 i) {
    return key_at(m->probe->keys, m->bytes, i) ^ m->flip;
}
/* How many of n ascending keys are below the word, with `upper` not above it; without branches that
 * could be foretold wrongly. */
#define MATCH_SEARCH(type)                                                                       \
    static inline i64 search_##type(const type *keys, i64 n, type flip, type word, bool upper) { \
        i64 at = 0;                                                                              \
        while (n > 1) {                                                                          \
            i64 half = n / 2;                                                                    \
            type x = keys[at + half - 1] ^ flip;                                                 \
            at += (upper ? x <= word : x < word) ? half : 0;                                     \
            n -= half;                                                                           \
        }                                                                                        \
        type x = n > 0 ? keys[at] ^ flip : 0;                                                    \
        return at + (n > 0 && (upper ? x <= word : x < word));                                   \
    }
MATCH_SEARCH(u32)
MATCH_SEARCH(u64)
#undef MATCH_SEARCH
static inline i64 match_search(const struct match *m, const void *keys, i64 first, i64 n, u64 word,
                               bool upper) {
    return m->bytes == 8 ? search_u64((const u64 *)keys + first, n, m->flip, word, upper)
                         : search_u32((const u32 *)keys + first, n, (u32)m->flip, (u32)word, upper);
}
/* The last word of a run that begins at `word`. */
static inline u64 word_end(const struct match *m, u64 word) {
    u64 most = m->bytes == 8 ? ~0ULL : 0xffffffffULL;
    return m->width > most - word ? most : word + m->width;
}
static inline void run_put(const struct match *m, i64 row, i64 first, i64 end) {
    m->join->start[row] = end > first ? (u32)first : JOIN_NONE;
    m->join->offset[row] = join_rows(m->join->kind, (u64)(end - first));
}

/* Pairs of positions on their way into the result. */
struct pairs {
    struct match *m;
    i32 count;
    u32 p[MATCH_BATCH], b[MATCH_BATCH];
    u64 value[MATCH_BATCH]; /* what the table had */
};
/* Writes them from row `to` of the result on, as far as there is room. */
void pairs_write(struct pairs *pairs, i64 to);
/* Takes places at the end of the result for them. */
void pairs_flush(struct pairs *pairs);
static inline void pairs_add(struct pairs *pairs, i64 p, u32 b, u64 value) {
    pairs->p[pairs->count] = (u32)p;
    pairs->b[pairs->count] = b;
    pairs->value[pairs->count] = value;
    if (++pairs->count == MATCH_BATCH) {
        pairs_flush(pairs);
    }
}

/* prim_match_table.c */
FALLIBLE cpu_match_build(struct prim_job *job, struct prim_join *join, bool *out_duplicates);
FALLIBLE cpu_match_group(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_runs_grouped(struct prim_job *job, struct prim_join *join);
void cpu_match_rush_table(struct match *m);
/* prim_match_parts.c */
FALLIBLE cpu_match_share_out(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_sort_parts(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_runs_parts(struct prim_job *job, struct prim_join *join);
void cpu_match_rush_parts(struct match *m);
/* prim_match_runs.c */
FALLIBLE cpu_match_runs_merge(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_tree_level(struct prim_job *job, struct prim_join *join, i32 level);
FALLIBLE cpu_match_runs_tree(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_loop_count(struct prim_job *job, struct prim_join *join);
FALLIBLE cpu_match_loop_write(struct prim_job *job, struct prim_join *join,
                              const struct join_out *out, i64 first, i64 n);

#endif

/* cut.h: a pipeline cut in two where memory has no room for what it looks up or numbers. */
#ifndef WF_CPU_CUT_H
#define WF_CPU_CUT_H

#include "cpu/cpu_int.h"

enum { CUT_BITS = 6, CUT_PARTS = 1 << CUT_BITS, CUT_LEVELS = 3 };

/* By what rows are told apart: the text or the pair that gets a number, or the key of an index. */
enum cut_by { CUT_TEXT, CUT_PAIR, CUT_KEY };
struct cut {
    u8 by;      /* enum cut_by */
    u32 var;    /* the interner or index */
    u16 a, b;   /* registers that tell rows apart */
    u16 null;   /* rows where it is set are alike, whatever the others hold; NO_REG = none */
    b8 adds;    /* numbers are made, not only found */
    b8 groups;  /* rows of one group, in every sink, lie in one partition */
    u32 col_count;
    u16 *regs;  /* that live across the cut: the columns of the rows in between */
    u8 *kinds;
};

/* A piece of a pipeline. Rows of all but the first come from partitions made by the one before. */
struct stage {
    struct pipeline *pipe;
    struct cut cut; /* behind it; of the last: unused */
    u32 mark_first; /* its first mark, as the whole pipeline numbers them */
};

/* cut.c: the pieces; *out_count = 1: there is no cut. `wanted`, by variable: interners that memory has no
 * room for. */
struct stage *cut_stages(struct exec *x, const struct pipeline *pipe, const b8 *wanted,
                         u32 *out_count);
/* Whether the pipeline can be cut where it makes numbers of `var`, and be run again for that. */
bool cut_possible(struct exec *x, const struct pipeline *pipe, u32 var);

/* sink_parts.c: rows set aside by partition. There are many blocks where memory is short, and what says where each of
 * them is lies in memory: no chunk, whose columns and buffers would take a fifth of a small block. */
struct row_block {
    u8 *data; /* columns, each from a multiple of 16 bytes on, then texts */
    i64 bytes, rows;
    struct buffer *extra; /* a text that blocks have no room for; NULL = there is none */
};
struct row_part {
    struct row_block *blocks; /* from mem_alloc */
    i64 count, cap;
    i64 rows;
};
struct row_parts {
    struct exec *x;
    const struct cut *cut;
    i32 level; /* 0: by the first CUT_BITS of the hash; 1: by the next, … */
    i64 count;
    struct row_part *parts;
    i64 rows, bytes;
    i64 block_bytes; /* that a worker fills of a partition before it goes aside */
    i64 width_bytes; /* of a row */
    u32 text_count;  /* columns that are text */
};
/* Whether there is memory to fill blocks of all partitions in. */
bool row_parts_fit(struct exec *x, const struct cut *cut);
struct row_parts *row_parts_new(struct exec *x, const struct cut *cut, i32 level, i32 workers);
void row_parts_release(struct row_parts *parts);
void row_part_release(struct row_parts *parts, i64 part);
/* Rows of a block, in `room` until it gets others. */
FALLIBLE row_block_load(const struct row_parts *parts, const struct row_block *from, struct row_room *room,
                        struct error *err);
void row_room_fini(struct row_room *room, struct memory *mem);
/* The rows of a partition by the next bits of their hash; the partition is empty afterwards. */
FALLIBLE row_part_split(struct row_parts *from, i64 part, struct row_parts **out);
extern const struct sink_class sink_parts;

/* cut_run.c */
FALLIBLE stages_run(struct device *dev, struct exec *x, u32 step_no, const struct step *step);

#endif

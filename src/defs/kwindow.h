/* kwindow.h: arguments of the kernels that compute window functions; compiles as C11 and as CUDA C.
 *
 * Rows come sorted. Partitions and groups of peers are numbered from 1 through all rows, and for
 * every number there is where it starts, and after the last the number of rows. */
#ifndef WF_DEFS_KWINDOW_H
#define WF_DEFS_KWINDOW_H

#include "defs/ksort.h"

#include "defs/frame.h"

struct kwindow_rows {
    const struct ksort_part *keys; /* partition, then order */
    u32 part_count, key_count;
    i64 rows;
    u32 *part_no, *peer_no; /* 1 where one starts, then, summed, numbers */
    u32 *part_starts, *peer_starts;
    struct ktexts texts;
    const i64 *rows_at; /* as of struct ksort */
};

struct kwindow_col {
    const u8 *data;
    const b8 *nulls; /* or 0 */
};

struct kwindow {
    struct kwindow_rows rows;
    u32 is_word;
    u32 func; /* enum window_func, or enum word_op */
    u32 mode, from, to, exclude;
    i64 from_off, to_off;
    struct ksort_part key, from_bound, to_bound; /* RANGE with a distance */
    struct kwindow_col args[3];
    u32 arg_count; /* bit a: argument a is there */
    u32 width;     /* bytes of a value of the result */
    u8 *out;
    b8 *out_nulls;
    const u64 *sums;  /* ADD: of the rows up to each */
    const i64 *tree;  /* other words: of 2 rows - 1 nodes, leaves last */
    u64 *report;      /* 1: an argument that must be greater than zero is not */
};

struct kfold { /* an ordered aggregate: a row for every partition */
    struct kwindow_rows rows;
    const i64 *keys; /* that partitions are of */
    struct kwindow_col value;
    struct kwindow_col share; /* percentiles: f64, of the partition's first row */
    i64 groups;
    i64 *out_keys;
    u8 *out;
    b8 *out_nulls;
    u64 *best;   /* MODE: per partition, zero before; else 0 */
    u64 *report; /* REPORT_FAULT: all ones, or the least partition << 8 | fault; 0: a share beyond 0 and 1. REPORT_ROWS:
                    partitions */
    u32 fold;    /* enum agg */
    u32 width;   /* bytes of a value */
};

struct kwindow_tree { /* nodes [first, end), whose children are there */
    i64 *tree;
    const i64 *leaves; /* or 0: those of rows, copied behind the nodes */
    i64 first, end;
    i64 rows;
    u32 op;
    u32 pad;
};

#endif

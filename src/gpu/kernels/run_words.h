/* run_words.h: words of groups that are runs of the sorted key, for agg_runs.h and agg_list.h. */
#ifndef WF_RUN_WORDS_H
#define WF_RUN_WORDS_H

#include "block.h"

/* Words of 32 bits where those of a tile's rows and their sums are proven to fit. */
FN i32 run_merge_i32(u32 op, i32 a, i32 b) {
    return op == WORD_ADD ? a + b : (op == WORD_MIN) == (a < b) ? a : b;
}
FN i32 run_identity_i32(u32 op) {
    return op == WORD_ADD ? 0 : op == WORD_MIN ? I32_MAX : I32_MIN;
}
FN i64 run_merge_i64(u32 op, i64 a, i64 b) {
    return word_merge(op, a, b);
}
FN i64 run_identity_i64(u32 op) {
    return word_identity(op);
}

#endif

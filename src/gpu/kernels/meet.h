/* meet.h: RUN and MEET: rows of a key that follow each other, in the order of their values, and what
 * several such runs have in common. A run is a word: the first row, and below it the one behind the
 * last. */
#ifndef WF_MEET_H
#define WF_MEET_H

/* Rows of a key, of an index over rows in the order of their keys. */
FN u64 run_sorted(const struct kindex *ix, i64 key) {
    const u64 run = find_run(ix, key);
    u32 first = (u32)run;
    const u32 rows = (u32)(run >> 32) - first;
    if (!rows) {
        return 0;
    }
    if (!ix->unique && (ix->form == KINDEX_PAIRS || ix->form == KINDEX_RUNS)) {
        first = ix->rows[first];
    }
    return (u64)first << 32 | (first + rows);
}

FN u32 run_first(u64 run) {
    return (u32)(run >> 32);
}
FN u32 run_length(u64 run) {
    return (u32)run - (u32)(run >> 32);
}

/* The first row of a run whose value is not below `value`: the one behind the last where all are. */
FN u32 run_seek(const i64 *values, u64 run, i64 value) {
    u32 from = run_first(run);
    u32 rows = run_length(run);
    NO_UNROLL while (rows > 0) {
        const u32 half = rows / 2u;
        const u32 less = values[from + half] < value;
        from += less ? half + 1u : 0u;
        rows = less ? rows - half - 1u : half;
    }
    return from;
}

/* Whether a run whose values differ has the value. */
FN u32 run_has(const i64 *values, u64 run, i64 value) {
    const u32 at = run_seek(values, run, value);
    return at < (u32)run && values[at] == value;
}

/* How often a run has the value. */
FN_SLOW u64 run_times(const i64 *values, u64 run, i64 value) {
    const u32 at = run_seek(values, run, value);
    if (at >= (u32)run || values[at] != value) {
        return 0;
    }
    const u64 rest = (u64)at << 32 | (u32)run;
    return (value == I64_MAX ? (u32)run : run_seek(values, rest, value + 1)) - at;
}

#endif

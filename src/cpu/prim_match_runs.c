/* prim_match_runs.c: the CPU's joins over sorted keys, and those that compare every pair.
 *
 * Merging: a block of probing rows finds where its first one stands, then both ends of the run only
 * ever move on. The tree's nodes are 32 keys, two or four cache lines, a level holding the last key
 * of every node below; a batch of rows goes down level by level, so that their cache misses
 * overlap. Nested loops count in chunks that stay in the first cache; a part of a split is just a
 * smaller range. */
#include "cpu/prim_match.h"

enum { BATCH = 32, LOOP_ROWS = 256 };

static i64 blocks_of(i64 n) {
    return (n + MATCH_ROWS - 1) / MATCH_ROWS;
}

static inline u64 sorted_word(const struct match *m, const void *keys, i64 i) {
    return key_at(keys, m->bytes, i) ^ m->flip;
}

/* The first of [low, high) whose word is not below, with `upper` is above the word. */
static i64 search(const struct match *m, const void *keys, i64 low, i64 high, u64 word,
                  bool upper) {
    return low + match_search(m, keys, low, high - low, word, upper);
}

/* The same from `low` on: step by step, or by steps that double. */
static i64 advance(const struct match *m, const void *keys, i64 low, u64 word, bool upper) {
    i64 n = m->built_count;
    i64 step = 1;
    while (low < n) {
        i64 at = MIN_OF(low + step, n) - 1;
        u64 x = sorted_word(m, keys, at);
        if (!(upper ? x <= word : x < word)) {
            return search(m, keys, low, at, word, upper);
        }
        low = at + 1;
        step = m->join->sequential ? 1 : step * 2;
    }
    return n;
}

static void merge_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    const void *keys = m->built->keys;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->probe_count);
    i64 row = block * MATCH_ROWS;
    u64 word = probe_word(m, row);
    i64 low = search(m, keys, 0, m->built_count, word, false);
    i64 high = low;
    for (; row < end; row++) {
        word = probe_word(m, row);
        low = advance(m, keys, low, word, false);
        high = advance(m, keys, MAX_OF(high, low), word_end(m, word), true);
        run_put(m, row, low, high);
    }
}

wf_status cpu_match_runs_merge(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    join->offset[m.probe_count] = 0;
    tasks_run(job->x, blocks_of(m.probe_count), merge_task, &m);
    return exec_check(job->x);
}

/* --- the tree --- */

wf_status cpu_match_tree_level(struct prim_job *job, struct prim_join *join, i32 level) {
    if (job->measuring) {
        return ERR_OK;
    }
    const struct join_tree *t = &join->tree;
    void *out = (void *)(size_t)t->keys[level];
    for (i64 i = 0; i < t->count[level]; i++) {
        i64 last = MIN_OF((i + 1) * TREE_NODE, t->count[level - 1]) - 1;
        if (join->key_bytes == 8) {
            ((u64 *)out)[i] = ((const u64 *)t->keys[level - 1])[last];
        } else {
            ((u32 *)out)[i] = ((const u32 *)t->keys[level - 1])[last];
        }
    }
    return exec_check(job->x);
}

static i64 node_search(const struct match *m, const void *keys, i64 first, i64 n, u64 word,
                       bool upper) {
    if (!m->join->sequential) {
        return match_search(m, keys, first, n, word, upper);
    }
    i64 before = 0;
    while (before < n && (upper ? sorted_word(m, keys, first + before) <= word
                                : sorted_word(m, keys, first + before) < word)) {
        before++;
    }
    return before;
}

/* Places of a batch of words; every level in turn. */
static void tree_find(const struct match *m, i64 *out, const u64 *word, i64 n, bool upper) {
    const struct join_tree *t = &m->join->tree;
    for (i64 j = 0; j < n; j++) {
        out[j] = 0;
    }
    for (i32 l = t->levels; l-- > 0;) {
        for (i64 j = 0; j < n; j++) {
            i64 first = out[j] * TREE_NODE;
            i64 rows = MAX_OF(MIN_OF(t->count[l] - first, TREE_NODE), 0);
            out[j] = first + node_search(m, t->keys[l], first, rows, word[j], upper);
            if (l > 0 && out[j] * TREE_NODE < t->count[l - 1]) {
                const u8 *next = (const u8 *)t->keys[l - 1] + out[j] * TREE_NODE * m->bytes;
                __builtin_prefetch(next);
                __builtin_prefetch(next + TREE_NODE / 2 * m->bytes);
            }
        }
    }
    for (i64 j = 0; j < n; j++) {
        out[j] = MIN_OF(out[j], t->count[0]);
    }
}

static void tree_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    const struct join_tree *t = &m->join->tree;
    i64 rows_end = MIN_OF((block + 1) * MATCH_ROWS, m->probe_count);
    for (i64 row = block * MATCH_ROWS; row < rows_end; row += BATCH) {
        i64 n = MIN_OF(rows_end - row, BATCH);
        u64 word[BATCH];
        u64 last[BATCH];
        i64 low[BATCH];
        i64 high[BATCH];
        for (i64 j = 0; j < n; j++) {
            word[j] = probe_word(m, row + j);
            last[j] = word_end(m, word[j]);
        }
        tree_find(m, low, word, n, false);
        bool far = false; /* some run goes on behind the second place */
        for (i64 j = 0; j < n; j++) {
            high[j] = low[j];
            for (i32 k = 0;
                 k < 2 && high[j] < t->count[0] && sorted_word(m, t->keys[0], high[j]) <= last[j];
                 k++) {
                high[j]++;
            }
            far |= high[j] == low[j] + 2;
        }
        if (far) {
            tree_find(m, high, last, n, true);
        }
        for (i64 j = 0; j < n; j++) {
            run_put(m, row + j, low[j], MAX_OF(high[j], low[j]));
        }
    }
}

wf_status cpu_match_runs_tree(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    join->offset[m.probe_count] = 0;
    tasks_run(job->x, blocks_of(m.probe_count), tree_task, &m);
    return exec_check(job->x);
}

/* --- every pair --- */

/* The built rows that probing row `row` is compared with: all, or those of its part. */
static void loop_range(const struct match *m, i64 row, i64 *out_first, i64 *out_end) {
    const struct prim_join *join = m->join;
    *out_first = 0;
    *out_end = m->built_count;
    if (join->algorithm == JOIN_RADIX) {
        const u64 *probe = join->parts[join->probe];
        i64 low = 0;
        i64 high = (1LL << join->part_bits) - 1;
        while (low < high) {
            i64 mid = (low + high + 1) / 2;
            bool at = probe[mid] <= (u64)row;
            low = at ? mid : low;
            high = at ? high : mid - 1;
        }
        *out_first = (i64)join->parts[JOIN_BUILT(join)][low];
        *out_end = (i64)join->parts[JOIN_BUILT(join)][low + 1];
    }
}

/* `width` ends where keys do, so that one unsigned comparison says all. */
#define LOOP_COUNT(type)                                                                \
    static u64 count_##type(const type *keys, i64 n, type flip, type low, type width) { \
        u64 count = 0;                                                                  \
        for (i64 i = 0; i < n; i++) {                                                   \
            type word = keys[i] ^ flip;                                                 \
            count += (type)(word - low) <= width;                                       \
        }                                                                               \
        return count;                                                                   \
    }
LOOP_COUNT(u32)
LOOP_COUNT(u64)
#undef LOOP_COUNT

static void loop_count_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    i64 end = MIN_OF((block + 1) * LOOP_ROWS, m->probe_count);
    if (exec_check(m->x)) {
        return;
    }
    for (i64 row = block * LOOP_ROWS; row < end; row++) {
        i64 first;
        i64 last;
        u64 word = probe_word(m, row);
        loop_range(m, row, &first, &last);
        u64 width = word_end(m, word) - word;
        const void *keys = m->built->keys;
        u64 count = m->bytes == 8
                        ? count_u64((const u64 *)keys + first, last - first, m->flip, word, width)
                        : count_u32((const u32 *)keys + first, last - first, (u32)m->flip,
                                    (u32)word, (u32)width);
        m->join->start[row] = JOIN_NONE;
        m->join->offset[row] = join_rows(m->join->kind, count);
    }
}

wf_status cpu_match_loop_count(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    join->offset[m.probe_count] = 0;
    tasks_run(job->x, (m.probe_count + LOOP_ROWS - 1) / LOOP_ROWS, loop_count_task, &m);
    return exec_check(job->x);
}

/* The matches of one probing row that lie in the window, which they reach into. */
static void loop_row(const struct match *m, struct pairs *pairs, i64 row, i64 *to) {
    const u64 *offset = m->join->offset;
    i64 at = (i64)offset[row];
    i64 first;
    i64 last;
    u64 word = probe_word(m, row);
    u64 end = word_end(m, word);
    loop_range(m, row, &first, &last);
    bool any = false;
    for (i64 i = first; i <= last && at < (i64)offset[row + 1]; i++) {
        bool none = i == last && !any && m->join->kind == KEEP_LEFT;
        u64 other = i < last ? key_at(m->built->keys, m->bytes, i) ^ m->flip : 0;
        if (none || (i < last && other >= word && other <= end)) {
            any = true;
            if (at >= m->first && at < m->first + m->rows) {
                pairs->p[pairs->count] = (u32)row;
                pairs->b[pairs->count++] = none ? JOIN_NONE : (u32)i;
                if (pairs->count == MATCH_BATCH) {
                    pairs_write(pairs, *to);
                    *to += MATCH_BATCH;
                }
            }
            at++;
        }
    }
}

static void loop_write_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    const u64 *offset = m->join->offset;
    i64 end = MIN_OF((block + 1) * LOOP_ROWS, m->probe_count);
    struct pairs pairs;
    pairs.m = m;
    pairs.count = 0;
    i64 to = MAX_OF((i64)offset[block * LOOP_ROWS] - m->first, 0);
    if (exec_check(m->x)) {
        return;
    }
    for (i64 row = block * LOOP_ROWS; row < end; row++) {
        if ((i64)offset[row] < m->first + m->rows && (i64)offset[row + 1] > m->first &&
            offset[row] < offset[row + 1]) {
            loop_row(m, &pairs, row, &to);
        }
    }
    pairs_write(&pairs, to);
}

wf_status cpu_match_loop_write(struct prim_job *job, struct prim_join *join,
                               const struct join_out *out, i64 first, i64 n) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, out, true);
    m.first = first;
    m.rows = n;
    tasks_run(job->x, (m.probe_count + LOOP_ROWS - 1) / LOOP_ROWS, loop_write_task, &m);
    return exec_check(job->x);
}

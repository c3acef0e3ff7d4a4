/* prim_match.c: the CPU's joins: the survey of keys, rows of the result, and the list of bodies.
 *
 * A result is written in batches of pairs, a column at a time, so that the loads of one column do
 * not wait for one another. */
#include "cpu/prim_match.h"

void match_init(struct match *m, struct prim_job *job, struct prim_join *join,
                const struct join_out *out, bool listed) {
    i32 built = JOIN_BUILT(join);
    memset(m, 0, sizeof *m);
    m->x = job->x;
    m->join = join;
    m->out = out;
    m->probe = &join->side[join->probe];
    m->built = &join->side[built];
    m->probe_count = join->keys[join->probe].count;
    m->built_count = join->keys[built].count;
    m->bytes = join->key_bytes;
    m->flip = join->flip;
    m->width = join->band ? join->width : 0;
    m->listed = listed;
}

/* --- what is known before --- */

static void bounds_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    const void *keys = m->join->keys[JOIN_BUILT(m->join)].data;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->built_count);
    u64 low = ~0ULL;
    u64 high = 0;
    for (i64 i = block * MATCH_ROWS; i < end; i++) {
        u64 word = key_at(keys, m->bytes, i) ^ m->flip;
        low = MIN_OF(low, word);
        high = MAX_OF(high, word);
    }
    u64 seen = atomic_load(&m->low);
    while (low < seen && !atomic_compare_exchange_weak(&m->low, &seen, low)) {
    }
    seen = atomic_load(&m->high_not);
    while (~high < seen && !atomic_compare_exchange_weak(&m->high_not, &seen, ~high)) {
    }
}

static i64 blocks_of(i64 n) {
    return (n + MATCH_ROWS - 1) / MATCH_ROWS;
}

static FALLIBLE survey(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    atomic_store(&m.low, ~0ULL);
    atomic_store(&m.high_not, ~0ULL);
    tasks_run(job->x, blocks_of(m.built_count), bounds_task, &m);
    struct join_facts *f = &join->facts;
    f->lo = atomic_load(&m.low);
    f->hi = ~atomic_load(&m.high_not);
    for (i32 side = 0; side < 2; side++) {
        i64 n = MIN_OF(join->keys[side].count, JOIN_SAMPLE);
        f->sampled[side] = (i32)n;
        for (i64 i = 0; i < n; i++) {
            f->sample[side][i] =
                key_at(join->keys[side].data, m.bytes, join->keys[side].count / n * i) ^ m.flip;
        }
    }
    return exec_check(job->x);
}

/* --- rows of the result --- */

static void write_rows(const struct join_want *w, const u32 *rows, i64 to, i64 n, const u32 *at) {
    for (i64 i = 0; i < n; i++) {
        u32 row = at[i] == JOIN_NONE || !rows ? at[i] : rows[at[i]];
        if (w->bytes == 8) {
            ((u64 *)w->out)[to + i] = row == JOIN_NONE ? ~0ULL : row;
        } else {
            ((u32 *)w->out)[to + i] = row;
        }
    }
}

static void write_values(const struct join_want *w, i64 to, i64 n, const u32 *at,
                         const u64 *value) {
    for (i64 i = 0; i < n; i++) {
        u64 x = at[i] == JOIN_NONE ? 0 : value[i];
        if (w->bytes == 8) {
            ((u64 *)w->out)[to + i] = x;
        } else {
            ((u32 *)w->out)[to + i] = (u32)x;
        }
    }
}

#define WRITE_COLUMN(type)                                                                  \
    static void write_##type(type *out, const type *in, i64 n, const u32 *at, bool maybe) { \
        if (maybe) {                                                                        \
            for (i64 i = 0; i < n; i++) {                                                   \
                out[i] = at[i] == JOIN_NONE ? 0 : in[at[i]];                                \
            }                                                                               \
        } else {                                                                            \
            for (i64 i = 0; i < n; i++) {                                                   \
                out[i] = in[at[i]];                                                         \
            }                                                                               \
        }                                                                                   \
    }
WRITE_COLUMN(u32)
WRITE_COLUMN(u64)
#undef WRITE_COLUMN

static void write_column(const struct pairs *pairs, const struct join_want *w, i64 to, i64 n) {
    const struct match *m = pairs->m;
    const struct prim_join *join = m->join;
    const struct join_arrays *side = &join->side[w->side];
    bool built = w->side != join->probe;
    const u32 *at = built ? pairs->b : pairs->p;
    bool maybe = built && join->kind == KEEP_LEFT;
    if (w->from == FROM_ROW) {
        write_rows(w, side->rows, to, n, at);
        return;
    }
    if (!m->listed && built && join->table.slots && join->table.col == w->col &&
        w->from == FROM_COL) {
        write_values(w, to, n, at, pairs->value);
        return;
    }
    const void *in = w->from == FROM_COL       ? side->cols[w->col]
                     : m->listed && side->list ? join->keys[w->side].data
                                               : side->keys;
    if (w->bytes == 8) {
        write_u64((u64 *)w->out + to, in, n, at, maybe);
    } else {
        write_u32((u32 *)w->out + to, in, n, at, maybe);
    }
}

void pairs_write(struct pairs *pairs, i64 to) {
    const struct match *m = pairs->m;
    i64 n = MIN_OF((i64)pairs->count, m->out->room - to);
    if (m->listed && m->probe->list) {
        for (i64 i = 0; i < n; i++) {
            pairs->p[i] = m->probe->list[pairs->p[i]];
        }
    }
    if (m->listed && m->built->list) {
        for (i64 i = 0; i < n; i++) {
            pairs->b[i] = pairs->b[i] == JOIN_NONE ? JOIN_NONE : m->built->list[pairs->b[i]];
        }
    }
    for (i32 c = 0; n > 0 && c < m->out->count; c++) {
        write_column(pairs, &m->out->want[c], to, n);
    }
    pairs->count = 0;
}

void pairs_flush(struct pairs *pairs) {
    i64 to = atomic_fetch_add_explicit(&pairs->m->total, pairs->count, memory_order_relaxed);
    pairs_write(pairs, to);
}

/* A block of the window. */
static void expand_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    const u64 *offset = m->join->offset;
    i64 at = m->first + block * MATCH_ROWS;
    i64 end = m->first + MIN_OF((block + 1) * MATCH_ROWS, m->rows);
    i64 low = 0;
    i64 high = m->probe_count - 1;
    while (low < high) { /* the last row that begins at or before `at` */
        i64 mid = (low + high + 1) / 2;
        if (offset[mid] <= (u64)at) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    struct pairs pairs;
    pairs.m = m;
    pairs.count = 0;
    if (exec_check(m->x)) {
        return;
    }
    bool semi = m->join->kind >= KEEP_SEMI;
    for (i64 row = low; at < end; row++) {
        i64 row_end = MIN_OF((i64)offset[row + 1], end);
        u32 start = semi ? JOIN_NONE : m->join->start[row];
        for (; at < row_end; at++) {
            u32 b = start == JOIN_NONE ? start : start + (u32)(at - (i64)offset[row]);
            pairs.p[pairs.count] = (u32)row;
            pairs.b[pairs.count++] = b;
            if (pairs.count == MATCH_BATCH) {
                pairs_write(&pairs, at - m->first + 1 - MATCH_BATCH);
            }
        }
    }
    pairs_write(&pairs, end - m->first - pairs.count);
}

static FALLIBLE expand(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                       i64 first, i64 n) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, out, true);
    m.first = first;
    m.rows = n;
    tasks_run(job->x, blocks_of(n), expand_task, &m);
    return exec_check(job->x);
}

static FALLIBLE rush(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                     bool *out_done) {
    struct match m;
    match_init(&m, job, join, out, false);
    if (join->algorithm == JOIN_PARTITIONED) {
        cpu_match_rush_parts(&m);
    } else {
        cpu_match_rush_table(&m);
    }
    if (!atomic_load(&m.flag)) {
        join->total = atomic_load(&m.total);
        *out_done = join->total <= out->room;
    }
    return exec_check(job->x);
}

static FALLIBLE fetch(struct prim_job *job, void *host, const void *src, i64 bytes) {
    memset(host, 0, (size_t)bytes);
    if (!job->measuring) {
        memcpy(host, src, (size_t)bytes);
    }
    return ERR_OK;
}

static i64 part_rows(const struct prim_job *job, const struct prim_join *join) {
    UNUSED(job);
    UNUSED(join);
    return 8192;
}

static i64 cache_bytes(const struct prim_job *job) {
    UNUSED(job);
    return 8 << 20;
}

const struct prim_match cpu_prim_match = {.survey = survey,
                                          .build = cpu_match_build,
                                          .group = cpu_match_group,
                                          .runs_grouped = cpu_match_runs_grouped,
                                          .sort_parts = cpu_match_sort_parts,
                                          .runs_parts = cpu_match_runs_parts,
                                          .runs_merge = cpu_match_runs_merge,
                                          .tree_level = cpu_match_tree_level,
                                          .runs_tree = cpu_match_runs_tree,
                                          .loop_count = cpu_match_loop_count,
                                          .loop_write = cpu_match_loop_write,
                                          .share_out = cpu_match_share_out,
                                          .rush = rush,
                                          .expand = expand,
                                          .fetch = fetch,
                                          .cache_bytes = cache_bytes,
                                          .chains = 1,
                                          .costs = {.part_row = 28,
                                                    .part_column = 4,
                                                    .near_build = 10,
                                                    .near_probe = 5,
                                                    .far_build = 38,
                                                    .far_probe = 10},
                                          .part_rows = part_rows};

/* prim_match_parts.c: the CPU's joins of sides that were split by hash, a part at a time.
 *
 * A task is a part, or of a part with many probing rows a chunk of those. The built rows of a part
 * are chained by hash in a table that stays in the cache; chains hold equal keys as well, so no
 * key is too frequent. A part too large for that is joined in chunks, one table after the other; a
 * bit for every probing row says whether a chunk had its key. Of an inner join, chunks are shared
 * out among tasks as well. The radix join sorts parts and searches; all workers together sort a
 * large part. */
#include "cpu/prim_match.h"
#include "cpu/radix.h"
#include "prim/move.h"
#include "prim/order.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

enum {
#ifdef WF_HARD
    PART_MAX = 1 << 10,
    UNIT_ROWS = 1 << 10,
#else
    PART_MAX = 1 << 14, /* rows of the built side */
    UNIT_ROWS = 1 << 16,
#endif
    PART_SLOTS = 2 * PART_MAX,
    PIECE_ROWS = 8 * PART_MAX, /* of the built side, that a task takes of an inner join, */
    FEW_EQUAL = 16,            /* from here on the end of a run is searched */
    PIECE_CHUNKS = 16          /* where the part has at most so many chunks of probing rows */
};

struct unit {
    u32 part, chunk;
    u32 piece, pieces; /* of the built rows */
};

/* What a worker needs for a part: a table, or room to sort. */
union scratch {
    struct {
        u32 heads[PART_SLOTS];
        u32 next[PART_MAX];
        u64 seen[UNIT_ROWS / 64]; /* probing rows whose key was met */
    };
    struct prim_pair sort[2 * PART_MAX];
};

/* The list of units, then a scratch per worker. */
struct units {
    i64 count;
    i64 room;
    union scratch *scratch;
    struct unit unit[];
};

wf_status cpu_match_share_out(struct prim_job *job, struct prim_join *join) {
    i64 parts = 1LL << join->part_bits;
    i64 room = parts + join->keys[join->probe].count / UNIT_ROWS + 1 +
               PIECE_CHUNKS * (join->keys[JOIN_BUILT(join)].count / PIECE_ROWS + 1);
    struct units *u = prim_take(job, (i64)sizeof(struct units) + room * (i64)sizeof(struct unit));
    i64 workers = job->x->pool ? pool_worker_count(job->x->pool) : 1;
    union scratch *scratch = prim_take(job, workers * (i64)sizeof(union scratch));
    join->units = u;
    if (job->measuring) {
        return ERR_OK;
    }
    u->scratch = scratch;
    u->count = 0;
    u->room = room;
    bool keeps = join->kind == KEEP_LEFT || join->kind == KEEP_ANTI;
    bool shares = join->kind == KEEP_INNER && join->algorithm == JOIN_PARTITIONED;
    const u64 *probe = join->parts[join->probe];
    const u64 *built = join->parts[JOIN_BUILT(join)];
    for (i64 p = 0; p < parts; p++) {
        u64 rows = built[p + 1] > built[p] || keeps ? probe[p + 1] - probe[p] : 0;
        u64 pieces = (built[p + 1] - built[p] + PIECE_ROWS - 1) / PIECE_ROWS;
        pieces = shares && rows <= (u64)PIECE_CHUNKS * UNIT_ROWS ? MAX_OF(pieces, 1) : 1;
        for (u64 i = 0; i < (rows + UNIT_ROWS - 1) / UNIT_ROWS * pieces; i++) {
            u->unit[u->count++] = (struct unit){.part = (u32)p,
                                                .chunk = (u32)(i / pieces),
                                                .piece = (u32)(i % pieces),
                                                .pieces = (u32)pieces};
        }
    }
    CHECK(u->count <= room);
    return ERR_OK;
}

struct reach {
    i64 row, row_end, first, end;
    struct unit unit;
};
/* The unit's probing rows, and all of its part's built rows. */
static struct reach reach_of(const struct match *m, i64 n) {
    const struct units *u = m->join->units;
    struct unit at = u->unit[n];
    const u64 *probe = m->join->parts[m->join->probe];
    const u64 *built = m->join->parts[JOIN_BUILT(m->join)];
    struct reach r = {.row = (i64)probe[at.part] + (i64)at.chunk * UNIT_ROWS,
                      .first = (i64)built[at.part],
                      .end = (i64)built[at.part + 1],
                      .unit = at};
    r.row_end = MIN_OF(r.row + UNIT_ROWS, (i64)probe[at.part + 1]);
    return r;
}

/* Loops of one width of key: the table of a part, and its probing rows. */
#define PART_LOOPS(type, hash)                                                        \
    static u32 chain_##type(union scratch *s, const type *keys, i64 n, i32 shift) {   \
        u32 slots = 64;                                                               \
        while (slots < n * 2) {                                                       \
            slots *= 2;                                                               \
        }                                                                             \
        memset(s->heads, 0, slots * sizeof *s->heads);                                \
        for (i64 i = n; i-- > 0;) {                                                   \
            u32 slot = (u32)(hash(keys[i]) >> shift) & (slots - 1);                   \
            s->next[i] = s->heads[slot];                                              \
            s->heads[slot] = (u32)i + 1;                                              \
        }                                                                             \
        return slots - 1;                                                             \
    }                                                                                 \
    static void join_##type(struct match *m, union scratch *s, struct reach r) {      \
        const type *built = (const type *)m->built->keys + r.first;                   \
        const type *probe = m->probe->keys;                                           \
        i32 shift = m->join->part_bits;                                               \
        u32 mask = chain_##type(s, built, r.end - r.first, shift);                    \
        u32 kind = m->join->kind;                                                     \
        struct pairs pairs;                                                           \
        pairs.m = m;                                                                  \
        pairs.count = 0;                                                              \
        for (i64 i = r.row; i < r.row_end; i++) {                                     \
            type key = probe[i];                                                      \
            u32 at = s->heads[(u32)(hash(key) >> shift) & mask];                      \
            u64 *seen = &s->seen[(i - r.row) >> 6];                                   \
            u64 bit = 1ULL << ((i - r.row) & 63);                                     \
            bool found = (*seen & bit) != 0 && kind >= KEEP_SEMI;                     \
            for (; at && !found; at = s->next[at - 1]) {                              \
                if (built[at - 1] == key) {                                           \
                    *seen |= kind == KEEP_INNER ? 0 : bit;                            \
                    found = kind >= KEEP_SEMI;                                        \
                    if (kind != KEEP_ANTI) {                                          \
                        u32 row = kind == KEEP_SEMI ? 0 : (u32)r.first + at - 1;      \
                        pairs_add(&pairs, i, kind == KEEP_SEMI ? JOIN_NONE : row, 0); \
                    }                                                                 \
                }                                                                     \
            }                                                                         \
        }                                                                             \
        pairs_flush(&pairs);                                                          \
    }
PART_LOOPS(u32, hash_32)
PART_LOOPS(u64, hash_64)
#undef PART_LOOPS

/* Once there is more than the room holds, counting runs is faster than finding the rest. */
static bool gives_up(struct match *m) {
    if (atomic_load_explicit(&m->total, memory_order_relaxed) > m->out->room) {
        atomic_store(&m->flag, 1);
    }
    return atomic_load_explicit(&m->flag, memory_order_relaxed) || exec_check(m->x);
}

/* Rows of R that no chunk had a match for. */
static void give_lonely(struct match *m, const union scratch *s, struct reach r) {
    struct pairs pairs;
    pairs.m = m;
    pairs.count = 0;
    for (i64 i = r.row; i < r.row_end; i++) {
        if (!(s->seen[(i - r.row) >> 6] >> ((i - r.row) & 63) & 1)) {
            pairs_add(&pairs, i, JOIN_NONE, 0);
        }
    }
    pairs_flush(&pairs);
}

static void rush_task(void *arg, i64 n, i32 worker) {
    struct match *m = arg;
    const struct units *u = m->join->units;
    union scratch *s = &u->scratch[worker];
    struct reach r = reach_of(m, n);
    struct reach chunk = r;
    if (r.unit.pieces > 1) {
        r.first += (i64)r.unit.piece * PIECE_ROWS;
        r.end = MIN_OF(r.first + PIECE_ROWS, r.end);
    }
    memset(s->seen, 0, (size_t)(r.row_end - r.row + 63) / 64 * 8);
    for (chunk.first = r.first; chunk.first < r.end && !gives_up(m); chunk.first = chunk.end) {
        chunk.end = MIN_OF(chunk.first + PART_MAX, r.end);
        if (m->bytes == 8) {
            join_u64(m, s, chunk);
        } else {
            join_u32(m, s, chunk);
        }
    }
    if (m->join->kind == KEEP_LEFT || m->join->kind == KEEP_ANTI) {
        give_lonely(m, s, r);
    }
}

void cpu_match_rush_parts(struct match *m) {
    const struct units *u = m->join->units;
    tasks_run(m->x, u->count, rush_task, m);
}

/* --- the radix join --- */

static void sort_task(void *arg, i64 part, i32 worker) {
    struct match *m = arg;
    struct prim_join *join = m->join;
    const struct units *u = join->units;
    const u64 *starts = join->parts[JOIN_BUILT(join)];
    i64 first = (i64)starts[part];
    i64 n = (i64)starts[part + 1] - first;
    struct prim_pair *data = u->scratch[worker].sort;
    if (n > PART_MAX) { /* sort_large has it */
        return;
    }
    for (i64 i = 0; i < n; i++) {
        data[i] = (struct prim_pair){key_at(m->built->keys, m->bytes, first + i) ^ m->flip,
                                     (u64)(first + i)};
    }
    radix_sort_few(data, data + PART_MAX, n, 8 * m->bytes);
    for (i64 i = 0; i < n; i++) {
        u64 key = data[i].key ^ m->flip;
        if (m->bytes == 8) {
            ((u64 *)join->sorted)[first + i] = key;
        } else {
            ((u32 *)join->sorted)[first + i] = (u32)key;
        }
        join->list[first + i] = (u32)data[i].row;
    }
}

/* A part that does not fit a worker's room, by all of them. */
static FALLIBLE sort_large(struct prim_job *job, struct prim_join *join, i64 first, i64 n) {
    i32 bytes = join->key_bytes;
    i64 mark = prim_mark(job);
    u32 *rows = prim_take(job, n * 4);
    struct prim_series series = {
        .out = {.type = ELEM_U32, .data = rows, .count = n}, .first = (u64)first, .step = 1};
    struct prim_array keys = {.type = join->key_type, .count = n};
    struct prim_array out = keys;
    struct prim_payload p = {.count = 1, .in = {series.out}, .out = {series.out}};
    if (!job->measuring) {
        keys.data = (u8 *)(size_t)join->side[JOIN_BUILT(join)].keys + first * bytes;
        out.data = (u8 *)join->sorted + first * bytes;
        p.out[0].data = join->list + first;
    }
    struct prim_sort sort = {.by = SORT_AUTO};
    TRY(prim_series(job, &series));
    TRY(prim_sort_array(job, &sort, out, keys, &p));
    prim_back(job, mark);
    return ERR_OK;
}

wf_status cpu_match_sort_parts(struct prim_job *job, struct prim_join *join) {
    i64 parts = 1LL << join->part_bits;
    const u64 *starts = join->parts[JOIN_BUILT(join)];
    if (job->measuring) {
        return sort_large(job, join, 0, join->keys[JOIN_BUILT(join)].count);
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    tasks_run(job->x, parts, sort_task, &m);
    for (i64 p = 0; p < parts; p++) {
        i64 n = (i64)(starts[p + 1] - starts[p]);
        if (n > PART_MAX) {
            TRY(sort_large(job, join, (i64)starts[p], n));
        }
    }
    return exec_check(job->x);
}

static void runs_task(void *arg, i64 n, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    struct reach r = reach_of(m, n);
    for (i64 i = r.row; i < r.row_end && !r.unit.piece; i++) {
        u64 word = probe_word(m, i);
        i64 low = r.first + match_search(m, m->join->sorted, r.first, r.end - r.first, word, false);
        i64 end = low;
        while (end < r.end && end < low + FEW_EQUAL &&
               (key_at(m->join->sorted, m->bytes, end) ^ m->flip) == word) {
            end++;
        }
        if (end == low + FEW_EQUAL) {
            end += match_search(m, m->join->sorted, end, r.end - end, word, true);
        }
        run_put(m, i, low, end);
    }
}

wf_status cpu_match_runs_parts(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    const struct units *u = join->units;
    match_init(&m, job, join, NULL, false);
    memset(join->offset, 0, (size_t)(m.probe_count + 1) * 8);
    tasks_run(job->x, u->count, runs_task, &m);
    return exec_check(job->x);
}

/* prim_merge.c: the CPU's merge, sorted search, runs and set operations on plain arrays.
 *
 * Work is cut into ranges of the output, or for sets of both inputs together; a range is a task. A
 * search along the diagonal tells where a range begins in both arrays. It is the merge path, or for
 * sets the balanced path, which pairs equal elements by number and never parts a pair. Outputs
 * whose size is not known are counted first. Every loop is written once for all keys: `kind` is a
 * constant where it is inlined, which gives a loop per kind of key. */
#include "cpu/prim_order.h"

#include "cpu/rel_int.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

#define ALWAYS static inline __attribute__((always_inline))

#define KEY_KINDS(X) \
    X(U32)           \
    X(U64)           \
    X(F32)           \
    X(F64)           \
    X(WIDE)          \
    X(TEXT)
#define X(name) KIND_KEY_##name,
enum key_kind { KEY_KINDS(X) KIND_KEY_PAGED }; /* PAGED: words of any width, by number of row */
#undef X

struct side { /* one ascending array */
    const void *data;
    const u8 *bytes;
    i64 n;
    u64 flip;
    i32 ignore;
    b8 counting;                 /* its elements are 0, 1, 2, … */
    const struct rel_rows *rows; /* PAGED */
};

static enum key_kind kind_of(enum elem type) {
    switch (elem_kinds[type]) {
    case 'F':
        return elem_bytes[type] == 4 ? KIND_KEY_F32 : KIND_KEY_F64;
    case 'W':
        return KIND_KEY_WIDE;
    case 'T':
        return KIND_KEY_TEXT;
    default:
        return elem_bytes[type] == 4 ? KIND_KEY_U32 : KIND_KEY_U64;
    }
}

static struct side side_of(struct prim_array a, i32 ignore) {
    struct order o = order_of(a.type, false);
    return (struct side){a.data, a.bytes, a.count, o.flip_low, ignore, 0, NULL};
}

ALWAYS u64 rank_of(const struct side *s, i64 i, enum key_kind kind) {
    u64 key = s->counting                                    ? (u64)i
              : kind == KIND_KEY_U32 || kind == KIND_KEY_F32 ? ((const u32 *)s->data)[i]
                                                             : ((const u64 *)s->data)[i];
    key = kind == KIND_KEY_F32   ? order_f32((u32)key)
          : kind == KIND_KEY_F64 ? order_f64(key)
                                 : key ^ s->flip;
    return key >> s->ignore;
}
ALWAYS u128 wide_of(const struct side *s, i64 i) {
    const u64 *word = (const u64 *)s->data + 2 * i;
    return ((u128)word[1] << 64 | word[0]) >> s->ignore;
}

static i32 text_compare(const struct side *x, i64 i, const struct side *y, i64 j) {
    const struct prim_span *p = (const struct prim_span *)x->data + i;
    const struct prim_span *q = (const struct prim_span *)y->data + j;
    u64 n = MIN_OF(p->length, q->length);
    i32 order = n ? memcmp(x->bytes + p->offset, y->bytes + q->offset, n) : 0;
    return order ? order : p->length < q->length ? -1 : p->length > q->length;
}

static u128 paged_of(const struct side *s, i64 i) {
    return rel_word_at(s->rows, i) >> s->ignore;
}

ALWAYS bool less(const struct side *x, i64 i, const struct side *y, i64 j, enum key_kind kind) {
    return kind == KIND_KEY_TEXT    ? text_compare(x, i, y, j) < 0
           : kind == KIND_KEY_WIDE  ? wide_of(x, i) < wide_of(y, j)
           : kind == KIND_KEY_PAGED ? paged_of(x, i) < paged_of(y, j)
                                    : rank_of(x, i, kind) < rank_of(y, j, kind);
}
ALWAYS bool same(const struct side *x, i64 i, i64 j, enum key_kind kind) {
    return kind == KIND_KEY_TEXT   ? text_compare(x, i, x, j) == 0
           : kind == KIND_KEY_WIDE ? wide_of(x, i) == wide_of(x, j)
                                   : rank_of(x, i, kind) == rank_of(x, j, kind);
}

ALWAYS void put_key(void *out, i64 at, const struct side *from, i64 i, enum key_kind kind) {
    if (kind == KIND_KEY_U32 || kind == KIND_KEY_F32) {
        ((u32 *)out)[at] = ((const u32 *)from->data)[i];
    } else if (kind == KIND_KEY_U64 || kind == KIND_KEY_F64) {
        ((u64 *)out)[at] = ((const u64 *)from->data)[i];
    } else {
        ((struct prim_span *)out)[at] = ((const struct prim_span *)from->data)[i];
    }
}

static void put_index(struct prim_array out, i64 at, i64 x) {
    if (elem_bytes[out.type] == 8) {
        ((u64 *)out.data)[at] = (u64)x;
    } else {
        ((u32 *)out.data)[at] = (u32)x;
    }
}

/* How many of the first `diagonal` elements of the merge come from a. */
ALWAYS i64 merge_path(const struct side *a, const struct side *b, i64 diagonal,
                      enum key_kind kind) {
    i64 low = MAX_OF(0, diagonal - b->n);
    i64 high = MIN_OF(diagonal, a->n);
    while (low < high) {
        i64 mid = low + (high - low) / 2;
        bool b_first = less(b, diagonal - 1 - mid, a, mid, kind);
        low = b_first ? low : mid + 1;
        high = b_first ? mid : high;
    }
    return low;
}

/* Where element i of x belongs in the range [low, high) of `among`: behind the elements that are
 * less, or with `upper` not greater. Without branches on what is compared. */
ALWAYS i64 bound_of(const struct side *among, i64 low, i64 high, const struct side *x, i64 i,
                    bool upper, enum key_kind kind) {
    i64 n = high - low;
    while (n > 0) {
        i64 half = (n + 1) / 2;
        i64 at = low + half - 1;
        bool below = upper ? !less(x, i, among, at, kind) : less(among, at, x, i, kind);
        low += below ? half : 0;
        n = below ? n - half : half - 1;
    }
    return low;
}

/* --- merge --- */

struct merging {
    struct side a, b;
    struct prim_array out, out_payload, a_payload, b_payload;
};

#define MERGE_PAYLOAD(name, type)                                                                \
    static void merge_##name(const struct merging *m, i64 first, i64 i, i64 j, const b8 *from_b, \
                             i64 n) {                                                            \
        const type *a = (const type *)m->a_payload.data + i;                                     \
        const type *b = (const type *)m->b_payload.data + j;                                     \
        type *to = (type *)m->out_payload.data + first;                                          \
        for (i64 k = 0; k < n; k++) {                                                            \
            const type *from = from_b[k] ? b : a;                                                \
            to[k] = *from;                                                                       \
            a += !from_b[k];                                                                     \
            b += from_b[k];                                                                      \
        }                                                                                        \
    }
MERGE_PAYLOAD(payload4, u32)
MERGE_PAYLOAD(payload8, u64)
MERGE_PAYLOAD(payload16, struct prim_span)

ALWAYS void merge_block(const struct merging *m, i64 t, enum key_kind kind) {
    i64 first = t * ORDER_ROWS;
    i64 n = MIN_OF(ORDER_ROWS, m->a.n + m->b.n - first);
    i64 i = merge_path(&m->a, &m->b, first, kind);
    i64 j = first - i;
    b8 from_b[ORDER_ROWS];
    for (i64 k = 0, p = i, q = j; k < n; k++) {
        bool b = q < m->b.n && (p >= m->a.n || less(&m->b, q, &m->a, p, kind));
        put_key(m->out.data, first + k, b ? &m->b : &m->a, b ? q : p, kind);
        from_b[k] = b;
        q += b;
        p += !b;
    }
    if (m->out_payload.data) {
        i32 bytes = elem_bytes[m->out_payload.type];
        void (*payload)(const struct merging *, i64, i64, i64, const b8 *, i64) =
            bytes == 4   ? merge_payload4
            : bytes == 8 ? merge_payload8
                         : merge_payload16;
        payload(m, first, i, j, from_b, n);
    }
}

/* --- search --- */

struct searching {
    struct prim_search how;
    struct prim_array out;
    struct side needles, among;
};

/* Needles 0, 1, 2, … in segments: each segment fills its places. */
ALWAYS void balance_block(const struct searching *s, i64 t, enum key_kind kind) {
    i64 at = t * ORDER_ROWS;
    i64 end = MIN_OF(at + ORDER_ROWS, s->needles.n);
    i64 segment = bound_of(&s->among, 0, s->among.n, &s->needles, at, true, kind) - 1;
    while (at < end) {
        i64 next = end;
        if (segment + 1 < s->among.n) {
            u64 start = rank_of(&s->among, segment + 1, kind) ^ s->among.flip;
            next = start < (u64)end ? (i64)start : end;
        }
        for (; at < next; at++) {
            put_index(s->out, at, segment);
        }
        segment++;
    }
}

ALWAYS void search_block(const struct searching *s, i64 t, enum key_kind kind) {
    i64 first = t * ORDER_ROWS;
    i64 end = MIN_OF(first + ORDER_ROWS, s->needles.n);
    i64 low = 0;
    i64 add = s->how.minus_one ? -1 : 0;
    for (i64 i = first; i < end; i++) {
        i64 high = s->among.n;
        if (s->how.sorted && i > first) { /* near the last one: steps double */
            i64 step = 1;
            while (low + step < s->among.n &&
                   (s->how.upper ? !less(&s->needles, i, &s->among, low + step, kind)
                                 : less(&s->among, low + step, &s->needles, i, kind))) {
                low += step;
                step *= 2;
            }
            high = MIN_OF(low + step, s->among.n);
        }
        i64 found = bound_of(&s->among, low, high, &s->needles, i, s->how.upper, kind);
        low = s->how.sorted ? found : 0;
        put_index(s->out, i, found + add);
    }
}

/* --- runs --- */

struct running {
    struct side keys;
    struct prim_array out_keys, out_starts, out_counts;
    i64 room;
    i64 *before; /* runs that begin before each block; the last: all */
};

ALWAYS void count_runs_block(const struct running *r, i64 t, enum key_kind kind) {
    i64 end = MIN_OF((t + 1) * ORDER_ROWS, r->keys.n);
    i64 heads = 0;
    for (i64 i = t * ORDER_ROWS; i < end; i++) {
        heads += i == 0 || !same(&r->keys, i - 1, i, kind);
    }
    r->before[t] = heads;
}

ALWAYS void write_runs_block(const struct running *r, i64 t, enum key_kind kind) {
    i64 end = MIN_OF((t + 1) * ORDER_ROWS, r->keys.n);
    i64 at = r->before[t];
    for (i64 i = t * ORDER_ROWS; i < end && at < r->room; i++) {
        if (i > 0 && same(&r->keys, i - 1, i, kind)) {
            continue;
        }
        if (r->out_keys.data) {
            put_key(r->out_keys.data, at, &r->keys, i, kind);
        }
        if (r->out_starts.data) {
            put_index(r->out_starts, at, i);
        }
        at++;
    }
}

/* --- sets --- */

struct set_run {
    struct prim_set how;
    struct side a, b;
    struct prim_array out;
    i64 *cuts; /* per block: elements of a before it, elements of b before it */
    i64 *before;
    u8 *words; /* PAGED: room for a block's elements and what a star adds, per worker */
};

/* Where the balanced path crosses a diagonal: elements of a and of b before it. */
ALWAYS void balanced_path(const struct side *a, const struct side *b, i64 diagonal, i64 *out,
                          enum key_kind kind) {
    i64 i = merge_path(a, b, diagonal, kind);
    i64 j = diagonal - i;
    if (j < b->n) {
        i64 a_first = bound_of(a, 0, i, b, j, false, kind);
        i64 b_first = bound_of(b, 0, j, b, j, false, kind);
        i64 run = (i - a_first) + (j - b_first); /* elements equal to b[j] before the diagonal */
        i64 b_take = MAX_OF(run / 2, j - b_first);
        i64 b_end = MIN_OF(b_first + b_take + 1, b->n);
        i64 b_run = bound_of(b, j, b_end, b, j, true, kind) - b_first;
        b_take = MIN_OF(b_take, b_run);
        i64 a_take = run - b_take;
        i = a_first + a_take;
        j = b_first + b_take + (a_take == b_take + 1 && b_take < b_run);
    }
    out[0] = i;
    out[1] = j;
}

ALWAYS void cut_set_block(const struct set_run *s, i64 t, enum key_kind kind) {
    i64 diagonal = MIN_OF(t * ORDER_ROWS, s->a.n + s->b.n);
    balanced_path(&s->a, &s->b, diagonal, s->cuts + 2 * t, kind);
}

/* What a step keeps: bit 1 an element of a alone, bit 2 one of b alone, bit 3 one of both. */
static u32 kept_steps(const struct prim_set *how) {
    u32 keep_a = how->op != SET_INTERSECTION;
    u32 keep_b = how->op == SET_UNION || how->op == SET_SYMMETRIC;
    u32 keep_both = how->op == SET_UNION || how->op == SET_INTERSECTION;
    return keep_a << 1 | keep_b << 2 | keep_both << 3;
}

/* Walks one block; writes from `to` on, up to `limit`, when there is `out`. The number kept. Which
 * way a step goes cannot be foretold, so that there is no branch on it. */
ALWAYS i64 walk_set(const struct set_run *s, i64 t, void *out, i64 to, i64 limit,
                    enum key_kind kind) {
    const i64 *cut = s->cuts + 2 * t;
    u32 keeps = kept_steps(&s->how);
    bool distinct = s->how.distinct;
    i64 i = cut[0];
    i64 j = cut[1];
    i64 kept = 0;
    while (i < cut[2] || j < cut[3]) {
        bool only_a = j >= cut[3];
        bool only_b = i >= cut[2];
        bool a_goes = only_a || (!only_b && !less(&s->b, j, &s->a, i, kind));
        bool b_goes = only_b || (!only_a && !less(&s->a, i, &s->b, j, kind));
        i64 keep = keeps >> ((u32)a_goes + 2 * (u32)b_goes) & 1;
        if (distinct && keep) {
            keep = a_goes ? i == 0 || !same(&s->a, i - 1, i, kind)
                          : j == 0 || !same(&s->b, j - 1, j, kind);
        }
        if (out && to + kept < limit) {
            put_key(out, to + kept, a_goes ? &s->a : &s->b, a_goes ? i : j, kind);
        }
        kept += keep;
        i += a_goes;
        j += b_goes;
    }
    return kept;
}
ALWAYS void count_set_block(const struct set_run *s, i64 t, enum key_kind kind) {
    s->before[t] = walk_set(s, t, NULL, 0, 0, kind);
}
ALWAYS void write_set_block(const struct set_run *s, i64 t, enum key_kind kind) {
    (void)walk_set(s, t, s->out.data, s->before[t], s->before[t + 1], kind);
}

/* Of pages: the block's rows side by side, then the same walk. */
static i64 walk_paged(const struct set_run *s, i64 t, i32 worker, void *out, i64 to, i64 limit) {
    const i64 *cut = s->cuts + 2 * t;
    i32 bytes = elem_bytes[s->out.type];
    u8 *room = s->words + worker * (ORDER_ROWS + 1LL) * bytes;
    i64 cuts[4] = {0, 0, cut[2] - cut[0], cut[3] - cut[1]};
    struct set_run near = {.how = s->how, .a = s->a, .b = s->b, .cuts = cuts};
    near.a.data = rel_words(s->a.rows, cut[0], cut[2], room);
    near.b.data = rel_words(s->b.rows, cut[1], cut[3], room + cuts[2] * bytes);
    return bytes == 4   ? walk_set(&near, 0, out, to, limit, KIND_KEY_U32)
           : bytes == 8 ? walk_set(&near, 0, out, to, limit, KIND_KEY_U64)
                        : walk_set(&near, 0, out, to, limit, KIND_KEY_WIDE);
}

/* --- a task per kind of key --- */

typedef void (*order_task)(void *arg, i64 t, i32 worker);
#define TASK(name, type, block)                                \
    static void block##_##name(void *arg, i64 t, i32 worker) { \
        UNUSED(worker);                                        \
        block((const struct type *)arg, t, KIND_KEY_##name);   \
    }
#define X(name)                           \
    TASK(name, merging, merge_block)      \
    TASK(name, searching, search_block)   \
    TASK(name, searching, balance_block)  \
    TASK(name, running, count_runs_block) \
    TASK(name, running, write_runs_block) \
    TASK(name, set_run, cut_set_block)    \
    TASK(name, set_run, count_set_block)  \
    TASK(name, set_run, write_set_block)
KEY_KINDS(X)
#undef X
static void cut_set_paged(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    cut_set_block(arg, t, KIND_KEY_PAGED);
}
static void count_set_paged(void *arg, i64 t, i32 worker) {
    struct set_run *s = arg;
    s->before[t] = walk_paged(s, t, worker, NULL, 0, 0);
}
static void write_set_paged(void *arg, i64 t, i32 worker) {
    struct set_run *s = arg;
    (void)walk_paged(s, t, worker, s->out.data, s->before[t], s->before[t + 1]);
}
#define X(name) merge_block_##name,
static const order_task merge_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) search_block_##name,
static const order_task search_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) balance_block_##name,
static const order_task balance_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) count_runs_block_##name,
static const order_task count_runs_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) write_runs_block_##name,
static const order_task write_runs_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) cut_set_block_##name,
static const order_task cut_set_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) count_set_block_##name,
static const order_task count_set_tasks[] = {KEY_KINDS(X)};
#undef X
#define X(name) write_set_block_##name,
static const order_task write_set_tasks[] = {KEY_KINDS(X)};
#undef X

/* --- the operations --- */

/* Counts per block become what comes before each. */
static i64 sum_before(i64 *counts, i64 blocks) {
    i64 all = 0;
    for (i64 t = 0; t < blocks; t++) {
        i64 n = counts[t];
        counts[t] = all;
        all += n;
    }
    return all;
}

wf_status cpu_merge(struct prim_job *job, struct prim_array out, struct prim_array a,
                    struct prim_array b, struct prim_array out_payload, struct prim_array a_payload,
                    struct prim_array b_payload) {
    struct merging m = {side_of(a, 0), side_of(b, 0), out, out_payload, a_payload, b_payload};
    if (job->measuring) {
        return ERR_OK;
    }
    TRY(cpu_check_text(job, a));
    TRY(cpu_check_text(job, b));
    tasks_run(job->x, order_blocks(a.count + b.count), merge_tasks[kind_of(a.type)], &m);
    return exec_check(job->x);
}

wf_status cpu_search(struct prim_job *job, struct prim_search how, struct prim_array out,
                     struct prim_array needles, struct prim_array among) {
    struct searching s = {how, out, side_of(needles, 0), side_of(among, 0)};
    s.needles.counting = how.counting;
    s.needles.flip = s.among.flip;
    if (job->measuring) {
        return ERR_OK;
    }
    TRY(how.counting ? ERR_OK : cpu_check_text(job, needles));
    TRY(cpu_check_text(job, among));
    bool balance = how.counting && how.upper && how.minus_one;
    const order_task *tasks = balance ? balance_tasks : search_tasks;
    tasks_run(job->x, order_blocks(needles.count), tasks[kind_of(among.type)], &s);
    return exec_check(job->x);
}

wf_status cpu_runs(struct prim_job *job, struct prim_array out_keys, struct prim_array out_starts,
                   struct prim_array out_counts, struct prim_array keys, i64 *out_count) {
    struct running r = {side_of(keys, 0), out_keys, out_starts, out_counts, keys.count, NULL};
    r.room = out_keys.data ? MIN_OF(r.room, out_keys.count) : r.room;
    r.room = out_starts.data ? MIN_OF(r.room, out_starts.count) : r.room;
    r.room = out_counts.data ? MIN_OF(r.room, out_counts.count) : r.room;
    i64 blocks = order_blocks(keys.count);
    i64 mark = prim_mark(job);
    r.before = prim_take(job, blocks * 8);
    if (out_counts.count && !out_starts.data) {
        r.out_starts =
            (struct prim_array){.type = ELEM_U64, .data = prim_take(job, keys.count * 8)};
    }
    prim_back(job, mark);
    if (job->measuring) {
        return ERR_OK;
    }
    TRY(cpu_check_text(job, keys));
    tasks_run(job->x, blocks, count_runs_tasks[kind_of(keys.type)], &r);
    *out_count = sum_before(r.before, blocks);
    TRY(prim_room(job, "runs", *out_count, r.room));
    tasks_run(job->x, blocks, write_runs_tasks[kind_of(keys.type)], &r);
    for (i64 i = 0; i < *out_count && out_counts.data; i++) {
        bool wide = elem_bytes[r.out_starts.type] == 8;
        const u64 *far = r.out_starts.data;
        const u32 *near = r.out_starts.data;
        i64 end = i + 1 == *out_count ? keys.count : wide ? (i64)far[i + 1] : (i64)near[i + 1];
        put_index(out_counts, i, end - (wide ? (i64)far[i] : (i64)near[i]));
    }
    return exec_check(job->x);
}

/* Cuts, counts, then writes; there is room for blocks + 1 cuts and counts. */
static FALLIBLE run_sets(struct prim_job *job, struct set_run *s, const order_task tasks[3],
                         i64 *out_count) {
    i64 blocks = order_blocks(s->a.n + s->b.n);
    tasks_run(job->x, blocks + 1, tasks[0], s);
    tasks_run(job->x, blocks, tasks[1], s);
    TRY(exec_check(job->x));
    *out_count = sum_before(s->before, blocks);
    s->before[blocks] = *out_count;
    TRY(prim_room(job, "set operation", *out_count, s->out.count));
    tasks_run(job->x, blocks, tasks[2], s);
    return exec_check(job->x);
}

static void take_set_room(struct prim_job *job, struct set_run *s) {
    i64 blocks = order_blocks(s->a.n + s->b.n);
    s->cuts = prim_take(job, (blocks + 1) * 16);
    s->before = prim_take(job, (blocks + 1) * 8);
}

wf_status cpu_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                   struct prim_array a, struct prim_array b, i64 *out_count) {
    struct set_run s = {
        .how = how, .a = side_of(a, how.ignore_bits), .b = side_of(b, how.ignore_bits), .out = out};
    enum key_kind kind = kind_of(a.type);
    i64 mark = prim_mark(job);
    take_set_room(job, &s);
    prim_back(job, mark);
    if (job->measuring) {
        return ERR_OK;
    }
    TRY(cpu_check_text(job, a));
    TRY(cpu_check_text(job, b));
    const order_task tasks[3] = {cut_set_tasks[kind], count_set_tasks[kind], write_set_tasks[kind]};
    return run_sets(job, &s, tasks, out_count);
}

wf_status cpu_rel_sets(struct prim_job *job, struct prim_set how, struct prim_array out,
                       struct rel_rows x, struct rel_rows y, i64 *out_count) {
    struct side a = {.n = x.count, .ignore = how.ignore_bits, .rows = &x};
    struct side b = {.n = y.count, .ignore = how.ignore_bits, .rows = &y};
    struct set_run s = {.how = how, .a = a, .b = b, .out = out};
    i64 workers = job->x->pool ? pool_worker_count(job->x->pool) : 1;
    ASSERT(!how.distinct);
    i64 mark = prim_mark(job);
    take_set_room(job, &s);
    s.words = prim_take(job, workers * (ORDER_ROWS + 1) * elem_bytes[out.type]);
    prim_back(job, mark);
    static const order_task tasks[3] = {cut_set_paged, count_set_paged, write_set_paged};
    return job->measuring ? ERR_OK : run_sets(job, &s, tasks, out_count);
}

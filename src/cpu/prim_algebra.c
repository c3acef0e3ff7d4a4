/* prim_algebra.c: the CPU's operators on packed tuples but for joins: project, select, product,
 * reduction by key.
 *
 * Work is cut into tasks of a page or of TASK_ROWS rows; within a task loops run over blocks that
 * stay in the first cache. An ordered output takes two passes: count, then write. */
#include "cpu/rel_int.h"
#include "cpu/rel_words.h"

enum { TASK_ROWS = 1 << 16 };

/* Rows as pages: those of the relation, or cut out of an array. */
struct pages {
    struct rel_rows rows;
    i64 page_rows, count;
};

static struct pages pages_of(struct rel_rows rows, i64 page_rows) {
    if (rows.paged) {
        return (struct pages){rows, rows.page_rows, rows.page_count};
    }
    return (struct pages){rows, page_rows, (rows.count + page_rows - 1) / page_rows};
}
static i64 page_fill(const struct pages *p, i64 page) {
    if (p->rows.paged) {
        return MIN_OF((i64)p->rows.fills[page], p->page_rows);
    }
    return MIN_OF(p->page_rows, p->rows.count - page * p->page_rows);
}
static const u8 *page_data(const struct pages *p, i64 page) {
    return (const u8 *)p->rows.data + page * p->page_rows * elem_bytes[p->rows.type];
}

/* --- project --- */

struct project {
    struct pages in;
    struct rel_rows out;
    const struct rel_moves *moves;
};

#define MOVES(IN, OUT, T)                                                                          \
    static void moves_##IN##_##OUT(OUT *out, const IN *in, i64 n, const struct rel_moves *moves) { \
        for (u32 m = 0; m < moves->count; m++) {                                                   \
            const struct rel_move *move = &moves->move[m];                                         \
            const T mask = (T)((u128)move->mask_high << 64 | move->mask_low);                      \
            const u32 from = move->from;                                                           \
            const u32 to = move->to;                                                               \
            for (i64 i = 0; i < n; i++) {                                                          \
                T bits = (T)((T)((T)(in[i] >> from) & mask) << to);                                \
                out[i] = (OUT)(m ? out[i] | (OUT)bits : (OUT)bits);                                \
            }                                                                                      \
        }                                                                                          \
    }
REL_WORD_PAIRS(MOVES)
#undef MOVES

static void move_block(void *out, i32 out_bytes, const void *in, i32 in_bytes, i64 n,
                       const struct rel_moves *moves) {
#define CASE(IN, OUT, T)                                                \
    if (in_bytes == (i32)sizeof(IN) && out_bytes == (i32)sizeof(OUT)) { \
        moves_##IN##_##OUT((OUT *)out, (const IN *)in, n, moves);       \
    }
    REL_WORD_PAIRS(CASE)
#undef CASE
}

static void project_task(void *arg, i64 page, i32 worker) {
    UNUSED(worker);
    const struct project *p = arg;
    i32 in_bytes = elem_bytes[p->in.rows.type];
    i32 out_bytes = elem_bytes[p->out.type];
    i64 fill = page_fill(&p->in, page);
    const u8 *in = page_data(&p->in, page);
    u8 *out = (u8 *)p->out.data + page * p->in.page_rows * out_bytes;
    for (i64 at = 0; at < fill; at += REL_BLOCK) {
        move_block(out + at * out_bytes, out_bytes, in + at * in_bytes, in_bytes,
                   MIN_OF(fill - at, REL_BLOCK), p->moves);
    }
    if (p->out.paged) {
        p->out.fills[page] = (u32)fill;
    }
}

static FALLIBLE project(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                        const struct rel_moves *moves) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct project p = {pages_of(in, out.paged ? out.page_rows : TASK_ROWS), out, moves};
    tasks_run(job->x, p.in.count, project_task, &p);
    return exec_check(job->x);
}

/* --- select --- */

struct select {
    struct pages in;
    struct rel_rows out;
    const struct rel_terms *terms;
    i64 *counts; /* kept, by page */
    i64 *starts; /* NULL: count only */
};

/* The kept rows of a block, copied to `out`, where `room` rows may be written. */
static i64 select_block(const struct select *s, const u8 *in, i64 n, u8 *out, i64 room) {
    i32 bytes = elem_bytes[s->in.rows.type];
    b8 keep[REL_BLOCK];
    w128 kept[REL_BLOCK + 1];
    i64 count = 0;
    if (bytes == 4) {
        test_u32((const u32 *)(const void *)in, n, s->terms, keep);
    } else if (bytes == 8) {
        test_u64((const u64 *)(const void *)in, n, s->terms, keep);
    } else {
        test_u128((const w128 *)(const void *)in, n, s->terms, keep);
    }
    if (!out) {
        for (i64 i = 0; i < n; i++) {
            count += keep[i];
        }
        return count;
    }
    if (bytes == 4) {
        count = compact_u32((u32 *)(void *)kept, (const u32 *)(const void *)in, keep, n);
    } else if (bytes == 8) {
        count = compact_u64((u64 *)(void *)kept, (const u64 *)(const void *)in, keep, n);
    } else {
        count = compact_u128(kept, (const w128 *)(const void *)in, keep, n);
    }
    i64 fits = MAX_OF(0, MIN_OF(count, room));
    memcpy(out, kept, (size_t)(fits * bytes));
    return count;
}

static void select_task(void *arg, i64 page, i32 worker) {
    UNUSED(worker);
    const struct select *s = arg;
    i32 bytes = elem_bytes[s->in.rows.type];
    i64 fill = page_fill(&s->in, page);
    const u8 *in = page_data(&s->in, page);
    bool write = s->out.paged || s->starts;
    i64 start = s->out.paged ? page * s->in.page_rows : s->starts ? s->starts[page] : 0;
    i64 room = s->out.paged ? (page + 1) * s->in.page_rows : s->out.count;
    i64 count = 0;
    for (i64 at = 0; at < fill; at += REL_BLOCK) {
        i64 to = MIN_OF(start + count, room);
        count += select_block(s, in + at * bytes, MIN_OF(fill - at, REL_BLOCK),
                              write ? (u8 *)s->out.data + to * bytes : NULL, room - to);
    }
    s->counts[page] = count;
    if (s->out.paged) {
        s->out.fills[page] = (u32)count;
    }
}

/* Counts to where each begins; returns the total. */
static i64 sum_up(i64 *starts, const i64 *counts, i64 n) {
    i64 total = 0;
    for (i64 i = 0; i < n; i++) {
        i64 count = counts[i];
        starts[i] = total;
        total += count;
    }
    return total;
}

static FALLIBLE select_rows(struct prim_job *job, struct rel_rows out, struct rel_rows in,
                            const struct rel_terms *terms, bool unordered, i64 *out_count) {
    UNUSED(unordered);
    struct select s = {
        .in = pages_of(in, out.paged ? out.page_rows : TASK_ROWS), .out = out, .terms = terms};
    s.counts = prim_take(job, s.in.count * 8);
    i64 *starts = prim_take(job, s.in.count * 8);
    if (job->measuring) {
        return ERR_OK;
    }
    tasks_run(job->x, s.in.count, select_task, &s);
    TRY(exec_check(job->x));
    *out_count = sum_up(starts, s.counts, s.in.count);
    if (!out.paged) {
        s.starts = starts;
        tasks_run(job->x, s.in.count, select_task, &s);
    }
    return exec_check(job->x);
}

/* --- product --- */

struct product {
    struct rel_rows out, x, y;
    const struct rel_combine *combine;
};

static void product_task(void *arg, i64 task, i32 worker) {
    UNUSED(worker);
    const struct product *p = arg;
    i32 bytes = elem_bytes[p->out.type];
    i32 y_bytes = elem_bytes[p->y.type];
    struct rel_moves y_moves = {.move = {p->combine->y}, .count = 1};
    i64 end = MIN_OF((task + 1) * TASK_ROWS, p->out.count);
    for (i64 at = task * TASK_ROWS; at < end;) {
        i64 y;
        i64 n = rel_stretch(&p->y, at % p->y.count, &y);
        n = MIN_OF(MIN_OF(n, end - at), REL_BLOCK);
        u128 x = word_move(rel_word_at(&p->x, at / p->y.count), &p->combine->x);
        u8 *out = (u8 *)p->out.data + at * bytes;
        move_block(out, bytes, (const u8 *)p->y.data + y * y_bytes, y_bytes, n, &y_moves);
        for (i64 i = 0; i < n && bytes == 4; i++) {
            ((u32 *)(void *)out)[i] |= (u32)x;
        }
        for (i64 i = 0; i < n && bytes == 8; i++) {
            ((u64 *)(void *)out)[i] |= (u64)x;
        }
        for (i64 i = 0; i < n && bytes == 16; i++) {
            ((w128 *)(void *)out)[i] |= x;
        }
        at += n;
    }
}

static FALLIBLE product(struct prim_job *job, struct rel_rows out, struct rel_rows x,
                        struct rel_rows y, const struct rel_combine *combine) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct product p = {out, x, y, combine};
    tasks_run(job->x, (out.count + TASK_ROWS - 1) / TASK_ROWS, product_task, &p);
    return exec_check(job->x);
}

/* --- reduction --- */

struct reduce {
    const struct rel_reduce *r;
    i64 *counts, *starts;
    u64 *parts;
};

static void heads_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct reduce *s = arg;
    const struct rel_rows *in = &s->r->in;
    i64 first = t * TASK_ROWS;
    i64 end = MIN_OF(first + TASK_ROWS, in->count);
    u32 shift = s->r->key_shift;
    i32 bytes = elem_bytes[in->type];
    s->counts[t] = 0;
    for (i64 i = first; i < end;) {
        i64 at;
        i64 n = MIN_OF(rel_stretch(in, i, &at), end - i);
        const u8 *words = (const u8 *)in->data + at * bytes;
        const void *before = i ? (const u8 *)in->data + rel_place(in, i - 1) * bytes : NULL;
        s->counts[t] += bytes == 4   ? heads_u32((const void *)words, n, shift, before)
                        : bytes == 8 ? heads_u64((const void *)words, n, shift, before)
                                     : heads_u128((const void *)words, n, shift, before);
        i += n;
    }
}

static void reduce_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct reduce *s = arg;
    const struct rel_rows *in = &s->r->in;
    i64 first = t * TASK_ROWS;
    i64 end = MIN_OF(first + TASK_ROWS, in->count);
    i32 bytes = elem_bytes[in->type];
    void *out = s->r->out.data;
    i64 at = s->starts[t];
    s->parts[t] = reduce_identity(s->r->reduce);
    for (i64 i = first; i < end;) {
        i64 place;
        u64 part;
        i64 n = MIN_OF(rel_stretch(in, i, &place), end - i);
        const void *words = (const u8 *)in->data + place * bytes;
        const void *before = i ? (const u8 *)in->data + rel_place(in, i - 1) * bytes : NULL;
        u64 *begun = i == first || at == s->starts[t] ? &s->parts[t] : &s->r->values[at - 1];
        i64 groups = 0;
        if (bytes == 4) {
            groups = reduce_u32(s->r, words, out, n, at, before, &part);
        } else if (bytes == 8) {
            groups = reduce_u64(s->r, words, out, n, at, before, &part);
        } else {
            groups = reduce_u128(s->r, words, out, n, at, before, &part);
        }
        *begun = reduce_join(s->r->reduce, *begun, part);
        at += groups;
        i += n;
    }
}

static FALLIBLE reduce(struct prim_job *job, const struct rel_reduce *r, i64 *out_count) {
    i64 tasks = (r->in.count + TASK_ROWS - 1) / TASK_ROWS;
    struct reduce s = {.r = r};
    s.counts = prim_take(job, tasks * 8);
    s.starts = prim_take(job, tasks * 8);
    s.parts = prim_take(job, tasks * 8);
    if (job->measuring) {
        return ERR_OK;
    }
    tasks_run(job->x, tasks, heads_task, &s);
    TRY(exec_check(job->x));
    *out_count = sum_up(s.starts, s.counts, tasks);
    if (*out_count > MIN_OF(r->out.count, r->value_room)) {
        return ERR_OK; /* the entry point says so */
    }
    tasks_run(job->x, tasks, reduce_task, &s);
    TRY(exec_check(job->x));
    for (i64 t = 1; t < tasks; t++) {
        u64 *to = &r->values[s.starts[t] - 1];
        *to = reduce_join(r->reduce, *to, s.parts[t]);
    }
    return ERR_OK;
}

static FALLIBLE starts(struct prim_job *job, u64 *out, struct rel_rows rows, i64 *out_count) {
    u64 total = 0;
    for (i64 p = 0; p <= rows.page_count && !job->measuring; p++) {
        out[p] = total;
        total += p < rows.page_count ? (u64)MIN_OF((i64)rows.fills[p], rows.page_rows) : 0;
    }
    *out_count = (i64)total;
    return exec_check(job->x);
}

static FALLIBLE fill(struct prim_job *job, u32 *fills, i64 page_rows, i64 pages, i64 count) {
    for (i64 p = 0; p < pages; p++) {
        fills[p] = (u32)MIN_OF(page_rows, count - p * page_rows);
    }
    return exec_check(job->x);
}

const struct prim_algebra cpu_prim_algebra = {.project = project,
                                              .select = select_rows,
                                              .product = product,
                                              .join = cpu_rel_join,
                                              .sets = cpu_rel_sets,
                                              .reduce = reduce,
                                              .starts = starts,
                                              .fill = fill};

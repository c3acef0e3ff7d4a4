/* index_build.c: from a key to rows: STEP_BUILD.
 *
 * One look at the keys, chunk by chunk, tells their span, whether they ascend, and how many there
 * are. That decides the form. Where the span allows it, an index is a bitmap with counts: a bit a
 * key, and for every 64 of them how many came before. That is 2 bits a key of the span, so the keys
 * of millions of rows stay in a core's cache. The count is the row itself when the keys ascend, as
 * they do when a table is scanned in the order of its key. Keys in no order whose span is hardly
 * more than their number get an array indexed by the key: one load instead of two. All others are
 * hashed (index_hash.c).
 *
 * A build assumes unique keys and starts over with runs on the first duplicate. Rows whose key is
 * NULL match nothing and are left out. Rows beyond what 32 bits number have an index of their own,
 * and so on: a chain (decision 0084). */
#include "cpu/index_int.h"
#include "cpu/prim_int.h"

enum {
    RANK_MIN = 1 << 20, /* a span that is always affordable: 256 KiB */
    RANK_PER_KEY = 64,
    DIRECT_PER_KEY = 4,
#ifdef WF_HARD
    PARALLEL_ROWS = 1 << 9,
#else
    PARALLEL_ROWS = 1 << 17,
#endif
    PARTS_MAX = 8,
    ROWS_PER_CHECK = STOP_EVERY(1 << 18)
};

/* looking at the keys */

struct key_facts {
    i64 lo, hi, keys;
    b8 ascending, strict;
};

struct scan {
    const struct build *b;
    struct key_facts *facts;
};

static void scan_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    const struct scan *scan = arg;
    const b8 *nulls;
    const i64 *key = build_keys(scan->b, c, &nulls);
    i64 rows = scan->b->chunks[c]->rows;
    struct key_facts f = {I64_MAX, I64_MIN, rows, 1, 1};
    i64 falls = 0;
    i64 repeats = 0;
    for (i64 i = 1; i < rows && !nulls; i++) {
        falls += key[i] < key[i - 1];
        repeats += key[i] == key[i - 1];
    }
    if (!nulls && rows > 0) {
        f.lo = key[0];
        f.hi = key[rows - 1];
    }
    for (i64 i = 0; i < rows && !nulls && falls; i++) {
        f.lo = MIN_OF(f.lo, key[i]);
        f.hi = MAX_OF(f.hi, key[i]);
    }
    for (i64 i = 0; i < rows && nulls; i++) {
        f.keys -= nulls[i];
        falls += nulls[i];
        if (!nulls[i]) {
            falls += f.lo <= f.hi && key[i] < f.hi; /* hi is the last one while they ascend */
            repeats += f.lo <= f.hi && key[i] == f.hi;
            f.lo = MIN_OF(f.lo, key[i]);
            f.hi = MAX_OF(f.hi, key[i]);
        }
    }
    f.ascending = falls == 0;
    f.strict = f.ascending && repeats == 0;
    scan->facts[c] = f;
    mem_pass(scan->b->x->mem, key, rows * (i64)sizeof *key);
    work_rows(scan->b->x, scan->b->chunks[c]->rows);
}

wf_status build_scan(struct build *b, struct exec *x, struct chunk **chunks, i64 count, u32 col) {
    *b = (struct build){.x = x, .col = col, .lo = I64_MAX, .hi = I64_MIN};
    b->chunks = chunks;
    b->chunk_count = count;
    b->starts = NEW_ARRAY(x->arena, i64, b->chunk_count + 1);
    struct scan scan = {b, NEW_ARRAY(x->arena, struct key_facts, b->chunk_count + 1)};
    for (i64 c = 0; c < b->chunk_count; c++) {
        b->starts[c + 1] = b->starts[c] + b->chunks[c]->rows;
    }
    b->rows = b->starts[b->chunk_count];
    tasks_run(x, b->chunk_count, scan_task, &scan);
    b->ascending = b->strict = 1;
    for (i64 c = 0; c < b->chunk_count; c++) {
        const struct key_facts *f = &scan.facts[c];
        if (f->keys == 0 && b->chunks[c]->rows == 0) {
            continue;
        }
        bool first = b->lo > b->hi;
        b->ascending = b->ascending && f->ascending && (first || f->lo >= b->hi);
        b->strict = b->strict && b->ascending && f->strict && (first || f->lo > b->hi);
        b->lo = MIN_OF(b->lo, f->lo);
        b->hi = MAX_OF(b->hi, f->hi);
        b->keys += f->keys;
    }
    return exec_check(x);
}

/* Keys in no order: every task looks at all of them and takes those of its own part of the span, so
 * that no two write to the same place. A part is whole blocks of 64 keys. */
struct parts {
    struct build *b;
    i64 count;
    u64 per; /* slots of a part */
    _Atomic i32 twice;
};

static struct parts parts_of(struct build *b) {
    struct parts p = {.b = b, .count = 1};
    if (b->rows >= PARALLEL_ROWS && b->x->pool) {
        p.count = MIN_OF(pool_worker_count(b->x->pool), PARTS_MAX);
    }
    p.per = ((u64)b->index->slot_count / 64 / (u64)p.count + 1) * 64;
    return p;
}

static FALLIBLE parts_run(struct parts *p, void (*task)(void *arg, i64 part, i32 worker)) {
    tasks_run(p->b->x, p->count, task, p);
    work_rows(p->b->x, p->b->rows);
    return exec_check(p->b->x);
}

static inline bool is_mine(const struct parts *p, i64 part, u64 slot) {
    return slot - p->per * (u64)part < p->per;
}

/* a bitmap with counts */

static FALLIBLE alloc_heads(struct build *b, i64 count) {
    b->index->heads = mem_alloc(b->x->mem, count * (i64)sizeof(u32));
    b->index->head_count = count;
    if (!b->index->heads) {
        return memory_refused(b->x->mem, b->x->err, count * (i64)sizeof(u32));
    }
    memset(b->index->heads, 0, (size_t)count * sizeof(u32));
    return ERR_OK;
}

static FALLIBLE alloc_rows(struct build *b) {
    i64 bytes = b->index->row_count * (i64)sizeof(u32);
    b->index->rows = mem_alloc(b->x->mem, bytes);
    return b->index->rows ? ERR_OK : memory_refused(b->x->mem, b->x->err, bytes);
}

/* Keys that ascend: bits gather in a register; only a chunk's first and last block have neighbours.
 */
static void bits_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    const struct build *b = arg;
    const b8 *nulls;
    const i64 *key = build_keys(b, c, &nulls);
    struct rank_block *blocks = b->index->blocks;
    i64 rows = b->chunks[c]->rows;
    if (rows == 0) {
        return;
    }
    u64 lo = (u64)b->index->key_lo;
    u64 first = ((u64)key[0] - lo) >> 6;
    u64 at = first;
    u64 bits = 0;
    for (i64 i = 0; i < rows; i++) {
        u64 slot = (u64)key[i] - lo;
        if (slot >> 6 != at) {
            if (at == first) {
                __atomic_fetch_or(&blocks[at].bits, bits, __ATOMIC_RELAXED);
            } else {
                blocks[at].bits = bits;
            }
            at = slot >> 6;
            bits = 0;
        }
        bits |= 1ULL << (slot & 63);
    }
    __atomic_fetch_or(&blocks[at].bits, bits, __ATOMIC_RELAXED);
}

static void bits_part(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    struct parts *p = arg;
    const struct build *b = p->b;
    struct rank_block *blocks = b->index->blocks;
    u64 twice = 0;
    for (i64 c = 0; c < b->chunk_count && !exec_check(b->x); c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            u64 slot = (u64)key[i] - (u64)b->index->key_lo;
            if (!is_mine(p, part, slot) || (nulls && nulls[i])) {
                continue;
            }
            u64 bit = 1ULL << (slot & 63);
            twice |= blocks[slot >> 6].bits & bit;
            blocks[slot >> 6].bits |= bit;
        }
    }
    if (twice) {
        atomic_store_explicit(&p->twice, 1, memory_order_relaxed);
    }
}

/* Sets the bits; true when a key occurred twice. */
static FALLIBLE set_bits(struct build *b, bool *out_twice) {
    if (b->ascending) {
        tasks_run(b->x, b->chunk_count, bits_task, b);
        *out_twice = !b->strict;
        return exec_check(b->x);
    }
    struct parts parts = parts_of(b);
    TRY(parts_run(&parts, bits_part));
    *out_twice = atomic_load(&parts.twice) != 0;
    return ERR_OK;
}

/* Every level of this device has the instruction; the rest of this file asks for less. */
#if defined(__x86_64__)
#define COUNTS_BITS __attribute__((target("popcnt")))
#else
#define COUNTS_BITS
#endif

COUNTS_BITS static inline u32 rank_at(const struct index *index, i64 key) {
    u64 slot = (u64)key - (u64)index->key_lo;
    const struct rank_block *block = &index->blocks[slot >> 6];
    u64 below = block->bits & ((1ULL << (slot & 63)) - 1);
    return (u32)(block->before + (u64)__builtin_popcountll(below));
}

/* The row of every count, where rows are not in the order of their keys. */
COUNTS_BITS static void order_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    const b8 *nulls;
    const i64 *key = build_keys(b, c, &nulls);
    if (exec_check(b->x)) {
        atomic_store_explicit(&b->stopped, 1, memory_order_relaxed);
        return;
    }
    for (i64 i = 0; i < b->chunks[c]->rows; i++) {
        if (!nulls || !nulls[i]) {
            b->index->rows[rank_at(b->index, key[i])] = (u32)(b->starts[c] + i);
        }
    }
}

/* Keys that ascend: a run starts where the key changes, and rows are in order already. */
COUNTS_BITS static void ascending_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    const struct build *b = arg;
    const b8 *nulls;
    const i64 *key = build_keys(b, c, &nulls);
    i64 rows = b->chunks[c]->rows;
    if (rows == 0) {
        return;
    }
    i64 last = 0;
    bool begun = false; /* an earlier chunk has the first key too */
    for (i64 before = c; before-- > 0;) {
        i64 count = b->chunks[before]->rows;
        if (count > 0) {
            last = build_keys(b, before, &nulls)[count - 1];
            begun = last == key[0];
            break;
        }
    }
    u32 *head = b->index->heads + rank_at(b->index, key[0]) + begun;
    for (i64 i = 0; i < rows; i++) {
        if (!begun || key[i] != last) {
            *head++ = (u32)(b->starts[c] + i);
            last = key[i];
            begun = true;
        }
    }
}

/* Where the run of a slot is counted and filled: heads[number + 1]. */
COUNTS_BITS static inline u32 *head_of(const struct index *index, i64 key) {
    u64 slot = (u64)key - (u64)index->key_lo;
    return &index->heads[(index->form == INDEX_RANK ? rank_at(index, key) : slot) + 1];
}

COUNTS_BITS static void count_part(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    const struct parts *p = arg;
    const struct build *b = p->b;
    for (i64 c = 0; c < b->chunk_count && !exec_check(b->x); c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            if (is_mine(p, part, (u64)key[i] - (u64)b->index->key_lo) && !(nulls && nulls[i])) {
                ++*head_of(b->index, key[i]);
            }
        }
    }
}

/* heads[number + 1] is where the run ends: filled from the back, it becomes where it starts. */
COUNTS_BITS static void fill_part(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    const struct parts *p = arg;
    const struct build *b = p->b;
    for (i64 c = b->chunk_count; c-- > 0 && !exec_check(b->x);) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        for (i64 i = b->chunks[c]->rows; i-- > 0;) {
            if (is_mine(p, part, (u64)key[i] - (u64)b->index->key_lo) && !(nulls && nulls[i])) {
                b->index->rows[--*head_of(b->index, key[i])] = (u32)(b->starts[c] + i);
            }
        }
    }
}

/* heads[1 .. count] become their sums. */
static FALLIBLE counts_to_ends(struct build *b, i64 count) {
    struct prim_array heads = {.type = ELEM_U32, .data = b->index->heads + 1, .count = count};
    struct prim_job job = prim_job_inside(b->x, NULL);
    TRY(prim_cpu_scan(&job, FOLD_ADD, true, heads, heads));
    void *work = mem_alloc(b->x->mem, job.work_peak);
    if (!work) {
        return memory_refused(b->x->mem, b->x->err, job.work_peak);
    }
    prim_job_go(&job, work);
    wf_status status = prim_cpu_scan(&job, FOLD_ADD, true, heads, heads);
    mem_free(b->x->mem, work, job.work_peak);
    return status;
}

/* Runs of rows of `count` numbers, heads being zero: counts, then ends, then every row to its
 * place. */
static FALLIBLE fill_runs(struct build *b, i64 count) {
    struct index *index = b->index;
    struct parts parts = parts_of(b);
    TRY(alloc_rows(b));
    TRY(parts_run(&parts, count_part));
    TRY(counts_to_ends(b, count));
    TRY(parts_run(&parts, fill_part));
    memmove(index->heads, index->heads + 1, (size_t)count * sizeof(u32));
    index->heads[count] = (u32)index->row_count;
    return ERR_OK;
}

static FALLIBLE rank_runs(struct build *b, i64 distinct) {
    struct index *index = b->index;
    TRY(alloc_heads(b, distinct + 1));
    if (!b->ascending) {
        return fill_runs(b, distinct);
    }
    tasks_run(b->x, b->chunk_count, ascending_task, b);
    index->heads[distinct] = (u32)index->row_count;
    return exec_check(b->x);
}

COUNTS_BITS static FALLIBLE rank_build(struct build *b) {
    struct index *index = b->index;
    index->form = INDEX_RANK;
    index->block_count = index->slot_count / 64 + 1;
    i64 bytes = index->block_count * (i64)sizeof(struct rank_block);
    index->blocks = mem_alloc(b->x->mem, bytes);
    if (!index->blocks) {
        return memory_refused(b->x->mem, b->x->err, bytes);
    }
    memset(index->blocks, 0, (size_t)bytes);
    bool twice = false;
    TRY(set_bits(b, &twice));
    u64 before = 0;
    for (i64 i = 0; i < index->block_count; i++) {
        index->blocks[i].before = before;
        before += (u64)__builtin_popcountll(index->blocks[i].bits);
    }
    if (twice) {
        return rank_runs(b, (i64)before);
    }
    index->unique = 1;
    if (b->ascending) {
        return ERR_OK;
    }
    TRY(alloc_rows(b));
    tasks_run(b->x, b->chunk_count, order_task, b);
    return exec_check(b->x);
}

/* an array indexed by the key */

/* Inserts the rows whose slot lies in the part. */
static void direct_part(void *arg, i64 part, i32 worker) {
    UNUSED(worker);
    const struct parts *p = arg;
    struct build *b = p->b;
    u32 *heads = b->index->heads;
    for (i64 c = 0; c < b->chunk_count; c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        if (atomic_load_explicit(&b->duplicate, memory_order_relaxed) || exec_check(b->x)) {
            return;
        }
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            u64 slot = (u64)key[i] - (u64)b->index->key_lo;
            if (!is_mine(p, part, slot) || (nulls && nulls[i])) {
                continue;
            }
            if (heads[slot]) {
                atomic_store_explicit(&b->duplicate, 1, memory_order_relaxed);
                return;
            }
            heads[slot] = (u32)(b->starts[c] + i) + 1;
        }
    }
}

static FALLIBLE direct_build(struct build *b) {
    struct index *index = b->index;
    index->form = INDEX_DIRECT;
    TRY(alloc_heads(b, index->slot_count + 1));
    struct parts parts = parts_of(b);
    TRY(parts_run(&parts, direct_part));
    index->unique = !atomic_load(&b->duplicate);
    if (index->unique) {
        return ERR_OK;
    }
    memset(index->heads, 0, (size_t)(index->slot_count + 1) * sizeof(u32));
    return fill_runs(b, index->slot_count);
}

wf_status build_bits(const struct build *b, u32 *bits, i64 lo) {
    for (i64 c = 0; c < b->chunk_count; c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        TRY(exec_check(b->x));
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            if (!nulls || !nulls[i]) {
                u64 bit = (u64)key[i] - (u64)lo;
                bits[bit >> 5] |= 1u << (bit & 31);
            }
        }
    }
    return ERR_OK;
}

static u64 span_of(const struct build *b) {
    return b->lo <= b->hi ? (u64)b->hi - (u64)b->lo : 0;
}

static bool is_hashed(const struct build *b) {
    return span_of(b) >= (u64)MAX_OF(RANK_PER_KEY * b->keys, (i64)RANK_MIN);
}

static FALLIBLE build_form(struct build *b) {
    b->index->key_lo = b->lo <= b->hi ? b->lo : 0;
    if (is_hashed(b)) {
        return hash_build(b, false);
    }
    b->index->slot_count = (i64)span_of(b) + 1;
    bool dense = span_of(b) < (u64)(DIRECT_PER_KEY * b->keys);
    return dense && !b->ascending ? direct_build(b) : rank_build(b);
}

/* more rows than an index has */

/* Chunks of rows [first, end) of those of `b`: the column of keys, nothing else. */
static struct chunk **rows_between(const struct build *b, i64 first, i64 end, i64 *out_count) {
    struct arena *arena = b->x->arena;
    struct chunk **chunks = NEW_ARRAY(arena, struct chunk *, b->chunk_count + 1);
    i64 count = 0;
    for (i64 c = 0; c < b->chunk_count; c++) {
        i64 from = MAX_OF(first, b->starts[c]);
        i64 to = MIN_OF(end, b->starts[c + 1]);
        if (from >= to) {
            continue;
        }
        const b8 *nulls;
        i64 skipped = from - b->starts[c];
        i64 *keys = (i64 *)build_keys(b, c, &nulls) + skipped;
        struct chunk *view = NEW(arena, struct chunk);
        view->rows = to - from;
        view->cols = NEW_ARRAY(arena, struct column, b->col + 1);
        view->cols[b->col] = (struct column){KIND_I64, keys, nulls ? (b8 *)nulls + skipped : NULL};
        chunks[count++] = view;
    }
    *out_count = count;
    return chunks;
}

static FALLIBLE build_chain(struct build *b) {
    b->index->form = INDEX_CHAIN;
    for (i64 first = 0, end; first < b->rows; first = end) {
        i64 count = 0;
        struct build part;
        struct index *index;
        end = MIN_OF(b->rows, first + index_rows_most(first));
        struct chunk **chunks = rows_between(b, first, end, &count);
        TRY(arena_check(b->x->arena, b->x->err));
        TRY(build_scan(&part, b->x, chunks, count, b->col));
        TRY(index_add_part(b->x, b->index, first, &index));
        part.index = index;
        index->row_count = part.keys;
        TRY(build_form(&part));
    }
    return ERR_OK;
}

wf_status index_form(struct build *b) {
    if (b->rows > index_rows_most(0)) {
        wf_status status = build_chain(b);
        index_measure(b->index);
        return status;
    }
    b->index->row_count = b->keys;
    wf_status status = build_form(b);
    index_measure(b->index);
    return status;
}

wf_status index_build(struct exec *x, const struct step *step) {
    struct variable *from = &x->vars[step->src];
    struct variable *to = &x->vars[step->dst];
    struct build b;
    variable_reset(to);
    (void)index_new(x, step->dst);
    to->on_host = 1;
    to->rows = from->rows;
    work_expect(x, (from->rows > index_rows_most(0) ? 4 : 3) * from->rows); /* parts look again */
    TRY(build_scan(&b, x, from->chunks.items, from->chunks.count, step->col));
    b.index = to->index;
    b.index->row_count = b.keys;
    i32 bits = class_bits(&b, step, is_hashed(&b));
    return bits ? classes_build(&b, step, bits) : index_form(&b);
}

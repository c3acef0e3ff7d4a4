/* prim_match_table.c: the CPU's joins through one table over all of the built side.
 *
 * Workers claim slots by compare-and-swap of the key (four-byte keys: of key and value at once), so
 * a build needs no partitioning. Keys of a batch ask for their slots before any is read. */
#include "cpu/prim_match.h"

#include "defs/host_words.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"

enum { BATCH = 64 };

static inline u64 hash_of(const struct match *m, u64 key) {
    return m->bytes == 8 ? hash_64(key) : hash_32((u32)key);
}

struct look { /* keys of a batch and where they are looked for */
    u64 key[BATCH];
    u64 slot[BATCH];
    u64 value[BATCH];
    b8 found[BATCH];
};

/* `key` as it lies in memory; the slots hold words. */
static void look_at(const struct match *m, struct look *l, const void *keys, i64 first, i64 n) {
    const struct join_table *t = &m->join->table;
    for (i64 j = 0; j < n; j++) {
        l->key[j] = key_at(keys, m->bytes, first + j);
    }
    if (t->bits) {
        for (i64 j = 0; j < n; j++) {
            l->slot[j] = (l->key[j] ^ m->flip) - t->lo;
            bool in = l->slot[j] < (u64)t->slot_count;
            __builtin_prefetch((u8 *)t->slots + (in ? l->slot[j] : 0) * (u64)t->value_bytes);
        }
        return;
    }
    for (i64 j = 0; j < n; j++) {
        l->slot[j] = hash_of(m, l->key[j]) & (u64)(t->slot_count - 1);
        l->key[j] ^= m->flip;
        __builtin_prefetch((u8 *)t->slots + l->slot[j] * 2 * (u64)m->bytes);
    }
}

/* True: the key was there already. */
static bool put_direct(const struct join_table *t, u64 slot, u64 value) {
    u32 bit = 1u << (slot & 31);
    if (__atomic_fetch_or(&t->bits[slot >> 5], bit, __ATOMIC_RELAXED) & bit) {
        return true;
    }
    if (t->value_bytes == 8) {
        ((u64 *)t->slots)[slot] = value;
    } else {
        ((u32 *)t->slots)[slot] = (u32)value;
    }
    return false;
}

static bool put(const struct match *m, u64 word, u64 slot, u64 value) {
    const struct join_table *t = &m->join->table;
    u64 mask = (u64)t->slot_count - 1;
    return t->bits ? put_direct(t, slot, value)
           : m->bytes == 8
               ? pair_put_8(t->slots, mask, t->empty, word, value, 0, slot)
               : pair_put_4(t->slots, mask, (u32)t->empty, (u32)word, (u32)value, 0, slot);
}

static void find(const struct match *m, struct look *l, i64 n) {
    const struct join_table *t = &m->join->table;
    const u64 *slots = t->slots;
    u64 mask = (u64)t->slot_count - 1;
    for (i64 j = 0; j < n; j++) {
        u64 slot = l->slot[j];
        u64 word = l->key[j];
        if (t->bits) {
            bool in =
                slot < (u64)t->slot_count && (t->dense || (t->bits[slot >> 5] >> (slot & 31) & 1));
            l->found[j] = in;
            l->value[j] = in ? key_at(t->slots, t->value_bytes, (i64)slot) : 0;
        } else if (m->bytes == 8) {
            u64 held = slots[2 * slot];
            TABLE_WALK(slot, mask, held, slots[2 * slot], held != word && held != t->empty)
            l->found[j] = held != t->empty;
            l->value[j] = slots[2 * slot + 1];
        } else {
            u64 held = slots[slot];
            TABLE_WALK(slot, mask, held, slots[slot], (u32)held != word && (u32)held != t->empty)
            l->found[j] = (u32)held != t->empty;
            l->value[j] = held >> 32;
        }
    }
}

/* --- building --- */

static void build_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    const struct join_table *t = &m->join->table;
    i32 built = JOIN_BUILT(m->join);
    const void *values = t->col >= 0 ? m->built->cols[t->col] : NULL;
    i32 bytes = values ? elem_bytes[m->join->cols[built][t->col].type] : 0;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->built_count);
    bool twice = false;
    struct look l;
    for (i64 i = block * MATCH_ROWS; i < end; i += BATCH) {
        i64 n = MIN_OF(end - i, BATCH);
        look_at(m, &l, m->built->keys, i, n);
        for (i64 j = 0; j < n; j++) {
            u64 value = values ? key_at(values, bytes, i + j) : (u64)(i + j);
            twice |= put(m, l.key[j], l.slot[j], value);
        }
    }
    if (twice) {
        atomic_store(&m->flag, 1);
    }
}

static void clear_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    const struct join_table *t = &m->join->table;
    i64 slots = (i64)MATCH_ROWS * 8;
    i64 first = block * slots;
    i64 n = MIN_OF(t->slot_count - first, slots);
    size_t bytes = (size_t)n * 2 * (size_t)m->bytes;
    memset((u8 *)t->slots + first * 2 * m->bytes, t->empty ? 0xff : 0, bytes);
}

static void clear(struct match *m) {
    const struct join_table *t = &m->join->table;
    if (t->bits) {
        memset(t->bits, 0, (size_t)(t->slot_count + 31) / 32 * 4);
        return;
    }
    tasks_run(m->x, (t->slot_count + MATCH_ROWS * 8 - 1) / (MATCH_ROWS * 8), clear_task, m);
}

static i64 blocks_of(i64 n) {
    return (n + MATCH_ROWS - 1) / MATCH_ROWS;
}

wf_status cpu_match_build(struct prim_job *job, struct prim_join *join, bool *out_duplicates) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    clear(&m);
    tasks_run(job->x, blocks_of(m.built_count), build_task, &m);
    *out_duplicates = atomic_load(&m.flag);
    join->table.dense =
        join->table.bits && !*out_duplicates && m.built_count == join->table.slot_count;
    return exec_check(job->x);
}

/* Runs that end in this block. */
static void group_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    struct prim_join *join = m->join;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->built_count);
    struct look l;
    for (i64 i = block * MATCH_ROWS; i < end; i++) {
        u64 key = key_at(join->sorted, m->bytes, i);
        if (i + 1 < m->built_count && key_at(join->sorted, m->bytes, i + 1) == key) {
            continue;
        }
        i64 same = i;
        i64 step = 1;
        while (same - step >= 0 && key_at(join->sorted, m->bytes, same - step) == key) {
            same -= step;
            step *= 2;
        }
        i64 other = MAX_OF(same - step, -1);
        while (same - other > 1) {
            i64 mid = (same + other) / 2;
            *(key_at(join->sorted, m->bytes, mid) == key ? &same : &other) = mid;
        }
        join->length[same] = (u32)(i - same) + 1;
        look_at(m, &l, join->sorted, i, 1);
        put(m, l.key[0], l.slot[0], (u64)same);
    }
}

wf_status cpu_match_group(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    clear(&m);
    tasks_run(job->x, blocks_of(m.built_count), group_task, &m);
    return exec_check(job->x);
}

/* --- probing --- */

static void runs_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    const struct match *m = arg;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->probe_count);
    struct look l;
    for (i64 i = block * MATCH_ROWS; i < end; i += BATCH) {
        i64 n = MIN_OF(end - i, BATCH);
        look_at(m, &l, m->probe->keys, i, n);
        find(m, &l, n);
        for (i64 j = 0; j < n; j++) {
            i64 first = l.found[j] ? (i64)l.value[j] : 0;
            run_put(m, i + j, first, l.found[j] ? first + m->join->length[first] : 0);
        }
    }
}

wf_status cpu_match_runs_grouped(struct prim_job *job, struct prim_join *join) {
    if (job->measuring) {
        return ERR_OK;
    }
    struct match m;
    match_init(&m, job, join, NULL, false);
    join->offset[m.probe_count] = 0;
    tasks_run(job->x, blocks_of(m.probe_count), runs_task, &m);
    return exec_check(job->x);
}

static void rush_task(void *arg, i64 block, i32 worker) {
    UNUSED(worker);
    struct match *m = arg;
    i64 end = MIN_OF((block + 1) * MATCH_ROWS, m->probe_count);
    u32 kind = m->join->kind;
    struct pairs pairs;
    struct look l;
    pairs.m = m;
    pairs.count = 0;
    if (exec_check(m->x)) {
        return;
    }
    for (i64 i = block * MATCH_ROWS; i < end; i += BATCH) {
        i64 n = MIN_OF(end - i, BATCH);
        look_at(m, &l, m->probe->keys, i, n);
        find(m, &l, n);
        for (i64 j = 0; j < n; j++) {
            if (join_rows(kind, l.found[j])) {
                /* with a column's value in the table, any position stands for "found" */
                u32 b = !l.found[j] ? JOIN_NONE : m->join->table.col >= 0 ? 0 : (u32)l.value[j];
                pairs_add(&pairs, i + j, b, l.value[j]);
            }
        }
    }
    pairs_flush(&pairs);
}

void cpu_match_rush_table(struct match *m) {
    tasks_run(m->x, blocks_of(m->probe_count), rush_task, m);
}

/* rates.c: how fast this machine is at most: the ceilings that EXPLAIN ANALYZE holds steps against, and
 * that costs are made from where there is another device to choose.
 *
 * Three loops on all workers of the pool, each the best of a few rounds: reading one array from end
 * to end, reading places all over it with the same prefetch distance a probe has, and adding
 * vectors that stay in the first cache. The array is larger than second-level caches but not than
 * every third-level one; what is measured is then the rate of that, as it is for data of that size.
 * Some milliseconds on first use; a budget without room leaves the memory rates unknown. */
#include "cpu/cpu_int.h"

#include "codes/loop.h"

enum { ARRAY_BYTES = 32 << 20, ROUNDS = 3, PROBES = 1 << 17, VECTOR = 1024, ADDS = 2000 };

struct gauge {
    const struct vec_table *vec;
    i64 *words;
    i64 part_words;
    i64 word_count;
    _Atomic i64 sum; /* so that nothing is optimised away */
};

static void fill_part(void *arg, i64 part, i32 worker) {
    struct gauge *g = arg;
    UNUSED(worker);
    for (i64 i = 0; i < g->part_words; i++) {
        g->words[part * g->part_words + i] = i;
    }
}

static void read_part(void *arg, i64 part, i32 worker) {
    struct gauge *g = arg;
    UNUSED(worker);
    const i64 *words = g->words + part * g->part_words;
    i64 sums[8] = {0}; /* apart, so that additions do not wait for each other */
    for (i64 i = 0; i + 8 <= g->part_words; i += 8) {
        for (i64 k = 0; k < 8; k++) {
            sums[k] += words[i + k];
        }
    }
    for (i64 k = 0; k < 8; k++) {
        atomic_fetch_add_explicit(&g->sum, sums[k], memory_order_relaxed);
    }
}

static void probe_part(void *arg, i64 part, i32 worker) {
    struct gauge *g = arg;
    UNUSED(worker);
    u64 at[VECTOR];
    i64 sum = 0;
    for (i64 i = 0; i < PROBES; i += VECTOR) {
        for (i64 k = 0; k < VECTOR; k++) {
            at[k] = hash_u64((u64)(part * PROBES + i + k)) & (u64)(g->word_count - 1);
            __builtin_prefetch(&g->words[at[k]]);
        }
        for (i64 k = 0; k < VECTOR; k++) {
            sum += g->words[at[k]];
        }
    }
    atomic_fetch_add_explicit(&g->sum, sum, memory_order_relaxed);
}

static void add_part(void *arg, i64 part, i32 worker) {
    struct gauge *g = arg;
    UNUSED(worker);
    i64 a[VECTOR];
    i64 b[VECTOR];
    i64 sum[VECTOR];
    u8 fault[VECTOR];
    for (i64 k = 0; k < VECTOR; k++) {
        a[k] = part;
        b[k] = k;
    }
    for (i64 i = 0; i < ADDS; i++) {
        (void)!vec_loops_of(g->vec, OP_ADD_I64).dense(sum, a, b, NULL, VECTOR, fault);
    }
    atomic_fetch_add_explicit(&g->sum, sum[part % VECTOR], memory_order_relaxed);
}

static f64 best_ns(struct exec *x, void (*part)(void *, i64, i32), struct gauge *g, i64 parts) {
    i64 best = I64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        i64 start = clock_ns();
        tasks_run(x, parts, part, g);
        best = MIN_OF(best, clock_ns() - start);
    }
    return (f64)MAX_OF(best, 1);
}

static void measure(const struct cpu_device *cpu, struct exec *x, struct device_rates *out) {
    i64 parts = x->pool ? pool_worker_count(x->pool) : 1;
    struct gauge g = {.vec = cpu->vec, .words = mem_try(x->mem, ARRAY_BYTES)};
    g.word_count = ARRAY_BYTES / 8;
    g.part_words = g.word_count / parts;
    out->cost_per_ns =
        (f64)(parts * ADDS * VECTOR * op_infos[OP_ADD_I64].cost) / best_ns(x, add_part, &g, parts);
    if (g.words) {
        tasks_run(x, parts, fill_part, &g);
        out->bytes_per_ns = (f64)(g.part_words * parts * 8) / best_ns(x, read_part, &g, parts);
        out->probes_per_ns = (f64)(parts * PROBES) / best_ns(x, probe_part, &g, parts);
        mem_free(x->mem, g.words, ARRAY_BYTES);
    }
}

void cpu_rates(struct device *dev, struct exec *x, struct device_rates *out) {
    struct cpu_device *cpu = dev->self;
    mutex_lock(&cpu->lock);
    if (!cpu->rates_known) {
        measure(cpu, x, &cpu->rates);
        cpu->rates_known = 1;
    }
    *out = cpu->rates;
    mutex_unlock(&cpu->lock);
}

void cpu_rates_tell(struct device *dev, const struct device_rates *rates) {
    struct cpu_device *cpu = dev->self;
    mutex_lock(&cpu->lock);
    cpu->rates = *rates;
    cpu->rates_known = 1;
    mutex_unlock(&cpu->lock);
}

/* devices.c: `warpfox devices`: what this machine offers and how fast it reads memory.
 *
 * The bandwidth printed is the ceiling scans are compared with: all workers of the database summing
 * one large array, the best of a few rounds. The GPU part is the gpu module's own report. */
#include "api/api_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu.h"

enum { ROUNDS = 4, PARTS_PER_WORKER = 4 };

struct sweep {
    u64 *words;
    i64 part_words;
    bool fill;
    _Atomic u64 sum;
};

static void sweep_part(void *arg, i64 part, i32 worker) {
    struct sweep *sweep = arg;
    UNUSED(worker);
    u64 *words = sweep->words + part * sweep->part_words;
    u64 sums[8] = {0}; /* apart, so that additions do not wait for each other */
    if (sweep->fill) {
        for (i64 i = 0; i < sweep->part_words; i++) {
            words[i] = (u64)i;
        }
    } else {
        for (i64 i = 0; i + 8 <= sweep->part_words; i += 8) {
            for (i64 k = 0; k < 8; k++) {
                sums[k] += words[i + k];
            }
        }
    }
    for (i64 k = 0; k < 8; k++) {
        atomic_fetch_add_explicit(&sweep->sum, sums[k], memory_order_relaxed);
    }
}

/* Bytes per second all workers read together; 0 when the budget has no room for the array. */
static double read_bandwidth(struct wf_database *db, i64 bytes) {
    struct sweep sweep = {.words = mem_alloc(&db->mem, bytes), .fill = true};
    if (!sweep.words) {
        return 0;
    }
    i64 parts = (i64)pool_worker_count(db->pool) * PARTS_PER_WORKER;
    sweep.part_words = bytes / 8 / parts;
    pool_run(db->pool, parts, sweep_part, &sweep);
    sweep.fill = false;
    i64 best_ns = I64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        i64 start_ns = clock_ns();
        pool_run(db->pool, parts, sweep_part, &sweep);
        best_ns = MIN_OF(best_ns, clock_ns() - start_ns);
    }
    mem_free(&db->mem, sweep.words, bytes);
    return (double)(sweep.part_words * parts * 8) * 1e9 / (double)MAX_OF(best_ns, 1);
}

static void print_model(struct text *out) {
    char line[300];
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof line, info)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            colon[strcspn(colon, "\n")] = 0;
            text_print(out, "%s, ", colon + 2);
            break;
        }
    }
    if (info) {
        fclose(info);
    }
}

static void print_cpu(struct text *out, struct wf_database *db) {
    static const char *const levels[] = {"baseline", "AVX2", "AVX-512"};
    text_print(out, "cpu\n  ");
    print_model(out);
    text_print(out, "%d cores, vector loops for %s\n", cpu_count(), levels[cpu_level()]);
    text_print(out, "  worker threads: %d\n  memory budget: %.1f GiB\n",
               pool_worker_count(db->pool), (double)db->mem.limit_bytes / (double)(1LL << 30));
    double rate = read_bandwidth(db, 256LL << 20);
    if (rate > 0) {
        text_print(out, "  measured read bandwidth: %.1f GB/s\n", rate / 1e9);
    } else {
        text_print(out,
                   "  read bandwidth not measured: the memory budget has no room for the array\n");
    }
}

char *wf_devices(wf_database *db) {
    if (!db) {
        return NULL;
    }
    struct arena arena;
    arena_init(&arena, &db->mem);
    struct text out;
    text_init(&out, &arena);
    print_cpu(&out, db);
    gpu_describe(&out);
    char *copy = malloc((size_t)out.len + 1);
    if (copy) {
        memcpy(copy, out.ptr, (size_t)out.len + 1);
    }
    arena_fini(&arena);
    return copy;
}

void wf_free(void *text) {
    free(text);
}

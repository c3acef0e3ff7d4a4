/* thread.h: the one place that knows threads, locks, time and processors. */
#ifndef WF_BASE_THREAD_H
#define WF_BASE_THREAD_H

#include "base/mem.h"

struct mutex {
    _Alignas(16) u8 opaque[64];
};
void mutex_init(struct mutex *m);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

struct cond {
    _Alignas(16) u8 opaque[64];
};
void cond_init(struct cond *c);
void cond_fini(struct cond *c);
void cond_wait(struct cond *c, struct mutex *m);
bool cond_wait_ns(struct cond *c, struct mutex *m, i64 timeout_ns); /* false on timeout */
void cond_broadcast(struct cond *c);

/* Worker threads owned by the database. pool_run calls task(arg, i, worker) for every i in [0,
 * count), with `worker` in [0, pool_worker_count), and returns when all are done; the calling
 * thread works too. Tasks of several callers interleave. Safe from several threads; a task must not
 * call pool_run. pool_run_until leaves out indices from *end on, which tasks may lower: what was
 * taken before that is finished, the rest is not walked through. */
struct pool;
struct pool *
pool_open(i32 worker_count); /* starts threads on first use; NULL when memory is short */
void pool_close(struct pool *pool);
i32 pool_worker_count(const struct pool *pool);
void pool_run(struct pool *pool, i64 count, void (*task)(void *arg, i64 i, i32 worker), void *arg);
void pool_run_until(struct pool *pool, i64 count, const _Atomic i64 *end,
                    void (*task)(void *arg, i64 i, i32 worker), void *arg);

/* Runs fn(arg) on a thread whose stack holds at least stack_bytes, and waits for it. False when no
 * such thread could be started. */
bool thread_run_deep(i64 stack_bytes, void (*fn)(void *), void *arg);
/* A background thread (compilation, progress); join with thread_join. NULL when it could not start.
 */
struct thread;
struct thread *thread_start(void (*fn)(void *), void *arg);
void thread_join(struct thread *thread);

/* Memory of the calling thread, zeroed by the first call, the same one from every later call (which
 * must ask for as much), given back when the thread ends. NULL when memory is short. */
void *thread_memory(i64 bytes);

i32 cpu_count(void);
i64 machine_memory_bytes(void);
/* Of the pages in this process's memory, those that mappings of files brought there, and the others; 0 = unknown. */
struct process_pages {
    i64 shared_bytes, own_bytes;
};
struct process_pages process_pages(void);
enum cpu_level { CPU_BASELINE, CPU_AVX2, CPU_AVX512 };
enum cpu_level cpu_level(void); /* WARPFOX_CPU=baseline|avx2|avx512 lowers it */
i64 clock_ns(void);             /* monotonic */
i64 clock_real_us(void);        /* microseconds since 1970, UTC */

#endif

/* thread.c: threads, locks, time, processors: the one file that includes pthread.h.
 *
 * The pool keeps a list of running jobs. A worker takes the next index of the oldest job that has
 * one left; the caller of pool_run works on its own job and then waits for stragglers. So several
 * statements share the workers, one morsel at a time, and none can starve another for longer than a
 * morsel. Worker numbers: callers use number 0 of their own job, pool threads 1 .. n - 1. */
#define _GNU_SOURCE
#include "base/thread.h"

#include "base/stop.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct mutex), "mutex storage");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(struct cond), "cond storage");

static pthread_mutex_t *mutex_of(struct mutex *m) {
    return (pthread_mutex_t *)(void *)m->opaque;
}

static pthread_cond_t *cond_of(struct cond *c) {
    return (pthread_cond_t *)(void *)c->opaque;
}

void mutex_init(struct mutex *m) {
    CHECK(pthread_mutex_init(mutex_of(m), NULL) == 0);
}

void mutex_fini(struct mutex *m) {
    pthread_mutex_destroy(mutex_of(m));
}

void mutex_lock(struct mutex *m) {
    CHECK(pthread_mutex_lock(mutex_of(m)) == 0);
}

void mutex_unlock(struct mutex *m) {
    CHECK(pthread_mutex_unlock(mutex_of(m)) == 0);
}

void cond_init(struct cond *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    CHECK(pthread_cond_init(cond_of(c), &attr) == 0);
    pthread_condattr_destroy(&attr);
}

void cond_fini(struct cond *c) {
    pthread_cond_destroy(cond_of(c));
}

void cond_wait(struct cond *c, struct mutex *m) {
    CHECK(pthread_cond_wait(cond_of(c), mutex_of(m)) == 0);
}

bool cond_wait_ns(struct cond *c, struct mutex *m, i64 timeout_ns) {
    i64 until = clock_ns() + timeout_ns;
    struct timespec at = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    return pthread_cond_timedwait(cond_of(c), mutex_of(m), &at) == 0;
}

void cond_broadcast(struct cond *c) {
    CHECK(pthread_cond_broadcast(cond_of(c)) == 0);
}

struct job {
    struct job *next;
    void (*task)(void *arg, i64 i, i32 worker);
    void *arg;
    i64 count;
    const _Atomic i64 *end; /* no index from here on is taken; NULL = all are */
    i64 taken;              /* under the pool's lock */
    i64 running;            /* tasks being worked on by pool threads; under the lock */
    const struct stop *stop;
};

struct pool {
    struct mutex lock;
    struct cond wake; /* a job came, or the pool closes */
    struct cond done; /* a job's last task ended */
    struct job *jobs; /* with indices left to take; oldest first */
    i32 worker_count;
    i32 started;
    bool closing;
    pthread_t threads[]; /* worker_count - 1 */
};

struct pool_start {
    struct pool *pool;
    i32 worker;
};

struct pool *pool_open(i32 worker_count) {
    i32 count = MAX_OF(worker_count, 1);
    struct pool *pool = calloc(1, sizeof *pool + (size_t)count * sizeof(pthread_t));
    if (!pool) {
        return NULL;
    }
    mutex_init(&pool->lock);
    cond_init(&pool->wake);
    cond_init(&pool->done);
    pool->worker_count = count;
    return pool;
}

i32 pool_worker_count(const struct pool *pool) {
    return pool->worker_count;
}

static i64 job_end(const struct job *job) {
    i64 end = job->end ? atomic_load_explicit(job->end, memory_order_relaxed) : job->count;
    return MIN_OF(end, job->count);
}

/* Takes the job's next index; unlinks it when that was the last. False when none is left: tasks
 * moved the end. Under the lock. */
static bool take(struct pool *pool, struct job *job, i64 *out) {
    i64 end = job_end(job);
    bool taken = job->taken < end;
    *out = job->taken;
    job->taken = taken ? job->taken + 1 : job->count;
    if (job->taken >= end) {
        struct job **link = &pool->jobs;
        while (*link != job) {
            link = &(*link)->next;
        }
        *link = job->next;
        job->taken = job->count;
    }
    return taken;
}

static void *pool_thread(void *start) {
    struct pool *pool = ((struct pool_start *)start)->pool;
    i32 worker = ((struct pool_start *)start)->worker;
    free(start);
    mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->jobs && !pool->closing) {
            cond_wait(&pool->wake, &pool->lock);
        }
        if (!pool->jobs) {
            break;
        }
        struct job *job = pool->jobs;
        i64 i;
        bool taken = take(pool, job, &i);
        job->running++;
        mutex_unlock(&pool->lock);
        if (taken) {
            stop_enter(job->stop);
            job->task(job->arg, i, worker);
        }
        mutex_lock(&pool->lock);
        if (--job->running == 0 && job->taken == job->count) {
            cond_broadcast(&pool->done);
        }
    }
    mutex_unlock(&pool->lock);
    return NULL;
}

/* Threads start with the first job that can use them. Under the lock. */
static void start_threads(struct pool *pool) {
    while (pool->started < pool->worker_count - 1) {
        struct pool_start *start = malloc(sizeof *start);
        if (!start) {
            return;
        }
        start->pool = pool;
        start->worker = pool->started + 1;
        if (pthread_create(&pool->threads[pool->started], NULL, pool_thread, start) != 0) {
            free(start);
            return;
        }
        pool->started++;
    }
}

void pool_run(struct pool *pool, i64 count, void (*task)(void *arg, i64 i, i32 worker), void *arg) {
    pool_run_until(pool, count, NULL, task, arg);
}

void pool_run_until(struct pool *pool, i64 count, const _Atomic i64 *end,
                    void (*task)(void *arg, i64 i, i32 worker), void *arg) {
    struct job job = {.task = task, .arg = arg, .count = count, .end = end, .stop = stop_current()};
    if (count <= 1 || pool->worker_count == 1) {
        for (i64 i = 0; i < job_end(&job); i++) {
            task(arg, i, 0);
        }
        return;
    }
    mutex_lock(&pool->lock);
    start_threads(pool);
    struct job **link = &pool->jobs;
    while (*link) {
        link = &(*link)->next;
    }
    *link = &job;
    cond_broadcast(&pool->wake);
    i64 i;
    while (job.taken < count && take(pool, &job, &i)) {
        mutex_unlock(&pool->lock);
        task(arg, i, 0);
        mutex_lock(&pool->lock);
    }
    while (job.running > 0) {
        cond_wait(&pool->done, &pool->lock);
    }
    mutex_unlock(&pool->lock);
}

void pool_close(struct pool *pool) {
    if (!pool) {
        return;
    }
    mutex_lock(&pool->lock);
    pool->closing = true;
    cond_broadcast(&pool->wake);
    mutex_unlock(&pool->lock);
    for (i32 i = 0; i < pool->started; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    cond_fini(&pool->done);
    cond_fini(&pool->wake);
    mutex_fini(&pool->lock);
    free(pool);
}

struct thread {
    pthread_t id;
    void (*fn)(void *);
    void *arg;
    const struct stop *stop;
};

static void *thread_main(void *self) {
    struct thread *thread = self;
    stop_enter(thread->stop);
    thread->fn(thread->arg);
    return NULL;
}

bool thread_run_deep(i64 stack_bytes, void (*fn)(void *), void *arg) {
    i64 bytes = ALIGN_UP(MAX_OF(stack_bytes, 1 << 16), 1 << 16);
    /* Reserved, not committed: a deep statement pays for the pages it touches. */
    void *stack = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return false;
    }
    mprotect(stack, 1 << 12, PROT_NONE); /* an overrun faults instead of corrupting */
    struct thread thread = {.fn = fn, .arg = arg, .stop = stop_current()};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    bool ok = pthread_attr_setstack(&attr, stack, (size_t)bytes) == 0 &&
              pthread_create(&thread.id, &attr, thread_main, &thread) == 0;
    if (ok) {
        pthread_join(thread.id, NULL);
    }
    pthread_attr_destroy(&attr);
    munmap(stack, (size_t)bytes);
    return ok;
}

struct thread *thread_start(void (*fn)(void *), void *arg) {
    struct thread *thread = malloc(sizeof *thread);
    if (!thread) {
        return NULL;
    }
    thread->fn = fn;
    thread->arg = arg;
    thread->stop = NULL;
    if (pthread_create(&thread->id, NULL, thread_main, thread) != 0) {
        free(thread);
        return NULL;
    }
    return thread;
}

void thread_join(struct thread *thread) {
    if (thread) {
        pthread_join(thread->id, NULL);
        free(thread);
    }
}

static pthread_key_t memory_key;
static bool memory_key_made;

/* When the program is loaded: there are 1,024 keys, and the parser's library takes one for every
 * thread that it ran in. */
__attribute__((constructor)) static void memory_key_make(void) {
    memory_key_made = pthread_key_create(&memory_key, free) == 0;
}

void *thread_memory(i64 bytes) {
    static _Thread_local void *mine;
    if (mine) {
        return mine;
    }
    void *got = memory_key_made ? calloc(1, (size_t)bytes) : NULL;
    if (got && pthread_setspecific(memory_key, got) != 0) {
        free(got);
        got = NULL;
    }
    mine = got;
    return got;
}

i32 cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return MAX_OF((i32)CPU_COUNT(&set), 1);
    }
    return MAX_OF((i32)sysconf(_SC_NPROCESSORS_ONLN), 1);
}

i64 machine_memory_bytes(void) {
    return (i64)sysconf(_SC_PHYS_PAGES) * (i64)sysconf(_SC_PAGESIZE);
}

struct process_pages process_pages(void) {
    FILE *file = fopen("/proc/self/statm", "re");
    long long size = 0, resident = 0, shared = 0;
    bool known = file && fscanf(file, "%lld %lld %lld", &size, &resident, &shared) == 3;
    if (file) {
        fclose(file);
    }
    i64 page = known ? (i64)sysconf(_SC_PAGESIZE) : 0;
    return (struct process_pages){(i64)shared * page, (i64)(resident - shared) * page};
}

static enum cpu_level cpu_level_found(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return CPU_AVX512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("fma")) {
        return CPU_AVX2;
    }
#endif
    return CPU_BASELINE;
}

enum cpu_level cpu_level(void) {
    enum cpu_level found = cpu_level_found();
    const char *wish = getenv("WARPFOX_CPU");
    if (wish && strcmp(wish, "baseline") == 0) {
        return CPU_BASELINE;
    }
    if (wish && strcmp(wish, "avx2") == 0) {
        return MIN_OF(found, CPU_AVX2);
    }
    return found;
}

i64 clock_real_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (i64)now.tv_sec * 1000000 + (i64)now.tv_nsec / 1000;
}

i64 clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (i64)now.tv_sec * 1000000000 + (i64)now.tv_nsec;
}

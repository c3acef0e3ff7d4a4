/* watch.c: progress reports of a running statement.
 *
 * A connection that wants reports has one sleeping thread. A statement wakes it when it starts; it
 * then looks at the execution's counters every interval and calls the user's function, with the
 * lock held, so that watch_end returns only when no report is under way and none follows. Without a
 * report function nothing here costs more than a test. */
#include "session/session_int.h"

#include "io/io.h"

void watch_init(struct watch *watch) {
    memset(watch, 0, sizeof *watch);
    mutex_init(&watch->lock);
    cond_init(&watch->wake);
}

static void watch_stop_thread(struct watch *watch) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        watch->quit = 1;
        cond_broadcast(&watch->wake);
        mutex_unlock(&watch->lock);
        thread_join(watch->thread);
        watch->thread = NULL;
        watch->quit = 0;
    }
}

void watch_fini(struct watch *watch) {
    watch_stop_thread(watch);
    cond_fini(&watch->wake);
    mutex_fini(&watch->lock);
}

static double watch_fraction(struct watch *watch) {
    double fraction = -1;
    if (watch->exec) {
        fraction = work_share(&watch->exec->work);
    } else if (watch->load && watch->load->bytes_total > 0) {
        i64 done = atomic_load_explicit(&watch->load->bytes_done, memory_order_relaxed);
        fraction = (double)done / (double)watch->load->bytes_total;
    }
    /* Estimates are made better, and rows are stored or written when they are computed: what was
     * reported stays true. */
    watch->most = MIN_OF(MAX_OF(fraction, watch->most), 1);
    return watch->most > 0 ? watch->most : fraction;
}

static void watch_main(void *arg) {
    struct watch *watch = arg;
    mutex_lock(&watch->lock);
    while (!watch->quit) {
        if (!watch->started_ns) {
            cond_wait(&watch->wake, &watch->lock);
            continue;
        }
        bool woken = cond_wait_ns(&watch->wake, &watch->lock, watch->interval_ns);
        if (!woken && !watch->quit && watch->started_ns && watch->report) {
            watch->report(watch->arg, watch_fraction(watch), clock_ns() - watch->started_ns);
        }
    }
    mutex_unlock(&watch->lock);
}

void watch_begin(struct watch *watch) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        watch->started_ns = clock_ns();
        watch->most = 0;
        cond_broadcast(&watch->wake);
        mutex_unlock(&watch->lock);
    }
}

void watch_exec(struct watch *watch, struct exec *exec) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        watch->exec = exec;
        mutex_unlock(&watch->lock);
    }
}

void watch_rows(struct watch *watch, i64 rows) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        if (watch->exec) {
            work_rows(watch->exec, rows);
        }
        mutex_unlock(&watch->lock);
    }
}

void watch_load(struct watch *watch, struct load_progress *load) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        watch->load = load;
        mutex_unlock(&watch->lock);
    }
}

void watch_end(struct watch *watch) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        watch->started_ns = 0;
        watch->exec = NULL;
        watch->load = NULL;
        mutex_unlock(&watch->lock);
    }
}

void watch_read_begin(struct watch *watch, struct exec *exec, i64 started_ns) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        if (!watch->started_ns) {
            watch->started_ns = started_ns;
            watch->most = 0;
            watch->exec = exec;
            cond_broadcast(&watch->wake);
        }
        mutex_unlock(&watch->lock);
    }
}

void watch_read_end(struct watch *watch, struct exec *exec) {
    if (watch->thread) {
        mutex_lock(&watch->lock);
        if (watch->exec == exec) {
            watch->started_ns = 0;
            watch->exec = NULL;
        }
        mutex_unlock(&watch->lock);
    }
}

FALLIBLE watch_set(struct watch *watch, wf_progress report, void *arg, i32 interval_ms,
                   struct error *err) {
    watch_stop_thread(watch);
    watch->report = report;
    watch->arg = arg;
    watch->interval_ns = (i64)MAX_OF(interval_ms, 1) * 1000000;
    if (report) {
        watch->thread = thread_start(watch_main, watch);
        if (!watch->thread) {
            FAIL(err, OUT_OF_MEMORY, "no thread for progress reports");
        }
    }
    return ERR_OK;
}

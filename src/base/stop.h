/* stop.h: whether the statement that a thread works for is to end.
 *
 * A thread says whom it works for; threads it starts for the same work (pool_run, thread_run_deep)
 * work for the same. So whatever takes long, however far below the statement it lies, can ask
 * without being told whom. Who is told to stop returns at once with anything harmless; whoever
 * knows the statement then looks again, and reports. */
#ifndef WF_BASE_STOP_H
#define WF_BASE_STOP_H

#include <stdatomic.h>

#include "base/error.h"

struct stop {
    const _Atomic i32 *cancel; /* not `seen`: the statement was cancelled; NULL = nobody can */
    i32 seen;
    i64 deadline_ns; /* 0 = none */
};

/* The calling thread works for `stop` from now on (NULL: for nobody). Returns whom it worked for
 * before, to go back to. */
const struct stop *stop_enter(const struct stop *stop);
/* Whom the calling thread works for. */
const struct stop *stop_current(void);
/* Whether it is to end: cancelled, or past its deadline. Costs a look at the clock when there is a
 * deadline: ask every few thousand rows or bytes. */
bool stop_asked(void);
bool stop_asked_of(const struct stop *stop);
/* How often to ask: every so many steps, but much more often in test builds. */
#ifdef WF_HARD
#define STOP_EVERY(steps) ((steps) >> 8 ? (steps) >> 8 : 1)
enum { STOP_STEPS = 6 };
#else
#define STOP_EVERY(steps) (steps)
enum { STOP_STEPS = 16 };
#endif
/* The same, asked about every 64 K steps of work: when there were `before` and are `now`. */
static inline bool stop_due(u64 before, u64 now) {
    return before >> STOP_STEPS != now >> STOP_STEPS && stop_asked();
}
/* The same as ERR_CANCELLED. */
FALLIBLE stop_check(struct error *err);
FALLIBLE stop_check_of(const struct stop *stop, struct error *err);
/* For tests: everybody who asks is told to stop from the nth question on, counted from now; 0 =
 * nobody is. Returns how many questions there were since the last call, which counts from 1. */
i64 stop_from(i64 nth);

#endif

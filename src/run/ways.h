/* ways.h: which way a program that runs again and again takes: a function of times, without devices. */
#ifndef WF_RUN_WAYS_H
#define WF_RUN_WAYS_H

#include "base/mem.h"

/* As place.c places its steps, all on the host, or all that can be on the first card. */
enum way { WAY_PLACED, WAY_HOST, WAY_CARD, WAYS };
enum { WAY_LOOKS = 8 };

struct way_past {
    _Atomic i64 times[WAY_LOOKS]; /* of the last runs, in ns */
    _Atomic i32 count;            /* of all */
    _Atomic i64 spent_ns;         /* by all ways when this one was taken last */
};
/* Kept with a program; all 0 at first. */
struct ways {
    _Atomic i64 spent_ns;
    struct way_past pasts[WAYS];
    _Atomic i64 estimates_ns[WAYS]; /* that were given last; 0 = none */
};

/* Whether way_choose would like to know what ways take that nobody took yet. */
bool ways_ask(const struct ways *ways);
/* The way to take. estimates_ns of ways that were never taken; 0 = that way is not to be tried. */
enum way ways_choose(struct ways *ways, const f64 estimates_ns[WAYS]);
/* The same where it is clear without estimates, since the way was taken often and another one is not to be tried.
 * WAY_PLACED: it is not clear, or that one. */
enum way ways_settled(const struct ways *ways);
void ways_took(struct ways *ways, enum way way, i64 ns);
/* The best of the last times, 0 = it was never taken. */
i64 ways_time(const struct ways *ways, enum way way);

#endif

/* ways.c: which way a program that runs again and again takes.
 *
 * Placing adds up what steps are thought to take, each corrected by its own past; what they take
 * together is another matter: who waits for whom, what lies in a cache. So the time of the whole
 * is measured, too, for three ways of running it: as it is placed, all on the host, all on the card. The
 * one with the best of its last times is taken, since disturbances make a run slower and never
 * faster. The others are tried so seldom that it costs a few percent of all that was spent: a way that
 * nobody took when its estimate is near, or is a small part of that; one that was slower after ever more
 * time, since it may have been measured badly, or other rows have come; and where all of them take next to
 * nothing, there is nothing to gain in a hurry: for so many milliseconds nobody looks again. So nothing
 * depends for good on what was measured first. See decision 0051, and decision 0091 for short statements.
 *
 * Statements that share a program write without a lock: what one of them saw may be lost. */
#include "run/ways.h"

enum {
    PLACED_LEAST = 2, /* runs, before anything else is tried: columns come, kernels are compiled */
    NEAR = 2,         /* times the best: an estimate that is worth a try at once, */
    NEAR_SHORT = 8,   /* where the try is a matter of milliseconds */
    SHORT_NS = 10000000,
    RENT = 32,        /* times an estimate spent: worth a try whatever it is */
    RETRY_FIRST = 8,  /* times a way's own time spent, until it is tried again; doubled each time */
    RETRY_MOST = 64,
    BEHIND_MOST = 4,
    FIRST_TRIES = 3,     /* of a way that is near */
    QUIET_NS = 20000000, /* spent before a way that was slower then is tried again; doubled each time, */
    QUIET_DOUBLED = 5,   /* so often */
};

i64 ways_time(const struct ways *ways, enum way way) {
    const struct way_past *past = &ways->pasts[way];
    i32 count = MIN_OF(atomic_load(&past->count), WAY_LOOKS);
    i64 least = 0;
    for (i32 i = 0; i < count; i++) {
        i64 ns = atomic_load(&past->times[i]);
        least = i == 0 || ns < least ? ns : least;
    }
    return least;
}

bool ways_ask(const struct ways *ways) {
    bool unseen = !atomic_load(&ways->pasts[WAY_HOST].count) || !atomic_load(&ways->pasts[WAY_CARD].count);
    return unseen && atomic_load(&ways->pasts[WAY_PLACED].count) >= PLACED_LEAST;
}

static enum way best_way(const struct ways *ways) {
    enum way best = WAY_PLACED;
    for (enum way w = WAY_HOST; w < WAYS; w++) {
        i64 ns = ways_time(ways, w);
        best = ns && ns <= ways_time(ways, best) ? w : best; /* as long: that one needs no estimates */
    }
    return best;
}

/* Whether a time is worth a try: estimates may be wrong, and the first run is no measurement: there is room to be
 * made, and what steps find out for the next time, they do not know yet. */
static bool is_near(f64 ns, f64 best_ns, i32 count) {
    bool is_short = ns <= best_ns + SHORT_NS;
    return ns <= NEAR * best_ns || (is_short && (count == 1 || ns <= NEAR_SHORT * best_ns));
}

/* Whether a way that is not the best is to be tried. */
static bool is_due(const struct ways *ways, enum way way, f64 estimate_ns, f64 best_ns) {
    const struct way_past *past = &ways->pasts[way];
    f64 spent = (f64)atomic_load(&ways->spent_ns);
    i32 count = atomic_load(&past->count);
    if (!count) {
        return estimate_ns > 0 && (is_near(estimate_ns, best_ns, 0) || estimate_ns * RENT <= spent);
    }
    f64 ns = (f64)ways_time(ways, way);
    if (count < FIRST_TRIES && is_near(ns, best_ns, count)) {
        return true;
    }
    f64 behind = MIN_OF(MAX_OF(ns / best_ns / NEAR, 1), BEHIND_MOST); /* is less likely to catch up */
    f64 times = count < 4 ? RETRY_FIRST << (count - 1) : RETRY_MOST * behind;
    f64 quiet = (f64)((i64)QUIET_NS << MIN_OF(MAX_OF(count - FIRST_TRIES, 0), QUIET_DOUBLED));
    return spent - (f64)atomic_load(&past->spent_ns) >= MAX_OF(times * ns, quiet);
}

static enum way choose(const struct ways *ways, const f64 estimates_ns[WAYS]) {
    if (atomic_load(&ways->pasts[WAY_PLACED].count) < PLACED_LEAST) {
        return WAY_PLACED;
    }
    enum way best = best_way(ways);
    f64 best_ns = (f64)ways_time(ways, best);
    for (enum way w = WAY_PLACED; w < WAYS; w++) {
        if (w != best && is_due(ways, w, estimates_ns[w], best_ns)) {
            return w;
        }
    }
    return best;
}

enum way ways_choose(struct ways *ways, const f64 estimates_ns[WAYS]) {
    for (enum way w = WAY_PLACED; w < WAYS; w++) {
        if (estimates_ns[w] > 0) {
            atomic_store(&ways->estimates_ns[w], (i64)MIN_OF(estimates_ns[w], 9e18));
        }
    }
    return choose(ways, estimates_ns);
}

enum way ways_settled(const struct ways *ways) {
    f64 estimates_ns[WAYS] = {0};
    bool known = true;
    for (enum way w = WAY_HOST; w < WAYS; w++) {
        estimates_ns[w] = (f64)atomic_load(&ways->estimates_ns[w]);
        known = known && (estimates_ns[w] > 0 || atomic_load(&ways->pasts[w].count));
    }
    enum way way = known ? choose(ways, estimates_ns) : WAY_PLACED;
    return atomic_load(&ways->pasts[way].count) >= WAY_LOOKS ? way : WAY_PLACED;
}

void ways_took(struct ways *ways, enum way way, i64 ns) {
    struct way_past *past = &ways->pasts[way];
    ns = MAX_OF(ns, 1);
    i64 spent = atomic_fetch_add(&ways->spent_ns, ns) + ns;
    i32 count = atomic_load(&past->count);
    atomic_store(&past->times[count % WAY_LOOKS], ns);
    atomic_store(&past->count, count < I32_MAX - WAY_LOOKS ? count + 1 : count - WAY_LOOKS + 1);
    atomic_store(&past->spent_ns, spent);
}

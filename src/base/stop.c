/* stop.c: whom the calling thread works for, and whether that is to end. */
#include "base/stop.h"

#include "base/thread.h"

static _Thread_local const struct stop *current;

const struct stop *stop_enter(const struct stop *stop) {
    const struct stop *before = current;
    current = stop;
    return before;
}

const struct stop *stop_current(void) {
    return current;
}

static _Atomic i64 told_from;
static _Atomic i64 question_count;

i64 stop_from(i64 nth) {
    atomic_store(&told_from, nth);
    return atomic_exchange(&question_count, 0);
}

static bool is_told(void) {
    i64 from = atomic_load_explicit(&told_from, memory_order_relaxed);
    return from && atomic_fetch_add_explicit(&question_count, 1, memory_order_relaxed) + 1 >= from;
}

static bool is_cancelled(const struct stop *stop) {
    return is_told() ||
           (stop->cancel && atomic_load_explicit(stop->cancel, memory_order_relaxed) != stop->seen);
}

static bool is_late(const struct stop *stop) {
    return stop->deadline_ns && clock_ns() > stop->deadline_ns;
}

bool stop_asked_of(const struct stop *stop) {
    return stop && (is_cancelled(stop) || is_late(stop));
}

bool stop_asked(void) {
    return stop_asked_of(current);
}

wf_status stop_check_of(const struct stop *stop, struct error *err) {
    if (stop && is_cancelled(stop)) {
        FAIL(err, CANCELLED, "statement cancelled on request");
    }
    if (stop && is_late(stop)) {
        FAIL(err, CANCELLED, "statement cancelled: statement_timeout");
    }
    return ERR_OK;
}

wf_status stop_check(struct error *err) {
    return stop_check_of(current, err);
}

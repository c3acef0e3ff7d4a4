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

static bool is_cancelled(const struct stop *stop) {
    return stop->cancel && atomic_load_explicit(stop->cancel, memory_order_relaxed) != stop->seen;
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

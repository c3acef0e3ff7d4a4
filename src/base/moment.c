/* moment.c: a line for what happened, with the time since the first line.
 *
 * The first one is written when a database is opened, a millisecond or two after the process began. A line is one
 * write, so that those of several threads do not mix. */
#include "base/moment.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

enum { MOMENTS_UNKNOWN, MOMENTS_OFF, MOMENTS_ON };

static _Atomic i32 wanted;
static _Atomic i64 first_ns;

bool moments_on(void) {
    i32 now = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (now == MOMENTS_UNKNOWN) {
        const char *given = getenv("WARPFOX_MOMENTS");
        now = given && given[0] && strcmp(given, "0") ? MOMENTS_ON : MOMENTS_OFF;
        atomic_store(&wanted, now);
    }
    return now == MOMENTS_ON;
}

void moment(const char *format, ...) {
    if (!moments_on()) {
        return;
    }
    i64 none = 0;
    i64 now = clock_ns();
    atomic_compare_exchange_strong(&first_ns, &none, now);
    char line[300];
    i32 len = snprintf(line, sizeof line, "%9.2f ms  ", (f64)(now - atomic_load(&first_ns)) / 1e6);
    va_list args;
    va_start(args, format);
    len += vsnprintf(line + len, sizeof line - (size_t)len - 1, format, args);
    va_end(args);
    len = MIN_OF(len, (i32)sizeof line - 2);
    line[len] = '\n';
    fwrite(line, 1, (size_t)len + 1, stderr);
}

/* duration.c: times as people read them. The unit is the largest one the time has: milliseconds,
 * seconds, minutes, hours. What rounds up to the next unit is shown in it: no 1000.000 ms. */
#include "base/base.h"

#include <stdio.h>

enum { NS_PER_US = 1000, US_PER_MS = 1000, MS_PER_S = 1000, TENTHS_PER_MIN = 600 };

struct duration duration_of(i64 ns) {
    struct duration out;
    ns = MAX_OF(ns, 0);
    i64 us = ns / NS_PER_US + (ns % NS_PER_US >= NS_PER_US / 2);
    i64 ms = us / US_PER_MS + (us % US_PER_MS >= US_PER_MS / 2);
    i64 tenths = ms / 100 + (ms % 100 >= 50);
    if (us < (i64)US_PER_MS * MS_PER_S) {
        snprintf(out.text, sizeof out.text, "%lld.%03lld ms", us / US_PER_MS, us % US_PER_MS);
    } else if (ms < 60 * MS_PER_S) {
        snprintf(out.text, sizeof out.text, "%lld.%03lld s", ms / MS_PER_S, ms % MS_PER_S);
    } else if (tenths < 60 * TENTHS_PER_MIN) {
        snprintf(out.text, sizeof out.text, "%lld min %02lld.%lld s", tenths / TENTHS_PER_MIN,
                 tenths % TENTHS_PER_MIN / 10, tenths % 10);
    } else {
        i64 minutes = (tenths + TENTHS_PER_MIN / 2) / TENTHS_PER_MIN;
        snprintf(out.text, sizeof out.text, "%lld h %02lld min", minutes / 60, minutes % 60);
    }
    return out;
}

/* moment.h: WARPFOX_MOMENTS=1: what happens when in a process, for whoever looks for the time that its first
 * statement takes. */
#ifndef WF_BASE_MOMENT_H
#define WF_BASE_MOMENT_H

#include "base/base.h"

bool moments_on(void);
/* A line on stderr: milliseconds since the first one, and what was said. Nothing where nobody asked. */
void moment(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

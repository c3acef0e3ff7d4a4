/* early.h: columns that a program reads come from the disk while its device is started. */
#ifndef WF_RUN_EARLY_H
#define WF_RUN_EARLY_H

#include "run/device.h"

enum { EARLY_READERS = 3 }; /* while one waits for the disk others look at what came */

struct early {
    const struct exec *x;
    struct thread *threads[EARLY_READERS];
    struct mutex lock; /* of what follows: the next column, and how many were read */
    u32 block, step, col;
    i64 tablet, row; /* and its first row */
    i64 first, end;  /* rows that the step looks at */
    i64 count;
    b8 stop;
};
/* Begins to read. `x` is open, and not run before early_end. */
void early_begin(struct early *early, const struct exec *x);
/* Ends when the columns that are just being read are there. */
void early_end(struct early *early);

#endif

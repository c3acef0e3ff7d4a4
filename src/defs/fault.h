/* fault.h: fault.def as an enum. Kernel text too: it includes nothing else. */
#ifndef WF_DEFS_FAULT_H
#define WF_DEFS_FAULT_H

#include "defs/fault.def"

#define X(A, name, error, message) FAULT_##name,
enum fault { WF_FAULTS(X, ) FAULT_COUNT };
#undef X

/* No fault of a row: whoever ran into it cannot tell, and the host has to. */
enum { FAULT_ELSEWHERE = 255 };

#endif

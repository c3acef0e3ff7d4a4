/* eval.h: any scalar opcode on single values. */
#ifndef WF_HOST_EVAL_H
#define WF_HOST_EVAL_H

#include "defs/ops.h"

/* Evaluates one scalar opcode on single values. Returns the fault number (0 = fine). Strings it
 * makes are placed in `arena`. */
u8 op_eval(u16 code, union lit *out, union lit a, union lit b, union lit c, struct arena *arena);

#endif

/* boxes.h: STEP_CLIQUES in boxes (run/trie.h). */
#ifndef WF_CPU_BOXES_H
#define WF_CPU_BOXES_H

#include "run/device.h"

/* Whether memory has no room for the step in one piece, or another device asks for help with it. */
bool boxes_wanted(const struct exec *x, const struct step *step);
/* The runtime has the answer then. */
FALLIBLE boxes_run(struct exec *x, u32 step_no, const struct step *step);

#endif

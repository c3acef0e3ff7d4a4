/* levels.h: edges that a provider has sorted already (store/scan.h), for STEP_CLIQUES on the host. */
#ifndef WF_RUN_LEVELS_H
#define WF_RUN_LEVELS_H

#include "run/device.h"
#include "store/scan.h"

/* Whether a step of the block makes the edges that the next one counts cliques of, and a provider has them. */
bool levels_fit(const struct exec *x, const struct block *block, u32 step);
/* Instead of that step: the variable stands for the provider's levels. */
void levels_take(struct exec *x, const struct block *block, u32 step);

#endif

/* opt.h: plan -> plan. Passes in the order of defs/pass.def; each is a file, switchable, verified.
 */
#ifndef WF_OPT_OPT_H
#define WF_OPT_OPT_H

#include "defs/settings.h"
#include "plan/plan.h"

/* With optimizer = off only the passes that lowering needs (marked REQUIRED in pass.def) run; with
 * skip_pass all others but that one. */
FALLIBLE opt_run(struct plan *plan, const struct settings *settings, struct error *err);

#endif

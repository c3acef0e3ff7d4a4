/* lower.h: plan -> program: operators become pipelines of opcodes, fused where they may be. */
#ifndef WF_LOWER_LOWER_H
#define WF_LOWER_LOWER_H

#include "defs/program.h"
#include "defs/settings.h"
#include "plan/plan.h"

struct lower_limits { /* what weaving may use; so that lower knows no device */
    bool fusion;
    bool fast_floats; /* sums of floats as they come */
    bool sets_grow;   /* all devices there are keep a set from round to round of a recursion, and add to
                       * one as they go (struct sink) */
    bool bests_grow;  /* the same of sets that know the best value of a key */
    bool sets_small;  /* they add to sets that are small */
    i32 partition;    /* PARTITION_…: rows brought together by key before large tables are visited */
    i64 near_bytes;   /* of a table whose places are near for all who visit it; 0 = not known */
    i64 room_bytes;   /* that the device which runs all steps can hold; 0 = not known */
    i64 memory_bytes; /* of the host, for all there is; 0 = any number */
    /* Of one pipeline; 0 = any number. */
    i32 max_live;     /* registers alive at once */
    i32 max_matches;  /* MATCHes */
    i32 max_carried;  /* bytes a row that have to be handed on where one row becomes several, at all of them */
    i32 zone;         /* of the session, see base/zone.h */
};
FALLIBLE lower_plan(const struct plan *plan, const struct lower_limits *limits, struct arena *arena,
                    struct program **out, struct error *err);
/* Values of expressions of constants, for plan.evaluate: NULL where the expression faults. `zone`
 * as above. Lives in the arena, as what it returns does. */
struct evaluator *evaluator_new(struct arena *arena, i32 zone);

#endif

/* agg_slots.h: which slots of an aggregation's state hold a group. */
#ifndef WF_AGG_SLOTS_H
#define WF_AGG_SLOTS_H

#include "build_rows.h"

FN i32 agg_in_use(const struct kagg *agg, u32 one, u64 slot) {
    u64 mark = agg_held(agg, slot * (agg->head + agg->word_count) + agg->touch);
    if (one) {
        return slot == 0;
    }
    if (agg->form == AGG_HASH) {
        return slot < agg->slot_count ? mark != AGG_EMPTY : mark == AGG_EMPTY;
    }
    return slot < agg->slot_count && mark != 0;
}

#endif

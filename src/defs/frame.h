/* frame.h: the words of window frames, for plans and programs alike. */
#ifndef WF_DEFS_FRAME_H
#define WF_DEFS_FRAME_H

#include "defs/agg.def"
#include "defs/window.def"

#define X(A, name, text, fewest, most, doc) WINDOW_##name,
enum window_func { WF_WINDOWS(X, ) WINDOW_END };
#undef X
#define X(A, name, text, arguments, how, doc) AGG_##name,
enum agg { WF_AGGS(X, ) AGG_END };
#undef X

/* A frame's end: how far from the current row. */
enum bound {
    BOUND_UNBOUNDED_BEFORE,
    BOUND_BEFORE,
    BOUND_CURRENT,
    BOUND_AFTER,
    BOUND_UNBOUNDED_AFTER
};
enum frame_mode { FRAME_ROWS, FRAME_RANGE, FRAME_GROUPS };
enum frame_exclude { EXCLUDE_NONE, EXCLUDE_CURRENT, EXCLUDE_GROUP, EXCLUDE_TIES };

/* What a call of a sequence wants: nextval, currval, lastval, setval. */
enum serial_kind { SERIAL_NEXT, SERIAL_CURRENT, SERIAL_LAST, SERIAL_SET, SERIAL_SLEEP, SERIAL_END };

#endif

/* plan_int.h: rel.def as a table, for what walks, copies, compares, prints and checks operators. */
#ifndef WF_PLAN_PLAN_INT_H
#define WF_PLAN_PLAN_INT_H

#include "plan/plan.h"

enum field_class { /* see rel.def */
    FIELD_END,
    FIELD_EXPRS,
    FIELD_MAKES,
    FIELD_CONDS,
    FIELD_ORDER,
    FIELD_BOUND,
    FIELD_CALLS,
    FIELD_WINDOWS,
    FIELD_SCANS,
    FIELD_MARK,
    FIELD_COLS,
    FIELD_FLAGS,
    FIELD_NOTES,
    FIELD_WORD,
    FIELD_NOTE,
    FIELD_FIX,
    FIELD_COUNT
};

enum field_where { WHERE_LEFT, WHERE_RIGHT, WHERE_ALL };

struct rel_field {
    u8 class; /* enum field_class */
    u8 where; /* enum field_where */
    u16 offset; /* in the operator's own member */
    u16 bytes;
    const char *before;
};

struct rel_info {
    const struct rel_field *fields; /* FIELD_END is behind the last */
    u16 own;                        /* where they are in struct rel */
    u8 inputs;
    u8 flags; /* enum rel_flag */
    u8 first, others; /* enum rel_waits, of inputs */
};
extern const struct rel_info rel_infos[REL_COUNT];

#define EACH_FIELD(field, rel)                                            \
    for (const struct rel_field *field = rel_infos[(rel)->kind].fields;   \
         field->class != FIELD_END; field++)

/* The field itself, of the type that rel.def says. */
static inline void *field_in(const struct rel *rel, const struct rel_field *field) {
    return (char *)(size_t)rel + rel_infos[rel->kind].own + field->offset;
}

#endif

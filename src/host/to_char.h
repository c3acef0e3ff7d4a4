/* to_char.h: templates of to_char worked out, for devices that cannot read them. */
#ifndef WF_HOST_TO_CHAR_H
#define WF_HOST_TO_CHAR_H

#include "base/mem.h"

/* The nodes of defs/fn_to_char.h that a template is made of, in `arena`. */
struct sv to_char_program(struct arena *arena, str format);

#endif

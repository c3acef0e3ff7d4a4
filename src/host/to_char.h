/* to_char.h: templates of to_char taken apart, for those who cannot read them. */
#ifndef WF_HOST_TO_CHAR_H
#define WF_HOST_TO_CHAR_H

#include "base/mem.h"

/* The nodes of defs/fn_to_char.h that a template is made of, in `arena`. */
struct sv to_char_program(struct arena *arena, str format);
bool to_char_names_zone(str format); /* it has TZ, TZH, TZM or OF */

#endif

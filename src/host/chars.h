/* chars.h: what is to know of Unicode's characters: UTF-8, classes, upper and lower case. */
#ifndef WF_HOST_CHARS_H
#define WF_HOST_CHARS_H

#include "base/base.h"

/* False at the first byte that is not part of valid UTF-8 (its offset is stored unless NULL); a NUL
 * byte is not valid in text. */
bool utf8_valid(const char *bytes, i64 len, i64 *out_bad_offset);
/* Whether a code point is a letter, a blank, … */
enum char_class {
    CLASS_ALPHA,
    CLASS_ALNUM,
    CLASS_UPPER,
    CLASS_LOWER,
    CLASS_SPACE,
    CLASS_PUNCT,
    CLASS_CNTRL,
    CLASS_GRAPH,
    CLASS_PRINT
};
bool char_in_class(enum char_class class, u32 code_point);
/* Tells code points beyond ASCII from which on the answer may be another; all such are among them. */
void char_class_breaks(enum char_class class, void (*put)(void *to, u32 code_point), void *to);
/* Simple case mapping of one code point. */
u32 case_upper(u32 code_point);
u32 case_lower(u32 code_point);
/* Bytes that the text has in the other case, and those bytes. */
i64 case_upper_bytes(struct sv s);
i64 case_lower_bytes(struct sv s);
void case_upper_write(u8 *out, struct sv s);
void case_lower_write(u8 *out, struct sv s);

#endif

/* value_bytes.c: byte strings from text, as opcodes read them. */
#include "defs/value.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_encode.h"

u8 value_parse_bytes(struct sv s, u8 *out, i64 *out_len) {
    u8 fault = FAULT_NONE;
    *out_len = fn_parse_bytes(out, str_from(s), &fault);
    return fault;
}

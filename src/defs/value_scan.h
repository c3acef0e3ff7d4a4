/* value_scan.h: kinds of bytes in text, shared by the value_*.c files only. */
#ifndef WF_DEFS_VALUE_SCAN_H
#define WF_DEFS_VALUE_SCAN_H

#include "base/base.h"

static inline bool is_digit(u8 c) {
    return (u8)(c - '0') < 10;
}

static inline bool is_space(u8 c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif

/* char_class.c: which class of characters a code point belongs to: letters, blanks, punctuation.
 *
 * For regular expressions and initcap. One answer for all platforms: beyond ASCII the ranges of
 * char_class.h decide, which are those PostgreSQL sees in the locale C.UTF-8. Letters include the
 * digits of other scripts, as they do there; only 0 to 9 are digits. */
#include "host/chars.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/case_map.h"
#include "defs/fn_case.h"
#include "defs/char_class.h"
#include "defs/fn_initcap.h"

#define WITHIN(name) CLASS_HAS(name, c)

static bool ascii_in_class(enum char_class class, u32 c) {
    bool upper = c - 'A' < 26;
    bool lower = c - 'a' < 26;
    bool digit = c - '0' < 10;
    bool graph = c > ' ' && c < 127;
    switch (class) {
    case CLASS_ALPHA:
        return upper || lower;
    case CLASS_ALNUM:
        return upper || lower || digit;
    case CLASS_UPPER:
        return upper;
    case CLASS_LOWER:
        return lower;
    case CLASS_SPACE:
        return c == ' ' || c - '\t' < 5;
    case CLASS_PUNCT:
        return graph && !upper && !lower && !digit;
    case CLASS_CNTRL:
        return c < ' ' || c == 127;
    case CLASS_GRAPH:
        return graph;
    default: /* PRINT */
        return graph || c == ' ';
    }
}

bool char_in_class(enum char_class class, u32 c) {
    if (c < 0x80) {
        return ascii_in_class(class, c);
    }
    switch (class) {
    case CLASS_ALPHA:
    case CLASS_ALNUM:
        return WITHIN(alpha);
    case CLASS_UPPER:
        return WITHIN(upper);
    case CLASS_LOWER:
        return WITHIN(lower);
    case CLASS_SPACE:
        return WITHIN(space);
    case CLASS_PUNCT:
        return WITHIN(punct);
    case CLASS_CNTRL:
        return c < 0xa0;
    case CLASS_GRAPH:
        return WITHIN(alpha) || WITHIN(punct);
    default: /* PRINT */
        return WITHIN(print);
    }
}

static void put_breaks(const struct class_range *ranges, i64 count, void (*put)(void *to, u32 c),
                       void *to) {
    for (i64 i = 0; i < count; i++) {
        const struct class_range *r = &ranges[i];
        for (u32 c = r->first; r->step > 1 && c <= r->last; c += r->step) {
            put(to, c);
            put(to, c + 1);
        }
        put(to, r->first);
        put(to, r->last + 1);
    }
}

#define PUT(name) put_breaks(class_##name, COUNT_OF(class_##name), put, to)

void char_class_breaks(enum char_class class, void (*put)(void *to, u32 c), void *to) {
    switch (class) {
    case CLASS_ALPHA:
    case CLASS_ALNUM:
        PUT(alpha);
        break;
    case CLASS_UPPER:
        PUT(upper);
        break;
    case CLASS_LOWER:
        PUT(lower);
        break;
    case CLASS_SPACE:
        PUT(space);
        break;
    case CLASS_PUNCT:
        PUT(punct);
        break;
    case CLASS_CNTRL:
        put(to, 0xa0);
        break;
    case CLASS_GRAPH:
        PUT(alpha);
        PUT(punct);
        break;
    default: /* PRINT */
        PUT(print);
        break;
    }
}

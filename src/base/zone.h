/* zone.h: time zones by name, from the system's tz database.
 *
 * A zone is a number:
 *   up to ZONE_OFFSETS either way   an offset in seconds east of Greenwich
 *   from ZONE_NAMED on              a named zone, read once and kept while the process runs
 *   from ZONE_WORDS on              a word for the time in one (MSK) whose meaning changed over the years
 * Numbers that come from elsewhere, such as an interval's seconds, are no zones. */
#ifndef WF_BASE_ZONE_H
#define WF_BASE_ZONE_H

#include "base/base.h"

enum { ZONE_OFFSETS = 1 << 20, ZONE_NAMED = 1 << 24, ZONE_WORDS = 1 << 25 };
enum { ZONE_NAME_MAX = 64, ZONE_WORD_MAX = 12 };

static inline bool zone_is_named(i32 zone) {
    return zone >= ZONE_NAMED;
}
/* Finds "Europe/Berlin" (letters in any case) under $TZDIR or /usr/share/zoneinfo, or reads the
 * name as POSIX writes a zone: EST5EDT,M3.2.0,M11.1.0 or <+0530>-5:30. False when it is neither.
 * Thread-safe. */
bool zone_find(struct sv name, i32 *out);
/* A word such as "MSK" for what the clocks of the named zone show. */
bool zone_find_word(struct sv word, struct sv zone, i32 *out);
const char *zone_name(i32 zone); /* of a named one, or the word */
/* What a named zone's time is called at a moment: "CET", "CEST". */
const char *zone_word(i32 zone, i64 utc);
/* Whether its clocks always were that far from Greenwich. */
bool zone_is_fixed(i32 zone);
/* Seconds east of Greenwich at a moment (seconds since 1970 UTC); an offset is its own answer. */
i32 zone_offset(i32 zone, i64 utc);
/* The first change after a moment, and the offset from then on; I64_MAX when there is none. The zone is
 * no word. */
i64 zone_next(i32 zone, i64 utc, i32 *out_offset);
i32 zone_of_word(i32 zone); /* the named one whose time the word says */

#endif

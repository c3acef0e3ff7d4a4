/* zone.h: time zones by name, from the system's tz database.
 *
 * A zone is a number: up to ZONE_OFFSETS either way it is an offset in seconds east of Greenwich,
 * from ZONE_NAMED on a named zone that was read once and stays for as long as the process runs. */
#ifndef WF_BASE_ZONE_H
#define WF_BASE_ZONE_H

#include "base/base.h"

enum { ZONE_OFFSETS = 1 << 20, ZONE_NAMED = 1 << 24, ZONE_NAME_MAX = 48, ZONE_WORD_MAX = 12 };

static inline bool zone_is_named(i32 zone) {
    return zone >= ZONE_NAMED;
}
/* Finds "Europe/Berlin" (letters in any case) under $TZDIR or /usr/share/zoneinfo. False when there
 * is no such file, or none that can be read as a time zone. Thread-safe. */
bool zone_find(struct sv name, i32 *out);
const char *zone_name(i32 zone); /* of a named one */
/* What a named zone's time is called at a moment: "CET", "CEST". */
const char *zone_word(i32 zone, i64 utc);
/* Seconds east of Greenwich at a moment (seconds since 1970 UTC); an offset is its own answer. */
i32 zone_offset(i32 zone, i64 utc);
/* The same for a moment given as the zone's clocks show it. What they show twice is the later
 * moment, what they leave out is read by the offset before, as in PostgreSQL. */
i32 zone_offset_local(i32 zone, i64 local);

#endif

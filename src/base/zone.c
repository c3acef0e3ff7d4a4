/* zone.c: named time zones: the reader of TZif files (RFC 8536) and of POSIX rules, and looking up
 * offsets.
 *
 * A file is a list of moments at which the offset changes, and a rule in POSIX form for all time
 * after the last of them. Zones are read when first named and kept in a table that only grows, so
 * that a number found once can be used without a lock. Everything in a file is checked before it
 * is used: the database belongs to the system, and may be anything. */
#include "base/zone.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

enum { ZONES_MAX = 1024, CHANGES_MAX = 512, TYPES_MAX = 64, DAY_S = 86400 };
/* Rules are data's own invention: they must not take the places of the zones there are. */
enum { RULES_MAX = 256, MEANINGS_MAX = 128 };

struct rule { /* a day of the year, and a second of it that may lie outside */
    u8 form;  /* 'M' month, week, weekday; 'J' day 1 to 365, never 29 February; 'n' day 0 to 365 */
    i32 month, week, day;
    i32 second;
};

struct zone {
    char name[ZONE_NAME_MAX];
    i32 count;
    i64 at[CHANGES_MAX];
    i32 after[CHANGES_MAX]; /* offset from at[i] on */
    u8 type[CHANGES_MAX];   /* what it is called: a number of `words`; 0 before at[0] */
    i32 first;              /* offset before at[0] */
    char words[TYPES_MAX][ZONE_WORD_MAX];
    bool has_rule, has_summer;
    bool fixed; /* a rule that is nothing but an offset: the standard one */
    i32 standard, summer;
    char standard_word[ZONE_WORD_MAX], summer_word[ZONE_WORD_MAX];
    struct rule begins, ends; /* of summer time */
};

struct meaning { /* a word for the time in a zone */
    i32 zone;
    char word[ZONE_WORD_MAX];
};

static struct zone zones[ZONES_MAX];
static _Atomic i32 zone_count;
static i32 rule_count; /* of them, written as rules */
static struct meaning meanings[MEANINGS_MAX];
static i32 meaning_count;
static _Atomic i32 zones_busy; /* a lock that needs no making: it is held while a file is read */

/* Days */

static i64 floor_div(i64 a, i64 b) {
    return a / b - (a % b < 0);
}

static bool is_leap(i64 year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static i64 day_of_year_start(i64 year) {
    i64 y = year - 1;
    return y * 365 + floor_div(y, 4) - floor_div(y, 100) + floor_div(y, 400) - 719162;
}

static i64 year_of(i64 utc) {
    i64 day = floor_div(utc, DAY_S);
    i64 year = 1969 + floor_div(day * 400, 146097);
    while (day_of_year_start(year + 1) <= day) {
        year++;
    }
    return year;
}

static i64 rule_moment(const struct rule *rule, i64 year) {
    static const i32 starts[13] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    i64 day = day_of_year_start(year);
    if (rule->form == 'J') {
        day += rule->day - 1 + (is_leap(year) && rule->day >= 60);
    } else if (rule->form == 'n') {
        day += rule->day;
    } else {
        i32 month = rule->month;
        i64 first = day + starts[month - 1] + (is_leap(year) && month > 2);
        i32 length = starts[month] - starts[month - 1] + (is_leap(year) && month == 2);
        i64 weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        i64 in_month = (rule->day - weekday + 7) % 7 + 7 * (rule->week - 1);
        day = first + in_month - (in_month >= length ? 7 : 0);
    }
    return day * DAY_S + rule->second;
}

/* The next change after `utc` by the rule, and the offset then. */
static i64 rule_next(const struct zone *z, i64 utc, i32 *out_offset) {
    i64 best = I64_MAX;
    i64 year = year_of(utc);
    for (i64 y = year - 1; y <= year + 1; y++) {
        i64 on = rule_moment(&z->begins, y) - z->standard;
        i64 off = rule_moment(&z->ends, y) - z->summer;
        if (on > utc && on < best) {
            best = on;
            *out_offset = z->summer;
        }
        if (off > utc && off < best) {
            best = off;
            *out_offset = z->standard;
        }
    }
    return best;
}

static i32 rule_offset(const struct zone *z, i64 utc) {
    i32 next = 0;
    if (!z->has_summer || rule_next(z, utc, &next) == I64_MAX) {
        return z->standard;
    }
    return next == z->summer ? z->standard : z->summer;
}

/* Looking up */

static i32 changes_until(const struct zone *z, i64 utc) { /* how many lie at or before it */
    i32 lo = 0, hi = z->count;
    while (lo < hi) {
        i32 mid = (lo + hi) / 2;
        if (z->at[mid] <= utc) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static i32 offset_at(const struct zone *z, i64 utc) {
    i32 n = changes_until(z, utc);
    if (n == z->count && z->has_rule) {
        return rule_offset(z, utc);
    }
    return n == 0 ? z->first : z->after[n - 1];
}

/* The first change after `utc`; I64_MAX when there is none. */
static i64 next_change(const struct zone *z, i64 utc, i32 *out_offset) {
    i32 n = changes_until(z, utc);
    if (n < z->count) {
        *out_offset = z->after[n];
        return z->at[n];
    }
    return z->has_rule && z->has_summer ? rule_next(z, utc, out_offset) : I64_MAX;
}

/* Far in the future the rule's years are those of a cycle of 400, behind all changes listed. */
static i64 in_cycle(i64 utc) {
    const i64 cycle = 146097LL * DAY_S;
    return utc > 2 * cycle ? utc % cycle + cycle : utc;
}

/* What a word meant at a moment: what it meant last, or would first; in a zone that never used it,
 * what the clocks show. */
static i32 word_offset(const struct meaning *m, i64 utc) {
    const struct zone *z = &zones[m->zone - ZONE_NAMED];
    i32 now = changes_until(z, utc);
    if (now == z->count && z->has_rule && strcmp(z->standard_word, m->word) == 0) {
        return z->standard;
    }
    if (now == z->count && z->has_summer && strcmp(z->summer_word, m->word) == 0) {
        return z->summer;
    }
    for (i32 i = now - 1; i >= 0; i--) {
        if (strcmp(z->words[z->type[i]], m->word) == 0) {
            return z->after[i];
        }
    }
    for (i32 i = now; i < z->count; i++) {
        if (strcmp(z->words[z->type[i]], m->word) == 0) {
            return z->after[i];
        }
    }
    return offset_at(z, utc);
}

bool zone_is_fixed(i32 zone) {
    if (!zone_is_named(zone) || zone >= ZONE_WORDS) {
        return !zone_is_named(zone);
    }
    const struct zone *z = &zones[zone - ZONE_NAMED];
    bool same = !z->has_summer && (z->count == 0 || !z->has_rule || z->standard == z->first);
    for (i32 i = 0; i < z->count; i++) {
        same = same && z->after[i] == z->first;
    }
    return same;
}

i32 zone_offset(i32 zone, i64 utc) {
    return zone >= ZONE_WORDS    ? word_offset(&meanings[zone - ZONE_WORDS], in_cycle(utc))
           : zone_is_named(zone) ? offset_at(&zones[zone - ZONE_NAMED], in_cycle(utc))
                                 : zone;
}

i64 zone_next(i32 zone, i64 utc, i32 *out_offset) {
    return zone_is_named(zone) ? next_change(&zones[zone - ZONE_NAMED], utc, out_offset) : I64_MAX;
}

i32 zone_of_word(i32 zone) {
    return zone >= ZONE_WORDS ? meanings[zone - ZONE_WORDS].zone : zone;
}

const char *zone_word(i32 zone, i64 utc) {
    if (zone >= ZONE_WORDS) {
        return meanings[zone - ZONE_WORDS].word;
    }
    const struct zone *z = &zones[zone - ZONE_NAMED];
    utc = in_cycle(utc);
    i32 n = changes_until(z, utc);
    if (n == z->count && z->has_rule) {
        bool summer = z->has_summer && rule_offset(z, utc) == z->summer;
        return summer ? z->summer_word : z->standard_word;
    }
    return z->words[n == 0 ? 0 : z->type[n - 1]];
}

const char *zone_name(i32 zone) {
    return zone >= ZONE_WORDS ? meanings[zone - ZONE_WORDS].word : zones[zone - ZONE_NAMED].name;
}

/* Reading */

struct reader {
    const u8 *p, *end;
};

static i64 big_endian(const u8 *p, i32 bytes) {
    u64 value = p[0] & 0x80 ? ~0ULL : 0;
    for (i32 i = 0; i < bytes; i++) {
        value = value << 8 | p[i];
    }
    return (i64)value;
}

static bool read_number(struct reader *r, i32 most, i32 *out) {
    i32 value = 0, digits = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && digits < 6) {
        value = value * 10 + (*r->p++ - '0');
        digits++;
    }
    *out = value;
    return digits > 0 && value <= most;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool read_clock(struct reader *r, i32 *out) {
    i32 parts[3] = {0, 0, 0};
    bool minus = r->p < r->end && *r->p == '-';
    r->p += r->p < r->end && (*r->p == '-' || *r->p == '+');
    for (i32 i = 0; i < 3; i++) {
        if (i > 0 && !(r->p < r->end && *r->p == ':')) {
            break;
        }
        r->p += i > 0;
        if (!read_number(r, i == 0 ? 167 : 59, &parts[i])) {
            return false;
        }
    }
    *out = (parts[0] * 3600 + parts[1] * 60 + parts[2]) * (minus ? -1 : 1);
    return true;
}

static void copy_word(char *out, const u8 *from, i64 len) {
    len = MIN_OF(len, ZONE_WORD_MAX - 1);
    memcpy(out, from, (size_t)len);
    out[len] = 0;
}

static bool read_word(struct reader *r, char *out) { /* CET or <+03> */
    const u8 *start = r->p;
    bool quoted = r->p < r->end && *r->p == '<';
    while (r->p < r->end &&
           (quoted ? *r->p != '>'
                   : *r->p != ',' && *r->p != '-' && *r->p != '+' && (u8)(*r->p - '0') > 9)) {
        r->p++;
    }
    copy_word(out, start + quoted, r->p - start - quoted);
    bool closed = !quoted || r->p < r->end;
    r->p += quoted && closed;
    return closed;
}

static bool read_rule(struct reader *r, struct rule *out) {
    out->second = 7200;
    if (r->p >= r->end || *r->p++ != ',' || r->p >= r->end) {
        return false;
    }
    out->form = *r->p == 'M' || *r->p == 'J' ? *r->p++ : 'n';
    bool good;
    if (out->form == 'M') {
        good = read_number(r, 12, &out->month) && out->month >= 1 && r->p < r->end &&
               *r->p++ == '.' && read_number(r, 5, &out->week) && out->week >= 1 && r->p < r->end &&
               *r->p++ == '.' && read_number(r, 6, &out->day);
    } else {
        good = read_number(r, 365, &out->day) && (out->form == 'n' || out->day >= 1);
    }
    if (good && r->p < r->end && *r->p == '/') {
        r->p++;
        good = read_clock(r, &out->second);
    }
    return good;
}

/* CET-1CEST,M3.5.0,M10.5.0/3: offsets count westward. */
static bool read_footer(struct reader *r, struct zone *z) {
    i32 west = 0;
    if (r->p == r->end) {
        return true; /* none: what holds last holds */
    }
    if (!read_word(r, z->standard_word) || !read_clock(r, &west)) {
        return false;
    }
    z->has_rule = true;
    z->standard = -west;
    z->summer = z->standard + 3600;
    if (r->p == r->end) {
        return true;
    }
    z->has_summer = true;
    if (!read_word(r, z->summer_word) || z->summer_word[0] == 0) {
        return false;
    }
    if (r->p < r->end && *r->p != ',') {
        if (!read_clock(r, &west)) {
            return false;
        }
        z->summer = -west;
    }
    if (r->p == r->end) { /* when is not said: as in New York */
        z->begins = (struct rule){'M', 3, 2, 0, 7200};
        z->ends = (struct rule){'M', 11, 1, 0, 7200};
        return true;
    }
    return read_rule(r, &z->begins) && read_rule(r, &z->ends) && r->p == r->end;
}

struct header {
    i64 utc_count, std_count, leap_count, time_count, type_count, char_count;
};

static bool read_header(struct reader *r, u8 *out_version, struct header *out) {
    if (r->end - r->p < 44 || memcmp(r->p, "TZif", 4) != 0) {
        return false;
    }
    i64 counts[6];
    for (i32 i = 0; i < 6; i++) {
        counts[i] = big_endian(r->p + 20 + 4 * i, 4);
        if (counts[i] < 0 || counts[i] > 100000) {
            return false;
        }
    }
    *out_version = r->p[4];
    *out = (struct header){counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
    r->p += 44;
    return true;
}

static i64 block_bytes(const struct header *h, i64 width) {
    return h->time_count * (width + 1) + h->type_count * 6 + h->char_count +
           h->leap_count * (width + 4) + h->std_count + h->utc_count;
}

/* What the types are called: each names the place of a text that ends in a zero byte. */
static void read_words(const struct header *h, const u8 *infos, struct zone *z) {
    const u8 *chars = infos + 6 * h->type_count;
    for (i64 i = 0; i < h->type_count; i++) {
        i64 at = MIN_OF((i64)infos[6 * i + 5], h->char_count), end = at;
        while (end < h->char_count && chars[end] != 0) {
            end++;
        }
        copy_word(z->words[i], chars + at, end - at);
    }
}

static bool read_block(struct reader *r, const struct header *h, i64 width, struct zone *z) {
    if (r->end - r->p < block_bytes(h, width) || h->type_count < 1 || h->type_count > TYPES_MAX ||
        h->time_count > CHANGES_MAX) {
        return false;
    }
    const u8 *types = r->p + h->time_count * width, *infos = types + h->time_count;
    read_words(h, infos, z);
    z->first = (i32)big_endian(infos, 4);
    z->count = (i32)h->time_count;
    for (i32 i = 0; i < z->count; i++) {
        z->at[i] = big_endian(r->p + i * width, (i32)width);
        if (types[i] >= h->type_count || (i > 0 && z->at[i] <= z->at[i - 1])) {
            return false;
        }
        z->type[i] = types[i];
        z->after[i] = (i32)big_endian(infos + 6 * types[i], 4);
        if (z->after[i] > 7 * DAY_S || z->after[i] < -7 * DAY_S) {
            return false;
        }
    }
    r->p += block_bytes(h, width);
    return true;
}

static bool read_zone(struct reader *r, struct zone *z) {
    struct header h;
    u8 version = 0;
    if (!read_header(r, &version, &h)) {
        return false;
    }
    if (version < '2') {
        return read_block(r, &h, 4, z);
    }
    if (r->end - r->p < block_bytes(&h, 4)) {
        return false;
    }
    r->p += block_bytes(&h, 4);
    if (!read_header(r, &version, &h) || !read_block(r, &h, 8, z)) {
        return false;
    }
    const u8 *close = r->end - r->p > 1 && *r->p == '\n'
                          ? memchr(r->p + 1, '\n', (size_t)(r->end - r->p - 1))
                          : NULL;
    if (!close) {
        return false;
    }
    struct reader footer = {r->p + 1, close};
    return read_footer(&footer, z);
}

/* Puts `name` behind a folder's path, each part as the folder spells it. */
static bool spell(struct sv name, const char *folder, char *path, i64 cap) {
    int length = snprintf(path, (size_t)cap, "%s", folder);
    bool found = length > 0 && length < cap;
    for (i64 i = 0; i < name.len && found;) {
        i64 end = i;
        while (end < name.len && name.ptr[end] != '/') {
            end++;
        }
        struct sv part = {name.ptr + i, end - i};
        char entry[ZONE_NAME_MAX];
        found =
            part.len > 0 && part.ptr[0] != '.' && file_find_name(path, part, entry, sizeof entry);
        i64 at = (i64)strlen(path);
        found = found && snprintf(path + at, (size_t)(cap - at), "/%s", entry) < cap - at;
        i = end + 1;
    }
    return found;
}

static bool load(struct sv name, struct zone *z) {
    const char *folder = getenv("TZDIR");
    char path[600];
    struct file_view view;
    struct error err = {0};
    folder = folder && folder[0] ? folder : "/usr/share/zoneinfo";
    if (!spell(name, folder, path, sizeof path) || file_view_open(&view, path, &err)) {
        return false;
    }
    struct reader r = {(const u8 *)view.data, (const u8 *)view.data + view.bytes};
    bool good = read_zone(&r, z) && !file_view_torn(&view);
    file_view_close(&view);
    memcpy(z->name, path + strlen(folder) + 1, (size_t)name.len + 1);
    return good;
}

/* A rule such as EST5EDT: a name and an offset. */
static bool load_rule(struct sv name, struct zone *z) {
    struct reader r = {(const u8 *)name.ptr, (const u8 *)name.ptr + name.len};
    for (i64 i = 0; i < name.len; i++) {
        bool letter = (u8)((name.ptr[i] | 32) - 'a') < 26;
        z->name[i] = (char)(letter ? name.ptr[i] & ~32 : name.ptr[i]);
    }
    return read_footer(&r, z) && z->has_rule;
}

static bool find_locked(struct sv name, i32 *out) {
    i32 count = zone_count;
    if (name.len < 1 || name.len >= ZONE_NAME_MAX) {
        return false;
    }
    for (i32 i = 0; i < count; i++) {
        if (sv_eq_nocase(name, sv_from(zones[i].name))) {
            *out = zones[i].fixed ? zones[i].standard : ZONE_NAMED + i;
            return true;
        }
    }
    if (count == ZONES_MAX) {
        return false;
    }
    struct zone *z = &zones[count];
    memset(z, 0, sizeof *z);
    bool read = load(name, z), rule = false;
    if (!read) {
        memset(z, 0, sizeof *z);
        rule = load_rule(name, z);
        z->fixed = rule && !z->has_summer;
    }
    bool kept = read || (rule && rule_count < RULES_MAX);
    rule_count += kept && rule;
    zone_count = count + kept;
    *out = z->fixed ? z->standard : ZONE_NAMED + count;
    return kept || z->fixed;
}

static bool find_word_locked(struct sv word, struct sv zone, i32 *out) {
    for (i32 i = 0; i < meaning_count; i++) {
        if (sv_eq_nocase(word, sv_from(meanings[i].word))) {
            *out = ZONE_WORDS + i;
            return true;
        }
    }
    struct meaning *m = &meanings[meaning_count];
    if (meaning_count == MEANINGS_MAX || word.len >= ZONE_WORD_MAX ||
        !find_locked(zone, &m->zone) || !zone_is_named(m->zone)) {
        return false;
    }
    for (i64 i = 0; i < word.len; i++) {
        m->word[i] = (char)(word.ptr[i] & ~32);
    }
    *out = ZONE_WORDS + meaning_count++;
    return true;
}

static void lock(void) {
    i32 open = 0;
    while (!atomic_compare_exchange_weak(&zones_busy, &open, 1)) {
        open = 0;
    }
}

bool zone_find(struct sv name, i32 *out) {
    lock();
    bool found = find_locked(name, out);
    zones_busy = 0;
    return found;
}

bool zone_find_word(struct sv word, struct sv zone, i32 *out) {
    lock();
    bool found = find_word_locked(word, zone, out);
    zones_busy = 0;
    return found;
}

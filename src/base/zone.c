/* zone.c: named time zones: the reader of TZif files (RFC 8536), and looking up offsets.
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
    i32 standard, summer;
    char standard_word[ZONE_WORD_MAX], summer_word[ZONE_WORD_MAX];
    struct rule begins, ends; /* of summer time */
};

static struct zone zones[ZONES_MAX];
static _Atomic i32 zone_count;
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

i32 zone_offset(i32 zone, i64 utc) {
    return zone_is_named(zone) ? offset_at(&zones[zone - ZONE_NAMED], in_cycle(utc)) : zone;
}

i32 zone_offset_local(i32 zone, i64 local) {
    if (!zone_is_named(zone)) {
        return zone;
    }
    const struct zone *z = &zones[zone - ZONE_NAMED];
    local = in_cycle(local);
    i64 from = local - DAY_S;
    i32 before = offset_at(z, from), after = before;
    i64 change = next_change(z, from, &after);
    i64 by_before = local - before, by_after = local - after;
    if (change == I64_MAX || (by_before < change && by_after < change)) {
        return before;
    }
    if (by_before > change && by_after >= change) {
        return after;
    }
    return by_before > by_after ? before : after;
}

const char *zone_word(i32 zone, i64 utc) {
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
    return zones[zone - ZONE_NAMED].name;
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
    while (r->p < r->end && (quoted ? *r->p != '>' : (u8)((*r->p | 32) - 'a') < 26)) {
        r->p++;
    }
    copy_word(out, start + quoted, r->p - start - quoted);
    r->p += quoted && r->p < r->end;
    return r->p - start >= 3;
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
    if (!read_word(r, z->summer_word)) {
        return false;
    }
    if (r->p < r->end && *r->p != ',') {
        if (!read_clock(r, &west)) {
            return false;
        }
        z->summer = -west;
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

static bool load(const char *name, struct zone *z) {
    const char *folder = getenv("TZDIR");
    char path[600];
    struct file_view view;
    struct error err = {0};
    memset(z, 0, sizeof *z);
    int length = snprintf(path, sizeof path, "%s/%s",
                          folder && folder[0] ? folder : "/usr/share/zoneinfo", name);
    if (length <= 0 || length >= (int)sizeof path || file_view_open(&view, path, &err)) {
        return false;
    }
    struct reader r = {(const u8 *)view.data, (const u8 *)view.data + view.bytes};
    bool good = read_zone(&r, z) && !file_view_torn(&view);
    file_view_close(&view);
    memcpy(z->name, name, strlen(name) + 1);
    return good;
}

/* Names hold letters, digits, _ + - and parts between slashes; how 0 as written, 1 with capitals at
 * the beginning of every word, 2 in capitals. */
static bool spell(struct sv name, i32 how, char *out) {
    bool start = true;
    if (name.len < 1 || name.len >= ZONE_NAME_MAX) {
        return false;
    }
    for (i64 i = 0; i < name.len; i++) {
        u8 c = (u8)name.ptr[i], small = c | 32;
        bool letter = (u8)(small - 'a') < 26;
        bool digit = (u8)(c - '0') < 10;
        if (!letter && !digit && c != '_' && c != '+' && c != '-' && !(c == '/' && i > 0)) {
            return false;
        }
        out[i] = (char)(letter && how > 0 ? (start || how == 2 ? small & ~32 : small) : c);
        start = !letter && !digit;
    }
    out[name.len] = 0;
    return true;
}

static bool find_locked(struct sv name, i32 *out) {
    i32 count = zone_count;
    for (i32 i = 0; i < count; i++) {
        if (sv_eq_nocase(name, sv_from(zones[i].name))) {
            *out = ZONE_NAMED + i;
            return true;
        }
    }
    char spelled[ZONE_NAME_MAX];
    for (i32 how = 0; how < 3 && count < ZONES_MAX && spell(name, how, spelled); how++) {
        if (load(spelled, &zones[count])) {
            zone_count = count + 1;
            *out = ZONE_NAMED + count;
            return true;
        }
    }
    return false;
}

bool zone_find(struct sv name, i32 *out) {
    i32 free = 0;
    while (!atomic_compare_exchange_weak(&zones_busy, &free, 1)) {
        free = 0;
    }
    bool found = find_locked(name, out);
    zones_busy = 0;
    return found;
}

/* normal.c: the normal forms of Unicode: NFC, NFD, NFKC and NFKD of a text.
 *
 * Characters are taken apart as far as the tables allow, marks behind a letter are put into the
 * order of their classes, and, for the composed forms, put together again; Hangul syllables are
 * computed. The text is held as code points in the room asked for, which is twice their number:
 * long runs of marks are sorted by counting through the second half, so that no text takes more
 * than linear time. UTF-8 is written over the code points from the front: it never takes more than
 * their four bytes. */
#include "host/bodies.h"

#include "host/normal_map.h"
#include "host/normal_pairs.h"
#include "defs/types.h"

enum {
    HANGUL = 0xac00,
    LEADS = 0x1100,
    VOWELS = 0x1161,
    TAILS = 0x11a7,
    LEAD_COUNT = 19,
    VOWEL_COUNT = 21,
    TAIL_COUNT = 28,
    SYLLABLES = LEAD_COUNT * VOWEL_COUNT * TAIL_COUNT,
    POINT_BITS = 0x1fffff,
    COMPAT_BIT = 0x200000,
    SHORT_RUN = 16
};

static u32 get(const u8 *room, i64 i) {
    u32 c;
    memcpy(&c, room + 4 * i, sizeof c);
    return c;
}

static void put(u8 *room, i64 i, u32 c) {
    memcpy(room + 4 * i, &c, sizeof c);
}

/* tables */

static i64 find_key(u32 c) { /* -1: it has no decomposition */
    i64 lo = 0;
    i64 hi = COUNT_OF(normal_keys);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if ((normal_keys[mid] & POINT_BITS) < c) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < COUNT_OF(normal_keys) && (normal_keys[lo] & POINT_BITS) == c ? lo : -1;
}

static const u16 *units_of(i64 key, i64 *out_count) {
    i64 at = normal_blocks[key / 16];
    for (i64 i = key / 16 * 16; i < key; i++) {
        at += normal_keys[i] >> 22;
    }
    *out_count = normal_keys[key] >> 22;
    return normal_pool + at;
}

static u32 next_point(const u16 *units, i64 *at) {
    u32 c = units[(*at)++];
    if (c >= 0xd800 && c < 0xdc00) {
        c = 0x10000u + ((c - 0xd800u) << 10) + (units[(*at)++] - 0xdc00u);
    }
    return c;
}

static u32 class_of(u32 c) {
    i64 lo = 0;
    i64 hi = COUNT_OF(class_runs);
    while (lo < hi) { /* the first run that begins past c */
        i64 mid = (lo + hi) / 2;
        if ((class_runs[mid] & POINT_BITS) <= c) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    bool inside = lo > 0 && c - (class_runs[lo - 1] & POINT_BITS) <= class_runs[lo - 1] >> 21;
    return inside ? class_of_runs[lo - 1] : 0;
}

/* The character of two, 0 if there is none. */
static u32 composed(u32 a, u32 b) {
    if (a - LEADS < LEAD_COUNT && b - VOWELS < VOWEL_COUNT) {
        return HANGUL + ((a - LEADS) * VOWEL_COUNT + (b - VOWELS)) * TAIL_COUNT;
    }
    if (a - HANGUL < SYLLABLES && (a - HANGUL) % TAIL_COUNT == 0 &&
        b - TAILS - 1 < TAIL_COUNT - 1) {
        return a + (b - TAILS);
    }
    i64 lo = 0;
    i64 hi = COUNT_OF(normal_pairs);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        i64 count;
        i64 at = 0;
        const u16 *units = units_of(normal_pairs[mid], &count);
        u32 x = next_point(units, &at);
        u32 y = next_point(units, &at);
        if (x == a && y == b) {
            return normal_keys[normal_pairs[mid]] & POINT_BITS;
        }
        if (x < a || (x == a && y < b)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return 0;
}

/* the steps */

/* Takes c apart behind the n code points there are; without room they are only counted. */
static i64 expand(u8 *room, i64 n, u32 c, bool compat) {
    if (c - HANGUL < SYLLABLES) {
        u32 s = c - HANGUL;
        u32 tail = s % TAIL_COUNT;
        if (room) {
            put(room, n, LEADS + s / TAIL_COUNT / VOWEL_COUNT);
            put(room, n + 1, VOWELS + s / TAIL_COUNT % VOWEL_COUNT);
            put(room, n + 2, TAILS + tail); /* overwritten if there is none */
        }
        return n + (tail ? 3 : 2);
    }
    i64 key = c < 0x80 ? -1 : find_key(c);
    if (key < 0 || (!compat && (normal_keys[key] & COMPAT_BIT))) {
        if (room) {
            put(room, n, c);
        }
        return n + 1;
    }
    i64 count;
    const u16 *units = units_of(key, &count);
    for (i64 at = 0; at < count;) {
        n = expand(room, n, next_point(units, &at), compat);
    }
    return n;
}

static i64 expand_all(u8 *room, struct sv s, bool compat) {
    i64 n = 0;
    for (i64 i = 0; i < s.len;) {
        u32 c = (u8)s.ptr[i++];
        u32 more = c < 0x80 ? 0u : c < 0xe0 ? 1u : c < 0xf0 ? 2u : 3u;
        c = more == 0 ? c : c & (0x3fu >> more);
        for (; more > 0 && i < s.len; more--) {
            c = c << 6 | ((u8)s.ptr[i++] & 0x3fu);
        }
        n = expand(room, n, c, compat);
    }
    return n;
}

static void sort_short(u8 *room, i64 from, i64 to) {
    for (i64 i = from + 1; i < to; i++) {
        u32 c = get(room, i);
        u32 class = class_of(c);
        i64 at = i;
        for (; at > from && class_of(get(room, at - 1)) > class; at--) {
            put(room, at, get(room, at - 1));
        }
        put(room, at, c);
    }
}

static void sort_long(u8 *room, i64 from, i64 to, u8 *scratch) {
    i64 starts[257] = {0};
    for (i64 i = from; i < to; i++) {
        starts[class_of(get(room, i)) + 1]++;
    }
    for (i32 k = 0; k < 256; k++) {
        starts[k + 1] += starts[k];
    }
    for (i64 i = from; i < to; i++) {
        u32 c = get(room, i);
        put(scratch, starts[class_of(c)]++, c);
    }
    memcpy(room + 4 * from, scratch, (size_t)(4 * (to - from)));
}

/* Marks behind a letter in the order of their classes. */
static void order_marks(u8 *room, i64 n, u8 *scratch) {
    for (i64 i = 0; i < n;) {
        i64 end = i;
        while (end < n && class_of(get(room, end)) != 0) {
            end++;
        }
        if (end - i > SHORT_RUN) {
            sort_long(room, i, end, scratch);
        } else {
            sort_short(room, i, end);
        }
        i = end + 1;
    }
}

static i64 compose(u8 *room, i64 n) {
    i64 starter = 0;
    i64 kept = MIN_OF(n, 1);
    i32 last = -1; /* class of the mark before, -1 = right behind the starter */
    for (i64 i = 1; i < n; i++) {
        u32 c = get(room, i);
        i32 class = (i32)class_of(c);
        u32 whole = last < class ? composed(get(room, starter), c) : 0;
        if (whole) {
            put(room, starter, whole);
            continue;
        }
        starter = class == 0 ? kept : starter;
        last = class == 0 ? -1 : class;
        put(room, kept++, c);
    }
    return kept;
}

static i64 encode(u8 *room, i64 n) {
    i64 len = 0;
    for (i64 i = 0; i < n; i++) {
        u32 c = get(room, i);
        if (c < 0x80) {
            room[len++] = (u8)c;
            continue;
        }
        i32 more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        room[len++] = (u8)((0xf0e0c0u >> (8 * (more - 1)) & 0xff) | c >> (6 * more));
        while (more-- > 0) {
            room[len++] = (u8)(0x80 | (c >> (6 * more) & 0x3f));
        }
    }
    return len;
}

static bool is_form(str form, const char *name) {
    return sv_eq_nocase(sv_of(form), sv_from(name));
}

void mt_normalize(struct made *made, str a, str form, u8 *f) {
    bool compat = is_form(form, "nfkc") || is_form(form, "nfkd");
    bool composes = is_form(form, "nfc") || is_form(form, "nfkc");
    if (!compat && !composes && !is_form(form, "nfd")) {
        *f = FAULT_NORMAL_FORM;
        return;
    }
    struct sv s = sv_of(a);
    i64 ascii = 0;
    while (ascii < s.len && (u8)s.ptr[ascii] < 0x80) {
        ascii++;
    }
    i64 n = ascii == s.len ? 0 : expand_all(NULL, s, compat);
    u8 *room = made_room(made, n == 0 ? s.len : 8 * n + 4, f);
    if (!room) {
        return;
    }
    if (n == 0) {
        memcpy(room, s.len ? s.ptr : "", (size_t)s.len);
        return;
    }
    expand_all(room, s, compat);
    order_marks(room, n, room + 4 * n);
    made->len = encode(room, composes ? compose(room, n) : n);
}

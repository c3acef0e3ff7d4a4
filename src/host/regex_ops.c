/* regex_ops.c: the functions on regular expressions, over regex.h.
 *
 * Patterns are mostly the same from row to row: each thread keeps the last few it compiled, with
 * the automaton that grew from each (regex_auto.h).
 * Functions with options write them in front of the pattern, between two bytes 1, as
 * letters;start;number;part;end, so that an opcode needs no more than three operands. */
#include "host/bodies.h"

#include "defs/fault.h"
#include "host/regex_auto.h"
#include "base/thread.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_str.h"
#include "defs/fn_str2.h"

struct call {
    struct regex_auto *re;
    struct sv flags;
    i64 start;  /* character to begin at, from 1 */
    i64 number; /* which match; 0 = all (replace) */
    i64 part;   /* parenthesised part */
    i64 end;    /* instr: 1 = behind the match */
    bool numbered;
    bool first_part; /* see REGEX_FIRST_PART */
};

enum { KEPT_BYTES = 1024, KEPT_COUNT = 4 };

/* What a thread keeps: some 600 KB a pattern at most, of which only what is used is touched. */
struct kept {
    i64 len; /* 0: nothing */
    u64 used;
    struct call call; /* with flags in `text` */
    char text[KEPT_BYTES];
    struct regex_auto re;
};

struct kept_patterns {
    u64 now;
    i32 last;
    struct kept kept[KEPT_COUNT];
};

static i64 read_option(struct sv s, i64 *at, i64 otherwise) {
    i64 value = 0, digits = 0;
    if (*at < s.len && s.ptr[*at] == ';') {
        ++*at;
    }
    bool minus = *at < s.len && s.ptr[*at] == '-';
    *at += minus;
    for (; *at < s.len && (u8)(s.ptr[*at] - '0') < 10; ++*at, digits++) {
        value = MIN_OF(value * 10 + (s.ptr[*at] - '0'), I32_MAX);
    }
    return digits ? (minus ? -value : value) : otherwise;
}

/* Splits options from the pattern; returns the pattern. */
static struct sv read_options(struct sv s, struct call *call) {
    *call = (struct call){.start = 1, .number = 1, .part = 0, .flags = {"", 0}};
    const char *close =
        s.len > 1 && s.ptr[0] == 1 ? memchr(s.ptr + 1, 1, (size_t)(s.len - 1)) : NULL;
    if (!close) {
        return s;
    }
    struct sv options = {s.ptr + 1, close - s.ptr - 1};
    i64 at = 0;
    while (at < options.len && options.ptr[at] != ';') {
        at++;
    }
    call->flags = (struct sv){options.ptr, at};
    call->start = read_option(options, &at, 1);
    call->number = read_option(options, &at, I64_MIN);
    call->numbered = call->number != I64_MIN;
    call->number = call->numbered ? call->number : 1;
    call->part = read_option(options, &at, 0);
    call->first_part = call->part == REGEX_FIRST_PART;
    call->end = read_option(options, &at, 0);
    return (struct sv){close + 1, s.ptr + s.len - close - 1};
}

/* The place of a pattern among those kept; `out_new`: it is to be compiled there. NULL when memory
 * is short. */
static struct kept *find_kept(struct sv s, bool *out_new) {
    static _Thread_local struct kept_patterns *all;
    all = all ? all : thread_memory(sizeof *all);
    *out_new = false;
    if (!all) {
        return NULL;
    }
    struct kept *oldest = &all->kept[0];
    for (i32 i = 0; i < KEPT_COUNT; i++) {
        struct kept *kept = &all->kept[(all->last + i) % KEPT_COUNT];
        if (kept->len == s.len && s.len > 0 && memcmp(kept->text, s.ptr, (size_t)s.len) == 0) {
            all->last = (all->last + i) % KEPT_COUNT;
            kept->used = ++all->now;
            return kept;
        }
        oldest = kept->used < oldest->used ? kept : oldest;
    }
    *out_new = true;
    oldest->len = 0;
    oldest->used = ++all->now;
    return oldest;
}

static u8 check_options(struct call *call) {
    call->part = call->first_part ? 0 : call->part;
    bool bad =
        call->start < 1 || call->number < 0 || call->part < 0 || call->end < 0 || call->end > 1;
    return bad ? FAULT_REGEX_START : FAULT_NONE;
}

static bool prepare(str pattern, struct call *call, u8 *f) {
    struct sv s = sv_of(pattern);
    bool fresh;
    struct kept *kept = find_kept(s, &fresh);
    if (kept && !fresh) {
        *call = kept->call;
        return true;
    }
    struct sv text = read_options(s, call);
    u8 fault = check_options(call); /* before the pattern is looked at */
    fault = fault  ? fault
            : kept ? regex_auto_compile(&kept->re, text, call->flags)
                   : FAULT_REGEX_MEMORY;
    if (fault) {
        *f = fault;
        return false;
    }
    call->re = &kept->re;
    if (s.len <= KEPT_BYTES) {
        memcpy(kept->text, s.ptr, (size_t)s.len);
        kept->len = s.len;
        kept->call = *call;
        kept->call.flags.ptr = call->flags.len ? kept->text + (call->flags.ptr - s.ptr) : "";
    }
    return true;
}

static i64 asked_part(const struct call *call) {
    return call->first_part && call->re->re.group_count > 0 ? 1 : call->part;
}

static bool is_global(const struct call *call) {
    return memchr(call->flags.ptr, 'g', (size_t)call->flags.len) != NULL;
}

static bool replaces_all(const struct call *call) {
    return call->numbered ? call->number == 0 : is_global(call);
}

u8 regex_ops_compile(struct regex_auto *out, str pattern, struct regex_call *out_call) {
    struct call call;
    struct sv text = read_options(sv_of(pattern), &call);
    u8 fault = check_options(&call);
    fault = fault ? fault : regex_auto_compile(out, text, call.flags);
    call.re = out;
    *out_call = (struct regex_call){.start = call.start,
                                    .number = call.number,
                                    .part = fault ? 0 : asked_part(&call),
                                    .end = call.end != 0,
                                    .all = replaces_all(&call),
                                    .global = is_global(&call)};
    return fault;
}

b8 fn_regex(str a, str b, u8 *f) {
    struct call call;
    return prepare(b, &call, f) && regex_auto_search(call.re, sv_of(a), 0, NULL, 0);
}

/* Where to go on after a match that was looked for from `from` on; past the end when the statement
 * is to end. */
static i64 after(struct sv s, const i64 *slots, i64 from) {
    i64 at = slots[1];
    if (slots[1] == slots[0]) { /* nothing was taken: one character further */
        at++;
        while (at < s.len && ((u8)s.ptr[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return stop_due((u64)from, (u64)at) ? s.len + 1 : at;
}

/* The byte the search starts at; past the end when it is beyond. */
static i64 start_byte(struct sv s, i64 start) {
    i64 at = 0;
    for (; start > 1 && at <= s.len; start--) {
        at++;
        while (at < s.len && ((u8)s.ptr[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

/* Match number call->number; false when there are not so many. */
static bool find_match(const struct call *call, struct sv s, i64 *slots) {
    i64 from = start_byte(s, call->start);
    i32 parts = (i32)MIN_OF(asked_part(call) + 1, REGEX_GROUPS_MAX);
    for (i64 i = 1; from <= s.len && regex_auto_search(call->re, s, from, slots, parts); i++) {
        if (i == call->number) {
            return true;
        }
        from = after(s, slots, from);
    }
    return false;
}

static bool options_bad(const struct call *call, u8 *f) {
    bool bad = call->number < 1;
    *f = bad ? FAULT_REGEX_START : *f;
    return bad;
}

i32 fn_regex_count(str a, str b, u8 *f) {
    struct call call;
    i64 slots[2 * REGEX_GROUPS_MAX];
    struct sv s = sv_of(a);
    i32 count = 0;
    if (!prepare(b, &call, f) || options_bad(&call, f)) {
        return 0;
    }
    for (i64 from = start_byte(s, call.start);
         from <= s.len && regex_auto_search(call.re, s, from, slots, 1);
         from = after(s, slots, from)) {
        count++;
    }
    return count;
}

/* Part of a match as bytes of the text; false when it took no part. */
static bool match_part(const struct call *call, const i64 *slots, i64 part, i64 *first, i64 *last) {
    if (part >= REGEX_GROUPS_MAX || part > call->re->re.group_count) {
        return false;
    }
    *first = slots[2 * part];
    *last = slots[2 * part + 1];
    return *first >= 0 && *last >= *first;
}

i32 fn_regex_instr(str a, str b, u8 *f) {
    struct call call;
    i64 slots[2 * REGEX_GROUPS_MAX], first, last;
    if (!prepare(b, &call, f) || options_bad(&call, f) || !find_match(&call, sv_of(a), slots) ||
        !match_part(&call, slots, asked_part(&call), &first, &last)) {
        return 0;
    }
    return fn_length(fn_part(a, 0, (u32)(call.end ? last : first))) + 1;
}

str fn_regex_substr(str a, str b, u8 *f) {
    struct call call;
    i64 slots[2 * REGEX_GROUPS_MAX], first, last;
    if (!prepare(b, &call, f) || options_bad(&call, f) || !find_match(&call, sv_of(a), slots)) {
        return fn_part(a, 0, 0);
    }
    bool whole = !match_part(&call, slots, asked_part(&call), &first, &last);
    return whole ? fn_part(a, 0, 0) : fn_part(a, (u32)first, (u32)last);
}

struct replacing {
    u8 *out;
    i64 n;
    i64 room; /* what lies beyond is only counted */
};

static void put(struct replacing *r, const char *from, i64 len) {
    if (len > 0 && r->n + len <= r->room) {
        memcpy(r->out + r->n, from, (size_t)len);
    }
    r->n += MAX_OF(len, 0);
}

static void put_replacement(struct replacing *r, const struct call *call, struct sv text,
                            struct sv s, const i64 *slots) {
    for (i64 i = 0; i < s.len; i += 2) { /* an escape has two bytes */
        const char *slash = memchr(s.ptr + i, '\\', (size_t)(s.len - i));
        i64 plain = slash && slash + 1 < s.ptr + s.len ? slash - s.ptr - i : s.len - i;
        put(r, s.ptr + i, plain);
        i += plain;
        if (i == s.len) {
            break;
        }
        char next = s.ptr[i + 1];
        i64 part = next == '&' ? 0 : (u8)(next - '1') < 9 ? next - '0' : -1;
        i64 first, last;
        if (part >= 0 && match_part(call, slots, part, &first, &last)) {
            put(r, text.ptr + first, last - first);
        } else if (part < 0) { /* no such escape: as written */
            put(r, next == '\\' ? "\\" : s.ptr + i, next == '\\' ? 1 : 2);
        }
    }
}

/* How many parts a replacement asks for, the match itself among them. */
static i32 parts_named(struct sv s) {
    i32 most = 0;
    for (i64 i = 0; i + 1 < s.len; i++) {
        if (s.ptr[i] == '\\') {
            i++;
            most = (u8)(s.ptr[i] - '1') < 9 ? MAX_OF(most, s.ptr[i] - '0') : most;
        }
    }
    return most + 1;
}

static void replace_all(struct replacing *r, const struct call *call, struct sv s, struct sv c) {
    i64 slots[2 * REGEX_GROUPS_MAX];
    bool all = replaces_all(call);
    i64 from = start_byte(s, call->start), copied = 0;
    i32 parts = parts_named(c);
    for (i64 i = 1; from <= s.len && regex_auto_search(call->re, s, from, slots, parts); i++) {
        if (all || i == call->number) {
            put(r, s.ptr + copied, slots[0] - copied);
            put_replacement(r, call, s, c, slots);
            copied = slots[1];
            if (!all) {
                break;
            }
        }
        from = after(s, slots, from);
    }
    put(r, s.ptr + copied, s.len - copied);
}

/* Written into a small room first: most results fit, and the room that is taken is theirs only. */
void mt_regex_replace(struct made *made, str a, str b, str c, u8 *f) {
    struct call call;
    u8 small[4096];
    struct replacing write = {small, 0, sizeof small};
    if (!prepare(b, &call, f)) {
        return;
    }
    replace_all(&write, &call, sv_of(a), sv_of(c));
    i64 len = write.n;
    u8 *out = made_room(made, len, f);
    if (out && len <= (i64)sizeof small) {
        memcpy(out, small, (size_t)len);
    } else if (out) {
        write = (struct replacing){out, 0, len};
        replace_all(&write, &call, sv_of(a), sv_of(c));
    }
}

/* What is between the matches; an empty match at an end of the text or of a part splits nothing. */
static void split_all(struct replacing *r, const struct call *call, struct sv s) {
    i64 slots[2 * REGEX_GROUPS_MAX];
    i64 copied = 0, last = 0;
    for (i64 from = 0; from <= s.len && regex_auto_search(call->re, s, from, slots, 1);
         from = after(s, slots, from)) {
        if (slots[0] < s.len && slots[1] > last) {
            put(r, s.ptr + copied, slots[0] - copied);
            put(r, "\xff", 1);
            copied = slots[1];
        }
        last = slots[1];
    }
    put(r, s.ptr + copied, s.len - copied);
}

void mt_regex_split(struct made *made, str a, str b, u8 *f) {
    struct call call;
    struct replacing count = {NULL, 0, 0};
    if (!prepare(b, &call, f)) {
        return;
    }
    if (is_global(&call)) {
        *f = FAULT_REGEX_OPTION;
        return;
    }
    split_all(&count, &call, sv_of(a));
    struct replacing write = {made_room(made, count.n, f), 0, count.n};
    if (write.out) {
        split_all(&write, &call, sv_of(a));
    }
}

/* SIMILAR TO as a regular expression: % is .*, _ is ., what is special elsewhere is not here. Three
 * parts around two escaped quotes are those of SUBSTRING … SIMILAR: the middle one is captured. */
void mt_similar_regex(struct made *made, str a, str b, u8 *f) {
    const u8 *p = (const u8 *)(size_t)a.addr, *e = (const u8 *)(size_t)b.addr;
    u8 *out = made_room(made, 4 * (i64)a.len + 32, f);
    i64 n = 0;
    i32 quotes = 0;
    bool bracket = false;
    if (!out) {
        return;
    }
    made->len = 0;
    if (fn_length(b) > 1) {
        *f = FAULT_ESCAPE;
        return;
    }
#define PUT(text) (memcpy(out + n, text, sizeof(text) - 1), n += (i64)sizeof(text) - 1)
    PUT("^(?:");
    for (u32 i = 0; i < a.len; i++) {
        bool escape = b.len > 0 && i + b.len <= a.len && memcmp(p + i, e, b.len) == 0;
        u8 c = p[i];
        if (escape && i + b.len >= a.len) { /* one at the end stands for nothing */
            break;
        }
        if (escape) {
            i += b.len;
            c = p[i];
            if (c == '"' && !bracket) {
                if (quotes == 2) { /* and the room that was asked for is for two */
                    *f = FAULT_SEPARATORS;
                    return;
                }
                if (quotes == 0) {
                    memcpy(out, "^(?:", 4);
                    PUT("){1,1}?(");
                } else {
                    PUT("){1,1}(?:");
                }
                quotes++;
                continue;
            }
            out[n++] = '\\';
            out[n++] = c;
        } else if (bracket) {
            if (c == '\\') {
                out[n++] = '\\';
            }
            bracket = c != ']';
            out[n++] = c;
        } else if (c == '[') {
            bracket = true;
            out[n++] = c;
        } else if (c == '%') {
            PUT(".*");
        } else if (c == '_') {
            out[n++] = '.';
        } else {
            if (c == '\\' || c == '.' || c == '^' || c == '$') {
                out[n++] = '\\';
            }
            if (c == '(') {
                PUT("(?:");
            } else {
                out[n++] = c;
            }
        }
    }
    PUT(")$");
#undef PUT
    made->len = n;
}

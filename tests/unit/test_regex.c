/* test_regex.c: the automaton of regular expressions against the machine that takes every step
 * anew.
 *
 * Random patterns of few letters, so that matches and near misses abound, over random texts:
 * whether there is a match, where it is, where its parts are, from every start.
 * WARPFOX_REGEX_ROUNDS raises the number of patterns. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "defs/fault.h"
#include "defs/host_words.h"
#include "host/bodies.h"
#include "host/regex_auto.h"
#include "host/regex_table.h"

#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_regex.h"

enum { SLOTS = 2 * REGEX_GROUPS_MAX, TEXTS = 12, BYTES = 4096 };

static u64 seed = 20261115;

static u32 below(u32 n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (u32)(hash_u64(seed) % n);
}

struct out {
    char bytes[BYTES];
    i64 len;
};

static void put(struct out *out, const char *text) {
    i64 len = (i64)strlen(text);
    if (out->len + len < BYTES) {
        memcpy(out->bytes + out->len, text, (size_t)len);
        out->len += len;
    }
}

#define PICK(list) list[below((u32)COUNT_OF(list))]

static void put_pattern(struct out *out, i32 depth) {
    static const char *const atoms[] = {
        "a",     "b",    "c",    "a",      "b",   "ab",  "abc", "é",       "ж",   "1",
        ".",     "[ab]", "[^a]", "[a-c1]", "\\d", "\\w", "\\s", "[^b\\n]", "\\W", "[[:upper:]]",
        "[é-ж]", "^",    "$",    "\\m",    "\\M", "\\y", "\\Y", "\\A",     "\\Z", "\\n",
    };
    static const char *const counts[] = {"*",      "+",     "?",     "*?",    "+?",
                                         "??",     "{2}",   "{1,2}", "{2,}",  "{0,3}",
                                         "{1,2}?", "{3,}?", "{0}",   "{1,1}?"};
    u32 branches = below(4) == 0 ? 2 + below(2) : 1;
    for (u32 i = 0; i < branches; i++) {
        put(out, i > 0 ? "|" : "");
        for (u32 n = below(4) + (i == 0); n > 0; n--) {
            bool place = false;
            if (depth > 0 && below(4) == 0) {
                put(out, below(3) == 0 ? "(?:" : "(");
                put_pattern(out, depth - 1);
                put(out, ")");
            } else {
                const char *atom = PICK(atoms);
                place = strchr("^$", atom[0]) || (atom[0] == '\\' && strchr("mMyYAZ", atom[1]));
                put(out, atom);
            }
            if (!place && below(3) == 0) {
                put(out, PICK(counts));
            }
        }
    }
}

static void put_text(struct out *out) {
    static const char *const letters[] = {"a", "b", "c", "a",  "b", "abc", "A", "B",
                                          "1", " ", "_", "\n", "é", "É",   "ж", "語"};
    for (u32 n = below(below(8) == 0 ? 300 : 16); n > 0; n--) {
        put(out, PICK(letters));
    }
}

static void compare(struct regex_auto *m, const struct out *pattern, const struct out *text,
                    i64 from) {
    i64 want[SLOTS], got[SLOTS];
    struct sv s = {text->bytes, text->len};
    bool found = regex_search(&m->re, s, from, want);
    for (i32 parts = 0; parts <= REGEX_GROUPS_MAX; parts += parts < 3 ? 1 : 7) {
        bool same = regex_auto_search(m, s, from, got, parts) == found;
        for (i32 i = 0; i < 2 * parts && found && same; i++) {
            same = got[i] == want[i];
        }
        if (!same) {
            fail_msg("pattern '%.*s' text '%.*s' from %d parts %d", (int)pattern->len,
                     pattern->bytes, (int)text->len, text->bytes, (int)from, parts);
        }
    }
}

static void random_patterns(void **state) {
    (void)state;
    static const char *const flags[] = {"", "", "i", "n", "w", "p", "in"};
    const char *asked = getenv("WARPFOX_REGEX_ROUNDS");
    i64 rounds = asked ? atoll(asked) : 3000;
    struct regex_auto *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (i64 round = 0; round < rounds; round++) {
        struct out pattern = {.len = 0};
        put_pattern(&pattern, 3);
        u8 fault =
            regex_auto_compile(m, (struct sv){pattern.bytes, pattern.len}, sv_from(PICK(flags)));
        if (fault) {
            assert_true(fault == FAULT_REGEX || fault == FAULT_REGEX_SIZE);
            continue;
        }
        for (i32 i = 0; i < TEXTS; i++) {
            struct out text = {.len = 0};
            put_text(&text);
            compare(m, &pattern, &text, 0);
            i64 from = below((u32)text.len + 1);
            while (from < text.len && ((u8)text.bytes[from] & 0xc0) == 0x80) {
                from++;
            }
            compare(m, &pattern, &text, from);
        }
    }
    free(m);
}

/* The pattern as opcodes have it: flags between two bytes 1. */
static str with_flags(struct out *out, const struct out *pattern, const char *flags) {
    out->len = 0;
    put(out, "\1");
    put(out, flags);
    put(out, "\1");
    memcpy(out->bytes + out->len, pattern->bytes, (size_t)pattern->len);
    out->len += pattern->len;
    return str_from((struct sv){out->bytes, out->len});
}

/* Characters from all of Unicode, many of them letters. */
static void put_any(struct out *out) {
    static const u32 ends[] = {0x80, 0x250, 0x800, 0x3000, 0xd7ff, 0x20000, 0x110000};
    for (u32 i = below(12); i > 0; i--) {
        u32 c = 1 + below(PICK(ends) - 1);
        char one[5] = {0};
        if (c >= 0xd800 && c < 0xe000) {
            continue;
        }
        if (c < 0x80) {
            one[0] = (char)c;
        } else if (c < 0x800) {
            one[0] = (char)(0xc0 | c >> 6);
            one[1] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            one[0] = (char)(0xe0 | c >> 12);
            one[1] = (char)(0x80 | (c >> 6 & 0x3f));
            one[2] = (char)(0x80 | (c & 0x3f));
        } else {
            one[0] = (char)(0xf0 | c >> 18);
            one[1] = (char)(0x80 | (c >> 12 & 0x3f));
            one[2] = (char)(0x80 | (c >> 6 & 0x3f));
            one[3] = (char)(0x80 | (c & 0x3f));
        }
        put(out, one);
    }
}

/* The automaton that was finished before says what the one says that grows. */
static void finished(void **state) {
    (void)state;
    static const char *const flags[] = {"", "", "i", "n", "w", "p", "in"};
    static const char *const classes[] = {"\\w",
                                          "\\W+$",
                                          "[[:upper:]]",
                                          "^[[:lower:]]+",
                                          "[[:punct:]]",
                                          "[^[:alpha:]]$",
                                          "[[:cntrl:]]",
                                          "[[:graph:]]{3}",
                                          "[[:print:]]$",
                                          "\\s\\S",
                                          "\\y.\\y",
                                          "[à-ÿ]|[а-я]",
                                          "[^ -~]",
                                          "^.?$",
                                          "\\m\\w\\M",
                                          "[\\u4e00-\\u9fff]",
                                          "[\\U00010000-\\U0010ffff]"};
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    i32 tables = 0;
    for (i32 round = 0; round < 1500; round++) {
        struct out pattern = {.len = 0};
        struct out whole;
        if (round % 3) {
            put_pattern(&pattern, 3);
        } else {
            put(&pattern, PICK(classes));
        }
        str b = with_flags(&whole, &pattern, PICK(flags));
        struct sv table = regex_table_make(&arena, b, REGEX_ASK_TEST);
        tables += table.len > 0;
        for (i32 i = 0; table.len && i < TEXTS; i++) {
            struct out text = {.len = 0};
            u8 faults[2] = {0};
            if (i % 2) {
                put_any(&text);
            } else {
                put_text(&text);
            }
            str a = str_from((struct sv){text.bytes, text.len});
            b8 grown = fn_regex(a, b, &faults[0]);
            b8 ahead = fn_regex_ahead(a, str_from(table), &faults[1]);
            if (grown != ahead || faults[0] != faults[1]) {
                print_error("%.*s in \"%.*s\"\n", (int)pattern.len, pattern.bytes, (int)text.len,
                            text.bytes);
            }
            assert_int_equal(ahead, grown);
            assert_int_equal(faults[1], faults[0]);
        }
        arena_reset(&arena);
    }
    assert_true(tables > 1400); /* few are too large */
    struct out pattern = {.len = 0};
    put(&pattern, "a[ab]{11}c"); /* which of the last eleven were an a */
    assert_int_equal(
        regex_table_make(&arena, str_from((struct sv){pattern.bytes, pattern.len}), REGEX_ASK_TEST)
            .len,
        0);
    arena_fini(&arena);
}

static u8 *room_of(void *from, i64 bytes) {
    return bytes <= 1 << 20 ? from : NULL;
}

static void expect_text(const char *what, str pattern, str text, const u8 *got, i64 got_len,
                        const u8 *want, i64 want_len) {
    if (got_len != want_len || memcmp(got, want, (size_t)want_len) != 0) {
        fail_msg("%s: '%.*s' of '%.*s': '%.*s' instead of '%.*s'", what, (int)pattern.len,
                 (const char *)(size_t)pattern.addr, (int)text.len, (const char *)(size_t)text.addr,
                 (int)got_len, (const char *)got, (int)want_len, (const char *)want);
    }
}

/* What opcodes do with a finished automaton is what they do with one that grows. */
static void compare_ahead(str b, str a, str with, const struct sv tables[]) {
    static u8 wants[1 << 20], gots[1 << 20];
    u8 want_fault[5] = {0}, got_fault[5] = {0};
    if (tables[REGEX_ASK_COUNT].len) {
        i32 want = fn_regex_count(a, b, &want_fault[0]);
        assert_int_equal(fn_regex_count_ahead(a, str_from(tables[REGEX_ASK_COUNT]), &got_fault[0]),
                         want);
    }
    if (tables[REGEX_ASK_PART].len) {
        str table = str_from(tables[REGEX_ASK_PART]);
        i32 where = fn_regex_instr(a, b, &want_fault[1]);
        assert_int_equal(fn_regex_instr_ahead(a, table, &got_fault[1]), where);
        str want = fn_regex_substr(a, b, &want_fault[2]);
        str got = fn_regex_substr_ahead(a, table, &got_fault[2]);
        expect_text("substr", b, a, (const u8 *)(size_t)got.addr, got.len,
                    (const u8 *)(size_t)want.addr, want.len);
    }
    struct made made = {.room = room_of, .from = wants};
    if (tables[REGEX_ASK_ALL].len) {
        str table = str_from(tables[REGEX_ASK_ALL]);
        mt_regex_replace(&made, a, b, with, &want_fault[3]);
        i64 len = fn_regex_replace_ahead(NULL, a, table, with, &got_fault[3]);
        assert_int_equal(fn_regex_replace_ahead(gots, a, table, with, &got_fault[3]), len);
        expect_text("replace", b, a, gots, len, wants, want_fault[3] ? 0 : made.len);
    }
    if (tables[REGEX_ASK_SPLIT].len) {
        str table = str_from(tables[REGEX_ASK_SPLIT]);
        mt_regex_split(&made, a, b, &want_fault[4]);
        i64 len = fn_regex_split_ahead(NULL, a, table, &got_fault[4]);
        assert_int_equal(fn_regex_split_ahead(gots, a, table, &got_fault[4]), len);
        expect_text("split", b, a, gots, len, wants, want_fault[4] ? 0 : made.len);
    }
    assert_memory_equal(got_fault, want_fault, sizeof want_fault);
}

static void finished_spans(void **state) {
    (void)state;
    static const char *const flags[] = {
        "",        "",   "i",     "n",      "w",         "g",
        "ig",      ";2", ";3;2",  ";1;0",   "n;1;2;1;1", ";1;1;-2147483647",
        "g;2;1;2", ";0", ";1;-1", ";1;1;9", ";1;1;1;2",  "k"};
    static const char *const withs[] = {"", "x", "<\\1\\2>", "\\&\\&", "\\9\\\\\\0\\", "é\\3"};
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    i32 made[REGEX_ASK_ALL + 1] = {0};
    for (i32 round = 0; round < 1500; round++) {
        struct out pattern = {.len = 0};
        struct out whole;
        struct sv tables[REGEX_ASK_ALL + 1];
        put_pattern(&pattern, 3);
        str b = with_flags(&whole, &pattern, PICK(flags));
        for (i32 ask = 0; ask <= REGEX_ASK_ALL; ask++) {
            tables[ask] = regex_table_make(&arena, b, (enum regex_ask)ask);
            made[ask] += tables[ask].len > 0;
        }
        for (i32 i = 0; i < TEXTS; i++) {
            struct out text = {.len = 0};
            if (i % 3) {
                put_text(&text);
            } else {
                put_any(&text);
            }
            compare_ahead(b, str_from((struct sv){text.bytes, text.len}),
                          str_from(sv_from(PICK(withs))), tables);
        }
        arena_reset(&arena);
    }
    for (i32 ask = 0; ask <= REGEX_ASK_ALL; ask++) {
        assert_true(made[ask] > 1300); /* few are too large */
    }
    arena_fini(&arena);
}

/* More states than there is room for, more classes than the first width of the table, literals that
 * are looked for beforehand. */
static void large_patterns(void **state) {
    (void)state;
    static const char *const patterns[] = {
        "(a|b)[ab]{11}c",
        "(a|ab|c)*[ab]{9}(c|é)",
        "(?:[ab]{1,30}c){1,4}(x?)",
        "a?b?c?1?_?é?É?ж?語?A?B?d?e?f?g?h?i?j?k?(.)",
        "(abc)+",
        "abc",
        "[ab]+abc1?",
        "abc.*(abc)",
        "\\mabc\\M",
        "(((((((((a)b)c)|.)|1)|_)|é)|A)|B)+",
    };
    struct regex_auto *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (i64 i = 0; i < COUNT_OF(patterns); i++) {
        struct out pattern = {.len = 0};
        put(&pattern, patterns[i]);
        struct sv s = {pattern.bytes, pattern.len};
        assert_int_equal(regex_auto_compile(m, s, (struct sv){"", 0}), 0);
        for (i32 k = 0; k < 150; k++) {
            struct out text = {.len = 0};
            put_text(&text);
            compare(m, &pattern, &text, 0);
        }
    }
    free(m);
}

/* Hard patterns over long texts stay linear: seconds, not hours. */
static void long_texts(void **state) {
    (void)state;
    enum { LONG = 1 << 20 };
    char *bytes = malloc(LONG);
    struct regex_auto *m = calloc(1, sizeof *m);
    assert_true(bytes && m);
    memset(bytes, 'a', LONG);
    static const char *const patterns[] = {"(a*)*b", "(a|aa)+$", "(a?){20}a{20}b", "a*b|c"};
    bytes[LONG - 1] = 'c';
    for (i64 i = 0; i < COUNT_OF(patterns); i++) {
        i64 slots[SLOTS];
        assert_int_equal(regex_auto_compile(m, sv_from(patterns[i]), (struct sv){"", 0}), 0);
        bool found = regex_auto_search(m, (struct sv){bytes, LONG}, 0, slots, 2);
        assert_int_equal(found, i == 3);
        if (found) {
            assert_int_equal(slots[0], LONG - 1);
            assert_int_equal(slots[1], LONG);
        }
    }
    free(m);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_patterns), cmocka_unit_test(finished),
        cmocka_unit_test(finished_spans),  cmocka_unit_test(large_patterns),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

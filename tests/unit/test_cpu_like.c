/* test_cpu_like.c: LIKE over vectors against the walk of fn_like, at every processor level this
 * machine has, and that walk against the definition.
 *
 * Texts and patterns of few letters, so that near misses abound; lengths around the block sizes;
 * texts that end where their memory ends, so that a read beyond them is seen by the sanitizer. */
#include "test_cpu_fixture.h"

#include "cpu/vec.h"

#include "defs/host_words.h"

#include "defs/fn_str.h"
#include "defs/fn_like.h"

enum { TEXTS = 200, ROUNDS = 400 };

static u64 next(u64 *seed) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return hash_u64(*seed);
}

static char *make_text(u64 *seed, i64 len, const char *letters, u64 count) {
    char *bytes = malloc((size_t)MAX_OF(len, 1));
    for (i64 i = 0; i < len; i++) {
        bytes[i] = letters[next(seed) % count];
    }
    return bytes;
}

/* By the definition: % is nothing, or a character and % again; the bytes here are characters. */
static b8 is_like(const char *t, i64 t_len, const char *p, i64 p_len) {
    if (!p_len) {
        return !t_len;
    }
    if (*p == '%') {
        return is_like(t, t_len, p + 1, p_len - 1) || (t_len && is_like(t + 1, t_len - 1, p, p_len));
    }
    return t_len && (*p == '_' || *p == *t) && is_like(t + 1, t_len - 1, p + 1, p_len - 1);
}

/* Texts at every place within a word, whose memory ends with them; patterns with runs of literal
 * characters shorter and longer than what is looked for at once. */
static void test_walk(void **state) {
    UNUSED(state);
    u64 seed = 5;
    for (i64 round = 0; round < 20000; round++) {
        i64 skip = (i64)(next(&seed) % 8);
        i64 len = (i64)(next(&seed) % 30);
        i64 pattern_len = (i64)(next(&seed) % 11);
        const char *letters = round % 3 ? "aab" : "abcd";
        char *bytes = make_text(&seed, skip + len, letters, 3);
        char *pattern = make_text(&seed, pattern_len, round % 2 ? "ab%aab%_" : "abaabaa%", 8);
        b8 got = fn_like(str_from((struct sv){bytes + skip, len}),
                         str_from((struct sv){pattern, pattern_len}), LIKE_CHARS);
        b8 expected = is_like(bytes + skip, len, pattern, pattern_len);
        if (got != expected) {
            fail_msg("'%.*s' like '%.*s' is %d", (int)len, bytes + skip, (int)pattern_len, pattern, got);
        }
        assert_int_equal(expected, fn_like(str_from((struct sv){bytes + skip, len}),
                                           str_from((struct sv){pattern, pattern_len}), LIKE_BYTES));
        free(pattern);
        free(bytes);
    }
}

/* Where lead `which` begins in a text first, or last; -1 = nowhere. */
static i64 lead_at(const struct leads *leads, u32 which, const char *t, i64 len, bool last) {
    i64 found = -1;
    for (i64 at = 0; at < len && (last || found < 0); at++) {
        u32 word = 0;
        for (i64 k = 0; k < 4 && at + k < len; k++) {
            word |= (u32)(u8)t[at + k] << 8 * k;
        }
        found = (word | leads->fold) * leads->up[which] == leads->bytes[which] ? at : found;
    }
    return found;
}

/* Every text that matches has the leads of its pattern, the second behind the first. */
static void test_leads(void **state) {
    UNUSED(state);
    u64 seed = 11;
    i32 matches = 0;
    i32 pairs = 0;
    for (i64 round = 0; round < 60000; round++) {
        i64 len = (i64)(next(&seed) % 20);
        i64 pattern_len = (i64)(next(&seed) % 10);
        i32 mode = (i32)(next(&seed) % 2);
        char *bytes = make_text(&seed, len, "aaaabkA_", 8);
        char *pattern = make_text(&seed, pattern_len, "%aa%ab%\\_K", 10);
        struct leads leads;
        fn_like_leads(&leads, str_from((struct sv){pattern, pattern_len}), mode);
        b8 like = fn_like(str_from((struct sv){bytes, len}),
                          str_from((struct sv){pattern, pattern_len}), mode);
        if (like == 1 && leads.count > 0) {
            i64 first = lead_at(&leads, 0, bytes, len, false);
            i64 second = leads.count > 1 ? lead_at(&leads, 1, bytes, len, true) : I64_MAX;
            matches++;
            pairs += leads.count > 1;
            if (first < 0 || second <= first) {
                fail_msg("'%.*s' like '%.*s': leads at %d, %d", (int)len, bytes, (int)pattern_len,
                         pattern, (int)first, (int)second);
            }
        }
        free(pattern);
        free(bytes);
    }
    assert_true(matches > 1000 && pairs > 100);
    struct leads leads;
    fn_like_leads(&leads, str_from((struct sv){"%special%requests%", 18}), LIKE_CHARS);
    assert_int_equal(leads.count, 2);
    assert_memory_equal(leads.bytes, "specrequ", 8);
    fn_like_leads(&leads, str_from((struct sv){"forest%", 7}), LIKE_CHARS);
    assert_int_equal(leads.count, 0);
    fn_like_leads(&leads, str_from((struct sv){"%_%", 3}), LIKE_CHARS);
    assert_int_equal(leads.count, 0);
}

static void check_level(const struct vec_table *vec) {
    static str text[TEXTS];
    static b8 got[TEXTS];
    static u32 sel[TEXTS];
    char *bytes[TEXTS];
    u64 seed = 77;
    for (i64 i = 0; i < TEXTS; i++) {
        i64 len = (i64)(next(&seed) % (i % 4 == 0 ? 200 : 30));
        bytes[i] = make_text(&seed, len, "aab", 3);
        text[i] = str_from((struct sv){bytes[i], len});
    }
    for (i64 round = 0; round < ROUNDS; round++) {
        i64 len = (i64)(next(&seed) % 12);
        const char *letters = round % 5 == 0 ? "ab%_\\" : "aab%%";
        char *p = make_text(&seed, len, letters, 5);
        str pattern = str_from((struct sv){p, len});
        vec->like(got, text, &pattern, NULL, TEXTS, NULL);
        for (i64 i = 0; i < TEXTS; i++) {
            assert_int_equal(got[i], fn_like(text[i], pattern, 0));
        }
        memset(got, 9, sizeof got);
        i64 m = 0;
        for (u32 i = 0; i < TEXTS; i += 1 + (u32)(round % 7)) {
            sel[m++] = i;
        }
        vec->like_sel(got, text, &pattern, NULL, sel, m, NULL);
        for (i64 j = 0; j < m; j++) {
            assert_int_equal(got[sel[j]], fn_like(text[sel[j]], pattern, 0));
        }
        free(p);
    }
    for (i64 i = 0; i < TEXTS; i++) {
        free(bytes[i]);
    }
}

static void test_levels(void **state) {
    UNUSED(state);
    check_level(&vec_table_baseline);
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2) {
        check_level(&vec_table_avx2);
    }
    if (cpu_level() >= CPU_AVX512) {
        check_level(&vec_table_avx512);
    }
#endif
}

static void test_many_pieces(void **state) {
    UNUSED(state);
    str pattern = str_from(SV("%a%b%a%b%a%b%a%b%a%b%a%b%a%b%a%b%a%b%a%"));
    str text[2] = {str_from(SV("abababababababababa")), str_from(SV("abababababababab"))};
    b8 got[2];
    vec_table_baseline.like(got, text, &pattern, NULL, 2, NULL);
    assert_int_equal(got[0], 1);
    assert_int_equal(got[1], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walk), cmocka_unit_test(test_leads),
                                       cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_many_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

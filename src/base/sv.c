/* sv.c: string views. */
#include "base/base.h"

struct sv sv_from(const char *c_string) {
    return (struct sv){c_string, (i64)strlen(c_string)};
}

bool sv_eq(struct sv a, struct sv b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

static char fold(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool sv_eq_nocase(struct sv a, struct sv b) {
    if (a.len != b.len) {
        return false;
    }
    for (i64 i = 0; i < a.len; i++) {
        if (fold(a.ptr[i]) != fold(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

bool sv_in_words(struct sv word, const char *words) {
    while (*words) {
        const char *end = strchr(words, ' ');
        i64 len = end ? end - words : (i64)strlen(words);
        if (sv_eq_nocase(word, (struct sv){words, len})) {
            return true;
        }
        words += len + (end != NULL);
    }
    return false;
}

int sv_cmp(struct sv a, struct sv b) {
    i64 common = MIN_OF(a.len, b.len);
    int order = common ? memcmp(a.ptr, b.ptr, (size_t)common) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

u64 sv_hash(struct sv s) {
    u64 h = 0x9e3779b97f4a7c15ULL ^ (u64)s.len;
    i64 i = 0;
    for (; i + 8 <= s.len; i += 8) {
        u64 word;
        memcpy(&word, s.ptr + i, 8);
        h = hash_u64(h ^ word);
    }
    u64 last = 0;
    if (i < s.len) {
        memcpy(&last, s.ptr + i, (size_t)(s.len - i));
    }
    return hash_u64(h ^ last);
}

/* base.h: words, assertions and small helpers that every host file may use. */
#ifndef WF_BASE_BASE_H
#define WF_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/word.h"

#define COUNT_OF(array) ((i64)(sizeof(array) / sizeof((array)[0])))
#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define ALIGN_UP(n, to) (((n) + (to)-1) / (to) * (to))
#define UNUSED(x) ((void)(x))

/* CHECK holds in all builds; use it where memory or files could be damaged. ASSERT holds in test
 * builds (WF_HARD) only. Both are for programming errors, never for bad input. */
void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))
#ifdef WF_HARD
#define ASSERT(cond) CHECK(cond)
#else
#define ASSERT(cond) ((void)sizeof(cond))
#endif

/* A borrowed run of bytes; not NUL-terminated. */
struct sv {
    const char *ptr;
    i64 len;
};

#define SV(literal) ((struct sv){(literal), (i64)sizeof(literal) - 1})
struct sv sv_from(const char *c_string);
bool sv_eq(struct sv a, struct sv b);
bool sv_eq_nocase(struct sv a, struct sv b);
bool sv_in_words(struct sv word, const char *words); /* separated by blanks; ignoring case */
int sv_cmp(struct sv a, struct sv b);
u64 sv_hash(struct sv s);

/* A time as people read it: "1.234 ms", "41.351 s", "2 min 03.4 s", "1 h 02 min". */
struct duration {
    char text[48];
};
struct duration duration_of(i64 ns);

static inline str str_from(struct sv s) {
    str out = {(u32)s.len, 0, (u64)(size_t)s.ptr};
    if (s.len >= 4) {
        const u8 *p = (const u8 *)s.ptr;
        out.prefix = (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
        return out;
    }
    for (int i = 0; i < 4; i++) {
        out.prefix = out.prefix << 8 | (i < s.len ? (u8)s.ptr[i] : 0u);
    }
    return out;
}

static inline struct sv sv_of(str s) {
    return (struct sv){(const char *)(size_t)s.addr, (i64)s.len};
}

static inline u64 hash_u64(u64 x) { /* a full-avalanche finaliser */
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}

/* The last of `count` ascending numbers that is not above `at`; 0 when all are. */
static inline i64 starts_find(const i64 *starts, i64 count, i64 at) {
    i64 low = 0;
    i64 high = count - 1;
    while (low < high) {
        i64 middle = low + (high - low + 1) / 2;
        if (starts[middle] <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

#endif

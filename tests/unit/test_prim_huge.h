/* test_prim_huge.h: words for tests of the primitives at sizes no plain loop of the host can
 * follow.
 *
 * Keys are made where the operation runs, by maps of the element's number; results are judged
 * there, too, in chunks, by maps and reductions (which other tests compare with plain loops up to
 * 10^9): neighbours in order, every key fetched again through the row number that travelled with
 * it, fingerprints of what goes in and comes out (sum and xor of mixed words), expected arrays made
 * by formulas. Up to HOST_MAX elements the host repeats every judgement with loops of its own, and
 * test_checks_fail damages results to see that they are noticed.
 *
 * A case is a function over `struct huge`; what goes wrong in it ends it, and is told in its line.
 * PRIM_TEST_MAX is the number of rows of a case of scale 100, PRIM_TEST_ONLY or --only a part of
 * the names of cases that run, PRIM_TEST_BRIEF one of each kind on the GPU, PRIM_TEST_MEMORY the
 * bytes that a case may use on the device: where a case needs more it has fewer rows, and says so.
 */
#ifndef WF_TEST_PRIM_HUGE_H
#define WF_TEST_PRIM_HUGE_H

#include "test_prim_fixture.h"

#include <inttypes.h>
#include <time.h>

enum { HELD_MAX = 256 };
#define HOST_MAX 10000000LL
#define CHUNK (1LL << 27) /* of a judgement; a multiple of 16 */

struct huge {
    int64_t n;
    int64_t ns; /* out: of the operation that is tested */
    const void *spec;
};

struct huge_case {
    const char *name;
    void (*run)(struct huge *h);
    const void *spec;
    int scale;     /* percent of PRIM_TEST_MAX */
    int row_bytes; /* of the device's memory, about */
};

static wf_place at;
static void *held[HELD_MAX];
static int held_count;
static jmp_buf *case_end;
static char case_said[400];
static int cases_failed, cases_run;
static const char *only = "";

/* --- a case's end, memory --- */

static UNUSED_FN _Noreturn void give_up(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(case_said, sizeof case_said, format, args);
    va_end(args);
    longjmp(*case_end, 1);
}

#define OK(call)                                                          \
    do {                                                                  \
        if ((call) != WF_OK) {                                            \
            give_up("%.60s: %s %s", #call, wf_prim_error(prim)->sqlstate, \
                    wf_prim_error(prim)->message);                        \
        }                                                                 \
    } while (0)
#define NEED(truth, ...)          \
    do {                          \
        if (!(truth)) {           \
            give_up(__VA_ARGS__); \
        }                         \
    } while (0)

static UNUSED_FN void release_to(int mark) {
    while (held_count > mark) {
        wf_prim_free(prim, held[--held_count]);
    }
}

static UNUSED_FN int64_t width_of(wf_elem type) {
    static const int64_t widths[] = {4, 4, 4, 8, 8, 8, 16, 16, 1};
    return widths[type];
}

/* Memory of the device, until the case ends or release_to. */
static UNUSED_FN wf_array vec(wf_elem type, int64_t n) {
    void *data = NULL;
    NEED(held_count < HELD_MAX, "too many arrays");
    OK(wf_prim_alloc(prim, at, n * width_of(type) + 16, &data));
    held[held_count++] = data;
    return prim_array(type, data, n);
}

/* Elements first .. first + n of it; first is a multiple of 16 bytes. */
static UNUSED_FN wf_array part(wf_array a, int64_t first, int64_t n) {
    a.data = (char *)a.data + first * width_of(a.type);
    a.count = n;
    return a;
}

static UNUSED_FN wf_array as(wf_elem type, wf_array a) {
    a.count = a.count * width_of(a.type) / width_of(type);
    a.type = type;
    return a;
}

static UNUSED_FN void *fetch(wf_array a) { /* to be freed */
    size_t bytes = (size_t)(a.count * width_of(a.type));
    void *host = malloc(bytes + 16);
    NEED(host, "no memory of the host");
    OK(wf_prim_copy(prim, host, a.data, (int64_t)bytes));
    return host;
}

static UNUSED_FN void poke(wf_array a, int64_t i, const void *value) {
    int64_t width = width_of(a.type);
    OK(wf_prim_copy(prim, (char *)a.data + i * width, value, width));
}

static UNUSED_FN void peek(wf_array a, int64_t i, void *value) {
    int64_t width = width_of(a.type);
    OK(wf_prim_copy(prim, value, (const char *)a.data + i * width, width));
}

/* --- maps --- */

static UNUSED_FN void map1(const char *op, wf_array out, wf_array a) {
    OK(wf_prim_map(prim, at, op, out, &a, 1, NULL));
}
static UNUSED_FN void map2(const char *op, wf_array out, wf_array a, wf_array b) {
    wf_array in[] = {a, b};
    OK(wf_prim_map(prim, at, op, out, in, 2, NULL));
}
static UNUSED_FN void map3(const char *op, wf_array out, wf_array a, wf_array b, wf_array c) {
    wf_array in[] = {a, b, c};
    OK(wf_prim_map(prim, at, op, out, in, 3, NULL));
}
/* With a number as the second operand; 32-bit opcodes take its low half. */
static UNUSED_FN void mapk(const char *op, wf_array out, wf_array a, uint64_t k) {
    uint32_t low = (uint32_t)k;
    bool narrow = width_of(a.type) == 4;
    map2(op, out, a, narrow ? prim_array(WF_ELEM_U32, &low, 1) : prim_array(WF_ELEM_U64, &k, 1));
}
static UNUSED_FN void mapf(const char *op, wf_array out, wf_array a, double k) {
    map2(op, out, a, prim_array(WF_ELEM_F64, &k, 1));
}
static UNUSED_FN void iota(wf_array out, int64_t first, int64_t step) {
    OK(wf_prim_sequence(prim, at, out, first, step, NULL));
}

static UNUSED_FN uint64_t mix_word(uint64_t x) {
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
    x = (x ^ x >> 29) * 0x9e3779b97f4a7c15ULL;
    return x ^ x >> 32;
}
/* In place; `t` is as long. Different numbers stay different. */
static UNUSED_FN void mix(wf_array v, wf_array t) {
    t.count = v.count;
    mapk("SHR_I64", t, v, 32);
    map2("BITXOR_I64", v, v, t);
    mapk("MUL_I64", v, v, 0xd6e8feb86659fd93ULL);
    mapk("SHR_I64", t, v, 29);
    map2("BITXOR_I64", v, v, t);
    mapk("MUL_I64", v, v, 0x9e3779b97f4a7c15ULL);
    mapk("SHR_I64", t, v, 32);
    map2("BITXOR_I64", v, v, t);
}

/* The same for numbers of 32 bits, in words of 64; the multiplication and the shifts are those of
 * the hash that splits by 4-byte keys. */
static UNUSED_FN void mix32(wf_array v, wf_array t) {
    static const uint64_t by[] = {0x85ebca6bU, 0xc2b2ae35U};
    static const uint64_t shifts[] = {16, 13, 16};
    t.count = v.count;
    for (int i = 0; i < 3; i++) {
        mapk("SHR_I64", t, v, shifts[i]);
        map2("BITXOR_I64", v, v, t);
        if (i < 2) {
            mapk("MUL_I64", v, v, by[i]);
            map1("LOW_I64", v, v);
        }
    }
}

/* An array's elements, as words of 64 bits; not U128. */
static UNUSED_FN void widen(wf_array out, wf_array in) {
    if (width_of(in.type) == 8) {
        OK(wf_prim_copy(prim, out.data, in.data, in.count * 8));
    } else {
        map1("I64_I32", out, as(WF_ELEM_U32, in));
        map1("LOW_I64", out, out);
    }
}
static UNUSED_FN void narrow(wf_array out, wf_array in) { /* words of 64 to integers */
    if (width_of(out.type) == 8) {
        OK(wf_prim_copy(prim, out.data, in.data, in.count * 8));
    } else {
        map1("I32_I64", out, in);
    }
}

/* Low (0) or high (1) words of 128-bit elements. */
static UNUSED_FN void half_words(wf_array out, wf_array in, int high) {
    int mark = held_count;
    wf_array index = vec(WF_ELEM_U64, in.count);
    iota(index, high, 2);
    OK(wf_prim_gather(prim, at, as(WF_ELEM_U64, out), as(WF_ELEM_U64, in), index, 1, NULL));
    release_to(mark);
}

/* --- keys in distributions of interest --- */

/* A number in (0, 1) for every mixed word, as doubles; in place. */
static UNUSED_FN wf_array unit(wf_array v) {
    wf_array f = as(WF_ELEM_F64, v);
    mapk("SHR_I64", v, v, 11);
    map1("F64_I64", f, v);
    mapf("ADD_F64", f, f, 0.5);
    mapf("MUL_F64", f, f, 1.0 / 9007199254740992.0);
    return f;
}

/* Numbers of elements (of n) become words of a shape; `t` is as long. */
static UNUSED_FN void shape_words(enum prim_shape shape, wf_array v, wf_array t, int64_t n,
                                  uint64_t seed) {
    wf_array f = as(WF_ELEM_F64, v);
    t.count = v.count;
    if (shape == SHAPE_SORTED) {
        return;
    }
    if (shape == SHAPE_REVERSED) {
        mapk("MUL_I64", v, v, ~0ULL);
        mapk("ADD_I64", v, v, (uint64_t)n);
        return;
    }
    if (shape == SHAPE_CONSTANT) {
        mapk("BITAND_I64", v, v, 0);
        mapk("ADD_I64", v, v, 77);
        return;
    }
    mapk("ADD_I64", v, v, seed << 40);
    mix(v, t);
    if (shape == SHAPE_SMALL) {
        mapk("BITAND_I64", v, v, 255);
    } else if (shape == SHAPE_ZIPF) { /* e^(u ln n): rank r has the weight 1 / r */
        unit(v);
        mapf("MUL_F64", f, f, log((double)n + 1));
        map1("EXP_F64", f, f);
        map1("FLOOR_F64", f, f);
        map1("I64_F64", v, f);
    } else if (shape == SHAPE_PARETO) {
        unit(v);
        mapf("POWER_F64", f, f, -1 / 1.16);
        map1("FLOOR_F64", f, f);
        map1("I64_F64", v, f);
        map1("LOW_I64", v, v);
    } else if (shape == SHAPE_DUPLICATES) { /* half of them one of 16 */
        int mark = held_count;
        wf_array odd = vec(WF_ELEM_BOOL, v.count);
        wf_array few = vec(WF_ELEM_U64, v.count);
        mapk("BITAND_I64", t, v, 1);
        mapk("EQ_I64", odd, t, 1);
        mapk("SHR_I64", few, v, 60);
        mapk("SHR_I64", t, v, 1);
        map3("SEL_I64", v, odd, few, t);
        release_to(mark);
    }
}

/* Zeros of both signs and NaNs among random floats: elements whose words end so become `bits`. */
static UNUSED_FN void put_special(wf_array out, wf_array v, wf_array t, uint64_t ending,
                                  uint64_t bits) {
    int mark = held_count;
    wf_array is = vec(WF_ELEM_BOOL, v.count);
    uint32_t low = (uint32_t)bits;
    bool wide = width_of(out.type) == 8;
    mapk("BITAND_I64", t, v, 63);
    mapk("EQ_I64", is, t, ending);
    wf_array raw = as(wide ? WF_ELEM_U64 : WF_ELEM_U32, out);
    map3(wide ? "SEL_I64" : "SEL_I32", raw, is,
         wide ? prim_array(WF_ELEM_U64, &bits, 1) : prim_array(WF_ELEM_U32, &low, 1), raw);
    release_to(mark);
}

/* Words to keys of a type. */
static UNUSED_FN void words_to_keys(wf_array out, wf_array v, wf_array t, enum prim_shape shape,
                                    int64_t n) {
    bool signs = out.type == WF_ELEM_I32 || out.type == WF_ELEM_I64 || out.type == WF_ELEM_F32 ||
                 out.type == WF_ELEM_F64;
    if (signs && shape != SHAPE_RANDOM) {
        mapk("SUB_I64", v, v, (uint64_t)n / 3);
    }
    if (out.type == WF_ELEM_F32 || out.type == WF_ELEM_F64) {
        bool wide = out.type == WF_ELEM_F64;
        map1(wide ? "F64_I64" : "F32_I64", out, v);
        if (shape == SHAPE_RANDOM) {
            put_special(out, v, t, 5, wide ? 0x8000000000000000ULL : 0x80000000U);
            put_special(out, v, t, 6, 0);
            put_special(out, v, t, 7, wide ? 0x7ff8000000000000ULL : 0x7fc00000U);
        }
    } else {
        narrow(out, v);
    }
}

/* Keys of a shape; U128: the low word, and some bits of it above. */
static UNUSED_FN void make_keys(wf_array out, enum prim_shape shape, uint64_t seed) {
    int mark = held_count;
    bool pairs = out.type == WF_ELEM_U128;
    wf_array to = pairs ? as(WF_ELEM_U64, out) : out;
    int64_t most = to.count < CHUNK ? to.count : CHUNK;
    wf_array v = vec(WF_ELEM_U64, most);
    wf_array t = vec(WF_ELEM_U64, most);
    for (int64_t first = 0; first < to.count; first += CHUNK) {
        v.count = t.count = to.count - first < CHUNK ? to.count - first : CHUNK;
        iota(v, first, 1);
        if (pairs) {
            mapk("SHR_I64", v, v, 1);
        }
        shape_words(shape, v, t, out.count, seed);
        if (pairs) {
            int inner = held_count;
            wf_array odd = vec(WF_ELEM_BOOL, v.count);
            wf_array high = vec(WF_ELEM_U64, v.count);
            iota(t, first, 1);
            mapk("BITAND_I64", t, t, 1);
            mapk("EQ_I64", odd, t, 1);
            mapk("SHR_I64", high, v, 3);
            mapk("BITAND_I64", high, high, 0xff000000000000ffULL);
            map3("SEL_I64", v, odd, high, v);
            release_to(inner);
        }
        words_to_keys(part(to, first, v.count), v, t, shape, out.count);
    }
    release_to(mark);
}

/* --- judgements --- */

/* None of the flags may be set; `first` is the number of the first one. */
static UNUSED_FN void expect_none(wf_array bad, int64_t first, const char *what) {
    int mark = held_count;
    if (bad.count == 0) {
        return;
    }
    wf_array ones = vec(WF_ELEM_U32, bad.count);
    uint32_t sum = 1;
    map1("I32_B8", ones, bad);
    OK(wf_prim_reduce(prim, at, WF_FOLD_ADD, prim_array(WF_ELEM_U32, &sum, 1), ones, NULL));
    uint32_t host_sum = 0;
    if (bad.count <= HOST_MAX) {
        unsigned char *flags = fetch(bad);
        for (int64_t i = 0; i < bad.count; i++) {
            host_sum += flags[i];
        }
        free(flags);
        NEED(sum == host_sum, "%s: the host counts %u, the device %u", what, host_sum, sum);
    }
    if (sum) {
        wf_array numbers = {.type = WF_ELEM_U64};
        wf_array where = vec(WF_ELEM_U64, sum);
        int64_t count = 0;
        uint64_t row = 0;
        OK(wf_prim_compact(prim, at, 1, &where, &numbers, 1, bad, &count, NULL));
        peek(where, 0, &row);
        give_up("%s: %u of %" PRId64 ", the first at %" PRId64, what, sum, bad.count,
                first + (int64_t)row);
    }
    release_to(mark);
}

static UNUSED_FN void expect_all(wf_array good, int64_t first, const char *what) {
    map1("NOT_B8", good, good);
    expect_none(good, first, what);
}

/* Two arrays of one type, bit by bit. */
static UNUSED_FN void expect_same(wf_array a, wf_array b, const char *what) {
    wf_elem type = width_of(a.type) == 4 ? WF_ELEM_U32 : WF_ELEM_U64;
    NEED(a.count == b.count, "%s: %" PRId64 " elements, expected %" PRId64, what, a.count, b.count);
    a = as(type, a);
    b = as(type, b);
    if (a.count <= HOST_MAX && a.count) {
        void *x = fetch(a);
        void *y = fetch(b);
        int differ = memcmp(x, y, (size_t)(a.count * width_of(type)));
        free(x);
        free(y);
        NEED(!differ, "%s: the host finds a difference", what);
    }
    int mark = held_count;
    wf_array bad = vec(WF_ELEM_BOOL, a.count < CHUNK ? a.count : CHUNK);
    for (int64_t first = 0; first < a.count; first += CHUNK) {
        bad.count = a.count - first < CHUNK ? a.count - first : CHUNK;
        map2(type == WF_ELEM_U32 ? "NE_I32" : "NE_I64", bad, part(a, first, bad.count),
             part(b, first, bad.count));
        expect_none(bad, first, what);
    }
    release_to(mark);
}

struct print { /* of a multiset: what no order changes */
    int64_t count;
    uint64_t sum, xor;
};

static UNUSED_FN void expect_print(struct print a, struct print b, const char *what) {
    NEED(a.count == b.count, "%s: %" PRId64 " elements, expected %" PRId64, what, a.count, b.count);
    NEED(a.sum == b.sum && a.xor == b.xor, "%s: other elements than expected", what);
}

static UNUSED_FN void host_print(struct print *p, const uint64_t *words, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = mix_word(words[i]);
        p->sum += x;
        p->xor ^= x;
    }
}

/* Adds words of 64 bits, which are overwritten. */
static UNUSED_FN void print_words(struct print *p, wf_array v, wf_array t) {
    struct print host = *p;
    uint64_t sum = 0;
    uint64_t xor = 0;
    bool by_host = v.count <= HOST_MAX;
    if (by_host) {
        uint64_t *words = fetch(v);
        host_print(&host, words, v.count);
        free(words);
    }
    mix(v, t);
    OK(wf_prim_reduce(prim, at, WF_FOLD_ADD, prim_array(WF_ELEM_U64, &sum, 1), v, NULL));
    OK(wf_prim_reduce(prim, at, WF_FOLD_XOR, prim_array(WF_ELEM_U64, &xor, 1), v, NULL));
    p->sum += sum;
    p->xor ^= xor;
    p->count += v.count;
    NEED(!by_host || (host.sum == p->sum && host.xor == p->xor),
         "fingerprint: host and device differ");
}

static UNUSED_FN struct print print_of(wf_array a) {
    struct print p = {0};
    int mark = held_count;
    int64_t most = a.count < CHUNK ? a.count : CHUNK;
    wf_array v = vec(WF_ELEM_U64, most);
    wf_array t = vec(WF_ELEM_U64, most);
    for (int64_t first = 0; first < a.count; first += CHUNK) {
        wf_array piece = part(a, first, a.count - first < CHUNK ? a.count - first : CHUNK);
        v.count = t.count = piece.count;
        if (width_of(a.type) == 16) { /* the high word mixed, times a number, and the low one */
            half_words(v, piece, 1);
            mix(v, t);
            half_words(t, piece, 0);
            mapk("MUL_I64", v, v, 0x2545f4914f6cdd1dULL);
            map2("ADD_I64", v, v, t);
        } else {
            widen(v, piece);
        }
        print_words(&p, v, t);
    }
    release_to(mark);
    return p;
}

/* Of the numbers 0 .. n - 1. */
static UNUSED_FN struct print print_of_rows(int64_t n) {
    static struct print last;
    static wf_place last_at;
    if (last.count != n || last_at != at) {
        int mark = held_count;
        struct print p = {0};
        wf_array v = vec(WF_ELEM_U64, n < CHUNK ? n : CHUNK);
        wf_array t = vec(WF_ELEM_U64, n < CHUNK ? n : CHUNK);
        for (int64_t first = 0; first < n; first += CHUNK) {
            v.count = n - first < CHUNK ? n - first : CHUNK;
            iota(v, first, 1);
            print_words(&p, v, t);
        }
        release_to(mark);
        last = p;
        last_at = at;
    }
    return last;
}

/* --- order --- */

/* What decides the order of elements: their values, or the part of a split they belong to. */
struct ranks {
    wf_elem type;
    const wf_split *split;
};

static UNUSED_FN void split_ranks(wf_array out, wf_array keys, const wf_split *how) {
    int mark = held_count;
    if (how->by == WF_SPLIT_RANGE) {
        OK(wf_prim_search(prim, at, 1, 0, out, keys, how->splitters, NULL));
        return;
    }
    wf_array t = vec(WF_ELEM_U64, keys.count);
    int shift = how->shift;
    if (keys.type == WF_ELEM_U128) { /* cases look at bits of one word */
        half_words(out, keys, shift >= 64);
        shift &= 63;
    } else {
        widen(out, keys);
    }
    if (how->by == WF_SPLIT_HASH && width_of(keys.type) == 4) {
        mix32(out, t);
    } else if (how->by == WF_SPLIT_HASH) {
        for (int i = 0; i < 3; i++) {
            mapk("SHR_I64", t, out, 32);
            map2("BITXOR_I64", out, out, t);
            if (i < 2) {
                mapk("MUL_I64", out, out, 0xd6e8feb86659fd93ULL);
            }
        }
    }
    mapk("SHR_I64", out, out, (uint64_t)shift);
    mapk("BITAND_I64", out, out, (1ULL << how->bits) - 1);
    release_to(mark);
}

/* Signed words that order as keys do; of U128 the high ones. */
static UNUSED_FN void ranks_of(wf_array out, wf_array keys, const struct ranks *by) {
    if (by->split) {
        split_ranks(out, keys, by->split);
    } else if (by->type == WF_ELEM_F32 || by->type == WF_ELEM_F64) {
        int mark = held_count;
        wf_array wide = by->type == WF_ELEM_F64 ? keys : vec(WF_ELEM_F64, keys.count);
        wf_array plain = vec(WF_ELEM_F64, keys.count);
        if (by->type == WF_ELEM_F32) {
            map1("F64_F32", wide, keys);
        }
        mapf("ADD_F64", plain, wide, 0); /* -0 and 0 are equal keys */
        map1("ORD_F64", out, plain);
        release_to(mark);
    } else if (by->type == WF_ELEM_U128) {
        half_words(out, keys, 1);
        mapk("BITXOR_I64", out, out, 1ULL << 63);
    } else if (by->type == WF_ELEM_I32) {
        map1("I64_I32", out, keys);
    } else {
        widen(out, keys);
        if (by->type == WF_ELEM_U64) {
            mapk("BITXOR_I64", out, out, 1ULL << 63);
        }
    }
}

struct order_check {
    struct ranks by;
    wf_array in, out;
    wf_array rows;  /* U32 or U64: where in `in` each element of `out` was; count 0: not known */
    int descending; /* or ascending */
    int stable;     /* of equal ones the earlier first */
};

/* left[i] against left[i + 1], of ranks: less, and same. */
static UNUSED_FN void compare_next(wf_array less, wf_array same, wf_array left, int descending) {
    int mark = held_count;
    int64_t n = less.count;
    wf_array right = vec(left.type, n);
    OK(wf_prim_copy(prim, right.data, (char *)left.data + 8, n * 8));
    left.count = n;
    map2(descending ? "GT_I64" : "LT_I64", less, left, right);
    map2("EQ_I64", same, left, right);
    release_to(mark);
}

/* Neighbours of one chunk: n + 1 elements, n pairs. */
static UNUSED_FN void check_neighbours(const struct order_check *c, int64_t first, int64_t n) {
    int mark = held_count;
    wf_array keys = part(c->out, first, n + 1);
    wf_array ranks = vec(WF_ELEM_I64, n + 1);
    wf_array good = vec(WF_ELEM_BOOL, n);
    wf_array same = vec(WF_ELEM_BOOL, n);
    wf_array less = vec(WF_ELEM_BOOL, n);
    wf_array also = vec(WF_ELEM_BOOL, n);
    ranks_of(ranks, keys, &c->by);
    compare_next(good, same, ranks, c->descending);
    if (c->by.type == WF_ELEM_U128 && !c->by.split) {
        half_words(ranks, keys, 0);
        mapk("BITXOR_I64", ranks, ranks, 1ULL << 63);
        compare_next(less, also, ranks, c->descending);
        map2("AND_B8", less, less, same);
        map2("OR_B8", good, good, less);
        map2("AND_B8", same, same, also);
    }
    if (c->stable && c->rows.count) {
        widen(ranks, part(c->rows, first, n + 1));
        compare_next(less, also, ranks, 0);
        map2("AND_B8", same, same, less);
    }
    map2("OR_B8", good, good, same);
    expect_all(good, first, c->stable ? "order, stable" : "order");
    release_to(mark);
}

static UNUSED_FN int host_compare(wf_elem type, const void *keys, int64_t i, int64_t j) {
    double x, y;
    switch (type) {
#define CASE(elem, T)               \
    case elem: {                    \
        T a = ((const T *)keys)[i]; \
        T b = ((const T *)keys)[j]; \
        return a < b ? -1 : a > b;  \
    }
        CASE(WF_ELEM_U32, uint32_t)
        CASE(WF_ELEM_I32, int32_t)
        CASE(WF_ELEM_U64, uint64_t)
        CASE(WF_ELEM_I64, int64_t)
    case WF_ELEM_U128: {
        const uint64_t *w = keys;
        return w[2 * i + 1] != w[2 * j + 1] ? (w[2 * i + 1] < w[2 * j + 1] ? -1 : 1)
               : w[2 * i] < w[2 * j]        ? -1
                                            : w[2 * i] > w[2 * j];
    }
    default:
        x = type == WF_ELEM_F32 ? (double)((const float *)keys)[i] : ((const double *)keys)[i];
        y = type == WF_ELEM_F32 ? (double)((const float *)keys)[j] : ((const double *)keys)[j];
        return isnan(x) ? (isnan(y) ? 0 : 1) : isnan(y) ? -1 : x < y ? -1 : x > y;
    }
}

static UNUSED_FN uint64_t host_row(wf_array rows, const void *data, int64_t i) {
    return width_of(rows.type) == 4 ? ((const uint32_t *)data)[i] : ((const uint64_t *)data)[i];
}

/* The same by loops: order by value, rows all different, keys those of their rows. */
static UNUSED_FN void host_check_order(const struct order_check *c) {
    int64_t n = c->out.count;
    size_t width = (size_t)width_of(c->out.type);
    char *in = fetch(c->in);
    char *out = fetch(c->out);
    void *rows = c->rows.count ? fetch(c->rows) : NULL;
    char *seen = calloc((size_t)n + 1, 1);
    int64_t bad = -1;
    for (int64_t i = 0; i < n && bad < 0; i++) {
        int order = i && !c->by.split ? host_compare(c->by.type, out, i - 1, i) : -1;
        order = c->descending && i && !c->by.split ? -order : order;
        uint64_t row = rows ? host_row(c->rows, rows, i) : 0;
        uint64_t last = rows && i ? host_row(c->rows, rows, i - 1) : 0;
        if (order > 0 || (rows && (row >= (uint64_t)n || seen[row]++ ||
                                   memcmp(in + row * width, out + (size_t)i * width, width) ||
                                   (order == 0 && c->stable && row < last)))) {
            bad = i;
        }
    }
    free(in);
    free(out);
    free(rows);
    free(seen);
    NEED(bad < 0, "the host finds element %" PRId64 " wrong", bad);
}

/* `out` is `in` in order. */
static UNUSED_FN void check_order(const struct order_check *c) {
    int64_t n = c->out.count;
    NEED(n == c->in.count, "%" PRId64 " elements of %" PRId64, n, c->in.count);
    for (int64_t first = 0; first + 1 < n; first += CHUNK) {
        check_neighbours(c, first, n - 1 - first < CHUNK ? n - 1 - first : CHUNK);
    }
    if (c->rows.count) {
        int mark = held_count;
        wf_array got = vec(c->in.type, n < CHUNK ? n : CHUNK);
        expect_print(print_of(c->rows), print_of_rows(n), "rows");
        for (int64_t first = 0; first < n; first += CHUNK) {
            got.count = n - first < CHUNK ? n - first : CHUNK;
            OK(wf_prim_gather(prim, at, got, c->in, part(c->rows, first, got.count), 0, NULL));
            expect_same(got, part(c->out, first, got.count), "keys of rows");
        }
        release_to(mark);
    } else {
        expect_print(print_of(c->out), print_of(c->in), "keys");
    }
    if (n <= HOST_MAX) {
        host_check_order(c);
    }
}

/* --- permutations and ascending arrays --- */

/* v: numbers below n become others below n, all different; `inverse`: back again. */
static UNUSED_FN uint64_t coprime_of(int64_t n) {
    uint64_t c = 1640531527U;
    for (bool found = false; !found; c += found ? 0 : 2) {
        uint64_t a = c;
        uint64_t b = (uint64_t)n;
        while (b) {
            uint64_t r = a % b;
            a = b;
            b = r;
        }
        found = a == 1;
    }
    return c % (uint64_t)n ? c % (uint64_t)n : 1;
}
static UNUSED_FN uint64_t inverse_of(uint64_t c, int64_t n) { /* c * x = 1 modulo n */
    int64_t r0 = n, r1 = (int64_t)c, t0 = 0, t1 = 1;
    while (r1) {
        int64_t q = r0 / r1;
        int64_t r = r0 - q * r1;
        int64_t t = t0 - q * t1;
        r0 = r1;
        r1 = r;
        t0 = t1;
        t1 = t;
    }
    return (uint64_t)((t0 % n + n) % n);
}
static UNUSED_FN void permute(wf_array v, int64_t n, bool inverse) {
    uint64_t c = coprime_of(n);
    mapk("MUL_I64", v, v, inverse ? inverse_of(c, n) : c);
    mapk("MOD_I64", v, v, (uint64_t)n);
}

/* --- running cases --- */

static UNUSED_FN int64_t spent(void) { /* by the operation just called */
    int64_t ns = wf_prim_metric(prim, "device_ns");
    return ns > 0 ? ns : wf_prim_metric(prim, "ns");
}

static UNUSED_FN double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static UNUSED_FN int64_t case_rows(const struct huge_case *c, int64_t rows, bool *out_less) {
    const char *given = getenv("PRIM_TEST_MEMORY");
    double memory = given ? strtod(given, NULL) : 115e9;
    bool many = c->scale > 100 && getenv("PRIM_TEST_BRIEF") == NULL;
    double n = (double)rows * (many || c->scale < 100 ? (double)c->scale : 100.0) / 100;
    double fit = memory / (double)c->row_bytes;
    *out_less = fit < n;
    return (int64_t)(fit < n ? fit : n);
}

/* Returns whether it went well. `judge` may jump to the end of the case. */
static UNUSED_FN bool attempt(void (*judge)(struct huge *h), struct huge *h) {
    jmp_buf here;
    jmp_buf *outer = case_end;
    int mark = held_count;
    volatile bool good = false;
    case_end = &here;
    case_said[0] = 0;
    if (!setjmp(here)) {
        judge(h);
        good = true;
    }
    case_end = outer;
    release_to(mark);
    return good;
}

static UNUSED_FN void run_case(const struct huge_case *c, int64_t rows) {
    bool less = false;
    struct huge h = {.spec = c->spec};
    if (!strstr(c->name, only)) {
        return;
    }
    h.n = case_rows(c, rows, &less);
    double started = seconds();
    bool good = attempt(c->run, &h);
    cases_run++;
    cases_failed += !good;
    printf("%-44s %s %11" PRId64 " %10.3f ms, %6.2f s %s%s%s\n", c->name,
           at == WF_ON_GPU ? "gpu" : "cpu", h.n, (double)h.ns / 1e6, seconds() - started,
           good ? "ok" : "FAILED: ", good ? "" : case_said, less ? " (memory)" : "");
    fflush(stdout);
}

/* One case of every kind is enough on a simulated card where sanitizers look on, or rows are many.
 */
static UNUSED_FN bool brief(void) {
#ifdef WF_HARD
    return !getenv("PRIM_TEST_MAX");
#else
    return getenv("PRIM_TEST_BRIEF") != NULL;
#endif
}
/* The first two words of a name are its kind. */
static UNUSED_FN bool seen_kind(const struct huge_case *cases, int i) {
    const char *second = strchr(cases[i].name, ' ');
    size_t length = (size_t)(second - cases[i].name) + 1;
    length += strcspn(second + 1, " ,");
    for (int k = 0; k < i; k++) {
        if (strncmp(cases[k].name, cases[i].name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Every case with `usual` rows or PRIM_TEST_MAX, and where those are very many, with a million,
 * which the host can follow, first. */
static UNUSED_FN void run_cases(const struct huge_case *cases, int count, int64_t usual) {
    int64_t rows = prim_test_max(usual);
    const char *cpu = getenv("PRIM_TEST_CPU"); /* 0: the card alone */
    cases_failed = 0;
    for (int place = cpu && cpu[0] == '0' ? 1 : 0; place < prim_places(); place++) {
        at = (wf_place)place;
        for (int i = 0; i < count; i++) {
            if (place && brief() && seen_kind(cases, i)) {
                continue;
            }
            if (rows > HOST_MAX) {
                run_case(&cases[i], 1000003);
            }
            run_case(&cases[i], rows);
        }
    }
    assert_int_equal(cases_failed, 0);
}

static UNUSED_FN void huge_arguments(int argc, char **argv) {
    only = getenv("PRIM_TEST_ONLY") ? getenv("PRIM_TEST_ONLY") : "";
    for (int i = 1; i + 1 < argc; i++) {
        only = strcmp(argv[i], "--only") == 0 ? argv[i + 1] : only;
    }
}

#endif

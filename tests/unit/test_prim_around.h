/* test_prim_around.h: every primitive once or more, on arrays that lie in the middle of larger
 * ones, on either device: what is around them must not show in the answer, and nothing but outputs
 * may change. For test_prim_card.c, and for test_fault_card.c, where calls of the driver fail. */
#ifndef WF_TEST_PRIM_AROUND_H
#define WF_TEST_PRIM_AROUND_H

#define _GNU_SOURCE
#include "test_prim_fixture.h"

#include <dlfcn.h>

enum { AROUND = 256, MOST_ARRAYS = 32, ROWS = 2500, OTHERS = 1700, FILL_OUT = 0x5c };

struct lying { /* an array with what is around it */
    uint8_t *block, *image;
    size_t bytes;
    bool is_out;
};

struct attempt {
    wf_place place;
    bool may_fail, failed;
    int around; /* the bytes there */
    struct lying arrays[MOST_ARRAYS];
    int array_count;
    uint8_t *answer;
    size_t len, cap;
};

static size_t width_of(wf_elem type) {
    return type == WF_ELEM_U32 || type == WF_ELEM_I32 || type == WF_ELEM_F32 ? 4
           : type == WF_ELEM_U128 || type == WF_ELEM_TEXT                    ? 16
           : type == WF_ELEM_BOOL                                            ? 1
                                                                             : 8;
}

/* --- calls that fail --- */

static void (*simt_fail_at)(unsigned long long n, int code);
static unsigned long long (*simt_call_count)(void);
static unsigned long long armed, armed_at; /* 0: no call is going to fail */
static int armed_code;
static unsigned long long own_calls; /* of the test itself, while `paused_at` is set */
static unsigned long long paused_at;

static void arm(unsigned long long n, int code) {
    own_calls += paused_at ? simt_call_count() - paused_at : 0;
    paused_at = 0;
    armed = n;
    armed_at = simt_fail_at ? simt_call_count() : 0;
    armed_code = code;
    if (simt_fail_at) {
        simt_fail_at(n, code);
    }
}
/* Calls of the test itself neither fail nor count. */
static unsigned long long pause_failing(void) {
    unsigned long long done = armed ? simt_call_count() - armed_at : 0;
    unsigned long long left = done < armed ? armed - done : 0;
    if (simt_fail_at) {
        arm(0, armed_code);
        paused_at = simt_call_count();
    }
    return left;
}

/* A primitive's call did not succeed. */
static void refused(struct attempt *a, const char *call) {
    const char *state = wf_prim_error(prim)->sqlstate;
    bool known = strncmp(state, "5800", 4) == 0 || strcmp(state, "53200") == 0;
    if (!a->may_fail || !known) {
        fail_msg("%s: %s %s", call, state, wf_prim_error(prim)->message);
    }
    a->failed = true;
}
#define MUST(call)             \
    do {                       \
        if ((call) != WF_OK) { \
            refused(a, #call); \
            return;            \
        }                      \
    } while (0)

/* A context that was lost on the way is missed by the next call. */
static void lay_on_card(struct attempt *a, struct lying *l, void **block) {
    for (int round = 0; round < 2; round++) {
        bool made = !wf_prim_alloc(prim, WF_ON_GPU, (int64_t)l->bytes, block) &&
                    !wf_prim_copy(prim, *block, l->image, (int64_t)l->bytes);
        if (made) {
            return;
        }
        if (!a->may_fail || round) {
            fail_msg("%s", wf_prim_error(prim)->message);
        }
        a->failed = true;
        wf_prim_free(prim, *block);
    }
}

static void *lay(struct attempt *a, const void *data, size_t bytes) {
    struct lying *l = &a->arrays[a->array_count++];
    assert_true(a->array_count <= MOST_ARRAYS);
    l->bytes = bytes + 2 * AROUND;
    l->image = malloc(l->bytes);
    l->is_out = !data;
    memset(l->image, data ? a->around : FILL_OUT, l->bytes);
    if (data) {
        memcpy(l->image + AROUND, data, bytes);
    }
    void *block = NULL;
    unsigned long long left = pause_failing();
    if (a->place == WF_ON_GPU) {
        lay_on_card(a, l, &block);
    } else {
        block = malloc(l->bytes);
        memcpy(block, l->image, l->bytes);
    }
    l->block = block;
    arm(left, armed_code);
    return l->block + AROUND;
}
static wf_array in(struct attempt *a, wf_elem type, const void *data, int64_t count) {
    return prim_array(type, lay(a, data, (size_t)count * width_of(type)), count);
}
static wf_array out(struct attempt *a, wf_elem type, int64_t count) {
    return prim_array(type, lay(a, NULL, (size_t)count * width_of(type)), count);
}

/* What is in memory of either place. */
static void fetch(struct attempt *a, void *to, const void *from, size_t bytes) {
    unsigned long long left = pause_failing();
    if (a->place == WF_ON_GPU && wf_prim_copy(prim, to, from, (int64_t)bytes)) {
        if (!a->may_fail) {
            fail_msg("%s", wf_prim_error(prim)->message);
        }
        memset(to, 0, bytes);
        a->failed = true;
    } else if (a->place == WF_ON_CPU) {
        memcpy(to, from, bytes);
    }
    arm(left, armed_code);
}

static uint8_t *append(struct attempt *a, size_t bytes) {
    while (a->len + bytes > a->cap) {
        a->cap = a->cap * 2 + 4096;
        a->answer = realloc(a->answer, a->cap);
    }
    a->len += bytes;
    return a->answer + a->len - bytes;
}
static void keep(struct attempt *a, wf_array array, int64_t count) {
    size_t bytes = (size_t)count * width_of(array.type);
    fetch(a, append(a, bytes), array.data, bytes);
}
static void keep_count(struct attempt *a, int64_t count) {
    memcpy(append(a, 8), &count, 8);
}
static int by_word(const void *p, const void *q) {
    uint64_t x, y;
    memcpy(&x, p, 8);
    memcpy(&y, q, 8);
    return x < y ? -1 : x > y;
}
/* Rows of one or two arrays of 4 bytes, whose order is free. */
static void keep_rows(struct attempt *a, wf_array x, const wf_array *y, int64_t count) {
    uint32_t *low = malloc((size_t)count * 4 + 4);
    uint32_t *high = calloc((size_t)count + 1, 4);
    fetch(a, low, x.data, (size_t)count * 4);
    if (y) {
        fetch(a, high, y->data, (size_t)count * 4);
    }
    uint64_t *rows = malloc((size_t)count * 8 + 8);
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (uint64_t)high[i] << 32 | low[i];
    }
    qsort(rows, (size_t)count, 8, by_word);
    memcpy(append(a, (size_t)count * 8), rows, (size_t)count * 8);
    free(low);
    free(high);
    free(rows);
}

/* Nothing but the insides of outputs has changed. */
static void check_around(struct attempt *a, const char *name) {
    for (int i = 0; i < a->array_count; i++) {
        struct lying *l = &a->arrays[i];
        uint8_t *now = malloc(l->bytes);
        fetch(a, now, l->block, l->bytes);
        if (l->is_out) {
            memcpy(l->image + AROUND, now + AROUND, l->bytes - 2 * AROUND);
        }
        if (!a->failed && memcmp(now, l->image, l->bytes) != 0) {
            fail_msg("%s changes what is around array %d", name, i);
        }
        free(now);
        free(l->image);
        if (a->place == WF_ON_GPU) {
            wf_prim_free(prim, l->block);
        } else {
            free(l->block);
        }
    }
    a->array_count = 0;
}

typedef void (*primitive)(struct attempt *a, int variant);

static UNUSED_FN void check(const char *name, primitive run, int variants) {
    for (int v = 0; v < variants; v++) {
        struct attempt cpu = {.place = WF_ON_CPU, .around = 0x11};
        run(&cpu, v);
        check_around(&cpu, name);
        for (int around = 0; around < 2 && prim_has_gpu; around++) {
            struct attempt gpu = {.place = WF_ON_GPU, .around = around ? 0xff : 0};
            run(&gpu, v);
            check_around(&gpu, name);
            if (gpu.len != cpu.len || memcmp(gpu.answer, cpu.answer, cpu.len) != 0) {
                fail_msg("%s, variant %d: the GPU has another answer", name, v);
            }
            free(gpu.answer);
        }
        free(cpu.answer);
    }
}

/* --- data --- */

enum { TUPLES = 6001, FEWER = 4400 };
static uint32_t sorted_keys[TUPLES], other_keys[FEWER], higher_keys[FEWER];
static int64_t rows = ROWS, more = OTHERS; /* fewer where many attempts are made */
static uint32_t words[ROWS], few[ROWS], ascending[ROWS], others[OTHERS], apart[OTHERS];
static uint64_t wide[ROWS], wide_few[ROWS], wide_ascending[ROWS], wide_others[OTHERS];
static double reals[ROWS];
static uint8_t flags[ROWS];
static wf_span spans[ROWS], other_spans[OTHERS];
static char bytes[ROWS * 12];

/* Keys of relations: ascending, each several times; and above all of those. */
static void make_keys(void) {
    uint64_t seed = 4;
    uint32_t sum = 0;
    for (int i = 0; i < TUPLES; i++) {
        sum += (uint32_t)prim_random(&seed) % 3;
        sorted_keys[i] = sum;
    }
    sum = 0;
    for (int i = 0; i < FEWER; i++) {
        sum += (uint32_t)prim_random(&seed) % 4;
        other_keys[i] = sum;
        higher_keys[i] = 100000 + sum;
    }
}

static int make_data(void **state) {
    uint64_t seed = 9;
    uint32_t sum = 0;
    uint32_t other_sum = 0;
    int at = 0;
    for (int i = 0; i < ROWS; i++) {
        uint64_t r = prim_random(&seed);
        words[i] = (uint32_t)r;
        wide[i] = prim_random(&seed);
        few[i] = (uint32_t)(r >> 40) % 900;
        wide_few[i] = (r >> 40) % 900 * 0x100000001ULL;
        sum += (uint32_t)(r >> 50) % 3;
        ascending[i] = sum;
        wide_ascending[i] = (uint64_t)sum << 33;
        reals[i] = (double)(int64_t)(r >> 30) / 1024 - 1e6;
        flags[i] = r >> 61 > 2;
        spans[i] = (wf_span){(uint64_t)at, 3 + (r >> 7) % 9};
        for (uint64_t k = 0; k < spans[i].length; k++) {
            bytes[at++] = (char)('a' + (int)(r >> (k * 3) & 3));
        }
        if (i < OTHERS) {
            other_sum += (uint32_t)(r >> 13) % 4;
            others[i] = other_sum;
            wide_others[i] = (uint64_t)other_sum << 33;
            apart[i] = 100000 + other_sum;
            other_spans[i] = spans[(i * 7) % (i + 1)];
        }
    }
    make_keys();
    return prim_setup(state);
}

static wf_array texts(struct attempt *a, const wf_span *from, int64_t count) {
    wf_array array = in(a, WF_ELEM_TEXT, from, count);
    array.bytes = lay(a, bytes, sizeof bytes);
    array.byte_count = sizeof bytes;
    return array;
}

/* --- computing and moving --- */

static UNUSED_FN void scans(struct attempt *a, int v) {
    wf_elem type = v & 1 ? WF_ELEM_U64 : WF_ELEM_I32;
    wf_array from = in(a, type, v & 1 ? (void *)wide : (void *)words, rows - v);
    wf_array to = out(a, type, rows - v);
    static const wf_fold folds[] = {WF_FOLD_ADD, WF_FOLD_MAX, WF_FOLD_XOR};
    MUST(wf_prim_scan(prim, a->place, folds[v % 3], v / 3, to, from, NULL));
    keep(a, to, rows - v);
    wf_array one = out(a, type, 1);
    MUST(wf_prim_reduce(prim, a->place, folds[v % 3], one, from, NULL));
    keep(a, one, 1);
}

static UNUSED_FN void segments(struct attempt *a, int v) {
    uint64_t offsets[OTHERS + 1] = {0};
    for (int i = 0; i <= more; i++) {
        offsets[i] = i == more ? (uint64_t)rows
                               : (uint64_t)(i < 40    ? 0
                                            : i < 900 ? i - 40
                                                      : i + 500);
    }
    wf_array from = v == 2 ? in(a, WF_ELEM_F64, reals, rows) : in(a, WF_ELEM_U64, wide, rows);
    wf_array cuts = in(a, WF_ELEM_U64, offsets, more + 1);
    wf_array to = out(a, from.type, more);
    wf_fold fold = v == 1 ? WF_FOLD_MIN : WF_FOLD_ADD;
    MUST(wf_prim_reduce_segments(prim, a->place, fold, to, from, cuts, NULL));
    keep(a, to, more);
    wf_array keys = in(a, WF_ELEM_U32, ascending, rows);
    wf_array run_keys = out(a, WF_ELEM_U32, rows);
    wf_array sums = out(a, from.type, rows);
    int64_t runs = 0;
    MUST(wf_prim_reduce_runs(prim, a->place, fold, run_keys, sums, keys, from, &runs, NULL));
    keep_count(a, runs);
    keep(a, run_keys, runs);
    keep(a, sums, runs);
}

static UNUSED_FN void compactions(struct attempt *a, int v) {
    wf_array from[2] = {in(a, WF_ELEM_U32, words, rows), in(a, WF_ELEM_U64, wide, rows)};
    wf_array to[2] = {out(a, WF_ELEM_U32, rows), out(a, WF_ELEM_U64, rows)};
    wf_array by = in(a, WF_ELEM_BOOL, flags, rows);
    int64_t kept = 0;
    uint32_t bound = 1u << 30;
    if (v < 2) {
        MUST(wf_prim_compact(prim, a->place, !v, to, from, 2, by, &kept, NULL));
    } else {
        MUST(wf_prim_compact_compare(prim, a->place, v == 2, to, from, 2, from[0], WF_COMPARE_GT,
                                     &bound, &kept, NULL));
    }
    keep_count(a, kept);
    if (v % 2) {
        keep_rows(a, to[0], NULL, kept);
    } else {
        keep(a, to[0], kept);
        keep(a, to[1], kept);
    }
}

static UNUSED_FN void moves(struct attempt *a, int v) {
    wf_array from = in(a, WF_ELEM_U64, wide, ROWS);
    wf_array places = in(a, WF_ELEM_U32, few, ROWS);
    wf_array to = out(a, WF_ELEM_U64, ROWS);
    MUST(wf_prim_gather(prim, a->place, to, from, places, v ? 3 : 1, NULL));
    keep(a, to, ROWS);
    uint32_t order[ROWS] = {0};
    for (uint32_t i = 0; i < ROWS; i++) {
        order[i] = i * 3 % ROWS;
    }
    wf_array index = in(a, WF_ELEM_U32, order, ROWS);
    MUST(wf_prim_scatter(prim, a->place, to, from, index, v ? 3 : 1, NULL));
    keep(a, to, ROWS);
    wf_array bins = out(a, WF_ELEM_U64, v ? 700 : 40);
    MUST(wf_prim_histogram(prim, a->place, bins, places, 11, v ? 1 : 20, NULL));
    keep(a, bins, bins.count);
}

/* --- ordering --- */

static UNUSED_FN void splits(struct attempt *a, int v) {
    uint32_t cuts[] = {100, 101, 500, 850};
    wf_split how = {.by = (wf_split_by)(v % 3), .shift = v == 3 ? 2 : 1, .bits = v > 2 ? 9 : 5};
    how.splitters = prim_array(WF_ELEM_U32, cuts, 4);
    how.unstable = v > 2;
    wf_array keys = in(a, WF_ELEM_U32, few, rows);
    wf_array payload = in(a, WF_ELEM_U64, wide, rows);
    wf_array to = out(a, WF_ELEM_U32, rows);
    wf_array to_payload = out(a, WF_ELEM_U64, rows);
    int64_t parts = how.by == WF_SPLIT_RANGE ? 5 : 1 << how.bits;
    wf_array starts = out(a, WF_ELEM_U64, parts + 1);
    MUST(wf_prim_split(prim, a->place, &how, to, starts, keys, &to_payload, &payload, 1, NULL));
    keep(a, starts, parts + 1);
    if (how.unstable) {
        keep_rows(a, to, NULL, rows);
    } else {
        keep(a, to, rows);
        keep(a, to_payload, rows);
    }
}

static UNUSED_FN void sorts(struct attempt *a, int v) {
    wf_sort how = {.by = (wf_sort_by)(v % 5), .descending = v & 1};
    wf_array keys = v == 5   ? texts(a, spans, rows)
                    : v == 6 ? in(a, WF_ELEM_F64, reals, rows)
                    : v & 1  ? in(a, WF_ELEM_U64, wide, rows)
                             : in(a, WF_ELEM_I32, words, rows);
    how.by = v > 4 ? WF_SORT_AUTO : how.by;
    wf_array to = out(a, keys.type, rows);
    if (v == 5) {
        to.bytes = keys.bytes;
        to.byte_count = keys.byte_count;
    }
    wf_array payload = in(a, WF_ELEM_U32, words, rows);
    wf_array to_payload = out(a, WF_ELEM_U32, rows);
    MUST(wf_prim_sort(prim, a->place, &how, to, keys, &to_payload, &payload, 1, NULL));
    keep(a, to, rows);
    if (how.by != WF_SORT_BITONIC && how.by != WF_SORT_QUICK) {
        keep(a, to_payload, rows);
    }
}

static UNUSED_FN void searches(struct attempt *a, int v) {
    wf_elem type = v & 1 ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_array x = in(a, type, v & 1 ? (void *)wide_ascending : (void *)ascending, rows);
    wf_array y = in(a, type, v & 1 ? (void *)wide_others : (void *)(v & 2 ? apart : others), more);
    wf_array none = prim_array(WF_ELEM_U32, NULL, 0);
    wf_array merged = out(a, type, rows + more);
    MUST(wf_prim_merge(prim, a->place, merged, x, y, none, none, none, NULL));
    keep(a, merged, rows + more);
    wf_array found = out(a, WF_ELEM_U32, rows);
    for (int how = 0; how < 4; how++) {
        MUST(wf_prim_search(prim, a->place, how & 1, how >> 1, found, x, y, NULL));
        keep(a, found, rows);
    }
    wf_array keys = out(a, type, rows);
    wf_array starts = out(a, WF_ELEM_U32, rows);
    wf_array lengths = out(a, WF_ELEM_U64, rows);
    int64_t runs = 0;
    MUST(wf_prim_runs(prim, a->place, keys, starts, lengths, x, &runs, NULL));
    keep_count(a, runs);
    keep(a, keys, runs);
    keep(a, starts, runs);
    keep(a, lengths, runs);
}

/* One value, one value an element, and keys that are merged step by step. */
static UNUSED_FN void folds(struct attempt *a, int v) {
    wf_array x[2] = {in(a, WF_ELEM_I32, words, rows), in(a, WF_ELEM_I32, few, rows)};
    wf_array best = out(a, WF_ELEM_I32, 1);
    MUST(wf_prim_reduce(prim, a->place, v ? WF_FOLD_MAX : WF_FOLD_MIN, best, x[0], NULL));
    keep(a, best, 1);
    wf_array less = out(a, WF_ELEM_BOOL, rows);
    MUST(wf_prim_map(prim, a->place, v ? "LT_I32" : "GE_I32", less, x, 2, NULL));
    keep(a, less, rows);
    wf_array none = prim_array(WF_ELEM_U32, NULL, 0);
    wf_array merged = out(a, WF_ELEM_F32, rows + more);
    MUST(wf_prim_merge(prim, a->place, merged, in(a, WF_ELEM_F32, ascending, rows),
                       in(a, WF_ELEM_F32, v ? apart : others, more), none, none, none, NULL));
    keep(a, merged, rows + more);
}

static UNUSED_FN void sets(struct attempt *a, int v) {
    wf_set_how how = {.op = (wf_set_op)(v & 3), .distinct = v >> 2 & 1};
    wf_elem type = v & 8 ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_array x = in(a, type, v & 8 ? (void *)wide_ascending : (void *)ascending, rows);
    wf_array y = in(a, type, v & 8 ? (void *)wide_others : (void *)(v & 2 ? apart : others), more);
    wf_array to = out(a, type, rows + more);
    int64_t count = 0;
    MUST(wf_prim_set(prim, a->place, &how, to, x, y, &count, NULL));
    keep_count(a, count);
    keep(a, to, count);
}

/* --- joins --- */

static void join(struct attempt *a, const wf_join_spec *spec) {
    int64_t room = 40000;
    wf_join_out to = {.r_rows = out(a, WF_ELEM_U32, room)};
    if (spec->kind <= WF_JOIN_LEFT) {
        to.s_rows = out(a, WF_ELEM_U32, room);
    }
    int64_t count = 0;
    MUST(wf_prim_join(prim, a->place, spec, &to, &count));
    keep_count(a, count);
    keep_rows(a, to.r_rows, spec->kind <= WF_JOIN_LEFT ? &to.s_rows : NULL, count);
}

static UNUSED_FN void joins(struct attempt *a, int v) {
    wf_join_spec spec = {.algorithm = (wf_join_algorithm)(1 + v % 7),
                         .kind = (wf_join_kind)(v / 7 % 4),
                         .sequential = v / 7 & 1,
                         .want_rows = 1};
    bool repeat = v / 28 & 1;
    if (v & 1 && spec.algorithm != WF_JOIN_DIRECT) {
        spec.r.keys = in(a, WF_ELEM_U64, wide_few, rows);
        spec.s.keys = in(a, WF_ELEM_U64, repeat ? wide_few + 300 : wide, more);
    } else {
        spec.r.keys = in(a, WF_ELEM_U32, few, rows);
        spec.s.keys = in(a, WF_ELEM_U32, repeat ? others : few + 300, repeat ? more : 60);
    }
    join(a, &spec);
}

static UNUSED_FN void unique_joins(struct attempt *a, int v) {
    uint32_t keys[OTHERS];
    for (uint32_t i = 0; i < (uint32_t)more; i++) {
        keys[i] = v & 1 ? i * 2654435761u : i * 2;
    }
    wf_join_spec spec = {.algorithm = v & 1 ? WF_JOIN_PLAIN_HASH : WF_JOIN_DIRECT,
                         .kind = (wf_join_kind)(v / 2),
                         .want_rows = 1};
    spec.r.keys = in(a, WF_ELEM_U32, v & 1 ? keys : few, v & 1 ? more : rows);
    spec.s.keys = in(a, WF_ELEM_U32, keys, more - 300);
    join(a, &spec);
}

static UNUSED_FN void text_joins(struct attempt *a, int v) {
    wf_join_spec spec = {.kind = (wf_join_kind)v, .want_rows = 1};
    spec.r.keys = texts(a, other_spans, 700);
    spec.s.keys = texts(a, spans, more);
    join(a, &spec);
}

/* --- relations --- */

static wf_relation relation(struct attempt *a, wf_elem word, const void *data, int64_t count,
                            bool pages) {
    wf_relation r = {.word = word, .field_count = 2, .key_count = 1, .count = count};
    r.bits[0] = 20;
    r.bits[1] = word == WF_ELEM_U32 ? 12 : 30;
    if (!pages) {
        r.data = lay(a, data, (size_t)count * width_of(word));
        return r;
    }
    uint32_t fills[1000] = {0};
    size_t width = width_of(word);
    uint8_t *image = calloc(1000 * 16, width);
    int64_t done = 0;
    r.form = WF_PAGED;
    r.page_rows = 16;
    while (done < count) {
        int64_t want = r.page_count % 3 == 0 ? 16 : r.page_count % 3 == 1 ? 9 : 0;
        want = want < count - done ? want : count - done;
        memcpy(image + (size_t)r.page_count * 16 * width,
               (const uint8_t *)data + (size_t)done * width, (size_t)want * width);
        fills[r.page_count++] = (uint32_t)want;
        done += want;
    }
    r.data = lay(a, image, (size_t)r.page_count * 16 * width);
    r.fills = lay(a, fills, (size_t)r.page_count * 4);
    free(image);
    return r;
}
static wf_relation relation_room(struct attempt *a, wf_elem word, int64_t room) {
    return (wf_relation){
        .word = word, .room = room, .data = lay(a, NULL, (size_t)room * width_of(word))};
}
static void keep_relation(struct attempt *a, const wf_relation *r) {
    keep_count(a, r->count);
    keep(a, prim_array(r->word, r->data, 0), 0);
    fetch(a, append(a, (size_t)r->count * width_of(r->word)), r->data,
          (size_t)r->count * width_of(r->word));
}

/* Sorted tuples of a key that repeats, or of keys that are all above those of the other side. */
static void tuples(uint32_t *x, uint64_t *y, int64_t count, const uint32_t *keys, int seed) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t rest = (uint32_t)(i * 37 + seed) & 2047;
        x[i] = keys[i] % (1 << 20) << 12 | rest;
        y[i] = (uint64_t)(keys[i] % (1 << 20)) << 44 | (uint64_t)rest << 14;
    }
}

static UNUSED_FN void relations(struct attempt *a, int v) {
    static uint32_t x4[TUPLES], y4[FEWER];
    static uint64_t x8[TUPLES], y8[FEWER];
    tuples(x4, x8, TUPLES, sorted_keys, 5);
    tuples(y4, y8, FEWER, v & 4 ? higher_keys : other_keys, 9);
    bool wider = v & 1;
    wf_elem word = wider ? WF_ELEM_U64 : WF_ELEM_U32;
    wf_relation x = relation(a, word, wider ? (void *)x8 : (void *)x4, TUPLES, v & 2);
    wf_relation y = relation(a, word, wider ? (void *)y8 : (void *)y4, FEWER, v & 2);
    for (int set = 0; set < 3; set++) {
        wf_relation to = relation_room(a, word, TUPLES + FEWER);
        MUST(wf_prim_rel_set(prim, a->place, (wf_rel_set)set, &to, &x, &y, NULL));
        keep_relation(a, &to);
    }
    wf_relation keys = relation_room(a, word, TUPLES);
    wf_array values = out(a, WF_ELEM_U64, TUPLES);
    MUST(wf_prim_rel_reduce(prim, a->place, (wf_reduce)(v & 3), 1, &keys, values, &x, NULL));
    keep_relation(a, &keys);
    keep(a, values, keys.count);
    const wf_term terms[] = {{0, WF_COMPARE_LT, 200, 0}, {1, WF_COMPARE_GE, 700, 1}};
    wf_relation kept = relation_room(a, word, TUPLES);
    MUST(wf_prim_rel_select(prim, a->place, &kept, &x, terms, 2, 0, NULL));
    keep_relation(a, &kept);
    wf_relation swapped = relation_room(a, word, TUPLES);
    const int fields[] = {1, 0};
    MUST(wf_prim_rel_project(prim, a->place, &swapped, &x, fields, 2, NULL));
    keep_relation(a, &swapped);
}

static UNUSED_FN void relation_joins(struct attempt *a, int v) {
    static uint32_t x4[TUPLES], y4[FEWER];
    static uint64_t x8[TUPLES], y8[FEWER];
    tuples(x4, x8, TUPLES, sorted_keys, 5);
    tuples(y4, y8, FEWER, v % 5 > 2 ? higher_keys : other_keys, 9);
    wf_rel_join how = {.stage = (wf_join_stage)(v % 6), .missing = v & 1, .profile = v & 1};
    how.kind = (wf_rel_kind)(how.stage == WF_STAGE_MERGE ? v / 6 % 4 : v / 6 % 2);
    wf_relation x = relation(a, WF_ELEM_U32, x4, TUPLES, v / 12 & 1);
    wf_relation y = relation(a, WF_ELEM_U32, y4, FEWER, v / 12 & 1);
    wf_relation to = relation_room(a, WF_ELEM_U64, 20000);
    MUST(wf_prim_rel_join(prim, a->place, &how, &to, &x, &y, NULL));
    keep_relation(a, &to);
}

/* Outputs with too little room: the number that was needed is told, and nothing is written behind
 * them. */
static UNUSED_FN void no_room(struct attempt *a, int v) {
    static uint32_t x4[TUPLES];
    static uint64_t x8[TUPLES];
    tuples(x4, x8, TUPLES, sorted_keys, 5);
    wf_relation x = relation(a, WF_ELEM_U32, x4, TUPLES, v & 1);
    wf_relation to = relation_room(a, WF_ELEM_U32, 100);
    wf_relation wider = relation_room(a, WF_ELEM_U64, 100);
    wf_array values = out(a, WF_ELEM_U64, 90);
    const int fields[] = {0};
    const wf_rel_join how = {.kind = WF_REL_INNER};
    assert_prim_error(wf_prim_rel_project(prim, a->place, &to, &x, fields, 1, NULL), "54000");
    keep_count(a, to.count);
    assert_prim_error(wf_prim_rel_select(prim, a->place, &to, &x, NULL, 0, 0, NULL), "54000");
    keep_count(a, to.count);
    assert_prim_error(wf_prim_rel_convert(prim, a->place, &to, &x, NULL), "54000");
    keep_count(a, to.count);
    assert_prim_error(wf_prim_rel_product(prim, a->place, &wider, &x, &x, NULL), "54000");
    keep_count(a, wider.count);
    assert_prim_error(wf_prim_rel_set(prim, a->place, WF_INTERSECTION, &to, &x, &x, NULL), "54000");
    keep_count(a, to.count);
    assert_prim_error(wf_prim_rel_join(prim, a->place, &how, &wider, &x, &x, NULL), "54000");
    keep_count(a, wider.count);
    assert_prim_error(wf_prim_rel_reduce(prim, a->place, WF_REDUCE_COUNT, 0, &to, values, &x, NULL),
                      "54000");
    keep_count(a, to.count);
}

#endif

/* test_cpu_ops.c: every vector loop of every processor level against the scalar evaluator.
 *
 * Operands are random with many edge values; each opcode runs dense, with a constant second
 * operand, and over a selection, and must give the same value and the same fault for every row as
 * op_eval. */
#include "test_cpu_fixture.h"

#include "host/eval.h"

#include <math.h>

#include "codes/op.h"
#include "cpu/vec.h"

enum { N = 203 };

struct level {
    const char *name;
    enum cpu_level level;
    const struct vec_table *table;
};

static const struct level levels[] = {{"baseline", CPU_BASELINE, &vec_table_baseline},
                                      {"avx2", CPU_AVX2, &vec_table_avx2},
                                      {"avx512", CPU_AVX512, &vec_table_avx512}};

static const char *const words[] = {"",           "a",   "ab",   "abc",         "abcd",
                                    "abcde",      "abd", "%b%",  "a_c",         "%",
                                    "_",          "Abc", "a\\%", "caf\xc3\xa9", "\xc3\xa9t\xc3\xa9",
                                    "zzzzzzzzzz", "%e",  "abcdf"};

static i64 edge_i64(u64 *seed) {
    static const i64 edges[] = {0, 1, -1, 2, I32_MAX, I32_MIN, I64_MAX, I64_MIN, 1000000, -7};
    u64 r = fix_random(seed);
    switch (r & 3) {
    case 0:
        return edges[(r >> 8) % COUNT_OF(edges)];
    case 1:
        return (i64)(r >> 8) % 100 - 50;
    case 2:
        return (i64)(r >> 30);
    default:
        return (i64)fix_random(seed);
    }
}

static f64 edge_f64(u64 *seed) {
    static const f64 edges[] = {0.0, -0.0, 1.0, -1.5, 1e308, -1e308, 1e-308, 0.5, 2.5, 9.3e18};
    u64 r = fix_random(seed);
    switch (r & 3) {
    case 0:
        return edges[(r >> 8) % COUNT_OF(edges)];
    case 1:
        return (f64)((i64)(r >> 8) % 2000 - 1000) / 8;
    case 2:
        return (r >> 9) % 16 ? (f64)(i64)r : (f64)NAN;
    default:
        return (f64)(i64)fix_random(seed) * 1e-9;
    }
}

static union lit random_value(u8 kind, u64 *seed) {
    union lit v;
    memset(&v, 0, sizeof v);
    switch (kind) {
    case KIND_B8:
        v.b8 = (b8)(fix_random(seed) & 1);
        break;
    case KIND_I32:
        v.i32 = (i32)edge_i64(seed);
        break;
    case KIND_I64:
        v.i64 = edge_i64(seed);
        break;
    case KIND_I128:
        v.i128 = (i128)edge_i64(seed);
        if (fix_random(seed) % 3 == 0) {
            v.i128 = (i128)((u128)v.i128 * (u128)(u64)fix_random(seed)) / 4;
        }
        break;
    case KIND_F32:
        v.f32 = (f32)edge_f64(seed);
        break;
    case KIND_F64:
        v.f64 = edge_f64(seed);
        break;
    default:
        v.str = str_from(sv_from(words[fix_random(seed) % (u64)COUNT_OF(words)]));
        break;
    }
    return v;
}

/* Operands stay within what the opcode promises to accept. */
static union lit operand(u16 code, u32 which, u8 kind, u64 *seed) {
    union lit v = random_value(kind, seed);
    bool shifts = code == OP_SHL_I64 || code == OP_SHR_I64;
    if (shifts && which == 1) {
        v.i64 = (i64)(fix_random(seed) % 64);
    }
    if ((code == OP_DIVDEC_I128 && which == 2) ||
        ((code == OP_DEC_F64 || code == OP_DEC_F32) && which == 1)) {
        v.i32 = (i32)(fix_random(seed) % 20);
    }
    if (code == OP_FLIMB_F64 && which > 0) {
        v.i32 = which == 1 ? -1074 : (i32)(fix_random(seed) % 66);
    }
    if (code == OP_RAISE_B8) {
        v.b8 = (b8)(fix_random(seed) % FAULT_COUNT);
    }
    if (code == OP_YEAR_I32 || code == OP_MONTH_I32 || code == OP_DAY_I32) {
        v.i32 = (i32)(fix_random(seed) % 2000000) - 1000000;
    }
    return v;
}

static bool same(u8 kind, const void *a, const union lit *b) {
    switch (kind) {
    case KIND_STR:
        return sv_eq(sv_of(*(const str *)a), sv_of(b->str));
    case KIND_F32: {
        f32 x = *(const f32 *)a;
        return memcmp(a, b, 4) == 0 || (x != x && b->f32 != b->f32);
    }
    case KIND_F64: {
        f64 x = *(const f64 *)a;
        return memcmp(a, b, 8) == 0 || (x != x && b->f64 != b->f64);
    }
    default:
        return memcmp(a, b, kind_bytes[kind]) == 0;
    }
}

struct vectors {
    _Alignas(64) u8 operand[3][N * 16 + 64];
    _Alignas(64) u8 out[N * 16 + 64];
    u8 fault[N + 64];
    u32 sel[N + 64];
    i64 m;
    union lit values[3][N];
};

static void put(u8 *to, u8 kind, i64 i, const union lit *v) {
    memcpy(to + i * kind_bytes[kind], v, kind_bytes[kind]);
}

static void fill_operands(struct vectors *v, u16 code, u64 *seed) {
    const struct op_info *info = &op_infos[code];
    for (u32 o = 0; o < info->arity; o++) {
        for (i64 i = 0; i < N; i++) {
            v->values[o][i] = operand(code, o, info->operands[o], seed);
            put(v->operand[o], info->operands[o], i, &v->values[o][i]);
        }
    }
    v->m = 0;
    for (i64 i = 0; i < N; i++) {
        v->sel[v->m] = (u32)i;
        v->m += (i64)(fix_random(seed) & 1);
    }
}

/* Rows sel[0..m), or all when sel is NULL; b of every row is b_const where given. */
static void check_rows(const struct vectors *v, u16 code, const char *what, const u32 *sel, i64 m,
                       const union lit *b_const, struct arena *arena) {
    const struct op_info *info = &op_infos[code];
    for (i64 j = 0; j < m; j++) {
        i64 i = sel ? (i64)sel[j] : j;
        union lit want;
        memset(&want, 0, sizeof want);
        union lit b = b_const ? *b_const : v->values[1][i];
        u8 fault = op_eval(code, &want, v->values[0][i], b, v->values[2][i], arena);
        if (info->flags & OP_FAULTS) {
            if (fault != v->fault[i]) {
                fail_msg("%s %s row %lld: fault %d, not %d", info->name, what, i, v->fault[i],
                         fault);
            }
        }
        if (fault == 0 && !same(info->result, v->out + i * kind_bytes[info->result], &want)) {
            fail_msg("%s %s row %lld differs", info->name, what, i);
        }
    }
}

static void check_opcode(const struct level *level, u16 code, u64 *seed, struct arena *arena) {
    static struct vectors v;
    struct vec_loops t = vec_loops_of(level->table, code);
    char what[64];
    memset(&v.values, 0, sizeof v.values);
    fill_operands(&v, code, seed);
    assert_non_null(t.dense);
    memset(v.fault, 0, sizeof v.fault);
    u8 any = t.dense(v.out, v.operand[0], v.operand[1], v.operand[2], N, v.fault);
    u8 seen = 0;
    for (i64 i = 0; i < N; i++) {
        seen |= v.fault[i];
    }
    assert_int_equal(any, seen);
    snprintf(what, sizeof what, "%s dense", level->name);
    check_rows(&v, code, what, NULL, N, NULL, arena);
    if (t.dense_const) {
        snprintf(what, sizeof what, "%s constant", level->name);
        memset(v.fault, 0, sizeof v.fault);
        t.dense_const(v.out, v.operand[0], &v.values[1][7], v.operand[2], N, v.fault);
        check_rows(&v, code, what, NULL, N, &v.values[1][7], arena);
    }
    if (t.sel) {
        snprintf(what, sizeof what, "%s selected", level->name);
        memset(v.fault, 0, sizeof v.fault);
        t.sel(v.out, v.operand[0], v.operand[1], v.operand[2], v.sel, v.m, v.fault);
        check_rows(&v, code, what, v.sel, v.m, NULL, arena);
    }
}

static void test_every_opcode(void **state) {
    UNUSED(state);
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    for (i64 l = 0; l < COUNT_OF(levels) && levels[l].level <= cpu_level(); l++) {
        u64 seed = 1;
        for (u16 code = 0; code < OP_COUNT; code++) {
            u16 flags = op_infos[code].flags;
            bool looped =
                !(flags & OP_RARE) || vec_loops_of(levels[l].table, code).dense; /* few are */
            if (flags & (OP_CONTROL | OP_HOST | OP_MAKES) || !looped) {
                continue;
            }
            for (i32 round = 0; round < 4; round++) {
                check_opcode(&levels[l], code, &seed, &arena);
            }
            arena_reset(&arena);
        }
    }
    arena_fini(&arena);
}

static void test_selections(void **state) {
    UNUSED(state);
    enum { ROWS = 1500 };
    static b8 mask[ROWS + 64];
    static u32 sel[ROWS + 64], fine[ROWS + 64];
    static const i64 sizes[] = {0, 1, 3, 31, 32, 63, 64, 65, 1000, 1024, ROWS};
    for (i64 l = 0; l < COUNT_OF(levels) && levels[l].level <= cpu_level(); l++) {
        const struct vec_table *t = levels[l].table;
        u64 seed = 5;
        for (i64 s = 0; s < COUNT_OF(sizes); s++) {
            for (u64 share = 0; share <= 8; share++) {
                i64 want = 0;
                for (i64 i = 0; i < sizes[s]; i++) {
                    mask[i] = fix_random(&seed) % 8 < share;
                    fine[want] = (u32)i;
                    want += mask[i];
                }
                assert_int_equal(t->sel_build(sel, mask, sizes[s]), want);
                assert_memory_equal(sel, fine, (size_t)want * sizeof(u32));
                for (i64 i = 0; i < sizes[s]; i++) {
                    mask[i] = fix_random(&seed) & 1;
                }
                i64 kept = t->sel_refine(fine, sel, want, mask);
                i64 at = 0;
                for (i64 j = 0; j < want; j++) {
                    if (mask[sel[j]]) {
                        assert_int_equal(fine[at++], sel[j]);
                    }
                }
                assert_int_equal(at, kept);
            }
        }
    }
}

static void test_decoders(void **state) {
    UNUSED(state);
    enum { ROWS = 100 };
    static const u8 kinds[] = {KIND_I32, KIND_I64, KIND_I128};
    static _Alignas(64) u8 data[ROWS * 16 + 64], out[ROWS * 16 + 64];
    u32 pos[ROWS];
    u64 seed = 9;
    for (i64 l = 0; l < COUNT_OF(levels) && levels[l].level <= cpu_level(); l++) {
        for (u32 w = 0; w < VEC_WIDTHS; w++) {
            for (u32 k = 0; k < 3; k++) {
                i64 bytes = 1LL << w;
                i64 limit = w == 0 ? 250 : 60000;
                for (i64 i = 0; i < ROWS; i++) {
                    u128 value = (u128)(fix_random(&seed) % (u64)limit);
                    memcpy(data + i * bytes, &value, (size_t)bytes);
                    pos[i] = (u32)(fix_random(&seed) % ROWS);
                }
                for (i32 at = 0; at < 2; at++) {
                    if (at) {
                        levels[l].table->decode_at[0][w][kinds[k]](out, data, -1000, pos, ROWS);
                    } else {
                        levels[l].table->decode[0][w][kinds[k]](out, data, -1000, ROWS);
                    }
                    for (i64 i = 0; i < ROWS; i++) {
                        i128 want = 0;
                        i128 got = 0;
                        memcpy(&want, data + (at ? (i64)pos[i] : i) * bytes, (size_t)bytes);
                        i64 low = 0;
                        i32 low32 = 0;
                        if (kinds[k] == KIND_I128) {
                            memcpy(&got, out + i * 16, 16);
                        } else if (kinds[k] == KIND_I64) {
                            memcpy(&low, out + i * 8, 8);
                            got = low;
                        } else {
                            memcpy(&low32, out + i * 4, 4);
                            got = low32;
                        }
                        assert_true(got == want - 1000);
                    }
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_opcode),
                                       cmocka_unit_test(test_selections),
                                       cmocka_unit_test(test_decoders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

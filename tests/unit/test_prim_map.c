/* test_prim_map.c: every opcode that maps gives on both devices what the scalar evaluator gives;
 * sizes, single operands, faults, refusals. */
#include "test_prim_fixture.h"

#include "codes/op.h"
#include "defs/ops.h"
#include "host/eval.h"

static const wf_elem kind_elem[] = {
    [KIND_B8] = WF_ELEM_BOOL,   [KIND_I32] = WF_ELEM_I32, [KIND_I64] = WF_ELEM_I64,
    [KIND_I128] = WF_ELEM_U128, [KIND_F32] = WF_ELEM_F32, [KIND_F64] = WF_ELEM_F64,
    [KIND_STR] = WF_ELEM_TEXT};
static const int width_of[] = {[KIND_B8] = 1,  [KIND_I32] = 4, [KIND_I64] = 8, [KIND_I128] = 16,
                               [KIND_F32] = 4, [KIND_F64] = 8, [KIND_STR] = 16};

enum { N = 61 };
static const char words[] = "alpha beta  Gamma%_de lta";

/* Operands within what every opcode's contract allows: small and not negative where that matters.
 */
static void fill_operand(int kind, int no, void *to, union lit *lits) {
    for (int i = 0; i < N; i++) {
        int64_t x = i * 7 % 23 + (no == 0 ? 0 : 1);
        memset(&lits[i], 0, sizeof lits[i]);
        switch (kind) {
        case KIND_B8:
            lits[i].b8 = (b8)(x & 1);
            break;
        case KIND_I32:
            lits[i].i32 = (i32)x;
            break;
        case KIND_I64:
            lits[i].i64 = x;
            break;
        case KIND_I128:
            lits[i].i128 = x;
            break;
        case KIND_F32:
            lits[i].f32 = (float)x * 0.25f;
            break;
        case KIND_F64:
            lits[i].f64 = (double)x * 0.03125;
            break;
        default: {
            uint64_t offset = (uint64_t)(x % 20);
            uint64_t length = (uint64_t)(i % 5);
            ((wf_span *)to)[i] = (wf_span){offset, length};
            const u8 *at = (const u8 *)words + offset;
            u32 prefix = 0;
            for (uint64_t k = 0; k < 4; k++) {
                prefix = prefix << 8 | (k < length ? at[k] : 0);
            }
            lits[i].str = (str){(u32)length, prefix, (u64)(size_t)at};
            continue;
        }
        }
        memcpy((char *)to + i * width_of[kind], &lits[i], (size_t)width_of[kind]);
    }
}

static int check_opcode(wf_place place, u16 code) {
    const struct op_info *info = &op_infos[code];
    static _Alignas(16) char data[3][N * 16], out[N * 16];
    static union lit lits[3][N];
    wf_array in[3];
    uint8_t first_fault = 0;
    for (int k = 0; k < info->arity; k++) {
        fill_operand(info->operands[k], k, data[k], lits[k]);
        in[k] = prim_array(kind_elem[info->operands[k]], data[k], N);
        in[k].bytes = in[k].type == WF_ELEM_TEXT ? words : NULL;
        in[k].byte_count = in[k].type == WF_ELEM_TEXT ? (int64_t)sizeof words - 1 : 0;
    }
    wf_status status =
        wf_prim_map(prim, place, info->name, prim_array(kind_elem[info->result], out, N), in,
                    info->arity, NULL);
    int width = width_of[info->result];
    for (int i = 0; i < N && !first_fault; i++) {
        union lit want = {0};
        first_fault = op_eval(code, &want, lits[0][i], lits[1][i], lits[2][i], NULL);
        if (!first_fault && !status && memcmp(&want, out + i * width, (size_t)width) != 0) {
            fail_msg("%s on %s: element %d", info->name, place ? "gpu" : "cpu", i);
        }
    }
    if ((status != WF_OK) != (first_fault != 0)) {
        fail_msg("%s on %s: %s", info->name, place ? "gpu" : "cpu", wf_prim_error(prim)->message);
    }
    return 1;
}

/* All of them on the CPU; on the GPU every opcode is a compilation, so a few of each part there. */
static void test_opcodes(void **state) {
    (void)state;
    static const char *const some[] = {
        "NEG_I32",   "ADD_I64",    "MUL_I128",  "LT_F32",   "SEL_F64",    "DIV_I32",
        "ADDX_I128", "EQN_F64",    "YEAR_I32",  "F64_I128", "LENGTH_STR", "EQ_STR",
        "LIKE_STR",  "EXP_F64",    "PART_DATE", "TS_ADD",   "STRPOS_STR", "NOT_B8",
        "DEC_F64",   "BITXOR_I64", "FLIMB_F64", "SEL_I128"};
    int mapped = 0;
    for (u16 code = 0; code < OP_COUNT; code++) {
        const struct op_info *info = &op_infos[code];
        bool maps = !(info->flags & (OP_CONTROL | OP_MAKES)) && info->expr &&
                    info->result != KIND_STR && strcmp(info->name, "RAISE_B8") != 0;
        mapped += maps ? check_opcode(WF_ON_CPU, code) : 0;
        for (size_t s = 0; prim_has_gpu && s < sizeof some / sizeof *some; s++) {
            bool all = getenv("PRIM_TEST_OPCODES") != NULL;
            if (maps && (all ? s == 0 : strcmp(some[s], info->name) == 0)) {
                check_opcode(WF_ON_GPU, code);
            }
        }
    }
    assert_true(mapped > 150);
}

static void check_add(wf_place place, int64_t n) {
    int64_t *a = malloc((size_t)n * 8 + 8);
    int64_t *b = malloc((size_t)n * 8 + 8);
    int64_t *out = malloc((size_t)n * 8 + 16);
    uint64_t seed = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        a[i] = (int64_t)(prim_random(&seed) >> 2);
        b[i] = (int64_t)(prim_random(&seed) >> 2);
    }
    out[n] = 77;
    wf_array in[2] = {prim_array(WF_ELEM_I64, a, n), prim_array(WF_ELEM_I64, b, n)};
    assert_prim_ok(
        wf_prim_map(prim, place, "ADDX_I64", prim_array(WF_ELEM_I64, out, n + 1), in, 2, NULL));
    for (int64_t i = 0; i < n; i++) {
        assert_true(out[i] == a[i] + b[i]);
    }
    assert_true(out[n] == 77);
    if (n > 1) {
        in[1].count = 1; /* serves all; and in place */
        in[0].data = out;
        in[0].count = n;
        assert_prim_ok(
            wf_prim_map(prim, place, "SUB_I64", prim_array(WF_ELEM_U64, out, n), in, 2, NULL));
        for (int64_t i = 0; i < n; i++) {
            assert_true(out[i] == a[i] + b[i] - b[0]);
        }
        a[n / 2] = INT64_MAX;
        a[n - 1] = INT64_MAX;
        in[0] = prim_array(WF_ELEM_I64, a, n);
        in[1] = prim_array(WF_ELEM_I64, b, n);
        b[n / 2] = b[n - 1] = 1;
        assert_prim_error(
            wf_prim_map(prim, place, "ADDX_I64", prim_array(WF_ELEM_I64, out, n), in, 2, NULL),
            "22003");
        char told[40];
        snprintf(told, sizeof told, "(element %lld)", (long long)(n / 2));
        assert_non_null(strstr(wf_prim_error(prim)->message, told));
    }
    free(a);
    free(b);
    free(out);
}

static void test_sizes(void **state) {
    (void)state;
    for (int place = 0; place < prim_places(); place++) {
        for (int s = 0; s < PRIM_SIZES; s++) {
            check_add((wf_place)place, prim_sizes[s]);
        }
        check_add((wf_place)place, prim_test_max(1000000));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opcodes),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, prim_setup, prim_teardown);
}

/* test_defs.c: types, ranges, faults, the opcode table, its evaluator and the settings. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "defs/ops.h"
#include "codes/op.h"
#include "defs/settings.h"
#include "host/eval.h"

static struct memory mem;
static struct arena arena;

static int set_up(void **state) {
    UNUSED(state);
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    return 0;
}

static int tear_down(void **state) {
    UNUSED(state);
    arena_fini(&arena);
    return atomic_load(&mem.used_bytes) != 0;
}

static void check_type(const char *name, const char *want) {
    struct type t;
    char buf[32];
    if (!want) {
        assert_false(type_parse(sv_from(name), &t));
        return;
    }
    assert_true(type_parse(sv_from(name), &t));
    assert_string_equal(type_print(t, buf), want);
}

static void test_types(void **state) {
    UNUSED(state);
    check_type("bool", "boolean");
    check_type("INT2", "smallint");
    check_type("int4", "integer");
    check_type("int", "integer");
    check_type("int8", "bigint");
    check_type("float4", "real");
    check_type("float8", "double precision");
    check_type("float", "double precision");
    check_type("float(24)", "real");
    check_type("double precision", "double precision");
    check_type("numeric", "decimal");
    check_type("numeric(12, 2)", "decimal(12,2)");
    check_type("decimal(38)", "decimal(38,0)");
    check_type("varchar(10)", "varchar(10)");
    check_type("character varying", "text");
    check_type("bpchar", "char");
    check_type("char(5)", "char(5)");
    check_type("timestamp(3)", "timestamp(3)");
    check_type("timestamptz", "timestamp with time zone");
    check_type("interval", "interval");
    check_type("bytea", "blob");
    check_type("uuid", "uuid");
    check_type("text", "text");
    check_type("date", "date");
    check_type("decimal(39,2)", NULL);
    check_type("decimal(5,6)", NULL);
    check_type("decimal(1,2,3)", NULL);
    check_type("varchar(0)", NULL);
    check_type("int(4)", NULL);
    check_type("decimal(5", NULL);
    check_type("jsonb", NULL);
    struct type plain;
    assert_true(type_parse(SV("numeric"), &plain) && plain.precision == 0);

    assert_int_equal(type_kind(type_of(TYPE_SMALLINT)), KIND_I32);
    assert_int_equal(type_kind(type_of(TYPE_DATE)), KIND_I32);
    assert_int_equal(type_kind(type_decimal(18, 2)), KIND_I64);
    assert_int_equal(type_kind(type_decimal(19, 2)), KIND_I128);
    assert_int_equal(type_kind(type_of(TYPE_TEXT)), KIND_STR);
    assert_int_equal(type_oid(type_of(TYPE_BIGINT)), 20);
    assert_true(type_is_numeric(type_of(TYPE_REAL)) && !type_is_exact(type_of(TYPE_REAL)));
    assert_true(type_is_exact(type_decimal(5, 2)) && !type_is_integer(type_decimal(5, 2)));
    assert_false(type_eq(type_decimal(5, 2), type_decimal(5, 1)));
    assert_int_equal(kind_bytes[KIND_I128], 16);
    assert_string_equal(kind_names[KIND_I64], "i64");
    assert_string_equal(encoding_names[ENC_DICT], "dict");
    assert_int_equal(fault_error(FAULT_DIV0), ERR_DIVISION_BY_ZERO);
    assert_string_equal(fault_message(FAULT_INTEGER), "integer out of range");
    assert_int_equal(fault_error(250), ERR_INTERNAL);
}

static void test_ranges(void **state) {
    UNUSED(state);
    struct range a = range_of_value(5), b = range_of_value((i128)1 << 40);
    struct range u = range_union(a, b);
    assert_true(u.lo == 5 && u.hi == (i128)1 << 40);
    assert_true(range_within(a, u) && range_within(b, u) && !range_within(u, a));
    struct range empty = {.lo = 1, .hi = 0};
    assert_true(range_within(empty, a) && range_union(empty, a).hi == 5 &&
                range_union(a, empty).lo == 5);
    assert_int_equal(range_kind(a), KIND_I32);
    assert_int_equal(range_kind(b), KIND_I64);
    assert_int_equal(range_kind(range_of_type(type_decimal(30, 2))), KIND_I128);
    assert_int_equal(range_kind(range_of_type(type_of(TYPE_BIGINT))), KIND_I64);
    assert_int_equal(range_kind(empty), KIND_I32);
    assert_true(range_of_type(type_decimal(3, 1)).hi == 999);
    assert_true(
        range_within(range_of_type(type_of(TYPE_REAL)), range_of_type(type_of(TYPE_DOUBLE))));
    assert_true(pow10_i128(38) / pow10_i128(37) == 10 && pow10_i128(0) == 1);
}

static void check_print(struct type t, enum kind kind, const void *value, const char *want) {
    char buf[65];
    buf[value_print(t, kind, value, buf)] = 0;
    assert_string_equal(buf, want);
}

static void test_print(void **state) {
    UNUSED(state);
    i32 i = -1250;
    i64 l = 123456;
    i128 w = -((i128)1 << 100);
    f64 d = 2.5;
    f32 s = 0.1f;
    b8 t = 1;
    check_print(type_of(TYPE_INTEGER), KIND_I32, &i, "-1250");
    check_print(type_decimal(6, 2), KIND_I32, &i, "-12.50");
    check_print(type_decimal(18, 3), KIND_I64, &l, "123.456");
    check_print(type_decimal(38, 0), KIND_I128, &w, "-1267650600228229401496703205376");
    check_print(type_of(TYPE_DATE), KIND_I32, &i, "1966-07-31");
    check_print(type_of(TYPE_DOUBLE), KIND_F64, &d, "2.5");
    check_print(type_of(TYPE_REAL), KIND_F32, &s, "0.1");
    check_print(type_of(TYPE_BOOLEAN), KIND_B8, &t, "true");
}

static void test_op_table(void **state) {
    UNUSED(state);
    for (i32 i = 0; i < OP_COUNT; i++) {
        const struct op_info *info = &op_infos[i];
        assert_non_null(info->name);
        assert_non_null(info->text);
        assert_non_null(info->part);
        bool control = info->flags & OP_CONTROL, host = info->flags & OP_HOST;
        assert_int_equal(info->result == KIND_NONE, control);
        assert_int_equal(info->expr == NULL, host);
        assert_int_equal(info->arity > 0, !control);
        for (i32 k = 0; k < 3; k++) {
            assert_int_equal(info->operands[k] != KIND_NONE, k < info->arity);
        }
        bool makes = info->flags & OP_MAKES; /* which fault where they would be too long */
        if (info->expr && !control && !makes && info->flags & OP_FAULTS) {
            /* it must be able to say so */
            assert_true(strstr(info->expr, "f)") || strstr(info->expr, "*f"));
        }
    }
    assert_string_equal(op_infos[OP_ADD_I32].expr, "(i32)((u32)a + (u32)b)");
    assert_string_equal(op_infos[OP_SEL_F64].expr, "(a ? b : c)");
    assert_string_equal(op_infos[OP_MULX_I64].expr, "fn_mulx_i64(a, b, f)");
    assert_string_equal(op_infos[OP_MULX_I64].part, "int");
    assert_string_equal(op_infos[OP_CHECK_SMALLINT].expr, "fn_check(a, b, c, FAULT_SMALLINT, f)");
    assert_int_equal(op_infos[OP_MULX_I64].cost, 8);
    assert_int_equal(op_infos[OP_LIKE_STR].operands[1], KIND_STR);
    assert_int_equal(op_infos[OP_UPPER_STR].flags, OP_RARE | OP_MAKES);
    assert_true(op_infos[OP_FROUND].flags & OP_FAULTS);
}

static union lit eval(u16 code, union lit a, union lit b, union lit c, u8 want_fault) {
    union lit out;
    assert_int_equal(op_eval(code, &out, a, b, c, &arena), want_fault);
    return out;
}

#define LIT(k, x) ((union lit){.k = (x)})
#define NONE LIT(b8, 0)
#define TEXT(s) LIT(str, str_from(SV(s)))

static void check_text(union lit got, const char *want) {
    assert_true(sv_eq(sv_of(got.str), sv_from(want)));
}

static void test_eval_numbers(void **state) {
    UNUSED(state);
    assert_int_equal(eval(OP_NOT_B8, LIT(b8, 1), NONE, NONE, 0).b8, 0);
    assert_int_equal(eval(OP_ANDN_B8, LIT(b8, 1), LIT(b8, 0), NONE, 0).b8, 1);
    assert_int_equal(eval(OP_NEG_I32, LIT(i32, I32_MIN), NONE, NONE, 0).i32, I32_MIN);
    assert_true(eval(OP_NEG_F64, LIT(f64, 2.5), NONE, NONE, 0).f64 == -2.5);
    assert_int_equal(eval(OP_ADD_I32, LIT(i32, I32_MAX), LIT(i32, 1), NONE, 0).i32, I32_MIN);
    assert_true(eval(OP_MUL_I128, LIT(i128, (i128)1 << 60), LIT(i128, 4), NONE, 0).i128 ==
                (i128)1 << 62);
    assert_true(eval(OP_HIGH_I64, LIT(i64, -5), NONE, NONE, 0).i64 == -1);
    assert_true(eval(OP_LOW_I64, LIT(i64, -5), NONE, NONE, 0).i64 == 4294967291LL);
    assert_true(eval(OP_JOIN_I64, LIT(i64, -1), LIT(i64, 4294967291LL), NONE, 0).i128 == -5);
    assert_int_equal(eval(OP_LT_I64, LIT(i64, -5), LIT(i64, 3), NONE, 0).b8, 1);
    assert_int_equal(eval(OP_EQ_F64, LIT(f64, -0.0), LIT(f64, 0), NONE, 0).b8, 1);
    assert_int_equal(eval(OP_LEN_F64, LIT(f64, (f64)NAN), LIT(f64, 1), NONE, 0).b8, 0);
    assert_int_equal(eval(OP_SEL_I32, LIT(b8, 1), LIT(i32, 7), LIT(i32, 9), 0).i32, 7);
    assert_int_equal(eval(OP_SEL_I32, LIT(b8, 0), LIT(i32, 7), LIT(i32, 9), 0).i32, 9);
    check_text(eval(OP_SEL_STR, LIT(b8, 0), TEXT("x"), TEXT("yy"), 0), "yy");
    eval(OP_ADDX_I32, LIT(i32, I32_MAX), LIT(i32, 1), NONE, FAULT_INTEGER);
    eval(OP_MULX_I64, LIT(i64, I64_MAX), LIT(i64, 2), NONE, FAULT_BIGINT);
    eval(OP_DIV_I32, LIT(i32, 1), LIT(i32, 0), NONE, FAULT_DIV0);
    assert_int_equal(eval(OP_DIV_I32, LIT(i32, -7), LIT(i32, 2), NONE, 0).i32, -3);
    assert_int_equal(eval(OP_MOD_I32, LIT(i32, -7), LIT(i32, 2), NONE, 0).i32, -1);
    eval(OP_CHECK_SMALLINT, LIT(i64, 40000), LIT(i64, -32768), LIT(i64, 32767), FAULT_SMALLINT);
    assert_true(eval(OP_DIVDEC_I128, LIT(i128, 1), LIT(i128, 8), LIT(i32, 2), 0).i128 == 13);
    assert_true(eval(OP_DEC_F64, LIT(f64, 1.005), LIT(i32, 2), NONE, 0).i128 == 101);
    assert_true(eval(OP_I64_F32, LIT(f32, 2.5f), NONE, NONE, 0).i64 == 2);
    eval(OP_F32_F64, LIT(f64, 1e300), NONE, NONE, FAULT_FLOAT_OVERFLOW);
    eval(OP_RAISE_B8, LIT(b8, FAULT_SUBSTRING), NONE, NONE, FAULT_SUBSTRING);
    eval(OP_RAISE_B8, LIT(b8, 0), NONE, NONE, 0);
    assert_int_equal(eval(OP_YEAR_I32, LIT(i32, 10957), NONE, NONE, 0).i32, 2000);
    assert_true(eval(OP_FLIMB_F64, LIT(f64, -3), LIT(i32, 0), LIT(i32, 0), 0).i64 == -3);
    assert_true(
        eval(OP_UNORD_F32, eval(OP_ORD_F32, LIT(f32, -1.5f), NONE, NONE, 0), NONE, NONE, 0).f32 ==
        -1.5f);
    assert_true(eval(OP_SHL_I64, LIT(i64, -1), LIT(i64, 8), NONE, 0).i64 == -256);
    assert_true(eval(OP_SHR_I64, LIT(i64, -1), LIT(i64, 56), NONE, 0).i64 == 255);
}

static void test_eval_text(void **state) {
    UNUSED(state);
    assert_int_equal(eval(OP_LENGTH_STR, TEXT("h\xc3\xa9"), NONE, NONE, 0).i32, 2);
    assert_int_equal(eval(OP_LIKE_STR, TEXT("warpfox"), TEXT("%fox"), NONE, 0).b8, 1);
    check_text(eval(OP_SUBSTR_STR, TEXT("warpfox"), LIT(i64, 5), LIT(i64, 2), 0), "fo");
    eval(OP_SUBSTR_STR, TEXT("warpfox"), LIT(i64, 5), LIT(i64, -2), FAULT_SUBSTRING);
    check_text(eval(OP_UPPER_STR, TEXT("fox\xc3\xa9"), NONE, NONE, 0), "FOX\xc3\x89");
    check_text(eval(OP_LOWER_STR, TEXT("FOX"), NONE, NONE, 0), "fox");
    check_text(eval(OP_CONCAT_STR, TEXT("warp"), TEXT("fox"), NONE, 0), "warpfox");
    check_text(eval(OP_CONCAT_STR, TEXT(""), TEXT(""), NONE, 0), "");
    check_text(eval(OP_FORMAT_I64, LIT(i64, -42), NONE, NONE, 0), "-42");
    check_text(eval(OP_FORMAT_DEC, LIT(i128, 5), LIT(i32, 2), NONE, 0), "0.05");
    check_text(eval(OP_FORMAT_F32, LIT(f32, 0.1f), NONE, NONE, 0), "0.1");
    check_text(eval(OP_FORMAT_F64, LIT(f64, 1e20), NONE, NONE, 0), "1e+20");
    check_text(eval(OP_FORMAT_DATE, LIT(i32, 0), NONE, NONE, 0), "1970-01-01");
    check_text(eval(OP_FORMAT_BOOL, LIT(b8, 0), NONE, NONE, 0), "false");
    assert_true(eval(OP_PARSE_INT, TEXT(" 12 "), NONE, NONE, 0).i64 == 12);
    eval(OP_PARSE_INT, TEXT("x"), NONE, NONE, FAULT_TEXT_INT);
    assert_true(eval(OP_PARSE_DEC, TEXT("1.255"), LIT(i32, 2), NONE, 0).i128 == 126);
    assert_true(eval(OP_PARSE_F64, TEXT("1e3"), NONE, NONE, 0).f64 == 1000);
    assert_true(eval(OP_PARSE_F32, TEXT("0.5"), NONE, NONE, 0).f32 == 0.5f);
    assert_int_equal(eval(OP_PARSE_BOOL, TEXT("yes"), NONE, NONE, 0).b8, 1);
    assert_int_equal(eval(OP_PARSE_DATE, TEXT("1970-01-02"), NONE, NONE, 0).i32, 1);
    eval(OP_PARSE_DATE, TEXT("1970-02-30"), NONE, NONE, FAULT_DATE_RANGE);
}

static struct error err;

static wf_status set(struct settings *s, const char *name, const char *value, bool opening) {
    error_reset(&err);
    return setting_set(s, sv_from(name), sv_from(value), opening, &err);
}

static void test_settings(void **state) {
    UNUSED(state);
    struct settings s;
    char buf[64];
    settings_init(&s);
    assert_true(s.device == DEVICE_AUTO && s.fusion == 1 && s.vector_rows == 1024);
    assert_int_equal(set(&s, "device", "GPU", false), ERR_OK);
    assert_true(s.device == DEVICE_GPU);
    setting_print(&s, setting_find(SV("Device")), buf, sizeof buf);
    assert_string_equal(buf, "gpu");
    assert_int_equal(set(&s, "device", "tpu", false), ERR_INVALID_PARAMETER);
    assert_non_null(strstr(err.hint, "auto,cpu,gpu,hybrid"));
    assert_int_equal(set(&s, "device", "", false), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "devise", "gpu", false), ERR_UNDEFINED_OBJECT);
    assert_non_null(strstr(err.hint, "\"device\""));
    assert_int_equal(set(&s, "fusion", "off", false), ERR_OK);
    assert_true(s.fusion == 0);
    assert_int_equal(set(&s, "fusion", "maybe", false), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "fusion", "default", false), ERR_OK);
    assert_true(s.fusion == 1);
    assert_int_equal(set(&s, "memory", "64MB", false), ERR_INVALID_PARAMETER);
    assert_non_null(strstr(err.message, "cannot be changed now"));
    assert_int_equal(set(&s, "memory", "64MB", true), ERR_OK);
    assert_true(s.memory == 64LL << 20);
    setting_print(&s, setting_find(SV("memory")), buf, sizeof buf);
    assert_string_equal(buf, "64MB");
    assert_int_equal(set(&s, "memory", "2 gb", true), ERR_OK);
    assert_true(s.memory == 2LL << 30);
    assert_int_equal(set(&s, "memory", "12345", true), ERR_OK);
    setting_print(&s, setting_find(SV("memory")), buf, sizeof buf);
    assert_string_equal(buf, "12345");
    assert_int_equal(set(&s, "memory", "MB", true), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "memory", "-1", true), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "memory", "99999999999TB", true), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "tablet_rows", "1000", false), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "tablet_rows", "8", false), ERR_OK);
    assert_int_equal(set(&s, "vector_rows", "0", false), ERR_INVALID_PARAMETER);
    assert_int_equal(set(&s, "vector_rows", "5000", false), ERR_INVALID_PARAMETER);
    for (i32 i = 0; i < setting_count(); i++) {
        assert_int_equal(setting_find(sv_from(setting_name(i))), i);
        assert_non_null(setting_text(i));
        bool empty = strcmp(setting_name(i), "temp_directory") == 0; /* until somebody names one */
        assert_true(setting_print(&s, i, buf, sizeof buf) > 0 || (empty && !*buf));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_print),        cmocka_unit_test(test_op_table),
        cmocka_unit_test(test_eval_numbers), cmocka_unit_test(test_eval_text),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

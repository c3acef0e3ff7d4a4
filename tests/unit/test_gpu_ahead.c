/* test_gpu_ahead.c: templates that are compiled ahead have the text that the library would make. */
#include "test_cpu_fixture.h"

#include "gpu/gpu_prim.h"
#include "gpu/gpu_text.h"
#include "prim/fold.h"

static const char *text_of(const char *name) {
    for (i32 i = 0; i < gpu_text_count; i++) {
        if (!strcmp(gpu_texts[i].name, name)) {
            return gpu_texts[i].text;
        }
    }
    return NULL;
}

static void test_scan(void **state) {
    UNUSED(state);
    const char *text = text_of("scan_u32.h");
    char lines[500];
    fold_text(FOLD_ADD, ELEM_U32, lines, sizeof lines);
    assert_non_null(text);
    assert_non_null(strstr(text, lines));
    fold_text(FOLD_ADD, ELEM_I32, lines, sizeof lines);
    assert_non_null(strstr(text, lines));
    assert_non_null(strstr(text, "#include \"scan.h\"\n"));
}

static void test_split(void **state) {
    UNUSED(state);
    const char *text = text_of("split_words.h");
    assert_non_null(text);
    const char *lines = strstr(text, gpu_split_ahead);
    assert_non_null(lines);
    assert_non_null(strstr(lines, "#include \"split.h\"\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan), cmocka_unit_test(test_split)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_prim_card.c: primitives on arrays that lie in the middle of larger ones: zeros or ones
 * around them do not show in the answer, and nothing but outputs changes. A few sizes that are no
 * multiple of anything, in seconds; other tests have the rest. */
#include "test_prim_around.h"

static void test_moving(void **state) {
    (void)state;
    check("scan", scans, 6);
    check("segments", segments, 3);
    check("compaction", compactions, 4);
    check("gather", moves, 2);
}
static void test_ordering(void **state) {
    (void)state;
    check("split", splits, 5);
    check("sort", sorts, 7);
    check("search", searches, 3);
    check("fold", folds, 2);
    check("set", sets, 16);
}
static void test_joins(void **state) {
    (void)state;
    check("join", joins, 56);
    check("join of unique keys", unique_joins, 8);
    check("join of texts", text_joins, 4);
}
static void test_relations(void **state) {
    (void)state;
    check("relation", relations, 8);
    check("join of relations", relation_joins, 24);
    check("no room", no_room, 2);
}

int main(void) {
    setenv("SIMT_STRICT", "0", 0); /* what is around arrays tells more, and sooner */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moving), cmocka_unit_test(test_ordering),
        cmocka_unit_test(test_joins), cmocka_unit_test(test_relations)};
    return cmocka_run_group_tests(tests, make_data, prim_teardown);
}

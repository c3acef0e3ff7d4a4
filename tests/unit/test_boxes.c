/* test_boxes.c: who takes how much of a queue of slabs: the first slabs are small, later ones in proportion to how
 * fast each taker was; every edge is taken once, whoever takes, and whatever time says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "run/trie.h"

enum { NODES = 100000, DEGREE = 10, EDGES = NODES * DEGREE, MS = 1000000 };

static u32 starts[NODES + 1];

/* Nobody looks into executions, which only tell takers apart. */
static const struct exec *execution(u32 number) {
    static i64 places[BOX_TAKERS];
    return (const struct exec *)(const void *)&places[number];
}

static void open_boxes(struct boxes *b, i64 takers) {
    for (u32 n = 0; n <= NODES; n++) {
        starts[n] = n * DEGREE;
    }
    *b = (struct boxes){.size = 3, .takers = takers};
    b->trie = (struct trie){.form = CLIQUE_TURNED, .nodes = NODES, .edges = EDGES, .longest = DEGREE};
    b->trie.starts = starts;
    mutex_init(&b->lock);
}

static const struct box_room plenty = {.bytes = INT64_MAX / 2};

/* Takers with so many edges a millisecond, each at its own time; what each took. */
static void simulate(const i64 *speeds, u32 takers, i64 *took, i64 *slabs, i64 *ends) {
    struct boxes b;
    open_boxes(&b, takers);
    struct slab slab[BOX_TAKERS] = {{0, 0}};
    i64 next = 0, now[BOX_TAKERS] = {0};
    b8 over[BOX_TAKERS] = {0};
    for (u32 i = 0; i < takers; i++) {
        u32 number = boxes_enter(&b, execution(i), 0);
        assert_int_equal(number, i);
        took[i] = slabs[i] = 0;
    }
    for (;;) {
        u32 who = takers;
        for (u32 i = 0; i < takers; i++) { /* who comes first */
            who = !over[i] && (who == takers || now[i] < now[who]) ? i : who;
        }
        if (who == takers) {
            break;
        }
        if (slab[who].end > slab[who].first) {
            boxes_finished(&b, who, &slab[who], now[who]);
        }
        if (!boxes_take(&b, who, &plenty, &slab[who])) {
            over[who] = 1;
            ends[who] = now[who];
            continue;
        }
        assert_int_equal(slab[who].first, next); /* in order, each once */
        next = slab[who].end;
        i64 edges = (slab[who].end - slab[who].first) * DEGREE;
        took[who] += edges;
        slabs[who]++;
        now[who] += edges * MS / speeds[who];
    }
    assert_int_equal(next, NODES);
    for (u32 i = 0; i < takers; i++) {
        assert_int_equal(boxes_slabs_of(&b, execution(i)), slabs[i]);
    }
    mutex_fini(&b.lock);
}

static void test_alone(void **state) {
    (void)state;
    const i64 speed = 1000;
    i64 took, slabs, end;
    simulate(&speed, 1, &took, &slabs, &end);
    assert_int_equal(slabs, 1);
}

/* All end at about the same time, and the work is divided as they are fast. */
static void test_proportion(void **state) {
    (void)state;
    static const i64 speeds[][4] = {
        {1000, 1000}, {40000, 1000}, {1000, 40000}, {9000, 3000, 300}, {50, 5000, 5000, 500}};
    static const u32 counts[] = {2, 2, 2, 3, 4};
    for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
        i64 took[4], slabs[4], ends[4], all = 0, latest = 0;
        simulate(speeds[t], counts[t], took, slabs, ends);
        for (u32 i = 0; i < counts[t]; i++) {
            all += speeds[t][i];
            latest = ends[i] > latest ? ends[i] : latest;
            assert_true(slabs[i] < 60);
        }
        i64 best = (i64)EDGES * MS / all;
        assert_true(latest < best + best / 8);
    }
}

/* Times that say nothing: all is taken all the same. */
static void test_no_time(void **state) {
    (void)state;
    struct boxes b;
    struct slab slab;
    open_boxes(&b, 2);
    u32 one = boxes_enter(&b, NULL, 5);
    assert_int_equal(boxes_enter(&b, NULL, 7), one); /* the same once more */
    i64 next = 0;
    while (boxes_take(&b, one, &plenty, &slab)) {
        assert_int_equal(slab.first, next);
        next = slab.end;
        boxes_finished(&b, one, &slab, 7);
    }
    assert_int_equal(next, NODES);
    mutex_fini(&b.lock);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone), cmocka_unit_test(test_proportion),
                                       cmocka_unit_test(test_no_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

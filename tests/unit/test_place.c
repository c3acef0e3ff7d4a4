/* test_place.c: programs are placed as well as trying all ways would place them; ratios of past runs
 * follow what is seen, but not every disturbance. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "defs/program.h"
#include "run/run_int.h"

static struct memory mem;
static struct arena arena;

static int open_arena(void **state) {
    UNUSED(state);
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    return 0;
}

static int close_arena(void **state) {
    UNUSED(state);
    arena_fini(&arena);
    return atomic_load(&mem.used_bytes) != 0;
}

/* --- all ways --- */

static f64 run_step(const struct place_step *step, u32 place, u8 *at, bool queued) {
    f64 ns = queued ? step->round_ns[place] : step->ns[place];
    for (u32 i = 0; i < step->use_count; i++) {
        const struct place_use *use = &step->uses[i];
        u8 *here = &at[use->thing];
        if (!*here || *here >> place & 1) {
            continue;
        }
        ns += (*here & 1 ? 0 : use->down_ns) + (place ? use->up_ns : 0);
        *here = (u8)(place ? 1u | 1u << place : *here | 1u);
    }
    for (u32 i = 0; i < step->made_count; i++) {
        at[step->made[i]] = (u8)(1u << place);
    }
    return ns;
}

/* The place of its steps. */
static u32 loop_place(const struct placing *p, const struct place_loop *loop, const u8 *places) {
    for (u32 place = p->place_count; place-- > 0;) {
        bool fits = true;
        u32 any = 0;
        for (u32 s = loop->first; s < loop->end && fits; s++) {
            u32 can = p->steps[s].can;
            any |= can;
            fits = places[s] == (can >> place & 1 ? place : (u32)__builtin_ctz(can));
        }
        if (fits && any >> place & 1) {
            return place;
        }
    }
    return 0;
}

static f64 cost_of(const struct placing *p, const u8 *places) {
    u8 at[32];
    f64 ns = 0;
    memcpy(at, p->at, p->thing_count);
    for (u32 s = 0; s < p->step_count;) {
        const struct place_loop *loop = NULL;
        for (u32 i = 0; i < p->loop_count; i++) {
            loop = p->loops[i].first == s ? &p->loops[i] : loop;
        }
        u32 end = loop ? loop->end : s + 1;
        u32 where = loop ? loop_place(p, loop, places) : 0;
        bool queued = loop && loop->queued >> where & 1;
        for (u32 round = 0; round < (loop ? 2u : 1u); round++) {
            f64 once = 0;
            for (u32 i = s; i < end; i++) {
                once += run_step(&p->steps[i], places[i], at, queued && round && places[i] == where);
            }
            ns += round ? once * (loop->rounds - 1) : once;
        }
        ns += queued ? loop->looks * loop->look_ns[where] : 0;
        s = end;
    }
    return ns;
}

static bool is_possible(const struct placing *p, const u8 *places) {
    bool fine = true;
    for (u32 s = 0; s < p->step_count; s++) {
        fine = fine && p->steps[s].can >> places[s] & 1;
    }
    for (u32 i = 0; i < p->loop_count; i++) { /* at one place, unless a step cannot */
        bool found = false;
        for (u32 place = 0; place < p->place_count; place++) {
            bool same = true;
            for (u32 s = p->loops[i].first; s < p->loops[i].end; s++) {
                u32 can = p->steps[s].can;
                u32 want = can >> place & 1 ? place : (u32)__builtin_ctz(can);
                same = same && places[s] == want;
            }
            found = found || same;
        }
        fine = fine && found;
    }
    return fine;
}

static f64 try_all(const struct placing *p) {
    u8 places[16] = {0};
    f64 best = 1e300;
    u32 ways = 1;
    for (u32 s = 0; s < p->step_count; s++) {
        ways *= p->place_count;
    }
    for (u32 way = 0; way < ways; way++) {
        for (u32 s = 0, rest = way; s < p->step_count; s++, rest /= p->place_count) {
            places[s] = (u8)(rest % p->place_count);
        }
        if (is_possible(p, places)) {
            f64 ns = cost_of(p, places);
            best = ns < best ? ns : best;
        }
    }
    return best;
}

/* --- programs at random --- */

static u64 seed = 1;

static u32 draw(u32 below) {
    seed = hash_u64(seed + 0x9e3779b97f4a7c15ULL);
    return (u32)(seed >> 33) % below;
}

static void make_program(struct placing *p, u32 places, u32 things, u32 steps, bool loops) {
    struct place_step *list = NEW_ARRAY(&arena, struct place_step, steps);
    u8 *at = NEW_ARRAY(&arena, u8, things);
    struct place_loop *loop = NEW(&arena, struct place_loop);
    for (u32 t = 0; t < things; t++) {
        at[t] = (u8)(draw(3) ? 1u : 1u | 1u << draw(places));
    }
    for (u32 s = 0; s < steps; s++) {
        u32 uses = draw(things) + 1;
        struct place_use *use = NEW_ARRAY(&arena, struct place_use, uses);
        u32 *made = NEW(&arena, u32);
        for (u32 i = 0; i < uses; i++) {
            use[i] = (struct place_use){(s + i) % things, draw(100), draw(100)};
        }
        *made = draw(things);
        list[s] = (struct place_step){.can = (u8)(1u | draw(1u << places)),
                                      .use_count = uses,
                                      .uses = use,
                                      .made_count = draw(2),
                                      .made = made};
        for (u32 i = 0; i < places; i++) {
            list[s].ns[i] = i ? draw(150) : draw(300);
            list[s].round_ns[i] = draw(40);
        }
    }
    loop->first = draw(steps - 1);
    loop->end = loop->first + 1 + draw(steps - loop->first);
    loop->queued = (u8)(draw(2) ? ~1u : 0);
    loop->looks = 1 + draw(9);
    for (u32 s = loop->first; s < loop->end; s++) {
        loop->queued &= list[s].can;
    }
    for (u32 i = 0; i < places; i++) {
        loop->look_ns[i] = draw(50);
    }
    loop->rounds = 1 + draw(20);
    *p = (struct placing){.place_count = places,
                          .thing_count = things,
                          .step_count = steps,
                          .loop_count = loops,
                          .at = at,
                          .steps = list,
                          .loops = loop};
}

static void check(u32 places, u32 things, u32 steps, bool loops, bool exact) {
    struct placing p;
    u8 found[16] = {0};
    make_program(&p, places, things, steps, loops);
    f64 ns = place_program(&arena, &p, found);
    assert_true(is_possible(&p, found));
    assert_true(ns - cost_of(&p, found) < 1e-6 && cost_of(&p, found) - ns < 1e-6);
    f64 best = try_all(&p);
    assert_true(ns > best - 1e-6);
    if (exact) {
        assert_true(ns < best + 1e-6);
    }
    arena_reset(&arena);
}

static void test_as_good_as_all(void **state) {
    UNUSED(state);
    for (u32 i = 0; i < 300; i++) {
        check(2, 3, 2 + i % 7, false, true);
        check(3, 2, 2 + i % 5, false, true);
        check(2, 3, 2 + i % 7, true, true);
        check(3, 6, 2 + i % 5, i % 2, false);
    }
}

/* --- what it is for --- */

#define STEP(can_, host, card, uses_, made_)                                                 \
    {                                                                                        \
        .can = can_, .ns = {host, card}, .uses = uses_, .use_count = COUNT_OF(uses_),        \
        .made = made_, .made_count = COUNT_OF(made_)                                         \
    }

/* A scan, an index, a probe, the answer: one after the other each is better off on the host, where
 * the column lies, but the whole is not. */
static void test_whole(void **state) {
    UNUSED(state);
    static const struct place_use column[] = {{0, 100, 0}}, rows[] = {{1, 50, 50}},
                                  index[] = {{2, 80, 80}, {0, 100, 0}}, groups[] = {{3, 1, 1}};
    static const u32 makes_rows[] = {1}, makes_index[] = {2}, makes_groups[] = {3}, none[] = {4};
    const struct place_step steps[] = {STEP(3, 60, 1, column, makes_rows),
                                       STEP(3, 45, 1, rows, makes_index),
                                       STEP(3, 60, 1, index, makes_groups),
                                       STEP(1, 1, 0, groups, none)};
    u8 at[5] = {1, 0, 0, 0, 0};
    u8 places[4];
    struct placing p = {.place_count = 2, .thing_count = 5, .step_count = 4, .at = at, .steps = steps};
    assert_true(place_program(&arena, &p, places) == 105);
    assert_memory_equal(places, "\1\1\1\0", 4);
    at[0] = 3; /* it is there */
    assert_true(place_program(&arena, &p, places) == 5);
    at[0] = 1;
    struct place_step slow[4]; /* too dear to bring: nothing goes there */
    static const struct place_use far[] = {{0, 900, 0}}, far_index[] = {{2, 80, 80}, {0, 900, 0}};
    memcpy(slow, steps, sizeof slow);
    slow[0].uses = far;
    slow[2].uses = far_index;
    p.steps = slow;
    assert_true(place_program(&arena, &p, places) == 166);
    assert_memory_equal(places, "\0\0\0\0", 4);
}

/* Rows go round a loop: bringing them once is worth it for many rounds only. */
static void test_loop(void **state) {
    UNUSED(state);
    static const struct place_use work[] = {{0, 10, 10}}, table[] = {{1, 1000, 0}, {0, 10, 10}};
    static const u32 makes_work[] = {0}, none[] = {2};
    const struct place_step steps[] = {STEP(3, 100, 20, table, makes_work), STEP(1, 1, 0, work, none)};
    struct place_loop loop = {.end = 1, .rounds = 50};
    const u8 at[3] = {1, 1, 0};
    u8 places[2];
    struct placing p = {2, 3, 2, 1, at, steps, &loop};
    (void)place_program(&arena, &p, places);
    assert_memory_equal(places, "\1\0", 2);
    loop.rounds = 5;
    (void)place_program(&arena, &p, places);
    assert_memory_equal(places, "\0\0", 2);
}

/* A card that queues rounds takes a wait a look instead of one a step: worth it as soon as rounds are many. */
static void test_queued_loop(void **state) {
    UNUSED(state);
    static const struct place_use work[] = {{0, 10, 10}};
    static const u32 makes_work[] = {0};
    struct place_step steps[] = {STEP(3, 30, 100, work, makes_work), STEP(3, 30, 100, work, makes_work)};
    struct place_loop loop = {.first = 0, .end = 2, .rounds = 100};
    const u8 at[1] = {1};
    u8 places[2];
    struct placing p = {2, 1, 2, 1, at, steps, &loop};
    assert_true(place_program(&arena, &p, places) == 6000); /* a step at a time it is the host's */
    assert_memory_equal(places, "\0\0", 2);
    loop.queued = 2;
    loop.looks = 8;
    loop.look_ns[1] = 50;
    steps[0].round_ns[1] = steps[1].round_ns[1] = 5;
    assert_true(place_program(&arena, &p, places) == 10 + 200 + 99 * 10 + 8 * 50);
    assert_memory_equal(places, "\1\1", 2);
    loop.rounds = 3;
    loop.looks = 3;
    assert_true(place_program(&arena, &p, places) == 180);
    assert_memory_equal(places, "\0\0", 2);
    loop.rounds = 100;
    steps[1].can = 1; /* what the host alone can do ends the queue: whoever describes it says so */
    loop.queued = 0;
    (void)place_program(&arena, &p, places);
    assert_memory_equal(places, "\0\0", 2);
}

/* More things than are kept apart: still a placing, and its cost is that of what it says. */
static void test_many_things(void **state) {
    UNUSED(state);
    enum { THINGS = 60 };
    struct place_use uses[THINGS];
    u32 made[THINGS];
    u8 at[THINGS] = {0};
    u8 places[3];
    for (u32 t = 0; t < THINGS; t++) {
        uses[t] = (struct place_use){t, 1, 1};
        made[t] = t;
    }
    const struct place_step steps[] = {
        {.can = 3, .ns = {10, 1}, .made = made, .made_count = THINGS},
        {.can = 1, .ns = {10, 1}, .uses = uses, .use_count = THINGS},
        {.can = 3, .ns = {10, 1}, .uses = uses, .use_count = THINGS}};
    struct placing p = {.place_count = 2, .thing_count = THINGS, .step_count = 3, .at = at, .steps = steps};
    f64 ns = place_program(&arena, &p, places);
    assert_true(ns >= 12 && ns <= 30);
    assert_int_equal(places[1], 0);
}

/* --- past runs --- */

static void test_past(void **state) {
    UNUSED(state);
    struct step steps[2] = {{.kind = STEP_SORT}, {.kind = STEP_RESULT}};
    struct block block = {.step_count = 2, .steps = steps, .next = NO_VAR};
    struct program program = {.block_count = 1, .blocks = &block, .var_count = 1};
    struct past *past = past_new(&arena, &program);
    assert_true(past_ratio(past, 1, 1) == 1 && past_ratio(NULL, 1, 1) == 1);
    assert_true(past_rows(past, 0) == -1 && past_rows(NULL, 0) == -1);
    for (u32 i = 0; i < 30; i++) {
        past_took(past, 1, 1, 100, 300);
    }
    assert_true(past_ratio(past, 1, 1) > 2.8 && past_ratio(past, 1, 1) < 3.1);
    assert_true(past_ratio(past, 1, 0) == 1 && past_ratio(past, 0, 1) == 1);
    past_took(past, 1, 1, 100, 1e9); /* once: something else took the processor */
    assert_true(past_ratio(past, 1, 1) < 5);
    for (u32 i = 0; i < 4; i++) {
        past_took(past, 1, 1, 100, 300);
    }
    assert_true(past_ratio(past, 1, 1) < 3.3);
    for (u32 i = 0; i < 100; i++) {
        past_took(past, 1, 1, 1, 1e12);
    }
    assert_true(past_ratio(past, 1, 1) == 32); /* no further */
    past_took(past, 1, 1, 0, 5); /* no estimate: nothing to be learned */
    past_took(past, 1, 1, 5, 0);
    assert_true(past_ratio(past, 1, 1) == 32);
    for (u32 i = 0; i < 500; i++) { /* the other place is used */
        past_took(past, 1, 0, 100, 100);
    }
    assert_true(past_ratio(past, 1, 1) < 1.1);
    past_had(past, 0, 77);
    assert_int_equal(past_rows(past, 0), 77);
    assert_true(past_rounds(past, 0) > 1);
    past_went_round(past, 0, 9);
    assert_true(past_rounds(past, 0) == 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_good_as_all), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_loop), cmocka_unit_test(test_queued_loop), cmocka_unit_test(test_many_things),
        cmocka_unit_test(test_past)};
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}

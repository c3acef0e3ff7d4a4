/* place.h: where the steps of a program run: a function of costs, without devices. */
#ifndef WF_RUN_PLACE_H
#define WF_RUN_PLACE_H

#include "base/mem.h"

/* Place 0 is the host's memory, the others are cards. A set of places is a bit each. */
enum { PLACES_MOST = 8 };

/* A step reads something; what bringing it to a card, or to the host, would cost. From one card to
 * another it goes over the host. */
struct place_use {
    u32 thing;
    f64 up_ns, down_ns;
};

struct place_step {
    u8 can;              /* places that can run it; never none */
    f64 ns[PLACES_MOST]; /* its time there, once it has all it reads */
    f64 round_ns[PLACES_MOST]; /* in a round of a loop that is queued there */
    u32 use_count;
    const struct place_use *uses;
    u32 made_count;
    const u32 *made; /* things that it makes or changes: they lie where it ran, and nowhere else */
};

/* Steps [first, end) run so many times. All of them run at one place, but for those that cannot. Where rounds are
 * queued, those behind the first take round_ns, and so many looks tell whether there are more. */
struct place_loop {
    u32 first, end;
    f64 rounds;
    u8 queued; /* places */
    f64 looks;
    f64 look_ns[PLACES_MOST];
};

/* A program, as far as placing it goes. Things are variables and columns of tables. Loops do not
 * overlap and come in order. */
struct placing {
    u32 place_count, thing_count, step_count, loop_count;
    const u8 *at; /* by thing: where it lies before the first step; 0 = nowhere yet */
    const struct place_step *steps;
    const struct place_loop *loops;
};

/* The places, by step, that make the whole program fastest, and its time. Exact as long as the
 * things whose place matters later can be combined in few ways; of more the cheapest are followed.
 */
f64 place_program(struct arena *arena, const struct placing *p, u8 *out_places);

#endif

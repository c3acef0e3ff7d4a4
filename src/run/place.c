/* place.c: dynamic programming over where things lie.
 *
 * A state is where everything lies that a later step reads; of states that are alike the cheapest is
 * followed. Each step turns a state into one for every place that can run it: what lies elsewhere is
 * brought, which leaves it at both; what the step makes lies there only. Things that one more step
 * reads, and that nobody makes, are no part of the state, nor are those that lie everywhere. Before
 * the first step there is one state, so most programs never have more than a few.
 *
 * A loop is one step of this: its steps run at the place chosen for it, or at one that can. It is
 * gone through twice, and the second time, which finds things where the first left them, counts for
 * all rounds but the first. A place that queues rounds takes less for these, as nobody waits for their steps. */
#include "run/place.h"

enum { STATES_MOST = 32, LIVE_MOST = 24 };
#define NO_SLOT 255

struct state {
    f64 ns;
    u8 at[LIVE_MOST]; /* by slot */
};

struct step_back { /* how a state came about */
    u8 from, place;
};

struct walk {
    const struct placing *p;
    u8 *slot;   /* by thing: where in a state it is; NO_SLOT = in none */
    u32 *last;  /* by thing: after this step nobody reads it; 0 = nobody does, else + 1 */
    u32 *reads; /* by thing: steps that read it */
    b8 *made;   /* by thing: a step makes it */
    struct state now[STATES_MOST], next[STATES_MOST];
    u32 now_count, next_count;
    struct step_back *back; /* STATES_MOST for every item */
};

static const struct place_loop *loop_at(const struct placing *p, u32 step) {
    for (u32 i = 0; i < p->loop_count; i++) {
        if (p->loops[i].first <= step && step < p->loops[i].end) {
            return &p->loops[i];
        }
    }
    return NULL;
}

static void count_reads(struct walk *w) {
    const struct placing *p = w->p;
    for (u32 s = 0; s < p->step_count; s++) {
        const struct place_step *step = &p->steps[s];
        const struct place_loop *loop = loop_at(p, s);
        u32 last = loop ? loop->end : s + 1; /* the next round reads it, too */
        for (u32 i = 0; i < step->use_count; i++) {
            w->last[step->uses[i].thing] = last;
            w->reads[step->uses[i].thing] += loop ? 2 : 1;
        }
        for (u32 i = 0; i < step->made_count; i++) {
            w->made[step->made[i]] = 1;
        }
    }
}

static u8 take_slot(struct walk *w, u32 *taken, u32 thing) {
    for (u8 s = 0; s < LIVE_MOST; s++) {
        if (!(*taken >> s & 1)) {
            *taken |= 1u << s;
            w->slot[thing] = s;
            for (u32 i = 0; i < w->now_count; i++) {
                w->now[i].at[s] = w->p->at[thing];
            }
            return s;
        }
    }
    return NO_SLOT;
}

/* What is not in the state lies where it lay at first. A thing that nobody made yet, or for which
 * there was no room, costs nothing to bring. */
static u8 where_is(const struct walk *w, const struct state *state, u32 thing) {
    return w->slot[thing] == NO_SLOT ? w->p->at[thing] : state->at[w->slot[thing]];
}

static f64 bring(const struct walk *w, struct state *state, const struct place_use *use, u32 place) {
    u8 at = where_is(w, state, use->thing);
    if (!at || at >> place & 1) {
        return 0;
    }
    u8 slot = w->slot[use->thing];
    f64 ns = (at & 1 ? 0 : use->down_ns) + (place ? use->up_ns : 0);
    if (slot != NO_SLOT) { /* a card's copy goes when another card gets one */
        state->at[slot] = (u8)(place ? 1u | 1u << place : at | 1u);
    }
    return ns;
}

static void run_for(const struct walk *w, struct state *state, const struct place_step *step,
                    u32 place, f64 ns) {
    for (u32 i = 0; i < step->use_count; i++) {
        state->ns += bring(w, state, &step->uses[i], place);
    }
    state->ns += ns;
    for (u32 i = 0; i < step->made_count; i++) {
        u8 slot = w->slot[step->made[i]];
        if (slot != NO_SLOT) {
            state->at[slot] = (u8)(1u << place);
        }
    }
}

static void run_at(const struct walk *w, struct state *state, const struct place_step *step,
                   u32 place) {
    run_for(w, state, step, place, step->ns[place]);
}

static u32 nearest(const struct place_step *step, u32 place) {
    if (step->can >> place & 1) {
        return place;
    }
    ASSERT(step->can);
    return (u32)__builtin_ctz(step->can);
}

/* One round after the other; the second stands for all that follow. */
static void run_loop(const struct walk *w, struct state *state, const struct place_loop *loop,
                     u32 place) {
    f64 start = state->ns;
    bool queued = loop->queued >> place & 1;
    for (u32 round = 0; round < 2; round++) {
        f64 before = state->ns;
        for (u32 s = loop->first; s < loop->end; s++) {
            const struct place_step *step = &w->p->steps[s];
            u32 at = nearest(step, place);
            run_for(w, state, step, at, queued && round && at == place ? step->round_ns[at] : step->ns[at]);
        }
        if (round) {
            state->ns = before + (state->ns - before) * (loop->rounds - 1);
        }
    }
    state->ns += queued ? loop->looks * loop->look_ns[place] : 0;
    ASSERT(state->ns >= start || loop->rounds < 1);
}

/* Where the cheapest of all alike goes; NULL: nowhere. */
static struct state *room_for(struct walk *w, const struct state *state) {
    struct state *worst = &w->next[0];
    for (u32 i = 0; i < w->next_count; i++) {
        struct state *other = &w->next[i];
        if (!memcmp(other->at, state->at, sizeof other->at)) {
            return state->ns < other->ns ? other : NULL;
        }
        worst = other->ns > worst->ns ? other : worst;
    }
    if (w->next_count < STATES_MOST) {
        return &w->next[w->next_count++];
    }
    return state->ns < worst->ns ? worst : NULL;
}

/* Step `s`, or the loop that begins there, from every state to every place. */
static void advance(struct walk *w, u32 s, const struct place_loop *loop, struct step_back *back) {
    const struct placing *p = w->p;
    u8 can = p->steps[s].can;
    for (u32 i = s; loop && i < loop->end; i++) {
        can |= p->steps[i].can;
    }
    w->next_count = 0;
    for (u32 from = 0; from < w->now_count; from++) {
        for (u32 place = 0; place < p->place_count; place++) {
            if (!(can >> place & 1)) {
                continue;
            }
            struct state state = w->now[from];
            if (loop) {
                run_loop(w, &state, loop, place);
            } else {
                run_at(w, &state, &p->steps[s], place);
            }
            struct state *to = room_for(w, &state);
            if (to) {
                *to = state;
                back[to - w->next] = (struct step_back){(u8)from, (u8)place};
            }
        }
    }
    memcpy(w->now, w->next, sizeof *w->now * w->next_count);
    w->now_count = w->next_count;
}

/* What nobody reads any more does not tell states apart. */
static void forget(struct walk *w, u32 done, u32 *taken) {
    for (u32 t = 0; t < w->p->thing_count; t++) {
        u8 slot = w->slot[t];
        if (slot != NO_SLOT && w->last[t] <= done) {
            *taken &= ~(1u << slot);
            w->slot[t] = NO_SLOT;
            for (u32 i = 0; i < w->now_count; i++) {
                w->now[i].at[slot] = 0;
            }
        }
    }
}

/* Slots for what steps [first, end) read or make, where it matters later where that lies. */
static void remember(struct walk *w, u32 first, u32 end, u32 *taken) {
    const struct placing *p = w->p;
    u8 all = (u8)((1u << p->place_count) - 1);
    for (u32 s = first; s < end; s++) {
        const struct place_step *step = &p->steps[s];
        for (u32 i = 0; i < step->use_count; i++) {
            u32 t = step->uses[i].thing;
            bool matters = w->made[t] || (w->reads[t] > 1 && p->at[t] != all);
            if (w->slot[t] == NO_SLOT && matters && w->last[t] > first) {
                take_slot(w, taken, t);
            }
        }
        for (u32 i = 0; i < step->made_count; i++) {
            u32 t = step->made[i];
            if (w->slot[t] == NO_SLOT && w->last[t] > first) {
                take_slot(w, taken, t);
            }
        }
    }
}

static void trace(const struct walk *w, u32 state, u32 item_count, const u32 *firsts,
                  u8 *out_places) {
    const struct placing *p = w->p;
    for (u32 item = item_count; item-- > 0;) {
        struct step_back back = w->back[item * STATES_MOST + state];
        u32 end = item + 1 < item_count ? firsts[item + 1] : p->step_count;
        for (u32 s = firsts[item]; s < end; s++) {
            out_places[s] = (u8)nearest(&p->steps[s], back.place);
        }
        state = back.from;
    }
}

f64 place_program(struct arena *arena, const struct placing *p, u8 *out_places) {
    struct walk *w = NEW(arena, struct walk);
    u32 *firsts = NEW_ARRAY(arena, u32, p->step_count + 1);
    u32 items = 0;
    u32 taken = 0;
    w->p = p;
    w->slot = NEW_ARRAY(arena, u8, p->thing_count + 1);
    w->last = NEW_ARRAY(arena, u32, p->thing_count + 1);
    w->reads = NEW_ARRAY(arena, u32, p->thing_count + 1);
    w->made = NEW_ARRAY(arena, b8, p->thing_count + 1);
    w->back = NEW_ARRAY(arena, struct step_back, STATES_MOST * (p->step_count + 1));
    memset(w->slot, NO_SLOT, p->thing_count + 1);
    w->now_count = 1;
    count_reads(w);
    for (u32 s = 0; s < p->step_count;) {
        const struct place_loop *loop = loop_at(p, s);
        u32 end = loop ? loop->end : s + 1;
        remember(w, s, end, &taken);
        firsts[items] = s;
        advance(w, s, loop, &w->back[items * STATES_MOST]);
        forget(w, end, &taken);
        items++;
        s = end;
    }
    u32 best = 0;
    for (u32 i = 1; i < w->now_count; i++) {
        best = w->now[i].ns < w->now[best].ns ? i : best;
    }
    trace(w, best, items, firsts, out_places);
    return w->now[best].ns;
}

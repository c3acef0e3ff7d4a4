/* past.c: what earlier runs of a program took, kept beside it.
 *
 * Of every step and place: how much longer it ran than was estimated; of every variable, how many
 * rows it had; of every loop, how often it went round. Estimates of the next run are corrected by
 * that. Times are noisy, so a ratio follows what is seen only part of the way, upwards less than
 * downwards, since whatever disturbs a step makes it slower; it is bounded, and what is not seen any
 * more is slowly forgotten, so that a place that was once slow is tried again.
 *
 * Statements that share a program write without a lock: what one of them saw may be lost. */
#include "run/run_int.h"

#include <math.h>

/* Ratios are logarithms to base 2, in units of 1 / UNIT. */
#define UNIT 1024
#define RATIO_MOST (5 * UNIT)
#define STRIDE_MOST (2 * UNIT) /* of one observation */
#define FORGET_SHARE 32

#define SHARE_ONE (1 << 24)

struct past_ratio {
    _Atomic i32 log;
    _Atomic i32 runs;
    _Atomic i32 share; /* of a scan that several places shared, in units of 1 / SHARE_ONE */
};

/* What a device remembers of a step: see exec_recall. */
struct past_note {
    _Atomic b8 busy; /* somebody reads or writes it: then others do without */
    u32 room, count; /* words; 0 = nothing yet */
    u64 words[];
};

struct past {
    u32 step_count, var_count, block_count;
    struct past_ratio *ratios; /* by step and place */
    _Atomic i64 *rows;         /* by variable, at last; -1 = not seen */
    _Atomic b8 *unique;        /* by index: keys of the one that the host made last were not repeated */
    _Atomic i64 *made;         /* the same, as the pipeline that makes it left it */
    b8 *cut;                   /* by variable: a sort leaves the first of its rows only */
    _Atomic i64 *rounds;       /* by block; 0 = not seen */
    struct ways ways;          /* of the whole */
    struct past_note **notes;  /* by step; NULL = it needs none */
    _Atomic i32 misses;        /* one behind the other, of steps that were queued */
    _Atomic i32 waits;         /* runs until they are queued again */
};

/* For as much as devices remember of such a step. */
static u32 note_room(const struct step *step) {
    return step->kind == STEP_SORT ? NOTE_WORDS : step->kind == STEP_BUILD ? NOTE_WORDS_FEW : 0;
}

static void notes_new(struct arena *arena, const struct program *program, struct past *past) {
    u32 no = 0;
    past->notes = NEW_ARRAY(arena, struct past_note *, past->step_count + 1);
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, no++) {
            u32 room = note_room(&program->blocks[b].steps[s]);
            if (room && past->notes) {
                past->notes[no] = arena_alloc(arena, (i64)(sizeof(struct past_note) + room * sizeof(u64)));
                past->notes[no]->room = room;
            }
        }
    }
}

static void note_cut(struct past *past, const struct step *step) {
    if (past->cut && step->kind == STEP_SORT && step->limit >= 0) {
        past->cut[step->src] = 1;
    }
}

struct past *past_new(struct arena *arena, const struct program *program) {
    struct past *past = NEW(arena, struct past);
    for (u32 b = 0; b < program->block_count; b++) {
        past->step_count += program->blocks[b].step_count;
    }
    past->var_count = program->var_count;
    past->block_count = program->block_count;
    past->ratios = NEW_ARRAY(arena, struct past_ratio, past->step_count * PLACES_MOST + 1);
    past->rows = NEW_ARRAY(arena, _Atomic i64, past->var_count + 1);
    past->rounds = NEW_ARRAY(arena, _Atomic i64, past->block_count + 1);
    past->made = NEW_ARRAY(arena, _Atomic i64, past->var_count + 1);
    past->unique = NEW_ARRAY(arena, _Atomic b8, past->var_count + 1);
    past->cut = NEW_ARRAY(arena, b8, past->var_count + 1);
    notes_new(arena, program, past);
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            note_cut(past, &program->blocks[b].steps[s]);
        }
    }
    for (u32 v = 0; v < past->var_count; v++) {
        atomic_init(&past->rows[v], -1);
        atomic_init(&past->made[v], -1);
    }
    return past;
}

f64 past_ratio(const struct past *past, u32 step_no, u32 place) {
    if (!past) {
        return 1;
    }
    ASSERT(step_no < past->step_count && place < PLACES_MOST);
    return exp2((f64)atomic_load(&past->ratios[step_no * PLACES_MOST + place].log) / UNIT);
}

i32 past_runs(const struct past *past, u32 step_no, u32 place) {
    return past ? atomic_load(&past->ratios[step_no * PLACES_MOST + place].runs) : 0;
}

void past_took(struct past *past, u32 step_no, u32 place, f64 estimated_ns, f64 ns) {
    if (!past || !(estimated_ns > 0) || !(ns > 0)) {
        return;
    }
    for (u32 p = 0; p < PLACES_MOST; p++) {
        struct past_ratio *ratio = &past->ratios[step_no * PLACES_MOST + p];
        i32 old = atomic_load(&ratio->log);
        if (p != place) {
            atomic_store(&ratio->log, old - old / FORGET_SHARE);
            continue;
        }
        f64 seen = log2(ns / estimated_ns) * UNIT - old;
        seen = MAX_OF(MIN_OF(seen, STRIDE_MOST), -STRIDE_MOST);
        i32 log = old + (i32)(seen < 0 ? seen * 3 / 4 : seen / 3);
        atomic_store(&ratio->log, MAX_OF(MIN_OF(log, RATIO_MOST), -RATIO_MOST));
        atomic_fetch_add(&ratio->runs, 1);
    }
}

struct ways *past_ways(struct past *past) {
    return &past->ways;
}

f64 past_share(const struct past *past, u32 step_no, u32 place) {
    ASSERT(!past || (step_no < past->step_count && place < PLACES_MOST));
    return past ? (f64)atomic_load(&past->ratios[step_no * PLACES_MOST + place].share) / SHARE_ONE
                : 0;
}

void past_shared(struct past *past, u32 step_no, u32 place, f64 share) {
    ASSERT(share >= 0 && share <= 1);
    if (past) {
        i32 units = (i32)(share * SHARE_ONE + 0.5);
        atomic_store(&past->ratios[step_no * PLACES_MOST + place].share, units);
    }
}

i64 past_rows(const struct past *past, u32 var) {
    ASSERT(!past || var < past->var_count);
    return past ? atomic_load(&past->rows[var]) : -1;
}

i64 past_rows_uncut(const struct past *past, u32 var) {
    ASSERT(!past || var < past->var_count);
    return past && past->cut[var] ? atomic_load(&past->made[var]) : past_rows(past, var);
}

void past_had(struct past *past, u32 var, i64 rows) {
    if (past) {
        ASSERT(var < past->var_count);
        atomic_store(&past->rows[var], rows);
    }
}

void past_made(struct past *past, u32 var, i64 rows) {
    if (past) {
        ASSERT(var < past->var_count);
        atomic_store(&past->made[var], rows);
    }
}

void past_indexed(struct past *past, u32 var, bool unique) {
    if (past) {
        ASSERT(var < past->var_count);
        atomic_store(&past->unique[var], unique);
    }
}

f64 past_rounds(const struct past *past, u32 block) {
    i64 rounds = past ? atomic_load(&past->rounds[block]) : 0;
    return rounds > 0 ? (f64)rounds : 4;
}

void past_went_round(struct past *past, u32 block, i64 rounds) {
    if (past) {
        ASSERT(block < past->block_count);
        atomic_store(&past->rounds[block], rounds);
    }
}

#define MISSES_MOST 6

bool past_may_queue(struct past *past) {
    if (past && atomic_load(&past->waits) > 0) {
        atomic_fetch_sub(&past->waits, 1);
        return false;
    }
    return past != NULL;
}

void past_queued(struct past *past, bool good) {
    if (past) {
        i32 misses = good ? 0 : MIN_OF(atomic_load(&past->misses) + 1, MISSES_MOST);
        atomic_store(&past->misses, misses);
        atomic_store(&past->waits, good ? 0 : 1 << misses);
    }
}

i64 exec_expects(const struct exec *x, u32 var) {
    ASSERT(!x->past || var < x->past->var_count);
    return x->past ? atomic_load(&x->past->made[var]) : -1;
}

bool exec_expects_unique(const struct exec *x, u32 var) {
    ASSERT(!x->past || var < x->past->var_count);
    return x->past && atomic_load(&x->past->unique[var]);
}

u32 exec_recall(const struct exec *x, u32 step_no, u64 words[NOTE_WORDS]) {
    struct past_note *note = x->past ? x->past->notes[step_no] : NULL;
    u32 count = 0;
    if (note && !atomic_exchange(&note->busy, 1)) {
        count = note->count;
        memcpy(words, note->words, count * sizeof *words);
        atomic_store(&note->busy, 0);
    }
    return count;
}

void exec_remember(const struct exec *x, u32 step_no, const u64 *words, u32 count) {
    struct past_note *note = x->past ? x->past->notes[step_no] : NULL;
    ASSERT(!note || count <= note->room);
    if (note && !atomic_exchange(&note->busy, 1)) {
        note->count = count;
        memcpy(note->words, words, count * sizeof *words);
        atomic_store(&note->busy, 0);
    }
}

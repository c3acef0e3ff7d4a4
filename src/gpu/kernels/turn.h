/* turn.h: the turns between pipelines of a loop, and between the steps of a queue. */
#include "build_rows.h"

/* What a lane of the warp knows of the loop: a relation, and a part of one. */
struct turn {
    u64 rows, taken; /* of the relation */
    u64 first, end;  /* the part */
    u64 stopped, over;
};

/* What the pipeline before made. */
FN void w_turn_take(const struct kturn *args, struct turn *t) {
    struct kloop *loop = args->loop;
    u64 had = w_from_u64(t->rows, args->took_rel);
    u64 made = args->took[REPORT_ROWS];
    u64 failed = ~args->took[REPORT_FAULT] | args->took[REPORT_RETRY];
    made = made < (u64)args->capacity ? made : (u64)args->capacity;
    t->rows = t_lane() == args->took_rel ? made : t->rows;
    t->stopped = failed ? args->took_step + 1u : 0u;
    if (t_lane() == 0) {
        loop->steps[args->took_step].made += made - had;
        loop->steps[args->took_step].longest = args->took[REPORT_COUNTS];
        loop->stopped = t->stopped;
    }
    if (t_lane() == args->took_rel) {
        loop->rels[args->took_rel].rows = made;
    }
    w_sync();
}

/* A round begins, where something is new and not enough is there; whether it does. */
FN u32 w_turn_begin(const struct kturn *args, struct turn *t) {
    struct kloop *loop = args->loop;
    u32 lane = t_lane();
    u32 is_rel = lane < args->rel_count;
    u32 is_part = lane < args->part_count;
    u32 fresh = w_ballot((i32)(lane < args->loop_count && t->rows > t->taken));
    u64 most = w_from_u64(t->rows, args->stop_rel ? args->stop_rel - 1u : 0u);
    u32 begins = fresh && !(args->stop_rel && (i64)most >= args->stop_rows);
    u32 of = is_part ? args->part_rels[lane] : 0u;
    u32 form = is_part ? args->part_forms[lane] : 0u;
    u64 of_rows = w_from_u64(t->rows, of);
    u64 of_taken = w_from_u64(t->taken, of);
    t->first = form == LOOP_DELTA ? of_taken : 0u;
    t->end = form == LOOP_OLD ? of_taken : of_rows;
    t->over = !begins;
    if (lane == 0) {
        loop->over = !begins;
        loop->rounds += begins;
    }
    if (is_part && begins) {
        struct kloop_part *part = &loop->parts[lane];
        part->rows.first = (i64)t->first;
        part->rows.end = (i64)t->end;
        part->rows.start = -(i64)t->first;
        part->cut_before = part->cut;
        part->of_before = part->of;
        part->cut += t->end - t->first;
        part->of += of_rows;
    }
    if (is_rel && begins) {
        struct kloop_rel *rel = &loop->rels[lane];
        rel->rows_before = t->rows;
        rel->taken_before = t->taken;
        rel->taken = t->rows;
    }
    if (lane < LOOP_STEPS && begins) {
        loop->steps[lane].read_before = loop->steps[lane].read;
        loop->steps[lane].made_before = loop->steps[lane].made;
    }
    w_sync();
    return begins;
}

/* What the pipeline behind reads, and behind which rows it adds its own. */
FN void w_turn_next(const struct kturn *args, const struct turn *t) {
    struct kloop *loop = args->loop;
    u64 goes = !t->stopped && !t->over;
    u64 first = w_from_u64(t->first, args->next_part);
    u64 end = w_from_u64(t->end, args->next_part);
    u64 rows = w_from_u64(t->rows, args->next_rel);
    u64 of = w_from_u64(t->rows, args->next_source ? args->next_source - 1u : 0u);
    first = args->next_all ? 0u : args->next_source ? rows : first;
    end = args->next_source ? of : end;
    rows = args->next_begins ? 0u : rows;
    first = goes ? first : 0u;
    end = goes ? end : 0u;
    if (t_lane() == 0) {
        loop->now.first = (i64)first;
        loop->now.end = (i64)end;
        loop->now.start = -(i64)first;
        loop->steps[args->next_step].read += end - first;
        args->next[REPORT_ROWS] = rows;
        if (args->next_source) {
            args->next[REPORT_GROUPS] = 0;
        }
        if (args->next_begins) {
            loop->rels[args->next_rel].rows = 0;
        }
    }
}

/* One warp; whether a round began. All loads are on their way at once. */
FN u32 w_turn(const struct kturn *args) {
    const struct kloop *loop = args->loop;
    u32 lane = t_lane();
    u32 began = 0;
    struct turn t;
    t.stopped = loop->stopped;
    t.over = loop->over;
    t.rows = lane < args->rel_count ? loop->rels[lane].rows : 0u;
    t.taken = lane < args->rel_count ? loop->rels[lane].taken : 0u;
    t.first = lane < args->part_count ? (u64)loop->parts[lane].rows.first : 0u;
    t.end = lane < args->part_count ? (u64)loop->parts[lane].rows.end : 0u;
    if (args->took && !t.stopped) {
        w_turn_take(args, &t);
    }
    if (args->begins && !t.stopped && !t.over) {
        began = w_turn_begin(args, &t);
    }
    if (args->next) {
        w_turn_next(args, &t);
    }
    return began;
}

KERNEL(k_keys_move, struct kkeys, 256) {
    BUILD_ROWS(i, (i64)(args.from_count + KEYS_APART)) {
        u64 word = args.from[i];
        if ((u64)i >= args.from_count) {
            args.to[args.to_mask + 1u + ((u64)i - args.from_count)] = word;
        } else if (word && word != KEYS_GONE) {
            u64 at = hash_64(word - 1u) & args.to_mask;
            while (atom_cas_u64(&args.to[at], 0, word)) {
                at = (at + 1u) & args.to_mask;
            }
        }
    }
}

KERNEL(k_turn, struct kturn, 256) {
    SHARED(u32, s_began, 1);
    if (t_id() < 32u) {
        u32 began = w_turn(&args);
        if (t_id() == 0) {
            *s_began = began;
        }
    }
    if (!args.step_count) {
        return;
    }
    b_sync();
    for (u32 i = 0; *s_began && i < args.step_count; i++) {
        const struct kloop_step *step = &args.loop->steps[i];
        for (u32 at = t_id(); step->counts && at < LOOP_COUNTS; at += t_count()) {
            step->counts_before[at] = step->counts[at];
        }
    }
}

/* --- queues ---------------------------------------------------------------------------------- */

/* What a step made of a variable, to whoever reads it: all of it, or, where something is not as the
 * host expected, nothing. */
KERNEL(k_relay, struct krelay, 32) {
    if (t_id() == 0) {
        struct kqueue *queue = args.queue;
        struct kqueue_slot *slot = &queue->slots[args.slot];
        const u64 *report = args.report;
        u64 rows = args.rows ? *args.rows : args.known;
        rows = rows > args.skip ? rows - args.skip : 0u;
        rows = rows < args.limit ? rows : args.limit;
        u32 fails = (args.faults && ~report[REPORT_FAULT]) || (report[REPORT_RETRY] & args.retry) ||
                    (args.distinct && report[REPORT_ROWS] != report[REPORT_COUNTS]) || rows > args.most;
        u64 stopped = queue->stopped || fails;
        for (u32 w = 0; w < REPORT_WORDS; w++) {
            slot->report[w] = report[w];
        }
        slot->report[REPORT_ROWS] = rows;
        slot->made = args.made ? *args.made : 0u;
        slot->rows = stopped ? 0 : (i64)rows;
        queue->stopped = stopped;
    }
}

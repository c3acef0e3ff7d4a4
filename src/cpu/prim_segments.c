/* prim_segments.c: the CPU's segmented reduction, balanced over elements and segments alike.
 *
 * Elements and ends of segments are merged into one list, an end before the element it excludes; a
 * task takes a fixed number of items of that list, found by binary search. The segment a task
 * begins within, and the one it ends within, are put together afterwards. Sums of floats are exact
 * (prim_fsum.c), so that it does not matter where tasks part. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"
#include "prim/fold.h"

enum { ITEMS = 1 << 16 };

struct segment_part {  /* of one task */
    i64 first_segment; /* it ended first; -1: none */
    u64 carry;         /* of the segment it left open */
};

struct segments_run {
    const struct prim_segments *s;
    const struct fold_loops *loops; /* NULL: a sum of floats */
    struct segment_part *parts;
    i64 (*fsums)[2][FSUM_WORDS]; /* per task: of the first segment it ended, instead of `carry` */
    _Atomic u32 fault;
    i64 base; /* offsets[0] */
    i64 items;
    _Atomic i32 bad;
};

/* How many ends come before item `diagonal`: an end goes first when it is at or below the element.
 */
static i64 ends_before(const struct segments_run *r, i64 diagonal, i64 elements) {
    i64 lo = MAX_OF(0, diagonal - elements);
    i64 hi = MIN_OF(diagonal, r->s->segment_count);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (r->s->offsets[mid + 1] - r->base <= diagonal - 1 - mid) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void check_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    struct segments_run *r = arg;
    const struct prim_segments *s = r->s;
    i64 end = MIN_OF((t + 1) * ITEMS, s->segment_count);
    bool good = true;
    for (i64 i = t * ITEMS; i < end; i++) {
        good = good && s->offsets[i] <= s->offsets[i + 1];
    }
    if (!good) {
        atomic_store(&r->bad, 1);
    }
}

struct span { /* of a task */
    i64 segment, segment_end, at, stop;
};

static void fold_floats(struct segments_run *r, i64 t, struct span span) {
    enum elem type = (enum elem)r->s->in.type;
    i64 width = elem_bytes[type];
    const u8 *in = r->s->in.data;
    u8 *out = r->s->out.data;
    u8 fault = 0;
    i64 at = span.at;
    for (i64 segment = span.segment; segment < span.segment_end; segment++) {
        i64 to = r->s->offsets[segment + 1];
        if (segment == span.segment) {
            fsum_values(r->fsums[t][0], type, in + at * width, to - at);
        } else {
            fault |= fsum_rounded(type, in + at * width, to - at, out + segment * width);
        }
        at = to;
    }
    fsum_values(r->fsums[t][1], type, in + at * width, span.stop - at);
    if (fault) {
        atomic_store(&r->fault, fault);
    }
}

static void fold_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    struct segments_run *r = arg;
    const struct prim_segments *s = r->s;
    i32 width = elem_bytes[s->in.type];
    i64 elements = s->offsets[s->segment_count] - r->base;
    i64 last = MIN_OF((t + 1) * ITEMS, r->items);
    i64 segment = ends_before(r, t * ITEMS, elements);
    i64 segment_end = ends_before(r, last, elements);
    i64 at = t * ITEMS - segment + r->base;
    i64 stop = last - segment_end + r->base;
    const u8 *in = s->in.data;
    u8 *out = s->out.data;
    struct segment_part *part = &r->parts[t];
    part->first_segment = segment < segment_end ? segment : -1;
    if (!r->loops) {
        fold_floats(r, t, (struct span){segment, segment_end, at, stop});
        return;
    }
    for (; segment < segment_end; segment++) {
        i64 to = s->offsets[segment + 1];
        r->loops->reduce(out + segment * width, in + at * width, to - at);
        at = to;
    }
    r->loops->reduce(&part->carry, in + at * width, stop - at);
}

static FALLIBLE check_offsets(struct prim_job *job, struct segments_run *r) {
    const struct prim_segments *s = r->s;
    tasks_run(job->x, (s->segment_count + ITEMS - 1) / ITEMS, check_task, r);
    if (atomic_load(&r->bad) || s->offsets[0] < 0 || s->offsets[s->segment_count] > s->in.count) {
        FAIL(job->x->err, INVALID_PARAMETER,
             "offsets of segments must ascend and stay within %lld elements", s->in.count);
    }
    return ERR_OK;
}

/* What tasks have of segments that others end. */
static void join_parts(const struct segments_run *r, i64 tasks) {
    u8 *out = r->s->out.data;
    u64 carry = 0;
    r->loops->identity(&carry);
    for (i64 t = 0; t < tasks; t++) {
        const struct segment_part *part = &r->parts[t];
        if (part->first_segment >= 0) {
            r->loops->join(out + part->first_segment * elem_bytes[r->s->in.type], &carry);
            carry = part->carry;
        } else {
            r->loops->join(&carry, &part->carry);
        }
    }
}

static FALLIBLE join_floats(struct prim_job *job, struct segments_run *r, i64 tasks) {
    enum elem type = (enum elem)r->s->in.type;
    u8 *out = r->s->out.data;
    i64 carry[FSUM_WORDS] = {0};
    u8 fault = (u8)atomic_load(&r->fault);
    for (i64 t = 0; t < tasks; t++) {
        i64 segment = r->parts[t].first_segment;
        if (segment >= 0) {
            fsum_join(carry, r->fsums[t][0]);
            fault |= prim_fsum_round(carry, type, out + segment * elem_bytes[type]);
            memset(carry, 0, sizeof carry);
        }
        fsum_join(carry, r->fsums[t][1]);
    }
    return prim_fsum_fault(job, fault);
}

wf_status prim_cpu_segments(struct prim_job *job, const struct prim_segments *segments) {
    struct segments_run r = {.s = segments, .loops = fold_loops(segments->fold, segments->in.type)};
    i64 most = (segments->in.count + segments->segment_count + ITEMS - 1) / ITEMS;
    r.parts = prim_take(job, most * (i64)sizeof *r.parts);
    r.fsums = r.loops ? NULL : prim_take(job, most * (i64)sizeof *r.fsums);
    if (job->measuring || !segments->segment_count) {
        return ERR_OK;
    }
    atomic_init(&r.bad, 0);
    atomic_init(&r.fault, 0);
    TRY(check_offsets(job, &r));
    r.base = segments->offsets[0];
    r.items = segments->offsets[segments->segment_count] - r.base + segments->segment_count;
    i64 tasks = (r.items + ITEMS - 1) / ITEMS;
    tasks_run(job->x, tasks, fold_task, &r);
    TRY(exec_check(job->x));
    if (!r.loops) {
        return join_floats(job, &r, tasks);
    }
    join_parts(&r, tasks);
    return ERR_OK;
}

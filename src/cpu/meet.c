/* meet.c: MEET and COMMON: the rows of several sorted runs that agree in a value.
 *
 * The runs of a row are lists of values, any number of them. Neighbouring rows ask for the same ones where
 * the pipeline comes from sorted rows or from another MEET, the last list most of all (lower/meet.c orders
 * them). So what the last two have in common is found once and kept, then what that has in common with the
 * list before, up to the second one: a row computes anew only what is in front of the last list that it has
 * of its own. The first list meets the rest by whatever is cheapest: steps of one value, seeks whose steps
 * double, or bits that the common values have set.
 *
 * Lists in which values repeat are walked together by leapfrogging, and every choice of one row from
 * each counts: whoever is behind seeks the first value not below that of the others. So are lists of which
 * one is so short that what the others have in common is not worth finding for the rows that ask for it,
 * and all where memory has no room for that. See decision 0089. */
#include "cpu/cpu_int.h"

#include "codes/control.h"

enum { LISTS_MAX = MEET_LISTS_MOST };
enum { AHEAD_ROWS = 64 }; /* looked at for the same lists, before some are walked */
#define MARK_BITS (1ULL << 26)   /* of a worker */
#define COUNT_MOST (1ULL << 52)  /* by one worker: sums of all workers fit a word */

/* About, in quarters of a nanosecond, of one value. */
enum { STEP_COST = 8, SEEK_COST = 12, PROBE_COST = 3, MARK_COST = 8 };
enum way { WAY_STEPS, WAY_SEEKS, WAY_MARKS, WAYS };

struct list {
    const i64 *values; /* of all rows of the variable */
    const i64 *keys;   /* ... where a run is told by its first row alone: its rows have one key */
    i64 row_count;
    i64 at, end;
};

struct part {
    i64 from, to;
};

/* What a list and all behind it have in common. */
struct level {
    const i64 *values;
    i64 n;
    i64 *room; /* where values lie that are not a list's own */
    i64 room_bytes;
};

/* What the lists behind the first have in common. */
struct meeting {
    u32 count;
    u32 known;            /* levels from this one on are those of the runs; `count`: none is */
    i64 *runs;            /* of each list */
    struct level *levels; /* of each list but the first */
    const i64 *values;    /* of level 1 */
    i64 n;
    b8 marked; /* bits are set for them */
    i64 base;  /* the value of bit 0, a multiple of 64 */
    u32 *bits; /* all 0 unless it is marked */
    i64 bit_words;
};

struct meet {
    struct worker *w;
    struct expand e;
    b8 apart, chains;
    u32 count;
    struct list lists[LISTS_MAX];
    u64 steps;
};

static i64 log2_of(i64 n) {
    return 63 - __builtin_clzll((u64)n | 1);
}

static enum way least_of(const i64 *costs) {
    enum way way = WAY_STEPS;
    for (enum way i = WAY_STEPS; i < WAYS; i++) {
        way = costs[i] < costs[way] ? i : way;
    }
    return way;
}

static bool reserve_bits(struct meet *m, struct meeting *g, i64 words) {
    struct memory *mem = m->w->run->x->mem;
    if (words <= g->bit_words) {
        return true;
    }
    i64 size = 1024;
    while (size < words) {
        size *= 2;
    }
    u32 *bits = mem_try(mem, size * (i64)sizeof(u32));
    if (!bits) {
        return false;
    }
    memset(bits, 0, (size_t)size * sizeof(u32));
    mem_free(mem, g->bits, g->bit_words * (i64)sizeof(u32));
    g->bits = bits;
    g->bit_words = size;
    return true;
}

static bool reserve_room(struct meet *m, struct level *level, i64 bytes) {
    struct memory *mem = m->w->run->x->mem;
    if (bytes > level->room_bytes) {
        mem_free(mem, level->room, level->room_bytes);
        level->room = mem_try(mem, 2 * bytes);
        level->room_bytes = level->room ? 2 * bytes : 0;
    }
    return level->room != NULL;
}

static FALLIBLE check_count(struct meet *m, u64 count) {
    if (m->w->counted + count >= COUNT_MOST) {
        return error_set(&m->w->err, ERR_OUT_OF_RANGE, -1, "bigint out of range");
    }
    return ERR_OK;
}

/* Rows [from, to) of the first run, each `times`. */
static FALLIBLE hand_on(struct expand *e, u32 row, i64 from, i64 to, u64 times) {
    for (; from < to; from++) {
        for (u64 k = 0; k < times; k++) {
            e->child->from[e->child->n] = row;
            e->match[e->child->n++] = from;
            if (e->child->n == e->w->run->vector_rows) {
                TRY(expand_flush(e));
            }
        }
    }
    return ERR_OK;
}

/* The first place from `at` on whose value is not below `value`: by steps that double. */
static i64 seek(const i64 *v, i64 at, i64 end, i64 value) {
    i64 step = 1;
    i64 below = at; /* everything before it is */
    while (at < end && v[at] < value) {
        below = at + 1;
        at = end - at > step ? at + step : end;
        step *= 2;
    }
    i64 above = at; /* from here on nothing is */
    while (below < above) {
        i64 middle = below + (above - below) / 2;
        bool less = v[middle] < value;
        below = less ? middle + 1 : below;
        above = less ? above : middle;
    }
    return below;
}

/* Behind the last place that has the value of this one. */
static i64 behind(const i64 *v, i64 at, i64 end) {
    i64 next = at + 1;
    bool repeats = next < end && v[next] == v[at];
    return !repeats ? next : v[at] == I64_MAX ? end : seek(v, next, end, v[at] + 1);
}

/* All lists to the next value that all of them have; false: there is none. */
static bool align(struct meet *m) {
    struct list *first = &m->lists[0];
    const i64 *v = first->values;
    for (u32 i = 0; i < m->count;) {
        struct list *list = &m->lists[i];
        const i64 *own = list->values;
        if (first->at >= first->end || list->at >= list->end) {
            return false;
        }
        list->at = i ? seek(own, list->at, list->end, v[first->at]) : list->at;
        if (list->at >= list->end) {
            return false;
        }
        if (own[list->at] > v[first->at]) {
            first->at = seek(v, first->at, first->end, own[list->at]);
            i = 0;
            m->steps++;
            if (stop_due(m->steps - 1, m->steps)) { /* the pipeline looks again */
                return false;
            }
        } else {
            i++;
        }
    }
    return true;
}

/* Lists in which values repeat: every choice of rows counts. */
static FALLIBLE walk(struct meet *m, u32 row, u64 *count) {
    while (align(m)) {
        u64 times = 1;
        i64 ends[LISTS_MAX] = {0};
        bool too_many = false;
        for (u32 i = 0; i < m->count; i++) {
            struct list *list = &m->lists[i];
            ends[i] = behind(list->values, list->at, list->end);
            too_many = (i && __builtin_mul_overflow(times, (u64)(ends[i] - list->at), &times)) || too_many;
        }
        if (count) {
            u64 own = (u64)(ends[0] - m->lists[0].at);
            too_many = __builtin_mul_overflow(times, own, &times) || too_many;
            *count = too_many || times > COUNT_MOST ? COUNT_MOST : *count + times;
            TRY(check_count(m, *count));
        } else {
            TRY(hand_on(&m->e, row, m->lists[0].at, ends[0], times));
        }
        for (u32 i = 0; i < m->count; i++) {
            m->lists[i].at = ends[i];
        }
        if (m->w->enough) {
            return ERR_OK;
        }
    }
    return ERR_OK;
}

/* --- lists without repeated values --- */

/* What two lists have in common, the shorter one first; returns how many. */
static i64 intersect_seeks(i64 *out, const i64 *a, i64 n, const i64 *b, i64 k) {
    i64 at = 0;
    i64 count = 0;
    for (i64 i = 0; i < n && at < k; i++) {
        at = seek(b, at, k, a[i]);
        out[count] = a[i];
        count += at < k && b[at] == a[i];
    }
    return count;
}

static i64 intersect_steps(i64 *out, const i64 *a, i64 n, const i64 *b, i64 k) {
    i64 count = 0;
    for (i64 i = 0, j = 0; i < n && j < k;) {
        i64 x = a[i], y = b[j];
        out[count] = x;
        count += x == y;
        i += x <= y;
        j += y <= x;
    }
    return count;
}

static i64 intersect(i64 *out, const i64 *a, i64 n, const i64 *b, i64 k) {
    bool seeks = SEEK_COST * n * (2 + log2_of(k / n)) < STEP_COST * (n + k);
    return seeks ? intersect_seeks(out, a, n, b, k) : intersect_steps(out, a, n, b, k);
}

/* Sets or clears the bits of the common values. */
static void mark(struct meeting *g, bool on) {
    const i64 *v = g->values;
    for (i64 i = 0; i < g->n; i++) {
        u64 bit = (u64)v[i] - (u64)g->base;
        g->bits[bit >> 5] = on ? g->bits[bit >> 5] | 1u << (bit & 31) : 0;
    }
    g->marked = on;
}

/* Whether bits for the common values may be set: their span and memory allow it. */
static bool may_mark(struct meet *m, struct meeting *g) {
    const i64 *v = g->values;
    g->base = (i64)((u64)v[0] & ~(u64)63);
    u64 span = (u64)v[g->n - 1] - (u64)g->base + 1;
    return span <= MARK_BITS && reserve_bits(m, g, (i64)((span + 63) / 64 * 2));
}

/* The part of the first list that lies between the least and the greatest common value. */
static struct part between(const struct list *list, const struct meeting *g) {
    const i64 *v = list->values, *c = g->values;
    i64 from = seek(v, list->at, list->end, c[0]);
    i64 last = c[g->n - 1];
    if (from < list->end && v[list->end - 1] <= last) {
        return (struct part){from, list->end};
    }
    i64 to = seek(v, from, list->end, last);
    return (struct part){from, to + (to < list->end && v[to] == last)};
}

/* Steps of one value. */
static i64 count_steps(const i64 *a, i64 n, const i64 *b, i64 k) {
    i64 count = 0;
    for (i64 i = 0, j = 0; i < n && j < k;) {
        i64 x = a[i], y = b[j];
        count += x == y;
        i += x <= y;
        j += y <= x;
    }
    return count;
}

static i64 count_seeks(const i64 *a, i64 n, const i64 *b, i64 k) {
    i64 count = 0;
    i64 at = 0;
    for (i64 i = 0; i < n && at < k; i++) {
        at = seek(b, at, k, a[i]);
        count += at < k && b[at] == a[i];
    }
    return count;
}

/* How many values of the first list all others have; `again`: rows that ask for the same others. */
static i64 count_values(struct meet *m, struct meeting *g, i64 again) {
    struct list *list = &m->lists[0];
    if (list->at >= list->end || g->n == 0) {
        return 0;
    }
    const i64 *v = list->values, *c = g->values;
    struct part part = between(list, g);
    i64 n = part.to - part.from;
    if (n == 0) {
        return 0;
    }
    bool bits = g->marked || (again > 1 && may_mark(m, g));
    i64 marking = g->marked ? 0 : MARK_COST * g->n / again;
    i64 few = MIN_OF(n, g->n), many = MAX_OF(n, g->n);
    i64 costs[WAYS] = {[WAY_STEPS] = STEP_COST * (n + g->n),
                       [WAY_SEEKS] = SEEK_COST * few * (2 + log2_of(many / few)),
                       [WAY_MARKS] = bits ? PROBE_COST * n + marking : I64_MAX};
    enum way way = least_of(costs);
    if (way == WAY_MARKS && !g->marked) {
        mark(g, true);
    }
    m->steps += (u64)n;
    switch (way) {
    case WAY_STEPS:
        return count_steps(v + part.from, n, c, g->n);
    case WAY_SEEKS:
        return n < g->n ? count_seeks(v + part.from, n, c, g->n)
                        : count_seeks(c, g->n, v + part.from, n);
    default:
        return m->w->run->pipe.vec->marked(v + part.from, n, g->base, g->bits);
    }
}

/* Rows of the first list whose value all others have. */
static FALLIBLE hand_marked(struct meet *m, u32 row, struct part part, const struct meeting *g) {
    struct expand *e = &m->e;
    const i64 *v = m->lists[0].values;
    for (i64 at = part.from; at < part.to && !m->w->enough;) {
        i64 n = e->child->n;
        i64 end = MIN_OF(part.to, at + m->w->run->vector_rows - n);
        for (; at < end; at++) {
            u64 bit = (u64)v[at] - (u64)g->base;
            e->child->from[n] = row;
            e->match[n] = at;
            n += g->bits[bit >> 5] >> (bit & 31) & 1;
        }
        e->child->n = n;
        if (n == m->w->run->vector_rows) {
            TRY(expand_flush(e));
        }
    }
    return ERR_OK;
}

static FALLIBLE hand_steps(struct meet *m, u32 row, struct part part, const struct meeting *g) {
    const i64 *v = m->lists[0].values, *c = g->values;
    bool seeks = part.to - part.from > 8 * g->n || g->n > 8 * (part.to - part.from);
    i64 j = 0;
    for (i64 i = part.from; i < part.to && j < g->n && !m->w->enough;) {
        if (v[i] == c[j]) {
            TRY(hand_on(&m->e, row, i, i + 1, 1));
            i++;
            j++;
        } else if (v[i] < c[j]) {
            i = seeks ? seek(v, i, part.to, c[j]) : i + 1;
        } else {
            j = seeks ? seek(c, j, g->n, v[i]) : j + 1;
        }
    }
    return ERR_OK;
}

static FALLIBLE hand_values(struct meet *m, struct meeting *g, u32 row, i64 again) {
    struct list *list = &m->lists[0];
    if (list->at >= list->end || g->n == 0) {
        return ERR_OK;
    }
    struct part part = between(list, g);
    i64 n = part.to - part.from;
    m->steps += (u64)n;
    i64 marking = g->marked ? 0 : MARK_COST * g->n / again;
    bool marks = n > 0 && n < 16 * g->n && PROBE_COST * n + marking < STEP_COST * (n + g->n) &&
                 (g->marked || (again > 1 && may_mark(m, g)));
    if (marks && !g->marked) {
        mark(g, true);
    }
    return marks ? hand_marked(m, row, part, g) : hand_steps(m, row, part, g);
}

/* What list i has in common with the level behind it; false: memory has no room for it. */
static bool settle_level(struct meet *m, struct meeting *g, u32 i) {
    const struct list *list = &m->lists[i];
    struct level *level = &g->levels[i];
    const i64 *own = list->values + list->at;
    i64 n = list->end - list->at;
    if (i == m->count - 1) {
        level->values = own;
        level->n = n;
        return true;
    }
    const struct level *rest = &g->levels[i + 1];
    i64 few = MIN_OF(n, rest->n), many = MAX_OF(n, rest->n);
    if (!reserve_room(m, level, (few + 1) * (i64)sizeof(i64))) {
        return false;
    }
    bool own_few = few == n;
    level->n = few ? intersect(level->room, own_few ? own : rest->values, few,
                               own_few ? rest->values : own, many)
                   : 0;
    level->values = level->room;
    m->steps += (u64)few;
    return true;
}

/* --- rows --- */

/* The index that a register's runs are of. */
static u32 index_of(const struct cpu_op *op, u16 reg) {
    while (op->op->code != OP_RUN || op->dst != reg) {
        op--; /* it stands before */
    }
    return op->op->imm;
}

static void open_lists(struct worker *w, struct frame *fr, const struct cpu_op *op, struct meet *m,
                       const i64 **runs) {
    const struct exec *x = w->run->x;
    m->w = w;
    m->apart = 1;
    for (; m->count < op->b; m->count++) {
        struct list *list = &m->lists[m->count];
        u16 reg = (u16)(op->a + m->count);
        u32 var = index_of(op, reg);
        const struct index *index = x->vars[var].index;
        const struct chunk *rows = x->vars[x->program->vars[var].rows_var].chunks.items[0];
        runs[m->count] = frame_read(w, fr, reg);
        list->values = rows->cols[1].data;
        list->keys = index->form == INDEX_CHAIN ? rows->cols[0].data : NULL;
        list->row_count = rows->rows;
        m->chains = m->chains || list->keys;
        m->apart = m->apart && index->apart == APART_YES;
    }
}

static struct meeting *meeting_of(struct worker *w, const struct cpu_op *op) {
    if (!w->meetings) {
        w->meetings = NEW_ARRAY(&w->arena, struct meeting *, w->run->pipe.op_count);
    }
    struct meeting **at = &w->meetings[op - w->run->pipe.ops];
    if (!*at) {
        struct meeting *g = NEW(&w->arena, struct meeting);
        g->count = g->known = op->b;
        g->runs = NEW_ARRAY(&w->arena, i64, g->count);
        g->levels = NEW_ARRAY(&w->arena, struct level, g->count);
        *at = g;
    }
    return *at;
}

void meet_close(struct worker *w) {
    struct memory *mem = w->run->x->mem;
    for (u32 i = 0; w->meetings && i < w->run->pipe.op_count; i++) {
        struct meeting *g = w->meetings[i];
        for (u32 k = 0; g && k < g->count; k++) {
            mem_free(mem, g->levels[k].room, g->levels[k].room_bytes);
        }
        if (g) {
            mem_free(mem, g->bits, g->bit_words * (i64)sizeof(u32));
        }
    }
}

/* Of a run in a chain the first row is known; -1: nobody has the key. False: a list is empty. */
static bool find_ends(struct meet *m) {
    bool any = true;
    for (u32 i = 0; i < m->count; i++) {
        struct list *list = &m->lists[i];
        if (list->keys) {
            i64 run = (i64)((u64)list->at << 32 | (u64)list->end);
            list->at = MAX_OF(run, 0);
            list->end = run < 0 ? 0 : behind(list->keys, run, list->row_count);
        }
        any = any && list->at < list->end;
    }
    return any;
}

/* Opens the lists of a row; false: one of them is empty. */
static bool set_lists(struct meet *m, const i64 *const *runs, u32 row) {
    bool any = true;
    for (u32 i = 0; i < m->count; i++) {
        m->lists[i].at = (i64)((u64)runs[i][row] >> 32);
        m->lists[i].end = (u32)runs[i][row];
        any = any && m->lists[i].at < m->lists[i].end;
    }
    if (m->chains) {
        any = find_ends(m);
    }
    return any;
}

/* The first list from which on all are those of the levels. */
static u32 same_from(const struct meeting *g, const i64 *const *runs, u32 row) {
    u32 same = g->count;
    while (same > g->known && runs[same - 1][row] == g->runs[same - 1]) {
        same--;
    }
    return same;
}

/* Rows from the jth on that have its lists from `first` on, at most so many. */
static i64 rows_alike(const struct meet *m, const struct frame *fr, const i64 *const *runs, i64 j,
                      u32 first, i64 most) {
    i64 next = j + 1;
    for (bool same = true; next < fr->m && next - j < most && same;) {
        for (u32 i = m->count; same && i-- > first;) {
            same = runs[i][ACTIVE(fr, next)] == runs[i][ACTIVE(fr, j)];
        }
        next += same;
    }
    return next - j;
}

/* Whether the shortest of a row's lists, sought in all others, costs less than what the lists before `same`
 * have in common with those behind. */
static bool worth_walking(const struct meet *m, const struct meeting *g, const struct frame *fr,
                          const i64 *const *runs, i64 j, u32 same) {
    u32 level = MIN_OF(same, m->count - 1) - 1; /* the first to be made */
    if (level == 0 || same == 1) {
        return false;
    }
    i64 shortest = I64_MAX;
    for (u32 i = 0; i < m->count; i++) {
        shortest = MIN_OF(shortest, m->lists[i].end - m->lists[i].at);
    }
    const struct list *last = &m->lists[m->count - 1];
    i64 rest = same < m->count ? g->levels[same].n : last->end - last->at;
    i64 few = MIN_OF(rest, m->lists[level].end - m->lists[level].at);
    i64 each = shortest * (i64)m->count;
    return each < few && each * rows_alike(m, fr, runs, j, level, AHEAD_ROWS) < few;
}

/* The levels of the jth row; *io_again becomes how many rows from it on have the same lists but for the
 * first. False: its lists are to be walked. */
static bool settle(struct meet *m, struct meeting *g, const struct frame *fr, const i64 *const *runs,
                   i64 j, i64 *io_again) {
    u32 same = same_from(g, runs, ACTIVE(fr, j));
    if (same <= 1) {
        *io_again = MAX_OF(*io_again, 1);
        return true;
    }
    if (worth_walking(m, g, fr, runs, j, same)) {
        return false;
    }
    if (g->marked) {
        mark(g, false);
    }
    g->known = same;
    for (u32 i = same; i-- > 1;) {
        if (!settle_level(m, g, i)) {
            return false;
        }
        g->runs[i] = runs[i][ACTIVE(fr, j)];
        g->known = i;
    }
    g->values = g->levels[1].values;
    g->n = g->levels[1].n;
    *io_again = rows_alike(m, fr, runs, j, 1, fr->m);
    return true;
}

static FALLIBLE look_up(struct meet *m, u64 before) {
    if (stop_due(before, m->steps)) {
        wf_status status = exec_check(m->w->run->x);
        return status ? error_set(&m->w->err, status, -1, "statement cancelled") : ERR_OK;
    }
    return ERR_OK;
}

wf_status meet_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc) {
    const i64 *runs[LISTS_MAX];
    struct meet m = {.e = expand_open(w, fr, op, pc)};
    struct meeting *g = meeting_of(w, op);
    i64 again = 1;
    open_lists(w, fr, op, &m, runs);
    for (i64 j = 0; j < fr->m && !w->enough; j++) {
        u32 row = ACTIVE(fr, j);
        u64 before = m.steps;
        if (set_lists(&m, runs, row)) {
            bool settled = m.apart && settle(&m, g, fr, runs, j, &again);
            TRY(settled ? hand_values(&m, g, row, again) : walk(&m, row, NULL));
        }
        TRY(look_up(&m, before));
    }
    return expand_flush(&m.e);
}

wf_status meet_count(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    const i64 *runs[LISTS_MAX];
    struct meet m = {.count = 0};
    struct meeting *g = meeting_of(w, op);
    i64 again = 1, kept = 0;
    open_lists(w, fr, op, &m, runs);
    i64 *dst = frame_dst(w, fr, op->dst);
    for (i64 j = 0; j < fr->m; j++) {
        u32 row = ACTIVE(fr, j);
        u64 count = 0, before = m.steps;
        bool any = set_lists(&m, runs, row);
        if (any && m.apart && settle(&m, g, fr, runs, j, &again)) {
            count = (u64)count_values(&m, g, again);
            TRY(check_count(&m, count));
        } else if (any) {
            TRY(walk(&m, row, &count));
        }
        w->counted += count;
        dst[row] = (i64)count;
        fr->sel_alt[kept] = row;
        kept += count > 0;
        TRY(look_up(&m, before));
    }
    frame_keep(fr, kept);
    return ERR_OK;
}

wf_status meet_prepare(struct exec *x, u32 var) {
    struct index *index = x->vars[var].index;
    const struct variable *rows = &x->vars[x->program->vars[var].rows_var];
    if (index->apart != APART_UNKNOWN || index->class_bits || rows->chunks.count == 0) {
        return ERR_OK;
    }
    const struct chunk *chunk = rows->chunks.items[0];
    const i64 *key = chunk->cols[0].data, *value = chunk->cols[1].data;
    i64 twice = 0;
    for (i64 i = 1; i < chunk->rows; i++) {
        twice += key[i] == key[i - 1] && value[i] == value[i - 1];
    }
    index->apart = twice ? APART_NO : APART_YES;
    return exec_check(x);
}

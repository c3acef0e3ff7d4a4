/* meet.c: MEET: the rows of several sorted runs that agree in a value.
 *
 * The runs are walked together by leapfrogging: whoever is behind seeks, by steps that double, the
 * first value not below that of the others; where all have the same, its rows are handed on, and all
 * go past it. Two lists of about the same length go on step by step. A walk costs about the shortest
 * run, times the logarithm of how much longer the others are. Values may repeat within a run: every
 * choice of one row from each run counts. */
#include "cpu/cpu_int.h"

#include "codes/control.h"

enum { LISTS_MAX = 3 };

struct list {
    const i64 *values; /* of all rows of the variable */
    u32 at, end;
};

struct meet {
    struct expand e;
    u32 count;
    struct list lists[LISTS_MAX];
    u64 steps;
};

/* The first place from `at` on whose value is not below `value`. */
static u32 seek(const struct list *list, u32 at, i64 value) {
    const i64 *v = list->values;
    u32 step = 1;
    u32 below = at; /* everything before it is */
    while (at < list->end && v[at] < value) {
        below = at + 1;
        at = list->end - at > step ? at + step : list->end;
        step *= 2;
    }
    u32 above = at; /* from here on nothing is */
    while (below < above) {
        u32 middle = below + (above - below) / 2;
        bool less = v[middle] < value;
        below = less ? middle + 1 : below;
        above = less ? above : middle;
    }
    return below;
}

/* Behind the last place that has the value of this one. */
static u32 behind(const struct list *list, u32 at) {
    u32 next = at + 1;
    i64 value = list->values[at];
    bool repeats = next < list->end && list->values[next] == value;
    return !repeats ? next : value == I64_MAX ? list->end : seek(list, next, value + 1);
}

/* Rows [from, to) of the first run, each `times`. */
static FALLIBLE hand_on(struct expand *e, u32 row, u32 from, u32 to, u64 times) {
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

/* All lists to the next value that all of them have; false: there is none, or it is enough. */
static bool align(struct meet *m) {
    for (u32 i = 0; i < m->count;) {
        struct list *first = &m->lists[0];
        struct list *list = &m->lists[i];
        if (first->at >= first->end || list->at >= list->end) {
            return false;
        }
        i64 value = first->values[first->at];
        list->at = i ? seek(list, list->at, value) : list->at;
        if (list->at >= list->end) {
            return false;
        }
        if (list->values[list->at] > value) {
            first->at = seek(first, first->at, list->values[list->at]);
            i = 0;
            m->steps++;
            if (stop_due(m->steps - 1, m->steps)) { /* the pipeline looks again */
                return false;
            }
        } else {
            i++;
        }
    }
    return !m->e.w->enough;
}

/* The same of two lists of about the same length: both go on by one, whichever is behind. */
static bool align_pair(struct meet *m) {
    struct list *a = &m->lists[0], *b = &m->lists[1];
    u32 i = a->at, k = b->at;
    const u32 i_end = a->end, k_end = b->end;
    while (i < i_end && k < k_end) {
        i64 x = a->values[i], y = b->values[k];
        if (x == y) {
            break;
        }
        i += x < y;
        k += y < x;
    }
    u64 before = m->steps;
    m->steps += (u64)(i - a->at) + (k - b->at);
    a->at = i;
    b->at = k;
    return i < i_end && k < k_end && !m->e.w->enough && !stop_due(before, m->steps);
}

/* Two lists that a walk by single steps suits. */
static bool are_alike(const struct meet *m) {
    u64 a = m->lists[0].end - m->lists[0].at, b = m->lists[1].end - m->lists[1].at;
    return m->count == 2 && a < 8 * b && b < 8 * a;
}

static FALLIBLE meet_row(struct meet *m, u32 row) {
    bool alike = are_alike(m);
    while (alike ? align_pair(m) : align(m)) {
        u64 times = 1;
        u32 ends[LISTS_MAX] = {0};
        for (u32 i = 0; i < m->count; i++) {
            ends[i] = behind(&m->lists[i], m->lists[i].at);
            times *= i ? ends[i] - m->lists[i].at : 1;
        }
        TRY(hand_on(&m->e, row, m->lists[0].at, ends[0], times));
        for (u32 i = 0; i < m->count; i++) {
            m->lists[i].at = ends[i];
        }
    }
    return ERR_OK;
}

/* The values of the rows that a register's runs are of. */
static const i64 *values_of(const struct worker *w, const struct cpu_op *op, u16 reg) {
    const struct exec *x = w->run->x;
    while (op->op->code != OP_RUN || op->dst != reg) {
        op--; /* it stands before */
    }
    return x->vars[x->program->vars[op->op->imm].rows_var].chunks.items[0]->cols[1].data;
}

wf_status meet_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc) {
    const u16 regs[LISTS_MAX] = {op->a, op->b, op->c};
    const i64 *runs[LISTS_MAX];
    struct meet m = {.e = expand_open(w, fr, op, pc)};
    for (; m.count < LISTS_MAX && regs[m.count] != NO_REG; m.count++) {
        runs[m.count] = frame_read(w, fr, regs[m.count]);
        m.lists[m.count].values = values_of(w, op, regs[m.count]);
    }
    for (i64 j = 0; j < fr->m; j++) {
        u32 row = ACTIVE(fr, j);
        for (u32 i = 0; i < m.count; i++) {
            m.lists[i].at = (u32)((u64)runs[i][row] >> 32);
            m.lists[i].end = (u32)runs[i][row];
        }
        TRY(meet_row(&m, row));
    }
    return expand_flush(&m.e);
}

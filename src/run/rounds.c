/* rounds.c: what the rules of recursions did, round by round, for EXPLAIN ANALYZE and EXPLAIN (ROUNDS).
 *
 * A rule is a pipeline of a loop that appends rows to a relation; what several rules read of a round, since
 * their bodies are equal, has lines of its own. A step's metrics grow from round to
 * round; the difference is the round's. Derived is what reached the sink, new what the relation did
 * not have. Rounds are noted only while an execution is explained. */
#include "run/run_int.h"

#include <stdio.h>

static bool is_relation(const struct program *program, u32 var) {
    bool found = false;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 i = 0; i < program->blocks[b].loop_count; i++) {
            found = found || program->blocks[b].loop_vars[i].var == var;
        }
    }
    return found;
}

/* The variable that a rule appends to, or that rules share; NO_VAR: the step is none. */
static u32 rule_of(const struct program *program, const struct step *step) {
    const struct pipeline *pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
    const struct sink *sink = pipe && pipe->sink_count ? &pipe->sinks[0] : NULL;
    bool rows = sink && sink->kind == SINK_ROWS;
    bool rule = rows && sink->append && is_relation(program, sink->var);
    bool shared = rows && !is_relation(program, sink->var) && program->vars[sink->var].relation;
    return rule || shared ? sink->var : NO_VAR;
}

/* Rows that reached the end of the pipeline so far; -1 = not counted. */
static i64 derived_of(const struct step *step, const struct step_metric *m) {
    u32 marks = step->pipeline->mark_count;
    return marks && m->marks ? m->marks[marks - 1] : -1;
}

void round_begin(struct exec *x, u32 step_no, const struct step *step, struct round_metric *out) {
    const struct step_metric *m = &x->metrics[step_no];
    *out = (struct round_metric){.step = step_no};
    if (x->counts_rows && rule_of(x->program, step) != NO_VAR) {
        out->rows_in = m->rows_in;
        out->rows_new = m->rows_out;
        out->derived = MAX_OF(derived_of(step, m), 0);
        out->ns = m->ns;
    }
}

void round_end(struct exec *x, const struct step *step, i64 round, struct round_metric *began) {
    const struct step_metric *m = &x->metrics[began->step];
    if (!x->counts_rows || rule_of(x->program, step) == NO_VAR) {
        return;
    }
    i64 derived = derived_of(step, m);
    struct round_metric met = {.step = began->step,
                               .round = round,
                               .rows_in = m->rows_in - began->rows_in,
                               .derived = derived < 0 ? -1 : derived - began->derived,
                               .rows_new = m->rows_out - began->rows_new,
                               .ns = m->ns - began->ns};
    VEC_PUSH(exec_arena(x), &x->round_metrics, met);
}

static const struct step *step_at(const struct program *program, u32 number, u32 *out_first) {
    u32 first = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        if (number < first + block->step_count) {
            *out_first = first;
            return &block->steps[number - first];
        }
        first += block->step_count;
    }
    return NULL;
}

/* "path 2": the second rule of it; "shared12": rows of a variable, as EXPLAIN (PROGRAM) calls it. */
static const char *rule_name(struct exec *x, u32 number) {
    u32 first = 0;
    const struct step *step = step_at(x->program, number, &first);
    u32 var = rule_of(x->program, step);
    i32 nth = 1;
    for (u32 i = first; i < number; i++) {
        nth += rule_of(x->program, step_at(x->program, i, &first)) == var;
    }
    const char *name = x->program->vars[var].relation;
    if (!is_relation(x->program, var)) {
        return arena_printf(x->arena, "%s%u", name, var);
    }
    return arena_printf(x->arena, "%s %d", name ? name : x->program->vars[var].name, nth);
}

const char *const exec_round_cols[EXEC_ROUND_COLS] = {"rule",    "step", "round", "read",
                                                      "derived", "new",  "ns"};

i64 exec_round_table(struct exec *x, struct sv **out_cells) {
    i64 count = x->round_metrics.count;
    struct sv *cells = NEW_ARRAY(x->arena, struct sv, count * EXEC_ROUND_COLS + 1);
    for (i64 i = 0; i < count; i++) {
        const struct round_metric *m = &x->round_metrics.items[i];
        struct sv *row = &cells[i * EXEC_ROUND_COLS];
        const i64 numbers[EXEC_ROUND_COLS] = {0,          m->step,     m->round, m->rows_in,
                                              m->derived, m->rows_new, m->ns};
        row[0] = sv_from(rule_name(x, m->step));
        for (i32 c = 1; c < EXEC_ROUND_COLS; c++) {
            row[c] = sv_from(arena_printf(x->arena, "%lld", numbers[c]));
        }
    }
    *out_cells = cells;
    return count;
}

static void print_line(struct text *out, const char *rule, const char *round,
                       const struct round_metric *m) {
    char derived[24] = "-";
    if (m->derived >= 0) {
        snprintf(derived, sizeof derived, "%lld", m->derived);
    }
    text_print(out, "%-22.40s %7s %11lld %12s %11lld %11s\n", rule, round, m->rows_in, derived,
               m->rows_new, duration_of(m->ns).text);
}

/* One rule: its first rounds, its last ones, what lies between them as one line, and all. */
static void print_rule(struct text *out, struct exec *x, u32 step, i64 rounds) {
    enum { FIRST = 10, LAST = 3 };
    const char *rule = rule_name(x, step);
    struct round_metric all = {0}, between = {0};
    i64 at = 0;
    char round[32];
    for (i64 i = 0; i < x->round_metrics.count; i++) {
        const struct round_metric *m = &x->round_metrics.items[i];
        if (m->step != step) {
            continue;
        }
        at++;
        bool shown = at <= FIRST || at > rounds - LAST;
        struct round_metric *sums[2] = {&all, shown ? NULL : &between};
        for (i32 k = 0; k < 2; k++) {
            if (sums[k]) {
                sums[k]->rows_in += m->rows_in;
                sums[k]->derived += MAX_OF(m->derived, 0);
                sums[k]->rows_new += m->rows_new;
                sums[k]->ns += m->ns;
            }
        }
        if (at == rounds - LAST + 1 && rounds > FIRST + LAST) {
            snprintf(round, sizeof round, "%d..%lld", (int)FIRST + 1, rounds - LAST);
            print_line(out, rule, round, &between);
        }
        if (shown) {
            snprintf(round, sizeof round, "%lld", m->round);
            print_line(out, rule, round, m);
        }
    }
    if (rounds > 1) {
        print_line(out, rule, "all", &all);
    }
}

void exec_print_rounds(struct text *out, struct exec *x) {
    if (x->round_metrics.count == 0) {
        return;
    }
    text_print(out, "\n-- rounds\n%-22s %7s %11s %12s %11s %11s\n", "rule", "round", "read",
               "derived", "new", "time");
    i64 *rounds = NEW_ARRAY(x->arena, i64, step_total(x->program) + 1); /* by step; 0 = printed, or none */
    for (i64 i = 0; i < x->round_metrics.count; i++) {
        rounds[x->round_metrics.items[i].step]++;
    }
    for (i64 i = 0; i < x->round_metrics.count; i++) {
        u32 step = x->round_metrics.items[i].step;
        if (rounds[step]) {
            print_rule(out, x, step, rounds[step]);
            rounds[step] = 0;
        }
    }
}

/* opt.c: runs the passes of pass.def over a plan, and the tools they share.
 *
 * A plan comes from a front end in the shape the query was written; every pass leaves a valid plan
 * with the same answer. In test builds the verifier runs after each, so that a broken plan is found
 * at the pass that broke it. */
#include "opt/opt.h"

#include "opt/opt_int.h"

struct pass {
    const char *name;
    bool required;
    FALLIBLE (*run)(struct opt *o);
};

enum { REQUIRED = 1, OPTIONAL = 0 };
#define X(A, name, need, text) {#name, need, pass_##name},
static const struct pass passes[] = {WF_PASSES(X, )};
#undef X

#ifdef WF_HARD
struct promise {
    bool no_dependent, no_distinct;
};

static void check_rel(struct rel *rel, void *arg) {
    const struct promise *promise = arg;
    ASSERT(!(promise->no_dependent && rel->kind == REL_JOIN && rel->join.dependent));
    for (i64 i = 0; promise->no_distinct && rel->kind == REL_AGG && i < rel->agg.calls.count; i++) {
        ASSERT(!rel->agg.calls.items[i].distinct);
    }
}

/* From `unnest` on no join is dependent, from `split_distinct` on no aggregate is distinct. */
static void check_promises(struct plan *plan, const char *pass, struct promise *io) {
    io->no_dependent = io->no_dependent || strcmp(pass, "unnest") == 0;
    io->no_distinct = io->no_distinct || strcmp(pass, "split_distinct") == 0;
    rel_each(plan->arena, plan->root, check_rel, io);
}
#endif

void opt_look_again(struct opt *o) {
    o->facts = NEW_ARRAY(o->plan->arena, struct col_fact, o->plan->cols.count + 1);
    o->fact_count = o->plan->cols.count;
    facts_collect(o, o->plan->root);
}

FALLIBLE opt_run(struct plan *plan, const struct settings *settings, struct error *err) {
    struct opt o = {.plan = plan, .settings = settings, .err = err};
    i64 choice = 0; /* of skip_pass: optional passes count from 1 */
#ifdef WF_HARD
    struct promise promise = {false, false};
#endif
    for (i64 i = 0; i < COUNT_OF(passes); i++) {
        choice += !passes[i].required;
        if (!passes[i].required && (!settings->optimizer || settings->skip_pass == choice)) {
            continue;
        }
        opt_look_again(&o);
        TRY(passes[i].run(&o));
        TRY(stop_check(err));
#ifdef WF_HARD
        TRY(plan_verify(plan, err));
        check_promises(plan, passes[i].name, &promise);
#endif
    }
    return arena_check(plan->arena, err);
}

struct rel *rel_with_out(struct plan *plan, struct rel *rel, const struct rel *like) {
    bool same = rel->out.count == like->out.count;
    for (i64 i = 0; same && i < rel->out.count; i++) {
        same = rel->out.items[i] == like->out.items[i];
    }
    if (same) {
        return rel;
    }
    struct rel *filter = rel_new(plan, REL_FILTER, rel, NULL);
    filter->out.count = 0;
    for (i64 i = 0; i < like->out.count; i++) {
        VEC_PUSH(plan->arena, &filter->out, like->out.items[i]);
    }
    return filter;
}

struct search {
    struct arena *arena;
    enum rel_kind kind;
    rel_all found;
};

static void note_kind(struct rel *rel, void *arg) {
    struct search *s = arg;
    if (rel->kind == s->kind) {
        VEC_PUSH(s->arena, &s->found, rel);
    }
}

rel_all opt_all_of(struct opt *o, enum rel_kind kind) {
    struct search s = {.arena = o->plan->arena, .kind = kind};
    rel_each(s.arena, o->plan->root, note_kind, &s);
    return s.found;
}

bool opt_first_visit(struct opt *o, const struct rel *input) {
    for (i64 i = 0; i < o->visited.count; i++) {
        if (o->visited.items[i] == input) {
            return false;
        }
    }
    VEC_PUSH(o->plan->arena, &o->visited, input);
    return true;
}

void opt_change_inputs(struct opt *o, struct rel *rel, rel_change_fn change, void *arg) {
    for (i32 i = 0; i < rel->input_count; i++) {
        struct rel *input = rel->inputs[i];
        if (!rel_shares(rel)) {
            rel->inputs[i] = change(input, arg);
        } else if (opt_first_visit(o, input)) {
            struct rel *body = rel_body(o->plan, input);
            *input = *rel_with_out(o->plan, change(body, arg), input);
        }
    }
}

bool opt_is_inner(const struct rel *rel) {
    return rel->kind == REL_JOIN && !rel->join.dependent &&
           (rel->join.kind == JOIN_INNER || rel->join.kind == JOIN_CROSS);
}

bool opt_one_row(const struct rel *rel) {
    while (rel->kind == REL_PROJECT || rel->kind == REL_SORT) {
        rel = rel_input(rel);
    }
    return (rel->kind == REL_AGG && rel->agg.keys.count == 0) ||
           (rel->kind == REL_VALUES && (rel->out.count == 0 || rel->values.exprs.count == rel->out.count));
}

static void rely_on(struct rel *rel, void *arg) {
    struct plan *plan = arg;
    for (i64 i = 0; rel->kind == REL_SCAN && i < rel->scan.cols.count; i++) {
        const struct scan_col *col = &rel->scan.cols.items[i];
        if (col->unique && col->table_col != ROWID_COL) {
            VEC_PUSH(plan->arena, &plan->relied,
                     ((struct relied){rel->scan.table_id, col->table_col, col->no_nulls, 1}));
        }
    }
}

void opt_rely(struct opt *o, struct rel *rel) {
    rel_each(o->plan->arena, rel, rely_on, o->plan);
}

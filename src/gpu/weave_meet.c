/* weave_meet.c: how a woven kernel finds what sorted runs have in common: RUN and MEET.
 *
 * On a list of rows the shortest run of every row leads: its values are laid end to end over the
 * block, as the matches of MATCH are, and every thread searches one of them in the other runs. Work is
 * shared evenly then, however long runs are. Where values repeat within a run, the first run leads, and what
 * is found goes on as often as the others have it. Without a list every thread walks the first run of its
 * own rows. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

struct lists {
    u32 count;
    struct meet_list of[MEET_LISTS_MOST];
    bool apart; /* no run has a value twice */
};

static struct lists lists_of(const struct weaver *v, u32 at) {
    struct lists lists = {.apart = true};
    lists.count = gpu_meet_lists(v->plan, at, lists.of);
    for (u32 k = 0; k < lists.count; k++) {
        lists.apart = lists.apart && v->w->indexes[lists.of[k].index].apart;
    }
    return lists;
}

bool weave_meets(const struct weaver *v) {
    bool meets = false;
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        meets = meets || v->pipe->ops[i].code == OP_RUN;
    }
    return meets;
}

i64 weave_meet_bytes(const struct weaver *v, u32 at) {
    if (v->pipe->ops[at].code != OP_MEET) {
        return 0;
    }
    return (lists_of(v, at).count * (i64)sizeof(u64) + (i64)sizeof(u32)) * WOVEN_BLOCK;
}

void weave_meet_setup(struct weaver *v, u32 at) {
    if (v->pipe->ops[at].code != OP_MEET) {
        return;
    }
    struct lists lists = lists_of(v, at);
    char name[40];
    for (u32 k = 0; k < lists.count; k++) {
        snprintf(name, sizeof name, "s_run%u_%u", at, k);
        weave_carry(v, "u64", (i64)sizeof(u64), name);
    }
    if (lists.apart) {
        snprintf(name, sizeof name, "s_lead%u", at);
        weave_carry(v, "u32", (i64)sizeof(u32), name);
    }
}

void weave_run(struct weaver *v, const struct op *op, u16 number) {
    char key[24];
    operand(v, op->a, key);
    line(v, EACH "{ r%u[i] = act >> i & 1u ? (i64)run_sorted(&x%u, %s) : 0; }", op->dst, number,
         key);
}

static void put_values(struct weaver *v, u32 at, const struct lists *lists) {
    for (u32 k = 0; k < lists->count; k++) {
        line(v, "const i64 *const values%u_%u = (const i64 *)v%u.data;", at, k, lists->of[k].col);
    }
}

/* --- on a list --- */

/* Every row's runs, and which one leads. */
static void put_leads(struct weaver *v, u32 at, const struct lists *lists) {
    line(v, "u32 lead%u = 0;", at);
    line(v, "u32 least%u = act ? ~0u : 0u;", at);
    for (u32 k = 0; k < lists->count; k++) {
        line(v, "s_run%u_%u[t_id()] = (u64)r%u[0];", at, k, lists->of[k].reg);
        line(v, "if (run_length((u64)r%u[0]) < least%u) {", lists->of[k].reg, at);
        line(v, "    lead%u = %uu;", at, k);
        line(v, "    least%u = run_length((u64)r%u[0]);", at, lists->of[k].reg);
        line(v, "}");
    }
    line(v, "u32 at%u[1];", at);
    line(v, "u32 end%u[1];", at);
    if (lists->apart) {
        line(v, "s_lead%u[t_id()] = lead%u;", at, at);
        line(v, "at%u[0] = run_first((u64)(", at);
        for (u32 k = 1; k < lists->count; k++) {
            line(v, "    lead%u == %uu ? r%u[0] :", at, k, lists->of[k].reg);
        }
        line(v, "    r%u[0]));", lists->of[0].reg);
        line(v, "end%u[0] = at%u[0] + least%u;", at, at, at);
    } else { /* nothing where one of them has nothing */
        line(v, "at%u[0] = run_first((u64)r%u[0]);", at, lists->of[0].reg);
        line(v, "end%u[0] = least%u ? (u32)r%u[0] : at%u[0];", at, at, lists->of[0].reg, at);
    }
}

/* The value at the thread's place of the run that leads, searched in the others. */
static void put_search(struct weaver *v, u32 at, const struct lists *lists) {
    u16 dst = v->pipe->ops[at].dst;
    line(v, "r%u[0] = place%u;", dst, at);
    line(v, "if (act) {");
    v->depth++;
    line(v, "const u32 lead = s_lead%u[from%u];", at, at);
    line(v, "const i64 value = (");
    for (u32 k = 1; k < lists->count; k++) {
        line(v, "    lead == %uu ? values%u_%u :", k, at, k);
    }
    line(v, "    values%u_0)[place%u];", at, at);
    line(v, "if (lead != 0u) {");
    line(v, "    const u64 run = s_run%u_0[from%u];", at, at);
    line(v, "    const u32 found = run_seek(values%u_0, run, value);", at);
    line(v, "    act = found < (u32)run && values%u_0[found] == value;", at);
    line(v, "    r%u[0] = act ? found : 0;", dst);
    line(v, "}");
    for (u32 k = 1; k < lists->count; k++) {
        line(v, "if (act && lead != %uu) {", k);
        line(v, "    act = run_has(values%u_%u, s_run%u_%u[from%u], value);", at, k, at, k, at);
        line(v, "}");
    }
    v->depth--;
    line(v, "}");
}

static void meet_on_list(struct weaver *v, u32 at, const struct lists *lists) {
    u16 dst = v->pipe->ops[at].dst;
    put_leads(v, at, lists);
    weave_spread(v, at);
    put_values(v, at, lists);
    if (lists->apart) {
        put_search(v, at, lists);
        return;
    }
    line(v, "u64 times%u = 0;", at);
    line(v, "if (act) {");
    line(v, "    const i64 value = values%u_0[place%u];", at, at);
    line(v, "    times%u = 1;", at);
    for (u32 k = 1; k < lists->count; k++) {
        line(v, "    times%u *= times%u ? run_times(values%u_%u, s_run%u_%u[from%u], value) : 0u;", at,
             at, at, k, at, k, at);
    }
    line(v, "}");
    line(v, "for (;;) {");
    v->depth++;
    line(v, "u32 act = times%u != 0;", at);
    line(v, "if (!b_any((i32)act)) {");
    line(v, "    break;");
    line(v, "}");
    line(v, "times%u -= act;", at);
    line(v, "r%u[0] = act ? place%u : 0;", dst, at);
}

/* --- without one --- */

/* at<at>[i] is behind the row that goes on now, left<at>[i] times. */
static void meet_in_threads(struct weaver *v, u32 at, const struct lists *lists) {
    line(v, "u32 at%u[R];", at);
    line(v, "u32 end%u[R];", at);
    line(v, "u64 left%u[R];", at);
    put_values(v, at, lists);
    line(v, EACH "{");
    line(v, "    at%u[i] = run_first((u64)r%u[i]);", at, lists->of[0].reg);
    line(v, "    end%u[i] = act >> i & 1u ? (u32)r%u[i] : at%u[i];", at, lists->of[0].reg, at);
    line(v, "    left%u[i] = 0;", at);
    line(v, "}");
    line(v, "for (;;) {");
    v->depth++;
    line(v, "act = 0;");
    line(v, EACH "{");
    v->depth++;
    line(v, "NO_UNROLL while (!left%u[i] && at%u[i] != end%u[i]) {", at, at, at);
    line(v, "    const i64 value = values%u_0[at%u[i]++];", at, at);
    line(v, "    left%u[i] = 1;", at);
    for (u32 k = 1; k < lists->count; k++) {
        line(v, "    left%u[i] *= left%u[i] ? run_times(values%u_%u, (u64)r%u[i], value) : 0u;", at,
             at, at, k, lists->of[k].reg);
    }
    line(v, "}");
    line(v, "act |= (u32)(left%u[i] != 0) << i;", at);
    line(v, "r%u[i] = left%u[i] ? (i64)at%u[i] - 1 : 0;", v->pipe->ops[at].dst, at, at);
    v->depth--;
    line(v, "}");
    line(v, "if (!b_any((i32)act)) {");
    line(v, "    break;");
    line(v, "}");
}

void weave_meet(struct weaver *v, u32 at) {
    struct lists lists = lists_of(v, at);
    v->matches[v->match_count++] = at;
    if (weave_spreads(v, at)) {
        meet_on_list(v, at, &lists);
    } else {
        meet_in_threads(v, at, &lists);
    }
}

void weave_meet_next(struct weaver *v, u32 at) {
    if (!weave_spreads(v, at)) {
        line(v, EACH "{ left%u[i] -= left%u[i] != 0; }", at, at);
        v->depth--;
        line(v, "}");
        return;
    }
    if (!lists_of(v, at).apart) {
        v->depth--;
        line(v, "}");
    }
    weave_spread_end(v);
}

/* weave_probe.c: how a woven kernel looks keys up: PROBE, MATCH, EACH and ANY. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

/* Whether row i looks anything up. */
static const char *looks_up(const struct weaver *v, const struct op *op, char buf[64]) {
    char where[24];
    if (op->b == NO_REG) {
        snprintf(buf, 64, "(act >> i & 1u)");
    } else {
        snprintf(buf, 64, "((act >> i & 1u) && %s)", operand(v, op->b, where));
    }
    return buf;
}

static const char *const run_names[] = {
    [KINDEX_DIRECT] = "find_direct_run",
    [KINDEX_RANK] = "find_rank_run",
    [KINDEX_PAIRS] = "find_pair_run",
    [KINDEX_RUNS] = "find_slot_run",
};

/* Says in `looks` which rows look into the table: of those that look anything up, the ones that the
 * bitmap before it, if any, lets pass. All rows ask the bitmap before the first asks the table. */
static void put_filter(struct weaver *v, u32 at, const struct op *op, u16 number, char looks[64]) {
    char key[24];
    looks_up(v, op, looks);
    if (!v->w->indexes[number].filter || v->tested[at]) {
        return;
    }
    operand(v, op->a, key);
    line(v, "u32 k%u = 0;", at);
    line(v, EACH "{ k%u |= (%s ? filter_has(&x%u, %s) : 0u) << i; }", at, looks, number, key);
    snprintf(looks, 64, "(k%u >> i & 1u)", at);
}

/* Unique keys: the first slots of all rows are loaded before the first is looked at. */
static void put_unique_heads(struct weaver *v, u32 at, const struct op *op, u16 number,
                             const char *looks) {
    char key[24];
    operand(v, op->a, key);
    switch (v->w->indexes[number].form) {
    case KINDEX_PAIRS:
        line(v, "u64 slot%u[R];", at);
        line(v, "u64 held%u[R];", at);
        line(v, EACH "{");
        line(v, "    const u64 no = pair_number(&x%u, %s);", number, key);
        line(v, "    slot%u[i] = pair_first(&x%u, no);", at, number);
        line(v, "    held%u[i] = %s && !(no >> 32) ? x%u.slots[slot%u[i]] : 0u;", at, looks, number,
             at);
        line(v, "}");
        line(v, EACH "{");
        line(v, "    const u64 no = pair_number(&x%u, %s);", number, key);
        line(v, "    h%u[i] = find_pair_from(&x%u, no, slot%u[i], held%u[i]);", at, number, at, at);
        line(v, "}");
        break;
    case KINDEX_RANK:
        line(v, "u64 held%u[R];", at);
        line(v, EACH "{ held%u[i] = %s ? rank_word(&x%u, (u64)%s - (u64)x%u.key_lo) : 0u; }", at,
             looks, number, key, number);
        line(v, EACH "{ h%u[i] = find_rank_from(&x%u, %s, held%u[i]); }", at, number, key, at);
        break;
    case KINDEX_RUNS:
        line(v, "u64 slot%u[R];", at);
        line(v, "vec16 held%u[R];", at);
        line(v, EACH "{");
        line(v, "    slot%u[i] = slot_first(&x%u, %s);", at, number, key);
        line(v, "    held%u[i] = %s ? load16(x%u.slots + 2 * slot%u[i]) : vec_of(0, 0);", at, looks,
             number, at);
        line(v, "}");
        line(v, EACH "{ h%u[i] = (u32)(find_slot_from(&x%u, %s, slot%u[i], held%u[i]) >> 32); }",
             at, number, key, at, at);
        break;
    default:
        line(v, EACH "{ h%u[i] = %s ? find_%s(&x%u, %s) : 0u; }", at, looks,
             v->w->indexes[number].form == KINDEX_BITS ? "bits" : "direct_unique", number, key);
        break;
    }
}

/* h<at>[i] = row + 1 of row i's match, 0 = none. */
static void put_heads(struct weaver *v, u32 at, const struct op *op, u16 number) {
    const struct weave_index *index = &v->w->indexes[number];
    char key[24];
    char looks[64];
    operand(v, op->a, key);
    put_filter(v, at, op, number, looks);
    line(v, "u32 h%u[R];", at);
    if (index->unique) {
        put_unique_heads(v, at, op, number, looks);
        return;
    }
    line(v, EACH "{");
    line(v, "    const u64 run = %s ? %s(&x%u, %s) : 0u;", looks, run_names[index->form], number,
         key);
    line(v, "    h%u[i] = (u32)run != (u32)(run >> 32) ? x%u.rows[(u32)run] + 1u : 0u;", at,
         number);
    if (probe_flags(op) & PROBE_SINGLE) {
        line(v, "    if ((u32)(run >> 32) - (u32)run > 1u) {");
        weave_fault(v, op, "FAULT_MORE_ROWS");
        line(v, "    }");
    }
    line(v, "}");
}

void weave_probe(struct weaver *v, u32 at, const struct op *op, u16 number) {
    if (v->tested[at] && v->w->indexes[number].form == KINDEX_BITS) { /* all are row 0 */
        if (v->plan->last[op->dst] > at) {
            line(v, EACH "{ r%u[i] = 0; }", op->dst);
        }
        return;
    }
    put_heads(v, at, op, number);
    line(v, EACH "{");
    if (probe_flags(op) & PROBE_OUTER) {
        const char *only = v->when_depth && v->seen[op->dst] ? "if (act >> i & 1u) " : "";
        line(v, "    %sr%u[i] = (i64)h%u[i] - 1;", only, op->dst, at);
    } else {
        line(v, "    r%u[i] = h%u[i] ? (i64)h%u[i] - 1 : 0;", op->dst, at, at);
        line(v, "    act &= h%u[i] ? ~0u : ~(1u << i);", at);
    }
    line(v, "}");
}

/* at<at>[i] .. end<at>[i]: the matches of row i. */
static void put_runs(struct weaver *v, u32 at, const struct op *op, u16 number) {
    const struct weave_index *index = &v->w->indexes[number];
    char key[24];
    char looks[64];
    operand(v, op->a, key);
    put_filter(v, at, op, number, looks);
    line(v, "u32 at%u[R];", at);
    line(v, "u32 end%u[R];", at);
    line(v, EACH "{");
    line(v, "    const u64 run = %s ? %s(&x%u, %s) : 0u;", looks,
         index->unique ? "find_run" : run_names[index->form], number, key);
    if (probe_flags(op) & PROBE_OUTER) {
        line(v, "    const u64 some = act >> i & 1u ? run_outer(run) : 0u;");
    } else {
        line(v, "    const u64 some = run;");
    }
    line(v, "    at%u[i] = (u32)some;", at);
    line(v, "    end%u[i] = (u32)(some >> 32);", at);
    line(v, "}");
}

/* The match of every row that has one left, into dst. */
static void put_matched(struct weaver *v, u32 at, const struct op *op, u16 number) {
    line(v, EACH "{ r%u[i] = act >> i & 1u ? run_row(&x%u, at%u[i]) : 0; }", op->dst, number, at);
}

void weave_match(struct weaver *v, u32 at, const struct op *op, u16 number) {
    if (v->w->indexes[number].unique) {
        weave_probe(v, at, op, number);
        return;
    }
    put_runs(v, at, op, number);
    v->matches[v->match_count++] = at;
    if (weave_spreads(v, at)) {
        weave_spread(v, at);
        line(v, "r%u[0] = act ? run_row(&x%u, place%u) : 0;", op->dst, number, at);
        return;
    }
    line(v, "for (;;) {");
    v->depth++;
    line(v, "act = 0;");
    line(v, EACH "{ act |= (u32)(at%u[i] != end%u[i]) << i; }", at, at);
    line(v, "if (!b_any((i32)act)) {");
    line(v, "    break;");
    line(v, "}");
    put_matched(v, at, op, number);
}

void weave_next_match(struct weaver *v) {
    u32 at = v->matches[--v->match_count];
    if (v->pipe->ops[at].code == OP_MEET) {
        weave_meet_next(v, at);
        return;
    }
    if (weave_spreads(v, at)) {
        weave_spread_end(v);
        return;
    }
    line(v, EACH "{ at%u[i] += at%u[i] != end%u[i]; }", at, at, at);
    v->depth--;
    line(v, "}");
}

/* The matches of a thread's rows one after the other, until ANY; nothing in between is for the
 * whole block, so that every thread goes round as often as it has to. */
void weave_each(struct weaver *v, u32 at, const struct op *op, u16 number) {
    u32 any = at;
    while (v->pipe->ops[any].code != OP_ANY) {
        any++;
    }
    put_runs(v, at, op, number);
    line(v, "const u32 each%u = act;", at);
    line(v, EACH "{ r%u[i] = -1; }", v->pipe->ops[any].dst);
    line(v, "for (;;) {");
    v->depth++;
    line(v, "act = 0;");
    line(v, EACH "{ act |= (u32)(at%u[i] != end%u[i]) << i; }", at, at);
    line(v, "if (!act) {");
    line(v, "    break;");
    line(v, "}");
    put_matched(v, at, op, number);
    v->each = at;
    memcpy(v->loaded_outside, v->loaded, v->pipe->source.col_count);
}

void weave_any(struct weaver *v, const struct op *op) {
    bool single = probe_flags(op) & PROBE_SINGLE;
    u32 at = v->each;
    line(v, EACH "{");
    line(v, "    if (act >> i & 1u) {");
    if (single) {
        line(v, "        r%u[i] = r%u[i] == -1 ? r%u[i] : -2;", op->dst, op->dst, op->a);
    } else {
        line(v, "        r%u[i] = r%u[i] == -1 ? r%u[i] : r%u[i];", op->dst, op->dst, op->a,
             op->dst);
    }
    line(v, "    }");
    line(v, "    const u32 open = r%u[i] %s;", op->dst, single ? "!= -2" : "== -1");
    line(v, "    at%u[i] = open ? at%u[i] + (u32)(at%u[i] != end%u[i]) : end%u[i];", at, at, at, at,
         at);
    line(v, "}");
    v->depth--;
    line(v, "}");
    memcpy(v->loaded, v->loaded_outside, v->pipe->source.col_count);
    line(v, "act = each%u;", at);
    if (single) {
        line(v, EACH "{");
        line(v, "    if ((act >> i & 1u) && r%u[i] == -2) {", op->dst);
        weave_fault(v, op, "FAULT_MORE_ROWS");
        line(v, "    }");
        line(v, "}");
    }
}

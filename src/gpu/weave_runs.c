/* weave_runs.c: writes how a woven kernel makes groups of rows that come in the order of their key:
 * see agg_runs.h, and agg_list.h where rows go on as a list. One aggregation only. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

enum { LIST_PLACES = WOVEN_BLOCK + 1 }; /* for runs that begin among a list's rows, and the one before */

static const struct sink *sink_of(const struct weaver *v) {
    return v->plan->aggs[v->agg];
}

/* The register of 32 bits that a register of 64 is made from, unchanged; NO_REG: none. */
static u16 narrow_of(const struct weaver *v, u16 reg) {
    const struct pipeline *pipe = v->pipe;
    u32 writers = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        writers += op_writes(&pipe->ops[i]) && pipe->ops[i].dst == reg;
    }
    const struct op *op = &pipe->ops[v->plan->first[reg]];
    bool narrow = writers == 1 && op->code == OP_I64_I32 && !pipe->regs[op->a].is_const;
    return narrow ? op->a : (u16)NO_REG;
}

/* Whether a tile's words of this number, and their sums, fit 32 bits; their identity is none. */
static bool is_short(const struct weaver *v, u32 w) {
    struct range range = v->pipe->regs[sink_of(v)->word_regs[w]].range;
    u8 op = sink_of(v)->words[w];
    i128 most = op == WORD_ADD ? I32_MAX / (WOVEN_BLOCK * v->rows) : I32_MAX - 1;
    bool known = op == WORD_ADD || op == WORD_MIN || op == WORD_MAX;
    return known && range.lo <= range.hi && range.lo >= -most && range.hi <= most;
}

static const char *word_type(const struct weaver *v, u32 w) {
    return is_short(v, w) ? "i32" : "i64";
}

void weave_runs_functions(struct weaver *v) {
    if (!v->list) {
        line(v, "#define RUN_KEY %s", narrow_of(v, sink_of(v)->key) != NO_REG ? "i32" : "i64");
    }
    line(v, "#include \"%s.h\"", v->list ? "agg_list" : "agg_runs");
    v->w->shared_bytes = v->list ? 8u * LIST_PLACES * (1 + sink_of(v)->word_count) : 0;
}

static void put_list_setup(struct weaver *v) {
    line(v, "SHARED(i64, s_last, %d);", WOVEN_BLOCK / 32);
    line(v, "SHARED(u32, s_some, %d);", WOVEN_BLOCK / 16);
    line(v, "u64 *const keys = (u64 *)s_bytes;");
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "u64 *const sums%u = keys + %u;", w, (1 + w) * LIST_PLACES);
    }
}

void weave_runs_setup(struct weaver *v) {
    i32 stretches = WOVEN_BLOCK / 32 * v->rows / 4;
    if (v->list) {
        put_list_setup(v);
        return;
    }
    if (!v->plan->keeps[v->agg].count) {
        line(v, "SHARED(u32, s_sums, 32);");
        line(v, "SHARED(u64, s_base, 1);");
    }
    line(v, "SHARED(RUN_KEY, s_first, 1);");
    line(v, "SHARED(RUN_KEY, s_last, %d);", stretches);
    line(v, "SHARED(RUN_KEY, s_end, %d);", stretches);
    line(v, "SHARED(u32, s_some, %d);", stretches);
    line(v, "SHARED(u32, s_rows, %d);", stretches);
    line(v, "SHARED(u32, s_ends, %d);", stretches);
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "SHARED(%s, s_tail%u, %d);", word_type(v, w), w, stretches);
    }
    for (u32 n = 0; n < v->plan->keeps[v->agg].count; n++) {
        u32 col = v->plan->keeps[v->agg].items[n]->col;
        const char *type = col ? word_type(v, col - 1)
                           : narrow_of(v, sink_of(v)->key) != NO_REG ? "i32"
                                                                     : "i64";
        line(v, "const %s lo%u = run_bound_%s(args.aggs[@].keeps[%u].lo);", type, n, type, n);
        line(v, "const %s hi%u = run_bound_%s(args.aggs[@].keeps[%u].hi);", type, n, type, n);
    }
}

/* --- what both write --- */

/* The run at `run`, to the bounds of its tile from word `at` on. */
static void put_edge(struct weaver *v, u32 at, const char *run) {
    line(v, "    bound[%u] = keys[%s];", at, run);
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "    bound[%u] = sums%u[%s];", at + 1 + w, w, run);
    }
}

static void put_bound(struct weaver *v) {
    line(v, "u64 *const bound = args.aggs[@].bounds +");
    line(v, "    %u * (args.aggs[@].bound_starts[tablet] + (u64)first / %du);",
         AGG_BOUNDS(sink_of(v)->word_count), WOVEN_BLOCK * v->w->rows_per_thread);
}

/* Of the runs from `first` to the one before `end` those that are wanted, to the output: those of a
 * warp by one addition. */
static void put_runs_kept(struct weaver *v, const char *first, const char *end) {
    const struct sink *sink = sink_of(v);
    line(v, "for (u32 from = %s + t_id() - t_lane(); from < %s; from += %d) {", first, end,
         WOVEN_BLOCK);
    v->depth++;
    line(v, "const u32 k = from + t_lane();");
    line(v, "u32 wanted = k < %s;", end);
    if (v->plan->keeps[v->agg].count) {
        line(v, "if (wanted) {");
        for (u32 n = 0; n < v->plan->keeps[v->agg].count; n++) {
            u32 col = v->plan->keeps[v->agg].items[n]->col;
            char name[24] = "keys";
            if (col) {
                snprintf(name, sizeof name, "sums%u", col - 1);
            }
            line(v, "    wanted &= (i64)%s[k] >= args.aggs[@].keeps[%u].lo;", name, n);
            line(v, "    wanted &= (i64)%s[k] <= args.aggs[@].keeps[%u].hi;", name, n);
        }
        line(v, "}");
    }
    line(v, "const u64 to = w_reserve(wanted, &AGG_REPORT(@)[REPORT_ROWS]);");
    line(v, "if (wanted && (i64)to < args.capacity) {");
    line(v, "    ((u64 *)args.outs[0].data)[to] = keys[k];");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    ((u64 *)args.outs[%u].data)[to] = sums%u[k];", 1 + w, w);
    }
    line(v, "} else if (wanted) {");
    line(v, "    atom_or_u32((u32 *)&AGG_REPORT(@)[REPORT_RETRY], RETRY_OUTPUT);");
    line(v, "}");
    v->depth--;
    line(v, "}");
}

static void put_descends(struct weaver *v) {
    line(v, "if (descends) {");
    line(v, "    atom_or_u32((u32 *)&AGG_REPORT(@)[REPORT_RETRY], RETRY_ORDER);");
    line(v, "}");
}

/* --- rows of a tile --- */

/* ended<w>[i]: what this thread has of the run that ends before row i, if one does; tail<w>[g]: of
 * the one that goes on behind its rows. */
static void put_run_word(struct weaver *v, u32 w) {
    const char *op = weave_words[sink_of(v)->words[w]];
    const char *type = word_type(v, w);
    char x[24];
    line(v, "%s ended%u[R];", type, w);
    line(v, "%s tail%u[R / 4];", type, w);
    line(v, EACH_GROUP "{");
    v->depth++;
    line(v, "%s sum = run_identity_%s(%s);", type, type, op);
    line(v, "UNROLL for (u32 i = 4 * g; i < 4 * g + 4; i++) {");
    line(v, "    const %s x = act >> i & 1u ? (%s)%s : run_identity_%s(%s);", type, type,
         operand(v, sink_of(v)->word_regs[w], x), type, op);
    line(v, "    ended%u[i] = sum;", w);
    line(v, "    sum = runs.ends >> i & 1u ? x : run_merge_%s(%s, sum, x);", type, op);
    line(v, "}");
    line(v, "tail%u[g] = w_run_upto_%s(%s, sum, lanes[g]);", w, type, op);
    line(v, "if (t_lane() == 31u) {");
    line(v, "    s_tail%u[run_stretch(g)] = tail%u[g];", w, w);
    line(v, "}");
    v->depth--;
    line(v, "}");
}

/* The first run that ends within a thread's four rows has rows of lower threads. */
static void put_run_join(struct weaver *v, u32 w) {
    const char *op = weave_words[sink_of(v)->words[w]];
    const char *type = word_type(v, w);
    const char *bits = is_short(v, w) ? "u32" : "u64";
    line(v, "%s more%u = (%s)w_up_%s((%s)tail%u[g], 1);", type, w, type, bits, bits, w);
    line(v, "more%u = t_lane() ? more%u : run_identity_%s(%s);", w, w, type, op);
    line(v, "if (ends && !below) {");
    line(v, "    more%u = run_merge_%s(%s, more%u, run_back_%s(%s, s_tail%u, s_ends, "
            "run_stretch(g)));",
         w, type, op, w, type, op, w);
    line(v, "}");
    line(v, "UNROLL for (u32 i = 4 * g; i < 4 * g + 4; i++) {");
    line(v, "    ended%u[i] = first_end >> i & 1u ? run_merge_%s(%s, more%u, ended%u[i])", w, type,
         op, w, w);
    line(v, "                                      : ended%u[i];", w);
    line(v, "}");
}

/* The tile's first run, where it ends in it, to the tile's bounds; `out`: the others, by row. */
static void put_first_run(struct weaver *v) {
    line(v, "u32 out = runs.ends;");
    put_bound(v);
    line(v, EACH_GROUP "{");
    line(v, "    const u32 ends = runs.ends & 15u << (4 * g);");
    line(v, "    if (ends && runs.open[g] == *s_first) {");
    line(v, "        out &= ~(ends & (0u - ends));");
    line(v, "        bound[1] = (u64)(i64)*s_first;");
    line(v, "        UNROLL for (u32 i = 4 * g; i < 4 * g + 4; i++) {");
    line(v, "            if ((ends & (0u - ends)) >> i & 1u) {");
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "                bound[%u] = (u64)(i64)ended%u[i];", 2 + w, w);
    }
    line(v, "            }");
    line(v, "        }");
    line(v, "    }");
    line(v, "}");
}

/* The last run, by one thread: what stretches have of it from the end on. It may be the first. */
static void put_last_run(struct weaver *v) {
    u32 words = sink_of(v)->word_count;
    i32 stretches = WOVEN_BLOCK / 32 * v->rows / 4;
    line(v, "if (t_id() == 0) {");
    v->depth++;
    line(v, "u32 end = %u;", stretches);
    line(v, "while (end > 0 && !s_rows[end - 1u]) {");
    line(v, "    end--;");
    line(v, "}");
    line(v, "if (end) {");
    v->depth++;
    line(v, "const u32 one = s_end[end - 1u] == *s_first;");
    line(v, "bound[0] = one ? 1u : 2u;");
    line(v, "bound[%u] = (u64)(i64)s_end[end - 1u];", 2 + words);
    for (u32 w = 0; w < words; w++) {
        const char *type = word_type(v, w);
        line(v, "bound[%u] = (u64)(i64)run_back_%s(%s, s_tail%u, s_ends, end);", 3 + words + w,
             type, weave_words[sink_of(v)->words[w]], w);
    }
    line(v, "for (u32 k = 0; one && k < %u; k++) {", 1 + words);
    line(v, "    bound[1 + k] = bound[%u + k];", 2 + words);
    line(v, "}");
    v->depth--;
    line(v, "}");
    v->depth--;
    line(v, "}");
}

static void put_run_row(struct weaver *v, const char *at) {
    line(v, "        ((u64 *)args.outs[0].data)[%s] = (u64)(i64)runs.before[i];", at);
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "        ((u64 *)args.outs[%u].data)[%s] = (u64)(i64)ended%u[i];", 1 + w, at, w);
    }
}

/* The runs that are wanted, to the output: few are. */
static void put_runs_wanted(struct weaver *v) {
    for (u32 n = 0; n < v->plan->keeps[v->agg].count; n++) {
        u32 col = v->plan->keeps[v->agg].items[n]->col;
        char name[24] = "runs.before[i]";
        if (col) {
            snprintf(name, sizeof name, "ended%u[i]", col - 1);
        }
        line(v, EACH "{ out &= %s >= lo%u && %s <= hi%u ? ~0u : ~(1u << i); }", name, n, name, n);
    }
    line(v, "if (w_ballot(out != 0)) {");
    v->depth++;
    line(v, EACH "{");
    line(v, "    const u64 to = w_reserve(out >> i & 1u, &AGG_REPORT(@)[REPORT_ROWS]);");
    line(v, "    if ((out >> i & 1u) && (i64)to < args.capacity) {");
    put_run_row(v, "to");
    line(v, "    } else if (out >> i & 1u) {");
    line(v, "        atom_or_u32((u32 *)&AGG_REPORT(@)[REPORT_RETRY], RETRY_OUTPUT);");
    line(v, "    }");
    line(v, "}");
    v->depth--;
    line(v, "}");
}

/* All of them, by the rows that the tile reserves. */
static void put_runs_all(struct weaver *v) {
    line(v, "const struct b_place place =");
    line(v, "    b_reserve(bits_set_u32(out), s_sums, s_base, &AGG_REPORT(@)[REPORT_ROWS]);");
    line(v, "const u32 fits = out_fits(place, args.capacity, -1, AGG_REPORT(@));");
    line(v, "u32 to = place.first;");
    line(v, EACH "{");
    line(v, "    if ((out >> i & 1u) && to < fits) {");
    put_run_row(v, "place.base + to");
    line(v, "    }");
    line(v, "    to += out >> i & 1u;");
    line(v, "}");
}

static void put_tile_runs(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    u16 narrow = narrow_of(v, sink->key);
    line(v, "const struct t_runs runs = b_run_heads(r%u, act, s_last, s_some, s_first);",
         narrow != NO_REG ? narrow : sink->key);
    line(v, "const u32 descends = runs.descends;");
    put_descends(v);
    line(v, "u32 lanes[R / 4];");
    line(v, EACH_GROUP "{");
    line(v, "    lanes[g] = w_ballot((runs.ends >> (4 * g) & 15u) != 0);");
    line(v, "    if (t_lane() == 0) {");
    line(v, "        s_ends[run_stretch(g)] = lanes[g];");
    line(v, "        s_rows[run_stretch(g)] = s_some[run_stretch(g)];");
    line(v, "        if (s_some[run_stretch(g)]) {");
    line(v, "            s_end[run_stretch(g)] = s_last[run_stretch(g)];");
    line(v, "        }");
    line(v, "    }");
    line(v, "}");
    for (u32 w = 0; w < sink->word_count; w++) {
        put_run_word(v, w);
    }
    line(v, "b_sync();");
    line(v, EACH_GROUP "{");
    v->depth++;
    line(v, "const u32 ends = runs.ends & 15u << (4 * g);");
    line(v, "const u32 first_end = ends & (0u - ends);");
    line(v, "const u32 below = lanes[g] & ((1u << t_lane()) - 1u);");
    for (u32 w = 0; w < sink->word_count; w++) {
        put_run_join(v, w);
    }
    v->depth--;
    line(v, "}");
    put_first_run(v);
    if (v->plan->keeps[v->agg].count) {
        put_runs_wanted(v);
    } else {
        put_runs_all(v);
    }
    put_last_run(v);
}

/* --- rows of a list --- */

/* tile_runs: how many runs have begun in the tile. */
void weave_runs_list_begin(struct weaver *v) {
    line(v, "u32 tile_runs = 0;");
}

/* A word of the rows' runs, to their slots; more<w>: what goes to the run that goes on. */
static void put_listed_word(struct weaver *v, u32 w) {
    const char *op = weave_words[sink_of(v)->words[w]];
    char x[24];
    snprintf(x, sizeof x, v->pipe->regs[sink_of(v)->word_regs[w]].is_const ? "r%u" : "r%u[0]",
             sink_of(v)->word_regs[w]);
    line(v, "const i64 more%u =", w);
    line(v, "    w_listed_word(%s, runs.heads, act ? (i64)%s : word_identity(%s));", op, x, op);
    line(v, "if (begins) {");
    line(v, "    sums%u[runs.slot] = (u64)more%u;", w, w);
    line(v, "}");
}

static void put_list_runs(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    line(v, "u32 descends = 0;");
    line(v, "const struct b_listed runs = b_listed_runs(r%u[0], act, tile_runs != 0, keys, s_last,",
         sink->key);
    line(v, "                                           s_some, &descends);");
    put_descends(v);
    line(v, "const u32 begins = runs.heads >> t_lane() & 1u;");
    line(v, "if (begins) {");
    line(v, "    keys[runs.slot] = (u64)r%u[0];", sink->key);
    line(v, "}");
    for (u32 w = 0; w < sink->word_count; w++) {
        put_listed_word(v, w);
    }
    line(v, "b_sync();");
    line(v, "if (t_lane() == 0 && runs.goes_on != ~0u) {");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    near_add(%s, sums%u + runs.goes_on, more%u);", weave_words[sink->words[w]], w,
             w);
    }
    line(v, "}");
    line(v, "b_sync();");
    line(v, "if (runs.total > 1u) { /* all but the last have ended */");
    v->depth++;
    put_runs_kept(v, "(tile_runs < 2u)", "runs.total - 1u");
    line(v, "if (t_id() == 0 && tile_runs < 2u) { /* the tile's first */");
    v->depth++;
    put_bound(v);
    put_edge(v, 1, "0");
    v->depth--;
    line(v, "}");
    line(v, "b_sync();");
    line(v, "if (t_id() == 0) {");
    line(v, "    keys[0] = keys[runs.total - 1u];");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    sums%u[0] = sums%u[runs.total - 1u];", w, w);
    }
    line(v, "}");
    v->depth--;
    line(v, "}");
    line(v, "tile_runs += runs.total - (tile_runs != 0);");
}

/* The tile's last run is in slot 0; it may be the first as well. */
void weave_runs_list_end(struct weaver *v) {
    line(v, "if (t_id() == 0 && tile_runs) {");
    v->depth++;
    put_bound(v);
    line(v, "bound[0] = tile_runs > 1u ? 2u : 1u;");
    line(v, "if (tile_runs == 1u) {");
    put_edge(v, 1, "0");
    line(v, "}");
    line(v, "{");
    put_edge(v, 2 + sink_of(v)->word_count, "0");
    line(v, "}");
    v->depth--;
    line(v, "}");
}

void weave_emit_runs(struct weaver *v) {
    if (v->list) {
        put_list_runs(v);
    } else {
        put_tile_runs(v);
    }
}

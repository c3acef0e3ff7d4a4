/* weave_runs.c: writes how a woven kernel makes groups of rows that come in the order of their key:
 * see agg_runs.h, and agg_list.h where rows go on as a list. One aggregation only. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

enum { RUN_ROWS_MOST = 16 };
enum { LIST_PLACES = WOVEN_BLOCK + 1 }; /* for runs that begin among a list's rows, and the one before */

static const struct sink *sink_of(const struct weaver *v) {
    return v->plan->aggs[v->agg];
}

static u16 narrow_of(const struct gpu_plan *plan, u16 reg) {
    const struct pipeline *pipe = plan->pipe;
    u32 writers = 0;
    if (pipe->regs[reg].is_const) {
        return NO_REG;
    }
    if (pipe->regs[reg].kind == KIND_I32) {
        return reg;
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        writers += op_writes(&pipe->ops[i]) && pipe->ops[i].dst == reg;
    }
    const struct op *op = &pipe->ops[plan->first[reg]];
    bool narrow = writers == 1 && op->code == OP_I64_I32 && !pipe->regs[op->a].is_const;
    return narrow ? op->a : (u16)NO_REG;
}

u16 weave_narrow(const struct weaver *v, u16 reg) {
    return narrow_of(v->plan, reg);
}

/* Whether a tile's words of this number, and their sums, fit 32 bits; their identity is none. */
static bool fits_short(const struct gpu_plan *plan, const struct sink *sink, u32 w, i32 rows) {
    struct range range = plan->pipe->regs[sink->word_regs[w]].range;
    u8 op = sink->words[w];
    i128 most = op == WORD_ADD ? I32_MAX / (WOVEN_BLOCK * rows) : I32_MAX - 1;
    bool known = op == WORD_ADD || op == WORD_MIN || op == WORD_MAX;
    return known && range.lo <= range.hi && range.lo >= -most && range.hi <= most;
}

static bool is_short(const struct weaver *v, u32 w) {
    return fits_short(v->plan, sink_of(v), w, v->rows);
}

static const char *word_type(const struct weaver *v, u32 w) {
    return is_short(v, w) ? "i32" : "i64";
}

/* Words of 32 bits that a row is kept as until runs have ended. */
static i32 kept_words(const struct gpu_plan *plan, const struct sink *sink, i32 rows) {
    i32 words = narrow_of(plan, sink->key) != NO_REG ? 1 : 2;
    for (u32 w = 0; w < sink->word_count; w++) {
        words += fits_short(plan, sink, w, rows) ? 1 : 2;
    }
    return words;
}

i32 weave_runs_words(const struct weaver *v) {
    return kept_words(v->plan, sink_of(v), v->rows);
}

i32 gpu_weave_run_rows(const struct gpu_plan *plan, const struct sink *sink) {
    i32 words = kept_words(plan, sink, RUN_ROWS_MOST);
    bool plain = plan->pipe->source.col_count <= 2 && !plan->indexes.count && !plan->has_text;
    return words <= 2 && plain ? RUN_ROWS_MOST : words <= 4 ? 8 : 4;
}

void weave_runs_functions(struct weaver *v) {
    if (!v->list) {
        line(v, "#define RUN_KEY %s", weave_narrow(v, sink_of(v)->key) != NO_REG ? "i32" : "i64");
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
    i32 stretches = 2 * WOVEN_BLOCK / 32; /* in turn: see agg_runs.h */
    if (v->list) {
        put_list_setup(v);
        return;
    }
    if (!v->plan->keeps[v->agg].count) {
        line(v, "SHARED(u32, s_sums, 32);");
        line(v, "SHARED(u64, s_base, 1);");
    }
    line(v, "SHARED(RUN_KEY, s_first, %d);", stretches);
    line(v, "SHARED(RUN_KEY, s_last, %d);", stretches);
    line(v, "SHARED(u32, s_some, %d);", stretches);
    line(v, "SHARED(u32, s_ends, %d);", stretches);
    line(v, "const u32 stretch = t_id() / 32u;");
    line(v, "u32 told = 0;");
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "SHARED(%s, s_tail%u, %d);", word_type(v, w), w, stretches);
    }
    for (u32 n = 0; n < v->plan->keeps[v->agg].count; n++) {
        u32 col = v->plan->keeps[v->agg].items[n]->col;
        const char *type = col ? word_type(v, col - 1)
                           : weave_narrow(v, sink_of(v)->key) != NO_REG ? "i32"
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

/* x<w>[i]: the words of the thread's rows; tail<w>: what it has of the run that goes on behind them,
 * then what the warp has of it up to here. */
static void put_run_word(struct weaver *v, u32 w) {
    const char *op = weave_words[sink_of(v)->words[w]];
    const char *type = word_type(v, w);
    char x[24];
    line(v, "%s x%u[R];", type, w);
    line(v, EACH "{ x%u[i] = (%s)%s; }", w, type, operand(v, sink_of(v)->word_regs[w], x));
    line(v, "if (act != RUN_ALL) {");
    line(v, "    " EACH "{ x%u[i] = act >> i & 1u ? x%u[i] : run_identity_%s(%s); }", w, w, type,
         op);
    line(v, "}");
    line(v, "%s tail%u = x%u[0];", type, w, w);
    line(v, "UNROLL for (u32 i = 1; i < R; i++) {");
    line(v, "    tail%u = runs.key[i] != runs.key[i - 1] ? x%u[i]", w, w);
    line(v, "                                          : run_merge_%s(%s, tail%u, x%u[i]);", type,
         op, w, w);
    line(v, "}");
    line(v, "tail%u = w_run_upto_%s(%s, tail%u, runs.lanes);", w, type, op, w);
    line(v, "if (t_lane() == 31u) {");
    line(v, "    s_tail%u[told + stretch] = tail%u;", w, w);
    line(v, "}");
}

/* Goes through the thread's rows: what is put in between finds in run<w> the words of the run that
 * ends before row i, if one does, and its key in `before`. */
static void put_walk_begin(struct weaver *v) {
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "%s run%u = open%u;", word_type(v, w), w, w);
    }
    line(v, EACH "{");
    v->depth++;
    line(v, "const RUN_KEY before = i ? runs.key[i ? i - 1 : 0] : runs.open;");
}

static void put_walk_end(struct weaver *v) {
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "run%u = runs.key[i] != before ? x%u[i]", w, w);
        line(v, "                            : run_merge_%s(%s, run%u, x%u[i]);", word_type(v, w),
             weave_words[sink_of(v)->words[w]], w, w);
    }
    v->depth--;
    line(v, "}");
}

/* The tile's first run, where it ends in it, to the tile's bounds; `out`: the others, by row. */
static void put_first_run(struct weaver *v) {
    line(v, "u32 out = runs.ends;");
    put_bound(v);
    line(v, "if (out && runs.open == runs.first) {");
    v->depth++;
    line(v, "const u32 first_end = out & (0u - out);");
    line(v, "out &= ~first_end;");
    line(v, "bound[1] = (u64)(i64)runs.first;");
    put_walk_begin(v);
    line(v, "if (first_end >> i & 1u) {");
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "    bound[%u] = (u64)(i64)run%u;", 2 + w, w);
    }
    line(v, "}");
    line(v, "UNUSED_WORD(before);");
    put_walk_end(v);
    v->depth--;
    line(v, "}");
}

/* The last run, by one thread: what stretches have of it from the end on. It may be the first. */
static void put_last_run(struct weaver *v) {
    u32 words = sink_of(v)->word_count;
    line(v, "if (t_id() == 0) {");
    v->depth++;
    line(v, "u32 end = %d;", WOVEN_BLOCK / 32);
    line(v, "while (end > 0 && !said.some[end - 1u]) {");
    line(v, "    end--;");
    line(v, "}");
    line(v, "if (end) {");
    v->depth++;
    line(v, "const RUN_KEY last = said.last[end - 1u];");
    line(v, "const u32 from = run_from(said, end, last);");
    line(v, "const u32 one = last == runs.first;");
    line(v, "bound[0] = one ? 1u : 2u;");
    line(v, "bound[%u] = (u64)(i64)last;", 2 + words);
    for (u32 w = 0; w < words; w++) {
        line(v, "bound[%u] = (u64)(i64)run_join_%s(%s, s_tail%u + told, from, end);", 3 + words + w,
             word_type(v, w), weave_words[sink_of(v)->words[w]], w);
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
    line(v, "        ((u64 *)args.outs[0].data)[%s] = (u64)(i64)before;", at);
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "        ((u64 *)args.outs[%u].data)[%s] = (u64)(i64)run%u;", 1 + w, at, w);
    }
}

/* Of the runs to be written, those that are wanted: few are. */
static void put_wanted(struct weaver *v) {
    line(v, "u32 wanted = 0;");
    line(v, "{");
    v->depth++;
    put_walk_begin(v);
    line(v, "u32 is_wanted = 1;");
    for (u32 n = 0; n < v->plan->keeps[v->agg].count; n++) {
        u32 col = v->plan->keeps[v->agg].items[n]->col;
        char name[24] = "before";
        if (col) {
            snprintf(name, sizeof name, "run%u", col - 1);
        }
        line(v, "is_wanted &= %s >= lo%u && %s <= hi%u;", name, n, name, n);
    }
    line(v, "wanted |= is_wanted << i;");
    put_walk_end(v);
    v->depth--;
    line(v, "}");
    line(v, "out &= wanted;");
}

/* The runs that are wanted, to rows that the warp reserves. */
static void put_runs_wanted(struct weaver *v) {
    put_wanted(v);
    line(v, "if (w_ballot(out != 0)) {");
    v->depth++;
    line(v, "u64 to = w_reserve_rows(bits_set_u32(out), &AGG_REPORT(@)[REPORT_ROWS]);");
    line(v, "if (out) {");
    v->depth++;
    put_walk_begin(v);
    line(v, "    if ((out >> i & 1u) && (i64)to < args.capacity) {");
    put_run_row(v, "to");
    line(v, "    } else if (out >> i & 1u) {");
    line(v, "        atom_or_u32((u32 *)&AGG_REPORT(@)[REPORT_RETRY], RETRY_OUTPUT);");
    line(v, "    }");
    line(v, "    to += out >> i & 1u;");
    put_walk_end(v);
    v->depth--;
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
    put_walk_begin(v);
    line(v, "    if ((out >> i & 1u) && to < fits) {");
    put_run_row(v, "place.base + to");
    line(v, "    }");
    line(v, "    to += out >> i & 1u;");
    put_walk_end(v);
}

static void put_tile_runs(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    u16 narrow = weave_narrow(v, sink->key);
    line(v, "const struct run_words said = {s_first + told, s_last + told, s_some + told, s_ends + told};");
    line(v, "struct t_runs runs = w_runs(r%u, act, said, stretch);",
         narrow != NO_REG ? narrow : sink->key);
    for (u32 w = 0; w < sink->word_count; w++) {
        put_run_word(v, w);
    }
    line(v, "b_sync();");
    line(v, "run_look_back(&runs, said, stretch);");
    line(v, "const u32 descends = runs.descends;");
    put_descends(v);
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "const %s open%u = w_run_open_%s(%s, tail%u, &runs, s_tail%u + told, stretch);",
             word_type(v, w), w, word_type(v, w), weave_words[sink->words[w]], w, w);
    }
    put_first_run(v);
    if (v->plan->keeps[v->agg].count) {
        put_runs_wanted(v);
    } else {
        put_runs_all(v);
    }
    put_last_run(v);
    line(v, "told ^= %du;", WOVEN_BLOCK / 32);
}

/* --- rows of a list --- */

/* tile_runs: how many runs have begun in the tile. */
void weave_runs_list_begin(struct weaver *v) {
    line(v, "u32 tile_runs = 0;");
}

/* The words of the rows' runs, to their slots; more<w>: what goes to the run that goes on. */
static void put_listed_words(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    for (u32 w = 0; w < sink->word_count; w++) {
        const char *op = weave_words[sink->words[w]];
        const char *type = word_type(v, w);
        bool is_const = v->pipe->regs[sink->word_regs[w]].is_const;
        line(v, "%s more%u = act ? (%s)r%u%s : run_identity_%s(%s);", type, w, type,
             sink->word_regs[w], is_const ? "" : "[0]", type, op);
    }
    line(v, "UNROLL for (u32 by = 1; by < 32; by *= 2) {");
    line(v, "    const u32 apart = listed_apart(runs.heads, by);");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    more%u = w_listed_%s(%s, apart, more%u, by);", w, word_type(v, w),
             weave_words[sink->words[w]], w);
    }
    line(v, "}");
    line(v, "if (begins) {");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    sums%u[runs.slot] = (u64)(i64)more%u;", w, w);
    }
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
    put_listed_words(v);
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

/* weave_runs.c: writes how a woven kernel makes groups of rows that come in the order of their key:
 * see agg_runs.h, and agg_list.h where rows go on as a list. One aggregation only. */
#include "gpu/weave_int.h"

static const struct sink *sink_of(const struct weaver *v) {
    return v->plan->aggs[v->agg];
}

/* Places for the runs of a tile, or of a list's rows and the one before them. */
static u32 run_places(const struct weaver *v) {
    return v->list ? WOVEN_BLOCK + 1 : (u32)(v->rows * WOVEN_BLOCK);
}

void weave_runs_functions(struct weaver *v) {
    line(v, "#include \"%s.h\"", v->list ? "agg_list" : "agg_runs");
    v->w->shared_bytes = 8u * run_places(v) * (1 + sink_of(v)->word_count);
}

void weave_runs_setup(struct weaver *v) {
    i32 bands = v->list ? 1 : v->rows / 4;
    if (!v->list) {
        line(v, "SHARED(u32, s_sums, 32);");
        line(v, "SHARED(u64, s_base, 1);");
    }
    line(v, "SHARED(i64, s_last, %d);", WOVEN_BLOCK / 32 * bands);
    line(v, "SHARED(u32, s_some, %d);", WOVEN_BLOCK / 32 * (v->list ? 2 : bands));
    line(v, "u64 *const keys = (u64 *)s_bytes;");
    for (u32 w = 0; w < sink_of(v)->word_count; w++) {
        line(v, "u64 *const sums%u = keys + %u;", w, (1 + w) * run_places(v));
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

/* Word w of the runs that this thread begins, stored; more<w>: of those it goes on with. */
static void put_run_word(struct weaver *v, u32 w) {
    const struct sink *sink = sink_of(v);
    const char *op = weave_words[sink->words[w]];
    char x[24];
    line(v, "i64 more%u[R / 4];", w);
    line(v, EACH_GROUP "{");
    v->depth++;
    line(v, "u32 at = runs.first[g];");
    line(v, "i64 sum = word_identity(%s);", op);
    line(v, "more%u[g] = sum;", w);
    line(v, "u32 begun = 0;");
    line(v, "UNROLL for (u32 i = 4 * g; i < 4 * g + 4; i++) {");
    line(v, "    if (heads >> i & 1u) {");
    line(v, "        if (begun) {");
    line(v, "            sums%u[at++] = (u64)sum;", w);
    line(v, "        } else {");
    line(v, "            more%u[g] = sum;", w);
    line(v, "        }");
    line(v, "        begun = 1;");
    line(v, "        sum = word_identity(%s);", op);
    line(v, "    }");
    line(v, "    if (act >> i & 1u) {");
    line(v, "        sum = word_merge(%s, sum, %s);", op, operand(v, sink->word_regs[w], x));
    line(v, "    }");
    line(v, "}");
    line(v, "if (begun) {");
    line(v, "    sums%u[at] = (u64)sum;", w);
    line(v, "} else {");
    line(v, "    more%u[g] = sum;", w);
    line(v, "}");
    v->depth--;
    line(v, "}");
}

/* All of them, by the rows that the tile has reserved. */
static void put_runs_all(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    line(v, "runs.inner.base = runs.inner.total ? *s_base : 0u;");
    line(v, "const u32 fits = out_fits(runs.inner, args.capacity, -1, AGG_REPORT(@));");
    line(v, "for (u32 k = t_id(); k < fits; k += %d) {", WOVEN_BLOCK);
    line(v, "    ((u64 *)args.outs[0].data)[runs.inner.base + k] = keys[1u + k];");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    ((u64 *)args.outs[%u].data)[runs.inner.base + k] = sums%u[1u + k];", 1 + w, w);
    }
    line(v, "}");
}

/* The first and the last go to the tile's bounds, as they may go on beside it. */
static void put_runs_edges(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    put_bound(v);
    line(v, "if (t_id() == 0) {");
    line(v, "    bound[0] = runs.total > 1u ? 2u : 1u;");
    put_edge(v, 1, "0");
    line(v, "}");
    line(v, "if (t_id() == 32u) {");
    put_edge(v, 2 + sink->word_count, "runs.total - 1u");
    line(v, "}");
}

static void put_tile_runs(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    line(v, "u32 descends = 0;");
    line(v, "const u32 heads = b_run_heads(r%u, act, s_last, s_some, &descends);", sink->key);
    line(v, "struct b_runs runs =");
    line(v, "    b_run_places(heads, s_sums, s_base, %s);",
         v->plan->keeps[v->agg].count ? "(u64 *)0" : "&AGG_REPORT(@)[REPORT_ROWS]");
    put_descends(v);
    line(v, "if (runs.total) {");
    v->depth++;
    line(v, EACH "{");
    line(v, "    if (heads >> i & 1u) {");
    line(v, "        keys[run_of_head(&runs, heads, i)] = (u64)r%u[i];", sink->key);
    line(v, "    }");
    line(v, "}");
    for (u32 w = 0; w < sink->word_count; w++) {
        put_run_word(v, w);
    }
    line(v, "b_sync();");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, EACH_GROUP "{");
        line(v, "    w_run_go_on(%s, sums%u, runs.first[g], act >> (4 * g) & 15u,",
             weave_words[sink->words[w]], w);
        line(v, "                heads >> (4 * g) & 15u, more%u[g]);", w);
        line(v, "}");
    }
    line(v, "b_sync();");
    if (v->plan->keeps[v->agg].count) {
        put_runs_kept(v, "1u", "runs.inner.total + 1u");
    } else {
        put_runs_all(v);
    }
    put_runs_edges(v);
    v->depth--;
    line(v, "}");
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

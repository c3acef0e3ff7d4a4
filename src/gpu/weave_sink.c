/* weave_sink.c: writes what a woven kernel does with the rows of its tiles: rows, groups, marks.
 *
 * Rows are compacted through two alternating stages in shared memory, one reservation per tile.
 * Groups are kept in registers where there is one, in tables of the block where there are few, else
 * in the table that the whole launch shares; however they are kept, the state after a launch is the
 * one that the virtual machine leaves (struct kagg). */
#include "gpu/weave_int.h"

#include "codes/loop.h"

static const char *const word_names[WORD_COUNT] = {
#define X(A, name, identity, expr) "WORD_" #name,
    WF_WORDS(X, )
#undef X
};

enum { MOST_ACCUMULATORS = 24 };

static bool is_limb(const struct weaver *v, u32 word) {
    return v->plan->is_limb[v->plan->sink->word_regs[word]];
}

/* One group with few words: they are kept in registers until the block ends. */
static bool accumulates(const struct weaver *v) {
    const struct sink *sink = v->plan->sink;
    u32 words = 0;
    for (u32 w = 0; w < sink->word_count; w++) {
        words += !is_limb(v, w);
    }
    return sink->key == NO_REG && words <= MOST_ACCUMULATORS;
}

/* --- what is set up before the tiles --- */

void weave_sink_setup(struct weaver *v) {
    const struct sink *sink = v->plan->sink;
    if (sink->kind == SINK_ROWS) {
        line(v, "SHARED(u32, s_sums, 32);");
        line(v, "SHARED(u64, s_base, 1);");
    }
    if (sink->kind != SINK_AGG) {
        return;
    }
    if (v->w->agg_copies) {
        line(v, "u64 *table = (u64 *)s_bytes;");
        line(v, "b_agg_begin(table, args.agg.copies, args.agg.slot_count, %u, args.agg.word_ops);",
             sink->word_count);
    }
    for (u32 w = 0; accumulates(v) && w < sink->word_count; w++) {
        if (is_limb(v, w)) {
            continue;
        }
        line(v, "i64 acc%u = word_identity(%s);", w, word_names[sink->words[w]]);
    }
}

/* --- rows --- */

i64 weave_stage_bytes(const struct gpu_plan *plan) {
    i64 bytes = 1;
    for (u32 c = 0; plan->sink->kind == SINK_ROWS && c < plan->sink->col_count; c++) {
        bytes = MAX_OF(bytes, kind_bytes[plan->pipe->regs[plan->sink->cols[c].reg].kind]);
    }
    return bytes;
}

#define STAGE_TEXT "str_vec(text_moved(args.texts_out.items, args.texts_out.count, %s))"
static void put_stage(struct weaver *v, u16 reg, u8 kind, u32 turn, const char *target, u32 c) {
    static const char *const types[17] = {[1] = "u8", [4] = "u32", [8] = "u64", [16] = "vec16"};
    u32 bytes = kind_bytes[kind];
    char buf[24];
    char value[120];
    const char *name = operand(v, reg, buf);
    snprintf(value, sizeof value,
             kind == KIND_STR   ? v->plan->host_text[reg] ? "str_vec(%s)" : STAGE_TEXT
             : kind == KIND_F32 ? "f32_bits(%s)"
             : kind == KIND_F64 ? "f64_bits(%s)"
             : bytes == 16      ? "i128_vec(%s)"
             : bytes == 8       ? "(u64)%s"
             : bytes == 4       ? "(u32)%s"
                                : "(u8)%s",
             name);
    line(v, "{");
    v->depth++;
    line(v, "%s *stage = (%s *)(s_bytes + %u * STAGE);", types[bytes], types[bytes], turn);
    line(v, "u32 at = place.first;");
    line(v, EACH "{");
    line(v, "    if (act >> i & 1u) {");
    line(v, bytes == 16 ? "        store16(&stage[at], %s);" : "        stage[at] = %s;", value);
    line(v, "    }");
    line(v, "    at += act >> i & 1u;");
    line(v, "}");
    line(v, "b_sync();");
    line(v, "%s *to = (%s *)args.outs[%u].%s + place.base;", types[bytes], types[bytes], c, target);
    line(v, "NO_UNROLL for (u32 k = t_id(); k < fits; k += %d) {", WOVEN_BLOCK);
    line(v, bytes == 16 ? "    store16(&to[k], load16(&stage[k]));" : "    to[k] = stage[k];");
    line(v, "}");
    v->depth--;
    line(v, "}");
}

static void put_emit_rows(struct weaver *v) {
    const struct sink *sink = v->plan->sink;
    line(v, "const struct b_place place =");
    line(v, "    b_reserve(bits_set_u32(act), s_sums, s_base, &args.report[REPORT_ROWS]);");
    line(v, "if (place.total) {");
    v->depth++;
    line(v, "const u32 fits = out_fits(place, args.capacity, args.limit, args.report);");
    u32 turn = 0;
    for (u32 c = 0; c < sink->col_count; c++) {
        u16 reg = sink->cols[c].reg;
        put_stage(v, reg, v->pipe->regs[reg].kind, turn++ & 1u, "data", c);
        if (sink->cols[c].null_reg != NO_REG) {
            put_stage(v, sink->cols[c].null_reg, KIND_B8, turn++ & 1u, "nulls", c);
        }
    }
    v->depth--;
    line(v, "}");
}

/* --- groups --- */

/* Long exact sums: the few limbs that a value touches. */
static void put_agg_limbs(struct weaver *v, bool shared) {
    char x[24];
    for (i64 l = 0; l < v->plan->limbs.count; l++) {
        const struct plan_limbs *run = &v->plan->limbs.items[l];
        int square = run->code == OP_FSQUARE_F64;
        operand(v, run->reg, x);
        line(v,
             "for (i32 k = 0, limb = limb_first(%s, r%u, %d); k < (i32)LIMB_COUNT(%d); k++, "
             "limb++) {",
             x, run->lsb, square, square);
        line(v, "    const i64 part = op_%s(%s, r%u, limb);", op_infos[run->code].name, x,
             run->lsb);
        line(v, "    const u32 no = (u32)(limb - %d);", run->first);
        line(v, "    if (part && no < %uu) {", run->count);
        if (shared) {
            line(v,
                 "        agg_shared_word(table, args.agg.copies, at + %u + no, WORD_ADD, part);",
                 1 + run->word);
        } else {
            line(v, "        atom_add_u64(at + %u + no, (u64)part);", 1 + run->word);
        }
        line(v, "    }");
        line(v, "}");
    }
}

static void put_agg_words(struct weaver *v, bool shared) {
    const struct sink *sink = v->plan->sink;
    for (u32 w = 0; w < sink->word_count; w++) {
        char buf[24];
        if (is_limb(v, w)) {
            continue;
        }
        const char *x = operand(v, sink->word_regs[w], buf);
        const char *op = word_names[sink->words[w]];
        if (shared) {
            line(v, "agg_shared_word(table, args.agg.copies, at + %u, %s, %s);", 1 + w, op, x);
        } else {
            line(v, "word_atom(%s, at + %u, %s);", op, 1 + w, x);
        }
    }
    put_agg_limbs(v, shared);
}

static void put_emit_agg(struct weaver *v) {
    const struct sink *sink = v->plan->sink;
    char key[24] = "";
    char buf[24];
    line(v, EACH "{");
    v->depth++;
    line(v, "if (act >> i & 1u) {");
    v->depth++;
    if (accumulates(v)) {
        for (u32 w = 0; w < sink->word_count; w++) {
            if (is_limb(v, w)) {
                continue;
            }
            line(v, "acc%u = word_merge(%s, acc%u, %s);", w, word_names[sink->words[w]], w,
                 operand(v, sink->word_regs[w], buf));
        }
        if (v->plan->limbs.count) {
            line(v, "const u64 at = 0;");
            put_agg_limbs(v, true);
        }
    } else if (sink->key == NO_REG) {
        line(v, "const u64 at = 0;");
        put_agg_words(v, true);
    } else if (v->w->agg_copies) {
        operand(v, sink->key, key);
        line(v, "const u64 at = (u64)%s * %u;", key, 1 + sink->word_count);
        line(v, "agg_shared_word(table, args.agg.copies, at, WORD_ADD, 1);");
        put_agg_words(v, true);
    } else {
        operand(v, sink->key, key);
        if (v->w->agg_form == AGG_HASH) {
            line(
                v,
                "u64 *at = agg_find(args.agg.state, args.agg.slot_count, args.agg.group_limit, %u,",
                sink->word_count);
            line(v, "                   %s, args.report);", key);
        } else {
            line(v, "u64 *at = args.agg.state + (u64)%s * %u;", key, 1 + sink->word_count);
            line(v, "if (!read_u64(at)) {");
            line(v, "    atom_add_u64(at, 1);");
            line(v, "}");
        }
        line(v, "if (at) {");
        v->depth++;
        put_agg_words(v, false);
        v->depth--;
        line(v, "}");
    }
    v->depth--;
    line(v, "}");
    v->depth--;
    line(v, "}");
}

/* --- marks --- */

/* Sets the byte of every row named. */
static void put_mark(struct weaver *v, u32 sink) {
    u32 number = 0;
    char row[24];
    for (u32 s = 0; s < sink; s++) {
        number += v->pipe->sinks[s].kind == SINK_MARK;
    }
    operand(v, v->pipe->sinks[sink].key, row);
    line(v, EACH "{");
    line(v, "    if ((act >> i & 1u) && %s >= 0) {", row);
    line(v, "        args.outs[args.out_count + %u].data[%s] = 1;", number, row);
    line(v, "    }");
    line(v, "}");
}

void weave_emit(struct weaver *v, u32 sink) {
    if (v->pipe->sinks[sink].kind == SINK_MARK) {
        put_mark(v, sink);
    } else if (v->plan->sink->kind == SINK_ROWS) {
        put_emit_rows(v);
    } else {
        put_emit_agg(v);
    }
}

void weave_finish(struct weaver *v) {
    const struct sink *sink = v->plan->sink;
    if (sink->kind == SINK_AGG && v->w->agg_copies) {
        for (u32 w = 0; accumulates(v) && w < sink->word_count; w++) {
            if (is_limb(v, w)) {
                continue;
            }
            line(v, "agg_shared_word(table, args.agg.copies, %u, %s, acc%u);", 1 + w,
                 word_names[sink->words[w]], w);
        }
        line(v, "b_agg_end(table, args.agg.copies, args.agg.slot_count, %u, args.agg.word_ops,",
             sink->word_count);
        line(v, "          args.agg.state);");
    }
    line(v, "if (fault != ~0ULL) {");
    line(v, "    atom_min_u64(&args.report[REPORT_FAULT], fault);");
    line(v, "}");
}

/* weave_sink.c: writes what a woven kernel does with the rows of its tiles: rows, groups, marks.
 *
 * Rows are compacted through two alternating stages in shared memory, one reservation per tile.
 * Groups are kept in registers where there is one, in tables of the block where there are few, else
 * in the table that the whole launch shares; however they are kept, the state after a launch is the
 * one that the virtual machine leaves (struct kagg). */
#include "gpu/weave_int.h"

#include "codes/loop.h"

const char *const weave_words[WORD_COUNT] = {
#define X(A, name, identity, expr) "WORD_" #name,
    WF_WORDS(X, )
#undef X
};

enum { MOST_ACCUMULATORS = 24 };

_Static_assert(PIPE_AGGS <= 10, "the number of an aggregation is one digit");

/* The aggregation that is written about, or the rows. */
static const struct sink *sink_of(const struct weaver *v) {
    return v->plan->agg_count ? v->plan->aggs[v->agg] : v->plan->rows[v->agg];
}

static const struct weave_agg *agg_of(const struct weaver *v) {
    return &v->w->aggs[v->agg];
}

static const struct agg_cells *cells_of(const struct weaver *v) {
    return v->w->cells[v->agg];
}

static bool is_limb(const struct weaver *v, u32 word) {
    return v->plan->is_limb[sink_of(v)->word_regs[word]];
}

/* One group with few words: they are kept in registers until the block ends. */
static bool accumulates(const struct weaver *v) {
    const struct sink *sink = sink_of(v);
    u32 words = 0;
    for (u32 w = 0; w < sink->word_count; w++) {
        words += !is_limb(v, w);
    }
    return sink->key == NO_REG && words <= MOST_ACCUMULATORS;
}

/* --- groups in cells of each thread's own: see gpu_cells.c --- */

static const char *cell_array(const struct agg_cell *cell) {
    return cell->narrow ? "narrow@" : "wide@";
}

static u32 cell_at(const struct agg_cell *cell) {
    return cell->place * WOVEN_BLOCK;
}

/* What an untouched cell holds. Sums share cells; another word is alone in its own. */
static const char *cell_identity(const struct agg_cells *cells, u32 cell, char buf[48]) {
    snprintf(buf, 48, "0");
    for (u32 w = 0; w < cells->field_count; w++) {
        const struct agg_field *f = &cells->fields[w];
        if (f->cell == cell && f->op != WORD_ADD) {
            snprintf(buf, 48, "(u64)word_identity(%s)", weave_words[f->op]);
        }
    }
    return buf;
}

/* A row's part in a field, at its place in the cell. */
static void field_text(const struct weaver *v, const struct agg_cells *cells, u32 w,
                       char buf[120]) {
    const struct agg_field *f = &cells->fields[w];
    const char *kind = cells->cells[f->cell].narrow ? "u32" : "u64";
    char reg[24] = "1";
    if (w < sink_of(v)->word_count) {
        operand(v, sink_of(v)->word_regs[w], reg);
    }
    const char *shortened = f->short_value ? "(u32)" : "";
    if (f->shift) {
        snprintf(buf, 120, "((%s)%s%s << %u)", kind, shortened, reg, f->shift);
    } else {
        snprintf(buf, 120, "(%s)%s%s", kind, shortened, reg);
    }
}

static void put_cells_row(struct weaver *v) {
    const struct agg_cells *cells = cells_of(v);
    char buf[120];
    line(v, "const u32 slot = (u32)((u64)%s - (u64)args.aggs[@].key_lo);",
         operand(v, sink_of(v)->key, buf));
    for (u32 c = 0; c < cells->count; c++) {
        const struct agg_cell *cell = &cells->cells[c];
        char sum[700] = "";
        i32 n = 0;
        line(v, "{");
        line(v, "    %s *const cell = %s + slot * %uu + %uu;", cell->narrow ? "u32" : "u64",
             cell_array(cell),
             WOVEN_BLOCK * (cell->narrow ? cells->narrow_count : cells->wide_count), cell_at(cell));
        for (u32 w = 0; w < cells->field_count; w++) {
            const struct agg_field *f = &cells->fields[w];
            if (f->cell != c) {
                continue;
            }
            field_text(v, cells, w, buf);
            if (f->op == WORD_ADD) {
                n += snprintf(sum + n, sizeof sum - (size_t)n, "%s%s", n ? " + " : "", buf);
            } else {
                line(v, "    *cell = (u64)word_merge(%s, (i64)*cell, (i64)%s);", weave_words[f->op],
                     buf);
            }
        }
        if (n) {
            line(v, "    *cell += %s;", sum);
        }
        line(v, "}");
    }
}

/* Whether a field's total goes to the state together with others': blocks end at the same time, and
 * every access of theirs to the few places that all share waits for the ones before. */
static bool is_gathered(const struct agg_cells *cells, u32 w, u32 word) {
    return cells->fields[w].op == WORD_ADD && word < 32;
}

/* The fields of one cell of a slot: the sums of all threads' copies, from the lowest field up. */
static void put_cell_fields(struct weaver *v, u32 c) {
    const struct agg_cells *cells = cells_of(v);
    const struct agg_cell *cell = &cells->cells[c];
    char identity[48];
    u32 order[AGG_FIELDS];
    u32 count = 0;
    for (u32 shift = 0; shift < 64; shift++) {
        for (u32 w = 0; w < cells->field_count; w++) {
            if (cells->fields[w].cell == c && cells->fields[w].shift == shift) {
                order[count++] = w;
            }
        }
    }
    line(v, "{");
    v->depth++;
    line(v, "%s *const at = %s + slot * %uu + %uu;", cell->narrow ? "u32" : "u64", cell_array(cell),
         WOVEN_BLOCK * (cell->narrow ? cells->narrow_count : cells->wide_count), cell_at(cell));
    for (u32 k = 0; k < count; k++) {
        line(v, "i64 f%u = word_identity(%s);", order[k], weave_words[cells->fields[order[k]].op]);
    }
    line(v, "NO_UNROLL for (u32 k = t_lane(); k < %uu; k += 32u) {", WOVEN_BLOCK);
    v->depth++;
    line(v, "u64 x = at[k];");
    line(v, "at[k] = %s;", cell_identity(cells, c, identity));
    for (u32 k = 0; k < count; k++) {
        const struct agg_field *f = &cells->fields[order[k]];
        const char *op = weave_words[f->op];
        if (f->bits == 64) {
            line(v, "f%u = word_merge(%s, f%u, (i64)x);", order[k], op, order[k]);
        } else {
            line(v, "f%u += %s(x, %u);", order[k], f->is_signed ? "bits_signed" : "bits_below",
                 f->bits);
        }
        if (k + 1 < count) {
            line(v, "x = (x - (u64)%s(x, %u)) >> %u;", f->is_signed ? "bits_signed" : "bits_below",
                 f->bits, f->bits);
        }
    }
    v->depth--;
    line(v, "}");
    for (u32 k = 0; k < count; k++) {
        u32 w = order[k];
        u32 word = w < sink_of(v)->word_count ? agg_of(v)->head + w : 0;
        line(v, "f%u = w_word_merge(%s, f%u);", w, weave_words[cells->fields[w].op], w);
        if (is_gathered(cells, w, word)) {
            line(v, "sums = t_lane() == %uu ? f%u : sums;", word, w);
            continue;
        }
        line(v, "if (t_lane() == 0) {");
        line(v, "    word_atom(%s, state + slot * %u + %u, f%u);", weave_words[cells->fields[w].op],
             agg_of(v)->head + sink_of(v)->word_count, word, w);
        line(v, "}");
    }
    v->depth--;
    line(v, "}");
}

/* The sums of a slot, which lanes have by word, to the state: neighbours in one access. */
static void put_cell_sums(struct weaver *v) {
    const struct agg_cells *cells = cells_of(v);
    u32 lanes = 0;
    for (u32 w = 0; w < cells->field_count; w++) {
        u32 word = w < sink_of(v)->word_count ? agg_of(v)->head + w : 0;
        lanes |= is_gathered(cells, w, word) ? 1u << word : 0;
    }
    line(v, "if (0x%xu >> t_lane() & 1u) {", lanes);
    line(v, "    word_atom(WORD_ADD, state + slot * %u + t_lane(), sums);",
         agg_of(v)->head + sink_of(v)->word_count);
    line(v, "}");
}

static void put_cells_function(struct weaver *v) {
    const struct agg_cells *cells = cells_of(v);
    line(v, "FN_SLOW void b_cells_add@(u64 *wide@, u32 *narrow@, u64 slot_count, u64 *state) {");
    line(v, "    b_sync();");
    line(v, "    NO_UNROLL for (u64 slot = t_id() / 32u; slot < slot_count; slot += %uu) {",
         WOVEN_BLOCK / 32);
    v->depth += 2;
    line(v, "i64 sums = 0;");
    for (u32 c = 0; c < cells->count; c++) {
        put_cell_fields(v, c);
    }
    put_cell_sums(v);
    v->depth -= 2;
    line(v, "    }");
    line(v, "    b_sync();");
    line(v, "}");
}

static void put_cells_setup(struct weaver *v) {
    const struct agg_cells *cells = cells_of(v);
    char identity[48];
    line(v, "u64 *const all_wide@ = (u64 *)(s_bytes + args.aggs[@].shared_at);");
    line(v, "u32 *const all_narrow@ = (u32 *)(all_wide@ + args.aggs[@].slot_count * %uu);",
         cells->wide_count * WOVEN_BLOCK);
    line(v, "u64 *const wide@ = all_wide@ + t_id();");
    line(v, "u32 *const narrow@ = all_narrow@ + t_id();");
    line(v, "u32 emits@ = 0;");
    line(v, "NO_UNROLL for (u64 slot = 0; slot < args.aggs[@].slot_count; slot++) {");
    for (u32 c = 0; c < cells->count; c++) {
        const struct agg_cell *cell = &cells->cells[c];
        line(v, "    %s[slot * %uu + %uu] = %s;", cell_array(cell),
             WOVEN_BLOCK * (cell->narrow ? cells->narrow_count : cells->wide_count), cell_at(cell),
             cell_identity(cells, c, identity));
    }
    line(v, "}");
}

#define CELLS_ADD \
    "b_cells_add@(all_wide@, all_narrow@, args.aggs[@].slot_count, args.aggs[@].state);"

/* After every emission: sums are added up before they can overflow. */
static void put_cells_emitted(struct weaver *v) {
    line(v, "if (++emits@ == %lldu) {", (long long)MAX_OF(cells_of(v)->rows / v->rows, 1));
    line(v, "    " CELLS_ADD);
    line(v, "    emits@ = 0;");
    line(v, "}");
}

/* --- what is set up before the tiles --- */

void weave_sink_functions(struct weaver *v) {
    for (v->agg = 0; v->agg < v->plan->agg_count; v->agg++) {
        if (cells_of(v)) {
            put_cells_function(v);
        }
    }
    v->agg = 0;
    if (v->w->run_rows) {
        weave_runs_functions(v);
    }
}

/* The block's own table in front of the one that all share. */
static void put_front_setup(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    line(v, "u64 *const front@ = (u64 *)(s_bytes + args.aggs[@].shared_at);");
    line(v, "i32 credit@ = FRONT_CREDIT_FIRST;");
    line(v, "u32 fronts@ = 1;");
    line(v, "NO_UNROLL for (u32 at = t_id(); at < %uu; at += %d) {", agg_of(v)->front, WOVEN_BLOCK);
    line(v, "    front@[at] = AGG_EMPTY;");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "    front@[at + %uu] = (u64)word_identity(%s);", agg_of(v)->front * (1 + w),
             weave_words[sink->words[w]]);
    }
    line(v, "}");
    line(v, "b_sync();");
}

static void put_agg_setup(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    if (cells_of(v)) {
        put_cells_setup(v);
    } else if (v->w->run_rows) {
        weave_runs_setup(v);
    } else if (agg_of(v)->front) {
        put_front_setup(v);
    } else if (agg_of(v)->copies) {
        line(v, "u64 *table@ = (u64 *)(s_bytes + args.aggs[@].shared_at);");
        line(v, "b_agg_begin(table@, &args.aggs[@], %u, %u);", agg_of(v)->head, sink->word_count);
    }
    for (u32 w = 0; accumulates(v) && w < sink->word_count; w++) {
        if (!is_limb(v, w)) {
            line(v, "i64 acc@_%u = word_identity(%s);", w, weave_words[sink->words[w]]);
        }
    }
}

void weave_sink_setup(struct weaver *v) {
    if (v->plan->sink->kind == SINK_ROWS) {
        line(v, "SHARED(u32, s_sums, 32);");
        line(v, "SHARED(u64, s_base, 1);");
    }
    for (v->agg = 0; v->agg < v->plan->agg_count; v->agg++) {
        put_agg_setup(v);
    }
    v->agg = 0;
}

/* --- rows --- */

i64 weave_stage_bytes(const struct gpu_plan *plan) {
    i64 bytes = 1;
    for (u32 k = 0; k < plan->rows_count; k++) {
        for (u32 c = 0; c < plan->rows[k]->col_count; c++) {
            bytes = MAX_OF(bytes, kind_bytes[plan->pipe->regs[plan->rows[k]->cols[c].reg].kind]);
        }
    }
    return bytes;
}

#define STAGE_TEXT "str_vec(text_moved(args.texts_out.items, args.texts_out.count, %s))"
static const char *const stage_types[17] = {[1] = "u8", [4] = "u32", [8] = "u64", [16] = "vec16"};

/* A register of row i as it lies in a column of rows. */
static void stage_value(const struct weaver *v, u16 reg, u8 kind, char value[120]) {
    u32 bytes = kind_bytes[kind];
    char buf[24];
    const char *name = operand(v, reg, buf);
    snprintf(value, 120,
             kind == KIND_STR   ? v->plan->host_text[reg] ? "str_vec(%s)" : STAGE_TEXT
             : kind == KIND_F32 ? "f32_bits(%s)"
             : kind == KIND_F64 ? "f64_bits(%s)"
             : bytes == 16      ? "i128_vec(%s)"
             : bytes == 8       ? "(u64)%s"
             : bytes == 4       ? "(u32)%s"
                                : "(u8)%s",
             name);
}

/* Of a list a thread has one row, and neighbours have neighbouring places. */
static void put_listed(struct weaver *v, u16 reg, u8 kind, const char *target, u32 c) {
    u32 bytes = kind_bytes[kind];
    char value[120];
    stage_value(v, reg, kind, value);
    line(v, EACH "{");
    line(v, "    if (act && place.first < fits) {");
    line(v, "        %s *to = (%s *)args.outs[%u].%s + place.base + place.first;",
         stage_types[bytes], stage_types[bytes], c, target);
    line(v, bytes == 16 ? "        store16(to, %s);" : "        *to = %s;", value);
    line(v, "    }");
    line(v, "}");
}

static void put_stage(struct weaver *v, u16 reg, u8 kind, u32 turn, const char *target, u32 c) {
    const char *const *types = stage_types;
    u32 bytes = kind_bytes[kind];
    char value[120];
    if (v->listed) {
        put_listed(v, reg, kind, target, c);
        return;
    }
    stage_value(v, reg, kind, value);
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

/* Keys whose rows had no room. */
static void put_set_remove(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    char key[24];
    line(v, "if (fits < place.total) {");
    line(v, "    u32 at = place.first;");
    line(v, "    " EACH "{");
    line(v, "        if (act >> i & 1u && at++ >= fits) {");
    if (sink->word_count > 0) {
        line(v, "            set_forget((u32 *)args.outs[%u].data, (u64 *)args.outs[%u].nulls, %s);",
             sink->col_count, sink->col_count, operand(v, sink->key, key));
    } else if (!sink->set_small) {
        line(v, "            keys_remove((u64 *)args.outs[%u].data, args.outs[%u].turn, %s);",
             sink->col_count, sink->col_count, operand(v, sink->key, key));
    } else {
        line(v, "            set_remove((u32 *)args.outs[%u].data, %s);", sink->col_count,
             operand(v, sink->key, key));
    }
    line(v, "        }");
    line(v, "    }");
    line(v, "}");
}

static void put_emit_rows(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    u32 first = v->plan->rows_at[v->agg];
    u32 into = v->plan->rows_into[v->agg];
    char room[48] = "args.capacity";
    if (into) {
        snprintf(room, sizeof room, "args.sinks[%u].capacity", v->agg);
    }
    if (sink->set_var) {
        char key[24], word[24];
        u32 set = sink->col_count;
        line(v, EACH "{");
        if (sink->word_count > 0) {
            line(v, "    if (act >> i & 1u && !set_better((u32 *)args.outs[%u].data, "
                    "(u64 *)args.outs[%u].nulls, %s, %s, %s)) {",
                 set, set, operand(v, sink->key, key), operand(v, sink->word_regs[0], word),
                 sink->words[0] == WORD_MIN ? "0ULL" : "~0ULL");
        } else if (!sink->set_small) {
            line(v, "    if (act >> i & 1u && !keys_add((u64 *)args.outs[%u].data, args.outs[%u].turn, "
                    "%s, args.capacity, args.report)) {",
                 set, set, operand(v, sink->key, key));
        } else {
            line(v, "    if (act >> i & 1u && !set_add((u32 *)args.outs[%u].data, %s)) {", set,
                 operand(v, sink->key, key));
        }
        line(v, "        act &= ~(1u << i);");
        line(v, "    }");
        line(v, "}");
    }
    line(v, "const struct b_place place =");
    line(v, "    b_reserve(bits_set_u32(act), s_sums, s_base, &AGG_REPORT(%u)[REPORT_ROWS]);", into);
    line(v, "if (place.total) {");
    v->depth++;
    line(v, "const u32 fits = out_fits(place, %s, args.limit, AGG_REPORT(%u));", room, into);
    u32 turn = 0;
    for (u32 c = 0; c < sink->col_count; c++) {
        u16 reg = sink->cols[c].reg;
        put_stage(v, reg, v->pipe->regs[reg].kind, turn++ & 1u, "data", first + c);
        if (sink->cols[c].null_reg != NO_REG) {
            put_stage(v, sink->cols[c].null_reg, KIND_B8, turn++ & 1u, "nulls", first + c);
        }
    }
    if (sink->set_var) {
        put_set_remove(v);
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
                 "        agg_shared_word(table@, args.aggs[@].copies, at + %u + no, WORD_ADD, "
                 "part);",
                 agg_of(v)->head + run->word);
        } else {
            line(v, "        atom_add_u64(at + %u + no, (u64)part);", agg_of(v)->head + run->word);
        }
        line(v, "    }");
        line(v, "}");
    }
}

/* x, to word w of the state that `at` is. */
static void put_add(struct weaver *v, u32 w, const char *x) {
    if (agg_of(v)->narrow) {
        line(v, "narrow_add(at + %u, %s);", w, x);
    } else {
        line(v, "word_atom(%s, at + %u, %s);", weave_words[sink_of(v)->words[w]],
             agg_of(v)->head + w, x);
    }
}

static void put_agg_words(struct weaver *v, bool shared) {
    const struct sink *sink = sink_of(v);
    for (u32 w = 0; w < sink->word_count; w++) {
        char buf[24];
        if (is_limb(v, w)) {
            continue;
        }
        const char *x = operand(v, sink->word_regs[w], buf);
        const char *op = weave_words[sink->words[w]];
        if (shared) {
            line(v, "agg_shared_word(table@, args.aggs[@].copies, at + %u, %s, %s);",
                 agg_of(v)->head + w, op, x);
        } else {
            put_add(v, w, x);
        }
    }
    put_agg_limbs(v, shared);
}

/* Row i, added to what registers hold of the only group. */
static void put_accumulate(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    char buf[24];
    for (u32 w = 0; w < sink->word_count; w++) {
        if (!is_limb(v, w)) {
            line(v, "acc@_%u = word_merge(%s, acc@_%u, %s);", w, weave_words[sink->words[w]], w,
                 operand(v, sink->word_regs[w], buf));
        }
    }
    if (v->plan->limbs.count) {
        line(v, "const u64 at = 0;");
        put_agg_limbs(v, true);
    }
}

/* `at`: the state of a key in the table that all share, made when it is new. */
static void put_state(struct weaver *v, const char *key, const char *from) {
    u32 words = sink_of(v)->word_count;
    if (agg_of(v)->form == AGG_HASH) {
        line(v, "u64 *at = agg_find%s(&args.aggs[@], %u, %s, %sAGG_REPORT(@), &fresh);",
             *from ? "_from" : "", words, key, from);
        return;
    }
    line(v, "%s *at = (%s *)args.aggs[@].state + ((u64)%s - (u64)args.aggs[@].key_lo) * %u;",
         agg_of(v)->narrow ? "u32" : "u64", agg_of(v)->narrow ? "u32" : "u64", key,
         agg_of(v)->head + words);
    if (agg_of(v)->head) {
        line(v, "if (!read_u64(at)) {");
        line(v, "    atom_add_u64(at, 1);");
        line(v, "}");
    }
}

static void put_to_state(struct weaver *v, const char *key, const char *from) {
    put_state(v, key, from);
    line(v, "if (at) {");
    v->depth++;
    put_agg_words(v, false);
    v->depth--;
    line(v, "}");
}

/* Row i, to its group in a table of the block, or in the one that the launch shares. */
static void put_to_table(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    char key[24] = "";
    operand(v, sink->key, key);
    if (agg_of(v)->copies) {
        line(v, "const u64 at = ((u64)%s - (u64)args.aggs[@].key_lo) * %u;", key,
             agg_of(v)->head + sink->word_count);
        if (agg_of(v)->head) {
            line(v, "agg_shared_word(table@, args.aggs[@].copies, at, WORD_ADD, 1);");
        }
        put_agg_words(v, true);
    } else {
        put_to_state(v, key, agg_of(v)->form == AGG_HASH ? "slot_at[i], slot_seen[i], " : "");
    }
}

/* Rows whose groups are in the block's own table go there; `left` are the others, or all of them
 * once most are. */
static void put_to_front(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    char x[24];
    line(v, "u32 left = act;");
    line(v, "if (fronts@) {");
    v->depth++;
    line(v, EACH "{");
    line(v, "    const u32 near = act >> i & 1u ? front_find(front@, %uu, %s) : FRONT_NONE;",
         agg_of(v)->front, operand(v, sink->key, x));
    line(v, "    if (near != FRONT_NONE) {");
    line(v, "        left &= ~(1u << i);");
    for (u32 w = 0; w < sink->word_count; w++) {
        line(v, "        near_add(%s, front@ + %uu + near, %s);", weave_words[sink->words[w]],
             agg_of(v)->front * (1 + w), operand(v, sink->word_regs[w], x));
    }
    line(v, "    }");
    line(v, "}");
    line(v, "credit@ = front_credit(credit@, act, left);");
    line(v, "fronts@ = w_front_pays(credit@);");
    v->depth--;
    line(v, "}");
}

/* Before rows go to a hash table: the first places of all of them, asked at once. */
static void put_first_slots(struct weaver *v, const char *rows) {
    char key[24];
    operand(v, sink_of(v)->key, key);
    line(v, "u64 *slot_at[R];");
    line(v, "u64 slot_seen[R];");
    line(v, EACH "{");
    line(v, "    slot_at[i] = agg_first(&args.aggs[@], %u, %s);", sink_of(v)->word_count, key);
    line(v, "    slot_seen[i] = %s >> i & 1u ? read_u64(slot_at[i]) : 0u;", rows);
    line(v, "}");
}

/* What the block's own table has, to the one that all share. */
static void put_front_end(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    line(v, "u32 fresh = 0;");
    line(v, "b_sync();");
    line(v, "NO_UNROLL for (u32 near = t_id(); near < %uu; near += %d) {", agg_of(v)->front,
         WOVEN_BLOCK);
    v->depth++;
    line(v, "if (front@[near] != AGG_EMPTY) {");
    v->depth++;
    put_state(v, "(i64)front@[near]", "");
    line(v, "if (at) {");
    v->depth++;
    for (u32 w = 0; w < sink->word_count; w++) {
        char x[48];
        snprintf(x, sizeof x, "(i64)front%u[near + %uu]", v->agg, agg_of(v)->front * (1 + w));
        put_add(v, w, x);
    }
    v->depth--;
    line(v, "}");
    v->depth--;
    line(v, "}");
    v->depth--;
    line(v, "}");
    line(v, "w_agg_count(&args.aggs[@], fresh, AGG_REPORT(@));");
}

/* Whether rows may make groups in a hash table that all share. */
static bool hashes(const struct weaver *v) {
    return sink_of(v)->key != NO_REG && agg_of(v)->form == AGG_HASH && !v->w->run_rows;
}

/* Row i, to wherever its group is kept. */
static void put_row(struct weaver *v) {
    if (accumulates(v)) {
        put_accumulate(v);
    } else if (sink_of(v)->key == NO_REG) {
        line(v, "const u64 at = 0;");
        put_agg_words(v, true);
    } else if (cells_of(v)) {
        put_cells_row(v);
    } else {
        put_to_table(v);
    }
}

static void put_emit_agg(struct weaver *v) {
    const char *rows = agg_of(v)->front ? "left" : "act";
    if (v->w->run_rows) {
        weave_emit_runs(v);
        return;
    }
    if (hashes(v)) {
        line(v, "u32 fresh = 0;");
    }
    if (agg_of(v)->front) {
        put_to_front(v);
        line(v, "if (left) {");
        v->depth++;
    }
    if (hashes(v)) {
        put_first_slots(v, rows);
    }
    line(v, EACH "{");
    v->depth++;
    line(v, "if (%s >> i & 1u) {", rows);
    v->depth++;
    put_row(v);
    v->depth--;
    line(v, "}");
    v->depth--;
    line(v, "}");
    if (agg_of(v)->front) {
        v->depth--;
        line(v, "}");
    }
    if (cells_of(v)) {
        put_cells_emitted(v);
    }
    if (hashes(v)) {
        line(v, "w_agg_count(&args.aggs[@], fresh, AGG_REPORT(@));");
    }
}

/* --- marks --- */

/* Sets the byte of every row named. */
static void put_mark(struct weaver *v, u32 sink) {
    char row[24];
    operand(v, v->pipe->sinks[sink].key, row);
    line(v, EACH "{");
    line(v, "    if ((act >> i & 1u) && %s >= 0) {", row);
    line(v, "        args.outs[args.out_count + %u].data[%s] = 1;", gpu_sink_number(v->pipe, sink),
         row);
    line(v, "    }");
    line(v, "}");
}

/* Names of one sink are of no use to the next. */
static void put_apart(struct weaver *v, void (*put)(struct weaver *v)) {
    bool several = v->plan->agg_count > 1 || v->plan->rows_count > 1;
    if (several) {
        line(v, "{");
        v->depth++;
    }
    put(v);
    if (several) {
        v->depth--;
        line(v, "}");
    }
}

void weave_emit(struct weaver *v, u32 sink) {
    if (v->pipe->sinks[sink].kind == SINK_MARK) {
        put_mark(v, sink);
    } else {
        v->agg = gpu_sink_number(v->pipe, sink);
        put_apart(v, v->plan->rows_count ? put_emit_rows : put_emit_agg);
    }
}

/* What the block has of the groups, to the state that all share. */
static void put_agg_end(struct weaver *v) {
    const struct sink *sink = sink_of(v);
    if (cells_of(v)) {
        line(v, CELLS_ADD);
    } else if (agg_of(v)->front) {
        put_front_end(v);
    } else if (agg_of(v)->copies) {
        for (u32 w = 0; accumulates(v) && w < sink->word_count; w++) {
            if (!is_limb(v, w)) {
                line(v, "agg_shared_word(table@, args.aggs[@].copies, %u, %s, acc@_%u);", w,
                     weave_words[sink->words[w]], w);
            }
        }
        line(v, "b_agg_end(table@, &args.aggs[@], %u, %u);", agg_of(v)->head, sink->word_count);
    }
}

void weave_finish(struct weaver *v) {
    for (v->agg = 0; v->agg < v->plan->agg_count; v->agg++) {
        put_apart(v, put_agg_end);
    }
    v->agg = 0;
    line(v, "if (fault != ~0ULL) {");
    line(v, "    atom_min_u64(&args.report[REPORT_FAULT], fault);");
    line(v, "}");
}

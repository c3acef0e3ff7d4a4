/* weave_list.c: rows that go on as a list.
 *
 * Before the first index is looked into, all bitmaps that can tell that a row has no match are
 * asked: those of later lookups too, where their keys come from the source alone and nothing in
 * between can fail. Where few rows are left then, or by filters alone, or rows have several matches, a block lists the
 * rows that are left, of one tile after the other until there is one for every thread, and what
 * follows is written for one row a thread: full warps, few registers, and columns are loaded for
 * rows that need them. A list names rows by their distance from the launch's first tile, which
 * gpu_run.c keeps within 32 bits. Registers are not carried to the list:
 * they are made again from the row's number, which only opcodes before the first lookup have to
 * allow. What neither a filter nor a bitmap needs is made there only: a bitmap of one column of a
 * packed key leaves the other columns unread.
 *
 * MATCH on such a list takes the matches of 256 rows together: their counts are summed, and every
 * thread searches the row whose match it takes. Here registers are carried, through shared
 * memory. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

#ifdef WF_HARD
enum { MEET_MOST_BYTES = 20480 };
#else
enum { MEET_MOST_BYTES = 30720 }; /* as arrays of the kernel; */
#endif
enum {
    CARRY_MOST_BYTES = GPU_CARRIED_MOST * WOVEN_BLOCK,
    MEET_FAR_BYTES = 112 << 10 /* as memory that a launch asks for, where a block may have so much */
};

/* --- what there is to do --- */

static bool looks(const struct op *op) {
    return op_infos[op->code].roles[OPERAND_IMM] == ROLE_index;
}

/* Whether filters are expected to leave few rows before anything is looked up. Functions of text make
 * the code of a tile's rows long. */
#ifdef WF_HARD
enum { FILTERED_TIMES = 1 };
#else
enum { FILTERED_TIMES = 8 };
#endif
static bool leaves_few(const struct gpu_plan *plan) {
    const struct pipeline *pipe = plan->pipe;
    return pipe->filtered > 0 && !plan->has_text && !plan->interns.count &&
           pipe->filtered <= pipe->source.rows / FILTERED_TIMES;
}

/* Where rows may go on as a list: at the first lookup, else behind the last filter, if that leaves
 * few to be written. Groups, which take less, were measured to be bound by memory without one. */
static u32 first_lookup(const struct gpu_plan *plan) {
    const struct pipeline *pipe = plan->pipe;
    u32 depth = 0;
    u32 behind = pipe->op_count;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        depth += gpu_op_guards(op->code);
        depth -= op->code == OP_END;
        if (depth == 0 && looks(op)) {
            return i;
        }
        behind = depth == 0 && op->code == OP_FILTER ? i + 1 : behind;
    }
    return leaves_few(plan) && plan->sink->kind == SINK_ROWS ? behind : pipe->op_count;
}

/* Opcodes that make a register from the row's number alone. */
struct trace {
    const struct weaver *v;
    b8 *ops;  /* out */
    b8 quiet; /* none may raise */
    b8 ok;
};

static bool can_repeat(const struct trace *t, u32 at) {
    const struct pipeline *pipe = t->v->pipe;
    const struct op *op = &pipe->ops[at];
    u32 writers = 0;
    u32 depth = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        writers += op_writes(&pipe->ops[i]) && pipe->ops[i].dst == op->dst;
        depth += i < at && gpu_op_guards(pipe->ops[i].code);
        depth -= i < at && pipe->ops[i].code == OP_END;
    }
    bool plain = op->code == OP_LOAD || op->code == OP_LOADN || op->code == OP_ROWNO ||
                 op->code == OP_CONST || op->code == OP_LUT ||
                 !(op_infos[op->code].flags & (OP_CONTROL | OP_MAKES));
    return plain && writers == 1 && depth == 0 && !(t->quiet && op_may_fault(op));
}

static void trace_reg(void *arg, u16 reg) {
    struct trace *t = arg;
    const struct weaver *v = t->v;
    u32 at = v->plan->first[reg];
    if (!t->ok || v->pipe->regs[reg].is_const || t->ops[at]) {
        return;
    }
    if (!can_repeat(t, at)) {
        t->ok = 0;
        return;
    }
    t->ops[at] = 1;
    op_reads(&v->pipe->ops[at], v->pipe->sinks, trace_reg, t);
}

/* By how many bits a register is another one, `*out_of`, moved up; 0: it is none. */
static u32 moved_up(const struct weaver *v, u16 reg, u16 *out_of) {
    const struct pipeline *pipe = v->pipe;
    if (pipe->regs[reg].is_const) {
        return 0;
    }
    const struct op *op = &pipe->ops[v->plan->first[reg]];
    bool times = op->code == OP_MUL_I32;
    if ((!times && op->code != OP_SHL_I64) || !pipe->regs[op->b].is_const) {
        return 0;
    }
    const union lit *lit = &v->plan->program->lits[pipe->ops[v->plan->first[op->b]].imm];
    *out_of = op->a;
    return !times                                         ? (u32)lit->i64
           : lit->i32 > 0 && !(lit->i32 & (lit->i32 - 1)) ? (u32)__builtin_ctz((u32)lit->i32)
                                                          : 0;
}

/* The register with the field of a packed key that a bitmap is of: keys are ((a << m) + b << n) + c,
 * as lower/key.c packs them. The key itself where the bitmap is of all of it, or its opcodes are not
 * these. */
static u16 field_of(const struct weaver *v, u16 key, struct weave_field field, bool *out_alone) {
    const struct pipeline *pipe = v->pipe;
    u16 reg = key;
    u32 shift = 0;
    *out_alone = false;
    for (u32 step = 0; step < field.count; step++) {
        u16 above = NO_REG;
        while (!pipe->regs[reg].is_const && pipe->ops[v->plan->first[reg]].code == OP_I64_I32) {
            reg = pipe->ops[v->plan->first[reg]].a;
        }
        if (step == field.number && step + 1u == field.count) { /* the topmost */
            *out_alone = shift == field.shift;
            return *out_alone ? reg : key;
        }
        const struct op *op = &pipe->ops[v->plan->first[reg]];
        bool joins = op->code == OP_ADD_I32 || op->code == OP_BITOR_I64;
        u32 bits = joins && !pipe->regs[reg].is_const ? moved_up(v, op->a, &above) : 0;
        if (bits == 0) {
            return key;
        }
        if (step == field.number) {
            *out_alone = shift == field.shift;
            return *out_alone ? op->b : key;
        }
        shift += bits;
        reg = above;
    }
    return key;
}

/* What a lookup asks its bitmap for. */
static u16 asked_for(const struct weaver *v, u32 at, bool *out_field) {
    const struct weave_index *index = &v->w->indexes[v->plan->op_imm[at]];
    struct weave_field whole = {0};
    return field_of(v, v->pipe->ops[at].a, index->filter ? index->field : whole, out_field);
}

/* Whether a lookup drops rows by a bitmap, and nothing else about them is asked. */
static bool drops_by_bits(const struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    const struct weave_index *index = &v->w->indexes[v->plan->op_imm[at]];
    return (op->code == OP_PROBE || op->code == OP_MATCH) && op->b == NO_REG &&
           !(probe_flags(op) & PROBE_OUTER) &&
           (index->filter || index->form == KINDEX_RANK || index->form == KINDEX_BITS);
}

/* Lookups whose bitmaps are asked first, those that leave few rows before the others: where there are
 * such, these come when their turn does, for few rows and those one a thread. */
static void choose_tests(struct weaver *v) {
    const struct pipeline *pipe = v->pipe;
    u32 found[WEAVE_TESTS];
    u32 count = 0;
    for (u32 i = v->ask_at; i < pipe->op_count && count < WEAVE_TESTS; i++) {
        const struct op *op = &pipe->ops[i];
        bool ends = op->code == OP_EMIT || gpu_op_guards(op->code) || op->code == OP_EACH;
        if (ends || (i > v->ask_at && v->plan->count_places)) { /* rows are counted in between */
            break;
        }
        if (looks(op) && drops_by_bits(v, i)) {
            struct trace t = {v, NEW_ARRAY(v->out->arena, b8, pipe->op_count), 1, 1};
            bool is_field;
            if (i > v->ask_at) {
                trace_reg(&t, asked_for(v, i, &is_field));
            }
            if (t.ok) {
                found[count++] = i;
            }
        }
        if (op_may_fault(op)) {
            break;
        }
    }
    for (u32 few = WEAVE_FEW; few-- > 0;) {
        for (u32 k = 0; k < count; k++) {
            const struct weave_index *index = &v->w->indexes[v->plan->op_imm[found[k]]];
            if (index->few == few && !(index->most && v->few)) {
                v->tests[v->test_count++] = found[k];
                v->few |= few > 0;
                v->rare |= few + 1 == WEAVE_FEW;
            }
        }
    }
}

static bool has_several(const struct weaver *v, u32 at) {
    u16 code = v->pipe->ops[at].code;
    return code == OP_MEET ||
           (code == OP_MATCH && !v->w->indexes[v->plan->op_imm[at]].unique);
}

static bool is_carried(const struct weaver *v, u32 reg, u32 at) {
    return !v->pipe->regs[reg].is_const && v->plan->first[reg] < at && v->plan->last[reg] > at &&
           v->plan->last[reg] != 0xffffffffu;
}

static i64 carried_bytes(const struct weaver *v, u32 at) {
    i64 bytes = 3 * (i64)sizeof(u32) * WOVEN_BLOCK + weave_meet_bytes(v, at);
    for (u32 r = 0; r < v->pipe->reg_count; r++) {
        bytes += is_carried(v, r, at) ? (i64)kind_bytes[v->pipe->regs[r].kind] * WOVEN_BLOCK : 0;
    }
    return bytes;
}

static void need_reg(void *arg, u16 reg) {
    struct trace *t = arg;
    u32 at = t->v->plan->first[reg];
    if (!t->v->pipe->regs[reg].is_const && at < t->v->ask_at && !t->ops[at]) {
        t->ops[at] = 1;
        op_reads(&t->v->pipe->ops[at], t->v->pipe->sinks, need_reg, t);
    }
}

/* Opcodes whose values no filter needs: bitmaps ask for them when their turn comes, rows of the list
 * have them made anew. None may raise, as rows without a match would not. */
static void find_late(struct weaver *v) {
    const struct pipeline *pipe = v->pipe;
    struct trace t = {v, NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1), 0, 1};
    for (u32 i = 0; i < v->ask_at; i++) {
        if (!v->again[i] || op_may_fault(&pipe->ops[i])) {
            t.ops[i] = 1;
            op_reads(&pipe->ops[i], pipe->sinks, need_reg, &t);
        }
    }
    for (u32 i = 0; i < v->ask_at; i++) {
        v->late[i] = v->again[i] && !t.ops[i];
    }
}

void weave_list_plan(struct weaver *v) {
    const struct pipeline *pipe = v->pipe;
    bool several = false;
    i64 bytes = 0;
    i64 most = CARRY_MOST_BYTES;
    v->ask_at = first_lookup(v->plan);
    v->again = NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1);
    v->early = NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1);
    v->late = NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1);
    v->tested = NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1);
    if (v->ask_at == pipe->op_count) {
        return;
    }
    choose_tests(v);
    v->few |= leaves_few(v->plan);
    for (u32 i = v->ask_at; i < pipe->op_count; i++) {
        several |= has_several(v, i);
        bytes += has_several(v, i) ? carried_bytes(v, i) : 0;
        most = pipe->ops[i].code != OP_MEET     ? most
               : v->w->roomy && !v->w->run_rows ? MEET_FAR_BYTES
                                                : MEET_MOST_BYTES;
    }
    bool wanted = v->w->lists && (v->few || several);
    struct trace t = {v, v->again, 0, wanted && bytes <= most};
    for (u32 r = 0; r < pipe->reg_count; r++) {
        if (v->plan->first[r] < v->ask_at && v->plan->last[r] >= v->ask_at &&
            v->plan->last[r] != 0xffffffffu) {
            trace_reg(&t, (u16)r);
        }
    }
    v->list = t.ok;
    if (v->list) {
        find_late(v);
    }
    for (u32 n = weave_waits(v) ? v->test_count : 0; n-- > 0;) {
        if (v->w->indexes[v->plan->op_imm[v->tests[n]]].near) {
            v->near = 1;
            v->near_at = v->tests[n];
        }
    }
    v->w->shared_bytes = v->near ? NEAR_BITS / 8 : 0;
    v->spread_far = v->list && several && bytes > MEET_MOST_BYTES;
    v->spread_at = v->w->shared_bytes;
    v->w->shared_bytes += v->spread_far ? bytes : 0;
}

/* --- before the tiles --- */

void weave_carry(struct weaver *v, const char *type, i64 width, const char *name) {
    if (!v->spread_far) {
        line(v, "SHARED(%s, %s, %d);", type, name, WOVEN_BLOCK);
        return;
    }
    line(v, "%s *const %s = (%s *)(s_bytes + %lld);", type, name, type, v->spread_at);
    v->spread_at += width * WOVEN_BLOCK;
}

static const char *shared_type(const struct weaver *v, u32 reg) {
    return kind_names[v->pipe->regs[reg].kind];
}

/* A launch for rows that were left to it has no tiles: its list is theirs. */
static void put_heavy_list(struct weaver *v) {
    if (v->w->heavy) {
        line(v, "if (args.heavy_turn) {");
        line(v, "    list.held = args.heavy[0] < HEAVY_ROWS ? args.heavy[0] : HEAVY_ROWS;");
        line(v, "    if (t_id() < list.held) {");
        line(v, "        s_list[t_id()] = args.heavy[1u + t_id()];");
        line(v, "    }");
        line(v, "}");
    }
}

void weave_list_setup(struct weaver *v) {
    if (!v->list) {
        return;
    }
    if (!weave_waits(v)) { /* rows in their order match at most one */
        line(v, "SHARED(u16, s_list, TILE);");
        line(v, "SHARED(u64, s_list_sums, 32);");
        return;
    }
    line(v, "SHARED(u32, s_list, TILE + %d);", WOVEN_BLOCK);
    line(v, "SHARED(u32, s_list_counts, 3);");
    line(v, "SHARED(u32, s_match_sums, 32);");
    line(v, "struct b_list list = {s_list, s_list_counts, 0, 0};");
    line(v, "if (t_id() < 3u) {");
    line(v, "    s_list_counts[t_id()] = 0;");
    line(v, "}");
    if (v->near) {
        line(v, "u32 *const s_near = (u32 *)s_bytes;");
        line(v, "NO_UNROLL for (u32 at = t_id(); at < NEAR_BITS / 128u; at += %d) {", WOVEN_BLOCK);
        line(v, "    store16(s_near + 4u * at, load16(x%u.near + 4u * at));",
             v->plan->op_imm[v->near_at]);
        line(v, "}");
    }
    put_heavy_list(v);
    line(v, "b_sync();");
    for (u32 i = v->ask_at; i < v->pipe->op_count; i++) {
        if (!has_several(v, i)) {
            continue;
        }
        static const char *const always[] = {"s_first", "s_at", "s_row"};
        char name[40];
        for (i32 k = 0; k < COUNT_OF(always); k++) {
            snprintf(name, sizeof name, "%s%u", always[k], i);
            weave_carry(v, "u32", (i64)sizeof(u32), name);
        }
        for (u32 r = 0; r < v->pipe->reg_count; r++) {
            if (is_carried(v, r, i)) {
                snprintf(name, sizeof name, "s_r%u_%u", i, r);
                weave_carry(v, shared_type(v, r), kind_bytes[v->pipe->regs[r].kind], name);
            }
        }
        weave_meet_setup(v, i);
    }
}

/* --- bitmaps first, then the list --- */

/* Asks the bitmap of lookup `at`; its key is made first where its turn has not come. */
static void put_test(struct weaver *v, u32 at) {
    u16 number = v->plan->op_imm[at];
    struct trace t = {v, NEW_ARRAY(v->out->arena, b8, v->pipe->op_count), 0, 1};
    char key[24];
    bool is_field;
    u16 reg = asked_for(v, at, &is_field);
    if (v->list || at > v->ask_at) {
        trace_reg(&t, reg);
    }
    for (u32 i = 0; i < at; i++) {
        if (t.ops[i] && !v->early[i] && (v->late[i] || i >= v->ask_at)) {
            weave_op(v, i);
            v->early[i] = 1;
        }
    }
    static const char *const names[] = {[KINDEX_DIRECT] = "filter_test",
                                        [KINDEX_BITS] = "bits_test_set",
                                        [KINDEX_RANK] = "rank_test",
                                        [KINDEX_PAIRS] = "filter_test",
                                        [KINDEX_RUNS] = "filter_test"};
    bool as_it_is = is_field || v->w->indexes[number].field.shift == 0;
    u16 narrow =
        v->w->indexes[number].narrow && as_it_is ? weave_narrow(v, reg) : (u16)NO_REG;
    operand(v, reg, key);
    if (v->near && v->near_at == at) {
        char by[64] = "";
        if (v->w->indexes[number].filter) {
            snprintf(by, sizeof by, is_field ? " & x%u.filter.mask"
                                             : " >> x%u.filter.shift & x%u.filter.mask",
                     number, number);
        }
        line(v, "{");
        line(v, "    u32 keep = 0;");
        line(v, "    " EACH "{ keep |= near_has(s_near, (u64)%s%s) << i; }", key, by);
        line(v, "    act &= keep;");
        line(v, "}");
    }
    line(v, "{");
    line(v, "    u32 keep = 0;");
    line(v, "    " EACH "{");
    if (narrow != NO_REG) {
        const char *name = v->w->indexes[number].filter ? "filter_test"
                                                        : names[v->w->indexes[number].form];
        line(v, "        keep |= %s_32(&x%u, (u32)r%u[i], act >> i & 1u) << i;", name, number, narrow);
    } else {
        line(v, "        keep |= %s(&x%u, %s%s, act >> i & 1u, (const u32 *)args.tablet_rows) << i;",
             is_field ? "filter_test_field" : names[v->w->indexes[number].form], number,
             is_field ? "(u64)" : "", key);
    }
    line(v, "    }");
    line(v, "    act &= keep;");
    line(v, "}");
    v->filtered = 1;
    v->tested[at] = 1;
}

/* The row of the source that this thread has, by its place in the list. */
static void put_row(struct weaver *v, const char *listed) {
    line(v, "const u32 listed = %s;", listed);
    line(v, "const u64 tile = %s + listed / %uu;", weave_tile_first(v),
         v->tile_rows * WOVEN_BLOCK);
    line(v, "const u64 tablet = tile >> args.tile_shift;");
    line(v, "const i64 row = (i64)(tile & (((u64)1 << args.tile_shift) - 1)) * %u +",
         v->tile_rows * WOVEN_BLOCK);
    line(v, "                (i64)(listed %% %uu);", v->tile_rows * WOVEN_BLOCK);
    line(v, "const i64 number = args.row_starts[tablet] + row;");
}

/* Registers that have a value at opcode `from` or later, or are made again for a list's rows. */
static void declare_regs(struct weaver *v, u32 from) {
    for (u32 r = 0; r < v->pipe->reg_count; r++) {
        u32 first = v->plan->first[r];
        if (!v->pipe->regs[r].is_const && first <= v->plan->last[r] && first != 0xffffffffu &&
            (first >= from || v->plan->last[r] >= from || (from == v->ask_at && v->again[first]))) {
            line(v, "%s r%u[R];", kind_names[v->pipe->regs[r].kind], r);
        }
    }
}

/* What rows of the list begin with: registers that are made again. */
static void put_again(struct weaver *v) {
    line(v, "#undef R");
    line(v, "#define R 1");
    declare_regs(v, v->ask_at);
    v->listed = 1;
    memset(v->early, 0, v->pipe->op_count);
    memset(v->seen, 0, v->pipe->reg_count);
    if (weave_waits(v)) { /* rows of other tablets, too */
        memset(v->loaded, 0, v->pipe->source.col_count);
    }
    for (u32 i = 0; i < v->ask_at; i++) {
        if (v->again[i]) {
            weave_op(v, i);
        }
    }
}

/* The rows of this tile alone, in their order. */
static void put_list_in_order(struct weaver *v) {
    line(v, "const u32 list_rows = b_list_in_order(act, R, SPAN, s_list, s_list_sums);");
    weave_runs_list_begin(v);
    line(v, "for (u32 list_at = 0; list_at < list_rows; list_at += %d) {", WOVEN_BLOCK);
    v->depth++;
    line(v, "u32 act = list_at + t_id() < list_rows;");
    line(v, "const i64 row = first + s_list[act ? list_at + t_id() : 0u];");
    line(v, "const i64 number = args.row_starts[tablet] + row;");
    v->tile_rows = v->rows;
    v->rows = 1;
    put_again(v);
}

static void put_list(struct weaver *v) {
    line(v, "b_list_add(&list, act, R, SPAN, (u32)(tile - %s) * TILE);", weave_tile_first(v));
    v->depth--;
    line(v, "}");
    line(v, "while (list.held >= %du || (!more && list.held)) {", WOVEN_BLOCK);
    v->depth++;
    line(v, "const u32 taken = list.held < %du ? list.held : %du;", WOVEN_BLOCK, WOVEN_BLOCK);
    line(v, "list.held -= taken;");
    line(v, "u32 act = t_id() < taken;");
    v->tile_rows = v->rows;
    v->rows = 1;
    put_row(v, "s_list[list.held + (act ? t_id() : 0u)]");
    line(v, "b_sync();"); /* the next tile's rows take these places */
    put_again(v);
}

/* The loop over tiles: once they are over, it goes round once more for what is left on the list. */
void weave_list_tiles(struct weaver *v) {
    line(v, "for (u64 tile = %s + t_block();; tile += t_blocks()) {", weave_tile_first(v));
    v->depth++;
    line(v, "const u32 more = tile < %s;", weave_tile_end(v));
    line(v, "if (more) {");
    v->depth++;
}

void weave_ask(struct weaver *v) {
    for (u32 t = 0; t < v->test_count; t++) {
        put_test(v, v->tests[t]);
    }
    /* Most tiles may have no rows left. */
    bool rare = v->few && (!v->list || (v->rare && !weave_waits(v)));
    if (v->test_count && rare) {
        line(v, "if (!b_any((i32)act)) {");
        line(v, "    continue;");
        line(v, "}");
    }
    if (weave_waits(v)) {
        put_list(v);
    } else if (v->list) {
        put_list_in_order(v);
    }
}

void weave_list_end(struct weaver *v) {
    if (v->listed) {
        v->depth--;
        line(v, "}");
        v->rows = v->tile_rows;
        if (v->w->run_rows) {
            weave_runs_list_end(v);
        }
        line(v, "#undef R");
        line(v, "#define R %d", v->rows);
        if (weave_waits(v)) {
            line(v, "if (!more) {");
            line(v, "    break;");
            line(v, "}");
        }
        v->listed = 0;
    }
}

/* --- several matches a row --- */

bool weave_spreads(const struct weaver *v, u32 at) {
    return v->listed && has_several(v, at);
}

/* at<at> .. end<at> are the runs of up to 256 rows: from here on a thread has one match of one, at
 * place<at> of its run. */
void weave_spread(struct weaver *v, u32 at) {
    if (v->w->heavy && !v->heavy_done) {
        v->heavy_done = 1;
        line(v, "const u64 share%u = heavy_share(args.heavy, args.heavy_least, args.heavy_turn, at%u[0],", at, at);
        line(v, "                                end%u[0], listed);", at);
        line(v, "at%u[0] = (u32)share%u;", at, at);
        line(v, "end%u[0] = (u32)(share%u >> 32);", at, at);
    }
    line(v, "for (;;) {");
    v->depth++;
    line(v, "b_sync();");
    line(v, "const u32 take%u = run_part(at%u[0], end%u[0]);", at, at, at);
    line(v, "u32 all%u = 0;", at);
    line(v, "const u32 before%u = b_sum_before_u32(take%u, %d, s_match_sums, &all%u);", at, at,
         WOVEN_BLOCK, at);
    line(v, "if (!all%u) {", at);
    line(v, "    break;");
    line(v, "}");
    line(v, "s_first%u[t_id()] = before%u;", at, at);
    line(v, "s_at%u[t_id()] = at%u[0] - before%u;", at, at, at);
    line(v, "s_row%u[t_id()] = listed;", at);
    for (u32 r = 0; r < v->pipe->reg_count; r++) {
        if (is_carried(v, r, at)) {
            line(v, "s_r%u_%u[t_id()] = r%u[0];", at, r, r);
        }
    }
    line(v, "at%u[0] += take%u;", at, at);
    line(v, "b_sync();");
    line(v, "for (u32 match%u = 0; match%u < all%u; match%u += %d) {", at, at, at, at, WOVEN_BLOCK);
    v->depth++;
    line(v, "u32 act = match%u + t_id() < all%u;", at, at);
    line(v, "const u32 no%u = act ? match%u + t_id() : 0u;", at, at);
    line(v, "const u32 from%u = owner_of(s_first%u, %d, no%u);", at, at, WOVEN_BLOCK, at);
    char from[32];
    snprintf(from, sizeof from, "s_row%u[from%u]", at, at);
    put_row(v, from);
    declare_regs(v, at);
    for (u32 r = 0; r < v->pipe->reg_count; r++) {
        if (is_carried(v, r, at)) {
            line(v, "r%u[0] = s_r%u_%u[from%u];", r, at, r, at);
        }
    }
    line(v, "const u32 place%u = s_at%u[from%u] + no%u;", at, at, at, at);
}

void weave_spread_end(struct weaver *v) {
    for (i32 i = 0; i < 2; i++) {
        v->depth--;
        line(v, "}");
    }
}

/* weave_text.c: writes the text of a woven kernel: one pipeline, fused, for one layout of its
 * source.
 *
 * A tile is 256 threads times R rows; a thread's rows are groups of four neighbours, R / 4 groups a
 * block's width apart, so that every column, whatever its width, is read with one vector access per
 * group and warps read contiguous lines; where rows in their order become groups, all of a thread's
 * are neighbours. Registers are arrays of R that the compiler keeps in
 * registers. Columns loaded before the first filter are read without any condition (groups past the
 * end read group 0 again), later ones only where a group has an active row, which touches exactly
 * the sectors that hold one. Nothing that varies between executions is written here: literals,
 * bases, sizes and addresses come from the arguments, so equal shapes give equal text, and equal
 * text is compiled once. */
#include "gpu/weave_int.h"

#include "codes/loop.h"

static const char *kind_text(u8 kind) {
    return kind_names[kind];
}

static const char *zero_text(u8 kind) {
    return kind == KIND_STR ? "str_none()" : "0";
}

/* --- how many rows a thread holds --- */

static i32 kind_words(u8 kind) {
    return MAX_OF(kind_bytes[kind] / 4, 1);
}

/* Words that are alive at once, with or without those of truth values. */
static i32 live_words_of(const struct gpu_plan *plan, u32 from, u32 to, bool truth) {
    const struct pipeline *pipe = plan->pipe;
    i32 most = 1;
    for (u32 at = from; at < to; at++) {
        i32 words = 0;
        for (u32 r = 0; r < pipe->reg_count; r++) {
            bool alive = plan->first[r] <= at && plan->last[r] >= at && !pipe->regs[r].is_const;
            alive = alive && (truth || pipe->regs[r].kind != KIND_B8);
            words += alive ? kind_words(pipe->regs[r].kind) : 0;
        }
        most = MAX_OF(most, words);
    }
    return most;
}

static i32 live_words(const struct gpu_plan *plan, u32 from, u32 to) {
    return live_words_of(plan, from, to, true);
}

/* Rows go ways of their own: through loops of matches, or functions of text. More rows a thread then
 * hide nothing, and each makes the code longer, which is what compiling takes time by. */
static bool goes_apart(const struct gpu_plan *plan) {
    return plan->has_match || plan->has_each || plan->has_text || plan->interns.count > 0;
}

enum { CELL_WORDS = 16 };

/* Of a tile whose rows go on as a list: few are left, so that they are taken from many. Whether they
 * are takes a bit each: truth values end in one before the next row's are made. */
static i32 rows_before_list(const struct weaver *v) {
    return v->few && live_words_of(v->plan, 0, v->ask_at, false) <= 4 ? 16 : 8;
}

/* Whether all groups are in cells of each thread's own. */
static bool all_in_cells(const struct weaver *v) {
    bool all = v->plan->agg_count > 0;
    for (u32 k = 0; k < v->plan->agg_count; k++) {
        all = all && v->w->cells[k];
    }
    return all;
}

/* Of an aggregation whose rows meet others in a table: more words take more registers. */
static bool has_wide_groups(const struct gpu_plan *plan) {
    bool wide = false;
    for (u32 k = 0; k < plan->agg_count; k++) {
        wide = wide || (plan->aggs[k]->word_count > 2 && plan->aggs[k]->key != NO_REG);
    }
    return wide;
}

/* Rows end in words of the thread's own, and nothing is looked up on the way. */
static bool ends_in_thread(const struct gpu_plan *plan) {
    bool own = plan->agg_count > 0 && !plan->indexes.count && !goes_apart(plan);
    for (u32 k = 0; k < plan->agg_count; k++) {
        own = own && plan->aggs[k]->key == NO_REG;
    }
    return own;
}

static i32 rows_per_thread(const struct weaver *v) {
    const struct gpu_plan *plan = v->plan;
    if (v->list) {
        return rows_before_list(v);
    }
    if (v->w->run_rows) {
        return v->w->run_rows;
    }
    i32 words = live_words(plan, 0, v->pipe->op_count);
    /* Sixteen rows measured no faster, in fewer blocks, but where each filter waits for the column of
     * the one before and little is alive: TPC-H's Q6 took 1.22 ms instead of 1.35. */
    i32 rows = words <= 10 && !goes_apart(plan) ? 8 : 4;
    if (ends_in_thread(plan) && words <= 4) {
        rows = 16;
    } else if (all_in_cells(v) && words <= CELL_WORDS && !goes_apart(plan)) {
        rows = 8; /* rows end in cells one by one: few of their registers live at once */
    } else if (plan->agg_count) {
        rows = MIN_OF(rows, has_wide_groups(plan) ? 4 : 8);
    }
    if (plan->indexes.count) {
        rows = MIN_OF(rows, 8);
    }
    while (rows > 4 && 2 * WOVEN_BLOCK * rows * weave_stage_bytes(plan) > 40960) {
        rows /= 2;
    }
    return rows;
}

/* Whether rows search a hash table, whose first places are asked for all rows of a thread at once: four words a row. */
static bool asks_places(const struct weaver *v) {
    bool asks = false;
    for (u32 k = 0; k < v->plan->agg_count; k++) {
        asks = asks || (v->plan->aggs[k]->key != NO_REG && v->w->aggs[k].form == AGG_HASH && !v->w->cells[k]);
    }
    return asks && !v->list && !v->w->run_rows;
}

/* Blocks per multiprocessor the compiler has to make room for: few live registers, many blocks. */
static i32 min_blocks(const struct weaver *v) {
    u32 all = v->pipe->op_count;
    i32 words = live_words_of(v->plan, 0, v->list ? v->ask_at : all, !v->list) * v->rows;
    if (v->list) { /* one row a thread, and what addresses take */
        words = MAX_OF(words, live_words(v->plan, v->ask_at, all) + 24);
    }
    bool many = words <= 40 && (v->list || !goes_apart(v->plan));
    i32 blocks = many ? 6 : words <= 64 ? 4 : words <= 96 ? 3 : 2;
    if (v->rows >= 8 && asks_places(v)) { /* six had 692 bytes of registers in memory in TPC-H's Q13 */
        blocks = MIN_OF(blocks, 4);
    }
    if (v->plan->interns.count && !v->list && words > 40) { /* four had registers in memory around calls */
        blocks = MIN_OF(blocks, 3);
    }
    if (weave_along(v)) {
        i32 run_words = v->rows * weave_runs_words(v) + 24;
        bool plain = !goes_apart(v->plan) && !v->plan->indexes.count;
        i32 room = run_words <= 40 ? 6 : run_words <= 48 ? 5 : run_words <= 60 ? 4 : 0;
        blocks = plain && room ? room : MIN_OF(blocks, 4);
    }
    bool cells = all_in_cells(v) && !v->list && !goes_apart(v->plan) &&
                 live_words(v->plan, 0, all) <= CELL_WORDS;
    return cells ? MAX_OF(blocks, 4) : blocks;
}

/* --- functions --- */

static bool used_before(const struct pipeline *pipe, u32 at) {
    for (u32 i = 0; i < at; i++) {
        if (pipe->ops[i].code == pipe->ops[at].code) {
            return true;
        }
    }
    return false;
}

#define MAKE_PARTS                                              \
    "#include \"defs/fn_str.h\"\n#include \"defs/fn_str2.h\"\n" \
    "#include \"defs/fn_make.h\"\n"
#define PARSE_PARTS                                            \
    "#include \"defs/fn_int.h\"\n#include \"defs/fn_str.h\"\n" \
    "#include \"defs/fn_parse.h\"\n"
#define MOMENT_PARTS                                                       \
    PARSE_PARTS "#include \"defs/fn_float.h\"\n#include \"defs/fn_date.h\"\n" \
                "#include \"defs/fn_time.h\"\n#include \"defs/fn_moment.h\"\n"
#define FORMAT_PARTS                                                                          \
    "#include \"defs/fn_int.h\"\n#include \"defs/fn_float.h\"\n#include \"defs/fn_date.h\"\n" \
    "#include \"defs/fn_time.h\"\n" MAKE_PARTS "#include \"defs/fn_format.h\"\n"

/* Helper texts, each after those it needs; they guard themselves against a second time. */
const char *gpu_part_text(const char *part) {
    static const struct {
        const char *part, *text;
    } parts[] = {
        {"core", ""},
        {"int", "#include \"defs/fn_int.h\"\n"},
        {"float", "#include \"defs/fn_float.h\"\n"},
        {"date", "#include \"defs/fn_date.h\"\n"},
        {"math", "#include \"defs/fn_int.h\"\n#include \"defs/fn_date.h\"\n"
                 "#include \"defs/fn_float.h\"\n#include \"defs/fn_math.h\"\n"},
        {"real", "#include \"defs/fn_float.h\"\n#include \"defs/real_table.h\"\n"
                 "#include \"defs/fn_real.h\"\n"},
        {"time", "#include \"defs/fn_int.h\"\n#include \"defs/fn_float.h\"\n"
                 "#include \"defs/fn_date.h\"\n#include \"defs/fn_time.h\"\n"},
        {"str", "#include \"defs/fn_str.h\"\n"},
        {"like", "#include \"defs/fn_str.h\"\n#include \"defs/fn_like.h\"\n"},
        {"case", "#include \"defs/fn_str.h\"\n#include \"defs/case_map.h\"\n"
                 "#include \"defs/fn_case.h\"\n"},
        {"make", MAKE_PARTS},
        {"format", FORMAT_PARTS},
        {"shortest", FORMAT_PARTS "#include \"defs/pow10_table.h\"\n"
                                  "#include \"defs/fn_shortest.h\"\n"},
        {"encode", MAKE_PARTS "#include \"defs/fn_encode.h\"\n"},
        {"hash", MAKE_PARTS "#include \"defs/fn_hash.h\"\n"},
        {"initcap", "#include \"defs/fn_str.h\"\n#include \"defs/fn_str2.h\"\n"
                    "#include \"defs/case_map.h\"\n#include \"defs/fn_case.h\"\n"
                    "#include \"defs/char_class.h\"\n#include \"defs/fn_initcap.h\"\n"},
        {"to_char", FORMAT_PARTS "#include \"defs/fn_to_char.h\"\n"},
        {"zone", FORMAT_PARTS "#include \"defs/fn_zone.h\"\n"},
        {"parse", PARSE_PARTS},
        {"moment", MOMENT_PARTS},
        {"moment_zone", FORMAT_PARTS "#include \"defs/fn_zone.h\"\n" MOMENT_PARTS
                                     "#include \"defs/fn_moment_zone.h\"\n"},
        {"parse_real", PARSE_PARTS "#include \"defs/fn_fround.h\"\n"
                                   "#include \"defs/fn_variance.h\"\n"
                                   "#include \"defs/pow10_table.h\"\n"
                                   "#include \"defs/fn_parse_real.h\"\n"},
        {"regex", "#include \"defs/fn_str.h\"\n#include \"defs/fn_str2.h\"\n"
                  "#include \"defs/fn_regex.h\"\n"},
        {"str2", "#include \"defs/fn_str.h\"\n#include \"defs/fn_str2.h\"\n"},
    };
    for (i32 i = 0; i < COUNT_OF(parts); i++) {
        if (!strcmp(parts[i].part, part)) {
            return parts[i].text;
        }
    }
    return NULL;
}

/* What kernels have in place of a host opcode. */
static const struct op_ahead *in_place_of(u16 code) {
    return op_ahead(code) ? op_ahead(code) : op_partly(code);
}

static const char *part_of(u16 code) {
    const struct op_ahead *in_place = in_place_of(code);
    return in_place ? in_place->part : op_infos[code].part;
}

static const char *expr_of(u16 code) {
    const struct op_ahead *in_place = in_place_of(code);
    return in_place ? in_place->expr : op_infos[code].expr;
}

static void put_functions(struct weaver *v) {
    line(v, "#define WF_MIN_BLOCKS %d", min_blocks(v));
    line(v, "#include \"block.h\"");
    line(v, "#include \"defs/fault.h\"");
    if (v->plan->has_text || v->plan->interns.count) {
        line(v, "#include \"%s.h\"", v->plan->interns.count ? "intern" : "text");
    }
    if (v->any_seeks) {
        line(v, "#include \"seek.h\"");
    }
    if (weave_meets(v)) {
        line(v, "#include \"meet.h\"");
    }
    if (v->plan->has_words) {
        line(v, "#include \"words.h\"");
        line(v, "#include \"defs/fn_int.h\"");
        line(v, "#include \"defs/fn_fround.h\"");
        line(v, "#include \"defs/fn_variance.h\"");
    }
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        const struct op_info *info = &op_infos[v->pipe->ops[i].code];
        if (!(info->flags & OP_CONTROL) && !used_before(v->pipe, i)) {
            text_print(v->out, "%s", gpu_part_text(part_of(v->pipe->ops[i].code)));
        }
    }
    line(v, "#define R %d", v->rows);
    line(v, "#define TILE %du", WOVEN_BLOCK * v->rows);
    line(v, "#define SPAN %d", weave_along(v) ? 4 : 4 * WOVEN_BLOCK); /* rows from group to group */
    line(v, "#define ROW(i) ((i64)((i) / 4 * SPAN + (i) %% 4))");
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        const struct op_info *info = &op_infos[v->pipe->ops[i].code];
        if ((info->flags & OP_CONTROL) || used_before(v->pipe, i)) {
            continue;
        }
        bool makes = info->flags & OP_MAKES; /* bytes to out, of which it gives the number */
        text_print(v->out, "%s %s op_%s(%s", info->cost >= 40 ? "FN_SLOW" : "FN",
                   makes ? "i64" : kind_text(info->result), info->name, makes ? "u8 *out, " : "");
        for (u32 k = 0; k < info->arity; k++) {
            u8 kind = k == 1 && op_ahead(v->pipe->ops[i].code) ? KIND_STR : info->operands[k];
            text_print(v->out, "%s%s %c", k ? ", " : "", kind_text(kind), "abc"[k]);
        }
        text_print(v->out, "%s) { return %s; }\n", info->flags & OP_FAULTS ? ", u8 *f" : "",
                   expr_of(v->pipe->ops[i].code));
    }
}

/* --- what is set up before the tiles --- */

static void put_literal(struct weaver *v, const struct op *op, u16 number) {
    static const char *const heads[KIND_COUNT] = {
        [KIND_B8] = "(b8)",       [KIND_I32] = "(i32)(u32)",     [KIND_I64] = "(i64)",
        [KIND_I128] = "i128_of(", [KIND_F32] = "bits_f32((u32)", [KIND_F64] = "bits_f64(",
        [KIND_STR] = "str_of("};
    char tail[40] = "";
    char value[120];
    u8 kind = v->pipe->regs[op->dst].kind;
    if (kind == KIND_I128 || kind == KIND_STR) {
        snprintf(tail, sizeof tail, ", args.lits[%u].high)", number);
    } else if (kind == KIND_F32 || kind == KIND_F64) {
        snprintf(tail, sizeof tail, ")");
    }
    snprintf(value, sizeof value, "%sargs.lits[%u].low%s", heads[kind], number, tail);
    if (v->pipe->regs[op->dst].is_const) {
        line(v, "const %s r%u = %s;", kind_text(kind), op->dst, value);
    } else {
        line(v, EACH "{ %sr%u[i] = %s; }", v->when_depth ? "if (act >> i & 1u) " : "", op->dst,
             value);
    }
}

const char *weave_tile_first(const struct weaver *v) {
    return v->w->ranged ? "tile_first" : "args.tile_first";
}

const char *weave_tile_end(const struct weaver *v) {
    return v->w->ranged ? "tile_end" : "args.tile_count";
}

/* Rows that the device alone knows. */
static void put_range(struct weaver *v) {
    if (v->w->ranged) {
        line(v, "const struct krange range = *args.range;");
        line(v, "const u64 tile_first = (u64)range.first / TILE;");
        line(v, "const u64 tile_end = range.first < range.end ? ((u64)range.end + TILE - 1) / TILE : 0u;");
        line(v, "if (tile_first + t_block() >= tile_end) {");
        line(v, "    return;");
        line(v, "}");
    }
}

static void put_setup(struct weaver *v) {
    line(v, "SHARED_BYTES(s_bytes);");
    line(v, "u64 fault = ~0ULL;");
    put_range(v);
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        const struct op *op = &v->pipe->ops[i];
        if (op->code == OP_CONST && v->pipe->regs[op->dst].is_const) {
            put_literal(v, op, v->plan->op_imm[i]);
        }
    }
    for (i64 i = 0; i < v->plan->patterns.count; i++) {
        i64 at = v->plan->lits.count + i;
        line(v, "const str p%lld = str_of(args.lits[%lld].low, args.lits[%lld].high);", i, at, at);
    }
    for (i64 i = 0; i < v->plan->indexes.count; i++) {
        line(v, "const struct kindex x%lld = args.indexes[%lld];", i, i);
    }
    for (i64 i = 0; i < v->plan->cols.count; i++) {
        line(v, "const struct kcol v%lld = args.cols[%lld];", i, i);
    }
    for (i64 i = 0; i < v->plan->luts.count; i++) {
        line(v, "const struct kcol t%lld = args.luts[%lld];", i, i);
    }
    weave_list_setup(v);
    weave_seek_setup(v);
    weave_sink_setup(v);
}

static void put_tile_head(struct weaver *v) {
    if (weave_waits(v)) {
        weave_list_tiles(v);
    } else {
        line(v, "for (u64 tile = %s + t_block(); tile < %s;", weave_tile_first(v),
             weave_tile_end(v));
        line(v, "     tile += t_blocks()) {");
        v->depth++;
    }
    line(v, "const u64 tablet = tile >> args.tile_shift;");
    line(v, "const i64 first = (i64)(tile & (((u64)1 << args.tile_shift) - 1)) * TILE;");
    line(v, "const i64 rows = args.tablet_rows[tablet];");
    line(v, "if (first >= rows ||");
    line(v, "    (args.zones && !args.zones[tablet * args.zone_count + (u64)(first >> 14)])) {");
    line(v, "    continue;");
    line(v, "}");
    if (v->plan->sink->kind == SINK_ROWS && v->plan->sink->limit >= 0) {
        line(v, "if (b_any(t_id() == 0 && args.limit >= 0 &&"); /* below 0: there is room for all */
        line(v, "          (i64)read_u64(&args.report[REPORT_ROWS]) >= args.limit)) {");
        line(v, "    break;");
        line(v, "}");
    }
    line(v, "const u32 here = rows - first < TILE ? (u32)(rows - first) : TILE;");
    line(v, "const u32 begin = t_id() * %s;", weave_along(v) ? "R" : "4u");
    line(v, "const i64 row = first + (i64)begin;");
    line(v, "const i64 number = args.row_starts[tablet] + row;");
    line(v, "u32 act = 0;");
    if (v->w->gone) {
        line(v, "const u64 *const gone = args.gone ? args.gone[tablet] : (const u64 *)0;");
        line(v, EACH_GROUP "{ act |= group_live(row + g * SPAN, rows, gone) << (4 * g); }");
    } else {
        line(v, "if (here == TILE) {");
        line(v, "    act = 0xffffffffu >> (32 - R);");
        line(v, "} else {");
        line(v, "    " EACH_GROUP "{ act |= group_here(begin + g * SPAN, here) << (4 * g); }");
        line(v, "}");
    }
    if (v->w->ranged) {
        line(v, "if (first < range.first) {");
        line(v, "    " EACH_GROUP "{");
        line(v, "        act &= group_from(row + g * SPAN, range.first) << (4 * g) | ~(15u << (4 * g));");
        line(v, "    }");
        line(v, "}");
    }
    for (u32 r = 0; r < v->pipe->reg_count; r++) {
        if (!v->pipe->regs[r].is_const && v->plan->first[r] <= v->plan->last[r] &&
            v->plan->first[r] != 0xffffffffu && !weave_seek_hides(v, (u16)r)) {
            line(v, "%s r%u[R];", kind_text(v->pipe->regs[r].kind), r);
        }
    }
}

/* --- loads --- */

struct raw { /* how a group of four lies in memory */
    const char *type;
    const char *read;
    i32 width, pieces;
};
static const struct raw raws[] = {
    [SEG_CONST] = {NULL, NULL, 0, 0},
    [SEG_SERIES] = {NULL, NULL, 0, 0},
    [SEG_U8] = {"u32", "*(const u32 *)(%s)", 1, 1},
    [SEG_U16] = {"u64", "*(const u64 *)(%s)", 2, 1},
    [SEG_U32] = {"vec16", "load_once16(%s)", 4, 1},
    [SEG_U64] = {"vec16", "load_once16(%s)", 8, 2},
    [SEG_U128] = {"vec16", "load_once16(%s)", 16, 4},
    [SEG_I32] = {"vec16", "load_once16(%s)", 4, 1},
    [SEG_I64] = {"vec16", "load_once16(%s)", 8, 2},
    [SEG_F32] = {"vec16", "load_once16(%s)", 4, 1},
    [SEG_F64] = {"vec16", "load_once16(%s)", 8, 2},
};

static void declare_column(struct weaver *v, u32 col) {
    if (!v->loaded[col]) {
        line(v, "const struct kseg s%u = args.segs[%u * (u64)args.tablet_count + tablet];", col,
             col);
        v->loaded[col] = 1;
    }
}

/* `piece` of the group's vectors into c<op>[g], under the right condition. */
static void put_raw(struct weaver *v, u32 op, u32 col, const struct raw *raw, i32 piece) {
    char at[140];
    char read[220];
    /* Where a thread's groups are neighbours, what one leaves of a sector is for the next. */
    const char *form = weave_along(v) && !strcmp(raw->type, "vec16") ? "load16(%s)" : raw->read;
    const char *hole = strstr(form, "%s");
    const char *group =
        v->filtered ? "begin + g * SPAN" : "begin + g * SPAN < here ? begin + g * SPAN : 0u";
    snprintf(at, sizeof at, "s%u.data + first * %d + (%s) * %uu + %d", col, raw->width, group,
             (u32)raw->width, 16 * piece);
    snprintf(read, sizeof read, "%.*s%s%s", (int)(hole - form), form, at, hole + 2);
    line(v, "%s c%u_%d[R / 4];", raw->type, op, piece);
    if (!v->filtered) {
        line(v, EACH_GROUP "{ c%u_%d[g] = %s; }", op, piece, read);
        return;
    }
    const char *zero = !strcmp(raw->type, "vec16") ? "vec_of(0, 0)" : "0";
    line(v, EACH_GROUP "{");
    line(v, "    c%u_%d[g] = %s;", op, piece, zero);
    line(v, "    if (act >> (4 * g) & 15u) {");
    line(v, "        c%u_%d[g] = %s;", op, piece, read);
    line(v, "    }");
    line(v, "}");
}

/* Element i of the raw vectors: its low 32 or 64 bits. */
static const char *element(u32 op, u8 form, char buf[160]) {
    switch (form) {
    case SEG_U8:
        snprintf(buf, 160, "(c%u_0[i / 4] >> (8 * (i %% 4)) & 255u)", op);
        break;
    case SEG_U16:
        snprintf(buf, 160, "((u32)(c%u_0[i / 4] >> (16 * (i %% 4))) & 65535u)", op);
        break;
    case SEG_U32:
    case SEG_F32:
        snprintf(buf, 160, "c%u_0[i / 4].w[i %% 4]", op);
        break;
    case SEG_I32:
        snprintf(buf, 160, "(i32)c%u_0[i / 4].w[i %% 4]", op);
        break;
    case SEG_U64:
    case SEG_F64:
    case SEG_I64:
        snprintf(buf, 160,
                 "%s(i & 1 ? vec_high(i & 2 ? c%u_1[i / 4] : c%u_0[i / 4]) "
                 ": vec_low(i & 2 ? c%u_1[i / 4] : c%u_0[i / 4]))",
                 form == SEG_I64 ? "(i64)" : "", op, op, op, op);
        break;
    default:
        snprintf(buf, 160,
                 "vec_i128(i %% 4 == 0 ? c%u_0[i / 4] : i %% 4 == 1 ? c%u_1[i / 4] : "
                 "i %% 4 == 2 ? c%u_2[i / 4] : c%u_3[i / 4])",
                 op, op, op, op);
        break;
    }
    return buf;
}

/* The same of a list's row, read by itself. */
static const char *row_element(u32 col, u8 form, char buf[160]) {
    static const char *const types[] = {
        [SEG_U8] = "u8",   [SEG_U16] = "u16", [SEG_U32] = "u32", [SEG_U64] = "u64",
        [SEG_I32] = "i32", [SEG_I64] = "i64", [SEG_F32] = "u32", [SEG_F64] = "u64"};
    if (form == SEG_U128) {
        snprintf(buf, 160, "vec_i128(act ? load16(s%u.data + row * 16) : vec_of(0, 0))", col);
    } else {
        snprintf(buf, 160, "(act ? ((const %s *)s%u.data)[row] : 0)", types[form], col);
    }
    return buf;
}

static void put_load_text(struct weaver *v, const struct op *op) {
    bool keep = v->when_depth && v->seen[op->dst];
    line(v, EACH "{");
    if (!keep) {
        line(v, "    r%u[i] = str_none();", op->dst);
    }
    line(v, "    if (act >> i & 1u) {");
    line(v, "        r%u[i] = text_load(&args.segs[%u * (u64)args.tablet_count + tablet],", op->dst,
         op->imm);
    line(v, "                           row + ROW(i), %du, args.texts_in, args.texts_out);",
         v->plan->host_text[op->dst]);
    line(v, "    }");
    line(v, "}");
}

static void put_load(struct weaver *v, u32 at, const struct op *op) {
    if (v->pipe->regs[op->dst].kind == KIND_STR) {
        if (!weave_seek_hides(v, op->dst)) {
            put_load_text(v, op);
        }
        return;
    }
    u8 form = v->w->cols[op->imm].form;
    u8 kind = v->pipe->regs[op->dst].kind;
    u32 col = op->imm;
    char elem[160] = "0";
    declare_column(v, col);
    for (i32 piece = 0; !v->listed && piece < raws[form].pieces; piece++) {
        put_raw(v, at, col, &raws[form], piece);
    }
    if (form == SEG_SERIES) {
        snprintf(elem, sizeof elem, "(u64)(row + ROW(i)) * s%u.base_high", col);
    } else if (form != SEG_CONST) {
        (void)(v->listed ? row_element(col, form, elem) : element(at, form, elem));
    }
    char value[300];
    char base[24];
    if (form == SEG_I32 || form == SEG_I64) {
        snprintf(base, sizeof base, "0");
    } else {
        snprintf(base, sizeof base, "s%u.base", col);
    }
    bool is_float = form == SEG_F32 || form == SEG_F64;
    switch (kind) {
    case KIND_F32:
        snprintf(value, sizeof value, "bits_f32((u32)(%s))", is_float ? elem : base);
        break;
    case KIND_F64:
        snprintf(value, sizeof value, "bits_f64(%s)", is_float ? elem : base);
        break;
    case KIND_I128:
        snprintf(value, sizeof value,
                 "(i128)((u128)(i128)(%s) + (u128)i128_of(s%u.base, s%u.base_high))", elem, col,
                 col);
        break;
    case KIND_I64:
        snprintf(value, sizeof value, "(i64)((u64)(i64)(%s) + %s)", elem, base);
        break;
    case KIND_I32:
        snprintf(value, sizeof value, "(i32)((u32)(%s) + (u32)%s)", elem, base);
        break;
    default:
        snprintf(value, sizeof value, "(b8)((u32)(%s) + (u32)%s)", elem, base);
        break;
    }
    line(v, EACH "{ %sr%u[i] = %s; }",
         v->when_depth && v->seen[op->dst] ? "if (act >> i & 1u) " : "", op->dst, value);
}

static void put_load_nulls(struct weaver *v, u32 at, const struct op *op) {
    static const char *const forms[] = {
        [NULLS_NONE] = "NULLS_NONE", [NULLS_BITS] = "NULLS_BITS", [NULLS_BYTES] = "NULLS_BYTES"};
    u32 col = op->imm;
    const char *only = v->when_depth && v->seen[op->dst] ? "if (act >> i & 1u) " : "";
    if (v->w->cols[col].null_form == NULLS_NONE) {
        line(v, EACH "{ %sr%u[i] = 0; }", only, op->dst);
        return;
    }
    declare_column(v, col);
    if (v->listed) {
        line(v, EACH "{ %sr%u[i] = act ? row_null(s%u.nulls, %s, row) : (b8)0; }", only, op->dst,
             col, forms[v->w->cols[col].null_form]);
        return;
    }
    line(v, "u32 n%u = 0;", at);
    line(v, EACH_GROUP "{");
    line(v, "    if (act >> (4 * g) & 15u) {");
    line(v, "        n%u |= group_nulls(s%u.nulls, %s, row + g * SPAN) << (4 * g);", at, col,
         forms[v->w->cols[col].null_form]);
    line(v, "    }");
    line(v, "}");
    line(v, EACH "{ %sr%u[i] = (b8)(n%u >> i & 1u); }", only, op->dst, at);
}

/* LUT without a branch, so that what many rows read is on its way at once: rows that read nothing read
 * something else. */
static void put_lut(struct weaver *v, const struct op *op, u16 number) {
    char key[24];
    char none[24];
    const char *kind = kind_text(v->pipe->regs[op->dst].kind);
    operand(v, op->a, key);
    snprintf(none, sizeof none, op->b == NO_REG ? "t%u.len" : "(i64)%u",
             op->b == NO_REG ? number : op->b);
    line(v, EACH "{");
    line(v, "    const i64 at = %s < 0 ? %s : (i64)%s;", key, none, key);
    line(v, "    const u32 on = (act >> i & 1u) & (at < t%u.len);", number);
    line(v, "    const %s *from = (const %s *)args.tablet_rows;", kind, kind);
    line(v, "    from = on ? (const %s *)t%u.data + at : from;", kind, number);
    line(v, "    const %s value = *from;", kind);
    line(v, "    r%u[i] = (%s)(on ? value : 0);", op->dst, kind);
    line(v, "}");
}

/* LOADV, LOADVN, LUT: what active rows read; the others keep their value, or get zero. */
static void put_gather(struct weaver *v, const struct op *op, u16 number) {
    char key[24];
    if (op->code == OP_LUT && kind_bytes[v->pipe->regs[op->dst].kind] <= 8 && !v->when_depth &&
        !v->listed) {
        put_lut(v, op, number);
        return;
    }
    const char *kind = kind_text(v->pipe->regs[op->dst].kind);
    operand(v, op->a, key);
    line(v, EACH "{");
    v->depth++;
    if (v->when_depth && v->seen[op->dst]) {
        line(v, "%s value = r%u[i];", kind, op->dst);
    } else {
        line(v, "%s value = %s;", kind, zero_text(v->pipe->regs[op->dst].kind));
    }
    bool outer = op->code != OP_LUT && op->c == 1;
    if (outer) {
        line(v, "if ((act >> i & 1u) && %s < 0) {", key);
        line(v, "    value = %s;",
             op->code == OP_LOADVN ? "1" : zero_text(v->pipe->regs[op->dst].kind));
        line(v, "}");
    }
    line(v, "if ((act >> i & 1u)%s%s%s) {", outer ? " && " : "", outer ? key : "",
         outer ? " >= 0" : "");
    v->depth++;
    bool packed = op->code != OP_LUT && number < 64 && v->w->packed >> number & 1;
    if (packed && op->code == OP_LOADV) {
        line(v, "value = (%s)(v%u.lo + (i64)((u64)%s >> v%u.shift & v%u.mask));", kind, number, key, number,
             number);
    } else if (packed) {
        line(v, "value = (b8)((u64)%s >> (v%u.null_bit - 1u) & 1u);", key, number);
    } else if (op->code == OP_LOADV) {
        line(v, "value = ((const %s *)v%u.data)[%s];", kind, number, key);
        if (v->pipe->regs[op->dst].kind == KIND_STR && !v->plan->host_text[op->dst]) {
            line(v, "value = text_moved(args.texts_in.items, args.texts_in.count, value);");
        }
    } else if (op->code == OP_LOADVN) {
        line(v, "value = v%u.nulls ? v%u.nulls[%s] : (b8)0;", number, number, key);
    } else {
        if (op->b == NO_REG) {
            line(v, "const i64 at = %s < 0 ? t%u.len : (i64)%s;", key, number, key);
        } else {
            line(v, "const i64 at = %s < 0 ? (i64)%u : (i64)%s;", key, op->b, key);
        }
        line(v, "value = at < t%u.len ? ((const %s *)t%u.data)[at] : %s%s;", number, kind, number,
             v->pipe->regs[op->dst].kind == KIND_B8 ? "(b8)" : "",
             zero_text(v->pipe->regs[op->dst].kind));
    }
    v->depth--;
    line(v, "}");
    line(v, "r%u[i] = value;", op->dst);
    v->depth--;
    line(v, "}");
}

/* --- scalar opcodes --- */

static void put_scalar(struct weaver *v, const struct op *op, u16 number) {
    const struct op_info *info = &op_infos[op->code];
    bool ahead = op_ahead(op->code) != NULL;
    bool faults = info->flags & OP_FAULTS;
    bool text = false; /* views of rows that are not there point nowhere */
    for (u32 k = 0; k < info->arity; k++) {
        text = text || info->operands[k] == KIND_STR;
    }
    bool heavy = text || (info->cost >= 8 && v->filtered);
    bool keep = v->when_depth > 0 && v->seen[op->dst];
    const u16 regs[3] = {op->a, op->b, op->c};
    char call[200];
    char buf[24];
    i32 n = snprintf(call, sizeof call, "op_%s(", info->name);
    for (u32 k = 0; k < info->arity; k++) {
        operand(v, regs[k], buf);
        if (ahead && k == 1) {
            snprintf(buf, sizeof buf, "p%u", number);
        }
        n += snprintf(call + n, sizeof call - (size_t)n, "%s%s", k ? ", " : "", buf);
    }
    snprintf(call + n, sizeof call - (size_t)n, "%s)", faults ? ", &f" : "");
    const char *only = keep || heavy ? "if (act >> i & 1u) " : "";
    if (!faults) {
        if (heavy && !keep) {
            line(v, EACH "{ r%u[i] = %s; }", op->dst, zero_text(info->result));
        }
        line(v, EACH "{ %s{ r%u[i] = %s; } }", only, op->dst, call);
        return;
    }
    if (heavy && !keep) {
        line(v, EACH "{ r%u[i] = %s; }", op->dst, zero_text(info->result));
    }
    line(v, EACH "{");
    line(v, "    u8 f = 0;");
    line(v, "    %s{ r%u[i] = %s; }", only, op->dst, call);
    if (op_partly(op->code)) { /* before all faults, and no TRY catches it */
        line(v, "    if (f == FAULT_ELSEWHERE && (act >> i & 1u)) {");
        line(v, "        fault = ELSEWHERE_WORD;");
        line(v, "        f = 0;");
        line(v, "    }");
    }
    line(v, "    if (f && (act >> i & 1u)) {");
    v->depth += 2;
    weave_fault(v, op, "f");
    v->depth -= 2;
    line(v, "    }");
    line(v, "}");
}

/* FROUND, VARIANCE: words from columns or registers into an array of the row's own. */
static void put_sum(struct weaver *v, const struct op *op, u16 number) {
    bool keep = v->when_depth > 0 && v->seen[op->dst];
    u8 kind = v->pipe->regs[op->dst].kind;
    u32 count = op->b;
    if (!keep) {
        line(v, EACH "{ r%u[i] = %s; }", op->dst, zero_text(kind));
    }
    line(v, EACH "{");
    line(v, "    if (act >> i & 1u) {");
    v->depth += 2;
    line(v, "i64 words[%u];", count);
    line(v, "u8 f = 0;");
    for (u32 k = 0; k < count;) {
        u32 reg = (u32)op->a + k;
        u32 col = v->word_cols[reg];
        u32 run = 1;
        if (!v->plan->is_word[reg]) {
            line(v, "words[%u] = r%u[i];", k, reg);
        } else {
            while (k + run < count && v->plan->is_word[reg + run] &&
                   v->word_cols[reg + run] == col + run) {
                run++;
            }
            line(v, "load_words(words + %u, args.segs + (%u * (u64)args.tablet_count + tablet),", k,
                 col);
            line(v, "           args.tablet_count, %u, row + ROW(i));", run);
        }
        k += run;
    }
    if (op->code == OP_FROUND) {
        line(v, "r%u[i] = fn_fround_%s(words, %u, %u, (i32)(u32)args.lits[%u].low, &f);", op->dst,
             kind_text(kind), count, op->c, number);
    } else {
        u32 digits = MAX_OF(2u * op->c, count - 1 - op->c);
        line(v, "u32 room[VARIANCE_NUMBERS * (%u + VARIANCE_SPARE)];", digits);
        line(v, "r%u[i] = fn_variance_%s(words, %u, %u, (i64)args.lits[%u].low, room,", op->dst,
             kind_text(kind), count, op->c, number);
        line(v, "    %u + VARIANCE_SPARE, &f);", digits);
    }
    line(v, "if (f) {");
    v->depth++;
    weave_fault(v, op, "f");
    v->depth--;
    line(v, "}");
    v->depth -= 2;
    line(v, "    }");
    line(v, "}");
}

/* Whether threads of a warp may be at different rounds: between EACH and ANY. */
static bool in_each(const struct pipeline *pipe, u32 at) {
    bool inside = false;
    for (u32 i = 0; i < at; i++) {
        inside = pipe->ops[i].code == OP_EACH || (inside && pipe->ops[i].code != OP_ANY);
    }
    return inside;
}

/* Strings that are made: sizes, one reservation for the warp's rows, then the bytes. */
static void put_make(struct weaver *v, u32 at, const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    bool keep = v->when_depth > 0 && v->seen[op->dst];
    const u16 regs[3] = {op->a, op->b, op->c};
    char operands[120] = "";
    char buf[24];
    for (u32 k = 0; k < info->arity; k++) {
        size_t n = strlen(operands);
        operand(v, regs[k], buf);
        if (op_ahead(op->code) && k == 1) {
            snprintf(buf, sizeof buf, "p%u", v->plan->op_imm[at]);
        }
        snprintf(operands + n, sizeof operands - n, ", %s", buf);
    }
    if (info->flags & OP_FAULTS) {
        size_t n = strlen(operands);
        snprintf(operands + n, sizeof operands - n, ", &f");
    }
    line(v, "u32 size%u[R];", at);
    line(v, "u64 sum%u = 0;", at);
    line(v, EACH "{");
    line(v, "    u8 f = 0;");
    line(v, "    i64 size = act >> i & 1u ? op_%s((u8 *)0%s) : 0;", info->name, operands);
    line(v, "    f = (u8)(size > TEXT_BYTES_MAX ? FAULT_TEXT_SIZE : f);");
    line(v, "    if (f) {");
    v->depth += 2;
    weave_fault(v, op, "f");
    v->depth -= 2;
    line(v, "    }");
    line(v, "    size%u[i] = f ? 0u : (u32)size;", at);
    line(v, "    sum%u += size%u[i];", at, at);
    line(v, "}");
    line(v, "u8 *to%u = %s(args.heap, args.heap_bytes, sum%u, args.report);", at,
         in_each(v->pipe, at) ? "heap_take" : "w_heap_take", at);
    line(v, EACH "{");
    if (!keep) {
        line(v, "    r%u[i] = str_none();", op->dst);
    }
    line(v, "    if (act >> i & 1u) {");
    line(v, "        u8 f = 0;");
    line(v, "        r%u[i] = str_none();", op->dst);
    line(v, "        if (to%u && size%u[i]) {", at, at);
    line(v, "            (void)op_%s(to%u%s);", info->name, at, operands);
    line(v, "            r%u[i] = str_made(to%u, size%u[i]);", op->dst, at, at);
    line(v, "            to%u += size%u[i];", at, at);
    line(v, "        }");
    line(v, "        UNUSED_WORD(f);");
    line(v, "    }");
    line(v, "}");
}

/* --- control opcodes --- */

static void put_mask(struct weaver *v, u16 reg) {
    if (v->pipe->regs[reg].is_const) {
        line(v, "act = r%u ? act : 0u;", reg);
    } else {
        line(v, "{");
        line(v, "    u32 keep = 0;");
        line(v, "    " EACH "{ keep |= (u32)(r%u[i] & 1) << i; }", reg);
        line(v, "    act &= keep;");
        line(v, "}");
    }
}

/* FILTER, WHEN, TRY and END: which rows go on, and whether they may raise. */
static void put_guard(struct weaver *v, const struct op *op) {
    if (op->code == OP_END) {
        line(v, "act = when%u;", v->whens[--v->when_depth]);
        v->try_reg = v->tries[v->when_depth];
        return;
    }
    if (op->code != OP_FILTER) {
        line(v, "const u32 when%u = act;", v->when_count);
        v->tries[v->when_depth] = v->try_reg;
        v->whens[v->when_depth++] = v->when_count++;
    }
    if (op->code == OP_TRY) {
        v->try_reg = op->dst;
        line(v, EACH "{ r%u[i] = 0; }", op->dst);
        return;
    }
    put_mask(v, op->a);
    v->filtered = 1;
}

/* INTERN, INTERN2, UNPAIR. */
static void put_intern(struct weaver *v, const struct op *op, u16 number) {
    char a[24];
    char b[24];
    bool keep = v->when_depth && v->seen[op->dst];
    operand(v, op->a, a);
    line(v, EACH "{");
    if (!keep) {
        line(v, "    r%u[i] = 0;", op->dst);
    }
    line(v, "    if (act >> i & 1u) {");
    if (op->code == OP_UNPAIR) {
        line(v, "        r%u[i] = intern_half(&args.interns[%u], %s, %uu);", op->dst, number, a,
             op->b);
    } else if (intern_keyed(op)) {
        u32 before = 0;
        for (const struct op *other = v->pipe->ops; other < op; other++) {
            before += intern_keyed(other);
        }
        line(v, "        r%u[i] = intern_best(&args.interns[%u],", op->dst, number);
        line(v, "            args.bests + %u * BEST_WORDS * args.best_slots, args.best_slots,",
             before);
        line(v, "            %s, %s, %du, args.report);", operand(v, op->c, b), a,
             op->b == INTERN_GREATEST);
    } else if (op->code == OP_INTERN) {
        line(v, "        r%u[i] = intern_text(&args.interns[%u], %s, %du, args.report);", op->dst,
             number, a, !gpu_op_adds(op));
    } else {
        line(v, "        r%u[i] = intern_pair(&args.interns[%u], %s, %s, %du, args.report);",
             op->dst, number, a, operand(v, op->b, b), !gpu_op_adds(op));
    }
    line(v, "    }");
    line(v, "}");
}

/* --- the body --- */

/* Opcodes that make a value of values. */
static void put_plain(struct weaver *v, u32 at, const struct op *op, u16 number) {
    if (op_infos[op->code].flags & OP_MAKES) {
        put_make(v, at, op);
    } else if (v->seeks[at] && !v->listed) {
        weave_seek(v, at);
    } else if (!v->plan->is_limb[op->dst]) {
        put_scalar(v, op, number);
    }
}

void weave_op(struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    u16 number = v->plan->op_imm[at];
    switch (op->code) {
    case OP_CONST:
        if (!v->pipe->regs[op->dst].is_const) {
            put_literal(v, op, number);
        }
        break;
    case OP_LOAD:
        if (v->plan->is_word[op->dst]) {
            v->word_cols[op->dst] = op->imm;
        } else {
            put_load(v, at, op);
        }
        break;
    case OP_FROUND:
    case OP_VARIANCE:
        put_sum(v, op, number);
        break;
    case OP_LOADN:
        put_load_nulls(v, at, op);
        break;
    case OP_LOADV:
    case OP_LOADVN:
    case OP_LUT:
        put_gather(v, op, number);
        break;
    case OP_INTERN:
    case OP_INTERN2:
    case OP_UNPAIR:
        put_intern(v, op, number);
        break;
    case OP_ROWNO:
        line(v, EACH "{ r%u[i] = number + ROW(i); }", op->dst);
        break;
    case OP_FILTER:
    case OP_WHEN:
    case OP_TRY:
    case OP_END:
        put_guard(v, op);
        break;
    case OP_PROBE:
        weave_probe(v, at, op, number);
        break;
    case OP_MATCH:
        weave_match(v, at, op, number);
        break;
    case OP_RUN:
        weave_run(v, op, number);
        break;
    case OP_MEET:
        weave_meet(v, at);
        break;
    case OP_EACH:
        weave_each(v, at, op, number);
        break;
    case OP_ANY:
        weave_any(v, op);
        break;
    case OP_EMIT:
        weave_emit(v, op->imm);
        break;
    default:
        put_plain(v, at, op, number);
        break;
    }
    v->filtered |= op->code == OP_PROBE || op->code == OP_EACH || gpu_op_repeats(op->code);
    if (op->dst != NO_REG) {
        v->seen[op->dst] = 1;
    }
}

static void put_count(struct weaver *v, u32 at) {
    if (v->plan->count_after[at]) {
        line(v, "w_count_rows(args.report, %du, act);", v->plan->count_after[at] - 1);
    }
}

void gpu_weave_text(struct weave *w, struct text *out) {
    const struct gpu_plan *plan = w->plan;
    struct weaver v = {.w = w, .plan = plan, .pipe = plan->pipe, .out = out, .try_reg = NO_REG};
    v.word_cols = NEW_ARRAY(out->arena, u32, plan->pipe->reg_count + 1);
    v.seen = NEW_ARRAY(out->arena, b8, plan->pipe->reg_count + 1);
    v.whens = NEW_ARRAY(out->arena, u32, plan->pipe->op_count + 1);
    v.tries = NEW_ARRAY(out->arena, u16, plan->pipe->op_count + 1);
    v.loaded = NEW_ARRAY(out->arena, b8, plan->pipe->source.col_count + 1);
    v.loaded_outside = NEW_ARRAY(out->arena, b8, plan->pipe->source.col_count + 1);
    w->shared_bytes = 0;
    weave_list_plan(&v);
    weave_seek_plan(&v);
    v.rows = rows_per_thread(&v);
    w->rows_per_thread = v.rows;
    i64 stage = (i64)WOVEN_BLOCK * v.rows * weave_stage_bytes(plan);
    w->shared_bytes += plan->sink->kind == SINK_ROWS && !v.list ? 2 * stage : 0;
    put_functions(&v);
    line(&v, "#define STAGE %lldu", stage);
    weave_sink_functions(&v);
    line(&v, "KERNEL(k_woven, struct kargs, %d) {", WOVEN_BLOCK);
    v.depth = 1;
    put_setup(&v);
    put_tile_head(&v);
    for (u32 i = 0; i < plan->pipe->op_count; i++) {
        if (i == v.ask_at) {
            weave_ask(&v);
        }
        if (!v.early[i] && !v.late[i]) {
            weave_op(&v, i);
        }
        put_count(&v, i);
    }
    while (v.match_count > 0) {
        weave_next_match(&v);
    }
    weave_list_end(&v);
    v.depth--;
    line(&v, "}");
    weave_finish(&v);
    v.depth--;
    line(&v, "}");
}

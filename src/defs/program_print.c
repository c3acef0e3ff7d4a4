/* program_print.c: a program as text: EXPLAIN (PROGRAM) and EXPLAIN (OPCODES).
 *
 * Steps are numbered through all blocks, as in EXPLAIN ANALYZE. Opcodes are one line each, in
 * columns: number, name (indented within WHEN), result with its kind, operands, and what is known
 * of the result. Literals show their values, or the parameter that fills them. */
#include "defs/program.h"

#include <stdarg.h>
#include <stdio.h>

#include "codes/op.h"
#include "defs/value.h"

/* Of aggregation words. */
#define X(A, name, identity, expr) #name,
static const char *const words[] = {WF_WORDS(X, )};
#undef X

enum { PIECE = 160, NAME_WIDTH = 16, RESULT_WIDTH = 10, OPERAND_WIDTH = 30, TEXT_SHOWN = 40 };

/* A piece of a line that is too small for an arena; what does not fit is cut. */
struct piece {
    char text[PIECE];
    i32 len;
};

static void add(struct piece *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct piece *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->len, (size_t)(PIECE - out->len), format, args);
    va_end(args);
    out->len = MIN_OF(out->len + MAX_OF(n, 0), PIECE - 1);
}

static void add_exact(struct piece *out, i128 value) {
    char buf[64];
    i32 len = value_format_dec(value, 0, buf);
    add(out, "%.*s", len, buf);
}

static void add_text(struct piece *out, str value) {
    struct sv s = sv_of(value);
    i64 shown = MIN_OF(s.len, TEXT_SHOWN);
    while (shown < s.len && shown > 0 && ((u8)s.ptr[shown] & 0xc0) == 0x80) {
        shown--; /* never half a character */
    }
    add(out, "'%.*s'%s", (int)shown, s.ptr ? s.ptr : "", shown < s.len ? "..." : "");
}

static void add_literal(struct piece *out, const struct program *program, u32 lit) {
    if (lit >= program->lit_count) {
        add(out, "literal %u", lit);
        return;
    }
    for (u32 i = 0; i < program->param_count; i++) {
        if (program->param_lits && program->param_lits[i] == lit) {
            add(out, "$%u", i + 1);
            return;
        }
        if (program->param_null_lits && program->param_null_lits[i] == lit) {
            add(out, "$%u is null", i + 1);
            return;
        }
    }
    const union lit *value = &program->lits[lit];
    char buf[64];
    i32 len = 0;
    switch ((enum kind)program->lit_kinds[lit]) {
    case KIND_STR:
        add_text(out, value->str);
        return;
    case KIND_B8:
        len = value_format_bool(value->b8, buf);
        break;
    case KIND_I32:
        len = value_format_i64(value->i32, buf);
        break;
    case KIND_I64:
        len = value_format_i64(value->i64, buf);
        break;
    case KIND_I128:
        len = value_format_dec(value->i128, 0, buf);
        break;
    case KIND_F32:
        len = value_format_f32(value->f32, buf);
        break;
    case KIND_F64:
        len = value_format_f64(value->f64, buf);
        break;
    case KIND_COUNT:
        break;
    }
    add(out, "%.*s", len, buf);
}

static void add_var(struct piece *out, const struct program *program, u32 var) {
    add(out, "v%u", var);
    if (var < program->var_count && program->vars[var].name) {
        add(out, " %s", program->vars[var].name);
    }
}

static void add_reg(struct piece *out, const struct pipeline *pipe, u32 reg) {
    add(out, "r%u:%s", reg,
        reg < pipe->reg_count && pipe->regs[reg].kind < KIND_COUNT
            ? kind_names[pipe->regs[reg].kind]
            : "?");
}

/* What LOAD's operand names: the source's own column number. */
static u32 source_col(const struct pipeline *pipe, u32 imm) {
    return imm < pipe->source.col_count ? pipe->source.cols[imm] : imm;
}

static void add_operand(struct piece *out, const struct program *program,
                        const struct pipeline *pipe, const struct op *op, enum operand which) {
    u32 value = op_field(op, which);
    switch ((enum role)op_infos[op->code].roles[which]) {
    case ROLE_words:
        add(out, "r%u .. r%u", value, value + op->b - 1);
        break;
    case ROLE_literal:
        add_literal(out, program, value);
        break;
    case ROLE_column:
        add(out, "%u", source_col(pipe, value));
        break;
    case ROLE_rows:
    case ROLE_index:
    case ROLE_table:
    case ROLE_interner:
        add(out, "v%u", value);
        break;
    case ROLE_sink:
        add(out, "sink %u", value);
        break;
    case ROLE_match_flags:
        add(out, "%s%s", probe_flags(op) & PROBE_OUTER ? ", outer" : "",
            probe_flags(op) & PROBE_SINGLE ? ", single" : "");
        break;
    case ROLE_intern_mode:
        add(out, "%s", value == INTERN_FIND ? ", find" : "");
        if (intern_keyed(op)) {
            add(out, ", %s by r%u", value == INTERN_LEAST ? "least" : "greatest", op->c);
        }
        break;
    case ROLE_find:
        add(out, "%s", value == 1 ? ", find" : "");
        break;
    case ROLE_var_column:
    case ROLE_half:
    case ROLE_count:
    case ROLE_number:
        add(out, "%u", value);
        break;
    default:
        add(out, "r%u", value);
        break;
    }
}

/* The text of a control opcode's operands, as op.def writes it. */
static void add_control(struct piece *out, const struct program *program,
                        const struct pipeline *pipe, const struct op *op) {
    static const struct {
        const char *name;
        enum operand which;
    } names[] = {{"$a", OPERAND_A}, {"$b", OPERAND_B}, {"$c", OPERAND_C}, {"$imm", OPERAND_IMM}};
    for (const char *p = op_infos[op->code].expr; *p;) {
        if (*p == '[' && (strchr(p, '$')[1] == 'c' ? op->c : op->b) == NO_REG) {
            p = strchr(p, ']');
        }
        if (*p == '[' || *p == ']') {
            p++;
            continue;
        }
        u32 n = 0;
        while (n < COUNT_OF(names) && strncmp(p, names[n].name, strlen(names[n].name)) != 0) {
            n++;
        }
        if (n < COUNT_OF(names)) {
            add_operand(out, program, pipe, op, names[n].which);
            p += strlen(names[n].name);
        } else {
            add(out, "%c", *p++);
        }
    }
}

/* Nothing when the range says no more than the kind. */
static void add_range(struct piece *out, const struct reg *reg) {
    const struct range *r = &reg->range;
    if (reg->dict) {
        add(out, "codes of d%u", reg->dict - 1);
        return;
    }
    switch ((enum kind)reg->kind) {
    case KIND_F32:
    case KIND_F64:
        if (!r->may_special) {
            char buf[64];
            i32 len = value_format_f64(r->abs_max, buf);
            add(out, "|x| <= %.*s, step 2^%d", len, buf, r->lsb);
        }
        return;
    case KIND_I32:
    case KIND_I64:
    case KIND_I128:
        break;
    default:
        return;
    }
    if (r->lo > r->hi) {
        add(out, "empty");
        return;
    }
    i128 lo = reg->kind == KIND_I32 ? I32_MIN : reg->kind == KIND_I64 ? (i128)I64_MIN : I128_MIN;
    i128 hi = -(lo + 1);
    if (r->lo > lo || r->hi < hi) {
        add_exact(out, r->lo);
        if (r->lo != r->hi) {
            add(out, " .. ");
            add_exact(out, r->hi);
        }
    }
}

static void print_op(struct text *out, const struct program *program, const struct pipeline *pipe,
                     u32 pc, i32 depth) {
    const struct op *op = &pipe->ops[pc];
    const struct op_info *info = op->code < OP_COUNT ? &op_infos[op->code] : NULL;
    struct piece name = {.len = 0}, result = {.len = 0}, operands = {.len = 0}, range = {.len = 0};
    add(&name, "%*s%s", depth * 2, "", info ? info->name : "?");
    bool writes = info && op_writes(op);
    if (writes) {
        add_reg(&result, pipe, op->dst);
        if (op->dst < pipe->reg_count && op->code != OP_CONST) {
            add_range(&range, &pipe->regs[op->dst]);
        }
    }
    if (info && info->flags & OP_CONTROL) {
        add_control(&operands, program, pipe, op);
    } else if (info) {
        const u16 regs[3] = {op->a, op->b, op->c};
        for (i32 i = 0; i < info->arity; i++) {
            add(&operands, "%sr%u", i ? ", " : "", regs[i]);
        }
    }
    struct piece line = {.len = 0};
    add(&line, "%5u  %-*s  %-*s%s  %-*s  %s", pc, NAME_WIDTH, name.text, RESULT_WIDTH, result.text,
        writes ? " =" : "  ", OPERAND_WIDTH, operands.text, range.text);
    while (line.len > 0 && line.text[line.len - 1] == ' ') {
        line.text[--line.len] = 0;
    }
    text_print(out, "    %s\n", line.text);
}

static void print_ops(struct text *out, const struct program *program,
                      const struct pipeline *pipe) {
    i32 depth = 0;
    for (u32 pc = 0; pc < pipe->op_count; pc++) {
        u16 code = pipe->ops[pc].code;
        u16 flags = code < OP_COUNT ? op_infos[code].flags : 0;
        depth -= (flags & OP_CLOSES) && depth > 0;
        print_op(out, program, pipe, pc, depth);
        depth += (flags & (OP_OPENS | OP_REPEATS)) != 0;
    }
}

static void print_source(struct text *out, const struct program *program,
                         const struct source *source) {
    struct piece p = {.len = 0};
    switch ((enum source_kind)source->kind) {
    case SOURCE_TABLE:
        add(&p, "table t%u", source->ref);
        break;
    case SOURCE_VAR:
        add_var(&p, program, source->ref);
        break;
    case SOURCE_ONE:
        add(&p, "one row");
        break;
    case SOURCE_DICT:
        add(&p, "dictionary d%u", source->ref);
        break;
    case SOURCE_SERIES:
        add(&p, "series of ");
        add_var(&p, program, source->ref);
        break;
    }
    for (u32 i = 0; i < source->col_count; i++) {
        add(&p, "%s%u",
            i                       ? ", "
            : source->col_count > 1 ? ", columns "
                                    : ", column ",
            source->cols[i]);
    }
    if (source->kind != SOURCE_ONE) {
        add(&p, " (about %lld rows)", source->rows);
    }
    text_print(out, "    source    %s\n", p.text);
}

static void add_prune(struct piece *p, const struct program *program, const struct prune *prune,
                      u32 col) {
    bool low = prune->lo_lit != NO_LIT, high = prune->hi_lit != NO_LIT;
    add(p, "column %u %s ", col,
        low && high ? "in"
        : low       ? ">="
                    : "<=");
    if (low) {
        add_literal(p, program, prune->lo_lit);
    }
    add(p, "%s", low && high ? " .. " : "");
    if (high) {
        add_literal(p, program, prune->hi_lit);
    }
}

static void print_prunes(struct text *out, const struct program *program,
                         const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->prune_count; i++) {
        struct piece p = {.len = 0};
        add_prune(&p, program, &pipe->prunes[i], source_col(pipe, pipe->prunes[i].col));
        text_print(out, "    prune     %s\n", p.text);
    }
}

static void print_keeps(struct text *out, const struct program *program, const struct sink *sink) {
    for (u32 i = 0; i < sink->keep_count; i++) {
        struct piece p = {.len = 0};
        add_prune(&p, program, &sink->keeps[i], sink->keeps[i].col);
        text_print(out, "%s%s%s", i ? ", " : "              of which matter ", p.text,
                   i + 1 < sink->keep_count ? "" : "\n");
    }
}

/* As many lines as the columns need: a sink may have a thousand. */
static void print_list(struct text *out, const struct piece *items, u32 count) {
    i64 at = 0;
    for (u32 i = 0; i < count; i++) {
        bool wrap = i == 0 || at + items[i].len > 84;
        text_print(out, "%s%s%s",
                   i == 0 ? ""
                   : wrap ? ",\n"
                          : ", ",
                   wrap ? "              " : "", items[i].text);
        at = wrap ? items[i].len : at + items[i].len + 2;
    }
    if (count) {
        text_print(out, "\n");
    }
}

static void print_sink(struct text *out, const struct program *program, const struct pipeline *pipe,
                       u32 number) {
    const struct sink *sink = &pipe->sinks[number];
    struct piece p = {.len = 0};
    static const char *const kinds[] = {"rows", "groups", "table", "marks"};
    add(&p, "%s into ", sink->kind <= SINK_MARK ? kinds[sink->kind] : "?");
    add_var(&p, program, sink->var);
    if (sink->append) {
        add(&p, ", appended");
    }
    if (sink->kind == SINK_ROWS && sink->set_var) {
        add(&p, ", new to ");
        add_var(&p, program, sink->set_var - 1);
        add(&p, " by ");
        add_reg(&p, pipe, sink->key);
        add(&p, " of %u bits", sink->key_bits);
        if (sink->word_count > 0) {
            add(&p, sink->words[0] == WORD_MIN ? ", or less by " : ", or greater by ");
            add_reg(&p, pipe, sink->word_regs[0]);
        }
    }
    if (sink->kind == SINK_MARK) {
        add(&p, " at row ");
        add_reg(&p, pipe, sink->key);
    }
    if (sink->kind == SINK_AGG && sink->key != NO_REG) {
        add(&p, " by ");
        add_reg(&p, pipe, sink->key);
        add(&p, " of %u bits%s", sink->key_bits, sink->in_runs ? ", in runs" : "");
    }
    if (sink->kind == SINK_AGG && sink->groups) {
        add(&p, " (about %lld groups)", sink->groups);
    }
    if (sink->kind == SINK_ROWS && sink->limit >= 0) {
        add(&p, ", first %lld", sink->limit);
    }
    if (sink->kind == SINK_ROWS && sink->top_key_count) {
        add(&p, ", of which the first %lld are sorted for", sink->top);
    }
    if (sink->kind == SINK_LUT && sink->null_var != NO_VAR) {
        add(&p, ", NULLs in v%u", sink->null_var);
    }
    if (sink->kind == SINK_LUT && sink->fault_var != NO_VAR) {
        add(&p, ", faults in v%u", sink->fault_var);
    }
    text_print(out, "    sink %-4u %s\n", number, p.text);
    u32 count = sink->kind == SINK_AGG ? sink->word_count : sink->col_count;
    struct piece *items = NEW_ARRAY(out->arena, struct piece, count + 1);
    for (u32 i = 0; i < count; i++) {
        if (sink->kind == SINK_AGG) {
            add(&items[i], "%s ", sink->words[i] < WORD_COUNT ? words[sink->words[i]] : "?");
            add_reg(&items[i], pipe, sink->word_regs[i]);
            continue;
        }
        char buf[32];
        add_reg(&items[i], pipe, sink->cols[i].reg);
        add(&items[i], " %s", type_print(sink->cols[i].type, buf));
        if (sink->cols[i].null_reg != NO_REG) {
            add(&items[i], " null r%u", sink->cols[i].null_reg);
        }
    }
    print_list(out, items, count);
    print_keeps(out, program, sink);
}

static void print_pipeline(struct text *out, const struct program *program,
                           const struct pipeline *pipe, bool with_opcodes) {
    print_source(out, program, &pipe->source);
    print_prunes(out, program, pipe);
    if (with_opcodes) {
        print_ops(out, program, pipe);
    } else {
        text_print(out, "    body      %u opcodes, %u registers\n", pipe->op_count,
                   pipe->reg_count);
    }
    for (u32 i = 0; i < pipe->sink_count; i++) {
        print_sink(out, program, pipe, i);
    }
    if (pipe->ends) {
        text_print(out, "    ends      %s\n", pipe->ends);
    }
}

void pipeline_print(struct text *out, const struct program *program, const struct pipeline *pipe) {
    print_pipeline(out, program, pipe, true);
}

static void add_fetch(struct piece *p, const struct program *program, const struct step *step) {
    const char *before = " ";
    add(p, "fetch     ");
    add_var(p, program, step->dst);
    add(p, " from ");
    add_var(p, program, step->src);
    add(p, " and, at the row in column %u, of table t%u: columns", step->col, step->table);
    for (u32 i = 0; i < program->vars[step->dst].col_count; i++) {
        if (step->fetches[i].from_table) {
            add(p, "%s%u", before, step->fetches[i].col);
            before = ", ";
        }
    }
}

static void add_limits(struct piece *p, const struct program *program, const struct step *step) {
    if (step->limit_lit != NO_LIT) {
        add(p, ", limit ");
        add_literal(p, program, step->limit_lit);
    } else if (step->limit >= 0) {
        add(p, ", limit %lld", step->limit);
    }
    if (step->offset_lit != NO_LIT) {
        add(p, ", offset ");
        add_literal(p, program, step->offset_lit);
    } else if (step->offset > 0) {
        add(p, ", offset %lld", step->offset);
    }
}

static void add_keys(struct piece *p, const struct sort_key *keys, u32 count, const char *first) {
    for (u32 i = 0; i < count; i++) {
        add(p, "%scolumn %u%s%s", i ? ", " : first, keys[i].col, keys[i].descending ? " desc" : "",
            keys[i].nulls_first ? " nulls first" : "");
    }
}

static void print_serial(struct text *out, struct piece *p, const struct window_fn *fn) {
    static const char *const roles[] = {"where", "value", "called"};
    add(p, "%s%s", fn->name ? " of " : "", fn->name ? fn->name : "");
    for (u32 a = 0; a < 3; a++) {
        if (fn->args[a] != NO_VAR) {
            add(p, ", %s column %u", roles[a], fn->args[a]);
        }
    }
    text_print(out, "              %s\n", p->text);
}

/* One line a function, below the step's own. */
static void print_windows(struct text *out, const struct step *step) {
    static const char *const funcs[] = {
#define X(A, name, text, fewest, most, doc) text,
        WF_WINDOWS(X, )
#undef X
    };
    static const char *const serials[] = {"nextval", "currval", "lastval", "setval"};
    static const char *const modes[] = {"rows", "range", "groups"};
    static const char *const bounds[] = {"unbounded preceding", "preceding", "current row",
                                         "following", "unbounded following"};
    for (u32 i = 0; i < step->window_count; i++) {
        const struct window_fn *fn = &step->windows[i];
        struct piece p = {.len = 0};
        add(&p, "%s",
            fn->form == WINDOW_FUNC     ? funcs[fn->func]
            : fn->form == WINDOW_WORD   ? words[fn->func]
            : fn->form == WINDOW_SERIAL ? serials[fn->func]
                                        : "string_agg");
        if (fn->form == WINDOW_SERIAL) {
            print_serial(out, &p, fn);
            continue;
        }
        for (u32 a = 0; a < 3 && fn->args[a] != NO_VAR; a++) {
            add(&p, "%scolumn %u", a ? ", " : " of ", fn->args[a]);
        }
        add(&p, ", %s %s to %s", modes[fn->mode], bounds[fn->from], bounds[fn->to]);
        text_print(out, "              %s\n", p.text);
    }
}

static void add_build(struct piece *p, const struct program *program, const struct step *step) {
    add(p, "build     ");
    add_var(p, program, step->dst);
    add(p, " over ");
    add_var(p, program, step->src);
    add(p, ", key column %u in ", step->col);
    add_exact(p, step->key_range.lo);
    add(p, " .. ");
    add_exact(p, step->key_range.hi);
    for (u32 i = step->field_count; i-- > 0;) {
        add(p, "%s%u", i + 1 == step->field_count ? ", packed of " : " + ", step->fields[i].bits);
    }
    add(p, step->field_count ? " bits" : "");
    add(p, step->grow ? ", of what is new" : "");
}

static void add_split(struct piece *p, const struct program *program, const struct step *step) {
    add(p, "split     ");
    add_var(p, program, step->src);
    add(p, " by column %u in ", step->col);
    add_exact(p, step->key_range.lo);
    add(p, " .. ");
    add_exact(p, step->key_range.hi);
    if (step->groups) {
        add(p, ", for groups");
    } else if (step->dst2 == NO_VAR) {
        add(p, ", for its index");
    } else {
        add(p, ", for ");
        add_var(p, program, step->dst2);
    }
}

static void add_cliques(struct piece *p, const struct program *program, const struct step *step) {
    add(p, "cliques   ");
    add_var(p, program, step->dst);
    add(p, " of %u nodes, edges ", step->col_count);
    add_var(p, program, step->src);
}

static void print_primitive(struct text *out, const struct program *program,
                            const struct step *step) {
    struct piece p = {.len = 0};
    switch ((enum step_kind)step->kind) {
    case STEP_BUILD:
        add_build(&p, program, step);
        break;
    case STEP_SORT:
        add(&p, "sort      ");
        add_var(&p, program, step->src);
        add_keys(&p, step->keys, step->key_count, " by ");
        if (step->limit >= 0) {
            add(&p, ", first %lld", step->limit);
        }
        break;
    case STEP_RANK:
        add(&p, "rank      dictionary d%u into v%u", step->dict, step->dst);
        if (step->dst2 != NO_VAR) {
            add(&p, ", back through v%u", step->dst2);
        }
        break;
    case STEP_LIMIT:
        add(&p, "limit     ");
        add_var(&p, program, step->dst);
        add(&p, " from ");
        add_var(&p, program, step->src);
        add_limits(&p, program, step);
        add(&p, step->shares ? ", shared" : "");
        break;
    case STEP_CLIQUES:
        add_cliques(&p, program, step);
        break;
    case STEP_FETCH:
        add_fetch(&p, program, step);
        break;
    case STEP_RESULT:
        add(&p, "result    ");
        add_var(&p, program, step->src);
        add(&p, ", %u column%s", step->col_count, step->col_count == 1 ? "" : "s");
        add_limits(&p, program, step);
        break;
    case STEP_WINDOW:
        add(&p, "window    ");
        add_var(&p, program, step->dst);
        add(&p, " over ");
        add_var(&p, program, step->src);
        add_keys(&p, step->keys, step->part_count, " partition ");
        add_keys(&p, step->keys + step->part_count, step->key_count - step->part_count, " order ");
        break;
    case STEP_FOLD: {
        static const char *const aggs[] = {
#define X(A, name, text, arguments, how, doc) text,
            WF_AGGS(X, )
#undef X
        };
        add(&p, "fold      ");
        add_var(&p, program, step->dst);
        add(&p, " from ");
        add_var(&p, program, step->src);
        add(&p, " by column %u: %s%s of column %u", step->col, aggs[step->fold],
            step->distinct ? " distinct" : "", step->args[0]);
        break;
    }
    case STEP_SPLIT:
        add_split(&p, program, step);
        break;
    case STEP_PIPELINE:
        break;
    }
    text_print(out, "    %s\n", p.text);
    print_windows(out, step);
}

static void print_var(struct text *out, const struct program *program, u32 number) {
    static const char *const kinds[] = {"rows", "groups", "index", "table", "interner", "set"};
    const struct var *var = &program->vars[number];
    struct piece p = {.len = 0};
    if (var->kind == VAR_ROWS || var->kind == VAR_AGG) {
        for (u32 i = 0; i < var->col_count; i++) {
            char buf[32];
            add(&p, "%s%s", i ? ", " : "",
                var->kind == VAR_ROWS && var->types ? type_print(var->types[i], buf)
                                                    : kind_names[var->kinds[i]]);
        }
    } else if (var->kind == VAR_INDEX) {
        add(&p, "into v%u%s", var->rows_var, var->set ? ", a set" : "");
    } else if (var->kind == VAR_LUT) {
        add(&p, "of %s", kind_names[var->lut_kind]);
    }
    text_print(out, "  v%-4u %-9s %-16s %s\n", number,
               var->kind <= VAR_SET ? kinds[var->kind] : "?", var->name ? var->name : "",
               p.text);
}

void program_print(struct text *out, const struct program *program, bool with_opcodes) {
    u32 number = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        if (program->block_count > 1) {
            text_print(out, "block %u\n", b);
        }
        for (u32 s = 0; s < block->step_count; s++, number++) {
            const struct step *step = &block->steps[s];
            text_print(out, "step %u  %s%s\n", number, step->label ? step->label : "",
                       step->defer ? "  (faults wait)" : "");
            if (step->kind == STEP_PIPELINE) {
                print_pipeline(out, program, step->pipeline, with_opcodes);
            } else {
                print_primitive(out, program, step);
            }
        }
        for (u32 i = 0; i < block->loop_count; i++) {
            text_print(out, "%sv%u", i ? " or " : "  while ", block->loop_vars[i].var);
        }
        if (block->loop_count) {
            text_print(out, " has new rows go to block %u\n", block->loop);
        }
    }
    if (program->var_count) {
        text_print(out, "variables\n");
    }
    for (u32 i = 0; i < program->var_count; i++) {
        print_var(out, program, i);
    }
}

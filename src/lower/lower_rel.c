/* lower_rel.c: operators to pipelines.
 *
 * lower_rel returns an open pipeline in which every output column of the operator is bound; what
 * follows is appended to it. A column is computed or loaded when it is first used, so columns
 * needed only behind a filter or a probe are loaded behind it; only expressions that might raise
 * are computed where their projection stands. Builds, aggregations, sorts and nested limits end a
 * pipeline in a variable and return a new one over it. Joins, unions, aggregates have files of
 * their own. */
#include "lower/lower_int.h"

#include "codes/control.h"

void bind_value(struct builder *b, u32 col, struct value v) {
    *bind_at(b, col) = (struct binding){.kind = BIND_VALUE, .value = v};
}

void bind_source(struct builder *b, u32 col, u32 var_col) {
    struct lower *l = b->l;
    if (l->status) {
        return;
    }
    const struct var *var = &l->vars.items[b->source.ref];
    const struct var_info *info = &l->var_infos.items[b->source.ref];
    *bind_at(b, col) = (struct binding){.kind = BIND_SOURCE,
                                        .reg_kind = var->kinds[var_col],
                                        .nullable = info->nullable[var_col],
                                        .col = build_source_col(b, var_col),
                                        .dict = var->dicts[var_col],
                                        .lazy = info->lazy ? info->lazy[var_col] : 0,
                                        .range = info->ranges[var_col]};
}

struct value lower_source_value(struct builder *b, u32 col) {
    struct lower *l = b->l;
    struct value v = {0, NO_REG};
    if (l->status) {
        return v;
    }
    const struct var *var = &l->vars.items[b->source.ref];
    const struct var_info *info = &l->var_infos.items[b->source.ref];
    struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    op.imm = build_source_col(b, col);
    v.reg = build_ctl(b, op, (enum kind)var->kinds[col], info->ranges[col], var->dicts[col]);
    if (info->nullable[col]) {
        op.code = OP_LOADN;
        v.null = build_ctl(b, op, KIND_B8, range_bool(), 0);
    }
    return v;
}

struct builder *lower_over(struct lower *l, u32 var, i64 rows) {
    i64 most = l->status ? 0 : l->var_infos.items[var].max_rows;
    return build_new(l, SOURCE_VAR, var, rows, most);
}

/* variables */

u16 lower_canonical(struct builder *b, struct value v, struct type type) {
    enum kind want = type_kind(type);
    enum kind have = reg_kind(b, v.reg);
    if (want == KIND_STR || have == want || b->l->status) {
        return v.reg;
    }
    if (have == KIND_F32 || have == KIND_F64) {
        return lower_cast(b, v, type_of(have == KIND_F32 ? TYPE_REAL : TYPE_DOUBLE), type).reg;
    }
    u16 reg = have > want ? lower_check(b, v.reg, v.null, type) : v.reg;
    return build_kind(b, reg, want);
}

u32 lower_rows_var(struct lower *l, const char *name, u32 count) {
    u32 number = lower_var(l, VAR_ROWS, name);
    struct var *var = &l->vars.items[number];
    struct var_info *info = &l->var_infos.items[number];
    var->col_count = count;
    var->types = NEW_ARRAY(l->arena, struct type, count);
    var->kinds = NEW_ARRAY(l->arena, u8, count);
    var->dicts = NEW_ARRAY(l->arena, u32, count);
    info->ranges = NEW_ARRAY(l->arena, struct range, count);
    info->nullable = NEW_ARRAY(l->arena, b8, count);
    info->lazy = NEW_ARRAY(l->arena, u32, count);
    return number;
}

u32 lower_rows(struct builder *b, const char *name, const struct out_col *cols, u32 count,
               bool canonical, i64 limit) {
    struct lower *l = b->l;
    u32 number = lower_rows_var(l, name, count);
    struct sink_col *out = NEW_ARRAY(l->arena, struct sink_col, count);
    struct var *var = &l->vars.items[number];
    struct var_info *info = &l->var_infos.items[number];
    info->max_rows = b->max_rows;
    var->rows = limit >= 0 && b->rows > limit ? limit : b->rows;
    var->in_order = b->source.kind == SOURCE_VAR && l->vars.items[b->source.ref].in_order;
    for (u32 i = 0; i < count && !l->status; i++) {
        struct value v = cols[i].value;
        v.reg = canonical ? lower_canonical(b, v, cols[i].type) : v.reg;
        if (l->status) {
            break;
        }
        var = &l->vars.items[number]; /* conversions may have added variables */
        info = &l->var_infos.items[number];
        v.null = build_is_bool(b, v.null, false) ? (u16)NO_REG : v.null;
        out[i] = (struct sink_col){
            .reg = v.reg, .null_reg = v.null, .type = cols[i].type, .dict = reg_dict(b, v.reg)};
        var->types[i] = cols[i].type;
        var->kinds[i] = b->regs.items[v.reg].kind;
        var->dicts[i] = out[i].dict;
        info->ranges[i] = reg_range(b, v.reg);
        info->nullable[i] = v.null != NO_REG;
        info->lazy[i] = cols[i].lazy;
    }
    struct sink sink = {.kind = SINK_ROWS,
                        .var = number,
                        .limit = limit,
                        .col_count = count,
                        .cols = out,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(b, sink);
    build_finish(b);
    return number;
}

/* scans */

static struct range whole_range(void) {
    struct range r = range_exact(I128_MIN, I128_MAX);
    r.abs_max = 1.7976931348623157e308;
    r.lsb = -1074;
    r.may_special = 1;
    return r;
}

/* Codes: the next power of two, so that a growing dictionary seldom breaks the guard. */
static struct range code_range(struct range range) {
    if (range.lo != 0 || range.hi < -1 || range.hi > I32_MAX) {
        return range_exact(0, I32_MAX); /* the length is not known */
    }
    range.hi = MAX_OF(range.hi, 1);
    return range_exact(0, ((i128)1 << key_bits_of(range)) - 1);
}

static struct range scan_range(const struct scan_col *scan, struct type type) {
    struct range r = scan->range;
    if (type_is_float(type)) {
        r.abs_max = r.abs_max >= 0 ? r.abs_max : 0;
        return range_float(r.abs_max, MIN_OF(r.lsb, 1023), r.may_special);
    }
    if (type.id == TYPE_BOOLEAN) {
        return range_bool();
    }
    return r.lo <= r.hi ? range_exact(r.lo, r.hi) : range_exact(0, 0);
}

static void bind_scan_col(struct builder *b, const struct scan_col *scan, u32 table,
                          struct guard *guard) {
    struct lower *l = b->l;
    struct type type = l->plan->cols.items[scan->col].type;
    struct binding bind = {.kind = BIND_SOURCE, .nullable = !scan->no_nulls};
    bind.col = build_source_col(b, scan->table_col);
    guard->range = whole_range();
    if (type_kind(type) == KIND_STR) {
        bind.reg_kind = scan->all_dict ? KIND_I32 : KIND_STR;
        bind.range = scan->all_dict ? code_range(scan->range) : range_none();
        if (scan->all_dict) {
            bind.dict = lower_dict(l, (struct dict_ref){table, scan->table_col, NO_VAR});
            guard->range = bind.range;
            guard->all_dict = 1;
        }
    } else {
        bind.range = scan_range(scan, type);
        if (bind.nullable && !type_is_float(type)) { /* plain segments hold 0 for NULL */
            bind.range = range_exact(MIN_OF(bind.range.lo, 0), MAX_OF(bind.range.hi, 0));
        }
        bool counted = type_kind(type) == KIND_F32 || type_kind(type) == KIND_F64 ||
                       type_kind(type) == KIND_B8;
        bind.reg_kind = (u8)(counted ? type_kind(type) : range_kind(bind.range));
        guard->range = bind.range;
    }
    *bind_at(b, scan->col) = bind;
}

/* The row's number, made where the rows are: behind a join it would be that of another row. */
static void bind_row_number(struct builder *b, const struct scan_col *scan) {
    struct op op = {.code = OP_ROWNO, .dst = NO_REG, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    struct range range = range_exact(0, (i128)1 << 52);
    bind_value(b, scan->col, (struct value){build_ctl_new(b, op, KIND_I64, range, 0), NO_REG});
}

static struct builder *lower_scan(struct lower *l, const struct rel *rel) {
    u32 table = lower_table(l, rel->scan.table_id);
    i64 most = (i64)1 << 20;
    i64 known = rel->scan.rows_most ? rel->scan.rows_most : rel->scan.table_rows * 2;
    while (most < known) {
        most *= 2;
    }
    struct builder *b = build_new(l, SOURCE_TABLE, table, rel->scan.table_rows, most);
    b->source_position = rel->position;
    if (l->numbers_rows &&
        !rel->scan.rows_most) { /* here, as behind a join it would be that of another row */
        struct op op = {.code = OP_ROWNO, .dst = NO_REG, .a = NO_REG, .b = NO_REG, .c = NO_REG};
        b->row_number = build_ctl_new(b, op, KIND_I64, range_exact(0, (i128)1 << 52), 0) + 1u;
    }
    i64 before = l->guards.count;
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        const struct scan_col *scan = &rel->scan.cols.items[i];
        if (scan->table_col == ROWID_COL) {
            bind_row_number(b, scan);
            continue;
        }
        struct guard guard = {.table = table,
                              .col = scan->table_col,
                              .no_nulls = scan->no_nulls,
                              .unique = scan->unique,
                              .max_rows = most};
        bind_scan_col(b, scan, table, &guard);
        VEC_PUSH(l->arena, &l->guards, guard);
    }
    if (l->guards.count == before) {
        struct guard guard = {.table = table, .range = whole_range(), .max_rows = most};
        VEC_PUSH(l->arena, &l->guards, guard);
    }
    return b;
}

/* projections */

void lower_project(struct builder *b, const struct rel *rel) {
    for (i64 i = 0; i < rel->project.exprs.count && !b->l->status; i++) {
        const struct expr *expr = rel->project.exprs.items[i];
        u32 col = rel->out.items[i];
        if (expr->kind == EXPR_COL) {
            *bind_at(b, col) = *bind_at(b, expr->col);
        } else if (expr_can_raise(expr)) {
            bind_value(b, col, lower_expr(b, expr));
        } else {
            *bind_at(b, col) = (struct binding){.kind = BIND_EXPR, .expr = expr};
        }
    }
}

struct builder *lower_rel(struct lower *l, const struct rel *rel) {
    struct builder *b;
    switch (rel->kind) {
    case REL_SCAN:
        b = lower_scan(l, rel);
        break;
    case REL_VALUES:
        b = lower_values(l, rel);
        break;
    case REL_FILTER:
        b = lower_rel(l, rel_input(rel));
        lower_filter(b, rel->filter.conds.items, rel->filter.conds.count);
        b->filtered = rel->filter.conds.count && !build_looks_up(b) ? rel->rows : b->filtered;
        break;
    case REL_PROJECT:
        b = lower_rel(l, rel_input(rel));
        lower_project(b, rel);
        break;
    case REL_JOIN:
        b = rel->join.meets ? lower_meet(l, rel) : lower_join(l, rel);
        break;
    case REL_AGG:
        b = lower_agg(l, rel);
        break;
    case REL_SORT:
        b = lower_sort(l, rel);
        break;
    case REL_UNION:
        b = lower_union(l, rel);
        break;
    case REL_WINDOW:
        b = lower_window(l, rel);
        break;
    case REL_SHARED:
        b = lower_shared(l, rel);
        break;
    case REL_FUNC:
        b = lower_table_func(l, rel);
        break;
    case REL_FIX:
        b = lower_fix(l, rel);
        break;
    case REL_WORK:
        b = lower_work(l, rel);
        break;
    case REL_CLIQUES:
        b = lower_cliques(l, rel);
        break;
    case REL_LIMIT:
        b = lower_limit(l, rel);
        break;
    default:
        lower_fail(l, ERR_INTERNAL, rel->position, "lowering: no operator %d", (int)rel->kind);
        b = build_new(l, SOURCE_ONE, 0, 1, 1);
        break;
    }
    b->rows = rel->rows;
    build_label(b, rel_names[rel->kind]);
    build_row_mark(b, rel);
    struct boundary boundary = {rel, (u32)b->marks.count - 1};
    VEC_PUSH(l->arena, &b->boundaries, boundary);
    return !l->status && weave_cuts_after(l, rel) ? weave_cut(b, rel) : b;
}

/* the root */

struct top { /* the operators that shape the answer, from the root down */
    const struct rel *limit;
    const struct rel *sort;
    const struct rel *input;
    VEC(const struct rel *) projects;
};

static bool project_raises(const struct rel *rel) {
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        if (expr_can_raise(rel->project.exprs.items[i])) {
            return true;
        }
    }
    return false;
}

static bool is_limited(const struct rel *rel) {
    while (rel->kind == REL_PROJECT || (rel->kind == REL_FILTER && rel->filter.conds.count == 0)) {
        rel = rel_input(rel);
    }
    return rel->kind == REL_LIMIT;
}

/* Projections above the sort and limit are computed before them, in the pipeline that ends in the
 * answer, unless that could raise for rows that the limit drops. */
static void find_top(struct lower *l, struct top *top) {
    const struct rel *rel = l->plan->root;
    while (!top->sort) {
        bool empty = rel->kind == REL_FILTER && rel->filter.conds.count == 0;
        bool plain =
            rel->kind == REL_PROJECT && (top->limit || !project_raises(rel) || !is_limited(rel));
        if (rel->kind == REL_LIMIT && !top->limit) {
            top->limit = rel;
        } else if (rel->kind == REL_SORT) {
            top->sort = rel;
        } else if (plain) {
            VEC_PUSH(l->arena, &top->projects, rel);
        } else if (!empty) {
            break;
        }
        rel = rel_input(rel);
    }
    top->input = rel;
}

/* The optimiser made use of it, whether or not the column is still read. */
static void guard_relied(struct lower *l) {
    for (i64 i = 0; i < l->plan->relied.count; i++) {
        const struct relied *relied = &l->plan->relied.items[i];
        struct guard guard = {.table = lower_table(l, relied->table_id),
                              .col = relied->table_col,
                              .range = whole_range(),
                              .no_nulls = relied->no_nulls,
                              .unique = relied->unique};
        VEC_PUSH(l->arena, &l->guards, guard);
    }
}

void lower_root(struct lower *l) {
    struct top top = {0};
    guard_relied(l);
    find_top(l, &top);
    shared_count(l, l->plan->root);
    if (!top.sort && top.input->kind == REL_UNION && !weave_cuts_after(l, top.input)) {
        u32 var = union_answer(l, top.input, top.projects.items, top.projects.count, top.limit);
        if (!l->status) {
            order_answer(l, var, l->plan->root->out.count, top.limit);
        }
        return;
    }
    l->numbers_rows = order_may_fetch(l, top.sort, top.limit);
    struct builder *b = lower_rel(l, top.input);
    for (i64 i = top.projects.count; i-- > 0 && !l->status;) {
        lower_project(b, top.projects.items[i]);
        build_label(b, rel_names[REL_PROJECT]);
        if (!top.limit) { /* its rows are the limit's then, which come later */
            build_row_mark(b, top.projects.items[i]);
        }
    }
    if (!l->status) {
        order_result(b, l->plan->root->out.items, l->plan->root->out.count, top.sort, top.limit);
    }
}

/* union.c: operators whose rows come from elsewhere: unions, shared subplans, table functions.
 *
 * The branches of a union, however nested, are pipelines that append to one variable. A column is
 * made alike in all of them: the widest kind; codes where all branches have the same dictionary,
 * or, when every branch has one, codes of a new dictionary; else text. NULL takes whatever form the
 * others have. Where the union is the answer, its branches write that, without another pass over
 * their rows. A shared subplan is computed into a variable at its first use when it has several.
 */
#include "lower/agg_int.h"

struct form { /* what a column becomes */
    enum kind kind;
    u32 dict;
    u32 interner; /* + 1: numbers the texts of several dictionaries */
    bool known;
};

static void widen_form(struct builder *b, struct value v, struct form *f, bool *apart) {
    enum kind kind = reg_kind(b, v.reg);
    u32 dict = reg_dict(b, v.reg);
    if (!f->known) {
        *f = (struct form){kind, dict, 0, true};
        return;
    }
    if (kind == KIND_STR || f->kind == KIND_STR) {
        f->kind = KIND_STR;
        f->dict = 0;
        return;
    }
    *apart = *apart || dict != f->dict;
    f->kind = kind_wider(f->kind, kind);
}

static struct form form_of(struct lower *l, struct builder *const *bs, struct out_col *const *cols,
                           i64 count, u32 col) {
    struct form f = {.known = false};
    bool apart = false;
    for (i64 i = 0; i < count; i++) {
        if (!value_is_null(bs[i], cols[i][col].value)) {
            widen_form(bs[i], cols[i][col].value, &f, &apart);
        }
    }
    if (!f.known) {
        f.kind = type_kind(cols[0][col].type);
    }
    if (f.kind != KIND_STR && apart) {
        f.interner = lower_var(l, VAR_INTERN, "strings") + 1;
        f.dict = lower_dict(l, (struct dict_ref){NO_VAR, 0, f.interner - 1});
    }
    return f;
}

static u16 shape(struct builder *b, struct value v, const struct form *f) {
    if (value_is_null(b, v) && f->kind != KIND_STR && f->kind != reg_kind(b, v.reg)) {
        union lit zero;
        memset(&zero, 0, sizeof zero);
        return build_lit(b, f->kind, zero, range_none());
    }
    if (f->kind == KIND_STR) {
        return string_view(b, v.reg);
    }
    if (f->interner && !value_is_null(b, v)) {
        return string_intern(b, v.reg, f->interner - 1, false);
    }
    return build_kind(b, v.reg, f->kind);
}

/* The columns of one pipeline, made alike. Steps they need stand before all of the pipelines, which
 * follow each other then: an answer can be computed from one after the other as it is read. */
static struct sink_col *shape_cols(struct lower *l, struct builder *b, const struct out_col *cols,
                                   const struct form *forms, u32 col_count) {
    struct sink_col *out = NEW_ARRAY(l->arena, struct sink_col, col_count);
    for (u32 c = 0; c < col_count && !l->status; c++) {
        struct value v = cols[c].value;
        u16 reg = shape(b, v, &forms[c]);
        u16 null = build_is_bool(b, v.null, false) ? (u16)NO_REG : v.null;
        out[c] = (struct sink_col){
            .reg = reg, .null_reg = null, .type = cols[c].type, .dict = forms[c].dict};
    }
    return out;
}

static void append_rows(struct lower *l, struct builder *b, struct sink_col *cols, u32 var,
                        u32 col_count, bool first) {
    struct var_info *info = &l->var_infos.items[var];
    for (u32 c = 0; c < col_count; c++) {
        struct range range = reg_range(b, cols[c].reg);
        info->ranges[c] = first ? range : range_union(info->ranges[c], range);
        info->nullable[c] = info->nullable[c] || cols[c].null_reg != NO_REG;
    }
    info->max_rows = MIN_OF(info->max_rows + b->max_rows, (i64)1 << 60);
    struct sink sink = {.kind = SINK_ROWS,
                        .var = var,
                        .limit = -1,
                        .append = !first,
                        .col_count = col_count,
                        .cols = cols,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(b, sink);
    build_finish(b);
}

u32 union_rows(struct lower *l, struct builder *const *bs, struct out_col *const *cols, i64 count,
               u32 col_count) {
    struct form *forms = NEW_ARRAY(l->arena, struct form, col_count + 1);
    u32 width = MAX_OF(col_count, 1);
    if (l->status) {
        return 0;
    }
    for (u32 c = 0; c < col_count; c++) {
        forms[c] = form_of(l, bs, cols, count, c);
    }
    if (col_count == 0) { /* rows without columns get one to be counted by */
        forms[0] = (struct form){KIND_B8, 0, 0, true};
        for (i64 i = 0; i < count; i++) {
            cols[i][0].value = (struct value){build_bool(bs[i], false), NO_REG};
            cols[i][0].type = type_of(TYPE_BOOLEAN);
        }
    }
    u32 var = lower_rows_var(l, "union", width);
    for (u32 c = 0; c < width; c++) {
        struct var *def = &l->vars.items[var];
        def->types[c] = cols[0][c].type;
        def->kinds[c] = (u8)forms[c].kind;
        def->dicts[c] = forms[c].dict;
    }
    struct sink_col **shaped = NEW_ARRAY(l->arena, struct sink_col *, count);
    for (i64 i = 0; i < count; i++) {
        shaped[i] = shape_cols(l, bs[i], cols[i], forms, width);
    }
    for (i64 i = 0; i < count && !l->status; i++) {
        append_rows(l, bs[i], shaped[i], var, width, i == 0);
    }
    return var;
}

/* unions */

struct branch {
    const struct rel *rel;
    const u32 *cols; /* its column for every output column */
};

struct branches {
    VEC(struct branch) items;
};

static u32 col_below(const struct rel *rel, u32 col, const u32 *below) {
    for (i64 i = 0; i < rel->out.count; i++) {
        if (rel->out.items[i] == col) {
            return below[i];
        }
    }
    return col;
}

/* Unions below unions, as far as nothing else must happen between them. */
static void find_branches(struct lower *l, const struct rel *rel, const u32 *cols, i64 count,
                          struct branches *out) {
    if (rel->kind != REL_UNION || weave_cuts_after(l, rel)) {
        struct branch branch = {rel, cols};
        VEC_PUSH(l->arena, &out->items, branch);
        return;
    }
    for (i32 side = 0; side < rel->input_count; side++) {
        const u32 *from = rel->arms.cols[side].items;
        u32 *below = NEW_ARRAY(l->arena, u32, count + 1);
        for (i64 i = 0; i < count; i++) {
            below[i] = col_below(rel, cols[i], from);
        }
        find_branches(l, rel->inputs[side], below, count, out);
    }
}

static struct branches branches_of(struct lower *l, const struct rel *rel) {
    struct branches list = {0};
    for (i32 side = 0; side < rel->input_count; side++) {
        const u32 *cols = rel->arms.cols[side].items;
        find_branches(l, rel->inputs[side], cols, rel->out.count, &list);
    }
    return list;
}

struct builder *lower_union(struct lower *l, const struct rel *rel) {
    struct branches list = branches_of(l, rel);
    i64 width = rel->out.count;
    i64 count = list.items.count;
    struct builder **bs = NEW_ARRAY(l->arena, struct builder *, count);
    struct out_col **cols = NEW_ARRAY(l->arena, struct out_col *, count);
    for (i64 i = 0; i < count && !l->status; i++) {
        const struct branch *branch = &list.items.items[i];
        bs[i] = lower_rel(l, branch->rel);
        cols[i] = NEW_ARRAY(l->arena, struct out_col, width + 1);
        for (i64 c = 0; c < width && !l->status; c++) {
            cols[i][c].value = lower_col(bs[i], branch->cols[c]);
            cols[i][c].type = l->plan->cols.items[rel->out.items[c]].type;
        }
        build_label(bs[i], rel_names[REL_UNION]);
    }
    u32 var = union_rows(l, bs, cols, count, (u32)width);
    struct builder *b = lower_over(l, var, rel->rows);
    for (i64 c = 0; c < width && !l->status; c++) {
        bind_source(b, rel->out.items[c], (u32)c);
    }
    return b;
}

u32 union_answer(struct lower *l, const struct rel *rel, const struct rel *const *projects,
                 i64 project_count, bool limited) {
    struct branches list = branches_of(l, rel);
    const struct rel *root = l->plan->root;
    i64 count = list.items.count;
    struct builder **bs = NEW_ARRAY(l->arena, struct builder *, count);
    struct out_col **cols = NEW_ARRAY(l->arena, struct out_col *, count);
    u32 col_count = 0;
    for (i64 i = 0; i < count && !l->status; i++) {
        const struct branch *branch = &list.items.items[i];
        struct builder *b = bs[i] = lower_rel(l, branch->rel);
        for (i64 c = 0; c < rel->out.count && !l->status; c++) {
            bind_value(b, rel->out.items[c], lower_col(b, branch->cols[c]));
        }
        build_label(b, rel_names[REL_UNION]);
        build_row_mark(b, rel);
        for (i64 p = project_count; p-- > 0 && !l->status;) {
            lower_project(b, projects[p]);
            build_label(b, rel_names[REL_PROJECT]);
            if (!limited) {
                build_row_mark(b, projects[p]);
            }
        }
        cols[i] = order_cols(b, root->out.items, root->out.count, 0, true, &col_count);
        for (u32 c = 0; c < col_count && !l->status; c++) {
            cols[i][c].value.reg = lower_canonical(b, cols[i][c].value, cols[i][c].type);
        }
    }
    return union_rows(l, bs, cols, count, col_count);
}

/* shared subplans */

struct shared *shared_find(struct lower *l, const struct rel *input) {
    for (i64 i = 0; i < l->shared.count; i++) {
        if (l->shared.items[i].input == input) {
            return &l->shared.items[i];
        }
    }
    return NULL;
}

static void count_use(struct rel *rel, void *arg) {
    struct lower *l = arg;
    struct shared *known = rel_shares(rel) ? shared_find(l, rel_input(rel)) : NULL;
    if (known) {
        known->uses++;
    } else if (rel_shares(rel)) {
        struct shared shared = {.input = rel_input(rel), .uses = 1};
        VEC_PUSH(l->arena, &l->shared, shared);
    }
}

static void set_apart(struct rel *rel, void *arg) {
    if (rel_shares(rel)) {
        shared_find(arg, rel_input(rel))->apart = true;
    }
}

/* Who aggregates a shared input, and who may run later, several times, or not at all. */
static void note_user(struct rel *rel, void *arg) {
    struct lower *l = arg;
    const struct rel *below = rel->kind == REL_AGG ? rel_input(rel) : rel;
    while (below->kind == REL_PROJECT) {
        below = rel_input(below);
    }
    if (rel->kind == REL_AGG && rel_shares(below) && rel_input(below)->kind != REL_FIX &&
        agg_is_plain(rel)) {
        struct shared *shared = shared_find(l, rel_input(below));
        VEC_PUSH(l->arena, &shared->aggs, (const struct rel *)rel);
    } else if (rel->kind == REL_JOIN && rel->join.lazy) {
        rel_each(l->arena, rel_right(rel), set_apart, l);
    } else if (rel->kind == REL_FIX) {
        rel_each(l->arena, rel, set_apart, l);
    }
}

void shared_count(struct lower *l, struct rel *rel) {
    rel_each(l->arena, rel, count_use, l);
    if (l->shared.count) {
        rel_each(l->arena, rel, note_user, l);
    }
}

static u32 shared_rows(struct lower *l, const struct rel *input) {
    b8 before = l->unordered;
    l->unordered = 0; /* another user may look */
    struct builder *b = lower_rel(l, input);
    l->unordered = before;
    i64 count = input->out.count;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count + 1);
    for (i64 i = 0; i < count && !l->status; i++) {
        cols[i] = lower_carry(b, input->out.items[i]);
    }
    if (count == 0) {
        cols[0].value = (struct value){build_bool(b, false), NO_REG};
        cols[0].type = type_of(TYPE_BOOLEAN);
    }
    build_label(b, rel_names[REL_SHARED]);
    u32 var = l->status ? 0 : lower_rows(b, "shared", cols, (u32)MAX_OF(count, 1), false, -1);
    if (!l->status && fix_is_open(l)) { /* rounds make it for several rules */
        l->vars.items[var].relation = "shared";
    }
    return var;
}

void shared_make(struct lower *l, const struct rel *input, i64 uses) {
    struct shared *shared = shared_find(l, input);
    if (shared && shared->uses > uses && input->kind == REL_FIX) {
        fix_before(l, input);
    } else if (shared && !shared->made && shared->uses > uses) {
        u32 var = shared_rows(l, input);
        shared = shared_find(l, input); /* more of them may have come */
        shared->var = var;
        shared->made = true;
    }
}

static u32 position_in(const struct rel *rel, u32 col) {
    u32 at = 0;
    while (at < (u32)rel->out.count && rel->out.items[at] != col) {
        at++;
    }
    return at;
}

void shared_bind(struct builder *b, const struct rel *rel, bool read) {
    struct lower *l = b->l;
    const struct rel *input = rel_input(rel);
    for (i64 i = 0; i < rel->out.count && !l->status; i++) {
        u32 at = position_in(input, rel->shared.cols->items[i]);
        if (!read) {
            *bind_at(b, rel->out.items[i]) = *bind_at(b, rel->shared.cols->items[i]);
        } else if (at < (u32)input->out.count) {
            bind_source(b, rel->out.items[i], at);
        } else {
            lower_fail(l, ERR_INTERNAL, -1, "lowering: a shared subplan lacks a column");
        }
    }
}

struct builder *lower_shared(struct lower *l, const struct rel *rel) {
    const struct rel *input = rel_input(rel);
    if (input->kind == REL_FIX) { /* its rows are in variables anyway */
        return fix_relation_rows(l, rel);
    }
    const struct shared *shared = shared_find(l, input);
    bool read = shared && shared->uses > 1;
    if (read) {
        shared_make(l, input, 1);
    }
    struct builder *b =
        read ? lower_over(l, shared_find(l, input)->var, input->rows) : lower_rel(l, input);
    shared_bind(b, rel, read);
    return b;
}

/* table functions: generate_series is a source of its own, where its elements are evenly apart;
 * timestamps count microseconds, and so does their step */

struct builder *lower_table_func(struct lower *l, const struct rel *rel) {
    struct builder *one = build_new(l, SOURCE_ONE, 0, 1, 1);
    struct type type = rel->func.args.items[0]->type; /* the column's, which may have been pruned */
    bool moments = type.id == TYPE_TIMESTAMP || type.id == TYPE_TIMESTAMPTZ;
    if (!moments && !type_is_exact(type)) {
        lower_fail(l, ERR_NOT_SUPPORTED, rel->position,
                   "generate_series of this type is not supported");
        return one;
    }
    i32 scale = type.id == TYPE_DECIMAL ? type.scale : 0;
    struct out_col cols[3];
    for (i32 i = 0; i < 3; i++) {
        struct value v = {build_int(one, KIND_I64, (i64)pow10_i128(scale)), NO_REG};
        if (i < rel->func.args.count) {
            const struct expr *expr = rel->func.args.items[i];
            v = lower_expr(one, expr);
            v = moments ? v : lower_cast(one, v, expr->type, type);
        }
        if (l->status) {
            return one;
        }
        if (reg_kind(one, v.reg) == KIND_I128) {
            v.reg = lower_check(one, v.reg, v.null, type_of(TYPE_BIGINT));
        }
        v.reg = build_kind(one, v.reg, KIND_I64);
        cols[i] = (struct out_col){.value = v, .type = type_of(TYPE_BIGINT)};
    }
    build_label(one, rel_names[REL_FUNC]);
    u32 bounds = lower_rows(one, "bounds", cols, 3, false, -1);
    struct builder *b = build_new(l, SOURCE_SERIES, bounds, rel->rows, (i64)1 << 60);
    if (rel->out.count > 0 && !l->status) {
        struct range range = range_cut(range_of_type(type), range_exact(I64_MIN, I64_MAX));
        *bind_at(b, rel->out.items[0]) = (struct binding){.kind = BIND_SOURCE,
                                                          .reg_kind = KIND_I64,
                                                          .col = build_source_col(b, 0),
                                                          .range = range};
    }
    return b;
}

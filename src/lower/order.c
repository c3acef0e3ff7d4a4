/* order.c: sorting, limits and the answer.
 *
 * A sort ends the pipeline in a variable that holds the output columns first and the sort keys
 * behind them, and orders it in place. The answer is that variable's first columns, from OFFSET on,
 * LIMIT rows. A sort in the middle of a plan matters only below a limit and is dropped otherwise.
 * Sorted text stays as codes: the sort knows the dictionaries.
 *
 * Where the pipeline reads a table and many rows are sorted, columns of that table that are no sort
 * keys stay there. The variable holds the rows' numbers instead. A fetch behind the sort reads the
 * columns in the order of the answer, as it is asked for. */
#include "lower/lower_int.h"

#include "codes/scalar.h"

enum {
    FETCH_ROWS_MIN =
        1 << 16,         /* of a limit: fewer rows are cut down before their columns are read */
    FETCH_BYTES_MIN = 20 /* of a row: less, which a single text is, is carried along */
};

/* A bound of LIMIT: a number, or a literal for a parameter. */
static i64 bound_of(struct lower *l, const struct expr *expr, bool is_limit, u32 *out_lit) {
    *out_lit = NO_LIT;
    if (!expr || (expr->kind == EXPR_CONST && expr->is_null)) {
        return is_limit ? -1 : 0;
    }
    if (expr->kind == EXPR_PARAM) {
        *out_lit = lower_param_lit(l, expr->param);
        lower_param_null_lit(l, expr->param);
        return is_limit ? -1 : 0;
    }
    if (expr->value.i64 < 0) {
        lower_fail(l, is_limit ? ERR_INVALID_LIMIT : ERR_INVALID_OFFSET, expr->position,
                   "%s must not be negative", is_limit ? "LIMIT" : "OFFSET");
    }
    return expr->value.i64;
}

static void set_bounds(struct lower *l, struct step *step, const struct rel *limit) {
    if (limit) {
        step->limit = bound_of(l, limit->limit.count, true, &step->limit_lit);
        step->offset = bound_of(l, limit->limit.offset, false, &step->offset_lit);
    }
}

/* Rows that can matter, or -1 when that is not a constant. */
static i64 first_rows(struct lower *l, const struct rel *limit) {
    struct step probe = {.limit = -1, .limit_lit = NO_LIT, .offset_lit = NO_LIT};
    set_bounds(l, &probe, limit);
    bool known = probe.limit >= 0 && probe.limit_lit == NO_LIT && probe.offset_lit == NO_LIT;
    bool small = known && probe.limit <= I64_MAX - probe.offset;
    return small ? probe.limit + probe.offset : -1;
}

static u32 find_col(const struct out_col *cols, u32 count, struct value v) {
    for (u32 i = 0; i < count; i++) {
        if (cols[i].value.reg == v.reg && cols[i].value.null == v.null) {
            return i;
        }
    }
    return count;
}

/* Tells the sink that fills `var` which rows the sort behind it will keep. */
static void mark_top(struct lower *l, u32 var, struct sort_key *keys, u32 count, i64 limit) {
    struct step *last = l->steps.count ? &l->steps.items[l->steps.count - 1] : NULL;
    if (l->status || limit < 0 || !last || last->kind != STEP_PIPELINE) {
        return;
    }
    for (u32 s = 0; s < last->pipeline->sink_count; s++) {
        struct sink *sink = &last->pipeline->sinks[s];
        if (sink->kind == SINK_ROWS && sink->var == var) {
            sink->top_keys = keys;
            sink->top_key_count = count;
            sink->top = limit;
        }
    }
}

/* Ends b with columns `cols` (room for the keys behind them), sorted. Returns the variable. */
static u32 sorted_rows(struct builder *b, const char *name, struct out_col *cols, u32 count,
                       const struct rel *sort, bool canonical, i64 limit) {
    struct lower *l = b->l;
    if (!sort) {
        return lower_rows(b, name, cols, count, canonical, limit);
    }
    u32 wanted = count;
    u32 key_count = (u32)sort->sort.order.count;
    struct sort_key *keys = NEW_ARRAY(l->arena, struct sort_key, key_count);
    for (u32 i = 0; i < key_count && !l->status; i++) {
        const struct order_key *key = &sort->sort.order.items[i];
        struct value v = lower_expr(b, key->expr);
        v.reg = lower_order(b, v.reg, key->expr->type);
        u32 at = find_col(cols, count, v);
        keys[i] = (struct sort_key){at, key->descending, key->nulls_first};
        if (at == count) {
            cols[count].value = v;
            cols[count++].type =
                key->expr->type.id == TYPE_INTERVAL ? type_decimal(38, 0) : key->expr->type;
        }
    }
    ASSERT(l->status || count <= wanted + key_count); /* output columns first, keys behind them */
    build_label(b, rel_names[REL_SORT]);
    build_row_mark(b, sort);
    u32 var = lower_rows(b, name, cols, count, canonical, -1);
    mark_top(l, var, keys, key_count, limit);
    struct step *step = lower_step(l, STEP_SORT, "Sort");
    step->src = var;
    step->key_count = key_count;
    step->keys = keys;
    step->limit = limit;
    step->col_count = canonical ? wanted : 0; /* of an answer nobody reads the rest */
    return var;
}

/* char(n) as a client sees it: with blanks at its end. */
static struct value padded(struct builder *b, u32 col, struct type type) {
    struct arena *arena = b->l->arena;
    struct expr *args[2] = {expr_new(arena, EXPR_COL, type, -1),
                            expr_new(arena, EXPR_CONST, type_of(TYPE_INTEGER), -1)};
    args[0]->col = col;
    args[1]->value.i32 = (i32)type.length;
    return lower_expr(b, expr_call(arena, FUNC_PAD, type_of(TYPE_TEXT), -1, 2, args[0], args[1]));
}

struct out_col *order_cols(struct builder *b, const u32 *out, i64 count, i64 extra, bool last,
                           u32 *out_count) {
    struct lower *l = b->l;
    bool shown = last && l->plan->shown;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count + extra + 1);
    for (i64 i = 0; i < count && !l->status; i++) {
        struct type type = l->plan->cols.items[out[i]].type;
        bool pads = shown && type.id == TYPE_CHAR && type.length;
        if (!last) {
            cols[i] = lower_carry(b, out[i]);
            continue;
        }
        cols[i].type = type;
        cols[i].value = pads ? padded(b, out[i], type) : lower_col(b, out[i]);
    }
    *out_count = (u32)count;
    if (count == 0 && !l->status) {
        cols[0].value = (struct value){build_bool(b, false), NO_REG};
        cols[0].type = type_of(TYPE_BOOLEAN);
        *out_count = 1;
    }
    return cols;
}

bool order_may_fetch(struct lower *l, const struct rel *sort, const struct rel *limit) {
    i64 first = first_rows(l, limit);
    return sort && sort->sort.order.count > 0 && (first < 0 || first > FETCH_ROWS_MIN);
}

/* Whether a column of the answer is one of the pipeline's table and no sort key. */
static bool may_stay(const struct builder *b, u32 col, const struct rel *sort) {
    const struct binding *bind = bind_at(b, col);
    struct type type = b->l->plan->cols.items[col].type;
    if (bind->kind != BIND_SOURCE || bind->lazy ||
        (b->l->plan->shown && type.id == TYPE_CHAR && type.length)) {
        return false;
    }
    for (i64 i = 0; i < sort->sort.order.count; i++) {
        const struct expr *key = sort->sort.order.items[i].expr;
        const struct binding *other = key->kind == EXPR_COL ? bind_at(b, key->col) : NULL;
        if (other && other->kind == BIND_SOURCE && other->col == bind->col) {
            return false;
        }
    }
    return true;
}

/* Views of texts that are fetched keep the table's columns in memory, until the answer is read. */
static bool texts_fit(const struct builder *b, i64 columns) {
    enum { TEXT_BYTES = 24, MEMORY_SHARE = 4 }; /* a text with its offset; texts may take so much */
    i64 memory = b->l->limits->memory_bytes;
    return !memory || b->source.rows * columns * TEXT_BYTES <= memory / MEMORY_SHARE;
}

static bool worth_fetching(const struct builder *b, const u32 *out, i64 count,
                           const struct rel *sort) {
    i64 bytes = 0, texts = 0;
    for (i64 i = 0; i < count && b->row_number; i++) {
        if (may_stay(b, out[i], sort)) {
            const struct binding *bind = bind_at(b, out[i]);
            enum kind kind = type_kind(b->l->plan->cols.items[out[i]].type);
            bytes += kind_bytes[bind->dict ? KIND_I32 : kind];
            texts += !bind->dict && kind == KIND_STR;
        }
    }
    return bytes >= FETCH_BYTES_MIN && texts_fit(b, texts);
}

/* Column i of the answer as the table has it. */
static void describe_fetched(struct lower *l, u32 dst, u32 i, const struct binding *bind,
                             struct type type) {
    struct var *var = &l->vars.items[dst];
    struct var_info *info = &l->var_infos.items[dst];
    var->types[i] = type;
    var->kinds[i] = bind->dict ? KIND_I32 : (u8)type_kind(type);
    var->dicts[i] = bind->dict;
    info->ranges[i] = bind->range;
    info->nullable[i] = bind->nullable;
}

static void describe_carried(struct lower *l, u32 dst, u32 i, u32 src, u32 col) {
    struct var *var = &l->vars.items[dst];
    struct var_info *info = &l->var_infos.items[dst];
    var->types[i] = l->vars.items[src].types[col];
    var->kinds[i] = l->vars.items[src].kinds[col];
    var->dicts[i] = l->vars.items[src].dicts[col];
    info->ranges[i] = l->var_infos.items[src].ranges[col];
    info->nullable[i] = l->var_infos.items[src].nullable[col];
}

/* Sorts keys, row numbers and what cannot stay in the table, and fetches the rest. */
static u32 fetched_rows(struct builder *b, const u32 *out, i64 count, const struct rel *sort,
                        i64 limit) {
    struct lower *l = b->l;
    u32 *carried = NEW_ARRAY(l->arena, u32, count + 1);
    struct binding *binds = NEW_ARRAY(l->arena, struct binding, count + 1);
    struct fetched_col *fetches = NEW_ARRAY(l->arena, struct fetched_col, count + 1);
    i64 carried_count = 0;
    u32 table = b->source.ref;
    for (i64 i = 0; i < count; i++) {
        fetches[i].from_table = may_stay(b, out[i], sort);
        fetches[i].col =
            fetches[i].from_table ? b->cols.items[bind_at(b, out[i])->col] : (u32)carried_count;
        binds[i] = *bind_at(b, out[i]);
        carried[carried_count] = out[i];
        carried_count += !fetches[i].from_table;
    }
    struct out_col *cols =
        NEW_ARRAY(l->arena, struct out_col, carried_count + 2 + sort->sort.order.count);
    u32 at = 0;
    if (carried_count) {
        cols = order_cols(b, carried, carried_count, sort->sort.order.count + 1, true, &at);
    }
    cols[at].value = (struct value){(u16)(b->row_number - 1), NO_REG};
    cols[at++].type = type_of(TYPE_BIGINT);
    u32 src = sorted_rows(b, "sorted", cols, at, sort, true, limit);
    u32 dst = lower_rows_var(l, "result", (u32)count);
    for (u32 i = 0; i < (u32)count && !l->status; i++) {
        if (fetches[i].from_table) {
            describe_fetched(l, dst, i, &binds[i], l->plan->cols.items[out[i]].type);
        } else {
            describe_carried(l, dst, i, src, fetches[i].col);
        }
    }
    struct step *step = lower_step(l, STEP_FETCH, "Fetch");
    step->src = src;
    step->dst = dst;
    step->col = at - 1;
    step->table = table;
    step->fetches = fetches;
    return dst;
}

void order_result(struct builder *b, const u32 *out, i64 count, const struct rel *sort,
                  const struct rel *limit) {
    struct lower *l = b->l;
    u32 col_count;
    u32 var;
    if (order_may_fetch(l, sort, limit) && worth_fetching(b, out, count, sort)) {
        var = fetched_rows(b, out, count, sort, first_rows(l, limit));
    } else {
        struct out_col *cols =
            order_cols(b, out, count, sort ? sort->sort.order.count : 0, true, &col_count);
        var = sorted_rows(b, "result", cols, col_count, sort, true, first_rows(l, limit));
    }
    order_answer(l, var, count, limit);
}

void order_answer(struct lower *l, u32 var, i64 count, const struct rel *limit) {
    struct step *step = lower_step(l, STEP_RESULT, "Result");
    step->src = var;
    step->col_count = (u32)count;
    set_bounds(l, step, limit);
}

/* The rows of `input` (its sort carried out if it is one) in a variable. */
static u32 rows_of(struct lower *l, const struct rel *input, i64 limit) {
    const struct rel *sort = input->kind == REL_SORT ? input : NULL;
    struct builder *b = lower_rel(l, sort ? rel_input(sort) : input);
    u32 count;
    if (l->status) {
        return 0;
    }
    struct out_col *cols = order_cols(b, input->out.items, input->out.count,
                                      sort ? sort->sort.order.count : 0, false, &count);
    return sorted_rows(b, "rows", cols, count, sort, false, limit);
}

static struct builder *over_rows(struct lower *l, const struct rel *input, u32 var, i64 rows,
                                 bool sorted) {
    if (!l->status) {
        l->vars.items[var].in_order = l->drawing || (sorted && !l->unordered);
    }
    struct builder *b = lower_over(l, var, rows);
    for (i64 i = 0; i < input->out.count && !l->status; i++) {
        bind_source(b, input->out.items[i], (u32)i);
    }
    return b;
}

/* Rows stay in the order of an inner sort as far as somebody can see it: the answer, LIMIT, windows,
 * string_agg. */
struct builder *lower_sort(struct lower *l, const struct rel *rel) {
    return l->unordered && !l->drawing ? lower_rel(l, rel_input(rel))
                                       : over_rows(l, rel, rows_of(l, rel, -1), rel->rows, true);
}

struct builder *lower_limit(struct lower *l, const struct rel *rel) {
    const struct rel *input = rel_input(rel);
    b8 before = l->unordered;
    l->unordered = 0;
    u32 src = rows_of(l, input, first_rows(l, rel));
    l->unordered = before;
    bool sorted = input->kind == REL_SORT || (!l->status && l->vars.items[src].in_order);
    u32 dst = lower_var(l, VAR_ROWS, "limited");
    if (!l->status) {
        const char *name = l->vars.items[dst].name;
        l->vars.items[dst] = l->vars.items[src];
        l->vars.items[dst].name = name;
        l->var_infos.items[dst] = l->var_infos.items[src];
        struct step *step = lower_step(l, STEP_LIMIT, "Limit");
        step->src = src;
        step->dst = dst;
        step->col_count = l->vars.items[src].col_count;
        set_bounds(l, step, rel);
    }
    return over_rows(l, input, dst, rel->rows, sorted);
}

/* bind_serial.c: values of sequences: nextval, currval, lastval, setval, anywhere in an expression;
 * and pg_sleep, which is for a row what nextval is: something that happens.
 *
 * Part of binding. A call has effects that later ones see, so it is no opcode that runs in any
 * order. It becomes a column of a WINDOW operator below the one that computes the expression, where
 * it is drawn for the rows in their order; until that operator is built the call waits among the
 * subqueries (struct pending). In a branch that may not be taken it has the branch's condition.
 * As in PostgreSQL a select list draws after ORDER BY, unless that needs what is drawn, and for no
 * row that LIMIT leaves out.
 *
 * Where one row is computed once (SELECT without FROM, a row of VALUES) a call without a condition
 * is a parameter whose value is made when the statement starts (struct late). DEFAULT nextval('s')
 * of a table into which many rows go is faster still: see struct fill. */
#include "sql/ddl_int.h"
#include "codes/func.h"
#include "sql/select_int.h"

_Static_assert((i32)LATE_NEXTVAL == (i32)SERIAL_NEXT && (i32)LATE_CURRVAL == (i32)SERIAL_CURRENT &&
                   (i32)LATE_LASTVAL == (i32)SERIAL_LAST && (i32)LATE_SETVAL == (i32)SERIAL_SET &&
                   (i32)LATE_SLEEP == (i32)SERIAL_SLEEP,
               "calls of sequences have one number");

/* A definition means the sequence that the search path leads to when it is made. */
static void note_sequence(struct bind *b, i32 position, const struct object *sequence) {
    const struct edition_entry *schema = edition_find_oid(b->snap->edition, sequence->schema);
    struct text name, literal;
    if (b->parsed->prepared || position < 0 || sequence->temp || !schema) {
        return;
    }
    text_init(&name, b->arena);
    text_init(&literal, b->arena);
    ddl_print_name(&name, schema->object->name);
    text_print(&name, ".");
    ddl_print_name(&name, sequence->name);
    for (const char *at = name.ptr; at && *at; at++) {
        text_print(&literal, *at == '\'' ? "''" : "%c", *at);
    }
    VEC_PUSH(b->arena, &b->moments, ((struct moment){b->parsed, position, literal.ptr}));
}

/* The text behind casts: 's'::regclass. */
static FALLIBLE sequence_argument(struct bind *b, struct query *q, const struct json *node,
                                  struct window_call *call) {
    struct expr *arg = NULL;
    struct sv text;
    const char *name = serial_names[call->func];
    while (node_is(node, "TypeCast")) {
        node = json_get(node_body(node), "arg");
    }
    TRY(bind_expr(b, q, node, &arg));
    if (!literal_text(arg, &text)) {
        return unsupported(b, node_position(node), "%s of a sequence that is not constant", name);
    }
    const struct edition_entry *entry = NULL;
    TRY(bind_sequence_name(b, arena_sv(b->arena, text).ptr, node_position(node), &entry));
    call->sequence = entry->object->oid;
    call->sequence_name = keep(b, entry->object->name);
    note_sequence(b, arg->position, entry->object);
    return ERR_OK;
}

/* The value to set, and whether it was used. */
static FALLIBLE set_arguments(struct bind *b, struct query *q, const struct json *value,
                              struct window_call *call) {
    static const enum type_id types[] = {TYPE_BIGINT, TYPE_BOOLEAN};
    for (; value && call->arg_count < 2; value = value->next) {
        struct type type = type_of(types[call->arg_count]);
        struct expr *arg = NULL;
        TRY(bind_expr(b, q, value, &arg));
        TRY(coerce_unknown(b->t, arg, type, &arg));
        if (!coerce_allowed(arg->type, type, COERCE_IMPLICIT)) {
            char name[32];
            FAIL_AT(b->err, UNDEFINED_FUNCTION, call->position,
                    "function setval(unknown, %s) does not exist", type_print(arg->type, name));
        }
        TRY(coerce_to(b->t, arg, type, &call->args[call->arg_count]));
        call->arg_count++;
    }
    return ERR_OK;
}

static bool is_constant(const struct expr *expr) {
    return expr->kind == EXPR_CONST && !expr->is_null;
}

/* Whether a call can be made before the statement starts, where it is made once. */
static bool may_be_late(const struct window_call *call) {
    bool fine = !call->filter;
    for (i32 i = 0; i < call->arg_count; i++) {
        fine = fine && is_constant(call->args[i]);
    }
    return fine;
}

static struct expr *late_of(struct bind *b, const struct window_call *call) {
    struct late late = {
        .kind = call->func, .sequence = call->sequence, .name = call->sequence_name, .called = 1};
    if (call->func == SERIAL_SLEEP) {
        memcpy(&late.value, &call->args[0]->value.f64, sizeof late.value);
    } else if (call->arg_count > 0) {
        late.value = (i64)const_exact(call->args[0]);
    }
    if (call->arg_count > 1) {
        late.called = (b8)const_exact(call->args[1]);
    }
    return bind_late_param(b, &late, call->position);
}

struct expr *bind_serial_column(struct bind *b, pending_list *pending, struct window_call call) {
    struct pending p = {.serial = 1};
    const char *name = serial_names[call.func];
    bool nullable = call.func >= SERIAL_SET || call.filter;
    call.is_serial = 1;
    call.col = bind_col_new(b, NULL, name, type_of(TYPE_BIGINT), nullable);
    p.call = call;
    VEC_PUSH(b->arena, pending, p);
    b->serials = 1;
    return expr_col(b->plan, call.col, call.position);
}

static FALLIBLE serial_value(struct bind *b, struct query *q, struct window_call call,
                             struct expr **out) {
    bool effects = call.func == SERIAL_NEXT || call.func >= SERIAL_SET;
    if (q->subqueries_allowed && (effects || bind_has_effects(b))) {
        *out = bind_serial_column(b, &q->pending, call);
        return ERR_OK;
    }
    if (!may_be_late(&call) || (effects && q->scope && q->scope->rel)) {
        return unsupported(b, call.position, "%s here", serial_names[call.func]);
    }
    *out = late_of(b, &call);
    return ERR_OK;
}

FALLIBLE bind_serial_call(struct bind *b, struct query *q, u8 kind, const struct json *body,
                          struct expr **out) {
    const struct json *args = json_get(body, "args");
    struct window_call call = {.func = kind, .position = json_position(body)};
    if (kind != SERIAL_LAST) {
        TRY(sequence_argument(b, q, json_first(args), &call));
        TRY(set_arguments(b, q, json_first(args)->next, &call));
    }
    return serial_value(b, q, call, out);
}

/* pg_sleep(seconds): drawn like a sequence's number; what it gives is no text, or NULL for NULL. */
FALLIBLE bind_sleep(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    struct window_call call = {.func = SERIAL_SLEEP, .position = json_position(body)};
    struct type type = type_of(TYPE_DOUBLE);
    struct expr *arg = NULL, *drawn = NULL;
    TRY(bind_expr(b, q, json_first(json_get(body, "args")), &arg));
    TRY(coerce_unknown(b->t, arg, type, &arg));
    if (!coerce_allowed(arg->type, type, COERCE_IMPLICIT)) {
        return call_undefined(b->t, "pg_sleep", &arg, 1, call.position);
    }
    TRY(coerce_to(b->t, arg, type, &call.args[call.arg_count++]));
    TRY(serial_value(b, q, call, &drawn));
    struct expr *is_null = expr_many(b->t, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), -1, 1, &drawn);
    struct expr *branches[3] = {is_null, expr_null(b->t, type_of(TYPE_TEXT), -1),
                                expr_text(b->t, SV(""), -1)};
    *out = expr_many(b->t, EXPR_CASE, type_of(TYPE_TEXT), call.position, 3, branches);
    return ERR_OK;
}

FALLIBLE bind_next_value(struct bind *b, pending_list *pending, const struct column_def *col,
                         struct expr **out) {
    const struct edition_entry *entry = edition_find_oid(b->snap->edition, col->sequence);
    if (!entry || !entry->object->sequence) {
        FAIL(b->err, UNDEFINED_OBJECT, "the sequence of column \"%.100s\" is gone", col->name);
    }
    struct window_call call = {.func = SERIAL_NEXT,
                               .sequence = col->sequence,
                               .sequence_name = keep(b, entry->object->name),
                               .position = -1};
    return bind_assign(b, bind_serial_column(b, pending, call), col, out);
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool bind_has_effects(struct bind *b) {
    static const char *const words[] = {"nextval", "setval"};
    struct sv text = b->parsed->text;
    for (i64 i = 0; i < text.len; i++) {
        for (i64 w = 0; w < COUNT_OF(words) && (i == 0 || !is_letter(text.ptr[i - 1])); w++) {
            i64 len = (i64)strlen(words[w]), k = 0;
            while (k < len && i + k < text.len && (text.ptr[i + k] | 0x20) == words[w][k]) {
                k++;
            }
            if (k == len) {
                return true;
            }
        }
    }
    return b->default_effects;
}

/* Conditions */

struct expr *bind_guard_expr(struct bind *b, struct expr **whens, i32 count) {
    struct expr **args = NEW_ARRAY(b->arena, struct expr *, 2 * count + 1);
    i32 n = 0;
    for (i32 k = 0; k < count && whens[k]; k++) {
        args[n++] = whens[k];
        args[n++] = expr_bool(b->t, k == count - 1, -1);
    }
    args[n++] = expr_bool(b->t, !whens[count - 1], -1);
    return n == 1 ? args[0] : expr_many(b->t, EXPR_CASE, type_of(TYPE_BOOLEAN), -1, n, args);
}

void bind_guard_serials(struct bind *b, struct query *q, i64 first, struct expr **whens,
                        i32 count) {
    for (i64 i = first; i < q->pending.count; i++) {
        struct pending *p = &q->pending.items[i];
        if (!p->serial) {
            continue;
        }
        struct expr *both[2] = {bind_guard_expr(b, whens, count), p->call.filter};
        p->call.filter =
            both[1] ? expr_many(b->t, EXPR_AND, type_of(TYPE_BOOLEAN), -1, 2, both) : both[0];
        b->plan->cols.items[p->call.col].nullable = 1;
    }
}

/* The operator */

struct uses {
    const u32 *cols;
    i64 count;
};

static bool visit_unused(const struct expr *expr, void *arg) {
    const struct uses *uses = arg;
    for (i64 i = 0; expr->kind == EXPR_COL && i < uses->count; i++) {
        if (uses->cols[i] == expr->col) {
            return false;
        }
    }
    return true;
}

static bool call_uses(const struct window_call *call, const u32 *cols, i64 count) {
    struct uses uses = {cols, count};
    bool unused = !call->filter || expr_walk(call->filter, visit_unused, &uses);
    for (i32 i = 0; i < call->arg_count; i++) {
        unused = unused && expr_walk(call->args[i], visit_unused, &uses);
    }
    return !unused;
}

static bool is_one_row(const struct rel *rel) {
    return rel->kind == REL_VALUES && rel->rows == 1 && rel->out.count == 0;
}

/* One row, made once: the values are parameters. */
static struct rel *attach_late(struct bind *b, struct rel *rel, const pending_list *list) {
    struct rel *project = rel_new(b->plan, REL_PROJECT, rel, NULL);
    project->rows = 1;
    for (i64 i = 0; i < list->count; i++) {
        const struct window_call *call = &list->items[i].call;
        VEC_PUSH(b->arena, &project->project.exprs, late_of(b, call));
        VEC_PUSH(b->arena, &project->out, call->col);
    }
    return project;
}

static bool visit_no_column(const struct expr *expr, void *arg) {
    (void)arg;
    return expr->kind != EXPR_COL;
}

/* Whether the calls depend on nothing, above a select list that draws: a row then draws for both
 * before the next one does. */
static bool joins_list(const struct rel *rel, const pending_list *list) {
    const struct rel *below = rel->kind == REL_PROJECT ? rel_input(rel) : NULL;
    bool free = below && rel_is_serial(below);
    for (i64 i = 0; free && i < list->count; i++) {
        const struct window_call *call = &list->items[i].call;
        free = !call->filter;
        for (i32 k = 0; k < call->arg_count; k++) {
            free = free && expr_walk(call->args[k], visit_no_column, NULL);
        }
    }
    return free;
}

static void attach_to_list(struct bind *b, struct rel *project, const pending_list *list) {
    struct rel *window = rel_input(project);
    for (i64 i = 0; i < list->count; i++) {
        struct window_call call = list->items[i].call;
        u32 col = call.col;
        call.col = bind_col_new(b, NULL, serial_names[call.func], type_of(TYPE_BIGINT),
                                b->plan->cols.items[col].nullable);
        VEC_PUSH(b->arena, &window->window.calls, call);
        VEC_PUSH(b->arena, &window->out, call.col);
        VEC_PUSH(b->arena, &project->project.exprs, expr_col(b->plan, call.col, call.position));
        VEC_PUSH(b->arena, &project->out, col);
    }
}

struct rel *bind_attach_serials(struct bind *b, struct rel *rel, const pending_list *list) {
    if (list->count > 0 && joins_list(rel, list)) {
        attach_to_list(b, rel, list);
        return rel;
    }
    bool late = is_one_row(rel) && list->count > 0 && !b->draw_in_turn;
    for (i64 i = 0; i < list->count; i++) {
        late = late && may_be_late(&list->items[i].call);
    }
    if (late) {
        return attach_late(b, rel, list);
    }
    u32 *made = NEW_ARRAY(b->arena, u32, list->count + 1);
    i64 count = 0;
    struct rel *window = NULL;
    for (i64 i = 0; i < list->count; i++) {
        const struct window_call *call = &list->items[i].call;
        if (!window || call_uses(call, made, count)) { /* of what is drawn for the same row */
            window = rel_new(b->plan, REL_WINDOW, window ? window : rel, NULL);
            window->rows = rel->rows;
            count = 0;
        }
        VEC_PUSH(b->arena, &window->window.calls, *call);
        VEC_PUSH(b->arena, &window->out, call->col);
        made[count++] = call->col;
    }
    return window ? window : rel;
}

static bool conds_use(const pending_list *list, u32 col) {
    struct uses uses = {&col, 1};
    for (i64 i = 0; i < list->count; i++) {
        const struct pending *p = &list->items[i];
        for (i64 k = 0; k < p->conds.count; k++) {
            if (!expr_walk(p->conds.items[k], visit_unused, &uses)) {
                return true;
            }
        }
    }
    return false;
}

/* Set-returning functions of the select list are computed before it. */
static bool sets_use(const struct query *q, u32 col) {
    struct uses uses = {&col, 1};
    for (i64 i = 0; q && i < q->set_calls.count; i++) {
        const struct set_call *call = &q->set_calls.items[i];
        for (i32 k = 0; k < call->count; k++) {
            if (!expr_walk(call->args[k], visit_unused, &uses)) {
                return true;
            }
        }
    }
    return false;
}

void bind_take_serials(struct bind *b, const struct query *q, pending_list *list, bool needed,
                       pending_list *out) {
    i64 kept = 0;
    for (i64 i = 0; i < list->count; i++) {
        struct pending p = list->items[i];
        bool used = p.serial && (p.early || conds_use(list, p.call.col) || sets_use(q, p.call.col));
        if (p.serial && used == needed) {
            VEC_PUSH(b->arena, out, p);
        } else {
            list->items[kept++] = p;
        }
    }
    list->count = kept;
}

/* Rows of VALUES */

bool bind_values_late(const struct bind *b, const pending_list *list) {
    bool late = !b->draw_in_turn || list->count == 0;
    for (i64 i = 0; i < list->count; i++) {
        late = late && list->items[i].serial && may_be_late(&list->items[i].call);
    }
    return late;
}

void bind_values_params(struct bind *b, const pending_list *list, struct expr **row, i64 width) {
    if (list->count == 0) {
        return;
    }
    struct expr **map = NEW_ARRAY(b->arena, struct expr *, b->plan->cols.count + 1);
    for (i64 i = 0; i < list->count; i++) {
        map[list->items[i].call.col] = late_of(b, &list->items[i].call);
    }
    for (i64 c = 0; c < width; c++) {
        row[c] = expr_map(b->arena, row[c], map);
    }
}

/* Select lists */

/* What LIMIT and OFFSET let through, as a LIMIT below; NULL = all. */
static FALLIBLE least_rows(struct bind *b, struct expr *limit, struct expr *offset, i32 position,
                           struct expr **out) {
    *out = limit;
    if (!limit || !offset) {
        return ERR_OK;
    }
    if (limit->kind != EXPR_CONST || offset->kind != EXPR_CONST) {
        return unsupported(b, position, "nextval under LIMIT and OFFSET that are not constant");
    }
    struct expr *sum = NEW(b->arena, struct expr);
    *sum = *limit;
    if (__builtin_add_overflow(limit->value.i64, offset->value.i64, &sum->value.i64)) {
        sum->value.i64 = I64_MAX;
    }
    *out = sum;
    return ERR_OK;
}

static struct rel *limited(struct bind *b, struct rel *rel, struct expr *limit,
                           struct expr *offset) {
    if (!limit && !offset) {
        return rel;
    }
    struct rel *out = rel_new(b->plan, REL_LIMIT, rel, NULL);
    out->limit.count = limit;
    out->limit.offset = offset;
    out->rows = rel->rows;
    return out;
}

static bool order_uses(const struct select *s, const pending_list *serials) {
    for (i64 i = 0; i < serials->count; i++) {
        struct uses uses = {&serials->items[i].call.col, 1};
        for (i64 k = 0; k < s->order.count; k++) {
            if (!expr_walk(s->exprs.items[s->order.items[k].target], visit_unused, &uses)) {
                return true;
            }
        }
    }
    return false;
}

struct mapping {
    struct bind *b;
    struct expr **map;
};

static void map_slot(struct expr **slot, void *arg) {
    const struct mapping *m = arg;
    *slot = expr_map(m->b->arena, *slot, m->map);
}

/* All columns and the sort keys, sorted and limited; *out_map leads from the old columns to those.
 */
static struct rel *sorted(struct bind *b, struct select *s, struct expr *limit,
                          struct expr ***out_map) {
    i64 count = s->rel->out.count, keys = s->order.count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + keys + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, count + keys + 1);
    for (i64 i = 0; i < count; i++) {
        u32 col = s->rel->out.items[i];
        exprs[i] = expr_col(b->plan, col, -1);
        names[i] = b->plan->cols.items[col].name;
    }
    for (i64 i = 0; i < keys; i++) {
        exprs[count + i] = s->exprs.items[s->order.items[i].target];
        names[count + i] = "key";
    }
    struct rel *below = s->rel, *all = bind_project(b, below, exprs, names, count + keys);
    struct rel *sort = rel_new(b->plan, REL_SORT, all, NULL);
    for (i64 i = 0; i < keys; i++) {
        const struct order_item *item = &s->order.items[i];
        struct order_key key = {expr_col(b->plan, all->out.items[count + i], -1), item->descending,
                                item->nulls_first};
        VEC_PUSH(b->arena, &sort->sort.order, key);
    }
    sort->rows = all->rows;
    struct expr **map = NEW_ARRAY(b->arena, struct expr *, b->plan->cols.count + 1);
    for (i64 i = 0; i < count; i++) {
        map[below->out.items[i]] = expr_col(b->plan, all->out.items[i], -1);
    }
    *out_map = map;
    return limited(b, sort, limit, NULL);
}

FALLIBLE build_serials(struct bind *b, struct select *s, pending_list *serials, bool *out_done) {
    struct expr *limit = NULL, *offset = NULL, *least = NULL;
    bool plain = !s->distinct && s->on.count == 0;
    *out_done = false;
    TRY(select_bounds(b, s, &limit, &offset));
    if (plain && !order_uses(s, serials)) {
        TRY(least_rows(b, limit, offset, node_position(s->body), &least));
    }
    bool ties = json_is(s->body, "limitOption", "LIMIT_OPTION_WITH_TIES");
    if (s->order.count == 0 || !plain || ties || order_uses(s, serials)) {
        s->rel = s->order.count == 0 ? limited(b, s->rel, least, NULL) : s->rel;
        s->rel = bind_attach_serials(b, s->rel, serials);
        return ERR_OK;
    }
    struct mapping m = {b, NULL};
    s->rel = sorted(b, s, least, &m.map);
    s->rel = bind_attach_serials(b, s->rel, serials);
    for (struct rel *rel = s->rel; rel_is_serial(rel); rel = rel_input(rel)) {
        rel_each_expr(rel, map_slot, &m);
    }
    for (i64 i = 0; i < s->shown; i++) {
        map_slot(&s->exprs.items[i], &m);
    }
    s->rel = bind_project(b, s->rel, s->exprs.items, s->names.items, s->shown);
    s->rel = limited(b, s->rel, limit, offset);
    *out_done = true;
    return ERR_OK;
}

/* Conditions of joins */

bool bind_has_serials(const pending_list *list) {
    bool found = false;
    for (i64 i = 0; i < list->count; i++) {
        found = found || list->items[i].serial;
    }
    return found;
}

/* Whether a conjunct needs what the pending ones make. */
static bool waits(const struct expr *cond, const pending_list *pending) {
    for (i64 i = 0; i < pending->count; i++) {
        const struct pending *p = &pending->items[i];
        u32 made = p->serial ? p->call.col : p->join == JOIN_MARK ? p->mark_col : 0;
        struct uses uses = {&made, 1};
        if (p->rel && p->join != JOIN_MARK) {
            uses = (struct uses){p->rel->out.items, p->rel->out.count};
        }
        if (!expr_walk(cond, visit_unused, &uses)) {
            return true;
        }
    }
    return false;
}

/* The pairs of an inner join, in which conjuncts that wait are tested last. */
static struct rel *join_pairs(struct bind *b, struct rel *join, struct expr *cond,
                              pending_list *pending) {
    const struct rel *all = bind_filter(b, join, cond);
    struct expr *last = NULL;
    join->join.kind = JOIN_CROSS;
    for (i64 i = 0; i < all->filter.conds.count; i++) {
        struct expr *one = all->filter.conds.items[i];
        if (waits(one, pending)) {
            struct expr *both[2] = {last, one};
            last = last ? expr_many(b->t, EXPR_AND, type_of(TYPE_BOOLEAN), -1, 2, both) : one;
        } else {
            VEC_PUSH(b->arena, &join->join.conds, one);
            join->join.kind = JOIN_INNER;
        }
    }
    struct rel *rel = bind_attach(b, join, pending);
    return last ? bind_filter(b, rel, last) : rel;
}

/* A side of an outer join, with the numbers of its rows, for two users. */
struct numbered_side {
    struct rel *use[2];
    u32 row[2];           /* the number in each */
    struct expr **map[2]; /* from the columns the side had */
};

static void number_side(struct bind *b, struct rel *rel, i64 map_count, struct numbered_side *out) {
    struct expr **wide = NEW_ARRAY(b->arena, struct expr *, map_count + 1);
    struct rel *copy = rel_copy(b->plan, rel, wide);
    bind_origins(b);
    u32 row = bind_col_new(b, NULL, "row", type_of(TYPE_BIGINT), false);
    struct rel *window = rel_numbered(b->plan, copy, row);
    for (i32 k = 0; k < 2; k++) {
        struct rel *use = bind_shared(b, window);
        out->use[k] = use;
        out->row[k] = use->out.items[use->out.count - 1];
        out->map[k] = NEW_ARRAY(b->arena, struct expr *, map_count + 1);
        for (i64 i = 0; i < rel->out.count; i++) {
            out->map[k][rel->out.items[i]] = expr_col(b->plan, use->out.items[i], -1);
        }
    }
}

static struct expr *same_row(struct bind *b, u32 x, u32 y) {
    return expr_call(b->arena, FUNC_EQ, type_of(TYPE_BOOLEAN), -1, 2, expr_col(b->plan, x, -1),
                     expr_col(b->plan, y, -1));
}

static struct rel *join_by_row(struct bind *b, u8 kind, struct rel *left, u32 x, struct rel *right,
                               u32 y) {
    struct rel *join = rel_join(b->plan, (enum join_kind)kind, left, right);
    VEC_PUSH(b->arena, &join->join.conds, same_row(b, x, y));
    join->rows = left->rows;
    bind_nullable(b, right);
    if (kind == JOIN_FULL) {
        bind_nullable(b, left);
    }
    return join;
}

/* Left and full joins: which pairs of rows there are is found by an inner join of their numbers. */
static struct rel *outer_serials(struct bind *b, struct rel *join, struct expr *cond,
                                 pending_list *pending) {
    struct numbered_side side[2];
    i64 map_count = b->plan->cols.count;
    struct mapping m = {b, NEW_ARRAY(b->arena, struct expr *, map_count + 1)};
    struct expr **top = NEW_ARRAY(b->arena, struct expr *, map_count + 1);
    for (i32 i = 0; i < 2; i++) {
        number_side(b, join->inputs[i], map_count, &side[i]);
        for (i64 c = 0; c < map_count; c++) {
            m.map[c] = side[i].map[0][c] ? side[i].map[0][c] : m.map[c];
            top[c] = side[i].map[1][c] ? side[i].map[1][c] : top[c];
        }
    }
    for (i64 i = 0; i < pending->count; i++) {
        struct window_call *call = &pending->items[i].call;
        for (i32 a = 0; a < call->arg_count; a++) {
            map_slot(&call->args[a], &m);
        }
        if (call->filter) {
            map_slot(&call->filter, &m);
        }
    }
    map_slot(&cond, &m);
    struct rel *both = rel_join(b->plan, JOIN_CROSS, side[0].use[0], side[1].use[0]);
    both->rows = join->rows;
    struct rel *pairs = join_pairs(b, both, cond, pending);
    const char *names[2] = {"row", "row"};
    struct expr *rows[2] = {expr_col(b->plan, side[0].row[0], -1),
                            expr_col(b->plan, side[1].row[0], -1)};
    pairs = bind_project(b, pairs, rows, names, 2);
    struct rel *left =
        join_by_row(b, JOIN_LEFT, side[0].use[1], side[0].row[1], pairs, pairs->out.items[0]);
    struct rel *all =
        join_by_row(b, join->join.kind, left, pairs->out.items[1], side[1].use[1], side[1].row[1]);
    struct rel *project = rel_new(b->plan, REL_PROJECT, all, NULL);
    project->rows = join->rows;
    for (i64 i = 0; i < join->out.count; i++) {
        VEC_PUSH(b->arena, &project->project.exprs, top[join->out.items[i]]);
        VEC_PUSH(b->arena, &project->out, join->out.items[i]);
    }
    return project;
}

FALLIBLE bind_join_serials(struct bind *b, struct rel *join, struct expr *cond,
                           pending_list *pending, i32 position, struct rel **out) {
    bool inner = join->join.kind == JOIN_CROSS;
    for (i64 i = 0; i < pending->count && !inner; i++) {
        if (!pending->items[i].serial) {
            return unsupported(b, position,
                               "sequences and subqueries together in the condition of this join");
        }
    }
    if (join->join.dependent && !inner) {
        return unsupported(b, position, "sequences in the condition of a LATERAL join");
    }
    *out = inner ? join_pairs(b, join, cond, pending) : outer_serials(b, join, cond, pending);
    return ERR_OK;
}

/* The end of a statement */

struct serial_check {
    const struct window_call *call;
    const struct window_call *other; /* found: of the same sequence */
    const struct rel *above;
    struct bind *b;
};

static bool has_effect(const struct window_call *call) {
    return call->func == SERIAL_NEXT || call->func == SERIAL_SET;
}

static void look_below(struct rel *rel, void *arg) {
    struct serial_check *c = arg;
    for (i64 i = 0; rel_is_serial(rel) && i < rel->window.calls.count; i++) {
        const struct window_call *call = &rel->window.calls.items[i];
        bool same = call->sequence == c->call->sequence || call->func == SERIAL_LAST ||
                    c->call->func == SERIAL_LAST;
        bool draws = call->func == SERIAL_NEXT && c->call->func == SERIAL_NEXT;
        if (same && !draws && (has_effect(call) || has_effect(c->call))) {
            c->other = call;
        }
    }
}

static void check_rel(struct rel *rel, void *arg) {
    struct serial_check *c = arg;
    for (i64 i = 0; rel_is_serial(rel) && i < rel->window.calls.count && !c->other; i++) {
        c->call = &rel->window.calls.items[i];
        rel_each(c->b->arena, rel_input(rel), look_below, c);
    }
}

FALLIBLE bind_check_serials(struct bind *b, struct rel *root) {
    struct serial_check c = {.b = b};
    if (b->serials && root) {
        rel_each(b->arena, root, check_rel, &c);
    }
    return c.other ? unsupported(b, c.call->position,
                                 "%s of a sequence that a query or condition within calls, too",
                                 serial_names[c.call->func])
                   : ERR_OK;
}

/* bind_search.c: SEARCH and CYCLE of WITH RECURSIVE.
 *
 * Part of binding. Both add columns to the recursion's relation, which its first term begins and a
 * round computes from those of the row it comes from:
 *   SEARCH  a text by which rows sort as they are met, depth or breadth first
 *   CYCLE   a mark, set where the row's values were met on its way, and that way; a marked row has
 *           no followers
 * PostgreSQL's sequence and path are rows and arrays of rows. Here they are text: the path reads as
 * PostgreSQL writes it; the sequence has every value at a fixed width, or with an end that sorts
 * before all other characters, so that comparing the text compares the values. A value that may hold
 * a comma could be found within another one of the path, so a hidden column has the path in that
 * form, too. */
#include "sql/sql_int.h"

#include "codes/func.h"
#include "codes/scalar.h"

struct way { /* what is added */
    struct bind *b;
    const struct cte *cte;
    const struct json *search, *cycle;
    i64 *search_cols, *cycle_cols; /* by their place */
    i64 search_count, cycle_count;
    b8 breadth;
    b8 hidden; /* the path is also kept as a sequence */
    const char *sequence, *mark, *path;
    struct expr *marked, *unmarked;
};

/* expressions */

static struct expr *text(struct bind *b, const char *s) {
    return expr_text(b->t, sv_from(s), -1);
}

static struct expr *join(struct bind *b, struct expr *x, struct expr *y) {
    return expr_call(b->arena, FUNC_CONCAT, type_of(TYPE_TEXT), -1, 2, x, y);
}

static struct expr *replaced(struct bind *b, struct expr *x, const char *from, const char *to) {
    return scalar_call(b->t, FUNC_REPLACE, -1, 3, x, text(b, from), text(b, to));
}

static struct expr *padded(struct bind *b, struct expr *x, i32 width) {
    return scalar_call(b->t, FUNC_LPAD, -1, 3, x, expr_int(b->t, width, -1), text(b, "0"));
}

static FALLIBLE as_text(struct bind *b, struct expr *x, struct expr **out) {
    return coerce_to(b->t, x, type_of(TYPE_TEXT), out);
}

static struct expr *if_null(struct bind *b, struct expr *x, struct expr *then,
                            struct expr *otherwise) {
    return bind_either(b, expr_one(b->t, EXPR_IS_NULL, x, -1), then, otherwise);
}

static bool is_text(struct type type) {
    return type.id == TYPE_TEXT || type.id == TYPE_CHAR;
}

/* 0 for a number below 0, 1 for others, and as many digits as there may be. */
static FALLIBLE sortable_number(struct bind *b, struct expr *x, struct expr **out) {
    i32 digits = x->type.id == TYPE_DECIMAL ? 40 : x->type.id == TYPE_BIGINT ? 19 : 10;
    struct expr *zero = expr_int(b->t, 0, -1);
    struct expr *below = NULL, *turned = NULL, *plain = NULL;
    TRY(coerce_to(b->t, zero, x->type, &zero));
    TRY(operator_compare(b->t, FUNC_LT, x, zero, -1, &below));
    TRY(as_text(b, x, &plain));
    turned = scalar_call(b->t, FUNC_TRANSLATE, -1, 3, padded(b, replaced(b, plain, "-", ""), digits),
                         text(b, "0123456789"), text(b, "9876543210"));
    *out = bind_either(b, below, join(b, text(b, "0"), turned),
                       join(b, text(b, "1"), padded(b, plain, digits)));
    return ERR_OK;
}

/* A text that sorts as the value does, NULL last, and that begins no other one. */
static FALLIBLE sortable(const struct way *w, struct expr *x, struct expr **out) {
    struct bind *b = w->b;
    struct expr *value = NULL;
    if (type_is_integer(x->type) || x->type.id == TYPE_DECIMAL) {
        TRY(sortable_number(b, x, &value));
    } else if (x->type.id == TYPE_BOOLEAN) {
        value = bind_either(b, x, text(b, "1"), text(b, "0"));
    } else if (x->type.id == TYPE_UUID) {
        TRY(as_text(b, x, &value));
    } else if (x->type.id == TYPE_DATE) {
        struct expr *first = NULL, *days = NULL;
        TRY(coerce_to(b->t, text(b, "2000-01-01"), x->type, &first));
        TRY(operator_arithmetic(b->t, FUNC_SUB, x, first, -1, &days));
        TRY(sortable_number(b, days, &value));
    } else if (is_text(x->type)) {
        TRY(as_text(b, x, &value));
        value = join(b, replaced(b, value, "\1", "\1\2"), text(b, "\1\1"));
    } else {
        char name[32];
        return unsupported(b, json_position(w->cte->body),
                           "SEARCH or CYCLE by a column of type %s",
                           type_print(x->type, name));
    }
    *out = if_null(b, x, text(b, "1"), join(b, text(b, "0"), value));
    return ERR_OK;
}

static FALLIBLE sortable_row(const struct way *w, struct expr *const *cols, const i64 *which,
                             i64 count, struct expr **out) {
    *out = text(w->b, "");
    for (i64 i = 0; i < count; i++) {
        struct expr *one = NULL;
        TRY(sortable(w, cols[which[i]], &one));
        *out = i ? join(w->b, *out, one) : one;
    }
    return ERR_OK;
}

/* A quoted copy where some of `chars` occur. */
static FALLIBLE quoted(struct bind *b, struct expr *x, const char *chars, const char *quote,
                       bool empty, struct expr **out) {
    struct expr *some = NULL, *none = NULL;
    struct expr *without = scalar_call(b->t, FUNC_TRANSLATE, -1, 3, x, text(b, chars), text(b, ""));
    TRY(operator_compare(b->t, FUNC_NE, without, x, -1, &some));
    if (empty) {
        TRY(operator_compare(b->t, FUNC_EQ, x, text(b, ""), -1, &none));
        struct expr *both[2] = {none, some};
        some = expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), -1, 2, both);
    }
    struct expr *inside = replaced(b, replaced(b, x, "\\", "\\\\"), "\"", quote);
    *out = bind_either(b, some, join(b, join(b, text(b, "\""), inside), text(b, "\"")), x);
    return ERR_OK;
}

#define SPACES " \t\n\r\v\f"

/* A value of a row as PostgreSQL writes it. */
static FALLIBLE written(struct bind *b, struct expr *x, struct expr **out) {
    struct expr *value = NULL;
    if (x->type.id == TYPE_BOOLEAN) {
        value = bind_either(b, x, text(b, "t"), text(b, "f"));
    } else {
        TRY(as_text(b, x, &value));
    }
    if (!type_is_integer(x->type) && x->type.id != TYPE_BOOLEAN && x->type.id != TYPE_DECIMAL) {
        TRY(quoted(b, value, "(),\"\\" SPACES, "\"\"", true, &value));
    }
    *out = typing_nullable(b->t, x) ? if_null(b, x, text(b, ""), value) : value;
    return ERR_OK;
}

/* A row as an element of an array. */
static FALLIBLE written_row(const struct way *w, struct expr *const *cols, struct expr **out) {
    struct bind *b = w->b;
    bool plain = w->cycle_count == 1 && type_is_integer(cols[w->cycle_cols[0]]->type);
    struct expr *row = text(b, "(");
    for (i64 i = 0; i < w->cycle_count; i++) {
        struct expr *one = NULL;
        TRY(written(b, cols[w->cycle_cols[i]], &one));
        row = join(b, i ? join(b, row, text(b, ",")) : row, one);
    }
    *out = join(b, row, text(b, ")"));
    return plain ? ERR_OK : quoted(b, *out, ",{}\"\\" SPACES, "\\\"", false, out);
}

/* the clauses */

static i64 col_named(const struct way *w, const char *name) {
    const struct cte_result *result = w->cte->result;
    for (i64 i = 0; i < result->col_count; i++) {
        if (strcmp(result->cols[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static FALLIBLE find_cols(struct way *w, const struct json *list, const char *what, i32 position,
                          i64 **out, i64 *out_count) {
    struct bind *b = w->b;
    *out = NEW_ARRAY(b->arena, i64, json_count(list) + 1);
    *out_count = 0;
    JSON_EACH(node, list) {
        const char *name = node_string(node);
        i64 at = col_named(w, name);
        if (at < 0) {
            FAIL_AT(b->err, SYNTAX, position,
                    "%s column \"%.100s\" not in WITH query column list", what, name);
        }
        for (i64 i = 0; i < *out_count; i++) {
            if ((*out)[i] == at) {
                FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                        "%s column \"%.100s\" specified more than once", what, name);
            }
        }
        (*out)[(*out_count)++] = at;
    }
    return ERR_OK;
}

/* A column that is added must be new. */
static FALLIBLE check_new(const struct way *w, const char *name, const char *what, i32 position) {
    if (col_named(w, name) >= 0) {
        FAIL_AT(w->b->err, SYNTAX, position,
                "%s column name \"%.100s\" already used in WITH query column list", what, name);
    }
    return ERR_OK;
}

static FALLIBLE check_differ(const struct way *w, const char *a, const char *b, const char *what,
                             i32 position) {
    if (a && b && strcmp(a, b) == 0) {
        FAIL_AT(w->b->err, SYNTAX, position, "%s are the same", what);
    }
    return ERR_OK;
}

static FALLIBLE bind_marks(struct way *w) {
    struct query q = {.clause = "CYCLE"};
    struct expr *marks[2] = {NULL, NULL};
    struct type type;
    TRY(bind_expr(w->b, &q, json_get(w->cycle, "cycle_mark_value"), &marks[0]));
    TRY(bind_expr(w->b, &q, json_get(w->cycle, "cycle_mark_default"), &marks[1]));
    TRY(coerce_common(w->b->t, marks, 2, "CYCLE", &type));
    w->marked = marks[0];
    w->unmarked = marks[1];
    return ERR_OK;
}

static FALLIBLE bind_cycle_clause(struct way *w) {
    struct bind *b = w->b;
    i32 position = json_position(w->cycle);
    TRY(bind_only(b, w->cycle,
                  "cycle_col_list cycle_mark_column cycle_mark_value cycle_mark_default "
                  "cycle_path_column location",
                  position));
    TRY(find_cols(w, json_get(w->cycle, "cycle_col_list"), "cycle", position, &w->cycle_cols,
                  &w->cycle_count));
    w->mark = keep(b, json_text(w->cycle, "cycle_mark_column"));
    w->path = keep(b, json_text(w->cycle, "cycle_path_column"));
    TRY(check_new(w, w->mark, "cycle mark", position));
    TRY(check_new(w, w->path, "cycle path", position));
    TRY(check_differ(w, w->mark, w->path, "cycle mark column name and cycle path column name",
                     position));
    for (i64 i = 0; i < w->cycle_count; i++) {
        struct type type = w->cte->result->cols[w->cycle_cols[i]].type;
        w->hidden = w->hidden || !(type_is_integer(type) || type.id == TYPE_BOOLEAN ||
                                   type.id == TYPE_DECIMAL || type.id == TYPE_DATE);
    }
    return bind_marks(w);
}

static FALLIBLE bind_clauses(struct way *w) {
    struct bind *b = w->b;
    if (w->search) {
        i32 position = json_position(w->search);
        TRY(bind_only(b, w->search,
                      "search_col_list search_breadth_first search_seq_column location", position));
        TRY(find_cols(w, json_get(w->search, "search_col_list"), "search", position,
                      &w->search_cols, &w->search_count));
        w->sequence = keep(b, json_text(w->search, "search_seq_column"));
        w->breadth = json_flag(w->search, "search_breadth_first");
        TRY(check_new(w, w->sequence, "search sequence", position));
    }
    if (w->cycle) {
        TRY(bind_cycle_clause(w));
    }
    if (w->search && w->cycle) {
        i32 position = json_position(w->search);
        TRY(check_differ(w, w->sequence, w->mark,
                         "search sequence column name and cycle mark column name", position));
        TRY(check_differ(w, w->sequence, w->path,
                         "search sequence column name and cycle path column name", position));
    }
    return ERR_OK;
}

/* the columns */

struct added { /* in the order of the columns; NULL = there is none */
    struct expr *exprs[4];
    const char *names[4];
    i64 count;
};

static void add(struct added *a, struct expr *expr, const char *name) {
    a->names[a->count] = name;
    a->exprs[a->count++] = expr;
}

/* Of a row with these values, which comes from one whose added columns are `from` (NULL: from none). */
static FALLIBLE make_added(const struct way *w, struct expr *const *cols, struct expr *const *from,
                           struct added *out) {
    struct bind *b = w->b;
    i64 at = 0;
    *out = (struct added){.count = 0};
    if (w->search) {
        enum { LEVEL = 12 };
        struct expr *row = NULL;
        struct expr *level = text(b, "000000000000");
        TRY(sortable_row(w, cols, w->search_cols, w->search_count, &row));
        if (from && w->breadth) { /* one more than the level before */
            struct expr *front = scalar_call(b->t, FUNC_LEFT, -1, 2, from[0],
                                             expr_int(b->t, LEVEL, -1));
            TRY(coerce_to(b->t, front, type_of(TYPE_BIGINT), &level));
            TRY(operator_arithmetic(b->t, FUNC_ADD, level, expr_big(b, 1), -1, &level));
            TRY(as_text(b, level, &level));
            level = padded(b, level, LEVEL);
        }
        add(out, w->breadth ? join(b, level, row) : from ? join(b, from[0], row) : row,
            w->sequence);
        at = 1;
    }
    if (!w->cycle) {
        return ERR_OK;
    }
    struct expr *row = NULL, *met = NULL, *own = NULL;
    const char *front = w->hidden ? "\3" : "{";
    const char *between = w->hidden ? "\3" : ",";
    TRY(written_row(w, cols, &row));
    TRY(w->hidden ? sortable_row(w, cols, w->cycle_cols, w->cycle_count, &own) : ERR_OK);
    own = w->hidden ? own : row;
    struct expr *mark = w->unmarked;
    struct expr *path = join(b, join(b, text(b, "{"), row), text(b, "}"));
    struct expr *hidden = join(b, join(b, text(b, front), own), text(b, "\3"));
    if (from) {
        struct expr *old = from[at + 1];
        struct expr *inner = scalar_call(b->t, FUNC_RTRIM, -1, 2, old, text(b, "}"));
        struct expr *all = replaced(b, join(b, inner, text(b, ",")), "{", ",");
        all = w->hidden ? from[at + 2] : all;
        struct expr *sought = join(b, join(b, text(b, between), own), text(b, between));
        struct expr *place = scalar_call(b->t, FUNC_STRPOS, -1, 2, all, sought);
        TRY(operator_compare(b->t, FUNC_GT, place, expr_int(b->t, 0, -1), -1, &met));
        mark = bind_either(b, met, w->marked, w->unmarked);
        path = join(b, join(b, join(b, inner, text(b, ",")), row), text(b, "}"));
        hidden = join(b, join(b, from[at + 2 - !w->hidden], own), text(b, "\3"));
    }
    add(out, mark, w->mark);
    add(out, path, w->path);
    if (w->hidden) {
        add(out, hidden, "way");
    }
    return ERR_OK;
}

/* The columns of `rel`, and those that are added. */
static struct rel *with_added(struct bind *b, struct rel *rel, struct expr *const *exprs, i64 count,
                              const struct added *added, const char **names) {
    struct expr **all = NEW_ARRAY(b->arena, struct expr *, count + added->count + 1);
    const char **called = NEW_ARRAY(b->arena, const char *, count + added->count + 1);
    for (i64 i = 0; i < count + added->count; i++) {
        all[i] = i < count ? exprs[i] : added->exprs[i - count];
        called[i] = i < count ? names[i] : added->names[i - count];
    }
    return bind_project(b, rel, all, called, count + added->count);
}

static struct expr **cols_of(struct bind *b, const struct rel *rel, i64 first, i64 count) {
    struct expr **cols = NEW_ARRAY(b->arena, struct expr *, count + 1);
    for (i64 i = 0; i < count; i++) {
        cols[i] = expr_col(b->plan, rel->out.items[first + i], -1);
    }
    return cols;
}

FALLIBLE bind_way_begin(struct bind *b, const struct cte *cte, struct rel **io_first,
                        struct way **out) {
    struct cte_result *result = cte->result;
    i64 count = result->col_count;
    struct added added;
    struct way *w = NEW(b->arena, struct way);
    *w = (struct way){.b = b,
                      .cte = cte,
                      .search = json_get(cte->body, "search_clause"),
                      .cycle = json_get(cte->body, "cycle_clause")};
    *out = NULL;
    if (!w->search && !w->cycle) {
        return ERR_OK;
    }
    TRY(bind_clauses(w));
    TRY(make_added(w, cols_of(b, *io_first, 0, count), NULL, &added));
    const char **names = NEW_ARRAY(b->arena, const char *, count + added.count + 1);
    for (i64 i = 0; i < count + added.count; i++) {
        names[i] = i < count ? result->names[i] : added.names[i - count];
    }
    *io_first = with_added(b, *io_first, cols_of(b, *io_first, 0, count), count, &added, names);
    result->names = names;
    result->added = added.count;
    *out = w;
    return ERR_OK;
}

static void find_atom(struct rel *rel, void *arg) {
    struct rel **atom = arg;
    *atom = rel->kind == REL_WORK ? rel : *atom;
}

FALLIBLE bind_way_on(struct way *w, struct rel **io_again) {
    struct bind *b = w->b;
    const struct cte_result *result = w->cte->result;
    i64 count = result->col_count - result->added;
    struct rel *project = *io_again;
    struct rel *atom = NULL;
    struct added added;
    if (project->out.count != count) {
        return ERR_OK; /* an error, which the caller reports */
    }
    rel_each(b->arena, project, find_atom, &atom);
    bool top = atom && project->kind == REL_PROJECT &&
               rel_has_out(rel_input(project), atom->out.items[count]);
    if (!top) {
        return unsupported(b, json_position(w->cte->body),
                           "a SEARCH or CYCLE clause whose recursive reference is not at the top level "
                           "of a plain SELECT");
    }
    struct expr **from = cols_of(b, atom, count, result->added);
    if (w->cycle) { /* no way goes on behind a mark */
        struct expr *on = NULL;
        TRY(operator_compare(b->t, FUNC_NE, from[w->search ? 1 : 0], w->marked, -1, &on));
        project->inputs[0] = bind_filter(b, rel_input(project), on);
    }
    for (i64 i = 0; i < result->added; i++) { /* they come through, and end here */
        u32 col = plan_col_like(b->plan, atom->out.items[count + i]);
        VEC_PUSH(b->arena, &project->project.exprs, from[i]);
        VEC_PUSH(b->arena, &project->out, col);
    }
    bind_origins(b);
    TRY(make_added(w, cols_of(b, project, 0, count), cols_of(b, project, count, result->added),
                   &added));
    *io_again = with_added(b, project, cols_of(b, project, 0, count), count, &added,
                           result->names);
    return ERR_OK;
}

struct rel *bind_way_end(const struct way *w, struct rel *fix) {
    const struct cte_result *result = w->cte->result;
    i64 count = result->col_count - w->hidden;
    return bind_project(w->b, fix, cols_of(w->b, fix, 0, count), result->names, count);
}

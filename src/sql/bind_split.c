/* bind_split.c: regexp_split_to_table and string_to_table.
 *
 * Part of binding. Both first make one text in parts of their arguments: a byte 0xff, which no text
 * has inside, stands between them. A recursion then takes it apart. A row stands for at most
 * `width` parts, a power of two, and each round halves the width of all rows. So a text is read
 * once a round, and there are as many rounds as the number of parts has binary digits. Rows that
 * hold one part already come along, so that the last round has all parts of a text in their order.
 * The rows hold all they need, so that arguments may be columns of an outer query, which the pass
 * unnest carries through. */
#include "sql/sql_int.h"

#include "codes/scalar.h"

enum { PARTS_GUESS = 10 };

enum { COL_TEXT, COL_NULL, COL_WIDTH, COL_NUMBER, COL_COUNT };
static const char *col_names[COL_COUNT] = {"parts", "null_string", "width", "ordinality"};

/* No parts in an empty text; every character is one where the delimiter is NULL. */
static FALLIBLE string_parts(struct bind *b, struct expr *text, struct expr *delimiter,
                             i32 position, struct expr **out) {
    struct expr *empty = expr_text(b->t, SV(""), position), *is_empty = NULL;
    TRY(operator_compare(b->t, FUNC_EQ, text, empty, position, &is_empty));
    struct expr *chars = scalar_call(b->t, FUNC_REGEX_SPLIT, position, 2, text, empty);
    struct expr *parts = scalar_call(b->t, FUNC_SPLIT_PARTS, position, 2, text, delimiter);
    parts = bind_either(b, expr_one(b->t, EXPR_IS_NULL, delimiter, position), chars, parts);
    *out = bind_either(b, is_empty, expr_null(b->t, type_of(TYPE_TEXT), position), parts);
    return ERR_OK;
}

/* One row of COL_TEXT and COL_NULL; none when there is no text. */
static FALLIBLE one_text(struct bind *b, enum table_func func, const struct call *call,
                         struct rel **out) {
    i32 position = call->position;
    struct expr *exprs[3] = {NULL, NULL, expr_null(b->t, type_of(TYPE_TEXT), position)};
    struct rel *row = NULL;
    if (func == TABLE_FUNC_REGEXP_SPLIT_TO_TABLE) {
        TRY(call_regex_split(b->t, call, &exprs[COL_TEXT]));
        exprs[COL_NULL] = exprs[2];
        row = bind_one_row(b);
    } else {
        static const char *names[3] = {"text", "delimiter", "null_string"};
        for (i32 i = 0; i < call->count; i++) {
            TRY(call_argument(b->t, call, i, type_of(TYPE_TEXT), &exprs[i]));
        }
        row = bind_project(b, bind_one_row(b), exprs, names, 3);
        exprs[COL_NULL] = bind_out_col(b, row, 2);
        TRY(string_parts(b, bind_out_col(b, row, 0), bind_out_col(b, row, 1), position,
                         &exprs[COL_TEXT]));
    }
    row = bind_project(b, row, exprs, col_names, 2);
    struct expr *none = expr_one(b->t, EXPR_IS_NULL, bind_out_col(b, row, COL_TEXT), position);
    *out = bind_filter(b, row, expr_one(b->t, EXPR_NOT, none, position));
    (*out)->rows = 1;
    return ERR_OK;
}

/* Rows of several parts as two of half the width; the second may have none, and is left out. */
static FALLIBLE halves(struct bind *b, struct rel *work, struct rel **out) {
    struct expr *wide = NULL, *half = NULL, *there = NULL, *number = NULL;
    u32 side = 0;
    struct expr *text = bind_out_col(b, work, COL_TEXT);
    TRY(operator_compare(b->t, FUNC_GT, bind_out_col(b, work, COL_WIDTH), expr_big(b, 1), -1,
                         &wide));
    struct rel *both = bind_twice(b, bind_filter(b, work, wide), &side);
    struct expr *second = expr_col(b->plan, side, -1);
    TRY(operator_arithmetic(b->t, FUNC_DIV, bind_out_col(b, work, COL_WIDTH), expr_big(b, 2), -1,
                            &half));
    TRY(operator_compare(b->t, FUNC_GT, scalar_call(b->t, FUNC_PARTS, -1, 1, text), half, -1,
                         &there));
    there = bind_either(b, second, there, expr_bool(b->t, true, -1));
    TRY(operator_arithmetic(b->t, FUNC_ADD, bind_out_col(b, work, COL_NUMBER), half, -1, &number));
    struct expr *exprs[COL_COUNT] = {
        bind_either(b, second, scalar_call(b->t, FUNC_PARTS_TAIL, -1, 2, text, half),
                    scalar_call(b->t, FUNC_PARTS_HEAD, -1, 2, text, half)),
        bind_out_col(b, work, COL_NULL), half,
        bind_either(b, second, number, bind_out_col(b, work, COL_NUMBER))};
    *out = bind_project(b, bind_filter(b, both, there), exprs, col_names, COL_COUNT);
    return ERR_OK;
}

FALLIBLE bind_split(struct bind *b, enum table_func func, struct expr **args, i32 count,
                    i32 position, bool numbered, struct rel **out) {
    const char *names[2] = {table_func_names[func], "ordinality"};
    struct call call = {.name = names[0], .args = args, .count = count, .position = position};
    struct rel *row = NULL, *again = NULL;
    struct expr *one = NULL, *is_null = NULL;
    TRY(one_text(b, func, &call, &row));
    struct expr *text = bind_out_col(b, row, COL_TEXT);
    struct expr *first[COL_COUNT] = {text, bind_out_col(b, row, COL_NULL),
                                     scalar_call(b->t, FUNC_PARTS_WIDTH, -1, 1, text),
                                     expr_big(b, 1)};
    row = bind_project(b, row, first, col_names, COL_COUNT);
    struct fix_draft *fix = bind_fix_open(b, row, col_names, false);
    TRY(halves(b, bind_fix_atom(b, fix, 0), &again));
    struct rel *all = bind_fix_close(b, fix, again);
    all->rows = PARTS_GUESS;
    TRY(operator_compare(b->t, FUNC_EQ, bind_out_col(b, all, COL_WIDTH), expr_big(b, 1), -1, &one));
    struct expr *exprs[2] = {bind_out_col(b, all, COL_TEXT), bind_out_col(b, all, COL_NUMBER)};
    if (func == TABLE_FUNC_STRING_TO_TABLE && count == 3) {
        TRY(operator_compare(b->t, FUNC_EQ, exprs[0], bind_out_col(b, all, COL_NULL), -1,
                             &is_null));
        exprs[0] = bind_either(b, is_null, expr_null(b->t, type_of(TYPE_TEXT), position), exprs[0]);
    }
    *out = bind_project(b, bind_filter(b, all, one), exprs, names, numbered ? 2 : 1);
    (*out)->rows = PARTS_GUESS;
    return ERR_OK;
}

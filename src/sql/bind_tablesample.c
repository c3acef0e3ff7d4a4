/* bind_tablesample.c: TABLESAMPLE.
 *
 * Part of binding. A sample is a filter on the scan: a number in [0, 1) made from a seed and the
 * row's number is less than the share asked for. BERNOULLI tries every row for itself, SYSTEM
 * SAMPLE_BLOCK_ROWS consecutive ones at once. The row's number is its place in the table, so a
 * sample with a seed is the same on every device and for every size of batches, as long as the
 * table is. Without REPEATABLE the seed is the time the statement starts at; several samples of one
 * statement are told apart by their number. */
#include "defs/host_words.h"
/* after the words they are written in */
#include "codes/scalar.h"
#include "defs/fn_float.h"
#include "sql/sql_int.h"

enum { SAMPLE_BLOCK_BITS = 10, SAMPLE_BLOCK_ROWS = 1 << SAMPLE_BLOCK_BITS };

struct sample_arg {
    const char *clause;
    const char *which; /* in the error about NULL */
    enum type_id like;
    u16 func; /* checks and converts what is no constant */
    f64 if_null;    /* what it refuses */
    wf_status error;
};

static bool is_const(const struct expr *expr) {
    return expr->kind == EXPR_CONST;
}

static struct expr *double_const(struct bind *b, f64 value, i32 position) {
    struct expr *expr = expr_new(b->arena, EXPR_CONST, type_of(TYPE_DOUBLE), position);
    expr->value.f64 = value;
    return expr;
}

/* The value, or `otherwise` where it is NULL, which the function above then refuses. */
static struct expr *or_else(struct bind *b, struct expr *value, f64 otherwise) {
    struct expr *args[2] = {value, double_const(b, otherwise, value->position)};
    struct expr *expr = expr_many(b->t, EXPR_CALL, value->type, value->position, 2, args);
    expr->func = FUNC_COALESCE;
    return expr;
}

/* An argument as a double; a constant, if it is one. */
static FALLIBLE bind_argument(struct bind *b, struct query *q, const struct json *node,
                              const char *clause, enum type_id like, struct expr **out) {
    TRY(bind_expr(b, q, node, out));
    TRY(coerce_unknown(b->t, *out, type_of(like), out));
    if (!coerce_allowed((*out)->type, type_of(like), COERCE_ASSIGN)) {
        char name[32];
        char want[32];
        FAIL_AT(b->err, DATATYPE_MISMATCH, (*out)->position,
                "argument of %s must be type %s, not type %s", clause,
                type_print(type_of(like), want), type_print((*out)->type, name));
    }
    TRY(coerce_to(b->t, *out, type_of(TYPE_DOUBLE), out));
    *out = expr_fold(b->plan, *out);
    return ERR_OK;
}

/* An argument of a sample: a constant that is not NULL, or what `func` makes of it when it runs.
 */
static FALLIBLE bind_const_or_call(struct bind *b, struct query *q, const struct json *node,
                                   const struct sample_arg *arg, struct expr **out) {
    TRY(bind_argument(b, q, node, arg->clause, arg->like, out));
    i32 position = (*out)->position;
    if (!is_const(*out)) {
        *out = scalar_call(b->t, arg->func, position, 1, or_else(b, *out, arg->if_null));
    } else if ((*out)->is_null) {
        error_set(b->err, arg->error, position, "TABLESAMPLE%s parameter cannot be null",
                  arg->which);
        return arg->error;
    }
    return ERR_OK;
}

/* The share of rows to keep, from 0 to 1. */
static FALLIBLE bind_share(struct bind *b, struct query *q, const struct json *node,
                           struct expr **out) {
    static const struct sample_arg arg = {"TABLESAMPLE", "",   TYPE_REAL,
                                          FUNC_PERCENT,  -1.0, ERR_INVALID_SAMPLE};
    TRY(bind_const_or_call(b, q, node, &arg, out));
    if (!is_const(*out)) {
        return ERR_OK;
    }
    f64 percent = (*out)->value.f64;
    if (!(percent >= 0.0 && percent <= 100.0)) {
        FAIL_AT(b->err, INVALID_SAMPLE, (*out)->position,
                "sample percentage must be between 0 and 100");
    }
    *out = double_const(b, percent / 100.0, (*out)->position);
    return ERR_OK;
}

static FALLIBLE bind_seed(struct bind *b, struct query *q, const struct json *node,
                          struct expr **out) {
    struct sample_arg arg = {"REPEATABLE", " REPEATABLE", TYPE_DOUBLE,
                             FUNC_SEED,    0.0,           ERR_INVALID_REPEAT};
    arg.if_null = fn_unkey_f64(0x7ff8000000000000LL);
    TRY(bind_const_or_call(b, q, node, &arg, out));
    if (is_const(*out)) {
        i64 key = fn_key_f64((*out)->value.f64);
        *out = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), (*out)->position);
        (*out)->value.i64 = key;
    }
    return ERR_OK;
}

/* The row's number, or its block's. */
static struct expr *place_of(struct bind *b, struct rel *scan, bool blocks, i32 position) {
    u32 col = bind_col_new(b, NULL, "row", type_of(TYPE_BIGINT), false);
    bind_row_number(b, scan, col);
    struct expr *row = expr_col(b->plan, col, position);
    return blocks ? scalar_call(b->t, FUNC_SHR_L, position, 2, row,
                                expr_int(b->t, SAMPLE_BLOCK_BITS, position))
                  : row;
}

static FALLIBLE method_of(struct bind *b, const struct json *body, i32 position, bool *out_blocks) {
    const char *method = "";
    JSON_EACH(part, json_get(body, "method")) {
        method = node_string(part);
    }
    *out_blocks = strcmp(method, "system") == 0;
    if (!*out_blocks && strcmp(method, "bernoulli") != 0) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position, "tablesample method %.100s does not exist",
                method);
    }
    if (json_count(json_get(body, "args")) != 1) {
        FAIL_AT(b->err, INVALID_SAMPLE, position,
                "tablesample method %s requires 1 argument, not %d", method,
                (int)json_count(json_get(body, "args")));
    }
    return ERR_OK;
}

FALLIBLE bind_tablesample(struct bind *b, const struct json *body, const struct cte *ctes,
                          struct query *outer, struct rel **io_rel) {
    i32 position = json_position(body);
    bool blocks = false;
    struct query *q = NEW(b->arena, struct query);
    *q = (struct query){.clause = "functions in FROM",
                        .no_sets = "set-returning functions must appear at top level of FROM",
                        .ctes = ctes,
                        .outer = outer,
                        .subqueries_allowed = 1};
    TRY(bind_only(b, body, "relation method args repeatable location", position));
    if ((*io_rel)->kind != REL_SCAN) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "TABLESAMPLE clause can only be applied to tables and materialized views");
    }
    TRY(method_of(b, body, position, &blocks));
    struct expr *share = NULL;
    struct expr *seed = NULL;
    struct expr *cond = NULL;
    TRY(bind_share(b, q, json_first(json_get(body, "args")), &share));
    struct expr *place = place_of(b, *io_rel, blocks, position);
    struct expr *number = NULL;
    if (json_get(body, "repeatable")) {
        TRY(bind_seed(b, q, json_get(body, "repeatable"), &seed));
        number =
            scalar_call(b->t, FUNC_SAMPLE, position, 3, seed, place, expr_int(b->t, 0, position));
    } else {
        seed = expr_call(b->arena, FUNC_CLOCK_TIME, type_of(TYPE_TIMESTAMPTZ), position, 0);
        number = scalar_call(b->t, FUNC_SAMPLE_NOW, position, 3, seed, place,
                             expr_int(b->t, b->t->random_calls++, position));
    }
    TRY(operator_compare(b->t, FUNC_LT, number, share, position, &cond));
    *io_rel = bind_filter(b, bind_attach(b, *io_rel, &q->pending), cond);
    return ERR_OK;
}

/* test_typing.c: types of expressions for a language that is not SQL.
 *
 * The language has a stack: `a 2.5 +` is what SQL writes a + 2.5. It goes to typing/ directly, and
 * what comes out must print and be typed like what the SQL front end makes of its own text; errors
 * name positions of the text they were written in. */
#include "test_sql_fixture.h"

#include "typing/typing.h"

enum { STACK = 16 };

struct stack_text {
    struct typing t;
    struct plan plan;
    struct expr *at[STACK];
    i32 count;
    i32 position; /* of the word that is read */
};

/* The columns of the fixture's table t, which is empty: none is NULL. */
static const struct {
    char name[2];
    u8 type;
} columns[] = {{"a", TYPE_INTEGER}, {"b", TYPE_TEXT},     {"c", TYPE_DECIMAL},
               {"d", TYPE_DATE},    {"e", TYPE_DOUBLE},   {"f", TYPE_REAL},
               {"g", TYPE_BIGINT},  {"h", TYPE_SMALLINT}, {"i", TYPE_BOOLEAN}};

static void stack_init(struct stack_text *s, struct arena *arena, struct type *params,
                       struct error *err) {
    memset(s, 0, sizeof *s);
    s->plan.arena = arena;
    for (i64 i = 0; i < COUNT_OF(columns); i++) {
        struct type type = columns[i].type == TYPE_DECIMAL ? type_decimal(12, 2)
                                                           : type_of((enum type_id)columns[i].type);
        (void)plan_col_new(&s->plan, columns[i].name, type, false);
    }
    s->t = (struct typing){.arena = arena, .plan = &s->plan, .err = err, .param_types = params};
}

static void push(struct stack_text *s, struct expr *expr) {
    assert_true(s->count < STACK);
    s->at[s->count++] = expr;
}

/* The topmost ones, in the order they were pushed. */
static struct expr **pop(struct stack_text *s, i32 count) {
    assert_true(s->count >= count);
    s->count -= count;
    return &s->at[s->count];
}

/* A quoted text or a parameter, whose type is for its context. */
static struct expr *untyped(struct stack_text *s, const char *word, size_t len) {
    struct type unknown = type_of(TYPE_UNKNOWN);
    bool param = word[0] == '$';
    struct expr *expr = expr_new(s->t.arena, param ? EXPR_PARAM : EXPR_CONST, unknown, s->position);
    if (!param) {
        expr->value.str = str_from(arena_sv(s->t.arena, (struct sv){word + 1, (i64)len - 2}));
    }
    return expr;
}

/* ::name or ::name(1,2) */
static FALLIBLE cast(struct stack_text *s, const char *word) {
    struct type_modifiers mods = {.bad_position = -1};
    struct type_name name;
    char text[64];
    snprintf(text, sizeof text, "%s", word + 2);
    char *open = strchr(text, '(');
    if (open) {
        long long first, second;
        *open = 0;
        mods.count = sscanf(open + 1, "%lld,%lld", &first, &second);
        mods.numbers[0] = first;
        mods.numbers[1] = mods.count > 1 ? second : 0;
    }
    TRY(type_named(&s->t, text, &mods, s->position + 2, &name));
    return coerce_cast(&s->t, s->at[s->count - 1], &name, s->position, &s->at[s->count - 1]);
}

/* name/arguments */
static FALLIBLE call(struct stack_text *s, const char *word) {
    char name[64];
    int count = 0;
    sscanf(word, "%60[^/]/%d", name, &count);
    struct expr **args = pop(s, count), *out = NULL;
    struct call of = {.name = arena_printf(s->t.arena, "%s", name),
                      .args = args,
                      .count = count,
                      .position = s->position};
    if (strcmp(name, "coalesce") == 0) {
        TRY(choice_coalesce(&s->t, args, count, s->position, &out));
    } else if (strcmp(name, "nullif") == 0) {
        TRY(choice_nullif(&s->t, args[0], args[1], s->position, &out));
    } else if (strcmp(name, "greatest") == 0) {
        TRY(choice_extreme(&s->t, true, args, count, s->position, &out));
    } else if (strcmp(name, "if") == 0) {
        TRY(choice_case(&s->t, args, count, "CASE", s->position, &out));
    } else {
        TRY(call_named(&s->t, &of, &out));
    }
    push(s, out);
    return ERR_OK;
}

static FALLIBLE take_word(struct stack_text *s, const char *word, size_t len) {
    struct expr *out = NULL;
    for (i64 i = 0; i < COUNT_OF(columns); i++) {
        if (strcmp(word, columns[i].name) == 0) {
            push(s, expr_col(&s->plan, (u32)i, s->position));
            return ERR_OK;
        }
    }
    if (word[0] == '\'' || word[0] == '$') {
        push(s, untyped(s, word, len));
    } else if (word[0] >= '0' && word[0] <= '9') {
        TRY(literal_number(&s->t, word, s->position, &out));
        push(s, out);
    } else if (strcmp(word, "null") == 0) {
        push(s, expr_null(&s->t, type_of(TYPE_UNKNOWN), s->position));
    } else if (word[0] == ':') {
        return cast(s, word);
    } else if (strchr(word, '/') && len > 1) {
        return call(s, word);
    } else {
        struct expr **two = pop(s, 2);
        if (strcmp(word, "distinct") == 0) {
            TRY(choice_distinct(&s->t, two[0], two[1], false, s->position, &out));
        } else {
            TRY(operator_binary(&s->t, arena_printf(s->t.arena, "%s", word), two[0], two[1],
                                s->position, &out));
        }
        push(s, out);
    }
    return ERR_OK;
}

/* One expression; what is left without a type is text. */
static FALLIBLE stack_read(struct stack_text *s, const char *text, struct expr **out) {
    for (const char *at = text; *at;) {
        char word[64];
        size_t len = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        s->position = (i32)(at - text);
        TRY(take_word(s, word, len));
        at += len + (at[len] == ' ');
    }
    assert_int_equal(s->count, 1);
    return coerce_unknown(&s->t, s->at[0], type_of(TYPE_TEXT), out);
}

static const struct {
    const char *sql, *stack;
} pairs[] = {
    {"a + 1", "a 1 +"},
    {"a + 2.5 * c", "a 2.5 c * +"},
    {"c / 3", "c 3 /"},
    {"e * a", "e a *"},
    {"'7' + a", "'7' a +"},
    {"a = '12'", "a '12' ="},
    {"g < f", "g f <"},
    {"d - '1998-12-01'", "d '1998-12-01' -"},
    {"d + 30", "d 30 +"},
    {"b || a", "b a ||"},
    {"b ~~ 'a%'", "b 'a%' ~~"},
    {"b ~ '^x'", "b '^x' ~"},
    {"c = $1", "c $1 ="},
    {"$1 + h", "$1 h +"},
    {"2147483648 + a", "2147483648 a +"},
    {"1.50::numeric(5,1)", "1.50 ::numeric(5,1)"},
    {"'1.25'::numeric", "'1.25' ::numeric"},
    {"b::date", "b ::date"},
    {"a::varchar(3)", "a ::varchar(3)"},
    {"null::int4", "null ::int4"},
    {"coalesce(null, a, 2.5)", "null a 2.5 coalesce/3"},
    {"nullif(a, 0)", "a 0 nullif/2"},
    {"greatest(a, g)", "a g greatest/2"},
    {"case when i then 1 else 2.5 end", "i 1 2.5 if/3"},
    {"a is distinct from g", "a g distinct"},
    {"round(c, 1)", "c 1 round/2"},
    {"sqrt(a)", "a sqrt/1"},
    {"power(c, 2)", "c 2 power/2"},
    {"upper(b)", "b upper/1"},
    {"replace(b, 'x', 'y')", "b 'x' 'y' replace/3"},
    {"date_part('day', d)", "'day' d date_part/2"},
    {"to_char(d, 'YYYY')", "d 'YYYY' to_char/2"},
    {"regexp_replace(b, 'x', 'y', 'g')", "b 'x' 'y' 'g' regexp_replace/4"},
};

static const char *shown(struct arena *arena, const struct plan *plan, const struct expr *expr,
                         struct type type) {
    struct text text;
    char name[32];
    text_init(&text, arena);
    expr_print(&text, plan, expr);
    text_print(&text, " : %s", type_print(type, name));
    return text.ptr;
}

static void test_same_as_sql(void **state) {
    struct fixture *f = *state;
    i32 bad = 0;
    for (i64 i = 0; i < COUNT_OF(pairs); i++) {
        char sql[300];
        struct stack_text s;
        struct expr *expr = NULL;
        struct type param = type_of(TYPE_UNKNOWN);
        snprintf(sql, sizeof sql, "select %s from t", pairs[i].sql);
        assert_int_equal(fixture_bind(f, sv_from(sql)), ERR_OK);
        const struct plan *plan = f->statement.plan;
        const char *want = shown(&f->arena, plan, plan->root->project.exprs.items[0],
                                 plan->cols.items[plan->root->out.items[0]].type);
        stack_init(&s, &f->arena, &param, &f->err);
        wf_status status = stack_read(&s, pairs[i].stack, &expr);
        const char *got = status ? f->err.message : shown(&f->arena, &s.plan, expr, expr->type);
        if (strcmp(want, got) != 0 || !type_eq(param, f->params[0])) {
            print_error("%s\n  SQL   %s\n  stack %s\n", pairs[i].stack, want, got);
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

static const struct {
    const char *stack;
    wf_status code;
    i32 position;
} errors[] = {
    {"a 'x' +", ERR_INVALID_TEXT, 2},
    {"a b +", ERR_UNDEFINED_FUNCTION, 4},
    {"a 1 nosuch/2", ERR_UNDEFINED_FUNCTION, 4},
    {"b sqrt/1", ERR_UNDEFINED_FUNCTION, 2},
    {"a ::nosuch", ERR_UNDEFINED_OBJECT, 4},
    {"a ::numeric(1001,1)", ERR_INVALID_PARAMETER, 4},
    {"i ::date", ERR_CANNOT_COERCE, 2},
    {"d i coalesce/2", ERR_DATATYPE_MISMATCH, 2},
    {"'1' '2' +", ERR_AMBIGUOUS_FUNCTION, 8},
};

static void test_errors(void **state) {
    struct fixture *f = *state;
    for (i64 i = 0; i < COUNT_OF(errors); i++) {
        struct stack_text s;
        struct expr *expr = NULL;
        struct type param = type_of(TYPE_UNKNOWN);
        error_reset(&f->err);
        stack_init(&s, &f->arena, &param, &f->err);
        wf_status status = stack_read(&s, errors[i].stack, &expr);
        if (status != errors[i].code || f->err.position != errors[i].position) {
            print_error("%s\n  %s at %d: %s\n", errors[i].stack, error_sqlstate(status),
                        f->err.position, f->err.message);
        }
        assert_int_equal(status, errors[i].code);
        assert_int_equal(f->err.position, errors[i].position);
    }
}

/* Aggregates by name: what they take, what they give. */
static void test_aggregates(void **state) {
    static const struct {
        const char *name, *column, *type;
    } cases[] = {
        {"sum", "a", "bigint"}, {"sum", "c", "decimal(38,2)"}, {"avg", "e", "double precision"},
        {"min", "b", "text"},   {"count", "i", "bigint"},      {"every", "i", "boolean"},
    };
    struct fixture *f = *state;
    for (i64 i = 0; i < COUNT_OF(cases); i++) {
        struct stack_text s;
        struct expr *arg = NULL;
        struct type param = type_of(TYPE_UNKNOWN), type;
        char name[32];
        error_reset(&f->err);
        stack_init(&s, &f->arena, &param, &f->err);
        assert_int_equal(stack_read(&s, cases[i].column, &arg), ERR_OK);
        struct agg_call made = {.agg = (u8)agg_named(cases[i].name)};
        struct call of = {.name = cases[i].name, .args = &arg, .count = 1, .position = 0};
        assert_int_equal(agg_args(&s.t, &of, &made, &type), ERR_OK);
        assert_string_equal(type_print(type, name), cases[i].type);
        assert_ptr_equal(made.arg, arg);
        assert_false(agg_is_of_parts(&made));
    }
    assert_int_equal(agg_named("nosuch"), -1);
    struct stack_text s;
    struct expr *arg = NULL;
    struct type param = type_of(TYPE_UNKNOWN), type;
    error_reset(&f->err);
    stack_init(&s, &f->arena, &param, &f->err);
    assert_int_equal(stack_read(&s, "b", &arg), ERR_OK);
    struct agg_call made = {.agg = (u8)agg_named("sum")};
    struct call of = {.name = "sum", .args = &arg, .count = 1, .position = 7};
    assert_int_equal(agg_args(&s.t, &of, &made, &type), ERR_UNDEFINED_FUNCTION);
    assert_int_equal(f->err.position, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_sql),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_aggregates),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}

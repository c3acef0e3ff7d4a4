/* typing.h: what expressions mean by their types: literals, casts, common types, operators,
 * functions, aggregates.
 *
 * For every language that makes plans: it speaks of expressions, types and positions in a text, and
 * knows no syntax. Operands go in with the types they have, TYPE_UNKNOWN for quoted literals, NULL
 * and parameters whose context is still to come; expressions come out whose operands have the types
 * their operators work on. */
#ifndef WF_TYPING_TYPING_H
#define WF_TYPING_TYPING_H

#include "plan/plan.h"

enum {
    DECIMAL_DIGITS_MAX = 38,
    PARAM_DIGITS = 18,        /* of a decimal parameter whose type its context leaves open */
    SHARED_NODES_MAX = 20000, /* nodes of an operand that a rewriting uses twice */
    DECIMAL_OPEN_SCALE = 16,  /* digits after the point where the rows decide how many there are:
                               * text and floats as decimals */
    QUOTIENT_DIGITS = 16,     /* significant ones that the smallest quotient of the types has, where
                               * there is room */
    COMMON_SCALE = 18         /* digits after the point that give way to none before it, where
                               * operands have them */
};

/* While one statement gets its types. */
struct typing {
    struct arena *arena;
    struct plan *plan; /* whose columns expressions name */
    struct error *err;
    struct type *param_types; /* of parameters; those that are unknown are filled in */
    i32 any_null;             /* > 0: whatever an expression names may be NULL where it is used */
    i32 random_calls;         /* so far: each gives numbers of its own */
    /* Is told of literals whose meaning depends on the clock or the session's zone; NULL = nobody
     * is. Returns when they are read, if that is now. */
    const struct when *(*moment)(void *arg, const struct expr *literal, struct type type);
    void *moment_arg;
};

/* build.c */
struct expr *expr_null(struct typing *t, struct type type, i32 position);
struct expr *expr_bool(struct typing *t, bool value, i32 position);
struct expr *expr_int(struct typing *t, i32 value, i32 position);
struct expr *expr_text(struct typing *t, struct sv text, i32 position);
struct expr *expr_one(struct typing *t, enum expr_kind kind, struct expr *arg, i32 position);
struct expr *expr_many(struct typing *t, enum expr_kind kind, struct type type, i32 position,
                       i32 count, struct expr **args);
bool is_unknown(const struct expr *expr);
bool literal_text(const struct expr *expr, struct sv *out); /* a text or unknown constant */
/* Whether an expression may be NULL where it is used. */
bool typing_nullable(const struct typing *t, const struct expr *expr);
/* 54001 for an operand that is too large to be used twice. */
FALLIBLE typing_sharable(struct typing *t, const struct expr *expr);

/* type_name.c */
struct type_name {
    struct type type;
    b8 open_decimal; /* decimal without (p,s) */
    i32 position;
};
struct type_modifiers { /* decimal(18, 3) */
    i32 count;
    i64 numbers[2];   /* as many of them */
    i32 bad_position; /* of one that is no integer; -1 = none */
};
FALLIBLE type_named(struct typing *t, const char *name, const struct type_modifiers *mods,
                    i32 position, struct type_name *out);

/* coerce.c */
enum coercion { COERCE_IMPLICIT, COERCE_ASSIGN, COERCE_EXPLICIT };
bool coerce_allowed(struct type from, struct type to, enum coercion how);
/* Gives a literal, NULL or parameter of unknown type the type `like`; others stay. For decimals a
 * literal keeps the digits it is written with. */
FALLIBLE coerce_unknown(struct typing *t, struct expr *expr, struct type like, struct expr **out);
/* To exactly `to`; the caller knows that it is allowed. Constants are converted when that cannot
 * fail. */
FALLIBLE coerce_to(struct typing *t, struct expr *expr, struct type to, struct expr **out);
/* An explicit cast. */
FALLIBLE coerce_cast(struct typing *t, struct expr *expr, const struct type_name *to, i32 position,
                     struct expr **out);
/* To a column of a table, by the rules of assignment. */
FALLIBLE coerce_assign(struct typing *t, struct expr *expr, const char *column, struct type to,
                       struct expr **out);
/* To a boolean, which `clause` needs. */
FALLIBLE coerce_condition(struct typing *t, struct expr *expr, const char *clause,
                          struct expr **out);
/* Brings all to one type (UNION rules); `what` names the construct. All unknown: text. */
FALLIBLE coerce_common(struct typing *t, struct expr **exprs, i32 count, const char *what,
                       struct type *out);
/* The type in which two known types compare; false when they do not. */
bool coerce_compared(struct type a, struct type b, struct type *out);
/* As text, a char(n) with its blanks. */
FALLIBLE coerce_padded(struct typing *t, struct expr *expr, struct expr **out);
/* A numeric literal as written: integer, bigint or decimal. */
FALLIBLE literal_number(struct typing *t, const char *text, i32 position, struct expr **out);
/* What a function that returns its argument, or a union, says of its length and precision: nothing,
 * but for decimals and the blanks of char(n). */
struct type type_handed_on(struct type type);
struct type decimal_of(struct type exact); /* integers as decimals */
i64 char_count(struct sv s);

/* operator.c */
FALLIBLE operator_binary(struct typing *t, const char *op, struct expr *left, struct expr *right,
                         i32 position, struct expr **out);
FALLIBLE operator_unary(struct typing *t, const char *op, struct expr *arg, i32 position,
                        struct expr **out);
/* FUNC_EQ to FUNC_GE. */
FALLIBLE operator_compare(struct typing *t, u16 func, struct expr *left, struct expr *right,
                          i32 position, struct expr **out);
/* Whether two decimals have no common type of 38 digits. */
bool operator_is_wide(const struct expr *left, const struct expr *right);
/* FUNC_ADD to FUNC_MOD. */
FALLIBLE operator_arithmetic(struct typing *t, u16 func, struct expr *left,
                             struct expr *right, i32 position, struct expr **out);
/* ~~, ~~*, !~~, !~~*: LIKE and ILIKE by another name; without the star also of bytes. */
FALLIBLE operator_like(struct typing *t, const char *op, struct expr *left, struct expr *right,
                       i32 position, struct expr **out);
/* The pattern of LIKE from a pattern and, if there are two, its escape character. */
FALLIBLE operator_escape(struct typing *t, struct expr **args, i32 count, i32 position,
                         struct expr **out);
/* SIMILAR TO a pattern and, if there are two, its escape character; `op` begins with ! for NOT. */
FALLIBLE operator_similar(struct typing *t, const char *op, struct expr *left, struct expr **args,
                          i32 count, i32 position, struct expr **out);
wf_status operator_missing(struct typing *t, const char *op, struct expr *left, struct expr *right,
                           i32 position);

/* choice.c */
/* args: when, then, …, else; the results come to one type. */
FALLIBLE choice_case(struct typing *t, struct expr **args, i32 count, const char *what,
                     i32 position, struct expr **out);
FALLIBLE choice_coalesce(struct typing *t, struct expr **items, i32 count, i32 position,
                         struct expr **out);
FALLIBLE choice_nullif(struct typing *t, struct expr *left, struct expr *right, i32 position,
                       struct expr **out);
FALLIBLE choice_extreme(struct typing *t, bool greatest, struct expr **items, i32 count,
                        i32 position, struct expr **out);
/* IS DISTINCT FROM; negated: IS NOT. */
FALLIBLE choice_distinct(struct typing *t, struct expr *left, struct expr *right, bool negated,
                         i32 position, struct expr **out);

/* function.c: a call of a function by name, its arguments bound. */
struct call {
    const char *name;
    struct expr **args;
    i32 count;
    i32 position;
    u16 func; /* FUNC_…, from the table that named it */
};
FALLIBLE call_named(struct typing *t, struct call *call, struct expr **out);
bool call_is_known(const char *name);   /* a scalar function, of ours or only of PostgreSQL's */
bool call_is_missing(const char *name); /* only of PostgreSQL's */
wf_status call_mismatch(struct typing *t, const struct call *call); /* 42883 */
FALLIBLE call_undefined(struct typing *t, const char *name, struct expr **args, i32 count,
                        i32 position);
/* Argument i as `type`, to which it must come by itself. */
FALLIBLE call_argument(struct typing *t, const struct call *call, i32 i, struct type type,
                       struct expr **out);
/* Names of functions whose arguments need more than their types said; NULL at the end. */
const char *typing_function(i64 i);
/* The time of the statement's transaction as `type`. */
FALLIBLE call_moment(struct typing *t, struct type type, i32 position, struct expr **out);
enum { INTERVAL_ARGS = 7 };
extern const char *const interval_args[INTERVAL_ARGS]; /* names of make_interval's arguments */
FALLIBLE call_make_interval(struct typing *t, struct expr **args, i32 position, struct expr **out);
/* What regexp_split_to_table(…) gives, as one text in parts. */
FALLIBLE call_regex_split(struct typing *t, const struct call *call, struct expr **out);

/* scan.c: a table of a snapshot; `out` has its columns in their order. */
struct rel *scan_new(struct plan *plan, const struct snapshot_table *found, const char *alias,
                     i32 position);

/* overload.c: functions and operators of WF_SCALARS. */
/* Chooses among the overloads of a name as PostgreSQL does; *out_found is false when none takes
 * these arguments. Ambiguity is 42725. */
FALLIBLE call_overload(struct typing *t, const struct call *call, bool *out_found,
                       struct expr **out);
/* One overload, its arguments already of the right types. */
struct expr *scalar_call(struct typing *t, u16 func, i32 position, i32 count, ...);

/* aggregate.c */
i32 agg_named(const char *name);  /* enum agg; -1 = none */
bool agg_find(const char *name);  /* it is an aggregate */
bool agg_is_ordered_set(i32 agg); /* of values in order: WITHIN GROUP, or median */
bool agg_same(const struct expr *x, const struct expr *y); /* both may be NULL */
/* The arguments of `of` become those of `call`, whose aggregate, order and filter are known. */
FALLIBLE agg_args(struct typing *t, const struct call *of, struct agg_call *call,
                  struct type *out_type);
/* agg_parts.c: aggregates that are expressions over others. */
enum { AGG_PARTS = 6 };
bool agg_is_of_parts(const struct agg_call *call);
/* One of AGG_PARTS parts of such a call; false when it needs no such part. */
bool agg_part(struct typing *t, const struct agg_call *call, i32 part, struct agg_call *out,
              struct type *out_type);
/* The value its parts make. */
FALLIBLE agg_of_parts(struct typing *t, enum agg agg, struct expr **parts, i32 position,
                      struct expr **out);

#endif

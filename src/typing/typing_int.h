/* typing_int.h: what the files of typing share. */
#ifndef WF_TYPING_TYPING_INT_H
#define WF_TYPING_TYPING_INT_H

#include "typing/typing.h"

typedef FALLIBLE (*func_handler)(struct typing *t, const struct call *call, struct expr **out);
/* A line of a table of functions whose arguments need more than their types said (function.c). */
struct func_entry {
    const char *name;
    i32 least, most; /* arguments */
    func_handler bind;
    u16 func;
};
const struct func_entry *time_functions(i64 *out_count); /* time.c */
const struct func_entry *text_functions(i64 *out_count); /* text.c */
const struct func_entry *math_functions(i64 *out_count); /* math.c */
bool scalar_named(const char *name);                     /* overload.c: a name of WF_SCALARS */

struct type decimal_common(struct type a, struct type b);
struct type mean_type(struct type exact); /* of avg */

/* decimal.c: FUNC_EXP_N, LN_N, SQRT_N, LOG_N (of one argument: to base 10), POWER_N. */
FALLIBLE decimal_call(struct typing *t, u16 func, struct expr *const *args, i32 count,
                      i32 position, struct expr **out);
/* Whether arguments are decimals, or, with `integers`, exact numbers of any kind. */
bool decimal_takes(struct expr *const *args, i32 count, bool integers);
/* A small expression of nothing but constants as a constant; anything else as it is. */
struct expr *decimal_constant(struct typing *t, struct expr *expr);
/* The digits after the point of a quotient of constants, as in PostgreSQL. */
bool decimal_quotient(const struct expr *x, const struct expr *y, i32 *out_scale);

#endif

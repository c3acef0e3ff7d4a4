/* func.c: what func.def tells of the functions that expressions call. Nobody else in the library expands it but the
 * list that shells print (sql/functions.c), so that an edit of it is built at once. */
#include "plan/plan.h"

#include "codes/op.h"
#include "codes/scalar.h"
#include "defs/func.def"

#define X(A, name, text, arguments, doc) text,
#define XS(A, name, text, arguments, result, op, doc) text,
const char *const func_names[FUNC_COUNT] = {WF_FUNCS(X, ) WF_SCALARS(XS, )};
#undef X
#undef XS
#define X(A, name, text, arguments, result, op, doc) [FUNC_##name] = {arguments, result, op},
const struct scalar_info scalar_infos[FUNC_COUNT] = {WF_SCALARS(X, )};
#undef X

bool func_is_one(i32 func) {
    return func >= 0 && func < FUNC_COUNT;
}

i32 func_arg_count(u16 func) {
#define X(A, name, text, arguments, doc) arguments,
    static const i8 counts[FUNC_SCALARS] = {WF_FUNCS(X, )};
#undef X
    return func < FUNC_SCALARS ? counts[func] : (i32)strcspn(scalar_infos[func].args, "@#");
}

bool func_is_strict(u16 func) {
    return func != FUNC_TRY && func != FUNC_DEFINED && func != FUNC_GREATEST && func != FUNC_LEAST &&
           func != FUNC_COALESCE && func != FUNC_NULLIF;
}
